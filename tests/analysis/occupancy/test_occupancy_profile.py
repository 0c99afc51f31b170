"""Occupancy of recorded launches: the numbers that ncu prints, our calculator's beside them, and the reasons."""

from __future__ import annotations

import csv
import dataclasses
import io
import lzma

import pytest
from profiles import launch
from recorded_data import DATA, ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy, _even_share, analyse, of_launch
from gemmprof.model import KernelProfile, LaunchStatistics, NotCollected
from gemmprof.reports.figures.plots import resident_warps

PRINTED = {
    "Theoretical Occupancy": lambda result: result.theoretical_percent,
    "Achieved Occupancy": lambda result: result.achieved_percent,
    "Theoretical Active Warps per SM": lambda result: result.theoretical_warps,
    "Achieved Active Warps Per SM": lambda result: result.achieved_warps,
    "Block Limit Registers": lambda result: limit_of(result, "registers"),
    "Block Limit Shared Mem": lambda result: limit_of(result, "shared_memory"),
    "Block Limit Warps": lambda result: limit_of(result, "warps"),
    "Block Limit SM": lambda result: limit_of(result, "blocks"),
    "Block Limit Barriers": lambda result: limit_of(result, "barriers"),
    "Waves Per SM": lambda result: result.waves,
    "Max Active Clusters": lambda result: result.max_active_clusters or 0,
    "Cluster Occupancy": lambda result: result.cluster_percent or 0,
}
"""Lines of ncu's details page, and where their values are."""


def limit_of(result: LaunchOccupancy, resource: str) -> int:
    return next(limit.blocks for limit in result.block_limits if limit.resource == resource)


def result_of(profile: KernelProfile) -> LaunchOccupancy:
    result = analyse(profile)
    assert isinstance(result, LaunchOccupancy)
    return result


def details(name: str) -> dict[int, dict[str, str]]:
    """What ncu printed, by launch and line."""
    text = lzma.decompress((DATA / f"{name}.details.csv.xz").read_bytes()).decode()
    printed: dict[int, dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO(text[text.index('"ID"') :])):
        if row["Metric Name"] in PRINTED and row["Section Name"] in ("Occupancy", "Launch Statistics"):
            printed.setdefault(int(row["ID"]), {})[row["Metric Name"]] = row["Metric Value"]
    return printed


def test_every_number_is_the_one_that_ncu_prints(report_name: str, recorded: ReadRecorded) -> None:
    printed = details(report_name)
    compared = 0
    for profile in recorded(report_name):
        result = analyse(profile)
        lines = printed.get(profile.index, {})
        if isinstance(result, NotCollected):
            assert "Theoretical Occupancy" not in lines
            continue
        for line, text in lines.items():
            value = PRINTED[line](result)
            assert value is not None, line
            # ncu prints two decimals; whole numbers without.
            decimals = len(text.partition(".")[2])
            assert f"{value:,.{decimals}f}" == text, (profile.name, line)
            compared += 1
    if any("Theoretical Occupancy" in lines for lines in printed.values()):
        assert compared >= 10


@pytest.mark.parametrize(
    ("name", "remedy"), [("modes_range", "--replay-mode kernel"), ("modes_graph", "--graph-profiling node")]
)
def test_several_launches_together_have_no_occupancy(name: str, remedy: str, recorded: ReadRecorded) -> None:
    """What ncu stores as their limits are means: 6.8 blocks for four launches that admit 8 and one that admits 2."""
    (profile,) = recorded(name)
    result = analyse(profile)
    assert isinstance(result, NotCollected)
    assert result.remedy == remedy


def test_the_calculator_gives_the_same_limits_and_occupancy(report_name: str, recorded: ReadRecorded) -> None:
    for profile in recorded(report_name):
        result = analyse(profile)
        if isinstance(result, NotCollected):
            continue
        assert result.agrees is True, profile.name
        slots = result.calculated.limits.max_blocks_per_sm
        ours = dict(result.calculated.block_limits)
        # ncu prints no more blocks than there are slots here.
        ours["barriers"] = min(ours["barriers"], slots)
        assert ours == {limit.resource: limit.blocks for limit in result.block_limits}


