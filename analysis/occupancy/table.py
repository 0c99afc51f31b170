"""Theoretical occupancy of many configurations at once: the arithmetic of `calculator` on arrays.

A million configurations take about a second; numpy and pandas are imported only when the function is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gemmprof.analysis.occupancy.calculator import occupancy
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import LIMITS, MAX_BARRIERS_PER_BLOCK, parse_compute_capability
from gemmprof.model import ArchLimits

if TYPE_CHECKING:
    Integers = NDArray[np.int64]

# Columns that a table of configurations may have; the last three may be left out.
INPUTS = (
    "compute_capability",
    "threads_per_block",
    "registers_per_thread",
    "shared_memory_per_block",
    "shared_memory_config",
    "block_barriers",
)

_DEFAULTS: Mapping[str, Any] = {
    "shared_memory_per_block": 0,
    "shared_memory_config": None,
    "block_barriers": 1,
}
_LARGEST_CONFIG = -(2**50)  # stands for a carve-out that was not named; no number that anyone would give
_LIMITER_NAMES = ("barriers", "blocks", "registers", "shared_memory")


def occupancy_table(
    configurations: Any = None,
    *,
    compute_capability: Any = None,
    threads_per_block: Any = None,
    registers_per_thread: Any = None,
    shared_memory_per_block: Any = None,
    shared_memory_config: Any = None,
    block_barriers: Any = None,
    invalid: Literal["raise", "mark"] = "raise",
) -> pd.DataFrame:
    """Theoretical occupancy of many launch configurations.

    Args:
        configurations: a DataFrame (or a mapping of columns) with the columns of `INPUTS`; the last three are optional,
            other columns are ignored.
        compute_capability, threads_per_block, registers_per_thread, shared_memory_per_block, shared_memory_config,
            block_barriers: arrays of one length or single values, as in `gemmprof.occupancy`. They stand in place of
            the column of that name.
        invalid: ``"raise"`` stops at the first configuration that no device accepts; ``"mark"`` goes on, and the
            result has a column ``problem`` (the reason, '' if there is none) beside numbers that are NaN there.

    Returns:
        One row per configuration, with the index of ``configurations`` if that is a DataFrame: ``blocks_per_sm``,
        ``active_warps_per_sm``, ``theoretical_occupancy`` (0 to 1), ``limiters`` (joined with ``|``, as
        categories), ``registers_allocated_per_block``, ``shared_memory_allocated_per_block``, ``registers_left``,
        ``shared_memory_left`` and ``limit_registers``, ``limit_shared_memory``, ``limit_warps``, ``limit_blocks``,
        ``limit_barriers`` (missing where the architecture does not count barriers).

    Raises:
        OccupancyError: for a missing column, arrays of different lengths, values that are no whole numbers, and with
            ``invalid="raise"`` for the first impossible configuration (the message names its row).
    """
    given = {
        "compute_capability": compute_capability,
        "threads_per_block": threads_per_block,
        "registers_per_thread": registers_per_thread,
        "shared_memory_per_block": shared_memory_per_block,
        "shared_memory_config": shared_memory_config,
        "block_barriers": block_barriers,
    }
    columns = _columns(configurations, given)
    row_index = configurations.index if isinstance(configurations, pd.DataFrame) else None
    rows = _rows(columns)
    legal = rows.legal()
    # Rows that are not legal go through the same arithmetic with harmless values and are taken out at the end.
    answers, fits = _answers(rows.harmless(legal))
    legal &= fits
    problems = None
    if not legal.all():
        wrong = np.flatnonzero(~legal)
        problems = _problems(columns, wrong, len(legal), row_index, raise_first=invalid == "raise")
    result = pd.DataFrame(answers, index=row_index, copy=False)
    if invalid == "mark":
        if problems is not None:
            result = result.mask(pd.Series(~legal, index=result.index))
        result["problem"] = "" if problems is None else problems
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The configurations as columns of whole numbers: ``architectures[which]`` is the architecture of each row."""

    architectures: list[ArchLimits]
    which: Integers
    threads: Integers
    registers: Integers
    asked: Integers
    config: Integers
    barriers: Integers

    def limit(self, name: str) -> Integers:
        """One limit of every row's architecture."""
        return np.array([getattr(row, name) for row in self.architectures], dtype=np.int64)[self.which]

    def legal(self) -> NDArray[np.bool_]:
        """Which rows a device of their architecture accepts, as far as single values tell."""
        config_exists = np.zeros(len(self.which), dtype=bool)
        for position, row in enumerate(self.architectures):
            config_exists |= (self.which == position) & np.isin(self.config, row.shared_memory_configs)
        most = self.limit("max_shared_memory_per_block") - self.limit("reserved_shared_memory_per_block")
        legal: NDArray[np.bool_] = (
            config_exists
            & (self.threads >= 1)
            & (self.threads <= self.limit("max_threads_per_block"))
            & (self.registers >= 1)
            & (self.registers <= self.limit("max_registers_per_thread"))
            & (self.asked >= 0)
            & (self.asked <= most)
            & (self.barriers >= 0)
            & (self.barriers <= MAX_BARRIERS_PER_BLOCK)
        )
        return legal

    def harmless(self, legal: NDArray[np.bool_]) -> _Rows:
        """The same with values that any arithmetic bears where a row is not legal."""
        return replace(
            self,
            threads=np.where(legal, self.threads, 1),
            registers=np.where(legal, self.registers, 1),
            asked=np.where(legal, self.asked, 0),
            barriers=np.where(legal, self.barriers, 0),
        )


