"""An explanation as Markdown, for an issue or a language model; foreign text is fenced off as code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gemmprof.base.printable import visible
from gemmprof.model import Finding
from gemmprof.reports.explanations import words
from gemmprof.reports.explanations.words import Explained

LETTERS_PER_TOKEN = 3.2  # of this kind of text; on the careful side for the tokenisers of today


def document(found: Sequence[Explained], *, budget: int | None = None) -> str:
    """Families in their order, within a budget of tokens if one is given."""
    if not found:
        return "The input holds no kernel.\n"
    forms = ((8, 4, 5, 6), (5, 3, 3, 3), (3, 2, 2, 2), (2, 1, 1, 1), (1, 0, 1, 1), (1, 0, 0, 1))
    limit = None if budget is None else int(budget * LETTERS_PER_TOKEN)
    text = ""
    for findings, facts, places, trust in forms:
        parts = ["\n".join(_kernel(one, findings, facts, places, trust)) for one in found]
        text = "\n\n".join(parts) + "\n"
        if limit is None or len(text) <= limit:
            return text
    kept: list[str] = []
    for part in parts:
        if sum(map(len, kept)) + len(part) + 60 > (limit or 0) and kept:
            break
        kept.append(part)
    left = len(parts) - len(kept)
    more = f"{left} more {'family is' if left == 1 else 'families are'} left out."
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


def _kernel(one: Explained, findings: int, facts: int, places: int, trust: int) -> Iterator[str]:
    kernel = one.explanation
    times = f", the longest of {one.launches} launches" if one.launches > 1 else ""
    name = f"{one.family.id} " if one.family is not None else ""
    yield f"## {name}{code(one.label)}"
    yield ""
    yield f"{words.duration(kernel)} under the profiler{times}{f'; {one.owner}' if one.owner else ''}."
    if kernel.trust[:trust]:
        yield ""
        yield from (f"> {_plain(sentence)}  " for sentence in kernel.trust[:trust])
    for number, (finding, *ways) in enumerate(kernel.losses[:findings], 1):
        yield ""
        yield from _finding(number, finding, facts, places)
        yield from (f"   - {_plain(way)}" for way in words.other_ways(ways, whole=facts > 1))
    if rest := [one for one, *_ in kernel.losses[findings:]]:
        yield ""
        yield f"Also: {words.named(rest)}."
    if little := words.small(kernel):
        yield ""
        yield little
    if places and (other := words.others(kernel)):
        yield ""
        yield _plain(other)
    end = words.conclusion(kernel)
    if end:
        yield ""
        yield end


def _finding(number: int, finding: Finding, facts: int, places: int) -> Iterator[str]:
    saves = f"saves {words.saved(finding)} of its time"
    yield f"{number}. **{finding.cause}** {saves}. {_plain(finding.change)}"
    if ways := words.ways(finding):
        yield f"   - {_plain(ways)}"
    for where in finding.places[:places]:
        inlined = f" (inlined {', '.join(map(code, where.inlined))})" if where.inlined else ""
        shown = where.text or where.sass
        text = f": {code(shown)}" if shown and where.line is not None else ""
        yield f"   - at {code(words.place(where))}{inlined}{text}, {100 * where.share:.0f} %"
    if facts and finding.evidence:
        yield "   - " + "; ".join(_plain(words.fact(item)) for item in finding.evidence[:facts])


def _plain(text: str) -> str:
    """Our own sentences: names of metrics and of other things with underscores in them are code, the rest stays."""
    parts = re.split(r"(\w*_[\w.]*\w)", visible(text))
    return "".join(
        code(part) if odd % 2 else re.sub(r"([\\*<>|\[\]_`])", r"\\\1", part)
        for odd, part in enumerate(parts)
    )
