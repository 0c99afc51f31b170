"""The frame of an ``.ncu-rep``: the one reader, and the one writer, of a report's blocks.

A report is ``NVR\0``, a header, and a sequence of blocks. Each header is a 32-bit little-endian length and a
protocol-buffer message. A block's header says how many items follow and how many bytes they take; each item is a
32-bit length and a message: a cubin with its sources, or one profiled launch (or range, command list, graph). Names of
metrics are numbers into a string table that the block headers build up. The ``.proto`` files that come with every
Nsight Compute (``extras/FileFormat``) describe the messages.

Walking the blocks takes time in proportion to their number and finds every truncation except one exactly between two
blocks. The format has no checksum: a changed byte inside a value cannot be told from a true one. What no report of ncu
holds (empty blocks, millions of items) is refused, so that a made file costs no more than a true one of its size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from gemmprof.ncurep import ncu_messages_pb2 as messages

# --- Protobuf on the wire ---------------------------------------------------------------------------------------------
# How bytes of a report become messages: protobuf's decoder, with limits, and one error for all that can be wrong.
#
# Which fields there are stands in ``ncu_messages.proto``. A decoded message takes up to twenty times the memory of its
# bytes where somebody meant it to. So most messages may be small only, and the few that are large in true reports are
# walked before they are decoded.

M = TypeVar("M", bound=Message)
SMALL_BYTES = 4 << 20  # messages up to this size cost little whatever is in them
MAX_BYTES = 128 << 20  # no launch is larger: the largest recorded, of fifteen thousand instructions, has 9 MB
MAX_FIELDS = 500_000  # no large message has more fields: a launch has some thousand metrics
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are no message of a report."""


def decode(kind: type[M], data: bytes, *, most: int = SMALL_BYTES) -> M:
    """The message of this kind in the bytes; of more than `SMALL_BYTES` (``most`` at all) fields are counted before.

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
    """As `decode`, with `check_types` on the message itself; WireError if the bytes are no such message."""
    message = decode(kind, data, most=most)
    check_types(message)
    return message


def check_types(message: Message) -> None:
    """Refuse (WireError) a known field of another type, which a decoder takes for an unknown field and drops."""
    unknown = UnknownFieldSet(message)
    if not len(unknown):
        return
    known = message.DESCRIPTOR.fields_by_number
    for field in map(unknown.__getitem__, range(len(unknown))):
        if field.field_number in known or field.wire_type not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
            where = f"field {field.field_number} of a {message.DESCRIPTOR.name}"
            raise WireError(f"{where} has wire type {field.wire_type}")


def _field_ends(data: bytes) -> Iterator[int]:
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
    """The unsigned varint at ``position`` and the position behind it; WireError if it has no end, or is too long."""
    result, shift, at = 0, 0, position
    while shift < 70 and at < len(data):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
    raise WireError(f"varint without an end at byte {position}")


# --- The frame of an ``.ncu-rep`` -------------------------------------------------------------------------------------

MAGIC = b"NVR\0"
MAX_BLOCKS = 250_000
MAX_ITEMS = 500_000
MAX_STRINGS = 100_000
MAX_HEADER_BYTES = 16 << 20  # more are refused: ncu writes a block a launch, and some thousand names
WORKLOADS = ("kernel", "range", "command list", "graph")
Read = Callable[[int, int], bytes]  # the bytes of the report from the first to before the second position
_U32 = struct.Struct("<I")
# Counts in a block header, in the order in which the items follow.
_ITEM_KINDS = {
    "sources": "source", "kernels": "kernel", "ranges": "range", "command_lists": "command list", "graphs": "graph",
    "graph_structures": "graph structure",
}  # fmt: skip


class Torn(WireError):
    """The file ends in the middle of something."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a block: what it is, where its message lies, and the process that it belongs to."""

    kind: str
    start: int
    end: int
    process: int


@dataclass(frozen=True, slots=True)
class Block:
    """One block: where its header and its payload begin, where it ends, and what its header says."""

    start: int
    payload: int
    end: int
    counts: tuple[tuple[str, int], ...]
    process: int
    session: bytes | None
    strings: tuple[str, ...]

    def count(self, kind: str) -> int:
        """How many items of this kind it holds."""
        return sum(number for name, number in self.counts if name == kind)


