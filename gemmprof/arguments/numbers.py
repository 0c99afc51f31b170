"""Numbers on the command line: every option that takes one reads it here, and says alike what is wrong with it."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

LARGEST = 0x7FFF_FFFF_FFFF_FFFF
"""No option means more; a number of five thousand digits would take its time."""


def whole(least: int) -> Callable[[str], int]:
    """What reads a whole number from ``least`` on."""

    def read(text: str) -> int:
        digits = text[1:] if text[:1] in "+-" else text
        if not (digits.isascii() and digits.isdecimal()):
            some = ", ".join(str(least + step) for step in range(3))
            raise ArgumentTypeError(f"'{text[:40]}' is not a whole number: write {some} …")
        if len(digits) > len(str(LARGEST)) or int(text) > LARGEST:
            raise ArgumentTypeError(f"{text[:40]} is too large: write at most {LARGEST}")
        if int(text) < least:
            raise ArgumentTypeError(f"{text} is too small: write {least} or more")
        return int(text)

    return read


def percentage(text: str) -> float:
    """Per cent, 0 or more, with or without its sign."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        raise ArgumentTypeError(f"'{text[:40]}' is not a percentage: write 5 or 2.5") from None
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text[:40]} is no percentage from 0 on: write 5 or 2.5")
    return value
