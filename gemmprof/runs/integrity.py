"""Whether a run's reports are still those that were collected.

``run.json`` keeps the SHA-256 of each report's uncompressed bytes, so that it may be compressed later, and the number
of its launches. A report that differs, lost launches or gained some is refused, unless its user trusts it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from gemmprof.base import system
from gemmprof.base.errors import ReportError
from gemmprof.base.foreign_files import open_file
from gemmprof.model import ReportRecord
from gemmprof.ncurep import ncu_frame

_CHUNK = 1 << 20
_trusted: ContextVar[bool] = ContextVar("trusted", default=False)
_doubted: dict[str, str] = {}  # why each report is doubted that was checked and trusted, by its path


def report_record(report: Path) -> ReportRecord:
    """What to keep of a report that ncu just wrote.

    Raises:
        OSError: if it cannot be read.
        WireError: if it is no whole report.
    """
    with open_file(report) as file:
        return record_of(
            lambda start, end: system.read_at(file, start, end - start), file.seek(0, os.SEEK_END)
        )


def record_of(read: ncu_frame.Read, size: int) -> ReportRecord:
    """The record of a report of ``size`` uncompressed bytes.

    Raises:
        WireError: if its blocks do not hold.
    """
    digest = hashlib.sha256()
    for start in range(0, size, _CHUNK):
        digest.update(read(start, min(size, start + _CHUNK)))
    _, position = ncu_frame.read_head(read, size)
    launches = sum(
        number
        for block in ncu_frame.blocks(read, position, size)
        for kind, number in block.counts
        if kind in ncu_frame.WORKLOADS
    )
    return ReportRecord(digest.hexdigest(), launches)


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Read reports in this context although they differ from what was collected, with a doubt on each launch."""
    token = _trusted.set(trust)
    try:
        yield
    finally:
        _trusted.reset(token)


def doubt_of(report: str) -> str:
    """Why no launch of this report is to be trusted; '' if it was not found to differ from a collected one."""
    return _doubted.get(report, "")


def check(report: Path, kept: ReportRecord, found: ReportRecord) -> None:
    """Compare a report with what its run kept of it; one that differs and is trusted is doubted when it is read.

    Raises:
        ReportError: if it differs and is not trusted.
    """
    _doubted.pop(str(report), None)
    if (found.sha256, found.launches) == (kept.sha256, kept.launches):
        return
    if found.launches < kept.launches:
        what = f"it lost launches: {kept.launches} were collected, it holds {found.launches}"
    elif found.launches > kept.launches:
        what = f"it gained launches: {kept.launches} were collected, it holds {found.launches}"
    else:
        what = "its content is not what was collected"
    if _trusted.get():
        _doubted[str(report)] = (
            f"the report differs from the one that was collected ({what}); --trust had it read"
        )
        return
    raise ReportError(
        f"{report} differs from the report that its run collected",
        found=what,
        remedies=["copy the run again, or collect it again", "add --trust to read it as it is"],
    )
