"""Studies in Triton of what models are trained and served with, run by what tests/cuda/variants/frameworks.py provides.

Usage: w_frameworks.py list | check | time | profile [STUDY ...]
"""

import math
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


def draws(seed: int, *shape: int) -> torch.Tensor:
    """Uniform random numbers in [0, 1), the same in every run."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.rand(*shape, device="cuda", generator=generator)


def log_normal(seed: int, count: int, median: float, sigma: float, most: int) -> torch.Tensor:
    """Whole numbers from 1 to ``most``: many small ones and a few large ones."""
    uniform = torch.rand(count, generator=torch.Generator().manual_seed(seed))  # the same on any GPU
    normal = torch.erfinv(uniform * 1.998 - 0.999) * math.sqrt(2.0)
    return (median * torch.exp(sigma * normal)).clamp(1, most).to(torch.int32).cuda()


def offsets(lengths: torch.Tensor) -> torch.Tensor:
    """Where each of the rows of ``lengths`` elements starts, and where the last one ends."""
    first = torch.zeros(1, dtype=torch.int32, device="cuda")
    return torch.cat([first, torch.cumsum(lengths, 0).to(torch.int32)])


# --- positions turned into queries ---


@triton.jit
def turn(x, out, at, c, s, half: tl.constexpr):
    """Store the pairs at ``at`` turned by the angle of this cosine and sine."""
    first = tl.load(x + at).to(tl.float32)
    second = tl.load(x + at + half).to(tl.float32)
    tl.store(out + at, (first * c - second * s).to(tl.float16))
    tl.store(out + at + half, (second * c + first * s).to(tl.float16))


@triton.jit
def turned_kernel(x, positions, out, heads, log_base, half: tl.constexpr, tokens: tl.constexpr):
    """Rotary embedding; a program for one head of some tokens."""
    token = tl.program_id(1) * tokens + tl.arange(0, tokens)
    pair = tl.arange(0, half)
    position = tl.load(positions + token).to(tl.float32)
    angle = position[:, None] * tl.exp(pair.to(tl.float32) * (-log_base / half))[None, :]
    at = (token * heads + tl.program_id(0))[:, None] * (2 * half) + pair[None, :]
    turn(x, out, at, tl.cos(angle), tl.sin(angle), half)


@triton.jit
def turned_table_kernel(x, positions, cosines, sines, out, heads, half: tl.constexpr, tokens: tl.constexpr):
    """The same by tables with a row a position."""
    token = tl.program_id(1) * tokens + tl.arange(0, tokens)
    pair = tl.arange(0, half)
    entry = tl.load(positions + token)[:, None] * half + pair[None, :]
    at = (token * heads + tl.program_id(0))[:, None] * (2 * half) + pair[None, :]
    turn(x, out, at, tl.load(cosines + entry), tl.load(sines + entry), half)


@triton.jit
def turned_heads_kernel(
    x, positions, out, heads, log_base, half: tl.constexpr, tokens: tl.constexpr, together: tl.constexpr
):
    """The same for several heads of some tokens."""
    token = tl.program_id(1) * tokens + tl.arange(0, tokens)
    pair = tl.arange(0, half)
    position = tl.load(positions + token).to(tl.float32)
    angle = position[:, None] * tl.exp(pair.to(tl.float32) * (-log_base / half))[None, :]
    c, s = tl.cos(angle), tl.sin(angle)
    at = (token * heads + tl.program_id(0) * together)[:, None] * (2 * half) + pair[None, :]
    for head in range(together):
        turn(x, out, at + head * (2 * half), c, s, half)


def turned_queries(sequences: int = 4, length: int = 4096, heads: int = 32) -> tuple[dict[str, Run], Check]:
    half, tokens = 64, sequences * length
    x = noise(tokens, heads, 2 * half, dtype=torch.half)
    out = torch.empty_like(x)
    positions = torch.arange(length, device="cuda", dtype=torch.int32).repeat(sequences)
    log_base = math.log(500_000.0)
    rates = torch.exp(torch.arange(half, device="cuda") * (-log_base / half))
    angles = torch.arange(length, device="cuda")[:, None] * rates[None, :]
    cosines, sines = angles.cos(), angles.sin()
    grid = (heads, tokens // 16)
    return {
        "flawed": lambda: turned_kernel[grid](x, positions, out, heads, log_base, half, 16, num_warps=4),
        "table": lambda: turned_table_kernel[grid](
            x, positions, cosines, sines, out, heads, half, 16, num_warps=4
        ),
        "heads_together": lambda: turned_heads_kernel[(heads // 8, tokens // 16)](
            x, positions, out, heads, log_base, half, 16, 8, num_warps=4
        ),
    }, lambda: out


# --- channels of a picture normalised ---


@triton.jit
def channels_first_kernel(
    x, weight, bias, out, area, channels: tl.constexpr, pixels: tl.constexpr, epsilon: tl.constexpr
):
    """Layer norm over the channels of each pixel, planes one after another."""
    channel = tl.arange(0, channels)
    pixel = tl.program_id(0) * pixels + tl.arange(0, pixels)
    at = (tl.program_id(1) * channels + channel)[:, None] * area + pixel[None, :]
    value = tl.load(x + at).to(tl.float32)
    value -= tl.sum(value, 0)[None, :] / channels
    scale = tl.rsqrt(tl.sum(value * value, 0) / channels + epsilon)
    w, b = tl.load(weight + channel), tl.load(bias + channel)
    tl.store(out + at, (value * scale[None, :] * w[:, None] + b[:, None]).to(tl.float16))


@triton.jit
def channels_last_kernel(
    x, weight, bias, out, channels: tl.constexpr, pixels: tl.constexpr, epsilon: tl.constexpr
):
    """The same where a pixel's channels are side by side."""
    channel = tl.arange(0, channels)
    pixel = tl.program_id(0) * pixels + tl.arange(0, pixels)
    at = pixel[:, None] * channels + channel[None, :]
    value = tl.load(x + at).to(tl.float32)
    value -= tl.sum(value, 1)[:, None] / channels
    scale = tl.rsqrt(tl.sum(value * value, 1) / channels + epsilon)
    w, b = tl.load(weight + channel), tl.load(bias + channel)
    tl.store(out + at, (value * scale[:, None] * w[None, :] + b[None, :]).to(tl.float16))


