"""What changed between two launches: time, instructions, ratios, bytes per level, conflicts, occupancy, stalls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gemmprof.analysis.inputs.named_figures import LESS_IS_BETTER, NOT_JUDGED, QUANTITIES, WHOLES, figures
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.warp_states import ISSUING, WarpStates

SAME_WITHIN = 0.005  # changes up to this size (see `Change.magnitude`) count as none


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity before and after.

    Attributes:
        name: identifier, for example ``ffma_per_shared_load``.
        title: name for people.
        group: ``time``, ``limits``, ``instructions``, ``memory``, ``shared memory``, ``occupancy`` or ``stalls``.
        unit: unit of both values: ``s``, ``ns``, ``byte``, ``%``, ``cycle``, ``inst`` or ''.
        before, after: None where one side did not collect it.
        better: ``lower``, ``higher`` or ``neither`` (the value explains, but is no goal in itself).
        whole: what the quantity is a part of, in its unit: 100 for per cent, all wavefronts for conflicts, the
            whole latency for a stall; 0 for a quantity of its own.
    """

    name: str
    title: str
    group: str
    unit: str
    before: float | None
    after: float | None
    better: str
    whole: float = 0.0

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
        difference = self.difference
        if difference is None:
            return "unknown"
        if self.magnitude <= SAME_WITHIN:
            return "same"
        if self.better == NOT_JUDGED:
            return "changed"
        return "better" if (difference < 0) == (self.better == LESS_IS_BETTER) else "worse"

    @property
    def arrow(self) -> str:
        """``↑``, ``↓``, ``→`` (same) or ``?`` (unknown): the direction of the value, not its merit."""
        if self.verdict in ("unknown", "same"):
            return "?" if self.verdict == "unknown" else "→"
        return "↑" if (self.difference or 0.0) > 0 else "↓"

    @property
    def magnitude(self) -> float:
        """Size of the change, 0 to 1, for sorting: |a - b| / max(|a|, |b|, whole), so ×2 and ÷2 rank alike."""
        if self.before is None or self.after is None:
            return 0.0
        largest = max(abs(self.before), abs(self.after), self.whole)
        return abs(self.after - self.before) / largest if largest else 0.0


@dataclass(frozen=True, slots=True)
class Measures:
    """The quantities of one launch or kernel, without the launch: what a comparison needs and a baseline keeps.

    Attributes:
        values: by name of the quantity; absent where it was not collected.
        stalls: cycles a warp spends in each state per instruction it issues; empty where not collected.
        stall_titles: the states in words.
        uses_shared_memory: whether how well shared memory is used can be judged.
        seconds: median time measured without the profiler.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    stalls: Mapping[str, float] = field(default_factory=dict)
    stall_titles: Mapping[str, str] = field(default_factory=dict)
    uses_shared_memory: bool = False
    seconds: float | None = None


def measures(analysis: KernelAnalysis) -> Measures:
    """The quantities of one analysed launch."""
    states = analysis.field(WarpStates, "states") or ()
    stalled = {one.reason: one.cycles_per_issue for one in states if one.reason.group != ISSUING}
    cycles = {reason: found for reason, found in stalled.items() if found is not None}
    return Measures(
        figures(analysis),
        {reason.key: found for reason, found in cycles.items()},
        {reason.key: reason.title for reason in cycles},
        bool(analysis.field(BankConflicts, "uses_shared_memory")),
    )


def changes_between(before: Measures, after: Measures) -> tuple[Change, ...]:
    """Every quantity that at least one side has, in reading order."""
    changes = [
        Change("time", "Median time", "time", "s", before.seconds, after.seconds, LESS_IS_BETTER),
        *_quantities(before, after),
        *_stalls(before, after),
    ]
    return tuple(change for change in changes if change.before is not None or change.after is not None)


def _quantities(before: Measures, after: Measures) -> Iterator[Change]:
    # To use shared memory or not is a choice; only how well it is used can be judged.
    judge_shared = before.uses_shared_memory and after.uses_shared_memory
    values = {one.name: (before.values.get(one.name), after.values.get(one.name)) for one in QUANTITIES}
    for one in QUANTITIES:
        # Where neither side has any (no shared memory, no spills) there is nothing to say.
        if any(values[one.name]):
            judged = judge_shared or not (one.group == "shared memory" or one.name == "shared_loads")
            better = one.better if judged else NOT_JUDGED
            whole = _whole(one.name, one.unit, values)
            yield Change(one.name, one.title, one.group, one.unit, *values[one.name], better, whole)


def _whole(name: str, unit: str, values: Mapping[str, tuple[float | None, float | None]]) -> float:
    """What a quantity is a part of, on the side where that is larger."""
    if unit == "%":
        return 100.0
    parts = [values[part] for part in WHOLES.get(name, ())]
    return max(sum(side[index] or 0.0 for side in parts) for index in (0, 1))


def _stalls(before: Measures, after: Measures) -> Iterator[Change]:
    """Cycles that a warp spends in each state per instruction it issues, as parts of the whole latency."""
    sides = (before.stalls, after.stalls)
    latency = max(sum(side.values()) for side in sides)
    for key, title in {**before.stall_titles, **after.stall_titles}.items():
        values = [side.get(key, 0.0 if side else None) for side in sides]
        if any(values):
            yield Change(
                f"stall_{key}", title, "stalls", "cycle", values[0], values[1], LESS_IS_BETTER, latency
            )
