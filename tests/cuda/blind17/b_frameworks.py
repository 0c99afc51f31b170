"""Studies in Triton, run by what tests/cuda/variants/frameworks.py provides.

Usage: b_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- clouds of points ---


@triton.jit
def nearest_kernel(points, others, out, count, others_count, tall: tl.constexpr, piece: tl.constexpr):
    """The squared distance of ``tall`` points to the nearest of another cloud; x, y and z in planes."""
    at = tl.program_id(0) * tall + tl.arange(0, tall)
    x, y, z = tl.load(points + at), tl.load(points + count + at), tl.load(points + 2 * count + at)
    nearest = tl.full((tall, piece), float("inf"), tl.float32)
    for start in range(0, others_count, piece):
        other = start + tl.arange(0, piece)
        dx = x[:, None] - tl.load(others + other)[None, :]
        dy = y[:, None] - tl.load(others + others_count + other)[None, :]
        dz = z[:, None] - tl.load(others + 2 * others_count + other)[None, :]
        nearest = tl.minimum(nearest, dx * dx + dy * dy + dz * dz)
    tl.store(out + at, tl.min(nearest, 1))


@triton.jit
def nearest_lanes_kernel(points, others, out, count, others_count, wide: tl.constexpr):
    """The same with a point in each lane: no lane waits for another."""
    at = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y, z = tl.load(points + at), tl.load(points + count + at), tl.load(points + 2 * count + at)
    nearest = tl.full((wide,), float("inf"), tl.float32)
    for start in range(0, others_count, 8):
        for k in tl.static_range(8):
            dx = x - tl.load(others + start + k)
            dy = y - tl.load(others + others_count + start + k)
            dz = z - tl.load(others + 2 * others_count + start + k)
            nearest = tl.minimum(nearest, dx * dx + dy * dy + dz * dz)
    tl.store(out + at, nearest)


def nearest_points(count: int = 32768, others_count: int = 8192) -> tuple[dict[str, Run], Check]:
    points, others = noise(3, count), noise(3, others_count).flip(1).contiguous() * 0.9
    out = torch.empty(count, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: nearest_kernel[(count,)](
            points, others, out, count, others_count, 1, 512, num_warps=4
        ),
        "tile": lambda: nearest_kernel[(count // 32,)](
            points, others, out, count, others_count, 32, 64, num_warps=4
        ),
        "lanes": lambda: nearest_lanes_kernel[(count // 128,)](
            points, others, out, count, others_count, 128, num_warps=4
        ),
    }
    return sides, lambda: out


# --- models ---


@triton.jit
def spline_layer_kernel(
    x, weights, out, width, outputs, tall: tl.constexpr, wide: tl.constexpr, some: tl.constexpr
):
    """A layer of learnt curves: eight bells of each input, multiplied by a matrix of weights."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    bell = tl.arange(0, some * 8)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, width, some):
        value = tl.load(x + row[:, None] * width + start + (bell // 8)[None, :]).to(tl.float32)
        off = value * 3.5 + 3.5 - (bell % 8).to(tl.float32)[None, :]
        basis = tl.exp(-off * off).to(tl.float16)
        w = tl.load(weights + (start * 8 + bell)[:, None] * outputs + column[None, :])
        total = tl.dot(basis, w, total)
    tl.store(out + row[:, None] * outputs + column[None, :], total.to(tl.float16))


def spline_layer(rows: int = 16384, width: int = 256) -> tuple[dict[str, Run], Check]:
    outputs = 256
    x, weights = noise(rows, width, dtype=torch.half), noise(width * 8, outputs, dtype=torch.half) * 0.1
    out = torch.empty(rows, outputs, device="cuda", dtype=torch.half)

    def run(tall: int, wide: int, warps: int) -> Run:
        return lambda: spline_layer_kernel[(rows // tall, outputs // wide)](
            x, weights, out, width, outputs, tall, wide, 4, num_warps=warps
        )

    return {"flawed": run(64, 16, 4), "wide": run(64, 128, 4), "all": run(64, 256, 8)}, lambda: out


@triton.jit
def sign_weights_kernel(words, scales, out, columns, block: tl.constexpr):
    """Weights of one bit unpacked: the byte of each of them, a shift, and the scale of its row."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    byte = tl.load(words + at // 8)
    sign = ((byte >> (at % 8).to(tl.uint8)) & 1).to(tl.float32) * 2.0 - 1.0
    tl.store(out + at, (sign * tl.load(scales + at // columns)).to(tl.float16))


@triton.jit
def sign_weights_rows_kernel(words, scales, out, columns: tl.constexpr, tall: tl.constexpr):
    """The same for rows: a word of 32 bits for 32 weights, a scale for a row."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    word, bit = tl.arange(0, columns // 32), tl.arange(0, 32)
    own = tl.load(words + row[:, None] * (columns // 32) + word[None, :])
    sign = ((own[:, :, None] >> bit[None, None, :]) & 1).to(tl.float32) * 2.0 - 1.0
    at = row[:, None, None] * columns + word[None, :, None] * 32 + bit[None, None, :]
    tl.store(out + at, (sign * tl.load(scales + row)[:, None, None]).to(tl.float16))


@triton.jit
def sign_weights_bytes_kernel(words, scales, out, columns, block: tl.constexpr):
    """The same with a byte for eight weights, which a lane stores as one vector."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    bit = tl.arange(0, 8)
    byte = tl.load(words + at).to(tl.int32)
    sign = ((byte[:, None] >> bit[None, :]) & 1).to(tl.float32) * 2.0 - 1.0
    scale = tl.load(scales + at * 8 // columns)
    tl.store(out + at[:, None] * 8 + bit[None, :], (sign * scale[:, None]).to(tl.float16))


def sign_weights(rows: int = 16384) -> tuple[dict[str, Run], Check]:
    columns = 4096
    generator = torch.Generator().manual_seed(3)
    packed = torch.randint(0, 256, (rows, columns // 8), dtype=torch.uint8, generator=generator).cuda()
    words, scales = packed.view(torch.int32), noise(rows).abs() + 0.1
    out = torch.empty(rows, columns, device="cuda", dtype=torch.half)
    sides: dict[str, Run] = {
        "flawed": lambda: sign_weights_kernel[(rows * columns // 1024,)](
            packed, scales, out, columns, 1024, num_warps=4
        ),
        "rows": lambda: sign_weights_rows_kernel[(rows,)](words, scales, out, columns, 1, num_warps=4),
        "bytes": lambda: sign_weights_bytes_kernel[(rows * columns // 8192,)](
            packed, scales, out, columns, 1024, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def lifetime_loss_kernel(times, shapes, scales, out, columns, block: tl.constexpr):
    """How unlikely lifetimes are by Weibull's law of their column, from both parameters."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    column = at % columns
    shape, scale = tl.load(shapes + column), tl.load(scales + column)
    time = tl.load(times + at).to(tl.float32)
    power = tl.exp(shape * tl.log(time / scale))
    loss = power - tl.log(shape / scale) - (shape - 1.0) * tl.log(time / scale)
    tl.store(out + at, loss.to(tl.float16))


@triton.jit
def lifetime_loss_prepared_kernel(times, shapes, logs, offsets, out, columns, block: tl.constexpr):
    """The same with logarithms of the parameters made beforehand: one logarithm and one exponential a value."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    column = at % columns
    shape = tl.load(shapes + column)
    ratio = tl.log(tl.load(times + at).to(tl.float32)) - tl.load(logs + column)
    loss = tl.exp(shape * ratio) - (shape - 1.0) * ratio - tl.load(offsets + column)
    tl.store(out + at, loss.to(tl.float16))


@triton.jit
def lifetime_loss_rows_kernel(times, shapes, scales, out, steps, columns: tl.constexpr, tall: tl.constexpr):
    """The same for rows of columns, whose parameters a program takes once."""
    column = tl.arange(0, columns)
    shape, scale = tl.load(shapes + column), tl.load(scales + column)
    log_scale, offset = tl.log(scale), tl.log(shape / scale)
    for step in range(steps):
        row = (tl.program_id(0) * steps + step) * tall + tl.arange(0, tall)
        at = row[:, None] * columns + column[None, :]
        ratio = tl.log(tl.load(times + at).to(tl.float32)) - log_scale[None, :]
        loss = tl.exp(shape[None, :] * ratio) - (shape - 1.0)[None, :] * ratio - offset[None, :]
        tl.store(out + at, loss.to(tl.float16))


def lifetime_loss(rows: int = 1 << 18) -> tuple[dict[str, Run], Check]:
    columns, steps, tall = 256, 4, 16
    times = noise(rows, columns, dtype=torch.half).abs() + 0.05
    shapes, scales = noise(columns).abs() * 2 + 0.5, noise(columns).flip(0).abs() + 0.5
    logs, offsets = torch.log(scales), torch.log(shapes / scales)
    out = torch.empty_like(times)
    grid = (rows * columns // 1024,)
    sides: dict[str, Run] = {
        "flawed": lambda: lifetime_loss_kernel[grid](times, shapes, scales, out, columns, 1024, num_warps=4),
        "prepared": lambda: lifetime_loss_prepared_kernel[grid](
            times, shapes, logs, offsets, out, columns, 1024, num_warps=4
        ),
        "rows": lambda: lifetime_loss_rows_kernel[(rows // (steps * tall),)](
            times, shapes, scales, out, steps, columns, tall, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def masked_product_kernel(
    left, right, mask, out, width, columns, stops: tl.constexpr, block: tl.constexpr, wide: tl.constexpr
):
    """A matrix, of whose blocks a mask keeps a few, times another: blocks that are not kept are multiplied as zeros."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    inner = tl.arange(0, block)
    total = tl.zeros((block, wide), tl.float32)
    for k in range(0, width // block):
        kept = tl.load(mask + tl.program_id(0) * (width // block) + k)
        if stops:
            if kept != 0:
                a = tl.load(left + row[:, None] * width + k * block + inner[None, :])
                b = tl.load(right + (k * block + inner)[:, None] * columns + column[None, :])
                total = tl.dot(a, b, total)
        else:
            a = tl.load(left + row[:, None] * width + k * block + inner[None, :])
            a = tl.where(kept != 0, a, 0.0).to(tl.float16)
            b = tl.load(right + (k * block + inner)[:, None] * columns + column[None, :])
            total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


@triton.jit
def listed_product_kernel(
    left, right, starts, blocks, out, width, columns, block: tl.constexpr, wide: tl.constexpr
):
    """The same by a list of the blocks that are kept."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    inner = tl.arange(0, block)
    total = tl.zeros((block, wide), tl.float32)
    end = tl.load(starts + tl.program_id(0) + 1)
    for at in range(tl.load(starts + tl.program_id(0)), end):
        k = tl.load(blocks + at)
        a = tl.load(left + row[:, None] * width + k * block + inner[None, :])
        b = tl.load(right + (k * block + inner)[:, None] * columns + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def masked_product(size: int = 4096, columns: int = 2048) -> tuple[dict[str, Run], Check]:
    block, wide = 64, 128
    many = size // block
    left, right = noise(size, size, dtype=torch.half), noise(size, columns, dtype=torch.half) * 0.1
    chosen = torch.rand(many, many, generator=torch.Generator().manual_seed(5)) < 0.15
    chosen |= torch.eye(many, dtype=torch.bool)
    mask = chosen.int().cuda()
    starts = torch.cat((torch.zeros(1, dtype=torch.int64), chosen.sum(1).cumsum(0))).int().cuda()
    blocks = chosen.nonzero()[:, 1].int().cuda()
    out = torch.empty(size, columns, device="cuda", dtype=torch.half)
    grid = (many, columns // wide)

    def masked(stops: bool) -> Run:
        return lambda: masked_product_kernel[grid](
            left, right, mask, out, size, columns, stops, block, wide, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": masked(False),
        "skips": masked(True),
        "listed": lambda: listed_product_kernel[grid](
            left, right, starts, blocks, out, size, columns, block, wide, num_warps=4
        ),
    }
    return sides, lambda: out


# --- without a flaw ---


@triton.jit
def shrinkage_kernel(values, slopes, before, out, threshold, pace, block: tl.constexpr):
    """A step towards few values: down the slope, then towards zero, then on by what was changed."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    old = tl.load(before + at).to(tl.float32)
    value = tl.load(values + at).to(tl.float32) - pace * tl.load(slopes + at).to(tl.float32)
    less = tl.maximum(tl.abs(value) - threshold, 0.0)
    value = tl.where(value < 0.0, -less, less)
    tl.store(out + at, (value + 0.5 * (value - old)).to(tl.float16))


def shrinkage(count: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    values, slopes = noise(count, dtype=torch.half), noise(count, dtype=torch.half).flip(0).contiguous()
    before = values.roll(1).contiguous()
    out = torch.empty_like(values)
    return {
        "sound": lambda: shrinkage_kernel[(count // 2048,)](
            values, slopes, before, out, 0.1, 0.3, 2048, num_warps=4
        )
    }, lambda: out


STUDIES = (
    Study(
        "triton_nearest_points_a_point_a_program",
        "distances of 32768 points to the nearest of 8192 others, in Triton",
        "a program of four warps for each point reads the whole other cloud again",
        (
            ("tile", "32 points a program", ("redundant_loads",)),
            ("lanes", "128 points a program, a point a lane", ("redundant_loads", "barriers")),
        ),
        nearest_points,
        domain="vision",
    ),
    Study(
        "triton_curve_layer_bells_again_for_each_16_outputs",
        "a layer of 256 inputs of eight bells each and 256 outputs for 16384 rows of half values, in Triton",
        "a program makes 16 outputs: the exponentials of its rows are made 16 times",
        (
            ("wide", "128 outputs a program", ("expensive_math", "redundant_loads")),
            ("all", "all 256 outputs a program of eight warps", ("expensive_math", "redundant_loads")),
        ),
        spline_layer,
        tolerance=2e-3,
    ),
    Study(
        "triton_sign_weights_a_byte_for_each_bit",
        "67108864 weights of one bit unpacked to half values, in Triton",
        "the same byte is loaded for each of its eight bits",
        (
            ("rows", "a row a program, words of 32 bits", ("narrow_access", "redundant_loads")),
            ("bytes", "a byte once for eight weights", ("redundant_loads", "narrow_access")),
        ),
        sign_weights,
        tolerance=0.0,
    ),
    Study(
        "triton_lifetime_loss_logarithms_of_parameters_again",
        "losses of 67108864 lifetimes by Weibull's law, parameters for each of 256 columns, in Triton",
        "three logarithms, two quotients and an exponential a value, most of them of parameters",
        (
            ("prepared", "logarithms of the parameters made beforehand", ("expensive_math",)),
            ("rows", "rows of columns, parameters once a program", ("expensive_math", "redundant_loads")),
        ),
        lifetime_loss,
        tolerance=3e-3,
        domain="statistics",
    ),
    Study(
        "triton_sparse_blocks_multiplied_as_zeros",
        "a matrix of 4096 x 4096 half values, of whose blocks a mask keeps 16 %, times one of 2048 columns, in Triton",
        "blocks that the mask does not keep are loaded, made zero and multiplied",
        (
            ("skips", "a block that is not kept is passed over", ("idle_threads", "redundant_loads")),
            ("listed", "a list of the blocks that are kept", ("idle_threads", "redundant_loads")),
        ),
        masked_product,
        tolerance=2e-3,
    ),
    Study(
        "sound_triton_shrinkage_step",
        "a step of 33554432 half values towards few of them, in Triton",
        "",
        (),
        shrinkage,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
