"""A small cache on disk for what only the native reader knows: disassembly and units.

Starting NVIDIA's disassembler costs half a second in every new process. Its answers depend on the code and on the
version of ``ncu_report`` alone, and both are in the key. The cache lies in ``disassembly`` of gemmprof's cache
directory (`gemmprof.base.output`); deleting it is always safe.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gemmprof.base import system
from gemmprof.base.documents import DocumentError, json_text, read_json
from gemmprof.base.foreign_files import UnpackError, read_packed
from gemmprof.base.system import cache_directory, cache_is_off
from gemmprof.children.line_worker import LineWorker, WorkerError

T = TypeVar("T")

MAX_ENTRIES = 2000  # when the cache holds more entries than this, the older half is deleted

# Bytes that an entry may unpack to; the largest kernels of the corpus have 20 MiB of disassembly.
LARGEST_ENTRY = 128 << 20

_FORMAT = 3


def entries_directory() -> Path | None:
    """The cache's own folder, None if it is turned off or there is no home directory.

    It is its own because old entries are deleted: beside it lie compiled stages and the results of searches.
    """
    if cache_is_off():
        return None
    try:
        return cache_directory() / "disassembly"
    except RuntimeError:
        return None


@cache
def module_version() -> str:
    """Version of the installed ``ncu-report`` package, '' if it is not installed as a package."""
    from importlib import metadata  # a tenth of a whole small run's imports

    try:
        return metadata.version("ncu-report")
    except metadata.PackageNotFoundError:
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
    folder = entries_directory()
    if folder is None:
        return None
    try:
        return read_json(read_packed(folder / key, LARGEST_ENTRY, private=True), kind)
    except (OSError, DocumentError, UnpackError):
        return None


def store(key: str, value: object) -> None:
    """Keep an entry. A cache that cannot be written is no error."""
    folder = entries_directory()
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
        _prune(folder)


def _prune(folder: Path) -> None:
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
    """One worker process, kept for several reports. It answers one request after the other.

    Args:
        module_directory: where to import ``ncu_report`` from; '' for the installed package.
    """

    def __init__(self, module_directory: str = "") -> None:
        script = Path(__file__).with_name("native.py")
        self.worker = LineWorker(
            [sys.executable, "-B", "-P", str(script), module_directory], name="ncu_report"
        )
        self._resident = 0
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the worker if it does not run; returns at once, while the worker still imports its library.

        Raises:
            NativeReaderError: if no process can be started.
        """
        with self._lock:
            if not self.worker.running or self._resident > RECYCLE_BYTES:
                self._resident = 0
                try:
                    self.worker.start()
                except WorkerError as error:
                    raise NativeReaderError(str(error)) from error

    def ask(self, request: Mapping[str, Any], timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """The worker's answer to one request.

        Raises:
            NativeReaderError: if the worker died, hung or failed.
            NativeReaderMissing: if there is no ``ncu_report``.
        """
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
