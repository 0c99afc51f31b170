"""Softmax over the rows of a matrix, as a Triton kernel. Nothing of it knows of gemmprof."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + offsets, values / tl.sum(values, axis=0), mask=inside)


def softmax(x):
    out = torch.empty_like(x)
    rows, columns = x.shape
    softmax_rows[(rows,)](out, x, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
    return out


for rows, columns in ((16384, 4096), (65536, 1000)):
    x = torch.randn(rows, columns, device="cuda")
    for _ in range(3):
        y = softmax(x)
    print(rows, columns, float((y - torch.softmax(x, dim=1)).abs().max()))
