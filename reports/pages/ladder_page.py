"""The rows of a ladder: its stages on one problem, and on all its problems beside each other with speed over size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

from markupsafe import Markup

from gemmprof.analysis.inputs.families import Family, by_gain
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.ladder.predictions import LadderStep, Rung
from gemmprof.analysis.ladder.predictions import steps as ladder_steps
from gemmprof.analysis.sections.by_line import base_name
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.analysis.session import Session
from gemmprof.analysis.whole.overall import came
from gemmprof.analysis.whole.spans import Span, walk
from gemmprof.base.spread import grouped
from gemmprof.model import Problem, StageRecord, StageResult
from gemmprof.reports import facts, formatting
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.drawings import ladder
from gemmprof.reports.figures.svg import page_svg
from gemmprof.reports.formatting import nanoseconds, ratio, tflops
from gemmprof.reports.pages.contents import KernelPage, Plan
from gemmprof.reports.words import too_little
from gemmprof.runs.directory import Run


class Column(NamedTuple):
    """A figure of a launch in the tables of the index; where no launch has it, the column is left out."""

    title: str
    text: Callable[[Any], str]  # of a value that is known, or of None
    value: Callable[[KernelAnalysis], Any]
    style: str = "n"  # class of its cells
    keyed: bool = False  # whether a cell says its value to whoever sorts by it


def _process(one: KernelAnalysis) -> Markup | None:
    """Which process launched it, where its report holds launches of several, and on which GPU."""
    process, gpu = facts.process_of(one.profile), facts.gpu_index(one.profile)
    on = "" if gpu is None else f"<br>GPU&nbsp;{gpu}"
    return None if process is None else Markup(f"{process}{on}")


def _stall(one: KernelAnalysis) -> str | None:
    return (one.field(WarpStates, "main_stall", "reason", "title") or "").removeprefix("Stall ") or None


def _limit(one: KernelAnalysis) -> str | None:
    limit = facts.limited_by(one)
    return None if limit in ("", "unknown") else limit


# One more figure on the index is one more entry.
COLUMNS = (
    Column("Process", lambda value: value or "", _process, "small"),
    Column(
        "Duration", formatting.nanoseconds, lambda one: one.field(SpeedOfLight, "duration_ns"), keyed=True
    ),
    Column("Compute", formatting.percent, lambda one: one.field(SpeedOfLight, "sm_percent")),
    Column("Memory", formatting.percent, lambda one: one.field(SpeedOfLight, "memory_percent")),
    Column("% of peak", formatting.percent, lambda one: one.field(Roofline, "main", "percent")),
    Column("Occupancy", formatting.occupancy, facts.achieved_occupancy),
    Column("Registers", formatting.number, lambda one: one.profile.launch.registers_per_thread),
    Column("Main stall", lambda value: value or formatting.DASH, _stall, "nowrap"),
    Column("Limited by", lambda value: value or formatting.DASH, _limit, ""),
)


class LaunchRow(NamedTuple):
    """One launch in a table. Names are untrusted text."""

    analysis: KernelAnalysis
    page: KernelPage | None  # the launch's own page, else that of its family's representative
    family: Family
    place: int  # position in the session


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage on one problem: what the run measured, and what its profiled launch says (None: not profiled)."""

    record: StageRecord
    result: StageResult
    seconds: float | None
    yardstick_seconds: float | None  # time of the yardstick in turns with this stage
    of_yardstick: float | None
    step: float | None  # speed over the stage before
    share_of_best: float  # speed as a share of the fastest row's, 0 to 1, for the bar
    page: KernelPage | None  # of its launch

    @property
    def tflops(self) -> float | None:
        """TFLOP/s in `seconds`."""
        return self.result.problem.tflops(self.seconds)

    @property
    def yardstick_tflops(self) -> float | None:
        """The yardstick's in turns with this stage."""
        return self.result.problem.tflops(self.yardstick_seconds)

    @property
    def figures(self) -> dict[str, Any]:
        """Of `COLUMNS`, by title."""
        page = self.page
        return {one.title: None if page is None else one.value(page.analysis) for one in COLUMNS}

    @property
    def yardstick(self) -> bool:
        """True for the stage that the others are measured against."""
        return self.record.stage.yardstick


