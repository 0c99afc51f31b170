"""Source and SASS as two listings of rows that a template can print: what to show, how hot it is, what links to what.

A page stays small whatever the kernel's size: instructions and lines beyond a budget are left out, the coldest first,
and a row says how many are missing at each place. Code of a toolkit's header counts against the user's own line that
it was inlined into.

The page's script draws from the whole code, packed: a kernel may have twenty thousand instructions and thirty counters,
so a list of values is one text in which a run of equal values stands once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from markupsafe import Markup

from gemmprof.analysis.explanation.code.live import live_in
from gemmprof.analysis.figure import formula_of
from gemmprof.analysis.inputs.names import unmangled
from gemmprof.analysis.sections import warp_states
from gemmprof.analysis.sections.by_line import base_name, is_users
from gemmprof.analysis.sections.source_view import OF_AN_INSTRUCTION, Counters, CudaLine, SassLine, SourceView
from gemmprof.base.documents import Part
from gemmprof.base.foreign_files import facts
from gemmprof.reports.formatting import number, percent

# Colour of each group of stall reasons, in the order of a bar.
COLOURS = {
    "memory": "dram",
    "shared": "shared",
    "execution": "sm",
    "synchronisation": "l2",
    "control": "l1",
    "other": "other",
    "issuing": "faint",
}
NOT_HELD_BACK = ("selected", "not_selected")


@dataclass(frozen=True, slots=True)
class Column:
    """One metric that a reader may switch on."""

    key: str  # identifier
    title: str  # heading
    tip: str  # what it counts
    of: str  # the field of `Counters` that its cells show, None where that was not collected
    on: bool = False  # whether it is shown at first
    sums: str = ""  # the field that is summed over instructions, where ``of`` is a ratio
    over: str = ""  # key of the column that the sum is divided by then

    def text(self, counters: Counters) -> str:
        """The cell; empty for nothing, but for executions: 0 of them says something, too."""
        value = getattr(counters, self.of)
        return number(value) if value or (value is not None and self.key == "executed") else ""

    @property
    def how(self) -> str:
        """What it counts and the formula of its cells."""
        return f"{self.tip}: {formula_of(getattr(OF_AN_INSTRUCTION, self.of))}"


COLUMNS = tuple(
    Column(key, title, tip, of, bool(on), sums, over)
    for key, title, tip, of, on, sums, over in facts(__file__, "code_columns.csv")
)


def columns_of(counters: Iterable[Counters]) -> tuple[Column, ...]:
    """The columns that have something to show in at least one row."""
    rows = list(counters)
    return tuple(column for column in COLUMNS if any(getattr(row, column.of) for row in rows))


def cells(columns: Sequence[Column], counters: Counters) -> Markup:
    """The cells of a row: numbers of ours, nothing of the report's text."""
    return Markup("".join(f'<td class="n">{column.text(counters)}</td>' for column in columns))


class Stretch(NamedTuple):
    """A stretch of a stall bar, 0 to 100."""

    colour: str
    start: float
    width: float


class Mix(NamedTuple):
    """Why the samples of a row did not issue: a bar by group, every reason in words, and the main one."""

    parts: tuple[Stretch, ...]
    words: str
    main: str
    main_percent: float | None


def mix_of(stalls: Mapping[str, int]) -> Mix | None:
    """The stall mix of a row; None without samples."""
    total = sum(stalls.values())
    if not total:
        return None
    groups = dict.fromkeys(COLOURS, 0)
    for reason, samples in stalls.items():
        group = warp_states.reason(reason).group
        groups[group if group in groups else "other"] += samples
    parts, start = [], 0.0
    for group, samples in groups.items():
        if samples:
            width = 100.0 * samples / total
            parts.append(Stretch(COLOURS[group], start, width))
            start += width
    ordered = sorted(stalls.items(), key=lambda item: -item[1])
    words = ", ".join(f"{name.replace('_', ' ')} {percent(100 * n / total, 0)}" for name, n in ordered[:6])
    main = next((item for item in ordered if item[0] not in NOT_HELD_BACK), None)
    name, share = (main[0].replace("_", " "), 100.0 * main[1] / total) if main else ("", None)
    return Mix(tuple(parts), words, name, share)


