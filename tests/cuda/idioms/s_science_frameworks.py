"""Studies in Triton of measurements and simulations, run by what tests/cuda/variants/frameworks.py provides.

Usage: s_science_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- how noisy a detector's lines are ---


@triton.jit
def noise_level_kernel(counts, out, width: tl.constexpr):
    """The lower median of a line's distances from its mean."""
    lane = tl.arange(0, width)
    value = tl.load(counts + tl.program_id(0) * width + lane).to(tl.int32)
    off = tl.abs(value - tl.sum(value, 0) // width)
    order = tl.sort(off, descending=True)
    tl.store(out + tl.program_id(0), tl.max(tl.where(lane == width // 2, order, 0), 0))


@triton.jit
def noise_level_halving_kernel(counts, out, width: tl.constexpr, above: tl.constexpr):
    """The same by halving what it can be, between 0 and ``above``."""
    value = tl.load(counts + tl.program_id(0) * width + tl.arange(0, width)).to(tl.int32)
    off = tl.abs(value - tl.sum(value, 0) // width)
    low, high = 0, above
    while low < high:
        middle = (low + high) // 2
        larger = tl.sum((off > middle).to(tl.int32), 0)
        enough = larger <= width // 2
        low = tl.where(enough, low, middle + 1)
        high = tl.where(enough, middle, high)
    tl.store(out + tl.program_id(0), low)


def noise_level(lines: int = 24000, width: int = 512) -> tuple[dict[str, Run], Check]:
    counts = (noise(lines, width) * 2000.0 + 2048.0).to(torch.int16)
    out = torch.empty(lines, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: noise_level_kernel[(lines,)](counts, out, width, num_warps=8),
        "halving": lambda: noise_level_halving_kernel[(lines,)](counts, out, width, 4096, num_warps=1),
    }, out.float


# --- frames of a film freed of noise ---


@triton.jit
def frame_mean(film, out, shares, frame, tile, size, block: tl.constexpr):
    """A tile of the weighted mean of a frame and the three before and behind it."""
    pixel = tile * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for k in tl.static_range(7):
        total += tl.load(shares + k) * tl.load(film + (frame + k) * size + pixel).to(tl.float32)
    tl.store(out + frame * size + pixel, total.to(tl.float16))


@triton.jit
def film_kernel(film, out, shares, size, block: tl.constexpr):
    tiles = size // block
    frame_mean(film, out, shares, tl.program_id(0) // tiles, tl.program_id(0) % tiles, size, block)


@triton.jit
def film_tiles_kernel(film, out, shares, size, frames, block: tl.constexpr):
    frame_mean(film, out, shares, tl.program_id(0) % frames, tl.program_id(0) // frames, size, block)


@triton.jit
def film_slide_kernel(film, out, shares, size, frames, block: tl.constexpr):
    """The same, a tile's frames one after another and six of them kept."""
    at = film + tl.program_id(0) * block + tl.arange(0, block)
    to = out + tl.program_id(0) * block + tl.arange(0, block)
    a, b, c = tl.load(at), tl.load(at + size), tl.load(at + 2 * size)
    d, e, f = tl.load(at + 3 * size), tl.load(at + 4 * size), tl.load(at + 5 * size)
    for _ in range(frames):
        g = tl.load(at + 6 * size)
        total = tl.load(shares) * a.to(tl.float32) + tl.load(shares + 1) * b.to(tl.float32)
        total += tl.load(shares + 2) * c.to(tl.float32) + tl.load(shares + 3) * d.to(tl.float32)
        total += tl.load(shares + 4) * e.to(tl.float32) + tl.load(shares + 5) * f.to(tl.float32)
        total += tl.load(shares + 6) * g.to(tl.float32)
        tl.store(to, total.to(tl.float16))
        a, b, c, d, e, f = b, c, d, e, f, g
        at += size
        to += size


def film(frames: int = 18, size: int = 3840 * 2160) -> tuple[dict[str, Run], Check]:
    pictures = noise(frames + 6, size, dtype=torch.half)
    out = torch.empty(frames, size, device="cuda", dtype=torch.half)
    shares = torch.tensor([0.05, 0.1, 0.2, 0.3, 0.2, 0.1, 0.05], device="cuda")
    grid = (frames * (size // 512),)
    return {
        "flawed": lambda: film_kernel[grid](pictures, out, shares, size, 512, num_warps=2),
        "tiles": lambda: film_tiles_kernel[grid](pictures, out, shares, size, frames, 512, num_warps=2),
        "slide": lambda: film_slide_kernel[(size // 512,)](
            pictures, out, shares, size, frames, 512, num_warps=2
        ),
    }, lambda: out


# --- thermistors ---


@triton.jit
def celsius(count, gain, level, slope, cubic):
    """Degrees from a converter's count by Steinhart's and Hart's formula."""
    resistance = gain * count / (65536.0 - count)
    logarithm = tl.log(resistance)
    return 1.0 / (level + logarithm * (slope + cubic * logarithm * logarithm)) - 273.15


@triton.jit
def thermistors_kernel(counts, sheet, out, sensors, width: tl.constexpr, single: tl.constexpr):
    """A moment's counts of ``width`` sensors; the sheet has four numbers for each."""
    sensor = tl.program_id(1) * width + tl.arange(0, width)
    at = tl.program_id(0).to(tl.int64) * sensors + sensor
    gain, level = tl.load(sheet + 4 * sensor), tl.load(sheet + 4 * sensor + 1)
    slope, cubic = tl.load(sheet + 4 * sensor + 2), tl.load(sheet + 4 * sensor + 3)
    if single:
        gain, level = gain.to(tl.float32), level.to(tl.float32)
        slope, cubic = slope.to(tl.float32), cubic.to(tl.float32)
    found = celsius(tl.load(counts + at).to(tl.float32), gain, level, slope, cubic)
    tl.store(out + at, found.to(tl.float32))


def thermistors(moments: int = 6000, sensors: int = 2048) -> tuple[dict[str, Run], Check]:
    counts = (noise(moments, sensors) * 12000.0 + 16000.0).to(torch.int16)
    sheet = torch.tensor([10000.0, 1.129e-3, 2.341e-4, 8.77e-8], device="cuda", dtype=torch.float64)
    sheet = (sheet * (1.0 + 0.01 * noise(sensors)[:, None].double())).contiguous()
    floats = sheet.float()
    out = torch.empty(moments, sensors, device="cuda")

    def by(which: torch.Tensor, single: bool) -> Run:
        return lambda: thermistors_kernel[(moments, sensors // 1024)](
            counts, which, out, sensors, 1024, single, num_warps=8
        )

    return {
        "flawed": by(sheet, False),
        "single": by(sheet, True),
        "float_sheet": by(floats, False),
    }, lambda: out


# --- waves from antennas in a row ---


@triton.jit
def steered_kernel(signal, turns, out, samples, antennas, quick: tl.constexpr, block: tl.constexpr):
    """A signal's two parts for each antenna, whose wave is that much later."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    strength, turn = tl.load(signal + at), tl.load(turns + at)
    antenna = 0
    while antenna < antennas:
        angle = turn * antenna
        if quick:
            real, imaginary = libdevice.fast_cosf(angle), libdevice.fast_sinf(angle)
        else:
            real, imaginary = tl.cos(angle), tl.sin(angle)
        to = out + antenna * 2 * samples + at
        tl.store(to, (strength * real).to(tl.bfloat16))
        tl.store(to + samples, (strength * imaginary).to(tl.bfloat16))
        antenna += 1


@triton.jit
def steered_turning_kernel(signal, turns, out, samples, antennas, block: tl.constexpr):
    """The same, an antenna's wave from that of the one before."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    real, turn = tl.load(signal + at), tl.load(turns + at)
    imaginary = tl.zeros((block,), tl.float32)
    cosine, sine = tl.cos(turn), tl.sin(turn)
    to = out + at
    for _ in range(antennas):
        tl.store(to, real.to(tl.bfloat16))
        tl.store(to + samples, imaginary.to(tl.bfloat16))
        real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        to += 2 * samples


def steered(samples: int = 1_500_160, antennas: int = 20) -> tuple[dict[str, Run], Check]:
    signal = noise(samples)
    turns = signal.flip(0).contiguous() * 2.5
    out = torch.empty(antennas, 2, samples, device="cuda", dtype=torch.bfloat16)

    def by(quick: bool) -> Run:
        return lambda: steered_kernel[(samples // 256,)](
            signal, turns, out, samples, antennas, quick, 256, num_warps=2
        )

    return {
        "flawed": by(False),
        "turning": lambda: steered_turning_kernel[(samples // 256,)](
            signal, turns, out, samples, antennas, 256, num_warps=2
        ),
        "quick": by(True),
    }, lambda: out


# --- pulses set right again after their way between the stars ---


@triton.jit
def pulse_phase(delays, channels, channel, moment):
    """By how much a channel's sample is to be turned."""
    share = channel.to(tl.float32) / channels
    return tl.load(delays + moment) * share * share / (1.0 + share)


@triton.jit
def turned_pair(x, out, at, cosine, sine, apart):
    real, imaginary = tl.load(x + at).to(tl.float32), tl.load(x + at + apart).to(tl.float32)
    tl.store(out + at, (real * cosine - imaginary * sine).to(tl.float16))
    tl.store(out + at + apart, (real * sine + imaginary * cosine).to(tl.float16))


@triton.jit
def pulses_kernel(x, delays, out, moments, apart, channels: tl.constexpr):
    """All channels of a beam's moment."""
    moment, beam = tl.program_id(0), tl.program_id(1)
    channel = tl.arange(0, channels)
    phase = pulse_phase(delays, channels, channel, moment)
    turned_pair(x, out, (beam * moments + moment) * channels + channel, tl.cos(phase), tl.sin(phase), apart)


@triton.jit
def pulses_beams_kernel(x, delays, out, moments, apart, beams, channels: tl.constexpr):
    """All channels of all beams' moment."""
    channel = tl.arange(0, channels)
    phase = pulse_phase(delays, channels, channel, tl.program_id(0))
    cosine, sine = tl.cos(phase), tl.sin(phase)
    at = tl.program_id(0) * channels + channel
    for _ in tl.range(beams):
        turned_pair(x, out, at, cosine, sine, apart)
        at += moments * channels


def pulses(beams: int = 24, moments: int = 3000, channels: int = 512) -> tuple[dict[str, Run], Check]:
    x = noise(2, beams, moments, channels, dtype=torch.half)
    out = torch.empty_like(x)
    delays = noise(moments).abs() * 900.0
    apart = beams * moments * channels
    return {
        "flawed": lambda: pulses_kernel[(moments, beams)](
            x, delays, out, moments, apart, channels, num_warps=2
        ),
        "all_beams": lambda: pulses_beams_kernel[(moments,)](
            x, delays, out, moments, apart, beams, channels, num_warps=2
        ),
    }, lambda: out


# --- where anything moved before a camera ---


@triton.jit
def motion_kernel(film, heat, size, least, block: tl.constexpr):
    """How often each pixel is above what counts; a frame's piece a program."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    bright = tl.load(film + tl.program_id(1) * size + pixel).to(tl.int32)
    tl.atomic_add(heat + pixel, tl.maximum(bright - least, 0), sem="relaxed")


@triton.jit
def motion_frames_kernel(film, heat, size, least, frames: tl.constexpr, block: tl.constexpr):
    """The same of ``frames`` frames, added before."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    at = film + tl.program_id(1) * frames * size + pixel
    seen = tl.zeros((block,), tl.int32)
    for _ in tl.range(frames, loop_unroll_factor=8):
        seen += tl.maximum(tl.load(at).to(tl.int32) - least, 0)
        at += size
    tl.atomic_add(heat + pixel, seen, sem="relaxed")


def motion(frames: int = 1200, size: int = 120 * 640) -> tuple[dict[str, Run], Check]:
    film_ = (noise(frames, size).abs() * 255.9).to(torch.uint8)
    heat = torch.zeros(size, device="cuda", dtype=torch.int32)

    def read() -> torch.Tensor:
        found = heat.float()
        heat.zero_()
        return found

    return {
        "flawed": lambda: motion_kernel[(size // 512, frames)](film_, heat, size, 16, 512, num_warps=4),
        "forty_frames": lambda: motion_frames_kernel[(size // 512, frames // 40)](
            film_, heat, size, 16, 40, 512, num_warps=4
        ),
    }, read


# --- waiting at counters ---


@triton.jit
def wait_walk_kernel(served, arrived, out, people):
    """How long each waits at a counter: what the one before leaves to be done."""
    at = tl.program_id(0) * people
    end = at + people
    wait = 0
    while at < end:
        wait = tl.maximum(wait + tl.load(served + at) - tl.load(arrived + at), 0)
        tl.store(out + at, wait)
        at += 1


@triton.jit
def wait_after(added, least, later_added, later_least):
    """One stretch of a queue, then another: what is added, and the least there is then."""
    return added + later_added, tl.maximum(later_least, least + later_added)


@triton.jit
def wait_stretches_kernel(served, arrived, out, people, stretch: tl.constexpr):
    """The same, ``stretch`` people at once."""
    one = tl.arange(0, stretch)
    at = tl.program_id(0) * people + one
    wait = 0
    for _ in range(0, people, stretch):
        change = tl.load(served + at) - tl.load(arrived + at)
        added, least = tl.associative_scan((change, tl.maximum(change, 0)), 0, wait_after)
        waits = tl.maximum(least, added + wait)
        tl.store(out + at, waits)
        wait = tl.max(tl.where(one == stretch - 1, waits, 0), 0)
        at += stretch


def waits(counters: int = 4200, people: int = 2048) -> tuple[dict[str, Run], Check]:
    served = (noise(counters, people) * 500.0 + 520.0).int()
    arrived = served.flip(0).contiguous() + 9
    out = torch.empty_like(served)

    def by(stretch: int, warps: int) -> Run:
        return lambda: wait_stretches_kernel[(counters,)](
            served, arrived, out, people, stretch, num_warps=warps
        )

    return {
        "flawed": lambda: wait_walk_kernel[(counters,)](served, arrived, out, people, num_warps=1),
        "whole": by(people, 4),
        "stretches": by(256, 1),
    }, out.float


# --- echoes from a buffer that has no end ---


@triton.jit
def echoes_kernel(sound, delays, gains, out, length, echoes, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.load(sound + at).to(tl.float32)
    for k in range(echoes):
        earlier = (at - tl.load(delays + k) + length) % length
        total += tl.load(gains + k) * tl.load(sound + earlier).to(tl.float32)
    tl.store(out + at, total)


@triton.jit
def echoes_wrapped_kernel(sound, delays, gains, out, length, echoes, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.load(sound + at).to(tl.float32)
    for k in range(echoes):
        earlier = at - tl.load(delays + k)
        earlier += tl.where(earlier < 0, length, 0)
        total += tl.load(gains + k) * tl.load(sound + earlier).to(tl.float32)
    tl.store(out + at, total)


def echoes(length: int = 6_001_664, count: int = 56) -> tuple[dict[str, Run], Check]:
    sound = noise(length, dtype=torch.half)
    delays = (torch.arange(1, count + 1, device="cuda") * 331).to(torch.int32)
    gains = noise(count) * 0.3
    out = torch.empty(length, device="cuda")
    grid = (length // 1024,)
    return {
        "flawed": lambda: echoes_kernel[grid](sound, delays, gains, out, length, count, 1024, num_warps=8),
        "wrapped": lambda: echoes_wrapped_kernel[grid](
            sound, delays, gains, out, length, count, 1024, num_warps=8
        ),
    }, lambda: out


# --- particles put in a new order ---


@triton.jit
def reordered_kernel(order, states, out, width: tl.constexpr, padded: tl.constexpr, many: tl.constexpr):
    """``many`` particles' states from where they were."""
    particle = tl.program_id(0).to(tl.int64) * many + tl.arange(0, many)
    part = tl.arange(0, padded)
    there = part[None, :] < width
    was = tl.load(order + particle)
    state = tl.load(states + was[:, None] * width + part[None, :], mask=there)
    tl.store(out + particle[:, None] * width + part[None, :], state, mask=there)


def reordered(particles: int = 800_000, width: int = 48) -> tuple[dict[str, Run], Check]:
    states = noise(particles, width)
    order = noise(particles).argsort()
    out = torch.empty_like(states)

    def by(many: int, warps: int) -> Run:
        return lambda: reordered_kernel[(particles // many,)](
            order, states, out, width, 64, many, num_warps=warps
        )

    return {"flawed": by(1, 4), "sixteen": by(16, 4), "lone_warp": by(1, 1)}, lambda: out


# --- galaxies and what lies around them ---


@triton.jit
def around_kernel(
    table, near, own, out, length, width: tl.constexpr, many: tl.constexpr, stages: tl.constexpr
):
    """Means of the features of what is near, by how alike they are."""
    galaxy = tl.program_id(0)
    place = tl.arange(0, width)[None, :]
    mine = tl.load(own + galaxy * width + place)
    total = tl.zeros((many, width), tl.float32)
    weights = tl.zeros((many,), tl.float32)
    for start in tl.range(0, length, many, num_stages=stages):
        which = start + tl.arange(0, many)
        real = which < length
        other = tl.load(near + galaxy * length + which, mask=real, other=0)
        feature = tl.load(table + other[:, None] * width + place)
        off = feature - mine
        weight = tl.where(real, tl.exp(tl.sum(off * off, 1) * -0.05), 0.0)
        weights += weight
        total += weight[:, None] * feature
    tl.store(out + galaxy * width + tl.arange(0, width), tl.sum(total, 0) / tl.sum(weights, 0))


def around(
    galaxies: int = 260, length: int = 5000, known: int = 700_000, width: int = 32
) -> tuple[dict[str, Run], Check]:
    table, own = noise(known, width), noise(galaxies, width)
    generator = torch.Generator(device="cuda").manual_seed(5)
    near = torch.randint(0, known, (galaxies, length), device="cuda", dtype=torch.int64, generator=generator)
    out = torch.empty(galaxies, width, device="cuda")

    def by(many: int, stages: int, warps: int) -> Run:
        return lambda: around_kernel[(galaxies,)](
            table, near, own, out, length, width, many, stages, num_warps=warps
        )

    return {"flawed": by(16, 1, 4), "many_at_once": by(256, 1, 8), "pipeline": by(64, 4, 4)}, lambda: out


# --- when a dose is reached ---


@triton.jit
def dose_kernel(counts, out, pixels, frames, dose, block: tl.constexpr):
    """The first frame at which a pixel has had its dose."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    at = counts + pixel
    had = tl.zeros((block,), tl.int32)
    found = tl.zeros((block,), tl.int32) + frames
    frame = 0
    least = 0
    while (least < dose) & (frame < frames):
        had += tl.load(at).to(tl.int32)
        found = tl.where((had >= dose) & (found > frame), frame, found)
        least = tl.min(had, axis=0)
        at += pixels
        frame += 1
    tl.store(out + pixel, found)


@triton.jit
def dose_tile_kernel(counts, out, pixels, frames, dose, tall: tl.constexpr, block: tl.constexpr):
    """The same, ``tall`` frames at a time."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    had = tl.zeros((block,), tl.int32)
    found = tl.zeros((block,), tl.int32) + frames
    first = 0
    least = 0
    while (least < dose) & (first < frames):
        frame = first + tl.arange(0, tall)[:, None]
        count = tl.load(counts + frame * pixels + pixel[None, :]).to(tl.int32)
        run = tl.cumsum(count, axis=0) + had[None, :]
        found = tl.minimum(found, tl.min(tl.where(run >= dose, frame, frames), axis=0))
        had += tl.sum(count, axis=0)
        least = tl.min(had, axis=0)
        first += tall
    tl.store(out + pixel, found)


def dose(frames: int = 320, pixels: int = 98304) -> tuple[dict[str, Run], Check]:
    counts = (noise(frames, pixels).abs() * 99.0).to(torch.uint8)
    out = torch.empty(pixels, device="cuda", dtype=torch.int32)
    return {
        "flawed": lambda: dose_kernel[(pixels // 256,)](counts, out, pixels, frames, 12000, 256, num_warps=8),
        "sixteen_frames": lambda: dose_tile_kernel[(pixels // 256,)](
            counts, out, pixels, frames, 12000, 16, 256, num_warps=8
        ),
    }, out.float


# --- spectra by a filter ---


@triton.jit
def filtered_pairs_kernel(spectra, response, out, bins: tl.constexpr):
    """A spectrum's complex values by those of a filter, real and imaginary parts side by side."""
    at = tl.program_id(0).to(tl.int64) * 2 * bins + 2 * tl.arange(0, bins)
    part = 2 * tl.arange(0, bins)
    a, b = tl.load(spectra + at).to(tl.float32), tl.load(spectra + at + 1).to(tl.float32)
    c, d = tl.load(response + part).to(tl.float32), tl.load(response + part + 1).to(tl.float32)
    tl.store(out + at, (a * c - b * d).to(tl.float16))
    tl.store(out + at + 1, (a * d + b * c).to(tl.float16))


@triton.jit
def filtered_split_kernel(spectra, response, out, many: tl.constexpr, bins: tl.constexpr):
    """The same of ``many`` spectra, loaded whole and taken apart."""
    part = tl.arange(0, 2 * bins)
    row = tl.program_id(0).to(tl.int64) * many + tl.arange(0, many)
    at = row[:, None] * 2 * bins + part[None, :]
    a, b = tl.load(spectra + at).to(tl.float32).reshape(many, bins, 2).split()
    c, d = tl.load(response + part).to(tl.float32).reshape(1, bins, 2).split()
    found = tl.join(a * c - b * d, a * d + b * c).reshape(many, 2 * bins)
    tl.store(out + at, found.to(tl.float16))


def filtered(spectra: int = 240_000, bins: int = 64) -> tuple[dict[str, Run], Check]:
    x, response = noise(spectra, bins, 2, dtype=torch.half), noise(bins, 2, dtype=torch.half)
    out = torch.empty_like(x)
    return {
        "flawed": lambda: filtered_pairs_kernel[(spectra,)](x, response, out, bins, num_warps=4),
        "split": lambda: filtered_split_kernel[(spectra // 32,)](x, response, out, 32, bins, num_warps=4),
    }, lambda: out


# --- tracks along a genome made smooth ---


@triton.jit
def smooth_kernel(tracks, shape, out, pitch, taps, tall: tl.constexpr, wide: tl.constexpr):
    """Weighted sums of the ``taps`` places from each on, for many tracks."""
    place = tl.program_id(1) * tall + tl.arange(0, tall)[:, None]
    track = tl.program_id(0) * wide + tl.arange(0, wide)[None, :]
    at = tracks + place * pitch + track
    total = tl.zeros((tall, wide), tl.float32)
    for k in range(taps):
        total += tl.load(shape + k).to(tl.float32) * tl.load(at).to(tl.float32)
        at += pitch
    tl.store(out + place * pitch + track, total.to(tl.float16))


@triton.jit
def smooth_matrix_kernel(
    tracks, shape, out, pitch, taps: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """The same as products with matrices that have the weights along their diagonals."""
    row, column = tl.arange(0, tall), tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    at = tracks + (tl.program_id(1) * tall + inner)[:, None] * pitch + column[None, :]
    total = tl.zeros((tall, wide), tl.float32)
    for start in tl.static_range(0, tall + taps, deep):
        k = start + inner[None, :] - row[:, None]
        weight = tl.load(shape + k, mask=(k >= 0) & (k < taps), other=0.0)
        total = tl.dot(weight, tl.load(at), total)
        at += deep * pitch
    to = out + (tl.program_id(1) * tall + row)[:, None] * pitch + column[None, :]
    tl.store(to, total.to(tl.float16))


def smooth(places: int = 96_000, tracks: int = 384, taps: int = 48) -> tuple[dict[str, Run], Check]:
    x, shape = noise(places + taps, tracks, dtype=torch.half), (noise(taps) * 0.2).half()
    out = torch.empty(places, tracks, device="cuda", dtype=torch.half)
    return {
        "flawed": lambda: smooth_kernel[(tracks // 64, places // 32)](
            x, shape, out, tracks, taps, 32, 64, num_warps=4
        ),
        "matrix": lambda: smooth_matrix_kernel[(tracks // 64, places // 64)](
            x, shape, out, tracks, taps, 64, 64, 16, num_warps=4
        ),
    }, lambda: out


# --- the strongest lines of a spectrum ---


@triton.jit
def lines_kernel(spectra, base, out, bins, count, padded: tl.constexpr):
    """A spectrum's ``count`` largest heights over its base, largest first."""
    bin_ = tl.arange(0, padded)
    real = bin_ < bins
    found = 2147483647
    for k in range(count):
        height = tl.load(spectra + tl.program_id(0) * bins + bin_, mask=real, other=0)
        height -= tl.load(base + bin_, mask=real, other=0)
        found = tl.max(tl.where(real & (height < found), height, -2147483647), 0)
        tl.store(out + tl.program_id(0) * count + k, found)


@triton.jit
def lines_kept_kernel(spectra, base, out, bins, count, padded: tl.constexpr):
    """The same, loaded once."""
    bin_ = tl.arange(0, padded)
    real = bin_ < bins
    height = tl.load(spectra + tl.program_id(0) * bins + bin_, mask=real, other=0)
    height -= tl.load(base + bin_, mask=real, other=0)
    height = tl.where(real, height, -2147483647)
    for k in range(count):
        found = tl.max(height, 0)
        tl.store(out + tl.program_id(0) * count + k, found)
        height = tl.where(height < found, height, -2147483647)


def lines(spectra: int = 20000, bins: int = 1900, count: int = 12) -> tuple[dict[str, Run], Check]:
    x = noise(spectra, bins).argsort(1).int() * 8 + 5
    base = (torch.arange(bins, device="cuda") % 8).int()
    out = torch.empty(spectra, count, device="cuda", dtype=torch.int32)
    padded = triton.next_power_of_2(bins)
    return {
        "flawed": lambda: lines_kernel[(spectra,)](x, base, out, bins, count, padded, num_warps=4),
        "kept": lambda: lines_kept_kernel[(spectra,)](x, base, out, bins, count, padded, num_warps=4),
    }, out.float


# --- reservoirs through a year ---


@triton.jit
def reservoirs_kernel(rain, losses, out, hours, basins, many: tl.constexpr):
    """What is in each basin from hour to hour; ``losses`` are shares of it."""
    basin = tl.program_id(0) * many + tl.arange(0, many)
    full = tl.zeros((many,), tl.float32)
    hour = 0
    while hour < hours:
        at = hour * basins + basin
        full = full - full * tl.load(losses + at).to(tl.float32) + tl.load(rain + at).to(tl.float32)
        tl.store(out + at, full)
        hour += 1


@triton.jit
def basin_after(kept, added, later_kept, later_added):
    return kept * later_kept, added * later_kept + later_added


@triton.jit
def reservoirs_days_kernel(rain, losses, out, hours, basins, day: tl.constexpr, many: tl.constexpr):
    """The same, ``day`` hours at once."""
    hour, basin = tl.arange(0, day)[:, None], tl.program_id(0) * many + tl.arange(0, many)[None, :]
    full = tl.zeros((many,), tl.float32)
    for start in range(0, hours, day):
        at = (start + hour) * basins + basin
        kept = 1.0 - tl.load(losses + at).to(tl.float32)
        kept, added = tl.associative_scan((kept, tl.load(rain + at).to(tl.float32)), 0, basin_after)
        found = added + kept * full[None, :]
        tl.store(out + at, found)
        full = tl.sum(tl.where(hour == day - 1, found, 0.0), 0)


def reservoirs(hours: int = 1200, basins: int = 9216) -> tuple[dict[str, Run], Check]:
    rain = noise(hours, basins, dtype=torch.half).abs()
    losses = rain.flip(0).contiguous() * 0.2
    out = torch.empty(hours, basins, device="cuda")
    return {
        "flawed": lambda: reservoirs_kernel[(basins // 256,)](
            rain, losses, out, hours, basins, 256, num_warps=4
        ),
        "few_basins": lambda: reservoirs_kernel[(basins // 32,)](
            rain, losses, out, hours, basins, 32, num_warps=1
        ),
        "days": lambda: reservoirs_days_kernel[(basins // 64,)](
            rain, losses, out, hours, basins, 16, 64, num_warps=4
        ),
    }, lambda: out


# --- spectra against their noise ---


@triton.jit
def significance_at(spectra, good, out, row, at, channels, mean, scale):
    """How many deviations a channel is off; none where it is not good."""
    inside = at < channels
    value = tl.load(spectra + row * channels + at, mask=inside, other=0.0)
    use = tl.load(good + at, mask=inside, other=0)
    tl.store(out + row * channels + at, tl.where(use != 0, (value - mean) * scale, 0.0), mask=inside)


@triton.jit
def significance_kernel(spectra, good, levels, out, channels, block: tl.constexpr):
    row = tl.program_id(0)
    mean, scale = tl.load(levels + 2 * row), tl.load(levels + 2 * row + 1)
    at = tl.arange(0, block)
    for _ in tl.range(0, tl.cdiv(channels, block)):
        significance_at(spectra, good, out, row, at, channels, mean, scale)
        at += block


@triton.jit
def significance_blocks_kernel(spectra, good, levels, out, channels, block: tl.constexpr):
    row = tl.program_id(0)
    mean, scale = tl.load(levels + 2 * row), tl.load(levels + 2 * row + 1)
    at = tl.program_id(1) * block + tl.arange(0, block)
    significance_at(spectra, good, out, row, at, channels, mean, scale)


def significance(rows: int = 72, channels: int = 200_000) -> tuple[dict[str, Run], Check]:
    spectra, good = noise(rows, channels), (noise(channels) > -0.8).to(torch.int8)
    levels = noise(rows, 2) * 0.3 + 1.0
    out = torch.empty_like(spectra)
    return {
        "flawed": lambda: significance_kernel[(rows,)](
            spectra, good, levels, out, channels, 1024, num_warps=4
        ),
        "blocks": lambda: significance_blocks_kernel[(rows, triton.cdiv(channels, 2048))](
            spectra, good, levels, out, channels, 2048, num_warps=4
        ),
    }, lambda: out


# --- stations' records by their own mean and spread ---


@triton.jit
def stations_kernel(records, out, moments: tl.constexpr, moment_apart, station_apart):
    """A station's record less its mean, by its spread."""
    at = tl.arange(0, moments) * moment_apart + tl.program_id(0) * station_apart
    value = tl.load(records + at)
    value -= tl.sum(value, 0) / moments
    tl.store(out + at, value * tl.rsqrt(tl.sum(value * value, 0) / moments + 1e-6))


@triton.jit
def stations_beside_kernel(records, out, moments, stations, tall: tl.constexpr, wide: tl.constexpr):
    """The same of ``wide`` stations, read twice."""
    station = tl.program_id(0) * wide + tl.arange(0, wide)[None, :]
    sums, squares = tl.zeros((tall, wide), tl.float32), tl.zeros((tall, wide), tl.float32)
    for first in tl.range(0, moments, tall):
        value = tl.load(records + (first + tl.arange(0, tall)[:, None]) * stations + station)
        sums += value
        squares += value * value
    mean = tl.sum(sums, 0) / moments
    scale = tl.rsqrt(tl.sum(squares, 0) / moments - mean * mean + 1e-6)
    for first in tl.range(0, moments, tall):
        at = (first + tl.arange(0, tall)[:, None]) * stations + station
        tl.store(out + at, (tl.load(records + at) - mean[None, :]) * scale[None, :])


def stations(moments: int = 2048, count: int = 10016) -> tuple[dict[str, Run], Check]:
    records = noise(moments, count)
    turned = records.t().contiguous()
    out, turned_out = torch.empty_like(records), torch.empty_like(turned)
    last = {"out": out}

    def flawed() -> None:
        last["out"] = out
        stations_kernel[(count,)](records, out, moments, count, 1, num_warps=4)

    def by_station() -> None:
        last["out"] = turned_out.t()
        stations_kernel[(count,)](turned, turned_out, moments, 1, moments, num_warps=4)

    def beside() -> None:
        last["out"] = out
        stations_beside_kernel[(count // 32,)](records, out, moments, count, 64, 32, num_warps=8)

    return {"flawed": flawed, "by_station": by_station, "beside": beside}, lambda: last["out"]


# --- links between pages, those of the most linked last ---


@triton.jit
def linked(sources, ranks, first, last, block: tl.constexpr):
    """Ranks of the pages that link to one."""
    total = tl.zeros((block,), tl.float32)
    at = first + tl.arange(0, block)
    while first < last:
        source = tl.load(sources + at, mask=at < last, other=0)
        total += tl.load(ranks + source, mask=at < last, other=0.0)
        at += block
        first += block
    return tl.sum(total, 0)


@triton.jit
def links_kernel(sources, starts, ranks, out, block: tl.constexpr):
    page = tl.program_id(0)
    first, last = tl.load(starts + page), tl.load(starts + page + 1)
    tl.store(out + page, linked(sources, ranks, first, last, block))


@triton.jit
def links_order_kernel(sources, starts, order, ranks, out, block: tl.constexpr):
    """The same, pages as a list has them."""
    page = tl.load(order + tl.program_id(0))
    first, last = tl.load(starts + page), tl.load(starts + page + 1)
    tl.store(out + page, linked(sources, ranks, first, last, block))


@triton.jit
def links_parts_kernel(sources, parts, ranks, out, block: tl.constexpr):
    """The same, a part of a page's links a program: page, first and last."""
    part = parts + 3 * tl.program_id(0)
    found = linked(sources, ranks, tl.load(part + 1), tl.load(part + 2), block)
    tl.atomic_add(out + tl.load(part), found, sem="relaxed")


def links(pages: int = 30000, most: float = 24000.0, known: int = 4_000_000) -> tuple[dict[str, Run], Check]:
    behind = torch.arange(pages - 1, -1, -1).double()
    counts = (300 + torch.arange(pages) % 97 + most * torch.exp(-behind / 150.0)).long()
    starts = torch.zeros(pages + 1, dtype=torch.long)
    starts[1:] = counts.cumsum(0)
    generator = torch.Generator(device="cuda").manual_seed(7)
    sources = torch.randint(
        0, known, (int(starts[-1]),), device="cuda", dtype=torch.int32, generator=generator
    )
    pieces = [
        (page, first, min(first + 2048, end))
        for page, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
        for first in range(begin, end, 2048)
    ]
    parts = torch.tensor(pieces, dtype=torch.int32, device="cuda")
    order = torch.argsort(counts, descending=True).int().cuda()
    starts = starts.int().cuda()
    ranks, out = noise(known).abs(), torch.zeros(pages, device="cuda")
    return {
        "flawed": lambda: links_kernel[(pages,)](sources, starts, ranks, out, 256, num_warps=2),
        "most_first": lambda: links_order_kernel[(pages,)](
            sources, starts, order, ranks, out, 256, num_warps=2
        ),
        "parts": lambda: links_parts_kernel[(len(pieces),)](sources, parts, ranks, out, 256, num_warps=2),
    }, lambda: (out.clone(), out.zero_())[0]


STUDIES = (
    Study(
        "triton_noise_of_lines_by_sorting",
        "medians of 512 counts' distances from their mean, 24000 lines of a detector, in Triton",
        "eight warps sort a line for the value in its middle",
        (("halving", "a warp halves what the median can be twelve times", ("barriers",)),),
        noise_level,
        tolerance=0.0,
        domain="sensors",
    ),
    Study(
        "triton_film_cleaned_frame_after_frame",
        "weighted means of seven frames of 3840 x 2160 halves, 18 frames, in Triton",
        "a frame's tiles follow one another: seven frames of 16 MB do not stay in L2",
        (
            ("tiles", "all frames of a tile follow one another", ("cache_locality",)),
            ("slide", "a program takes all frames of its tile", ("cache_locality", "redundant_loads")),
        ),
        film,
        domain="video",
    ),
    Study(
        "triton_thermistors_by_a_sheet_of_doubles",
        "degrees from counts of 2048 thermistors at 6000 moments, in Triton",
        "a sensor's numbers are doubles, and so is everything worked out with them",
        (
            ("single", "numbers become floats once loaded", ("double_precision",)),
            ("float_sheet", "a sheet of floats", ("double_precision",)),
        ),
        thermistors,
        domain="sensors",
    ),
    Study(
        "triton_antennas_steered_by_sines",
        "two parts of a signal of 1500160 samples for each of 20 antennas, bfloat16, in Triton",
        "a precise sine and cosine of a sample for each antenna",
        (
            ("turning", "an antenna's wave is that of the one before, turned", ("expensive_math",)),
            ("quick", "fast sines and cosines", ("expensive_math",)),
        ),
        steered,
        tolerance=1e-2,
        domain="radar",
    ),
    Study(
        "triton_pulses_turned_in_each_beam",
        "24 beams of 3000 moments of 512 complex channels turned by the delays, half, in Triton",
        "each beam works out the same sines and cosines",
        (("all_beams", "a program for all beams of a moment: its angles once", ("expensive_math",)),),
        pulses,
        tolerance=1e-2,
        domain="astronomy",
    ),
    Study(
        "triton_motion_added_frame_by_frame",
        "how much 76800 pixels are above a level in 1200 frames of bytes, in Triton",
        "each frame's pixels are added to the sums by atomics",
        (("forty_frames", "40 frames added before", ("global_atomics",)),),
        motion,
        tolerance=0.0,
        domain="video",
    ),
    Study(
        "triton_queues_person_after_person",
        "waits of 2048 people at each of 4200 counters, in Triton",
        "a program takes its people one by one: all lanes do the same",
        (
            ("whole", "all people at once by a scan", ("idle_threads",)),
            ("stretches", "256 people at once by a scan", ("idle_threads",)),
        ),
        waits,
        tolerance=0.0,
        domain="simulation",
    ),
    Study(
        "triton_echoes_around_a_buffer",
        "56 echoes of 6001664 half samples, the first after the last, in Triton",
        "each echo's place is a remainder by a length known at run time only",
        (("wrapped", "the length is added to what is below zero", ("integer_arithmetic",)),),
        echoes,
        domain="sound",
    ),
    Study(
        "triton_particles_moved_one_a_program",
        "800000 particles' 48 floats put in another order, in Triton",
        "four warps for a particle's 48 floats, most of which do what others do",
        (
            ("sixteen", "16 particles a program", ("low_occupancy", "redundant_loads")),
            ("lone_warp", "one warp a program", ("low_occupancy", "redundant_loads")),
        ),
        reordered,
        tolerance=0.0,
        domain="physics",
    ),
    Study(
        "triton_surroundings_sixteen_at_a_time",
        "means of 32 floats of 5000 neighbours of each of 260 galaxies, in Triton",
        "sixteen neighbours' rows are loaded once their numbers are there and the last sixteen are done",
        (
            ("many_at_once", "256 neighbours at a time", ("memory_latency",)),
            ("pipeline", "64 neighbours in a pipeline of four stages", ("memory_latency",)),
        ),
        around,
        domain="astronomy",
    ),
    Study(
        "triton_dose_reached_frame_by_frame",
        "at which of 320 frames each of 98304 pixels has had its dose, bytes, in Triton",
        "after each frame all lanes find the least of all doses, and only then load the next frame",
        (("sixteen_frames", "sixteen frames at a time", ("memory_latency", "barriers")),),
        dose,
        tolerance=0.0,
        domain="medicine",
    ),
    Study(
        "triton_spectra_filtered_in_pairs",
        "240000 spectra of 64 complex halves by a filter's, in Triton",
        "real and imaginary parts are loaded and stored apart, four warps for 64 pairs",
        (("split", "32 spectra a program, taken apart in registers", ("narrow_access", "idle_threads")),),
        filtered,
        tolerance=2e-3,
        domain="signals",
    ),
    Study(
        "triton_genome_tracks_smoothed_by_48_loads",
        "sums of 48 weighted places along 96000 of 384 tracks, half, in Triton",
        "each of a sum's 48 values is loaded for each place anew",
        (("matrix", "products with matrices of the weights", ("redundant_loads", "tensor_cores_idle")),),
        smooth,
        tolerance=2e-3,
        domain="genomics",
    ),
    Study(
        "triton_strongest_lines_read_each_round",
        "twelve largest heights over the base of 20000 spectra of 1900 bins, in Triton",
        "spectrum and base are loaded again for each of the twelve",
        (("kept", "heights stay in registers, what was found is struck out", ("redundant_loads",)),),
        lines,
        tolerance=0.0,
        domain="chemistry",
    ),
    Study(
        "triton_reservoirs_in_36_programs",
        "what is in 9216 reservoirs at 1200 hours, from halves, in Triton",
        "36 programs of 256 basins go through all hours, one at a time",
        (
            ("few_basins", "32 basins a program of one warp", ("small_grid",)),
            ("days", "64 basins a program, 16 hours at once by a scan", ("small_grid", "memory_latency")),
        ),
        reservoirs,
        domain="hydrology",
    ),
    Study(
        "triton_significance_spectrum_a_program",
        "72 spectra of 200000 channels less their mean, by their noise, in Triton",
        "a program walks a spectrum's channels: 72 programs with 1024 channels in flight each",
        (("blocks", "2048 channels of a spectrum a program", ("small_grid",)),),
        significance,
        domain="astronomy",
    ),
    Study(
        "triton_stations_records_moment_by_moment",
        "records of 10016 stations at 2048 moments by their mean and spread, in Triton",
        "a program's values lie 40064 bytes apart",
        (
            ("by_station", "a station's record side by side", ("uncoalesced_access",)),
            ("beside", "32 stations a program, 64 moments at a time, read twice", ("uncoalesced_access",)),
        ),
        stations,
        domain="weather",
    ),
    Study(
        "triton_pages_with_most_links_last",
        "ranks of 30000 pages from lists of 300 to 24000 links, in Triton",
        "a program a page, and those with the longest lists come last",
        (
            ("most_first", "pages of the longest lists first", ("workload_imbalance",)),
            ("parts", "2048 links a program, added by atomics", ("workload_imbalance",)),
        ),
        links,
        domain="graphs",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
