"""Products of 8-bit operands with their scales: the fastest stage's, and the library's as a stage is called."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ALIGNMENT = 16
"""What torch._scaled_mm asks of the operands' sizes, in elements."""


def scaled_mm(
    a: Tensor,
    b: Tensor,
    scale_a: float | Tensor = 1.0,
    scale_b: float | Tensor = 1.0,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """scale_a * scale_b * a @ b by the FP8 ladder's stage, on the current stream, as torch._scaled_mm is called.

    Args:
        a: [M, K] of torch.float8_e4m3fn; row-major is the fast way.
        b: [K, N] likewise; the transpose of a row-major matrix is the fast way.
        scale_a, scale_b: what an element of each stands for, relative to its value: a number, or a tensor of one
            element (one on a GPU is waited for).
        out_dtype: bfloat16 (default), float16 or float32.

    Raises:
        TypeError, ValueError: operands or scales that the stage does not take.
        RuntimeError: the launch failed.
    """
    import torch

    from gemmprof.kernels.operators import run_stage

    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if isinstance(scale, torch.Tensor) and scale.numel() != 1:
            raise ValueError(f"{name} must be a number or a tensor of one element, found {list(scale.shape)}")
    out = torch.empty((a.shape[0], b.shape[1]), dtype=out_dtype or torch.bfloat16, device=a.device)
    run_stage("fp8gemm_promoted", a, b, out, alpha=float(scale_a) * float(scale_b))
    return out


def library_scaled_mm(a: Tensor, b: Tensor, out: Tensor, alpha: float, beta: float) -> None:
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
