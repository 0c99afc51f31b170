"""The traffic model: what a GEMM stage must load at every level, from its tile sizes, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.model import Problem, Stage


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """One quantity, predicted and measured.

    Attributes:
        name: identifier, for example ``global_loads_per_output``.
        title: name for people.
        unit: ``element``, ``byte``, ``instruction``, ``FLOP/byte`` or ''.
        predicted: from the tile sizes; None where the model says nothing.
        formula: how, in tile letters, for example ``K/BN + K/BM``.
        measured: from the report, None if it was not collected.
        note: why the two may differ (what a cache did), '' if they should agree.
    """

    name: str
    title: str
    unit: str
    predicted: float | None
    formula: str
    measured: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        if self.measured is None or not self.predicted:
            return None
        return self.measured / self.predicted


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic model of one stage on one problem, and what the report measured.

    Attributes:
        stage, problem: what was modelled.
        rows: the quantities, from the threads outward: per-output loads, bytes at shared memory, L1, L2, device
            memory, and the arithmetic intensity at each level.
    """

    stage: Stage
    problem: Problem
    rows: tuple[TrafficRow, ...]

    def row(self, name: str) -> TrafficRow | None:
        """The quantity with this name, or None."""
        return next((row for row in self.rows if row.name == name), None)
