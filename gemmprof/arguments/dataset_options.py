"""What the commands share that read thousands of reports into a data set."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemmprof.arguments import common
from gemmprof.arguments.declared import values

READING = """
--processes N>=1        reports read at a time (default: %(default)s)
--no-findings           do not look for what to change: reads faster
"""
VALUES = values(processes=2)


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
