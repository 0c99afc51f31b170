"""One variant with some parameters as a small library of its own, without torch: what a search compiles and calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import BuildError
from gemmprof.base.progress import SILENT
from gemmprof.base.system import cache_directory
from gemmprof.gpu.devices import KernelResources
from gemmprof.gpu.dtypes import ELEMENT_TYPES, name_of
from gemmprof.kernels import compiler
from gemmprof.kernels.compiler import architecture_number, is_whole, new_entry, require_nvcc
from gemmprof.kernels.operators import KernelOccupancy, error_string, query_kernels
from gemmprof.model.ladder import Variant

if TYPE_CHECKING:
    from torch import Tensor

LIBRARY_NAME = "candidate.so"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled variant."""

    library: Any  # its path, or what stands for it where the compiler runs elsewhere
    kernels: tuple[KernelResources, ...]  # what the assembler said of them


def compile_candidate(variant: Variant, architecture: str) -> Candidate:
    """Compile a variant for one architecture as its own library, or find it in the cache; BuildError if it fails."""
    nvcc, cache = require_nvcc(), cache_directory()
    parts = compiler.stage_units(variant, nvcc, [architecture_number(architecture)])
    units = (*parts, compiler.host_unit("include/runtime.cu", nvcc))
    missing = [unit for unit in units if not compiler.is_compiled(cache, unit)]
    _, errors = compiler.compile_units(cache, missing, len(parts), SILENT)
    if errors:
        raise next(iter(errors.values()))
    library = cache / "candidates" / compiler.digest(*(unit.key for unit in units)) / LIBRARY_NAME
    if not is_whole(library.parent):
        with new_entry(library.parent) as folder:
            compiler.link(cache, nvcc, units, folder / LIBRARY_NAME, variant.source)
    return Candidate(library, compiler.read_record(cache, parts).kernels)


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
