"""An open report: where each launch and each source lies, and the bytes there.

`gemmprof.ncurep.ncu_frame` knows the blocks; `unpack` knows what may be around them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from gemmprof import metrics as m
from gemmprof.analysis.reading.line_table import line_table_of
from gemmprof.analysis.reading.unpack import damaged, open_unpacked
from gemmprof.base import system
from gemmprof.base.errors import ReportError
from gemmprof.base.regex import regex
from gemmprof.base.spread import grouped
from gemmprof.gpu.cubins import code_spans
from gemmprof.model import KernelProfile, LineTable, ReportRecord
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages


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
    # the session message of each process, by process id
    sessions: dict[int, bytes] = field(default_factory=dict)

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
        # Not seek and read: several threads may read at once.
        data = system.read_at(self.file, start, end - start)
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
    """Open a report (plain, zstd, xz or gzip; told by content, not by name) and walk its frame.

    Raises:
        ReportError: if the file is missing, of another kind, truncated or damaged.
    """
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
        if (
            size - position >= len(ncu_frame.MAGIC)
            and frame.read(position, position + len(ncu_frame.MAGIC)) == ncu_frame.MAGIC
        ):
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


# Size of a SASS instruction since Volta, the oldest architecture that Nsight Compute knows.
INSTRUCTION_BYTES = 16

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
    """The source items of a report by process and the reference that its launches name them by.

    Each process counts its references by itself: the same one may mean other code in another process.

    Raises:
        WireError: if a source item has none.
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
    """Read the items of one reference: the code comes in one, imported CUDA files and relocations in others.

    Raises:
        WireError: if one is damaged.
    """
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
    """Whether the text of this source file is to be shown nowhere.

    Raises:
        RegexError: if what the environment says is no expression.
    """
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
    """Compare a report with what its run kept of it; one that differs and is trusted is doubted when it is read.

    Raises:
        ReportError: if it differs and is not trusted.
    """
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
        _doubted[str(report)] = (
            f"the report differs from the one that was collected ({what}); --trust had it read"
        )
        return
    raise ReportError(
        f"{report} differs from the report that its run collected",
        "copy the run again, or collect it again",
        "add --trust to read it as it is",
        found=what,
    )
