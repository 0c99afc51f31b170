"""Baselines: one side of a comparison in a small file that can be committed.

A baseline is one JSON document, compressed with zstd (with its checksum): ``<folder>/<name>.json.zst``. It holds times,
counters, code fingerprints and opcode counts of each kernel, and no SASS, source or report. It is replaced atomically.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import zstandard

from gemmprof.analysis.comparison.judgement import (
    Batch,
    NoiseModel,
    estimate,
    judge,
    location_variance,
    usual_noise,
)
from gemmprof.analysis.comparison.reasons import causes_of
from gemmprof.analysis.comparison.records import KernelRecord, Times, batches
from gemmprof.analysis.comparison.sides import Side, disassembled
from gemmprof.analysis.inputs.names import owner_of_name
from gemmprof.analysis.inputs.selection import EVERYTHING, Candidate, Selection, selected
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, read_json, values_beyond
from gemmprof.base.errors import ReportError, UsageError
from gemmprof.base.foreign_files import UnpackError, read_packed, read_text
from gemmprof.base.output import new_file

FORMAT = "gemmprof.baseline/1"
FOLDER = Path(".gemmprof") / "baselines"
SUFFIX = ".json.zst"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Baseline(Document, frozen=True, tag=FORMAT):
    """What the file holds."""

    saved: str  # when, ISO 8601
    title: str  # what it was saved from
    stages: bool  # the kernels are stages of a run
    processes: int  # how many reports or runs it is made of
    kernels: tuple[KernelRecord, ...]  # the side


def folder_of(folder: str | None) -> Path:
    """Where baselines lie: the named folder, else ``.gemmprof/baselines``."""
    return Path(folder) if folder else FOLDER


def path_of(name: str, folder: str | None = None) -> Path:
    """The file of a baseline; UsageError if the name is none."""
    if not _NAME.fullmatch(name):
        fix = "letters, digits, '.', '_' and '-', a letter or digit first"
        raise UsageError(f"'{name}' is no name of a baseline", fix)
    return folder_of(folder) / f"{name}{SUFFIX}"


def save_baseline(name: str, side: Side, folder: str | None = None, *, force: bool = False) -> Path:
    """Write a baseline; returns its path; UsageError if it exists (without ``force``), or there is nothing to save."""
    path = path_of(name, folder)
    if path.exists() and not force:
        raise UsageError(f"there is a baseline {name} already", "add --force to replace it")
    if not side.kernels:
        raise UsageError(f"{side.title} holds no kernel")
    records = []
    for record in side.kernels:  # which stand without their report
        causes = causes_of(record)
        sure = None if causes is None else tuple(sorted(causes))
        records.append(replace(disassembled(record), causes=sure, place=None, family=None))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    kept = Baseline(now, side.title, side.stages, side.processes, tuple(records))
    text = msgspec.json.encode(kept)
    if too_many := values_beyond(text):
        fixes = "keep fewer kernels in it: --kernel REGEX, --top N", "one baseline for each part"
        raise UsageError(f"the baseline would be too large: {too_many}", *fixes)
    data = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, durable=True) as temporary:
        temporary.write_bytes(data)
    return path


def read_baseline(name: str, folder: str | None = None) -> Baseline:
    """Read a baseline; UsageError if there is none of this name; ReportError if it is damaged or of another format."""
    path = path_of(name, folder)
    again = f"save it again: gemmprof baseline save {name} REPORT --force"
    try:
        return read_json(read_packed(path), Baseline)
    except FileNotFoundError:
        known = ", ".join(names(folder)) or "none"
        fixes = f"gemmprof baseline save {name} REPORT|RUN", "name another folder with --baselines DIR"
        none = f"there is no baseline {name} in {path.parent}"
        raise UsageError(none, *fixes, found=f"it holds {known}") from None
    except OtherFormatError as error:
        other = f"{path} has format {str(error)!r}; this gemmprof reads {FORMAT}"
        raise ReportError(other, "upgrade gemmprof", again) from None
    except (OSError, UnpackError, DocumentError) as error:
        raise ReportError(f"{path} is damaged", again, found=str(error)) from None


def load_baseline(name: str, folder: str | None = None, selection: Selection = EVERYTHING) -> Side:
    """A baseline as a side of a comparison; the selection is that of the other side. Errors: see `read_baseline`.

    UsageError, too, if launches are chosen by position, and the baseline was saved before those were kept.
    """
    kept = read_baseline(name, folder)
    kernels = tuple(_selected(kept.kernels, selection, name)) if selection else kept.kernels
    return Side(f"baseline {name}", kernels, stages=kept.stages, processes=kept.processes)


def _selected(kernels: Sequence[KernelRecord], selection: Selection, name: str) -> Iterator[KernelRecord]:
    """The kernels that a selection means, each with those of its launches."""
    candidates = [
        Candidate(
            f"{at}.{process}",
            position,
            record.name,
            record.nvtx,
            nanoseconds,
            record.label if record.key[0] == "stage" else "",
            owner=str(owner_of_name(record.name)),
        )
        for at, record in enumerate(kernels)
        for process, times in enumerate(record.times)
        for position, nanoseconds in _launches(times)
    ]
    if selection.launches and any(candidate.index < 0 for candidate in candidates):
        raise UsageError(
            f"baseline {name} does not say which launches it holds, so --launch cannot choose among them",
            f"save it again: gemmprof baseline save {name} REPORT --force",
        )
    meant: dict[str, set[int]] = {}
    for candidate in selected(candidates, selection):
        meant.setdefault(candidate.report, set()).add(candidate.index)
    for at, record in enumerate(kernels):
        kept = [
            times.only(positions) if times.positions else times
            for process, times in enumerate(record.times)
            if (positions := meant.get(f"{at}.{process}"))
        ]
        if kept:
            yield replace(record, times=tuple(kept), launches=sum(times.count for times in kept))


def _launches(times: Times) -> Iterable[tuple[int, float]]:
    """Position and duration of each launch; one of no position for all, where positions were not kept."""
    if len(times.positions) == len(times.nanoseconds):
        return zip(times.positions, times.nanoseconds, strict=True)
    return [(position, 0.0) for position in times.positions] or [(-1, sum(times.nanoseconds))]


def is_saved(name: str) -> bool:
    """Whether there is a baseline of this name."""
    return _NAME.fullmatch(name) is not None and path_of(name).is_file()


def names(folder: str | None = None) -> list[str]:
    """The baselines of a folder, sorted."""
    found: Iterable[Path] = folder_of(folder).glob(f"*{SUFFIX}")
    return sorted(path.name.removesuffix(SUFFIX) for path in found if not path.name.startswith("."))


def remove_baseline(name: str, folder: str | None = None) -> Path:
    """Delete a baseline; returns where it lay; UsageError if there is none of this name."""
    path = path_of(name, folder)
    if not path.is_file():
        raise UsageError(f"there is no baseline {name}", found=", ".join(names(folder)) or "none at all")
    path.unlink()
    return path


# --- The noise of one's own machine -----------------------------------------------------------------------------------
# What is usual elsewhere (`usual_noise`) is scaled: by how much more or less the control's launches scatter within a
# process, and its processes lie apart. How often verdicts err with it is tried on the control, by the other kernels.

LIKE_ELSEWHERE = 3.0  # as many kernels as usual elsewhere are added to those of the control: a few say little
BETWEEN_FREEDOM = 8.0  # the same for how far processes lie apart, in degrees of freedom
LARGEST_BYTES = 1 << 20
LEAST_NOISE = 1e-9  # a nanosecond in a second: no clock tells less


class Control(Document, frozen=True, tag="gemmprof.noise/1"):
    """What the file of ``gemmprof diff --learn-noise`` holds."""

    saved: str  # when, ISO 8601
    title: str  # what it was learnt from
    device: str  # name of the GPU
    clock_control: str  # ncu's setting, '' if unknown
    kernels: int  # kernels of the control
    processes: int  # reports or runs of it
    timed: bool  # the times are from outside the profiler
    compared: int  # how many comparisons of the control with itself were tried
    alarms: int  # how many of them found a change
    noise: NoiseModel  # what is usual on this machine

    def words(self) -> str:
        """Where the noise is from and how often it errs: what stands beside the verdicts."""
        thousand = f" ({1000 * self.alarms / self.compared:.0f} of 1,000)" if self.compared >= 100 else ""
        return (
            f"Noise of this machine, learnt from {self.title} ({self.kernels} kernels, {self.processes} processes): "
            f"{self.alarms} false alarms in {self.compared} comparisons of the control with itself{thousand}."
        )


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One kernel of the control: its processes, duration and limit."""

    processes: tuple[Batch, ...]
    nanoseconds: float
    limit: str


