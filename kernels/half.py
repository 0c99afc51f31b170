"""Where the threads of the 16-bit ladder's stages go: FP16 or BF16 operands, float32 sums, C in either type."""

from __future__ import annotations

from dataclasses import replace

from gemmprof.base.expressions import Access, Addresses, Copy, OperandRead
from gemmprof.kernels import tiles
from gemmprof.kernels.tiles import PLAIN, Layout, outer_product

_ROW_A, _COLUMN_A = "t / (BK / 8)", "t % (BK / 8) * 8"
_ROW_B, _COLUMN_B = "t / (BN / 8)", "t % (BN / 8) * 8"
_TIMES_A, _TIMES_B = "BM * BK / (8 * THREADS)", "BK * BN / (8 * THREADS)"
_WARP_ROW, _WARP_COLUMN = "t / 32 / (BN / WN) * WM", "t / 32 % (BN / WN) * WN"
_WARPS = {"THREADS": "BM / WM * (BN / WN) * 32"}

# PAD elements after each row of either tile.
PADDED_ROWS = Layout(
    "row * (BK + PAD) + column", "row * (BN + PAD) + column", "row * LDA + k", "k * LDB + column"
)

# The 16-byte pieces of a row change places with the row; of 64-byte rows, two to all banks, with the pair.
SWIZZLED = Layout(
    "(row * (BK / 8) + (column / 8 ^ row / (64 / BK) % (BK / 8))) * 8 + column % 8",
    "(row * (BN / 8) + (column / 8 ^ row % 8)) * 8 + column % 8",
    "swizzled(row, k / 8)",
    "swizzled(k, column / 8)",
)


def _loads(how: str) -> tuple[Access, ...]:
    """Both tiles from global memory, 16 bytes a thread."""
    return (
        tiles.fetch("A", f"{how} A[row * lda + k]", _ROW_A, _COLUMN_A, elements=8, executions=_TIMES_A),
        tiles.fetch("B", f"{how} B[k * ldb + column]", _ROW_B, _COLUMN_B, elements=8, executions=_TIMES_B),
    )


def _stores(how: str, layout: Layout, *, asynchronous: bool = False) -> tuple[Access, ...]:
    """Both tiles to shared memory, where `_loads` brought them from."""
    a, b = f"{how} As[{layout.code_a}]", f"{how} Bs[{layout.code_b}]"
    more = {"elements": 8, "asynchronous": asynchronous}
    return (
        tiles.put("A", a, _ROW_A, _COLUMN_A, layout.place_a, executions=_TIMES_A, **more),
        tiles.put("B", b, _ROW_B, _COLUMN_B, layout.place_b, executions=_TIMES_B, **more),
    )


def _matrix_loads(layout: Layout, *, ahead: bool = False) -> tuple[Access, ...]:
    """ldmatrix: four 8 x 8 matrices an instruction, the lanes' addresses their rows; B is transposed on its way.

    Args:
        layout: of both tiles.
        ahead: fragments are loaded a step of 16 before they are multiplied, also after the last.
    """
    return (
        tiles.use(
            "A", f"ldmatrix.x4 As[{layout.code_a}]",
            f"{_WARP_ROW} + t % 16", "t % 32 / 16 * 8", layout.place_a,
            elements=8, executions="BK / 16 * (WM / 16)", ahead="WM / 16" if ahead else "0",
        ),
        tiles.use(
            "B", f"ldmatrix.x4.trans Bs[{layout.code_b}]",
            "t % 16", f"{_WARP_COLUMN} + t % 32 / 16 * 8", layout.place_b,
            elements=8, executions="BK / 16 * (WN / 16)", ahead="WN / 16" if ahead else "0",
        ),
    )  # fmt: skip


def _store_sums(elements: int, row: str, column: str, times: str) -> Access:
    """C from registers, neighbouring elements a lane: 2 as they lie there, 8 after exchanges within a quad."""
    word = {2: "pair", 8: "uint4"}[elements]
    return tiles.write(f"{word} C[row * ldc + col]", row, column, elements=elements, executions=times)


