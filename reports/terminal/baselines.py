"""Baselines in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.reports import formatting

if TYPE_CHECKING:
    from rich.console import Console

    from gemmprof.analysis.comparison.baseline import Baseline


def print_list(console: Console, found: Sequence[tuple[str, Baseline]], folder: Path) -> None:
    """One line a baseline."""
    from rich.table import Table
    from rich.text import Text

    if not found:
        console.print(Text(f"no baseline in {folder}; gemmprof baseline save NAME REPORT makes one"))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("baseline", overflow="fold")
    for column in ("kernels", "launches", "processes"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, kept in found:
        devices = ", ".join(dict.fromkeys(kernel.origin.device for kernel in kept.kernels))
        saved = kept.saved[:16].replace("T", " ")
        table.add_row(
            Text(f"{name}\n  {saved}, {kept.title}\n  {devices}"),
            str(len(kept.kernels)),
            str(sum(kernel.launches for kernel in kept.kernels)),
            str(kept.processes),
        )
    console.print(table)


def print_one(console: Console, name: str, kept: Baseline) -> None:
    """The kernels of one baseline."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print(
        Text(f"{name}: saved {kept.saved} from {kept.title}, {formatting.counted(kept.processes, 'process')}")
    )
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("Kernel", "Grid", "Launches", "Time", "Registers", "Instructions", "GPU"):
        table.add_column(column, justify="left" if column in ("Kernel", "GPU") else "right", overflow="fold")
    for kernel in kept.kernels:
        registers = kernel.measures.values.get("registers")
        table.add_row(
            Text(kernel.label),
            formatting.grid(kernel.grid_text),
            str(kernel.launches),
            formatting.quantity(kernel.seconds, "s"),
            "" if registers is None else f"{registers:g}",
            "" if kernel.code is None or not kernel.code.instructions else f"{kernel.code.instructions:,}",
            Text(kernel.origin.device),
        )
    console.print(table)
