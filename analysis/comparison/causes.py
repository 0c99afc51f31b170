"""gemmprof's own findings of a kernel, worked out where they are asked for: that needs the disassembly."""

from __future__ import annotations

from functools import cache

from gemmprof.analysis.comparison.records import KernelRecord
from gemmprof.analysis.explanation import explain
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.errors import GemmprofError
from gemmprof.model import Finding

__all__ = ["CAUSES", "causes_of", "what_changed"]


def causes_of(record: KernelRecord) -> frozenset[str] | None:
    """Keys of the causes found in the kernel's middle launch; None where nothing can be said."""
    if record.causes is not None:
        return frozenset(record.causes)
    return None if record.place is None else _causes(*record.place)


def what_changed(before: KernelRecord, after: KernelRecord, change: float) -> str:
    """A change in the words of findings: which is gone with what it was predicted to save, which came, what is next.

    Args:
        before, after: the kernel; a side without its report has no predictions, and nothing is said.
        change: of the time, after/before - 1.
    """
    sides = [None if side.place is None else _findings(*side.place) for side in (before, after)]
    left, right = sides
    if left is None or right is None:
        return ""
    was, now = ({finding.cause: finding for finding in side} for side in (left, right))
    parts = [
        f"{_title(finding)} (predicted {_per_cent(finding.saves)}, {100 * finding.saves_low:.0f} to "
        f"{100 * finding.saves_high:.0f}) is gone"
        for cause, finding in was.items()
        if cause not in now and change < 0
    ]
    parts += [
        f"{_title(finding)} is new (would save {_per_cent(finding.saves)})"
        for cause, finding in now.items()
        if cause not in was and change > 0
    ]
    if not parts:
        return ""
    following = f"; next: {_title(right[0])} {_per_cent(right[0].saves)}" if right and change < 0 else ""
    return f"{', '.join(parts[:2])}: {100 * change:+.1f} % measured{following}"


def _title(finding: Finding) -> str:
    title = CAUSES.get(finding.cause, finding.cause)
    return title[:1].lower() + title[1:]


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _causes(path: str, index: int) -> frozenset[str] | None:
    found = _findings(path, index)
    return None if found is None else frozenset(finding.cause for finding in found)


@cache
def _findings(path: str, index: int) -> tuple[Finding, ...] | None:
    try:
        with ReportReader(path) as reader:
            profile = next(reader.profiles(source=True, units=True, only={index}))
    except (GemmprofError, StopIteration):
        return None
    found = explain(profile)
    return found.findings if found.limit or found.findings else None
