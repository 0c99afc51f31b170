"""Local memory: registers that spilled, and arrays that the compiler could not keep in registers.

Local memory is thread-private by name and device memory by nature: L1 and L2 cache it, but every access costs an
instruction and shares their bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import collected, figure, unlisted
from gemmprof.analysis.sections.by_line import Counted, ranked
from gemmprof.model import KernelProfile, NotCollected

NAME = "spills"
TITLE = "Local memory and register spills"
GROUP = metrics.SPILLS


@dataclass(frozen=True, slots=True)
class LocalAccess(Counted):
    """Local-memory accesses of one instruction or one line: executions of warps, 32-byte sectors before any cache."""

    executed: int | None = figure("Executed", of=metrics.INSTRUCTIONS_BY_ADDRESS)
    sectors: int = figure("Sectors", of=metrics.LOCAL_SECTORS_BY_ADDRESS)


@dataclass(frozen=True, slots=True)
class Spills:
    """Local-memory traffic of one launch, in 32-byte sectors at L1; where it happens, most sectors first.

    Hit rates are also None without traffic; what ncu attributes to spilling is None before ncu 2025, so that spills
    cannot be told from arrays in local memory.
    """

    loads: float = unlisted("Local loads", meaning="warp instructions", of=metrics.LOCAL_LOADS)
    stores: float = unlisted("Local stores", meaning="warp instructions", of=metrics.LOCAL_STORES)
    load_sectors: float | None = figure("Sectors loaded", of=metrics.LOCAL_SECTORS_OF["load"])
    store_sectors: float | None = figure("Sectors stored", of=metrics.LOCAL_SECTORS_OF["store"])
    load_hit_rate: float | None = figure("L1 hit rate of loads", "%", of=metrics.LOCAL_HIT_RATE_OF["load"])
    store_hit_rate: float | None = figure("L1 hit rate of stores", "%", of=metrics.LOCAL_HIT_RATE_OF["store"])
    spilling_requests: float | None = figure(
        "Attributed to spilling by Nsight Compute",
        meaning="the others are arrays in local memory",
        of=metrics.SPILLING_REQUESTS,
    )
    spilling_loads: float | None = figure("of them loads", of=metrics.SPILLING_LOADS)
    spilling_stores: float | None = figure("of them stores", of=metrics.SPILLING_STORES)
    share_of_l1_sectors: float | None = figure(
        "Share of the sectors at L1", "%", "local of local and global ones"
    )
    instructions: tuple[LocalAccess, ...] = ()
    lines: tuple[LocalAccess, ...] = ()

    @property
    def any(self) -> bool:
        """True if the kernel touched local memory at all."""
        return bool(self.loads or self.stores)


def analyse(profile: KernelProfile) -> Spills | NotCollected:
    """Local-memory traffic of one launch; `NotCollected` without the counts of local loads and stores."""
    found = collected(Spills, profile)
    if found["loads"] is None or found["stores"] is None:
        return GROUP.not_collected(profile.metrics)
    for kind in ("load", "store"):
        if not found[f"{kind}s"]:  # ncu stores a rate of 0 then, which would read as "everything missed"
            found[f"{kind}_hit_rate"] = None
    local = [found["load_sectors"], found["store_sectors"]]
    sectors = [*local, *(profile.number(metrics.GLOBAL_SECTORS_OF[kind]) for kind in ("load", "store"))]
    known = [value for value in sectors if value is not None]
    whole = sum(known) if len(known) == len(sectors) else None
    share = 100 * sum(value or 0 for value in local) / whole if whole else None
    instructions, lines = ranked(profile, LocalAccess, "sectors", "sectors")
    return Spills(**found, share_of_l1_sectors=share, instructions=instructions, lines=lines)
