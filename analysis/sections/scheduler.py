"""Scheduler: how many warps each scheduler could choose from, and how many issue slots stayed empty."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import figure
from gemmprof.model import KernelProfile, NotCollected

NAME = "scheduler"
TITLE = "Scheduler"
GROUP = metrics.SCHEDULER


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Per warp scheduler and cycle; percentages of the active cycles."""

    issued_per_cycle: float | None = figure(
        "Issued",
        "",
        "instructions a cycle, at most 1",
        listed=False,
        digits=2,
        alone="Instructions issued a cycle",
    )
    one_or_more_eligible_percent: float | None = figure("Cycles that issue", "%", listed=False)
    no_eligible_percent: float | None = figure(
        "Cycles without a ready warp", "%", "empty issue slots", listed=False
    )
    active_warps: float | None = figure("Active", listed=False, digits=2)
    eligible_warps: float | None = figure(
        "Eligible",
        "",
        "below 1 the scheduler often has no choice",
        listed=False,
        digits=2,
        alone="Eligible warps",
    )
    max_warps: float | None = figure("Warps that a scheduler can hold", listed=False)
    theoretical_warps: float | None = figure("Allowed by the launch", listed=False, digits=2)
    instructions_per_cycle_active: float | None = figure("Instructions per cycle, executed (active)")
    instructions_per_cycle_elapsed: float | None = figure("Instructions per cycle, executed (elapsed)")
    issued_instructions_per_cycle_active: float | None = figure("Instructions per cycle, issued (active)")
    cycles_per_issue: float | None = figure("Cycles per issue", "", "of a scheduler, 1 at best")
    issue_slots_busy_percent: float | None = figure(
        "Issue slots busy", "%", "over elapsed cycles (over active ones before ncu 2025)"
    )
    sm_busy_percent: float | None = figure(
        "SM busy", "%", "the busiest of issue slots and execution pipes, over the same cycles"
    )
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
        issue_slots_busy_percent=profile.first_number(
            (metrics.ISSUE_SLOTS_BUSY, metrics.ISSUE_SLOTS_BUSY_ACTIVE)
        ),
        sm_busy_percent=profile.first_number((metrics.SM_BUSY, metrics.SM_BUSY_ACTIVE)),
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
