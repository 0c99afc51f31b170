"""Launches that were found in a data set, and how its reading went."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.inputs.conditions import ALIASES, TITLES, canonical, unit_of
from gemmprof.base.printable import one_line
from gemmprof.reports.formatting import counted, nanoseconds, quantity
from gemmprof.reports.terminal import columns

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from gemmprof.reports.dataset.manifest import Update
    from gemmprof.reports.dataset.query import FindDocument

MOST_ERRORS = 20  # unreadable reports named one by one; of more, the rest is counted


def parts(answer: FindDocument, *, width: int) -> Iterator[RenderableType]:
    """The launches, longest first, with the values that the condition looked at."""
    from rich.text import Text

    if answer.found:
        names = list(answer.found[0].values)
        shown = [name for name in names if canonical(name) != "duration"][: 1 if width < 72 else 4]
        table = columns("launch", ">!time", *(f">{name}" for name in shown))
        units = {name: unit_of(name) or "" for name in shown}
        here = os.getcwd() + os.sep  # noqa: PTH109 (text: paths of reports are kept as text)
        for item in answer.found:
            # As one would type it here; the JSON has it whole.
            where = f"{item.report.removeprefix(here)} launch {item.launch}"
            values = [quantity(item.values[name], units[name]) for name in shown]
            name_of = Text(f"{item.family} {item.label}\n  {where}")
            table.add_row(name_of, nanoseconds(item.duration_ns), *values)
        yield table
    more = answer.matches - len(answer.found)
    tail = f", {more:,} more not shown (--limit)" if more > 0 else ""
    yield Text(f"{answer.matches:,} of {answer.launches:,} launches{tail}")


def names_table() -> Table:
    """Every figure and finding that a condition may name."""
    from gemmprof.analysis.inputs.named_figures import UNITS

    # A word of a figure is that figure, also where a cause has its name: `local_memory`.
    other = {name: ", ".join(word for word in ALIASES if ALIASES[word] == name) for name in UNITS}
    table = columns("!name", "also", "unit")
    for name, unit in UNITS.items():
        if name not in CAUSES:
            table.add_row(name, other[name], unit)
    for cause in (name for name in CAUSES if name not in ALIASES):
        words = ", ".join(word for word in TITLES if TITLES[word] == cause != word)
        table.add_row(cause, words, "% of time saved")
    return table


def progress(done: int, total: int, seconds_left: float) -> str:
    """One line on how far the reading is."""
    left = f", about {max(0.0, seconds_left):.0f} s left" if done < total else ""
    return f"{done:,} of {counted(total, 'report')} read{left}"


def summary(done: Update) -> Iterator[str]:
    """What the reading did, and which reports could not be read."""
    if done.read or done.removed:
        speed = ""
        if done.read > done.seconds > 1:
            speed = f", {done.read / done.seconds:.0f} a second"
        elif done.seconds > 1:
            speed = f" in {done.seconds:.0f} s"
        yield f"{counted(done.read, 'report')} read{speed}, {done.kept:,} unchanged, {done.removed:,} gone"
    for path, error in done.errors[:MOST_ERRORS]:
        yield one_line(f"not read: {path}: {error.splitlines()[0] if error else ''}")
    if len(done.errors) > MOST_ERRORS:
        yield f"and {len(done.errors) - MOST_ERRORS:,} more that could not be read"
