"""Pictures of a kernel page: its roofline, the launch over time, how a warp touches memory, the memory chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from typing import Any, NamedTuple

from gemmprof.analysis.figure import figures, formula_of
from gemmprof.analysis.ladder.access_pattern import SECTOR_BYTES, AccessPatterns, WarpAccess
from gemmprof.analysis.sections.memory_chart import MemoryChart, MemoryLink, MemoryUnit
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.timeline import Lane, Phase, Timeline
from gemmprof.base.amounts import counted
from gemmprof.base.spread import grouped
from gemmprof.gpu.arch import BANK_BYTES, BANKS
from gemmprof.reports.figures import plots
from gemmprof.reports.formatting import bandwidth, flops, number, percent, significant, traffic
from gemmprof.reports.pages.contents import KernelPage


def roofline(result: Roofline, prefix: str) -> plots.Drawn | None:
    """The roofline of one kernel; None without arithmetic."""
    points = result.main_points
    words = "; ".join(
        f"{point.memory.label} {significant(point.intensity)} FLOP/byte, {percent(point.percent)} of attainable"
        for point in points
    )
    picture = plots.kernel_roofline(result)
    if picture is None:
        return None
    reached = f"{flops(points[0].achieved)} of {flops(points[0].compute.peak)} {points[0].compute.label}"
    return picture.drawn(f"{prefix}roofline-figure", f"Roofline, {reached}", words)


def ladder(pages: Sequence[KernelPage]) -> plots.RooflinePicture | None:
    """Several kernels against device memory, stages with the path from one to the next; None without points."""
    results = ((page, page.analysis.get(Roofline)) for page in pages)
    found = [(page, roofs) for page, roofs in results if isinstance(roofs, Roofline) and roofs.main_points]
    numbers = [at if page.record is None else page.record.stage.number for at, (page, _) in enumerate(found)]
    steps = [
        plots.Step(str(number), page.label, roofs, page.is_yardstick)
        for number, (page, roofs) in zip(numbers, found, strict=True)
    ]
    return plots.ladder_roofline(steps, path=all(page.record is not None for page, _ in found))


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


# --- The memory chart -------------------------------------------------------------------------------------------------
# Boxes in five columns from the kernel to device memory, one arrow a link. Only geometry and words;
# ``templates/memory_diagram.html`` draws it. All arrows are horizontal: a box is as high as the links that end in it
# need, and a box with many neighbours spans them all.

# Units from left to right, from top to bottom.
COLUMNS: tuple[tuple[str, ...], ...] = (
    ("kernel",),
    ("global", "local", "texture", "surface", "shared", "distributed_shared"),
    ("l1", "shared_memory"),
    ("l2",),
    ("device", "system", "peer"),
)

# Units that are left out where nothing flows.
OPTIONAL = frozenset(
    {"texture", "surface", "shared", "shared_memory", "distributed_shared", "peer", "local", "system"}
)

WIDTHS = (84, 112, 130, 112, 134)
GAP = 168
ROW = 46
PAD = 18
SPACE = 14
TOP = 10
# Where each column begins.
LEFTS = tuple(float(TOP) + sum(WIDTHS[:index]) + GAP * index for index in range(len(COLUMNS)))


class Box(NamedTuple):
    """A unit: its corner, its size, its name and up to two notes below the name; ``busy`` as of an arrow."""

    x: float
    y: float
    width: float
    height: float
    title: str
    notes: tuple[str, ...]
    busy: int = 0
    tip: str = ""

    @property
    def centre(self) -> tuple[float, float]:
        """Middle of the box."""
        return self.x + self.width / 2, self.y + self.height / 2


class Arrow(NamedTuple):
    """A link from ``start`` to ``end`` at height ``y``: ``value`` stands above it, ``note`` below.

    ``busy`` is 0 to 3 (under 30, 60, 80 per cent of peak and above), None where the peak is not known.
    """

    start: float
    end: float
    y: float
    value: str
    note: str
    busy: int | None
    idle: bool
    words: str
    formulas: str = ""

    @property
    def middle(self) -> float:
        """Where the text is centred."""
        return (self.start + self.end) / 2


class Diagram(NamedTuple):
    """The drawn chart; ``words`` says in sentences what the picture shows."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    @property
    def words(self) -> str:
        """All links that carry something, as text."""
        return "; ".join(arrow.words for arrow in self.arrows if not arrow.idle)


def diagram(chart: MemoryChart) -> Diagram:
    """Place every box and arrow of a memory chart."""
    units = {unit.name: unit for unit in chart.units}
    carrying = (link for link in chart.links if link.instructions or link.requests or link.bytes)
    busy_units = {end for link in carrying for end in (link.source, link.target)}
    if "shared" in busy_units:
        busy_units.add("shared_memory")  # a share of its peak is all that is known of this link
    shown = [
        [name for name in names if name in units and (name not in OPTIONAL or name in busy_units)]
        for names in COLUMNS
    ]
    column_of = {name: index for index, names in enumerate(shown) for name in names}
    known = (link for link in chart.links if {link.source, link.target} <= column_of.keys())
    links = [link for link in known if abs(column_of[link.source] - column_of[link.target]) == 1]
    # Of several idle links the first, where nothing else joins the two units: one arrow shows that.
    joined = grouped((frozenset((link.source, link.target)), link) for link in links)
    alone = [links[0] for links in joined.values() if all(link.idle for link in links)]
    links = [link for link in links if not link.idle or link in alone]
    spans = _spans(shown, links)
    height = max(bottom for _, bottom in spans.values()) + TOP
    placed = ((units[name], LEFTS[at], WIDTHS[at], *spans[name]) for name, at in column_of.items())
    boxes = tuple(_box(*place) for place in placed)
    arrows = tuple(_arrows(shown, links, spans, units))
    return Diagram(LEFTS[-1] + WIDTHS[-1] + TOP, height, boxes, arrows)