@dataclass(frozen=True)
class ProblemGroup:
    """The ladder on one problem."""

    problem: Problem
    rows: tuple[StageRow, ...]
    prefix: str = ""  # of the ids of its pictures
    # true where the page opens with the section closed, because another of its ladder stands above it
    folded: bool = False

    @property
    def ladder(self) -> str:
        """Name of the ladder."""
        return self.rows[0].record.stage.ladder

    @cached_property
    def roofline(self) -> figures.Drawn | None:
        """Its roofline, None where nothing was profiled."""
        picture = ladder([row.page for row in self.rows if row.page is not None])
        if picture is None:
            return None
        words = "; ".join(words for _, _, words in picture.points.values())
        title = f"Roofline of the ladder, {self.problem.label}"
        return picture.drawn(f"{self.prefix}ladder-{self.problem.key}", title, words)

    @cached_property
    def steps(self) -> tuple[LadderStep, ...]:
        """What each stage that was timed and explained was predicted to gain, beside what the next one brought."""
        rungs = []
        for row in self.rows:
            explanation = row.page and row.page.analysis.explanation
            if explanation and row.result.timing and not row.yardstick:
                rungs.append(Rung(row.record.stage, explanation, row.result.timing))
        return ladder_steps(rungs)

    @property
    def _timed_stages(self) -> list[StageRow]:
        return [row for row in self.rows if not row.yardstick and row.tflops is not None]

    @property
    def fastest(self) -> StageRow | None:
        """The fastest stage beside the yardstick, None where none was timed."""
        return max(self._timed_stages, key=lambda row: row.share_of_best, default=None)

    @property
    def gain(self) -> float | None:
        """Speed of the fastest stage over the first one, None with less than two timed ones."""
        timed, best = self._timed_stages, self.fastest
        if len(timed) < 2 or best is None or best.tflops is None or not timed[0].tflops:
            return None
        return best.tflops / timed[0].tflops

    @property
    def story(self) -> str:
        """The ladder in one sentence."""
        best, gain = self.fastest, self.gain
        if best is None or gain is None:
            return ""
        first, largest = self._timed_stages[0], max(self._timed_stages, key=lambda row: row.step or 0.0)
        sentence = (
            f"From {tflops(first.tflops)} TFLOP/s ({first.record.stage.title}) to {tflops(best.tflops)} TFLOP/s "
            f"({best.record.stage.title}), {gain:.0f} times as fast"
        )
        if best.of_yardstick is not None:
            sentence += f" and {100 * best.of_yardstick:.0f} % of cuBLAS"
        if largest.step is not None:
            sentence += f". The largest step is {largest.record.stage.title}: {largest.step:.1f} times"
        return sentence + "."

    @property
    def timed(self) -> bool:
        """True if at least one stage was timed."""
        return any(row.tflops is not None for row in self.rows)


@dataclass(frozen=True, slots=True)
class SizeTable:
    """Every problem of one ladder beside the others."""

    ladder: str  # its name
    groups: Sequence[ProblemGroup]  # the problems, the smallest first
    prefix: str  # of the figure's ids

    @property
    def types(self) -> str:
        """The types that all problems share (``bfloat16``), '' where they differ."""
        kinds = {group.problem.types_label for group in self.groups}
        return kinds.pop() if len(kinds) == 1 else ""

    def label(self, problem: Problem) -> str:
        """Types that all share stand in the heading; repeated under every point they would run into each other."""
        return problem.shape_label if self.types else problem.label

    @property
    def rows(self) -> list[tuple[StageRecord, list[StageRow | None]]]:
        """One a stage; None where it was not run on the problem."""
        cells = [{row.record.stage.number: row for row in group.rows} for group in self.groups]
        records = {number: row.record for column in cells for number, row in column.items()}
        found = sorted(records.items())
        return [(record, [column.get(number) for column in cells]) for number, record in found]

    @property
    def figure(self) -> Markup | None:
        """TFLOP/s over size, where at least two problems were timed; only cubes, if there are two of them."""
        timed = [group for group in self.groups if group.timed]
        cubes = [group for group in timed if group.problem.m == group.problem.n == group.problem.k]
        timed = cubes if len(cubes) > 1 else timed
        if len(timed) < 2:
            return None
        found = grouped(
            ((row.record.stage.number, row.record.stage.title), (self.label(group.problem), row.tflops))
            for group in timed
            for row in group.rows
            if row.tflops is not None
        )
        series = [(f"{number} {title}", points) for (number, title), points in sorted(found.items())]
        drawn = figures.performance_over_size(series, [self.label(group.problem) for group in timed])
        words = "; ".join(
            f"{label}: " + ", ".join(f"{size} {value:.1f} TFLOP/s" for size, value in points)
            for label, points in series
        )
        identifier = f"{self.prefix}over-size-{self.ladder}-figure"
        return page_svg(drawn, identifier, "Performance over size", words)


MOST = 400  # ranges of the tree on a page; what is left has less time than each of them
OPEN = 0.5  # share of the time from which on a range shows what is inside


