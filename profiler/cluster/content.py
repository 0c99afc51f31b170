"""Files that travel between machines: known by the hash of their content, fetched once, and in pieces where large."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gemmprof.base.errors import RunError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, hash_file, open_file, read_bytes
from gemmprof.base.output import cache_directory, new_file
from gemmprof.kernels.entries import is_whole, new_entry

# What one message holds of a file: reports of a hundred megabytes pass through no memory whole.
PIECE_BYTES = 4 << 20


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Content:
    """A file of a few megabytes as it travels to the workers: a library, a plug-in."""

    name: str
    sha256: str
    data: bytes = field(repr=False)

    @classmethod
    def of(cls, path: Path) -> Content:
        """The content of a file."""
        data = read_bytes(path, LARGEST_DOCUMENT)
        return cls(path.name, sha256(data), data)

    def place(self) -> Path:
        """Have the file in this machine's cache, under its hash; one that is there already is not written again.

        Raises:
            RunError: what arrived is not what was sent.
        """
        folder = cache_directory() / "fetched" / self.sha256
        if not is_whole(folder):
            if sha256(self.data) != self.sha256:
                raise RunError(f"{self.name} arrived damaged", remedies=["run the command again"])
            with new_entry(folder) as new:
                (new / self.name).write_bytes(self.data)
        return folder / self.name


@dataclass(frozen=True, slots=True)
class FileElsewhere:
    """A file on a worker's disk, to be fetched in pieces.

    Attributes:
        worker: the address of the worker that wrote it.
        path: where it lies there; size in bytes, sha256 of the whole.
    """

    worker: str
    path: str
    size: int
    sha256: str

    @classmethod
    def at(cls, worker: str, path: Path) -> FileElsewhere:
        """A file of this machine, as another one has to know it."""
        digest, size = hash_file(path)
        return cls(worker, str(path), size, digest)

    def fetch(self, target: Path, piece: Callable[[str, int, int], bytes]) -> None:
        """Write the file to ``target``, whole or not at all.

        Args:
            piece: ``piece(path, offset, size)`` reads on the worker.

        Raises:
            RunError: what arrived is not what was written there.
        """
        whole = hashlib.sha256()
        with new_file(target) as new, new.open("wb") as file:
            for offset, size in self._pieces():
                data = piece(self.path, offset, size)
                whole.update(data)
                file.write(data)
            if whole.hexdigest() != self.sha256:
                raise RunError(f"{target.name} arrived damaged", remedies=["run the command again"])

    def _pieces(self) -> Iterator[tuple[int, int]]:
        for offset in range(0, self.size, PIECE_BYTES):
            yield offset, min(PIECE_BYTES, self.size - offset)


def read_piece(path: str, offset: int, size: int) -> bytes:
    """A piece of a file of this machine."""
    with open_file(path) as file:
        file.seek(offset)
        return file.read(size)
