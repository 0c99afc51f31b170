"""unprojected_points_three_words_apart, side words: larger blocks, and what is loaded serves more outputs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

words = kernels("blind16/b_frameworks").points_words_kernel
pictures, width, height = small(8, 1), small(1920, 64), small(1080, 64)
count = pictures * width * height
depths, out = noise(pictures, height, width).abs() + 0.5, empty(count, 3)


@triton.jit
def once(depths, out, width, height, focal, block: tl.constexpr):
    """A depth is loaded once for the three words of its pixel, of four places that lanes have."""
    at, axis = tl.program_id(0) * block + tl.arange(0, block), tl.arange(0, 4)
    column, row = at % width, at // width % height
    z = tl.load(depths + at)
    x, y = (column - width * 0.5) * z / focal, (row - height * 0.5) * z / focal
    of = axis[None, :]
    value = tl.where(of == 0, x[:, None], tl.where(of == 1, y[:, None], z[:, None]))
    tl.store(out + at[:, None] * 3 + of, value, mask=of < 3)


def by(block: int) -> Form:
    return lambda: words[(count * 3 // block,)](depths, out, width, height, 1050.0, block, num_warps=4)


judge({
    "as_it_is": by(256),
    "blocks_of_1024": by(1024),
    "a_depth_once": lambda: once[(count // 256,)](depths, out, width, height, 1050.0, 256, num_warps=4),
}, [out])  # fmt: skip
