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

# --- losses ---


@triton.jit
def contrast_kernel(scores, partners, loss, rows, columns, scale, tall: tl.constexpr, wide: tl.constexpr):
    """Cross entropy down the columns: logarithms of sums that follow the largest score so far."""
    column, row = tl.program_id(0) * wide + tl.arange(0, wide), tl.arange(0, tall)
    top, total = tl.full((wide,), -1e30, tl.float32), tl.zeros((wide,), tl.float32)
    for start in range(0, rows, tall):
        score = tl.load(scores + (start + row)[:, None] * columns + column[None, :]).to(tl.float32) * scale
        higher = tl.maximum(top, tl.max(score, 0))
        total = total * tl.exp2(top - higher) + tl.sum(tl.exp2(score - higher[None, :]), 0)
        top = higher
    own = tl.load(scores + tl.load(partners + column) * columns + column).to(tl.float32) * scale
    tl.store(loss + column, (top + tl.log2(total) - own) * 0.6931471805599453)


def contrast(rows: int = 4096, columns: int = 16384) -> tuple[dict[str, Run], Check]:
    scores = noise(rows, columns, dtype=torch.half)
    partners = (noise(columns).abs() * rows).int().clamp(max=rows - 1)
    loss = torch.empty(columns, device="cuda")
    scale = 1.4426950408889634 / 0.07

    def run(tall: int, wide: int, warps: int) -> Run:
        return lambda: contrast_kernel[(columns // wide,)](
            scores, partners, loss, rows, columns, scale, tall, wide, num_warps=warps
        )

    return {"flawed": run(512, 4, 4), "wide": run(64, 32, 4), "wider": run(64, 64, 8)}, lambda: loss


# --- diffusion ---


@triton.jit
def noised_flat_kernel(latents, noises, steps, alphas, scales, out, plane, channels, block: tl.constexpr):
    """Latents mixed with noise by the share that each picture's step has."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel, picture = at // plane % channels, at // (plane * channels)
    alpha = tl.load(alphas + tl.load(steps + picture))
    latent = tl.load(latents + at).to(tl.float32) * tl.load(scales + channel)
    mixed = tl.sqrt(alpha) * latent + tl.sqrt(1.0 - alpha) * tl.load(noises + at).to(tl.float32)
    tl.store(out + at, mixed.to(tl.float16))


@triton.jit
def noised_planes_kernel(
    latents, noises, steps, alphas, scales, out,
    plane: tl.constexpr, channels: tl.constexpr, part: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The same for a part of one channel of one picture."""
    channel, picture = tl.program_id(1), tl.program_id(2)
    alpha = tl.load(alphas + tl.load(steps + picture))
    signal, share = tl.sqrt(alpha) * tl.load(scales + channel), tl.sqrt(1.0 - alpha)
    base = (picture * channels + channel) * plane
    for start in range(0, part, block):
        place = tl.program_id(0) * part + start + tl.arange(0, block)
        latent = tl.load(latents + base + place, mask=place < plane, other=0.0).to(tl.float32)
        other = tl.load(noises + base + place, mask=place < plane, other=0.0).to(tl.float32)
        tl.store(out + base + place, (signal * latent + share * other).to(tl.float16), mask=place < plane)


def noised(pictures: int = 1024, channels: int = 4, plane: int = 60 * 106) -> tuple[dict[str, Run], Check]:
    latents, noises = noise(2, pictures, channels, plane, dtype=torch.half)
    steps = (noise(pictures).abs() * 1000).long().clamp(max=999)
    alphas = torch.linspace(0.9999, 0.005, 1000, device="cuda")
    scales = noise(channels).abs() + 0.5
    out = torch.empty_like(latents)
    count = latents.numel()

    def planes(part: int, block: int) -> Run:
        return lambda: noised_planes_kernel[(triton.cdiv(plane, part), channels, pictures)](
            latents, noises, steps, alphas, scales, out, plane, channels, part, block, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": lambda: noised_flat_kernel[(count // 1024,)](
            latents, noises, steps, alphas, scales, out, plane, channels, 1024, num_warps=4
        ),
        "parts": planes(2048, 2048),
        "whole_planes": planes(6400, 1024),
    }
    return sides, lambda: out


