"""Launch statistics: grid, block, registers, shared memory, clusters, as the section LaunchStats gives them."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import collected, figure, unlisted
from gemmprof.gpu.arch import WARP
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
    idle_lanes: int  # threads of the last warp of a block that do not exist: 32·⌈threads/32⌉ − threads
    cache_config: str | None
    cluster_scheduling_policy: str | None
    enabled_tpcs: str | None
    green_context: int | None  # 1 if the launch was confined to a part of the GPU by a green context
    registers_per_thread: int | None = figure(
        "Registers per thread", alone="Registers of a thread", of=metrics.REGISTERS_PER_THREAD
    )
    static_shared_memory: int | None = figure("Static shared memory", "size", of=metrics.SHARED_MEMORY_STATIC)
    dynamic_shared_memory: int | None = figure(
        "Dynamic shared memory", "size", of=metrics.SHARED_MEMORY_DYNAMIC
    )
    driver_shared_memory: int | None = figure(
        "Reserved by the driver", "size", of=metrics.SHARED_MEMORY_DRIVER
    )
    shared_memory_config: int | None = figure(
        "Shared memory configuration", "size", of=metrics.SHARED_MEMORY_CONFIG
    )
    cluster_size: int | None = figure("Cluster size", of=metrics.CLUSTER_SIZE)
    waves_per_sm: float | None = figure(
        "Waves per SM",
        meaning="where a small part is left for the last one, it leaves SMs idle",
        of=metrics.WAVES_PER_SM,
    )
    stack_bytes: int | None = figure("Stack", "size", of=metrics.STACK_SIZE)
    tpc_count: int | None = figure("Pairs of SMs", meaning="that the launch could use", of=metrics.TPC_COUNT)
    sm_count: int | None = unlisted("SMs")
    launches: int | None = 1
    """Launches that the figures are of; None for a range or graph whose report does not say."""
    missing: NotCollected | None = None


def analyse(profile: KernelProfile) -> Launch:
    """The launch; grid and block are in every report, so there is always a result."""
    launch = profile.launch
    blocks, threads_per_block = launch.blocks, launch.threads_per_block
    threads = blocks * threads_per_block
    launches: int | None = 1
    if profile.workload != "kernel":
        blocks = profile.whole(metrics.GRID_SIZE) or blocks
        threads_per_block = profile.whole(metrics.BLOCK_SIZE) or threads_per_block
        threads = profile.whole(metrics.THREADS) or threads
        launches = len(profile.instances.get(metrics.GRID_SIZE, ())) or None
    warps = -(-threads_per_block // WARP)
    sm_count = profile.whole(metrics.SM_COUNT)
    return Launch(
        grid=launch.grid,
        block=launch.block,
        blocks=blocks,
        threads_per_block=threads_per_block,
        threads=threads,
        warps_per_block=warps,
        **collected(Launch, profile),
        sm_count=profile.named(profile.device.sm_count, metrics.SM_COUNT) if sm_count is None else sm_count,
        cache_config=profile.text(metrics.CACHE_CONFIG),
        cluster_scheduling_policy=profile.text(metrics.CLUSTER_SCHEDULING_POLICY),
        enabled_tpcs=profile.text(metrics.TPC_ENABLED),
        green_context=profile.whole(metrics.GREEN_CONTEXT),
        idle_lanes=warps * WARP - threads_per_block,
        launches=launches,
        missing=GROUP.incomplete(profile.metrics),
    )
