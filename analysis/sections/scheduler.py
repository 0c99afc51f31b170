"""Scheduler: how many warps each scheduler could choose from, and how many issue slots stayed empty."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import collected, figure, unlisted
from gemmprof.model import KernelProfile, NotCollected

NAME = "scheduler"
TITLE = "Scheduler"
GROUP = metrics.SCHEDULER


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Per warp scheduler and cycle; percentages of the active cycles."""

    issued_per_cycle: float | None = unlisted(
        "Issued",
        meaning="instructions a cycle, at most 1",
        digits=2,
        alone="Instructions issued a cycle",
        of=metrics.ISSUE_ACTIVE,
    )
    one_or_more_eligible_percent: float | None = unlisted(
        "Cycles that issue", "%", of=metrics.ISSUE_ACTIVE_PERCENT
    )
    no_eligible_percent: float | None = unlisted(
        "Cycles without a ready warp", "%", "empty issue slots", of=metrics.ISSUE_IDLE_PERCENT
    )
    active_warps: float | None = unlisted("Active", digits=2, of=metrics.WARPS_ACTIVE_PER_SCHEDULER)
    eligible_warps: float | None = unlisted(
        "Eligible",
        meaning="below 1 the scheduler often has no choice",
        digits=2,
        alone="Eligible warps",
        of=metrics.WARPS_ELIGIBLE_PER_SCHEDULER,
    )
    max_warps: float | None = unlisted("Warps that a scheduler can hold", of=metrics.WARPS_MAX_PER_SCHEDULER)
    theoretical_warps: float | None = unlisted(
        "Allowed by the launch", digits=2, of=metrics.WARPS_THEORETICAL_PER_SCHEDULER
    )
    instructions_per_cycle_active: float | None = figure(
        "Instructions per cycle, executed (active)", of=metrics.IPC_ACTIVE
    )
    instructions_per_cycle_elapsed: float | None = figure(
        "Instructions per cycle, executed (elapsed)", of=metrics.IPC_ELAPSED
    )
    issued_instructions_per_cycle_active: float | None = figure(
        "Instructions per cycle, issued (active)", of=metrics.ISSUED_IPC_ACTIVE
    )
    cycles_per_issue: float | None = figure("Cycles per issue", "", "of a scheduler, 1 at best")
    issue_slots_busy_percent: float | None = figure(
        "Issue slots busy",
        "%",
        "over elapsed cycles (over active ones before ncu 2025)",
        of=(metrics.ISSUE_SLOTS_BUSY, metrics.ISSUE_SLOTS_BUSY_ACTIVE),
    )
    sm_busy_percent: float | None = figure(
        "SM busy",
        "%",
        "the busiest of issue slots and execution pipes, over the same cycles",
        of=(metrics.SM_BUSY, metrics.SM_BUSY_ACTIVE),
    )
    missing: NotCollected | None = None


def analyse(profile: KernelProfile) -> Scheduler | NotCollected:
    """Issue slots and warps per scheduler of one launch."""
    found = collected(Scheduler, profile)
    issued, busy = found["issued_per_cycle"], found["one_or_more_eligible_percent"]
    # The section Occupancy alone tells of neither issue slots nor instructions.
    if issued is None and busy is None and found["instructions_per_cycle_active"] is None:
        return GROUP.not_collected(profile.metrics)
    # A scheduler issues at most one instruction a cycle, so the rate is the share of busy slots too.
    if issued is not None and busy is None:
        found["one_or_more_eligible_percent"] = 100 * issued
    if issued is not None and found["no_eligible_percent"] is None:
        found["no_eligible_percent"] = 100 * (1 - issued)
    # Of a graph ncu stores 1 there, whatever its launches allow.
    if profile.workload != "kernel":
        found["theoretical_warps"] = None
    cycles = 1 / issued if issued else None
    return Scheduler(**found, cycles_per_issue=cycles, missing=GROUP.incomplete(profile.metrics))
