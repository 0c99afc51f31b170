"""Reports as files of other viewers: samples by place for speedscope, launches over time for Perfetto.

Both viewers read a file on the reader's own machine; nothing is sent anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from gemmprof import metrics
from gemmprof.analysis.inputs.names import unmangled
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.reading.line_table import Call
from gemmprof.analysis.reading.samples import series_of
from gemmprof.analysis.sections.by_line import base_name
from gemmprof.analysis.sections.source_view import SassLine, SourceView
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.session import Session
from gemmprof.base.amounts import dimensions
from gemmprof.base.buckets import write_text, written
from gemmprof.base.documents import json_text
from gemmprof.base.errors import UsageError
from gemmprof.base.printable import visible
from gemmprof.model import KernelProfile
from gemmprof.reports.tables import perfetto_pb2 as perfetto

NO_LINE = "no line information"


class Frame(NamedTuple):
    """Where a sample may fall: a file, a function, a line, an instruction, or why the warp waited there."""

    name: str
    file: str | None = None
    line: int | None = None


def write_speedscope(session: Session, target: Path) -> int:
    """Write the samples of each family's longest launch: file, function, line, instruction, reason. Returns how many
    were written: those without samples by instruction are left out; UsageError if none has any.
    """
    frames: dict[Frame, int] = {}
    positions = {family.representative: family for family in session.by_time}
    flames = [
        (positions[at].number, found)
        for at, kernel in session.read(positions)
        if (found := _flame(f"{positions[at].id} {positions[at].label}", kernel, frames)) is not None
    ]
    if not flames:
        remedy = f"profile with {metrics.SOURCE_VIEW.remedy}"
        raise UsageError("no launch here has samples by instruction", remedy)
    known = ({name: value for name, value in one._asdict().items() if value is not None} for one in frames)
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": list(known)},
        "profiles": [flame for _, flame in sorted(flames, key=lambda item: item[0])],
        "name": session.title,
        "exporter": "gemmprof",
    }
    write_text(target, visible(json_text(document, indent=-1)))
    return len(flames)


def _flame(name: str, kernel: KernelAnalysis, frames: dict[Frame, int]) -> dict[str, Any] | None:
    """The samples of a launch in speedscope's words; new frames are added to ``frames``. None without samples."""
    view = kernel.get(SourceView)
    if not isinstance(view, SourceView) or not view.totals.samples:
        return None
    stacks: dict[tuple[int, ...], int] = {}
    # Lines in their order in the file, so that the flame graph over "time" reads as the source does.
    calls = view.inlined
    texts = {path: text.split("\n") for path, text in view.files.items()}
    for item in sorted(view.sass, key=lambda item: (item.file or "", item.line or 0, item.address)):
        places = list(_places(texts, kernel.profile.function_name, item, calls[item.index]))
        places.append(Frame(f"{item.offset:04x} {item.sass.strip()}".rstrip(), item.file, item.line))
        around = tuple(frames.setdefault(place, len(frames)) for place in places)
        for reason, samples in item.counters.stalls.items() or (("sampled", item.counters.samples or 0),):
            if samples:
                why = frames.setdefault(Frame(reason), len(frames))
                stacks[*around, why] = stacks.get((*around, why), 0) + samples
    return {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(stacks.values()),
        "samples": list(stacks),
        "weights": list(stacks.values()),
    }


def _places(
    texts: Mapping[str, Sequence[str]], kernel: str, item: SassLine, calls: Sequence[Call]
) -> Iterator[Frame]:
    """File, function and line of an instruction; where calls were inlined, from the kernel's own line inwards."""
    if item.file is None or item.line is None:
        yield Frame(NO_LINE)
        yield Frame(kernel)
        return
    lines = [(item.file, item.line), *((call.file, call.line) for call in calls)]
    functions = [*(unmangled(call.function) or "inlined" for call in calls), kernel]
    yield Frame(base_name(lines[-1][0]), lines[-1][0])
    for (file, line), function in zip(reversed(lines), reversed(functions), strict=True):
        yield Frame(function, file)
        known = texts.get(file, ())
        text = known[line - 1].strip() if 0 < line <= len(known) else ""
        yield Frame(f"{base_name(file)}:{line} {text}".rstrip(), file, line)


_KINDS = perfetto.TrackEvent
_BEGIN, _END, _COUNT = _KINDS.TYPE_SLICE_BEGIN, _KINDS.TYPE_SLICE_END, _KINDS.TYPE_COUNTER
_SEQUENCE = 1  # all packets are of one writer
LONGEST = 1e13  # nanoseconds of a launch: three hours; the times of a million add up within 64 bits
COUNTERS = {"Compute (SM)": "sm_percent", "Memory": "memory_percent"}


def write_perfetto(session: Session, target: Path) -> int:
    """Write every launch as a slice of its process and stream, within its NVTX ranges, with its throughputs.

    Nsight Compute runs one launch at a time, over and over, so when they ran in the program is not known: those of a
    process stand end to end in the order of profiling, each as long as ncu measured. What was sampled within a launch
    (section PmSampling) is a counter track. Returns how many were written: those without a duration are left out;
    UsageError if none has one.
    """
    times = [kernel.profile.number(metrics.DURATION) or 0 for kernel in session.kernels]
    timed = {position: time for position, time in enumerate(times) if 0 < time < LONGEST}
    if not timed:
        raise UsageError("no launch here has a duration", f"profile with --metrics {metrics.DURATION}")
    trace = _Trace()
    # Samples are read of one launch at a time: those of a long run would not fit into memory.
    sampled = session.read(position for position in timed if session.kernels[position].profile.sampled)
    read = next(sampled, None)
    with written(target) as path, path.open("wb") as file:
        for position, duration in timed.items():
            kernel = session.kernels[position]
            label = session.census.of[kernel.profile.report, kernel.profile.index].label
            start = trace.add(kernel, duration, label)
            if read is not None and read[0] == position:
                trace.add_samples(kernel.profile, read[1].profile, start, duration)
                read = next(sampled, None)
            file.write(trace.take())
        trace.finish()
        file.write(trace.take())
    return len(timed)


