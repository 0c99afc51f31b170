"""Studies in Triton of measurements and simulations, run by what tests/cuda/variants/frameworks.py provides.

Usage: w_science_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- how strong the strongest mast is ---


@triton.jit
def squared_way(place_x, place_y, masts, mast):
    """Square of the way from each of some masts to each of some places, in metres."""
    dx = tl.load(masts + 2 * mast).to(tl.float32)[:, None] - place_x[None, :]
    dy = tl.load(masts + 2 * mast + 1).to(tl.float32)[:, None] - place_y[None, :]
    return dx * dx + dy * dy + 400.0


@triton.jit
def masts_kernel(places, masts, powers, lengths, out, count, tall: tl.constexpr, wide: tl.constexpr):
    """Decibels of the strongest mast at each place, in free space."""
    place = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y = tl.load(places + 2 * place).to(tl.float32), tl.load(places + 2 * place + 1).to(tl.float32)
    best = tl.full((tall, wide), -1e30, tl.float32)
    first = 0
    while first < count:
        mast = first + tl.arange(0, tall)
        way = tl.sqrt(squared_way(x, y, masts, mast))
        lost = 6.0206 * tl.log2(12.566371 * way / tl.load(lengths + mast)[:, None])
        best = tl.maximum(best, tl.load(powers + mast).to(tl.float32)[:, None] - lost)
        first += tall
    tl.store(out + place, tl.max(best, 0))


@triton.jit
def masts_level_kernel(places, masts, levels, out, count, tall: tl.constexpr, wide: tl.constexpr):
    """The same, a mast's power and wavelength as one level."""
    place = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y = tl.load(places + 2 * place).to(tl.float32), tl.load(places + 2 * place + 1).to(tl.float32)
    best = tl.full((tall, wide), -1e30, tl.float32)
    first = 0
    while first < count:
        mast = first + tl.arange(0, tall)
        lost = 3.0103 * tl.log2(squared_way(x, y, masts, mast))
        best = tl.maximum(best, tl.load(levels + mast)[:, None] - lost)
        first += tall
    tl.store(out + place, tl.max(best, 0))


@triton.jit
def masts_ratio_kernel(places, masts, shares, out, count, tall: tl.constexpr, wide: tl.constexpr):
    """The same, the least ratio of a squared way to what a mast gives; one logarithm a place."""
    place = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y = tl.load(places + 2 * place).to(tl.float32), tl.load(places + 2 * place + 1).to(tl.float32)
    least = tl.full((tall, wide), 1e30, tl.float32)
    first = 0
    while first < count:
        mast = first + tl.arange(0, tall)
        least = tl.minimum(least, squared_way(x, y, masts, mast) * tl.load(shares + mast)[:, None])
        first += tall
    tl.store(out + place, -3.0103 * tl.log2(tl.min(least, 0)))


