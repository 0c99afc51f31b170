"""Source and SASS as two listings of rows that a template can print: what to show, how hot it is, what links to what.

A page stays small whatever the kernel's size: instructions and lines beyond a budget are left out, the coldest first,
and a row says how many are missing at each place. Code of a toolkit's header counts against the user's own line that
it was inlined into.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from markupsafe import Markup

from gemmprof.analysis.sections.by_line import base_name, is_users
from gemmprof.analysis.sections.source_view import Counters, CudaLine, SourceView
from gemmprof.model import CodePlace
from gemmprof.reports.pages.code_columns import Cells, Column, Mix, branch, columns_of, mix_of
from gemmprof.reports.pages.code_data import CodeData, code_data

SASS_BUDGET = 2200  # most SASS rows of a page
SOURCE_BUDGET = 900  # most source rows of a page
MARGIN = 4  # source lines shown before the first and after the last line that has instructions
HOTTEST = 8
COLD_PERCENT = 0.3  # lines with a smaller share of the samples are not among the hottest
MIX_FROM_PERCENT = 0.2  # from this share of the samples on, a row shows why it waits

NO_CELLS = Markup("")

Item = TypeVar("Item")


class Row(NamedTuple):
    """One row of a listing; a tuple, because a page has thousands.

    Attributes:
        anchor: id of the row, for permanent links and branches; '' for rows that nothing leads to.
        number: line number or offset in the function.
        code: the text, untrusted; of a branch what stands before its target.
        share: per cent of the samples, None if nothing was sampled here; of a user's line with what was inlined there.
        inlined: the part of ``share`` that code of headers inlined into this line makes, None if there is none.
        cells: the cells of the listing's columns, as markup: a page has tens of thousands, and they are numbers.
        mix: why it waits, None for rows with few samples.
        flags: short remarks: conflicts, uncoalesced sectors, spills.
        target: anchor of the instruction that a branch leads to, ''.
        target_text: the branch's target as an offset in the function.
        rest: what stands behind the target.
        access: what an instruction does to memory, in words.
        left_out: above 0 for a row that stands for this many left-out ones.
    """

    number: str
    code: str
    share: float | None = None
    inlined: float | None = None
    cells: Markup = NO_CELLS
    mix: Mix | None = None
    flags: tuple[str, ...] = ()
    anchor: str = ""
    target: str = ""
    target_text: str = ""
    rest: str = ""
    access: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class File:
    """The listing of one source file; ``own``: the user's, not a toolkit's header."""

    name: str
    path: str
    rows: tuple[Row, ...]
    with_text: bool
    own: bool = True


@dataclass(frozen=True, slots=True)
class Hot:
    """A line among the hottest, or an instruction where there are no lines. ``inlined``: see `Row`."""

    anchor: str
    place: str
    code: str
    share: float | None
    inlined: float | None
    executed: int | None
    mix: Mix | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that the section prints."""

    hottest: tuple[Hot, ...]
    files: tuple[File, ...]
    sass: tuple[Row, ...]
    columns: tuple[Column, ...]
    instructions: int
    samples: int | None
    interval_cycles: int | None
    data: CodeData
    """The same for the page's script, whole: the rows here are what is read without it, and printed."""
    by_line: bool
    """False where the report has no line information: the hottest are instructions then."""
    anchors: Mapping[tuple[str, int] | int, str] = field(default_factory=dict)
    """Id of the row of a line (file, line) or of an instruction (absolute address)."""

    def anchor_of(self, place: CodePlace) -> str:
        """Id of the row of a finding's place, '' if the page does not show it."""
        if place.file is not None and place.line is not None:
            return self.anchors.get((place.file, place.line), "")
        return self.anchors.get(place.address, "") if place.address is not None else ""


