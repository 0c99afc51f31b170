"""Studies in Triton of vectors, documents and places, run by what tests/cuda/variants/frameworks.py provides.

Usage: k_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- vectors of a database ---


@triton.jit
def rotated_kernel(
    x, rotation, out, width, depth, rows: tl.constexpr, columns: tl.constexpr, piece: tl.constexpr,
    rows_first: tl.constexpr,
):  # fmt: skip
    """Vectors times a matrix, before their parts are given codes."""
    first = tl.program_id(0)
    second = tl.program_id(1)
    row = (first if rows_first else second) * rows + tl.arange(0, rows)[:, None]
    column = (second if rows_first else first) * columns + tl.arange(0, columns)[None, :]
    at = tl.arange(0, piece)
    x_at = x + row * depth + at[None, :]
    weight = rotation + at[:, None] * width + column
    total = tl.zeros((rows, columns), tl.float32)
    for _ in range(0, depth, piece):
        total = tl.dot(tl.load(x_at), tl.load(weight), total)
        x_at += piece
        weight += piece * width
    tl.store(out + row * width + column, total.to(tl.float16))


@triton.jit
def rotated_whole_kernel(
    x, rotation, out, width, depth: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr
):
    """The same; a program keeps its vectors while it takes the matrix's columns one piece after another."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
    column = tl.arange(0, columns)[None, :]
    at = tl.arange(0, depth)
    value = tl.load(x + row * depth + at[None, :])
    weight = rotation + at[:, None] * width + column
    to = out + row * width + column
    for _ in range(0, width, columns):
        tl.store(to, tl.dot(value, tl.load(weight)).to(tl.float16))
        weight += columns
        to += columns


def rotated(count: int = 262144, depth: int = 256, width: int = 512) -> tuple[dict[str, Run], Check]:
    x = noise(count, depth, dtype=torch.half)
    rotation = noise(depth, width, dtype=torch.half) * 0.1
    out = torch.empty(count, width, device="cuda", dtype=torch.half)
    tall, wide = count // 128, width // 128

    def side(grid: tuple[int, int], rows_first: bool) -> Run:
        return lambda: rotated_kernel[grid](
            x, rotation, out, width, depth, 128, 128, 64, rows_first, num_warps=8, num_stages=3
        )

    return {
        "flawed": side((tall, wide), True),
        "columns_first": side((wide, tall), False),
        "whole": lambda: rotated_whole_kernel[(tall,)](
            x, rotation, out, width, depth, 128, 64, num_warps=8, num_stages=3
        ),
    }, out.float


# --- documents ---


@triton.jit
def pooled_kernel(x, starts, out, longest, width: tl.constexpr, tokens: tl.constexpr):
    """The mean of a document's tokens; a document a program."""
    document = tl.program_id(0)
    start = tl.load(starts + document)
    length = tl.load(starts + document + 1) - start
    place = tl.arange(0, width)
    token = tl.arange(0, tokens)
    total = tl.zeros((tokens, width), tl.float32)
    for first in range(0, longest, tokens):
        own = first + token
        at = (start + own[:, None]) * width + place[None, :]
        total += tl.load(x + at, mask=own[:, None] < length, other=0.0).to(tl.float32)
    tl.store(out + document * width + place, tl.sum(total, 0) / length)


@triton.jit
def pooled_length_kernel(x, starts, out, width: tl.constexpr, tokens: tl.constexpr):
    """The same up to the document's last token."""
    document = tl.program_id(0)
    start = tl.load(starts + document)
    length = tl.load(starts + document + 1) - start
    place = tl.arange(0, width)
    token = tl.arange(0, tokens)
    total = tl.zeros((tokens, width), tl.float32)
    for first in range(0, length, tokens):
        own = first + token
        at = (start + own[:, None]) * width + place[None, :]
        total += tl.load(x + at, mask=own[:, None] < length, other=0.0).to(tl.float32)
    tl.store(out + document * width + place, tl.sum(total, 0) / length)


@triton.jit
def pooled_full_kernel(x, starts, out, width: tl.constexpr, tokens: tl.constexpr):
    """The same; full rounds without masks, then what is left."""
    document = tl.program_id(0)
    start = tl.load(starts + document)
    length = tl.load(starts + document + 1) - start
    place = tl.arange(0, width)
    token = tl.arange(0, tokens)
    at = (start + token[:, None]) * width + place[None, :]
    total = tl.zeros((tokens, width), tl.float32)
    full = length // tokens
    for _ in range(0, full):
        total += tl.load(x + at).to(tl.float32)
        at += tokens * width
    rest = token[:, None] < length - full * tokens
    total += tl.load(x + at, mask=rest, other=0.0).to(tl.float32)
    tl.store(out + document * width + place, tl.sum(total, 0) / length)


def pooled(documents: int = 12288, longest: int = 512, width: int = 256) -> tuple[dict[str, Run], Check]:
    share = noise(documents).abs().cpu()
    lengths = (12 + share**16 * (longest - 12)).to(torch.int32)
    lengths[0] = longest
    starts = torch.zeros(documents + 1, dtype=torch.int32)
    starts[1:] = torch.cumsum(lengths, 0)
    total = int(starts[-1])
    offsets = starts.to(device=noise(1).device)
    x = noise(total, width, dtype=torch.half) + 0.5
    out = torch.empty(documents, width, device="cuda")
    grid = (documents,)
    return {
        "flawed": lambda: pooled_kernel[grid](x, offsets, out, longest, width, 16, num_warps=4),
        "own_length": lambda: pooled_length_kernel[grid](x, offsets, out, width, 16, num_warps=4),
        "full_rounds": lambda: pooled_full_kernel[grid](x, offsets, out, width, 16, num_warps=4),
    }, lambda: out


