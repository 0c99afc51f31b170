"""Studies in Triton of models, retrieval and pictures, run by what tests/cuda/variants/frameworks.py provides.

Usage: w_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- vectors and the centres nearest to them ---


@triton.jit
def nearest_centre_kernel(
    points, centres, halves, scores, labels, count, features: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):  # fmt: skip
    """Which of ``count`` centres is nearest: the largest product less half the centre's square."""
    row, feature = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, features)
    own = tl.load(points + row[:, None] * features + feature[None, :])
    best, label = tl.full((tall,), -1e30, tl.float32), tl.zeros((tall,), tl.int32)
    for first in tl.range(0, count, wide):
        centre = first + tl.arange(0, wide)
        other = tl.load(centres + centre[None, :] * features + feature[:, None])
        score = tl.dot(own, other) - tl.load(halves + centre)[None, :]
        top, where = tl.max(score, 1, return_indices=True)
        label = tl.where(top > best, first + where, label)
        best = tl.maximum(best, top)
    tl.store(scores + row, best)
    tl.store(labels + row, label)


def nearest_centres(rows: int = 1 << 17, count: int = 2048) -> tuple[dict[str, Run], Check]:
    features = 64
    points = noise(rows, features, dtype=torch.bfloat16)
    centres = (noise(count, features).flip(1) * 0.8).to(torch.bfloat16).contiguous()
    halves = centres.float().square().sum(1) * 0.5
    scores = torch.empty(rows, device="cuda")
    labels = torch.empty(rows, device="cuda", dtype=torch.int32)

    def side(tall: int, wide: int, warps: int) -> Run:
        return lambda: nearest_centre_kernel[(rows // tall,)](
            points, centres, halves, scores, labels, count, features, tall, wide, num_warps=warps, num_stages=3
        )  # fmt: skip

    return {"flawed": side(16, 64, 4), "taller": side(64, 64, 4), "tallest": side(128, 64, 8)}, lambda: scores


# --- colours of points by a small network ---


@triton.jit
def colours_kernel(
    points, inward, outward, out,
    features: tl.constexpr, hidden: tl.constexpr, colours: tl.constexpr, rows: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    """Two layers without biases: features of a point to ``colours`` values between 0 and 1."""
    feature, inner, colour = tl.arange(0, features), tl.arange(0, hidden), tl.arange(0, colours)
    first = tl.load(inward + feature[:, None] * hidden + inner[None, :])
    second = tl.load(outward + inner[:, None] * colours + colour[None, :])
    for tile in range(tiles):
        row = (tl.program_id(0) * tiles + tile) * rows + tl.arange(0, rows)
        own = tl.load(points + row[:, None] * features + feature[None, :])
        middle = tl.maximum(tl.dot(own, first), 0.0).to(tl.float16)
        found = tl.sigmoid(tl.dot(middle, second))
        tl.store(out + row[:, None] * colours + colour[None, :], found.to(tl.float16))


def coloured(count: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    features, hidden, colours = 64, 128, 16
    points = noise(count, features, dtype=torch.half)
    inward = (noise(features, hidden) * 0.25).half()
    outward = (noise(hidden, colours) * 0.25).half()
    out = torch.empty(count, colours, device="cuda", dtype=torch.half)

    def side(rows: int, tiles: int, warps: int) -> Run:
        return lambda: colours_kernel[(count // (rows * tiles),)](
            points, inward, outward, out, features, hidden, colours, rows, tiles, num_warps=warps
        )

    return {"flawed": side(16, 1, 4), "more_points": side(128, 1, 8), "held": side(64, 8, 4)}, lambda: out


# --- words of questions against those of passages ---


@triton.jit
def best_words_kernel(
    questions, passages, out, words, there, part, features: tl.constexpr, taken: tl.constexpr, tile: tl.constexpr
):  # fmt: skip
    """The most like of a part of the passages' words for ``taken`` words of a question."""
    programs = words // taken
    question = tl.program_id(0) // programs
    row = tl.arange(0, 16)
    word = question * words + tl.program_id(0) % programs * taken + row
    feature = tl.arange(0, features)
    own = tl.load(
        questions + word[:, None] * features + feature[None, :], mask=(row < taken)[:, None], other=0.0
    )
    start = (question * there + tl.program_id(1) * part) * features
    best = tl.full((16, tile), -1e30, tl.float32)
    for first in tl.range(0, part, tile):
        other = first + tl.arange(0, tile)
        value = tl.load(passages + start + other[None, :] * features + feature[:, None])
        best = tl.maximum(best, tl.dot(own, value))
    tl.store(out + tl.program_id(1) * tl.num_programs(0) * taken + word, tl.max(best, 1), mask=row < taken)


def best_words(count: int = 256, there: int = 2048) -> tuple[dict[str, Run], Check]:
    words, features, parts = 8, 128, 4
    questions = noise(count, words, features, dtype=torch.bfloat16)
    passages = noise(count, there, features, dtype=torch.bfloat16)
    out = torch.empty(parts, count, words, device="cuda")

    def side(taken: int, tile: int, warps: int) -> Run:
        return lambda: best_words_kernel[(count * words // taken, parts)](
            questions, passages, out, words, there, there // parts, features, taken, tile,
            num_warps=warps, num_stages=3,
        )  # fmt: skip

    return {
        "flawed": side(1, 64, 4),
        "question": side(8, 64, 4),
        "half_question": side(4, 64, 4),
    }, lambda: out


# --- values of points, the largest in each cell of space ---


@triton.jit
def cells_points_kernel(cells, features, out, width: tl.constexpr, some: tl.constexpr):
    """The largest of each feature among the points of a cell."""
    point, feature = tl.program_id(0) * some + tl.arange(0, some), tl.arange(0, width)
    value = tl.load(features + point[:, None] * width + feature[None, :]).to(tl.int32)
    tl.atomic_max(out + tl.load(cells + point)[:, None] * width + feature[None, :], value, sem="relaxed")


@triton.jit
def cells_listed_kernel(
    begins, order, features, out, listed: tl.constexpr, width: tl.constexpr, some: tl.constexpr
):
    """The same, a cell's points one after the other."""
    cell, feature = tl.program_id(0), tl.arange(0, width)
    at, end = tl.load(begins + cell), tl.load(begins + cell + 1)
    most = tl.zeros((some, width), tl.int32)
    while at < end:
        place = at + tl.arange(0, some)
        inside = place < end
        point = tl.load(order + place, mask=inside, other=0) if listed else place
        value = tl.load(features + point[:, None] * width + feature[None, :], mask=inside[:, None], other=0)
        most = tl.maximum(most, value.to(tl.int32))
        at += some
    tl.store(out + cell * width + feature, tl.max(most, 0))


def celled(points: int = 1 << 20, count: int = 50000) -> tuple[dict[str, Run], Check]:
    width = 32
    features = (noise(points, width).abs() * 30000.0).to(torch.int16)
    cells = (noise(points).flip(0).abs() * count).int().clamp(max=count - 1)
    order = torch.argsort(cells, stable=True).int()
    begins = torch.zeros(count + 1, device="cuda", dtype=torch.int32)
    begins[1:] = torch.bincount(cells, minlength=count).cumsum(0)
    moved = features[order.long()].contiguous()
    out = torch.zeros(count, width, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: cells_points_kernel[(points // 64,)](cells, features, out, width, 64, num_warps=4),
        "listed": lambda: cells_listed_kernel[(count,)](
            begins, order, features, out, True, width, 8, num_warps=1
        ),
        "in_order": lambda: cells_listed_kernel[(count,)](
            begins, order, moved, out, False, width, 8, num_warps=1
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- pictures freed of what the sensor adds ---


@triton.jit
def cleared(raw, dark, gain):
    return tl.maximum((raw.to(tl.float32) - dark) * gain, 0.0).to(tl.float16)


@triton.jit
def pictures_kernel(raw, dark, gain, out, pixels, inner: tl.constexpr, block: tl.constexpr):
    """A piece of a picture less the dark one, by each pixel's gain."""
    pieces = pixels // block
    if inner:
        pictures = tl.num_programs(0) // pieces
        picture, piece = tl.program_id(0) % pictures, tl.program_id(0) // pictures
    else:
        picture, piece = tl.program_id(0) // pieces, tl.program_id(0) % pieces
    at = piece * block + tl.arange(0, block)
    value = tl.load(raw + picture * pixels + at)
    tl.store(out + picture * pixels + at, cleared(value, tl.load(dark + at), tl.load(gain + at)))


@triton.jit
def pictures_all_kernel(raw, dark, gain, out, pixels, pictures: tl.constexpr, block: tl.constexpr):
    """The same for one piece of all pictures."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    less, by = tl.load(dark + at), tl.load(gain + at)
    for picture in tl.static_range(pictures):
        tl.store(out + picture * pixels + at, cleared(tl.load(raw + picture * pixels + at), less, by))


def pictures(count: int = 6, pixels: int = 6144 * 4096) -> tuple[dict[str, Run], Check]:
    raw = (noise(count, pixels).abs_() * 4000.0).to(torch.int16)
    dark, gain = noise(pixels).abs_() * 60.0, noise(pixels).flip(0) * 0.1 + 1.0
    out = torch.empty(count, pixels, device="cuda", dtype=torch.half)
    pieces = pixels // 1024
    return {
        "flawed": lambda: pictures_kernel[(count * pieces,)](
            raw, dark, gain, out, pixels, False, 1024, num_warps=4
        ),
        "side_by_side": lambda: pictures_kernel[(count * pieces,)](
            raw, dark, gain, out, pixels, True, 1024, num_warps=4
        ),
        "all_pictures": lambda: pictures_all_kernel[(pieces,)](
            raw, dark, gain, out, pixels, count, 1024, num_warps=4
        ),
    }, lambda: out


# --- a long and a short exposure as one ---


@triton.jit
def joined(long, short, out, at, inside):
    """The long exposure's value, or seven times the short one's where the long one is full."""
    slow = tl.load(long + at, mask=inside)
    quick = tl.load(short + at, mask=inside)
    tl.store(out + at, tl.where(slow > 3900, quick * 7, slow).to(tl.int16), mask=inside)


@triton.jit
def joined_kernel(long, short, out, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    joined(long, short, out, at, at < count)


@triton.jit
def joined_whole_kernel(long, short, out, count, block: tl.constexpr):
    first = tl.program_id(0) * block
    at = first + tl.arange(0, block)
    if first + block <= count:
        joined(long, short, out, at, None)
    else:
        joined(long, short, out, at, at < count)


def exposures(count: int = 9001 * 6667) -> tuple[dict[str, Run], Check]:
    room = (count + 63) // 64 * 64
    long = (noise(room).abs_() * 5000.0).clamp_(max=4095.0).to(torch.int16)
    short = (long.flip(0) // 7).contiguous()
    out = torch.empty_like(long)
    grid = (triton.cdiv(count, 2048),)
    return {
        "flawed": lambda: joined_kernel[grid](long, short, out, count, 2048, num_warps=4),
        "rounded_up": lambda: joined_kernel[grid](long, short, out, room, 2048, num_warps=4),
        "whole_blocks": lambda: joined_whole_kernel[grid](long, short, out, count, 2048, num_warps=4),
    }, lambda: out[:count]


# --- loudness in bands of hearing ---


@triton.jit
def bands_sums_kernel(
    spectra, shares, out, lines: tl.constexpr, bands: tl.constexpr, frames: tl.constexpr, steps: tl.constexpr
):  # fmt: skip
    """Logarithms of what a frame's lines add to each band."""
    line, band = tl.arange(0, lines), tl.arange(0, bands)
    share = tl.load(shares + line[:, None] * bands + band[None, :]).to(tl.float32)
    for step in range(steps):
        frame = (tl.program_id(0) * steps + step) * frames + tl.arange(0, frames)
        power = tl.load(spectra + frame[:, None] * lines + line[None, :]).to(tl.float32)
        loud = tl.sum(power[:, :, None] * share[None, :, :], 1)
        tl.store(out + frame[:, None] * bands + band[None, :], tl.log2(loud + 1e-3).to(tl.float16))


@triton.jit
def bands_products_kernel(
    spectra, shares, out, lines: tl.constexpr, bands: tl.constexpr, frames: tl.constexpr, steps: tl.constexpr
):  # fmt: skip
    """The same, a product of matrices."""
    line, band = tl.arange(0, lines), tl.arange(0, bands)
    share = tl.load(shares + line[:, None] * bands + band[None, :])
    for step in range(steps):
        frame = (tl.program_id(0) * steps + step) * frames + tl.arange(0, frames)
        power = tl.load(spectra + frame[:, None] * lines + line[None, :])
        loud = tl.dot(power, share)
        tl.store(out + frame[:, None] * bands + band[None, :], tl.log2(loud + 1e-3).to(tl.float16))


def banded(count: int = 1 << 18) -> tuple[dict[str, Run], Check]:
    lines, bands = 128, 32
    spectra = noise(count, lines).abs().half()
    shares = (noise(lines, bands) - 0.5).clamp(min=0.0).half()
    out = torch.empty(count, bands, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: bands_sums_kernel[(count // 32,)](
            spectra, shares, out, lines, bands, 2, 16, num_warps=8
        ),
        "products": lambda: bands_products_kernel[(count // 64,)](
            spectra, shares, out, lines, bands, 64, 1, num_warps=4
        ),
        "held": lambda: bands_products_kernel[(count // 512,)](
            spectra, shares, out, lines, bands, 128, 4, num_warps=8
        ),
    }, lambda: out


STUDIES = (
    Study(
        "triton_nearest_centres_for_sixteen_points",
        "which of 2048 centres is nearest to each of 131072 points of 64 features, bfloat16, in Triton",
        "a program has 16 points, and all centres are read for them",
        (
            ("taller", "64 points a program", ("redundant_loads", "shared_memory_bandwidth")),
            (
                "tallest",
                "128 points a program of eight warps",
                ("redundant_loads", "shared_memory_bandwidth"),
            ),
        ),
        nearest_centres,
        tolerance=4e-3,
        domain="retrieval",
    ),
    Study(
        "triton_colours_network_for_sixteen_points",
        "colours of 524288 points by a network of 64, 128 and 16, half, in Triton",
        "a program loads both layers' weights for 16 points",
        (
            ("more_points", "128 points a program", ("redundant_loads",)),
            ("held", "eight tiles of 64 points, for which the weights are held", ("redundant_loads",)),
        ),
        coloured,
        tolerance=4e-3,
        domain="rendering",
    ),
    Study(
        "triton_passages_read_for_each_word",
        "likeness of the 8 words of each of 256 questions to 2048 words of its passages, bfloat16, in Triton",
        "a program a word, padded to 16 rows: seven others read the same passages",
        (
            ("question", "the eight words of a question as rows of one program", ("redundant_loads",)),
            ("half_question", "four words a program", ("redundant_loads",)),
        ),
        best_words,
        tolerance=4e-3,
        domain="retrieval",
    ),
    Study(
        "triton_cells_largest_by_atomics",
        "largest of 32 features in each of 50000 cells, a million points, 16 bits, in Triton",
        "points come in no order: each compares its 32 values with its cell's by atomics",
        (
            ("listed", "a list of each cell's points, a warp a cell", ("global_atomics",)),
            ("in_order", "points in the order of cells, a warp a cell", ("global_atomics",)),
        ),
        celled,
        tolerance=0.0,
        domain="robotics",
    ),
    Study(
        "triton_pictures_cleared_one_by_one",
        "6 pictures of 25 million pixels less dark, by gain, in Triton",
        "dark and gain are read for one picture after the other, and are larger than the L2",
        (
            ("side_by_side", "the same piece of all pictures one after another", ("cache_locality",)),
            (
                "all_pictures",
                "a program takes a piece of all pictures",
                ("cache_locality", "redundant_loads"),
            ),
        ),
        pictures,
        tolerance=2e-3,
        domain="photography",
    ),
    Study(
        "triton_exposures_joined_odd_count",
        "a long and a short exposure of 60009667 pixels of 16 bits as one, in Triton",
        "a mask that ends anywhere: all loads and stores are of two bytes",
        (
            ("rounded_up", "room for a multiple of 64, masked there", ("narrow_access",)),
            ("whole_blocks", "a mask for the last block alone", ("narrow_access",)),
        ),
        exposures,
        tolerance=0.0,
        domain="photography",
    ),
    Study(
        "triton_bands_summed_line_by_line",
        "loudness in 32 bands from 128 lines of 262144 frames, half, in Triton",
        "lines times shares are added up one product at a time in single precision",
        (
            ("products", "64 frames by a product of matrices", ("tensor_cores_idle",)),
            ("held", "128 frames, shares held for four such tiles", ("tensor_cores_idle",)),
        ),
        banded,
        tolerance=4e-3,
        domain="sound",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
