"""SAME, FASTER, SLOWER or CAN'T TELL: what two sets of repeated times say about a change.

Times are compared as logarithms, so that a change is a ratio. A side's time is the robust location of its launches;
what two sides may differ by although nothing changed has two parts: the spread of launches within one process, and the
shift of a whole process (placement in memory, clocks). How large the first is, is not known either: what is usual for a
kernel of this kind and what its repetitions say give each size a weight (`Noise.spreads`), and a change is held against
all of them. The second cannot be seen in one process, so it always comes from what is usual. docs/comparison.md states
assumptions and error rates.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from gemmprof.base import amounts

# --- What is usual ----------------------------------------------------------------------------------------------------

REFERENCE_NS = 1e5  # duration at which `NoiseModel.middle` holds
WIDEST = 0.15  # standard deviations up to this are held possible where there are repetitions; more where those say so
POINTS = 25  # standard deviations held possible: with more of them, answers change by less than 0.1 %
BACKGROUND = 0.03  # chance that a kernel is like none of the recorded ones: as noisy as the noisiest of them, or beyond

# Launches of kernels below this scatter by what starting and ending one takes, which they mostly are: up to
# half a microsecond, in a long tail (fills of 1.4 to 2.3 µs in two recordings).
SHORT_NS = 5e3
LARGEST_OF_SHORT = 1.25  # by so much a short kernel's largest spread held possible exceeds the others'


@dataclass(frozen=True, slots=True)
class Noise:
    """What is usual for a kernel, as parts of its time (0.01 is 1 %)."""

    name: str  # the kernels that it is usual for, for people: ``about 24 µs, limited by memory``
    middle: float  # standard deviation of launches within one process: as many kernels lie above it as below
    factor: float  # natural logarithm of how many times as much or as little it is in a typical kernel of this kind
    largest: float  # the largest that any recorded kernel has; with one launch a side nothing larger is held possible
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
    factor: float  # factor, largest, between_floor, between_share: see `Noise`; one figure for all kernels
    largest: float
    between_floor: float
    between_share: float

    def of(self, nanoseconds: float, limit: str = "") -> Noise:
        """What is usual for a kernel of this duration whose limit is this ('' if unknown)."""
        middle = self.middle * (nanoseconds / REFERENCE_NS) ** self.power * self.limits.get(limit, 1.0)
        limited = f", limited by {limit}" if limit in self.limits else ""
        name = f"about {amounts.nanoseconds(nanoseconds)}{limited}"
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


# --- Statistics -------------------------------------------------------------------------------------------------------

# Residuals beyond this many robust standard deviations count as if they were there (Huber's way with outliers).
CLIP = 2.5
# The same of three values, whose median distance is often small by chance: one of ten would be called an outlier.
CLIP_OF_THREE = 6.0
MAD_TO_SIGMA = 1.4826  # a normal distribution's standard deviation over its median absolute deviation


def location(values: Sequence[float]) -> float:
    """The mean without the largest quarter, what lies far from the median drawn in; of one or two values the mean.

    What disturbs a launch makes it longer, hardly ever shorter: the upper quarter says least of a kernel.
    """
    ordered = sorted(values)
    middle = statistics.median(ordered)
    if len(ordered) < 3:
        return middle
    limit = _limit(ordered, middle, 0.0)
    kept = ordered[: len(ordered) - len(ordered) // UPPER_PART]
    return middle + math.fsum(min(max(value - middle, -limit), limit) for value in kept) / len(kept)


UPPER_PART = 4  # one of so many values, the largest, is left out of a location


def location_bias(count: int) -> float:
    """How far `location` of that many normal values of variance 1 lies from their mean: below it, or 0."""
    kept = count - count // UPPER_PART
    if kept == count:
        return 0.0
    # The mean of a normal distribution below a quantile; 0.3 by simulation.
    normal, part = statistics.NormalDist(), (kept + 0.3) / count
    return -normal.pdf(normal.inv_cdf(part)) / part


def location_variance(count: int) -> float:
    """Variance of `location` of that many normal values of variance 1, by simulation."""
    return {1: 1.0, 2: 0.5, 3: 0.377}.get(count, 1.13 / max(count, 1))


def clipped_squares(values: Sequence[float], centre: float) -> float:
    """Sum of squared distances from the centre, each at most `CLIP` robust standard deviations."""
    # More than half the values are equal (a coarse clock): nothing can be called an outlier.
    limit = _limit(values, centre, math.inf)
    return sum(min(abs(value - centre), limit) ** 2 for value in values)


def clipped(values: Sequence[float]) -> list[float]:
    """The values, those beyond `CLIP` robust standard deviations of their median drawn in."""
    middle = statistics.median(values)
    limit = _limit(values, middle, math.inf)
    return [min(max(value, middle - limit), middle + limit) for value in values]


def _limit(values: Sequence[float], centre: float, without: float) -> float:
    clip = CLIP_OF_THREE if len(values) == 3 else CLIP
    return clip * MAD_TO_SIGMA * statistics.median(abs(value - centre) for value in values) or without


@dataclass(frozen=True, slots=True)
class Mixture:
    """Normal distributions around 0, of several standard deviations: an error whose own size is not known for sure."""

    weights: tuple[float, ...]  # of each; their sum is 1
    errors: tuple[float, ...]  # standard deviations

    def tail(self, value: float) -> float:
        """P(|X| > |value|)."""
        parts = zip(self.weights, self.errors, strict=True)
        return math.fsum(weight * math.erfc(abs(value) / (error * math.sqrt(2))) for weight, error in parts)

    def quantile(self, two_sided: float) -> float:
        """The value that |X| exceeds with this probability, found by bisection to a millionth of it."""
        if two_sided >= 1:
            return 0.0
        low, high = 0.0, max(self.errors)
        while self.tail(high) > two_sided:
            low, high = high, 2 * high
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.tail(middle) > two_sided else (low, middle)
        return high

    def scaled(self, factor: float) -> Mixture:
        """The same, so many times as wide."""
        return Mixture(self.weights, tuple(factor * error for error in self.errors))


def dependence(batches: Sequence[Sequence[float]]) -> tuple[float, float]:
    """How much neighbours in series are alike, and what that is by chance, as correlations.

    Returns:
        the correlation of neighbours, from von Neumann's ratio of squared differences, 0 on average where nothing
        depends on the order; and its standard deviation there.
    """
    series = [clipped(values) for values in batches]
    squares = sum(map(_squares, series))
    count = sum(map(len, series))
    if squares <= 0 or count <= 2 * len(series):
        return 0.0, math.inf
    differences = sum(math.fsum((b - a) ** 2 for a, b in pairwise(values)) for values in series)
    # The ratio's mean is 2 (n - 1)/(n - 1 degrees of freedom) = 2, of a series of n values that do not depend.
    return 1 - differences / (2 * squares), 1 / math.sqrt(count)


def two_levels(values: Sequence[float], apart: float, fewest: int = 2) -> tuple[float, float] | None:
    """The means of the two levels of six values or more; None where each split leaves `LEFT_OVER` of squares.

    Levels nearer than ``apart`` are one (ticks of a coarse clock); a level has ``fewest`` values: a single one beyond
    the others is an outlier.
    """
    ordered = sorted(values)
    total = _squares(ordered)
    for at in range(fewest, len(ordered) - fewest + 1):
        left, right = ordered[:at], ordered[at:]
        if right[0] - left[-1] > apart and _squares(left) + _squares(right) < LEFT_OVER * total:
            return statistics.fmean(left), statistics.fmean(right)
    return None


# Of twelve normal values 995 of 1000 have no such split (by simulation); of two modes six noises apart most do.
LEFT_OVER = 0.07


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def rejected(probabilities: Sequence[float], rate: float) -> tuple[list[bool], float]:
    """Which of several null hypotheses Benjamini and Hochberg's procedure rejects, and the level of each.

    At most ``rate`` of the rejections are false on average; where nothing changed at all, the chance of any is at most
    ``rate``. Source: Benjamini and Hochberg, J. R. Statist. Soc. B 57 (1995).
    """
    count = len(probabilities)
    passed = 0
    for rank, probability in enumerate(sorted(probabilities), start=1):
        if probability <= rank * rate / count:
            passed = rank
    level = max(passed, 1) * rate / max(count, 1)
    return [probability <= level for probability in probabilities], level


# --- SAME, FASTER, SLOWER or CAN'T TELL -------------------------------------------------------------------------------

Verdict = Literal["same", "faster", "slower", "unclear"]

# Share of the reported changes that may be false; where nothing changed, the chance of reporting any. Measured, with
# `SMALLEST_SHARE` and `USUAL_ERRORS`, it is 1 % of kernels judged alone at three launches (tools/learn_noise.py).
FALSE_DISCOVERY_RATE = 0.035
FAMILY_WISE = 0.01  # for all kernels together launched once a side, whose errors are not independent
# A change is at least so many standard errors of what is usual for such a kernel: launches that agree by
# chance are not taken at their word. Chosen with the rate, by the tables of tools/learn_noise.py.
USUAL_ERRORS = 3.2
EQUIVALENT_WITHIN = 0.01  # changes that are surely smaller than this are no change: 1 %
# A change whose best estimate is below this share of `EQUIVALENT_WITHIN` is never called one: it would matter
# to nobody, and half of the false alarms of steady kernels are so small.
SMALLEST_SHARE = 0.7
# Times that do not scatter beyond a tick of the clock must lie further apart than neighbouring ticks to differ.
TICKS = 1.5
# Error rate of each of the two one-sided tests behind SAME (Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
EQUIVALENCE_LEVEL = 0.03
POWER = 0.95  # `Judgement.detectable` is found with this probability
# How many further reports would weigh as much as the class's word on how far whole reports lie apart.
BETWEEN_PRIOR_FREEDOM = 8.0
PAIRED_GAIN = 3.0  # launches are compared one by one where that shrinks their spread by more than this
FEWEST_IN_ORDER = 6  # launches of one process that the search for drift and modes needs
# Neighbours are called alike from so many standard deviations of chance on: in 1 of 100 series without order.
BEYOND_CHANCE = 2.1
# Launches that drift say little of another process: it may be at the drift's end, two standard deviations away.
SHARE_OF_DRIFT = 2.0


@dataclass(frozen=True, slots=True)
class Batch:
    """The repetitions of one process: times in one unit, or what is known of them."""

    centre: float  # robust location of the times' natural logarithms
    count: int  # how many times there were
    squares: float  # sum of squared distances of the logarithms from the centre, outliers clipped
    logs: tuple[float, ...] = ()  # the logarithms in order of occurrence; empty where only a summary is known
    step: float = 0.0  # the clock's resolution over the time, 0 if it does not matter

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
    """A change and how sure it is, before the number of kernels is taken into account."""

    before: float  # before, after: natural logarithms of the two times that the change is of
    after: float
    noise: Mixture  # how far the change may lie from the true one
    own_share: float  # share of what is known of the noise that these data gave: 0 without repetitions
    paired: bool = False  # True where launches were compared occurrence by occurrence
    unsteady: bool = False  # True where the launches of a process drift or change between modes
    # a change has to be larger than this to be one, as a part of the time (ticks of the clock, what is usual)
    least: float = 0.0

    @property
    def change(self) -> float:
        """Natural logarithm of after over before."""
        return self.after - self.before

    @property
    def probability(self) -> float:
        """Chance of a change at least this large although nothing changed."""
        return self.noise.tail(self.change)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one kernel. Changes are after/before - 1: 0.02 is 2 % slower."""

    verdict: Verdict  # ``same``, ``faster``, ``slower`` or ``unclear``
    before: float  # before, after: the times that the change is of, in the unit of the batches: each side's location
    after: float
    change: float  # the best estimate, after/before - 1
    low: float  # low, high: its interval, corrected for the number of kernels
    high: float
    detectable: float  # the smallest slowdown that data like these show with a probability of 95 %
    estimate: Estimate  # what it rests on, of this kernel alone
    equivalent: bool = False  # whether it is surely smaller than the margin, whatever the verdict


