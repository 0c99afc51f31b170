"""Writes what is derived from the typed documents: docs/json.md, and the JSON schema that ships with the package.

python tools/build_formats.py

A document is a class of `gemmprof.base.documents`; a test holds both files to the classes.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from recording import ROOT

from gemmprof.analysis.figure import declared
from gemmprof.base.documents import Document, Part, PartOf

HOMES = (
    "model.answers",
    *(f"reports.documents.of_{name}" for name in ("findings", "launches", "comparison", "occupancy")),
    "reports.dataset.query",
    "reports.documents.of_history",
    "reports.terminal.summary",
    "base.documents",
)
"""Where what ``--json`` prints is declared, in the order of the page."""
FILES = (
    ("run.json", "gemmprof.runs.directory", "RunDocument", "of a run directory"),
    ("dataset.json", "gemmprof.reports.dataset.manifest", "Mark", "of a data set"),
    ("manifests/*.json", "gemmprof.reports.dataset.rows", "Manifest", "of each part of a data set"),
    ("NAME.json.zst", "gemmprof.analysis.comparison.baseline", "Baseline", "of a baseline"),
    ("--learn-noise FILE", "gemmprof.analysis.comparison.baseline", "Control", "of a machine's noise"),
    (
        "tuned.json",
        "gemmprof.kernels.parameters",
        "Tuned",
        "in the cache: one such entry an operator and architecture",
    ),
)
"""What gemmprof writes and reads back."""
PAGE = ROOT / "docs" / "json.md"
SCHEMA = ROOT / "reports" / "documents" / "gemmprof.schema.json"
HEAD = """# JSON

With `--json` a command prints one object whose first field names its format, `gemmprof.<command>/1`. The number rises
when a field is removed or changes its meaning; new fields may appear at any time. What is not known is null. `[]`
stands for each item of a list, `.*` for any name. Units are base units: bytes, nanoseconds under the profiler, seconds
outside it, hertz; per cent run to 100.

The JSON schema of all of them ships with the package (`reports/documents/gemmprof.schema.json`). It and this page are
written by tools/build_formats.py from the classes that the commands print.
"""


def documents() -> list[type[Document]]:
    """Every document that a command prints."""
    found = []
    for home in HOMES:
        module = import_module(f"gemmprof.{home}")
        found += [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, Document) and kind.__module__ == module.__name__
        ]
    return [kind for kind in found if "/" in str(kind.__struct_config__.tag)]


def is_object(kind: Any) -> bool:
    """Whether values of this type are objects with declared fields."""
    return isinstance(kind, type) and (issubclass(kind, Part) or dataclasses.is_dataclass(kind))


@cache
def members(kind: Any) -> dict[str, tuple[Any, str, bool]]:
    """Type, words and whether it is always there, by name of the field."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    told: dict[str, str] = {}
    bases = (base for home in kind.__mro__ for base in vars(home).get("__orig_bases__", ()))
    repeated = [one for base in bases if get_origin(base) is PartOf for one in get_args(base)]
    sources = [one for kinds in repeated for one in get_args(kinds) or (kinds,)]
    for home in (*sources[::-1], *filter(is_object, kind.__mro__[::-1])):
        told |= attributes(home)
    optional = set()
    if issubclass(kind, Part):
        optional = {field.name for field in msgspec.structs.fields(kind) if not field.required}
        names = kind.__struct_fields__
    else:
        names = tuple(field.name for field in dataclasses.fields(kind))
    for name in names:
        words = re.sub(r"\bNone\b", "null", told.get(name, ""))  # what is None in Python is null in JSON
        found[name] = (hints[name], words, name not in optional)
    return found


@cache
def attributes(kind: type) -> Mapping[str, str]:
    """What a class says of its fields: as figures, beside the field, of properties."""
    found = {
        name: " ".join((value.__doc__ or "").split()).rstrip(".")
        for name, value in vars(kind).items()
        if isinstance(value, (property, cached_property))
    }
    if dataclasses.is_dataclass(kind):
        for name, figure in declared(kind).items():
            found[name] = ", ".join(filter(None, (figure.title, figure.unit, figure.meaning)))
    return found | dict(commented(inspect.getsource(kind)))


def commented(source: str) -> Iterator[tuple[str, str]]:
    """The fields of a class with a comment behind or above, which may begin with the names of several."""
    above: list[str] = []
    for line in source.splitlines():
        if comment := re.fullmatch(r"    # (.+)", line):
            above.append(comment[1])
            continue
        if field := re.fullmatch(r"    (\w+): .*?(?:  # (.+))?", line):
            words = (field[2] or " ".join(above)).rstrip(".")
            several = re.fullmatch(r"(\w+(?:, \w+)+): (.+)", words)
            if words:
                yield from dict.fromkeys(
                    *(several[1].split(", "), several[2]) if several else ([field[1]], words)
                ).items()
        above = []


