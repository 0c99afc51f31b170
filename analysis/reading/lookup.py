"""What a report does not hold and ``ncu_report`` knows: SASS, source lines, units. From the cache or the worker."""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from gemmprof import metrics as m
from gemmprof.analysis.reading.frame import Frame, Module, addresses, damaged, read_module, source_index
from gemmprof.analysis.reading.messages import Result
from gemmprof.base import system
from gemmprof.base.documents import DocumentError, json_text, read_json
from gemmprof.base.errors import ReportError
from gemmprof.base.foreign_files import UnpackError, read_packed
from gemmprof.base.system import kept_folder
from gemmprof.children.line_worker import LineWorker, WorkerError
from gemmprof.gpu.devices import ncu_python_directory
from gemmprof.metrics import unit_by_name
from gemmprof.model import Instruction, KernelProfile, Source
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import MAX_BYTES, Item, WireError, decode

# --- The cache --------------------------------------------------------------------------------------------------------
# A small cache on disk for what only the native reader knows: disassembly and units.
#
# Starting NVIDIA's disassembler costs half a second in every new process. Its answers depend on the code and on the
# version of ``ncu_report`` alone, and both are in the key. Deleting it is always safe.

T = TypeVar("T")
# Of gemmprof's cache; its own because old entries are deleted: beside it lie compiled stages and results of searches.
FOLDER = "disassembly"
MAX_ENTRIES = 10_000  # some 70 MB; when the cache holds more than this, the older half is deleted

LARGEST_ENTRY = 128 << 20  # that an entry may unpack to; the corpus's largest have 20 MiB of disassembly
_FORMAT = 3


@cache
def module_version() -> str:
    """Version of the installed ``ncu-report`` package, '' if it is not installed as a package.

    By the name of the folder that says so: `importlib.metadata` takes as long to load as half of all else here.
    """
    for folder in sys.path:
        for found in Path(folder).glob("ncu_report-*.dist-info"):
            return found.stem.removeprefix("ncu_report-")
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
    folder = kept_folder(FOLDER)
    if folder is None:
        return None
    try:
        found = read_json(read_packed(folder / key, LARGEST_ENTRY, private=True), kind)
    except (OSError, DocumentError, UnpackError):
        return None
    with contextlib.suppress(OSError):  # a cache that others filled is read all the same
        os.utime(folder / key)  # what is used stays: `store` deletes by this time
    return found


