"""How far each price of many stocks lies from the mean of its last twenty days, in deviations of those; a row a day."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, noise, small

DAYS, STOCKS, WINDOW = small(4096, 160), small(4096, 256), 20
# Prices in steps of two percent at most.
prices = (50 * torch.exp(torch.cumsum(0.02 * noise(DAYS, STOCKS), 0))).contiguous()
scores = empty(DAYS - WINDOW + 1, STOCKS)  # from the first day that has twenty


@triton.jit
def as_it_is(prices, scores, stocks, window, BLOCK: tl.constexpr):
    day = tl.program_id(0)
    stock = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = stock < stocks
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(window):
        total += tl.load(prices + (day + k) * stocks + stock, mask=inside, other=0.0)
    mean = total / window
    squares = tl.zeros((BLOCK,), tl.float32)
    for k in range(window):
        off = tl.load(prices + (day + k) * stocks + stock, mask=inside, other=0.0) - mean
        squares += off * off
    last = tl.load(prices + (day + window - 1) * stocks + stock, mask=inside, other=0.0)
    deviation = tl.sqrt(squares / (window - 1))
    tl.store(scores + day * stocks + stock, (last - mean) / deviation, mask=inside)


# First step, redundant loads: prices are loaded once and kept in registers, each by itself or as a tile.
@triton.jit
def kept_in_registers(prices, scores, stocks, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    day = tl.program_id(0)
    stock = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = stock < stocks
    kept = ()
    for k in tl.static_range(WINDOW):
        kept += (tl.load(prices + (day + k) * stocks + stock, mask=inside, other=0.0),)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(WINDOW):
        total += kept[k]
    mean = total / WINDOW
    squares = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(WINDOW):
        off = kept[k] - mean
        squares += off * off
    deviation = tl.sqrt(squares / (WINDOW - 1))
    tl.store(scores + day * stocks + stock, (kept[WINDOW - 1] - mean) / deviation, mask=inside)


@triton.jit
def kept_as_a_tile(prices, scores, stocks, window, ROOM: tl.constexpr, BLOCK: tl.constexpr):
    day = tl.program_id(0)
    stock = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = stock < stocks
    k = tl.arange(0, ROOM)[:, None]
    kept = tl.load(
        prices + (day + k) * stocks + stock[None, :], mask=(k < window) & inside[None, :], other=0.0
    )  # fmt: skip
    mean = tl.sum(kept, 0) / window
    off = tl.where(k < window, kept - mean[None, :], 0.0)
    last = tl.sum(tl.where(k == window - 1, off, 0.0), 0)
    deviation = tl.sqrt(tl.sum(off * off, 0) / (window - 1))
    tl.store(scores + day * stocks + stock, last / deviation, mask=inside)


# Third step, cache locality: a larger tile, of several days, which share the prices of most of their windows.
@triton.jit
def several_days(
    prices, scores, days, stocks, WINDOW: tl.constexpr, TAKEN: tl.constexpr, BLOCK: tl.constexpr
):
    day = tl.program_id(0) * TAKEN
    stock = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = stock < stocks
    kept = ()
    for k in tl.static_range(WINDOW + TAKEN - 1):
        kept += (tl.load(prices + (day + k) * stocks + stock, mask=inside & (day + k < days), other=0.0),)
    for taken in tl.static_range(TAKEN):
        total = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(WINDOW):
            total += kept[taken + k]
        mean = total / WINDOW
        squares = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(WINDOW):
            off = kept[taken + k] - mean
            squares += off * off
        deviation = tl.sqrt(squares / (WINDOW - 1))
        score = (kept[taken + WINDOW - 1] - mean) / deviation
        known = inside & (day + taken <= days - WINDOW)
        tl.store(scores + (day + taken) * stocks + stock, score, mask=known)


# A program walks a stretch of days: the mean and the sum of squares follow what comes and what goes, and what comes
# next is under way meanwhile. Prices count from the stretch's first, so that sums of a walk keep their digits.
@triton.jit
def expert(prices, scores, days, stocks, WINDOW: tl.constexpr, STRETCH: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(1) * STRETCH
    stock = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = stock < stocks
    column = prices + stock
    base = tl.load(column + first * stocks, mask=inside, other=0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(WINDOW):
        total += tl.load(column + (first + k) * stocks, mask=inside, other=0.0) - base
    mean = total / WINDOW
    squares = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(WINDOW):
        off = tl.load(column + (first + k) * stocks, mask=inside, other=0.0) - base - mean
        squares += off * off
    last = tl.load(column + (first + WINDOW - 1) * stocks, mask=inside, other=0.0) - base
    end = tl.minimum(first + STRETCH, days - WINDOW + 1)
    comes = (
        tl.load(column + (first + WINDOW) * stocks, mask=inside & (first + WINDOW < days), other=0.0) - base
    )
    goes = tl.zeros((BLOCK,), tl.float32)
    for day in range(first, end):
        ahead = tl.load(
            column + (day + WINDOW + 1) * stocks, mask=inside & (day + WINDOW + 1 < days), other=0.0
        )
        behind = tl.load(column + (day + 1) * stocks, mask=inside, other=0.0)
        deviation = tl.sqrt(tl.maximum(squares, 0.0) * (1.0 / (WINDOW - 1)))
        tl.store(scores + day * stocks + stock, (last - mean) / deviation, mask=inside)
        change = comes - goes
        new = mean + change * (1.0 / WINDOW)
        squares += change * (comes - new + goes - mean)
        mean = new
        last = comes
        comes = ahead - base
        goes = behind - base


def stretches(days: int, block: int) -> Form:
    grid = (triton.cdiv(STOCKS, block), triton.cdiv(DAYS - WINDOW + 1, days))
    return lambda: expert[grid](prices, scores, DAYS, STOCKS, WINDOW, days, block, num_warps=block // 32)


of_256 = (DAYS - WINDOW + 1, triton.cdiv(STOCKS, 256))
of_512 = (DAYS - WINDOW + 1, triton.cdiv(STOCKS, 512))


def by_days(taken: int) -> Form:
    grid = (triton.cdiv(DAYS - WINDOW + 1, taken), triton.cdiv(STOCKS, 256))
    return lambda: several_days[grid](prices, scores, DAYS, STOCKS, WINDOW, taken, 256, num_warps=2)


judge({
    "as_it_is": lambda: as_it_is[of_256](prices, scores, STOCKS, WINDOW, 256),
    "kept_in_registers": lambda: kept_in_registers[of_256](prices, scores, STOCKS, WINDOW, 256),
    "kept_as_a_tile": lambda: kept_as_a_tile[of_256](prices, scores, STOCKS, WINDOW, 32, 256),
    # Second step, narrow access: sixteen bytes a thread, by a larger block or fewer warps.
    "blocks_of_512": lambda: kept_in_registers[of_512](prices, scores, STOCKS, WINDOW, 512),
    "two_warps": lambda: kept_in_registers[of_256](prices, scores, STOCKS, WINDOW, 256, num_warps=2),
    "four_days": by_days(4),
    "eight_days": by_days(8),
    "expert": stretches(64, 128),
    "expert_2": stretches(128, 64),
}, [scores])  # fmt: skip
