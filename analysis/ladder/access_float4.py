"""The loads and stores of stages 6 to 12, whose tiles move four floats at a time: layouts and warp tiles.

The index arithmetic is that of ``kernels/sgemm``: ``vectorized.cu``, ``linearized.cu``, ``padded.cu``,
``autotuned.cu``, ``warp_tile.cuh`` and ``async_copy.cu``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gemmprof.analysis.ladder.access_pattern import (
    WARP_SIZE,
    Coordinates,
    KernelAccesses,
    Position,
    WarpAccess,
    rows_of,
    start_of_column,
    warp_access,
)
from gemmprof.model import Problem


@dataclass(frozen=True, slots=True)
class Layout:
    """Where shared memory keeps an element of a tile, in floats.

    Attributes:
        a: of the A tile, which lies transposed: (step along K, row of A).
        b: of the B tile: (step along K, column of B).
        code_a, code_b: how the source writes that place, with ``{k}`` and ``{at}`` for the two coordinates.
    """

    a: Position
    b: Position
    code_a: str = "{k} * BM + {at}"
    code_b: str = "{k} * BN + {at}"


def plain(parameters: Mapping[str, int]) -> Layout:
    """Stages 6, 10 and 11: row-major, nothing between the rows."""
    return Layout(rows_of(parameters["BM"]), rows_of(parameters["BN"]))


def linearized(parameters: Mapping[str, int]) -> Layout:
    """Stage 7: the parts of all threads' columns side by side, each part turned; A's halves of 16 rows swapped."""
    bm, bn, tn = parameters["BM"], parameters["BN"], parameters["TN"]
    parts, owners = tn // 4, bn // tn

    def place_a(k: int, row: int) -> int:
        return k * bm + (row ^ (k // 4 % 2 * 16))

    def place_b(k: int, column: int) -> int:
        owner, part = divmod(column // 4, parts)
        return k * bn + 4 * (part * owners + (owner + part * (8 // parts)) % owners) + column % 4

    return Layout(place_a, place_b, "{k} * BM + a_position({k}, {at})", "{k} * BN + b_position(({at}) / 4)")


def padded(parameters: Mapping[str, int]) -> Layout:
    """Stages 8 and 9: PAD floats after each row of A, four floats after every 32 columns of B."""
    lda, ldb = parameters["BM"] + parameters["PAD"], parameters["BN"] + parameters["BN"] // 32 * 4

    def place_b(k: int, column: int) -> int:
        return k * ldb + column + column // 32 * 4

    return Layout(rows_of(lda), place_b, "{k} * LDA + {at}", "{k} * LDB + b_position({at})")


def _float4_loads(
    parameters: Mapping[str, int], problem: Problem, threads: int, layout: Layout
) -> tuple[WarpAccess, ...]:
    """How stages 6 to 11 bring their tiles in: four floats a load, A transposed on its way into shared memory."""
    bm, bn, bk = (parameters[letter] for letter in ("BM", "BN", "BK"))

    def tile_a(thread: int) -> tuple[int, int]:
        return thread // (bk // 4), thread % (bk // 4) * 4

    def tile_b(thread: int) -> tuple[int, int]:
        return thread // (bn // 4), thread % (bn // 4) * 4

    def transposed(thread: int) -> tuple[int, int]:
        row, column = tile_a(thread)
        return column, row

    code_a = f"As[{layout.code_a.format(k='k', at='row')}]"
    code_b = f"float4 Bs[{layout.code_b.format(k='k', at='column')}]"
    a_loads, b_loads = bm * bk // (4 * threads), bk * bn // (4 * threads)
    return (
        warp_access(
            "global", "load", "A", "float4 A[row * lda + k]", tile_a, problem.k, floats=4, executions=a_loads
        ),
        warp_access(
            "global",
            "load",
            "B",
            "float4 B[k * ldb + column]",
            tile_b,
            problem.n,
            floats=4,
            executions=b_loads,
        ),
        warp_access("shared", "store", "A", code_a, transposed, layout.a, executions=4 * a_loads),
        warp_access("shared", "store", "B", code_b, tile_b, layout.b, floats=4, executions=b_loads),
    )


def vectorized(
    parameters: Mapping[str, int],
    problem: Problem,
    *,
    layout: Callable[[Mapping[str, int]], Layout] = plain,
) -> KernelAccesses:
    """Stages 6 to 9: as stage 5, four floats an access; the stages differ in the layout of shared memory."""
    bm, bn, bk, tm, tn = (parameters[letter] for letter in ("BM", "BN", "BK", "TM", "TN"))
    threads = (bm // tm) * (bn // tn)
    shared = layout(parameters)

    def output(thread: int) -> tuple[int, int]:
        return thread // (bn // tn) * tm, thread % (bn // tn) * tn

    return KernelAccesses(
        (bm, bn, bk),
        threads,
        (
            *_float4_loads(parameters, problem, threads, shared),
            *_outer_product_reads(output, shared, bk * tm // 4, bk * tn // 4),
            _store_of_c(output, problem, tm * tn // 4),
        ),
    )


def _outer_product_reads(
    output: Coordinates, layout: Layout, a_executions: int, b_executions: int
) -> tuple[WarpAccess, WarpAccess]:
    """The shared loads of the main loop: a thread reads its rows of A and its columns of B, four floats a load."""
    code_a = f"float4 As[{layout.code_a.format(k='i', at='thread_row + m')}]"
    code_b = f"float4 Bs[{layout.code_b.format(k='i', at='thread_col + n')}]"

    def read_a(thread: int) -> tuple[int, int]:
        return 0, output(thread)[0]

    read_b = start_of_column(output)
    return (
        warp_access("shared", "load", "A", code_a, read_a, layout.a, floats=4, executions=a_executions),
        warp_access("shared", "load", "B", code_b, read_b, layout.b, floats=4, executions=b_executions),
    )


def _store_of_c(output: Coordinates, problem: Problem, executions: int) -> WarpAccess:
    code = "float4 C[row * ldc + col]"
    return warp_access(
        "global", "store", "C", code, output, problem.n, floats=4, executions=executions, once=True
    )


def warptiled(
    parameters: Mapping[str, int], problem: Problem, *, asynchronous: bool = False
) -> KernelAccesses:
    """Stages 10 to 12: a warp owns WM x WN, in sub-tiles whose threads read neighbouring pieces of the same rows."""
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

    if asynchronous:
        layout = Layout(rows_of(bm + parameters.get("PAD", _ASYNC_PAD)), rows_of(bn), "{k} * LDA + {at}")
        loads = _asynchronous_loads(parameters, problem, threads, layout)
    else:
        layout = plain(parameters)
        loads = _float4_loads(parameters, problem, threads, layout)
    return KernelAccesses(
        (bm, bn, bk),
        threads,
        (
            *loads,
            *_outer_product_reads(output, layout, bk * wmiter * tm // 4, bk * wniter * tn // 4),
            _store_of_c(output, problem, wmiter * wniter * tm * tn // 4),
        ),
    )


_ASYNC_PAD = 4
"""Floats after each row of stage 12's A tile."""


