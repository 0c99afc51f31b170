"""Studies in Triton of training, run by what tests/cuda/variants/frameworks.py provides.

Usage: a_models_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- norms and losses ---


@triton.jit
def head_norm_kernel(x, weight, out, width: tl.constexpr):
    """Root mean square norm of one head's features."""
    column = tl.arange(0, width)
    at = tl.program_id(0) * width + column
    value = tl.load(x + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + 1e-6)
    tl.store(out + at, (value * scale * tl.load(weight + column).to(tl.float32)).to(tl.float16))


@triton.jit
def head_norm_tile_kernel(x, weight, out, width: tl.constexpr, tall: tl.constexpr):
    """The same for ``tall`` heads."""
    column = tl.arange(0, width)
    at = (tl.program_id(0) * tall + tl.arange(0, tall))[:, None] * width + column[None, :]
    value = tl.load(x + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 1) / width + 1e-6)
    factor = tl.load(weight + column).to(tl.float32)
    tl.store(out + at, (value * scale[:, None] * factor[None, :]).to(tl.float16))


def head_norms(tokens: int = 16384, heads: int = 32) -> tuple[dict[str, Run], Check]:
    width, count = 64, tokens * heads
    x, weight = noise(count, width, dtype=torch.half), noise(width, dtype=torch.half)
    out = torch.empty_like(x)

    def tile(tall: int, warps: int) -> Run:
        return lambda: head_norm_tile_kernel[(count // tall,)](x, weight, out, width, tall, num_warps=warps)

    return {
        "flawed": lambda: head_norm_kernel[(count,)](x, weight, out, width, num_warps=4),
        "tile": tile(64, 4),
        "warp": tile(8, 1),
    }, lambda: out


@triton.jit
def router_load_kernel(logits, load, experts: tl.constexpr, tall: tl.constexpr, pieces: tl.constexpr):
    """How much of all tokens' probability goes to each expert."""
    column = tl.arange(0, experts)
    total = tl.zeros((experts,), tl.float32)
    for piece in range(pieces):
        row = (tl.program_id(0) * pieces + piece) * tall + tl.arange(0, tall)
        value = tl.load(logits + row[:, None] * experts + column[None, :]).to(tl.float32)
        value = tl.exp(value - tl.max(value, 1)[:, None])
        total += tl.sum(value / tl.sum(value, 1)[:, None], 0)
    tl.atomic_add(load + column, total)


def router_load(tokens: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    experts = 64
    logits = noise(tokens, experts, dtype=torch.half) * 3
    load = torch.zeros(experts, device="cuda")

    def tiles(tall: int, pieces: int, warps: int) -> Run:
        return lambda: router_load_kernel[(tokens // (tall * pieces),)](
            logits, load, experts, tall, pieces, num_warps=warps
        )

    def check() -> torch.Tensor:
        found = load.clone()
        load.zero_()
        return found

    return {"flawed": tiles(16, 1, 4), "walk": tiles(32, 16, 4), "tall": tiles(256, 1, 8)}, check


@triton.jit
def distil_three_kernel(student, teacher, out, width, piece: tl.constexpr):
    """Divergence of a student's words from a teacher's: largest values, sums, and then the divergence."""
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, piece)
    top_s = tl.full((piece,), -float("inf"), tl.float32)
    top_t = tl.full((piece,), -float("inf"), tl.float32)
    for start in range(0, width, piece):
        at = row + start + column
        top_s = tl.maximum(top_s, tl.load(student + at).to(tl.float32))
        top_t = tl.maximum(top_t, tl.load(teacher + at).to(tl.float32))
    high_s, high_t = tl.max(top_s, 0), tl.max(top_t, 0)
    sum_s = tl.zeros((piece,), tl.float32)
    sum_t = tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        at = row + start + column
        sum_s += tl.exp(tl.load(student + at).to(tl.float32) - high_s)
        sum_t += tl.exp(tl.load(teacher + at).to(tl.float32) - high_t)
    log_s = high_s + tl.log(tl.sum(sum_s, 0))
    log_t = high_t + tl.log(tl.sum(sum_t, 0))
    total = tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        at = row + start + column
        own = tl.load(student + at).to(tl.float32) - log_s
        wanted = tl.load(teacher + at).to(tl.float32) - log_t
        total += tl.exp(wanted) * (wanted - own)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def distil_two_kernel(student, teacher, out, width, piece: tl.constexpr):
    """The same, largest values and sums in one walk."""
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, piece)
    high_s, high_t = -float("inf"), -float("inf")
    sum_s, sum_t = 0.0, 0.0
    for start in range(0, width, piece):
        s = tl.load(student + row + start + column).to(tl.float32)
        t = tl.load(teacher + row + start + column).to(tl.float32)
        next_s, next_t = tl.maximum(high_s, tl.max(s, 0)), tl.maximum(high_t, tl.max(t, 0))
        sum_s = sum_s * tl.exp(high_s - next_s) + tl.sum(tl.exp(s - next_s), 0)
        sum_t = sum_t * tl.exp(high_t - next_t) + tl.sum(tl.exp(t - next_t), 0)
        high_s, high_t = next_s, next_t
    log_s, log_t = high_s + tl.log(sum_s), high_t + tl.log(sum_t)
    total = tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        own = tl.load(student + row + start + column).to(tl.float32) - log_s
        wanted = tl.load(teacher + row + start + column).to(tl.float32) - log_t
        total += tl.exp(wanted) * (wanted - own)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def distil_one_kernel(student, teacher, out, width, piece: tl.constexpr):
    """The same in one walk, a lane's sums following its own largest value so far."""
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, piece)
    high_s = tl.full((piece,), -1e30, tl.float32)
    high_t = tl.full((piece,), -1e30, tl.float32)
    sum_s = tl.zeros((piece,), tl.float32)
    sum_t = tl.zeros((piece,), tl.float32)
    apart = tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        s = tl.load(student + row + start + column).to(tl.float32)
        t = tl.load(teacher + row + start + column).to(tl.float32)
        next_s, next_t = tl.maximum(high_s, s), tl.maximum(high_t, t)
        shrink = tl.exp(high_t - next_t)
        weight = tl.exp(t - next_t)
        sum_s = sum_s * tl.exp(high_s - next_s) + tl.exp(s - next_s)
        sum_t = sum_t * shrink + weight
        apart = apart * shrink + weight * (t - s)
        high_s, high_t = next_s, next_t
    top_s, top_t = tl.max(high_s, 0), tl.max(high_t, 0)
    scale_t = tl.exp(high_t - top_t)
    whole_s = tl.sum(sum_s * tl.exp(high_s - top_s), 0)
    whole_t = tl.sum(sum_t * scale_t, 0)
    mean = tl.sum(apart * scale_t, 0) / whole_t
    tl.store(out + tl.program_id(0), mean - (top_t + tl.log(whole_t)) + top_s + tl.log(whole_s))


def distillation(rows: int = 2048, width: int = 32768) -> tuple[dict[str, Run], Check]:
    student, teacher = noise(rows, width, dtype=torch.half) * 4, noise(rows, width, dtype=torch.half)
    teacher = teacher.flip(0).contiguous() * 5
    out = torch.empty(rows, device="cuda")
    return {
        "flawed": lambda: distil_three_kernel[(rows,)](student, teacher, out, width, 1024, num_warps=4),
        "two_walks": lambda: distil_two_kernel[(rows,)](student, teacher, out, width, 4096, num_warps=8),
        "one_walk": lambda: distil_one_kernel[(rows,)](student, teacher, out, width, 2048, num_warps=8),
    }, lambda: out


@triton.jit
def focal_double_kernel(logits, wanted, settings, out, block: tl.constexpr):
    """A focal loss whose temperature, exponent and balance lie in a tensor of doubles."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    temperature, gamma, alpha = tl.load(settings), tl.load(settings + 1), tl.load(settings + 2)
    logit = tl.load(logits + at) / temperature
    target = tl.load(wanted + at)
    chance = 1.0 / (1.0 + tl.exp(-logit))
    right = chance * target + (1.0 - chance) * (1.0 - target)
    balance = alpha * target + (1.0 - alpha) * (1.0 - target)
    loss = -balance * tl.exp(gamma * tl.log(1.0 - right)) * tl.log(right)
    tl.store(out + at, loss.to(tl.float32))


@triton.jit
def focal_kernel(logits, wanted, settings, out, block: tl.constexpr):
    """The same, the three settings rounded to floats first."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    temperature = tl.load(settings).to(tl.float32)
    gamma, alpha = tl.load(settings + 1).to(tl.float32), tl.load(settings + 2).to(tl.float32)
    logit = tl.load(logits + at) / temperature
    target = tl.load(wanted + at)
    chance = 1.0 / (1.0 + tl.exp(-logit))
    right = chance * target + (1.0 - chance) * (1.0 - target)
    balance = alpha * target + (1.0 - alpha) * (1.0 - target)
    tl.store(out + at, -balance * tl.exp(gamma * tl.log(1.0 - right)) * tl.log(right))


@triton.jit
def focal_constant_kernel(
    logits,
    wanted,
    out,
    temperature: tl.constexpr,
    gamma: tl.constexpr,
    alpha: tl.constexpr,
    block: tl.constexpr,
):
    """The same with constant settings; logarithms of the chance by its exponential alone."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    logit = tl.load(logits + at) * (1.0 / temperature)
    target = tl.load(wanted + at)
    signed = tl.where(target > 0.5, logit, -logit)
    rest = tl.exp(-signed)
    log_right = -tl.log(1.0 + rest)
    balance = tl.where(target > 0.5, alpha, 1.0 - alpha)
    tl.store(out + at, -balance * tl.exp(gamma * (log_right - signed)) * log_right)


def focal(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    logits = noise(count) * 4
    wanted = (noise(count).flip(0) > 0.5).to(torch.float32)
    settings = torch.tensor([1.5, 2.0, 0.25], device="cuda", dtype=torch.float64)
    out = torch.empty(count, device="cuda")
    grid = (count // 1024,)
    return {
        "flawed": lambda: focal_double_kernel[grid](logits, wanted, settings, out, 1024, num_warps=4),
        "rounded": lambda: focal_kernel[grid](logits, wanted, settings, out, 1024, num_warps=4),
        "constants": lambda: focal_constant_kernel[grid](
            logits, wanted, out, 1.5, 2.0, 0.25, 1024, num_warps=4
        ),
    }, lambda: out


@triton.jit
def tag_chain_kernel(emissions, moves, out, steps, tags: tl.constexpr):
    """Logarithm of the sum over all chains of tags of a sentence, step by step."""
    before, after = tl.arange(0, tags), tl.arange(0, tags)
    move = tl.load(moves + before[:, None] * tags + after[None, :])
    base = emissions + tl.program_id(0) * steps * tags
    alpha = tl.load(base + before).to(tl.float32)
    for step in range(1, steps):
        score = alpha[:, None] + move
        top = tl.max(score, 0)
        new = top + tl.log(tl.sum(tl.exp(score - top[None, :]), 0))
        alpha = new + tl.load(base + step * tags + after).to(tl.float32)
    top = tl.max(alpha, 0)
    tl.store(out + tl.program_id(0), top + tl.log(tl.sum(tl.exp(alpha - top), 0)))


@triton.jit
def tag_chain_weights_kernel(emissions, moves, out, steps, tags: tl.constexpr):
    """The same, exponentials of the moves taken once, those of 64 tags at each step."""
    before, after = tl.arange(0, tags), tl.arange(0, tags)
    weight = tl.exp(tl.load(moves + before[:, None] * tags + after[None, :]))
    base = emissions + tl.program_id(0) * steps * tags
    alpha = tl.load(base + before).to(tl.float32)
    for step in range(1, steps):
        top = tl.max(alpha, 0)
        new = top + tl.log(tl.sum(tl.exp(alpha - top)[:, None] * weight, 0))
        alpha = new + tl.load(base + step * tags + after).to(tl.float32)
    top = tl.max(alpha, 0)
    tl.store(out + tl.program_id(0), top + tl.log(tl.sum(tl.exp(alpha - top), 0)))


@triton.jit
def tag_chain_product_kernel(emissions, moves, out, steps, tags: tl.constexpr, tall: tl.constexpr):
    """The same for ``tall`` sentences, a product with the moves' exponentials at each step."""
    before, after = tl.arange(0, tags), tl.arange(0, tags)
    weight = tl.exp(tl.load(moves + before[:, None] * tags + after[None, :]))
    sentence = tl.program_id(0) * tall + tl.arange(0, tall)
    base = emissions + sentence[:, None] * steps * tags + after[None, :]
    alpha = tl.load(base).to(tl.float32)
    for step in range(1, steps):
        top = tl.max(alpha, 1)
        summed = tl.dot(tl.exp(alpha - top[:, None]), weight)
        alpha = top[:, None] + tl.log(summed) + tl.load(base + step * tags).to(tl.float32)
    top = tl.max(alpha, 1)
    tl.store(out + sentence, top + tl.log(tl.sum(tl.exp(alpha - top[:, None]), 1)))


def tag_chains(sentences: int = 2048, steps: int = 128) -> tuple[dict[str, Run], Check]:
    tags = 64
    emissions, moves = noise(sentences, steps, tags, dtype=torch.half) * 2, noise(tags, tags)
    out = torch.empty(sentences, device="cuda")
    return {
        "flawed": lambda: tag_chain_kernel[(sentences,)](emissions, moves, out, steps, tags, num_warps=4),
        "weights": lambda: tag_chain_weights_kernel[(sentences,)](
            emissions, moves, out, steps, tags, num_warps=4
        ),
        "product": lambda: tag_chain_product_kernel[(sentences // 16,)](
            emissions, moves, out, steps, tags, 16, num_warps=4
        ),
    }, lambda: out


# --- gradients and optimisers ---


@triton.jit
def clip_kernel(gradient, partial, out, limit, parts: tl.constexpr, block: tl.constexpr):
    """Gradients scaled to a largest norm, whose square is the sum of all partial ones."""
    norm = tl.sqrt(tl.sum(tl.load(partial + tl.arange(0, parts)), 0))
    scale = tl.minimum(limit / (norm + 1e-6), 1.0)
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, (tl.load(gradient + at).to(tl.float32) * scale).to(tl.float16))


@triton.jit
def clip_persistent_kernel(gradient, partial, out, limit, blocks, parts: tl.constexpr, block: tl.constexpr):
    """The same, a program scales many blocks once it knows the norm."""
    norm = tl.sqrt(tl.sum(tl.load(partial + tl.arange(0, parts)), 0))
    scale = tl.minimum(limit / (norm + 1e-6), 1.0)
    for piece in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = piece * block + tl.arange(0, block)
        tl.store(out + at, (tl.load(gradient + at).to(tl.float32) * scale).to(tl.float16))


@triton.jit
def clip_one_kernel(gradient, square, out, limit, block: tl.constexpr):
    """The same where the partial sums were added up by the kernel that made them."""
    scale = tl.minimum(limit / (tl.sqrt(tl.load(square)) + 1e-6), 1.0)
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, (tl.load(gradient + at).to(tl.float32) * scale).to(tl.float16))