def estimate(before: Sequence[Batch], after: Sequence[Batch], noise: Noise) -> Estimate:
    """The change from one side's processes (at least one batch) to the other's."""
    pairs = _paired(before, after)
    if pairs is not None:
        differences, centres = pairs
        own = differences.freedom
        # A difference of two launches has twice the variance of one; the batch stands for both sides.
        sigmas, weights = noise.spreads(differences.squares / 2, own)
        order = _order([differences])
        errors = [
            2 * sigma**2 * location_variance(differences.count) * order.alike
            + 2 * (noise.between(sigma**2, order.share) + order.modes)
            for sigma in sigmas
        ]
        rounding = _rounding(differences)
    else:
        both = [*before, *after]
        own = sum(batch.freedom for batch in both)
        sigmas, weights = noise.spreads(sum(batch.squares for batch in both), own)
        order = _order(both)
        typical = sum(sigma**2 * weight for sigma, weight in zip(sigmas, weights, strict=True))
        sides = [_weighted(side, order.alike * typical, noise, order) for side in (before, after)]
        centres = sides[0].centre, sides[1].centre
        apart = len(before) + len(after) - 2
        distance = sum(side.distance for side in sides)
        inflation = (BETWEEN_PRIOR_FREEDOM + distance) / (BETWEEN_PRIOR_FREEDOM + apart)
        # Sides of other numbers of launches are not located alike; by how much depends on the noise's shape.
        bias = (sides[1].bias - sides[0].bias) ** 2
        errors = [
            bias * sigma**2
            + inflation
            * sum(
                side.launches * order.alike * sigma**2
                + side.processes * (noise.between(sigma**2, order.share) + order.modes)
                for side in sides
            )
            for sigma in sigmas
        ]
        rounding = sum(side.rounding for side in sides)
    least = TICKS * max(batch.step if _rounding(batch) else 0.0 for batch in (*before, *after))
    if own:
        counts = [sum(batch.count for batch in side) for side in (before, after)]
        usual = sum(noise.middle**2 * location_variance(count) for count in counts)
        least = max(least, USUAL_ERRORS * math.sqrt(usual))
    mixture = Mixture(weights, tuple(math.sqrt(error + rounding) for error in errors))
    return Estimate(*centres, mixture, own / (own + 1), pairs is not None, order.unsteady, least)


