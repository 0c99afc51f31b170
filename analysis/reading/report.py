"""Reads Nsight Compute reports: any ``.ncu-rep`` or ``.ncu-repz``, also compressed with xz, gzip or zstd.

The frame and all values are decoded here (`frame`, `messages`). Only what the file does not hold
comes from NVIDIA's ``ncu_report``: disassembled SASS, the source line of an instruction, units of metrics. That library
runs in a process of its own (`disassembly_cache`), and what it gets to see is a report cut down to one kernel's code
(`lookup`).
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace

from gemmprof import metrics as m
from gemmprof.analysis.inputs.names import is_doubtful
from gemmprof.analysis.reading.context import session_details
from gemmprof.analysis.reading.doubts import Order, Values
from gemmprof.analysis.reading.frame import Frame, open_frame
from gemmprof.analysis.reading.lookup import Lookup
from gemmprof.analysis.reading.messages import Result, ResultDecoder, place_of, source_reference, undecoded
from gemmprof.analysis.reading.unpack import damaged
from gemmprof.base.errors import GemmprofError, ReportError
from gemmprof.model import KernelProfile, SessionDetails, Source
from gemmprof.ncurep.ncu_frame import Item, WireError
from gemmprof.runs.integrity import doubt_of

NO_UNITS = (
    "no unit of a metric is known: what the report says of its GPU is damaged, or newer than ncu_report"
)

# Launches that are decoded ahead of the one that is handed out, so that the native reader is never idle.
AHEAD = 2


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
        self.frame = open_frame(path)
        try:
            self._sessions = _sessions(self.frame)
        except BaseException:
            self.frame.close()
            raise

    def __enter__(self) -> ReportReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.frame.close()

    def __len__(self) -> int:
        """Number of profiled launches."""
        return len(self.frame.workloads)

    @property
    def names(self) -> frozenset[str]:
        """Names of all metrics that some launch of the report may have."""
        return frozenset(self.frame.strings)

    def profiles(
        self,
        *,
        source: bool | Callable[[KernelProfile], bool] = False,
        units: bool = False,
        instances: bool | Collection[str] = True,
        rules: bool = True,
        only: Collection[int] | None = None,
    ) -> Iterator[KernelProfile]:
        """The profiled launches in the order of profiling.

        Args:
            source: also SASS and CUDA sources; or a function that says for which launches.
            units: also units of the metrics, in one mapping for all launches.
            instances: instance values of all metrics, of none, or of the named ones.
            rules: also Nsight Compute's advice.
            only: indexes of the launches to read; None for all.

        Raises:
            ReportError: where damage is met, after the launches before it; or if the native reader fails.
        """
        if source and not isinstance(instances, bool):
            instances = {*instances, m.FUNCTION_PCS, m.INSTRUCTIONS_BY_ADDRESS}
        elif source and not instances:
            instances = {m.FUNCTION_PCS, m.INSTRUCTIONS_BY_ADDRESS}
        decoder = ResultDecoder(self.path, self.frame.strings, instances, rules)
        order = self._order()
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
                return replace(
                    profile,
                    source=code.result() if code is not None else profile.source,
                    units=known,
                    doubts=(*profile.doubts, *unknown),
                )

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
        """Fingerprint of the machine code of each launch's function, by position; without those that hold no code.

        Args:
            profiles: launches of this report.

        Raises:
            ReportError: if the report is damaged there.
        """
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

    def _order(self) -> Order:
        try:
            return Order(self.frame)
        except WireError as error:
            raise damaged(self.path, "a source in it cannot be read", str(error)) from None

    def _results(
        self, decoder: ResultDecoder, order: Order, only: Collection[int] | None
    ) -> Iterator[tuple[Result, Item]]:
        """The launches as the report holds them, each with its place in the file and what contradicts itself."""
        values = Values(self.frame.strings)
        doubt = doubt_of(self.path)
        of_report = (doubt,) if doubt else ()
        wanted = [
            (index, item) for index, item in enumerate(self.frame.workloads) if only is None or index in only
        ]
        results = decoder.results(
            (
                self.frame.read(item.start, item.end),
                item.kind,
                index,
                self._sessions.get(item.process) or SessionDetails(),
            )
            for index, item in wanted
        )
        for index, item in wanted:
            if only is not None and index and index - 1 not in only:
                self._follow(order, self.frame.workloads[index - 1])
            try:
                result = next(results)
            except WireError as error:
                raise damaged(self.path, f"launch {index} cannot be read", str(error)) from None
            found = (
                *of_report,
                *order.doubts(result, item),
                *result.profile.doubts,
                *values.doubts(result.profile),
            )
            yield replace(result, profile=replace(result.profile, doubts=found)) if found else result, item

    def _follow(self, order: Order, item: Item) -> None:
        """Pass by a launch that nobody asked for: the one behind it may stand in the report twice."""
        with suppress(WireError):  # who reads it says what is wrong with it
            message = undecoded(self.frame.read(item.start, item.end), item.kind)
            deque(order.follow(item.process, *place_of(message)), maxlen=0)


def code_digests(profiles: Iterable[KernelProfile]) -> dict[tuple[str, int], str]:
    """Fingerprints of the machine code of launches by report and position, each report read once.

    They know nothing of names, lines, addresses or disassemblers. What cannot be read has none.
    """
    of_report: dict[str, list[KernelProfile]] = {}
    for profile in profiles:
        of_report.setdefault(profile.report, []).append(profile)
    found: dict[tuple[str, int], str] = {}
    for path, launches in of_report.items():
        try:
            with ReportReader(path) as reader:
                digests = reader.code_digests(launches)
                found.update({(path, index): digest for index, digest in digests.items()})
        except GemmprofError:
            continue  # code that cannot be read costs the reason of a change, nothing else
    return found


def units_of_report(path: str | os.PathLike[str]) -> Mapping[str, str]:
    """Unit of every metric that some launch of the report may have, '' if it has none.

    Raises:
        ReportError: if the report cannot be read, or the native reader fails.
    """
    with open_frame(path) as frame:
        return Lookup(frame).units()


def _sessions(frame: Frame) -> dict[int, SessionDetails]:
    """What is known of the session of each process: ncu tells what holds for all of them with one process alone."""
    try:
        found = {
            process: replace(session_details(data), process=process or None)
            for process, data in frame.sessions.items()
        }
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


LOT = 100_000  # new objects between two collections (Python's default is 700 to 2,000)


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage in larger lots inside this context: walking the same objects takes a quarter of the reading."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(LOT, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
