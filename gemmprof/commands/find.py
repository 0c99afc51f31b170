"""Find launches among thousands of reports by any figure, finding or metric.

  gemmprof find 'shared_bank_conflicts > 10% and time > 1ms' reports/
  gemmprof find "kernel ~ 'softmax' and occupancy < 30%" 'nightly/**/*.ncu-rep'
  gemmprof find 'registers > 128 or local_accesses > 0' tables/        a data set: gemmprof export --format dataset
  gemmprof find --names

Reports are read once, several at a time, and kept as a data set; later calls read only what is new or changed. The
name of a finding stands for the per cent of a launch's time that fixing it is predicted to save.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from contextlib import ExitStack
from pathlib import Path

from gemmprof.arguments import common
from gemmprof.arguments.parser import DATASET, JSON, READ_INTO_DATASET, READING_PLACE, values
from gemmprof.base.errors import UsageError

ARGUMENTS = f"""
condition CONDITION?    see above
inputs FOLDER|REPORT*   a data set, or reports, runs, folders with all below them, patterns in quotes (default: this
                        folder)
--names                 list the figures and findings, and stop
--limit N>=1            show the N longest (default: %(default)s)
{DATASET}{JSON}{READING_PLACE}"""
VALUES = values(READ_INTO_DATASET, limit=50)


def run(options: argparse.Namespace) -> int:
    """Search; exit code 0, or 2 if some report could not be read."""
    from gemmprof.analysis.inputs.conditions import parse_condition

    if options.names:
        from gemmprof.reports.terminal import found

        common.console().print(found.names_table())
        return 0
    if options.condition is None:
        fixes = "gemmprof find 'time > 1ms' FOLDER", "gemmprof find --names"
        raise UsageError("no condition was given", *fixes)
    from gemmprof.base.system import kept_folder, without_modules

    with without_modules("pandas", "numpy"):
        from gemmprof.reports.dataset.manifest import is_dataset
        from gemmprof.reports.dataset.query import search

    condition = parse_condition(options.condition)
    inputs = [Path(item) for item in options.inputs] or [Path()]
    with ExitStack() as stack:
        if len(inputs) == 1 and is_dataset(inputs[0]):
            folder, failed = inputs[0], False
        else:
            names = "\0".join(sorted(str(path.resolve()) for path in inputs))
            key = hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()[:16]
            kept = kept_folder("datasets")
            folder = kept / key if kept else Path(stack.enter_context(tempfile.TemporaryDirectory()))
            failed = common.refresh_dataset(folder, inputs, options)
        with without_modules("pandas", "numpy"):
            answer = search(folder, condition, asked=options.condition, limit=options.limit)
    from gemmprof.reports.terminal import found

    common.answer(options, lambda: answer, lambda width: found.parts(answer, width=width))
    return common.exit_code(failed)
