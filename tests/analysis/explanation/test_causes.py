"""Single causes and the weighing of all of them, on code made by hand: what no recorded kernel shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from asked import analysed
from made_code import made
from profiles import BASE
from recorded_data import EXAMPLES, ReadRecorded, one_launch

from gemmprof import metrics
from gemmprof.analysis.explanation import engine
from gemmprof.analysis.explanation.candidate import LATENCY, SPECIFIC, Candidate, Variant
from gemmprof.analysis.explanation.causes.access import _own_vectors, computing, uncoalesced_access
from gemmprof.analysis.explanation.causes.arithmetic import non_fused_arithmetic
from gemmprof.analysis.explanation.causes.atomics import global_atomics
from gemmprof.analysis.explanation.causes.barriers import barriers
from gemmprof.analysis.explanation.causes.grid import uneven_work
from gemmprof.analysis.explanation.causes.reuse import redundant_loads
from gemmprof.analysis.explanation.causes.waits import instruction_cache, memory_latency
from gemmprof.analysis.explanation.demands.resources import busiest_sm
from gemmprof.analysis.explanation.demands.time_model import Fix, TimeModel
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.explanation.prediction import Prediction, Predictor
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections import source_view
from gemmprof.analysis.sections.by_line import own_lines
from gemmprof.model import Instances


class TestNotFused:
    def test_a_product_and_the_sum_that_uses_it(self) -> None:
        (found,) = non_fused_arithmetic(made("FMUL R2, R0, R1 ;", "FADD R3, R2, R4 ;", "EXIT ;"))
        assert found.attributed is not None and list(np.flatnonzero(found.attributed)) == [1]

    @pytest.mark.parametrize("sum_", ["FADD R3, R2, R2 ;", "FADD R3, R2, -R2 ;", "FADD R3, |R2|, R2 ;"])
    def test_a_product_that_is_both_summands_is_none(self, sum_: str) -> None:
        assert list(non_fused_arithmetic(made("FMUL R2, R0, R1 ;", sum_, "EXIT ;"))) == []


class Told(Predictor):
    """A predictor that was told what each candidate saves."""

    def __init__(self, found: Work, predictions: dict[str, Prediction]) -> None:
        super().__init__(TimeModel(found))
        self._predictions = predictions

    def quick(self, fix: Fix) -> float:
        return 1.0

    def predict(self, variant: Variant) -> Prediction:
        return self._predictions.get(variant.name, Prediction(1.0, 1.0, 1.0))  # two at once save all


class TestWeighing:
    def weighed(
        self, candidates: tuple[Candidate, ...], *predictions: tuple[float, float, float]
    ) -> list[tuple[str, Prediction]]:
        found = made("EXIT ;")
        told = {one.cause: Prediction(*numbers) for one, numbers in zip(candidates, predictions, strict=True)}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(engine, "detect", lambda _: candidates)
            return [(one.candidate.cause, one.prediction) for one in engine.weigh(found, Told(found, told))]

    def test_the_variant_that_saves_most_stands_for_the_finding(self) -> None:
        found = made("EXIT ;")
        several = Candidate("specific", (Variant("tile", Fix()), Variant("registers", Fix())), "")
        told = {"tile": Prediction(0.3, 0.2, 0.4), "registers": Prediction(0.6, 0.5, 0.7)}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(engine, "detect", lambda _: (several,))
            (one,) = engine.weigh(found, Told(found, told))
        assert [variant.name for variant, _ in one.variants] == ["registers", "tile"]
        assert one.prediction.saves == 0.6

    def test_a_general_name_steps_behind_a_specific_one_that_explains_the_same(self) -> None:
        lead = Candidate("specific", (Variant("specific", Fix()),), "", rank=SPECIFIC)
        behind = Candidate("general", (Variant("general", Fix()),), "", rank=LATENCY)
        # Whether it saves less or more, it is another way to the same, with all that it saves itself.
        for alone in (0.29, 0.5):
            found = self.weighed((lead, behind), (0.3, 0.2, 0.4), (alone, 0.2, 0.6))
            assert [cause for cause, _ in found] == ["specific", "general"] and found[1][1].saves == alone
        assert [cause for cause, _ in self.weighed((lead, behind), (0.2, 0.1, 0.3), (0.5, 0.4, 0.6))] == [
            "general",
            "specific",
        ]

    def test_other_ways_take_no_place_from_what_is_a_loss_of_its_own(self) -> None:
        own = tuple(Candidate(f"own {number}", (Variant(f"own {number}", Fix()),), "") for number in range(7))
        ways = tuple(
            Candidate(f"way {number}", (Variant(f"way {number}", Fix()),), "", rank=LATENCY)
            for number in range(3)
        )
        told = [(0.3 + 0.01 * number, 0.0, 1.0) for number in range(7)]
        found = self.weighed((*own, *ways), *told, *((0.3 + 0.02 * one, 0.0, 1.0) for one in range(3)))
        causes = [cause for cause, _ in found]
        assert causes == ["own 6", "way 2", *(f"own {number}" for number in reversed(range(6)))]

    def test_no_more_than_a_reader_takes_in(self) -> None:
        many = tuple(Candidate(str(number), (Variant(str(number), Fix()),), "") for number in range(12))
        found = self.weighed(many, *((0.01 * (1 + number), 0.0, 1.0) for number in range(12)))
        assert [cause for cause, _ in found] == [str(number) for number in reversed(range(4, 12))]


def test_samples_that_nobody_summed_up_are_counted(recorded: ReadRecorded) -> None:
    whole = next(p for p in recorded("ladder_simple", source=True) if p.function_name == "gemm_shared")
    kept = {name: value for name, value in whole.metrics.items() if name != metrics.SAMPLE_COUNT}
    instances = {name: value for name, value in whole.instances.items() if name != metrics.SAMPLE_COUNT}
    without = replace(whole, metrics=kept, instances=instances)
    assert work(without).sample_count == work(whole).sample_count > 0
    assert explain(without).trust == explain(whole).trust


LOOP = (
    "S2R R9, SR_TID.X ;",
    "LDG.E R2, [R4.64] ;",
    "FFMA R6, R2, R2, R6 ;",
    "IADD3 R9, R9, 0x1, RZ ;",
    "@P0 BRA 0x000010 ;",
    "STG.E [R10.64], R6 ;",
    "EXIT ;",
)
"""A loop that loads from an address which it never changes."""


def with_sectors(found: Work, sectors: dict[int, int], ideal: dict[int, int]) -> Work:
    """The same launch, with sectors and the ideal number by place of the instruction."""
    by_place = {metrics.GLOBAL_SECTORS_BY_ADDRESS: sectors, metrics.GLOBAL_IDEAL_BY_ADDRESS: ideal}
    counted = {
        name: Instances(tuple(BASE + 16 * at for at in values), tuple(values.values()))
        for name, values in by_place.items()
    }
    return work(replace(found.profile, instances={**found.profile.instances, **counted}))


class TestGlobalMemory:
    def test_a_load_that_does_not_change_in_its_loop_leaves_it(self) -> None:
        times = (10, 1000, 1000, 1000, 1000, 10, 10)
        moved = metrics.LSU_SECTORS.format(space="global", operation="ld", lookup="_lookup_miss")
        found = with_sectors(made(*LOOP, executed=times, counted={moved: 1000.0}), {1: 1000}, {1: 1000})
        (candidate,) = redundant_loads(found)
        assert "before the loop" in candidate.change
        assert candidate.fix.keep is not None and candidate.fix.keep.tolist() == [1, 0.01, 1, 1, 1, 1, 1]
        # Once the loop counts the address along, there is nothing to move out of it.
        along = tuple(text.replace("IADD3 R9, R9", "IADD3 R4, R4") for text in LOOP)
        counted = with_sectors(made(*along, executed=times, counted={moved: 4000.0}), {1: 4000}, {1: 4000})
        assert list(redundant_loads(counted)) == []

    def test_atomics_are_not_called_uncoalesced(self) -> None:
        load, atomic = "LDG.E R2, [R4.64] ;", "ATOMG.E.ADD R2, [R4.64], R6 ;"
        sectors, ideal = {0: 3200}, {0: 400}
        assert len(list(uncoalesced_access(with_sectors(made(load, "EXIT ;"), sectors, ideal)))) == 1
        assert list(uncoalesced_access(with_sectors(made(atomic, "EXIT ;"), sectors, ideal))) == []


class TestGrid:
    @pytest.mark.parametrize(
        ("blocks", "causes"), [(9, ["small_grid"]), (10, []), (11, ["workload_imbalance"])]
    )
    def test_fewer_blocks_than_sms(self, blocks: int, causes: list[str]) -> None:
        cycles = {
            metrics.SM_ELAPSED_CYCLES_MAX: 1000.0,
            metrics.SM_COUNT: 10.0,
            metrics.ACTIVE_CYCLES_MAX: 1000.0,
        }
        # Blocks of equal length: the average SM works as long as it has blocks.
        cycles[metrics.SM_ACTIVE_CYCLES] = 1000.0 * blocks / 10 if blocks <= 10 else 550.0
        found = made("EXIT ;", counted=cycles)
        statistics = replace(found.profile.launch, grid=(blocks, 1, 1))
        assert [one.cause for one in uneven_work(work(replace(found.profile, launch=statistics)))] == causes

    FEW = "LDG.E R0, desc[UR4][R2.64] ;"
    TILE = "UTMALDG.2D [UR8], [UR4], desc[UR6] ;"

    @pytest.mark.parametrize(
        ("code", "executed", "causes"),
        [
            # A load by one warp has nothing for more blocks to do; a tile that one thread fetches has.
            ((FEW, "EXIT ;"), 1, []),
            ((FEW, TILE, "EXIT ;"), 1, ["small_grid"]),
            # Samples without counts: who executed what is not known, so nothing speaks against more blocks.
            ((FEW, "EXIT ;"), 0, ["small_grid"]),
        ],
    )
    def test_what_more_blocks_would_have_to_do(
        self, code: tuple[str, ...], executed: int, causes: list[str]
    ) -> None:
        cycles = dict.fromkeys((metrics.SM_ELAPSED_CYCLES_MAX, metrics.ACTIVE_CYCLES_MAX), 1000.0)
        cycles |= {metrics.SM_COUNT: 10.0, metrics.SM_ACTIVE_CYCLES: 500.0}
        found = made(*code, counted=cycles, executed=executed, stalls={"wait": {0: 7}})
        statistics = replace(found.profile.launch, grid=(5, 1, 1))
        assert [one.cause for one in uneven_work(work(replace(found.profile, launch=statistics)))] == causes

    def test_the_blocks_of_a_range_are_not_known(self) -> None:
        """How many SMs had any cannot be told, so the average is not made the busiest one's."""
        kernel = made("EXIT ;", counted={metrics.SM_ACTIVE_CYCLES: 500.0}).profile
        assert busiest_sm(kernel) == 500.0 * (kernel.device.sm_count or 1)
        assert busiest_sm(replace(kernel, workload="range")) is None