def read_head(read: Read, size: int) -> tuple[int, int]:
    """Version of the file format, and where the first block begins; WireError if damaged, Torn if it ends before."""
    header, position = _message(read, len(MAGIC), size, size, "the file header")
    head = decode(messages.FileHeader, header)
    if not head.HasField("version"):
        raise WireError("the file header has no version")
    return head.version, position


def blocks(read: Read, position: int, size: int) -> Iterator[Block]:
    """The blocks from ``position`` on; behind them WireError at a damaged one, Torn at one that is cut off."""
    strings = 0
    for number in range(MAX_BLOCKS + 1):
        if position >= size:
            return
        if number == MAX_BLOCKS:
            raise WireError(f"more than {MAX_BLOCKS} blocks")
        start = position
        header, position = _message(read, position, size, size, "a block header")
        head = decode_strictly(messages.BlockHeader, header)
        end = position + head.payload_size
        if end > size:
            raise Torn(f"a block needs {head.payload_size} bytes from byte {position}, the file has {size}")
        kinds = tuple((kind, count) for name, kind in _ITEM_KINDS.items() if (count := getattr(head, name)))
        held = sum(count for _, count in kinds)
        # Each item takes four bytes at least: a damaged count ends here and not in a loop of four billion steps.
        if 4 * held > head.payload_size:
            raise WireError(f"{held} items in a block of {head.payload_size} bytes")
        names = head.strings.names
        session = head.session if head.HasField("session") else None
        if not held and session is None and not names:
            raise WireError(f"a block that holds nothing at byte {start}")
        strings += len(names)
        if strings > MAX_STRINGS:
            raise WireError(f"more than {MAX_STRINGS} names of metrics")
        yield Block(start, position, end, kinds, head.process.id, session, tuple(names))
        position = end


def items(read: Read, block: Block, size: int) -> Iterator[Item]:
    """The items of a block, in the order of the file; WireError if their lengths do not add up to the block."""
    position = block.payload
    for kind, count in block.counts:
        for _ in range(count):
            start, stop = _span(read, position, block.end, size, f"a {kind} item")
            yield Item(kind, start, stop, block.process)
            position = stop
    if position != block.end:
        raise WireError(f"{block.end - position} bytes are left at the end of a block at byte {block.end}")


def _span(read: Read, position: int, end: int, size: int, what: str) -> tuple[int, int]:
    """Start and end of the length-prefixed message at ``position``."""
    start = position + _U32.size
    if start <= end:
        length: int = _U32.unpack(read(position, start))[0]
        if not length:
            raise WireError(f"{what} without content at byte {position}")
        if start + length <= end:
            return start, start + length
    if end == size:
        raise Torn(f"it ends in the middle of {what}: {end} bytes")
    raise WireError(f"{what} at byte {position} runs past its block")


def _message(read: Read, position: int, end: int, size: int, what: str) -> tuple[bytes, int]:
    start, stop = _span(read, position, end, size, what)
    if stop - start > MAX_HEADER_BYTES:
        raise WireError(f"{what} of {stop - start} bytes")
    return read(start, stop), stop


def framed(message: bytes) -> bytes:
    """A message behind its length."""
    return _U32.pack(len(message)) + message


def block_bytes(
    found: Iterable[bytes], *, kind: str, process: int, strings: Iterable[str] | None = None
) -> bytes:
    """A block of items of one kind, whose header brings a table of metric names where one is given."""
    framed_items = [framed(item) for item in found]
    payload = b"".join(framed_items)
    header = messages.BlockHeader(
        payload_size=len(payload),
        process=messages.Process(id=process, host="localhost", name="kernel"),
        strings=None if strings is None else messages.StringTable(names=strings),
    )
    counter = next(counter for counter, name in _ITEM_KINDS.items() if name == kind)
    setattr(header, counter, len(framed_items))
    return framed(header.SerializeToString()) + payload
