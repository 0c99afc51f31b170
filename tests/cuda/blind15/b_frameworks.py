"""Studies in Triton, run by what tests/cuda/variants/frameworks.py provides.

Usage: b_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- clusters and graphs ---


@triton.jit
def cluster_sums_kernel(points, labels, sums, features: tl.constexpr, tall: tl.constexpr):
    """Points added to their cluster's sum, each by its own atomics."""
    point = tl.program_id(0) * tall + tl.arange(0, tall)
    feature = tl.arange(0, features)
    value = tl.load(points + point[:, None] * features + feature[None, :]).to(tl.float32)
    label = tl.load(labels + point)
    tl.atomic_add(sums + label[:, None] * features + feature[None, :], value, sem="relaxed")


@triton.jit
def cluster_sums_dot_kernel(
    points, labels, sums, steps, clusters: tl.constexpr, features: tl.constexpr, tall: tl.constexpr
):
    """The same; a program's points are multiplied by what says whose they are, and added once."""
    feature, cluster = tl.arange(0, features), tl.arange(0, clusters)
    first = tl.program_id(0) * steps * tall
    total = tl.zeros((clusters, features), tl.float32)
    for step in range(steps):
        point = first + step * tall + tl.arange(0, tall)
        value = tl.load(points + point[:, None] * features + feature[None, :])
        label = tl.load(labels + point)
        total = tl.dot((cluster[:, None] == label[None, :]).to(tl.float16), value, total)
    tl.atomic_add(sums + cluster[:, None] * features + feature[None, :], total, sem="relaxed")


