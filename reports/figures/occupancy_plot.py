"""The three classic curves as a figure: occupancy over block size, registers and shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.analysis.occupancy.calculator import Occupancy, most_shared_memory_per_block, smallest_config
from gemmprof.base.buckets import written
from gemmprof.base.errors import OccupancyError, UsageError
from gemmprof.base.spread import grouped
from gemmprof.reports.figures.svg import matplotlib_defaults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FORMATS = ("pdf", "png", "svg")
# What each curve changes, what its axis says, and how much of it that counts by.
_RESOURCES = (
    ("threads_per_block", "threads per block", 1),
    ("registers_per_thread", "registers per thread", 1),
    ("shared_memory_per_block", "KiB of shared memory per block", 1024),
)
SHARED_MEMORY_STEP = 512  # bytes between two points of the curve over shared memory


def figure(answers: Sequence[Occupancy]) -> Figure:
    """One line per distinct curve; architectures that share it share the line. The present point is marked."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(12, 4), layout="constrained")
    panels = drawing.subplots(1, 3, sharey=True)
    labels = [answer.limits.label for answer in answers]
    for panel, axis, drawn in zip(panels, _RESOURCES, zip(*map(curves, answers), strict=True), strict=True):
        _draw(panel, *axis[1:], list(zip(labels, drawn, strict=True)))
    panels[0].set_ylabel("occupancy, %")
    drawing.suptitle(answers[0].configuration, fontsize=11)
    return drawing


def _draw(panel: Axes, title: str, scale: int, labelled: Sequence[tuple[str, Curve]]) -> None:
    groups = grouped((curve, label) for label, curve in labelled)
    for position, (curve, labels) in enumerate(groups.items()):
        x = [value / scale for value in curve.x]
        # Lines of different architectures overlap; thinner ones on top keep all of them visible.
        width = 2.6 - 1.6 * position / max(1, len(groups) - 1) if len(groups) > 1 else 2.0
        # What lies between two points is rounded up to the second.
        (line,) = panel.plot(
            x, curve.percent, drawstyle="steps-pre", linewidth=width, label=", ".join(labels)
        )
        here = curve.percent[curve.x.index(curve.present)]
        panel.plot([curve.present / scale], [here], "o", color=line.get_color(), markersize=7, zorder=5)
    panel.axvline(labelled[0][1].present / scale, color="0.5", linewidth=0.8, linestyle=":")
    panel.set_xlabel(title)
    panel.set_ylim(-3, 104)
    panel.grid(alpha=0.25)
    panel.legend(fontsize=8, loc="best", title="compute capability", title_fontsize=8)


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
