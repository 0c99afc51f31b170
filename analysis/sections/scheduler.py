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

    issued_per_cycle: float | None
    """Instructions issued per cycle, at most 1."""
    one_or_more_eligible_percent: float | None
    """Cycles in which a warp was issued."""
    no_eligible_percent: float | None
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
    """Issued in per cent of what the SM can issue, over elapsed cycles (over active ones before ncu 2025)."""
    sm_busy_percent: float | None
    """The busiest of issue slots and execution pipes, over the same cycles."""
    missing: NotCollected | None = None


RESULT = Scheduler


def analyse(profile: KernelProfile) -> Scheduler | NotCollected:
    """Issue slots and warps per scheduler of one launch."""
    number = profile.number
    issued = number(metrics.ISSUE_ACTIVE)
    busy = number(metrics.ISSUE_ACTIVE_PERCENT)
    idle = number(metrics.ISSUE_IDLE_PERCENT)
    # A scheduler issues at most one instruction a cycle, so the rate is the share of busy slots too.
    if issued is not None:
        busy = 100 * issued if busy is None else busy
        idle = 100 * (1 - issued) if idle is None else idle
    result = Scheduler(
        issued_per_cycle=issued,
        one_or_more_eligible_percent=busy,
        no_eligible_percent=idle,
        cycles_per_issue=1 / issued if issued else None,
        active_warps=number(metrics.WARPS_ACTIVE_PER_SCHEDULER),
        eligible_warps=number(metrics.WARPS_ELIGIBLE_PER_SCHEDULER),
        max_warps=number(metrics.WARPS_MAX_PER_SCHEDULER),
        # Of a graph ncu stores 1 there, whatever its launches allow.
        theoretical_warps=number(metrics.WARPS_THEORETICAL_PER_SCHEDULER)
        if profile.workload == "kernel"
        else None,
        instructions_per_cycle_active=number(metrics.IPC_ACTIVE),
        instructions_per_cycle_elapsed=number(metrics.IPC_ELAPSED),
        issued_instructions_per_cycle_active=number(metrics.ISSUED_IPC_ACTIVE),
        issue_slots_busy_percent=_first(profile, metrics.ISSUE_SLOTS_BUSY, metrics.ISSUE_SLOTS_BUSY_ACTIVE),
        sm_busy_percent=_first(profile, metrics.SM_BUSY, metrics.SM_BUSY_ACTIVE),
        missing=GROUP.incomplete(profile.metrics),
    )
    # The section Occupancy alone tells of neither issue slots nor instructions.
    told = (
        result.issued_per_cycle,
        result.one_or_more_eligible_percent,
        result.instructions_per_cycle_active,
    )
    if all(value is None for value in told):
        return GROUP.not_collected(profile.metrics)
    return result


def _first(profile: KernelProfile, *names: str) -> float | None:
    """The first of these metrics that the report holds."""
    return next((value for name in names if (value := profile.number(name)) is not None), None)
