"""The declared formats as data: every field with its type and words, and where an output is not what was declared."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from gemmprof.reports.formats import comparison, ladder, launches, many

FORMATS: Mapping[str, tuple[type, ...]] = {
    "explain": (launches.ExplainRecord,),
    "show": (launches.ShowRecord,),
    "report": (launches.ReportRecord,),
    "profile": (launches.ProfileRecord,),
    "roofline": (launches.RooflineRecord,),
    "occupancy": (comparison.CalculatorRecord, comparison.BuildRecord, comparison.LaunchesRecord),
    "diff": (comparison.DiffRecord,),
    "baseline": (many.BaselineRecord,),
    "find": (many.FindRecord,),
    "history": (
        many.HistoryRecordRecord,
        many.HistoryListRecord,
        many.HistoryShowRecord,
        many.HistoryCheckRecord,
    ),
    "stages": (ladder.StagesRecord,),
    "collect": (ladder.CollectRecord,),
    "tune": (ladder.TuneRecord, ladder.TuneConstraintsRecord),
    "doctor": (ladder.DoctorRecord, ladder.DoctorClusterRecord),
    "error": (many.ErrorRecord,),
}
"""What each command prints under ``--json``: one declaration a form."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a format: its path (``kernels[].findings[].saves``), its type in words, and what it says."""

    path: str
    kind: str
    words: str


def fields(declared: Any, path: str = "") -> Iterator[Field]:
    """Every field of a declared record, outermost first; what is declared within follows its field."""
    for name, (kind, words, needed) in _members(declared).items():
        place = f"{path}.{name}" if path else name
        yield Field(place, _words(kind) + ("" if needed else ", may be missing"), words)
        for inner, suffix in _records_in(kind):
            yield from fields(inner, place + suffix)


def mismatches(value: Any, declared: Any, path: str = "") -> Iterator[str]:
    """Where an output, as JSON gives it, is not what was declared: a field too many or too few, or of another type."""
    origin = get_origin(declared)
    if origin in (Annotated, NotRequired):
        yield from mismatches(value, get_args(declared)[0], path)
    elif declared is Any or declared is object:
        return
    elif origin in (Union, types.UnionType):
        possible = [one for one in get_args(declared) if value is None or one is not type(None)]
        found = [list(mismatches(value, one, path)) for one in possible]
        if all(found):
            yield from min(found, key=len)
    elif origin is Literal:
        if value not in get_args(declared):
            yield f"{path}: {value!r} is none of {get_args(declared)}"
    elif _is_record(declared):
        yield from _record_mismatches(value, declared, path)
    elif origin in (list, tuple, Sequence) or declared in (list, tuple):
        yield from _list_mismatches(value, declared, path)
    elif origin in (dict, Mapping):
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no object"
            return
        for key, item in value.items():
            yield from mismatches(item, get_args(declared)[1], f"{path}.{key}")
    elif not _is_plain(value, declared):
        yield f"{path}: {value!r} is no {_words(declared)}"


def _record_mismatches(value: Any, declared: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no object"
        return
    known = _members(declared)
    yield from (f"{path}.{name}: is not declared" for name in value if name not in known)
    for name, (kind, _, needed) in known.items():
        if name in value:
            yield from mismatches(value[name], kind, f"{path}.{name}")
        elif needed:
            yield f"{path}.{name}: is missing"


def _list_mismatches(value: Any, declared: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: {value!r} is no list"
        return
    inner = get_args(declared)
    for at, item in enumerate(value):
        if inner:
            fixed = len(inner) > 1 and inner[1] is not ...
            yield from mismatches(item, inner[at] if fixed and at < len(inner) else inner[0], f"{path}[{at}]")


def _is_plain(value: Any, declared: Any) -> bool:
    if declared is None or declared is type(None):
        return value is None
    if declared is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if declared is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str if declared is Path else declared)


def _is_record(declared: Any) -> bool:
    return is_typeddict(declared) or (isinstance(declared, type) and dataclasses.is_dataclass(declared))


@cache
def _members(declared: Any) -> dict[str, tuple[Any, str, bool]]:
    """Type, words and whether it must be there, by name of the field; ``format`` first."""
    hints = get_type_hints(declared, include_extras=True)
    found: dict[str, tuple[Any, str, bool]] = {}
    if is_typeddict(declared):
        for name in sorted(hints, key=lambda name: name != "format"):
            kind, needed = hints[name], get_origin(hints[name]) is not NotRequired
            kind = kind if needed else get_args(kind)[0]
            kind, words = get_args(kind)[:2] if get_origin(kind) is Annotated else (kind, "")
            found[name] = (kind, words, needed)
        return found
    told = _attributes(declared)
    return {
        field.name: (hints[field.name], told.get(field.name, ""), True)
        for field in dataclasses.fields(declared)
    }


def _attributes(declared: type) -> dict[str, str]:
    """What a dataclass says of its fields: under ``Attributes:`` in its docstring, or in a text behind the field."""
    found: dict[str, str] = {}
    text = inspect.cleandoc(declared.__doc__ or "").partition("Attributes:\n")[2]
    for entry in re.split(r"\n(?=    \S)", "\n" + text.rstrip()):
        names, colon, words = entry.strip().partition(":")
        if colon and re.fullmatch(r"[\w, ]+", names):
            found |= dict.fromkeys(
                (name.strip() for name in names.split(",")), " ".join(words.split()).rstrip(".")
            )
    source = inspect.getsource(declared)
    for name, words in re.findall(
        r"^    (\w+):[^\n]*\n    \"\"\"(.+?)\"\"\"", source, re.MULTILINE | re.DOTALL
    ):
        found[name] = " ".join(words.split()).rstrip(".")
    return found


def _records_in(kind: Any) -> Iterator[tuple[Any, str]]:
    """The records within a type, each with what is written behind the path: ``[]`` for a list, ``.*`` for any name."""
    if _is_record(kind):
        yield kind, ""
        return
    inner, suffix = get_args(kind), ""
    if get_origin(kind) in (list, tuple, Sequence):
        inner, suffix = inner[:1], "[]"
    elif get_origin(kind) in (dict, Mapping):
        inner, suffix = inner[1:], ".*"
    for one in inner:
        yield from ((record, suffix + rest) for record, rest in _records_in(one))


_PLAIN = {
    str: "text",
    int: "number",
    float: "number",
    bool: "true or false",
    type(None): "null",
    Path: "text",
}


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _words(inner[0])
    if origin in (Union, types.UnionType):
        return " or ".join(
            dict.fromkeys(_words(one) for one in sorted(inner, key=lambda one: one is type(None)))
        )
    if origin in (list, tuple, Sequence):
        return f"list of {_words(inner[0])}" if inner else "list"
    if origin in (dict, Mapping):
        return "object by name"
    if origin is Literal:
        return "text"
    return "object" if _is_record(kind) else _PLAIN.get(kind, "any")
