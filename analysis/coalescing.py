"""Global-memory coalescing: how many 32-byte sectors a warp's access touches, and how many it would need."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.analysis.by_line import Place


@dataclass(frozen=True, slots=True)
class GlobalOperation:
    """One kind of global-memory access over the whole launch.

    Attributes:
        name: ``load``, ``store``, ``reduction`` or ``atomic``.
        title: the same in words.
        requests: warp-level requests at the L1 tag stage.
        sectors: 32-byte sectors that these requests touched.
        bytes_used_per_sector: bytes that threads asked for in an average sector, None if not collected.
        bytes_per_sector_limit: the most that could be used (32), None if not collected.
        l1_hit_rate: per cent of the sectors found in L1, None if not collected.
    """

    name: str
    title: str
    requests: float
    sectors: float
    bytes_used_per_sector: float | None = None
    bytes_per_sector_limit: float | None = None
    l1_hit_rate: float | None = None

    @property
    def sectors_per_request(self) -> float | None:
        """4 is ideal for 4-byte elements of a full warp, 32 the worst. None without requests."""
        return self.sectors / self.requests if self.requests else None


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """Global-memory sectors of one instruction or one line, counted by the instrumented pass.

    Attributes:
        executed: warp-level executions of the instruction(s) that touch global memory, None if not collected.
        sectors: 32-byte sectors touched ("theoretical": before any cache).
        ideal: sectors that the same bytes would fill if they lay side by side.
        tag_requests: L1 tag look-ups, None if not collected.
        operation: ``load``, ``store`` or '' (unknown, or several).
    """

    place: Place
    executed: int | None
    sectors: int
    ideal: int
    tag_requests: int | None = None
    operation: str = ""

    @property
    def excess(self) -> int:
        """Sectors beyond the ideal."""
        return self.sectors - self.ideal

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors an execution; None if nothing was executed."""
        return self.sectors / self.executed if self.executed else None


@dataclass(frozen=True, slots=True)
class Coalescing:
    """Coalescing of one launch's global accesses.

    Attributes:
        operations: kinds of access that occurred.
        instructions: instructions that touch global memory, most excess first; empty without source counters.
        lines: the same per CUDA line; instructions without line information are left out here.
        sectors, ideal: sums over all instructions, None without source counters.
        estimated_speedup: per cent of the runtime by Nsight Compute's rule, None if its inputs are missing.
    """

    operations: tuple[GlobalOperation, ...]
    instructions: tuple[GlobalAccess, ...] = ()
    lines: tuple[GlobalAccess, ...] = ()
    sectors: int | None = None
    ideal: int | None = None
    estimated_speedup: float | None = None

    @property
    def excess(self) -> int | None:
        """Sectors beyond the ideal over the whole launch."""
        return None if self.sectors is None or self.ideal is None else self.sectors - self.ideal

    @property
    def excess_share(self) -> float | None:
        """Per cent of all sectors that are beyond the ideal."""
        return 100.0 * self.excess / self.sectors if self.excess is not None and self.sectors else None
