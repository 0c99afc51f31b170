"""Divergence: how many of a warp's 32 threads take part in an average instruction, and which branches split warps."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import derived, figure
from gemmprof.analysis.sections.by_line import Counted, Place, by_address, first_by_address, ranked
from gemmprof.model import KernelProfile, NotCollected

NAME = "divergence"
TITLE = "Divergence"
GROUP = metrics.DIVERGENCE


@dataclass(frozen=True, slots=True)
class Branch(Counted):
    """Branches of one instruction or one line.

    Attributes:
        executed: warp-level executions of the branch instruction(s), None if not collected.
    """

    executed: int | None = figure("Executed")
    divergent: int = figure("Divergent", "", "executions after which threads of a warp went different ways")
    threads_per_instruction: float | None = figure("Threads at the branch")

    @derived("Share", "%")
    def divergent_share(self) -> float | None:
        """Per cent of the executions that diverged."""
        return 100 * self.divergent / self.executed if self.executed else None


@dataclass(frozen=True, slots=True)
class Divergence:
    """Divergence of one launch.

    Attributes:
        threads_per_instruction: average active threads of an executed warp instruction (at most 32).
        threads_per_instruction_predicated_on: the same, threads switched off by a predicate not counted.
        warp_size: threads of a full warp.
        uniform_share: "branch efficiency", per cent of the branches after which the whole warp went one way; None
            if not collected or if the kernel executed no branch that could diverge (ncu stores 0 there, which would
            read as "always divergent").
        divergent_branches: branch executions after which a warp's threads went different ways, None if not
            collected.
        divergent_branches_per_scheduler: average divergent branches of a scheduler, as ncu prints them; None if
            not collected.
        instructions: instructions that diverged, most often first; empty without source counters.
        lines: the same per CUDA line.
    """

    threads_per_instruction: float | None = figure("Threads per instruction", "", "of a warp's", listed=False)
    threads_per_instruction_predicated_on: float | None = figure(
        "The same, predicated on", listed=False, alone="Active threads of an instruction"
    )
    warp_size: int = 32
    branches: float | None = figure("Branches executed")
    divergent_branches: float | None = figure("Divergent branches")
    branch_share: float | None = figure("Share of all instructions", "%")
    uniform_share: float | None = figure("Uniform branch targets", "%", "100 where no branch splits a warp")
    divergent_branches_per_scheduler: float | None = figure("Divergent branches per scheduler", listed=False)
    instructions: tuple[Branch, ...] = ()
    lines: tuple[Branch, ...] = ()

    @derived("Active threads of a warp", "%", listed=False)
    def active_share(self) -> float | None:
        """Per cent of a warp's threads that an average instruction keeps busy, predicates considered."""
        threads = self.threads_per_instruction_predicated_on or self.threads_per_instruction
        return None if threads is None else 100 * threads / self.warp_size


RESULT = Divergence


def analyse(profile: KernelProfile) -> Divergence | NotCollected:
    """Divergence of one launch; `NotCollected` if the report tells nothing of threads or branches."""
    threads = profile.number(metrics.THREADS_PER_INSTRUCTION)
    predicated_on = profile.number(metrics.THREADS_PER_INSTRUCTION_PREDICATED_ON)
    branches = profile.first_number(metrics.BRANCHES)
    fraction = profile.number(metrics.BRANCH_FRACTION)
    uniform = profile.first_number(metrics.UNIFORM_BRANCHES_PERCENT)
    divergent = profile.first_number(metrics.DIVERGENT_BRANCHES)
    if threads is None and branches is None and uniform is None:
        return GROUP.not_collected(profile.metrics)
    instructions, lines = _branches(profile)
    warp_size = profile.device.attributes.get("warp_size")
    return Divergence(
        threads_per_instruction=threads,
        threads_per_instruction_predicated_on=predicated_on,
        warp_size=warp_size if isinstance(warp_size, int) and warp_size > 0 else 32,
        branches=branches,
        # ncu stores a fraction under a name and a unit that promise per cent.
        branch_share=None if fraction is None else 100 * fraction,
        uniform_share=uniform if uniform or divergent else None,
        divergent_branches=divergent,
        divergent_branches_per_scheduler=profile.first_number(metrics.DIVERGENT_BRANCHES_PER_SCHEDULER),
        instructions=instructions,
        lines=lines,
    )


def _branches(profile: KernelProfile) -> tuple[tuple[Branch, ...], tuple[Branch, ...]]:
    """Branch instructions and lines that diverged, most often first."""
    divergent = first_by_address(profile, metrics.DIVERGENT_BRANCHES_BY_ADDRESS)
    if divergent is None:
        return (), ()
    executed = by_address(profile, metrics.INSTRUCTIONS_BY_ADDRESS)
    threads = by_address(profile, metrics.THREADS_BY_ADDRESS)

    def branch(place: Place) -> Branch:
        executions = place.total(executed)
        active = place.total(threads)
        average = active / executions if active is not None and executions else None
        return Branch(place, executions, place.total(divergent) or 0, average)

    return ranked(profile, divergent, branch, lambda one: (one.divergent,))
