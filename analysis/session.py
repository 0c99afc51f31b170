"""What a user asked to look at: runs and reports, read and analysed, and which files could not be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof import metrics as m
from gemmprof.analysis.inputs.families import Census, Family, Place, by_gain, census, families
from gemmprof.analysis.inputs.selection import (
    EVERYTHING,
    Candidate,
    Selection,
    expand,
    is_run,
    nothing_selected,
    selected,
    stage_launch,
)
from gemmprof.analysis.reading.frame import check, open_frame, unpacked_once
from gemmprof.analysis.reading.report import ReportReader, few_collections
from gemmprof.base.amounts import brief, counted, nanoseconds
from gemmprof.base.buckets import size_of
from gemmprof.base.errors import GemmprofError, ReportError, UnreachableError, UsageError
from gemmprof.base.spread import batched, each, grouped, is_elsewhere
from gemmprof.model import Explanation, KernelProfile, StageResult
from gemmprof.runs.directory import RUN_FILE, Run, load_run, record_of

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import KernelAnalysis
    from gemmprof.analysis.whole.overall import Program
    from gemmprof.analysis.whole.traces import Trace

MANY_LAUNCHES = 64  # a report with more launches keeps no instance values once they are analysed
# Of a report of more bytes than this, and of launches to be explained, others are given so many launches at a time.
LARGE_REPORT, LOT_LAUNCHES = 64 << 20, 32
# A program's summary looks into so many families at most, until this share of the time: the rest can save too little.
MOST_EXPLAINED, NEARLY_ALL = 256, 0.98


@dataclass(frozen=True)
class Session:
    """Runs and reports as loaded."""

    title: str  # what was loaded, for headings (file names are untrusted text)
    # every selected launch with its analyses, in the order of the inputs and of profiling. Of launches that were only
    # listed (`load_session`) these know no instance values; `whole` reads one in full.
    kernels: tuple[KernelAnalysis, ...]
    run: Run | None = None  # the run, where exactly one was loaded
    unread: tuple[GemmprofError, ...] = ()  # why files beside those could not be read
    _by_launch: dict[tuple[str, int], KernelAnalysis] = field(default_factory=dict, repr=False, compare=False)
    selected: str = ""  # the options that chose these launches among more, '' where they are all
    # the families of every launch that was opened, selected or not; None: the launches are all
    known: Census | None = field(default=None, repr=False, compare=False)
    listed: bool = False  # launches were only listed (`load_session`)
    # what another profiler saw of the same launches (`analysis.whole.traces`), None without
    trace: Trace | None = field(default=None, repr=False, compare=False)
    _whole: dict[int, KernelAnalysis] = field(default_factory=dict, init=False, repr=False, compare=False)
    _explanations: dict[int, Explanation] = field(default_factory=dict, init=False, repr=False, compare=False)
    _damaged: dict[str, ReportError] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return brief(self, self.title, counted(len(self.kernels), "launch"))

    @property
    def failures(self) -> tuple[GemmprofError, ...]:
        """Why files could not be read: at first, or when something in them was asked for."""
        return (*self.unread, *self._damaged.values())

    def kernel_for(self, result: StageResult) -> KernelAnalysis | None:
        """The analysis of a stage's launch, or None if the stage was not profiled or its report could not be read."""
        if result.report is None or self.run is None:
            return None
        launches = {at: one for (report, at), one in self._by_launch.items() if report == result.report}
        found = stage_launch(self.run, result, [one.profile for one in launches.values()])
        return None if found is None else launches[found.index]

    @cached_property
    def census(self) -> Census:
        """The id and the name of each launch's family."""
        return self.known or census(kernel.profile for kernel in self.kernels)

    @property
    def processes(self) -> tuple[int, ...]:
        """Ids of the processes that launched, of reports that hold launches of several."""
        launches = (kernel.profile for kernel in self.kernels)
        known = ((one.report, one.session.process) for one in launches)
        found = grouped((report, process) for report, process in known if process is not None)
        several = (processes for processes in found.values() if len(set(processes)) > 1)
        return tuple(dict.fromkeys(chain.from_iterable(several)))

    @property
    def counts(self) -> str:
        """How many launches, kernels (full names) and families: the same words at every door."""
        launches = counted(len(self.kernels), "launch")
        kinds = {kernel.profile.workload for kernel in self.kernels}
        kind = kinds.pop() if len(kinds) == 1 else "kernel"
        kernels = counted(len({kernel.profile.name for kernel in self.kernels}), kind)
        found = f"{launches} of {kernels} in {counted(len(self.by_time), 'family')}"
        if self.processes:
            found += f" by {len(self.processes)} processes"
        return found + (f" chosen by {self.selected}" if self.selected else "")

    @property
    def sentence(self) -> str:
        """The program in one sentence: its time on the GPU, launches, kernels, families, device."""
        total = sum(family.total_ns or 0.0 for family in self.by_time)
        devices = list(dict.fromkeys(kernel.profile.device.name for kernel in self.kernels))
        time = f"{nanoseconds(total)} in " if total else ""
        where = f" on {', '.join(devices[:2])}" if devices else ""
        return f"{self.title}: {time}{self.counts}{where}."

    @cached_property
    def by_time(self) -> tuple[Family, ...]:
        """The families of the selected launches, most time first; nothing is explained for it."""
        return families([kernel.profile for kernel in self.kernels], self.census)

    @cached_property
    def ids(self) -> dict[int, str]:
        """The id of each launch's family, `#3`, by the launch's position."""
        return {member: family.id for family in self.by_time for member in family.members}

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The same, each with what saves most, the most to gain first; without those of reports that are damaged."""
        return by_gain(self._explained(self.by_time))

    @property
    def unprofiled(self) -> str:
        """How many launches ncu could not profile; '' for none."""
        failed = sum(not kernel.profile.profiled for kernel in self.kernels)
        return f"ncu could not profile {counted(failed, 'launch')}" if failed else ""

    def leaders(self, most: int) -> tuple[Family, ...]:
        """The first families by gain, so many at most; no more launches are explained than that takes.

        No finding saves more than all of a family's time, so one with less time than the last leader's gain is none.
        """
        found: tuple[Family, ...] = ()
        rest = self.by_time
        while rest and (len(found) < most or (rest[0].total_ns or 0.0) > found[most - 1].leading_ns):
            lot, rest = rest[:most], rest[most:]
            found = by_gain([*found, *self._explained(lot)])
        return found[:most]

    @cached_property
    def program(self) -> Program:
        """Where the time of all launches goes and what to change first; the longest families are explained for it."""
        from gemmprof.analysis.whole.overall import Program

        profiles = [kernel.profile for kernel in self.kernels]
        return Program(profiles, lambda: self._explained(self._longest()), self.ids.__getitem__, self.trace)

    def _longest(self) -> list[Family]:
        """The families with the most time, until nearly all of it is theirs."""
        total = sum(family.total_ns or 0.0 for family in self.by_time)
        chosen: list[Family] = []
        held = 0.0
        for family in self.by_time[:MOST_EXPLAINED]:
            if held > NEARLY_ALL * total:
                break
            chosen.append(family)
            held += family.total_ns or 0.0
        return chosen

    def _explained(self, found: Sequence[Family]) -> list[Family]:
        known = self.explain(family.representative for family in found)
        explained = (family for family in found if family.representative in known)
        return [family.explained(known[family.representative]) for family in explained]

    def explanation(self, position: int) -> Explanation:
        """What to change first in a launch, by its position in ``kernels``; ReportError if its report is damaged."""
        known = self.explain([position])
        if position not in known:
            raise self._damaged[self.kernels[position].profile.report]
        return known[position]

    def explain(self, positions: Iterable[int]) -> Mapping[int, Explanation]:
        """What to change first in these launches, each report that they are of opened once; all that is known so far.

        ReportError if none of the reports can be read in full. Of several, those that cannot are in `failures`.
        """
        waiting = [position for position in positions if position not in self._explanations]
        if self.listed and is_elsewhere():
            self._explain_elsewhere(waiting)
            waiting = []
        for position, analysis in self.read(waiting):
            self._explanations[position] = analysis.explanation
        if self._damaged and not self._explanations:
            raise next(iter(self._damaged.values()))
        return self._explanations

    def _by_report(self, positions: Iterable[int]) -> dict[str, dict[int, int]]:
        """These positions by the launches' own in each report."""
        launches = ((at, self.kernels[at].profile) for at in positions)
        of_report = grouped((profile.report, (profile.index, at)) for at, profile in launches)
        return {report: dict(places) for report, places in of_report.items()}

    def _explain_elsewhere(self, positions: Iterable[int]) -> None:
        wanted = self._by_report(positions)
        lots = [(report, lot) for report, places in wanted.items() for lot in batched(places, LOT_LAUNCHES)]
        for (report, _), explained in zip(lots, each(_explanations, lots), strict=True):
            try:
                found = explained()
            except ReportError as error:
                self._damaged[report] = error
                continue
            self._explanations.update({wanted[report][index]: made for index, made in found.items()})

    def whole(self, position: int, *, code: bool = False) -> KernelAnalysis:
        """A launch read in full; ``code``: with its instructions in any case; ReportError if its report is damaged."""
        for _, analysis in self.read([position], code=code):
            return analysis
        raise self._damaged[self.kernels[position].profile.report]

    def read(self, positions: Iterable[int], *, code: bool = False) -> Iterator[tuple[int, KernelAnalysis]]:
        """Launches read in full, with their positions; without those of reports that turn out to be damaged.

        ``code``: also the instructions of those of which nothing but the time was measured.
        """
        from gemmprof.analysis.kernel_analysis import analyse  # late: tables alone need no analysis

        waiting = []
        for position in positions:
            made = self._whole.get(position) if self.listed else self.kernels[position]
            if made is not None and (not code or has_counters(made.profile)):
                yield position, made
            elif self.kernels[position].profile.report not in self._damaged:
                waiting.append(position)
        for report, places in self._by_report(waiting).items():
            try:
                with few_collections(), ReportReader(report) as reader:
                    for profile in reader.profiles(source=code or has_counters, units=True, only=set(places)):
                        position, analysis = places[profile.index], analyse(profile)
                        if len(self._whole) < MANY_LAUNCHES:
                            self._whole[position] = analysis
                        yield position, analysis
            except ReportError as error:
                self._damaged[report] = error


