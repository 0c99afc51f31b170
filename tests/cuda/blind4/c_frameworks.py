"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: c_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- Triton ---


@triton.jit
def scores_sums_kernel(q, k, out, length: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr):
    head = tl.program_id(2).to(tl.int64)
    row, column = tl.program_id(1) * tall + tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    feature = tl.arange(0, 64)
    a = tl.load(q + (head * length + row[:, None]) * 64 + feature[None, :]).to(tl.float32)
    b = tl.load(k + (head * length + column[:, None]) * 64 + feature[None, :]).to(tl.float32)
    score = tl.sum(a[:, None, :] * b[None, :, :], 2)
    tl.store(out + (head * length + row[:, None]) * length + column[None, :], score.to(tl.float16))


@triton.jit
def scores_dot_kernel(q, k, out, length: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr):
    head = tl.program_id(2).to(tl.int64)
    row, column = tl.program_id(1) * tall + tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    feature = tl.arange(0, 64)
    a = tl.load(q + (head * length + row[:, None]) * 64 + feature[None, :])
    b = tl.load(k + (head * length + column[None, :]) * 64 + feature[:, None])
    score = tl.dot(a, b)
    tl.store(out + (head * length + row[:, None]) * length + column[None, :], score.to(tl.float16))


def scores() -> tuple[dict[str, Run], Check]:
    heads, length = 64, 512
    q, k = noise(heads, length, 64, dtype=torch.half), noise(heads, length, 64, dtype=torch.half) * 2
    out = torch.empty(heads, length, length, device="cuda", dtype=torch.half)

    def dot(tall: int, wide: int, warps: int) -> Run:
        grid = (length // wide, length // tall, heads)
        return lambda: scores_dot_kernel[grid](q, k, out, length, tall, wide, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: scores_sums_kernel[(length // 16, length // 16, heads)](
            q, k, out, length, 16, 16, num_warps=4
        ),
        "dot": dot(64, 64, 4),
        "wide_dot": dot(128, 128, 8),
    }
    return sides, lambda: out


@triton.jit
def histogram_each_kernel(x, counts, block: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * block + tl.arange(0, block))
    tl.atomic_add(counts + value.to(tl.int32), 1)


@triton.jit
def histogram_block_kernel(x, counts, pieces: tl.constexpr, block: tl.constexpr):
    total = tl.zeros((256,), tl.int32)
    for piece in range(pieces):
        at = (tl.program_id(0) * pieces + piece) * block + tl.arange(0, block)
        total += tl.histogram(tl.load(x + at).to(tl.int32), 256)
    tl.atomic_add(counts + tl.arange(0, 256), total)


def histogram() -> tuple[dict[str, Run], Check]:
    n = 1 << 23
    x = ((noise(n) + noise(n).flip(0)) * 60 + 128).to(torch.uint8)
    counts = torch.zeros(256, device="cuda", dtype=torch.int32)

    def blocks(pieces: int) -> Run:
        return lambda: histogram_block_kernel[(n // 4096 // pieces,)](x, counts, pieces, 4096, num_warps=8)

    sides: dict[str, Run] = {
        "flawed": lambda: histogram_each_kernel[(n // 1024,)](x, counts, 1024, num_warps=4),
        "block": blocks(1),
        "pieces": blocks(4),
    }
    return sides, lambda: (counts.clone(), counts.zero_())[0]


@triton.jit
def layer_norm_padded_kernel(x, out, columns, block: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64) * columns, tl.arange(0, block)
    inside = at < columns
    value = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    apart = tl.where(inside, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / columns + 1e-5)
    tl.store(out + row + at, (apart * scale).to(tl.float16), mask=inside)


@triton.jit
def layer_norm_parts_kernel(x, out, columns: tl.constexpr, first: tl.constexpr, second: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    left, right = tl.arange(0, first), first + tl.arange(0, second)
    a, b = tl.load(x + row + left).to(tl.float32), tl.load(x + row + right).to(tl.float32)
    mean = (tl.sum(a, 0) + tl.sum(b, 0)) / columns
    a, b = a - mean, b - mean
    scale = tl.rsqrt((tl.sum(a * a, 0) + tl.sum(b * b, 0)) / columns + 1e-5)
    tl.store(out + row + left, (a * scale).to(tl.float16))
    tl.store(out + row + right, (b * scale).to(tl.float16))


@triton.jit
def layer_norm_rows_kernel(x, out, columns: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr):
    row = (tl.program_id(0) * tall + tl.arange(0, tall)[:, None]).to(tl.int64) * columns
    at = tl.arange(0, wide)[None, :]
    total, squares = tl.zeros((tall, wide), tl.float32), tl.zeros((tall, wide), tl.float32)
    for start in range(0, columns, wide):
        value = tl.load(x + row + start + at).to(tl.float32)
        total += value
        squares += value * value
    mean = tl.sum(total, 1) / columns
    scale = tl.rsqrt(tl.sum(squares, 1) / columns - mean * mean + 1e-5)
    for start in range(0, columns, wide):
        value = tl.load(x + row + start + at).to(tl.float32)
        tl.store(out + row + start + at, ((value - mean[:, None]) * scale[:, None]).to(tl.float16))


def layer_norm() -> tuple[dict[str, Run], Check]:
    rows, columns = 32768, 2304
    x = noise(rows, columns, dtype=torch.half)
    out = torch.empty_like(x)
    sides: dict[str, Run] = {
        "flawed": lambda: layer_norm_padded_kernel[(rows,)](x, out, columns, 4096, num_warps=8),
        "parts": lambda: layer_norm_parts_kernel[(rows,)](x, out, columns, 2048, 256, num_warps=4),
        "rows": lambda: layer_norm_rows_kernel[(rows // 4,)](x, out, columns, 4, 256, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def time_scan_column_kernel(x, out, length: tl.constexpr, features):
    at = tl.arange(0, length) * features + tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * length * features
    tl.store(out + base + at, tl.cumsum(tl.load(x + base + at), 0))


@triton.jit
def time_scan_tile_kernel(x, out, length: tl.constexpr, features, wide: tl.constexpr):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    at = tl.arange(0, length)[:, None] * features + column[None, :]
    base = tl.program_id(1).to(tl.int64) * length * features
    tl.store(out + base + at, tl.cumsum(tl.load(x + base + at), 0))


@triton.jit
def time_scan_steps_kernel(x, out, length: tl.constexpr, features, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    base = tl.program_id(1).to(tl.int64) * length * features
    before = tl.zeros((wide,), tl.float32)
    for start in range(0, length, tall):
        at = (start + tl.arange(0, tall)[:, None]) * features + column[None, :]
        value = tl.load(x + base + at)
        tl.store(out + base + at, tl.cumsum(value, 0) + before[None, :])
        before += tl.sum(value, 0)


def time_scan() -> tuple[dict[str, Run], Check]:
    batch, length, features = 16, 1024, 1024
    x = noise(batch, length, features)
    out = torch.empty_like(x)
    sides: dict[str, Run] = {
        "flawed": lambda: time_scan_column_kernel[(features, batch)](x, out, length, features, num_warps=4),
        "tile": lambda: time_scan_tile_kernel[(features // 16, batch)](
            x, out, length, features, 16, num_warps=8
        ),
        "steps": lambda: time_scan_steps_kernel[(features // 32, batch)](
            x, out, length, features, 64, 32, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def sample_means_kernel(x, out, length, block: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * length
    total = tl.zeros((block,), tl.float32)
    for start in range(0, length, block):
        total += tl.load(x + base + start + tl.arange(0, block))
    tl.store(out + tl.program_id(0), tl.sum(total, 0) / length)


@triton.jit
def sample_means_split_kernel(x, out, length, block: tl.constexpr):
    each = length // tl.num_programs(1)
    base = tl.program_id(0).to(tl.int64) * length + tl.program_id(1) * each
    total = tl.zeros((block,), tl.float32)
    for start in range(0, each, block):
        total += tl.load(x + base + start + tl.arange(0, block))
    tl.atomic_add(out + tl.program_id(0), tl.sum(total, 0) / length)


def sample_means() -> tuple[dict[str, Run], Check]:
    samples, length = 48, 1 << 20
    x = noise(samples, length) + 1
    out = torch.zeros(samples, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: sample_means_kernel[(samples,)](x, out, length, 1024, num_warps=4),
        "split": lambda: sample_means_split_kernel[(samples, 32)](x, out, length, 1024, num_warps=4),
        "bigger": lambda: sample_means_kernel[(samples,)](x, out, length, 8192, num_warps=16),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def gated_bias_kernel(x, gate, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value, weight = tl.load(x + at).to(tl.float32), tl.load(gate + at).to(tl.float32)
    tl.store(out + at, (value * tl.sigmoid(weight)).to(tl.float16))


def gated() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    x, gate = noise(n, dtype=torch.half), noise(n, dtype=torch.half)
    out = torch.empty_like(x)
    return {"sound": lambda: gated_bias_kernel[(n // 2048,)](x, gate, out, 2048, num_warps=8)}, lambda: out


# --- torch ---


def torch_buckets() -> tuple[dict[str, Run], Check]:
    x = torch.arange(1 << 25, device="cuda") * 2654435761
    out = torch.empty_like(x)
    sides: dict[str, Run] = {
        "flawed": lambda: torch.remainder(x, 4096, out=out),
        "mask": lambda: torch.bitwise_and(x, 4095, out=out),
    }
    return sides, lambda: out


STUDIES = (
    Study(
        "triton_scores_sums_of_products",
        "scores of 512 queries and keys of 64 halfs, 64 heads, in Triton",
        "products are formed one by one and summed, instead of by the tensor cores",
        (
            ("dot", "tl.dot, tiles of 64 x 64", ("tensor_cores_idle", "redundant_loads")),
            ("wide_dot", "tl.dot, tiles of 128 x 128", ("tensor_cores_idle", "redundant_loads")),
        ),
        scores,
        tolerance=3e-3,
    ),
    Study(
        "triton_histogram_atomic_each",
        "counts of 8 million bytes in Triton",
        "an atomic for each byte, on 256 words",
        (
            ("block", "4096 bytes counted by tl.histogram first", ("global_atomics",)),
            ("pieces", "16384 bytes a program counted first", ("global_atomics",)),
        ),
        histogram,
        domain="images",
    ),
    Study(
        "triton_layer_norm_padded_to_4096",
        "layer norm of 32768 rows of 2304 halfs in Triton",
        "a row fills little more than half of the block, the next power of two",
        (
            ("parts", "a part of 2048 and one of 256", ("idle_threads",)),
            ("rows", "four rows a program, in pieces of 256", ("idle_threads",)),
        ),
        layer_norm,
        tolerance=3e-3,
    ),
    Study(
        "triton_time_scan_one_column",
        "running sums over 1024 steps of 16 x 1024 features in Triton",
        "a program scans one feature: neighbouring steps lie 4 KiB apart",
        (
            ("tile", "16 features a program", ("uncoalesced_access",)),
            ("steps", "32 features a program, 64 steps at a time", ("uncoalesced_access",)),
        ),
        time_scan,
    ),
    Study(
        "triton_means_program_per_sample",
        "means of 48 samples of a million floats in Triton",
        "a program a sample: 48 programs with few loads in flight",
        (
            ("split", "32 programs a sample, added up by atomics", ("small_grid", "memory_latency")),
            ("bigger", "16 warps a program, 8192 values at a time", ("memory_latency", "small_grid")),
        ),
        sample_means,
    ),
    Study(
        "torch_remainder_of_long",
        "torch takes 32 million hashes modulo 4096, 64-bit integers",
        "a division of 64 bits for what is a mask",
        (("mask", "torch.bitwise_and", ("integer_arithmetic",)),),
        torch_buckets,
        domain="databases",
    ),
    Study("sound_triton_gated_halfs", "a half tensor times the sigmoid of another in Triton", "", (), gated),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
