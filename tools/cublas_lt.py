"""cublasLt through ctypes: the plans that its heuristics propose for one product, to be timed one by one.

torch.mm takes the first proposal; trying the first sixteen is what a careful user of the library would do. The numbers
of enumerators are those of cublasLt.h, CUDA 13.
"""

from __future__ import annotations

import ctypes
import site
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

LIBRARY = "libcublasLt.so.13"
COMPUTE_32F, R_32F = 68, 0  # cublasComputeType_t, cudaDataType_t
ELEMENT = {"torch.float32": R_32F, "torch.float16": 2, "torch.bfloat16": 14}  # cudaDataType_t
TRANS_A, TRANS_B, TRANSPOSED = 3, 4, 1  # cublasLtMatmulDescAttributes_t, cublasOperation_t
MAX_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t
RESULT_BYTES = 96  # sizeof(cublasLtMatmulHeuristicResult_t)
WORKSPACE_BYTES = 64 << 20


def find_library() -> Any:
    """cublasLt, as torch has loaded it or as it lies beside torch.

    Raises:
        OSError: it cannot be loaded.
    """
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        for folder in site.getsitepackages():
            for file in sorted(Path(folder).glob(f"nvidia/*/lib/{LIBRARY}")):
                return ctypes.CDLL(str(file))
        raise


class CublasLt:
    """One handle and one workspace."""

    def __init__(self) -> None:
        import torch

        self.library = find_library()
        self.handle = ctypes.c_void_p()
        self._check(self.library.cublasLtCreate(ctypes.byref(self.handle)))
        self.workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")

    @staticmethod
    def _check(status: int) -> None:
        if status != 0:
            raise RuntimeError(f"cublasLt failed with status {status}")

    def plans(self, a: Tensor, b: Tensor, out: Tensor, count: int = 16) -> list[Callable[[], int]]:
        """Calls that compute ``out = a @ b`` on the current stream, one for each proposal that works.

        a [M, K] and b [K, N] are row-major or transposed, out [M, N] row-major, all of one type; sums are
        float32.

        Raises:
            RuntimeError: cublasLt refuses the problem.
        """
        import torch

        lib, element = self.library, ELEMENT[str(a.dtype)]
        description = ctypes.c_void_p()
        self._check(lib.cublasLtMatmulDescCreate(ctypes.byref(description), COMPUTE_32F, R_32F))

        def layout(stored: Tensor) -> ctypes.c_void_p:
            # A row-major matrix is its transpose in column-major order, which is the library's.
            made, (rows, columns) = ctypes.c_void_p(), stored.shape
            shape = (ctypes.c_uint64(columns), ctypes.c_uint64(rows), ctypes.c_int64(stored.stride(0)))
            self._check(lib.cublasLtMatrixLayoutCreate(ctypes.byref(made), element, *shape))
            return made

        def operand(matrix: Tensor, attribute: int) -> ctypes.c_void_p:
            if matrix.stride(1) == 1:
                return layout(matrix)
            value = ctypes.c_int(TRANSPOSED)
            self._check(
                lib.cublasLtMatmulDescSetAttribute(
                    description, attribute, ctypes.byref(value), ctypes.c_size_t(4)
                )
            )
            return layout(matrix.t())

        # out^T = b^T @ a^T, so the library's A is our b.
        first, second, result = operand(b, TRANS_A), operand(a, TRANS_B), layout(out)
        preference, limit = ctypes.c_void_p(), ctypes.c_size_t(WORKSPACE_BYTES)
        self._check(lib.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)))
        self._check(
            lib.cublasLtMatmulPreferenceSetAttribute(
                preference, MAX_WORKSPACE, ctypes.byref(limit), ctypes.c_size_t(8)
            )
        )
        proposals, found = (ctypes.c_uint8 * (RESULT_BYTES * count))(), ctypes.c_int()
        self._check(
            lib.cublasLtMatmulAlgoGetHeuristic(
                self.handle, description, first, second, result, result, preference, count, proposals,
                ctypes.byref(found),
            )
        )  # fmt: skip
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        at_b, at_a, at_out, at_workspace = (
            ctypes.c_void_p(t.data_ptr()) for t in (b, a, out, self.workspace)
        )

        def plan(index: int) -> Callable[[], int]:
            # The algorithm is the first member of a result.
            algorithm = ctypes.byref(proposals, RESULT_BYTES * index)

            def run() -> int:
                return int(
                    lib.cublasLtMatmul(
                        self.handle, description, ctypes.byref(one), at_b, first, at_a, second, ctypes.byref(zero),
                        at_out, result, at_out, result, algorithm, at_workspace, limit, stream,
                    )
                )  # fmt: skip

            return run

        return [run for run in (plan(i) for i in range(found.value)) if run() == 0]
