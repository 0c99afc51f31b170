"""Writes a minimal report around one kernel, for the native reader: its cubin, names and address, nothing measured.

The native reader keeps some ten times a launch's size in memory for every launch that it looks at. All that is asked of
it is what the code says; so it gets the code alone, and its memory and time do not depend on what was collected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from gemmprof import metrics as m
from gemmprof.analysis.reading import wire
from gemmprof.analysis.reading.frame import MAGIC, Frame, Item

_U32 = struct.Struct("<I")
_METRICS = 13
_KEPT = frozenset((*range(1, 12), 14, 15, 16, 22, 23))
"""Fields of ProfileResult that identify the launch; everything measured or advised is left out."""
_METRICS_ELSEWHERE = 4
"""Where ranges, command lists and graphs hold their metrics."""


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | wire.VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | wire.BYTES) + _varint(len(value)) + value


def _framed(message: bytes) -> bytes:
    return _U32.pack(len(message)) + message


def _block(items: Iterable[bytes], *, kind: int, process: int, header: bytes = b"") -> bytes:
    """A block of items; ``kind`` is the field of its header that counts them (1 sources, 2 results)."""
    framed = [_framed(item) for item in items]
    payload = b"".join(framed)
    return (
        _framed(
            _number(kind, len(framed))
            + header
            + _number(5, len(payload))
            + _bytes(6, _number(1, process) + _bytes(2, b"localhost") + _bytes(3, b"kernel"))
        )
        + payload
    )


def kernel_report(frame: Frame, workload: Item, sources: Iterable[Item], names: Iterable[str] = ()) -> bytes:
    """A report with this launch alone, without what was measured.

    Args:
        frame: the report that it is taken from.
        workload: the launch; something else than a kernel keeps its device alone.
        sources: the items that hold its code.
        names: metrics that shall exist in it, with the value 0, so that their units can be asked for.

    Raises:
        WireError: if the launch is damaged.
    """
    data = frame.read(workload.start, workload.end)
    kernel = workload.kind == "kernel"
    kept = [] if kernel else [_placeholder()]
    metrics = _METRICS if kernel else _METRICS_ELSEWHERE
    numbers: dict[str, int] = {}
    position = 0
    for number, kind, start, end in wire.spans(data, 0, len(data)):
        if kernel and number in _KEPT:
            kept.append(data[position:end])
        elif number == metrics and kind == wire.BYTES:
            name = _metric_name(frame, data, start, end)
            if name == m.FUNCTION_PCS or name.startswith(m.DEVICE_ATTRIBUTE_PREFIX):
                # The address of the code, and the chip, which decides on units.
                rest = wire.varint(data, start + 1, end)[1]
                numbers.setdefault(name, len(numbers))
                kept.append(_bytes(_METRICS, _number(1, numbers[name]) + data[rest:end]))
        position = end
    zero = _bytes(2, _number(5, 0))
    for name in names:
        if name not in numbers:
            numbers[name] = len(numbers)
            kept.append(_bytes(_METRICS, _number(1, numbers[name]) + zero))
    table = _bytes(4, b"".join(_bytes(1, name.encode("utf-8")) for name in numbers))
    parts = [MAGIC, _framed(_number(1, frame.version))]
    parts += [
        _block([frame.read(item.start, item.end)], kind=1, process=workload.process) for item in sources
    ]
    parts.append(_block([b"".join(kept)], kind=2, process=workload.process, header=table))
    return b"".join(parts)


def _placeholder() -> bytes:
    """The fields that a launch must have, where the workload is none."""
    one = b"".join(_number(field, 1) for field in (1, 2, 3))
    parts = [_number(field, 1) for field in range(1, 5)]
    parts += [_bytes(field, b"workload") for field in (5, 6, 7)]
    return b"".join([*parts, _number(8, 3), *(_bytes(field, one) for field in (9, 10, 11)), _bytes(15, b"")])


def _metric_name(frame: Frame, data: bytes, start: int, end: int) -> str:
    """Name of the metric in ``data[start:end]`` (its name id comes first), '' if it has none."""
    if data[start : start + 1] != b"\x08":
        return ""
    number = wire.varint(data, start + 1, end)[0]
    return frame.strings[number] if number < len(frame.strings) else ""
