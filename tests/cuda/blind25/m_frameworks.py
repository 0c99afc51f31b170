"""Studies in Triton of models' training and inference, run by what tests/cuda/variants/frameworks.py provides.

Usage: m_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- bags of words, goods or films ---


@triton.jit
def bag_kernel(ids, table, out, longest: tl.constexpr, width: tl.constexpr):
    """The sum of a bag's rows of a table, up to the first number below zero; a bag a program."""
    bag = tl.program_id(0)
    place = tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    at = ids + bag * longest
    row = tl.load(at)
    while row >= 0:
        total += tl.load(table + row * width + place)
        at += 1
        row = tl.load(at)
    tl.store(out + bag * width + place, total)


@triton.jit
def bag_rows_kernel(ids, table, out, longest: tl.constexpr, width: tl.constexpr, rows: tl.constexpr):
    """The same; several rows a round."""
    bag = tl.program_id(0)
    place = tl.arange(0, width)[None, :]
    total = tl.zeros((rows, width), tl.float32)
    at = ids + bag * longest + tl.arange(0, rows)
    left = longest
    row = tl.load(at)
    while left > 0:
        total += tl.load(table + row[:, None] * width + place, mask=row[:, None] >= 0, other=0.0)
        at += rows
        left = tl.where(tl.min(row, 0) < 0, 0, left - rows)
        row = tl.load(at, mask=left > 0, other=-1)
    tl.store(out + bag * width + tl.arange(0, width), tl.sum(total, 0))


@triton.jit
def bag_counted_kernel(ids, counts, table, out, longest: tl.constexpr, width: tl.constexpr):
    """The same; how many rows there are is known, so that several can be on their way."""
    bag = tl.program_id(0)
    place = tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    for k in range(tl.load(counts + bag)):
        row = tl.load(ids + bag * longest + k)
        total += tl.load(table + row * width + place)
    tl.store(out + bag * width + place, total)


def bagged(
    bags: int = 65536, longest: int = 64, words: int = 1 << 20, width: int = 64
) -> tuple[dict[str, Run], Check]:
    ids = ((noise(bags, longest).double() * 0.5 + 0.5) * words).to(torch.int32).clamp(0, words - 1)
    counts = (8 + (noise(bags) * 0.5 + 0.5) * (longest - 8.5)).to(torch.int32)
    ids[torch.arange(longest, device=ids.device)[None, :] >= counts[:, None]] = -1
    table = noise(words, width)
    out = torch.empty(bags, width, device="cuda")
    return {
        "flawed": lambda: bag_kernel[(bags,)](ids, table, out, longest, width, num_warps=1),
        "eight_rows": lambda: bag_rows_kernel[(bags,)](ids, table, out, longest, width, 8, num_warps=1),
        "counted": lambda: bag_counted_kernel[(bags,)](ids, counts, table, out, longest, width, num_warps=1),
    }, lambda: out


# --- a token's attention to those before it, eight queries to a key ---


