"""Studies in Triton of models of language, pictures and tastes, run by what tests/cuda/variants/frameworks.py provides.

Usage: j_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- language models ---


@triton.jit
def gated_kernel(
    x, gates, ups, out, width, depth, rows: tl.constexpr, columns: tl.constexpr, piece: tl.constexpr
):
    """The gated half of a feed-forward layer: ``silu(x @ gates) * (x @ ups)``."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
    column = tl.program_id(1) * columns + tl.arange(0, columns)[None, :]
    at = tl.arange(0, piece)
    x_at = x + row * depth + at[None, :]
    weight = at[:, None] * width + column
    gate = tl.zeros((rows, columns), tl.float32)
    up = tl.zeros((rows, columns), tl.float32)
    for _ in range(0, depth, piece):
        value = tl.load(x_at)
        gate = tl.dot(value, tl.load(gates + weight), gate)
        up = tl.dot(value, tl.load(ups + weight), up)
        x_at += piece
        weight += piece * width
    tl.store(out + row * width + column, (gate * tl.sigmoid(gate) * up).to(tl.float16))


def gated(count: int = 2048, depth: int = 2048, width: int = 5632) -> tuple[dict[str, Run], Check]:
    x = noise(count, depth, dtype=torch.half)
    weights = noise(2, depth, width, dtype=torch.half) * 0.05
    out = torch.empty(count, width, device="cuda", dtype=torch.half)

    def side(rows: int, columns: int, warps: int) -> Run:
        grid = (count // rows, width // columns)
        return lambda: gated_kernel[grid](
            x, weights[0], weights[1], out, width, depth, rows, columns, 64, num_warps=warps, num_stages=3
        )

    return {
        "flawed": side(128, 128, 4),
        "eight_warps": side(128, 128, 8),
        "narrow": side(128, 64, 4),
    }, out.float


@triton.jit
def scan_step(state, x, step, rate, into, back):
    """A step of a state-space model for some channels: the state, and what it gives."""
    state = state * tl.exp(step[:, None] * rate) + (step * x)[:, None] * into[None, :]
    return state, tl.sum(state * back[None, :], 1)


@triton.jit
def scan_kernel(x, steps, rates, into, back, out, length, channels, width: tl.constexpr, size: tl.constexpr):
    """The scan of a selective state-space model; ``width`` channels of a sequence a program."""
    channel = tl.program_id(0) * width + tl.arange(0, width)
    place = tl.arange(0, size)
    rate = tl.load(rates + channel[:, None] * size + place[None, :])
    at = tl.program_id(1) * length * channels + channel
    own = tl.program_id(1) * length * size + place
    state = tl.zeros((width, size), tl.float32)
    for _ in range(length):
        state, found = scan_step(
            state, tl.load(x + at), tl.load(steps + at), rate, tl.load(into + own), tl.load(back + own)
        )
        tl.store(out + at, found)
        at += channels
        own += size


@triton.jit
def scan_four_kernel(
    x, steps, rates, into, back, out, length, channels, width: tl.constexpr, size: tl.constexpr
):
    """The same; four steps are loaded before the first is taken."""
    channel = tl.program_id(0) * width + tl.arange(0, width)
    place = tl.arange(0, size)
    rate = tl.load(rates + channel[:, None] * size + place[None, :])
    at = tl.program_id(1) * length * channels + channel
    own = tl.program_id(1) * length * size + place
    state = tl.zeros((width, size), tl.float32)
    for _ in range(0, length, 4):
        x0, x1 = tl.load(x + at), tl.load(x + at + channels)
        x2, x3 = tl.load(x + at + 2 * channels), tl.load(x + at + 3 * channels)
        step0, step1 = tl.load(steps + at), tl.load(steps + at + channels)
        step2, step3 = tl.load(steps + at + 2 * channels), tl.load(steps + at + 3 * channels)
        into0, into1 = tl.load(into + own), tl.load(into + own + size)
        into2, into3 = tl.load(into + own + 2 * size), tl.load(into + own + 3 * size)
        back0, back1 = tl.load(back + own), tl.load(back + own + size)
        back2, back3 = tl.load(back + own + 2 * size), tl.load(back + own + 3 * size)
        state, found0 = scan_step(state, x0, step0, rate, into0, back0)
        state, found1 = scan_step(state, x1, step1, rate, into1, back1)
        state, found2 = scan_step(state, x2, step2, rate, into2, back2)
        state, found3 = scan_step(state, x3, step3, rate, into3, back3)
        tl.store(out + at, found0)
        tl.store(out + at + channels, found1)
        tl.store(out + at + 2 * channels, found2)
        tl.store(out + at + 3 * channels, found3)
        at += 4 * channels
        own += 4 * size


@triton.jit
def scan_ahead_kernel(
    x, steps, rates, into, back, out, length, channels, width: tl.constexpr, size: tl.constexpr
):
    """The same; what a step needs is loaded three steps before."""
    channel = tl.program_id(0) * width + tl.arange(0, width)
    place = tl.arange(0, size)
    rate = tl.load(rates + channel[:, None] * size + place[None, :])
    at = tl.program_id(1) * length * channels + channel
    own = tl.program_id(1) * length * size + place
    last_at, last_own = at + (length - 1) * channels, own + (length - 1) * size
    state = tl.zeros((width, size), tl.float32)
    x0, x1, x2 = tl.load(x + at), tl.load(x + at + channels), tl.load(x + at + 2 * channels)
    step0, step1, step2 = (
        tl.load(steps + at),
        tl.load(steps + at + channels),
        tl.load(steps + at + 2 * channels),
    )
    into0, into1, into2 = tl.load(into + own), tl.load(into + own + size), tl.load(into + own + 2 * size)
    back0, back1, back2 = tl.load(back + own), tl.load(back + own + size), tl.load(back + own + 2 * size)
    for _ in tl.range(0, length, loop_unroll_factor=4):
        next_at, next_own = tl.minimum(at + 3 * channels, last_at), tl.minimum(own + 3 * size, last_own)
        x3, step3 = tl.load(x + next_at), tl.load(steps + next_at)
        into3, back3 = tl.load(into + next_own), tl.load(back + next_own)
        state, found = scan_step(state, x0, step0, rate, into0, back0)
        tl.store(out + at, found)
        x0, x1, x2 = x1, x2, x3
        step0, step1, step2 = step1, step2, step3
        into0, into1, into2 = into1, into2, into3
        back0, back1, back2 = back1, back2, back3
        at += channels
        own += size


def scan(
    sequences: int = 8, length: int = 512, channels: int = 2048, size: int = 16
) -> tuple[dict[str, Run], Check]:
    x = noise(sequences, length, channels)
    steps = noise(sequences, length, channels) * 0.05 + 0.06
    rates = -torch.arange(1, size + 1, device="cuda").float().repeat(channels, 1).contiguous()
    into, back = noise(sequences, length, size), noise(sequences, length, size).flip(1).contiguous()
    out = torch.empty_like(x)
    parts = (x, steps, rates, into, back, out, length, channels, 32, size)
    grid = (channels // 32, sequences)
    return {
        "flawed": lambda: scan_kernel[grid](*parts, num_warps=1),
        "four": lambda: scan_four_kernel[grid](*parts, num_warps=1),
        "ahead": lambda: scan_ahead_kernel[grid](*parts, num_warps=1),
    }, lambda: out


@triton.jit
def to_bytes_kernel(weights, scales, out, rows: tl.constexpr, row_pitch, column_pitch):
    """Weights as whole numbers of eight bits, each column by its largest; a column a program."""
    at = tl.arange(0, rows) * row_pitch + tl.program_id(0) * column_pitch
    value = tl.load(weights + at).to(tl.float32)
    most = tl.maximum(tl.max(tl.abs(value), 0), 1e-8)
    tl.store(scales + tl.program_id(0), most / 127.0)
    rounded = tl.floor(value * (127.0 / most) + 0.5).to(tl.int32)
    tl.store(out + at, rounded.to(tl.int8))


@triton.jit
def to_bytes_walk_kernel(weights, scales, out, rows, pitch, piece: tl.constexpr, columns: tl.constexpr):
    """The same, ``piece`` rows at a time, twice."""
    own = tl.program_id(0) * columns + tl.arange(0, columns)
    at = tl.arange(0, piece)[:, None] * pitch + own[None, :]
    most = tl.zeros((piece, columns), tl.float32)
    for start in range(0, rows, piece):
        most = tl.maximum(most, tl.abs(tl.load(weights + start * pitch + at).to(tl.float32)))
    largest = tl.maximum(tl.max(most, 0), 1e-8)
    tl.store(scales + own, largest / 127.0)
    scale = (127.0 / largest)[None, :]
    for start in range(0, rows, piece):
        scaled = tl.load(weights + start * pitch + at).to(tl.float32) * scale
        rounded = tl.floor(scaled + 0.5).to(tl.int32)
        tl.store(out + start * pitch + at, rounded.to(tl.int8))


def to_bytes(rows: int = 4096, columns: int = 14336) -> tuple[dict[str, Run], Check]:
    weights = noise(rows, columns, dtype=torch.half)
    turned_weights = weights.t().contiguous()
    out = torch.empty(rows, columns, device="cuda", dtype=torch.int8)
    turned_out = torch.empty(columns, rows, device="cuda", dtype=torch.int8)
    scales = torch.empty(columns, device="cuda")
    last = {"out": out}

    def flawed() -> None:
        last["out"] = out
        to_bytes_kernel[(columns,)](weights, scales, out, rows, columns, 1, num_warps=4)

    def turned() -> None:
        last["out"] = turned_out.t()
        to_bytes_kernel[(columns,)](turned_weights, scales, turned_out, rows, 1, rows, num_warps=4)

    def walk() -> None:
        last["out"] = out
        to_bytes_walk_kernel[(columns // 32,)](weights, scales, out, rows, columns, 256, 32, num_warps=8)

    def found() -> torch.Tensor:
        return torch.cat([last["out"].float(), scales[None, :]])

    return {"flawed": flawed, "turned": turned, "walk": walk}, found


@triton.jit
def gram_kernel(x, out, size, depth, part, block: tl.constexpr, piece: tl.constexpr, parts: tl.constexpr):
    """The product of a gradient with itself turned over; ``part`` of its depth a program."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    column = tl.program_id(1) * block + tl.arange(0, block)
    at = tl.program_id(2) * part + tl.arange(0, piece)
    left = x + row[:, None] * depth + at[None, :]
    right = x + column[None, :] * depth + at[:, None]
    total = tl.zeros((block, block), tl.float32)
    for _ in range(0, part, piece):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += piece
        right += piece
    to = out + row[:, None] * size + column[None, :]
    if parts:
        tl.atomic_add(to, total, sem="relaxed")
    else:
        tl.store(to, total)


def gram(size: int = 1024, depth: int = 16384) -> tuple[dict[str, Run], Check]:
    x = noise(size, depth, dtype=torch.half)
    out = torch.zeros(size, size, device="cuda")

    def side(block: int, parts: int, stages: int) -> Run:
        grid = (size // block, size // block, parts)
        return lambda: gram_kernel[grid](
            x, out, size, depth, depth // parts, block, 64, parts > 1, num_warps=4, num_stages=stages
        )

    return {
        "flawed": side(128, 1, 4),
        "parts": side(128, 2, 4),
        "four_parts": side(128, 4, 3),
    }, lambda: (out.clone(), out.zero_())[0]


# --- pictures ---


@triton.jit
def mish_kernel(x, out, block: tl.constexpr):
    """``x * tanh(log(1 + exp(x)))``, as it is written."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32)
    soft = tl.where(value > 20.0, value, tl.log(1.0 + tl.exp(value)))
    up, down = tl.exp(soft), tl.exp(-soft)
    tl.store(out + at, (value * ((up - down) / (up + down))).to(tl.float16))


@triton.jit
def mish_quotient_kernel(x, out, block: tl.constexpr):
    """The same as a quotient of polynomials of one exponential."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32)
    grown = tl.exp(tl.minimum(value, 20.0))
    product = grown * (grown + 2.0)
    tl.store(out + at, (value * (product / (product + 2.0))).to(tl.float16))


@triton.jit
def mish_halves_kernel(x, out, block: tl.constexpr):
    """The same, the quotient as a root's square: one exponential and one root."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32)
    grown = tl.exp2(tl.minimum(value, 20.0) * 1.4426950408889634)
    product = grown * (grown + 2.0)
    root = tl.rsqrt(product + 2.0)
    tl.store(out + at, (value * (product * (root * root))).to(tl.float16))


def mish(count: int = 1 << 26) -> tuple[dict[str, Run], Check]:
    x = noise(count, dtype=torch.half) * 6.0
    out = torch.empty_like(x)
    grid = (count // 2048,)
    return {
        "flawed": lambda: mish_kernel[grid](x, out, 2048, num_warps=4),
        "quotient": lambda: mish_quotient_kernel[grid](x, out, 2048, num_warps=4),
        "halves": lambda: mish_halves_kernel[grid](x, out, 2048, num_warps=4),
    }, out.float


@triton.jit
def matched_kernel(scores, out, rounds, size: tl.constexpr):
    """Scores of points of two pictures as shares, rows and columns brought to one in turns."""
    place = tl.arange(0, size)
    at = tl.program_id(0) * size * size + place[:, None] * size + place[None, :]
    share = tl.exp(tl.load(scores + at))
    for _ in range(rounds):
        share = share / tl.sum(share, 1)[:, None]
        share = share / tl.sum(share, 0)[None, :]
    tl.store(out + at, share)


def matched(pairs: int = 7920, size: int = 64, rounds: int = 20) -> tuple[dict[str, Run], Check]:
    scores = noise(pairs, size, size) * 3.0
    out = torch.empty_like(scores)

    def side(warps: int) -> Run:
        return lambda: matched_kernel[(pairs,)](scores, out, rounds, size, num_warps=warps)

    return {"flawed": side(8), "one_warp": side(1), "two_warps": side(2)}, lambda: out


@triton.jit
def guided_kernel(x, with_text, without, out, scale, step, block: tl.constexpr):
    """A step of a sampler along a velocity, pushed away from that without the text."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    plain = tl.load(without + at).to(tl.float32)
    speed = plain + scale * (tl.load(with_text + at).to(tl.float32) - plain)
    tl.store(out + at, (tl.load(x + at).to(tl.float32) + step * speed).to(tl.float16))


def guided(count: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    fields = noise(3, count, dtype=torch.half)
    out = torch.empty(count, device="cuda", dtype=torch.half)
    return {
        "sound": lambda: guided_kernel[(count // 2048,)](
            fields[0], fields[1], fields[2], out, 5.0, -0.04, 2048, num_warps=4
        ),
    }, out.float


# --- recommenders ---


@triton.jit
def crossed_kernel(x, out, features: tl.constexpr, width: tl.constexpr):
    """Products of each two of a sample's embeddings."""
    feature, place = tl.arange(0, features), tl.arange(0, width)
    at = tl.program_id(0) * features * width
    value = tl.load(x + at + feature[:, None] * width + place[None, :]).to(tl.float32)
    to = out + tl.program_id(0) * features * features + feature
    for other in range(features):
        row = tl.load(x + at + other * width + place).to(tl.float32)
        tl.store(to + other * features, tl.sum(value * row[None, :], 1).to(tl.float16))


@triton.jit
def crossed_dot_kernel(x, out, features: tl.constexpr, width: tl.constexpr):
    """The same as a product of matrices."""
    feature, place = tl.arange(0, features), tl.arange(0, width)
    at = tl.program_id(0) * features * width
    value = tl.load(x + at + feature[:, None] * width + place[None, :])
    found = tl.dot(value, tl.trans(value))
    to = out + tl.program_id(0) * features * features
    tl.store(to + feature[:, None] * features + feature[None, :], found.to(tl.float16))


@triton.jit
def crossed_samples_kernel(x, out, samples: tl.constexpr, features: tl.constexpr, width: tl.constexpr):
    """The same, ``samples`` samples one after another."""
    feature, place = tl.arange(0, features), tl.arange(0, width)
    for sample in range(tl.program_id(0) * samples, (tl.program_id(0) + 1) * samples):
        value = tl.load(x + sample * features * width + feature[:, None] * width + place[None, :])
        found = tl.dot(value, tl.trans(value))
        to = out + sample * features * features
        tl.store(to + feature[:, None] * features + feature[None, :], found.to(tl.float16))


def crossed(samples: int = 32768, features: int = 32, width: int = 64) -> tuple[dict[str, Run], Check]:
    x = noise(samples, features, width, dtype=torch.half)
    out = torch.empty(samples, features, features, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: crossed_kernel[(samples,)](x, out, features, width, num_warps=4),
        "dot": lambda: crossed_dot_kernel[(samples,)](x, out, features, width, num_warps=2),
        "samples": lambda: crossed_samples_kernel[(samples // 4,)](x, out, 4, features, width, num_warps=1),
    }, out.float


STUDIES = (
    Study(
        "triton_gated_layer_two_sums_of_128_by_128_in_four_warps",
        "silu(x @ gates) * (x @ ups) of 2048 rows, depth 2048 and 5632 columns, half, in Triton",
        "two sums of 128 x 128 floats in four warps: 256 registers a lane for them alone",
        (
            ("eight_warps", "eight warps", ("local_memory",)),
            ("narrow", "128 x 64 values a program", ("local_memory",)),
        ),
        gated,
        tolerance=2e-3,
    ),
    Study(
        "triton_state_scan_waits_for_each_step",
        "a selective state-space model of 2048 channels and 16 states over 512 steps of eight sequences, in Triton",
        "what a step needs is loaded when the last one is done, in four warps of a multiprocessor",
        (
            ("four", "four steps loaded at a time", ("memory_latency",)),
            ("ahead", "loaded three steps before", ("memory_latency",)),
        ),
        scan,
    ),
    Study(
        "triton_weights_to_bytes_column_a_program",
        "weights of 4096 x 14336 halves as bytes, each column by its largest, in Triton",
        "a program's values lie 28672 bytes apart",
        (
            ("turned", "weights stored turned over: a column's values side by side", ("uncoalesced_access",)),
            ("walk", "32 columns a program, 256 rows at a time, read twice", ("uncoalesced_access",)),
        ),
        to_bytes,
        tolerance=1e-2,
    ),
    Study(
        "triton_gradient_gram_64_programs",
        "a gradient of 1024 x 16384 halves times itself turned over, in Triton",
        "a program for each 128 x 128 values: 64 of them",
        (
            ("parts", "halves of the depth, added by atomics", ("small_grid",)),
            ("four_parts", "quarters of the depth, added by atomics", ("small_grid",)),
        ),
        gram,
        domain="training",
    ),
    Study(
        "triton_mish_as_it_is_written",
        "x * tanh(log(1 + exp(x))) of 67108864 half values, in Triton",
        "a precise logarithm, three exponentials and a quotient for each value",
        (
            ("quotient", "a quotient of polynomials of one exponential", ("expensive_math",)),
            ("halves", "one exponential and one reciprocal root", ("expensive_math",)),
        ),
        mish,
        tolerance=2e-3,
        domain="vision",
    ),
    Study(
        "triton_matched_points_in_eight_warps",
        "scores of 64 x 64 points of 7920 pairs of pictures as shares, after twenty rounds of Sinkhorn, in Triton",
        "eight warps exchange sums of 64 rows and 64 columns in each round",
        (
            ("one_warp", "a warp a pair", ("barriers",)),
            ("two_warps", "two warps a pair", ("barriers",)),
        ),
        matched,
        domain="vision",
    ),
    Study(
        "triton_embeddings_crossed_by_sums",
        "products of each two of 32 embeddings of 64 half values for 32768 samples, in Triton",
        "products of half matrices as sums of floats",
        (
            ("dot", "a product by tensor cores", ("tensor_cores_idle",)),
            ("samples", "four products by tensor cores, one after another in a warp", ("tensor_cores_idle",)),
        ),
        crossed,
        tolerance=2e-3,
        domain="recommenders",
    ),
    Study(
        "sound_triton_guided_step",
        "a step of a sampler with guidance for 33554432 half values, in Triton",
        "",
        (),
        guided,
        tolerance=2e-3,
        domain="pictures",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
