"""Opens the file of a report: what it is, told by its content, and its uncompressed bytes.

A compressed report is unpacked into a temporary file that has no name: it is gone with the process, however that ends.
How much it may grow is limited, because a few kilobytes can claim to be terabytes.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import RLock
from typing import BinaryIO, cast

from gemmprof.base import foreign_files, system
from gemmprof.base.buckets import below, fetch
from gemmprof.base.errors import ReportError, UnreachableError
from gemmprof.base.spread import is_for_others
from gemmprof.ncurep.ncu_frame import MAGIC

FREE_BYTES = 64 << 20  # a compressed report may unpack to this much in any case,
MAX_RATIO = 80  # and to this many times its size: reports shrink to a 20th or 30th

_MAX_NESTED_COMPRESSION = 2

KEPT_BYTES = 256 << 20  # what `unpacked_once` keeps on the disk at most

_KNOWN_FORMATS = (
    (b"\x7fELF", "an ELF file (a program or a cubin)"),
    (b"PK\x03\x04", "a zip archive"),
    (b"SQLite format 3\0", "an SQLite database (an Nsight Systems export?)"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a PNG picture"),
    (b"BZh", "a bzip2 archive"),
    (b"version https://git-lfs", "a Git LFS pointer: run `git lfs pull`"),
    (b"==PROF==", "ncu's console output"),
    (b"==WARNING==", "ncu's console output"),
    (b"==ERROR==", "ncu's console output"),
    (b'"ID"', "a CSV export of ncu"),
)


def damaged(path: str | os.PathLike[str], what: str, found: str = "") -> ReportError:
    """The error for a report that is cut off or changed."""
    return ReportError(
        f"{os.fspath(path)} is damaged: {what}",
        "copy or record the report again; a run of ncu that was killed leaves such a file",
        found=found,
    )


class _Kept(ExitStack):
    """Unpacked reports, by what tells a file from any other and from itself when it has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[tuple[object, ...], BinaryIO] = {}
        self._bytes = 0
        self.one_at_a_time = RLock()

    def find(self, packed: tuple[object, ...]) -> BinaryIO | None:
        """The bytes that this file unpacked to."""
        file = self._files.get(packed)
        return None if file is None else _again(file)

    def keep(self, packed: tuple[object, ...], file: BinaryIO, *, latest: bool = False) -> None:
        """Keep what this file unpacked to, if there is room; ``latest``: in place of all others, whatever its size."""
        size = os.fstat(file.fileno()).st_size
        if latest:
            self.close()
            self._files.clear()
            self._bytes = 0
        if latest or self._bytes + size <= KEPT_BYTES:
            self._bytes += size
            self._files[packed] = self.enter_context(_again(file))


_kept: ContextVar[_Kept | None] = ContextVar("_kept", default=None)


# Of a process that does jobs for others: it may be given more launches of the report that it fetched last.
_of_process = _Kept()


@contextmanager
def unpacked_once() -> Iterator[None]:
    """Inside this context a compressed report is unpacked once, however often it is opened."""
    if _kept.get() is not None:
        yield
        return
    with _Kept() as kept:
        token = _kept.set(kept)
        try:
            yield
        finally:
            _kept.reset(token)


def _again(file: BinaryIO) -> BinaryIO:
    return os.fdopen(os.dup(file.fileno()), "rb", buffering=0)


def open_unpacked(path: Path) -> BinaryIO:
    """The uncompressed bytes of a report, as an unbuffered file: its own, or a temporary one without a name.

    Raises:
        ReportError: if the file is missing, of another kind, damaged, or grows past what a report may.
    """
    kept, url = _kept.get(), foreign_files.url_of(path)
    if url:
        return _fetched(url, path, kept or (_of_process if is_for_others() else None))
    file = _open_regular(path)
    if kept is None:
        return _unpacked(path, file)
    packed = os.fstat(file.fileno())
    identity = (packed.st_dev, packed.st_ino, packed.st_size, packed.st_mtime_ns, packed.st_ctime_ns)
    if (known := kept.find(identity)) is not None:
        file.close()
        return known
    unpacked = _unpacked(path, file)
    if unpacked is not file:
        kept.keep(identity, unpacked)
    return unpacked


