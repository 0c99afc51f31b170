"""nearest_minimum_each_step, side flawed: loads of later iterations under way by tl.range, or more warps."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import triton
import triton.language as tl
from tried import Form, empty, judge, kernels, noise, small

nearest = kernels("triton/science_frameworks").nearest_kernel
total, count = small(32768, 128), small(8192, 128)
queries, out = noise(3, total), empty(total)
points = queries.flip(1)[:, :count].contiguous() * 0.9


@triton.jit
def nearest_ahead(
    queries, points, out, count, total, tall: tl.constexpr, wide: tl.constexpr, stages: tl.constexpr
):
    query = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y, z = tl.load(queries + query), tl.load(queries + total + query), tl.load(queries + 2 * total + query)
    least = tl.full((wide,), float("inf"), tl.float32)
    for start in tl.range(0, count, tall, num_stages=stages):
        point = start + tl.arange(0, tall)
        dx = tl.load(points + point)[:, None] - x[None, :]
        dy = tl.load(points + count + point)[:, None] - y[None, :]
        dz = tl.load(points + 2 * count + point)[:, None] - z[None, :]
        least = tl.minimum(least, tl.min(dx * dx + dy * dy + dz * dz, 0))
    tl.store(out + query, tl.sqrt(least))


@triton.jit
def nearest_by_hand(queries, points, out, count, total, tall: tl.constexpr, wide: tl.constexpr):
    query = tl.program_id(0) * wide + tl.arange(0, wide)
    x, y, z = tl.load(queries + query), tl.load(queries + total + query), tl.load(queries + 2 * total + query)
    least, first = tl.full((wide,), float("inf"), tl.float32), tl.arange(0, tall)
    a, b, c = tl.load(points + first), tl.load(points + count + first), tl.load(points + 2 * count + first)
    for start in range(tall, count + tall, tall):
        point = start % count + first
        dx, dy, dz = a[:, None] - x[None, :], b[:, None] - y[None, :], c[:, None] - z[None, :]
        a, b, c = (
            tl.load(points + point),
            tl.load(points + count + point),
            tl.load(points + 2 * count + point),
        )
        least = tl.minimum(least, tl.min(dx * dx + dy * dy + dz * dz, 0))
    tl.store(out + query, tl.sqrt(least))


def side(wide: int, warps: int) -> Form:
    return lambda: nearest[(total // wide,)](
        queries, points, out, count, total, 32, wide, False, num_warps=warps
    )


judge({
    "as_it_is": side(64, 4),
    "three_stages": lambda: nearest_ahead[(total // 64,)](
        queries, points, out, count, total, 32, 64, 3, num_warps=4
    ),
    "by_hand": lambda: nearest_by_hand[(total // 64,)](queries, points, out, count, total, 32, 64, num_warps=4),
    "eight_warps": side(64, 8),
    "programs_of_32": side(32, 4),
}, [out])  # fmt: skip
