"""radial_machine_sixteen_rows, side half: blocks that fill whole rounds, or programs that share out all steps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

machine = kernels("blind11/b_frameworks").machine_kernel
count, number, width = small(65536, 256), small(4096, 256), 64
x, vectors = noise(count, width, dtype=torch.half), noise(number, width, dtype=torch.half).flip(0)
vectors = vectors.contiguous()
norms, shares, out = vectors.float().square().sum(1), noise(number) + 0.5, empty(count)


@triton.jit
def shared_out(x, vectors, norms, shares, out, count, number, gamma, width: tl.constexpr, tile: tl.constexpr):
    """As many programs as fit share the steps of all tiles; tiles of two programs are added up by atomics."""
    axis, pieces = tl.arange(0, width), number // tile
    step = (tl.program_id(0).to(tl.int64) * (count // tile) * pieces // tl.num_programs(0)).to(tl.int32)
    last = ((tl.program_id(0) + 1).to(tl.int64) * (count // tile) * pieces // tl.num_programs(0)).to(tl.int32)
    while step < last:
        row = step // pieces * tile + tl.arange(0, tile)
        first = step % pieces
        end = tl.minimum(pieces, first + last - step)
        a = tl.load(x + row[:, None] * width + axis[None, :])
        length = tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
        total = tl.zeros((tile,), tl.float32)
        for piece in range(first, end):
            vector = piece * tile + tl.arange(0, tile)
            b = tl.load(vectors + vector[:, None] * width + axis[None, :])
            distance = length[:, None] + tl.load(norms + vector)[None, :] - 2.0 * tl.dot(a, tl.trans(b))
            total += tl.sum(tl.exp2(distance * gamma) * tl.load(shares + vector)[None, :], 1)
        tl.atomic_add(out + row, total, sem="relaxed")
        step += end - first


def run(tile: int, warps: int) -> Form:
    return lambda: machine[(count // tile,)](
        x, vectors, norms, shares, out, number, -0.05, width, tile, 64, num_warps=warps
    )


def share(programs: int) -> Form:
    return lambda: shared_out[(programs,)](
        x, vectors, norms, shares, out, count, number, -0.05, width, 64, num_warps=4
    )


judge({
    "as_it_is": run(64, 4),
    "tiles_of_128": run(128, 8),
    "steps_shared_out": share(small(6 * 132, 3)),
}, [out], prepare=out.zero_)  # fmt: skip
