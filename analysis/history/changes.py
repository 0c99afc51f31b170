"""Steps of a history, each with what changed with it: code, tools, clocks, counters, or nothing known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import log

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.history import changepoints
from gemmprof.base.amounts import number

Numbers = npt.NDArray[np.float64]

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


# --- Steps ------------------------------------------------------------------------------------------------------------


CLOCKS = ("sm_clock_hz", "memory_clock_hz")
TEXTS = ("code", "tools")

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


def steps_in(times_ns: Sequence[float] | Numbers, kind: str) -> tuple[changepoints.Step, ...]:
    """The steps in the times of one series, which are of this kind (`Point`)."""
    return changepoints.find_steps(times_ns, resolution=CLOCK_RESOLUTION_NS if kind == "profiled" else 0.0)


def changes(points: Sequence[Point], steps: Sequence[changepoints.Step] | None = None) -> tuple[Change, ...]:
    """The steps of one series, whose points are sorted by time; ``steps`` are those, if they were found before."""
    if steps is None:
        steps = steps_in([point.time_ns for point in points], points[0].kind)
    names = sorted({name for point in points for name in point.counters})
    edges = [0, *(step.position for step in steps), len(points)]
    levels = [_level(points[start:stop], names) for start, stop in pairwise(edges)]
    return tuple(
        _classified(names, before, after, step, points[step.position - 1], points[step.position])
        for step, (before, after) in zip(steps, pairwise(levels), strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """What is typical between two steps."""

    texts: dict[str, str]  # for each of `TEXTS` the most frequent one, '' without any
    # typical, spread: for each clock and counter its median, and the median distance from it; NaN without any
    typical: Numbers
    spread: Numbers


def _level(points: Sequence[Point], counters: Sequence[str]) -> _Level:
    # What was not recorded is None, which becomes NaN.
    rows = np.array(
        [[*(getattr(one, name) for name in CLOCKS), *map(one.counters.get, counters)] for one in points],
        np.float64,
    )
    typical = changepoints.medians(rows)
    counted = {name: Counter(filter(None, (getattr(one, name) for one in points))) for name in TEXTS}
    texts = {name: max(of, key=of.__getitem__, default="") for name, of in counted.items()}
    return _Level(texts, typical, changepoints.medians(np.abs(rows - typical)))


def _classified(
    counters: Sequence[str], before: _Level, after: _Level, step: changepoints.Step, last: Point, first: Point
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
    if moved := _counters(counters, before, after):
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
    titles = {at: names[at - len(CLOCKS)].replace("_", " ") for at in chosen}
    return [f"{title} {number(was[at])} became {number(now[at])}" for at, title in titles.items()]
