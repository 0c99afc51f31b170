"""What in a report contradicts itself: reasons to doubt a launch, found without any other file.

The format has no checksum, but it says many things twice. ncu numbers the calls of a thread, writes the code of a
kernel right before the first launch that uses it, and the facts of its session once each; a grid stands in the launch
and among its metrics; a minimum is never above an average; counts by instruction add up to the count of the launch. A
report that breaks one of these rules was changed after ncu wrote it: by a disk, a transfer, or a hand. All of them hold
in every recorded launch (`tests/analysis/reading/test_doubts.py`). What no rule covers stays unseen; docs/reading.md
says what that is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gemmprof import metrics as m
from gemmprof.analysis.reading.frame import Frame, reference_of
from gemmprof.analysis.reading.messages import Result
from gemmprof.model import KernelProfile, MetricValue
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import WORKLOADS, Item, decode

# Fields of a session that stand in every report of format version 7 by ncu `_COMPLETE_SINCE`, with what they
# hold.
SESSION_FACTS = {
    "created": "when it began",
    "machine": "its machine",
    "devices": "its GPUs",
    "command_line": "ncu's command line",
}
_KNOWN_FORMAT = 7
# Earlier ones do not write their command line, those of 2019 not even their version (118 reports by 22
# versions).
_COMPLETE_SINCE = (2022, 2)
# Providers whose version every session of that format tells.
VERSIONS = ("CUDA Version", "PerfWorks", "Nsight Compute Target")

ROLL_UPS = (".min", ".avg", ".max", ".sum")
_NOISE = 1e-9  # relative difference of sums that adding in another order makes

NAMED = 3  # so many contradictions of one kind are named; then only counted


@dataclass(slots=True)
class Order:
    """What the order of a report's launches tells, followed launch by launch.

    Args:
        frame: the report.
    """

    frame: Frame
    _calls: dict[tuple[int, int], int] = field(default_factory=dict)
    _created: dict[int, int] = field(default_factory=dict)
    _sources: dict[int, set[int]] = field(default_factory=dict)
    _of_process: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sources = _code_before(self.frame)

    def doubts(self, result: Result, item: Item) -> tuple[str, ...]:
        """What is wrong with the place of this launch, and with the report around it."""
        found = [
            *self._report_doubts(result, item),
            *self.follow(item.process, result.thread, result.call, result.created),
        ]
        before = self._sources.get(item.start)
        if before and item.kind == "kernel" and result.source_reference not in before:
            found.append(
                "the code before it in the report belongs to another launch: launches are missing or moved"
            )
        return tuple(found)

    def follow(self, process: int, thread: int, call: int | None, created: int | None) -> Iterator[str]:
        """Go on to the next launch, of which no more than this is known; what is wrong with its place."""
        # Each process counts its calls, and two may be profiled at a time.
        last = self._calls.get((process, thread))
        if call is not None:
            self._calls[process, thread] = max(call, last or 0)
            if last is not None and call <= last:
                yield (
                    "this launch stands in the report twice"
                    if call == last
                    else "this launch stands behind a later one: launches of the report were moved or doubled"
                )
        if created is not None:
            latest = self._created.get(process, 0)
            self._created[process] = max(latest, created)
            if created < latest:
                yield "it was profiled before the launch that stands before it"

    def _report_doubts(self, result: Result, item: Item) -> Iterable[str]:
        """What is wrong with the report around a launch, as far as it concerns the launch's process."""
        if item.process not in self._of_process:
            found = []
            session = result.profile.session
            # What says its command line is of a version that says all of this, also where the version is lost.
            complete = session.ncu_version >= _COMPLETE_SINCE or bool(session.command_line)
            if self.frame.version == _KNOWN_FORMAT and complete:
                # One process of several tells what holds for all of them; its GPUs each tells for itself.
                told = {process: _facts_in(data) for process, data in self.frame.sessions.items()}
                own, all_told = told.get(item.process, set()), set().union(*told.values())
                lost = [
                    text
                    for name, text in SESSION_FACTS.items()
                    if name not in (own if name == "devices" else all_told)
                ]
                lost += [name for name in VERSIONS if name not in session.versions]
                if lost:
                    found.append(f"the report does not say {', '.join(lost)}: a part of it is missing")
            if self._sources.get(-1):
                found.append("the report ends with code that no launch uses: launches behind it are missing")
            self._of_process[item.process] = tuple(found)
        return self._of_process[item.process]