def learn(side: Side) -> Control:
    """What a control, two reports or more of one unchanged program, says of its machine; UsageError if it is none."""
    timed = any(record.timed for record in side.kernels)
    kernels = [
        _Kernel(tuple(found), 1e9 * math.exp(found[0].centre), "" if timed else record.limit)
        for record in side.kernels
        if len(found := batches(record, timed)) > 1
    ]
    if not kernels:
        raise UsageError(
            "a control is several reports of one unchanged program",
            "profile it again, each time in a process of its own: --learn-noise FILE a.ncu-rep b.ncu-rep",
            found=f"{side.title} is {side.processes} process{'es' * (side.processes != 1)}",
        )
    elsewhere = usual_noise(timed)
    trials = []  # of each pair of processes of a kernel: does what other kernels teach call it changed?
    for at, kernel in enumerate(kernels):
        noise = _scaled(elsewhere, [*kernels[:at], *kernels[at + 1 :]]).of(kernel.nanoseconds, kernel.limit)
        for before, after in itertools.combinations(kernel.processes, 2):
            (judged,) = judge([estimate([before], [after], noise)])
            trials.append(judged.verdict in ("slower", "faster"))
    origin = side.kernels[0].origin
    return Control(
        saved=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        title=side.title,
        device=origin.device,
        clock_control=origin.clock_control,
        kernels=len(kernels),
        processes=side.processes,
        timed=timed,
        compared=len(trials),
        alarms=sum(trials),
        noise=replace(_scaled(elsewhere, kernels), source=side.title),
    )


