"""Reads one side of a comparison: runs, reports, several of them as repetitions of one another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gemmprof import metrics as m
from gemmprof.analysis.comparison import records as recorded
from gemmprof.analysis.comparison.noise import limit_of
from gemmprof.analysis.comparison.records import measures
from gemmprof.analysis.inputs.families import census, told_apart
from gemmprof.analysis.inputs.selection import EVERYTHING, Selection, expand, is_run
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.reading.context import clock_control, collected_by
from gemmprof.analysis.reading.report import ReportReader, code_digests, one_launch
from gemmprof.analysis.reading.unpack import unpacked_once
from gemmprof.analysis.session import load_session, selected_reports, titled
from gemmprof.base.errors import GemmprofError, ReportError, RunError
from gemmprof.base.spread import each, grouped
from gemmprof.model import Instruction, KernelProfile, StageResult
from gemmprof.runs.directory import Run

# Severities of Nsight Compute's advice that count as findings.
RULES_THAT_FIND = frozenset({"optimization", "warning", "error"})


# What `gemmprof profile` calls the report of its first run, in which it only counts.
COUNT_REPORT = "count.ncu-rep"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    title: str  # what it is, for headings (untrusted text)
    kernels: tuple[recorded.KernelRecord, ...]  # in the order of their first launch
    failures: tuple[GemmprofError, ...] = ()  # why files could not be read
    stages: bool = False  # True where the kernels are stages of a run
    processes: int = 1  # how many reports or runs it is made of


@unpacked_once()
def load_side(
    paths: Iterable[str | os.PathLike[str]],
    selection: Selection = EVERYTHING,
    *,
    each_launch: bool = False,
    launch: int | None = None,
) -> Side:
    """Read reports and runs as one side.

    Args:
        paths: reports, runs, folders of them or patterns; several are repetitions of one another.
        each_launch: make every launch a kernel of its own, paired by the order of launches of one family.
        launch: of reports only the launch at this position; in a run a number is a stage, and all are read.

    Raises:
        UsageError: nothing was named, or nothing matches the selection.
        GemmprofError: the first failure, if nothing could be read.
    """
    found = expand(paths)
    # Beside the reports of `gemmprof profile` lies one that only counted all launches.
    named = [path for path in found if not path.name.startswith(COUNT_REPORT)] or found
    title = titled([path.name for path in named])
    if all(is_run(path) for path in named):
        return _of_runs(named, title, selection)
    if launch is not None:
        selection = Selection(launches=(range(launch, launch + 1),), within=selection)
    reports, failures = selected_reports(named, selection)
    failed = list(failures)
    parts: list[list[recorded.KernelRecord]] = []
    for kernels_of in each(_of_report, [(report, only, each_launch) for report, only in reports.items()]):
        try:
            parts.append(kernels_of())
        except ReportError as error:
            failed.append(error)
    if failed and not parts:
        raise failed[0]
    return Side(title, _merged(parts), tuple(failed), processes=len(parts))


def _of_report(path: Path, only: set[int] | None, each_launch: bool) -> list[recorded.KernelRecord]:
    groups: dict[tuple[str, ...], list[KernelProfile]] = {}
    seen: dict[tuple[str, ...], int] = {}
    with ReportReader(path) as reader:
        everything = list(reader.profiles(instances=False, rules=False))
        known = census(everything)
        for profile in everything:
            if only is not None and profile.index not in only:
                continue
            key: tuple[str, ...] = profile.family
            if each_launch:
                # Counted from 0, as launches are everywhere.
                seen[key] = seen.get(key, -1) + 1
                key = (*key, f"repetition {seen[key]}")
            groups.setdefault(key, []).append(profile)
        middles = {key: middle_launch(launches) for key, launches in groups.items()}
        positions = {profile.index for profile in middles.values()}
        try:
            digests = reader.code_digests(middles.values())
        except ReportError:
            digests = {}  # code that cannot be read costs the reason of a change, not the comparison
        whole = {profile.index: profile for profile in reader.profiles(only=positions)}
    differs = told_apart(middle.family for middle in middles.values())
    found = []
    for key, launches in groups.items():
        middle = middles[key]
        analysis = analyse(whole[middle.index])
        digest = digests.get(middle.index, "")
        identity = known.of[middle.report, middle.index]
        apart = [*differs[middle.family]]
        if each_launch and seen[key[:-1]] > 0:
            apart.append(f"({key[-1]})")
        record = of_launches(identity.label, key, launches, analysis, digest)
        found.append(replace(record, nvtx=middle.nvtx, family=identity.number, apart=" ".join(apart)))
    return found


def of_launches(
    label: str, key: tuple[str, ...], launches: Sequence[KernelProfile], middle: KernelAnalysis, digest: str
) -> recorded.KernelRecord:
    """The launches of one kernel in one process, with the quantities of one of them, whose code has this digest."""
    profile, session = middle.profile, middle.profile.session
    return recorded.KernelRecord(
        name=profile.name,
        label=label,
        grid=profile.launch.grid,
        block=profile.launch.block,
        key=key,
        launches=len(launches),
        times=(recorded.times_of(launches),),
        origin=recorded.Origin(
            profile.device.name, clock_control(session), collected_by(session), dict(session.versions)
        ),
        limit=limit_of(profile.number(m.SM_THROUGHPUT), profile.number(m.MEMORY_THROUGHPUT)),
        code=recorded.Code(digest) if digest else None,
        metrics=recorded.ranges_of(launches),
        measures=measures(middle),
        rules=tuple(dict.fromkeys(rule.rule for rule in profile.rules)),
        findings=tuple(
            dict.fromkeys(rule.rule for rule in profile.rules if rule.severity in RULES_THAT_FIND)
        ),
        place=(profile.report, profile.index),
    )


def middle_launch(launches: Sequence[KernelProfile]) -> KernelProfile:
    """The launch with the median time; the first where there is no time."""
    timed = [launch for launch in launches if launch.number(m.DURATION) is not None]
    ordered = sorted(timed, key=lambda launch: launch.number(m.DURATION) or 0.0)
    return ordered[(len(ordered) - 1) // 2] if ordered else launches[0]


def _merged(parts: Sequence[Sequence[recorded.KernelRecord]]) -> tuple[recorded.KernelRecord, ...]:
    """The kernels of several processes, those of one key as repetitions."""
    found = grouped((record.key, record) for part in parts for record in part)
    return tuple(_one_of(records) for records in found.values())


def _one_of(records: Sequence[recorded.KernelRecord]) -> recorded.KernelRecord:
    """One kernel of several processes: its times and metrics are of all, code and quantities of the first."""
    if len(records) == 1:
        return records[0]
    ranges = grouped(item for record in records for item in record.metrics.items())
    return replace(
        records[0],
        launches=sum(record.launches for record in records),
        times=tuple(times for record in records for times in record.times),
        metrics={name: recorded.Range.over(found) for name, found in ranges.items()},
    )


def _of_runs(paths: Sequence[Path], title: str, selection: Selection) -> Side:
    parts: list[list[recorded.KernelRecord]] = []
    failures: list[GemmprofError] = []
    for path in paths:
        session = load_session([path], selection=selection)
        failures += session.failures
        run = session.run
        if run is None:
            raise RunError(f"{path} holds no run")
        launches = [(result, session.kernel_for(result)) for result in run.results if result.failure is None]
        digests = code_digests(analysis.profile for _, analysis in launches if analysis is not None)
        parts.append([_of_stage(run, result, analysis, digests) for result, analysis in launches])
    return Side(title, _merged(parts), tuple(failures), stages=True, processes=len(parts))


def _of_stage(
    run: Run,
    result: StageResult,
    analysis: KernelAnalysis | None,
    digests: Mapping[tuple[str, int], str],
) -> recorded.KernelRecord:
    stage = run.record_of(result).stage
    label = f"{stage.number} {stage.title}, {result.problem.label}"
    key = ("stage", str(stage.number), result.problem.key)
    versions = dict(run.info.versions)
    if analysis is None:
        origin = recorded.Origin(run.info.device, versions=versions)
        times = (recorded.Times(),) if result.timing is not None else ()
        record = recorded.KernelRecord(label, label, (), (), key, 0, times, origin)
    else:
        profile = analysis.profile
        digest = digests.get((profile.report, profile.index), "")
        record = of_launches(label, key, [profile], analysis, digest)
        versions |= profile.session.versions
        record = replace(record, origin=replace(record.origin, versions=versions))
    if (timed := result.timing) is None:
        return record
    percentiles = (timed.median, timed.p10, timed.p90)
    return replace(
        record,
        times=(replace(record.times[0], timed=percentiles, repetitions=timed.repetitions),),
        measures=replace(record.measures, seconds=timed.median),
    )


def problem_of(record: recorded.KernelRecord) -> str:
    """The problem of a stage of a run, '' for other kernels."""
    return record.key[2] if record.key[0] == "stage" else ""


def disassembled(record: recorded.KernelRecord) -> recorded.KernelRecord:
    """The record with its opcodes, where its report can be disassembled; else as it is."""
    if record.code is None or record.code.instructions:
        return record
    sass = [instruction.sass for instruction in _instructions(record.place)]
    return replace(record, code=recorded.code_of(record.code.digest, sass)) if sass else record


def source_place(record: recorded.KernelRecord) -> tuple[str, int] | None:
    """File and first line of a kernel: of the file that most of its instructions are from (``-lineinfo``)."""
    code = _instructions(record.place)
    lines = grouped((one.file, one.line) for one in code if one.file and one.line)
    if not lines:
        return None
    file = max(lines, key=lambda name: len(lines[name]))
    return file, min(lines[file])


@lru_cache(maxsize=64)
def _instructions(place: tuple[str, int] | None) -> tuple[Instruction, ...]:
    """The code of a launch; () where there is no report or it cannot be read."""
    if place is None:
        return ()
    profile = one_launch(*place, source=True, instances=False, rules=False)
    return () if profile is None else profile.source.instructions
