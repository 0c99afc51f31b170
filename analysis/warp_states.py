"""Warp states: where the cycles between two instructions of a warp go, measured per issue and sampled."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.analysis.stall_reasons import StallReason
from gemmprof.model import NotCollected

NAME = "warp_states"
TITLE = "Warp states"


@dataclass(frozen=True, slots=True)
class StateShare:
    """One warp state of this kernel; each number is None where it was not collected."""

    reason: StallReason
    cycles_per_issue: float | None
    """Average cycles that a warp spends in this state per instruction it issues."""
    samples: int | None
    """Samples that found a warp in this state."""
    samples_not_issued: int | None
    """Those among them in whose cycle the scheduler issued nothing: the stalls that cost time."""
    share: float
    """Of all warp cycles (of all samples where there are no cycles), 0 to 1."""


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The states of one group together (``memory``, ``synchronisation``, …)."""

    key: str
    title: str
    share: float
    states: tuple[StateShare, ...]


@dataclass(frozen=True, slots=True)
class WarpStates:
    """Warp states, largest first; ``selected`` (the warp issues) is among them."""

    cycles_per_issued_instruction: float | None
    cycles_per_executed_instruction: float | None
    threads_per_instruction: float | None
    threads_per_instruction_not_predicated: float | None
    states: tuple[StateShare, ...]
    groups: tuple[GroupShare, ...]
    sample_count: int | None
    sampling_interval_cycles: int | None
    missing: NotCollected | None = None

    @property
    def main_stall(self) -> StateShare | None:
        """The largest state in which the warp is held back (neither selected nor ready and waiting its turn)."""
        held = [state for state in self.states if state.reason.group != "issuing" and state.share > 0]
        return held[0] if held else None


RESULT = WarpStates