class TestWaits:
    @pytest.mark.parametrize(("instructions", "found"), [(1500, 0), (1540, 1)])
    def test_code_that_the_instruction_cache_holds_is_not_too_large(
        self, instructions: int, found: int
    ) -> None:
        # 16 bytes each: 1,536 of them fill 24 KiB.
        hot = made(*["FADD R1, R2, R3 ;"] * instructions, stalls={"no_instructions": {5: 90}})
        assert len(list(instruction_cache(hot))) == found

    def test_as_many_loads_are_sent_ahead_as_registers_hold_and_rounds_are_left(self) -> None:
        code = (
            "S2R R4, SR_TID.X ;",
            "LDG.E R10, [R4.64] ;",
            "FADD R6, R10, R6 ;",
            "IADD3 R4, R4, 0x4, RZ ;",
            "@P0 BRA 0x000010 ;",
            "EXIT ;",
        )

        def waits(rounds: int, registers: int) -> float:
            stalls = {"long_scoreboard": {2: 100}, "selected": dict.fromkeys(range(1, 5), 1)}
            times = (10, *[10 * rounds] * 4, 10)
            counted = {metrics.ACHIEVED_WARPS: 8.0, metrics.SM_ELAPSED_CYCLES_MAX: 1e6}
            found = made(*code, executed=times, stalls=stalls, counted=counted)
            statistics = replace(found.profile.launch, registers_per_thread=registers)
            (candidate,) = memory_latency(work(replace(found.profile, launch=statistics)))
            assert candidate.evidence[2].value == 1.0 and candidate.fix.latency is not None
            return float(candidate.fix.latency[1])

        assert waits(rounds=4, registers=32) == 1 / 4
        assert waits(rounds=100, registers=255 - 9) == pytest.approx(1 / 10)
        # Longer than the rest of a round takes, nobody has to look ahead.
        assert 1 / 40 < waits(rounds=100, registers=32) < 1 / 10

    def test_loads_under_way_together_are_waited_for_once(self) -> None:
        loads = [f"LDG.E R{10 + n}, [R4.64+0x{n:x}] ;" for n in range(5)]
        uses = [f"FADD R{20 + n}, R{10 + n}, R1 ;" for n in range(5)]
        together = made(*loads, *uses, stalls={"long_scoreboard": {5: 100}})
        (candidate,) = memory_latency(together)
        assert candidate.evidence[2].value == 5.0


