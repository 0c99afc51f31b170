"""Studies in Triton of models and their training, run by what tests/cuda/variants/frameworks.py provides.

Usage: e_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- norms, residual streams and attention ---


@triton.jit
def weight_norm_kernel(v, gains, out, columns, block: tl.constexpr):
    """A piece of a row of a matrix whose rows are made as long as their gains."""
    row = tl.program_id(0) * columns
    total = tl.zeros((block,), tl.float32)
    for start in range(0, columns, block):
        value = tl.load(v + row + start + tl.arange(0, block)).to(tl.float32)
        total += value * value
    scale = tl.load(gains + tl.program_id(0)) * tl.rsqrt(tl.sum(total, 0))
    at = row + tl.program_id(1) * block + tl.arange(0, block)
    tl.store(out + at, (tl.load(v + at).to(tl.float32) * scale).to(tl.float16))


@triton.jit
def weight_norm_walk_kernel(v, gains, out, columns, block: tl.constexpr):
    """The same, a whole row a program, which walks it twice."""
    row = tl.program_id(0) * columns
    total = tl.zeros((block,), tl.float32)
    for start in range(0, columns, block):
        value = tl.load(v + row + start + tl.arange(0, block)).to(tl.float32)
        total += value * value
    scale = tl.load(gains + tl.program_id(0)) * tl.rsqrt(tl.sum(total, 0))
    for start in range(0, columns, block):
        at = row + start + tl.arange(0, block)
        tl.store(out + at, (tl.load(v + at).to(tl.float32) * scale).to(tl.float16))


@triton.jit
def weight_norm_row_kernel(v, gains, out, columns: tl.constexpr):
    """The same, the row kept in registers."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(v + at).to(tl.float32)
    scale = tl.load(gains + tl.program_id(0)) * tl.rsqrt(tl.sum(value * value, 0))
    tl.store(out + at, (value * scale).to(tl.float16))


def weight_norm(rows: int = 8192, columns: int = 4096) -> tuple[dict[str, Run], Check]:
    v, gains = noise(rows, columns, dtype=torch.half), noise(rows) + 2.0
    out = torch.empty_like(v)
    return {
        "flawed": lambda: weight_norm_kernel[(rows, columns // 512)](
            v, gains, out, columns, 512, num_warps=4
        ),
        "walk": lambda: weight_norm_walk_kernel[(rows,)](v, gains, out, columns, 1024, num_warps=4),
        "row": lambda: weight_norm_row_kernel[(rows,)](v, gains, out, columns, num_warps=8),
    }, lambda: out


@triton.jit
def balanced_kernel(x, out, steps):
    """Four residual streams' mixing matrix of a token: rows and columns made to sum to one, in turns."""
    at = tl.program_id(0) * 16 + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    value = tl.exp(tl.load(x + at))
    for _ in range(steps):
        value = value / tl.sum(value, 1)[:, None]
        value = value / tl.sum(value, 0)[None, :]
    tl.store(out + at, value)


@triton.jit
def balanced_tile_kernel(x, out, steps, tokens: tl.constexpr):
    """The same of many tokens a program."""
    token = tl.program_id(0) * tokens + tl.arange(0, tokens)
    at = token[:, None, None] * 16 + tl.arange(0, 4)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :]
    value = tl.exp(tl.load(x + at))
    for _ in range(steps):
        value = value / tl.sum(value, 2, keep_dims=True)
        value = value / tl.sum(value, 1, keep_dims=True)
    tl.store(out + at, value)


@triton.jit
def shares(a, b, c, d):
    """Four values as shares of their sum."""
    total = a + b + c + d
    return a / total, b / total, c / total, d / total


