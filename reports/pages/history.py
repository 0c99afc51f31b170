"""The page of `gemmprof history show -o FILE.html`: a picture a kernel, and its steps in words.

A picture shows every run, the level between steps, the noise around it, and the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from gemmprof.analysis.history.changepoints import Level, levels
from gemmprof.analysis.history.changes import Change, Point
from gemmprof.analysis.inputs.names import labels
from gemmprof.reports.figures.svg import drawing
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


def _card(series: Sequence[Point], found: Sequence[Change], told: Mapping[str, str]) -> SeriesCard:
    first, last = series[0], series[-1]
    picture = history_drawing(series, found)
    dates = f"{first.origin.recorded_at:%Y-%m-%d} to {last.origin.recorded_at:%Y-%m-%d}"
    steps = counted(len(found), "step") if found else "no step"
    facts = (
        f"grid {grid(first.grid)}" if first.grid else "",
        first.device,
        "under the profiler" if first.kind == "profiled" else "timed without profiler",
        f"{counted(len(series), 'run')}, {dates}",
    )
    return SeriesCard(
        label=told[first.kernel],
        name=first.kernel,
        facts=" · ".join(filter(None, facts)),
        drawing=picture,
        steps=tuple((change, *sides) for change, sides in zip(found, pairwise(picture.levels), strict=True))[
            ::-1
        ],
        summary=f"{nanoseconds(last.time_ns)} in the last run; {steps}; noise of one run {100 * picture.noise:.1f} %",
    )


WIDTH, HEIGHT = 920.0, 286.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 14.0, 26.0, 44.0
MOST_LINES = 6  # lines of the grid across; about as many marks stand below


@dataclass(frozen=True, slots=True)
class Dot:
    """One run: where, what it says, and whether it lies outside the band."""

    x: float
    y: float
    text: str
    outside: bool


@dataclass(frozen=True, slots=True)
class Span:
    """One level: from left to right, its height, and its band's."""

    left: float
    right: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A step, or a mark of an axis: where, and its words. ``flipped``: the words stand on the other side."""

    at: float
    text: str
    chip: str = ""
    flipped: bool = False


@dataclass(frozen=True, slots=True)
class HistoryDrawing:
    """Everything that the picture shows, in its own units."""

    dots: tuple[Dot, ...]
    spans: tuple[Span, ...]
    steps: tuple[Mark, ...]
    across: tuple[Mark, ...]
    up: tuple[Mark, ...]
    commits: tuple[Mark, ...]
    noise: float
    levels: Sequence[Level]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


def history_drawing(series: Sequence[Point], found: Sequence[Change]) -> HistoryDrawing:
    """The picture of one series with its steps."""
    noise, between = levels([point.time_ns for point in series], [change.step for change in found])
    dates = [point.origin.recorded_at for point in series]
    first, last = dates[0], max(dates[-1], dates[0] + timedelta(seconds=1))
    low = min(*(p.time_ns for p in series), *(level.low_ns for level in between))
    high = max(*(p.time_ns for p in series), *(level.high_ns for level in between))

    def x(when: datetime) -> float:
        return LEFT + 8 + (when - first) / (last - first) * (WIDTH - LEFT - RIGHT - 16)

    def y(time_ns: float) -> float:
        return TOP + (high - time_ns) / (high - low) * (HEIGHT - TOP - BOTTOM)

    dots = tuple(
        Dot(x(p.origin.recorded_at), y(p.time_ns), run_words(p), not v.low_ns <= p.time_ns <= v.high_ns)
        for v in between
        for p in series[v.start : v.stop]
    )
    spans = tuple(
        Span(x(dates[v.start]) - 4, x(dates[v.stop - 1]) + 4, y(v.time_ns), y(v.high_ns), y(v.low_ns))
        for v in between
    )
    steps = tuple(
        Mark(
            at := x(change.after.origin.recorded_at) - 4,
            f"{100 * (change.step.ratio - 1):+.1f} % {', '.join(change.causes)}",
            "bad" if change.is_slower else "good",
            at > 0.75 * WIDTH,
        )
        for change in found
    )
    return HistoryDrawing(
        dots,
        spans,
        steps,
        tuple(Mark(x(when), words) for when, words in _dates(first, last)),
        tuple(Mark(y(time_ns), text) for time_ns, text in _round_times(low, high)),
        tuple(Mark(x(when), words) for when, words in _commits(series, found)),
        noise,
        between,
    )


def _commits(series: Sequence[Point], found: Sequence[Change]) -> list[tuple[datetime, str]]:
    """The commits of the first and the last run and behind each step, where they stand apart; below the dates."""
    chosen = [series[0], *(change.after for change in found), series[-1]]
    span = max(series[-1].origin.recorded_at - series[0].origin.recorded_at, timedelta(seconds=1))
    marks: list[tuple[datetime, str]] = []
    for point in chosen:
        when = point.origin.recorded_at
        apart = not marks or (when - marks[-1][0]) / span > 0.12
        if point.origin.commit and apart:
            marks.append((when, point.origin.commit[:12]))
    return marks


def run_words(point: Point) -> str:
    """One run in a line: when, how long, from what to what, which commit, on what machine."""
    origin = point.origin
    text = f"{origin.recorded_at:%Y-%m-%d %H:%M}: {nanoseconds(point.time_ns)}"
    if point.repetitions > 1:
        span = f"{nanoseconds(point.low_ns)} to {nanoseconds(point.high_ns)}"
        text += f" ({span}, {point.repetitions} repetitions)"
    named = (("commit", origin.commit), ("on", origin.machine), ("", origin.note))
    return text + "".join(f", {word} {value}".replace("  ", " ") for word, value in named if value)


def _round_times(low: float, high: float) -> list[tuple[float, str]]:
    """A few round times between two others, in one unit and with equally many digits."""
    with drawing():  # without a rc file of somebody's
        from matplotlib.ticker import MaxNLocator

    unit, size = next(((u, n) for u, n in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if high >= n), ("ns", 1.0))
    ticks = MaxNLocator(MOST_LINES, steps=[1, 2, 2.5, 5, 10]).tick_values(low / size, high / size)
    digits = max(len(f"{at:.10g}".partition(".")[2]) for at in ticks)
    return [(at * size, f"{at:,.{digits}f} {unit}") for at in ticks if low < at * size <= high]


def _dates(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Beginnings of months, days or hours, a few of them, with their words."""
    with drawing():
        import matplotlib.dates

    dates: Any = matplotlib.dates
    locator = dates.AutoDateLocator(tz=UTC, minticks=2, maxticks=MOST_LINES + 1)
    words = dates.AutoDateFormatter(locator, tz=UTC)
    marks = [(dates.num2date(at, UTC), words(at)) for at in locator.tick_values(first, last)]
    found = [(when, text) for when, text in marks if first <= when <= last]
    # Runs of one hour or day may have no round time between them: the axis then names its ends.
    return found if len(found) > 1 else [(when, f"{when:%b %d %H:%M}") for when in (first, last)]
