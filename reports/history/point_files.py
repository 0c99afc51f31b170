"""The Parquet files of a history: written whole or not at all, and read no further than a question needs.

A row is a point: its columns are the fields of the point and of its origin, and a column a counter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gemmprof.analysis.history.changes import CLOCKS, TEXTS, Origin, Point, Series, Times
from gemmprof.base.documents import DocumentError, read_json
from gemmprof.base.foreign_files import RefusedFileError
from gemmprof.reports.tables.parquet import ParquetReader, write_parquet

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
    columns: dict[str, list[Any]] = {"series": [series_number(p) for p in points]}
    columns |= {name: [getattr(p.origin, name) for p in points] for name in _ORIGIN}
    columns |= {name: [getattr(p, name) for p in points] for name in _PLAIN}
    columns |= {f"{COUNTER}{name}": [p.counters.get(name) for p in points] for name in COUNTERS}
    return pa.table({name: pa.array(values, column_type(name)) for name, values in columns.items()})


def column_type(name: str) -> pa.DataType:
    """The type of a column of points or of an index; one that a later gemmprof adds is a number, too."""
    kinds = {datetime: pa.timestamp("us", tz="UTC"), str: pa.string(), int: pa.int64()}
    return kinds.get(_HINTS.get(name) or _OF_INDEXES.get(name, float), pa.float64())


def points_of(rows: pa.Table) -> list[Point]:
    """The points of these rows, in their order. What a record lacks is None, or '' for a text."""

    def known(row: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        return {name: (row.get(name) or "") if name in _TEXTS else row.get(name) for name in names}

    return [
        Point(
            **known(row, _PLAIN),
            origin=Origin(**known(row, _ORIGIN)),
            counters={
                name.removeprefix(COUNTER): value
                for name, value in row.items()
                if name.startswith(COUNTER) and value is not None
            },
        )
        for row in rows.to_pylist()
    ]


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
    kinds = _texts(rows, "kind")
    texts = {name: _texts(rows, name) for name in TEXTS}
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


def series_of(points: Sequence[Point]) -> Series:
    """The points of one series, oldest first, as columns."""
    return series_in(table_of(points))[0]


def _texts(rows: pa.Table, name: str) -> list[str]:
    """A column of texts, which are few and repeat; '' for what a record lacks."""
    if name not in rows.column_names:
        return [""] * len(rows)
    coded = rows.column(name).combine_chunks().dictionary_encode()
    texts = [text or "" for text in coded.dictionary.to_pylist()]
    return ["" if at is None else texts[at] for at in coded.indices.to_pylist()]


LAST_MICROSECOND = 253_402_300_800_000_000  # of the year 9999, the last one that Python's dates know
# Rows that a reader of one series decodes at least; each group costs every reader of the file a little.
ROW_GROUP = 1 << 14


PLAIN = ("time_ns",)  # times hardly shrink


def write_points(table: pa.Table, target: Path) -> None:
    """Write points as a file, whole or not at all."""
    write_parquet(table, target, row_group=ROW_GROUP, plain=PLAIN)


class PointsReader(ParquetReader):
    """A file of points, perhaps somebody's. Errors as `ParquetReader`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, column_type)
        # A row has at least a time, and times hardly shrink.
        if self.metadata.num_rows > path.stat().st_size:
            raise RefusedFileError(path, "claims more rows than it has bytes")

    def read(self, columns: Iterable[str] | None = None, groups: Iterable[int] | None = None) -> pa.Table:
        """As `ParquetReader.read`; every row has what a point must have."""
        found = super().read(columns, groups)
        for name in found.column_names:
            if problem := _problem(name, found.column(name)):
                raise self.refused(f"is no table of points: {name} {problem}")
        return found


