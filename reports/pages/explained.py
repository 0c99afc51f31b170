"""The explanation of every launch that has a page: what to change first there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gemmprof import metrics
from gemmprof.analysis.explanation import explain
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.errors import GemmprofError
from gemmprof.reports.pages.contents import KernelPage, Plan
from gemmprof.reports.pages.workers import ordered

if TYPE_CHECKING:
    from gemmprof.model import Explanation, KernelProfile


def explained(pages: Plan, *, processes: int = 1) -> Plan:
    """The same plan with every page's launch explained."""
    again = _read_again(pages.pages)

    def of(place: int) -> Explanation:
        profile = pages.pages[place].analysis.profile
        return explain(again.get((profile.report, profile.index), profile))

    found = {
        page.key: explanation
        for page, explanation in zip(
            pages.pages, ordered(of, len(pages.pages), processes=processes), strict=True
        )
    }
    by_launch = {index: replace(page, explanation=found[page.key]) for index, page in pages.by_launch.items()}
    by_key = {page.key: page for page in by_launch.values()}
    return replace(
        pages,
        pages=tuple(by_launch.values()),
        by_launch=by_launch,
        stand_ins={index: by_key[page.key] for index, page in pages.stand_ins.items()},
    )


def _read_again(pages: Sequence[KernelPage]) -> Mapping[tuple[str, int], KernelProfile]:
    """The launches whose instance values a session of many did not keep, by report and launch."""
    wanted: dict[str, set[int]] = {}
    for page in pages:
        profile = page.analysis.profile
        if page.analysis.slimmed:
            wanted.setdefault(profile.report, set()).add(profile.index)
    found: dict[tuple[str, int], KernelProfile] = {}
    for report, only in wanted.items():
        try:
            with ReportReader(report) as reader:
                for profile in reader.profiles(source=_has_counters, units=True, rules=False, only=only):
                    found[report, profile.index] = profile
        except (GemmprofError, OSError):
            continue  # explained from what was kept
    return found


def _has_counters(profile: KernelProfile) -> bool:
    return metrics.INSTRUCTIONS_BY_ADDRESS in profile.instances or metrics.SAMPLE_COUNT in profile.instances
