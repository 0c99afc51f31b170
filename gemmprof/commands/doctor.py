"""Look at this machine: GPU, driver, nvcc, ncu, ncu-report, counter permission, torch.

Says what is there, what is missing, and the exact remedy. Exits with 0 if `gemmprof collect` can run here, with 1 if
something it needs is missing. Reading reports needs none of this.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gemmprof.commands._shared import add_json_argument, console, print_json
from gemmprof.run import runs_directory

if TYPE_CHECKING:
    from gemmprof.profiler.machine import Check

_MARKS = {True: "ok", False: "MISSING", None: "unsure"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``gemmprof doctor``."""
    add_json_argument(parser)
    parser.add_argument(
        "--hint",
        action="store_true",
        help="only say whether one can collect here, and how; always exits with 0",
    )


def run(options: argparse.Namespace) -> int:
    """Examine the machine and print the findings."""
    from gemmprof.profiler.machine import examine

    checks = examine(runs_directory())
    missing = [check for check in checks if check.needed and check.ok is False]
    if options.hint:
        print(_hint(checks, missing))
        return 0
    if options.json:
        print_json({"can_collect": not missing, "checks": checks})
        return 1 if missing else 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column()
    table.add_column(overflow="fold")
    for check in checks:
        mark = "optional" if check.ok is False and not check.needed else _MARKS[check.ok]
        table.add_row(mark, check.name, check.found)
    out = console()
    out.print(table)
    for check in checks:
        if check.ok is not True and check.remedies:
            out.print(f"\n{check.name}:")
            for remedy in check.remedies:
                out.print(f"  fix: {remedy}")
    if missing:
        names = ", ".join(check.name for check in missing)
        out.print(f"\n`gemmprof collect` cannot run here: {names}. Reports can be read without any of it.")
        return 1
    out.print("\n`gemmprof collect --all-stages` can run here.")
    return 0


def _hint(checks: Sequence[Check], missing: Sequence[Check]) -> str:
    """One or two lines: what was found, and how to collect."""
    found = {check.name: check for check in checks}
    gpu, ncu = found["GPU"], found["ncu"]
    if not gpu.ok:
        return "No NVIDIA GPU was found here: every command but `collect` works on the recorded run and on any report."
    here = f"Found {gpu.found}" + (f" and ncu {ncu.found}." if ncu.ok else ".")
    if missing:
        return f"{here}\nTo collect here, first see `gemmprof doctor`: {', '.join(check.name for check in missing)}."
    return f"{here}\nCollect on it with `gemmprof collect --all-stages`."
