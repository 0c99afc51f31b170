"""The loads and stores of each stage of the ladder, written down from its tile parameters.

One function a kernel family; the index arithmetic is that of ``kernels/sgemm/<stage>.cu``, line by line. Coordinates
are those of warp 0 in block (0, 0) at the first step along K; other warps and steps shift them by whole rows or
tiles, which changes no pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from gemmprof.analysis.ladder import access_fastest, access_float4
from gemmprof.analysis.ladder.access_pattern import (
    WARP_SIZE,
    AccessPatterns,
    KernelAccesses,
    start_of_column,
    start_of_row,
    warp_access,
)
from gemmprof.model import Problem, Stage


def access_patterns(stage: Stage, problem: Problem) -> AccessPatterns | None:
    """The access patterns of a stage on a problem; None where no model is written down (cuBLAS, foreign kernels)."""
    family = _FAMILIES.get(stage.name)
    if family is None or not usable(stage.parameters):
        return None
    try:
        kernel = family(stage.parameters, problem)
    except (KeyError, ZeroDivisionError):
        # A run of another version: a stage of this name whose parameters are others, or fit no kernel of ours.
        return None
    rows, columns, depth = kernel.tile
    return AccessPatterns(
        stage,
        problem,
        warps_per_block=-(-kernel.threads // WARP_SIZE),
        blocks=-(-problem.m // rows) * -(-problem.n // columns),
        steps=-(-problem.k // depth),
        accesses=kernel.accesses,
        whole_tiles=not (problem.m % rows or problem.n % columns or problem.k % depth),
        copies=kernel.copies,
    )


MAY_BE_ZERO = ("PAD", "MIN_BLOCKS")


def usable(parameters: Mapping[str, object]) -> bool:
    """Whether these can be tile parameters: they come from a run's file, which may hold anything."""
    return all(
        isinstance(value, int)
        and not isinstance(value, bool)
        and (value > 0 or (value == 0 and name in MAY_BE_ZERO))
        for name, value in parameters.items()
    )


def _untiled(parameters: Mapping[str, int], problem: Problem, *, along_rows: bool) -> KernelAccesses:
    """Stages 1 and 2: one thread an output, straight from global memory."""
    block = parameters["BLOCK"]

    def output(thread: int) -> tuple[int, int]:
        slow, fast = divmod(thread, block)
        return (slow, fast) if along_rows else (fast, slow)

    return KernelAccesses(
        (block, block, 1),
        block * block,
        (
            warp_access("global", "load", "A", "A[row * lda + i]", lambda t: (output(t)[0], 0), problem.k),
            warp_access("global", "load", "B", "B[i * ldb + col]", lambda t: (0, output(t)[1]), problem.n),
            warp_access("global", "store", "C", "C[row * ldc + col]", output, problem.n, once=True),
        ),
    )


def _shared(parameters: Mapping[str, int], problem: Problem) -> KernelAccesses:
    """Stage 3: square tiles of A and B in shared memory."""
    tile = parameters["TILE"]

    def own(thread: int) -> tuple[int, int]:
        return divmod(thread, tile)

    return KernelAccesses(
        (tile, tile, tile),
        tile * tile,
        (
            warp_access("global", "load", "A", "A[thread_row * lda + thread_col]", own, problem.k),
            warp_access("global", "load", "B", "B[thread_row * ldb + thread_col]", own, problem.n),
            warp_access("shared", "store", "A", "As[thread_row][thread_col]", own, tile),
            warp_access("shared", "store", "B", "Bs[thread_row][thread_col]", own, tile),
            warp_access(
                "shared", "load", "A", "As[thread_row][i]", lambda t: (own(t)[0], 0), tile, executions=tile
            ),
            warp_access(
                "shared", "load", "B", "Bs[i][thread_col]", lambda t: (0, own(t)[1]), tile, executions=tile
            ),
            warp_access("global", "store", "C", "C[row * ldc + col]", own, problem.n, once=True),
        ),
    )


