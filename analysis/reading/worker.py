"""Talks to the worker process around ``ncu_report`` (`native`): starts, asks, times out, replaces it.

Whatever happens to the worker (abort, crash, hang, memory) ends as `NativeReaderError`, never in this process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 120.0
"""Longest wait for one answer of the native reader."""

RECYCLE_BYTES = 350 << 20
"""A worker that holds more than this is replaced before its next request: the reader never gives memory back."""


class NativeReaderError(Exception):
    """The worker died, hung, or cannot run at all; the message is one line for a person."""


class NativeReaderMissing(NativeReaderError):
    """``ncu_report`` cannot be imported."""


@dataclass(slots=True)
class NativeReader:
    """One worker process, kept for several reports. It answers one request after the other.

    Args:
        module_directory: where to import ``ncu_report`` from; '' for the installed package.
    """

    module_directory: str = ""
    _process: subprocess.Popen[bytes] | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _resident: int = 0
    _messages: Any = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self) -> None:
        """Start the worker if it does not run; returns at once, while the worker still imports its library.

        Raises:
            NativeReaderError: if no process can be started.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None or self._resident > RECYCLE_BYTES:
                self._start()

    def ask(self, request: Mapping[str, Any], timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
        """The worker's answer to one request.

        Raises:
            NativeReaderError: if the worker died, hung or failed.
            NativeReaderMissing: if there is no ``ncu_report``.
        """
        with self._lock:
            self.start()
            with contextlib.suppress(NativeReaderError):  # the last words of a dead worker are read below
                self._send(request, timeout)
            answer = self._receive(timeout)
            if "missing" in answer:
                self.stop()
                raise NativeReaderMissing(f"ncu_report cannot be imported ({answer['missing']})")
            self._resident = int(answer.get("resident", 0))
            if "failure" in answer:
                raise NativeReaderError(f"ncu_report failed: {answer['failure']}")
            return answer

    def stop(self) -> None:
        """End the worker, if there is one."""
        process, self._process = self._process, None
        self._resident = 0
        self._buffer.clear()
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._messages is not None:
            self._messages.close()
            self._messages = None

    def _start(self) -> None:
        self.stop()
        script = Path(__file__).with_name("native.py")
        self._messages = tempfile.TemporaryFile(prefix="gemmprof-")  # noqa: SIM115 (lives as long as the worker)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-B", "-P", str(script), self.module_directory],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                bufsize=0,
            )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        except OSError as error:
            raise NativeReaderError(f"the native reader could not be started: {error}") from error

    def _send(self, request: Mapping[str, Any], timeout: float) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise NativeReaderError("the native reader is not running")
        data = memoryview(json.dumps(request).encode("ascii") + b"\n")
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdin, selectors.EVENT_WRITE)
            while data:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.stop()
                    raise NativeReaderError(f"ncu_report did not answer within {timeout:g} s")
                try:
                    data = data[os.write(process.stdin.fileno(), data) :]
                except BrokenPipeError:
                    raise NativeReaderError("the native reader is gone") from None

    def _receive(self, timeout: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdout is None:
            raise NativeReaderError("the native reader is not running")
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.stop()
                    raise NativeReaderError(f"ncu_report did not answer within {timeout:g} s")
                chunk = os.read(process.stdout.fileno(), 1 << 20)
                if not chunk:
                    reason = self._epitaph(process)
                    self.stop()
                    raise NativeReaderError(reason)
                self._buffer += chunk
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise NativeReaderError("the native reader gave no answer")
        return answer

    def _epitaph(self, process: subprocess.Popen[bytes]) -> str:
        """How the worker ended, with its last line."""
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"exit code {code}"
        if code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        last = ""
        if self._messages is not None:
            self._messages.seek(0, os.SEEK_END)
            self._messages.seek(max(0, self._messages.tell() - 4096))
            lines = self._messages.read().decode("utf-8", "replace").strip().splitlines()
            last = f": {lines[-1][:300]}" if lines else ""
        return f"ncu_report crashed ({how}){last}"


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
os.register_at_fork(after_in_child=_forget_after_fork)
