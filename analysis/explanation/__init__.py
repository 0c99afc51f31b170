"""What to change first in a kernel, where, and what it brings: `engine.explain`.

Read it in this order: `analysis.opcodes` and `flow` (the code), `work` (what a launch asks of the machine), `latency`,
`resources` and `time_model` (how long that takes), `causes` (what could go away), `prediction` (what that
saves), `engine` (all of it).
"""
