"""Integer arithmetic as C writes it, evaluated in Python: conditions on tile parameters, places of elements.

The text may come from anybody's file (a run's ``run.json``): nothing but whole numbers, names, operators and
parentheses is understood, and its length and values are bounded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta

LONGEST = 400  # characters of an expression
LARGEST = 1 << 62  # no value may be larger than this
_ALLOWED = re.compile(r"[\w\s()+\-*/%<>=!&|^]+", re.ASCII)
# C's operators in Python's letters: ``!`` as the one that binds as tightly, which no text holds by itself.
_WORDS = ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", "~"), (r"/", "//"))

# All that an expression may consist of: nothing that calls, looks up or grows faster than its text.
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Load, ast.Constant),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitXor, ast.BitAnd, ast.BitOr),
    *(ast.USub, ast.Invert, ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


class ExpressionError(ValueError):
    """The text is no plain integer arithmetic, or has no value here (a name without one, a division by zero)."""


def evaluate(expression: str, names: Mapping[str, int]) -> int:
    """The value of an expression; C and Python agree where no operand is negative; ExpressionError if it has none."""
    try:
        value = int(eval(_compiled(expression), {"__builtins__": {}}, names))
    except NameError as error:
        raise ExpressionError(f"'{expression}' speaks of {error.name}, which has no value") from None
    except (ZeroDivisionError, TypeError, RecursionError) as error:
        raise ExpressionError(f"'{expression}' has no value: {error}") from None
    if abs(value) > LARGEST:
        raise ExpressionError(f"'{expression}' is too large")
    return value


def is_arithmetic(expression: str) -> bool:
    """Whether the text is an expression at all, whatever its names stand for."""
    try:
        _compiled(expression)
    except ExpressionError:
        return False
    return True


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    """The expression, once it is known to hold nothing but `_NODES`."""
    if len(expression) > LONGEST or not _ALLOWED.fullmatch(expression):
        raise ExpressionError(f"'{expression[:LONGEST]}' is not plain integer arithmetic")
    text = expression
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    text = " ".join(text.split())
    try:
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            whole = not isinstance(node, ast.Constant) or (type(node.value) is int and node.value <= LARGEST)
            if not isinstance(node, _NODES) or not whole:
                raise ExpressionError(f"'{expression}' is not plain integer arithmetic")
            if isinstance(node, ast.Compare) and _reads_otherwise_in_c(node, text):
                why = "reads otherwise in C: put its comparisons in parentheses"
                raise ExpressionError(f"'{expression}' {why}")
        return compile(ast.fix_missing_locations(_AsInC().visit(tree)), "<expression>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"'{expression}' is not plain integer arithmetic") from None


def _reads_otherwise_in_c(comparison: ast.Compare, text: str) -> bool:
    """Whether C groups the operands of a comparison in another way: ``a & b == c`` is ``a & (b == c)`` there.

    A chain, ``a < b < c``, asks something else there, too.
    """
    if len(comparison.ops) > 1:
        return True
    left, right = comparison.left, comparison.comparators[0]
    bare_left = _is_bitwise(left) and not text[left.end_col_offset :].lstrip().startswith(")")
    bare_right = _is_bitwise(right) and not text[: right.col_offset].rstrip().endswith("(")
    return bare_left or bare_right


def _is_bitwise(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor))


class _AsInC(ast.NodeTransformer):
    """Gives ``!``, ``&&`` and ``||`` C's values: 0 or 1."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Not(), node.operand) if isinstance(node.op, ast.Invert) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node))


# --- Addresses --------------------------------------------------------------------------------------------------------
# Where a stage's threads go, declared in its catalog entry: the one home of its index arithmetic outside its source.
#
# Declared, not traced: the declaration travels in a run's file, so that pages of old runs keep theirs; it holds for
# tensor copies, which no thread executes, and needs no compiler. What it says is checked against the counters of the
# recorded run, to the last sector (tests/analysis/ladder/test_ladder_measured.py).
#
# All texts are integer arithmetic (`gemmprof.base.expressions`) over the tile parameters, M, N and K, and ``t``, the
# thread in its block.


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store of a kernel, as the threads of warp 0 in block (0, 0) execute it at the first step along K."""

    space: Literal["global", "shared"]  # ``global`` or ``shared``
    operation: Literal["load", "store"]  # ``load`` or ``store``
    matrix: Literal["A", "B", "C"]  # which one it touches, A, B or C
    code: str  # the access as the source writes it, for people
    row: str  # row, column: coordinates of the first element that thread ``t`` touches, in the matrix or its tile
    column: str
    # for shared memory, where the tile keeps that element, counted in elements; it may use ``row`` and
    # ``column``. Global memory is row-major.
    place: str = ""
    elements: Annotated[int, Meta(ge=1, le=1024)] = 1  # neighbouring elements that a thread moves at once
    # how often a thread executes it in one step along K (``once``: in the whole kernel)
    executions: str = "1"
    once: bool = False  # it happens once, after the loop along K
    # it is the shared half of an asynchronous copy from the same matrix's global load
    asynchronous: bool = False
    ahead: str = "0"  # executions beyond those of the steps: operands loaded for a step that does not come
    as_float: bool = False  # shared memory keeps the elements as float32, whatever the matrix's type


@dataclass(frozen=True, slots=True)
class Copy:
    """What the copy engine brings of a matrix in a step: boxes of rows x columns."""

    matrix: Literal["A", "B"]  # which one it is of, A or B
    rows: str  # of a box, in the kernel's own letters
    columns: str  # of a box, likewise
    code: str  # the copy as the source writes it, for people
    layout: str  # how the box then lies in shared memory, and why
    boxes: str = "1"  # how many of them a block asks for
    receivers: str = "1"  # blocks of a cluster that each ask for a part, written to all of them


@dataclass(frozen=True, slots=True)
class OperandRead:
    """What one warpgroup's wgmma reads of a tile in shared memory in a step; no thread takes part."""

    matrix: Literal["A", "B"]  # which one the tile is of, A or B
    rows: str  # what is read of it, in the kernel's own letters
    columns: str  # likewise, the columns


@dataclass(frozen=True, slots=True)
class Addresses:
    """Every load and store of a stage."""

    tile: tuple[str, str, str]  # rows and columns of C that a block computes, and its step along K
    threads: str  # threads of a block
    accesses: tuple[Access, ...]  # accesses, copies: in the order of the source
    copies: tuple[Copy, ...] = ()
    # shorthands that the other texts use, in an order in which each may use those before it
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # global_formula, shared_formula: elements loaded an output from global and shared memory, in tile
    # letters, for people ('' where there are none)
    global_formula: str = ""
    shared_formula: str = ""
    # those of them that execute the accesses, the first ones; '' for all. The others only start copies.
    computing: str = ""
    resident: bool = False  # the blocks stay and take tile after tile: there are fewer of them than tiles
    operand_reads: tuple[OperandRead, ...] = ()  # what each warpgroup that computes reads by wgmma
