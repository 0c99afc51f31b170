"""An open report: where each launch and each source lies, and the bytes there.

`gemmprof.ncurep.ncu_frame` knows the blocks; what may be around them is told by the file's content.

A compressed report is unpacked into a temporary file that has no name: it is gone with the process, however that ends.
How much it may grow is limited, because a few kilobytes can claim to be terabytes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import BinaryIO, cast

from gemmprof import metrics as m
from gemmprof.analysis.reading.line_table import line_table_of
from gemmprof.base import foreign_files, system
from gemmprof.base.buckets import below, fetch
from gemmprof.base.errors import ReportError, UnreachableError
from gemmprof.base.regex import regex
from gemmprof.base.spread import grouped, is_for_others
from gemmprof.gpu.cubins import code_spans
from gemmprof.model import KernelProfile, LineTable, ReportRecord
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import MAGIC

# --- The file: what it is, and its uncompressed bytes ----------------------------------------------------------------

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
    again = "copy or record the report again; a run of ncu that was killed leaves such a file"
    return ReportError(f"{os.fspath(path)} is damaged: {what}", again, found=found)


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
        return None if file is None else os.fdopen(os.dup(file.fileno()), "rb", buffering=0)

    def keep(self, packed: tuple[object, ...], file: BinaryIO, *, latest: bool = False) -> None:
        """Keep what this file unpacked to, if there is room; ``latest``: in place of all others, whatever its size."""
        size = os.fstat(file.fileno()).st_size
        if latest:
            self.close()
            self._files.clear()
            self._bytes = 0
        if latest or self._bytes + size <= KEPT_BYTES:
            self._bytes += size
            self._files[packed] = self.enter_context(os.fdopen(os.dup(file.fileno()), "rb", buffering=0))


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


def open_unpacked(path: Path) -> BinaryIO:
    """The uncompressed bytes of a report: its own file, or a temporary one without a name; ReportError for others."""
    kept, url = _kept.get(), foreign_files.url_of(path)
    if url:
        kept = kept or (_of_process if is_for_others() else None)
        if kept is None:
            return _unpacked(path, fetch(url))
        with kept.one_at_a_time:
            # A command reads what it found first; who does jobs for others looks whether it is still that.
            current = (url, *(below(url, deep=False).values() if kept is _of_process else ()))
            if (known := kept.find(current)) is None:
                known = _unpacked(path, fetch(url))
                kept.keep(current, known, latest=kept is _of_process)
            return known
    try:
        file = foreign_files.open_file(path)  # never waits, as for a pipe or a device
    except FileNotFoundError:
        raise no_such_file(path) from None
    except foreign_files.RefusedFileError as error:
        raise ReportError(f"{path} {error.strerror}, not a report", "name a .ncu-rep file") from None
    except OSError as error:
        raise UnreachableError.of(path, f"{path} cannot be read", found=str(error)) from error
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


def _foreign(path: Path, head: bytes, where: str = "") -> ReportError:
    """The error for a file that is no report, saying what it looks like."""
    if not head:
        again = "record the report again; ncu leaves an empty file when it is killed early"
        return ReportError(f"{path} is empty {where}".rstrip(), again)
    kind = next((kind for magic, kind in _KNOWN_FORMATS if head.startswith(magic)), "")
    if not kind:
        seen = f"it starts with {head[:16]!r}"  # who may read reports alone is not told what stands in other files
        kind = "nothing that is known here" if foreign_files.is_confined() else seen
    fix = "name a .ncu-rep or .ncu-repz file, which ncu writes with --export"
    return ReportError(f"{path} is not an Nsight Compute report {where}".rstrip(), fix, found=kind)


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
    fixes = ["check the name; the shell expands ~ only unquoted"]
    fixes += [meant] if name.replace("_", "").isalnum() else []
    return UnreachableError.of(path, f"there is no file {path}", *fixes)


# --- Launches and sources in it ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Frame:
    """A report whose frame has been walked to the end. Close it when done: it keeps the file open.

    The file is read piece by piece and not mapped: a mapped file that somebody overwrites kills the reader.
    """

    path: Path  # the report as the user named it
    file: BinaryIO  # its uncompressed bytes, for a compressed one a temporary file without a name
    size: int  # how many there are
    version: int = 0  # version of the file format
    strings: list[str] = field(default_factory=list)  # the string table, names of metrics
    items: list[ncu_frame.Item] = field(default_factory=list)  # every source and result, in file order
    sessions: dict[int, bytes] = field(default_factory=dict)  # its message of each process, by process id

    @property
    def workloads(self) -> list[ncu_frame.Item]:
        """The profiled launches, ranges, command lists and graphs, in the order in which they were profiled."""
        return [item for item in self.items if item.kind in ncu_frame.WORKLOADS]

    @property
    def sources(self) -> list[ncu_frame.Item]:
        """The cubins with their sources."""
        return [item for item in self.items if item.kind == "source"]

    def read(self, start: int, end: int) -> bytes:
        """The bytes ``start`` to ``end`` of the uncompressed report; ReportError if they are not there any more."""
        data = system.read_at(self.file, start, end - start)  # no seek: several threads may read at once
        while len(data) < end - start:
            more = system.read_at(self.file, start + len(data), end - start - len(data))
            if not more:
                raise damaged(self.path, "it became shorter while it was read")
            data += more
        return data

    def close(self) -> None:
        """Close the file; the temporary copy of a compressed one is gone with it."""
        self.file.close()

    def __enter__(self) -> Frame:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_frame(path: str | os.PathLike[str]) -> Frame:
    """Open a report (plain, zstd, xz or gzip, as its content says) and walk its frame; ReportError if it is damaged."""
    path = Path(path)
    file = open_unpacked(path)
    frame = Frame(path, file, file.seek(0, os.SEEK_END))
    with ExitStack() as unless_read:
        unless_read.enter_context(frame)
        try:
            _walk(frame)
        except ncu_frame.Torn as error:
            raise damaged(path, "it ends in the middle of a block", str(error)) from None
        except ncu_frame.WireError as error:
            raise damaged(path, "its block structure does not hold", str(error)) from None
        except OSError as error:
            raise ReportError(f"{path} cannot be read", found=str(error)) from error
        unless_read.pop_all()
    return frame


def _walk(frame: Frame) -> None:
    size = frame.size
    frame.version, position = ncu_frame.read_head(frame.read, size)
    sessions: dict[int, dict[bytes, None]] = {}
    try:
        for block in ncu_frame.blocks(frame.read, position, size):
            position = block.end
            frame.strings += block.strings
            if block.session is not None:
                # ncu adds what it learns in later blocks; concatenated messages are one merged message.
                sessions.setdefault(block.process, {})[block.session] = None
            frame.items += ncu_frame.items(frame.read, block, size)
            if len(frame.items) > ncu_frame.MAX_ITEMS:
                raise ncu_frame.WireError(f"more than {ncu_frame.MAX_ITEMS} items")
    except ncu_frame.WireError:
        behind = position + len(ncu_frame.MAGIC)
        if size >= behind and frame.read(position, behind) == ncu_frame.MAGIC:
            raise ReportError(
                f"{frame.path} holds more than one report: another one begins at byte {position}",
                "give the reports as separate files; they were joined byte by byte",
            ) from None
        raise
    frame.sessions = {process: b"".join(messages) for process, messages in sessions.items()}
    if not frame.workloads:
        raise ReportError(
            f"{frame.path} holds no profiled launch",
            "check ncu's --kernel-name, --launch-skip and --launch-count: nothing may have matched",
            "record the report again if it was cut off: a run that was killed leaves such a file",
            found=f"{len(frame.items)} items, {len(frame.strings)} metric names, {size} bytes",
        )


# --- Sources ----------------------------------------------------------------------------------------------------------

INSTRUCTION_BYTES = 16  # of SASS since Volta, the oldest architecture that Nsight Compute knows
_MAX_INSTRUCTIONS = 1 << 20
_HEAD_BYTES = 16
_LINE_TABLE, _PYTHON_FILE = b".debug_line\0", b".py\0"
_REFERENCE_TAG = b"\x08"
_MAX_CODE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Module:
    """One cubin of a report."""

    code_bytes: Mapping[str, int]  # bytes of code of each function by mangled name
    files: Mapping[str, str]  # imported CUDA sources by their path on the profiling machine
    items: tuple[ncu_frame.Item, ...]  # where the cubin lies in the report
    digest: str  # fingerprint of the code
    # fingerprint of the machine code of each function by mangled name: neither names nor line numbers are in it
    function_digests: Mapping[str, str] = field(default_factory=dict)
    lines: str = ""  # language of the files that the line table names: ``python``, ``c``, or '' without one
    line_table: LineTable | None = None  # which calls were inlined; None without one


def source_index(frame: Frame) -> dict[tuple[int, int], list[ncu_frame.Item]]:
    """The source items of a report by process and the reference that its launches name them by; WireError without one.

    Each process counts its references by itself: the same one may mean other code in another process.
    """
    return grouped(((item.process, reference_of(frame, item)), item) for item in frame.sources)


def reference_of(frame: Frame, item: ncu_frame.Item) -> int:
    """The reference that launches name a source item by; WireError if it has none."""
    # It is the first field; the cubin behind it can have megabytes.
    head = frame.read(item.start, min(item.end, item.start + _HEAD_BYTES))
    if head[:1] != _REFERENCE_TAG:
        raise ncu_frame.WireError(f"a source without a reference at byte {item.start}")
    return ncu_frame.varint(head, 1)[0]


def read_module(frame: Frame, items: Iterable[ncu_frame.Item]) -> Module:
    """Read the items of one reference: code comes in one, CUDA files and more in others; WireError if damaged."""
    code_bytes: dict[str, int] = {}
    files: dict[str, str] = {}
    function_digests: dict[str, str] = {}
    items = tuple(items)
    lines, line_table = "", None
    digest = hashlib.sha256()
    for item in items:
        data = frame.read(item.start, item.end)
        found = ncu_frame.decode_strictly(messages.SourceData, data, most=_MAX_CODE_BYTES)
        if binary := found.cubin:
            spans = code_spans(binary)
            code_bytes.update({name: size for name, (_, size) in spans.items()})
            # Sections of a sound cubin do not overlap; those of a hostile one could be hashed for ever.
            if sum(size for _, size in spans.values()) <= len(binary):
                for name, (begin, size) in spans.items():
                    code = binary[begin : begin + size]
                    function_digests[name] = hashlib.sha256(code).hexdigest()
            digest.update(binary)
            if _LINE_TABLE in binary:
                lines = "python" if _PYTHON_FILE in binary else "c"
                line_table = line_table_of(binary) or line_table
                if line_table is not None and os.environ.get(REDACTED_SOURCES):
                    line_table = replace(line_table, ptx=b"")  # whatever file it was made of
        for content in found.files:
            for file in ncu_frame.decode(messages.SourceFiles, content, most=ncu_frame.MAX_BYTES).entries:
                files[file.path] = redacted(file.path, file.content.decode("utf-8", "replace"))
    return Module(code_bytes, files, items, digest.hexdigest(), function_digests, lines, line_table)


# In the environment, where every process that reads for this one finds it: "all", or an expression for paths.
REDACTED_SOURCES = "GEMMPROF_REDACT_SOURCE"
REDACTED = "[redacted]"


def is_redacted(path: str) -> bool:
    """Whether the text of this source file is to be shown nowhere; RegexError if the environment says no expression."""
    wanted = os.environ.get(REDACTED_SOURCES, "")
    return bool(wanted) and (wanted == "all" or regex(wanted, ignore_case=False).search(path))


def redacted(path: str, text: str) -> str:
    """The text of a source file, where it may not be shown as many lines that say so: their numbers stay."""
    if not is_redacted(path):
        return text
    return "\n".join(REDACTED if line.strip() else "" for line in text.split("\n"))


def addresses(profile: KernelProfile, module: Module) -> tuple[int, list[int]]:
    """Address of the first instruction of a launch's kernel, and those of all instructions worth showing.

    They are the kernel's whole code where the cubin tells its size, and in any case every address that has a value in
    some metric (functions that the kernel calls lie elsewhere).
    """
    functions = profile.instances.get(m.FUNCTION_PCS)
    base = functions.values[0] if functions is not None and len(functions) else 0
    base = int(base) if isinstance(base, (int, float)) else 0
    measured: set[int] = set()
    if executed := profile.instances.get(m.INSTRUCTIONS_BY_ADDRESS):
        measured.update(key for key in executed.keys if isinstance(key, int))
    if not base and measured:
        base = min(measured)
    size = module.code_bytes.get(profile.mangled_name, 0)
    if base and 0 < size <= _MAX_INSTRUCTIONS * INSTRUCTION_BYTES:
        measured.update(range(base, base + size, INSTRUCTION_BYTES))
    return base, sorted(measured)


# --- Reports of a run -------------------------------------------------------------------------------------------------
# A report that differs from what its run collected, lost launches or gained some is refused, unless its user trusts it.

_trusted: ContextVar[bool] = ContextVar("trusted", default=False)
_doubted: dict[str, str] = {}  # why each report is doubted that was checked and trusted, by its path


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Read reports in this context although they differ from what was collected, with a doubt on each launch."""
    token = _trusted.set(trust)
    try:
        yield
    finally:
        _trusted.reset(token)


def doubt_of(report: str) -> str:
    """Why no launch of this report is to be trusted; '' if it was not found to differ from a collected one."""
    return _doubted.get(report, "")


def check(report: Path, kept: ReportRecord, found: ReportRecord) -> None:
    """Hold a report against what its run kept of it; another is doubted where it is trusted, else a ReportError."""
    _doubted.pop(str(report), None)
    if (found.sha256, found.launches) == (kept.sha256, kept.launches):
        return
    if found.launches < kept.launches:
        what = f"it lost launches: {kept.launches} were collected, it holds {found.launches}"
    elif found.launches > kept.launches:
        what = f"it gained launches: {kept.launches} were collected, it holds {found.launches}"
    else:
        what = "its content is not what was collected"
    if _trusted.get():
        doubt = f"the report differs from the one that was collected ({what}); --trust had it read"
        _doubted[str(report)] = doubt
        return
    fixes = "copy the run again, or collect it again", "add --trust to read it as it is"
    raise ReportError(f"{report} differs from the report that its run collected", *fixes, found=what)
