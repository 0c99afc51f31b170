"""Sources that a report carries: CUDA files as text, and in the embedded cubin how long the kernel's code is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gemmprof import metrics as m
from gemmprof.analysis.reading.frame import Frame
from gemmprof.analysis.reading.line_table import line_table_of, sections_of
from gemmprof.base.regex import regex
from gemmprof.model import KernelProfile, LineTable
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import Item
from gemmprof.ncurep.wire import MAX_BYTES, WireError, decode, decode_strictly, varint

# Size of a SASS instruction since Volta, the oldest architecture that Nsight Compute knows.
INSTRUCTION_BYTES = 16

_MAX_INSTRUCTIONS = 1 << 20
_HEAD_BYTES = 16
_TEXT = ".text."
_LINE_TABLE, _PYTHON_FILE = b".debug_line\0", b".py\0"
_REFERENCE_TAG = b"\x08"
_MAX_CODE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Module:
    """One cubin of a report.

    Attributes:
        code_bytes: bytes of code of each function by mangled name.
        files: imported CUDA sources by their path on the profiling machine.
        items: where the cubin lies in the report.
        digest: fingerprint of the code.
        function_digests: fingerprint of the machine code of each function by mangled name: neither names nor line
            numbers are in it.
        lines: language of the files that the line table names: ``python``, ``c``, or '' without one.
        line_table: which calls were inlined; None without one.
    """

    code_bytes: Mapping[str, int]
    files: Mapping[str, str]
    items: tuple[Item, ...]
    digest: str
    function_digests: Mapping[str, str] = field(default_factory=dict)
    lines: str = ""
    line_table: LineTable | None = None


def source_index(frame: Frame) -> dict[tuple[int, int], list[Item]]:
    """The source items of a report by process and the reference that its launches name them by.

    Each process counts its references by itself: the same one may mean other code in another process.

    Raises:
        WireError: if a source item has none.
    """
    index: dict[tuple[int, int], list[Item]] = {}
    for item in frame.sources:
        index.setdefault((item.process, reference_of(frame, item)), []).append(item)
    return index


def reference_of(frame: Frame, item: Item) -> int:
    """The reference that launches name a source item by.

    Raises:
        WireError: if it has none.
    """
    # It is the first field; the cubin behind it can have megabytes.
    head = frame.read(item.start, min(item.end, item.start + _HEAD_BYTES))
    if head[:1] != _REFERENCE_TAG:
        raise WireError(f"a source without a reference at byte {item.start}")
    return varint(head, 1)[0]


def read_module(frame: Frame, items: Iterable[Item]) -> Module:
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
        found = decode_strictly(messages.SourceData, data, most=_MAX_CODE_BYTES)
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
            for file in decode(messages.SourceFiles, content, most=MAX_BYTES).entries:
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


def code_spans(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Begin and size of each function's code in a cubin, by mangled name; {} if it is no ELF."""
    return {
        name.removeprefix(_TEXT): (begin, end - begin)
        for name, (begin, end) in sections_of(cubin).items()
        if name.startswith(_TEXT)
    }


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
