"""Divergence: how many of a warp's 32 threads take part in an average instruction, and which branches split warps."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import collected, derived, figure, quotient, unlisted
from gemmprof.analysis.sections.by_line import Counted, ranked
from gemmprof.model import KernelProfile, NotCollected

NAME = "divergence"
TITLE = "Divergence"
GROUP = metrics.DIVERGENCE


@dataclass(frozen=True, slots=True)
class Branch(Counted):
    """Branches of one instruction or one line, executions of warps."""

    executed: int | None = figure("Executed", of=metrics.INSTRUCTIONS_BY_ADDRESS)
    divergent: int = figure(
        "Divergent",
        meaning="executions after which threads of a warp went different ways",
        of=metrics.DIVERGENT_BRANCHES_BY_ADDRESS,
    )
    threads: int | None = figure("Threads", of=metrics.THREADS_BY_ADDRESS, shown=False)
    threads_per_instruction = derived("Threads at the branch")(quotient("threads", "executed"))
    divergent_share = derived("Share", "%")(quotient("divergent", "executed", 100))


@dataclass(frozen=True, slots=True)
class Divergence:
    """Divergence of one launch; branches that diverged, most often first, are empty without source counters.

    ``uniform_share`` is also None where the kernel executed no branch that could diverge: ncu stores 0 there, which
    would read as "always divergent".
    """

    threads_per_instruction: float | None = unlisted(
        "Threads per instruction", meaning="of a warp's", of=metrics.THREADS_PER_INSTRUCTION
    )
    threads_per_instruction_predicated_on: float | None = unlisted(
        "The same, predicated on",
        alone="Active threads of an instruction",
        of=metrics.THREADS_PER_INSTRUCTION_PREDICATED_ON,
    )
    warp_size: int = 32
    branches: float | None = figure("Branches executed", of=metrics.BRANCHES)
    divergent_branches: float | None = figure("Divergent branches", of=metrics.DIVERGENT_BRANCHES)
    branch_share: float | None = figure("Share of all instructions", "%")
    uniform_share: float | None = figure(
        "Uniform branch targets",
        "%",
        "100 where no branch splits a warp",
        of=metrics.UNIFORM_BRANCHES_PERCENT,
    )
    divergent_branches_per_scheduler: float | None = unlisted(
        "Divergent branches per scheduler", of=metrics.DIVERGENT_BRANCHES_PER_SCHEDULER
    )
    instructions: tuple[Branch, ...] = ()
    lines: tuple[Branch, ...] = ()

    @derived("Active threads of a warp", "%", listed=False)
    def active_share(self) -> float | None:
        """Per cent of a warp's threads that an average instruction keeps busy, predicates considered."""
        threads = self.threads_per_instruction_predicated_on or self.threads_per_instruction
        return None if threads is None else 100 * threads / self.warp_size


def analyse(profile: KernelProfile) -> Divergence | NotCollected:
    """Divergence of one launch; `NotCollected` if the report tells nothing of threads or branches."""
    found = collected(Divergence, profile)
    if all(found[name] is None for name in ("threads_per_instruction", "branches", "uniform_share")):
        return GROUP.not_collected(profile.metrics)
    if not found["uniform_share"] and not found["divergent_branches"]:
        found["uniform_share"] = None
    fraction = profile.number(metrics.BRANCH_FRACTION)
    instructions, lines = ranked(profile, Branch, "divergent", "divergent")
    warp_size = profile.device.attributes.get("warp_size")
    return Divergence(
        **found,
        warp_size=warp_size if isinstance(warp_size, int) and warp_size > 0 else 32,
        # ncu stores a fraction under a name and a unit that promise per cent.
        branch_share=None if fraction is None else 100 * fraction,
        instructions=instructions,
        lines=lines,
    )
