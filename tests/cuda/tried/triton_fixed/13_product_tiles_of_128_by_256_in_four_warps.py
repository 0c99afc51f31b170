"""product_tiles_of_128_by_256_in_four_warps, side warps: blocks that fill whole rounds, or shares of all steps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

product = kernels("blind18/b_frameworks").product_kernel
rows, size = small(3072, 256), small(1024, 128)
left, right = noise(rows, size, dtype=torch.half), noise(size, rows, dtype=torch.half) * 0.1
out = empty(rows, rows, dtype=torch.half)


@triton.jit
def persistent(left, right, out, size, columns, tiles, across, tall: tl.constexpr, wide: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        row = tile // across * tall + tl.arange(0, tall)
        column = tile % across * wide + tl.arange(0, wide)
        inner = tl.arange(0, 32)
        total = tl.zeros((tall, wide), tl.float32)
        for k in range(0, size, 32):
            a = tl.load(left + row[:, None] * size + k + inner[None, :])
            b = tl.load(right + (k + inner)[:, None] * columns + column[None, :])
            total = tl.dot(a, b, total)
        tl.store(out + row[:, None] * columns + column[None, :], total.to(tl.float16))


def tiles(tall: int, wide: int, warps: int) -> Form:
    return lambda: product[(rows // tall, rows // wide)](
        left, right, out, size, rows, tall, wide, 32, num_warps=warps
    )


judge({
    "as_it_is": tiles(128, 256, 8),
    "tiles_128x128": tiles(128, 128, 8),
    "persistent_264": lambda: persistent[(264,)](
        left, right, out, size, rows, (rows // 128) ** 2, rows // 128, 128, 128, num_warps=8
    ),
}, [out])  # fmt: skip
