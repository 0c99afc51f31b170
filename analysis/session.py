"""What a user asked to look at: runs and reports, read and analysed, and which files could not be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmprof import metrics as m
from gemmprof.analysis.inputs.patterns import expand, is_run
from gemmprof.analysis.inputs.selection import EVERYTHING, Candidate, Selection, nothing_selected, selected
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.ladder.stage_launch import stage_launch
from gemmprof.analysis.reading.collector import few_collections
from gemmprof.analysis.reading.frame import open_frame
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.analysis.reading.unpack import unpacked_once
from gemmprof.base.errors import GemmprofError, ReportError, UsageError
from gemmprof.model import KernelProfile, StageResult
from gemmprof.runs.directory import RUN_FILE, Run, load_run
from gemmprof.runs.integrity import check, record_of

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
        selected: the options that chose these launches among more, '' where they are all.
    """

    title: str
    kernels: tuple[KernelAnalysis, ...]
    run: Run | None = None
    failures: tuple[GemmprofError, ...] = ()
    _by_launch: dict[tuple[str, int], KernelAnalysis] = field(default_factory=dict, repr=False, compare=False)
    selected: str = ""

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


def load_session(
    paths: Iterable[str | os.PathLike[str]], *, source: bool = True, selection: Selection = EVERYTHING
) -> Session:
    """Read and analyse run directories (or their ``run.json``) and report files.

    Args:
        paths: what to load; a run stands for the reports that its ``run.json`` names, a folder for the reports and runs
            in it, a name with ``*`` for the files that match.
        source: also disassemble the kernels, for the source view.
        selection: which launches; the others are neither analysed nor in the session, nor are their stages' results.

    Raises:
        UsageError: if there is nothing to load, or nothing matches the selection.
        GemmprofError: the first failure, if nothing could be read. Else failures are in the session.
    """
    inputs = _listed(paths)
    with few_collections(), unpacked_once():
        found = _find(inputs)
        return _load(inputs, found, _select(found.reports, selection), selection, source=source)


def reports_of(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Path], tuple[GemmprofError, ...]]:
    """The report files that these inputs stand for, and why others of the inputs could not be read."""
    found, failures = selected_reports(paths)
    return list(found), failures


def selected_reports(
    paths: Iterable[str | os.PathLike[str]], selection: Selection = EVERYTHING
) -> tuple[dict[Path, set[int] | None], tuple[GemmprofError, ...]]:
    """The report files that these inputs stand for, each with the positions of the launches that are meant.

    None in place of positions: all launches. A report that cannot be read is there too; reading it says why.

    Raises:
        UsageError: if nothing matches the selection.
    """
    with unpacked_once():
        found = _find(_listed(paths))
        failures = list(found.failures)
        if not found.reports and not failures:
            failures.append(ReportError("the run holds no report", remedies=["collect it with profiling"]))
        chosen = _select(found.reports, selection)
    return {Path(path): only for path, only in chosen.items() if only is None or only}, tuple(failures)


@dataclass(frozen=True, slots=True)
class _Report:
    """A report to read, with the name under which a run knows it."""

    path: Path
    name: str
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    reports: list[_Report]
    runs: list[Run]
    failures: list[GemmprofError]


