"""The figures: a kernel's roofline and performance over size, drawn by matplotlib from analysis results.

Every function returns a matplotlib ``Figure``; `svg.page_svg` puts it into a page, ``savefig`` into a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gemmprof.analysis.sections.roofline import ComputeRoof, MemoryRoof, Roofline, RooflinePoint
from gemmprof.base.printable import visible
from gemmprof.reports.figures.svg import PALETTE, blank, drawing, wiped
from gemmprof.reports.formatting import bandwidth, flops, significant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL_COLOURS = {
    "dram": PALETTE["dram"],
    "l2": PALETTE["l2"],
    "l1": PALETTE["l1"],
    "shared": PALETTE["shared"],
}
LEVEL_MARKERS = {"dram": "o", "l2": "s", "l1": "D", "shared": "^"}


def main_points(roofline: Roofline) -> tuple[RooflinePoint, ...]:
    """The points of the arithmetic that matters most for the kernel, one a memory level."""
    main = roofline.main
    return tuple(point for point in roofline.points if main is not None and point.compute.key == main.key)


def kernel_roofline(roofline: Roofline, *, again: bool = False) -> Figure | None:
    """One kernel under its roofs, a point for each memory level; None if it did no arithmetic that was counted.

    Args:
        again: draw on the figure that this thread drew on before, for callers that are done with that one.
    """
    points = main_points(roofline)
    main = roofline.main
    if main is None or not points:
        return None
    with drawing():
        figure, axes = (wiped if again else blank)(8.2, 4.6)
        others = [roof for roof in roofline.compute_roofs if roof is not main and (roof.percent or 0) >= 1]
        limits = limits_of(
            [p.intensity for p in points], [p.achieved for p in points], main, roofline.memory_roofs
        )
        draw_roofs(axes, [main, *others], roofline.memory_roofs, limits, free_of=points[0].achieved)
        axes.plot(
            [min(p.intensity for p in points), max(p.intensity for p in points)],
            [points[0].achieved] * 2,
            color=PALETTE["faint"],
            linewidth=1,
            zorder=3,
        )
        for point in points:
            axes.plot(
                [point.intensity] * 2,
                [point.achieved, point.attainable],
                color=LEVEL_COLOURS.get(point.memory.level, PALETTE["other"]),
                linewidth=1,
                linestyle=(0, (1, 2)),
            )
            colour = LEVEL_COLOURS.get(point.memory.level, PALETTE["other"])
            shape = LEVEL_MARKERS.get(point.memory.level, "o")
            draw_point(axes, point, shape, colour, f"point-{point.memory.level}")
        rightmost = max(p.intensity for p in points)
        # A name that would run out of the frame stands left of its point.
        leaves = math.log(limits[1] / rightmost) < 0.2 * math.log(limits[1] / limits[0])
        axes.annotate(
            flops(points[0].achieved),
            (rightmost, points[0].achieved),
            xytext=(-9 if leaves else 9, -3),
            textcoords="offset points",
            ha="right" if leaves else "left",
            va="top",
            fontsize=10,
            fontweight="bold",
            zorder=6,
        )
        return figure


def draw_point(axes: Any, point: RooflinePoint, shape: str, colour: str, gid: str) -> None:
    """A marker where a kernel is; ``gid`` names it for the page's script."""
    axes.plot(
        [point.intensity],
        [point.achieved],
        shape,
        markersize=8,
        color=colour,
        markeredgecolor=PALETTE["panel"],
        markeredgewidth=1.2,
        zorder=5,
        gid=gid,
    )


