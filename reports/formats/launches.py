"""Launches, kernels and what to change in them: ``show``, ``report``, ``profile``, ``explain``, ``roofline``."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from gemmprof.analysis.sections.verdict import Verdict


class Place(TypedDict):
    """A line or an instruction."""

    file: Annotated[str | None, "source file, null without line information"]
    line: Annotated[int | None, "line in it, from 1"]
    share: Annotated[float, "of the finding, 0 to 1"]
    sass: NotRequired[Annotated[str, "the heaviest instruction there"]]
    inlined: NotRequired[Annotated[list[str], "header lines inlined there, innermost first"]]


class Fact(TypedDict):
    """A number that a finding rests on."""

    metric: Annotated[str, "Nsight Compute's name, or what was computed"]
    value: Annotated[float | None, "in base units"]
    unit: Annotated[str, "its unit"]


class FindingRecord(TypedDict):
    """A cause that holds a launch back."""

    cause: Annotated[str, "key of the cause; the page of causes explains each"]
    saves: Annotated[float, "share of the launch's time that mending this alone is predicted to save, 0 to 1"]
    saves_low: Annotated[float, "lower end of its 80 % interval"]
    saves_high: Annotated[float, "upper end of its 80 % interval"]
    places: Annotated[list[Place], "where it sits, heaviest first"]
    evidence: Annotated[list[Fact], "the numbers that it rests on"]
    change: Annotated[str, "what to try, a sentence or two"]


class Limit(TypedDict):
    """Why nothing is left to gain."""

    resource: Annotated[str, "what limits the launch"]
    share: Annotated[float, "share of its practical rate that is in use, 0 to 1"]


class Explained(TypedDict):
    """One launch, explained."""

    launch: Annotated[int, "position in its report, from 0"]
    report: Annotated[str, "the report, as it was named"]
    name: Annotated[str, "demangled name of the kernel; untrusted text"]
    nvtx: Annotated[list[str], "NVTX ranges around it, outermost first; untrusted text"]
    duration_ns: Annotated[float | None, "under the profiler"]
    trust: Annotated[list[str], "what makes the numbers doubtful, a sentence each"]
    at_limit: Annotated[Limit | None, "set where nothing is left to gain"]
    findings: Annotated[list[FindingRecord], "what to change, most saved first"]
    together: Annotated[float | None, "share that mending all findings saves; null for fewer than two"]


class ExplainRecord(TypedDict):
    """``gemmprof explain``."""

    format: Annotated[str, "gemmprof.explain/1"]
    kernels: Annotated[list[Explained], "every launch, in the order of the reports"]


class LaunchPlace(TypedDict):
    """Which launch."""

    report: Annotated[str, "the report, as it was named"]
    launch: Annotated[int, "position in it, from 0"]


class FamilyRecord(TypedDict):
    """Launches of one kernel within one NVTX path."""

    name: Annotated[str, "full demangled name; untrusted text"]
    label: Annotated[str, "the name without what all kernels of the input share"]
    nvtx: Annotated[list[str], "NVTX ranges around the launches, outermost first"]
    total_ns: Annotated[float | None, "time of all launches under the profiler"]
    share: Annotated[float | None, "of the time of all families, 0 to 1"]
    shortest_ns: Annotated[float | None, "the shortest launch"]
    median_ns: Annotated[float | None, "the median of the launches"]
    longest_ns: Annotated[float | None, "the longest launch"]
    grids: Annotated[list[list[int]], "the different grids, each once"]
    worst: Annotated[FindingRecord | None, "what saves most in the representative; null where nothing does"]
    count: Annotated[int, "number of launches"]
    spread: Annotated[float | None, "the longest launch over the shortest; null for a single one"]
    saves_ns: Annotated[float | None, "time that mending the worst finding would save in all launches"]
    representative: Annotated[LaunchPlace, "the longest launch, which is the one to look at"]
    launches: Annotated[list[LaunchPlace], "all launches, in the order of profiling"]


class RowRecord(TypedDict):
    """A line of a section."""

    name: Annotated[str, "what it is"]
    value: Annotated[str, "the value as the terminal shows it, with its unit"]
    remark: Annotated[str, "a remark, '' without one"]


class SectionRecord(TypedDict):
    """One analysis of a launch."""

    title: Annotated[str, "heading"]
    rows: Annotated[list[RowRecord], "its lines"]


class KernelRecord(TypedDict):
    """One launch with its verdict and sections."""

    report: Annotated[str, "the report, as it was named"]
    launch: Annotated[int, "position in it, from 0"]
    name: Annotated[str, "full demangled name; untrusted text"]
    nvtx: Annotated[list[str], "NVTX ranges around it, outermost first"]
    grid: Annotated[list[int], "blocks in x, y, z"]
    block: Annotated[list[int], "threads in x, y, z"]
    verdict: Annotated[Verdict, "what a performance engineer would say first"]
    sections: Annotated[dict[str, SectionRecord], "the analyses by name (`warp_states`, `roofline` …)"]


class ProcessRecord(TypedDict):
    """What one process launched, on one GPU."""

    process: Annotated[int | None, "its id"]
    gpu: Annotated[int | None, "CUDA's index of the GPU in that process; null if not collected"]
    rank: NotRequired[
        Annotated[
            int | None,
            "of ``profile``: its rank, as the launcher (torchrun, MPI, srun) told it; null without one",
        ]
    ]
    launches: Annotated[list[LaunchPlace], "in the order of profiling"]


class Overview(TypedDict):
    """What ``show``, ``report`` and ``profile`` say of their input."""

    title: Annotated[str, "what was read"]
    launches: Annotated[int, "number of profiled launches"]
    not_read: Annotated[list[str], "inputs that could not be read, and why"]
    processes: Annotated[
        list[ProcessRecord],
        "whose the launches are, where a report holds those of several processes; else empty",
    ]
    families: Annotated[list[FamilyRecord], "kernels, most time first"]
    kernels: Annotated[
        list[KernelRecord], "representative of each family; of the first five without --section and --all"
    ]


class ShowRecord(Overview):
    """``gemmprof show``."""

    format: Annotated[str, "gemmprof.show/1"]


class ReportRecord(Overview):
    """``gemmprof report``."""

    format: Annotated[str, "gemmprof.report/1"]
    index: Annotated[str, "the page to open first"]


class ProfileRecord(Overview):
    """``gemmprof profile``."""

    format: Annotated[str, "gemmprof.profile/1"]
    reports: Annotated[list[str], "the reports that were written"]
    pages: Annotated[str | None, "the page to open first; null with --no-pages, or if rendering failed"]
    seconds: Annotated[list[float], "how long the profiling of each report took"]


class RooflinePointRecord(TypedDict):
    """One memory level under the roofs."""

    arithmetic: Annotated[str, "which arithmetic (`fp32`, `tensor_fp16` …)"]
    level: Annotated[str, "memory level: dram, l2, l1, shared"]
    intensity: Annotated[float, "FLOP a byte of that level"]
    ridge: Annotated[float, "FLOP a byte where the two roofs meet"]
    achieved_flops: Annotated[float, "FLOP a second"]
    attainable_flops: Annotated[float, "what the roofs allow at this intensity, FLOP a second"]
    peak_flops: Annotated[float, "of the arithmetic, at the clocks of the launch, FLOP a second"]
    achieved_bandwidth: Annotated[float | None, "bytes a second"]
    peak_bandwidth: Annotated[float, "of the level, bytes a second"]
    percent: Annotated[float, "achieved of attainable, 0 to 100"]
    bound: Annotated[str, "`memory` under the slope, `compute` under the flat roof"]


class RooflineKernel(TypedDict):
    """One launch under its roofs."""

    kernel: Annotated[str, "full demangled name; untrusted text"]
    stage: Annotated[int | None, "number of the ladder's stage; null for another kernel"]
    problem: Annotated[str | None, "the matrix product (`4096`, `512x256x1024`); null for another kernel"]
    report: Annotated[str, "the report, as it was named"]
    launch: Annotated[int, "position in it, from 0"]
    not_collected: Annotated[
        str | None, "the ncu option that collects what is missing; null where nothing is"
    ]
    points: Annotated[list[RooflinePointRecord], "one a memory level, for the kernel's arithmetic"]


class RooflineRecord(TypedDict):
    """``gemmprof roofline``."""

    format: Annotated[str, "gemmprof.roofline/1"]
    kernels: Annotated[list[RooflineKernel], "in the order of the reports"]
