"""Studies in Triton of models' layers and serving, run by what tests/cuda/variants/frameworks.py provides.

Usage: s_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- gradients made sparse before they are sent ---


@triton.jit
def sparse_sort_kernel(grad, out, width: tl.constexpr, keep: tl.constexpr, rows: tl.constexpr):
    """Only the ``keep`` entries of a row that are farthest from zero."""
    line = tl.program_id(0) * rows + tl.arange(0, rows)
    lane = tl.arange(0, width)
    at = line[:, None] * width + lane[None, :]
    entry = tl.load(grad + at)
    order = tl.sort(tl.abs(entry), 1)
    limit = tl.max(tl.where(lane[None, :] == width - keep, order, 0.0), 1)
    tl.store(out + at, tl.where(tl.abs(entry) < limit[:, None], 0.0, entry))


@triton.jit
def sparse_topk_kernel(grad, out, width: tl.constexpr, keep: tl.constexpr, rows: tl.constexpr):
    """The same by the smallest of the ``keep`` largest."""
    line = tl.program_id(0) * rows + tl.arange(0, rows)
    at = line[:, None] * width + tl.arange(0, width)[None, :]
    entry = tl.load(grad + at)
    limit = tl.min(tl.topk(tl.abs(entry), keep, 1), 1)
    tl.store(out + at, tl.where(tl.abs(entry) < limit[:, None], 0.0, entry))


def sparse(rows: int = 12000, width: int = 2048, keep: int = 16) -> tuple[dict[str, Run], Check]:
    grad = noise(rows, width)
    out = torch.empty_like(grad)
    return {
        "flawed": lambda: sparse_sort_kernel[(rows // 2,)](grad, out, width, keep, 2, num_warps=8),
        "topk": lambda: sparse_topk_kernel[(rows // 2,)](grad, out, width, keep, 2, num_warps=8),
    }, lambda: out


# --- features compared at nine displacements ---


@triton.jit
def displaced(one, two, out, tile, move, pixels, features: tl.constexpr, block: tl.constexpr):
    """Products of ``block`` pixels' features with those ``move`` pixels on."""
    spot = tile * block + tl.arange(0, block)
    feature = tl.arange(0, features)
    here = tl.load(one + spot[:, None] * features + feature[None, :])
    there = tl.load(two + (spot + move)[:, None] * features + feature[None, :])
    like = tl.sum(here.to(tl.float32) * there.to(tl.float32), axis=1)
    tl.store(out + move * pixels + spot, like.to(out.dtype.element_ty))


