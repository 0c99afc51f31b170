"""The scalar metrics of a slice of launches as two Arrow tables: one row a value, and one column a metric.

Launches that were profiled with the same options have the same metrics of the same kinds in the same order. So values
are kept by kind and moved as whole blocks, not one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gemmprof.model import MetricValue

_KINDS = (float, int, str)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Names and kinds of the metrics of some launches.

    ``masks`` holds for each kind, in the order of `_KINDS`, which of the metrics are of it; ``positions`` the same as
    numbers, and ``names_of`` the names.
    """

    names: tuple[str, ...]
    masks: tuple[tuple[bool, ...], ...]
    positions: tuple[tuple[int, ...], ...]
    names_of: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, names: tuple[str, ...], kinds: tuple[type, ...]) -> _Layout:
        masks = tuple(tuple(found is kind for found in kinds) for kind in _KINDS)
        return cls(
            names,
            masks,
            tuple(tuple(compress(range(len(names)), mask)) for mask in masks),
            tuple(tuple(compress(names, mask)) for mask in masks),
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """The metrics of one launch, values by kind."""

    launch: int
    kernel: str
    layout: _Layout
    values: tuple[tuple[Any, ...], ...]


@dataclass(slots=True)
class MetricRows:
    """Collects the scalar metrics of launches."""

    rows: list[_Row] = field(default_factory=list)
    count: int = 0
    _layouts: dict[tuple[tuple[str, ...], tuple[type, ...]], _Layout] = field(default_factory=dict)

    def add(self, launch: int, kernel: str, metrics: Mapping[str, MetricValue]) -> None:
        """Add one launch."""
        names, values = tuple(metrics), tuple(metrics.values())
        kinds = tuple(map(type, values))
        layout = self._layouts.get((names, kinds))
        if layout is None:
            layout = self._layouts[names, kinds] = _Layout.of(names, kinds)
        by_kind = tuple(tuple(compress(values, mask)) for mask in layout.masks)
        self.rows.append(_Row(launch, kernel, layout, by_kind))
        self.count += len(values)

    def clear(self) -> None:
        """Forget the launches."""
        self.rows, self.count = [], 0

    def long_table(self, report: str) -> pa.Table:
        """One row a launch and metric. ``value`` is the number; ``integer`` keeps every digit of a counter.

        The column ``unit`` is added when the file is written (`with_units`).
        """
        value = np.zeros(self.count)
        integer = np.zeros(self.count, np.uint64)
        kind = np.zeros(self.count, np.uint8)
        launches = np.zeros(self.count, np.int64)
        metrics = np.zeros(self.count, np.int32)
        texts: list[str | None] = [None] * self.count
        numbers: dict[str, int] = {}
        start = 0
        for layout, rows in self._runs():
            width = len(layout.names)
            if not width:
                continue
            stop = start + len(rows) * width
            floats, integers, strings = (list(positions) for positions in layout.positions)
            shape = (len(rows), width)
            launches[start:stop] = np.repeat([row.launch for row in rows], width)
            metrics[start:stop] = np.tile(
                [numbers.setdefault(n, len(numbers)) for n in layout.names], len(rows)
            )
            whole = np.array([row.values[1] for row in rows], np.uint64).reshape(len(rows), len(integers))
            value[start:stop].reshape(shape)[:, floats] = _doubles(rows, len(floats))
            value[start:stop].reshape(shape)[:, integers] = whole.astype(np.float64)
            integer[start:stop].reshape(shape)[:, integers] = whole
            kind[start:stop].reshape(shape)[:, integers] = 1
            kind[start:stop].reshape(shape)[:, strings] = 2
            for number, row in enumerate(rows):
                for position, text in zip(strings, row.values[2], strict=True):
                    texts[start + number * width + position] = text
            start = stop
        return pa.table(
            {
                "report": pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(self.count, np.int32)), pa.array([report], pa.string())
                ),
                "launch": pa.array(launches),
                "metric": pa.DictionaryArray.from_arrays(
                    pa.array(metrics), pa.array(list(numbers), pa.string())
                ),
                "value": pa.array(value, mask=kind == 2),
                "integer": pa.array(integer, mask=kind != 1),
                "text": pa.array(texts, pa.string()),
            }
        )

    def wide_table(self, report: str) -> pa.Table:
        """One row a launch, one column a metric, null where it was not collected."""
        rows = self.rows
        columns: dict[str, Any] = {
            "report": pa.array([report] * len(rows), pa.string()),
            "launch": pa.array([row.launch for row in rows], pa.int64()),
            "name": pa.array([row.kernel for row in rows], pa.string()),
        }
        groups: dict[_Layout, list[int]] = {}
        for number, row in enumerate(rows):
            groups.setdefault(row.layout, []).append(number)
        # For each name: the kind, the rows, and the values of every group of launches that has it.
        pieces: dict[str, list[tuple[type, list[int], Any]]] = {}
        for layout, numbers in groups.items():
            members = [rows[number] for number in numbers]
            found: dict[str, tuple[type, list[int], Any]] = {}
            for index, (kind, names) in enumerate(zip(_KINDS, layout.names_of, strict=True)):
                if names:
                    by_name = zip(*(row.values[index] for row in members), strict=True)
                    found.update((name, (kind, numbers, v)) for name, v in zip(names, by_name, strict=True))
            for name in layout.names:
                pieces.setdefault(name, []).append(found[name])
        for name, parts in pieces.items():
            kinds = {kind for kind, _, _ in parts}
            if str in kinds:
                texts: list[str | None] = [None] * len(rows)
                for _, numbers, values in parts:
                    for number, value in zip(numbers, values, strict=True):
                        texts[number] = str(value)
                columns[name] = pa.array(texts, pa.string())
                continue
            data = np.zeros(len(rows), np.uint64 if kinds == {int} else np.float64)
            absent = np.ones(len(rows), bool)
            for _, numbers, values in parts:
                data[numbers] = values
                absent[numbers] = False
            columns[name] = pa.array(data, mask=absent)
        return pa.table(columns)

    def _runs(self) -> Iterator[tuple[_Layout, list[_Row]]]:
        """Launches one after the other that have one layout."""
        for layout, rows in groupby(self.rows, key=lambda row: row.layout):
            yield layout, list(rows)


def _doubles(rows: list[_Row], width: int) -> npt.NDArray[np.float64]:
    return np.array([row.values[0] for row in rows], np.float64).reshape(len(rows), width)


def with_units(table: pa.Table, units: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """The long table of one report with the unit of each metric beside its name.

    Args:
        units: unit by metric, by report: another GPU or ncu may know another one, or none.
    """
    of_report = next(iter(table["report"].combine_chunks().dictionary.to_pylist()), "")
    known = units.get(of_report, {})
    metric = table["metric"].combine_chunks()
    names = metric.dictionary.to_pylist()
    numbers: dict[str, int] = {}
    by_name = pa.array([numbers.setdefault(known.get(name, ""), len(numbers)) for name in names], pa.int32())
    column = pa.DictionaryArray.from_arrays(
        by_name.take(metric.indices), pa.array(list(numbers), pa.string())
    )
    return table.add_column(table.column_names.index("metric") + 1, "unit", column)
