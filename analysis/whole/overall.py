"""A whole program as one value: where its time goes, and what to change first. Every door shows this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.inputs.owners import owner_of
from gemmprof.analysis.whole.program_advice import Advice, Proposal, advise
from gemmprof.analysis.whole.spans import OTHER, Span, Sums, kind_of, operator_of
from gemmprof.analysis.whole.traces import Trace
from gemmprof.base.amounts import counted, nanoseconds, ratio
from gemmprof.model import KernelProfile

# What passes between two kernels of a CUDA graph that wait for one another, about: a microsecond.
NODE_NS = 1000.0
# Of the host's time in a trace, how much it takes without the tracer, which slows it: about, at the least, at most.
SLOWED = (0.7, 0.45, 1.0)
UNTIED = "not in the trace"


@dataclass(frozen=True, slots=True)
class Program:
    """Where the time of a program goes.

    Attributes:
        whole: all launches.
        owners: by whose code it is, most time first.
        tree: the NVTX ranges; without children where there are none.
        operators: by operator, or by what kernels do where no operator is known.
        told_from: where the operators are from: ``trace``, ``NVTX`` or ``names`` of the kernels.
        advice: what to change first.
        looked_into: share of the time whose kernels were explained for it, 0 to 1.
        trace: what another profiler saw, None without.
    """

    whole: Span
    owners: tuple[Span, ...]
    tree: Span
    operators: tuple[Span, ...]
    told_from: str
    advice: Advice
    looked_into: float = 1.0
    trace: Trace | None = field(default=None, repr=False)

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


def program_of(
    profiles: Sequence[KernelProfile],
    explained: Sequence[Family],
    ids: Callable[[int], str],
    trace: Trace | None = None,
) -> Program:
    """A program's launches, with what is known of some of its families.

    Args:
        profiles: all launches.
        explained: families with what saves most in each; others are left out.
        ids: the id of the family of the launch at a position.
        trace: what another profiler saw of the same launches.
    """
    sums = Sums(profiles)
    whole = sums.span("", range(len(profiles)))
    told_from, operator = _operators(profiles, trace)
    advice = advise(sums, explained, ids)
    if trace is not None and (proposal := _graph(sums, trace, whole)) is not None:
        kept = sorted([*advice.proposals, proposal], key=lambda one: -one.saves)
        advice = replace(advice, proposals=tuple(kept))
    known = sum(family.total_ns or 0.0 for family in explained)
    return Program(
        whole=whole,
        owners=sums.by(lambda at: owner_of(profiles[at]).title),
        tree=sums.tree(),
        operators=sums.by(operator),
        told_from=told_from,
        advice=advice,
        looked_into=known / sums.total if sums.total else 0.0,
        trace=trace,
    )


def _operators(profiles: Sequence[KernelProfile], trace: Trace | None) -> tuple[str, Callable[[int], str]]:
    """Where operators are known from, and the one of each launch."""
    if trace is not None and any(map(trace.operator, trace.operators)):
        return "trace", lambda at: trace.operator(at) or UNTIED
    if any(map(operator_of, profiles)):
        return "NVTX", lambda at: operator_of(profiles[at]) or OTHER
    return "names", lambda at: kind_of(profiles[at].name)


def _graph(sums: Sums, trace: Trace, whole: Span) -> Proposal | None:
    """What launching everything at once saves of the time from first to last launch."""
    shares = []
    for known in SLOWED:
        # In a loop the host runs ahead of a GPU that is busy for longer than the host needs for a step.
        waits = max(0.0, known * min(trace.host_ns, trace.span_ns) - trace.busy_ns)
        left = min(waits, NODE_NS * len(sums.profiles))
        shares.append((waits - left) / (trace.busy_ns + waits) if trace.busy_ns + waits else 0.0)
    saves, low, high = shares
    if saves < 0.05:
        return None
    torch = any(owner_of(profile).key in ("torch", "inductor") for profile in sums.profiles)
    return Proposal(
        "graph",
        f"The GPU waits for the host {ratio(trace.idle, 0)} of the time between the first and the last of "
        f"{counted(whole.launches, 'launch')}, as the trace has it.",
        "torch.compile(mode='reduce-overhead'), or torch.cuda.graph around the step: the host launches it as one."
        if torch
        else "Capture the launches in a CUDA graph (cudaStreamBeginCapture), which the host launches as one.",
        saves,
        low,
        high,
        whole,
        (),
        "wall",
    )
