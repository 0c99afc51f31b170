"""Real reports as bytes to be changed: where their blocks begin, and what stands in a launch."""

from __future__ import annotations

import itertools
import lzma
import struct
from collections.abc import Callable, Mapping
from functools import cache

from recorded_data import DATA

from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages


@cache
def content_of(name: str) -> bytes:
    """The uncompressed bytes of a recorded report."""
    return lzma.decompress((DATA / f"{name}.ncu-rep.xz").read_bytes())


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The varint there and the position behind it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        shift += 7
        if data[at - 1] < 0x80:
            return value, at


def varint(value: int) -> bytes:
    """An encoded varint."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def fields_of(message: bytes) -> list[tuple[int, int, int, int, int]]:
    """Fields of a message as (number, wire type, start of the field, start of its value, end)."""
    found, at = [], 0
    while at < len(message):
        start = at
        tag, at = varint_at(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = at, varint_at(message, at)[1]
        elif kind == 1:
            value, at = at, at + 8
        elif kind == 5:
            value, at = at, at + 4
        else:
            length, value = varint_at(message, at)
            at = value + length
        found.append((tag >> 3, kind, start, value, at))
    return found


def boundaries(content: bytes) -> list[int]:
    """Where blocks begin, and the end of the file."""
    position = 8 + struct.unpack_from("<I", content, 4)[0]
    found = []
    while position < len(content):
        found.append(position)
        size = struct.unpack_from("<I", content, position)[0]
        header = content[position + 4 : position + 4 + size]
        payload = 0
        for number, kind, _, value, _ in fields_of(header):
            if number == 5 and kind == 0:
                payload = varint_at(header, value)[0]
        position += 4 + size + payload
    return [*found, position]


def blocks(content: bytes) -> list[bytes]:
    """The header of the file, then its blocks."""
    edges = boundaries(content)
    return [content[: edges[0]], *(content[a:b] for a, b in itertools.pairwise(edges))]


def block(items: list[bytes], *, kind: int = 2, header: bytes = b"") -> bytes:
    """A block of these items; ``header`` are further fields of its header."""
    payload = b"".join(struct.pack("<I", len(item)) + item for item in items)
    head = varint(kind << 3) + varint(len(items)) + header + b"\x28" + varint(len(payload))
    return struct.pack("<I", len(head)) + head + payload


def length_prefixed(number: int, value: bytes) -> bytes:
    """A field with bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def with_text(content: bytes, old: bytes, new: bytes) -> bytes:
    """The report with a text replaced by another of the same length, wherever it stands.

    Raises:
        ValueError: if it stands nowhere: a test that changes nothing tests nothing.
    """
    if old not in content or len(old) != len(new):
        raise ValueError(f"{old!r} is not there, or {new!r} is no replacement of its length")
    return content.replace(old, new)


Change = Callable[[messages.KernelResult, list[str], int], None]
"""Changes the message of a launch in place, given the names of metrics (which may grow) and its position."""


def rewritten(
    content: bytes,
    change: Change,
    *,
    session: Callable[[messages.Session], None] | None = None,
    process: int | None = None,
) -> bytes:
    """The report with its launches decoded, changed and encoded again; its session and process too where given."""

    def read(start: int, end: int) -> bytes:
        return content[start:end]

    position = ncu_frame.read_head(read, len(content))[1]
    parts, strings, count = [content[:position]], [], 0
    for found in ncu_frame.blocks(read, position, len(content)):
        header = messages.BlockHeader.FromString(read(found.start + 4, found.payload))
        strings += found.strings
        known = len(strings)
        items = []
        for item in ncu_frame.items(read, found, len(content)):
            data = read(item.start, item.end)
            if item.kind == "kernel":
                launch = messages.KernelResult.FromString(data)
                change(launch, strings, count)
                data, count = launch.SerializeToString(), count + 1
            items.append(ncu_frame.framed(data))
        header.strings.names.extend(strings[known:])
        if session is not None and header.HasField("session"):
            facts = messages.Session.FromString(header.session)
            session(facts)
            header.session = facts.SerializeToString()
        if process is not None:
            header.process.id = process
        payload = b"".join(items)
        header.payload_size = len(payload)
        parts.append(ncu_frame.framed(header.SerializeToString()) + payload)
    return b"".join(parts)


def set_metric(
    launch: messages.KernelResult,
    names: list[str],
    name: str,
    value: float | int | None = None,
    elements: Mapping[int, float] | None = None,
    *,
    beside: bool = False,
    by_time: bool = False,
) -> None:
    """Give a launch a metric in place of what it has of that name, or behind it (``beside``).

    ``by_time`` says that the keys of its elements are times.
    """
    if name not in names:
        names.append(name)
    number = names.index(name)
    metric = messages.Metric(name=number, keyed_by=int(by_time))
    if isinstance(value, int):
        metric.value.whole = value
    elif value is not None:
        metric.value.real = value
    pairs = [
        messages.Element(key=messages.Value(whole=key), value=messages.Value(real=count))
        for key, count in (elements or {}).items()
    ]
    data = metric.SerializeToString() + messages.MetricElements(elements=pairs).SerializeToString()
    kept = [found for found in launch.metrics if beside or messages.Metric.FromString(found).name != number]
    del launch.metrics[:]
    launch.metrics.extend([*kept, data])


def keep_metrics(launch: messages.KernelResult, names: list[str], wanted: Callable[[str], bool]) -> None:
    """Drop the metrics of a launch whose names are not wanted."""
    kept = [found for found in launch.metrics if wanted(names[messages.Metric.FromString(found).name])]
    del launch.metrics[:]
    launch.metrics.extend(kept)