def clipped(count: int = 1 << 26, parts: int = 8192) -> tuple[dict[str, Run], Check]:
    gradient = noise(count, dtype=torch.half)
    partial = gradient.view(parts, -1).float().square().sum(1)
    square = partial.sum().reshape(1)
    out = torch.empty_like(gradient)
    limit = 0.5 * float(square.sqrt())
    return {
        "flawed": lambda: clip_kernel[(count // 2048,)](
            gradient, partial, out, limit, parts, 2048, num_warps=4
        ),
        "persistent": lambda: clip_persistent_kernel[(132 * 4,)](
            gradient, partial, out, limit, count // 4096, parts, 4096, num_warps=8
        ),
        "one_sum": lambda: clip_one_kernel[(count // 2048,)](gradient, square, out, limit, 2048, num_warps=4),
    }, lambda: out


@triton.jit
def norm_gradient_kernel(x, upstream, weight, skip, out, width: tl.constexpr):
    """Gradient of a root mean square norm with what comes past it added; a row in registers."""
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, width)
    value = tl.load(x + row + column).to(tl.float32)
    passed = tl.load(skip + row + column).to(tl.float32)
    scaled = tl.load(upstream + row + column).to(tl.float32) * tl.load(weight + column).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + 1e-6)
    value = value * scale
    mean = tl.sum(scaled * value, 0) / width
    tl.store(out + row + column, (passed + (scaled - value * mean) * scale).to(tl.float16))


@triton.jit
def norm_gradient_pieces_kernel(x, upstream, weight, skip, out, width, piece: tl.constexpr):
    """The same in two walks of pieces."""
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, piece)
    squares = tl.zeros((piece,), tl.float32)
    products = tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        at = row + start + column
        value = tl.load(x + at).to(tl.float32)
        scaled = tl.load(upstream + at).to(tl.float32) * tl.load(weight + start + column).to(tl.float32)
        squares += value * value
        products += value * scaled
    scale = tl.rsqrt(tl.sum(squares, 0) / width + 1e-6)
    mean = tl.sum(products, 0) * scale / width
    for start in range(0, width, piece):
        at = row + start + column
        value = tl.load(x + at).to(tl.float32) * scale
        scaled = tl.load(upstream + at).to(tl.float32) * tl.load(weight + start + column).to(tl.float32)
        passed = tl.load(skip + at).to(tl.float32)
        tl.store(out + at, (passed + (scaled - value * mean) * scale).to(tl.float16))


