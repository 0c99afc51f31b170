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

# --- recommenders ---


@triton.jit
def negatives_kernel(queries, items, drawn, out, many, width: tl.constexpr):
    """Scores of the items drawn for a query, one item after the other."""
    query = tl.program_id(0)
    column = tl.arange(0, width)
    own = tl.load(queries + query * width + column).to(tl.float32)
    for k in range(0, many):
        item = tl.load(drawn + query * many + k)
        row = tl.load(items + item * width + column).to(tl.float32)
        tl.store(out + query * many + k, tl.sum(own * row, 0))


@triton.jit
def negatives_tile_kernel(queries, items, drawn, out, many, width: tl.constexpr, some: tl.constexpr):
    """The same for ``some`` items at a time."""
    query = tl.program_id(0)
    column = tl.arange(0, width)
    own = tl.load(queries + query * width + column).to(tl.float32)
    for start in range(0, many, some):
        at = query * many + start + tl.arange(0, some)
        item = tl.load(drawn + at)
        rows = tl.load(items + item[:, None] * width + column[None, :]).to(tl.float32)
        tl.store(out + at, tl.sum(own[None, :] * rows, 1))


def negatives(count: int = 8192, items_count: int = 65536) -> tuple[dict[str, Run], Check]:
    width, many = 128, 64
    queries, items = noise(count, width, dtype=torch.half), noise(items_count, width, dtype=torch.half)
    generator = torch.Generator().manual_seed(7)
    drawn = torch.randint(0, items_count, (count, many), dtype=torch.int32, generator=generator).cuda()
    out = torch.empty(count, many, device="cuda")

    def tile(some: int, warps: int) -> Run:
        return lambda: negatives_tile_kernel[(count,)](
            queries, items, drawn, out, many, width, some, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: negatives_kernel[(count,)](queries, items, drawn, out, many, width, num_warps=4),
        "tile": tile(32, 4),
        "warp": tile(8, 1),
    }
    return sides, lambda: out


@triton.jit
def categories_kernel(codes, table, out, height: tl.constexpr, width: tl.constexpr, tall: tl.constexpr):
    """Rows of a small table for codes, as a product of ones and zeros with the table."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    entry, column = tl.arange(0, height), tl.arange(0, width)
    code = tl.load(codes + row)
    chosen = (code[:, None] == entry[None, :]).to(tl.float16)
    whole = tl.load(table + entry[:, None] * width + column[None, :])
    value = tl.dot(chosen, whole)
    tl.store(out + row[:, None] * width + column[None, :], value.to(tl.float16))


@triton.jit
def categories_rows_kernel(codes, table, out, width: tl.constexpr, tall: tl.constexpr):
    """The same: the rows of the codes and nothing else."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, width)
    code = tl.load(codes + row)
    value = tl.load(table + code[:, None] * width + column[None, :])
    tl.store(out + row[:, None] * width + column[None, :], value)


