"""Theoretical occupancy of many configurations at once: the answers of `calculator`, one a row.

A configuration that stands in several rows is computed once; a million different ones take half a minute. pandas is
imported only when the function is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import compress, product
from typing import Any, Literal

import numpy as np
import pandas as pd

from gemmprof.analysis.occupancy.calculator import RESOURCES, Occupancy, occupancy
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import parse_compute_capability

# Columns that a table of configurations may have; the last three may be left out.
INPUTS = (
    "compute_capability",
    "threads_per_block",
    "registers_per_thread",
    "shared_memory_per_block",
    "shared_memory_config",
    "block_barriers",
)

_DEFAULTS: dict[str, Any] = {"shared_memory_per_block": 0, "shared_memory_config": None, "block_barriers": 1}
_LIMITERS = ("barriers", "blocks", "registers", "shared_memory")
# What the result has of each answer, in this order; behind them what each resource admits.
_ANSWERS = (
    "blocks_per_sm",
    "active_warps_per_sm",
    "theoretical_occupancy",
    "limiters",
    "registers_allocated_per_block",
    "shared_memory_allocated_per_block",
    "registers_left",
    "shared_memory_left",
)


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
    given = (
        *(compute_capability, threads_per_block, registers_per_thread),
        *(shared_memory_per_block, shared_memory_config, block_barriers),
    )
    table = _table(configurations, dict(zip(INPUTS, given, strict=True)))
    labels = table.index

    @cache
    def answer(*values: Any) -> Occupancy | OccupancyError:
        try:
            return occupancy(**dict(zip(INPUTS, values, strict=True)))
        except OccupancyError as error:
            return error

    columns = (_values(name, table[name]) for name in INPUTS)
    found = [answer(*row) for row in zip(*columns, strict=True)]
    if invalid == "raise":
        for label, one in zip(labels, found, strict=True):
            if isinstance(one, OccupancyError):
                more = 'invalid="mark" goes on and names the reason of every such row'
                what = f"configuration {label}: {one.message}"
                raise OccupancyError(what, *one.remedies, more, found=one.found)
    result = _frame(found, labels)
    if invalid == "mark":
        result["problem"] = [one.message if isinstance(one, OccupancyError) else "" for one in found]
    return result


def _frame(found: list[Occupancy | OccupancyError], labels: Any) -> pd.DataFrame:
    """The numbers of every answer, missing where there is none."""
    answers = [one if isinstance(one, Occupancy) else None for one in found]
    columns: dict[str, list[Any]] = {
        name: [one and getattr(one, name) for one in answers] for name in _ANSWERS
    }
    columns["limiters"] = ["|".join(one) if one is not None else None for one in columns["limiters"]]
    limits = [None if one is None else one.block_limits for one in answers]
    columns |= {f"limit_{name}": [one and one.get(name) for one in limits] for name in RESOURCES}
    kinds: dict[str, Any] = dict.fromkeys(columns, "float64" if None in answers else "int64")
    # Every combination of limiters, so that two tables have one type.
    combined = ["|".join(compress(_LIMITERS, one)) for one in product((True, False), repeat=len(_LIMITERS))]
    kinds |= {"theoretical_occupancy": "float64", "limit_barriers": "Int64"}
    kinds["limiters"] = pd.CategoricalDtype(combined)
    series = {name: pd.Series(columns[name], labels, kinds[name]) for name in columns}
    return pd.DataFrame(series, index=labels)


def _table(configurations: Any, given: Mapping[str, Any]) -> pd.DataFrame:
    """Every input as a column: the argument, else the column of that name, else the default."""
    columns: dict[str, Any] = dict(_DEFAULTS)
    for name in INPUTS:
        if given[name] is not None:
            columns[name] = given[name]
        elif configurations is not None and name in configurations:
            columns[name] = configurations[name]
        elif name not in columns:
            found = ", ".join(map(str, configurations)) if configurations is not None else ""
            remedy = f"give columns or arguments named {', '.join(INPUTS[:3])}"
            raise OccupancyError(f"the configurations have no '{name}'", remedy, found=found)
    # A pair of numbers is one architecture, a list of two numbers two values.
    single = {name: one for name, one in columns.items() if isinstance(one, tuple) or np.ndim(one) == 0}
    several = {name: pd.Series(one) for name, one in columns.items() if name not in single}
    lengths = {name: len(column) for name, column in several.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise OccupancyError("the arrays have different lengths", found=shown)
    size = next(iter(lengths.values()), 1)
    index = configurations.index if isinstance(configurations, pd.DataFrame) else pd.RangeIndex(size)
    whole = {name: [single[name]] * size if name in single else several[name].tolist() for name in INPUTS}
    return pd.DataFrame(whole, index=index, dtype=object)


def _values(name: str, column: pd.Series[Any]) -> list[Any]:
    """A column as the calculator takes its values: whole floats, which columns with gaps have, as int."""
    if name == INPUTS[0]:
        known = cache(parse_compute_capability)
        return [known(tuple(one) if isinstance(one, list) else one) for one in column]
    found: list[int | None] = []
    for row, one in enumerate(column):
        if name == "shared_memory_config" and pd.isna(one):
            found.append(None)
        elif type(one) is not bool and isinstance(one, (int, float)) and one == one // 1:
            found.append(int(one))
        else:
            raise OccupancyError(f"{name} in row {row:,}: {one!r} is not a whole number")
    return found
