"""Metric values out of one result message: scalars at once, values by instruction where they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from gemmprof.model import Instances, MetricValue
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.wire import WireError, check_types, decode

# Decoded metrics up to this size are remembered, and so many of them.
_REPEATED_BYTES, _KNOWN_LIMIT = 64, 20_000

_parse_metric = messages.Metric.FromString


class InstanceTable(Mapping[str, Instances]):
    """The instance values of one launch, decoded when the report is read and made Python's when they are looked at.

    A launch has tens of thousands of them, and most analyses look at a few.
    """

    __slots__ = ("_keys", "_values")

    def __init__(self) -> None:
        self._values: dict[str, messages.ElementColumns | Instances] = {}
        self._keys: dict[tuple[MetricValue, ...], tuple[MetricValue, ...]] = {}

    def add(self, name: str, found: messages.ElementColumns | Instances) -> None:
        """Add the values of a metric: as columns of one kind each, or ready."""
        self._values[name] = found

    def discard(self, name: str) -> None:
        """Forget the values of a metric."""
        self._values.pop(name, None)

    def __getitem__(self, name: str) -> Instances:
        found = self._values[name]
        if isinstance(found, Instances):
            return found
        values = tuple(_column(found.values) or ())
        keys = tuple(_column(found.keys) or range(len(values)))
        # Metrics of one family have the same keys and share one tuple.
        found = self._values[name] = Instances(self._keys.setdefault(keys, keys), values)
        return found

    def keys_of(self, name: str) -> Sequence[MetricValue]:
        """Keys of the instance values of a metric, without looking at the values."""
        found = self._values[name]
        if isinstance(found, Instances):
            return found.keys
        return _column(found.keys) or range(len(_column(found.values) or ()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


def _column(column: messages.Column) -> Sequence[MetricValue] | None:
    """What stands in a column; None if values of several kinds do, whose order it does not keep."""
    kinds = [values for _, values in column.ListFields()]
    if len(kinds) > 1:
        return None
    return kinds[0] if kinds else ()


def _instances(metric: messages.Metric, data: bytes) -> messages.ElementColumns | Instances:
    """The values by instruction of a metric; where none has a key they are numbered from 0.

    Raises:
        WireError: if one lacks its value or, beside others that have one, its key.
    """
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


@dataclass(slots=True)
class MetricDecoder:
    """Decodes the metrics of the results of one report.

    Args:
        strings: the report's string table.
        instances: True for the instance values of every metric, False for none, or the names of the metrics.
    """

    strings: Sequence[str]
    instances: bool | Collection[str] = True
    _known: dict[bytes, tuple[str, MetricValue | None, bool]] = field(default_factory=dict)
    """Metrics as decoded: most of a launch are attributes of its GPU, the same ones in each launch."""

    def decode(self, found: Iterable[bytes]) -> tuple[dict[str, MetricValue], InstanceTable]:
        """The scalars and the instance values of one launch's metrics.

        Raises:
            WireError: if one is damaged or has no name.
        """
        scalars: dict[str, MetricValue] = {}
        instances = InstanceTable()
        known = self._known
        for data in found:
            entry = known.get(data)
            if entry is None:
                entry = self._scalar(data, instances)
            name, value, has_instances = entry
            # A metric of two sections, or of several runs of the program (application replay), stands there twice:
            # ncu_report takes what stands last and nothing of the others.
            if value is not None:
                scalars[name] = value
            else:
                scalars.pop(name, None)
            if not has_instances and name in instances:
                instances.discard(name)
        return scalars, instances

    def _scalar(self, data: bytes, instances: InstanceTable) -> tuple[str, MetricValue | None, bool]:
        """Name and value of one metric, and whether it has values by instruction, which are added to the table.

        Raises:
            WireError: if it is damaged or has no name.
        """
        try:
            metric = _parse_metric(data)
        except DecodeError:
            raise WireError(f"a metric of {len(data)} bytes cannot be decoded") from None
        number = metric.name
        # A name of 0 is the first one where it is there, and missing where it is not.
        if number >= len(self.strings) or (not number and not metric.HasField("name")):
            raise WireError(f"metric name {number} of {len(self.strings)}")
        name, value = self.strings[number], metric_value(metric.value)
        has_instances = metric.HasField("elements")
        if has_instances:
            if self._wants(name):
                instances.add(name, _instances(metric, data))
        elif value is None:
            check_types(metric)
            check_types(metric.value)
        elif len(data) <= _REPEATED_BYTES:
            if len(self._known) > _KNOWN_LIMIT:
                self._known.clear()
            self._known[data] = name, value, False
        return name, value, has_instances

    def _wants(self, name: str) -> bool:
        wanted = self.instances
        return wanted if isinstance(wanted, bool) else name in wanted
