"""What was launched, and the whole program, as JSON: ``show``, ``report``, ``profile``, ``roofline``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import UNSET, UnsetType

from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.sections.roofline import Roofline, RooflinePoint
from gemmprof.analysis.sections.verdict import Verdict
from gemmprof.analysis.session import Session
from gemmprof.analysis.whole.overall import Program
from gemmprof.analysis.whole.program_advice import Proposal
from gemmprof.analysis.whole.spans import Span, walk
from gemmprof.analysis.whole.traces import Trace
from gemmprof.base.documents import Document, From, Part, PartOf
from gemmprof.base.spread import grouped
from gemmprof.model import KernelProfile, NotCollected
from gemmprof.reports.documents.of_findings import FindingPart, Position, Share
from gemmprof.reports.facts import gpu_index
from gemmprof.reports.pages.contents import KernelPage
from gemmprof.reports.terminal.overview import HEADLINES, section_titles
from gemmprof.reports.terminal.section_tables import rows


class LaunchPlace(Part, frozen=True):
    """Which launch."""

    report: str  # the report, as it was named
    launch: Annotated[Position, From("index")]  # position in it, from 0


class FamilyPart(PartOf[Family], frozen=True):
    """Launches that are looked at as one."""

    id: str
    name: str
    label: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_memory: int
    nvtx: tuple[str, ...]
    owner: Annotated[str, From("owner.key")]  # whose code the kernel is: `own`, `triton`, `torch`, `cublas` …
    total_ns: float | None
    share: float | None
    shortest_ns: float | None
    median_ns: float | None
    longest_ns: float | None
    worst: FindingPart | None
    count: int
    spread: float | None
    saves_ns: float | None
    representative: LaunchPlace
    launches: tuple[LaunchPlace, ...]  # all launches, in the order of profiling


class RowPart(Part, frozen=True):
    """A line of a section."""

    name: str  # what it is
    value: str  # the value as the terminal shows it, with its unit
    remark: str  # a remark, '' without one


class SectionPart(Part, frozen=True):
    """One analysis of a launch."""

    title: str  # heading
    rows: tuple[RowPart, ...]  # its lines


class KernelPart(PartOf[KernelProfile], frozen=True):
    """One launch with its verdict and sections."""

    report: str
    launch: Annotated[Position, From("index")]  # position in it, from 0
    family: str  # id of its family
    name: str
    nvtx: tuple[str, ...]
    grid: Annotated[tuple[int, ...], From("launch.grid")]  # blocks in x, y, z
    block: Annotated[tuple[int, ...], From("launch.block")]  # threads in x, y, z
    verdict: Verdict  # what a performance engineer would say first
    sections: Mapping[str, SectionPart]  # the analyses by name (`warp_states`, `roofline` …)


class ProcessPart(Part, frozen=True):
    """What one process launched, on one GPU."""

    process: int | None  # its id
    gpu: int | None  # CUDA's index of the GPU in that process; null if not collected
    launches: tuple[LaunchPlace, ...]  # in the order of profiling
    rank: int | UnsetType | None = UNSET  # of ``profile``: as the launcher told it, null without one


class Overview(Document, frozen=True):
    """What ``show``, ``report`` and ``profile`` say of their input."""

    title: str  # what was read
    launches: int  # number of profiled launches
    not_read: tuple[str, ...]  # inputs that could not be read, and why
    processes: tuple[ProcessPart, ...]  # whose launches these are, where there are several; else empty
    program: ProgramPart | None  # where the time goes, what to change first; null without times
    families: tuple[FamilyPart, ...]  # the most to gain first
    kernels: tuple[KernelPart, ...]  # a family each; the first five without --section and --all

    @classmethod
    def of_session(
        cls,
        session: Session,
        sections: Sequence[str] = (),
        *,
        everything: bool = True,
        ranks: Mapping[int, int] | None = None,
        **more: Any,
    ) -> Self:
        """Families, and the representative of each (``everything``: not only of those that the terminal says a word of)
        with these sections, all if none are named; ``ranks`` by process, where a launcher said them; ``more``: the
        fields that the document has beyond these.
        """
        found = session.families
        code = everything or "source_view" in sections
        chosen = found if everything or sections else found[:HEADLINES]
        profiles = [kernel.profile for kernel in session.kernels]
        of = ((one, profiles[one.representative], [profiles[at] for at in one.members]) for one in found)
        families = (FamilyPart.of(one, representative=longest, launches=every) for one, longest, every in of)
        kernels = []
        for family in chosen:
            kernel = session.whole(family.representative, code=code)
            said = {
                name: SectionPart(title, tuple(RowPart(*row) for row in rows(kernel.results[name])))
                for name, title in section_titles(sections)
            }
            part = KernelPart.of(kernel.profile, family=family.id, verdict=kernel.verdict, sections=said)
            kernels.append(part)
        return cls(
            title=session.title,
            launches=len(session.kernels),
            not_read=tuple(map(str, session.failures)),
            processes=_processes(session, ranks),
            program=program_part(session),
            families=tuple(families),
            kernels=tuple(kernels),
            **more,
        )


class ShowDocument(Overview, frozen=True, tag="gemmprof.show/1"):
    """``gemmprof show``."""


class ReportDocument(Overview, frozen=True, tag="gemmprof.report/1"):
    """``gemmprof report``."""

    index: Path  # the page to open first


class ProfileDocument(Overview, frozen=True, tag="gemmprof.profile/1"):
    """``gemmprof profile``."""

    reports: tuple[Path, ...]  # the reports that were written
    pages: Path | None  # the page to open first; null with --no-pages, or if rendering failed
    seconds: tuple[float, ...]  # how long the profiling of each report took


def _processes(session: Session, ranks: Mapping[int, int] | None) -> tuple[ProcessPart, ...]:
    """Which launches are whose, where a report holds launches of several processes; else nothing."""
    if not session.processes:
        return ()
    profiles = [kernel.profile for kernel in session.kernels]
    found = grouped(((one.session.process, gpu_index(one)), LaunchPlace.of(one)) for one in profiles)
    return tuple(
        ProcessPart(process, gpu, tuple(launches), UNSET if ranks is None else process and ranks.get(process))
        for (process, gpu), launches in found.items()
    )


class PointPart(PartOf[RooflinePoint], frozen=True):
    """One memory level under the roofs."""

    arithmetic: Annotated[str, From("compute.key")]  # which arithmetic (`fp32`, `tensor_fp16` …)
    level: Annotated[str, From("memory.level")]  # memory level: dram, l2, l1, shared
    intensity: float
    ridge: float
    achieved_flops: Annotated[float, From("achieved")]  # FLOP a second
    attainable_flops: Annotated[float, From("attainable")]  # what the roofs allow there, FLOP a second
    peak_flops: Annotated[float, From("compute.peak")]  # of the arithmetic at these clocks, FLOP a second
    achieved_bandwidth: Annotated[float | None, From("memory.achieved")]  # bytes a second
    peak_bandwidth: Annotated[float, From("memory.peak")]  # of the level, bytes a second
    percent: float
    bound: str  # `memory` left of the ridge, `compute` right of it


class RooflinePart(Part, frozen=True):
    """One launch under its roofs."""

    kernel: Annotated[str, From("analysis.profile.name")]  # full demangled name; untrusted text
    stage: Annotated[int | None, From("record.stage.number")]  # of the ladder; null for another kernel
    problem: Annotated[str | None, From("problem.key")]  # the matrix product (`4096`), null without
    report: Annotated[str, From("analysis.profile.report")]  # the report, as it was named
    launch: Annotated[Position, From("analysis.profile.index")]  # position in it, from 0
    family: Annotated[str | None, From("family.id")]  # id of its family (`#3`), as everywhere
    not_collected: str | None  # the ncu option that collects what is missing, null for nothing
    points: tuple[PointPart, ...]  # one a memory level, for the kernel's arithmetic


class RooflineDocument(Document, frozen=True, tag="gemmprof.roofline/1"):
    """``gemmprof roofline``."""

    kernels: tuple[RooflinePart, ...]  # stages in the order of the ladder, others by family, most time first


def roofline_part(page: KernelPage) -> RooflinePart:
    """The roofline of a launch."""
    result = page.analysis.get(Roofline)
    if isinstance(result, NotCollected):
        return RooflinePart.of(page, not_collected=result.remedy, points=())
    return RooflinePart.of(page, not_collected=result.remedy or None, points=result.main_points)


class SpanPart(PartOf[Span], frozen=True):
    """A part of the program's time."""

    name: str
    time_ns: float
    share: Share
    launches: int  # how many
    launching: Share | None  # share of its time in which no SM works; null if not collected


