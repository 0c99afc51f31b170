"""Many records as one file, each series' points together and in order of time, with its index.

Rows are dealt out by the number of their series into bins on disk, then one bin after the other is sorted and written:
memory holds one bin, however many rows there are. Series with a step, whose points a search for steps reads whole, are
held back and come last, side by side.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from gemmprof.analysis.history.changes import Times, series_with_steps
from gemmprof.reports.history.index import NAMES, Piece, index_of, index_table, write_index
from gemmprof.reports.history.listing import REPLACES, Listing
from gemmprof.reports.history.point_files import ROW_GROUP, PointsReader, new_points
from gemmprof.reports.tables.parquet import fitted

# Rows of a bin, more or less: the numbers of series are hashes, so bins of equal width hold about as many.
BIN_ROWS = 1 << 16

READ_ROWS = 1 << 13  # rows that are decoded at a time

# Rows that are held before they are dealt out: so many at once make slices of a useful size.
HELD_ROWS = 1 << 16

# Folder beside the records for the bins of the compaction at work, which holds the store's lock.
SPILL = "spill"


def write_compacted(files: Listing, target: Path) -> None:
    """Write the rows of these files into one, and its index, in bounded memory.

    Args:
        files: what to put together.
        target: the compacted file; it counts from the moment that it has its name, which is after its index has.

    Raises:
        pyarrow.ArrowException, OSError: if a file is damaged, or the disk full.
    """
    spill = target.parent.parent / SPILL
    shutil.rmtree(spill, ignore_errors=True)  # of a compaction that was killed
    spill.mkdir()
    try:
        _write(files, target, spill)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _write(files: Listing, target: Path, spill: Path) -> None:
    replaces = {REPLACES: json.dumps([path.name for path in files.all]).encode()}
    schema, rows = _shape(files)
    bins = _deal(files, schema, max(1, -(-rows // BIN_ROWS)), spill / "rows.arrow")
    index = _Index(rows)
    with new_points(target, schema.with_metadata(replaces)) as writer:
        paper = _Paper(writer)
        with (
            pa.ipc.new_file(spill / "loud.arrow", schema) as loud,
            pa.OSFile(str(spill / "rows.arrow")) as dealt,
        ):
            source = pa.ipc.open_file(dealt)
            for batches in bins:
                found = _Bin.of(pa.Table.from_batches(map(source.get_batch, batches)))
                index.add(found)
                loud.write_table(found.rows.filter(pa.array(found.is_loud)))
                paper.write(found.rows.filter(pa.array(~found.is_loud)))
                del found  # before the next one is read
        with pa.OSFile(str(spill / "loud.arrow")) as held_back:
            source = pa.ipc.open_file(held_back)
            for at in range(source.num_record_batches):
                paper.write(pa.Table.from_batches([source.get_batch(at)]))
        paper.finish()
        write_index(index.table().replace_schema_metadata(replaces), index_of(target))


def _shape(files: Listing) -> tuple[pa.Schema, int]:
    """All columns of these files, and how many rows they have."""
    schemas, rows = [], 0
    for path in files.all:
        with PointsReader(path) as file:
            schemas.append(file.schema.remove_metadata())
            rows += file.metadata.num_rows
    return pa.unify_schemas(schemas, promote_options="permissive"), rows


def _deal(files: Listing, schema: pa.Schema, count: int, target: Path) -> list[list[int]]:
    """Write the rows of these files by bin: those of the series with the smallest numbers first.

    Returns:
        for each of up to ``count`` bins the record batches of ``target`` with its rows, in the order of the files.
    """
    bins: list[list[int]] = [[] for _ in range(count)]
    edges = np.array([(1 << 63) // count * at for at in range(1, count)], np.int64)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    held: list[pa.Table] = []
    numbers = itertools.count()
    with pa.ipc.new_file(target, schema, options=options) as writer:

        def deal() -> None:
            rows = pa.concat_tables(held).combine_chunks()
            held.clear()
            where = np.searchsorted(edges, rows["series"].to_numpy(), "right")
            order = np.argsort(where, kind="stable")
            rows = rows.take(pa.array(order))
            stops = np.searchsorted(where[order], np.arange(count), "right")
            for batches, start, stop in zip(bins, [0, *stops], stops, strict=False):
                for batch in rows.slice(start, stop - start).to_batches():
                    writer.write_batch(batch)
                    batches.append(next(numbers))

        for table in _read(files, schema):
            held.append(table)
            if sum(map(len, held)) >= HELD_ROWS:
                deal()
        if held:
            deal()
    return [batches for batches in bins if batches]


def _read(files: Listing, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of these files, some at a time, each with all columns."""
    for path in files.all:
        with PointsReader(path) as file:
            yield from (fitted(pa.Table.from_batches([batch]), schema) for batch in file.batches(READ_ROWS))