def _explanations(report: str, launches: Sequence[int]) -> dict[int, Explanation]:
    """What to change first in some launches of a report."""
    from gemmprof.analysis.kernel_analysis import analyse

    with few_collections(), ReportReader(report) as reader:
        profiles = reader.profiles(source=has_counters, units=True, only=set(launches))
        return {profile.index: analyse(profile).explanation for profile in profiles}


def has_counters(profile: KernelProfile) -> bool:
    """Whether a launch has counters, which its code may explain: of its time alone it explains nothing."""
    return m.counts_more_than_time(profile.metrics)


@few_collections()
@unpacked_once()
def load_session(
    # what to load; a run stands for the reports that its ``run.json`` names, a folder for the reports and
    # runs in it, a name with ``*`` for the files that match
    paths: Iterable[str | os.PathLike[str]],
    *,
    # which launches; the others are neither analysed nor in the session, nor are their stages' results
    selection: Selection = EVERYTHING,
    # read no more than lists the launches: their names, times and other single values. What is asked of one
    # in particular is read then (`Session.whole`, `Session.explain`)
    listed: bool = False,
) -> Session:
    """Read runs and reports; UsageError if none are meant, the first failure if nothing could be read."""
    inputs = _listed(paths)
    found = _find(inputs)
    chosen, known = _select(found.reports, selection)
    kernels: list[KernelAnalysis] = []
    by_launch: dict[tuple[str, int], KernelAnalysis] = {}
    failures = list(found.failures)
    unread = {one.path for one in failures if isinstance(one, UnreachableError)}
    meant = ((report, chosen[str(report.path)]) for report in found.reports)
    wanted = [(report, lots_of(report.path, only)) for report, only in meant if only is None or only]
    to_read = (
        (report.path, lot, listed, is_elsewhere(), LOT_LAUNCHES * len(lots) > MANY_LAUNCHES)
        for report, lots in wanted
        for lot in lots
    )
    made = each(_read_lot, to_read)
    for report, lots in wanted:
        jobs = [next(made) for _ in lots]
        try:  # all of a report or nothing
            analysed = [analysis for job in jobs for analysis in job()]
        except ReportError as error:
            failures.append(error)
            unread.add(str(report.path))
            continue
        kernels += analysed
        if report.run is not None:
            by_launch.update({(report.name, analysis.profile.index): analysis for analysis in analysed})
    if failures and not kernels and not found.runs:
        raise failures[0]
    only_run = found.runs[0] if len(found.runs) == 1 else None
    named = [path for path in inputs if str(path) not in unread] or inputs
    session = Session(
        titled([path.resolve().name if path.name in ("", ".", "..") else path.name for path in named]),
        tuple(kernels),
        only_run,
        tuple(failures),
        by_launch if only_run else {},
        str(selection),
        known,
        listed,
    )
    if only_run is None or not selection:
        return session
    kept = tuple(result for result in only_run.results if session.kernel_for(result) is not None)
    return replace(session, run=replace(only_run, results=kept))


