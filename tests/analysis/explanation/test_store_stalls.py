"""Warps stalled by their own stores: a burst behind the work, which no average of a resource shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from made_code import made
from recorded_data import DATA

from gemmprof import metrics
from gemmprof.analysis.explanation.causes.access import uncoalesced_access
from gemmprof.analysis.explanation.demands.time_model import Fix, TimeModel
from gemmprof.analysis.explanation.demands.traffic import stalled_by
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.reading.report import read_report
from gemmprof.model import KernelProfile


@cache
def launches(name: str) -> tuple[KernelProfile, ...]:
    return read_report(DATA / f"{name}.ncu-rep.xz")


def half_sectors() -> KernelProfile:
    """Stage 7 of the 16-bit ladder at 4096^3, when each store of its sums wrote half sectors."""
    return launches("wgmma/hgemm_clusters_half_sectors")[0]


def stores(found: Work) -> np.ndarray:
    return found.where(lambda line: line.is_store) & (found.global_sectors > 1.2 * found.global_ideal)


class TestHalfSectors:
    def test_the_store_is_named_first_and_the_interval_holds_what_came(self) -> None:
        first = explain(half_sectors()).findings[0]
        assert first.cause == "uncoalesced_access"
        assert first.places[0].file.endswith("hgemm.cuh") and first.places[0].line == 73
        assert "Write whole sectors" in first.change and "8 sectors where 4" in first.change
        # Stores of 16 bytes a lane and nothing else: 712 to 767 TFLOP/s, 7.2 % of the time, 7.7 % in speed.
        for came in (1 - 712 / 767, 0.077):
            assert first.saves_low < came < first.saves_high
        assert first.saves == pytest.approx(1 - 712 / 767, abs=0.03)

    def test_the_time_is_that_of_the_warps_which_store(self) -> None:
        found = work(half_sectors())
        burst = stalled_by(found, stores(found))
        # Two of three warpgroups multiply; the third copies and waits for them in the end.
        behind = np.flatnonzero(stores(found))
        waited = float(found.samples["long_scoreboard"][behind[0] : behind[-1] + 1].sum())
        assert burst.by_store.sum() == pytest.approx(waited / (2 / 3), rel=0.05)
        assert 0.10 < burst.in_time < 0.13
        assert not burst.by_store[~stores(found)].any()

    def test_averages_alone_do_not_show_it(self) -> None:
        found = work(half_sectors())
        (candidate,) = uncoalesced_access(found)
        assert TimeModel(found).saves(replace(candidate.fix, stalled=0.0)) < 0.03 < candidate.fix.stalled

    def test_without_samples_it_is_as_before(self) -> None:
        profile = half_sectors()
        kept = {name: value for name, value in profile.instances.items() if "pcsamp" not in name}
        found = work(replace(profile, instances=kept))
        assert not found.samples and stalled_by(found, stores(found)) is None
        assert all(one.fix.stalled == 0.0 for one in uncoalesced_access(found))

    def test_whole_sectors_are_not_accused(self) -> None:
        for name in ("wgmma/gemm_4096", "wgmma/gemm_4096_fp8"):
            for profile in launches(name):
                assert all(one.fix.stalled < 0.01 for one in uncoalesced_access(work(profile)))


def test_stores_among_the_work_are_left_to_the_terms() -> None:
    """A loop that loads and stores with a stride: its queues are full for as long as it runs."""
    strided = [one for one in launches("pairs/access") if "axpy" in one.name]
    wasted = [found for found in map(work, strided) if stores(found).any()]
    assert wasted and all(stalled_by(found, stores(found)) is None for found in wasted)


LOOP_THEN_STORES = (
    "IADD3 R2, R2, 0x1, RZ",
    "ISETP.NE.AND P0, PT, R2, R3, PT",
    "@P0 BRA 0x000000 ;",
    "LDG.E R9, desc[UR4][R6.64]",
    "F2FP.BF16.F32.PACK_AB R8, R5, R4",
    "STG.E desc[UR4][R6.64], R8",
    "F2FP.BF16.F32.PACK_AB R8, R11, R10",
    "STG.E desc[UR4][R6.64+0x10], R8",
    "FADD R9, R9, R9",
    "STG.E desc[UR4][R6.64+0x20], R9",
    "EXIT",
)


def launch_of(stalls: Mapping[str, Mapping[int, int]]) -> Work:
    return made(*LOOP_THEN_STORES, executed=[900] * 3 + [100] * 8, stalls=stalls, counted=COUNTED)


COUNTED = {
    metrics.ELAPSED_CYCLES: 1000.0,
    metrics.SM_ACTIVE_CYCLES: 1000.0,
    metrics.ACTIVE_CYCLES_MAX: 1000.0,
}


@pytest.mark.parametrize(
    ("stalls", "by_store"),
    [
        ({"selected": {0: 90}, "long_scoreboard": {6: 10}}, {5: 0.1}),
        ({"selected": {0: 90}, "lg_throttle": {7: 10}}, {7: 0.1}),
        # Waiting for a load, it is no store's fault, nor what other instructions wait for.
        ({"selected": {0: 90}, "long_scoreboard": {8: 10}}, {}),
        ({"selected": {0: 90}, "wait": {6: 10}}, {}),
    ],
)
def test_what_counts_against_a_store(
    stalls: Mapping[str, Mapping[int, int]], by_store: Mapping[int, float]
) -> None:
    found = launch_of(stalls)
    burst = stalled_by(found, found.where(lambda line: line.is_store))
    assert {int(at): pytest.approx(burst.by_store[at]) for at in np.flatnonzero(burst.by_store)} == by_store


def test_stores_are_behind_the_work_where_the_loop_takes_most_of_the_time() -> None:
    found = launch_of({"selected": {0: 40}, "long_scoreboard": {6: 60}})
    assert stalled_by(found, found.where(lambda line: line.is_store)) is None


def test_time_that_is_held_counts_once_and_not_beyond_the_busiest_unit() -> None:
    found = work(half_sectors())
    model = TimeModel(found)
    assert model.saves(Fix(stalled=0.05)) == pytest.approx(0.05, abs=1e-6)
    both = Fix(stalled=0.05).together(Fix(stalled=0.03))
    assert both.stalled == 0.05
    assert 1 - model.saves(Fix(stalled=0.9)) >= found.idle_start + found.loads["tensor"].busy - 1e-9
