"""The figures: a kernel's roofline and performance over size, drawn by matplotlib from analysis results.

Every function returns a matplotlib ``Figure``; `svg.page_svg` puts it into a page, ``savefig`` into a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from markupsafe import Markup

from gemmprof.analysis.occupancy.calculator import Occupancy, most_shared_memory_per_block, smallest_config
from gemmprof.analysis.sections.roofline import ComputeRoof, MemoryRoof, Roofline, RooflinePoint
from gemmprof.base.buckets import written
from gemmprof.base.errors import OccupancyError, UsageError
from gemmprof.base.printable import visible
from gemmprof.base.spread import grouped
from gemmprof.reports.figures.svg import PALETTE, blank, drawing, matplotlib_defaults, page_svg
from gemmprof.reports.formatting import bandwidth, fit, flops, significant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL_MARKERS = {"dram": "o", "l2": "s", "l1": "D", "shared": "^"}
LEVEL_COLOURS = {level: PALETTE[level] for level in LEVEL_MARKERS}


class Drawn(NamedTuple):
    """A roofline for a page, and what the page's script needs to tell intensities and speeds in it."""

    figure: Markup
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RooflinePicture:
    """A roofline as drawn."""

    figure: Figure  # its first axes are logarithmic
    points: Mapping[str, tuple[float, float, str]]  # FLOP/byte, FLOP/s and words, by gid
    memories: Sequence[MemoryRoof]  # the roofs of the memories
    peak: float  # the highest compute roof, FLOP/s

    def drawn(self, identifier: str, title: str, description: str) -> Drawn:
        """As `svg.page_svg`; ``box`` are the axes in the units of the SVG: 1/72 inch, y downwards."""
        axes = self.figure.axes[0]
        place = axes.get_position()
        width, height = (72.0 * size for size in self.figure.get_size_inches())
        box = {"left": place.x0 * width, "right": place.x1 * width}
        box |= {"top": (1 - place.y1) * height, "bottom": (1 - place.y0) * height}
        data = {
            "box": box,
            "x": list(axes.get_xlim()),
            "y": list(axes.get_ylim()),
            "points": [{"x": x, "y": y, "text": text} for x, y, text in self.points.values()],
            "roofs": [{"label": memory.label, "peak": memory.peak} for memory in self.memories],
            "peak": self.peak,
        }
        told = [(gid, text) for gid, (*_, text) in self.points.items()]
        tips = {gid.replace("step", of): text for of in ("step", "near") for gid, text in told}
        return Drawn(page_svg(self.figure, identifier, title, description, tips), data)


def kernel_roofline(roofline: Roofline) -> RooflinePicture | None:
    """One kernel under its roofs, a point for each memory level; None if it did no arithmetic that was counted."""
    points = roofline.main_points
    main = roofline.main
    if main is None or not points:
        return None
    markers = {}
    with drawing():
        figure, axes = blank(8.2, 4.6)
        others = [roof for roof in roofline.compute_roofs if roof is not main and (roof.percent or 0) >= 1]
        draw_roofs(axes, points, main, [main, *others], roofline.memory_roofs, free_of=points[0].achieved)
        across = [p.intensity for p in points]
        ends, level = [min(across), max(across)], [points[0].achieved] * 2
        axes.plot(ends, level, color=PALETTE["faint"], linewidth=1, zorder=3)
        for point in points:
            colour = LEVEL_COLOURS.get(point.memory.level, PALETTE["other"])
            up = [point.achieved, point.attainable]
            axes.plot([point.intensity] * 2, up, color=colour, linewidth=1, linestyle=(0, (1, 2)))
            shape, gid = LEVEL_MARKERS.get(point.memory.level, "o"), f"point-{point.memory.level}"
            draw_point(axes, point, shape, colour, gid)
            reached = (
                f"{flops(point.achieved)}, {point.percent:.1f} % of {flops(point.attainable)} attainable"
            )
            words = f"{point.memory.label}: {significant(point.intensity)} FLOP/byte, {reached}"
            markers[gid] = (point.intensity, point.achieved, words)
        rightmost = ends[1]
        left, right = axes.get_xlim()
        # A name that would run out of the frame stands left of its point.
        leaves = math.log(right / rightmost) < 0.2 * math.log(right / left)
        side = {"ha": "right" if leaves else "left", "va": "top"}
        bold = {"fontsize": 10, "fontweight": "bold", "zorder": 6}
        achieved = points[0].achieved
        beside(axes, flops(achieved), (rightmost, achieved), (-9 if leaves else 9, -3), **side, **bold)
    return RooflinePicture(figure, markers, roofline.memory_roofs, main.peak)


