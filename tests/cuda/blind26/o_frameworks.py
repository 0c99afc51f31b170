"""Studies in Triton of likenesses, noise, pictures of many bands and slopes, run by tests/cuda/variants/frameworks.py.

Usage: o_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- how alike points are ---


@triton.jit
def alike_kernel(
    points, squares, out, count, narrow, width: tl.constexpr, tile: tl.constexpr, piece: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    """Bells of the distances of all pairs of half-precision points, a tile of pairs a program."""
    row = tl.program_id(1) * tile + tl.arange(0, tile)
    column = tl.program_id(0) * tile + tl.arange(0, tile)
    place = tl.arange(0, piece)
    product = tl.zeros((tile, tile), tl.float32)
    for first in range(0, width, piece):
        a = tl.load(points + row[:, None] * width + first + place[None, :]).to(tl.float32)
        b = tl.load(points + column[None, :] * width + first + place[:, None]).to(tl.float32)
        product = tl.dot(a, b, product, input_precision=precision)
    apart = tl.load(squares + row)[:, None] + tl.load(squares + column)[None, :] - 2.0 * product
    tl.store(out + row[:, None] * count + column[None, :], tl.exp2(-narrow * apart))


@triton.jit
def alike_halves_kernel(points, squares, out, count, narrow, width: tl.constexpr, tile: tl.constexpr):
    """The same; products of what is stored."""
    row = tl.program_id(1) * tile + tl.arange(0, tile)
    column = tl.program_id(0) * tile + tl.arange(0, tile)
    place = tl.arange(0, width)
    a = tl.load(points + row[:, None] * width + place[None, :])
    b = tl.load(points + column[None, :] * width + place[:, None])
    product = tl.dot(a, b)
    apart = tl.load(squares + row)[:, None] + tl.load(squares + column)[None, :] - 2.0 * product
    tl.store(out + row[:, None] * count + column[None, :], tl.exp2(-narrow * apart))


def alike(count: int = 8192, width: int = 64) -> tuple[dict[str, Run], Check]:
    points = noise(count, width, dtype=torch.half)
    squares = points.float().square().sum(1)
    out = torch.empty(count, count, device="cuda")
    grid = (count // 64, count // 64)
    return {
        "flawed": lambda: alike_kernel[grid](
            points, squares, out, count, 0.05, width, 64, 32, "ieee", num_warps=4
        ),
        "halves": lambda: alike_halves_kernel[grid](
            points, squares, out, count, 0.05, width, 64, num_warps=4
        ),
        "tf32": lambda: alike_kernel[grid](
            points, squares, out, count, 0.05, width, 64, 32, "tf32", num_warps=4
        ),
    }, lambda: out


# --- noise for what a model is shown ---


@triton.jit
def noised(x, out, at, there, scale, seed, offset, apart: tl.constexpr):
    """Four values ``apart`` from each other, with noise."""
    a, b, c, d = tl.randn4x(seed, offset)
    kept = tl.sqrt(1.0 - scale * scale)
    tl.store(out + at, tl.load(x + at, mask=there) * kept + a * scale, mask=there)
    at += apart
    tl.store(out + at, tl.load(x + at, mask=there) * kept + b * scale, mask=there)
    at += apart
    tl.store(out + at, tl.load(x + at, mask=there) * kept + c * scale, mask=there)
    at += apart
    tl.store(out + at, tl.load(x + at, mask=there) * kept + d * scale, mask=there)


@triton.jit
def noised_kernel(x, scales, out, seed, quarter: tl.constexpr, block: tl.constexpr):
    """A row with noise of its own size a program; four values a number of the generator's."""
    row = tl.program_id(0)
    place = tl.arange(0, block)
    noised(
        x, out, row * 4 * quarter + place, place < quarter, tl.load(scales + row), seed, row * quarter + place, quarter
    )  # fmt: skip


@triton.jit
def noised_pieces_kernel(
    x, scales, out, seed, quarter: tl.constexpr, rows: tl.constexpr, piece: tl.constexpr
):
    """The same of some rows, ``piece`` numbers of each at a time."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
    scale = tl.load(scales + row)
    for start in range(0, quarter, piece):
        place = start + tl.arange(0, piece)[None, :]
        there = place < quarter
        noised(x, out, row * 4 * quarter + place, there, scale, seed, row * quarter + place, quarter)


@triton.jit
def noised_flat_kernel(x, scales, out, seed, quarter: tl.constexpr, block: tl.constexpr):
    """The same; numbers of all rows one after another."""
    number = tl.program_id(0) * block + tl.arange(0, block)
    row = number // quarter
    at = row * 3 * quarter + number
    noised(x, out, at, number >= 0, tl.load(scales + row), seed, number, quarter)


def noisy(rows: int = 32768, width: int = 1152) -> tuple[dict[str, Run], Check]:
    x, scales = noise(rows, width, dtype=torch.half), noise(rows) * 0.25 + 0.5
    out = torch.empty_like(x)
    quarter = width // 4
    return {
        "flawed": lambda: noised_kernel[(rows,)](x, scales, out, 7, quarter, 512, num_warps=4),
        "pieces": lambda: noised_pieces_kernel[(rows // 16,)](
            x, scales, out, 7, quarter, 16, 32, num_warps=4
        ),
        "flat": lambda: noised_flat_kernel[(rows * quarter // 512,)](
            x, scales, out, 7, quarter, 512, num_warps=4
        ),
    }, out.float


# --- which pixels are of a mineral ---


@triton.jit
def minerals_kernel(cube, mineral, out, pixels, bands: tl.constexpr):
    """The cosine of the angle between a pixel's bands and a mineral's; a pixel a program, the cube band by band."""
    pixel = tl.program_id(0)
    band = tl.arange(0, bands)
    seen = tl.load(cube + band * pixels + pixel)
    wanted = tl.load(mineral + band)
    tl.store(out + pixel, tl.sum(seen * wanted, 0) * tl.rsqrt(tl.sum(seen * seen, 0)))


@triton.jit
def minerals_tile_kernel(
    cube, mineral, out, pixels, bands: tl.constexpr, piece: tl.constexpr, block: tl.constexpr
):
    """The same; a block of pixels a program, ``piece`` bands at a time."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    band = tl.arange(0, piece)
    both = tl.zeros((piece, block), tl.float32)
    own = tl.zeros((piece, block), tl.float32)
    for first in range(0, bands, piece):
        seen = tl.load(cube + (first + band)[:, None] * pixels + pixel[None, :])
        both += seen * tl.load(mineral + first + band)[:, None]
        own += seen * seen
    tl.store(out + pixel, tl.sum(both, 0) * tl.rsqrt(tl.sum(own, 0)))