def cluster_sums(count: int = 1 << 20) -> tuple[dict[str, Run], Check]:
    features, clusters = 64, 64
    points = noise(count, features, dtype=torch.half) + 0.25
    skewed = noise(count).abs()
    labels = (skewed * skewed * clusters).int().clamp(0, clusters - 1)
    sums = torch.zeros(clusters, features, device="cuda")

    def dots(steps: int, tall: int, warps: int) -> Run:
        return lambda: cluster_sums_dot_kernel[(count // (steps * tall),)](
            points, labels, sums, steps, clusters, features, tall, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: cluster_sums_kernel[(count // 64,)](
            points, labels, sums, features, 64, num_warps=4
        ),
        "in_program": dots(4, 128, 4),
        "long_programs": dots(16, 64, 4),
    }
    return sides, lambda: (sums.clone(), sums.zero_())[0]


@triton.jit
def edge_maxima_kernel(values, neighbours, out, channels: tl.constexpr, degree: tl.constexpr):
    """Largest difference of each channel between a node and its neighbours; a node a program."""
    node = tl.program_id(0)
    channel = tl.arange(0, channels)
    own = tl.load(values + node * channels + channel).to(tl.float32)
    best = tl.full((channels,), -float("inf"), tl.float32)
    for k in tl.static_range(degree):
        other = tl.load(neighbours + node * degree + k)
        best = tl.maximum(best, tl.load(values + other * channels + channel).to(tl.float32) - own)
    tl.store(out + node * channels + channel, best.to(tl.float16))


@triton.jit
def edge_maxima_nodes_kernel(
    values, neighbours, out, channels: tl.constexpr, degree: tl.constexpr, tall: tl.constexpr
):
    """The same for several nodes a program."""
    node = tl.program_id(0) * tall + tl.arange(0, tall)
    channel = tl.arange(0, channels)
    at = node[:, None] * channels + channel[None, :]
    own = tl.load(values + at).to(tl.float32)
    best = tl.full((tall, channels), -float("inf"), tl.float32)
    for k in tl.static_range(degree):
        other = tl.load(neighbours + node * degree + k)
        best = tl.maximum(
            best, tl.load(values + other[:, None] * channels + channel[None, :]).to(tl.float32) - own
        )
    tl.store(out + at, best.to(tl.float16))


def edge_maxima(nodes: int = 1 << 18) -> tuple[dict[str, Run], Check]:
    channels, degree = 64, 16
    values = noise(nodes, channels, dtype=torch.half)
    near = (noise(nodes, degree) * 400).int()
    neighbours = (torch.arange(nodes, device="cuda", dtype=torch.int32)[:, None] + near) % nodes
    neighbours = neighbours.int().contiguous()
    out = torch.empty_like(values)

    def nodes_run(tall: int, warps: int) -> Run:
        return lambda: edge_maxima_nodes_kernel[(nodes // tall,)](
            values, neighbours, out, channels, degree, tall, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: edge_maxima_kernel[(nodes,)](
            values, neighbours, out, channels, degree, num_warps=4
        ),
        "one_warp": lambda: edge_maxima_kernel[(nodes,)](
            values, neighbours, out, channels, degree, num_warps=1
        ),
        "sixteen_nodes": nodes_run(16, 4),
    }
    return sides, lambda: out


@triton.jit
def graph_means_kernel(values, starts, neighbours, out, channels: tl.constexpr):
    """Mean of the neighbours' rows, one neighbour after the other."""
    node = tl.program_id(0)
    channel = tl.arange(0, channels)
    first, end = tl.load(starts + node), tl.load(starts + node + 1)
    total = tl.zeros((channels,), tl.float32)
    for k in range(first, end):
        other = tl.load(neighbours + k)
        total += tl.load(values + other * channels + channel).to(tl.float32)
    tl.store(out + node * channels + channel, (total / tl.maximum(end - first, 1)).to(tl.float16))


@triton.jit
def graph_means_pieces_kernel(values, starts, neighbours, out, channels: tl.constexpr, piece: tl.constexpr):
    """The same, some neighbours at a time."""
    node = tl.program_id(0)
    channel = tl.arange(0, channels)
    first, end = tl.load(starts + node), tl.load(starts + node + 1)
    total = tl.zeros((piece, channels), tl.float32)
    for start in range(first, end, piece):
        k = start + tl.arange(0, piece)
        other = tl.load(neighbours + k, mask=k < end, other=0)
        row = tl.load(
            values + other[:, None] * channels + channel[None, :], mask=(k < end)[:, None], other=0.0
        )
        total += row.to(tl.float32)
    mean = tl.sum(total, 0) / tl.maximum(end - first, 1)
    tl.store(out + node * channels + channel, mean.to(tl.float16))


def graph_means(nodes: int = 1 << 17) -> tuple[dict[str, Run], Check]:
    channels = 256
    values = noise(nodes, channels, dtype=torch.half)
    degrees = (noise(nodes).abs() * 48).int() + 4
    starts = torch.zeros(nodes + 1, device="cuda", dtype=torch.int32)
    starts[1:] = degrees.cumsum(0)
    neighbours = ((noise(int(starts[-1])) + 1.0) * (nodes // 2 - 1)).int()
    out = torch.empty_like(values)

    def pieces(piece: int, warps: int) -> Run:
        return lambda: graph_means_pieces_kernel[(nodes,)](
            values, starts, neighbours, out, channels, piece, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: graph_means_kernel[(nodes,)](
            values, starts, neighbours, out, channels, num_warps=1
        ),
        "eight_at_once": pieces(8, 1),
        "sixteen_at_once": pieces(16, 2),
    }
    return sides, lambda: out


# --- pictures and grids ---


@triton.jit
def heat_step_kernel(heat, conduct, out, width, pitch, tall: tl.constexpr, wide: tl.constexpr):
    """A step of heat on a grid whose conductivity differs from place to place; the border is not computed."""
    x = tl.program_id(0) * wide + tl.arange(0, wide) + 1
    y = tl.program_id(1) * tall + tl.arange(0, tall) + 1
    at = y[:, None] * pitch + x[None, :]
    inside = (x <= width)[None, :]
    own, own_c = tl.load(heat + at, mask=inside), tl.load(conduct + at, mask=inside)
    flow = (tl.load(conduct + at - 1, mask=inside) + own_c) * (tl.load(heat + at - 1, mask=inside) - own)
    flow += (tl.load(conduct + at + 1, mask=inside) + own_c) * (tl.load(heat + at + 1, mask=inside) - own)
    flow += (tl.load(conduct + at - pitch, mask=inside) + own_c) * (
        tl.load(heat + at - pitch, mask=inside) - own
    )
    flow += (tl.load(conduct + at + pitch, mask=inside) + own_c) * (
        tl.load(heat + at + pitch, mask=inside) - own
    )
    tl.store(out + at, own + 0.1 * flow, mask=inside)


def heat_step(side: int = 6144) -> tuple[dict[str, Run], Check]:
    pitch = side + 32
    heat, conduct = noise(side + 2, pitch), noise(side + 2, pitch).abs() + 0.1
    out = torch.zeros(side + 2, pitch, device="cuda")

    def run(tall: int, wide: int, warps: int) -> Run:
        return lambda: heat_step_kernel[(triton.cdiv(side, wide), side // tall)](
            heat, conduct, out, side, pitch, tall, wide, num_warps=warps
        )

    return {"flawed": run(128, 4, 4), "wide": run(4, 128, 4), "square": run(16, 64, 4)}, lambda: out


@triton.jit
def cubic(t):
    """Weight of a place at a distance t in cubic interpolation (a = -0.75)."""
    t = tl.abs(t)
    near = (1.25 * t - 2.25) * t * t + 1.0
    far = ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0
    return tl.where(t <= 1.0, near, tl.where(t < 2.0, far, 0.0))


@triton.jit
def enlarge_kernel(x, out, height, width, times, block: tl.constexpr):
    """Cubic interpolation; what a value is of by divisions, its weights computed again for each channel."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    wide, tall = width * times, height * times
    column, row = at % wide, at // wide % tall
    plane = at // wide // tall
    source_x, source_y = (column + 0.5) / times - 0.5, (row + 0.5) / times - 0.5
    left, top = tl.floor(source_x), tl.floor(source_y)
    total = tl.zeros((block,), tl.float32)
    for dy in tl.static_range(-1, 3):
        y = tl.minimum(tl.maximum(top.to(tl.int32) + dy, 0), height - 1)
        line = tl.zeros((block,), tl.float32)
        for dx in tl.static_range(-1, 3):
            column_of = tl.minimum(tl.maximum(left.to(tl.int32) + dx, 0), width - 1)
            value = tl.load(x + (plane * height + y) * width + column_of).to(tl.float32)
            line += cubic(source_x - left - dx) * value
        total += cubic(source_y - top - dy) * line
    tl.store(out + at, total.to(tl.float16))


@triton.jit
def enlarge_rows_kernel(x, out, height, width, times: tl.constexpr, block: tl.constexpr, each: tl.constexpr):
    """The same for a piece of a row in some channels: places and weights once."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    wide, tall = width * times, height * times
    row = tl.program_id(1)
    inside = column < wide
    source_x, source_y = (column + 0.5) / times - 0.5, (row + 0.5) / times - 0.5
    left, top = tl.floor(source_x), tl.floor(source_y)
    part_x, part_y = source_x - left, source_y - top
    first_x, first_y = left.to(tl.int32), top.to(tl.int32)
    for k in range(each):
        plane = tl.program_id(2) * each + k
        total = tl.zeros((block,), tl.float32)
        for dy in tl.static_range(-1, 3):
            y = tl.minimum(tl.maximum(first_y + dy, 0), height - 1)
            line = tl.zeros((block,), tl.float32)
            for dx in tl.static_range(-1, 3):
                column_of = tl.minimum(tl.maximum(first_x + dx, 0), width - 1)
                value = tl.load(x + (plane * height + y) * width + column_of, mask=inside, other=0.0)
                line += cubic(part_x - dx) * value.to(tl.float32)
            total += cubic(part_y - dy) * line
        tl.store(out + (plane * tall + row) * wide + column, total.to(tl.float16), mask=inside)


def enlarge(pictures: int = 8, channels: int = 16, side: int = 192) -> tuple[dict[str, Run], Check]:
    times = 3
    x = noise(pictures, channels, side, side, dtype=torch.half)
    out = torch.empty(pictures, channels, side * times, side * times, device="cuda", dtype=torch.half)

    def rows(block: int, each: int, warps: int) -> Run:
        grid = (triton.cdiv(side * times, block), side * times, pictures * channels // each)
        return lambda: enlarge_rows_kernel[grid](x, out, side, side, times, block, each, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: enlarge_kernel[(out.numel() // 256,)](x, out, side, side, times, 256, num_warps=4),
        "channels": rows(256, 16, 4),
        "few_channels": rows(128, 4, 4),
    }
    return sides, lambda: out


@triton.jit
def block_transforms_kernel(x, basis, out, tall: tl.constexpr):
    """Transforms of blocks of 8 x 8 pixels: 64 coefficients each, summed pixel by pixel."""
    block, coefficient = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, 64)
    total = tl.zeros((tall, 64), tl.float32)
    for pixel in range(64):
        value = tl.load(x + block * 64 + pixel).to(tl.float32)
        total += value[:, None] * tl.load(basis + pixel * 64 + coefficient).to(tl.float32)[None, :]
    tl.store(out + block[:, None] * 64 + coefficient[None, :], total.to(tl.float16))


@triton.jit
def block_transforms_dot_kernel(x, basis, out, steps, tall: tl.constexpr):
    """The same as products of matrices; the basis is loaded once a program."""
    pixel, coefficient = tl.arange(0, 64), tl.arange(0, 64)
    waves = tl.load(basis + pixel[:, None] * 64 + coefficient[None, :])
    for step in range(steps):
        block = (tl.program_id(0) * steps + step) * tall + tl.arange(0, tall)
        value = tl.load(x + block[:, None] * 64 + pixel[None, :])
        total = tl.dot(value, waves)
        tl.store(out + block[:, None] * 64 + coefficient[None, :], total.to(tl.float16))


def block_transforms(count: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    x = noise(count, 64, dtype=torch.half)
    angle = torch.arange(8, device="cuda", dtype=torch.float64)
    line = torch.cos((2 * angle[:, None] + 1) * angle[None, :] * (3.141592653589793 / 16)) * 0.5
    line[:, 0] = 0.125**0.5
    basis = torch.einsum("ab,cd->acbd", line, line).reshape(64, 64).half().contiguous()
    out = torch.empty_like(x)

    def dots(tall: int, steps: int, warps: int) -> Run:
        return lambda: block_transforms_dot_kernel[(count // (tall * steps),)](
            x, basis, out, steps, tall, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: block_transforms_kernel[(count // 32,)](x, basis, out, 32, num_warps=4),
        "dot": dots(32, 1, 4),
        "dot_in_turn": dots(128, 4, 4),
    }
    return sides, lambda: out


@triton.jit
def pooled_powers_kernel(x, powers, out, places, channels, block: tl.constexpr):
    """Generalised means over a picture's places: p-th root of the mean of p-th powers, by logarithms."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    picture = tl.program_id(1)
    power = tl.load(powers)
    total = tl.zeros((block,), tl.float32)
    for place in range(places):
        value = tl.load(x + (picture * places + place) * channels + channel).to(tl.float32)
        total += tl.exp(power * tl.log(tl.maximum(value, 1e-6)))
    tl.store(out + picture * channels + channel, tl.exp(tl.log(total / places) / power))


@triton.jit
def pooled_powers_fast_kernel(x, powers, out, places, channels, block: tl.constexpr):
    """The same with the hardware's logarithm."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    picture = tl.program_id(1)
    power = tl.load(powers)
    total = tl.zeros((block,), tl.float32)
    for place in range(places):
        value = tl.load(x + (picture * places + place) * channels + channel).to(tl.float32)
        total += tl.exp(power * libdevice.fast_logf(tl.maximum(value, 1e-6)))
    tl.store(out + picture * channels + channel, tl.exp(libdevice.fast_logf(total / places) / power))


@triton.jit
def pooled_cubes_kernel(x, out, places, channels, block: tl.constexpr):
    """The same where the power is three."""
    channel = tl.program_id(0) * block + tl.arange(0, block)
    picture = tl.program_id(1)
    total = tl.zeros((block,), tl.float32)
    for place in range(places):
        value = tl.load(x + (picture * places + place) * channels + channel).to(tl.float32)
        value = tl.maximum(value, 1e-6)
        total += value * value * value
    tl.store(out + picture * channels + channel, tl.exp(tl.log(total / places) * (1.0 / 3.0)))


def pooled_powers(
    pictures: int = 256, places: int = 196, channels: int = 2048
) -> tuple[dict[str, Run], Check]:
    x = noise(pictures, places, channels, dtype=torch.half).relu()
    powers = torch.full((1,), 3.0, device="cuda")
    out = torch.empty(pictures, channels, device="cuda")
    grid = (channels // 256, pictures)
    sides: dict[str, Run] = {
        "flawed": lambda: pooled_powers_kernel[grid](x, powers, out, places, channels, 256, num_warps=4),
        "fast_logarithm": lambda: pooled_powers_fast_kernel[grid](
            x, powers, out, places, channels, 256, num_warps=4
        ),
        "cubes": lambda: pooled_cubes_kernel[grid](x, out, places, channels, 256, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def mixed_pictures_kernel(x, partners, shares, out, size, block: tl.constexpr):
    """Each picture mixed with another one, as training does."""
    picture = tl.program_id(1)
    at = tl.program_id(0) * block + tl.arange(0, block)
    share, partner = tl.load(shares + picture), tl.load(partners + picture)
    own = tl.load(x + picture * size + at).to(tl.float32)
    other = tl.load(x + partner * size + at).to(tl.float32)
    tl.store(out + picture * size + at, (share * own + (1.0 - share) * other).to(tl.float16))


def mixed_pictures(pictures: int = 256, size: int = 3 * 256 * 256) -> tuple[dict[str, Run], Check]:
    x, shares = noise(pictures, size, dtype=torch.half), noise(pictures).abs()
    partners = torch.arange(pictures, device="cuda", dtype=torch.int32).flip(0).contiguous()
    out = torch.empty_like(x)
    return {
        "sound": lambda: mixed_pictures_kernel[(size // 2048, pictures)](
            x, partners, shares, out, size, 2048, num_warps=4
        )
    }, lambda: out


STUDIES = (
    Study(
        "triton_cluster_sums_atomic_each_point",
        "sums of 1048576 points of 64 half values by their 64 clusters, in Triton",
        "every value of every point is added to its cluster by an atomic",
        (
            (
                "in_program",
                "a program's 512 points multiplied by whose they are, added once",
                ("global_atomics",),
            ),
            ("long_programs", "the same for 1024 points, 64 at a time", ("global_atomics",)),
        ),
        cluster_sums,
        domain="statistics",
    ),
    Study(
        "triton_edge_maxima_four_warps_for_64_channels",
        "largest difference of 64 half values between 262144 nodes and 16 neighbours of each, in Triton",
        "a program of four warps for 64 values: half of its threads or more do what others do",
        (
            ("one_warp", "one warp a program", ("idle_threads",)),
            ("sixteen_nodes", "sixteen nodes a program", ("idle_threads", "narrow_access")),
        ),
        edge_maxima,
        domain="graphs",
    ),
    Study(
        "triton_graph_means_one_neighbour_at_a_time",
        "mean of 256 half values over the 4 to 52 neighbours of 131072 nodes, in Triton",
        "a neighbour's number, then its row, then the next neighbour",
        (
            ("eight_at_once", "eight neighbours at once, summed at the end", ("memory_latency",)),
            ("sixteen_at_once", "sixteen at once by two warps", ("memory_latency",)),
        ),
        graph_means,
        domain="graphs",
    ),
    Study(
        "triton_heat_step_tiles_four_wide",
        "a step of heat on a grid of 6144 x 6144 with conductivities, in Triton",
        "tiles of 128 rows of four places: a warp's request is in many lines",
        (
            ("wide", "tiles of 4 rows of 128", ("uncoalesced_access",)),
            ("square", "tiles of 16 rows of 64", ("uncoalesced_access",)),
        ),
        heat_step,
        domain="simulation",
    ),
    Study(
        "triton_cubic_weights_again_for_each_channel",
        "128 planes of 192 x 192 half values three times as large by cubic interpolation, in Triton",
        "row, column and plane by divisions, and eight weights, again for each channel's value",
        (
            (
                "channels",
                "a piece of a row in sixteen channels, places and weights once",
                ("integer_arithmetic", "redundant_loads"),
            ),
            (
                "few_channels",
                "a piece of a row in four channels",
                ("integer_arithmetic", "redundant_loads"),
            ),
        ),
        enlarge,
        tolerance=2e-3,
        domain="images",
    ),
    Study(
        "triton_block_transforms_pixel_by_pixel",
        "cosine transforms of 524288 blocks of 8 x 8 half values, in Triton",
        "coefficients as sums of products pixel by pixel, which tensor cores do not do",
        (
            ("dot", "tl.dot for 32 blocks", ("tensor_cores_idle", "uncoalesced_access")),
            (
                "dot_in_turn",
                "tl.dot for 128 blocks, four times a program",
                ("tensor_cores_idle", "uncoalesced_access"),
            ),
        ),
        block_transforms,
        tolerance=2e-3,
        domain="images",
    ),
    Study(
        "triton_generalised_means_by_logarithms",
        "generalised means of 2048 channels over 196 places of 256 pictures, half, in Triton",
        "a precise logarithm and an exponential for each value, for a power that is three",
        (
            ("fast_logarithm", "the hardware's logarithm", ("expensive_math",)),
            ("cubes", "two products", ("expensive_math",)),
        ),
        pooled_powers,
        domain="images",
    ),
    Study(
        "sound_triton_pictures_mixed_in_pairs",
        "256 pictures of 196608 half values, each mixed with another one, in Triton",
        "",
        (),
        mixed_pictures,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
