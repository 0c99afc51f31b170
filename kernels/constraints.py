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
from types import CodeType

from gemmprof.errors import BuildError
from gemmprof.kernels.compiler import included_file

_STATEMENT = re.compile(
    r'^#\s*include\s+"(?P<include>[^"]+)"'
    r"|^constexpr int (?P<name>\w+) = (?P<value>[^;]+);"
    r'|^static_assert\((?P<condition>[^"]+?),\s*"(?P<sentence>[^"]+)"\s*\);',
    re.MULTILINE,
)
_COMMENT = re.compile(r"//[^\n]*")
_OPERATORS = ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "), (r"/", "//"))
_EXPRESSION = re.compile(r"[\w\s()+\-*/%<>=!&|]+")


@dataclass(frozen=True, slots=True)
class Constant:
    """``constexpr int name = value``."""

    name: str
    value: CodeType


@dataclass(frozen=True, slots=True)
class Constraint:
    """One static_assert: the condition and the sentence that says what must hold."""

    sentence: str
    condition: CodeType


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
                    values[statement.name] = int(eval(statement.value, {"__builtins__": {}}, values))
                elif not eval(statement.condition, {"__builtins__": {}}, values):
                    return statement.sentence
            except NameError as error:
                raise BuildError(f"the constraints speak of {error.name}, which has no value") from None
        return None


def read_constraints(source: Path) -> Constraints:
    """Read the constraints of a ``.cu`` file and of the headers that it includes.

    Raises:
        BuildError: if a condition is not plain integer arithmetic.
    """
    return Constraints(tuple(_statements(source, set())))


def _statements(file: Path, seen: set[Path]) -> Iterator[Constant | Constraint]:
    if file in seen or not file.is_file():
        return
    seen.add(file)
    text = _COMMENT.sub("", file.read_text(encoding="utf-8"))
    for match in _STATEMENT.finditer(text):
        if match["include"]:
            yield from _statements(included_file(file, match["include"]), seen)
        elif match["name"]:
            yield Constant(match["name"], _compile(match["value"], file))
        else:
            yield Constraint(match["sentence"], _compile(match["condition"], file))


def _compile(expression: str, file: Path) -> CodeType:
    """C's integer arithmetic as Python's; they agree where no operand is negative."""
    if not _EXPRESSION.fullmatch(expression):
        raise BuildError(f"{file.name}: '{expression}' is not plain integer arithmetic")
    for pattern, replacement in _OPERATORS:
        expression = re.sub(pattern, replacement, expression)
    try:
        return compile(" ".join(expression.split()), str(file), "eval")
    except SyntaxError as error:
        raise BuildError(f"{file.name}: '{expression}' is not plain integer arithmetic") from error


def valid_parameters(
    constraints: Constraints, values: Mapping[str, Sequence[int]]
) -> tuple[dict[str, int], ...]:
    """Every combination of the values that breaks no constraint, in the order of the values."""
    letters = tuple(values)
    combinations = (dict(zip(letters, choice, strict=True)) for choice in itertools.product(*values.values()))
    return tuple(combination for combination in combinations if constraints.violation(combination) is None)
