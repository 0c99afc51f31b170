"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: b_products_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


@triton.jit
def conv_divided_kernel(
    x, weights, out, channels: tl.constexpr, outputs: tl.constexpr, side: tl.constexpr, tile: tl.constexpr,
    deep: tl.constexpr,
):  # fmt: skip
    pixel, output = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, outputs)
    sample, row, column = pixel // (side * side), pixel // side % side, pixel % side
    total = tl.zeros((outputs, tile), tl.float32)
    for start in range(0, channels * 9, deep):
        k = start + tl.arange(0, deep)
        channel, tap = k // 9, k % 9
        y, x_at = row[None, :] + (tap // 3)[:, None] - 1, column[None, :] + (tap % 3)[:, None] - 1
        inside = (y >= 0) & (y < side) & (x_at >= 0) & (x_at < side)
        at = ((sample * channels)[None, :] + channel[:, None]) * side * side + y * side + x_at
        value = tl.load(x + at, mask=inside, other=0.0)
        weight = tl.load(weights + output[:, None] * channels * 9 + k[None, :])
        total = tl.dot(weight, value, total)
    place = (sample * outputs)[None, :] + output[:, None]
    tl.store(out + place * side * side + (pixel % (side * side))[None, :], total.to(tl.float16))


@triton.jit
def conv_taps_kernel(
    x, weights, out, channels: tl.constexpr, outputs: tl.constexpr, side: tl.constexpr, tile: tl.constexpr,
    last: tl.constexpr,
):  # fmt: skip
    pixel, output = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, outputs)
    channel = tl.arange(0, channels)
    sample, row, column = pixel // (side * side), pixel // side % side, pixel % side
    total = tl.zeros((outputs, tile), tl.float32)
    for tap in range(9):
        y, x_at = row + tap // 3 - 1, column + tap % 3 - 1
        inside = (y >= 0) & (y < side) & (x_at >= 0) & (x_at < side)
        if last:
            at = ((sample * side + y) * side + x_at)[:, None] * channels + channel[None, :]
            value = tl.trans(tl.load(x + at, mask=inside[:, None], other=0.0))
        else:
            at = (sample * channels * side * side + y * side + x_at)[None, :]
            value = tl.load(x + at + channel[:, None] * side * side, mask=inside[None, :], other=0.0)
        weight = tl.load(weights + (tap * outputs + output)[:, None] * channels + channel[None, :])
        total = tl.dot(weight, value, total)
    place = (sample * outputs)[None, :] + output[:, None]
    tl.store(out + place * side * side + (pixel % (side * side))[None, :], total.to(tl.float16))


