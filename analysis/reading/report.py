"""Reads Nsight Compute reports: any ``.ncu-rep`` or ``.ncu-repz``, also compressed with xz, gzip or zstd.

The frame and all values are decoded here (`frame`, `messages`). Only what the file does not hold
comes from NVIDIA's ``ncu_report``: disassembled SASS, the source line of an instruction, units of metrics. That library
runs in a process of its own (`lookup`), and what it gets to see is a report cut down to one kernel's code
(`lookup`).
"""

from __future__ import annotations

import gc
import math
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from gemmprof import metrics as m
from gemmprof.analysis.inputs.names import is_doubtful
from gemmprof.analysis.reading.frame import Frame, damaged, doubt_of, open_frame, reference_of
from gemmprof.analysis.reading.lookup import Lookup
from gemmprof.analysis.reading.messages import (
    Result,
    ResultDecoder,
    place_of,
    session_details,
    source_reference,
    undecoded,
)
from gemmprof.base.errors import GemmprofError, ReportError
from gemmprof.base.spread import grouped
from gemmprof.base.system import LOT
from gemmprof.model import KernelProfile, MetricValue, SessionDetails, Source
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import WORKLOADS, Item, WireError, decode

# --- Doubts -----------------------------------------------------------------------------------------------------------
# What in a report contradicts itself: reasons to doubt a launch, found without any other file.
#
# The format has no checksum, but it says many things twice. ncu numbers the calls of a thread, writes the code of a
# kernel right before the first launch that uses it, and the facts of its session once each; a grid stands in the launch
# and among its metrics; a minimum is never above an average; counts by instruction add up to the count of the launch. A
# report that breaks one of these rules was changed after ncu wrote it: by a disk, a transfer, or a hand. All of them
# hold in every recorded launch (`tests/analysis/reading/test_doubts.py`). What no rule covers stays unseen;
# docs/reading.md says what that is.

# Fields of a session that stand in every report of format version 7 by ncu `_COMPLETE_SINCE`, with what they hold.
SESSION_FACTS = {
    "created": "when it began", "machine": "its machine", "devices": "its GPUs", "command_line": "ncu's command line",
}  # fmt: skip
_KNOWN_FORMAT = 7
# Earlier ones do not write their command line, those of 2019 not even their version (118 reports by 22 versions).
_COMPLETE_SINCE = (2022, 2)
VERSIONS = ("CUDA Version", "PerfWorks", "Nsight Compute Target")  # whose versions such sessions tell
ROLL_UPS = (".min", ".avg", ".max", ".sum")
_NOISE = 1e-9  # relative difference of sums that adding in another order makes
NAMED = 3  # so many contradictions of one kind are named; then only counted


