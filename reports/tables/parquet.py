"""The one way a Parquet file is written here, and the one way it is read.

It is written beside its place, onto the disk, then under its name, or not at all; a whole folder of tables is made that
way too, by `gemmprof.base.output.new_folder`. Read it is like every file that somebody else may have put there: its
schema must be the one asked for, and what it unpacks to is counted, page by page, before a row is read.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gemmprof.base.buckets import fetch, written
from gemmprof.base.foreign_files import MIB, RefusedFileError, open_file, url_of


def parquet_writer(
    path: Path,  # in a folder that is published as a whole (`gemmprof.base.output.new_folder`); else see `new_parquet`
    schema: pa.Schema,
    *,
    plain: Collection[str] = (),  # columns that are not compressed
    statistics: Sequence[str] = (),  # columns whose bounds are kept for each row group
    checksums: bool = False,  # keep one for each page: a flipped bit in one page of four goes unnoticed without
) -> pq.ParquetWriter:
    """A writer of a Parquet file that nobody reads yet.

    Texts are written as dictionaries, since they repeat; measured values hardly do, so theirs would only cost time.
    """
    return pq.ParquetWriter(
        path,
        schema,
        compression={name: "none" if name in plain else "zstd" for name in schema.names} or "zstd",
        use_dictionary=[part.name for part in schema if not pa.types.is_primitive(part.type)],
        write_statistics=list(statistics) or False,
        write_page_checksum=checksums,
    )


@contextmanager
def new_parquet(target: Path, schema: pa.Schema, **more: Any) -> Iterator[pq.ParquetWriter]:
    """A Parquet file to write to (more as `parquet_writer`), which takes its name when it is whole on disk; what a
    killed process left of an earlier attempt is cleared away. At an error nothing is left; an OSError names the target.
    """
    with written(target) as path, parquet_writer(path, schema, **more) as writer:
        yield writer


def write_parquet(table: pa.Table, target: Path, *, row_group: int | None = None, **more: Any) -> None:
    """Write a table as a Parquet file, whole or not at all; more as `new_parquet` has it."""
    with new_parquet(target, table.schema, **more) as writer:
        writer.write_table(table, row_group_size=row_group)


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of a schema: those that it has of that type, the others null."""
    there = dict(zip(table.column_names, table.columns, strict=True))
    columns = [
        there[part.name].cast(part.type) if part.name in there else pa.nulls(len(table), part.type)
        for part in schema
    ]
    return pa.table(columns, schema=schema)


