"""The index beside a compacted file of a history: one row a series, so that questions about all series read no points.

    <store>/series/compact-<id>.arrow      of records/compact-<id>.parquet, by number of the series: its names, how many
                                           points, the row of the first one, first and last time, and all times

The points of a series stand together in the compacted file, in order of time. Series in which a step was found stand
last, since their points are those that a search for steps reads whole. ``times`` are little-endian doubles. An Arrow
file is read as fast as the disk gives it, a third of what the same costs as Parquet, and a search waits for it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gemmprof.base.foreign_files import RefusedFileError, open_file, read_bytes
from gemmprof.base.output import new_file

ROOM = "series"
SUFFIX = ".arrow"
LARGEST_BYTES = 4 << 30  # of an index: half a billion recorded times
_LONGEST_SCHEMA = 4 << 20
_MAGIC = b"ARROW1\0\0"
NAMES = ("kernel", "grid", "device", "kind")
LAST_MICROSECOND = 253_402_300_800_000_000  # of the year 9999, the last one that Python's dates know


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
        return np.cumsum(self.counts) - self.counts


def index_table(piece: Piece, names: pa.Table, starts: npt.NDArray[np.int64]) -> pa.Table:
    """The index of a compacted file.

    Args:
        piece: its times.
        names: one row a series, by number, with `NAMES`.
        starts: the row of each series' first point.
    """
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
    with (
        new_file(target, durable=True) as path,
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def load_index(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """An index, or some columns of it.

    The batches are read one after the other, as they lie: the foot of such a file may name one batch a million times.

    Raises:
        RefusedFileError: it is no index, or compressed (none of ours is), so that nobody knows what it unpacks to.
        OSError, pyarrow.ArrowException: it is not there, or damaged.
    """
    messages = _messages(path, read_bytes(path, LARGEST_BYTES))
    schema = _schema(path, messages)
    batches = []
    for message in messages:
        if message.type != "record batch" or _is_compressed(message.metadata):
            raise RefusedFileError(path, f"is no index of a history: it holds a {message.type[:40]}")
        batches.append(pa.ipc.read_record_batch(message, schema))
    table = pa.Table.from_batches(batches, schema)
    table.validate(full=True)
    if problem := _problem(table):
        raise RefusedFileError(path, f"is no index of a history: {problem}")
    return table.select(columns) if columns is not None else table


def _messages(path: Path, data: bytes) -> pa.ipc.MessageReader:
    if not data.startswith(_MAGIC):
        raise RefusedFileError(path, "is no Arrow file")
    return pa.ipc.MessageReader.open_stream(pa.py_buffer(data).slice(len(_MAGIC)))


def _schema(path: Path, messages: pa.ipc.MessageReader) -> pa.Schema:
    schema = pa.ipc.read_schema(messages.read_next_message())
    moment = pa.timestamp("us", tz="UTC")
    expected = {
        **{name: pa.int64() for name in ("series", "start", "count")},
        **{name: pa.string() for name in NAMES},
        **{"first": moment, "last": moment, "last_ns": pa.float64(), "times": pa.large_binary()},
    }
    try:
        found = [(part.name, part.type) for part in schema]
    except UnicodeError:
        found = []
    if dict(found) != expected or len(found) != len(expected):
        raise RefusedFileError(path, "is no index of a history: it has other columns")
    return schema


def _is_compressed(metadata: pa.Buffer) -> bool:
    """Whether a record batch says that its buffers are compressed: Arrow unpacks them without asking how much.

    The batch is a flatbuffer (``Message.fbs``), whose tables Arrow has checked: ``Message.header`` is the third
    field of its root, ``RecordBatch.compression`` the fourth of that one.
    """

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(f"<{kind}", metadata, at)[0])

    def field(table: int, which: int) -> int:
        slots = table - number("i", table)
        slot = 4 + 2 * which
        offset = number("H", slots + slot) if slot < number("H", slots) else 0
        return table + offset if offset else 0

    header = field(number("I", 0), 2)
    return bool(field(header + number("I", header), 3))


def _problem(index: pa.Table) -> str:
    """What keeps rows from being those of an index; '' if nothing does."""
    if any(column.null_count for column in index.columns):
        return "something is missing in some rows"
    series, starts, counts = (index.column(name).to_numpy() for name in ("series", "start", "count"))
    if np.any(series < 0) or np.any(np.diff(series) <= 0):
        return "its series do not follow each other"
    sizes = pc.binary_length(index.column("times")).to_numpy()
    if np.any(counts < 1) or np.any(counts != sizes / 8) or np.any((starts < 0) | (starts > sizes.sum())):
        return "its times are not as many as it says"
    if not pc.all(pc.is_finite(index.column("last_ns"))).as_py() and len(index):
        return "a time is no number"
    first, last = (index.column(name).cast("int64").to_numpy() for name in ("first", "last"))
    if np.any(first < 0) or np.any(last < first) or np.any(last >= LAST_MICROSECOND):
        return "a date is none"
    return ""


def index_notes(path: Path) -> dict[bytes, bytes]:
    """What was written into an index beside its columns; {} where there is none."""
    try:
        with open_file(path) as file:
            head = file.read(_LONGEST_SCHEMA)
        return dict(_schema(path, _messages(path, head)).metadata or {})
    except FileNotFoundError:
        return {}


def loose_index(piece: Piece) -> pa.Table:
    """What single records say of their series, but the names."""
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
        parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts]),
    )


def sorted_piece(
    numbers: npt.NDArray[np.int64], recorded: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> Piece:
    """Rows in any order as a piece."""
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
