"""The statistics behind the verdicts: known values, outliers, coarse clocks, and their error rates."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gemmprof.analysis.comparison.distributions import (
    location,
    location_variance,
    rejected,
    t_quantile,
    t_tail,
)
from gemmprof.analysis.comparison.judgement import Batch, Judgement, estimate, judge
from gemmprof.analysis.comparison.noise import Noise
from gemmprof.analysis.comparison.noise_classes import UNDER_NCU

ROOT = Path(__file__).resolve().parents[3]
NOISE = Noise("test", 0.005, 2.0, 0.0003, 0.24, 8.0)


def verdict(before: list[float], after: list[float]) -> Judgement:
    return judge([estimate([Batch.of_times(before)], [Batch.of_times(after)], NOISE)])[0]


def launches(seed: int, count: int, noise: float, mean: float = 100.0) -> list[float]:
    draw = random.Random(seed)
    return [mean * math.exp(draw.gauss(0, noise)) for _ in range(count)]


class TestDistributions:
    @pytest.mark.parametrize(
        ("value", "freedom", "tail"),
        # From the tables of Student's t: two-sided 5 %, 1 %, 0.1 %.
        [(12.706, 1, 0.05), (2.776, 4, 0.05), (3.169, 10, 0.01), (3.850, 20, 0.001), (1.960, 1e7, 0.05)],
    )
    def test_tail_and_quantile_agree_with_the_tables(self, value: float, freedom: float, tail: float) -> None:
        assert t_tail(value, freedom) == pytest.approx(tail, rel=2e-3)
        assert t_quantile(tail, freedom) == pytest.approx(value, rel=1e-3)

    def test_location_is_not_moved_by_outliers(self) -> None:
        assert location([1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 50.0, 80.0]) == pytest.approx(1.0, abs=0.06)
        assert location([1.0, 1.1, 90.0]) == 1.1

    @pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 12])
    def test_variance_of_the_location(self, count: int) -> None:
        draw = random.Random(count)
        found = [location([draw.gauss(0, 1) for _ in range(count)]) for _ in range(4000)]
        assert sum(x * x for x in found) / len(found) == pytest.approx(location_variance(count), rel=0.12)

    def test_benjamini_hochberg_on_their_own_example(self) -> None:
        # The fifteen probabilities of the paper: four are rejected at 5 %, where Bonferroni rejects three.
        found = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
        found += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
        flags, level = rejected(found, 0.05)
        assert flags == [True] * 4 + [False] * 11
        assert level == pytest.approx(4 * 0.05 / 15)


class TestVerdicts:
    def test_two_per_cent_slower_and_faster(self) -> None:
        steady, more = launches(1, 12, 0.003), launches(2, 12, 0.003, 102.0)
        slower, faster = verdict(steady, more), verdict(more, steady)
        assert (slower.verdict, faster.verdict) == ("slower", "faster")
        assert slower.low > 0 and slower.low < slower.change < slower.high
        assert slower.change == pytest.approx(0.02, abs=0.005)

    def test_same_needs_proof(self) -> None:
        assert verdict(launches(1, 12, 0.003), launches(2, 12, 0.003)).verdict == "same"
        few = verdict(launches(1, 2, 0.02), launches(2, 2, 0.02))
        assert few.verdict == "unclear" and few.detectable > 0.05

    def test_a_surely_tiny_change_is_no_change(self) -> None:
        assert verdict(launches(1, 40, 0.0005), launches(2, 40, 0.0005, 100.3)).verdict == "same"

    def test_an_outlier_does_not_make_a_change(self) -> None:
        quiet, disturbed = launches(1, 12, 0.003), launches(2, 12, 0.003)
        disturbed[0] *= 3
        disturbed[7] *= 1.5
        assert verdict(quiet, disturbed).verdict == "same"

    def test_a_coarse_clock_hides_what_is_below_its_step(self) -> None:
        # 2.304 and 2.336 µs are neighbours on a clock of 32 ns: 1.4 % apart, and no change is proven.
        before, after = (Batch.of_times([ns] * 12, 32.0) for ns in (2304.0, 2336.0))
        assert judge([estimate([before], [after], UNDER_NCU.of(2304.0))])[0].verdict == "unclear"

    def test_one_launch_rests_on_the_class(self) -> None:
        found = verdict([100.0], [101.0])
        assert found.own_share == 0 and found.verdict == "unclear"
        assert found.high > 0.05

    def test_several_processes_say_more_than_one(self) -> None:
        one = estimate(
            [Batch.of_times(launches(1, 12, 0.01))], [Batch.of_times(launches(2, 12, 0.01))], NOISE
        )
        sides = [
            [Batch.of_times(launches(seed, 12, 0.01)) for seed in seeds] for seeds in ((1, 3, 5), (2, 4, 6))
        ]
        assert estimate(sides[0], sides[1], NOISE).error < one.error

    def test_processes_that_lie_apart_widen_the_interval(self) -> None:
        together = [Batch.of_times(launches(seed, 12, 0.003)) for seed in (1, 2, 3)]
        apart = [
            Batch.of_times(launches(seed, 12, 0.003, mean))
            for seed, mean in ((1, 97.0), (2, 100.0), (3, 103.0))
        ]
        assert estimate(together, apart, NOISE).error > 2 * estimate(together, together, NOISE).error

    def test_launches_that_differ_in_work_are_paired_by_occurrence(self) -> None:
        work = [1.0, 5.0, 2.0, 9.0, 1.5, 7.0, 3.0, 4.0]
        before = [w * t for w, t in zip(work, launches(1, 8, 0.002), strict=True)]
        after = [w * t for w, t in zip(work, launches(2, 8, 0.002, 103.0), strict=True)]
        found = verdict(before, after)
        assert found.paired and found.verdict == "slower"
        assert not verdict(launches(1, 8, 0.01), launches(2, 8, 0.01)).paired

    def test_more_kernels_need_more_evidence(self) -> None:
        odd = estimate(
            [Batch.of_times(launches(1, 3, 0.005))], [Batch.of_times(launches(2, 3, 0.005, 102.5))], NOISE
        )
        calm = [
            estimate(
                [Batch.of_times(launches(seed, 3, 0.005))],
                [Batch.of_times(launches(seed + 99, 3, 0.005))],
                NOISE,
            )
            for seed in range(3, 60)
        ]
        alone, among = judge([odd])[0], judge([odd, *calm])[0]
        assert among.low < alone.low and among.high > alone.high

    def test_a_summary_says_what_its_times_say(self) -> None:
        times = sorted(launches(5, 200, 0.01))
        summary = Batch.of_summary(times[100], times[20], times[180], 200)
        whole = Batch.of_times(times)
        assert summary.centre == pytest.approx(whole.centre, abs=2e-3)
        assert math.sqrt(summary.squares / summary.freedom) == pytest.approx(0.01, rel=0.2)


def test_classes_and_error_rates_are_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "learn_noise.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert result.returncode == 0, result.stderr


def test_error_rates_are_what_was_promised() -> None:
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    share = {(row[0], row[1]): row for row in rows}
    alarms = [row for row in rows if row[0] in ("12", "3", "1") and len(row) == 4]
    hits = sum(int(row[1].split()[0]) for row in alarms)
    total = sum(int(row[1].split()[2]) for row in alarms)
    assert total >= 1000 and hits <= 0.01 * total
    found = {key: float(share[key][3].split("(")[1].split()[0]) for key in (("2 %", "12"), ("5 %", "3"))}
    assert min(found.values()) >= 95.0