def roofline_data(
    figure: Figure, points: Sequence[tuple[float, float, str]], memories: Sequence[MemoryRoof], peak: float
) -> dict[str, Any]:
    """What the page's script needs to tell intensities and speeds in a roofline.

    Args:
        figure: as drawn, its first axes logarithmic.
        points: FLOP/byte, FLOP/s and the words of each point.
        memories: the roofs of the memories.
        peak: the highest compute roof, FLOP/s.

    Returns:
        ``box``: the axes in the units of the SVG (1/72 inch, y downwards); ``x``, ``y``: their limits.
    """
    axes = figure.axes[0]
    place = axes.get_position()
    width, height = (72.0 * size for size in figure.get_size_inches())
    return {
        "box": {
            "left": place.x0 * width,
            "right": place.x1 * width,
            "top": (1 - place.y1) * height,
            "bottom": (1 - place.y0) * height,
        },
        "x": list(axes.get_xlim()),
        "y": list(axes.get_ylim()),
        "points": [{"x": x, "y": y, "text": text} for x, y, text in points],
        "roofs": [{"label": memory.label, "peak": memory.peak} for memory in memories],
        "peak": peak,
    }


def performance_over_size(
    series: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    sizes: Sequence[str],
) -> Figure:
    """TFLOP/s of several stages over problem sizes.

    Args:
        series: (label, points) of each stage, a point being (size label, TFLOP/s); the first is the yardstick.
        sizes: the size labels in order along the axis.
    """
    with drawing():
        figure, axes = blank(9.4, 4.6, right=2.0)
        place = {size: index for index, size in enumerate(sizes)}
        colours = [
            PALETTE[name] for name in ("dram", "l2", "l1", "shared", "sm", "bad", "warn", "good", "muted")
        ]
        ends: list[tuple[float, str, str]] = []
        for index, (label, points) in enumerate(series):
            colour = PALETTE["other"] if index == 0 else colours[(index - 1) % len(colours)]
            xs, ys = [place[size] for size, _ in points], [value for _, value in points]
            again = index > len(colours)  # the colours again, told apart by marker and dashes
            axes.plot(
                xs,
                ys,
                marker="s" if again else "o",
                markersize=4.5,
                linewidth=1.6,
                color=colour,
                linestyle="--" if index == 0 else (0, (5, 1.2)) if again else "-",
                gid=f"series-{index}",
            )
            if points:
                ends.append((ys[-1], visible(label), colour))
        axes.set_xticks(range(len(sizes)), [visible(size) for size in sizes])
        axes.set_xlim(-0.2, len(sizes) - 1 + 0.2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("size of the product, M×N×K")
        axes.set_ylabel("TFLOP/s")
        axes.grid(axis="x", visible=False)
        _end_labels(axes, ends, len(sizes) - 1)
        return figure


def _end_labels(axes: Any, ends: list[tuple[float, str, str]], last: int) -> None:
    """Labels beside the last points, pushed apart so that none covers another and none leaves the figure."""
    top = axes.get_ylim()[1]
    gap = 0.052 * top
    ends = sorted(ends)
    heights: list[float] = []
    for value, _, _ in ends:
        heights.append(max(value, heights[-1] + gap) if heights else value)
    ceiling = top
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], ceiling)
        ceiling = heights[place] - gap
    for (value, label, colour), height in zip(ends, heights, strict=True):
        axes.annotate(
            label,
            (last, value),
            xytext=(1.02, height),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=9,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "relpos": (0, 0.5),  # from the left edge of the label: lines cross no text
                "color": PALETTE["faint"],
                "linewidth": 0.6,
                "shrinkB": 4,
            },
        )


Limits = tuple[float, float, float, float]


def limits_of(
    intensities: Sequence[float], achieved: Sequence[float], main: ComputeRoof, memories: Sequence[MemoryRoof]
) -> Limits:
    """Axis limits that hold every point and the ridges, in whole thirds of a decade."""
    ridges = [roof.ridge(main) for roof in memories if roof.peak > 0]
    left = min([*intensities, *(ridge / 3 for ridge in ridges)]) / 2.2
    right = max([*intensities, *ridges]) * 4
    bottom, top = min(achieved) / 3.0, main.peak * 2.0
    return left, right, max(bottom, top * 1e-6), top


