"""The ladder as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from gemmprof.model import Stage
from gemmprof.model.answers import TuneDocument
from gemmprof.reports.terminal import columns


def table(stages: Sequence[Stage]) -> Table:
    """A row a stage: number, name, idea (and the GPUs that it is written for, if not all), tile parameters."""
    result = Table(box=None, pad_edge=False)
    result.add_column("stage", justify="right")
    result.add_column(
        "name", overflow="fold", min_width=max((len(stage.name) for stage in stages), default=4)
    )
    result.add_column("its one idea", overflow="fold")
    result.add_column("tile parameters", overflow="fold", max_width=60)
    for stage in stages:
        needs = f" Needs {' or '.join(stage.architectures)}." if stage.architectures else ""
        result.add_row(str(stage.number), stage.name, stage.idea + needs, letters(stage.parameters))
    return result


def letters(parameters: Mapping[str, int]) -> str:
    """Tile parameters as one writes them: ``BM=64 BN=64``."""
    return " ".join(f"{letter}={value}" for letter, value in parameters.items())


LISTED = 10


def print_search(console: Console, result: TuneDocument) -> None:
    """The fastest parameter sets, how many were dropped for what, the pace, the winner."""
    timed = sorted((o for o in result.outcomes if o.status == "timed"), key=lambda o: -(o.score or 0.0))
    table = columns("parameters", ">% of cuBLAS", ">registers", ">blocks an SM")
    for outcome in timed[:LISTED]:
        table.add_row(
            letters(outcome.parameters),
            f"{100 * (outcome.score or 0.0):.1f}",
            str(outcome.registers),
            str(outcome.blocks_per_sm),
        )
    console.print(table)
    dropped = {
        o.status: sum(1 for other in result.outcomes if other.status == o.status) for o in result.outcomes
    }
    console.print("tried: " + ", ".join(f"{count} {status}" for status, count in sorted(dropped.items())))
    if result.tried:
        pace = 60 * result.tried / result.seconds
        console.print(f"{result.tried} parameter sets in {result.seconds:.0f} s, {pace:.0f} a minute")
    if len(result.cards) > 1:
        shares = {c: sum(1 for o in result.outcomes if o.card == c) for c in result.cards}
        told = ", ".join(f"{count} on {card.label}" for card, count in shares.items())
        console.print(f"measured: {told} ({result.cards[0].model})")
    console.print(
        f"winner: {letters(result.winner)}: {100 * result.best:.1f}% of cuBLAS, "
        f"{result.gain:.3f} times the catalog's parameters"
    )