def float_tiles() -> Addresses:
    """Stage 1: elements become float32 on their way to shared memory; A lies transposed there."""
    row = "t / 32 / (BN / WN) * WM + t % 32 / LANES_N * TM"
    column = "t / 32 % (BN / WN) * WN + t % 32 % LANES_N * TN"
    loads = outer_product(row, column, PLAIN, "BK * WMITER * TM / 4", "BK * WNITER * TN / 4")
    return tiles.blocked(
        "THREADS",
            tiles.fetch("A", "uint4 A[row * lda + k]", "t % BM", "t / BM * 8", elements=8, executions=_TIMES_A),
            _loads("uint4")[1],
            tiles.put(
                "A", "float As[k * BM + row]", "t / BM * 8", "t % BM", PLAIN.place_a,
                executions=f"8 * ({_TIMES_A})", as_float=True,
            ),
            tiles.put(
                "B", "float4 Bs[k * BN + column]", _ROW_B, _COLUMN_B, PLAIN.place_b,
                elements=4, executions=f"2 * ({_TIMES_B})", as_float=True,
            ),
            *(replace(load, as_float=True) for load in loads),
            _store_sums(2, row, column, "WMITER * WNITER * TM * TN / 2"),
        names={**_WARPS, "WMITER": "WM * WN / (32 * TM * TN * WNITER)", "LANES_N": "WN / WNITER / TN"},
        shared_formula="K (WMITER TM + WNITER TN) / (WMITER TM WNITER TN)",
    )  # fmt: skip


def fragment_tiles() -> Addresses:
    """Stage 2: which lane loads what of a fragment is WMMA's secret, so shared loads are not declared."""
    return tiles.blocked(
        "THREADS",
        *_loads("uint4"),
        *_stores("uint4", PADDED_ROWS),
        _store_sums(2, f"{_WARP_ROW} + t % 32 / 8", f"{_WARP_COLUMN} + t % 8 * 2", "WM / 16 * (WN / 16) * 4"),
        names=_WARPS,
    )


def swizzled_tiles(*, asynchronous: bool = False) -> Addresses:
    """Stages 3 and 4: swizzled tiles read by ldmatrix, brought through registers or by cp.async."""
    how = "cp.async 16" if asynchronous else "uint4"
    return tiles.blocked(
        "THREADS",
        *_loads(how),
        *_stores(how, SWIZZLED, asynchronous=asynchronous),
        *_matrix_loads(SWIZZLED, ahead=asynchronous),
        _store_sums(8, f"{_WARP_ROW} + t % 32 / 4", f"{_WARP_COLUMN} + t % 4 * 8", "WM / 16 * (WN / 32) * 2"),
        names=_WARPS,
        shared_formula="K (WM + WN) / (WM WN)",
    )


def wgmma_tiles(*, producer: bool = False, cluster: int = 1) -> Addresses:
    """Stages 5 to 7: the copy engine brings boxes of 128 swizzled bytes a row, wgmma reads both operands from there.

    Args:
        producer: one more warpgroup does nothing but start copies.
        cluster: so many blocks below each other stay resident, each copies a part of B for all of them.
    """
    shared = f", rows {{rank}} * BK / {cluster} on, to all {cluster} blocks" if cluster > 1 else ""
    return tiles.blocked(
        "(BM / 64 + 1) * 128" if producer else "BM / 64 * 128",
        _store_sums(8, "t / 32 * 16 + t % 32 / 4", "t % 4 * 8", "BN / 32 * 2"),
        copies=(
            Copy(
                "A",
                "BM",
                "BK",
                "cp.async.bulk.tensor.2d As, map_a at (k, block_row)",
                "A row is 128 bytes of K; its 16-byte pieces change places, piece p of row r to p ^ r % 8, as wgmma "
                "expects it, so that eight rows of one piece lie in different banks.",
            ),
            Copy(
                "B",
                "BK" if cluster == 1 else f"BK / {cluster}",
                "64",
                f"cp.async.bulk.tensor.2d Bs, map_b at (block_col + 64 * box, k){shared}",
                "A box is 64 columns wide, 128 bytes a row, swizzled in the same way; wgmma transposes it as it reads.",
                boxes="BN / 64",
                receivers=str(cluster),
            ),
        ),
        computing="BM / 64 * 128" if producer else "",
        resident=cluster > 1,
        operand_reads=(OperandRead("A", "64", "BK"), OperandRead("B", "BK", "BN")),
    )


ADDRESSES = {
    "hgemm_warptiled": float_tiles(),
    "hgemm_wmma": fragment_tiles(),
    "hgemm_mma": swizzled_tiles(),
    "hgemm_async_copy": swizzled_tiles(asynchronous=True),
    "hgemm_wgmma": wgmma_tiles(),
    "hgemm_specialized": wgmma_tiles(producer=True),
    "hgemm_clusters": wgmma_tiles(producer=True, cluster=2),
}
"""Of the stages that declare any, by name."""
