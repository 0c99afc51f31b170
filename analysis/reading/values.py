"""Metric values out of one result message: scalars at C speed, instance values where they are asked for.

A result holds hundreds to thousands of metrics, nearly all of them one number. Their encodings have few shapes, and
regular expressions recognise whole runs of them; what has another shape is decoded field by field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from gemmprof import wire
from gemmprof.model import Instances, MetricValue
from gemmprof.wire import WireError

# ProfileMetricResult
_NAME_ID, _VALUE, _ELEMENTS = 1, 2, 3
# ProfileMetricListElement
_CORRELATION_ID, _ELEMENT_VALUE = 1, 2
# ProfileMetricValue
_STRING, _FLOAT, _DOUBLE, _UINT32, _UINT64 = 1, 2, 3, 4, 5

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"


class _Shape(NamedTuple):
    """One encoding that all instance values of a metric may have."""

    element: re.Pattern[bytes]
    """One element: group 1 is its key, group 2 its value."""
    only: re.Pattern[bytes]
    """Nothing but such elements, perhaps followed by the metric's category."""
    text_keys: bool
    doubles: bool


def _shape(text_keys: bool, doubles: bool) -> _Shape:
    # A text of printable characters ends where the next field's tag, which is none, begins.
    key = rb"\x0a.([\x20-\x7e]*)" if text_keys else rb"\x28(" + _VARINT + rb")"
    value = rb"\x12\x09\x19(.{8})" if doubles else rb"\x12.\x28(" + _VARINT + rb")"
    element = rb"\x1a.\x0a." + key + value
    only = rb"(?:" + re.sub(rb"[()]", rb"", element) + rb")+(?:\x20[\x00-\x7f])?"
    return _Shape(re.compile(element, re.DOTALL), re.compile(only, re.DOTALL), text_keys, doubles)


_SHAPES = tuple(_shape(text_keys, doubles) for text_keys in (False, True) for doubles in (False, True))

# How a metric with instance values begins: name id, and a double or an unsigned integer.
_HEAD = re.compile(
    rb"\x08([\x80-\xff]?[\x00-\x7f])\x12(?:\x09\x19(.{8})|([\x02-\x0b])\x28(" + _VARINT + rb"))(?=\x1a)",
    re.DOTALL,
)

# A metric that is text: name id, length of the value, length of the text.
_TEXT_HEAD = re.compile(rb"\x08([\x80-\xff]?[\x00-\x7f])\x12([\x02-\x7f])\x0a([\x00-\x7d])", re.DOTALL)

# Metrics that are one double, by the group of `metric_pattern` that recognises a run of them: tag, length, name id of
# one or two bytes, value, and perhaps the metric's category.
_RUNS = {
    1: (2, Struct("<3xH3xd2x")),
    2: (2, Struct("<3xH3xd")),
    3: (1, Struct("<3xB3xd2x")),
    4: (1, Struct("<3xB3xd")),
}
_ONE_DOUBLE = Struct("<d")

_MEMO_LIMIT = 200_000
_RUNS_LIMIT = 256


class _Varints(dict[bytes, int]):
    """Encoded varint → int. Addresses and counts repeat, so most are looked up and not decoded."""

    def __missing__(self, encoded: bytes) -> int:
        if len(self) > _MEMO_LIMIT:
            self.clear()
        value = 0
        for byte in reversed(encoded):
            value = value << 7 | byte & 0x7F
        value &= 0xFFFF_FFFF_FFFF_FFFF  # ten bytes hold 70 bits; the format's own readers drop the rest, too
        self[encoded] = value
        return value


_VARINTS = _Varints()


class InstanceTable(Mapping[str, Instances]):
    """The instance values of one launch, checked when the report is read and decoded when they are looked at.

    A launch has tens of thousands of them, and most analyses look at a few. The table holds their bytes, not the file.
    """

    __slots__ = ("_keys", "_values")

    def __init__(self) -> None:
        self._values: dict[str, bytes | Instances] = {}
        self._keys: dict[tuple[bytes, ...], tuple[int, ...]] = {}

    def add(self, name: str, region: bytes) -> None:
        """Add the elements of one metric as they stand in the report.

        Raises:
            WireError: if they are damaged.
        """
        simple = any(shape.only.fullmatch(region) for shape in _SHAPES)
        self._values[name] = region if simple else _any_instances(region)

    def __getitem__(self, name: str) -> Instances:
        value = self._values[name]
        if isinstance(value, bytes):
            value = self._values[name] = self._decode(value)
        return value

    def first_key(self, name: str) -> int | float | str | None:
        """Key of the first instance value, without decoding the others; None if there is none."""
        value = self._values[name]
        if isinstance(value, Instances):
            return value.keys[0] if value.keys else None
        shape, first = _shape_of(value)
        return first[1].decode("ascii") if shape.text_keys else _VARINTS[first[1]]

    def _decode(self, region: bytes) -> Instances:
        shape, _ = _shape_of(region)
        encoded, values = zip(*shape.element.findall(region), strict=True)
        keys = tuple(key.decode("ascii") for key in encoded) if shape.text_keys else self._shared(encoded)
        if shape.doubles:
            return Instances(keys, Struct(f"<{len(values)}d").unpack(b"".join(values)))
        return Instances(keys, tuple(map(_VARINTS.__getitem__, values)))

    def _shared(self, encoded: tuple[bytes, ...]) -> tuple[int, ...]:
        """The keys as numbers; metrics of one family have the same keys and share one tuple."""
        keys = self._keys.get(encoded)
        if keys is None:
            keys = self._keys[encoded] = tuple(map(_VARINTS.__getitem__, encoded))
        return keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


