"""Why a warp does not issue: every stall reason of Nsight Compute in one plain sentence, and what to try."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StallReason:
    """One warp state.

    Attributes:
        key: ncu's name in ``smsp__average_warps_issue_stalled_<key>_per_issue_active.ratio``.
        title: as ncu prints it ("Stall Long Scoreboard").
        group: key of `GROUPS`.
        meaning: one sentence: what a warp in this state waits for.
        advice: one sentence: what to try.
    """

    key: str
    title: str
    group: str
    meaning: str
    advice: str
