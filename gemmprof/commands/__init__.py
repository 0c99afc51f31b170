"""The commands, one module each: ``ARGUMENTS`` (or ``ACTIONS``, each with arguments of its own), what their ``VALUES``
may be (`gemmprof.arguments.parser`), and ``run(options) -> exit code``.

A module's docstring is its help text. Modules import heavy packages only inside ``run``.
"""

from __future__ import annotations

# Each command (``commands/<name>.py``) and its one-line summary, in the groups and the order of the help.
GROUPS: dict[str, dict[str, str]] = {
    "your kernel": {
        "explain": "what to change first in a kernel, where, and what it brings",
        "show": "what reports hold, in the terminal: kernels first, then each analysis",
        "report": "render HTML pages from a run or any .ncu-rep files",
        "roofline": "roofline points of kernels, as a table or a picture",
        "occupancy": "theoretical occupancy, its reasoning, and what would raise it",
    },
    "compare": {
        "diff": "SAME, FASTER, SLOWER or CAN'T TELL, and what changed; a gate for CI",
        "baseline": "keep a report or run in a small file, to compare with later",
        "history": "a year of runs: record them, show a kernel's times, find the steps",
    },
    "collect": {
        "profile": "profile any program: what it costs, its reports, explanation and pages",
        "watch": "profile again on every save, and say in one line what the change was",
        "collect": "build, verify, time and profile the stages on this machine's GPU",
        "tune": "search a stage's tile parameters on this machine's GPU",
        "stages": "the ladder of kernels and each stage's one idea",
        "doctor": "what this machine has, what is missing, and the exact remedy",
    },
    "more": {
        "find": "which launches of thousands of reports meet a condition",
        "export": "write everything in reports as Parquet, CSV or JSON lines",
        "mcp": "serve reports to agents through the Model Context Protocol",
        "completion": "completion for bash, zsh, fish, tcsh or PowerShell",
    },
}

# The same without the groups.
COMMANDS: dict[str, str] = {name: text for group in GROUPS.values() for name, text in group.items()}

FRONT = "show"  # the command whose module also answers `gemmprof REPORT`: ``FRONT_ARGUMENTS`` and ``front``

# Commands behind whose ``--`` stands a program with arguments of its own, in ``options.program``.
TAKE_A_PROGRAM = frozenset({"profile", "watch"})
_HELP = """\
usage: gemmprof REPORT|RUN… ['#3']
       gemmprof COMMAND …

Profile CUDA kernels with Nsight Compute and explain what holds them back.

{commands}

examples:
  gemmprof my.ncu-rep                      what a report holds, the most to gain first
  gemmprof my.ncu-rep '#3'                 one family of launches in full
  gemmprof profile -- python train.py      profile a program, explain it, render pages
  gemmprof diff before.ncu-rep after.ncu-rep --fail-if 'time > +3%'

`gemmprof COMMAND --help` shows a command's options; --version the version.
Reports are read without a GPU."""


def help_text() -> str:
    """What `gemmprof --help` prints: usage, the front door, the commands by group, examples."""
    width = max(map(len, COMMANDS)) + 2
    groups = []
    for title, group in GROUPS.items():
        groups.append("\n".join([f"{title}:", *(f"  {name:<{width}}{text}" for name, text in group.items())]))
    return _HELP.format(commands="\n\n".join(groups))
