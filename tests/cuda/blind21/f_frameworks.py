"""Studies in Triton of rivers, prices and pictures, run by what tests/cuda/variants/frameworks.py provides.

Usage: f_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- water that runs over land ---


@triton.jit
def flow_from(depths, grounds, depth, level, row, column, height, width, way: tl.constexpr):
    """What comes from a neighbour by Manning's formula: a depth's power of five thirds and the fall's root."""
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    at = row * width + column
    other = tl.load(depths + at, mask=inside, other=0.0)
    fall = other + tl.load(grounds + at, mask=inside, other=0.0) - level
    upper = tl.where(fall > 0.0, other, depth)
    if way == "power":
        conveyance = libdevice.pow(upper, 1.6666666)
    elif way == "base_two":
        conveyance = tl.exp2(1.6666666 * tl.log2(upper))
    else:
        root = libdevice.cbrt(upper)
        conveyance = upper * root * root
    flow = conveyance * tl.sqrt(tl.abs(fall))
    return tl.where(inside, tl.where(fall > 0.0, flow, -flow), 0.0)


@triton.jit
def runoff_kernel(
    depths, grounds, out, height, width, step, way: tl.constexpr, rows: tl.constexpr, block: tl.constexpr
):
    """A step of water's depths by the flow over each of a cell's four sides."""
    row = tl.program_id(1) * rows + tl.arange(0, rows)[:, None]
    column = tl.program_id(0) * block + tl.arange(0, block)[None, :]
    at = row * width + column
    depth = tl.load(depths + at)
    level = depth + tl.load(grounds + at)
    gained = flow_from(depths, grounds, depth, level, row - 1, column, height, width, way)
    gained += flow_from(depths, grounds, depth, level, row + 1, column, height, width, way)
    gained += flow_from(depths, grounds, depth, level, row, column - 1, height, width, way)
    gained += flow_from(depths, grounds, depth, level, row, column + 1, height, width, way)
    tl.store(out + at, depth + step * gained)


