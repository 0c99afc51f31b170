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
def four_bits(value, scale):
    level = value.to(tl.float32) * scale + 8.5
    return tl.minimum(tl.maximum(level, 0.0), 15.0).to(tl.int32)


@triton.jit
def pack_strided_kernel(x, scales, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    scale = tl.load(scales + at // 64)
    low, high = tl.load(x + 2 * at), tl.load(x + 2 * at + 1)
    tl.store(out + at, (four_bits(low, scale) | four_bits(high, scale) << 4).to(tl.uint8))


@triton.jit
def pack_split_kernel(x, scales, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    both = tl.load(x + tl.program_id(0) * 2 * block + tl.arange(0, 2 * block))
    low, high = tl.split(tl.reshape(both, (block, 2)))
    scale = tl.load(scales + at // 64)
    tl.store(out + at, (four_bits(low, scale) | four_bits(high, scale) << 4).to(tl.uint8))


@triton.jit
def pack_words_kernel(x, scales, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    scale, word = tl.load(scales + at // 64), tl.load(x + at)
    low = (word & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True)
    high = (word >> 16).to(tl.int16).to(tl.float16, bitcast=True)
    tl.store(out + at, (four_bits(low, scale) | four_bits(high, scale) << 4).to(tl.uint8))


def pack() -> tuple[dict[str, Run], Check]:
    count = 1 << 26  # bytes
    x = noise(2 * count, dtype=torch.half)
    scales = noise(count // 64).abs() + 7.0
    out = torch.empty(count, dtype=torch.uint8, device="cuda")
    words = x.view(torch.int32)
    grid = (count // 1024,)
    sides: dict[str, Run] = {
        "flawed": lambda: pack_strided_kernel[grid](x, scales, out, 1024, num_warps=4),
        "split": lambda: pack_split_kernel[grid](x, scales, out, 1024, num_warps=4),
        "words": lambda: pack_words_kernel[grid](words, scales, out, 1024, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def causal_kernel(
    q, k, v, out, steps, scale,
    dim: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, stops: tl.constexpr, turned: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    if turned:
        tile = tl.num_programs(0) - 1 - tile
    head = tl.program_id(1) * steps * dim
    row, feature = tile * rows + tl.arange(0, rows), tl.arange(0, dim)
    query = tl.load(q + head + row[:, None] * dim + feature[None, :])
    most = tl.full((rows,), -1e30, tl.float32)
    total = tl.zeros((rows,), tl.float32)
    mixed = tl.zeros((rows, dim), tl.float32)
    end = (tile + 1) * rows if stops else steps
    for start in range(0, end, columns):
        column = start + tl.arange(0, columns)
        key = tl.load(k + head + column[None, :] * dim + feature[:, None])
        score = tl.dot(query, key) * scale
        score = tl.where(row[:, None] >= column[None, :], score, -1e30)
        larger = tl.maximum(most, tl.max(score, 1))
        weight, shrink = tl.exp(score - larger[:, None]), tl.exp(most - larger)
        value = tl.load(v + head + column[:, None] * dim + feature[None, :])
        total = total * shrink + tl.sum(weight, 1)
        mixed = mixed * shrink[:, None] + tl.dot(weight.to(tl.float16), value)
        most = larger
    tl.store(out + head + row[:, None] * dim + feature[None, :], (mixed / total[:, None]).to(tl.float16))


def causal() -> tuple[dict[str, Run], Check]:
    heads, steps, dim = 64, 2048, 64
    q, k, v = (noise(heads, steps, dim, dtype=torch.half) * scale for scale in (3.0, 2.0, 1.0))
    out = torch.empty_like(q)

    def run(stops: bool, turned: bool) -> Run:
        return lambda: causal_kernel[(steps // 128, heads)](
            q, k, v, out, steps, 0.125, dim, 128, 64, stops, turned, num_warps=8, num_stages=3
        )

    sides = {"flawed": run(False, False), "stops": run(True, False), "longest_first": run(True, True)}
    return sides, lambda: out


@triton.jit
def neighbours_each_kernel(features, near, out, count, dim: tl.constexpr):
    point, feature = tl.program_id(0), tl.arange(0, dim)
    best = tl.full((dim,), -1e30, tl.float32)
    for i in range(count):
        other = tl.load(near + point * count + i)
        best = tl.maximum(best, tl.load(features + other * dim + feature).to(tl.float32))
    tl.store(out + point * dim + feature, best.to(tl.float16))


@triton.jit
def neighbours_tile_kernel(features, near, out, count: tl.constexpr, dim: tl.constexpr):
    point, feature = tl.program_id(0), tl.arange(0, dim)
    other = tl.load(near + point * count + tl.arange(0, count))
    value = tl.load(features + other[:, None] * dim + feature[None, :]).to(tl.float32)
    tl.store(out + point * dim + feature, tl.max(value, 0).to(tl.float16))


def neighbours() -> tuple[dict[str, Run], Check]:
    points, count, dim = 1 << 17, 32, 64
    features = noise(points, dim, dtype=torch.half)
    near = (noise(points, count).abs() * points).to(torch.int32).clamp(max=points - 1)
    out = torch.empty_like(features)
    sides: dict[str, Run] = {
        "flawed": lambda: neighbours_each_kernel[(points,)](features, near, out, count, dim, num_warps=4),
        "tile": lambda: neighbours_tile_kernel[(points,)](features, near, out, count, dim, num_warps=4),
        "one_warp": lambda: neighbours_tile_kernel[(points,)](features, near, out, count, dim, num_warps=1),
    }
    return sides, lambda: out


@triton.jit
def covariance_kernel(x, out, n, k, tile: tl.constexpr, deep: tl.constexpr, mirrored: tl.constexpr):
    a, b = tl.program_id(0), tl.program_id(1)
    row, column = a * tile + tl.arange(0, tile), b * tile + tl.arange(0, tile)
    inner = tl.arange(0, deep)
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(0, tl.where(a >= b, k, 0) if mirrored else k, deep):
        base = x + (start + inner)[:, None] * n
        left, right = tl.load(base + row[None, :]), tl.load(base + column[None, :])
        total = tl.dot(tl.trans(left), right, total)
    if mirrored:
        known = (row[:, None] >= 0) & (a >= b)
        tl.store(out + row[:, None] * n + column[None, :], total, known)
        tl.store(out + column[:, None] * n + row[None, :], tl.trans(total), known)
    else:
        tl.store(out + row[:, None] * n + column[None, :], total)


@triton.jit
def covariance_listed_kernel(x, out, tiles, n, k, tile: tl.constexpr, deep: tl.constexpr):
    a, b = tl.load(tiles + 2 * tl.program_id(0)), tl.load(tiles + 2 * tl.program_id(0) + 1)
    row, column = a * tile + tl.arange(0, tile), b * tile + tl.arange(0, tile)
    inner = tl.arange(0, deep)
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(0, k, deep):
        base = x + (start + inner)[:, None] * n
        left, right = tl.load(base + row[None, :]), tl.load(base + column[None, :])
        total = tl.dot(tl.trans(left), right, total)
    tl.store(out + row[:, None] * n + column[None, :], total)
    tl.store(out + column[:, None] * n + row[None, :], tl.trans(total))


def covariance() -> tuple[dict[str, Run], Check]:
    n, k, tile = 4096, 4096, 128
    x = noise(k, n, dtype=torch.half)
    out = torch.empty(n, n, device="cuda")
    tiles = torch.tensor(
        [(a, b) for a in range(n // tile) for b in range(a + 1)], dtype=torch.int32, device="cuda"
    )

    def run(mirrored: bool) -> Run:
        return lambda: covariance_kernel[(n // tile, n // tile)](
            x, out, n, k, tile, 64, mirrored, num_warps=8, num_stages=3
        )

    sides: dict[str, Run] = {
        "flawed": run(False),
        "mirrored": run(True),
        "listed": lambda: covariance_listed_kernel[(tiles.shape[0],)](
            x, out, tiles, n, k, tile, 64, num_warps=8, num_stages=3
        ),
    }
    return sides, lambda: out


@triton.jit
def patches_padded_kernel(images, out):
    image, patch = tl.program_id(0) // 196, tl.program_id(0) % 196
    at = tl.arange(0, 1024)
    channel, y, x = at // 256, at // 16 % 16, at % 16
    pixel = ((image * 3 + channel) * 224 + patch // 14 * 16 + y) * 224 + patch % 14 * 16 + x
    tl.store(out + tl.program_id(0) * 768 + at, tl.load(images + pixel, at < 768), at < 768)


@triton.jit
def patches_channel_kernel(images, out):
    image, patch, channel = tl.program_id(0) // 196, tl.program_id(0) % 196, tl.program_id(1)
    at = tl.arange(0, 256)
    pixel = ((image * 3 + channel) * 224 + patch // 14 * 16 + at // 16) * 224 + patch % 14 * 16 + at % 16
    tl.store(out + tl.program_id(0) * 768 + channel * 256 + at, tl.load(images + pixel))


@triton.jit
def patches_lines_kernel(images, out):
    image, line, channel = tl.program_id(0) // 14, tl.program_id(0) % 14, tl.program_id(1)
    y, x = tl.arange(0, 16)[:, None], tl.arange(0, 256)[None, :]
    inside = (y >= 0) & (x < 224)
    pixel = ((image * 3 + channel) * 224 + line * 16 + y) * 224 + x
    at = (image * 196 + line * 14 + x // 16) * 768 + channel * 256 + y * 16 + x % 16
    tl.store(out + at, tl.load(images + pixel, inside), inside)


def patches() -> tuple[dict[str, Run], Check]:
    batch = 512
    images = noise(batch, 3, 224, 224, dtype=torch.half)
    out = torch.empty(batch, 196, 768, dtype=torch.half, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: patches_padded_kernel[(batch * 196,)](images, out, num_warps=4),
        "channels": lambda: patches_channel_kernel[(batch * 196, 3)](images, out, num_warps=1),
        "lines": lambda: patches_lines_kernel[(batch * 14, 3)](images, out, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def shuffle_flat_kernel(x, out, side, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    wide = 2 * side
    column, row, plane = at % wide, at // wide % wide, at // (wide * wide)
    source = ((plane * 4 + row % 2 * 2 + column % 2) * side + row // 2) * side + column // 2
    tl.store(out + at, tl.load(x + source))


@triton.jit
def shuffle_rows_kernel(x, out, side: tl.constexpr):
    row, plane, column = tl.program_id(0), tl.program_id(1), tl.arange(0, 2 * side)
    source = ((plane * 4 + row % 2 * 2 + column % 2) * side + row // 2) * side + column // 2
    tl.store(out + (plane * 2 * side + row) * 2 * side + column, tl.load(x + source))


@triton.jit
def shuffle_joined_kernel(x, out, side: tl.constexpr):
    row, plane, column = tl.program_id(0), tl.program_id(1), tl.arange(0, side)
    source = ((plane * 4 + row % 2 * 2) * side + row // 2) * side + column
    both = tl.join(tl.load(x + source), tl.load(x + source + side * side))
    at = (plane * 2 * side + row) * 2 * side + tl.arange(0, 2 * side)
    tl.store(out + at, tl.reshape(both, (2 * side,)))


def shuffled() -> tuple[dict[str, Run], Check]:
    planes, side = 512, 256
    x = noise(planes * 4, side, side, dtype=torch.half)
    out = torch.empty(planes, 2 * side, 2 * side, dtype=torch.half, device="cuda")
    grid = (2 * side, planes)
    sides: dict[str, Run] = {
        "flawed": lambda: shuffle_flat_kernel[(out.numel() // 1024,)](x, out, side, 1024, num_warps=4),
        "joined": lambda: shuffle_joined_kernel[grid](x, out, side, num_warps=1),
        "rows": lambda: shuffle_rows_kernel[grid](x, out, side, num_warps=2),
    }
    return sides, lambda: out


@triton.jit
def basis_edge_kernel(distances, centres, out, width: tl.constexpr):
    edge, k = tl.program_id(0), tl.arange(0, width)
    distance = tl.load(distances + edge)
    apart = distance - tl.load(centres + k)
    fade = 0.5 * (tl.cos(distance * 0.62831853) + 1.0)
    tl.store(out + edge * width + k, tl.exp(-8.0 * apart * apart) * fade)


@triton.jit
def basis_tile_kernel(distances, centres, out, width: tl.constexpr, edges: tl.constexpr):
    edge, k = tl.program_id(0) * edges + tl.arange(0, edges), tl.arange(0, width)
    distance = tl.load(distances + edge)
    fade = 0.5 * (tl.cos(distance * 0.62831853) + 1.0)
    apart = distance[:, None] - tl.load(centres + k)[None, :]
    value = tl.exp(-8.0 * apart * apart) * fade[:, None]
    tl.store(out + edge[:, None] * width + k[None, :], value)


def basis() -> tuple[dict[str, Run], Check]:
    count, width = 1 << 20, 64
    distances, centres = noise(count).abs() * 5.0, torch.linspace(0.0, 5.0, width, device="cuda")
    out = torch.empty(count, width, device="cuda")

    def run(edges: int, warps: int) -> Run:
        return lambda: basis_tile_kernel[(count // edges,)](
            distances, centres, out, width, edges, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: basis_edge_kernel[(count,)](distances, centres, out, width, num_warps=4),
        "tile": run(32, 4),
        "one_warp": run(4, 1),
    }
    return sides, lambda: out


@triton.jit
def gated_residual_kernel(x, branch, gate, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at).to(tl.float32) + tl.load(gate) * tl.load(branch + at).to(tl.float32)
    tl.store(out + at, value.to(tl.float16))


def gated_residual() -> tuple[dict[str, Run], Check]:
    count = 1 << 26
    x, branch, gate = noise(count, dtype=torch.half), noise(count, dtype=torch.half) * 0.5, noise(1)
    out = torch.empty_like(x)
    return {
        "sound": lambda: gated_residual_kernel[(count // 2048,)](x, branch, gate, out, 2048, num_warps=4)
    }, lambda: out


STUDIES = (
    Study(
        "triton_nibbles_packed_from_strides",
        "134217728 half values as four bits, two a byte, a scale for 128, in Triton",
        "the low and the high value of a byte are loaded apart: lanes step over every second value",
        (
            ("split", "both loaded as one row and split", ("uncoalesced_access", "narrow_access")),
            ("words", "both as one word of 32 bits", ("uncoalesced_access", "narrow_access")),
        ),
        pack,
    ),
    Study(
        "triton_causal_rows_to_the_end",
        "causal attention, 64 heads of 2048 steps of 64 half values, in Triton",
        "every tile of rows goes through all keys, those after its rows as well",
        (
            ("stops", "a tile stops at the diagonal", ("redundant_loads",)),
            (
                "longest_first",
                "stops there, the tiles with most keys first",
                ("redundant_loads", "workload_imbalance"),
            ),
        ),
        causal,
        1e-2,
    ),
    Study(
        "triton_neighbour_maxima_one_by_one",
        "the largest of 64 half features over 32 neighbours of 131072 points in Triton",
        "a program of four warps walks the neighbours of its point: an index, a row, and the next",
        (
            ("tile", "32 neighbours as one tile", ("memory_latency", "idle_threads")),
            ("one_warp", "32 neighbours as one tile, one warp", ("memory_latency", "idle_threads")),
        ),
        neighbours,
    ),
    Study(
        "triton_covariance_both_halves",
        "products of 4096 columns of 4096 half values with each other in Triton",
        "the result is symmetric, yet both of its halves are worked out",
        (
            ("mirrored", "one half, stored twice; the other programs end at once", ("redundant_loads",)),
            ("listed", "a program for each tile of one half, stored twice", ("redundant_loads",)),
        ),
        covariance,
    ),
    Study(
        "triton_patches_padded_to_1024",
        "512 images of 3 x 224 x 224 half values into rows of patches of 16 x 16 in Triton",
        "a patch of 768 values is padded to 1024 lanes; its rows of 32 bytes are loaded one by one",
        (
            ("channels", "a warp a channel of a patch: no padding", ("idle_threads",)),
            ("lines", "a program for the 14 patches of a line and a channel", ("uncoalesced_access",)),
        ),
        patches,
    ),
    Study(
        "triton_pixel_shuffle_flat",
        "four planes of 256 x 256 become one of 512 x 512, 512 times, half values, in Triton",
        "flat indices: quotients at run time, and neighbouring lanes load from different planes",
        (
            ("joined", "two rows of two planes joined", ("uncoalesced_access", "integer_arithmetic")),
            ("rows", "a program a row: its indices without quotients", ("integer_arithmetic",)),
        ),
        shuffled,
    ),
    Study(
        "triton_radial_basis_edge_a_program",
        "1048576 distances in 64 radial functions with a cosine that fades them, in Triton",
        "a program of four warps makes the 64 values of one distance: half of its lanes have nothing",
        (
            ("tile", "32 distances a program", ("idle_threads", "narrow_access")),
            ("one_warp", "four distances a program of one warp", ("idle_threads", "narrow_access")),
        ),
        basis,
        domain="physics",
    ),
    Study(
        "sound_triton_gated_residual",
        "a branch times a gate added to 67108864 half values in Triton",
        "",
        (),
        gated_residual,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