@triton.jit
def balanced_lanes_kernel(x, out, steps, tokens: tl.constexpr):
    """The same, a token a lane."""
    at = (tl.program_id(0) * tokens + tl.arange(0, tokens)) * 16
    x += at
    out += at
    a0, a1 = tl.exp(tl.load(x)), tl.exp(tl.load(x + 1))
    a2, a3 = tl.exp(tl.load(x + 2)), tl.exp(tl.load(x + 3))
    b0, b1 = tl.exp(tl.load(x + 4)), tl.exp(tl.load(x + 5))
    b2, b3 = tl.exp(tl.load(x + 6)), tl.exp(tl.load(x + 7))
    c0, c1 = tl.exp(tl.load(x + 8)), tl.exp(tl.load(x + 9))
    c2, c3 = tl.exp(tl.load(x + 10)), tl.exp(tl.load(x + 11))
    d0, d1 = tl.exp(tl.load(x + 12)), tl.exp(tl.load(x + 13))
    d2, d3 = tl.exp(tl.load(x + 14)), tl.exp(tl.load(x + 15))
    for _ in range(steps):
        a0, a1, a2, a3 = shares(a0, a1, a2, a3)
        b0, b1, b2, b3 = shares(b0, b1, b2, b3)
        c0, c1, c2, c3 = shares(c0, c1, c2, c3)
        d0, d1, d2, d3 = shares(d0, d1, d2, d3)
        a0, b0, c0, d0 = shares(a0, b0, c0, d0)
        a1, b1, c1, d1 = shares(a1, b1, c1, d1)
        a2, b2, c2, d2 = shares(a2, b2, c2, d2)
        a3, b3, c3, d3 = shares(a3, b3, c3, d3)
    tl.store(out, a0)
    tl.store(out + 1, a1)
    tl.store(out + 2, a2)
    tl.store(out + 3, a3)
    tl.store(out + 4, b0)
    tl.store(out + 5, b1)
    tl.store(out + 6, b2)
    tl.store(out + 7, b3)
    tl.store(out + 8, c0)
    tl.store(out + 9, c1)
    tl.store(out + 10, c2)
    tl.store(out + 11, c3)
    tl.store(out + 12, d0)
    tl.store(out + 13, d1)
    tl.store(out + 14, d2)
    tl.store(out + 15, d3)


