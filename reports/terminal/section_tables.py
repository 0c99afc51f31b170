"""The sections of one launch in the terminal: what its page shows, as rows of a name, a value and a remark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gemmprof.analysis.figure import declared
from gemmprof.analysis.occupancy import calculator
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.by_line import Place
from gemmprof.analysis.sections.coalescing import Coalescing
from gemmprof.analysis.sections.divergence import Divergence
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.launch_statistics import Launch
from gemmprof.analysis.sections.memory_chart import MemoryChart
from gemmprof.analysis.sections.roofline import Roofline, RooflinePoint
from gemmprof.analysis.sections.rules import Advice, plain_text
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.spills import Spills
from gemmprof.analysis.sections.timeline import Lane, Timeline
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.base.amounts import (
    bandwidth,
    counted,
    flops,
    number,
    percent,
    ratio,
    significant,
    times,
    traffic,
    wrapped,
)
from gemmprof.base.amounts import occupancy as occupancy_text
from gemmprof.base.printable import visible
from gemmprof.model import NotCollected
from gemmprof.reports.formatting import DASH, dimensions, figure_text
from gemmprof.reports.terminal import columns

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Row = tuple[str, str, str]  # a name, a value, and a remark ('' if none); all may hold untrusted text

MOST = 8  # rows of a list, unless a section is asked for by name
ALL_ROWS = 1000  # of a list that is asked for: more than any launch has

WIDE = 120  # columns of a terminal that shows the whole table of roofline points
MIDDLE = 76  # columns of one that shows what is attainable
ALL = ("FLOP/byte", "ridge", "achieved", "attainable", "reached", "headroom", "bandwidth", "side")
NARROW = ("FLOP/byte", "achieved", "attainable", "reached")
NARROWEST = ("FLOP/byte", "achieved", "reached")


def rows(result: Any, most: int = MOST) -> list[Row]:
    """The rows of one analysis' result; what is not known is left out, what was not collected says how to get it."""
    if isinstance(result, NotCollected):
        return [("not collected", "", f"ncu {result.remedy}")] if result.remedy else []
    writer = _WRITERS.get(type(result))
    found = [row for row in writer(result, most) if row[1] != DASH] if writer is not None else []
    if (missing := getattr(result, "missing", None)) is not None:
        found.append(("partly collected", "", f"the rest: ncu {missing.remedy}"))
    return found


def parts(title: str, result: Any, *, most: int, width: int) -> Iterator[RenderableType]:
    """Title and rows of one analysis, to print; a roofline's points as `gemmprof roofline` has them."""
    points = result.points if isinstance(result, Roofline) else ()
    found = list(_memory_roofs(result)) if points else rows(result, most)
    if not found:
        return
    yield Text(title, style="bold")
    if points:
        yield points_table([("", points)], width=width)
    drawn = [row for row in found if row[1].startswith(SPARKS_BETWEEN)]
    yield rows_table([row for row in found if row not in drawn], width=width)
    if drawn:
        from rich.table import Table

        # Nothing may fold sparklines; what they reach is left out where there is no room.
        table = Table.grid(padding=(0, 1, 0, 0))
        names = max(len(visible(name)) for name, _, _ in drawn)
        shown = 3 if width >= names + SPARK_COLUMNS + 26 else 2
        for name, value, remark in drawn:
            cells = ("  " + visible(name), value, visible(remark))
            table.add_row(*(Text(cell, no_wrap=True) for cell in cells[:shown]))
        yield table
    yield Text()


