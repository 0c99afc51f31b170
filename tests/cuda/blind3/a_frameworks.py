"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: a_frameworks.py list | check | time | profile [STUDY ...]
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
def rotary_pairs_kernel(x, cosines, sines, out, half: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * 2 * half
    at = tl.arange(0, half)
    a = tl.load(x + row + 2 * at).to(tl.float32)
    b = tl.load(x + row + 2 * at + 1).to(tl.float32)
    step = tl.program_id(0) // 32 % 4096  # 32 heads a step
    c, s = tl.load(cosines + step * half + at), tl.load(sines + step * half + at)
    tl.store(out + row + 2 * at, (a * c - b * s).to(tl.float16))
    tl.store(out + row + 2 * at + 1, (a * s + b * c).to(tl.float16))


@triton.jit
def rotary_heads_kernel(x, cosines, sines, out, heads: tl.constexpr, half: tl.constexpr):
    step = tl.program_id(0)
    both = tl.arange(0, 2 * half)
    row = (step.to(tl.int64) * heads + tl.arange(0, heads)[:, None]) * 2 * half
    value = tl.load(x + row + both[None, :]).to(tl.float32)
    a, b = tl.split(tl.reshape(value, (heads, half, 2)))
    at = step % 4096 * half + tl.arange(0, half)
    c, s = tl.load(cosines + at)[None, :], tl.load(sines + at)[None, :]
    turned = tl.reshape(tl.join(a * c - b * s, a * s + b * c), (heads, 2 * half))
    tl.store(out + row + both[None, :], turned.to(tl.float16))


def rotary() -> tuple[dict[str, Run], Check]:
    steps, heads, half = 8192, 32, 64
    x = noise(steps * heads, 2 * half, dtype=torch.half)
    angle = noise(4096, half) * 3
    cosines, sines, out = angle.cos(), angle.sin(), torch.empty_like(x)

    def many(each: int, warps: int) -> Run:
        return lambda: rotary_heads_kernel[(steps,)](x, cosines, sines, out, each, half, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: rotary_pairs_kernel[(steps * heads,)](x, cosines, sines, out, half, num_warps=4),
        "heads": many(heads, 4),
        "more_warps": many(heads, 8),
    }
    return sides, lambda: out


@triton.jit
def dropout_kernel(x, out, seed, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    drawn = at // 4 * 4
    a, b, c, d = tl.randint4x(seed, drawn // 4)
    mine = tl.where(at % 4 == 0, a, tl.where(at % 4 == 1, b, tl.where(at % 4 == 2, c, d)))
    value = tl.load(x + at)
    tl.store(out + at, tl.where((mine & 7) != 0, value * 1.140625, 0.0).to(tl.float16))


@triton.jit
def dropout_four_kernel(x, out, seed, block: tl.constexpr):
    group = tl.program_id(0) * (block // 4) + tl.arange(0, block // 4)
    a, b, c, d = tl.randint4x(seed, group)
    mine = tl.join(tl.join(a, c), tl.join(b, d))  # the last index but one counts by two
    mine = tl.reshape(mine, (block,))
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at)
    tl.store(out + at, tl.where((mine & 7) != 0, value * 1.140625, 0.0).to(tl.float16))


def dropout() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    x = noise(n, dtype=torch.half)
    out = torch.empty_like(x)

    def four(block: int, warps: int) -> Run:
        return lambda: dropout_four_kernel[(n // block,)](x, out, 7, block, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: dropout_kernel[(n // 1024,)](x, out, 7, 1024, num_warps=4),
        "four": four(1024, 4),
        "longer": four(4096, 8),
    }
    return sides, lambda: out


@triton.jit
def matmul_kernel(
    a,
    b,
    c,
    size,
    tall: tl.constexpr,
    wide: tl.constexpr,
    deep: tl.constexpr,
    precision: tl.constexpr,
    half: tl.constexpr,
):
    row, column = (
        tl.program_id(0) * tall + tl.arange(0, tall),
        tl.program_id(1) * wide + tl.arange(0, wide),
    )
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for first in range(0, size, deep):
        left = tl.load(a + row[:, None] * size + first + inner[None, :])
        right = tl.load(b + (first + inner[:, None]) * size + column[None, :])
        if half:
            total += tl.dot(left.to(tl.float16), right.to(tl.float16))
        else:
            total += tl.dot(left, right, input_precision=precision)
    tl.store(c + row[:, None] * size + column[None, :], total)


def matmul() -> tuple[dict[str, Run], Check]:
    size = 2048
    a, b, c = noise(size, size), noise(size, size), torch.empty(size, size, device="cuda")

    def side(precision: str, half: bool) -> Run:
        grid = (size // 64, size // 64)
        return lambda: matmul_kernel[grid](
            a, b, c, size, 64, 64, 32, precision, half, num_warps=4, num_stages=3
        )

    return {"flawed": side("ieee", False), "tf32": side("tf32", False), "half": side("tf32", True)}, lambda: c


@triton.jit
def batch_sums_kernel(x, total, block: tl.constexpr, pieces: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block * pieces + tl.arange(0, block)
    found = tl.zeros((block,), tl.float32)
    for k in range(pieces):
        value = tl.load(x + at + k * block)
        found += value * value
    tl.atomic_add(total, tl.sum(found, 0))


def gradient_norm() -> tuple[dict[str, Run], Check]:
    n = 1 << 25
    x, total = noise(n), torch.zeros(1, device="cuda")

    def side(block: int, pieces: int, warps: int) -> Run:
        return lambda: batch_sums_kernel[(n // block // pieces,)](x, total, block, pieces, num_warps=warps)

    sides = {"flawed": side(128, 1, 1), "pieces": side(1024, 16, 4), "wide": side(8192, 1, 8)}
    return sides, lambda: (total.clone(), total.zero_())[0]


@triton.jit
def group_norm_kernel(x, out, columns: tl.constexpr, groups: tl.constexpr, pixels: tl.constexpr):
    image, group = tl.program_id(0) // groups, tl.program_id(0) % groups
    base = image.to(tl.int64) * pixels * columns + group * (columns // groups)
    channel = tl.arange(0, columns // groups)
    total = tl.zeros((columns // groups,), tl.float32)
    square = tl.zeros((columns // groups,), tl.float32)
    for p in range(pixels):
        value = tl.load(x + base + p * columns + channel)
        total += value
        square += value * value
    count = pixels * (columns // groups)
    mean = tl.sum(total, 0) / count
    scale = tl.rsqrt(tl.sum(square, 0) / count - mean * mean + 1e-5)
    for p in range(pixels):
        value = tl.load(x + base + p * columns + channel)
        tl.store(out + base + p * columns + channel, (value - mean) * scale)


@triton.jit
def group_norm_tall_kernel(
    x, out, columns: tl.constexpr, groups: tl.constexpr, pixels: tl.constexpr, tall: tl.constexpr
):
    image, group = tl.program_id(0) // groups, tl.program_id(0) % groups
    base = image.to(tl.int64) * pixels * columns + group * (columns // groups)
    at = base + tl.arange(0, tall)[:, None] * columns + tl.arange(0, columns // groups)[None, :]
    total = tl.zeros((tall, columns // groups), tl.float32)
    square = tl.zeros((tall, columns // groups), tl.float32)
    for p in range(0, pixels, tall):
        value = tl.load(x + at + p * columns)
        total += value
        square += value * value
    count = pixels * (columns // groups)
    mean = tl.sum(tl.sum(total, 0), 0) / count
    scale = tl.rsqrt(tl.sum(tl.sum(square, 0), 0) / count - mean * mean + 1e-5)
    for p in range(0, pixels, tall):
        value = tl.load(x + at + p * columns)
        tl.store(out + at + p * columns, (value - mean) * scale)


def group_norm() -> tuple[dict[str, Run], Check]:
    images, pixels, columns, groups = 32, 1024, 512, 32
    x = noise(images, pixels, columns)
    out = torch.empty_like(x)
    grid = (images * groups,)

    def tall(rows: int, warps: int) -> Run:
        return lambda: group_norm_tall_kernel[grid](x, out, columns, groups, pixels, rows, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: group_norm_kernel[grid](x, out, columns, groups, pixels, num_warps=1),
        "tall": tall(64, 4),
        "whole": tall(256, 8),
    }
    return sides, lambda: out


@triton.jit
def transpose_kernel(x, out, rows, columns, tall: tl.constexpr, wide: tl.constexpr):
    row, column = (
        tl.program_id(0) * tall + tl.arange(0, tall),
        tl.program_id(1) * wide + tl.arange(0, wide),
    )
    value = tl.load(x + row[:, None] * columns + column[None, :])
    tl.store(out + column[None, :] * rows + row[:, None], value)


@triton.jit
def transpose_tile_kernel(x, out, rows, columns, tall: tl.constexpr, wide: tl.constexpr):
    row, column = (
        tl.program_id(0) * tall + tl.arange(0, tall),
        tl.program_id(1) * wide + tl.arange(0, wide),
    )
    value = tl.trans(tl.load(x + row[:, None] * columns + column[None, :]))
    tl.store(out + column[:, None] * rows + row[None, :], value)


def transpose() -> tuple[dict[str, Run], Check]:
    rows, columns = 8192, 4096
    x = noise(rows, columns, dtype=torch.half)
    out = torch.empty(columns, rows, device="cuda", dtype=torch.half)

    def tiles(size: int, warps: int) -> Run:
        grid = (rows // size, columns // size)
        return lambda: transpose_tile_kernel[grid](x, out, rows, columns, size, size, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: transpose_kernel[(rows, columns // 1024)](
            x, out, rows, columns, 1, 1024, num_warps=4
        ),
        "tile": tiles(64, 4),
        "large_tile": tiles(128, 8),
    }
    return sides, lambda: out


@triton.jit
def top_eight_kernel(x, out, columns: tl.constexpr):
    at = tl.arange(0, columns)
    for k in range(8):
        row = tl.load(x + tl.program_id(0).to(tl.int64) * columns + at)
        for j in range(k):
            row = tl.where(row == tl.load(out + tl.program_id(0) * 8 + j), -float("inf"), row)
        tl.store(out + tl.program_id(0) * 8 + k, tl.max(row, 0))
        tl.debug_barrier()


@triton.jit
def top_eight_registers_kernel(x, out, columns: tl.constexpr):
    row = tl.load(x + tl.program_id(0).to(tl.int64) * columns + tl.arange(0, columns))
    for k in range(8):
        top = tl.max(row, 0)
        tl.store(out + tl.program_id(0) * 8 + k, top)
        row = tl.where(row == top, -float("inf"), row)


def top_eight() -> tuple[dict[str, Run], Check]:
    rows, columns = 32768, 1024
    order = torch.rand(
        rows, columns, device="cuda", generator=torch.Generator("cuda").manual_seed(3)
    ).argsort(1)
    x = order.float() / columns  # no value twice in a row
    out = torch.empty(rows, 8, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: top_eight_kernel[(rows,)](x, out, columns, num_warps=4),
        "registers": lambda: top_eight_registers_kernel[(rows,)](x, out, columns, num_warps=4),
        "one_warp": lambda: top_eight_registers_kernel[(rows,)](x, out, columns, num_warps=1),
    }
    return sides, lambda: out


@triton.jit
def add_norm_kernel(x, residual, weight, out, columns: tl.constexpr):
    at = tl.arange(0, columns)
    row = tl.program_id(0).to(tl.int64) * columns
    value = tl.load(x + row + at).to(tl.float32) + tl.load(residual + row + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-6)
    tl.store(out + row + at, (value * scale * tl.load(weight + at).to(tl.float32)).to(tl.float16))


def add_norm() -> tuple[dict[str, Run], Check]:
    rows, columns = 16384, 4096
    x, residual = noise(rows, columns, dtype=torch.half), noise(rows, columns, dtype=torch.half)
    weight, out = noise(columns, dtype=torch.half), torch.empty_like(x)
    return {
        "sound": lambda: add_norm_kernel[(rows,)](x, residual, weight, out, columns, num_warps=8)
    }, lambda: out


# --- torch ---


def torch_exp() -> tuple[dict[str, Run], Check]:
    rows, columns = 65536, 1024
    single = noise(rows, columns)
    double = single.double()
    narrow = torch.empty(rows, 512, device="cuda")
    wide = torch.empty(rows, 512, device="cuda", dtype=torch.double)
    found = {"out": wide}

    def doubles() -> None:
        found["out"] = torch.exp(double[:, :512], out=wide)

    def floats() -> None:
        found["out"] = torch.exp(single[:, :512], out=narrow)

    def result() -> torch.Tensor:
        return found["out"].float()

    return {"flawed": doubles, "floats": floats}, result


STUDIES = (
    Study(
        "triton_rotary_interleaved_pairs",
        "rotary embedding of interleaved pairs, 8192 steps of 32 heads of 128 half values, in Triton",
        "even and odd values are loaded and stored apart, four warps a row of 64 pairs",
        (
            (
                "heads",
                "all heads of a step, rows taken whole and split in registers",
                ("narrow_access", "idle_threads"),
            ),
            ("more_warps", "the same by eight warps", ("narrow_access", "idle_threads")),
        ),
        rotary,
        2e-3,
    ),
    Study(
        "triton_dropout_numbers_thrown_away",
        "dropout of 64 million half values in Triton",
        "each element draws four numbers and uses one",
        (
            ("four", "four elements for the four numbers", ("integer_arithmetic",)),
            ("longer", "the same, 4096 elements a program", ("integer_arithmetic",)),
        ),
        dropout,
    ),
    Study(
        "triton_matmul_ieee_products",
        "product of 2048 x 2048 floats in Triton",
        "products are asked for in full single precision: no tensor cores",
        (
            ("tf32", "products in TF32", ("tensor_cores_idle",)),
            ("half", "operands rounded to half in registers", ("tensor_cores_idle",)),
        ),
        matmul,
        2e-2,
    ),
    Study(
        "triton_square_sum_small_programs",
        "sum of the squares of 32 million floats in Triton",
        "a warp of 128 values a program, each with an atomic on the one word",
        (
            ("pieces", "16 pieces of 1024 values a program", ("global_atomics",)),
            ("wide", "8192 values a program", ("global_atomics",)),
        ),
        gradient_norm,
    ),
    Study(
        "triton_group_norm_pixel_by_pixel",
        "group norm of 32 images of 32 x 32 pixels of 512 channels, channels last, in Triton",
        "a warp a group takes 16 channels a step, pixel by pixel: half its lanes idle, one load in flight",
        (
            ("tall", "64 pixels a step, four warps", ("memory_latency", "idle_threads", "low_occupancy")),
            ("whole", "256 pixels a step, eight warps", ("memory_latency", "idle_threads", "low_occupancy")),
        ),
        group_norm,
    ),
    Study(
        "triton_transpose_row_by_row",
        "transpose of 8192 x 4096 half values in Triton",
        "a program takes a row and stores it as a column",
        (
            ("tile", "tiles of 64 x 64 turned in shared memory", ("uncoalesced_access",)),
            ("large_tile", "tiles of 128 x 128", ("uncoalesced_access",)),
        ),
        transpose,
    ),
    Study(
        "triton_top_eight_reloads",
        "eight largest of 1024 floats a row, 32768 rows, in Triton",
        "the row and all that was found before are loaded again for each of the eight",
        (
            ("registers", "the row stays in registers, what was found is struck out", ("redundant_loads",)),
            ("one_warp", "the same by one warp a row, no barriers", ("redundant_loads", "barriers")),
        ),
        top_eight,
    ),
    Study(
        "torch_exp_double",
        "torch's exponential of half the columns of 65536 x 1024 values",
        "the values are double precision",
        (("floats", "single precision", ("double_precision",)),),
        torch_exp,
    ),
    Study(
        "sound_triton_add_rms_norm",
        "sum and RMS norm of rows of 4096 half values in Triton",
        "",
        (),
        add_norm,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
