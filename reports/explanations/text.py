"""An explanation for a terminal of 80 columns: one screen of 30 lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from gemmprof.model import Finding
from gemmprof.reports.explanations import words
from gemmprof.reports.explanations.words import Explained
from gemmprof.reports.formatting import fit

LINES = 30
WIDTH = 80


TOKENS_PER_LINE = 20
WHOLE = 99  # so many findings, facts and places are all: then nothing is cut, either


def lines_for(budget: int | None, *, everything: bool) -> int | None:
    """Rows for a budget of tokens, else one screen; None where everything was asked for."""
    if budget is not None:
        return max(5, budget // TOKENS_PER_LINE)
    return None if everything else LINES


def screen(found: Sequence[Explained], *, of: int = 0, width: int = WIDTH, lines: int | None = LINES) -> str:
    """Families in their order; what does not fit is said in a line.

    Args:
        found: the families, or the first of them.
        of: how many there are in all, where these are but the first.
        width: columns.
        lines: rows; None for no limit.
    """
    if not found:
        return "The input holds no kernel."
    total = max(of, len(found))
    room = lines if lines is not None else 1 << 30
    out: list[str] = []
    for number, one in enumerate(found):
        more = total - number - 1
        left = room - len(out) - (1 if more else 0)
        form = list(_fitting(one, width, left, first=number == 0))
        if not form:
            out.append(_cut(_left_out(more + 1), width))
            break
        out += form
    else:
        if total > len(found):
            out.append(_cut(_left_out(total - len(found)), width))
    return "\n".join(out)


def _left_out(count: int) -> str:
    return f"and {count:,} more {'family' if count == 1 else 'families'}: --all shows all, --kernel '#3' one."


def _fitting(one: Explained, width: int, left: int, *, first: bool) -> Iterator[str]:
    """The fullest form of a kernel that fits the lines left; nothing if none does."""
    for findings, facts, places in ((3, 2, 2), (3, 1, 1), (2, 1, 1), (2, 0, 1), (1, 0, 1), (1, 0, 0)):
        form = list(block(one, width, findings, facts, places))
        if len(form) <= left:
            yield from form
            return
    if first:
        yield from list(block(one, width, 1, 0, 0))[: max(1, left)]
    elif left >= 1:
        yield _line(one, width)


def _line(one: Explained, width: int) -> str:
    kernel = one.explanation
    what = (
        f"{kernel.findings[0].cause} {100 * kernel.findings[0].saves:.0f} %"
        if kernel.findings
        else "at its limit"
        if kernel.at_limit
        else "–"
    )
    room = width - len(what) - len(_id(one)) - 14
    return _cut(f"{_id(one)}{words.duration(kernel):>9}  {fit(one.label, max(20, room))}: {what}", width)


def _id(one: Explained) -> str:
    return f"{one.family.id:<4}" if one.family is not None else ""


def _heading(one: Explained, width: int) -> str:
    """Id, name and time of a family, in one line."""
    end = words.duration(one.explanation) + (f", {one.owner}" if one.owner else "")
    end += f", {one.launches} launches, the longest:" if one.launches > 1 else ""
    return _cut(f"{_id(one)}{fit(one.label, max(20, width - len(end) - 6))}  {end}", width)


def block(
    one: Explained, width: int, findings: int, facts: int, places: int, *, headed: bool = True
) -> Iterator[str]:
    """One family: heading, doubts, so many findings with facts and places, and the conclusion."""
    kernel = one.explanation
    if headed:
        yield _heading(one, width)
    for sentence in kernel.trust[: None if places >= WHOLE else 3 if places else 1]:
        yield from _wrapped(sentence, width, "  ! ", "    ")
    for number, finding in enumerate(kernel.findings[:findings], 1):
        yield from _finding(number, finding, width, facts, places)
    rest = kernel.findings[findings:]
    if rest:
        yield from _wrapped(
            "also: " + ", ".join(f"{one.cause} {100 * one.saves:.0f} %" for one in rest), width, "  ", "  "
        )
    if places and (other := words.others(kernel)):
        yield from _wrapped(other, width, "  ", "  ")
    end = words.conclusion(kernel)
    if end:
        yield from _wrapped(end, width, "  ", "  ")


def _finding(number: int, finding: Finding, width: int, facts: int, places: int) -> Iterator[str]:
    yield _cut(f"  {number}. {finding.cause}: saves {words.saved(finding)}{words.same_as(finding)}", width)
    yield from _wrapped(finding.change, width, "     ", "     ")
    if ways := words.ways(finding):
        yield from _wrapped(ways, width, "     ", "     ")
    lines = [
        f"at {words.place_with_code(where)} ({100 * where.share:.0f} %)" for where in finding.places[:places]
    ]
    lines += [words.fact(item) for item in finding.evidence[:facts]]
    for line in lines:
        yield from (
            _wrapped(line, width, "     ", "       ") if places >= WHOLE else [_cut(f"     {line}", width)]
        )


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=then, break_long_words=True)


def _cut(text: str, width: int) -> str:
    flat = " ".join(text.split("\n"))
    return flat if len(flat) <= width else flat[: width - 1] + "…"