@dataclass(frozen=True, slots=True)
class _Order:
    """What a drift, modes, or neighbours that are alike make of the noise."""

    alike: float = 1.0  # by how much the variance of a location grows
    share: float | None = None  # the spread of whole processes as a part of that within them (None: as usual)
    modes: float = 0.0  # variance of a process that may be on either of two levels; 0 without

    @property
    def unsteady(self) -> bool:
        return self.share is not None or self.modes > 0


def _order(batches: Sequence[Batch]) -> _Order:
    """What the order and the levels of launches say of other processes."""
    series = [batch for batch in batches if len(batch.logs) >= FEWEST_IN_ORDER]
    if distance := _levels_apart(series):
        return _Order(modes=distance**2 / 4)
    alike, chance = dependence([batch.logs for batch in series])
    if alike <= BEYOND_CHANCE * chance:
        return _Order()
    # The variance of a mean of values whose neighbours correlate by r, as in an autoregression.
    return _Order((1 + alike) / (1 - min(alike, 0.9)), SHARE_OF_DRIFT)


def _levels_apart(series: Sequence[Batch]) -> float:
    """How far two levels lie apart, on both of which a process has launches; 0 without such.

    They are looked for in each process, then in all together: a process that was on one level but once shows that the
    other process's level is no change.
    """
    found = []
    for batch in series:
        if levels := two_levels(batch.logs, 4 * batch.step):
            # It stays for two launches at least on each of its levels: else it is disturbed now and then.
            above = [log > sum(levels) / 2 for log in batch.logs]
            found += [levels] if all((level, level) in pairwise(above) for level in (False, True)) else []
    if len(series) > 1:
        together = [log for batch in series for log in batch.logs]
        few = min(len(batch.logs) for batch in series) // 2
        levels = two_levels(together, 4 * max(batch.step for batch in series), few)
        if levels and any(min(batch.logs) < sum(levels) / 2 < max(batch.logs) for batch in series):
            found.append(levels)
    return max((high - low for low, high in found), default=0.0)


