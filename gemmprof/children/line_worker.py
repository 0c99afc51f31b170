"""The one protocol with child processes: JSON, one object a line.

`LineWorker` asks a worker process and gets one answer a request; whatever happens to the worker (abort, crash, hang)
ends as `WorkerError`. `serve` is the worker's end.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gemmprof.base import system
from gemmprof.base.errors import GemmprofError

LONGEST_WORDS = 4096  # bytes of a dead worker's standard error that are looked at

# How long a killed worker is waited for: one that hangs in a driver may not end before the driver lets it go.
KILL_SECONDS = 10.0
ORPHAN_SECONDS = 0.5  # how often a worker looks whether whoever started it still lives

# Variable that tells a worker who started it: asked later, the system may already name who adopted it.
MASTER = "GEMMPROF_MASTER"


class Works(Protocol):
    """A worker, which knows what it works on."""

    def facts(self) -> dict[str, Any]:
        """What whoever asks wants to know first."""

    def do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request."""


class WorkerError(Exception):
    """The worker died, hung, or cannot run at all; the message is one line for a person.

    Attributes:
        ending: how it ended (``SIGABRT``, ``exit code 3``), '' if it hung or never ran.
        words: the last line that it wrote to standard error, '' if none.
    """

    def __init__(self, message: str, *, ending: str = "", words: str = "") -> None:
        super().__init__(message)
        self.ending, self.words = ending, words


class LineWorker:
    """A worker process that answers one request after the other; it is started when it is first needed."""

    def __init__(
        self,
        command: Sequence[str],  # how to start it (`gemmprof.children.watched.python_command`)
        *,
        name: str,  # what it is called in messages, ``the native reader``
        # variables that it has in place of, or beside, those of this process
        environment: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),  # file handles that it inherits (a lock it holds as long as it lives)
        own_group: bool = False,  # Ctrl-C in the terminal does not reach it
    ) -> None:
        self._command, self._name, self._own_group = list(command), name, own_group
        self._environment, self._keep_open = dict(environment or {}), tuple(keep_open)
        self.process: subprocess.Popen[bytes] | None = None  # None before the start and after the end
        self._buffer = bytearray()
        self._messages: Any = None

    @property
    def running(self) -> bool:
        """Whether there is a process and it has not ended."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it anew; returns at once; WorkerError if no process can be started."""
        self.stop()
        self._messages = tempfile.TemporaryFile(prefix="gemmprof-")  # noqa: SIM115 (lives as long as the worker)
        try:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                bufsize=0,
                env={**os.environ, **self._environment, MASTER: str(os.getpid())},
                pass_fds=self._keep_open,
                start_new_session=self._own_group,
            )
        except OSError as error:
            raise WorkerError(f"{self._name} could not be started: {error}") from error

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to a request, in so many seconds; WorkerError if it died, hung or gave none, and it is ended."""
        if self.process is None:
            self.start()
        deadline = time.monotonic() + timeout
        process = self.process
        assert process is not None and process.stdin is not None and process.stdout is not None
        there, back = process.stdin.fileno(), process.stdout.fileno()
        data = json.dumps(request).encode("ascii") + b"\n"
        try:
            with contextlib.suppress(BrokenPipeError):  # the last words of a dead worker are read below
                system.in_time(lambda: system.write_all(there, data), deadline - time.monotonic())
            while b"\n" not in self._buffer:
                chunk = system.in_time(lambda: os.read(back, 1 << 20), deadline - time.monotonic())
                if not chunk:
                    raise self._died(process)
                self._buffer += chunk
        except TimeoutError:
            words = self._last_words()
            self.stop()
            raise WorkerError(f"{self._name} did not answer within {timeout:g} s", words=words) from None
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.stop()
            raise WorkerError(f"{self._name} gave no answer")
        return answer

    def stop(self) -> None:
        """End it, if it runs."""
        process, self.process = self.process, None
        self._buffer.clear()
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_SECONDS)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._messages is not None:
            self._messages.close()
            self._messages = None

    def _died(self, process: subprocess.Popen[bytes]) -> WorkerError:
        """How it ended, with its last line."""
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"exit code {code}"
        if code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        words = self._last_words()
        self.stop()
        said = f": {words}" if words else ""
        return WorkerError(f"{self._name} crashed ({how}){said}", ending=how, words=words)

    def _last_words(self) -> str:
        if self._messages is None:
            return ""
        self._messages.seek(0, os.SEEK_END)
        self._messages.seek(max(0, self._messages.tell() - LONGEST_WORDS))
        lines = self._messages.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def serve(answer: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """The worker's end: answer every request until standard input ends.

    Standard output is for answers only: whatever a library (or a kernel's ``printf``) writes there goes to standard
    error. A worker whose master was killed ends at once, in the middle of a request, and frees what it holds.
    """
    end_with(int(os.environ.pop(MASTER, "") or os.getppid()))
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")


def serve_worker(make: Callable[[Mapping[str, Any]], Works]) -> None:
    """The end of a worker that its first request, the settings, makes; it is answered with its ``facts``.

    What gemmprof or CUDA raise is an answer, too: ``failed``, with the ``detail``.
    """
    made: list[Works] = []

    def answer(request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if made:
                return made[0].do(request)
            made.append(make(request))
            return made[0].facts()
        except (GemmprofError, RuntimeError) as error:
            return {"status": "failed", "detail": str(error)}

    serve(answer)


def end_with(master: int) -> None:
    """Have this process end at once when ``master``, which started it, is gone, be it before this call."""

    def look() -> None:
        while os.getppid() == master:
            time.sleep(ORPHAN_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
