"""Pictures of a kernel page: its roofline, the launch over time, and how a warp touches memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from gemmprof.analysis.ladder.access_pattern import SECTOR_BYTES, AccessPatterns, WarpAccess
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.timeline import Lane, Phase, Timeline
from gemmprof.base.amounts import counted
from gemmprof.gpu.arch import BANK_BYTES, BANKS
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.formatting import flops, percent, significant
from gemmprof.reports.pages.contents import KernelPage


def roofline(result: Roofline, prefix: str) -> figures.Drawn | None:
    """The roofline of one kernel; None without arithmetic."""
    points = result.main_points
    words = "; ".join(
        f"{point.memory.label} {significant(point.intensity)} FLOP/byte, {percent(point.percent)} of attainable"
        for point in points
    )
    picture = figures.kernel_roofline(result)
    if picture is None:
        return None
    reached = f"{flops(points[0].achieved)} of {flops(points[0].compute.peak)} {points[0].compute.label}"
    return picture.drawn(f"{prefix}roofline-figure", f"Roofline, {reached}", words)


def ladder(pages: Sequence[KernelPage]) -> figures.RooflinePicture | None:
    """Several kernels against device memory, stages with the path from one to the next; None without points."""
    results = ((page, page.analysis.get(Roofline)) for page in pages)
    found = [(page, roofs) for page, roofs in results if isinstance(roofs, Roofline) and roofs.main_points]
    numbers = [at if page.record is None else page.record.stage.number for at, (page, _) in enumerate(found)]
    steps = [
        figures.Step(str(number), page.label, roofs, page.is_yardstick)
        for number, (page, roofs) in zip(numbers, found, strict=True)
    ]
    return figures.ladder_roofline(steps, path=all(page.record is not None for page, _ in found))


LANE_STEP = 22.0
WIDTH = 32 * LANE_STEP
MOST_CELLS = 64


class Cell(NamedTuple):
    """One sector (global) or bank (shared): its middle, the share of it that is used (0 to 1), its words.

    Of a sector the share of its bytes that threads asked for; of a bank its words over the most of any bank.
    """

    x: float
    used: float
    text: str
    tip: str


@dataclass(frozen=True, slots=True)
class AccessDrawing:
    """One warp access as a picture: 32 lanes above, cells below, wires from lanes to the middles of what they touch."""

    access: WarpAccess
    cell_width: float
    cells: Sequence[Cell]
    wires: Sequence[tuple[int, float]]
    headline: str
    good: bool
    hidden_cells: int = 0
    width: float = WIDTH
    lane_step: float = LANE_STEP


class LaneDrawing(NamedTuple):
    """One counter: its outline in a box of one unit a column and one unit of height, its colour and what it reaches."""

    title: str
    colour: str
    path: str
    peak: str


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    """The launch over time: a row a counter, warps by what they wait for on top of each other, and the numbers."""

    columns: int  # width of every box
    lanes: Sequence[LaneDrawing]
    stalls: Sequence[LaneDrawing]
    phases: Sequence[tuple[Phase, str]]  # each with the class that colours it
    # for the script that sums over a stretch: nanoseconds, and of each row title, unit and values
    data: dict[str, Any]


# The units of a page have a colour each; what has none is of the SMs.
_COLOURS = {"l1": "l1", "l2": "l2", "dram": "dram", "tensor": "shared", "blocks": "other", "clock": "other"}
_STACK_COLOURS = ("dram", "sm", "shared", "l2", "l1", "warn")
_END_COLOURS = {"filling": "bad", "tail": "bad", "prologue": "warn", "epilogue": "warn"}


def timeline(result: Timeline) -> TimelineDrawing:
    """The rows of the launch over time; a reason that is rare is left to the table of warp states."""
    lanes = [lane for lane in result.lanes if lane.peak > 0]
    stalls = result.stalls[: len(_STACK_COLOURS)]
    drawn = []
    for lane in lanes:
        path = _outline(_known(lane), [0.0] * len(lane.values), lane.scale)
        peak = f"{significant(lane.peak)} {lane.unit}".strip()
        drawn.append(LaneDrawing(lane.title, _COLOURS.get(lane.key, "sm"), path, peak))
    edges = list(
        accumulate(map(_known, stalls), lambda low, more: [a + b for a, b in zip(low, more, strict=True)])
    )
    together = max(edges[-1], default=0.0) if edges else 0.0
    bottoms = [[0.0] * len(edges[0]), *edges] if edges else []
    stacked = [
        LaneDrawing(lane.title, colour, _outline(top, bottom, together), f"{significant(lane.mean)} warps")
        for lane, colour, top, bottom in zip(stalls, _STACK_COLOURS, edges, bottoms, strict=False)
    ]
    phases = [
        (phase, _END_COLOURS.get(phase.name, ("accent", "other")[at % 2]))
        for at, phase in enumerate(result.phases)
    ]
    rows = [
        {
            "title": lane.title,
            "unit": lane.unit,
            "counts": lane.key == "blocks",
            "values": [None if value != value else float(f"{value:.3e}") for value in lane.values],
        }
        for lane in (*lanes, *stalls)
    ]
    columns = len(result.lanes[0].values) if result.lanes else 1
    return TimelineDrawing(columns, drawn, stacked, phases, {"duration": result.duration_ns, "lanes": rows})


def _known(lane: Lane) -> list[float]:
    return [value if value == value else 0.0 for value in lane.values]


def _outline(top: Sequence[float], bottom: Sequence[float], most: float) -> str:
    """A stair of one step a column, closed along its bottom; 0 is up."""

    def y(value: float) -> str:
        return f"{1 - value / most if most > 0 else 1:.3f}"

    there = " ".join(f"V{y(value)}h1" for value in top)
    back = " ".join(f"V{y(value)}h-1" for value in reversed(bottom))
    return f"M0 {y(bottom[0] if bottom else 0.0)} {there} {back}z"


def access_patterns(result: AccessPatterns) -> list[AccessDrawing]:
    """A picture of each access of a stage."""
    return [_shared(access) if access.space == "shared" else _global(access) for access in result.accesses]


def _global(access: WarpAccess) -> AccessDrawing:
    """Lanes to 32-byte sectors: neighbours in one sector are coalesced."""
    shown = access.sectors[:MOST_CELLS]
    step = min(WIDTH / max(len(shown), 1), 88.0)
    start = (WIDTH - step * len(shown)) / 2
    cells = {}
    for index, sector in enumerate(shown):
        taken = access.bytes_of_sectors[sector]
        tip = f"sector at byte {SECTOR_BYTES * sector:,}: {taken} of 32 bytes used"
        text = f"{taken}" if step > 20 else ""
        cells[sector] = Cell(start + step * (index + 0.5), taken / SECTOR_BYTES, text, tip)
    touched = ((lane, sector) for lane, all_ in enumerate(access.sectors_of_lanes) for sector in all_)
    wires = [(lane, cells[sector].x) for lane, sector in touched if sector in cells]
    count, ideal = len(access.sectors), access.ideal_sectors
    headline = counted(count, "sector") + (f", {ideal} would do" if count > ideal else "")
    box, hidden = min(step - 2, 80.0), count - len(shown)
    return AccessDrawing(access, box, list(cells.values()), wires, headline, count <= ideal, hidden)


def _shared(access: WarpAccess) -> AccessDrawing:
    """Lanes to banks: different words in one bank take turns, the same word is broadcast."""
    words: list[set[int]] = [set() for _ in range(BANKS)]
    for word in access.addresses_of_words:
        words[word // BANK_BYTES % BANKS].add(word)
    counts = list(map(len, words))
    tips = (f"bank {bank}: {counted(count, 'different word')}" for bank, count in enumerate(counts))
    cells = [
        Cell(11 + LANE_STEP * bank, count / max(*counts, 1), str(count or ""), tip)
        for (bank, count), tip in zip(enumerate(counts), tips, strict=True)
    ]
    touched = {(lane, bank) for lane, banks in enumerate(access.banks) for bank in banks}
    wires = [(lane, cells[bank].x) for lane, bank in sorted(touched)]
    headline = counted(access.wavefronts, "wavefront")
    headline += f", {access.conflict_free_wavefronts} without conflicts" if access.conflicts else ""
    return AccessDrawing(access, 18, cells, wires, headline, not access.conflicts)
