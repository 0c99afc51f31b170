"""Speed of light and roofline: throughputs, clocks, work and traffic against their peaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics.groups import KNOWN_NAMES, MetricGroup

# --- Speed of light (section SpeedOfLight) ----------------------------------------------------------------------------

DURATION = "gpu__time_duration.sum"
SM_THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
L1_THROUGHPUT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_THROUGHPUT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_THROUGHPUT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
ELAPSED_CYCLES = "gpc__cycles_elapsed.max"
SM_ACTIVE_CYCLES = "sm__cycles_active.avg"
SM_CLOCK = "gpc__cycles_elapsed.avg.per_second"
DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second"
BREAKDOWN_SM = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
BREAKDOWN_MEMORY = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"

SPEED_OF_LIGHT = MetricGroup(
    sections=("SpeedOfLight",),
    expected=(
        SM_THROUGHPUT,
        MEMORY_THROUGHPUT,
        DURATION,
        L1_THROUGHPUT,
        L2_THROUGHPUT,
        ELAPSED_CYCLES,
        SM_ACTIVE_CYCLES,
        SM_CLOCK,
        BREAKDOWN_SM,
        BREAKDOWN_MEMORY,
    ),
)

L1_DATA_STAGE = "L1 data stage"
# One path serves both; the breakdown's other members tell which of the two was busy.
FP64_OR_TENSOR, FP64_PIPE, TENSOR_CORES = "FP64 and tensor pipe", "FP64 pipe", "tensor cores"

_UNIT_PATTERNS = tuple((re.compile(pattern), unit) for pattern, unit in facts(__file__, "hardware_units.csv"))


@lru_cache(maxsize=KNOWN_NAMES)
def hardware_unit(name: str) -> str:
    """The hardware unit that a member of a throughput breakdown measures, in words ('' if it is unknown).

    The L1 data stage serves the L1 cache and shared memory alike.
    """
    base = name.partition(".")[0]
    return next((unit for pattern, unit in _UNIT_PATTERNS if pattern.fullmatch(base)), "")


# --- Roofline (sections SpeedOfLight_RooflineChart, SpeedOfLight_Hierarchical*RooflineChart) --------------------------

SMSP_CLOCK = "smsp__cycles_elapsed.avg.per_second"
SM_ELAPSED_CLOCK = "sm__cycles_elapsed.avg.per_second"
L1_CLOCK = "l1tex__cycles_elapsed.avg.per_second"
L2_CLOCK = "lts__cycles_elapsed.avg.per_second"


def executed_per_cycle(operation: str) -> str:
    """Predicated-on thread instructions of one operation (``ffma``, ``dadd`` …) per elapsed cycle."""
    return f"smsp__sass_thread_inst_executed_op_{operation}_pred_on.sum.per_cycle_elapsed"


def peak_per_cycle(operation: str) -> str:
    """The most thread instructions of one operation that all SMs together can execute per cycle."""
    return f"sm__sass_thread_inst_executed_op_{operation}_pred_on.sum.peak_sustained"


DRAM_BYTES_PER_SECOND = "dram__bytes.sum.per_second"
DRAM_BYTES_PEAK = "dram__bytes.sum.peak_sustained"
L2_TO_XBAR_PER_SECOND = "lts__lts2xbar_cycles_active.sum.per_second"
L2_TO_XBAR_PEAK = "lts__lts2xbar_cycles_active.sum.peak_sustained"
L1_WRITEBACK_PER_SECOND = "l1tex__lsu_writeback_active_mem_lg.sum.per_second"
L1_WRITEBACK_PEAK = "l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained"
# From compute capability 9.0 on, with distributed shared memory.
L1_WRITEBACK_DSHARED_PER_SECOND = "l1tex__lsu_writeback_active_mem_lgds.sum.per_second"
L1_WRITEBACK_DSHARED_PEAK = "l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained"

# All that keeps shared memory's data stage busy, in one counter: loads, stores, atomics, asynchronous copies
# and wgmma's operands. The counters of each overlap or are counted in other passes (stores and copies that
# share a wavefront count in both), so their sum can be above what one SM can do. A kernel that touches no
# shared memory shows one or two wavefronts a warp here.
SHARED_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
SHARED_PEAK_PERCENT = f"{SHARED_WAVEFRONTS}.pct_of_peak_sustained_elapsed"

_TENSOR_PATH = re.compile(r"sm__ops_path_tensor_(\w+)\.sum\.per_cycle_elapsed")


def tensor_paths(present: Iterable[str]) -> Iterator[str]:
    """The tensor paths (``op_hgmma_src_bf16_dst_fp32_sparsity_off`` …) that a report holds counters of."""
    return (match[1] for match in filter(None, map(_TENSOR_PATH.fullmatch, present)))


def tensor_operations_per_cycle(path: str) -> str:
    """Operations of one tensor path per elapsed cycle, all SMs together."""
    return f"sm__ops_path_tensor_{path}.sum.per_cycle_elapsed"


def tensor_operations_peak(path: str) -> str:
    """The most operations of one tensor path that all SMs together can execute per cycle."""
    return f"sm__ops_path_tensor_{path}.sum.peak_sustained"


TENSOR_INSTRUCTIONS_PER_CYCLE = "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed"
TENSOR_BUSY = tuple(
    f"sm__pipe_tensor{part}cycles_active.avg.pct_of_peak_sustained_elapsed"
    for part in ("_", "_op_hmma_", "_op_imma_")
)
_TENSOR_FIXED = re.compile(r"derived__smsp__inst_executed_pipe_tensor(\w*)_x(\d+)")


def tensor_by_instruction(present: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Achieved and peak operations a cycle where ncu (up to 2024) takes so many for each tensor instruction."""
    for name in present:
        if _TENSOR_FIXED.fullmatch(name):
            yield name, name.replace("derived__smsp__", "derived__sm__", 1)


