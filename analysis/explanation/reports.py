"""Explains every launch of the reports that a user named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.inputs.selection import EVERYTHING, Selection
from gemmprof.analysis.reading.collector import few_collections
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.analysis.reading.unpack import unpacked_once
from gemmprof.analysis.session import selected_reports
from gemmprof.base.errors import GemmprofError, ReportError
from gemmprof.model import Explanation, KernelProfile


@dataclass(frozen=True, slots=True)
class Explanations:
    """The launches in the order of the inputs and of profiling, and why other inputs could not be read."""

    kernels: tuple[Explanation, ...]
    failures: tuple[GemmprofError, ...] = ()


@unpacked_once()
def explain_reports(
    paths: Iterable[str | os.PathLike[str]], selection: Selection = EVERYTHING
) -> Explanations:
    """Every selected launch of runs and reports, explained.

    Args:
        paths: run directories, reports, folders of them, or patterns.
        selection: which launches.

    Raises:
        UsageError: if nothing was named, or nothing matches the selection.
        GemmprofError: the first failure, if nothing could be read. Else failures stand beside the launches.
    """
    reports, problems = selected_reports(paths, selection)
    failures = list(problems)
    kernels: list[Explanation] = []
    with few_collections():
        for path, only in reports.items():
            try:
                kernels += [explain(profile) for profile in _profiles(path, only)]
            except ReportError as error:
                failures.append(error)
    if failures and not kernels:
        raise failures[0]
    return Explanations(tuple(kernels), tuple(failures))


def _profiles(path: os.PathLike[str], only: set[int] | None) -> Iterator[KernelProfile]:
    """The launches of one report, with code where there are counters for it."""
    with ReportReader(path) as reader:
        yield from reader.profiles(source=has_counters, units=True, rules=False, only=only)


def has_counters(profile: KernelProfile) -> bool:
    """Whether a launch has counters by instruction, for which its code is worth reading."""
    return metrics.INSTRUCTIONS_BY_ADDRESS in profile.instances or metrics.SAMPLE_COUNT in profile.instances
