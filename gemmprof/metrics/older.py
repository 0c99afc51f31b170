"""Names that metrics had on Pascal, which Nsight Compute knew up to 2019.5, and others of the same quantity."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gemmprof.metrics import compute, launch, memory, throughput

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
        "sm__active_warps_avg_per_active_cycle": launch.ACHIEVED_WARPS,
        "sm__active_warps_avg_per_active_cycle_pct": launch.ACHIEVED_OCCUPANCY,
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
"""The name of today by the older one, where both mean the same in the same unit."""
