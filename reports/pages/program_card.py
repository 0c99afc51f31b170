"""Where a program's time goes, for the index page: parts of it to choose, and which launches each one is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmprof.analysis.whole.overall import Came, came
from gemmprof.analysis.whole.spans import walk

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session
    from gemmprof.analysis.whole.overall import Program
    from gemmprof.analysis.whole.spans import Span
    from gemmprof.reports.pages.contents import KernelPage, Plan

MOST = 400  # ranges of the tree on a page; what is left has less time than each of them
OPEN = 0.5  # share of the time from which on a range shows what is inside


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the program that a reader may choose.

    Attributes:
        key: what the rows of its launches carry in ``data-in``.
        span: its sums.
        inside: the parts of it, of a tree.
        open: whether they are shown from the start.
    """

    key: str
    span: Span
    inside: tuple[Piece, ...] = ()
    open: bool = False


@dataclass(frozen=True, slots=True)
class ProgramCard:
    """What the index page shows of a program before its kernels.

    Attributes:
        program: the whole.
        owners, ranges, operators: its parts, most time first.
        left_out: ranges that are too short to be in the tree.
        of_launch: the keys of the parts that a launch is of, by its position, separated by blanks.
        of_family: the same of all launches of a family, by its number.
        pages: the page of a family, by its id.
        came: what came of the advice on the version that this one is compared with; None without one.
    """

    program: Program
    owners: tuple[Piece, ...]
    ranges: tuple[Piece, ...]
    operators: tuple[Piece, ...]
    left_out: int
    of_launch: Mapping[int, str]
    of_family: Mapping[int, str]
    pages: Mapping[str, KernelPage]
    came: Came | None = None


def program_card(session: Session, plan: Plan, earlier: Session | None = None) -> ProgramCard | None:
    """The card of a session, ``earlier``: the version before; None where there is nothing to add up."""
    if len(session.by_time) < 2 or not session.program.whole.time_ns:
        return None
    program = session.program
    spans = sorted((span for _, span in walk(program.tree)), key=lambda span: -span.time_ns)
    shown = {(span.path, span.name) for span in spans[:MOST]}
    keys: dict[int, list[str]] = {}
    names = iter(range(len(spans) + len(program.owners) + len(program.operators)))

    def piece(span: Span, letter: str) -> Piece:
        key = f"{letter}{next(names)}"
        for member in span.members:
            keys.setdefault(member, []).append(key)
        inside = tuple(piece(child, letter) for child in span.children if (child.path, child.name) in shown)
        return Piece(key, span, inside, bool(inside) and span.share >= OPEN)

    def pieces(found: Iterable[Span], letter: str) -> tuple[Piece, ...]:
        return tuple(piece(span, letter) for span in found)

    owners = pieces(program.owners, "o")
    ranges = pieces((child for child in program.tree.children if (child.path, child.name) in shown), "r")
    operators = pieces(program.operators[:MOST], "k")
    return ProgramCard(
        program,
        owners,
        ranges,
        operators,
        len(spans) - len(shown),
        {member: " ".join(found) for member, found in keys.items()},
        {
            family.number: " ".join(dict.fromkeys(key for at in family.members for key in keys.get(at, ())))
            for family in session.by_time
        },
        {
            family.id: page
            for family in session.by_time
            if (page := plan.by_launch.get(family.representative)) is not None
        },
        came(earlier.program, program) if earlier is not None else None,
    )
