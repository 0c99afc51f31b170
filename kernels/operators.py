"""Runs the stages: loads the extension into torch, gives its operators shape functions, calls one by stage."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import BuildError, UsageError
from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32, name_of
from gemmprof.kernels import catalog
from gemmprof.kernels.catalog import stage_variants
from gemmprof.kernels.compiler import is_whole
from gemmprof.model import Stage

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gemmprof.kernels.build import BuildResult


class _KernelReport(ctypes.Structure):
    """``gemmprof::KernelReport`` in include/gemm.h."""

    _fields_ = (
        ("label", ctypes.c_char_p),
        ("threads_per_block", ctypes.c_int),
        ("registers_per_thread", ctypes.c_int),
        ("static_shared_memory", ctypes.c_int64),
        ("dynamic_shared_memory", ctypes.c_int64),
        ("local_memory", ctypes.c_int64),
        ("blocks_per_sm", ctypes.c_int),
    )


@dataclass(frozen=True, slots=True)
class KernelOccupancy:
    """What the CUDA runtime says of one kernel of a stage on the current device. Memory in bytes."""

    label: str  # which inputs the kernel serves, for example ``whole tiles``
    threads_per_block: int
    registers_per_thread: int
    static_shared_memory: int
    dynamic_shared_memory: int
    local_memory: int
    blocks_per_sm: int  # resident blocks an SM, by ``cudaOccupancyMaxActiveBlocksPerMultiprocessor``


@dataclass(frozen=True, slots=True)
class Extension:
    """The loaded extension: ``torch.ops.gemmprof.*`` exist."""

    library: Path
    names: tuple[str, ...]  # the operators, without their ``_out`` forms

    def occupancy(self, name: str) -> tuple[KernelOccupancy, ...]:
        """What the CUDA runtime says of a stage's (or variant's) kernels; BuildError if it refuses, or has none."""
        if name not in self.names:
            raise BuildError(f"the extension has no stage {name}")
        return query_kernels(ctypes.CDLL(str(self.library)), name)


def query_kernels(library: ctypes.CDLL, name: str) -> tuple[KernelOccupancy, ...]:
    """What ``gemmprof_kernels_<name>`` of a loaded library reports; BuildError with the CUDA runtime's message."""
    query = library[f"gemmprof_kernels_{name}"]
    reports = (_KernelReport * max(query(None, 0), 0))()  # filled as far as they go; how many there are
    count = query(reports, len(reports))
    if count < 0:
        found = error_string(library, -count)
        raise BuildError(f"the CUDA runtime knows no kernel of stage {name}", found=found)
    return tuple(
        KernelOccupancy(
            report.label.decode(), *(getattr(report, name) for name, _ in _KernelReport._fields_[1:])
        )
        for report in reports[:count]
    )


def error_string(library: ctypes.CDLL, error: int) -> str:
    """The CUDA runtime's words for an error that a function of a library returned."""
    message = library.gemmprof_error_string
    message.restype = ctypes.c_char_p
    return str(message(error).decode())


_loaded: Extension | None = None

# Names a library to helper programs on machines that did not build it: what a cluster's workers are given.
EXTENSION_VARIABLE = "GEMMPROF_EXTENSION"


def load(built: BuildResult | None = None) -> Extension:
    """Load the extension, as built or as ``build()`` makes it, with shape functions for fake tensors; once a process.

    Raises:
        BuildError: if it cannot be loaded, or another build of it already is.
    """
    global _loaded
    import torch

    if built is None:
        if _loaded is not None:
            return _loaded
        if named := os.environ.get(EXTENSION_VARIABLE):
            _load_library(Path(named))
            _loaded = Extension(Path(named), ())
            return _loaded
        from gemmprof.kernels.build import build

        built = build()
    if _loaded is not None:
        if _loaded.library != built.library:
            other = "another build of the extension is already loaded in this process"
            raise BuildError(other, "start a new process", found=str(_loaded.library))
        return _loaded
    _load_library(built.library)
    for name in built.stages:
        torch.library.register_fake(f"gemmprof::{name}", _fake_gemm)
        torch.library.register_fake(f"gemmprof::{name}_out", _fake_gemm_out)
    _loaded = Extension(built.library, tuple(built.stages))
    return _loaded


def _load_library(library: Path) -> None:
    import torch

    try:
        torch.ops.load_library(str(library))
    except (OSError, RuntimeError) as error:
        again = "build it again (force=True), with the torch that loads it"
        raise BuildError(f"{library} cannot be loaded", again, found=str(error)) from error


