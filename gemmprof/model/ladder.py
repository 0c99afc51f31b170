"""What is computed: a problem, the stages that compute it, and the ladders that they stand on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from gemmprof.base.errors import UsageError
from gemmprof.base.expressions import Addresses
from gemmprof.gpu.dtypes import DTYPES, ELEMENT_TYPES, FLOAT32

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

        Types that the text names (``4096-bfloat16``) go before the arguments.

        Raises:
            UsageError: if the text is no shape, or M or N is 0.
        """
        match = _SHAPE.match(text)
        if match is None:
            raise UsageError(
                f"'{text[:60]}' is not a matrix shape",
                "write MxNxK, for example --shape 4096x4096x1024, or one number for a cube",
            )
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
