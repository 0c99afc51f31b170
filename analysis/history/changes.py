"""Steps of a history, each with what changed with it: code, tools, clocks, counters, or nothing known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import log

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.history import changepoints
from gemmprof.base.amounts import number

# --- Points -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a run was made, as its recorder says."""

    recorded_at: datetime  # when, with its time zone
    # commit, branch, machine, note: free text; '' if not given
    commit: str = ""
    branch: str = ""
    machine: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel in one run. Times in nanoseconds, clocks in hertz; None where the run does not say."""

    kernel: str  # full demangled name, or stage and problem; untrusted text
    grid: str  # ``64x64x1``; '' for a stage
    device: str  # name of the card, and of the machine where that is known
    kind: str  # ``timed`` by gemmprof, or ``profiled`` by ncu; never mixed in one series
    origin: Origin
    time_ns: float  # the median of the repetitions
    # low_ns, high_ns: the shortest and the longest repetition
    low_ns: float
    high_ns: float
    repetitions: int
    cycles: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    tools: str = ""
    code: str = ""  # fingerprint of the kernel's instructions, '' where the report does not hold them
    # what its findings say their fixes would save, as `recording` writes it; '' without
    predictions: str = ""
    # by name of `analysis.history.recording.COUNTERS`
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def series(self) -> tuple[str, str, str, str]:
        """What must be equal for two points to be of one series."""
        return (self.kernel, self.grid, self.device, self.kind)


# --- A series ---------------------------------------------------------------------------------------------------------


CLOCKS = ("sm_clock_hz", "memory_clock_hz")
TEXTS = ("code", "tools")


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one series, oldest first."""

    is_profiled: bool  # whether the times were measured under the profiler
    time_ns: npt.NDArray[np.float64]  # one a point
    names: tuple[str, ...]  # of the columns of ``numbers``: `CLOCKS` and the counters
    numbers: npt.NDArray[np.float64]  # one row a point, NaN where it was not recorded
    texts: dict[str, Sequence[str]]  # for each of `TEXTS` one text a point, '' where it was not recorded
    point: Callable[[int], Point]  # the whole point at a position
    number: int = 0  # by which a store knows the series, 0 where there is none


CLOCK_RESOLUTION_NS = 32.0  # ncu's durations are multiples of this

COUNTER_CHANGE = 0.01  # a counter that moved less than this share is the same work


@dataclass(frozen=True, slots=True)
class Change:
    """A step in one series."""

    # before, after: the last point before the step and the first behind it
    before: Point
    after: Point
    step: changepoints.Step  # position, ratio and noise
    # what changed with it, of ``code``, ``tools``, ``clocks``, ``counters``; ``("unknown",)`` where nothing that was
    # recorded did
    causes: tuple[str, ...]
    details: tuple[str, ...]  # one sentence a cause

    @property
    def is_slower(self) -> bool:
        """Whether the kernel takes longer since."""
        return self.step.ratio > 1


