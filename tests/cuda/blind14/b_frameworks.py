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

# --- products and distances ---


@triton.jit
def features_by_sums_kernel(
    x, weights, phases, out, depth, outputs, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """Cosines of random projections; a projection as a sum of products."""
    row, column = tl.program_id(1) * tall + tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, depth, deep):
        left = tl.load(x + row[:, None] * depth + start + inner[None, :])
        right = tl.load(weights + column[:, None] * depth + start + inner[None, :])
        total += tl.sum(left[:, None, :].to(tl.float32) * right[None, :, :].to(tl.float32), 2)
    value = tl.cos(total + tl.load(phases + column)[None, :])
    tl.store(out + row[:, None] * outputs + column[None, :], value.to(tl.float16))


@triton.jit
def features_by_dot_kernel(
    x, weights, phases, out, depth, outputs, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    row, column = tl.program_id(1) * tall + tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, depth, deep):
        left = tl.load(x + row[:, None] * depth + start + inner[None, :])
        right = tl.load(weights + column[:, None] * depth + start + inner[None, :])
        total = tl.dot(left, tl.trans(right), total)
    value = tl.cos(total + tl.load(phases + column)[None, :])
    tl.store(out + row[:, None] * outputs + column[None, :], value.to(tl.float16))


def fourier_features(rows: int = 8192, depth: int = 256, outputs: int = 1024) -> tuple[dict[str, Run], Check]:
    x, weights = noise(rows, depth, dtype=torch.half), noise(outputs, depth, dtype=torch.half) * 0.2
    phases = noise(outputs) * 3.14159
    out = torch.empty(rows, outputs, device="cuda", dtype=torch.half)

    def dots(tall: int, wide: int, warps: int) -> Run:
        return lambda: features_by_dot_kernel[(outputs // wide, rows // tall)](
            x, weights, phases, out, depth, outputs, tall, wide, 32, num_warps=warps, num_stages=3
        )

    sides: dict[str, Run] = {
        "flawed": lambda: features_by_sums_kernel[(outputs // 32, rows // 32)](
            x, weights, phases, out, depth, outputs, 32, 32, 16, num_warps=4
        ),
        "dot": dots(32, 32, 4),
        "dot_bigger_tile": dots(128, 64, 4),
    }
    return sides, lambda: out


@triton.jit
def manhattan_kernel(x, y, out, features, others, tall: tl.constexpr, wide: tl.constexpr):
    """Sums of absolute differences of rows of both matrices, which are stored feature by feature."""
    row, column = tl.program_id(1) * tall + tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    rows = tl.num_programs(1) * tall
    total = tl.zeros((tall, wide), tl.float32)
    for feature in range(features):
        left, right = tl.load(x + feature * rows + row), tl.load(y + feature * others + column)
        total += tl.abs(left[:, None] - right[None, :])
    tl.store(out + row[:, None] * others + column[None, :], total)


def manhattan(rows: int = 4096, others: int = 8192, features: int = 48) -> tuple[dict[str, Run], Check]:
    x, y = noise(features, rows), noise(features, others) * 0.5
    out = torch.empty(rows, others, device="cuda")

    def run(tall: int, wide: int, warps: int) -> Run:
        return lambda: manhattan_kernel[(others // wide, rows // tall)](
            x, y, out, features, others, tall, wide, num_warps=warps
        )

    return {
        "flawed": run(4, 64, 4),
        "square": run(64, 64, 4),
        "wide": run(32, 128, 4),
    }, lambda: out


@triton.jit
def style_kernel(
    x,
    out,
    places,
    length,
    channels: tl.constexpr,
    tile: tl.constexpr,
    deep: tl.constexpr,
    parts: tl.constexpr,
):
    """Products of a picture's channels with one another over all places, or over a part of them."""
    across: tl.constexpr = channels // tile
    picture = tl.program_id(1)
    row = tl.program_id(0) // across * tile + tl.arange(0, tile)
    column = tl.program_id(0) % across * tile + tl.arange(0, tile)
    inner = tl.arange(0, deep)
    first = tl.program_id(2) * length
    plane = x + picture * channels * places
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(first, first + length, deep):
        left = tl.load(plane + row[:, None] * places + start + inner[None, :])
        right = tl.load(plane + column[:, None] * places + start + inner[None, :])
        total = tl.dot(left, tl.trans(right), total)
    at = out + (picture * channels + row[:, None]) * channels + column[None, :]
    if parts == 1:
        tl.store(at, total / places)
    else:
        tl.atomic_add(at, total / places, sem="relaxed")


def style(pictures: int = 8, places: int = 65536) -> tuple[dict[str, Run], Check]:
    channels = 128
    x = (noise(pictures, channels, places) + 0.3).half()
    out = torch.zeros(pictures, channels, channels, device="cuda")

    def run(tile: int, parts: int) -> Run:
        return lambda: style_kernel[((channels // tile) ** 2, pictures, parts)](
            x, out, places, places // parts, channels, tile, 64, parts, num_warps=4, num_stages=3
        )

    sides: dict[str, Run] = {"flawed": run(64, 1), "parts": run(64, 16), "whole_parts": run(128, 32)}
    return sides, lambda: (out.clone(), out.zero_())[0]


# --- statistics and time ---


@triton.jit
def channel_moments_kernel(x, out, steps, channels: tl.constexpr, tall: tl.constexpr):
    """Sums and sums of squares of channels over some rows, added to those of all."""
    channel = tl.arange(0, channels)
    total, squares = tl.zeros((channels,), tl.float32), tl.zeros((channels,), tl.float32)
    first = tl.program_id(0) * steps * tall
    for step in range(steps):
        row = first + step * tall + tl.arange(0, tall)
        value = tl.load(x + row[:, None] * channels + channel[None, :]).to(tl.float32)
        total += tl.sum(value, 0)
        squares += tl.sum(value * value, 0)
    tl.atomic_add(out + channel, total, sem="relaxed")
    tl.atomic_add(out + channels + channel, squares, sem="relaxed")


def channel_moments(rows: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    channels = 128
    x = (noise(rows, channels) + 0.5).half()
    out = torch.zeros(2, channels, device="cuda")

    def run(steps: int, tall: int) -> Run:
        return lambda: channel_moments_kernel[(rows // (steps * tall),)](
            x, out, steps, channels, tall, num_warps=4
        )

    sides: dict[str, Run] = {"flawed": run(1, 32), "sixteen_steps": run(16, 32), "taller": run(8, 64)}
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def time_features_double_kernel(stamps, out, count, block: tl.constexpr):
    """Sine and cosine of the time of day and of the week, from microseconds since 1970."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    seconds = tl.load(stamps + at).to(tl.float64) * 1e-6
    day, week = seconds / 86400.0, seconds / 604800.0
    of_day = (day - tl.floor(day)) * 6.283185307179586
    of_week = (week - tl.floor(week)) * 6.283185307179586
    tl.store(out + at, tl.sin(of_day).to(tl.float32))
    tl.store(out + count + at, tl.cos(of_day).to(tl.float32))
    tl.store(out + 2 * count + at, tl.sin(of_week).to(tl.float32))
    tl.store(out + 3 * count + at, tl.cos(of_week).to(tl.float32))


@triton.jit
def time_features_half_kernel(stamps, out, count, block: tl.constexpr):
    """The same; turns in double, angles in float."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    seconds = tl.load(stamps + at).to(tl.float64) * 1e-6
    day, week = seconds * (1.0 / 86400.0), seconds * (1.0 / 604800.0)
    of_day = (day - tl.floor(day)).to(tl.float32) * 6.283185307179586
    of_week = (week - tl.floor(week)).to(tl.float32) * 6.283185307179586
    tl.store(out + at, tl.sin(of_day))
    tl.store(out + count + at, tl.cos(of_day))
    tl.store(out + 2 * count + at, tl.sin(of_week))
    tl.store(out + 3 * count + at, tl.cos(of_week))


@triton.jit
def time_features_whole_kernel(stamps, out, count, block: tl.constexpr):
    """The same; what is left of whole days and weeks as integers, all else in float."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    stamp = tl.load(stamps + at)
    of_week = stamp % 604800000000
    of_day = of_week % 86400000000
    day = of_day.to(tl.float32) * (6.283185307179586 / 86400000000)
    week = of_week.to(tl.float32) * (6.283185307179586 / 604800000000)
    tl.store(out + at, tl.sin(day))
    tl.store(out + count + at, tl.cos(day))
    tl.store(out + 2 * count + at, tl.sin(week))
    tl.store(out + 3 * count + at, tl.cos(week))


def time_features(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    stamps = ((noise(count, dtype=torch.float64) + 1.0) * 8e14).long()
    out = torch.empty(4, count, device="cuda")

    def run(kernel: triton.runtime.JITFunction) -> Run:
        return lambda: kernel[(count // 512,)](stamps, out, count, 512, num_warps=4)

    sides: dict[str, Run] = {
        "flawed": run(time_features_double_kernel),
        "angles_in_float": run(time_features_half_kernel),
        "whole_numbers": run(time_features_whole_kernel),
    }
    return sides, lambda: out


# --- models ---


@triton.jit
def modulated_kernel(x, scales, shifts, out, tokens, width, block: tl.constexpr):
    """Each picture's tokens scaled and shifted by its own vectors; token and feature of each value by division."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    feature, picture = at % width, at // width // tokens
    value = tl.load(x + at).to(tl.float32)
    scale = tl.load(scales + picture * width + feature).to(tl.float32)
    shift = tl.load(shifts + picture * width + feature).to(tl.float32)
    tl.store(out + at, (value * (1.0 + scale) + shift).to(tl.float16))


@triton.jit
def modulated_rows_kernel(x, scales, shifts, out, tokens, width, block: tl.constexpr, walk: tl.constexpr):
    """The same for some tokens of a picture: its vectors are loaded once."""
    feature = tl.program_id(0) * block + tl.arange(0, block)
    inside = feature < width
    picture, first = tl.program_id(2), tl.program_id(1) * walk
    scale = 1.0 + tl.load(scales + picture * width + feature, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(shifts + picture * width + feature, mask=inside, other=0.0).to(tl.float32)
    for token in range(first, first + walk):
        at = (picture * tokens + token) * width + feature
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + at, (value * scale + shift).to(tl.float16), mask=inside)


def modulated(pictures: int = 64, tokens: int = 1024, width: int = 1152) -> tuple[dict[str, Run], Check]:
    x, vectors = noise(pictures, tokens, width, dtype=torch.half), noise(2, pictures, width, dtype=torch.half)
    scales, shifts = vectors[0], vectors[1]
    out = torch.empty_like(x)

    def rows(block: int, walk: int, warps: int) -> Run:
        return lambda: modulated_rows_kernel[(triton.cdiv(width, block), tokens // walk, pictures)](
            x, scales, shifts, out, tokens, width, block, walk, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: modulated_kernel[(x.numel() // 512,)](
            x, scales, shifts, out, tokens, width, 512, num_warps=16
        ),
        "walk": rows(128, 16, 1),
        "walk_a_little": rows(256, 4, 1),
    }
    return sides, lambda: out


@triton.jit
def channel_norm_kernel(
    x, weights, out, places, channels: tl.constexpr, padded: tl.constexpr, tile: tl.constexpr
):
    """Each place's channels made of mean zero and variance one; planes lie channel by channel."""
    channel, place = tl.arange(0, padded), tl.program_id(0) * tile + tl.arange(0, tile)
    inside = (channel < channels)[:, None] & (place < places)[None, :]
    at = (tl.program_id(1) * channels + channel)[:, None] * places + place[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / channels
    off = tl.where(inside, value - mean[None, :], 0.0)
    scale = tl.rsqrt(tl.sum(off * off, 0) / channels + 1e-6)
    weight = tl.load(weights + channel, mask=channel < channels, other=0.0)
    tl.store(out + at, (off * scale[None, :] * weight[:, None]).to(tl.float16), mask=inside)


def channel_norm(pictures: int = 32, channels: int = 192, side: int = 56) -> tuple[dict[str, Run], Check]:
    places = side * side
    x, weights = noise(pictures, channels, places, dtype=torch.half), noise(channels)
    out = torch.empty_like(x)

    def run(tile: int, warps: int) -> Run:
        return lambda: channel_norm_kernel[(triton.cdiv(places, tile), pictures)](
            x, weights, out, places, channels, 256, tile, num_warps=warps
        )

    return {"flawed": run(2, 4), "sixteen": run(16, 4), "sixty_four": run(64, 16)}, lambda: out


@triton.jit
def quantile_clip_kernel(back, lower, upper, out, block: tl.constexpr):
    """Gradients kept between two bounds for each block of 4096."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    low, high = tl.load(lower + tl.program_id(0)), tl.load(upper + tl.program_id(0))
    tl.store(out + at, tl.minimum(tl.maximum(tl.load(back + at), low), high))


def quantile_clip(count: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    back, out = noise(count), torch.empty(count, device="cuda")
    upper = noise(count // 4096).abs() * 0.5 + 0.25
    lower = -upper
    return {
        "sound": lambda: quantile_clip_kernel[(count // 4096,)](back, lower, upper, out, 4096, num_warps=8)
    }, lambda: out


STUDIES = (
    Study(
        "triton_fourier_features_as_sums",
        "1024 random Fourier features of 8192 vectors of 256 half values, in Triton",
        "projections as sums of products, which tensor cores do not do",
        (
            ("dot", "tl.dot, same tiles", ("tensor_cores_idle",)),
            ("dot_bigger_tile", "tl.dot, tiles of 128 x 64", ("tensor_cores_idle", "redundant_loads")),
        ),
        fourier_features,
        tolerance=2e-3,
    ),
    Study(
        "triton_manhattan_distances_four_rows_a_program",
        "sums of absolute differences of 4096 and 8192 vectors of 48 floats, in Triton",
        "tiles of 4 x 64: two values loaded by every thread for two differences",
        (
            ("square", "tiles of 64 x 64", ("redundant_loads",)),
            ("wide", "tiles of 32 x 128", ("redundant_loads",)),
        ),
        manhattan,
        domain="search",
    ),
    Study(
        "triton_style_matrices_32_programs",
        "products of 128 channels with one another over 65536 places, 8 pictures, half, in Triton",
        "32 programs, each through all places of a picture for 64 x 64 pairs of channels",
        (
            ("parts", "places in sixteen parts, added by atomics", ("small_grid",)),
            (
                "whole_parts",
                "places in 32 parts, all pairs of channels a program",
                ("small_grid", "redundant_loads"),
            ),
        ),
        style,
        tolerance=2e-3,
        domain="images",
    ),
    Study(
        "triton_channel_moments_of_32_rows",
        "sums and sums of squares of 128 channels over 524288 rows of half values, in Triton",
        "a program takes 32 rows only, then adds 256 sums to the same words as all others by atomics",
        (
            ("sixteen_steps", "a program takes 512 rows, in steps of 32", ("global_atomics",)),
            ("taller", "a program takes 512 rows, in steps of 64", ("global_atomics",)),
        ),
        channel_moments,
    ),
    Study(
        "triton_time_of_week_in_double",
        "sine and cosine of the time of day and of the week of 16777216 stamps in microseconds, in Triton",
        "turns, angles, sines and cosines in double",
        (
            ("angles_in_float", "turns in double, angles in float", ("double_precision", "expensive_math")),
            (
                "whole_numbers",
                "remainders as integers, then in float",
                ("double_precision", "expensive_math"),
            ),
        ),
        time_features,
        domain="databases",
    ),
    Study(
        "triton_modulated_tokens_flat",
        "64 pictures' 1024 tokens of 1152 half values scaled and shifted by vectors of their picture, in Triton",
        "a value a lane, its feature and picture by divisions, scale and shift loaded again for each",
        (
            (
                "walk",
                "a program for 128 features of sixteen tokens, vectors loaded once",
                ("integer_arithmetic", "redundant_loads", "narrow_access"),
            ),
            (
                "walk_a_little",
                "a program for 256 features of four tokens",
                ("integer_arithmetic", "redundant_loads", "narrow_access"),
            ),
        ),
        modulated,
        domain="images",
    ),
    Study(
        "triton_channel_norm_two_places_a_program",
        "norm over 192 channels at 3136 places of 32 pictures, planes of half values, in Triton",
        "a program takes two places: each channel's two values lie 6 KB from the next channel's",
        (
            ("sixteen", "sixteen places a program: whole sectors", ("uncoalesced_access",)),
            ("sixty_four", "64 places by sixteen warps: whole lines", ("uncoalesced_access",)),
        ),
        channel_norm,
        domain="images",
    ),
    Study(
        "sound_triton_gradients_between_bounds",
        "33554432 floats kept between two bounds for each 4096, in Triton",
        "",
        (),
        quantile_clip,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