# --- places of vehicles ---


@triton.jit
def nearest_kernel(latitudes, longitudes, depots, out, count, block: tl.constexpr):
    """How far away the nearest depot is, in kilometres."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    latitude = tl.load(latitudes + at)
    longitude = tl.load(longitudes + at)
    nearest = tl.full((block,), 1e9, tl.float32)
    for depot in range(count):
        other = tl.load(depots + depot)
        up = tl.sin(0.5 * (other - latitude))
        along = tl.sin(0.5 * (tl.load(depots + count + depot) - longitude))
        part = up * up + tl.cos(latitude) * tl.cos(other) * along * along
        nearest = tl.minimum(nearest, 12742.0 * libdevice.asin(tl.sqrt(part)))
    tl.store(out + at, nearest)


@triton.jit
def nearest_part_kernel(latitudes, longitudes, depots, cosines, out, count, block: tl.constexpr):
    """The same; the least of what is below the root, of which the way is taken in the end."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    latitude = tl.load(latitudes + at)
    longitude = tl.load(longitudes + at)
    cosine = tl.cos(latitude)
    nearest = tl.full((block,), 1.0, tl.float32)
    for depot in range(count):
        up = tl.sin(0.5 * (tl.load(depots + depot) - latitude))
        along = tl.sin(0.5 * (tl.load(depots + count + depot) - longitude))
        nearest = tl.minimum(nearest, up * up + cosine * tl.load(cosines + depot) * along * along)
    tl.store(out + at, 12742.0 * libdevice.asin(tl.sqrt(nearest)))


@triton.jit
def nearest_chord_kernel(latitudes, longitudes, points, out, count, block: tl.constexpr):
    """The same by straight lines between points of the sphere."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    latitude = tl.load(latitudes + at)
    longitude = tl.load(longitudes + at)
    cosine = tl.cos(latitude)
    x, y, z = cosine * tl.cos(longitude), cosine * tl.sin(longitude), tl.sin(latitude)
    nearest = tl.full((block,), 4.0, tl.float32)
    for depot in range(count):
        to_x = tl.load(points + depot) - x
        to_y = tl.load(points + count + depot) - y
        to_z = tl.load(points + 2 * count + depot) - z
        nearest = tl.minimum(nearest, to_x * to_x + to_y * to_y + to_z * to_z)
    tl.store(out + at, 12742.0 * libdevice.asin(0.5 * tl.sqrt(nearest)))


def nearest(vehicles: int = 1 << 20, count: int = 64) -> tuple[dict[str, Run], Check]:
    latitudes, longitudes = noise(vehicles) * 0.07 + 0.89, noise(vehicles).flip(0) * 0.08 + 0.18
    places = noise(2, count)
    depots = torch.stack((places[0] * 0.07 + 0.89, places[1] * 0.08 + 0.18)).contiguous()
    cosines = depots[0].cos()
    points = torch.stack((cosines * depots[1].cos(), cosines * depots[1].sin(), depots[0].sin())).contiguous()
    out = torch.empty(vehicles, device="cuda")
    grid = (vehicles // 512,)
    return {
        "flawed": lambda: nearest_kernel[grid](latitudes, longitudes, depots, out, count, 512, num_warps=4),
        "part": lambda: nearest_part_kernel[grid](
            latitudes, longitudes, depots, cosines, out, count, 512, num_warps=4
        ),
        "chord": lambda: nearest_chord_kernel[grid](
            latitudes, longitudes, points, out, count, 512, num_warps=4
        ),
    }, lambda: out


STUDIES = (
    Study(
        "triton_vectors_rotated_rows_innermost",
        "262144 vectors of 256 half values times a matrix of 256 x 512, in Triton",
        "all vectors are passed for 128 columns before the next 128 columns: read four times, each time from memory",
        (
            (
                "columns_first",
                "the four pieces of columns one after another for each vector",
                ("cache_locality",),
            ),
            ("whole", "a program keeps its vectors for all columns", ("cache_locality", "redundant_loads")),
        ),
        rotated,
        tolerance=2e-3,
        domain="databases",
    ),
    Study(
        "triton_documents_pooled_to_the_longest",
        "means of the tokens of 12288 documents of 12 to 512 tokens of 256 half values, in Triton",
        "each document takes as many rounds as the longest one, most of them of masked tokens alone",
        (
            ("own_length", "as many rounds as the document has tokens for", ("idle_threads",)),
            ("full_rounds", "full rounds without masks, then what is left", ("idle_threads",)),
        ),
        pooled,
        domain="text",
    ),
    Study(
        "triton_nearest_depots_by_haversines",
        "how far the nearest of 64 depots is from each of 1048576 vehicles, in Triton",
        "three sines and cosines, a root and an arc sine for each vehicle and depot",
        (
            ("part", "cosines once a place, root and arc sine once a vehicle", ("expensive_math",)),
            ("chord", "straight lines between points of the sphere", ("expensive_math",)),
        ),
        nearest,
        domain="sensors",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
