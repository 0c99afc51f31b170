"""Weighs what the causes found: the share of the time that fixing saves, with its interval.

What the time model says is one thing, how it came true another: `Calibration` turns the first into what is told, by
what was recorded of kernels that had never been seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.code.flow import BARRIER
from gemmprof.analysis.explanation.code.sequences import compiled_by_triton
from gemmprof.analysis.explanation.demands.resources import is_float
from gemmprof.analysis.explanation.demands.time_model import ESTIMATED, LINES, LINK, Fix, TimeModel
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1
from gemmprof.analysis.explanation.demands.work import Array, Work
from gemmprof.analysis.explanation.trust import SHORT
from gemmprof.gpu.arch import WARP

# What no model knows better: less of the time cannot be told from nothing, nor from what a recompile moves.
FLOOR = 0.03
NEEDED = ("dram", "tensor")  # what these do has a reason to stay
ARITHMETIC = ("fma", "fp64", "xu", "tensor")  # pipes that no address needs
MOST = 0.999  # of the time that is ever told
Share = float | Array


@dataclass(frozen=True, slots=True)
class Prediction:
    """Share of the time that a change saves, with its 80 % interval.

    Attributes:
        stays: share of the executed instructions that the change keeps.
    """

    saves: float
    low: float
    high: float
    stays: float = 1.0

    def at_most(self, saves: float) -> Prediction:
        """The same with no larger saving, which its interval still holds."""
        return replace(self, saves=min(self.saves, saves), low=min(self.low, saves))


@dataclass(frozen=True, slots=True)
class Calibration:
    """How predictions came true of kernels seen for the first time, and of such as had nothing left to fix.

    A rewrite does more than remove what was counted: of what nothing says must stay it takes a part, too, and the
    larger the part the less must stay. A small saving where little is left to gain is mostly none.

    Attributes:
        part: of the time between the model's saving and the room, what came on top, a unit of room.
        roomy: what a unit of room counts beside the model's saving as evidence of a flaw.
        sure: so much evidence is as good as certain.
        down: what may be missing, as a share of the time that would stay.
        up: what may come on top, as such a share, where all instructions stay and the model explains all of the time.
        inside, of: so many of the outcomes lay inside what was told at first sight of sets that none of this is learnt
            on.
    """

    part: float
    roomy: float
    sure: float
    down: float
    up: float
    inside: int
    of: int

    def of_new_kernels(
        self, saves: Share, room: Share, stays: Share = 1.0, misfit: Share = 0.0
    ) -> tuple[Array, Array, Array]:
        """What to tell of what the model says, where so large a share of the time has no reason to stay: the saving,
        and its interval's ends.

        Args:
            stays: as a prediction has it.
            misfit: how far the model is off the launch's own time (`TimeModel.misfit`).
        """
        evidence = np.minimum(1.0, (np.maximum(0.0, saves) + self.roomy * room) / self.sure)
        # Nothing on top of what no model can tell from none.
        told = np.clip(np.divide(saves, FLOOR) - 1.0, 0.0, 1.0)
        more = self.part * room * told * np.maximum(0.0, room - saves)
        return self.around(evidence * (saves + more), saves, stays, misfit, evidence)

    def around(
        self, told: Share, saves: Share, stays: Share, misfit: Share, evidence: Share = 1.0
    ) -> tuple[Array, Array, Array]:
        """What is told, with the ends of the interval that it has where the model says this.

        What comes on top goes with instructions that nothing was said of, half as much where there are none, or is of
        the time that the model does not explain.
        """
        loose = 0.5 * evidence * np.add(1.0, stays)
        least = np.minimum(told, saves)
        low = least - FLOOR - self.down * np.subtract(1.0, least)
        high = told + FLOOR + (self.up + misfit) * loose * np.subtract(1.0, told)
        return np.clip(told, 0.0, MOST), np.clip(low, 0.0, MOST), np.clip(high, 0.0, MOST)


@cache
def calibration() -> Calibration:
    """What `tools/score_studies.py --learn` wrote."""
    return Calibration(**json.loads(Path(__file__).with_name("calibration.json").read_text("utf-8")))


def room(model: TimeModel, *, laid_out_anew: bool = False) -> float | None:
    """Share of the time that has no reason to stay; None where the report does not say what was executed.

    What stays: floating-point arithmetic, for which a kernel is written, as its share of the instructions of full warps
    or of the tensor cores' time; the time that DRAM needs; the wait for the busiest SM; starting and ending a launch.

    Args:
        laid_out_anew: without the arithmetic as it is shared out now, to lanes that compute what masks throw away, or
            what others have, too.
    """
    work = model.work
    if not work.total_executed or not work.duration:
        return None
    floats = float(work.threads[work.where(is_float)].sum()) / (WARP * work.total_executed)
    units = (work.loads[key].share for key in NEEDED if key in work.loads)
    stays = max(units, default=0.0) if laid_out_anew else max((floats, *units))
    return max(0.0, 1.0 / work.imbalance - stays - _ends(work))


def _ends(work: Work) -> float:
    """Share of the time that starting and ending a launch takes."""
    return SHORT / work.duration if work.duration else 0.0


class Predictor:
    """Weighs the candidates of one launch.

    Args:
        calibrated: whether predictions are told as records say they come true; False for the model's own.
    """

    def __init__(self, model: TimeModel, *, calibrated: bool = True) -> None:
        self.model = model
        self._calibrated = calibrated

    @cached_property
    def room(self) -> float | None:
        """Share of the time that has no reason to stay; None where nobody knows, and nothing is calibrated."""
        return room(self.model) if self._calibrated else None

    @cached_property
    def _room_of_tiles(self) -> float | None:
        """The same where a compiler shares out tiles to threads; None elsewhere."""
        return room(self.model, laid_out_anew=True) if compiled_by_triton(self.model.work) else None

    def quick(self, fix: Fix) -> float:
        """What a change saves, without an interval."""
        return self.model.saves(fix)

    def predict(self, variant: Variant) -> Prediction:
        """What one way of fixing saves: as measured elsewhere, else as the model says."""
        if variant.known is not None:
            return Prediction(*variant.known)
        saves = min(self.model.saves(variant.fix), variant.bound)
        stays = min(1.0, self.model.factor("issue", variant.fix))
        found = self._prediction(variant, calibration().around(saves, saves, stays, self.model.misfit), stays)
        if self.model.unloaded is not None:
            return found
        return replace(found, low=min(found.low, max(0.0, self.model.saves_in_turn(variant.fix) - FLOOR)))

    def told(self, variant: Variant, found: Prediction) -> Prediction:
        """What is told of a variant: its prediction calibrated, what was measured elsewhere as it is.

        So is the time that the report measures itself: the wait for the busiest SM, where the same code is shared out
        evenly, and that of stores which stall whole blocks.
        """
        fix = variant.fix
        measured = (
            variant.known is not None or fix.stalled or (fix.imbalance is not None and fix.keep is None)
        )
        if self.room is None or measured:
            return found
        terms = self.model.terms(fix)
        # As in the room: what DRAM and the tensor cores still do takes the time that it takes in practice.
        # DRAM takes as long again to come to its rate, up to what a launch takes to start and end.
        dram = terms.get("dram", 0.0)
        needed = max(terms.get("tensor", 0.0), dram + min(dram, _ends(self.model.work)))
        found = found.at_most(max(0.0, 1.0 - needed))
        room = min(self.room, variant.most, variant.bound)
        stay = self._accesses_stay(fix)
        if not stay and variant.exact and self._room_of_tiles is not None:
            # With its loads and stores all that is done to a tile is laid out and compiled anew; another type, as now.
            room, variant = min(self._room_of_tiles, variant.bound), replace(variant, counted=())
        if stay:
            # What warps execute and move beside what goes stays, so do the launch's start and end: that takes time.
            # What lies in shared memory, and less of it then, is written anew: past L1 all stays.
            keys = terms if fix.resources.get(LINES, 1.0) == 1.0 else BELOW_L1
            busiest = max((terms.get(key, 0.0) for key in keys if key not in ESTIMATED), default=0.0)
            ends = max(0.0, 1.0 - busiest - _ends(self.model.work))
            found, room = found.at_most(ends), min(room, ends)
        # Nor does any rewrite do away with the arithmetic that it leaves, nor with atomics if all of them stay.
        loads = self.model.work.loads
        atomics = ("l2_atomics",) if self.model.factor("l2_atomics", fix) >= 1.0 else ()
        kept = (key for key in (*ARITHMETIC, *atomics) if key in loads)
        needs = max((terms[key] * loads[key].ceiling for key in kept), default=0.0)
        room = min(room, max(found.saves, 1.0 - needs))
        saves, low, high = calibration().of_new_kernels(found.saves, room, found.stays, self.model.misfit)
        # What is known to stay takes as long as ever.
        stays = max((terms[key] for key in variant.counted if key in terms), default=0.0)
        saves = np.minimum(saves, max(found.saves, 1.0 - stays))
        # What is moved still takes the time that it takes at the memory's peak.
        moved = max((terms[key] * loads[key].ceiling for key in NEEDED if key in loads), default=0.0)
        high = np.minimum(high, max(float(saves), 1.0 - moved))
        return self._prediction(variant, (saves, low, high), found.stays)

    def _accesses_stay(self, fix: Fix) -> bool:
        """Whether a change brings more warps, shorter waits, less arithmetic or fewer meetings, and all that is loaded
        and stored stays, or goes to shared memory past the registers.
        """
        accesses = self.model.work.where(
            lambda line: bool(line.space) and not (line.is_store and line.space == "shared")
        )
        same = fix.keep is None or bool((fix.keep[accesses] >= 1.0).all())
        # L1's room for lines under way is no traffic.
        same &= all(fix.resources.get(key, 1.0) == 1.0 for key in (*BELOW_L1, LINK) if key != LINES)
        return same or BARRIER in fix.reasons

    @cached_property
    def _unseen(self) -> bool:
        """Whether there is no code (none in the report, or of a chip that nothing disassembles), or nobody counted how
        often it ran: then who knows?
        """
        work = self.model.work
        return work.worked_out or not any(line.operands for line in work.sass)

    def _prediction(self, variant: Variant, told: tuple[Array, Array, Array], stays: float) -> Prediction:
        saves, low, high = map(float, told)
        return Prediction(saves, 0.0 if variant.up_to or self._unseen else low, high, stays)
