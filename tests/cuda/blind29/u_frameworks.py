"""Studies in Triton of norms, rolling means, scales and ranks, run by tests/cuda/variants/frameworks.py.

Usage: u_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- the slopes of a norm ---


@triton.jit
def norm_slope(x, weight, slope, out, row, at, width: tl.constexpr):
    """The slope of a row before an RMS norm; what it adds to the slope of the norm's weight."""
    value = tl.load(x + row * width + at).to(tl.float32)
    after = tl.load(slope + row * width + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + 1e-6)
    normed = value * scale
    weighted = after * weight
    along = tl.sum(weighted * normed, 0) / width
    tl.store(out + row * width + at, (scale * (weighted - normed * along)).to(tl.float16))
    return after * normed


@triton.jit
def norm_slopes_kernel(x, weight, slope, out, weight_slope, width: tl.constexpr):
    """A row a program."""
    at = tl.arange(0, width)
    part = norm_slope(x, tl.load(weight + at).to(tl.float32), slope, out, tl.program_id(0), at, width)
    tl.atomic_add(weight_slope + at, part, sem="relaxed")


@triton.jit
def norm_slopes_rows_kernel(x, weight, slope, out, weight_slope, rows: tl.constexpr, width: tl.constexpr):
    """Some rows a program, one after another; their parts are added at once."""
    at = tl.arange(0, width)
    kept = tl.load(weight + at).to(tl.float32)
    total = tl.zeros((width,), tl.float32)
    first = tl.program_id(0) * rows
    for row in range(first, first + rows):
        total += norm_slope(x, kept, slope, out, row, at, width)
    tl.atomic_add(weight_slope + at, total, sem="relaxed")


@triton.jit
def norm_slopes_parts_kernel(x, weight, slope, out, parts, count, width: tl.constexpr):
    """Rows dealt out among the programs; each stores a part of its own, to be summed later."""
    at = tl.arange(0, width)
    kept = tl.load(weight + at).to(tl.float32)
    total = tl.zeros((width,), tl.float32)
    for row in range(tl.program_id(0), count, tl.num_programs(0)):
        total += norm_slope(x, kept, slope, out, row, at, width)
    tl.store(parts + tl.program_id(0) * width + at, total)


