"""Metric names in words."""

from __future__ import annotations

import re

_UNIT_NAMES = {"l1tex": "L1", "lts": "L2", "fbpa": "DRAM"}


def readable(name: str) -> str:
    """A metric name in words, as ncu's breakdown tables write it: ``L1: Data Pipe Lsu Wavefronts``."""
    unit, _, rest = name.removeprefix("breakdown:").partition("__")
    quantity = rest.partition(".")[0]
    if not quantity:
        return name
    words = " ".join(f"{word[:1].upper()}{word[1:]}" for word in quantity.split("_"))
    return f"{_UNIT_NAMES.get(unit, unit.upper())}: {words}"


_UNITS = tuple(
    (re.compile(pattern), unit)
    for pattern, unit in (
        (r"(?!breakdown:)\S+\.pct(?:_of_peak_\w+)?|(?!breakdown:)\S+[._]pct", "%"),
        (r"gpu__time_(?:duration|active)\S*", "ns"),
        (r"[a-z]\w*__cycles_elapsed\.\w+\.per_second", "hz"),
        (r"(?!derived__)[a-z0-9]\w*bytes\w*\.(?:sum|avg|min|max)", "byte"),
        (r"(?!derived__)[a-z0-9]\w*bytes\w*\.(?:sum|avg|min|max)\.per_second", "byte/s"),
        (r"[a-z]\w*__cycles_(?:elapsed|active)\.(?:sum|avg|min|max)", "cycle"),
    )
)


def unit_by_name(name: str) -> str:
    """The unit that the name of a metric states, '' where it states none.

    ncu_report knows the units of all; this is for where it is not installed.
    """
    return next((unit for pattern, unit in _UNITS if pattern.fullmatch(name)), "")
