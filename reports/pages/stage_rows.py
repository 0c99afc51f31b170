"""The rows of a ladder: its stages on one problem, and on all its problems beside each other with speed over size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.ladder.predictions import LadderStep
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.model import KernelProfile, Problem, StageRecord, StageResult
from gemmprof.reports import formatting
from gemmprof.reports.facts import achieved_occupancy, gpu_index, limited_by, process_of
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.svg import page_svg
from gemmprof.reports.pages.contents import KernelPage

if TYPE_CHECKING:
    from gemmprof.analysis.inputs.families import Family


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a launch in the tables of the index; where no launch has it, the column is left out."""

    key: str
    title: str
    text: Callable[[Any], str]
    value: Callable[[KernelAnalysis], float | None]


# One more figure on the index is one more entry.
COLUMNS = (
    Column("compute", "Compute", formatting.percent, lambda one: one.field(SpeedOfLight, "sm_percent")),
    Column("memory", "Memory", formatting.percent, lambda one: one.field(SpeedOfLight, "memory_percent")),
    Column("peak", "% of peak", formatting.percent, lambda one: one.field(Roofline, "main", "percent")),
    Column("occupancy", "Occupancy", formatting.occupancy, achieved_occupancy),
    Column("registers", "Registers", formatting.number, lambda one: one.profile.launch.registers_per_thread),
)


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch in a table. Names are untrusted text."""

    analysis: KernelAnalysis
    page: KernelPage | None
    """The launch's own page, else that of its family's representative."""
    family: Family | None = None
    place: int = 0
    """Position in the session."""

    @property
    def profile(self) -> KernelProfile:
        """What was measured."""
        return self.analysis.profile

    @property
    def duration_ns(self) -> float | None:
        """Under the profiler, None if not collected."""
        found: float | None = self.analysis.field(SpeedOfLight, "duration_ns")
        return found

    @property
    def figures(self) -> dict[str, float | None]:
        """Of `COLUMNS`, by key."""
        return {column.key: column.value(self.analysis) for column in COLUMNS}

    @property
    def stall(self) -> str:
        """What its warps wait for most, '' if not collected."""
        reason: str | None = self.analysis.field(WarpStates, "main_stall", "reason", "title")
        return (reason or "").removeprefix("Stall ")

    @property
    def process(self) -> int | None:
        """Which process launched it, where its report holds launches of several."""
        return process_of(self.profile)

    @property
    def gpu(self) -> int | None:
        """CUDA's index of the GPU in that process."""
        return gpu_index(self.profile)

    @property
    def limited_by(self) -> str:
        """What holds it back, '' if not known."""
        return limited_by(self.analysis)


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage on one problem: what the run measured, and what its profiled launch says (None: not profiled)."""

    record: StageRecord
    result: StageResult
    seconds: float | None
    yardstick_seconds: float | None
    """Time of the yardstick in turns with this stage."""
    of_yardstick: float | None
    step: float | None
    """Speed over the stage before."""
    share_of_best: float
    """Speed as a share of the fastest row's, 0 to 1, for the bar."""
    launch: LaunchRow | None

    @property
    def tflops(self) -> float | None:
        """TFLOP/s in `seconds`."""
        return self.result.problem.flops / self.seconds / 1e12 if self.seconds else None

    @property
    def yardstick_tflops(self) -> float | None:
        """The yardstick's in turns with this stage."""
        return self.result.problem.flops / self.yardstick_seconds / 1e12 if self.yardstick_seconds else None

    @property
    def yardstick(self) -> bool:
        """True for the stage that the others are measured against."""
        return self.record.stage.yardstick


def timed_stages(rows: Sequence[StageRow]) -> list[StageRow]:
    """The stages beside the yardstick that were timed."""
    return [row for row in rows if not row.yardstick and row.tflops is not None]


def fastest_of(rows: Sequence[StageRow]) -> StageRow | None:
    """The fastest stage beside the yardstick, None where none was timed."""
    return max(timed_stages(rows), key=lambda row: row.share_of_best, default=None)


