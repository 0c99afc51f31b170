"""Reports without code and samples: what launch statistics and busy units alone tell of a training step's kernels."""

from __future__ import annotations

import pytest
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.explanation.engine import explain
from gemmprof.model import Explanation


@pytest.fixture(scope="module")
def step(recorded: ReadRecorded) -> dict[int, Explanation]:
    return {profile.index: explain(profile) for profile in recorded("train_100")}


def test_four_blocks_are_a_small_grid_though_no_unit_was_busy(step: dict[int, Explanation]) -> None:
    """The busiest SM worked 44 times as long as the average one: what it waited for is latency."""
    first = step[66].findings[0]
    assert first.cause == "small_grid" and first.saves > 0.6
    assert "4 leave 128 of 132 SMs" in first.change
    assert first.evidence[0].metric == metrics.GRID_SIZE


def test_a_small_grid_is_not_told_as_overhead_of_the_launch(step: dict[int, Explanation]) -> None:
    """32 blocks, 31 % of 7.6 us without a working SM: what torch's launches stand between tells the program."""
    assert [finding.cause for finding in step[64].findings] == ["small_grid"]


def test_blocks_that_do_not_divide_by_the_sms(step: dict[int, Explanation]) -> None:
    """192 blocks in one wave: 60 SMs run two, 72 run one; no work is to be sorted."""
    (finding,) = step[13].findings
    assert finding.cause == "tail_effect" and "1.45 for each of 132 SMs" in finding.change
    assert finding.saves_low < 1 - 1 / 1.21 < finding.saves_high


def test_latency_by_elimination_is_the_limit_but_nothing_is_at_it(step: dict[int, Explanation]) -> None:
    assert step[3].time[0].resource == "exposed latency"
    assert all(one.at_limit is None for one in step.values())


def test_one_block_in_words(step: dict[int, Explanation]) -> None:
    assert "1 leaves 131 of 132 SMs" in next(
        finding.change for finding in step[77].findings if finding.cause == "small_grid"
    )