def _shape_of(region: bytes) -> tuple[_Shape, re.Match[bytes]]:
    """The shape of a region that one of the shapes fits, told by its first element."""
    for shape in _SHAPES:
        if first := shape.element.match(region):
            return shape, first
    raise WireError("instance values of no known shape")


def metric_pattern(field_number: int) -> re.Pattern[bytes]:
    """What recognises the common metrics of a message that holds metrics in this field (below 16).

    Groups 1 to 4: runs of doubles (`_RUNS`); 5: a run of unsigned integers (`unsigned_pattern` takes it apart).
    """
    tag = re.escape(bytes([field_number << 3 | wire.BYTES]))
    two, one, name = rb"\x08[\x80-\xff][\x00-\x7f]", rb"\x08[\x00-\x7f]", rb"\x08[\x80-\xff]?[\x00-\x7f]"
    value, category = rb"\x12\x09\x19.{8}", rb"\x20[\x00-\x7f]"
    return re.compile(
        rb"((?:" + tag + rb"\x10" + two + value + category + rb")+)"
        rb"|((?:" + tag + rb"\x0e" + two + value + rb")+)"
        rb"|((?:" + tag + rb"\x0f" + one + value + category + rb")+)"
        rb"|((?:" + tag + rb"\x0d" + one + value + rb")+)"
        rb"|((?:"
        + tag
        + rb"[\x06-\x14]"
        + name
        + rb"\x12[\x02-\x0b]\x28"
        + _VARINT
        + rb"(?:"
        + category
        + rb")?)+)",
        re.DOTALL,
    )


def unsigned_pattern(field_number: int) -> re.Pattern[bytes]:
    """One metric that is an unsigned integer: its length, name id, length of the value, value, category."""
    tag = re.escape(bytes([field_number << 3 | wire.BYTES]))
    return re.compile(
        tag + rb"(.)\x08([\x80-\xff]?[\x00-\x7f])\x12(.)\x28(" + _VARINT + rb")((?:\x20[\x00-\x7f])?)",
        re.DOTALL,
    )


