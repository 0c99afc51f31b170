"""Documents: every JSON that gemmprof prints, writes or reads back is one typed class, declared once.

The class is what the code builds, what is encoded, what is decoded, and what the schema and the page of documentation
are generated from (tools/build_formats.py). A comment beside a field says what it is, else that beside the field of the
analysis that it repeats (`PartOf`).

Who wrote a file is not known when it is read: another version, a disk that filled up, a hand. What is read becomes a
value of a typed class or an error; nothing in between reaches a division, a file name or a command line.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")
MAX_BYTES = 256 << 20  # larger documents are none of ours
# A value takes up to 190 bytes of memory once it is decoded, and two in the file: kilobytes may unpack to gigabytes of
# them. A baseline of 3,000 kernels with every metric has so many.
MOST_VALUES = 1 << 22


@dataclass(frozen=True, slots=True)
class From:
    """Where a field's value is found in the source of its part, where that is not under the field's own name.

    Null where something on the way (``judgement.low``) is None.
    """

    path: str

    def value(self, source: Any) -> Any:
        """What stands there."""
        for name in self.path.split("."):
            source = None if source is None else getattr(source, name)
        return source


@dataclass(frozen=True, slots=True)
class Digits:
    """How many digits of a number are known; it is kept within the bounds that its `msgspec.Meta` has."""

    number: int


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object within a document. A field that has its default is left out: it "may be missing"."""

    @classmethod
    def of(cls, source: object = None, **given: Any) -> Self:
        """The part with these fields; every other is what ``source`` has (`From`, else under its name).

        Each becomes what its field holds: parts are made of their sources, numbers rounded (`Digits`), times ISO 8601.
        """
        found = {}
        for name, (place, kind) in _fields(cls).items():
            found[name] = _as(kind, given[name] if name in given else place.value(source))
        return cls(**{**given, **found})


@cache
def _fields(kind: type[Part]) -> dict[str, tuple[From, Any]]:
    """Of each field where its value is found, and its type."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for name in kind.__struct_fields__:
        said = get_args(hints[name]) if get_origin(hints[name]) is Annotated else ()
        found[name] = next((one for one in said if isinstance(one, From)), From(name)), hints[name]
    return found


def _as(kind: Any, value: Any) -> Any:
    """A value as a field of this type holds it."""
    inner = get_args(kind)
    if get_origin(kind) is Annotated:
        digits = next((one.number for one in inner if isinstance(one, Digits)), None)
        if digits is None or value is None:
            return _as(inner[0], value)
        bounds = next(one for one in inner if isinstance(one, msgspec.Meta))
        return float(min(max(round(value, digits), bounds.ge), bounds.le))
    if get_origin(kind) in (Union, types.UnionType) and value is not None:
        return _as(inner[0], value)
    if get_origin(kind) is tuple and value is not None:
        return tuple(_as(inner[0], one) for one in value)
    if isinstance(kind, type) and issubclass(kind, Part) and not isinstance(value, Part | None):
        return kind.of(value)
    return value.isoformat() if kind is str and isinstance(value, datetime) else value


class PartOf(Part, Generic[T], frozen=True):
    """A part whose fields, where they have no words of their own, repeat those of another class, which has them."""


class Document(Part, frozen=True, tag_field="format"):
    """One JSON; its class's ``tag`` is the format, which stands first: ``gemmprof.show/1``."""


class ErrorDocument(Document, frozen=True, tag="gemmprof.error/1"):
    """Any command that failed with exit code 2."""

    command: str  # which
    message: str  # what went wrong, one sentence
    found: str  # what was found, '' where nothing is to be said
    remedies: tuple[str, ...]  # what to do, best first


def json_text(value: object, indent: int = 2) -> str:
    """The document as JSON. NaN and infinities become null; file names that are no UTF-8 stay what they are."""
    try:
        data = msgspec.json.encode(value, enc_hook=plain)
    except UnicodeEncodeError:  # half a character, which only the standard library writes (as ``\\udc80``)
        text = json.dumps(msgspec.to_builtins(value, enc_hook=plain))
        return json.dumps(json.loads(text, parse_constant=lambda _: None), indent=indent or None)
    return msgspec.json.format(data, indent=indent).decode("utf-8")


def plain(value: Any) -> Any:
    """What msgspec does not know, as something that it does."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        from gemmprof.base.foreign_files import shown

        return shown(value)
    if isinstance(value, float):  # numpy's
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} stands in no document")


def _path(kind: type, value: object) -> Path:
    if kind is not Path or not isinstance(value, str):
        raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
    return Path(value)


class DocumentError(ValueError):
    """The bytes are not the document that they should be: ``Expected `int`, got `str` - at `$.launches` ``."""


class OtherFormatError(DocumentError):
    """A document of another format, or another version of it; the text is the format that it names."""


class _Head(msgspec.Struct):
    format: str


def values_beyond(data: bytes | str) -> str:
    """What to say of a document that holds more values than are read; '' of any other. Commas in texts count, too."""
    count = data.count(b",") if isinstance(data, bytes) else data.count(",")
    return f"it holds {count:,} values; {MOST_VALUES:,} are read" if count > MOST_VALUES else ""


def read_json(data: bytes | str, kind: type[T]) -> T:
    """The document of this type, other fields passed over; OtherFormatError, or DocumentError naming the misfit."""
    if len(data) > MAX_BYTES:
        raise DocumentError(f"{len(data) >> 20} MiB of JSON")
    if too_many := values_beyond(data):
        raise DocumentError(too_many)
    try:
        if isinstance(kind, type) and issubclass(kind, Document):  # a type like `dict[str, str]` is no class
            found = msgspec.json.decode(data, type=_Head).format
            if found != kind.__struct_config__.tag:
                raise OtherFormatError(found[:200])
        return msgspec.json.decode(data, type=kind, dec_hook=_path)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DocumentError(str(error)[:300]) from None


def checked(value: object, kind: type[T]) -> T:
    """The same for what JSON was decoded to already; DocumentError naming the first place that does not fit."""
    try:
        return msgspec.convert(value, type=kind, dec_hook=_path)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DocumentError(str(error)[:300]) from None
