"""A history in the terminal: its series, a kernel's times with their noise band, the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gemmprof.analysis.history.changes import FEWEST, Change, Point, levels
from gemmprof.analysis.inputs.names import labels
from gemmprof.reports.formatting import counted, nanoseconds, times
from gemmprof.reports.history.store import Series
from gemmprof.reports.terminal import columns

PLOT_ROWS = 8
_DOT, _BAND = "•", "·"


def series_table(series: Sequence[Series], *, width: int) -> Table:
    """A row a series: kernel, card, points, last time."""
    table = columns("kernel", ">!runs", ">!last", *[">!last run"] * (width >= 72))
    told = labels(item.kernel for item in series)
    for item in series:
        name = Text(f"{_named(told[item.kernel], item.grid)}\n  {item.device}, {item.kind}")
        cells = [str(item.count), nanoseconds(item.last_ns), f"{item.last:%Y-%m-%d}"]
        table.add_row(name, *cells[: len(table.columns) - 1])
    return table


def plots(
    shown: Sequence[tuple[Sequence[Point], Sequence[Change]]], *, width: int
) -> Iterator[RenderableType]:
    """Each series as a small plot, with the steps under it."""
    for number, (series, found) in enumerate(shown):
        first, last = series[0], nanoseconds(series[-1].time_ns)
        if number:
            yield Text()
        yield Text(_named(first.kernel, first.grid), style="bold")
        yield Text(f"{first.device}, {first.kind}, {counted(len(series), 'run')}, last {last}")
        yield Text("\n".join(_plot(series, found, min(width, 100))))
        for change in found:
            yield Text(f"  {sentence(change)}")
        if not found:
            few = f": a step needs {FEWEST} runs" if len(series) < FEWEST else ""
            yield Text(f"  no step found{few}")


def _named(kernel: str, grid: str) -> str:
    """A series' kernel with its grid, where it has one."""
    return f"{kernel}, grid {grid}" if grid else kernel


def sentence(change: Change) -> str:
    """One step in words."""
    when = f"{change.after.origin.recorded_at:%Y-%m-%d}"
    commit = f" ({change.after.origin.commit})" if change.after.origin.commit else ""
    direction = "slower" if change.is_slower else "faster"
    size = change.step.ratio if change.is_slower else 1 / change.step.ratio
    why = "; ".join(f"{cause}: {detail}" for cause, detail in zip(change.causes, change.details, strict=True))
    return f"{when}{commit}: {times(size)} {direction}, noise {100 * change.step.noise:.1f} %. {why}"


def changes_found(found: Sequence[Change], looked_at: int, too_short: int) -> Iterator[RenderableType]:
    """The steps of many series, slower ones first, and how many have too few runs to hold one."""
    for change in found:
        first = change.after
        yield Text(_named(first.kernel, first.grid) + f" ({first.device}, {first.kind})", style="bold")
        yield Text(f"  {sentence(change)}")
    slower = sum(change.is_slower for change in found)
    steps = f"{counted(slower, 'slower step')}, {len(found) - slower} faster"
    yield Text(f"{counted(looked_at, 'kernel')} looked at: {steps}")
    if too_short:
        yield Text(
            f"{counted(too_short, 'kernel')} with fewer than {FEWEST} runs, in which no step can be found yet"
        )


def _plot(series: Sequence[Point], found: Sequence[Change], width: int) -> list[str]:
    """Times as dots over the runs; the dotted lines are the band of noise around each level."""
    values = [point.time_ns for point in series]
    low, high = min(values), max(values)
    if low == high:
        low, high = low * 0.99, high * 1.01
    count = min(max(10, width - 12), len(values))
    cells = [[" "] * count for _ in range(PLOT_ROWS)]

    def row(value: float) -> int:
        share = (value - low) / (high - low)
        return PLOT_ROWS - 1 - min(PLOT_ROWS - 1, max(0, round(share * (PLOT_ROWS - 1))))

    _, between = levels(values, [change.step for change in found])
    for column in range(count):
        start = column * len(values) // count
        stop = max(start + 1, (column + 1) * len(values) // count)
        level = next(level for level in between if start < level.stop)
        for bound in (level.low_ns, level.high_ns):
            if low <= bound <= high:
                cells[row(bound)][column] = _BAND
        for value in values[start:stop]:
            cells[row(value)][column] = _DOT
    labels = {0: nanoseconds(high), PLOT_ROWS - 1: nanoseconds(low)}
    return [f"{labels.get(i, ''):>9} │{''.join(line)}" for i, line in enumerate(cells)]
