"""The run directory: the only thing that the profiler hands to the analysis.

Layout::

    <run>/run.json            facts, stages, results (this module's format)
    <run>/reports/*.ncu-rep   what ncu wrote (may be compressed: .xz, .gz, .zst)
    <run>/logs/*.log          what the tools said

``run.json`` is replaced atomically after every finished step, so a run killed at any moment keeps what it had.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gemmprof.base import system
from gemmprof.base.amounts import brief
from gemmprof.base.documents import checked, plain
from gemmprof.base.errors import ReportError, RunError
from gemmprof.base.expressions import is_arithmetic
from gemmprof.base.foreign_files import open_file, read_bytes
from gemmprof.base.output import write_new
from gemmprof.base.spread import grouped
from gemmprof.base.views import Shown
from gemmprof.model import Ladder, Problem, ReportRecord, RunInfo, StageRecord, StageResult
from gemmprof.ncurep import ncu_frame

# --- run.json ---------------------------------------------------------------------------------------------------------
# A run may come from elsewhere. What it says reaches pages, tables, file names and divisions, so everything that is not
# of the type and in the range that gemmprof writes is refused here, naming the place in the file.

FORMAT_VERSION = 2
MAX_FILE_BYTES = 64 << 20
MAX_TEXT = 1 << 20  # no run that gemmprof wrote comes near these


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What a ``run.json`` says."""

    format_version: int  # `FORMAT_VERSION` of the gemmprof that wrote it
    info: RunInfo  # what holds for the whole run
    problems: tuple[Problem, ...]  # the matrix products
    stages: tuple[StageRecord, ...]  # as they were when the run was made
    results: tuple[StageResult, ...]  # of each stage on each problem
    # each report as it was when it was collected, by its name in the results
    reports: Mapping[str, ReportRecord] = field(default_factory=dict)


def written(document: RunDocument) -> str:
    """The document as text. NaN and infinities stand as such, which is no JSON: an output may hold them."""
    return json.dumps(msgspec.to_builtins(document, enc_hook=plain), indent=1, ensure_ascii=False) + "\n"


