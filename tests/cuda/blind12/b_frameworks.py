"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: b_frameworks.py list | check | time | profile [STUDY ...]
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes for one small kernel

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- serving ---


@triton.jit
def allowed_piece(logits, words, out, row, start, scale, choices, piece: tl.constexpr):
    """Tempered logits of a piece of a row; what its bits forbid is far below all others."""
    at = start + tl.arange(0, piece)
    inside = at < choices
    word = tl.load(words + row * (choices // 32) + at // 32, mask=inside, other=0)
    value = tl.load(logits + row * choices + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(
        out + row * choices + at, tl.where((word >> (at % 32)) & 1 != 0, value * scale, -10000.0), mask=inside
    )


@triton.jit
def allowed_row_kernel(logits, words, temperatures, out, choices, piece: tl.constexpr):
    row = tl.program_id(0)
    scale = 1.0 / tl.load(temperatures + row)
    for start in range(0, choices, piece):
        allowed_piece(logits, words, out, row, start, scale, choices, piece)


@triton.jit
def allowed_pieces_kernel(logits, words, temperatures, out, choices, piece: tl.constexpr):
    row = tl.program_id(1)
    scale = 1.0 / tl.load(temperatures + row)
    allowed_piece(logits, words, out, row, tl.program_id(0) * piece, scale, choices, piece)


@triton.jit
def allowed_persistent_kernel(logits, words, temperatures, out, rows, choices, piece: tl.constexpr):
    pieces = tl.cdiv(choices, piece)
    for item in range(tl.program_id(0), rows * pieces, tl.num_programs(0)):
        row = item // pieces
        scale = 1.0 / tl.load(temperatures + row)
        allowed_piece(logits, words, out, row, item % pieces * piece, scale, choices, piece)


def allowed(rows: int = 96, choices: int = 151936) -> tuple[dict[str, Run], Check]:
    logits = noise(rows, choices, dtype=torch.half)
    words = (noise(rows, choices // 32, dtype=torch.float64) * 2147483647).int()
    temperatures = noise(rows) * 0.4 + 0.8
    out = torch.empty(rows, choices, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: allowed_row_kernel[(rows,)](
            logits, words, temperatures, out, choices, 1024, num_warps=4
        ),
        "pieces": lambda: allowed_pieces_kernel[(triton.cdiv(choices, 4096), rows)](
            logits, words, temperatures, out, choices, 4096, num_warps=8
        ),
        "persistent": lambda: allowed_persistent_kernel[(132 * 8,)](
            logits, words, temperatures, out, rows, choices, 2048, num_warps=8
        ),
    }
    return sides, lambda: out.clamp(min=-4.0)


@triton.jit
def split_product_kernel(
    a, b, c, n, k, length, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr, parts: tl.constexpr
):
    """A tile of the product over one part of its depth; several parts are added by atomics."""
    row, column = tl.program_id(1) * tall + tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    first = tl.program_id(2) * length
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(first, first + length, deep):
        left = tl.load(a + row[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    at = c + row[:, None] * n + column[None, :]
    if parts == 1:
        tl.store(at, total)
    else:
        tl.atomic_add(at, total, sem="relaxed")


def split_product(m: int = 512, n: int = 4096, k: int = 4096) -> tuple[dict[str, Run], Check]:
    a, b = noise(m, k, dtype=torch.half), noise(k, n, dtype=torch.half)
    out = torch.zeros(m, n, device="cuda")

    def run(tall: int, wide: int, parts: int, stages: int) -> Run:
        return lambda: split_product_kernel[(n // wide, m // tall, parts)](
            a, b, out, n, k, k // parts, tall, wide, 64, parts, num_warps=4, num_stages=stages
        )

    sides: dict[str, Run] = {
        "flawed": run(64, 128, 16, 3),
        "two_parts": run(64, 128, 2, 3),
        "whole_depth": run(64, 128, 1, 4),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def codebooks_by_columns_kernel(
    ids, tables, out, tokens, books, entries, width: tl.constexpr, tile: tl.constexpr
):
    token, feature = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    total = tl.zeros((tile, width), tl.float32)
    for book in range(books):
        code = tl.load(ids + book * tokens + token)
        total += tl.load(tables + (book * width + feature)[None, :] * entries + code[:, None])
    tl.store(out + token[:, None] * width + feature[None, :], total)


@triton.jit
def codebooks_by_rows_kernel(
    ids, tables, out, tokens, books, entries, width: tl.constexpr, tile: tl.constexpr
):
    token, feature = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    total = tl.zeros((tile, width), tl.float32)
    for book in range(books):
        code = tl.load(ids + book * tokens + token)
        total += tl.load(tables + (book * entries + code)[:, None] * width + feature[None, :])
    tl.store(out + token[:, None] * width + feature[None, :], total)


@triton.jit
def codebooks_at_once_kernel(ids, tables, out, tokens, entries, width: tl.constexpr, books: tl.constexpr):
    token, book, feature = tl.program_id(0), tl.arange(0, books), tl.arange(0, width)
    code = tl.load(ids + book * tokens + token)
    rows = tl.load(tables + (book * entries + code)[:, None] * width + feature[None, :])
    tl.store(out + token * width + feature, tl.sum(rows, 0))


def codebooks(tokens: int = 65536, entries: int = 1024) -> tuple[dict[str, Run], Check]:
    books, width = 8, 128
    columns = noise(books, width, entries)
    rows = columns.transpose(1, 2).contiguous()
    ids = (noise(books, tokens).abs() * entries).int().clamp(max=entries - 1)
    out = torch.empty(tokens, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: codebooks_by_columns_kernel[(tokens // 16,)](
            ids, columns, out, tokens, books, entries, width, 16, num_warps=4
        ),
        "rows": lambda: codebooks_by_rows_kernel[(tokens // 16,)](
            ids, rows, out, tokens, books, entries, width, 16, num_warps=4
        ),
        "rows_at_once": lambda: codebooks_at_once_kernel[(tokens,)](
            ids, rows, out, tokens, entries, width, books, num_warps=1
        ),
    }
    return sides, lambda: out


# --- sequences ---


@triton.jit
def retention_step_kernel(
    queries, keys, values, decays, out, steps, features: tl.constexpr, wide: tl.constexpr
):
    """State and output of one step after the other, as the recurrence is written."""
    head, feature = tl.program_id(1), tl.arange(0, features)
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    decay = tl.exp2(tl.load(decays + head))
    state = tl.zeros((features, wide), tl.float32)
    for step in range(steps):
        at = (head * steps + step) * features
        query = tl.load(queries + at + feature).to(tl.float32)
        key = tl.load(keys + at + feature).to(tl.float32)
        value = tl.load(values + at + column).to(tl.float32)
        state = state * decay + key[:, None] * value[None, :]
        tl.store(out + at + column, tl.sum(query[:, None] * state, 0))


@triton.jit
def retention_ahead_kernel(
    queries, keys, values, decays, out, steps, features: tl.constexpr, wide: tl.constexpr
):
    """The same; what the next step needs is loaded before this one is worked out."""
    head, feature = tl.program_id(1), tl.arange(0, features)
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    decay = tl.exp2(tl.load(decays + head))
    state = tl.zeros((features, wide), tl.float32)
    at = head * steps * features
    query, key = tl.load(queries + at + feature), tl.load(keys + at + feature)
    value = tl.load(values + at + column)
    for step in range(steps):
        ahead = at + tl.where(step + 1 < steps, features, 0)
        next_query, next_key = tl.load(queries + ahead + feature), tl.load(keys + ahead + feature)
        next_value = tl.load(values + ahead + column)
        state = state * decay + key.to(tl.float32)[:, None] * value.to(tl.float32)[None, :]
        tl.store(out + at + column, tl.sum(query.to(tl.float32)[:, None] * state, 0))
        at, query, key, value = ahead, next_query, next_key, next_value


@triton.jit
def retention_chunk_kernel(
    queries, keys, values, decays, out, steps, features: tl.constexpr, chunk: tl.constexpr
):
    """The same in chunks: products within a chunk, and of each chunk with the state before it."""
    head, feature, row = tl.program_id(0), tl.arange(0, features), tl.arange(0, chunk)
    fade = tl.load(decays + head)
    behind = row[:, None] - row[None, :]
    within = tl.where(behind >= 0, tl.exp2(behind * fade), 0.0)
    since, until = tl.exp2((row + 1) * fade), tl.exp2((chunk - 1 - row) * fade)
    over = tl.exp2(chunk * fade)
    state = tl.zeros((features, features), tl.float32)
    for start in range(0, steps, chunk):
        at = (head * steps + start + row)[:, None] * features + feature[None, :]
        query, key, value = tl.load(queries + at), tl.load(keys + at), tl.load(values + at)
        scores = tl.dot(query, tl.trans(key)) * within
        mixed = tl.dot((query * since[:, None]).to(tl.float16), state.to(tl.float16))
        mixed = tl.dot(scores.to(tl.float16), value, mixed)
        state = tl.dot(tl.trans((key * until[:, None]).to(tl.float16)), value, state * over)
        tl.store(out + at, mixed)


def retention(heads: int = 128, steps: int = 512) -> tuple[dict[str, Run], Check]:
    features = 64
    queries, keys, values = (
        noise(3, heads, steps, features, dtype=torch.half)[which] * 0.5 for which in range(3)
    )
    decays = torch.log2(1 - 2.0 ** (-3 - torch.arange(heads, device="cuda") % 6))
    out = torch.empty(heads, steps, features, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: retention_step_kernel[(2, heads)](
            queries, keys, values, decays, out, steps, features, 32, num_warps=1
        ),
        "ahead": lambda: retention_ahead_kernel[(2, heads)](
            queries, keys, values, decays, out, steps, features, 32, num_warps=1
        ),
        "chunks": lambda: retention_chunk_kernel[(heads,)](
            queries, keys, values, decays, out, steps, features, 64, num_warps=4, num_stages=2
        ),
    }
    return sides, lambda: out


@triton.jit
def chunk_states_kernel(
    x, b, steps_of, fades, out, heads, length,
    features: tl.constexpr, states: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    """What a chunk of steps adds to the state of each head: the features by the states of a state space model."""
    chunk, head = tl.program_id(2), tl.program_id(1)
    across = states // wide
    feature = tl.program_id(0) // across * tall + tl.arange(0, tall)
    column = tl.program_id(0) % across * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    scales = (chunk * heads + head) * length
    last = tl.load(fades + scales + length - 1)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, length, deep):
        step = start + inner
        value = tl.load(x + ((chunk * length + step)[None, :] * heads + head) * features + feature[:, None])
        right = tl.load(b + (chunk * length + step)[:, None] * states + column[None, :])
        scale = tl.exp(last - tl.load(fades + scales + step)) * tl.load(steps_of + scales + step)
        total = tl.dot((value * scale[None, :]).to(tl.float16), right, total)
    at = ((chunk * heads + head) * features + feature)[:, None] * states + column[None, :]
    tl.store(out + at, total)


def chunk_states(chunks: int = 128, heads: int = 24, length: int = 256) -> tuple[dict[str, Run], Check]:
    features, states = 64, 128
    x, b = noise(chunks, length, heads, features, dtype=torch.half), noise(chunks, length, states).half()
    steps_of = noise(chunks, heads, length).abs() * 0.1
    fades = -steps_of.cumsum(2)
    out = torch.empty(chunks, heads, features, states, device="cuda")

    def run(tall: int, wide: int, deep: int, warps: int) -> Run:
        return lambda: chunk_states_kernel[(features // tall * (states // wide), heads, chunks)](
            x, b, steps_of, fades, out, heads, length, features, states, tall, wide, deep,
            num_warps=warps, num_stages=3,
        )  # fmt: skip

    sides: dict[str, Run] = {
        "flawed": run(16, 32, 32, 2),
        "whole": run(64, 128, 32, 4),
        "half": run(64, 64, 64, 4),
    }
    return sides, lambda: out


@triton.jit
def token_shift_kernel(x, mixes, out, steps, count, width: tl.constexpr, block: tl.constexpr):
    """Each token mixed with the one before it, in four ways."""
    token, feature = tl.program_id(1), tl.program_id(0) * block + tl.arange(0, block)
    at = token * width + feature
    now = tl.load(x + at).to(tl.float32)
    before = tl.load(x + at - width, mask=(token % steps > 0) & (feature < width), other=0.0).to(tl.float32)
    for way in tl.static_range(4):
        mix = tl.load(mixes + way * width + feature).to(tl.float32)
        tl.store(out + way * count + at, (now + (before - now) * mix).to(tl.float16))


@triton.jit
def token_shift_walk_kernel(
    x, mixes, out, steps, count, width: tl.constexpr, block: tl.constexpr, walk: tl.constexpr
):
    """The same for some tokens in a row: mixes are loaded once, and each token too."""
    feature = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.program_id(1) * walk
    mix_0 = tl.load(mixes + feature).to(tl.float32)
    mix_1 = tl.load(mixes + width + feature).to(tl.float32)
    mix_2 = tl.load(mixes + 2 * width + feature).to(tl.float32)
    mix_3 = tl.load(mixes + 3 * width + feature).to(tl.float32)
    inside = (first % steps > 0) & (feature < width)
    before = tl.load(x + (first - 1) * width + feature, mask=inside, other=0.0).to(tl.float32)
    for token in range(first, first + walk):
        at = token * width + feature
        now = tl.load(x + at).to(tl.float32)
        off = before - now
        tl.store(out + at, (now + off * mix_0).to(tl.float16))
        tl.store(out + count + at, (now + off * mix_1).to(tl.float16))
        tl.store(out + 2 * count + at, (now + off * mix_2).to(tl.float16))
        tl.store(out + 3 * count + at, (now + off * mix_3).to(tl.float16))
        before = now


def token_shift(sequences: int = 16, steps: int = 1024) -> tuple[dict[str, Run], Check]:
    width = 2048
    tokens = sequences * steps
    x, mixes = noise(tokens, width, dtype=torch.half), noise(4, width).abs().half()
    out = torch.empty(4, tokens, width, device="cuda", dtype=torch.half)

    def run(block: int, warps: int) -> Run:
        return lambda: token_shift_kernel[(width // block, tokens)](
            x, mixes, out, steps, tokens * width, width, block, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": run(256, 8),
        "eight_a_lane": run(2048, 8),
        "walk": lambda: token_shift_walk_kernel[(width // 512, tokens // 8)](
            x, mixes, out, steps, tokens * width, width, 512, 8, num_warps=2
        ),
    }
    return sides, lambda: out


# --- losses ---


@triton.jit
def entropy_row_kernel(x, out, columns, padded: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, padded)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-10000.0).to(tl.float32)
    value -= tl.max(value, 0)
    power = tl.exp(value)
    total = tl.sum(power, 0)
    tl.store(out + row, tl.log(total) - tl.sum(power * value, 0) / total)


@triton.jit
def entropy_online_kernel(x, out, columns, piece: tl.constexpr):
    """The same in pieces; sums follow the largest value so far."""
    row = tl.program_id(0).to(tl.int64)
    top, total, weighted = -20000.0, 0.0, 0.0
    for start in range(0, columns, piece):
        at = start + tl.arange(0, piece)
        value = tl.load(x + row * columns + at, mask=at < columns, other=-10000.0).to(tl.float32)
        higher = tl.maximum(top, tl.max(value, 0))
        power, old = tl.exp(value - higher), tl.exp(top - higher)
        weighted = weighted * old + tl.sum(power * value, 0)
        total = total * old + tl.sum(power, 0)
        top = higher
    tl.store(out + row, tl.log(total) + top - weighted / total)


@triton.jit
def entropy_twice_kernel(x, out, columns, piece: tl.constexpr):
    """The same in two walks: the largest value, then the sums."""
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, piece)
    tops = tl.full((piece,), -10000.0, tl.float32)
    for start in range(0, columns, piece):
        inside = start + lane < columns
        tops = tl.maximum(tops, tl.load(x + row * columns + start + lane, mask=inside, other=-10000.0))
    top = tl.max(tops, 0)
    totals, weighted = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    for start in range(0, columns, piece):
        inside = start + lane < columns
        value = tl.load(x + row * columns + start + lane, mask=inside, other=-10000.0).to(tl.float32) - top
        power = tl.exp(value)
        totals += power
        weighted += power * value
    total = tl.sum(totals, 0)
    tl.store(out + row, tl.log(total) - tl.sum(weighted, 0) / total)


def entropies(rows: int = 2048, columns: int = 50304) -> tuple[dict[str, Run], Check]:
    x = noise(rows, columns, dtype=torch.half) * 6
    out = torch.empty(rows, device="cuda")
    padded = triton.next_power_of_2(columns)
    sides: dict[str, Run] = {
        "flawed": lambda: entropy_row_kernel[(rows,)](x, out, columns, padded, num_warps=8),
        "online": lambda: entropy_online_kernel[(rows,)](x, out, columns, 8192, num_warps=16),
        "two_walks": lambda: entropy_twice_kernel[(rows,)](x, out, columns, 4096, num_warps=16),
    }
    return sides, lambda: out


# --- pictures ---


@triton.jit
def joined_at(small, skip, out, at, inside, channels, small_channels, high, wide):
    column, row = at % wide, at // wide % high
    channel, picture = at // (wide * high) % channels, at // (wide * high * channels)
    below = channel < small_channels
    from_small = ((picture * small_channels + channel) * (high // 2) + row // 2) * (wide // 2) + column // 2
    from_skip = (
        (picture * (channels - small_channels) + channel - small_channels) * high + row
    ) * wide + column
    value = tl.load(small + from_small, mask=inside & below, other=0.0)
    other = tl.load(skip + from_skip, mask=inside & (channel >= small_channels), other=0.0)
    tl.store(out + at, tl.where(below, value, other), mask=inside)


@triton.jit
def joined_flat_kernel(small, skip, out, count, channels, small_channels, high, wide, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    joined_at(small, skip, out, at, at < count, channels, small_channels, high, wide)


@triton.jit
def joined_known_kernel(
    small, skip, out, count, channels: tl.constexpr, small_channels: tl.constexpr,
    high: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * block + tl.arange(0, block)
    joined_at(small, skip, out, at, at < count, channels, small_channels, high, wide)


@triton.jit
def joined_rows_kernel(
    small, skip, out, channels, small_channels, high, wide, tall: tl.constexpr, padded: tl.constexpr
):
    picture, channel = tl.program_id(2), tl.program_id(1)
    row, column = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, padded)
    inside = (row < high)[:, None] & (column < wide)[None, :]
    at = row[:, None] * wide + column[None, :]
    if channel < small_channels:
        plane = small + (picture * small_channels + channel) * (high // 2) * (wide // 2)
        value = tl.load(plane + (row // 2)[:, None] * (wide // 2) + (column // 2)[None, :], mask=inside)
    else:
        plane = skip + (picture * (channels - small_channels) + channel - small_channels) * high * wide
        value = tl.load(plane + at, mask=inside)
    tl.store(out + (picture * channels + channel) * high * wide + at, value, mask=inside)


def joined(pictures: int = 16, each: int = 128, side: int = 96) -> tuple[dict[str, Run], Check]:
    small = noise(pictures, each, side // 2, side // 2, dtype=torch.half)
    skip = noise(pictures, each, side, side, dtype=torch.half)
    out = torch.empty(pictures, 2 * each, side, side, device="cuda", dtype=torch.half)
    count = out.numel()
    sides: dict[str, Run] = {
        "flawed": lambda: joined_flat_kernel[(triton.cdiv(count, 1024),)](
            small, skip, out, count, 2 * each, each, side, side, 1024, num_warps=4
        ),
        "known_sizes": lambda: joined_known_kernel[(triton.cdiv(count, 1024),)](
            small, skip, out, count, 2 * each, each, side, side, 1024, num_warps=4
        ),
        "rows": lambda: joined_rows_kernel[(triton.cdiv(side, 16), 2 * each, pictures)](
            small, skip, out, 2 * each, each, side, side, 16, triton.next_power_of_2(side), num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def picture_attention_kernel(
    queries, keys, values, out, count, scale,
    features: tl.constexpr, padded: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Attention of all places of a picture; features are filled up to the next power of two."""
    head, row = tl.program_id(1), tl.program_id(0) * tall + tl.arange(0, tall)
    feature, column = tl.arange(0, padded), tl.arange(0, wide)
    real = (feature < features)[None, :]
    base = head * count * features
    of = base + row[:, None] * features + feature[None, :]
    query = tl.load(queries + of, mask=real, other=0.0)
    top, total = tl.full((tall,), -float("inf"), tl.float32), tl.zeros((tall,), tl.float32)
    mixed = tl.zeros((tall, padded), tl.float32)
    for start in range(0, count, wide):
        at = base + (start + column)[:, None] * features + feature[None, :]
        key = tl.load(keys + at, mask=real, other=0.0)
        score = tl.dot(query, tl.trans(key)) * scale
        higher = tl.maximum(top, tl.max(score, 1))
        weight, old = tl.exp2(score - higher[:, None]), tl.exp2(top - higher)
        value = tl.load(values + at, mask=real, other=0.0)
        mixed = tl.dot(weight.to(tl.float16), value, mixed * old[:, None])
        total, top = total * old + tl.sum(weight, 1), higher
    tl.store(out + of, (mixed / total[:, None]).to(tl.float16), mask=real)


@triton.jit
def picture_attention_parts_kernel(
    queries, keys, values, out, count, scale,
    features: tl.constexpr, many: tl.constexpr, few: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """The same; features in a part of ``many`` and one of ``few``."""
    head, row = tl.program_id(1), tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    first, second = tl.arange(0, many)[None, :], many + tl.arange(0, few)[None, :]
    base = head * count * features
    of = base + row[:, None] * features
    query_1, query_2 = tl.load(queries + of + first), tl.load(queries + of + second)
    top, total = tl.full((tall,), -float("inf"), tl.float32), tl.zeros((tall,), tl.float32)
    mixed_1, mixed_2 = tl.zeros((tall, many), tl.float32), tl.zeros((tall, few), tl.float32)
    for start in range(0, count, wide):
        at = base + (start + column)[:, None] * features
        score = tl.dot(query_1, tl.trans(tl.load(keys + at + first)))
        score = tl.dot(query_2, tl.trans(tl.load(keys + at + second)), score) * scale
        higher = tl.maximum(top, tl.max(score, 1))
        weight, old = tl.exp2(score - higher[:, None]), tl.exp2(top - higher)
        share = weight.to(tl.float16)
        mixed_1 = tl.dot(share, tl.load(values + at + first), mixed_1 * old[:, None])
        mixed_2 = tl.dot(share, tl.load(values + at + second), mixed_2 * old[:, None])
        total, top = total * old + tl.sum(weight, 1), higher
    tl.store(out + of + first, (mixed_1 / total[:, None]).to(tl.float16))
    tl.store(out + of + second, (mixed_2 / total[:, None]).to(tl.float16))


def picture_attention(heads: int = 128, count: int = 1024) -> tuple[dict[str, Run], Check]:
    features, scale = 80, 1.4426950408889634 / 80**0.5
    queries, keys, values = (noise(3, heads, count, features, dtype=torch.half)[which] for which in range(3))
    out = torch.empty(heads, count, features, device="cuda", dtype=torch.half)

    def parts(tall: int, warps: int) -> Run:
        return lambda: picture_attention_parts_kernel[(count // tall, heads)](
            queries, keys, values, out, count, scale, features, 64, 16, tall, 64,
            num_warps=warps, num_stages=2,
        )  # fmt: skip

    sides: dict[str, Run] = {
        "flawed": lambda: picture_attention_kernel[(count // 64, heads)](
            queries, keys, values, out, count, scale, features, 128, 64, 64, num_warps=4, num_stages=2
        ),
        "two_parts": parts(64, 4),
        "taller_parts": parts(128, 8),
    }
    return sides, lambda: out


# --- quantisation ---


@triton.jit
def fake_eight_bits_kernel(x, out, block: tl.constexpr):
    """Rounded to what four exponent and three mantissa bits hold, the step a power of two."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32)
    exponent = libdevice.floor(libdevice.log2(tl.maximum(tl.abs(value), 0.0009765625)))
    step = libdevice.pow(2.0, tl.maximum(exponent, -6.0) - 3.0)
    rounded = libdevice.rint(value / step) * step
    tl.store(out + at, tl.clamp(rounded, -448.0, 448.0).to(tl.float16))


@triton.jit
def fake_eight_bits_exponent_kernel(x, out, block: tl.constexpr):
    """The same; step and its reciprocal from the bits of the exponent."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32)
    bits = tl.maximum(value.to(tl.int32, bitcast=True) & 0x7F800000, 121 << 23) - (3 << 23)
    step, inverse = bits.to(tl.float32, bitcast=True), ((254 << 23) - bits).to(tl.float32, bitcast=True)
    rounded = (value * inverse + 12582912.0) - 12582912.0
    tl.store(out + at, tl.clamp(rounded * step, -448.0, 448.0).to(tl.float16))


@triton.jit
def fake_eight_bits_converted_kernel(x, out, block: tl.constexpr):
    """The same by conversion there and back."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32)
    tl.store(out + at, value.to(tl.float8e4nv).to(tl.float16))


def fake_eight_bits(n: int = 1 << 26) -> tuple[dict[str, Run], Check]:
    x = (noise(n) ** 5 * 200).half()
    out = torch.empty_like(x)

    def run(kernel: triton.runtime.JITFunction) -> Run:
        return lambda: kernel[(n // 1024,)](x, out, 1024, num_warps=4)

    sides: dict[str, Run] = {
        "flawed": run(fake_eight_bits_kernel),
        "exponent_bits": run(fake_eight_bits_exponent_kernel),
        "conversion": run(fake_eight_bits_converted_kernel),
    }
    return sides, lambda: out


@triton.jit
def blocks_scaled_kernel(x, scales, out, columns, block: tl.constexpr):
    """Weights of eight bits times the scale of their square block."""
    down, across = tl.program_id(1), tl.program_id(0)
    row, column = down * block + tl.arange(0, block), across * block + tl.arange(0, block)
    at = row[:, None] * columns + column[None, :]
    scale = tl.load(scales + down * tl.num_programs(0) + across)
    tl.store(out + at, (tl.load(x + at).to(tl.float32) * scale).to(tl.float16))


def blocks_scaled(rows: int = 8192, columns: int = 8192) -> tuple[dict[str, Run], Check]:
    x = (noise(rows, columns) * 200).to(torch.float8_e4m3fn)
    scales = noise(rows // 128, columns // 128) * 0.01 + 0.02
    out = torch.empty(rows, columns, device="cuda", dtype=torch.half)
    grid = (columns // 128, rows // 128)
    return {
        "sound": lambda: blocks_scaled_kernel[grid](x, scales, out, columns, 128, num_warps=8)
    }, lambda: out


# --- torch ---


def rolled(sequences: int = 64, steps: int = 1024, width: int = 512) -> tuple[dict[str, Run], Check]:
    x = noise(sequences, steps, width, dtype=torch.half)
    by_step = x.transpose(0, 1).contiguous()
    found = {"out": x}
    order = (torch.arange(steps, device="cuda") - 1) % steps

    def roll() -> None:
        found["out"] = torch.roll(x, 1, 1)

    def joined_again() -> None:
        found["out"] = torch.cat((x[:, -1:], x[:, :-1]), 1)

    def steps_first() -> None:
        found["out"] = torch.index_select(by_step, 0, order).transpose(0, 1)

    sides: dict[str, Run] = {"flawed": roll, "joined": joined_again, "steps_first": steps_first}

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    return sides, result


def averaged(pictures: int = 256, channels: int = 2048, side: int = 7) -> tuple[dict[str, Run], Check]:
    x = noise(pictures, channels, side, side) + 0.5
    last = x.contiguous(memory_format=torch.channels_last)
    found = {"out": x}

    def pool() -> None:
        found["out"] = torch.nn.functional.avg_pool2d(x, side)

    def mean() -> None:
        found["out"] = torch.mean(x, (2, 3), keepdim=True)

    def channels_last() -> None:
        found["out"] = torch.nn.functional.avg_pool2d(last, side)

    sides: dict[str, Run] = {"flawed": pool, "mean": mean, "channels_last": channels_last}

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    return sides, result


def words(tokens: int = 2048, width: int = 768, number: int = 50257) -> tuple[dict[str, Run], Check]:
    padded = triton.cdiv(number, 64) * 64
    x = noise(tokens, width, dtype=torch.half)
    weights = torch.zeros(padded, width, device="cuda", dtype=torch.half)
    weights[:number] = noise(number, width, dtype=torch.half)
    tight = torch.empty(tokens, number, device="cuda", dtype=torch.half)
    roomy = torch.empty(tokens, padded, device="cuda", dtype=torch.half)
    found = {"out": tight}

    def odd() -> None:
        found["out"] = torch.mm(x, weights[:number].t(), out=tight)

    def more_words() -> None:
        found["out"] = torch.mm(x, weights.t(), out=roomy)

    def longer_rows() -> None:
        found["out"] = torch.mm(x, weights[:number].t(), out=roomy[:, :number])

    sides: dict[str, Run] = {"flawed": odd, "more_words": more_words, "longer_rows": longer_rows}
    return sides, lambda: found["out"][:, :number]


STUDIES = (
    Study(
        "triton_grammar_mask_request_a_program",
        "logits of 96 requests over 151936 tokens, tempered, without those that a grammar's bits forbid, in Triton",
        "a program walks all tokens of a request: 96 programs with a piece of 1024 in flight each",
        (
            ("pieces", "a program for 4096 tokens of a request", ("small_grid",)),
            ("persistent", "1056 programs that take pieces of 2048 in turn", ("small_grid",)),
        ),
        allowed,
        domain="serving",
    ),
    Study(
        "triton_prefill_product_in_sixteen_parts",
        "product of 512 rows of 4096 half values with a matrix for 4096 outputs, float result, in Triton",
        "the depth is split in sixteen as for a few rows: every output is added to sixteen times by atomics",
        (
            ("two_parts", "the depth in two parts", ("global_atomics",)),
            ("whole_depth", "a program goes through the whole depth and stores", ("global_atomics",)),
        ),
        split_product,
        domain="serving",
    ),
    Study(
        "triton_residual_codebooks_by_columns",
        "65536 frames of sound as the sum of eight vectors of 128 floats from codebooks of 1024, in Triton",
        "codebooks are stored feature after feature: the values of a vector lie 4 KB apart",
        (
            ("rows", "a codebook's vectors as rows", ("uncoalesced_access",)),
            ("rows_at_once", "rows, and a warp takes all eight of a frame at once", ("uncoalesced_access",)),
        ),
        codebooks,
        domain="sound",
    ),
    Study(
        "triton_retention_step_by_step",
        "retention over 512 steps of 128 heads of 64 half features, in Triton",
        "the recurrence as it is written: each step begins with loads that nothing overlaps",
        (
            ("ahead", "the next step's values loaded before this one's products", ("memory_latency",)),
            (
                "chunks",
                "chunks of 64 steps as products on the tensor cores",
                ("memory_latency", "tensor_cores_idle"),
            ),
        ),
        retention,
        tolerance=5e-3,
    ),
    Study(
        "triton_chunk_states_in_small_tiles",
        "states of 128 chunks of 256 steps, 24 heads of 64 features by 128 states, half, in Triton",
        "a program makes 16 x 32 of a head's 64 x 128: steps, decays and inputs are loaded again for each",
        (
            ("whole", "a program makes all of a head's state", ("redundant_loads",)),
            ("half", "64 x 64, twice as many steps at a time", ("redundant_loads",)),
        ),
        chunk_states,
        tolerance=2e-3,
    ),
    Study(
        "triton_token_shift_a_half_a_lane",
        "16384 tokens of 2048 half values each mixed with the one before in four ways, in Triton",
        "eight warps for 256 values: every load and store is of two bytes a lane",
        (
            ("eight_a_lane", "eight warps for the token's 2048 values", ("narrow_access",)),
            (
                "walk",
                "two warps take 512 values of eight tokens in a row, each token and mix loaded once",
                ("narrow_access", "redundant_loads"),
            ),
        ),
        token_shift,
    ),
    Study(
        "triton_policy_entropy_row_in_registers",
        "entropy of 2048 rows of 50304 half logits in Triton",
        "a row is one block of 65536 in the registers of eight warps, 256 values a thread: they do not fit",
        (
            ("online", "pieces of 8192, sums that follow the largest value so far", ("local_memory",)),
            (
                "two_walks",
                "pieces of 4096, once for the largest value and once for the sums",
                ("local_memory",),
            ),
        ),
        entropies,
        domain="reinforcement learning",
    ),
    Study(
        "triton_enlarged_and_skip_joined_flat",
        "128 planes of 48 x 48 enlarged and 128 of 96 x 96 joined, 16 pictures, half values, in Triton",
        "picture, channel, row and column of each value by divisions through sizes known at run time only",
        (
            ("known_sizes", "sizes known when it is compiled", ("integer_arithmetic",)),
            ("rows", "a program for 16 rows of a plane, without divisions", ("integer_arithmetic",)),
        ),
        joined,
        domain="images",
    ),
    Study(
        "triton_picture_attention_80_padded_to_128",
        "attention of 1024 places, 128 heads of 80 half values, in Triton",
        "80 features are filled up to 128: three eighths of all products are with zeros",
        (
            ("two_parts", "features in a part of 64 and one of 16", ("idle_threads",)),
            ("taller_parts", "the same, 128 queries by eight warps", ("idle_threads", "redundant_loads")),
        ),
        picture_attention,
        tolerance=5e-3,
        domain="images",
    ),
    Study(
        "triton_fake_eight_bits_by_powers",
        "67108864 half values rounded to what an eight-bit float holds, in Triton",
        "the step of each value by a logarithm, a power and a division",
        (
            ("exponent_bits", "step and reciprocal from the bits of the exponent", ("expensive_math",)),
            ("conversion", "converted to eight bits and back", ("expensive_math",)),
        ),
        fake_eight_bits,
        domain="quantisation",
    ),
    Study(
        "sound_triton_weights_of_scaled_blocks",
        "8192 x 8192 eight-bit floats times a scale for each 128 x 128, as half values, in Triton",
        "",
        (),
        blocks_scaled,
        domain="quantisation",
    ),
    Study(
        "torch_roll_along_the_steps",
        "torch rolls 64 sequences of 1024 steps of 512 half values by one step",
        "each value's place by quotients of 64 bits, a value a thread",
        (
            (
                "joined",
                "last step and the others joined by torch.cat",
                ("integer_arithmetic", "narrow_access"),
            ),
            (
                "steps_first",
                "steps as the first axis, taken in their new order by torch.index_select",
                ("integer_arithmetic", "narrow_access"),
            ),
        ),
        rolled,
    ),
    Study(
        "torch_average_pool_over_whole_planes",
        "torch averages 7 x 7 planes, 256 pictures of 2048 channels, by a pooling of 7 x 7",
        "a thread walks a plane of 49 floats, neighbouring lanes 196 bytes apart",
        (
            ("mean", "torch.mean over the last two axes", ("uncoalesced_access",)),
            ("channels_last", "pictures stored channels last", ("uncoalesced_access",)),
        ),
        averaged,
        domain="images",
    ),
    Study(
        "torch_logits_of_50257_words",
        "torch's product of 2048 rows of 768 half values with the vectors of 50257 words",
        "rows of the result begin at any multiple of two bytes",
        (
            ("more_words", "words filled up to 50304", ("narrow_access",)),
            ("longer_rows", "rows of the result with room for 50304", ("narrow_access",)),
        ),
        words,
        tolerance=2e-3,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
