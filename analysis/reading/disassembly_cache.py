"""A small cache on disk for what only the native reader knows: disassembly and units.

Starting NVIDIA's disassembler costs half a second in every new process. Its answers depend on the code and on the
version of ``ncu_report`` alone, and both are in the key. The cache lies in ``disassembly`` of gemmprof's cache
directory (`gemmprof.base.output`); deleting it is always safe.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TypeVar

from gemmprof.base.documents import DocumentError, json_text, read_json
from gemmprof.base.foreign_files import UnpackError, read_packed
from gemmprof.base.system import cache_directory, cache_is_off

T = TypeVar("T")

MAX_ENTRIES = 2000  # when the cache holds more entries than this, the older half is deleted

# Bytes that an entry may unpack to; the largest kernels of the corpus have 20 MiB of disassembly.
LARGEST_ENTRY = 128 << 20

_FORMAT = 3


def entries_directory() -> Path | None:
    """The cache's own folder, None if it is turned off or there is no home directory.

    It is its own because old entries are deleted: beside it lie compiled stages and the results of searches.
    """
    if cache_is_off():
        return None
    try:
        return cache_directory() / "disassembly"
    except RuntimeError:
        return None


@cache
def module_version() -> str:
    """Version of the installed ``ncu-report`` package, '' if it is not installed as a package."""
    from importlib import metadata  # a tenth of a whole small run's imports

    try:
        return metadata.version("ncu-report")
    except metadata.PackageNotFoundError:
        return ""


def cache_key(*parts: object) -> str:
    """Name of the entry for these facts."""
    digest = hashlib.sha256()
    for part in (_FORMAT, *parts):
        data = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


def load(key: str, kind: type[T]) -> T | None:
    """The entry of this type, None if there is none or it is damaged."""
    folder = entries_directory()
    if folder is None:
        return None
    try:
        return read_json(read_packed(folder / key, LARGEST_ENTRY, private=True), kind)
    except (OSError, DocumentError, UnpackError):
        return None


def store(key: str, value: object) -> None:
    """Keep an entry. A cache that cannot be written is no error."""
    folder = entries_directory()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(gzip.compress(json_text(value, -1).encode("utf-8"), 1))
            Path(temporary).replace(folder / key)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _prune(folder)


def _prune(folder: Path) -> None:
    entries = [entry for entry in os.scandir(folder) if entry.is_file()]
    if len(entries) > MAX_ENTRIES:
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: len(entries) // 2]:
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()
