"""Every figure of a launch by the name that a user writes: in `gemmprof find`, and in a gate.

Three kinds of names: figures (`time`, `registers`, `l2_hit_rate`: the quantities of a comparison), causes of findings
(`shared_bank_conflicts`: per cent of the launch's time that fixing it is predicted to save), and Nsight Compute's own
metric names. Percentages run from 0 to 100, times are nanoseconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmprof.analysis.comparison.quantities import ALIASES, QUANTITIES
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.model import Explanation

UNITS: Mapping[str, str] = {
    **{name: unit for group in QUANTITIES.values() for name, _, unit, *_ in group},
    **dict.fromkeys(CAUSES, "%"),
}
"""Unit of every figure and cause; metrics have that of the report."""


def canonical(name: str) -> str:
    """The name under which a figure is kept."""
    return ALIASES.get(name, name)


def figures(analysis: KernelAnalysis) -> dict[str, float]:
    """The figures of one launch; what was not collected is absent."""
    found: dict[str, float] = {}
    for group in QUANTITIES.values():
        for name, _, _, _, kind, value in group:
            if (result := analysis.get(kind)) and (number := value(result)) is not None:
                found[name] = float(number)
    return found


def findings(explanation: Explanation) -> dict[str, float]:
    """Per cent of its time that each finding of a launch would save; 0 for the causes that it has no finding of."""
    saved = {finding.cause: 100.0 * finding.saves for finding in explanation.findings}
    return {cause: saved.get(cause, 0.0) for cause in CAUSES}
