"""Pictures of a kernel page: its roofline, and how a warp touches memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from gemmprof.analysis.ladder.access_pattern import (
    BANK_BYTES,
    BANKS,
    SECTOR_BYTES,
    AccessPatterns,
    WarpAccess,
)
from gemmprof.analysis.sections.roofline import Roofline, RooflinePoint
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.svg import drawing, page_svg
from gemmprof.reports.formatting import flops, percent, significant


@dataclass(frozen=True, slots=True)
class RooflineDrawing:
    """The figure (None without arithmetic), the points under the kernel's main arithmetic, and which limits most."""

    figure: Markup | None
    points: tuple[RooflinePoint, ...]
    tightest: RooflinePoint | None
    data: dict[str, Any] = field(default_factory=dict)
    """For the script that zooms and answers (`plots.roofline_data`)."""


def roofline(result: Roofline, prefix: str) -> RooflineDrawing:
    """The roofline of one kernel."""
    points = figures.main_points(result)
    tightest = max(points, key=lambda point: point.percent, default=None)
    if tightest is None:
        return RooflineDrawing(None, points, None)
    words = "; ".join(
        f"{point.memory.label} {significant(point.intensity)} FLOP/byte, {percent(point.percent)} of attainable"
        for point in points
    )
    with drawing():
        figure = figures.kernel_roofline(result, again=True)
        assert figure is not None, "there are points"
        svg = page_svg(
            figure,
            identifier=f"{prefix}roofline-figure",
            title=f"Roofline, {flops(points[0].achieved)} of {flops(points[0].compute.peak)} {points[0].compute.label}",
            description=words,
            tips=figures.point_tips(result),
        )
    tips = figures.point_tips(result)
    data = figures.roofline_data(
        figure,
        [(p.intensity, p.achieved, tips[f"point-{p.memory.level}"]) for p in points],
        result.memory_roofs,
        points[0].compute.peak,
    )
    return RooflineDrawing(svg, points, tightest, data)


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
    width: float
    height: float
    cell_width: float
    lanes: tuple[tuple[float, int], ...]
    cells: tuple[Cell, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    headline: str
    good: bool
    hidden_cells: int


LANE_STEP = 22.0
CELL_ROW = 118.0
MOST_CELLS = 64


def access_patterns(result: AccessPatterns) -> tuple[AccessDrawing, ...]:
    """A picture of each access of a stage."""
    return tuple(
        _shared(access) if access.space == "shared" else _global(access) for access in result.accesses
    )


def _lanes() -> tuple[tuple[float, int], ...]:
    return tuple((11 + LANE_STEP * lane, lane) for lane in range(32))


def _global(access: WarpAccess) -> AccessDrawing:
    """Lanes to 32-byte sectors: neighbours in one sector are coalesced."""
    sectors = access.sectors
    shown = sectors[:MOST_CELLS]
    width = LANE_STEP * 32
    step = min(width / max(len(shown), 1), 88.0)
    start = (width - step * len(shown)) / 2
    place = {sector: start + step * (index + 0.5) for index, sector in enumerate(shown)}
    taken_of = access.bytes_of_sectors
    cells = []
    for sector in shown:
        taken = taken_of[sector]
        cells.append(
            Cell(
                place[sector],
                CELL_ROW,
                taken / SECTOR_BYTES,
                f"{taken}" if step > 20 else "",
                f"sector at byte {SECTOR_BYTES * sector:,}: {taken} of 32 bytes used",
            )
        )
    lines = [
        (11 + LANE_STEP * lane, 30.0, place[sector], CELL_ROW)
        for lane, touched in enumerate(access.sectors_of_lanes)
        for sector in touched
        if sector in place
    ]
    ideal = access.ideal_sectors
    headline = _count(len(sectors), "sector") + (f", {ideal} would do" if len(sectors) > ideal else "")
    return AccessDrawing(
        access,
        width,
        160,
        min(step - 2, 80.0),
        _lanes(),
        tuple(cells),
        tuple(lines),
        headline,
        len(sectors) <= ideal,
        len(sectors) - len(shown),
    )


def _shared(access: WarpAccess) -> AccessDrawing:
    """Lanes to banks: different words in one bank take turns, the same word is broadcast."""
    words: list[set[int]] = [set() for _ in range(BANKS)]
    for word in access.addresses_of_words:
        words[word // BANK_BYTES % BANKS].add(word)
    lines = sorted(
        {
            (11 + LANE_STEP * lane, 30.0, 11 + LANE_STEP * bank, CELL_ROW)
            for lane, banks in enumerate(access.banks)
            for bank in banks
        }
    )
    most = max(len(bank) for bank in words)
    cells = tuple(
        Cell(
            11 + LANE_STEP * bank,
            CELL_ROW,
            len(found) / max(most, 1),
            str(len(found)) if found else "",
            f"bank {bank}: {_count(len(found), 'different word')}",
        )
        for bank, found in enumerate(words)
    )
    ideal = access.conflict_free_wavefronts
    headline = _count(access.wavefronts, "wavefront") + (
        f", {ideal} without conflicts" if access.conflicts else ""
    )
    return AccessDrawing(
        access, LANE_STEP * 32, 160, 18, _lanes(), cells, tuple(lines), headline, not access.conflicts, 0
    )


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
