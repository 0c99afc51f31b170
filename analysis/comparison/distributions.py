"""The statistics that a comparison needs: robust location and scale, mixtures of normals, order, many tests at once."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

# Residuals beyond this many robust standard deviations count as if they were there (Huber's way with
# outliers).
CLIP = 2.5
# The same of three values, whose median distance is often small by chance: one of ten would be called an
# outlier.
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
    limit = _limit([abs(value - middle) for value in ordered], 0.0)
    kept = ordered[: len(ordered) - len(ordered) // UPPER_PART]
    return middle + math.fsum(min(max(value - middle, -limit), limit) for value in kept) / len(kept)


# One of so many values, the largest, is left out of a location.
UPPER_PART = 4


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
    small = {1: 1.0, 2: 0.5, 3: 0.377}
    return small.get(count, 1.13 / max(count, 1))


def clipped_squares(values: Sequence[float], centre: float) -> float:
    """Sum of squared distances from the centre, each at most `CLIP` robust standard deviations."""
    distances = [abs(value - centre) for value in values]
    # More than half the values are equal (a coarse clock): nothing can be called an outlier.
    limit = _limit(distances, math.inf)
    return sum(min(distance, limit) ** 2 for distance in distances)


def clipped(values: Sequence[float]) -> list[float]:
    """The values, those beyond `CLIP` robust standard deviations of their median drawn in."""
    middle = statistics.median(values)
    limit = _limit([abs(value - middle) for value in values], math.inf)
    return [min(max(value, middle - limit), middle + limit) for value in values]


def _limit(distances: Sequence[float], without: float) -> float:
    clip = CLIP_OF_THREE if len(distances) == 3 else CLIP
    return clip * MAD_TO_SIGMA * statistics.median(distances) or without


def huber_weights(values: Sequence[float], centre: float) -> list[float]:
    """1 for values near the centre, less for those beyond `CLIP` robust standard deviations (Huber 1964)."""
    distances = [abs(value - centre) for value in values]
    limit = _limit(distances, math.inf)
    return [1.0 if distance <= limit else limit / distance for distance in distances]


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of values with weights."""
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(
        weights
    )


@dataclass(frozen=True, slots=True)
class Mixture:
    """Normal distributions around 0, of several standard deviations: an error whose own size is not known for sure.

    Attributes:
        weights: of each; their sum is 1.
        errors: standard deviations.
    """

    weights: tuple[float, ...]
    errors: tuple[float, ...]

    def tail(self, value: float) -> float:
        """P(|X| > |value|)."""
        return math.fsum(
            weight * math.erfc(abs(value) / (error * math.sqrt(2)))
            for weight, error in zip(self.weights, self.errors, strict=True)
        )

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

    @property
    def error(self) -> float:
        """The standard deviation of the whole."""
        pairs = zip(self.weights, self.errors, strict=True)
        return math.sqrt(math.fsum(weight * error * error for weight, error in pairs))

    def scaled(self, factor: float) -> Mixture:
        """The same, so many times as wide."""
        return Mixture(self.weights, tuple(factor * error for error in self.errors))


def dependence(batches: Sequence[Sequence[float]]) -> tuple[float, float]:
    """How much neighbours in series are alike, and what that is by chance, as correlations.

    Returns:
        the correlation of neighbours, from von Neumann's ratio of squared differences, 0 on average where nothing
        depends on the order; and its standard deviation there.
    """
    differences = squares = correction = 0.0
    count = 0
    for values in batches:
        kept = clipped(values)
        mean = math.fsum(kept) / len(kept)
        differences += math.fsum((second - first) ** 2 for first, second in pairwise(kept))
        squares += math.fsum((value - mean) ** 2 for value in kept)
        correction += 1.0
        count += len(kept)
    if squares <= 0 or count <= 2 * correction:
        return 0.0, math.inf
    # The ratio's mean is 2 (n - 1)/(n - 1 degrees of freedom) = 2, of a series of n values that do not depend.
    return 1 - differences / (2 * squares), 1 / math.sqrt(count)


def two_levels(values: Sequence[float], apart: float, fewest: int = 2) -> tuple[float, float] | None:
    """The means of the two levels of the values, None without: a split leaves less than `LEFT_OVER` of squares.

    Args:
        values: at least six.
        apart: levels nearer than this are one (neighbouring ticks of a coarse clock).
        fewest: values of a level; a single one beyond the others is an outlier.
    """
    ordered = sorted(values)
    total = _squares(ordered)
    for at in range(fewest, len(ordered) - fewest + 1):
        left, right = ordered[:at], ordered[at:]
        if right[0] - left[-1] > apart and _squares(left) + _squares(right) < LEFT_OVER * total:
            return statistics.fmean(left), statistics.fmean(right)
    return None


# Of twelve normal values 995 of 1000 have no such split (by simulation); of two modes six noises apart most
# do.
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