def _box(unit: MemoryUnit, left: float, width: float, top: float, bottom: float) -> Box:
    peak, tip = unit.percent_of_peak, unit.title
    notes = [] if unit.hit_rate is None else [f"hit rate {percent(unit.hit_rate)}"]
    if peak is not None:
        notes.append(f"{percent(peak)} busy")
        part = f": its busiest part is {unit.busiest}" if unit.busiest else ""
        how = _formulas(unit)
        tip += f", {percent(peak)} of peak{part}" + (f"; {how}" if how else "")
    return Box(left, top, width, bottom - top, unit.title, tuple(notes), _busy(peak or 0.0), tip)


Spans = dict[str, tuple[float, float]]


def _pair(links: Iterable[MemoryLink], a: str, b: str) -> list[MemoryLink]:
    """Links between two units, towards the memory first."""
    between = [link for link in links if {link.source, link.target} == {a, b}]
    return sorted(between, key=lambda link: link.source != a)


def _spans(shown: list[list[str]], links: list[MemoryLink]) -> Spans:
    """Top and bottom of every box."""
    spans: Spans = {}
    y = float(TOP)
    physical = {"shared": "shared_memory", "distributed_shared": "shared_memory"}
    rows_of: dict[str, int] = {}
    spaces_of: dict[str, list[str]] = {}
    for name in shown[1]:
        unit = physical.get(name, "l1")
        rows_of[name] = max(len(_pair(links, "kernel", name)), len(_pair(links, name, unit)), 1)
        spaces_of.setdefault(unit, []).append(name)
    for unit, spaces in spaces_of.items():
        # A unit is as high as the spaces that it holds: the first of them makes room for what leads on from it.
        rows_of[spaces[0]] += max(0, len(_pair(links, unit, "l2")) - sum(rows_of[name] for name in spaces))
    for name, rows in rows_of.items():
        spans[name] = (y, y + rows * ROW + PAD)
        y += rows * ROW + PAD + SPACE
    y = max(y, TOP + 2 * (ROW + PAD + SPACE))
    bottom = y - SPACE
    for name in shown[2]:
        above = [spans[space] for space in spaces_of.get(name, ())]
        spans[name] = (above[0][0], above[-1][1]) if above else (TOP, bottom)
    for name in (*shown[0], *shown[3]):
        spans[name] = (TOP, bottom)
    rows_right = [max(len(_pair(links, "l2", name)), 1) for name in shown[4]]
    spare = (bottom - TOP - sum(rows * ROW + PAD for rows in rows_right)) / max(len(shown[4]), 1)
    y = float(TOP)
    for name, rows in zip(shown[4], rows_right, strict=True):
        height = rows * ROW + PAD + max(spare - SPACE / 2, 0)
        spans[name] = (y, y + height)
        y += height + SPACE
    return spans


def _arrows(
    shown: list[list[str]], links: list[MemoryLink], spans: Spans, units: dict[str, MemoryUnit]
) -> Iterable[Arrow]:
    for column, neighbours in enumerate(pairwise(shown)):
        left, right = LEFTS[column] + WIDTHS[column], LEFTS[column + 1]
        for a, b in product(*neighbours):
            between = _pair(links, a, b)
            top, bottom = max(spans[a][0], spans[b][0]), min(spans[a][1], spans[b][1])
            if not between or bottom <= top:
                continue
            step = min((bottom - top) / len(between), 2 * ROW)
            first = (top + bottom) / 2 - step * (len(between) - 1) / 2
            for row, link in enumerate(between):
                forward = link.source == a
                value, note = _texts(link)
                way, ends = ("to", (left, right)) if forward else ("from", (right, left))
                busy = None if link.percent_of_peak is None else _busy(link.percent_of_peak)
                words = f"{units[a].title} {way} {units[b].title}: {value} {note}"
                yield Arrow(*ends, first + row * step, value, note, busy, link.idle, words, _formulas(link))


def _busy(share: float) -> int:
    return sum(share >= edge for edge in (30, 60, 80))


def _texts(link: MemoryLink) -> tuple[str, str]:
    """What stands above the arrow (the amount) and below it (rate, share of peak, what flows)."""
    peak = link.percent_of_peak
    if link.bytes is not None:
        value = traffic(link.bytes)
    elif link.instructions is not None:
        value = f"{number(link.instructions)} inst"
    elif link.requests is not None:
        value = f"{number(link.requests)} req"
    else:
        value = percent(peak) if peak is not None else ""
    rate = bandwidth(link.bytes_per_second) if link.bytes_per_second else ""
    busy = percent(peak, 0) if (peak or 0.0) >= 0.5 and (link.bytes or link.instructions) else ""
    return value, " · ".join(filter(None, (link.label.replace("_", " "), rate, busy)))


def _formulas(item: MemoryUnit | MemoryLink) -> str:
    """How each of its figures is computed: ``Bytes: 32 * …; Bandwidth: …``."""
    known = [(declared.title, formula_of(value)) for _, _, declared, value in figures(item)]
    return "; ".join(f"{title}: {formula}" for title, formula in known if formula)
