"""The index beside a compacted file of a history: one row a series, so that questions about all series read no points.

    <store>/series/compact-<id>.arrow      of records/compact-<id>.parquet, by number of the series: its names, how many
                                           points, the row of the first one, first and last time, and all times

The points of a series stand together in the compacted file, in order of time. Series in which a step was found stand
last, since their points are those that a search for steps reads whole. ``times`` are little-endian doubles. An Arrow
file is read as fast as the disk gives it, a third of what the same costs as Parquet, and a search waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.base.output import new_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

ROOM = "series"
SUFFIX = ".arrow"
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
class Piece:
    """The times of some rows of a store, sorted by series and time.

    Attributes:
        numbers: of the series, rising.
        counts: points of each.
        first, last: when each was recorded first and last, microseconds since 1970.
        values: times of all points, one series after the other, in nanoseconds.
    """

    numbers: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Position of each series' first value."""
        import numpy as np

        return np.cumsum(self.counts) - self.counts


def index_table(piece: Piece, names: pa.Table, starts: npt.NDArray[np.int64]) -> pa.Table:
    """The index of a compacted file.

    Args:
        piece: its times.
        names: one row a series, by number, with `NAMES`.
        starts: the row of each series' first point.
    """
    import numpy as np
    import pyarrow as pa

    ends = np.cumsum(piece.counts) * piece.values.itemsize
    data = pa.py_buffer(np.ascontiguousarray(piece.values, dtype="<f8"))
    offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int64))
    times = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(piece.numbers), [None, offsets, data])
    columns = {name: names.column(name) for name in NAMES}
    rest = loose_index(piece).drop_columns(["series"])
    return pa.table(
        {
            "series": piece.numbers,
            **columns,
            "start": starts,
            **dict(zip(rest.column_names, rest.columns, strict=True)),
        }
    ).append_column("times", times)


def index_of(compacted: Path) -> Path:
    """Where the index of a compacted file lies."""
    return compacted.parent.parent / ROOM / f"{compacted.stem}{SUFFIX}"


def write_index(table: pa.Table, target: Path) -> None:
    """Write an index, whole or not at all."""
    import pyarrow as pa

    with (
        new_file(target, durable=True) as path,
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def load_index(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """An index, or some columns of it.

    Raises:
        OSError, pyarrow.ArrowException: it is not there, or damaged.
    """
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:
        schema = pa.ipc.open_file(source).schema
        wanted = [schema.get_field_index(name) for name in columns or schema.names]
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        table = pa.ipc.open_file(source, options=options).read_all()
    return table.select(columns) if columns is not None else table


def index_notes(path: Path) -> dict[bytes, bytes]:
    """What was written into the foot of an index beside its columns; {} where there is none."""
    import pyarrow as pa

    try:
        with pa.OSFile(str(path)) as source:
            return dict(pa.ipc.open_file(source).schema.metadata or {})
    except FileNotFoundError:
        return {}


def loose_index(piece: Piece) -> pa.Table:
    """What single records say of their series, but the names."""
    import pyarrow as pa

    return pa.table(
        {
            "series": piece.numbers,
            "count": piece.counts,
            "first": pa.array(piece.first).cast(pa.timestamp("us", tz="UTC")),
            "last": pa.array(piece.last).cast(pa.timestamp("us", tz="UTC")),
            "last_ns": piece.values[piece.starts + piece.counts - 1],
        }
    )


def catalogue(indexes: Sequence[pa.Table], names: Sequence[str] = NAMES) -> pa.Table:
    """One row a series, by number, of indexes that may know the same series, and may lack columns but their names."""
    import pyarrow as pa

    if len(indexes) == 1:
        return indexes[0]
    kept = ("series", *names, "count", "first", "last", "last_ns")
    indexes = [index.select([name for name in kept if name in index.column_names]) for index in indexes]
    rows = pa.concat_tables(indexes, promote_options="default").sort_by([("last", "ascending")])
    wanted = [*((name, "first") for name in names), ("count", "sum"), ("first", "min"), ("last", "max")]
    found = rows.group_by("series", use_threads=False).aggregate([*wanted, ("last_ns", "last")])
    found = found.rename_columns(
        [name.rpartition("_")[0] if "_" in name else name for name in found.column_names]
    )
    return found.sort_by([("series", "ascending")])


def piece_of(index: pa.Table) -> Piece:
    """The times of a compacted file, from its index."""
    import numpy as np

    # The times of all series lie one after the other in the column's buffers: nothing is copied for one chunk.
    chunks = [chunk for chunk in index.column("times").chunks if len(chunk)]
    parts = []
    for chunk in chunks:
        _, offsets, data = chunk.buffers()
        bounds = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        parts.append(np.frombuffer(data, "<f8", (bounds[-1] - bounds[0]) // 8, bounds[0]))
    return Piece(
        index.column("series").to_numpy(),
        index.column("count").to_numpy(),
        index.column("first").cast("int64").to_numpy(),
        index.column("last").cast("int64").to_numpy(),
        parts[0] if len(parts) == 1 else np.concatenate(parts),
    )


def sorted_piece(
    numbers: npt.NDArray[np.int64], recorded: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> Piece:
    """Rows in any order as a piece."""
    import numpy as np

    order = np.lexsort((recorded, numbers))
    numbers, recorded, values = numbers[order], recorded[order], values[order]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    ends = np.r_[starts[1:], len(numbers)] - 1
    return Piece(numbers[starts], ends - starts + 1, recorded[starts], recorded[ends], values)


def joined(pieces: list[Piece]) -> Piece | None:
    """Pieces put together, series by series; None where one series' times lie between those of another piece.

    Nothing is sorted: pieces follow each other in time, since a store is only ever added to. Only somebody who records
    the past makes them overlap.
    """
    import numpy as np

    if len(pieces) == 1:
        return pieces[0]
    pieces = sorted(pieces, key=lambda piece: int(piece.first.min()))
    numbers = np.unique(np.concatenate([piece.numbers for piece in pieces]))
    places = [np.searchsorted(numbers, piece.numbers) for piece in pieces]
    counts = np.zeros(len(numbers), np.int64)
    first = np.full(len(numbers), np.iinfo(np.int64).max)
    last = np.full(len(numbers), np.iinfo(np.int64).min)
    for piece, at in zip(pieces, places, strict=True):
        if np.any(piece.first < last[at]):
            return None
        counts[at] += piece.counts
        first[at] = np.minimum(first[at], piece.first)
        last[at] = piece.last
    values = np.empty(int(counts.sum()))
    free = np.cumsum(counts) - counts
    largest = max(pieces, key=lambda piece: len(piece.values))
    others = np.zeros(len(values), bool)
    for piece, at in zip(pieces, places, strict=True):
        if piece is not largest:
            where = np.repeat(free[at] - piece.starts, piece.counts) + np.arange(len(piece.values))
            values[where] = piece.values
            others[where] = True
        free[at] += piece.counts
    values[~others] = largest.values  # what is left free, in the same order
    return Piece(numbers, counts, first, last, values)
