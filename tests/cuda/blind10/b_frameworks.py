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
def rotary_head_kernel(
    x, positions, cosines, sines, out, heads: tl.constexpr, half: tl.constexpr, tables: tl.constexpr
):
    token, head, pair = tl.program_id(0), tl.program_id(1), tl.arange(0, half)
    if tables:
        cosine, sine = tl.load(cosines + token * half + pair), tl.load(sines + token * half + pair)
    else:
        place = tl.load(positions + token).to(tl.float32)
        angle = place * tl.exp2(pair.to(tl.float32) * (-13.287712379549449 / half))
        cosine, sine = tl.cos(angle), tl.sin(angle)
    at = (token * heads + head) * 2 * half + pair
    first, second = tl.load(x + at).to(tl.float32), tl.load(x + at + half).to(tl.float32)
    tl.store(out + at, (first * cosine - second * sine).to(tl.float16))
    tl.store(out + at + half, (second * cosine + first * sine).to(tl.float16))


@triton.jit
def rotary_token_kernel(x, positions, out, heads: tl.constexpr, half: tl.constexpr):
    token, head, pair = tl.program_id(0), tl.arange(0, heads), tl.arange(0, half)
    place = tl.load(positions + token).to(tl.float32)
    angle = place * tl.exp2(pair.to(tl.float32) * (-13.287712379549449 / half))
    cosine, sine = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
    at = (token * heads + head[:, None]) * 2 * half + pair[None, :]
    first, second = tl.load(x + at).to(tl.float32), tl.load(x + at + half).to(tl.float32)
    tl.store(out + at, (first * cosine - second * sine).to(tl.float16))
    tl.store(out + at + half, (second * cosine + first * sine).to(tl.float16))


def rotary() -> tuple[dict[str, Run], Check]:
    tokens, heads, half = 16384, 32, 64
    x = noise(tokens, heads, 2 * half, dtype=torch.half)
    positions = torch.arange(tokens, device="cuda", dtype=torch.int32) % 4096
    turns = 2.0 ** (torch.arange(half, device="cuda").float() * (-13.287712379549449 / half))
    angles = positions.float()[:, None] * turns[None, :]
    cosines, sines = torch.cos(angles), torch.sin(angles)
    out = torch.empty_like(x)

    def by_head(tables: bool) -> Run:
        return lambda: rotary_head_kernel[(tokens, heads)](
            x, positions, cosines, sines, out, heads, half, tables, num_warps=1
        )

    sides: dict[str, Run] = {
        "flawed": by_head(False),
        "all_heads": lambda: rotary_token_kernel[(tokens,)](x, positions, out, heads, half, num_warps=4),
        "tables": by_head(True),
    }
    return sides, lambda: out