def read_document(file: Path) -> RunDocument:
    """Read and check a ``run.json``; FileNotFoundError, or RunError if it is damaged or a newer gemmprof wrote it."""
    try:
        document = json.loads(read_bytes(file, MAX_FILE_BYTES).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError from None
    except (OSError, ValueError, RecursionError) as error:
        again = "copy or collect the run again"
        raise RunError(f"{file} cannot be read", again, found=str(error)[:300]) from error
    version = document.get("format_version") if isinstance(document, dict) else None
    if version != FORMAT_VERSION:
        said = repr(version)[:40]
        other = f"{file} has format version {said}; this gemmprof reads version {FORMAT_VERSION}"
        raise RunError(other, "upgrade gemmprof", "collect the run again")
    try:
        found = checked(document, RunDocument)
        _no_surprise(document, msgspec.to_builtins(found, enc_hook=plain))
        _check(found)
    except (ValueError, RecursionError, OverflowError) as error:
        again = "copy or collect the run again"
        raise RunError(f"{file} is damaged", again, found=str(error)[:300]) from error
    return found


def _no_surprise(given: Any, known: Any, place: str = "run", depth: int = 0) -> None:
    """Refuse fields that gemmprof does not write: a name with a flipped bit would be a fact lost without a word. Nor
    does it write a text with a NUL or of a megabyte, or nests deeper.
    """
    if depth > 12:
        raise ValueError(f"{place} is nested too deep")
    if isinstance(given, str):
        if "\0" in given or len(given) > MAX_TEXT:
            raise ValueError(f"{place} holds a text with a NUL, or too long a one")
    elif isinstance(given, dict):
        if unknown := sorted(set(given) - set(known)):
            raise ValueError(f"{place}: unknown field {unknown[0][:40]!r}")
        for name, item in given.items():
            _no_surprise(name, name, place, depth)
            _no_surprise(item, known[name], f"{place}.{name[:40]}", depth + 1)
    elif isinstance(given, list):
        for number, (item, same) in enumerate(zip(given, known, strict=True)):
            _no_surprise(item, same, f"{place}[{number}]", depth + 1)


def _check(found: RunDocument) -> None:
    """What the types of the fields do not say: what belongs together, and what is evaluated."""
    if not -(2**63) <= found.info.seed < 2**64:
        raise ValueError("the seed has more than 64 bits")
    for stage in (record.stage for record in found.stages):
        if (addresses := stage.addresses) is None:
            continue
        texts = [*addresses.tile, addresses.threads, *addresses.names.values(), addresses.computing or "0"]
        for access in addresses.accesses:
            texts += [access.row, access.column, access.executions, access.ahead, access.place or "0"]
        for copy in addresses.copies:
            texts += [copy.rows, copy.columns, copy.boxes, copy.receivers]
        for read in addresses.operand_reads:
            texts += [read.rows, read.columns]
        for text in texts:
            if not is_arithmetic(text):
                raise ValueError(f"{stage.name[:40]}: {text[:60]!r} is no integer arithmetic")
    known = {record.stage.number for record in found.stages}
    for number, result in enumerate(found.results):
        place = f"results[{number}]"
        if result.problem not in found.problems:
            raise ValueError(f"{place} is of a problem that the run does not list")
        if result.stage not in known:
            raise ValueError(f"{place} is of a stage that the run does not list")
        # NaN and infinity are outcomes: an output may hold them.
        if result.verification is not None and result.verification.relative_error < 0:
            raise ValueError(f"{place}.verification is below zero")


# --- The run directory ------------------------------------------------------------------------------------------------

RUN_FILE = "run.json"
DEFAULT_RUNS_DIRECTORY = "gemmprof-runs"
DEFAULT_PROFILES_DIRECTORY = "gemmprof-profiles"
COMPRESSIONS = (".xz", ".gz", ".zst")
NVTX_PREFIX = "gemmprof/"  # how the names of the NVTX ranges of a run begin (`nvtx_range`)


@dataclass(frozen=True, slots=True)
class Run(Shown):
    """One collected run: where it lies, what it was made with, and the result of every stage and problem."""

    directory: Path
    info: RunInfo
    stages: tuple[StageRecord, ...] = ()
    problems: tuple[Problem, ...] = ()
    results: tuple[StageResult, ...] = ()
    # each report as it was when it was collected, by its name in the results
    reports: Mapping[str, ReportRecord] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        parts = (len(self.stages), "stages"), (len(self.problems), "problems"), (len(self.results), "results")
        counts = (f"{number} {what}" for number, what in parts)
        return brief(self, str(self.directory), self.info.device, *counts)

    @property
    def ladders(self) -> tuple[Ladder, ...]:
        """The ladders that the run has stages of, with those stages."""
        stages = grouped((record.stage.ladder, record.stage) for record in self.stages)
        return tuple(
            Ladder(name, name, tuple(dict.fromkeys(dtype for one in of for dtype in one.dtypes)), tuple(of))
            for name, of in stages.items()
        )

    def record(self, number: int, problem: Problem | None = None) -> StageRecord:
        """The stage of this number, in the ladder of the problem's type (None: the first one); RunError without it."""
        for record in self.stages:
            stage = record.stage
            if stage.number == number and (problem is None or problem.dtype in stage.dtypes):
                return record
        raise self._no_stage(str(number))

    def record_of(self, result: StageResult) -> StageRecord:
        """The stage that a result is of; RunError if the run does not hold it."""
        return self.record(result.stage, result.problem)

    def yardstick(self, problem: Problem) -> StageResult | None:
        """The result of the stage that the others are measured against on this problem, None without one."""
        for record in self.stages:
            if record.stage.yardstick and problem.dtype in record.stage.dtypes:
                return self.result(record.stage.number, problem)
        return None

    def find_record(self, stage: str) -> StageRecord:
        """The stage of this number or name, with its ladder's name before it where the run holds several: ``half:3``.

        A number alone means the run's first ladder that has it, as everywhere. RunError for none, or a name of two.
        """
        ladder, _, selector = stage.rpartition(":")
        in_ladder = (one for one in self.stages if ladder in ("", one.stage.ladder))
        found = [one for one in in_ladder if selector in (str(one.stage.number), one.stage.name)]
        if len(found) > 1 and not selector.isdecimal():
            fix = "name the ladder: " + " or ".join(f"{r.stage.ladder}:{selector}" for r in found)
            raise RunError(f"the run {self.directory} holds several stages {stage}", fix)
        if found:
            return found[0]
        raise self._no_stage(stage)

    def _no_stage(self, stage: str) -> RunError:
        held = ", ".join(f"{record.stage.number} {record.stage.name}" for record in self.stages)
        what = f"the run {self.directory} holds no stage {stage}"
        fix = f"gemmprof collect --stage {stage} on a machine with a GPU, if the ladder has it"
        return RunError(what, fix, found=f"it holds {held or 'none'}")

    def result(self, number: int, problem: Problem) -> StageResult | None:
        """The result of one stage on one problem, or None."""
        return next((result for result in self.results if result.key == (number, problem)), None)

    def seconds(self, result: StageResult) -> float | None:
        """The time that stands for a result, None where it was not timed.

        A stage's own median. Of the yardstick the median of those beside the stages: each stage took turns with it, and
        from one to the next the card's clock changes.
        """
        if result.timing is None or not self.record_of(result).stage.yardstick:
            return result.timing.median if result.timing else None
        others = (one for one in self.results if one.problem == result.problem and one.stage != result.stage)
        beside = [one.timing.yardstick_median for one in others if one.timing is not None]
        known = [time for time in beside if time is not None]
        return statistics.median(known or [result.timing.median])

    def yardstick_seconds(self, result: StageResult) -> float | None:
        """Time of the yardstick in turns with a stage, else that of its own row.

        None for the yardstick itself and where one of the two was not timed.
        """
        if result.timing is None or self.record_of(result).stage.yardstick:
            return None
        if result.timing.yardstick_median:
            return result.timing.yardstick_median
        yardstick = self.yardstick(result.problem)
        return yardstick.timing.median if yardstick is not None and yardstick.timing else None

    def of_yardstick(self, result: StageResult) -> float | None:
        """Speed of a stage as a share of the yardstick's in turns with it, 0 to 1 and above; None as above."""
        seconds = self.yardstick_seconds(result)
        return seconds / result.timing.median if seconds and result.timing is not None else None

    def with_result(self, result: StageResult) -> Run:
        """A copy in which ``result`` stands in place of any older one of the same stage and problem."""
        kept = [r for r in self.results if r.key != result.key]
        ordered = sorted([*kept, result], key=lambda r: (self.problems.index(r.problem), r.stage))
        return dataclasses.replace(self, results=tuple(ordered))

    def report_paths(self) -> tuple[Path, ...]:
        """The distinct report files of the run, in the order of its results."""
        names = dict.fromkeys(r.report for r in self.results if r.report is not None)
        return tuple(self.report_path(name) for name in names)

    def report_path(self, name: str) -> Path:
        """Path of a report that ``run.json`` names, compressed or not; ReportError if the name leads out of the run."""
        path = self.directory / name
        candidates = [path, *(path.with_name(path.name + suffix) for suffix in COMPRESSIONS)]
        found = next((candidate for candidate in candidates if candidate.exists()), path)
        # Links are resolved: neither a name nor a link of the run leads elsewhere.
        if not found.resolve().is_relative_to(self.directory.resolve()):
            raise ReportError(f"{self.directory / RUN_FILE} names a report outside its folder", found=name)
        return found


def save_run(run: Run) -> Path:
    """Write ``run.json`` of this run; returns its path."""
    run.directory.mkdir(parents=True, exist_ok=True)
    path = run.directory / RUN_FILE
    document = RunDocument(FORMAT_VERSION, run.info, run.problems, run.stages, run.results, run.reports)
    return write_new(path, written(document), durable=True)


def load_run(directory: str | Path) -> Run:
    """Read a run directory (or its ``run.json``).

    Raises:
        RunError: if there is no run, it is damaged, or a newer gemmprof wrote it.
    """
    path = Path(directory)
    file = path if path.name == RUN_FILE else path / RUN_FILE
    try:
        found = read_document(file)
    except FileNotFoundError:
        fix = "give a directory that `gemmprof collect` wrote, or a .ncu-rep file"
        raise RunError(f"{path} is no run directory: it has no {RUN_FILE}", fix) from None
    return Run(file.parent, found.info, found.stages, found.problems, found.results, found.reports)


def recorded_run_directory() -> Path:
    """Where the recorded run lies inside the package."""
    return Path(__file__).resolve().parent.parent / "recorded"


def load_recorded_run() -> Run:
    """The run of every ladder on a real GPU that ships with the package."""
    return load_run(recorded_run_directory())


def runs_directory() -> Path:
    """Where runs are written and looked for: ``$GEMMPROF_RUNS``, else ``./gemmprof-runs``."""
    return Path(os.environ.get("GEMMPROF_RUNS") or DEFAULT_RUNS_DIRECTORY)


def timestamped() -> str:
    """The present moment as part of a folder's name: ``2026-11-21_130500``."""
    return datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")


def nvtx_range(stage_name: str, problem: Problem) -> str:
    """Name of the NVTX range around a stage's profiled launches: ``gemmprof/<stage>/<problem's key>``.

    It ties a launch in a report to the stage and problem of the run, whatever else the report holds.
    """
    return f"{NVTX_PREFIX}{stage_name}/{problem.key}"


def newest_run_directory() -> Path | None:
    """The run directory written last under ``runs_directory()``, or None if there is none."""
    runs = [file for folder in runs_directory().glob("*/") if (file := folder / RUN_FILE).is_file()]
    return max(runs, key=lambda file: file.stat().st_mtime).parent if runs else None


# --- Integrity --------------------------------------------------------------------------------------------------------
# Whether a run's reports are still those that were collected (`gemmprof.analysis.reading.frame.check`).
#
# ``run.json`` keeps how many launches each has, and the SHA-256 of its uncompressed bytes: it may be compressed later.

_CHUNK = 1 << 20


def report_record(report: Path) -> ReportRecord:
    """What to keep of a report that ncu just wrote; OSError if it cannot be read, WireError if it is not whole."""
    with open_file(report) as file:
        size = file.seek(0, os.SEEK_END)
        return record_of(lambda start, end: system.read_at(file, start, end - start), size)


def record_of(read: ncu_frame.Read, size: int) -> ReportRecord:
    """The record of a report of ``size`` uncompressed bytes; WireError if its blocks do not hold."""
    digest = hashlib.sha256()
    for start in range(0, size, _CHUNK):
        digest.update(read(start, min(size, start + _CHUNK)))
    _, position = ncu_frame.read_head(read, size)
    counts = (count for block in ncu_frame.blocks(read, position, size) for count in block.counts)
    launches = sum(number for kind, number in counts if kind in ncu_frame.WORKLOADS)
    return ReportRecord(digest.hexdigest(), launches)
