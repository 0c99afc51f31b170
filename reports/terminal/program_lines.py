"""Where a program's time goes and what to change first in it: short at the front door, in full in ``show``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gemmprof.analysis.whole.spans import Span, walk
from gemmprof.base.printable import visible
from gemmprof.reports.formatting import counted, fit, nanoseconds, ratio, saved, wrapped

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session
    from gemmprof.analysis.whole.overall import Program
    from gemmprof.analysis.whole.program_advice import Proposal

# Proposals at the front door, of two lines each at most.
FIRST = 3
# Owners and ranges on one line.
NAMED = 5
# Ranges of the tree in the terminal, and the share of the time below which one is left out.
BRANCHES, LEAST = 24, 0.01
# Columns of a bar.
BAR = 20


def sentence(session: Session, width: int) -> list[str]:
    """What a report holds, in at most two lines of 80 columns, or as many letters in narrower ones."""
    return wrapped(visible(session.sentence), width)[: max(2, 160 // width)]


def where(session: Session, width: int) -> Iterator[str]:
    """Where a program's time goes, at the front door, in at most four lines; nothing is explained for them."""
    program = session.program
    if len(session.by_time) < 2 or not program.whole.time_ns:
        return
    yield _line("whose", [owner for owner in program.owners if owner.time_ns], width)
    if program.tree.children:
        yield _line("where", program.branches, width)
    elif program.told_from != "names":
        yield _line("what", program.operators, width)
    launching = program.whole.launching
    share = ratio(launching, 0)
    parts = [
        f"{session.unprofiled}." if session.unprofiled else "",
        "" if launching is None or share == ratio(0.0, 0) else f"{share} of it is launching.",
        program.gaps,
    ]
    yield from wrapped(visible(" ".join(filter(None, parts))), width, most=2)


def advice(program: Program, width: int) -> Iterator[str]:
    """What to change first in a program, at the front door: at most eight lines."""
    from gemmprof.analysis.whole.program_advice import TITLES

    # What concerns one family alone stands at that family.
    first = [one for one in program.advice.proposals if one.cause in TITLES or len(one.families) > 1][:FIRST]
    if not first:
        return
    yield ""
    together = f"; together {saved(*program.advice.together)}" if program.advice.together else ""
    yield fit(f" saves  to change first in the program{together}", width)
    for proposal in first:
        text = f"{proposal.title}{proposal.of_what}{_ids(proposal)}: {proposal.says}"
        first_indent, indent = f"{ratio(proposal.saves, 0):>6}  ", " " * 8
        lines = wrapped(visible(text), width, first_indent, indent)
        yield from lines[:1]
        if len(lines) > 1:
            yield fit(" " * 8 + visible(" ".join(line.strip() for line in lines[1:])), width)


def _ids(proposal: Proposal) -> str:
    """``in #7, #11 and 3 more families``, where a few families are meant; else ''."""
    from gemmprof.analysis.whole.program_advice import TITLES

    ids = proposal.families
    if not ids or proposal.cause in TITLES:
        return ""
    return f" in {', '.join(ids[:3])}" + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _line(title: str, spans: Sequence[Span], width: int) -> str:
    """``whose: torch (eager) 52 % · cuBLAS 31 %``, as many as fit."""
    text = f"{title}:"
    for at, span in enumerate(spans):
        more = f"{' ·' if at else ''} {visible(span.name)} {ratio(span.share, 0)}"
        left = len(spans) - at - 1
        if at == NAMED or len(text + more) + (len(f" · {left} more") if left else 0) > width:
            return f"{fit(text, width - 12)} · {len(spans) - at} more" if at else fit(text + more, width)
        text += more
    return text


def whole(program: Program, width: int) -> Iterator[str]:
    """All of it: owners, the tree of ranges, operators, every proposal with what to do."""
    yield "Whose time it is"
    yield from _bars(((0, span) for span in program.owners), width)
    if program.tree.children:
        yield ""
        yield "NVTX ranges"
        shown = [(depth, span) for depth, span in walk(program.tree) if span.share >= LEAST]
        yield from _bars(shown[:BRANCHES], width)
        if len(shown) > BRANCHES:
            yield f"and {counted(len(shown) - BRANCHES, 'range')} more"
    yield ""
    yield {"trace": "Operators, of the trace", "NVTX": "Operators, of the NVTX ranges"}.get(
        program.told_from, "What the kernels do, known by their names"
    )
    yield from _bars([(0, span) for span in program.operators if span.share >= LEAST][:BRANCHES], width)
    yield ""
    yield from wrapped(visible(program.gaps), width)
    if program.advice.sampled:
        yield from wrapped(
            "The report holds chosen launches alone: which launches follow one another in the program is not known.",
            width,
        )
    if not program.advice.proposals:
        return
    yield ""
    yield "To change first in the program"
    for place, proposal in enumerate(program.advice.proposals, 1):
        head = f"{place}. {proposal.title}{_ids(proposal)}: saves {saved(proposal.saves, proposal.low, proposal.high)}"
        text = f"{head}{proposal.of_what}. {proposal.says} {proposal.change}"
        yield from wrapped(visible(text), width, "  ", "     ")
    if program.advice.together is not None:
        yield f"  All that concerns kernels together saves {saved(*program.advice.together)} of their time."


def _bars(spans: Iterable[tuple[int, Span]], width: int) -> Iterator[str]:
    """A row each: name, share, time, launches, a bar, and how much of it is launching where there is room."""
    wide = width >= 100
    room = min(48, width - BAR - (44 if wide else 30))
    for depth, span in spans:
        name = fit(f"{'  ' * min(depth, 6)}{visible(span.name)}", room)
        time, share = (span.time_ns, span.share) if span.time_ns else (None, None)  # ncu could not profile it
        row = f"  {name:<{room}} {ratio(share, 0):>5} {nanoseconds(time):>9} {span.launches:>7,}  "
        row += f"{'#' * max(1 if time else 0, round(BAR * span.share)):<{BAR}}"
        if wide and span.launching is not None:
            row += f" {ratio(span.launching, 0):>4} launching"
        yield row.rstrip()
