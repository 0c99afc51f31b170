"""channel_moments_of_32_rows, side taller: lanes add up their own values, which are put together behind the loop."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import triton
import triton.language as tl
from tried import empty, judge, kernels, noise, small

moments = kernels("blind14/b_frameworks").channel_moments_kernel
rows, channels = small(1 << 19, 1024), 128
x, out = (noise(rows, channels) + 0.5).half(), empty(2, channels)


@triton.jit
def behind(x, out, steps, channels: tl.constexpr, tall: tl.constexpr):
    channel = tl.arange(0, channels)
    total, squares = tl.zeros((tall, channels), tl.float32), tl.zeros((tall, channels), tl.float32)
    first = tl.program_id(0) * steps * tall
    for step in range(steps):
        row = first + step * tall + tl.arange(0, tall)
        value = tl.load(x + row[:, None] * channels + channel[None, :]).to(tl.float32)
        total += value
        squares += value * value
    tl.atomic_add(out + channel, tl.sum(total, 0), sem="relaxed")
    tl.atomic_add(out + channels + channel, tl.sum(squares, 0), sem="relaxed")


judge({
    "as_it_is": lambda: moments[(rows // 512,)](x, out, 8, channels, 64, num_warps=4),
    "behind_the_loop": lambda: behind[(rows // 512,)](x, out, 8, channels, 64, num_warps=4),
    "behind_the_loop_of_32": lambda: behind[(rows // 512,)](x, out, 16, channels, 32, num_warps=4),
}, [out], prepare=out.zero_)  # fmt: skip
