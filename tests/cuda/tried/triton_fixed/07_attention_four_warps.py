"""attention_four_warps, side small_tiles: less shared memory a program, by a smaller block or fewer stages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

attention = kernels("triton/models_frameworks").attention_kernel
heads, steps, features = small(16, 1), small(2048, 128), 256
q = noise(heads, steps, features, dtype=torch.half) * 4
k = noise(heads, steps, features, dtype=torch.half)
v, out = k.flip(1).contiguous(), empty(heads, steps, features, dtype=torch.half)


def side(wide: int, stages: int) -> Form:
    return lambda: attention[(steps // 64, heads)](
        q, k, v, out, steps, features, 64, wide, num_warps=4, num_stages=stages
    )


judge({"as_it_is": side(64, 2), "keys_of_32": side(32, 2), "one_stage": side(64, 1)}, [out])