class Piece(NamedTuple):
    """A part of the program that a reader may choose."""

    key: str  # what the rows of its launches carry in ``data-in``
    span: Span  # its sums
    inside: tuple[Piece, ...] = ()  # the parts of it, of a tree
    open: bool = False  # whether they are shown from the start


class ProgramCard:
    """What the index page shows of a program before its kernels, ``earlier``: the version before."""

    def __init__(self, session: Session, plan: Plan, earlier: Session | None) -> None:
        program = self.program = session.program
        spans = sorted((span for _, span in walk(program.tree)), key=lambda span: -span.time_ns)
        shown = {(span.path, span.name) for span in spans[:MOST]}
        self.left_out = len(spans) - len(shown)  # ranges that are too short to be in the tree
        names = count()
        keys: dict[int, list[str]] = {}

        def pieces(found: Iterable[Span], letter: str) -> tuple[Piece, ...]:
            return tuple(piece(span, letter) for span in found)

        def piece(span: Span, letter: str) -> Piece:
            key = f"{letter}{next(names)}"
            for member in span.members:
                keys.setdefault(member, []).append(key)
            inside = pieces((one for one in span.children if (one.path, one.name) in shown), letter)
            return Piece(key, span, inside, bool(inside) and span.share >= OPEN)

        self.owners = pieces(program.owners, "o")  # by whose code it is, most time first
        ranges = (child for child in program.tree.children if (child.path, child.name) in shown)
        self.ranges = pieces(ranges, "r")  # its NVTX ranges, likewise
        self.operators = pieces(program.operators[:MOST], "k")  # what the kernels do, likewise
        # Keys of the parts that a launch is of, with blanks between; and of all launches of a family, by its number.
        self.of_launch = {member: " ".join(found) for member, found in keys.items()}
        self.of_family = {
            family.number: " ".join(dict.fromkeys(key for at in family.members for key in keys.get(at, ())))
            for family in session.by_time
        }
        of_families = ((family.id, plan.by_launch.get(family.representative)) for family in session.by_time)
        self.pages = {name: page for name, page in of_families if page is not None}  # by the family's id
        # Of the advice on the version that it is compared with.
        self.came = came(earlier.program, program) if earlier is not None else None


class FamilyRow(NamedTuple):
    """One family in the table."""

    family: Family  # its launches; names are untrusted text
    page: KernelPage | None  # the page of its representative, None if it has none
    reports: tuple[str, ...]  # names of the files that its launches are from
    limited_by: str  # what holds the representative back, '' if not known
    apart: str  # what tells it from others of its name, but for the ranges


