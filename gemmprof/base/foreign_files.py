"""The one door for files that this process did not write: reports, runs, baselines, caches, logs, locks.

Anybody may have put there what has the file's name: a pipe that never ends, a device, a link to somebody's file, a few
kilobytes that unpack to terabytes. A file is opened without waiting, looked at once it is open (so that nobody can
exchange it in between), read up to a limit, and unpacked under a limit that is counted while it unpacks. What is
refused is an `OSError`, as if the file system had said no: whoever reads files answers those already.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

MIB = 1 << 20
LARGEST_TEXT = 16 * MIB  # bytes of a text: sources, logs, notes; ncu's log of ten thousand launches has one
LARGEST_DOCUMENT = 256 * MIB  # bytes of a JSON document; a baseline of ten thousand kernels has 100 MiB
GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
# Memory that a decompressor may ask for; the strongest ordinary settings of xz and zstd need 65 and 128 MiB.
LARGEST_DICTIONARY = 256 * MIB
_CHUNK = MIB
_ZSTD_CHUNK = 1 << 10  # few bytes of zstd at a time: each three may stand for 128 KiB
_URL = re.compile(r"(s3|gs|gcs|abfs|abfss):/{1,2}(?=[^/])")  # a `Path` of a URL has lost one of its slashes


class RefusedFileError(OSError):
    """A file that is not what is read under its name; ``strerror`` says why, ``filename`` which."""

    def __init__(self, path: str | os.PathLike[str], why: str, code: int = errno.EINVAL) -> None:
        super().__init__(code, why, os.fspath(path))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def url_of(path: str | os.PathLike[str]) -> str:
    """The URL that a path stands for; '' if it is one of a file system's."""
    text = os.fspath(path)
    head = _URL.match(text)
    return f"{head[1]}://{text[head.end() :]}" if head else ""


def shown(path: str | os.PathLike[str]) -> str:
    """A path for people: a URL with both of its slashes."""
    return url_of(path) or os.fspath(path)


def open_file(
    path: str | os.PathLike[str],
    largest: int | None = None,  # bytes that it may have; any number without
    *,
    private: bool = False,  # it must be no link, and this user's (or root's): caches and locks of ours
    write: bool = False,  # open it to be locked or appended to as well, and make it where it is missing
    # whether the file may be a link; what only gemmprof writes (parts of data sets and histories) never is
    links: bool = True,
) -> BinaryIO:
    """A regular file, unbuffered, opened without waiting; RefusedFileError if it is none, too large or not ours."""
    # Windows has neither of the two; it has no pipes among its files, either.
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    flags |= (os.O_RDWR | os.O_CREAT) if write else os.O_RDONLY
    # Links are never written through: that would change a file that somebody else chose.
    no_links = getattr(os, "O_NOFOLLOW", 0) if private or write or not links else 0
    try:
        handle = os.open(path, flags | no_links, 0o600 if private else 0o666)
    except ValueError as error:
        raise RefusedFileError(path, str(error)) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RefusedFileError(path, "is a link, which is not followed here", errno.ELOOP) from None
        if error.errno == errno.ENXIO:
            raise RefusedFileError(path, "is no regular file") from None
        raise
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            why = "is a folder" if stat.S_ISDIR(facts.st_mode) else "is no regular file"
            raise RefusedFileError(path, why)
        if _roots and not private:
            _check_place(path, facts)
        if private and hasattr(os, "geteuid") and facts.st_uid not in (os.geteuid(), 0):
            raise RefusedFileError(path, "belongs to somebody else", errno.EPERM)
        if largest is not None and facts.st_size > largest:
            raise _too_large(path, facts.st_size, largest)
        return os.fdopen(handle, "r+b" if write else "rb", buffering=0)
    except BaseException:
        os.close(handle)
        raise


_roots: tuple[str, ...] = ()


def confine(roots: Sequence[str | os.PathLike[str]]) -> None:
    """Have this process open files below these folders alone (and private ones), wherever links lead meanwhile."""
    global _roots
    _roots = tuple(os.path.realpath(root) for root in roots)


def is_confined() -> bool:
    """Whether this process reads for somebody who may not see every file that it could."""
    return bool(_roots)