_ROOFLINE_BASIC = (
    SMSP_CLOCK,
    SM_ELAPSED_CLOCK,
    *(executed_per_cycle(f"{letter}{name}") for letter in "fd" for name in ("add", "mul", "fma")),
    *(peak_per_cycle(f"{letter}fma") for letter in "fd"),
)
_ROOFLINE_CACHES = (L1_CLOCK, L2_CLOCK, L2_TO_XBAR_PER_SECOND, L2_TO_XBAR_PEAK)
_ROOFLINE_HALF = (*(executed_per_cycle(f"h{name}") for name in ("add", "mul", "fma")), peak_per_cycle("hfma"))

ROOFLINE = MetricGroup(
    sections=(
        "SpeedOfLight_RooflineChart",
        "SpeedOfLight_HierarchicalSingleRooflineChart",
        "SpeedOfLight_HierarchicalDoubleRooflineChart",
        "SpeedOfLight_HierarchicalHalfRooflineChart",
        "SpeedOfLight_HierarchicalTensorRooflineChart",
    ),
    expected=(*_ROOFLINE_BASIC, *_ROOFLINE_CACHES, *_ROOFLINE_HALF, SHARED_WAVEFRONTS),
    requested=(SHARED_WAVEFRONTS,),
    sources={
        "SpeedOfLight_RooflineChart": _ROOFLINE_BASIC,
        "SpeedOfLight_HierarchicalSingleRooflineChart": _ROOFLINE_CACHES,
        "SpeedOfLight_HierarchicalHalfRooflineChart": _ROOFLINE_HALF,
    },
)


# By resource: how busy it was, per cent of its peak over elapsed cycles. The busiest of those present counts.
# Atomics on few words keep one slice of L2 busy, so there the busiest slice counts, not the average one.
_BUSY = grouped((resource, metric) for resource, metric in facts(__file__, "busy.csv"))
BUSY = {resource: tuple(names) for resource, names in _BUSY.items()}

L2_ATOMICS_AVERAGE = "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"
SM_ELAPSED_CYCLES_MAX = "sm__cycles_elapsed.max"
L1_ACTIVE_CYCLES_AVERAGE = "l1tex__cycles_active.avg"
MAX_WARPS_PER_SM = "device__attribute_max_warps_per_multiprocessor"
SHARED_MEMORY_PER_BLOCK = "launch__shared_mem_per_block"

GLOBAL_LOAD_HIT_RATE = "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"
LOCAL_LOAD_HIT_RATE = "l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct"
L2_READ_HIT_RATE = "lts__t_sector_op_read_hit_rate.pct"
L1_LOAD_SECTORS_FETCHED = "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum"
L1_STORE_SECTORS_WRITTEN = "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum"
# Sectors at L1's tags: ``space`` is global or local, ``lookup`` is '' or ``_lookup_miss``.
LSU_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{space}_op_{operation}{lookup}.sum"
SHARED_ATOMIC_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"
SHARED_LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
GLOBAL_EXCESS = "derived__memory_l2_theoretical_sectors_global_excessive"
CONSTANT_REQUESTS = "idc__requests.sum"
# Device memory that the program has allocated, counted by ncu before it replays a kernel.
ACCESSIBLE_BYTES = "profiler__replayer_bytes_mem_accessible.avg"
UNIFORM_BRANCHES = "smsp__sass_average_branch_targets_threads_uniform.pct"


def stalled_per_issue(state: str) -> str:
    """Cycles that a warp spends in a state for each instruction that it issues."""
    return f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"
