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


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of comparing a stage with a float64 reference on fresh random data.

    Attributes:
        tolerance: the largest error that passes.
        passed: the error is no larger, and nothing else was wrong.
        detail: what was wrong, '' if nothing.
    """

    relative_error: float
    """Frobenius norm of the difference over that of the reference; NaN if the output holds NaN."""
    tolerance: Annotated[float, Meta(ge=0, le=float_info.max)]
    passed: bool
    detail: str = ""
    card: Card | None = None
    """Where it was computed."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one stage in seconds, warm, L2 flushed before each repetition, interleaved with the yardstick.

    Attributes:
        median, minimum: of the repetitions.
        p10, p90: a tenth of the repetitions took less, and more.
        repetitions: how often it was timed.
        sm_clock_mhz: clock of the SMs meanwhile.
    """

    median: Seconds
    minimum: Seconds
    p10: Seconds
    p90: Seconds
    repetitions: Annotated[int, Meta(ge=0, le=10**9)]
    sm_clock_mhz: Annotated[float, Meta(ge=0, le=1e5)] | None = None
    yardstick_median: Seconds | None = None
    """Median time of the yardstick in the repetitions that alternated with this stage's, in seconds."""
    card: Card | None = None
    """Where stage and yardstick were timed, both."""

    @property
    def of_yardstick(self) -> float | None:
        """Speed as a share of the yardstick's in alternating repetitions; None where that was not timed."""
        return self.yardstick_median / self.median if self.yardstick_median else None

    def tflops(self, problem: Problem) -> float:
        """TFLOP/s at the median time."""
        return problem.flops / self.median / 1e12


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a run knows of one stage on one problem. A part that was not asked for or failed is None.

    Attributes:
        stage: its number in the ladder of the problem's type.
        problem: the matrix product.
        verification: whether it computes what it should.
        timing: how long it takes outside the profiler.
    """

    stage: int
    problem: Problem
    verification: Verification | None = None
    timing: Timing | None = None
    report: Annotated[str, Meta(pattern="[^/. ]")] | None = None
    """Report file in the run directory."""
    launch_index: Annotated[int, Meta(ge=0, le=10**7)] | None = None
    """Position of the stage's launch in that report."""
    failure: str | None = None
    """What went wrong, in one or more lines; None if nothing did."""

    @property
    def key(self) -> tuple[int, Problem]:
        """What no two results of a run share."""
        return self.stage, self.problem


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A report of a run as it was when the run was made.

    Attributes:
        sha256: of its uncompressed bytes, in hexadecimal digits.
        launches: how many it holds.
        card: what was profiled, None where that was not noted.
    """

    sha256: str
    launches: int
    card: Card | None = None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage as it was when the run was made: the catalog entry, and what the build made of it.

    Attributes:
        stage: the catalog entry.
        source_hash: of its source, headers and parameters.
        registers_per_thread, static_shared_memory, spill_bytes: as compiled; bytes a block, bytes a thread.
    """

    stage: Stage
    source_hash: str = ""
    registers_per_thread: Size | None = None
    static_shared_memory: Size | None = None
    spill_bytes: Size | None = None
    sass: str = ""
    """A digest of its machine code on the run's GPU; '' without cuobjdump."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run that hold for all its stages: ``run.json`` without stages and results.

    Attributes:
        created: when it began, ISO 8601.
        device: name of the GPU, as the driver gives it.
        compute_capability: major and minor.
        clock_control: what ncu did about the clocks, ``base`` or ``none``.
        seed: of the random operands.
        metric_set: what was profiled, a set of ncu's or ``lean``.
        command: as it was typed.
        notes: options, seconds of each part, and what else was noted.
    """

    created: str
    device: str
    compute_capability: tuple[Annotated[int, Meta(ge=0, le=99)], Annotated[int, Meta(ge=0, le=99)]]
    versions: Mapping[str, str]
    """Keys: gemmprof, driver, cuda, torch, ncu, python, nvcc where known."""
    clock_control: str
    seed: int
    metric_set: str
    command: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
