"""The loads and stores of stage 13: tiles brought by tensor copies, A read along k.

The index arithmetic is that of ``kernels/sgemm/fastest.cu`` where TMA copies the tiles and a block computes its tile of
C alone. Left out are GPUs before Hopper, where cp.async copies the same tiles, and problems of few tiles, where the
kernel takes smaller ones or the blocks of a cluster share one and add up their sums through distributed shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmprof.analysis.ladder.access_pattern import (
    WARP_SIZE,
    KernelAccesses,
    TensorCopy,
    start_of_column,
    start_of_row,
    warp_access,
)
from gemmprof.model import Problem

SWIZZLE_ROWS = 8
"""The 128-byte swizzle repeats every so many rows."""


def fastest(parameters: Mapping[str, int], problem: Problem) -> KernelAccesses:
    """Stage 13: a thread computes TM x TN, its rows and columns interleaved with those of the warp's other lanes."""
    bm, bn, bk, tm, tn = (parameters[letter] for letter in ("BM", "BN", "BK", "TM", "TN"))
    wm, wn = parameters["WM"], parameters["WN"]
    lanes_n = wn // tn

    def output(thread: int) -> tuple[int, int]:
        warp, lane = divmod(thread, WARP_SIZE)
        return warp // (bn // wn) * wm + lane // lanes_n, warp % (bn // wn) * wn + lane % lanes_n * 4

    def swizzled(row: int, k: int) -> int:
        return row * bk + (k // 4 ^ row % SWIZZLE_ROWS) * 4 + k % 4

    read_a, read_b = start_of_row(output), start_of_column(output)
    return KernelAccesses(
        (bm, bn, bk),
        (bm // wm) * (bn // wn) * WARP_SIZE,
        (
            # Four k of a row of A at once. While a tile is computed, the first operands of the next are loaded: a
            # quarter of the thread's rows, and its columns for two k; after the last tile in vain.
            warp_access(
                "shared",
                "load",
                "A",
                "float4 As[row * BK + (k / 4 ^ row % 8) * 4]",
                read_a,
                swizzled,
                floats=4,
                executions=tm * bk // 4,
                ahead=tm // 4,
            ),
            warp_access(
                "shared",
                "load",
                "B",
                "float4 Bs[k * BN + column]",
                read_b,
                bn,
                floats=4,
                executions=bk * tn // 4,
                ahead=2 * tn // 4,
            ),
            warp_access(
                "global",
                "store",
                "C",
                "float4 C[row * ldc + col]",
                output,
                problem.n,
                floats=4,
                executions=tm * tn // 4,
                once=True,
            ),
        ),
        (
            TensorCopy(
                "A",
                bm,
                bk,
                "cp.async.bulk.tensor.2d As, map_a at (k, block_row)",
                "The 16-byte pieces of each 128-byte row change places, piece p of row r to p ^ r % 8, so that lanes "
                "that read the same k of neighbouring rows meet no bank twice.",
            ),
            TensorCopy(
                "B",
                bk,
                bn,
                "cp.async.bulk.tensor.2d Bs, map_b at (block_col, k)",
                "The rows lie one behind the other: lanes read neighbouring columns of one row.",
            ),
        ),
    )