def categories(count: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    height, width = 256, 64
    generator = torch.Generator().manual_seed(9)
    codes = torch.randint(0, height, (count,), dtype=torch.int32, generator=generator).cuda()
    table = noise(height, width, dtype=torch.half)
    out = torch.empty(count, width, device="cuda", dtype=torch.half)

    def rows(tall: int) -> Run:
        return lambda: categories_rows_kernel[(count // tall,)](codes, table, out, width, tall, num_warps=4)

    sides: dict[str, Run] = {
        "flawed": lambda: categories_kernel[(count // 128,)](
            codes, table, out, height, width, 128, num_warps=4
        ),
        "rows": rows(128),
        "few": rows(32),
    }
    return sides, lambda: out


# --- models ---


@triton.jit
def product_kernel(
    left, right, out, size, columns, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """A product of two matrices of half values."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for k in range(0, size, deep):
        a = tl.load(left + row[:, None] * size + k + inner[None, :])
        b = tl.load(right + (k + inner)[:, None] * columns + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def product(rows: int = 3072, size: int = 1024) -> tuple[dict[str, Run], Check]:
    left, right = noise(rows, size, dtype=torch.half), noise(size, rows, dtype=torch.half) * 0.1
    out = torch.empty(rows, rows, device="cuda", dtype=torch.half)

    def tiles(tall: int, wide: int, warps: int) -> Run:
        return lambda: product_kernel[(rows // tall, rows // wide)](
            left, right, out, size, rows, tall, wide, 32, num_warps=warps
        )

    return {
        "flawed": tiles(128, 256, 4),
        "warps": tiles(128, 256, 8),
        "smaller": tiles(128, 128, 4),
    }, lambda: out


@triton.jit
def gate_kernel(x, weights, out, width, tall: tl.constexpr, wide: tl.constexpr):
    """How far a gate opens for each token: the product of its row with one vector."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, width, wide):
        column = start + tl.arange(0, wide)
        value = tl.load(x + row[:, None] * width + column[None, :]).to(tl.float32)
        total += value * tl.load(weights + column).to(tl.float32)[None, :]
    tl.store(out + row, tl.sigmoid(tl.sum(total, 1)))


def gate(rows: int = 32768, width: int = 2048) -> tuple[dict[str, Run], Check]:
    x, weights = noise(rows, width, dtype=torch.half), noise(width, dtype=torch.half) * 0.1
    out = torch.empty(rows, device="cuda")

    def tiles(tall: int, wide: int) -> Run:
        return lambda: gate_kernel[(rows // tall,)](x, weights, out, width, tall, wide, num_warps=4)

    return {"flawed": tiles(128, 8), "wide": tiles(16, 256), "row": tiles(1, 2048)}, lambda: out


@triton.jit
def past_means_kernel(x, out, steps, channels, tall: tl.constexpr, wide: tl.constexpr):
    """The mean of all steps so far: each program adds up the whole past of its own steps."""
    first = tl.program_id(0) * tall
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    step = tl.arange(0, tall)
    base = tl.program_id(2) * steps
    past = tl.zeros((wide,), tl.float32)
    for start in range(0, first, tall):
        past += tl.sum(tl.load(x + (base + start + step)[:, None] * channels + column[None, :]), 0)
    own = tl.load(x + (base + first + step)[:, None] * channels + column[None, :])
    total = past[None, :] + tl.cumsum(own, 0)
    at = (base + first + step)[:, None] * channels + column[None, :]
    tl.store(out + at, total / (first + step + 1).to(tl.float32)[:, None])


@triton.jit
def past_means_carried_kernel(x, out, steps, channels, tall: tl.constexpr, wide: tl.constexpr):
    """The same, the sum carried on from piece to piece."""
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    step = tl.arange(0, tall)
    base = tl.program_id(1) * steps
    past = tl.zeros((wide,), tl.float32)
    for start in range(0, steps, tall):
        at = (base + start + step)[:, None] * channels + column[None, :]
        own = tl.load(x + at)
        total = past[None, :] + tl.cumsum(own, 0)
        tl.store(out + at, total / (start + step + 1).to(tl.float32)[:, None])
        past += tl.sum(own, 0)


def past_means(sequences: int = 32, steps: int = 2048) -> tuple[dict[str, Run], Check]:
    channels = 256
    x = noise(sequences, steps, channels) + 0.3
    out = torch.empty_like(x)

    def carried(tall: int, wide: int, warps: int) -> Run:
        return lambda: past_means_carried_kernel[(channels // wide, sequences)](
            x, out, steps, channels, tall, wide, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: past_means_kernel[(steps // 64, channels // 64, sequences)](
            x, out, steps, channels, 64, 64, num_warps=4
        ),
        "carried": carried(64, 32, 4),
        "narrow": carried(128, 8, 4),
    }
    return sides, lambda: out


# --- without a flaw ---


@triton.jit
def magnitudes_kernel(real, imaginary, out, block: tl.constexpr):
    """Magnitudes of a spectrum's values."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    re = tl.load(real + at).to(tl.float32)
    im = tl.load(imaginary + at).to(tl.float32)
    tl.store(out + at, tl.sqrt(re * re + im * im).to(tl.float16))


def magnitudes(count: int = 1 << 26) -> tuple[dict[str, Run], Check]:
    real = noise(count, dtype=torch.half)
    imaginary = real.flip(0).contiguous()
    out = torch.empty_like(real)
    return {
        "sound": lambda: magnitudes_kernel[(count // 2048,)](real, imaginary, out, 2048, num_warps=4)
    }, lambda: out


STUDIES = (
    Study(
        "triton_negatives_scored_one_by_one",
        "scores of 64 items drawn for each of 8192 queries, 128 half values a row, in Triton",
        "four warps fetch a row of 256 bytes, add up its products, and only then go to the next item",
        (
            ("tile", "32 items at a time", ("memory_latency", "barriers")),
            ("warp", "eight items at a time, one warp a query", ("memory_latency", "barriers")),
        ),
        negatives,
        domain="recommenders",
    ),
    Study(
        "triton_small_table_as_product_of_ones_and_zeros",
        "rows of 64 half values of a table of 256 for 524288 codes, in Triton",
        "the whole table is read and multiplied for each 128 codes, of which each wants one row",
        (
            ("rows", "the rows of the codes fetched", ("redundant_loads",)),
            ("few", "the same for 32 codes a program", ("redundant_loads",)),
        ),
        categories,
        tolerance=0.0,
        domain="recommenders",
    ),
    Study(
        "triton_product_tiles_of_128_by_256_in_four_warps",
        "a product of half matrices, 3072 x 1024 times 1024 x 3072, in Triton",
        "a tile of 128 x 256 sums does not fit the registers of four warps",
        (
            ("warps", "eight warps a tile", ("local_memory",)),
            ("smaller", "tiles of 128 x 128", ("local_memory",)),
        ),
        product,
        tolerance=2e-3,
    ),
    Study(
        "triton_gate_eight_columns_at_a_time",
        "products of 32768 rows of 2048 half values with one vector, in Triton",
        "a tile of 128 rows and eight columns: each lane takes 16 bytes of another row",
        (
            ("wide", "tiles of 16 rows and 256 columns", ("uncoalesced_access",)),
            ("row", "a program a row", ("uncoalesced_access",)),
        ),
        gate,
    ),
    Study(
        "triton_means_of_the_past_added_up_again",
        "means of all steps so far, 32 sequences of 2048 steps and 256 channels, in Triton",
        "each program adds up the whole past of its 64 steps again",
        (
            (
                "carried",
                "a program goes through all steps and carries the sum",
                ("redundant_loads", "workload_imbalance"),
            ),
            ("narrow", "the same for eight channels a program", ("redundant_loads", "workload_imbalance")),
        ),
        past_means,
        domain="time series",
    ),
    Study(
        "sound_triton_magnitudes_of_spectra",
        "magnitudes of 67108864 complex numbers of half values, in Triton",
        "",
        (),
        magnitudes,
        domain="signals",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
