"""What other people's reports showed: sparse ones, other cards, code that nobody sees or that calls elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_code import made
from profiles import launch
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate
from gemmprof.analysis.explanation.causes.arithmetic import integer_arithmetic
from gemmprof.analysis.explanation.causes.shared import local_memory
from gemmprof.analysis.explanation.causes.threads import _passes_of_whole_warps, idle_threads, low_occupancy
from gemmprof.analysis.explanation.causes.unseen import of_the_busiest, unseen_accesses, unseen_doubles
from gemmprof.analysis.explanation.demands.resources import LAUNCHING, busiest_sm, loads
from gemmprof.analysis.explanation.demands.time_model import TimeModel
from gemmprof.analysis.explanation.demands.work import runs_elsewhere, work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.explanation.levers import levers, of_the_launch, offered
from gemmprof.model import KernelProfile


@pytest.mark.parametrize(
    ("card", "sass", "of_the_peak"),
    [
        ("NVIDIA GeForce RTX 4090", "HMMA.16816.F32 R4, R8, R2, R4 ;", 0.5),
        ("NVIDIA GeForce RTX 4090", "HMMA.16816.F16 R4, R8, R2, R4 ;", 1.0),
        ("NVIDIA RTX 6000 Ada Generation", "HMMA.16816.F32 R4, R8, R2, R4 ;", 1.0),
    ],
)
def test_tensor_cores_that_add_up_slowly_are_full_at_half_of_the_peak(
    card: str, sass: str, of_the_peak: float
) -> None:
    busy = {metrics.BUSY["tensor"][0]: 47.0}
    profile = made(sass, counted=busy, capability=(8, 9)).profile
    profile = replace(profile, device=replace(profile.device, name=card))
    (tensor,) = (load for load in loads(profile) if load.resource.key == "tensor")
    assert tensor.ceiling == pytest.approx(0.95 * of_the_peak)


def _of_a_kernel(average: float, duration: float, **more: float) -> KernelProfile:
    counted = {
        metrics.SM_ACTIVE_CYCLES: average,
        metrics.ELAPSED_CYCLES: 1e6,
        metrics.DURATION: duration,
        **more,
    }
    profile = launch(counted)
    return replace(
        profile,
        device=replace(profile.device, sm_count=20),
        launch=replace(profile.launch, grid=(40, 1, 1)),
    )


def test_what_the_average_sm_does_not_work_others_do() -> None:
    """One block in twenty SMs works for all of the launch: no launch takes longer to start and end than this."""
    found = busiest_sm(_of_a_kernel(5e4, 1e6))
    assert found == pytest.approx(1e6 * (1.0 - LAUNCHING / 1e6))
    assert busiest_sm(_of_a_kernel(5e4, LAUNCHING)) == 5e4  # all of a short launch may be its start
    assert busiest_sm(_of_a_kernel(5e4, 1e6, **{metrics.ACTIVE_CYCLES_MAX: 6e4})) == 6e4


def test_latencies_alone_are_no_model_of_the_time() -> None:
    assert not TimeModel(work(launch())).known


@pytest.mark.parametrize(("meets", "found"), [("NOP ;", 1), ("BAR.SYNC 0x0 ;", 0)])
def test_blocks_of_which_fewer_fit_than_of_their_halves_are_cut(meets: str, found: int) -> None:
    """Of 48 warps one block of 32, or three of 16; not where its threads meet."""
    profile = made("LDG.E R4, [R2] ;", meets, "EXIT ;", capability=(8, 6)).profile
    shape = replace(
        profile.launch, grid=(2048, 1, 1), block=(1024, 1, 1), registers_per_thread=16, waves_per_sm=24.4
    )
    occupancy = {
        metrics.BLOCK_LIMIT_REGISTERS: 4.0,
        metrics.BLOCK_LIMIT_SHARED_MEMORY: 16.0,
        metrics.BLOCK_LIMIT_WARPS: 1.0,
        metrics.BLOCK_LIMIT_BLOCKS: 16.0,
        metrics.THEORETICAL_OCCUPANCY: 66.67,
        metrics.SM_COUNT: 84.0,
    }
    profile = replace(profile, launch=shape, metrics={**profile.metrics, **occupancy})
    told = [one for one in low_occupancy(work(profile)) if "512 threads in place of 1,024" in one.change]
    assert len(told) == found
    assert all(one.fix.warps == pytest.approx(1.5) for one in told)


def test_code_that_nobody_disassembled_is_known_by_its_counters() -> None:
    passes, elapsed = 100_000.0, 1_000.0
    counted = {
        metrics.BUSY["l1_data"][0]: 100.0,
        metrics.SM_ELAPSED_CYCLES_MAX: elapsed,
        metrics.SM_COUNT: passes / elapsed,
    }
    tables = {
        metrics.INSTRUCTIONS_BY_ADDRESS: {0: 1000, 16: 1000},
        metrics.GLOBAL_SECTORS_BY_ADDRESS: {0: 16_000, 16: 4000},
        metrics.GLOBAL_IDEAL_BY_ADDRESS: {0: 4000, 16: 4000},
        metrics.GLOBAL_TAGS_BY_ADDRESS: {0: 16_000, 16: 1000},
        metrics.SHARED_WAVEFRONTS_BY_ADDRESS: {32: 64_000},
        metrics.SHARED_IDEAL_BY_ADDRESS: {32: 4000},
    }
    found = {one.cause: one for one in unseen_accesses(work(launch(counted, per_instruction=tables)))}
    assert found.keys() == {"uncoalesced_access", "shared_bank_conflicts"}
    assert found["uncoalesced_access"].fix.resources["l1_data"] == pytest.approx(1.0 - 15_000 / passes)
    assert found["shared_bank_conflicts"].fix.resources["l1_data"] == pytest.approx(1.0 - 60_000 / passes)
    assert "16.0 times" in found["shared_bank_conflicts"].change


@pytest.mark.parametrize(
    ("loads", "converts", "meant"),
    [
        ("LDG.E", "F2F.F32.F64 R0, R4 ;", False),
        ("LDG.E.64", "F2F.F32.F64 R0, R4 ;", True),
        ("LDG.E.64", "", True),
    ],
)
def test_doubles_that_nobody_counted_are_known_by_their_pipe(loads: str, converts: str, meant: bool) -> None:
    """A GeForce's FP64 pipe is the limit of code with FP32 data; what loads doubles means them."""
    sums = (
        f"{loads} R4, [R2] ;",
        "DADD R4, R4, 1 ;",
        *filter(None, [converts]),
        "STG.E [R2], R0 ;",
        "EXIT ;",
    )
    profile = made(*sums).profile
    busy = {metrics.BUSY["fp64"][0]: 85.0, metrics.BUSY["issue"][0]: 20.0}
    (told,) = unseen_doubles(work(replace(profile, instances={}, metrics={**profile.metrics, **busy})))
    assert told.another_arithmetic is meant and ("converts FP32 values" in told.change) is not meant
    assert told.fix.resources["fp64"] == 0.0 and told.fix.added["fma"] == pytest.approx(0.2)
    assert told.fix.stalled == pytest.approx(0.65)
    assert not list(unseen_doubles(work(profile)))


