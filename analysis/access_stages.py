"""The loads and stores of each stage of the ladder, written down from its tile parameters.

One function a kernel family; the index arithmetic is that of ``kernels/csrc/<stage>.cu``, line by line. Coordinates
are those of warp 0 in block (0, 0) at the first step along K; other warps and steps shift them by whole rows or
tiles, which changes no pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gemmprof.analysis.access_pattern import FLOAT_BYTES, WARP_SIZE, AccessPatterns, WarpAccess
from gemmprof.model import Problem, Stage

Coordinates = Callable[[int], tuple[int, int]]
"""Thread index to (row, column) of the first element that it touches."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What a family's function returns: block tile, threads of a block, and the accesses."""

    tile: tuple[int, int, int]
    threads: int
    accesses: tuple[WarpAccess, ...]


def access_patterns(stage: Stage, problem: Problem) -> AccessPatterns | None:
    """The access patterns of a stage on a problem; None where no model is written down (cuBLAS, foreign kernels)."""
    family = _FAMILIES.get(stage.name)
    if family is None:
        return None
    try:
        kernel = family(stage.parameters, problem)
    except KeyError:
        # A run of another version: a stage of this name with other parameters.
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
    )


_SPACES = {"global": "global memory", "shared": "shared memory"}


def _access(
    space: str,
    operation: str,
    matrix: str,
    code: str,
    coordinates: Coordinates,
    row_length: int,
    *,
    floats: int = 1,
    executions: int = 1,
    once: bool = False,
) -> WarpAccess:
    """One access from its coordinates; rows of the matrix or tile are ``row_length`` floats apart."""
    places = [coordinates(thread) for thread in range(WARP_SIZE)]
    direction = "from" if operation == "load" else "to"
    verb = "Load" if operation == "load" else "Store"
    return WarpAccess(
        name=f"{space}_{operation}_{matrix.lower()}",
        title=f"{verb} of {matrix} {direction} {_SPACES[space]}",
        space=space,
        operation=operation,
        matrix=matrix,
        code=code,
        bytes_per_thread=floats * FLOAT_BYTES,
        addresses=tuple((row * row_length + column) * FLOAT_BYTES for row, column in places),
        rows=tuple(row for row, _ in places),
        columns=tuple(column for _, column in places),
        executions=executions,
        once=once,
    )


def _untiled(parameters: Mapping[str, int], problem: Problem, *, along_rows: bool) -> _Kernel:
    """Stages 1 and 2: one thread an output, straight from global memory."""
    block = parameters["BLOCK"]

    def output(thread: int) -> tuple[int, int]:
        slow, fast = divmod(thread, block)
        return (slow, fast) if along_rows else (fast, slow)

    return _Kernel(
        (block, block, 1),
        block * block,
        (
            _access("global", "load", "A", "A[row * lda + i]", lambda t: (output(t)[0], 0), problem.k),
            _access("global", "load", "B", "B[i * ldb + col]", lambda t: (0, output(t)[1]), problem.n),
            _access("global", "store", "C", "C[row * ldc + col]", output, problem.n, once=True),
        ),
    )


def _shared(parameters: Mapping[str, int], problem: Problem) -> _Kernel:
    """Stage 3: square tiles of A and B in shared memory."""
    tile = parameters["TILE"]

    def own(thread: int) -> tuple[int, int]:
        return divmod(thread, tile)

    return _Kernel(
        (tile, tile, tile),
        tile * tile,
        (
            _access("global", "load", "A", "A[thread_row * lda + thread_col]", own, problem.k),
            _access("global", "load", "B", "B[thread_row * ldb + thread_col]", own, problem.n),
            _access("shared", "store", "A", "As[thread_row][thread_col]", own, tile),
            _access("shared", "store", "B", "Bs[thread_row][thread_col]", own, tile),
            _access(
                "shared", "load", "A", "As[thread_row][i]", lambda t: (own(t)[0], 0), tile, executions=tile
            ),
            _access(
                "shared", "load", "B", "Bs[i][thread_col]", lambda t: (0, own(t)[1]), tile, executions=tile
            ),
            _access("global", "store", "C", "C[row * ldc + col]", own, problem.n, once=True),
        ),
    )


