"""The FP32 ladder: every stage's one idea, its tile parameters, and where its threads go."""

from __future__ import annotations

from typing import Any

from gemmprof.base.expressions import Addresses, Copy
from gemmprof.kernels import tiles
from gemmprof.kernels.tiles import PLAIN, fetch, put, rung, use, write

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

STAGES = tiles.rungs(
    "sgemm",
    tiles.yardstick("NVIDIA's library through torch.mm with TF32 off: the yardstick."),
    rung(
        "naive",
        "Naive",
        "One thread an output; neighbouring threads walk down a column of C, so every load is uncoalesced.",
        parameters={"BLOCK": 32},
        addresses=tiles.untiled("t % BLOCK", "t / BLOCK"),
    ),
    rung(
        "coalesced",
        "Coalesced",
        "Neighbouring threads take neighbouring columns: a warp reads B and writes C in few sectors.",
        parameters={"BLOCK": 32},
        addresses=tiles.untiled("t / BLOCK", "t % BLOCK"),
    ),
    rung(
        "shared",
        "Shared-memory tiling",
        "A block stages a square tile of A and of B in shared memory and reuses every element TILE times.",
        remark="TILE 16 fills an SM with 8 small blocks where TILE 32 has 2 large ones, but reuses half: slower.",
        parameters={"TILE": 32},
        variants={"tile16": {"TILE": 16}},
        addresses=Addresses(
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
    ),
    rung(
        "block1d",
        "1D block tiling",
        "A thread computes a column of TM outputs and reuses each element of B from a register.",
        parameters={"BM": 64, "BN": 64, "BK": 8, "TM": 8},
        addresses=tiles.blocked(
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
    ),
    rung(
        "block2d",
        "2D block tiling",
        "A thread computes TM x TN outputs as outer products in registers: more arithmetic per shared load.",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
        addresses=tiles.blocked(
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
    ),
    rung(
        "vectorized",
        "Vectorised loads",
        "Global and shared memory move four floats an instruction; A is transposed on its way into shared memory.",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
        addresses=tiles.thread_tiles(PLAIN),
    ),
    rung(
        "linearized",
        "Linearised shared memory",
        "Shared memory holds the tiles in the order they are read, so threads served together meet no bank twice.",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
        addresses=tiles.thread_tiles(tiles.LINEARISED, {"PARTS": "TN / 4", "OWNERS": "BN / TN"}),
    ),
    rung(
        "padded",
        "Padded shared memory",
        "A few unused floats after each stretch of a tile shift what would meet in one bank.",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8, "PAD": 4, "MIN_BLOCKS": 0},
        addresses=tiles.thread_tiles(tiles.PADDED),
    ),
    rung(
        "autotuned",
        "Autotuned tile sizes",
        "The same kernel with the tile sizes that a search on the GPU found.",
        source="padded",
        parameters={"BM": 64, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 4, "MIN_BLOCKS": 0},
        addresses=tiles.thread_tiles(tiles.PADDED),
    ),
    rung(
        "warptiled",
        "Warp tiling",
        "Each warp owns a WM x WN tile: its shared loads are broadcasts, its registers serve several sub-tiles.",
        remark="No faster than stage 9 on an H100, whose searched tiles have few bank conflicts left; 11 builds on it.",
        parameters={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "WNITER": 2, "TM": 8, "TN": 4},
        addresses=tiles.warp_tiles(tiles.float4_loads(PLAIN), PLAIN),
    ),
    rung(
        "double_buffered",
        "Double buffering",
        "Two copies of the tiles in shared memory: the next is fetched through registers while one is computed.",
        remark="BK is half of stage 10's, so two copies fit where it has one; the largest step after stage 7.",
        parameters={"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "WNITER": 2, "TM": 8, "TN": 4},
        addresses=tiles.warp_tiles(tiles.float4_loads(PLAIN), PLAIN),
    ),
    rung(
        "async_copy",
        "Asynchronous copies",
        "cp.async moves tiles to shared memory past the registers, so several are on their way at once.",
        remark="Does not pay on an H100: stage 11 hides the latency already, and A is transposed four bytes at a time.",
        parameters={
            **{"BM": 64, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "WNITER": 4, "TM": 8, "TN": 4},
            **{"STAGES": 3, "PAD": 4},
        },
        addresses=tiles.warp_tiles(_COPIES, _COPIED),
    ),
    rung(
        "fastest",
        "Fastest on Hopper",
        "FFMAs in an order free of register-bank conflicts, tiles by TMA, K shared if tiles are few.",
        parameters={
            **{"BM": 128, "BN": 128, "BK": 32, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "STAGES": 3},
            # The smaller tiles for problems that the large one is too coarse for.
            **{"MEDIUM_BM": 128, "MEDIUM_BN": 64, "MEDIUM_WM": 64, "MEDIUM_WN": 32, "MEDIUM_TM": 8},
            **{"SMALL_BM": 64, "SMALL_BN": 64, "SMALL_WM": 16, "SMALL_WN": 64, "SMALL_TM": 4},
        },
        compiler_flags=("-Xptxas=-O1",),
        addresses=tiles.blocked(
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
    ),
)
