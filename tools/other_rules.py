"""How others decide whether two sets of times differ: nvbench, Welch, Mann and Whitney; for a table beside our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

LEVEL = 0.01
"""At which the two tests reject."""
GAP = 0.005
"""nvbench's ``clear_gap_relative`` by default."""


def nvbench(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the intervals from minimum to third quartile lie apart by 0.5 %.

    That is ``compare_intervals_for_clear_gap`` of ``nvbench-compare-robust`` (July 2026). It confirms a gap in cycles,
    too; the clock of the recorded collections did not move, so that it changes nothing here.
    """
    lows, highs = zip(*((min(side), _third_quartile(side)) for side in (before, after)), strict=True)
    return max(lows[1] / highs[0], lows[0] / highs[1]) - 1 >= GAP


def _third_quartile(values: Sequence[float]) -> float:
    # Its percentile_rank: rounded half up.
    return sorted(values)[(75 * (len(values) - 1) + 50) // 100]


def welch(before: Sequence[float], after: Sequence[float]) -> bool:
    """Welch's t test of the logarithms, two-sided."""
    logs = [np.log(side) for side in (before, after)]
    parts = [side.var(ddof=1) / len(side) for side in logs]
    error = math.sqrt(sum(parts))
    if not error:
        return bool(logs[0][0] != logs[1][0])
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, logs, strict=True))
    return _t_tail(abs(logs[1].mean() - logs[0].mean()) / error, freedom) < LEVEL


def _t_tail(value: float, freedom: float) -> float:
    """P(|T| > value), by integration over the angle: x = tan(a) √freedom leaves a cosine to a power."""
    angles = np.linspace(0, math.pi / 2, 20001)[:-1]
    density = np.cos(angles) ** (freedom - 1)
    beyond = density[angles > math.atan(value / math.sqrt(freedom))]
    return float(beyond.sum() / density.sum())


def mann_whitney(before: Sequence[float], after: Sequence[float]) -> bool:
    """Mann and Whitney's test, two-sided, exact (ties count half). Of three values a side it never rejects."""
    above = sum((b > a) + 0.5 * (b == a) for a in before for b in after)
    extreme = min(above, len(before) * len(after) - above)
    counts = _arrangements(len(before), len(after))
    return 2 * sum(counts[: math.floor(extreme) + 1]) / sum(counts) < LEVEL


@cache
def _arrangements(first: int, second: int) -> tuple[int, ...]:
    """In how many orders of so many values of two sides so many of one side lie above so many of the other."""
    if not first or not second:
        return (1,)
    found = [0] * (first * second + 1)
    for at, count in enumerate(_arrangements(first - 1, second)):
        found[at + second] += count
    for at, count in enumerate(_arrangements(first, second - 1)):
        found[at] += count
    return tuple(found)
