"""tag_chains_exponentials_each_step, side product: more programs by a smaller block, or more warps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

studies = kernels("blind19/a_models_frameworks")
sentences, steps, tags = small(2048, 16), small(128, 8), 64
emissions, moves = noise(sentences, steps, tags, dtype=torch.half) * 2, noise(tags, tags)
out = empty(sentences)


def by(tall: int, warps: int) -> Form:
    return lambda: studies.tag_chain_product_kernel[(sentences // tall,)](
        emissions, moves, out, steps, tags, tall, num_warps=warps
    )


judge({"as_it_is": by(16, 4), "eight_sentences": by(8, 4), "eight_warps": by(16, 8)}, [out])
