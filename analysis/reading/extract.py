"""Writes a minimal report around one kernel, for the native reader: its cubin, names and address, nothing measured.

The native reader keeps some ten times a launch's size in memory for every launch that it looks at. All that is asked of
it is what the code says; so it gets the code alone, and its memory and time do not depend on what was collected.
"""

from __future__ import annotations

from collections.abc import Iterable

from gemmprof import metrics as m
from gemmprof import ncu_frame, wire
from gemmprof.analysis.reading.frame import Frame
from gemmprof.ncu_frame import Item
from gemmprof.wire import encode_bytes, encode_number

_METRICS = 13
_KEPT = frozenset((*range(1, 12), 14, 15, 16, 22, 23))
"""Fields of ProfileResult that identify the launch; everything measured or advised is left out."""
_METRICS_ELSEWHERE = 4
"""Where ranges, command lists and graphs hold their metrics."""


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
                kept.append(encode_bytes(_METRICS, encode_number(1, numbers[name]) + data[rest:end]))
        position = end
    zero = encode_bytes(2, encode_number(5, 0))
    for name in names:
        if name not in numbers:
            numbers[name] = len(numbers)
            kept.append(encode_bytes(_METRICS, encode_number(1, numbers[name]) + zero))
    process = workload.process
    parts = [ncu_frame.head_bytes(frame.version)]
    parts += [
        ncu_frame.block_bytes([frame.read(item.start, item.end)], kind="source", process=process)
        for item in sources
    ]
    table = ncu_frame.string_table(numbers)
    parts.append(ncu_frame.block_bytes([b"".join(kept)], kind="kernel", process=process, header=table))
    return b"".join(parts)


def _placeholder() -> bytes:
    """The fields that a launch must have, where the workload is none."""
    one = b"".join(encode_number(field, 1) for field in (1, 2, 3))
    parts = [encode_number(field, 1) for field in range(1, 5)]
    parts += [encode_bytes(field, b"workload") for field in (5, 6, 7)]
    parts.append(encode_number(8, 3))
    parts += [encode_bytes(field, one) for field in (9, 10, 11)]
    return b"".join([*parts, encode_bytes(15, b"")])


def _metric_name(frame: Frame, data: bytes, start: int, end: int) -> str:
    """Name of the metric in ``data[start:end]`` (its name id comes first), '' if it has none."""
    if data[start : start + 1] != b"\x08":
        return ""
    number = wire.varint(data, start + 1, end)[0]
    return frame.strings[number] if number < len(frame.strings) else ""
