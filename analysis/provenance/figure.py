"""One figure of a page: its name, and what it is computed from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        key: ``<analysis>.<field>``.
        title: its name on the pages.
        metrics: names of the metrics that it is computed from (instance values where they are per instruction).
        formula: in the metrics' terms, '' where it is the one metric itself.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    formula: str = ""

    @property
    def words(self) -> str:
        """Formula and metrics in a line."""
        return f"{self.formula}, from {', '.join(self.metrics)}" if self.formula else ", ".join(self.metrics)


Row = tuple[str, str, "tuple[str, ...] | str"] | tuple[str, str, "tuple[str, ...] | str", str]


def table(analysis: str, *rows: Row) -> list[Figure]:
    """Figures of one analysis from rows of field, title, metrics and, where it is no metric itself, formula."""
    return [
        Figure(
            f"{analysis}.{row[0]}",
            row[1],
            (row[2],) if isinstance(row[2], str) else row[2],
            row[3] if len(row) == 4 else "",
        )
        for row in rows
    ]
