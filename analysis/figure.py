"""A figure: a number of a launch, declared once where it is computed, that knows the formula it came from.

A field of a result says what it is (`figure`: title, unit, what it means), a property likewise (`derived`). One that is
a metric names it (``of``) and is read by that (`collected`, `analysis.sections.by_line.ranked`). A formula is nowhere
typed: analyses compute with what `KernelProfile.number` returns, and of a profile `with_formulas` that is a
number that writes down every step. So what a page says of a figure gives that figure: an expression of metrics' names,
numbers and Python's ``+ - * / // %``; ``name[key, …]`` is the sum of a metric's values at these keys (opcodes, a source
line, * for all).
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from gemmprof.model import KernelProfile

Value = TypeVar("Value")
Declaration = ParamSpec("Declaration")
_SUM, _PRODUCT, _ATOM = range(3)  # how tightly a formula's last operator binds


@dataclass(frozen=True, slots=True)
class Figure:
    """What is declared of a figure."""

    title: str  # its name on pages, in the terminal and in the documentation
    # ``%`` (0 to 100), ``share`` (0 to 1), ``ns``, ``hz``, ``byte``, ``size`` (bytes of a memory), ``byte/s``,
    # ``flop/s``, ``×``, ``cycle``, ``inst``, or '' for a plain number
    unit: str = ""
    meaning: str = ""  # what a good or bad value says, '' where the title says it
    _: dataclasses.KW_ONLY
    listed: bool = True  # whether its section lists it by itself; others stand in a table or a sentence
    digits: int | None = None  # after the point, None: as many as its unit has
    alone: str = ""  # its name where its section does not stand around it (a comparison), '' for the title
    shown: bool = True  # False where only comparisons show it
    how: str = ""  # in words, how what no expression of metrics says is computed: an integral over samples
    of: str | tuple[str, ...] = ""  # the metric that it is, or its names in several ncus; '' if computed

    @property
    def names(self) -> tuple[str, ...]:
        """`of`, the name that is looked for first in front."""
        return (self.of,) if isinstance(self.of, str) else self.of


def _field(declare: Callable[Declaration, Figure]) -> Callable[Declaration, Any]:
    def made(*args: Declaration.args, **kwargs: Declaration.kwargs) -> Any:
        return dataclasses.field(default=None, metadata={"figure": declare(*args, **kwargs)})

    return made


figure = _field(Figure)
"""A field of a result that holds a figure, declared as `Figure` says; None until it is known."""
unlisted = _field(partial(Figure, listed=False))
"""The same of one that stands in a table or a sentence of its section."""


class Derived(Generic[Value]):
    """A property that is a figure."""

    def __init__(self, function: Callable[[Any], Value], declared: Figure) -> None:
        self.function, self.declared = function, declared
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Derived[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> Derived[Value] | Value:
        return self if instance is None else self.function(instance)


def derived(
    title: str,
    unit: str = "",
    meaning: str = "",
    *,
    listed: bool = True,
    alone: str = "",
) -> Callable[[Callable[[Any], Value]], Derived[Value]]:
    """A property of a result that is a figure, computed from others."""
    declared = Figure(title, unit, meaning, listed=listed, alone=alone)
    return lambda function: Derived(function, declared)


def quotient(over: str, under: str, factor: int = 1) -> Callable[[Any], float | None]:
    """For `derived`: one figure over another, times a factor; None where one is not known or the divisor is 0."""

    def found(result: Any) -> float | None:
        dividend, divisor = getattr(result, over), getattr(result, under)
        return None if dividend is None or not divisor else factor * dividend / divisor

    return found


def difference(of: str, less: str) -> Callable[[Any], int | None]:
    """For `derived`: one figure less another; None where one is not known."""

    def found(result: Any) -> int | None:
        first, second = getattr(result, of), getattr(result, less)
        return None if first is None or second is None else first - second

    return found


def collected(kind: type, profile: KernelProfile) -> dict[str, Any]:
    """The figures of a result that are metrics (`Figure.of`), by field, as the report has them: whole or real."""
    found: dict[str, Any] = {}
    for name, metrics_of_it, whole in _metrics(cast(Any, kind)):
        read = profile.whole if whole else profile.number
        found[name] = next((value for one in metrics_of_it if (value := read(one)) is not None), None)
    return found


@cache
def _metrics(kind: Any) -> tuple[tuple[str, tuple[str, ...], bool], ...]:
    """Of each field that is a metric its name, the metric's, and whether it is a whole number."""
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    of_metrics = ((name, item.names) for name, item in declared(kind).items() if item.of)
    return tuple((name, names, types[name].startswith("int")) for name, names in of_metrics)


def declared(kind: type) -> dict[str, Figure]:
    """Every figure that a result (or a row of one) declares, by the name of its field or property."""
    return _declared(cast(Any, kind))


@cache
def _declared(kind: Any) -> dict[str, Figure]:
    if not dataclasses.is_dataclass(kind):
        return {}
    found = {f.name: f.metadata["figure"] for f in dataclasses.fields(kind) if "figure" in f.metadata}
    properties = {name: item.declared for name, item in vars(kind).items() if isinstance(item, Derived)}
    return {**found, **properties}


