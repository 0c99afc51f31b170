"""Nsight Compute's own advice, with its estimated speed-ups, strongest first."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.model import RuleResult

NAME = "rules"
TITLE = "Advice from Nsight Compute"


@dataclass(frozen=True, slots=True)
class Advice:
    """Rule results that say something (empty ones are left out).

    ``items`` holds optimisations with their estimates first (largest first, ``global`` before ``local`` at the same
    estimate), then warnings and errors, then the rest. Estimates overlap: they do not add up.
    """

    items: tuple[RuleResult, ...]

    @property
    def best(self) -> RuleResult | None:
        """The advice with the largest estimated speed-up of the whole kernel, or None."""
        estimated = [item for item in self.items if item.estimated_speedup and item.speedup_scope == "global"]
        return max(estimated, key=lambda item: item.estimated_speedup or 0.0, default=None)


RESULT = Advice
