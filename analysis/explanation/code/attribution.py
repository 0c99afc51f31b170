"""Attribution: a stalled sample counts against the instruction whose result, or whose queue, the warp waits for.

Nsight Compute puts a sample on the instruction that cannot issue. What it waits for is another one: the
load that fills a register it reads (long scoreboard), the shared load, conversion or special function
(short scoreboard), the arithmetic of a fixed latency just before (wait). Full queues (lg, mio, tex and math
pipe throttle) are the fault of the stalled instruction's own kind. A wait at a barrier is shared out over
what the other warps do meanwhile, by `barrier_work`.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmprof.analysis.explanation.code.flow import Program
from gemmprof.analysis.explanation.code.sass import Sass

LONG = "long_scoreboard"
SHORT = "short_scoreboard"
WAIT = "wait"
BARRIER = "barrier"
SELECTED = "selected"
NO_INSTRUCTION = "no_instruction"
BRANCH = "branch_resolving"


# What the next instruction waits for until it is known where the warp goes on.
TURNS = frozenset({"BRA", "BRX", "BSYNC", "CALL", "RET", "JMP", "BREAK", "WARPSYNC"})


def producers(code: Program, index: int, reason: str) -> tuple[int, ...]:
    """Indices of the instructions that a stall at ``index`` counts against; the stalled one itself where
    none is found.
    """
    if reason == LONG:
        return _awaited(code, index, lambda line: line.long_latency) or (index,)
    if reason == SHORT:
        return _awaited(code, index, lambda line: line.short_latency) or (index,)
    if reason == WAIT:
        return (index - 1,) if index and (index - 1) in code.predecessors[index] else (index,)
    if reason == BRANCH:
        turned = [at for at in code.predecessors[index] if code.sass[at].opcode in TURNS]
        return tuple(turned) or (index,)
    if reason == "drain":
        return code.preceding(index, lambda line: line.is_store)[:4] or (index,)
    return (index,)


def _awaited(code: Program, index: int, kind: Callable[[Sass], bool]) -> tuple[int, ...]:
    """Producers of this kind among what the instruction reads or overwrites; else the nearest one before
    it.
    """
    line = code.sass[index]
    found: dict[int, None] = {}
    for register in (*line.reads, *line.writes):
        for at in code.producers(index, register):
            if kind(code.sass[at]):
                found[at] = None
    if not found and line.writes:
        # A load may not overwrite a register that an earlier store or load still reads (write after read).
        written = set(line.writes)

        def reads_it(other: Sass) -> bool:
            return kind(other) and bool(written.intersection(other.reads))

        found.update(dict.fromkeys(code.preceding(index, reads_it)))
    if not found and line.opcode in ("DEPBAR", "LDGDEPBAR", "BAR", "ARRIVES", "SYNCS", "EXIT", "BRA"):
        found.update(dict.fromkeys(code.preceding(index, kind)[:4]))
    return tuple(found)