def balanced(count: int = 32768, steps: int = 20) -> tuple[dict[str, Run], Check]:
    x = noise(count, 16) * 3.0
    out = torch.empty_like(x)
    return {
        "flawed": lambda: balanced_kernel[(count,)](x, out, steps, num_warps=4),
        "tile": lambda: balanced_tile_kernel[(count // 32,)](x, out, steps, 32, num_warps=4),
        "lanes": lambda: balanced_lanes_kernel[(count // 64,)](x, out, steps, 64, num_warps=2),
    }, lambda: out


@triton.jit
def pair_bias_kernel(scores, bias, out, rows, scale, columns: tl.constexpr):
    """Softmax of a row of scaled scores and the bias that all samples share; samples are outermost."""
    column = tl.arange(0, columns)
    row = tl.program_id(0)
    at = (tl.program_id(1) * rows + row) * columns + column
    value = tl.load(scores + at).to(tl.float32) * scale + tl.load(bias + row * columns + column)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + at, (value / tl.sum(value, 0)).to(tl.float16))


@triton.jit
def pair_bias_order_kernel(scores, bias, out, rows, scale, columns: tl.constexpr):
    """The same, samples innermost."""
    column = tl.arange(0, columns)
    row = tl.program_id(1)
    at = (tl.program_id(0) * rows + row) * columns + column
    value = tl.load(scores + at).to(tl.float32) * scale + tl.load(bias + row * columns + column)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + at, (value / tl.sum(value, 0)).to(tl.float16))


@triton.jit
def pair_bias_together_kernel(scores, bias, out, rows, scale, samples: tl.constexpr, columns: tl.constexpr):
    """The same, a row of all samples a program, which keeps the bias."""
    column = tl.arange(0, columns)
    row = tl.program_id(0)
    own = tl.load(bias + row * columns + column)
    for sample in tl.static_range(samples):
        at = (sample * rows + row) * columns + column
        value = tl.load(scores + at).to(tl.float32) * scale + own
        value = tl.exp(value - tl.max(value, 0))
        tl.store(out + at, (value / tl.sum(value, 0)).to(tl.float16))


def pair_bias(samples: int = 4, rows: int = 16384, columns: int = 1024) -> tuple[dict[str, Run], Check]:
    scores = (noise(samples, rows, columns) * 20.0).half()
    bias = noise(rows, columns).flip(1).contiguous() * 3.0
    out = torch.empty_like(scores)
    return {
        "flawed": lambda: pair_bias_kernel[(rows, samples)](
            scores, bias, out, rows, 0.125, columns, num_warps=4
        ),
        "order": lambda: pair_bias_order_kernel[(samples, rows)](
            scores, bias, out, rows, 0.125, columns, num_warps=4
        ),
        "together": lambda: pair_bias_together_kernel[(rows,)](
            scores, bias, out, rows, 0.125, samples, columns, num_warps=4
        ),
    }, lambda: out


# --- routers and losses ---


@triton.jit
def router_loss_kernel(logits, out, step, pitch, experts, weight, block: tl.constexpr):
    """The square of the logarithm of a token's summed exponentials; lanes are tokens."""
    token = tl.program_id(0) * block + tl.arange(0, block)
    top = tl.full((block,), -1e30, tl.float32)
    total = tl.zeros((block,), tl.float32)
    for expert in range(experts):
        value = tl.load(logits + token * pitch + expert * step)
        higher = tl.maximum(top, value)
        total = total * tl.exp(top - higher) + tl.exp(value - higher)
        top = higher
    found = top + tl.log(total)
    tl.store(out + token, weight * found * found)


@triton.jit
def router_loss_tile_kernel(logits, out, weight, experts: tl.constexpr, block: tl.constexpr):
    """The same, lanes are experts."""
    token = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(logits + token[:, None] * experts + tl.arange(0, experts)[None, :])
    top = tl.max(value, 1)
    found = top + tl.log(tl.sum(tl.exp(value - top[:, None]), 1))
    tl.store(out + token, weight * found * found)


def router_loss(count: int = 262144, experts: int = 64) -> tuple[dict[str, Run], Check]:
    logits = noise(count, experts) * 6.0
    turned = logits.t().contiguous()
    out = torch.empty(count, device="cuda")
    return {
        "flawed": lambda: router_loss_kernel[(count // 128,)](
            logits, out, 1, experts, experts, 1e-3, 128, num_warps=4
        ),
        "tile": lambda: router_loss_tile_kernel[(count // 32,)](logits, out, 1e-3, experts, 32, num_warps=4),
        "turned": lambda: router_loss_kernel[(count // 128,)](
            turned, out, count, 1, experts, 1e-3, 128, num_warps=4
        ),
    }, lambda: out


@triton.jit
def labels_loss_kernel(logits, labels, out, margin, gamma_yes, gamma_no, columns: tl.constexpr):
    """A row's loss of many labels, most of which are absent and count less the surer that is."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(logits + at).to(tl.float32)
    label = tl.load(labels + at).to(tl.float32)
    yes = tl.sigmoid(value)
    no = tl.minimum(1.0 - yes + margin, 1.0)
    loss = label * tl.log(tl.maximum(yes, 1e-8)) + (1.0 - label) * tl.log(tl.maximum(no, 1e-8))
    sure = yes * label + no * (1.0 - label)
    gamma = gamma_yes * label + gamma_no * (1.0 - label)
    focus = tl.exp(gamma * tl.log(tl.maximum(1.0 - sure, 1e-8)))
    tl.store(out + tl.program_id(0), -tl.sum(loss * focus, 0))


@triton.jit
def labels_loss_products_kernel(logits, labels, out, margin, columns: tl.constexpr):
    """The same for powers of one and four, which are products."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(logits + at).to(tl.float32)
    label = tl.load(labels + at).to(tl.float32)
    yes = tl.sigmoid(value)
    no = tl.minimum(1.0 - yes + margin, 1.0)
    loss = label * tl.log(tl.maximum(yes, 1e-8)) + (1.0 - label) * tl.log(tl.maximum(no, 1e-8))
    rest_yes, rest_no = 1.0 - yes, 1.0 - no
    square = rest_no * rest_no
    focus = label * rest_yes + (1.0 - label) * square * square
    tl.store(out + tl.program_id(0), -tl.sum(loss * focus, 0))


@triton.jit
def labels_loss_chosen_kernel(logits, labels, out, margin, columns: tl.constexpr):
    """The same, the probability of what is so chosen first: one logarithm."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(logits + at).to(tl.float32)
    present = tl.load(labels + at) != 0
    yes = tl.sigmoid(value)
    sure = tl.where(present, yes, tl.minimum(1.0 - yes + margin, 1.0))
    rest = 1.0 - sure
    square = rest * rest
    focus = tl.where(present, rest, square * square)
    tl.store(out + tl.program_id(0), -tl.sum(tl.log(tl.maximum(sure, 1e-8)) * focus, 0))


def labels_loss(rows: int = 32768, columns: int = 1024) -> tuple[dict[str, Run], Check]:
    logits = (noise(rows, columns) * 4.0).half()
    labels = (noise(columns, rows).reshape(rows, columns) > 0.9).to(torch.uint8)
    out = torch.empty(rows, device="cuda")
    grid = (rows,)
    return {
        "flawed": lambda: labels_loss_kernel[grid](logits, labels, out, 0.05, 1.0, 4.0, columns, num_warps=4),
        "products": lambda: labels_loss_products_kernel[grid](
            logits, labels, out, 0.05, columns, num_warps=4
        ),
        "chosen": lambda: labels_loss_chosen_kernel[grid](logits, labels, out, 0.05, columns, num_warps=4),
    }, lambda: out


# --- convolutions, scans and ranges ---


@triton.jit
def filter_gradient_kernel(x, slopes, out, steps, channels, part, rows: tl.constexpr, width: tl.constexpr):
    """Gradient of a causal filter of four taps a channel; ``part`` steps of each sequence a program."""
    channel = tl.program_id(0) * width + tl.arange(0, width)[None, :]
    sequence = tl.program_id(2) * steps
    first = tl.program_id(1) * part
    tap0 = tl.zeros((rows, width), tl.float32)
    tap1 = tl.zeros((rows, width), tl.float32)
    tap2 = tl.zeros((rows, width), tl.float32)
    tap3 = tl.zeros((rows, width), tl.float32)
    for start in range(first, first + part, rows):
        step = start + tl.arange(0, rows)[:, None]
        at = (sequence + step) * channels + channel
        slope = tl.load(slopes + at).to(tl.float32)
        tap0 += slope * tl.load(x + at - 3 * channels, mask=step >= 3, other=0.0).to(tl.float32)
        tap1 += slope * tl.load(x + at - 2 * channels, mask=step >= 2, other=0.0).to(tl.float32)
        tap2 += slope * tl.load(x + at - channels, mask=step >= 1, other=0.0).to(tl.float32)
        tap3 += slope * tl.load(x + at).to(tl.float32)
    own = out + tl.program_id(0) * width + tl.arange(0, width)
    tl.atomic_add(own, tl.sum(tap0, 0))
    tl.atomic_add(own + channels, tl.sum(tap1, 0))
    tl.atomic_add(own + 2 * channels, tl.sum(tap2, 0))
    tl.atomic_add(own + 3 * channels, tl.sum(tap3, 0))


def filter_gradient(
    sequences: int = 2, steps: int = 4096, channels: int = 2048
) -> tuple[dict[str, Run], Check]:
    x = noise(sequences, steps, channels, dtype=torch.half)
    slopes = x.flip(2).contiguous()
    out = torch.zeros(4, channels, device="cuda")

    def side(part: int, rows: int, width: int) -> Run:
        return lambda: filter_gradient_kernel[(channels // width, steps // part, sequences)](
            x, slopes, out, steps, channels, part, rows, width, num_warps=4
        )

    return {
        "flawed": side(steps, 16, 128),
        "parts": side(256, 16, 128),
        "channels": side(steps, 128, 16),
    }, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def levelled(state, energy, smoothing, offset):
    """A running mean brought up to date, and the energy divided by a power of it, as a root."""
    state += smoothing * (energy - state)
    gain = tl.exp(-0.98 * tl.log(1e-6 + state))
    return state, tl.sqrt(energy * gain + offset) - tl.sqrt(offset)


@triton.jit
def levels_kernel(x, out, steps, smoothing, offset, bands: tl.constexpr):
    """Energies of a sound's bands made as loud as another, step by step."""
    at = tl.program_id(0) * steps * bands + tl.arange(0, bands)
    state = tl.load(x + at)
    for _ in range(steps):
        state, level = levelled(state, tl.load(x + at), smoothing, offset)
        tl.store(out + at, level)
        at += bands


@triton.jit
def levels_ahead_kernel(x, out, steps, smoothing, offset, bands: tl.constexpr):
    """The same, eight steps loaded before the first of them is worked out."""
    at = tl.program_id(0) * steps * bands + tl.arange(0, bands)
    state = tl.load(x + at)
    for _ in range(0, steps, 8):
        e0, e1 = tl.load(x + at), tl.load(x + at + bands)
        e2, e3 = tl.load(x + at + 2 * bands), tl.load(x + at + 3 * bands)
        e4, e5 = tl.load(x + at + 4 * bands), tl.load(x + at + 5 * bands)
        e6, e7 = tl.load(x + at + 6 * bands), tl.load(x + at + 7 * bands)
        state, level = levelled(state, e0, smoothing, offset)
        tl.store(out + at, level)
        state, level = levelled(state, e1, smoothing, offset)
        tl.store(out + at + bands, level)
        state, level = levelled(state, e2, smoothing, offset)
        tl.store(out + at + 2 * bands, level)
        state, level = levelled(state, e3, smoothing, offset)
        tl.store(out + at + 3 * bands, level)
        state, level = levelled(state, e4, smoothing, offset)
        tl.store(out + at + 4 * bands, level)
        state, level = levelled(state, e5, smoothing, offset)
        tl.store(out + at + 5 * bands, level)
        state, level = levelled(state, e6, smoothing, offset)
        tl.store(out + at + 6 * bands, level)
        state, level = levelled(state, e7, smoothing, offset)
        tl.store(out + at + 7 * bands, level)
        at += 8 * bands


@triton.jit
def after(own_share, own, next_share, following):
    """Two steps of a running mean as one."""
    return own_share * next_share, next_share * own + following


@triton.jit
def levels_scan_kernel(x, out, steps, smoothing, offset, rows: tl.constexpr, bands: tl.constexpr):
    """The same, ``rows`` steps at a time by a scan."""
    row = tl.arange(0, rows)[:, None]
    at = tl.program_id(0) * steps * bands + row * bands + tl.arange(0, bands)[None, :]
    state = tl.load(x + tl.program_id(0) * steps * bands + tl.arange(0, bands))
    share = tl.full((rows, bands), 1.0, tl.float32) - smoothing
    for _ in range(0, steps, rows):
        energy = tl.load(x + at)
        kept, found = tl.associative_scan((share, smoothing * energy), 0, after)
        mean = found + kept * state[None, :]
        gain = tl.exp(-0.98 * tl.log(1e-6 + mean))
        tl.store(out + at, tl.sqrt(energy * gain + offset) - tl.sqrt(offset))
        state = tl.sum(tl.where(row == rows - 1, mean, 0.0), 0)
        at += rows * bands


def levels(sounds: int = 264, steps: int = 512, bands: int = 128) -> tuple[dict[str, Run], Check]:
    x = noise(sounds, steps, bands).abs() + 0.01
    out = torch.empty_like(x)
    grid = (sounds,)
    return {
        "flawed": lambda: levels_kernel[grid](x, out, steps, 0.025, 2.0, bands, num_warps=4),
        "ahead": lambda: levels_ahead_kernel[grid](x, out, steps, 0.025, 2.0, bands, num_warps=4),
        "scan": lambda: levels_scan_kernel[grid](x, out, steps, 0.025, 2.0, 32, bands, num_warps=8),
    }, lambda: out


@triton.jit
def channel_maxima_kernel(x, out, columns: tl.constexpr):
    """Largest magnitudes of channels, a token a program."""
    column = tl.arange(0, columns)
    value = tl.abs(tl.load(x + tl.program_id(0) * columns + column).to(tl.float32))
    tl.atomic_max(out + column, value)


@triton.jit
def channel_maxima_tile_kernel(x, out, columns, rows: tl.constexpr, width: tl.constexpr):
    """The same, a tile of tokens and channels a program."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
    column = tl.program_id(1) * width + tl.arange(0, width)
    value = tl.abs(tl.load(x + row * columns + column[None, :]).to(tl.float32))
    tl.atomic_max(out + column, tl.max(value, 0))


@triton.jit
def channel_maxima_walk_kernel(x, out, columns, part, rows: tl.constexpr, width: tl.constexpr):
    """The same, a program walks ``part`` tokens and keeps the largest."""
    column = tl.program_id(1) * width + tl.arange(0, width)
    largest = tl.zeros((rows, width), tl.float32)
    first = tl.program_id(0) * part
    for start in range(first, first + part, rows):
        at = (start + tl.arange(0, rows)[:, None]) * columns + column[None, :]
        largest = tl.maximum(largest, tl.abs(tl.load(x + at).to(tl.float32)))
    tl.atomic_max(out + column, tl.max(largest, 0))


def channel_maxima(tokens: int = 8192, columns: int = 4096) -> tuple[dict[str, Run], Check]:
    x = noise(tokens, columns, dtype=torch.half)
    out = torch.zeros(columns, device="cuda")
    return {
        "flawed": lambda: channel_maxima_kernel[(tokens,)](x, out, columns, num_warps=8),
        "tile": lambda: channel_maxima_tile_kernel[(tokens // 64, columns // 128)](
            x, out, columns, 64, 128, num_warps=4
        ),
        "walk": lambda: channel_maxima_walk_kernel[(tokens // 512, columns // 64)](
            x, out, columns, 512, 32, 64, num_warps=4
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- without a flaw ---


@triton.jit
def two_momenta_kernel(
    weights,
    slopes,
    fast,
    slow,
    spread,
    new_weights,
    new_fast,
    new_slow,
    new_spread,
    rate,
    block: tl.constexpr,
):
    """A step of Adam with a fast and a slow momentum."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    weight, slope = tl.load(weights + at).to(tl.float32), tl.load(slopes + at).to(tl.float32)
    first = 0.9 * tl.load(fast + at).to(tl.float32) + 0.1 * slope
    second = 0.999 * tl.load(slow + at).to(tl.float32) + 0.001 * slope
    square = 0.99 * tl.load(spread + at).to(tl.float32) + 0.01 * slope * slope
    weight -= rate * ((first + 5.0 * second) * tl.rsqrt(square + 1e-8) + 0.01 * weight)
    tl.store(new_weights + at, weight.to(tl.float16))
    tl.store(new_fast + at, first.to(tl.float16))
    tl.store(new_slow + at, second.to(tl.float16))
    tl.store(new_spread + at, square.to(tl.float16))


def two_momenta(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    weights = noise(count, dtype=torch.half)
    slopes = weights.flip(0).contiguous()
    fast, slow, spread = slopes * 0.5, slopes * 0.25, slopes.abs()
    new = torch.empty(4, count, device="cuda", dtype=torch.half)
    return {
        "sound": lambda: two_momenta_kernel[(count // 1024,)](
            weights, slopes, fast, slow, spread, new[0], new[1], new[2], new[3], 1e-3, 1024, num_warps=4
        ),
    }, lambda: new


@triton.jit
def likely_kernel(logits, out, scale, below, columns: tl.constexpr):
    """A row's scaled logits, those far below the largest left out."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    value = tl.load(logits + at).to(tl.float32) * scale
    tl.store(out + at, tl.where(value >= tl.max(value, 0) - below, value, -1e4).to(tl.float16))


def likely(rows: int = 16384, columns: int = 4096) -> tuple[dict[str, Run], Check]:
    logits = (noise(rows, columns) * 8.0).half()
    out = torch.empty_like(logits)
    return {
        "sound": lambda: likely_kernel[(rows,)](logits, out, 1.25, 3.0, columns, num_warps=8),
    }, lambda: out


STUDIES = (
    Study(
        "triton_weight_norm_again_for_each_piece",
        "8192 rows of 4096 half weights made as long as their gains, in Triton",
        "each of a row's eight programs reads the whole row for its length",
        (
            ("walk", "a row a program, walked twice", ("redundant_loads",)),
            ("row", "a row a program, in registers", ("redundant_loads",)),
        ),
        weight_norm,
        domain="training",
    ),
    Study(
        "triton_stream_mixing_token_a_program",
        "mixing matrices of four residual streams for 32768 tokens, rows and columns made to sum to one, in Triton",
        "a program of four warps for the sixteen entries of a token",
        (
            ("tile", "32 tokens a program", ("idle_threads",)),
            ("lanes", "a token a lane", ("idle_threads",)),
        ),
        balanced,
    ),
    Study(
        "triton_pair_bias_softmax_samples_outermost",
        "softmax of 16 heads' scores with a bias for each pair, 4 samples of 1024 places, in Triton",
        "the bias is read for one sample after the other, and is larger than the L2",
        (
            ("order", "programs of the same row one after another", ("cache_locality",)),
            ("together", "a row of all samples a program", ("cache_locality", "redundant_loads")),
        ),
        pair_bias,
        tolerance=2e-3,
    ),
    Study(
        "triton_router_z_loss_expert_by_expert",
        "squares of the logarithms of 262144 tokens' summed exponentials over 64 experts, in Triton",
        "lanes are tokens, whose logits lie 256 bytes apart",
        (
            ("tile", "lanes are experts, 32 tokens a program", ("uncoalesced_access",)),
            ("turned", "logits stored expert by expert", ("uncoalesced_access",)),
        ),
        router_loss,
    ),
    Study(
        "triton_many_labels_loss_two_logarithms_and_a_power",
        "an asymmetric loss of 1024 labels for 32768 pictures, half logits, in Triton",
        "logarithms of both probabilities for each label, and powers by exponentials",
        (
            ("products", "powers of one and four as products", ("expensive_math",)),
            ("chosen", "the probability chosen first, one logarithm, and products", ("expensive_math",)),
        ),
        labels_loss,
        domain="training",
    ),
    Study(
        "triton_causal_filter_gradient_32_programs",
        "gradient of causal filters of four taps for 2048 channels over 8192 steps, half, in Triton",
        "a program for each 128 channels of a sequence: 32 of them",
        (
            ("parts", "a program for each 256 steps of them, added by atomics", ("small_grid",)),
            ("channels", "a program for each 16 channels", ("small_grid",)),
        ),
        filter_gradient,
        domain="training",
    ),
    Study(
        "triton_band_levels_wait_for_each_step",
        "128 bands of 264 sounds of 512 steps divided by a power of their running means, in Triton",
        "a step is loaded when the one before it is done",
        (
            ("ahead", "eight steps loaded at once", ("memory_latency",)),
            ("scan", "32 steps at a time by an associative scan", ("memory_latency",)),
        ),
        levels,
        domain="sound",
    ),
    Study(
        "triton_channel_maxima_atomic_each_token",
        "largest magnitudes of 4096 channels over 8192 tokens, half values, in Triton",
        "an atomic for each value",
        (
            ("tile", "a tile of 64 tokens by 128 channels a program", ("global_atomics",)),
            ("walk", "a program keeps the largest of 512 tokens in registers", ("global_atomics",)),
        ),
        channel_maxima,
        tolerance=0.0,
        domain="quantisation",
    ),
    Study(
        "sound_triton_two_momenta_step",
        "a step of Adam with two momenta for 16777216 half weights, in Triton",
        "",
        (),
        two_momenta,
        domain="training",
    ),
    Study(
        "sound_triton_unlikely_tokens_left_out",
        "16384 rows of 4096 half logits scaled, and those far below the largest left out, in Triton",
        "",
        (),
        likely,
        domain="sampling",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
