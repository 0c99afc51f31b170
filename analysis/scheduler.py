"""Scheduler: how many warps each scheduler could choose from, and how many issue slots stayed empty."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.model import NotCollected

NAME = "scheduler"
TITLE = "Scheduler"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Per warp scheduler and cycle; percentages of the active cycles."""

    issued_per_cycle: float
    """Instructions issued per cycle, at most 1."""
    issue_slots_busy_percent: float
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
    issued_instructions_per_cycle_active: float | None
    missing: NotCollected | None = None


RESULT = Scheduler
