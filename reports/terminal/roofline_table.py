"""Roofline points of a session's kernels: terminal table, records for JSON, and the picture in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from gemmprof.analysis.sections.roofline import Roofline, RooflinePoint
from gemmprof.analysis.session import Session
from gemmprof.base.amounts import counted
from gemmprof.base.buckets import written
from gemmprof.base.errors import UsageError
from gemmprof.base.printable import visible
from gemmprof.base.spread import grouped
from gemmprof.model import NotCollected, Problem
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.svg import drawing
from gemmprof.reports.pages.contents import KernelPage, plan
from gemmprof.reports.terminal.section_tables import WIDE, points_table

_TENSOR = "ncu --section SpeedOfLight_HierarchicalTensorRooflineChart"


@dataclass(frozen=True, slots=True)
class KernelRoofline:
    """One kernel with its roofline, or what would collect it."""

    page: KernelPage
    result: Roofline | NotCollected

    @property
    def name(self) -> str:
        """Stage and problem, else the family's id and the kernel's name (untrusted text)."""
        problem, family = self.page.problem, self.page.family
        if problem is not None:
            return f"{self.page.label} {problem.label}"
        return f"{family.id} {self.page.label}" if family is not None else self.page.label

    @property
    def not_collected(self) -> str | None:
        """The ncu option that collects what is missing, None where nothing is."""
        return self.result.remedy if isinstance(self.result, NotCollected) else None

    @property
    def points(self) -> tuple[RooflinePoint, ...]:
        """The points of the kernel's main arithmetic."""
        return figures.main_points(self.result) if isinstance(self.result, Roofline) else ()


def kernels(session: Session, *, shape: Problem | None = None) -> tuple[KernelRoofline, ...]:
    """The launches of a session: stages in the order of the ladder, others by their family, most time first.

    Args:
        shape: only stages on this problem; where none is of its type, on its size: 2048 in a run of the 16-bit ladder.
    """
    pages = plan(session, every=True).pages
    if shape is not None:
        exact = [page for page in pages if page.problem == shape]
        pages = tuple(exact) or tuple(
            page for page in pages if page.problem is not None and shape.is_shape_of(page.problem)
        )
    rows = (KernelRoofline(page, page.analysis.get(Roofline)) for page in pages)
    return tuple(sorted(rows, key=_family))


def _family(row: KernelRoofline) -> int:
    of = row.page.family
    return of.number if row.page.record is None and of is not None else 0


def parts(rows: Sequence[KernelRoofline], *, width: int = WIDE) -> Iterator[RenderableType]:
    """What to print: one row a kernel and memory level, then once how to collect what is missing.

    On a terminal of less than `WIDE` columns each kernel's name stands above its rows, and the columns that the others
    imply are left out, so that no name and no number is cut.
    """
    drawn = [row for row in rows if row.points]
    if width >= WIDE:
        if drawn:
            yield points_table([(row.name, row.points) for row in drawn], width=width)
    else:
        for row in drawn:
            yield Text(visible(row.name), style="bold")
            yield points_table([("", row.points)], width=width)
    without = ((_why_none(row.result), row.name) for row in rows if not row.points)
    for reason, launches in grouped(without).items():
        names = list(dict.fromkeys(launches))[:3]
        left = len(launches) - len(names)
        more = f" and {counted(left, 'more launch')}" if left else ""
        yield Text(f"{reason}\n  in {', '.join(map(visible, names))}{more}")


def _why_none(result: Roofline | NotCollected) -> str:
    if not isinstance(result, NotCollected):
        if result.computes is False:
            return "no floating-point arithmetic counted"
        if result.computes is None and not result.tensor_counted:
            return f"not collected: what tensor cores did; profile with {_TENSOR}"
        return "not collected: a part of what a point rests on; profile with ncu --set roofline"
    if not result.remedy:
        return str(result)
    return "not collected: profile with ncu --set roofline, or " + result.remedy


def draw(rows: Sequence[KernelRoofline], path: Path) -> None:
    """Write the picture: one kernel against all memory levels, several against device memory.

    Raises:
        UsageError: if no kernel has a point to draw.
    """
    found = [(row, row.result) for row in rows if isinstance(row.result, Roofline) and row.points]
    if len(found) == 1:
        picture = figures.kernel_roofline(found[0][1])
    else:
        steps = [
            figures.Step(
                str(place if row.page.record is None else row.page.record.stage.number),
                row.page.label,
                result,
                row.page.is_yardstick,
            )
            for place, (row, result) in enumerate(found)
        ]
        picture = figures.ladder_roofline(steps, path=all(row.page.record is not None for row, _ in found))
    if picture is None:
        missing = next((row.result for row in rows if isinstance(row.result, NotCollected)), None)
        raise UsageError(
            "no kernel has a roofline point to draw",
            *([] if missing is None else [f"profile it with ncu --set roofline, or {missing.remedy}"]),
            found="" if missing is not None else _why_none(rows[0].result),
        )
    with drawing(), written(path) as temporary:
        picture.figure.savefig(temporary, dpi=160)
