"""A group of metrics: what one analysis reads, which ncu sections collect it, and what to say where it is absent."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache

from gemmprof.model import NotCollected

KNOWN_NAMES = 1 << 12  # whose words are kept: a full report has some two thousand, the same a launch


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one analysis."""

    sections: tuple[str, ...]  # ncu section identifiers that collect the group
    required: tuple[str, ...] = ()  # without all of these the analysis has no result
    requested: tuple[str, ...] = ()  # metrics that no section lists, to be asked for by name
    expected: tuple[str, ...] = ()  # exist everywhere; without one of these a part of the result is absent
    # what it reads besides of ncu's tables, which the lean set asks for by name, a few of their hundreds
    of_tables: tuple[str, ...] = ()
    # which section collects which of the required and expected metrics, so that a remedy can be short
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def remedy(self) -> str:
        """The ncu options that collect the group."""
        return _options(self.sections, self.requested)

    def remedy_for(self, absent: Collection[str]) -> str:
        """The ncu options that collect these metrics of the group; those of the whole group if one has no source."""
        sections = [name for name in self.sections if not set(absent).isdisjoint(self.sources.get(name, ()))]
        requested = [name for name in self.requested if name in absent]
        found = {*requested, *(name for section in sections for name in self.sources[section])}
        return _options(sections, requested) if found.issuperset(absent) else self.remedy

    def missing(self, present: Iterable[str]) -> NotCollected | None:
        """`NotCollected` naming the required metrics that are not in ``present``; None if all are there."""
        return self._absent(self.required, present)

    def incomplete(self, present: Iterable[str]) -> NotCollected | None:
        """`NotCollected` naming required and expected metrics that are not in ``present``; None if all are there."""
        return self._absent((*self.required, *self.expected), present)

    def not_collected(self, present: Iterable[str]) -> NotCollected:
        """What stands in place of a result, naming the absent required metrics, else the expected ones."""
        missing = self.missing(present)  # NotCollected is false, so `or` would drop it
        if missing is None:
            missing = self.incomplete(present)
        return NotCollected((*self.required, *self.expected), self.remedy) if missing is None else missing

    def _absent(self, names: Iterable[str], present: Iterable[str]) -> NotCollected | None:
        have = present if isinstance(present, (Mapping, Set)) else set(present)
        absent = tuple(name for name in names if name not in have)
        return NotCollected(absent, self.remedy_for(absent)) if absent else None


def _options(sections: Iterable[str], requested: Collection[str]) -> str:
    options = [f"--section {section}" for section in sections]
    if requested:
        options.append("--metrics " + ",".join(requested))
    return " ".join(options)


_UNIT_NAMES = {"l1tex": "L1", "lts": "L2", "fbpa": "DRAM"}


@lru_cache(maxsize=KNOWN_NAMES)
def readable(name: str) -> str:
    """A metric name in words, as ncu's breakdown tables write it: ``L1: Data Pipe Lsu Wavefronts``."""
    unit, _, rest = name.removeprefix("breakdown:").partition("__")
    quantity = rest.partition(".")[0]
    if not quantity:
        return name
    words = " ".join(f"{word[:1].upper()}{word[1:]}" for word in quantity.split("_"))
    return f"{_UNIT_NAMES.get(unit, unit.upper())}: {words}"


_UNITS = (
    (r"(?!breakdown:)\S+\.pct(?:_of_peak_\w+)?|(?!breakdown:)\S+[._]pct", "%"),
    (r"gpu__time_(?:duration|active)\S*", "ns"),
    (r"[a-z]\w*__cycles_elapsed\.\w+\.per_second", "hz"),
    (r"(?!derived__)[a-z0-9]\w*bytes\w*\.(?:sum|avg|min|max)", "byte"),
    (r"(?!derived__)[a-z0-9]\w*bytes\w*\.(?:sum|avg|min|max)\.per_second", "byte/s"),
    (r"[a-z]\w*__cycles_(?:elapsed|active)\.(?:sum|avg|min|max)", "cycle"),
)


def unit_by_name(name: str) -> str:
    """The unit that the name of a metric states, '' where it states none.

    ncu_report knows the units of all; this is for where it is not installed.
    """
    return next((unit for pattern, unit in _UNITS if re.fullmatch(pattern, name)), "")
