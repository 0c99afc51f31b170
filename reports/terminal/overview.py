"""What a session holds, in the terminal: where it is from, its families, and the analysis of chosen launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyses
from gemmprof.base.errors import UsageError
from gemmprof.base.printable import visible
from gemmprof.reports.facts import counters_of, facts, headline, nothing_found, unexplained, whose
from gemmprof.reports.formatting import dimensions, fit, nanoseconds, ratio, times, wrapped
from gemmprof.reports.terminal import columns, program_lines
from gemmprof.reports.terminal.section_tables import ALL_ROWS, MOST, rows_table
from gemmprof.reports.terminal.section_tables import parts as section_parts
from gemmprof.reports.words import WHOLE, Explained, block, in_room, is_known, no_finding, place, too_little
from gemmprof.reports.words import title as finding_title

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from gemmprof.analysis.session import Session

HEADLINES = 5  # families whose verdict is printed below the table
COUNTERS = 40  # of one launch, where nothing but counters asked for by name is known of it
LISTED = 30  # families in the table, unless all are asked for
PLACE = 7  # letters of a file's name, below which it says nothing
PROSE = 104  # columns of running text and bars, however wide the terminal is
NARROW = 84  # columns below which the table drops what the others nearly say
NARROWEST = 80  # columns below which the front door's words stand below its numbers, not beside them


def parts(
    session: Session,
    *,
    width: int,
    sections: Sequence[str] = (),  # of each family's representative, and nothing else of it or the program
    everything: bool = False,  # every family in the table, and every section of each
    headlines: bool = True,  # also what is to be said of the first families
) -> Iterator[RenderableType]:
    """What to print, in order."""
    total = len(session.by_time)
    yield Text(visible(headline(session)), style="bold")
    if not total:
        yield Text("It holds no profiled launch.")
        return
    yield Text(visible(facts(session)))
    yield Text()
    whole = bool(sections) or everything or total == 1
    found = session.families if whole else session.leaders(LISTED)
    little = "" if whole else too_little(session.explanation(one.representative) for one in found)
    if little:
        yield Text("\n".join(wrapped(little, min(width, PROSE), "! ", "  ")))
        yield Text()
    if total > 1 and not sections and session.program.whole.time_ns:
        for line in program_lines.whole(session.program, min(width, PROSE)):
            yield Text(line)
        yield Text()
    if len(session.kernels) > 1 and not sections:
        yield families_table(found if everything else found[:LISTED], session, width=width)
        left = 0 if everything else total - len(found[:LISTED])
        if left:
            rest = max(0.0, 1.0 - sum(family.share or 0.0 for family in found[:LISTED]))
            yield Text(f"and {left:,} more families with {ratio(rest)} of the time (--all)")
        yield Text()
    if not headlines:
        return
    shown = 0
    for family in found:
        if not whole and (shown == HEADLINES or (family.worst is None and shown)):
            break
        analysis = session.whole(family.representative, code="source_view" in sections)
        if whole or is_known(analysis.explanation):
            shown += 1
            yield from kernel_parts(session, analysis, family, width, sections, whole)
    if not shown:
        if not little:
            yield Text(unexplained(session.kernels))
            yield Text()
        asked = [one for one in found if counters_of(session.kernels[one.representative])]
        for family in asked[:HEADLINES]:
            analysis = session.whole(family.representative)
            yield from kernel_parts(session, analysis, family, width, sections, whole=False)
    if not whole:
        yield Text(
            f"All of one family: the same with '{found[0].id}' behind it; one section: --section warp_states"
        )


FRONT_LINES = 24  # what the front door prints at most, whatever the report holds: a screen
FRONT_FAMILIES = 8  # families there at most, two lines each, on narrow terminals three
# Lines beside the program and its families: a sentence of at most two, an empty line, the columns' names, what is left,
# an empty line, what to type next.
FRONT_OTHER = 7


def front(
    session: Session, command: str, *, width: int = 80, said: int = 0, every: bool = False
) -> Iterator[str]:
    """The front door below its first sentence (`Session.sentence`) and the lines of `program_lines.where` that were
    ``said`` already: families by gain, as many as a screen holds or ``every`` one, and what to type next, behind the
    ``command`` that led here.
    """
    total = len(session.by_time)
    if not total:
        return
    first_explained = (
        session.explanation(family.representative) for family in session.leaders(FRONT_FAMILIES)
    )
    little = too_little(first_explained)
    lines = wrapped(little, width, "! ", "  ")
    if total > 1 and session.program.whole.time_ns:
        lines = [*program_lines.where(session, width), *lines, *program_lines.advice(session.program, width)]
    yield from lines[said:]
    left = FRONT_LINES - FRONT_OTHER - len(lines)
    yield ""
    below = width < NARROWEST
    found = session.leaders(total if every else min(FRONT_FAMILIES, left // (3 if below else 2)))
    gains = any(family.worst is not None for family in found)
    first, last = ("gain in all", "to change first") if gains else ("share", "kernel")
    yield f"{first:>11}{'time':>10}{'launches':>10}  {'' if below else last}".rstrip()
    for family in found:
        shown = family.share
        if gains or below:
            yield f"{family.id:<5}{in_room(family, width - 5)}"
        if gains:
            shown = None if family.worst is None or shown is None else family.worst.saves * shown
        start = f"{'' if gains or below else family.id:<5}{ratio(shown):>6}{nanoseconds(family.total_ns):>10}"
        start += f"{family.count:>10,}  "
        if below:
            yield start.rstrip()
            if gains:
                yield f"{'':<5}{_first_to_change(session, family, width - 5)}"
            continue
        room = width - len(start)
        yield start + (_first_to_change(session, family, room) if gains else in_room(family, room))
    if left := total - len(found):
        whole, shares = (sum(one.share or 0.0 for one in some) for some in (session.by_time, found))
        rest = f" with {ratio(max(0.0, whole - shares))} of the time" if whole else ""
        yield from wrapped(f"and {left:,} more{rest}: the same with --all", width)
    yield ""
    if not gains:
        yield from wrapped(nothing_found(session, found, little), width)
    ways = f"Next: {command} '{found[0].id}'", f"Next: the same with '{found[0].id}' behind it"
    yield from [line for line in ways if len(line) <= width][:1]


def _first_to_change(session: Session, family: Family, room: int) -> str:
    """What saves most, how much of the family's time, and where, as far as there is room for that."""
    owner = "" if family.owner.key == "own" else f"{family.owner.title}, "
    if family.worst is None:
        said = owner + no_finding(session.explanation(family.representative))
        return fit(said if len(said) <= room else said.partition(":")[0], room)
    what = f"{owner}{finding_title(family.worst).lower()}: {ratio(family.worst.saves, 0)} of it"
    first = next(iter(family.worst.places), None)
    file, colon, line = place(first).rpartition(":") if first is not None else ("", "", "")
    left = room - len(what) - len(" at ") - len(colon + line)
    # Less of a file's name, or a part of an instruction, says nothing any more; a line's number is never cut.
    if first is None or left < (PLACE if first.line is not None else len(file)):
        return fit(what, room)
    return f"{what} at {fit(file, left)}{colon}{line}"


