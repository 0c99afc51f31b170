"""The three classic curves as a figure: occupancy over block size, registers and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.analysis.occupancy.calculator import Occupancy
from gemmprof.analysis.occupancy.curves import Curve, curves
from gemmprof.analysis.occupancy.reasoning import count
from gemmprof.base.errors import UsageError
from gemmprof.base.output import new_file
from gemmprof.reports.figures import matplotlib_defaults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("pdf", "png", "svg")
_AXES = {
    "threads_per_block": "threads per block",
    "registers_per_thread": "registers per thread",
    "shared_memory_per_block": "KiB of shared memory per block",
}
_KIB = 1024


def figure(answers: Sequence[Occupancy]) -> Figure:
    """One line per distinct curve; architectures that share it share the line. The present point is marked."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(12, 4), layout="constrained")
    panels = drawing.subplots(1, 3, sharey=True)
    for panel, position in zip(panels, range(3), strict=True):
        _draw(panel, [(answer.limits.label, curves(answer)[position]) for answer in answers])
    panels[0].set_ylabel("occupancy, %")
    first = answers[0]
    drawing.suptitle(
        f"{count(first.threads_per_block, 'thread')} per block, "
        f"{count(first.registers_per_thread, 'register')} per thread, "
        f"{count(first.shared_memory_per_block, 'byte')} of shared memory per block",
        fontsize=11,
    )
    return drawing


def _draw(panel: Axes, labelled: Sequence[tuple[str, Curve]]) -> None:
    groups: dict[Curve, list[str]] = {}
    for label, curve in labelled:
        groups.setdefault(curve, []).append(label)
    scale = _KIB if labelled[0][1].resource == "shared_memory_per_block" else 1
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
    panel.set_xlabel(_AXES[labelled[0][1].resource])
    panel.set_ylim(-3, 104)
    panel.grid(alpha=0.25)
    panel.legend(fontsize=8, loc="best", title="compute capability", title_fontsize=8)


def save_plot(answers: Sequence[Occupancy], path: Path) -> Path:
    """Write the figure; the name's ending says in which format.

    Raises:
        UsageError: if the ending is not one of `FORMATS`.
    """
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise UsageError(
            f"'{path.name}' does not say which picture to write",
            remedies=[f"end the name in {', '.join('.' + name for name in FORMATS)}"],
        )
    # Text stays text in SVG: smaller, searchable, and the same bytes on every run.
    with (
        matplotlib_defaults({"svg.fonttype": "none", "svg.hashsalt": "gemmprof"}),
        new_file(path) as temporary,
    ):
        figure(answers).savefig(temporary, dpi=150)
    return path