LARGEST_FOOTER = 8 * MIB  # bytes of a file's own description; a data set of full reports has 100 KiB
LARGEST_READ = 256 * MIB  # bytes that the columns of a small file may take in memory,
# and how many times its own size those of a larger one: ten million recorded times shrink to a fifth.
LARGEST_RATIO = 16
# PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY: what Arrow writes. The others let a few bytes
# stand for many long texts.
_ENCODINGS = frozenset({0, 2, 3, 4, 8})
_CODECS = frozenset({0, 1, 6})  # UNCOMPRESSED, SNAPPY, ZSTD
# Fields in parquet.thrift: of the file, a row group, a column in it, and that one's metadata and statistics.
_SCHEMA, _GROUPS = 2, 4
_COLUMNS, _ROWS = 1, 3
_METADATA, _ENCRYPTED = 3, frozenset({8, 9})
_TYPE, _CODEC, _PACKED, _DATA_OFFSET, _DICTIONARY_OFFSET, _STATISTICS = (
    1,
    4,
    7,
    9,
    11,
    12,
)  # the first a schema's, too
_MOST, _LEAST = 5, 6
_BYTES_OF_A_VALUE = 9  # in memory at most, but for texts: the value or its offset, and whether it is there


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column in a row group: its place in the file in bytes, whether it begins with a dictionary, its bounds."""

    start: int
    end: int
    dictionary: bool
    bounds: tuple[bytes, ...]

    @classmethod
    def of(cls, fields: dict[int, Any]) -> Self:
        start, kept = int(fields.get(_DICTIONARY_OFFSET) or fields[_DATA_OFFSET]), fields.get(_STATISTICS, {})
        bounds = tuple(kept[name] for name in (_LEAST, _MOST) if isinstance(kept.get(name), bytes))
        return cls(start, start + int(fields[_PACKED]), _DICTIONARY_OFFSET in fields, bounds)


class ParquetReader:
    """A Parquet file of somebody's, of which no more is read than it may hold.

    RefusedFileError where it is no table of such columns, or holds more than a file of its size may; OSError and
    pyarrow.ArrowException where it cannot be read, or is damaged.
    """

    def __init__(
        self,
        path: Path,
        kind: Callable[[str], pa.DataType | None],  # of a column of this name; None: no such table has it
        coded: Sequence[str] = (),  # columns of texts that few values repeat in, given as codes and these
    ) -> None:
        self._path = path
        self._source = fetch(url) if (url := url_of(path)) else open_file(path, links=False)
        try:
            self._size = os.fstat(self._source.fileno()).st_size
            self._source.seek(max(0, self._size - 8))
            tail = self._source.read(8)
            if len(tail) < 8 or tail[4:] != b"PAR1":
                raise self.refused("is no Parquet file, or cut short")
            length = struct.unpack("<I", tail[:4])[0]
            if length > min(LARGEST_FOOTER, self._size - 8):
                raise self.refused("is no table of ours: it describes itself at great length")
            self._source.seek(-8 - length, os.SEEK_END)
            footer = self._source.read(length)
            self._file = pq.ParquetFile(
                self._source,
                read_dictionary=coded,
                thrift_string_size_limit=LARGEST_FOOTER,
                thrift_container_size_limit=1 << 18,
            )
            self.metadata: pq.FileMetaData = self._file.metadata  # what the file says of itself
            self.schema: pa.Schema = self._file.schema_arrow  # of the columns; pyarrow makes it at each look
            self._check_schema(kind)
            self._groups = self._described(footer)
        except (UnicodeError, KeyError) as error:  # a key is what of `coded` is not there
            self._source.close()
            missing = not isinstance(error, UnicodeError)
            what = "is no such table: a column is missing" if missing else "is damaged"
            raise self.refused(f"{what}: {error}") from None
        except BaseException:
            self._source.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def read(
        self, columns: Iterable[str] | None = None, among: tuple[str, Sequence[Any]] | None = None
    ) -> pa.Table:
        """Some columns, or all; of the rows those alone in which one is ``among`` some texts or whole numbers, if that
        is given.

        Row groups in which it cannot be one of them, by the bounds that the file keeps, are not read. RefusedFileError
        if they hold more than a file of this size may, pyarrow.ArrowException if they are damaged.
        """
        wanted = self.schema.names if columns is None else list(columns)
        needed = list(dict.fromkeys([*wanted, *(among or ())[:1]]))
        if missing := set(needed) - set(self.schema.names):
            raise self.refused(f"is no such table: it has no column {min(missing)!r}")
        groups: Sequence[int] = range(len(self._groups))
        if among is None:
            self._count(needed, groups)
            return self._read(needed, groups)
        name, sought = among[0], sorted(among[1])
        groups = [at for at in groups if self._may_hold(at, name, sought)]
        self._count(needed, groups)
        found, values = [self.schema.empty_table()], pa.array(sought, self.schema.field(name).type)
        for at in groups:  # one after the other: what is left of each is little
            rows = self._read(needed, [at])
            found.append(rows.filter(pc.is_in(rows[name], values)))
        return pa.concat_tables(part.select(wanted) for part in found)

    def _read(self, columns: Sequence[str], groups: Sequence[int]) -> pa.Table:
        found = self._file.read_row_groups(groups, columns=columns, use_threads=False)
        found.validate(full=True)
        return found.select(columns)

    def _may_hold(self, group: int, name: str, values: Sequence[Any]) -> bool:
        """Whether one of these values, which rise, lies within the bounds of a column there."""
        place = self.schema.get_field_index(name)
        bounds = self._groups[group][1][place].bounds
        kind = self.schema.field(place).type
        try:
            if pa.types.is_integer(kind):
                signed = pa.types.is_signed_integer(kind)
                least, most = (int.from_bytes(bound, "little", signed=signed) for bound in bounds)
            else:
                least, most = (bound.decode() for bound in bounds)
        except (UnicodeError, TypeError, ValueError):  # none, or damaged: then the rows tell
            return True
        at = bisect_left(values, least)
        return at < len(values) and bool(values[at] <= most)

    def refused(self, why: str) -> RefusedFileError:
        """The error for this file."""
        return RefusedFileError(self._path, why)

    def _check_schema(self, kind: Callable[[str], pa.DataType | None]) -> None:
        seen = set()
        stored = self._file.schema  # made again at each look, too
        for at, part in enumerate(self.schema):
            expected = kind(part.name)
            if expected is None or part.name in seen:
                raise self.refused(f"is no such table: it has a column {part.name[:60]!r}")
            kept = part.type.value_type if pa.types.is_dictionary(part.type) else part.type
            if kept != expected:
                told = f"{part.name[:60]!r} is {str(kept)[:60]}, not {expected}"
                raise self.refused(f"is no such table: {told}")
            column = stored.column(at)
            if column.max_repetition_level or column.name != part.name:
                raise self.refused(f"is no such table: {part.name[:60]!r} is nested")
            seen.add(part.name)

    def _described(self, footer: bytes) -> list[tuple[int, list[_Chunk]]]:
        """Of each row group how many rows it has, and its columns. Not asked of pyarrow, which ends the process at a
        damaged one: nothing there catches the error. The schema is flat by now: its root, and a column each.
        """
        try:
            said = _Head(footer).struct()
            types = [element[_TYPE] for element in said[_SCHEMA][1:]]
            groups = [(int(group[_ROWS]), group[_COLUMNS]) for group in said[_GROUPS]]
            found = []
            for rows, columns in groups:
                described = [column[_METADATA] for column in columns]
                if [column[_TYPE] for column in described] != types or rows < 0:
                    raise self.refused("is damaged: a row group of other columns")
                if any(column.keys() & _ENCRYPTED for column in columns):
                    raise self.refused("is encrypted, as no table of ours")
                if strange := {column[_CODEC] for column in described} - _CODECS:
                    raise self.refused(f"is compressed with codec {min(strange)}, as no table of ours")
                found.append((rows, [_Chunk.of(column) for column in described]))
            return found
        except (LookupError, TypeError, ValueError, AttributeError):
            raise self.refused("is damaged: its description cannot be read") from None

    def _count(self, columns: Sequence[str], groups: Sequence[int]) -> None:
        """Refuse what unpacks to too much, by the pages' own heads: nothing compares the footer with them."""
        most = max(LARGEST_READ, LARGEST_RATIO * self._size)
        total = longest = 0
        texts = []
        for number in groups:
            rows, chunks = self._groups[number]
            for name in columns:
                at = self.schema.get_field_index(name)
                sizes = self._unpacked(chunks[at])
                total += sum(sizes) + _BYTES_OF_A_VALUE * rows
                if pa.types.is_string(self.schema.field(at).type) and chunks[at].dictionary:
                    # No text is longer than the dictionary that it stands in.
                    longest += sizes[0] * rows
                    texts.append((number, name))
        if total + longest > most:
            for number, name in texts:
                if total <= most:
                    total += self._texts(number, name)
        if total > most:
            raise self.refused(f"unpacks to more than {most / MIB:,.0f} MiB, which no table of its size does")

    def _unpacked(self, chunk: _Chunk) -> list[int]:
        """Bytes that each page of a column unpacks to."""
        if not 4 <= chunk.start <= chunk.end <= self._size:
            raise self.refused("is damaged: a column lies outside of it")
        try:
            found = list(pages(self._source, chunk.start, chunk.end))
        except PageError as error:
            raise self.refused(f"is damaged: {error}") from None
        if strange := {page.encoding for page in found} - _ENCODINGS:
            raise self.refused(f"is damaged: a page of encoding {min(strange)}")
        return [page.unpacked for page in found]

    def _texts(self, group: int, name: str) -> int:
        """Bytes of a column's texts in memory: a dictionary lets a page of a kilobyte stand for millions of them."""
        coded = pq.ParquetFile(self._source, read_dictionary=[name], metadata=self.metadata)
        total = 0
        for part in coded.read_row_group(group, columns=[name], use_threads=False)[name].chunks:
            part.validate(full=True)
            lengths = pc.binary_length(part.dictionary).cast("int64")
            total += pc.sum(lengths.take(part.indices)).as_py() or 0
        return total


