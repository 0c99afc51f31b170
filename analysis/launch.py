"""Launch statistics: grid, block, registers, shared memory, clusters, as the section LaunchStats gives them."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.model import NotCollected

NAME = "launch"
TITLE = "Launch"


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch. Shared memory in bytes per block; None where the report does not say."""

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
    idle_lanes: int
    """Threads of the last warp of a block that do not exist: 32·⌈threads/32⌉ − threads."""
    missing: NotCollected | None = None


RESULT = Launch
