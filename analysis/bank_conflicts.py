"""Shared-memory bank conflicts: how many passes (wavefronts) an access takes beyond what its data needs."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.analysis.by_line import Place


@dataclass(frozen=True, slots=True)
class SharedOperation:
    """One kind of shared-memory access over the whole launch, from the hardware counters.

    Attributes:
        name: ``load``, ``store``, ``atomic``, ``ldmatrix``, ``stmatrix``, ``async_copy`` (LDGSTS), ``wgmma`` or
            ``other``.
        title: the same in words, with the SASS opcodes.
        requests: warp-level instructions, None where no counter tells.
        wavefronts: passes through the shared-memory data stage, None where no counter tells.
        conflicts: wavefronts that bank conflicts added, None where no counter tells.
    """

    name: str
    title: str
    requests: float | None
    wavefronts: float | None
    conflicts: float | None

    @property
    def n_way(self) -> float | None:
        """Wavefronts a request: ncu's "n-way bank conflict". None without requests."""
        return self.wavefronts / self.requests if self.wavefronts is not None and self.requests else None

    @property
    def share(self) -> float | None:
        """Per cent of the wavefronts that conflicts added. None without wavefronts."""
        if self.conflicts is None or not self.wavefronts:
            return None
        return 100.0 * self.conflicts / self.wavefronts


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """Shared-memory wavefronts of one instruction or one line, counted by the instrumented pass.

    Attributes:
        executed: warp-level executions of the instruction(s) that touch shared memory, None if not collected.
        wavefronts: passes taken.
        ideal: passes that the same data would need without conflicts.
        operation: ``load``, ``store`` or '' (unknown, or several).
    """

    place: Place
    executed: int | None
    wavefronts: int
    ideal: int
    operation: str = ""

    @property
    def excess(self) -> int:
        """Wavefronts beyond the ideal."""
        return self.wavefronts - self.ideal

    @property
    def n_way(self) -> float | None:
        """Wavefronts an execution; None if nothing was executed."""
        return self.wavefronts / self.executed if self.executed else None


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Bank conflicts of one launch.

    Attributes:
        operations: kinds of access that occurred, from the hardware counters.
        instructions: instructions that touch shared memory, most excess first; empty without source counters.
        lines: the same per CUDA line; instructions without line information are left out here.
        estimated_speedup: per cent of the runtime by Nsight Compute's rule, of the worse of loads and stores;
            None if its inputs are missing.
    """

    operations: tuple[SharedOperation, ...]
    instructions: tuple[SharedAccess, ...] = ()
    lines: tuple[SharedAccess, ...] = ()
    estimated_speedup: float | None = None

    @property
    def wavefronts(self) -> int | None:
        """Wavefronts of all instructions, None without source counters."""
        return sum(access.wavefronts for access in self.instructions) if self.instructions else None

    @property
    def excess(self) -> int | None:
        """Wavefronts beyond the ideal over all instructions, None without source counters."""
        return sum(access.excess for access in self.instructions) if self.instructions else None

    def operation(self, name: str) -> SharedOperation | None:
        """The kind of access with this name, or None if it did not occur."""
        return next((operation for operation in self.operations if operation.name == name), None)
