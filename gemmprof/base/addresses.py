"""Where a stage's threads go, declared in its catalog entry: the one home of its index arithmetic outside its source.

Declared, not traced: the declaration travels in a run's file, so that pages of old runs keep theirs; it holds for
tensor copies, which no thread executes, and needs no compiler. What it says is checked against the counters of the
recorded run, to the last sector (tests/analysis/ladder/test_ladder_measured.py).

All texts are integer arithmetic (`gemmprof.base.expressions`) over the tile parameters, M, N and K, and ``t``, the
thread in its block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of a kernel, as the threads of warp 0 in block (0, 0) execute it at the first step along K.

    Attributes:
        space: ``global`` or ``shared``.
        operation: ``load`` or ``store``.
        matrix: which one it touches, A, B or C.
        code: the access as the source writes it, for people.
        row, column: coordinates of the first element that thread ``t`` touches, in the matrix or its tile.
        place: for shared memory, where the tile keeps that element, counted in elements; it may use ``row`` and
            ``column``. Global memory is row-major.
        elements: neighbouring elements that a thread moves at once.
        executions: how often a thread executes it in one step along K (``once``: in the whole kernel).
        once: it happens once, after the loop along K.
        asynchronous: it is the shared half of an asynchronous copy from the same matrix's global load.
        ahead: executions beyond those of the steps: operands loaded for a step that does not come.
        as_float: shared memory keeps the elements as float32, whatever the matrix's type.
    """

    space: Literal["global", "shared"]
    operation: Literal["load", "store"]
    matrix: Literal["A", "B", "C"]
    code: str
    row: str
    column: str
    place: str = ""
    elements: Annotated[int, Meta(ge=1, le=1024)] = 1
    executions: str = "1"
    once: bool = False
    asynchronous: bool = False
    ahead: str = "0"
    as_float: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """What the copy engine brings of a matrix in a step: boxes of rows x columns.

    Attributes:
        matrix: which one it is of, A or B.
        rows, columns: the size of a box, in the kernel's own letters.
        code: the copy as the source writes it, for people.
        layout: how the box then lies in shared memory, and why.
        boxes: how many of them a block asks for.
        receivers: blocks of a cluster that each ask for a part, which is written to all of them.
    """

    matrix: Literal["A", "B"]
    rows: str
    columns: str
    code: str
    layout: str
    boxes: str = "1"
    receivers: str = "1"


@dataclass(frozen=True, slots=True)
class OperandRead:
    """What one warpgroup's wgmma reads of a tile in shared memory in a step; no thread takes part.

    Attributes:
        matrix: which one the tile is of, A or B.
        rows, columns: what is read of it, in the kernel's own letters.
    """

    matrix: Literal["A", "B"]
    rows: str
    columns: str


@dataclass(frozen=True, slots=True)
class Addresses:
    """Every load and store of a stage.

    Attributes:
        tile: rows and columns of C that a block computes, and its step along K.
        threads: threads of a block.
        computing: those of them that execute the accesses, the first ones; '' for all. The others only start copies.
        resident: the blocks stay and take tile after tile: there are fewer of them than tiles.
        operand_reads: what each warpgroup that computes reads by wgmma.
        names: shorthands that the other texts use, in an order in which each may use those before it.
        accesses, copies: in the order of the source.
        global_formula, shared_formula: elements loaded an output from global and shared memory, in tile letters, for
            people ('' where there are none).
    """

    tile: tuple[str, str, str]
    threads: str
    accesses: tuple[Access, ...]
    copies: tuple[Copy, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    global_formula: str = ""
    shared_formula: str = ""
    computing: str = ""
    resident: bool = False
    operand_reads: tuple[OperandRead, ...] = ()
