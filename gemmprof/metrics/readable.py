"""Metric names in words."""

from __future__ import annotations

_UNIT_NAMES = {"l1tex": "L1", "lts": "L2", "fbpa": "DRAM"}


def readable(name: str) -> str:
    """A metric name in words, as ncu's breakdown tables write it: ``L1: Data Pipe Lsu Wavefronts``."""
    unit, _, rest = name.removeprefix("breakdown:").partition("__")
    quantity = rest.partition(".")[0]
    if not quantity:
        return name
    words = " ".join(f"{word[:1].upper()}{word[1:]}" for word in quantity.split("_"))
    return f"{_UNIT_NAMES.get(unit, unit.upper())}: {words}"
