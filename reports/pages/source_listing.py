"""Source and SASS as two listings of rows that a template can print: what to show, how hot it is, what links to what.

A page stays small whatever the kernel's size: instructions and lines beyond a budget are left out, the coldest first,
and a row says how many are missing at each place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gemmprof.analysis.by_line import base_name
from gemmprof.analysis.source_view import Counters, CudaLine, SourceView

SASS_BUDGET = 2200
"""Most SASS rows of a page."""
SOURCE_BUDGET = 900
"""Most source rows of a page."""
MARGIN = 4
"""Source lines shown before the first and after the last line that has instructions."""
HOTTEST = 8
COLD_PERCENT = 0.3
"""Lines with a smaller share of the samples are not among the hottest."""

At = Callable[[str | None, int | None], str]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a listing.

    Attributes:
        at: joins source lines and instructions (``file index:line``), '' without line information.
        number: line number or offset in the function.
        code: the text, untrusted.
        share: per cent of the samples, None if nothing was sampled here.
        executed: warp-level executions, None if not collected or not an instruction's line.
        stall: the reason most samples gave, ''.
        flags: short remarks: conflicts, uncoalesced sectors, spills.
        left_out: above 0 for a row that stands for this many left-out ones.
    """

    at: str
    number: str
    code: str
    share: float | None = None
    executed: int | None = None
    stall: str = ""
    flags: tuple[str, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class File:
    """The listing of one source file."""

    name: str
    path: str
    rows: tuple[Row, ...]
    with_text: bool


@dataclass(frozen=True, slots=True)
class Hot:
    """A line among the hottest."""

    at: str
    place: str
    code: str
    share: float | None
    executed: int | None
    stall: str
    stall_share: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that the section prints."""

    hottest: tuple[Hot, ...]
    files: tuple[File, ...]
    sass: tuple[Row, ...]
    instructions: int
    samples: int | None
    interval_cycles: int | None
    by_line: bool
    """False where the report has no line information: the hottest are instructions then."""


def listing(view: SourceView) -> Listing:
    """Choose and prepare the rows of both listings."""
    heat: dict[str, int] = {}
    for line in view.lines:
        heat[line.file] = heat.get(line.file, 0) + (line.counters.samples or 0)
    files = sorted(heat, key=lambda path: heat[path], reverse=True)
    index = {path: place for place, path in enumerate(files)}

    def at(file: str | None, line: int | None) -> str:
        return f"{index[file]}:{line}" if file is not None and line is not None and file in index else ""

    return Listing(
        hottest=tuple(_hottest(view, at)),
        files=tuple(_file(view, path, at, SOURCE_BUDGET // max(len(files), 1)) for path in files),
        sass=tuple(_sass(view, at)),
        instructions=len(view.sass),
        samples=view.totals.samples,
        interval_cycles=view.sampling_interval_cycles,
        by_line=bool(view.lines),
    )


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


def _stall(counters: Counters) -> str:
    """The reason of most samples that held the warp back: it neither issued nor was ready and waited its turn."""
    for reason, samples in counters.stalls.items():
        if reason not in ("selected", "not_selected") and samples:
            return reason.replace("_", " ")
    return ""


def _hottest(view: SourceView, at: At) -> Iterator[Hot]:
    if view.lines:
        for position in view.hottest_lines[:HOTTEST]:
            line = view.lines[position]
            if (view.share(line.counters) or 100.0) < COLD_PERCENT:
                break
            yield _hot(
                view,
                at(line.file, line.line),
                f"{base_name(line.file)}:{line.line}",
                line.text.strip(),
                line.counters,
            )
    else:
        for position in view.hottest_sass[:HOTTEST]:
            item = view.sass[position]
            if (view.share(item.counters) or 100.0) < COLD_PERCENT:
                break
            yield _hot(view, f"s{item.index}", f"0x{item.offset:04x}", item.sass.strip(), item.counters)


def _hot(view: SourceView, at: str, place: str, code: str, counters: Counters) -> Hot:
    stall = _stall(counters)
    samples = counters.stalls.get(stall.replace(" ", "_")) if stall else None
    return Hot(
        at,
        place,
        code,
        view.share(counters),
        counters.executed,
        stall,
        100.0 * samples / counters.samples if samples and counters.samples else None,
        _remarks(counters),
    )


def _file(view: SourceView, path: str, at: At, budget: int) -> File:
    known: dict[int, CudaLine] = {line.line: line for line in view.lines if line.file == path}
    text = view.files.get(path, "")
    if not text:
        rows = [
            _source_row(view, at(path, number), number, line.text, line)
            for number, line in sorted(known.items())
        ]
        return File(base_name(path), path, tuple(rows[:budget]), with_text=False)
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
        if not keep:
            rows.append(Row("", "", "", left_out=len(run)))
            continue
        rows += [
            _source_row(
                view,
                at(path, number) if number in known else "",
                number,
                lines[number - 1].rstrip("\r"),
                known.get(number),
            )
            for number in run
        ]
    return File(base_name(path), path, tuple(rows), with_text=True)


def _source_row(view: SourceView, at: str, number: int, text: str, line: CudaLine | None) -> Row:
    if line is None:
        return Row("", str(number), text)
    counters = line.counters
    return Row(
        at, str(number), text, view.share(counters), counters.executed, _stall(counters), _remarks(counters)
    )


def _sass(view: SourceView, at: At) -> Iterator[Row]:
    kept = _keep(
        [(bool(item.counters.executed), item.counters.samples or 0) for item in view.sass], SASS_BUDGET
    )
    for keep, run in _runs(view.sass, kept):
        if not keep:
            yield Row("", "", "", left_out=len(run))
            continue
        for item in run:
            counters = item.counters
            yield Row(
                at(item.file, item.line) or (f"s{item.index}" if not view.lines else ""),
                f"{item.offset:04x}",
                item.sass.strip(),
                view.share(counters),
                counters.executed,
                _stall(counters),
                _remarks(counters),
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
