"""The first layer of a feed-forward block: a product in half precision, a bias, and GELU."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, noise, small

rows, inner, width = small(4096, 256), small(1024, 128), small(4096, 512)
x = noise(rows, inner, dtype=torch.half)
weights = noise(inner, width, dtype=torch.half) * 0.1
bias = noise(width)
y = empty(rows, width, dtype=torch.half)


@triton.jit
def as_it_is(
    x,
    weights,
    bias,
    y,
    rows,
    width,
    inner,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
):
    row = tl.program_id(0) * block_m + tl.arange(0, block_m)
    column = tl.program_id(1) * block_n + tl.arange(0, block_n)
    total = tl.zeros((block_m, block_n), tl.float32)
    for start in range(0, inner, block_k):
        k = start + tl.arange(0, block_k)
        a = tl.load(
            x + row[:, None] * inner + k[None, :],
            mask=(row[:, None] < rows) & (k[None, :] < inner),
            other=0.0,
        )
        b = tl.load(
            weights + k[:, None] * width + column[None, :],
            mask=(k[:, None] < inner) & (column[None, :] < width),
            other=0.0,
        )
        total += tl.dot(a, b)
    total += tl.load(bias + column, mask=column < width, other=0.0)[None, :]
    out = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    inside = (row[:, None] < rows) & (column[None, :] < width)
    tl.store(y + row[:, None] * width + column[None, :], out.to(tl.float16), mask=inside)


@triton.jit
def fast_tanh(
    x,
    weights,
    bias,
    y,
    rows,
    width,
    inner,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
):
    """Second step, expensive functions: erf(x) by tanh.approx.f32 of x * (1.128 + 0.101 * x * x)."""
    row = tl.program_id(0) * block_m + tl.arange(0, block_m)
    column = tl.program_id(1) * block_n + tl.arange(0, block_n)
    total = tl.zeros((block_m, block_n), tl.float32)
    for start in range(0, inner, block_k):
        k = start + tl.arange(0, block_k)
        a = tl.load(
            x + row[:, None] * inner + k[None, :],
            mask=(row[:, None] < rows) & (k[None, :] < inner),
            other=0.0,
        )
        b = tl.load(
            weights + k[:, None] * width + column[None, :],
            mask=(k[:, None] < inner) & (column[None, :] < width),
            other=0.0,
        )
        total += tl.dot(a, b)
    total += tl.load(bias + column, mask=column < width, other=0.0)[None, :]
    scaled = total * 0.7071067811865476
    erf = tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [scaled * (1.128 + 0.101 * scaled * scaled)], tl.float32, True, 1
    )
    out = 0.5 * total * (1.0 + erf)
    inside = (row[:, None] < rows) & (column[None, :] < width)
    tl.store(y + row[:, None] * width + column[None, :], out.to(tl.float16), mask=inside)


@triton.jit
def expert(
    x, weights, bias, y, rows, width, inner,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    """Large tiles in three stages, in an order that keeps weights in the L2; sizes are multiples of the tiles."""
    along = rows // block_m
    across = width // block_n
    program = tl.program_id(0)
    first = program // (group * across) * group
    high = min(along - first, group)
    row = (first + program % (group * across) % high) * block_m + tl.arange(0, block_m)
    column = program % (group * across) // high * block_n + tl.arange(0, block_n)
    k = tl.arange(0, block_k)
    a_at = x + row[:, None] * inner + k[None, :]
    b_at = weights + k[:, None] * width + column[None, :]
    total = tl.zeros((block_m, block_n), tl.float32)
    for _ in range(0, inner, block_k):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total)
        a_at += block_k
        b_at += block_k * width
    total += tl.load(bias + column)[None, :]
    out = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    tl.store(y + row[:, None] * width + column[None, :], out.to(tl.float16))


grid = (triton.cdiv(rows, 64), triton.cdiv(width, 64))
larger = (triton.cdiv(rows, 256), triton.cdiv(width, 128))
sizes = (x, weights, bias, y, rows, width, inner)


def tiles(m: int, n: int, k: int, warps: int, stages: int) -> Form:
    return lambda: expert[(rows // m * (width // n),)](*sizes, m, n, k, 8, num_warps=warps, num_stages=stages)


judge({
    "as_it_is": lambda: as_it_is[grid](*sizes, 64, 64, 32),
    "tiles_of_256_by_128": lambda: as_it_is[larger](*sizes, 256, 128, 32),
    "the_same_of_eight_warps": lambda: as_it_is[larger](*sizes, 256, 128, 32, num_warps=8),
    "fast_tanh": lambda: fast_tanh[larger](*sizes, 256, 128, 32, num_warps=8),
    "expert": tiles(128, 256, 64, 8, 3),
    "expert_four_stages": tiles(128, 256, 64, 8, 4),
    "expert_128_by_128": tiles(128, 128, 64, 8, 3),
    "expert_four_warps": tiles(128, 128, 64, 4, 4),
}, [y])  # fmt: skip