def figures(result: object, place: str = "") -> Iterator[tuple[str, str, Figure, Any]]:
    """Key, row, declaration and value of every known figure of a result and of its rows, rows within rows included.

    The key is ``field`` or ``list.field``, the row its label ('' of the result itself).
    """
    for name, item in declared(type(result)).items():
        value = getattr(result, name)
        if isinstance(value, (int, float)):
            yield f"{place}{name}", row_label(result), item, value
    for name in _parts(cast(Any, type(result))):
        part = getattr(result, name)
        rows = part if isinstance(part, tuple) else (part,)
        # The rows of a list are of one kind; thousands of instructions without a figure are not looked at.
        if rows and declared(type(rows[0])):
            for row in rows:
                yield from figures(row, f"{place}{name}.")


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    """Fields of a result that hold no figure: other results, or tuples of rows."""
    return tuple(field.name for field in dataclasses.fields(kind) if "figure" not in field.metadata)


def row_label(row: object) -> str:
    """What a row of a result is called in a list of formulas."""
    for name in ("title", "label", "resource", "opcode", "name", "kind"):
        label = getattr(row, name, "")
        if isinstance(label, str) and label:
            return label
    return ""


# --- Numbers that write down how they were computed -------------------------------------------------------------------


_AT = re.compile(r"([^\s\[]+)\[([^]]*)\]")  # a metric at keys


def _step(
    sign: str, of: Callable[[Any, Any], Any], neutral: int | None = None, *, reverse: bool = False
) -> Any:
    """One operator of `_Traced`; with its neutral number nothing is written down."""

    def computed(self: _Traced, other: Any) -> Any:
        if type(other) in (int, float) and other == neutral:
            return self
        left, right = (other, self) if reverse else (self, other)
        return self._with(of(_plain(left), _plain(right)), sign, left, right)

    return computed


class _Traced:
    """Arithmetic that keeps the formula; mixed into a float and an int."""

    formula: str
    rank: int

    def _with(self, value: Any, sign: str, left: object, right: object) -> Any:
        rank = _SUM if sign in "+-" else _PRODUCT
        first = _operand(left, rank)
        second = _operand(right, rank + (sign not in "+*"))
        if sign == "+" and (a := _AT.fullmatch(first)) and (b := _AT.fullmatch(second)) and a[1] == b[1]:
            return traced(value, f"{a[1]}[{a[2]}, {b[2]}]")
        return traced(value, f"{first} {sign} {second}", rank)

    __add__ = _step("+", operator.add, 0)
    __radd__ = _step("+", operator.add, 0, reverse=True)
    __sub__ = _step("-", operator.sub, 0)
    __rsub__ = _step("-", operator.sub, reverse=True)
    __mul__ = _step("*", operator.mul, 1)
    __rmul__ = _step("*", operator.mul, 1, reverse=True)
    __truediv__ = _step("/", operator.truediv, 1)
    __rtruediv__ = _step("/", operator.truediv, reverse=True)
    __floordiv__ = _step("//", operator.floordiv)
    __rfloordiv__ = _step("//", operator.floordiv, reverse=True)
    __mod__ = _step("%", operator.mod)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __neg__(self) -> Any:
        return traced(-_plain(self), f"-{_operand(self, _ATOM)}", _PRODUCT)


class TracedFloat(_Traced, float):
    """A float with its formula."""


class TracedInt(_Traced, int):
    """A whole number with its formula."""

    def by(self, formula: str) -> TracedInt:
        """Itself, which stands for this formula from here on."""
        self.formula, self.rank = formula, _ATOM
        return self


def traced(value: Any, formula: str, rank: int = _ATOM) -> Any:
    """A number that stands for this formula from here on."""
    made: Any = TracedInt(value) if isinstance(value, int) else TracedFloat(value)
    made.formula, made.rank = formula, rank
    return made


def formula_of(value: object) -> str:
    """The formula of a number, '' of one that has none."""
    return getattr(value, "formula", "")


def _plain(value: Any) -> Any:
    if isinstance(value, TracedFloat):
        return float(value)
    return int(value) if isinstance(value, TracedInt) else value


def _operand(value: object, least: int) -> str:
    if isinstance(value, _Traced):
        return f"({value.formula})" if value.rank < least else value.formula
    number = float(value)  # type: ignore[arg-type]
    return str(int(number)) if number.is_integer() else repr(number)


class _TracedProfile(KernelProfile):
    """A launch whose numbers write down how they are used."""

    __slots__ = ()

    def number(self, metric: str) -> float | None:
        value = super().number(metric)
        return None if value is None else traced(value, metric)

    def whole(self, metric: str) -> int | None:
        value = super().whole(metric)
        return None if value is None else traced(value, metric)

    def named(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return Counts(value, name)
        return None if value is None else traced(value, name)


class Counts(dict[Any, int]):
    """Values of a metric by address or opcode."""

    def __init__(self, values: dict[Any, int], metric: str) -> None:
        super().__init__(values)
        self.metric = metric


def total(values: Mapping[Any, int], keys: Iterable[Any] | None = None) -> int:
    """The sum of a metric's values at these keys (all of them for None): ``metric[LDS, LDSM]`` in a formula."""
    chosen = None if keys is None else [key for key in keys if key in values]
    found = sum(values.values() if chosen is None else (values[key] for key in chosen))
    if not isinstance(values, Counts):
        return found
    shown = (f"0x{key:x}" if isinstance(key, int) else str(key) for key in chosen or ())
    words = ["*"] if chosen is None else [*shown]
    return TracedInt(found).by(f"{values.metric}[{', '.join(words)}]")


def with_formulas(profile: KernelProfile) -> KernelProfile:
    """The same launch; what analyses compute of it knows its formula."""
    fields = (field.name for field in dataclasses.fields(KernelProfile))
    return _TracedProfile(**{name: getattr(profile, name) for name in fields})
