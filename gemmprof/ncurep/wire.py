"""How bytes of a report become messages: protobuf's decoder, with limits, and one error for all that can be wrong.

Which fields there are stands in ``ncu_messages.proto``. A decoded message takes up to twenty times the memory of its
bytes where somebody meant it to. So most messages may be small only, and the few that are large in true reports are
walked before they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

M = TypeVar("M", bound=Message)

SMALL_BYTES = 4 << 20  # messages up to this size cost little whatever is in them
# No launch is larger: 9 MB is the largest recorded, of a kernel of fifteen thousand instructions.
MAX_BYTES = 128 << 20
MAX_FIELDS = 500_000  # no large message has more fields: a launch has some thousand metrics

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are no message of a report."""


def decode(kind: type[M], data: bytes, *, most: int = SMALL_BYTES) -> M:
    """The message of this kind in the bytes.

    Args:
        kind: which message.
        data: its bytes.
        most: how many they may be. Of more than `SMALL_BYTES` the fields are counted before they are decoded.

    Raises:
        WireError: if they are none: cut off, a length that points past the end, text that is not UTF-8, or too large.
    """
    size = len(data)
    if size > SMALL_BYTES:
        if size > most:
            raise WireError(f"a {kind.DESCRIPTOR.name} of {size >> 20} MiB")
        for number, _ in enumerate(_field_ends(data)):
            if number >= MAX_FIELDS:
                raise WireError(f"a {kind.DESCRIPTOR.name} of more than {MAX_FIELDS} fields")
    try:
        return kind.FromString(data)
    except DecodeError:
        raise WireError(f"{size} bytes are no {kind.DESCRIPTOR.name}") from None


def decode_strictly(kind: type[M], data: bytes, *, most: int = SMALL_BYTES) -> M:
    """As `decode`, with `check_types` on the message itself.

    Raises:
        WireError: if the bytes are no such message.
    """
    message = decode(kind, data, most=most)
    check_types(message)
    return message


def check_types(message: Message) -> None:
    """Refuse a known field of another type, which a decoder takes for an unknown field and drops.

    Raises:
        WireError: if there is one.
    """
    unknown = UnknownFieldSet(message)
    if not len(unknown):
        return
    known = message.DESCRIPTOR.fields_by_number
    for field in map(unknown.__getitem__, range(len(unknown))):
        if field.field_number in known or field.wire_type not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
            raise WireError(
                f"field {field.field_number} of a {message.DESCRIPTOR.name} has wire type {field.wire_type}"
            )


def _field_ends(data: bytes) -> Iterator[int]:
    """Where each field of a message ends.

    Raises:
        WireError: if the bytes are no message.
    """
    position, end = 0, len(data)
    while position < end:
        tag, position = varint(data, position)
        kind = tag & 7
        if kind == _BYTES:
            length, position = varint(data, position)
            position += length
        elif kind == _VARINT:
            position = varint(data, position)[1]
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        else:
            raise WireError(f"wire type {kind} before byte {position}")
        yield position


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned varint at ``position`` and the position behind it.

    Raises:
        WireError: if the bytes end before it does, or it is longer than one.
    """
    result = shift = 0
    for at in range(position, min(position + 10, len(data))):
        byte = data[at]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at + 1
        shift += 7
    raise WireError(f"varint without an end at byte {position}")