def lines(kind: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, type and words of every field, outermost first; what is declared within follows its field."""
    for name, (inner, words, needed) in members(kind).items():
        place = f"{path}.{name}" if path else name
        yield place, type_words(inner) + ("" if needed else ", may be missing"), words
        for part, suffix in objects_in(inner):
            yield from lines(part, place + suffix)


def objects_in(kind: Any) -> Iterator[tuple[Any, str]]:
    """The objects within a type, each with what is written behind the path: ``[]`` for a list, ``.*`` for any name."""
    if is_object(kind):
        yield kind, ""
        return
    inner, suffix = get_args(kind), ""
    if get_origin(kind) in (list, tuple, Sequence):
        inner, suffix = inner[:1], "[]"
    elif get_origin(kind) in (dict, Mapping):
        inner, suffix = inner[1:], ".*"
    for one in inner:
        yield from ((part, suffix + rest) for part, rest in objects_in(one))


JSON_TYPES: Mapping[Any, Mapping[str, str]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Path: {"type": "string"},
}
WORDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}


def type_words(kind: Any) -> str:
    """A type in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_words(inner[0])
    if origin in (Union, types.UnionType):
        ordered = sorted(
            set(inner) - {msgspec.UnsetType}, key=lambda one: (one is type(None), inner.index(one))
        )
        return " or ".join(dict.fromkeys(type_words(one) for one in ordered))
    if origin in (list, tuple, Sequence):
        return f"list of {type_words(inner[0])}" if inner else "list"
    if origin in (dict, Mapping):
        return "object by name"
    if origin is Literal:
        return "text"
    return "object" if is_object(kind) else WORDS.get(JSON_TYPES.get(kind, {}).get("type", ""), "any")


def plain_form(kind: type[Document]) -> type[Document] | None:
    """The document that has just the fields which this one shares with it; None if it shares none, or is that."""
    base = kind.__base__
    if base is Document:
        return None
    found = next(one for one in documents() if one.__base__ is base and members(one) == members(base))
    return None if found is kind else found


def table(kind: Any, known: Container[str] = ()) -> Iterator[str]:
    """Every field of a document as Markdown; ``known``: fields that stand elsewhere."""
    yield from ("| field | type | what |", "|---|---|---|")
    head = [("format", "text", f"`{kind.__struct_config__.tag}`")] if issubclass(kind, Document) else []
    shown_here = (line for line in lines(kind) if line[0].partition(".")[0].partition("[")[0] not in known)
    for path, words, what in [*head, *shown_here]:
        shown = what.replace("``", "`").replace("|", "¦").replace("<", "&lt;")
        yield f"| `{path}` | {words} | {shown} |"


def page() -> str:
    """Every field that ``--json`` prints, by command, and of every file."""
    parts = [HEAD]
    by_format: dict[str, list[type[Document]]] = {}
    for kind in documents():
        by_format.setdefault(str(kind.__struct_config__.tag), []).append(kind)
    for name, kinds in sorted(by_format.items()):
        parts += [f"## {name}", ""]
        for kind in kinds:
            call = inspect.cleandoc(kind.__doc__ or "").rstrip(".").replace("``", "`")
            base = plain_form(kind)
            also = "" if base is None else f" has the fields of `{base.__struct_config__.tag}`, and"
            parts += [f"{call}{also}:", "", *table(kind, () if base is None else members(base)), ""]
    parts += ["## Files", "", "What gemmprof writes and reads back.", ""]
    for name, home, written, what in FILES:
        parts += [f"`{name}` {what}:", "", *table(getattr(import_module(home), written)), ""]
    return "\n".join(parts).rstrip() + "\n"


def shape(kind: Any) -> dict[str, Any]:
    """A type as JSON schema; msgspec's own generator refuses two objects that no field tells apart."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        found = shape(inner[0])
        for meta in (one for one in inner[1:] if isinstance(one, msgspec.Meta)):
            bounds = {"minimum": meta.ge, "maximum": meta.le}
            found |= {name: bound for name, bound in bounds.items() if bound is not None}
            found |= meta.extra_json_schema or {}
        return found
    if origin in (Union, types.UnionType):
        return {"anyOf": [shape(one) for one in inner if one is not msgspec.UnsetType]}
    if origin in (list, tuple, Sequence):
        items = dict.fromkeys(one for one in inner if one is not ...)
        return {"type": "array", "items": shape(Union[tuple(items)])}  # noqa: UP007 (not known here)
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": shape(inner[1])}
    if origin is Literal:
        return {"enum": list(inner)}
    return {"$ref": f"#/$defs/{kind.__name__}"} if is_object(kind) else dict(JSON_TYPES.get(kind, {}))


def definition(kind: type) -> dict[str, Any]:
    """An object as JSON schema. What may come in later versions is allowed."""
    fields = members(kind)
    properties = {
        name: {**shape(inner), **({"description": words} if words else {})}
        for name, (inner, words, _) in fields.items()
    }
    required = [name for name, (_, _, needed) in fields.items() if needed]
    if issubclass(kind, Document):
        properties = {"format": {"const": kind.__struct_config__.tag}, **properties}
        required = ["format", *required]
    words = inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]
    return {"description": words, "type": "object", "properties": properties, "required": required}


def schema() -> dict[str, Any]:
    """A JSON schema that every document of the package fits."""
    kinds = documents()
    defined: dict[str, Any] = {}
    pending: list[type] = list(kinds)
    met: set[type] = set()
    while pending:
        kind = pending.pop()
        if kind not in met:
            met.add(kind)
            assert kind.__name__ not in defined, f"two objects are called {kind.__name__}"
            defined[kind.__name__] = definition(kind)
            pending += [part for inner, _, _ in members(kind).values() for part, _ in objects_in(inner)]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "anyOf": [shape(kind) for kind in kinds],
        "$defs": dict(sorted(defined.items())),
    }


def outputs() -> dict[Path, str]:
    """The files, and what stands in them."""
    return {PAGE: page(), SCHEMA: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