def test_atomics_that_the_block_combined_in_shared_memory_are_no_flaw() -> None:
    code = ("ATOMS.ADD R2, [R4], R6 ;", "RED.E.ADD.S32 [R8.64], R6 ;", "EXIT ;")
    assert len(list(global_atomics(made(*code, executed=(400, 100, 100))))) == 1
    assert list(global_atomics(made(*code, executed=(401, 100, 100)))) == []


@pytest.mark.parametrize(
    ("report", "kernel", "cause"),
    [
        # Their blocks all do the same: what differs is when the constant cache, the bus or a fragment comes.
        ("flaws_other_memory", "divergent_constants", "workload_imbalance"),
        ("flaws_other_memory", "host_memory", "workload_imbalance"),
        ("flaws_tensor", "wmma_half", "workload_imbalance"),
        # Two blocks an SM and one access a thread: a quarter of the threads would not fill the GPU.
        ("flaws_divergence", "uniform_branches", "narrow_access"),
        ("flaws_occupancy", "many_registers", "narrow_access"),
        # One lane of a warp stores.
        ("flaws_divergence", "single_lane", "narrow_access"),
    ],
)
def test_what_only_looks_like_a_flaw_is_not_named(
    recorded: ReadRecorded, report: str, kernel: str, cause: str
) -> None:
    (launch,) = (one for one in recorded(report, source=True) if one.function_name == kernel)
    assert cause not in {finding.cause for finding in explain(launch).findings}


