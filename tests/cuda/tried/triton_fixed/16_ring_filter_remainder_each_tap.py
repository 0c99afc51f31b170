"""ring_filter_remainder_each_tap, side opened: neighbouring elements in neighbouring threads, by a smaller block."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from tried import Form, empty, judge, kernels, noise, small

opened = kernels("blind19/a_media_frameworks").ring_opened_kernel
count, length = 64, small(8191, 7) * 512
signal, taps, out = noise(length), noise(count), empty(length)
longer = torch.cat((signal[-count:], signal))


def by(block: int, warps: int) -> Form:
    return lambda: opened[(length // block,)](longer, taps, out, count, block, num_warps=warps)


judge({"as_it_is": by(512, 4), "blocks_of_128": by(128, 4), "sixteen_warps": by(512, 16)}, [out])