@pytest.mark.parametrize(
    ("index", "told"), [("SR_CTAID.X", ["a result a thread"]), ("SR_TID.X", []), ("SR_LANEID", [])]
)
def test_blocks_whose_threads_do_the_same_have_one_result(index: str, told: list[str]) -> None:
    """``out[blockIdx.x]`` by each of a block's threads."""
    launched = made(
        f"S2R R0, {index} ;", "MOV R1, 0x4 ;", "IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160] ;", "LDG.E R4, [R2] ;",
        "STG.E [R2], R4 ;", "EXIT ;",
    )  # fmt: skip
    assert [one.variants[0].name for one in idle_threads(launched)] == told


def test_filled_warps_pass_through_l1_as_seldom_as_their_lanes_share_lines(recorded: ReadRecorded) -> None:
    naive, coalesced, *_ = map(work, recorded("ladder_simple", source=True))
    apart, together = (_passes_of_whole_warps(one, filled=0.25) for one in (naive, coalesced))
    assert together == pytest.approx(0.25) and apart > 0.9


def test_what_runs_in_code_of_the_driver_is_not_laid_to_the_kernel() -> None:
    """A kernel that prints: of 1,000 instructions three are its own."""
    own = made("STL.64 [R1], R8 ;", "CALL.ABS.NOINC 0x0 ;", "EXIT ;", executed=1).profile
    prints = replace(own, metrics={**own.metrics, metrics.INSTRUCTIONS_EXECUTED: 1000.0})
    assert runs_elsewhere(prints) and not runs_elsewhere(own)
    assert work(prints).program is None and work(own).program is not None
    assert any("printf" in line for line in explain(prints).trust)
    uncounted = replace(prints, instances={})
    assert runs_elsewhere(uncounted) and "printf" in explain(uncounted).trust[0]
    many = replace(
        uncounted, launch=replace(own.launch, grid=(400, 1, 1))
    )  # as many as its warps execute themselves
    assert not runs_elsewhere(many)


