"""Entries of the cache: folders that appear whole or not at all, sealed with the hash of what they hold.

A disk that fills up, a copy that was cut or a flipped bit leaves an entry whose content is not what the seal says; it
counts as missing and is made again. (The seal finds accidents. Who can write to the cache can also write a seal.)
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gemmprof.base.foreign_files import LARGEST_DOCUMENT, read_bytes, read_text

SEAL = "seal"


@contextmanager
def new_entry(target: Path) -> Iterator[Path]:
    """A folder to fill that takes the target's name, sealed, at the end: a reader sees all of it or nothing.

    The name stands for the content: where somebody else was faster, what they made stays, and is read undisturbed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".scratch-") as scratch:
        folder = Path(scratch) / "result"
        folder.mkdir()
        yield folder
        (folder / SEAL).write_text(_content(folder), encoding="ascii")
        if is_whole(target):
            return
        with contextlib.suppress(FileNotFoundError):
            target.rename(Path(scratch) / "damaged")
        try:
            folder.rename(target)
        except OSError:
            if not is_whole(target):
                raise


def is_whole(entry: Path) -> bool:
    """Whether an entry is there and holds what was put into it."""
    try:
        return read_text(entry / SEAL, private=True) == _content(entry)
    except (OSError, ValueError):
        return False


def _content(folder: Path) -> str:
    """Hash of the names and bytes of every file but the seal."""
    parts = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name != SEAL:
            data = read_bytes(path, LARGEST_DOCUMENT, private=True)
            parts.update(f"{path.name}\0{len(data)}\0".encode())
            parts.update(data)
    return parts.hexdigest()