def _block1d(parameters: Mapping[str, int], problem: Problem) -> KernelAccesses:
    """Stage 4: a thread computes a column of TM outputs."""
    bm, bn, bk, tm = (parameters[letter] for letter in ("BM", "BN", "BK", "TM"))

    def tile_a(thread: int) -> tuple[int, int]:
        return divmod(thread, bk)

    def tile_b(thread: int) -> tuple[int, int]:
        return divmod(thread, bn)

    def output(thread: int) -> tuple[int, int]:
        return thread // bn * tm, thread % bn

    read_a, read_b = start_of_row(output), start_of_column(output)
    return KernelAccesses(
        (bm, bn, bk),
        bm * bn // tm,
        (
            warp_access("global", "load", "A", "A[a_row * lda + a_col]", tile_a, problem.k),
            warp_access("global", "load", "B", "B[b_row * ldb + b_col]", tile_b, problem.n),
            warp_access("shared", "store", "A", "As[a_row * BK + a_col]", tile_a, bk),
            warp_access("shared", "store", "B", "Bs[b_row * BN + b_col]", tile_b, bn),
            warp_access("shared", "load", "B", "Bs[i * BN + thread_col]", read_b, bn, executions=bk),
            warp_access(
                "shared", "load", "A", "As[(thread_row + m) * BK + i]", read_a, bk, executions=bk * tm
            ),
            warp_access("global", "store", "C", "C[m * ldc]", output, problem.n, executions=tm, once=True),
        ),
    )


def _block2d(parameters: Mapping[str, int], problem: Problem) -> KernelAccesses:
    """Stage 5: a thread computes TM x TN outputs, scalar accesses."""
    bm, bn, bk, tm, tn = (parameters[letter] for letter in ("BM", "BN", "BK", "TM", "TN"))
    threads = (bm // tm) * (bn // tn)

    def tile_a(thread: int) -> tuple[int, int]:
        return divmod(thread, bk)

    def tile_b(thread: int) -> tuple[int, int]:
        return divmod(thread, bn)

    def output(thread: int) -> tuple[int, int]:
        return thread // (bn // tn) * tm, thread % (bn // tn) * tn

    read_a, read_b = start_of_row(output), start_of_column(output)
    a_loads, b_loads = bm * bk // threads, bk * bn // threads
    return KernelAccesses(
        (bm, bn, bk),
        threads,
        (
            warp_access("global", "load", "A", "A[r * lda]", tile_a, problem.k, executions=a_loads),
            warp_access("global", "load", "B", "B[r * ldb]", tile_b, problem.n, executions=b_loads),
            warp_access(
                "shared", "store", "A", "As[(a_row + r) * BK + a_col]", tile_a, bk, executions=a_loads
            ),
            warp_access(
                "shared", "store", "B", "Bs[(b_row + r) * BN + b_col]", tile_b, bn, executions=b_loads
            ),
            warp_access(
                "shared", "load", "A", "As[(thread_row + m) * BK + i]", read_a, bk, executions=bk * tm
            ),
            warp_access("shared", "load", "B", "Bs[i * BN + thread_col + n]", read_b, bn, executions=bk * tn),
            warp_access(
                "global", "store", "C", "C[m * ldc + n]", output, problem.n, executions=tm * tn, once=True
            ),
        ),
    )


_FAMILIES: Mapping[str, Callable[[Mapping[str, int], Problem], KernelAccesses]] = {
    "naive": partial(_untiled, along_rows=False),
    "coalesced": partial(_untiled, along_rows=True),
    "shared": _shared,
    "block1d": _block1d,
    "block2d": _block2d,
    "vectorized": access_float4.vectorized,
    "linearized": partial(access_float4.vectorized, layout=access_float4.linearized),
    "padded": partial(access_float4.vectorized, layout=access_float4.padded),
    "autotuned": partial(access_float4.vectorized, layout=access_float4.padded),
    "warptiled": access_float4.warptiled,
    "double_buffered": access_float4.warptiled,
    "async_copy": partial(access_float4.warptiled, asynchronous=True),
    "fastest": access_fastest.fastest,
}
"""Stage name to the function that writes down its accesses."""
