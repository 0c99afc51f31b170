"""Two reports' code in one page: source and SASS aligned, with what each line cost before and after.

Samples of two launches are no unit: each is sampled at its own rate. So a row has its share of the samples and the
time that this share is of its launch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby, takewhile
from typing import NamedTuple

from gemmprof import metrics
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.reading.lookup import is_disassembled
from gemmprof.analysis.reading.report import one_launch
from gemmprof.analysis.sections.by_line import base_name, is_users
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.model import NotCollected
from gemmprof.reports import sentences
from gemmprof.reports.pages.environment import document, filled

MOST_KERNELS = 8  # on one page; the first pairs of the comparison
CONTEXT = 3  # rows shown around what changed or is hot
HOT_PERCENT = 1.0  # share of the samples from which a row is shown whether it changed or not
MOVED = 0.02  # of the time before: a row that gained or lost more is marked
# Beyond this many rows a part of the cold ones is left out even where they changed.
MOST_ROWS = 1500

# Two codes of more rows are aligned by what is rare in them: with every row it would take the square of the time, and
# 8,400 instructions a side take 4 s of it.
LONG = 10_000

_OPERANDS = re.compile(r"\b(?:U?R|U?P)\d+\b|0x[0-9a-f]+|\.reuse|`\(\S+\)")


class Cost(NamedTuple):
    """A line or instruction on one side: where it stands, share of the samples in per cent, time in ns, executions."""

    place: str
    share: float | None = None
    time: float | None = None
    executed: int | None = None


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A row of the page; ``left_out`` above 0: it stands for so many rows that are cold and the same.

    ``kind`` is '' for the same text on both sides, ``old`` or ``new`` for what one side alone has.
    """

    kind: str = ""
    text: str = ""
    before: Cost | None = None
    after: Cost | None = None
    moved: bool = False
    left_out: int = 0
    all_same: bool = True  # of the rows left out: whether each is the same on both sides

    @property
    def change(self) -> float | None:
        """Time gained (+) or lost (-) in ns; None where neither side was sampled."""
        before, after = (None if cost is None else cost.time for cost in (self.before, self.after))
        return None if before is None and after is None else (after or 0.0) - (before or 0.0)

    @property
    def share(self) -> float:
        """The larger of its shares, per cent."""
        return max((cost.share or 0.0 for cost in (self.before, self.after) if cost is not None), default=0.0)


class DiffPart(NamedTuple):
    """One file, or the SASS."""

    title: str
    rows: tuple[DiffRow, ...]
    moved: tuple[DiffRow, ...]


_Side = list[tuple[str, Cost]]  # lines of text of one side with their costs


def diff_page(outcome: Outcome) -> str:
    """The page of a comparison: of each pair its verdict, its source and its SASS side by side."""
    found = list(pairs_of(outcome))
    kernels = [(compared, parts) for compared, parts in found if parts]
    without = [compared.match.title for compared, parts in found if not parts]
    left_out = len(outcome.kernels) - len(kernels) - len(without)
    given = {"outcome": outcome, "sentences": sentences, "kernels": kernels, "without": without}
    article = filled("code_diff.html", **given, left_out=left_out)
    return document(f"{outcome.before} → {outcome.after}", [article])


def pairs_of(outcome: Outcome) -> Iterator[tuple[Compared, tuple[DiffPart, ...]]]:
    """The first pairs with their code aligned; without parts where nothing was counted by instruction."""
    shown = 0
    for compared in outcome.kernels:
        match = compared.match
        if match.before is None or match.after is None or shown >= MOST_KERNELS:
            continue
        before, after = (_read(record.place) for record in (match.before, match.after))
        found = tuple(parts(before, after)) if before is not None and after is not None else None
        shown += found is not None
        yield compared, found or ()


def _read(place: tuple[str, int] | None) -> KernelAnalysis | None:
    """The launch at a place with its code; None without one, or without counters by instruction."""
    found = None if place is None else one_launch(*place, source=True, units=True)
    kernel = None if found is None else analyse(found)
    return None if kernel is None or isinstance(kernel.get(SourceView), NotCollected) else kernel


def parts(before: KernelAnalysis, after: KernelAnalysis) -> Iterator[DiffPart]:
    """The user's files that both sides have, the one with most samples first, then the SASS."""
    views = [kernel.get(SourceView) for kernel in (before, after)]
    old, new = (view for view in views if isinstance(view, SourceView))
    times = [kernel.profile.number(metrics.DURATION) for kernel in (before, after)]
    for title, paths in _files(old, new):
        sides = [_source(view, path, time) for view, path, time in zip((old, new), paths, times, strict=True)]
        yield _part(title, sides[0], sides[1], times[0], str.strip)
    if all(is_disassembled(item.sass for item in view.sass) for view in (old, new)):
        # Compared without registers and constants, which move with every change elsewhere.
        shape = partial(_OPERANDS.sub, "")
        yield _part("SASS", _sass(old, times[0]), _sass(new, times[1]), times[0], shape)


