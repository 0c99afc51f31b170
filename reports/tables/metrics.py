"""The scalar metrics of a slice of launches as two Arrow tables: one row a value, and one column a metric.

Launches that were profiled with the same options have the same metrics of the same kinds in the same order. So values
are kept by kind and moved as whole blocks, not one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gemmprof.model import MetricValue

_Layout = tuple[tuple[str, ...], tuple[type, ...]]  # names and kinds of the metrics of a launch


class _Group:
    """Launches with one layout.

    Attributes:
        rows: their positions among all launches.
        names: of the metrics.
        places: positions of the metrics of each kind.
        values: of each kind, a row a launch and a column a metric.
    """

    def __init__(self, layout: _Layout, rows: list[int], values: list[tuple[MetricValue, ...]]) -> None:
        self.rows = np.array(rows)
        self.names, kinds = layout
        cells = np.empty((len(rows), len(kinds)), object)
        cells[:] = values
        self.places: dict[type, npt.NDArray[np.int64]] = {}
        self.values: dict[type, npt.NDArray[Any]] = {}
        for kind, stored in ((float, np.float64), (int, np.uint64), (str, object)):
            self.places[kind] = np.array([at for at, found in enumerate(kinds) if found is kind], np.int64)
            self.values[kind] = cells[:, self.places[kind]].astype(stored)


@dataclass(slots=True)
class MetricRows:
    """Collects the scalar metrics of launches."""

    launches: list[int] = field(default_factory=list)
    count: int = 0
    _kernels: list[str] = field(default_factory=list)
    _rows: dict[_Layout, list[int]] = field(default_factory=dict)
    _values: dict[_Layout, list[tuple[MetricValue, ...]]] = field(default_factory=dict)
    _made: list[_Group] = field(default_factory=list)

    def add(self, launch: int, kernel: str, metrics: Mapping[str, MetricValue]) -> None:
        """Add one launch."""
        values = tuple(metrics.values())
        layout = tuple(metrics), tuple(map(type, values))
        self._rows.setdefault(layout, []).append(len(self.launches))
        self._values.setdefault(layout, []).append(values)
        self.launches.append(launch)
        self._kernels.append(kernel)
        self.count += len(values)

    def clear(self) -> None:
        """Forget the launches."""
        self.launches, self.count, self._kernels, self._made = [], 0, [], []
        self._rows, self._values = {}, {}

    def _groups(self) -> list[_Group]:
        """All launches, in groups by layout; whoever asks first has the values in Python's form given up."""
        self._made += [_Group(layout, rows, self._values[layout]) for layout, rows in self._rows.items()]
        self._rows, self._values = {}, {}
        return self._made

    def long_table(self, report: str) -> pa.Table:
        """One row a launch and metric. ``value`` is the number; ``integer`` keeps every digit of a counter.

        The column ``unit`` is added when the file is written (`with_units`).
        """
        value = np.zeros(self.count)
        integer = np.zeros(self.count, np.uint64)
        kind = np.zeros(self.count, np.uint8)
        metrics = np.zeros(self.count, np.int32)
        texts = np.full(self.count, None, object)
        numbers: dict[str, int] = {}
        widths = np.zeros(len(self.launches), np.int64)
        for group in self._groups():
            widths[group.rows] = len(group.names)
        starts = widths.cumsum() - widths
        for group in self._groups():
            cells = starts[group.rows, None] + np.arange(len(group.names))
            metrics[cells] = [numbers.setdefault(name, len(numbers)) for name in group.names]
            of_kind = {found: cells[:, places] for found, places in group.places.items()}
            value[of_kind[float]] = group.values[float]
            value[of_kind[int]] = integer[of_kind[int]] = group.values[int]
            texts[of_kind[str]] = group.values[str]
            kind[of_kind[int]], kind[of_kind[str]] = 1, 2
        return pa.table(
            {
                "report": pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(self.count, np.int32)), pa.array([report], pa.string())
                ),
                "launch": pa.array(np.repeat(np.array(self.launches, np.int64), widths)),
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
        rows = len(self.launches)
        columns: dict[str, Any] = {
            "report": pa.array([report] * rows, pa.string()),
            "launch": pa.array(self.launches, pa.int64()),
            "name": pa.array(self._kernels, pa.string()),
        }
        # For each name: the kind, the rows, and the values of every group of launches that has it.
        pieces: dict[str, list[tuple[type, npt.NDArray[np.int64], npt.NDArray[Any]]]] = {}
        for group in self._groups():
            found = {
                at: (kind, group.rows, column)
                for kind, places in group.places.items()
                for at, column in zip(places.tolist(), group.values[kind].T, strict=True)
            }
            for at, name in enumerate(group.names):
                pieces.setdefault(name, []).append(found[at])
        for name, parts in pieces.items():
            kinds = {kind for kind, _, _ in parts}
            if str in kinds:
                texts: list[str | None] = [None] * rows
                for _, numbers, values in parts:
                    for number, value in zip(numbers.tolist(), values.tolist(), strict=True):
                        texts[number] = str(value)
                columns[name] = pa.array(texts, pa.string())
                continue
            data = np.zeros(rows, np.uint64 if kinds == {int} else np.float64)
            absent = np.ones(rows, bool)
            for _, numbers, values in parts:
                data[numbers] = values
                absent[numbers] = False
            columns[name] = pa.array(data, mask=absent)
        return pa.table(columns)


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
    by_name = np.array([numbers.setdefault(known.get(name, ""), len(numbers)) for name in names], np.int32)
    column = pa.DictionaryArray.from_arrays(
        by_name[metric.indices.to_numpy()], pa.array(list(numbers), pa.string())
    )
    return table.add_column(table.column_names.index("metric") + 1, "unit", column)
