"""norm_backward_three_walks, side two_walks: a row is loaded once and kept in the registers of 8 warps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

studies = kernels("triton/models_frameworks")
rows, columns = small(16384, 4), 8192
x, weight = noise(rows, columns, dtype=torch.half), noise(columns, dtype=torch.half)
dy, dx = x.flip(0).contiguous(), empty(rows, columns, dtype=torch.half)
mean = x.float().mean(1)
rstd = torch.rsqrt(x.float().var(1) + 1e-5)


def whole(warps: int) -> Form:
    return lambda: studies.norm_back_whole_kernel[(rows,)](
        x, dy, weight, mean, rstd, dx, columns, num_warps=warps
    )


judge({
    "as_it_is": lambda: studies.norm_back_walks_kernel[(rows,)](
        x, dy, weight, mean, rstd, dx, columns, 1024, True, num_warps=4
    ),
    "eight_warps": whole(8),
    "sixteen_warps": whole(16),
}, [dx])  # fmt: skip