@unpacked_once()
def selected_reports(
    paths: Iterable[str | os.PathLike[str]], selection: Selection = EVERYTHING
) -> tuple[dict[Path, set[int] | None], tuple[GemmprofError, ...]]:
    """The report files that these inputs stand for, each with the positions of the launches that are meant (None: all).

    A report that cannot be read is there too; reading it says why. UsageError if nothing matches the selection.
    """
    found = _find(_listed(paths))
    failures = list(found.failures)
    if not found.reports and not failures:
        failures.append(ReportError("the run holds no report", "collect it with profiling"))
    chosen, _ = _select(found.reports, selection)
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
        fixes = f"gemmprof.open({os.fspath(paths)!r})", f"load_session([{os.fspath(paths)!r}])"
        raise UsageError(f"a list of paths is expected, not the one path {os.fspath(paths)!r}", *fixes)
    inputs = [Path(path) for path in paths]
    if not inputs:
        raise UsageError("nothing to read was named", "name a run directory or a .ncu-rep file")
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
                    if (kept := run.reports.get(name)) is not None:
                        with open_frame(report) as frame:
                            check(report, kept, record_of(frame.read, frame.size))
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


def _select(
    reports: Sequence[_Report], selection: Selection
) -> tuple[dict[str, set[int] | None], Census | None]:
    """Positions of the launches to read, by path of the report (None: all), and all launches where they were looked at.

    UsageError if reports could be read and nothing in them matches.
    """
    chosen: dict[str, set[int] | None] = {str(report.path): None for report in reports}
    if not selection:
        return chosen, None
    profiles: list[KernelProfile] = []
    stages: dict[Place, str] = {}
    unread = set()
    for report in reports:
        path = str(report.path)
        try:
            launches = listing(report.path)
        except ReportError:
            unread.add(path)  # reading it in full will say what is wrong
            continue
        profiles += launches
        run = report.run
        for result in run.results if run is not None else ():
            launch = stage_launch(run, result, launches) if run and result.report == report.name else None
            if run is not None and launch is not None:
                stage = run.record_of(result).stage
                stages[path, launch.index] = f"{stage.number} {stage.name} {stage.title}"
    known = census(profiles)
    places = [(profile.report, profile.index) for profile in profiles]
    candidates = [
        Candidate.of(profile, stages.get(place, ""), known.of[place].number)
        for profile, place in zip(profiles, places, strict=True)
    ]
    kept = selected(candidates, selection)
    if not kept and not unread:
        raise nothing_selected(selection, Counter(profile.name for profile in profiles))
    for path in chosen.keys() - unread:
        chosen[path] = {candidate.index for candidate in kept if candidate.report == path}
    return chosen, known


