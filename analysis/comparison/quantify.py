"""What changed between two launches: time, instructions, ratios, bytes per level, conflicts, occupancy, stalls.

Every quantity comes from the analyses of the two launches and knows whether less or more of it is better. Some are
means and no end (occupancy, hit rates, registers): they are shown and not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gemmprof.analysis.comparison.quantities import LESS_IS_BETTER, NOT_JUDGED, QUANTITIES, WHOLES
from gemmprof.analysis.figure import formula_of
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.warp_states import WarpStates

SAME_WITHIN = 0.005
"""Changes up to this size (see `Change.magnitude`) count as none."""

Result = TypeVar("Result")


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
        if self.before is None or self.after is None:
            return "unknown"
        difference = self.after - self.before
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
class Comparison:
    """Two launches side by side.

    Attributes:
        before, after: names of the two (untrusted text).
        changes: every quantity that at least one side has, in reading order.
        comparable: '' or why the comparison needs care (other device, other amount of work).
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    comparable: str = ""

    def change(self, name: str) -> Change | None:
        """The quantity with this name, or None."""
        return next((change for change in self.changes if change.name == name), None)

    @property
    def time(self) -> Change | None:
        """The median time where both sides were timed, else the duration under ncu; None if neither can be compared."""
        changes = (self.change("time"), self.change("duration"))
        return next((change for change in changes if change is not None and change.ratio is not None), None)

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
        return tuple(sorted(chosen, key=lambda change: change.magnitude, reverse=True))


def compare(
    before: KernelAnalysis,
    after: KernelAnalysis,
    *,
    before_name: str = "",
    after_name: str = "",
    before_seconds: float | None = None,
    after_seconds: float | None = None,
) -> Comparison:
    """Compare two analysed launches.

    Args:
        before, after: the launches.
        before_name, after_name: what to call them; default: the kernels' function names.
        before_seconds, after_seconds: times measured without the profiler, where a run has them.
    """
    sides = [
        replace(measures(side), seconds=seconds)
        for side, seconds in ((before, before_seconds), (after, after_seconds))
    ]
    return Comparison(
        before_name or before.profile.function_name,
        after_name or after.profile.function_name,
        changes_between(*sides),
        _caution(before, after),
    )


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
    values = {}
    for quantities in QUANTITIES.values():
        for name, _, _, _, kind, value in quantities:
            result = _get(analysis, kind)
            found = None if result is None else value(result)
            if found is not None:
                values[name] = found if formula_of(found) else float(found)
    stalls = _cycles(_get(analysis, WarpStates))
    return Measures(
        values,
        {key: cycles for key, (cycles, _) in stalls.items()},
        {key: title for key, (_, title) in stalls.items()},
        _uses_shared_memory(analysis),
    )


def changes_between(before: Measures, after: Measures) -> tuple[Change, ...]:
    """Every quantity that at least one side has, in reading order."""
    changes = [
        Change("time", "Median time", "time", "s", before.seconds, after.seconds, LESS_IS_BETTER),
        *_quantities(before, after),
        *_stalls(before, after),
    ]
    return tuple(change for change in changes if change.before is not None or change.after is not None)


def _get(analysis: KernelAnalysis, kind: type[Result]) -> Result | None:
    """The result of one analysis, None where it was not collected."""
    result = analysis.get(kind)
    return result if isinstance(result, kind) else None


def _quantities(before: Measures, after: Measures) -> Iterator[Change]:
    # To use shared memory or not is a choice; only how well it is used can be judged.
    judge_shared = before.uses_shared_memory and after.uses_shared_memory
    names = [name for quantities in QUANTITIES.values() for name, *_ in quantities]
    values = {name: (before.values.get(name), after.values.get(name)) for name in names}
    for group, quantities in QUANTITIES.items():
        for name, title, unit, better, _, _ in quantities:
            # Where neither side has any (no shared memory, no spills) there is nothing to say.
            if any(values[name]):
                judged = judge_shared or not (group == "shared memory" or name == "shared_loads")
                verdict = better if judged else NOT_JUDGED
                yield Change(name, title, group, unit, *values[name], verdict, _whole(name, unit, values))


def _whole(name: str, unit: str, values: Mapping[str, tuple[float | None, float | None]]) -> float:
    """What a quantity is a part of, on the side where that is larger."""
    if unit == "%":
        return 100.0
    parts = [values[part] for part in WHOLES.get(name, ())]
    return max(sum(side[index] or 0.0 for side in parts) for index in (0, 1))


def _uses_shared_memory(analysis: KernelAnalysis) -> bool:
    conflicts = _get(analysis, BankConflicts)
    return conflicts is not None and bool(conflicts.uses_shared_memory)


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


def _cycles(states: WarpStates | None) -> dict[str, tuple[float, str]]:
    """Key to (cycles per issue, title) of the states in which a warp is held back."""
    if states is None:
        return {}
    return {
        state.reason.key: (state.cycles_per_issue, state.reason.title)
        for state in states.states
        if state.cycles_per_issue is not None and state.reason.group != "issuing"
    }


WORK_WITHIN = 0.02
"""Two kernels whose multiply-adds differ by more than this did not compute the same product."""


def _caution(before: KernelAnalysis, after: KernelAnalysis) -> str:
    """Why the comparison needs care, '' if it does not."""
    reasons = []
    devices = [analysis.profile.device for analysis in (before, after)]
    if devices[0].name != devices[1].name:
        reasons.append(f"They ran on different devices ({devices[0].name} and {devices[1].name}).")
    work = [_thread_ffma(_get(analysis, InstructionMix)) for analysis in (before, after)]
    if work[0] and work[1] and abs(work[0] - work[1]) > WORK_WITHIN * max(work[0], work[1]):
        reasons.append("They did different amounts of work: compare ratios, not totals.")
    return " ".join(reasons)


def _thread_ffma(mix: InstructionMix | None) -> float | None:
    """Multiply-adds that threads executed; None without thread counts."""
    if mix is None:
        return None
    counts: Iterable[int | None] = (item.thread_executed for item in mix.opcodes if item.opcode == "FFMA")
    known = [count for count in counts if count is not None]
    return float(sum(known)) if known else None
