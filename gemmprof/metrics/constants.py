"""What gemmprof calls Nsight Compute's metrics: each row of ``constants.csv`` is a constant of this module.

A row has the name here and ncu's, the group that reads the metric and as what (`MetricGroup`), the section that
collects it where a remedy can be that short, and what reports of older versions call it. A name on several rows means
all of their metrics, the one to prefer first; a row without a metric says that one more group reads it.

``constants.pyi`` says the same to type checkers and editors; `tools/build_metric_constants.py` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics.groups import MetricGroup

_ROWS = facts(__file__, "constants.csv")
METRICS_OF = grouped((name, metric) for name, metric, *_ in _ROWS if metric)
globals().update({name: found[0] if len(found) == 1 else tuple(found) for name, found in METRICS_OF.items()})

# The name of today by the older one, where both mean the same in the same unit.
OLDER_NAMES: Mapping[str, str] = MappingProxyType(
    {older: metric for _, metric, _, _, _, names, _ in _ROWS for older in names.split()}
)


def group_of(analysis: str, *sections: str) -> MetricGroup:
    """The group of this name, which these sections collect."""
    rows = [
        (role, section, METRICS_OF[name][0])
        for name, _, group, role, section, *_ in _ROWS
        if group == analysis
    ]
    roles = grouped((role, metric) for role, _, metric in rows)
    sources = grouped((section, metric) for _, section, metric in rows if section)
    return MetricGroup(
        sections,
        required=tuple(roles.get("required", ())),
        expected=tuple(roles.get("expected", ())),
        sources={section: tuple(metrics) for section, metrics in sources.items()},
    )
