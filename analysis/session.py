"""What a user asked to look at: runs and reports, read and analysed, and which files could not be read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmprof import metrics as m
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.ladder.stage_launch import stage_launch
from gemmprof.analysis.reading.collector import few_collections
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.errors import GemmprofError, ReportError, UsageError
from gemmprof.model import KernelProfile, StageResult
from gemmprof.run import RUN_FILE, Run, load_run

MANY_LAUNCHES = 64
"""A report with more launches keeps no instance values once they are analysed, and source only where measured."""


@dataclass(frozen=True, slots=True)
class Session:
    """Runs and reports as loaded.

    Attributes:
        title: what was loaded, for headings (file names are untrusted text).
        kernels: every profiled launch with its analyses, in the order of the inputs and of profiling.
        run: the run, where exactly one was loaded.
        failures: why files beside those could not be read.
    """

    title: str
    kernels: tuple[KernelAnalysis, ...]
    run: Run | None = None
    failures: tuple[GemmprofError, ...] = ()
    _by_launch: dict[tuple[str, int], KernelAnalysis] = field(default_factory=dict, repr=False, compare=False)

    def kernel_for(self, result: StageResult) -> KernelAnalysis | None:
        """The analysis of a stage's launch, or None if the stage was not profiled or its report could not be read."""
        if result.report is None or self.run is None:
            return None
        launches = {
            launch: analysis
            for (report, launch), analysis in self._by_launch.items()
            if report == result.report
        }
        found = stage_launch(self.run, result, [analysis.profile for analysis in launches.values()])
        return None if found is None else launches[found.index]


def load_session(paths: Iterable[str | os.PathLike[str]], *, source: bool = True) -> Session:
    """Read and analyse run directories (or their ``run.json``) and report files.

    Args:
        paths: what to load; a run stands for the reports that its ``run.json`` names.
        source: also disassemble the kernels, for the source view.

    Raises:
        UsageError: if there is nothing to load.
        GemmprofError: the first failure, if nothing could be read. Else failures are in the session.
    """
    inputs = [Path(path) for path in paths]
    if not inputs:
        raise UsageError("nothing to read was named", remedies=["name a run directory or a .ncu-rep file"])
    with few_collections():
        return _load(inputs, source=source)


def _load(inputs: Sequence[Path], *, source: bool) -> Session:
    runs: list[Run] = []
    kernels: list[KernelAnalysis] = []
    by_launch: dict[tuple[str, int], KernelAnalysis] = {}
    failures: list[GemmprofError] = []
    for path in inputs:
        try:
            if not _is_run(path):
                kernels += list(_analysed(path, source=source))  # all of a report or nothing
                continue
            run = load_run(path)
        except GemmprofError as error:
            failures.append(error)
            continue
        runs.append(run)
        for name in _report_names(run):
            try:
                found = list(_analysed(run.report_path(name), source=source))
            except ReportError as error:
                failures.append(error)
                continue
            kernels += found
            by_launch.update({(name, analysis.profile.index): analysis for analysis in found})
    if failures and not kernels and not runs:
        raise failures[0]
    only_run = runs[0] if len(runs) == 1 else None
    return Session(_title(inputs), tuple(kernels), only_run, tuple(failures), by_launch if only_run else {})


def reports_of(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Path], tuple[GemmprofError, ...]]:
    """The report files that these inputs stand for, and why others of the inputs could not be read."""
    reports: list[Path] = []
    failures: list[GemmprofError] = []
    for path in map(Path, paths):
        try:
            if _is_run(path):
                run = load_run(path)
            else:
                reports.append(path)
                continue
        except GemmprofError as error:
            failures.append(error)
            continue
        for name in _report_names(run):
            try:
                reports.append(run.report_path(name))
            except GemmprofError as error:
                failures.append(error)
    if not reports and not failures:
        failures.append(ReportError("the run holds no report", remedies=["collect it with profiling"]))
    return reports, tuple(failures)


def _report_names(run: Run) -> list[str]:
    return list(dict.fromkeys(result.report for result in run.results if result.report is not None))


def _is_run(path: Path) -> bool:
    return path.name == RUN_FILE or path.is_dir()


def _analysed(path: Path, *, source: bool) -> Iterator[KernelAnalysis]:
    """The launches of one report, analysed one at a time; with many, only what pages show is kept."""
    with ReportReader(path) as reader:
        many = len(reader) > MANY_LAUNCHES
        with_source = (lambda profile: source and _is_measured_by_address(profile)) if many else source
        for profile in reader.profiles(source=with_source, units=True):
            analysis = analyse(profile)
            yield replace(analysis, profile=replace(profile, instances={})) if many else analysis


def _is_measured_by_address(profile: KernelProfile) -> bool:
    return m.INSTRUCTIONS_BY_ADDRESS in profile.instances


def _title(inputs: Sequence[Path]) -> str:
    names = [path.resolve().name if path.name in ("", ".", "..") else path.name for path in inputs]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
