"""Numbers and names as people read them, the same wherever one is written: a count, a duration, a rate, a share.

Every function takes base units (bytes, hertz, seconds, nanoseconds where the name says so) and answers a short string
with a unit. What is not known is a dash, never a zero.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from numbers import Real
from typing import Any, Concatenate, ParamSpec

from gemmprof.base.printable import one_line

DASH = "–"  # stands where a value is not known

_Rest = ParamSpec("_Rest")

_SI = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def _number(value: Any) -> float | None:
    """The value as a finite float, or None where there is nothing to print."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # a damaged report's sums
        return None
    return number if math.isfinite(number) else None


def _known(write: Callable[Concatenate[float, _Rest], str]) -> Callable[Concatenate[Any, _Rest], str]:
    """What writes a number, for any value: a dash where there is nothing to print."""

    @wraps(write)
    def written(value: Any, /, *rest: _Rest.args, **named: _Rest.kwargs) -> str:
        amount = _number(value)
        return DASH if amount is None else write(amount, *rest, **named)

    return written


def significant(value: float, digits: int = 3) -> str:
    """``value`` with about ``digits`` significant digits, no exponent, digits before the point never rounded off."""
    if value == 0:
        return "0"
    if not math.isfinite(value):  # a damaged report's
        return str(value)
    exponent = math.floor(math.log10(abs(value)))
    if abs(value) >= 10.0 ** (exponent + 1) * (1 - 0.5 * 10.0**-digits):
        exponent += 1  # 0.9997 with three digits is 1.00, not 1.000
    decimals = digits - 1 - exponent
    text = f"{value:,.{max(0, min(decimals, 9))}f}"
    return text.rstrip("0").rstrip(".") if value == int(value) and "." in text else text


@lru_cache(maxsize=8192)
@_known
def number(value: float, digits: int = 3) -> str:
    """A plain number: whole ones up to 99,999 exactly, larger ones with an SI prefix (``16.8 M``)."""
    if abs(value) < 100_000:
        return f"{int(value):,}" if value == int(value) else significant(value, digits)
    return scaled(value, "", digits)


def signed(value: float, digits: int = 1) -> str:
    """A change with its sign, a minus as long as the plus: ``+2.0``, ``−2.0``."""
    return f"{value:+,.{digits}f}".replace("-", "−")


def signed_percent(value: float, digits: int = 1) -> str:
    """A change in per cent: ``+2.0 %``, ``−2.0 %``."""
    return f"{signed(value, digits)} %"


@_known
def scaled(value: float, unit: str, digits: int = 3) -> str:
    """A value with an SI prefix before its unit: ``scaled(2.54e13, "FLOP/s")`` is ``25.4 TFLOP/s``."""
    for factor, prefix in _SI:
        # 999.95 and above would print as 1,000 of the smaller unit.
        if abs(value) >= factor * 0.9995:
            return f"{significant(value / factor, digits)} {prefix}{unit}"
    return f"{significant(value, digits)} {unit}".rstrip()


@_known
def percent(value: float, digits: int = 1) -> str:
    """A percentage that runs from 0 to 100."""
    return f"{value:.{digits}f} %"


def occupancy(value: Any) -> str:
    """Occupancy in per cent, with the two digits that ncu prints: warp slots come in steps of 1.5625 or finer."""
    return percent(value, 2)


@_known
def ratio(value: float, digits: int = 1) -> str:
    """A ratio from 0 to 1 as a percentage."""
    return percent(100 * value, digits)


@_known
def tflops(value: float) -> str:
    """A speed in TFLOP/s without its unit; slow kernels get a digit more."""
    return f"{value:,.{2 if 0 < value < 10 else 1}f}"


@_known
def times(value: float) -> str:
    """A factor: ``1.46×``."""
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}×"


@_known
def seconds(value: float) -> str:
    """A duration in s, ms, µs or ns."""
    return nanoseconds(value * 1e9)


