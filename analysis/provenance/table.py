"""How every figure on a page is computed, and from which metrics: one table, which tests compare with the code.

A figure is named ``<analysis>.<field>`` after the result's dataclass; fields of rows are ``<analysis>.<list>.<field>``.
Where the formula is '' the figure is the metric itself, to the last digit. ``<…>`` in a metric's name stands for a part
that differs from row to row.
"""

from __future__ import annotations

from gemmprof.analysis.kernel_analysis import ANALYSES
from gemmprof.analysis.provenance import accesses, execution, launches, throughput
from gemmprof.analysis.provenance.figure import Figure

ALL: tuple[Figure, ...] = (
    *throughput.FIGURES,
    *execution.FIGURES,
    *accesses.FIGURES,
    *launches.FIGURES,
)
"""Every figure, analysis by analysis."""

FIGURES: dict[str, Figure] = {figure.key: figure for figure in ALL}
"""Every figure by its key."""


def figures_of(analysis: str) -> tuple[Figure, ...]:
    """The figures of one analysis, in the order of its section; () where it has none."""
    return tuple(figure for figure in ALL if figure.key.partition(".")[0] == analysis)


ANALYSES_WITHOUT_FIGURES = frozenset(
    {analysis.NAME for analysis in ANALYSES} - {f.key.partition(".")[0] for f in ALL}
)
"""Analyses that show no number of their own: Nsight Compute's advice."""
