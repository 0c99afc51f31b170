"""How much launches of a kernel usually differ, by how long it takes and what limits it: learnt from collections."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from gemmprof.base import amounts

REFERENCE_NS = 1e5  # duration at which `NoiseModel.middle` holds
# Standard deviations up to this are held possible where there are repetitions; more where those say so.
WIDEST = 0.15
# Standard deviations that are held possible: the answers change by less than 0.1 % with more of them.
POINTS = 25
# Chance that a kernel is like none of the recorded ones: as noisy as the noisiest of them, or beyond.
BACKGROUND = 0.03


# Launches of kernels below this scatter by what starting and ending one takes, which they mostly are: up to
# half a microsecond, in a long tail (fills of 1.4 to 2.3 µs in two recordings).
SHORT_NS = 5e3
# By so much the largest spread held possible of a short kernel exceeds that of the others.
LARGEST_OF_SHORT = 1.25


@dataclass(frozen=True, slots=True)
class Noise:
    """What is usual for a kernel, as parts of its time (0.01 is 1 %)."""

    name: str  # the kernels that it is usual for, for people: ``about 24 µs, limited by memory``
    middle: float  # standard deviation of launches within one process: as many kernels lie above it as below
    # natural logarithm of how many times as much or as little it is in a typical kernel of this kind
    factor: float
    # the largest that any recorded kernel has; with one launch a side nothing larger is held possible
    largest: float
    between_floor: float  # standard deviation of whole processes, however steady their launches are
    between_share: float  # standard deviation of whole processes as a part of that within them

    def between(self, variance: float, share: float | None = None) -> float:
        """Variance of whole processes of a kernel whose launches have this variance within one."""
        return self.between_floor**2 + (self.between_share if share is None else share) ** 2 * variance

    def spreads(self, squares: float, freedom: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Standard deviations that launches may have, and how likely each is.

        What is usual is one lognormal distribution with a flat background; repetitions of one's own, by the sum of
        their squared distances and its degrees of freedom, make some likelier (Bayes).
        """
        if freedom <= 0:
            return _usual(self.middle, self.factor, self.largest, self.largest)
        widest = WIDEST
        while widest < 2 * math.sqrt(squares / freedom):
            widest *= 2
        sigmas, usual = _usual(self.middle, self.factor, self.largest, widest)
        logs = [
            math.log(weight) - freedom * math.log(sigma) - squares / (2 * sigma * sigma)
            for sigma, weight in zip(sigmas, usual, strict=True)
        ]
        most = max(logs)
        weights = [math.exp(one - most) for one in logs]
        total = math.fsum(weights)
        return sigmas, tuple(weight / total for weight in weights)


@lru_cache(maxsize=4096)
def _usual(
    middle: float, factor: float, largest: float, widest: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What is usual before any repetition is seen: standard deviations on a logarithmic grid, and their weights."""
    centre = min(math.log(middle), math.log(largest) - 0.1)
    low = centre - 3 * factor
    high = math.log(widest)
    count = POINTS if widest == largest else round(POINTS * 1.6)
    logs = [low + (high - low) * step / (count - 1) for step in range(count)]
    usual = [math.exp(-0.5 * ((log - centre) / factor) ** 2) for log in logs]
    # The background lies where the noisiest kernels are: from half of the largest on.
    far = [1.0 if log > math.log(largest / 2) else 0.0 for log in logs]
    weights = [
        (1 - BACKGROUND) * one / math.fsum(usual) + BACKGROUND * other / math.fsum(far)
        for one, other in zip(usual, far, strict=True)
    ]
    return tuple(map(math.exp, logs)), tuple(weights)


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """What is usual, as a power of the duration times a factor for what limits the kernel; and between processes."""

    source: str  # what it was learnt from
    middle: float  # see `Noise`, of a kernel of `REFERENCE_NS`
    power: float  # of the duration: short kernels scatter more
    limits: Mapping[str, float]  # factor for ``memory``, ``compute`` or ``latency``
    # factor, largest, between_floor, between_share: see `Noise`; one figure for all kernels
    factor: float
    largest: float
    between_floor: float
    between_share: float

    def of(self, nanoseconds: float, limit: str = "") -> Noise:
        """What is usual for a kernel of this duration whose limit is this ('' if unknown)."""
        middle = self.middle * (nanoseconds / REFERENCE_NS) ** self.power * self.limits.get(limit, 1.0)
        name = f"about {amounts.nanoseconds(nanoseconds)}" + (
            f", limited by {limit}" if limit in self.limits else ""
        )
        largest = self.largest * (LARGEST_OF_SHORT if nanoseconds < SHORT_NS else 1.0)
        return Noise(name, middle, self.factor, largest, self.between_floor, self.between_share)


@cache
def usual_noise(timed: bool = False) -> NoiseModel:
    """What `tools/learn_noise.py` wrote: of times measured without the profiler, or of durations that ncu measured."""
    learnt = json.loads(Path(__file__).with_name("noise.json").read_text("utf-8"))
    return NoiseModel(**learnt["timed" if timed else "under_ncu"])


BUSY_PERCENT = 60.0  # below this, neither compute nor memory is what limits (as in ncu's rule SOLBottleneck)


def limit_of(compute: float | None, memory: float | None) -> str:
    """The coarse limit that tells kernels apart, from the two throughputs in per cent of peak; '' without them."""
    if compute is None or memory is None:
        return ""
    if max(compute, memory) < BUSY_PERCENT:
        return "latency"
    return "compute" if compute > memory else "memory"
