"""How Nsight Compute scales and rounds numbers for its details page: what our numbers are compared with in its words.

Base units are those of `KernelProfile.units`: byte, byte/s, hz, ns, cycle … ncu divides by 1000 (never 1024) until the
number is below 1000, and prints two decimals, or none where the scaled number is whole.
"""

from __future__ import annotations

import math

_PREFIXES = ("", "K", "M", "G", "T", "P")
_TIMES = ("ns", "us", "ms", "s")
_RATES = ("/s", "/ms", "/us", "/ns")
_STEP = 1000.0


def scale(value: float, unit: str) -> tuple[float, str]:
    """The number in the unit that ncu would print it in: ``(4421120.0, "ns")`` becomes ``(4.42112, "ms")``.

    Bytes (also per second, block, cycle …) and hertz take a prefix, nanoseconds become us, ms or s, other rates per
    second become rates per ms, us or ns. Every other unit stays as it is.
    """
    quantity, slash, per = unit.partition("/")
    if quantity in ("byte", "hz"):
        steps = [f"{prefix}{quantity}{slash}{per}" for prefix in _PREFIXES]
    elif unit == "ns":
        steps = list(_TIMES)
    elif per == "s" and quantity:
        steps = [f"{quantity}{rate}" for rate in _RATES]
    else:
        steps = [unit]
    step = 0
    while step < len(steps) - 1 and abs(value) >= _STEP:
        value /= _STEP
        step += 1
    return value, steps[step]


def number_text(value: float) -> str:
    """The number as ncu prints it: ``1,250.04``, ``1,240``, ``nan``."""
    if not math.isfinite(value):
        return str(float(value))
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.2f}"
