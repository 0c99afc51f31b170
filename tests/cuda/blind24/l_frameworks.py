"""Studies in Triton of models of language, run by what tests/cuda/variants/frameworks.py provides.

Usage: l_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- attention ---


@triton.jit
def turn_halves(x, out, start, cosine, sine, half: tl.constexpr):
    left, right = tl.load(x + start).to(tl.float32), tl.load(x + start + half).to(tl.float32)
    tl.store(out + start, (left * cosine - right * sine).to(tl.float16))
    tl.store(out + start + half, (right * cosine + left * sine).to(tl.float16))


@triton.jit
def rotary_kernel(x, out, heads, base, each: tl.constexpr, half: tl.constexpr):
    """Halves of heads turned by angles that grow with a token's place; ``each`` tokens of a head a program."""
    place = (tl.program_id(1) * each + tl.arange(0, each))[:, None]
    at = tl.arange(0, half)[None, :]
    angle = place.to(tl.float32) / tl.exp2(at.to(tl.float32) * base)
    start = (place * heads + tl.program_id(0)) * 2 * half + at
    turn_halves(x, out, start, tl.cos(angle), tl.sin(angle), half)


@triton.jit
def rotary_heads_kernel(x, out, heads, base, each: tl.constexpr, half: tl.constexpr):
    """The same; ``each`` heads of a token a program."""
    place = tl.program_id(1)
    head = (tl.program_id(0) * each + tl.arange(0, each))[:, None]
    at = tl.arange(0, half)[None, :]
    angle = place.to(tl.float32) / tl.exp2(at.to(tl.float32) * base)
    start = (place * heads + head) * 2 * half + at
    turn_halves(x, out, start, tl.cos(angle), tl.sin(angle), half)


@triton.jit
def rotary_table_kernel(x, cosines, sines, out, heads, each: tl.constexpr, half: tl.constexpr):
    """The same as the first; functions of all angles from a table."""
    place = (tl.program_id(1) * each + tl.arange(0, each))[:, None]
    at = tl.arange(0, half)[None, :]
    cosine, sine = tl.load(cosines + place * half + at), tl.load(sines + place * half + at)
    start = (place * heads + tl.program_id(0)) * 2 * half + at
    turn_halves(x, out, start, cosine, sine, half)


