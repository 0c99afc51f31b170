"""The files of a store that count, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from gemmprof.analysis.history.changes import Times
from gemmprof.base.documents import DocumentError, read_json
from gemmprof.base.foreign_files import RefusedFileError
from gemmprof.reports.history.index import (
    NAMES,
    Piece,
    catalogue,
    index_notes,
    index_of,
    index_table,
    joined,
    load_index,
    loose_index,
    piece_of,
    sorted_piece,
)
from gemmprof.reports.history.point_files import PointsReader, read_columns, rows_at, rows_of_series

COMPACT = "compact-"
REPLACES = b"gemmprof.replaces"  # key of a compacted file's metadata: the names of the records that are in it


@dataclass(frozen=True, slots=True)
class Listing:
    """Files of a store that count.

    Attributes:
        compacted, records: their paths.
        replaced: names of records that a compacted file holds too; they do not count, if they are there still.
    """

    compacted: tuple[Path, ...]
    records: tuple[Path, ...]
    replaced: frozenset[str] = frozenset()

    @classmethod
    def of(cls, present: Iterable[Path]) -> Listing:
        """Those of the files that are present."""
        found = sorted(present)
        compacted = [path for path in found if path.name.startswith(COMPACT)]
        replaced: set[str] = set()
        for path in compacted:
            metadata = index_notes(index_of(path))  # it says it too, and its foot is short
            if REPLACES not in metadata:
                with PointsReader(path) as file:
                    metadata = file.schema.metadata or {}
            replaced |= _replaced(path, metadata)
        return cls(
            tuple(path for path in compacted if path.name not in replaced),
            tuple(path for path in found if path not in compacted and path.name not in replaced),
            frozenset(replaced),
        )

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file that counts."""
        return (*self.compacted, *self.records)

    def times(self) -> Times:
        """The times of everything, series by series, with what a search for steps needs to know."""
        columns = ["series", "kind", "count", "first", "last", "last_ns", "times"]
        indexes = [read_index(path, columns) for path in self.compacted]
        loose = _loose(self.records)
        pieces = [piece_of(index) for index in indexes]
        whole = joined(pieces if loose is None else [*pieces, loose]) or _loose(self.all)
        assert whole is not None, "somebody asked for the times of no file"
        named = [index.drop_columns(["times"]) for index in indexes]
        kinds = self._catalogue(named, loose, ("kind",)).column("kind").to_pylist()
        return Times(whole.numbers, whole.counts, whole.values, [kind == "profiled" for kind in kinds])

    def catalogue(self) -> pa.Table:
        """One row a series, by number: names, number of points, first and last time. No compacted file is read."""
        columns = ["series", *NAMES, "count", "first", "last", "last_ns"]
        indexes = [read_index(path, columns) for path in self.compacted]
        return self._catalogue(indexes, _loose(self.records), NAMES)

    def _catalogue(self, indexes: Sequence[pa.Table], loose: Piece | None, names: Sequence[str]) -> pa.Table:
        if loose is None:
            return catalogue(indexes, names)
        known = np.concatenate(
            [np.empty(0, np.int64), *(index.column("series").to_numpy() for index in indexes)]
        )
        fresh = loose.numbers[~np.isin(loose.numbers, known)]
        # The names of the others stand in the indexes; texts are what takes long to read.
        texts = (
            [rows_of_series(path, fresh, ["series", *names]) for path in self.records] if len(fresh) else []
        )
        return catalogue([*indexes, *texts, loose_index(loose)], names)

    def rows(self, numbers: Sequence[int]) -> pa.Table:
        """The rows of these series, by series and time."""
        wanted = np.asarray(numbers, dtype=np.int64)
        parts = []
        for path in self.compacted:
            index = read_index(path, ["series", "start", "count"])
            series, starts, counts = (index.column(name).to_numpy() for name in index.column_names)
            chosen = np.isin(series, wanted)
            parts.append(rows_at(path, starts[chosen], counts[chosen]))
        parts += [rows_of_series(path, wanted) for path in self.records]
        rows = pa.concat_tables(parts, promote_options="default")
        series = rows.column("series").to_numpy()
        if len(parts) == 1 and self.compacted and bool(np.all(series[1:] >= series[:-1])):
            return rows  # as the compaction sorted them
        return rows.sort_by([("series", "ascending"), ("recorded_at", "ascending")])


def read_index(compacted: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The index of a compacted file, or some columns; the file itself is read where an older gemmprof wrote none."""
    path = index_of(compacted)
    if path.exists():
        return load_index(path, columns)
    piece = _loose([compacted])
    assert piece is not None
    names = catalogue([read_columns(compacted, ["series", *NAMES]), loose_index(piece)])
    index = index_table(piece, names, np.cumsum(piece.counts) - piece.counts)
    return index.select(columns) if columns is not None else index


def _replaced(path: Path, metadata: Mapping[bytes, bytes]) -> set[str]:
    """The names of the records that a compacted file says it replaces: they are deleted, so they are names alone."""
    try:
        names = read_json(metadata.get(REPLACES, b"[]"), set[str])
    except DocumentError as error:
        raise RefusedFileError(path, f"is damaged: {error}") from None
    if strange := [name for name in names if Path(name).name != name]:
        raise RefusedFileError(path, f"is damaged: it replaces {min(strange)[:100]!r}")
    return names


def _loose(files: Sequence[Path]) -> Piece | None:
    """The times of these files, whatever their order; None without any."""
    if not files:
        return None
    rows = pa.concat_tables(read_columns(path, ["series", "recorded_at", "time_ns"]) for path in files)
    recorded = rows.column("recorded_at").cast("int64").to_numpy()
    return sorted_piece(rows.column("series").to_numpy(), recorded, rows.column("time_ns").to_numpy())
