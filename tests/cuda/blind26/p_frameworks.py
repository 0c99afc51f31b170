"""Studies in Triton of pictures, forecasts, keys and waves, run by what tests/cuda/variants/frameworks.py provides.

Usage: p_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- corners of a picture ---


@triton.jit
def slopes(at, pitch):
    """Products of a pixel's slopes along its row and its column."""
    across = tl.load(at + 1) - tl.load(at - 1)
    down = tl.load(at + pitch) - tl.load(at - pitch)
    return across * across, across * down, down * down


@triton.jit
def row_slopes(at, pitch):
    """The same, added up over five pixels of a row."""
    first, mixed, second = slopes(at - 2, pitch)
    for k in tl.static_range(-1, 3):
        a, b, c = slopes(at + k, pitch)
        first += a
        mixed += b
        second += c
    return first, mixed, second


@triton.jit
def corner(first, mixed, second):
    return first * second - mixed * mixed - 0.04 * (first + second) * (first + second)


@triton.jit
def corners_kernel(pixels, out, width, pitch, rows: tl.constexpr, block: tl.constexpr):
    """How much of a corner each pixel is, by the slopes of 25; a row's pixels after another's."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    for row in range(tl.program_id(1) * rows, tl.program_id(1) * rows + rows):
        at = pixels + row * pitch + column
        first, mixed, second = row_slopes(at - 2 * pitch, pitch)
        for k in tl.static_range(-1, 3):
            a, b, c = row_slopes(at + k * pitch, pitch)
            first += a
            mixed += b
            second += c
        tl.store(out + row * width + column, corner(first, mixed, second))


@triton.jit
def corners_kept_kernel(pixels, out, width, pitch, rows: tl.constexpr, block: tl.constexpr):
    """The same; sums of the last five rows are kept."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    start = tl.program_id(1) * rows
    at = pixels + start * pitch + column
    a0, b0, c0 = row_slopes(at - 2 * pitch, pitch)
    a1, b1, c1 = row_slopes(at - pitch, pitch)
    a2, b2, c2 = row_slopes(at, pitch)
    a3, b3, c3 = row_slopes(at + pitch, pitch)
    for row in range(start, start + rows):
        a4, b4, c4 = row_slopes(at + 2 * pitch, pitch)
        found = corner(a0 + a1 + a2 + a3 + a4, b0 + b1 + b2 + b3 + b4, c0 + c1 + c2 + c3 + c4)
        tl.store(out + row * width + column, found)
        a0, a1, a2, a3 = a1, a2, a3, a4
        b0, b1, b2, b3 = b1, b2, b3, b4
        c0, c1, c2, c3 = c1, c2, c3, c4
        at += pitch


@triton.jit
def corners_running_kernel(pixels, out, width, pitch, rows: tl.constexpr, block: tl.constexpr):
    """The same; the row that enters the sums is added, the one that leaves them taken off."""
    column = tl.program_id(0) * block + tl.arange(0, block)
    start = tl.program_id(1) * rows
    at = pixels + start * pitch + column
    first, mixed, second = row_slopes(at - 2 * pitch, pitch)
    for k in tl.static_range(-1, 2):
        a, b, c = row_slopes(at + k * pitch, pitch)
        first += a
        mixed += b
        second += c
    for row in range(start, start + rows):
        a, b, c = row_slopes(at + 2 * pitch, pitch)
        first += a
        mixed += b
        second += c
        tl.store(out + row * width + column, corner(first, mixed, second))
        a, b, c = row_slopes(at - 2 * pitch, pitch)
        first -= a
        mixed -= b
        second -= c
        at += pitch