def read_columns(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A file of points, or some columns of it."""
    with PointsReader(path) as file:
        return file.read(columns)


def rows_at(path: Path, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> pa.Table:
    """Rows of a file: spans by their first row and length; row groups without any are not read."""
    with PointsReader(path) as file:
        metadata = file.metadata
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        edges = np.cumsum([0, *sizes])
        if np.any((starts < 0) | (counts < 0) | (starts > edges[-1] - counts)) or counts.sum() > edges[-1]:
            raise file.refused("is another one than its index speaks of")
        order = np.argsort(starts)
        starts, counts = starts[order], counts[order]
        rows = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        found = []
        for group in np.unique(np.searchsorted(edges, rows, "right") - 1).tolist():
            whole = file.read(groups=[group])
            within = rows[np.searchsorted(rows, edges[group]) : np.searchsorted(rows, edges[group + 1])]
            if within[-1] - within[0] == len(within) - 1:  # one span, as neighbours make it
                found.append(whole.slice(within[0] - edges[group], len(within)))
            else:
                found.append(whole.take(pa.array(within - edges[group])))
        return pa.concat_tables(found) if found else file.schema.empty_table()


_SPAN = ("series", "start", "count")
_DATES, _TIMES = ("recorded_at", "first", "last"), ("time_ns", "last_ns")
# What no point is without, nor a row of an index.
_ALWAYS = (*_DATES, *_TIMES, *_SPAN, "kernel", "grid", "device", "kind")


def _problem(name: str, column: pa.ChunkedArray) -> str:
    """What keeps a column from being one of points; '' if nothing does."""
    if name not in _ALWAYS:
        return ""
    if column.null_count:
        return "is missing in some rows"
    if name in _SPAN and len(column) and pc.min(column).as_py() < 0:
        return "is negative"
    if name in _TIMES and not pc.all(pc.is_finite(column)).as_py() and len(column):
        return "is no number in some rows"
    if name in _DATES and len(column):
        bounds = pc.min_max(column.cast("int64")).as_py()
        if bounds["min"] < 0 or bounds["max"] >= LAST_MICROSECOND:
            return "is no date in some rows"
    return ""


COMPACT = "compact-"
REPLACES = b"gemmprof.replaces"  # key of a compacted file's metadata: the names of the records that are in it
INDEXES = "series"  # folder of the indexes
NAMES = ("kernel", "grid", "device", "kind")


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """One series of a store: which, how many points, since when, and its last time."""

    kernel: str
    grid: str
    device: str
    kind: str
    count: int
    first: datetime
    last: datetime
    last_ns: float


@dataclass(frozen=True, slots=True)
class Listing:
    """Files of a store that count."""

    # compacted, records: their paths; a compacted file that lost its index is read as the records are
    compacted: tuple[Path, ...]
    records: tuple[Path, ...]
    # names of records that a compacted file holds too; they do not count, if they are there still
    replaced: frozenset[str] = frozenset()

    @classmethod
    def of(cls, present: Iterable[Path]) -> Listing:
        """Those of the files that are present."""
        found = sorted(present)
        indexed = {path for path in found if path.name.startswith(COMPACT) and index_of(path).exists()}
        replaced: set[str] = set()
        for path in found:
            if path.name.startswith(COMPACT):
                replaced |= _replaced(index_of(path) if path in indexed else path)
        counts = [path for path in found if path.name not in replaced]
        return cls(
            tuple(path for path in counts if path in indexed),
            tuple(path for path in counts if path not in indexed),
            frozenset(replaced),
        )

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file that counts."""
        return (*self.compacted, *self.records)

    def times(self) -> Times:
        """The times of everything, series by series, with what a search for steps needs to know."""
        parts = [_indexed(path) for path in self.compacted]
        if self.records:
            parts.append(_summed_and_sorted(self.records))
        values = _in_one_order(parts)
        if values is None:  # somebody recorded the past: all is sorted once more
            parts = [_summed_and_sorted(self.all)]
            values = parts[0][1]["time_ns"].to_numpy()
        known = catalogue([index for index, _ in parts])
        numbers, counts = known["series"].to_numpy(), known["count"].to_numpy()
        return Times(numbers, counts, values, [kind == "profiled" for kind in known["kind"].to_pylist()])

    def catalogue(self) -> pa.Table:
        """One row a series: names, number of points, first and last time. No compacted file is read."""
        indexes = [read_columns(index_of(path)) for path in self.compacted]
        return catalogue([*indexes, *([_summed_and_sorted(self.records)[0]] if self.records else [])])

    def rows(self, numbers: Sequence[int]) -> pa.Table:
        """The rows of these series, by series and time."""
        wanted, parts = np.asarray(numbers, dtype=np.int64), []
        for path in self.all:
            indexed = path in self.compacted  # of a record each row is a span
            index = read_columns(index_of(path) if indexed else path, _SPAN if indexed else _SPAN[:1])
            series, *spans = (index.column(name).to_numpy() for name in index.column_names)
            starts, counts = spans or (np.arange(len(series)), np.ones(len(series), np.int64))
            chosen = np.isin(series, wanted)
            parts.append(rows_at(path, starts[chosen], counts[chosen]))
        rows = pa.concat_tables(parts, promote_options="default")
        series = rows.column("series").to_numpy()
        if len(parts) == 1 and self.compacted and bool(np.all(series[1:] >= series[:-1])):
            return rows  # as the compaction sorted them
        return rows.sort_by([("series", "ascending"), ("recorded_at", "ascending")])


def index_of(compacted: Path) -> Path:
    """Where the index of a compacted file lies."""
    return compacted.parent.parent / INDEXES / compacted.name


def by_series(rows: pa.Table) -> pa.Table:
    """The rows, sorted by series and time."""
    keys = rows["recorded_at"].cast("int64").to_numpy(), rows["series"].to_numpy()
    return rows.combine_chunks().take(pa.array(np.lexsort(keys)))


def summed(rows: pa.Table) -> pa.Table:
    """The index of rows that are sorted by series and time, but where its series start."""
    series = rows["series"].to_numpy()
    starts = np.flatnonzero(np.diff(series, prepend=-1))  # no number is negative
    counts = np.diff(starts, append=len(series))
    first, last = rows.take(pa.array(starts)), rows.take(pa.array(starts + counts - 1))
    return pa.table(
        {name: first[name] for name in ("series", *NAMES)}
        | {"count": counts, "first": first["recorded_at"], "last": last["recorded_at"]}
        | {"last_ns": last["time_ns"]}
    )


def catalogue(indexes: Sequence[pa.Table]) -> pa.Table:
    """One row a series of indexes that may know the same series; of several by number."""
    if len(indexes) == 1:
        return indexes[0]
    kept = ("series", *NAMES, "count", "first", "last", "last_ns")
    rows = pa.concat_tables(index.select(kept) for index in indexes).sort_by([("last", "ascending")])
    wanted = [*((name, "first") for name in NAMES), ("count", "sum"), ("first", "min"), ("last", "max")]
    found = rows.group_by("series", use_threads=False).aggregate([*wanted, ("last_ns", "last")])
    return (
        found.select(["series", *(f"{name}_{how}" for name, how in [*wanted, ("last_ns", "last")])])
        .rename_columns(kept)
        .sort_by([("series", "ascending")])
    )


def _in_one_order(parts: Sequence[tuple[pa.Table, pa.Table]]) -> npt.NDArray[np.float64] | None:
    """The times of files, each with its index, put together as `catalogue` has the series.

    Files follow each other in time, since a store is only ever added to. None where a series' times in one lie between
    those in another: somebody recorded the past.
    """
    parts = sorted(parts, key=lambda part: part[0]["first"].cast("int64").to_numpy().min(initial=0))
    values = np.concatenate([rows["time_ns"].to_numpy() for _, rows in parts])
    if len(parts) == 1:
        return values
    series, counts = (
        np.concatenate([index[name].to_numpy() for index, _ in parts]) for name in ("series", "count")
    )
    first, last = (
        np.concatenate([index[name].cast("int64").to_numpy() for index, _ in parts])
        for name in ("first", "last")
    )
    order = np.argsort(series, kind="stable")
    goes_on = series[order][1:] == series[order][:-1]
    if np.any(goes_on & (first[order][1:] < last[order][:-1])):
        return None
    return values[np.argsort(np.repeat(series, counts), kind="stable")]


def _indexed(compacted: Path) -> tuple[pa.Table, pa.Table]:
    """The index of a compacted file, and its times."""
    index, rows = read_columns(index_of(compacted)), read_columns(compacted, ["time_ns"])
    if index["count"].to_numpy().sum() != len(rows):
        raise RefusedFileError(compacted, "is another one than its index speaks of")
    return index, rows


def _summed_and_sorted(files: Sequence[Path]) -> tuple[pa.Table, pa.Table]:
    """The points of these files without what is seldom asked, by series and time, and the index of them."""
    columns = ["series", "recorded_at", "time_ns", *NAMES]
    rows = by_series(pa.concat_tables(read_columns(path, columns) for path in files))
    return summed(rows), rows


def _replaced(path: Path) -> set[str]:
    """The names of the records that a compacted file says it replaces: they are deleted, so they are names alone."""
    with PointsReader(path) as file:
        metadata = file.schema.metadata or {}
    try:
        names = read_json(metadata.get(REPLACES, b"[]"), set[str])
    except DocumentError as error:
        raise RefusedFileError(path, f"is damaged: {error}") from None
    if strange := [name for name in names if Path(name).name != name]:
        raise RefusedFileError(path, f"is damaged: it replaces {min(strange)[:100]!r}")
    return names
