"""SAME, FASTER, SLOWER or CAN'T TELL: what two sets of repeated times say about a change.

Times are compared as logarithms, so that a change is a ratio. A side's time is the robust location of its launches;
what two sides may differ by although nothing changed has two parts: the spread of launches within one process, and the
shift of a whole process (placement in memory, clocks). The first is measured and shrunk towards what is usual for the
kernel's class, as in Smyth's moderated t statistic; the second cannot be seen in one process, so it always comes from
the class. docs/comparison.md states assumptions and error rates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gemmprof.analysis.comparison.distributions import (
    clipped_squares,
    huber_weights,
    location,
    location_variance,
    rejected,
    t_quantile,
    t_tail,
    weighted_mean,
)
from gemmprof.analysis.comparison.noise import Noise

Verdict = Literal["same", "faster", "slower", "unclear"]

FALSE_DISCOVERY_RATE = 0.01
"""Share of the reported changes that may be false; where nothing changed, the chance of reporting any."""
EQUIVALENT_WITHIN = 0.01
"""Changes that are surely smaller than this are no change: 1 %."""
EQUIVALENCE_LEVEL = 0.05
"""Error rate of each of the two one-sided tests behind SAME (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987)."""
POWER = 0.95
"""`Judgement.detectable` is found with this probability."""
BETWEEN_PRIOR_FREEDOM = 8.0
"""How many further reports would weigh as much as the class's word on how far whole reports lie apart."""
PAIRED_GAIN = 3.0
"""Launches are compared occurrence by occurrence where that shrinks their spread by more than this factor."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The repetitions of one process: times in one unit, or what is known of them.

    Attributes:
        centre: robust location of the times' natural logarithms.
        count: how many times there were.
        squares: sum of squared distances of the logarithms from the centre, outliers clipped.
        logs: the logarithms in order of occurrence; empty where only a summary is known.
        step: the clock's resolution over the time, 0 if it does not matter.
    """

    centre: float
    count: int
    squares: float
    logs: tuple[float, ...] = ()
    step: float = 0.0

    @classmethod
    def of_times(cls, times: Sequence[float], resolution: float = 0.0) -> Batch:
        """Of single times, in any unit; ``resolution`` in the same unit."""
        logs = tuple(math.log(time) for time in times)
        centre = location(logs)
        return cls(centre, len(logs), clipped_squares(logs, centre), logs, resolution / math.exp(centre))

    @classmethod
    def of_summary(cls, median: float, p10: float, p90: float, count: int) -> Batch:
        """Of a median and two percentiles: their distance is 2.563 standard deviations of a normal distribution."""
        sigma = max(math.log(p90 / p10), 0.0) / 2.563
        return cls(math.log(median), count, sigma * sigma * max(count - 1, 0))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of `squares`."""
        return max(self.count - 1, 0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A change and how sure it is, before the number of kernels is taken into account.

    Attributes:
        before, after: natural logarithms of the two times that the change is of.
        error: its standard error.
        freedom: degrees of freedom of the error.
        own_share: share of the degrees of freedom that these data gave; the rest is the class's word.
        paired: True where launches were compared occurrence by occurrence.
    """

    before: float
    after: float
    error: float
    freedom: float
    own_share: float
    paired: bool = False

    @property
    def change(self) -> float:
        """Natural logarithm of after over before."""
        return self.after - self.before

    @property
    def probability(self) -> float:
        """Chance of a change at least this large although nothing changed."""
        return t_tail(self.change / self.error, self.freedom)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one kernel. Changes are after/before - 1: 0.02 is 2 % slower.

    Attributes:
        verdict: ``same``, ``faster``, ``slower`` or ``unclear``.
        before, after: the times that the change is of, in the unit of the batches: each side's location.
        change: the best estimate, after/before - 1.
        low, high: its interval, corrected for the number of kernels.
        detectable: the smallest slowdown that data like these show with a probability of 95 %.
        probability: chance of a change at least this large although nothing changed (one kernel, uncorrected).
        own_share: see `Estimate`.
        paired: see `Estimate`.
    """

    verdict: Verdict
    before: float
    after: float
    change: float
    low: float
    high: float
    detectable: float
    probability: float
    own_share: float
    paired: bool


def estimate(before: Sequence[Batch], after: Sequence[Batch], noise: Noise) -> Estimate:
    """The change from one side's processes to the other's.

    Args:
        before, after: at least one batch each.
        noise: what is usual for this kind of kernel.
    """
    pairs = _paired(before, after)
    if pairs is not None:
        paired, centres = pairs
        # A difference of two launches has twice the variance of one; its batch stands for both sides.
        sigma, freedom = _shrunk([paired], noise, 2.0)
        variance = 2 * sigma * location_variance(paired.count)
        between = 2 * noise.between(sigma) + _rounding(paired)
        inflation = 1.0
        own = paired.freedom
    else:
        sigma, freedom = _shrunk([*before, *after], noise, 1.0)
        sides = [_weighted(side, sigma, noise) for side in (before, after)]
        centres = sides[0][0], sides[1][0]
        variance = sum(side[1] for side in sides)
        between = sum(side[2] for side in sides)
        own = sum(batch.freedom for batch in (*before, *after))
        apart = len(before) + len(after) - 2
        distance = sum(side[3] for side in sides)
        inflation = (BETWEEN_PRIOR_FREEDOM + distance) / (BETWEEN_PRIOR_FREEDOM + apart)
    total = variance + between
    # Welch and Satterthwaite: the two parts are known with different certainty.
    degrees = total**2 / (variance**2 / freedom + between**2 / noise.between_freedom)
    error = math.sqrt(inflation * total)
    return Estimate(*centres, error, degrees, own / (own + noise.freedom), pairs is not None)


def _shrunk(batches: Sequence[Batch], noise: Noise, parts: float) -> tuple[float, float]:
    """Variance of one launch and its degrees of freedom: the measured one drawn towards the class's (Smyth 2004)."""
    own = sum(batch.freedom for batch in batches)
    squares = sum(batch.squares for batch in batches) / parts
    freedom = noise.freedom + own
    return (noise.freedom * noise.within**2 + squares) / freedom, freedom


