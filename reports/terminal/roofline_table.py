"""Roofline points of a session's kernels: terminal table, records for JSON, and the picture in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.session import Session
from gemmprof.base.amounts import counted
from gemmprof.base.buckets import written
from gemmprof.base.errors import UsageError
from gemmprof.base.printable import visible
from gemmprof.base.spread import grouped
from gemmprof.model import NotCollected, Problem
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.drawings import ladder
from gemmprof.reports.figures.svg import drawing
from gemmprof.reports.pages.contents import KernelPage, plan
from gemmprof.reports.terminal.section_tables import WIDE, points_table


def kernels(session: Session, *, shape: Problem | None = None) -> tuple[KernelPage, ...]:
    """The launches of a session: stages in the order of the ladder, others by their family, most time first; of a
    ``shape`` only the stages on it, where none is of its type, on its size: 2048 in a run of the 16-bit ladder.
    """
    pages = plan(session, every=True).pages
    if shape is not None:
        exact = [page for page in pages if page.problem == shape]
        pages = tuple(exact) or tuple(
            page for page in pages if page.problem is not None and shape.is_shape_of(page.problem)
        )
    return tuple(
        sorted(pages, key=lambda page: page.family.number if page.family and page.record is None else 0)
    )


def name_of(page: KernelPage) -> str:
    """Stage and problem, else the family's id and the kernel's name (untrusted text)."""
    if page.problem is not None:
        return f"{page.label} {page.problem.label}"
    if page.family is None:
        return page.label
    which = f", launch {page.analysis.profile.index}" if page.family.count > 1 else ""
    return f"{page.family.id} {page.family.title}{which}"


def parts(pages: Sequence[KernelPage], *, width: int = WIDE) -> Iterator[RenderableType]:
    """What to print: one row a kernel and memory level, then once how to collect what is missing.

    On a terminal of less than `WIDE` columns each kernel's name stands above its rows, and the columns that the others
    imply are left out, so that no name and no number is cut.
    """
    results = [(name_of(page), page.analysis.get(Roofline)) for page in pages]
    drawn, without = [], []
    for name, result in results:
        if isinstance(result, Roofline) and result.main_points:
            drawn.append((name, result.main_points))
        else:
            without.append((_why_none(result), name))
    if drawn and width >= WIDE:
        yield points_table(drawn, width=width)
    for name, points in drawn if width < WIDE else ():
        yield Text(visible(name), style="bold")
        yield points_table([("", points)], width=width)
    for reason, launches in grouped(without).items():
        names = list(dict.fromkeys(launches))[:3]
        left = len(launches) - len(names)
        more = f" and {counted(left, 'more launch')}" if left else ""
        yield Text(f"{reason}\n  in {', '.join(map(visible, names))}{more}")


def _why_none(result: Roofline | NotCollected) -> str:
    if not isinstance(result, NotCollected):
        if not result.remedy:
            return "no floating-point arithmetic counted"
        what = "a part of what a point rests on" if "--set" in result.remedy else "what tensor cores did"
        return f"not collected: {what}; profile with ncu {result.remedy}"
    if not result.remedy:
        return str(result)
    return "not collected: profile with ncu --set roofline, or " + result.remedy


def draw(pages: Sequence[KernelPage], path: Path) -> None:
    """Write the picture: one kernel against all memory levels, several against device memory; UsageError if none."""
    results = [page.analysis.get(Roofline) for page in pages]
    found = [result for result in results if isinstance(result, Roofline) and result.main_points]
    picture = figures.kernel_roofline(found[0]) if len(found) == 1 else ladder(pages)
    if picture is None:
        missing = next((result for result in results if isinstance(result, NotCollected)), None)
        remedies = [] if missing is None else [f"profile it with ncu --set roofline, or {missing.remedy}"]
        found_ = "" if missing is not None else _why_none(results[0])
        raise UsageError("no kernel has a roofline point to draw", *remedies, found=found_)
    with drawing(), written(path) as temporary:
        picture.figure.savefig(temporary, dpi=160)
