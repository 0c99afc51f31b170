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

# --- models ---


@triton.jit
def ranked(value, at):
    """A word that is larger for a larger value, and for the first of equal ones."""
    bits = value.to(tl.float32).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - at).to(tl.int64)


@triton.jit
def likeliest_kernel(logits, best, columns, piece: tl.constexpr):
    """The likeliest token of a row: pieces one after the other, each with its maximum."""
    row = tl.program_id(0)
    top = tl.full((), -(2**63), tl.int64)
    for start in range(0, columns, piece):
        at = start + tl.arange(0, piece)
        top = tl.maximum(top, tl.max(ranked(tl.load(logits + row * columns + at), at), 0))
    tl.store(best + row, top)


@triton.jit
def likeliest_lanes_kernel(logits, best, columns, piece: tl.constexpr):
    """The same; every place of a piece keeps its own maximum until the end."""
    row = tl.program_id(0)
    top = tl.full((piece,), -(2**63), tl.int64)
    for start in range(0, columns, piece):
        at = start + tl.arange(0, piece)
        top = tl.maximum(top, ranked(tl.load(logits + row * columns + at), at))
    tl.store(best + row, tl.max(top, 0))


@triton.jit
def likeliest_parts_kernel(logits, best, columns, share, piece: tl.constexpr):
    """The same for a part of a row, joined by an atomic."""
    row, first = tl.program_id(0), tl.program_id(1) * share
    top = tl.full((piece,), -(2**63), tl.int64)
    for start in range(0, share, piece):
        at = first + start + tl.arange(0, piece)
        top = tl.maximum(top, ranked(tl.load(logits + row * columns + at), at))
    tl.atomic_max(best + row, tl.max(top, 0), sem="relaxed")


def likeliest(rows: int = 64, columns: int = 1 << 18) -> tuple[dict[str, Run], Check]:
    logits = noise(rows, columns, dtype=torch.half) * 8
    least = -(2**63)
    best = torch.full((rows,), least, device="cuda", dtype=torch.int64)
    share = columns // 16

    def tokens() -> object:
        found = 0x7FFFFFFF - (best & 0x7FFFFFFF)
        best.fill_(least)
        return found

    sides: dict[str, Run] = {
        "flawed": lambda: likeliest_kernel[(rows,)](logits, best, columns, 2048, num_warps=4),
        "lanes": lambda: likeliest_lanes_kernel[(rows,)](logits, best, columns, 4096, num_warps=16),
        "parts": lambda: likeliest_parts_kernel[(rows, 16)](logits, best, columns, share, 1024, num_warps=4),
    }
    return sides, tokens


@triton.jit
def outer_means_kernel(left, right, out, depth, residues, width: tl.constexpr):
    """Mean over the sequences of the outer products of two residues' features, one sequence at a time."""
    i, j = tl.program_id(0), tl.program_id(1)
    feature = tl.arange(0, width)
    total = tl.zeros((width, width), tl.float32)
    for s in range(depth):
        a = tl.load(left + (s * residues + i) * width + feature).to(tl.float32)
        b = tl.load(right + (s * residues + j) * width + feature).to(tl.float32)
        total += a[:, None] * b[None, :]
    at = (i * residues + j) * width * width + feature[:, None] * width + feature[None, :]
    tl.store(out + at, (total / depth).to(tl.float16))


