"""Protocol-buffer wire format, as far as a report needs it: varints and the fields of one message.

Only the encoding is decoded here (https://protobuf.dev/programming-guides/encoding/); which field means what stands in
`messages`. Every read is bounds-checked, so damaged bytes end in `WireError` and never in a wrong slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types. Groups (3 and 4) do not occur in reports and are refused."""

_MAX_FIELD_NUMBER = 2**29 - 1
_DOUBLE = Struct("<d")
_FLOAT = Struct("<f")

FieldValue = int | bytes
"""A varint as int; everything else as its bytes."""


class WireError(ValueError):
    """The bytes are no protocol-buffer message."""


def varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """The unsigned varint at ``position`` and the position behind it."""
    result = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            if result >> 64:
                raise WireError(f"varint longer than 64 bits before byte {position}")
            return result, position
        shift += 7
        if shift > 63:
            break
    raise WireError(f"varint without an end at byte {position}")


def field(data: bytes, position: int, end: int) -> tuple[int, int, int, int]:
    """The field at ``position`` as (number, wire type, start, end of its value).

    The value of a varint is its encoded bytes; that of a length-delimited field excludes the length.

    Raises:
        WireError: where the bytes are no field, for example because a length points past ``end``.
    """
    tag = data[position]
    if tag < 0x80:
        position += 1
    else:
        tag, position = varint(data, position, end)
    number, kind = tag >> 3, tag & 7
    if not 0 < number <= _MAX_FIELD_NUMBER:
        raise WireError(f"field number {number} at byte {position}")
    if kind == BYTES:
        length, start = varint(data, position, end)
        stop = start + length
    elif kind == VARINT:
        start, stop = position, varint(data, position, end)[1]
    elif kind == FIXED64:
        start, stop = position, position + 8
    elif kind == FIXED32:
        start, stop = position, position + 4
    else:
        raise WireError(f"wire type {kind} at byte {position}")
    if stop > end:
        raise WireError(f"field {number} at byte {start} runs {stop - end} bytes past its message")
    return number, kind, start, stop


def spans(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of the message in ``data[start:end]``, each as `field` gives it.

    Raises:
        WireError: where the bytes are no message.
    """
    position = start
    while position < end:
        found = field(data, position, end)
        position = found[3]
        yield found


def fields(data: bytes) -> Iterator[tuple[int, FieldValue]]:
    """The fields of a small message as (number, value).

    Raises:
        WireError: as `spans`.
    """
    for number, kind, start, end in spans(data, 0, len(data)):
        yield number, varint(data, start, end)[0] if kind == VARINT else data[start:end]


def text(value: FieldValue) -> str:
    """A string field.

    Raises:
        WireError: if it is no string field or no UTF-8.
    """
    try:
        return as_bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"text that is not UTF-8 ({error.reason})") from None


def as_bytes(value: FieldValue) -> bytes:
    """A length-delimited field.

    Raises:
        WireError: if it is a number.
    """
    if isinstance(value, int):
        raise WireError("a number where bytes belong")
    return value


def integer(value: FieldValue) -> int:
    """An unsigned integer field.

    Raises:
        WireError: if it is none.
    """
    if not isinstance(value, int):
        raise WireError("bytes where a number belongs")
    return value


def real(value: FieldValue) -> float:
    """A double or float field.

    Raises:
        WireError: if it is neither.
    """
    data = as_bytes(value)
    if len(data) == 8:
        return float(_DOUBLE.unpack(data)[0])
    if len(data) == 4:
        return float(_FLOAT.unpack(data)[0])
    raise WireError(f"a floating-point number of {len(data)} bytes")


def encode_varint(value: int) -> bytes:
    """An unsigned integer as a varint."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_number(number: int, value: int) -> bytes:
    """A field that is an unsigned integer."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value)


def encode_bytes(number: int, value: bytes) -> bytes:
    """A field that is text, bytes or a message."""
    return encode_varint(number << 3 | BYTES) + encode_varint(len(value)) + value