_LONGEST_HEAD = 16 << 10  # bytes of a head; those with bounds of long texts have a kilobyte or two
_DEEPEST = 8
_STRUCT, _LIST, _BINARY, _DOUBLE, _BYTE = 12, 9, 8, 7, 3
_INTEGERS = (4, 5, 6)
# Fields of the head of a data page, of a dictionary, and of a data page of the second version.
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8


class PageError(ValueError):
    """A head that is none, or a page that lies outside of its column."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page."""

    unpacked: int  # bytes without compression
    encoding: int  # parquet.thrift's ``Encoding``


def pages(file: BinaryIO, start: int, end: int) -> Iterator[Page]:
    """The pages between two places of a file; PageError if it is damaged."""
    while start < end:
        file.seek(start)
        head = _Head(file.read(min(_LONGEST_HEAD, end - start)))
        try:
            fields = head.struct()
            kind = next(fields[name] for name in (_DATA, _DICTIONARY, _DATA_2) if name in fields)
            unpacked, packed = fields[2], fields[3]
            encoding = kind[4 if _DATA_2 in fields else 2]
        except (LookupError, TypeError, StopIteration):
            raise PageError("a page has no whole head") from None
        start += head.position + packed
        if packed < 0 or unpacked < 0 or start > end:
            raise PageError("a page lies outside of its column")
        yield Page(unpacked, encoding)


class _Head:
    """Thrift's compact form, as pages' heads and the footer have it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def _byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise LookupError

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct by their numbers."""
        if depth > _DEEPEST:
            raise LookupError
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            found[field] = self._value(head & 15, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # a truth is its own type
            return kind == 1
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _LIST:
            head = self._byte()
            count, kind = head >> 4, head & 15
            if count == 15:
                count = self._varint()
            if depth > _DEEPEST or kind in (
                1,
                2,
            ):  # truths in a list have bytes of their own; none of ours has any
                raise LookupError
            return [self._value(kind, depth + 1) for _ in range(count)]
        skipped = {_BYTE: lambda: 1, _DOUBLE: lambda: 8, _BINARY: self._varint}.get(kind)
        if skipped is None:  # sets and maps stand in no file
            raise LookupError
        length = skipped()
        if length > len(self._data):
            raise LookupError
        self.position += length
        return self._data[self.position - length : self.position]
