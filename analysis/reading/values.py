"""Metric values out of one result message: scalars at once, values by instruction where they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError

from gemmprof.metrics import OF_THE_PROFILER
from gemmprof.model import Instances, MetricValue
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import WireError, check_types, decode

# Decoded metrics up to this size are remembered, so many bytes of them: curves of occupancy (5 KiB) are the same in
# each launch of a kernel, and texts, which say what metrics are made of, in all.
_REPEATED_BYTES, _KNOWN_BYTES, _KNOWN_OVERHEAD = 8 << 10, 4 << 20, 512

_LAYOUTS = 32  # lists of names remembered: a report has a few, one a kind of workload and its code
_Elements = messages.ElementColumns | Instances
# Number of the name, value, values by instruction or sample, whether it was sampled over time.
_Decoded = tuple[int, MetricValue | None, _Elements | None, bool]
MANY = 40_000  # from so many metrics on, numpy saves the time that it takes to load: a tenth of a second
_BY_TIME = 1  # `Metric.keyed_by` of what was sampled over time
_parse_metric = messages.Metric.FromString


class InstanceTable(Mapping[str, Instances]):
    """The instance values of one launch, decoded when the report is read and made Python's when they are looked at.

    A launch has tens of thousands of them, and most analyses look at a few.
    """

    __slots__ = ("_keys", "_values")

    def __init__(self, found: Mapping[str, _Elements]) -> None:
        """Take the values of metrics by name: as columns of one kind each, or ready."""
        self._values = {**found}
        self._keys: dict[tuple[MetricValue, ...], tuple[MetricValue, ...]] = {}

    def __getitem__(self, name: str) -> Instances:
        found = self._values[name]
        if isinstance(found, Instances):
            return found
        keys, values = map(tuple, self.columns_of(name))
        # Metrics of one family have the same keys and share one tuple.
        found = self._values[name] = Instances(self._keys.setdefault(keys, keys), values)
        return found

    def columns_of(self, name: str) -> tuple[Sequence[MetricValue], Sequence[MetricValue]]:
        """Keys and values of a metric as they were decoded: nothing of them is kept as Python's."""
        found = self._values[name]
        if isinstance(found, Instances):
            return found.keys, found.values
        values = _column(found.values) or ()
        return _column(found.keys) or range(len(values)), values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values


def _column(column: messages.Column) -> Sequence[MetricValue] | None:
    """What stands in a column; None if values of several kinds do, whose order it does not keep."""
    kinds = [values for _, values in column.ListFields()]
    if len(kinds) > 1:
        return None
    return kinds[0] if kinds else ()


def _instances(metric: messages.Metric, data: bytes) -> _Elements:
    """The values by instruction of a metric; where none has a key they are numbered from 0."""
    columns = metric.elements
    for message in (metric, columns, columns.keys, columns.values):
        check_types(message)
    keys, values = _column(columns.keys), _column(columns.values)
    if keys is not None and values is not None and len(keys) in (0, len(values)):
        return columns
    pairs: list[tuple[MetricValue, MetricValue]] = []
    for element in decode(messages.MetricElements, data).elements:
        key, value = metric_value(element.key), metric_value(element.value)
        if key is None or value is None:
            raise WireError(f"a metric with {len(pairs)} whole values by instruction and one that is not")
        pairs.append((key, value))
    return Instances(tuple(key for key, _ in pairs), tuple(value for _, value in pairs))


def metric_value(value: messages.Value) -> MetricValue | None:
    """What a value holds; None if it holds nothing."""
    kind = value.WhichOneof("kind")
    return None if kind is None else getattr(value, kind)


