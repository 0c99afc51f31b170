"""Studies in Triton of models and pictures, run by what tests/cuda/variants/frameworks.py provides.

Usage: a_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- pictures and boxes ---


@triton.jit
def energies_kernel(x, out, places, channels, rows: tl.constexpr, width: tl.constexpr):
    """Square sums of a picture's channels, which lie side by side; as many as a program takes."""
    channel = tl.program_id(1) * width + tl.arange(0, width)
    inside = channel[None, :] < channels
    picture = x + tl.program_id(0).to(tl.int64) * places * channels
    total = tl.zeros((rows, width), tl.float32)
    for start in range(0, places, rows):
        row = start + tl.arange(0, rows)
        mask = inside & (row[:, None] < places)
        value = tl.load(picture + row[:, None] * channels + channel[None, :], mask=mask, other=0.0)
        total += value.to(tl.float32) * value.to(tl.float32)
    tl.store(out + tl.program_id(0) * channels + channel, tl.sum(total, 0), mask=channel < channels)


@triton.jit
def energies_parts_kernel(x, out, places, channels, part, rows: tl.constexpr, width: tl.constexpr):
    """The same of ``part`` places a program, added to what others find."""
    channel = tl.arange(0, width)
    inside = channel[None, :] < channels
    picture = x + tl.program_id(0).to(tl.int64) * places * channels
    total = tl.zeros((rows, width), tl.float32)
    first = tl.program_id(1) * part
    for start in range(first, first + part, rows):
        row = start + tl.arange(0, rows)
        mask = inside & (row[:, None] < places)
        value = tl.load(picture + row[:, None] * channels + channel[None, :], mask=mask, other=0.0)
        total += value.to(tl.float32) * value.to(tl.float32)
    tl.atomic_add(out + tl.program_id(0) * channels + channel, tl.sum(total, 0), mask=channel < channels)