class Order:
    """What the order of a report's launches tells, followed launch by launch."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self._sources = frame, _code_before(frame)
        self._calls: dict[tuple[int, int], int] = {}
        self._created: dict[int, int] = {}
        self._of_process: dict[int, tuple[str, ...]] = {}

    def doubts(self, result: Result, item: Item) -> tuple[str, ...]:
        """What is wrong with the place of this launch, and with the report around it."""
        of_order = self.follow(item.process, result.thread, result.call, result.created)
        found = [*self._report_doubts(result, item), *of_order]
        before = self._sources.get(item.start)
        if before and item.kind == "kernel" and result.source_reference not in before:
            what = "the code before it in the report belongs to another launch: launches are missing or moved"
            found.append(what)
        return tuple(found)

    def follow(self, process: int, thread: int, call: int | None, created: int | None) -> Iterator[str]:
        """Go on to the next launch, of which no more than this is known; what is wrong with its place."""
        last = self._calls.get((process, thread))  # processes count calls for themselves, two at a time
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
                kept = {at: decode(messages.Session, data) for at, data in self.frame.sessions.items()}
                told = {at: {field.name for field, _ in one.ListFields()} for at, one in kept.items()}
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


class Values:
    """What the values of a launch say against each other; the names are all metrics that a launch may have."""

    def __init__(self, names: Collection[str]) -> None:
        bases = dict.fromkeys(name[:-4] for name in names if name.endswith(ROLL_UPS))
        self._families = [tuple(base + roll_up for roll_up in ROLL_UPS) for base in bases]
        self._counts = [name for name in names if name.startswith(m.SUMS_OF_INSTANCES)]

    def doubts(self, profile: KernelProfile) -> tuple[str, ...]:
        """What is wrong with the values of this launch."""
        found: list[str] = []
        if profile.workload == "kernel":
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
                    found.append(f"the metric {name} is {metrics[name]}, its launch says {value}")
            if launch.threads_per_block > 1024:
                found.append(f"a block of {launch.threads_per_block} threads: no GPU starts one")
            counted = self._counts if profile.instances else ()
            counts = [name for name in counted if _is_wrong_sum(profile, name)]
            found += _some(counts, "counts are not the sum of their values by instruction")
        families = [names for names in self._families if not _in_order(profile.metrics, names)]
        shown = [f"{names[0][:-4]} (min, avg, max, sum)" for names in families]
        return (*found, *_some(shown, "roll-ups are not in their order"))


def _some(names: Sequence[str], what: str) -> Iterable[str]:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{what}: {', '.join(names[:NAMED])}{more}"


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


# --- Reads Nsight Compute reports -------------------------------------------------------------------------------------

NO_UNITS = (
    "no unit of a metric is known: what the report says of its GPU is damaged, or newer than ncu_report"
)

AHEAD = 2  # launches that are decoded ahead of the one that is handed out, so that the native reader is never idle


def read_report(
    path: str | os.PathLike[str],
    *,
    source: bool = True,
    units: bool = True,
    instances: bool | Collection[str] = True,
) -> tuple[KernelProfile, ...]:
    """Every profiled launch of a report, in the order of profiling, complete in plain Python values.

    Args:
        path: the report; its compression is told by its content.
        source: also disassemble the kernels and read the CUDA sources (about 0.4 s for the first kernel).
        units: also ask for the units of the metrics.
        instances: instance values of all metrics, of none, or of the named ones.

    Raises:
        ReportError: if the file is missing, of another kind, truncated or damaged, or if the native reader fails on it.
    """
    with ReportReader(path) as reader:
        return tuple(reader.profiles(source=source, units=units, instances=instances))


class ReportReader:
    """An open report, read one launch at a time: memory does not grow with the number of launches.

    Use it in a ``with`` statement.

    Raises:
        ReportError: if the file is missing, of another kind, or its frame is truncated or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with ExitStack() as unless_read:
            self.frame = unless_read.enter_context(open_frame(path))
            self._sessions = _sessions(self.frame)
            unless_read.pop_all()

    def __enter__(self) -> ReportReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.frame.close()

    def __len__(self) -> int:
        """Number of profiled launches."""
        return len(self.frame.workloads)

    def profiles(
        self,
        *,
        # also SASS and CUDA sources; or a function that says for which launches
        source: bool | Callable[[KernelProfile], bool] = False,
        units: bool = False,  # also units of the metrics, in one mapping for all launches
        instances: bool | Collection[str] = True,
        rules: bool = True,  # also Nsight Compute's advice
        only: Collection[int] | None = None,  # indexes of the launches to read; None for all
    ) -> Iterator[KernelProfile]:
        """The launches in the order of profiling; ReportError at damage, or where the native reader fails."""
        if source and not isinstance(instances, bool):
            instances = {*instances, m.FUNCTION_PCS, m.INSTRUCTIONS_BY_ADDRESS}
        elif source and not instances:
            instances = {m.FUNCTION_PCS, m.INSTRUCTIONS_BY_ADDRESS}
        decoder = ResultDecoder(self.path, self.frame.strings, instances, rules)
        try:
            order = Order(self.frame)
        except WireError as error:
            raise damaged(self.path, "a source in it cannot be read", str(error)) from None
        lookup = Lookup(self.frame)
        # The native reader works on the units, and on the code of the next launches, while this process decodes values
        # and its caller looks at the launch before.
        with ThreadPoolExecutor(1) as on_units, ThreadPoolExecutor(1) as on_sources:
            known_units = on_units.submit(lookup.units) if units else None
            waiting: deque[tuple[KernelProfile, Future[Source] | None]] = deque()

            def first() -> KernelProfile:
                profile, code = waiting.popleft()
                known = known_units.result() if known_units is not None else profile.units
                unknown = (NO_UNITS,) if m.DURATION in known and not any(known.values()) else ()
                own = code.result() if code is not None else profile.source
                return replace(profile, source=own, units=known, doubts=(*profile.doubts, *unknown))

            results, damage = self._results(decoder, order, only), None
            while True:
                try:
                    result, item = next(results)
                except StopIteration:
                    break
                except ReportError as error:
                    damage = error
                    break
                profile = result.profile
                if is_doubtful(profile.name):
                    profile = replace(profile, lines=lookup.lines(result, item))
                wanted = source(profile) if callable(source) else source
                code = on_sources.submit(lookup.source, result, item) if wanted else None
                waiting.append((profile, code))
                if len(waiting) > AHEAD:
                    yield first()
            while waiting:
                yield first()
            if damage is not None:
                raise damage

    def code_digests(self, profiles: Iterable[KernelProfile]) -> dict[int, str]:
        """Fingerprint of each launch's machine code by position, where there is some; ReportError if it is damaged."""
        lookup = Lookup(self.frame)
        found: dict[int, str] = {}
        for profile in profiles:
            item = self.frame.workloads[profile.index]
            try:
                reference = source_reference(self.frame.read(item.start, item.end), item.kind)
            except WireError as error:
                raise damaged(self.path, f"launch {profile.index} cannot be read", str(error)) from None
            digest = lookup.digest(profile, item, reference)
            if digest:
                found[profile.index] = digest
        return found

    def _results(
        self, decoder: ResultDecoder, order: Order, only: Collection[int] | None
    ) -> Iterator[tuple[Result, Item]]:
        """The launches as the report holds them, each with its place in the file and what contradicts itself."""
        values = Values(self.frame.strings)
        doubt = doubt_of(self.path)
        of_report = (doubt,) if doubt else ()
        wanted = [(at, one) for at, one in enumerate(self.frame.workloads) if only is None or at in only]
        sessions = self._sessions
        results = decoder.results(
            (self.frame.read(at.start, at.end), at.kind, index, sessions.get(at.process) or SessionDetails())
            for index, at in wanted
        )
        for index, item in wanted:
            if only is not None and index and index - 1 not in only:
                # Nobody asked for the launch before: the one behind it may stand in the report twice.
                passed = self.frame.workloads[index - 1]
                with suppress(WireError):  # who reads it says what is wrong with it
                    message = undecoded(self.frame.read(passed.start, passed.end), passed.kind)
                    deque(order.follow(passed.process, *place_of(message)), maxlen=0)
            try:
                result = next(results)
            except WireError as error:
                raise damaged(self.path, f"launch {index} cannot be read", str(error)) from None
            found = (*of_report, *order.doubts(result, item), *values.doubts(result.profile))
            yield replace(result, profile=replace(result.profile, doubts=found)) if found else result, item


