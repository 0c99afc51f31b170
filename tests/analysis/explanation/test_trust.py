"""The trust lines: each stands where its number says so, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.explanation.trust import doubts
from gemmprof.model import KernelProfile, MetricValue


@pytest.fixture
def sound(recorded: ReadRecorded) -> KernelProfile:
    return next(p for p in recorded("ladder_simple", source=True) if p.function_name == "gemm_shared")


def lines(profile: KernelProfile, changed: Mapping[str, MetricValue]) -> list[str]:
    return list(doubts(work(replace(profile, metrics={**profile.metrics, **changed}))))


def scaled(profile: KernelProfile, name: str, factor: float) -> dict[str, MetricValue]:
    value = profile.number(name)
    assert value
    return {name: value * factor}


def test_a_sound_report_needs_no_word(sound: KernelProfile) -> None:
    assert lines(sound, {}) == []


@pytest.mark.parametrize(
    ("metric", "little", "much", "words"),
    [
        (metrics.SM_CLOCK, 1.05, 1.2, "Clocks drifted between the passes"),
        (metrics.ELAPSED_CYCLES, 1.05, 1.2, "Its passes disagree: gpc__cycles_elapsed.max"),
        (metrics.SM_ACTIVE_CYCLES, 0.95, 0.8, "Its passes disagree: sm__cycles_active.avg"),
        (metrics.INSTRUCTIONS_EXECUTED, 0.95, 0.4, "Its passes disagree: "),
        (metrics.CYCLES_PER_ISSUE, 1.05, 1.2, "The warp states add up to"),
        (metrics.CYCLES_PER_ISSUE, 0.95, 0.8, "The warp states add up to"),
    ],
)
def test_what_does_not_belong_together(
    sound: KernelProfile, metric: str, little: float, much: float, words: str
) -> None:
    assert lines(sound, scaled(sound, metric, little)) == []
    (line,) = lines(sound, scaled(sound, metric, much))
    assert line.startswith(words)


def test_few_samples_and_lost_ones(sound: KernelProfile) -> None:
    assert lines(sound, {metrics.SAMPLE_COUNT: 300.0}) == []
    (few,) = lines(sound, {metrics.SAMPLE_COUNT: 299.0})
    assert few.startswith("Too short to sample well: 299 samples.")
    (lost,) = lines(sound, {metrics.SAMPLES_DROPPED_BYTES: 4096.0})
    assert lost.startswith("The sampler's buffer overflowed (4,096 bytes lost)")


def test_a_clock_far_below_the_card_s(sound: KernelProfile) -> None:
    clock = sound.number(metrics.SM_CLOCK)
    assert clock
    for share, told in ((0.65, False), (0.55, True)):
        card = replace(sound.device, max_clock_hz=clock / share)
        found = list(doubts(work(replace(sound, device=card))))
        assert any(line.startswith("The SMs ran at") for line in found) is told


def test_counters_that_are_no_numbers_are_counted(sound: KernelProfile) -> None:
    (line,) = lines(sound, {"sm__made_up.sum": math.nan, "lts__made_up.sum": math.inf})
    assert line.startswith("2 counters are not a number") and "sm__made_up.sum among them" in line
    assert lines(sound, {"sm__made_up.ratio": math.nan, "device__attribute_made_up": math.nan}) == []


def test_more_than_a_peak(sound: KernelProfile) -> None:
    name = "sm__made_up.avg.pct_of_peak_sustained_elapsed"
    assert lines(sound, {name: 101.0}) == []
    (line,) = lines(sound, {name: 196.0})
    assert line.startswith(f"{name} is 196 % of its peak")


def test_a_range_is_told_before_all_else(sound: KernelProfile) -> None:
    first, *_ = doubts(work(replace(sound, workload="range", doubts=("it contradicts itself",))))
    assert first.startswith("This is a range of several launches")
    first, *_ = doubts(work(replace(sound, doubts=("it contradicts itself",))))
    assert first == "It contradicts itself."


def test_the_launch_alone_tells_its_limits_in_words(sound: KernelProfile) -> None:
    first, second, *_ = lines(
        replace(sound, instances={}), {metrics.ACHIEVED_WARPS: "", metrics.ACHIEVED_OCCUPANCY: ""}
    )
    assert first.startswith("Not collected:")
    assert second.startswith(
        "Known from the launch alone: registers and warp slots let 64 warps on an SM (100 %)"
    )
    values = {metrics.ACHIEVED_WARPS: "", metrics.ACHIEVED_OCCUPANCY: "", metrics.WAVES_PER_SM: 0.001}
    _, second, *_ = lines(replace(sound, instances={}), values)
    assert second.endswith("and the grid is less than 0.01 waves.")
