"""The ncu options that collect the groups, all that the analyses read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gemmprof.metrics.compute import PM_SAMPLING
from gemmprof.metrics.constants import GROUPS

_TABLES = "MemoryWorkloadAnalysis_Tables"
# What the lean set leaves out of ncu's sections: metrics by prefix that cost an instrumented replay of their
# own, and tables for which ncu collects hundreds of metrics where the analyses read a few (which the
# lean set names).
LEAN_WITHOUT = (
    "smsp__sass_inst_executed_memdesc_explicit_",  # explicit L2 eviction policies
    "smsp__sass_average_data_bytes_per_sector_",  # sectors per request and the excess say nearly as much
    "MemoryL1TEXCacheTable",
    "MemoryL2CacheTable",
    "MemoryL2CacheEvictPolicyTable",
    "MemoryDeviceMemoryTable",
)
# Thousands of metrics of tensor cores, 0.4 s a launch: left out where it is known that no kernel uses them.
_TENSOR_SECTIONS = frozenset({"SpeedOfLight_HierarchicalTensorRooflineChart"})
_BY_NAME = re.compile(r"(?:sm|smsp|l1tex|lts|dram)__\w+\.[\w.]+")


LEAN = "lean"  # the set of what the analyses read, in as few passes as can be


def collection_options(
    metric_set: str = LEAN,
    *,
    tensor: bool = True,
    timeline: bool = True,
    sections: Iterable[str] = (),
    names: Iterable[str] = (),
) -> tuple[str, ...]:
    """ncu's options for a set, each section and metric once. The lean one is meant to be read without `LEAN_WITHOUT`.

    Args:
        metric_set: `LEAN`, or one of ncu's own.
        tensor: of the lean one also what is read of kernels that use tensor cores.
        timeline: of the lean one also samples over time.
        sections, names: more sections and metrics.
    """
    options = ["--set", metric_set]
    if metric_set == LEAN:
        groups = GROUPS.values()
        of_tables = (
            name
            for group in groups
            if _TABLES in group.sections
            for name in (*group.required, *group.expected, *group.of_tables)
            if _BY_NAME.fullmatch(name) and not name.startswith(LEAN_WITHOUT)
        )
        left_out = frozenset() if tensor else _TENSOR_SECTIONS
        left_out |= frozenset() if timeline else {PM_SAMPLING}
        own = (name for group in groups for name in group.sections if name not in left_out)
        options, sections = [], (*own, *sections)
        names = (*(name for group in groups for name in group.requested), *of_tables, *names)
    for section in dict.fromkeys(sections):
        options += ["--section", section]
    if listed := ",".join(dict.fromkeys(names)):
        options += ["--metrics", listed]
    return tuple(options)
