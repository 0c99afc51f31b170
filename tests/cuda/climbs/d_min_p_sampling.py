"""A language model's next tokens: of those with at least a share of the likeliest one's probability one is drawn, by
the largest sum of its logarithm and Gumbel noise; with the logarithm of its probability.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import torch
import triton
import triton.language as tl
from tried import DEVICE, empty, judge, small
from triton.language.extra import libdevice

ROWS, VOCABULARY, TEMPERATURE, LEAST, SEED = small(256, 8), small(128256, 9216), 0.8, 0.1, 20
# Logits about as wide as those of language models, and in each row a few words that fit.
generator = torch.Generator(device=DEVICE).manual_seed(1)
logits = torch.randn(ROWS, VOCABULARY, device=DEVICE, generator=generator) * 2
fitting = torch.randint(0, VOCABULARY, (ROWS, 6), device=DEVICE, generator=generator)
logits.scatter_(1, fitting, torch.rand(ROWS, 6, device=DEVICE, generator=generator) * 4 + 7)
tokens, chances = empty(ROWS, dtype=torch.int32), empty(ROWS)


@triton.jit
def as_it_is(logits, tokens, chances, vocabulary, temperature, least, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf"))
        most = tl.maximum(most, x / temperature)
    largest = tl.max(most, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf"))
        total += tl.exp(x / temperature - largest)
    norm = tl.log(tl.sum(total, 0))
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    chance = tl.zeros((BLOCK,), tl.float32)
    which = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf"))
        share = x / temperature - largest
        noise = -tl.log(-tl.log(tl.rand(seed, row * vocabulary + at)))
        score = tl.where(tl.exp(share) >= least, share + noise, float("-inf"))
        better = score > best
        best = tl.where(better, score, best)
        chance = tl.where(better, share - norm, chance)
        which = tl.where(better, at, which)
    winner = tl.argmax(best, 0)
    tl.store(tokens + row, tl.sum(tl.where(lane == winner, which, 0), 0))
    tl.store(chances + row, tl.sum(tl.where(lane == winner, chance, 0.0), 0))


# First step, redundant loads: the largest value and the sum in one pass, each lane's own or the block's.
@triton.jit
def drawn(
    logits, tokens, chances, vocabulary, temperature, least, seed, row, lane, largest, norm, BLOCK: tl.constexpr
):  # fmt: skip
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    chance = tl.zeros((BLOCK,), tl.float32)
    which = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf"))
        share = x / temperature - largest
        noise = -tl.log(-tl.log(tl.rand(seed, row * vocabulary + at)))
        score = tl.where(tl.exp(share) >= least, share + noise, float("-inf"))
        better = score > best
        best = tl.where(better, score, best)
        chance = tl.where(better, share - norm, chance)
        which = tl.where(better, at, which)
    winner = tl.argmax(best, 0)
    tl.store(tokens + row, tl.sum(tl.where(lane == winner, which, 0), 0))
    tl.store(chances + row, tl.sum(tl.where(lane == winner, chance, 0.0), 0))


@triton.jit
def online_by_lane(logits, tokens, chances, vocabulary, temperature, least, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf")) / temperature
        larger = tl.maximum(most, x)
        total = total * tl.exp(most - larger) + tl.exp(x - larger)
        most = larger
    largest = tl.max(most, 0)
    norm = tl.log(tl.sum(total * tl.exp(most - largest), 0))
    drawn(logits, tokens, chances, vocabulary, temperature, least, seed, row, lane, largest, norm, BLOCK)


@triton.jit
def online_by_block(logits, tokens, chances, vocabulary, temperature, least, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    largest = float("-inf")
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf")) / temperature
        larger = tl.maximum(largest, tl.max(x, 0))
        total = total * tl.exp(largest - larger) + tl.exp(x - larger)
        largest = larger
    norm = tl.log(tl.sum(total, 0))
    drawn(logits, tokens, chances, vocabulary, temperature, least, seed, row, lane, largest, norm, BLOCK)


# Second step, expensive functions: fast logarithms, powers of two of an argument scaled once, a product with the
# temperature's reciprocal; with algebra, shares are compared with the least one's logarithm.
LOG2_E, LN_2 = tl.constexpr(1.4426950408889634), tl.constexpr(0.6931471805599453)


@triton.jit
def fast_functions(
    logits, tokens, chances, vocabulary, temperature, least, seed, BLOCK: tl.constexpr, ALGEBRA: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    scale = LOG2_E / temperature
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf")) * scale
        larger = tl.maximum(most, x)
        total = total * tl.exp2(most - larger) + tl.exp2(x - larger)
        most = larger
    largest = tl.max(most, 0)
    norm = tl.log(tl.sum(total * tl.exp2(most - largest), 0))
    lowest = tl.log2(least)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    chance = tl.zeros((BLOCK,), tl.float32)
    which = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, vocabulary, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf"))
        share = x * scale - largest
        noise = -libdevice.fast_logf(-libdevice.fast_logf(tl.rand(seed, row * vocabulary + at)))
        likely = share >= lowest if ALGEBRA else tl.exp2(share) >= least
        score = tl.where(likely, share * LN_2 + noise, float("-inf"))
        better = score > best
        best = tl.where(better, score, best)
        chance = tl.where(better, share * LN_2 - norm, chance)
        which = tl.where(better, at, which)
    winner = tl.argmax(best, 0)
    tl.store(tokens + row, tl.sum(tl.where(lane == winner, which, 0), 0))
    tl.store(chances + row, tl.sum(tl.where(lane == winner, chance, 0.0), 0))


# Third step, low occupancy: a row's sum and its best word are split over eight programs; or 16 warps a program.
EIGHT = 8  # divides the vocabulary
partial_most, partial_total, partial_best, partial_share = (empty(ROWS, EIGHT) for _ in range(4))
partial_which = empty(ROWS, EIGHT, dtype=torch.int32)


@triton.jit
def sum_of_a_part(logits, most_of, total_of, vocabulary, room, temperature, BLOCK: tl.constexpr):
    row, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    lane = tl.arange(0, BLOCK)
    scale = LOG2_E / temperature
    end = (part + 1) * room
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * room, end, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < end, other=float("-inf")) * scale
        larger = tl.maximum(most, x)
        total = total * tl.exp2(most - larger) + tl.exp2(x - larger)
        most = larger
    largest = tl.max(most, 0)
    tl.store(most_of + row * parts + part, largest)
    tl.store(total_of + row * parts + part, tl.sum(total * tl.exp2(most - largest), 0))


@triton.jit
def best_of_a_part(
    logits, most_of, total_of, best_of, share_of, which_of, vocabulary, room, temperature, least, seed,
    PARTS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row, part = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, BLOCK)
    scale = LOG2_E / temperature
    end = (part + 1) * room
    own = row * PARTS + tl.arange(0, PARTS)
    most = tl.load(most_of + own)
    largest = tl.max(most, 0)
    norm = tl.log(tl.sum(tl.load(total_of + own) * tl.exp2(most - largest), 0))
    lowest = tl.log2(least)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    chance = tl.zeros((BLOCK,), tl.float32)
    which = tl.zeros((BLOCK,), tl.int32)
    for start in range(part * room, end, BLOCK):
        at = start + lane
        x = tl.load(logits + row * vocabulary + at, mask=at < end, other=float("-inf"))
        share = x * scale - largest
        noise = -libdevice.fast_logf(-libdevice.fast_logf(tl.rand(seed, row * vocabulary + at)))
        score = tl.where(share >= lowest, share * LN_2 + noise, float("-inf"))
        better = score > best
        best = tl.where(better, score, best)
        chance = tl.where(better, share * LN_2 - norm, chance)
        which = tl.where(better, at, which)
    winner = tl.argmax(best, 0)
    tl.store(best_of + row * PARTS + part, tl.max(best, 0))
    tl.store(share_of + row * PARTS + part, tl.sum(tl.where(lane == winner, chance, 0.0), 0))
    tl.store(which_of + row * PARTS + part, tl.sum(tl.where(lane == winner, which, 0), 0))


@triton.jit
def best_of_all_parts(best_of, share_of, which_of, tokens, chances, PARTS: tl.constexpr):
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    winner = row * PARTS + tl.argmax(tl.load(best_of + row * PARTS + part), 0)
    tl.store(tokens + row, tl.load(which_of + winner))
    tl.store(chances + row, tl.load(share_of + winner))


def split_over_eight() -> None:
    grid, room = (ROWS, EIGHT), VOCABULARY // EIGHT
    sum_of_a_part[grid](logits, partial_most, partial_total, VOCABULARY, room, TEMPERATURE, 1024)
    best_of_a_part[grid](
        logits, partial_most, partial_total, partial_best, partial_share, partial_which, VOCABULARY, room,
        TEMPERATURE, LEAST, SEED, EIGHT, 1024
    )  # fmt: skip
    best_of_all_parts[(ROWS,)](
        partial_best, partial_share, partial_which, tokens, chances, EIGHT, num_warps=1
    )


# Each row is read once, by 32 programs, which keep the largest value of 1024 and their sum; noise is made only for the
# pieces that have a word to draw.
PIECE, SPLIT, PARTS = 1024, 4, 8


@triton.jit
def expert_pieces(
    logits, maxima, sums, vocabulary, temperature, ROOM: tl.constexpr, PIECE: tl.constexpr, SPLIT: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    piece = tl.program_id(1) * SPLIT + tl.arange(0, SPLIT)
    at = piece[:, None] * PIECE + tl.arange(0, PIECE)[None, :]
    x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf")) / temperature
    largest = tl.max(x, 1)
    total = tl.sum(tl.exp(x - tl.where(largest == float("-inf"), 0.0, largest)[:, None]), 1)
    tl.store(maxima + row * ROOM + piece, largest)
    tl.store(sums + row * ROOM + piece, total)


@triton.jit
def expert(
    logits, maxima, sums, scores, places, shares, vocabulary, temperature, least, seed,
    ROOM: tl.constexpr, PIECE: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    part = tl.program_id(1)
    pieces = row * ROOM + tl.arange(0, ROOM)
    most = tl.load(maxima + pieces)
    largest = tl.max(most, 0)
    norm = tl.log(tl.sum(tl.load(sums + pieces) * tl.exp(most - largest), 0))
    lane = tl.arange(0, PIECE)
    best = tl.full((PIECE,), float("-inf"), tl.float32)
    chance = tl.zeros((PIECE,), tl.float32)
    which = tl.zeros((PIECE,), tl.int32)
    for piece in range(part, ROOM, PARTS):
        if tl.exp(tl.load(maxima + row * ROOM + piece) - largest) >= least:
            at = piece * PIECE + lane
            x = tl.load(logits + row * vocabulary + at, mask=at < vocabulary, other=float("-inf"))
            share = x / temperature - largest
            noise = -tl.log(-tl.log(tl.rand(seed, row * vocabulary + at)))
            score = tl.where(tl.exp(share) >= least, share + noise, float("-inf"))
            better = score > best
            best = tl.where(better, score, best)
            chance = tl.where(better, share - norm, chance)
            which = tl.where(better, at, which)
    winner = tl.argmax(best, 0)
    tl.store(scores + row * PARTS + part, tl.max(best, 0))
    tl.store(places + row * PARTS + part, tl.sum(tl.where(lane == winner, which, 0), 0))
    tl.store(shares + row * PARTS + part, tl.sum(tl.where(lane == winner, chance, 0.0), 0))


@triton.jit
def expert_choice(scores, places, shares, tokens, chances, PARTS: tl.constexpr):
    row = tl.program_id(0)
    part = tl.arange(0, PARTS)
    winner = tl.argmax(tl.load(scores + row * PARTS + part), 0)
    tl.store(tokens + row, tl.load(places + row * PARTS + winner))
    tl.store(chances + row, tl.load(shares + row * PARTS + winner))


room = triton.next_power_of_2(triton.cdiv(VOCABULARY, PIECE))
maxima, sums = empty(ROWS, room), empty(ROWS, room)
scores, places, shares = empty(ROWS, PARTS), empty(ROWS, PARTS, dtype=torch.int32), empty(ROWS, PARTS)


def in_three_steps() -> None:
    expert_pieces[(ROWS, room // SPLIT)](logits, maxima, sums, VOCABULARY, TEMPERATURE, room, PIECE, SPLIT)
    expert[(ROWS, PARTS)](
        logits, maxima, sums, scores, places, shares, VOCABULARY, TEMPERATURE, LEAST, SEED, room, PIECE, PARTS
    )
    expert_choice[(ROWS,)](scores, places, shares, tokens, chances, PARTS, num_warps=1)


sampled = (logits, tokens, chances, VOCABULARY, TEMPERATURE, LEAST, SEED)
judge({
    "as_it_is": lambda: as_it_is[(ROWS,)](*sampled, 1024),
    "online_by_lane": lambda: online_by_lane[(ROWS,)](*sampled, 1024),
    "online_by_block": lambda: online_by_block[(ROWS,)](*sampled, 1024),
    "fast_functions": lambda: fast_functions[(ROWS,)](*sampled, 1024, False),
    "fast_and_algebra": lambda: fast_functions[(ROWS,)](*sampled, 1024, True),
    "split_over_eight": split_over_eight,
    "sixteen_warps": lambda: fast_functions[(ROWS,)](*sampled, 1024, True, num_warps=16),
    "expert": in_three_steps,
}, [tokens, chances])  # fmt: skip
