"""Exponentially weighted mean and deviation of many series of returns at each step; a row a step."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import triton
import triton.language as tl
from tried import Form, empty, judge, noise, small

STEPS, SERIES, WEIGHT = small(2048, 256), small(8192, 128), 0.06


@triton.jit
def as_it_is(returns, mean, deviation, steps, series, weight, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(returns + at)
    v = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        x = tl.load(returns + step * series + at)
        off = x - m
        m += weight * off
        v = (1 - weight) * (v + weight * off * off)
        tl.store(mean + step * series + at, m)
        tl.store(deviation + step * series + at, tl.sqrt(v))


@triton.jit
def next_carried(returns, mean, deviation, steps, series, weight, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(returns + at)
    v = tl.zeros((BLOCK,), tl.float32)
    x = m
    for step in range(steps):
        ahead = tl.load(returns + (step + 1) * series + at, mask=(step + 1 < steps) & (at >= 0), other=0.0)
        off = x - m
        m += weight * off
        v = (1 - weight) * (v + weight * off * off)
        tl.store(mean + step * series + at, m)
        tl.store(deviation + step * series + at, tl.sqrt(v))
        x = ahead


@triton.jit
def staged(returns, mean, deviation, steps, series, weight, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(returns + at)
    v = tl.zeros((BLOCK,), tl.float32)
    for step in tl.range(steps, num_stages=STAGES):
        x = tl.load(returns + step * series + at)
        off = x - m
        m += weight * off
        v = (1 - weight) * (v + weight * off * off)
        tl.store(mean + step * series + at, m)
        tl.store(deviation + step * series + at, tl.sqrt(v))


@triton.jit
def _joined(factor_a, sum_a, factor_b, sum_b):
    return factor_a * factor_b, sum_a * factor_b + sum_b


# Both moments are sums that shrink by a factor each step: scans over tiles of steps, the next tile under way meanwhile.
@triton.jit
def expert(returns, mean, deviation, steps, series, weight, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    at = row * series + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    keep = 1 - weight
    factors = tl.zeros((ROWS, BLOCK), tl.float32) + keep
    m = tl.load(returns + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    v = tl.zeros((BLOCK,), tl.float32)
    x = tl.load(returns + at)
    for step in range(0, steps, ROWS):
        ahead = tl.load(returns + (step + ROWS) * series + at, mask=(step + ROWS + row) < steps, other=0.0)
        shrunk, sums = tl.associative_scan((factors, weight * x), 0, _joined)
        means = sums + shrunk * m[None, :]
        off = x - means
        _, squares = tl.associative_scan((factors, weight / keep * off * off), 0, _joined)
        variances = squares + shrunk * v[None, :]
        tl.store(mean + step * series + at, means)
        tl.store(deviation + step * series + at, tl.sqrt(variances))
        m = tl.sum(tl.where(row == ROWS - 1, means, 0.0), 0)
        v = tl.sum(tl.where(row == ROWS - 1, variances, 0.0), 0)
        x = ahead


returns, mean, deviation = noise(STEPS, SERIES), empty(STEPS, SERIES), empty(STEPS, SERIES)
out = (returns, mean, deviation, STEPS, SERIES, WEIGHT)
forms: dict[str, Form] = {
    "as_it_is": lambda: as_it_is[(SERIES // 128,)](*out, 128),
    "next_carried": lambda: next_carried[(SERIES // 128,)](*out, 128),
    "three_stages": lambda: staged[(SERIES // 128,)](*out, 128, 3),
    "ten_stages": lambda: staged[(SERIES // 128,)](*out, 128, 10),
    "blocks_of_32": lambda: as_it_is[(SERIES // 32,)](*out, 32, num_warps=1),
    "expert": lambda: expert[(SERIES // 16,)](*out, 128, 16),
}
judge(forms, [mean, deviation])