def corners(height: int = 4096, width: int = 4096) -> tuple[dict[str, Run], Check]:
    pitch = width + 8
    pixels = ((noise(height + 8, pitch) * 0.5 + 0.5) * 255.0).round()
    inner = pixels[4:, 4:]
    out = torch.empty(height, width, device="cuda")
    grid = (width // 128, height // 32)
    return {
        "flawed": lambda: corners_kernel[grid](inner, out, width, pitch, 32, 128, num_warps=4),
        "kept": lambda: corners_kept_kernel[grid](inner, out, width, pitch, 32, 128, num_warps=4),
        "running": lambda: corners_running_kernel[grid](inner, out, width, pitch, 32, 128, num_warps=4),
    }, lambda: out


# --- how good a forecast of many members is ---


@triton.jit
def ensemble_kernel(forecasts, seen, out, places, members: tl.constexpr, block: tl.constexpr):
    """Continuous ranked probability score: distances to what was seen, less half of those among members."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    truth = tl.load(seen + at)
    wrong = tl.zeros((block,), tl.float32)
    apart = tl.zeros((block,), tl.float32)
    for i in range(members):
        own = tl.load(forecasts + i * places + at)
        wrong += tl.abs(own - truth)
        for j in range(i):
            apart += tl.abs(own - tl.load(forecasts + j * places + at))
    tl.store(out + at, wrong / members - apart / (members * members))


@triton.jit
def ensemble_kept_kernel(forecasts, seen, out, places, members: tl.constexpr, block: tl.constexpr):
    """The same; members stay in registers."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    truth = tl.load(seen + at)
    wrong = tl.zeros((block,), tl.float32)
    apart = tl.zeros((block,), tl.float32)
    own = ()
    for i in tl.static_range(members):
        own += (tl.load(forecasts + i * places + at),)
    for i in tl.static_range(members):
        wrong += tl.abs(own[i] - truth)
        for j in tl.static_range(i):
            apart += tl.abs(own[i] - own[j])
    tl.store(out + at, wrong / members - apart / (members * members))


@triton.jit
def ensemble_tiles_kernel(
    forecasts, seen, out, places, members: tl.constexpr, tile: tl.constexpr, block: tl.constexpr
):
    """The same; ``tile`` members in registers against those before them."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    truth = tl.load(seen + at)
    wrong = tl.zeros((block,), tl.float32)
    apart = tl.zeros((block,), tl.float32)
    for start in range(0, members, tile):
        own = ()
        for i in tl.static_range(tile):
            own += (tl.load(forecasts + (start + i) * places + at),)
        for i in tl.static_range(tile):
            wrong += tl.abs(own[i] - truth)
            for j in tl.static_range(i):
                apart += tl.abs(own[i] - own[j])
        for j in range(start):
            other = tl.load(forecasts + j * places + at)
            for i in tl.static_range(tile):
                apart += tl.abs(own[i] - other)
    tl.store(out + at, wrong / members - apart / (members * members))


def ensemble(places: int = 1 << 21, members: int = 32) -> tuple[dict[str, Run], Check]:
    forecasts, seen = noise(members, places), noise(places).flip(0).contiguous()
    out = torch.empty(places, device="cuda")
    grid = (places // 256,)
    return {
        "flawed": lambda: ensemble_kernel[grid](forecasts, seen, out, places, members, 256, num_warps=4),
        "kept": lambda: ensemble_kept_kernel[(places // 128,)](
            forecasts, seen, out, places, members, 128, num_warps=4
        ),
        "tiles": lambda: ensemble_tiles_kernel[grid](
            forecasts, seen, out, places, members, 8, 256, num_warps=4
        ),
    }, lambda: out


# --- keys by which points of space are sorted ---


@triton.jit
def keys_kernel(x, y, z, out, block: tl.constexpr):
    """Bits of three whole numbers of 21 bits by turns."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    a = tl.load(x + at).to(tl.int64)
    b = tl.load(y + at).to(tl.int64)
    c = tl.load(z + at).to(tl.int64)
    key = tl.zeros((block,), tl.int64)
    for bit in range(21):
        three = ((a >> bit) & 1) | (((b >> bit) & 1) << 1) | (((c >> bit) & 1) << 2)
        key |= three << (3 * bit)
    tl.store(out + at, key)


@triton.jit
def spread(value):
    """Two zeros between bits, of 21."""
    value = value.to(tl.int64)
    value = (value | value << 32) & 0x1F00000000FFFF
    value = (value | value << 16) & 0x1F0000FF0000FF
    value = (value | value << 8) & 0x100F00F00F00F00F
    value = (value | value << 4) & 0x10C30C30C30C30C3
    return (value | value << 2) & 0x1249249249249249


@triton.jit
def keys_spread_kernel(x, y, z, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    a, b, c = spread(tl.load(x + at)), spread(tl.load(y + at)), spread(tl.load(z + at))
    tl.store(out + at, a | b << 1 | c << 2)


@triton.jit
def spread_few(value):
    """The same of eleven bits at most, the eleventh out of reach of the others."""
    top = (value & 0x400) << 20
    value &= 0x3FF
    value = (value | value << 16) & 0x030000FF
    value = (value | value << 8) & 0x0300F00F
    value = (value | value << 4) & 0x030C30C3
    return (value | value << 2) & 0x09249249 | top


@triton.jit
def keys_halves_kernel(x, y, z, out, block: tl.constexpr):
    """Words of 32 bits as long as they suffice: eleven bits of each number below, ten above."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    a, b, c = tl.load(x + at), tl.load(y + at), tl.load(z + at)
    low = spread_few(a & 0x3FF) | spread_few(b & 0x3FF) << 1 | spread_few(c & 0x3FF) << 2
    first, second, third = spread_few(a >> 10), spread_few(b >> 10), spread_few(c >> 10)
    high = first.to(tl.int64) | second.to(tl.int64) << 1 | third.to(tl.int64) << 2
    tl.store(out + at, low.to(tl.int64) | high << 30)


def keys(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    x, y, z = (((noise(count) * 0.5 + 0.5) * 2097151.0).to(torch.int32).roll(k) for k in (0, 1, 77))
    out = torch.empty(count, device="cuda", dtype=torch.int64)

    def read() -> torch.Tensor:  # each half of the keys fits a double
        return torch.stack((out >> 32, out & 0xFFFFFFFF))

    grid = (count // 512,)
    return {
        "flawed": lambda: keys_kernel[grid](x, y, z, out, 512, num_warps=4),
        "spread": lambda: keys_spread_kernel[grid](x, y, z, out, 512, num_warps=4),
        "halves": lambda: keys_halves_kernel[grid](x, y, z, out, 512, num_warps=4),
    }, read


# --- subspaces ---


@triton.jit
def subspace_kernel(vectors, out, count: tl.constexpr, width: tl.constexpr):
    """``count`` vectors a program, each less its share of those before it, of length one."""
    at = tl.program_id(0) * count * width + tl.arange(0, width)
    bases = ()
    for i in tl.static_range(count):
        own = tl.load(vectors + at + i * width)
        for j in tl.static_range(i):
            own -= bases[j] * tl.sum(bases[j] * own, 0)
        own *= tl.rsqrt(tl.sum(own * own, 0))
        tl.store(out + at + i * width, own)
        bases += (own,)


@triton.jit
def subspace_rows_kernel(vectors, out, count: tl.constexpr, width: tl.constexpr):
    """The same; a vector that is finished is taken out of all that follow at once."""
    row = tl.arange(0, count)[:, None]
    at = (tl.program_id(0) * count + row) * width + tl.arange(0, width)[None, :]
    left = tl.load(vectors + at)
    for i in tl.static_range(count):
        own = tl.sum(tl.where(row == i, left, 0.0), 0)[None, :]
        shares = tl.sum(left * own, 1)[:, None]
        square = tl.sum(tl.where(row == i, shares, 0.0), 0)[None, :]
        later = tl.where(row > i, left - own * (shares / square), left)
        left = tl.where(row == i, left * tl.rsqrt(square), later)
    tl.store(out + at, left)


def subspaces(groups: int = 8192, count: int = 16, width: int = 256) -> tuple[dict[str, Run], Check]:
    vectors = noise(groups, count, width)
    out = torch.empty_like(vectors)
    return {
        "flawed": lambda: subspace_kernel[(groups,)](vectors, out, count, width, num_warps=4),
        "one_warp": lambda: subspace_kernel[(groups,)](vectors, out, count, width, num_warps=1),
        "rows": lambda: subspace_rows_kernel[(groups,)](vectors, out, count, width, num_warps=4),
    }, lambda: out


# --- energy of the sea's waves ---


@triton.jit
def wave_energy(period, frequency, sharpness, own_period, fall):
    """JONSWAP's density at a frequency; ``sharpness``: its logarithm, ``fall``: the frequency to the power of -5."""
    off = frequency * period - 1.0
    off *= tl.where(off > 0.0, 1.0 / 0.09, 1.0 / 0.07)
    square = own_period / period
    square *= square
    return fall * tl.exp2(sharpness * tl.exp2(off * off * -0.7213475) - square * square * 1.8033688)


@triton.jit
def waves_kernel(
    peaks, sharpness, table, out, count: tl.constexpr, padded: tl.constexpr, block: tl.constexpr
):
    """Energy and its mean period at each place, of ``count`` frequencies."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    k = tl.arange(0, padded)
    there = k < count
    frequency = tl.load(table + k, mask=there, other=1.0)[:, None]
    own_period = tl.load(table + count + k, mask=there, other=1.0)[:, None]
    fall = tl.load(table + 2 * count + k, mask=there, other=0.0)[:, None]
    period = tl.load(peaks + at)[None, :]
    energy = wave_energy(period, frequency, tl.log2(tl.load(sharpness + at))[None, :], own_period, fall)
    total = tl.sum(energy, 0)
    tl.store(out + at * 2, total)
    tl.store(out + at * 2 + 1, tl.sum(energy * own_period, 0) / total)


@triton.jit
def waves_places_kernel(peaks, sharpness, table, out, count: tl.constexpr, block: tl.constexpr):
    """The same; one frequency after another, a place a lane."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    period = tl.load(peaks + at)
    sharp = tl.log2(tl.load(sharpness + at))
    total = tl.zeros((block,), tl.float32)
    periods = tl.zeros((block,), tl.float32)
    for start in range(0, count, 4):
        for k in tl.static_range(4):
            own_period = tl.load(table + count + start + k)
            frequency = tl.load(table + start + k)
            energy = wave_energy(period, frequency, sharp, own_period, tl.load(table + 2 * count + start + k))
            total += energy
            periods += energy * own_period
    tl.store(out + at * 2, total)
    tl.store(out + at * 2 + 1, periods / total)


@triton.jit
def waves_fours_kernel(peaks, sharpness, table, out, count: tl.constexpr, block: tl.constexpr):
    """The same; four frequencies at a time."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    period = tl.load(peaks + at)[None, :]
    sharp = tl.log2(tl.load(sharpness + at))[None, :]
    total = tl.zeros((4, block), tl.float32)
    periods = tl.zeros((4, block), tl.float32)
    for start in range(0, count, 4):
        k = start + tl.arange(0, 4)
        own_period = tl.load(table + count + k)[:, None]
        fall = tl.load(table + 2 * count + k)[:, None]
        energy = wave_energy(period, tl.load(table + k)[:, None], sharp, own_period, fall)
        total += energy
        periods += energy * own_period
    found = tl.sum(total, 0)
    tl.store(out + at * 2, found)
    tl.store(out + at * 2 + 1, tl.sum(periods, 0) / found)


def waves(places: int = 1 << 21, count: int = 36) -> tuple[dict[str, Run], Check]:
    peaks, sharpness = noise(places) * 4.0 + 10.0, noise(places).flip(0).contiguous() * 1.5 + 3.0
    frequency = 0.04 * 1.1 ** torch.arange(count, device="cuda", dtype=torch.float64)
    table = torch.stack((frequency, 1.0 / frequency, 1e-5 * frequency**-5)).float()
    out = torch.empty(places, 2, device="cuda")
    return {
        "flawed": lambda: waves_kernel[(places // 32,)](
            peaks, sharpness, table, out, count, 64, 32, num_warps=4
        ),
        "places": lambda: waves_places_kernel[(places // 128,)](
            peaks, sharpness, table, out, count, 128, num_warps=4
        ),
        "fours": lambda: waves_fours_kernel[(places // 128,)](
            peaks, sharpness, table, out, count, 128, num_warps=4
        ),
    }, lambda: out


# --- snow ---


@triton.jit
def snow_kernel(snow, temperature, fallen, new_snow, water, melting, block: tl.constexpr):
    """A day of a pack of snow: what falls, what melts and what runs off."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    warm = tl.load(temperature + at)
    falls = tl.load(fallen + at)
    cold = tl.minimum(tl.maximum(1.5 - warm, 0.0) * 0.5, 1.0)
    pack = tl.load(snow + at) + falls * cold
    melts = tl.minimum(tl.maximum(warm, 0.0) * melting, pack)
    tl.store(new_snow + at, pack - melts)
    tl.store(water + at, melts + falls * (1.0 - cold))


def snowed(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    snow, temperature, fallen = (noise(3, count) + 1.0) * torch.tensor([[100.0], [8.0], [5.0]], device="cuda")
    temperature -= 8.0
    found = torch.empty(2, count, device="cuda")
    return {
        "sound": lambda: snow_kernel[(count // 1024,)](
            snow, temperature, fallen, *found, 3.5, 1024, num_warps=4
        )
    }, lambda: found


# --- signatures of texts ---


@triton.jit
def signature_kernel(words, out, rounds: tl.constexpr, block: tl.constexpr):
    """The least of ``rounds`` mixed forms of each word."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    own = tl.load(words + at).to(tl.uint32)
    least = tl.full((block,), 0xFFFFFFFF, tl.uint32)
    for k in tl.static_range(rounds):
        mixed = (own ^ (0x9E3779B9 * (k + 1) & 0xFFFFFFFF)) * 0x85EBCA6B
        mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35
        least = tl.minimum(least, mixed ^ mixed >> 16)
    tl.store(out + at, least.to(tl.int32, bitcast=True))


def signatures(count: int = 1 << 23) -> tuple[dict[str, Run], Check]:
    words = (noise(count) * 2147483000.0).to(torch.int32)
    out = torch.empty_like(words)
    return {"sound": lambda: signature_kernel[(count // 512,)](words, out, 48, 512, num_warps=8)}, lambda: out


STUDIES = (
    Study(
        "triton_corners_slopes_of_25_pixels_for_each",
        "how much of a corner each of 4096 x 4096 pixels is, by the slopes of 25 pixels around, in Triton",
        "slopes of 25 pixels are made again for each pixel, from a hundred loads",
        (
            ("kept", "sums over five pixels of a row kept for five rows", ("redundant_loads",)),
            ("running", "sums from which the row that leaves is taken off", ("redundant_loads",)),
        ),
        corners,
        tolerance=1e-5,
        domain="computer vision",
    ),
    Study(
        "triton_members_read_again_for_each_pair",
        "ranked probability scores of forecasts of 32 members at 2097152 places, in Triton",
        "a member's value is loaded again for each member behind it",
        (
            ("kept", "the 32 members in registers, loaded once", ("redundant_loads",)),
            ("tiles", "eight members in registers against those before them", ("redundant_loads",)),
        ),
        ensemble,
        tolerance=1e-4,
        domain="weather",
    ),
    Study(
        "triton_space_keys_bit_by_bit",
        "keys of 63 bits of 16777216 points, the bits of three coordinates by turns, in Triton",
        "each of 63 bits is shifted out of its number and into the key by itself",
        (
            ("spread", "bits spread by five shifts and masks of 64 bits", ("integer_arithmetic",)),
            ("halves", "halves of the numbers spread in words of 32 bits", ("integer_arithmetic",)),
        ),
        keys,
        tolerance=0.0,
        domain="databases",
    ),
    Study(
        "triton_subspace_products_one_by_one_in_four_warps",
        "16 vectors of 256 values made orthogonal, for each of 8192 antennas' subspaces, in Triton",
        "136 sums over a vector one after another, each across four warps",
        (
            ("one_warp", "a warp for each subspace: sums by shuffles alone", ("barriers",)),
            ("rows", "products with all later vectors at once", ("barriers",)),
        ),
        subspaces,
        tolerance=1e-3,
        domain="signal processing",
    ),
    Study(
        "triton_sea_waves_36_frequencies_padded_to_64",
        "energy and mean period of the sea's waves at 2097152 places from 36 frequencies, in Triton",
        "28 of 64 lanes' frequencies are none: their densities are computed and count nothing",
        (
            ("places", "a place a lane, one frequency after another", ("idle_threads",)),
            ("fours", "nine times four frequencies", ("idle_threads",)),
        ),
        waves,
        tolerance=1e-4,
        domain="oceanography",
    ),
    Study(
        "sound_triton_day_of_snow",
        "a day of snow that falls, melts and runs off at 16777216 places, in Triton",
        "",
        (),
        snowed,
        domain="hydrology",
    ),
    Study(
        "sound_triton_least_of_mixed_words",
        "the least of 48 mixed forms of each of 8388608 words, in Triton",
        "",
        (),
        signatures,
        tolerance=0.0,
        domain="text",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
