"""Reports without code and samples: what launch statistics and busy units alone tell of a training step's kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_code import made
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.causes.grid import cut_finer
from gemmprof.analysis.explanation.causes.unseen import unseen_passes
from gemmprof.analysis.explanation.demands.rounds import straight_way, with_counts
from gemmprof.analysis.explanation.demands.time_model import LINK, Fix, TimeModel
from gemmprof.analysis.explanation.demands.traffic import traffic
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.explanation.prediction import FLOOR, Predictor
from gemmprof.model import Explanation


@pytest.fixture(scope="module")
def step(recorded: ReadRecorded) -> dict[int, Explanation]:
    return {profile.index: explain(profile) for profile in recorded("train_100")}


def test_four_blocks_are_a_small_grid_though_no_unit_was_busy(step: dict[int, Explanation]) -> None:
    """The busiest SM worked 44 times as long as the average one: what it waited for is latency."""
    first = step[66].findings[0]
    assert first.cause == "small_grid" and first.saves > 0.5
    assert "4 blocks leave 128 of 132 SMs" in first.change
    assert first.evidence[0].metric == metrics.GRID_SIZE


def test_a_small_grid_is_not_told_as_overhead_of_the_launch(step: dict[int, Explanation]) -> None:
    """32 blocks, 31 % of 7.6 us without a working SM: what torch's launches stand between tells the program."""
    assert [finding.cause for finding in step[64].findings] == ["small_grid"]


def test_a_thread_that_does_one_thing_is_not_cut_finer(recorded: ReadRecorded) -> None:
    """No counter says it of a basic report, but its code does: no loop deals anything out, nor does a call."""
    more = Fix(warps=2.0)
    straight, rounds = (
        work(recorded(name, source=True)[0]) for name in ("modes_graph_nodes", "partial_basic")
    )
    assert straight.program is None and cut_finer(straight, more) == Fix()
    assert rounds.program is None and cut_finer(rounds, more) == more


def test_until_all_blocks_have_started_an_sm_is_not_full(recorded: ReadRecorded) -> None:
    """Places that stay empty for less than a launch takes to start and end tell nothing of how even its work is."""
    launch = recorded("partial_detailed")[1]
    resident = {metrics.ACHIEVED_OCCUPANCY: 0.6 * (launch.number(metrics.ACHIEVED_OCCUPANCY) or 0.0)}
    told = []
    for duration in (9e3, 9e4):
        taken = replace(launch, metrics={**launch.metrics, **resident, metrics.DURATION: duration})
        told.append("workload_imbalance" in {one.cause for one in explain(taken).findings})
    assert told == [False, True]


def test_blocks_that_do_not_divide_by_the_sms(step: dict[int, Explanation]) -> None:
    """192 blocks in one wave: 60 SMs run two, 72 run one; no work is to be sorted."""
    (finding,) = step[13].findings
    assert finding.cause == "tail_effect" and "1.45 for each of 132 SMs" in finding.change
    assert finding.saves_low < 1 - 1 / 1.21 < finding.saves_high


def test_latency_by_elimination_is_the_limit_but_nothing_is_at_it(step: dict[int, Explanation]) -> None:
    assert step[3].time[0].resource == "exposed latency"
    assert all(one.at_limit is None for one in step.values())


def test_one_block_in_words(step: dict[int, Explanation]) -> None:
    assert "1 block leaves 131 of 132 SMs" in next(
        finding.change for finding in step[77].findings if finding.cause == "small_grid"
    )


def test_blocks_of_one_thread_are_named_first(recorded: ReadRecorded) -> None:
    profile = recorded("train_100")[1]
    alone = replace(
        profile,
        name="copy(float*)",
        launch=replace(profile.launch, block=(1, 1, 1)),
        metrics={**profile.metrics, metrics.BLOCK_SIZE: 1},
    )
    first = explain(alone).findings[0]
    assert first.cause == "idle_threads" and "blocks of 1 thread leave 97 %" in first.change


def test_what_warps_wait_for_was_not_seen_so_that_more_of_them_may_bring_less(recorded: ReadRecorded) -> None:
    """If no two units ever worked at once, less of the time is waiting: that is the interval's lower end."""
    profile = recorded("train_100")[2]
    model = TimeModel(work(profile))
    more = Variant("warps", Fix(warps=2.0))
    assert model.unloaded is None and 0.0 < model.saves_in_turn(more.fix) < model.saves(more.fix)
    assert Predictor(model).predict(more).low == 0.0 < model.saves(more.fix) - FLOOR


def test_what_dram_moved_follows_from_how_busy_it_was_where_nobody_counted_bytes(
    recorded: ReadRecorded,
) -> None:
    launch = max(
        recorded("flaws_global_access"), key=lambda one: one.number(metrics.DRAM_READ_BYTES[0]) or 0.0
    )
    names = {*metrics.DRAM_READ_BYTES, *metrics.DRAM_WRITE_BYTES}
    bare = replace(launch, metrics={name: one for name, one in launch.metrics.items() if name not in names})
    counted, told = traffic(work(launch)), traffic(work(bare))
    assert told.dram_read + told.dram_written == pytest.approx(
        counted.dram_read + counted.dram_written, rel=0.15
    )
    # A load that L1 fetches a quarter of asks DRAM for no more.
    assert told.factors(0.25 * told.dram_read, told.written)["dram"] < 0.5