@triton.jit
def most_alike(
    left, right, alike, partners, picture, first, count,
    features: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """For a tile of tokens the one of the other half that is most like each, and how much."""
    row, column, feature = first + tl.arange(0, tall), tl.arange(0, wide), tl.arange(0, features)
    base = picture * count
    own = tl.load(left + (base + row)[:, None] * features + feature[None, :])
    top, place = tl.full((tall,), -1e30, tl.float32), tl.zeros((tall,), tl.int32)
    for start in range(0, count, wide):
        other = tl.load(right + (base + start + column)[:, None] * features + feature[None, :])
        score, where = tl.max(tl.dot(own, tl.trans(other)), 1, return_indices=True)
        place = tl.where(score > top, start + where, place)
        top = tl.maximum(top, score)
    tl.store(alike + base + row, top)
    tl.store(partners + base + row, place)


@triton.jit
def merge_picture_kernel(
    left, right, alike, partners, count, features: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    for first in range(0, count, tall):
        most_alike(left, right, alike, partners, tl.program_id(0), first, count, features, tall, wide)


@triton.jit
def merge_tile_kernel(
    left, right, alike, partners, count, features: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    first = tl.program_id(0) * tall
    most_alike(left, right, alike, partners, tl.program_id(1), first, count, features, tall, wide)


def merged(pictures: int = 32, count: int = 2048) -> tuple[dict[str, Run], Check]:
    features = 128
    left, right = noise(2, pictures, count, features, dtype=torch.half)
    alike = torch.empty(pictures, count, device="cuda")
    partners = torch.empty(pictures, count, device="cuda", dtype=torch.int32)

    def tiles(tall: int, warps: int) -> Run:
        return lambda: merge_tile_kernel[(count // tall, pictures)](
            left, right, alike, partners, count, features, tall, 64, num_warps=warps, num_stages=2
        )

    sides: dict[str, Run] = {
        "flawed": lambda: merge_picture_kernel[(pictures,)](
            left, right, alike, partners, count, features, 64, 64, num_warps=4, num_stages=2
        ),
        "tiles": tiles(64, 4),
        "taller_tiles": tiles(128, 8),
    }
    return sides, lambda: alike  # partners depend on the last bit where two are as much alike


@triton.jit
def average_kernel(average, weights, out, decay, block: tl.constexpr):
    """Slow average of weights, as diffusion models are sampled with."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    old, new = tl.load(average + at), tl.load(weights + at).to(tl.float32)
    tl.store(out + at, new + decay * (old - new))


def averaged(count: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    average, weights = noise(count), noise(count, dtype=torch.half)
    out = torch.empty_like(average)
    return {
        "sound": lambda: average_kernel[(count // 1024,)](average, weights, out, 0.999, 1024, num_warps=4)
    }, lambda: out


# --- cache of keys and values ---


@triton.jit
def attended_row_kernel(shares, scores, queries, keys, wide: tl.constexpr):
    """How much attention each key has had: the shares of a query added to the sums of all."""
    key, query, head = tl.program_id(0) * wide + tl.arange(0, wide), tl.program_id(1), tl.program_id(2)
    share = tl.load(shares + (head * queries + query) * keys + key).to(tl.float32)
    tl.atomic_add(scores + head * keys + key, share, sem="relaxed")


@triton.jit
def attended_tile_kernel(
    shares, scores, queries, keys, rows: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr, alone: tl.constexpr
):  # fmt: skip
    """The same; queries are summed before the sums are added, or stored where a program has all of them."""
    key, row, head = tl.program_id(0) * wide + tl.arange(0, wide), tl.arange(0, tall), tl.program_id(2)
    first = tl.program_id(1) * rows
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, rows, tall):
        at = (head * queries + first + start + row)[:, None] * keys + key[None, :]
        total += tl.load(shares + at).to(tl.float32)
    if alone:
        tl.store(scores + head * keys + key, tl.sum(total, 0))
    else:
        tl.atomic_add(scores + head * keys + key, tl.sum(total, 0), sem="relaxed")


def attended(heads: int = 32, queries: int = 1024, keys: int = 4096) -> tuple[dict[str, Run], Check]:
    shares = (noise(heads, queries, keys, dtype=torch.half).abs()) * 0.25
    scores = torch.zeros(heads, keys, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: attended_row_kernel[(keys // 1024, queries, heads)](
            shares, scores, queries, keys, 1024, num_warps=4
        ),
        "rows_summed": lambda: attended_tile_kernel[(keys // 512, queries // 64, heads)](
            shares, scores, queries, keys, 64, 8, 512, False, num_warps=4
        ),
        "all_queries": lambda: attended_tile_kernel[(keys // 128, 1, heads)](
            shares, scores, queries, keys, queries, 32, 128, True, num_warps=4
        ),
    }
    return sides, lambda: (scores.clone(), scores.zero_())[0]


# --- optimisers ---


@triton.jit
def stepped(weight, gradient, first, second, rate, decay):
    """A step of Nadam: the new weight and both new momenta."""
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    ahead = 0.9 * first + 0.1 * gradient
    return weight - rate * (ahead / (tl.sqrt(second) + 1e-8) + decay * weight), first, second


@triton.jit
def nadam_pairs_kernel(weights, gradients, momenta, rate, decay, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    weight, first, second = stepped(
        tl.load(weights + at), tl.load(gradients + at).to(tl.float32),
        tl.load(momenta + 2 * at), tl.load(momenta + 2 * at + 1), rate, decay,
    )  # fmt: skip
    tl.store(weights + at, weight)
    tl.store(momenta + 2 * at, first)
    tl.store(momenta + 2 * at + 1, second)


@triton.jit
def nadam_split_kernel(weights, gradients, momenta, rate, decay, block: tl.constexpr):
    """The same; a pair is loaded at once."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    pair = momenta + 2 * at[:, None] + tl.arange(0, 2)[None, :]
    first, second = tl.split(tl.load(pair))
    weight, first, second = stepped(
        tl.load(weights + at), tl.load(gradients + at).to(tl.float32), first, second, rate, decay
    )
    tl.store(weights + at, weight)
    tl.store(pair, tl.join(first, second))


@triton.jit
def nadam_planes_kernel(weights, gradients, firsts, seconds, rate, decay, block: tl.constexpr):
    """The same; each momentum in an array of its own."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    weight, first, second = stepped(
        tl.load(weights + at), tl.load(gradients + at).to(tl.float32),
        tl.load(firsts + at), tl.load(seconds + at), rate, decay,
    )  # fmt: skip
    tl.store(weights + at, weight)
    tl.store(firsts + at, first)
    tl.store(seconds + at, second)


def nadam(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    start, first, second = noise(3, count)
    gradients = noise(count + 1, dtype=torch.half)[1:].clone()
    old = torch.stack((first * 0.1, second.abs() * 0.1 + 0.01), 1).contiguous()
    weights, momenta = start.clone(), old.clone()
    firsts, seconds = old[:, 0].contiguous(), old[:, 1].contiguous()

    def run(kernel: triton.runtime.JITFunction) -> Run:
        return lambda: kernel[(count // 1024,)](weights, gradients, momenta, 0.01, 0.1, 1024, num_warps=4)

    sides: dict[str, Run] = {
        "flawed": run(nadam_pairs_kernel),
        "split": run(nadam_split_kernel),
        "planes": lambda: nadam_planes_kernel[(count // 1024,)](
            weights, gradients, firsts, seconds, 0.01, 0.1, 1024, num_warps=4
        ),
    }

    def result() -> torch.Tensor:
        """The weights; all is put back as it was, since a step changes it."""
        found = weights.clone()
        weights.copy_(start)
        momenta.copy_(old)
        firsts.copy_(old[:, 0])
        seconds.copy_(old[:, 1])
        return found

    return sides, result


# --- positions ---


@triton.jit
def distance_of(query, key, rate, least):
    """How far a key lies back, as a logarithm, as a share of the way to the first or to ``least``."""
    back = tl.maximum(query - key, 0).to(tl.float32)
    return tl.log(1.0 + rate * back) / tl.log(1.0 + rate * tl.maximum(query, least).to(tl.float32))


@triton.jit
def position_bias_head_kernel(
    inner, offsets, outer, out, steps, rate, least, hidden: tl.constexpr, block: tl.constexpr
):
    """Bias of attention from a small network of the distance, for one head."""
    key, query, head = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1), tl.program_id(2)
    far = distance_of(query, key, rate, least)
    total = tl.zeros((block,), tl.float32)
    for unit in range(hidden):
        value = tl.maximum(far * tl.load(inner + unit) + tl.load(offsets + unit), 0.0)
        total += value * tl.load(outer + head * hidden + unit)
    tl.store(out + (head * steps + query) * steps + key, total.to(tl.float16))


@triton.jit
def position_bias_heads_kernel(
    inner, offsets, outer, out, steps, rate, least,
    hidden: tl.constexpr, heads: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The same for all heads: distances and hidden values once."""
    key, query, head = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1), tl.arange(0, heads)
    far = distance_of(query, key, rate, least)
    total = tl.zeros((heads, block), tl.float32)
    for unit in range(hidden):
        value = tl.maximum(far * tl.load(inner + unit) + tl.load(offsets + unit), 0.0)
        total += value[None, :] * tl.load(outer + head * hidden + unit)[:, None]
    at = (head[:, None] * steps + query) * steps + key[None, :]
    tl.store(out + at, total.to(tl.float16))


@triton.jit
def position_bias_product_kernel(
    inner, offsets, outer, out, steps, rate, least,
    hidden: tl.constexpr, heads: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The same; the outer layer of all heads as a product of half values."""
    key, query, head = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1), tl.arange(0, heads)
    unit = tl.arange(0, hidden)
    far = distance_of(query, key, rate, least)
    value = far[None, :] * tl.load(inner + unit)[:, None] + tl.load(offsets + unit)[:, None]
    weight = tl.load(outer + head[:, None] * hidden + unit[None, :])
    total = tl.dot(weight.to(tl.float16), tl.maximum(value, 0.0).to(tl.float16))
    at = (head[:, None] * steps + query) * steps + key[None, :]
    tl.store(out + at, total.to(tl.float16))


def position_bias(steps: int = 2048, heads: int = 16) -> tuple[dict[str, Run], Check]:
    hidden, rate, least = 32, 0.5, 256
    inner, offsets = noise(2, hidden)
    outer = noise(heads, hidden)
    out = torch.empty(heads, steps, steps, device="cuda", dtype=torch.half)
    sides: dict[str, Run] = {
        "flawed": lambda: position_bias_head_kernel[(steps // 1024, steps, heads)](
            inner, offsets, outer, out, steps, rate, least, hidden, 1024, num_warps=4
        ),
        "all_heads": lambda: position_bias_heads_kernel[(steps // 256, steps)](
            inner, offsets, outer, out, steps, rate, least, hidden, heads, 256, num_warps=4
        ),
        "product": lambda: position_bias_product_kernel[(steps // 256, steps)](
            inner, offsets, outer, out, steps, rate, least, hidden, heads, 256, num_warps=4
        ),
    }
    return sides, lambda: out


STUDIES = (
    Study(
        "triton_contrastive_loss_four_columns_a_program",
        "contrastive loss down the 16384 columns of 4096 rows of half scores, in Triton",
        "a program takes four columns: eight bytes of each row, 32 KB apart",
        (
            ("wide", "32 columns a program, tiles of 64 rows", ("uncoalesced_access",)),
            ("wider", "64 columns a program of eight warps", ("uncoalesced_access",)),
        ),
        contrast,
        domain="language models",
    ),
    Study(
        "triton_latents_noised_flat",
        "1024 latents of 4 x 60 x 106 half values mixed with noise by each picture's step, in Triton",
        "each value works out its picture and channel by divisions and looks up its step, then the step's share",
        (
            (
                "parts",
                "a program for 2048 values of a channel of a picture, sizes known when it is compiled",
                ("integer_arithmetic", "redundant_loads", "memory_latency"),
            ),
            (
                "whole_planes",
                "a program walks a channel of a picture, sizes known when it is compiled",
                ("integer_arithmetic", "redundant_loads", "memory_latency"),
            ),
        ),
        noised,
        tolerance=2e-3,
        domain="diffusion",
    ),
    Study(
        "triton_token_merging_picture_a_program",
        "2048 tokens of 128 half values matched with 2048 others in 32 pictures, in Triton",
        "a program for each picture: 32 of them",
        (
            ("tiles", "a program for 64 tokens of a picture", ("small_grid",)),
            ("taller_tiles", "a program of eight warps for 128 tokens", ("small_grid",)),
        ),
        merged,
        tolerance=2e-3,
        domain="diffusion",
    ),
    Study(
        "triton_attended_keys_atomic_each_share",
        "attention that each of 4096 keys had from 1024 queries, summed for 32 heads, half values, in Triton",
        "the shares of each query are added to the keys' sums by atomics",
        (
            ("rows_summed", "64 queries summed before they are added", ("global_atomics",)),
            ("all_queries", "a program sums all queries for 128 keys and stores", ("global_atomics",)),
        ),
        attended,
        domain="language models",
    ),
    Study(
        "triton_nadam_momenta_side_by_side",
        "a step of Nadam for 16777216 weights, in Triton",
        "a weight's two momenta lie side by side: each is loaded and stored with every second word left out",
        (
            ("split", "pairs loaded and stored at once", ("uncoalesced_access", "narrow_access")),
            ("planes", "each momentum in an array of its own", ("uncoalesced_access", "narrow_access")),
        ),
        nadam,
        domain="training",
    ),
    Study(
        "triton_position_bias_hidden_again_for_each_head",
        "bias of attention by a small network of the distance, 16 heads, 2048 x 2048 places, in Triton",
        "distance and hidden values are worked out again for each of the heads",
        (
            (
                "all_heads",
                "a program for all heads: hidden values once",
                ("expensive_math", "redundant_loads"),
            ),
            (
                "product",
                "all heads, the outer layer as a product on the tensor cores",
                ("expensive_math", "tensor_cores_idle"),
            ),
        ),
        position_bias,
        tolerance=5e-3,
        domain="language models",
    ),
    Study(
        "sound_triton_slow_average_of_weights",
        "slow average of 33554432 half weights in floats, in Triton",
        "",
        (),
        averaged,
        domain="diffusion",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
