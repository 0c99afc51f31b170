"""Studies in Triton, run by what tests/cuda/variants/frameworks.py provides.

Usage: frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


@triton.jit
def conv_step_kernel(x, weights, out, steps, channels: tl.constexpr):
    step, channel = tl.program_id(0), tl.arange(0, channels)
    base = (tl.program_id(1) * steps + step) * channels
    total = tl.zeros((channels,), tl.float32)
    for tap in tl.static_range(4):
        value = tl.load(x + base + (tap - 3) * channels + channel, (channel >= 0) & (step + tap >= 3), 0.0)
        total += value.to(tl.float32) * tl.load(weights + tap * channels + channel)
    tl.store(out + base + channel, (total * tl.sigmoid(total)).to(tl.float16))


@triton.jit
def conv_run_kernel(x, weights, out, steps, channels: tl.constexpr, wide: tl.constexpr, run: tl.constexpr):
    channel = tl.program_id(2) * wide + tl.arange(0, wide)
    first = tl.program_id(0) * run
    base = (tl.program_id(1) * steps + first) * channels + channel
    w0, w1 = tl.load(weights + channel), tl.load(weights + channels + channel)
    w2, w3 = tl.load(weights + 2 * channels + channel), tl.load(weights + 3 * channels + channel)
    known = (channel >= 0) & (first > 0)
    a = tl.load(x + base - 3 * channels, known, 0.0).to(tl.float32)
    b = tl.load(x + base - 2 * channels, known, 0.0).to(tl.float32)
    c = tl.load(x + base - channels, known, 0.0).to(tl.float32)
    for step in range(run):
        d = tl.load(x + base + step * channels).to(tl.float32)
        total = a * w0 + b * w1 + c * w2 + d * w3
        tl.store(out + base + step * channels, (total * tl.sigmoid(total)).to(tl.float16))
        a, b, c = b, c, d


def conv_steps() -> tuple[dict[str, Run], Check]:
    batch, steps, channels = 8, 4096, 2048
    x, weights = noise(batch, steps, channels, dtype=torch.half), noise(4, channels)
    out = torch.empty_like(x)

    def run(wide: int, length: int, warps: int) -> Run:
        return lambda: conv_run_kernel[(steps // length, batch, channels // wide)](
            x, weights, out, steps, channels, wide, length, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: conv_step_kernel[(steps, batch)](x, weights, out, steps, channels, num_warps=8),
        "run": run(2048, 32, 8),
        "narrow_run": run(256, 64, 1),
    }
    return sides, lambda: out


@triton.jit
def planes_flat_kernel(image, out, pixels, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    channel, pixel = at % 3, at // 3
    value = tl.load(image + at).to(tl.float32)
    mean = tl.where(channel == 0, 123.7, tl.where(channel == 1, 116.3, 103.5))
    tl.store(out + channel * pixels + pixel, (value - mean) / 58.0)


@triton.jit
def planes_pixels_kernel(image, out, pixels, block: tl.constexpr):
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    for channel in tl.static_range(3):
        mean = 123.7 if channel == 0 else (116.3 if channel == 1 else 103.5)
        value = tl.load(image + pixel * 3 + channel).to(tl.float32)
        tl.store(out + channel * pixels + pixel, (value - mean) / 58.0)


@triton.jit
def planes_channel_kernel(image, out, pixels, block: tl.constexpr):
    channel, pixel = tl.program_id(1), tl.program_id(0) * block + tl.arange(0, block)
    mean = tl.where(channel == 0, 123.7, tl.where(channel == 1, 116.3, 103.5))
    value = tl.load(image + pixel * 3 + channel).to(tl.float32)
    tl.store(out + channel * pixels + pixel, (value - mean) / 58.0)


def planes() -> tuple[dict[str, Run], Check]:
    pixels = 1 << 24
    image = (noise(pixels * 3).abs() * 255).to(torch.uint8)
    out = torch.empty(3 * pixels, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: planes_flat_kernel[(pixels * 3 // 1024,)](image, out, pixels, 1024, num_warps=4),
        "pixels": lambda: planes_pixels_kernel[(pixels // 1024,)](image, out, pixels, 1024, num_warps=4),
        "channels": lambda: planes_channel_kernel[(pixels // 1024, 3)](image, out, pixels, 1024, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def small_products_kernel(a, b, c, side: tl.constexpr, each: tl.constexpr):
    row, column = tl.arange(0, side), tl.arange(0, side)
    at = row[:, None] * side + column[None, :]
    for k in range(each):
        base = (tl.program_id(0) * each + k) * side * side
        product = tl.dot(tl.load(a + base + at), tl.load(b + base + at))
        tl.store(c + base + at, product.to(tl.float16))


def small_products() -> tuple[dict[str, Run], Check]:
    count, side = 16384, 64
    a, b = noise(count, side, side, dtype=torch.half), noise(count, side, side, dtype=torch.half)
    c = torch.empty_like(a)

    def run(each: int, warps: int) -> Run:
        return lambda: small_products_kernel[(count // each,)](a, b, c, side, each, num_warps=warps)

    return {"flawed": run(1, 16), "four_warps": run(1, 4), "four_products": run(4, 4)}, lambda: c


@triton.jit
def thin_product_kernel(x, w, out, n, k, wide: tl.constexpr, deep: tl.constexpr, parts: tl.constexpr):
    row, column = tl.arange(0, 16), tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    length = k // parts
    first = tl.program_id(1) * length
    total = tl.zeros((16, wide), tl.float32)
    for start in range(0, length, deep):
        left = tl.load(x + row[:, None] * k + first + start + inner[None, :])
        right = tl.load(w + (first + start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    if parts > 1:
        tl.atomic_add(out + row[:, None] * n + column[None, :], total)
    else:
        tl.store(out + row[:, None] * n + column[None, :], total)


def thin_product() -> tuple[dict[str, Run], Check]:
    n, k = 4096, 14336
    x, w = noise(16, k, dtype=torch.half), noise(k, n, dtype=torch.half)
    out = torch.zeros(16, n, device="cuda")

    def run(wide: int, parts: int) -> Run:
        return lambda: thin_product_kernel[(n // wide, parts)](
            x, w, out, n, k, wide, 64, parts, num_warps=4, num_stages=4
        )

    return {"flawed": run(128, 1), "parts": run(128, 8), "narrow": run(32, 1)}, lambda: (
        out.clone(),
        out.zero_(),
    )[0]


@triton.jit
def fp4_table_kernel(codes, table, scales, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    code = tl.load(codes + at // 2).to(tl.int32)
    nibble = (code >> (at % 2 * 4)) & 15
    tl.store(out + at, (tl.load(table + nibble) * tl.load(scales + at // 32)).to(tl.float16))


@triton.jit
def fp4_bits(nibble):
    size = nibble & 7
    exponent, mantissa = size >> 1, size & 1
    normal = (1.0 + 0.5 * mantissa.to(tl.float32)) * tl.exp2(exponent.to(tl.float32) - 1.0)
    value = tl.where(exponent == 0, 0.5 * mantissa.to(tl.float32), normal)
    return tl.where(nibble >= 8, -value, value)


@triton.jit
def fp4_arithmetic_kernel(codes, scales, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    code = tl.load(codes + at // 2).to(tl.int32)
    value = fp4_bits((code >> (at % 2 * 4)) & 15)
    tl.store(out + at, (value * tl.load(scales + at // 32)).to(tl.float16))


@triton.jit
def fp4_pairs_kernel(codes, scales, out, pairs: tl.constexpr):
    at = tl.program_id(0) * pairs + tl.arange(0, pairs)
    code = tl.load(codes + at).to(tl.int32)
    scale = tl.load(scales + at // 16)
    both = tl.join(fp4_bits(code & 15) * scale, fp4_bits(code >> 4) * scale)
    to = at[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(out + to, both.to(tl.float16))


def fp4() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    codes = ((noise(n // 2) + 1) * 127.9).to(torch.uint8)
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    table = torch.tensor(values + [-v for v in values], device="cuda")
    scales, out = noise(n // 32), torch.empty(n, device="cuda", dtype=torch.half)
    sides: dict[str, Run] = {
        "flawed": lambda: fp4_table_kernel[(n // 1024,)](codes, table, scales, out, 1024, num_warps=4),
        "arithmetic": lambda: fp4_arithmetic_kernel[(n // 1024,)](codes, scales, out, 1024, num_warps=4),
        "pairs": lambda: fp4_pairs_kernel[(n // 4096,)](codes, scales, out, 2048, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def hashed_flat_kernel(ids, table, out, rows, width, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    token, feature = at // width, at % width
    row = (tl.load(ids + token) * 11400714819 + 7) % rows
    tl.store(out + at, tl.load(table + row * width + feature))


@triton.jit
def hashed_rows_kernel(ids, table, out, rows, tokens: tl.constexpr, width: tl.constexpr):
    token, feature = tl.program_id(0) * tokens + tl.arange(0, tokens), tl.arange(0, width)
    row = (tl.load(ids + token) * 11400714819 + 7) % rows
    value = tl.load(table + row[:, None] * width + feature[None, :])
    tl.store(out + token[:, None] * width + feature[None, :], value)


def hashed() -> tuple[dict[str, Run], Check]:
    tokens, width, rows = 131072, 128, 100003
    ids = (noise(tokens).abs() * 1e6).long()
    table, out = noise(rows, width), torch.empty(tokens, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: hashed_flat_kernel[(tokens * width // 512,)](
            ids, table, out, rows, width, 512, num_warps=4
        ),
        "rows": lambda: hashed_rows_kernel[(tokens // 16,)](ids, table, out, rows, 16, width, num_warps=4),
        "row_each": lambda: hashed_rows_kernel[(tokens,)](ids, table, out, rows, 1, width, num_warps=1),
    }
    return sides, lambda: out


@triton.jit
def gates_kernel(logits, weights, choice, experts: tl.constexpr, tokens: tl.constexpr):
    token, expert = tl.program_id(0) * tokens + tl.arange(0, tokens), tl.arange(0, experts)
    value = tl.load(logits + token[:, None] * experts + expert[None, :]).to(tl.float32)
    top = tl.max(value, 1)
    total = tl.sum(tl.exp(value - top[:, None]), 1)
    index = tl.where(value == top[:, None], expert[None, :], experts)
    tl.store(weights + token, 1.0 / total)
    tl.store(choice + token, tl.min(index, 1))


def gates() -> tuple[dict[str, Run], Check]:
    tokens, experts = 1 << 18, 64
    logits = noise(tokens, experts, dtype=torch.half) * 4
    weights = torch.empty(tokens, device="cuda")
    choice = torch.empty(tokens, device="cuda", dtype=torch.int32)

    def run(each: int, warps: int) -> Run:
        return lambda: gates_kernel[(tokens // each,)](
            logits, weights, choice, experts, each, num_warps=warps
        )

    return {"flawed": run(1, 4), "one_warp": run(8, 1), "tile": run(64, 4)}, lambda: weights + choice


@triton.jit
def ragged_kernel(x, starts, out, width: tl.constexpr, tall: tl.constexpr):
    sequence, column = tl.program_id(0), tl.arange(0, width)
    end = tl.load(starts + sequence + 1)
    total = tl.zeros((width,), tl.float32)
    for first in range(tl.load(starts + sequence), end, tall):
        row = first + tl.arange(0, tall)
        value = tl.load(x + row[:, None] * width + column[None, :], (row < end)[:, None], 0.0)
        total += tl.sum(value.to(tl.float32), 0)
    tl.store(out + sequence * width + column, total)


@triton.jit
def ragged_pieces_kernel(x, starts, out, width: tl.constexpr, tall: tl.constexpr, piece: tl.constexpr):
    sequence, column = tl.program_id(0), tl.arange(0, width)
    begin = tl.load(starts + sequence) + tl.program_id(1) * piece
    end = tl.minimum(tl.load(starts + sequence + 1), begin + piece)
    if begin < end:
        total = tl.zeros((width,), tl.float32)
        for first in range(begin, end, tall):
            row = first + tl.arange(0, tall)
            value = tl.load(x + row[:, None] * width + column[None, :], (row < end)[:, None], 0.0)
            total += tl.sum(value.to(tl.float32), 0)
        tl.atomic_add(out + sequence * width + column, total)


@triton.jit
def ragged_columns_kernel(x, starts, out, width: tl.constexpr, wide: tl.constexpr, tall: tl.constexpr):
    sequence, column = tl.program_id(0), tl.program_id(1) * wide + tl.arange(0, wide)
    end = tl.load(starts + sequence + 1)
    total = tl.zeros((wide,), tl.float32)
    for first in range(tl.load(starts + sequence), end, tall):
        row = first + tl.arange(0, tall)
        value = tl.load(x + row[:, None] * width + column[None, :], (row < end)[:, None], 0.0)
        total += tl.sum(value.to(tl.float32), 0)
    tl.store(out + sequence * width + column, total)


def ragged() -> tuple[dict[str, Run], Check]:
    count, width, longest = 512, 512, 8192
    lengths = (64 * 2 ** (noise(count).abs() * 7)).int().clamp(max=longest)
    starts = torch.zeros(count + 1, device="cuda", dtype=torch.int32)
    starts[1:] = lengths.cumsum(0)
    x = noise(int(starts[-1]) + 64, width, dtype=torch.half)
    out = torch.zeros(count, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: ragged_kernel[(count,)](x, starts, out, width, 8, num_warps=4),
        "pieces": lambda: ragged_pieces_kernel[(count, longest // 512)](
            x, starts, out, width, 8, 512, num_warps=4
        ),
        "columns": lambda: ragged_columns_kernel[(count, width // 64)](
            x, starts, out, width, 64, 32, num_warps=4
        ),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def log_softmax_kernel(x, out, columns, pitch, block: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, block)
    inside = column < columns
    value = tl.load(x + row * pitch + column, inside, -float("inf"))
    value = value - tl.max(value, 0)
    value = value - tl.log(tl.sum(tl.exp(value), 0))
    tl.store(out + row * pitch + column, value, inside)


def log_softmax() -> tuple[dict[str, Run], Check]:
    rows, columns, pitch = 16384, 4003, 4016
    x = noise(rows, columns)
    padded = torch.full((rows, pitch), -float("inf"), device="cuda")
    padded[:, :columns] = x
    out, padded_out = torch.empty_like(x), torch.empty_like(padded)
    found = {"out": out}

    def side(source: torch.Tensor, to: torch.Tensor, warps: int) -> Run:
        def run() -> None:
            log_softmax_kernel[(rows,)](source, to, source.shape[1], source.shape[1], 4096, num_warps=warps)
            found["out"] = to

        return run

    def result() -> torch.Tensor:
        return found["out"][:, :columns].contiguous()

    sides = {
        "flawed": side(x, out, 4),
        "padded": side(padded, padded_out, 4),
        "more_warps": side(x, out, 16),
    }
    return sides, result


@triton.jit
def adam_kernel(gradient, mean, square, weight, out, rate, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    g = tl.load(gradient + at).to(tl.float32)
    m = 0.9 * tl.load(mean + at) + 0.1 * g
    v = 0.95 * tl.load(square + at) + 0.05 * g * g
    w = tl.load(weight + at)
    tl.store(out + at, w - rate * (m / (tl.sqrt(v) + 1e-8) + 0.1 * w))


def adam() -> tuple[dict[str, Run], Check]:
    n = 1 << 25
    gradient, mean, square = noise(n, dtype=torch.half), noise(n), noise(n).abs()
    weight, out = noise(n) * 0.5, torch.empty(n, device="cuda")
    return {
        "sound": lambda: adam_kernel[(n // 1024,)](
            gradient, mean, square, weight, out, 1e-3, 1024, num_warps=4
        )
    }, lambda: out


STUDIES = (
    Study(
        "triton_conv_step_a_program",
        "causal convolution of four steps and SiLU, 8 x 4096 steps of 2048 half channels, in Triton",
        "a program makes one step: every input is loaded four times, and the weights for each step",
        (
            ("run", "a program walks 32 steps and keeps the last three", ("redundant_loads",)),
            ("narrow_run", "a warp walks 64 steps of 256 channels", ("redundant_loads",)),
        ),
        conv_steps,
    ),
    Study(
        "triton_planes_from_bytes_flat",
        "16777216 pixels of three bytes into three planes of floats in Triton",
        "programs follow the bytes: neighbouring lanes store into different planes, with a quotient each",
        (
            ("pixels", "a lane a pixel, its three values one after the other", ("uncoalesced_access",)),
            ("channels", "a program a plane", ("uncoalesced_access", "integer_arithmetic")),
        ),
        planes,
        domain="images",
    ),
    Study(
        "triton_small_products_sixteen_warps",
        "16384 products of half matrices of 64 x 64 in Triton",
        "a program of 16 warps a product of 64 x 64",
        (
            ("four_warps", "four warps a product", ("barriers", "narrow_access")),
            ("four_products", "four warps, four products after each other", ("barriers", "memory_latency")),
        ),
        small_products,
        1e-2,
    ),
    Study(
        "triton_thin_product_32_programs",
        "16 rows of 14336 half values times a matrix for 4096 outputs in Triton",
        "tiles of 128 outputs: 32 programs for the whole GPU",
        (
            ("parts", "the depth in eight parts, added by atomics", ("small_grid",)),
            ("narrow", "tiles of 32 outputs: 128 programs", ("small_grid",)),
        ),
        thin_product,
        1e-2,
    ),
    Study(
        "triton_fp4_table_looked_up",
        "67108864 four-bit floats with a scale for 32 become half values in Triton",
        "each value is looked up in a table of 16 in memory, its byte and scale loaded for it alone",
        (
            ("pairs", "a lane a byte, values by arithmetic", ("redundant_loads", "integer_arithmetic")),
            ("arithmetic", "values by arithmetic in place of the table", ("redundant_loads",)),
        ),
        fp4,
    ),
    Study(
        "triton_hashed_rows_flat_modulo",
        "rows of 128 floats for 131072 hashed tokens from a table of 100003, in Triton",
        "flat 64-bit indices: row and remainder of the hash are worked out for every feature",
        (
            ("rows", "16 tokens a program: a hash a token", ("integer_arithmetic",)),
            ("row_each", "a warp a token", ("integer_arithmetic",)),
        ),
        hashed,
    ),
    Study(
        "triton_gates_four_warps_a_token",
        "softmax's largest weight and its expert of 64 for 262144 tokens in Triton",
        "a program of four warps takes the 64 logits of a token",
        (
            ("tile", "64 tokens a program of four warps", ("idle_threads", "barriers")),
            ("one_warp", "eight tokens a program of one warp", ("idle_threads", "barriers")),
        ),
        gates,
    ),
    Study(
        "triton_ragged_sums_sequence_a_program",
        "sums over 512 sequences of 64 to 8192 rows of 512 half values in Triton",
        "a program a sequence, the longest takes a hundred times as long as the shortest",
        (
            ("pieces", "pieces of 512 rows, added by atomics", ("workload_imbalance",)),
            ("columns", "eight programs a sequence, 64 columns each", ("workload_imbalance", "small_grid")),
        ),
        ragged,
    ),
    Study(
        "triton_log_softmax_odd_pitch",
        "log softmax of 16384 rows of 4003 floats in Triton",
        "rows begin at any multiple of four bytes: loads and stores of four bytes",
        (
            ("padded", "rows filled up to 4016 floats", ("narrow_access",)),
            ("more_warps", "16 warps a row", ("memory_latency",)),
        ),
        log_softmax,
    ),
    Study(
        "sound_triton_adam_step",
        "a step of Adam for 33554432 weights in Triton",
        "",
        (),
        adam,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
