"""Studies in Triton of models in training and serving and of bodies, run by tests/cuda/variants/frameworks.py.

Usage: t_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


def normal(*shape: int, dtype: torch.dtype = torch.half) -> torch.Tensor:
    """Normal variates of unit variance, without a copy in another type."""
    generator = torch.Generator(device="cuda").manual_seed(2)
    return torch.randn(*shape, device="cuda", dtype=dtype, generator=generator)


# --- rotary embedding ---


@triton.jit
def rotated(x, out, at, cosine, sine, half: tl.constexpr):
    low = tl.load(x + at).to(tl.float32)
    high = tl.load(x + at + half).to(tl.float32)
    tl.store(out + at, (low * cosine - high * sine).to(tl.float16))
    tl.store(out + at + half, (high * cosine + low * sine).to(tl.float16))


@triton.jit
def rotary_kernel(x, positions, frequencies, out, heads, half: tl.constexpr, tile: tl.constexpr):
    """Rotate the queries of one head, a tile of tokens a program."""
    token = tl.program_id(0) * tile + tl.arange(0, tile)
    head = tl.program_id(1)
    pair = tl.arange(0, half)
    position = tl.load(positions + token).to(tl.float32)
    angle = position[:, None] * tl.load(frequencies + pair)[None, :]
    at = (token[:, None] * heads + head) * (2 * half) + pair[None, :]
    rotated(x, out, at, tl.cos(angle), tl.sin(angle), half)


@triton.jit
def rotary_table_kernel(x, positions, cosines, sines, out, heads, half: tl.constexpr, tile: tl.constexpr):
    """The same; cosines and sines of all positions are stored."""
    token = tl.program_id(0) * tile + tl.arange(0, tile)
    head = tl.program_id(1)
    pair = tl.arange(0, half)
    place = tl.load(positions + token)[:, None] * half + pair[None, :]
    at = (token[:, None] * heads + head) * (2 * half) + pair[None, :]
    cosine = tl.load(cosines + place).to(tl.float32)
    sine = tl.load(sines + place).to(tl.float32)
    rotated(x, out, at, cosine, sine, half)


@triton.jit
def rotary_heads_kernel(x, positions, frequencies, out, heads, half: tl.constexpr, tile: tl.constexpr):
    """The same; a tile of tokens with all of their heads a program."""
    token = tl.program_id(0) * tile + tl.arange(0, tile)
    pair = tl.arange(0, half)
    position = tl.load(positions + token).to(tl.float32)
    angle = position[:, None] * tl.load(frequencies + pair)[None, :]
    cosine = tl.cos(angle)
    sine = tl.sin(angle)
    at = token[:, None] * (heads * 2 * half) + pair[None, :]
    for _ in range(heads):
        rotated(x, out, at, cosine, sine, half)
        at += 2 * half


def rotary(tokens: int = 16384, heads: int = 32, longest: int = 8192) -> tuple[dict[str, Run], Check]:
    half = 64
    x = normal(tokens, heads, 2 * half)
    positions = torch.arange(tokens, device="cuda", dtype=torch.int32) % longest
    frequencies = 500000.0 ** (-torch.arange(half, device="cuda", dtype=torch.float32) / half)
    angles = torch.arange(longest, device="cuda", dtype=torch.float32)[:, None] * frequencies
    cosines, sines = angles.cos().half(), angles.sin().half()
    out = torch.empty_like(x)
    return {
        "flawed": lambda: rotary_kernel[(tokens // 32, heads)](
            x, positions, frequencies, out, heads, half, 32, num_warps=4
        ),
        "tables": lambda: rotary_table_kernel[(tokens // 32, heads)](
            x, positions, cosines, sines, out, heads, half, 32, num_warps=4
        ),
        "all_heads": lambda: rotary_heads_kernel[(tokens // 8,)](
            x, positions, frequencies, out, heads, half, 8, num_warps=2
        ),
    }, lambda: out


# --- loss of each token, over GPT-2's 50257 words ---


@triton.jit
def token_loss_kernel(logits, targets, out, words, pitch, piece: tl.constexpr):
    """Cross entropy of one token a program, a piece of the words at a time."""
    row = tl.program_id(0)
    start = logits + row.to(tl.int64) * pitch
    target = tl.load(targets + row)
    top = -float("inf")
    total = 0.0
    for first in range(0, words, piece):
        word = first + tl.arange(0, piece)
        value = tl.load(start + word, mask=word < words, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
        top = higher
    tl.store(out + row, top + tl.log(total) - tl.load(start + target).to(tl.float32))


@triton.jit
def token_loss_aligned_kernel(logits, targets, out, words, pitch, piece: tl.constexpr):
    """The same; pieces begin at multiples of eight values of the whole matrix."""
    row = tl.program_id(0)
    start = row.to(tl.int64) * pitch
    before = (start % 8).to(tl.int32)
    aligned = logits + tl.multiple_of(start - before, 8)
    target = tl.load(targets + row)
    top = -float("inf")
    total = 0.0
    whole = (words + before) // piece * piece
    for first in range(0, whole, piece):
        word = first + tl.arange(0, piece)
        value = tl.load(aligned + word).to(tl.float32)
        value = tl.where(word >= before, value, -float("inf"))
        higher = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
        top = higher
    word = whole + tl.arange(0, piece)
    value = tl.load(aligned + word, mask=word < words + before, other=-float("inf")).to(tl.float32)
    higher = tl.maximum(top, tl.max(value, 0))
    total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
    tl.store(out + row, higher + tl.log(total) - tl.load(logits + start + target).to(tl.float32))


def token_loss(rows: int = 4096, words: int = 50257, piece: int = 4096) -> tuple[dict[str, Run], Check]:
    pitch = (words + 63) // 64 * 64
    logits = normal(rows, words)
    padded = torch.full((rows, pitch), -float("inf"), device="cuda", dtype=torch.half)
    padded[:, :words] = logits
    targets = torch.arange(rows, device="cuda", dtype=torch.int32) * 7919 % words
    out = torch.empty(rows, device="cuda")
    grid = (rows,)
    return {
        "flawed": lambda: token_loss_kernel[grid](logits, targets, out, words, words, piece, num_warps=8),
        "padded": lambda: token_loss_kernel[grid](padded, targets, out, pitch, pitch, piece, num_warps=8),
        "aligned": lambda: token_loss_aligned_kernel[grid](
            logits, targets, out, words, words, piece, num_warps=8
        ),
    }, lambda: out


# --- how far a student's words are from its teacher's ---


@triton.jit
def student_kernel(student, teacher, out, words, pitch, block: tl.constexpr):
    """Divergence of one token's distributions a program, both rows whole."""
    row = tl.program_id(0).to(tl.int64) * pitch
    word = tl.arange(0, block)
    there = word < words
    taught = tl.load(teacher + row + word, mask=there, other=-float("inf")).to(tl.float32)
    told = tl.load(student + row + word, mask=there, other=-float("inf")).to(tl.float32)
    taught -= tl.max(taught, 0)
    told -= tl.max(told, 0)
    weight = tl.exp(taught)
    total = tl.sum(weight, 0)
    apart = tl.log(tl.sum(tl.exp(told), 0)) - tl.log(total)
    away = tl.sum(tl.where(there, weight * (taught - told), 0.0), 0) / total + apart
    tl.store(out + tl.program_id(0), away)