def energies(pictures: int = 48, places: int = 3136, channels: int = 384) -> tuple[dict[str, Run], Check]:
    x = noise(pictures, places, channels, dtype=torch.half)
    out = torch.zeros(pictures, channels, device="cuda")
    parts = 14
    return {
        "flawed": lambda: energies_kernel[(pictures, 1)](x, out, places, channels, 8, 512, num_warps=8),
        "channels": lambda: energies_kernel[(pictures, channels // 32)](
            x, out, places, channels, 64, 32, num_warps=8
        ),
        "parts": lambda: energies_parts_kernel[(pictures, parts)](
            x, out, places, channels, places // parts, 8, 512, num_warps=8
        ),
    }, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def overlap_loss(left, top, right, low, own_left, own_top, own_right, own_low):
    """One less the generalised overlap of two boxes."""
    wide = tl.maximum(tl.minimum(right, own_right) - tl.maximum(left, own_left), 0.0)
    high = tl.maximum(tl.minimum(low, own_low) - tl.maximum(top, own_top), 0.0)
    shared = wide * high
    both = (right - left) * (low - top) + (own_right - own_left) * (own_low - own_top) - shared
    around = (tl.maximum(right, own_right) - tl.minimum(left, own_left)) * (
        tl.maximum(low, own_low) - tl.minimum(top, own_top)
    )
    return 2.0 - shared / both - both / around


@triton.jit
def boxes_kernel(found, wanted, out, step, pitch, block: tl.constexpr):
    """Losses of boxes; values of a box lie ``step`` apart, boxes ``pitch``."""
    box = tl.program_id(0) * block + tl.arange(0, block)
    at = box * pitch
    left, top = tl.load(found + at), tl.load(found + at + step)
    right, low = tl.load(found + at + 2 * step), tl.load(found + at + 3 * step)
    own_left, own_top = tl.load(wanted + at), tl.load(wanted + at + step)
    own_right, own_low = tl.load(wanted + at + 2 * step), tl.load(wanted + at + 3 * step)
    tl.store(out + box, overlap_loss(left, top, right, low, own_left, own_top, own_right, own_low))


@triton.jit
def box_sides(boxes, first, block: tl.constexpr):
    """The four values of ``block`` boxes, which come as one piece."""
    at = 4 * (first + tl.arange(0, block))[:, None] + tl.arange(0, 4)[None, :]
    even, odd = tl.split(tl.reshape(tl.load(boxes + at), (block, 2, 2)))
    left, right = tl.split(even)
    top, low = tl.split(odd)
    return left, top, right, low


@triton.jit
def boxes_split_kernel(found, wanted, out, block: tl.constexpr):
    """The same, sixteen bytes a lane taken apart in registers."""
    first = tl.program_id(0) * block
    left, top, right, low = box_sides(found, first, block)
    own_left, own_top, own_right, own_low = box_sides(wanted, first, block)
    loss = overlap_loss(left, top, right, low, own_left, own_top, own_right, own_low)
    tl.store(out + first + tl.arange(0, block), loss)


def boxes(count: int = 1 << 23) -> tuple[dict[str, Run], Check]:
    middle, spans = noise(2, count, 2), noise(4, count, 2)
    found = torch.cat((middle[0] - 1.1 - spans[0], middle[0] + 1.1 + spans[1]), 1).contiguous()
    wanted = torch.cat((middle[1] - 1.1 - spans[2], middle[1] + 1.1 + spans[3]), 1).contiguous()
    planes = tuple(both.t().contiguous() for both in (found, wanted))
    out = torch.empty(count, device="cuda")
    grid = (count // 1024,)
    return {
        "flawed": lambda: boxes_kernel[grid](found, wanted, out, 1, 4, 1024, num_warps=4),
        "split": lambda: boxes_split_kernel[grid](found, wanted, out, 1024, num_warps=4),
        "planes": lambda: boxes_kernel[grid](*planes, out, count, 1, 1024, num_warps=4),
    }, lambda: out


@triton.jit
def mirrored(place, size):
    """A place beside a line of ``size`` pixels, mirrored at the middle of the last pixel."""
    place = tl.abs(place)
    return size - 1 - tl.abs(size - 1 - place)


@triton.jit
def margins_kernel(x, out, count, planes, height, width, margin, block: tl.constexpr):
    """Planes with mirrored margins, pixel by pixel of the output, whose place is found by divisions."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    wide, high = width + 2 * margin, height + 2 * margin
    column = at % wide - margin
    row = at // wide % high - margin
    plane = at // (wide * high) % planes
    picture = at // (wide * high * planes)
    source = ((picture * planes + plane) * height + mirrored(row, height)) * width + mirrored(column, width)
    tl.store(out + at, tl.load(x + source, mask=at < count), mask=at < count)


@triton.jit
def margins_rows_kernel(x, out, height, width, margin, rows: tl.constexpr, block: tl.constexpr):
    """The same, ``rows`` whole rows of a plane a program."""
    wide, high = width + 2 * margin, height + 2 * margin
    row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
    column = tl.arange(0, block)[None, :]
    inside = (row < high) & (column < wide)
    source = (tl.program_id(1) * height + mirrored(row - margin, height)) * width
    value = tl.load(x + source + mirrored(column - margin, width), mask=inside)
    tl.store(out + (tl.program_id(1) * high + row) * wide + column, value, mask=inside)


@triton.jit
def margins_known_kernel(
    x, out, count, height: tl.constexpr, width: tl.constexpr, margin: tl.constexpr, block: tl.constexpr
):
    """As the first, in 32 bits and with sizes that the compiler knows; planes follow one another."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    wide: tl.constexpr = width + 2 * margin
    high: tl.constexpr = height + 2 * margin
    line = at // wide
    column = at - line * wide - margin
    plane = line // high
    row = line - plane * high - margin
    source = (plane * height + mirrored(row, height)) * width + mirrored(column, width)
    tl.store(out + at, tl.load(x + source, mask=at < count), mask=at < count)


def margins(pictures: int = 16, planes: int = 64, size: int = 240) -> tuple[dict[str, Run], Check]:
    margin = 3
    high = size + 2 * margin
    x = noise(pictures, planes, size, size, dtype=torch.half)
    out = torch.empty(pictures, planes, high, high, device="cuda", dtype=torch.half)
    count = out.numel()
    grid = (triton.cdiv(count, 1024),)
    return {
        "flawed": lambda: margins_kernel[grid](x, out, count, planes, size, size, margin, 1024, num_warps=4),
        "rows": lambda: margins_rows_kernel[(triton.cdiv(high, 8), pictures * planes)](
            x, out, size, size, margin, 8, 256, num_warps=4
        ),
        "known": lambda: margins_known_kernel[grid](x, out, count, size, size, margin, 1024, num_warps=4),
    }, lambda: out


# --- models ---


@triton.jit
def times_kernel(times, out, half: tl.constexpr, block: tl.constexpr):
    """Sines and cosines of a time at many frequencies, a row a time."""
    row = tl.program_id(0)
    column = tl.arange(0, block)
    frequency = tl.exp((column % half).to(tl.float32) * (-9.210340371976184 / half))
    angle = tl.load(times + row) * frequency
    value = tl.where(column < half, tl.sin(angle), tl.cos(angle))
    tl.store(out + row * 2 * half + column, value.to(tl.float16))


@triton.jit
def times_halves_kernel(times, out, half: tl.constexpr):
    """The same, both values of a frequency by the lane that has it."""
    row = tl.program_id(0)
    column = tl.arange(0, half)
    angle = tl.load(times + row) * tl.exp(column.to(tl.float32) * (-9.210340371976184 / half))
    tl.store(out + row * 2 * half + column, tl.sin(angle).to(tl.float16))
    tl.store(out + row * 2 * half + half + column, tl.cos(angle).to(tl.float16))


@triton.jit
def times_turned_kernel(times, out, rows: tl.constexpr, half: tl.constexpr):
    """Sixteen rows a program: frequencies once, and from a time to the next by turning."""
    column = tl.arange(0, half)
    frequency = tl.exp(column.to(tl.float32) * (-9.210340371976184 / half))
    first = tl.program_id(0) * rows
    time = tl.load(times + first)
    sine, cosine = tl.sin(time * frequency), tl.cos(time * frequency)
    step = (tl.load(times + first + 1) - time) * frequency
    turn_sine, turn_cosine = tl.sin(step), tl.cos(step)
    for k in range(rows):
        at = (first + k) * 2 * half + column
        tl.store(out + at, sine.to(tl.float16))
        tl.store(out + at + half, cosine.to(tl.float16))
        next_sine = sine * turn_cosine + cosine * turn_sine
        cosine = cosine * turn_cosine - sine * turn_sine
        sine = next_sine


def times(count: int = 65536) -> tuple[dict[str, Run], Check]:
    half = 256
    steps = torch.arange(count, device="cuda", dtype=torch.float32) * (1000.0 / count)
    out = torch.empty(count, 2 * half, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: times_kernel[(count,)](steps, out, half, 2 * half, num_warps=4),
        "halves": lambda: times_halves_kernel[(count,)](steps, out, half, num_warps=4),
        "turned": lambda: times_turned_kernel[(count // 16,)](steps, out, 16, half, num_warps=4),
    }, lambda: out


@triton.jit
def mixing_kernel(x, weights, out, places, channels: tl.constexpr, block: tl.constexpr):
    """Channels of a flow mixed by a square matrix, channel after channel."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    row = tl.arange(0, channels)
    picture = tl.program_id(1) * channels * places
    total = tl.zeros((channels, block), tl.float32)
    for channel in range(channels):
        value = tl.load(x + picture + channel * places + place).to(tl.float32)
        weight = tl.load(weights + channel * channels + row).to(tl.float32)
        total += weight[:, None] * value[None, :]
    tl.store(out + picture + row[:, None] * places + place[None, :], total.to(tl.float16))


@triton.jit
def mixing_product_kernel(x, weights, out, places, channels: tl.constexpr, block: tl.constexpr):
    """The same as one product of tiles; the matrix is stored turned."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    row = tl.arange(0, channels)
    picture = tl.program_id(1) * channels * places
    value = tl.load(x + picture + row[:, None] * places + place[None, :])
    weight = tl.trans(tl.load(weights + row[:, None] * channels + row[None, :]))
    total = tl.dot(weight, value)
    tl.store(out + picture + row[:, None] * places + place[None, :], total.to(tl.float16))


@triton.jit
def mixing_walk_kernel(
    x, weights, out, places, channels: tl.constexpr, block: tl.constexpr, tiles: tl.constexpr
):
    """The same of several tiles a program, which keeps the matrix."""
    row = tl.arange(0, channels)
    picture = tl.program_id(1) * channels * places
    weight = tl.trans(tl.load(weights + row[:, None] * channels + row[None, :]))
    for tile in range(tiles):
        place = (tl.program_id(0) * tiles + tile) * block + tl.arange(0, block)
        value = tl.load(x + picture + row[:, None] * places + place[None, :])
        total = tl.dot(weight, value)
        tl.store(out + picture + row[:, None] * places + place[None, :], total.to(tl.float16))


def mixing(pictures: int = 64, places: int = 16384) -> tuple[dict[str, Run], Check]:
    channels = 64
    x = noise(pictures, channels, places, dtype=torch.half)
    weights = (noise(channels, channels) * 0.2).half()
    out = torch.empty_like(x)
    return {
        "flawed": lambda: mixing_kernel[(places // 128, pictures)](
            x, weights, out, places, channels, 128, num_warps=4
        ),
        "product": lambda: mixing_product_kernel[(places // 128, pictures)](
            x, weights, out, places, channels, 128, num_warps=4
        ),
        "walk": lambda: mixing_walk_kernel[(places // 512, pictures)](
            x, weights, out, places, channels, 64, 8, num_warps=4
        ),
    }, lambda: out


@triton.jit
def checkpoints_kernel(x, shares, out, size, models, block: tl.constexpr):
    """The weighted mean of several models' weights, one model after the other."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for model in range(models):
        total += tl.load(shares + model) * tl.load(x + model * size + at).to(tl.float32)
    tl.store(out + at, total.to(tl.float16))


@triton.jit
def checkpoints_tile_kernel(
    x, shares, out, size, models: tl.constexpr, rows: tl.constexpr, block: tl.constexpr
):
    """The same, ``rows`` models at a time."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((rows, block), tl.float32)
    for first in tl.static_range(0, models, rows):
        model = first + tl.arange(0, rows)
        total += tl.load(shares + model)[:, None] * tl.load(x + model[:, None] * size + at[None, :]).to(
            tl.float32
        )
    tl.store(out + at, tl.sum(total, 0).to(tl.float16))


@triton.jit
def checkpoints_unrolled_kernel(x, shares, out, size, models: tl.constexpr, block: tl.constexpr):
    """As the first, unrolled: all models are on their way together."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for model in tl.static_range(models):
        total += tl.load(shares + model) * tl.load(x + model * size + at).to(tl.float32)
    tl.store(out + at, total.to(tl.float16))


def checkpoints(size: int = 1 << 22, models: int = 24) -> tuple[dict[str, Run], Check]:
    x = noise(models, size, dtype=torch.half)
    shares = torch.softmax(noise(models), 0)
    out = torch.empty(size, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: checkpoints_kernel[(size // 128,)](x, shares, out, size, models, 128, num_warps=4),
        "tile": lambda: checkpoints_tile_kernel[(size // 512,)](
            x, shares, out, size, models, 8, 512, num_warps=4
        ),
        "unrolled": lambda: checkpoints_unrolled_kernel[(size // 1024,)](
            x, shares, out, size, models, 1024, num_warps=4
        ),
    }, lambda: out


@triton.jit
def correlations_kernel(x, y, out, columns, block: tl.constexpr):
    """Correlations of rows: their means, then their spreads, then what they share."""
    start = tl.program_id(0) * columns
    x_total, y_total = tl.zeros((block,), tl.float32), tl.zeros((block,), tl.float32)
    for first in range(0, columns, block):
        at = start + first + tl.arange(0, block)
        x_total += tl.load(x + at).to(tl.float32)
        y_total += tl.load(y + at).to(tl.float32)
    x_mean, y_mean = tl.sum(x_total, 0) / columns, tl.sum(y_total, 0) / columns
    x_squares, y_squares = tl.zeros((block,), tl.float32), tl.zeros((block,), tl.float32)
    for first in range(0, columns, block):
        at = start + first + tl.arange(0, block)
        x_own = tl.load(x + at).to(tl.float32) - x_mean
        y_own = tl.load(y + at).to(tl.float32) - y_mean
        x_squares += x_own * x_own
        y_squares += y_own * y_own
    scale = tl.rsqrt(tl.sum(x_squares, 0) * tl.sum(y_squares, 0))
    products = tl.zeros((block,), tl.float32)
    for first in range(0, columns, block):
        at = start + first + tl.arange(0, block)
        x_own = tl.load(x + at).to(tl.float32) - x_mean
        products += x_own * (tl.load(y + at).to(tl.float32) - y_mean)
    tl.store(out + tl.program_id(0), tl.sum(products, 0) * scale)


@triton.jit
def correlations_rows_kernel(x, y, out, columns: tl.constexpr):
    """The same, both rows kept in registers."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    x_own, y_own = tl.load(x + at).to(tl.float32), tl.load(y + at).to(tl.float32)
    x_own -= tl.sum(x_own, 0) / columns
    y_own -= tl.sum(y_own, 0) / columns
    scale = tl.rsqrt(tl.sum(x_own * x_own, 0) * tl.sum(y_own * y_own, 0))
    tl.store(out + tl.program_id(0), tl.sum(x_own * y_own, 0) * scale)


@triton.jit
def correlations_sums_kernel(x, y, out, columns, block: tl.constexpr):
    """The same from five sums of one walk."""
    start = tl.program_id(0) * columns
    x_total, y_total = tl.zeros((block,), tl.float32), tl.zeros((block,), tl.float32)
    x_squares, y_squares = tl.zeros((block,), tl.float32), tl.zeros((block,), tl.float32)
    products = tl.zeros((block,), tl.float32)
    for first in range(0, columns, block):
        at = start + first + tl.arange(0, block)
        x_own, y_own = tl.load(x + at).to(tl.float32), tl.load(y + at).to(tl.float32)
        x_total += x_own
        y_total += y_own
        x_squares += x_own * x_own
        y_squares += y_own * y_own
        products += x_own * y_own
    x_mean, y_mean = tl.sum(x_total, 0) / columns, tl.sum(y_total, 0) / columns
    x_spread = tl.sum(x_squares, 0) - columns * x_mean * x_mean
    y_spread = tl.sum(y_squares, 0) - columns * y_mean * y_mean
    shared = tl.sum(products, 0) - columns * x_mean * y_mean
    tl.store(out + tl.program_id(0), shared * tl.rsqrt(x_spread * y_spread))


def correlations(rows: int = 16384, columns: int = 8192) -> tuple[dict[str, Run], Check]:
    x = noise(rows, columns, dtype=torch.half)
    y = (x.flip(0).float() * 0.7 + x.float()).half()
    out = torch.empty(rows, device="cuda")
    grid = (rows,)
    return {
        "flawed": lambda: correlations_kernel[grid](x, y, out, columns, 2048, num_warps=8),
        "rows": lambda: correlations_rows_kernel[grid](x, y, out, columns, num_warps=16),
        "sums": lambda: correlations_sums_kernel[grid](x, y, out, columns, 2048, num_warps=8),
    }, lambda: out


# --- without a flaw ---


@triton.jit
def soft_distance_kernel(found, wanted, out, sharpness, block: tl.constexpr):
    """Slopes of a loss that is square near zero and straight further out."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    away = tl.load(found + at).to(tl.float32) - tl.load(wanted + at).to(tl.float32)
    tl.store(out + at, (away * tl.rsqrt(away * away + sharpness)).to(tl.float16))


def soft_distance(count: int = 1 << 26) -> tuple[dict[str, Run], Check]:
    found = noise(count, dtype=torch.half)
    wanted = found.flip(0).contiguous()
    out = torch.empty_like(found)
    return {
        "sound": lambda: soft_distance_kernel[(count // 2048,)](found, wanted, out, 1e-3, 2048, num_warps=8),
    }, lambda: out


STUDIES = (
    Study(
        "triton_channel_energies_48_programs",
        "square sums of the 384 channels of 48 pictures of 3136 places, half values, in Triton",
        "a program a picture: 48 of them walk all the places",
        (
            ("channels", "a program for each 32 channels of a picture", ("small_grid",)),
            ("parts", "fourteen programs a picture, which add up by atomics", ("small_grid",)),
        ),
        energies,
        domain="models",
    ),
    Study(
        "triton_box_losses_four_strided_loads",
        "one less the generalised overlap of 8388608 pairs of boxes, in Triton",
        "each of the four values of a box is loaded on its own, sixteen bytes from its neighbour's",
        (
            ("split", "a box in one load, taken apart in registers", ("uncoalesced_access", "narrow_access")),
            ("planes", "boxes kept as four planes", ("uncoalesced_access",)),
        ),
        boxes,
        domain="detection",
    ),
    Study(
        "triton_mirrored_margins_flat",
        "1024 half planes of 240 x 240 with mirrored margins of three pixels, in Triton",
        "picture, plane, row and column of each pixel by divisions of 64 bits by sizes known at run time",
        (
            ("rows", "eight rows of a plane a program", ("integer_arithmetic",)),
            ("known", "32 bits and sizes that the compiler knows", ("integer_arithmetic",)),
        ),
        margins,
        tolerance=0.0,
        domain="images",
    ),
    Study(
        "triton_time_embedding_both_functions_each_lane",
        "sines and cosines of 65536 times at 256 frequencies, half values, in Triton",
        "each lane takes both the sine and the cosine and keeps one of them",
        (
            ("halves", "both of a frequency by one lane", ("expensive_math",)),
            (
                "turned",
                "from a time to the next by four products, sixteen times a program",
                ("expensive_math",),
            ),
        ),
        times,
        tolerance=4e-3,
    ),
    Study(
        "triton_flow_channels_mixed_one_at_a_time",
        "64 channels of 64 pictures of 16384 places mixed by a square matrix, half values, in Triton",
        "a channel's row is multiplied and added on the FMA pipe, 64 times",
        (
            ("product", "one product of tiles on tensor cores", ("tensor_cores_idle",)),
            ("walk", "the same, eight smaller tiles a program", ("tensor_cores_idle",)),
        ),
        mixing,
        tolerance=2e-3,
    ),
    Study(
        "triton_checkpoints_averaged_a_model_at_a_time",
        "the weighted mean of 4194304 half weights of 24 models, in Triton",
        "a lane has two bytes of one model on its way, then those of the next",
        (
            ("tile", "eight models at a time", ("memory_latency", "narrow_access")),
            ("unrolled", "eight values a lane, models unrolled", ("memory_latency", "narrow_access")),
        ),
        checkpoints,
        tolerance=2e-3,
        domain="training",
    ),
    Study(
        "triton_row_correlations_three_walks",
        "correlations of 16384 pairs of rows of 8192 half values, in Triton",
        "both rows are read for their means, again for their spreads and again for their products",
        (
            ("rows", "both rows in registers", ("redundant_loads",)),
            ("sums", "five sums of one walk", ("redundant_loads",)),
        ),
        correlations,
        domain="statistics",
    ),
    Study(
        "sound_triton_soft_distance_slopes",
        "slopes of a loss between square and straight for 67108864 half values, in Triton",
        "",
        (),
        soft_distance,
        tolerance=2e-3,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
