"""The table of stages, and building blocks of the addresses that they declare, in tile letters.

`gemmprof.base.expressions` says how to read them. The A tile of stages 6 to 12 lies transposed, so its coordinates are
(step along K, row of A).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gemmprof.base.documents import checked
from gemmprof.base.expressions import Access, Addresses
from gemmprof.model import Stage

Operand = Literal["A", "B"]
TILE = ("BM", "BN", "BK")
OPERANDS_ONCE_A_BLOCK = "K/BM + K/BN"


# The stages of each ladder, and under ``tuning`` what a search tries.
TABLE = tomllib.loads(Path(__file__).with_name("stages.toml").read_text("utf-8"))


def stages_of(ladder: str, folder: str, addresses: Mapping[str, Addresses]) -> tuple[Stage, ...]:
    """The stages of a ladder as the table has them, numbered, with their sources in a folder of ``kernels/``.

    Args:
        addresses: what each declares, by its name.
    """
    found = []
    for number, entry in enumerate(TABLE[ladder]):
        source = None if "yardstick" in entry else f"{folder}/{entry.get('source', entry['name'])}.cu"
        stage = checked({**entry, "number": number, "source": source}, Stage)
        found.append(replace(stage, addresses=addresses.get(stage.name)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where shared memory keeps the element (row, column) of a tile, and how the source writes that place."""

    place_a: str = "row * BM + column"
    place_b: str = "row * BN + column"
    code_a: str = "{k} * BM + {at}"
    code_b: str = "{k} * BN + {at}"


def fetch(matrix: Operand, code: str, row: str, column: str, **more: Any) -> Access:
    """A load of global memory."""
    return Access("global", "load", matrix, code, row, column, **more)


def put(matrix: Operand, code: str, row: str, column: str, place: str, **more: Any) -> Access:
    """A store to shared memory."""
    return Access("shared", "store", matrix, code, row, column, place, **more)


def use(matrix: Operand, code: str, row: str, column: str, place: str, **more: Any) -> Access:
    """A load of shared memory."""
    return Access("shared", "load", matrix, code, row, column, place, **more)


def write(code: str, row: str, column: str, **more: Any) -> Access:
    """A store of C."""
    return Access("global", "store", "C", code, row, column, once=True, **more)


PLAIN = Layout()  # row-major, nothing between the rows

# PAD floats after each row of A, four floats after every 32 columns of B.
PADDED = Layout(
    "row * (BM + PAD) + column",
    "row * (BN + BN / 32 * 4) + column + column / 32 * 4",
    "{k} * LDA + {at}",
    "{k} * LDB + b_position({at})",
)

# The parts of all threads' columns side by side, each part turned; A's halves of 16 rows swapped.
LINEARISED = Layout(
    "row * BM + (column ^ (row / 4 % 2 * 16))",
    "row * BN + 4 * (column / 4 % PARTS * OWNERS"
    " + (column / 4 / PARTS + column / 4 % PARTS * (8 / PARTS)) % OWNERS) + column % 4",
    "{k} * BM + a_position({k}, {at})",
    "{k} * BN + b_position(({at}) / 4)",
)


def untiled(row: str, column: str) -> Addresses:
    """One thread an output, straight from global memory; ``row`` and ``column`` are the thread's output."""
    return Addresses(
        ("BLOCK", "BLOCK", "1"),
        "BLOCK * BLOCK",
        (
            fetch("A", "A[row * lda + i]", row, "0"),
            fetch("B", "B[i * ldb + col]", "0", column),
            write("C[row * ldc + col]", row, column),
        ),
        global_formula="2K",
    )


def float4_loads(layout: Layout) -> tuple[Access, ...]:
    """Tiles brought in four floats a load, A transposed on its way into shared memory."""
    row, k = "t / (BK / 4)", "t % (BK / 4) * 4"
    b_row, column = "t / (BN / 4)", "t % (BN / 4) * 4"
    times_a, times_b = "BM * BK / (4 * THREADS)", "BK * BN / (4 * THREADS)"
    store_a = f"As[{layout.code_a.format(k='k', at='row')}]"
    store_b = f"float4 Bs[{layout.code_b.format(k='k', at='column')}]"
    return (
        fetch("A", "float4 A[row * lda + k]", row, k, elements=4, executions=times_a),
        fetch("B", "float4 B[k * ldb + column]", b_row, column, elements=4, executions=times_b),
        put("A", store_a, k, row, layout.place_a, executions=f"4 * ({times_a})"),
        put("B", store_b, b_row, column, layout.place_b, elements=4, executions=times_b),
    )


def outer_product(row: str, column: str, layout: Layout, a_times: str, b_times: str) -> tuple[Access, ...]:
    """The main loop's shared loads: a thread with its first output at (row, column) reads rows of A, columns of B."""
    code_a = f"float4 As[{layout.code_a.format(k='i', at='thread_row + m')}]"
    code_b = f"float4 Bs[{layout.code_b.format(k='i', at='thread_col + n')}]"
    return (
        use("A", code_a, "0", row, layout.place_a, elements=4, executions=a_times),
        use("B", code_b, "0", column, layout.place_b, elements=4, executions=b_times),
    )


def store_c(row: str, column: str, times: str) -> Access:
    """The thread's part of C, four floats a store."""
    code = "float4 C[row * ldc + col]"
    return write(code, row, column, elements=4, executions=times)


def blocked(threads: str, *accesses: Access, **more: Any) -> Addresses:
    """Blocks of ``threads`` that bring both operands of a tile once."""
    return Addresses(TILE, threads, accesses, global_formula=OPERANDS_ONCE_A_BLOCK, **more)


def thread_tiles(layout: Layout, names: Mapping[str, str] | None = None) -> Addresses:
    """Stages 6 to 9: a thread computes TM x TN, four floats an access; they differ in the layout of shared memory."""
    row, column = "t / (BN / TN) * TM", "t % (BN / TN) * TN"
    return blocked(
        "THREADS",
        *float4_loads(layout),
        *outer_product(row, column, layout, "BK * TM / 4", "BK * TN / 4"),
        store_c(row, column, "TM * TN / 4"),
        names={"THREADS": "BM / TM * (BN / TN)", **(names or {})},
        shared_formula="K (TM + TN) / (TM TN)",
    )


def warp_tiles(loads: tuple[Access, ...], layout: Layout) -> Addresses:
    """Stages 10 to 12: a warp owns WM x WN, in sub-tiles whose threads read neighbouring pieces of the same rows."""
    row = "t / 32 / (BN / WN) * WM + t % 32 / LANES_N * TM"
    column = "t / 32 % (BN / WN) * WN + t % 32 % LANES_N * TN"
    return blocked(
        "THREADS",
        *loads,
        *outer_product(row, column, layout, "BK * WMITER * TM / 4", "BK * WNITER * TN / 4"),
        store_c(row, column, "WMITER * WNITER * TM * TN / 4"),
        names={
            "THREADS": "BM / WM * (BN / WN) * 32",
            "WMITER": "WM * WN / (32 * TM * TN * WNITER)",
            "LANES_N": "WN / WNITER / TN",
        },
        shared_formula="K (WMITER TM + WNITER TN) / (WMITER TM WNITER TN)",
    )