class MetricDecoder:
    """Decodes the metrics of one report's results; instance values of all of them, of none, or of those named."""

    def __init__(self, strings: Sequence[str], instances: bool | Collection[str] = True) -> None:
        self.strings = strings
        self._wanted = frozenset(strings) if instances is True else instances or ()
        # As decoded: most of what is not plain depends on the launch's shape, the same in many launches.
        self._known: dict[bytes, _Decoded] = {}
        self._layouts: dict[tuple[int, ...], tuple[tuple[str, ...], bool]] = {}
        self._seen = self._held = 0

    def decode(
        self, launches: Sequence[Sequence[bytes]]
    ) -> Iterator[tuple[dict[str, MetricValue], InstanceTable, tuple[str, ...]]]:
        """Scalars, instance values and what was sampled over time, of each launch; WireError at one that is damaged."""
        metrics = [data for found in launches for data in found]
        self._seen += len(metrics)
        if self._seen >= MANY or "numpy" in sys.modules:
            numbers, values, known = _plain_metrics(metrics)
        else:
            numbers, values, known = [0] * len(metrics), [None] * len(metrics), [False] * len(metrics)
        start = 0
        for found in launches:
            here = slice(start, start := start + len(found))
            others = [place for place, is_known in enumerate(known[here]) if not is_known]
            yield self._launch(found, numbers[here], values[here], others)

    def _launch(
        self, found: Sequence[bytes], numbers: list[int], values: list[Any], others: Sequence[int]
    ) -> tuple[dict[str, MetricValue], InstanceTable, tuple[str, ...]]:
        """One launch, of whose metrics those at these places are not decoded yet."""
        elements: dict[int, _Elements] = {}
        of_time: list[int] = []
        for place in others:
            data = found[place]
            numbers[place], values[place], several, by_time = self._known.get(data) or self._metric(data)
            if by_time:
                of_time.append(place)
            if several is not None:
                elements[place] = several
        names, unique = self._names(numbers)
        # A metric of two sections, or of several runs of the program (application replay), stands there twice:
        # ncu_report takes what stands last and nothing of the others.
        scalars = dict(zip(names, values, strict=True))
        last = {} if unique else dict(zip(names, range(len(names)), strict=True))
        wanted = {
            names[place]: several
            for place, several in elements.items()
            if names[place] in self._wanted and last.get(names[place], place) in elements
        }
        for place in others:  # all that is plain has a value
            if values[place] is None and scalars.get(names[place], 0) is None:
                del scalars[names[place]]
        sampled = {names[place]: None for place in of_time if not names[place].startswith(OF_THE_PROFILER)}
        return scalars, InstanceTable(wanted), tuple(sampled)

    def _names(self, numbers: Sequence[int]) -> tuple[tuple[str, ...], bool]:
        """The names that these numbers stand for, the same in most launches, and whether each stands there once."""
        key = tuple(numbers)
        if key not in self._layouts:
            if (largest := max(key, default=-1)) >= len(self.strings):
                raise WireError(f"metric name {largest} of {len(self.strings)}")
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            names = tuple(self.strings[number] for number in key)
            self._layouts[key] = names, len(set(names)) == len(names)
        return self._layouts[key]

    def _metric(self, data: bytes) -> _Decoded:
        try:
            metric = _parse_metric(data)
        except DecodeError:
            raise WireError(f"a metric of {len(data)} bytes cannot be decoded") from None
        # A name of 0 is the first one where it is there, and missing where it is not.
        if metric.name >= len(self.strings) or not metric.HasField("name"):
            raise WireError(f"metric name {metric.name} of {len(self.strings)}")
        by_time = metric.keyed_by == _BY_TIME
        # What stands as the value of a series is the sum over its samples (an IPC of 3,696): of no launch.
        value = None if by_time else metric_value(metric.value)
        elements = _instances(metric, data) if metric.HasField("elements") else None
        found = metric.name, value, elements, by_time
        if elements is None and value is None:
            check_types(metric)
            check_types(metric.value)
        elif len(data) <= _REPEATED_BYTES:
            self._held += len(data) + _KNOWN_OVERHEAD
            if self._held > _KNOWN_BYTES:
                self._known.clear()
                self._held = 0
            self._known[data] = found
        return found


_NAME, _VALUE, _LAST = 0x08, 0x12, 0x20  # tags in the file: a field's number times 8 and its wire type
_TEXT, _SINGLE, _REAL, _SMALL, _WHOLE = 0x0A, 0x15, 0x19, 0x20, 0x28
_MOST = 128  # bytes of a value whose length is one byte
_DIGITS = 9  # of a varint below 2^63; the longest one has bits to spare, which its decoder drops


def _plain_metrics(found: Sequence[bytes]) -> tuple[list[int], list[Any], list[bool]]:
    """Names (numbers) and values of metrics, and which of them are known; the rest is for protobuf.

    A metric of ncu's is its name, its value, the values by instruction if there are any, and what their keys are (0
    without them, in two bytes). Those without values by instruction, nine of ten, are taken apart together, field by
    field: a message for each costs eight times as much. What is not of this shape in every byte is not decoded here.
    """
    import numpy as np

    lengths = np.fromiter(map(len, found), np.int64, len(found))
    ends = lengths.cumsum()
    # With zeros behind the last one, for a length that points past it.
    wire = np.frombuffer(b"".join((*found, bytes(2 * _MOST))), np.uint8)
    at = ends - lengths
    name = wire[at[:, None] + np.arange(1, 4)].astype(np.int64)
    two = name[:, 0] >= 128
    three = two & (name[:, 1] >= 128)
    numbers = (name[:, 0] & 127) + two * (name[:, 1] & 127) * 128 + three * name[:, 2] * 128**2
    shaped = (wire[at] == _NAME) & ~(three & (name[:, 2] >= 128))
    at += 2 + two + three
    size = wire[at + 1].astype(np.int64)
    shaped &= (wire[at] == _VALUE) & (size < _MOST)
    kind, start = wire[at + 2], at + 3
    stop = np.where(shaped, start + size - 1, 0)
    shaped &= (stop == ends) | ((stop == ends - 2) & (wire[stop] == _LAST) & (wire[stop + 1] == 0))
    values = np.empty(len(found), object)
    known = np.zeros(len(found), bool)
    for tag, read in ((_REAL, np.dtype("<f8")), (_SINGLE, np.dtype("<f4"))):
        reals = np.flatnonzero(shaped & (kind == tag) & (size == 1 + read.itemsize))
        values[reals] = wire[start[reals, None] + np.arange(read.itemsize)].view(read)[:, 0]
        known[reals] = True
    ints = np.flatnonzero(shaped & ((kind == _WHOLE) | (kind == _SMALL)) & (size > 1) & (size <= 1 + _DIGITS))
    places, count = np.arange(_DIGITS), size[ints] - 1
    digits = wire[start[ints, None] + places].astype(np.int64)
    known[ints] = (digits < 128).argmax(axis=1) == count - 1
    values[ints] = ((digits & 127) * (count[:, None] > places) << 7 * places).sum(axis=1)
    for place in np.flatnonzero(shaped & (kind == _TEXT) & (wire[start] == size - 2)).tolist():
        with suppress(UnicodeDecodeError):
            values[place] = wire[start[place] + 1 : stop[place]].tobytes().decode()
            known[place] = True
    return numbers.tolist(), values.tolist(), known.tolist()
