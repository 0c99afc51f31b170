"""A kernel's times over its history: every run, the level between steps, the noise around it, and the steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from gemmprof.analysis.history.band import levels
from gemmprof.analysis.history.changes import Change
from gemmprof.analysis.history.points import Point
from gemmprof.base.printable import visible
from gemmprof.reports.figures.svg import drawing
from gemmprof.reports.formatting import short_name


def draw_history(shown: Sequence[tuple[Sequence[Point], Sequence[Change]]], target: Path) -> None:
    """Draw one panel a series into a .png, .svg or .pdf file."""
    with drawing():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 2.6 * len(shown)), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for axes, (series, found) in zip(panels, shown, strict=True):
            _panel(axes, series, found)
        figure.savefig(target)


def _panel(axes: Any, series: Sequence[Point], found: Sequence[Change]) -> None:
    unit, scale = _unit(series)
    values = [point.time_ns / scale for point in series]
    dates = [point.origin.recorded_at for point in series]
    axes.plot(dates, values, ".", markersize=4)
    _, between = levels([point.time_ns for point in series], [change.step for change in found])
    for level in between:
        span = [dates[level.start], dates[level.stop - 1]]
        axes.plot(span, [level.time_ns / scale] * 2, "-", linewidth=1.5)
        low, high = level.low_ns / scale, level.high_ns / scale
        axes.fill_between(span, [low, low], [high, high], alpha=0.15, linewidth=0)
    for change in found:
        axes.axvline(change.after.origin.recorded_at, linestyle="--", linewidth=1)
        label = f"{100 * (change.step.ratio - 1):+.1f} % {', '.join(change.causes)}"
        axes.annotate(
            label,
            (change.after.origin.recorded_at, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -10),
            textcoords="offset points",
            fontsize=8,
        )
    first = series[0]
    axes.set_title(
        visible(f"{short_name(first.kernel)} {first.grid}, {first.device}, {first.kind}"), fontsize=9
    )
    axes.set_ylabel(unit)


def _unit(series: Sequence[Point]) -> tuple[str, float]:
    typical = median(point.time_ns for point in series)
    return next(((u, s) for u, s in (("ms", 1e6), ("µs", 1e3)) if typical >= s), ("ns", 1.0))