def norm_gradient(rows: int = 4096, width: int = 16384) -> tuple[dict[str, Run], Check]:
    x, weight = noise(rows, width, dtype=torch.half), noise(width, dtype=torch.half)
    upstream, skip = x.flip(0).contiguous(), x.flip(1).contiguous()
    out = torch.empty_like(x)

    def whole(warps: int) -> Run:
        return lambda: norm_gradient_kernel[(rows,)](x, upstream, weight, skip, out, width, num_warps=warps)

    return {
        "flawed": whole(4),
        "sixteen_warps": whole(16),
        "pieces": lambda: norm_gradient_pieces_kernel[(rows,)](
            x, upstream, weight, skip, out, width, 2048, num_warps=8
        ),
    }, lambda: out


@triton.jit
def adamax_step(
    weights, gradient, momentum, largest, new_weights, new_momentum, new_largest, at, inside, rate
):
    """One block of Adamax; ``inside`` None: all of it."""
    g = tl.load(gradient + at, mask=inside).to(tl.float32)
    m = tl.load(momentum + at, mask=inside).to(tl.float32) * 0.9 + 0.1 * g
    u = tl.maximum(tl.load(largest + at, mask=inside).to(tl.float32) * 0.999, tl.abs(g) + 1e-4)
    w = tl.load(weights + at, mask=inside).to(tl.float32) - rate * m / u
    tl.store(new_weights + at, w.to(tl.float16), mask=inside)
    tl.store(new_momentum + at, m.to(tl.float16), mask=inside)
    tl.store(new_largest + at, u.to(tl.float16), mask=inside)