def norm_slopes(count: int = 32768, width: int = 1024) -> tuple[dict[str, Run], Check]:
    x, slope = noise(count, width, dtype=torch.half), noise(count, width, dtype=torch.half).flip(0)
    weight = noise(width, dtype=torch.half)
    out, parts = torch.empty_like(x), torch.zeros(1056, width, device="cuda")

    def check() -> torch.Tensor:
        """Both slopes; parts are cleared for the next run."""
        found = torch.cat((out.float(), parts.sum(0, keepdim=True) / 64.0))
        parts.zero_()
        return found

    return {
        "flawed": lambda: norm_slopes_kernel[(count,)](x, weight, slope, out, parts, width, num_warps=4),
        "rows": lambda: norm_slopes_rows_kernel[(count // 16,)](
            x, weight, slope, out, parts, 16, width, num_warps=4
        ),
        "parts": lambda: norm_slopes_parts_kernel[(1056,)](
            x, weight, slope, out, parts, count, width, num_warps=4
        ),
    }, check


# --- rolling means ---


@triton.jit
def rolling_kernel(x, out, times, series, window: tl.constexpr, steps: tl.constexpr, block: tl.constexpr):
    """Means of the last ``window`` times; some steps of ``block`` series a program."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.program_id(1) * steps
    for time in range(first, first + steps):
        total = tl.zeros((block,), tl.float32)
        for back in tl.static_range(window):
            total += tl.load(x + (time + back) * series + column)
        tl.store(out + time * series + column, total * (1.0 / window))


@triton.jit
def rolling_sum_kernel(x, out, times, series, window: tl.constexpr, steps: tl.constexpr, block: tl.constexpr):
    """The same; a time comes, another goes."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.program_id(1) * steps
    total = tl.zeros((block,), tl.float32)
    for back in tl.static_range(window - 1):
        total += tl.load(x + (first + back) * series + column)
    for time in range(first, first + steps):
        total += tl.load(x + (time + window - 1) * series + column)
        tl.store(out + time * series + column, total * (1.0 / window))
        total -= tl.load(x + time * series + column)


@triton.jit
def rolling_four_kernel(
    x, out, times, series, window: tl.constexpr, steps: tl.constexpr, block: tl.constexpr
):
    """The same; four steps share the sum of the times that they have in common."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.program_id(1) * steps
    for time in range(first, first + steps, 4):
        at = x + time * series + column
        a, b, c = tl.load(at), tl.load(at + series), tl.load(at + 2 * series)
        common = tl.zeros((block,), tl.float32)
        for back in tl.static_range(3, window):
            common += tl.load(at + back * series)
        d = tl.load(at + window * series)
        e = tl.load(at + (window + 1) * series)
        f = tl.load(at + (window + 2) * series)
        to = out + time * series + column
        tl.store(to, (common + (a + b + c)) * (1.0 / window))
        tl.store(to + series, (common + (b + c + d)) * (1.0 / window))
        tl.store(to + 2 * series, (common + (c + d + e)) * (1.0 / window))
        tl.store(to + 3 * series, (common + (d + e + f)) * (1.0 / window))


def rolling(times: int = 4096, series: int = 8192, window: int = 12) -> tuple[dict[str, Run], Check]:
    x = noise(times + window - 1, series)
    out = torch.empty(times, series, device="cuda")
    grid = (series // 512, times // 64)
    return {
        "flawed": lambda: rolling_kernel[grid](x, out, times, series, window, 64, 512, num_warps=4),
        "running": lambda: rolling_sum_kernel[grid](x, out, times, series, window, 64, 512, num_warps=4),
        "four": lambda: rolling_four_kernel[grid](x, out, times, series, window, 64, 512, num_warps=4),
    }, lambda: out


# --- scales of a matrix's columns ---


@triton.jit
def column_scales_kernel(x, scales, rows, columns, piece: tl.constexpr, width: tl.constexpr):
    """What the largest value of each column is a 127th of; ``width`` columns a program, ``piece`` rows at a time."""
    column = tl.program_id(0) * width + tl.arange(0, width)
    largest = tl.zeros((piece, width), tl.float32)
    for first in range(0, rows, piece):
        row = first + tl.arange(0, piece)
        value = tl.load(x + row[:, None] * columns + column[None, :])
        largest = tl.maximum(largest, tl.abs(value.to(tl.float32)))
    tl.store(scales + column, tl.max(largest, 0) * (1.0 / 127.0))


def column_scales(rows: int = 4096, columns: int = 32768) -> tuple[dict[str, Run], Check]:
    x = noise(rows, columns, dtype=torch.half)
    scales = torch.empty(columns, device="cuda")

    def scaled(piece: int, width: int) -> Run:
        return lambda: column_scales_kernel[(columns // width,)](
            x, scales, rows, columns, piece, width, num_warps=4
        )

    return {"flawed": scaled(512, 4), "sectors": scaled(128, 16), "lines": scaled(64, 64)}, lambda: scales


# --- an adapter of small rank ---


@triton.jit
def down_kernel(
    x, down, out, width: tl.constexpr, rank: tl.constexpr, tile: tl.constexpr, piece: tl.constexpr
):
    """Rows times a matrix of few rows, each product written out."""
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    place, way = tl.arange(0, piece), tl.arange(0, rank)
    total = tl.zeros((tile, rank, piece), tl.float32)
    for first in range(0, width, piece):
        a = tl.load(x + row[:, None] * width + first + place[None, :]).to(tl.float32)
        b = tl.load(down + way[:, None] * width + first + place[None, :]).to(tl.float32)
        total += a[:, None, :] * b[None, :, :]
    tl.store(out + row[:, None] * rank + way[None, :], tl.sum(total, 2))


@triton.jit
def down_dot_kernel(
    x, down, out, width: tl.constexpr, rank: tl.constexpr, tile: tl.constexpr, piece: tl.constexpr
):
    """The same as a product of matrices."""
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    place, way = tl.arange(0, piece), tl.arange(0, rank)
    total = tl.zeros((tile, rank), tl.float32)
    for first in range(0, width, piece):
        a = tl.load(x + row[:, None] * width + first + place[None, :])
        b = tl.load(down + way[None, :] * width + first + place[:, None])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * rank + way[None, :], total)


def small_rank(count: int = 49152, width: int = 2048, rank: int = 16) -> tuple[dict[str, Run], Check]:
    x, down = noise(count, width, dtype=torch.half), noise(rank, width, dtype=torch.half).flip(1)
    out = torch.empty(count, rank, device="cuda")
    return {
        "flawed": lambda: down_kernel[(count // 16,)](x, down, out, width, rank, 16, 64, num_warps=8),
        "dot": lambda: down_dot_kernel[(count // 16,)](x, down, out, width, rank, 16, 128, num_warps=4),
        "bigger": lambda: down_dot_kernel[(count // 64,)](x, down, out, width, rank, 64, 64, num_warps=4),
    }, lambda: out


# --- a norm and what is added before it ---


@triton.jit
def added_norm_kernel(x, residual, weight, out, width: tl.constexpr):
    """A row a program: its sum with the residual stream, which is kept, and that sum's RMS norm."""
    at = tl.arange(0, width)
    row = tl.program_id(0).to(tl.int64) * width
    total = tl.load(x + row + at).to(tl.float32) + tl.load(residual + row + at).to(tl.float32)
    tl.store(residual + row + at, total.to(tl.float16))
    scale = tl.rsqrt(tl.sum(total * total, 0) / width + 1e-6)
    tl.store(out + row + at, (total * scale * tl.load(weight + at).to(tl.float32)).to(tl.float16))


def added_norm(rows: int = 16384, width: int = 4096) -> tuple[dict[str, Run], Check]:
    x, residual = noise(rows, width, dtype=torch.half), noise(rows, width, dtype=torch.half).flip(0)
    weight = noise(width)
    initial, out = residual.clone(), torch.empty_like(x)

    def check() -> torch.Tensor:
        """Both results; the stream is as it was before the next run."""
        found = torch.cat((out, residual))
        residual.copy_(initial)
        return found

    return {"sound": lambda: added_norm_kernel[(rows,)](x, residual, weight, out, width, num_warps=8)}, check


STUDIES = (
    Study(
        "triton_norm_weight_slope_atomics_a_row",
        "slopes of an RMS norm of 32768 rows of 1024 half values and of its weight, in Triton",
        "each row adds its part to the slope of all 1024 weights, an atomic a weight",
        (
            ("rows", "sixteen rows a program, added up in registers first", ("global_atomics",)),
            ("parts", "rows dealt out among 1056 programs, each with a part of its own", ("global_atomics",)),
        ),
        norm_slopes,
        domain="training",
    ),
    Study(
        "triton_rolling_mean_loads_its_window_each_step",
        "means of the last 12 times of 8192 series over 4096 times, in Triton",
        "for each mean all 12 values are loaded, eleven of which the mean before it had loaded",
        (
            ("running", "a running sum: one value comes, one goes", ("redundant_loads",)),
            ("four", "four steps share the sum of what they have in common", ("redundant_loads",)),
        ),
        rolling,
        domain="time series",
    ),
    Study(
        "triton_column_scales_four_columns_wide",
        "scales of the 32768 columns of 4096 rows of half values, in Triton",
        "a program has four columns: of each row eight bytes, a quarter of what the memory hands out",
        (
            ("sectors", "sixteen columns a program", ("uncoalesced_access",)),
            ("lines", "64 columns a program, fewer rows at a time", ("uncoalesced_access",)),
        ),
        column_scales,
        domain="quantisation",
    ),
    Study(
        "triton_small_rank_products_written_out",
        "49152 rows of 2048 half values times the 16 rows of an adapter, in Triton",
        "products are made one by one as a tensor of three axes, not as a product of matrices",
        (
            ("dot", "a product of matrices", ("tensor_cores_idle",)),
            ("bigger", "a product of matrices, 64 rows a program", ("tensor_cores_idle",)),
        ),
        small_rank,
        domain="adapters",
    ),
    Study(
        "sound_triton_residual_added_and_normed",
        "16384 rows of 4096 half values added to a residual stream, and their RMS norm, in Triton",
        "",
        (),
        added_norm,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
