"""Studies in Triton of signals, stars, pictures and training, run by what tests/cuda/variants/frameworks.py provides.

Usage: g_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- a filter over time for all channels of an EEG ---


@triton.jit
def low_pass_kernel(x, taps, out, channels, count: tl.constexpr, rows: tl.constexpr, width: tl.constexpr):
    """Each channel's sums over the next ``count`` steps, weighted; ``taps`` has zeros on either side."""
    row = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    channel = tl.program_id(0) * width + tl.arange(0, width)[None, :]
    at = row * channels + channel
    total = tl.zeros((rows, width), tl.float32)
    for k in tl.static_range(count):
        total += tl.load(taps + 8 + k).to(tl.float32) * tl.load(x + at + k * channels).to(tl.float32)
    tl.store(out + at, total.to(tl.float16))


@triton.jit
def low_pass_band_kernel(
    x, taps, out, channels, count: tl.constexpr, rows: tl.constexpr, width: tl.constexpr
):
    """The same as a product with a matrix that has the taps along its diagonals."""
    row = tl.arange(0, rows)
    channel = tl.program_id(0) * width + tl.arange(0, width)[None, :]
    first = tl.program_id(1) * rows
    step = tl.arange(0, count)
    total = tl.zeros((rows, width), tl.float32)
    for start in tl.static_range(0, rows + count, count):
        k = start + step[None, :] - row[:, None]
        band = tl.load(taps + 8 + k, mask=(k >= 0) & (k < count), other=0.0)
        value = tl.load(x + (first + start + step[:, None]) * channels + channel)
        total = tl.dot(band, value, total)
    tl.store(out + (first + row[:, None]) * channels + channel, total.to(tl.float16))