def draw_point(axes: Any, point: RooflinePoint, shape: str, colour: str, gid: str) -> None:
    """A marker where a kernel is; ``gid`` names it for the page's script."""
    edge = {"markeredgecolor": PALETTE["panel"], "markeredgewidth": 1.2}
    place = [point.intensity], [point.achieved]
    axes.plot(*place, shape, markersize=8, color=colour, **edge, zorder=5, gid=gid)


def beside(axes: Any, text: str, place: tuple[float, float], by: tuple[float, float], **style: Any) -> None:
    """A text beside a place, ``by`` so many points right of it and above."""
    axes.annotate(text, place, xytext=by, textcoords="offset points", **{"fontsize": 9, **style})


def performance_over_size(
    series: Sequence[tuple[str, Sequence[tuple[str, float]]]], sizes: Sequence[str]
) -> Figure:
    """TFLOP/s of several stages, the first the yardstick, over problem sizes: (label, points) of each, a point being
    (size label, TFLOP/s), and the size labels in order along the axis.
    """
    with drawing():
        figure, axes = blank(9.8, 4.6, right=2.7)
        place = {size: index for index, size in enumerate(sizes)}
        names = ("dram", "l2", "l1", "shared", "sm", "bad", "warn", "good", "muted")
        colours = [PALETTE[name] for name in names]
        for index, (label, points) in enumerate(series):
            colour = PALETTE["other"] if index == 0 else colours[(index - 1) % len(colours)]
            xs, ys = [place[size] for size, _ in points], [value for _, value in points]
            again = index > len(colours)  # the colours again, told apart by marker and dashes
            shape = "s" if again else "o"
            marks = {"marker": shape, "markersize": 4.5, "color": colour, "gid": f"series-{index}"}
            dashes = "--" if index == 0 else (0, (5, 1.2)) if again else "-"
            axes.plot(xs, ys, **marks, linewidth=1.6, linestyle=dashes, label=visible(fit(label, 30)))
        axes.set_xticks(range(len(sizes)), [visible(size) for size in sizes])
        axes.set_xlim(-0.2, len(sizes) - 1 + 0.2)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("size of the product, M×N×K")
        axes.set_ylabel("TFLOP/s")
        axes.grid(axis="x", visible=False)
        # In the order in which the lines end.
        lines = sorted(axes.get_lines(), key=lambda line: -line.get_ydata()[-1])
        names_beside(axes, lines)
        return figure


def names_beside(axes: Any, lines: Sequence[Any], *, left: float = 1.0, handlelength: float = 2.4) -> None:
    """The names of what is drawn, in a list right of the axes."""
    place = {"loc": "upper left", "bbox_to_anchor": (left, 1.02), "frameon": False}
    axes.legend(handles=lines, **place, fontsize=9, handlelength=handlelength, labelspacing=0.4)


