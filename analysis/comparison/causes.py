"""gemmprof's own findings of a kernel, worked out where a gate asks for one: that needs the disassembly."""

from __future__ import annotations

from functools import cache

from gemmprof.analysis.comparison.records import KernelRecord
from gemmprof.analysis.explanation import explain
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.errors import GemmprofError

__all__ = ["CAUSES", "causes_of"]


def causes_of(record: KernelRecord) -> frozenset[str] | None:
    """Keys of the causes found in the kernel's middle launch; None where nothing can be said."""
    if record.causes is not None:
        return frozenset(record.causes)
    return None if record.place is None else _causes(*record.place)


@cache
def _causes(path: str, index: int) -> frozenset[str] | None:
    try:
        with ReportReader(path) as reader:
            profile = next(reader.profiles(source=True, units=True, only={index}))
    except (GemmprofError, StopIteration):
        return None
    found = explain(profile)
    return frozenset(finding.cause for finding in found.findings) if found.limit or found.findings else None
