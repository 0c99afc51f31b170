"""Studies in Triton of physics, images, finance and search, run by what tests/cuda/variants/frameworks.py provides.

Usage: science_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- physics ---


@triton.jit
def pushed(x, y, z, vx, vy, vz, mass, charge, step):
    turn, pull = charge / mass, -1.0 / mass
    ax, ay, az = pull * x + turn * vy, pull * y - turn * vx, pull * z
    vx, vy, vz = vx + step * ax, vy + step * ay, vz + step * az
    return x + step * vx, y + step * vy, z + step * vz, vx, vy, vz


@triton.jit
def records_fields_kernel(records, out, step, pitch, apart, block: tl.constexpr):
    from_ = records + (tl.program_id(0) * block + tl.arange(0, block)) * pitch
    to = out + (tl.program_id(0) * block + tl.arange(0, block)) * pitch
    x, y, z = tl.load(from_), tl.load(from_ + apart), tl.load(from_ + 2 * apart)
    vx, vy, vz = tl.load(from_ + 3 * apart), tl.load(from_ + 4 * apart), tl.load(from_ + 5 * apart)
    mass, charge = tl.load(from_ + 6 * apart), tl.load(from_ + 7 * apart)
    x, y, z, vx, vy, vz = pushed(x, y, z, vx, vy, vz, mass, charge, step)
    tl.store(to, x)
    tl.store(to + apart, y)
    tl.store(to + 2 * apart, z)
    tl.store(to + 3 * apart, vx)
    tl.store(to + 4 * apart, vy)
    tl.store(to + 5 * apart, vz)
    tl.store(to + 6 * apart, mass)
    tl.store(to + 7 * apart, charge)


@triton.jit
def records_tile_kernel(records, out, step, block: tl.constexpr):
    at = tl.program_id(0) * block * 8 + tl.arange(0, block * 8)
    even, odd = tl.split(tl.reshape(tl.load(records + at), (block, 2, 2, 2)))
    x_vy, z_mass = tl.split(even)
    y_vz, vx_charge = tl.split(odd)
    x, vy = tl.split(x_vy)
    z, mass = tl.split(z_mass)
    y, vz = tl.split(y_vz)
    vx, charge = tl.split(vx_charge)
    x, y, z, vx, vy, vz = pushed(x, y, z, vx, vy, vz, mass, charge, step)
    even = tl.join(tl.join(x, vy), tl.join(z, mass))
    odd = tl.join(tl.join(y, vz), tl.join(vx, charge))
    tl.store(out + at, tl.reshape(tl.join(even, odd), (block * 8,)))


def records(n: int = 1 << 22) -> tuple[dict[str, Run], Check]:
    rows = noise(n, 8)
    rows[:, 6] = rows[:, 6].abs() + 1
    columns = rows.t().contiguous()
    out, out_columns = torch.empty_like(rows), torch.empty_like(columns)
    found = {"out": out}

    def side(source: torch.Tensor, to: torch.Tensor, pitch: int, field: int) -> Run:
        def run() -> None:
            records_fields_kernel[(n // 256,)](source, to, 1e-2, pitch, field, 256, num_warps=4)
            found["out"] = to

        return run

    def tile() -> None:
        records_tile_kernel[(n // 256,)](rows, out, 1e-2, 256, num_warps=4)
        found["out"] = out

    sides = {
        "flawed": side(rows, out, 8, 1),
        "arrays": side(columns, out_columns, 1, n),
        "tile": tile,
    }
    return sides, lambda: found["out"].contiguous() if found["out"] is out else out_columns.t().contiguous()


@triton.jit
def neurons_kernel(voltage, recovery, current, out, steps, block: tl.constexpr, explicit: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    v, w, drive = tl.load(voltage + at), tl.load(recovery + at), tl.load(current + at)
    if explicit:
        third = tl.full((block,), -0.05 / 3.0, tl.float32)
        grown, small = tl.full((block,), 1.05, tl.float32), tl.full((block,), -0.05, tl.float32)
        slow, kept = tl.full((block,), 0.004, tl.float32), tl.full((block,), 1.0 - 0.0032, tl.float32)
        drive, rest = 0.05 * drive, 0.0028
        for _ in range(steps):
            next_w = tl.fma(kept, w, tl.fma(slow, v, rest + tl.zeros_like(w)))
            v = tl.fma(v, tl.fma(third, v * v, grown), tl.fma(small, w, drive))
            w = next_w
    else:
        for _ in range(steps):
            change = v - v * v * v * (1.0 / 3.0) - w + drive
            w, v = w + 0.004 * (v + 0.7 - 0.8 * w), v + 0.05 * change
    tl.store(out + at, v + w)


def neurons(n: int = 1 << 20, steps: int = 400) -> tuple[dict[str, Run], Check]:
    voltage, recovery = noise(n), noise(n) * 0.1
    current, out = voltage.flip(0).abs(), torch.empty(n, device="cuda")

    def side(explicit: bool, fused: bool) -> Run:
        return lambda: neurons_kernel[(n // 512,)](
            voltage, recovery, current, out, steps, 512, explicit, num_warps=4, enable_fp_fusion=fused
        )

    return {
        "flawed": side(False, False),
        "fused": side(False, True),
        "by_hand": side(True, False),
    }, lambda: out


@triton.jit
def orbit_step(x, y, vx, vy, step):
    near = tl.rsqrt(x * x + y * y + 1e-4)
    pull = -step * near * near * near
    vx, vy = vx + pull * x, vy + pull * y
    return x + step * vx, y + step * vy, vx, vy


@triton.jit
def orbits_unrolled_kernel(radii, out, step, steps: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    x = tl.load(radii + at)
    y, vx, vy = tl.zeros_like(x), tl.zeros_like(x), tl.rsqrt(x)
    for _ in tl.static_range(steps):
        x, y, vx, vy = orbit_step(x, y, vx, vy, step)
    tl.store(out + at, x + y)


@triton.jit
def orbits_loop_kernel(radii, out, step, rounds, together: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    x = tl.load(radii + at)
    y, vx, vy = tl.zeros_like(x), tl.zeros_like(x), tl.rsqrt(x)
    for _ in range(rounds):
        for _ in tl.static_range(together):
            x, y, vx, vy = orbit_step(x, y, vx, vy, step)
    tl.store(out + at, x + y)


def orbits(n: int = 1 << 20, steps: int = 128) -> tuple[dict[str, Run], Check]:
    radii, out = noise(n) * 0.4 + 1, torch.empty(n, device="cuda")

    def loop(together: int) -> Run:
        return lambda: orbits_loop_kernel[(n // 1024,)](
            radii, out, 1e-2, steps // together, together, 1024, num_warps=4
        )

    return {
        "flawed": lambda: orbits_unrolled_kernel[(n // 1024,)](radii, out, 1e-2, steps, 1024, num_warps=4),
        "loop": loop(1),
        "eights": loop(8),
    }, lambda: out


@triton.jit
def nearest_kernel(
    queries, points, out, count, total, tall: tl.constexpr, wide: tl.constexpr, kept: tl.constexpr
):
    query = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y, z = tl.load(queries + query), tl.load(queries + total + query), tl.load(queries + 2 * total + query)
    least = tl.full((wide,), float("inf"), tl.float32)
    leasts = tl.full((tall, wide), float("inf"), tl.float32)
    for start in range(0, count, tall):
        point = start + tl.arange(0, tall)
        dx = tl.load(points + point)[:, None] - x[None, :]
        dy = tl.load(points + count + point)[:, None] - y[None, :]
        dz = tl.load(points + 2 * count + point)[:, None] - z[None, :]
        square = dx * dx + dy * dy + dz * dz
        if kept:
            leasts = tl.minimum(leasts, square)
        else:
            least = tl.minimum(least, tl.min(square, 0))
    if kept:
        least = tl.min(leasts, 0)
    tl.store(out + query, tl.sqrt(least))


def nearest(total: int = 32768, count: int = 8192) -> tuple[dict[str, Run], Check]:
    queries = noise(3, total)
    points, out = queries.flip(1)[:, :count].contiguous() * 0.9, torch.empty(total, device="cuda")

    def side(tall: int, wide: int, kept: bool, warps: int) -> Run:
        return lambda: nearest_kernel[(total // wide,)](
            queries, points, out, count, total, tall, wide, kept, num_warps=warps
        )

    return {
        "flawed": side(32, 64, False, 4),
        "kept_apart": side(32, 64, True, 4),
        "one_warp": side(32, 32, False, 1),
    }, lambda: out


# --- images ---


@triton.jit
def blur_loads_kernel(image, out, width, high, taps: tl.constexpr, block: tl.constexpr):
    row, column = tl.program_id(1), tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for tap in range(taps):
        total += tl.load(image + (row + tap) * width + column)
    tl.store(out + row * width + column, total / taps)


@triton.jit
def blur_running_kernel(image, out, width, high, taps: tl.constexpr, block: tl.constexpr):
    first, column = tl.program_id(1) * high, tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for tap in range(taps - 1):
        total += tl.load(image + (first + tap) * width + column)
    for row in range(first, first + high):
        total += tl.load(image + (row + taps - 1) * width + column)
        tl.store(out + row * width + column, total / taps)
        total -= tl.load(image + row * width + column)


@triton.jit
def blur_band_kernel(image, out, width, high: tl.constexpr, taps: tl.constexpr, block: tl.constexpr):
    first, column = tl.program_id(1) * high, tl.program_id(0) * block + tl.arange(0, block)
    row = tl.arange(0, high)[:, None]
    total = tl.zeros((high, block), tl.float32)
    for line in range(high + taps - 1):
        value = tl.load(image + (first + line) * width + column[None, :])
        total += tl.where((row <= line) & (line < row + taps), value, 0.0)
    tl.store(out + (first + row) * width + column[None, :], total / taps)


def blur(height: int = 4096, width: int = 4096) -> tuple[dict[str, Run], Check]:
    taps = 31
    image = noise(height + taps - 1, width) + 1
    out = torch.empty(height, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: blur_loads_kernel[(width // 512, height)](
            image, out, width, 1, taps, 512, num_warps=4
        ),
        "running": lambda: blur_running_kernel[(width // 128, height // 64)](
            image, out, width, 64, taps, 128, num_warps=1
        ),
        "band": lambda: blur_band_kernel[(width // 128, height // 16)](
            image, out, width, 16, taps, 128, num_warps=1
        ),
    }
    return sides, lambda: out


@triton.jit
def volume_kernel(left, right, out, pixels, width, channels, block: tl.constexpr, first: tl.constexpr):
    shift, piece = tl.program_id(1 - first), tl.program_id(first)
    at = piece * block + tl.arange(0, block)
    there = at % width >= shift
    total = tl.zeros((block,), tl.float32)
    for channel in range(channels):
        one = tl.load(left + channel * pixels + at).to(tl.float32)
        other = tl.load(right + channel * pixels + at - shift, there, 0.0).to(tl.float32)
        total += tl.abs(one - other)
    tl.store(out + shift * pixels + at, total)


@triton.jit
def volume_walk_kernel(left, right, out, pixels, width, shifts, channels: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    place = at[None, :] + tl.arange(0, channels)[:, None] * pixels
    one = tl.load(left + place).to(tl.float32)
    for shift in range(shifts):
        other = tl.load(right + place - shift, (at % width >= shift)[None, :], 0.0).to(tl.float32)
        tl.store(out + shift * pixels + at, tl.sum(tl.abs(one - other), 0))


def volume(height: int = 1024, width: int = 2048, shifts: int = 16) -> tuple[dict[str, Run], Check]:
    channels, pixels = 16, height * width
    left = noise(channels, pixels, dtype=torch.half)
    right, out = left.flip(0).contiguous(), torch.empty(shifts, pixels, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: volume_kernel[(pixels // 512, shifts)](
            left, right, out, pixels, width, channels, 512, 0, num_warps=4
        ),
        "shifts_first": lambda: volume_kernel[(shifts, pixels // 512)](
            left, right, out, pixels, width, channels, 512, 1, num_warps=4
        ),
        "walk": lambda: volume_walk_kernel[(pixels // 256,)](
            left, right, out, pixels, width, shifts, channels, 256, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def waves_precise_kernel(points, out, n, bands: tl.constexpr, fast: tl.constexpr, block: tl.constexpr):
    axis, at = tl.program_id(1), tl.program_id(0) * block + tl.arange(0, block)
    angle = tl.load(points + axis * n + at) * 3.14159265
    base = out + axis * 2 * bands * n + at
    for band in range(bands):
        if fast:
            sine, cosine = libdevice.fast_sinf(angle), libdevice.fast_cosf(angle)
        else:
            sine, cosine = tl.sin(angle), tl.cos(angle)
        tl.store(base + 2 * band * n, sine.to(tl.float16))
        tl.store(base + (2 * band + 1) * n, cosine.to(tl.float16))
        angle = angle * 2.0


@triton.jit
def waves_doubled_kernel(points, out, n, bands: tl.constexpr, block: tl.constexpr):
    axis, at = tl.program_id(1), tl.program_id(0) * block + tl.arange(0, block)
    angle = tl.load(points + axis * n + at) * 3.14159265
    base = out + axis * 2 * bands * n + at
    sine, cosine = tl.sin(angle), tl.cos(angle)
    for band in range(bands):
        tl.store(base + 2 * band * n, sine.to(tl.float16))
        tl.store(base + (2 * band + 1) * n, cosine.to(tl.float16))
        sine, cosine = 2.0 * sine * cosine, 1.0 - 2.0 * sine * sine


def waves(n: int = 1 << 20) -> tuple[dict[str, Run], Check]:
    bands = 8
    points, out = noise(3, n), torch.empty(3, bands, 2, n, device="cuda", dtype=torch.half)

    def side(fast: bool) -> Run:
        return lambda: waves_precise_kernel[(n // 512, 3)](points, out, n, bands, fast, 512, num_warps=4)

    sides: dict[str, Run] = {
        "flawed": side(False),
        "doubled": lambda: waves_doubled_kernel[(n // 512, 3)](points, out, n, bands, 512, num_warps=4),
        "fast": side(True),
    }
    return sides, lambda: out


# --- finance, search, recommenders ---


@triton.jit
def price(spot, strike, discount, spread):
    ratio = tl.log(spot / (strike * discount)) / spread
    upper, lower = ratio + 0.5 * spread, ratio - 0.5 * spread
    first = 0.5 + 0.5 * tl.erf(upper * 0.7071067811865476)
    second = 0.5 + 0.5 * tl.erf(lower * 0.7071067811865476)
    return spot * first - strike * discount * second


@triton.jit
def options_kernel(spots, strikes, expiries, curve, terms, out, block: tl.constexpr, cast: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    spot, strike, expiry = tl.load(spots + at), tl.load(strikes + at), tl.load(expiries + at)
    rate, term = tl.load(curve + expiry), tl.load(terms + expiry)
    if cast:
        rate, term = rate.to(tl.float32), term.to(tl.float32)
    value = price(spot, strike, tl.exp(-rate * term), 0.25 * tl.sqrt(term))
    tl.store(out + at, value.to(tl.float32))


@triton.jit
def options_factors_kernel(spots, strikes, expiries, discounts, spreads, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    expiry = tl.load(expiries + at)
    value = price(
        tl.load(spots + at), tl.load(strikes + at), tl.load(discounts + expiry), tl.load(spreads + expiry)
    )
    tl.store(out + at, value)


def options(n: int = 1 << 23) -> tuple[dict[str, Run], Check]:
    spots = noise(n) * 0.3 + 1
    strikes, expiries = spots.flip(0).contiguous(), (noise(n).abs() * 63.9).int()
    terms = torch.arange(1, 65, device="cuda", dtype=torch.float64) / 12
    curve = 0.02 + 0.01 * terms.sqrt()
    discounts, spreads = (-curve * terms).exp().float(), (0.25 * terms.sqrt()).float()
    out = torch.empty(n, device="cuda")

    def side(cast: bool) -> Run:
        return lambda: options_kernel[(n // 512,)](
            spots, strikes, expiries, curve, terms, out, 512, cast, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": side(False),
        "cast": side(True),
        "float_factors": lambda: options_factors_kernel[(n // 512,)](
            spots, strikes, expiries, discounts, spreads, out, 512, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def decayed(first_factor, first, second_factor, second):
    return first_factor * second_factor, first * second_factor + second


@triton.jit
def averages_steps_kernel(prices, out, steps):
    series = tl.program_id(0) * steps
    average = tl.load(prices + series)
    for step in range(steps):
        average = 0.97 * average + 0.03 * tl.load(prices + series + step)
        tl.store(out + series + step, average)


@triton.jit
def averages_pieces_kernel(prices, out, steps, piece: tl.constexpr):
    series, step = tl.program_id(0) * steps, tl.arange(0, piece)
    average = tl.load(prices + series)
    for start in range(0, steps, piece):
        value = 0.03 * tl.load(prices + series + start + step)
        factor, found = tl.associative_scan((tl.full((piece,), 0.97, tl.float32), value), 0, decayed)
        found += factor * average
        tl.store(out + series + start + step, found)
        average = tl.sum(tl.where(step == piece - 1, found, 0.0), 0)


def averages(series: int = 4096, steps: int = 4096) -> tuple[dict[str, Run], Check]:
    prices = noise(series, steps) + 2
    out = torch.empty_like(prices)

    def pieces(piece: int, warps: int) -> Run:
        return lambda: averages_pieces_kernel[(series,)](prices, out, steps, piece, num_warps=warps)

    sides: dict[str, Run] = {
        "flawed": lambda: averages_steps_kernel[(series,)](prices, out, steps, num_warps=1),
        "whole_scan": pieces(steps, 4),
        "pieces": pieces(512, 1),
    }
    return sides, lambda: out


@triton.jit
def codes_bytes_kernel(codes, table, out, apart, pitch, parts: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for part in tl.static_range(parts):
        code = tl.load(codes + at * pitch + part * apart).to(tl.int32)
        total += tl.load(table + part * 256 + code)
    tl.store(out + at, total)


@triton.jit
def codes_words_kernel(codes, table, out, words: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for word in tl.static_range(words):
        four = tl.load(codes + at * words + word)
        for part in tl.static_range(4):
            code = (four >> (8 * part)) & 255
            total += tl.load(table + (word * 4 + part) * 256 + code)
    tl.store(out + at, total)


def code_distances(n: int = 1 << 22) -> tuple[dict[str, Run], Check]:
    parts = 16
    codes = (noise(n, parts).abs() * 255.9).to(torch.uint8)
    turned, words = codes.t().contiguous(), codes.view(torch.int32)
    table, out = noise(parts, 256).abs(), torch.empty(n, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: codes_bytes_kernel[(n // 512,)](
            codes, table, out, 1, parts, parts, 512, num_warps=4
        ),
        "turned": lambda: codes_bytes_kernel[(n // 512,)](turned, table, out, n, 1, parts, 512, num_warps=4),
        "words": lambda: codes_words_kernel[(n // 512,)](words, table, out, parts // 4, 512, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def bags_walk_kernel(items, table, out, most: tl.constexpr, width: tl.constexpr):
    bag, column = tl.program_id(0), tl.arange(0, width)
    total = tl.full((width,), -float("inf"), tl.float32)
    place = bag * most
    item = tl.load(items + place)
    while item >= 0:
        total = tl.maximum(total, tl.load(table + item * width + column))
        place += 1
        item = tl.load(items + place)
    tl.store(out + bag * width + column, total)


@triton.jit
def bags_tile_kernel(items, table, out, most: tl.constexpr, width: tl.constexpr, tall: tl.constexpr):
    bag, column = tl.program_id(0), tl.arange(0, width)
    total = tl.full((tall, width), -float("inf"), tl.float32)
    for first in range(0, most, tall):
        item = tl.load(items + bag * most + first + tl.arange(0, tall))
        there = (item >= 0)[:, None] & (column >= 0)[None, :]
        value = tl.load(table + item[:, None] * width + column[None, :], there, -float("inf"))
        total = tl.maximum(total, value)
    tl.store(out + bag * width + column, tl.max(total, 0))


@triton.jit
def bags_counted_kernel(items, lengths, table, out, most: tl.constexpr, width: tl.constexpr):
    bag, column = tl.program_id(0), tl.arange(0, width)
    total = tl.full((width,), -float("inf"), tl.float32)
    for place in range(tl.load(lengths + bag)):
        item = tl.load(items + bag * most + place)
        total = tl.maximum(total, tl.load(table + item * width + column))
    tl.store(out + bag * width + column, total)


def bags(count: int = 32768, rows: int = 1 << 20) -> tuple[dict[str, Run], Check]:
    most, width = 32, 128
    lengths = (noise(count).abs() * most).int().clamp(1, most - 1)
    items = (noise(count + 1, most).abs() * (rows - 1)).int()
    items[torch.arange(most, device="cuda") >= torch.cat((lengths, lengths[:1]))[:, None]] = -1
    table, out = noise(rows, width), torch.empty(count, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: bags_walk_kernel[(count,)](items, table, out, most, width, num_warps=1),
        "tile": lambda: bags_tile_kernel[(count,)](items, table, out, most, width, 8, num_warps=1),
        "counted": lambda: bags_counted_kernel[(count,)](
            items, lengths, table, out, most, width, num_warps=1
        ),
    }
    return sides, lambda: out


# --- nothing wrong ---


@triton.jit
def spectra_kernel(a_real, a_imaginary, b_real, b_imaginary, real, imaginary, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    a, b = tl.load(a_real + at), tl.load(a_imaginary + at)
    c, d = tl.load(b_real + at), tl.load(b_imaginary + at)
    tl.store(real + at, a * c + b * d)
    tl.store(imaginary + at, b * c - a * d)


def spectra(n: int = 1 << 23) -> tuple[dict[str, Run], Check]:
    a, out = noise(2, n), torch.empty(2, n, device="cuda")
    b = a.flip(1).contiguous()
    return {
        "sound": lambda: spectra_kernel[(n // 1024,)](
            a[0], a[1], b[0], b[1], out[0], out[1], 1024, num_warps=8
        )
    }, lambda: out


STUDIES = (
    Study(
        "triton_particles_pushed_as_records",
        "a step of 4194304 charged particles of eight floats each in Triton",
        "each field is loaded and stored by itself, 32 bytes apart",
        (
            ("arrays", "an array a field", ("uncoalesced_access",)),
            ("tile", "records are loaded as they lie and split in registers", ("uncoalesced_access",)),
        ),
        records,
        domain="physics",
    ),
    Study(
        "triton_neurons_without_fusion",
        "400 steps of 1048576 FitzHugh-Nagumo neurons in Triton",
        "compiled with enable_fp_fusion=False: a product and a sum each",
        (
            ("fused", "the compiler may fuse", ("non_fused_arithmetic",)),
            ("by_hand", "regrouped into fused operations by hand", ("non_fused_arithmetic",)),
        ),
        neurons,
        domain="simulation",
    ),
    Study(
        "triton_orbits_steps_unrolled",
        "128 steps of 1048576 bodies around a star in Triton",
        "static_range over the steps: code larger than the instruction cache",
        (
            ("loop", "a loop over the steps", ("instruction_cache",)),
            ("eights", "a loop over eight steps each", ("instruction_cache",)),
        ),
        orbits,
        domain="astronomy",
    ),
    Study(
        "triton_nearest_minimum_each_step",
        "distance of 32768 points to the nearest of 8192 in Triton",
        "every tile of distances is reduced at once, across four warps",
        (
            ("kept_apart", "minima of tiles, reduced at the end", ("barriers",)),
            ("one_warp", "a program of one warp", ("barriers",)),
        ),
        nearest,
        domain="geometry",
    ),
    Study(
        "triton_column_means_31_loads",
        "means of 31 rows at each of 4096 x 4096 floats in Triton",
        "every output loads its 31 rows again",
        (
            ("running", "a warp walks 64 rows, adds one and takes one away", ("redundant_loads",)),
            ("band", "a warp makes 16 rows of what it loads once", ("redundant_loads",)),
        ),
        blur,
        domain="images",
    ),
    Study(
        "triton_cost_volume_shifts_last",
        "differences of two images of 1024 x 2048 with 16 half channels at 16 shifts in Triton",
        "programs make one shift of the whole image before the next: both images come from memory for each",
        (
            ("shifts_first", "all shifts of a piece run together", ("cache_locality",)),
            ("walk", "a program walks the shifts of its piece", ("cache_locality", "redundant_loads")),
        ),
        volume,
        domain="images",
    ),
    Study(
        "triton_waves_of_eight_bands",
        "sines and cosines of eight octaves for 1048576 points in three dimensions, half results, in Triton",
        "a precise sine and cosine for each octave",
        (
            ("doubled", "the next octave from the one before", ("expensive_math",)),
            ("fast", "fast sines and cosines", ("expensive_math",)),
        ),
        waves,
        5e-3,
        domain="rendering",
    ),
    Study(
        "triton_options_with_double_curve",
        "prices of 8388608 options in Triton",
        "rates and terms come as doubles, and everything that follows is done in them",
        (
            ("cast", "both become floats once loaded", ("double_precision",)),
            ("float_factors", "tables of float factors", ("double_precision", "expensive_math")),
        ),
        options,
        domain="finance",
    ),
    Study(
        "triton_averages_step_by_step",
        "exponential averages of 4096 series of 4096 prices in Triton",
        "a warp walks its series value by value, all lanes doing the same",
        (
            ("whole_scan", "a scan over the series", ("idle_threads", "memory_latency")),
            ("pieces", "a warp scans pieces of 512", ("idle_threads", "memory_latency")),
        ),
        averages,
        domain="finance",
    ),
    Study(
        "triton_code_distances_byte_by_byte",
        "distances of 4194304 vectors of 16 byte codes by a table of 16 x 256 floats in Triton",
        "lanes load single bytes 16 apart",
        (
            ("turned", "codes stored part by part", ("uncoalesced_access", "narrow_access")),
            ("words", "four codes by one load", ("narrow_access", "uncoalesced_access")),
        ),
        code_distances,
        domain="data",
    ),
    Study(
        "triton_bag_maxima_to_the_first_gap",
        "maxima over 32768 bags of up to 31 rows of 128 floats, bags filled up with -1, in Triton",
        "a warp takes a row at a time and asks then whether another follows",
        (
            ("tile", "eight rows at once, those that are none masked", ("memory_latency",)),
            ("counted", "a loop over the bag's length, which the compiler unrolls", ("memory_latency",)),
        ),
        bags,
    ),
    Study(
        "sound_triton_spectra_product",
        "product of 8388608 complex values with conjugates, in planes, in Triton",
        "",
        (),
        spectra,
        domain="signals",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
