"""A gate: conditions that a comparison must not meet, waivers that let one pass for a time, what is undecided."""

from __future__ import annotations

import datetime
import difflib
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gemmprof.analysis.comparison.causes import CAUSES
from gemmprof.analysis.comparison.conditions import TIME, Condition
from gemmprof.analysis.comparison.figures import ONE_LAUNCH_WITHIN, figure, has_finding, of_one_launch
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.comparison.quantities import ALIASES, QUANTITIES
from gemmprof.analysis.comparison.records import KernelRecord
from gemmprof.analysis.comparison.waivers import Waiver
from gemmprof.base.errors import UsageError

_COMPARES: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Break:
    """A kernel that meets a condition: the line that broke the gate, and the waiver that lets it pass, if one does."""

    kernel: Compared
    condition: str
    text: str
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate found.

    Attributes:
        conditions: the conditions, as written.
        broken: kernels that meet one, waived ones too.
        undecided: (kernel, why) that could not be decided; they do not break the gate.
        expired: waivers whose day has passed.
        checked: how many kernels at least one condition could be checked on.
    """

    conditions: tuple[str, ...]
    broken: tuple[Break, ...]
    undecided: tuple[tuple[Compared, str], ...]
    expired: tuple[Waiver, ...]
    checked: int

    @property
    def holds(self) -> bool:
        """True if nothing broke it that is not waived."""
        return all(item.waiver is not None for item in self.broken)


def check(
    outcome: Outcome,
    conditions: Sequence[Condition],
    *,
    allow_new: bool = False,
    allow_gone: bool = False,
    fail_unclear: bool = False,
    waivers: Iterable[Waiver] = (),
    today: datetime.date | None = None,
) -> GateResult:
    """Hold a comparison against conditions.

    A change in time counts only where the verdict is SLOWER (or FASTER) and the estimate is beyond the limit; a change
    in another figure only where its values on the two sides do not overlap. What cannot be decided does not break the
    gate and is listed.

    Args:
        outcome: the comparison.
        conditions: what must not hold.
        allow_new, allow_gone: let kernels pass that only one side has.
        fail_unclear: CAN'T TELL breaks the gate, too.
        waivers: see `Waiver`.
        today: the day that waivers are held against.

    Raises:
        UsageError: if no kernel has a figure that a condition names.
    """
    day = today or datetime.date.today()
    given = tuple(waivers)
    gate = _Gate(conditions, [waiver for waiver in given if waiver.until >= day])
    for kernel in outcome.kernels:
        if kernel.verdict == "gone":
            gate.absent(kernel, "is gone", "is missing after (--allow-gone lets it pass)", allow_gone)
            continue
        if kernel.verdict == "new":
            gate.absent(kernel, "is new", "has no counterpart before (--allow-new lets it pass)", allow_new)
        gate.hold(kernel)
        if kernel.verdict == "unclear" and fail_unclear:
            gate.breaks(kernel, "unclear", "CAN'T TELL (--fail-unclear)")
    # Of kernels that are gone nothing can be asked.
    askable = any(kernel.verdict != "gone" for kernel in outcome.kernels)
    unknown = [condition for condition in conditions if askable and condition.text not in gate.known]
    if unknown:
        raise _unknown(outcome, unknown[0])
    return GateResult(
        tuple(condition.text for condition in conditions),
        tuple(gate.broken),
        tuple(gate.undecided),
        tuple(waiver for waiver in given if waiver.until < day),
        gate.checked,
    )


class _Gate:
    """What is found while kernel after kernel is held against the conditions.

    Attributes:
        broken, undecided, checked: see `GateResult`.
        known: conditions, as written, whose figure at least one kernel has.
    """

    def __init__(self, conditions: Sequence[Condition], waivers: Sequence[Waiver]) -> None:
        self._conditions, self._waivers = conditions, waivers
        self.broken: list[Break] = []
        self.undecided: list[tuple[Compared, str]] = []
        self.checked = 0
        self.known: set[str] = set()

    def breaks(self, kernel: Compared, condition: str, text: str) -> None:
        """The kernel meets a condition; the first waiver that covers it lets it pass."""
        waiver = next((waiver for waiver in self._waivers if waiver.covers(kernel, condition)), None)
        self.broken.append(Break(kernel, condition, text, waiver))

    def absent(self, kernel: Compared, allowed_words: str, words: str, allowed: bool) -> None:
        """Only one side has the kernel."""
        if allowed:
            self.undecided.append((kernel, allowed_words))
        else:
            self.breaks(kernel, kernel.verdict, words)

    def hold(self, kernel: Compared) -> None:
        """Hold a kernel against every condition."""
        answers = [self._answer(kernel, condition) for condition in self._conditions]
        self.checked += any(answers)

    def _answer(self, kernel: Compared, condition: Condition) -> bool:
        """Note what one condition says of a kernel; returns whether it could be decided by its figure."""
        if kernel.verdict == "new" and condition.needs_both_sides:
            self.known.add(condition.text)
            return False
        if _has_no_time(condition, kernel):
            self.known.add(condition.text)
            self.breaks(kernel, condition.name, f"no time on both sides ({condition.text})")
            return False
        met, words = _holds(condition, kernel)
        if met is not None or words != NOT_THERE:
            self.known.add(condition.text)
        if met is None:
            self.undecided.append((kernel, f"{condition.text}: {words}"))
        elif met:
            self.breaks(kernel, condition.name, f"{words} ({condition.text})")
        return met is not None


NOT_THERE = "not collected"


def _has_no_time(condition: Condition, kernel: Compared) -> bool:
    """A gate on time must not pass because nobody took the time; a build has none by its nature."""
    return (
        condition.name == TIME
        and condition.difference
        and kernel.judgement is None
        and kernel.record.key[0] != "build"
    )


def _holds(condition: Condition, kernel: Compared) -> tuple[bool | None, str]:
    """Whether a kernel meets a condition (None: cannot be decided), and the figures in words."""
    before, after = kernel.match.before, kernel.match.after
    assert after is not None
    if not condition.compare:
        return _finding(condition, before, after)
    compare = _COMPARES[condition.compare]
    if condition.name == TIME:
        return _time(condition, kernel, compare)
    right = figure(after, condition.name)
    if right is None:
        return None, NOT_THERE
    if not condition.difference:
        return compare(right.middle, condition.value), f"{condition.name} is {right.middle:,.6g}"
    left = None if before is None else figure(before, condition.name)
    if left is None:
        return None, NOT_THERE
    words = f"{condition.name} {left.middle:,.6g} → {right.middle:,.6g}"
    if condition.relative:
        change = _percent(left.middle, right.middle)
        words += f" ({change:+.2f} %)" if left.middle else ""
    else:
        change = right.middle - left.middle
    largest = max(abs(left.middle), abs(right.middle))
    if (
        of_one_launch(condition.name, after)
        and 0 < abs(right.middle - left.middle) <= ONE_LAUNCH_WITHIN * largest
    ):
        return None, f"{words}, within what one launch of each side may differ by"
    apart = left.high < right.low or right.high < left.low or left.middle == right.middle
    if not apart and compare(change, condition.value):
        return None, f"{words}, within what launches of one side differ by"
    return compare(change, condition.value), words


def _percent(before: float, after: float) -> float:
    """A change in per cent; from nothing to something it is beyond every limit."""
    if before:
        return 100 * (after / before - 1)
    return math.copysign(math.inf, after) if after else 0.0


def _time(
    condition: Condition, kernel: Compared, compare: Callable[[float, float], bool]
) -> tuple[bool | None, str]:
    judgement = kernel.judgement
    if not condition.difference:
        after = kernel.seconds[1]
        if after is None:
            return None, NOT_THERE
        return compare(1e6 * after, condition.value), f"time is {1e6 * after:,.6g} µs"
    if judgement is None:
        return None, "no time on both sides"
    change = 100 * judgement.change
    direction = "slower" if change > 0 else "faster"
    words = f"{abs(change):.1f} % {direction}, {100 * judgement.low:+.1f} % to {100 * judgement.high:+.1f} %"
    # The limit itself is tested, at both ends of the interval that is shown: an estimate beyond it may be chance.
    ends = [compare(100 * end, condition.value) for end in (judgement.low, judgement.high)]
    if kernel.verdict in ("slower", "faster", "same") and all(ends):
        return kernel.verdict != "same", words
    if any(ends) and kernel.verdict != "same":
        return None, f"CAN'T TELL whether it is {condition.compare} {condition.value:+g} %: {words}"
    return False, words


def _finding(
    condition: Condition, before: KernelRecord | None, after: KernelRecord
) -> tuple[bool | None, str]:
    sides = [None if record is None else has_finding(condition.name, record) for record in (before, after)]
    if sides[1] is None or (condition.difference and before is not None and sides[0] is None):
        return None, NOT_THERE
    there = sides[1] and not (condition.difference and sides[0])
    return there, f"{condition.name} {'is found' if there else 'is not found'}"


def _unknown(outcome: Outcome, condition: Condition) -> UsageError:
    names = {name for quantities in QUANTITIES.values() for name, *_ in quantities} | {TIME, *ALIASES}
    for kernel in outcome.kernels:
        names |= kernel.record.metrics.keys()
    near = difflib.get_close_matches(condition.name, names, 3)
    asked = "the figure" if condition.compare else "been looked at for"
    figures = ", ".join(sorted(name for name in names if "__" not in name))
    return UsageError(
        f"'{condition.text}': no kernel has {asked} {condition.name}",
        found=f"near it: {', '.join(near)}" if near else "",
        remedies=[
            f"figures: {figures}",
            "any metric of ncu's that was collected, as --page raw of ncu names it",
            "findings: the names of ncu's rules, and gemmprof's causes: " + ", ".join(sorted(CAUSES)),
        ],
    )