CURVES = (
    ("threads_per_block", "launch__occupancy_per_block_size"),
    ("registers_per_thread", "launch__occupancy_per_register_count"),
    ("block_barriers", "launch__occupancy_per_barrier_count"),
)


@pytest.mark.parametrize(("resource", "metric"), CURVES)
def test_curves_are_those_that_ncu_records(
    report_name: str, resource: str, metric: str, recorded: ReadRecorded
) -> None:
    accepted = {"threads_per_block": 1024, "registers_per_thread": 255, "block_barriers": 16}[resource]
    for profile in recorded(report_name):
        instances = profile.instances.get(metric)
        present = of_launch(profile)
        if instances is None or present is None:
            continue
        points = {int(x): warps for x, warps in instances.items() if 1 <= int(x) <= accepted}
        assert len(points) >= 16
        assert points == {x: resident_warps(present, resource, x) for x in points}


def test_the_curve_over_shared_memory_is_the_one_that_ncu_records(recorded: ReadRecorded) -> None:
    compared = 0
    for name in ("flaws_occupancy", "ladder_simple", "flaws_bank_conflicts", "flaws_async_copy"):
        for profile in recorded(name):
            present = of_launch(profile)
            instances = profile.instances["launch__occupancy_per_shared_mem_size"]
            # ncu counts the driver's reserve in x, and a kernel that declares no shared memory ends at 48 KiB.
            reserve = present.limits.reserved_shared_memory_per_block
            last = 232_448 if present.shared_memory_per_block else 49_152
            for x, warps in instances.items():
                if reserve <= int(x) <= last:
                    ours = resident_warps(present, "shared_memory_per_block", int(x) - reserve)
                    assert ours == warps, (profile.name, x)
                    compared += 1
    assert compared > 5_000


def test_what_limits_each_flawed_kernel(recorded: ReadRecorded) -> None:
    big, tiny, registers, odd = (result_of(profile) for profile in recorded("flaws_occupancy"))
    assert big.limited_by == ("shared_memory",)
    assert (big.blocks_per_sm, big.theoretical_percent) == (2, 25.0)
    assert (big.full_waves, big.last_wave_blocks, big.wave_blocks) == (1, 36, 264)
    assert [loss.kind for loss in big.losses] == ["tail"]
    assert any("≤ 76,800 bytes" in str(suggestion) for suggestion in big.suggestions)
    assert tiny.losses[0].kind == "small grid"
    assert "131 of 132 SMs" in tiny.losses[0].text
    assert registers.limited_by == ("registers",)
    assert registers.suggestions[0].change == "≤ 64 registers per thread"
    assert [loss.kind for loss in odd.losses] == ["small grid", "short blocks"]
    assert odd.suggestions == ()


def test_losses_add_up_to_the_difference(report_name: str, recorded: ReadRecorded) -> None:
    for profile in recorded(report_name):
        result = analyse(profile)
        if isinstance(result, NotCollected) or result.achieved_percent is None:
            continue
        difference = result.theoretical_percent - result.achieved_percent
        explained = sum(loss.points for loss in result.losses)
        # Two causes, each left out below one point.
        assert difference - 2 < explained <= difference + 1e-9
        assert all(loss.points >= 1 for loss in result.losses)


def test_short_blocks_are_told_from_uneven_ones(recorded: ReadRecorded) -> None:
    copy = result_of(recorded("flaws_global_access")[0])
    assert copy.block_cycles < 2_000
    assert copy.losses[0].kind == "short blocks"
    uneven = next(
        result_of(profile) for profile in recorded("flaws_atomics") if "shared_cas_max" in profile.name
    )
    assert uneven.losses[0].kind == "imbalance"
    assert "SMs were busy for 14,878 to 70,023 cycles" in uneven.losses[0].text


