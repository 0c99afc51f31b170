"""Speed of light and roofline: throughputs, clocks, work and traffic against their peaks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics.groups import KNOWN_NAMES

# --- Speed of light (section SpeedOfLight) ----------------------------------------------------------------------------

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


# Predicated-on thread instructions of one operation (``ffma``, ``dadd`` …) per elapsed cycle, and the most that all SMs
# together can execute.
executed_per_cycle = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed".format
peak_per_cycle = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained".format
_TENSOR_PATH = re.compile(r"sm__ops_path_tensor_(\w+)\.sum\.per_cycle_elapsed")


def tensor_paths(present: Iterable[str]) -> Iterator[str]:
    """The tensor paths (``op_hgmma_src_bf16_dst_fp32_sparsity_off`` …) that a report holds counters of."""
    return (match[1] for match in filter(None, map(_TENSOR_PATH.fullmatch, present)))


# Operations of one tensor path per elapsed cycle, all SMs together, and the most that they can execute.
tensor_operations_per_cycle = "sm__ops_path_tensor_{}.sum.per_cycle_elapsed".format
tensor_operations_peak = "sm__ops_path_tensor_{}.sum.peak_sustained".format
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


# By resource: how busy it was, per cent of its peak over elapsed cycles. The busiest of those present counts.
# Atomics on few words keep one slice of L2 busy, so there the busiest slice counts, not the average one.
_BUSY = grouped((resource, metric) for resource, metric in facts(__file__, "busy.csv"))
BUSY = {resource: tuple(found) for resource, found in _BUSY.items()}


# Sectors at L1's tags: ``space`` is global or local, ``lookup`` is '' or ``_lookup_miss``.
LSU_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{space}_op_{operation}{lookup}.sum"

# Cycles that a warp spends in a state for each instruction that it issues.
stalled_per_issue = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format
