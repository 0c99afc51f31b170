"""What stands beside the values of a launch: Nsight Compute's advice, NVTX ranges, and facts of the session."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gemmprof import metrics as m
from gemmprof.analysis.reading.values import metric_value
from gemmprof.model import MetricValue, RuleResult, SessionDetails
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import decode

# As stored. (ncu_report's own constants number them differently: 2 is the optimization there.)
_RULE_SEVERITIES = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
_SPEEDUP_SCOPES = {1: "local", 2: "global"}


def rule_results(data: bytes) -> Iterator[RuleResult]:
    """The messages of one rule; a rule that says nothing yields nothing; WireError if the bytes are no rule."""
    rule = decode(messages.Rule, data)
    for body in rule.bodies:
        for item in body.items:
            if item.message.text or item.tables:
                yield RuleResult(
                    rule=rule.name,
                    section=rule.section,
                    title=item.message.title,
                    message=item.message.text,
                    severity=_RULE_SEVERITIES.get(item.message.severity, "none"),
                    estimated_speedup=item.speedup.percent if item.speedup.HasField("percent") else None,
                    speedup_scope=_SPEEDUP_SCOPES.get(item.speedup.scope),
                    tables=tuple(_rule_table(table) for table in item.tables),
                )


def _rule_table(table: messages.RuleTable) -> dict[str, Any]:
    """A table of a rule: title, description, headers, and the rows in ``data``."""
    columns = [[*column.texts, *column.reals, *column.wholes] for column in table.columns]
    return {
        "title": table.head.title,
        "description": table.head.description,
        "headers": tuple(header for column in table.columns for header in column.headers),
        "data": tuple(zip(*columns, strict=False)),
    }


@lru_cache(maxsize=64)  # launches that follow one another are in the same ranges
def nvtx_ranges(data: bytes, thread: int) -> tuple[str, ...]:
    """Names of the ranges around a launch: start/end ranges, then the thread's push/pop ranges, outermost first.

    Raises:
        WireError: if the bytes are no ranges.
    """
    state = decode(messages.NvtxState, data)
    strings: dict[int, dict[int, str]] = {}
    for domain in state.domains:
        strings.setdefault(domain.id, {}).update((entry.handle, entry.text) for entry in domain.strings)
    threads = [found for found in state.threads if found.id == thread] or state.threads
    around: list[messages.NvtxStarted | messages.NvtxPushed] = [*state.started]
    around += [domain for found in threads for domain in found.domains]
    names = [_range_name(entry, strings.get(part.domain, {})) for part in around for entry in part.ranges]
    return tuple(name for name in names if name)


def _range_name(entry: messages.StartedRange | messages.PushedRange, strings: Mapping[int, str]) -> str:
    """Name of a range; one that was given as a registered string has only a handle into the domain's table."""
    message = entry.attributes.message
    return (
        entry.name
        or message.text
        or (strings.get(message.handle, "") if entry.HasField("attributes") else "")
    )


def session_details(data: bytes) -> SessionDetails:
    """The facts of the profiling session (a merged ``ReportSessionDetails``). Host names and addresses are left out.

    Raises:
        WireError: if the message is damaged.
    """
    session = decode(messages.Session, data)
    settings = {
        field.replace("_", " "): getattr(found, field)
        for found in session.settings
        for field in ("sections", "clock_control", "replay_mode")
        if found.HasField(field)
    }
    application = session.applications[-1] if session.applications else messages.Application()
    return SessionDetails(
        created=session.created if session.HasField("created") else None,
        command_line=session.command_line,
        application=" ".join(filter(None, (application.executable, application.arguments))),
        versions={version.provider: version.version for version in session.versions},
        settings=settings,
        device_attributes=_device_attributes(session.devices),
    )


def _device_attributes(devices: Sequence[messages.SessionDevice]) -> dict[str, MetricValue]:
    """Attributes of the first GPU that has any, without their prefix."""
    for device in devices:
        attributes: dict[str, MetricValue] = {}
        if device.HasField("display_name"):
            attributes["display_name"] = device.display_name
        for attribute in device.attributes:
            content = metric_value(attribute.value)
            if content is not None:
                attributes[attribute.name.removeprefix(m.DEVICE_ATTRIBUTE_PREFIX)] = content
        if attributes:
            return attributes
    return {}


# What ncu does without ``--clock-control``: it fixes the base clock (ncu --help).
DEFAULT_CLOCK_CONTROL = "base"
DEFAULT_SET = "basic"  # the set that it collects where no set, section or metric is named
# Options of ncu without a value: what follows one of them may be the program.
_FLAGS = frozenset(
    (
        "-f",
        "--force-overwrite",
        "--nvtx",
        "-v",
        "--verbose",
        "--quiet",
        "--csv",
        "--null-stdin",
        "--open-in-ui",
    )
)


def clock_control(session: SessionDetails) -> str:
    """``base``, ``none`` … in small letters; '' where the report does not say how ncu was run."""
    own = _own_arguments(session)
    named = session.settings.get("clock control") or next(_values(own, "--clock-control"), "")
    return (named or (DEFAULT_CLOCK_CONTROL if own else "")).lower()


def collected_by(session: SessionDetails) -> tuple[str, ...]:
    """Sets, sections and metrics that ncu was asked for; () where the report does not say."""
    own = _own_arguments(session)
    found = {
        f"{option} {value}"
        for option in ("--set", "--section", "--metrics")
        for value in _values(own, option)
    }
    if own and not found:
        found = {f"--set {DEFAULT_SET}"}
    return tuple(sorted(found))


def _own_arguments(session: SessionDetails) -> list[str]:
    """ncu's words on its command line, without those of the program that it ran.

    The program is the first word that is neither an option nor the value of one. Behind a flag that is not among
    `_FLAGS` it is taken for a value, and the words behind it up to its first bare one for ncu's.
    """
    words = _words(session.command_line)
    own = [*words[:1]]
    for word in words[1:]:
        before = own[-1]
        has_value = len(own) > 1 and before.startswith("-") and "=" not in before and before not in _FLAGS
        if not word.startswith("-") and not has_value:
            break
        own.append(word)
    return own


@lru_cache(maxsize=64)
def _words(command_line: str) -> tuple[str, ...]:
    """The words of a command line, which all launches of a report share."""
    try:
        return tuple(shlex.split(command_line))
    except ValueError:
        return tuple(command_line.split())


def _values(words: Sequence[str], name: str) -> Iterator[str]:
    for position, word in enumerate(words):
        if word == name and position + 1 < len(words):
            yield words[position + 1]
        elif word.startswith(f"{name}="):
            yield word.partition("=")[2]