@triton.jit
def outer_means_dot_kernel(
    left, right, out, depth, residues, width: tl.constexpr, some: tl.constexpr, piece: tl.constexpr
):
    """The same as a product of matrices, for ``some`` residues by as many."""
    wide: tl.constexpr = some * width
    i, j = tl.program_id(0) * some, tl.program_id(1) * some
    feature = tl.arange(0, wide)
    total = tl.zeros((wide, wide), tl.float32)
    for start in range(0, depth, piece):
        s = start + tl.arange(0, piece)
        a = tl.load(left + (s[None, :] * residues + i) * width + feature[:, None])
        b = tl.load(right + (s[:, None] * residues + j) * width + feature[None, :])
        total = tl.dot(a, b, total)
    row, column = (i + feature // width)[:, None], (j + feature // width)[None, :]
    at = (row * residues + column) * width * width
    at += (feature % width)[:, None] * width + (feature % width)[None, :]
    tl.store(out + at, (total / depth).to(tl.float16))


def outer_means(residues: int = 192, depth: int = 128) -> tuple[dict[str, Run], Check]:
    width = 32
    left = noise(depth, residues, width, dtype=torch.half) + 0.5
    right = noise(depth, residues, width, dtype=torch.half).flip(0).contiguous() + 0.5
    out = torch.empty(residues, residues, width, width, device="cuda", dtype=torch.half)

    def dots(some: int, warps: int) -> Run:
        return lambda: outer_means_dot_kernel[(residues // some, residues // some)](
            left, right, out, depth, residues, width, some, 32, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: outer_means_kernel[(residues, residues)](
            left, right, out, depth, residues, width, num_warps=4
        ),
        "dot": dots(1, 1),
        "dot_tile": dots(4, 8),
    }
    return sides, lambda: out


@triton.jit
def ranking_loss_kernel(scores, grades, loss, documents: tl.constexpr, tall: tl.constexpr):
    """What a document's score loses against those of worse documents of its query."""
    query, first = tl.program_id(0) * documents, tl.program_id(1) * tall
    other, own = query + tl.arange(0, documents), query + first + tl.arange(0, tall)
    score, grade = tl.load(scores + own), tl.load(grades + own)
    against, worse = tl.load(scores + other), tl.load(grades + other)
    lost = tl.log(1.0 + tl.exp(against[None, :] - score[:, None]))
    lost = tl.where(worse[None, :] < grade[:, None], lost, 0.0)
    tl.store(loss + own, tl.sum(lost, 1))


def ranking_loss(queries: int = 2048) -> tuple[dict[str, Run], Check]:
    documents = 256
    scores = noise(queries, documents) * 4
    grades = (noise(queries, documents).abs() * 5).int()
    loss = torch.empty_like(scores)

    def run(tall: int, warps: int) -> Run:
        return lambda: ranking_loss_kernel[(queries, documents // tall)](
            scores, grades, loss, documents, tall, num_warps=warps
        )

    return {"flawed": run(1, 4), "one_warp": run(1, 1), "sixteen": run(16, 4)}, lambda: loss


# --- pictures ---


@triton.jit
def points_kernel(depths, out, width, height, focal, block: tl.constexpr):
    """Where the pixels of depth pictures are in space: three words of a point behind one another."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    column, row = at % width, at // width % height
    z = tl.load(depths + at)
    tl.store(out + at * 3, (column - width * 0.5) * z / focal)
    tl.store(out + at * 3 + 1, (row - height * 0.5) * z / focal)
    tl.store(out + at * 3 + 2, z)


@triton.jit
def points_planes_kernel(depths, out, count, width, height, focal, block: tl.constexpr):
    """The same in three planes."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    column, row = at % width, at // width % height
    z = tl.load(depths + at)
    tl.store(out + at, (column - width * 0.5) * z / focal)
    tl.store(out + count + at, (row - height * 0.5) * z / focal)
    tl.store(out + 2 * count + at, z)


@triton.jit
def points_words_kernel(depths, out, width, height, focal, block: tl.constexpr):
    """The same word by word: neighbouring lanes have the words of a point, and its pixel's depth again."""
    word = tl.program_id(0) * block + tl.arange(0, block)
    at, axis = word // 3, word % 3
    column, row = at % width, at // width % height
    z = tl.load(depths + at)
    place = tl.where(axis == 0, column - width * 0.5, row - height * 0.5)
    tl.store(out + word, tl.where(axis == 2, z, place * z / focal))


def unprojected_points(
    pictures: int = 8, width: int = 1920, height: int = 1080
) -> tuple[dict[str, Run], Check]:
    count = pictures * width * height
    depths = noise(pictures, height, width).abs() + 0.5
    out = torch.empty(count, 3, device="cuda")
    planes = torch.full((3, count), float("nan"), device="cuda")

    def points() -> object:
        found = out.clone() if bool(torch.isnan(planes[0, 0])) else planes.t().contiguous()
        planes.fill_(float("nan"))
        out.fill_(float("nan"))
        return found

    sides: dict[str, Run] = {
        "flawed": lambda: points_kernel[(count // 256,)](
            depths, out, width, height, 1050.0, 256, num_warps=4
        ),
        "planes": lambda: points_planes_kernel[(count // 256,)](
            depths, planes, count, width, height, 1050.0, 256, num_warps=4
        ),
        "words": lambda: points_words_kernel[(count * 3 // 256,)](
            depths, out, width, height, 1050.0, 256, num_warps=4
        ),
    }
    return sides, points


@triton.jit
def channel_norm_kernel(x, means, variances, weights, shifts, out, channels, block: tl.constexpr):
    """Stored means and variances of channels taken off, what is below zero cut: four words and a root a value."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel = at % channels
    value = tl.load(x + at).to(tl.float32) - tl.load(means + channel)
    value = value / tl.sqrt(tl.load(variances + channel) + 1e-5)
    value = value * tl.load(weights + channel) + tl.load(shifts + channel)
    tl.store(out + at, tl.maximum(value, 0.0).to(tl.float16))


@triton.jit
def channel_norm_folded_kernel(x, scales, offsets, out, channels, block: tl.constexpr):
    """The same by a scale and an offset, made when the model is loaded."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel = at % channels
    value = tl.load(x + at).to(tl.float32) * tl.load(scales + channel) + tl.load(offsets + channel)
    tl.store(out + at, tl.maximum(value, 0.0).to(tl.float16))


@triton.jit
def channel_norm_rows_kernel(
    x, means, variances, weights, shifts, out, steps, channels: tl.constexpr, tall: tl.constexpr
):
    """The same for rows of channels: scale and offset once a program."""
    channel = tl.arange(0, channels)
    scale = tl.load(weights + channel) / tl.sqrt(tl.load(variances + channel) + 1e-5)
    offset = tl.load(shifts + channel) - tl.load(means + channel) * scale
    for step in range(steps):
        row = (tl.program_id(0) * steps + step) * tall + tl.arange(0, tall)
        at = row[:, None] * channels + channel[None, :]
        value = tl.load(x + at).to(tl.float32) * scale[None, :] + offset[None, :]
        tl.store(out + at, tl.maximum(value, 0.0).to(tl.float16))


def channel_norm(rows: int = 1 << 18) -> tuple[dict[str, Run], Check]:
    channels, steps, tall = 256, 4, 16
    x, out = (
        noise(rows, channels, dtype=torch.half),
        torch.empty(rows, channels, device="cuda", dtype=torch.half),
    )
    means, variances = noise(channels) * 0.2, noise(channels).abs() + 0.1
    weights, shifts = noise(channels).abs() + 0.5, noise(channels)
    scales = weights / torch.sqrt(variances + 1e-5)
    offsets = shifts - means * scales
    grid = (rows * channels // 1024,)
    sides: dict[str, Run] = {
        "flawed": lambda: channel_norm_kernel[grid](
            x, means, variances, weights, shifts, out, channels, 1024, num_warps=4
        ),
        "folded": lambda: channel_norm_folded_kernel[grid](
            x, scales, offsets, out, channels, 1024, num_warps=4
        ),
        "rows": lambda: channel_norm_rows_kernel[(rows // (steps * tall),)](
            x, means, variances, weights, shifts, out, steps, channels, tall, num_warps=4
        ),
    }
    return sides, lambda: out


# --- without a flaw ---


@triton.jit
def huber_gradient_kernel(predicted, wanted, weights, out, columns: tl.constexpr, tall: tl.constexpr):
    """Gradient of Huber's loss, weighted by rows."""
    row, column = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, columns)
    at = row[:, None] * columns + column[None, :]
    off = tl.load(predicted + at).to(tl.float32) - tl.load(wanted + at).to(tl.float32)
    off = tl.minimum(tl.maximum(off, -1.0), 1.0) * tl.load(weights + row)[:, None]
    tl.store(out + at, off.to(tl.float16))


def huber_gradient(rows: int = 1 << 16) -> tuple[dict[str, Run], Check]:
    columns = 1024
    predicted, wanted = noise(rows, columns, dtype=torch.half) * 2, noise(columns, rows, dtype=torch.half).t()
    wanted, weights = wanted.contiguous(), noise(rows).abs()
    out = torch.empty_like(predicted)
    return {
        "sound": lambda: huber_gradient_kernel[(rows // 4,)](
            predicted, wanted, weights, out, columns, 4, num_warps=4
        )
    }, lambda: out


STUDIES = (
    Study(
        "triton_likeliest_tokens_of_64_programs",
        "the likeliest of 262144 tokens for each of 64 requests, half, in Triton",
        "a program for each of 64 requests, and a maximum over its threads for each 2048 tokens",
        (
            ("parts", "a row in sixteen parts, joined by an atomic maximum", ("small_grid",)),
            (
                "lanes",
                "sixteen warps, every place with a maximum of its own until the end",
                ("barriers", "memory_latency"),
            ),
        ),
        likeliest,
        tolerance=0.0,
        domain="serving",
    ),
    Study(
        "triton_outer_product_means_as_sums",
        "means over 128 sequences of outer products of 32 features for 192 x 192 pairs of residues, half, in Triton",
        "products and sums of one sequence after the other, which tensor cores do not do",
        (
            ("dot", "tl.dot over the sequences, a pair of residues a warp", ("tensor_cores_idle",)),
            ("dot_tile", "tl.dot for 4 x 4 pairs a program", ("tensor_cores_idle", "redundant_loads")),
        ),
        outer_means,
        tolerance=2e-3,
        domain="bioinformatics",
    ),
    Study(
        "triton_ranking_loss_a_document_a_program",
        "loss of 256 scores of each of 2048 queries against those of worse documents, in Triton",
        "a program of four warps for each document: two pairs a thread, then a sum over the warps",
        (
            ("one_warp", "one warp a program: no barrier", ("barriers",)),
            ("sixteen", "sixteen documents a program", ("barriers", "redundant_loads")),
        ),
        ranking_loss,
        domain="search",
    ),
    Study(
        "triton_unprojected_points_three_words_apart",
        "places in space of the pixels of 8 depth pictures of 1920 x 1080, in Triton",
        "three stores of words that are three apart from lane to lane",
        (
            ("planes", "x, y and z in planes of their own", ("uncoalesced_access",)),
            ("words", "a lane for each word of a point", ("uncoalesced_access",)),
        ),
        unprojected_points,
        domain="vision",
    ),
    Study(
        "triton_channel_norm_four_words_and_a_root_a_value",
        "67108864 half values of 256 channels, their stored means and deviations taken off, in Triton",
        "a remainder, four parameters and a root again for each value",
        (
            ("folded", "scale and offset made beforehand", ("expensive_math", "redundant_loads")),
            (
                "rows",
                "rows of channels: scale and offset once a program",
                ("redundant_loads", "integer_arithmetic", "expensive_math"),
            ),
        ),
        channel_norm,
        tolerance=2e-3,
        domain="models",
    ),
    Study(
        "sound_triton_huber_gradient",
        "gradient of Huber's loss of 65536 rows of 1024 half values, in Triton",
        "",
        (),
        huber_gradient,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