@triton.jit
def adamax_kernel(
    weights,
    gradient,
    momentum,
    largest,
    new_weights,
    new_momentum,
    new_largest,
    rate,
    count,
    block: tl.constexpr,
):
    """A step of Adamax on half values, what is past the end masked."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    adamax_step(
        weights, gradient, momentum, largest, new_weights, new_momentum, new_largest, at, at < count, rate
    )


@triton.jit
def adamax_blocks_kernel(
    weights,
    gradient,
    momentum,
    largest,
    new_weights,
    new_momentum,
    new_largest,
    rate,
    count,
    block: tl.constexpr,
):
    """The same, the last block alone masked."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    if (tl.program_id(0) + 1) * block <= count:
        adamax_step(
            weights, gradient, momentum, largest, new_weights, new_momentum, new_largest, at, None, rate
        )
    else:
        adamax_step(
            weights, gradient, momentum, largest, new_weights, new_momentum, new_largest, at, at < count, rate
        )


def adamax(count: int = 50_000_003) -> tuple[dict[str, Run], Check]:
    room = (count + 15) // 16 * 16
    weights = noise(room, dtype=torch.half)
    gradient, momentum = weights.flip(0).contiguous(), weights * 0.1
    largest = weights.abs() + 0.1
    new_weights, new_momentum, new_largest = (torch.empty_like(weights) for _ in range(3))
    tensors = (weights, gradient, momentum, largest, new_weights, new_momentum, new_largest)
    grid = (triton.cdiv(count, 1024),)
    return {
        "flawed": lambda: adamax_kernel[grid](*tensors, 0.01, count, 1024, num_warps=4),
        "whole_blocks": lambda: adamax_blocks_kernel[grid](*tensors, 0.01, count, 1024, num_warps=4),
        "rounded_up": lambda: adamax_kernel[grid](*tensors, 0.01, room, 1024, num_warps=4),
    }, lambda: new_weights[:count]


