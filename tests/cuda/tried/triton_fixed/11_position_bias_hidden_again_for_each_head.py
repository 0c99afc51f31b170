"""position_bias_hidden_again_for_each_head, side product: the rows of four programs in one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

studies = kernels("blind13/b_frameworks")
steps, heads, hidden, rate, least = small(2048, 1024), small(16, 16), 32, 0.5, 256
queries = small(steps, 2)
inner, offsets = noise(2, hidden)
outer, out = noise(heads, hidden), empty(heads, steps, steps, dtype=torch.half)
out.zero_()
distance_of = studies.distance_of


@triton.jit
def keys_as_rows(
    inner, offsets, outer, out, steps, rate, least,
    hidden: tl.constexpr, heads: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Keys are the rows of the product, so that there are as many as wgmma takes; heads its columns."""
    key, query, head = tl.program_id(0) * block + tl.arange(0, block), tl.program_id(1), tl.arange(0, heads)
    unit = tl.arange(0, hidden)
    far = distance_of(query, key, rate, least)
    value = far[:, None] * tl.load(inner + unit)[None, :] + tl.load(offsets + unit)[None, :]
    weight = tl.load(outer + head[None, :] * hidden + unit[:, None])
    total = tl.dot(tl.maximum(value, 0.0).to(tl.float16), weight.to(tl.float16))
    at = (head[None, :] * steps + query) * steps + key[:, None]
    tl.store(out + at, total.to(tl.float16))


def by(kernel: triton.JITFunction, block: int) -> Form:
    return lambda: kernel[(steps // block, queries)](
        inner, offsets, outer, out, steps, rate, least, hidden, heads, block, num_warps=4
    )


product = studies.position_bias_product_kernel
judge({
    "as_it_is": by(product, 256),
    "blocks_of_1024": by(product, 1024),
    "keys_as_rows": by(keys_as_rows, 256),
}, [out[:, :queries]])  # fmt: skip
