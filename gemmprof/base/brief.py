"""How results show themselves in a REPL, a debugger or a list in a notebook: one line that says which and how much.

Names of kernels and files are somebody else's text, so they are made harmless here (`printable.one_line`).
"""

from __future__ import annotations

from gemmprof.base.printable import one_line

LONGEST_NAME = 60


def brief(thing: object, name: str, *facts: str) -> str:
    """``<Family gelu: 1 launch, 270 µs>``; facts that are not known ('') are left out."""
    shown = one_line(name)
    if len(shown) > LONGEST_NAME:
        shown = shown[: LONGEST_NAME - 1] + "…"
    known = ", ".join(fact for fact in facts if fact)
    return f"<{type(thing).__name__} {shown}{': ' if known else ''}{known}>"


def time_words(nanoseconds: float | None) -> str:
    """A duration with three digits and its unit, '' if it is not known."""
    if nanoseconds is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def percent_words(share: float | None) -> str:
    """A share of 1 in per cent, '' if it is not known."""
    return "" if share is None else f"{100 * share:.0f} %"