def test_clusters_are_reported_where_there_are_any(recorded: ReadRecorded) -> None:
    result = result_of(recorded("flaws_cluster")[0])
    assert (result.max_active_clusters, result.cluster_percent) == (528, 25.0)
    assert result.calculated.cluster_size == 2
    assert result.calculated.max_active_clusters(132) == result.max_active_clusters
    assert result_of(recorded("ladder_simple")[0]).max_active_clusters is None


def test_what_was_not_collected_is_none_and_named(recorded: ReadRecorded) -> None:
    result = result_of(recorded("partial_two_metrics")[0])
    assert result.achieved_percent is None
    assert result.losses == ()
    assert result.theoretical_percent == 100.0
    assert metrics.ACHIEVED_OCCUPANCY in result.missing.metrics
    assert "--section Occupancy" in result.missing.remedy


def test_a_report_without_occupancy_says_how_to_collect_it(recorded: ReadRecorded) -> None:
    profile = recorded("ladder_simple")[0]
    kept = {
        name: value
        for name, value in profile.metrics.items()
        if "occupancy" not in name and "warps" not in name
    }
    result = analyse(dataclasses.replace(profile, metrics=kept))
    assert isinstance(result, NotCollected)
    assert metrics.BLOCK_LIMIT_REGISTERS in result.metrics


def test_an_unknown_architecture_keeps_ncus_numbers(recorded: ReadRecorded) -> None:
    profile = recorded("flaws_occupancy")[0]
    device = dataclasses.replace(profile.device, compute_capability=(99, 0))
    result = result_of(dataclasses.replace(profile, device=device))
    assert (result.calculated, result.agrees, result.suggestions) == (None, None, ())
    assert (result.blocks_per_sm, result.theoretical_percent) == (2, 25.0)


@pytest.mark.parametrize(
    ("blocks", "share"),
    [
        (4 * 8, 1.0),  # two whole waves
        (4 * 8 + 1, 33 / (2 * (5 + 3 * 4))),  # one SM runs a third round for one block more
        (5, 5 / (2 * 4)),  # an SM holds two of them, three SMs one
        (3, 3 / (2 * 3)),  # an SM without a block does not count
        (0, 0.0),
    ],
)
def test_blocks_of_equal_length_spread_evenly(blocks: int, share: float) -> None:
    """On four SMs that hold two blocks each."""
    assert _even_share(blocks, 4, 2) == pytest.approx(share, abs=1e-12)


def made(threads: int = 64, **more: float) -> KernelProfile:
    """A launch of 264 blocks on 132 SMs, of which each holds two, half of the warp slots."""
    limits = dict.fromkeys(metrics.OCCUPANCY.required[1:], 2.0)
    numbers = {**limits, metrics.THEORETICAL_OCCUPANCY: 50.0, metrics.SM_COUNT: 132.0, **more}
    profile = launch(numbers)
    return dataclasses.replace(profile, launch=LaunchStatistics((264, 1, 1), (threads, 1, 1)))


@pytest.mark.parametrize(("threads", "warps"), [(64, 2), (65, 3), (33, 2), (32, 1)])
def test_how_long_a_block_lives_counts_the_last_warp_whole(threads: int, warps: int) -> None:
    result = result_of(made(threads, **{metrics.ACHIEVED_WARPS: 4.0, metrics.SM_ACTIVE_CYCLES: 30_000.0}))
    assert result.block_cycles == pytest.approx(4 * 30_000 * 132 / (264 * warps))


@pytest.mark.parametrize(("fewest", "told"), [(89.0, True), (91.0, False)])
def test_imbalance_names_the_cycles_of_the_sms_where_they_differ(fewest: float, told: bool) -> None:
    more = {metrics.ACTIVE_CYCLES_MIN: fewest, metrics.ACTIVE_CYCLES_MAX: 100.0}
    (loss,) = result_of(made(**{metrics.ACHIEVED_OCCUPANCY: 40.0, **more})).losses
    assert (loss.kind, loss.points) == ("imbalance", pytest.approx(10))
    assert (f"busy for {fewest:.0f} to 100 cycles" in loss.text) is told


def test_differences_below_a_point_have_no_reason() -> None:
    assert not result_of(made(**{metrics.ACHIEVED_OCCUPANCY: 49.1})).losses
