"""Why a kernel's time changed: its code, its counters, the clocks, the tools, another card.

A reason is a difference between the two sides, found apart from the verdict: code that differs need not be slower, and
a kernel whose code and counters are alike and that is slower was slowed down by something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from gemmprof import metrics as m
from gemmprof.analysis.comparison.code import opcode_changes
from gemmprof.analysis.comparison.records import KernelRecord, Range

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
    "Display Driver Version": "driver",
    "driver": "driver",
    "CUDA Version": "CUDA",
    "cuda": "CUDA",
    "Nsight Compute Target": "ncu",
    "ncu": "ncu",
    "nvcc": "nvcc",
    "torch": "torch",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that differs between the sides.

    Attributes:
        kind: code, counters, clocks, tools or card.
        text: one sentence (untrusted text may be in it).
    """

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter that differs."""

    metric: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """after/before - 1; infinite from 0."""
        return self.after / self.before - 1 if self.before else float("inf")


def reasons(before: KernelRecord, after: KernelRecord) -> tuple[Reason, ...]:
    """Everything that differs, in the order in which it explains."""
    return (
        *_code(before, after),
        *_counters(before, after),
        *_clocks(before, after),
        *_tools(before, after),
        *_card(before, after),
    )


def same_code(before: KernelRecord, after: KernelRecord) -> bool | None:
    """Whether the machine code is the same; None where a side does not hold it."""
    if before.code is None or after.code is None:
        return None
    return before.code.digest == after.code.digest


def _code(before: KernelRecord, after: KernelRecord) -> Iterator[Reason]:
    left, right = before.code, after.code
    if left is None or right is None or left.digest == right.digest:
        return
    parts = ["the machine code differs"]
    registers = [record.metrics.get(m.REGISTERS_PER_THREAD) for record in (before, after)]
    if registers[0] and registers[1] and registers[0].middle != registers[1].middle:
        parts.append(f"registers {registers[0].middle:g} → {registers[1].middle:g}")
    spills = [record.measures.values.get("local_accesses") for record in (before, after)]
    if None not in spills and spills[0] != spills[1]:
        parts.append(f"local memory accesses {spills[0]:,.0f} → {spills[1]:,.0f}")
    if left.instructions and right.instructions:
        if left.instructions != right.instructions:
            parts.append(f"instructions {left.instructions:,} → {right.instructions:,}")
        changed = opcode_changes(left, right)
        shown = ", ".join(f"{name} {a} → {b}" for name, a, b in changed[:SHOWN])
        if shown:
            rest = len(changed) - SHOWN
            parts.append(shown + (f" and {rest} opcodes more" if rest > 0 else ""))
        else:
            parts.append("the same opcodes with other operands or in another order")
    yield Reason("code", "; ".join(parts))


def changed_counters(before: KernelRecord, after: KernelRecord) -> tuple[Counter, ...] | None:
    """The counters that differ, the largest change first; None where no side counts instructions."""
    names = before.metrics.keys() & after.metrics.keys()
    if not any(m.counts_instructions(name) for name in names):
        return None
    few = min(before.launches, after.launches) < 3
    found = []
    for name in names:
        left, right = before.metrics[name], after.metrics[name]
        if m.counts_instructions(name) or m.states_launch(name):
            differs = _apart(left, right)
        elif m.counts_traffic(name):
            within = (NEAR_WITHIN if m.counts_at_l1(name) else FAR_WITHIN) * (FEW_TIMES if few else 1.0)
            distance = abs(right.middle - left.middle)
            largest = max(abs(left.middle), abs(right.middle))
            differs = _apart(left, right) and distance > within * largest and distance > TRAFFIC_AT_LEAST
        else:
            continue
        if differs:
            found.append(Counter(name, left.middle, right.middle))
    return tuple(sorted(found, key=lambda counter: (-abs(counter.change), counter.metric)))


def _apart(left: Range, right: Range) -> bool:
    return left.high < right.low or right.high < left.low


def _counters(before: KernelRecord, after: KernelRecord) -> Iterator[Reason]:
    found = changed_counters(before, after)
    if not found:
        return
    # Instructions first: they say that the kernel did something else, traffic how it went.
    ordered = sorted(found, key=lambda counter: not m.counts_instructions(counter.metric))
    shown = [
        f"{m.readable(counter.metric)} "
        + (f"{100 * counter.change:+.1f} %" if counter.before else f"0 → {counter.after:,.0f}")
        for counter in ordered[:SHOWN]
    ]
    rest = len(found) - SHOWN
    yield Reason("counters", ", ".join(shown) + (f" and {rest} counters more" if rest > 0 else ""))


def clock_change(before: KernelRecord, after: KernelRecord) -> float | None:
    """Change of the SM clock, 0.01 for 1 % faster; None where a side does not say."""
    clocks = [[value for times in record.times for value in times.sm_hz] for record in (before, after)]
    return median(clocks[1]) / median(clocks[0]) - 1 if all(clocks) else None


def _clocks(before: KernelRecord, after: KernelRecord) -> Iterator[Reason]:
    parts = []
    for title, attribute in (("SM clock", "sm_hz"), ("memory clock", "memory_hz")):
        sides = [
            [value for times in record.times for value in getattr(times, attribute)]
            for record in (before, after)
        ]
        if not all(sides):
            continue
        left, right = (median(side) for side in sides)
        if abs(right / left - 1) > CLOCK_WITHIN:
            parts.append(
                f"{title} {left / 1e6:,.0f} → {right / 1e6:,.0f} MHz ({100 * (right / left - 1):+.1f} %)"
            )
        for word, side in zip(("before", "after"), sides, strict=True):
            if (max(side) - min(side)) / median(side) > DRIFT_WITHIN:
                parts.append(
                    f"{title} moved between {min(side) / 1e6:,.0f} and {max(side) / 1e6:,.0f} MHz {word}"
                )
    if parts:
        yield Reason("clocks", "; ".join(parts))


def _tools(before: KernelRecord, after: KernelRecord) -> Iterator[Reason]:
    sides = [before.origin.versions, after.origin.versions]
    parts = {
        f"{TOOLS[name]} {sides[0][name]} → {sides[1][name]}"
        for name in TOOLS
        if name in sides[0] and name in sides[1] and sides[0][name] != sides[1][name]
    }
    if parts:
        yield Reason("tools", "; ".join(sorted(parts)))


def _card(before: KernelRecord, after: KernelRecord) -> Iterator[Reason]:
    names = [record.origin.device for record in (before, after)]
    if all(names) and names[0] != names[1]:
        yield Reason("card", f"another GPU: {names[0]} → {names[1]}")
