"""The roofline of a ladder: several kernels against device memory, and the path from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from gemmprof.analysis.sections.roofline import ComputeRoof, MemoryRoof, Roofline, RooflinePoint
from gemmprof.base.printable import visible
from gemmprof.reports.figures.plots import draw_point, draw_roofs, limits_of, main_points, roofline_data
from gemmprof.reports.figures.svg import PALETTE, blank, drawing
from gemmprof.reports.formatting import fit, flops, significant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATH_LEVEL = "dram"  # memory level of the roofline that shows several kernels


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a roofline with several: ``mark`` is what its marker says, ``label`` stands in the legend."""

    mark: str
    label: str
    roofline: Roofline
    yardstick: bool = False
    """True for cuBLAS: drawn apart, the path does not pass through it."""


def step_point(roofline: Roofline) -> RooflinePoint | None:
    """The point that stands for the kernel among others: its main arithmetic against device memory."""
    return next((point for point in main_points(roofline) if point.memory.level == PATH_LEVEL), None)


def ladder_roofline(steps: Sequence[Step], *, path: bool = True) -> Figure | None:
    """Several kernels against device memory, with the ``path`` from one to the next; None if none has a point."""
    placed = [(step, point) for step in steps if (point := step_point(step.roofline)) is not None]
    if not placed:
        return None
    with drawing():
        figure, axes = blank(9.4, 5.2)
        roofs = _highest([point.compute for _, point in placed], "key")
        memories = _highest([point.memory for _, point in placed], "level")
        top = max(roofs, key=lambda roof: roof.peak)
        limits = limits_of([p.intensity for _, p in placed], [p.achieved for _, p in placed], top, memories)
        draw_roofs(axes, roofs, memories, limits)
        crowd = _crowd(placed)
        box = _empty_box(axes, placed, memories) if crowd else None
        crowd = crowd if box is not None else []
        _steps(axes, placed, named=[item for item in placed if item not in crowd], path=path)
        if box is not None:
            _inset(axes, placed, crowd, box, path=path)
        return figure


Placed = tuple[Step, RooflinePoint]
Roof = TypeVar("Roof", ComputeRoof, MemoryRoof)

CROWD_FACTOR = 1.8  # steps within this factor of the fastest are a crowd: an inset shows them larger


def _crowd(placed: Sequence[Placed]) -> list[Placed]:
    """The steps near the fastest one, if they are too many to be told apart on axes of several decades."""
    best = max(point.achieved for _, point in placed)
    near = [(step, point) for step, point in placed if point.achieved >= best / CROWD_FACTOR]
    return near if len(near) >= 4 and len(near) < len(placed) else []


Box = tuple[float, float, float, float]  # left, bottom, width and height, as shares of the axes

INSET_BOXES: tuple[Box, ...] = (
    (0.49, 0.08, 0.5, 0.5),
    (0.56, 0.08, 0.43, 0.5),
    (0.07, 0.08, 0.5, 0.5),
    (0.28, 0.08, 0.5, 0.5),
)
CHARACTER_WIDTH = 6.9  # pixels of a letter in a step's name, on average and rather too many


def _empty_box(axes: Any, placed: Sequence[Placed], memories: Sequence[MemoryRoof]) -> Box | None:
    """The first place for the inset that covers no point, no name of one and no roof; None if there is none."""
    to_axes = axes.transData + axes.transAxes.inverted()
    from_axes = to_axes.inverted()
    across = axes.bbox.width
    named = []
    for step, point in placed:
        x, y = to_axes.transform((point.intensity, point.achieved))
        named.append((x, x + (len(visible(step.label)) * CHARACTER_WIDTH + 12) / across, y))
    for left, bottom, width, height in INSET_BOXES:
        intensity, speed = from_axes.transform((left, bottom + height))
        roofs_above = all(intensity * roof.peak > speed for roof in memories)
        # The inset's own tick labels stand left of it and below it.
        covered = any(
            start < left + width + 0.02 and end > left - 0.05 and bottom - 0.07 < y < bottom + height + 0.03
            for start, end, y in named
        )
        if roofs_above and not covered:
            return left, bottom, width, height
    return None


def _inset(axes: Any, placed: Sequence[Placed], crowd: Sequence[Placed], box: Box, *, path: bool) -> None:
    """The crowd again, larger and by its marks, where the figure is empty."""
    inset = axes.inset_axes(box)
    intensities = [point.intensity for _, point in crowd]
    speeds = [point.achieved for _, point in crowd]
    inset.set_xscale("log")
    inset.set_yscale("log")
    inset.set_xlim(
        min(intensities) / 1.12, max(intensities) * max(1.35, (max(intensities) / min(intensities)) ** 0.7)
    )
    inset.set_ylim(min(speeds) / 1.06, max(speeds) * 1.06)
    inset.set_facecolor(PALETTE["panel"])
    for axis, text in ((inset.xaxis, lambda value: f"{value:,.0f}"), (inset.yaxis, _tera)):
        _few_ticks(axis, text)
    inset.tick_params(labelsize=8, length=2)
    for side in inset.spines.values():
        side.set_visible(True)
    _steps(
        inset,
        placed,
        named=[(replace(step, label=step.mark), point) for step, point in crowd],
        path=path,
        gid="near",
    )
    axes.indicate_inset_zoom(inset, edgecolor=PALETTE["faint"], alpha=1)


