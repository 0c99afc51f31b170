"""Tile parameters that `gemmprof tune` found on this machine; the build takes them in place of the catalog's.

They are kept in ``tuned.json`` in the cache directory, one entry an operator and architecture. An entry counts as long
as the stage's source is the one that it was found with.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import msgspec

from gemmprof.base.documents import DocumentError, checked, json_text
from gemmprof.base.foreign_files import read_text
from gemmprof.base.output import write_new

FILE_NAME = "tuned.json"


LARGEST_PARAMETER = 1 << 16
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z")]


@dataclass(frozen=True, slots=True)
class Tuned:
    """The winner of a search."""

    name: _Name  # the operator
    # the compiler's name of the target, ``sm_90``
    architecture: Annotated[str, msgspec.Meta(pattern=r"^sm_[0-9]{2,3}[af]?\Z")]
    source: str  # hash of the stage's source and headers, without parameters
    parameters: Mapping[_Name, Annotated[int, msgspec.Meta(ge=0, le=LARGEST_PARAMETER)]]  # the winner
    shapes: tuple[str, ...]  # keys of the problems it was tuned for
    # how many times faster than the catalog's parameters, geometric mean over the shapes
    gain: Annotated[float, msgspec.Meta(ge=0, le=1e6)]


def load_tuned(cache: Path) -> dict[tuple[str, str], Tuned]:
    """All winners, by operator and architecture; none if the file is missing or damaged (it is only a cache).

    What an entry says reaches the compiler's command line, so one with a value of another type or range than a search
    writes is left out.
    """
    try:
        # Not `read_json`: a number that JSON does not know (NaN) costs its own entry only.
        entries = json.loads(read_text(cache / FILE_NAME, private=True))
    except (OSError, ValueError, RecursionError):
        return {}
    found: dict[tuple[str, str], Tuned] = {}
    for entry in entries if isinstance(entries, list) else ():
        with contextlib.suppress(DocumentError):
            kept = checked(entry, Tuned)
            if set(entry) == {field.name for field in fields(Tuned)}:
                found[kept.name, kept.architecture] = kept
    return found


def save_tuned(cache: Path, winner: Tuned) -> Path:
    """Keep a winner, in place of an older one of the same operator and architecture; returns the file."""
    kept = load_tuned(cache) | {(winner.name, winner.architecture): winner}
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / FILE_NAME
    write_new(path, json_text([*kept.values()], 1) + "\n", durable=True)
    return path


def forget_tuned(cache: Path, name: str) -> bool:
    """Remove the winners of an operator; whether there was one."""
    before = load_tuned(cache)
    after = [entry for (operator, _), entry in before.items() if operator != name]
    if len(after) == len(before):
        return False
    write_new(cache / FILE_NAME, json_text(after, 1) + "\n", durable=True)
    return True
