"""What a search over tile parameters found: the best of them, and how the search went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from gemmprof.model import Card
from gemmprof.reports.terminal.stages import letters

if TYPE_CHECKING:
    from rich.console import Console

LISTED = 10


class Outcome(Protocol):
    """One parameter set that was tried; the profiler's `Outcome` is one. ``score`` is a share of cuBLAS's speed."""

    @property
    def parameters(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def score(self) -> float | None: ...  # noqa: D102
    @property
    def registers(self) -> int | None: ...  # noqa: D102
    @property
    def blocks_per_sm(self) -> int | None: ...  # noqa: D102
    @property
    def card(self) -> Card | None: ...  # noqa: D102


class SearchResult(Protocol):
    """A finished search; the profiler's `SearchResult` is one."""

    @property
    def outcomes(self) -> Sequence[Outcome]: ...  # noqa: D102
    @property
    def tried(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def winner(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def best(self) -> float: ...  # noqa: D102
    @property
    def gain(self) -> float: ...  # noqa: D102
    @property
    def cards(self) -> Sequence[Card]: ...  # noqa: D102


def print_search(console: Console, result: SearchResult) -> None:
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
