"""Local memory: registers that spilled, and arrays that the compiler could not keep in registers."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.analysis.by_line import Place


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """Local-memory accesses of one instruction or one line.

    Attributes:
        executed: warp-level executions, None if not collected.
        sectors: 32-byte sectors touched, before any cache.
    """

    place: Place
    executed: int | None
    sectors: int


@dataclass(frozen=True, slots=True)
class Spills:
    """Local-memory traffic of one launch.

    Attributes:
        loads, stores: warp-level local load and store instructions.
        load_sectors, store_sectors: 32-byte sectors at L1, None if not collected.
        load_hit_rate, store_hit_rate: per cent found in L1, None if not collected or without traffic.
        spilling_requests: instructions that ncu attributes to register spilling, None where ncu does not tell
            (before 2025.3), so that spills cannot be told from arrays in local memory.
        share_of_l1_sectors: local sectors as per cent of local plus global ones at L1, None if not collected.
        instructions, lines: where it happens, most sectors first; empty without source counters.
    """

    loads: float
    stores: float
    load_sectors: float | None = None
    store_sectors: float | None = None
    load_hit_rate: float | None = None
    store_hit_rate: float | None = None
    spilling_requests: float | None = None
    share_of_l1_sectors: float | None = None
    instructions: tuple[LocalAccess, ...] = ()
    lines: tuple[LocalAccess, ...] = ()

    @property
    def any(self) -> bool:
        """True if the kernel touched local memory at all."""
        return bool(self.loads or self.stores)