@dataclass(slots=True)
class MetricDecoder:
    """Decodes the metrics of the results of one report.

    Args:
        strings: the report's string table.
        instances: True for the instance values of every metric, False for none, or the names of the metrics.
    """

    strings: Sequence[str]
    instances: bool | Collection[str] = True
    contradicted: set[str] = field(default_factory=set)
    """Metrics that stood twice in a launch with different values; who reads it empties it."""
    _two_byte_names: list[str | None] = field(default_factory=list)
    _runs: dict[bytes, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Names by the two bytes of their encoded id, read as one little-endian number.
        self._two_byte_names = [None] * 0x8000
        for number, name in enumerate(self.strings[: 1 << 14]):
            self._two_byte_names[(number & 0x7F) | 0x80 | (number >> 7) << 8] = name

    def name(self, number: int) -> str:
        """The metric with this number.

        Raises:
            WireError: if the string table has no such entry.
        """
        if number >= len(self.strings):
            raise WireError(f"metric name {number} of {len(self.strings)}")
        return self.strings[number]

    def common(
        self, found: re.Match[bytes], unsigned: re.Pattern[bytes], into: dict[str, MetricValue]
    ) -> bool:
        """Decode what `metric_pattern` recognised; False if it only looked like that.

        Raises:
            WireError: if a metric has no name.
        """
        group = found.lastindex or 0
        run = found[group]
        if group not in _RUNS:
            return self._unsigned_run(run, unsigned, into)
        id_bytes, record = _RUNS[group]
        if id_bytes == 1:
            for number, value in record.iter_unpack(run):
                self._put(into, self.name(number), value)
            return True
        names = self._two_byte_names
        for number, value in record.iter_unpack(run):
            name = names[number & 0x7FFF]
            if name is None:
                raise WireError(f"metric name {number & 0x7F | (number >> 8) << 7} of {len(self.strings)}")
            if into.setdefault(name, value) != value:
                self._put(into, name, value)
        return True

    def _put(self, into: dict[str, MetricValue], name: str, value: MetricValue) -> None:
        """Note a value. ncu writes some metrics twice, for two sections, with one value."""
        known = into.setdefault(name, value)
        if known != value and (known == known or value == value):  # NaN is no contradiction of NaN
            self.contradicted.add(name)

    def _unsigned_run(self, run: bytes, unsigned: re.Pattern[bytes], into: dict[str, MetricValue]) -> bool:
        """Decode a run of unsigned integers. Launches on one GPU have the same attributes: one is decoded for all."""
        known = self._runs.get(run)
        if known is None:
            known = {}
            for length, number, inner, encoded, category in unsigned.findall(run):
                if inner[0] != 1 + len(encoded) or length[0] != 3 + len(number) + inner[0] + len(category):
                    return False  # a metric with other fields behind these: the general way reads it
                known[self.name(_VARINTS[number])] = _VARINTS[encoded]
            if len(self._runs) > _RUNS_LIMIT:
                self._runs.clear()
            self._runs[run] = known
        if into.keys().isdisjoint(known):
            into.update(known)
        else:
            for name, value in known.items():
                self._put(into, name, value)
        return True

    def metric(
        self, data: bytes, start: int, end: int, into: dict[str, MetricValue], instances: InstanceTable
    ) -> None:
        """Decode one metric of any shape.

        Raises:
            WireError: if the bytes are no metric.
        """
        if head := _HEAD.match(data, start, end):
            number, double, length, encoded = head.groups()
            if double is not None or length[0] == 1 + len(encoded):
                name = self.name(_VARINTS[number])
                value = _VARINTS[encoded] if double is None else float(_ONE_DOUBLE.unpack(double)[0])
                self._put(into, name, value)
                if self._wants(name):
                    instances.add(name, data[head.end() : end])
                return
        elif (head := _TEXT_HEAD.match(data, start, end)) and head[2][0] == 2 + head[3][0]:
            stop = head.end() + head[3][0]
            if stop == end or (end == stop + 2 and data[stop] == 0x20):
                self._put(into, self.name(_VARINTS[head[1]]), wire.text(data[head.end() : stop]))
                return
        self._any_metric(data, start, end, into, instances)

    def _any_metric(
        self, data: bytes, start: int, end: int, into: dict[str, MetricValue], instances: InstanceTable
    ) -> None:
        name: str | None = None
        value: MetricValue | None = None
        position = start
        for number, kind, begin, stop in wire.spans(data, start, end):
            if number == _NAME_ID and kind == wire.VARINT:
                name = self.name(wire.varint(data, begin, stop)[0])
            elif number == _VALUE and kind == wire.BYTES:
                value = metric_value(data[begin:stop])
            elif number == _ELEMENTS:
                break  # the rest are instance values
            position = stop
        if name is None:
            raise WireError(f"a metric without a name before byte {end}")
        if value is not None:
            self._put(into, name, value)
        if position < end and self._wants(name):
            instances.add(name, data[position:end])

    def _wants(self, name: str) -> bool:
        wanted = self.instances
        return wanted if isinstance(wanted, bool) else name in wanted


def _any_instances(region: bytes) -> Instances:
    """Instance values of any kind; elements without a correlation id are numbered from 0."""
    keys: list[MetricValue] = []
    values: list[MetricValue] = []
    for number, element in wire.fields(region):
        if number != _ELEMENTS:
            continue
        key: MetricValue | None = None
        value: MetricValue | None = None
        for part, content in wire.fields(wire.as_bytes(element)):
            if part == _CORRELATION_ID:
                key = metric_value(wire.as_bytes(content))
            elif part == _ELEMENT_VALUE:
                value = metric_value(wire.as_bytes(content))
        if value is not None:
            keys.append(len(keys) if key is None else key)
            values.append(value)
    return Instances(tuple(keys), tuple(values))


def metric_value(data: bytes) -> MetricValue | None:
    """A ``ProfileMetricValue`` message; None if it holds no value.

    Raises:
        WireError: if the bytes are none.
    """
    if len(data) == 9 and data[0] == 0x19:
        return float(_ONE_DOUBLE.unpack_from(data, 1)[0])
    result: MetricValue | None = None
    for number, value in wire.fields(data):
        if number in (_UINT32, _UINT64):
            result = wire.integer(value)
        elif number in (_FLOAT, _DOUBLE):
            result = wire.real(value)
        elif number == _STRING:
            result = wire.text(value)
    return result