def _check_place(path: str | os.PathLike[str], facts: os.stat_result) -> None:
    """Refuse what was opened if it is no file below the folders: asked now, nobody can exchange it any more."""
    real = os.path.realpath(path)
    try:
        inside = any(os.path.commonpath((real, root)) == root for root in _roots)
        if inside and os.path.samestat(Path(real).stat(), facts):
            return
    except (OSError, ValueError):
        pass
    raise RefusedFileError(path, "is outside the folders that may be read", errno.EACCES)


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse (RefusedFileError) a store whose folders are links: clearing it would remove other files elsewhere."""
    for name in names:
        if (folder / name).is_symlink():
            raise RefusedFileError(folder / name, "is a link, which is not followed here", errno.ELOOP)


def _too_large(path: str | os.PathLike[str], size: int, largest: int) -> RefusedFileError:
    why = f"has {size / MIB:,.0f} MiB; no more than {largest / MIB:,.0f} MiB are read"
    return RefusedFileError(path, why, errno.EFBIG)


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST_TEXT, *, private: bool = False) -> bytes:
    """The content of a file; errors as `open_file`. One that grows meanwhile is refused like one that was large."""
    with open_file(path, largest, private=private) as file:
        # In one piece but for what grows, and what has no size before it is read (/proc).
        parts = [file.read(os.fstat(file.fileno()).st_size + 1)]
        size = len(parts[0])
        while parts[-1] and size <= largest:
            parts.append(file.read(_CHUNK))
            size += len(parts[-1])
    if size > largest:
        raise _too_large(path, size, largest)
    return b"".join(parts) if len(parts) > 2 else parts[0]


def read_text(
    path: str | os.PathLike[str],
    largest: int = LARGEST_TEXT,
    *,
    errors: str = "strict",
    private: bool = False,
) -> str:
    """The text of a file, line feeds as its line ends; errors as `open_file`, and UnicodeDecodeError for no UTF-8."""
    text = read_bytes(path, largest, private=private).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_end(path: str | os.PathLike[str], size: int) -> str:
    """The last ``size`` bytes of a text; '' where there is no such file."""
    try:
        with open_file(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


def hash_file(path: str | os.PathLike[str]) -> tuple[str, int]:
    """SHA-256 in hexadecimal digits, and size; errors as `open_file`."""
    import hashlib  # OpenSSL takes longer to load than all else here

    with open_file(path) as file:
        digest = hashlib.sha256()
        while part := file.read(_CHUNK):
            digest.update(part)
        return digest.hexdigest(), file.tell()


@contextlib.contextmanager
def open_lock(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[int]:
    """The handle of a lock file, which is made where it is missing and never changed; errors as `open_file`."""
    with open_file(path, private=private, write=True) as file:
        yield file.fileno()


def is_packed(head: bytes) -> bool:
    """Whether a file that begins so is compressed with gzip, xz or zstd."""
    return head.startswith((GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC))


def read_packed(
    path: str | os.PathLike[str], largest: int = LARGEST_DOCUMENT, *, private: bool = False
) -> bytes:
    """What a gzip, xz or zstd file unpacks to, so many bytes at most; errors as `open_file`, UnpackError if damaged."""
    parts = []
    size = 0
    with open_file(path, largest, private=private) as file:
        for part in unpack(file):
            size += len(part)
            if size > largest:
                raise RefusedFileError(path, f"unpacks to more than {largest >> 20} MiB", errno.EFBIG)
            parts.append(part)
    return b"".join(parts)


class UnpackError(ValueError):
    """Compressed bytes that are cut short or changed."""


def unpack(file: BinaryIO) -> Iterator[bytes]:
    """What a compressed file unpacks to, in bounded pieces that whoever takes them counts; UnpackError if damaged."""
    import lzma

    file.seek(0)
    head = file.read(8)
    file.seek(0)
    try:
        if head.startswith(ZSTD_MAGIC):
            yield from _unpack_zstd(file)
        elif head.startswith(XZ_MAGIC):
            yield from _unpack_xz(file)
        elif head.startswith(GZIP_MAGIC):
            yield from _unpack_gzip(file)
        else:
            raise UnpackError("it is not compressed")
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise UnpackError(str(error)) from None


def _unpack_gzip(file: BinaryIO) -> Iterator[bytes]:
    """One or more gzip streams, perhaps with zeros between them."""
    pending = file.read(_CHUNK)
    while pending:
        decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
        while not decoder.eof:
            chunk = pending or file.read(_CHUNK)
            data = decoder.decompress(chunk, _CHUNK)
            pending = decoder.unconsumed_tail
            if data:
                yield data
            elif not chunk:
                raise EOFError("the gzip data ends before its stream does")
        pending = _behind_padding(file, decoder.unused_data)


def _unpack_xz(file: BinaryIO) -> Iterator[bytes]:
    """One or more xz streams, perhaps with zeros between them."""
    import lzma

    pending = file.read(_CHUNK)
    while pending:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LARGEST_DICTIONARY)
        while not decoder.eof:
            chunk = b""
            if decoder.needs_input:
                chunk, pending = pending or file.read(_CHUNK), b""
                if not chunk:
                    raise EOFError("the xz data ends before its stream does")
            if data := decoder.decompress(chunk, _CHUNK):
                yield data
        pending = _behind_padding(file, decoder.unused_data)


def _behind_padding(file: BinaryIO, rest: bytes) -> bytes:
    """What follows a stream and the zeros behind it; b'' at the end. A file may have gigabytes of them for nothing."""
    zeros = 0
    while rest or (rest := file.read(_CHUNK)):
        if found := rest.lstrip(b"\0"):
            return found
        zeros += len(rest)
        if zeros > _CHUNK:
            raise EOFError("a megabyte of nothing follows its data")
        rest = b""
    return b""


def _unpack_zstd(file: BinaryIO) -> Iterator[bytes]:
    """One or more zstd frames. The library's stream reader takes a cut-off frame for the end of the data."""
    import zstandard

    pending = b""
    while True:
        decoder = zstandard.ZstdDecompressor(max_window_size=LARGEST_DICTIONARY).decompressobj()
        try:
            while not decoder.eof:
                pending = pending or file.read(_CHUNK)
                if not pending:
                    raise EOFError("the zstd data ends before its frame does")
                chunk, pending = pending[:_ZSTD_CHUNK], pending[_ZSTD_CHUNK:]
                if data := decoder.decompress(chunk):
                    yield data
        except zstandard.ZstdError as error:
            raise UnpackError(str(error)) from None
        pending = decoder.unused_data + pending or file.read(_CHUNK)
        if not pending:
            return


def facts(code: str, name: str) -> list[list[str]]:
    """The rows of a table of facts without its heading: CSV beside the code (a module's ``__file__``) that reads it."""
    return list(csv.reader(Path(code).with_name(name).read_text("utf-8").splitlines()))[1:]
