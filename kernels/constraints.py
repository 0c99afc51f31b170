"""Which tile parameters a stage can take: read from the static_asserts of its source, their only home.

A stage states every condition on its parameters as ``static_assert(condition, "sentence")`` over integer constants
that stand at the start of a line, ``constexpr int NAME = expression, …;``. The compiler enforces them; here the same
lines are evaluated in Python, so that a search proposes nothing that would not compile and can say why.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.errors import BuildError
from gemmprof.base.expressions import ExpressionError, evaluate, is_arithmetic
from gemmprof.base.foreign_files import read_text
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
