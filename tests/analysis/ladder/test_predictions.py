from __future__ import annotations

from dataclasses import replace

import pytest
from recorded_data import ReadRecorded

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.ladder.predictions import ANOTHER_ARITHMETIC, Rung, steps
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import Timing

SECONDS = (4.3e-3, 0.34e-3, 0.235e-3)


def timed(seconds: float, yardstick: float | None = None) -> Timing:
    return Timing(seconds, seconds, seconds, seconds, 5, None, yardstick)


@pytest.fixture(scope="module")
def rungs(recorded: ReadRecorded) -> tuple[Rung, ...]:
    """Naive, coalesced and shared-memory tiling, explained from their reports."""
    explained = map(explain, recorded("ladder_simple", source=True))
    return tuple(map(Rung, SINGLE.stages[1:4], explained, map(timed, SECONDS)))


def test_the_finding_that_a_stage_mends_is_the_one_that_shrank(rungs: tuple[Rung, ...]) -> None:
    first, second = steps(rungs)
    assert first.fixed is not None and first.fixed.cause == "uncoalesced_access"
    assert first.fixed is rungs[0].explanation.findings[0]
    assert second.fixed is not None and second.fixed.cause == "redundant_loads"


def test_what_came_out_is_from_the_times_alone(rungs: tuple[Rung, ...]) -> None:
    assert [step.came_out for step in steps(rungs)] == pytest.approx([1 - 0.34 / 4.3, 1 - 0.235 / 0.34])
    slower = replace(rungs[1], timing=timed(8.6e-3))
    step = steps((rungs[0], slower))[0]
    assert step.came_out == pytest.approx(-1.0) and step.held is False
    assert step.fixed == steps(rungs)[0].fixed, "times choose no finding"


def test_times_are_held_against_the_yardstick_of_their_own_turns(rungs: tuple[Rung, ...]) -> None:
    """The second ran at nine tenths of the first's clock, and so did its yardstick."""
    fast, slow = (
        replace(rungs[0], timing=timed(*pair)) for pair in ((1.0e-3, 0.8e-3), (0.9e-3, 0.8e-3 / 0.9))
    )
    assert steps((fast, slow))[0].came_out == pytest.approx(1 - 0.9 * 0.9)


def test_without_a_finding_that_shrank_nothing_was_predicted(rungs: tuple[Rung, ...]) -> None:
    step = steps((rungs[0], replace(rungs[0], timing=timed(2e-3))))[0]
    assert step.fixed is None and step.held is None


def test_another_arithmetic_is_no_step_of_a_ladder(rungs: tuple[Rung, ...]) -> None:
    assert set(CAUSES) > ANOTHER_ARITHMETIC
    finding = replace(rungs[0].explanation.findings[0], cause="tensor_cores_idle")
    only = replace(rungs[0], explanation=replace(rungs[0].explanation, findings=(finding,)))
    assert steps((only, rungs[1]))[0].fixed is None


@pytest.mark.parametrize(("left", "fixed"), [(0.019, False), (0.021, True)])
def test_a_saving_that_shrank_a_little_is_not_fixed(
    left: float, fixed: bool, rungs: tuple[Rung, ...]
) -> None:
    finding = rungs[0].explanation.findings[0]
    before, after = (
        replace(
            rungs[0],
            explanation=replace(rungs[0].explanation, findings=(replace(finding, saves=saves),)),
        )
        for saves in (0.3, 0.3 - left)
    )
    assert (steps((before, after))[0].fixed is not None) is fixed