_ADDRESS = re.compile(r"0x([0-9a-f]{5,16})\b")


def branch(item: SassLine, offsets: Container[int]) -> tuple[str, int | None, str]:
    """The text of an instruction before and behind the address that it names, and between them that address as an
    offset in the function (one of ``offsets``); None if it names no instruction of the function.
    """
    text = item.sass.strip()
    for found in _ADDRESS.finditer(text):
        target = int(found.group(1), 16) - (item.address - item.offset)
        if target in offsets:
            return text[: found.start()], target, text[found.end() :]
    return text, None, ""


SASS_BUDGET = 2200  # most SASS rows of a page
SOURCE_BUDGET = 900  # most source rows of a page
MARGIN = 4  # source lines shown before the first and after the last line that has instructions
HOTTEST = 8
COLD_PERCENT = 0.3  # lines with a smaller share of the samples are not among the hottest
MIX_FROM_PERCENT = 0.2  # from this share of the samples on, a row shows why it waits
NO_CELLS = Markup("")
Item = TypeVar("Item")


class Row(NamedTuple):
    """One row of a listing; a tuple, because a page has thousands."""

    number: str  # line number or offset in the function
    code: str  # the text, untrusted; of a branch what stands before its target
    # per cent of the samples, None if nothing was sampled here; of a user's line with what was inlined there
    share: float | None = None
    # the part of ``share`` that code of headers inlined into this line makes, None if there is none
    inlined: float | None = None
    # the cells of the listing's columns, as markup: a page has tens of thousands, and they are numbers
    cells: Markup = NO_CELLS
    mix: Mix | None = None  # why it waits, None for rows with few samples
    flags: tuple[str, ...] = ()  # short remarks: conflicts, uncoalesced sectors, spills
    anchor: str = ""  # id of the row, for permanent links and branches; '' for rows that nothing leads to
    target: str = ""  # anchor of the instruction that a branch leads to, ''
    target_text: str = ""  # the branch's target as an offset in the function
    rest: str = ""  # what stands behind the target
    access: str = ""  # what an instruction does to memory, in words
    executed: int | None = None  # how often, of a row among the hottest
    left_out: int = 0  # above 0 for a row that stands for this many left-out ones


class File(NamedTuple):
    """The listing of one source file; ``own``: the user's, not a toolkit's header."""

    name: str
    path: str
    rows: tuple[Row, ...]
    with_text: bool
    own: bool


class Listing(NamedTuple):
    """Everything that the section prints beside the view's own figures."""

    # the lines with most samples, or instructions where there are no lines; numbered as ``file.cu:42``
    hottest: tuple[Row, ...]
    files: tuple[File, ...]
    sass: tuple[Row, ...]
    columns: tuple[Column, ...]
    # the same for the page's script, whole: the rows here are what is read without it, and printed
    data: CodeData
    # id of the row of a line (file, line) or of an instruction (absolute address)
    anchors: Mapping[tuple[str, int] | int, str]


Sampled = tuple[float | None, float | None, Mapping[str, int]]  # share, the inlined part of it, and stalls


def _sampled(view: SourceView, one: CudaLine | SassLine) -> Sampled:
    """Share, the inlined part of it, and the stalls; of a user's line with the header code inlined into it."""
    counters, total = one.counters, view.totals.samples
    if counters.samples is None or not total or not isinstance(one, CudaLine) or not is_users(one.file):
        return view.share(counters), None, counters.stalls
    code = [item.counters for item in view.by_own_line.get((one.file, one.line), ())]
    samples, stalls = sum(item.samples or 0 for item in code), counters.stalls
    if samples > counters.samples:
        sums: Counter[str] = Counter()
        for item in code:
            sums.update(item.stalls)
        stalls = sums
    inlined = 100.0 * (samples - counters.samples) / total
    return 100.0 * samples / total, inlined if inlined >= 0.05 else None, stalls