@dataclass(frozen=True, slots=True)
class LadderRoofline:
    """The figure, and what the script that zooms and answers needs."""

    figure: Markup
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """The ladder on one problem, with its roofline (None where nothing was profiled)."""

    problem: Problem
    rows: tuple[StageRow, ...]
    roofline: LadderRoofline | None
    story: str
    steps: tuple[LadderStep, ...] = ()
    """What each stage was predicted to gain, beside what the next one brought."""
    folded: bool = False
    """True where the page opens with the section closed, because another of its ladder stands above it."""

    @property
    def ladder(self) -> str:
        """Name of the ladder."""
        return self.rows[0].record.stage.ladder

    @property
    def fastest(self) -> StageRow | None:
        """The fastest stage beside the yardstick, None where none was timed."""
        return fastest_of(self.rows)

    @property
    def gain(self) -> float | None:
        """Speed of the fastest stage over the first one, None with less than two timed ones."""
        timed, best = timed_stages(self.rows), self.fastest
        if len(timed) < 2 or best is None or best.tflops is None or not timed[0].tflops:
            return None
        return best.tflops / timed[0].tflops

    @property
    def timed(self) -> bool:
        """True if at least one stage was timed."""
        return any(row.tflops is not None for row in self.rows)

    @property
    def profiled(self) -> bool:
        """True if at least one stage was profiled."""
        return any(row.launch is not None or row.result.report is not None for row in self.rows)


@dataclass(frozen=True, slots=True)
class SizeTable:
    """Every problem of one ladder beside the others, the smallest first.

    Attributes:
        ladder: its name.
        labels: of the problems; without the types where all share them.
        types: the types that all problems share (``bfloat16``), '' where they differ.
        rows: one a stage; None where it was not run on the problem.
        figure: speed over size, None with less than two timed problems.
    """

    ladder: str
    labels: tuple[str, ...]
    types: str
    rows: tuple[tuple[StageRecord, tuple[StageRow | None, ...]], ...]
    figure: Markup | None

    @property
    def failures(self) -> tuple[StageRow, ...]:
        """The cells whose stage failed."""
        return tuple(
            cell for _, cells in self.rows for cell in cells if cell is not None and cell.result.failure
        )


def size_table(ladder: str, groups: Sequence[ProblemGroup], prefix: str) -> SizeTable:
    """The stages of one ladder on every problem (``groups``: the largest first; ``prefix``: of the figure's ids)."""
    smallest_first = tuple(reversed(groups))
    problems = [group.problem for group in smallest_first]
    types = _shared_types(problems)
    cells = [{row.record.stage.number: row for row in group.rows} for group in smallest_first]
    records = {number: row.record for column in cells for number, row in column.items()}
    return SizeTable(
        ladder,
        tuple(_label(problem, types) for problem in problems),
        types,
        tuple(
            (record, tuple(column.get(number) for column in cells))
            for number, record in sorted(records.items())
        ),
        _figure(ladder, smallest_first, types, prefix),
    )


def _shared_types(problems: Sequence[Problem]) -> str:
    """What all problems compute in, '' where they differ."""
    kinds = {problem.types_label for problem in problems}
    return kinds.pop() if len(kinds) == 1 else ""


def _label(problem: Problem, types: str) -> str:
    """Types that all share stand in the heading; repeated under every point they would run into each other."""
    return problem.shape_label if types else problem.label


def _figure(ladder: str, groups: Sequence[ProblemGroup], types: str, prefix: str) -> Markup | None:
    """TFLOP/s over problem size, where at least two problems were timed; only cubes, if there are two of them."""
    timed = [group for group in groups if group.timed]
    cubes = [group for group in timed if group.problem.m == group.problem.n == group.problem.k]
    timed = cubes if len(cubes) > 1 else timed
    if len(timed) < 2:
        return None
    stages = {row.record.stage.number: row.record.stage for group in timed for row in group.rows}
    series = []
    for number, stage in sorted(stages.items()):
        points = [
            (_label(group.problem, types), row.tflops)
            for group in timed
            for row in group.rows
            if row.record.stage.number == number and row.tflops is not None
        ]
        if points:
            series.append((f"{number} {stage.title}", points))
    sizes = [_label(group.problem, types) for group in timed]
    return page_svg(
        figures.performance_over_size(series, sizes),
        identifier=f"{prefix}over-size-{ladder}-figure",
        title="Performance over size",
        description="; ".join(
            f"{label}: " + ", ".join(f"{size} {value:.1f} TFLOP/s" for size, value in points)
            for label, points in series
        ),
    )