@triton.jit
def student_pieces_kernel(student, teacher, out, words, pitch, piece: tl.constexpr):
    """The same in one pass over pieces of the rows."""
    row = tl.program_id(0).to(tl.int64) * pitch
    best_taught = -float("inf")
    best_told = -float("inf")
    total = 0.0
    total_told = 0.0
    away = 0.0
    for first in range(0, words, piece):
        word = first + tl.arange(0, piece)
        there = word < words
        taught = tl.load(teacher + row + word, mask=there, other=-float("inf")).to(tl.float32)
        told = tl.load(student + row + word, mask=there, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(best_taught, tl.max(taught, 0))
        weight = tl.exp(taught - higher)
        kept = tl.exp(best_taught - higher)
        total = total * kept + tl.sum(weight, 0)
        away = away * kept + tl.sum(tl.where(there, weight * (taught - told), 0.0), 0)
        best_taught = higher
        higher = tl.maximum(best_told, tl.max(told, 0))
        total_told = total_told * tl.exp(best_told - higher) + tl.sum(tl.exp(told - higher), 0)
        best_told = higher
    apart = best_told + tl.log(total_told) - best_taught - tl.log(total)
    tl.store(out + tl.program_id(0), away / total + apart)


@triton.jit
def student_lanes_kernel(student, teacher, out, words, pitch, piece: tl.constexpr):
    """The same; each place of the pieces has its own sums, which are joined when the rows have been read."""
    row = tl.program_id(0).to(tl.int64) * pitch
    best_taught = tl.full((piece,), -float("inf"), tl.float32)
    best_told = best_taught
    total = tl.zeros((piece,), tl.float32)
    total_told = total
    away = total
    for first in range(0, words, piece):
        word = first + tl.arange(0, piece)
        there = word < words
        taught = tl.load(teacher + row + word, mask=there, other=-float("inf")).to(tl.float32)
        told = tl.load(student + row + word, mask=there, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(best_taught, taught)
        weight = tl.exp(taught - higher)
        kept = tl.exp(best_taught - higher)
        total = total * kept + weight
        away = away * kept + tl.where(there, weight * (taught - told), 0.0)
        best_taught = higher
        higher = tl.maximum(best_told, told)
        total_told = total_told * tl.exp(best_told - higher) + tl.exp(told - higher)
        best_told = higher
    most_taught = tl.max(best_taught, 0)
    kept = tl.exp(best_taught - most_taught)
    most_told = tl.max(best_told, 0)
    all_told = most_told + tl.log(tl.sum(total_told * tl.exp(best_told - most_told), 0))
    all_taught = tl.sum(total * kept, 0)
    found = tl.sum(away * kept, 0) / all_taught + all_told - most_taught - tl.log(all_taught)
    tl.store(out + tl.program_id(0), found)


def student(rows: int = 4096, words: int = 32000, block: int = 32768) -> tuple[dict[str, Run], Check]:
    told = normal(rows, words)
    taught = normal(rows, words).flip(0).contiguous() * 2
    out = torch.empty(rows, device="cuda")
    grid = (rows,)
    return {
        "flawed": lambda: student_kernel[grid](told, taught, out, words, words, block, num_warps=16),
        "pieces": lambda: student_pieces_kernel[grid](told, taught, out, words, words, 2048, num_warps=4),
        "lanes": lambda: student_lanes_kernel[grid](told, taught, out, words, words, 2048, num_warps=8),
    }, lambda: out


# --- the eight experts of a token ---


@triton.jit
def experts_kernel(logits, chosen, weights, experts: tl.constexpr, most: tl.constexpr):
    """The best eight of 128 experts of one token a program, and their shares of the softmax."""
    token = tl.program_id(0)
    expert = tl.arange(0, experts)
    logit = tl.load(logits + token * experts + expert)
    top = tl.max(logit, 0)
    total = tl.sum(tl.exp(logit - top), 0)
    for k in tl.static_range(most):
        value, best = tl.max(logit, 0, return_indices=True)
        tl.store(chosen + token * most + k, best)
        tl.store(weights + token * most + k, tl.exp(value - top) / total)
        logit = tl.where(expert == best, -float("inf"), logit)


@triton.jit
def experts_rows_kernel(
    logits, chosen, weights, experts: tl.constexpr, most: tl.constexpr, rows: tl.constexpr
):
    """The same of several tokens, so that a row lies within a warp."""
    token = tl.program_id(0) * rows + tl.arange(0, rows)
    expert = tl.arange(0, experts)[None, :]
    logit = tl.load(logits + token[:, None] * experts + expert)
    top = tl.max(logit, 1)
    total = tl.sum(tl.exp(logit - top[:, None]), 1)
    for k in tl.static_range(most):
        value, best = tl.max(logit, 1, return_indices=True)
        tl.store(chosen + token * most + k, best)
        tl.store(weights + token * most + k, tl.exp(value - top) / total)
        logit = tl.where(expert == best[:, None], -float("inf"), logit)


def experts(tokens: int = 65536, count: int = 128, most: int = 8) -> tuple[dict[str, Run], Check]:
    logits = normal(tokens, count, dtype=torch.float32)
    chosen = torch.empty(tokens, most, device="cuda", dtype=torch.int32)
    weights = torch.empty(tokens, most, device="cuda")
    return {
        "flawed": lambda: experts_kernel[(tokens,)](logits, chosen, weights, count, most, num_warps=4),
        "one_warp": lambda: experts_kernel[(tokens,)](logits, chosen, weights, count, most, num_warps=1),
        "row_a_warp": lambda: experts_rows_kernel[(tokens // 8,)](
            logits, chosen, weights, count, most, 8, num_warps=4
        ),
    }, lambda: torch.stack([chosen.float() / count, weights])


# --- a new token looks at those before it ---


@triton.jit
def look_back_kernel(
    queries, keys, values, lengths, out, mass, scale, capacity, pitch, group: tl.constexpr,
    heads: tl.constexpr, width: tl.constexpr, span: tl.constexpr, piece: tl.constexpr,
):  # fmt: skip
    """Attention of one new token's ``heads`` query heads to a span of the tokens before it a program.

    Products have 16 rows at least; rows without a head are empty. ``group`` heads share keys and values.
    """
    sequence = tl.program_id(1)
    lane = tl.arange(0, width)
    member = tl.arange(0, 16)
    real = member < heads
    row = (sequence * tl.num_programs(0) + tl.program_id(0)) * heads + member
    slot = row * tl.num_programs(2) + tl.program_id(2)
    first = tl.program_id(2) * span
    last = tl.minimum(first + span, tl.load(lengths + sequence))
    query = tl.load(queries + row[:, None] * width + lane[None, :], mask=real[:, None], other=0.0)
    base = sequence.to(tl.int64) * capacity * pitch + tl.program_id(0) * heads // group * width
    top = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    sums = tl.zeros((16, width), tl.float32)
    for start in range(first, last, piece):
        token = start + tl.arange(0, piece)
        there = token < last
        at = base + token[:, None] * pitch + lane[None, :]
        key = tl.load(keys + at, mask=there[:, None], other=0.0)
        score = tl.dot(query, tl.trans(key)) * scale
        score = tl.where(there[None, :], score, -1e30)
        higher = tl.maximum(top, tl.max(score, 1))
        kept = tl.exp2(top - higher)
        share = tl.exp2(score - higher[:, None])
        total = total * kept + tl.sum(share, 1)
        value = tl.load(values + at, mask=there[:, None], other=0.0)
        sums = tl.dot(share.to(tl.float16), value, sums * kept[:, None])
        top = higher
    if last > first:
        tl.store(out + slot[:, None] * width + lane[None, :], sums / total[:, None], mask=real[:, None])
        tl.store(mass + slot, top + tl.log2(total), mask=real)


@triton.jit
def look_back_turned_kernel(
    queries, keys, values, lengths, out, mass, scale, capacity, pitch, group: tl.constexpr,
    width: tl.constexpr, span: tl.constexpr, piece: tl.constexpr,
):  # fmt: skip
    """The same of all heads that share keys and values; tokens are the rows of the products."""
    sequence = tl.program_id(1)
    lane = tl.arange(0, width)
    member = tl.arange(0, 16)
    real = member < group
    row = (sequence * tl.num_programs(0) + tl.program_id(0)) * group + member
    slot = row * tl.num_programs(2) + tl.program_id(2)
    first = tl.program_id(2) * span
    last = tl.minimum(first + span, tl.load(lengths + sequence))
    query = tl.load(queries + row[None, :] * width + lane[:, None], mask=real[None, :], other=0.0)
    base = sequence.to(tl.int64) * capacity * pitch + tl.program_id(0) * width
    top = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    sums = tl.zeros((width, 16), tl.float32)
    for start in range(first, last, piece):
        token = start + tl.arange(0, piece)
        there = token < last
        at = base + token[:, None] * pitch + lane[None, :]
        key = tl.load(keys + at, mask=there[:, None], other=0.0)
        score = tl.where(there[:, None], tl.dot(key, query) * scale, -1e30)
        higher = tl.maximum(top, tl.max(score, 0))
        kept = tl.exp2(top - higher)
        share = tl.exp2(score - higher[None, :])
        total = total * kept + tl.sum(share, 0)
        value = tl.load(values + at, mask=there[:, None], other=0.0)
        sums = tl.dot(tl.trans(value), share.to(tl.float16), sums * kept[None, :])
        top = higher
    if last > first:
        tl.store(out + slot[None, :] * width + lane[:, None], sums / total[None, :], mask=real[None, :])
        tl.store(mass + slot, top + tl.log2(total), mask=real)


def look_back(
    sequences: int = 16, shared: int = 8, group: int = 4, capacity: int = 4096, span: int = 512
) -> tuple[dict[str, Run], Check]:
    width, heads, parts = 128, shared * group, capacity // span
    queries = normal(sequences, heads, width)
    keys = normal(sequences, capacity, shared, width)
    values = normal(sequences, capacity, shared, width).flip(1).contiguous()
    lengths = (capacity * (0.75 + 0.25 * noise(sequences))).int()
    out = torch.zeros(sequences, heads, parts, width, device="cuda")
    mass = torch.zeros(sequences, heads, parts, device="cuda")
    given = (queries, keys, values, lengths, out, mass, 1.4427 / width**0.5, capacity, shared * width, group)
    return {
        "flawed": lambda: look_back_kernel[(heads, sequences, parts)](
            *given, 1, width, span, 64, num_warps=4, num_stages=2
        ),
        "group": lambda: look_back_kernel[(shared, sequences, parts)](
            *given, group, width, span, 64, num_warps=4, num_stages=2
        ),
        "turned": lambda: look_back_turned_kernel[(shared, sequences, parts)](
            *given, width, span, 64, num_warps=4, num_stages=2
        ),
    }, lambda: torch.cat([out.flatten(), mass.flatten()])


# --- a gated linear recurrence ---


@triton.jit
def recurrent_kernel(gates, inputs, out, steps, width, block: tl.constexpr):
    """The states of some channels of one sequence, step by step."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    at = tl.program_id(1) * steps * width + channel
    state = tl.zeros((block,), tl.float32)
    for _ in range(steps):
        kept = tl.sigmoid(tl.load(gates + at).to(tl.float32))
        state = kept * state + (1.0 - kept) * tl.load(inputs + at).to(tl.float32)
        tl.store(out + at, state.to(tl.float16))
        at += width


@triton.jit
def recurrent_staged_kernel(gates, inputs, out, steps, width, block: tl.constexpr, stages: tl.constexpr):
    """The same; what later steps need is under way."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    at = tl.program_id(1) * steps * width + channel
    state = tl.zeros((block,), tl.float32)
    for step in tl.range(0, steps, num_stages=stages):
        place = at + step * width
        kept = tl.sigmoid(tl.load(gates + place).to(tl.float32))
        state = kept * state + (1.0 - kept) * tl.load(inputs + place).to(tl.float32)
        tl.store(out + place, state.to(tl.float16))


@triton.jit
def then(kept, state, later_kept, later_state):
    """Two stretches of the recurrence as one."""
    return kept * later_kept, state * later_kept + later_state


@triton.jit
def recurrent_scan_kernel(gates, inputs, out, steps, width, block: tl.constexpr, piece: tl.constexpr):
    """The same; ``piece`` steps at a time by a scan."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    at = tl.program_id(1) * steps * width + tl.arange(0, piece)[:, None] * width + channel[None, :]
    final = tl.arange(0, piece)[:, None] == piece - 1
    state = tl.zeros((block,), tl.float32)
    for _ in range(0, steps, piece):
        kept = tl.sigmoid(tl.load(gates + at).to(tl.float32))
        fresh = (1.0 - kept) * tl.load(inputs + at).to(tl.float32)
        kept, fresh = tl.associative_scan((kept, fresh), 0, then)
        states = kept * state[None, :] + fresh
        tl.store(out + at, states.to(tl.float16))
        state = tl.sum(tl.where(final, states, 0.0), 0)
        at += piece * width


def recurrent(sequences: int = 32, steps: int = 512, width: int = 2048) -> tuple[dict[str, Run], Check]:
    gates, inputs = normal(sequences, steps, width) + 1, normal(sequences, steps, width).flip(1).contiguous()
    out = torch.empty_like(inputs)
    grid = (width // 64, sequences)
    return {
        "flawed": lambda: recurrent_kernel[grid](gates, inputs, out, steps, width, 64, num_warps=1),
        "staged": lambda: recurrent_staged_kernel[grid](gates, inputs, out, steps, width, 64, 6, num_warps=1),
        "scan": lambda: recurrent_scan_kernel[grid](gates, inputs, out, steps, width, 64, 32, num_warps=4),
    }, lambda: out


# --- how large the values of each channel get ---


@triton.jit
def reach_kernel(x, out, rows, channels, block: tl.constexpr, tile: tl.constexpr):
    """The largest size of ``tile`` channels over all rows a program."""
    channel = tl.program_id(0) * tile + tl.arange(0, tile)
    place = tl.arange(0, block)
    reach = tl.zeros((block, tile), tl.float32)
    for first in range(0, rows, block):
        at = (first + place)[:, None] * channels + channel[None, :]
        reach = tl.maximum(reach, tl.abs(tl.load(x + at).to(tl.float32)))
    tl.store(out + channel, tl.max(reach, 0) / 127.0)


@triton.jit
def reach_parts_kernel(x, out, part, channels, block: tl.constexpr, tile: tl.constexpr):
    """The same over a part of the rows."""
    channel = tl.program_id(0) * tile + tl.arange(0, tile)
    place = tl.program_id(1) * part + tl.arange(0, block)
    reach = tl.zeros((block, tile), tl.float32)
    for first in range(0, part, block):
        at = (first + place)[:, None] * channels + channel[None, :]
        reach = tl.maximum(reach, tl.abs(tl.load(x + at).to(tl.float32)))
    tl.atomic_max(out + channel, tl.max(reach, 0) / 127.0, sem="relaxed")


def reach(rows: int = 16384, channels: int = 8192, parts: int = 16) -> tuple[dict[str, Run], Check]:
    x = normal(rows, channels)
    out = torch.empty(channels, device="cuda")

    def zeroed() -> torch.Tensor:
        found = out.clone()
        out.zero_()
        return found

    return {
        "flawed": lambda: reach_kernel[(channels // 4,)](x, out, rows, channels, 1024, 4, num_warps=4),
        "sector": lambda: reach_kernel[(channels // 16,)](x, out, rows, channels, 256, 16, num_warps=4),
        "parts": lambda: reach_parts_kernel[(channels // 128, parts)](
            x, out, rows // parts, channels, 32, 128, num_warps=4
        ),
    }, zeroed


# --- pictures as words for a transformer ---


@triton.jit
def patches_kernel(
    x, means, scales, out, total, channels, height, width, patch, rows, columns, block: tl.constexpr
):
    """Pictures cut into patches, each channel shifted and scaled; results one after another."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    there = at < total
    x_in = at % patch
    rest = at // patch
    y_in = rest % patch
    rest //= patch
    channel = rest % channels
    rest //= channels
    column = rest % columns
    rest //= columns
    row = rest % rows
    picture = rest // rows
    source = ((picture * channels + channel) * height + row * patch + y_in) * width + column * patch + x_in
    value = (tl.load(x + source, mask=there) - tl.load(means + channel)) * tl.load(scales + channel)
    tl.store(out + at, value.to(tl.float16), mask=there)


@triton.jit
def patches_fixed_kernel(
    x, means, scales, out, total, channels: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    patch: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The same, of sizes known to the compiler."""
    rows: tl.constexpr = height // patch
    columns: tl.constexpr = width // patch
    at = tl.program_id(0) * block + tl.arange(0, block)
    there = at < total
    x_in = at % patch
    rest = at // patch
    y_in = rest % patch
    rest //= patch
    channel = rest % channels
    rest //= channels
    column = rest % columns
    rest //= columns
    row = rest % rows
    picture = rest // rows
    source = ((picture * channels + channel) * height + row * patch + y_in) * width + column * patch + x_in
    value = (tl.load(x + source, mask=there) - tl.load(means + channel)) * tl.load(scales + channel)
    tl.store(out + at, value.to(tl.float16), mask=there)


@triton.jit
def patches_grid_kernel(x, means, scales, out, channels, height, width, patch, line, block: tl.constexpr):
    """The same; a line of a picture's pixels a program, read as they stand."""
    pixel = tl.arange(0, block)
    there = pixel < line
    channel = tl.program_id(1) % channels
    picture = tl.program_id(1) // channels
    y = tl.program_id(0)
    value = tl.load(x + (tl.program_id(1) * height + y) * width + pixel, mask=there)
    value = (value - tl.load(means + channel)) * tl.load(scales + channel)
    column = pixel // patch
    token = (picture * (height // patch) + y // patch) * (line // patch) + column
    place = ((token * channels + channel) * patch + y % patch) * patch + pixel - column * patch
    tl.store(out + place, value.to(tl.float16), mask=there)


def patches(pictures: int = 64, height: int = 504, width: int = 504) -> tuple[dict[str, Run], Check]:
    channels, patch = 3, 14
    x = normal(pictures, channels, height, width, dtype=torch.float32)
    means, scales = noise(channels), noise(channels) + 2
    total = x.numel()
    out = torch.empty(total, device="cuda", dtype=torch.half)
    sizes = (channels, height, width, patch)
    grid = (triton.cdiv(total, 1024),)
    return {
        "flawed": lambda: patches_kernel[grid](
            x, means, scales, out, total, *sizes, height // patch, width // patch, 1024, num_warps=4
        ),
        "fixed": lambda: patches_fixed_kernel[grid](x, means, scales, out, total, *sizes, 1024, num_warps=4),
        "grid": lambda: patches_grid_kernel[(height, pictures * channels)](
            x, means, scales, out, *sizes, width, triton.next_power_of_2(width), num_warps=4
        ),
    }, lambda: out


# --- molecules, as sums of their atoms ---


@triton.jit
def readout_kernel(atoms, molecules, out, width: tl.constexpr, tile: tl.constexpr):
    """Add a tile of atoms to the molecules that they belong to."""
    atom = tl.program_id(0) * tile + tl.arange(0, tile)
    lane = tl.arange(0, width)
    molecule = tl.load(molecules + atom)
    value = tl.load(atoms + atom[:, None] * width + lane[None, :])
    tl.atomic_add(out + molecule[:, None] * width + lane[None, :], value, sem="relaxed")


@triton.jit
def readout_runs_kernel(atoms, molecules, out, width: tl.constexpr, tile: tl.constexpr):
    """The same; atoms of one molecule are added up first, as they stand one after another."""
    start = tl.program_id(0) * tile
    atom = start + tl.arange(0, tile)
    lane = tl.arange(0, width)
    molecule = tl.load(molecules + atom)
    value = tl.load(atoms + atom[:, None] * width + lane[None, :])
    for one in range(tl.load(molecules + start), tl.load(molecules + start + tile - 1) + 1):
        total = tl.sum(tl.where((molecule == one)[:, None], value, 0.0), 0)
        tl.atomic_add(out + one * width + lane, total, sem="relaxed")


@triton.jit
def readout_molecule_kernel(atoms, starts, out, width: tl.constexpr, tile: tl.constexpr):
    """The same, a molecule a program."""
    molecule = tl.program_id(0)
    last = tl.load(starts + molecule + 1)
    lane = tl.arange(0, width)
    total = tl.zeros((tile, width), tl.float32)
    for first in range(tl.load(starts + molecule), last, tile):
        atom = first + tl.arange(0, tile)[:, None]
        total += tl.load(atoms + atom * width + lane[None, :], mask=atom < last, other=0.0)
    tl.store(out + molecule * width + lane, tl.sum(total, 0))


def readout(count: int = 1 << 20, width: int = 64, mean: int = 24) -> tuple[dict[str, Run], Check]:
    atoms = noise(count, width)
    # Molecules of 9 to 39 atoms; the last one has what is left.
    sizes = (
        (mean + 15 * (noise(count // mean + 1024) + noise(count // mean + 1024).flip(0)) / 2).round().long()
    )
    ends = sizes.cumsum(0)
    ends = torch.cat([ends[ends < count], ends.new_full((1,), count)])
    starts = torch.cat([ends.new_zeros(1), ends]).int()
    molecules = torch.searchsorted(ends, torch.arange(count, device="cuda"), right=True).int()
    out = torch.empty(len(ends), width, device="cuda")

    def zeroed() -> torch.Tensor:
        found = out.clone()
        out.zero_()
        return found

    return {
        "flawed": lambda: readout_kernel[(count // 64,)](atoms, molecules, out, width, 64, num_warps=4),
        "runs": lambda: readout_runs_kernel[(count // 64,)](atoms, molecules, out, width, 64, num_warps=4),
        "molecule": lambda: readout_molecule_kernel[(len(ends),)](atoms, starts, out, width, 16, num_warps=2),
    }, zeroed


# --- pull of bodies on each other ---


@triton.jit
def pulls(bodies, count, body, start, end, block: tl.constexpr, piece: tl.constexpr):
    """What bodies from ``start`` to ``end`` do to those of a block."""
    x = tl.load(bodies + body)[:, None]
    y = tl.load(bodies + count + body)[:, None]
    z = tl.load(bodies + 2 * count + body)[:, None]
    to_x = tl.zeros((block, piece), tl.float32)
    to_y = tl.zeros((block, piece), tl.float32)
    to_z = tl.zeros((block, piece), tl.float32)
    for first in range(start, end, piece):
        other = bodies + first + tl.arange(0, piece)[None, :]
        dx = tl.load(other) - x
        dy = tl.load(other + count) - y
        dz = tl.load(other + 2 * count) - z
        near = tl.rsqrt(dx * dx + dy * dy + dz * dz + 1e-3)
        pull = tl.load(other + 3 * count) * near * near * near
        to_x += pull * dx
        to_y += pull * dy
        to_z += pull * dz
    return tl.sum(to_x, 1), tl.sum(to_y, 1), tl.sum(to_z, 1)


@triton.jit
def bodies_kernel(bodies, out, count, block: tl.constexpr, piece: tl.constexpr):
    """Accelerations of a block of bodies a program."""
    body = tl.program_id(0) * block + tl.arange(0, block)
    x, y, z = pulls(bodies, count, body, 0, count, block, piece)
    tl.store(out + body, x)
    tl.store(out + count + body, y)
    tl.store(out + 2 * count + body, z)


@triton.jit
def bodies_parts_kernel(bodies, out, count, part, block: tl.constexpr, piece: tl.constexpr):
    """The same by a part of the others."""
    body = tl.program_id(0) * block + tl.arange(0, block)
    start = tl.program_id(1) * part
    x, y, z = pulls(bodies, count, body, start, start + part, block, piece)
    tl.atomic_add(out + body, x, sem="relaxed")
    tl.atomic_add(out + count + body, y, sem="relaxed")
    tl.atomic_add(out + 2 * count + body, z, sem="relaxed")


def bodies(count: int = 8192, parts: int = 8) -> tuple[dict[str, Run], Check]:
    found = noise(4, count)
    found[3] = (found[3] + 1.5) / count
    out = torch.empty(3, count, device="cuda")

    def zeroed() -> torch.Tensor:
        kept = out.clone()
        out.zero_()
        return kept

    return {
        "flawed": lambda: bodies_kernel[(count // 128,)](found, out, count, 128, 16, num_warps=4),
        "smaller": lambda: bodies_kernel[(count // 32,)](found, out, count, 32, 16, num_warps=4),
        "parts": lambda: bodies_parts_kernel[(count // 128, parts)](
            found, out, count, count // parts, 128, 16, num_warps=4
        ),
    }, zeroed


# --- a step of an optimiser ---


@triton.jit
def adamw_kernel(
    weights, slopes, means, squares, new_weights, new_means, new_squares, rate, decay, first, second,
    root, block: tl.constexpr,
):  # fmt: skip
    """One step of AdamW on single-precision weights and states."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    slope = tl.load(slopes + at)
    weight = tl.load(weights + at)
    mean = tl.load(means + at)
    square = tl.load(squares + at)
    mean += first * (slope - mean)
    square += second * (slope * slope - square)
    weight -= decay * weight + rate * mean / (tl.sqrt(square) * root + 1e-8)
    tl.store(new_weights + at, weight)
    tl.store(new_means + at, mean)
    tl.store(new_squares + at, square)


def adamw(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    slopes, states = normal(count, dtype=torch.float32), noise(3, count)
    states[2] = states[2].square()
    new = torch.empty(3, count, device="cuda")
    return {
        "sound": lambda: adamw_kernel[(count // 1024,)](
            states[0], slopes, states[1], states[2], new[0], new[1], new[2], 3e-4, 3e-5, 0.1, 0.05,
            1.2, 1024, num_warps=4,
        ),
    }, lambda: new  # fmt: skip


# --- words, as what a model begins with ---


@triton.jit
def embedded_kernel(words, table, weight, out, width: tl.constexpr):
    """The embedding of a word, divided by its root mean square, a word a program."""
    place = tl.arange(0, width)
    word = tl.load(words + tl.program_id(0)).to(tl.int64)
    value = tl.load(table + word * width + place).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + 1e-6)
    value = value * scale * tl.load(weight + place).to(tl.float32)
    tl.store(out + tl.program_id(0).to(tl.int64) * width + place, value.to(tl.float16))


def embedded(count: int = 65536, known: int = 32768, width: int = 2048) -> tuple[dict[str, Run], Check]:
    table, weight = normal(known, width), normal(width)
    # Words as texts have them: the nth most frequent about 1/n as often as the first.
    words = ((noise(count) * 0.5 + 0.5) * torch.log(torch.tensor(float(known)))).exp().int() - 1
    out = torch.empty(count, width, device="cuda", dtype=torch.half)
    return {
        "sound": lambda: embedded_kernel[(count,)](words, table, weight, out, width, num_warps=4),
    }, lambda: out


STUDIES = (
    Study(
        "rotary_angles_anew_each_head",
        "rotary embedding of 32 heads of 16384 tokens",
        "sines and cosines of a token's angles are computed for each of its heads",
        (
            ("tables", "sines and cosines of all positions stored", ("expensive_math",)),
            ("all_heads", "a token's heads one after another in one program", ("expensive_math",)),
        ),
        rotary,
        tolerance=3e-3,
    ),
    Study(
        "token_loss_rows_of_odd_length",
        "cross entropy of 4096 tokens over 50257 words",
        "rows of an odd number of halves begin anywhere, so each value is loaded alone",
        (
            ("padded", "rows filled up to 50304 words", ("narrow_access",)),
            ("aligned", "pieces begin where 16 bytes begin", ("narrow_access",)),
        ),
        token_loss,
    ),
    Study(
        "student_rows_kept_whole",
        "divergence of a student's words from its teacher's, 4096 tokens over 32000 words",
        "two rows of 32768 values are more than 16 warps have registers for",
        (
            ("pieces", "one pass over pieces of the rows", ("local_memory", "low_occupancy")),
            ("lanes", "sums of each place of the pieces, joined at last", ("local_memory", "low_occupancy")),
        ),
        student,
    ),
    Study(
        "experts_picked_across_warps",
        "the best eight of 128 experts of 65536 tokens",
        "four warps for 128 values, so that each maximum waits at barriers",
        (
            ("one_warp", "a warp a token", ("barriers",)),
            ("row_a_warp", "eight tokens a program, each within a warp", ("barriers",)),
        ),
        experts,
    ),
    Study(
        "look_back_cache_read_each_head",
        "attention of 16 new tokens to up to 4096 before them, four query heads to one of the keys",
        "each query head reads keys and values that it shares with three others",
        (
            ("group", "four query heads as rows of one product", ("redundant_loads", "cache_locality")),
            ("turned", "the same as columns of one product", ("redundant_loads", "cache_locality")),
        ),
        look_back,
        tolerance=3e-3,
    ),
    Study(
        "recurrent_step_waits_for_load",
        "a gated linear recurrence of 512 steps, 32 sequences of 2048 channels",
        "a step's values are loaded when it begins",
        (
            ("staged", "what five later steps need is under way", ("memory_latency",)),
            ("scan", "32 steps at a time by a scan", ("memory_latency",)),
        ),
        recurrent,
        tolerance=3e-3,
    ),
    Study(
        "reach_four_channels_a_program",
        "the largest size of 8192 channels' values in 16384 rows, for quantisation",
        "four neighbouring halves of a row are read at a time",
        (
            ("sector", "16 neighbouring halves", ("uncoalesced_access",)),
            ("parts", "128 neighbouring halves of a part of the rows", ("uncoalesced_access",)),
        ),
        reach,
    ),
    Study(
        "patches_place_divided_each_value",
        "64 pictures of 504 by 504 cut into patches of 14 by 14",
        "five divisions by run-time sizes for the place of each value",
        (
            ("fixed", "sizes known to the compiler", ("integer_arithmetic",)),
            ("grid", "a line of pixels a program, one division a pixel", ("integer_arithmetic",)),
        ),
        patches,
        domain="vision",
    ),
    Study(
        "readout_atomic_each_atom",
        "sums of 64 features of a million atoms in molecules of about 24",
        "an atomic for each value, though atoms of a molecule stand one after another",
        (
            ("runs", "a tile's atoms of one molecule added up first", ("global_atomics",)),
            ("molecule", "a molecule a program", ("global_atomics",)),
        ),
        readout,
        domain="chemistry",
    ),
    Study(
        "bodies_in_64_programs",
        "accelerations of 8192 bodies by all others",
        "programs of 128 bodies are fewer than multiprocessors",
        (
            ("smaller", "32 bodies a program", ("small_grid",)),
            ("parts", "eight parts of the others, added up by atomics", ("small_grid",)),
        ),
        bodies,
        domain="physics",
    ),
    Study(
        "sound_triton_adamw_of_four_streams",
        "a step of AdamW on 16777216 weights, in Triton",
        "",
        (),
        adamw,
    ),
    Study(
        "sound_triton_words_embedded_and_normed",
        "embeddings of 65536 words divided by their root mean square, in Triton",
        "",
        (),
        embedded,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