def draw_roofs(
    axes: Any,
    computes: Sequence[ComputeRoof],
    memories: Sequence[MemoryRoof],
    limits: Limits,
    *,
    free_of: float | None = None,
) -> None:
    """Axes, memory roofs up to the highest compute roof, compute roofs right of where they meet the fastest memory.

    Names of the memories stand at the lower ends of their roofs, or above the speed ``free_of`` where more room is.
    """
    left, right, bottom, top = limits
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    highest = max(roof.peak for roof in computes)
    fastest = max((roof.peak for roof in memories), default=0.0)
    for roof in computes:
        start = max(left, roof.peak / fastest) if fastest else left
        axes.plot([start, right], [roof.peak] * 2, color=PALETTE["sm"], linewidth=1.8, zorder=2)
    for roof, label in _labels_of_roofs(computes):
        axes.annotate(
            f"{visible(label)} {flops(roof.peak)}",
            (right, roof.peak),
            xytext=(-4, 4),
            textcoords="offset points",
            ha="right",
            fontsize=9,
            color=PALETTE["sm"],
        )
    angle = _angle_of_slope_one(axes)
    above = free_of is not None and highest / free_of > free_of / bottom
    for place, memory in enumerate(memories):
        start = max(left, bottom / memory.peak)
        end = min(right, highest / memory.peak)
        if end <= start:
            continue
        colour = LEVEL_COLOURS.get(memory.level, PALETTE["other"])
        axes.plot(
            [start, end], [start * memory.peak, end * memory.peak], color=colour, linewidth=1.8, zorder=2
        )
        # The name runs along its roof, below it where another roof lies close above; one name for the same roof.
        twins = [other for other in memories if abs(other.peak / memory.peak - 1) < 0.01]
        if memory is not twins[-1]:
            continue
        below = any(
            (memory.peak, place) < (other.peak, index) and other.peak < 1.5 * memory.peak
            for index, other in enumerate(memories)
        )
        first = max(1.12 * start, 1.25 * (free_of or 0.0) / memory.peak if above else 0.0)
        axes.annotate(
            f"{visible(', '.join(twin.label for twin in twins))} {bandwidth(memory.peak)}",
            (first, first * memory.peak),
            xytext=(3, -3) if below else (-2, 4),
            textcoords="offset points",
            rotation=angle,
            rotation_mode="anchor",
            va="top" if below else "bottom",
            fontsize=9,
            color=colour,
        )
    axes.set_xlabel("arithmetic intensity, FLOP/byte")
    axes.set_ylabel("performance, FLOP/s")
    _decades(axes.xaxis, left, right, lambda value: f"{value:,.6g}")
    _decades(axes.yaxis, bottom, top, lambda value: flops(value).removesuffix("FLOP/s").strip())


def _labels_of_roofs(computes: Sequence[ComputeRoof]) -> Iterator[tuple[ComputeRoof, str]]:
    """A label a height: roofs that lie so close that their names would cover one another share one."""
    groups: list[list[ComputeRoof]] = []
    for roof in sorted(computes, key=lambda roof: -roof.peak):
        if groups and groups[-1][-1].peak < 1.12 * roof.peak:
            groups[-1].append(roof)
        else:
            groups.append([roof])
    for group in groups:
        yield group[0], ", ".join(dict.fromkeys(roof.label for roof in group))


def _angle_of_slope_one(axes: Any) -> float:
    """Degrees at which a line of slope 1 rises on these logarithmic axes."""
    (x0, y0), (x1, y1) = axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    return math.degrees(math.atan2(y1 - y0, x1 - x0))


def _decades(axis: Any, low: float, high: float, text: Any) -> None:
    """Ticks at powers of ten (1, 3, 10 … over short axes), written without exponents."""
    from matplotlib.ticker import FixedLocator, NullLocator

    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1.0,) if len(exponents) > 4 else (1.0, 3.0)
    ticks = [
        step * 10.0**exponent
        for exponent in exponents
        for step in steps
        if low <= step * 10.0**exponent <= high
    ]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks, [text(tick) for tick in ticks])


def point_tips(roofline: Roofline) -> dict[str, str]:
    """Tooltips of `kernel_roofline` by gid."""
    return {
        f"point-{point.memory.level}": f"{point.memory.label}: {significant(point.intensity)} FLOP/byte, "
        f"{flops(point.achieved)}, {point.percent:.1f} % of {flops(point.attainable)} attainable"
        for point in main_points(roofline)
    }