def store(key: str, value: object) -> None:
    """Keep an entry. A cache that cannot be written is no error."""
    folder = kept_folder(FOLDER)
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
        entries = [entry for entry in os.scandir(folder) if entry.is_file()]
        if len(entries) > MAX_ENTRIES:
            entries.sort(key=lambda entry: entry.stat().st_mtime)
            for entry in entries[: len(entries) // 2]:
                with contextlib.suppress(OSError):
                    Path(entry.path).unlink()


# --- The worker -------------------------------------------------------------------------------------------------------
# The worker process around ``ncu_report`` (`native`): one for each place that it is imported from, kept and replaced.
#
# Whatever happens to the worker (abort, crash, hang, memory) ends as `NativeReaderError`, never in this process.

TIMEOUT_SECONDS = 120.0  # longest wait for one answer of the native reader

# A worker that holds more than this is replaced before its next request: the reader never gives memory back.
RECYCLE_BYTES = 350 << 20


class NativeReaderError(Exception):
    """The worker died, hung, or cannot run at all; the message is one line for a person."""


class NativeReaderMissing(NativeReaderError):
    """``ncu_report`` cannot be imported."""


class NativeReader:
    """One worker process, kept for several reports; its ``ncu_report`` is in this folder, '' for the installed one."""

    def __init__(self, module_directory: str = "") -> None:
        script = Path(__file__).with_name("native.py")
        command = [sys.executable, "-B", "-P", str(script), module_directory]
        self.worker = LineWorker(command, name="ncu_report")
        self._resident = 0
        self._lock = threading.RLock()

    def start(self) -> None:
        """Have a worker run, though it still imports its library; NativeReaderError if none can be started."""
        with self._lock:
            if not self.worker.running or self._resident > RECYCLE_BYTES:
                self._resident = 0
                try:
                    self.worker.start()
                except WorkerError as error:
                    raise NativeReaderError(str(error)) from error

    def ask(self, request: Mapping[str, Any], timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """The worker's answer; NativeReaderError if it died, hung or failed, NativeReaderMissing without a library."""
        with self._lock:
            self.start()
            try:
                answer = self.worker.ask(request, timeout)
            except WorkerError as error:
                self.stop()
                raise NativeReaderError(str(error)) from error
            if "missing" in answer:
                self.stop()
                raise NativeReaderMissing(f"ncu_report cannot be imported ({answer['missing']})")
            self._resident = int(answer.get("resident", 0))
            if "failure" in answer:
                raise NativeReaderError(f"ncu_report failed: {answer['failure']}")
            return answer

    def stop(self) -> None:
        """End the worker, if there is one."""
        self._resident = 0
        self.worker.stop()


_readers: dict[str, NativeReader] = {}
_readers_lock = threading.Lock()


def native_reader(module_directory: str = "") -> NativeReader:
    """This process's worker for the ``ncu_report`` in that folder ('' for the installed package)."""
    with _readers_lock:
        if module_directory not in _readers:
            _readers[module_directory] = NativeReader(module_directory)
        return _readers[module_directory]


def stop_native_readers() -> None:
    """End every worker of this process."""
    with _readers_lock:
        for reader in _readers.values():
            reader.stop()
        _readers.clear()


def _forget_after_fork() -> None:
    """A forked child must not talk to its parent's workers."""
    global _readers_lock
    _readers_lock = threading.Lock()
    _readers.clear()


atexit.register(stop_native_readers)
system.after_fork(_forget_after_fork)

# --- What a report does not hold and ``ncu_report`` knows -------------------------------------------------------------

_UNKNOWN_SASS = ("", "???", "N/A")  # what the disassembler says of code that it does not know


def is_disassembled(sass: Iterable[str]) -> bool:
    """Whether the native reader knew the code: it answers with blanks where it does not, without an error."""
    return any(text.strip() not in _UNKNOWN_SASS for text in sass)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path under which a child finds these bytes, and that leaves nothing behind however this process ends."""
    if system.MEMORY_FILES:
        with os.fdopen(os.memfd_create("gemmprof-kernel"), "wb", buffering=0) as file:
            system.write_all(file.fileno(), content)
            yield f"/proc/{os.getpid()}/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory(prefix="gemmprof-") as folder:
        path = Path(folder) / "kernel.ncu-rep"
        path.write_bytes(content)
        yield str(path)


@dataclass(frozen=True, slots=True)
class _Disassembly:
    """What the cache holds of a kernel: SASS and the place (file, line) of each instruction, and the files' names."""

    sass: list[str]
    lines: list[tuple[int, int] | None]
    files: list[str]

    def fits(self, pcs: Sequence[int]) -> bool:
        """Whether it says something of each of these instructions."""
        known = range(len(self.files))
        return (
            len(self.sass) == len(self.lines) == len(pcs)
            and is_disassembled(self.sass)
            and all(line is None or line[0] in known for line in self.lines)
        )


class Lookup:
    """Sources and units of the launches of one report. Launches of one kernel share their source."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._modules: dict[tuple[int, int], Module] = {}
        self._sources: dict[tuple[object, ...], Source] = {}

    def source(self, result: Result, workload: Item) -> Source:
        """SASS and CUDA sources of a launch; empty for what is no kernel. ReportError if the code is damaged or absent.

        Where the native reader fails on the code, or is not installed, the source says so and has no instructions:
        everything else in the report can be read without it.
        """
        profile, reference = result.profile, result.source_reference
        # Recorded with --import-sass no, launches of a graph name code that is in no such report.
        if workload.kind != "kernel" or not reference or not self.frame.sources:
            return Source()
        module = self._module(workload.process, reference, profile)
        base, pcs = addresses(profile, module)
        key = (workload.process, reference, profile.mangled_name, base, len(pcs))
        if key not in self._sources:
            try:
                instructions = self._instructions(profile, workload, module, base, pcs) if pcs else ()
                unread = ""
                if pcs and all(one.sass in _UNKNOWN_SASS and one.file is None for one in instructions):
                    major, minor = profile.device.compute_capability
                    instructions = ()
                    unread = f"Nsight Compute's library does not know the code of compute capability {major}.{minor}"
                self._sources[key] = Source(instructions, module.files, base, unread, module.line_table)
            except ReportError as error:
                why = "; ".join((error.found, *error.remedies[:1]))
                self._sources[key] = Source((), module.files, base, why)
        return self._sources[key]

    def lines(self, result: Result, workload: Item) -> str:
        """Language of the files that the line table of a launch's code names, '' without one."""
        if workload.kind != "kernel" or not result.source_reference:
            return ""
        with contextlib.suppress(ReportError):  # whoever asks for the code is told
            return self._module(workload.process, result.source_reference, result.profile).lines
        return ""

    def digest(self, profile: KernelProfile, workload: Item, reference: int) -> str:
        """Fingerprint of a launch's machine code, '' without its cubin (0: none); ReportError if it is damaged."""
        if not reference or not self.frame.sources:
            return ""
        module = self._module(workload.process, reference, profile)
        return module.function_digests.get(profile.mangled_name, "")

    def units(self) -> Mapping[str, str]:
        """Unit of every metric that some launch of the report may have, '' if it has none.

        Where the native reader fails or is not installed, those that the names state.
        """
        workloads = self.frame.workloads
        found = self._units_with(workloads[0])
        # What the launch says of its GPU decides: where that is damaged, another launch may know.
        return found if any(found.values()) or len(workloads) == 1 else self._units_with(workloads[-1])

    def _units_with(self, workload: Item) -> dict[str, str]:
        """The units as the native reader tells them of a launch on this launch's GPU."""
        # Sorted as the library lists them: what it says of a derived metric depends on those asked about before.
        names = sorted(set(self.frame.strings))
        try:
            content = chip_report(self.frame, workload, names)
        except WireError as error:
            raise damaged(self.frame.path, "a launch of it cannot be read", str(error)) from None
        key = cache_key("units", module_version(), content)
        answer = load(key, dict[str, str])
        if answer is None or answer.keys() != set(names):
            # In a fresh process, which is faster beside another one at work, and whose answer is always the same.
            try:
                with ExitStack() as fresh:

                    def one_shot(folder: str) -> NativeReader:
                        reader = NativeReader(folder)
                        fresh.callback(reader.stop)
                        return reader

                    found = self._ask(content, one_shot, units=names)["units"]
            except ReportError:
                return {name: unit_by_name(name) for name in names}
            answer = {name: str(found.get(name, "")) for name in names}
            store(key, answer)
        return answer

    @cached_property
    def _index(self) -> dict[tuple[int, int], list[Item]]:
        return source_index(self.frame)

    def _module(self, process: int, reference: int, profile: KernelProfile) -> Module:
        place = (process, reference)
        if place not in self._modules:
            try:
                items = self._index.get(place)
                if not items:
                    raise WireError(f"no cubin {reference:#x} for {profile.function_name}")
                self._modules[place] = read_module(self.frame, items)
            except WireError as error:
                what = f"the code of launch {profile.index} cannot be read"
                raise damaged(self.frame.path, what, str(error)) from None
        return self._modules[place]

    def _instructions(
        self, profile: KernelProfile, workload: Item, module: Module, base: int, pcs: list[int]
    ) -> tuple[Instruction, ...]:
        key = cache_key("sass", module_version(), module.digest, profile.mangled_name, base, pcs)
        answer = load(key, _Disassembly)
        if answer is None or not answer.fits(pcs):
            try:
                content = kernel_report(self.frame, workload, module.items)
            except WireError as error:
                raise damaged(self.frame.path, f"launch {profile.index} cannot be read", str(error)) from None
            said = self._ask(content, native_reader, pcs=pcs)
            if said["name"] != profile.function_name:
                raise self._error(f"launch {profile.index} is {said['name']!r} there")
            answer = _Disassembly(said["sass"], said["lines"], said["files"])
            if is_disassembled(answer.sass):  # else another version of the library may know this code
                store(key, answer)
        files = answer.files
        return tuple(
            Instruction(pc, sass.strip(), files[line[0]] if line else None, line[1] if line else None)
            for pc, sass, line in zip(pcs, answer.sass, answer.lines, strict=True)
        )

    def _ask(
        self,
        content: bytes,
        reader: Callable[[str], NativeReader],
        *,
        pcs: Iterable[int] = (),
        units: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Ask the package's native reader; where it fails, that of the installed ncu, which may be newer."""
        request: dict[str, Any] = {"pcs": list(pcs), "units": list(units)}
        with _as_file(content) as path:
            request["path"] = path
            problem = ""
            answer: dict[str, Any] = {}
            try:
                answer = reader("").ask(request)
                if not request["pcs"] or is_disassembled(answer["sass"]):
                    return answer
            except NativeReaderError as error:
                problem = str(error)
            other = ncu_python_directory()
            if other is not None:
                try:
                    return reader(str(other)).ask(request)
                except NativeReaderError as error:
                    problem = problem and f"{problem}; with the module in {other}: {error}"
        if problem:
            raise self._error(problem)
        return answer

    def _error(self, found: str) -> ReportError:
        return ReportError(
            f"{self.frame.path}: Nsight Compute's own library cannot read the code in this report",
            "if a newer ncu wrote it: `pip install --upgrade ncu-report`, or put that ncu on PATH",
            "if it is damaged: copy or record the report again",
            found=found,
        )


def kernel_report(frame: Frame, workload: Item, sources: Iterable[Item]) -> bytes:
    """A report with this launch of a kernel and its code alone, nothing measured; WireError if it is damaged."""
    kept = decode(messages.KernelIdentity, frame.read(workload.start, workload.end), most=MAX_BYTES)
    kept.DiscardUnknownFields()  # what was measured or advised
    # The chip, and the address of the code.
    names = _keep_metrics(frame, kept, list(kept.metrics), (m.DEVICE_ATTRIBUTE_PREFIX, m.FUNCTION_PCS))
    return _one_launch(frame, kept, names, workload.process, sources)


def chip_report(frame: Frame, workload: Item, names: Iterable[str]) -> bytes:
    """A report that says nothing but the chip of this launch, which decides on the units of these metrics.

    The metrics exist in it, with the value 0. It is the same for all reports that were collected alike on GPUs of one
    model, so that one answer serves them all. WireError if the launch is damaged.
    """
    data = frame.read(workload.start, workload.end)
    if workload.kind == "kernel":
        found = decode(messages.KernelIdentity, data, most=MAX_BYTES).metrics
    else:  # where the three other kinds hold their metrics
        found = decode(messages.RangeResult, data, most=MAX_BYTES).metrics
    # The fields that a launch must have.
    one, called = messages.Dimensions(x=1, y=1, z=1).SerializeToString(), b"workload"
    kept = messages.KernelIdentity(
        thread=1, call=1, first_pointer=1, second_pointer=1, api=3,
        mangled_name=called, function_name=called, demangled_name=called,
        grid_offset=one, grid=one, block=one, source=b"",
    )  # fmt: skip
    numbers = _keep_metrics(frame, kept, found, (m.DEVICE_ATTRIBUTE_PREFIX,))
    for name in names:
        if name not in numbers:
            numbers[name] = len(numbers)
            zero = messages.Metric(name=numbers[name], value=messages.Value(whole=0))
            kept.metrics.append(zero.SerializeToString())
    return _one_launch(frame, kept, numbers, 1, ())


def _keep_metrics(
    frame: Frame, kept: messages.KernelIdentity, found: Iterable[bytes], beginnings: tuple[str, ...]
) -> dict[str, int]:
    """Leave the launch those of these metrics whose names begin so; their places in its table of names."""
    kept.ClearField("metrics")
    numbers: dict[str, int] = {}
    for content in found:
        metric = decode(messages.Metric, content, most=MAX_BYTES)
        name = frame.strings[metric.name] if metric.name < len(frame.strings) else ""
        if name.startswith(beginnings):  # elements are kept as they are
            renamed = messages.Metric(name=numbers.setdefault(name, len(numbers)))
            kept.metrics.append(content + renamed.SerializeToString())
    return numbers


def _one_launch(
    frame: Frame, kept: messages.KernelIdentity, names: Iterable[str], process: int, sources: Iterable[Item]
) -> bytes:
    """The report that holds this launch, which knows metrics by these names, and these items of code."""
    head = messages.FileHeader(version=frame.version).SerializeToString()
    parts = [ncu_frame.MAGIC + ncu_frame.framed(head)]
    code = ([frame.read(item.start, item.end)] for item in sources)
    parts += [ncu_frame.block_bytes(one, kind="source", process=process) for one in code]
    launch = kept.SerializeToString()
    parts.append(ncu_frame.block_bytes([launch], kind="kernel", process=process, strings=names))
    return b"".join(parts)