def _listed(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(paths, (str, os.PathLike)):
        raise UsageError(
            f"a list of paths is expected, not the one path {os.fspath(paths)!r}",
            remedies=[f"gemmprof.open({os.fspath(paths)!r})", f"load_session([{os.fspath(paths)!r}])"],
        )
    inputs = [Path(path) for path in paths]
    if not inputs:
        raise UsageError("nothing to read was named", remedies=["name a run directory or a .ncu-rep file"])
    return inputs


def _find(inputs: Sequence[Path]) -> _Found:
    """Every report behind the inputs, each once and in their order."""
    found = _Found([], [], [])
    known: set[Path] = set()
    for item in inputs:
        try:
            paths = expand([item])
        except GemmprofError as error:
            found.failures.append(error)
            continue
        for path in paths:
            place = _place(path)
            place = place.parent if place.name == RUN_FILE else place
            if place in known:
                continue
            known.add(place)
            if not is_run(path):
                found.reports.append(_Report(path, path.name))
                continue
            try:
                run = load_run(path)
            except GemmprofError as error:
                found.failures.append(error)
                continue
            found.runs.append(run)
            for name in dict.fromkeys(result.report for result in run.results if result.report is not None):
                try:
                    report = run.report_path(name)
                    _check(run, name, report)
                    found.reports.append(_Report(report, name, run))
                except GemmprofError as error:
                    found.failures.append(error)
    of_runs = {_place(report.path) for report in found.reports if report.run is not None}
    found.reports[:] = [r for r in found.reports if r.run is not None or _place(r.path) not in of_runs]
    return found


def _place(path: Path) -> Path:
    """Where a path leads to, whatever it is written like; the path itself where that cannot be told."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _check(run: Run, name: str, report: Path) -> None:
    """Look whether the report is the one that the run collected.

    Raises:
        ReportError: if it is another one, and not trusted.
    """
    kept = run.reports.get(name)
    if kept is None:
        return
    with open_frame(report) as frame:
        check(report, kept, record_of(frame.read, frame.size))


def _select(reports: Sequence[_Report], selection: Selection) -> dict[str, set[int] | None]:
    """Positions of the launches to read, by path of the report; None: all that it holds, or as many as are whole.

    Raises:
        UsageError: if reports could be read and nothing in them matches.
    """
    chosen: dict[str, set[int] | None] = {str(report.path): None for report in reports}
    if not selection:
        return chosen
    candidates: list[Candidate] = []
    names: dict[str, int] = {}
    unread = set()
    for report in reports:
        path = str(report.path)
        try:
            with ReportReader(path) as reader:
                profiles = list(reader.profiles(instances=False, rules=False))
        except ReportError:
            unread.add(path)  # reading it in full will say what is wrong
            continue
        stages = {} if report.run is None else _stage_names(report.run, report.name, profiles)
        for profile in profiles:
            names[profile.name] = names.get(profile.name, 0) + 1
            candidates.append(Candidate.of(profile, path, stages.get(profile.index, "")))
    kept = selected(candidates, selection)
    if not kept and not unread:
        raise nothing_selected(selection, names)
    for path in chosen.keys() - unread:
        chosen[path] = {candidate.index for candidate in kept if candidate.report == path}
    return chosen


def _stage_names(run: Run, report: str, profiles: Sequence[KernelProfile]) -> dict[int, str]:
    """Number, name and title of the stage that each launch belongs to."""
    found = {}
    for result in run.results:
        launch = stage_launch(run, result, profiles) if result.report == report else None
        if launch is not None:
            stage = run.record_of(result).stage
            found[launch.index] = f"{stage.number} {stage.name} {stage.title}"
    return found


def _load(
    inputs: Sequence[Path],
    found: _Found,
    chosen: Mapping[str, set[int] | None],
    selection: Selection,
    *,
    source: bool,
) -> Session:
    kernels: list[KernelAnalysis] = []
    by_launch: dict[tuple[str, int], KernelAnalysis] = {}
    failures = list(found.failures)
    for report in found.reports:
        only = chosen[str(report.path)]
        if only is not None and not only:
            continue
        try:
            analysed = list(_analysed(report, source=source, only=only))  # all of a report or nothing
        except ReportError as error:
            failures.append(error)
            continue
        kernels += analysed
        if report.run is not None:
            by_launch.update({(report.name, analysis.profile.index): analysis for analysis in analysed})
    if failures and not kernels and not found.runs:
        raise failures[0]
    only_run = found.runs[0] if len(found.runs) == 1 else None
    session = Session(
        _title(inputs),
        tuple(kernels),
        only_run,
        tuple(failures),
        by_launch if only_run else {},
        str(selection),
    )
    if only_run is None or not selection:
        return session
    kept = tuple(result for result in only_run.results if session.kernel_for(result) is not None)
    return replace(session, run=replace(only_run, results=kept))


def _analysed(
    report: _Report, *, source: bool, only: Collection[int] | None = None
) -> Iterator[KernelAnalysis]:
    """The launches of one report, analysed one at a time; with many, only what pages show is kept."""
    with ReportReader(report.path) as reader:
        many = (len(reader) if only is None else len(only)) > MANY_LAUNCHES
        with_source = (lambda profile: source and _is_measured_by_address(profile)) if many else source
        for profile in reader.profiles(source=with_source, units=True, only=only):
            analysis = analyse(profile)
            yield analysis.slim() if many else analysis


def _is_measured_by_address(profile: KernelProfile) -> bool:
    return m.INSTRUCTIONS_BY_ADDRESS in profile.instances


def _title(inputs: Sequence[Path]) -> str:
    names = [path.resolve().name if path.name in ("", ".", "..") else path.name for path in inputs]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