def code_digests(profiles: Iterable[KernelProfile]) -> dict[tuple[str, int], str]:
    """Fingerprints of the machine code of launches by report and position, each report read once.

    They know nothing of names, lines, addresses or disassemblers. What cannot be read has none.
    """
    found: dict[tuple[str, int], str] = {}
    for path, launches in grouped((profile.report, profile) for profile in profiles).items():
        try:
            with ReportReader(path) as reader:
                digests = reader.code_digests(launches)
                found.update({(path, index): digest for index, digest in digests.items()})
        except GemmprofError:
            continue  # code that cannot be read costs the reason of a change, nothing else
    return found


def one_launch(path: str, index: int, **read: bool) -> KernelProfile | None:
    """A launch of a report, read as `ReportReader.profiles` says; None where it cannot be read."""
    try:
        with ReportReader(path) as reader:
            return next(reader.profiles(only={index}, **read))
    except (GemmprofError, StopIteration):
        return None


def units_of_report(path: str | os.PathLike[str]) -> Mapping[str, str]:
    """Unit of every metric that some launch of the report may have, '' if it has none; ReportError if unreadable."""
    with open_frame(path) as frame:
        return Lookup(frame).units()


def _sessions(frame: Frame) -> dict[int, SessionDetails]:
    """What is known of the session of each process: ncu tells what holds for all of them with one process alone."""
    try:
        details = ((process, session_details(data)) for process, data in frame.sessions.items())
        found = {process: replace(own, process=process or None) for process, own in details}
    except WireError as error:
        raise damaged(frame.path, "the facts of its session cannot be read", str(error)) from None
    shared = next((details for details in found.values() if details.command_line), SessionDetails())
    return {
        process: replace(
            details,
            created=shared.created if details.created is None else details.created,
            command_line=details.command_line or shared.command_line,
            application=details.application or shared.application,
            versions=details.versions or shared.versions,
            settings=details.settings or shared.settings,
            processes=len(found),
        )
        for process, details in found.items()
    }


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage in larger lots inside this context: walking the same objects takes a quarter of the reading."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(LOT, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
