"""Speed of light, scheduler, launch and advice: thresholds, fallbacks and order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asked import analysed
from profiles import launch
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.sections import launch_statistics, rules, scheduler, speed_of_light
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.model import Device, KernelProfile, LaunchStatistics, MetricValue, NotCollected, RuleResult


def profile(values: dict[str, MetricValue] | None = None, *advice: RuleResult) -> KernelProfile:
    shape = LaunchStatistics((3, 2, 1), (50, 2, 1), waves_per_sm=4.0)
    return replace(launch(values), device=Device("GPU", (9, 0), sm_count=132), launch=shape, rules=advice)


@pytest.mark.parametrize(
    ("sm", "memory", "waves", "title"),
    [
        (80.0, 0.0, 5.0, "High Throughput"),
        (0.0, 95.0, 0.1, "High Throughput"),
        (79.9, 65.0, 5.0, "High Compute Throughput"),
        (65.0, 75.0, 5.0, "High Memory Throughput"),
        (65.0, 74.9, 5.0, "Balanced Throughput"),
        (60.0, 5.0, 0.1, "High Compute Throughput"),
        (59.9, 59.9, 1.0, "Latency Issue"),
        (59.9, 59.9, 0.9, "Small Grid"),
        (1.0, 1.0, None, "Latency Issue"),
    ],
)
def test_bottleneck(sm: float, memory: float, waves: float | None, title: str) -> None:
    bottleneck = speed_of_light.classify(sm, memory, waves)
    assert bottleneck.title == title
    assert f"compute {sm:.1f} %, memory {memory:.1f} %" in bottleneck.message


def test_breakdown_is_read_from_the_report() -> None:
    values: dict[str, MetricValue] = {
        metrics.SM_THROUGHPUT: 40.0,
        metrics.MEMORY_THROUGHPUT: 20.0,
        metrics.BREAKDOWN_SM: "sm__pipe_tc_cycles_active.avg.x, sm__new_unit.avg.x,,idc__requests.avg.x",
        "sm__pipe_tc_cycles_active.avg.x": 40.0,
        "idc__requests.avg.x": 1.5,
    }
    light = analysed(speed_of_light, profile(values))
    assert [(e.label, e.unit, e.percent) for e in light.sm_breakdown] == [
        ("SM: Pipe Tc Cycles Active", "tensor cores", 40.0),
        ("IDC: Requests", "constant cache", 1.5),
        ("SM: New Unit", "", None),
    ]
    assert light.memory_breakdown == ()
    assert light.limiting_breakdown is light.sm_breakdown


def test_scheduler_from_the_rate_alone() -> None:
    result = analysed(scheduler, profile({metrics.ISSUE_ACTIVE: 0.25}))
    assert (result.one_or_more_eligible_percent, result.no_eligible_percent) == (25.0, 75.0)
    assert result.cycles_per_issue == 4.0
    assert result.active_warps is None


def test_scheduler_that_never_issued() -> None:
    result = analysed(scheduler, profile({metrics.ISSUE_ACTIVE: 0.0}))
    assert result.cycles_per_issue is None


def test_occupancy_alone_says_nothing_of_the_scheduler() -> None:
    assert isinstance(scheduler.analyse(profile({metrics.WARPS_MAX_PER_SCHEDULER: 16.0})), NotCollected)


def test_busy_slots_of_either_version_of_ncu() -> None:
    base = {metrics.ISSUE_ACTIVE: 0.5}
    old = scheduler.analyse(
        profile({**base, metrics.ISSUE_SLOTS_BUSY_ACTIVE: 40.0, metrics.SM_BUSY_ACTIVE: 41.0})
    )
    new = scheduler.analyse(profile({**base, metrics.ISSUE_SLOTS_BUSY: 30.0, metrics.SM_BUSY: 31.0}))
    assert isinstance(old, Scheduler) and isinstance(new, Scheduler)
    assert (old.issue_slots_busy_percent, old.sm_busy_percent) == (40.0, 41.0)
    assert (new.issue_slots_busy_percent, new.sm_busy_percent) == (30.0, 31.0)


def test_launch_of_a_bare_report() -> None:
    result = launch_statistics.analyse(profile())
    assert (result.blocks, result.threads_per_block, result.threads) == (6, 100, 600)
    assert (result.warps_per_block, result.idle_lanes) == (4, 28)
    assert result.sm_count == 132
    assert result.registers_per_thread is None and result.stack_bytes is None
    assert result.missing is not None and result.missing.remedy == "--section LaunchStats"


def advice(name: str, speedup: float | None, scope: str | None, severity: str = "optimization") -> RuleResult:
    return RuleResult(name, "S", name, f"{name} message", severity, speedup, scope)


def test_advice_is_ordered_and_empty_results_are_left_out() -> None:
    items = (
        advice("note", None, None, "ok"),
        advice("local", 50.0, "local"),
        RuleResult("empty", "S", "", "", "none"),
        advice("global", 50.0, "global"),
        advice("zero", 0.0, "global"),
        advice("warning", None, None, "warning"),
        advice("largest", 60.0, "local"),
    )
    result = analysed(rules, profile(None, *items))
    names = ["largest", "global", "local", "zero", "warning", "note"]
    assert [item.rule for item in result.items] == names
    assert result.best is not None and result.best.rule == "global"


def test_no_rule_result_is_not_the_same_as_no_advice(recorded: ReadRecorded) -> None:
    with_rules = recorded("ladder_simple")[0]
    without = rules.analyse(replace(with_rules, rules=()))
    assert isinstance(without, NotCollected) and "--apply-rules" in without.remedy
    nothing_to_say = analysed(rules, profile(None, RuleResult("empty", "S", "", "", "none")))
    assert nothing_to_say.items == () and nothing_to_say.best is None


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Look at @section:LaunchStats:Launch Statistics@ now.", "Look at Launch Statistics now."),
        ("See @url:the guide:https://a.b/c#d@.", "See the guide (https://a.b/c#d)."),
        ("A mail@address stays.", "A mail@address stays."),
    ],
)
def test_links_in_messages(message: str, text: str) -> None:
    assert rules.plain_text(message) == text


def test_a_range_has_the_largest_figures_of_its_launches(recorded: ReadRecorded) -> None:
    """Five launches: grids from 4 to 4096 blocks, blocks of 256 threads and once 1024."""
    (profile,) = recorded("modes_range")
    result = launch_statistics.analyse(profile)
    assert (result.launches, result.blocks, result.threads_per_block) == (5, 4096, 1024)
    # Not the product: no launch has both the largest grid and the largest block.
    assert result.threads == 4096 * 256
    assert (result.grid, result.block) == ((4096, 1, 1), (1024, 1, 1))


def test_what_a_graph_allows_its_schedulers_is_unknown(recorded: ReadRecorded) -> None:
    """ncu stores 1 warp a scheduler, where 43 warps were active on an SM of four."""
    (profile,) = recorded("modes_graph")
    assert profile.metrics[metrics.WARPS_THEORETICAL_PER_SCHEDULER] == 1
    achieved = profile.number(metrics.ACHIEVED_WARPS)
    assert achieved is not None and achieved / 4 > 1
    result = analysed(scheduler, replace(profile, metrics={**profile.metrics, metrics.ISSUE_ACTIVE: 0.5}))
    assert result.theoretical_warps is None