def draw_roofs(
    axes: Any,
    points: Sequence[RooflinePoint],
    main: ComputeRoof,
    computes: Sequence[ComputeRoof],
    memories: Sequence[MemoryRoof],
    *,
    free_of: float | None = None,
) -> None:
    """Axes that hold every point and the ridges, memory roofs up to the highest compute roof, compute roofs right of
    where they meet the fastest memory.

    Names of the memories stand at the lower ends of their roofs, or above the speed ``free_of`` where more room is.
    """
    ridges = [roof.ridge(main) for roof in memories if roof.peak > 0]
    intensities = [point.intensity for point in points]
    left = min([*intensities, *(ridge / 3 for ridge in ridges)]) / 2.2
    highest = max(roof.peak for roof in computes)
    right, top = max([*intensities, *ridges]) * 4, max(main.peak * 2.0, highest * 1.3)
    bottom = max(min(point.achieved for point in points) / 3.0, top * 1e-6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    fastest = max((roof.peak for roof in memories), default=0.0)
    for roof in computes:
        start = max(left, roof.peak / fastest) if fastest else left
        axes.plot([start, right], [roof.peak] * 2, color=PALETTE["sm"], linewidth=1.8, zorder=2)
    for roof, label in _labels_of_roofs(computes):
        text = f"{visible(label)} {flops(roof.peak)}"
        beside(axes, text, (right, roof.peak), (-4, 4), ha="right", color=PALETTE["sm"])
    (x0, y0), (x1, y1) = axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))  # of a line of slope 1 on these axes
    above = free_of is not None and highest / free_of > free_of / bottom
    for position, memory in enumerate(memories):
        start = max(left, bottom / memory.peak)
        end = min(right, highest / memory.peak)
        if end <= start:
            continue
        colour = LEVEL_COLOURS.get(memory.level, PALETTE["other"])
        ends = [start, end], [start * memory.peak, end * memory.peak]
        axes.plot(*ends, color=colour, linewidth=1.8, zorder=2)
        # The name runs along its roof, below it where another roof lies close above; one name for the same roof.
        twins = [other for other in memories if abs(other.peak / memory.peak - 1) < 0.01]
        if memory is not twins[-1]:
            continue
        below = any(
            (memory.peak, position) < (other.peak, index) and other.peak < 1.5 * memory.peak
            for index, other in enumerate(memories)
        )
        first = max(1.12 * start, 1.25 * (free_of or 0.0) / memory.peak if above else 0.0)
        text = f"{visible(', '.join(twin.label for twin in twins))} {bandwidth(memory.peak)}"
        place, by = (first, first * memory.peak), (3, -3) if below else (-2, 4)
        along = {"rotation": angle, "rotation_mode": "anchor", "va": "top" if below else "bottom"}
        beside(axes, text, place, by, **along, color=colour)
    axes.set_xlabel("arithmetic intensity, FLOP/byte")
    axes.set_ylabel("performance, FLOP/s")
    _decades(axes.xaxis, left, right, lambda value: f"{value:,.6g}")
    _decades(axes.yaxis, bottom, top, _tera)


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


def _decades(axis: Any, low: float, high: float, text: Callable[[float], str]) -> None:
    """Ticks at powers of ten (1, 3, 10 … over short axes), written without exponents."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1.0,) if len(exponents) > 4 else (1.0, 3.0)
    _ticks(axis, [tick for e in exponents for step in steps if low <= (tick := step * 10.0**e) <= high], text)


def _ticks(axis: Any, ticks: Sequence[float], text: Callable[[float], str]) -> None:
    """These ticks and no smaller ones between them."""
    from matplotlib.ticker import NullLocator

    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks, [text(tick) for tick in ticks])


PATH_LEVEL = "dram"  # memory level of the roofline that shows several kernels


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a roofline with several: ``mark`` is what its marker says, ``label`` stands in the legend."""

    mark: str
    label: str
    roofline: Roofline
    yardstick: bool = False  # true for cuBLAS: drawn apart, the path does not pass through it


def ladder_roofline(steps: Sequence[Step], *, path: bool = True) -> RooflinePicture | None:
    """Several kernels against device memory, with the ``path`` from one to the next; None if none has a point."""
    # Each stands where its main arithmetic does.
    points = ((step, point) for step in steps for point in step.roofline.main_points)
    placed = [(step, point) for step, point in points if point.memory.level == PATH_LEVEL]
    if not placed:
        return None
    with drawing():
        # The steps near the fastest one, if they are too many to be told apart on axes of several decades.
        best = max(point.achieved for _, point in placed)
        near = [(step, point) for step, point in placed if point.achieved >= best / CROWD_FACTOR]
        crowd = near if 4 <= len(near) < len(placed) else []
        figure, axes = blank(10.4, 4.6, right=5.4 if crowd else 2.4)
        roofs = _highest([point.compute for _, point in placed], "key")
        memories = _highest([point.memory for _, point in placed], "level")
        top = max(roofs, key=lambda roof: roof.peak)
        draw_roofs(axes, [point for _, point in placed], top, roofs, memories)
        _steps(axes, placed, named=[item for item in placed if item not in crowd], path=path)
        listed = (f"{step.mark} {fit(step.label.removeprefix(f'{step.mark} '), 30)}" for step, _ in placed)
        unseen = [axes.plot([], [], linestyle="none", label=visible(name))[0] for name in listed]
        if crowd:
            _inset(axes, placed, crowd, path=path)
        names_beside(axes, unseen[:MOST_NAMED], left=1.66 if crowd else 1.0, handlelength=0)
    markers = {}
    for index, (step, point) in enumerate(placed):
        words = f"{fit(step.label)}: {significant(point.intensity)} FLOP/byte, {flops(point.achieved)}"
        markers[f"step-{index}"] = point.intensity, point.achieved, words
    return RooflinePicture(figure, markers, memories, top.peak)