def _asynchronous_loads(
    parameters: Mapping[str, int], problem: Problem, threads: int, layout: Layout
) -> tuple[WarpAccess, ...]:
    """Stage 12: cp.async, four bytes of A (8 columns x 4 rows a warp, transposed by the copy), sixteen of B."""
    bm, bn, bk = (parameters[letter] for letter in ("BM", "BN", "BK"))

    def tile_a(thread: int) -> tuple[int, int]:
        return divmod(thread, 8)

    def transposed(thread: int) -> tuple[int, int]:
        row, column = tile_a(thread)
        return column, row

    def tile_b(thread: int) -> tuple[int, int]:
        return thread // (bn // 4), thread % (bn // 4) * 4

    a_copies, b_copies = bm * bk // threads, bk * bn // (4 * threads)
    from_a, from_b = "cp.async 4 from A[row * lda + k]", "cp.async 16 from B[k * ldb + column]"
    to_a, to_b = "cp.async 4 to As[k * LDA + row]", "cp.async 16 to Bs[k * BN + column]"
    load_a = warp_access("global", "load", "A", from_a, tile_a, problem.k, executions=a_copies)
    load_b = warp_access("global", "load", "B", from_b, tile_b, problem.n, floats=4, executions=b_copies)
    return (
        load_a,
        load_b,
        warp_access(
            "shared",
            "store",
            "A",
            to_a,
            transposed,
            layout.a,
            executions=a_copies,
            copied_from=load_a.addresses,
        ),
        warp_access(
            "shared",
            "store",
            "B",
            to_b,
            tile_b,
            layout.b,
            floats=4,
            executions=b_copies,
            copied_from=load_b.addresses,
        ),
    )
