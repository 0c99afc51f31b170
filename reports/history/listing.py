"""The files of a store that count, and what they say together.

Beside each compacted file lies an index, a row a series in the order in which the file holds them: its names, how many
points, the row of the first one, first and last time. So questions about all series read no points but their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gemmprof.analysis.history.changes import Times
from gemmprof.base.documents import DocumentError, read_json
from gemmprof.base.foreign_files import RefusedFileError
from gemmprof.reports.history.point_files import PointsReader, read_columns, rows_at, rows_of_series

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
    """Files of a store that count.

    Attributes:
        compacted, records: their paths; a compacted file that lost its index is read as the records are.
        replaced: names of records that a compacted file holds too; they do not count, if they are there still.
    """

    compacted: tuple[Path, ...]
    records: tuple[Path, ...]
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
        wanted = np.asarray(numbers, dtype=np.int64)
        parts = []
        for path in self.compacted:
            index = read_columns(index_of(path), ["series", "start", "count"])
            series, starts, counts = (index.column(name).to_numpy() for name in index.column_names)
            chosen = np.isin(series, wanted)
            parts.append(rows_at(path, starts[chosen], counts[chosen]))
        parts += [rows_of_series(path, wanted) for path in self.records]
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
