"""Where the threads of the FP32 ladder's stages go."""

from __future__ import annotations

from typing import Any

from gemmprof.base.expressions import Addresses, Copy
from gemmprof.kernels import tiles
from gemmprof.kernels.tiles import PLAIN, fetch, put, use, write

_ROWS = "row * BK + column"  # a tile of A as it lies in global memory
_TIMES_A, _TIMES_B = "BM * BK / THREADS", "BK * BN / THREADS"  # one element a load
_FOUR_B = "t / (BN / 4)", "t % (BN / 4) * 4"  # four columns a thread
_FOUR: dict[str, Any] = {"elements": 4, "executions": "BK * BN / (4 * THREADS)"}

_COPIED = tiles.Layout(place_a="row * (BM + PAD) + column", code_a="{k} * LDA + {at}")
# cp.async: four bytes of A (8 columns x 4 rows a warp, transposed by the copy), sixteen of B.
_TO_A, _TO_B = "cp.async 4 to As[k * LDA + row]", "cp.async 16 to Bs[k * BN + column]"
_COPIES = (
    fetch("A", "cp.async 4 from A[row * lda + k]", "t / 8", "t % 8", executions=_TIMES_A),
    fetch("B", "cp.async 16 from B[k * ldb + column]", *_FOUR_B, **_FOUR),
    put("A", _TO_A, "t % 8", "t / 8", _COPIED.place_a, executions=_TIMES_A, asynchronous=True),
    put("B", _TO_B, *_FOUR_B, _COPIED.place_b, **_FOUR, asynchronous=True),
)

ADDRESSES = {
    "naive": tiles.untiled("t % BLOCK", "t / BLOCK"),
    "coalesced": tiles.untiled("t / BLOCK", "t % BLOCK"),
    "shared": Addresses(
        ("TILE", "TILE", "TILE"),
        "TILE * TILE",
        (
            fetch("A", "A[thread_row * lda + thread_col]", "ROW", "COL"),
            fetch("B", "B[thread_row * ldb + thread_col]", "ROW", "COL"),
            put("A", "As[thread_row][thread_col]", "ROW", "COL", "row * TILE + column"),
            put("B", "Bs[thread_row][thread_col]", "ROW", "COL", "row * TILE + column"),
            use("A", "As[thread_row][i]", "ROW", "0", "row * TILE + column", executions="TILE"),
            use("B", "Bs[i][thread_col]", "0", "COL", "row * TILE + column", executions="TILE"),
            write("C[row * ldc + col]", "ROW", "COL"),
        ),
        names={"ROW": "t / TILE", "COL": "t % TILE"},
        global_formula="2K / TILE",
        shared_formula="2K",
    ),
    "block1d": tiles.blocked(
        "BM * BN / TM",
        fetch("A", "A[a_row * lda + a_col]", "t / BK", "t % BK"),
        fetch("B", "B[b_row * ldb + b_col]", "t / BN", "t % BN"),
        put("A", "As[a_row * BK + a_col]", "t / BK", "t % BK", _ROWS),
        put("B", "Bs[b_row * BN + b_col]", "t / BN", "t % BN", PLAIN.place_b),
        use("B", "Bs[i * BN + thread_col]", "0", "COL", PLAIN.place_b, executions="BK"),
        use("A", "As[(thread_row + m) * BK + i]", "ROW", "0", _ROWS, executions="BK * TM"),
        write("C[m * ldc]", "ROW", "COL", executions="TM"),
        names={"ROW": "t / BN * TM", "COL": "t % BN"},
        shared_formula="K (TM + 1) / TM",
    ),
    "block2d": tiles.blocked(
        "THREADS",
        fetch("A", "A[r * lda]", "t / BK", "t % BK", executions=_TIMES_A),
        fetch("B", "B[r * ldb]", "t / BN", "t % BN", executions=_TIMES_B),
        put("A", "As[(a_row + r) * BK + a_col]", "t / BK", "t % BK", _ROWS, executions=_TIMES_A),
        put(
            "B",
            "Bs[(b_row + r) * BN + b_col]",
            "t / BN",
            "t % BN",
            PLAIN.place_b,
            executions=_TIMES_B,
        ),
        use("A", "As[(thread_row + m) * BK + i]", "ROW", "0", _ROWS, executions="BK * TM"),
        use("B", "Bs[i * BN + thread_col + n]", "0", "COL", PLAIN.place_b, executions="BK * TN"),
        write("C[m * ldc + n]", "ROW", "COL", executions="TM * TN"),
        names={
            "THREADS": "BM / TM * (BN / TN)",
            "ROW": "t / (BN / TN) * TM",
            "COL": "t % (BN / TN) * TN",
        },
        shared_formula="K (TM + TN) / (TM TN)",
    ),
    "vectorized": tiles.thread_tiles(PLAIN),
    "linearized": tiles.thread_tiles(tiles.LINEARISED, {"PARTS": "TN / 4", "OWNERS": "BN / TN"}),
    "padded": tiles.thread_tiles(tiles.PADDED),
    "autotuned": tiles.thread_tiles(tiles.PADDED),
    "warptiled": tiles.warp_tiles(tiles.float4_loads(PLAIN), PLAIN),
    "double_buffered": tiles.warp_tiles(tiles.float4_loads(PLAIN), PLAIN),
    "async_copy": tiles.warp_tiles(_COPIES, _COPIED),
    "fastest": tiles.blocked(
        "BM / WM * (BN / WN) * 32",
        # Four k of a row of A at once. While a tile is computed, the first operands of the next are loaded: a
        # quarter of the thread's rows, and its columns for two k; after the last tile in vain.
        use(
            "A",
            "float4 As[row * BK + (k / 4 ^ row % 8) * 4]",
            "ROW",
            "0",
            "row * BK + (column / 4 ^ row % 8) * 4 + column % 4",
            elements=4,
            executions="TM * BK / 4",
            ahead="TM / 4",
        ),
        use(
            "B",
            "float4 Bs[k * BN + column]",
            "0",
            "COL",
            PLAIN.place_b,
            elements=4,
            executions="BK * TN / 4",
            ahead="2 * TN / 4",
        ),
        tiles.store_c("ROW", "COL", "TM * TN / 4"),
        copies=(
            Copy(
                "A",
                "BM",
                "BK",
                "cp.async.bulk.tensor.2d As, map_a at (k, block_row)",
                "The 16-byte pieces of each 128-byte row change places, piece p of row r to p ^ r % 8, so that "
                "lanes that read the same k of neighbouring rows meet no bank twice.",
            ),
            Copy(
                "B",
                "BK",
                "BN",
                "cp.async.bulk.tensor.2d Bs, map_b at (block_col, k)",
                "The rows lie one behind the other: lanes read neighbouring columns of one row.",
            ),
        ),
        names={
            "LANES_N": "WN / TN",
            "ROW": "t / 32 / (BN / WN) * WM + t % 32 / LANES_N",
            "COL": "t / 32 % (BN / WN) * WN + t % 32 % LANES_N * 4",
        },
        shared_formula="K (TM + TN) / (TM TN)",
    ),
}
"""Of the stages that declare any, by name."""
