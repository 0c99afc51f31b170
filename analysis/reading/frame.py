"""The frame of a report file: magic, header, blocks, and where each result and each source lies.

A ``.ncu-rep`` file is ``NVR\\0``, a header, and a sequence of blocks. Each header is a 32-bit little-endian length and
a protocol-buffer message. A block's header says how many items follow and how many bytes they take; each item is a
32-bit length and a message: a cubin with its sources, or one profiled launch (or range, command list, graph). Names of
metrics are numbers into a string table that the block headers build up.

Walking this frame costs about a millisecond and finds every truncation except one exactly between two blocks. The
format has no checksum: a changed byte inside a value cannot be told from a true one.
"""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gemmprof.analysis.reading import wire
from gemmprof.errors import ReportError

MAGIC = b"NVR\0"
GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"

MAX_UNPACKED_BYTES = 16 << 30
"""A compressed report that grows past this is refused: it is no report that ncu could have written."""

_CHUNK = 1 << 20
_U32 = struct.Struct("<I")
_MAX_NESTED_COMPRESSION = 2

# BlockHeader
_NUM_SOURCES, _NUM_RESULTS, _SESSION, _STRING_TABLE, _PAYLOAD_SIZE, _PROCESS = 1, 2, 3, 4, 5, 6
_NUM_RANGES, _NUM_COMMAND_LISTS, _NUM_GRAPHS_PROFILED, _NUM_GRAPHS = 7, 8, 9, 10
_ITEM_KINDS = {
    _NUM_SOURCES: "source",
    _NUM_RESULTS: "kernel",
    _NUM_RANGES: "range",
    _NUM_COMMAND_LISTS: "command list",
    _NUM_GRAPHS_PROFILED: "graph",
    _NUM_GRAPHS: "graph structure",
}
"""Counts in a block header, in the order in which the items follow."""

WORKLOADS = ("kernel", "range", "command list", "graph")

