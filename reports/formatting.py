"""Numbers (`gemmprof.base.amounts`) and names as people see them, untrusted text made safe to look at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gemmprof.base import amounts
from gemmprof.base.amounts import *  # noqa: F403 (every amount is at hand where names are)

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.records import Change
    from gemmprof.analysis.figure import Figure


def moment(iso: str) -> str:
    """``2026-11-21T00:40:00+00:00`` as ``2026-11-21 00:40 UTC``; any other text as it is."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)", iso)
    return f"{match.group(1)} {match.group(2)} UTC" if match else iso


_BY_UNIT: dict[str, Callable[[Any], str]] = {
    "%": amounts.percent,
    "share": amounts.ratio,
    "occupancy": amounts.occupancy,
    "ns": amounts.nanoseconds,
    "hz": amounts.hertz,
    "byte": amounts.traffic,
    "size": amounts.capacity,
    "byte/s": amounts.bandwidth,
    "flop/s": amounts.flops,
    "flop/byte": amounts.intensity,
    "×": amounts.times,
}


def figure_text(value: Any, declared: Figure) -> str:
    """A figure as its declaration says: unit and digits."""
    if declared.digits is not None:
        return amounts.fixed(value, declared.digits)
    return _BY_UNIT.get(declared.unit, amounts.number)(value)


def raw_value(value: int | float | str) -> str:
    """A metric as stored: integers exactly, other numbers with up to six digits after the point."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.6f}".rstrip("0") if abs(value) >= 1e-3 else f"{value:.6g}"


def change_text(change: Change) -> str:
    """How far a value moved: as a factor where it more than doubled or halved, else in per cent."""
    if change.ratio is None or change.ratio <= 0:
        return "" if change.difference in (None, 0) else "from 0" if not change.before else ""
    if change.verdict == "same":
        return "same"
    if 0.5 < change.ratio < 2:
        return amounts.signed_percent(100 * (change.ratio - 1))
    sign, factor = ("×", change.ratio) if change.ratio >= 2 else ("÷", 1 / change.ratio)
    return f"{sign} {amounts.significant(factor)}"
