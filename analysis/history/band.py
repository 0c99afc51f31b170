"""The level between the steps of a series, and how far a run may lie from it and mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from gemmprof.analysis.history.changepoints import NOISE_FLOOR, Step, noise_scale

# Noise scales from a level to the edge of its band: 95 in 100 runs lie within, where noise is normal.
WIDTH = 2.0


@dataclass(frozen=True, slots=True)
class Level:
    """Runs from ``start`` to before ``stop``, their median time, and the band around it; nanoseconds."""

    start: int
    stop: int
    time_ns: float
    low_ns: float
    high_ns: float


def levels(times_ns: Sequence[float], steps: Sequence[Step]) -> tuple[float, tuple[Level, ...]]:
    """The relative noise of one run (one standard deviation), and the levels between the steps, oldest first."""
    import numpy as np

    known = np.asarray([time for time in times_ns if time > 0], dtype=np.float64)
    noise = max(noise_scale(np.log(known)), NOISE_FLOOR)
    edges = [0, *(step.position for step in steps), len(times_ns)]
    found = []
    for start, stop in pairwise(edges):
        level = median(times_ns[start:stop])
        found.append(Level(start, stop, level, level * (1 - WIDTH * noise), level * (1 + WIDTH * noise)))
    return noise, tuple(found)
