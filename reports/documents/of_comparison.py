"""A comparison as JSON: ``kernels`` is the contract, ``details`` has as many entries and more words."""

from __future__ import annotations

from typing import Annotated

from gemmprof.analysis.comparison.gate import GateResult
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.comparison.quantify import Change
from gemmprof.analysis.comparison.reasons import Reason
from gemmprof.base.documents import Document, Part
from gemmprof.reports.verdicts import sentences

# What ``changed`` may hold; another card is named under ``details``.
CHANGED = ("code", "counters", "clocks", "tools")


class DiffKernel(Part, frozen=True):
    """What became of one kernel: the contract of the format."""

    name: Annotated[str, "full demangled name; untrusted text"]
    grid: Annotated[str, "`64x32x1`"]
    launches_before: Annotated[int, "repetitions of the side before"]
    launches_after: Annotated[int, "repetitions of the side after"]
    verdict: Annotated[str, "same, faster, slower, unclear, new or gone"]
    time_change: Annotated[float | None, "time after over time before, minus 1"]
    low: Annotated[float | None, "lower end of its interval, corrected for the number of kernels"]
    high: Annotated[float | None, "upper end of its interval"]
    changed: Annotated[tuple[str, ...], "what differs between the sides: code, counters, clocks, tools"]


class QuantityChange(Part, frozen=True):
    """One quantity before and after."""

    SOURCES = (Change,)

    name: str
    title: str
    group: str
    unit: str
    before: float | None
    after: float | None
    better: str
    whole: float
    verdict: str
    ratio: float | None


class DiffDetails(Part, frozen=True):
    """More of the same kernel; as many entries as ``kernels``, in the same order."""

    label: Annotated[str, "the name as every door spells it"]
    apart: Annotated[
        str, "what tells it from others of that name: grid, block, range …; empty where nothing must"
    ]
    family: Annotated[str | None, "id of its family in the later report (`#3`); null where it has none"]
    before: Annotated[str | None, "name before, null for a new kernel"]
    after: Annotated[str | None, "name after, null for one that is gone"]
    block: Annotated[str, "`256x1x1`"]
    paired_by: Annotated[str, "how the two were recognised as one kernel"]
    seconds_before: Annotated[float | None, "median time"]
    seconds_after: Annotated[float | None, "median time"]
    timed_without_profiler: Annotated[bool, "whether the times are from outside the profiler"]
    cycles_change: Annotated[float | None, "elapsed cycles after over before, minus 1"]
    detectable: Annotated[float | None, "the smallest change that these data could have shown"]
    probability: Annotated[float | None, "of seeing such a difference where nothing changed"]
    noise_class: Annotated[str, "which kernels it was compared with for its usual noise"]
    reasons: Annotated[tuple[Reason, ...], "what differs, a sentence each"]
    note: Annotated[str, "a remark, '' without one"]
    changes: Annotated[tuple[QuantityChange, ...], "every quantity that both sides have"]


class BrokenCondition(Part, frozen=True):
    """A condition that does not hold."""

    kernel: Annotated[str, "full demangled name"]
    condition: Annotated[str, "as it was written"]
    text: Annotated[str, "in words"]
    waived: Annotated[str | None, "the waiver's reason, null without one"]


class Undecided(Part, frozen=True):
    """A condition that the data cannot decide."""

    kernel: Annotated[str, "full demangled name"]
    text: Annotated[str, "in words"]


class Gate(Part, frozen=True):
    """What the gate says."""

    holds: Annotated[bool, "no condition is broken without a waiver"]
    conditions: Annotated[tuple[str, ...], "as they were written"]
    checked: Annotated[int, "kernels that were looked at"]
    broken: Annotated[tuple[BrokenCondition, ...], "conditions that do not hold"]
    undecided: Annotated[tuple[Undecided, ...], "conditions that cannot be decided"]


class DiffDocument(Document, frozen=True, tag="gemmprof.diff/1"):
    """``gemmprof diff``."""

    kernels: Annotated[tuple[DiffKernel, ...], "a kernel and grid each"]
    details: Annotated[tuple[DiffDetails, ...], "more of each"]
    before: Annotated[str, "what was read as before"]
    after: Annotated[str, "what was read as after"]
    notes: Annotated[tuple[str, ...], "what makes the comparison doubtful"]
    gate: Annotated[Gate | None, "with conditions only"] = None


def compared(outcome: Outcome, gate: GateResult | None) -> DiffDocument:
    """The verdict on every kernel, why, and what the gate says of it."""
    return DiffDocument.of(
        outcome,
        kernels=tuple(map(_kernel, outcome.kernels)),
        details=tuple(map(_details, outcome.kernels)),
        notes=(*outcome.notes, *outcome.broken),
        gate=gate and _gate(gate),
    )


def _kernel(kernel: Compared) -> DiffKernel:
    judgement = kernel.judgement
    before, after = sentences.launches(kernel)
    return DiffKernel(
        name=kernel.record.name,
        grid=kernel.record.grid_text,
        launches_before=before,
        launches_after=after,
        verdict=kernel.verdict,
        time_change=None if judgement is None else judgement.change,
        low=None if judgement is None else judgement.low,
        high=None if judgement is None else judgement.high,
        changed=tuple(kind for kind in kernel.changed if kind in CHANGED),
    )


def _details(kernel: Compared) -> DiffDetails:
    match, judgement = kernel.match, kernel.judgement
    return DiffDetails(
        label=match.label,
        apart=kernel.record.apart,
        family=None if match.family is None else f"#{match.family}",
        before=None if match.before is None else match.before.name,
        after=None if match.after is None else match.after.name,
        block="x".join(map(str, kernel.record.block)),
        paired_by=match.how,
        seconds_before=kernel.seconds[0],
        seconds_after=kernel.seconds[1],
        timed_without_profiler=kernel.timed,
        cycles_change=kernel.cycles,
        detectable=None if judgement is None else judgement.detectable,
        probability=None if judgement is None else judgement.probability,
        noise_class=kernel.noise,
        reasons=kernel.reasons,
        note="; ".join(filter(None, (kernel.said, kernel.note))),
        changes=tuple(map(QuantityChange.of, kernel.changes)),
    )


def _gate(gate: GateResult) -> Gate:
    broken = (
        BrokenCondition.of(item, kernel=item.kernel.record.name, waived=item.waiver and item.waiver.reason)
        for item in gate.broken
    )
    undecided = (Undecided(kernel.record.name, text) for kernel, text in gate.undecided)
    return Gate.of(gate, broken=tuple(broken), undecided=tuple(undecided))