def _check_fake(a: Tensor, b: Tensor, c: Tensor | None) -> None:
    """The checks of shape that include/binding.cpp makes of real tensors."""
    import torch

    torch._check(a.dim() == 2 and b.dim() == 2, lambda: "A and B must be matrices")
    torch._check(a.size(1) == b.size(0), lambda: "the columns of A must equal the rows of B")
    if c is not None:
        torch._check(c.dim() == 2, lambda: "C must be a matrix")
        torch._check(c.size(0) == a.size(0), lambda: "C must have as many rows as A")
        torch._check(c.size(1) == b.size(1), lambda: "C must have as many columns as B")


def _fake_gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, alpha: float = 1.0, beta: float = 0.0
) -> Tensor:
    import torch

    _check_fake(a, b, c)
    usual = getattr(torch, ELEMENT_TYPES[name_of(a.dtype)].c_types[0])
    return a.new_empty((a.size(0), b.size(1)), dtype=usual if c is None else c.dtype)


def _fake_gemm_out(a: Tensor, b: Tensor, out: Tensor, alpha: float = 1.0, beta: float = 0.0) -> None:
    _check_fake(a, b, out)


def run_stage(
    stage: Stage | int | str, a: Tensor, b: Tensor, out: Tensor, alpha: float = 1.0, beta: float = 0.0
) -> None:
    """Compute ``out = alpha * a @ b + beta * out`` with one stage, on the current stream.

    Args:
        stage: a stage, its number (in the ladder of a's type), or an operator's name (which may be a variant's,
            ``shared_tile16``).
        a: [M, K] of one of the stage's types, row-major (of 16 and 8 bits: or the transpose of such a matrix).
        b: [K, N] of the same type, likewise; of 8 bits, transposed is the fast way.
        out: [M, N] of one of that type's C types (`gemmprof.gpu.dtypes`), row-major; it is not read where beta is 0.
        alpha: with 8-bit operands, the product of their scales times what is asked for.

    Raises:
        UsageError: no such stage.
        TypeError, ValueError: operands that the stage does not take, said before any launch.
        RuntimeError: the launch failed.
    """
    name = operator_name(stage, name_of(a.dtype))
    if name in LIBRARY_CALLS:
        LIBRARY_CALLS[name](a, b, out, alpha, beta)
        return
    load()
    import torch

    getattr(torch.ops.gemmprof, f"{name}_out")(a, b, out, alpha, beta)


def operator_name(stage: Stage | int | str, dtype: str = FLOAT32.name) -> str:
    """The operator's name of a stage: itself, a name, or its number in the ladder of ``dtype``; UsageError if none."""
    if isinstance(stage, Stage):
        return stage.name
    for ladder in catalog.LADDERS:
        for entry in ladder.stages:
            names = {entry.name, *(variant.name for variant in stage_variants(entry))}
            if stage in names:
                return str(stage)
            if stage == entry.number and dtype in entry.dtypes:
                return entry.name
    raise UsageError(f"the ladder has no stage {stage!r}", "`gemmprof stages` lists them")


def _torch_mm(a: Tensor, b: Tensor, out: Tensor, alpha: float, beta: float) -> None:
    """cuBLAS through torch, float32 in full, 8-bit operands by torch._scaled_mm."""
    import torch

    if a.dtype == torch.float8_e4m3fn:
        _library_scaled_mm(a, b, out, alpha, beta)
        return
    if torch.backends.cuda.matmul.allow_tf32:
        torch.backends.cuda.matmul.allow_tf32 = False
    if out.dtype != a.dtype:
        # Only these overloads let cuBLAS write another type than it reads.
        if alpha == 1.0 and beta == 0.0:
            torch.mm(a, b, out.dtype, out=out)
        else:
            torch.addmm(out, a, b, out.dtype, alpha=alpha, beta=beta, out=out)
    elif alpha == 1.0 and beta == 0.0:
        torch.mm(a, b, out=out)
    else:
        torch.addmm(out, a, b, alpha=alpha, beta=beta, out=out)


ALIGNMENT = 16  # what torch._scaled_mm asks of the operands' sizes, in elements


def _library_scaled_mm(a: Tensor, b: Tensor, out: Tensor, alpha: float, beta: float) -> None:
    """out = alpha * a @ b + beta * out by torch._scaled_mm with sums in float32; copies only what it does not take."""
    import torch

    (m, k), n = a.shape, b.shape[1]
    if k == 0:
        out.mul_(beta) if beta else out.zero_()
        return
    scales = {"scale_a": _scale(alpha, a.device), "scale_b": _scale(1.0, a.device)}
    if k % ALIGNMENT or n % ALIGNMENT or a.stride(1) != 1 or b.stride(0) != 1:
        a, b = _padded(a), _padded(b.t()).t()
    elif beta == 0.0 and out.is_contiguous():
        torch._scaled_mm(a, b, **scales, out_dtype=out.dtype, use_fast_accum=False, out=out)
        return
    product = torch._scaled_mm(a, b, **scales, out_dtype=torch.float32, use_fast_accum=False)[:m, :n]
    out.copy_(product + beta * out.float() if beta else product)