@dataclass(frozen=True)
class Overview:
    """What the index page of a session shows, each part made when the page asks for it."""

    session: Session
    plan: Plan
    prefix: str = ""  # of ids
    earlier: Session | None = None  # what the session is compared with

    @cached_property
    def _every_group(self) -> list[ProblemGroup]:
        """The ladder on each problem, the largest first."""
        run = self.session.run
        if run is None:
            return []
        pages = {page.result.key: page for page in self.plan.pages if page.result is not None}
        problems = sorted(run.problems, key=lambda item: item.flops, reverse=True)
        rows = ((problem, _rows(run, problem, pages)) for problem in problems)
        return [ProblemGroup(problem, found, self.prefix) for problem, found in rows if found]

    @cached_property
    def groups(self) -> tuple[ProblemGroup, ...]:
        """The problems that are shown at length: those that were profiled, else the largest."""
        every = self._every_group
        shown = [one for one in every if any(row.page or row.result.report for row in one.rows)] or every[:1]
        first = {group.ladder: group for group in reversed(shown)}  # of each ladder
        return tuple(replace(group, folded=group is not first[group.ladder]) for group in shown)

    @cached_property
    def sizes(self) -> tuple[SizeTable, ...]:
        """All problems of each ladder that has more than one."""
        by_ladder = grouped((group.ladder, group) for group in self._every_group)
        several = ((name, members) for name, members in by_ladder.items() if len(members) > 1)
        return tuple(SizeTable(name, members[::-1], self.prefix) for name, members in several)

    @cached_property
    def launches(self) -> tuple[LaunchRow, ...]:
        """Launches that belong to no stage of the run."""
        kernels, pages = self.session.kernels, self.plan.by_launch
        of = {member: family for family in self.session.by_time for member in family.members}
        longest = {at: one.representative for one in self.plan.families for at in one.members}
        return tuple(
            LaunchRow(kernels[at], pages.get(at) or pages.get(longest[at]), of[at], at)
            for at in sorted(longest)
        )

    @cached_property
    def families(self) -> tuple[FamilyRow, ...]:
        """The same launches grouped, in the one order of `analysis.inputs.families`."""
        session, plan = self.session, self.plan
        explained = [family.explained(session.explanation(family.representative)) for family in plan.families]
        rows = []
        for family in by_gain(explained):
            limit = session.whole(family.representative).verdict.limited_by
            reports = _report_names(session.kernels[member] for member in family.members)
            page = plan.by_launch.get(family.representative)
            apart = " · ".join(word for word in family.apart if not word.startswith(("in ", "from ")))
            rows.append(FamilyRow(family, page, reports, "" if limit == "unknown" else limit, apart))
        return tuple(rows)

    @cached_property
    def too_little(self) -> str:
        """What was not collected of any family of several, if most causes show in that alone; else ''."""
        several = self.families if len(self.families) > 1 else ()
        return too_little(self.session.explanation(row.family.representative) for row in several)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The figures that at least one launch has."""
        kernels = [row.analysis for row in self.launches]
        return tuple(one for one in COLUMNS if any(one.value(kernel) is not None for kernel in kernels))

    @cached_property
    def reports(self) -> tuple[str, ...]:
        """File names of all reports."""
        return _report_names(self.session.kernels)

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """Where and how the launches were profiled: GPU, clocks, versions, date, how much of the time has pages."""
        session, plan = self.session, self.plan
        kernels = session.kernels
        if not kernels:
            return []
        found = [("GPU", ", ".join(dict.fromkeys(kernel.profile.device.name for kernel in kernels)))]
        found += facts.collected_with(session).items()
        total = sum(family.total_ns or 0.0 for family in plan.families)
        captured = session.counts
        if total:
            paged = (family for family in plan.families if family.representative in plan.by_launch)
            shown = sum(family.total_ns or 0.0 for family in paged)
            captured += f", {nanoseconds(total)} in all"
            if shown < total:
                captured += f"; the families with a page hold {ratio(shown / total)} of it"
        found.append(("Captured", "; ".join(filter(None, (captured, session.unprofiled)))))
        if several := session.processes:
            named = dict.fromkeys(facts.whose(kernel.profile).removeprefix("process ") for kernel in kernels)
            found.append(("Processes", f"{len(several)}: {', '.join(filter(None, named))}"))
        return found

    @cached_property
    def program(self) -> ProgramCard | None:
        """Where the time of all launches goes; of reports alone, a run's ladder has its own picture."""
        session = self.session
        if session.run is not None or len(session.by_time) < 2 or not session.program.whole.time_ns:
            return None
        return ProgramCard(session, self.plan, self.earlier)


def _report_names(kernels: Iterable[KernelAnalysis]) -> tuple[str, ...]:
    """File names of the reports that these launches are from, each once (untrusted text)."""
    return tuple(dict.fromkeys(base_name(kernel.profile.report) for kernel in kernels))


def _rows(run: Run, problem: Problem, pages: dict[tuple[int, Problem], KernelPage]) -> tuple[StageRow, ...]:
    results = [result for result in run.results if result.problem == problem]
    speeds = _speeds(run, results)
    best = max(speeds.values(), default=0.0)
    rows: list[StageRow] = []
    before: float | None = None
    for result in sorted(results, key=lambda item: item.stage):
        speed = speeds.get(result.stage)
        record = run.record_of(result)
        is_yardstick = record.stage.yardstick
        timed = run.seconds(result), run.yardstick_seconds(result), run.of_yardstick(result)
        step = speed / before if speed is not None and before and not is_yardstick else None
        share = speed / best if speed is not None and best else 0.0
        rows.append(StageRow(record, result, *timed, step, share, pages.get(result.key)))
        if not is_yardstick:
            before = speed
    return tuple(rows)


def _speeds(run: Run, results: Sequence[StageResult]) -> dict[int, float]:
    """What stages are compared by, the fastest first: their shares of the yardstick, else one over their times.

    Each stage was timed in turns with the yardstick, minutes after the one before: where all have their share of it,
    that decides, because a card that has grown hot in between slows both.
    """
    timed = {result.stage: seconds for result in results if (seconds := run.seconds(result))}
    shares = {result.stage: share for result in results if (share := run.of_yardstick(result))}
    yardsticks = {result.stage: 1.0 for result in results if run.record_of(result).stage.yardstick}
    if timed.keys() <= shares.keys() | yardsticks.keys():
        return {number: shares.get(number, 1.0) for number in timed}
    return {number: 1.0 / seconds for number, seconds in timed.items()}