@triton.jit
def answered_kernel(
    queries, keys, values, out, length, scale, heads: tl.constexpr, group: tl.constexpr, depth: tl.constexpr,
    tokens: tl.constexpr,
):  # fmt: skip
    """A head of queries a program."""
    head = tl.program_id(0)
    batch = tl.program_id(1)
    place = tl.arange(0, depth)
    query = tl.load(queries + (batch * heads + head) * depth + place).to(tl.float32) * scale
    shared = batch * (heads // group) + head // group
    at = shared.to(tl.int64) * length * depth + tl.arange(0, tokens)[:, None] * depth + place[None, :]
    top = -float("inf")
    weight = 0.0
    total = tl.zeros((depth,), tl.float32)
    for _ in range(0, length, tokens):
        score = tl.sum(tl.load(keys + at).to(tl.float32) * query[None, :], 1)
        higher = tl.maximum(top, tl.max(score, 0))
        part = tl.exp2(score - higher)
        kept = tl.exp2(top - higher)
        weight = weight * kept + tl.sum(part, 0)
        total = total * kept + tl.sum(part[:, None] * tl.load(values + at).to(tl.float32), 0)
        top = higher
        at += tokens * depth
    tl.store(out + (batch * heads + head) * depth + place, total / weight)


@triton.jit
def answered_group_kernel(
    queries, keys, values, out, length, scale, heads: tl.constexpr, group: tl.constexpr, depth: tl.constexpr,
    tokens: tl.constexpr,
):  # fmt: skip
    """The same; all heads that share their keys a program, filled up to sixteen."""
    shared = tl.program_id(1) * (heads // group) + tl.program_id(0)
    place = tl.arange(0, depth)
    head = tl.arange(0, 16)
    there = head[:, None] < group
    own = (shared * group + head[:, None]) * depth + place[None, :]
    query = tl.load(queries + own, mask=there, other=0.0)
    first = shared.to(tl.int64) * length * depth
    token = tl.arange(0, tokens)
    key_at = keys + first + token[None, :] * depth + place[:, None]
    value_at = values + first + token[:, None] * depth + place[None, :]
    top = tl.full((16,), -float("inf"), tl.float32)
    weight = tl.zeros((16,), tl.float32)
    total = tl.zeros((16, depth), tl.float32)
    for _ in range(0, length, tokens):
        score = tl.dot(query, tl.load(key_at)) * scale
        higher = tl.maximum(top, tl.max(score, 1))
        part = tl.exp2(score - higher[:, None])
        kept = tl.exp2(top - higher)
        weight = weight * kept + tl.sum(part, 1)
        total = tl.dot(part.to(tl.float16), tl.load(value_at), total * kept[:, None])
        top = higher
        key_at += tokens * depth
        value_at += tokens * depth
    tl.store(out + own, total / weight[:, None], mask=there)


@triton.jit
def answered_turned_kernel(
    queries, keys, values, out, length, scale, heads: tl.constexpr, group: tl.constexpr, depth: tl.constexpr,
    tokens: tl.constexpr,
):  # fmt: skip
    """The same; the keys are the rows of the products, the heads their columns."""
    shared = tl.program_id(1) * (heads // group) + tl.program_id(0)
    place = tl.arange(0, depth)
    head = tl.arange(0, 16)
    there = head[None, :] < group
    own = (shared * group + head[None, :]) * depth + place[:, None]
    query = tl.load(queries + own, mask=there, other=0.0)
    at = shared.to(tl.int64) * length * depth + tl.arange(0, tokens)[:, None] * depth + place[None, :]
    top = tl.full((16,), -float("inf"), tl.float32)
    weight = tl.zeros((16,), tl.float32)
    total = tl.zeros((depth, 16), tl.float32)
    for _ in range(0, length, tokens):
        score = tl.dot(tl.load(keys + at), query) * scale
        higher = tl.maximum(top, tl.max(score, 0))
        part = tl.exp2(score - higher[None, :])
        kept = tl.exp2(top - higher)
        weight = weight * kept + tl.sum(part, 0)
        total = tl.dot(tl.trans(tl.load(values + at)), part.to(tl.float16), total * kept[None, :])
        top = higher
        at += tokens * depth
    tl.store(out + own, total / weight[None, :], mask=there)


def answered(
    batch: int = 32, heads: int = 64, group: int = 8, length: int = 2048, depth: int = 128
) -> tuple[dict[str, Run], Check]:
    queries = noise(batch, heads, depth, dtype=torch.half) * 3
    keys = noise(batch, heads // group, length, depth, dtype=torch.half)
    values = noise(batch, heads // group, length, depth, dtype=torch.half).flip(2).contiguous() + 0.25
    out = torch.empty(batch, heads, depth, device="cuda")
    scale = 1.4426950408889634 / depth**0.5
    few = (heads // group, batch)
    return {
        "flawed": lambda: answered_kernel[(heads, batch)](
            queries, keys, values, out, length, scale, heads, group, depth, 64, num_warps=4
        ),
        "group": lambda: answered_group_kernel[few](
            queries, keys, values, out, length, scale, heads, group, depth, 64, num_warps=4, num_stages=3
        ),
        "turned": lambda: answered_turned_kernel[few](
            queries, keys, values, out, length, scale, heads, group, depth, 64, num_warps=4, num_stages=3
        ),
    }, lambda: out


# --- biases by how far apart two tokens are ---


@triton.jit
def bucket_of(apart):
    """One of 32 for each direction: exact up to 7, then wider and wider up to 127."""
    far = tl.abs(apart)
    wide = 8 + (tl.log(tl.maximum(far, 1).to(tl.float32) / 8.0) / 2.772588722239781 * 8.0).to(tl.int32)
    return tl.where(far < 8, far, tl.minimum(wide, 15)) + tl.where(apart > 0, 16, 0)


@triton.jit
def biases_kernel(table, out, length, heads: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr):
    """A piece of a head's biases a program."""
    head = tl.program_id(2)
    row = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    column = tl.program_id(0) * columns + tl.arange(0, columns)[None, :]
    bias = tl.load(table + bucket_of(column - row) * heads + head)
    tl.store(out + (head * length + row) * length + column, bias)


@triton.jit
def biases_heads_kernel(table, out, length, heads: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr):
    """The same for all heads, one after another."""
    row = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    column = tl.program_id(0) * columns + tl.arange(0, columns)[None, :]
    at = table + bucket_of(column - row) * heads
    to = out + row * length + column
    for head in range(heads):
        tl.store(to, tl.load(at + head))
        to += length * length


@triton.jit
def distances_kernel(table, distances, length, heads: tl.constexpr, block: tl.constexpr):
    """Biases of all distances, a row a head."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    for head in range(heads):
        bias = tl.load(table + bucket_of(at - length) * heads + head)
        tl.store(distances + head * 2 * length + at, bias)


@triton.jit
def biases_distances_kernel(distances, out, length, rows: tl.constexpr, columns: tl.constexpr):
    """The same from the biases of all distances."""
    head = tl.program_id(2)
    row = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    column = tl.program_id(0) * columns + tl.arange(0, columns)[None, :]
    bias = tl.load(distances + head * 2 * length + length + column - row)
    tl.store(out + (head * length + row) * length + column, bias)


def biased(length: int = 2048, heads: int = 16) -> tuple[dict[str, Run], Check]:
    table = noise(32, heads, dtype=torch.half)
    out = torch.empty(heads, length, length, device="cuda", dtype=torch.half)
    distances = torch.empty(heads, 2 * length, device="cuda", dtype=torch.half)
    distances_kernel[(2 * length // 256,)](table, distances, length, heads, 256)
    grid = (length // 256, length // 8)
    return {
        "flawed": lambda: biases_kernel[(*grid, heads)](table, out, length, heads, 8, 256, num_warps=4),
        "heads": lambda: biases_heads_kernel[grid](table, out, length, heads, 8, 256, num_warps=4),
        "distances": lambda: biases_distances_kernel[(*grid, heads)](
            distances, out, length, 8, 256, num_warps=4
        ),
    }, lambda: out


# --- a step of training ---


@triton.jit
def stepped_kernel(
    weights, gradients, means, squares, new_weights, new_means, new_squares, rate, decay, block: tl.constexpr
):
    """AdamW of what is in single precision; moments' corrections are in the rate."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    gradient = tl.load(gradients + at)
    mean = 0.9 * tl.load(means + at) + 0.1 * gradient
    square = 0.999 * tl.load(squares + at) + 0.001 * gradient * gradient
    weight = tl.load(weights + at) * decay - rate * mean / (tl.sqrt(square) + 1e-8)
    tl.store(new_means + at, mean)
    tl.store(new_squares + at, square)
    tl.store(new_weights + at, weight)


def stepped(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    weights, gradients, means, squares = noise(4, count)
    squares = squares.abs() + 0.01
    new = torch.empty(3, count, device="cuda")
    return {
        "sound": lambda: stepped_kernel[(count // 1024,)](
            weights, gradients, means, squares, *new, 1e-3, 0.9999, 1024, num_warps=4
        )
    }, lambda: new


STUDIES = (
    Study(
        "triton_bag_rows_until_a_negative_one",
        "sums of 8 to 63 rows of 64 floats for each of 65536 bags, from a table of 1048576 rows, in Triton",
        "a row is loaded when the one before it was added and the next number found not to be negative",
        (
            ("eight_rows", "eight rows of a bag at a time", ("memory_latency",)),
            ("counted", "rows counted beforehand: several are on their way", ("memory_latency",)),
        ),
        bagged,
        domain="recommenders",
    ),
    Study(
        "triton_keys_read_again_for_each_query_head",
        "attention of 32 new tokens to 2048 before them, 64 heads of queries on 8 of keys, in Triton",
        "eight programs read the same keys and values, each for one head of queries",
        (
            ("group", "the eight heads of one product, filled up to sixteen", ("redundant_loads",)),
            ("turned", "the eight heads of one product, turned: keys are its rows", ("redundant_loads",)),
        ),
        answered,
        tolerance=1e-2,
    ),
    Study(
        "triton_relative_biases_a_logarithm_each",
        "biases of 16 heads for 2048 x 2048 pairs of tokens by their distance's bucket, in Triton",
        "a logarithm and a quotient for each pair of tokens and head",
        (
            ("heads", "buckets of a piece once for all heads", ("expensive_math",)),
            ("distances", "biases of the 4096 distances made beforehand", ("expensive_math",)),
        ),
        biased,
        tolerance=0.0,
    ),
    Study(
        "sound_triton_weights_stepped",
        "a step of AdamW for 16777216 weights in single precision, in Triton",
        "",
        (),
        stepped,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