def channel_norm(images: int = 64, side: int = 64) -> tuple[dict[str, Run], Check]:
    channels, area, epsilon = 256, side * side, 1e-6
    x = noise(images, channels, area, dtype=torch.half)
    x += noise(1, channels, 1, dtype=torch.half)
    last = x.transpose(1, 2).contiguous()
    weight, bias = noise(channels) + 1.5, noise(channels)
    out, last_out = torch.empty_like(x), torch.empty_like(last)
    latest = {"out": out}

    def planes(pixels: int, warps: int) -> Run:
        def launch() -> None:
            latest["out"] = out
            channels_first_kernel[(area // pixels, images)](
                x, weight, bias, out, area, channels, pixels, epsilon, num_warps=warps
            )

        return launch

    def pixels_apart() -> None:
        latest["out"] = last_out.transpose(1, 2)
        channels_last_kernel[(images * area // 8,)](
            last, weight, bias, last_out, channels, 8, epsilon, num_warps=4
        )

    sides = {"flawed": planes(8, 4), "more_pixels": planes(64, 8), "channels_last": pixels_apart}
    return sides, lambda: latest["out"]


# --- messages of a graph's edges ---


@triton.jit
def edges_kernel(x, sources, targets, weights, out, edges, width: tl.constexpr, block: tl.constexpr):
    """The weighted features of each edge's source added to its target."""
    edge = tl.program_id(0) * block + tl.arange(0, block)
    inside = edge < edges
    column = tl.arange(0, width)
    source = tl.load(sources + edge, mask=inside, other=0)
    target = tl.load(targets + edge, mask=inside, other=0)
    weight = tl.load(weights + edge, mask=inside, other=0.0)
    message = tl.load(x + source[:, None] * width + column[None, :]) * weight[:, None]
    tl.atomic_add(
        out + target[:, None] * width + column[None, :], message, mask=inside[:, None], sem="relaxed"
    )


@triton.jit
def edges_of_node_kernel(x, sources, starts, weights, out, width: tl.constexpr, block: tl.constexpr):
    """The same; a program takes all edges of one target."""
    node = tl.program_id(0)
    column = tl.arange(0, width)
    last = tl.load(starts + node + 1)
    total = tl.zeros((block, width), tl.float32)
    for start in range(tl.load(starts + node), last, block):
        edge = start + tl.arange(0, block)
        source = tl.load(sources + edge, mask=edge < last, other=0)
        weight = tl.load(weights + edge, mask=edge < last, other=0.0)
        inside = (edge < last)[:, None]
        total += (
            tl.load(x + source[:, None] * width + column[None, :], mask=inside, other=0.0) * weight[:, None]
        )
    tl.store(out + node * width + column, tl.sum(total, 0))


@triton.jit
def add_same(key, total, next_key, value):
    return next_key, tl.where(key == next_key, total, 0.0) + value


@triton.jit
def edges_in_runs_kernel(x, sources, targets, weights, out, edges, width: tl.constexpr, block: tl.constexpr):
    """The same; edges of one target that follow each other are added up first."""
    edge = tl.program_id(0) * block + tl.arange(0, block)
    inside = edge < edges
    column = tl.arange(0, width)
    source = tl.load(sources + edge, mask=inside, other=0)
    target = tl.load(targets + edge, mask=inside, other=-1)
    weight = tl.load(weights + edge, mask=inside, other=0.0)
    message = tl.load(x + source[:, None] * width + column[None, :]) * weight[:, None]
    key = tl.broadcast_to(target[:, None], (block, width))
    key, total = tl.associative_scan((key, message), 0, add_same)
    following = tl.load(targets + edge + 1, mask=edge + 1 < edges, other=-1)
    ends = inside & ((following != target) | (edge % block == block - 1))
    tl.atomic_add(out + target[:, None] * width + column[None, :], total, mask=ends[:, None], sem="relaxed")


def graph_messages(nodes: int = 65536) -> tuple[dict[str, Run], Check]:
    width, block = 64, 32
    degrees = log_normal(1, nodes, 12.0, 0.8, 400)
    starts = offsets(degrees)
    targets = torch.repeat_interleave(torch.arange(nodes, device="cuda", dtype=torch.int32), degrees)
    edges = targets.numel()
    sources = (draws(2, edges) ** 2 * nodes).to(torch.int32)
    weights = draws(3, edges)
    x, out = noise(nodes, width), torch.zeros(nodes, width, device="cuda")
    grid = (triton.cdiv(edges, block),)
    return {
        "flawed": lambda: edges_kernel[grid](
            x, sources, targets, weights, out, edges, width, block, num_warps=4
        ),
        "node_each": lambda: edges_of_node_kernel[(nodes,)](
            x, sources, starts, weights, out, width, 8, num_warps=1
        ),
        "runs_first": lambda: edges_in_runs_kernel[(triton.cdiv(edges, 16),)](
            x, sources, targets, weights, out, edges, width, 16, num_warps=1
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- experts chosen for tokens ---


@triton.jit
def experts_kernel(scores, weights, chosen, count: tl.constexpr, top: tl.constexpr):
    """The best experts of a token with their shares of all scores' exponentials."""
    token = tl.program_id(0)
    expert = tl.arange(0, count)
    left = tl.load(scores + token * count + expert)
    highest = tl.max(left, 0)
    total = tl.sum(tl.exp(left - highest), 0)
    for k in range(top):
        best, at = tl.max(left, 0, return_indices=True)
        tl.store(weights + token * top + k, tl.exp(best - highest) / total)
        tl.store(chosen + token * top + k, at)
        left = tl.where(expert == at, -float("inf"), left)


@triton.jit
def experts_of_several_kernel(
    scores, weights, chosen, count: tl.constexpr, top: tl.constexpr, tokens: tl.constexpr
):
    """The same for several tokens."""
    token = tl.program_id(0) * tokens + tl.arange(0, tokens)
    expert = tl.arange(0, count)
    left = tl.load(scores + token[:, None] * count + expert[None, :])
    highest = tl.max(left, 1)
    total = tl.sum(tl.exp(left - highest[:, None]), 1)
    for k in range(top):
        best, at = tl.max(left, 1, return_indices=True)
        tl.store(weights + token * top + k, tl.exp(best - highest) / total)
        tl.store(chosen + token * top + k, at)
        left = tl.where(expert[None, :] == at[:, None], -float("inf"), left)


def experts(tokens: int = 131072) -> tuple[dict[str, Run], Check]:
    count, top = 128, 8
    scores = noise(tokens, count) * 3.0 + noise(1, count)
    weights = torch.empty(tokens, top, device="cuda")
    chosen = torch.empty(tokens, top, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: experts_kernel[(tokens,)](scores, weights, chosen, count, top, num_warps=4),
        "one_warp": lambda: experts_kernel[(tokens,)](scores, weights, chosen, count, top, num_warps=1),
        "rows_of_warps": lambda: experts_of_several_kernel[(tokens // 8,)](
            scores, weights, chosen, count, top, 8, num_warps=4
        ),
    }, lambda: torch.cat([weights, chosen.float() / count])


# --- one new token's attention ---


@triton.jit
def attend(q, k, v, top, total, out):
    """One more piece of keys and values for one query; scores are base-2 logarithms."""
    score = tl.sum(q[None, :] * k, 1)
    higher = tl.maximum(top, tl.max(score, 0))
    shrink = tl.exp2(top - higher)
    share = tl.exp2(score - higher)
    return higher, total * shrink + tl.sum(share, 0), out * shrink + tl.sum(share[:, None] * v, 0)


@triton.jit
def decode_kernel(
    q, keys, values, out, scale, length, group: tl.constexpr, width: tl.constexpr, piece: tl.constexpr
):
    """Attention of one query head to the past of its sequence; heads of a group have one past."""
    head = tl.program_id(0)
    past = (tl.program_id(1) * (tl.num_programs(0) // group) + head // group).to(tl.int64) * length * width
    query = tl.program_id(1) * tl.num_programs(0) + head
    column = tl.arange(0, width)
    at = past + tl.arange(0, piece)[:, None] * width + column[None, :]
    ask = tl.load(q + query * width + column).to(tl.float32) * scale
    top, total = -float("inf"), 0.0
    found = tl.zeros((width,), tl.float32)
    for start in range(0, length, piece):
        k = tl.load(keys + at + start * width).to(tl.float32)
        v = tl.load(values + at + start * width).to(tl.float32)
        top, total, found = attend(ask, k, v, top, total, found)
    tl.store(out + query * width + column, (found / total).to(tl.float16))


@triton.jit
def decode_pair_kernel(
    q, keys, values, out, scale, length, group: tl.constexpr, width: tl.constexpr, piece: tl.constexpr
):
    """The same for two heads of a group."""
    head = 2 * tl.program_id(0)
    heads = 2 * tl.num_programs(0)
    past = (tl.program_id(1) * (heads // group) + head // group).to(tl.int64) * length * width
    query = tl.program_id(1) * heads + head
    column = tl.arange(0, width)
    at = past + tl.arange(0, piece)[:, None] * width + column[None, :]
    ask0 = tl.load(q + query * width + column).to(tl.float32) * scale
    ask1 = tl.load(q + (query + 1) * width + column).to(tl.float32) * scale
    top0, total0 = -float("inf"), 0.0
    top1, total1 = -float("inf"), 0.0
    found0 = tl.zeros((width,), tl.float32)
    found1 = tl.zeros((width,), tl.float32)
    for start in range(0, length, piece):
        k = tl.load(keys + at + start * width).to(tl.float32)
        v = tl.load(values + at + start * width).to(tl.float32)
        top0, total0, found0 = attend(ask0, k, v, top0, total0, found0)
        top1, total1, found1 = attend(ask1, k, v, top1, total1, found1)
    tl.store(out + query * width + column, (found0 / total0).to(tl.float16))
    tl.store(out + (query + 1) * width + column, (found1 / total1).to(tl.float16))


@triton.jit
def decode_group_kernel(
    q, keys, values, out, scale, length, group: tl.constexpr, width: tl.constexpr, piece: tl.constexpr
):
    """The same for a whole group as rows of a product, filled up to 16."""
    row = tl.arange(0, 16)
    column = tl.arange(0, width)
    cache = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    past = cache.to(tl.int64) * length * width
    at = past + tl.arange(0, piece)[:, None] * width + column[None, :]
    mine = (cache * group + row)[:, None] * width + column[None, :]
    ask = tl.load(q + mine, mask=row[:, None] < group, other=0.0)
    top = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    found = tl.zeros((16, width), tl.float32)
    for start in range(0, length, piece):
        k = tl.load(keys + at + start * width)
        score = tl.dot(ask, tl.trans(k)) * scale
        higher = tl.maximum(top, tl.max(score, 1))
        shrink = tl.exp2(top - higher)
        share = tl.exp2(score - higher[:, None])
        total = total * shrink + tl.sum(share, 1)
        v = tl.load(values + at + start * width)
        found = tl.dot(share.to(tl.float16), v, found * shrink[:, None])
        top = higher
    tl.store(out + mine, (found / total[:, None]).to(tl.float16), mask=row[:, None] < group)


def decode(batch: int = 128, caches: int = 8, length: int = 1024) -> tuple[dict[str, Run], Check]:
    group, width = 4, 128
    q = noise(batch, caches * group, width, dtype=torch.half) * 4
    keys = noise(batch, caches, length, width, dtype=torch.half)
    values = noise(batch, caches, length, width, dtype=torch.half) + 0.5
    out = torch.empty_like(q)
    scale = 1.4426950408889634 / math.sqrt(width)
    heads = caches * group
    return {
        "flawed": lambda: decode_kernel[(heads, batch)](
            q, keys, values, out, scale, length, group, width, 64, num_warps=4
        ),
        "two_heads": lambda: decode_pair_kernel[(heads // 2, batch)](
            q, keys, values, out, scale, length, group, width, 64, num_warps=4
        ),
        "whole_group": lambda: decode_group_kernel[(caches, batch)](
            q, keys, values, out, scale, length, group, width, 64, num_warps=4, num_stages=3
        ),
    }, lambda: out


# --- means of documents' tokens ---


@triton.jit
def rows_total(tokens, first, last, column, width, rows: tl.constexpr, columns: tl.constexpr):
    """The sum of rows ``first`` to ``last`` of these columns."""
    total = tl.zeros((rows, columns), tl.float32)
    for start in range(first, last, rows):
        row = start + tl.arange(0, rows)
        at = row[:, None] * width + column[None, :]
        total += tl.load(tokens + at, mask=row[:, None] < last, other=0.0).to(tl.float32)
    return tl.sum(total, 0)


@triton.jit
def means_kernel(
    tokens,
    starts,
    order,
    out,
    width: tl.constexpr,
    rows: tl.constexpr,
    columns: tl.constexpr,
    sort: tl.constexpr,
):
    """The mean of each document's tokens; a program for some columns of a document."""
    document = tl.program_id(1)
    if sort:
        document = tl.load(order + document)
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    first, last = tl.load(starts + document), tl.load(starts + document + 1)
    total = rows_total(tokens, first, last, column, width, rows, columns)
    tl.store(out + document * width + column, total / (last - first))


@triton.jit
def means_in_pieces_kernel(tokens, starts, pieces, out, most, width: tl.constexpr, rows: tl.constexpr):
    """The same; a program takes at most some tokens of a document."""
    document = tl.load(pieces + 2 * tl.program_id(0))
    start = tl.load(pieces + 2 * tl.program_id(0) + 1)
    column = tl.arange(0, width)
    first, last = tl.load(starts + document), tl.load(starts + document + 1)
    total = rows_total(tokens, start, tl.minimum(start + most, last), column, width, rows, width)
    tl.atomic_add(out + document * width + column, total / (last - first), sem="relaxed")


def document_means(documents: int = 2560) -> tuple[dict[str, Run], Check]:
    width, most = 1024, 128
    lengths = log_normal(4, documents, 64.0, 1.2, 1536)
    starts = offsets(lengths)
    words = (draws(7, int(starts[-1])) * 32768).long()
    tokens = noise(32768, width, dtype=torch.half)[words]
    order = torch.argsort(lengths, descending=True).to(torch.int32)
    counts = (lengths + most - 1) // most
    owner = torch.repeat_interleave(torch.arange(documents, device="cuda", dtype=torch.int32), counts)
    nth = torch.arange(owner.numel(), device="cuda", dtype=torch.int32) - offsets(counts)[owner]
    pieces = torch.stack([owner, starts[owner] + nth * most], 1).to(torch.int32).contiguous()
    out = torch.zeros(documents, width, device="cuda")
    return {
        "flawed": lambda: means_kernel[(1, documents)](
            tokens, starts, order, out, width, 8, width, False, num_warps=8
        ),
        "longest_first": lambda: means_kernel[(1, documents)](
            tokens, starts, order, out, width, 8, width, True, num_warps=8
        ),
        "pieces": lambda: means_in_pieces_kernel[(pieces.shape[0],)](
            tokens, starts, pieces, out, most, width, 8, num_warps=8
        ),
        "quarters": lambda: means_kernel[(4, documents)](
            tokens, starts, order, out, width, 16, width // 4, False, num_warps=4
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- a picture twice as large ---


@triton.jit
def between(plane, y, x, height, width, ratio_y, ratio_x):
    """The value of a plane at this place of the larger one, between four pixels."""
    at_y = tl.maximum((y.to(tl.float32) + 0.5) * ratio_y - 0.5, 0.0)
    at_x = tl.maximum((x.to(tl.float32) + 0.5) * ratio_x - 0.5, 0.0)
    y0, x0 = at_y.to(tl.int32), at_x.to(tl.int32)
    y1, x1 = tl.minimum(y0 + 1, height - 1), tl.minimum(x0 + 1, width - 1)
    part_y, part_x = at_y - y0, at_x - x0
    above = tl.load(plane + y0 * width + x0) * (1.0 - part_x) + tl.load(plane + y0 * width + x1) * part_x
    below = tl.load(plane + y1 * width + x0) * (1.0 - part_x) + tl.load(plane + y1 * width + x1) * part_x
    return above * (1.0 - part_y) + below * part_y


@triton.jit
def larger_kernel(
    image, out, n, height, width, out_height, out_width, block: tl.constexpr, index: tl.constexpr
):
    """Bilinear resampling; a program for a stretch of all values."""
    at = tl.program_id(0).to(index) * block + tl.arange(0, block)
    x = at % out_width
    y = at // out_width % out_height
    plane = at // (out_width * out_height)
    found = between(
        image + plane * (height * width), y, x, height, width, height / out_height, width / out_width
    )
    tl.store(out + at, found, mask=at < n)


@triton.jit
def larger_tiles_kernel(
    image, out, height, width, out_height, out_width, rows: tl.constexpr, columns: tl.constexpr
):
    """The same; a program for a tile of a plane."""
    x = (tl.program_id(0) * columns + tl.arange(0, columns))[None, :]
    y = (tl.program_id(1) * rows + tl.arange(0, rows))[:, None]
    plane = tl.program_id(2)
    found = between(
        image + plane * (height * width), y, x, height, width, height / out_height, width / out_width
    )
    tl.store(out + plane * (out_height * out_width) + y * out_width + x, found)


def larger(planes: int = 1024, side: int = 96) -> tuple[dict[str, Run], Check]:
    wide = 2 * side
    n = planes * wide * wide
    image, out = noise(planes, side, side), torch.empty(planes, wide, wide, device="cuda")

    def stretch(index: object) -> Run:
        return lambda: larger_kernel[(triton.cdiv(n, 512),)](
            image, out, n, side, side, wide, wide, 512, index, num_warps=4
        )

    return {
        "flawed": stretch(tl.int64),
        "short_index": stretch(tl.int32),
        "tiles": lambda: larger_tiles_kernel[(wide // 64, wide // 8, planes)](
            image, out, side, side, wide, wide, 8, 64, num_warps=4
        ),
    }, lambda: out


# --- an adapter of low rank ---


@triton.jit
def adapter_kernel(
    x, a, out, depth, rank: tl.constexpr, rows: tl.constexpr, piece: tl.constexpr,
    kind: tl.constexpr, precision: tl.constexpr
):  # fmt: skip
    """Products of tokens with the adapter's narrow matrix."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    inner = tl.arange(0, piece)
    column = tl.arange(0, rank)
    total = tl.zeros((rows, rank), tl.float32)
    for start in range(0, depth, piece):
        left = tl.load(x + row[:, None] * depth + start + inner[None, :])
        right = tl.load(a + (start + inner[:, None]) * rank + column[None, :])
        total = tl.dot(left.to(kind), right.to(kind), total, input_precision=precision)
    tl.store(out + row[:, None] * rank + column[None, :], total.to(tl.float16))


def adapter(tokens: int = 16384, depth: int = 4096) -> tuple[dict[str, Run], Check]:
    rank = 32
    x, a = noise(tokens, depth, dtype=torch.half), noise(depth, rank, dtype=torch.half)
    out = torch.empty(tokens, rank, device="cuda", dtype=torch.half)

    def side(kind: object, precision: str) -> Run:
        return lambda: adapter_kernel[(tokens // 32,)](
            x, a, out, depth, rank, 32, 64, kind, precision, num_warps=4, num_stages=4
        )

    return {
        "flawed": side(tl.float32, "ieee"),
        "halves": side(tl.float16, "ieee"),
        "tf32": side(tl.float32, "tf32"),
    }, lambda: out


# --- a gated recurrence ---


@triton.jit
def recurrence_kernel(gates, inputs, out, steps, width, channels: tl.constexpr):
    """State of each channel after every step: the last one's times a gate, plus an input."""
    at = tl.program_id(1) * steps * width + tl.program_id(0) * channels + tl.arange(0, channels)
    state = tl.zeros((channels,), tl.float32)
    for _ in range(steps):
        state = tl.load(gates + at) * state + tl.load(inputs + at)
        tl.store(out + at, state)
        at += width


@triton.jit
def recurrence_four_kernel(gates, inputs, out, steps, width, channels: tl.constexpr):
    """The same; four steps' values are loaded before the first is used."""
    at = tl.program_id(1) * steps * width + tl.program_id(0) * channels + tl.arange(0, channels)
    state = tl.zeros((channels,), tl.float32)
    for _ in range(0, steps, 4):
        gate0, input0 = tl.load(gates + at), tl.load(inputs + at)
        gate1, input1 = tl.load(gates + at + width), tl.load(inputs + at + width)
        gate2, input2 = tl.load(gates + at + 2 * width), tl.load(inputs + at + 2 * width)
        gate3, input3 = tl.load(gates + at + 3 * width), tl.load(inputs + at + 3 * width)
        state0 = gate0 * state + input0
        state1 = gate1 * state0 + input1
        state2 = gate2 * state1 + input2
        state = gate3 * state2 + input3
        tl.store(out + at, state0)
        tl.store(out + at + width, state1)
        tl.store(out + at + 2 * width, state2)
        tl.store(out + at + 3 * width, state)
        at += 4 * width


@triton.jit
def then(gate, total, next_gate, value):
    return gate * next_gate, total * next_gate + value


@triton.jit
def recurrence_scan_kernel(gates, inputs, out, steps, width, channels: tl.constexpr, piece: tl.constexpr):
    """The same; a piece of steps at a time by a scan."""
    step = tl.arange(0, piece)[:, None]
    channel = tl.program_id(0) * channels + tl.arange(0, channels)[None, :]
    at = (tl.program_id(1) * steps + step) * width + channel
    state = tl.zeros((channels,), tl.float32)
    for _ in range(0, steps, piece):
        gate, total = tl.associative_scan((tl.load(gates + at), tl.load(inputs + at)), 0, then)
        total += gate * state[None, :]
        tl.store(out + at, total)
        state = tl.sum(tl.where(step == piece - 1, total, 0.0), 0)
        at += piece * width


def recurrence(batch: int = 32, steps: int = 512, width: int = 2048) -> tuple[dict[str, Run], Check]:
    gates = torch.sigmoid(noise(batch, steps, width) * 3.0 + 2.0)
    inputs, out = noise(batch, steps, width), torch.empty(batch, steps, width, device="cuda")
    grid = (width // 64, batch)
    return {
        "flawed": lambda: recurrence_kernel[grid](gates, inputs, out, steps, width, 64, num_warps=2),
        "four_ahead": lambda: recurrence_four_kernel[grid](gates, inputs, out, steps, width, 64, num_warps=2),
        "scan": lambda: recurrence_scan_kernel[grid](gates, inputs, out, steps, width, 64, 32, num_warps=4),
    }, lambda: out


# --- gradients of a norm's weights ---


@triton.jit
def norm_gradients_kernel(
    x, slopes, means, scales, out, rows, width, columns: tl.constexpr, tall: tl.constexpr, split: tl.constexpr
):
    """Gradients of a layer norm's weights and biases; a program for some columns and a share of the rows."""
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    weight = tl.zeros((tall, columns), tl.float32)
    bias = tl.zeros((tall, columns), tl.float32)
    share = rows // split
    for start in range(tl.program_id(1) * share, tl.program_id(1) * share + share, tall):
        row = start + tl.arange(0, tall)
        at = row[:, None] * width + column[None, :]
        slope = tl.load(slopes + at).to(tl.float32)
        value = tl.load(x + at).to(tl.float32)
        mean, scale = tl.load(means + row)[:, None], tl.load(scales + row)[:, None]
        weight += slope * (value - mean) * scale
        bias += slope
    if split == 1:
        tl.store(out + column, tl.sum(weight, 0))
        tl.store(out + width + column, tl.sum(bias, 0))
    else:
        tl.atomic_add(out + column, tl.sum(weight, 0), sem="relaxed")
        tl.atomic_add(out + width + column, tl.sum(bias, 0), sem="relaxed")


def norm_gradients(rows: int = 8192, width: int = 4096) -> tuple[dict[str, Run], Check]:
    x = noise(rows, width, dtype=torch.half)
    slopes = (x * 0.5 + noise(rows, 1, dtype=torch.half) + 0.25).contiguous()
    means, scales = draws(5, rows) * 0.1, draws(6, rows) + 0.5
    out = torch.zeros(2, width, device="cuda")

    def side(columns: int, tall: int, split: int) -> Run:
        return lambda: norm_gradients_kernel[(width // columns, split)](
            x, slopes, means, scales, out, rows, width, columns, tall, split, num_warps=8
        )

    sides = {"flawed": side(128, 64, 1), "rows_split": side(128, 64, 16), "narrow": side(32, 256, 1)}
    return sides, lambda: (out.clone(), out.zero_())[0]


# --- tokens to bytes, no flaw ---


@triton.jit
def bytes_kernel(x, out, scales, width: tl.constexpr):
    """A row as bytes with the scale that its largest value asks for."""
    row = tl.program_id(0)
    at = row * width + tl.arange(0, width)
    value = tl.load(x + at).to(tl.float32)
    most = tl.maximum(tl.max(tl.abs(value), 0), 1e-8)
    tl.store(scales + row, most / 127.0)
    tl.store(out + at, tl.floor(value * (127.0 / most) + 0.5).to(tl.int8))


def token_bytes(rows: int = 16384) -> tuple[dict[str, Run], Check]:
    width = 4096
    x = noise(rows, width, dtype=torch.half)
    out = torch.empty(rows, width, device="cuda", dtype=torch.int8)
    scales = torch.empty(rows, device="cuda")
    return {
        "sound": lambda: bytes_kernel[(rows,)](x, out, scales, width, num_warps=4),
    }, lambda: out.float() * scales[:, None]


# --- a step of Lion, no flaw ---


@triton.jit
def lion_kernel(weights, slopes, momenta, new_weights, new_momenta, rate, decay, block: tl.constexpr):
    """Weights after one step by the sign of their momentum, and the new momentum."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    slope = tl.load(slopes + at).to(tl.float32)
    weight, momentum = tl.load(weights + at), tl.load(momenta + at)
    blend = 0.9 * momentum + 0.1 * slope
    sign = tl.where(blend > 0.0, 1.0, tl.where(blend < 0.0, -1.0, 0.0))
    tl.store(new_weights + at, weight * (1.0 - rate * decay) - rate * sign)
    tl.store(new_momenta + at, 0.99 * momentum + 0.01 * slope)


def lion(n: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    weights, slopes, momenta = noise(n), noise(n, dtype=torch.half), noise(n).flip(0) * 0.1
    new_weights, new_momenta = torch.empty_like(weights), torch.empty_like(momenta)
    return {
        "sound": lambda: lion_kernel[(n // 1024,)](
            weights, slopes, momenta, new_weights, new_momenta, 3e-4, 0.1, 1024, num_warps=4
        ),
    }, lambda: new_weights + new_momenta


STUDIES = (
    Study(
        "rotary_angles_for_every_head",
        "rotary embedding of 16384 tokens' queries, 32 heads of 128 half values",
        "rates, sines and cosines are computed anew for every head",
        (
            ("table", "sines and cosines from a table with a row a position", ("expensive_math",)),
            ("heads_together", "eight heads a program: angles computed once for them", ("expensive_math",)),
        ),
        turned_queries,
        5e-3,
    ),
    Study(
        "channel_norm_eight_pixels",
        "layer norm over the 256 channels of pictures of 64 x 64 half values, planes apart",
        "programs of eight pixels: 16 bytes of a plane, half of every sector",
        (
            ("more_pixels", "64 pixels a program", ("uncoalesced_access",)),
            ("channels_last", "channels of a pixel side by side", ("uncoalesced_access",)),
        ),
        channel_norm,
        2e-3,
        domain="vision",
    ),
    Study(
        "graph_messages_added_edge_by_edge",
        "weighted features of 64 floats from about a million edges to 65536 nodes, edges sorted by target",
        "an atomic for every feature of every edge",
        (
            ("node_each", "a program a node adds up its edges and stores", ("global_atomics",)),
            ("runs_first", "runs of one target added up in the program first", ("global_atomics",)),
        ),
        graph_messages,
        domain="graphs",
    ),
    Study(
        "experts_of_token_by_four_warps",
        "the best 8 of 128 experts for 131072 tokens with their softmax shares",
        "a token's 128 scores lie in four warps: every one of ten reductions meets at barriers",
        (
            ("one_warp", "one warp a program", ("barriers",)),
            ("rows_of_warps", "eight tokens a program, a warp has whole tokens", ("barriers",)),
        ),
        experts,
    ),
    Study(
        "decode_past_read_by_every_head",
        "attention of one new token in 128 sequences to 1024 past ones, 32 heads of 128, four share a past",
        "each of four heads reads their keys and values for itself",
        (
            ("two_heads", "two heads a program", ("redundant_loads",)),
            ("whole_group", "the four heads as rows of a product on the tensor cores", ("redundant_loads",)),
        ),
        decode,
        5e-3,
    ),
    Study(
        "document_means_program_each",
        "means of the tokens of 2560 documents of 1 to 1536 tokens of 1024 half values",
        "a program a document in the order they come: a long one that starts late ends late",
        (
            ("longest_first", "documents sorted by length, longest first", ("workload_imbalance",)),
            ("pieces", "at most 128 tokens a program, atomics", ("workload_imbalance",)),
            ("quarters", "four programs a document, 256 columns each", ("workload_imbalance",)),
        ),
        document_means,
        domain="search",
    ),
    Study(
        "planes_enlarged_by_long_index",
        "1024 planes of 96 x 96 floats to 192 x 192, bilinear",
        "a value's place in its plane is found by divisions of a 64-bit index",
        (
            ("short_index", "an index of 32 bits", ("integer_arithmetic",)),
            ("tiles", "a program a tile of a plane: no divisions", ("integer_arithmetic",)),
        ),
        larger,
        domain="vision",
    ),
    Study(
        "adapter_halves_widened_first",
        "16384 tokens of 4096 half values times an adapter's matrix of rank 32",
        "halves are made floats and multiplied in full precision",
        (
            ("halves", "halves are multiplied as such", ("tensor_cores_idle",)),
            ("tf32", "floats, multiplied as TF32, which holds a half", ("tensor_cores_idle",)),
        ),
        adapter,
        2e-3,
    ),
    Study(
        "recurrence_loads_step_by_step",
        "a gated linear recurrence of 32 x 2048 channels over 512 steps",
        "a step's values are loaded when the step before has been stored",
        (
            ("four_ahead", "four steps' loads before the first is used", ("memory_latency",)),
            ("scan", "pieces of 32 steps by an associative scan", ("memory_latency",)),
        ),
        recurrence,
    ),
    Study(
        "norm_gradients_of_wide_columns",
        "gradients of a layer norm's weights and biases from 8192 rows of 4096 half values",
        "a program for 128 columns and all rows: 32 programs",
        (
            ("rows_split", "a 16th of the rows a program, atomics", ("small_grid",)),
            ("narrow", "32 columns a program: 128 programs", ("small_grid",)),
        ),
        norm_gradients,
    ),
    Study(
        "sound_token_rows_to_bytes",
        "16384 rows of 4096 half values as bytes with a scale a row",
        "",
        (),
        token_bytes,
        1e-2,
    ),
    Study("sound_lion_step", "one step of the optimiser Lion for 33554432 weights", "", (), lion),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
