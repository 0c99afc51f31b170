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


@triton.jit
def grouped_query_kernel(q, k, v, out, keys, group: tl.constexpr, tile: tl.constexpr, taken: tl.constexpr):
    """One step of decoding: ``taken`` heads of a group that shares keys and values, padded to 16 rows."""
    sequence, row, column = tl.program_id(0), tl.arange(0, 16), tl.arange(0, 128)
    heads = tl.num_programs(1) * taken
    head = tl.program_id(1) * taken + row
    at = (sequence * heads + head)[:, None] * 128 + column[None, :]
    there = (row < taken)[:, None]
    query = tl.load(q + at, mask=there, other=0.0)
    shared = (sequence * (heads // group) + tl.program_id(1) * taken // group).to(tl.int64) * keys * 128
    top = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    result = tl.zeros((16, 128), tl.float32)
    for start in range(0, keys, tile):
        place = shared + (start + tl.arange(0, tile))[:, None] * 128 + column[None, :]
        scores = tl.dot(query, tl.trans(tl.load(k + place))) * 0.12751743
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrunk = tl.exp2(top - higher)
        total = total * shrunk + tl.sum(weights, 1)
        result = tl.dot(weights.to(tl.float16), tl.load(v + place), result * shrunk[:, None])
        top = higher
    tl.store(out + at, (result / total[:, None]).to(tl.float16), mask=there)


def grouped_query() -> tuple[dict[str, Run], Check]:
    sequences, heads, group, keys = 48, 32, 8, 1024
    q = noise(sequences, heads, 128, dtype=torch.half)
    k = noise(sequences, heads // group, keys, 128, dtype=torch.half)
    v = noise(sequences, heads // group, keys, 128, dtype=torch.half)
    out = torch.empty_like(q)

    def run(taken: int, tile: int, warps: int, stages: int) -> Run:
        grid = (sequences, heads // taken)
        return lambda: grouped_query_kernel[grid](
            q, k, v, out, keys, group, tile, taken, num_warps=warps, num_stages=stages
        )

    sides: dict[str, Run] = {
        "flawed": run(1, 64, 4, 3),
        "whole_group": run(8, 64, 4, 3),
        "half_group": run(4, 128, 8, 2),
    }
    return sides, lambda: out


@triton.jit
def gated_scan_kernel(gate, x, out, steps, channels, width: tl.constexpr):
    channel = tl.program_id(0) * width + tl.arange(0, width)
    at = tl.program_id(1) * steps * channels + channel
    state = tl.zeros((width,), tl.float32)
    for _ in range(steps):
        decay = tl.sigmoid(tl.load(gate + at).to(tl.float32))
        state = decay * state + (1.0 - decay) * tl.load(x + at).to(tl.float32)
        tl.store(out + at, state.to(tl.float16))
        at += channels


@triton.jit
def joined(decay, state, later_decay, later_state):
    return decay * later_decay, state * later_decay + later_state


@triton.jit
def gated_scan_pieces_kernel(gate, x, out, steps, channels, width: tl.constexpr, length: tl.constexpr):
    channel, step = tl.program_id(0) * width + tl.arange(0, width), tl.arange(0, length)
    at = tl.program_id(1) * steps * channels + step[:, None] * channels + channel[None, :]
    state = tl.zeros((width,), tl.float32)
    for _ in range(0, steps, length):
        decay = tl.sigmoid(tl.load(gate + at).to(tl.float32))
        added = (1.0 - decay) * tl.load(x + at).to(tl.float32)
        decays, states = tl.associative_scan((decay, added), 0, joined)
        states += decays * state[None, :]
        tl.store(out + at, states.to(tl.float16))
        state = tl.sum(tl.where((step == length - 1)[:, None], states, 0.0), 0)
        at += length * channels


def gated_scan() -> tuple[dict[str, Run], Check]:
    sequences, steps, channels = 8, 1024, 1024
    gate = noise(sequences, steps, channels, dtype=torch.half) * 3
    x = noise(sequences, steps, channels, dtype=torch.half)
    out = torch.empty_like(x)

    def pieces(width: int, length: int, warps: int) -> Run:
        grid = (channels // width, sequences)
        return lambda: gated_scan_pieces_kernel[grid](
            gate, x, out, steps, channels, width, length, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: gated_scan_kernel[(channels // 256, sequences)](
            gate, x, out, steps, channels, 256, num_warps=4
        ),
        "narrow_programs": lambda: gated_scan_kernel[(channels // 32, sequences)](
            gate, x, out, steps, channels, 32, num_warps=1
        ),
        "pieces": pieces(32, 64, 4),
        "short_pieces": pieces(64, 16, 4),
    }
    return sides, lambda: out


@triton.jit
def pooled_fields_kernel(
    ids, table, out, bags, fields, words, width: tl.constexpr, length: tl.constexpr, taken: tl.constexpr
):
    """Sums of ``length`` rows of a table for ``taken`` fields of a bag, a row at a time."""
    column = tl.arange(0, width)
    bag = tl.program_id(1)
    for i in range(taken):
        field = tl.program_id(0) * taken + i
        total = tl.zeros((width,), tl.float32)
        for k in range(length):
            word = tl.load(ids + (field * bags + bag) * length + k)
            total += tl.load(table + (field * words + word).to(tl.int64) * width + column).to(tl.float32)
        tl.store(out + (bag * fields + field) * width + column, total.to(tl.float16))


@triton.jit
def pooled_bags_kernel(
    ids, table, out, bags, fields, words, width: tl.constexpr, length: tl.constexpr, taken: tl.constexpr
):
    """The same for ``taken`` bags of a field at once, a row of each at a time."""
    column = tl.arange(0, width)
    field = tl.program_id(1)
    bag = tl.program_id(0) * taken + tl.arange(0, taken)
    total = tl.zeros((taken, width), tl.float32)
    for k in range(length):
        word = tl.load(ids + (field * bags + bag) * length + k)
        rows = (field * words + word).to(tl.int64) * width
        total += tl.load(table + rows[:, None] + column[None, :]).to(tl.float32)
    tl.store(out + (bag * fields + field)[:, None] * width + column[None, :], total.to(tl.float16))


@triton.jit
def pooled_rows_kernel(ids, table, out, bags, fields, words, width: tl.constexpr, length: tl.constexpr):
    """The same for one bag and field, all of its rows at once."""
    column, k = tl.arange(0, width), tl.arange(0, length)
    field, bag = tl.program_id(1), tl.program_id(0)
    word = tl.load(ids + (field * bags + bag) * length + k)
    rows = (field * words + word).to(tl.int64) * width
    values = tl.load(table + rows[:, None] + column[None, :]).to(tl.float32)
    tl.store(out + (bag * fields + field) * width + column, tl.sum(values, 0).to(tl.float16))


def pooled_fields() -> tuple[dict[str, Run], Check]:
    bags, fields, words, width, length = 8192, 16, 40_000, 64, 16
    generator = torch.Generator(device="cuda").manual_seed(3)
    ids = torch.randint(
        0, words, (fields, bags, length), device="cuda", dtype=torch.int32, generator=generator
    )
    table = noise(fields, words, width, dtype=torch.half)
    out = torch.empty(bags, fields, width, device="cuda", dtype=torch.half)
    sides: dict[str, Run] = {
        "flawed": lambda: pooled_fields_kernel[(1, bags)](
            ids, table, out, bags, fields, words, width, length, fields, num_warps=1
        ),
        "field_each": lambda: pooled_fields_kernel[(fields, bags)](
            ids, table, out, bags, fields, words, width, length, 1, num_warps=1
        ),
        "field_by_field": lambda: pooled_bags_kernel[(bags // 16, fields)](
            ids, table, out, bags, fields, words, width, length, 16, num_warps=4
        ),
        "rows_at_once": lambda: pooled_rows_kernel[(bags, fields)](
            ids, table, out, bags, fields, words, width, length, num_warps=1
        ),
    }
    return sides, lambda: out


@triton.jit
def products_of_codes_kernel(
    a, codes, scales, out, rows, columns, depth,
    tile_rows: tl.constexpr, tile: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    """A product with weights of eight bits and a scale for each column and ``group`` of the depth."""
    row = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    column = tl.program_id(1) * tile + tl.arange(0, tile)
    inner = tl.arange(0, group)
    total = tl.zeros((tile_rows, tile), tl.float32)
    for start in range(0, depth, group):
        left = tl.load(a + row[:, None] * depth + start + inner[None, :])
        code = tl.load(codes + (start + inner)[:, None] * columns + column[None, :])
        scale = tl.load(scales + start // group * columns + column)
        total = tl.dot(left, (code.to(tl.float32) * scale[None, :]).to(tl.float16), total)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def products_of_codes() -> tuple[dict[str, Run], Check]:
    rows, columns, depth, group = 1024, 4096, 4096, 64
    a = noise(rows, depth, dtype=torch.half)
    codes = torch.randint(-127, 128, (depth, columns), device="cuda", dtype=torch.int8)
    scales = noise(depth // group, columns) / 128
    out = torch.empty(rows, columns, device="cuda", dtype=torch.half)

    def run(tile_rows: int, tile: int, warps: int) -> Run:
        grid = (rows // tile_rows, columns // tile)
        return lambda: products_of_codes_kernel[grid](
            a, codes, scales, out, rows, columns, depth, tile_rows, tile, group, num_warps=warps, num_stages=3
        )

    sides: dict[str, Run] = {"flawed": run(32, 128, 4), "taller": run(128, 128, 8), "half": run(64, 128, 4)}
    return sides, lambda: out


@triton.jit
def preference_loss_kernel(logits, labels, out, columns, piece: tl.constexpr, warm: tl.constexpr):
    """Log probability of a label and entropy of a row, after dividing by a temperature."""
    row = tl.program_id(0).to(tl.int64) * columns
    top = tl.full((piece,), -1.0e30, tl.float32)
    total = tl.zeros((piece,), tl.float32)
    weighted = tl.zeros((piece,), tl.float32)
    for start in range(0, columns, piece):
        at = start + tl.arange(0, piece)
        value = tl.load(logits + row + at, mask=at < columns).to(tl.float32) / warm
        value = tl.where(at < columns, value, -1.0e30)
        higher = tl.maximum(top, value)
        shrunk, added = tl.exp(top - higher), tl.exp(value - higher)
        total = total * shrunk + added
        weighted = weighted * shrunk + added * value
        top = higher
    highest = tl.max(top, 0)
    share = tl.exp(top - highest)
    sums = tl.sum(total * share, 0)
    level = highest + tl.log(sums)
    chosen = tl.load(logits + row + tl.load(labels + tl.program_id(0))).to(tl.float32) / warm
    tl.store(out + 2 * tl.program_id(0), chosen - level)
    tl.store(out + 2 * tl.program_id(0) + 1, level - tl.sum(weighted * share, 0) / sums)


@triton.jit
def preference_loss_pieces_kernel(logits, labels, out, columns, piece: tl.constexpr, warm: tl.constexpr):
    """The same with one running maximum of the row."""
    row = tl.program_id(0).to(tl.int64) * columns
    top = -1.0e30
    total = tl.zeros((piece,), tl.float32)
    weighted = tl.zeros((piece,), tl.float32)
    for start in range(0, columns, piece):
        at = start + tl.arange(0, piece)
        value = tl.load(logits + row + at, mask=at < columns).to(tl.float32) * (1.0 / warm)
        value = tl.where(at < columns, value, -1.0e30)
        higher = tl.maximum(top, tl.max(value, 0))
        shrunk, added = tl.exp(top - higher), tl.exp(value - higher)
        total = total * shrunk + added
        weighted = weighted * shrunk + added * value
        top = higher
    sums = tl.sum(total, 0)
    level = top + tl.log(sums)
    chosen = tl.load(logits + row + tl.load(labels + tl.program_id(0))).to(tl.float32) * (1.0 / warm)
    tl.store(out + 2 * tl.program_id(0), chosen - level)
    tl.store(out + 2 * tl.program_id(0) + 1, level - tl.sum(weighted, 0) / sums)


def preference_loss() -> tuple[dict[str, Run], Check]:
    rows, columns = 1536, 32_000
    logits = noise(rows, columns, dtype=torch.half) * 8
    labels = torch.arange(rows, device="cuda", dtype=torch.int32) * 19
    out = torch.empty(rows, 2, device="cuda")
    grid = (rows,)
    sides: dict[str, Run] = {
        "flawed": lambda: preference_loss_kernel[grid](logits, labels, out, columns, 1024, 0.7, num_warps=4),
        "one_maximum": lambda: preference_loss_pieces_kernel[grid](
            logits, labels, out, columns, 2048, 0.7, num_warps=4
        ),
        "wide_maximum": lambda: preference_loss_pieces_kernel[grid](
            logits, labels, out, columns, 4096, 0.7, num_warps=8
        ),
    }
    return sides, lambda: out


@triton.jit
def scaled_positions_kernel(x, table, scale, out, places, width: tl.constexpr, rows: tl.constexpr):
    row, column = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    at = row[:, None] * width + column[None, :]
    added = tl.load(table + (row % places)[:, None] * width + column[None, :]).to(tl.float32)
    value = tl.load(x + at).to(tl.float32) * tl.load(scale + column).to(tl.float32)[None, :] + added
    tl.store(out + at, value.to(tl.float16))


def scaled_positions() -> tuple[dict[str, Run], Check]:
    sequences, places, width = 64, 1024, 512
    x, table = noise(sequences * places, width, dtype=torch.half), noise(places, width, dtype=torch.half)
    scale, out = noise(width, dtype=torch.half), torch.empty_like(x)
    grid = (sequences * places // 4,)
    return {
        "sound": lambda: scaled_positions_kernel[grid](x, table, scale, out, places, width, 4, num_warps=8)
    }, lambda: out


STUDIES = (
    Study(
        "triton_decode_head_a_program",
        "a step of attention of 48 sequences of 1024 keys, 32 heads in groups of eight, half, in Triton",
        "a program takes one head, padded to 16 rows: seven others read the same keys and values",
        (
            ("whole_group", "the eight heads of a group as rows of one program", ("redundant_loads",)),
            ("half_group", "four heads a program, 128 keys at a time by eight warps", ("redundant_loads",)),
        ),
        grouped_query,
        tolerance=4e-3,
    ),
    Study(
        "triton_gated_scan_32_programs",
        "a gated linear recurrence over 1024 steps of 8 sequences of 1024 channels, half, in Triton",
        "32 programs of 256 channels go through all steps, a load of each array at a time",
        (
            ("narrow_programs", "32 channels a program of one warp", ("small_grid",)),
            ("pieces", "32 channels a program, 64 steps at once by a scan", ("small_grid", "memory_latency")),
            (
                "short_pieces",
                "64 channels a program, 16 steps at once by a scan",
                ("small_grid", "memory_latency"),
            ),
        ),
        gated_scan,
        tolerance=4e-3,
    ),
    Study(
        "triton_pooled_fields_bag_a_program",
        "sums of 16 rows of 64 half values each for 16 fields of 8192 bags, in Triton",
        "a program of one warp takes all fields of a bag, a row at a time: the tables of all fields are in use at once",
        (
            ("field_by_field", "16 bags a program, field after field", ("cache_locality", "memory_latency")),
            ("rows_at_once", "field after field, 16 rows in one load", ("cache_locality", "memory_latency")),
            ("field_each", "a program for each field of a bag", ("memory_latency",)),
        ),
        pooled_fields,
        tolerance=2e-3,
    ),
    Study(
        "triton_codes_unpacked_for_32_rows",
        "a product of 1024 rows of half with 4096 x 4096 weights of eight bits and scales, in Triton",
        "tiles of 32 rows: each weight is turned into half 32 times, for few products each",
        (
            ("taller", "tiles of 128 rows by eight warps", ("redundant_loads", "instruction_latency")),
            ("half", "tiles of 64 rows", ("redundant_loads",)),
        ),
        products_of_codes,
        tolerance=1e-2,
    ),
    Study(
        "triton_preference_loss_maximum_each_lane",
        "log probability of a label and entropy of 1536 rows of 32000 half values, in Triton",
        "each value has a running maximum of its own: two exponentials and a division each",
        (
            ("one_maximum", "one maximum of the row for 2048 values", ("expensive_math",)),
            ("wide_maximum", "one maximum for 4096 values, eight warps", ("expensive_math", "barriers")),
        ),
        preference_loss,
        tolerance=2e-3,
    ),
    Study(
        "sound_triton_scaled_positions",
        "65536 tokens of 512 half values scaled, with their position vectors added, in Triton",
        "",
        (),
        scaled_positions,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
