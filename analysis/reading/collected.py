"""How ncu was run, from what a report says of it: what it was asked for, and what it did to the clocks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gemmprof.model import SessionDetails

# What ncu does without ``--clock-control``: it fixes the base clock (ncu --help).
DEFAULT_CLOCK_CONTROL = "base"
DEFAULT_SET = "basic"  # the set that it collects where no set, section or metric is named
# Options of ncu without a value: what follows one of them may be the program.
_FLAGS = frozenset(
    (
        "-f",
        "--force-overwrite",
        "--nvtx",
        "-v",
        "--verbose",
        "--quiet",
        "--csv",
        "--null-stdin",
        "--open-in-ui",
    )
)


def clock_control(session: SessionDetails) -> str:
    """``base``, ``none`` … in small letters; '' where the report does not say how ncu was run."""
    own = _own_arguments(session)
    named = session.settings.get("clock control") or next(_values(own, "--clock-control"), "")
    return (named or (DEFAULT_CLOCK_CONTROL if own else "")).lower()


def collected_by(session: SessionDetails) -> tuple[str, ...]:
    """Sets, sections and metrics that ncu was asked for; () where the report does not say."""
    own = _own_arguments(session)
    found = {
        f"{option} {value}"
        for option in ("--set", "--section", "--metrics")
        for value in _values(own, option)
    }
    if own and not found:
        found = {f"--set {DEFAULT_SET}"}
    return tuple(sorted(found))


def _own_arguments(session: SessionDetails) -> list[str]:
    """ncu's words on its command line, without those of the program that it ran.

    The program is the first word that is neither an option nor the value of one. Behind a flag that is not among
    `_FLAGS` it is taken for a value, and the words behind it up to its first bare one for ncu's.
    """
    words = _words(session.command_line)
    own = [*words[:1]]
    for word in words[1:]:
        before = own[-1]
        has_value = len(own) > 1 and before.startswith("-") and "=" not in before and before not in _FLAGS
        if not word.startswith("-") and not has_value:
            break
        own.append(word)
    return own


@lru_cache(maxsize=64)
def _words(command_line: str) -> tuple[str, ...]:
    """The words of a command line, which all launches of a report share."""
    try:
        return tuple(shlex.split(command_line))
    except ValueError:
        return tuple(command_line.split())


def _values(words: Sequence[str], name: str) -> Iterator[str]:
    for position, word in enumerate(words):
        if word == name and position + 1 < len(words):
            yield words[position + 1]
        elif word.startswith(f"{name}="):
            yield word.partition("=")[2]