def masts(places: int = 98304, count: int = 6144) -> tuple[dict[str, Run], Check]:
    where = (noise(places, 2) * 30000.0).to(torch.int16)
    stand = (noise(count, 2).flip(0) * 30000.0).to(torch.int16).contiguous()
    powers = (noise(count) * 20.0 + 50.0).to(torch.int8)
    lengths = noise(count).flip(0) * 0.15 + 0.25
    levels = powers.float() + 6.0206 * torch.log2(lengths * 0.0795775)
    shares = torch.exp2(levels * -0.33219281)
    out = torch.empty(places, device="cuda")
    grid = (places // 128,)
    return {
        "flawed": lambda: masts_kernel[grid](where, stand, powers, lengths, out, count, 16, 128, num_warps=4),
        "levels": lambda: masts_level_kernel[grid](where, stand, levels, out, count, 16, 128, num_warps=4),
        "ratios": lambda: masts_ratio_kernel[grid](where, stand, shares, out, count, 16, 128, num_warps=4),
    }, lambda: out


# --- how alike the receivers of a telescope hear ---


@triton.jit
def receivers_kernel(
    heard, kept, out, samples,
    receivers: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr,
):  # fmt: skip
    """Sums of products of each two receivers' samples of a channel, those not kept left out."""
    channel, across = tl.program_id(1), receivers // wide
    one = tl.program_id(0) // across * tall + tl.arange(0, tall)
    two = tl.program_id(0) % across * wide + tl.arange(0, wide)
    total = tl.zeros((tall, wide), tl.int32)
    base = heard + channel * receivers * samples
    for first in tl.range(0, samples, deep):
        sample = first + tl.arange(0, deep)
        left = tl.load(base + one[:, None] * samples + sample[None, :])
        right = tl.load(base + two[None, :] * samples + sample[:, None])
        left = left * tl.load(kept + channel * samples + sample)[None, :]
        total = tl.dot(left, right, total, out_dtype=tl.int32)
    tl.store(out + (channel * receivers + one[:, None]) * receivers + two[None, :], total)


def receivers(channels: int = 512, samples: int = 1024) -> tuple[dict[str, Run], Check]:
    count = 128
    heard = (noise(channels, count, samples) * 15.9).to(torch.int8)
    kept = (noise(channels, samples) > -0.8).to(torch.int8)
    out = torch.empty(channels, count, count, device="cuda", dtype=torch.int32)

    def side(tall: int, wide: int, deep: int, warps: int) -> Run:
        return lambda: receivers_kernel[(count // tall * (count // wide), channels)](
            heard, kept, out, samples, count, tall, wide, deep, num_warps=warps, num_stages=3
        )

    return {
        "flawed": side(16, 32, 64, 2),
        "all_pairs": side(128, 128, 64, 8),
        "quarter": side(64, 64, 64, 4),
    }, (lambda: out)


# --- moments of songs and those most like them in others ---


@triton.jit
def moments_tile(
    songs, others, out, song, first, count, tones: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):  # fmt: skip
    """How near the nearest moment of the other song is to each of ``tall`` moments."""
    base, row = song * tones * count, first + tl.arange(0, tall)
    least = tl.full((tall, wide), 1 << 20, tl.int32)
    for start in range(0, count, wide):
        other = start + tl.arange(0, wide)
        apart = tl.zeros((tall, wide), tl.int32)
        for tone in range(tones):
            own = tl.load(songs + base + tone * count + row).to(tl.int32)
            theirs = tl.load(others + base + tone * count + other).to(tl.int32)
            apart += tl.abs(own[:, None] - theirs[None, :])
        least = tl.minimum(least, apart)
    tl.store(out + song * count + row, tl.min(least, 1))


@triton.jit
def moments_song_kernel(
    songs, others, out, count, tones: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    first = 0
    while first < count:
        moments_tile(songs, others, out, tl.program_id(0), first, count, tones, tall, wide)
        first += tall


@triton.jit
def moments_piece_kernel(
    songs, others, out, count, tones: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    first = tl.program_id(1) * tall
    moments_tile(songs, others, out, tl.program_id(0), first, count, tones, tall, wide)


def moments(count: int = 40, length: int = 1280) -> tuple[dict[str, Run], Check]:
    tones = 12
    songs = (noise(count, tones, length).abs() * 100.0).to(torch.int8)
    others = songs.flip(0, 2).contiguous()
    out = torch.empty(count, length, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: moments_song_kernel[(count,)](
            songs, others, out, length, tones, 64, 64, num_warps=4
        ),
        "pieces": lambda: moments_piece_kernel[(count, length // 64)](
            songs, others, out, length, tones, 64, 64, num_warps=4
        ),
        "small_pieces": lambda: moments_piece_kernel[(count, length // 32)](
            songs, others, out, length, tones, 32, 64, num_warps=2
        ),
    }, lambda: out


# --- between what limits a machine's sensors move ---


@triton.jit
def limits_kernel(readings, out, rows, sensors: tl.constexpr, tall: tl.constexpr):
    """The least and the largest reading of each sensor."""
    sensor = tl.arange(0, sensors)
    low = tl.full((tall, sensors), 32767, tl.int32)
    high = tl.full((tall, sensors), -32768, tl.int32)
    first = tl.program_id(0) * tall
    while first < rows:
        row = first + tl.arange(0, tall)
        value = tl.load(readings + row[:, None] * sensors + sensor[None, :]).to(tl.int32)
        low, high = tl.minimum(low, value), tl.maximum(high, value)
        first += tl.num_programs(0) * tall
    tl.atomic_min(out + sensor, tl.min(low, 0), sem="relaxed")
    tl.atomic_max(out + sensors + sensor, tl.max(high, 0), sem="relaxed")


def limits(rows: int = 1 << 20) -> tuple[dict[str, Run], Check]:
    sensors = 64
    readings = (noise(rows, sensors) * 31000.0).to(torch.int16)
    out = torch.zeros(2, sensors, device="cuda", dtype=torch.int32)

    def side(programs: int) -> Run:
        return lambda: limits_kernel[(programs,)](readings, out, rows, sensors, 32, num_warps=4)

    return {"flawed": side(rows // 32), "sixteen_times": side(rows // 512), "few": side(1056)}, (
        lambda: (out.clone(), out.zero_())[0]
    )


# --- how much of a gene is made ---


@triton.jit
def genes_kernel(
    levels, halves, steepness, out, cells, genes, way: tl.constexpr, regulators: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    """Shares of a gene's most in some cells: a product over what regulates it."""
    cell, gene = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1)
    steep = tl.load(steepness)
    share = tl.full((block,), 1.0, tl.float32)
    for regulator in range(regulators):
        level = tl.load(levels + regulator * cells + cell).to(tl.float32)
        ratio = tl.maximum(level, 1e-3) / tl.load(halves + gene * regulators + regulator)
        if way == 0:
            power = tl.exp(steep * tl.log(ratio))
        elif way == 1:
            power = tl.exp2(steep * libdevice.fast_log2f(ratio))
        else:
            power = ratio * ratio
            power *= power
        share *= power / (1.0 + power)
    tl.store(out + gene * cells + cell, share.to(tl.float16))


def expressed(cells: int = 1 << 19, genes: int = 24) -> tuple[dict[str, Run], Check]:
    regulators = 8
    levels = (noise(regulators, cells).abs() * 4.0 + 0.5).half()
    halves = noise(genes, regulators).abs() + 0.2
    steepness = torch.full((1,), 4.0, device="cuda")
    out = torch.empty(genes, cells, device="cuda", dtype=torch.half)

    def side(way: int) -> Run:
        return lambda: genes_kernel[(cells // 512, genes)](
            levels, halves, steepness, out, cells, genes, way, regulators, 512, num_warps=4
        )

    return {"flawed": side(0), "fast_logarithm": side(1), "squares": side(2)}, lambda: out


# --- how often a trace leaves its band ---


@triton.jit
def leaves_kernel(traces, middles, widths, out, length, tall: tl.constexpr, wide: tl.constexpr):
    """How many values of a trace are farther from its middle than its width."""
    trace = tl.program_id(0) * tall + tl.arange(0, tall)
    middle = tl.load(middles + trace).to(tl.int32)[:, None]
    width = tl.load(widths + trace).to(tl.int32)[:, None]
    seen = tl.zeros((tall, wide), tl.int32)
    first = 0
    while first < length:
        at = trace[:, None] * length + first + tl.arange(0, wide)[None, :]
        far = tl.abs(tl.load(traces + at).to(tl.int32) - middle) > width
        seen += far.to(tl.int32)
        first += wide
    tl.store(out + trace, tl.sum(seen, 1))


def leaves(count: int = 40064, length: int = 2048) -> tuple[dict[str, Run], Check]:
    traces = (noise(count, length) * 20000.0).to(torch.int16)
    middles, widths = traces[:, 5].contiguous(), traces[:, 9].abs().contiguous()
    out = torch.empty(count, device="cuda", dtype=torch.int32)

    def side(tall: int, wide: int) -> Run:
        return lambda: leaves_kernel[(count // tall,)](
            traces, middles, widths, out, length, tall, wide, num_warps=4
        )

    return {"flawed": side(128, 8), "wide": side(8, 512), "whole": side(1, 2048)}, lambda: out


# --- when the machines of a line start, round by round ---


@triton.jit
def rounds_kernel(waits, starts, out, rounds, machines: tl.constexpr):
    """When each machine of a line starts in the last round: once all that it waits for are done."""
    line, one = tl.program_id(0), tl.arange(0, machines)
    wait = tl.load(waits + (line * machines + one[:, None]) * machines + one[None, :])
    time = tl.load(starts + line * machines + one)
    for _ in range(rounds):
        time = tl.max(wait + time[None, :], 1)
    tl.store(out + line * machines + one, time)


@triton.jit
def rounds_lines_kernel(waits, starts, out, rounds, machines: tl.constexpr, lines: tl.constexpr):
    """The same of several lines."""
    line, one = tl.program_id(0) * lines + tl.arange(0, lines), tl.arange(0, machines)
    at = line[:, None] * machines + one[None, :]
    wait = tl.load(waits + at[:, :, None] * machines + one[None, None, :])
    time = tl.load(starts + at)
    for _ in range(rounds):
        time = tl.max(wait + time[:, None, :], 2)
    tl.store(out + at, time)


def started(count: int = 160000, rounds: int = 24) -> tuple[dict[str, Run], Check]:
    machines = 8
    waits = (noise(count, machines, machines).abs() * 900.0).int()
    starts = (noise(count, machines) * 500.0).int()
    out = torch.empty_like(starts)
    return {
        "flawed": lambda: rounds_kernel[(count,)](waits, starts, out, rounds, machines, num_warps=4),
        "lines": lambda: rounds_lines_kernel[(count // 32,)](
            waits, starts, out, rounds, machines, 32, num_warps=4
        ),
        "lone_warp": lambda: rounds_lines_kernel[(count // 4,)](
            waits, starts, out, rounds, machines, 4, num_warps=1
        ),
    }, lambda: out


# --- how many earlier values of a series are larger ---


@triton.jit
def larger_tile(series, out, one, piece, length, rows: tl.constexpr, wide: tl.constexpr):
    """The same for ``rows`` values of a series."""
    base, place, lane = series + one * length, piece * rows + tl.arange(0, rows), tl.arange(0, wide)
    own = tl.load(base + place)[:, None]
    found = tl.zeros((rows, wide), tl.int32)
    for first in range(0, piece * rows, wide):
        found += (tl.load(base + first + lane)[None, :] > own).to(tl.int32)
    for first in range(piece * rows, (piece + 1) * rows, wide):
        larger = tl.load(base + first + lane)[None, :] > own
        found += (larger & ((first + lane)[None, :] < place[:, None])).to(tl.int32)
    tl.store(out + one * length + place, tl.sum(found, 1))


@triton.jit
def larger_kernel(series, out, length, last_first: tl.constexpr, rows: tl.constexpr, wide: tl.constexpr):
    pieces = length // rows
    count = tl.num_programs(0) // pieces
    one, piece = tl.program_id(0) % count, tl.program_id(0) // count
    if last_first:
        piece = pieces - 1 - piece
    larger_tile(series, out, one, piece, length, rows, wide)


@triton.jit
def larger_two_kernel(series, out, length, rows: tl.constexpr, wide: tl.constexpr):
    """A piece from either end."""
    pieces = length // rows
    one, piece = tl.program_id(0) // (pieces // 2), tl.program_id(0) % (pieces // 2)
    larger_tile(series, out, one, piece, length, rows, wide)
    larger_tile(series, out, one, pieces - 1 - piece, length, rows, wide)


def larger(count: int = 8, length: int = 16384) -> tuple[dict[str, Run], Check]:
    series = (noise(count, length) * 1e6).int()
    out = torch.empty_like(series)
    pieces = length // 256

    def side(last_first: bool) -> Run:
        return lambda: larger_kernel[(count * pieces,)](series, out, length, last_first, 256, 16, num_warps=8)

    return {
        "flawed": side(False),
        "last_first": side(True),
        "from_both_ends": lambda: larger_two_kernel[(count * pieces // 2,)](
            series, out, length, 256, 16, num_warps=8
        ),
    }, lambda: out


# --- days of the past like those foreseen ---


@triton.jit
def like_days_kernel(
    seen, foreseen, out, days, members: tl.constexpr, width: tl.constexpr, taken: tl.constexpr, tile: tl.constexpr
):  # fmt: skip
    """How far the most alike day of a station's past is from what ``taken`` members foresee."""
    groups: tl.constexpr = members // taken
    station = tl.program_id(0) // groups
    member = tl.program_id(0) % groups * taken + tl.arange(0, taken)
    value = tl.arange(0, width)
    own = tl.load(foreseen + (station * members + member[:, None]) * width + value[None, :]).to(tl.float32)
    least = tl.full((taken, tile), 1e30, tl.float32)
    for first in tl.range(0, days, tile):
        day = first + tl.arange(0, tile)
        past = tl.load(seen + (station * days + day[:, None]) * width + value[None, :]).to(tl.float32)
        off = past[None, :, :] - own[:, None, :]
        least = tl.minimum(least, tl.sum(off * off, 2))
    tl.store(out + station * members + member, tl.min(least, 1))


def like_days(stations: int = 1056, days: int = 1536) -> tuple[dict[str, Run], Check]:
    members, width = 8, 32
    seen = noise(stations, days, width, dtype=torch.half)
    foreseen = (noise(stations, members, width).flip(0) * 0.9).half()
    out = torch.empty(stations, members, device="cuda")

    def side(taken: int, tile: int) -> Run:
        return lambda: like_days_kernel[(stations * members // taken,)](
            seen, foreseen, out, days, members, width, taken, tile, num_warps=4
        )

    return {"flawed": side(1, 64), "all_members": side(8, 32), "four_members": side(4, 32)}, lambda: out


STUDIES = (
    Study(
        "triton_strongest_mast_in_decibels_for_each_pair",
        "the strongest of 6144 masts at 98304 places, in Triton",
        "a root, a quotient and a logarithm for each pair of place and mast",
        (
            ("levels", "power and wavelength as a mast's level, squared ways", ("expensive_math",)),
            ("ratios", "ratios compared, the logarithm of the best alone", ("expensive_math",)),
        ),
        masts,
        tolerance=1e-3,
        domain="radio",
    ),
    Study(
        "triton_receivers_compared_in_small_tiles",
        "products of each two of 128 receivers, 512 channels of 1024 samples of a byte, in Triton",
        "a program makes 16 x 32 of a channel's 128 x 128: samples are loaded again for each",
        (
            ("all_pairs", "a program makes all of a channel", ("redundant_loads",)),
            ("quarter", "tiles of 64 x 64", ("redundant_loads",)),
        ),
        receivers,
        tolerance=0.0,
        domain="astronomy",
    ),
    Study(
        "triton_moments_alike_song_a_program",
        "nearest moments of another song for 1280 moments of 12 tones of each of 40 songs, in Triton",
        "a program for each song: 40 of them",
        (
            ("pieces", "a program for 64 moments of a song", ("small_grid",)),
            ("small_pieces", "a program of two warps for 32 moments", ("small_grid",)),
        ),
        moments,
        tolerance=0.0,
        domain="music",
    ),
    Study(
        "triton_limits_of_sensors_32_rows_at_a_time",
        "the least and the largest of 1048576 readings of 64 sensors, 16 bits, in Triton",
        "a program takes 32 rows, then compares 128 words with those of all others by atomics",
        (
            ("sixteen_times", "a program takes 512 rows", ("global_atomics",)),
            ("few", "1056 programs take all rows", ("global_atomics",)),
        ),
        limits,
        tolerance=0.0,
        domain="sensors",
    ),
    Study(
        "triton_genes_made_by_powers",
        "shares of 24 genes in 524288 cells by eight regulators each, half, in Triton",
        "a precise logarithm and an exponential for each regulator, for a power that is four",
        (
            ("fast_logarithm", "the hardware's logarithm", ("expensive_math",)),
            ("squares", "two squares", ("expensive_math",)),
        ),
        expressed,
        tolerance=2e-3,
        domain="biology",
    ),
    Study(
        "triton_leaves_counted_eight_values_at_a_time",
        "how often 40064 traces of 2048 values leave their bands, 16 bits, in Triton",
        "a tile of 128 traces and eight values: each lane takes 16 bytes of another trace",
        (
            ("wide", "tiles of 8 traces and 512 values", ("uncoalesced_access",)),
            ("whole", "a program a trace", ("uncoalesced_access",)),
        ),
        leaves,
        tolerance=0.0,
        domain="sensors",
    ),
    Study(
        "triton_starts_of_machines_line_a_program",
        "starts of the eight machines of each of 160000 lines after 24 rounds, in Triton",
        "a program of four warps for the 64 waits of a line",
        (
            ("lines", "32 lines a program", ("idle_threads",)),
            ("lone_warp", "four lines a program of one warp", ("idle_threads",)),
        ),
        started,
        tolerance=0.0,
        domain="simulation",
    ),
    Study(
        "triton_larger_before_longest_last",
        "how many earlier values are larger, for each of 16384 in 8 series, in Triton",
        "later values have more before them, and their programs come last",
        (
            ("last_first", "the last values first", ("workload_imbalance",)),
            ("from_both_ends", "a program takes a piece from either end", ("workload_imbalance",)),
        ),
        larger,
        tolerance=0.0,
        domain="statistics",
    ),
    Study(
        "triton_past_read_for_each_foreseen_day",
        "least distances of 8 foreseen days to 1536 of the past at 1056 stations, half, in Triton",
        "a program for one foreseen day: seven others read the same past",
        (
            ("all_members", "a program for the eight days of a station", ("redundant_loads",)),
            ("four_members", "a program for four days of a station", ("redundant_loads",)),
        ),
        like_days,
        tolerance=1e-3,
        domain="weather",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
