"""matmul_one_stage, side flawed: a program computes the tiles of 2 along x and 4 along y."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

matmul = kernels("variants/frameworks").matmul_kernel
n = small(4096, 256)
a, b, c = noise(n, n, dtype=torch.half), noise(n, n, dtype=torch.half), empty(n, n, dtype=torch.half)


@triton.jit
def oblong(a, b, c, n, tall: tl.constexpr, wide: tl.constexpr, depth: tl.constexpr):
    rows = tl.program_id(1) * tall + tl.arange(0, tall)
    columns = tl.program_id(0) * wide + tl.arange(0, wide)
    inner = tl.arange(0, depth)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, n, depth):
        left = tl.load(a + rows[:, None] * n + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))


def by(tall: int, wide: int, warps: int, stages: int = 1) -> Form:
    return lambda: oblong[(n // wide, n // tall)](
        a, b, c, n, tall, wide, 32, num_warps=warps, num_stages=stages
    )


judge({
    "as_it_is": lambda: matmul[(n // 64, n // 64)](a, b, c, n, 64, 32, num_warps=4, num_stages=1),
    "tiles_256x128_8_warps": by(256, 128, 8),
    "tiles_128x128": by(128, 128, 4),
    "beyond_three_stages": by(256, 128, 8, stages=3),
}, [c])  # fmt: skip
