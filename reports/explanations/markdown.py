"""An explanation as Markdown, for an issue or a language model; foreign text is fenced off as code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gemmprof.model import Explanation, Finding
from gemmprof.reports.explanations import words
from gemmprof.reports.formatting import visible

LETTERS_PER_TOKEN = 3.2
"""Of this kind of text; on the careful side for the tokenisers of today."""


def document(kernels: Sequence[Explanation], *, budget: int | None = None) -> str:
    """The kernels, the one with the most time first, within a budget of tokens if one is given."""
    found = words.groups(tuple(kernels))
    if not found:
        return "The input holds no kernel.\n"
    forms = ((8, 4, 5, 6), (5, 3, 3, 3), (3, 2, 2, 2), (2, 1, 1, 1), (1, 0, 1, 1), (1, 0, 0, 1))
    limit = None if budget is None else int(budget * LETTERS_PER_TOKEN)
    text = ""
    for findings, facts, places, trust in forms:
        parts = [
            "\n".join(_kernel(group.longest, group.launches, findings, facts, places, trust))
            for group in found
        ]
        text = "\n\n".join(parts) + "\n"
        if limit is None or len(text) <= limit:
            return text
    kept: list[str] = []
    for part in parts:
        if sum(map(len, kept)) + len(part) + 60 > (limit or 0) and kept:
            break
        kept.append(part)
    left = len(parts) - len(kept)
    more = f"{left} more {'kernel is' if left == 1 else 'kernels are'} left out."
    end = f"\n\n{more}\n" if left else "\n"
    return ("\n\n".join(kept) + end)[:limit]


def code(text: str) -> str:
    """Foreign text as inline code that it cannot leave: with a fence longer than any in it."""
    flat = visible(" ".join(text.split()))
    if not flat:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def _kernel(
    kernel: Explanation, launches: int, findings: int, facts: int, places: int, trust: int
) -> Iterator[str]:
    times = f", the longest of {launches} launches" if launches > 1 else ""
    yield f"## {code(words.name(kernel, 120))}"
    yield ""
    yield f"{words.duration(kernel)} under the profiler{times}."
    if kernel.trust[:trust]:
        yield ""
        yield from (f"> {_plain(sentence)}  " for sentence in kernel.trust[:trust])
    for number, finding in enumerate(kernel.findings[:findings], 1):
        yield ""
        yield from _finding(number, finding, facts, places)
    rest = kernel.findings[findings:]
    if rest:
        yield ""
        yield "Also: " + ", ".join(f"{one.cause} {100 * one.saves:.0f} %" for one in rest) + "."
    end = words.conclusion(kernel)
    if end:
        yield ""
        yield end


def _finding(number: int, finding: Finding, facts: int, places: int) -> Iterator[str]:
    yield f"{number}. **{finding.cause}** saves {words.saved(finding)} of its time. {_plain(finding.change)}"
    for where in finding.places[:places]:
        inlined = f" (inlined {', '.join(map(code, where.inlined))})" if where.inlined else ""
        shown = where.text or where.sass
        text = f": {code(shown)}" if shown and where.line is not None else ""
        yield f"   - at {code(words.place(where))}{inlined}{text}, {100 * where.share:.0f} %"
    if facts and finding.evidence:
        yield "   - " + "; ".join(_plain(words.fact(item)) for item in finding.evidence[:facts])


def _plain(text: str) -> str:
    """Our own sentences, which may quote metric names: underscores and angles stay what they are."""
    return re.sub(r"([\\*<>|\[\]_])", r"\\\1", visible(text))
