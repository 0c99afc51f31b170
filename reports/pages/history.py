"""The page of `gemmprof history show -o FILE.html`: a picture a kernel, and its steps in words.

A picture shows every run, the level between steps, the noise around it, and the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

from gemmprof.analysis.history.changes import Change, Level, Point, levels
from gemmprof.analysis.inputs.names import labels
from gemmprof.reports.figures.svg import drawing
from gemmprof.reports.formatting import counted, nanoseconds
from gemmprof.reports.pages.environment import document, filled

MOST_SERIES = 60  # pictures on one page; a phone does not take more
MOST_LINES = 6  # lines of the grid across; about as many marks stand below


def page_html(shown: Sequence[tuple[Sequence[Point], Sequence[Change]]]) -> str:
    """The whole page; it works from a file, without a network."""
    told = labels(series[0].kernel for series, _ in shown)
    cards = [Card(told[series[0].kernel], series, found) for series, found in shown[:MOST_SERIES]]
    title = cards[0].label if len(cards) == 1 else f"{len(shown)} kernels over time"
    left_out = len(shown) - len(cards)
    article = filled("history.html", cards=cards, title=title, left_out=left_out, run_words=run_words)
    return document(f"{title} – history", [article], scripts=("history.js",))


@dataclass(frozen=True)
class Card:
    """One kernel of the page: shortened name, runs, steps, and where its picture shows them. Texts are untrusted."""

    label: str
    series: Sequence[Point]
    changes: Sequence[Change]
    width, height = 920.0, 286.0  # of the picture, and the edges of its axes
    left, right, top, bottom = 74.0, 906.0, 26.0, 242.0

    @cached_property
    def _levels(self) -> tuple[float, tuple[Level, ...]]:
        return levels([run.time_ns for run in self.series], [change.step for change in self.changes])

    @property
    def levels(self) -> tuple[Level, ...]:
        """Between the steps."""
        return self._levels[1]

    @property
    def steps(self) -> list[tuple[Change, Level, Level]]:
        """The steps, newest first, each with the levels before and after."""
        found = zip(self.changes, pairwise(self.levels), strict=True)
        return [(change, *sides) for change, sides in found][::-1]

    @property
    def facts(self) -> str:
        """Grid, card, kind of time, runs."""
        first, last = self.series[0], self.series[-1]
        facts = (
            f"grid {first.grid}" if first.grid else "",
            first.device,
            "under the profiler" if first.kind == "profiled" else "timed without profiler",
            f"{counted(len(self.series), 'run')}, {first.origin.recorded_at:%Y-%m-%d} to "
            f"{last.origin.recorded_at:%Y-%m-%d}",
        )
        return " · ".join(filter(None, facts))

    @property
    def summary(self) -> str:
        """The picture in words."""
        steps = counted(len(self.changes), "step") if self.changes else "no step"
        last = nanoseconds(self.series[-1].time_ns)
        return f"{last} in the last run; {steps}; noise of one run {100 * self._levels[0]:.1f} %"

    @cached_property
    def _span(self) -> tuple[datetime, datetime, float, float]:
        """What the axes hold: the first and the last date, the shortest and the longest time."""
        first, last = (self.series[at].origin.recorded_at for at in (0, -1))
        times = [run.time_ns for run in self.series]
        bounds = [bound for level in self.levels for bound in (level.low_ns, level.high_ns)]
        return first, max(last, first + timedelta(seconds=1)), min(*times, *bounds), max(*times, *bounds)

    def x(self, when: datetime) -> float:
        """Where a date stands."""
        first, last, _, _ = self._span
        return self.left + 8 + (when - first) / (last - first) * (self.right - self.left - 16)

    def y(self, time_ns: float) -> float:
        """Where a time stands."""
        _, _, low, high = self._span
        return self.top + (high - time_ns) / (high - low) * (self.bottom - self.top)

    @property
    def commits(self) -> Iterator[tuple[datetime, str]]:
        """The commits of the first and the last run and behind each step, where they stand apart; below the dates."""
        first, last, _, _ = self._span
        before: datetime | None = None
        for run in (self.series[0], *(change.after for change in self.changes), self.series[-1]):
            when = run.origin.recorded_at
            if run.origin.commit and (before is None or (when - before) / (last - first) > 0.12):
                before = when
                yield when, run.origin.commit[:12]

    @property
    def times(self) -> list[tuple[float, str]]:
        """A few round times, in one unit and with equally many digits."""
        with drawing():  # without a rc file of somebody's
            from matplotlib.ticker import MaxNLocator

        _, _, low, high = self._span
        units = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))
        unit, size = next(((unit, size) for unit, size in units if high >= size), ("ns", 1.0))
        ticks = MaxNLocator(MOST_LINES, steps=[1, 2, 2.5, 5, 10]).tick_values(low / size, high / size)
        digits = max(len(f"{at:.10g}".partition(".")[2]) for at in ticks)
        return [(at * size, f"{at:,.{digits}f} {unit}") for at in ticks if low < at * size <= high]

    @property
    def dates(self) -> list[tuple[datetime, str]]:
        """Beginnings of months, days or hours, a few of them, with their words."""
        with drawing():
            import matplotlib.dates

        dates: Any = matplotlib.dates
        first, last, _, _ = self._span
        locator = dates.AutoDateLocator(tz=UTC, minticks=2, maxticks=MOST_LINES + 1)
        words = dates.AutoDateFormatter(locator, tz=UTC)
        marks = [(dates.num2date(at, UTC), words(at)) for at in locator.tick_values(first, last)]
        found = [(when, text) for when, text in marks if first <= when <= last]
        # Runs of one hour or day may have no round time between them: the axis then names its ends.
        return found if len(found) > 1 else [(when, f"{when:%b %d %H:%M}") for when in (first, last)]


def run_words(point: Point) -> str:
    """One run in a line: when, how long, from what to what, which commit, on what machine."""
    origin = point.origin
    text = f"{origin.recorded_at:%Y-%m-%d %H:%M}: {nanoseconds(point.time_ns)}"
    if point.repetitions > 1:
        span = f"{nanoseconds(point.low_ns)} to {nanoseconds(point.high_ns)}"
        text += f" ({span}, {point.repetitions} repetitions)"
    named = (("commit", origin.commit), ("on", origin.machine), ("", origin.note))
    return text + "".join(f", {word} {value}".replace("  ", " ") for word, value in named if value)
