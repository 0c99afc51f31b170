"""Look at this machine: GPU, driver, nvcc, ncu, ncu-report, counter permission, torch.

Says what is there, what is missing, and the exact remedy. Exits with 0 if `gemmprof collect` can run here, with 1 if
something it needs is missing. Reading reports needs none of this.
"""

from __future__ import annotations

import argparse

from gemmprof.commands._shared import add_json_argument, console, print_json
from gemmprof.run import runs_directory


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
        from gemmprof.reports.terminal.checks import hint

        print(hint(checks))
        return 0
    if options.json:
        print_json({"can_collect": not missing, "checks": checks}, "doctor")
        return 1 if missing else 0
    from gemmprof.reports.terminal.checks import print_checks

    print_checks(console(), checks)
    return 1 if missing else 0