class TestNarrow:
    """torch's strided copy of BF16: 27 instructions for each access of two bytes, nearly all to find its place."""

    def test_addresses_go_with_the_accesses_that_they_are_for(self) -> None:
        copy = one_launch(
            EXAMPLES / "transformer.ncu-rep.xz",
            lambda one: "direct_copy_kernel" in one.name and "nocast" in one.name,
        )
        first = explain(copy).findings[0]
        assert first.cause == "narrow_access"
        # In the same training step a vectorised kernel moves three times the bytes of as many elements in 5.9 us, where
        # this kernel takes 11.3: fixing it saves half at least.
        launches = read_report(EXAMPLES / "transformer_launches.ncu-rep.xz", source=False)
        vectorised, strided = (launches[at].number(metrics.DURATION) for at in (5, 6))
        assert vectorised is not None and strided is not None and launches[6].name == copy.name
        assert first.saves_low < 1 - vectorised / strided < first.saves

    def test_what_computes_values_stays(self) -> None:
        lines = (
            "S2R R0, SR_TID.X ;",
            "IMAD.WIDE R4, R0, 0x4, R2 ;",
            "LDG.E R6, [R4.64] ;",
            *("FFMA R6, R6, R7, R8 ;" for _ in range(30)),
            "IMAD.WIDE R10, R0, 0x4, R12 ;",
            "STG.E [R10.64], R6 ;",
            "EXIT ;",
        )
        found = np.flatnonzero(computing(made(*lines)))
        assert list(found) == list(range(3, 33))


def test_what_is_read_from_the_host_is_named_and_nothing_else_is_promised(recorded: ReadRecorded) -> None:
    profile = next(
        one for one in recorded("flaws_other_memory", source=True) if one.function_name == "host_memory"
    )
    first = explain(profile).findings[0]
    assert [one.name for one in first.variants] == ["memory of the GPU"]
    assert "270 kB" in first.change and first.saves > 0.5
    # What L2 took in says the same where nobody counted loads, nor saw what warps wait for.
    unseen = {
        name: value
        for name, value in profile.metrics.items()
        if "aperture" not in name and "stalled" not in name
    }
    (told, *_) = explain(replace(profile, instances={}, metrics=unseen)).findings
    assert "270 kB" in told.change and not told.places and told.saves_low == 0.0