def _files(old: SourceView, new: SourceView) -> list[tuple[str, tuple[str, str]]]:
    """Title and paths of the user's files with code on both sides, the one with most samples first.

    Files of one name are one, of several those whose folders agree the furthest; where none is, the hottest of each
    side are taken for the same under another name.
    """
    samples: list[dict[str, int]] = []
    for view in (old, new):
        found: dict[str, int] = {}
        for (path, _), code in view.by_own_line.items():
            if is_users(path) and view.files.get(path):
                found[path] = found.get(path, 0) + sum(one.counters.samples or 0 for one in code)
        samples.append(dict(sorted(found.items(), key=lambda pair: -pair[1])))
    candidates = [
        (_agree(left, right), left, right)
        for right in samples[1]
        for left in samples[0]
        if base_name(left) == base_name(right)
    ]
    pairs: dict[str, str] = {}
    # The longest common end first; of equals the hottest, which come first.
    for _, left, right in sorted(candidates, key=lambda item: -item[0]):
        if right not in pairs and left not in pairs.values():
            pairs[right] = left
    if pairs or not all(samples):
        names = [base_name(path) for path in pairs]
        titles = {path: base_name(path) if names.count(base_name(path)) == 1 else path for path in pairs}
        return [(titles[path], (pairs[path], path)) for path in samples[1] if path in pairs]
    left, right = (next(iter(found)) for found in samples)
    return [(f"{base_name(left)} → {base_name(right)}", (left, right))]


def _agree(left: str, right: str) -> int:
    """How many folders, counted from the end, two paths have in common."""
    folders = [re.split(r"[\\/]", path)[::-1] for path in (left, right)]
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*folders, strict=False)))


def _source(view: SourceView, path: str, time: float | None) -> _Side:
    own = {line: code for (file, line), code in view.by_own_line.items() if file == path}
    samples = {line: sum(one.counters.samples or 0 for one in code) for line, code in own.items()}
    executed = {line.line: line.counters.executed for line in view.lines if line.file == path}
    lines = (line.rstrip("\r") for line in view.files[path].split("\n"))
    return [
        (line, _cost(view, str(number), samples.get(number), time, executed.get(number)))
        for number, line in enumerate(lines, 1)
    ]


def _sass(view: SourceView, time: float | None) -> _Side:
    counted = ((item, item.counters) for item in view.sass)
    return [
        (item.sass.strip(), _cost(view, f"{item.offset:04x}", found.samples, time, found.executed))
        for item, found in counted
    ]


def _cost(
    view: SourceView, place: str, samples: int | None, time: float | None, executed: int | None
) -> Cost:
    if samples is None or not view.totals.samples:
        return Cost(place, executed=executed)
    share = samples / view.totals.samples
    return Cost(place, 100 * share, None if time is None else share * time, executed)


def _part(title: str, old: _Side, new: _Side, time: float | None, key: Callable[[str], str]) -> DiffPart:
    keys = [[key(text) for text, _ in side] for side in (old, new)]
    rows: list[DiffRow] = []
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=max(map(len, keys)) > LONG)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        before, after = old[i:i_end], new[j:j_end]
        if kind == "equal":
            rows += [DiffRow("", text, was, now) for (_, was), (text, now) in zip(before, after, strict=True)]
        else:
            rows += [DiffRow("old", text, before=cost) for text, cost in before]
            rows += [DiffRow("new", text, after=cost) for text, cost in after]
    least = MOVED * time if time else None
    rows = [replace(row, moved=least is not None and abs(row.change or 0.0) >= least) for row in rows]
    moved = sorted((row for row in rows if row.moved), key=lambda row: -abs(row.change or 0.0))
    return DiffPart(title, tuple(_shortened(rows)), tuple(moved[:6]))


def _shortened(rows: Sequence[DiffRow]) -> Iterator[DiffRow]:
    """What changed or is hot, with some rows around it; the rest is counted."""
    wanted = [at for at, row in enumerate(rows) if row.kind or row.moved or row.share >= HOT_PERCENT]
    if len(wanted) > MOST_ROWS:
        wanted = sorted(sorted(wanted, key=lambda at: -rows[at].share)[:MOST_ROWS])
    kept = {near for at in wanted for near in range(at - CONTEXT, at + CONTEXT + 1)}
    for stays, run in groupby(enumerate(rows), key=lambda item: item[0] in kept):
        found = [row for _, row in run]
        if stays:
            yield from found
        else:
            yield DiffRow(left_out=len(found), all_same=not any(row.kind for row in found))
