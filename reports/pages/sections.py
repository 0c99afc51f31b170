"""The sections of a kernel page: which there are, in which order, and what each partial template is given.

Every analysis of `analyses` is a section, drawn by ``templates/analysis_<NAME>.html``; one that stands nowhere in
`ORDER` comes after the others. Sections that are no analysis of a single launch (the comparison, the traffic model, the
access patterns, the raw metrics) are listed here with what makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from gemmprof.analysis.kernel_analysis import analyses
from gemmprof.analysis.ladder import declared_traffic
from gemmprof.model import KernelProfile, NotCollected
from gemmprof.reports.figures import drawings
from gemmprof.reports.formatting import raw_value
from gemmprof.reports.pages import occupancy_page
from gemmprof.reports.pages.contents import KernelPage
from gemmprof.reports.pages.source_listing import listing

# Names of sections from top to bottom, with their titles in the table of contents where those are others.
ORDER = {
    "roofline": "",
    "source_view": "Source and SASS",
    "comparison": "What changed",
    "speed_of_light": "",
    "timeline": "Over time",
    "memory_chart": "",
    "warp_states": "",
    "scheduler": "",
    "instruction_mix": "",
    "coalescing": "Coalescing",
    "bank_conflicts": "Bank conflicts",
    "divergence": "",
    "spills": "Local memory",
    "occupancy": "",
    "rules": "Advice",
    "traffic": "Traffic model",
    "access_pattern": "Access patterns",
    "launch": "Launch and device",
    "raw_metrics": "",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a page: ``result`` is what the analysis found, ``extra`` what a view drew from it."""

    name: str
    title: str
    result: Any
    extra: Any = None
    short: str = ""  # title in the table of contents


View = Callable[[Any, KernelPage, str], Any]  # from the result, the page, and the prefix of its ids

# What a section needs beyond its result, by name: figures and layouts.
VIEWS: dict[str, View] = {
    "roofline": lambda result, page, prefix: drawings.roofline(result, prefix),
    "timeline": lambda result, page, prefix: drawings.timeline(result),
    "memory_chart": lambda result, page, prefix: drawings.diagram(result),
    "source_view": lambda result, page, prefix: listing(result),
    "occupancy": lambda result, page, prefix: occupancy_page.calculator(page.analysis, prefix),
    "raw_metrics": lambda result, page, prefix: _metric_rows(page.analysis.profile),
    "access_pattern": lambda result, page, prefix: drawings.access_patterns(result),
}


def sections(
    page: KernelPage,
    before: KernelPage | None,
    prefix: str,
    *,
    other_report: bool = False,
    only: Collection[str] | None = None,
) -> tuple[list[Section], list[tuple[str, NotCollected]]]:
    """The sections (``only`` these) that a page shows, and titles of those without data, with what collects it."""
    shown, absent = [], []
    for name, title, result in _results(page, before, other_report=other_report):
        if only is not None and name not in only:
            continue
        if isinstance(result, NotCollected):
            if result.remedy:
                absent.append((title, result))
            continue
        view = VIEWS.get(name)
        extra = view(result, page, prefix) if view is not None else None
        shown.append(Section(name, title, result, extra, ORDER.get(name) or title))
    place = {name: index for index, name in enumerate(ORDER)}
    shown.sort(key=lambda section: place.get(section.name, place["launch"] - 0.5))
    return shown, absent


def _results(
    page: KernelPage, before: KernelPage | None, *, other_report: bool
) -> list[tuple[str, str, Any]]:
    """Name, title and result of everything that could be a section."""
    found = [(item.NAME, item.TITLE, page.analysis.traced.results.get(item.NAME)) for item in analyses()]
    if before is not None:
        from gemmprof.analysis.comparison.outcome import compare_launches

        stage = before.record and f"stage {before.record.stage.number}, {before.title}"
        where = f"{stage or before.label}{' in the other report' if other_report else ''}"
        change = compare_launches(*((one.label, one.analysis.traced, one.timing) for one in (before, page)))
        found.append(("comparison", f"Against {where}", change))
    if page.record is not None and page.problem is not None:
        model = declared_traffic.model(page.record.stage, page.problem, page.analysis.traced)
        found.append(("traffic", "Traffic, predicted and measured", model))
        patterns = declared_traffic.access_patterns(page.record.stage, page.problem)
        if patterns is not None and not patterns.describes(page.analysis.profile.launch):
            patterns = None
        found.append(("access_pattern", "How a warp touches memory", patterns))
    if page.analysis.profile.metrics:
        found.append(("raw_metrics", "Raw metrics", page.analysis.profile.metrics))
    return [item for item in found if item[2] is not None]


def _metric_rows(profile: KernelProfile) -> list[tuple[str, str, str, str]]:
    """Name, value, unit and the cell's style of every metric, by name."""
    return [
        (name, raw_value(value), profile.units.get(name, ""), "wrap" if isinstance(value, str) else "n")
        for name, value in sorted(profile.metrics.items())
    ]
