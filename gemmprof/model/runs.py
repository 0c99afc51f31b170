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
Position = Annotated[int, Meta(ge=0, le=10**7)]
FileName = Annotated[str, Meta(pattern="[^/. ]")]


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of comparing a stage with a float64 reference on fresh random data."""

    relative_error: Annotated[float, "Frobenius norm of the difference over the reference's; may be NaN"]
    tolerance: Annotated[float, Meta(ge=0, le=float_info.max), "the largest error that passes"]
    passed: Annotated[bool, "the error is no larger, and nothing else was wrong"]
    detail: Annotated[str, "what was wrong, '' if nothing"] = ""
    card: Annotated[Card | None, "where it was computed"] = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one stage in seconds, warm, L2 flushed before each repetition, interleaved with the yardstick."""

    median: Annotated[Seconds, "of the repetitions"]
    minimum: Annotated[Seconds, "of the repetitions"]
    p10: Annotated[Seconds, "a tenth of the repetitions took less"]
    p90: Annotated[Seconds, "a tenth of the repetitions took more"]
    repetitions: Annotated[int, Meta(ge=0, le=10**9), "how often it was timed"]
    sm_clock_mhz: Annotated[Annotated[float, Meta(ge=0, le=1e5)] | None, "clock of the SMs meanwhile"] = None
    yardstick_median: Annotated[
        Seconds | None,
        "median time of the yardstick in the repetitions that alternated with this stage's, in seconds",
    ] = None
    card: Annotated[Card | None, "where stage and yardstick were timed, both"] = None

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

    stage: Annotated[int, "its number in the ladder of the problem's type"]
    problem: Annotated[Problem, "the matrix product"]
    verification: Annotated[Verification | None, "whether it computes what it should"] = None
    timing: Annotated[Timing | None, "how long it takes outside the profiler"] = None
    report: Annotated[FileName | None, "report file in the run directory"] = None
    launch_index: Annotated[Position | None, "position of the stage's launch in that report"] = None
    failure: Annotated[str | None, "what went wrong, in one or more lines; None if nothing did"] = None

    @property
    def key(self) -> tuple[int, Problem]:
        """What no two results of a run share."""
        return self.stage, self.problem


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A report of a run as it was when the run was made."""

    sha256: Annotated[str, "of its uncompressed bytes, in hexadecimal digits"]
    launches: Annotated[int, "how many it holds"]
    card: Annotated[Card | None, "what was profiled, None where that was not noted"] = None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage as it was when the run was made: the catalog entry, and what the build made of it."""

    stage: Annotated[Stage, "the catalog entry"]
    source_hash: Annotated[str, "of its source, headers and parameters"] = ""
    registers_per_thread: Annotated[Size | None, "as compiled"] = None
    static_shared_memory: Annotated[Size | None, "bytes a block, as compiled"] = None
    spill_bytes: Annotated[Size | None, "bytes a thread, as compiled"] = None
    sass: Annotated[str, "a digest of its machine code on the run's GPU; '' without cuobjdump"] = ""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run that hold for all its stages: ``run.json`` without stages and results."""

    created: Annotated[str, "when it began, ISO 8601"]
    device: Annotated[str, "name of the GPU, as the driver gives it"]
    compute_capability: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=99)], Annotated[int, Meta(ge=0, le=99)]], "major and minor"
    ]
    versions: Annotated[Mapping[str, str], "of gemmprof, driver, cuda, torch, ncu, python, nvcc where known"]
    clock_control: Annotated[str, "what ncu did about the clocks, ``base`` or ``none``"]
    seed: Annotated[int, "of the random operands"]
    metric_set: Annotated[str, "what was profiled, a set of ncu's or ``lean``"]
    command: Annotated[str, "as it was typed"] = ""
    notes: Annotated[Mapping[str, Any], "options, seconds of each part, and what else was noted"] = field(
        default_factory=dict
    )