def _block1d(parameters: Mapping[str, int], problem: Problem) -> _Kernel:
    """Stage 4: a thread computes a column of TM outputs."""
    bm, bn, bk, tm = (parameters[letter] for letter in ("BM", "BN", "BK", "TM"))

    def tile_a(thread: int) -> tuple[int, int]:
        return divmod(thread, bk)

    def tile_b(thread: int) -> tuple[int, int]:
        return divmod(thread, bn)

    def output(thread: int) -> tuple[int, int]:
        return thread // bn * tm, thread % bn

    def read_a(thread: int) -> tuple[int, int]:
        return output(thread)[0], 0

    def read_b(thread: int) -> tuple[int, int]:
        return 0, output(thread)[1]

    return _Kernel(
        (bm, bn, bk),
        bm * bn // tm,
        (
            _access("global", "load", "A", "A[a_row * lda + a_col]", tile_a, problem.k),
            _access("global", "load", "B", "B[b_row * ldb + b_col]", tile_b, problem.n),
            _access("shared", "store", "A", "As[a_row * BK + a_col]", tile_a, bk),
            _access("shared", "store", "B", "Bs[b_row * BN + b_col]", tile_b, bn),
            _access("shared", "load", "B", "Bs[i * BN + thread_col]", read_b, bn, executions=bk),
            _access("shared", "load", "A", "As[(thread_row + m) * BK + i]", read_a, bk, executions=bk * tm),
            _access("global", "store", "C", "C[m * ldc]", output, problem.n, executions=tm, once=True),
        ),
    )


