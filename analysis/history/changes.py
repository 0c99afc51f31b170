"""Steps of a history, each with what changed with it: code, tools, clocks, counters, or nothing known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from statistics import median

from gemmprof.analysis.history.changepoints import Step, find_steps
from gemmprof.analysis.history.points import Point

CLOCK_RESOLUTION_NS = 32.0
"""ncu's durations are multiples of this."""

COUNTER_CHANGE = 0.01
"""A counter that moved less than this share is the same work."""


@dataclass(frozen=True, slots=True)
class Change:
    """A step in one series.

    Attributes:
        before, after: the last point before the step and the first behind it.
        step: position, ratio and noise.
        causes: what changed with it, of ``code``, ``tools``, ``clocks``, ``counters``; ``("noise",)`` where nothing
            that was recorded did.
        details: one sentence a cause.
    """

    before: Point
    after: Point
    step: Step
    causes: tuple[str, ...]
    details: tuple[str, ...]

    @property
    def is_slower(self) -> bool:
        """Whether the kernel takes longer since."""
        return self.step.ratio > 1


def changes(series: Sequence[Point]) -> tuple[Change, ...]:
    """The steps of one series, oldest first. The points stand in the order of their recording."""
    resolution = CLOCK_RESOLUTION_NS if series and series[0].kind == "profiled" else 0.0
    steps = find_steps([point.time_ns for point in series], resolution=resolution)
    edges = [0, *(step.position for step in steps), len(series)]
    return tuple(
        _classified(series[edges[i] : edges[i + 1]], series[edges[i + 1] : edges[i + 2]], step)
        for i, step in enumerate(steps)
    )


def _classified(before: Sequence[Point], after: Sequence[Point], step: Step) -> Change:
    found: list[tuple[str, str]] = []
    code = _mode(p.code for p in before if p.code), _mode(p.code for p in after if p.code)
    if all(code) and code[0] != code[1]:
        commit = after[0].origin.commit
        found.append(("code", "the instructions differ" + (f", since commit {commit}" if commit else "")))
    tools = _mode(p.tools for p in before if p.tools), _mode(p.tools for p in after if p.tools)
    if all(tools) and tools[0] != tools[1]:
        found.append(("tools", f"{tools[0]} became {tools[1]}"))
    if sentence := _clocks(before, after, step):
        found.append(("clocks", sentence))
    if moved := _counters(before, after):
        found.append(("counters", "; ".join(moved[:3])))
    if not found:
        found.append(("noise", "nothing that was recorded changed with it"))
    return Change(before[-1], after[0], step, tuple(c for c, _ in found), tuple(d for _, d in found))


def _clocks(before: Sequence[Point], after: Sequence[Point], step: Step) -> str:
    """Whether the time moved and the cycles did not, or the clock moved as much as the time."""
    for name in ("sm_clock_hz", "memory_clock_hz"):
        left, right = _median(before, name), _median(after, name)
        if not left or not right:
            continue
        # A clock that fell by a third of what the time rose explains a good part of it.
        explained = -log(right / left) / log(step.ratio) if step.ratio != 1 else 0.0
        if abs(right / left - 1) > 2 * step.noise and 0.33 < explained < 3:
            what = "SM clock" if name == "sm_clock_hz" else "memory clock"
            return f"{what} {left / 1e6:,.0f} MHz became {right / 1e6:,.0f} MHz"
    return ""


def _counters(before: Sequence[Point], after: Sequence[Point]) -> list[str]:
    """Counters whose medians differ by more than they vary, largest change first."""
    moved: list[tuple[float, str]] = []
    for name in sorted({key for point in (*before, *after) for key in point.counters}):
        left = [point.counters[name] for point in before if name in point.counters]
        right = [point.counters[name] for point in after if name in point.counters]
        if not left or not right:
            continue
        was, now = median(left), median(right)
        size = abs(now - was) / max(abs(was), abs(now)) if was != now else 0.0
        own = max(_spread(left), _spread(right))
        if size > COUNTER_CHANGE and abs(now - was) > 3 * own:
            moved.append((size, f"{name.replace('_', ' ')} {was:,.4g} became {now:,.4g}"))
    return [sentence for _, sentence in sorted(moved, key=lambda item: -item[0])]


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return median([abs(value - middle) for value in values])


def _median(series: Sequence[Point], name: str) -> float | None:
    known = [value for point in series if (value := getattr(point, name)) is not None]
    return median(known) if known else None


def _mode(values: Iterable[str]) -> str:
    counted = Counter(values)
    return counted.most_common(1)[0][0] if counted else ""