def listing(view: SourceView) -> Listing:
    """Choose and prepare the rows of both listings."""
    heat: dict[str, tuple[bool, int]] = {}
    for line in view.lines:
        own, samples = heat.get(line.file, (is_users(line.file), 0))
        heat[line.file] = own, samples + (line.counters.samples or 0)
    files = sorted(heat, key=lambda path: heat[path], reverse=True)
    names: dict[str, str] = {}  # what the ids of each file's rows begin with: letters, digits and dashes
    for path in files:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", base_name(path))[:40].strip("-") or "file"
        count = sum(name == slug or name.startswith(f"{slug}--") for name in names.values())
        names[path] = f"{slug}--{count + 1}" if count else slug
    columns = tuple(column for column in columns_of(item.counters for item in view.sass) if column.on)
    sass = tuple(_sass(view, columns))
    budget = SOURCE_BUDGET // max(len(files), 1)
    shown = tuple(_file(view, path, names[path], budget, columns) for path in files)
    anchors: dict[tuple[str, int] | int, str] = {
        (file.path, int(row.number)): row.anchor for file in shown for row in file.rows if row.anchor
    }
    kept = {row.anchor for row in sass}
    anchors.update((item.address, name) for item in view.sass if (name := _sass_anchor(item.offset)) in kept)
    return Listing(tuple(_hottest(view, anchors)), shown, sass, columns, code_data(view, names), anchors)


def _sass_anchor(offset: int) -> str:
    return f"sass-{offset:04x}"


def _hottest(view: SourceView, anchors: Mapping[tuple[str, int] | int, str]) -> Iterator[Row]:
    ranked = [(one, _sampled(view, one)) for one in view.hottest()]
    ranked = [item for item in ranked if is_users(item[0].file)] or ranked
    ranked.sort(key=lambda item: -(item[1][0] or 0.0))
    for one, sampled in ranked[:HOTTEST]:
        if (sampled[0] or 100.0) < COLD_PERCENT:
            break
        anchor = anchors.get((one.file, one.line) if isinstance(one, CudaLine) else one.address, "")
        code, executed = one.text.strip(), one.counters.executed
        yield _row(one.label, code, sampled, one.counters, anchor=anchor, executed=executed)


def _row(
    number: str, code: str, sampled: Sampled, counters: Counters, *, least: float = 0.0, **more: Any
) -> Row:
    """A row with code; from ``least`` per cent of the samples on it says why it waits."""
    share, inlined, stalls = sampled
    mix = mix_of(stalls) if (share or 0.0) >= least else None
    flags = []
    if counters.shared_excess and counters.shared_ideal and counters.shared_wavefronts:
        flags.append(f"{counters.shared_wavefronts / counters.shared_ideal:.1f}× wavefronts")
    if counters.global_excess and counters.global_ideal and counters.global_sectors:
        flags.append(f"{counters.global_sectors / counters.global_ideal:.1f}× sectors")
    if counters.local_sectors:
        flags.append("local memory")
    return Row(number, code, share, inlined, mix=mix, flags=tuple(flags), **more)


def _file(view: SourceView, path: str, name: str, budget: int, columns: Sequence[Column]) -> File:
    known: dict[int, CudaLine] = {line.line: line for line in view.lines if line.file == path}
    empty = Markup("<td></td>") * len(columns)
    text = view.files.get(path, "")

    def row(number: int, code: str) -> Row:
        line = known.get(number)
        if line is None:
            return Row(str(number), code, cells=empty)
        sampled, least = _sampled(view, line), MIX_FROM_PERCENT
        more: dict[str, Any] = {"cells": cells(columns, line.counters), "anchor": f"{name}-{number}"}
        return _row(str(number), code, sampled, line.counters, least=least, **more)

    if text:
        lines = text.split("\n")
        numbers = range(max(1, min(known) - MARGIN), min(len(lines), max(known) + MARGIN) + 1)
        heat = [(n in known, (known[n].counters.samples or 0) if n in known else 0) for n in numbers]
        rows = _shown(numbers, _keep(heat, budget), lambda n: row(n, lines[n - 1].rstrip("\r")))
    else:
        rows = (row(number, line.text) for number, line in sorted(known.items())[:budget])
    return File(base_name(path), path, tuple(rows), bool(text), is_users(path))


