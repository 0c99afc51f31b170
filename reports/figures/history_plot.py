"""A kernel's times over its history: every run, the level between steps, the noise around it, and the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import floor, log10
from pathlib import Path
from statistics import median
from typing import Any

from gemmprof.analysis.history.changepoints import levels
from gemmprof.analysis.history.changes import Change
from gemmprof.analysis.history.points import Point
from gemmprof.analysis.inputs.names import label
from gemmprof.base.printable import visible
from gemmprof.reports.figures.svg import drawing
from gemmprof.reports.formatting import fit, nanoseconds


def draw_history(shown: Sequence[tuple[Sequence[Point], Sequence[Change]]], target: Path) -> None:
    """Draw one panel a series into a .png, .svg or .pdf file."""
    with drawing():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 2.6 * len(shown)), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for axes, (series, found) in zip(panels, shown, strict=True):
            _panel(axes, series, found)
        figure.savefig(target)


def _panel(axes: Any, series: Sequence[Point], found: Sequence[Change]) -> None:
    unit, scale = _unit(series)
    values = [point.time_ns / scale for point in series]
    dates = [point.origin.recorded_at for point in series]
    axes.plot(dates, values, ".", markersize=4)
    _, between = levels([point.time_ns for point in series], [change.step for change in found])
    for level in between:
        span = [dates[level.start], dates[level.stop - 1]]
        axes.plot(span, [level.time_ns / scale] * 2, "-", linewidth=1.5)
        low, high = level.low_ns / scale, level.high_ns / scale
        axes.fill_between(span, [low, low], [high, high], alpha=0.15, linewidth=0)
    for change in found:
        axes.axvline(change.after.origin.recorded_at, linestyle="--", linewidth=1)
        words = f"{100 * (change.step.ratio - 1):+.1f} % {', '.join(change.causes)}"
        axes.annotate(
            words,
            (change.after.origin.recorded_at, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -10),
            textcoords="offset points",
            fontsize=8,
        )
    first = series[0]
    axes.set_title(
        visible(f"{fit(label(first.kernel))} {first.grid}, {first.device}, {first.kind}"), fontsize=9
    )
    axes.set_ylabel(unit)


def _unit(series: Sequence[Point]) -> tuple[str, float]:
    typical = median(point.time_ns for point in series)
    return next(((u, s) for u, s in (("ms", 1e6), ("µs", 1e3)) if typical >= s), ("ns", 1.0))


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
        Dot(
            x(p.origin.recorded_at),
            y(p.time_ns),
            run_words(p),
            not level.low_ns <= p.time_ns <= level.high_ns,
        )
        for level in between
        for p in series[level.start : level.stop]
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
        text += (
            f" ({nanoseconds(point.low_ns)} to {nanoseconds(point.high_ns)}, {point.repetitions} repetitions)"
        )
    named = (("commit", origin.commit), ("on", origin.machine), ("", origin.note))
    return text + "".join(f", {word} {value}".replace("  ", " ") for word, value in named if value)


def _round_times(low: float, high: float) -> list[tuple[float, str]]:
    """A few round times between two others, in one unit and with equally many digits."""
    raw = (high - low) / MOST_LINES
    power = 10.0 ** floor(log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)
    unit, size = next(((u, n) for u, n in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if high >= n), ("ns", 1.0))
    digits = next(d for d in range(12) if abs(round(step / size, d) * size - step) < 1e-6 * step)
    places = range(floor(low / step) + 1, floor(high / step) + 1)
    return [(at * step, f"{at * step / size:,.{digits}f} {unit}") for at in places]


def _dates(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Beginnings of months, days or hours, a few of them, with their words."""
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    days = (last - first) / timedelta(days=1)
    if days > 75:
        months = [first.year * 12 + first.month + at for at in range(int(days // 28) + 2)]
        every = -(-len(months) // (2 * MOST_LINES))
        starts = [
            datetime((m - 1) // 12, (m - 1) % 12 + 1, 1, tzinfo=UTC) for m in months if (m - 1) % every == 0
        ]
        words = "%b %Y" if every > 1 else "%b"
        marks = [
            (when, f"{when:%b %Y}" if when.month == 1 or when is starts[0] else f"{when:{words}}")
            for when in starts
        ]
    else:
        unit, words = (timedelta(days=1), "%b %d") if days > 2 else (timedelta(hours=1), "%b %d %H:%M")
        start = first.replace(minute=0, second=0, microsecond=0, hour=0 if days > 2 else first.hour)
        count = int((last - start) / unit) + 1
        every = max(1, -(-count // (MOST_LINES + 1)))
        marks = [(start + at * unit, f"{start + at * unit:{words}}") for at in range(0, count + 1, every)]
    found = [(when, text) for when, text in marks if first <= when <= last]
    # Runs of one hour or day may have no round time between them: the axis then names its ends.
    return found if len(found) > 1 else [(when, f"{when:%b %d %H:%M}") for when in (first, last)]
