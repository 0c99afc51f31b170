"""What stands beside the values of a launch: Nsight Compute's advice, NVTX ranges, and facts of the session.

Field numbers are those of ``RuleResults.proto``, ``Nvtx.proto`` and ``ProfilerReport.proto``, which come with every
Nsight Compute in ``extras/FileFormat``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gemmprof import metrics as m
from gemmprof import wire
from gemmprof.analysis.reading.values import metric_value
from gemmprof.model import MetricValue, RuleResult, SessionDetails

_RULE_SEVERITIES = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
"""As stored. (ncu_report's own constants number them differently: 2 is the optimization there.)"""
_FOCUS_SEVERITIES = {0: "default", 1: "low", 2: "high"}
_SPEEDUP_SCOPES = {1: "local", 2: "global"}


def rule_results(data: bytes) -> Iterator[RuleResult]:
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


def nvtx_ranges(data: bytes, thread: int) -> tuple[str, ...]:
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
