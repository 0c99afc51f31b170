"""What the source page's script draws from: the code of a kernel with every counter of every instruction, packed.

A kernel may have twenty thousand instructions and thirty counters: a list of values is one text in which a run of equal
values stands once. Lines get their figures in the script, as sums over their instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Annotated

from gemmprof.analysis.explanation.code.live import live_in
from gemmprof.analysis.inputs.names import unmangled
from gemmprof.analysis.sections import warp_states
from gemmprof.analysis.sections.by_line import base_name, is_users
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.base.documents import Part
from gemmprof.reports.pages.code_columns import COLOURS, Column, branch, columns_of

CONTEXT = 3  # lines shown around those that have instructions, in a file that is not the user's
# A longer file of the user's is cut as a header is: 2,000 lines are what a page is promised to hold.
WHOLE_FILE = 4000


class HeatData(Part, frozen=True):
    """A counter that the code may be coloured by."""

    key: Annotated[str, "identifier, ``stall:REASON`` for samples of one stall reason"]
    title: Annotated[str, "heading"]
    tip: Annotated[str, "what it counts, and its formula"]
    values: Annotated[str, "of each instruction, packed"]
    over: Annotated[str, "the counter that it is divided by, '' for none"] = ""
    most: Annotated[bool, "of several instructions the largest counts, not the sum"] = False
    colour: Annotated[str, "of a stall reason: its group's colour"] = ""


class FileData(Part, frozen=True):
    """The lines of one source file that are shown."""

    name: str
    path: str
    anchor: Annotated[str, "what the ids of its lines begin with"]
    own: Annotated[bool, "the user's own, not a toolkit's header"]
    with_text: bool
    numbers: Annotated[str, "line numbers, packed; each less the one before"]
    code: tuple[str, ...]


class CodeData(Part, frozen=True):
    """All that the script needs of one kernel."""

    heats: tuple[HeatData, ...]
    files: tuple[FileData, ...]
    sass: Annotated[tuple[str, ...], "text of each instruction; of a branch the target is an offset"]
    offsets: Annotated[str, "in the function, packed; each less the one before"]
    file: Annotated[str, "index of each instruction's file, -1 for none, packed"]
    line: Annotated[str, "its line, packed"]
    own_file: Annotated[str, "the user's file that it counts against, packed"]
    own_line: Annotated[str, "its line there, packed"]
    jumps: Annotated[tuple[tuple[int, int], ...], "branches: index of the instruction and of its target"]
    access: Annotated[tuple[str, ...], "what an instruction may do to memory"]
    accesses: Annotated[str, "which of them each does, packed"]
    samples: int | None
    inlined: Annotated[
        tuple[tuple[tuple[int, int, str], ...], ...],
        "calls that were inlined into one another, innermost first: file, line, and the function that was called",
    ]
    chain: Annotated[str, "which of them each instruction came through, packed"]
    ptx: Annotated[str, "line of each instruction in the PTX, which is the last file; packed, '' without"] = (
        ""
    )


def code_data(view: SourceView, anchors: Mapping[str, str]) -> CodeData:
    """Pack a view.

    Args:
        view: the code with its counters.
        anchors: what the ids of each file's lines begin with, by path; files come in this order.
    """
    index = {path: place for place, path in enumerate(anchors)}
    own = view.own_lines
    at = {item.offset: item.index for item in view.sass}
    texts, jumps = [], []
    for item in view.sass:
        before, target, rest = branch(item.sass.strip(), item.address, item.offset, at)
        texts.append(before if target is None else f"{before}0x{target:04x}{rest}")
        if target is not None:
            jumps.append((item.index, at[target]))
    calls = view.inlined
    chains = {chain: place for place, chain in enumerate(dict.fromkeys(calls))}
    access = list(dict.fromkeys(item.access for item in view.sass))
    number_of = {words: place for place, words in enumerate(access)}
    ptx, from_ptx = view.ptx if view.lines else ((), ())
    files = [_file(view, path, anchor) for path, anchor in anchors.items()]
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
        own_file=packed(-1 if place is None else index.get(place[0], -1) for place in own),
        own_line=packed(0 if place is None else place[1] for place in own),
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
    columns = columns_of(counters)
    for column in columns:
        yield _heat(column, packed(int(column.counted(one) or 0) for one in counters))
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


def _heat(column: Column, values: str) -> HeatData:
    return HeatData(column.key, column.title, column.how, values, over=column.over)


def _file(view: SourceView, path: str, anchor: str) -> FileData:
    with_code = [line.line for line in view.lines if line.file == path]
    text = view.files.get(path, "")
    lines = text.split("\n")
    own = is_users(path)
    if not text:
        numbers = with_code
        code = [line.text for line in view.lines if line.file == path]
    else:
        whole = own and len(lines) <= WHOLE_FILE
        numbers = list(range(1, len(lines) + 1)) if whole else _around(with_code, len(lines))
        code = [lines[n - 1].rstrip("\r") for n in numbers]
    return FileData(base_name(path), path, anchor, own, bool(text), _steps(numbers), tuple(code))


def _around(lines: Iterable[int], count: int) -> list[int]:
    """These lines, of so many, with some before and behind each."""
    near = {line + step for line in lines if line for step in range(-CONTEXT, CONTEXT + 1)}
    return sorted(line for line in near if 1 <= line <= count)


def packed(values: Iterable[int]) -> str:
    """``3,0x4,1``: the values, a run of equal ones as value and length."""
    runs = ((value, sum(1 for _ in run)) for value, run in groupby(values))
    return ",".join(f"{value}" if count == 1 else f"{value}x{count}" for value, count in runs)


def _steps(values: Iterable[int]) -> str:
    last = 0
    steps = []
    for value in values:
        steps.append(value - last)
        last = value
    return packed(steps)
