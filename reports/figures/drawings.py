"""Pictures of a kernel page: its roofline, the launch over time, and how a warp touches memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gemmprof.analysis.ladder.access_pattern import SECTOR_BYTES, AccessPatterns, WarpAccess
from gemmprof.analysis.sections.roofline import Roofline, RooflinePoint
from gemmprof.analysis.sections.timeline import Lane, Phase, Timeline
from gemmprof.base.amounts import counted
from gemmprof.gpu.arch import BANK_BYTES, BANKS
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.svg import drawing
from gemmprof.reports.formatting import flops, percent, significant


@dataclass(frozen=True, slots=True)
class RooflineDrawing:
    """The points under the kernel's main arithmetic, and their picture (None without arithmetic)."""

    points: tuple[RooflinePoint, ...]
    drawn: figures.Drawn | None = None

    @property
    def tightest(self) -> RooflinePoint | None:
        """Which limits most."""
        return max(self.points, key=lambda point: point.percent, default=None)


def roofline(result: Roofline, prefix: str) -> RooflineDrawing:
    """The roofline of one kernel."""
    points = figures.main_points(result)
    words = "; ".join(
        f"{point.memory.label} {significant(point.intensity)} FLOP/byte, {percent(point.percent)} of attainable"
        for point in points
    )
    with drawing():
        picture = figures.kernel_roofline(result, again=True)
        if picture is None:
            return RooflineDrawing(points)
        reached = f"{flops(points[0].achieved)} of {flops(points[0].compute.peak)} {points[0].compute.label}"
        identifier = f"{prefix}roofline-figure"
        drawn = picture.drawn(identifier=identifier, title=f"Roofline, {reached}", description=words)
        return RooflineDrawing(points, drawn)


LANE_STEP = 22.0
CELL_ROW = 118.0
MOST_CELLS = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """One sector (global) or bank (shared): how many distinct words or bytes of it are used, by which lanes."""

    x: float
    y: float
    used: float
    """0 to 1: share of the sector's bytes that threads asked for; for a bank, passes over the worst case of 32."""
    text: str
    tip: str