# --- products and eight bits ---


@triton.jit
def columns_scaled_kernel(x, scales, out, columns, tall: tl.constexpr, wide: tl.constexpr):
    """Eight-bit values with a scale for each column of 128 rows."""
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    at = row[:, None] * columns + column[None, :]
    value = tl.load(x + at).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-6) / 127.0
    tl.store(scales + tl.program_id(0) * columns + column, scale)
    tl.store(out + at, tl.floor(value / scale[None, :] + 0.5).to(tl.int8))


@triton.jit
def columns_scaled_walk_kernel(
    x, scales, out, columns, tall: tl.constexpr, wide: tl.constexpr, some: tl.constexpr
):
    """The same in two walks of ``some`` rows."""
    first = tl.program_id(0) * tall
    column = tl.program_id(1) * wide + tl.arange(0, wide)
    top = tl.full((wide,), 1e-6, tl.float32)
    for start in range(0, tall, some):
        row = first + start + tl.arange(0, some)
        value = tl.load(x + row[:, None] * columns + column[None, :]).to(tl.float32)
        top = tl.maximum(top, tl.max(tl.abs(value), 0))
    scale = top / 127.0
    tl.store(scales + tl.program_id(0) * columns + column, scale)
    for start in range(0, tall, some):
        row = first + start + tl.arange(0, some)
        at = row[:, None] * columns + column[None, :]
        value = tl.load(x + at).to(tl.float32)
        tl.store(out + at, tl.floor(value / scale[None, :] + 0.5).to(tl.int8))


