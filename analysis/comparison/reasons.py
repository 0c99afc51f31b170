"""Why a kernel's time changed: its code, its counters, the clocks, the tools, another card.

A reason is a difference between the two sides, found apart from the verdict: code that differs need not be slower, and
a kernel whose code and counters are alike and that is slower was slowed down by something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Literal

from gemmprof import metrics as m
from gemmprof.analysis.comparison.records import Code, KernelRecord, opcode_changes
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.inputs.named_figures import titles
from gemmprof.analysis.reading.report import one_launch
from gemmprof.base.amounts import ratio, signed_percent
from gemmprof.base.printable import lower_first
from gemmprof.model import Finding

Kind = Literal["code", "counters", "clocks", "tools", "card"]
CLOCK_WITHIN = 0.005  # clocks that differ by less are alike
DRIFT_WITHIN = 0.03  # a clock that moved by more than this within one side drifted
# Amounts at L1, and at L2 and device memory, that differ by less are alike. Behind L1 they depend on
# placement and on what ran before: unchanged kernels differed by up to 9 % on one card (tests/data/noise).
NEAR_WITHIN, FAR_WITHIN = 0.02, 0.10
FEW_TIMES = 2.0  # with fewer than three launches on a side amounts may differ by so many times as much
TRAFFIC_AT_LEAST = 4096.0  # smaller differences in sectors, requests or bytes are left over from other work
SHOWN = 4  # how many opcodes or counters a reason names
# What reports and runs call their tools, and what people do.
TOOLS = {
    "Display Driver Version": "driver", "driver": "driver", "CUDA Version": "CUDA", "cuda": "CUDA",
    "Nsight Compute Target": "ncu", "ncu": "ncu", "nvcc": "nvcc", "torch": "torch",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that differs between the sides."""

    kind: Kind  # code, counters, clocks, tools or card
    text: str  # one sentence (untrusted text may be in it)


def reasons(before: KernelRecord, after: KernelRecord) -> tuple[Reason, ...]:
    """Everything that differs, in the order in which it explains."""
    ways: dict[Kind, Callable[[KernelRecord, KernelRecord], Iterator[str]]] = {
        "code": _code, "counters": _counters, "clocks": _clocks, "tools": _tools, "card": _card,
    }  # fmt: skip
    found = {kind: "; ".join(differ(before, after)) for kind, differ in ways.items()}
    return tuple(Reason(kind, text) for kind, text in found.items() if text)


def same_code(before: KernelRecord, after: KernelRecord) -> bool | None:
    """Whether the machine code is the same; None where a side does not hold it."""
    if before.code is None or after.code is None:
        return None
    return before.code.digest == after.code.digest


def _code(before: KernelRecord, after: KernelRecord) -> Iterator[str]:
    left, right = before.code, after.code
    if left is None or right is None or left.digest == right.digest:
        return
    yield "the machine code differs"
    registers = [record.metrics.get(m.REGISTERS_PER_THREAD) for record in (before, after)]
    if registers[0] and registers[1] and registers[0].middle != registers[1].middle:
        yield f"registers {registers[0].middle:g} → {registers[1].middle:g}"
    spills = [record.measures.values.get("local_accesses") for record in (before, after)]
    if None not in spills and spills[0] != spills[1]:
        yield f"local memory accesses {spills[0]:,.0f} → {spills[1]:,.0f}"
    if left.instructions and right.instructions:
        if left.instructions != right.instructions:
            yield f"instructions {left.instructions:,} → {right.instructions:,}"
        if left.opcodes and right.opcodes:
            yield changed_opcodes(left, right)


def changed_opcodes(before: Code, after: Code) -> str:
    """What of two codes differs, by their opcodes."""
    changed = [f"{name} {a} → {b}" for name, a, b in opcode_changes(before, after)]
    return (
        _first(changed, "opcodes") if changed else "the same opcodes with other operands or in another order"
    )


