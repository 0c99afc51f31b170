"""Compare two runs, reports or kernels: time, instructions, bytes per level, conflicts, occupancy, stalls.

With two inputs, stages of runs are matched by number and shape, kernels of reports by name. With one input, each
kernel is compared with the one before it. --before and --after pick one kernel on each side.

  gemmprof diff old-run/ new-run/ --fail-slower 5    exit code 1 if anything became more than 5 % slower
  gemmprof diff a.ncu-rep b.ncu-rep --details        every quantity, grouped
  gemmprof diff run/ --before 5 --after 6            two stages of one run, on its first shape (5@2048: on another)
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gemmprof.commands import _shared
from gemmprof.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from gemmprof.analysis.comparison.pairs import Pair
    from gemmprof.analysis.comparison.quantify import Change


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="RUN|REPORT",
        help="before and after; one: compare inside it; none: the newest run here, else the recorded H100 run",
    )
    parser.add_argument(
        "--before", metavar="KERNEL", help="stage number (5, or 5@2048), launch index or part of a name"
    )
    parser.add_argument("--after", metavar="KERNEL", help="the same for the other side")
    parser.add_argument(
        "--fail-slower",
        type=_percent,
        metavar="PCT",
        help="exit with 1 if a kernel is more than PCT per cent slower, is missing, or has no time to compare",
    )
    parser.add_argument("--details", action="store_true", help="every quantity of every pair")
    _shared.add_json_argument(parser)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of per cent, 0 or more")
    return value


def run(options: argparse.Namespace) -> int:
    """Print the comparison; 1 if ``--fail-slower`` was given and does not hold."""
    from gemmprof.analysis.comparison.pairs import too_slow

    pairs = _pairs(options)
    if not pairs:
        raise UsageError(
            "there is nothing to compare",
            remedies=["give two runs or reports", "give one that holds at least two kernels"],
        )
    stopped = () if options.fail_slower is None else too_slow(pairs, options.fail_slower)
    if options.json:
        _shared.print_json([_as_json(pair, pair in stopped) for pair in pairs])
    else:
        _print(pairs, details=options.details or len(pairs) == 1)
    for pair in stopped:
        print(f"gemmprof diff: {pair.label}: {_reason(pair, options.fail_slower)}", file=sys.stderr)
    return 1 if stopped else 0


def _pairs(options: argparse.Namespace) -> tuple[Pair, ...]:
    from gemmprof.analysis.comparison import pairs as comparison_pairs
    from gemmprof.analysis.session import load_session

    if len(options.inputs) > 2:
        raise UsageError("more than two inputs were named", remedies=["name a before and an after"])
    picked = (options.before, options.after)
    if any(picked) and not all(picked):
        raise UsageError("--before and --after belong together", remedies=["give both, or neither"])
    if len(options.inputs) == 2:
        before, after = (load_session([path]) for path in options.inputs)
        _shared.name_failures(options, (*before.failures, *after.failures))
    else:
        before = after = _shared.load_inputs(options)
    if all(picked):
        left, right = (comparison_pairs.chosen(s, p) for s, p in zip((before, after), picked, strict=True))
        return (comparison_pairs.pair_of(left, right),)
    return comparison_pairs.rungs(before) if before is after else comparison_pairs.pair_up(before, after)


def _reason(pair: Pair, allowed: float) -> str:
    if pair.before is None:
        return "has no counterpart before"
    if pair.after is None:
        return "is missing after"
    if pair.time is None or pair.slower_percent is None:
        return "has no time on both sides"
    return f"{pair.slower_percent:.1f} % slower, {allowed:g} % allowed ({pair.time.title.lower()})"


def _as_json(pair: Pair, stopped: bool) -> dict[str, object]:
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
            {**_shared.plain(change), "verdict": change.verdict, "ratio": change.ratio}
            for change in comparison.changes
        ],
    }


def _print(pairs: tuple[Pair, ...], *, details: bool) -> None:
    console = _shared.console()
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


def _summary(pairs: tuple[Pair, ...]) -> Table:
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
    from gemmprof.reports import formatting

    return formatting.quantity(value, change.unit)


def _moved(change: Change) -> str:
    from gemmprof.reports.pages.environment import change_text

    return f"{change.arrow} {change_text(change)}".rstrip()
