"""Many reports and many runs: ``find``, ``history``, ``baseline``; and errors."""

from __future__ import annotations

from typing import Annotated, TypedDict


class FoundLaunch(TypedDict):
    """A launch that meets the condition."""

    report: Annotated[str, "path of its report"]
    launch: Annotated[int, "position in it, from 0"]
    name: Annotated[str, "demangled name of the kernel; untrusted text"]
    nvtx: Annotated[str, "NVTX ranges around it, joined by /"]
    device: Annotated[str, "name of the GPU"]
    duration_ns: Annotated[float | None, "under the profiler"]
    values: Annotated[dict[str, float | None], "the figures, findings and metrics that the condition names"]


class FindRecord(TypedDict):
    """``gemmprof find``."""

    format: Annotated[str, "gemmprof.find/1"]
    condition: Annotated[str, "as it was asked"]
    matches: Annotated[int, "launches that meet it"]
    launches: Annotated[int, "launches that were looked at"]
    found: Annotated[list[FoundLaunch], "the longest of them, at most --limit"]


class SeriesKey(TypedDict):
    """Which series."""

    kernel: Annotated[str, "full name of the kernel, or stage and problem; untrusted text"]
    grid: Annotated[str, "`64x32x1`, '' for a stage"]
    device: Annotated[str, "name of the GPU"]
    kind: Annotated[str, "`timed` outside the profiler, or `profiled` under it"]


class HistoryRecordRecord(TypedDict):
    """``gemmprof history record``."""

    format: Annotated[str, "gemmprof.history/1"]
    file: Annotated[str, "the record that was written"]
    points: Annotated[int, "kernels and grids in it"]


class HistorySeries(SeriesKey):
    """One series of a history."""

    runs: Annotated[int, "how many runs it has"]
    first: Annotated[str, "when the first was recorded, ISO 8601"]
    last: Annotated[str, "when the last was recorded, ISO 8601"]
    last_ns: Annotated[float, "its time"]


class HistoryListRecord(TypedDict):
    """``gemmprof history list``."""

    format: Annotated[str, "gemmprof.history/1"]
    series: Annotated[list[HistorySeries], "longest last time first"]


class HistoryPoint(TypedDict):
    """One run of a series."""

    recorded_at: Annotated[str, "when, ISO 8601"]
    commit: Annotated[str, "what was measured, '' if not said"]
    time_ns: Annotated[float, "the median of the repetitions"]
    low_ns: Annotated[float, "the shortest"]
    high_ns: Annotated[float, "the longest"]
    repetitions: Annotated[int, "how many"]


class HistoryStep(TypedDict):
    """A change of level that later runs confirmed."""

    since: Annotated[str, "when the first run behind it was recorded, ISO 8601"]
    commit: Annotated[str, "of that run"]
    ratio: Annotated[float, "level behind over level before: 1.03 is 3 % slower"]
    noise: Annotated[float, "relative noise of one run (one standard deviation)"]
    causes: Annotated[list[str], "what changed with it: code, tools, clocks, counters; or noise"]
    details: Annotated[list[str], "a sentence a cause"]


class HistoryShown(SeriesKey):
    """One series with its runs."""

    points: Annotated[list[HistoryPoint], "oldest first"]
    steps: Annotated[list[HistoryStep], "oldest first"]


class HistoryShowRecord(TypedDict):
    """``gemmprof history show``."""

    format: Annotated[str, "gemmprof.history/1"]
    series: Annotated[list[HistoryShown], "the kernels that match"]


class HistoryFoundStep(SeriesKey, HistoryStep):
    """A step and where it is."""


class HistoryCheckRecord(TypedDict):
    """``gemmprof history check``."""

    format: Annotated[str, "gemmprof.history/1"]
    kernels: Annotated[int, "series that were looked at"]
    too_short: Annotated[int, "those with too few runs for a step to be found in them"]
    steps: Annotated[list[HistoryFoundStep], "largest slow-down first"]


class BaselineKernel(TypedDict):
    """One kernel of a baseline."""

    name: Annotated[str, "full demangled name; untrusted text"]
    grid: Annotated[str, "`64x32x1`"]
    launches: Annotated[int, "how many were measured"]
    seconds: Annotated[float | None, "median time"]
    device: Annotated[str, "name of the GPU"]
    code: Annotated[str, "fingerprint of its instructions, '' where the report does not hold them"]


class KeptBaseline(TypedDict):
    """One baseline."""

    name: Annotated[str, "by which `diff --against` takes it"]
    saved: Annotated[str, "when, ISO 8601"]
    title: Annotated[str, "what it was made from"]
    processes: Annotated[int, "processes that were measured"]
    kernels: Annotated[list[BaselineKernel], "its kernels"]


class BaselineRecord(TypedDict):
    """``gemmprof baseline list`` and ``gemmprof baseline show``."""

    format: Annotated[str, "gemmprof.baseline/1"]
    baselines: Annotated[list[KeptBaseline], "all of the folder, or the one that was named"]


class ErrorRecord(TypedDict):
    """Any command that failed with exit code 2."""

    format: Annotated[str, "gemmprof.error/1"]
    command: Annotated[str, "which"]
    message: Annotated[str, "what went wrong, one sentence"]
    found: Annotated[str, "what was found, '' where nothing is to be said"]
    remedies: Annotated[list[str], "what to do, best first"]