def _fetched(url: str, path: Path, kept: _Kept | None) -> BinaryIO:
    if kept is None:
        return _unpacked(path, fetch(url))
    with kept.one_at_a_time:
        # A command reads what it found first; who does jobs for others looks whether it is still that.
        identity = (url, *(below(url, deep=False).values() if kept is _of_process else ()))
        if (known := kept.find(identity)) is None:
            known = _unpacked(path, fetch(url))
            kept.keep(identity, known, latest=kept is _of_process)
        return known


def _unpacked(path: Path, file: BinaryIO) -> BinaryIO:
    try:
        head = system.read_at(file, 0, 64)
        limit = FREE_BYTES + MAX_RATIO * os.fstat(file.fileno()).st_size
        where = ""
        for _ in range(_MAX_NESTED_COMPRESSION):
            if not foreign_files.is_packed(head):
                break
            where = "inside its compression "
            packed, file = file, _decompress(path, file, limit)
            packed.close()
            head = system.read_at(file, 0, 64)
        if head.startswith(MAGIC):
            return file
        raise _foreign(path, head, where)
    except BaseException:
        file.close()
        raise


def _open_regular(path: Path) -> BinaryIO:
    """The file, opened without waiting: a pipe or a device could block for ever or never end."""
    try:
        return foreign_files.open_file(path)
    except FileNotFoundError:
        raise no_such_file(path) from None
    except foreign_files.RefusedFileError as error:
        raise ReportError(f"{path} {error.strerror}, not a report", "name a .ncu-rep file") from None
    except OSError as error:
        raise UnreachableError.of(path, f"{path} cannot be read", found=str(error)) from error


def _foreign(path: Path, head: bytes, where: str = "") -> ReportError:
    """The error for a file that is no report, saying what it looks like."""
    if not head:
        return ReportError(
            f"{path} is empty {where}".rstrip(),
            "record the report again; ncu leaves an empty file when it is killed early",
        )
    kind = next((kind for magic, kind in _KNOWN_FORMATS if head.startswith(magic)), "")
    if not kind:
        # Who may read reports alone is not told what stands in other files.
        kind = (
            "nothing that is known here" if foreign_files.is_confined() else f"it starts with {head[:16]!r}"
        )
    return ReportError(
        f"{path} is not an Nsight Compute report {where}".rstrip(),
        "name a .ncu-rep or .ncu-repz file, which ncu writes with --export",
        found=kind,
    )


def _decompress(path: Path, packed: BinaryIO, limit: int) -> BinaryIO:
    """Unpack ``packed`` into a temporary file without a name."""
    with ExitStack() as unless_whole:
        made = unless_whole.enter_context(tempfile.TemporaryFile(prefix="gemmprof-", buffering=0))
        out = cast(BinaryIO, made)
        try:
            written = 0
            for chunk in foreign_files.unpack(packed):
                if not written and not (chunk.startswith(MAGIC) or foreign_files.is_packed(chunk)):
                    raise _foreign(path, chunk[:64], "inside its compression ")
                written += len(chunk)
                if written > limit:
                    raise ReportError(
                        f"{path} unpacks to more than {limit >> 20} MiB, which no report of its size does",
                        f"if you trust it, unpack it yourself: it may grow {MAX_RATIO} times at most here",
                    )
                system.write_all(out.fileno(), chunk)
        except foreign_files.UnpackError as error:
            raise damaged(path, "its compressed data does not unpack", str(error)) from None
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            room = [f"free space in {tempfile.gettempdir()}, or set TMPDIR to a folder with more"] * full
            problem = f"{path} cannot be unpacked"
            raise UnreachableError.of(path, problem, *room, found=str(error)) from error
        unless_whole.pop_all()
        return out


def no_such_file(path: str | os.PathLike[str]) -> UnreachableError:
    """What to say of a name that stands for nothing."""
    name = os.fspath(path)
    # Typed for a launch or a kernel, as it stands behind a report.
    meant = (
        f"for a launch: '#{name}' or --launch {name}"
        if name.isdecimal()
        else f"for a kernel: --kernel {name}"
    )
    return UnreachableError.of(
        path,
        f"there is no file {path}",
        "check the name; the shell expands ~ only unquoted",
        *([meant] if name.replace("_", "").isalnum() else []),
    )
