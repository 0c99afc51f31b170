"""Products of 8-bit operands with their scales by the fastest stage, called as the library's are."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from gemmprof.gpu.dtypes import FLOAT8_E4M3
from gemmprof.kernels.operators import described, error_string, load, run_stage

if TYPE_CHECKING:
    import torch
    from torch import Tensor

STAGE = "fp8gemm_promoted"
BLOCK = 128  # elements along K, and columns of B, that share a scale


def scaled_mm(
    a: Tensor,
    b: Tensor,
    scale_a: float | Tensor = 1.0,
    scale_b: float | Tensor = 1.0,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """A @ B with the operands' scales by the FP8 ladder's stage, on the current stream, as torch._scaled_mm is called.

    Args:
        a: [M, K] of torch.float8_e4m3fn; row-major is the fast way.
        b: [K, N] likewise; the transpose of a row-major matrix is the fast way.
        scale_a, scale_b: what an element of each stands for, relative to its value. Either a number or one element
            each (one on a GPU is waited for); or float32 on the operands' device, [M, 1] and [1, N], one for each row
            of A and column of B (a tensor of one element may stand for either); or [M, ceil(K / 128)] and
            [ceil(K / 128), ceil(N / 128)], one for 128 elements of A's rows and one for 128 x 128 of B. In any strides.
        out_dtype: bfloat16 (default), float16 or float32.
        use_fast_accum: the sums may stay in the tensor cores, which keep about 14 bits of them; with scales of blocks
            they never do.

    Raises:
        TypeError, ValueError: operands or scales that the stage does not take.
        RuntimeError: the launch failed.
    """
    import torch

    out = torch.empty((a.shape[0], b.shape[1]), dtype=out_dtype or torch.bfloat16, device=a.device)
    one = _is_one(scale_a) and _is_one(scale_b)
    alpha = float(scale_a) * float(scale_b) if one else 1.0
    if one and not use_fast_accum:
        run_stage(STAGE, a, b, out, alpha=alpha)
        return out
    _check(a, b, out)
    m, n, steps = a.shape[0], b.shape[1], -(-a.shape[1] // BLOCK)
    if one:
        scale_a = scale_b = a.new_empty(0, dtype=torch.float32)  # they are part of alpha: nothing to read
    first, second = (_tensor(name, scale, a) for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)))
    rows = (one or first.numel() == 1 or first.shape == (m, 1)) and (
        one or second.numel() == 1 or second.shape == (1, n)
    )
    if not rows and (first.shape != (m, steps) or second.shape != (steps, -(-n // BLOCK))):
        raise ValueError(
            f"scale_a and scale_b must be one element each, [{m}, 1] and [1, {n}], or [{m}, {steps}] and "
            f"[{steps}, {-(-n // BLOCK)}], found {list(first.shape)} and {list(second.shape)}"
        )
    if a.device.type != "cuda" or b.device != a.device:
        raise ValueError(f"A and B must be on one CUDA device, found {a.device} and {b.device}")
    a, b = (matrix if 1 in matrix.stride() else matrix.contiguous() for matrix in (a, b))
    library = ctypes.CDLL(str(load().library))
    gemm = described(a, b, out, alpha)
    wide, pointer = ctypes.c_int64, ctypes.c_void_p
    scales: tuple[object, ...]
    if rows:
        launch = library[f"gemmprof_rows_scaled_{STAGE}"]
        scales = (
            pointer(None if one else first.data_ptr()), wide(first.stride(0) if first.numel() > 1 else 0),
            pointer(None if one else second.data_ptr()), wide(second.stride(1) if second.numel() > 1 else 0),
            ctypes.c_int(use_fast_accum),
        )  # fmt: skip
    else:
        launch = library[f"gemmprof_blocks_scaled_{STAGE}"]
        scales = (
            pointer(first.data_ptr()), wide(first.stride(0)), wide(first.stride(1)),
            pointer(second.data_ptr()), wide(second.stride(0)), wide(second.stride(1)),
        )  # fmt: skip
    with torch.cuda.device(a.device):
        error = launch(ctypes.byref(gemm), *scales, pointer(torch.cuda.current_stream().cuda_stream))
    if error != 0:
        raise RuntimeError(f"{STAGE}: the launch failed: {error_string(library, error)}")
    return out


def _is_one(scale: float | Tensor) -> bool:
    """Whether it is a number, or a tensor of one element."""
    return not hasattr(scale, "numel") or scale.numel() == 1


def _tensor(name: str, scale: float | Tensor, a: Tensor) -> Tensor:
    """A scale as a float32 tensor on the operands' device."""
    import torch

    if not isinstance(scale, torch.Tensor):
        # Written by the GPU: a copy from the host would be waited for.
        return torch.full((), float(scale), dtype=torch.float32, device=a.device)
    if scale.dtype != torch.float32 or scale.device != a.device:
        raise ValueError(f"{name} must be float32 on {a.device}, found {scale.dtype} on {scale.device}")
    return scale


def _check(a: Tensor, b: Tensor, out: Tensor) -> None:
    """What the operator checks of a product with a number as its scale."""
    import torch

    for name, matrix in (("A", a), ("B", b)):
        if matrix.dtype != getattr(torch, FLOAT8_E4M3.name):
            raise TypeError(f"{name} must be {FLOAT8_E4M3.name}, found {matrix.dtype}")
    if out.dtype not in (torch.bfloat16, torch.float16, torch.float32):
        raise TypeError(f"out_dtype must be bfloat16, float16 or float32, found {out.dtype}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"A has {a.shape[1]} columns and B {b.shape[0]} rows; they must be as many")
