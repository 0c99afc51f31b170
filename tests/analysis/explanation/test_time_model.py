"""Attribution, control flow, latencies and the time model on a few instructions, each figure worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_code import made
from recorded_data import EXAMPLES

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.code import latency
from gemmprof.analysis.explanation.code.flow import LONG, SHORT, WAIT, producers
from gemmprof.analysis.explanation.demands.resources import is_float
from gemmprof.analysis.explanation.demands.time_model import ESTIMATED, NOTHING, Fix, TimeModel
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.engine import places
from gemmprof.analysis.explanation.prediction import Calibration, Prediction, Predictor, room
from gemmprof.analysis.reading.report import read_report

CYCLES = {
    metrics.SM_ELAPSED_CYCLES_MAX: 1000.0,
    metrics.SM_ACTIVE_CYCLES: 400.0,
    metrics.ACTIVE_CYCLES_MAX: 800.0,
    metrics.ACHIEVED_WARPS: 16.0,
    metrics.SM_COUNT: 10.0,
}
"""A fifth of the time no SM works, and the busiest works twice as long as the average one."""
ISSUE = metrics.BUSY["issue"][0]
DRAM = metrics.BUSY["dram"][0]
ATOMICS = metrics.BUSY["l2_atomics"][0]


class TestBlame:
    def test_each_wait_counts_against_what_it_waits_for(self) -> None:
        code = made("LDG.E R2, [R4.64] ;", "IADD3 R8, R9, 0x1, RZ ;", "FADD R6, R2, R8 ;", "EXIT ;").code
        assert code is not None
        assert producers(code, 2, LONG) == (0,)
        assert producers(code, 2, WAIT) == (1,)
        assert producers(code, 2, SHORT) == (2,)  # nothing of the kind: its own
        assert producers(code, 2, "lg_throttle") == (2,)

    def test_a_load_waits_for_the_store_that_still_reads_its_register(self) -> None:
        code = made("STS [R9], R2 ;", "IADD3 R8, R9, 0x1, RZ ;", "LDS R2, [R8] ;", "EXIT ;").code
        assert code is not None and producers(code, 2, SHORT) == (0,)

    def test_a_guarded_write_leaves_the_older_value_standing(self) -> None:
        code = made("MOV R2, R4 ;", "@P0 MOV R2, R5 ;", "FADD R6, R2, R8 ;", "EXIT ;").code
        assert code is not None and set(code.producers(2, "R2")) == {0, 1}

    def test_a_guarded_exit_goes_on_and_an_endless_end_is_no_loop(self) -> None:
        code = made("@P0 EXIT ;", "MOV R2, R4 ;", "BRA 0x000020 ;", "EXIT ;").code
        assert code.predecessors[1] == (0,) and code.predecessors[3] == ()
        assert code.loops == ()


class TestWork:
    def test_time_structure(self) -> None:
        found = made("EXIT ;", counted=CYCLES)
        assert found.idle_start == pytest.approx(0.2) and found.imbalance == 2.0
        assert made("EXIT ;", counted={**CYCLES, metrics.SM_ACTIVE_CYCLES: 900.0}).imbalance == 1.0

    def test_the_sampler_says_where_and_the_counters_how_much(self) -> None:
        counted = {metrics.stalled_per_issue("wait"): 3.0, metrics.stalled_per_issue("barrier"): 1.0}
        found = made(
            "BAR.SYNC 0x0 ;", "EXIT ;", stalls={"wait": {0: 10, 1: 30}, "barrier": {0: 60}}, counted=counted
        )
        assert found.samples["wait"].tolist() == pytest.approx([0.75 / 4, 0.75 * 3 / 4])
        assert found.samples["barrier"].tolist() == pytest.approx([0.25, 0.0])
        uncounted = made("BAR.SYNC 0x0 ;", "EXIT ;", stalls={"wait": {0: 10, 1: 30}, "barrier": {0: 60}})
        assert uncounted.samples["barrier"].tolist() == pytest.approx([0.6, 0.0])


class TestLatency:
    def test_loads_wait_for_the_level_that_has_them_and_for_each_line(self) -> None:
        hits = {metrics.GLOBAL_LOAD_HIT_RATE: 50.0, metrics.L2_READ_HIT_RATE: 75.0}
        found = made(
            "LDG.E R2, [R4.64] ;", "ATOMG.E.ADD R2, [R4], R6 ;", "LDL R2, [R1] ;", "EXIT ;", counted=hits
        )
        load, atomic, local, _ = latency.load_cycles(found, lines=1.0).tolist()
        assert load == pytest.approx(38 + 0.5 * (270 - 38) + 0.5 * 0.25 * (850 - 270))
        assert atomic == 700 and local == pytest.approx(38 + 0.2 * (270 - 38))
        # Two lines: one of them misses L1 in 3 of 4 cases, and L2 in 7 of 16 of those.
        several = latency.load_cycles(found, lines=2.0)[0]
        assert several == pytest.approx(38 + 0.75 * 232 + 0.75 * (1 - 0.75**2) * 580 + 2)

    def test_shared_memory_is_taken_from_l1(self) -> None:
        assert latency.l1_bytes(made("EXIT ;", shared_memory_config=100 * 1024)) == 156 * 1024
        assert latency.l1_bytes(made("EXIT ;", shared_memory_config=255 * 1024)) == 8192
        assert latency.l1_bytes(made("EXIT ;")) is None
        assert latency.l1_bytes(made("EXIT ;", shared_memory_config=0, capability=(99, 0))) is None

    def test_a_quiet_machine_has_no_queue_and_few_hot_words_have_one(self) -> None:
        assert latency.crowding(made("EXIT ;", counted={DRAM: 0.93 * 40})) == 0.0
        assert latency.crowding(made("EXIT ;", counted={DRAM: 0.93 * 62.5})) == pytest.approx(0.5)
        assert latency.crowding(made("EXIT ;", counted={DRAM: 93.0})) == 1.0
        assert latency.crowding(made("EXIT ;", counted={DRAM: 1.0, ATOMICS: 85 * 0.21})) == 1.0

    def test_wgmma_hides_most_of_its_own_time(self) -> None:
        found = made("EXIT ;", stalls={"gmma": {0: 100}}, counted=CYCLES)
        unloaded = latency.unloaded(found)
        assert unloaded is not None and sum(unloaded.sums.values()) == pytest.approx(0.3)


def launched(**stalls: dict[int, int]) -> Work:
    counted = {**CYCLES, ISSUE: 30.0, DRAM: 20.0}
    sass = ("LDG.E R2, [R4.64] ;", "FADD R6, R2, R8 ;", "BAR.SYNC 0x0 ;", "EXIT ;")
    return made(*sass, stalls=stalls or {"wait": {1: 100}}, counted=counted)


class TestTimeModel:
    def test_terms(self) -> None:
        terms = TimeModel(launched()).terms(NOTHING)
        assert terms["issue"] == pytest.approx(0.3 / 0.97 * 2.0)  # each SM has its own: the busiest counts
        assert terms["dram"] == pytest.approx(0.2 / 0.93)
        assert terms["latency"] == pytest.approx(0.4 * 2.0)

    def test_idle_goes_with_the_launch(self) -> None:
        model = TimeModel(launched())
        assert model.time(NOTHING) == pytest.approx(1.0)
        assert model.saves(Fix(idle=0.0)) == pytest.approx(0.2)

    def test_what_late_warps_no_longer_do_early_ones_no_longer_wait_for(self) -> None:
        model = TimeModel(launched(wait={1: 50}, barrier={2: 50}))
        assert model.latency_share(NOTHING) == pytest.approx(1.0)
        assert model.latency_share(Fix(keep=np.array([0.5, 0.5, 0.5, 0.5]))) == pytest.approx(0.5)
        assert model.latency_share(Fix(reasons={"wait": 0.5})) == pytest.approx(0.5)
        assert model.latency_share(Fix(reasons={"barrier": 0.0})) == pytest.approx(0.5)

    def test_both_changes_take_away_the_larger_part(self) -> None:
        one = Fix(keep=np.array([0.5, 1.0]), imbalance=1.5, idle=0.5, warps=2.0, added={"fma": 0.1})
        two = Fix(
            keep=np.array([0.8, 0.2]), imbalance=1.2, warps=1.5, added={"fma": 0.3}, resources={"dram": 0.5}
        )
        both = one.together(two)
        assert both.keep is not None and both.keep.tolist() == [0.5, 0.2]
        assert (both.imbalance, both.idle, both.warps) == (1.2, 0.5, 2.0)
        assert both.added == {"fma": 0.3} and both.resources == {"dram": 0.5}
        assert one.together(NOTHING).imbalance == 1.5

    def test_registers_and_shared_memory_change_the_warps_that_an_sm_holds(self) -> None:
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        model = TimeModel(work(profile))
        assert model.resident(Fix()) == 1.0
        registers = profile.launch.registers_per_thread
        assert model.resident(Fix(registers=255 - registers)) < 0.5
        assert model.resident(Fix(shared_bytes=100_000)) < model.resident(Fix(shared_bytes=50_000)) < 1.0

    def test_what_a_rewrite_adds_takes_issue_slots_pipes_and_the_warps_time(self) -> None:
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        found = work(profile)
        model = TimeModel(found)
        before = model.terms(Fix())
        after = model.terms(Fix(instructions={"alu": found.total_executed}, passes=1e6, barriers=1e4))
        assert after["issue"] == pytest.approx(2 * before["issue"], rel=0.05)
        assert after["alu"] > before["alu"] and after["l1_data"] > before["l1_data"]
        assert after["fma"] == before["fma"] and after["latency"] > before["latency"]

    def test_predictions_are_told_as_they_came_true_of_new_kernels(self) -> None:
        told = Calibration(part=0.5, roomy=0.25, sure=0.3, down=0.1, up=0.4, inside=0, of=0)

        def of(saves: float, room: float, stays: float = 1.0, misfit: float = 0.0) -> list[float]:
            return [float(one) for one in told.of_new_kernels(saves, room, stays, misfit)]

        # Half of the room as a share of what is left; from a tenth of what stays below the model to 40 % above it.
        assert of(0.3, 0.8) == pytest.approx([0.5, 0.2, 0.73])
        # Instructions that go bring half as much more; time that the model does not explain may.
        assert of(0.3, 0.8, stays=0.5) == pytest.approx([0.5, 0.2, 0.68])
        assert of(0.3, 0.8, misfit=0.2) == pytest.approx([0.5, 0.2, 0.83])
        assert of(0.3, 0.8, stays=0.0, misfit=0.2)[2] == pytest.approx(0.68)
        assert of(0.4, 0.1) == pytest.approx([0.4, 0.31, 0.67]), "no room: the model's word"
        # A small saving where little is left is mostly none; where much is, it stands for more.
        assert of(0.1, 0.0)[0] == pytest.approx(0.1 / 3) and of(0.1, 0.9)[0] > 0.3
        assert of(0.1, 0.0)[2] < 0.2, "and its interval is narrow"
        # What no model can tell from none is never raised.
        assert of(0.03, 0.9)[0] < 0.03 and of(0.0, 1.0)[:2] == [0.0, 0.0] == of(-0.2, 0.5)[:2]
        for left in (0.0, 0.3, 0.6, 0.9):
            sizes = [of(one / 100, left)[0] for one in range(100)]
            assert sizes == sorted(sizes), "the order stays"
        for part in (0.0, 1.0):
            for said, left in ((0.2, 0.9), (0.6, 0.1), (0.95, 1.0)):
                there, low, high = replace(told, part=part).of_new_kernels(said, left)
                assert 0 <= low <= there <= high < 1

    def test_a_quarter_more_warps_save_a_fifth_at_most(self) -> None:
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        predictor, found = Predictor(TimeModel(work(profile))), Prediction(0.1, 0.05, 0.2)
        assert predictor.told(Variant("warps", Fix(warps=1.25)), found).saves < 0.2
        less = Fix(warps=1.25, resources={"dram": 0.9})
        assert predictor.told(Variant("and less", less), found).saves > 0.2

    @pytest.mark.parametrize(
        "waits", [Fix(idle=0.9), Fix(reasons={"barrier": 0.5}), Fix(reasons={"no_instruction": 0.1})]
    )
    def test_all_other_work_stays_where_waits_go_away(self, waits: Fix) -> None:
        """No more is told than the busiest unit and the launch's start and end leave."""
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        model = TimeModel(work(profile))
        predictor, found = Predictor(model), Prediction(0.1, 0.05, 0.2)
        busiest = max(term for key, term in model.terms(Fix()).items() if key not in ESTIMATED)
        assert predictor.room is not None and predictor.room > 1.0 - busiest
        assert predictor.told(Variant("waits", waits), found).saves < 1.0 - busiest
        work_too = replace(waits, keep=np.full(len(model.work.executed), 0.9), reasons={})
        more = replace(found, saves=0.15)
        assert predictor.told(Variant("waits", waits), more).saves < 1.0 - busiest
        assert predictor.told(Variant("work, too", work_too), more).saves > 1.0 - busiest

    def test_what_was_measured_elsewhere_is_told_as_it_is(self) -> None:
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        predictor = Predictor(TimeModel(work(profile)))
        assert predictor.room is not None and predictor.room > 0
        found = Prediction(0.2, 0.1, 0.3)
        assert predictor.told(Variant("made", Fix()), found).saves > 0.2
        assert predictor.told(Variant("made", Fix(), known=(0.2, 0.1, 0.3)), found) == found
        # The wait for the busiest SM, where the same work is shared out evenly.
        even = predictor.predict(Variant("made", Fix(imbalance=1.0)))
        assert predictor.told(Variant("made", Fix(imbalance=1.0)), even) == even
        assert predictor.told(Variant("made", Fix(), up_to=True), found).low == 0.0
        alone = Predictor(TimeModel(work(profile)), calibrated=False)
        assert alone.told(Variant("made", Fix()), found) == found

    def test_how_much_a_change_leaves_unsaid(self) -> None:
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        predictor = Predictor(TimeModel(work(profile)))
        half = Fix(keep=np.full(len(predictor.model.work.executed), 0.5))
        assert predictor.predict(Variant("made", Fix())).stays == 1.0
        assert predictor.predict(Variant("made", half)).stays == pytest.approx(0.5)
        assert 0.0 < predictor.model.misfit < 0.5

    def test_idle_lanes_are_no_reason_to_stay(self) -> None:
        """Floating-point arithmetic is what a kernel is written for, by the lanes that take part."""
        (profile,) = read_report(EXAMPLES / "gelu.ncu-rep.xz")
        found = work(profile)
        found = replace(
            found, loads={key: load for key, load in found.loads.items() if key not in ("dram", "tensor")}
        )
        whole, quarter = (
            room(TimeModel(replace(found, threads=part * found.threads))) for part in (1.0, 0.25)
        )
        floats = float(found.threads[found.where(is_float)].sum()) / (32 * found.total_executed)
        assert whole is not None and quarter is not None and floats > 0.3
        assert quarter - whole == pytest.approx(0.75 * floats)


class TestPlaces:
    def test_a_header_counts_against_the_line_that_it_was_inlined_into(self) -> None:
        header = "/usr/local/cuda/include/sm_30_intrinsics.hpp"
        found = made(
            "FADD R1, R2, R3 ;", "SHFL.BFLY PT, R1, R1, 0x1, 0x1f ;", places=[("made.cu", 7), (header, 90)]
        )
        (place,) = places(found, np.array([1.0, 9.0]))
        assert (place.file, place.line, place.share) == ("made.cu", 7, 1.0)
        assert place.inlined == ("sm_30_intrinsics.hpp:90",)

    def test_small_places_are_left_out_but_never_all(self) -> None:
        found = made(*["FADD R1, R2, R3 ;"] * 60)
        assert [place.line for place in places(found, np.array([96.0, 2.0, 2.0] + [0.0] * 57))] == [1]
        assert len(places(found, np.ones(60))) == 1
        assert len(places(found, np.array([1.0] * 10 + [0.0] * 50))) == 5
        assert places(found, np.zeros(60)) == () == places(found, None)
