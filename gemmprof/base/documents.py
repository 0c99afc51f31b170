"""JSON that is read back: its types are checked at the door, and an error names the place and what stands there.

Who wrote a file is not known when it is read: another version, a disk that filled up, a hand. What is read becomes a
value of a typed class or an error; nothing in between reaches a division, a file name or a command line.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")

MAX_BYTES = 256 << 20
"""Larger documents are none of ours."""


class DocumentError(ValueError):
    """The bytes are not the document that they should be: ``Expected `int`, got `str` - at `$.launches` ``."""


def read_json(data: bytes | str, kind: type[T]) -> T:
    """The document of this type; fields that it does not have are passed over.

    Raises:
        DocumentError: naming the first place that does not fit.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(f"{len(data) >> 20} MiB of JSON")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise DocumentError(str(error)[:300]) from None


def checked(value: object, kind: type[T]) -> T:
    """The same for what JSON was decoded to already.

    Raises:
        DocumentError: naming the first place that does not fit.
    """
    try:
        return msgspec.convert(value, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DocumentError(str(error)[:300]) from None
