"""Which tile parameters a stage can take: read from the static_asserts of its source, their only home.

A stage states every condition on its parameters as ``static_assert(condition, "sentence")`` over integer constants
that stand at the start of a line, ``constexpr int NAME = expression;``. The compiler enforces them; here the same
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
_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True, slots=True)
class Constant:
    """``constexpr int name = value``."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """One static_assert: the condition and the sentence that says what must hold."""

    sentence: str
    condition: str


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constants and conditions of one source, in the order of its text."""

    statements: tuple[Constant | Constraint, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What must hold, in words."""
        return tuple(s.sentence for s in self.statements if isinstance(s, Constraint))

    def violation(self, parameters: Mapping[str, int]) -> str | None:
        """The sentence of the first condition that these parameters break, or None.

        Raises:
            BuildError: if a condition speaks of a letter that has no value.
        """
        values = dict(parameters)
        for statement in self.statements:
            try:
                if isinstance(statement, Constant):
                    values[statement.name] = evaluate(statement.value, values)
                elif not evaluate(statement.condition, values):
                    return statement.sentence
            except ExpressionError as error:
                raise BuildError(f"the constraints cannot be read: {error}") from None
        return None


def read_constraints(source: Path) -> Constraints:
    """Read the constraints of a ``.cu`` file and of the headers that it includes.

    Raises:
        BuildError: if a condition is not plain integer arithmetic.
    """
    statements = tuple(_statements(source, set()))
    for statement in statements:
        text = statement.value if isinstance(statement, Constant) else statement.condition
        if not is_arithmetic(text):
            raise BuildError(f"{source.name}: '{text}' is not plain integer arithmetic")
    return Constraints(statements)


def _statements(file: Path, seen: set[Path]) -> Iterator[Constant | Constraint]:
    if file in seen or not file.is_file():
        return
    seen.add(file)
    text = _COMMENT.sub("", read_text(file))
    for match in _STATEMENT.finditer(text):
        if match["include"]:
            yield from _statements(included_file(file, match["include"]), seen)
        elif match["name"]:
            yield Constant(match["name"], _one_line(match["value"]))
        else:
            yield Constraint(match["sentence"], _one_line(match["condition"]))


def _one_line(expression: str) -> str:
    return " ".join(expression.split())


def valid_parameters(
    constraints: Constraints, values: Mapping[str, Sequence[int]]
) -> tuple[dict[str, int], ...]:
    """Every combination of the values that breaks no constraint, in the order of the values."""
    letters = tuple(values)
    combinations = (dict(zip(letters, choice, strict=True)) for choice in itertools.product(*values.values()))
    return tuple(combination for combination in combinations if constraints.violation(combination) is None)
