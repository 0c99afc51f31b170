"""Scheduler: how many warps each scheduler could choose from, and how many issue slots stayed empty."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.model import KernelProfile, NotCollected

NAME = "scheduler"
TITLE = "Scheduler"
GROUP = metrics.SCHEDULER


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Per warp scheduler and cycle; percentages of the active cycles."""

    issued_per_cycle: float
    """Instructions issued per cycle, at most 1."""
    one_or_more_eligible_percent: float
    """Cycles in which a warp was issued."""
    no_eligible_percent: float
    """Cycles in which no warp could issue: empty issue slots."""
    cycles_per_issue: float | None
    """One instruction every so many cycles."""
    active_warps: float | None
    eligible_warps: float | None
    max_warps: float | None
    """Warps that a scheduler can hold."""
    theoretical_warps: float | None
    """Warps that the launch configuration allows per scheduler."""
    instructions_per_cycle_active: float | None
    """Executed per SM and active cycle (IPC)."""
    instructions_per_cycle_elapsed: float | None
    """Executed per SM and elapsed cycle."""
    issued_instructions_per_cycle_active: float | None
    """Issued per SM and active cycle."""
    issue_slots_busy_percent: float | None
    """The same in per cent of what the SM's schedulers can issue."""
    sm_busy_percent: float | None
    """How busy the busiest of issue slots and execution pipes is."""
    threads_per_instruction: float | None
    """Active threads per executed warp instruction, at most 32."""
    missing: NotCollected | None = None


RESULT = Scheduler


def analyse(profile: KernelProfile) -> Scheduler | NotCollected:
    """Issue slots and warps per scheduler of one launch."""
    number = profile.number
    issued = number(metrics.ISSUE_ACTIVE)
    if issued is None:
        return GROUP.missing(profile.metrics) or NotCollected(GROUP.required, GROUP.remedy)
    # A scheduler issues at most one instruction a cycle, so the rate is the share of busy slots too.
    busy = number(metrics.ISSUE_ACTIVE_PERCENT)
    idle = number(metrics.ISSUE_IDLE_PERCENT)
    return Scheduler(
        issued_per_cycle=issued,
        one_or_more_eligible_percent=100 * issued if busy is None else busy,
        no_eligible_percent=100 * (1 - issued) if idle is None else idle,
        cycles_per_issue=1 / issued if issued > 0 else None,
        active_warps=number(metrics.WARPS_ACTIVE_PER_SCHEDULER),
        eligible_warps=number(metrics.WARPS_ELIGIBLE_PER_SCHEDULER),
        max_warps=number(metrics.WARPS_MAX_PER_SCHEDULER),
        theoretical_warps=number(metrics.WARPS_THEORETICAL_PER_SCHEDULER),
        instructions_per_cycle_active=number(metrics.IPC_ACTIVE),
        instructions_per_cycle_elapsed=number(metrics.IPC_ELAPSED),
        issued_instructions_per_cycle_active=number(metrics.ISSUED_IPC_ACTIVE),
        issue_slots_busy_percent=number(metrics.ISSUED_IPC_PERCENT),
        sm_busy_percent=number(metrics.SM_BUSY_PERCENT),
        threads_per_instruction=number(metrics.THREADS_PER_INSTRUCTION),
        missing=GROUP.incomplete(profile.metrics),
    )
