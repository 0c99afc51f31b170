"""A figure: a number of a launch, declared once where it is computed, that knows the formula it came from.

A field of a result says what it is (`figure`: title, unit, what it means), a property likewise (`derived`). Its formula
is nowhere typed: analyses compute with what `KernelProfile.number` returns, and of a profile `with_formulas` that is a
number that writes down every step. So what a page says of a figure gives that figure: an expression of metrics' names,
numbers and Python's ``+ - * / // %``; ``name[key, …]`` is the sum of a metric's values at these keys (opcodes, a source
line, * for all).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar, cast, overload

from gemmprof import metrics
from gemmprof.model import KernelProfile

Value = TypeVar("Value")
_SUM, _PRODUCT, _ATOM = range(3)  # how tightly a formula's last operator binds


@dataclass(frozen=True, slots=True)
class Figure:
    """What is declared of a figure.

    Attributes:
        title: its name on pages, in the terminal and in the documentation.
        unit: ``%`` (0 to 100), ``share`` (0 to 1), ``ns``, ``hz``, ``byte``, ``size`` (bytes of a memory), ``byte/s``,
            ``flop/s``, ``×``, ``cycle``, ``inst``, or '' for a plain number.
        meaning: what a good or bad value says, '' where the title says it.
        listed: whether its section lists it by itself; others stand in a table or a sentence.
        digits: after the point, None: as many as its unit has.
        alone: its name where its section does not stand around it (a comparison), '' if that is the title.
        shown: False where only comparisons show it.
        how: how it is computed, in words, of what no expression of metrics says: an integral over samples.
    """

    title: str
    unit: str = ""
    meaning: str = ""
    listed: bool = True
    digits: int | None = None
    alone: str = ""
    shown: bool = True
    how: str = ""


def figure(
    title: str,
    unit: str = "",
    meaning: str = "",
    *,
    listed: bool = True,
    digits: int | None = None,
    alone: str = "",
    shown: bool = True,
    how: str = "",
) -> Any:
    """A field of a result that holds a figure; None until it is known."""
    declared = Figure(title, unit, meaning, listed, digits, alone, shown, how)
    return dataclasses.field(default=None, metadata={"figure": declared})


class Derived(Generic[Value]):
    """A property that is a figure."""

    def __init__(self, function: Callable[[Any], Value], declared: Figure) -> None:
        self.function = function
        self.declared = declared
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
    declared = Figure(title, unit, meaning, listed, None, alone)
    return lambda function: Derived(function, declared)


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
    for name in ("title", "label", "resource", "opcode"):
        label = getattr(row, name, "")
        if isinstance(label, str) and label:
            return label
    return ""


# --- Numbers that write down how they were computed -------------------------------------------------------------------


_AT = re.compile(r"([^\s\[]+)\[([^]]*)\]")  # a metric at keys


class _Traced:
    """Arithmetic that keeps the formula; mixed into a float and an int."""

    formula: str
    rank: int

    def _with(self, value: Any, operator: str, left: object, right: object) -> Any:
        if value is NotImplemented:
            return value
        rank = _SUM if operator in "+-" else _PRODUCT
        first = _operand(left, rank)
        second = _operand(right, rank + (operator not in "+*"))
        if (
            operator == "+"
            and (one := _AT.fullmatch(first))
            and (two := _AT.fullmatch(second))
            and one[1] == two[1]
        ):
            return traced(value, f"{one[1]}[{one[2]}, {two[2]}]")
        return traced(value, f"{first} {operator} {second}", rank)

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._with(_plain(self) + _plain(other), "+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._with(_plain(other) + _plain(self), "+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._with(_plain(self) - _plain(other), "-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(_plain(other) - _plain(self), "-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self if _is(other, 1) else self._with(_plain(self) * _plain(other), "*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self if _is(other, 1) else self._with(_plain(other) * _plain(self), "*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self if _is(other, 1) else self._with(_plain(self) / _plain(other), "/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(_plain(other) / _plain(self), "/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(_plain(self) // _plain(other), "//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(_plain(other) // _plain(self), "//", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._with(_plain(self) % _plain(other), "%", self, other)

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


def _is(other: object, neutral: int) -> bool:
    return type(other) in (int, float) and other == neutral


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
    words = (
        ["*"] if chosen is None else [f"0x{key:x}" if isinstance(key, int) else str(key) for key in chosen]
    )
    return TracedInt(found).by(f"{values.metric}[{', '.join(words)}]")


def with_formulas(profile: KernelProfile) -> KernelProfile:
    """The same launch; what analyses compute of it knows its formula."""
    fields = {field.name: getattr(profile, field.name) for field in dataclasses.fields(KernelProfile)}
    launch = profile.launch
    fields["launch"] = dataclasses.replace(
        launch,
        **{
            name: traced(value, metric)
            for name, metric in _OF_LAUNCH.items()
            if (value := getattr(launch, name)) is not None
        },
    )
    return _TracedProfile(**fields)


# What the launch itself says, and the metric that says the same.
_OF_LAUNCH = {
    "registers_per_thread": metrics.REGISTERS_PER_THREAD,
    "static_shared_memory": metrics.SHARED_MEMORY_STATIC,
    "dynamic_shared_memory": metrics.SHARED_MEMORY_DYNAMIC,
    "driver_shared_memory": metrics.SHARED_MEMORY_DRIVER,
    "shared_memory_config": metrics.SHARED_MEMORY_CONFIG,
    "cluster_size": metrics.CLUSTER_SIZE,
    "waves_per_sm": metrics.WAVES_PER_SM,
}