def families_table(found: Sequence[Family], session: Session, *, width: int) -> Table:
    """One row a family, the most to gain first, with what to change first; names fold, so that none is cut."""
    wide, several = width >= NARROW, len({one.report for one in found}) > 1
    numbers = (">!count", ">!time", ">!share", *((">!spread", ">!grid") if wide else ()))
    table = columns("!id", *numbers, "kernel", padding=(0, 1, 0, 0), header_style="bold")
    for family in found:
        name = f"{visible(family.label)}\n  {family.owner.title}"
        name += f", in {visible(family.path)}" if family.nvtx else ""
        name += f", of {visible(Path(family.report).name)}" if several else ""
        if family.worst is not None:
            name += f"\n  {finding_title(family.worst)}: saves {ratio(family.worst.saves, 0)}"
        cells = [family.id, f"{family.count:,}", nanoseconds(family.total_ns), ratio(family.share)]
        if wide:
            cells += [times(family.spread), dimensions(family.grid)]
        table.add_row(*cells, Text(name))
    return table


def kernel_parts(
    session: Session, kernel: KernelAnalysis, family: Family, width: int, sections: Sequence[str], whole: bool
) -> Iterator[RenderableType]:
    """One family: its name, its verdict, in full also every finding, and the sections asked for."""
    profile = kernel.profile
    where = f"launch {profile.index} of {profile.report}" if whole else f"launch {profile.index}"
    if family.count > 1:
        where += f", the {'first' if family.total_ns is None else 'longest'} of {family.count:,}"
    where = ", ".join(filter(None, (where, whose(profile), family.owner.title)))
    yield Text(visible(f"{family.id} {family.title}  ({where})"), style="bold")
    if not sections:  # in full, what to change follows
        said = kernel.verdict.figures if whole else kernel.verdict.paragraph
        yield Text("\n".join(wrapped(visible(said), max(30, min(width, PROSE) - 1))))
        yield Text()
    if profile.profiled and not sections and not is_known(kernel.explanation):
        counted = counters_of(kernel)
        most = COUNTERS if whole else MOST
        if len(counted) > most:
            counted[most:] = [(f"and {len(counted) - most:,} more: gemmprof export has all", "", "")]
        if counted:
            yield Text("Collected", style="bold")
            yield rows_table(counted, width=width)
            yield Text()
    if not whole:
        return
    if not sections:
        found = Explained(kernel.explanation, family)
        yield Text("\n".join(block(found, min(width, 100), WHOLE, WHOLE, WHOLE, headed=False)))
        yield Text()
    for name, title in section_titles(sections):
        most = ALL_ROWS if sections else MOST
        yield from section_parts(title, kernel.results[name], most=most, width=width)


def section_titles(sections: Sequence[str]) -> list[tuple[str, str]]:
    """Name and title of the analyses asked for (all if none), in the order of the pages; UsageError if unknown."""
    import difflib

    known = {analysis.NAME: analysis.TITLE for analysis in analyses()}
    for name in sections:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean '{close[0]}'?" if close else "name one of these, or leave out --section"
            raise UsageError(f"there is no section '{name}'", remedy, found=", ".join(known))
    return [(name, title) for name, title in known.items() if not sections or name in sections]