def _rounding(batch: Batch) -> float:
    """Variance that a coarse clock adds to a location: all of a step's where launches do not scatter beyond it."""
    spread = math.sqrt(batch.squares / batch.freedom) if batch.freedom else 0.0
    return batch.step**2 / 12 * max(0.0, 1 - 2 * spread / batch.step) if batch.step else 0.0


def _weighted(side: Sequence[Batch], sigma: float, noise: Noise) -> tuple[float, float, float, float]:
    """Location of one side, its variance within and between processes, and the squared spread of its processes."""
    within = [sigma * location_variance(batch.count) + _rounding(batch) for batch in side]
    between = noise.between(sigma)
    weights = [1 / (part + between) for part in within]
    total = sum(weights)
    centre = sum(weight * batch.centre for weight, batch in zip(weights, side, strict=True)) / total
    share = [weight / total for weight in weights]
    return (
        centre,
        sum(part * s * s for part, s in zip(within, share, strict=True)),
        sum(between * s * s for s in share),
        sum(weight * (batch.centre - centre) ** 2 for weight, batch in zip(weights, side, strict=True)),
    )


def _paired(before: Sequence[Batch], after: Sequence[Batch]) -> tuple[Batch, tuple[float, float]] | None:
    """Differences of the n-th launches, where launches of one family differ in work in an order that repeats.

    Returns:
        the differences as one batch, and the location of each side, whose difference is the batch's centre: means
        over the same launches with the same weights, disturbed pairs weighing less.
    """
    if len(before) != 1 or len(after) != 1:
        return None
    left, right = before[0], after[0]
    if left.count != right.count or left.count < 4 or not (left.logs and right.logs):
        return None
    differences = tuple(second - first for first, second in zip(left.logs, right.logs, strict=True))
    weights = huber_weights(differences, location(differences))
    first, second = (weighted_mean(side.logs, weights) for side in (left, right))
    squares = clipped_squares(differences, second - first)
    spread = [statistics.pstdev(batch.logs) for batch in (left, right)]
    if not min(spread) ** 2 * left.count * 2 > PAIRED_GAIN**2 * squares:
        return None
    step = max(left.step, right.step)
    return Batch(second - first, left.count, squares, differences, step), (first, second)


def judge(
    estimates: Sequence[Estimate],
    *,
    rate: float = FALSE_DISCOVERY_RATE,
    margin: float = EQUIVALENT_WITHIN,
) -> list[Judgement]:
    """The verdicts on all kernels of one comparison.

    Args:
        estimates: one a kernel.
        rate: see `FALSE_DISCOVERY_RATE`.
        margin: see `EQUIVALENT_WITHIN`.
    """
    changed, level = rejected([one.probability for one in estimates], rate)
    return [_judgement(one, flag, level, margin) for one, flag in zip(estimates, changed, strict=True)]


def _judgement(one: Estimate, changed: bool, level: float, margin: float) -> Judgement:
    width = t_quantile(level, one.freedom) * one.error
    narrow = t_quantile(2 * EQUIVALENCE_LEVEL, one.freedom) * one.error
    equivalent = max(math.expm1(one.change + narrow), -math.expm1(one.change - narrow)) < margin
    verdict: Verdict = "unclear"
    if equivalent:
        verdict = "same"
    elif changed:
        verdict = "slower" if one.change > 0 else "faster"
    return Judgement(
        verdict,
        math.exp(one.before),
        math.exp(one.after),
        math.expm1(one.change),
        math.expm1(one.change - width),
        math.expm1(one.change + width),
        math.expm1(width + t_quantile(2 * (1 - POWER), one.freedom) * one.error),
        one.probability,
        one.own_share,
        one.paired,
    )