@_known
def nanoseconds(value: float) -> str:
    """A duration that is given in nanoseconds, as ncu does."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        # 999.6 ns would print as 1,000 ns.
        if abs(value) >= factor * 0.9995:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value)} ns"


def traffic(value: Any) -> str:
    """Bytes moved, with decimal prefixes as ncu prints them."""
    return scaled(value, "B")


@_known
def capacity(value: float) -> str:
    """Bytes of a memory that has a size: binary prefixes, exact where they divide."""
    for factor, unit in _BINARY:
        if abs(value) >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{int(value):,} B"


def bandwidth(value: Any) -> str:
    """Bytes per second."""
    return scaled(value, "B/s")


def flops(value: Any) -> str:
    """Floating-point operations per second."""
    return scaled(value, "FLOP/s")


def hertz(value: Any) -> str:
    """A clock rate."""
    return scaled(value, "Hz")


@_known
def fixed(value: float, digits: int = 1) -> str:
    """A number with this many digits after the point."""
    return f"{value:,.{digits}f}"


@_known
def intensity(value: float) -> str:
    """Operations a byte, without their unit."""
    return significant(value)


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 run``, ``1,184 launches``, ``2 processes``, ``3 families``."""
    if number == 1:
        return f"1 {noun}"
    many = f"{noun[:-1]}ies" if noun.endswith("y") else noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{number:,} {many}"


_UNITS: dict[str, Callable[[Any], str]] = {
    "byte": traffic, "byte/s": bandwidth, "byte/second": bandwidth,
    "ns": nanoseconds, "nsecond": nanoseconds, "s": seconds,
    "hz": hertz, "cycle/nsecond": lambda value: hertz(value * 1e9), "%": lambda value: percent(value, 2),
}  # fmt: skip


_COUNTED = frozenset(
    ("cycle", "element", "instruction", "block", "warp", "thread", "sector", "request", "wavefront")
)


def quantity(value: Any, unit: str = "") -> str:
    """A metric's value in the unit that ncu names (text passes through)."""
    if isinstance(value, str):
        return value
    if _number(value) is None:
        return DASH
    if unit in _UNITS:
        return _UNITS[unit](value)
    if unit in _COUNTED and value != 1:
        unit += "s"
    return f"{number(value)} {unit}".rstrip()


def dimensions(sizes: Sequence[int]) -> str:
    """A grid or block as names and files have it: ``128x128x1``; a dash where it is not known."""
    return "x".join(map(str, sizes)) if any(sizes) else DASH


def fit(text: str, limit: int = 60) -> str:
    """A text cut in its middle where it is longer: beginnings and ends tell names apart."""
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]}…{text[-(limit // 3 - 1) :]}"


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|×|[nµm]?s|[kMGT]?(?:i?B(?:/s)?|Hz|FLOP/s)?)(?:[\s.,:;)]|$))")


def wrapped(text: str, width: int, first: str = "", then: str = "", most: int | None = None) -> list[str]:
    """A text as lines, ``most`` at most, in which a unit stands beside its number; ``first``, ``then``: what leads."""
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub("\u00a0", text),
        width,
        initial_indent=first,
        subsequent_indent=then,
        max_lines=most,
        placeholder=" …",
    )
    return [line.replace("\u00a0", " ") for line in lines]


def saved(saves: float, low: float, high: float) -> str:
    """A saving with its interval, shares: ``62 % (50 to 70)``."""
    return f"{100 * saves:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


LONGEST_NAME = 60


def brief(thing: object, name: str, *facts: str) -> str:
    """``<Family gelu: 1 launch, 270 µs>``; facts that are not known ('' or a dash) are left out."""
    shown = one_line(name)
    if len(shown) > LONGEST_NAME:
        shown = shown[: LONGEST_NAME - 1] + "…"
    known = ", ".join(fact for fact in facts if fact not in ("", DASH))
    return f"<{type(thing).__name__} {shown}{': ' if known else ''}{known}>"