def _first(words: Sequence[str], what: str) -> str:
    """The first `SHOWN` of them, and how many more there are."""
    more = len(words) - SHOWN
    return ", ".join(words[:SHOWN]) + (f" and {more} {what} more" if more > 0 else "")


def changed_counters(before: KernelRecord, after: KernelRecord) -> list[tuple[str, float, float]] | None:
    """Those that differ: (metric, before, after), the largest change first; None where no side counts instructions."""
    names = before.metrics.keys() & after.metrics.keys()
    counted = {name: m.counts(name) for name in names}
    if "instructions" not in counted.values():
        return None
    few = min(before.launches, after.launches) < 3
    found = []
    for name, what in counted.items():
        left, right = before.metrics[name], after.metrics[name]
        if not what or not (left.high < right.low or right.high < left.low):
            continue
        if what in ("l1", "behind l1"):
            within = (NEAR_WITHIN if what == "l1" else FAR_WITHIN) * (FEW_TIMES if few else 1.0)
            distance = abs(right.middle - left.middle)
            if distance <= max(within * max(abs(left.middle), abs(right.middle)), TRAFFIC_AT_LEAST):
                continue
        found.append((name, left.middle, right.middle))
    return sorted(found, key=lambda one: (-abs(one[2] / one[1] - 1) if one[1] else -math.inf, one[0]))


def _counters(before: KernelRecord, after: KernelRecord) -> Iterator[str]:
    # Instructions first: they say that the kernel did something else, traffic how it went.
    found = changed_counters(before, after) or ()
    known = titles()
    words: dict[tuple[float, float], str] = {}
    for metric, was, now in sorted(
        found, key=lambda one: (m.counts(one[0]) != "instructions", one[0] not in known)
    ):
        change = signed_percent(100 * (now / was - 1)) if was else f"0 → {now:,.0f}"
        # What ncu counts under several names is told once.
        words.setdefault((was, now), f"{lower_first(known.get(metric, metric))} {change}")
    if words:
        yield _first([*words.values()], "counters")


def clock_change(before: KernelRecord, after: KernelRecord) -> float | None:
    """Change of the SM clock, 0.01 for 1 % faster; None where a side does not say."""
    clocks = [_of_all(record, "sm_hz") for record in (before, after)]
    return median(clocks[1]) / median(clocks[0]) - 1 if all(clocks) else None


def _of_all(record: KernelRecord, clock: str) -> list[float]:
    """A clock of all launches of all processes."""
    return [value for times in record.times for value in getattr(times, clock)]


def _clocks(before: KernelRecord, after: KernelRecord) -> Iterator[str]:
    for title, attribute in (("SM clock", "sm_hz"), ("memory clock", "memory_hz")):
        sides = [_of_all(record, attribute) for record in (before, after)]
        if not all(sides):
            continue
        left, right = (median(side) for side in sides)
        if abs(right / left - 1) > CLOCK_WITHIN:
            yield f"{title} {left / 1e6:,.0f} → {right / 1e6:,.0f} MHz ({signed_percent(100 * (right / left - 1))})"
        for word, side in zip(("before", "after"), sides, strict=True):
            if (max(side) - min(side)) / median(side) > DRIFT_WITHIN:
                yield f"{title} moved between {min(side) / 1e6:,.0f} and {max(side) / 1e6:,.0f} MHz {word}"


def _tools(before: KernelRecord, after: KernelRecord) -> Iterator[str]:
    left, right = (
        {name: version.partition(" (")[0] for name, version in side.origin.versions.items()}
        for side in (before, after)
    )
    both = [name for name in TOOLS if name in left and name in right and left[name] != right[name]]
    yield from sorted({f"{TOOLS[name]} {left[name]} → {right[name]}" for name in both})


def _card(before: KernelRecord, after: KernelRecord) -> Iterator[str]:
    left, right = before.origin.device, after.origin.device
    if left and right and left != right:
        yield f"another GPU: {left} → {right}"


# --- In the words of findings -----------------------------------------------------------------------------------------
# Findings are worked out where they are asked for: that needs the disassembly.