def changes(series: Series, steps: Sequence[changepoints.Step] | None = None) -> tuple[Change, ...]:
    """The steps of one series, oldest first; ``steps`` are those of the same times, if they were found before."""
    if steps is None:
        steps = changepoints.find_steps(
            series.time_ns, resolution=CLOCK_RESOLUTION_NS if series.is_profiled else 0.0
        )
    edges = [0, *(step.position for step in steps), len(series.time_ns)]
    levels = [_level(series, start, stop) for start, stop in pairwise(edges)]
    return tuple(
        _classified(
            series.names, before, after, step, series.point(step.position - 1), series.point(step.position)
        )
        for step, (before, after) in zip(steps, pairwise(levels), strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """What is typical between two steps."""

    texts: dict[str, str]  # for each of `TEXTS` the most frequent one, '' without any
    # typical, spread: for each number its median, and the median distance from it; NaN without any
    typical: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]


def _level(series: Series, start: int, stop: int) -> _Level:
    rows = series.numbers[start:stop]
    typical = changepoints.medians(rows)
    counted = {name: Counter(filter(None, series.texts[name][start:stop])) for name in TEXTS}
    texts = {name: max(of, key=of.__getitem__, default="") for name, of in counted.items()}
    return _Level(texts, typical, changepoints.medians(np.abs(rows - typical)))


def _classified(
    names: Sequence[str], before: _Level, after: _Level, step: changepoints.Step, last: Point, first: Point
) -> Change:
    found: list[tuple[str, str]] = []
    code = before.texts["code"], after.texts["code"]
    if all(code) and code[0] != code[1]:
        commit = first.origin.commit
        found.append(("code", "the instructions differ" + (f", since commit {commit}" if commit else "")))
    tools = before.texts["tools"], after.texts["tools"]
    if all(tools) and tools[0] != tools[1]:
        found.append(("tools", f"{tools[0]} became {tools[1]}"))
    if sentence := _clocks(before, after, step):
        found.append(("clocks", sentence))
    if moved := _counters(names, before, after):
        found.append(("counters", "; ".join(moved[:3])))
    if not found:
        # The runs behind the step repeat it: whatever it is, it is no noise.
        found.append(("unknown", "nothing that was recorded changed with it, and it stayed"))
    return Change(last, first, step, tuple(c for c, _ in found), tuple(d for _, d in found))


def _clocks(before: _Level, after: _Level, step: changepoints.Step) -> str:
    """Whether the time moved and the cycles did not, or the clock moved as much as the time."""
    for what, left, right in zip(("SM clock", "memory clock"), before.typical, after.typical, strict=False):
        if not (left > 0 and right > 0):
            continue
        # A clock that fell by a third of what the time rose explains a good part of it.
        explained = -log(right / left) / log(step.ratio) if step.ratio != 1 else 0.0
        if abs(right / left - 1) > 2 * step.noise and 0.33 < explained < 3:
            return f"{what} {left / 1e6:,.0f} MHz became {right / 1e6:,.0f} MHz"
    return ""


def _counters(names: Sequence[str], before: _Level, after: _Level) -> list[str]:
    """Counters whose medians differ by more than they vary, largest change first."""
    was, now = before.typical, after.typical
    own = np.maximum(before.spread, after.spread)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.abs(now - was) / np.maximum(np.abs(was), np.abs(now))
        moved = np.flatnonzero((size > COUNTER_CHANGE) & (np.abs(now - was) > 3 * own))
    chosen = sorted((at for at in moved.tolist() if at >= len(CLOCKS)), key=lambda at: -size[at])
    return [f"{names[at].replace('_', ' ')} {number(was[at])} became {number(now[at])}" for at in chosen]


# --- Many series ------------------------------------------------------------------------------------------------------
# Which of many series hold a step: a quick look at all of them, then the whole search where the look is not sure.


AT_A_TIME = 256  # series that are looked at together: so many years of runs fit a processor's cache


@dataclass(frozen=True, slots=True)
class Times:
    """The times of many series, one after the other, each in order of time."""

    numbers: npt.NDArray[np.int64]  # by which the store knows each series
    counts: npt.NDArray[np.int64]  # how many times each has
    values: npt.NDArray[np.float64]  # all times, nanoseconds
    profiled: Sequence[bool]  # whether each was measured under the profiler


def series_with_steps(times: Times, last: int | None = None) -> dict[int, tuple[changepoints.Step, ...]]:
    """The series that hold a step: their numbers, rising, and all their steps.

    Args:
        last: only steps within so many last runs.
    """
    starts = np.cumsum(times.counts) - times.counts
    found = {}
    for at in _not_quiet(times, starts):
        values = times.values[starts[at] : starts[at] + times.counts[at]]
        steps = changepoints.find_steps(values, resolution=CLOCK_RESOLUTION_NS if times.profiled[at] else 0.0)
        if any(last is None or len(values) - step.position <= last for step in steps):
            found[int(times.numbers[at])] = steps
    return found


def _not_quiet(times: Times, starts: npt.NDArray[np.int64]) -> list[int]:
    """Positions of the series that the quick look does not call quiet."""

    def look(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        length = int(times.counts[rows[0]])
        if rows[-1] - rows[0] == len(rows) - 1:  # side by side, as they mostly are: nothing is copied
            together = times.values[starts[rows[0]] : starts[rows[0]] + len(rows) * length]
            matrix = together.reshape(len(rows), length)
        else:
            matrix = times.values[starts[rows][:, None] + np.arange(length)]
        with np.errstate(invalid="ignore", divide="ignore"):
            quiet = changepoints.quiet_series(matrix)
        return rows[~quiet]

    # numpy lets other threads run while it computes.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        loud = list(threads.map(look, _of_equal_length(times.counts)))
    return sorted(int(at) for rows in loud for at in rows)


def _of_equal_length(counts: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of series with equally many times, a few at a time; those too short for a step are left out."""
    for length in np.unique(counts[counts >= changepoints.MINIMUM_BEFORE + changepoints.MINIMUM_AFTER]):
        rows = np.flatnonzero(counts == length)
        for first in range(0, len(rows), AT_A_TIME):
            yield rows[first : first + AT_A_TIME]