def columns_scaled(rows: int = 8192, columns: int = 4096) -> tuple[dict[str, Run], Check]:
    x = noise(rows, columns, dtype=torch.half)
    out = torch.empty(rows, columns, device="cuda", dtype=torch.int8)
    scales = torch.empty(rows // 128, columns, device="cuda")

    def tiles(wide: int, warps: int) -> Run:
        return lambda: columns_scaled_kernel[(rows // 128, columns // wide)](
            x, scales, out, columns, 128, wide, num_warps=warps
        )

    return {
        "flawed": tiles(4, 4),
        "wide": tiles(64, 4),
        "walk": lambda: columns_scaled_walk_kernel[(rows // 128, columns // 256)](
            x, scales, out, columns, 128, 256, 16, num_warps=4
        ),
    }, lambda: out


@triton.jit
def product_kernel(
    left, right, out, depth, columns, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """A product of two matrices of half values, a tile a program."""
    row = tl.program_id(1) * tall + tl.arange(0, tall)
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for k in range(0, depth, deep):
        a = tl.load(left + row[:, None] * depth + k + inner[None, :])
        b = tl.load(right + (k + inner)[:, None] * columns + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def product(rows: int = 4096, depth: int = 2048, columns: int = 2048) -> tuple[dict[str, Run], Check]:
    left, right = noise(rows, depth, dtype=torch.half), noise(depth, columns, dtype=torch.half) * 0.1
    out = torch.empty(rows, columns, device="cuda", dtype=torch.half)

    def tiles(tall: int, wide: int, deep: int, warps: int) -> Run:
        return lambda: product_kernel[(columns // wide, rows // tall)](
            left, right, out, depth, columns, tall, wide, deep, num_warps=warps, num_stages=3
        )

    return {
        "flawed": tiles(32, 32, 32, 4),
        "middle": tiles(64, 128, 64, 4),
        "large": tiles(128, 128, 64, 8),
    }, lambda: out


@triton.jit
def gated_product_kernel(
    gate, up, right, out, depth, columns, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """A product whose left operand is gated as it is loaded."""
    row = tl.program_id(1) * tall + tl.arange(0, tall)
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for k in range(0, depth, deep):
        at = row[:, None] * depth + k + inner[None, :]
        opened = tl.load(gate + at).to(tl.float32)
        value = opened * tl.sigmoid(opened) * tl.load(up + at).to(tl.float32)
        b = tl.load(right + (k + inner)[:, None] * columns + column[None, :])
        total = tl.dot(value.to(tl.float16), b, total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def gated_product(rows: int = 4096, depth: int = 4096, columns: int = 2048) -> tuple[dict[str, Run], Check]:
    gate, right = noise(rows, depth, dtype=torch.half) * 2, noise(depth, columns, dtype=torch.half) * 0.1
    up = gate.flip(0).contiguous()
    gated = (torch.nn.functional.silu(gate.float()) * up.float()).half()
    out = torch.empty(rows, columns, device="cuda", dtype=torch.half)

    def tiles(wide: int, warps: int) -> Run:
        return lambda: gated_product_kernel[(columns // wide, rows // 128)](
            gate, up, right, out, depth, columns, 128, wide, 64, num_warps=warps, num_stages=3
        )

    return {
        "flawed": tiles(128, 8),
        "wide": tiles(256, 8),
        "gated_before": lambda: product_kernel[(columns // 128, rows // 128)](
            gated, right, out, depth, columns, 128, 128, 64, num_warps=8, num_stages=3
        ),
    }, lambda: out


@triton.jit
def triangle_tile(lower, x, out, strip, block, size, columns, tile: tl.constexpr, deep: tl.constexpr):
    """A tile of a lower triangular matrix times another, of strip ``strip``."""
    row = strip * tile + tl.arange(0, tile)
    column = block * tile + tl.arange(0, tile)
    inner = tl.arange(0, deep)
    total = tl.zeros((tile, tile), tl.float32)
    for k in range(0, (strip + 1) * tile, deep):
        a = tl.load(lower + row[:, None] * size + k + inner[None, :])
        b = tl.load(x + (k + inner)[:, None] * columns + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


@triton.jit
def triangle_kernel(
    lower, x, out, size, columns, tile: tl.constexpr, deep: tl.constexpr, last_first: tl.constexpr
):
    """A strip a row of programs, the short ones first or the long ones."""
    strip = tl.program_id(1)
    if last_first:
        strip = tl.num_programs(1) - 1 - strip
    triangle_tile(lower, x, out, strip, tl.program_id(0), size, columns, tile, deep)


@triton.jit
def triangle_pairs_kernel(lower, x, out, size, columns, tile: tl.constexpr, deep: tl.constexpr):
    """A short strip and a long one for each program."""
    long = 2 * tl.num_programs(1) - 1 - tl.program_id(1)
    triangle_tile(lower, x, out, long, tl.program_id(0), size, columns, tile, deep)
    triangle_tile(lower, x, out, tl.program_id(1), tl.program_id(0), size, columns, tile, deep)


def triangle(size: int = 4096, columns: int = 3072) -> tuple[dict[str, Run], Check]:
    tile = 128
    lower, x = torch.tril(noise(size, size, dtype=torch.half)), noise(size, columns, dtype=torch.half) * 0.1
    out = torch.empty_like(x)

    def strips(last_first: bool) -> Run:
        return lambda: triangle_kernel[(columns // tile, size // tile)](
            lower, x, out, size, columns, tile, 64, last_first, num_warps=8, num_stages=3
        )

    return {
        "flawed": strips(False),
        "long_first": strips(True),
        "pairs": lambda: triangle_pairs_kernel[(columns // tile, size // tile // 2)](
            lower, x, out, size, columns, tile, 64, num_warps=8, num_stages=3
        ),
    }, lambda: out


# --- without a flaw ---


@triton.jit
def layer_scale_kernel(x, branch, scale, out, width: tl.constexpr, tall: tl.constexpr):
    """What a layer adds, scaled for each feature, and what passes by it."""
    column = tl.arange(0, width)
    at = (tl.program_id(0) * tall + tl.arange(0, tall))[:, None] * width + column[None, :]
    factor = tl.load(scale + column)[None, :]
    added = tl.load(branch + at).to(tl.float32) * factor
    tl.store(out + at, (tl.load(x + at).to(tl.float32) + added).to(tl.float16))


def layer_scale(rows: int = 32768, width: int = 1024) -> tuple[dict[str, Run], Check]:
    x, scale = noise(rows, width, dtype=torch.half), noise(width)
    branch = x.flip(0).contiguous()
    out = torch.empty_like(x)
    return {
        "sound": lambda: layer_scale_kernel[(rows // 4,)](x, branch, scale, out, width, 4, num_warps=8)
    }, lambda: out


@triton.jit
def unit_vectors_kernel(x, out, width: tl.constexpr, tall: tl.constexpr):
    """Rows of length one."""
    at = (tl.program_id(0) * tall + tl.arange(0, tall))[:, None] * width + tl.arange(0, width)[None, :]
    value = tl.load(x + at).to(tl.float32)
    scale = tl.rsqrt(tl.maximum(tl.sum(value * value, 1), 1e-12))
    tl.store(out + at, (value * scale[:, None]).to(tl.float16))


def unit_vectors(rows: int = 131072, width: int = 256) -> tuple[dict[str, Run], Check]:
    x = noise(rows, width, dtype=torch.half)
    out = torch.empty_like(x)
    return {"sound": lambda: unit_vectors_kernel[(rows // 16,)](x, out, width, 16, num_warps=4)}, lambda: out


STUDIES = (
    Study(
        "triton_head_norms_head_a_program",
        "root mean square norms of 32 heads of 64 half features for 16384 tokens, in Triton",
        "four warps for a head of 64 values: half of the threads do what others do, and wait for each other",
        (
            ("tile", "64 heads a program", ("idle_threads", "barriers")),
            ("warp", "eight heads a program of one warp", ("idle_threads", "barriers")),
        ),
        head_norms,
        tolerance=2e-3,
    ),
    Study(
        "triton_router_load_atomics_of_sixteen_tokens",
        "sums of 524288 tokens' probabilities for each of 64 experts, in Triton",
        "each program adds the sums of its sixteen tokens to the same 64 places",
        (
            ("walk", "a program walks 512 tokens before it adds", ("global_atomics",)),
            ("tall", "256 tokens a program of eight warps", ("global_atomics",)),
        ),
        router_load,
    ),
    Study(
        "triton_distillation_loss_three_walks",
        "divergence of a student from a teacher for 2048 rows of 32768 half logits, in Triton",
        "both rows are walked for their largest value, for their sum and for the divergence",
        (
            ("two_walks", "largest values and sums in one walk", ("redundant_loads",)),
            ("one_walk", "one walk, its sums following the largest value so far", ("redundant_loads",)),
        ),
        distillation,
    ),
    Study(
        "triton_focal_loss_settings_in_double",
        "focal loss of 16777216 logits with a temperature, an exponent and a balance, in Triton",
        "the three settings are doubles in a tensor: all that they meet becomes double",
        (
            ("rounded", "settings rounded to floats when loaded", ("double_precision",)),
            (
                "constants",
                "constant settings, one exponential for both logarithms",
                ("double_precision", "expensive_math"),
            ),
        ),
        focal,
    ),
    Study(
        "triton_tag_chains_exponentials_each_step",
        "sums over all chains of 64 tags for 2048 sentences of 128 words, in Triton",
        "4096 exponentials at each word, for moves that are the same at all of them",
        (
            ("weights", "exponentials of the moves before the first word", ("expensive_math",)),
            (
                "product",
                "the same as a product for sixteen sentences",
                ("expensive_math", "tensor_cores_idle"),
            ),
        ),
        tag_chains,
    ),
    Study(
        "triton_clipping_adds_partial_norms_again",
        "67108864 half gradients scaled to a largest norm, in Triton",
        "each program adds up all 8192 partial norms, for 2048 gradients",
        (
            ("persistent", "528 programs that add them up once and scale many blocks", ("redundant_loads",)),
            ("one_sum", "added up by the kernel that makes them", ("redundant_loads",)),
        ),
        clipped,
    ),
    Study(
        "triton_norm_gradient_row_of_16384_four_warps",
        "gradient of a root mean square norm of 4096 rows of 16384 half values, in Triton",
        "four warps hold a row of three tensors in registers, 128 values of each a thread: they spill",
        (
            ("sixteen_warps", "sixteen warps hold it", ("local_memory",)),
            ("pieces", "two walks in pieces of 2048", ("local_memory",)),
        ),
        norm_gradient,
        tolerance=2e-3,
    ),
    Study(
        "triton_adamax_step_odd_count",
        "a step of Adamax on 50000003 half weights, in Triton",
        "a mask that ends anywhere makes every load and store one of two bytes",
        (
            ("whole_blocks", "the last block alone masked", ("narrow_access",)),
            ("rounded_up", "tensors with room for a multiple of 16, masked there", ("narrow_access",)),
        ),
        adamax,
    ),
    Study(
        "triton_columns_scaled_four_at_a_time",
        "8192 x 4096 half values to eight bits, a scale for each column of 128 rows, in Triton",
        "tiles of 128 rows of four values: eight bytes of each row a program",
        (
            ("wide", "tiles of 64 columns", ("uncoalesced_access",)),
            ("walk", "two walks of sixteen rows of 256 columns", ("uncoalesced_access",)),
        ),
        columns_scaled,
        tolerance=1e-2,
    ),
    Study(
        "triton_projection_tiles_of_32",
        "product of half matrices, 4096 x 2048 of depth 2048, in Triton",
        "tiles of 32 x 32: each operand is loaded 64 or 128 times, and a warp has little to multiply",
        (
            ("middle", "tiles of 64 x 128, depth 64", ("redundant_loads", "shared_memory_bandwidth")),
            ("large", "tiles of 128 x 128, eight warps", ("redundant_loads", "shared_memory_bandwidth")),
        ),
        product,
        tolerance=2e-3,
    ),
    Study(
        "triton_gated_product_gates_in_the_loop",
        "product of 4096 gated rows of 4096 half values with a matrix for 2048 outputs, in Triton",
        "each of sixteen columns of tiles gates the same rows again",
        (
            ("wide", "tiles of 256 columns: eight times instead of sixteen", ("expensive_math",)),
            (
                "gated_before",
                "rows gated by the kernel before",
                ("expensive_math", "redundant_loads"),
            ),
        ),
        gated_product,
        tolerance=5e-3,
    ),
    Study(
        "triton_triangular_product_short_strips_first",
        "a lower triangular matrix of 4096 times 4096 x 3072 half values, in Triton",
        "strips get longer down the matrix, and the longest come last",
        (
            ("long_first", "the longest strips first", ("workload_imbalance", "tail_effect")),
            ("pairs", "a long and a short strip a program", ("workload_imbalance", "tail_effect")),
        ),
        triangle,
        tolerance=2e-3,
        domain="linear algebra",
    ),
    Study(
        "sound_triton_layer_scale",
        "32768 rows of 1024 half values and what a layer adds to them, scaled, in Triton",
        "",
        (),
        layer_scale,
    ),
    Study(
        "sound_triton_unit_vectors",
        "131072 rows of 256 half values made as long as one, in Triton",
        "",
        (),
        unit_vectors,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
