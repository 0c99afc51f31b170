"""Divergence: how many of a warp's 32 threads take part in an average instruction, and which branches split warps."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.analysis.by_line import Place


@dataclass(frozen=True, slots=True)
class Branch:
    """Branches of one instruction or one line.

    Attributes:
        executed: warp-level executions, None if not collected.
        divergent: executions in which the warp's threads went different ways.
        threads_per_instruction: average active threads, None if not collected.
    """

    place: Place
    executed: int | None
    divergent: int
    threads_per_instruction: float | None = None

    @property
    def divergent_share(self) -> float | None:
        """Per cent of the executions that diverged."""
        return 100.0 * self.divergent / self.executed if self.executed else None


@dataclass(frozen=True, slots=True)
class Divergence:
    """Divergence of one launch.

    Attributes:
        threads_per_instruction: average active threads of an executed warp instruction (at most 32).
        threads_per_instruction_predicated: the same, threads switched off by a predicate not counted.
        warp_size: threads of a full warp.
        branches: warp-level branch instructions, None if not collected.
        branch_share: branches as per cent of all executed instructions, None if not collected.
        uniform_share: per cent of branch targets that all threads agreed on; None if not collected or if the
            kernel executed no branch (ncu stores 0 there, which would read as "always divergent").
        divergent_branches: branch executions that diverged, None if not collected.
        guilty: instructions that diverged, most often first; empty without source counters.
        lines: the same per CUDA line.
    """

    threads_per_instruction: float | None
    threads_per_instruction_predicated: float | None
    warp_size: int = 32
    branches: float | None = None
    branch_share: float | None = None
    uniform_share: float | None = None
    divergent_branches: float | None = None
    guilty: tuple[Branch, ...] = ()
    lines: tuple[Branch, ...] = ()
