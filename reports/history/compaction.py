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
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from gemmprof.analysis.history.changes import Times, series_with_steps
from gemmprof.reports.history.point_files import (
    PLAIN,
    REPLACES,
    ROW_GROUP,
    Listing,
    PointsReader,
    by_series,
    index_of,
    summed,
    write_points,
)
from gemmprof.reports.tables.parquet import fitted, new_parquet

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
    indexes: list[list[pa.Table]] = [[], []]  # of the quiet series and of the others, bin by bin
    with new_parquet(target, schema.with_metadata(replaces), plain=PLAIN) as writer:
        with (
            pa.ipc.new_file(spill / "loud.arrow", schema) as loud,
            pa.OSFile(str(spill / "rows.arrow")) as dealt,
        ):
            source = pa.ipc.open_file(dealt)
            for batches in bins:
                dealt_rows = by_series(pa.Table.from_batches(map(source.get_batch, batches)))
                index = summed(dealt_rows)
                has_step = _has_step(index, dealt_rows)
                for of, chosen in zip(indexes, (~has_step, has_step), strict=True):
                    of.append(index.filter(pa.array(chosen)))
                is_loud = np.repeat(has_step, index["count"].to_numpy())
                loud.write_table(dealt_rows.filter(pa.array(is_loud)))
                _put(writer, dealt_rows.filter(pa.array(~is_loud)))
                del dealt_rows  # before the next ones are read
        with pa.memory_map(str(spill / "loud.arrow")) as held_back:
            _put(writer, pa.ipc.open_file(held_back).read_all())
        index = pa.concat_tables(itertools.chain(*indexes))
        ends = np.cumsum(index["count"].to_numpy())
        starts = pa.array(np.concatenate([[0], ends[:-1]]), pa.int64())
        write_points(index.append_column("start", starts).replace_schema_metadata(replaces), index_of(target))


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


def _has_step(index: pa.Table, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Which of the series of an index have a step in these rows, which are theirs."""
    numbers, profiled = index["series"].to_numpy(), [kind == "profiled" for kind in index["kind"].to_pylist()]
    found = series_with_steps(Times(numbers, index["count"].to_numpy(), rows["time_ns"].to_numpy(), profiled))
    return np.isin(numbers, np.fromiter(found, np.int64))


def _put(writer: pq.ParquetWriter, rows: pa.Table) -> None:
    """Write rows as row groups of about one size: none is a small rest."""
    if groups := -(-len(rows) // ROW_GROUP):
        writer.write_table(rows.cast(writer.schema), row_group_size=-(-len(rows) // groups))
