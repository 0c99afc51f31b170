"""A whole program as one value: where its time goes, and what to change first. Every door shows this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.whole.spans import OTHER, Span, Sums, kind_of, operator_of
from gemmprof.base.amounts import counted, nanoseconds, ratio
from gemmprof.model import Finding, KernelProfile

if TYPE_CHECKING:
    from gemmprof.analysis.whole.program_advice import Advice, Proposal
    from gemmprof.analysis.whole.traces import Trace

# What passes between two kernels of a CUDA graph that wait for one another, about: a microsecond.
NODE_NS = 1000.0
# Of the host's time in a trace, how much it takes without the tracer, which slows it: about, at the least, at most.
SLOWED = (0.7, 0.45, 1.0)
UNTIED = "not in the trace"


@dataclass(eq=False, repr=False)
class Program:
    """Where the time of a program goes; each part is computed when it is looked at."""

    profiles: Sequence[KernelProfile]
    # those that were explained, with what saves most; others are left out
    explain: Callable[[], Sequence[Family]]
    ids: Callable[[int], str]  # the id of the family of the launch at a position
    trace: Trace | None = None  # what another profiler saw, None without

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.profiles)

    @cached_property
    def whole(self) -> Span:
        """All launches."""
        return self._sums.span("", range(len(self.profiles)))

    @cached_property
    def owners(self) -> tuple[Span, ...]:
        """By whose code it is, most time first."""
        return self._sums.by(lambda at: owner_of(self.profiles[at]).title)

    @cached_property
    def tree(self) -> Span:
        """The NVTX ranges; without children where there are none."""
        return self._sums.tree()

    @cached_property
    def told_from(self) -> str:
        """Where the operators are from: ``trace``, ``NVTX`` or ``names`` of the kernels."""
        trace = self.trace
        if trace is not None and any(map(trace.operator, trace.operators)):
            return "trace"
        return "NVTX" if any(map(operator_of, self.profiles)) else "names"

    @cached_property
    def operators(self) -> tuple[Span, ...]:
        """By operator, or by what kernels do where no operator is known."""
        trace = self.trace
        if trace is not None and self.told_from == "trace":
            return self._sums.by(lambda at: trace.operator(at) or UNTIED)
        if self.told_from == "NVTX":
            return self._sums.by(lambda at: operator_of(self.profiles[at]) or OTHER)
        return self._sums.by(lambda at: kind_of(self.profiles[at].name))

    @cached_property
    def _explained(self) -> Sequence[Family]:
        return self.explain()

    @cached_property
    def advice(self) -> Advice:
        """What to change first; kernels are explained for it."""
        from gemmprof.analysis.whole.program_advice import advise

        advice = advise(self._sums, self._explained, self.ids)
        if self.trace is not None and (proposal := _graph(self._sums, self.trace, self.whole)) is not None:
            kept = sorted([*advice.proposals, proposal], key=lambda one: -one.saves)
            advice = replace(advice, proposals=tuple(kept))
        return advice

    @property
    def looked_into(self) -> float:
        """Share of the time whose kernels were explained for it, 0 to 1."""
        known = sum(family.total_ns or 0.0 for family in self._explained)
        return known / self._sums.total if self._sums.total else 0.0

    @property
    def gaps(self) -> str:
        """What is known of the time between launches, a sentence."""
        trace = self.trace
        if trace is None or not trace.span_ns:
            return "Gaps between launches are not seen: --trace FILE."
        text = f"{trace.source}'s trace: the GPU works {ratio(1 - trace.idle, 0)} of {nanoseconds(trace.span_ns)}"
        if trace.gaps and trace.gaps[0][0] and trace.idle > 0.01:
            text += f", and waits longest before {trace.gaps[0][0]}"
        return f"{text}."

    @property
    def branches(self) -> tuple[Span, ...]:
        """The first ranges into which the program really divides: what holds nearly all of it is passed through."""
        node = self.tree
        while node.children and node.children[0].children and node.children[0].share > 0.97 * node.share:
            node = node.children[0]
        return node.children


@dataclass(frozen=True, slots=True)
class Came:
    """What came of the advice on an earlier version of a program."""

    # of the earlier version, those on its kernels, each with what it still saves now, as a share of the earlier time
    proposals: tuple[tuple[Proposal, float], ...]
    # of those that were followed: what they were to save together, share, low and high; None without any
    predicted: tuple[float, float, float] | None
    measured: float  # what the sum of all kernels is shorter by, a share

    @property
    def words(self) -> str:
        """``as predicted``, ``more than predicted`` or ``less than predicted``; '' where nothing was followed."""
        from gemmprof.analysis.comparison.reasons import Score

        return "" if self.predicted is None else Score((), Finding("", *self.predicted), self.measured).words


# What is left of a proposal's saving, as a share of it, below which it was followed.
FOLLOWED = 0.5


def came(before: Program, after: Program) -> Came | None:
    """What came of the earlier advice; None where a side holds chosen launches alone, or nothing was proposed."""
    from gemmprof.analysis.whole.program_advice import together

    if not before.whole.time_ns or not after.whole.time_ns or before.advice.sampled or after.advice.sampled:
        return None
    left = after.whole.time_ns / before.whole.time_ns
    now = {one.cause: left * one.saves for one in after.advice.proposals}
    proposals = (one for one in before.advice.proposals if one.share_of == "kernels")
    found = tuple((one, now.get(one.cause, 0.0)) for one in proposals)
    followed = [one for one, still in found if still < FOLLOWED * one.saves]
    predicted = together(followed, before.whole.time_ns) if followed else None
    return Came(found, predicted, 1.0 - left) if found else None


def _graph(sums: Sums, trace: Trace, whole: Span) -> Proposal | None:
    """What launching everything at once saves of the time from first to last launch."""
    shares = []
    for known in SLOWED:
        # In a loop the host runs ahead of a GPU that is busy for longer than the host needs for a step.
        waits = max(0.0, known * min(trace.host_ns, trace.span_ns) - trace.busy_ns)
        left = min(waits, NODE_NS * len(sums.profiles))
        shares.append((waits - left) / (trace.busy_ns + waits) if trace.busy_ns + waits else 0.0)
    from gemmprof.analysis.whole.program_advice import Proposal, in_words

    saves, low, high = shares
    if saves < 0.05:
        return None
    how = "Capture the launches in a CUDA graph (cudaStreamBeginCapture), which the host launches as one."
    if any(owner_of(profile).key in ("torch", "inductor") for profile in sums.profiles):
        how = "torch.compile(mode='reduce-overhead'), or torch.cuda.graph around the step: the host launches it as one."
    words = {"idle": ratio(trace.idle, 0), "launches": counted(whole.launches, "launch"), "how": how}
    return Proposal("graph", *in_words("graph", words), saves, low, high, whole, share_of="wall")
