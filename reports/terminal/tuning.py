"""What a search over tile parameters found: the best of them, and how the search went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmprof.model.answers import TuneDocument
from gemmprof.reports.terminal.stages import letters

if TYPE_CHECKING:
    from rich.console import Console

LISTED = 10


def print_search(console: Console, result: TuneDocument) -> None:
    """The fastest parameter sets, how many were dropped for what, the pace, the winner."""
    from rich.table import Table

    timed = sorted((o for o in result.outcomes if o.status == "timed"), key=lambda o: -(o.score or 0.0))
    table = Table(box=None, pad_edge=False)
    for heading in ("parameters", "% of cuBLAS", "registers", "blocks an SM"):
        table.add_column(heading, justify="left" if heading == "parameters" else "right")
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
