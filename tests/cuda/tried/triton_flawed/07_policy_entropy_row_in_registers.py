"""policy_entropy_row_in_registers, side flawed: a row in pieces that it fills."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import empty, judge, kernels, noise, small

entropy = kernels("blind12/b_frameworks").entropy_row_kernel
rows, columns = small(2048, 4), 50304
x, out = noise(rows, columns, dtype=torch.half) * 6, empty(rows)


@triton.jit
def piece(x, first: tl.constexpr, width: tl.constexpr):
    return tl.load(x + first + tl.arange(0, width)).to(tl.float32)


@triton.jit
def sums(value, top):
    value -= top
    power = tl.exp(value)
    return tl.sum(power, 0), tl.sum(power * value, 0)


@triton.jit
def pieces(x, out, columns: tl.constexpr):
    """50304 are 32768, 16384, 1024 and 128."""
    row = tl.program_id(0).to(tl.int64)
    a, b = piece(x + row * columns, 0, 32768), piece(x + row * columns, 32768, 16384)
    c, d = piece(x + row * columns, 49152, 1024), piece(x + row * columns, 50176, 128)
    top = tl.maximum(tl.maximum(tl.max(a, 0), tl.max(b, 0)), tl.maximum(tl.max(c, 0), tl.max(d, 0)))
    sum_a, mix_a = sums(a, top)
    sum_b, mix_b = sums(b, top)
    sum_c, mix_c = sums(c, top)
    sum_d, mix_d = sums(d, top)
    total = sum_a + sum_b + sum_c + sum_d
    tl.store(out + row, tl.log(total) - (mix_a + mix_b + mix_c + mix_d) / total)


@triton.jit
def alike(x, out, columns: tl.constexpr):
    """Three pieces of 16384, which lanes put together before a block does, and 1152 in 2048."""
    row, rest = tl.program_id(0).to(tl.int64), 49152 + tl.arange(0, 2048)
    a, b, c = (
        piece(x + row * columns, 0, 16384),
        piece(x + row * columns, 16384, 16384),
        piece(x + row * columns, 32768, 16384),
    )
    d = tl.load(x + row * columns + rest, mask=rest < columns, other=-10000.0).to(tl.float32)
    top = tl.maximum(tl.max(tl.maximum(tl.maximum(a, b), c), 0), tl.max(d, 0))
    a, b, c, d = a - top, b - top, c - top, d - top
    power_a, power_b, power_c, power_d = tl.exp(a), tl.exp(b), tl.exp(c), tl.exp(d)
    total = tl.sum(power_a + power_b + power_c, 0) + tl.sum(power_d, 0)
    mixed = tl.sum(power_a * a + power_b * b + power_c * c, 0) + tl.sum(power_d * d, 0)
    tl.store(out + row, tl.log(total) - mixed / total)


judge({
    "as_it_is": lambda: entropy[(rows,)](x, out, columns, 65536, num_warps=8),
    "four_pieces": lambda: pieces[(rows,)](x, out, columns, num_warps=8),
    "three_alike_and_the_rest": lambda: alike[(rows,)](x, out, columns, num_warps=8),
}, [out])  # fmt: skip
