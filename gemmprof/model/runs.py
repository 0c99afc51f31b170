"""What a run knows: of each stage on each problem, of its reports, of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import float_info
from typing import Annotated, Any

from msgspec import Meta

from gemmprof.model.gpu import Card
from gemmprof.model.ladder import Problem, Stage

Seconds = Annotated[float, Meta(ge=1e-9, le=1e6)]
# No run that gemmprof wrote comes near these ends; they hold for what is read from files.
Size = Annotated[int, Meta(ge=0, le=1 << 24)]
Version = Annotated[int, Meta(ge=0, le=99)]
Position = Annotated[int, Meta(ge=0, le=10**7)]
FileName = Annotated[str, Meta(pattern="[^/. ]")]


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of comparing a stage with a float64 reference on fresh random data."""

    relative_error: float  # Frobenius norm of the difference over the reference's; may be NaN
    tolerance: Annotated[float, Meta(ge=0, le=float_info.max)]  # the largest error that passes
    passed: bool  # the error is no larger, and nothing else was wrong
    detail: str = ""  # what was wrong, '' if nothing
    card: Card | None = None  # where it was computed


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one stage in seconds, warm, L2 flushed before each repetition, interleaved with the yardstick."""

    median: Seconds  # of the repetitions
    minimum: Seconds  # of the repetitions
    p10: Seconds  # a tenth of the repetitions took less
    p90: Seconds  # a tenth of the repetitions took more
    repetitions: Annotated[int, Meta(ge=0, le=10**9)]  # how often it was timed
    sm_clock_mhz: Annotated[float, Meta(ge=0, le=1e5)] | None = None  # clock of the SMs meanwhile
    # median time of the yardstick in the repetitions that alternated with this stage's, in seconds
    yardstick_median: Seconds | None = None
    card: Card | None = None  # where stage and yardstick were timed, both

    @property
    def of_yardstick(self) -> float | None:
        """Speed as a share of the yardstick's in alternating repetitions; None where that was not timed."""
        return self.yardstick_median / self.median if self.yardstick_median else None

    def tflops(self, problem: Problem) -> float:
        """TFLOP/s at the median time."""
        return problem.flops / self.median / 1e12


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a run knows of one stage on one problem. A part that was not asked for or failed is None."""

    stage: int  # its number in the ladder of the problem's type
    problem: Problem  # the matrix product
    verification: Verification | None = None  # whether it computes what it should
    timing: Timing | None = None  # how long it takes outside the profiler
    report: FileName | None = None  # report file in the run directory
    launch_index: Position | None = None  # position of the stage's launch in that report
    failure: str | None = None  # what went wrong, in one or more lines; None if nothing did

    @property
    def key(self) -> tuple[int, Problem]:
        """What no two results of a run share."""
        return self.stage, self.problem


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A report of a run as it was when the run was made."""

    sha256: str  # of its uncompressed bytes, in hexadecimal digits
    launches: int  # how many it holds
    card: Card | None = None  # what was profiled, None where that was not noted


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage as it was when the run was made: the catalog entry, and what the build made of it."""

    stage: Stage  # the catalog entry
    source_hash: str = ""  # of its source, headers and parameters
    registers_per_thread: Size | None = None  # as compiled
    static_shared_memory: Size | None = None  # bytes a block, as compiled
    spill_bytes: Size | None = None  # bytes a thread, as compiled
    sass: str = ""  # a digest of its machine code on the run's GPU; '' without cuobjdump


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run that hold for all its stages: ``run.json`` without stages and results."""

    created: str  # when it began, ISO 8601
    device: str  # name of the GPU, as the driver gives it
    compute_capability: tuple[Version, Version]  # major and minor
    versions: Mapping[str, str]  # of gemmprof, driver, cuda, torch, ncu, python, nvcc where known
    clock_control: str  # what ncu did about the clocks, ``base`` or ``none``
    seed: int  # of the random operands
    metric_set: str  # what was profiled, a set of ncu's or ``lean``
    command: str = ""  # as it was typed
    # options, seconds of each part, and what else was noted
    notes: Mapping[str, Any] = field(default_factory=dict)
