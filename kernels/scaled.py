"""Products of 8-bit operands with their scales by the fastest stage, called as the library's are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmprof.kernels.operators import run_stage

if TYPE_CHECKING:
    import torch
    from torch import Tensor


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

    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if isinstance(scale, torch.Tensor) and scale.numel() != 1:
            raise ValueError(f"{name} must be a number or a tensor of one element, found {list(scale.shape)}")
    out = torch.empty((a.shape[0], b.shape[1]), dtype=out_dtype or torch.bfloat16, device=a.device)
    run_stage("fp8gemm_promoted", a, b, out, alpha=float(scale_a) * float(scale_b))
    return out