def runoff(height: int = 2048, width: int = 4096) -> tuple[dict[str, Run], Check]:
    both = noise(2, height, width)
    depths, grounds = (both[0] * 0.5 + 0.6).contiguous(), (both[1] * 2.0).contiguous()
    out = torch.empty_like(depths)
    grid = (width // 128, height // 4)

    def side(way: str) -> Run:
        return lambda: runoff_kernel[grid](
            depths, grounds, out, height, width, 0.025, way, 4, 128, num_warps=4
        )

    return {
        "flawed": side("power"),
        "base_two": side("base_two"),
        "cube_roots": side("cube_roots"),
    }, lambda: out


# --- when prices first reach a barrier ---


@triton.jit
def passages_kernel(paths, out, count, steps, barrier, block: tl.constexpr):
    """The first step of each path that is not above the barrier, step by step until all have one."""
    path = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.full((block,), 0, tl.int32) + steps
    step = 0
    left = 1
    while (step < steps) & (left > 0):
        price = tl.load(paths + step * count + path)
        first = tl.where((price <= barrier) & (first == steps), step, first)
        left = tl.max((first == steps).to(tl.int32), 0)
        step += 1
    tl.store(out + path, first)


@triton.jit
def passages_tile_kernel(paths, out, count, steps, barrier, rows: tl.constexpr, block: tl.constexpr):
    """The same, ``rows`` steps at a time."""
    path = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.full((block,), 0, tl.int32) + steps
    step = 0
    left = 1
    while (step < steps) & (left > 0):
        own = step + tl.arange(0, rows)[:, None]
        price = tl.load(paths + own * count + path[None, :])
        first = tl.minimum(first, tl.min(tl.where(price <= barrier, own, steps), 0))
        left = tl.max((first == steps).to(tl.int32), 0)
        step += rows
    tl.store(out + path, first)


@triton.jit
def passages_parts_kernel(
    paths, out, count, steps: tl.constexpr, barrier, parts: tl.constexpr, block: tl.constexpr
):
    """The same of few paths a program, whose lanes share out the steps and go to the end."""
    path = tl.program_id(0) * block + tl.arange(0, block)
    first = tl.full((parts, block), steps, tl.int32)
    for step in tl.range(0, steps, parts, loop_unroll_factor=4):
        own = step + tl.arange(0, parts)[:, None]
        price = tl.load(paths + own * count + path[None, :])
        first = tl.minimum(first, tl.where(price <= barrier, own, steps))
    tl.store(out + path, tl.min(first, 0))


def passages(steps: int = 256, count: int = 65536) -> tuple[dict[str, Run], Check]:
    paths = 1.0 + 0.02 * torch.cumsum(noise(steps, count), 0)
    out = torch.empty(count, device="cuda", dtype=torch.int32)
    barrier = 0.85
    return {
        "flawed": lambda: passages_kernel[(count // 128,)](
            paths, out, count, steps, barrier, 128, num_warps=4
        ),
        "tile": lambda: passages_tile_kernel[(count // 128,)](
            paths, out, count, steps, barrier, 16, 128, num_warps=4
        ),
        "parts": lambda: passages_parts_kernel[(count // 32,)](
            paths, out, count, steps, barrier, 4, 32, num_warps=4
        ),
    }, out.float


# --- pictures of satellites ---


@triton.jit
def stretched(value, low, gain):
    """A byte of a band's value between its darkest and its brightest."""
    return tl.minimum(tl.maximum((value.to(tl.float32) - low) * gain, 0.0), 255.0).to(tl.int32)


@triton.jit
def bands_kernel(x, lows, gains, out, pixels, block: tl.constexpr):
    """Bands of sixteen bits as bytes."""
    band = tl.program_id(1)
    low, gain = tl.load(lows + band), tl.load(gains + band)
    at = band * pixels + tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, stretched(tl.load(x + at), low, gain).to(tl.uint8))


@triton.jit
def bands_words_kernel(x, lows, gains, out, pixels, block: tl.constexpr):
    """The same, four values as one word of 64 bits; none is negative."""
    band = tl.program_id(1)
    low, gain = tl.load(lows + band), tl.load(gains + band)
    at = band * (pixels // 4) + tl.program_id(0) * block + tl.arange(0, block)
    words = tl.load(x + at)
    packed = stretched((words & 0xFFFF).to(tl.int32), low, gain)
    packed |= stretched(((words >> 16) & 0xFFFF).to(tl.int32), low, gain) << 8
    packed |= stretched(((words >> 32) & 0xFFFF).to(tl.int32), low, gain) << 16
    packed |= stretched(((words >> 48) & 0xFFFF).to(tl.int32), low, gain) << 24
    tl.store(out + at, packed)


def bands(count: int = 4, pixels: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    x = (noise(count, pixels) * 5000.0 + 5000.0).to(torch.int16)
    lows = torch.tensor([300.0, 500.0, 700.0, 900.0], device="cuda")
    gains = torch.tensor([0.03, 0.04, 0.05, 0.06], device="cuda")
    out = torch.empty(count, pixels, device="cuda", dtype=torch.uint8)
    return {
        "flawed": lambda: bands_kernel[(pixels // 128, count)](x, lows, gains, out, pixels, 128, num_warps=4),
        "wide": lambda: bands_kernel[(pixels // 2048, count)](x, lows, gains, out, pixels, 2048, num_warps=4),
        "words": lambda: bands_words_kernel[(pixels // 2048, count)](
            x.view(torch.int64), lows, gains, out.view(torch.int32), pixels, 512, num_warps=4
        ),
    }, out.float


# --- without a flaw ---


@triton.jit
def greenness_kernel(red, infrared, out, block: tl.constexpr):
    """How green each pixel is: the difference of two bands as a share of their sum."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    near, own = tl.load(infrared + at).to(tl.float32), tl.load(red + at).to(tl.float32)
    tl.store(out + at, ((near - own) / (near + own + 1.0)).to(tl.float16))


def greenness(pixels: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    both = (noise(2, pixels) * 5000.0 + 5000.0).to(torch.int16)
    out = torch.empty(pixels, device="cuda", dtype=torch.half)
    return {
        "sound": lambda: greenness_kernel[(pixels // 2048,)](both[0], both[1], out, 2048, num_warps=8),
    }, lambda: out


STUDIES = (
    Study(
        "triton_runoff_power_of_each_side",
        "a step of the water's depth in 8388608 cells by Manning's formula, in Triton",
        "the power of five thirds by the precise function, for each of a cell's four sides",
        (
            ("base_two", "a logarithm and an exponential of base two", ("expensive_math",)),
            ("cube_roots", "the depth times its cube root twice", ("expensive_math",)),
        ),
        runoff,
        domain="hydrology",
    ),
    Study(
        "triton_first_passages_step_by_step",
        "when each of 65536 paths of 256 prices first reaches a barrier, in Triton",
        "after each step all lanes ask whether a path is left, and only then load the next price",
        (
            ("tile", "sixteen steps at a time", ("memory_latency", "barriers")),
            ("parts", "four lanes a path to its end, unrolled", ("memory_latency", "barriers")),
        ),
        passages,
        tolerance=0.0,
        domain="finance",
    ),
    Study(
        "triton_bands_stretched_a_value_a_lane",
        "four bands of 16777216 pixels of sixteen bits stretched to bytes, in Triton",
        "128 values a program: a lane loads two bytes and stores one",
        (
            ("wide", "2048 values a program", ("narrow_access",)),
            ("words", "four values as one word of 64 bits", ("narrow_access",)),
        ),
        bands,
        tolerance=0.0,
        domain="images",
    ),
    Study(
        "sound_triton_greenness_of_pixels",
        "the difference of two bands of 33554432 pixels as a share of their sum, in Triton",
        "",
        (),
        greenness,
        tolerance=2e-3,
        domain="images",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