def _rounding(batch: Batch) -> float:
    """Variance that a coarse clock adds to a location: all of a step's where launches do not scatter beyond it."""
    spread = math.sqrt(batch.squares / batch.freedom) if batch.freedom else 0.0
    return batch.step**2 / 12 * max(0.0, 1 - 2 * spread / batch.step) if batch.step else 0.0


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a change, its processes weighted by how sure they are."""

    centre: float  # its location
    launches: float  # launches, processes: factors of the variances within and between processes
    processes: float
    rounding: float  # variance that a coarse clock adds
    distance: float  # squared distances of the processes from the centre over what is expected
    bias: float  # what the centre lies off the mean of normal launches of variance 1


def _weighted(side: Sequence[Batch], variance: float, noise: Noise, order: _Order) -> _Side:
    between = noise.between(variance, order.share) + order.modes
    within = [variance * location_variance(batch.count) + _rounding(batch) for batch in side]
    weights = [1 / (part + between) for part in within]
    total = sum(weights)
    centre = sum(weight * batch.centre for weight, batch in zip(weights, side, strict=True)) / total
    shares = [weight / total for weight in weights]
    return _Side(
        centre,
        sum(location_variance(batch.count) * s * s for batch, s in zip(side, shares, strict=True)),
        sum(s * s for s in shares),
        sum(_rounding(batch) * s * s for batch, s in zip(side, shares, strict=True)),
        sum(weight * (batch.centre - centre) ** 2 for weight, batch in zip(weights, side, strict=True)),
        sum(location_bias(len(batch.logs)) * s for batch, s in zip(side, shares, strict=True)),
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
    middle = statistics.median(differences)
    limit = _limit(differences, middle, math.inf)
    # Beyond `CLIP` robust standard deviations a pair weighs less the further it lies (Huber 1964).
    distances = [abs(one - middle) for one in differences]
    weights = [1.0 if distance <= limit else limit / distance for distance in distances]
    first, second = (statistics.fmean(side.logs, weights) for side in (left, right))
    squares = clipped_squares(differences, second - first)
    spread = [statistics.pstdev(batch.logs) for batch in (left, right)]
    if not min(spread) ** 2 * left.count * 2 > PAIRED_GAIN**2 * squares:
        return None
    step = max(left.step, right.step)
    return Batch(second - first, left.count, squares, differences, step), (first, second)


def judge(estimates: Sequence[Estimate], *, margin: float = EQUIVALENT_WITHIN) -> list[Judgement]:
    """The verdicts on all kernels of one comparison."""
    repeated = [one for one in estimates if one.own_share > 0]
    share = len(repeated) / max(len(estimates), 1)
    _, level = rejected([one.probability for one in repeated], FALSE_DISCOVERY_RATE * share)
    # What rests on the usual noise alone errs in the same way for many kernels at once: there each stands for itself.
    single = FAMILY_WISE / max(len(estimates), 1)
    found = []
    for one in estimates:
        own = level if one.own_share > 0 else single
        width = one.noise.quantile(own)
        narrow = one.noise.quantile(2 * EQUIVALENCE_LEVEL)
        equivalent = max(math.expm1(one.change + narrow), -math.expm1(one.change - narrow)) < margin
        verdict: Verdict = "unclear"
        size = abs(math.expm1(one.change))
        if one.probability <= own and size >= SMALLEST_SHARE * margin and size > one.least:
            verdict = "slower" if one.change > 0 else "faster"
        elif equivalent:
            verdict = "same"
        judged = Judgement(
            verdict,
            as_measured(math.exp(one.before)),
            as_measured(math.exp(one.after)),
            math.expm1(one.change),
            math.expm1(one.change - width),
            math.expm1(one.change + width),
            math.expm1(width + one.noise.quantile(2 * (1 - POWER))),
            one,
            equivalent,
        )
        found.append(judged)
    return found


def as_measured(value: float) -> float:
    """A value that went through a logarithm and back, without the digits that this made."""
    return float(f"{value:.13g}")
