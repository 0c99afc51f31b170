"""Which reports lie in folder trees."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gemmprof.analysis.inputs.patterns import is_report_name, is_run
from gemmprof.analysis.reading.unpack import no_such_file
from gemmprof.analysis.session import reports_of
from gemmprof.base.errors import GemmprofError, ReportError


def reports_below(inputs: Iterable[Path]) -> tuple[list[Path], tuple[GemmprofError, ...]]:
    """The reports that these inputs stand for: of a folder all below it; links to folders are not followed.

    Raises:
        ReportError, UsageError: if there are none at all; a mistyped name alone makes no empty data set.
    """
    found: dict[Path, None] = {}
    problems: list[GemmprofError] = []
    for path in inputs:
        if path.is_dir() and not is_run(path):
            for folder, folders, files in os.walk(path):
                folders.sort()
                found.update((Path(folder) / name, None) for name in sorted(files) if is_report_name(name))
            continue
        try:
            reports, failures = reports_of([path])
        except GemmprofError as error:
            problems.append(error)
            continue
        missing = [report for report in reports if not os.path.lexists(report)]
        problems += [no_such_file(report) for report in missing]
        found.update(dict.fromkeys(report for report in reports if report not in missing))
        problems += failures
    if not found and problems:
        raise problems[0]
    if not found:
        raise ReportError(
            "no report was found", remedies=["name a folder that holds .ncu-rep files, at any depth"]
        )
    return list(found), tuple(problems)
