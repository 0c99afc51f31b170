"""Many runs as JSON: ``history``, ``baseline``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gemmprof.analysis.history.changes import Change, Origin, Point, Step
from gemmprof.base.documents import Document, From, Part, PartOf

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.baseline import Baseline
    from gemmprof.analysis.comparison.records import KernelRecord


class SeriesKey(PartOf[Point | Origin | Change | Step], frozen=True):
    """Which series."""

    kernel: str
    grid: str
    device: str
    kind: str


class Predictions(Part, frozen=True):
    """What came of the last predictions whose findings are gone."""

    scored: int  # how many, 40 at most
    inside: int  # those whose measured saving lay in the predicted interval


class HistoryRecordDocument(Document, frozen=True, tag="gemmprof.history/1"):
    """``gemmprof history record``."""

    file: Path  # the record that was written
    points: int  # kernels and grids in it
    predictions: Predictions  # what came of earlier ones


class ListedSeries(SeriesKey, frozen=True):
    """One series of a history."""

    runs: Annotated[int, From("count")]  # how many runs it has
    first: str  # when the first was recorded, ISO 8601
    last: str  # when the last was recorded, ISO 8601
    last_ns: float  # its time


class HistoryListDocument(Document, frozen=True, tag="gemmprof.history/1"):
    """``gemmprof history list``."""

    series: tuple[ListedSeries, ...]  # longest last time first


class HistoryPoint(PartOf[Point | Origin], frozen=True):
    """One run of a series."""

    recorded_at: Annotated[str, From("origin.recorded_at")]  # when, ISO 8601
    commit: Annotated[str, From("origin.commit")]  # what was measured, '' if not said
    time_ns: float
    low_ns: float
    high_ns: float
    repetitions: int  # how many


class HistoryStep(PartOf[Point | Change | Step], frozen=True):
    """A change of level that later runs confirmed."""

    since: Annotated[str, From("after.origin.recorded_at")]  # when the first run behind it was, ISO 8601
    commit: Annotated[str, From("after.origin.commit")]  # of that run
    ratio: Annotated[float, From("step.ratio")]
    noise: Annotated[float, From("step.noise")]
    causes: tuple[str, ...]
    details: tuple[str, ...]


class ShownSeries(SeriesKey, frozen=True):
    """One series with its runs."""

    points: tuple[HistoryPoint, ...]  # oldest first
    steps: tuple[HistoryStep, ...]  # oldest first


class HistoryShowDocument(Document, frozen=True, tag="gemmprof.history/1"):
    """``gemmprof history show``."""

    series: tuple[ShownSeries, ...]  # the kernels that match


def shown(found: Sequence[tuple[Sequence[Point], Sequence[Change]]]) -> HistoryShowDocument:
    """Series with their points and steps."""
    series = (ShownSeries.of(points[0], points=points, steps=steps) for points, steps in found)
    return HistoryShowDocument(tuple(series))


class FoundStep(HistoryStep, frozen=True):
    """A step and where it is."""

    kernel: Annotated[str, From("after.kernel")]
    grid: Annotated[str, From("after.grid")]
    device: Annotated[str, From("after.device")]
    kind: Annotated[str, From("after.kind")]


class HistoryCheckDocument(Document, frozen=True, tag="gemmprof.history/1"):
    """``gemmprof history check``."""

    kernels: int  # series that were looked at
    too_short: int  # those with too few runs for a step to be found in them
    steps: tuple[FoundStep, ...]  # largest slow-down first
    predictions: Predictions  # what came of earlier ones


class BaselineKernel(Part, frozen=True):
    """One kernel of a baseline."""

    name: str  # full demangled name; untrusted text
    grid: Annotated[str, From("grid_text")]  # `64x32x1`
    launches: int  # how many were measured
    seconds: float | None  # median time
    device: Annotated[str, From("origin.device")]  # name of the GPU
    code: str  # fingerprint of its instructions, '' where the report does not hold them


class KeptBaseline(Part, frozen=True):
    """One baseline."""

    name: str  # by which `diff --against` takes it
    saved: str  # when, ISO 8601
    title: str  # what it was made from
    processes: int  # processes that were measured
    kernels: tuple[BaselineKernel, ...]  # its kernels


class BaselineDocument(Document, frozen=True, tag="gemmprof.baseline/1"):
    """``gemmprof baseline list`` and ``gemmprof baseline show``."""

    baselines: tuple[KeptBaseline, ...]  # all of the folder, or the one that was named


def baselines(found: Sequence[tuple[str, Baseline]]) -> BaselineDocument:
    """Baselines by name."""
    parts = (KeptBaseline.of(kept, name=name, kernels=map(_kept, kept.kernels)) for name, kept in found)
    return BaselineDocument(tuple(parts))


def _kept(kernel: KernelRecord) -> BaselineKernel:
    return BaselineKernel.of(kernel, code="" if kernel.code is None else kernel.code.digest)