def _facts_in(session: bytes) -> set[str]:
    """Names of the fields that a session has."""
    return {field.name for field, _ in decode(messages.Session, session).ListFields()}


def _code_before(frame: Frame) -> dict[int, set[int]]:
    """Which code of its process stands between a launch (by where it starts; -1: the end) and the one before it."""
    found: dict[int, set[int]] = {}
    waiting: dict[int, set[int]] = {}
    kernels_only = True
    for item in frame.items:
        if item.kind == "source":
            waiting.setdefault(item.process, set()).add(reference_of(frame, item))
        elif item.kind in WORKLOADS:
            kernels_only = kernels_only and item.kind == "kernel"
            if before := waiting.pop(item.process, None):
                found[item.start] = before
    if waiting and kernels_only:
        found[-1] = set().union(*waiting.values())
    return found


@dataclass(slots=True)
class Values:
    """What the values of a launch say against each other.

    Args:
        names: all metrics that a launch of the report may have.
    """

    names: Iterable[str]
    _families: list[tuple[str, ...]] = field(default_factory=list)
    _counts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        bases = dict.fromkeys(name[:-4] for name in self.names if name.endswith(ROLL_UPS))
        self._families = [tuple(base + roll_up for roll_up in ROLL_UPS) for base in bases]
        self._counts = [name for name in self.names if name.startswith(m.SUMS_OF_INSTANCES)]

    def doubts(self, profile: KernelProfile) -> tuple[str, ...]:
        """What is wrong with the values of this launch."""
        found: list[str] = []
        if profile.workload == "kernel":
            found += _launch_doubts(profile)
            counts = (
                [name for name in self._counts if _is_wrong_sum(profile, name)] if profile.instances else []
            )
            found += _some(counts, "counts are not the sum of their values by instruction")
        families = [names for names in self._families if not _in_order(profile.metrics, names)]
        shown = [f"{names[0][:-4]} (min, avg, max, sum)" for names in families]
        return (*found, *_some(shown, "roll-ups are not in their order"))


def _some(names: Iterable[str], what: str) -> Iterable[str]:
    listed = list(names)
    if listed:
        more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
        yield f"{what}: {', '.join(listed[:NAMED])}{more}"


def _launch_doubts(profile: KernelProfile) -> Iterable[str]:
    launch, metrics = profile.launch, profile.metrics
    stated = {
        m.GRID_SIZE: launch.blocks,
        m.BLOCK_SIZE: launch.threads_per_block,
        m.THREADS: launch.blocks * launch.threads_per_block,
        **dict(zip(m.GRID_DIMENSIONS, launch.grid, strict=True)),
        **dict(zip(m.BLOCK_DIMENSIONS, launch.block, strict=True)),
    }
    for name, value in stated.items():
        if name in metrics and metrics[name] != value:
            yield f"the metric {name} is {metrics[name]}, its launch says {value}"
    if launch.threads_per_block > 1024:
        yield f"a block of {launch.threads_per_block} threads: no GPU starts one"


def _in_order(metrics: Mapping[str, MetricValue], names: tuple[str, ...]) -> bool:
    """Whether a family's minimum, average, maximum and sum rise, and all or none of them are NaN.

    What ncu subtracts from counters of another pass can lie a little below zero; nothing of it adds up then.
    """
    values = [value for name in names if isinstance(value := metrics.get(name), (int, float))]
    known = [value for value in values if value == value]
    if len(known) < len(values):
        return not known
    lowest = metrics.get(names[0])
    if len(known) < 2 or (isinstance(lowest, (int, float)) and lowest < 0):
        return True
    return known == sorted(known)


def _is_wrong_sum(profile: KernelProfile, name: str) -> bool:
    instances, total = profile.instances.get(name), profile.metrics.get(name)
    if instances is None or total is None or isinstance(total, str):
        return False
    try:
        added = math.fsum(instances.values)  # type: ignore[arg-type]  # text is the exception below
    except (TypeError, OverflowError, ValueError):
        return True
    return not abs(added - total) <= _NOISE * max(abs(added), abs(total))
