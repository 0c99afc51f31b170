"""Studies in Triton of serving, sparse matrices and trees, run by what tests/cuda/variants/frameworks.py provides.

Usage: a_serving_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


def drawn(below: int, *shape: int, seed: int = 3) -> torch.Tensor:
    """Whole numbers from 0 up to and without ``below``."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(0, below, shape, device="cuda", dtype=torch.int32, generator=generator)


# --- beams and experts ---


@triton.jit
def beams_flat_kernel(cache, parents, out, heads, steps, width, block: tl.constexpr):
    """Caches of beams in the order of their parents; place by place."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    size = heads.to(tl.int64) * steps * width
    beam = at // size
    rest = at % size
    head = rest // (steps.to(tl.int64) * width)
    step = rest // width % steps
    feature = rest % width
    parent = tl.load(parents + beam).to(tl.int64)
    value = tl.load(cache + ((parent * heads + head) * steps + step) * width + feature)
    tl.store(out + at, value)


@triton.jit
def beams_kernel(cache, parents, out, size, block: tl.constexpr):
    """The same, a beam a row of programs."""
    beam = tl.program_id(1)
    at = tl.program_id(0) * block + tl.arange(0, block)
    parent = tl.load(parents + beam).to(tl.int64)
    tl.store(out + beam.to(tl.int64) * size + at, tl.load(cache + parent * size + at))


@triton.jit
def beams_fixed_kernel(
    cache, parents, out, heads: tl.constexpr, steps: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    """The same place by place, in 32 bits by sizes known when it is compiled."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    size: tl.constexpr = heads * steps * width
    parent = tl.load(parents + at // size)
    tl.store(out + at, tl.load(cache + parent * size + at % size))


def beams(count: int = 64, steps: int = 1000) -> tuple[dict[str, Run], Check]:
    heads, width = 8, 128
    size = heads * steps * width
    cache, parents = noise(count, size, dtype=torch.half), drawn(4, count)
    parents += torch.arange(0, count, device="cuda", dtype=torch.int32) // 4 * 4
    out = torch.empty_like(cache)
    return {
        "flawed": lambda: beams_flat_kernel[(count * size // 1024,)](
            cache, parents, out, heads, steps, width, 1024, num_warps=4
        ),
        "rows": lambda: beams_kernel[(size // 1024, count)](cache, parents, out, size, 1024, num_warps=4),
        "known_sizes": lambda: beams_fixed_kernel[(count * size // 1024,)](
            cache, parents, out, heads, steps, width, 1024, num_warps=4
        ),
    }, lambda: out


@triton.jit
def router_kernel(logits, weights, chosen, experts: tl.constexpr, rounds: tl.constexpr):
    """A token's largest logits, one after the other, and their weights."""
    token = tl.program_id(0)
    column = tl.arange(0, experts)
    value = tl.load(logits + token * experts + column).to(tl.float32)
    value = tl.exp(value - tl.max(value, 0))
    value = value / tl.sum(value, 0)
    for k in range(rounds):
        best = tl.argmax(value, 0)
        tl.store(weights + token * rounds + k, tl.max(value, 0))
        tl.store(chosen + token * rounds + k, best)
        value = tl.where(column == best, -1.0, value)


@triton.jit
def router_tile_kernel(
    logits, weights, chosen, experts: tl.constexpr, rounds: tl.constexpr, tall: tl.constexpr
):
    """The same for ``tall`` tokens."""
    token = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, experts)
    value = tl.load(logits + token[:, None] * experts + column[None, :]).to(tl.float32)
    value = tl.exp(value - tl.max(value, 1)[:, None])
    value = value / tl.sum(value, 1)[:, None]
    for k in range(rounds):
        best = tl.argmax(value, 1)
        tl.store(weights + token * rounds + k, tl.max(value, 1))
        tl.store(chosen + token * rounds + k, best)
        value = tl.where(column[None, :] == best[:, None], -1.0, value)


def router(tokens: int = 65536) -> tuple[dict[str, Run], Check]:
    experts, rounds = 128, 8
    logits = noise(tokens, experts, dtype=torch.half) * 4
    weights = torch.empty(tokens, rounds, device="cuda")
    chosen = torch.empty(tokens, rounds, device="cuda", dtype=torch.int32)

    def tile(tall: int, warps: int) -> Run:
        return lambda: router_tile_kernel[(tokens // tall,)](
            logits, weights, chosen, experts, rounds, tall, num_warps=warps
        )

    return {
        "flawed": lambda: router_kernel[(tokens,)](logits, weights, chosen, experts, rounds, num_warps=4),
        "tile": tile(32, 4),
        "warp": tile(4, 1),
    }, lambda: weights


@triton.jit
def slots_kernel(expert, slot, count, experts: tl.constexpr, block: tl.constexpr):
    """Which place each token has among those of its expert: one program counts through all of them."""
    one = tl.arange(0, experts)
    before = tl.zeros((experts,), tl.int32)
    for start in range(0, count, block):
        at = start + tl.arange(0, block)
        mine = (tl.load(expert + at)[:, None] == one[None, :]).to(tl.int32)
        rank = tl.cumsum(mine, 0) - 1 + before[None, :]
        tl.store(slot + at, tl.sum(mine * rank, 1))
        before += tl.sum(mine, 0)


@triton.jit
def slots_of_expert_kernel(expert, slot, count, block: tl.constexpr):
    """The same, a program an expert."""
    own = tl.program_id(0)
    before = 0
    for start in range(0, count, block):
        at = start + tl.arange(0, block)
        mine = tl.load(expert + at) == own
        tl.store(slot + at, before + tl.cumsum(mine.to(tl.int32), 0) - 1, mask=mine)
        before += tl.sum(mine.to(tl.int32), 0)


@triton.jit
def slots_of_block_kernel(expert, begins, slot, experts: tl.constexpr, block: tl.constexpr):
    """The same, a program a block of tokens, whose begins the counting kernel stored."""
    one = tl.arange(0, experts)
    at = tl.program_id(0) * block + tl.arange(0, block)
    before = tl.load(begins + tl.program_id(0) * experts + one)
    mine = (tl.load(expert + at)[:, None] == one[None, :]).to(tl.int32)
    rank = tl.cumsum(mine, 0) - 1 + before[None, :]
    tl.store(slot + at, tl.sum(mine * rank, 1))


def slots(tokens: int = 65536) -> tuple[dict[str, Run], Check]:
    experts, block = 64, 128
    expert = drawn(experts, tokens)
    counts = torch.nn.functional.one_hot(expert.view(-1, block).long(), experts).sum(1)
    begins = (counts.cumsum(0) - counts).to(torch.int32).contiguous()
    slot = torch.empty(tokens, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: slots_kernel[(1,)](expert, slot, tokens, experts, block, num_warps=8),
        "expert_a_program": lambda: slots_of_expert_kernel[(experts,)](
            expert, slot, tokens, 4096, num_warps=8
        ),
        "blocks": lambda: slots_of_block_kernel[(tokens // block,)](
            expert, begins, slot, experts, block, num_warps=8
        ),
    }, lambda: slot


@triton.jit
def deep_product_kernel(
    left, right, out, depth, columns, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """Rows of half values times a matrix, a tile a program."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    a_at = left + row[:, None] * depth + inner[None, :]
    b_at = right + inner[:, None] * columns + column[None, :]
    total = tl.zeros((tall, wide), tl.float32)
    for _ in range(0, depth, deep):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total)
        a_at += deep
        b_at += deep * columns
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def deep_product(rows: int = 1024, depth: int = 4096, columns: int = 4096) -> tuple[dict[str, Run], Check]:
    left, right = noise(rows, depth, dtype=torch.half), noise(depth, columns, dtype=torch.half) * 0.1
    out = torch.empty(rows, columns, device="cuda", dtype=torch.half)

    def tiles(tall: int, wide: int, deep: int, stages: int, warps: int) -> Run:
        return lambda: deep_product_kernel[(rows // tall, columns // wide)](
            left, right, out, depth, columns, tall, wide, deep, num_stages=stages, num_warps=warps
        )

    return {
        "flawed": tiles(64, 64, 128, 6, 4),
        "two_stages": tiles(64, 64, 128, 2, 4),
        "shallow": tiles(64, 64, 32, 4, 4),
    }, lambda: out


# --- sparse matrices and trees ---


@triton.jit
def entries_kernel(rows, columns, values, x, out, width: tl.constexpr, some: tl.constexpr):
    """A sparse matrix, entries in any order, times features: each product is added to its row."""
    entry = tl.program_id(0) * some + tl.arange(0, some)
    feature = tl.arange(0, width)
    column, row = tl.load(columns + entry), tl.load(rows + entry)
    value = tl.load(values + entry)[:, None] * tl.load(x + column[:, None] * width + feature[None, :])
    tl.atomic_add(out + row[:, None] * width + feature[None, :], value)


@triton.jit
def sparse_row_kernel(begins, columns, values, x, out, width: tl.constexpr, some: tl.constexpr):
    """The same with entries in the order of rows: a program adds up a row, ``some`` entries at a time."""
    row = tl.program_id(0)
    feature = tl.arange(0, width)
    begin, end = tl.load(begins + row), tl.load(begins + row + 1)
    total = tl.zeros((some, width), tl.float32)
    for start in range(begin, end, some):
        entry = start + tl.arange(0, some)
        inside = entry < end
        column = tl.load(columns + entry, mask=inside, other=0)
        value = tl.load(values + entry, mask=inside, other=0.0)
        total += value[:, None] * tl.load(x + column[:, None] * width + feature[None, :])
    tl.store(out + row * width + feature, tl.sum(total, 0))


@triton.jit
def sparse_rows_kernel(begins, columns, values, x, out, width: tl.constexpr, tall: tl.constexpr):
    """The same for ``tall`` rows, an entry of each at a time."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    feature = tl.arange(0, width)
    begin, end = tl.load(begins + row), tl.load(begins + row + 1)
    total = tl.zeros((tall, width), tl.float32)
    for step in range(0, tl.max(end - begin, 0)):
        inside = begin + step < end
        column = tl.load(columns + begin + step, mask=inside, other=0)
        value = tl.load(values + begin + step, mask=inside, other=0.0)
        at = column[:, None] * width + feature[None, :]
        total += value[:, None] * tl.load(x + at, mask=inside[:, None], other=0.0)
    tl.store(out + row[:, None] * width + feature[None, :], total)


def sparse(rows: int = 32768, mean: int = 32) -> tuple[dict[str, Run], Check]:
    width, entries = 64, rows * mean
    x, values = noise(rows, width), noise(entries)
    row, column = drawn(rows, entries, seed=5).sort()[0], drawn(rows, entries, seed=6)
    counts = torch.bincount(row, minlength=rows)
    begins = torch.zeros(rows + 1, device="cuda", dtype=torch.int32)
    begins[1:] = counts.cumsum(0)
    mixed = drawn(1 << 30, entries, seed=7).argsort()
    any_row, any_column, any_value = (
        row[mixed].contiguous(),
        column[mixed].contiguous(),
        values[mixed].contiguous(),
    )
    out = torch.zeros(rows, width, device="cuda")

    def check() -> torch.Tensor:
        found = out.clone()
        out.zero_()
        return found

    return {
        "flawed": lambda: entries_kernel[(entries // 32,)](
            any_row, any_column, any_value, x, out, width, 32, num_warps=4
        ),
        "row": lambda: sparse_row_kernel[(rows,)](begins, column, values, x, out, width, 8, num_warps=1),
        "sixteen_rows": lambda: sparse_rows_kernel[(rows // 16,)](
            begins, column, values, x, out, width, 16, num_warps=4
        ),
    }, check


@triton.jit
def forest_kernel(
    features,
    splits,
    limits,
    leaves,
    out,
    trees,
    width: tl.constexpr,
    levels: tl.constexpr,
    block: tl.constexpr,
):
    """Sums of the leaves that samples reach, tree after tree."""
    sample = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for tree in range(0, trees):
        base = tree << levels
        node = tl.full((block,), 1, tl.int32)
        for _ in range(levels):
            value = tl.load(features + sample * width + tl.load(splits + base + node))
            node = 2 * node + (value > tl.load(limits + base + node)).to(tl.int32)
        total += tl.load(leaves + base + node - (1 << levels))
    tl.store(out + sample, total)


@triton.jit
def forest_abreast_kernel(
    features, splits, limits, leaves, out, trees, width: tl.constexpr, levels: tl.constexpr, block: tl.constexpr,
    some: tl.constexpr, added: tl.constexpr,
):  # fmt: skip
    """The same, ``some`` trees at once; ``added``: programs share the trees and add to the sums."""
    sample = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block, some), tl.float32)
    own = trees // tl.num_programs(1)
    first = tl.program_id(1) * own
    for tree in range(first, first + own, some):
        base = ((tree + tl.arange(0, some)) << levels)[None, :]
        node = tl.full((block, some), 1, tl.int32)
        for _ in range(levels):
            value = tl.load(features + sample[:, None] * width + tl.load(splits + base + node))
            node = 2 * node + (value > tl.load(limits + base + node)).to(tl.int32)
        total += tl.load(leaves + base + node - (1 << levels))
    if added:
        tl.atomic_add(out + sample, tl.sum(total, 1))
    else:
        tl.store(out + sample, tl.sum(total, 1))


def forest(samples: int = 65536, trees: int = 64) -> tuple[dict[str, Run], Check]:
    width, levels = 32, 8
    features, limits = noise(samples, width), noise(trees, 1 << levels) * 0.5
    splits, leaves = drawn(width, trees, 1 << levels), noise(trees, 1 << levels).flip(1).contiguous()
    out = torch.zeros(samples, device="cuda")
    tensors = (features, splits, limits, leaves, out, trees, width, levels)

    def check() -> torch.Tensor:
        found = out.clone()
        out.zero_()
        return found

    return {
        "flawed": lambda: forest_kernel[(samples // 128,)](*tensors, 128, num_warps=4),
        "trees_abreast": lambda: forest_abreast_kernel[(samples // 128, 1)](
            *tensors, 128, 8, False, num_warps=4
        ),
        "trees_dealt_out": lambda: forest_abreast_kernel[(samples // 128, 4)](
            *tensors, 128, 1, True, num_warps=4
        ),
    }, check


# --- without a flaw ---


@triton.jit
def to_experts_kernel(tokens, source, out, width: tl.constexpr, tall: tl.constexpr):
    """Rows of tokens in the order of their experts."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, width)
    token = tl.load(source + row)
    value = tl.load(tokens + token[:, None] * width + column[None, :])
    tl.store(out + row[:, None] * width + column[None, :], value)


def to_experts(count: int = 32768, width: int = 1024) -> tuple[dict[str, Run], Check]:
    tokens = noise(count, width, dtype=torch.half)
    source = drawn(1 << 30, count).argsort().to(torch.int32)
    out = torch.empty_like(tokens)
    return {
        "sound": lambda: to_experts_kernel[(count // 4,)](tokens, source, out, width, 4, num_warps=4)
    }, lambda: out


STUDIES = (
    Study(
        "triton_beams_reordered_by_long_divisions",
        "caches of 64 beams, 8 heads of 1000 steps of 128 half features, in the order of their parents, in Triton",
        "beam, head, step and feature of each value by divisions of 64 bits through sizes known at run time only",
        (
            ("rows", "a row of programs a beam, without divisions", ("integer_arithmetic", "narrow_access")),
            (
                "known_sizes",
                "in 32 bits, by sizes known when it is compiled",
                ("integer_arithmetic", "narrow_access"),
            ),
        ),
        beams,
        tolerance=0.0,
        domain="serving",
    ),
    Study(
        "triton_router_eight_rounds_four_warps_a_token",
        "the eight likeliest of 128 experts for 65536 tokens, in Triton",
        "each round is a reduction over four warps, for a value a thread",
        (
            ("tile", "32 tokens a program: reductions stay in a warp", ("barriers",)),
            ("warp", "four tokens a program of one warp", ("barriers",)),
        ),
        router,
    ),
    Study(
        "triton_slots_of_experts_in_one_program",
        "places of 65536 tokens among those of their expert, 64 experts, in Triton",
        "one program walks all tokens, 128 at a time",
        (
            ("expert_a_program", "a program an expert, 4096 tokens at a time", ("small_grid",)),
            ("blocks", "a program 128 tokens, begins from the counting kernel", ("small_grid",)),
        ),
        slots,
        tolerance=0.0,
    ),
    Study(
        "triton_product_six_stages_of_128",
        "product of half matrices, 1024 x 4096 of depth 4096, in Triton",
        "six stages of 128 by tiles of 64 x 64 fill the shared memory: four warps a multiprocessor",
        (
            ("two_stages", "two stages", ("low_occupancy",)),
            ("shallow", "four stages of 32", ("low_occupancy",)),
        ),
        deep_product,
        tolerance=2e-3,
        domain="serving",
    ),
    Study(
        "triton_sparse_entries_added_by_atomics",
        "a sparse matrix of 32768 rows and 1048576 entries times 64 float features, in Triton",
        "entries are in no order, and each adds its 64 products to its row by atomics",
        (
            ("row", "entries by rows, a warp a row", ("global_atomics",)),
            ("sixteen_rows", "entries by rows, sixteen rows a program", ("global_atomics",)),
        ),
        sparse,
        domain="linear algebra",
    ),
    Study(
        "triton_forest_one_tree_at_a_time",
        "64 trees of eight levels for 65536 samples of 32 floats, in Triton",
        "a sample's way down one tree, load after load, before the next tree begins",
        (
            ("trees_abreast", "eight trees at once", ("memory_latency",)),
            ("trees_dealt_out", "four programs share the trees", ("memory_latency", "low_occupancy")),
        ),
        forest,
        domain="statistics",
    ),
    Study(
        "sound_triton_tokens_to_experts",
        "32768 rows of 1024 half values in the order of their experts, in Triton",
        "",
        (),
        to_experts,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
