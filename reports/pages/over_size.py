"""Speed over the size of the problem: one ladder's problems beside each other, as a figure and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmprof.model import Problem, StageRecord
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.svg import page_svg

if TYPE_CHECKING:
    from markupsafe import Markup

    from gemmprof.reports.pages.ladder import ProblemGroup, StageRow


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