def _sass(view: SourceView, columns: Sequence[Column]) -> Iterator[Row]:
    heat = [(bool(item.counters.executed), item.counters.samples or 0) for item in view.sass]
    kept = _keep(heat, SASS_BUDGET)
    shown = {item.offset for item, keep in zip(view.sass, kept, strict=True) if keep}

    def row(item: SassLine) -> Row:
        before, target, rest = branch(item, shown)
        more: dict[str, Any] = {"anchor": _sass_anchor(item.offset), "rest": rest, "access": item.access}
        if target is not None:
            more |= {"target": _sass_anchor(target), "target_text": f"0x{target:04x}"}
        shown_cells, place = cells(columns, item.counters), f"{item.offset:04x}"
        sampled, least = _sampled(view, item), MIX_FROM_PERCENT
        return _row(place, before, sampled, item.counters, least=least, cells=shown_cells, **more)

    return _shown(view.sass, kept, row)


def _keep(heat: Sequence[tuple[bool, int]], budget: int) -> list[bool]:
    """Which rows to show: all if they fit, else the hottest with two rows around each."""
    if len(heat) <= budget:
        return [True] * len(heat)
    kept: set[int] = set()
    for position in sorted(range(len(heat)), key=lambda place: heat[place], reverse=True):
        kept.update(range(max(0, position - 2), min(len(heat), position + 3)))
        if len(kept) >= budget:
            break
    return [place in kept for place in range(len(heat))]


def _shown(items: Sequence[Item], kept: Sequence[bool], row: Callable[[Item], Row]) -> Iterator[Row]:
    """The rows of the items that are kept, and one for each stretch of those that are left out."""
    for keep, run in groupby(zip(kept, items, strict=True), itemgetter(0)):
        found = [item for _, item in run]
        yield from map(row, found) if keep else [Row("", "", left_out=len(found))]


CONTEXT = 3  # lines shown around those that have instructions, in a file that is not the user's
# A longer file of the user's is cut as a header is: 2,000 lines are what a page is promised to hold.
WHOLE_FILE = 4000


class HeatData(Part, frozen=True):
    """A counter that the code may be coloured by."""

    key: str  # identifier, ``stall:REASON`` for samples of one stall reason
    title: str  # heading
    tip: str  # what it counts, and its formula
    values: str  # of each instruction, packed
    over: str = ""  # the counter that it is divided by, '' for none
    most: bool = False  # of several instructions the largest counts, not the sum
    colour: str = ""  # of a stall reason: its group's colour


class FileData(Part, frozen=True):
    """The lines of one source file that are shown."""

    name: str
    path: str
    anchor: str  # what the ids of its lines begin with
    own: bool  # the user's own, not a toolkit's header
    with_text: bool
    numbers: str  # line numbers, packed; each less the one before
    code: tuple[str, ...]


class CodeData(Part, frozen=True):
    """All that the script needs of one kernel."""

    heats: tuple[HeatData, ...]
    files: tuple[FileData, ...]
    sass: tuple[str, ...]  # text of each instruction; of a branch the target is an offset
    offsets: str  # in the function, packed; each less the one before
    file: str  # index of each instruction's file, -1 for none, packed
    line: str  # its line, packed
    own_file: str  # the user's file that it counts against, packed
    own_line: str  # its line there, packed
    jumps: tuple[tuple[int, int], ...]  # branches: index of the instruction and of its target
    access: tuple[str, ...]  # what an instruction may do to memory
    accesses: str  # which of them each does, packed
    samples: int | None
    # calls that were inlined into one another, innermost first: file, line, and the function that was called
    inlined: tuple[tuple[tuple[int, int, str], ...], ...]
    chain: str  # which of them each instruction came through, packed
    ptx: str = ""  # line of each instruction in the PTX, which is the last file; packed, '' without


