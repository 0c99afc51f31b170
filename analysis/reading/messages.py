"""What the message of a profiled launch, range, command list or graph means.

``gemmprof/ncu_messages.proto`` has the fields.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gemmprof import metrics as m
from gemmprof.analysis.reading.values import InstanceTable, MetricDecoder, metric_value
from gemmprof.model import Device, KernelProfile, LaunchStatistics, MetricValue, RuleResult, SessionDetails
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import MAX_BYTES, WireError, decode, decode_strictly

_Message = messages.KernelResult | messages.RangeResult | messages.CommandListResult | messages.GraphResult
_MESSAGES: Mapping[str, type[_Message]] = {
    "kernel": messages.KernelResult, "range": messages.RangeResult, "command list": messages.CommandListResult,
    "graph": messages.GraphResult,
}  # fmt: skip

_NOTHING = (0, 0, 0)
# What CUDA accepts along x, y and z on every GPU that Nsight Compute knows.
_GRID_LIMITS, _BLOCK_LIMITS = (2**31 - 1, 65535, 65535), (1024, 1024, 64)

# Launches that are decoded together at most: with more of them the first one comes later and little is won.
BATCH_LAUNCHES, BATCH_BYTES = 32, 2 << 20


@dataclass(frozen=True, slots=True)
class Result:
    """One decoded result."""

    profile: KernelProfile  # the launch without its source
    source_reference: int  # the cubin that the source is in (0: none)
    thread: int = 0  # the host thread that launched it
    call: int | None = None  # number of the call that launched it, rising within a thread; None if not said
    created: int | None = None  # when it was profiled, in seconds since 1970; None if not said


class ResultDecoder:
    """Decodes the results of one report; Nsight Compute's advice is checked, also where it is not wanted."""

    def __init__(
        self, report: str, strings: list[str], instances: bool | Collection[str] = True, rules: bool = True
    ) -> None:
        self.report, self.rules = report, rules
        self._metrics = MetricDecoder(strings, instances)
        self._devices: dict[tuple[MetricValue | None, ...], Device] = {}
        known = set(strings)
        self._older = [(older, name) for older, name in m.OLDER_NAMES.items() if older in known]
        self._attributes = [name for name in strings if name.startswith(m.DEVICE_ATTRIBUTE_PREFIX)]

    def results(self, found: Iterable[tuple[bytes, str, int, SessionDetails]]) -> Iterator[Result]:
        """Decode messages, each with its kind, position in the report and session; WireError at one that is damaged."""
        waiting = iter(found)
        while batch := _batch(waiting):
            parsed, damage = [], None
            for data, kind, index, session in batch:
                try:
                    message = undecoded(data, kind)
                except WireError as error:
                    damage = error
                    break
                parsed.append((message, kind, index, session))
            values = self._metrics.decode([[*message.metrics] for message, *_ in parsed])
            for (message, kind, index, session), decoded in zip(parsed, values, strict=True):
                yield self._result(message, kind, index, session, *decoded)
            if damage is not None:
                raise damage

    def _result(
        self,
        found: _Message,
        kind: str,
        index: int,
        session: SessionDetails,
        metrics: dict[str, MetricValue],
        instances: InstanceTable,
        sampled: tuple[str, ...],
    ) -> Result:
        kernel = found if isinstance(found, messages.KernelResult) else None
        if not metrics and not instances:
            raise WireError("a result without metrics")
        name = function = mangled = kind
        # A range or graph has no grid of its own: here stands the largest of its launches, as ncu prints it.
        grid, block = _extent(metrics, m.GRID_DIMENSIONS), _extent(metrics, m.BLOCK_DIMENSIONS)
        if kernel is not None:
            function = kernel.function_name or kernel.mangled_name
            mangled = kernel.mangled_name or function or kind
            name = kernel.renamed or kernel.demangled_name or function
            if not name:
                raise WireError("a launch without a kernel name")
            function = function or kind
            grid, block = _shape(kernel, grid, block, metrics, session)
        elif isinstance(found, messages.CommandListResult):
            name = found.display_name or kind
        stream = None
        if not isinstance(found, messages.RangeResult) and found.HasField("stream"):
            stream = found.stream
        rules: list[RuleResult] = []
        for rule in found.rules:
            if self.rules:
                rules += rule_results(rule)
            else:
                decode(messages.Rule, rule)
        renamed = {name: metrics[old] for old, name in self._older if old in metrics and name not in metrics}
        profile = KernelProfile(
            index=index,
            report=self.report,
            name=name,
            function_name=function,
            mangled_name=mangled,
            device=self._device(metrics, session),
            launch=_launch(metrics, grid, block, stream, found.context),
            metrics=metrics,
            instances=instances,
            sampled=sampled,
            nvtx=nvtx_ranges(found.nvtx, found.thread) if found.nvtx else (),
            rules=tuple(rules),
            workload=kind,
            session=session,
            profiled=_is_profiled(metrics, grid),
            renamed=renamed,
        )
        return Result(profile, kernel.source.id if kernel is not None else 0, *place_of(found))

    def _device(self, metrics: Mapping[str, MetricValue], session: SessionDetails) -> Device:
        """The GPU; launches on one GPU share one object."""
        values = tuple(map(metrics.get, self._attributes))
        device = self._devices.get(values)
        if device is None:
            cut = len(m.DEVICE_ATTRIBUTE_PREFIX)
            known = zip(self._attributes, values, strict=True)
            attributes = {name[cut:]: value for name, value in known if value is not None}
            device = self._devices[values] = _device({**session.device_attributes, **attributes})
        return device