def _tera(value: float) -> str:
    return flops(value).removesuffix("FLOP/s").strip()


def _few_ticks(axis: Any, text: Callable[[float], str]) -> None:
    """Five round ticks over less than a decade."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    low, high = axis.get_view_interval()
    ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks, [text(tick) for tick in ticks])


def _steps(
    axes: Any, placed: Sequence[Placed], *, named: Sequence[Placed], path: bool, gid: str = "step"
) -> None:
    """Points, arrows from step to step, and the names of some of them."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    ladder = [(point.intensity, point.achieved) for step, point in placed if path and not step.yardstick]
    for start, end in pairwise(ladder):
        if not all(left <= x <= right and bottom <= y <= top for x, y in (start, end)):
            continue
        axes.annotate(
            "",
            end,
            start,
            zorder=3,
            arrowprops={
                "arrowstyle": "-|>",
                "color": PALETTE["muted"],
                "linewidth": 0.9,
                "shrinkA": 5,
                "shrinkB": 5,
            },
        )
    for index, (step, point) in enumerate(placed):
        colour = PALETTE["other"] if step.yardstick else PALETTE["accent"]
        draw_point(axes, point, "s" if step.yardstick else "o", colour, f"{gid}-{index}")
    _step_labels(axes, named)


def _step_labels(axes: Any, placed: Sequence[Placed]) -> None:
    """Labels right of their points (left of those at the right edge), moved up where they would cover one another."""
    to_pixels, to_data = axes.transData, axes.transData.inverted()
    edge = axes.transAxes.transform((1.0, 0.0))[0]
    taken: list[tuple[float, float, float]] = []
    for step, point in sorted(placed, key=lambda item: item[1].achieved):
        text = visible(step.label)
        x, y = to_pixels.transform((point.intensity, point.achieved))
        width, height = CHARACTER_WIDTH * len(text), 13.0
        left, moved = x + 9, y - 1
        if left + width > edge + 10:
            left = x - 9 - width
        for other_left, other_right, other_y in sorted(taken, key=lambda box: box[2]):
            if left < other_right and other_left < left + width and abs(moved - other_y) < height:
                moved = other_y + height
        taken.append((left, left + width, moved))
        on_right = left > x
        axes.annotate(
            text,
            (point.intensity, point.achieved),
            xytext=to_data.transform((left if on_right else left + width, moved)),
            textcoords="data",
            ha="left" if on_right else "right",
            va="center",
            fontsize=9,
            color=PALETTE["muted"] if step.yardstick else PALETTE["fg"],
            zorder=6,
            annotation_clip=False,
            arrowprops=None
            if abs(moved - y) < 6
            else {"arrowstyle": "-", "color": PALETTE["faint"], "linewidth": 0.7, "shrinkA": 1, "shrinkB": 4},
        )


def _highest(roofs: Sequence[Roof], kind: str) -> tuple[Roof, ...]:
    """Of each kind of roof the highest."""
    kinds = {
        getattr(roof, kind): [one for one in roofs if getattr(one, kind) == getattr(roof, kind)]
        for roof in roofs
    }
    return tuple(max(same, key=lambda roof: roof.peak) for same in kinds.values())


def ladder_data(figure: Figure, steps: Sequence[Step]) -> dict[str, Any]:
    """What the page's script needs to tell intensities and speeds in `ladder_roofline`."""
    placed = [(step, point) for step in steps if (point := step_point(step.roofline)) is not None]
    tips = step_tips(steps)
    return roofline_data(
        figure,
        [(p.intensity, p.achieved, tips[f"step-{index}"]) for index, (_, p) in enumerate(placed)],
        _highest([point.memory for _, point in placed], "level"),
        max(point.compute.peak for _, point in placed),
    )


def step_tips(steps: Sequence[Step]) -> dict[str, str]:
    """Tooltips of `ladder_roofline` by gid."""
    placed = [(step, point) for step in steps if (point := step_point(step.roofline)) is not None]
    return {
        f"{gid}-{index}": f"{fit(step.label)}: {significant(point.intensity)} FLOP/byte, {flops(point.achieved)}"
        for gid in ("step", "near")
        for index, (step, point) in enumerate(placed)
    }
