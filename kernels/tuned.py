"""Tile parameters that `gemmprof tune` found on this machine; the build takes them in place of the catalog's.

They are kept in ``tuned.json`` in the cache directory, one entry an operator and architecture. An entry counts as long
as the stage's source is the one that it was found with.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from gemmprof.run import write_atomically

FILE_NAME = "tuned.json"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The winner of a search.

    Attributes:
        name: the operator.
        architecture: the compiler's name of the target, ``sm_90``.
        source: hash of the stage's source and headers, without parameters.
        parameters: the winner.
        shapes: keys of the problems it was tuned for.
        gain: how many times faster than the catalog's parameters, geometric mean over the shapes.
    """

    name: str
    architecture: str
    source: str
    parameters: Mapping[str, int]
    shapes: tuple[str, ...]
    gain: float


def load_tuned(cache: Path) -> dict[tuple[str, str], Tuned]:
    """All winners, by operator and architecture; none if the file is missing or damaged (it is only a cache).

    What an entry says reaches the compiler's command line, so one with a value of another type or range than a search
    writes is left out.
    """
    try:
        entries = json.loads((cache / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    found = map(_checked, entries if isinstance(entries, list) else ())
    return {(entry.name, entry.architecture): entry for entry in found if entry is not None}


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TARGET = re.compile(r"sm_\d{2,3}[af]?", re.ASCII)
LARGEST_PARAMETER = 1 << 16


def _checked(entry: Any) -> Tuned | None:
    """The entry of a file that anybody may have written, None unless it is what `save_tuned` writes."""
    if not isinstance(entry, dict) or set(entry) != {field.name for field in fields(Tuned)}:
        return None
    parameters, shapes, gain = entry["parameters"], entry["shapes"], entry["gain"]
    good = (
        _matches(_NAME, entry["name"])
        and _matches(_TARGET, entry["architecture"])
        and isinstance(entry["source"], str)
        and isinstance(parameters, dict)
        and all(_matches(_NAME, letter) for letter in parameters)
        and all(type(value) is int and 0 <= value <= LARGEST_PARAMETER for value in parameters.values())
        and isinstance(shapes, list)
        and all(isinstance(shape, str) for shape in shapes)
        and type(gain) in (int, float)
        and math.isfinite(gain)
    )
    return Tuned(**{**entry, "shapes": tuple(shapes)}) if good else None


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def save_tuned(cache: Path, winner: Tuned) -> Path:
    """Keep a winner, in place of an older one of the same operator and architecture; returns the file."""
    kept = load_tuned(cache) | {(winner.name, winner.architecture): winner}
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / FILE_NAME
    write_atomically(path, json.dumps([asdict(entry) for entry in kept.values()], indent=1) + "\n")
    return path


def forget_tuned(cache: Path, name: str) -> bool:
    """Remove the winners of an operator; whether there was one."""
    before = load_tuned(cache)
    after = [entry for (operator, _), entry in before.items() if operator != name]
    if len(after) == len(before):
        return False
    write_atomically(cache / FILE_NAME, json.dumps([asdict(entry) for entry in after], indent=1) + "\n")
    return True