def test_places_are_the_lines_of_the_source_page(recorded: ReadRecorded) -> None:
    """A header's code counts against the line that called it, as the report's line table says."""
    for profile in recorded("flaws_tensor", source=True):
        view = analysed(source_view, profile)
        assert work(profile).own_lines == view.own_lines
        if profile.function_name == "wmma_half":
            assert view.own_lines != own_lines((line.file, line.line) for line in view.sass)


def test_one_place_loaded_twice_is_no_vector() -> None:
    """A volatile value is loaded again; two neighbours are one vector, however often they are loaded."""
    address = ("S2R R0, SR_TID.X ;", "LDC.64 R2, c[0x0][0x210] ;", "IMAD.WIDE R2, R0, 0x8, R2 ;")
    load = "LDG.E R{}, desc[UR4][R2.64{}] ;".format
    again = made(*address, load(4, ""), load(5, ""), "EXIT ;")
    assert _own_vectors(again)[0].min() == 1.0
    pair = made(*address, load(4, ""), load(5, "+0x4"), "EXIT ;")
    assert list(_own_vectors(pair)[0][3:5]) == [0.5, 0.5]
    twice = made(*address, load(4, ""), load(5, "+0x4"), load(6, ""), load(7, "+0x4"), "EXIT ;")
    assert list(_own_vectors(twice)[0][3:7]) == [0.5] * 4


def test_bytes_side_by_side_come_with_words_wherever_they_begin() -> None:
    """Five bytes lie in two words on average, one of them in one; each is picked out, each word shifted out of two."""
    address = ("S2R R0, SR_TID.X ;", "LDC.64 R2, c[0x0][0x210] ;", "IMAD.WIDE R2, R0, 0x7, R2 ;")
    several = (f"LDG.E.U8 R{4 + at}, desc[UR4][R2.64+{at:#x}] ;" for at in range(5))
    keep, widest, _, _, picked = _own_vectors(made(*address, *several, "EXIT ;"))
    assert list(keep[3:8]) == [2 / 5] * 5 and list(picked[3:8]) == [7 / 5] * 5 and widest == 4
    alone = _own_vectors(made(*address, "LDG.E.U8 R4, desc[UR4][R2.64] ;", "EXIT ;"))
    assert alone[0].min() == 1.0 and not alone[4].any()


SUMMED = (
    "S2R R0, SR_TID.X ;",
    "LDC R20, c[0x0][0x210] ;",
    "{begin}",
    "LDG.E R5, [R2.64] ;",
    "STS [R7], R5 ;",
    "BAR.SYNC 0x0 ;",
    "LDS R6, [R8] ;",
    "SHFL.BFLY PT, R9, R6, 0x1, 0x1f ;",
    "FADD R9, R6, R9 ;",
    "{end}",
    "{then}",
    "BAR.SYNC 0x0 ;",
    "IADD3 R2, R2, 0x80, RZ ;",
    "@P0 BRA 0x000020 ;",
    "STG.E [R12.64], R10 ;",
    "EXIT ;",
)
"""What lanes loaded is summed up through shared memory and a shuffle in each round."""


@pytest.mark.parametrize(
    "begin, end, then",
    [
        ("NOP ;", "FADD R10, R10, R9 ;", "NOP ;"),
        # The register of the sum is one that a masked load of 16 bits clears the lower half of in the next round.
        ("PRMT R9, RZ, 0x7610, R9 ;", "FADD R10, R10, R9 ;", "NOP ;"),
        # Sums that fade, by a number that all threads have; least values with their places.
        ("NOP ;", "FFMA R10, R10, R20, R9 ;", "NOP ;"),
        ("NOP ;", "FSETP.LT.AND P1, PT, R9, R10, PT ;", "FSEL R10, R9, R10, P1 ;"),
    ],
)
def test_rounds_whose_sums_a_block_only_adds_up_may_come_in_any_order(
    begin: str, end: str, then: str
) -> None:
    code = [line.format(begin=begin, end=end, then=then) for line in SUMMED]
    times = [10, 10, *[1000] * 12, 10, 10]
    found = made(*code, executed=times, stalls={"barrier": {6: 50, 12: 50}, "selected": {3: 100}})
    assert list(barriers(found)) and not found.code.in_order.any()
