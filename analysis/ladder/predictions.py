"""What `explain` predicted on one stage, beside what the next stage brought.

A stage is written to fix something of the stage before. Which finding that was is read from the two explanations
alone: the one whose predicted saving shrank most. Those that ask for another arithmetic do not count: a ladder keeps
its type. What came out is from the times, which neither explanation knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemmprof.gpu.dtypes import FLOAT32
from gemmprof.model import Explanation, Finding, Stage, Timing

LEAST = 0.02  # a saving that shrank by less than this share of the time is not taken for fixed
# Causes that no stage of the same ladder can fix: the first of them only if its operands are FP32.
ANOTHER_ARITHMETIC = frozenset({"tensor_cores_idle", "double_precision"})


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One step of a ladder on one problem."""

    # before, after: the two stages
    before: Stage
    after: Stage
    fixed: Finding | None  # the finding of the first whose saving shrank most in the second, None if none did
    came_out: float  # share of the first's time that the second saved, as timed; negative if it is slower

    @property
    def held(self) -> bool | None:
        """Whether what came out lies in the prediction's interval; None without a prediction."""
        return None if self.fixed is None else self.fixed.came(self.came_out) == "as"


@dataclass(frozen=True, slots=True)
class Rung:
    """A stage with its explanation, and how it was timed outside the profiler."""

    stage: Stage
    explanation: Explanation
    timing: Timing


def steps(rungs: Sequence[Rung]) -> tuple[LadderStep, ...]:
    """The steps from each rung to the next, in the order given."""
    both = ((one, other, _saved(one.timing, other.timing)) for one, other in pairwise(rungs))
    return tuple(LadderStep(one.stage, other.stage, _fixed(one, other), saved) for one, other, saved in both)


def _saved(first: Timing, second: Timing) -> float:
    """Share of the first's time that the second saved, each held against the yardstick that it took turns with.

    Clocks move between two measurements where a kernel draws all the power that the card grants, but not between turns.
    """
    one, other = first.of_yardstick, second.of_yardstick
    return 1.0 - (one / other if one and other else second.median / first.median)


def _fixed(first: Rung, second: Rung) -> Finding | None:
    # 16-bit operands keep their type on tensor cores; FP32 becomes TF32 there.
    keeps = FLOAT32.name not in first.stage.dtypes
    another = ANOTHER_ARITHMETIC - {"tensor_cores_idle"} if keeps else ANOTHER_ARITHMETIC
    left = {finding.cause: finding.saves for finding in second.explanation.findings}
    found = [finding for finding in first.explanation.findings if finding.cause not in another]
    shrunk = [(one.saves - left.get(one.cause, 0.0), place, one) for place, one in enumerate(found)]
    most = max(shrunk, key=lambda item: (item[0], -item[1]), default=None)
    return most[2] if most is not None and most[0] >= LEAST else None
