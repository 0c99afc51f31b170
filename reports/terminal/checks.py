"""What `doctor` found on a machine, as a table with remedies."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from gemmprof.model.answers import Check, WorkerReport
from gemmprof.reports.terminal import columns

_MARKS = {True: "ok", False: "MISSING", None: "unsure"}


def _missing(checks: Sequence[Check]) -> str:
    return ", ".join(check.name for check in checks if check.is_missing)


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Everything that was looked for, then the remedies, then whether one can collect here."""
    _print_all(console, checks)
    if missing := _missing(checks):
        console.print(
            f"\n`gemmprof collect` cannot run here: {missing}. Reports can be read without any of it."
        )
    else:
        console.print("\n`gemmprof collect --all-stages` can run here.")


def hint(checks: Sequence[Check]) -> str:
    """One or two lines: what was found, and how to collect."""
    found = {check.name: check for check in checks}
    gpu, ncu = found["GPU"], found["ncu"]
    if not gpu.ok:
        return (
            "No NVIDIA GPU was found here: every command but `collect`, `profile` and `tune` works on the recorded run "
            "and on any report."
        )
    here = f"Found {gpu.found}" + (f" and ncu {ncu.found}." if ncu.ok else ".")
    if missing := _missing(checks):
        return f"{here}\nTo collect here, first see `gemmprof doctor`: {missing}."
    return f"{here}\nCollect on it with `gemmprof collect --all-stages`."


def print_workers(console: Console, workers: Sequence[WorkerReport]) -> None:
    """Every worker with what was looked for, then how many of them can work."""
    for worker in workers:
        console.print(f"worker {worker.worker} on {worker.host}", markup=False, highlight=False)
        _print_all(console, worker.checks)
        console.print()
    good = sum(1 for worker in workers if not _missing(worker.checks))
    if not workers:
        console.print("The scheduler answers, and has no workers.")
    else:
        console.print(f"{good} of {len(workers)} workers can verify, time and profile.")


def _print_all(console: Console, checks: Sequence[Check]) -> None:
    """The checks as a table, then the remedies."""
    table = columns("", "", "", show_header=False)
    for check in checks:
        mark = "optional" if check.ok is False and not check.needed else _MARKS[check.ok]
        table.add_row(mark, check.name, check.found)
    console.print(table)
    for check in checks:
        if check.ok is not True and check.remedies:
            console.print(f"\n{check.name}:")
            for remedy in check.remedies:
                console.print(f"  fix: {remedy}")
