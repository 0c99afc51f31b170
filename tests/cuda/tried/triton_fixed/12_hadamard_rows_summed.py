"""hadamard_rows_summed, side held: neighbouring elements in neighbouring threads, by a smaller block or more warps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import DEVICE, Form, empty, judge, kernels, noise, small

products = kernels("blind8/b_frameworks").rotate_products_kernel
count = small(1 << 18, 512)
x, signs = noise(count, 128, dtype=torch.half), torch.ones(1, 1, device=DEVICE, dtype=torch.half)
for _ in range(7):
    signs = torch.cat((torch.cat((signs, signs), 1), torch.cat((signs, -signs), 1)))
signs = signs.contiguous()
out, scales = torch.empty(count, 128, device=DEVICE, dtype=torch.int8), empty(count)


def run(rows: int, tiles: int, warps: int) -> Form:
    return lambda: products[(count // (rows * tiles),)](x, signs, out, scales, rows, tiles, num_warps=warps)


judge(
    {"as_it_is": run(128, 4, 8), "rows_of_64": run(64, 8, 8), "sixteen_warps": run(128, 4, 16)}, [out, scales]
)
