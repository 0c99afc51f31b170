"""What a session holds, in the terminal: where it is from, its families, and the analysis of chosen launches."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gemmprof.analysis.inputs.families import Family, families
from gemmprof.analysis.kernel_analysis import ANALYSES, KernelAnalysis
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.base.errors import UsageError
from gemmprof.reports.explanations.words import title as finding_title
from gemmprof.reports.facts import processes, whose
from gemmprof.reports.formatting import DASH, extent, hertz, nanoseconds, ratio, times, visible
from gemmprof.reports.pages.environment import moment
from gemmprof.reports.terminal.sections import MOST, rows

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from gemmprof.analysis.session import Session

UNKNOWN = "unknown"
"""What `verdict.limited_by` says where too little was collected."""
HEADLINES = 5
"""Families whose verdict is printed below the table."""
LISTED = 30
"""Families in the table, unless all are asked for."""
NARROW = 84
"""Columns below which the table drops what the others nearly say."""


def parts(
    session: Session,
    *,
    width: int,
    sections: Sequence[str] = (),
    everything: bool = False,
    headlines: bool = True,
) -> Iterator[RenderableType]:
    """What to print, in order.

    Args:
        session: what was loaded.
        width: columns of the terminal.
        sections: names of analyses to show of each family's representative, instead of its verdict.
        everything: every family in the table, and every section of each.
        headlines: also what is to be said of the first families.
    """
    from rich.text import Text

    found = families(session.kernels)
    yield Text(visible(headline(session)), style="bold")
    if not found:
        yield Text("It holds no profiled launch.")
        return
    yield Text(visible(facts(session, found)))
    yield Text()
    if len(session.kernels) > 1:
        listed = found if everything else found[:LISTED]
        yield families_table(listed, session, width=width)
        if len(listed) < len(found):
            rest = sum(family.share or 0.0 for family in found[LISTED:])
            yield Text(f"and {len(found) - LISTED:,} more families with {ratio(rest)} of the time (--all)")
        yield Text()
    if not headlines:
        return
    whole = bool(sections) or everything or len(found) == 1
    known = [one for one in found if session.kernels[one.representative].verdict.limited_by != UNKNOWN]
    if not known and not whole:
        yield Text(
            "Only durations were collected: `gemmprof profile` or ncu --set full collects what explains them."
        )
    chosen = found if whole else known[:HEADLINES]
    for family in chosen:
        analysis = session.kernels[family.representative]
        yield from kernel_parts(analysis, family, width=width, sections=sections, whole=whole)
    if not whole:
        first = session.kernels[found[0].representative].profile.index
        yield Text(f"All of one launch: gemmprof show … --launch {first}; one section: --section warp_states")


def headline(session: Session) -> str:
    """Title, number of launches, GPU."""
    devices = list(dict.fromkeys(kernel.profile.device.name for kernel in session.kernels))
    count = len(session.kernels)
    kernels = len({kernel.profile.name for kernel in session.kernels})
    what = f"{count:,} launch{'es' if count != 1 else ''} of {kernels:,} kernel{'s' if kernels != 1 else ''}"
    if several := processes(session.kernels):
        what += f" by {len(several)} processes"
    if session.selected:
        what += f" chosen by {session.selected}"
    return " · ".join([session.title, what, *devices[:2]])


def facts(session: Session, found: Sequence[Family]) -> str:
    """Time on the GPU, clocks, ncu, date: what a reader needs to trust the rest."""
    total = sum(family.total_ns or 0.0 for family in found)
    clocks = [
        light.sm_clock_hz
        for kernel in session.kernels
        if isinstance(light := kernel.get(SpeedOfLight), SpeedOfLight) and light.sm_clock_hz
    ]
    details = session.kernels[0].profile.session
    parts = [f"{nanoseconds(total)} under the profiler"] if total else []
    if clocks:
        low, high = min(clocks), max(clocks)
        parts.append(f"SM clock {hertz(low)}" + (f" to {hertz(high)}" if high > 1.005 * low else ""))
    if version := details.versions.get("Nsight Compute Target") or details.versions.get("Nsight Compute"):
        parts.append(f"ncu {version.partition(' (')[0]}")
    if details.moment is not None:
        parts.append(moment(details.moment.isoformat()))
    return " · ".join(parts)


def families_table(found: Sequence[Family], session: Session, *, width: int) -> Table:
    """One row a family, most time first, with what to change first; names fold, so that none is cut."""
    from rich.table import Table
    from rich.text import Text

    wide = width >= NARROW
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("launch", "count", "time", "share", *(("spread", "grid") if wide else ())):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("kernel", overflow="fold")
    for family in found:
        analysis = session.kernels[family.representative]
        name = visible(family.label) + (f"\n  in {visible(family.path)}" if family.nvtx else "")
        if family.worst is not None:
            name += f"\n  {finding_title(family.worst)}: saves {ratio(family.worst.saves, 0)}"
        grids = extent(family.grids[0]) + (f" +{len(family.grids) - 1}" if len(family.grids) > 1 else "")
        table.add_row(
            str(analysis.profile.index),
            f"{family.count:,}",
            nanoseconds(family.total_ns),
            ratio(family.share),
            *((times(family.spread), grids) if wide else ()),
            Text(name),
        )
    return table


def kernel_parts(
    analysis: KernelAnalysis, family: Family, *, width: int, sections: Sequence[str], whole: bool
) -> Iterator[RenderableType]:
    """One launch: its name, its verdict, and the sections asked for."""
    from rich.text import Text

    profile = analysis.profile
    where = f"launch {profile.index} of {profile.report}" if whole else f"launch {profile.index}"
    where = ", ".join(filter(None, (where, whose(profile))))
    yield Text(visible(f"{family.label}  ({where})"), style="bold")
    if not sections:
        yield Text("\n".join(textwrap.wrap(visible(analysis.verdict.paragraph), max(30, width - 1))))
        yield Text()
    if whole:
        for name, title in section_titles(sections):
            found = rows(analysis.results[name], most=1000 if sections else MOST)
            if found:
                yield Text(title, style="bold")
                yield rows_table(found, width=width)
                yield Text()


def section_titles(sections: Sequence[str]) -> list[tuple[str, str]]:
    """Name and title of the analyses asked for (all if none), in the order of the pages.

    Raises:
        UsageError: there is no such section.
    """
    import difflib

    known = {analysis.NAME: analysis.TITLE for analysis in ANALYSES}
    for name in sections:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"there is no section '{name}'",
                found=", ".join(known),
                remedies=[
                    f"did you mean '{close[0]}'?" if close else "name one of these, or leave out --section"
                ],
            )
    return [(name, title) for name, title in known.items() if not sections or name in sections]


def rows_table(found: Sequence[tuple[str, str, str]], *, width: int) -> Table:
    """Rows of a name, a value and a remark; texts fold, nothing is cut."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=max(18, width * 2 // 5))
    table.add_column(overflow="fold", justify="right", max_width=max(14, width // 3))
    table.add_column(overflow="fold")
    for name, value, remark in found:
        table.add_row(
            Text("  " + visible(name)), Text(visible(value)), Text(visible(" ".join(remark.split())))
        )
    return table


__all__ = ["DASH", "facts", "families_table", "headline", "parts"]
