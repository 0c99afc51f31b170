"""What a gate can ask: changes, values and findings, as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gemmprof.analysis.comparison.quantities import ALIASES, UNITS
from gemmprof.base.errors import UsageError

_CONDITION = re.compile(
    r"^\s*(?P<name>[A-Za-z_][\w.:]*)\s*(?P<compare>>=|<=|>|<|==|!=)\s*(?P<sign>[+-]?)\s*(?P<value>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"\s*(?P<percent>%?)\s*$"
)
_FINDING = re.compile(r"^\s*(?P<new>\+?)\s*(?P<name>[A-Za-z_]\w*)\s*$")
TIME = "time"
LOCAL = "local_accesses"


def quantity_named(name: str) -> str:
    """The quantity that a word means; ``time`` stays, since a gate judges it by all repetitions."""
    return name if name == TIME else ALIASES.get(name, name)


@dataclass(frozen=True, slots=True)
class Condition:
    """What must not hold: ``time > +3%``, ``registers > +0``, ``local_memory > 0``, or a finding's name.

    Attributes:
        text: as it was written.
        name: ``time``, a quantity, a metric of ncu's, or a finding.
        compare: the comparison; '' for a finding.
        value: the right side.
        relative: the value is a change in per cent.
        difference: the value is a change, not the later side's figure itself; of a finding: only where it is new.
    """

    text: str
    name: str
    compare: str
    value: float = 0.0
    relative: bool = False
    difference: bool = False

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read one condition.

        Raises:
            UsageError: if it is none, or asks for a share of a figure that is no share.
        """
        if match := _CONDITION.match(text):
            signed = bool(match["sign"])
            if match["percent"] and not signed and match["name"] == TIME:
                signed = True  # `time > 3%` can mean a change only
            if match["percent"] and not signed:
                _refuse_share(text.strip(), match)
            value = float(match["sign"] + match["value"])
            return cls(
                text.strip(),
                quantity_named(match["name"]),
                match["compare"],
                value,
                relative=bool(match["percent"]) and signed,
                difference=signed,
            )
        if match := _FINDING.match(text):
            return cls(text.strip(), match["name"], "", difference=bool(match["new"]))
        raise UsageError(
            f"'{text}' is no condition",
            remedies=[
                "a change: 'time > +3%', 'registers > +0'",
                "a value: 'local_memory > 0', 'achieved_occupancy < 40'",
                "a finding: 'UncoalescedGlobalAccess', or '+UncoalescedGlobalAccess' for a new one",
            ],
        )

    @property
    def needs_both_sides(self) -> bool:
        """Whether it speaks of a change."""
        return self.difference


def _refuse_share(text: str, match: re.Match[str]) -> None:
    """``registers > 3%`` would hold 40 registers against 3, and ``cycles < 5%`` would never be met.

    Raises:
        UsageError: if the figure is known not to be in per cent.
    """
    name, compare, value = match["name"], match["compare"], match["value"]
    if UNITS.get(quantity_named(name), "%") != "%":
        raise UsageError(
            f"'{text}': {name} is no per cent",
            remedies=[
                f"a change: '{name} {compare} +{value}%'",
                f"the value itself: '{name} {compare} {value}'",
            ],
        )
