"""The Parquet files of a history: written whole or not at all, and read no further than a question needs.

A row is a point: its columns are the fields of the point and of its origin, and a column a counter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import repeat
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gemmprof.analysis.history.changes import Numbers, Origin, Point
from gemmprof.base.documents import DocumentError, read_json
from gemmprof.base.foreign_files import RefusedFileError
from gemmprof.reports.tables.parquet import ParquetReader, fitted, new_parquet, write_parquet

COUNTER = "counter_"
_HINTS = {**get_type_hints(Origin), **get_type_hints(Point)}
_ORIGIN = tuple(one.name for one in fields(Origin))
_PLAIN = tuple(one.name for one in fields(Point) if one.name not in ("origin", "counters"))
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
    columns: dict[str, list[Any]] = {"series": [series_number(p) for p in points]}
    columns |= {name: [getattr(p.origin, name) for p in points] for name in _ORIGIN}
    columns |= {name: [getattr(p, name) for p in points] for name in _PLAIN}
    columns |= {f"{COUNTER}{name}": [p.counters.get(name) for p in points] for name in COUNTERS}
    return pa.table({name: pa.array(values, column_type(name)) for name, values in columns.items()})


def column_type(name: str) -> pa.DataType:
    """The type of a column of points; one that a later gemmprof adds is a number, too."""
    kinds = {datetime: pa.timestamp("us", tz="UTC"), str: pa.string(), int: pa.int64()}
    return pa.int64() if name == "series" else kinds.get(_HINTS.get(name, float), pa.float64())


def schema_of(columns: Iterable[str], metadata: dict[bytes, bytes]) -> pa.Schema:
    """A file of points with these columns."""
    return pa.schema([(name, column_type(name)) for name in columns], metadata)


def points_of(rows: pa.Table) -> list[Point]:
    """The points of these rows, in their order. What a record lacks is None, or '' for a text."""

    def column(name: str) -> Iterable[Any]:
        nothing = "" if name in _TEXTS else None
        if name not in rows.column_names:
            return repeat(nothing, len(rows))
        return (nothing if value is None else value for value in rows[name].to_pylist())

    counters = [name for name in rows.column_names if name.startswith(COUNTER)]
    titles = [name.removeprefix(COUNTER) for name in counters]
    counted = zip(*map(column, counters), strict=True) if counters else repeat((), len(rows))
    origins = map(Origin, *map(column, _ORIGIN))
    return [
        Point(
            **dict(zip(_PLAIN, values, strict=True)),
            origin=origin,
            counters={title: value for title, value in zip(titles, found, strict=True) if value is not None},
        )
        for *values, origin, found in zip(*map(column, _PLAIN), origins, counted, strict=True)
    ]


LAST_MICROSECOND = 253_402_300_800_000_000  # of the year 9999, the last one that Python's dates know
# Rows that a reader of one series decodes at least; each group costs every reader of the file a little.
ROW_GROUP = 1 << 13
BIN_ROWS = 1 << 16  # rows of which memory holds all columns while files are put together
NAMES = ("kernel", "grid", "device", "kind")
REPLACES = b"gemmprof.replaces"  # key of a compacted file's metadata: the names of the records that are in it
# Times hardly shrink; by the bounds of its series a row group is known that need not be read.
_WRITTEN: dict[str, Any] = {"plain": ("time_ns",), "statistics": ("series",)}


def write_points(table: pa.Table, target: Path) -> None:
    """Write points, which are sorted by series, as a file: whole or not at all."""
    write_parquet(table, target, row_group=ROW_GROUP, **_WRITTEN)


def write_compacted(paths: Sequence[Path], target: Path) -> None:
    """Write the points of these files into one, by series and time: some series after the others, in bounded memory.

    Args:
        target: the compacted file; it counts from the moment that it has its name.

    Raises:
        pyarrow.ArrowException, OSError: if a file is damaged, or the disk full.
    """
    replaces = {REPLACES: json.dumps([path.name for path in paths]).encode()}
    with ExitStack() as opened:
        files = [opened.enter_context(PointsReader(path)) for path in paths]
        numbers, counts = np.unique(
            np.concatenate([file.read(["series"])["series"].to_numpy() for file in files]), return_counts=True
        )
        schema = schema_of(dict.fromkeys(name for file in files for name in file.schema.names), replaces)
        bins = np.split(numbers, np.flatnonzero(np.diff(np.cumsum(counts) // BIN_ROWS)) + 1)
        with new_parquet(target, schema, **_WRITTEN) as writer:
            for several in bins:
                parts = [file.read(among=("series", several.tolist())) for file in files]
                rows = by_series(pa.concat_tables(parts, promote_options="permissive").unify_dictionaries())
                writer.write_table(fitted(rows, schema), row_group_size=ROW_GROUP)


class PointsReader(ParquetReader):
    """A file of points, perhaps somebody's. Errors as `ParquetReader`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, column_type, NAMES)
        # A row has at least a time, and times hardly shrink.
        if self.metadata.num_rows > path.stat().st_size:
            raise RefusedFileError(path, "claims more rows than it has bytes")

    @property
    def replaced(self) -> set[str]:
        """The names of the records that a compacted file says it replaces: they are deleted, so they are names."""
        try:
            names = read_json((self.schema.metadata or {}).get(REPLACES, b"[]"), set[str])
        except DocumentError as error:
            raise self.refused(f"is damaged: {error}") from None
        if strange := [name for name in names if Path(name).name != name]:
            raise self.refused(f"is damaged: it replaces {min(strange)[:100]!r}")
        return names

    def read(
        self, columns: Iterable[str] | None = None, among: tuple[str, Sequence[Any]] | None = None
    ) -> pa.Table:
        """As `ParquetReader.read`; every row has what a point must have."""
        found = super().read(columns, among)
        for name in found.column_names:
            if problem := _problem(name, found.column(name)):
                raise self.refused(f"is no table of points: {name} {problem}")
        return found


