"""Comparisons of two launches, and the pairs of two sessions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import CUBE, LADDER, make_run
from profiles import launch
from recorded_data import DATA, ReadRecorded

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.comparison.outcome import Compared, compare, compare_launches
from gemmprof.analysis.comparison.records import Change
from gemmprof.analysis.comparison.sides import chosen, load_side, rungs
from gemmprof.base.errors import UsageError
from gemmprof.model import Timing


def change(before: float | None, after: float | None, better: str = "lower", whole: float = 0.0) -> Change:
    return Change("x", "X", "time", "", before, after, better, whole)


class TestChange:
    @pytest.mark.parametrize(
        ("before", "after", "better", "verdict", "arrow"),
        [
            (2.0, 1.0, "lower", "better", "↓"),
            (1.0, 2.0, "lower", "worse", "↑"),
            (1.0, 2.0, "higher", "better", "↑"),
            (2.0, 1.0, "higher", "worse", "↓"),
            (1.0, 2.0, "neither", "changed", "↑"),
            (1.0, 1.004, "lower", "same", "→"),
            (0.0, 0.0, "lower", "same", "→"),
            (0.0, 5.0, "lower", "worse", "↑"),
            (None, 5.0, "lower", "unknown", "?"),
            (5.0, None, "higher", "unknown", "?"),
        ],
    )
    def test_verdict(
        self, before: float | None, after: float | None, better: str, verdict: str, arrow: str
    ) -> None:
        found = change(before, after, better)
        assert (found.verdict, found.arrow) == (verdict, arrow)

    def test_halving_and_doubling_rank_alike(self) -> None:
        assert change(2.0, 1.0).magnitude == change(1.0, 2.0).magnitude == 0.5
        assert change(0.0, 3.0).magnitude == 1.0
        assert change(2.0, 1.0, whole=100).magnitude == pytest.approx(0.01)
        assert change(None, 1.0).magnitude == 0.0

    def test_a_small_part_of_the_whole_is_no_change(self) -> None:
        assert change(0.0, 9.0, whole=42e6).verdict == "same"
        assert change(0.0, 9.0, whole=100).verdict == "worse"

    def test_ratio_needs_both_sides(self) -> None:
        assert change(2.0, 3.0).ratio == 1.5
        assert change(0.0, 3.0).ratio is None
        assert change(3.0, None).ratio is None


def ladder(recorded: ReadRecorded) -> list[kernel_analysis.KernelAnalysis]:
    return [kernel_analysis.analyse(profile) for profile in recorded("ladder_simple")]


def timing(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds, seconds, 9)


def side_by_side(
    before: kernel_analysis.KernelAnalysis,
    after: kernel_analysis.KernelAnalysis,
    timings: tuple[Timing | None, Timing | None] = (None, None),
) -> Compared:
    return compare_launches(("before", before, timings[0]), ("after", after, timings[1]))


class TestCompare:
    def test_coalescing_shows(self, recorded: ReadRecorded) -> None:
        naive, coalesced, _ = ladder(recorded)
        result = side_by_side(naive, coalesced)
        assert (result.label, result.caution) == ("before → after", "")
        duration, sectors = result.change("duration"), result.change("l1_bytes")
        assert duration.verdict == "better"
        assert sectors.ratio == pytest.approx(5 / 33)
        executed = result.change("executed")
        assert executed is not None and executed.verdict == "same"
        assert result.change("time") is None
        worst = [c.magnitude for c in result.ranked("worse")]
        best = [c.magnitude for c in result.ranked("better")]
        assert worst == sorted(worst, reverse=True) and best == sorted(best, reverse=True)
        assert {c.verdict for c in result.ranked("worse")} == {"worse"}

    def test_using_shared_memory_is_no_fault(self, recorded: ReadRecorded) -> None:
        _, coalesced, shared = ladder(recorded)
        result = side_by_side(coalesced, shared)
        judged = {c.name: c.verdict for c in result.changes}
        assert judged["shared_loads"] == judged["shared_load_wavefronts"] == "changed"
        assert judged["ffma_per_global_load"] == "better"
        assert judged["stall_mio_throttle"] == "worse"
        stall = result.change("stall_mio_throttle")
        assert stall is not None and 0.3 < stall.magnitude < 0.7

    def test_a_kernel_with_itself_is_the_same(self, recorded: ReadRecorded) -> None:
        first = ladder(recorded)[0]
        result = side_by_side(first, first)
        assert {c.verdict for c in result.changes} == {"same"}
        assert result.ranked("worse") == result.ranked("better") == ()

    def test_a_side_that_collected_little_is_unknown(self, recorded: ReadRecorded) -> None:
        little = kernel_analysis.analyse(recorded("partial_two_metrics")[0])
        result = side_by_side(little, ladder(recorded)[0])
        assert {c.verdict for c in result.changes if c.before is None} == {"unknown"}
        nothing = kernel_analysis.analyse(launch())
        assert side_by_side(nothing, nothing).changes == ()

    def test_other_devices_and_other_work_are_named(self, recorded: ReadRecorded) -> None:
        naive = ladder(recorded)[0]
        profile = naive.profile
        elsewhere = replace(naive, profile=replace(profile, device=replace(profile.device, name="Other GPU")))
        assert "Other GPU" in side_by_side(naive, elsewhere).caution
        other = kernel_analysis.analyse(recorded("flaws_precision")[0])
        assert "different amounts of work" in side_by_side(naive, other).caution

    def test_times_without_the_profiler_come_first(self, recorded: ReadRecorded) -> None:
        naive, coalesced, _ = ladder(recorded)
        result = side_by_side(naive, coalesced, (timing(2e-3), timing(1e-3)))
        assert result.changes[0].name == "time"
        assert result.changes[0].ratio == 0.5


class TestPairs:
    def test_stages_of_runs_pair_by_number_and_shape(self, tmp_path: Path) -> None:
        before = load_side([make_run(tmp_path / "a", {1: 4e-3, 2: 3e-3})])
        after = load_side([make_run(tmp_path / "b", {2: 1.5e-3, 3: 1e-3})])
        found = compare(before, after)
        # Both runs hold one report: its code is the same, so the machine made the difference.
        assert sorted(one.verdict for one in found) == ["gone", "new", "unclear"]
        (middle,) = (one for one in found if one.judgement is not None)
        assert middle.slower_percent == pytest.approx(-50)
        assert middle.time is not None and middle.time.name == "time"
        assert middle.change("executed") is not None

    def test_runs_that_were_only_timed_still_compare(self, tmp_path: Path) -> None:
        before = load_side([make_run(tmp_path / "a", {1: 1e-3}, profiled=False)])
        after = load_side([make_run(tmp_path / "b", {1: 1.1e-3}, profiled=False)])
        (one,) = compare(before, after)
        assert one.slower_percent == pytest.approx(10) and one.changes[0].name == "time"

    def test_launches_of_one_kernel_pair_in_their_order(self) -> None:
        side = load_side([DATA / "launches_same_kernel.ncu-rep.xz"], each_launch=True)
        found = compare(side, side)
        assert len(found) == len(side.kernels) > 1
        assert all(one.match.before is one.match.after for one in found)

    def test_rungs_follow_the_order_of_the_report(self) -> None:
        pairs = rungs(load_side([LADDER]))
        assert [pair.label for pair in pairs] == [
            "gemm_naive → gemm_coalesced",
            "gemm_coalesced → gemm_shared",
        ]

    def test_selectors(self, tmp_path: Path) -> None:
        report = load_side([LADDER])
        assert chosen(report, "1").label == chosen(report, "coal").label == "gemm_coalesced"
        run = load_side([make_run(tmp_path / "a", {1: 4e-3, 3: 3e-3})])
        assert chosen(run, "3").key == chosen(run, "tiling").key == ("stage", "3", CUBE.key)
        assert len(run.kernels) == 2
        for selector in ("gemm", "nothing", "7"):
            with pytest.raises(UsageError, match=selector):
                chosen(report, selector)
