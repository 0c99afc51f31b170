"""The heads of a Parquet column's pages: what each unpacks to, before anything is unpacked.

A head is a Thrift struct in the compact protocol (parquet.thrift, ``PageHeader``). Libraries read it, and give a page
the memory that it asks for; none tells what that is before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

_LONGEST_HEAD = 16 << 10  # bytes of a head; those with bounds of long texts have a kilobyte or two
_DEEPEST = 8
_STRUCT, _BINARY, _DOUBLE, _BYTE = 12, 8, 7, 3
_INTEGERS = (4, 5, 6)
# Fields of the head of a data page, of a dictionary, and of a data page of the second version.
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8


class PageError(ValueError):
    """A head that is none, or a page that lies outside of its column."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        unpacked: bytes without compression.
        encoding: parquet.thrift's ``Encoding``.
    """

    unpacked: int
    encoding: int


def pages(file: BinaryIO, start: int, end: int) -> Iterator[Page]:
    """The pages between two places of a file.

    Raises:
        PageError: it is damaged.
    """
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
        skipped = {_BYTE: lambda: 1, _DOUBLE: lambda: 8, _BINARY: self._varint}.get(kind)
        if skipped is None:  # lists, sets and maps stand in no head
            raise LookupError
        length = skipped()
        if length > len(self._data):
            raise LookupError
        self.position += length
        return None
