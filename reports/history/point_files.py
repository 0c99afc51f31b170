"""The Parquet files of a history: written whole or not at all, and read no further than a question needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gemmprof.base.foreign_files import RefusedFileError
from gemmprof.reports.history.columns import column_type
from gemmprof.reports.tables.parquet import ParquetReader, new_parquet

LAST_MICROSECOND = 253_402_300_800_000_000  # of the year 9999, the last one that Python's dates know
# Rows that a reader of one series decodes at least; each group costs every reader of the file a little.
ROW_GROUP = 1 << 14


def new_points(target: Path, schema: pa.Schema) -> AbstractContextManager[pq.ParquetWriter]:
    """A file of points to write to, which takes its name when it is whole on disk; at an error nothing is left."""
    # Times hardly shrink; a reader of one series finds it by the bounds of its number.
    return new_parquet(target, schema, plain=["time_ns"], statistics=["series"])


def write_points(table: pa.Table, target: Path) -> None:
    """Write points as a file, whole or not at all."""
    with new_points(target, table.schema) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)


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
    """Rows of a compacted file: spans by their first row and length; row groups without any are not read."""
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


def rows_of_series(
    path: Path, numbers: npt.NDArray[np.int64], columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of these series in a single record, which is sorted by series."""
    wanted = np.unique(numbers)
    with PointsReader(path) as file:
        groups = range(file.metadata.num_row_groups)
        place = max(0, file.schema.get_field_index("series"))
        rows = file.read(
            columns, [at for at in groups if _holds(file.metadata.row_group(at).column(place), wanted)]
        )
    return rows.filter(pc.is_in(rows.column("series"), value_set=pa.array(wanted)))


_DATES, _TIMES, _COUNTS = (
    ("recorded_at", "first", "last"),
    ("time_ns", "last_ns"),
    ("series", "start", "count"),
)
# What no point is without, nor a row of an index.
_ALWAYS = (*_DATES, *_TIMES, *_COUNTS, "kernel", "grid", "device", "kind")


def _problem(name: str, column: pa.ChunkedArray) -> str:
    """What keeps a column from being one of points; '' if nothing does."""
    if name not in _ALWAYS:
        return ""
    if column.null_count:
        return "is missing in some rows"
    if name in _COUNTS and len(column) and pc.min(column).as_py() < 0:
        return "is negative"
    if name in _TIMES and not pc.all(pc.is_finite(column)).as_py() and len(column):
        return "is no number in some rows"
    if name in _DATES and len(column):
        bounds = pc.min_max(column.cast("int64")).as_py()
        if bounds["min"] < 0 or bounds["max"] >= LAST_MICROSECOND:
            return "is no date in some rows"
    return ""


def _holds(series: pq.ColumnChunkMetaData, wanted: npt.NDArray[np.int64]) -> bool:
    """Whether a row group can hold one of these series, by the bounds that Parquet keeps of its numbers."""
    bounds = series.statistics
    if bounds is None or not bounds.has_min_max or not isinstance(bounds.min, int):
        return True
    return bool(np.searchsorted(wanted, bounds.max, "right") > np.searchsorted(wanted, bounds.min))
