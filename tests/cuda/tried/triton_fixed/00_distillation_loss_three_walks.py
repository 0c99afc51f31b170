"""distillation_loss_three_walks, side one_walk: exponentials to base 2 of scaled arguments, or algebra."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

distil = kernels("blind19/a_models_frameworks").distil_one_kernel
rows, width = small(2048, 2), 32768
student, teacher = noise(rows, width, dtype=torch.half) * 4, noise(rows, width, dtype=torch.half)
teacher = teacher.flip(0).contiguous() * 5
out = empty(rows)


@triton.jit
def base_two(student, teacher, out, width, piece: tl.constexpr, once: tl.constexpr):
    """Logits are scaled by log2(e) when they are loaded; ``once``: of two exponentials one is that of 0."""
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, piece)
    high_s, high_t = tl.full((piece,), -1e30, tl.float32), tl.full((piece,), -1e30, tl.float32)
    sum_s, sum_t = tl.zeros((piece,), tl.float32), tl.zeros((piece,), tl.float32)
    apart = tl.zeros((piece,), tl.float32)
    for start in range(0, width, piece):
        s = tl.load(student + row + start + column).to(tl.float32) * 1.44269504
        t = tl.load(teacher + row + start + column).to(tl.float32) * 1.44269504
        if once:
            less_s, less_t = tl.exp2(-tl.abs(high_s - s)), tl.exp2(-tl.abs(high_t - t))
            sum_s = tl.where(s > high_s, sum_s * less_s + 1.0, sum_s + less_s)
            sum_t = tl.where(t > high_t, sum_t * less_t + 1.0, sum_t + less_t)
            apart = tl.where(t > high_t, apart * less_t + (t - s), apart + less_t * (t - s))
            high_s, high_t = tl.maximum(high_s, s), tl.maximum(high_t, t)
        else:
            next_s, next_t = tl.maximum(high_s, s), tl.maximum(high_t, t)
            shrink, weight = tl.exp2(high_t - next_t), tl.exp2(t - next_t)
            sum_s = sum_s * tl.exp2(high_s - next_s) + tl.exp2(s - next_s)
            sum_t = sum_t * shrink + weight
            apart = apart * shrink + weight * (t - s)
            high_s, high_t = next_s, next_t
    top_s, top_t = tl.max(high_s, 0), tl.max(high_t, 0)
    scale_t = tl.exp2(high_t - top_t)
    whole_s = tl.sum(sum_s * tl.exp2(high_s - top_s), 0)
    whole_t = tl.sum(sum_t * scale_t, 0)
    mean = tl.sum(apart * scale_t, 0) / whole_t
    found = mean - (top_t + tl.log2(whole_t)) + top_s + tl.log2(whole_s)
    tl.store(out + tl.program_id(0), found * 0.69314718)


def by(once: bool) -> Form:
    return lambda: base_two[(rows,)](student, teacher, out, width, 2048, once, num_warps=8)


judge({
    "as_it_is": lambda: distil[(rows,)](student, teacher, out, width, 2048, num_warps=8),
    "base_two": by(once=False),
    "base_two_one_of_each_two": by(once=True),
}, [out])  # fmt: skip