def _batch(
    waiting: Iterator[tuple[bytes, str, int, SessionDetails]],
) -> list[tuple[bytes, str, int, SessionDetails]]:
    """The next few: as many as fill a batch."""
    batch, size = [], 0
    for entry in waiting:
        batch.append(entry)
        size += len(entry[0])
        if len(batch) >= BATCH_LAUNCHES or size >= BATCH_BYTES:
            break
    return batch


def place_of(found: _Message) -> tuple[int, int | None, int | None]:
    """Thread, call and time of a launch, as `Result` has them."""
    kernel = found if isinstance(found, messages.KernelResult) else None
    created = kernel.created if kernel is not None and kernel.HasField("created") else None
    return found.thread, found.call if found.HasField("call") else None, created


def undecoded(data: bytes, kind: str) -> _Message:
    """A result message whose metrics stay bytes: 16 µs for a small launch; WireError if it is damaged."""
    return decode_strictly(_MESSAGES[kind], data, most=MAX_BYTES)


def source_reference(data: bytes, kind: str) -> int:
    """The cubin of this result message's source (0: none), its metrics undecoded; WireError if it is damaged."""
    found = undecoded(data, kind)
    return found.source.id if isinstance(found, messages.KernelResult) else 0


def _shape(
    kernel: messages.KernelResult,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    metrics: Mapping[str, MetricValue],
    session: SessionDetails,
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and block of a launch as its record states them, else those of its metrics; WireError if CUDA takes none.

    Both are 0 × 0 × 0 where ncu gave up before the launch. Up to ncu 2020.2 a record holds the threads of the whole
    grid along each axis in place of its blocks.
    """
    stated_grid = _stated(kernel.grid) if kernel.HasField("grid") else grid
    stated_block = _stated(kernel.block) if kernel.HasField("block") else block
    if stated_grid == stated_block == _NOTHING:
        return _NOTHING, _NOTHING
    _check_size(stated_block, "block", _BLOCK_LIMITS)
    blocks = tuple(threads // size for threads, size in zip(stated_grid, stated_block, strict=True))
    axes = zip(blocks, stated_block, stated_grid, strict=True)
    in_threads = all(count * size == threads for count, size, threads in axes)
    if in_threads and _counts_threads(blocks, stated_grid, metrics, session):
        stated_grid = blocks[0], blocks[1], blocks[2]
    _check_size(stated_grid, "grid", _GRID_LIMITS)
    return stated_grid, stated_block


# The first ncu whose records hold blocks; 2020.2.1 and those before it, which name no version, hold threads.
_BLOCKS_SINCE = (2020, 3)


def _counts_threads(
    blocks: Sequence[int], stated: Sequence[int], metrics: Mapping[str, MetricValue], session: SessionDetails
) -> bool:
    """Whether a record's grid counts threads: told by the number of blocks where ncu collected it, else by its age."""
    size = metrics.get(m.GRID_SIZE)
    if size is not None:
        return math.prod(blocks) == size != math.prod(stated)
    if session.ncu_version:
        return session.ncu_version < _BLOCKS_SINCE
    return bool(session.versions) and not session.command_line


def _stated(size: messages.Dimensions) -> tuple[int, int, int]:
    x, y, z = (getattr(size, axis) if size.HasField(axis) else 1 for axis in ("x", "y", "z"))
    return x, y, z


def _check_size(found: tuple[int, int, int], what: str, limits: tuple[int, int, int]) -> None:
    if not all(0 < size <= limit for size, limit in zip(found, limits, strict=True)):
        raise WireError(f"a {what} of {found[0]} × {found[1]} × {found[2]}")


def _is_profiled(metrics: dict[str, MetricValue], grid: tuple[int, int, int]) -> bool:
    """Whether ncu measured anything of the launch: it writes NaN for every counter of one that it could not profile.

    Zeros beside the NaN tell nothing: what ncu derives from nothing is 0.
    """
    if grid == _NOTHING:
        return False
    unknown = False
    for name in m.counters(reversed(metrics)):  # from behind, since facts of the GPU stand in front
        value = metrics[name]
        if "." in name and not isinstance(value, str):
            if value == value and value:
                return True
            unknown = unknown or value != value
    return not unknown


def _extent(metrics: Mapping[str, MetricValue], names: tuple[str, str, str]) -> tuple[int, int, int]:
    """Grid or block from metrics; 1 along a dimension that was not collected."""

    def size(name: str) -> int:
        value = metrics.get(name)
        return value if isinstance(value, int) and value > 0 else 1

    x, y, z = names
    return size(x), size(y), size(z)


# No count of registers, bytes of shared memory or blocks of a cluster comes near it: what is above is damage.
_LARGEST_OF_A_LAUNCH = 1 << 24


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
        **{field: whole(metric) for field, metric in m.OF_LAUNCH.items()},
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


# --- What stands beside a launch: advice, NVTX ranges, facts of the session -------------------------------------------

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
    """Names of the ranges around a launch, outermost first: start/end ones, then its thread's; WireError if damaged."""
    state = decode(messages.NvtxState, data)
    strings: dict[int, dict[int, str]] = {}
    for domain in state.domains:
        strings.setdefault(domain.id, {}).update((entry.handle, entry.text) for entry in domain.strings)
    threads = [found for found in state.threads if found.id == thread] or state.threads
    around: list[messages.NvtxStarted | messages.NvtxPushed] = [*state.started]
    around += [domain for found in threads for domain in found.domains]
    names = []
    for part in around:
        texts = strings.get(part.domain, {})
        for entry in part.ranges:
            message = entry.attributes.message
            # A name that was given as a registered string has only a handle into the domain's table.
            registered = texts.get(message.handle, "") if entry.HasField("attributes") else ""
            names.append(entry.name or message.text or registered)
    return tuple(filter(None, names))


def session_details(data: bytes) -> SessionDetails:
    """What a (merged) ``ReportSessionDetails`` tells, but for names and addresses of hosts; WireError if damaged."""
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


DEFAULT_CLOCK_CONTROL = "base"  # what ncu does by itself: it fixes the base clock (ncu --help)
DEFAULT_SET = "basic"  # the set that it collects where no set, section or metric is named
# Options of ncu without a value: what follows one of them may be the program.
_FLAGS = frozenset((
    "-f", "--force-overwrite", "--nvtx", "-v", "--verbose", "--quiet", "--csv", "--null-stdin", "--open-in-ui",
))  # fmt: skip


def clock_control(session: SessionDetails) -> str:
    """``base``, ``none`` … in small letters; '' where the report does not say how ncu was run."""
    own = _own_arguments(session)
    named = session.settings.get("clock control") or next(_values(own, "--clock-control"), "")
    return (named or (DEFAULT_CLOCK_CONTROL if own else "")).lower()


def collected_by(session: SessionDetails) -> tuple[str, ...]:
    """Sets, sections and metrics that ncu was asked for; () where the report does not say."""
    own = _own_arguments(session)
    found = {f"{name} {one}" for name in ("--set", "--section", "--metrics") for one in _values(own, name)}
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