def conv() -> tuple[dict[str, Run], Check]:
    samples, channels, outputs, side, tile = 64, 64, 64, 56, 128
    x = noise(samples, channels, side, side, dtype=torch.half)
    weights = (noise(outputs, channels, 9) / 8).half()
    by_tap, last = weights.permute(2, 0, 1).contiguous(), x.permute(0, 2, 3, 1).contiguous()
    out = torch.zeros(samples, outputs, side, side, dtype=torch.half, device="cuda")
    grid = (samples * side * side // tile,)
    sides: dict[str, Run] = {
        "flawed": lambda: conv_divided_kernel[grid](
            x, weights, out, channels, outputs, side, tile, 32, num_warps=4
        ),
        "taps_outside": lambda: conv_taps_kernel[grid](
            x, by_tap, out, channels, outputs, side, tile, False, num_warps=4
        ),
        "channels_last": lambda: conv_taps_kernel[grid](
            last, by_tap, out, channels, outputs, side, tile, True, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def levels_chain_kernel(x, scales, levels, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32) * tl.load(scales + at // 64)
    best = tl.full((block,), 1e30, tl.float32)
    code = tl.zeros((block,), tl.int32)
    for i in tl.static_range(16):
        away = tl.abs(value - tl.load(levels + i))
        code = tl.where(away < best, i, code)
        best = tl.where(away < best, away, best)
    tl.store(out + at, code.to(tl.uint8))


@triton.jit
def levels_counted_kernel(x, scales, middles, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32) * tl.load(scales + at // 64)
    code = tl.zeros((block,), tl.int32)
    for i in tl.static_range(15):
        code += (value > tl.load(middles + i)).to(tl.int32)
    tl.store(out + at, code.to(tl.uint8))


@triton.jit
def levels_halved_kernel(x, scales, middles, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32) * tl.load(scales + at // 64)
    code = tl.where(value > tl.load(middles + 7), 8, 0)
    code += tl.where(value > tl.load(middles + code + 3), 4, 0)
    code += tl.where(value > tl.load(middles + code + 1), 2, 0)
    code += tl.where(value > tl.load(middles + code), 1, 0)
    tl.store(out + at, code.to(tl.uint8))


def nearest_level() -> tuple[dict[str, Run], Check]:
    count, block = 1 << 26, 1024
    x = noise(count, dtype=torch.half)
    scales = 2.0 ** -(torch.arange(count // 64, device="cuda") % 3).float()
    table = (-256, -178, -134, -101, -73, -47, -23, 0, 20, 41, 63, 86, 113, 144, 185, 256)
    levels = torch.tensor(table, device="cuda", dtype=torch.float32) / 256
    middles = (levels[1:] + levels[:-1]) / 2
    out = torch.zeros(count, dtype=torch.uint8, device="cuda")
    grid = (count // block,)
    sides: dict[str, Run] = {
        "flawed": lambda: levels_chain_kernel[grid](x, scales, levels, out, block, num_warps=4),
        "counted": lambda: levels_counted_kernel[grid](x, scales, middles, out, block, num_warps=4),
        "halved": lambda: levels_halved_kernel[grid](x, scales, middles, out, block, num_warps=4),
    }
    return sides, out.float


@triton.jit
def edges_padded_kernel(scores, starts, out, most: tl.constexpr):
    node = tl.program_id(0)
    first, end = tl.load(starts + node), tl.load(starts + node + 1)
    at = first + tl.arange(0, most)
    score = tl.load(scores + at, mask=at < end, other=-1e30)
    weight = tl.exp(score - tl.max(score, 0))
    tl.store(out + at, weight / tl.sum(weight, 0), mask=at < end)


@triton.jit
def edges_pieces_kernel(scores, starts, out, piece: tl.constexpr):
    node = tl.program_id(0)
    first, end = tl.load(starts + node), tl.load(starts + node + 1)
    most = -1e30
    total = 0.0
    for start in range(first, end, piece):
        at = start + tl.arange(0, piece)
        score = tl.load(scores + at, mask=at < end, other=-1e30)
        larger = tl.maximum(most, tl.max(score, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(score - larger), 0)
        most = larger
    for start in range(first, end, piece):
        at = start + tl.arange(0, piece)
        score = tl.load(scores + at, mask=at < end, other=-1e30)
        tl.store(out + at, tl.exp(score - most) / total, mask=at < end)


@triton.jit
def edges_nodes_kernel(scores, starts, out, nodes: tl.constexpr, piece: tl.constexpr):
    node = tl.program_id(0) * nodes + tl.arange(0, nodes)
    first, end = tl.load(starts + node), tl.load(starts + node + 1)
    longest = tl.max(end - first, 0)
    most = tl.full((nodes,), -1e30, tl.float32)
    total = tl.zeros((nodes,), tl.float32)
    for start in range(0, longest, piece):
        at = (first + start)[:, None] + tl.arange(0, piece)[None, :]
        score = tl.load(scores + at, mask=at < end[:, None], other=-1e30)
        larger = tl.maximum(most, tl.max(score, 1))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(score - larger[:, None]), 1)
        most = larger
    for start in range(0, longest, piece):
        at = (first + start)[:, None] + tl.arange(0, piece)[None, :]
        score = tl.load(scores + at, mask=at < end[:, None], other=-1e30)
        tl.store(out + at, tl.exp(score - most[:, None]) / total[:, None], mask=at < end[:, None])


def edge_softmax() -> tuple[dict[str, Run], Check]:
    nodes = 1 << 19
    number = torch.arange(nodes, device="cuda")
    degrees = torch.where(number % 4096 == 77, 1024, 4 + number * 7919 % 25)
    starts = torch.cat((torch.zeros(1, device="cuda", dtype=torch.int64), degrees.cumsum(0))).to(torch.int32)
    scores = noise(int(starts[-1])) * 4
    out = torch.zeros_like(scores)
    sides: dict[str, Run] = {
        "flawed": lambda: edges_padded_kernel[(nodes,)](scores, starts, out, 1024, num_warps=4),
        "pieces": lambda: edges_pieces_kernel[(nodes,)](scores, starts, out, 32, num_warps=1),
        "eight_nodes": lambda: edges_nodes_kernel[(nodes // 8,)](scores, starts, out, 8, 32, num_warps=2),
    }
    return sides, lambda: out


@triton.jit
def pixel_loss_kernel(x, labels, out, places, classes: tl.constexpr):
    pixel, each = tl.program_id(0), tl.arange(0, classes)
    sample, place = pixel // places, pixel % places
    base = x + sample * classes * places + place
    score = tl.load(base + each * places).to(tl.float32)
    most = tl.max(score, 0)
    total = tl.sum(tl.exp(score - most), 0)
    chosen = tl.load(base + tl.load(labels + pixel) * places).to(tl.float32)
    tl.store(out + pixel, tl.log(total) + most - chosen)


@triton.jit
def tile_loss_kernel(x, labels, out, places, classes: tl.constexpr, pixels: tl.constexpr):
    place, sample, each = (
        tl.program_id(0) * pixels + tl.arange(0, pixels),
        tl.program_id(1),
        tl.arange(0, classes),
    )
    base = x + sample * classes * places
    score = tl.load(base + each[:, None] * places + place[None, :]).to(tl.float32)
    most = tl.max(score, 0)
    total = tl.sum(tl.exp(score - most[None, :]), 0)
    label = tl.load(labels + sample * places + place)
    chosen = tl.load(base + label * places + place).to(tl.float32)
    tl.store(out + sample * places + place, tl.log(total) + most - chosen)


@triton.jit
def walked_loss_kernel(x, labels, out, places, classes: tl.constexpr, pixels: tl.constexpr):
    place, sample = tl.program_id(0) * pixels + tl.arange(0, pixels), tl.program_id(1)
    base = x + sample * classes * places + place
    label = tl.load(labels + sample * places + place)
    most = tl.full((pixels,), -1e30, tl.float32)
    total = tl.zeros((pixels,), tl.float32)
    chosen = tl.zeros((pixels,), tl.float32)
    for each in range(classes):
        score = tl.load(base + each * places).to(tl.float32)
        larger = tl.maximum(most, score)
        total = total * tl.exp(most - larger) + tl.exp(score - larger)
        chosen = tl.where(label == each, score, chosen)
        most = larger
    tl.store(out + sample * places + place, tl.log(total) + most - chosen)


def segmentation_loss() -> tuple[dict[str, Run], Check]:
    samples, classes, places = 8, 32, 256 * 512
    x = noise(samples, classes, places, dtype=torch.half) * 6
    labels = (noise(samples, places).abs() * classes).to(torch.int32).clamp(max=classes - 1)
    out = torch.zeros(samples, places, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: pixel_loss_kernel[(samples * places,)](
            x, labels, out, places, classes, num_warps=1
        ),
        "tile": lambda: tile_loss_kernel[(places // 128, samples)](
            x, labels, out, places, classes, 128, num_warps=4
        ),
        "classes_walked": lambda: walked_loss_kernel[(places // 512, samples)](
            x, labels, out, places, classes, 512, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def scaled_product_kernel(
    a, b, row_scales, column_scales, out, n, k, rows: tl.constexpr, columns: tl.constexpr, deep: tl.constexpr
):
    row, column = (
        tl.program_id(1) * rows + tl.arange(0, rows),
        tl.program_id(0) * columns + tl.arange(0, columns),
    )
    inner = tl.arange(0, deep)
    left = a + row[:, None] * k + inner[None, :]
    right = b + column[None, :] * k + inner[:, None]
    total = tl.zeros((rows, columns), tl.int32)
    for start in range(0, k, deep):
        total = tl.dot(tl.load(left + start), tl.load(right + start), total, out_dtype=tl.int32)
    scaled = (
        total.to(tl.float32) * tl.load(row_scales + row)[:, None] * tl.load(column_scales + column)[None, :]
    )
    tl.store(out + row[:, None] * n + column[None, :], scaled.to(tl.float16))


def scaled_product() -> tuple[dict[str, Run], Check]:
    m, n, k = 4096, 4096, 4096
    a, b = ((noise(rows, k) * 127).to(torch.int8) for rows in (m, n))
    b = b.flip(0).contiguous()
    row_scales, column_scales = noise(m).abs() / 4096, noise(n).abs() / 128
    out = torch.zeros(m, n, dtype=torch.half, device="cuda")

    def run(rows: int, columns: int, warps: int) -> Run:
        return lambda: scaled_product_kernel[(n // columns, m // rows)](
            a, b, row_scales, column_scales, out, n, k, rows, columns, 128, num_warps=warps, num_stages=3
        )

    sides = {
        "flawed": run(128, 256, 4),
        "eight_warps": run(128, 256, 8),
        "smaller": run(128, 128, 4),
    }
    return sides, lambda: out


@triton.jit
def experts_padded_kernel(
    x, weights, counts, out, capacity, n, k, tile: tl.constexpr, columns: tl.constexpr, deep: tl.constexpr,
    stops: tl.constexpr,
):  # fmt: skip
    expert = tl.program_id(2)
    row, column = (
        tl.program_id(1) * tile + tl.arange(0, tile),
        tl.program_id(0) * columns + tl.arange(0, columns),
    )
    count, inner = tl.load(counts + expert), tl.arange(0, deep)
    there = (row < count)[:, None]
    left = x + (expert * capacity + row)[:, None] * k + inner[None, :]
    right = weights + expert * k * n + inner[:, None] * n + column[None, :]
    total = tl.zeros((tile, columns), tl.float32)
    end = k
    if stops:
        end = tl.where(tl.program_id(1) * tile < count, k, 0)
    for start in range(0, end, deep):
        value = tl.load(left + start, mask=there, other=0.0)
        total = tl.dot(value, tl.load(right + start * n), total)
    at = (expert * capacity + row)[:, None] * n + column[None, :]
    tl.store(out + at, total.to(tl.float16), mask=there)


@triton.jit
def experts_listed_kernel(
    x, weights, counts, tiles, out, capacity, n, k, tile: tl.constexpr, columns: tl.constexpr,
    deep: tl.constexpr,
):  # fmt: skip
    expert, first = tl.load(tiles + 2 * tl.program_id(1)), tl.load(tiles + 2 * tl.program_id(1) + 1)
    row, column = first + tl.arange(0, tile), tl.program_id(0) * columns + tl.arange(0, columns)
    inner = tl.arange(0, deep)
    there = (row < tl.load(counts + expert))[:, None]
    left = x + (expert * capacity + row)[:, None] * k + inner[None, :]
    right = weights + expert * k * n + inner[:, None] * n + column[None, :]
    total = tl.zeros((tile, columns), tl.float32)
    for start in range(0, k, deep):
        value = tl.load(left + start, mask=there, other=0.0)
        total = tl.dot(value, tl.load(right + start * n), total)
    at = (expert * capacity + row)[:, None] * n + column[None, :]
    tl.store(out + at, total.to(tl.float16), mask=there)


def experts() -> tuple[dict[str, Run], Check]:
    number, capacity, n, k, tile = 32, 1024, 1024, 2048, 128
    x = noise(number, capacity, k, dtype=torch.half)
    weights = (noise(number, k, n) / 16).half()
    filled = [60 + i * 397 % 640 for i in range(number)]
    counts = torch.tensor(filled, device="cuda", dtype=torch.int32)
    listed = [(i, first) for i, count in enumerate(filled) for first in range(0, count, tile)]
    tiles = torch.tensor(listed, device="cuda", dtype=torch.int32)
    out = torch.zeros(number, capacity, n, dtype=torch.half, device="cuda")

    def padded(stops: bool) -> Run:
        return lambda: experts_padded_kernel[(n // 128, capacity // tile, number)](
            x, weights, counts, out, capacity, n, k, tile, 128, 64, stops, num_warps=8, num_stages=3
        )

    sides: dict[str, Run] = {
        "flawed": padded(False),
        "stops": padded(True),
        "listed": lambda: experts_listed_kernel[(n // 128, len(listed))](
            x, weights, counts, tiles, out, capacity, n, k, tile, 128, 64, num_warps=8, num_stages=3
        ),
    }
    return sides, lambda: out


@triton.jit
def low_rank_kernel(
    x, weights, down, up, out, n, k, rank: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    deep: tl.constexpr,
):  # fmt: skip
    row, column = (
        tl.program_id(1) * rows + tl.arange(0, rows),
        tl.program_id(0) * columns + tl.arange(0, columns),
    )
    inner, each = tl.arange(0, deep), tl.arange(0, rank)
    total = tl.zeros((rows, columns), tl.float32)
    low = tl.zeros((rows, rank), tl.float32)
    for start in range(0, k, deep):
        value = tl.load(x + row[:, None] * k + (start + inner)[None, :])
        total = tl.dot(value, tl.load(weights + (start + inner)[:, None] * n + column[None, :]), total)
        low = tl.dot(value, tl.load(down + (start + inner)[:, None] * rank + each[None, :]), low)
    total = tl.dot(low.to(tl.float16), tl.load(up + each[:, None] * n + column[None, :]), total)
    tl.store(out + row[:, None] * n + column[None, :], total.to(tl.float16))


@triton.jit
def low_rank_ready_kernel(
    x, weights, low, up, out, n, k, rank: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    deep: tl.constexpr,
):  # fmt: skip
    row, column = (
        tl.program_id(1) * rows + tl.arange(0, rows),
        tl.program_id(0) * columns + tl.arange(0, columns),
    )
    inner, each = tl.arange(0, deep), tl.arange(0, rank)
    total = tl.zeros((rows, columns), tl.float32)
    for start in range(0, k, deep):
        value = tl.load(x + row[:, None] * k + (start + inner)[None, :])
        total = tl.dot(value, tl.load(weights + (start + inner)[:, None] * n + column[None, :]), total)
    value = tl.load(low + row[:, None] * rank + each[None, :])
    total = tl.dot(value, tl.load(up + each[:, None] * n + column[None, :]), total)
    tl.store(out + row[:, None] * n + column[None, :], total.to(tl.float16))


def low_rank() -> tuple[dict[str, Run], Check]:
    m, n, k, rank = 2048, 4096, 4096, 64
    x = noise(m, k, dtype=torch.half)
    weights, down = (noise(k, n) / 16).half(), (noise(k, rank) / 16).half()
    up = (noise(rank, n) / 4).half()
    low = (x.float() @ down.float()).half()
    out = torch.zeros(m, n, dtype=torch.half, device="cuda")

    def run(columns: int, warps: int) -> Run:
        return lambda: low_rank_kernel[(n // columns, m // 128)](
            x, weights, down, up, out, n, k, rank, 128, columns, 64, num_warps=warps, num_stages=3
        )

    sides: dict[str, Run] = {
        "flawed": run(64, 4),
        "wider": run(128, 8),
        "ready": lambda: low_rank_ready_kernel[(n // 64, m // 128)](
            x, weights, low, up, out, n, k, rank, 128, 64, 64, num_warps=4, num_stages=3
        ),
        "ready_wider": lambda: low_rank_ready_kernel[(n // 128, m // 128)](
            x, weights, low, up, out, n, k, rank, 128, 128, 64, num_warps=8, num_stages=3
        ),
    }
    return sides, lambda: out


def full_floats() -> tuple[dict[str, Run], Check]:
    m, n, k = 2048, 2048, 2048
    x, weights = noise(m, k), noise(n, k).flip(0).t().contiguous()
    half, half_weights = x.half(), weights.half()
    found = {"out": torch.zeros(m, n, device="cuda")}

    def product(allowed: bool) -> Run:
        def run() -> None:
            torch.backends.cuda.matmul.allow_tf32 = allowed
            found["out"] = torch.mm(x, weights)

        return run

    def halves() -> None:
        found["out"] = torch.mm(half, half_weights)

    sides: dict[str, Run] = {"flawed": product(False), "tf32": product(True), "halves": halves}
    return sides, lambda: found["out"]


def max_pool() -> tuple[dict[str, Run], Check]:
    x = noise(64, 64, 112, 112, dtype=torch.half)
    last = x.contiguous(memory_format=torch.channels_last)
    found = {"out": x}

    def pooled(value: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(value, 3, 2, 1)

    compiled = torch.compile(pooled, dynamic=False)

    def eager(value: torch.Tensor) -> Run:
        def run() -> None:
            found["out"] = pooled(value)

        return run

    def fused() -> None:
        found["out"] = compiled(x)

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    sides: dict[str, Run] = {"flawed": eager(x), "channels_last": eager(last), "compiled": fused}
    return sides, result


STUDIES = (
    Study(
        "triton_conv_taps_by_division",
        "3 x 3 convolution of 64 pictures of 56 x 56 and 64 channels as a product of half matrices, in Triton",
        "channel and tap of each value come from quotients by nine in the loop; the taps of a channel lie apart",
        (
            ("taps_outside", "a tap at a time, all channels", ("integer_arithmetic",)),
            (
                "channels_last",
                "a tap at a time, channels stored last",
                ("integer_arithmetic", "uncoalesced_access"),
            ),
        ),
        conv,
        tolerance=4e-3,
    ),
    Study(
        "triton_nearest_of_16_levels_by_selects",
        "67108864 half values to the nearest of 16 uneven levels, a scale for 64, in Triton",
        "the distance to each level, and two selects for each",
        (
            ("counted", "the middles between levels that lie below are counted", ("expensive_math",)),
            ("halved", "the level found by halving among the middles", ("expensive_math",)),
        ),
        nearest_level,
        tolerance=1e-6,
    ),
    Study(
        "triton_edge_softmax_padded_to_the_hubs",
        "softmax over the edges of each of 524288 nodes, 16 edges on average and 1024 at most, in Triton",
        "every node has a program of 1024 places, most of them masked",
        (
            ("pieces", "one warp a node, in pieces of 32", ("idle_threads",)),
            ("eight_nodes", "eight nodes a program, in pieces of 32", ("idle_threads",)),
        ),
        edge_softmax,
        domain="graphs",
    ),
    Study(
        "triton_segmentation_loss_pixel_a_program",
        "cross entropy of 1048576 pixels over 32 classes stored as planes, half, in Triton",
        "a program has one pixel, whose classes lie a plane apart",
        (
            ("tile", "128 pixels a program as one tile", ("uncoalesced_access",)),
            ("classes_walked", "512 pixels a program, class by class", ("uncoalesced_access",)),
        ),
        segmentation_loss,
        domain="images",
    ),
    Study(
        "triton_int8_product_four_warps_for_a_big_tile",
        "product of 4096 x 4096 int8 matrices with a scale for each row and column, in Triton",
        "four warps for a tile of 128 x 256: its sums alone fill their registers",
        (
            ("eight_warps", "eight warps", ("local_memory",)),
            ("smaller", "a tile of 128 x 128", ("local_memory",)),
        ),
        scaled_product,
    ),
    Study(
        "triton_experts_multiply_their_padding",
        "32 experts' products, 1024 places each of which a third are taken, half, in Triton",
        "tiles without any token go through all of the weights like the others",
        (
            ("stops", "a tile without tokens ends at once", ("idle_threads", "redundant_loads")),
            ("listed", "a program for each tile with tokens", ("idle_threads", "redundant_loads")),
        ),
        experts,
        tolerance=4e-3,
    ),
    Study(
        "triton_low_rank_again_for_each_64_columns",
        "product of 2048 x 4096 and 4096 x 4096 halves plus one of rank 64, in Triton",
        "each tile of 64 columns works out the rows' product with the low rank matrix again",
        (
            ("wider", "128 columns a tile", ("redundant_loads",)),
            ("ready", "that product made beforehand", ("redundant_loads",)),
            ("ready_wider", "made beforehand, and 128 columns a tile", ("redundant_loads",)),
        ),
        low_rank,
        tolerance=4e-3,
    ),
    Study(
        "torch_product_in_full_floats",
        "torch's product of 2048 x 2048 float matrices",
        "full single precision, as is torch's default, where a network needs no more than TF32",
        (
            ("tf32", "TF32 allowed", ("tensor_cores_idle",)),
            ("halves", "half matrices", ("tensor_cores_idle",)),
        ),
        full_floats,
        tolerance=4e-3,
    ),
    Study(
        "torch_max_pool_by_planes",
        "torch's maximum of 3 x 3 by steps of two, 64 pictures of 112 x 112 and 64 channels, half",
        "a thread a value with quotients for its place, lanes that step over every second value, and an index "
        "of eight bytes for each that nobody reads",
        (
            ("channels_last", "pictures stored channels last", ("uncoalesced_access", "integer_arithmetic")),
            ("compiled", "compiled by torch, without the indices", ("integer_arithmetic",)),
        ),
        max_pool,
        domain="images",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
