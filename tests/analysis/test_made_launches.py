"""Analyses of launches made by hand: numbers that recorded launches do not tell apart."""

from __future__ import annotations

import dataclasses

import pytest
from asked import analysed
from profiles import code, launch

from gemmprof import metrics as m
from gemmprof.analysis.sections import (
    bank_conflicts,
    coalescing,
    divergence,
    instruction_mix,
    memory_chart,
    roofline,
    warp_states,
)
from gemmprof.analysis.sections import launch_statistics as launches
from gemmprof.model import Instances, KernelProfile, LaunchStatistics

SETS_A_REGISTER = "HFMA2 R2, -RZ, RZ, 1.875, 0"


def with_opcodes(profile: KernelProfile, **executed: int) -> KernelProfile:
    """The launch with so many warp-level executions by opcode."""
    counts = Instances(tuple(executed), tuple(executed.values()))
    return dataclasses.replace(profile, instances={**profile.instances, m.EXECUTED_PER_OPCODE: counts})


@pytest.mark.parametrize(("per_cycle", "only"), [(1.0, True), (1.04, True), (1.06, False), (2.0, False)])
def test_half_precision_that_only_sets_registers_is_told_by_its_count(per_cycle: float, only: bool) -> None:
    """1,000 threads set a register in 1,000 cycles; the rates were counted in another pass, a little off."""
    rates = {m.executed_per_cycle(f"h{name}"): 0.0 for name in ("add", "mul")}
    rates[m.executed_per_cycle("hfma")] = per_cycle
    profile = launch(
        {
            **rates,
            m.SMSP_CLOCK: 1e9,
            m.SM_ELAPSED_CLOCK: 1e9,
            m.ELAPSED_CYCLES: 1000.0,
            m.peak_per_cycle("hfma"): 128.0,
            m.DRAM_BYTES_PEAK: 1000.0,
            m.DRAM_CLOCK: 1e9,
        },
        per_instruction={m.THREADS_PREDICATED_BY_ADDRESS: {0: 1000}},
        instructions=code((SETS_A_REGISTER, None, None)),
    )
    found = analysed(roofline, profile)
    (roof,) = found.compute_roofs
    assert roof.only_constants is only


def test_the_busiest_part_of_a_unit_is_the_largest_of_its_own() -> None:
    parts = {
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 30.0,
        "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 20.0,
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 70.0,
        "lts__d_sectors.avg.pct_of_peak_sustained_elapsed": 80.0,
    }
    found = analysed(
        memory_chart, launch({**parts, m.BREAKDOWN_MEMORY: ", ".join(parts), m.L2_TO_L1_BYTES: 1})
    )
    l1, l2 = found.unit("l1"), found.unit("l2")
    assert l1 is not None and l1.busiest == "L1: Data Pipe Lsu Wavefronts"
    assert l2 is not None and l2.busiest == "L2: D Sectors"


def test_bandwidths_are_bytes_over_the_duration() -> None:
    found = analysed(memory_chart, launch({m.L2_TO_L1_BYTES: 3_000.0, m.DURATION: 2_000.0}))
    link = found.link("l2", "l1", "read")
    assert link is not None and link.bytes_per_second == pytest.approx(1.5e9)


def test_matrix_loads_are_requests_of_loads() -> None:
    numbers = {
        m.SHARED_WAVEFRONTS_OF["load"]: 600.0,
        m.SHARED_CONFLICTS_OF["load"][0]: 150.0,
        m.SHARED_WAVEFRONTS_OF["store"]: 0.0,
        m.SHARED_CONFLICTS_OF["store"][0]: 0.0,
        m.SHARED_INSTRUCTIONS_OF["load"][0]: 100.0,
        m.SHARED_INSTRUCTIONS_OF["ldmatrix"][0]: 50.0,
    }
    accesses = {m.SHARED_WAVEFRONTS_BY_ADDRESS: {0: 600}, m.SHARED_IDEAL_BY_ADDRESS: {0: 400}}
    found = analysed(bank_conflicts, launch(numbers, per_instruction=accesses))
    loads = found.operation("load")
    assert loads is not None and (loads.requests, loads.n_way, loads.share) == (150.0, 4.0, 25.0)


@pytest.mark.parametrize(("ways", "sectors"), [((300.0, 20.0), 320.0), ((300.0, None), None)])
def test_sectors_of_asynchronous_copies_need_both_ways(
    ways: tuple[float | None, ...], sectors: float | None
) -> None:
    counted = {name: value for name, value in zip(m.ASYNC_COPY_SECTORS, ways, strict=True) if value}
    assert coalescing.async_copy_sectors(launch(counted)) == sectors


@pytest.mark.parametrize(("used", "told"), [(8.0, 8.0), (32.0, 32.0), (33.0, None), (0.0, None)])
def test_bytes_used_of_a_sector_that_make_no_sense_are_not_told(used: float, told: float | None) -> None:
    numbers = {
        **dict.fromkeys(m.COALESCING.required, 10.0),
        m.GLOBAL_BYTES_PER_SECTOR_OF["load"]: used,
        m.GLOBAL_BYTES_PER_SECTOR_LIMIT_OF["load"]: 32.0,
    }
    found = analysed(coalescing, launch(numbers))
    loads = found.operation("load")
    assert loads is not None and loads.bytes_used_per_sector == told


