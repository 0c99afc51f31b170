"""Files that travel between machines: known by the hash of their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import gemmprof
from gemmprof.base.errors import RunError
from gemmprof.base.foreign_files import MIB, read_bytes
from gemmprof.base.output import new_file
from gemmprof.base.system import cache_directory
from gemmprof.kernels.entries import is_whole, new_entry

# A report of a pass; Dask sends what is large in pieces, and keeps it in memory meanwhile.
LARGEST = 2048 * MIB


# What decides what a worker does: modules, templates, kernels.
_CODE = frozenset((".py", ".html", ".css", ".js", ".cu", ".cuh", ".h", ".cpp"))


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Hash of all of gemmprof as it lies here: with other code a worker would give other answers."""
    digest = hashlib.sha256()
    package = Path(gemmprof.__file__).parent
    for folder in sorted(path for path in package.iterdir() if path.is_dir()):
        for path in sorted(path for path in folder.resolve().rglob("*") if path.suffix in _CODE):
            digest.update(path.name.encode() + read_bytes(path, LARGEST))
    return digest.hexdigest()


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it travels between client and workers: a library, a plug-in, a report."""

    name: str
    sha256: str
    data: bytes = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> Content:
        """The content of a file."""
        data = read_bytes(path, LARGEST)
        return cls(path.name, sha256(data), data)

    def place(self) -> Path:
        """Have the file in this machine's cache, under its hash; one that is there already is not written again.

        Raises:
            RunError: what arrived is not what was sent.
        """
        folder = cache_directory() / "fetched" / self.sha256
        if not is_whole(folder):
            data = self._whole()
            with new_entry(folder) as new:
                (new / self.name).write_bytes(data)
        return folder / self.name

    def write(self, target: Path) -> None:
        """Write the file to ``target``, whole or not at all; errors as `place`."""
        data = self._whole()
        with new_file(target) as new:
            new.write_bytes(data)

    def _whole(self) -> bytes:
        if sha256(self.data) != self.sha256:
            raise RunError(f"{self.name} arrived damaged", remedies=["run the command again"])
        return self.data
