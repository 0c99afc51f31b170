"""Writes a minimal report around one kernel, for the native reader: its cubin, names and address, nothing measured.

The native reader keeps some ten times a launch's size in memory for every launch that it looks at. All that is asked of
it is what the code says; so it gets the code alone, and its memory and time do not depend on what was collected.
"""

from __future__ import annotations

from collections.abc import Iterable

from gemmprof import metrics as m
from gemmprof.analysis.reading.frame import Frame
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import Item
from gemmprof.ncurep.wire import MAX_BYTES, decode


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
    if workload.kind == "kernel":
        kept = decode(messages.KernelIdentity, data, most=MAX_BYTES)
        kept.DiscardUnknownFields()  # what was measured or advised
        found = list(kept.metrics)
        kept.ClearField("metrics")
    else:
        kept = _placeholder()
        # Where the three other kinds hold their metrics.
        found = list(decode(messages.RangeResult, data, most=MAX_BYTES).metrics)
    numbers: dict[str, int] = {}
    for content in found:
        metric = decode(messages.Metric, content, most=MAX_BYTES)
        name = frame.strings[metric.name] if metric.name < len(frame.strings) else ""
        if name == m.FUNCTION_PCS or name.startswith(m.DEVICE_ATTRIBUTE_PREFIX):
            # The address of the code, and the chip, which decides on units. Elements are kept as they are.
            renamed = messages.Metric(name=numbers.setdefault(name, len(numbers)))
            kept.metrics.append(content + renamed.SerializeToString())
    for name in names:
        if name not in numbers:
            numbers[name] = len(numbers)
            zero = messages.Metric(name=numbers[name], value=messages.Value(whole=0))
            kept.metrics.append(zero.SerializeToString())
    process = workload.process
    parts = [ncu_frame.head_bytes(frame.version)]
    parts += [
        ncu_frame.block_bytes([frame.read(item.start, item.end)], kind="source", process=process)
        for item in sources
    ]
    launch = kept.SerializeToString()
    parts.append(ncu_frame.block_bytes([launch], kind="kernel", process=process, strings=numbers))
    return b"".join(parts)


def _placeholder() -> messages.KernelIdentity:
    """The fields that a launch must have, where the workload is none."""
    one = messages.Dimensions(x=1, y=1, z=1).SerializeToString()
    name = b"workload"
    return messages.KernelIdentity(
        thread=1, call=1, first_pointer=1, second_pointer=1, api=3,
        mangled_name=name, function_name=name, demangled_name=name,
        grid_offset=one, grid=one, block=one, source=b"",
    )  # fmt: skip