# What no point is without.
_ALWAYS = ("series", "recorded_at", "time_ns", *NAMES)


def _problem(name: str, column: pa.ChunkedArray) -> str:
    """What keeps a column from being one of points; '' if nothing does."""
    if name not in _ALWAYS:
        return ""
    if column.null_count:
        return "is missing in some rows"
    if name == "series" and len(column) and pc.min(column).as_py() < 0:
        return "is negative"
    if name == "time_ns" and not pc.all(pc.is_finite(column)).as_py() and len(column):
        return "is no number in some rows"
    if name == "recorded_at" and len(column):
        bounds = pc.min_max(column.cast("int64")).as_py()
        if bounds["min"] < 0 or bounds["max"] >= LAST_MICROSECOND:
            return "is no date in some rows"
    return ""


def read_points(
    paths: Iterable[Path], columns: Sequence[str] | None = None, series: Sequence[int] | None = None
) -> pa.Table:
    """Some columns (None: all) of these files' points (of some series alone), by series and time."""
    parts = []
    for path in paths:
        with PointsReader(path) as file:
            parts.append(file.read(columns, None if series is None else ("series", series)))
    return by_series(pa.concat_tables(parts, promote_options="default").unify_dictionaries())


def by_series(rows: pa.Table) -> pa.Table:
    """The rows, sorted by series and time."""
    # A stable sort: of one moment, what was recorded first stays first.
    return rows.sort_by([("series", "ascending"), ("recorded_at", "ascending")])


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a store: which, since when, and its times; its points are read where they are asked for."""

    number: int  # by which its rows are found
    kernel: str
    grid: str
    device: str
    kind: str
    first: datetime
    last: datetime
    times_ns: Numbers = field(compare=False)  # oldest first

    @property
    def key(self) -> tuple[str, str, str, str]:
        """As `Point.series`."""
        return (self.kernel, self.grid, self.device, self.kind)

    @property
    def count(self) -> int:
        """How many points it has."""
        return len(self.times_ns)

    @property
    def last_ns(self) -> float:
        """The newest time."""
        return float(self.times_ns[-1])


def series_in(paths: Sequence[Path]) -> list[Series]:
    """The series of these files, by number."""
    rows = read_points(paths, ["series", "recorded_at", "time_ns", *NAMES])
    numbers, times = rows["series"].to_numpy(), rows["time_ns"].to_numpy()
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # no number is negative
    stops = np.append(starts[1:], len(rows))
    last = rows["recorded_at"].take(pa.array(stops - 1)).to_pylist()
    firsts = rows.select(["series", "recorded_at", *NAMES]).take(pa.array(starts)).to_pylist()
    return [
        Series(
            number=row["series"],
            **{name: row[name] for name in NAMES},
            first=row["recorded_at"],
            last=date,
            times_ns=times[start:stop],
        )
        for row, date, start, stop in zip(firsts, last, starts, stops, strict=True)
    ]
