"""What the messages of a report mean: a profiled launch, its rules and NVTX ranges, the session, a cubin's sources.

Field numbers are those of ``ProfilerReport.proto``, ``ProfilerResultsCommon.proto``, ``RuleResults.proto`` and
``Nvtx.proto``, which describe the format and come with every Nsight Compute in ``extras/FileFormat``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmprof import metrics as m
from gemmprof.analysis import report_wire as wire
from gemmprof.analysis.report_metrics import (
    InstanceTable,
    MetricDecoder,
    metric_pattern,
    metric_value,
    unsigned_pattern,
)
from gemmprof.analysis.report_wire import FieldValue, WireError
from gemmprof.model import (
    Device,
    KernelProfile,
    LaunchStatistics,
    MetricValue,
    RuleResult,
    SessionDetails,
)


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
_THREAD = 1

_RULE_SEVERITIES = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
"""As stored. (ncu_report's own constants number them differently: 2 is the optimization there.)"""
_FOCUS_SEVERITIES = {0: "default", 1: "low", 2: "high"}
_SPEEDUP_SCOPES = {1: "local", 2: "global"}


@dataclass(frozen=True, slots=True)
class Result:
    """One decoded result: the profile without its source, and the cubin that the source is in (0: none)."""

    profile: KernelProfile
    source_reference: int


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
        if not metrics and not instances:
            raise WireError("a result without metrics")
        grid = block = (1, 1, 1)
        names: dict[int, str] = {}
        rules: list[RuleResult] = []
        nvtx: tuple[str, ...] = ()
        thread = context = reference = 0
        stream: int | None = None
        nvtx_state = b""
        kernel = kind == "kernel"
        for number, value in others:
            if number == _THREAD:
                thread = wire.integer(value)
            elif number == layout.rules and self.rules:
                rules += _rule_results(wire.as_bytes(value))
            elif number == layout.nvtx:
                nvtx_state = wire.as_bytes(value)
            elif number == layout.context:
                context = wire.integer(value)
            elif number == layout.stream:
                stream = wire.integer(value)
            elif kernel and number in (_MANGLED, _FUNCTION, _DEMANGLED, _RENAMED):
                names[number] = wire.text(value)
            elif kernel and number == _GRID:
                grid = _triple(wire.as_bytes(value))
            elif kernel and number == _BLOCK:
                block = _triple(wire.as_bytes(value))
            elif kernel and number == _SOURCE:
                reference = next((wire.integer(v) for n, v in wire.fields(wire.as_bytes(value)) if n == 1), 0)
            elif number == layout.display_name:
                names[_DEMANGLED] = wire.text(value)
        if kernel and not (names.get(_FUNCTION) or names.get(_MANGLED) or names.get(_DEMANGLED)):
            raise WireError("a launch without a kernel name")
        if nvtx_state:
            nvtx = _nvtx_ranges(nvtx_state, thread)
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
        )
        return Result(profile, reference)

    def scalars(self, data: bytes, kind: str) -> dict[str, MetricValue]:
        """Only the scalar metrics of a result.

        Raises:
            WireError: if the message is damaged.
        """
        metrics: dict[str, MetricValue] = {}
        for _ in self._walk(data, _LAYOUTS[kind], metrics, InstanceTable()):
            pass
        return metrics

    def _walk(
        self, data: bytes, layout: _Layout, metrics: dict[str, MetricValue], instances: InstanceTable
    ) -> Iterator[tuple[int, FieldValue]]:
        """Decode the metrics of a message into the two mappings; yields its other fields."""
        decoder = self._metrics
        match = layout.common.match
        position, end = 0, len(data)
        metric_tag = layout.metrics << 3 | wire.BYTES
        while position < end:
            if data[position] == metric_tag:
                found = match(data, position)
                if found is not None and decoder.common(found, layout.unsigned, metrics):
                    position = found.end()
                    continue
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


def _triple(data: bytes) -> tuple[int, int, int]:
    parts = {number: wire.integer(value) for number, value in wire.fields(data)}
    return parts.get(1, 1), parts.get(2, 1), parts.get(3, 1)