def rotary(tokens: int = 8192, heads: int = 32, half: int = 64) -> tuple[dict[str, Run], Check]:
    x = noise(tokens, heads, 2 * half, dtype=torch.half)
    out = torch.empty_like(x)
    base = 18.931568569324174 / half  # of the logarithm of 500000
    periods = torch.exp2(torch.arange(half, device="cuda").float() * base)
    angles = torch.arange(tokens, device="cuda").float()[:, None] / periods[None, :]
    cosines, sines = angles.cos(), angles.sin()
    grid = (heads, tokens // 16)
    return {
        "flawed": lambda: rotary_kernel[grid](x, out, heads, base, 16, half, num_warps=4),
        "heads": lambda: rotary_heads_kernel[(heads // 32, tokens)](
            x, out, heads, base, 32, half, num_warps=2
        ),
        "table": lambda: rotary_table_kernel[grid](x, cosines, sines, out, heads, 16, half, num_warps=4),
    }, out.float


@triton.jit
def attended_tile(
    q, k, v, out, start, head, length, scale, rows: tl.constexpr, keys: tl.constexpr, width: tl.constexpr
):
    """What ``rows`` queries of a head from ``start`` take of the values up to their own."""
    place, at, key = start + tl.arange(0, rows), tl.arange(0, width), tl.arange(0, keys)
    own = head * length * width
    query = tl.load(q + own + place[:, None] * width + at[None, :])
    most = tl.full((rows,), -1.0e30, tl.float32)
    total = tl.zeros((rows,), tl.float32)
    found = tl.zeros((rows, width), tl.float32)
    for first in range(0, start, keys):
        keys_at = own + (first + key) * width
        score = tl.dot(query, tl.load(k + keys_at[None, :] + at[:, None])) * scale
        higher = tl.maximum(most, tl.max(score, 1))
        share = tl.exp2(score - higher[:, None])
        less = tl.exp2(most - higher)
        total = total * less + tl.sum(share, 1)
        value = tl.load(v + keys_at[:, None] + at[None, :])
        found = tl.dot(share.to(tl.float16), value, found * less[:, None])
        most = higher
    for first in range(start, start + rows, keys):
        keys_at = own + (first + key) * width
        score = tl.dot(query, tl.load(k + keys_at[None, :] + at[:, None])) * scale
        score = tl.where(place[:, None] >= first + key[None, :], score, -1.0e30)
        higher = tl.maximum(most, tl.max(score, 1))
        share = tl.exp2(score - higher[:, None])
        less = tl.exp2(most - higher)
        total = total * less + tl.sum(share, 1)
        value = tl.load(v + keys_at[:, None] + at[None, :])
        found = tl.dot(share.to(tl.float16), value, found * less[:, None])
        most = higher
    found = found / total[:, None]
    tl.store(out + own + place[:, None] * width + at[None, :], found.to(tl.float16))


@triton.jit
def attended_kernel(
    q,
    k,
    v,
    out,
    length,
    scale,
    back: tl.constexpr,
    rows: tl.constexpr,
    keys: tl.constexpr,
    width: tl.constexpr,
):
    """Attention to what came before; a piece of a head's queries a program."""
    piece = tl.program_id(1)
    if back:
        piece = tl.num_programs(1) - 1 - piece
    attended_tile(q, k, v, out, piece * rows, tl.program_id(0), length, scale, rows, keys, width)


@triton.jit
def attended_pair_kernel(
    q, k, v, out, length, scale, rows: tl.constexpr, keys: tl.constexpr, width: tl.constexpr
):
    """The same; a piece from the begin and one from the end a program."""
    for turn in range(2):
        piece = tl.program_id(1)
        if turn == 0:
            piece = length // rows - 1 - piece
        attended_tile(q, k, v, out, piece * rows, tl.program_id(0), length, scale, rows, keys, width)


def attended(heads: int = 32, length: int = 4096, width: int = 64) -> tuple[dict[str, Run], Check]:
    q, k, v = noise(3, heads, length, width, dtype=torch.half)
    out = torch.empty_like(q)
    scale = 1.4426950408889634 / width**0.5
    pieces = length // 128

    def side(back: bool) -> Run:
        return lambda: attended_kernel[(heads, pieces)](
            q, k, v, out, length, scale, back, 128, 64, width, num_warps=4, num_stages=3
        )

    return {
        "flawed": side(False),
        "back": side(True),
        "pair": lambda: attended_pair_kernel[(heads, pieces // 2)](
            q, k, v, out, length, scale, 128, 64, width, num_warps=4, num_stages=3
        ),
    }, out.float


# --- sampling ---


@triton.jit
def cut_kernel(x, out, wanted, steps, width: tl.constexpr, piece: tl.constexpr):
    """The score that at least ``wanted`` of a row reach, halved down to; ``piece`` scores at a time."""
    row = x + tl.program_id(0) * width
    at = tl.arange(0, piece)
    low, high = -16.0, 16.0
    for _ in range(steps):
        middle = 0.5 * (low + high)
        count = tl.zeros((piece,), tl.int32)
        for start in range(0, width, piece):
            count += (tl.load(row + start + at) >= middle).to(tl.int32)
        enough = tl.sum(count, 0) >= wanted
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    tl.store(out + tl.program_id(0), low)


@triton.jit
def cut_held_kernel(x, out, wanted, steps, width: tl.constexpr):
    """The same of a row that is loaded once."""
    value = tl.load(x + tl.program_id(0) * width + tl.arange(0, width))
    low, high = -16.0, 16.0
    for _ in range(steps):
        middle = 0.5 * (low + high)
        enough = tl.sum((value >= middle).to(tl.int32), 0) >= wanted
        low = tl.where(enough, middle, low)
        high = tl.where(enough, high, middle)
    tl.store(out + tl.program_id(0), low)


@triton.jit
def cut_quarters_kernel(x, out, wanted, steps, width: tl.constexpr, piece: tl.constexpr):
    """The same by quarters: three counts each time the row is read."""
    row = x + tl.program_id(0) * width
    at = tl.arange(0, piece)
    low, high = -16.0, 16.0
    for _ in range(0, steps, 2):
        middle = 0.5 * (low + high)
        first, last = 0.5 * (low + middle), 0.5 * (middle + high)
        count = tl.zeros((piece,), tl.int32)
        first_count = tl.zeros((piece,), tl.int32)
        last_count = tl.zeros((piece,), tl.int32)
        for start in range(0, width, piece):
            value = tl.load(row + start + at)
            count += (value >= middle).to(tl.int32)
            first_count += (value >= first).to(tl.int32)
            last_count += (value >= last).to(tl.int32)
        enough = tl.sum(count, 0) >= wanted
        first_enough = tl.sum(first_count, 0) >= wanted
        last_enough = tl.sum(last_count, 0) >= wanted
        low = tl.where(last_enough, last, tl.where(enough, middle, tl.where(first_enough, first, low)))
        high = tl.where(last_enough, high, tl.where(enough, last, tl.where(first_enough, middle, first)))
    tl.store(out + tl.program_id(0), low)


def cut(
    rows: int = 264, width: int = 32768, wanted: int = 50, steps: int = 24
) -> tuple[dict[str, Run], Check]:
    uniform = noise(rows, width)
    x = uniform * 4.0 + uniform.flip(1) ** 3 * 8.0
    out = torch.empty(rows, device="cuda")
    return {
        "flawed": lambda: cut_kernel[(rows,)](x, out, wanted, steps, width, 4096, num_warps=8),
        "held": lambda: cut_held_kernel[(rows,)](x, out, wanted, steps, width, num_warps=16),
        "quarters": lambda: cut_quarters_kernel[(rows,)](x, out, wanted, steps, width, 4096, num_warps=8),
    }, lambda: out


# --- experts ---


@triton.jit
def loads_kernel(choices, counts, own, experts: tl.constexpr, block: tl.constexpr):
    """How many tokens of each sequence, of ``own`` choices, chose each expert."""
    start = tl.program_id(0) * block
    expert = tl.load(choices + start + tl.arange(0, block))
    tl.atomic_add(counts + start // own * experts + expert, 1, sem="relaxed")


@triton.jit
def loads_histogram_kernel(choices, counts, own, experts: tl.constexpr, block: tl.constexpr):
    """The same; a program's own counts first."""
    start = tl.program_id(0) * block
    expert = tl.load(choices + start + tl.arange(0, block))
    to = counts + start // own * experts + tl.arange(0, experts)
    tl.atomic_add(to, tl.histogram(expert, experts), sem="relaxed")


@triton.jit
def loads_sequence_kernel(choices, counts, own, experts: tl.constexpr, block: tl.constexpr):
    """The same; a sequence a program."""
    sequence = tl.program_id(0)
    total = tl.zeros((experts,), tl.int32)
    for start in range(0, own, block):
        expert = tl.load(choices + sequence * own + start + tl.arange(0, block))
        total += tl.histogram(expert, experts)
    tl.store(counts + sequence * experts + tl.arange(0, experts), total)


def loads(
    sequences: int = 528, tokens: int = 4096, chosen: int = 4, experts: int = 64
) -> tuple[dict[str, Run], Check]:
    own = tokens * chosen
    choices = (noise(sequences * own).abs().sqrt() * experts).int().clamp(max=experts - 1)
    counts = torch.zeros(sequences, experts, device="cuda", dtype=torch.int32)
    count = sequences * own
    return {
        "flawed": lambda: loads_kernel[(count // 1024,)](choices, counts, own, experts, 1024, num_warps=4),
        "histogram": lambda: loads_histogram_kernel[(count // 4096,)](
            choices, counts, own, experts, 4096, num_warps=4
        ),
        "sequence": lambda: loads_sequence_kernel[(sequences,)](
            choices, counts, own, experts, 4096, num_warps=8
        ),
    }, lambda: (counts.clone(), counts.zero_())[0]


# --- training ---


@triton.jit
def clipped_kernel(gradient, norm, out, count, limit, block: tl.constexpr):
    """All gradients, shrunk where their norm is above a limit."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    scale = tl.minimum(limit / (tl.load(norm) + 1e-6), 1.0)
    value = tl.load(gradient + at, inside, 0.0).to(tl.float32)
    tl.store(out + at, (value * scale).to(tl.float16), inside)


@triton.jit
def clipped_whole_kernel(gradient, norm, out, count, limit, block: tl.constexpr):
    """The same; only the last program looks where the gradients end."""
    start = tl.program_id(0) * block
    at = start + tl.arange(0, block)
    scale = tl.minimum(limit / (tl.load(norm) + 1e-6), 1.0)
    if start + block <= count:
        value = tl.load(gradient + at).to(tl.float32)
        tl.store(out + at, (value * scale).to(tl.float16))
    else:
        inside = at < count
        value = tl.load(gradient + at, inside, 0.0).to(tl.float32)
        tl.store(out + at, (value * scale).to(tl.float16), inside)


def clipped(count: int = 67_174_093) -> tuple[dict[str, Run], Check]:
    padded = (count + 15) // 16 * 16
    gradient, out = noise(padded, dtype=torch.half), torch.zeros(padded, device="cuda", dtype=torch.half)
    norm = torch.full((1,), 40.0, device="cuda")

    def grid(block: int) -> tuple[int]:
        return (triton.cdiv(count, block),)

    return {
        "flawed": lambda: clipped_kernel[grid(1024)](gradient, norm, out, count, 10.0, 1024, num_warps=4),
        "whole": lambda: clipped_whole_kernel[grid(1024)](
            gradient, norm, out, count, 10.0, 1024, num_warps=4
        ),
        "rounded": lambda: clipped_kernel[grid(1024)](gradient, norm, out, padded, 10.0, 1024, num_warps=4),
    }, out[:count].float


@triton.jit
def added_norm_kernel(x, more, weight, added, out, width: tl.constexpr):
    """A residual added, and the sum by its root mean square; a row a program."""
    at = tl.arange(0, width)
    row = tl.program_id(0) * width + at
    value = tl.load(x + row).to(tl.float32) + tl.load(more + row).to(tl.float32)
    tl.store(added + row, value.to(tl.float16))
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + 1e-6)
    tl.store(out + row, (value * scale * tl.load(weight + at).to(tl.float32)).to(tl.float16))


def added_norm(rows: int = 8192, width: int = 4096) -> tuple[dict[str, Run], Check]:
    x, more = noise(2, rows, width, dtype=torch.half)
    weight = noise(width, dtype=torch.half)
    added, out = torch.empty_like(x), torch.empty_like(x)
    return {
        "sound": lambda: added_norm_kernel[(rows,)](x, more, weight, added, out, width, num_warps=8),
    }, lambda: torch.cat([added, out]).float()


STUDIES = (
    Study(
        "triton_rotary_angles_again_for_each_head",
        "rotary places of 32 heads of 128 half values for 8192 tokens, in Triton",
        "each head works out the sines and cosines of its tokens' angles again",
        (
            ("heads", "all heads of a token a program, four a thread for each angle", ("expensive_math",)),
            ("table", "sines and cosines from a table", ("expensive_math",)),
        ),
        rotary,
        tolerance=5e-3,
    ),
    Study(
        "triton_causal_attention_longest_last",
        "causal attention of 32 heads of 64 half values over 4096 tokens, in Triton",
        "the programs of the last queries, which look back the farthest, begin last",
        (
            ("back", "the last queries first", ("workload_imbalance",)),
            ("pair", "a piece from the begin and one from the end a program", ("workload_imbalance",)),
        ),
        attended,
        tolerance=2e-3,
    ),
    Study(
        "triton_fiftieth_score_row_read_24_times",
        "the score that 50 of 32768 reach, of 264 rows, by halving 24 times, in Triton",
        "each step reads the row again",
        (
            ("held", "the row in registers", ("redundant_loads",)),
            ("quarters", "three counts each time the row is read: half as often", ("redundant_loads",)),
        ),
        cut,
        tolerance=1e-5,
        domain="sampling",
    ),
    Study(
        "triton_expert_loads_atomic_each_choice",
        "how many of 16384 choices in each of 528 sequences fell on each of 64 experts, in Triton",
        "an atomic for each choice, on 64 words a sequence",
        (
            ("histogram", "a histogram of 4096 choices first", ("global_atomics",)),
            ("sequence", "a sequence a program, histograms added in registers", ("global_atomics",)),
        ),
        loads,
        tolerance=0.0,
        domain="routing",
    ),
    Study(
        "triton_clipped_gradients_of_odd_count",
        "67174093 half gradients shrunk to a norm, in Triton",
        "a mask of an odd count: a lane loads and stores two bytes at a time",
        (
            ("whole", "a mask for the last program alone", ("narrow_access",)),
            ("rounded", "the count rounded up to sixteen, as the memory is", ("narrow_access",)),
        ),
        clipped,
        tolerance=1e-3,
        domain="training",
    ),
    Study(
        "sound_triton_residual_added_and_normalised",
        "a residual added to 8192 rows of 4096 half values, and their RMS norm, in Triton",
        "",
        (),
        added_norm,
        tolerance=2e-3,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