@triton.jit
def moves_outer_kernel(one, two, out, pixels, features: tl.constexpr, block: tl.constexpr):
    """A displacement after the other."""
    tiles = pixels // block
    displaced(one, two, out, tl.program_id(0) % tiles, tl.program_id(0) // tiles, pixels, features, block)


@triton.jit
def moves_inner_kernel(one, two, out, pixels, moves, features: tl.constexpr, block: tl.constexpr):
    """A tile after the other."""
    displaced(one, two, out, tl.program_id(0) // moves, tl.program_id(0) % moves, pixels, features, block)


def moved(pixels: int = 1 << 20, features: int = 32, moves: int = 9) -> tuple[dict[str, Run], Check]:
    one = noise(pixels, features, dtype=torch.bfloat16)
    two = torch.cat((one.flip(0), one[:moves])).contiguous()
    out = torch.empty(moves, pixels, device="cuda", dtype=torch.bfloat16)
    grid = (pixels // 128 * moves,)
    return {
        "flawed": lambda: moves_outer_kernel[grid](one, two, out, pixels, features, 128, num_warps=4),
        "moves_inner": lambda: moves_inner_kernel[grid](
            one, two, out, pixels, moves, features, 128, num_warps=4
        ),
    }, lambda: out


# --- how far a student is from its teacher ---


@triton.jit
def plus(left, right):
    return left + right


@triton.jit
def apart_kernel(student, teacher, loss, tall: tl.constexpr, wide: tl.constexpr):
    """What a tile adds to the sum of squared differences."""
    at = (tl.program_id(0) * tall + tl.arange(0, tall))[:, None] * wide + tl.arange(0, wide)[None, :]
    off = tl.load(student + at).to(tl.float32) - tl.load(teacher + at).to(tl.float32)
    tl.atomic_add(loss, tl.reduce(tl.reduce(off * off, 1, plus), 0, plus), sem="relaxed")


@triton.jit
def apart_stride_kernel(student, teacher, loss, count, wide: tl.constexpr):
    """The same of every so many tiles."""
    kept = tl.zeros((wide,), tl.float32)
    start = tl.program_id(0) * wide
    while start < count:
        at = start + tl.arange(0, wide)
        off = tl.load(student + at).to(tl.float32) - tl.load(teacher + at).to(tl.float32)
        kept += off * off
        start += tl.num_programs(0) * wide
    tl.atomic_add(loss, tl.reduce(kept, 0, plus), sem="relaxed")


def apart(count: int = 3 << 23) -> tuple[dict[str, Run], Check]:
    student = noise(count, dtype=torch.half)
    teacher, loss = student.flip(0).contiguous(), torch.zeros(1, device="cuda")

    def read() -> torch.Tensor:
        found = loss.clone()
        loss.zero_()
        return found

    return {
        "flawed": lambda: apart_kernel[(count // 128,)](student, teacher, loss, 2, 64, num_warps=1),
        "stride": lambda: apart_stride_kernel[(1056,)](student, teacher, loss, count, 2048, num_warps=4),
        "large_tiles": lambda: apart_kernel[(count // 8192,)](student, teacher, loss, 8, 1024, num_warps=8),
    }, read


# --- sentences of many lengths through a layer ---


@triton.jit
def layer_tile(
    x, weights, out, sentence, first, length, longest, k, n, tall: tl.constexpr, wide: tl.constexpr,
    deep: tl.constexpr,
):  # fmt: skip
    """``tall`` words of a sentence by ``wide`` columns of the weights."""
    word, column, inner = (
        first + tl.arange(0, tall),
        tl.program_id(0) * wide + tl.arange(0, wide),
        tl.arange(0, deep),
    )
    real = word[:, None] < length
    own = (sentence * longest + word)[:, None]
    left = x + own * k + inner[None, :]
    right = weights + column[None, :] * k + inner[:, None]
    total = tl.zeros((tall, wide), tl.float32)
    for _ in tl.range(0, k, deep, num_stages=3):
        total = tl.dot(tl.load(left, mask=real, other=0.0), tl.load(right), acc=total)
        left += deep
        right += deep
    tl.store(out + own * n + column[None, :], total.to(tl.bfloat16), mask=real)


@triton.jit
def layer_padded_kernel(
    x, weights, lengths, out, longest, k, n, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """A tile of the padded batch."""
    sentence = tl.program_id(2)
    layer_tile(
        x, weights, out, sentence, tl.program_id(1) * tall, tl.load(lengths + sentence), longest, k, n,
        tall, wide, deep,
    )  # fmt: skip


@triton.jit
def layer_returns_kernel(
    x, weights, lengths, out, longest, k, n, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """The same if any word is in it."""
    sentence = tl.program_id(2)
    length = tl.load(lengths + sentence)
    if tl.program_id(1) * tall < length:
        layer_tile(
            x, weights, out, sentence, tl.program_id(1) * tall, length, longest, k, n, tall, wide, deep
        )


@triton.jit
def layer_work_kernel(
    x, weights, lengths, work, out, longest, k, n, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """The same for the tiles of a list."""
    item = tl.load(work + tl.program_id(1))
    sentence = item >> 16
    layer_tile(
        x, weights, out, sentence, item & 0xFFFF, tl.load(lengths + sentence), longest, k, n, tall, wide, deep
    )


def layer(
    sentences: int = 48, longest: int = 768, k: int = 768, n: int = 1536
) -> tuple[dict[str, Run], Check]:
    tall, wide, deep = 64, 128, 64
    x, weights = noise(sentences, longest, k, dtype=torch.bfloat16), noise(n, k, dtype=torch.bfloat16)
    counted = [longest // 24 + i * 131 % (longest * 11 // 20) for i in range(sentences)]
    counted[sentences // 2] = longest
    lengths = torch.tensor(counted, device="cuda", dtype=torch.int32)
    items = [i << 16 | first for i, length in enumerate(counted) for first in range(0, length, tall)]
    work = torch.tensor(items, device="cuda", dtype=torch.int32)
    out = torch.zeros(sentences, longest, n, device="cuda", dtype=torch.bfloat16)
    grid = (n // wide, longest // tall, sentences)
    return {
        "flawed": lambda: layer_padded_kernel[grid](
            x, weights, lengths, out, longest, k, n, tall, wide, deep, num_warps=4
        ),
        "returns": lambda: layer_returns_kernel[grid](
            x, weights, lengths, out, longest, k, n, tall, wide, deep, num_warps=4
        ),
        "work_list": lambda: layer_work_kernel[(n // wide, len(items))](
            x, weights, lengths, work, out, longest, k, n, tall, wide, deep, num_warps=4
        ),
    }, lambda: out


# --- a picture's windows as batches of words ---


@triton.jit
def window_source(at, channels, window, across, down):
    """Where in its picture a windows' value is."""
    channel, word = at % channels, at // channels
    x, word = word % window, word // window
    y, word = word % window, word // window
    left, word = word % across, word // across
    top, picture = word % down, word // down
    line = (picture * down + top) * window + y
    return ((line * across + left) * window + x) * channels + channel


@triton.jit
def windows_kernel(picture, out, count, channels, window, across, down, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    own = at < count
    value = tl.load(picture + window_source(at, channels, window, across, down), mask=own)
    tl.store(out + at, value, mask=own)


@triton.jit
def windows_fixed_kernel(
    picture, out, count, channels: tl.constexpr, window: tl.constexpr, across: tl.constexpr, down: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * block + tl.arange(0, block)
    own = at < count
    value = tl.load(picture + window_source(at, channels, window, across, down), mask=own)
    tl.store(out + at, value, mask=own)


@triton.jit
def windows_lines_kernel(picture, out, length, window, across, block: tl.constexpr):
    """The same, a line of a window a program; ``length`` is how many values it has."""
    left = tl.program_id(0) % across
    line = tl.program_id(0) // across
    y, above = line % window, line // window
    piece = tl.arange(0, block)
    value = tl.load(picture + tl.program_id(0) * length + piece, mask=piece < length)
    to = ((above * across + left) * window + y) * length
    tl.store(out + to + piece, value, mask=piece < length)


def windows(pictures: int = 96, channels: int = 90) -> tuple[dict[str, Run], Check]:
    window, across, down = 7, 8, 8
    picture = noise(pictures, down * window, across * window, channels, dtype=torch.half)
    out = torch.empty_like(picture)
    count, length = picture.numel(), window * channels
    grid = (triton.cdiv(count, 512),)
    return {
        "flawed": lambda: windows_kernel[grid](
            picture, out, count, channels, window, across, down, 512, num_warps=4
        ),
        "fixed_sizes": lambda: windows_fixed_kernel[grid](
            picture, out, count, channels, window, across, down, 512, num_warps=4
        ),
        "lines": lambda: windows_lines_kernel[(count // length,)](
            picture, out, length, window, across, triton.next_power_of_2(length), num_warps=2
        ),
    }, lambda: out


# --- rows brought to mean zero and variance one ---


@triton.jit
def normed_kernel(x, gain, out, width, padded: tl.constexpr):
    """A layer norm of a row."""
    lane = tl.arange(0, padded)
    own = lane < width
    row = tl.program_id(0) * width
    entry = tl.load(x + row + lane, mask=own, other=0.0).to(tl.float32)
    mean = tl.sum(entry, 0) / width
    entry = tl.where(own, entry - mean, 0.0)
    scale = tl.rsqrt(tl.sum(entry * entry, 0) / width + 1e-5)
    tl.store(out + row + lane, entry * scale * tl.load(gain + lane, mask=own), mask=own)


@triton.jit
def normed_twice_kernel(x, gain, out, width, piece: tl.constexpr):
    """The same from sums of a row's values and squares, the row read again."""
    row = tl.program_id(0) * width
    sums, squares = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        lane = start + tl.arange(0, piece)
        entry = tl.load(x + row + lane, mask=lane < width, other=0.0).to(tl.float32)
        sums += entry
        squares += entry * entry
    mean = tl.sum(sums, 0) / width
    scale = tl.rsqrt(tl.sum(squares, 0) / width - mean * mean + 1e-5)
    for start in range(0, width, piece):
        lane = start + tl.arange(0, piece)
        own = lane < width
        entry = tl.load(x + row + lane, mask=own, other=0.0).to(tl.float32)
        tl.store(out + row + lane, (entry - mean) * scale * tl.load(gain + lane, mask=own), mask=own)


def normed(rows: int = 6000, width: int = 12288) -> tuple[dict[str, Run], Check]:
    x, gain = noise(rows, width), noise(width) * 0.5 + 1.0
    out = torch.empty_like(x)

    def by(warps: int) -> Run:
        padded = triton.next_power_of_2(width)
        return lambda: normed_kernel[(rows,)](x, gain, out, width, padded, num_warps=warps)

    return {
        "flawed": by(1),
        "many_warps": by(16),
        "twice": lambda: normed_twice_kernel[(rows,)](x, gain, out, width, 2048, num_warps=8),
    }, lambda: out


# --- patterns called from a memory ---


@triton.jit
def recalled_kernel(
    asked,
    stored,
    held,
    out,
    sharp,
    questions,
    patterns,
    depth: tl.constexpr,
    tall: tl.constexpr,
    wide: tl.constexpr,
):
    """What a memory answers: all it holds, each by how its pattern is like the question."""
    memory = tl.program_id(0)
    question = tl.make_block_ptr(
        asked + memory * questions * depth, (questions, depth), (depth, 1), (tl.program_id(1) * tall, 0),
        (tall, depth), (1, 0),
    )  # fmt: skip
    pattern = tl.make_block_ptr(
        stored + memory * patterns * depth, (depth, patterns), (1, depth), (0, 0), (depth, wide), (0, 1)
    )
    value = tl.make_block_ptr(
        held + memory * patterns * depth, (patterns, depth), (depth, 1), (0, 0), (wide, depth), (1, 0)
    )
    own = tl.load(question)
    best = tl.full((tall,), -1.0e30, tl.float32)
    whole = tl.zeros((tall,), tl.float32)
    answer = tl.zeros((tall, depth), tl.float32)
    for _ in tl.range(0, patterns, wide):
        like = tl.dot(own, tl.load(pattern)) * sharp
        better = tl.maximum(best, tl.max(like, axis=1))
        faded = tl.exp2(best - better)
        part = tl.exp2(like - better[:, None])
        whole = whole * faded + tl.sum(part, axis=1)
        answer *= faded[:, None]
        answer = tl.dot(part.to(tl.bfloat16), tl.load(value), answer)
        best = better
        pattern = tl.advance(pattern, (0, wide))
        value = tl.advance(value, (wide, 0))
    place = tl.program_id(1) * tall + tl.arange(0, tall)
    to = out + (memory * questions + place[:, None]) * depth + tl.arange(0, depth)[None, :]
    tl.store(to, (answer / whole[:, None]).to(tl.bfloat16))


def recalled(
    memories: int = 22, questions: int = 1536, patterns: int = 1920, depth: int = 256
) -> tuple[dict[str, Run], Check]:
    asked = noise(memories, questions, depth, dtype=torch.bfloat16) * 4
    stored = noise(memories, patterns, depth, dtype=torch.bfloat16)
    held, out = stored.flip(1).contiguous(), torch.empty_like(asked)

    def by(tall: int, wide: int, warps: int) -> Run:
        return lambda: recalled_kernel[(memories, questions // tall)](
            asked, stored, held, out, 0.09, questions, patterns, depth, tall, wide,
            num_warps=warps, num_stages=2,
        )  # fmt: skip

    return {
        "flawed": by(128, 64, 4),
        "eight_warps": by(128, 64, 8),
        "half_the_rows": by(64, 64, 4),
    }, lambda: out


# --- bytes of two branches added ---


@triton.jit
def mixed(one, two, first, second):
    """Two signed bytes by their factors, rounded and held within a byte."""
    sum7 = one * first + two * second + 64
    return tl.minimum(tl.maximum(sum7 >> 7, -128), 127)


@triton.jit
def branches_kernel(one, two, factors, out, groups: tl.constexpr):
    """Four channels of a pixel, one after another."""
    first = 4 * (tl.program_id(0) * groups + tl.arange(0, groups))
    for channel in tl.static_range(4):
        a = tl.load(one + first + channel).to(tl.int32)
        b = tl.load(two + first + channel).to(tl.int32)
        found = mixed(a, b, tl.load(factors + channel), tl.load(factors + 4 + channel))
        tl.store(out + first + channel, found.to(tl.int8))


@triton.jit
def branches_whole_kernel(one, two, factors, out, groups: tl.constexpr):
    """The same, four channels in a word."""
    at = tl.program_id(0) * groups + tl.arange(0, groups)
    a, b = tl.load(one + at), tl.load(two + at)
    word = tl.zeros((groups,), tl.int32)
    for channel in tl.static_range(4):
        up = 24 - 8 * channel
        found = mixed(
            (a << up) >> 24, (b << up) >> 24, tl.load(factors + channel), tl.load(factors + 4 + channel)
        )
        word |= (found & 255) << (8 * channel)
    tl.store(out + at, word)


@triton.jit
def branches_flat_kernel(one, two, factors, out, block: tl.constexpr):
    """The same, byte beside byte."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel = tl.arange(0, block) & 3
    a, b = tl.load(one + at).to(tl.int32), tl.load(two + at).to(tl.int32)
    found = mixed(a, b, tl.load(factors + channel), tl.load(factors + 4 + channel))
    tl.store(out + at, found.to(tl.int8))


def branches(pixels: int = 12_000_256) -> tuple[dict[str, Run], Check]:
    one = (noise(pixels, 4) * 127.0).to(torch.int8)
    two = one.flip(0).contiguous()
    factors = torch.tensor([90, 71, 64, 103, 38, 57, 64, 25], device="cuda", dtype=torch.int32)
    out = torch.empty_like(one)
    words = tuple(bytes_.view(torch.int32) for bytes_ in (one, two))
    return {
        "flawed": lambda: branches_kernel[(pixels // 512,)](one, two, factors, out, 512, num_warps=4),
        "whole_words": lambda: branches_whole_kernel[(pixels // 512,)](
            *words, factors, out.view(torch.int32), 512, num_warps=4
        ),
        "flat": lambda: branches_flat_kernel[(pixels // 512,)](one, two, factors, out, 2048, num_warps=4),
    }, out.float


# --- small matrices by small matrices ---


@triton.jit
def small_products_kernel(a, b, out, m: tl.constexpr, k: tl.constexpr, n):
    """Each row of the one by each row of the other."""
    row, inner = tl.arange(0, m)[:, None], tl.arange(0, k)[None, :]
    left = tl.load(a + tl.program_id(0) * m * k + row * k + inner).to(tl.float32)
    right = b + tl.program_id(0) * n * k + inner
    to = out + tl.program_id(0) * m * n + tl.arange(0, m)
    left_over = n
    while left_over > 0:
        tl.store(to, tl.sum(left * tl.load(right).to(tl.float32), axis=1).to(tl.float16))
        right += k
        to += m
        left_over -= 1


@triton.jit
def small_dot_kernel(a, b, out, m: tl.constexpr, k: tl.constexpr, n: tl.constexpr):
    """The same as a product of matrices."""
    pair = tl.program_id(0)
    row, column, inner = tl.arange(0, m)[None, :], tl.arange(0, n)[:, None], tl.arange(0, k)
    left = tl.load(a + pair * m * k + row * k + inner[:, None])
    right = tl.load(b + pair * n * k + column * k + inner[None, :])
    tl.store(out + pair * m * n + column * m + row, tl.dot(right, left).to(tl.float16))


def small_products(pairs: int = 24000, m: int = 64, k: int = 32, n: int = 32) -> tuple[dict[str, Run], Check]:
    a, b = noise(pairs, m, k, dtype=torch.half), noise(pairs, n, k, dtype=torch.half)
    out = torch.empty(pairs, n, m, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: small_products_kernel[(pairs,)](a, b, out, m, k, n, num_warps=4),
        "dot": lambda: small_dot_kernel[(pairs,)](a, b, out, m, k, n, num_warps=2),
    }, lambda: out


# --- scores of words within windows ---


@triton.jit
def scored_kernel(
    asked, keys, out, words: tl.constexpr, deep: tl.constexpr, kind: tl.constexpr, mode: tl.constexpr
):
    """Each word of a window by each other; ``kind`` is what is multiplied, ``mode`` how."""
    window = tl.program_id(0).to(tl.int64)
    word, inner = tl.arange(0, words), tl.arange(0, deep)
    at = window * words * deep + word[:, None] * deep + inner[None, :]
    question, key = tl.load(asked + at).to(kind), tl.load(keys + at).to(kind)
    score = tl.dot(question, key.T, input_precision=mode)
    to = window * words * words + word[:, None] * words + word[None, :]
    tl.store(out + to, (score * 0.125).to(tl.float16))


def scored(windows: int = 9000, words: int = 64, deep: int = 64) -> tuple[dict[str, Run], Check]:
    asked = noise(windows, words, deep, dtype=torch.half)
    keys = asked.flip(0).contiguous()
    out = torch.empty(windows, words, words, device="cuda", dtype=torch.half)

    def by(kind: tl.dtype, mode: str) -> Run:
        return lambda: scored_kernel[(windows,)](asked, keys, out, words, deep, kind, mode, num_warps=8)

    return {
        "flawed": by(tl.float32, "ieee"),
        "as_they_are": by(tl.float16, "ieee"),
        "tensor_floats": by(tl.float32, "tf32"),
    }, lambda: out


# --- categories of goods, each with a table ---


@triton.jit
def goods_kernel(
    codes, tables, out, entries, fields: tl.constexpr, width: tl.constexpr, many: tl.constexpr,
    by_entry, by_place,
):  # fmt: skip
    """Means of the tables' vectors for ``many`` goods; ``codes`` has a good's fields side by side."""
    good = tl.program_id(0) * many + tl.arange(0, many)
    place = tl.arange(0, width)
    total = tl.zeros((many, width), tl.float32)
    for field in tl.static_range(fields):
        code = tl.load(codes + good * fields + field).to(tl.int32)
        from_ = tables + field * entries * width + code[:, None] * by_entry + place[None, :] * by_place
        total += tl.load(from_).to(tl.float32)
    tl.store(out + good[:, None] * width + place[None, :], (total * (1.0 / fields)).to(tl.float16))


def goods(
    count: int = 100_000, entries: int = 1500, fields: int = 6, width: int = 64
) -> tuple[dict[str, Run], Check]:
    by_place = noise(fields, width, entries, dtype=torch.half)
    by_entry = by_place.transpose(1, 2).contiguous()
    codes = (noise(count, fields).abs() * entries).clamp(max=entries - 1).to(torch.int16)
    out = torch.empty(count, width, device="cuda", dtype=torch.half)
    grid = (count // 32,)
    return {
        "flawed": lambda: goods_kernel[grid](
            codes, by_place, out, entries, fields, width, 32, 1, entries, num_warps=4
        ),
        "vectors": lambda: goods_kernel[grid](
            codes, by_entry, out, entries, fields, width, 32, width, 1, num_warps=4
        ),
    }, lambda: out


STUDIES = (
    Study(
        "triton_sparse_gradients_limit_by_sorting",
        "all but the 16 of 2048 gradients that are farthest from zero become zero, 12000 rows, in Triton",
        "two rows of a program are sorted as a whole for the one value that they are compared with",
        (("topk", "topk keeps 16 of each pair of pieces", ("barriers",)),),
        sparse,
        tolerance=0.0,
        domain="training",
    ),
    Study(
        "triton_features_displaced_one_move_at_a_time",
        "products of 1048576 pixels' 32 features at nine displacements, bfloat16, in Triton",
        "all tiles are made for one displacement before the next: both arrays come from memory for each",
        (("moves_inner", "a tile's nine displacements follow one another", ("cache_locality",)),),
        moved,
        tolerance=0.0,
        domain="images",
    ),
    Study(
        "triton_distillation_loss_tile_by_tile",
        "sum of squared differences of 25165824 halves, in Triton",
        "a warp for 2 x 64 values, and an atomic on the one sum from each",
        (
            ("stride", "1056 programs that keep sums of every so many tiles", ("global_atomics",)),
            ("large_tiles", "8192 values a program", ("global_atomics",)),
        ),
        apart,
        domain="training",
    ),
    Study(
        "triton_layer_of_sentences_with_their_padding",
        "48 sentences padded to 768 words of 768 values by 1536 columns of weights, bfloat16, in Triton",
        "tiles behind a sentence's end multiply zeros by all weights",
        (
            ("returns", "a tile without words does nothing", ("idle_threads", "redundant_loads")),
            ("work_list", "programs for the tiles that have words", ("idle_threads", "redundant_loads")),
        ),
        layer,
        tolerance=1e-2,
        domain="language models",
    ),
    Study(
        "triton_windows_cut_value_by_value",
        "96 pictures of 56 x 56 pixels with 90 channels cut into windows of 7 x 7, half, in Triton",
        "five quotients and remainders for each value, by sizes known at run time only",
        (
            ("fixed_sizes", "sizes known when it is compiled", ("integer_arithmetic",)),
            (
                "lines",
                "a program for a window's line, without divisions for each value",
                ("integer_arithmetic",),
            ),
        ),
        windows,
        tolerance=0.0,
        domain="images",
    ),
    Study(
        "triton_layer_norm_row_a_warp",
        "6000 rows of 12288 floats to mean zero and variance one, in Triton",
        "a warp holds a row, 512 floats a thread: registers spill",
        (
            ("many_warps", "16 warps a row", ("local_memory",)),
            ("twice", "pieces of 2048, the row read twice", ("local_memory",)),
        ),
        normed,
    ),
    Study(
        "triton_memories_recalled_by_four_warps",
        "1536 questions to each of 22 memories of 1920 patterns of 256 bfloat16 values, in Triton",
        "four warps hold the answers to 128 questions, 256 floats a thread: registers spill",
        (
            ("eight_warps", "eight warps", ("local_memory",)),
            ("half_the_rows", "64 questions a program", ("local_memory",)),
        ),
        recalled,
        tolerance=2e-2,
    ),
    Study(
        "triton_branches_of_bytes_channel_by_channel",
        "two branches of 12000000 pixels with four channels of signed bytes added by factors, in Triton",
        "a channel's bytes are loaded and stored on their own, four bytes apart",
        (
            ("whole_words", "a pixel's four bytes as a word", ("narrow_access",)),
            ("flat", "byte beside byte", ("narrow_access",)),
        ),
        branches,
        tolerance=0.0,
        domain="quantisation",
    ),
    Study(
        "triton_small_products_row_by_row",
        "64 x 32 products of rows of 32 halves for each of 24000 pairs of matrices, in Triton",
        "halves become floats whose products are summed for a row after the other, without tensor cores",
        (("dot", "a product by tensor cores", ("tensor_cores_idle",)),),
        small_products,
        tolerance=2e-3,
    ),
    Study(
        "triton_windows_scored_in_whole_floats",
        "scores of 64 words with each other, 64 half features, 9000 windows, in Triton",
        "halves become floats whose products are exact: tensor cores do not have these",
        (
            ("as_they_are", "halves are multiplied as they are", ("tensor_cores_idle",)),
            ("tensor_floats", "floats in TF32", ("tensor_cores_idle",)),
        ),
        scored,
        tolerance=1e-2,
    ),
    Study(
        "triton_goods_described_place_by_place",
        "means of six tables' vectors of 64 halves for 100000 goods, 1500 entries a table, in Triton",
        "tables have all entries' first value, then all second ones: a vector's lie 3000 bytes apart",
        (("vectors", "tables with an entry's values side by side", ("uncoalesced_access",)),),
        goods,
        domain="recommenders",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