def _launch(
    metrics: Mapping[str, MetricValue],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    stream: int | None,
    context: int,
) -> LaunchStatistics:
    def whole(name: str) -> int | None:
        value = metrics.get(name)
        return int(value) if isinstance(value, (int, float)) and value == value // 1 else None

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
        waves_per_sm=None if waves is None or isinstance(waves, str) else float(waves),
        stream=stream,
        context=context,
    )


def _device(attributes: Mapping[str, MetricValue]) -> Device:
    def whole(name: str) -> int | None:
        value = attributes.get(name)
        return int(value) if isinstance(value, (int, float)) else None

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


def _rule_results(data: bytes) -> Iterator[RuleResult]:
    """The messages of one rule; a rule that says nothing yields nothing."""
    rule = section = ""
    bodies = []
    for number, value in wire.fields(data):
        if number == 1:
            rule = wire.text(value)
        elif number == 3:
            bodies.append(wire.as_bytes(value))
        elif number == 4:
            section = wire.text(value)
    for body in bodies:
        for number, value in wire.fields(body):
            if number == 1:
                result = _rule_item(rule, section, wire.as_bytes(value))
                if result.message or result.tables:
                    yield result


def _rule_item(rule: str, section: str, data: bytes) -> RuleResult:
    title = message = scope = ""
    severity = 0
    speedup: float | None = None
    focus: list[Mapping[str, Any]] = []
    tables: list[Mapping[str, Any]] = []
    for number, value in wire.fields(data):
        if number == 1:
            parts = dict(wire.fields(wire.as_bytes(value)))
            message, severity = wire.text(parts.get(1, b"")), wire.integer(parts.get(2, 0))
            title = wire.text(parts.get(4, b""))
        elif number == 8:
            parts = dict(wire.fields(wire.as_bytes(value)))
            focus.append(
                {
                    "name": wire.text(parts.get(2, b"")),
                    "value": wire.real(parts[3]) if 3 in parts else None,
                    "severity": _FOCUS_SEVERITIES.get(wire.integer(parts.get(4, 0)), "default"),
                    "info": wire.text(parts.get(5, b"")),
                }
            )
        elif number == 10:
            parts = dict(wire.fields(wire.as_bytes(value)))
            scope = _SPEEDUP_SCOPES.get(wire.integer(parts.get(1, 0)), "")
            speedup = wire.real(parts[2]) if 2 in parts else None
        elif number == 12:
            tables.append(_rule_table(wire.as_bytes(value)))
    return RuleResult(
        rule=rule,
        section=section,
        title=title,
        message=message,
        severity=_RULE_SEVERITIES.get(severity, "none"),
        estimated_speedup=speedup,
        speedup_scope=scope or None,
        focus_metrics=tuple(focus),
        tables=tuple(tables),
    )


def _rule_table(data: bytes) -> dict[str, Any]:
    """A table of a rule: title, description, headers, and the rows in ``data``."""
    title = description = ""
    headers: list[str] = []
    columns: list[list[MetricValue]] = []
    for number, value in wire.fields(data):
        if number == 1:
            config = dict(wire.fields(wire.as_bytes(value)))
            title, description = wire.text(config.get(1, b"")), wire.text(config.get(2, b""))
        elif number == 2:
            column: list[MetricValue] = []
            for part, content in wire.fields(wire.as_bytes(value)):
                if part == 1:
                    headers.append(wire.text(content))
                elif part == 4:
                    column.append(wire.text(content))
                elif part == 5:
                    column.append(wire.real(content))
                elif part == 6:
                    unsigned = wire.integer(content)
                    column.append(unsigned - (1 << 64) if unsigned >> 63 else unsigned)
            columns.append(column)
    return {
        "title": title,
        "description": description,
        "headers": tuple(headers),
        "data": tuple(zip(*columns, strict=False)),
    }


