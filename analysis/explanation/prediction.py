"""Weighs what the causes found: the share of the time that fixing saves, with its interval, and all of
them together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.demands.time_model import Fix, TimeModel

# Other values of the model's numbers that are as likely: how far the answer moves is its uncertainty.
PROBES = (
    {"overlap": 2.5},
    {"overlap": 8.0},
    {"latency_scale": 0.7},
    {"latency_scale": 1.4},
    {"ceiling_scale": 0.93},
    {"ceiling_scale": 1.05},
)

SPREAD = 1.35  # half the 80 % interval in units of the uncertainty, fitted on pairs (docs/explain.md)
OTHER_WAY = 0.3  # what a doubt that points one way adds to the other side
FLOOR = 0.03  # what no model knows better: points of run time
# Half of the narrowest interval: a saving below it cannot be told from none, nor from what a recompile moves.
RESOLUTION = SPREAD * FLOOR


@dataclass(frozen=True, slots=True)
class Prediction:
    """Share of the time that a change saves, with its 80 % interval."""

    saves: float
    low: float
    high: float

    def at_most(self, saves: float) -> Prediction:
        """The same with no larger saving, which its interval still holds."""
        return replace(self, saves=min(self.saves, saves), low=min(self.low, saves))


class Predictor:
    """The time model of one launch with its probes, built once for all candidates."""

    def __init__(self, model: TimeModel, *, probes: bool = True) -> None:
        self.model = model
        self._probing = probes
        self._probes: list[TimeModel] | None = None

    @property
    def probes(self) -> list[TimeModel]:
        """The model under other values of its numbers."""
        if self._probes is None:
            self._probes = [self.model.with_settings(**changes) for changes in PROBES if self._probing]
        return self._probes

    def quick(self, fix: Fix) -> float:
        """What a change saves, without an interval."""
        return self.model.saves(fix)

    def predict(self, variant: Variant) -> Prediction:
        """What one way of fixing saves."""
        if variant.known is not None:
            return Prediction(*variant.known)
        saves = self.model.saves(variant.fix)
        others = [probe.saves(variant.fix) for probe in self.probes]
        down = up = 0.0
        for other in others:
            if other < saves:
                down += (saves - other) ** 2
            else:
                up += (other - saves) ** 2
        if variant.cautious is not None:
            down += min(0.0, self.model.saves(variant.cautious) - saves) ** 2
        if variant.bold is not None:
            up += max(0.0, self.model.saves(variant.bold) - saves) ** 2
        low = saves - SPREAD * (down + OTHER_WAY * up + FLOOR**2) ** 0.5
        high = saves + SPREAD * (up + OTHER_WAY * down + FLOOR**2) ** 0.5
        return Prediction(_share(saves), 0.0 if variant.up_to else _share(low), _share(high))

    def together(self, fixes: Iterable[Fix]) -> float:
        """What all of these save at once."""
        fix = Fix()
        for one in fixes:
            fix = fix.together(one)
        return _share(self.model.saves(fix))


def _share(value: float) -> float:
    return min(0.999, max(0.0, value))
