"""A forward pass from kernels written in Triton as tutorials are copied: layer norm, matmul, add, GELU, softmax."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
import turns

ROWS, WIDTH, OUT = 4096, 4096, 4096


@triton.jit
def layer_norm_rows(x, y, weight, bias, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * width
    y += row * width
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + columns, mask=columns < width, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / width
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(x + columns, mask=columns < width, other=0.0).to(tl.float32)
        value = tl.where(columns < width, value - mean, 0.0)
        squares += value * value
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / width + eps)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < width
        value = tl.load(x + columns, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight + columns, mask=mask)
        b = tl.load(bias + columns, mask=mask)
        tl.store(y + columns, (value - mean) * scale * w + b, mask=mask)


@triton.jit
def matmul_tiles(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    across = tl.cdiv(N, BN)
    group = program // (GROUP * across)
    first = group * GROUP
    rows_here = min(tl.cdiv(M, BM) - first, GROUP)
    row = first + (program % (GROUP * across)) % rows_here
    column = (program % (GROUP * across)) // rows_here
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = a + m[:, None] * K + k[None, :]
    right = b + k[:, None] * N + n[None, :]
    result = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        result = tl.dot(tl.load(left), tl.load(right), result)
        left += BK
        right += BK * N
    tl.store(c + m[:, None] * N + n[None, :], result.to(tl.float16))


@triton.jit
def add_rows(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def gelu_rows(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    value = tl.load(x + at, mask=mask).to(tl.float32)
    tl.store(out + at, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=mask)


@triton.jit
def add_gelu_rows(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    value = tl.load(x + at, mask=mask).to(tl.float32) + tl.load(y + at, mask=mask).to(tl.float32)
    tl.store(out + at, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=mask)


@triton.jit
def softmax_rows(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + row * width + columns, mask=columns < width, other=-float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * width + columns, value / tl.sum(value, axis=0), mask=columns < width)


def build(
    device: str, *, tile: tuple[int, int, int] = (64, 64, 32), warps: int = 4, stages: int = 1,
    block: int = 128, whole_rows: bool = False, fuse: bool = False, softmax_warps: int = 1,
    graph: bool = False,
) -> turns.Step:  # fmt: skip
    """One pass over random values."""
    half: dict[str, Any] = {"device": device, "dtype": torch.float16}
    x, residual = torch.randn(ROWS, WIDTH, **half), torch.randn(ROWS, OUT, **half)
    weight, bias = torch.randn(WIDTH, **half), torch.randn(WIDTH, **half)
    matrix = torch.randn(WIDTH, OUT, **half) / 64
    normed, product, summed, active, out = (torch.empty(ROWS, OUT, **half) for _ in range(5))
    count = ROWS * OUT
    bm, bn, bk = tile

    def step() -> None:
        with turns.marked("layer norm"):
            size = WIDTH if whole_rows else 512
            layer_norm_rows[(ROWS,)](
                x, normed, weight, bias, WIDTH, 1e-5, BLOCK=size, num_warps=8 if whole_rows else 1
            )
        with turns.marked("matmul"):
            tiles = (triton.cdiv(ROWS, bm) * triton.cdiv(OUT, bn),)
            matmul_tiles[tiles](
                normed, matrix, product, ROWS, OUT, WIDTH, BM=bm, BN=bn, BK=bk, GROUP=8,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip
        with turns.marked("activation"):
            pieces = (triton.cdiv(count, block),)
            if fuse:
                add_gelu_rows[pieces](product, residual, active, count, BLOCK=block)
            else:
                add_rows[pieces](product, residual, summed, count, BLOCK=block)
                gelu_rows[pieces](summed, active, count, BLOCK=block)
        with turns.marked("softmax"):
            softmax_rows[(ROWS,)](active, out, OUT, BLOCK=OUT, num_warps=softmax_warps)

    return turns.captured(step) if graph else step


def variant(**options: Any) -> turns.Build:
    """The program with these options."""
    return lambda device: build(device, **options)


BEST: dict[str, Any] = {"tile": (128, 256, 64), "warps": 8, "stages": 4}
VARIANTS = {
    "base": variant(),
    "matmul_tile": variant(**BEST),
    "matmul_stages": variant(stages=4),
    "fused_activation": variant(fuse=True),
    "larger_blocks": variant(block=1024),
    "norm_whole_rows": variant(whole_rows=True),
    "softmax_warps": variant(softmax_warps=8),
    "graph": variant(graph=True),
    "all": variant(**BEST, fuse=True, block=1024, whole_rows=True, softmax_warps=8),
}

if __name__ == "__main__":
    turns.main("triton_set", VARIANTS)
