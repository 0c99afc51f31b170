"""text_attention_sixteen_queries, side held: less shared memory a program, by fewer stages or a smaller block."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

attention = kernels("blind8/b_frameworks").text_attention_kernel
heads, steps, words = small(80, 2), small(4096, 256), 77
q = noise(heads, steps, 64, dtype=torch.half)
k, v = noise(heads, words, 64, dtype=torch.half), noise(heads, words, 64, dtype=torch.half)
out = empty(heads, steps, 64, dtype=torch.half)


def run(rows: int, tiles: int, stages: int) -> Form:
    return lambda: attention[(steps // (rows * tiles), heads)](
        q, k, v, out, steps, words, 128, rows, tiles, num_warps=4, num_stages=stages
    )


judge({"as_it_is": run(64, 4, 3), "two_stages": run(64, 4, 2), "one_stage": run(64, 4, 1)}, [out])