def _scaled(elsewhere: NoiseModel, kernels: Iterable[_Kernel]) -> NoiseModel:
    """What is usual elsewhere, made larger or smaller as these kernels are noisier or quieter."""
    logs, squares, freedom = [], BETWEEN_FREEDOM, BETWEEN_FREEDOM
    for kernel in kernels:
        usual = elsewhere.of(kernel.nanoseconds, kernel.limit)
        own = sum(batch.freedom for batch in kernel.processes)
        variance = sum(batch.squares for batch in kernel.processes) / own if own else usual.middle**2
        if own:
            # Not below the clock's steps, nor beyond what an outlier among few launches would make of it.
            spread = max(math.sqrt(variance), usual.middle * math.exp(-3 * usual.factor))
            logs.append(math.log(spread / usual.middle))
        centre = statistics.fmean(batch.centre for batch in kernel.processes)
        # What launches within a process make of the distances is no part of how far processes lie apart.
        more = len(kernel.processes) - 1
        within = variance * statistics.fmean(location_variance(batch.count) for batch in kernel.processes)
        distances = sum((batch.centre - centre) ** 2 for batch in kernel.processes)
        squares += max(distances - more * within, 0.0) / usual.between(variance)
        freedom += more
    times = math.exp(sum(logs) / (len(logs) + LIKE_ELSEWHERE))
    apart = math.sqrt(squares / freedom)
    return replace(
        elsewhere,
        middle=elsewhere.middle * times,
        largest=elsewhere.largest * max(times, 1.0),
        between_floor=elsewhere.between_floor * apart,
        between_share=elsewhere.between_share * apart,
    )


def read_control(path: Path) -> Control:
    """What ``--learn-noise`` wrote; UsageError if there is no such file, ReportError if it is damaged or another."""
    again = ["write it again: gemmprof diff --learn-noise FILE REPORT REPORT"]
    try:
        found = read_json(read_text(path, LARGEST_BYTES), Control)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", *again, found=error.strerror or "") from None
    except OtherFormatError as error:
        raise ReportError(f"{path} holds no noise but {str(error)!r}", *again) from None
    except (DocumentError, UnicodeDecodeError) as error:
        raise ReportError(f"{path} is damaged", *again, found=str(error)) from None
    figures = found.noise
    if not all(
        LEAST_NOISE < value < 1 for value in (figures.middle, figures.largest, figures.between_floor)
    ) or not (0 <= figures.between_share < 100 and 0 < figures.factor < 10 and abs(figures.power) < 10):
        raise ReportError(f"{path} is damaged", *again, found="figures that are no noise")
    return found
