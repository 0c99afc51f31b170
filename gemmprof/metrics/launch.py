"""How a kernel was launched, and its occupancy (sections LaunchStats and Occupancy)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gemmprof.metrics.groups import MetricGroup
from gemmprof.metrics.throughput import DURATION, SM_ACTIVE_CYCLES

# --- Launch (section LaunchStats) -------------------------------------------------------------------------------------

GRID_SIZE = "launch__grid_size"
BLOCK_SIZE = "launch__block_size"
THREADS = "launch__thread_count"
GRID_DIMENSIONS = ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z")
# Stored with a launch itself; of a range or graph only these metrics tell, with the largest of its launches.
BLOCK_DIMENSIONS = ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z")
REGISTERS_PER_THREAD = "launch__registers_per_thread"
DEVICE_SMS = "device__attribute_multiprocessor_count"
SHARED_MEMORY_CONFIG = "launch__shared_mem_config_size"
SHARED_MEMORY_DRIVER = "launch__shared_mem_per_block_driver"
SHARED_MEMORY_DYNAMIC = "launch__shared_mem_per_block_dynamic"
SHARED_MEMORY_STATIC = "launch__shared_mem_per_block_static"
CACHE_CONFIG = "launch__func_cache_config"
CLUSTER_SIZE = "launch__cluster_size"
WAVES_PER_SM = "launch__waves_per_multiprocessor"
SM_COUNT = "launch__sm_count"
DEVICE_ID = "launch__device_id"  # CUDA's index of the GPU, as the program sees them
STACK_SIZE = "launch__stack_size"
CLUSTER_SCHEDULING_POLICY = "launch__cluster_scheduling_policy"
TPC_COUNT = "launch__tpc_count"
TPC_ENABLED = "launch__tpc_enabled"
GREEN_CONTEXT = "launch__uses_green_context"
# Instance values: address of the kernel's first instruction, and of the functions that it calls.
FUNCTION_PCS = "launch__function_pcs"
DEVICE_ATTRIBUTE_PREFIX = "device__attribute_"

# How metrics begin that are known without measuring: they belong to the GPU, the launch or ncu itself.
_FACTS = ("device__", "launch__", "profiler__", "nvlink__", "numa__", "c2clink__")
_NOT_COUNTED = re.compile(
    r"breakdown:|regex:|group:|sm(?:sp)?__maximum_warps_|derived_temp|.*\.(?:peak_sustained|max_rate)"
)


def counters(present: Iterable[str]) -> Iterator[str]:
    """Those metrics that ncu measures at a launch: neither facts of the GPU or the launch, nor peaks, nor lists."""
    return (name for name in present if not name.startswith(_FACTS) and not _NOT_COUNTED.match(name))


# What tells the launches of a program apart and how much each matters; one pass collects it.
COUNT = (DURATION, SHARED_MEMORY_DYNAMIC)

LAUNCH = MetricGroup(
    sections=("LaunchStats",),
    expected=(
        GRID_SIZE,
        BLOCK_SIZE,
        THREADS,
        REGISTERS_PER_THREAD,
        SHARED_MEMORY_CONFIG,
        SHARED_MEMORY_DRIVER,
        SHARED_MEMORY_DYNAMIC,
        SHARED_MEMORY_STATIC,
        WAVES_PER_SM,
    ),
    optional=(
        CACHE_CONFIG,
        CLUSTER_SIZE,
        CLUSTER_SCHEDULING_POLICY,
        SM_COUNT,
        STACK_SIZE,
        TPC_COUNT,
        TPC_ENABLED,
        GREEN_CONTEXT,
    ),
)

# --- Occupancy (section Occupancy) ------------------------------------------------------------------------------------

THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
THEORETICAL_WARPS = "sm__maximum_warps_avg_per_active_cycle"
ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ACHIEVED_WARPS = "sm__warps_active.avg.per_cycle_active"
BLOCK_LIMIT_REGISTERS = "launch__occupancy_limit_registers"
BLOCK_LIMIT_SHARED_MEMORY = "launch__occupancy_limit_shared_mem"
BLOCK_LIMIT_WARPS = "launch__occupancy_limit_warps"
BLOCK_LIMIT_BLOCKS = "launch__occupancy_limit_blocks"
# From 9.0 on. ncu prints at most the SM's block slots here.
BLOCK_LIMIT_BARRIERS = "launch__occupancy_limit_barriers"
BARRIERS_PER_BLOCK = "launch__barrier_count"
WARPS_PER_BLOCK_SIZE = "launch__occupancy_per_block_size"
WARPS_PER_REGISTER_COUNT = "launch__occupancy_per_register_count"
WARPS_PER_SHARED_MEMORY = "launch__occupancy_per_shared_mem_size"
# Instance values: resident warps over block size, registers per thread, bytes per block (the driver's reserve
# included) and barriers per block. The scalar is a meaningless sum.
WARPS_PER_BARRIER_COUNT = "launch__occupancy_per_barrier_count"
ACTIVE_CYCLES_MIN = "sm__cycles_active.min"
ACTIVE_CYCLES_MAX = "sm__cycles_active.max"
MAX_ACTIVE_CLUSTERS = "launch__cluster_max_active"
CLUSTER_OCCUPANCY = "launch__occupancy_cluster_pct"

OCCUPANCY = MetricGroup(
    sections=("Occupancy", "LaunchStats"),
    required=(
        THEORETICAL_OCCUPANCY,
        BLOCK_LIMIT_REGISTERS,
        BLOCK_LIMIT_SHARED_MEMORY,
        BLOCK_LIMIT_WARPS,
        BLOCK_LIMIT_BLOCKS,
    ),
    expected=(ACHIEVED_OCCUPANCY, ACHIEVED_WARPS, THEORETICAL_WARPS, WAVES_PER_SM),
    optional=(
        BLOCK_LIMIT_BARRIERS,
        BARRIERS_PER_BLOCK,
        WARPS_PER_BLOCK_SIZE,
        WARPS_PER_REGISTER_COUNT,
        WARPS_PER_SHARED_MEMORY,
        WARPS_PER_BARRIER_COUNT,
        SM_ACTIVE_CYCLES,
        ACTIVE_CYCLES_MIN,
        ACTIVE_CYCLES_MAX,
        SM_COUNT,
        CLUSTER_SIZE,
        MAX_ACTIVE_CLUSTERS,
        CLUSTER_OCCUPANCY,
    ),
)
