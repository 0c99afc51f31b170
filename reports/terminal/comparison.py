"""Comparisons in the terminal: the summary of all pairs, every quantity of one, and the records behind --json."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from gemmprof.reports import formatting
from gemmprof.reports.terminal.records import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gemmprof.analysis.comparison.pairs import Pair
    from gemmprof.analysis.comparison.quantify import Change


def records(pairs: Sequence[Pair], stopped: Collection[Pair]) -> list[dict[str, Any]]:
    """Every pair with every change, as plain data; ``stopped`` are those that the gate stops."""
    return [_record(pair, pair in stopped) for pair in pairs]


def reason(pair: Pair, allowed: float) -> str:
    """Why the gate stops this pair."""
    if pair.before is None:
        return "has no counterpart before"
    if pair.after is None:
        return "is missing after"
    if pair.time is None or pair.slower_percent is None:
        return "has no time on both sides"
    return f"{pair.slower_percent:.1f} % slower, {allowed:g} % allowed ({pair.time.title.lower()})"


def _record(pair: Pair, stopped: bool) -> dict[str, Any]:
    comparison = pair.comparison
    return {
        "label": pair.label,
        "before": None if pair.before is None else pair.before.label,
        "after": None if pair.after is None else pair.after.label,
        "slower_percent": pair.slower_percent,
        "time": None if pair.time is None else pair.time.name,
        "stopped_by_gate": stopped,
        "comparable": "" if comparison is None else comparison.comparable,
        "changes": []
        if comparison is None
        else [
            {**plain(change), "verdict": change.verdict, "ratio": change.ratio}
            for change in comparison.changes
        ],
    }


def print_pairs(console: Console, pairs: Sequence[Pair], *, details: bool) -> None:
    """The summary where there are several pairs, and with ``details`` every quantity of each."""
    if len(pairs) > 1:
        console.print(_summary(pairs))
    if not details:
        return
    for pair in pairs:
        if pair.comparison is not None:
            console.print()
            console.print(_table(pair))
            if pair.comparison.comparable:
                console.print(f"Note: {pair.comparison.comparable}")


def _summary(pairs: Sequence[Pair]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("Kernel", overflow="fold")
    for column in ("Before", "After", "Change", "Most for the worse", "Most for the better"):
        table.add_column(column, justify="right" if column in ("Before", "After", "Change") else "left")
    for pair in pairs:
        time, comparison = pair.time, pair.comparison
        if comparison is None:
            missing = "only before" if pair.after is None else "only after"
            table.add_row(Text(pair.label), "", "", missing, "", "")
            continue
        table.add_row(
            Text(pair.label),
            *((_value(time, time.before), _value(time, time.after)) if time is not None else ("–", "–")),
            _moved(time) if time is not None else "not timed",
            _first(comparison.worst_first),
            _first(comparison.best_first),
        )
    return table


def _first(changes: tuple[Change, ...]) -> str:
    others = (change for change in changes if change.group != "time")
    change = next(others, None)
    return "–" if change is None else f"{change.title} {_moved(change)}"


def _table(pair: Pair) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    assert pair.comparison is not None
    table = Table(box=box.SIMPLE_HEAD, title=Text(pair.label), title_justify="left")
    for column in ("Quantity", "Before", "After", "Change", ""):
        table.add_column(column, justify="left" if column in ("Quantity", "") else "right")
    group = ""
    for change in pair.comparison.changes:
        if change.group != group:
            group = change.group
            table.add_section()
        style = {"better": "green", "worse": "red"}.get(change.verdict)
        table.add_row(
            change.title,
            _value(change, change.before),
            _value(change, change.after),
            _moved(change),
            "" if change.verdict in ("changed", "same", "unknown") else change.verdict,
            style=style,
        )
    return table


def _value(change: Change, value: float | None) -> str:
    return formatting.quantity(value, change.unit)


def _moved(change: Change) -> str:
    return f"{change.arrow} {formatting.change_text(change)}".rstrip()