def rows_table(found: Sequence[Row], *, width: int) -> Table:
    """Rows of a name, a value and a remark; texts fold, nothing is cut. Names get the room that short remarks leave."""
    from rich.table import Table

    cells = [
        ("  " + visible(name), visible(value), visible(" ".join(remark.split())))
        for name, value, remark in found
    ]
    names, values, remarks = (max((len(row[at]) for row in cells), default=0) for at in range(3))
    gap = 2
    values = min(values, max(14, width // 3))
    names = min(names, max(18, width * 2 // 5, width - values - remarks - 2 * gap))
    table = Table.grid(padding=(0, gap, 0, 0))
    table.add_column(overflow="fold", max_width=names)
    table.add_column(overflow="fold", justify="right", max_width=values)
    table.add_column(overflow="fold")
    for name, value, remark in cells:
        lines = wrapped(remark, max(12, width - names - values - 2 * gap))
        table.add_row(Text(name), Text(value), Text("\n".join(lines)))
    return table


def points_table(kernels: Sequence[tuple[str, Sequence[RooflinePoint]]], *, width: int) -> Table:
    """One row a kernel and memory level, with the kernel's name in the first if it has one (untrusted text).

    On a terminal of less than `WIDE` columns those columns are left out that the others imply, so that no name and no
    number is cut.
    """
    named = any(name for name, _ in kernels)
    titles = ALL if width >= WIDE else NARROW if width >= MIDDLE else NARROWEST
    numbers = ("!side" if title == "side" else f">!{title}" for title in titles)
    result = columns(*["kernel"] * named, "arithmetic", "level", *numbers, padding=(0, 1, 0, 0))
    for name, points in kernels:
        for position, point in enumerate(points):
            shown = {
                "FLOP/byte": significant(point.intensity),
                "ridge": significant(point.ridge),
                "achieved": flops(point.achieved),
                "attainable": flops(point.attainable),
                "reached": percent(point.percent),
                "headroom": times(point.headroom),
                "bandwidth": bandwidth(point.memory.achieved),
                "side": point.bound,
            }
            first = (Text("" if position else visible(name)),) * named
            cells = (shown[title] for title in titles)
            result.add_row(*first, point.compute.label, point.memory.label, *cells)
    return result


def _figures(result: Any, *names: str) -> Iterator[Row]:
    """The figures of a result as it declares them: title, value and what that says; all of them without names."""
    for name, item in declared(type(result)).items():
        value = getattr(result, name)
        if value is not None and item.shown and (not names or name in names):
            yield item.title, figure_text(value, item), item.meaning


def _speed_of_light(result: SpeedOfLight, most: int) -> Iterator[Row]:
    yield from _figures(result)
    for entry in result.limiting_breakdown[: most // 2]:
        label = entry.label if entry.unit else ""
        yield f"busiest: {entry.unit or entry.label}", percent(entry.percent), label
    if result.bottleneck is not None:
        yield "By ncu's rule", result.bottleneck.title, result.bottleneck.message


def _roofline(result: Roofline, most: int) -> Iterator[Row]:
    for point in result.points[: 2 * most]:
        where = f"{significant(point.intensity)} FLOP/byte, {point.bound} side"
        reached = f"{percent(point.percent)} of {flops(point.attainable)} attainable at {where}"
        yield f"{point.compute.label}, {point.memory.label}", flops(point.achieved), reached
    yield from _memory_roofs(result)


def _memory_roofs(result: Roofline) -> Iterator[Row]:
    for memory in result.memory_roofs:
        reached = f"{percent(memory.percent)} of {bandwidth(memory.peak)}"
        yield memory.label, bandwidth(memory.achieved), reached
    for note in result.notes:
        yield "Note", "", note


def _launch(result: Launch, most: int) -> Iterator[Row]:
    yield "Grid", dimensions(result.grid), counted(result.blocks, "block")
    threads, warps = counted(result.threads_per_block, "thread"), counted(result.warps_per_block, "warp")
    yield "Block", dimensions(result.block), f"{threads}, {warps}"
    yield from _figures(result)
    if result.idle_lanes:
        yield "Idle lanes", str(result.idle_lanes), "of the last warp of each block"


def _instruction_mix(result: InstructionMix, most: int) -> Iterator[Row]:
    yield from _figures(result)
    for item in result.classes[:most]:
        opcodes = (f"{one.opcode} {ratio(result.share(one.executed), 0)}" for one in item.opcodes[:4])
        yield item.title, ratio(item.share), ", ".join(opcodes)
    for pipe in sorted(result.pipes, key=lambda pipe: -pipe.percent)[: most // 2]:
        yield f"pipe {pipe.label}", percent(pipe.percent), pipe.meaning
    yield from _figures(result.ratios)


def _occupancy(result: LaunchOccupancy, most: int) -> Iterator[Row]:
    why = "every warp slot can be taken"
    if result.limits_theoretical:
        why = f"limited by {calculator.in_words(result.limited_by)}"
    yield "Theoretical", occupancy_text(result.theoretical_percent), why
    yield from _figures(result, *declared(LaunchOccupancy).keys() - {"theoretical_percent"})
    for limit in result.block_limits:
        name = f"blocks by {calculator.RESOURCE_WORDS[limit.resource]}"
        yield name, number(limit.blocks), "binds" if limit.binding else ""
    for loss in result.losses[:most]:
        yield loss.kind, f"{-loss.points:.1f} points", loss.text
    for suggestion in result.suggestions[: most // 2]:
        yield "would help", "", str(suggestion)


SPARKS = " ▁▂▃▄▅▆▇█"
SPARKS_BETWEEN = "|"  # at both ends, so that the beginning and the end of the launch are seen
SPARK_COLUMNS = 60


def sparkline(lane: Lane, *, most: float) -> str:
    """A counter over the launch between bars, a character a stretch of equal length; ``?`` where there is no sample."""
    columns = min(SPARK_COLUMNS, len(lane.values))
    edges = [position * len(lane.values) // columns for position in range(columns + 1)]
    line = ""
    for a, b in itertools.pairwise(edges):
        known = [value for value in lane.values[a:b] if value == value]
        height = sum(known) / len(known) / most * (len(SPARKS) - 1) if known and most > 0 else 0.0
        # What is not nothing is seen.
        line += SPARKS[max(height > 0.1, min(len(SPARKS) - 1, round(height)))] if known else "?"
    return f"{SPARKS_BETWEEN}{line}{SPARKS_BETWEEN}"


def _timeline(result: Timeline, most: int) -> Iterator[Row]:
    yield from _figures(result)
    for phase in result.phases:
        costs = f", costs {percent(phase.costs_percent)}" if phase.costs_percent is not None else ""
        span = f"{100 * phase.begin:.0f}–{100 * phase.end:.0f} %"
        yield phase.name, span, f"{phase.what}{costs}"
    for lane in result.lanes:
        if lane.peak > 0:
            top = f"at most {significant(lane.peak)} {lane.unit}".rstrip()
            yield lane.title, sparkline(lane, most=lane.scale), top
    # One scale for all: warps that wait are told from those that hardly do.
    peak = max((lane.peak for lane in result.stalls), default=0.0)
    for lane in result.stalls[:most]:
        mean = f"{significant(lane.mean)} warps of a scheduler"
        yield f"stalled: {lane.title}", sparkline(lane, most=peak), mean


def _warp_states(result: WarpStates, most: int) -> Iterator[Row]:
    yield from _figures(result)
    for state in [state for state in result.states if state.share >= 0.005][:most]:
        yield state.reason.title.removeprefix("Stall "), ratio(state.share), state.meaning


def _memory_chart(result: MemoryChart, most: int) -> Iterator[Row]:
    titles = {unit.name: unit.title for unit in result.units}
    for unit in result.units:
        if unit.hit_rate is not None:
            yield unit.title, percent(unit.hit_rate), "of the sectors found there"
    busy = [link for link in result.links if not link.idle]
    for link in sorted(busy, key=lambda link: -(link.bytes or 0.0))[:most]:
        instructions = f"{number(link.instructions)} instructions"
        amount = instructions if link.bytes is None else traffic(link.bytes)
        rate = [bandwidth(link.bytes_per_second)] if link.bytes_per_second is not None else []
        peak = [f"{percent(link.percent_of_peak)} of peak"] if link.percent_of_peak is not None else []
        path = f"{titles.get(link.source, link.source)} → {titles.get(link.target, link.target)}"
        yield f"{path}, {link.label.replace('_', ' ')}", amount, ", ".join(rate + peak)
    yield from _figures(result)


def _coalescing(result: Coalescing, most: int) -> Iterator[Row]:
    for kind in result.operations:
        requests = f"sectors a request, {number(kind.requests)} requests"
        yield kind.title, number(kind.sectors_per_request), requests
    yield from _figures(result)
    yield from _in_excess(result, "sectors", most)


def _bank_conflicts(result: BankConflicts, most: int) -> Iterator[Row]:
    if result.uses_shared_memory is False:
        yield "Shared memory", "unused", ""
    for kind in result.operations:
        many = None if kind.n_way is None else number(kind.n_way)
        way = "" if many is None else f", {many} wavefront{'s' * (many != '1')} a request"
        yield kind.title, percent(kind.share), f"of the wavefronts are conflicts{way}"
    yield from _figures(result)
    yield from _in_excess(result, "wavefronts", most)


def _in_excess(result: Coalescing | BankConflicts, unit: str, most: int) -> Iterator[Row]:
    """The places with most excess, in sectors or wavefronts."""
    for access in [one for one in (result.lines or result.instructions) if (one.excess or 0) > 0][:most]:
        total = number(getattr(access, unit))
        yield place_text(access.place), number(access.excess), f"{unit} in excess, of {total}"


def _divergence(result: Divergence, most: int) -> Iterator[Row]:
    yield from _figures(result)
    for branch in (result.lines or result.instructions)[:most]:
        of = f"of {number(branch.executed)} branches diverged"
        yield place_text(branch.place), number(branch.divergent), of


def _spills(result: Spills, most: int) -> Iterator[Row]:
    if not result.any:
        yield "Local memory", "unused", ""
        return
    yield from _figures(result)
    for access in (result.lines or result.instructions)[:most]:
        yield place_text(access.place), number(access.sectors), "sectors"


def _source_view(result: SourceView, most: int) -> Iterator[Row]:
    if not result.lines:
        yield "Source lines", "none", "compile with -lineinfo (Triton and torch.compile: nothing to do)"
    for one in result.hottest()[:most]:
        share = result.share(one.counters)
        if share is None or share >= 0.05 or not result.lines:
            yield one.label, percent(share), one.text.strip()


def _rules(result: Advice, most: int) -> Iterator[Row]:
    whole = most > MOST
    for item in result.items[: most if whole else most // 2]:
        worth = f"{item.estimated_speedup:.1f} %" if item.estimated_speedup else item.severity
        message = plain_text(item.message, addresses=False)
        if not whole:  # up to the first full stop that ends a sentence
            message = re.split(r"(?<=[a-z)%]\.)\s+(?=[A-Z])", message, maxsplit=1)[0]
        yield item.title or item.rule, worth, message


def place_text(place: Place) -> str:
    """A place in the code: file and line, else the instruction's text."""
    return place.label if place.file is not None else place.sass or place.label


_WRITERS: dict[type, Callable[[Any, int], Iterator[Row]]] = {
    SpeedOfLight: _speed_of_light,
    Roofline: _roofline,
    Launch: _launch,
    InstructionMix: _instruction_mix,
    LaunchOccupancy: _occupancy,
    Scheduler: lambda result, _: _figures(result),
    Timeline: _timeline,
    WarpStates: _warp_states,
    MemoryChart: _memory_chart,
    Coalescing: _coalescing,
    BankConflicts: _bank_conflicts,
    Divergence: _divergence,
    Spills: _spills,
    SourceView: _source_view,
    Advice: _rules,
}