@triton.jit
def paged_kernel(
    q, keys, values, table, lengths, parts, tops, totals, width, slots,
    heads: tl.constexpr, dim: tl.constexpr, page: tl.constexpr, splits: tl.constexpr, tile: tl.constexpr,
):  # fmt: skip
    head, sequence, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    feature = tl.arange(0, dim)
    query = tl.load(q + (sequence * heads + head) * dim + feature).to(tl.float32) * 0.08838834764831845
    chunk = tl.load(lengths + sequence) // splits
    most = -1e30
    total = 0.0
    mixed = tl.zeros((dim,), tl.float32)
    for start in range(split * chunk, (split + 1) * chunk, tile):
        token = start + tl.arange(0, tile)
        number = tl.load(table + sequence * width + token // page)
        at = ((number * heads + head) * page + token % page)[:, None] * dim + feature[None, :]
        score = tl.sum(tl.load(keys + at).to(tl.float32) * query[None, :], 1)
        larger = tl.maximum(most, tl.max(score, 0))
        weight, shrink = tl.exp(score - larger), tl.exp(most - larger)
        total = total * shrink + tl.sum(weight, 0)
        mixed = mixed * shrink + tl.sum(tl.load(values + at).to(tl.float32) * weight[:, None], 0)
        most = larger
    slot = (sequence * heads + head) * slots + split
    tl.store(parts + slot * dim + feature, mixed)
    tl.store(tops + slot, most)
    tl.store(totals + slot, total)


def paged() -> tuple[dict[str, Run], Check]:
    sequences, heads, dim, page, width, slots = 16, 8, 128, 16, 256, 8
    pages = sequences * width
    q = noise(sequences, heads, dim, dtype=torch.half) * 8
    keys = noise(pages, heads, page, dim, dtype=torch.half)
    values = keys.flip(0).contiguous()
    order = torch.arange(pages, device="cuda", dtype=torch.int64) * 2531 % pages
    table = order.to(torch.int32).view(sequences, width)
    lengths = 4096 - 512 * (torch.arange(sequences, device="cuda", dtype=torch.int32) % 4)
    parts = torch.zeros(sequences, heads, slots, dim, device="cuda")
    tops = torch.full((sequences, heads, slots), -1e30, device="cuda")
    totals = torch.zeros(sequences, heads, slots, device="cuda")

    def run(splits: int, tile: int) -> Run:
        return lambda: paged_kernel[(heads, sequences, splits)](
            q, keys, values, table, lengths, parts, tops, totals, width, slots,
            heads, dim, page, splits, tile, num_warps=4,
        )  # fmt: skip

    def merged() -> torch.Tensor:
        weights = torch.exp(tops - tops.amax(2, keepdim=True))
        result = (parts * weights[..., None]).sum(2) / (totals * weights).sum(2).clamp(min=1e-9)[..., None]
        parts.zero_()
        tops.fill_(-1e30)
        totals.zero_()
        return result

    sides = {"flawed": run(1, 16), "split": run(8, 16), "four_pages": run(1, 64), "both": run(8, 64)}
    return sides, merged


@triton.jit
def bias_places_kernel(grad, out, channels: tl.constexpr, places: tl.constexpr, samples: tl.constexpr):
    channel, place = tl.program_id(0), tl.arange(0, places)
    sample = tl.program_id(1) * samples + tl.arange(0, samples)
    value = tl.load(grad + (sample[:, None] * channels + channel) * places + place[None, :]).to(tl.float32)
    tl.atomic_add(out + channel + place * 0, tl.sum(value, 0))


@triton.jit
def bias_summed_kernel(grad, out, channels: tl.constexpr, places: tl.constexpr, samples: tl.constexpr):
    channel, place = tl.program_id(0), tl.arange(0, places)
    sample = tl.program_id(1) * samples + tl.arange(0, samples)
    value = tl.load(grad + (sample[:, None] * channels + channel) * places + place[None, :]).to(tl.float32)
    tl.atomic_add(out + channel, tl.sum(tl.sum(value, 0), 0))


@triton.jit
def bias_channel_kernel(grad, out, count, channels: tl.constexpr, places: tl.constexpr):
    channel, place = tl.program_id(0), tl.arange(0, places)
    total = tl.zeros((places,), tl.float32)
    for sample in range(count):
        total += tl.load(grad + (sample * channels + channel) * places + place).to(tl.float32)
    tl.store(out + channel, tl.sum(total, 0))


def bias_grad() -> tuple[dict[str, Run], Check]:
    count, channels, places = 256, 128, 1024
    grad = noise(count, channels, places, dtype=torch.half) + 0.25
    out = torch.zeros(channels, device="cuda")

    def found() -> torch.Tensor:
        result = out.clone()
        out.zero_()
        return result

    sides: dict[str, Run] = {
        "flawed": lambda: bias_places_kernel[(channels, count // 8)](
            grad, out, channels, places, 8, num_warps=4
        ),
        "summed": lambda: bias_summed_kernel[(channels, count // 8)](
            grad, out, channels, places, 8, num_warps=4
        ),
        "channel": lambda: bias_channel_kernel[(channels,)](grad, out, count, channels, places, num_warps=4),
    }
    return sides, found


@triton.jit
def adamw_kernel(
    weights, grads, firsts, seconds, numbers, new_weights, new_firsts, new_seconds,
    rounded: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * block + tl.arange(0, block)
    rate, first_left, second_left = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    if rounded:
        rate = rate.to(tl.float32)
        first_left, second_left = first_left.to(tl.float32), second_left.to(tl.float32)
    grad, weight = tl.load(grads + at), tl.load(weights + at)
    first = 0.9 * tl.load(firsts + at) + 0.1 * grad
    second = 0.999 * tl.load(seconds + at) + 0.001 * grad * grad
    step = (first / first_left) / (tl.sqrt(second / second_left) + 1e-8)
    tl.store(new_weights + at, (weight * (1.0 - rate * 0.01) - rate * step).to(tl.float32))
    tl.store(new_firsts + at, first)
    tl.store(new_seconds + at, second)


@triton.jit
def adamw_folded_kernel(
    weights, grads, firsts, seconds, new_weights, new_firsts, new_seconds, keep, rate, root,
    block: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * block + tl.arange(0, block)
    grad, weight = tl.load(grads + at), tl.load(weights + at)
    first = 0.9 * tl.load(firsts + at) + 0.1 * grad
    second = 0.999 * tl.load(seconds + at) + 0.001 * grad * grad
    tl.store(new_weights + at, weight * keep - rate * first / (tl.sqrt(second) * root + 1e-8))
    tl.store(new_firsts + at, first)
    tl.store(new_seconds + at, second)


def adamw() -> tuple[dict[str, Run], Check]:
    count, block, rate, step = 1 << 24, 1024, 0.01, 20
    weights, grads = noise(count), noise(count).flip(0).contiguous()
    firsts, seconds = noise(count).roll(5) * 0.1, noise(count).roll(9).abs() * 0.01
    new = [torch.zeros(count, device="cuda") for _ in range(3)]
    left = (1 - 0.9**step, 1 - 0.999**step)
    numbers = torch.tensor((rate, *left), device="cuda", dtype=torch.float64)

    def run(rounded: bool) -> Run:
        return lambda: adamw_kernel[(count // block,)](
            weights, grads, firsts, seconds, numbers, *new, rounded, block, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": run(False),
        "rounded": run(True),
        "folded": lambda: adamw_folded_kernel[(count // block,)](
            weights, grads, firsts, seconds, *new, 1 - rate * 0.01, rate / left[0], left[1] ** -0.5, block,
            num_warps=4,
        ),
    }  # fmt: skip
    return sides, lambda: new[0] - weights


@triton.jit
def draw_scanned_kernel(weights, targets, out, columns: tl.constexpr, piece: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, piece)
    target = tl.load(targets + row)
    before = 0.0
    found = 0
    for start in range(0, columns, piece):
        weight = tl.load(weights + row * columns + start + at).to(tl.float32)
        sums = before + tl.cumsum(weight, 0)
        found += tl.sum((sums <= target).to(tl.int32), 0)
        before += tl.sum(weight, 0)
    tl.store(out + row, found)


@triton.jit
def draw_sums_kernel(weights, targets, out, columns: tl.constexpr, piece: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, piece)
    target = tl.load(targets + row)
    end = 0.0
    before = 0.0
    first = 0
    for start in range(0, columns, piece):
        end += tl.sum(tl.load(weights + row * columns + start + at).to(tl.float32), 0)
        before = tl.where(end <= target, end, before)
        first += tl.where(end <= target, piece, 0)
    weight = tl.load(weights + row * columns + first + at).to(tl.float32)
    sums = before + tl.cumsum(weight, 0)
    tl.store(out + row, first + tl.sum((sums <= target).to(tl.int32), 0))


@triton.jit
def draw_levels_kernel(weights, targets, out, pieces: tl.constexpr, piece: tl.constexpr):
    row, number, at = tl.program_id(0), tl.arange(0, pieces), tl.arange(0, piece)
    target, base = tl.load(targets + row), weights + row * pieces * piece
    sums = tl.sum(tl.load(base + number[:, None] * piece + at[None, :]).to(tl.float32), 1)
    past = tl.cumsum(sums, 0) <= target
    first, before = tl.sum(past.to(tl.int32), 0) * piece, tl.sum(tl.where(past, sums, 0.0), 0)
    sums = before + tl.cumsum(tl.load(base + first + at).to(tl.float32), 0)
    tl.store(out + row, first + tl.sum((sums <= target).to(tl.int32), 0))


def drawn() -> tuple[dict[str, Run], Check]:
    rows, columns = 2048, 32768
    weights = (noise(rows, columns).abs() * 15).floor().half()
    targets = (noise(rows).abs() * 0.99 * weights.float().sum(1)).floor()
    out = torch.zeros(rows, device="cuda", dtype=torch.int32)

    def scanned(piece: int, warps: int) -> Run:
        return lambda: draw_scanned_kernel[(rows,)](weights, targets, out, columns, piece, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": scanned(1024, 4),
        "sums_first": lambda: draw_sums_kernel[(rows,)](weights, targets, out, columns, 1024, num_warps=4),
        "two_levels": lambda: draw_levels_kernel[(rows,)](
            weights, targets, out, columns // 1024, 1024, num_warps=16
        ),
        "longer": scanned(4096, 8),
    }
    return sides, lambda: out


@triton.jit
def nine_in_a_row(image, at):
    """The sum of nine neighbours in a row, and of their squares."""
    total, squares = at * 0, at * 0
    for x in tl.static_range(9):
        value = tl.load(image + at + x).to(tl.int32)
        total += value
        squares += value * value
    return total, squares


@triton.jit
def contrast(value, total, squares):
    mean, square = total.to(tl.float32) / 81, squares.to(tl.float32) / 81
    return ((value.to(tl.float32) - mean) * tl.rsqrt(square - mean * mean + 16.0)).to(tl.float16)


@triton.jit
def contrast_direct_kernel(image, out, width: tl.constexpr, pitch: tl.constexpr, block: tl.constexpr):
    column, row = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1)
    total, squares = column * 0, column * 0
    for y in tl.static_range(9):
        more, more_squares = nine_in_a_row(image, (row + y) * pitch + column)
        total += more
        squares += more_squares
    value = tl.load(image + (row + 4) * pitch + column + 4)
    tl.store(out + row * width + column, contrast(value, total, squares))


@triton.jit
def contrast_down_kernel(
    image, out, width: tl.constexpr, pitch: tl.constexpr, block: tl.constexpr, rows: tl.constexpr
):
    column, top = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1) * rows
    total, squares = column * 0, column * 0
    for y in range(8):
        more, more_squares = nine_in_a_row(image, (top + y) * pitch + column)
        total += more
        squares += more_squares
    for row in range(top, top + rows):
        more, more_squares = nine_in_a_row(image, (row + 8) * pitch + column)
        total += more
        squares += more_squares
        value = tl.load(image + (row + 4) * pitch + column + 4)
        tl.store(out + row * width + column, contrast(value, total, squares))
        less, less_squares = nine_in_a_row(image, row * pitch + column)
        total -= less
        squares -= less_squares


@triton.jit
def contrast_rows_kernel(
    image, out, width: tl.constexpr, pitch: tl.constexpr, block: tl.constexpr, rows: tl.constexpr
):
    column, top = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1) * rows
    y = tl.arange(0, rows)
    total = tl.zeros((rows, block), tl.int32)
    squares = tl.zeros((rows, block), tl.int32)
    for below in range(rows + 8):
        more, more_squares = nine_in_a_row(image, (top + below) * pitch + column)
        near = ((below >= y) & (below <= y + 8)).to(tl.int32)[:, None]
        total += near * more[None, :]
        squares += near * more_squares[None, :]
    row = top + y[:, None]
    value = tl.load(image + (row + 4) * pitch + column[None, :] + 4)
    tl.store(out + row * width + column[None, :], contrast(value, total, squares))


def local_contrast() -> tuple[dict[str, Run], Check]:
    height, width = 2048, 4096
    pitch = width + 8
    image = ((noise(height + 8, pitch) + 1) * 127).to(torch.uint8)
    out = torch.zeros(height, width, dtype=torch.half, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: contrast_direct_kernel[(width // 512, height)](
            image, out, width, pitch, 512, num_warps=4
        ),
        "walks_down": lambda: contrast_down_kernel[(width // 256, height // 32)](
            image, out, width, pitch, 256, 32, num_warps=4
        ),
        "eight_rows": lambda: contrast_rows_kernel[(width // 256, height // 8)](
            image, out, width, pitch, 256, 8, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def eight_bits_kernel(x, out, scales, columns: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, columns)
    value = tl.load(x + row * columns + column).to(tl.float32)
    scale = tl.max(tl.abs(value), 0) / 127
    tl.store(out + row * columns + column, tl.floor(value / scale + 0.5).to(tl.int8))
    tl.store(scales + row, scale)


def eight_bits() -> tuple[dict[str, Run], Check]:
    rows, columns = 16384, 4096
    x = noise(rows, columns, dtype=torch.half)
    out = torch.zeros(rows, columns, device="cuda", dtype=torch.int8)
    scales = torch.zeros(rows, device="cuda")
    return {
        "sound": lambda: eight_bits_kernel[(rows,)](x, out, scales, columns, num_warps=8)
    }, lambda: out.float() * scales[:, None]


STUDIES = (
    Study(
        "triton_rotary_angles_each_head",
        "16384 tokens of 32 heads of 128 half values turned by their positions, in Triton",
        "each head of a token works out the same 64 cosines and sines",
        (
            ("all_heads", "a program for all heads of a token: its angles once", ("expensive_math",)),
            ("tables", "cosines and sines from tables", ("expensive_math",)),
        ),
        rotary,
        tolerance=1e-2,
    ),
    Study(
        "triton_paged_decode_walks_one_page_at_a_time",
        "one step of attention over 16 sequences of up to 4096 tokens in pages of 16, eight heads, in Triton",
        "a program walks all pages of a sequence and head one by one: 128 programs, one page in flight each",
        (
            ("split", "a sequence split among eight programs", ("small_grid", "memory_latency")),
            ("four_pages", "four pages at a time", ("memory_latency",)),
            ("both", "split among eight programs, four pages at a time", ("small_grid", "memory_latency")),
        ),
        paged,
        tolerance=2e-3,
    ),
    Study(
        "triton_bias_gradient_atomic_each_place",
        "gradient of a bias of 128 channels: sums over 256 samples and 1024 places, half, in Triton",
        "a program sums over its samples only: 1024 atomics on the one number of its channel",
        (
            ("summed", "summed over the places as well: one atomic a program", ("global_atomics",)),
            ("channel", "a program a channel, no atomics", ("global_atomics",)),
        ),
        bias_grad,
    ),
    Study(
        "triton_adamw_rate_in_double",
        "AdamW's step for 16777216 float weights in Triton",
        "the learning rate and the corrections are in a double tensor: all that they meet becomes double",
        (
            ("rounded", "rounded to float after they are loaded", ("double_precision",)),
            ("folded", "float arguments, folded to one quotient", ("double_precision", "expensive_math")),
        ),
        adamw,
    ),
    Study(
        "triton_draw_scans_every_piece",
        "one of 32768 choices drawn by its weight for 2048 rows in Triton",
        "running sums over the block for every piece of 1024 weights, though the drawn one is in one of them",
        (
            ("sums_first", "sums of the pieces, running sums of one alone", ("barriers",)),
            ("two_levels", "32 sums at once, then running sums of one", ("barriers", "memory_latency")),
            ("longer", "the same running sums in pieces of 4096 by eight warps", ("barriers",)),
        ),
        drawn,
        tolerance=1e-6,
    ),
    Study(
        "triton_local_contrast_81_loads",
        "distance of each byte from the mean of its 9 x 9 neighbours by their deviation, 2048 x 4096, in Triton",
        "each place loads and squares all of its 81 neighbours",
        (
            ("walks_down", "sums kept while a program walks down 32 rows", ("redundant_loads",)),
            ("eight_rows", "a row's sum of nine used for eight rows of results", ("redundant_loads",)),
        ),
        local_contrast,
        domain="images",
    ),
    Study(
        "sound_triton_rows_to_eight_bits",
        "16384 rows of 4096 half values as eight bits and a scale in Triton",
        "",
        (),
        eight_bits,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