@pytest.mark.parametrize(
    ("uniform", "divergent", "told"), [(0.0, 0.0, None), (0.0, 5.0, 0.0), (80.0, 5.0, 80.0)]
)
def test_without_a_branch_that_could_diverge_nothing_is_said_of_them(
    uniform: float, divergent: float, told: float | None
) -> None:
    numbers = {
        m.THREADS_PER_INSTRUCTION: 32.0,
        m.UNIFORM_BRANCHES_PERCENT[0]: uniform,
        m.DIVERGENT_BRANCHES[0]: divergent,
        m.BRANCH_FRACTION: 0.125,
    }
    found = analysed(divergence, launch(numbers))
    assert (found.uniform_share, found.branch_share) == (told, 12.5)


def test_a_matrix_instruction_outweighs_scalar_ones() -> None:
    found = analysed(instruction_mix, with_opcodes(launch(), FFMA=600, HGMMA=10, WARPGROUP=40, LDS=20))
    ratios = found.ratios
    assert (ratios.main_opcode, ratios.main_per_shared_load) == ("HGMMA", 0.5)
    assert ratios.math_share == pytest.approx(610 / 670), "a wait for wgmma is no arithmetic"


def test_registers_that_are_set_are_told_apart_from_half_precision() -> None:
    counts = {m.INSTRUCTIONS_BY_ADDRESS: {0: 30, 16: 70}, m.THREADS_PREDICATED_BY_ADDRESS: {0: 900, 16: 2000}}
    instructions = code((SETS_A_REGISTER, None, None), ("HFMA2 R4, R5, R6, R7", None, None))
    profile = launch(per_instruction=counts, instructions=instructions)
    found = analysed(instruction_mix, with_opcodes(profile, HFMA2=100, FFMA=100))
    shares = {item.key: (item.executed, item.thread_executed) for item in found.classes}
    assert shares["move"] == (30, 900) and shares["fp16"] == (70, 2000)
    assert found.ratios.fma_share == pytest.approx(170 / 200)


def test_shares_of_states_are_of_the_latency() -> None:
    """The states are counted in other passes: here they add up to 9 of 10 cycles."""
    cycles = {"long_scoreboard": 6.0, "selected": 1.0, "wait": 2.0}
    numbers = {m.stalled_per_issue(state): value for state, value in cycles.items()}
    found = analysed(warp_states, launch({**numbers, m.CYCLES_PER_ISSUE: 10.0}))
    assert [(state.reason.key, state.share) for state in found.states] == [
        ("long_scoreboard", 0.6),
        ("wait", 0.2),
        ("selected", 0.1),
    ]
    alone = analysed(warp_states, launch(numbers))
    assert [state.share for state in alone.states] == pytest.approx([6 / 9, 2 / 9, 1 / 9])


@pytest.mark.parametrize(("threads", "idle"), [(1, 31), (32, 0), (33, 31), (1000, 24)])
def test_lanes_of_the_last_warp_that_no_thread_uses(threads: int, idle: int) -> None:
    shape = LaunchStatistics((4, 1, 1), (threads, 1, 1))
    found = launches.analyse(dataclasses.replace(launch(), launch=shape))
    assert (found.idle_lanes, found.threads) == (idle, 4 * threads)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("sm__inst_executed", "issue slots"),
        ("sm__issue_active", "issue slots"),
        ("sm__inst_executed_pipe_lsu", "load/store unit"),
        ("sm__pipe_fmaheavy_cycles_active", "FMA pipe"),
        ("sm__inst_executed_pipe_alu", "integer ALU"),
        ("sm__pipe_aluheavy_cycles_active", "integer ALU"),
        ("sm__pipe_fp64_cycles_active", "FP64 pipe"),
        ("sm__pipe_shared_cycles_active", "FP64 and tensor pipe"),
        ("sm__pipe_tensor_op_dmma_cycles_active", "tensor cores"),
        ("sm__pipe_tc_cycles_active", "tensor cores"),
        ("sm__mem_tensor_cycles_active", "tensor cores"),
        ("sm__inst_executed_pipe_tex", "texture unit"),
        ("l1tex__f_wavefronts", "texture unit"),
        ("l1tex__data_pipe_lsu_wavefronts", "L1 data stage"),
        ("l1tex__m_xbar2l1tex_read_sectors", "L1 cache"),
        ("lts__t_sectors", "L2 cache"),
        ("dram__cycles_active", "DRAM"),
        ("gpu__dram_throughput", "DRAM"),
        ("gpu__compute_memory_access_throughput_internal_activity", "internal activity"),
        ("new__unit_active", ""),
    ],
)
def test_units_behind_the_members_of_a_breakdown(name: str, unit: str) -> None:
    """Names of every architecture from 7.0 to 12.1."""
    assert m.hardware_unit(f"{name}.avg.pct_of_peak_sustained_elapsed") == unit
