"""tag_chains_exponentials_each_step, side product: a fast logarithm, and exp2 of scaled arguments."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import empty, judge, kernels, noise, small
from triton.language.extra import libdevice

product = kernels("blind19/a_models_frameworks").tag_chain_product_kernel
sentences, steps, tags = small(2048, 16), small(128, 8), 64
emissions, moves = noise(sentences, steps, tags, dtype=torch.half) * 2, noise(tags, tags)
out = empty(sentences)


@triton.jit
def fast(emissions, moves, out, steps, tags: tl.constexpr, tall: tl.constexpr):
    before, after = tl.arange(0, tags), tl.arange(0, tags)
    weight = tl.exp(tl.load(moves + before[:, None] * tags + after[None, :]))
    sentence = tl.program_id(0) * tall + tl.arange(0, tall)
    base = emissions + sentence[:, None] * steps * tags + after[None, :]
    alpha = tl.load(base).to(tl.float32)
    for step in range(1, steps):
        top = tl.max(alpha, 1)
        summed = tl.dot(tl.exp2((alpha - top[:, None]) * 1.44269504), weight)
        alpha = top[:, None] + libdevice.fast_logf(summed) + tl.load(base + step * tags).to(tl.float32)
    top = tl.max(alpha, 1)
    tl.store(out + sentence, top + tl.log(tl.sum(tl.exp(alpha - top[:, None]), 1)))


judge({
    "as_it_is": lambda: product[(sentences // 16,)](emissions, moves, out, steps, tags, 16, num_warps=4),
    "fast_log_and_exp2": lambda: fast[(sentences // 16,)](emissions, moves, out, steps, tags, 16, num_warps=4),
}, [out])  # fmt: skip
