"""Studies in Triton of what models do in training and serving, run by what tests/cuda/variants/frameworks.py provides.

Usage: models_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- experts ---


@triton.jit
def combine_atomics_kernel(y, tokens, weights, out, width: tl.constexpr):
    slot, column = tl.program_id(0), tl.arange(0, width)
    token, weight = tl.load(tokens + slot), tl.load(weights + slot)
    value = tl.load(y + slot * width + column).to(tl.float32)
    tl.atomic_add(out + token * width + column, weight * value)


@triton.jit
def combine_turns_kernel(y, slots, weights, out, chosen: tl.constexpr, width: tl.constexpr):
    token, column = tl.program_id(0), tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    for k in tl.static_range(chosen):
        slot = tl.load(slots + token * chosen + k)
        total += tl.load(weights + slot) * tl.load(y + slot * width + column).to(tl.float32)
    tl.store(out + token * width + column, total)


@triton.jit
def combine_tile_kernel(
    y, slots, weights, out, chosen: tl.constexpr, width: tl.constexpr, wide: tl.constexpr
):
    token, column = tl.program_id(0), tl.program_id(1) * wide + tl.arange(0, wide)
    slot = tl.load(slots + token * chosen + tl.arange(0, chosen))
    value = tl.load(y + slot[:, None] * width + column[None, :]).to(tl.float32)
    tl.store(out + token * width + column, tl.sum(value * tl.load(weights + slot)[:, None], 0))


def combine(tokens: int = 16384, width: int = 1024, experts: int = 64) -> tuple[dict[str, Run], Check]:
    chosen = 4
    order = (noise(tokens * chosen).abs() * experts).int().argsort(stable=True)
    token = (order // chosen).int()
    slots = torch.empty_like(token)
    slots[order] = torch.arange(tokens * chosen, device="cuda", dtype=torch.int32)
    y, weights = noise(tokens * chosen, width, dtype=torch.half), noise(tokens * chosen).abs()
    out = torch.zeros(tokens, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: combine_atomics_kernel[(tokens * chosen,)](
            y, token, weights, out, width, num_warps=4
        ),
        "turns": lambda: combine_turns_kernel[(tokens,)](y, slots, weights, out, chosen, width, num_warps=4),
        "tile": lambda: combine_tile_kernel[(tokens, width // 256)](
            y, slots, weights, out, chosen, width, 256, num_warps=1
        ),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def expert_tile(
    x, w, out, first, end, expert, n_tile, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    row, column = first + tl.arange(0, tall), n_tile * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    there = (row < end)[:, None]
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, k, deep):
        left = tl.load(x + row[:, None] * k + start + inner[None, :], there, 0.0)
        right = tl.load(w + (expert * k + start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + row[:, None] * n + column[None, :], total.to(tl.float16), there)


@triton.jit
def experts_whole_kernel(x, w, starts, out, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr):
    expert, n_tile = tl.program_id(1), tl.program_id(0)
    end = tl.load(starts + expert + 1)
    for first in range(tl.load(starts + expert), end, tall):
        expert_tile(x, w, out, first, end, expert, n_tile, n, k, tall, wide, deep)


@triton.jit
def experts_listed_kernel(
    x, w, starts, tiles, out, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    expert, first = tl.load(tiles + tl.program_id(1) * 2), tl.load(tiles + tl.program_id(1) * 2 + 1)
    end = tl.load(starts + expert + 1)
    expert_tile(x, w, out, first, end, expert, tl.program_id(0), n, k, tall, wide, deep)


@triton.jit
def experts_persistent_kernel(
    x, w, starts, tiles, out, count, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    across = n // wide
    for item in range(tl.program_id(0), count * across, tl.num_programs(0)):
        at = tiles + item // across * 2
        expert, first = tl.load(at), tl.load(at + 1)
        end = tl.load(starts + expert + 1)
        expert_tile(x, w, out, first, end, expert, item % across, n, k, tall, wide, deep)


def grouped_product(
    tokens: int = 8192, n: int = 2048, k: int = 1024, experts: int = 32
) -> tuple[dict[str, Run], Check]:
    tall, wide, deep = 64, 128, 64
    shares = [1.0 / (1 + (expert * 11) % experts) for expert in range(experts)]
    counts = [int(tokens * share / sum(shares)) for share in shares]
    counts[0] += tokens - sum(counts)
    begin = [sum(counts[:expert]) for expert in range(experts + 1)]
    listed = [
        (expert, first)
        for expert in range(experts)
        for first in range(begin[expert], begin[expert + 1], tall)
    ]
    starts = torch.tensor(begin, device="cuda", dtype=torch.int32)
    tiles = torch.tensor(listed, device="cuda", dtype=torch.int32)
    x, w = noise(tokens, k, dtype=torch.half), noise(experts, k, n, dtype=torch.half)
    out = torch.empty(tokens, n, device="cuda", dtype=torch.half)
    sides: dict[str, Run] = {
        "flawed": lambda: experts_whole_kernel[(n // wide, experts)](
            x, w, starts, out, n, k, tall, wide, deep, num_warps=4, num_stages=3
        ),
        "listed": lambda: experts_listed_kernel[(n // wide, len(listed))](
            x, w, starts, tiles, out, n, k, tall, wide, deep, num_warps=4, num_stages=3
        ),
        "persistent": lambda: experts_persistent_kernel[(264,)](
            x, w, starts, tiles, out, len(listed), n, k, tall, wide, deep, num_warps=4, num_stages=3
        ),
    }
    return sides, lambda: out


# --- serving ---


@triton.jit
def pages_token_kernel(keys, pages, cache, heads: tl.constexpr, features: tl.constexpr, page: tl.constexpr):
    token, at = tl.program_id(0), tl.arange(0, heads * features)
    place = tl.load(pages + token // page)
    head, feature = at // features, at % features
    eighth = (place * heads + head) * (features // 8) + feature // 8
    to = (eighth * page + token % page) * 8 + feature % 8
    tl.store(cache + to, tl.load(keys + token * heads * features + at))


@triton.jit
def pages_whole_kernel(keys, pages, cache, heads: tl.constexpr, features: tl.constexpr, page: tl.constexpr):
    number, head = tl.program_id(0), tl.program_id(1)
    token, feature = number * page + tl.arange(0, page), tl.arange(0, features)
    value = tl.load(keys + (token[:, None] * heads + head) * features + feature[None, :])
    turned = tl.permute(tl.reshape(value, (page, features // 8, 8)), (1, 0, 2))
    to = (tl.load(pages + number) * heads + head) * features * page + tl.arange(0, features * page)
    tl.store(cache + to, tl.reshape(turned, (features * page,)))


@triton.jit
def pages_by_token_kernel(keys, pages, cache, width: tl.constexpr, page: tl.constexpr):
    token, at = tl.program_id(0), tl.arange(0, width)
    to = tl.load(pages + token // page) * page + token % page
    tl.store(cache + to * width + at, tl.load(keys + token * width + at))


def cache_pages(tokens: int = 65536) -> tuple[dict[str, Run], Check]:
    heads, features, page = 8, 128, 16
    count = tokens // page
    keys = noise(tokens, heads, features, dtype=torch.half)
    pages = noise(count).argsort().int()
    cache = torch.empty(count, heads, features // 8, page, 8, device="cuda", dtype=torch.half)
    by_token = torch.empty(count, page, heads, features, device="cuda", dtype=torch.half)
    found = {"by_token": False}

    def token() -> None:
        pages_token_kernel[(tokens,)](keys, pages, cache, heads, features, page, num_warps=4)
        found["by_token"] = False

    def whole() -> None:
        pages_whole_kernel[(count, heads)](keys, pages, cache, heads, features, page, num_warps=4)
        found["by_token"] = False

    def kept_by_token() -> None:
        pages_by_token_kernel[(tokens,)](keys, pages, by_token, heads * features, page, num_warps=4)
        found["by_token"] = True

    def result() -> torch.Tensor:
        if found["by_token"]:
            return by_token.flatten()
        return cache.permute(0, 3, 1, 2, 4).flatten()

    return {"flawed": token, "whole_page": whole, "by_token": kept_by_token}, result


@triton.jit
def decode_head_kernel(
    q, keys, values, out, steps, times: tl.constexpr, features: tl.constexpr, tall: tl.constexpr
):
    head, feature = tl.program_id(0), tl.arange(0, features)
    query = tl.load(q + head * features + feature).to(tl.float32) * 0.08838834764
    base = (head // times) * steps * features
    top, total = -float("inf"), 0.0
    mixed = tl.zeros((features,), tl.float32)
    for start in range(0, steps, tall):
        at = base + (start + tl.arange(0, tall))[:, None] * features + feature[None, :]
        score = tl.sum(tl.load(keys + at).to(tl.float32) * query[None, :], 1)
        higher = tl.maximum(top, tl.max(score, 0))
        weight, old = tl.exp(score - higher), tl.exp(top - higher)
        mixed = mixed * old + tl.sum(tl.load(values + at).to(tl.float32) * weight[:, None], 0)
        total, top = total * old + tl.sum(weight, 0), higher
    tl.store(out + head * features + feature, mixed / total)


@triton.jit
def decode_group_kernel(
    q, keys, values, out, steps, times: tl.constexpr, features: tl.constexpr, tall: tl.constexpr
):
    group, row, feature = tl.program_id(0), tl.arange(0, 16), tl.arange(0, features)
    real = (row < times)[:, None]
    of = (group * times + row)[:, None] * features + feature[None, :]
    query = tl.load(q + of, real, 0.0)
    base = group * steps * features
    top, total = tl.full((16,), -float("inf"), tl.float32), tl.zeros((16,), tl.float32)
    mixed = tl.zeros((16, features), tl.float32)
    for start in range(0, steps, tall):
        at = base + (start + tl.arange(0, tall))[:, None] * features + feature[None, :]
        score = tl.dot(query, tl.trans(tl.load(keys + at))) * 0.08838834764
        higher = tl.maximum(top, tl.max(score, 1))
        weight, old = tl.exp(score - higher[:, None]), tl.exp(top - higher)
        mixed = tl.dot(weight.to(tl.float16), tl.load(values + at), mixed * old[:, None])
        total, top = total * old + tl.sum(weight, 1), higher
    tl.store(out + of, mixed / total[:, None], real)


@triton.jit
def decode_sums_kernel(
    q, keys, values, out, steps, times: tl.constexpr, features: tl.constexpr, tall: tl.constexpr
):
    group, row, feature = tl.program_id(0), tl.arange(0, times), tl.arange(0, features)
    of = (group * times + row)[:, None] * features + feature[None, :]
    query = tl.load(q + of).to(tl.float32) * 0.08838834764
    base = group * steps * features
    top, total = tl.full((times,), -float("inf"), tl.float32), tl.zeros((times,), tl.float32)
    mixed = tl.zeros((times, features), tl.float32)
    for start in range(0, steps, tall):
        at = base + (start + tl.arange(0, tall))[:, None] * features + feature[None, :]
        key, value = tl.load(keys + at).to(tl.float32), tl.load(values + at).to(tl.float32)
        score = tl.sum(key[None, :, :] * query[:, None, :], 2)
        higher = tl.maximum(top, tl.max(score, 1))
        weight, old = tl.exp(score - higher[:, None]), tl.exp(top - higher)
        mixed = mixed * old[:, None] + tl.sum(value[None, :, :] * weight[:, :, None], 1)
        total, top = total * old + tl.sum(weight, 1), higher
    tl.store(out + of, mixed / total[:, None])


def decode(batch: int = 64, steps: int = 1024) -> tuple[dict[str, Run], Check]:
    groups, times, features = 8, 4, 128
    q = noise(batch, groups * times, features, dtype=torch.half) * 4
    keys = noise(batch, groups, steps, features, dtype=torch.half)
    values = keys.flip(2).contiguous()
    out = torch.empty(batch, groups * times, features, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: decode_head_kernel[(batch * groups * times,)](
            q, keys, values, out, steps, times, features, 64, num_warps=4
        ),
        "group": lambda: decode_group_kernel[(batch * groups,)](
            q, keys, values, out, steps, times, features, 64, num_warps=4, num_stages=3
        ),
        "sums": lambda: decode_sums_kernel[(batch * groups,)](
            q, keys, values, out, steps, times, features, 16, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def largest_sorted_kernel(x, out, columns: tl.constexpr, keep: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(x + at)
    ordered = tl.sort(value, descending=True)
    least = tl.sum(tl.where(tl.arange(0, columns) == keep - 1, ordered, 0.0), 0)
    tl.store(out + at, tl.where(value >= least, value, 0.0))


@triton.jit
def largest_kept_kernel(x, out, columns: tl.constexpr, keep: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(x + at)
    least = tl.min(tl.topk(value, keep), 0)
    tl.store(out + at, tl.where(value >= least, value, 0.0))


@triton.jit
def largest_rounds_kernel(x, out, columns: tl.constexpr, keep: tl.constexpr, rows: tl.constexpr):
    row, column = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, columns)
    at = row[:, None] * columns + column[None, :]
    value = tl.load(x + at)
    left, least = value, tl.max(value, 1)
    for _ in range(keep - 1):
        left = tl.where(left == least[:, None], -float("inf"), left)
        least = tl.max(left, 1)
    tl.store(out + at, tl.where(value >= least[:, None], value, 0.0))


def largest(rows: int = 16384) -> tuple[dict[str, Run], Check]:
    columns = 1024
    x = noise(rows, columns).argsort(1).float() / columns  # no value twice in a row
    out = torch.empty_like(x)
    sides: dict[str, Run] = {
        "flawed": lambda: largest_sorted_kernel[(rows,)](x, out, columns, 8, num_warps=4),
        "kept": lambda: largest_kept_kernel[(rows,)](x, out, columns, 8, num_warps=4),
        "rounds": lambda: largest_rounds_kernel[(rows,)](x, out, columns, 8, 1, num_warps=1),
    }
    return sides, lambda: out


# --- attention and products ---


@triton.jit(do_not_specialize=["pitch"])
def masked_softmax_kernel(scores, mask, out, scale, pitch, columns: tl.constexpr, hinted: tl.constexpr):
    row = tl.program_id(0) * pitch
    if hinted:
        row = tl.multiple_of(row, 16)
    at = row + tl.arange(0, columns)
    value = tl.load(scores + at).to(tl.float32) * scale
    value = tl.where(tl.load(mask + at), value, -float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + at, (value / tl.sum(value, 0)).to(tl.float16))


@triton.jit
def masked_softmax_rows_kernel(scores, mask, out, scale, columns: tl.constexpr, rows: tl.constexpr):
    row, column = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, columns)
    at = row[:, None] * columns + column[None, :]
    value = tl.load(scores + at).to(tl.float32) * scale
    value = tl.where(tl.load(mask + at), value, -float("inf"))
    value = tl.exp(value - tl.max(value, 1)[:, None])
    tl.store(out + at, (value / tl.sum(value, 1)[:, None]).to(tl.float16))


def masked_softmax(rows: int = 32768, columns: int = 2048) -> tuple[dict[str, Run], Check]:
    scores = noise(rows, columns, dtype=torch.half) * 8
    mask, out = noise(rows, columns) > -0.5, torch.empty_like(scores)

    def side(hinted: bool) -> Run:
        return lambda: masked_softmax_kernel[(rows,)](
            scores, mask, out, 0.125, columns, columns, hinted, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": side(False),
        "hinted": side(True),
        "row_a_warp": lambda: masked_softmax_rows_kernel[(rows // 4,)](
            scores, mask, out, 0.125, columns, 4, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def attention_kernel(q, k, v, out, steps, features: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr):
    base = tl.program_id(1) * steps * features
    row, column, feature = (
        tl.program_id(0) * tall + tl.arange(0, tall),
        tl.arange(0, wide),
        tl.arange(0, features),
    )
    of = base + row[:, None] * features + feature[None, :]
    query = tl.load(q + of)
    top, total = tl.full((tall,), -float("inf"), tl.float32), tl.zeros((tall,), tl.float32)
    mixed = tl.zeros((tall, features), tl.float32)
    for start in range(0, steps, wide):
        at = base + (start + column)[:, None] * features + feature[None, :]
        score = tl.dot(query, tl.trans(tl.load(k + at))) * 0.09016844  # log2(e) / sqrt(256)
        higher = tl.maximum(top, tl.max(score, 1))
        weight, old = tl.exp2(score - higher[:, None]), tl.exp2(top - higher)
        mixed = tl.dot(weight.to(tl.float16), tl.load(v + at), mixed * old[:, None])
        total, top = total * old + tl.sum(weight, 1), higher
    tl.store(out + of, (mixed / total[:, None]).to(tl.float16))


def attention(heads: int = 16, steps: int = 2048) -> tuple[dict[str, Run], Check]:
    features = 256
    q = noise(heads, steps, features, dtype=torch.half) * 4
    k = noise(heads, steps, features, dtype=torch.half)
    v, out = k.flip(1).contiguous(), torch.empty_like(q)

    def side(tall: int, wide: int, warps: int, stages: int) -> Run:
        return lambda: attention_kernel[(steps // tall, heads)](
            q, k, v, out, steps, features, tall, wide, num_warps=warps, num_stages=stages
        )

    return {
        "flawed": side(128, 64, 4, 2),
        "eight_warps": side(128, 64, 8, 2),
        "small_tiles": side(64, 64, 4, 2),
    }, lambda: out


@triton.jit
def states_kernel(
    keys, values, out, steps, piece, features: tl.constexpr, deep: tl.constexpr, how: tl.constexpr
):
    head, number, feature = tl.program_id(1), tl.program_id(0), tl.arange(0, features)
    total = tl.zeros((features, features), tl.float32)
    for start in range(0, piece, deep):
        step = head * steps + number * piece + start + tl.arange(0, deep)
        at = step[:, None] * features + feature[None, :]
        key, value = tl.load(keys + at), tl.load(values + at)
        if how == "half":
            total = tl.dot(tl.trans(key), value, total)
        else:
            total = tl.dot(tl.trans(key.to(tl.float32)), value.to(tl.float32), total, input_precision=how)
    to = (head * tl.num_programs(0) + number) * features * features
    tl.store(out + to + feature[:, None] * features + feature[None, :], total)


def states(heads: int = 128, steps: int = 4096, piece: int = 256) -> tuple[dict[str, Run], Check]:
    features = 64
    keys = noise(heads, steps, features, dtype=torch.half)
    values = keys.flip(1).contiguous()
    out = torch.empty(heads, steps // piece, features, features, device="cuda")

    def side(how: str, warps: int, stages: int) -> Run:
        return lambda: states_kernel[(steps // piece, heads)](
            keys, values, out, steps, piece, features, 32, how, num_warps=warps, num_stages=stages
        )

    return {
        "flawed": side("ieee", 8, 2),
        "halves": side("half", 8, 2),
        "tf32": side("tf32", 8, 2),
    }, lambda: out


@triton.jit
def projection_kernel(
    x, w, out, n, k, parts: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    row, column = (
        tl.program_id(0) * tall + tl.arange(0, tall),
        tl.program_id(1) * wide + tl.arange(0, wide),
    )
    inner = tl.program_id(2) * (k // parts) + tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, k // parts, deep):
        left = tl.load(x + row[:, None] * k + start + inner[None, :])
        right = tl.load(w + (start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    at = row[:, None] * n + column[None, :]
    if parts == 1:
        tl.store(out + at, total)
    else:
        tl.atomic_add(out + at, total)


def projection(m: int = 1536, n: int = 3072, k: int = 4096) -> tuple[dict[str, Run], Check]:
    x, w = noise(m, k, dtype=torch.half), noise(k, n, dtype=torch.half)
    out = torch.zeros(m, n, device="cuda")

    def side(tall: int, wide: int, parts: int, warps: int) -> Run:
        return lambda: projection_kernel[(m // tall, n // wide, parts)](
            x, w, out, n, k, parts, tall, wide, 64, num_warps=warps, num_stages=3
        )

    return {
        "flawed": side(128, 256, 1, 8),
        "halved": side(128, 128, 1, 4),
        "parts": side(128, 256, 4, 8),
    }, lambda: (out.clone(), out.zero_())[0]


# --- norms, optimisers, layouts ---


@triton.jit
def norm_back_walks_kernel(
    x, dy, weight, mean, rstd, dx, columns: tl.constexpr, piece: tl.constexpr, together: tl.constexpr
):
    row = tl.program_id(0)
    middle, scale = tl.load(mean + row), tl.load(rstd + row)
    first, second = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    for start in range(0, columns, piece):
        column = start + tl.arange(0, piece)
        grown = tl.load(dy + row * columns + column).to(tl.float32) * tl.load(weight + column).to(tl.float32)
        first += grown
        if together:
            second += grown * (tl.load(x + row * columns + column).to(tl.float32) - middle) * scale
    if not together:
        for start in range(0, columns, piece):
            column = start + tl.arange(0, piece)
            grown = tl.load(dy + row * columns + column).to(tl.float32) * tl.load(weight + column).to(
                tl.float32
            )
            second += grown * (tl.load(x + row * columns + column).to(tl.float32) - middle) * scale
    one, two = tl.sum(first, 0) / columns, tl.sum(second, 0) / columns
    for start in range(0, columns, piece):
        column = start + tl.arange(0, piece)
        grown = tl.load(dy + row * columns + column).to(tl.float32) * tl.load(weight + column).to(tl.float32)
        normed = (tl.load(x + row * columns + column).to(tl.float32) - middle) * scale
        tl.store(dx + row * columns + column, ((grown - one - normed * two) * scale).to(tl.float16))


@triton.jit
def norm_back_whole_kernel(x, dy, weight, mean, rstd, dx, columns: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, columns)
    middle, scale = tl.load(mean + row), tl.load(rstd + row)
    grown = tl.load(dy + row * columns + column).to(tl.float32) * tl.load(weight + column).to(tl.float32)
    normed = (tl.load(x + row * columns + column).to(tl.float32) - middle) * scale
    one, two = tl.sum(grown, 0) / columns, tl.sum(grown * normed, 0) / columns
    tl.store(dx + row * columns + column, ((grown - one - normed * two) * scale).to(tl.float16))


def norm_back(rows: int = 16384, columns: int = 8192) -> tuple[dict[str, Run], Check]:
    x, weight = noise(rows, columns, dtype=torch.half), noise(columns, dtype=torch.half)
    dy, dx = x.flip(0).contiguous(), torch.empty_like(x)
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1) + 1e-5)

    def walks(together: bool) -> Run:
        return lambda: norm_back_walks_kernel[(rows,)](
            x, dy, weight, mean, rstd, dx, columns, 1024, together, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": walks(False),
        "two_walks": walks(True),
        "whole_row": lambda: norm_back_whole_kernel[(rows,)](
            x, dy, weight, mean, rstd, dx, columns, num_warps=16
        ),
    }
    return sides, lambda: dx


@triton.jit
def lion(weight, momentum, gradient, rate):
    step = 0.9 * momentum + 0.1 * gradient
    sign = tl.where(step > 0, 1.0, tl.where(step < 0, -1.0, 0.0))
    return weight - rate * (sign + 0.1 * weight), 0.99 * momentum + 0.01 * gradient


@triton.jit
def lion_pointers_kernel(table, rate, block: tl.constexpr, hinted: tl.constexpr):
    entry = table + tl.program_id(1) * 5
    weight = tl.load(entry).to(tl.pointer_type(tl.float32))
    momentum = tl.load(entry + 1).to(tl.pointer_type(tl.float32))
    gradient = tl.load(entry + 2).to(tl.pointer_type(tl.float32))
    new_weight = tl.load(entry + 3).to(tl.pointer_type(tl.float32))
    new_momentum = tl.load(entry + 4).to(tl.pointer_type(tl.float32))
    if hinted:
        weight, momentum = tl.multiple_of(weight, 16), tl.multiple_of(momentum, 16)
        gradient = tl.multiple_of(gradient, 16)
        new_weight, new_momentum = tl.multiple_of(new_weight, 16), tl.multiple_of(new_momentum, 16)
    at = tl.program_id(0) * block + tl.arange(0, block)
    w, m = lion(tl.load(weight + at), tl.load(momentum + at), tl.load(gradient + at), rate)
    tl.store(new_weight + at, w)
    tl.store(new_momentum + at, m)


@triton.jit
def lion_flat_kernel(weight, momentum, gradient, new_weight, new_momentum, rate, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    w, m = lion(tl.load(weight + at), tl.load(momentum + at), tl.load(gradient + at), rate)
    tl.store(new_weight + at, w)
    tl.store(new_momentum + at, m)


def lion_step(count: int = 64, each: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    weight, momentum = noise(count * each), noise(count * each) * 0.1
    gradient = weight.flip(0).contiguous()
    new_weight, new_momentum = torch.empty_like(weight), torch.empty_like(weight)
    buffers = (weight, momentum, gradient, new_weight, new_momentum)
    table = torch.tensor(
        [[one[tensor * each :].data_ptr() for one in buffers] for tensor in range(count)],
        device="cuda", dtype=torch.int64,
    )  # fmt: skip

    def side(hinted: bool) -> Run:
        return lambda: lion_pointers_kernel[(each // 1024, count)](table, 1e-4, 1024, hinted, num_warps=4)

    sides: dict[str, Run] = {
        "flawed": side(False),
        "hinted": side(True),
        "flat": lambda: lion_flat_kernel[(count * each // 1024,)](*buffers, 1e-4, 1024, num_warps=4),
    }
    return sides, lambda: torch.cat((new_weight, new_momentum))


@triton.jit
def windows_flat_kernel(x, out, height, width, channels, side, shift, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel, token = at % channels, at // channels
    column, row = token % side, token // side % side
    window = token // (side * side)
    across, down = width // side, height // side
    from_column = (window % across * side + column + shift) % width
    from_row = (window // across % down * side + row + shift) % height
    image = window // (across * down)
    value = tl.load(x + ((image * height + from_row) * width + from_column) * channels + channel)
    tl.store(out + at, value)


@triton.jit
def windows_fixed_kernel(
    x, out, height: tl.constexpr, width: tl.constexpr, channels: tl.constexpr, side: tl.constexpr,
    shift: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel, token = at % channels, at // channels
    column, row = token % side, token // side % side
    window = token // (side * side)
    from_column = (window % (width // side) * side + column + shift) % width
    from_row = (window // (width // side) % (height // side) * side + row + shift) % height
    image = window // (width // side * (height // side))
    value = tl.load(x + ((image * height + from_row) * width + from_column) * channels + channel)
    tl.store(out + at, value)


@triton.jit
def windows_rows_kernel(x, out, height, width, channels, shift, side: tl.constexpr, wide: tl.constexpr):
    window, image = tl.program_id(0), tl.program_id(1)
    across = width // side
    token, channel = tl.arange(0, side * side), tl.arange(0, wide)
    column, row = window % across * side + token % side, window // across * side + token // side
    column, row = column + shift, row + shift
    column, row = tl.where(column < width, column, column - width), tl.where(row < height, row, row - height)
    from_token = (image * height + row) * width + column
    to_token = (image * tl.num_programs(0) + window) * side * side + token
    there = (channel < channels)[None, :] & (token >= 0)[:, None]
    value = tl.load(x + from_token[:, None] * channels + channel[None, :], there)
    tl.store(out + to_token[:, None] * channels + channel[None, :], value, there)


def windows(images: int = 32, height: int = 128, width: int = 128) -> tuple[dict[str, Run], Check]:
    channels, side, shift = 96, 8, 4
    x = noise(images, height, width, channels, dtype=torch.half)
    out = torch.empty_like(x)
    n = x.numel()
    sides: dict[str, Run] = {
        "flawed": lambda: windows_flat_kernel[(n // 1024,)](
            x, out, height, width, channels, side, shift, 1024, num_warps=4
        ),
        "fixed_sizes": lambda: windows_fixed_kernel[(n // 1024,)](
            x, out, height, width, channels, side, shift, 1024, num_warps=4
        ),
        "window": lambda: windows_rows_kernel[(height // side * (width // side), images)](
            x, out, height, width, channels, shift, side, 128, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def channel_whole_kernel(x, out, images, channels, pixels, piece: tl.constexpr):
    channel = tl.program_id(0)
    total, squares = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    for image in range(images):
        for start in range(0, pixels, piece):
            at = (image * channels + channel) * pixels + start + tl.arange(0, piece)
            value = tl.load(x + at).to(tl.float32)
            total += value
            squares += value * value
    tl.store(out + channel, tl.sum(total, 0))
    tl.store(out + channels + channel, tl.sum(squares, 0))


@triton.jit
def channel_image_kernel(x, out, channels, pixels, piece: tl.constexpr):
    channel = tl.program_id(0)
    base = (tl.program_id(1) * channels + channel) * pixels
    total, squares = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    for start in range(0, pixels, piece):
        value = tl.load(x + base + start + tl.arange(0, piece)).to(tl.float32)
        total += value
        squares += value * value
    tl.atomic_add(out + channel, tl.sum(total, 0))
    tl.atomic_add(out + channels + channel, tl.sum(squares, 0))


@triton.jit
def channel_parts_kernel(x, parts, images, channels, pixels, piece: tl.constexpr):
    channel, part, count = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    total, squares = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    for image in range(images):
        for start in range(part * piece, pixels, count * piece):
            at = (image * channels + channel) * pixels + start + tl.arange(0, piece)
            value = tl.load(x + at).to(tl.float32)
            total += value
            squares += value * value
    tl.store(parts + part * 2 * channels + channel, tl.sum(total, 0))
    tl.store(parts + (part * 2 + 1) * channels + channel, tl.sum(squares, 0))


def channel_sums(images: int = 64, channels: int = 64, pixels: int = 16384) -> tuple[dict[str, Run], Check]:
    x = noise(images, channels, pixels, dtype=torch.half) + 1
    out, parts = torch.zeros(2, channels, device="cuda"), torch.zeros(16, 2, channels, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: channel_whole_kernel[(channels,)](
            x, out, images, channels, pixels, 2048, num_warps=8
        ),
        "images": lambda: channel_image_kernel[(channels, images)](
            x, out, channels, pixels, 2048, num_warps=8
        ),
        "parts": lambda: channel_parts_kernel[(channels, 16)](
            x, parts, images, channels, pixels, 1024, num_warps=4
        ),
    }

    def result() -> torch.Tensor:
        found = out + parts.sum(0)
        out.zero_()
        parts.zero_()
        return found

    return sides, result


@triton.jit
def words_whole_kernel(x, out, columns: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(x + at).to(tl.float32)
    top = tl.max(value, 0)
    total = tl.sum(tl.exp(value - top), 0)
    tl.store(out + at, (value - top - tl.log(total)).to(tl.float16))


@triton.jit
def words_pieces_kernel(x, out, columns: tl.constexpr, piece: tl.constexpr):
    base = tl.program_id(0) * columns
    top, total = -float("inf"), 0.0
    for start in range(0, columns, piece):
        value = tl.load(x + base + start + tl.arange(0, piece)).to(tl.float32)
        higher = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
        top = higher
    top += tl.log(total)
    for start in range(0, columns, piece):
        at = base + start + tl.arange(0, piece)
        tl.store(out + at, (tl.load(x + at).to(tl.float32) - top).to(tl.float16))


def words(rows: int = 4096, columns: int = 32768) -> tuple[dict[str, Run], Check]:
    x = noise(rows, columns, dtype=torch.half) * 4
    out = torch.empty_like(x)
    sides: dict[str, Run] = {
        "flawed": lambda: words_whole_kernel[(rows,)](x, out, columns, num_warps=8),
        "pieces": lambda: words_pieces_kernel[(rows,)](x, out, columns, 4096, num_warps=8),
        "limited": lambda: words_whole_kernel[(rows,)](x, out, columns, num_warps=8, maxnreg=128),
        "sixteen_warps": lambda: words_whole_kernel[(rows,)](x, out, columns, num_warps=16),
    }
    return sides, lambda: out


# --- nothing wrong ---


@triton.jit
def gate_back_kernel(gate, up, dy, dgate, dup, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    g, d = tl.load(gate + at).to(tl.float32), tl.load(dy + at).to(tl.float32)
    open_ = tl.sigmoid(g)
    tl.store(dup + at, (d * g * open_).to(tl.float16))
    slope = open_ * (1.0 + g * (1.0 - open_))
    tl.store(dgate + at, (d * tl.load(up + at).to(tl.float32) * slope).to(tl.float16))


def gate_back(n: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    gate, up = noise(n, dtype=torch.half), noise(n, dtype=torch.half)
    dy = gate.flip(0).contiguous()
    dgate, dup = torch.empty_like(gate), torch.empty_like(gate)
    return {
        "sound": lambda: gate_back_kernel[(n // 1024,)](gate, up, dy, dgate, dup, 1024, num_warps=4)
    }, lambda: dgate + dup


@triton.jit
def product_kernel(
    a, b, c, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr, group: tl.constexpr
):
    program, across = tl.program_id(0), n // wide
    band = program // (group * across) * group
    row_block, column_block = band + program % group, program % (group * across) // group
    row, column = row_block * tall + tl.arange(0, tall), column_block * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, k, deep):
        left = tl.load(a + row[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16))


def product(m: int = 8192, n: int = 4096, k: int = 2048) -> tuple[dict[str, Run], Check]:
    a, b = noise(m, k, dtype=torch.half), noise(k, n, dtype=torch.half)
    c = torch.empty(m, n, device="cuda", dtype=torch.half)
    return {
        "sound": lambda: product_kernel[(m // 128 * (n // 256),)](
            a, b, c, n, k, 128, 256, 64, 8, num_warps=8, num_stages=4
        )
    }, lambda: c


STUDIES = (
    Study(
        "triton_experts_added_by_atomics",
        "the outputs of four experts each for 16384 tokens of 1024 half values, weighted and summed, in Triton",
        "a program an expert's output adds it to its token's floats by atomics",
        (
            ("turns", "a program a token walks its four outputs", ("global_atomics",)),
            ("tile", "a warp a token and 256 columns sums a tile of its four outputs", ("global_atomics",)),
        ),
        combine,
    ),
    Study(
        "triton_grouped_product_expert_a_program",
        "8192 tokens of 1024 half values times the matrices of 32 experts, 2048 outputs, in Triton",
        "a program walks all tokens of an expert, of which some have thirty times as many as others",
        (
            ("listed", "a program a tile of 64 tokens, from a list", ("workload_imbalance",)),
            ("persistent", "264 programs take tiles from the list in turns", ("workload_imbalance",)),
        ),
        grouped_product,
        1e-2,
    ),
    Study(
        "triton_key_pages_token_by_token",
        "keys of 65536 tokens, 8 heads of 128 halves, into pages of 16 tokens, eight features together, in Triton",
        "a program a token: it stores 16 bytes to every 256",
        (
            ("whole_page", "a program a page and head, its tile turned", ("uncoalesced_access", "narrow_access")),
            ("by_token", "pages keep a token's features together", ("uncoalesced_access", "narrow_access")),
        ),
        cache_pages,
    ),
    Study(
        "triton_decode_head_a_program",
        "a step of attention for 64 sequences of 1024, 32 heads that share 8 key heads, 128 half features, in Triton",
        "a program a head: the four heads of a key head load it once each",
        (
            ("group", "a program a key head, its four heads as rows of a product", ("redundant_loads",)),
            ("sums", "a program a key head, sums of products", ("redundant_loads",)),
        ),
        decode,
        1e-2,
    ),
    Study(
        "triton_largest_eight_by_sorting",
        "all but the eight largest of 1024 floats become zero, 16384 rows, in Triton",
        "the whole row is sorted to find the eighth",
        (
            ("kept", "topk keeps eight of each pair of pieces", ("barriers",)),
            ("rounds", "a warp takes the maximum eight times", ("barriers",)),
        ),
        largest,
    ),
    Study(
        "triton_masked_softmax_any_pitch",
        "softmax of 32768 rows of 2048 half scores under a mask of bytes, in Triton",
        "the pitch is not specialised: nothing is known of the rows' alignment, loads of one value",
        (
            ("hinted", "a row's begin is said to be a multiple of 16", ("narrow_access",)),
            ("row_a_warp", "rows of a fixed length, a warp each", ("narrow_access", "barriers")),
        ),
        masked_softmax,
        2e-3,
    ),
    Study(
        "triton_attention_four_warps",
        "attention of 16 heads, 2048 steps and 256 half features in Triton",
        "four warps hold the sums of 128 queries, 256 floats a thread: registers spill",
        (
            ("eight_warps", "eight warps", ("local_memory",)),
            ("small_tiles", "64 queries a program", ("local_memory",)),
        ),
        attention,
        1e-2,
    ),
    Study(
        "triton_states_in_full_floats",
        "sums of key times value over pieces of 256 steps, 128 heads of 64 half features, in Triton",
        "halves become floats for a product in full precision, which tensor cores do not have",
        (
            ("halves", "halves are multiplied as they are", ("tensor_cores_idle",)),
            ("tf32", "floats in TF32", ("tensor_cores_idle",)),
        ),
        states,
        1e-2,
    ),
    Study(
        "triton_projection_144_tiles",
        "product of half matrices, 1536 x 3072 of depth 4096, in Triton",
        "144 tiles of 128 x 256, one to a multiprocessor: the second wave is almost empty",
        (
            ("halved", "288 tiles of 128 x 128", ("tail_effect",)),
            ("parts", "the depth in four parts, added by atomics", ("tail_effect",)),
        ),
        projection,
        1e-2,
    ),
    Study(
        "triton_norm_backward_three_walks",
        "layer norm's input gradient for 16384 rows of 8192 half values in Triton",
        "a row is walked three times: for either sum and for the result",
        (
            ("two_walks", "both sums in one walk", ("redundant_loads",)),
            ("whole_row", "the row stays in registers", ("redundant_loads",)),
        ),
        norm_back,
        5e-3,
    ),
    Study(
        "triton_lion_step_pointers_from_table",
        "a step of Lion for 64 tensors of 524288 floats in Triton",
        "tensors are found by a table of addresses, of whose alignment nothing is known: loads of four bytes",
        (
            ("hinted", "addresses are said to be multiples of 16", ("narrow_access",)),
            ("flat", "all tensors lie in one buffer", ("narrow_access",)),
        ),
        lion_step,
    ),
    Study(
        "triton_shifted_windows_flat",
        "32 images of 128 x 128 tokens of 96 half features cut into shifted windows of 8 x 8, in Triton",
        "places are found by divisions for every value",
        (
            ("window", "a program a window, a row of lanes a token", ("integer_arithmetic",)),
            ("fixed_sizes", "sizes are constants of the kernel", ("integer_arithmetic",)),
        ),
        windows,
    ),
    Study(
        "triton_channel_sums_channel_a_program",
        "sums and sums of squares of 64 channels over 64 images of 16384 half pixels in Triton",
        "a program a channel: 64 programs for the whole GPU",
        (
            ("images", "a program a channel and image, added by atomics", ("small_grid",)),
            ("parts", "sixteen programs a channel store partial sums", ("small_grid",)),
        ),
        channel_sums,
    ),
    Study(
        "triton_words_row_in_registers",
        "log softmax of 4096 rows of 32768 half values in Triton",
        "eight warps hold a row in registers: a multiprocessor has room for one row at a time",
        (
            ("pieces", "two walks in pieces of 4096", ("low_occupancy",)),
            ("limited", "at most 128 registers a thread", ("low_occupancy",)),
            ("sixteen_warps", "sixteen warps hold it", ("low_occupancy",)),
        ),
        words,
        2e-3,
    ),
    Study("sound_triton_gate_backward", "gradients of a gated product of half values in Triton", "", (), gate_back),
    Study(
        "sound_triton_grouped_tiles",
        "product of half matrices, 8192 x 4096 of depth 2048, in Triton",
        "",
        (),
        product,
        1e-2,
    ),
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(STUDIES))