Placed = tuple[Step, RooflinePoint]
Roof = TypeVar("Roof", ComputeRoof, MemoryRoof)

CROWD_FACTOR = 1.8  # steps within this factor of the fastest are a crowd: an inset shows them larger
MOST_NAMED = 22  # names that the list beside the roofline has room for
BESIDE = (1.14, 0.0, 0.5, 1.0)  # where the crowd stands: left, bottom, width and height as shares of the axes


def _inset(axes: Any, placed: Sequence[Placed], crowd: Sequence[Placed], *, path: bool) -> None:
    """The crowd again, larger."""
    from matplotlib.ticker import MaxNLocator

    inset = axes.inset_axes(BESIDE)
    intensities = [point.intensity for _, point in crowd]
    speeds = [point.achieved for _, point in crowd]
    inset.set_xscale("log")
    inset.set_yscale("log")
    left, right = min(intensities), max(intensities)
    inset.set_xlim(left / 1.12, right * max(1.35, (right / left) ** 0.7))
    inset.set_ylim(min(speeds) / 1.06, max(speeds) * 1.06)
    inset.set_facecolor(PALETTE["panel"])
    for axis, text in ((inset.xaxis, lambda value: f"{value:,.0f}"), (inset.yaxis, _tera)):
        low, high = axis.get_view_interval()
        _ticks(axis, [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high], text)
    inset.tick_params(labelsize=8, length=2)
    for side in inset.spines.values():
        side.set_visible(True)
    _steps(inset, placed, named=crowd, path=path, gid="near")
    axes.indicate_inset_zoom(inset, edgecolor=PALETTE["faint"], alpha=1)


def _tera(value: float) -> str:
    """``1.2 T``, without the unit that the axis names."""
    return flops(value).removesuffix("FLOP/s").strip()


def _steps(
    axes: Any, placed: Sequence[Placed], *, named: Sequence[Placed], path: bool, gid: str = "step"
) -> None:
    """Points, arrows from step to step, and the marks of some of them."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    ladder = [(point.intensity, point.achieved) for step, point in placed if path and not step.yardstick]
    for start, end in pairwise(ladder):
        if not all(left <= x <= right and bottom <= y <= top for x, y in (start, end)):
            continue
        arrow = {"arrowstyle": "-|>", "color": PALETTE["muted"], "linewidth": 0.9, "shrinkA": 5, "shrinkB": 5}
        axes.annotate("", end, start, zorder=3, arrowprops=arrow)
    for index, (step, point) in enumerate(placed):
        colour = PALETTE["other"] if step.yardstick else PALETTE["accent"]
        draw_point(axes, point, "s" if step.yardstick else "o", colour, f"{gid}-{index}")
    for step, point in named:
        colour = PALETTE["muted"] if step.yardstick else PALETTE["fg"]
        beside(axes, visible(step.mark), (point.intensity, point.achieved), (7, 4), color=colour, zorder=6)


def _highest(roofs: Sequence[Roof], kind: str) -> tuple[Roof, ...]:
    alike = grouped((getattr(roof, kind), roof) for roof in roofs).values()
    return tuple(max(same, key=lambda roof: roof.peak) for same in alike)


# --- The three classic curves -----------------------------------------------------------------------------------------

FORMATS = ("pdf", "png", "svg")
# What the axis of each curve says, and how much of the resource it counts by.
_AXES = (("threads per block", 1), ("registers per thread", 1), ("KiB of shared memory per block", 1024))
SHARED_MEMORY_STEP = 512  # bytes between two points of the curve over shared memory


def figure(answers: Sequence[Occupancy]) -> Figure:
    """One line per distinct curve; architectures that share it share the line. The present point is marked."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(12, 4), layout="constrained")
    panels = drawing.subplots(1, 3, sharey=True)
    labels = [answer.limits.label for answer in answers]
    across = zip(*map(curves, answers), strict=True)
    for panel, (title, scale), drawn in zip(panels, _AXES, across, strict=True):
        groups = grouped(zip(drawn, labels, strict=True))
        for position, (curve, alike) in enumerate(groups.items()):
            x = [value / scale for value in curve.x]
            # Lines of different architectures overlap; thinner ones on top keep all of them visible.
            width = 2.6 - 1.6 * position / max(1, len(groups) - 1) if len(groups) > 1 else 2.0
            # What lies between two points is rounded up to the second.
            style = {"drawstyle": "steps-pre", "linewidth": width, "label": ", ".join(alike)}
            (line,) = panel.plot(x, curve.percent, **style)
            here = curve.percent[curve.x.index(curve.present)]
            panel.plot([curve.present / scale], [here], "o", color=line.get_color(), markersize=7, zorder=5)
        panel.axvline(drawn[0].present / scale, color="0.5", linewidth=0.8, linestyle=":")
        panel.set_xlabel(title)
        panel.set_ylim(-3, 104)
        panel.grid(alpha=0.25)
        panel.legend(fontsize=8, loc="best", title="compute capability", title_fontsize=8)
    panels[0].set_ylabel("occupancy, %")
    drawing.suptitle(answers[0].configuration, fontsize=11)
    return drawing