@dataclass(frozen=True, slots=True)
class _Bin:
    """The rows of some series, by series and time.

    Attributes:
        piece: their times.
        loud: which of its series have a step, by number.
        is_loud: whether each row is of such a series.
    """

    rows: pa.Table
    piece: Piece
    loud: npt.NDArray[np.int64]
    is_loud: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table) -> _Bin:
        recorded = rows["recorded_at"].cast("int64").to_numpy()
        order = np.lexsort((recorded, rows["series"].to_numpy()))
        rows, recorded = rows.combine_chunks().take(pa.array(order)), recorded[order]
        series, values = rows["series"].to_numpy(), rows["time_ns"].to_numpy()
        starts = np.flatnonzero(np.r_[True, series[1:] != series[:-1]])
        counts = np.diff(np.r_[starts, len(series)])
        piece = Piece(series[starts], counts, recorded[starts], recorded[starts + counts - 1], values)
        kinds = rows["kind"].take(pa.array(starts)).to_pylist()
        times = Times(piece.numbers, counts, values, [kind == "profiled" for kind in kinds])
        loud = np.array(sorted(series_with_steps(times)), np.int64)
        return cls(rows, piece, loud, np.isin(series, loud))


class _Index:
    """The index of a compacted file, bin by bin.

    Args:
        rows: of all bins.
    """

    def __init__(self, rows: int) -> None:
        self._times = np.empty(rows)
        self._filled = 0
        self._bins: list[tuple[Piece, pa.Table, npt.NDArray[np.int64]]] = []

    def add(self, part: _Bin) -> None:
        """Note the series of a bin."""
        piece = part.piece
        self._times[self._filled : self._filled + len(piece.values)] = piece.values
        self._filled += len(piece.values)
        names = part.rows.select(NAMES).take(pa.array(piece.starts))
        self._bins.append((replace(piece, values=np.empty(0)), names, part.loud))

    def table(self) -> pa.Table:
        """The whole."""

        def all_of(name: str) -> npt.NDArray[np.int64]:
            return np.concatenate([getattr(piece, name) for piece, _, _ in self._bins])

        numbers, counts = all_of("numbers"), all_of("counts")
        piece = Piece(numbers, counts, all_of("first"), all_of("last"), self._times)
        is_loud = np.isin(piece.numbers, np.concatenate([loud for _, _, loud in self._bins]))
        order = np.lexsort((piece.numbers, is_loud))
        starts = np.empty(len(order), np.int64)
        starts[order] = np.cumsum(piece.counts[order]) - piece.counts[order]
        return index_table(piece, pa.concat_tables(names for _, names, _ in self._bins), starts)


class _Paper:
    """Writes tables as row groups of one size, however long each table is."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._rest: pa.Table | None = None

    def write(self, table: pa.Table) -> None:
        """Write what makes whole row groups."""
        rows = table if self._rest is None else pa.concat_tables([self._rest, table])
        whole = len(rows) // ROW_GROUP * ROW_GROUP
        self._put(rows.slice(0, whole))
        # A copy of its own: a slice would keep all rows in memory.
        self._rest = rows.slice(whole).take(pa.array(range(len(rows) - whole), pa.int64()))

    def finish(self) -> None:
        """Write what is left."""
        if self._rest is not None:
            self._put(self._rest)

    def _put(self, rows: pa.Table) -> None:
        if len(rows):
            self._writer.write_table(rows.cast(self._writer.schema), row_group_size=ROW_GROUP)
