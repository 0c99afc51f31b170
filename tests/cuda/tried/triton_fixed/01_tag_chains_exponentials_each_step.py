"""tag_chains_exponentials_each_step, side weights: fewer warps, so that nothing is added up across them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

studies = kernels("blind19/a_models_frameworks")
sentences, steps, tags = small(2048, 16), small(128, 8), 64
emissions, moves = noise(sentences, steps, tags, dtype=torch.half) * 2, noise(tags, tags)
out = empty(sentences)


def by(warps: int) -> Form:
    return lambda: studies.tag_chain_weights_kernel[(sentences,)](
        emissions, moves, out, steps, tags, num_warps=warps
    )


judge({"as_it_is": by(4), "two_warps": by(2), "one_warp": by(1)}, [out])