def save_plot(answers: Sequence[Occupancy], path: Path) -> Path:
    """Write the figure; the name's ending says in which format; UsageError if the ending is not one of `FORMATS`."""
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise UsageError(
            f"'{path.name}' does not say which picture to write",
            f"end the name in {', '.join('.' + name for name in FORMATS)}",
        )
    # Text stays text in SVG: smaller, searchable, and the same bytes on every run.
    with (
        matplotlib_defaults({"svg.fonttype": "none", "svg.hashsalt": "gemmprof"}),
        written(path) as temporary,
    ):
        figure(answers).savefig(temporary, dpi=150)
    return path


@dataclass(frozen=True, slots=True)
class Curve:
    """Resident warps of an SM over one resource; 0 where no block fits. Its ``present`` value is among ``x``."""

    x: tuple[int, ...]
    warps: tuple[int, ...]
    present: int
    max_warps: int

    @property
    def percent(self) -> tuple[float, ...]:
        """Occupancy at each x, 0 to 100."""
        return tuple(100 * warps / self.max_warps for warps in self.warps)


def curves(present: Occupancy) -> tuple[Curve, Curve, Curve]:
    """Occupancy over threads per block (whole warps), registers per thread and shared memory per block."""
    limits = present.limits

    def curve(resource: str, values: Iterable[int]) -> Curve:
        here = getattr(present, resource)
        x = tuple(sorted({*values, here}))
        warps = tuple(resident_warps(present, resource, value) for value in x)
        return Curve(x, warps, here, limits.max_warps_per_sm)

    threads = range(limits.warp_size, limits.max_threads_per_block + 1, limits.warp_size)
    shared = range(0, most_shared_memory_per_block(limits) + 1, SHARED_MEMORY_STEP)
    return (
        curve("threads_per_block", threads),
        curve("registers_per_thread", range(1, limits.max_registers_per_thread + 1)),
        curve("shared_memory_per_block", shared),
    )


def resident_warps(present: Occupancy, resource: str, value: int) -> int:
    """Warps per SM with one value of the configuration replaced; 0 where the configuration cannot run.

    A block that outgrows the carve-out gets the smallest one that holds it, as the driver does at a launch; ncu's own
    curves over shared memory do the same.
    """
    values = {resource: value}
    if resource == "shared_memory_per_block" and value > present.shared_memory_per_block:
        enough = smallest_config(present.limits, value + present.limits.reserved_shared_memory_per_block)
        values["shared_memory_config"] = max(present.shared_memory_config, enough or 0)
    try:
        return present.changed(**values).active_warps_per_sm
    except OccupancyError:
        return 0