def _padded(matrix: Tensor) -> Tensor:
    """A row-major copy whose sizes are multiples of `ALIGNMENT`, filled with zeros."""
    rows, columns = (-(-size // ALIGNMENT) * ALIGNMENT for size in matrix.shape)
    copy = matrix.new_zeros((rows, columns))
    copy[: matrix.shape[0], : matrix.shape[1]] = matrix
    return copy


@lru_cache(maxsize=16)
def _scale(value: float, device: torch.device) -> Tensor:
    """The number on the device: made once, so that no copy is timed."""
    import torch

    return torch.tensor(value, device=device)


# How the stages without a source of ours are run, by name.
LIBRARY_CALLS: dict[str, Callable[[Tensor, Tensor, Tensor, float, float], None]] = {"cublas": _torch_mm}


# --- Candidates of a search, libraries of their own (`compiler.compile_candidate`), called without torch's operators --


class _Gemm(ctypes.Structure):
    """``gemmprof::Gemm`` in include/gemm.h."""

    _fields_ = (
        *(("m", ctypes.c_int), ("n", ctypes.c_int), ("k", ctypes.c_int)),
        *(
            ("alpha", ctypes.c_float),
            ("beta", ctypes.c_float),
            ("dtype", ctypes.c_int),
            ("c_dtype", ctypes.c_int),
        ),
        *(("a", ctypes.c_void_p), ("lda", ctypes.c_int64), ("b", ctypes.c_void_p), ("ldb", ctypes.c_int64)),
        *(("c", ctypes.c_void_p), ("ldc", ctypes.c_int64)),
        *(("a_transposed", ctypes.c_int), ("b_transposed", ctypes.c_int)),
    )


@dataclass(frozen=True, slots=True)
class LoadedCandidate:
    """A candidate's library in this process."""

    name: str
    library: ctypes.CDLL

    @classmethod
    def load(cls, name: str, library: Path) -> LoadedCandidate:
        """Open a variant's library; BuildError if it is not whole: a cut one ends the process that opens it."""
        if not is_whole(library.parent):
            raise BuildError(f"{library} is damaged", "search again: it is compiled anew")
        try:
            return cls(name, ctypes.CDLL(str(library)))
        except OSError as error:
            raise BuildError(f"{library} cannot be loaded", found=str(error)) from error

    def occupancy(self) -> tuple[KernelOccupancy, ...]:
        """What the CUDA runtime says of its kernels."""
        return query_kernels(self.library, self.name)

    def kernel(self) -> Callable[[Tensor, Tensor, Tensor, float, float], None]:
        """A function ``kernel(a, b, out, alpha, beta)`` that launches on torch's current stream.

        It checks nothing: the operands must be contiguous CUDA matrices of the stage's types that fit each other (B may
        be the transpose of one). It raises RuntimeError with the runtime's message if the launch fails.
        """
        import torch

        launch: Any = self.library[f"gemmprof_launch_{self.name}"]
        launch.argtypes = (ctypes.POINTER(_Gemm), ctypes.c_void_p)

        def kernel(a: Tensor, b: Tensor, out: Tensor, alpha: float, beta: float) -> None:
            gemm = described(a, b, out, alpha, beta)
            error = launch(ctypes.byref(gemm), torch.cuda.current_stream().cuda_stream)
            if error != 0:
                raise RuntimeError(f"{self.name}: the launch failed: {error_string(self.library, error)}")

        return kernel


def described(a: Tensor, b: Tensor, out: Tensor, alpha: float = 1.0, beta: float = 0.0) -> ctypes.Structure:
    """``gemmprof::Gemm`` of matrices whose rows or columns (of `out`: rows) lie side by side."""
    (first, lda), (second, ldb) = _stored(a), _stored(b)
    return _Gemm(
        *(a.shape[0], b.shape[1], a.shape[1], alpha, beta, _code(a), _code(out), a.data_ptr(), lda),
        *(b.data_ptr(), ldb, out.data_ptr(), _stored(out)[1], int(first), int(second)),
    )


def _stored(matrix: Tensor) -> tuple[bool, int]:
    """Whether it is stored transposed, and the elements from a stored row to the next, as the binding tells them."""
    rows, columns = matrix.shape
    if columns > 1 and matrix.stride(1) != 1 and (rows <= 1 or matrix.stride(0) == 1):
        return True, max(matrix.stride(1), 1)
    return False, max(matrix.stride(0) if rows > 1 else columns, 1)


def _code(matrix: Tensor) -> int:
    """``gemmprof::Dtype`` of a tensor."""
    return ELEMENT_TYPES[name_of(matrix.dtype)].code