def _nvtx_ranges(data: bytes, thread: int) -> tuple[str, ...]:
    """Names of the ranges around a launch: start/end ranges, then the thread's push/pop ranges, outermost first."""
    strings: dict[int, dict[int, str]] = {}
    threads: list[tuple[int, list[tuple[int, bytes]]]] = []
    started: list[tuple[int, bytes]] = []
    for number, value in wire.fields(data):
        message = wire.as_bytes(value) if number in (1, 2, 3) else b""
        parts = list(wire.fields(message))
        identity = next((wire.integer(v) for n, v in parts if n == 1), 0)
        if number == 1:
            table = strings.setdefault(identity, {})
            for entry in (dict(wire.fields(wire.as_bytes(v))) for n, v in parts if n == 3):
                table[wire.integer(entry.get(1, 0))] = wire.text(entry.get(2, b""))
        elif number == 2:
            domains = [(0, wire.as_bytes(v)) for n, v in parts if n == 2]
            threads.append((identity, [entry for _, domain in domains for entry in _stack(domain)]))
        elif number == 3:
            started += _stack(message)
    own = [stack for identity, stack in threads if identity == thread] or [stack for _, stack in threads]
    names = [_range_name(entry, 2, strings.get(domain, {})) for domain, entry in started]
    names += [_range_name(entry, 1, strings.get(domain, {})) for stack in own for domain, entry in stack]
    return tuple(name for name in names if name)


def _stack(domain: bytes) -> list[tuple[int, bytes]]:
    """The ranges of one domain as (domain id, range message)."""
    parts = list(wire.fields(domain))
    identity = next((wire.integer(v) for n, v in parts if n == 1), 0)
    return [(identity, wire.as_bytes(v)) for n, v in parts if n == 3]


def _range_name(entry: bytes, name_field: int, strings: Mapping[int, str]) -> str:
    """Name of a range; one that was given as a registered string has only a handle into the domain's table."""
    parts = dict(wire.fields(entry))
    name = wire.text(parts.get(name_field, b""))
    if not name and name_field + 1 in parts:
        attributes = dict(wire.fields(wire.as_bytes(parts[name_field + 1])))
        message = dict(wire.fields(wire.as_bytes(attributes.get(5, b""))))
        name = wire.text(message.get(2, b"")) or strings.get(wire.integer(message.get(3, 0)), "")
    return name


def session_details(data: bytes) -> SessionDetails:
    """The facts of the profiling session (a merged ``ReportSessionDetails``). Host names and addresses are left out.

    Raises:
        WireError: if the message is damaged.
    """
    created: int | None = None
    versions: dict[str, str] = {}
    attributes: dict[str, MetricValue] = {}
    command_line = executable = ""
    settings: dict[str, str] = {}
    for number, value in wire.fields(data):
        if number == 2:
            created = wire.integer(value)
        elif number == 6:
            attributes = attributes or _session_device(wire.as_bytes(value))
        elif number == 8:
            parts = dict(wire.fields(wire.as_bytes(value)))
            versions[wire.text(parts.get(1, b""))] = wire.text(parts.get(2, b""))
        elif number == 9:
            parts = dict(wire.fields(wire.as_bytes(value)))
            executable = " ".join(filter(None, (wire.text(parts.get(1, b"")), wire.text(parts.get(3, b"")))))
        elif number == 10:
            parts = dict(wire.fields(wire.as_bytes(value)))
            named = {"sections": 7, "clock control": 8, "replay mode": 11}
            settings.update(
                {key: wire.text(parts[field_]) for key, field_ in named.items() if field_ in parts}
            )
        elif number == 11:
            command_line = wire.text(value)
    return SessionDetails(
        created=created,
        command_line=command_line,
        application=executable,
        versions=versions,
        settings=settings,
        device_attributes=attributes,
    )


def _session_device(data: bytes) -> dict[str, MetricValue]:
    """Device attributes of a ``DeviceAttributes`` message, without their prefix."""
    attributes: dict[str, MetricValue] = {}
    for number, value in wire.fields(data):
        if number == 2:
            attributes["display_name"] = wire.text(value)
        elif number == 3:
            parts = dict(wire.fields(wire.as_bytes(value)))
            content = metric_value(wire.as_bytes(parts.get(2, b"")))
            if content is not None:
                attributes[wire.text(parts.get(1, b"")).removeprefix(m.DEVICE_ATTRIBUTE_PREFIX)] = content
    return attributes