__all__ = ["CAUSES", "Score", "causes_of", "findings_at", "score", "what_changed"]


@dataclass(frozen=True, slots=True)
class Score:
    """What came of findings that are gone."""

    causes: tuple[str, ...]  # of the findings
    predicted: Finding  # what all of them together would save
    measured: float  # what was saved, a share of the earlier time

    @property
    def inside(self) -> bool:
        """Whether the measured saving lies in the interval."""
        return self.predicted.came(self.measured) == "as"

    @property
    def words(self) -> str:
        """``as predicted``, ``more than predicted`` or ``less than predicted``."""
        return "as predicted" if self.inside else f"{self.predicted.came(self.measured)} than predicted"


def score(before: Iterable[Finding], after: Iterable[Finding], change: float) -> Score | None:
    """What came of earlier statements, by the change of time (after/before - 1); None where all are still there."""
    still = {one.cause for one in after}
    gone = [one for one in before if one.cause not in still]
    if not gone:
        return None

    def together(shares: Iterable[float]) -> float:
        return 1 - math.prod(1 - share for share in shares)

    # Together they save at least what the surest of them does alone: they may be the same time.
    saves, high = (together(getattr(one, which) for one in gone) for which in ("saves", "saves_high"))
    all_of_them = Finding("", saves, max(one.saves_low for one in gone), high)
    return Score(tuple(one.cause for one in gone), all_of_them, -change)


def causes_of(record: KernelRecord, *, told: bool = False) -> frozenset[str] | None:
    """Keys of the causes found in the kernel's middle launch, or of those that are ``told``; None where nothing can be
    said. A baseline keeps them all.
    """
    if record.causes is not None:
        return frozenset(record.causes)
    found = None if record.place is None else findings_at(*record.place)
    return None if found is None else frozenset(one.cause for one in found if one.told or not told)


def what_changed(before: KernelRecord, after: KernelRecord, change: float) -> str:
    """A change in the words of findings: which is gone with what it was predicted to save, which came, what is next.

    A side without its report has no predictions, and nothing is said. The change is of the time, after/before - 1.
    """
    was, now = (None if side.place is None else findings_at(*side.place) for side in (before, after))
    if was is None or now is None:
        return ""
    # What shrank to less than a statement is neither gone nor new.
    names = [{one.cause for one in side} for side in (was, now)]
    told, left = ([one for one in side if one.told] for side in (was, now))
    parts = []
    for one in told if change < 0 else ():
        if one.cause not in names[1]:
            interval = f"{100 * one.saves_low:.0f} to {100 * one.saves_high:.0f}"
            parts.append(f"{_title(one.cause)} (predicted {ratio(one.saves, 0)}, {interval}) is gone")
    new = [one for one in left if one.cause not in names[0] and change > 0]
    parts += [f"{_title(one.cause)} is new (would save {ratio(one.saves, 0)})" for one in new]
    if not parts:
        return ""
    found = score(told, now, change) if change < 0 else None
    came = f", {found.words}" if found else ""
    following = f"; next: {_title(left[0].cause)} {ratio(left[0].saves, 0)}" if left and change < 0 else ""
    return f"{', '.join(parts[:2])}: {signed_percent(100 * change)} measured{came}{following}"


def _title(cause: str) -> str:
    return lower_first(CAUSES.get(cause, cause))


@cache
def findings_at(path: str, index: int) -> tuple[Finding, ...] | None:
    """The findings of a launch of a report, the most to save first; None where nothing can be said of it.

    They rest on what was recorded: counts that can be worked out on one side alone would make findings come and go.
    """
    profile = one_launch(path, index, source=True, units=True)
    # What explains takes longer to load than a list of baselines or of a history takes altogether.
    from gemmprof.analysis.explanation.demands.work import work
    from gemmprof.analysis.explanation.engine import explain_work

    found = None if profile is None else explain_work(work(profile.in_names_of_today()))
    return None if found is None or not (found.limit or found.findings) else found.findings