def listing(path: Path, only: Collection[int] | None = None) -> list[KernelProfile]:
    """The launches of a report (None: all) with their single values alone."""
    with ReportReader(path) as reader:
        return list(reader.profiles(instances=False, rules=False, only=only))


def lots_of(path: Path, only: Collection[int] | None) -> list[Collection[int] | None]:
    """The launches of a report in lots; one lot, unless the report is large and others read."""
    try:
        if not is_elsewhere() or size_of(path) < LARGE_REPORT:
            return [only]
        with ReportReader(path) as reader:
            return list(batched(range(len(reader)) if only is None else sorted(only), LOT_LAUNCHES))
    except (OSError, ReportError):
        return [only]  # reading it says what is wrong


def _read_lot(
    path: Path, only: Collection[int] | None, listed: bool, explained: bool, many: bool
) -> list[KernelAnalysis]:
    """Some launches of a report, analysed and, where that is wanted, explained; of many what pages show is kept."""
    from gemmprof.analysis.kernel_analysis import analyse

    if listed:
        return [analyse(profile) for profile in listing(path, only)]
    found: list[KernelAnalysis] = []
    with ReportReader(path) as reader:
        many = many or (len(reader) if only is None else len(only)) > MANY_LAUNCHES
        for profile in reader.profiles(source=has_counters if many else True, units=True, only=only):
            analysis = analyse(profile)
            found.append(analysis.slim() if many else analysis)
    for analysis in found if explained else ():
        _ = analysis.explanation  # which the analysis keeps
    return found


def titled(names: Sequence[str]) -> str:
    """What several files are called together, by the first."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
