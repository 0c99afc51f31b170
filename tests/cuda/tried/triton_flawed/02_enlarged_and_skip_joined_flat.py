"""enlarged_and_skip_joined_flat, side flawed: no lane computes what a mask keeps it from loading."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

joined = kernels("blind12/b_frameworks").joined_flat_kernel
pictures, each, side = small(16, 1), small(128, 2), small(96, 32)
little = noise(pictures, each, side // 2, side // 2, dtype=torch.half)
skip = noise(pictures, each, side, side, dtype=torch.half)
out = empty(pictures, 2 * each, side, side, dtype=torch.half)
count = out.numel()


@triton.jit
def one_source(small, skip, out, count, channels, small_channels, high, wide, block: tl.constexpr):
    """A plane holds whole programs (9 of 1024 values): each has one channel, and so one source."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    plane = tl.program_id(0) * block // (wide * high)
    channel, picture = plane % channels, plane // channels
    column, row = at % wide, at // wide % high
    inside = at < count
    if channel < small_channels:
        base = (picture * small_channels + channel) * (high // 2)
        value = tl.load(small + (base + row // 2) * (wide // 2) + column // 2, mask=inside)
    else:
        base = (picture * (channels - small_channels) + channel - small_channels) * high
        value = tl.load(skip + (base + row) * wide + column, mask=inside)
    tl.store(out + at, value, mask=inside)


@triton.jit
def one_load(small, skip, out, count, channels, small_channels, high, wide, block: tl.constexpr):
    """Each lane selects its place, and loads once."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    column, row = at % wide, at // wide % high
    channel, picture = at // (wide * high) % channels, at // (wide * high * channels)
    below = channel < small_channels
    from_small = ((picture * small_channels + channel) * (high // 2) + row // 2) * (wide // 2) + column // 2
    plane = picture * (channels - small_channels) + channel - small_channels
    place = tl.where(below, small + from_small, skip + ((plane * high + row) * wide + column))
    tl.store(out + at, tl.load(place, mask=at < count), mask=at < count)


def by(kernel: triton.JITFunction) -> Form:
    return lambda: kernel[(triton.cdiv(count, 1024),)](
        little, skip, out, count, 2 * each, each, side, side, 1024, num_warps=4
    )


judge({"as_it_is": by(joined), "one_source": by(one_source), "one_load": by(one_load)}, [out])
