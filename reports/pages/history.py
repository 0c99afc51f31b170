"""The page of `gemmprof history show -o FILE.html`: a picture a kernel, and its steps in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from gemmprof.analysis.history.changepoints import Level, levels
from gemmprof.analysis.history.changes import Change
from gemmprof.analysis.history.points import Point
from gemmprof.analysis.inputs.names import labels
from gemmprof.base.output import new_file
from gemmprof.reports.figures.history_plot import HistoryDrawing, history_drawing
from gemmprof.reports.formatting import counted, grid, nanoseconds
from gemmprof.reports.pages.environment import document, filled

MOST_SERIES = 60  # pictures on one page; a phone does not take more


@dataclass(frozen=True, slots=True)
class SeriesCard:
    """One kernel of the page; names, commits and details are untrusted text.

    Attributes:
        label, name: shortened and full name of the kernel.
        facts: grid, card, kind of time, runs.
        drawing: the picture.
        steps: the steps, newest first, each with the levels before and after.
        summary: the picture in words.
    """

    label: str
    name: str
    facts: str
    drawing: HistoryDrawing
    steps: tuple[tuple[Change, Level, Level], ...]
    summary: str


def page_html(shown: Sequence[tuple[Sequence[Point], Sequence[Change]]]) -> str:
    """The whole page; it works from a file, without a network."""
    told = labels(series[0].kernel for series, _ in shown)
    cards = [_card(series, found, told) for series, found in shown[:MOST_SERIES]]
    title = cards[0].label if len(cards) == 1 else f"{len(shown)} kernels over time"
    article = filled("history.html", cards=cards, title=title, left_out=len(shown) - len(cards))
    return document(f"{title} – history", [article], scripts=("history.js",))


def write_history_page(shown: Sequence[tuple[Sequence[Point], Sequence[Change]]], path: Path) -> Path:
    """Write the page."""
    with new_file(path) as temporary:
        temporary.write_text(page_html(shown), encoding="utf-8")
    return path


def _card(series: Sequence[Point], found: Sequence[Change], told: Mapping[str, str]) -> SeriesCard:
    first, last = series[0], series[-1]
    drawing = history_drawing(series, found)
    _, flat = levels([point.time_ns for point in series], [change.step for change in found])
    dates = f"{first.origin.recorded_at:%Y-%m-%d} to {last.origin.recorded_at:%Y-%m-%d}"
    steps = "no step" if not found else f"{len(found)} step{'s' if len(found) > 1 else ''}"
    return SeriesCard(
        label=told[first.kernel],
        name=first.kernel,
        facts=" · ".join(
            text
            for text in (
                f"grid {grid(first.grid)}" if first.grid else "",
                first.device,
                "under the profiler" if first.kind == "profiled" else "timed without profiler",
                f"{counted(len(series), 'run')}, {dates}",
            )
            if text
        ),
        drawing=drawing,
        steps=tuple((change, *sides) for change, sides in zip(found, pairwise(flat), strict=True))[::-1],
        summary=f"{nanoseconds(last.time_ns)} in the last run; {steps}; noise of one run {100 * drawing.noise:.1f} %",
    )