def low_pass(steps: int = 65536, channels: int = 512) -> tuple[dict[str, Run], Check]:
    count = 32
    x = noise(steps + count, channels, dtype=torch.half)
    taps = torch.zeros(count + 16, device="cuda", dtype=torch.half)
    taps[8 : 8 + count] = (noise(count) * 0.25).half()
    out = torch.empty(steps, channels, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: low_pass_kernel[(channels // 128, steps // 16)](
            x, taps, out, channels, count, 16, 128, num_warps=4
        ),
        "band": lambda: low_pass_band_kernel[(channels // 128, steps // 64)](
            x, taps, out, channels, count, 64, 128, num_warps=4
        ),
    }, lambda: out


# --- gas of a simulation seen from afar ---


@triton.jit
def added_up(places, sizes, weights, first, last, x, y, light):
    """What the particles from first to last add to a tile's pixels."""
    for k in range(first, last):
        right = x - tl.load(places + 2 * k)
        down = y - tl.load(places + 2 * k + 1)
        near = tl.maximum(1.0 - (right * right + down * down) * tl.load(sizes + k), 0.0)
        light += tl.load(weights + k) * near * near * near
    return light


@triton.jit
def gas_kernel(places, sizes, weights, starts, out, across, side: tl.constexpr):
    """A picture's tile from the list of particles that it sees."""
    tile = tl.program_id(0)
    x = tile % across * side + tl.arange(0, side)[None, :]
    y = tile // across * side + tl.arange(0, side)[:, None]
    light = tl.zeros((side, side), tl.float32)
    light = added_up(places, sizes, weights, tl.load(starts + tile), tl.load(starts + tile + 1), x, y, light)
    tl.store(out + y * across * side + x, light)


@triton.jit
def gas_order_kernel(places, sizes, weights, starts, order, out, across, side: tl.constexpr):
    """The same, tiles in a given order."""
    tile = tl.load(order + tl.program_id(0))
    x = tile % across * side + tl.arange(0, side)[None, :]
    y = tile // across * side + tl.arange(0, side)[:, None]
    light = tl.zeros((side, side), tl.float32)
    light = added_up(places, sizes, weights, tl.load(starts + tile), tl.load(starts + tile + 1), x, y, light)
    tl.store(out + y * across * side + x, light)


@triton.jit
def gas_parts_kernel(places, sizes, weights, parts, out, across, side: tl.constexpr):
    """The same, a part of a tile's list a program: tile, first, last and whether it is all of the list."""
    part = parts + 4 * tl.program_id(0)
    tile = tl.load(part)
    x = tile % across * side + tl.arange(0, side)[None, :]
    y = tile // across * side + tl.arange(0, side)[:, None]
    light = tl.zeros((side, side), tl.float32)
    light = added_up(places, sizes, weights, tl.load(part + 1), tl.load(part + 2), x, y, light)
    if tl.load(part + 3) != 0:
        tl.store(out + y * across * side + x, light)
    else:
        tl.atomic_add(out + y * across * side + x, light, sem="relaxed")


def gas(across: int = 128, down: int = 64, most: float = 1600.0) -> tuple[dict[str, Run], Check]:
    side = 16
    tile = torch.arange(across * down)
    column, row = tile % across, tile // across
    far = ((column - across / 2) ** 2 + (row - down) ** 2).double()
    counts = (64 + column % 7 * 8 + most * torch.exp(-far / 18.0)).long()
    starts = torch.zeros(len(tile) + 1, dtype=torch.long)
    starts[1:] = counts.cumsum(0)
    total = int(starts[-1])
    of = torch.repeat_interleave(tile, counts)
    corner = torch.stack((of % across * side, of // across * side), 1).cuda().float()
    places = (corner + 8.0 + noise(total, 2) * 10.0).contiguous()
    sizes, weights = 1.0 / (noise(total) * 3.0 + 6.0) ** 2, noise(total).abs()
    pieces = [
        (int(k), first, min(first + 128, int(starts[k + 1])), int(counts[k] <= 128))
        for k in tile
        for first in range(int(starts[k]), int(starts[k + 1]), 128)
    ]
    parts = torch.tensor(pieces, dtype=torch.int32, device="cuda")
    order = torch.argsort(counts, descending=True).int().cuda()
    starts = starts.int().cuda()
    out = torch.zeros(down * side, across * side, device="cuda")
    return {
        "flawed": lambda: gas_kernel[(across * down,)](
            places, sizes, weights, starts, out, across, side, num_warps=4
        ),
        "order": lambda: gas_order_kernel[(across * down,)](
            places, sizes, weights, starts, order, out, across, side, num_warps=4
        ),
        "parts": lambda: gas_parts_kernel[(len(pieces),)](
            places, sizes, weights, parts, out, across, side, num_warps=4
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- how far vectors are from classes ---


@triton.jit
def class_distances_kernel(x, spreads, out, classes: tl.constexpr, width: tl.constexpr, rows: tl.constexpr):
    """x A x of each vector and each class's matrix A."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, width)
    own = tl.load(x + row[:, None] * width + column[None, :]).to(tl.float32)
    for number in range(classes):
        turned = tl.zeros((rows, width), tl.float32)
        for k in range(width):
            value = tl.load(x + row * width + k).to(tl.float32)
            turned += value[:, None] * tl.load(spreads + (number * width + k) * width + column).to(tl.float32)
        tl.store(out + row * classes + number, tl.sum(turned * own, 1))


@triton.jit
def class_distances_dot_kernel(
    x, spreads, out, classes: tl.constexpr, width: tl.constexpr, rows: tl.constexpr
):
    """The same, a product a class."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, width)
    own = tl.load(x + row[:, None] * width + column[None, :])
    for number in tl.static_range(classes):
        spread = tl.load(spreads + (number * width + column[:, None]) * width + column[None, :])
        turned = tl.dot(own, spread)
        tl.store(out + row * classes + number, tl.sum(turned * own.to(tl.float32), 1))


@triton.jit
def class_distances_roots_kernel(
    x, roots, out, classes: tl.constexpr, width: tl.constexpr, rows: tl.constexpr
):
    """The same by the matrices' roots: squares of one product's values, added up a class."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, width)
    own = tl.load(x + row[:, None] * width + column[None, :])
    all_columns = tl.arange(0, classes * width)
    root = tl.load(roots + column[:, None] * (classes * width) + all_columns[None, :])
    turned = tl.reshape(tl.dot(own, root), (rows, classes, width))
    at = row[:, None] * classes + tl.arange(0, classes)[None, :]
    tl.store(out + at, tl.sum(turned * turned, 2))


def class_distances(count: int = 524288, width: int = 32) -> tuple[dict[str, Run], Check]:
    classes = 4
    x = noise(count, width, dtype=torch.half)
    root = (noise(classes, width, width) * 0.5).half()
    spreads = (root.float() @ root.float().transpose(1, 2)).half().contiguous()
    roots = root.transpose(0, 1).reshape(width, classes * width).contiguous()
    out = torch.empty(count, classes, device="cuda")
    return {
        "flawed": lambda: class_distances_kernel[(count // 64,)](
            x, spreads, out, classes, width, 64, num_warps=4
        ),
        "dot": lambda: class_distances_dot_kernel[(count // 128,)](
            x, spreads, out, classes, width, 128, num_warps=4
        ),
        "roots": lambda: class_distances_roots_kernel[(count // 64,)](
            x, roots, out, classes, width, 64, num_warps=4
        ),
    }, lambda: out


# --- cameras' matrices ---


@triton.jit
def inverted(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3):
    """The inverse of a matrix of 4 x 4 by its minors."""
    s0, s1, s2 = a0 * b1 - b0 * a1, a0 * b2 - b0 * a2, a0 * b3 - b0 * a3
    s3, s4, s5 = a1 * b2 - b1 * a2, a1 * b3 - b1 * a3, a2 * b3 - b2 * a3
    c5, c4, m3 = c2 * d3 - d2 * c3, c1 * d3 - d1 * c3, c1 * d2 - d1 * c2
    m2, m1, m0 = c0 * d3 - d0 * c3, c0 * d2 - d0 * c2, c0 * d1 - d0 * c1
    r = 1.0 / (s0 * c5 - s1 * c4 + s2 * m3 + s3 * m2 - s4 * m1 + s5 * m0)
    return (
        (b1 * c5 - b2 * c4 + b3 * m3) * r,
        (-a1 * c5 + a2 * c4 - a3 * m3) * r,
        (d1 * s5 - d2 * s4 + d3 * s3) * r,
        (-c1 * s5 + c2 * s4 - c3 * s3) * r,
        (-b0 * c5 + b2 * m2 - b3 * m1) * r,
        (a0 * c5 - a2 * m2 + a3 * m1) * r,
        (-d0 * s5 + d2 * s2 - d3 * s1) * r,
        (c0 * s5 - c2 * s2 + c3 * s1) * r,
        (b0 * c4 - b1 * m2 + b3 * m0) * r,
        (-a0 * c4 + a1 * m2 - a3 * m0) * r,
        (d0 * s4 - d1 * s2 + d3 * s0) * r,
        (-c0 * s4 + c1 * s2 - c3 * s0) * r,
        (-b0 * m3 + b1 * m1 - b2 * m0) * r,
        (a0 * m3 - a1 * m1 + a2 * m0) * r,
        (-d0 * s3 + d1 * s1 - d2 * s0) * r,
        (c0 * s3 - c1 * s1 + c2 * s0) * r,
    )


@triton.jit
def cameras_kernel(x, out, pitch, step, block: tl.constexpr):
    """Matrices' inverses, a matrix a lane; an entry is ``step`` after the one before."""
    at = (tl.program_id(0) * block + tl.arange(0, block)) * pitch
    x += at
    out += at
    a0, a1, a2, a3 = tl.load(x), tl.load(x + step), tl.load(x + 2 * step), tl.load(x + 3 * step)
    b0, b1, b2, b3 = (
        tl.load(x + 4 * step),
        tl.load(x + 5 * step),
        tl.load(x + 6 * step),
        tl.load(x + 7 * step),
    )
    c0, c1 = tl.load(x + 8 * step), tl.load(x + 9 * step)
    c2, c3 = tl.load(x + 10 * step), tl.load(x + 11 * step)
    d0, d1 = tl.load(x + 12 * step), tl.load(x + 13 * step)
    d2, d3 = tl.load(x + 14 * step), tl.load(x + 15 * step)
    a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3 = inverted(
        a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3
    )
    tl.store(out, a0)
    tl.store(out + step, a1)
    tl.store(out + 2 * step, a2)
    tl.store(out + 3 * step, a3)
    tl.store(out + 4 * step, b0)
    tl.store(out + 5 * step, b1)
    tl.store(out + 6 * step, b2)
    tl.store(out + 7 * step, b3)
    tl.store(out + 8 * step, c0)
    tl.store(out + 9 * step, c1)
    tl.store(out + 10 * step, c2)
    tl.store(out + 11 * step, c3)
    tl.store(out + 12 * step, d0)
    tl.store(out + 13 * step, d1)
    tl.store(out + 14 * step, d2)
    tl.store(out + 15 * step, d3)


@triton.jit
def rows_of(value, block: tl.constexpr):
    """The four values of each of a tile's lines."""
    even, odd = tl.split(tl.reshape(value, (block, 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def line_of(first, second, third, fourth, block: tl.constexpr):
    """A tile's lines from their four values."""
    return tl.reshape(tl.join(tl.join(first, third), tl.join(second, fourth)), (block, 4))


@triton.jit
def cameras_split_kernel(x, out, block: tl.constexpr):
    """The same of a tile of whole rows, which is then taken apart."""
    at = (tl.program_id(0) * block + tl.arange(0, block)[:, None]) * 16 + tl.arange(0, 4)[None, :]
    a0, a1, a2, a3 = rows_of(tl.load(x + at), block)
    b0, b1, b2, b3 = rows_of(tl.load(x + at + 4), block)
    c0, c1, c2, c3 = rows_of(tl.load(x + at + 8), block)
    d0, d1, d2, d3 = rows_of(tl.load(x + at + 12), block)
    a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3 = inverted(
        a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3
    )
    tl.store(out + at, line_of(a0, a1, a2, a3, block))
    tl.store(out + at + 4, line_of(b0, b1, b2, b3, block))
    tl.store(out + at + 8, line_of(c0, c1, c2, c3, block))
    tl.store(out + at + 12, line_of(d0, d1, d2, d3, block))


def cameras(count: int = 1 << 20) -> tuple[dict[str, Run], Check]:
    x = (noise(count, 16) + 3.0 * torch.eye(4, device="cuda").reshape(1, 16)).contiguous()
    planes = x.t().contiguous()
    out, turned = torch.zeros_like(x), torch.zeros_like(planes)
    return {
        "flawed": lambda: cameras_kernel[(count // 128,)](x, out, 16, 1, 128, num_warps=4),
        "split": lambda: cameras_split_kernel[(count // 128,)](x, out, 128, num_warps=4),
        "planes": lambda: cameras_kernel[(count // 128,)](planes, turned, 1, count, 128, num_warps=4),
    }, lambda: (out + turned.t(), out.zero_(), turned.zero_())[0]


# --- how two pictures go together ---


@triton.jit
def joint_counts_kernel(fixed, moving, out, block: tl.constexpr):
    """How often each pair of 32 levels of one picture and 32 of another one is seen."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    level = (tl.load(fixed + at).to(tl.int32) >> 3) * 32 + (tl.load(moving + at).to(tl.int32) >> 3)
    tl.atomic_add(out + level, 1, sem="relaxed")


@triton.jit
def joint_counts_program_kernel(fixed, moving, out, part, block: tl.constexpr):
    """The same; a program counts ``part`` pixels first."""
    total = tl.zeros((1024,), tl.int32)
    first = tl.program_id(0) * part
    for start in range(first, first + part, block):
        at = start + tl.arange(0, block)
        level = (tl.load(fixed + at).to(tl.int32) >> 3) * 32 + (tl.load(moving + at).to(tl.int32) >> 3)
        total += tl.histogram(level, 1024)
    place = tl.arange(0, 1024)
    tl.atomic_add(out + place, total, mask=total > 0, sem="relaxed")


def joint_counts(height: int = 2048, width: int = 2048) -> tuple[dict[str, Run], Check]:
    y, x = torch.arange(height, device="cuda")[:, None], torch.arange(width, device="cuda")[None, :]
    waves = torch.sin(x * 0.011) * torch.cos(y * 0.007)
    fixed = (waves * 90.0 + 120.0 + noise(height, width) * 12.0).to(torch.uint8)
    moving = (200.0 - waves.roll(9, 1) * 70.0 - 70.0 + noise(width, height).t() * 12.0).to(torch.uint8)
    moving = moving.contiguous()
    programs, pixels = 1024, height * width
    out = torch.zeros(1024, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: joint_counts_kernel[(pixels // 1024,)](fixed, moving, out, 1024, num_warps=4),
        "program": lambda: joint_counts_program_kernel[(programs // 2,)](
            fixed, moving, out, pixels // programs * 2, 1024, num_warps=4
        ),
    }, lambda: (out.float(), out.zero_())[0]


# --- the brightest along each line of sight ---


@triton.jit
def sample_at(volume, x, y, z, side: tl.constexpr):
    """The nearest value of a volume."""
    at = (z.to(tl.int32) * side + y.to(tl.int32)) * side + x.to(tl.int32)
    return tl.load(volume + at).to(tl.float32)


@triton.jit
def brightest_kernel(volume, out, width, steps, tilt, slope, side: tl.constexpr, block: tl.constexpr):
    """The largest value on the way of each ray, which walks down and aside."""
    ray = tl.program_id(0) * block + tl.arange(0, block)
    x, y = (ray % width).to(tl.float32), (ray // width).to(tl.float32)
    most = tl.zeros((block,), tl.float32)
    for step in range(steps):
        down = step * 1.0
        most = tl.maximum(most, sample_at(volume, x + tilt * down, y + slope * down, down, side))
    tl.store(out + ray, most)


@triton.jit
def brightest_tile_kernel(
    volume, out, width, steps, tilt, slope, side: tl.constexpr, rows: tl.constexpr, block: tl.constexpr
):
    """The same, ``rows`` steps at a time."""
    ray = tl.program_id(0) * block + tl.arange(0, block)
    x, y = (ray % width).to(tl.float32)[None, :], (ray // width).to(tl.float32)[None, :]
    most = tl.zeros((rows, block), tl.float32)
    for step in range(0, steps, rows):
        down = (step + tl.arange(0, rows)[:, None]).to(tl.float32)
        most = tl.maximum(most, sample_at(volume, x + tilt * down, y + slope * down, down, side))
    tl.store(out + ray, tl.max(most, 0))


@triton.jit
def brightest_parts_kernel(volume, out, width, part, tilt, slope, side: tl.constexpr, block: tl.constexpr):
    """The same, a part of the way a program."""
    ray = tl.program_id(0) * block + tl.arange(0, block)
    x, y = (ray % width).to(tl.float32), (ray // width).to(tl.float32)
    most = tl.zeros((block,), tl.float32)
    first = tl.program_id(1) * part
    for step in tl.range(first, first + part, loop_unroll_factor=4):
        down = step * 1.0
        most = tl.maximum(most, sample_at(volume, x + tilt * down, y + slope * down, down, side))
    tl.atomic_max(out + ray, most)


def brightest(depth: int = 512, side: int = 256, width: int = 192) -> tuple[dict[str, Run], Check]:
    volume = noise(depth, side, side).abs().half()
    out = torch.zeros(width, width, device="cuda")
    rays, tilt, slope = width * width, (side - width - 2) / depth, (side - width - 5) / depth
    return {
        "flawed": lambda: brightest_kernel[(rays // 128,)](
            volume, out, width, depth, tilt, slope, side, 128, num_warps=4
        ),
        "tile": lambda: brightest_tile_kernel[(rays // 128,)](
            volume, out, width, depth, tilt, slope, side, 8, 128, num_warps=4
        ),
        "parts": lambda: brightest_parts_kernel[(rays // 128, 4)](
            volume, out, width, depth // 4, tilt, slope, side, 128, num_warps=4
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- two radar pictures from space ---


@triton.jit
def pair_of(words):
    """Real and imaginary parts, sixteen bits each."""
    return ((words << 16) >> 16).to(tl.float32), (words >> 16).to(tl.float32)


@triton.jit
def fringes_kernel(master, slave, out, block: tl.constexpr):
    """The difference of two complex pictures' phases."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    real, imaginary = pair_of(tl.load(master + at))
    other_real, other_imaginary = pair_of(tl.load(slave + at))
    turn = libdevice.atan2(imaginary, real) - libdevice.atan2(other_imaginary, other_real)
    turn -= 6.283185307 * tl.floor(turn * 0.1591549431 + 0.5)
    tl.store(out + at, turn.to(tl.float16))


@triton.jit
def fringes_product_kernel(master, slave, out, block: tl.constexpr):
    """The same as the phase of a product."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    real, imaginary = pair_of(tl.load(master + at))
    other_real, other_imaginary = pair_of(tl.load(slave + at))
    along = real * other_real + imaginary * other_imaginary
    aside = imaginary * other_real - real * other_imaginary
    tl.store(out + at, libdevice.atan2(aside, along).to(tl.float16))


@triton.jit
def fringes_series_kernel(master, slave, out, block: tl.constexpr):
    """The same by a short series for an eighth of a turn."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    real, imaginary = pair_of(tl.load(master + at))
    other_real, other_imaginary = pair_of(tl.load(slave + at))
    along = real * other_real + imaginary * other_imaginary
    aside = imaginary * other_real - real * other_imaginary
    width, height = tl.abs(along), tl.abs(aside)
    ratio = tl.minimum(width, height) / tl.maximum(tl.maximum(width, height), 1e-20)
    square = ratio * ratio
    turn = -0.0117212 * square + 0.05265332
    turn = turn * square - 0.11643287
    turn = turn * square + 0.19354346
    turn = turn * square - 0.33262347
    turn = (turn * square + 0.99997726) * ratio
    turn = tl.where(height > width, 1.570796327 - turn, turn)
    turn = tl.where(along < 0.0, 3.141592654 - turn, turn)
    tl.store(out + at, tl.where(aside < 0.0, -turn, turn).to(tl.float16))


def fringes(count: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    size, angle = noise(count) * 3000.0 + 5000.0, noise(count) * 3.1
    behind = angle - torch.sin(torch.arange(count, device="cuda") * 1e-4) * 2.0

    def stored(turn: torch.Tensor) -> torch.Tensor:
        parts = torch.stack((size * torch.cos(turn), size * torch.sin(turn)), 1)
        return parts.to(torch.int16).view(torch.int32).reshape(count)

    master, slave = stored(angle), stored(behind)
    out = torch.empty(count, device="cuda", dtype=torch.half)
    grid = (count // 1024,)
    return {
        "flawed": lambda: fringes_kernel[grid](master, slave, out, 1024, num_warps=4),
        "product": lambda: fringes_product_kernel[grid](master, slave, out, 1024, num_warps=4),
        "series": lambda: fringes_series_kernel[grid](master, slave, out, 1024, num_warps=4),
    }, lambda: out


# --- a key of encrypted numbers changed for another ---


@triton.jit
def keys_changed_kernel(digits, keys, primes, out, numbers, count: tl.constexpr, block: tl.constexpr):
    """Sums of ``count`` digits times keys, modulo a prime a row."""
    row = tl.program_id(1)
    size = tl.num_programs(0) * block
    prime = tl.load(primes + row)
    at = row * size + tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.int64)
    for digit in tl.static_range(count):
        value = tl.load(digits + digit * numbers + at).to(tl.int64)
        total = (total + value * tl.load(keys + digit * numbers + at).to(tl.int64) % prime) % prime
    tl.store(out + at, total.to(tl.int32))


@triton.jit
def keys_changed_late_kernel(digits, keys, primes, out, numbers, count: tl.constexpr, block: tl.constexpr):
    """The same, products below two to the 60th added up first."""
    row = tl.program_id(1)
    size = tl.num_programs(0) * block
    prime = tl.load(primes + row)
    at = row * size + tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.int64)
    for digit in tl.static_range(count):
        value = tl.load(digits + digit * numbers + at).to(tl.int64)
        total += value * tl.load(keys + digit * numbers + at).to(tl.int64)
    tl.store(out + at, (total % prime).to(tl.int32))


@triton.jit
def keys_changed_inverse_kernel(
    digits, keys, primes, inverses, out, numbers, count: tl.constexpr, block: tl.constexpr
):
    """The same; what is left of the sum by a product with two to the 64th over the prime."""
    row = tl.program_id(1)
    size = tl.num_programs(0) * block
    prime, inverse = tl.load(primes + row).to(tl.uint64), tl.load(inverses + row).to(tl.uint64)
    at = row * size + tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.uint64)
    for digit in tl.static_range(count):
        value = tl.load(digits + digit * numbers + at).to(tl.uint64)
        total += value * tl.load(keys + digit * numbers + at).to(tl.uint64)
    left = total - tl.umulhi(total, tl.zeros((block,), tl.uint64) + inverse) * prime
    tl.store(out + at, tl.where(left >= prime, left - prime, left).to(tl.int32))


def keys_changed(rows: int = 16, size: int = 131072, count: int = 7) -> tuple[dict[str, Run], Check]:
    list_of = [1073479681 - 65536 * k for k in range(rows)]
    primes = torch.tensor(list_of, device="cuda", dtype=torch.int64)
    inverses = torch.tensor([(1 << 64) // prime for prime in list_of], device="cuda", dtype=torch.int64)
    digits = (noise(count, rows, size).abs() * 1.07e9).to(torch.int32)
    keys = digits.flip(2).contiguous()
    out = torch.empty(rows, size, device="cuda", dtype=torch.int32)
    grid, numbers = (size // 512, rows), rows * size
    return {
        "flawed": lambda: keys_changed_kernel[grid](
            digits, keys, primes, out, numbers, count, 512, num_warps=4
        ),
        "late": lambda: keys_changed_late_kernel[grid](
            digits, keys, primes, out, numbers, count, 512, num_warps=4
        ),
        "inverse": lambda: keys_changed_inverse_kernel[grid](
            digits, keys, primes, inverses, out, numbers, count, 512, num_warps=4
        ),
    }, out.double


# --- what two telescopes hear, made to agree ---


@triton.jit
def turned_samples_kernel(
    real,
    imaginary,
    delays,
    frequencies,
    new_real,
    new_imaginary,
    times,
    way: tl.constexpr,
    block: tl.constexpr,
):
    """Complex samples of a channel turned back by its frequency times each moment's delay."""
    time = tl.program_id(0) * block + tl.arange(0, block)
    at = tl.program_id(1) * times + time
    delay, frequency = tl.load(delays + time), tl.load(frequencies + tl.program_id(1))
    if way == "angles":
        angle = 6.283185307179586 * (delay * frequency.to(tl.float64))
        across, up = tl.cos(angle).to(tl.float32), tl.sin(angle).to(tl.float32)
    elif way == "turns":
        turns = delay * frequency.to(tl.float64)
        short = (turns - tl.floor(turns + 0.5)).to(tl.float32) * 6.2831853
        across, up = tl.cos(short), tl.sin(short)
    else:
        turns = (delay * frequency.to(tl.int64)) >> 32
        short = turns.to(tl.int32).to(tl.float32) * 1.4629180792671596e-09
        across, up = tl.cos(short), tl.sin(short)
    x, y = tl.load(real + at), tl.load(imaginary + at)
    tl.store(new_real + at, x * across + y * up)
    tl.store(new_imaginary + at, y * across - x * up)


def turned_samples(channels: int = 512, times: int = 16384) -> tuple[dict[str, Run], Check]:
    samples = noise(2, channels, times)
    delays = torch.arange(times, device="cuda", dtype=torch.float64) * 3.1e-8 + 1.23456789e-5
    whole = (delays * 2.0**64).to(torch.int64)
    frequencies = 1_200_000_000 + 390_625 * torch.arange(channels, device="cuda", dtype=torch.int32)
    out = torch.empty_like(samples)

    def side(way: str, late: torch.Tensor) -> Run:
        return lambda: turned_samples_kernel[(times // 512, channels)](
            samples[0], samples[1], late, frequencies, out[0], out[1], times, way, 512, num_warps=4
        )

    return {
        "flawed": side("angles", delays),
        "turns": side("turns", delays),
        "whole": side("whole", whole),
    }, lambda: out


# --- a layer norm's gradients ---


@triton.jit
def norm_gradients_kernel(
    x, slopes, weights, means, scales, new_slopes, partial, rows, kept: tl.constexpr, columns: tl.constexpr
):
    """Gradients of rows and a program's part of weights' and biases'; a program takes every so manieth row."""
    column = tl.arange(0, columns)
    weight = tl.load(weights + column)
    total = tl.zeros((columns,), tl.float32)
    plain = tl.zeros((columns,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = row * columns + column
        scale = tl.load(scales + row)
        value = (tl.load(x + at).to(tl.float32) - tl.load(means + row)) * scale
        slope = tl.load(slopes + at).to(tl.float32)
        total += slope * value
        plain += slope
        if kept:
            slope *= weight
        else:
            slope *= tl.load(weights + column)
        share = tl.sum(slope * value, 0) / columns
        rest = slope - tl.sum(slope, 0) / columns
        tl.store(new_slopes + at, ((rest - value * share) * scale).to(tl.float16))
    own = partial + tl.program_id(0) * 2 * columns + column
    tl.store(own, total)
    tl.store(own + columns, plain)


def norm_gradients(rows: int = 8192, columns: int = 8192, each: int = 132) -> tuple[dict[str, Run], Check]:
    x, weights = noise(rows, columns, dtype=torch.half), noise(columns) + 1.5
    slopes = x.flip(1).contiguous()
    means, scales = x.float().mean(1), torch.rsqrt(x.float().var(1) + 1e-6)
    new = torch.empty_like(x)
    partial = torch.zeros(3 * each, 2, columns, device="cuda")

    def side(kept: bool, warps: int, programs: int, most: int | None = None) -> Run:
        return lambda: norm_gradients_kernel[(programs * each,)](
            x,
            slopes,
            weights,
            means,
            scales,
            new,
            partial,
            rows,
            kept,
            columns,
            num_warps=warps,
            maxnreg=most,
        )

    def found() -> torch.Tensor:
        sums = partial.sum(0).flatten() / 64.0
        partial.zero_()
        return torch.cat((new.float().flatten(), sums))

    return {
        "flawed": side(True, 4, 3, 168),
        "sixteen": side(True, 16, 1),
        "weights_again": side(False, 8, 1),
    }, found


# --- waves of gravity kept smooth ---


@triton.jit
def smoothed_kernel(u, out, strength, plane, block: tl.constexpr):
    """Values less a share of their fourth difference over depth; a plane's programs follow one another."""
    at = (tl.program_id(1) + 2) * plane + tl.program_id(0) * block + tl.arange(0, block)
    own = tl.load(u + at)
    far = tl.load(u + at - 2 * plane) + tl.load(u + at + 2 * plane)
    near = tl.load(u + at - plane) + tl.load(u + at + plane)
    tl.store(out + at, own - strength * (far - 4.0 * near + 6.0 * own))


@triton.jit
def smoothed_depth_kernel(u, out, strength, plane, block: tl.constexpr):
    """The same, programs of all depths follow one another."""
    at = (tl.program_id(0) + 2) * plane + tl.program_id(1) * block + tl.arange(0, block)
    own = tl.load(u + at)
    far = tl.load(u + at - 2 * plane) + tl.load(u + at + 2 * plane)
    near = tl.load(u + at - plane) + tl.load(u + at + plane)
    tl.store(out + at, own - strength * (far - 4.0 * near + 6.0 * own))


@triton.jit
def smoothed_walk_kernel(u, out, strength, plane, planes, block: tl.constexpr):
    """The same, a program walks down and keeps five values."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    first, second = tl.load(u + at), tl.load(u + at + plane)
    third, fourth = tl.load(u + at + 2 * plane), tl.load(u + at + 3 * plane)
    for _ in range(2, planes - 2):
        fifth = tl.load(u + at + 4 * plane)
        near = second + fourth
        tl.store(out + at + 2 * plane, third - strength * (first + fifth - 4.0 * near + 6.0 * third))
        first, second, third, fourth = second, third, fourth, fifth
        at += plane


def smoothed(planes: int = 24, plane: int = 1 << 22) -> tuple[dict[str, Run], Check]:
    u = noise(planes, plane)
    out = torch.zeros_like(u)
    return {
        "flawed": lambda: smoothed_kernel[(plane // 1024, planes - 4)](
            u, out, 0.03, plane, 1024, num_warps=4
        ),
        "depth": lambda: smoothed_depth_kernel[(planes - 4, plane // 1024)](
            u, out, 0.03, plane, 1024, num_warps=4
        ),
        "walk": lambda: smoothed_walk_kernel[(plane // 512,)](u, out, 0.03, plane, planes, 512, num_warps=4),
    }, lambda: out


# --- a sender's power shared out ---


@triton.jit
def water_kernel(noises, out, power, steps, columns: tl.constexpr):
    """Powers of a row of carriers: what a common level exceeds their noise by; the level by halving."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(noises + at)
    low = tl.min(value, 0)
    high = low + power
    for _ in range(steps):
        level = 0.5 * (low + high)
        spent = tl.sum(tl.maximum(level - value, 0.0), 0)
        low = tl.where(spent > power, low, level)
        high = tl.where(spent > power, level, high)
    tl.store(out + at, tl.maximum(0.5 * (low + high) - value, 0.0))


@triton.jit
def water_steps_kernel(noises, out, power, columns: tl.constexpr):
    """The same; the level falls to what those above it leave, until none is below."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(noises + at)
    level = (power + tl.sum(value, 0)) / columns
    before = level + 1.0
    while level < before:
        before = level
        taken = value < level
        count = tl.sum(taken.to(tl.float32), 0)
        level = tl.minimum((power + tl.sum(tl.where(taken, value, 0.0), 0)) / count, before)
    tl.store(out + at, tl.maximum(level - value, 0.0))


def water(rows: int = 16384, columns: int = 1024) -> tuple[dict[str, Run], Check]:
    noises = noise(rows, columns).square() * 8.0 + 0.1
    out = torch.empty_like(noises)
    grid, power = (rows,), 200.0
    return {
        "flawed": lambda: water_kernel[grid](noises, out, power, 28, columns, num_warps=8),
        "one_warp": lambda: water_kernel[grid](noises, out, power, 28, columns, num_warps=1),
        "steps": lambda: water_steps_kernel[grid](noises, out, power, columns, num_warps=4),
    }, lambda: out


# --- without a flaw ---


@triton.jit
def student_loss_kernel(student, teacher, out, heat, columns: tl.constexpr):
    """How far a student's choices are from a teacher's, both made softer."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    own = tl.load(student + at).to(tl.float32) * heat
    wanted = tl.load(teacher + at).to(tl.float32) * heat
    own -= tl.max(own, 0)
    wanted -= tl.max(wanted, 0)
    weight = tl.exp2(wanted)
    total = tl.sum(weight, 0)
    gap = tl.sum(weight * (wanted - own), 0) / total
    found = gap + tl.log2(tl.sum(tl.exp2(own), 0)) - tl.log2(total)
    tl.store(out + tl.program_id(0), found * 0.6931471806)


def student_loss(rows: int = 16384, columns: int = 4096) -> tuple[dict[str, Run], Check]:
    student = (noise(rows, columns) * 6.0).half()
    teacher = student.flip(1).contiguous()
    out = torch.empty(rows, device="cuda")
    return {
        "sound": lambda: student_loss_kernel[(rows,)](
            student, teacher, out, 0.72134752, columns, num_warps=8
        ),
    }, lambda: out


@triton.jit
def thermostat_kernel(speeds, forces, kicks, new_speeds, kept, pushed, kicked, block: tl.constexpr):
    """Particles' velocities after a step in a bath."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    speed = kept * tl.load(speeds + at) + pushed * tl.load(forces + at)
    tl.store(new_speeds + at, speed + kicked * tl.load(kicks + at).to(tl.float32))


def thermostat(count: int = 3 << 23) -> tuple[dict[str, Run], Check]:
    speeds, kicks = noise(count), noise(count, dtype=torch.half)
    forces = speeds.flip(0).contiguous()
    out = torch.empty_like(speeds)
    return {
        "sound": lambda: thermostat_kernel[(count // 1024,)](
            speeds, forces, kicks, out, 0.98, 0.01, 0.2, 1024, num_warps=4
        ),
    }, lambda: out


STUDIES = (
    Study(
        "triton_eeg_low_pass_loads_each_tap",
        "a filter of 32 taps over 65536 steps of 512 channels, half, in Triton",
        "each of a sum's 32 values is loaded for each step anew",
        (("band", "a product with a matrix of the taps", ("redundant_loads", "tensor_cores_idle")),),
        low_pass,
        tolerance=2e-3,
        domain="signals",
    ),
    Study(
        "triton_gas_seen_busiest_tiles_last",
        "a picture of 2048 x 1024 pixels from some 900 thousand particles in lists of 64 to 1700 a tile, in Triton",
        "a program a tile, and those with the longest lists come last",
        (
            ("order", "tiles of the longest lists first", ("workload_imbalance",)),
            ("parts", "128 particles of a list a program, added by atomics", ("workload_imbalance",)),
        ),
        gas,
        domain="astronomy",
    ),
    Study(
        "triton_class_distances_as_sums",
        "squared Mahalanobis distances of 524288 vectors of 32 half values to four classes, in Triton",
        "products of half matrices as sums of floats",
        (
            ("dot", "a product a class by tensor cores", ("tensor_cores_idle",)),
            ("roots", "one product with the roots of all, whose squares are added", ("tensor_cores_idle",)),
        ),
        class_distances,
        tolerance=2e-3,
        domain="statistics",
    ),
    Study(
        "triton_camera_matrices_a_record_a_lane",
        "inverses of 1048576 matrices of 4 x 4 floats in Triton",
        "a matrix a lane: loads and stores lie 64 bytes apart",
        (
            (
                "split",
                "rows of four loaded together and taken apart",
                ("uncoalesced_access", "narrow_access"),
            ),
            ("planes", "matrices stored entry by entry", ("uncoalesced_access",)),
        ),
        cameras,
        domain="vision",
    ),
    Study(
        "triton_joint_counts_atomic_each_pixel",
        "how often each pair of 32 levels is seen in two pictures of 4194304 pixels, in Triton",
        "an atomic in one table for each pixel",
        (("program", "a program counts 8192 pixels first", ("global_atomics",)),),
        joint_counts,
        tolerance=0.0,
        domain="images",
    ),
    Study(
        "triton_brightest_on_the_way_step_by_step",
        "the largest of 512 values on the way of 36864 rays through a volume of 256 x 256 x 512, half, in Triton",
        "a ray a lane, step by step: too few loads are under way in nine warps of a multiprocessor",
        (
            ("tile", "eight steps at a time", ("memory_latency",)),
            ("parts", "a fourth of the way a program, four steps unrolled", ("memory_latency", "small_grid")),
        ),
        brightest,
        tolerance=0.0,
        domain="medicine",
    ),
    Study(
        "triton_radar_fringes_two_arc_tangents",
        "differences of the phases of 33554432 pairs of complex pixels of 16 bits, in Triton",
        "a precise arc tangent for each of both pictures",
        (
            ("product", "one arc tangent of a product", ("expensive_math",)),
            ("series", "a product and a short series", ("expensive_math",)),
        ),
        fringes,
        tolerance=2e-3,
        domain="geodesy",
    ),
    Study(
        "triton_key_switch_remainder_each_product",
        "sums of seven products modulo 16 primes for 131072 coefficients, in Triton",
        "two remainders of 64 bits for each product",
        (
            ("late", "one remainder of the sum", ("integer_arithmetic",)),
            ("inverse", "the sum's remainder by a product with the prime's inverse", ("integer_arithmetic",)),
        ),
        keys_changed,
        tolerance=0.0,
        domain="cryptography",
    ),
    Study(
        "triton_fringes_stopped_in_double",
        "8388608 complex samples of 512 channels turned by frequency times delay, in Triton",
        "sine and cosine in double, as the angles are large",
        (
            ("turns", "only the product in double, its fraction in float", ("double_precision",)),
            ("whole", "delays as fractions of 64 bits, whose product wraps", ("double_precision",)),
        ),
        turned_samples,
        domain="astronomy",
    ),
    Study(
        "triton_norm_gradients_row_in_four_warps",
        "gradients of a layer norm of 8192 rows of 8192 half values, its weights and biases, in Triton",
        "a row, its slopes, weights and two sums, 64 of each a lane, kept to 168 registers for three programs",
        (
            ("sixteen", "sixteen warps a program", ("local_memory",)),
            ("weights_again", "eight warps, weights loaded again for each row", ("local_memory",)),
        ),
        norm_gradients,
        tolerance=2e-3,
        domain="training",
    ),
    Study(
        "triton_smoothed_over_depth_plane_by_plane",
        "fourth differences over 24 planes of 4194304 floats, in Triton",
        "programs go plane by plane: five planes of 16 MB do not stay in L2",
        (
            ("depth", "programs of all depths follow one another", ("cache_locality",)),
            ("walk", "a program walks down and keeps five values", ("cache_locality", "redundant_loads")),
        ),
        smoothed,
        domain="physics",
    ),
    Study(
        "triton_water_level_halved_by_eight_warps",
        "powers of 1024 carriers from a common level, 16384 rows, in Triton",
        "28 sums over eight warps, one after the other",
        (
            ("one_warp", "a warp a row", ("barriers",)),
            ("steps", "the level from those below it: few sums", ("barriers",)),
        ),
        water,
        domain="communications",
    ),
    Study(
        "sound_triton_student_and_teacher",
        "how far 16384 rows of 4096 half logits are from others, in Triton",
        "",
        (),
        student_loss,
        domain="training",
    ),
    Study(
        "sound_triton_thermostat",
        "velocities of 8388608 particles (three components) after a step in a bath, in Triton",
        "",
        (),
        thermostat,
        domain="chemistry",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
