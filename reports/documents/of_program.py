"""A whole program as JSON: ``program`` of ``show``, ``report`` and ``profile``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from gemmprof.analysis.whole.overall import Program
from gemmprof.analysis.whole.program_advice import Proposal
from gemmprof.analysis.whole.spans import Span, walk
from gemmprof.analysis.whole.traces import Trace
from gemmprof.base.documents import Part
from gemmprof.reports.documents.of_findings import SHARE_DIGITS, Share

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session


class SpanPart(Part, frozen=True):
    """A part of the program's time."""

    SOURCES = (Span,)

    name: str
    time_ns: float
    share: Share
    launches: Annotated[int, "how many"]
    launching: Annotated[
        Share | None, "share of its time in which no multiprocessor works; null where that was not collected"
    ]


class RangePart(SpanPart, frozen=True):
    """An NVTX range; `path` says what it is in."""

    SOURCES = (Span,)

    path: Annotated[tuple[str, ...], "the ranges down to this one, outermost first; untrusted texts"]


class ProposalPart(Part, frozen=True):
    """One change, over all launches that it concerns."""

    SOURCES = (Proposal,)

    cause: Annotated[str, "key of the advice (`optimizer`, `compile`, `graph` …) or of a kernel's cause"]
    title: Annotated[str, "heading"]
    says: str
    change: str
    saves: Share
    low: Annotated[Share, "lower end of its 80 % interval"]
    high: Annotated[Share, "upper end of it"]
    share_of: str
    families: tuple[str, ...]


class GapPart(Part, frozen=True):
    """Time in which the GPU had nothing to do."""

    operator: Annotated[str, "what ended it: the operator of the next launch; '' where that is not known"]
    time_ns: Annotated[float, "in all"]


class TracePart(Part, frozen=True):
    """What another profiler saw of the same launches."""

    SOURCES = (Trace,)

    source: str
    path: str
    tied: Annotated[int, "launches of the report that the trace shows"]
    span_ns: float
    busy_ns: float
    gaps: Annotated[tuple[GapPart, ...], "most time first, ten at most"]


class ProgramPart(Part, frozen=True):
    """All launches as one program."""

    SOURCES = (Program,)

    launching: Annotated[
        Share | None, "share of the time in which no multiprocessor works; null if not collected"
    ]
    owners: Annotated[tuple[SpanPart, ...], "by whose code it is, most time first"]
    ranges: Annotated[
        tuple[RangePart, ...], "the NVTX ranges, each before those inside it; empty without any"
    ]
    operators: tuple[SpanPart, ...]
    told_from: str
    proposals: Annotated[tuple[ProposalPart, ...], "what to change first, most saved first"]
    together: Annotated[Share | None, "what all of them save of the kernels' time; null for fewer than two"]
    sampled: Annotated[
        bool, "whether the report holds chosen launches alone, so that the order of the launches is not known"
    ]
    looked_into: Share
    trace: TracePart | None


def program_part(session: Session) -> ProgramPart | None:
    """The program of a session; None where there are no times to add up."""
    if not session.kernels or not session.program.whole.time_ns:
        return None
    program = session.program
    advice, trace = program.advice, program.trace
    return ProgramPart.of(
        program,
        launching=_rounded(program.whole.launching),
        owners=_spans(program.owners),
        ranges=tuple(_range(span) for _, span in walk(program.tree)),
        operators=_spans(program.operators),
        proposals=tuple(
            ProposalPart.of(one, saves=_share(one.saves), low=_share(one.low), high=_share(one.high))
            for one in advice.proposals
        ),
        together=None if advice.together is None else _share(advice.together[0]),
        sampled=advice.sampled,
        looked_into=_share(program.looked_into),
        trace=trace
        and TracePart.of(
            trace,
            tied=len(trace.operators),
            gaps=tuple(GapPart(name, time) for name, time in trace.gaps[:10]),
        ),
    )


def _spans(found: Iterable[Span]) -> tuple[SpanPart, ...]:
    return tuple(
        SpanPart.of(span, share=_share(span.share), launching=_rounded(span.launching)) for span in found
    )


def _range(span: Span) -> RangePart:
    return RangePart.of(span, share=_share(span.share), launching=_rounded(span.launching))


def _share(value: float) -> float:
    return min(1.0, max(0.0, round(value, SHARE_DIGITS)))


def _rounded(value: float | None) -> float | None:
    return None if value is None else _share(value)
