"""What changed between two launches: time, instructions, ratios, bytes per level, conflicts, occupancy, stalls."""

from __future__ import annotations

from dataclasses import dataclass

SAME_WITHIN = 0.005
"""Relative change below which two values count as the same."""


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity before and after.

    Attributes:
        name: identifier, for example ``ffma_per_lds``.
        title: name for people.
        group: ``time``, ``instructions``, ``memory``, ``shared memory``, ``occupancy`` or ``stalls``.
        unit: unit of both values ('' for ratios).
        before, after: None where one side did not collect it.
        better: ``lower``, ``higher`` or ``neither`` (the value explains, but is no goal in itself).
        weight: how much the change matters for sorting, 0 to 1 (stalls: share of the latency).
    """

    name: str
    title: str
    group: str
    unit: str
    before: float | None
    after: float | None
    better: str
    weight: float = 1.0

    @property
    def ratio(self) -> float | None:
        """After over before; None if one is missing or before is 0."""
        return self.after / self.before if self.after is not None and self.before else None

    @property
    def difference(self) -> float | None:
        """After minus before."""
        return None if self.after is None or self.before is None else self.after - self.before

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``same``, ``changed`` (neither direction is a goal) or ``unknown``."""
        if self.before is None or self.after is None:
            return "unknown"
        difference = self.after - self.before
        if not abs(difference) > SAME_WITHIN * max(abs(self.before), abs(self.after)):
            return "same"
        if self.better not in ("lower", "higher"):
            return "changed"
        return "better" if (difference < 0) == (self.better == "lower") else "worse"

    @property
    def arrow(self) -> str:
        """``↑``, ``↓``, ``→`` (same) or ``?`` (unknown): the direction of the value, not its merit."""
        if self.verdict == "unknown":
            return "?"
        if self.verdict == "same":
            return "→"
        return "↑" if (self.difference or 0.0) > 0 else "↓"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two launches side by side.

    Attributes:
        before, after: names of the two (untrusted text).
        changes: every quantity that at least one side has, in reading order.
        comparable: '' or why a comparison needs care (other device, other grid, other problem).
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    comparable: str = ""

    def change(self, name: str) -> Change | None:
        """The quantity with this name, or None."""
        return next((change for change in self.changes if change.name == name), None)

    @property
    def worst_first(self) -> tuple[Change, ...]:
        """Changes for the worse, the largest first."""
        return self._ranked("worse")

    @property
    def best_first(self) -> tuple[Change, ...]:
        """Changes for the better, the largest first."""
        return self._ranked("better")

    def _ranked(self, verdict: str) -> tuple[Change, ...]:
        chosen = [change for change in self.changes if change.verdict == verdict]
        return tuple(sorted(chosen, key=magnitude, reverse=True))


def magnitude(change: Change) -> float:
    """Size of a change for sorting, 0 to ``weight``: |a-b| / max(|a|, |b|), so halving and doubling rank alike."""
    if change.before is None or change.after is None:
        return 0.0
    largest = max(abs(change.before), abs(change.after))
    return change.weight * abs(change.after - change.before) / largest if largest else 0.0