class _Rolled:
    """Samples of each line with those of the header code that was inlined into it."""

    def __init__(self, view: SourceView) -> None:
        self.samples: dict[tuple[str, int], int] = {}
        self.stalls: dict[tuple[str, int], dict[str, int]] = {}
        for instruction, own in zip(view.sass, view.own_lines, strict=True):
            if own is None:
                continue
            counters = instruction.counters
            self.samples[own] = self.samples.get(own, 0) + (counters.samples or 0)
            if counters.stalls:
                sums = self.stalls.setdefault(own, {})
                for reason, samples in counters.stalls.items():
                    sums[reason] = sums.get(reason, 0) + samples

    def of(self, view: SourceView, line: CudaLine) -> tuple[float | None, float | None, Mapping[str, int]]:
        """Share, the inlined part of it, and the stalls of a line; a header's line keeps its own."""
        total, own = view.totals.samples, line.counters.samples
        if own is None or not total:
            return None, None, line.counters.stalls
        samples = self.samples.get((line.file, line.line), 0) if is_users(line.file) else own
        inlined = 100.0 * (samples - own) / total
        stalls = self.stalls.get((line.file, line.line), {}) if samples > own else line.counters.stalls
        return 100.0 * samples / total, inlined if inlined >= 0.05 else None, stalls


def listing(view: SourceView) -> Listing:
    """Choose and prepare the rows of both listings."""
    heat: dict[str, tuple[bool, int]] = {}
    for line in view.lines:
        own, samples = heat.get(line.file, (is_users(line.file), 0))
        heat[line.file] = own, samples + (line.counters.samples or 0)
    files = sorted(heat, key=lambda path: heat[path], reverse=True)
    names = _anchor_names(files)
    rolled = _Rolled(view)
    columns = tuple(column for column in columns_of(item.counters for item in view.sass) if column.on)
    cells = Cells(columns)
    sass = tuple(_sass(view, cells))
    budget = SOURCE_BUDGET // max(len(files), 1)
    shown = tuple(_file(view, path, names[path], budget, cells, rolled) for path in files)
    anchors: dict[tuple[str, int] | int, str] = {
        (file.path, int(row.number)): row.anchor for file in shown for row in file.rows if row.anchor
    }
    kept = {row.anchor for row in sass}
    anchors.update((item.address, name) for item in view.sass if (name := _sass_anchor(item.offset)) in kept)
    return Listing(
        hottest=tuple(_hottest(view, anchors, rolled)),
        files=shown,
        sass=sass,
        columns=columns,
        instructions=len(view.sass),
        samples=view.totals.samples,
        interval_cycles=view.sampling_interval_cycles,
        data=code_data(view, names),
        by_line=bool(view.lines),
        anchors=anchors,
    )


def _anchor_names(files: Sequence[str]) -> dict[str, str]:
    """What the ids of each file's rows begin with: letters, digits and dashes, different for each file."""
    names: dict[str, str] = {}
    for path in files:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", base_name(path))[:40].strip("-") or "file"
        count = sum(name == slug or name.startswith(f"{slug}--") for name in names.values())
        names[path] = f"{slug}--{count + 1}" if count else slug
    return names


def _sass_anchor(offset: int) -> str:
    return f"sass-{offset:04x}"


def _remarks(counters: Counters) -> tuple[str, ...]:
    """What is wrong at this place, in a word or two each."""
    flags = []
    if counters.shared_excess and counters.shared_ideal and counters.shared_wavefronts:
        flags.append(f"{counters.shared_wavefronts / counters.shared_ideal:.1f}× wavefronts")
    if counters.global_excess and counters.global_ideal and counters.global_sectors:
        flags.append(f"{counters.global_sectors / counters.global_ideal:.1f}× sectors")
    if counters.local_sectors:
        flags.append("local memory")
    return tuple(flags)


def _hottest(
    view: SourceView, anchors: Mapping[tuple[str, int] | int, str], rolled: _Rolled
) -> Iterator[Hot]:
    if not view.lines:
        for position in view.hottest_sass[:HOTTEST]:
            item = view.sass[position]
            share = view.share(item.counters)
            if (share or 100.0) < COLD_PERCENT:
                break
            place, code = f"0x{item.offset:04x}", item.sass.strip()
            mix, flags = mix_of(item.counters.stalls), _remarks(item.counters)
            anchor = anchors.get(item.address, "")
            yield Hot(anchor, place, code, share, None, item.counters.executed, mix, flags)
        return
    ranked = [
        (rolled.of(view, view.lines[position]), view.lines[position]) for position in view.hottest_lines
    ]
    if any(is_users(line.file) for _, line in ranked):
        ranked = [item for item in ranked if is_users(item[1].file)]
    ranked.sort(key=lambda item: -(item[0][0] or 0.0))
    for (share, inlined, stalls), line in ranked[:HOTTEST]:
        if (share or 100.0) < COLD_PERCENT:
            break
        yield Hot(
            anchors.get((line.file, line.line), ""),
            f"{base_name(line.file)}:{line.line}",
            line.text.strip(),
            share,
            inlined,
            line.counters.executed,
            mix_of(stalls),
            _remarks(line.counters),
        )


