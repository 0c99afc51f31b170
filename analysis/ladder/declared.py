"""What a stage declares of its addresses, worked out for its tile parameters and a problem.

Coordinates are those of warp 0 in block (0, 0) at the first step along K; other warps and steps shift them by whole
rows or tiles, which changes no pattern. The declaration may come from anybody's run: what has no value gives no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmprof.analysis.ladder.access_pattern import AccessPatterns, TensorCopy, WarpAccess
from gemmprof.base.addresses import Access, Addresses
from gemmprof.base.expressions import ExpressionError, evaluate
from gemmprof.gpu.arch import WARP
from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32
from gemmprof.model import Problem, Stage

_SPACES = {"global": "global memory", "shared": "shared memory"}
WIDEST = 16  # bytes that a thread moves at most with one instruction
MOST = 64  # accesses, copies and shorthands of a stage


def access_patterns(stage: Stage, problem: Problem) -> AccessPatterns | None:
    """The access patterns of a stage on a problem; None where it declares none, or none that fit its parameters."""
    if stage.addresses is None:
        return None
    try:
        return _Model(stage, stage.addresses, problem).patterns()
    except (ExpressionError, TypeError, AttributeError, KeyError):
        # A run of another version, or one that somebody changed: texts that do not fit the parameters.
        return None


def block_tile(stage: Stage) -> tuple[int, int] | None:
    """Rows and columns of C that a block computes; None where the stage does not say."""
    if stage.addresses is None:
        return None
    try:
        rows, columns, _ = (_positive(text, _parameters(stage)) for text in stage.addresses.tile)
    except (ExpressionError, TypeError, ValueError):
        return None
    return rows, columns


def _parameters(stage: Stage) -> dict[str, int]:
    """The stage's letters.

    Raises:
        ExpressionError: a value is no whole number.
    """
    if any(type(value) is not int or value < 0 for value in stage.parameters.values()):
        raise ExpressionError("tile parameters are whole numbers from 0 on")
    return dict(stage.parameters)


def _positive(text: str, names: Mapping[str, int]) -> int:
    value = evaluate(text, names)
    if value < 1:
        raise ExpressionError(f"'{text}' is {value}")
    return value


@dataclass(frozen=True, slots=True)
class _Lane:
    """One thread's place."""

    row: int
    column: int
    address: int


class _Model:
    """The declaration with its letters bound to values."""

    def __init__(self, stage: Stage, declared: Addresses, problem: Problem) -> None:
        self._stage, self._declared, self._problem = stage, declared, problem
        self._letters = {**_parameters(stage), "M": problem.m, "N": problem.n, "K": problem.k}
        a, c = (ELEMENT_TYPES.get(name, FLOAT32).bytes for name in (problem.dtype, problem.c_dtype))
        self._element_bytes = {"A": a, "B": a, "C": c}

    def patterns(self) -> AccessPatterns:
        """Everything that pages draw and the traffic model adds up."""
        declared = self._declared
        parts = (declared.accesses, declared.copies, declared.operand_reads, declared.names)
        if max(map(len, parts)) > MOST:
            raise ExpressionError("more is declared than a stage has")
        names = self._names(0)
        rows, columns, depth = (_positive(text, names) for text in self._declared.tile)
        problem = self._problem
        return AccessPatterns(
            self._stage,
            problem,
            warps_per_block=-(-_positive(declared.threads, names) // WARP),
            computing_warps=-(-_positive(declared.computing or declared.threads, names) // WARP),
            resident=declared.resident,
            blocks=-(-problem.m // rows) * -(-problem.n // columns),
            steps=-(-problem.k // depth),
            accesses=tuple(self._access(access) for access in self._declared.accesses),
            whole_tiles=not (problem.m % rows or problem.n % columns or problem.k % depth),
            copies=tuple(
                TensorCopy(
                    copy.matrix,
                    _positive(copy.rows, names),
                    _positive(copy.columns, names),
                    self._element_bytes[copy.matrix],
                    copy.code,
                    copy.layout,
                    _positive(copy.boxes, names),
                    _positive(copy.receivers, names),
                )
                for copy in declared.copies
            ),
            operand_bytes_a_step=sum(
                _positive(read.rows, names)
                * _positive(read.columns, names)
                * self._element_bytes[read.matrix]
                for read in declared.operand_reads
            ),
        )

    def _names(self, thread: int) -> dict[str, int]:
        """Letters and shorthands, as the thread sees them."""
        names = {**self._letters, "t": thread}
        for name, text in self._declared.names.items():
            names[name] = evaluate(text, names)
        return names

    def _access(self, access: Access) -> WarpAccess:
        names = self._names(0)
        direction = "from" if access.operation == "load" else "to"
        if (
            access.space not in _SPACES
            or access.operation not in ("load", "store")
            or access.matrix not in self._element_bytes
            or type(access.elements) is not int
        ):
            raise ExpressionError("this is no access")
        size = access.elements * self._size(access)
        if not 1 <= size <= WIDEST:
            raise ExpressionError(f"{size} bytes are no access")
        lanes = self._lanes(access)
        return WarpAccess(
            name=f"{access.space}_{access.operation}_{access.matrix.lower()}",
            title=f"{access.operation.title()} of {access.matrix} {direction} {_SPACES[access.space]}",
            space=access.space,
            operation=access.operation,
            matrix=access.matrix,
            code=access.code,
            bytes_per_thread=size,
            addresses=tuple(lane.address for lane in lanes),
            rows=tuple(lane.row for lane in lanes),
            columns=tuple(lane.column for lane in lanes),
            executions=_positive(access.executions, names),
            once=access.once,
            copied_from=self._source_of(access) if access.asynchronous else (),
            ahead=evaluate(access.ahead, names),
            element_bytes=self._size(access),
        )

    def _source_of(self, copy: Access) -> tuple[int, ...]:
        """The global addresses that an asynchronous copy into shared memory reads."""
        for access in self._declared.accesses:
            if (access.space, access.operation, access.matrix) == ("global", "load", copy.matrix):
                return tuple(lane.address for lane in self._lanes(access))
        raise ExpressionError(f"nothing is copied to {copy.matrix}")

    def _lanes(self, access: Access) -> Sequence[_Lane]:
        length = self._problem.k if access.matrix == "A" else self._problem.n
        place = access.place or f"row * {length} + column"
        lanes = []
        for thread in range(WARP):
            names = self._names(thread)
            row, column = evaluate(access.row, names), evaluate(access.column, names)
            at = evaluate(place, {**names, "row": row, "column": column})
            lanes.append(_Lane(row, column, at * self._size(access)))
        return lanes

    def _size(self, access: Access) -> int:
        """Bytes of an element where the access touches it."""
        return FLOAT32.bytes if access.as_float else self._element_bytes[access.matrix]
