"""Launch statistics: grid, block, registers, shared memory, clusters, as the section LaunchStats gives them."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.model import KernelProfile, NotCollected

NAME = "launch"
TITLE = "Launch"
GROUP = metrics.LAUNCH


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch. Shared memory in bytes per block; None where the report does not say.

    Of a range or graph, each figure is the largest of its launches, so `threads` need not be the product of the others.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks: int
    threads_per_block: int
    threads: int
    warps_per_block: int
    registers_per_thread: int | None
    static_shared_memory: int | None
    dynamic_shared_memory: int | None
    driver_shared_memory: int | None
    shared_memory_config: int | None
    cluster_size: int | None
    waves_per_sm: float | None
    sm_count: int | None
    stack_bytes: int | None
    cache_config: str | None
    cluster_scheduling_policy: str | None
    tpc_count: int | None
    """Pairs of SMs (texture processing clusters) that the launch could use."""
    enabled_tpcs: str | None
    green_context: int | None
    """1 if the launch was confined to a part of the GPU by a green context."""
    idle_lanes: int
    """Threads of the last warp of a block that do not exist: 32·⌈threads/32⌉ − threads."""
    launches: int | None = 1
    """Launches that the figures are of; None for a range or graph whose report does not say."""
    missing: NotCollected | None = None


RESULT = Launch

WARP_SIZE = 32


def analyse(profile: KernelProfile) -> Launch:
    """The launch; grid and block are in every report, so there is always a result."""
    launch = profile.launch
    blocks, threads_per_block = launch.blocks, launch.threads_per_block
    threads = blocks * threads_per_block
    launches: int | None = 1
    if profile.workload != "kernel":
        blocks = _whole_number(profile, metrics.GRID_SIZE) or blocks
        threads_per_block = _whole_number(profile, metrics.BLOCK_SIZE) or threads_per_block
        threads = _whole_number(profile, metrics.THREADS) or threads
        launches = len(profile.instances.get(metrics.GRID_SIZE, ())) or None
    warps = -(-threads_per_block // WARP_SIZE)
    sm_count = _whole_number(profile, metrics.SM_COUNT)
    return Launch(
        grid=launch.grid,
        block=launch.block,
        blocks=blocks,
        threads_per_block=threads_per_block,
        threads=threads,
        warps_per_block=warps,
        registers_per_thread=launch.registers_per_thread,
        static_shared_memory=launch.static_shared_memory,
        dynamic_shared_memory=launch.dynamic_shared_memory,
        driver_shared_memory=launch.driver_shared_memory,
        shared_memory_config=launch.shared_memory_config,
        cluster_size=launch.cluster_size,
        waves_per_sm=launch.waves_per_sm,
        sm_count=profile.device.sm_count if sm_count is None else sm_count,
        stack_bytes=_whole_number(profile, metrics.STACK_SIZE),
        cache_config=profile.text(metrics.CACHE_CONFIG),
        cluster_scheduling_policy=profile.text(metrics.CLUSTER_SCHEDULING_POLICY),
        tpc_count=_whole_number(profile, metrics.TPC_COUNT),
        enabled_tpcs=profile.text(metrics.TPC_ENABLED),
        green_context=_whole_number(profile, metrics.GREEN_CONTEXT),
        idle_lanes=warps * WARP_SIZE - threads_per_block,
        launches=launches,
        missing=GROUP.incomplete(profile.metrics),
    )


def _whole_number(profile: KernelProfile, metric: str) -> int | None:
    value = profile.number(metric)
    return None if value is None else int(value)