def _file(view: SourceView, path: str, name: str, budget: int, cells: Cells, rolled: _Rolled) -> File:
    known: dict[int, CudaLine] = {line.line: line for line in view.lines if line.file == path}
    empty = Markup("<td></td>") * len(cells.columns)
    text = view.files.get(path, "")

    def row(number: int, code: str) -> Row:
        line = known.get(number)
        if line is None:
            return Row(str(number), code, cells=empty)
        share, inlined, stalls = rolled.of(view, line)
        return Row(
            str(number),
            code,
            share,
            inlined,
            cells.of(line.counters),
            mix=mix_of(stalls) if (share or 0.0) >= MIX_FROM_PERCENT else None,
            flags=_remarks(line.counters),
            anchor=f"{name}-{number}",
        )

    own = is_users(path)
    if not text:
        rows = [row(number, line.text) for number, line in sorted(known.items())]
        return File(base_name(path), path, tuple(rows[:budget]), with_text=False, own=own)
    lines = text.split("\n")
    first, last = max(1, min(known) - MARGIN), min(len(lines), max(known) + MARGIN)
    numbers = list(range(first, last + 1))
    kept = _keep(
        [
            (number in known, known[number].counters.samples or 0 if number in known else 0)
            for number in numbers
        ],
        budget,
    )
    rows = []
    for keep, run in _runs(numbers, kept):
        if keep:
            rows += [row(number, lines[number - 1].rstrip("\r")) for number in run]
        else:
            rows.append(Row("", "", left_out=len(run)))
    return File(base_name(path), path, tuple(rows), with_text=True, own=own)


def _sass(view: SourceView, cells: Cells) -> Iterator[Row]:
    kept = _keep(
        [(bool(item.counters.executed), item.counters.samples or 0) for item in view.sass], SASS_BUDGET
    )
    shown = {item.offset for item, keep in zip(view.sass, kept, strict=True) if keep}
    for keep, run in _runs(view.sass, kept):
        if not keep:
            yield Row("", "", left_out=len(run))
            continue
        for item in run:
            counters = item.counters
            share = view.share(counters)
            before, target, rest = branch(item.sass.strip(), item.address, item.offset, shown)
            yield Row(
                f"{item.offset:04x}",
                before,
                share,
                cells=cells.of(counters),
                mix=mix_of(counters.stalls) if (share or 0.0) >= MIX_FROM_PERCENT else None,
                flags=_remarks(counters),
                anchor=_sass_anchor(item.offset),
                target="" if target is None else _sass_anchor(target),
                target_text="" if target is None else f"0x{target:04x}",
                rest=rest,
                access=item.access,
            )


def _keep(heat: Sequence[tuple[bool, int]], budget: int) -> list[bool]:
    """Which rows to show: all if they fit, else the hottest with two rows around each."""
    if len(heat) <= budget:
        return [True] * len(heat)
    kept = [False] * len(heat)
    count = 0
    for position in sorted(range(len(heat)), key=lambda place: heat[place], reverse=True):
        for near in range(max(0, position - 2), min(len(heat), position + 3)):
            if not kept[near]:
                kept[near] = True
                count += 1
        if count >= budget:
            break
    return kept


def _runs(items: Sequence[Item], kept: Sequence[bool]) -> Iterator[tuple[bool, list[Item]]]:
    """Consecutive items that are all kept or all left out."""
    run: list[Item] = []
    for position, item in enumerate(items):
        if run and kept[position] != kept[position - 1]:
            yield kept[position - 1], run
            run = []
        run.append(item)
    if run:
        yield kept[len(items) - 1], run
