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


@triton.jit
def group_sums(sums, groups: tl.constexpr, width: tl.constexpr):
    """The sum of each group's columns, at each of them."""
    sums = tl.sum(tl.reshape(sums, (groups, width)), 1)
    return tl.reshape(tl.broadcast_to(sums[:, None], (groups, width)), (groups * width,))


@triton.jit
def group_norm_kernel(
    x, weight, bias, out, places, channels: tl.constexpr, width: tl.constexpr, rows: tl.constexpr,
    groups: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * groups * width + tl.arange(0, groups * width)
    at = tl.arange(0, rows)[:, None] * channels + columns[None, :] + tl.program_id(1) * places * channels
    total = tl.zeros((rows, groups * width), tl.float32)
    squares = tl.zeros((rows, groups * width), tl.float32)
    for start in range(0, places, rows):
        value = tl.load(x + at + start * channels).to(tl.float32)
        total += value
        squares += value * value
    mean = group_sums(tl.sum(total, 0), groups, width) / (places * width)
    square = group_sums(tl.sum(squares, 0), groups, width) / (places * width)
    scale = tl.rsqrt(square - mean * mean + 1e-5) * tl.load(weight + columns)
    shift = tl.load(bias + columns) - mean * scale
    for start in range(0, places, rows):
        value = tl.load(x + at + start * channels).to(tl.float32)
        tl.store(out + at + start * channels, (value * scale[None, :] + shift[None, :]).to(tl.float16))


@triton.jit
def group_norm_held_kernel(
    x, weight, bias, out, places: tl.constexpr, channels: tl.constexpr, width: tl.constexpr
):
    columns = tl.program_id(0) * width + tl.arange(0, width)
    at = tl.arange(0, places)[:, None] * channels + columns[None, :] + tl.program_id(1) * places * channels
    value = tl.load(x + at).to(tl.float32)
    mean = tl.sum(tl.sum(value, 1), 0) / (places * width)
    square = tl.sum(tl.sum(value * value, 1), 0) / (places * width)
    scale = tl.rsqrt(square - mean * mean + 1e-5) * tl.load(weight + columns)
    shift = tl.load(bias + columns) - mean * scale
    tl.store(out + at, (value * scale[None, :] + shift[None, :]).to(tl.float16))


def group_norm() -> tuple[dict[str, Run], Check]:
    samples, places, channels, width = 128, 4096, 128, 4
    x = noise(samples, places, channels, dtype=torch.half)
    weight, bias = noise(channels), noise(channels)
    out = torch.empty_like(x)

    def run(groups: int, rows: int, warps: int) -> Run:
        grid = (channels // width // groups, samples)
        return lambda: group_norm_kernel[grid](
            x, weight, bias, out, places, channels, width, rows, groups, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": run(1, 256, 4),
        "eight_groups": run(8, 64, 8),
        "sixteen_groups": run(16, 64, 16),
        "held": lambda: group_norm_held_kernel[(channels // width, samples)](
            x, weight, bias, out, places, channels, width, num_warps=8
        ),
    }
    return sides, lambda: out


@triton.jit
def text_attention_kernel(
    q, k, v, out, steps, words: tl.constexpr, padded: tl.constexpr, rows: tl.constexpr, tiles: tl.constexpr
):
    column, word = tl.arange(0, 64), tl.arange(0, padded)
    there = word < words
    at_words = tl.program_id(1) * words * 64 + word[:, None] * 64 + column[None, :]
    key = tl.load(k + at_words, mask=there[:, None], other=0.0)
    value = tl.load(v + at_words, mask=there[:, None], other=0.0)
    for tile in range(tiles):
        row = (tl.program_id(0) * tiles + tile) * rows + tl.arange(0, rows)
        at = tl.program_id(1) * steps * 64 + row[:, None] * 64 + column[None, :]
        scores = tl.dot(tl.load(q + at), tl.trans(key)) * 0.125
        scores = tl.where(there[None, :], scores, -float("inf"))
        weights = tl.exp(scores - tl.max(scores, 1)[:, None])
        result = tl.dot(weights.to(tl.float16), value) / tl.sum(weights, 1)[:, None]
        tl.store(out + at, result.to(tl.float16))


@triton.jit
def text_attention_split_kernel(
    q, k, v, out, steps, words: tl.constexpr, most: tl.constexpr, rest: tl.constexpr, rows: tl.constexpr
):
    column, first, last = tl.arange(0, 64), tl.arange(0, most), most + tl.arange(0, rest)
    there = last < words
    at_first = tl.program_id(1) * words * 64 + first[:, None] * 64 + column[None, :]
    at_last = tl.program_id(1) * words * 64 + last[:, None] * 64 + column[None, :]
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    at = tl.program_id(1) * steps * 64 + row[:, None] * 64 + column[None, :]
    query = tl.load(q + at)
    scores = tl.dot(query, tl.trans(tl.load(k + at_first))) * 0.125
    others = tl.dot(query, tl.trans(tl.load(k + at_last, mask=there[:, None], other=0.0))) * 0.125
    others = tl.where(there[None, :], others, -float("inf"))
    top = tl.maximum(tl.max(scores, 1), tl.max(others, 1))
    weights, more = tl.exp(scores - top[:, None]), tl.exp(others - top[:, None])
    result = tl.dot(weights.to(tl.float16), tl.load(v + at_first))
    result = tl.dot(more.to(tl.float16), tl.load(v + at_last, mask=there[:, None], other=0.0), result)
    tl.store(out + at, (result / (tl.sum(weights, 1) + tl.sum(more, 1))[:, None]).to(tl.float16))


def text_attention() -> tuple[dict[str, Run], Check]:
    heads, steps, words = 80, 4096, 77
    q = noise(heads, steps, 64, dtype=torch.half)
    k, v = noise(heads, words, 64, dtype=torch.half), noise(heads, words, 64, dtype=torch.half)
    out = torch.empty_like(q)

    def run(rows: int, tiles: int, warps: int) -> Run:
        grid = (steps // (rows * tiles), heads)
        return lambda: text_attention_kernel[grid](
            q, k, v, out, steps, words, 128, rows, tiles, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": run(16, 1, 4),
        "more_rows": run(128, 1, 8),
        "held": run(64, 4, 4),
        "split": lambda: text_attention_split_kernel[(steps // 128, heads)](
            q, k, v, out, steps, words, 64, 16, 128, num_warps=8
        ),
    }
    return sides, lambda: out


@triton.jit
def levels(value, scale):
    return tl.floor(value / scale + 0.5).to(tl.int8)


@triton.jit
def rotate_sums_kernel(x, signs, out, scales, rows: tl.constexpr):
    column = tl.arange(0, 128)
    sign = tl.load(signs + column[:, None] * 128 + column[None, :]).to(tl.float32)
    for i in range(rows):
        row = tl.program_id(0) * rows + i
        value = tl.load(x + row * 128 + column).to(tl.float32)
        turned = tl.sum(value[:, None] * sign, 0) * 0.08838834764831845
        scale = tl.max(tl.abs(turned), 0) / 127
        tl.store(out + row * 128 + column, levels(turned, scale))
        tl.store(scales + row, scale)


@triton.jit
def rotate_products_kernel(x, signs, out, scales, rows: tl.constexpr, tiles: tl.constexpr):
    column = tl.arange(0, 128)
    sign = tl.load(signs + column[:, None] * 128 + column[None, :])
    for tile in range(tiles):
        row = (tl.program_id(0) * tiles + tile) * rows + tl.arange(0, rows)
        at = row[:, None] * 128 + column[None, :]
        turned = tl.dot(tl.load(x + at), sign) * 0.08838834764831845
        scale = tl.max(tl.abs(turned), 1) / 127
        tl.store(out + at, levels(turned, scale[:, None]))
        tl.store(scales + row, scale)


def rotation() -> tuple[dict[str, Run], Check]:
    count = 1 << 18
    x = noise(count, 128, dtype=torch.half)
    signs = torch.ones(1, 1, device="cuda", dtype=torch.half)
    for _ in range(7):
        signs = torch.cat((torch.cat((signs, signs), 1), torch.cat((signs, -signs), 1)))
    signs = signs.contiguous()
    out = torch.empty(count, 128, device="cuda", dtype=torch.int8)
    scales = torch.empty(count, device="cuda")

    def products(rows: int, tiles: int, warps: int) -> Run:
        grid = (count // (rows * tiles),)
        return lambda: rotate_products_kernel[grid](x, signs, out, scales, rows, tiles, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: rotate_sums_kernel[(count // 32,)](x, signs, out, scales, 32, num_warps=8),
        "products": products(64, 1, 4),
        "held": products(128, 4, 8),
    }
    return sides, lambda: out.float() * scales[:, None]


@triton.jit
def add_position(x, table, out, token, place, width: tl.constexpr):
    column = tl.arange(0, width)
    value = tl.load(x + token * width + column) + tl.load(table + place * width + column)
    tl.store(out + token * width + column, value)


@triton.jit
def positions_walked_kernel(x, table, starts, out, sequences, width: tl.constexpr):
    token = tl.program_id(0)
    sequence = 0
    for s in range(1, sequences):
        sequence += (tl.load(starts + s) <= token).to(tl.int32)
    add_position(x, table, out, token, token - tl.load(starts + sequence), width)


@triton.jit
def positions_compared_kernel(x, table, starts, out, sequences: tl.constexpr, width: tl.constexpr):
    token = tl.program_id(0)
    start = tl.load(starts + tl.arange(0, sequences))
    add_position(x, table, out, token, token - tl.max(tl.where(start <= token, start, 0), 0), width)


@triton.jit
def positions_halved_kernel(x, table, starts, out, half, width: tl.constexpr):
    token = tl.program_id(0)
    sequence = 0
    while half > 0:
        sequence += half * (tl.load(starts + sequence + half) <= token).to(tl.int32)
        half = half // 2
    add_position(x, table, out, token, token - tl.load(starts + sequence), width)


@triton.jit
def positions_by_sequence_kernel(x, table, starts, out, width: tl.constexpr, rows: tl.constexpr):
    first, end = tl.load(starts + tl.program_id(1)), tl.load(starts + tl.program_id(1) + 1)
    place, column = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    there = (first + place < end)[:, None]
    at = (first + place)[:, None] * width + column[None, :]
    added = tl.load(table + place[:, None] * width + column[None, :], mask=there, other=0.0)
    tl.store(out + at, tl.load(x + at, mask=there, other=0.0) + added, mask=there)


def positions() -> tuple[dict[str, Run], Check]:
    sequences, width = 256, 512
    lengths = [256 + i * 389 % 513 for i in range(sequences)]
    starts = torch.tensor([sum(lengths[:i]) for i in range(sequences + 1)], device="cuda", dtype=torch.int32)
    tokens = sum(lengths)
    x, table = noise(tokens, width, dtype=torch.half), noise(max(lengths), width, dtype=torch.half)
    out = torch.empty_like(x)
    by_sequence = (triton.cdiv(max(lengths), 8), sequences)
    sides: dict[str, Run] = {
        "flawed": lambda: positions_walked_kernel[(tokens,)](
            x, table, starts, out, sequences, width, num_warps=4
        ),
        "compared": lambda: positions_compared_kernel[(tokens,)](
            x, table, starts, out, sequences, width, num_warps=4
        ),
        "halved": lambda: positions_halved_kernel[(tokens,)](
            x, table, starts, out, sequences // 2, width, num_warps=4
        ),
        "by_sequence": lambda: positions_by_sequence_kernel[by_sequence](
            x, table, starts, out, width, 8, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def cosine_pieces_kernel(a, b, out, columns: tl.constexpr, piece: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, piece)
    product, first, second = 0.0, 0.0, 0.0
    for start in range(0, columns, piece):
        x, y = tl.load(a + at + start).to(tl.float32), tl.load(b + at + start).to(tl.float32)
        product += tl.sum(x * y, 0)
        first += tl.sum(x * x, 0)
        second += tl.sum(y * y, 0)
    tl.store(out + tl.program_id(0), product * tl.rsqrt(first * second + 1e-12))


@triton.jit
def cosine_kept_apart_kernel(a, b, out, columns: tl.constexpr, piece: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, piece)
    products = tl.zeros((piece,), tl.float32)
    firsts = tl.zeros((piece,), tl.float32)
    seconds = tl.zeros((piece,), tl.float32)
    for start in range(0, columns, piece):
        x, y = tl.load(a + at + start).to(tl.float32), tl.load(b + at + start).to(tl.float32)
        products += x * y
        firsts += x * x
        seconds += y * y
    scale = tl.rsqrt(tl.sum(firsts, 0) * tl.sum(seconds, 0) + 1e-12)
    tl.store(out + tl.program_id(0), tl.sum(products, 0) * scale)


def cosine() -> tuple[dict[str, Run], Check]:
    rows, columns = 8192, 8192
    a = noise(rows, columns, dtype=torch.half)
    b = (a.float() * 0.25 + a.float().roll(1, 1) * 0.5).half()
    out = torch.empty(rows, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: cosine_pieces_kernel[(rows,)](a, b, out, columns, 512, num_warps=4),
        "kept_apart": lambda: cosine_kept_apart_kernel[(rows,)](a, b, out, columns, 512, num_warps=4),
        "one_warp": lambda: cosine_kept_apart_kernel[(rows,)](a, b, out, columns, 512, num_warps=1),
        "longer": lambda: cosine_kept_apart_kernel[(rows,)](a, b, out, columns, 2048, num_warps=8),
    }
    return sides, lambda: out


STUDIES = (
    Study(
        "triton_group_norm_four_channels_a_program",
        "group norm of 128 pictures of 4096 places and 128 channels, 32 groups, half, channels last, in Triton",
        "a program takes one group: eight bytes of each place's 256",
        (
            ("eight_groups", "eight groups a program, 64 bytes of a place", ("uncoalesced_access",)),
            ("sixteen_groups", "16 groups a program, 128 bytes of a place", ("uncoalesced_access",)),
            ("held", "one group, its values held instead of read again", ("redundant_loads",)),
        ),
        group_norm,
        tolerance=4e-3,
    ),
    Study(
        "triton_text_attention_sixteen_queries",
        "attention of 4096 places of a picture to 77 words, 80 heads of 64 half values, in Triton",
        "a program has 16 queries only, and reads all keys and values for them",
        (
            ("more_rows", "128 queries a program", ("redundant_loads",)),
            (
                "held",
                "four tiles of 64 queries a program, for which the words are held",
                ("redundant_loads",),
            ),
            (
                "split",
                "128 queries, the words as 64 and 16 instead of 128",
                ("redundant_loads", "idle_threads"),
            ),
        ),
        text_attention,
        tolerance=4e-3,
    ),
    Study(
        "triton_hadamard_rows_summed",
        "262144 rows of 128 half values turned by a Hadamard matrix and quantised to eight bits, in Triton",
        "a row is multiplied by the matrix as a sum of products, on the cores for single precision",
        (
            ("products", "64 rows at a time by a product of matrices", ("tensor_cores_idle",)),
            ("held", "128 rows at a time, the matrix held for four such tiles", ("tensor_cores_idle",)),
        ),
        rotation,
        tolerance=2e-2,
    ),
    Study(
        "triton_positions_walk_the_starts",
        "position vectors of 512 half values added to the tokens of 256 packed sequences, in Triton",
        "a program finds the sequence of its token by comparing with all starts one by one",
        (
            ("compared", "all starts loaded and compared at once", ("redundant_loads", "memory_latency")),
            ("halved", "the sequence found by halving", ("redundant_loads",)),
            ("by_sequence", "programs by sequence, eight tokens each", ("redundant_loads", "memory_latency")),
        ),
        positions,
    ),
    Study(
        "triton_cosine_summed_each_piece",
        "cosine of the angle between 8192 pairs of rows of 8192 half values, in Triton",
        "three sums over the block for every piece of 512 values",
        (
            ("kept_apart", "each lane adds up its own, summed once at the end", ("barriers",)),
            ("one_warp", "the same by one warp a row", ("barriers",)),
            ("longer", "the same in pieces of 2048 by eight warps", ("barriers", "memory_latency")),
        ),
        cosine,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