@triton.jit
def minerals_walk_kernel(cube, mineral, out, pixels, bands: tl.constexpr, block: tl.constexpr):
    """The same; a block of pixels a program, band by band, eight on their way."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    both = tl.zeros((block,), tl.float32)
    own = tl.zeros((block,), tl.float32)
    at = cube + pixel
    for band in tl.range(0, bands, loop_unroll_factor=8):
        seen = tl.load(at)
        both += seen * tl.load(mineral + band)
        own += seen * seen
        at += pixels
    tl.store(out + pixel, both * tl.rsqrt(own))


def minerals(pixels: int = 512 * 512, bands: int = 256) -> tuple[dict[str, Run], Check]:
    cube, mineral = noise(bands, pixels) * 0.4 + 0.6, noise(bands).flip(0) * 0.4 + 0.6
    mineral /= mineral.norm()
    out = torch.empty(pixels, device="cuda")
    return {
        "flawed": lambda: minerals_kernel[(pixels,)](cube, mineral, out, pixels, bands, num_warps=2),
        "tile": lambda: minerals_tile_kernel[(pixels // 128,)](
            cube, mineral, out, pixels, bands, 16, 128, num_warps=4
        ),
        "walk": lambda: minerals_walk_kernel[(pixels // 256,)](
            cube, mineral, out, pixels, bands, 256, num_warps=4
        ),
    }, lambda: out


# --- a gate's slopes ---


@triton.jit
def gate_slopes_kernel(gates, ups, slopes, gate_slopes, up_slopes, block: tl.constexpr):
    """Slopes of a layer's gate and of what it lets through, from those of their product."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    gate = tl.load(gates + at).to(tl.float32)
    up = tl.load(ups + at).to(tl.float32)
    slope = tl.load(slopes + at).to(tl.float32)
    open_ = tl.sigmoid(gate)
    through = gate * open_
    tl.store(up_slopes + at, slope * through)
    tl.store(gate_slopes + at, slope * up * (open_ + through * (1.0 - open_)))


def gate_slopes(count: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    gates, ups, slopes = noise(3, count, dtype=torch.half)
    found = torch.empty(2, count, device="cuda", dtype=torch.half)
    return {
        "sound": lambda: gate_slopes_kernel[(count // 2048,)](
            gates, ups, slopes, found[0], found[1], 2048, num_warps=8
        )
    }, found.float


STUDIES = (
    Study(
        "triton_point_likenesses_in_full_precision",
        "bells of the distances of all pairs of 8192 half-precision points of 64 coordinates, in Triton",
        "half values are made single ones and multiplied in full single precision, for which there are no tensor cores",
        (
            ("halves", "products of the half values as they are stored", ("tensor_cores_idle",)),
            ("tf32", "products in tf32, which holds half values exactly", ("tensor_cores_idle",)),
        ),
        alike,
        domain="statistics",
    ),
    Study(
        "triton_noise_rows_filled_up_to_512_numbers",
        "32768 rows of 1152 half values with noise of each row's size, in Triton",
        "288 numbers of the generator a row, drawn by 512 lanes: what 224 of them draw is thrown away",
        (
            ("pieces", "sixteen rows a program, 32 numbers of each at a time", ("idle_threads",)),
            ("flat", "numbers of all rows one after another", ("idle_threads",)),
        ),
        noisy,
        tolerance=2e-3,
        domain="diffusion",
    ),
    Study(
        "triton_mineral_angles_a_pixel_a_program",
        "likeness of 262144 pixels of 256 bands to a mineral, in Triton; the cube lies band by band",
        "a program loads all bands of one pixel, a megabyte from each other",
        (
            ("tile", "128 pixels a program, sixteen bands at a time", ("uncoalesced_access",)),
            ("walk", "256 pixels a program, band by band", ("uncoalesced_access",)),
        ),
        minerals,
        tolerance=1e-4,
        domain="remote sensing",
    ),
    Study(
        "sound_triton_gate_slopes",
        "slopes of 33554432 half-precision gates and what they let through, in Triton",
        "",
        (),
        gate_slopes,
        tolerance=1e-3,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
