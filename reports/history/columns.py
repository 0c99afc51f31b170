"""Points of a history as the rows of a Parquet file, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from itertools import pairwise
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from gemmprof.analysis.history.points import CLOCKS, TEXTS, Origin, Point, Series

COUNTER = "counter_"
_OF_INDEXES = {"series": int, "start": int, "count": int, "first": datetime, "last": datetime}
_HINTS = {**get_type_hints(Origin), **get_type_hints(Point)}
_ORIGIN = tuple(field.name for field in fields(Origin))
_PLAIN = tuple(field.name for field in fields(Point) if field.name not in ("origin", "counters"))
# A column is a field of the point or of its origin, of the type that it has there.
_TEXTS = frozenset(name for name, kind in _HINTS.items() if kind is str)


def series_number(point: Point) -> int:
    """A number for a series that every writer finds alike; it is not negative."""
    digest = hashlib.blake2b("\0".join(point.series).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def table_of(points: Sequence[Point]) -> pa.Table:
    """One row a point, sorted by the number of its series."""
    from gemmprof.analysis.history.recording import COUNTERS

    points = sorted(points, key=series_number)
    columns: dict[str, Any] = {"series": pa.array([series_number(p) for p in points], pa.int64())}
    columns |= {
        name: pa.array([getattr(p.origin, name) for p in points], column_type(name)) for name in _ORIGIN
    }
    columns |= {name: pa.array([getattr(p, name) for p in points], column_type(name)) for name in _PLAIN}
    columns |= {
        f"{COUNTER}{n}": pa.array([p.counters.get(n) for p in points], column_type(n)) for n in COUNTERS
    }
    return pa.table(columns)


def column_type(name: str) -> pa.DataType:
    """The type of a column of points or of an index; one that a later gemmprof adds is a number, too."""
    kinds = {datetime: pa.timestamp("us", tz="UTC"), str: pa.string(), int: pa.int64()}
    return kinds.get(_HINTS.get(name) or _OF_INDEXES.get(name, float), pa.float64())


def points_of(rows: pa.Table) -> list[Point]:
    """The points of these rows, in their order. A column that an older record lacks is None, or '' for a text."""
    values = {name: _values(rows, name) for name in (*_ORIGIN, *_PLAIN)}
    counters = [name for name in rows.column_names if name.startswith(COUNTER)]
    names = [name.removeprefix(COUNTER) for name in counters]
    counted = zip(*(_values(rows, name) for name in counters), strict=True) if counters else iter(())
    origins = zip(*(values[name] for name in _ORIGIN), strict=True)
    plain = zip(*(values[name] for name in _PLAIN), strict=True)
    found = []
    for origin, point in zip(origins, plain, strict=True):
        known = {name: v for name, v in zip(names, next(counted, ()), strict=False) if v is not None}
        found.append(Point(**dict(zip(_PLAIN, point, strict=True)), origin=Origin(*origin), counters=known))
    return found


def series_in(rows: pa.Table) -> list[Series]:
    """The series of rows that are sorted by series and time, as columns: no point is made but those asked for."""
    if not len(rows):
        return []
    counters = sorted(name for name in rows.column_names if name.startswith(COUNTER))
    names = (*CLOCKS, *(name.removeprefix(COUNTER) for name in counters))
    wanted = (*CLOCKS, *counters)
    numbers = np.column_stack([rows.column(name).to_numpy() for name in wanted]).astype(
        np.float64, copy=False
    )
    times = rows.column("time_ns").to_numpy()
    kinds = _values(rows, "kind")
    texts = {name: _values(rows, name) for name in TEXTS}
    series = rows.column("series").to_numpy()
    edges = [0, *(np.flatnonzero(series[1:] != series[:-1]) + 1).tolist(), len(series)]

    def part(start: int, stop: int) -> Series:
        return Series(
            is_profiled=kinds[start] == "profiled",
            time_ns=times[start:stop],
            names=names,
            numbers=numbers[start:stop],
            texts={name: values[start:stop] for name, values in texts.items()},
            point=lambda at: points_of(rows.slice(start + at, 1))[0],
            number=int(series[start]),
        )

    return [part(start, stop) for start, stop in pairwise(edges)]


def _values(rows: pa.Table, name: str) -> list[Any]:
    """A column as Python values. Texts are few and repeat, numbers are many: each is converted its fast way."""
    if name not in rows.column_names:
        return [("" if name in _TEXTS else None)] * len(rows)
    column = rows.column(name)
    if name in _TEXTS:
        coded = column.combine_chunks().dictionary_encode()
        texts = [text or "" for text in coded.dictionary.to_pylist()]
        if coded.null_count:
            return [texts[i] if i is not None else "" for i in coded.indices.to_pylist()]
        return [texts[i] for i in coded.indices.to_numpy().tolist()]
    if column.null_count or name == "recorded_at":
        values: list[Any] = column.to_pylist()
        return values
    numbers: list[Any] = column.to_numpy().tolist()
    return numbers
