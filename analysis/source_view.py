"""Source view: every CUDA line beside its SASS, with executions, samples, stalls, conflicts and excess sectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Counters:
    """What the report knows of one instruction, or summed over the instructions of one line.

    A counter that was not collected is None; one that was collected and has no entry for an address is 0.

    Attributes:
        executed: warp-level executions.
        threads_executed: thread-level executions.
        threads_predicated_on: the same, threads switched off by a predicate not counted.
        samples: warp samples, all stall reasons.
        samples_not_issued: samples of cycles in which the scheduler issued nothing.
        stalls: samples by stall reason (``long_scoreboard``, …), most first, zeros left out.
        shared_wavefronts, shared_ideal: shared-memory passes taken and needed.
        global_sectors, global_ideal: 32-byte sectors touched and needed.
        local_sectors: 32-byte sectors of local memory.
    """

    executed: int | None = None
    threads_executed: int | None = None
    threads_predicated_on: int | None = None
    samples: int | None = None
    samples_not_issued: int | None = None
    stalls: Mapping[str, int] = field(default_factory=dict)
    shared_wavefronts: int | None = None
    shared_ideal: int | None = None
    global_sectors: int | None = None
    global_ideal: int | None = None
    local_sectors: int | None = None

    @property
    def shared_excess(self) -> int | None:
        """Wavefronts that bank conflicts added."""
        if self.shared_wavefronts is None or self.shared_ideal is None:
            return None
        return self.shared_wavefronts - self.shared_ideal

    @property
    def global_excess(self) -> int | None:
        """Sectors beyond what the bytes need."""
        return None if self.global_sectors is None or self.global_ideal is None else self.global_sectors - self.global_ideal

    @property
    def threads_per_instruction(self) -> float | None:
        """Average active threads of a warp; None if nothing was executed."""
        return self.threads_executed / self.executed if self.threads_executed is not None and self.executed else None


@dataclass(frozen=True, slots=True)
class SassLine:
    """One SASS instruction. ``offset`` is its byte offset in the function; ``file``/``line`` may be None."""

    index: int
    address: int
    offset: int
    sass: str
    file: str | None
    line: int | None
    counters: Counters


@dataclass(frozen=True, slots=True)
class CudaLine:
    """One CUDA line that the kernel's code came from. ``instructions`` are indices into ``SourceView.sass``."""

    file: str
    line: int
    text: str
    instructions: tuple[int, ...]
    counters: Counters


@dataclass(frozen=True, slots=True)
class SourceView:
    """The kernel's code with what happened in it.

    Attributes:
        sass: all instructions in address order.
        lines: CUDA lines that have instructions, in file and line order; empty without line information.
        hottest_lines: indices into ``lines``, most samples first (executions where nothing was sampled).
        hottest_sass: indices into ``sass``, same order.
        files: path to the whole text of the source files that the report carries (those with text only).
        totals: sums over all instructions.
        sampling_interval_cycles: cycles between two samples of one scheduler, None if unknown.
    """

    sass: tuple[SassLine, ...]
    lines: tuple[CudaLine, ...]
    hottest_lines: tuple[int, ...]
    hottest_sass: tuple[int, ...]
    files: Mapping[str, str]
    totals: Counters
    sampling_interval_cycles: int | None = None

    def share(self, counters: Counters) -> float | None:
        """Per cent of all samples that fall on these counters."""
        return 100.0 * counters.samples / self.totals.samples if counters.samples is not None and self.totals.samples else None
