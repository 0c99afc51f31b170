"""lifetime_loss_logarithms_of_parameters_again, side prepared: a fast logarithm, and exp2 of a scaled argument."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small
from triton.language.extra import libdevice

loss = kernels("blind17/b_frameworks").lifetime_loss_prepared_kernel
rows, columns = small(1 << 18, 16), 256
times = noise(rows, columns, dtype=torch.half).abs() + 0.05
shapes, scales = noise(columns).abs() * 2 + 0.5, noise(columns).flip(0).abs() + 0.5
logs, offsets = torch.log(scales), torch.log(shapes / scales)
out = empty(rows, columns, dtype=torch.half)


@triton.jit
def fast(times, shapes, logs, offsets, out, columns, block: tl.constexpr, both: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    column = at % columns
    shape = tl.load(shapes + column)
    ratio = libdevice.fast_logf(tl.load(times + at).to(tl.float32)) - tl.load(logs + column)
    power = tl.exp2(shape * ratio * 1.44269504) if both else tl.exp(shape * ratio)
    tl.store(out + at, (power - (shape - 1.0) * ratio - tl.load(offsets + column)).to(tl.float16))


def by(both: bool) -> Form:
    return lambda: fast[(rows * columns // 1024,)](
        times, shapes, logs, offsets, out, columns, 1024, both, num_warps=4
    )


judge({
    "as_it_is": lambda: loss[(rows * columns // 1024,)](
        times, shapes, logs, offsets, out, columns, 1024, num_warps=4
    ),
    "fast_log_and_exp2": by(both=True),
    "fast_log": by(both=False),
}, [out])  # fmt: skip
