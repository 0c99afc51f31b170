"""Weighs what the causes found: the share of the time that fixing saves, with its interval, and all of
them together.

What the time model says is one thing, how it came true another: `Calibration` turns the first into what is told, by
what was recorded of kernels that had never been seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.demands.pipes import is_float
from gemmprof.analysis.explanation.demands.time_model import Fix, TimeModel
from gemmprof.analysis.explanation.trust import SHORT

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


# Below this a finding may be no flaw at all: as much is predicted of sound kernels. From twice as much on it is one.
DOUBTFUL = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far predictions fell short on kernels seen for the first time.

    A rewrite does more than remove what was counted: of what nothing says must stay it takes a part, too.

    Attributes:
        part: of the time between what is predicted and the room that there is, what rewrites took on top.
        reach: of what is left then, how much further up the interval goes.
        down: factor on the interval's lower half, as the model's own doubts give it.
        inside, of: so many of the recorded outcomes lay inside the interval.
    """

    part: float
    reach: float
    down: float
    inside: int
    of: int

    def of_new_kernels(self, found: Prediction, room: float) -> Prediction:
        """What to tell of a prediction where so large a share of the time has no reason to stay."""
        sure = min(1.0, max(0.0, found.saves / DOUBTFUL - 1.0))
        saves = found.saves + self.part * sure * max(0.0, room - found.saves)
        high = saves + (found.high - found.saves) + self.reach * max(0.0, room - saves)
        return Prediction(saves, found.saves - self.down * (found.saves - found.low), _share(high))


@cache
def calibration() -> Calibration:
    """What `tools/score_studies.py --learn` wrote."""
    return Calibration(**json.loads(Path(__file__).with_name("calibration.json").read_text("utf-8")))


def room(model: TimeModel) -> float | None:
    """Share of the time that has no reason to stay; None where the report does not say what was executed.

    What stays: floating-point arithmetic, for which a kernel is written, as its share of the instructions or of the
    tensor cores' time; the time that DRAM needs; the wait for the busiest SM; starting and ending a launch.
    """
    work = model.work
    if not work.total_executed or not work.duration:
        return None
    floats = float(work.executed[work.where(is_float)].sum()) / work.total_executed
    units = (work.loads[key].share for key in ("dram", "tensor") if key in work.loads)
    return max(0.0, 1.0 / work.imbalance - max(floats, *units) - SHORT / work.duration)


class Predictor:
    """The time model of one launch with its probes, built once for all candidates.

    Args:
        probes: whether intervals are wanted.
        calibrated: whether predictions are told as records say they come true; False for the model's own.
    """

    def __init__(self, model: TimeModel, *, probes: bool = True, calibrated: bool = True) -> None:
        self.model = model
        self._probing = probes
        self._probes: list[TimeModel] | None = None
        self._calibrated = calibrated

    @property
    def probes(self) -> list[TimeModel]:
        """The model under other values of its numbers."""
        if self._probes is None:
            self._probes = [self.model.with_settings(**changes) for changes in PROBES if self._probing]
        return self._probes

    @cached_property
    def room(self) -> float | None:
        """Share of the time that has no reason to stay; None where nobody knows, and nothing is calibrated."""
        return room(self.model) if self._calibrated else None

    def told(self, variant: Variant, found: Prediction) -> Prediction:
        """What is told of a variant: its prediction calibrated, what was measured elsewhere as it is.

        So is what an even share of the same code saves: the wait for the busiest SM is measured, nothing is rewritten.
        """
        evened = variant.fix.imbalance is not None and variant.fix.keep is None
        if self.room is None or variant.known is not None or evened:
            return found
        told = calibration().of_new_kernels(found, self.room)
        return replace(told, low=0.0) if variant.up_to else told

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