def _block2d(parameters: Mapping[str, int], problem: Problem) -> _Kernel:
    """Stage 5: a thread computes TM x TN outputs, scalar accesses."""
    bm, bn, bk, tm, tn = (parameters[letter] for letter in ("BM", "BN", "BK", "TM", "TN"))
    threads = (bm // tm) * (bn // tn)

    def tile_a(thread: int) -> tuple[int, int]:
        return divmod(thread, bk)

    def tile_b(thread: int) -> tuple[int, int]:
        return divmod(thread, bn)

    def output(thread: int) -> tuple[int, int]:
        return thread // (bn // tn) * tm, thread % (bn // tn) * tn

    def read_a(thread: int) -> tuple[int, int]:
        return output(thread)[0], 0

    def read_b(thread: int) -> tuple[int, int]:
        return 0, output(thread)[1]

    a_loads, b_loads = bm * bk // threads, bk * bn // threads
    return _Kernel(
        (bm, bn, bk),
        threads,
        (
            _access("global", "load", "A", "A[r * lda]", tile_a, problem.k, executions=a_loads),
            _access("global", "load", "B", "B[r * ldb]", tile_b, problem.n, executions=b_loads),
            _access("shared", "store", "A", "As[(a_row + r) * BK + a_col]", tile_a, bk, executions=a_loads),
            _access("shared", "store", "B", "Bs[(b_row + r) * BN + b_col]", tile_b, bn, executions=b_loads),
            _access("shared", "load", "A", "As[(thread_row + m) * BK + i]", read_a, bk, executions=bk * tm),
            _access("shared", "load", "B", "Bs[i * BN + thread_col + n]", read_b, bn, executions=bk * tn),
            _access(
                "global", "store", "C", "C[m * ldc + n]", output, problem.n, executions=tm * tn, once=True
            ),
        ),
    )


def _float4_tiles(
    parameters: Mapping[str, int], problem: Problem, threads: int
) -> tuple[WarpAccess, WarpAccess, WarpAccess, WarpAccess]:
    """How stages 6 and 10 bring their tiles in: four floats a load, A transposed on its way into shared memory."""
    bm, bn, bk = (parameters[letter] for letter in ("BM", "BN", "BK"))

    def tile_a(thread: int) -> tuple[int, int]:
        return thread // (bk // 4), thread % (bk // 4) * 4

    def tile_b(thread: int) -> tuple[int, int]:
        return thread // (bn // 4), thread % (bn // 4) * 4

    def transposed(thread: int) -> tuple[int, int]:
        row, column = tile_a(thread)
        return column, row

    a_loads, b_loads = bm * bk // (4 * threads), bk * bn // (4 * threads)
    return (
        _access("global", "load", "A", "float4 A[r * lda]", tile_a, problem.k, floats=4, executions=a_loads),
        _access("global", "load", "B", "float4 B[r * ldb]", tile_b, problem.n, floats=4, executions=b_loads),
        _access(
            "shared",
            "store",
            "A",
            "As[(a_col + 0…3) * BM + a_row + r]",
            transposed,
            bm,
            executions=4 * a_loads,
        ),
        _access(
            "shared",
            "store",
            "B",
            "float4 Bs[(b_row + r) * BN + b_col]",
            tile_b,
            bn,
            floats=4,
            executions=b_loads,
        ),
    )


def _vectorized(parameters: Mapping[str, int], problem: Problem) -> _Kernel:
    """Stage 6: as stage 5, four floats an access."""
    bm, bn, bk, tm, tn = (parameters[letter] for letter in ("BM", "BN", "BK", "TM", "TN"))
    threads = (bm // tm) * (bn // tn)

    def output(thread: int) -> tuple[int, int]:
        return thread // (bn // tn) * tm, thread % (bn // tn) * tn

    def read_a(thread: int) -> tuple[int, int]:
        return 0, output(thread)[0]

    def read_b(thread: int) -> tuple[int, int]:
        return 0, output(thread)[1]

    code_a, code_b = "float4 As[i * BM + thread_row + m]", "float4 Bs[i * BN + thread_col + n]"
    stores = tm * tn // 4
    return _Kernel(
        (bm, bn, bk),
        threads,
        (
            *_float4_tiles(parameters, problem, threads),
            _access("shared", "load", "A", code_a, read_a, bm, floats=4, executions=bk * tm // 4),
            _access("shared", "load", "B", code_b, read_b, bn, floats=4, executions=bk * tn // 4),
            _access(
                "global",
                "store",
                "C",
                "float4 C[m * ldc + n]",
                output,
                problem.n,
                floats=4,
                executions=stores,
                once=True,
            ),
        ),
    )


def _warptiled(parameters: Mapping[str, int], problem: Problem) -> _Kernel:
    """Stage 10: a warp owns WM x WN, in sub-tiles whose threads read neighbouring pieces of the same rows."""
    bm, bn, bk, tm, tn = (parameters[letter] for letter in ("BM", "BN", "BK", "TM", "TN"))
    wm, wn, wniter = (parameters[letter] for letter in ("WM", "WN", "WNITER"))
    threads = (bm // wm) * (bn // wn) * WARP_SIZE
    wmiter = wm * wn // (WARP_SIZE * tm * tn * wniter)
    lanes_n = wn // wniter // tn

    def output(thread: int) -> tuple[int, int]:
        warp, lane = divmod(thread, WARP_SIZE)
        return (
            warp // (bn // wn) * wm + lane // lanes_n * tm,
            warp % (bn // wn) * wn + lane % lanes_n * tn,
        )

    def read_a(thread: int) -> tuple[int, int]:
        return 0, output(thread)[0]

    def read_b(thread: int) -> tuple[int, int]:
        return 0, output(thread)[1]

    code_a = "float4 As[i * BM + thread_row + wm * WSUBM + m]"
    code_b = "float4 Bs[i * BN + thread_col + wn * WSUBN + n]"
    code_c = "float4 C[row * ldc + col]"
    stores = wmiter * wniter * tm * tn // 4
    return _Kernel(
        (bm, bn, bk),
        threads,
        (
            *_float4_tiles(parameters, problem, threads),
            _access("shared", "load", "A", code_a, read_a, bm, floats=4, executions=bk * wmiter * tm // 4),
            _access("shared", "load", "B", code_b, read_b, bn, floats=4, executions=bk * wniter * tn // 4),
            _access(
                "global", "store", "C", code_c, output, problem.n, floats=4, executions=stores, once=True
            ),
        ),
    )


_FAMILIES: Mapping[str, Callable[[Mapping[str, int], Problem], _Kernel]] = {
    "naive": lambda parameters, problem: _untiled(parameters, problem, along_rows=False),
    "coalesced": lambda parameters, problem: _untiled(parameters, problem, along_rows=True),
    "shared": _shared,
    "block1d": _block1d,
    "block2d": _block2d,
    "vectorized": _vectorized,
    "warptiled": _warptiled,
}
"""Stage name to the function that writes down its accesses."""
