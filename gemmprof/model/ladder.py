"""What is computed (a problem, the stages that compute it, the ladders that they stand on), and what a run measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import float_info
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta

from gemmprof.base.errors import UsageError
from gemmprof.base.expressions import Addresses
from gemmprof.gpu.dtypes import DTYPES, ELEMENT_TYPES, FLOAT32
from gemmprof.model.gpu import Card

LARGEST = 1 << 24  # of a dimension or a parameter that is read from a file
Parameters = Mapping[str, Annotated[int, Meta(ge=0, le=LARGEST)]]  # tile parameters by letter (BM, BN, BK …)
_SHAPE = re.compile(
    r"^\s*([0-9]{1,9})\s*(?:[xX×*,]\s*([0-9]{1,9})\s*[xX×*,]\s*([0-9]{1,9})\s*)?"
    rf"(?:-({'|'.join(DTYPES)})(?:-({'|'.join(DTYPES)}))?\s*)?$"
)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One matrix product C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C, row-major."""

    m: Annotated[int, Meta(ge=1, le=LARGEST)]  # rows of C
    n: Annotated[int, Meta(ge=1, le=LARGEST)]  # columns of C
    k: Annotated[int, Meta(ge=0, le=LARGEST)]  # length of the sums
    dtype: str = FLOAT32.name  # name of the type of A and B (`gemmprof.gpu.dtypes`)
    c_dtype: str = ""  # of C; unless it is given, the operands' type, for 8-bit ones bfloat16

    def __post_init__(self) -> None:
        # So that a problem which names C's type equals one that leaves it open.
        object.__setattr__(self, "c_dtype", self.c_dtype or _usual_c_dtype(self.dtype))

    @classmethod
    def parse(cls, text: str, dtype: str = FLOAT32.name, c_dtype: str = "") -> Problem:
        """Read ``4096``, ``4096x4096x4096`` or ``4096,4096,1024`` (M, N, K), or any problem's `key`.

        Types that the text names (``4096-bfloat16``) go before the arguments. UsageError for no shape, or 0 as M or N.
        """
        match = _SHAPE.match(text)
        if match is None:
            fix = "write MxNxK, for example --shape 4096x4096x1024, or one number for a cube"
            raise UsageError(f"'{text[:60]}' is not a matrix shape", fix)
        m = int(match.group(1))
        n, k = (int(match.group(2)), int(match.group(3))) if match.group(2) else (m, m)
        if m < 1 or n < 1:
            raise UsageError(f"shape '{text}' has no output element", "M and N must be at least 1")
        return cls(m, n, k, match.group(4) or dtype, match.group(5) or ("" if match.group(4) else c_dtype))

    def is_shape_of(self, other: Problem) -> bool:
        """Whether both are products of the same size, of whatever types."""
        return (self.m, self.n, self.k) == (other.m, other.n, other.k)

    @property
    def flops(self) -> int:
        """Floating-point operations of the product, a multiply-add counted as two."""
        return 2 * self.m * self.n * self.k

    def tflops(self, seconds: float | None) -> float | None:
        """Speed in TFLOP/s of what takes so long; None where that is not known."""
        return self.flops / seconds / 1e12 if seconds else None

    @property
    def label(self) -> str:
        """Short name: ``4096³`` for a cube, else ``4096×4096×1024``; other types than float32 are named behind it."""
        return " ".join([self.shape_label, " → ".join(self._named_types)]).rstrip()

    @property
    def shape_label(self) -> str:
        """The label without types, for where they stand once for many shapes: ``4096³``, ``4096×4096×1024``."""
        return f"{self.m}³" if self.m == self.n == self.k else f"{self.m}×{self.n}×{self.k}"

    @property
    def types_label(self) -> str:
        """The operands' type, and C's where it is another one: ``float32``, ``bfloat16 → float32``."""
        return " → ".join(self._named_types) or self.dtype

    @property
    def key(self) -> str:
        """Name that is safe in file names and command lines: ``4096x4096x1024``, ``4096x4096x1024-bfloat16``.

        float32 goes without saying, and C's type where it is the usual one of the operands'.
        """
        return "-".join([f"{self.m}x{self.n}x{self.k}", *self._named_types])

    @property
    def _named_types(self) -> tuple[str, ...]:
        if self.c_dtype != _usual_c_dtype(self.dtype):
            return self.dtype, self.c_dtype
        return () if self.dtype == FLOAT32.name else (self.dtype,)


def _usual_c_dtype(dtype: str) -> str:
    return ELEMENT_TYPES[dtype].c_types[0] if dtype in ELEMENT_TYPES else dtype


@dataclass(frozen=True, slots=True)
class Stage:
    """One rung of a ladder."""

    number: Annotated[int, Meta(ge=0, le=10_000)]  # its place in the ladder
    name: str  # short identifier, also the operator's name (``torch.ops.gemmprof.<name>``)
    title: str  # the name in words
    idea: str  # the one thing that this stage changes, as one sentence
    # the ``.cu`` file under ``kernels/`` (``sgemm/naive.cu``), or None where the kernel is not ours
    source: str | None = None
    # the tile letters and other compile-time parameters (BM BN BK WM WN TM TN THREADS …)
    parameters: Parameters = field(default_factory=lambda: MappingProxyType({}))
    # other parameter sets that are built under ``<name>_<key>``, for comparison
    variants: Mapping[str, Parameters] = field(default_factory=lambda: MappingProxyType({}))
    remark: str = ""  # what came of the idea on an H100, where that needs a word; '' elsewhere
    compiler_flags: tuple[str, ...] = ()  # what nvcc gets beyond the flags that all stages share
    ladder: str = "single"  # name of the ladder that it belongs to
    dtypes: tuple[str, ...] = (FLOAT32.name,)  # operand types that it computes in
    yardstick: bool = False  # True for the stage that the others of its ladder are measured against
    # compute capabilities that it is written for, with the compiler's suffix where it needs the instructions
    # of one architecture alone (``9.0a``); () for every one that is built for
    architectures: tuple[str, ...] = ()
    # where its threads go, None where that is not declared: then its pages leave the sections out
    addresses: Addresses | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled form of a stage: a parameter set under the name of its operator (``torch.ops.gemmprof.<name>``)."""

    name: str  # of the stage, or of one of its variants
    stage: Stage  # what it is a form of
    source: str  # its ``.cu`` file, under kernels/
    parameters: Mapping[str, int]  # the catalog's


@dataclass(frozen=True, slots=True)
class Ladder:
    """Stages of one kind of arithmetic, each a step over the one before, and what they are measured against."""

    name: str  # short identifier, for ``--ladder``
    title: str  # the name in words
    dtypes: tuple[str, ...]  # operand types, the one that is taken where none is asked for first
    stages: tuple[Stage, ...]  # the rungs in order, the yardstick among them

    @property
    def yardstick(self) -> Stage:
        """The stage that the others are measured against; KeyError if none is marked as such."""
        for stage in self.stages:
            if stage.yardstick:
                return stage
        raise KeyError(f"ladder {self.name} has no yardstick")

    def stage(self, number: int) -> Stage:
        """The rung with this number; KeyError if there is none."""
        return {stage.number: stage for stage in self.stages}[number]


# --- What a run measured ----------------------------------------------------------------------------------------------

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
