"""ring_filter_remainder_each_tap, side flawed: larger blocks, and before the loop what stays the same."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import triton
import triton.language as tl
from tried import empty, judge, kernels, noise, small

ring = kernels("blind19/a_media_frameworks").ring_kernel
blocks, count = small(8191, 7), 64
length = blocks * 512
signal, taps, out = noise(length), noise(count), empty(length)


@triton.jit
def larger(signal, taps, out, length, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < length
    total = tl.zeros((block,), tl.float32)
    for tap in range(0, count):
        total += tl.load(taps + tap) * tl.load(signal + (at + length - tap) % length, mask=inside)
    tl.store(out + at, total, mask=inside)


@triton.jit
def gathered(signal, taps, out, length, count: tl.constexpr, block: tl.constexpr):
    """A program's values and those before them are loaded once, and picked out of for each tap."""
    own, first = tl.arange(0, block), tl.program_id(0) * (block // 2)
    window = tl.load(signal + (first + length - block // 2 + own) % length)
    total = tl.zeros((block,), tl.float32)
    for tap in range(0, count):
        total += tl.load(taps + tap) * tl.gather(window, tl.maximum(own - tap, 0), 0)
    tl.store(out + first - block // 2 + own, total, mask=own >= block // 2)


judge({
    "as_it_is": lambda: ring[(blocks,)](signal, taps, out, length, count, 512, num_warps=4),
    "larger_block": lambda: larger[(triton.cdiv(length, 2048),)](
        signal, taps, out, length, count, 2048, num_warps=4
    ),
    "window_once": lambda: gathered[(blocks,)](signal, taps, out, length, count, 1024, num_warps=4),
}, [out])  # fmt: skip
