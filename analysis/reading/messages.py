"""What the message of a profiled launch, range, command list or graph means.

Field numbers are those of ``ProfilerReport.proto`` and ``ProfilerResultsCommon.proto``, which describe the format
and come with every Nsight Compute in ``extras/FileFormat``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gemmprof import metrics as m
from gemmprof import wire
from gemmprof.analysis.reading.context import nvtx_ranges, rule_results
from gemmprof.analysis.reading.values import (
    InstanceTable,
    MetricDecoder,
    metric_pattern,
    unsigned_pattern,
)
from gemmprof.model import (
    Device,
    KernelProfile,
    LaunchStatistics,
    MetricValue,
    RuleResult,
    SessionDetails,
)
from gemmprof.wire import FieldValue, WireError


@dataclass(frozen=True, slots=True)
class _Layout:
    """Field numbers of one kind of result."""

    metrics: int
    rules: int
    nvtx: int
    context: int
    stream: int | None = None
    display_name: int | None = None
    common: re.Pattern[bytes] = field(init=False)
    unsigned: re.Pattern[bytes] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "common", metric_pattern(self.metrics))
        object.__setattr__(self, "unsigned", unsigned_pattern(self.metrics))


_LAYOUTS = {
    "kernel": _Layout(metrics=13, rules=19, nvtx=21, context=22, stream=23),
    "range": _Layout(metrics=4, rules=20, nvtx=10, context=11),
    "command list": _Layout(metrics=4, rules=21, nvtx=10, context=11, stream=12, display_name=18),
    "graph": _Layout(metrics=4, rules=22, nvtx=10, context=11, stream=12),
}
# ProfileResult alone
_MANGLED, _FUNCTION, _DEMANGLED, _GRID, _BLOCK, _SOURCE, _RENAMED = 5, 6, 7, 10, 11, 15, 31
_THREAD, _CALL = 1, 2
_CREATED = 14
"""Of a kernel; the other kinds have something else there."""


_GRID_LIMITS, _BLOCK_LIMITS = (2**31 - 1, 65535, 65535), (1024, 1024, 64)
"""What CUDA accepts along x, y and z on every GPU that Nsight Compute knows."""


@dataclass(frozen=True, slots=True)
class Result:
    """One decoded result.

    Attributes:
        profile: the launch without its source.
        source_reference: the cubin that the source is in (0: none).
        thread: the host thread that launched it.
        call: number of the call that launched it, which rises within a thread; None where the report has none.
        created: when it was profiled, in seconds since 1970; None where the report does not say.
    """

    profile: KernelProfile
    source_reference: int
    thread: int = 0
    call: int | None = None
    created: int | None = None


@dataclass(slots=True)
class ResultDecoder:
    """Decodes the results of one report, one after the other.

    Args:
        report: path of the report, for the profiles.
        strings: the report's string table.
        instances: which instance values to decode, as in `MetricDecoder`.
        rules: False to leave out Nsight Compute's advice.
    """

    report: str
    strings: list[str]
    instances: bool | Collection[str] = True
    rules: bool = True
    _metrics: MetricDecoder = field(init=False)
    _devices: dict[tuple[MetricValue | None, ...], Device] = field(default_factory=dict)
    _attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._metrics = MetricDecoder(self.strings, self.instances)
        prefix = m.DEVICE_ATTRIBUTE_PREFIX
        self._attributes = tuple(name for name in self.strings if name.startswith(prefix))

    def result(self, data: bytes, kind: str, index: int, session: SessionDetails) -> Result:
        """Decode one result message of this kind.

        Raises:
            WireError: if the message is damaged.
        """
        layout = _LAYOUTS[kind]
        metrics: dict[str, MetricValue] = {}
        instances = InstanceTable()
        others = list(self._walk(data, layout, metrics, instances))
        doubts = tuple(
            f"the metric {name} stands there twice with different values"
            for name in sorted(self._metrics.contradicted)[:3]
        )
        self._metrics.contradicted.clear()
        if not metrics and not instances:
            raise WireError("a result without metrics")
        # A range or graph has no grid of its own: here stands the largest of its launches, as ncu prints it.
        grid, block = _extent(metrics, m.GRID_DIMENSIONS), _extent(metrics, m.BLOCK_DIMENSIONS)
        names: dict[int, str] = {}
        rules: list[RuleResult] = []
        nvtx: tuple[str, ...] = ()
        thread = context = reference = 0
        stream: int | None = None
        call: int | None = None
        created: int | None = None
        nvtx_state = b""
        kernel = kind == "kernel"
        for number, value in others:
            if number == _THREAD:
                thread = wire.integer(value)
            elif number == _CALL:
                call = wire.integer(value)
            elif kernel and number == _CREATED:
                created = wire.integer(value)
            elif number == layout.rules and self.rules:
                rules += rule_results(wire.as_bytes(value))
            elif number == layout.nvtx:
                nvtx_state = wire.as_bytes(value)
            elif number == layout.context:
                context = wire.integer(value)
            elif number == layout.stream:
                stream = wire.integer(value)
            elif kernel and number in (_MANGLED, _FUNCTION, _DEMANGLED, _RENAMED):
                names[number] = wire.text(value)
            elif kernel and number == _GRID:
                grid = _triple(wire.as_bytes(value), "grid", _GRID_LIMITS)
            elif kernel and number == _BLOCK:
                block = _triple(wire.as_bytes(value), "block", _BLOCK_LIMITS)
            elif kernel and number == _SOURCE:
                reference = next((wire.integer(v) for n, v in wire.fields(wire.as_bytes(value)) if n == 1), 0)
            elif number == layout.display_name:
                names[_DEMANGLED] = wire.text(value)
        if kernel and not (names.get(_FUNCTION) or names.get(_MANGLED) or names.get(_DEMANGLED)):
            raise WireError("a launch without a kernel name")
        if nvtx_state:
            nvtx = nvtx_ranges(nvtx_state, thread)
        function = names.get(_FUNCTION) or names.get(_MANGLED) or kind
        profile = KernelProfile(
            index=index,
            report=self.report,
            name=names.get(_RENAMED) or names.get(_DEMANGLED) or function,
            function_name=function,
            mangled_name=names.get(_MANGLED) or function,
            device=self._device(metrics, session),
            launch=_launch(metrics, grid, block, stream, context),
            metrics=metrics,
            instances=instances,
            nvtx=nvtx,
            rules=tuple(rules),
            workload=kind,
            session=session,
            doubts=doubts,
        )
        return Result(profile, reference, thread, call, created)

    def _walk(
        self, data: bytes, layout: _Layout, metrics: dict[str, MetricValue], instances: InstanceTable
    ) -> Iterator[tuple[int, FieldValue]]:
        """Decode the metrics of a message into the two mappings; yields its other fields."""
        decoder = self._metrics
        match = layout.common.match
        position, end = 0, len(data)
        distrusted = (
            0  # up to here, what the pattern recognised was something else: not to be tried again and again
        )
        metric_tag = layout.metrics << 3 | wire.BYTES
        while position < end:
            if data[position] == metric_tag:
                found = match(data, position) if position >= distrusted else None
                if found is not None:
                    if decoder.common(found, layout.unsigned, metrics):
                        position = found.end()
                        continue
                    distrusted = found.end()
                length, start = wire.varint(data, position + 1, end)
                position = start + length
                if position > end:
                    raise WireError(f"a metric at byte {start} runs past its launch")
                decoder.metric(data, start, position, metrics, instances)
                continue
            number, kind, start, position = wire.field(data, position, end)
            if kind == wire.VARINT:
                yield number, wire.varint(data, start, position)[0]
            else:
                yield number, data[start:position]

    def _device(self, metrics: Mapping[str, MetricValue], session: SessionDetails) -> Device:
        """The GPU; launches on one GPU share one object."""
        values = tuple(map(metrics.get, self._attributes))
        device = self._devices.get(values)
        if device is None:
            cut = len(m.DEVICE_ATTRIBUTE_PREFIX)
            attributes = {
                name[cut:]: value
                for name, value in zip(self._attributes, values, strict=True)
                if value is not None
            }
            device = self._devices[values] = _device({**session.device_attributes, **attributes})
        return device


def _triple(data: bytes, what: str, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    parts = {number: wire.integer(value) for number, value in wire.fields(data)}
    found = parts.get(1, 1), parts.get(2, 1), parts.get(3, 1)
    if not all(0 < size <= limit for size, limit in zip(found, limits, strict=True)):
        raise WireError(f"a {what} of {found[0]} × {found[1]} × {found[2]}")
    return found


def _extent(metrics: Mapping[str, MetricValue], names: tuple[str, str, str]) -> tuple[int, int, int]:
    """Grid or block from metrics; 1 along a dimension that was not collected."""

    def size(name: str) -> int:
        value = metrics.get(name)
        return value if isinstance(value, int) and value > 0 else 1

    x, y, z = names
    return size(x), size(y), size(z)


_LARGEST_OF_A_LAUNCH = 1 << 24
"""No count of registers, bytes of shared memory or blocks of a cluster comes near it: what is above is damage."""


def _whole(value: MetricValue | None) -> int | None:
    """A count; None for what can be none: text, NaN, infinity, a fraction, something below zero."""
    if value is None or isinstance(value, str) or not 0 <= value < 2**63 or value != value // 1:
        return None
    return int(value)


def _launch(
    metrics: Mapping[str, MetricValue],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    stream: int | None,
    context: int,
) -> LaunchStatistics:
    def whole(name: str) -> int | None:
        value = _whole(metrics.get(name))
        return value if value is not None and value <= _LARGEST_OF_A_LAUNCH else None

    waves = metrics.get(m.WAVES_PER_SM)
    return LaunchStatistics(
        grid=grid,
        block=block,
        registers_per_thread=whole(m.REGISTERS_PER_THREAD),
        static_shared_memory=whole(m.SHARED_MEMORY_STATIC),
        dynamic_shared_memory=whole(m.SHARED_MEMORY_DYNAMIC),
        driver_shared_memory=whole(m.SHARED_MEMORY_DRIVER),
        shared_memory_config=whole(m.SHARED_MEMORY_CONFIG),
        cluster_size=whole(m.CLUSTER_SIZE),
        waves_per_sm=float(waves) if isinstance(waves, (int, float)) and 0 <= waves < 1e15 else None,
        stream=stream,
        context=context,
    )


def _device(attributes: Mapping[str, MetricValue]) -> Device:
    def whole(name: str) -> int | None:
        return _whole(attributes.get(name))

    def hertz(*names: str) -> float | None:
        """The attributes are kilohertz."""
        return next((1000.0 * value for value in map(whole, names) if value), None)

    return Device(
        name=str(attributes.get("display_name", "unknown GPU")),
        compute_capability=(whole("compute_capability_major") or 0, whole("compute_capability_minor") or 0),
        sm_count=whole("multiprocessor_count"),
        max_clock_hz=hertz("max_gpu_frequency_khz", "clock_rate"),
        max_memory_clock_hz=hertz("max_mem_frequency_khz", "memory_clock_rate"),
        memory_bus_bits=whole("fb_bus_width") or whole("global_memory_bus_width"),
        l2_bytes=whole("l2_cache_size"),
        shared_memory_per_sm=whole("max_shared_memory_per_multiprocessor"),
        max_warps_per_sm=whole("max_warps_per_multiprocessor"),
        registers_per_sm=whole("max_registers_per_multiprocessor"),
        attributes=attributes,
    )