class _Trace:
    """Packets of a Perfetto trace: tracks as they are first needed, and events."""

    def __init__(self) -> None:
        self._packets = perfetto.Trace()
        self._tracks: dict[tuple[object, ...], int] = {}
        self._now: dict[int, float] = {}
        self._open: dict[int, tuple[str, ...]] = {}
        self._pids: set[int] = set()

    def add(self, kernel: KernelAnalysis, duration: float, label: str) -> float:
        """One launch behind the last one of its process; returns when it starts there."""
        profile = kernel.profile
        process = self._process(profile)
        start = self._now.get(process, 0.0)
        self._enter(process, profile.nvtx, start)
        stream = f"stream {profile.launch.stream}" if profile.launch.stream is not None else "launches"
        track = self._track((process, stream), name=visible(stream), parent_uuid=process)
        shape = {
            "grid": dimensions(profile.launch.grid),
            "block": dimensions(profile.launch.block),
            "launch": str(profile.index),
            "kernel": profile.name,
        }
        safe = ((name, visible(value)) for name, value in shape.items())
        notes = [perfetto.DebugAnnotation(name=name, string_value=text) for name, text in safe]
        self._event(start, _BEGIN, track, name=visible(label), debug_annotations=notes)
        self._event(start + duration, _END, track)
        speed = kernel.get(SpeedOfLight)
        for title, field in COUNTERS.items():
            value = getattr(speed, field) if isinstance(speed, SpeedOfLight) else None
            if value is not None:
                counter = self._counter(process, title, "%")
                self._event(start, _COUNT, counter, double_counter_value=value)
                # Nothing is known of what lies between two launches: the next one begins where this one ends.
                self._event(start + duration, _COUNT, counter, double_counter_value=0.0)
        self._now[process] = start + duration
        return start

    def add_samples(
        self, listed: KernelProfile, profile: KernelProfile, start: float, duration: float
    ) -> None:
        """What was sampled during a launch, a counter track each.

        Each pass runs the launch again, a little faster or slower: a sample stands where it lay within its own run.
        """
        process = self._process(listed)
        for series in series_of(profile):
            ran = None if series.began is None or series.ended is None else series.ended - series.began
            scale = duration / ran if ran else 1.0
            track = self._counter(process, series.counter, profile.units.get(series.metric, ""))
            times = series.since_start * scale
            # The sample before the launch began lasts into it.
            first = max(int((times <= 0).sum()) - 1, 0)
            for time, value in zip(times[first:].tolist(), series.values[first:].tolist(), strict=True):
                if time >= duration:
                    break
                if value == value:  # NaN: the sampler lost it
                    self._event(start + max(time, 0.0), _COUNT, track, double_counter_value=value)
            self._event(start + duration, _COUNT, track, double_counter_value=0.0)

    def _process(self, profile: KernelProfile) -> int:
        key = (profile.report, profile.session.process)
        if key in self._tracks:
            return self._tracks[key]
        # The viewer takes tracks of one number for one process: of two reports, machines or containers they may agree.
        pid = profile.session.process or 1
        while pid in self._pids:
            pid += 1
        self._pids.add(pid)
        name = visible(f"{base_name(profile.report)} (launches end to end)")
        return self._track(key, process=perfetto.ProcessDescriptor(pid=pid, process_name=name))

    def _counter(self, process: int, title: str, unit: str) -> int:
        of = perfetto.CounterDescriptor(unit_name=visible(unit))
        return self._track((process, "counter", title), name=visible(title), parent_uuid=process, counter=of)

    def _track(self, key: tuple[object, ...], **described: Any) -> int:
        if key not in self._tracks:
            uuid = self._tracks[key] = 1 + len(self._tracks)
            track = perfetto.TrackDescriptor(uuid=uuid, **described)
            self._packets.packet.add(trusted_packet_sequence_id=_SEQUENCE, track_descriptor=track)
        return self._tracks[key]

    def _enter(self, process: int, ranges: tuple[str, ...], now: float) -> None:
        """Leave the NVTX ranges that end before this launch, and enter those that it is the first in."""
        old = self._open.get(process, ())
        if not old and not ranges:
            return
        track = self._track((process, "NVTX"), name="NVTX", parent_uuid=process)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, ranges, strict=False)))
        for _ in old[same:]:
            self._event(now, _END, track)
        for name in ranges[same:]:
            self._event(now, _BEGIN, track, name=visible(name))
        self._open[process] = ranges

    def _event(self, time: float, kind: perfetto.TrackEvent.Type, track: int, **rest: Any) -> None:
        event = perfetto.TrackEvent(type=kind, track_uuid=track, **rest)
        packets, when = self._packets.packet, round(time)
        packets.add(timestamp=when, trusted_packet_sequence_id=_SEQUENCE, track_event=event)

    def finish(self) -> None:
        """Ranges that are open end with their process's last launch."""
        for process in self._open:
            self._enter(process, (), self._now[process])

    def take(self) -> bytes:
        """The packets since the last call."""
        data = self._packets.SerializeToString()
        self._packets.Clear()
        return data
