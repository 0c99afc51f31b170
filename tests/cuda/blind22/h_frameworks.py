"""Studies in Triton of weather, scans, radar, graphs and users, run by what tests/cuda/variants/frameworks.py provides.

Usage: h_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- computed tomography ---


@triton.jit
def attenuation_kernel(
    counts, out, views, row_pitch, scale, channels, height: tl.constexpr, width: tl.constexpr
):
    """Counts of [view, row, channel] as attenuations of [row, channel, view]; ``height`` views a program."""
    view = tl.program_id(0) * height + tl.arange(0, height)[:, None]
    channel = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    row = tl.program_id(2)
    count = tl.load(counts + view * row_pitch + row * channels + channel).to(tl.float32)
    tl.store(out + (row * channels + channel) * views + view, -tl.log((count + 1.0) * scale))


def attenuation(views: int = 1024, rows: int = 16, channels: int = 1024) -> tuple[dict[str, Run], Check]:
    counts = (noise(views, rows, channels) * 15000.0 + 15001.0).to(torch.int16)
    out = torch.empty(rows, channels, views, device="cuda")

    def side(height: int, width: int) -> Run:
        grid = (views // height, channels // width, rows)
        return lambda: attenuation_kernel[grid](
            counts, out, views, rows * channels, 1.0 / 30000.0, channels, height, width, num_warps=4
        )

    return {"flawed": side(1, 1024), "square": side(64, 64), "tall": side(128, 32)}, lambda: out


@triton.jit
def windowed_flat_kernel(
    volume, out, low, gain, shape_y, shape_x, pitch_y, pitch_x, first, wide: tl.constexpr, block: tl.constexpr
):
    """A part of a volume as bytes: ``first`` is where it begins, pitches are those of the whole volume."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    if wide:
        at = at.to(tl.int64)
    x = at % shape_x
    y = (at // shape_x) % shape_y
    z = at // (shape_x * shape_y)
    value = tl.load(volume + first + z * pitch_y * pitch_x + y * pitch_x + x).to(tl.float32)
    value = tl.minimum(tl.maximum((value - low) * gain, 0.0), 255.0)
    tl.store(out + at, value.to(tl.int32).to(tl.uint8))


@triton.jit
def windowed_rows_kernel(
    volume, out, low, gain, shape_y, shape_x, pitch_y, pitch_x, first, rows: tl.constexpr, block: tl.constexpr
):
    """The same, ``rows`` rows of a slice a program."""
    z = tl.program_id(2)
    y = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    x = tl.program_id(0) * block + tl.arange(0, block)[None, :]
    inside = x < shape_x
    value = tl.load(volume + first + (z * pitch_y + y) * pitch_x + x, mask=inside, other=0).to(tl.float32)
    value = tl.minimum(tl.maximum((value - low) * gain, 0.0), 255.0)
    tl.store(out + (z * shape_y + y) * shape_x + x, value.to(tl.int32).to(tl.uint8), mask=inside)


def windowed(slices: int = 256, height: int = 384, width: int = 384) -> tuple[dict[str, Run], Check]:
    pitch_y, pitch_x = height + 128, width + 128
    volume = (noise(slices, pitch_y, pitch_x) * 2000.0).to(torch.int16)
    out = torch.empty(slices, height, width, device="cuda", dtype=torch.uint8)
    first = 64 * pitch_x + 64
    sizes = (height, width, pitch_y, pitch_x, first)

    def flat(wide: bool) -> Run:
        grid = (slices * height * width // 1024,)
        return lambda: windowed_flat_kernel[grid](volume, out, -500.0, 0.2, *sizes, wide, 1024, num_warps=4)

    return {
        "flawed": flat(True),
        "words": flat(False),
        "rows": lambda: windowed_rows_kernel[(triton.cdiv(width, 128), height // 16, slices)](
            volume, out, -500.0, 0.2, *sizes, 16, 128, num_warps=4
        ),
    }, out.float


# --- weather ---


@triton.jit
def level_kernel(pressures, temperatures, wanted, out, columns, levels, block: tl.constexpr):
    """Temperatures at a pressure between a model's levels, linear in pressure."""
    target = tl.program_id(0)
    column = tl.program_id(1) * block + tl.arange(0, block)
    asked = tl.load(wanted + target)
    above = tl.load(pressures + column)
    warm_above = tl.load(temperatures + column)
    found = warm_above
    for level in tl.range(1, levels, loop_unroll_factor=4):
        below = tl.load(pressures + level * columns + column)
        warm_below = tl.load(temperatures + level * columns + column)
        slope = (warm_below - warm_above) / (below - above)
        found = tl.where(asked > above, warm_above + slope * (asked - above), found)
        above, warm_above = below, warm_below
    tl.store(out + target * columns + column, found)


@triton.jit
def levels_kernel(
    pressures, temperatures, wanted, out, columns, levels, targets: tl.constexpr, block: tl.constexpr
):
    """The same at ``targets`` pressures."""
    target = tl.program_id(0) * targets + tl.arange(0, targets)
    column = tl.program_id(1) * block + tl.arange(0, block)
    asked = tl.load(wanted + target)[:, None]
    above = tl.load(pressures + column)
    warm_above = tl.load(temperatures + column)
    found = tl.zeros((targets, block), tl.float32) + warm_above[None, :]
    for level in tl.range(1, levels, loop_unroll_factor=4):
        below = tl.load(pressures + level * columns + column)
        warm_below = tl.load(temperatures + level * columns + column)
        slope = (warm_below - warm_above) / (below - above)
        between = warm_above[None, :] + slope[None, :] * (asked - above[None, :])
        found = tl.where(asked > above[None, :], between, found)
        above, warm_above = below, warm_below
    tl.store(out + target[:, None] * columns + column[None, :], found)


@triton.jit
def levels_four_kernel(pressures, temperatures, wanted, out, columns, levels, block: tl.constexpr):
    """The same at four pressures, each a value of its own."""
    target = tl.program_id(0) * 4
    column = tl.program_id(1) * block + tl.arange(0, block)
    asked0, asked1 = tl.load(wanted + target), tl.load(wanted + target + 1)
    asked2, asked3 = tl.load(wanted + target + 2), tl.load(wanted + target + 3)
    above = tl.load(pressures + column)
    warm_above = tl.load(temperatures + column)
    found0, found1, found2, found3 = warm_above, warm_above, warm_above, warm_above
    for level in tl.range(1, levels, loop_unroll_factor=4):
        below = tl.load(pressures + level * columns + column)
        warm_below = tl.load(temperatures + level * columns + column)
        slope = (warm_below - warm_above) / (below - above)
        found0 = tl.where(asked0 > above, warm_above + slope * (asked0 - above), found0)
        found1 = tl.where(asked1 > above, warm_above + slope * (asked1 - above), found1)
        found2 = tl.where(asked2 > above, warm_above + slope * (asked2 - above), found2)
        found3 = tl.where(asked3 > above, warm_above + slope * (asked3 - above), found3)
        above, warm_above = below, warm_below
    at = out + target * columns + column
    tl.store(at, found0)
    tl.store(at + columns, found1)
    tl.store(at + 2 * columns, found2)
    tl.store(at + 3 * columns, found3)


def levels(count: int = 16, sources: int = 41, columns: int = 262144) -> tuple[dict[str, Run], Check]:
    surface = noise(columns) * 4000.0 + 98000.0
    height = torch.linspace(0.05, 1.0, sources, device="cuda")
    pressures = (height[:, None] * surface[None, :]).contiguous()
    temperatures = 220.0 + 70.0 * height[:, None] + 3.0 * noise(sources, columns)
    wanted = torch.linspace(10000.0, 90000.0, count, device="cuda")
    out = torch.empty(count, columns, device="cuda")

    parts = (pressures, temperatures, wanted, out, columns, sources)
    return {
        "flawed": lambda: level_kernel[(count, columns // 512)](*parts, 512, num_warps=4),
        "all": lambda: levels_kernel[(1, columns // 64)](*parts, count, 64, num_warps=1),
        "four": lambda: levels_four_kernel[(count // 4, columns // 512)](*parts, 512, num_warps=4),
    }, lambda: out


@triton.jit
def scores_kernel(forecasts, truths, weights, out, points, width, block: tl.constexpr):
    """A field's weighted sum of squared errors."""
    at = tl.program_id(0) * points
    total = tl.zeros((block,), tl.float32)
    for start in range(0, points, block):
        point = start + tl.arange(0, block)
        inside = point < points
        error = tl.load(forecasts + at + point, mask=inside, other=0.0)
        error -= tl.load(truths + at + point, mask=inside, other=0.0)
        total += error * error * tl.load(weights + point // width, mask=inside, other=0.0)
    tl.atomic_add(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def scores_parts_kernel(forecasts, truths, weights, out, points, width, part, block: tl.constexpr):
    """The same of ``part`` points of a field."""
    at = tl.program_id(0) * points
    first = tl.program_id(1) * part
    total = tl.zeros((block,), tl.float32)
    for start in range(first, first + part, block):
        point = start + tl.arange(0, block)
        inside = point < points
        error = tl.load(forecasts + at + point, mask=inside, other=0.0)
        error -= tl.load(truths + at + point, mask=inside, other=0.0)
        total += error * error * tl.load(weights + point // width, mask=inside, other=0.0)
    tl.atomic_add(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def scores_rows_kernel(forecasts, truths, weights, out, height, width, rows, block: tl.constexpr):
    """The same of ``rows`` rows of a field, each of one weight."""
    column = tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    first = tl.program_id(0) * rows
    for row in range(first, tl.minimum(first + rows, height)):
        at = (tl.program_id(1) * height + row) * width + column
        error = tl.load(forecasts + at, mask=column < width, other=0.0)
        error -= tl.load(truths + at, mask=column < width, other=0.0)
        total += error * error * tl.load(weights + row)
    tl.atomic_add(out + tl.program_id(1), tl.sum(total, 0))


def scores(fields: int = 40, height: int = 721, width: int = 1440) -> tuple[dict[str, Run], Check]:
    forecasts = noise(fields, height, width)
    truths = forecasts.flip(2).contiguous()
    weights = torch.cos(torch.linspace(-1.57, 1.57, height, device="cuda"))
    out = torch.zeros(fields, device="cuda")
    points = height * width
    part = 32768
    return {
        "flawed": lambda: scores_kernel[(fields,)](
            forecasts, truths, weights, out, points, width, 2048, num_warps=8
        ),
        "parts": lambda: scores_parts_kernel[(fields, triton.cdiv(points, part))](
            forecasts, truths, weights, out, points, width, part, 2048, num_warps=8
        ),
        "rows": lambda: scores_rows_kernel[(triton.cdiv(height, 16), fields)](
            forecasts, truths, weights, out, height, width, 16, triton.next_power_of_2(width), num_warps=8
        ),
    }, lambda: (out.clone(), out.zero_())[0]


# --- graphs ---


@triton.jit
def gathered_edges_kernel(messages, ends, out, edges: tl.constexpr, width: tl.constexpr):
    """Messages added to the nodes where their edges end."""
    edge = tl.program_id(0) * edges + tl.arange(0, edges)
    feature = tl.arange(0, width)[None, :]
    end = tl.load(ends + edge)
    value = tl.load(messages + edge[:, None] * width + feature)
    tl.atomic_add(out + end[:, None] * width + feature, value, sem="relaxed")


@triton.jit
def gathered_node_kernel(messages, begins, out, rows: tl.constexpr, width: tl.constexpr):
    """The same for edges in the order of their ends: a node a program."""
    node = tl.program_id(0)
    first, last = tl.load(begins + node), tl.load(begins + node + 1)
    feature = tl.arange(0, width)[None, :]
    total = tl.zeros((rows, width), tl.float32)
    for start in range(first, last, rows):
        edge = start + tl.arange(0, rows)[:, None]
        total += tl.load(messages + edge * width + feature, mask=edge < last, other=0.0)
    tl.store(out + node * width + tl.arange(0, width), tl.sum(total, 0))


@triton.jit
def gathered_nodes_kernel(messages, begins, out, nodes: tl.constexpr, width: tl.constexpr):
    """The same, several nodes abreast, each edge by edge."""
    node = tl.program_id(0) * nodes + tl.arange(0, nodes)
    first, last = tl.load(begins + node), tl.load(begins + node + 1)
    feature = tl.arange(0, width)[None, :]
    total = tl.zeros((nodes, width), tl.float32)
    for step in tl.range(0, tl.max(last - first, 0), loop_unroll_factor=4):
        edge = (first + step)[:, None]
        total += tl.load(messages + edge * width + feature, mask=edge < last[:, None], other=0.0)
    tl.store(out + node[:, None] * width + feature, total)


def gathered(nodes: int = 65536, width: int = 64) -> tuple[dict[str, Run], Check]:
    degrees = (noise(nodes) * 8.0 + 16.5).to(torch.int32)
    begins = torch.zeros(nodes + 1, device="cuda", dtype=torch.int32)
    begins[1:] = torch.cumsum(degrees, 0)
    ends = torch.repeat_interleave(torch.arange(nodes, device="cuda", dtype=torch.int32), degrees)
    edges = int(begins[-1]) // 64 * 64
    begins.clamp_(max=edges)
    ends = ends[:edges].contiguous()
    messages = noise(edges, width) + 0.5
    out = torch.zeros(nodes, width, device="cuda")
    return {
        "flawed": lambda: gathered_edges_kernel[(edges // 64,)](messages, ends, out, 64, width, num_warps=4),
        "node": lambda: gathered_node_kernel[(nodes,)](messages, begins, out, 16, width, num_warps=1),
        "nodes": lambda: gathered_nodes_kernel[(nodes // 16,)](messages, begins, out, 16, width, num_warps=4),
    }, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def mesh_means_kernel(
    features, neighbours, out, pitch, degree: tl.constexpr, nodes: tl.constexpr, width: tl.constexpr
):
    """Means of neighbours' features; ``width`` features of some nodes a program."""
    node = tl.program_id(0) * nodes + tl.arange(0, nodes)
    feature = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    total = tl.zeros((nodes, width), tl.float32)
    for k in tl.range(0, degree, loop_unroll_factor=4):
        other = tl.load(neighbours + node * degree + k)
        total += tl.load(features + other[:, None] * pitch + feature)
    tl.store(out + node[:, None] * pitch + feature, total * (1.0 / degree))


def mesh_means(side: int = 512, width: int = 128) -> tuple[dict[str, Run], Check]:
    """A mesh whose nodes are numbered by chance, and the same numbered tile by tile."""
    count = side * side
    place = torch.arange(count, device="cuda").reshape(side, side)
    steps = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if (y, x) not in ((0, 0),) and abs(y * x) < 4]
    steps = [step for step in steps if abs(step[0] * step[1]) != 2 or step[0] > 0][:16]
    around = torch.stack([torch.roll(place, step, (0, 1)).reshape(-1) for step in steps], 1)
    tile = min(16, side)
    new = place.reshape(side // tile, tile, side // tile, tile).transpose(1, 2).reshape(-1)
    chance = torch.argsort(noise(count))
    features = noise(count, width)

    def numbered(order: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Features and neighbours where the k-th node is that of place ``order[k]``, and where each place went."""
        where = torch.empty_like(order)
        where[order] = torch.arange(count, device="cuda")
        return features[order].contiguous(), where[around[order]].to(torch.int32).contiguous(), where

    scattered, near = numbered(chance), numbered(new)
    out = torch.empty(count, width, device="cuda")
    last = {"where": scattered[2]}

    def run(data: tuple[torch.Tensor, torch.Tensor, torch.Tensor], nodes: int, part: int) -> Run:
        def launched() -> None:
            last["where"] = data[2]
            mesh_means_kernel[(count // nodes, width // part)](
                data[0], data[1], out, width, len(steps), nodes, part, num_warps=4
            )

        return launched

    return {
        "flawed": run(scattered, 8, width),
        "slices": run(scattered, 64, 16),
        "renumbered": run(near, 8, width),
    }, lambda: out[last["where"]]


# --- recommenders ---


@triton.jit
def history_kernel(
    table, history, users, out, length, items: tl.constexpr, width: tl.constexpr, stages: tl.constexpr
):
    """What a user looked at, each item by how much it is like what is offered."""
    user = tl.program_id(0)
    feature = tl.arange(0, width)
    own = tl.load(users + user * width + feature)
    total = tl.zeros((items, width), tl.float32)
    for start in tl.range(0, length, items, num_stages=stages):
        item = tl.load(history + user * length + start + tl.arange(0, items))
        row = tl.load(table + item[:, None] * width + feature[None, :]).to(tl.float32)
        share = tl.sigmoid(tl.sum(row * own[None, :], 1))
        total += share[:, None] * row
    tl.store(out + user * width + feature, tl.sum(total, 0))


@triton.jit
def history_ahead_kernel(table, history, users, out, length, items: tl.constexpr, width: tl.constexpr):
    """The same, rows loaded before those ahead of them are worked out, and their numbers before that."""
    user = tl.program_id(0)
    feature = tl.arange(0, width)
    own = tl.load(users + user * width + feature)
    total = tl.zeros((items, width), tl.float32)
    at = history + user * length + tl.arange(0, items)
    row = tl.load(table + tl.load(at)[:, None] * width + feature[None, :])
    following = tl.load(at + items)
    for start in range(0, length, items):
        coming = tl.load(table + following[:, None] * width + feature[None, :])
        following = tl.load(at + tl.minimum(start + 2 * items, length - items))
        value = row.to(tl.float32)
        share = tl.sigmoid(tl.sum(value * own[None, :], 1))
        total += share[:, None] * value
        row = coming
    tl.store(out + user * width + feature, tl.sum(total, 0))


def history(
    count: int = 264, length: int = 4096, words: int = 1 << 20, width: int = 64
) -> tuple[dict[str, Run], Check]:
    table = noise(words, width, dtype=torch.half)
    generator = torch.Generator(device="cuda").manual_seed(2)
    seen = torch.randint(0, words, (count, length), device="cuda", dtype=torch.int32, generator=generator)
    users, out = noise(count, width), torch.empty(count, width, device="cuda")
    grid = (count,)
    return {
        "flawed": lambda: history_kernel[grid](table, seen, users, out, length, 16, width, 1, num_warps=4),
        "wide": lambda: history_kernel[grid](table, seen, users, out, length, 128, width, 1, num_warps=8),
        "staged": lambda: history_kernel[grid](table, seen, users, out, length, 32, width, 4, num_warps=4),
        "ahead": lambda: history_ahead_kernel[grid](table, seen, users, out, length, 64, width, num_warps=4),
    }, lambda: out


@triton.jit
def bags_kernel(values, order, begins, out, items: tl.constexpr, width: tl.constexpr):
    """Sums of bags of items, a bag a program."""
    bag = tl.load(order + tl.program_id(0))
    first, last = tl.load(begins + bag), tl.load(begins + bag + 1)
    feature = tl.arange(0, width)
    total = tl.zeros((items, width), tl.float32)
    for start in range(first, last, items):
        item = start + tl.arange(0, items)[:, None]
        inside = item < last
        total += tl.load(values + item * width + feature[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(out + bag * width + feature, tl.sum(total, 0), sem="relaxed")


@triton.jit
def bags_pieces_kernel(values, pieces, begins, out, most, items: tl.constexpr, width: tl.constexpr):
    """The same from a list of pieces of no more than ``most`` items: a bag and where in it."""
    bag = tl.load(pieces + 2 * tl.program_id(0))
    first = tl.load(begins + bag) + tl.load(pieces + 2 * tl.program_id(0) + 1)
    last = tl.minimum(tl.load(begins + bag + 1), first + most)
    feature = tl.arange(0, width)
    total = tl.zeros((items, width), tl.float32)
    for start in range(first, last, items):
        item = start + tl.arange(0, items)[:, None]
        inside = item < last
        total += tl.load(values + item * width + feature[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(out + bag * width + feature, tl.sum(total, 0), sem="relaxed")


def bags(count: int = 16384, least: int = 48, width: int = 64) -> tuple[dict[str, Run], Check]:
    """Bags of users in the order of how much they do, the busiest last."""
    rank = torch.arange(count, 0, -1, device="cuda").float()
    lengths = (least * torch.sqrt(count / rank)).to(torch.int32)
    begins = torch.zeros(count + 1, device="cuda", dtype=torch.int32)
    begins[1:] = torch.cumsum(lengths, 0)
    values = noise(int(begins[-1]), width, dtype=torch.half)
    out = torch.zeros(count, width, device="cuda")
    order = torch.arange(count, device="cuda", dtype=torch.int32)
    longest = order.flip(0).contiguous()
    most = 256
    each = (lengths + most - 1) // most
    owner = torch.repeat_interleave(order, each)
    begun = torch.cumsum(each, 0) - each
    within = torch.arange(owner.numel(), device="cuda") - begun[owner.long()]
    pieces = torch.stack([owner, (within * most).to(torch.int32)], 1).contiguous()

    def side(which: torch.Tensor) -> Run:
        return lambda: bags_kernel[(count,)](values, which, begins, out, 32, width, num_warps=4)

    return {
        "flawed": side(order),
        "pieces": lambda: bags_pieces_kernel[(pieces.shape[0],)](
            values, pieces, begins, out, most, 32, width, num_warps=4
        ),
        "longest_first": side(longest),
    }, lambda: (out.clone(), out.zero_())[0]


# --- radar and radio ---


@triton.jit
def magnitude(real, imaginary):
    """About how long a pair of bytes is: the larger, and three eighths of the smaller."""
    a, b = tl.abs(real.to(tl.int32)), tl.abs(imaginary.to(tl.int32))
    return (tl.maximum(a, b) + ((3 * tl.minimum(a, b)) >> 3)).to(tl.uint8)


@triton.jit
def magnitudes_kernel(reals, imaginaries, out, bins, pitch, rows: tl.constexpr, block: tl.constexpr):
    """Magnitudes of some pulses' bins of range."""
    pulse = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    bin_ = tl.program_id(0) * block + tl.arange(0, block)[None, :]
    at = pulse * pitch + bin_
    inside = bin_ < bins
    found = magnitude(
        tl.load(reals + at, mask=inside, other=0), tl.load(imaginaries + at, mask=inside, other=0)
    )
    tl.store(out + at, found, mask=inside)


@triton.jit
def magnitudes_flat_kernel(reals, imaginaries, out, count, block: tl.constexpr):
    """The same, whatever pulse a bin is of."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    found = magnitude(
        tl.load(reals + at, mask=inside, other=0), tl.load(imaginaries + at, mask=inside, other=0)
    )
    tl.store(out + at, found, mask=inside)


def magnitudes(pulses: int = 8192, bins: int = 4097) -> tuple[dict[str, Run], Check]:
    pitch = triton.cdiv(bins, 128) * 128
    both = (noise(2, pulses, bins) * 120.0).to(torch.int8)
    wide = torch.zeros(2, pulses, pitch, device="cuda", dtype=torch.int8)
    wide[:, :, :bins] = both
    out = torch.empty(pulses, bins, device="cuda", dtype=torch.uint8)
    wide_out = torch.empty(pulses, pitch, device="cuda", dtype=torch.uint8)
    last = {"out": out}
    count = pulses * bins

    def flawed() -> None:
        last["out"] = out
        magnitudes_kernel[(triton.cdiv(bins, 512), pulses // 4)](
            both[0], both[1], out, bins, bins, 4, 512, num_warps=4
        )

    def flat() -> None:
        last["out"] = out
        magnitudes_flat_kernel[(triton.cdiv(count, 2048),)](both[0], both[1], out, count, 2048, num_warps=4)

    def padded() -> None:
        last["out"] = wide_out
        magnitudes_kernel[(triton.cdiv(pitch, 512), pulses // 4)](
            wide[0], wide[1], wide_out, pitch, pitch, 4, 512, num_warps=4
        )

    def found() -> torch.Tensor:
        return last["out"][:, :bins].float()

    return {"flawed": flawed, "flat": flat, "padded": padded}, found


@triton.jit
def mixed_kernel(
    x, steps, reals, imaginaries, count, polynomials: tl.constexpr, rows: tl.constexpr, width: tl.constexpr
):
    """A channel mixed down to zero, ``width`` samples summed; a phase is a 2^32-nd of a turn."""
    window = tl.program_id(0) * rows + tl.arange(0, rows)
    sample = window[:, None] * width + tl.arange(0, width)[None, :]
    value = tl.load(x + sample).to(tl.float32)
    phase = sample * tl.load(steps + tl.program_id(1))
    if polynomials:
        quarter = (phase + 0x20000000) >> 30
        rest = phase - (quarter << 30)
        angle = rest.to(tl.float32) * 1.4629180792671596e-09
        square = angle * angle
        sine = angle * (1.0 + square * (-0.16666667 + square * (0.008333331 + square * -0.00019840874)))
        cosine = 1.0 + square * (
            -0.5 + square * (0.041666646 + square * (-0.0013887316 + square * 2.4433157e-05))
        )
        odd = (quarter & 1) != 0
        real = tl.where(odd, sine, cosine)
        real = tl.where(((quarter + 1) & 2) != 0, -real, real)
        imaginary = tl.where(odd, cosine, sine)
        imaginary = tl.where((quarter & 2) != 0, -imaginary, imaginary)
    else:
        angle = phase.to(tl.float32) * 1.4629180792671596e-09
        real = tl.cos(angle)
        imaginary = tl.sin(angle)
    at = tl.program_id(1) * count + window
    tl.store(reals + at, tl.sum(value * real, 1))
    tl.store(imaginaries + at, -tl.sum(value * imaginary, 1))


@triton.jit
def mixed_turned_kernel(x, steps, reals, imaginaries, count, rows: tl.constexpr, width: tl.constexpr):
    """The same: summed as if each window began at phase zero, then turned."""
    window = tl.program_id(0) * rows + tl.arange(0, rows)
    own = tl.arange(0, width)
    step = tl.load(steps + tl.program_id(1))
    value = tl.load(x + window[:, None] * width + own[None, :]).to(tl.float32)
    angle = (own * step).to(tl.float32) * 1.4629180792671596e-09
    real = tl.sum(value * tl.cos(angle)[None, :], 1)
    imaginary = -tl.sum(value * tl.sin(angle)[None, :], 1)
    begin = (window * width * step).to(tl.float32) * 1.4629180792671596e-09
    cosine, sine = tl.cos(begin), tl.sin(begin)
    at = tl.program_id(1) * count + window
    tl.store(reals + at, real * cosine + imaginary * sine)
    tl.store(imaginaries + at, imaginary * cosine - real * sine)


def mixed(channels: int = 8, count: int = 131072, width: int = 64) -> tuple[dict[str, Run], Check]:
    x = (noise(count * width) * 20000.0).to(torch.int16)
    steps = (noise(channels) * 1.0e9).to(torch.int32)
    out = torch.empty(2, channels, count, device="cuda")
    grid = (count // 32, channels)

    def side(polynomials: bool) -> Run:
        return lambda: mixed_kernel[grid](
            x, steps, out[0], out[1], count, polynomials, 32, width, num_warps=4
        )

    return {
        "flawed": side(False),
        "polynomials": side(True),
        "turned": lambda: mixed_turned_kernel[(count // 128, channels)](
            x, steps, out[0], out[1], count, 128, width, num_warps=4
        ),
    }, lambda: out


# --- speech ---


@triton.jit
def likelihoods_kernel(emissions, moves, starts, out, steps, states: tl.constexpr):
    """Logarithms of how likely sequences are by a hidden Markov model."""
    state = tl.arange(0, states)
    move = tl.load(moves + state[:, None] * states + state[None, :])
    at = emissions + tl.program_id(0) * steps * states + state
    chance = tl.load(starts + state)
    found = 0.0
    for _ in range(steps):
        chance = tl.sum(chance[:, None] * move, 0) * tl.load(at)
        at += states
        scale = tl.sum(chance, 0)
        chance = chance / scale
        found += tl.log(scale)
    tl.store(out + tl.program_id(0), found)


@triton.jit
def likelihoods_turns_kernel(emissions, moves, turned_moves, starts, out, steps, states: tl.constexpr):
    """The same, summed over rows and over columns in turns."""
    state = tl.arange(0, states)
    place = state[:, None] * states + state[None, :]
    move, turned = tl.load(moves + place), tl.load(turned_moves + place)
    at = emissions + tl.program_id(0) * steps * states + state
    chance = tl.load(starts + state)
    found = 0.0
    for _ in range(0, steps, 2):
        between = tl.sum(chance[:, None] * move, 0) * tl.load(at)
        scale = tl.sum(between, 0)
        chance = tl.sum((between / scale)[None, :] * turned, 1) * tl.load(at + states)
        at += 2 * states
        found += tl.log(scale)
    tl.store(out + tl.program_id(0), found + tl.log(tl.sum(chance, 0)))


def likelihoods(sequences: int = 2112, steps: int = 256, states: int = 64) -> tuple[dict[str, Run], Check]:
    emissions = noise(sequences, steps, states) * 0.5 + 0.55
    moves = noise(states, states) + 1.1
    moves = (moves / moves.sum(1, keepdim=True)).contiguous()
    turned = moves.t().contiguous()
    starts = torch.full((states,), 1.0 / states, device="cuda")
    out = torch.empty(sequences, device="cuda")
    grid = (sequences,)

    parts = (emissions, moves, starts, out, steps, states)
    return {
        "flawed": lambda: likelihoods_kernel[grid](*parts, num_warps=4),
        "warp": lambda: likelihoods_kernel[grid](*parts, num_warps=1),
        "turns": lambda: likelihoods_turns_kernel[grid](
            emissions, moves, turned, starts, out, steps, states, num_warps=4
        ),
    }, lambda: out


# --- without a flaw ---


@triton.jit
def charges_kernel(prices, discounts, taxes, quantities, out, block: tl.constexpr):
    """What each line of an order costs, from four columns."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    price = tl.load(prices + at) * tl.load(quantities + at).to(tl.float32)
    tl.store(out + at, price * (1.0 - tl.load(discounts + at)) * (1.0 + tl.load(taxes + at)))


def charges(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    columns = noise(3, count) * 0.05 + 0.05
    quantities = (columns[0] * 500.0).to(torch.int32)
    out = torch.empty(count, device="cuda")
    return {
        "sound": lambda: charges_kernel[(count // 1024,)](
            columns[0], columns[1], columns[2], quantities, out, 1024, num_warps=4
        ),
    }, lambda: out


@triton.jit
def frames_kernel(x, out, rows: tl.constexpr, bands: tl.constexpr):
    """Frames of a spectrogram with a mean of zero and a deviation of one."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)[:, None]
    at = row * bands + tl.arange(0, bands)[None, :]
    value = tl.load(x + at).to(tl.float32)
    value -= (tl.sum(value, 1) / bands)[:, None]
    scale = tl.rsqrt(tl.sum(value * value, 1) / bands + 1e-5)
    tl.store(out + at, (value * scale[:, None]).to(tl.float16))


def frames(count: int = 262144, bands: int = 128) -> tuple[dict[str, Run], Check]:
    x = noise(count, bands, dtype=torch.half)
    out = torch.empty_like(x)
    return {
        "sound": lambda: frames_kernel[(count // 16,)](x, out, 16, bands, num_warps=4),
    }, lambda: out


STUDIES = (
    Study(
        "triton_attenuations_stored_a_view_a_program",
        "counts of 1024 views as attenuations, the view made the innermost axis, in Triton",
        "a program's values of one view are stored 4096 bytes apart",
        (
            ("square", "64 views by 64 channels a program", ("uncoalesced_access",)),
            ("tall", "128 views by 32 channels a program", ("uncoalesced_access",)),
        ),
        attenuation,
        domain="medicine",
    ),
    Study(
        "triton_volume_cropped_by_wide_divisions",
        "the inner 384 x 384 of 256 slices of a volume of sixteen bits as bytes, in Triton",
        "each value's place comes from divisions of 64-bit numbers",
        (
            ("words", "places of 32 bits", ("integer_arithmetic",)),
            ("rows", "rows and slices from the grid", ("integer_arithmetic",)),
        ),
        windowed,
        tolerance=0.0,
        domain="medicine",
    ),
    Study(
        "triton_pressure_levels_one_at_a_time",
        "temperatures of 262144 columns of 41 levels at sixteen pressures, in Triton",
        "the whole column is read again for each of the pressures",
        (
            ("all", "all sixteen pressures a program", ("redundant_loads",)),
            ("four", "four pressures a program", ("redundant_loads",)),
        ),
        levels,
        domain="weather",
    ),
    Study(
        "triton_forecast_scores_40_programs",
        "weighted squared errors of 40 fields of 721 x 1440 points, in Triton",
        "a program for each field: 40 of them",
        (
            ("parts", "a program for each 32768 points, added by atomics", ("small_grid",)),
            ("rows", "a program for each sixteen rows, added by atomics", ("small_grid",)),
        ),
        scores,
        domain="weather",
    ),
    Study(
        "triton_edge_messages_added_by_atomics",
        "about a million edges' messages of 64 features summed for 65536 nodes, in Triton",
        "an atomic for each feature of each edge",
        (
            ("node", "a node a program, which walks its edges", ("global_atomics",)),
            ("nodes", "sixteen nodes abreast, each edge by edge", ("global_atomics",)),
        ),
        gathered,
        domain="graphs",
    ),
    Study(
        "triton_mesh_means_nodes_numbered_by_chance",
        "means of 128 features over sixteen neighbours for 262144 nodes of a mesh, in Triton",
        "rows of neighbours lie all over a table larger than the L2",
        (
            ("slices", "sixteen features of all nodes after another", ("cache_locality",)),
            ("renumbered", "nodes numbered tile by tile of the mesh", ("cache_locality",)),
        ),
        mesh_means,
        domain="graphs",
    ),
    Study(
        "triton_user_history_sixteen_items_at_a_time",
        "4096 items that each of 264 users looked at, weighted by what is offered, in Triton",
        "sixteen rows are loaded once their numbers have come, and only when the last sixteen are done",
        (
            ("wide", "128 items at a time", ("memory_latency",)),
            ("staged", "32 items in a pipeline of four stages", ("memory_latency",)),
            ("ahead", "64 items, the next loaded before", ("memory_latency",)),
        ),
        history,
    ),
    Study(
        "triton_bags_of_users_busiest_last",
        "sums of 16384 bags of 64 features, of which the largest has 6144 items, in Triton",
        "a program a bag, and the largest bags come last",
        (
            ("pieces", "a list of pieces of 256 items", ("workload_imbalance",)),
            ("longest_first", "the largest bags first", ("workload_imbalance",)),
        ),
        bags,
    ),
    Study(
        "triton_range_bins_of_odd_pitch",
        "magnitudes of 8192 pulses of 4097 bins, bytes, in Triton",
        "rows of 4097 bytes: a lane loads and stores byte by byte",
        (
            ("flat", "pulses as one long row", ("narrow_access",)),
            ("padded", "rows padded to a multiple of 128 bytes", ("narrow_access",)),
        ),
        magnitudes,
        tolerance=0.0,
        domain="radar",
    ),
    Study(
        "triton_mixing_sine_of_each_sample",
        "8388608 samples mixed down to eight channels and summed by 64, in Triton",
        "a precise sine and cosine for each sample and channel",
        (
            ("polynomials", "polynomials for an eighth of a turn", ("expensive_math",)),
            ("turned", "sums of windows turned by the phase of their beginning", ("expensive_math",)),
        ),
        mixed,
        domain="radio",
    ),
    Study(
        "triton_hidden_states_four_warps_a_sequence",
        "how likely 2112 sequences of 256 steps are by a hidden Markov model of 64 states, in Triton",
        "four warps exchange the sums of 64 states and their scale in each step",
        (
            ("warp", "a warp a sequence", ("barriers",)),
            ("turns", "sums over rows and over columns in turns", ("barriers",)),
        ),
        likelihoods,
        domain="speech",
    ),
    Study(
        "sound_triton_charges_of_order_lines",
        "what 16777216 lines of orders cost, from four columns, in Triton",
        "",
        (),
        charges,
        domain="databases",
    ),
    Study(
        "sound_triton_frames_normalised",
        "262144 frames of 128 bands with a mean of zero and a deviation of one, half, in Triton",
        "",
        (),
        frames,
        tolerance=2e-3,
        domain="speech",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