def _rows(columns: Mapping[str, Any]) -> _Rows:
    """The columns as whole numbers of one length.

    Raises:
        OccupancyError: they are of different lengths, or hold something else.
    """
    size = _common_length(columns)
    architectures, which = _architectures(columns["compute_capability"], size)
    whole = {name: _integers(name, columns[name], size) for name in INPUTS if name != "compute_capability"}
    config = whole["shared_memory_config"]
    largest = np.array([row.shared_memory_per_sm for row in architectures], dtype=np.int64)[which]
    return _Rows(
        architectures,
        which,
        threads=whole["threads_per_block"],
        registers=whole["registers_per_thread"],
        asked=whole["shared_memory_per_block"],
        config=np.where(config == _LARGEST_CONFIG, largest, config),
        barriers=whole["block_barriers"],
    )


def _answers(rows: _Rows) -> tuple[dict[str, Any], NDArray[np.bool_]]:
    """The columns of the result, by the arithmetic of `calculator`, and whether each row's carve-out holds a block."""
    limit = rows.limit
    warps = -(-rows.threads // 32)
    unit = limit("register_allocation_unit")
    per_warp = -(-rows.registers * 32 // unit) * unit
    partitions = limit("warp_allocation_granularity")
    limit_registers = limit("registers_per_sm") // per_warp // partitions * partitions // warps
    unit = limit("shared_memory_allocation_unit")
    shared = -(-(rows.asked + limit("reserved_shared_memory_per_block")) // unit) * unit
    block_slots, warp_slots = limit("max_blocks_per_sm"), limit("max_warps_per_sm")
    limit_shared = np.where(shared > 0, rows.config // np.maximum(shared, 1), block_slots)
    limit_warps = warp_slots // warps
    counted = [row.barriers_limit_occupancy for row in rows.architectures]
    counts_barriers = np.array(counted, dtype=bool)[rows.which]
    limit_barriers = np.where(
        rows.barriers > 0, limit("max_barriers_per_sm") // np.maximum(rows.barriers, 1), block_slots
    )
    blocks = np.minimum(np.minimum(limit_registers, limit_shared), np.minimum(limit_warps, block_slots))
    blocks = np.where(counts_barriers, np.minimum(blocks, limit_barriers), blocks)
    reached: Integers = (
        (counts_barriers & (limit_barriers == blocks)) * 1
        + ((block_slots == blocks) | (limit_warps == blocks)) * 2
        + (limit_registers == blocks) * 4
        + (limit_shared == blocks) * 8
    )
    active = blocks * warps
    reached[active == warp_slots] = 0
    answers = {
        "blocks_per_sm": blocks,
        "active_warps_per_sm": active,
        "theoretical_occupancy": active / warp_slots,
        "limiters": pd.Categorical.from_codes(reached, categories=pd.Index(_limiter_categories())),
        "registers_allocated_per_block": per_warp * warps,
        "shared_memory_allocated_per_block": shared,
        "registers_left": limit("registers_per_sm") - blocks * per_warp * warps,
        "shared_memory_left": rows.config - blocks * shared,
        "limit_registers": limit_registers,
        "limit_shared_memory": limit_shared,
        "limit_warps": limit_warps,
        "limit_blocks": block_slots,
        "limit_barriers": pd.arrays.IntegerArray(limit_barriers, ~counts_barriers),
    }
    return answers, (shared <= rows.config) | (limit_registers == 0)


def _columns(configurations: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every input by name: the argument, else the column, else the default."""
    columns: dict[str, Any] = {}
    for name in INPUTS:
        if given[name] is not None:
            columns[name] = given[name]
        elif configurations is not None and name in configurations:
            columns[name] = configurations[name]
        elif name in _DEFAULTS:
            columns[name] = _DEFAULTS[name]
        else:
            raise OccupancyError(
                f"the configurations have no '{name}'",
                remedies=[f"give columns or arguments named {', '.join(INPUTS[:3])}"],
                found=", ".join(map(str, configurations)) if configurations is not None else "",
            )
    return columns


def _is_single(name: str, value: Any) -> bool:
    """Whether a value holds for every row. (8, 6) and a 0-d array are single, a list of two numbers is not."""
    if name == "compute_capability" and isinstance(value, tuple) and len(value) == 2:
        return all(isinstance(part, int) for part in value)
    return isinstance(value, str) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def _common_length(columns: Mapping[str, Any]) -> int:
    lengths = {name: len(value) for name, value in columns.items() if not _is_single(name, value)}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise OccupancyError("the arrays have different lengths", found=shown)
    return next(iter(lengths.values()), 1)


def _architectures(value: Any, size: int) -> tuple[list[ArchLimits], Integers]:
    """The distinct architectures, and for every row the position of its own among them."""
    if _is_single("compute_capability", value):
        return [LIMITS[parse_compute_capability(value)]], np.zeros(size, dtype=np.int64)
    codes, distinct = pd.factorize(
        _object_array(value) if isinstance(value, (list, tuple)) else np.asarray(value)
    )
    if (codes < 0).any():
        raise OccupancyError(f"row {int(np.argmax(codes < 0)):,} has no compute capability")
    return [LIMITS[parse_compute_capability(item)] for item in distinct], codes.astype(np.int64)


def _object_array(values: Any) -> Any:
    """A one-dimensional array of Python objects, tuples such as (8, 6) kept whole."""
    array = np.empty(len(values), dtype=object)
    array[:] = [tuple(item) if isinstance(item, list) else item for item in values]
    return array


def _integers(name: str, value: Any, size: int) -> Integers:
    """A column as int64 of length ``size``; a missing shared_memory_config becomes the mark for the largest."""
    if value is None:
        return np.full(size, _LARGEST_CONFIG, dtype=np.int64)
    if _is_single(name, value):
        return np.full(size, _whole_numbers(name, np.asarray([value]))[0], dtype=np.int64)
    array = np.asarray(value)
    if name == "shared_memory_config" and array.dtype.kind in "fO":
        missing = pd.isna(array)
        return _whole_numbers(name, np.where(missing, _LARGEST_CONFIG, array))
    return _whole_numbers(name, array)


def _whole_numbers(name: str, array: Any) -> Integers:
    """int64 values of an array of whole numbers; floats pass where they are whole (a column with gaps is float)."""
    if array.dtype.kind == "O":
        try:
            array = np.array(
                [float("nan") if item is None else item for item in array.tolist()], dtype=np.float64
            )
        except (TypeError, ValueError):
            raise OccupancyError(f"{name} holds something that is not a number") from None
    if array.dtype.kind == "f":
        odd = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2**53))
        if odd.any():
            row = int(np.argmax(odd))
            raise OccupancyError(f"{name} in row {row:,}: {array[row]!r} is not a whole number")
    elif array.dtype.kind not in "iu":
        raise OccupancyError(f"{name} holds {array.dtype}, not whole numbers")
    result: Integers = array.astype(np.int64)
    return result


def _limiter_categories() -> list[str]:
    """The joined names for every combination of the four limiters, at the position of its bit mask."""
    return [
        "|".join(name for bit, name in enumerate(_LIMITER_NAMES) if mask >> bit & 1) for mask in range(16)
    ]


def _problems(
    columns: Mapping[str, Any], rows: Integers, size: int, labels: Any, *, raise_first: bool
) -> NDArray[np.object_]:
    """The reason for every illegal row in the words of the scalar calculator, '' for the others.

    Raises:
        OccupancyError: for the first one, if asked to.
    """
    texts = np.full(size, "", dtype=object)
    picked = {
        name: [value] * len(rows) if value is None or _is_single(name, value) else _take(value, rows)
        for name, value in columns.items()
    }
    for place, row in enumerate(rows.tolist()):
        configuration = {name: _plain(name, values[place]) for name, values in picked.items()}
        try:
            occupancy(**configuration)
        except OccupancyError as error:
            if raise_first:
                label = row if labels is None else labels[row]
                raise OccupancyError(
                    f"configuration {label}: {error.message}",
                    found=error.found,
                    remedies=[
                        *error.remedies,
                        'invalid="mark" goes on and names the reason of every such row',
                    ],
                ) from None
            texts[row] = error.message
    return texts


def _take(value: Any, rows: Integers) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [value[row] for row in rows.tolist()]
    return list(np.asarray(value)[rows].tolist())


def _plain(name: str, value: Any) -> Any:
    """A value as the scalar calculator takes it: whole floats as int (8.0 is an architecture), missing ones as None."""
    if isinstance(value, float) and name != "compute_capability":
        if value != value:
            return None
        return int(value) if value.is_integer() else value
    return value
