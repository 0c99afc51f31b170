"""A comparison as JSON: ``kernels`` is the contract, ``details`` has as many entries and more words."""

from __future__ import annotations

from typing import Annotated

from gemmprof.analysis.comparison.gate import GateResult
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.comparison.reasons import Reason
from gemmprof.analysis.comparison.records import Change
from gemmprof.base.amounts import dimensions
from gemmprof.base.documents import Document, From, Part, PartOf
from gemmprof.reports import sentences

# What ``changed`` may hold; another card is named under ``details``.
CHANGED = ("code", "counters", "clocks", "tools")


class DiffKernel(Part, frozen=True):
    """What became of one kernel: the contract of the format."""

    name: Annotated[str, From("record.name")]  # full demangled name; untrusted text
    grid: Annotated[str, From("record.grid_text")]  # `64x32x1`
    launches_before: int  # repetitions of the side before
    launches_after: int  # repetitions of the side after
    verdict: str  # same, faster, slower, unclear, new or gone
    time_change: Annotated[float | None, From("judgement.change")]  # time after over time before, minus 1
    low: Annotated[float | None, From("judgement.low")]  # lower end, corrected for the number of kernels
    high: Annotated[float | None, From("judgement.high")]  # upper end
    changed: tuple[str, ...]  # what differs between the sides: code, counters, clocks, tools


class QuantityChange(PartOf[Change], frozen=True):
    """One quantity before and after."""

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

    label: Annotated[str, From("match.label")]  # the name as every door spells it
    apart: str  # what tells it from others of that name: grid, block, range …; '' for nothing
    family: str | None  # id of its family in the later report (`#3`); null where it has none
    before: Annotated[str | None, From("match.before.name")]  # name before, null for a new kernel
    after: Annotated[str | None, From("match.after.name")]  # name after, null for one that is gone
    block: str  # `256x1x1`
    paired_by: Annotated[str, From("match.how")]  # how the two were recognised as one kernel
    seconds_before: float | None  # the time that the change is of: a mean without the longest quarter
    seconds_after: float | None  # the same of the later side
    timed_without_profiler: Annotated[bool, From("timed")]  # whether the times are from outside the profiler
    cycles_change: Annotated[float | None, From("cycles")]  # elapsed cycles after over before, minus 1
    detectable: float | None  # the smallest change that these data could have shown
    probability: float | None  # of seeing such a difference where nothing changed
    noise_class: Annotated[str, From("noise")]  # which kernels it was compared with for its usual noise
    reasons: tuple[Reason, ...]  # what differs, a sentence each
    note: str  # a remark, '' without one
    changes: tuple[QuantityChange, ...]  # every quantity that both sides have


class BrokenCondition(Part, frozen=True):
    """A condition that does not hold."""

    kernel: Annotated[str, From("kernel.record.name")]  # full demangled name
    condition: str  # as it was written
    text: str  # in words
    waived: Annotated[str | None, From("waiver.reason")]  # the waiver's reason, null without one


class Undecided(Part, frozen=True):
    """A condition that the data cannot decide."""

    kernel: str  # full demangled name
    text: str  # in words


class Gate(Part, frozen=True):
    """What the gate says."""

    holds: bool  # no condition is broken without a waiver
    conditions: tuple[str, ...]  # as they were written
    checked: int  # kernels that were looked at
    broken: tuple[BrokenCondition, ...]  # conditions that do not hold
    undecided: tuple[Undecided, ...]  # conditions that cannot be decided


class DiffDocument(Document, frozen=True, tag="gemmprof.diff/1"):
    """``gemmprof diff``."""

    kernels: tuple[DiffKernel, ...]  # a kernel and grid each
    details: tuple[DiffDetails, ...]  # more of each
    before: str  # what was read as before
    after: str  # what was read as after
    notes: tuple[str, ...]  # what makes the comparison doubtful
    gate: Gate | None = None  # with conditions only


def compared(outcome: Outcome, gate: GateResult | None) -> DiffDocument:
    """The verdict on every kernel, why, and what the gate says of it."""
    undecided = () if gate is None else (Undecided(one.record.name, text) for one, text in gate.undecided)
    return DiffDocument.of(
        outcome,
        kernels=map(_kernel, outcome.kernels),
        details=map(_details, outcome.kernels),
        notes=(*outcome.notes, *outcome.broken),
        gate=gate and Gate.of(gate, undecided=undecided),
    )


def _kernel(kernel: Compared) -> DiffKernel:
    before, after = sentences.launches(kernel)
    changed = (kind for kind in kernel.changed if kind in CHANGED)
    return DiffKernel.of(kernel, launches_before=before, launches_after=after, changed=changed)


def _details(kernel: Compared) -> DiffDetails:
    family, judgement = kernel.match.family, kernel.judgement
    return DiffDetails.of(
        kernel,
        apart=kernel.record.apart,
        family=None if family is None else f"#{family}",
        block=dimensions(kernel.record.block),
        seconds_before=kernel.seconds[0],
        seconds_after=kernel.seconds[1],
        detectable=judgement and judgement.detectable,
        probability=judgement and judgement.estimate.probability,
        note="; ".join(filter(None, (kernel.said, kernel.note))),
    )
