"""Layout of the memory chart: boxes in five columns from the kernel to device memory, one arrow a link.

Only geometry and words; ``templates/memory_diagram.html`` draws it. All arrows are horizontal: a box is as high as the
links that end in it need, and a box with many neighbours spans them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product
from typing import NamedTuple

from gemmprof.analysis.figure import figures, formula_of
from gemmprof.analysis.sections.memory_chart import MemoryChart, MemoryLink, MemoryUnit
from gemmprof.base.spread import grouped
from gemmprof.reports.formatting import bandwidth, number, percent, traffic

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
