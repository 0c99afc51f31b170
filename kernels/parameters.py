"""Which tile parameters a stage can take, read from the static_asserts of its source, and those that a search found.

A stage states every condition on its parameters as ``static_assert(condition, "sentence")`` over integer constants
that stand at the start of a line, ``constexpr int NAME = expression, …;``. The compiler enforces them; here the same
lines are evaluated in Python, so that a search proposes nothing that would not compile and can say why.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import msgspec

from gemmprof.base.documents import DocumentError, checked, json_text
from gemmprof.base.errors import BuildError
from gemmprof.base.expressions import ExpressionError, evaluate, is_arithmetic
from gemmprof.base.foreign_files import read_text
from gemmprof.base.output import write_new
from gemmprof.kernels.compiler import included_file

_STATEMENT = re.compile(
    r'^#\s*include\s+"(?P<include>[^"]+)"'
    r"|^constexpr int (?P<name>\w+) = (?P<value>[^;]+);"
    r'|^static_assert\((?P<condition>[^"]+?),\s*"(?P<sentence>[^"]+)"\s*\);',
    re.MULTILINE,
)
_AND_NAME = re.compile(r", (\w+) = ")
_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True, slots=True)
class Statement:
    """``constexpr int name = expression``, or a static_assert of it with the sentence that says what must hold."""

    expression: str
    name: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constants and conditions of one source, in the order of its text."""

    statements: tuple[Statement, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What must hold, in words."""
        return tuple(s.sentence for s in self.statements if s.sentence)

    def violation(self, parameters: Mapping[str, int]) -> str | None:
        """The sentence of the first condition that is broken, or None; BuildError if one has an unknown letter."""
        values = dict(parameters)
        for statement in self.statements:
            try:
                value = evaluate(statement.expression, values)
            except ExpressionError as error:
                raise BuildError(f"the constraints cannot be read: {error}") from None
            if statement.name:
                values[statement.name] = value
            elif not value:
                return statement.sentence
        return None


def read_constraints(source: Path) -> Constraints:
    """The constraints of a ``.cu`` file and its headers; BuildError if one is not plain integer arithmetic."""
    statements = tuple(_statements(source, set()))
    for statement in statements:
        if not is_arithmetic(statement.expression):
            raise BuildError(f"{source.name}: '{statement.expression}' is not plain integer arithmetic")
    return Constraints(statements)


def _statements(file: Path, seen: set[Path]) -> Iterator[Statement]:
    if file in seen or not file.is_file():
        return
    seen.add(file)
    text = _COMMENT.sub("", read_text(file))
    for match in _STATEMENT.finditer(text):
        if match["include"]:
            yield from _statements(included_file(file, match["include"]), seen)
        else:
            text = " ".join((match["value"] or match["condition"]).split())
            first, *others = _AND_NAME.split(text) if match["name"] else (text,)
            yield Statement(first, match["name"] or "", match["sentence"] or "")
            for name, value in zip(others[::2], others[1::2], strict=True):
                yield Statement(value, name)


def valid_parameters(
    constraints: Constraints, values: Mapping[str, Sequence[int]]
) -> tuple[dict[str, int], ...]:
    """Every combination of the values that breaks no constraint, in the order of the values."""
    letters = tuple(values)
    combinations = (dict(zip(letters, choice, strict=True)) for choice in itertools.product(*values.values()))
    return tuple(combination for combination in combinations if constraints.violation(combination) is None)


# --- What searches found ----------------------------------------------------------------------------------------------
# Tile parameters that `gemmprof tune` found on this machine; the build takes them in place of the catalog's.
#
# They are kept in ``tuned.json`` in the cache directory, one entry an operator and architecture. An entry counts as
# long as the stage's source is the one that it was found with.

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
