"""The frame of an ``.ncu-rep``: the one reader, and the one writer, of a report's blocks.

A report is ``NVR\\0``, a header, and a sequence of blocks. Each header is a 32-bit little-endian length and a
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

from gemmprof import wire
from gemmprof.wire import WireError

MAGIC = b"NVR\0"
MAX_BLOCKS = 250_000
MAX_ITEMS = 500_000
MAX_STRINGS = 100_000
MAX_HEADER_BYTES = 64 << 20
"""More than these are refused: ncu writes a block a launch, and a table of a few thousand names."""

WORKLOADS = ("kernel", "range", "command list", "graph")

Read = Callable[[int, int], bytes]
"""The bytes of the report from the first to before the second position."""

_U32 = struct.Struct("<I")
# BlockHeader
_NUM_SOURCES, _NUM_RESULTS, _SESSION, _STRING_TABLE, _PAYLOAD_SIZE, _PROCESS = 1, 2, 3, 4, 5, 6
_NUM_RANGES, _NUM_COMMAND_LISTS, _NUM_GRAPHS_PROFILED, _NUM_GRAPHS = 7, 8, 9, 10
_ITEM_KINDS = {
    _NUM_SOURCES: "source",
    _NUM_RESULTS: "kernel",
    _NUM_RANGES: "range",
    _NUM_COMMAND_LISTS: "command list",
    _NUM_GRAPHS_PROFILED: "graph",
    _NUM_GRAPHS: "graph structure",
}
"""Counts in a block header, in the order in which the items follow."""


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
    """Version of the file format, and where the first block begins.

    Raises:
        WireError: if it is damaged.
        Torn: if the file ends before.
    """
    header, position = _message(read, len(MAGIC), size, size, "the file header")
    versions = [wire.integer(value) for number, value in wire.fields(header) if number == 1]
    if not versions:
        raise WireError("the file header has no version")
    return versions[-1], position


def blocks(read: Read, position: int, size: int) -> Iterator[Block]:
    """The blocks from ``position`` on, up to the end of the file.

    Raises:
        WireError: at the first damaged one, after those before it.
        Torn: if the file ends in the middle of one.
    """
    strings = 0
    for number in range(MAX_BLOCKS + 1):
        if position >= size:
            return
        if number == MAX_BLOCKS:
            raise WireError(f"more than {MAX_BLOCKS} blocks")
        start = position
        header, position = _message(read, position, size, size, "a block header")
        block = _block(header, start, position, size)
        strings += len(block.strings)
        if strings > MAX_STRINGS:
            raise WireError(f"more than {MAX_STRINGS} names of metrics")
        yield block
        position = block.end


def _block(header: bytes, start: int, payload_start: int, size: int) -> Block:
    counts: dict[int, int] = {}
    payload = process = 0
    session: bytes | None = None
    strings: list[str] = []
    for number, value in wire.fields(header):
        if number in _ITEM_KINDS:
            counts[number] = wire.integer(value)
        elif number == _PAYLOAD_SIZE:
            payload = wire.integer(value)
        elif number == _SESSION:
            session = wire.as_bytes(value)
        elif number == _STRING_TABLE:
            strings += [wire.text(item) for key, item in wire.fields(wire.as_bytes(value)) if key == 1]
        elif number == _PROCESS:
            process = next((wire.integer(v) for n, v in wire.fields(wire.as_bytes(value)) if n == 1), 0)
    end = payload_start + payload
    if end > size:
        raise Torn(f"a block needs {payload} bytes from byte {payload_start}, the file has {size}")
    held = sum(counts.values())
    # Each item takes four bytes at least: a damaged count ends here and not in a loop of four billion steps.
    if 4 * held > payload:
        raise WireError(f"{held} items in a block of {payload} bytes")
    if not held and session is None and not strings:
        raise WireError(f"a block that holds nothing at byte {start}")
    kinds = tuple((kind, counts[number]) for number, kind in _ITEM_KINDS.items() if counts.get(number))
    return Block(start, payload_start, end, kinds, process, session, tuple(strings))


def items(read: Read, block: Block, size: int) -> Iterator[Item]:
    """The items of a block, in the order of the file.

    Raises:
        WireError: if their lengths do not add up to the block.
    """
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


def block_bytes(found: Iterable[bytes], *, kind: str, process: int, header: bytes = b"") -> bytes:
    """A block of items of one kind; ``header`` are further fields of its header."""
    framed_items = [framed(item) for item in found]
    payload = b"".join(framed_items)
    number = next(number for number, name in _ITEM_KINDS.items() if name == kind)
    owner = (
        wire.encode_number(1, process) + wire.encode_bytes(2, b"localhost") + wire.encode_bytes(3, b"kernel")
    )
    return (
        framed(
            wire.encode_number(number, len(framed_items))
            + header
            + wire.encode_number(_PAYLOAD_SIZE, len(payload))
            + wire.encode_bytes(_PROCESS, owner)
        )
        + payload
    )


def string_table(names: Iterable[str]) -> bytes:
    """The header field with a table of metric names, for `block_bytes`."""
    return wire.encode_bytes(
        _STRING_TABLE, b"".join(wire.encode_bytes(1, name.encode("utf-8")) for name in names)
    )


def head_bytes(version: int) -> bytes:
    """Magic and file header of a report."""
    return MAGIC + framed(wire.encode_number(1, version))