def code_data(view: SourceView, anchors: Mapping[str, str]) -> CodeData:
    """Pack a view, its files in the order of ``anchors``: what the ids of each one's lines begin with, by path."""
    index = {path: place for place, path in enumerate(anchors)}
    at = {item.offset: item.index for item in view.sass}
    texts, jumps = [], []
    for item in view.sass:
        before, target, rest = branch(item, at)
        texts.append(before if target is None else f"{before}0x{target:04x}{rest}")
        if target is not None:
            jumps.append((item.index, at[target]))
    calls = view.inlined
    chains = {chain: place for place, chain in enumerate(dict.fromkeys(calls))}
    access = list(dict.fromkeys(item.access for item in view.sass))
    number_of = {words: place for place, words in enumerate(access)}
    ptx, from_ptx = view.ptx if view.lines else ((), ())
    files = []
    for path, anchor in anchors.items():
        text, own = view.files.get(path, ""), is_users(path)
        lines = text.split("\n")
        numbers = [line.line for line in view.lines if line.file == path]
        code = [line.text for line in view.lines if line.file == path]
        if text:
            whole = own and len(lines) <= WHOLE_FILE
            numbers = list(range(1, len(lines) + 1)) if whole else _around(numbers, len(lines))
            code = [lines[n - 1].rstrip("\r") for n in numbers]
        files.append(FileData(base_name(path), path, anchor, own, bool(text), _steps(numbers), tuple(code)))
    if from_ptx:
        numbers = _around(from_ptx, len(ptx))
        shown = tuple(ptx[number - 1].rstrip("\r") for number in numbers)
        files.append(FileData("PTX", "PTX", "ptx", False, True, _steps(numbers), shown))
    return CodeData(
        heats=tuple(_heats(view)),
        files=tuple(files),
        sass=tuple(texts),
        offsets=_steps(item.offset for item in view.sass),
        file=packed(index.get(item.file or "", -1) for item in view.sass),
        line=packed(item.line or 0 for item in view.sass),
        own_file=packed(-1 if place is None else index.get(place[0], -1) for place in view.own_lines),
        own_line=packed(0 if place is None else place[1] for place in view.own_lines),
        jumps=tuple(jumps),
        access=tuple(access),
        accesses=packed(number_of[item.access] for item in view.sass),
        samples=view.totals.samples,
        inlined=tuple(
            tuple((index.get(call.file, -1), call.line, unmangled(call.function)) for call in chain)
            for chain in chains
        ),
        chain=packed(chains[chain] for chain in calls),
        ptx=packed(from_ptx),
    )


def _heats(view: SourceView) -> Iterable[HeatData]:
    counters = [item.counters for item in view.sass]
    if view.totals.samples is not None:
        tip = "Warp samples, all stall reasons"
        yield HeatData("samples", "Samples", tip, packed(one.samples or 0 for one in counters))
    for column in columns_of(counters):
        values = packed(int(getattr(one, column.sums or column.of) or 0) for one in counters)
        yield HeatData(column.key, column.title, column.how, values, over=column.over)
    if live := live_in(view):
        tip = "Registers of a thread that hold a value still needed, worked out from the SASS; of a line the most"
        yield HeatData("live", "Live", tip, packed(live), most=True)
    # The most frequent first, as everywhere.
    for name in view.totals.stalls:
        reason = warp_states.reason(name)
        yield HeatData(
            f"stall:{name}",
            name.replace("_", " "),
            reason.meaning,
            packed(one.stalls.get(name, 0) for one in counters),
            colour=COLOURS.get(reason.group, COLOURS["other"]),
        )


def _around(lines: Iterable[int], count: int) -> list[int]:
    """These lines, of so many, with some before and behind each."""
    near = {line + step for line in lines if line for step in range(-CONTEXT, CONTEXT + 1)}
    return sorted(line for line in near if 1 <= line <= count)


def packed(values: Iterable[int]) -> str:
    """``3,0x4,1``: the values, a run of equal ones as value and length."""
    runs = ((value, len(tuple(run))) for value, run in groupby(values))
    return ",".join(f"{value}" if count == 1 else f"{value}x{count}" for value, count in runs)


def _steps(values: Iterable[int]) -> str:
    return packed(value - last for last, value in pairwise([0, *values]))