LADDER = ["uncoalesced_access", "redundant_loads", "shared_memory_bandwidth"]


def test_how_often_code_ran_follows_from_the_launchs_totals(recorded: ReadRecorded) -> None:
    """A report of the basic set holds the code, and no count of any instruction."""
    launches = recorded("ladder_simple", source=True)
    for launch, cause in zip(launches[:3], LADDER, strict=True):
        whole, counted = explain(launch), work(launch)
        bare = replace(launch, instances={})
        made = with_counts(bare)
        assert made.worked_out and not counted.worked_out
        assert abs(made.executed - counted.executed).sum() < 0.05 * counted.executed.sum()
        assert abs(made.global_sectors - counted.global_sectors).sum() < 0.05 * counted.global_sectors.sum()
        assert (
            abs(made.shared_wavefronts - counted.shared_wavefronts).sum() <= 0.05 * counted.data_passes.sum()
        )
        told = explain(bare)
        assert [told.findings[0].cause, whole.findings[0].cause] == [cause, cause]
        assert told.findings[0].saves_low == 0.0 and any("is worked out" in line for line in told.trust)


def test_a_basic_report_says_what_its_code_does(recorded: ReadRecorded) -> None:
    assert [explain(one).findings[0].cause for one in recorded("partial_basic", source=True)[:3]] == LADDER


@pytest.mark.parametrize("unit", ["alu", "lsu", "l1_data", "issue"])
def test_rounds_that_another_counter_does_not_know_are_not_told(recorded: ReadRecorded, unit: str) -> None:
    """As where half of the warps take another way through the code."""
    launch = replace(recorded("ladder_simple", source=True)[0], instances={})
    halved = {
        name: 0.5 * (launch.number(name) or 0.0) for name in metrics.BUSY[unit] if name in launch.metrics
    }
    assert halved and not with_counts(replace(launch, metrics={**launch.metrics, **halved})).worked_out


@pytest.mark.parametrize(("launch", "told"), [(0, True), (1, False), (2, False)])
def test_passes_a_request_tell_where_rounds_do_not(recorded: ReadRecorded, launch: int, told: bool) -> None:
    """L1 at its limit by requests of many passes: not where one is enough, nor where shared memory takes some."""
    profile = replace(recorded("ladder_simple", source=True)[launch], instances={})
    other = dict.fromkeys(metrics.BUSY["alu"], 99.0) | {metrics.BUSY["l1_data"][0]: 99.0}
    found = with_counts(replace(profile, metrics={**profile.metrics, **other}))
    assert not found.worked_out and bool(list(unseen_passes(found))) is told


def test_what_loaded_values_decide_is_not_worked_out(recorded: ReadRecorded) -> None:
    """Bins that data name are updated: how many lanes meet there no code tells."""
    assert not any(
        with_counts(replace(one, instances={})).worked_out for one in recorded("flaws_atomics", source=True)
    )


def test_what_loaded_values_place_takes_the_passes_that_are_left(recorded: ReadRecorded) -> None:
    """A table is read where another array says: how many lines a warp meets there is what L1 did beside the rest."""
    launch = next(one for one in recorded("pairs/reuse", source=True) if "lookup" in one.name)
    made, counted = with_counts(replace(launch, instances={})), work(launch)
    assert made.worked_out
    assert abs(made.executed - counted.executed).sum() < 0.02 * counted.executed.sum()
    assert abs(made.global_sectors - counted.global_sectors).sum() < 0.02 * counted.global_sectors.sum()
    assert counted.global_tags.sum() < made.global_tags.sum() < 1.25 * counted.global_tags.sum()


def test_a_way_leads_to_the_loop_where_what_falls_through_ends() -> None:
    """A product whose depth may be 0 stores zeros and ends; a jump leads to its rounds."""
    code = made(
        "@P0 BRA 0x000040 ;", "MOV R4, RZ ;", "STG.E [R2], R4 ;", "EXIT ;",
        "FFMA R4, R4, R4, R4 ;", "@P1 BRA 0x000040 ;", "STG.E [R2], R4 ;", "EXIT ;", "BRA 0x000080 ;",
    ).code  # fmt: skip
    assert straight_way(code).tolist() == [True, *3 * [False], *4 * [True], False]


def test_loads_of_the_host_s_memory_wait_in_its_term_alone(recorded: ReadRecorded) -> None:
    """No warp was sampled: what no unit was busy with is the link's, which all of it waits for."""
    found = next(one for one in recorded("flaws_other_memory") if one.function_name == "host_memory")
    sampled = ("pcsamp", "issue_stalled", "average_warp")
    kept = {name: one for name, one in found.metrics.items() if not any(word in name for word in sampled)}
    model = TimeModel(work(replace(found, metrics=kept, instances={})))
    assert model.unloaded is None and model.rest == 0.0 and model.saves(Fix(resources={LINK: 0.0})) > 0.5