@dataclass(frozen=True, slots=True)
class AccessDrawing:
    """One warp access as a picture: 32 lanes above, sectors or banks below, lines from lanes to what they touch."""

    access: WarpAccess
    cell_width: float
    cells: tuple[Cell, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    headline: str
    good: bool
    hidden_cells: int
    width: float = 32 * LANE_STEP
    height: float = 160
    lanes: tuple[tuple[float, int], ...] = tuple((11 + LANE_STEP * lane, lane) for lane in range(32))


@dataclass(frozen=True, slots=True)
class LaneDrawing:
    """One counter: its outline in a box of one unit a column and one unit of height, its colour and what it reaches."""

    title: str
    colour: str
    path: str
    peak: str


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    """The launch over time: a row a counter, warps by what they wait for on top of each other, and the numbers below.

    Attributes:
        columns: width of every box.
        phases: each with the class that colours it.
        data: for the script that sums over a stretch: nanoseconds, and of each row title, unit and values.
    """

    columns: int
    lanes: tuple[LaneDrawing, ...]
    stalls: tuple[LaneDrawing, ...]
    phases: tuple[tuple[Phase, str], ...]
    data: dict[str, Any]


# The units of a page have a colour each; what has none is of the SMs.
_LANE_COLOURS = {
    "l1": "l1",
    "l2": "l2",
    "dram": "dram",
    "tensor": "shared",
    "blocks": "other",
    "clock": "other",
}
_STACK_COLOURS = ("dram", "sm", "shared", "l2", "l1", "warn")
_END_COLOURS = {"filling": "bad", "tail": "bad", "prologue": "warn", "epilogue": "warn"}


def timeline(result: Timeline) -> TimelineDrawing:
    """The rows of the launch over time; a reason that is rare is left to the table of warp states."""
    lanes = tuple(lane for lane in result.lanes if lane.peak > 0)
    stalls = result.stalls[: len(_STACK_COLOURS)]
    bottom = [0.0] * max((len(lane.values) for lane in stalls), default=0)
    together = max((sum(values) for values in zip(*(map(_known, stalls)), strict=True)), default=0.0)
    stacked = []
    for lane, colour in zip(stalls, _STACK_COLOURS, strict=False):
        top = [low + value for low, value in zip(bottom, _known(lane), strict=True)]
        path = _outline(top, bottom, together)
        stacked.append(LaneDrawing(lane.title, colour, path, f"{significant(lane.mean)} warps"))
        bottom = top
    columns = len(result.lanes[0].values) if result.lanes else 1
    phases = tuple(
        (phase, _END_COLOURS.get(phase.name, ("accent", "other")[at % 2]))
        for at, phase in enumerate(result.phases)
    )
    rows = [
        {
            "title": lane.title,
            "unit": lane.unit,
            "counts": lane.key == "blocks",
            "values": [None if value != value else float(f"{value:.3e}") for value in lane.values],
        }
        for lane in (*lanes, *stalls)
    ]
    data = {"duration": result.duration_ns, "lanes": rows}
    return TimelineDrawing(columns, tuple(map(_lane, lanes)), tuple(stacked), phases, data)


def _known(lane: Lane) -> list[float]:
    return [value if value == value else 0.0 for value in lane.values]


def _lane(lane: Lane) -> LaneDrawing:
    path = _outline(_known(lane), [0.0] * len(lane.values), lane.scale)
    peak = f"{significant(lane.peak)} {lane.unit}".strip()
    return LaneDrawing(lane.title, _LANE_COLOURS.get(lane.key, "sm"), path, peak)


def _outline(top: Sequence[float], bottom: Sequence[float], most: float) -> str:
    """A stair of one step a column, closed along its bottom; 0 is up."""

    def y(value: float) -> str:
        return f"{1 - value / most if most > 0 else 1:.3f}"

    there = " ".join(f"V{y(value)}h1" for value in top)
    back = " ".join(f"V{y(value)}h-1" for value in reversed(bottom))
    return f"M0 {y(bottom[0] if bottom else 0.0)} {there} {back}z"


def access_patterns(result: AccessPatterns) -> tuple[AccessDrawing, ...]:
    """A picture of each access of a stage."""
    return tuple(
        _shared(access) if access.space == "shared" else _global(access) for access in result.accesses
    )


def _global(access: WarpAccess) -> AccessDrawing:
    """Lanes to 32-byte sectors: neighbours in one sector are coalesced."""
    sectors = access.sectors
    shown = sectors[:MOST_CELLS]
    step = min(32 * LANE_STEP / max(len(shown), 1), 88.0)
    start = (32 * LANE_STEP - step * len(shown)) / 2
    place = {sector: start + step * (index + 0.5) for index, sector in enumerate(shown)}
    taken_of = access.bytes_of_sectors
    cells = []
    for sector in shown:
        taken = taken_of[sector]
        tip = f"sector at byte {SECTOR_BYTES * sector:,}: {taken} of 32 bytes used"
        text = f"{taken}" if step > 20 else ""
        cells.append(Cell(place[sector], CELL_ROW, taken / SECTOR_BYTES, text, tip))
    lines = [
        (11 + LANE_STEP * lane, 30.0, place[sector], CELL_ROW)
        for lane, touched in enumerate(access.sectors_of_lanes)
        for sector in touched
        if sector in place
    ]
    ideal = access.ideal_sectors
    headline = counted(len(sectors), "sector") + (f", {ideal} would do" if len(sectors) > ideal else "")
    good, hidden = len(sectors) <= ideal, len(sectors) - len(shown)
    box = min(step - 2, 80.0)
    return AccessDrawing(access, box, tuple(cells), tuple(lines), headline, good, hidden)


def _shared(access: WarpAccess) -> AccessDrawing:
    """Lanes to banks: different words in one bank take turns, the same word is broadcast."""
    words: list[set[int]] = [set() for _ in range(BANKS)]
    for word in access.addresses_of_words:
        words[word // BANK_BYTES % BANKS].add(word)
    touched = {(lane, bank) for lane, banks in enumerate(access.banks) for bank in banks}
    lines = ((11 + LANE_STEP * lane, 30.0, 11 + LANE_STEP * bank, CELL_ROW) for lane, bank in sorted(touched))
    most = max(len(bank) for bank in words)
    cells = []
    for bank, count in enumerate(map(len, words)):
        tip = f"bank {bank}: {counted(count, 'different word')}"
        cells.append(Cell(11 + LANE_STEP * bank, CELL_ROW, count / max(most, 1), str(count or ""), tip))
    ideal = access.conflict_free_wavefronts
    headline = counted(access.wavefronts, "wavefront")
    headline += f", {ideal} without conflicts" if access.conflicts else ""
    return AccessDrawing(access, 18, tuple(cells), tuple(lines), headline, not access.conflicts, 0)
