"""What gemmprof calls Nsight Compute's metrics and their groups: the rows of ``constants.csv`` and ``groups.csv``.

A row has the name here and ncu's, the group that reads the metric and as what (`MetricGroup`), the section that
collects it where a remedy can be that short, and what reports of older versions call it. A name on several rows means
all of their metrics, the one to prefer first; a row without a metric says that one more group reads them. A name with
keys is a mapping, a key of several words a tuple.

``constants.pyi`` says the same to type checkers and editors; `tools/build_metric_constants.py` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics.groups import MetricGroup

_ROWS = facts(__file__, "constants.csv")
# Key and metric of each row of a name.
ROWS_OF = grouped((name, (key, metric)) for name, key, metric, *_ in _ROWS if name and metric)


def _constant(rows: Iterable[tuple[str, str]]) -> object:
    found = {key: tuple(metrics) for key, metrics in grouped(rows).items()}
    one_each = max(map(len, found.values())) == 1
    made = {}
    for key, metrics in found.items():
        made[tuple(key.split()) if " " in key else key] = metrics[0] if one_each else metrics
    return made.get("", made)


globals().update({name: _constant(rows) for name, rows in ROWS_OF.items()})

# The name of today by the older one, where both mean the same in the same unit.
OLDER_NAMES: Mapping[str, str] = MappingProxyType(
    {older: metric for _, _, metric, _, _, _, names, _ in _ROWS for older in names.split()}
)


def _group(analysis: str, sections: str) -> MetricGroup:
    rows = [
        (role, section, metric)
        for name, key, own, group, role, section, *_ in _ROWS
        if group == analysis
        for metric in ([own] if own else [metric for of, metric in ROWS_OF[name] if key in ("", of)])
    ]
    roles = grouped((role, metric) for role, _, metric in rows)
    sources = grouped((section, metric) for _, section, metric in rows if section)
    return MetricGroup(
        tuple(sections.split()),
        **{role: tuple(metrics) for role, metrics in roles.items()},
        sources={section: tuple(metrics) for section, metrics in sources.items()},
    )


_GROUPS = facts(__file__, "groups.csv")
# Every group by the name of the analysis that reads it; each is a constant, too.
GROUPS = {analysis: _group(analysis, sections) for analysis, _, sections in _GROUPS}
globals().update({name: GROUPS[analysis] for analysis, name, _ in _GROUPS})
