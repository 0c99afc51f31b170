"""How much launches of a kernel usually differ, by what kind of kernel it is: learnt from repeated collections."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noise:
    """What is usual for a class of kernels, as parts of the time (0.01 is 1 %).

    Attributes:
        name: the class, for people: ``5 µs to 50 µs, memory``.
        within: standard deviation of launches within one process.
        freedom: how many launches of one's own weigh as much as the class's word on `within`.
        between_floor: standard deviation of whole processes, however steady their launches are.
        between_share: standard deviation of whole processes as a part of that within them.
        between_freedom: degrees of freedom of the latter two: how far kernels of one class differ in them.
        kernels: how many kernels the class was learnt from.
    """

    name: str
    within: float
    freedom: float
    between_floor: float
    between_share: float
    between_freedom: float
    kernels: int = 0

    def between(self, variance: float) -> float:
        """Variance of whole processes of a kernel whose launches have this variance within one."""
        return self.between_floor**2 + self.between_share**2 * variance


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """Classes of kernels by duration and limit, and how whole processes differ.

    Attributes:
        source: what the classes were learnt from.
        within: (upper end of the duration in ns, limit) to (standard deviation, kernels); the limit is ``memory``,
            ``compute`` or ``latency``, '' for any.
        freedom, between_floor, between_share, between_freedom: see `Noise`; one figure for all classes.
    """

    source: str
    within: Mapping[tuple[float, str], tuple[float, int]]
    freedom: float
    between_floor: float
    between_share: float
    between_freedom: float

    def of(self, nanoseconds: float, limit: str = "") -> Noise:
        """What is usual for a kernel of this duration whose limit is this ('' if unknown)."""
        ends = sorted({end for end, _ in self.within})
        end = next((end for end in ends if nanoseconds <= end), ends[-1])
        kind = limit if (end, limit) in self.within else ""
        within, kernels = self.within[end, kind]
        start = max((other for other in ends if other < end), default=0.0)
        return Noise(
            _class_name(start, end, kind),
            within,
            self.freedom,
            self.between_floor,
            self.between_share,
            self.between_freedom,
            kernels,
        )


BUSY_PERCENT = 60.0
"""Below this, neither compute nor memory is what limits (as in ncu's rule SOLBottleneck)."""


def limit_of(compute: float, memory: float) -> str:
    """The coarse limit that a class is told by, from the two throughputs in per cent of peak."""
    if max(compute, memory) < BUSY_PERCENT:
        return "latency"
    return "compute" if compute > memory else "memory"


def _class_name(start: float, end: float, limit: str) -> str:
    if not start:
        span = f"up to {_duration(end)}"
    elif math.isinf(end):
        span = f"over {_duration(start)}"
    else:
        span = f"{_duration(start)} to {_duration(end)}"
    return f"{span}, limited by {limit}" if limit else span


def _duration(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:g} ms" if nanoseconds >= 1e6 else f"{nanoseconds / 1e3:g} µs"
