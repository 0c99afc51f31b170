"""How results show themselves in a REPL, a debugger or a list in a notebook: one line that says which and how much.

Names of kernels and files are somebody else's text, so they are made harmless here (`printable.one_line`).
"""

from __future__ import annotations

from gemmprof.base.amounts import DASH
from gemmprof.base.printable import one_line

LONGEST_NAME = 60


def brief(thing: object, name: str, *facts: str) -> str:
    """``<Family gelu: 1 launch, 270 µs>``; facts that are not known ('' or a dash) are left out."""
    shown = one_line(name)
    if len(shown) > LONGEST_NAME:
        shown = shown[: LONGEST_NAME - 1] + "…"
    known = ", ".join(fact for fact in facts if fact not in ("", DASH))
    return f"<{type(thing).__name__} {shown}{': ' if known else ''}{known}>"
