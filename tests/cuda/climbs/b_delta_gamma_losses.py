"""What a portfolio gains in each of many scenarios of risk factors' moves, to the second order: its deltas times the
moves and half of the moves times its gammas times the moves.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import triton
import triton.language as tl
from tried import Form, empty, judge, noise, small

SCENARIOS, FACTORS = small(131072, 256), small(256, 128)


@triton.jit
def as_it_is(moves, deltas, gammas, gains, factors, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    gain = tl.zeros((ROWS,), tl.float32)
    for column in range(0, factors, BLOCK):
        j = column + tl.arange(0, BLOCK)[None, :]
        changes = tl.zeros((ROWS, BLOCK), tl.float32)
        for first in range(0, factors, BLOCK):
            k = first + tl.arange(0, BLOCK)
            left = tl.load(moves + row * factors + k[None, :])
            right = tl.load(gammas + k[:, None] * factors + j)
            changes += tl.dot(left, right, input_precision="ieee")
        own = tl.load(moves + row * factors + j)
        gain += tl.sum(own * (0.5 * changes + tl.load(deltas + j)), 1)
    tl.store(gains + tl.program_id(0) * ROWS + tl.arange(0, ROWS), gain)


# The gammas are symmetric: blocks above the diagonal count twice, those below not at all. Tensor cores multiply in
# three products of tf32, which keep the precision.
@triton.jit
def expert(
    moves,
    deltas,
    gammas,
    gains,
    FACTORS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    PIECE: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    gain = tl.zeros((ROWS,), tl.float32)
    for column in tl.static_range(0, FACTORS, BLOCK):
        j = column + tl.arange(0, BLOCK)[None, :]
        changes = tl.zeros((ROWS, BLOCK), tl.float32)
        for first in tl.range(0, column, PIECE):
            k = first + tl.arange(0, PIECE)
            left = tl.load(moves + row * FACTORS + k[None, :])
            right = tl.load(gammas + k[:, None] * FACTORS + j)
            changes = tl.dot(left, right, changes, input_precision="tf32x3")
        changes *= 2.0
        for first in tl.range(column, column + BLOCK, PIECE):
            k = first + tl.arange(0, PIECE)
            left = tl.load(moves + row * FACTORS + k[None, :])
            right = tl.load(gammas + k[:, None] * FACTORS + j)
            changes = tl.dot(left, right, changes, input_precision="tf32x3")
        own = tl.load(moves + row * FACTORS + j)
        gain += tl.sum(own * (0.5 * changes + tl.load(deltas + j)), 1)
    tl.store(gains + tl.program_id(0) * ROWS + tl.arange(0, ROWS), gain)


moves, deltas, half, gains = (
    noise(SCENARIOS, FACTORS),
    noise(FACTORS),
    noise(FACTORS, FACTORS),
    empty(SCENARIOS),
)
gammas = (half + half.T).contiguous()
out = (moves, deltas, gammas, gains, FACTORS)
forms: dict[str, Form] = {
    "as_it_is": lambda: as_it_is[(SCENARIOS // 64,)](*out, 64, 32),
    "blocks_of_64": lambda: as_it_is[(SCENARIOS // 64,)](*out, 64, 64),
    "rows_of_128": lambda: as_it_is[(SCENARIOS // 128,)](*out, 128, 32),
    "two_warps": lambda: as_it_is[(SCENARIOS // 64,)](*out, 64, 32, num_warps=2),
    "one_warp": lambda: as_it_is[(SCENARIOS // 64,)](*out, 64, 32, num_warps=1),
    "rows_of_128_two_warps": lambda: as_it_is[(SCENARIOS // 128,)](*out, 128, 32, num_warps=2),
    "expert": lambda: expert[(SCENARIOS // 128,)](*out, 128, 64, 32, num_warps=8, num_stages=3),
}
judge(forms, [gains])
