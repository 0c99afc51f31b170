"""norm_weight_grad_atomics, side rows: loads of later rows under way by tl.range, or more warps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

gradient = kernels("blind2/frameworks").norm_weight_grad_kernel
rows, columns = small(16384, 64), 1024
dy, x, grad = (
    noise(rows, columns, dtype=torch.half) + 1,
    noise(rows, columns, dtype=torch.half),
    empty(columns),
)


@triton.jit
def ahead(dy, x, grad, columns: tl.constexpr, rows: tl.constexpr):
    column = tl.arange(0, columns)
    total = tl.zeros((columns,), tl.float32)
    for r in tl.range(rows, num_stages=3):
        at = (tl.program_id(0) * rows + r).to(tl.int64) * columns + column
        total += tl.load(dy + at).to(tl.float32) * tl.load(x + at).to(tl.float32)
    tl.atomic_add(grad + column, total)


def by(kernel: triton.JITFunction, warps: int) -> Form:
    return lambda: kernel[(rows // 32,)](dy, x, grad, columns, 32, num_warps=warps)


judge(
    {"as_it_is": by(gradient, 4), "three_stages": by(ahead, 4), "eight_warps": by(gradient, 8)},
    [grad], prepare=grad.zero_,
)  # fmt: skip
