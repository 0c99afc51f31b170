"""Conditions as a user writes them, in `gemmprof find` and in a gate: ``shared_bank_conflicts > 10% and time > 1ms``.

    condition  = name  ('>' | '>=' | '<' | '<=' | '==' | '!=')  [sign]number[unit]   |   text ('~' | '!~') 'expression'
               | finding | +finding
    expression = condition | not expression | expression and expression | expression or expression | ( expression )

Names are those of `named_figures`; texts are ``kernel``, ``owner``, ``nvtx``, ``device`` and ``report``. Units: ns us
µs ms s, B KB MB GB (1000), KiB MiB GiB (1024), %, k M G. ``and`` binds tighter than ``or``. What has a plus, a change
or a new finding, needs two sides: only a gate has them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeVar

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.base.errors import UsageError
from gemmprof.base.regex import RegexError, regex

TEXTS = ("kernel", "owner", "nvtx", "device", "report")  # what a condition can look at as text

# What people write for a figure without looking it up.
ALIASES: Mapping[str, str] = {
    "time": "duration", "cycles": "elapsed_cycles", "instructions": "executed", "occupancy": "achieved_occupancy",
    "local_memory": "local_accesses", "spills": "local_accesses",
}  # fmt: skip

LONGEST = 1000  # words, numbers and signs of a condition
_SCALE = {
    "": 1.0, "%": 1.0,
    "ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9,
    "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3,
    "k": 1e3, "m": 1e6, "g": 1e9,
}  # fmt: skip
# Units that measure one thing alone: the unit that a figure must have, and the word for it.
_MEASURES = {
    "%": ("%", "per cent"),
    **dict.fromkeys(("ns", "us", "µs", "ms", "s"), ("ns", "time")),
    **dict.fromkeys(("b", "kb", "mb", "gb", "kib", "mib", "gib"), ("byte", "size")),
}
# A finding by its title, as pages and the front door name it: ``threads_without_work``.
TITLES = {re.sub(r"\W", "_", title.lower()): cause for cause, title in CAUSES.items()}
_TOKEN = re.compile(
    r"\s*(?:(?P<operator>>=|<=|==|!=|!~|~|>|<)|(?P<bracket>[()])"
    r"|(?P<number>[+-]?\s*(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>%|(?!(?:and|or|not)\b)[A-Za-zµ]+(?![\w.]))?"
    r"|(?P<plus>\+)|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<name>[A-Za-z_][\w.:]*))"
)

TIME = "time"  # a gate judges it by all repetitions; elsewhere it is the duration


def canonical(name: str) -> str:
    """The name under which a figure is kept."""
    return ALIASES.get(name, name)


def unit_of(name: str) -> str | None:
    """The unit of a figure or cause; None of a metric, which has that of the report."""
    if name in CAUSES and name not in ALIASES:
        return "%"
    from gemmprof.analysis.inputs.named_figures import UNITS  # late: its formulas are of all analyses

    return UNITS.get(canonical(name))


@dataclass(frozen=True, slots=True)
class Comparison:
    """``name operator value``."""

    name: str  # name, operator: as written
    operator: str
    value: float  # in base units
    change: bool = False  # of the later side against the earlier: ``registers > +0``, ``time > +3%``
    unit: str = field(default="", compare=False)  # as written


@dataclass(frozen=True, slots=True)
class HasFinding:
    """A finding by its name: a cause, or a rule of ncu's; ``new``: only where the earlier side has not."""

    name: str
    new: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """``text ~ expression``: a regular expression found in it, whatever the case; ``wanted`` is False for ``!~``."""

    name: str
    pattern: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Condition