def test_more_warps_than_fit_were_counted_in_another_launch() -> None:
    """Half of the warps that an SM holds fit by the limits of one launch, all were resident in the other's."""
    limits = {
        metrics.BLOCK_LIMIT_REGISTERS: 16.0,
        metrics.BLOCK_LIMIT_SHARED_MEMORY: 8.0,
        metrics.BLOCK_LIMIT_WARPS: 16.0,
        metrics.BLOCK_LIMIT_BLOCKS: 32.0,
        metrics.THEORETICAL_OCCUPANCY: 50.0,
        metrics.SM_COUNT: 132.0,
    }
    profile = made("LDG.E R4, [R2] ;", "EXIT ;").profile
    shape = replace(profile.launch, grid=(8192, 1, 1), block=(128, 1, 1), waves_per_sm=7.8)

    def told(resident: float) -> list[Candidate]:
        counted = {**profile.metrics, **limits, metrics.ACHIEVED_WARPS: resident}
        return [*low_occupancy(work(replace(profile, launch=shape, metrics=counted)))]

    assert told(31.0) and not told(60.0)


@pytest.mark.parametrize(("name", "told"), [("cudapy::nearest", ["unsigned indices"]), ("nearest", [])])
def test_numba_counts_negative_indices_from_the_end(name: str, told: list[str]) -> None:
    """A sign, a mask of the size where it is set, and their sum, for an index that an unsigned one does not need."""
    profile = made(
        "S2R R0, SR_TID.X ;", "SHF.R.S32.HI R1, RZ, 0x1f, R0 ;", "LOP3.LUT R2, R1, c[0x0][0x160], RZ, 0xc0, !PT ;",
        "IADD3 R3, P0, R2, R0, RZ ;", "LEA R4, P1, R3, c[0x0][0x168], 0x2 ;", "LDG.E R6, [R4] ;",
        "STG.E [R4], R6 ;", "EXIT ;",
    ).profile  # fmt: skip
    found = [*integer_arithmetic(work(replace(profile, name=name)))]
    assert [way.name for one in found for way in one.variants] == told
    assert all(one.fix.keep is not None and one.fix.keep.tolist()[:5] == [1, 0, 0, 0, 1] for one in found)


@pytest.mark.parametrize(("microseconds", "said"), [(3.7, False), (37.0, True)])
def test_no_other_pipe_is_told_of_what_is_mostly_a_launch(microseconds: float, said: bool) -> None:
    profile = replace(
        launch({metrics.DURATION: 1e3 * microseconds}, capability=(8, 9)), name="ampere_sgemm_128x32_tn"
    )
    assert any("TF32" in one for one in levers(profile)) is said


def test_nobody_rewrites_the_code_of_curand() -> None:
    found = made("LDL R4, [R2] ;", "EXIT ;", places=[("/cuda/include/curand_kernel.h", 725), ("made.cu", 3)])
    (told,) = offered(found, local_memory(found))
    assert "curand_init" in told.change and told.cause == "local_memory"
    mine = made("LDL R4, [R2] ;", "EXIT ;")
    (told,) = offered(mine, local_memory(mine))
    assert "curand" not in told.change and np.any(told.attributed)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("init_rng(curandStateXORWOW *, unsigned long, int)", True),
        ("setup(curandStatePhilox4_32_10 *, unsigned long)", False),  # starts at once
        ("walk(curandStateXORWOW *, float *)", False),  # it may draw more than it sets up
    ],
)
def test_a_kernel_that_sets_up_generators_is_told_so_without_counts(name: str, said: bool) -> None:
    profile = replace(launch({}), name=name)
    assert bool(levers(profile)) is said and not levers(profile, {"local_memory"})


