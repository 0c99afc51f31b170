"""Render HTML pages from a run or any .ncu-rep files.

  gemmprof report my.ncu-rep                    gemmprof-report/index.html
  gemmprof report run/ --single-file -o run.html
  gemmprof report after.ncu-rep --baseline before.ncu-rep

Writes a folder with an index page and a page for each kernel, or one file with --single-file. The pages need no
network, no GPU and no server. Without an argument the newest run here is rendered, else the recorded run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.arguments import common
from gemmprof.arguments.parser import FORCE, INPUTS, JSON, READ_THERE, READING_PLACE, TRACE
from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import url_of
from gemmprof.base.output import is_leftover

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.outcome import Outcome
    from gemmprof.analysis.session import Session

DEFAULT_FOLDER = "gemmprof-report"
ARGUMENTS = f"""{INPUTS}{TRACE}
--recorded              render the recorded run that ships with gemmprof
-o, --output DIR        folder to write, or file with --single-file (default: {DEFAULT_FOLDER})
{FORCE}
--single-file           write one HTML file that holds all pages
--baseline WHAT         compare each kernel with this instead of the stage before: a stage number or name, a part of a
                        kernel's name; or another run or report, or a saved baseline: then the verdicts on all kernels
                        come first
--all                   a page for every launch, also in a report with hundreds
{JSON}{READING_PLACE}"""
VALUES = READ_THERE


def run(options: argparse.Namespace) -> int:
    """Render the pages; exit code 0, or 2 if some input could not be read."""
    from gemmprof.base.buckets import sent
    from gemmprof.reports.pages.html import render

    if options.recorded and options.inputs:
        raise UsageError("--recorded takes no inputs", "leave out either the inputs or --recorded")
    if options.recorded:
        from gemmprof.runs.directory import recorded_run_directory

        options.inputs = [str(recorded_run_directory())]
    target = _target(options)
    session = common.load_inputs(options)
    baseline: Session | str | None = options.baseline
    outcome = None
    if options.baseline:
        from gemmprof.analysis.comparison.baseline import is_saved
        from gemmprof.analysis.session import load_session

        if Path(options.baseline).exists():
            baseline = load_session([options.baseline])
            common.name_failures(options, baseline.failures)
            outcome = _compared(options)
        elif is_saved(options.baseline):
            baseline, outcome = None, _compared(options)
    with sent(target) as here:
        path = render(
            session,
            here,
            single_file=options.single_file,
            baseline=baseline,
            every=options.all,
            processes=2,
            outcome=outcome,
        )
    path = target / path.relative_to(here)
    if options.json:
        from gemmprof.reports.documents.of_launches import ReportDocument

        common.print_json(ReportDocument.of_session(session, everything=False, index=path))
    else:
        common.announce(path)
    return common.exit_code(session.failures)


def _compared(options: argparse.Namespace) -> Outcome:
    """The verdicts against the baseline; what differs between the sides is named on the page, and refused nowhere."""
    from gemmprof.analysis.comparison.baseline import load_baseline
    from gemmprof.analysis.comparison.outcome import ACROSS, compare
    from gemmprof.analysis.comparison.sides import load_side

    there = Path(options.baseline).exists()
    before = load_side([options.baseline]) if there else load_baseline(options.baseline)
    after = load_side(common.chosen_inputs(options, quiet=True), common.selection(options))
    return compare(before, after, across=ACROSS)


def _target(options: argparse.Namespace) -> Path:
    """Where to write, checked before the slow part."""
    default = f"{DEFAULT_FOLDER}.html" if options.single_file else DEFAULT_FOLDER
    target = Path(options.output or default)
    if options.single_file and target.suffix != ".html":
        raise UsageError(f"{target} is no .html file", "with --single-file name a file: -o report.html")
    if url_of(target):
        return common.new_output(target, force=options.force)
    if not options.single_file and target.is_file():
        raise UsageError(f"{target} is a file", "name a folder", "add --single-file to write one file")
    taken = target.exists() and (options.single_file or any(not is_leftover(one) for one in target.iterdir()))
    if not taken or options.force:
        return target
    raise common.exists_already(target)