@dataclass(frozen=True, slots=True)
class Both:
    """``and`` of two or more parts."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """``or`` of two or more parts."""

    parts: tuple[Condition, ...]


Part = Comparison | HasFinding | Match
Condition = Part | Not | Both | Either
Truth = TypeVar("Truth")


class _Token(NamedTuple):
    kind: str
    text: str
    unit: str
    position: int


def parse_condition(text: str, *, two_sides: bool = False) -> Condition:
    """Read a condition; of two sides it may ask for changes.

    UsageError naming the place that cannot be read, or a figure that is no per cent.
    """
    tokens = list(_tokens(text))
    parser = _Parser(text, tokens, two_sides)
    found = parser.either()
    if parser.position < len(tokens):
        raise parser.error("expected 'and', 'or' or the end")
    if len(tokens) > LONGEST:
        raise _unreadable(text, tokens[LONGEST].position, f"more than {LONGEST:,} words")
    for part in parts_of(found):
        # ``registers > 3%`` would hold 40 registers against 3, and ``registers > 1ms`` would never be met.
        if isinstance(part, Comparison) and not (part.change and part.unit == "%"):
            measure = _MEASURES.get(part.unit.lower())
            if measure and unit_of(part.name) not in (None, measure[0]):
                asked, value = f"{part.name} {part.operator}", f"{part.value:g}"
                fixes = (f"a change: '{asked} +{value}%'", f"the value itself: '{asked} {value}'")
                units = ("`gemmprof find --names` lists the unit of each figure",)
                told = fixes if part.unit == "%" else units
                raise UsageError(f"'{text.strip()}': {part.name} is no {measure[1]}", *told)
        if asks_change(part) and not two_sides:
            what = f"'{text.strip()}' is about a change, which one side does not have"
            raise UsageError(what, "of two sides: gemmprof diff OLD NEW --fail-if CONDITION")
    return found


def evaluated(
    condition: Condition,
    of_part: Callable[[Part], Truth],
    opposite: Callable[[Truth], Truth],
    both: Callable[[Truth, Truth], Truth],
    either: Callable[[Truth, Truth], Truth],
) -> Truth:
    """What a condition says where ``of_part`` says it of its parts; truth may be a number as well as a column."""
    if isinstance(condition, Not):
        return opposite(evaluated(condition.part, of_part, opposite, both, either))
    if isinstance(condition, (Both, Either)):
        found = (evaluated(part, of_part, opposite, both, either) for part in condition.parts)
        return reduce(both if isinstance(condition, Both) else either, found)
    return of_part(condition)


def parts_of(condition: Condition) -> tuple[Part, ...]:
    """What a condition is made of, in the order of its text."""
    return evaluated(condition, lambda part: (part,), lambda parts: parts, operator.add, operator.add)


def asks_change(condition: Condition) -> bool:
    """Whether it speaks of a change, which needs two sides."""
    return any(
        (isinstance(part, Comparison) and part.change) or (isinstance(part, HasFinding) and part.new)
        for part in parts_of(condition)
    )


def names_in(condition: Condition) -> tuple[str, ...]:
    """The figures, findings and metrics that a condition looks at, each once."""
    return tuple(dict.fromkeys(part.name for part in parts_of(condition) if not isinstance(part, Match)))


def parse_number(text: str, unit: str = "") -> float:
    """A number with a unit in base units (nanoseconds, bytes, per cent, ones); UsageError if the unit is not known."""
    scale = _SCALE.get(unit.lower())  # a capital M is mega; units of bytes are written in every case
    if scale is None:
        raise UsageError(f"'{unit}' is no unit", "use ns us ms s, B KB MB GB KiB MiB GiB, %, or k M G")
    return float(re.sub(r"[,_\s]", "", text)) * scale


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position, "this cannot be read")
        kind = str(match.lastgroup if match.lastgroup != "unit" else "number")
        found.append(_Token(kind, match[kind], match["unit"] or "", match.start(kind)))
        position = match.end()
    return found


def _unreadable(text: str, position: int, why: str) -> UsageError:
    place = f"'{text[position : position + 20]}'" if position < len(text) else "its end"
    example = "write for example: shared_bank_conflicts > 10% and time > 1ms"
    return UsageError(f"the condition cannot be read at {place}: {why}", example, found=text[:200])


class _Parser:
    """Recursive descent over the tokens."""

    DEEPEST = 50

    def __init__(self, text: str, tokens: list[_Token], two_sides: bool) -> None:
        self.text, self.tokens, self.position, self.depth = text, tokens, 0, 0
        self.signs = "+-" if two_sides else "+"

    def error(self, why: str) -> UsageError:
        at = self.tokens[self.position].position if self.position < len(self.tokens) else len(self.text)
        return _unreadable(self.text, at, why)

    def take(self, *, word: str = "", kind: str = "") -> _Token | None:
        if self.position >= len(self.tokens):
            return None
        token = self.tokens[self.position]
        if (word and token.text.lower() != word) or (kind and token.kind != kind):
            return None
        self.position += 1
        return token

    def joined(self, word: str, part: Callable[[], Condition], kind: type[Both | Either]) -> Condition:
        parts = [part()]
        while self.take(word=word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def either(self) -> Condition:
        return self.joined("or", lambda: self.joined("and", self.single, Both), Either)

    def single(self) -> Condition:
        self.depth += 1
        if self.depth > self.DEEPEST:
            raise self.error("nested too deeply")
        try:
            if self.take(word="not"):
                return Not(self.single())
            if self.take(word="("):
                found = self.either()
                if not self.take(word=")"):
                    raise self.error("expected ')'")
                return found
            return self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Condition:
        new = self.take(kind="plus")
        name = self.take(kind="name")
        if name is None:
            raise self.error("expected the name of a figure, a metric or a finding")
        name = name._replace(text=TITLES.get(name.text.lower(), name.text))
        operator = None if new else self.take(kind="operator")
        if operator is None:
            if name.text in TEXTS or (name.text not in CAUSES and unit_of(name.text) is not None):
                raise self.error("expected one of > >= < <= == != ~")
            return HasFinding(name.text, bool(new))
        if operator.text in ("~", "!~"):
            return self.match(name.text, operator.text)
        if name.text in TEXTS:
            raise self.error(f"{name.text} is text: compare it with ~ 'expression'")
        value = self.take(kind="number")
        if value is None:
            raise self.error("expected a number, for example 10% or 1ms")
        # Of time a share can mean a change only.
        change = value.text[0] in self.signs or (name.text == TIME and value.unit == "%")
        return Comparison(name.text, operator.text, parse_number(value.text, value.unit), change, value.unit)

    def match(self, name: str, operator: str) -> Match:
        pattern = self.take(kind="quoted")
        if name not in TEXTS:
            raise self.error(f"~ looks at text: {', '.join(TEXTS)}")
        if pattern is None:
            raise self.error("expected 'an expression' in quotes")
        try:
            regex(pattern.text[1:-1])
        except RegexError as error:
            raise self.error(f"no regular expression: {error}") from None
        return Match(name, pattern.text[1:-1], operator == "~")