@pytest.mark.parametrize(
    ("name", "told"), [("mine(int *)", True), ("void cub::DeviceMergeSortBlockSortKernel<int>(int *)", False)]
)
def test_idle_sms_are_told_of_blocks_that_somebody_chooses(name: str, told: bool) -> None:
    profile = launch({metrics.DURATION: 2e4, metrics.SM_COUNT: 108.0})
    profile = replace(profile, name=name, launch=replace(profile.launch, grid=(49, 1, 1), block=(256, 1, 1)))
    assert any("without work" in one for one in of_the_launch(work(profile))) is told


@pytest.mark.parametrize(
    ("unit", "inside", "told"),
    [
        ("issue", "FFMA R4, R4, R11, 0.14084610342979431152 ;", "__logf"),
        ("issue", "FFMA R4, R4, R11, R4 ;", ""),
        ("lsu", "LDS R4, [R2] ;", "float4"),
        ("lsu", "LDS.128 R4, [R2] ;", ""),
        ("fma", "FFMA R4, R4, R11, R4 ;", "tensor cores"),
        ("issue", "@P1 MOV R4, R5 ;", "constant number of rounds"),
        ("alu", "@P1 IMAD.MOV.U32 R4, RZ, RZ, R5 ;", "constant number of rounds"),
        ("issue", "MOV R4, R5 ;", ""),
    ],
)
def test_a_unit_at_its_limit_is_told_by_the_code_where_nobody_counted_it(
    unit: str, inside: str, told: str
) -> None:
    counted = {metrics.BUSY[unit][0]: 100.0, metrics.DURATION: 1e6, metrics.SM_ELAPSED_CYCLES_MAX: 1e6}
    sass = ("MOV R1, R2 ;", inside, inside, inside, "@P0 BRA 0x000010 ;", "EXIT ;")
    profile = made(*sass, counted=counted).profile
    found = work(replace(profile, instances={}))
    assert (
        found.program is None and told in of_the_busiest(found) and bool(of_the_busiest(found)) is bool(told)
    )
    assert not of_the_busiest(work(profile))  # counted, and looked at one by one


LOADED = ("S2R R9, SR_TID.X ;", "LDG.E R2, desc[UR4][R6.64] ;")
STEP = ("LDS R4, [R8] ;", "FADD R5, R5, R4 ;", "STS [R9], R5 ;", "BAR.SYNC.DEFER_BLOCKING 0x0 ;")
DONE = (*STEP[:-1], "BRA 0x000020 ;", "EXIT ;")


@pytest.mark.parametrize(
    ("sass", "told"),
    [
        ((*LOADED, "RED.E.ADD.STRONG.GPU [R2.64], R5 ;", "EXIT ;"), "atomic of its own"),
        ((*LOADED, "RED.E.ADD.STRONG.GPU [R6.64], R5 ;", "EXIT ;"), ""),  # one place for all: a block's sum
        ((*LOADED, *DONE[:-1], "RED.E.ADD.STRONG.GPU [R2.64], R5 ;", "EXIT ;"), ""),  # after its loop
        ((*LOADED, *STEP * 4, "EXIT ;"), "in 3 steps"),
        ((*LOADED, *STEP[:1], *STEP[2:] * 4, "EXIT ;"), ""),  # what is stored was not added up
        ((*LOADED, *STEP, "@P0 BRA 0x000020 ;", "EXIT ;"), "in 5 steps"),  # a loop of them, for 32 threads
        ((*LOADED, "LDS R5, [R8] ;", "RED.E.ADD.STRONG.GPU [R2.64], R5 ;", "EXIT ;"), ""),  # a block's sum
    ],
)
def test_what_warps_wait_for_one_after_the_other_is_told_by_the_code(
    sass: tuple[str, ...], told: str
) -> None:
    counted = {metrics.BUSY["lsu"][0]: 50.0, metrics.DURATION: 1e6, metrics.SM_ELAPSED_CYCLES_MAX: 1e6}
    said = of_the_busiest(work(replace(made(*sass, counted=counted).profile, instances={})))
    assert told in said and bool(said) is bool(told)
