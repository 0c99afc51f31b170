"""How much of a report that ncu was killed over is whole.

ncu appends a block to the report after each kernel, so a killed ncu leaves all finished kernels and at worst a torn
block at the end. The format's frame, described by the ``.proto`` files in ncu's ``extras/FileFormat``: 4 bytes of
magic, a sized header, then blocks of a sized header and a payload. The header says how many kernels the payload holds
and how long it is. Only that is read here; everything else about reports is the analysis' business.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAGIC = b"NVR\0"
_LENGTH = struct.Struct("<I")
_KERNELS_FIELD, _PAYLOAD_SIZE_FIELD = 2, 5
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class WholeBlocks:
    """The whole blocks of a report: where the last one ends, and how many kernels they hold."""

    end: int
    kernels: int


def whole_blocks(report: Path) -> WholeBlocks:
    """Walk the blocks of a report up to its end or the first torn one; nothing whole if it is no report."""
    end = kernels = 0
    try:
        with report.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(MAGIC)) != MAGIC or _sized(file) is None:
                return WholeBlocks(0, 0)
            end = file.tell()
            while (header := _sized(file)) is not None:
                fields = dict(_numbers(header))
                payload = fields.get(_PAYLOAD_SIZE_FIELD, 0)
                if file.tell() + payload > size:
                    break
                file.seek(payload, os.SEEK_CUR)
                end = file.tell()
                kernels += fields.get(_KERNELS_FIELD, 0)
    except (OSError, IndexError):
        pass  # an unreadable or malformed rest is not whole
    return WholeBlocks(end, kernels)


def cut_torn_end(report: Path) -> WholeBlocks:
    """Cut off a torn block at the end of a report that nobody writes any more; returns what is left."""
    whole = whole_blocks(report)
    if whole.kernels and whole.end < report.stat().st_size:
        os.truncate(report, whole.end)
    return whole


def _sized(file: BinaryIO) -> bytes | None:
    """The next length-prefixed message, None if the file ends before it does."""
    prefix = file.read(_LENGTH.size)
    if len(prefix) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(prefix)
    message = file.read(length)
    return message if len(message) == length else None


def _numbers(message: bytes) -> Iterator[tuple[int, int]]:
    """The integer fields of a protocol-buffer message as (field number, value).

    Raises:
        IndexError: the message is malformed.
    """
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, value
        elif kind == _BYTES:
            length, position = _varint(message, position)
            position += length
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        else:
            raise IndexError(f"wire type {kind}")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