class RangePart(SpanPart, frozen=True):
    """An NVTX range; `path` says what it is in."""

    path: tuple[str, ...]  # the ranges down to this one, outermost first; untrusted texts


class ProposalPart(PartOf[Proposal], frozen=True):
    """One change, over all launches that it concerns."""

    cause: str  # key of the advice (`optimizer`, `compile`, `graph` …) or of a kernel's cause
    title: str  # heading
    says: str
    change: str
    saves: Share
    low: Share  # lower end of its 80 % interval
    high: Share  # upper end of it
    share_of: str
    families: tuple[str, ...]


class GapPart(Part, frozen=True):
    """Time in which the GPU had nothing to do."""

    operator: str  # what ended it: the operator of the next launch; '' where that is not known
    time_ns: float  # in all


class TracePart(PartOf[Trace], frozen=True):
    """What another profiler saw of the same launches."""

    source: str
    path: str
    tied: int  # launches of the report that the trace shows
    span_ns: float
    busy_ns: float
    gaps: tuple[GapPart, ...]  # most time first, ten at most


class ProgramPart(PartOf[Program], frozen=True):
    """All launches as one program."""

    launching: Annotated[Share | None, From("whole.launching")]  # the same of all of it
    owners: tuple[SpanPart, ...]  # by whose code it is, most time first
    ranges: tuple[RangePart, ...]  # the NVTX ranges, each before those inside it
    operators: tuple[SpanPart, ...]
    told_from: str
    # what to change, most saved first
    proposals: Annotated[tuple[ProposalPart, ...], From("advice.proposals")]
    together: Share | None  # what all of them save of the kernels' time; null for fewer than two
    # chosen launches alone, so that their order is not known
    sampled: Annotated[bool, From("advice.sampled")]
    looked_into: Annotated[Share, From("looked_into")]
    trace: TracePart | None


def program_part(session: Session) -> ProgramPart | None:
    """The program of a session; None where there are no times to add up."""
    if not session.kernels or not session.program.whole.time_ns:
        return None
    program, trace = session.program, session.program.trace
    together = program.advice.together
    return ProgramPart.of(
        program,
        ranges=(span for _, span in walk(program.tree)),
        together=together and together[0],
        trace=trace
        and TracePart.of(trace, tied=len(trace.operators), gaps=(GapPart(*gap) for gap in trace.gaps[:10])),
    )