_KNOWN_FORMATS = (
    (b"\x7fELF", "an ELF file (a program or a cubin)"),
    (b"PK\x03\x04", "a zip archive"),
    (b"SQLite format 3\0", "an SQLite database (an Nsight Systems export?)"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a PNG picture"),
    (b"BZh", "a bzip2 archive"),
    (b"version https://git-lfs", "a Git LFS pointer: run `git lfs pull`"),
    (b"==PROF==", "ncu's console output"),
    (b'"ID"', "a CSV export of ncu"),
)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a block: what it is, where its message lies, and the process that it belongs to."""

    kind: str
    start: int
    end: int
    process: int


@dataclass(slots=True)
class Frame:
    """A report whose frame has been walked to the end. Close it when done: it keeps the file open.

    The file is read piece by piece and not mapped: a mapped file that somebody overwrites kills the reader.

    Attributes:
        path: the report as the user named it.
        plain_path: where its uncompressed bytes lie (a temporary file for a compressed report).
        version: version of the file format.
        strings: the string table, names of metrics.
        items: every source and result, in file order.
        sessions: the session message of each process, by process id.
    """

    path: Path
    plain_path: Path
    file: BinaryIO
    size: int
    version: int = 0
    strings: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    sessions: dict[int, bytes] = field(default_factory=dict)

    @property
    def workloads(self) -> list[Item]:
        """The profiled launches, ranges, command lists and graphs, in the order in which they were profiled."""
        return [item for item in self.items if item.kind in WORKLOADS]

    @property
    def sources(self) -> list[Item]:
        """The cubins with their sources."""
        return [item for item in self.items if item.kind == "source"]

    def read(self, start: int, end: int) -> bytes:
        """The bytes ``start`` to ``end`` of the uncompressed report.

        Raises:
            ReportError: if they are not there any more.
        """
        # Not seek and read: several threads may read at once.
        data = os.pread(self.file.fileno(), end - start, start)
        while len(data) < end - start:
            more = os.pread(self.file.fileno(), end - start - len(data), start + len(data))
            if not more:
                raise damaged(self.path, "it became shorter while it was read")
            data += more
        return data

    def close(self) -> None:
        """Close the file and remove the temporary copy of a compressed one."""
        self.file.close()
        if self.plain_path != self.path:
            self.plain_path.unlink(missing_ok=True)

    def __enter__(self) -> Frame:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def damaged(path: str | os.PathLike[str], what: str, found: str = "") -> ReportError:
    """The error for a report that is cut off or changed."""
    return ReportError(
        f"{os.fspath(path)} is damaged: {what}",
        found=found,
        remedies=["copy or record the report again; a run of ncu that was killed leaves such a file"],
    )


def open_frame(path: str | os.PathLike[str]) -> Frame:
    """Open a report (plain, zstd, xz or gzip; told by content, not by name) and walk its frame.

    Raises:
        ReportError: if the file is missing, of another kind, truncated or damaged.
    """
    path = Path(path)
    plain = _unpacked(path)
    file = plain.open("rb", buffering=0)
    frame = Frame(path, plain, file, file.seek(0, os.SEEK_END))
    try:
        _walk(frame)
    except wire.WireError as error:
        frame.close()
        raise damaged(path, "its block structure does not hold", str(error)) from None
    except BaseException:
        frame.close()
        raise
    return frame


def _walk(frame: Frame) -> None:
    size = frame.size
    header, position = _message(frame, len(MAGIC), size, "the file header")
    versions = [wire.integer(value) for number, value in wire.fields(header) if number == 1]
    if not versions:
        raise wire.WireError("the file header has no version")
    frame.version = versions[-1]
    while position < size:
        if size - position >= len(MAGIC) and frame.read(position, position + len(MAGIC)) == MAGIC:
            raise ReportError(
                f"{frame.path} holds more than one report: another one begins at byte {position}",
                remedies=["give the reports as separate files; they were joined byte by byte"],
            )
        header, position = _message(frame, position, size, "a block header")
        position = _block(frame, header, position)
    if not frame.workloads:
        raise ReportError(
            f"{frame.path} holds no profiled launch",
            found=f"{len(frame.items)} items, {len(frame.strings)} metric names, {size} bytes",
            remedies=[
                "check ncu's --kernel-name, --launch-skip and --launch-count: nothing may have matched",
                "record the report again if it was cut off: a run that was killed leaves such a file",
            ],
        )


def _block(frame: Frame, header: bytes, position: int) -> int:
    """Note the items of one block; returns the position behind it."""
    counts: dict[int, int] = {}
    payload = process = 0
    session: bytes | None = None
    for number, value in wire.fields(header):
        if number in _ITEM_KINDS:
            counts[number] = wire.integer(value)
        elif number == _PAYLOAD_SIZE:
            payload = wire.integer(value)
        elif number == _SESSION:
            session = wire.as_bytes(value)
        elif number == _STRING_TABLE:
            frame.strings += [wire.text(item) for key, item in wire.fields(wire.as_bytes(value)) if key == 1]
        elif number == _PROCESS:
            process = next((wire.integer(v) for n, v in wire.fields(wire.as_bytes(value)) if n == 1), 0)
    if session is not None:
        # ncu adds what it learns in later blocks; concatenated messages are one merged message.
        known = frame.sessions.get(process, b"")
        if session not in known:
            frame.sessions[process] = known + session
    end = position + payload
    if end > frame.size:
        raise damaged(
            frame.path,
            "it ends in the middle of a block",
            f"a block needs {payload} bytes from byte {position}, the file has {frame.size}",
        )
    # Each item takes four bytes at least: a damaged count ends here and not in a loop of four billion steps.
    if 4 * sum(counts.values()) > payload:
        raise wire.WireError(f"{sum(counts.values())} items in a block of {payload} bytes")
    for number, kind in _ITEM_KINDS.items():
        for _ in range(counts.get(number, 0)):
            start, stop = _span(frame, position, end, f"a {kind} item")
            frame.items.append(Item(kind, start, stop, process))
            position = stop
    if position != end:
        raise wire.WireError(f"{end - position} bytes are left at the end of a block at byte {end}")
    return end


def _span(frame: Frame, position: int, end: int, what: str) -> tuple[int, int]:
    """Start and end of the length-prefixed message at ``position``."""
    start = position + 4
    if start <= end:
        stop = start + _U32.unpack(frame.read(position, start))[0]
        if stop <= end:
            return start, stop
    if end == frame.size:
        raise damaged(frame.path, f"it ends in the middle of {what}", f"{end} bytes")
    raise wire.WireError(f"{what} at byte {position} runs past its block")


def _message(frame: Frame, position: int, end: int, what: str) -> tuple[bytes, int]:
    start, stop = _span(frame, position, end, what)
    return frame.read(start, stop), stop


def _unpacked(path: Path) -> Path:
    """The path itself if it is a plain report, else a temporary file with the uncompressed bytes."""
    try:
        # A pipe or a device could block for ever or never end.
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise ReportError(f"{path} is {kind}, not a report", remedies=["name a .ncu-rep file"])
        with path.open("rb") as file:
            head = file.read(64)
    except FileNotFoundError:
        raise ReportError(
            f"there is no file {path}", remedies=["check the name; the shell expands ~ only unquoted"]
        ) from None
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read", found=str(error)) from error
    if head.startswith(MAGIC):
        return path
    if not _is_compressed(head):
        raise _foreign(path, head)
    current, owned = path, []
    try:
        for _ in range(_MAX_NESTED_COMPRESSION):
            current = _decompress(path, current)
            owned.append(current)
            with current.open("rb") as file:
                head = file.read(64)
            if head.startswith(MAGIC):
                owned.pop()
                return current
            if not _is_compressed(head):
                break
        raise _foreign(path, head, "inside its compression ")
    finally:
        for temporary in owned:
            temporary.unlink(missing_ok=True)


def _is_compressed(head: bytes) -> bool:
    return head.startswith((GZIP_MAGIC, XZ_MAGIC, ZSTD_MAGIC))


def _foreign(path: Path, head: bytes, where: str = "") -> ReportError:
    """The error for a file that is no report, saying what it looks like."""
    if not head:
        return ReportError(
            f"{path} is empty {where}".rstrip(),
            remedies=["record the report again; ncu leaves an empty file when it is killed early"],
        )
    kind = next((kind for magic, kind in _KNOWN_FORMATS if head.startswith(magic)), "")
    if not kind:
        kind = f"it starts with {head[:16]!r}"
    return ReportError(
        f"{path} is not a Nsight Compute report {where}".rstrip(),
        found=kind,
        remedies=["name a .ncu-rep or .ncu-repz file, which ncu writes with --export"],
    )


def _decompress(path: Path, packed: Path) -> Path:
    """Unpack ``packed`` into a temporary file."""
    handle, name = tempfile.mkstemp(prefix="gemmprof-", suffix=".ncu-rep")
    target = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            written = 0
            for chunk in _unpack_chunks(packed):
                if not written and not (chunk.startswith(MAGIC) or _is_compressed(chunk)):
                    raise _foreign(path, chunk[:64], "inside its compression ")
                written += len(chunk)
                if written > MAX_UNPACKED_BYTES:
                    raise ReportError(f"{path} unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB")
                out.write(chunk)
        return target
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, wire.WireError) as error:
        target.unlink(missing_ok=True)
        raise damaged(path, "its compressed data does not unpack", str(error)) from None
    except OSError as error:
        target.unlink(missing_ok=True)
        raise ReportError(f"{path} cannot be unpacked", found=str(error)) from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _unpack_chunks(packed: Path) -> Iterator[bytes]:
    with packed.open("rb") as file:
        head = file.read(8)
        file.seek(0)
        if head.startswith(ZSTD_MAGIC):
            yield from _unpack_zstd(file)
            return
        with gzip.GzipFile(fileobj=file) if head.startswith(GZIP_MAGIC) else lzma.LZMAFile(file) as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk


def _unpack_zstd(file: BinaryIO) -> Iterator[bytes]:
    """One or more zstd frames. The library's stream reader takes a cut-off frame for the end of the data."""
    import zstandard

    pending = b""
    while True:
        decoder = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        try:
            while not decoder.eof:
                chunk = pending or file.read(_CHUNK // 8)
                pending = b""
                if not chunk:
                    raise EOFError("the zstd data ends before its frame does")
                if unpacked := decoder.decompress(chunk):
                    yield unpacked
        except zstandard.ZstdError as error:
            raise wire.WireError(str(error)) from None
        pending = decoder.unused_data or file.read(_CHUNK // 8)
        if not pending:
            return
