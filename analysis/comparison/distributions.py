"""The statistics that a comparison needs: Student's t, robust location and scale, a correction for many tests."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

CLIP = 2.5
"""Residuals beyond this many robust standard deviations count as if they were there (Huber's way with outliers)."""
MAD_TO_SIGMA = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


def location(values: Sequence[float]) -> float:
    """The Hodges-Lehmann estimate: the median of the means of all pairs; below five values their median.

    95 % as efficient as the mean where values are normal, and unmoved by up to 29 % of outliers.
    Source: Hodges and Lehmann, Estimates of Location Based on Rank Tests, Ann. Math. Statist. 34 (1963).
    """
    if len(values) < 5:
        return statistics.median(values)
    ordered = sorted(values)
    return statistics.median(
        (first + second) / 2 for index, first in enumerate(ordered) for second in ordered[index:]
    )


def location_variance(count: int) -> float:
    """Variance of `location` of that many normal values of variance 1."""
    # Medians of one to four normal values (order statistics), then the Hodges-Lehmann estimate's efficiency of 3/pi.
    small = {1: 1.0, 2: 0.5, 3: 0.4487, 4: 0.2982}
    return small.get(count, math.pi / 3 / max(count, 1))


def clipped_squares(values: Sequence[float], centre: float) -> float:
    """Sum of squared distances from the centre, each at most `CLIP` robust standard deviations."""
    distances = [abs(value - centre) for value in values]
    limit = CLIP * MAD_TO_SIGMA * statistics.median(distances)
    # More than half the values are equal (a coarse clock): nothing can be called an outlier.
    limit = limit or math.inf
    return sum(min(distance, limit) ** 2 for distance in distances)


def huber_weights(values: Sequence[float], centre: float) -> list[float]:
    """1 for values near the centre, less for those beyond `CLIP` robust standard deviations (Huber 1964)."""
    distances = [abs(value - centre) for value in values]
    limit = CLIP * MAD_TO_SIGMA * statistics.median(distances)
    return [1.0 if distance <= limit or not limit else limit / distance for distance in distances]


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The mean of values with weights."""
    return math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / math.fsum(
        weights
    )


def t_tail(value: float, freedom: float) -> float:
    """P(|T| > |value|) for Student's t; source: Abramowitz and Stegun 26.7.1 and 26.5.27."""
    if math.isinf(value):
        return 0.0
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value))


def t_quantile(two_sided: float, freedom: float) -> float:
    """The value that |T| exceeds with this probability, found by bisection to 1e-10."""
    if two_sided >= 1:
        return 0.0
    low, high = 0.0, 2.0
    while t_tail(high, freedom) > two_sided:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > two_sided else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction (A&S 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1) / (a + b + 2):
        return 1.0 - front * _fraction(b, a, 1 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(1.0 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / (1.0 + term * d or tiny)
            c = 1.0 + term / c or tiny
            step = c * d
            result *= step
        if abs(step - 1) < 1e-14:
            break
    return result


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
