"""product_six_stages_of_128, side two_stages: a program computes the tiles of 2 along x and 2 along y."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

product = kernels("blind19/a_serving_frameworks").deep_product_kernel
rows, depth, columns = small(1024, 128), small(4096, 256), small(4096, 128)
left, right = noise(rows, depth, dtype=torch.half), noise(depth, columns, dtype=torch.half) * 0.1
out = empty(rows, columns, dtype=torch.half)


def tiles(tall: int, wide: int, deep: int, stages: int, warps: int) -> Form:
    return lambda: product[(rows // tall, columns // wide)](
        left, right, out, depth, columns, tall, wide, deep, num_stages=stages, num_warps=warps
    )


judge({
    "as_it_is": tiles(64, 64, 128, 2, 4),
    "tiles_128x128": tiles(128, 128, 128, 2, 4),
    "tiles_128x128_8_warps": tiles(128, 128, 128, 2, 8),
    "beyond_three_stages": tiles(128, 128, 128, 3, 8),
    "beyond_four_stages_of_64": tiles(128, 128, 64, 4, 8),
}, [out])  # fmt: skip
