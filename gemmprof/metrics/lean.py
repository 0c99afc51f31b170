"""All groups by the name of their analysis, and the ncu options that collect them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gemmprof.metrics import compute, memory, throughput
from gemmprof.metrics.groups import MetricGroup
from gemmprof.metrics.memory import BANK_CONFLICTS, COALESCING, MEMORY_CHART, SPILLS
from gemmprof.metrics.throughput import ROOFLINE, SPEED_OF_LIGHT

# --- Advice: rule results come with whatever sections are collected ---------------------------------------------------

ADVICE = MetricGroup(sections=("SpeedOfLight",))

# Every group by the name of the analysis that reads it.
GROUPS: dict[str, MetricGroup] = {
    "launch": compute.LAUNCH,
    "speed_of_light": SPEED_OF_LIGHT,
    "roofline": ROOFLINE,
    "instruction_mix": compute.INSTRUCTION_MIX,
    "warp_states": compute.WARP_STATES,
    "scheduler": compute.SCHEDULER,
    "rules": ADVICE,
    "bank_conflicts": BANK_CONFLICTS,
    "coalescing": COALESCING,
    "memory_chart": MEMORY_CHART,
    "divergence": compute.DIVERGENCE,
    "spills": SPILLS,
    "occupancy": compute.OCCUPANCY,
    "source_view": compute.SOURCE_VIEW,
    "timeline": compute.TIMELINE,
}


_TABLES = "MemoryWorkloadAnalysis_Tables"
# What the lean set leaves out of ncu's sections: metrics by prefix that cost an instrumented replay of their
# own, and tables for which ncu collects hundreds of metrics where the analyses read a few (which the
# lean set names).
LEAN_WITHOUT = (
    "smsp__sass_inst_executed_memdesc_explicit_",  # explicit L2 eviction policies
    "smsp__sass_average_data_bytes_per_sector_",  # sectors per request and the excess say nearly as much
    "MemoryL1TEXCacheTable",
    "MemoryL2CacheTable",
    "MemoryL2CacheEvictPolicyTable",
    "MemoryDeviceMemoryTable",
)
# Thousands of metrics of tensor cores, 0.4 s a launch: left out where it is known that no kernel uses them.
_TENSOR_SECTIONS = frozenset({"SpeedOfLight_HierarchicalTensorRooflineChart"})
_BY_NAME = re.compile(r"(?:sm|smsp|l1tex|lts|dram)__\w+\.[\w.]+")


LEAN = "lean"  # the set of what the analyses read, in as few passes as can be


def collection_options(
    metric_set: str = LEAN,
    *,
    tensor: bool = True,
    timeline: bool = True,
    sections: Iterable[str] = (),
    names: Iterable[str] = (),
) -> tuple[str, ...]:
    """ncu's options for a set, each section and metric once. The lean one is meant to be read without `LEAN_WITHOUT`.

    Args:
        metric_set: `LEAN`, or one of ncu's own.
        tensor: of the lean one also what is read of kernels that use tensor cores.
        timeline: of the lean one also samples over time.
        sections, names: more sections and metrics.
    """
    options = ["--set", metric_set]
    if metric_set == LEAN:
        groups = GROUPS.values()
        of_tables = (
            name
            for group in groups
            if _TABLES in group.sections
            for name in (*group.required, *group.expected, *group.of_tables)
            if _BY_NAME.fullmatch(name) and not name.startswith(LEAN_WITHOUT)
        )
        left_out = frozenset() if tensor else _TENSOR_SECTIONS
        left_out |= frozenset() if timeline else {compute.PM_SAMPLING}
        own = (name for group in groups for name in group.sections if name not in left_out)
        options, sections = [], (*own, *sections)
        names = (*(name for group in groups for name in group.requested), *of_tables, *names)
    for section in dict.fromkeys(sections):
        options += ["--section", section]
    if listed := ",".join(dict.fromkeys(names)):
        options += ["--metrics", listed]
    return tuple(options)


# The name of today by the older one, where both mean the same in the same unit.
OLDER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "gpu__time_duration": throughput.DURATION,
        "gpu__time_duration.avg": throughput.DURATION,
        "gpu__time_duration.max": throughput.DURATION,
        "sm__sol_pct": throughput.SM_THROUGHPUT,
        "gpu__compute_memory_sol_pct": throughput.MEMORY_THROUGHPUT,
        "tex__sol_pct": throughput.L1_THROUGHPUT,
        "ltc__sol_pct": throughput.L2_THROUGHPUT,
        "fbpa__sol_pct": throughput.DRAM_THROUGHPUT,
        "gpc__elapsed_cycles_max": throughput.ELAPSED_CYCLES,
        "gpc__frequency": throughput.SM_CLOCK,
        "dram__frequency": throughput.DRAM_CLOCK,
        "sm__active_cycles_avg": throughput.SM_ACTIVE_CYCLES,
        "dram__bytes_per_sec": throughput.DRAM_BYTES_PER_SECOND,
        "dram__read_bytes": memory.DRAM_READ_BYTES[0],
        "dram__write_bytes": memory.DRAM_WRITE_BYTES[0],
        "lts__request_total_sectors_hitrate_pct": memory.L2_HIT_RATE,
        "sm__active_warps_avg_per_active_cycle": compute.ACHIEVED_WARPS,
        "sm__active_warps_avg_per_active_cycle_pct": compute.ACHIEVED_OCCUPANCY,
        "smsp__active_warps_avg_per_active_cycle": compute.WARPS_ACTIVE_PER_SCHEDULER,
        "smsp__eligible_warps_avg_per_active_cycle": compute.WARPS_ELIGIBLE_PER_SCHEDULER,
        "smsp__issue_active_avg_per_active_cycle": compute.ISSUE_ACTIVE,
        "smsp__issue_active_per_active_cycle_pct": compute.ISSUE_ACTIVE_PERCENT,
        "smsp__inst_issued0_active_per_active_cycle_pct": compute.ISSUE_IDLE_PERCENT,
        "sm__inst_executed_avg_per_active_cycle": compute.IPC_ACTIVE,
        "sm__inst_executed_avg_per_elapsed_cycle": compute.IPC_ELAPSED,
        "sm__inst_issued_avg_per_active_cycle": compute.ISSUED_IPC_ACTIVE,
        "smsp__inst_executed_sum": compute.INSTRUCTIONS_EXECUTED,
        "smsp__inst_executed_avg": compute.INSTRUCTIONS_EXECUTED_PER_SCHEDULER,
        "smsp__inst_issued_sum": compute.INSTRUCTIONS_ISSUED,
        "smsp__inst_issued_avg": compute.INSTRUCTIONS_ISSUED_PER_SCHEDULER,
    }
)
