"""What the commands share that read thousands of reports into a data set."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemmprof.arguments import common
from gemmprof.arguments.common import whole


def add_reading_arguments(parser: argparse._ActionsContainer) -> None:
    """Add what steers the reading of many reports."""
    parser.add_argument(
        "--processes",
        metavar="N",
        type=whole(1),
        default=2,
        help="reports read at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--no-findings", action="store_true", help="do not look for what to change: reads faster"
    )


def refresh(folder: Path, inputs: list[Path], options: argparse.Namespace) -> bool:
    """Bring a data set in line with these inputs; True if some report could not be read.

    Raises:
        ReportError, UsageError: if the inputs stand for no report.
    """
    from gemmprof.base.system import without_modules

    with without_modules("pandas", "numpy"):  # others read
        from gemmprof.reports.dataset.manifest import update
        from gemmprof.reports.dataset.rows import reports_below
    from gemmprof.reports.terminal import found

    reports, problems = reports_below(inputs)
    common.name_failures(options, problems)
    try:
        done = update(
            folder,
            reports,
            explained=not options.no_findings,
            processes=options.processes,
            progress=lambda *state: print(found.progress(*state), file=sys.stderr),
        )
    except KeyboardInterrupt:
        print("what was read is kept: the same command goes on from there", file=sys.stderr)
        raise
    for line in found.summary(done):
        print(line, file=sys.stderr)
    return bool(done.errors or problems)
