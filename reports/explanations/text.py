"""An explanation for a terminal of 80 columns: one screen of 30 lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from gemmprof.model import Explanation, Finding
from gemmprof.reports.explanations import words
from gemmprof.reports.explanations.words import Group

LINES = 30
WIDTH = 80


TOKENS_PER_LINE = 20


def lines_for(budget: int | None, *, everything: bool) -> int | None:
    """Rows for a budget of tokens, else one screen; None where everything was asked for."""
    if budget is not None:
        return max(5, budget // TOKENS_PER_LINE)
    return None if everything else LINES


def screen(kernels: Sequence[Explanation], *, width: int = WIDTH, lines: int | None = LINES) -> str:
    """The kernels, the one with the most time first; what does not fit is said in a line.

    Args:
        kernels: every launch.
        width: columns.
        lines: rows; None for no limit.
    """
    found = words.groups(tuple(kernels))
    if not found:
        return "The input holds no kernel."
    room = lines if lines is not None else 1 << 30
    out: list[str] = []
    for number, group in enumerate(found):
        more = len(found) - number - 1
        left = room - len(out) - (1 if more else 0)
        block = list(_fitting(group, width, left, first=number == 0))
        if not block:
            what, them = (f"{more + 1} more kernels", "them") if more else ("1 more kernel", "it")
            out.append(_cut(f"{what}: --top {len(found)} or --kernel NAME shows {them}.", width))
            break
        out += block
    return "\n".join(out)


def _fitting(group: Group, width: int, left: int, *, first: bool) -> Iterator[str]:
    """The fullest form of a kernel that fits the lines left; nothing if none does."""
    for findings, facts, places in ((3, 2, 2), (3, 1, 1), (2, 1, 1), (2, 0, 1), (1, 0, 1), (1, 0, 0)):
        block = list(_block(group, width, findings, facts, places))
        if len(block) <= left:
            yield from block
            return
    if first:
        yield from list(_block(group, width, 1, 0, 0))[: max(1, left)]
    elif left >= 1:
        yield _line(group, width)


def _line(group: Group, width: int) -> str:
    kernel = group.longest
    what = (
        f"{kernel.findings[0].cause} {100 * kernel.findings[0].saves:.0f} %"
        if kernel.findings
        else "at its limit"
        if kernel.at_limit
        else "–"
    )
    return _cut(f"{words.duration(kernel):>9}  {words.name(kernel, width - 40)}: {what}", width)


def _block(group: Group, width: int, findings: int, facts: int, places: int) -> Iterator[str]:
    kernel = group.longest
    times = f", {group.launches} launches, the longest:" if group.launches > 1 else ""
    yield _cut(f"{words.name(kernel, width - 30)}  {words.duration(kernel)}{times}", width)
    trust = kernel.trust if places else kernel.trust[:1]
    for sentence in trust[:3]:
        yield from _wrapped(sentence, width, "  ! ", "    ")
    for number, finding in enumerate(kernel.findings[:findings], 1):
        yield from _finding(number, finding, width, facts, places)
    rest = kernel.findings[findings:]
    if rest:
        yield from _wrapped(
            "also: " + ", ".join(f"{one.cause} {100 * one.saves:.0f} %" for one in rest), width, "  ", "  "
        )
    end = words.conclusion(kernel)
    if end:
        yield from _wrapped(end, width, "  ", "  ")


def _finding(number: int, finding: Finding, width: int, facts: int, places: int) -> Iterator[str]:
    yield _cut(f"  {number}. {finding.cause}: saves {words.saved(finding)}", width)
    yield from _wrapped(finding.change, width, "     ", "     ")
    for where in finding.places[:places]:
        yield _cut(f"     at {words.place_with_code(where)} ({100 * where.share:.0f} %)", width)
    for item in finding.evidence[:facts]:
        yield _cut(f"     {words.fact(item)}", width)


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=then, break_long_words=True)


def _cut(text: str, width: int) -> str:
    flat = " ".join(text.split("\n"))
    return flat if len(flat) <= width else flat[: width - 1] + "…"
