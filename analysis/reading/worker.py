"""The worker process around ``ncu_report`` (`native`): one for each place that it is imported from, kept and replaced.

Whatever happens to the worker (abort, crash, hang, memory) ends as `NativeReaderError`, never in this process.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmprof.base import system
from gemmprof.children.line_worker import LineWorker, WorkerError

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
