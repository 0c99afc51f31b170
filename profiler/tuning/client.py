"""The search's end of the line to its worker process (``tuning_worker.py``): asks, waits, and starts it again."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any

from gemmprof.errors import ProfilerError

START_SECONDS = 180.0
CANDIDATE_SECONDS = 60.0

WORKER = (sys.executable, "-P", "-m", "gemmprof.profiler.tuning.worker")


class TuningClient:
    """A worker process that is replaced whenever a candidate spoils it; a context manager."""

    device: str
    architecture: str

    def __init__(self, settings: Mapping[str, Any], command: tuple[str, ...] = WORKER) -> None:
        self._settings = settings
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._errors: IO[str] | None = None

    def __enter__(self) -> TuningClient:
        facts = self._start()
        self.device, self.architecture = facts["device"], facts["architecture"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have one candidate verified and timed; a dead or hanging worker is an answer too (``crashed``)."""
        if self._process is None:
            self._start()
        answer = self._ask(request, CANDIDATE_SECONDS)
        if answer is None:
            detail = self._last_words() or f"no answer within {CANDIDATE_SECONDS:.0f} s"
            self._stop()
            return {"status": "crashed", "detail": detail}
        if answer["status"] == "failed":
            # A faulting kernel leaves a CUDA context that answers nothing any more.
            self._stop()
        return answer

    def _start(self) -> dict[str, Any]:
        # Open as long as the worker lives, so no context manager.
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._answers = queue.Queue()
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        threading.Thread(target=_forward, args=(self._process.stdout, self._answers), daemon=True).start()
        answer = self._ask(self._settings, START_SECONDS)
        if answer is None or "device" not in answer:
            found = self._last_words() if answer is None else answer["detail"]
            self._stop()
            raise ProfilerError(
                "the search cannot use a GPU",
                remedies=["`gemmprof doctor` says what this machine has and what is missing"],
                found=found,
            )
        return answer

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=seconds)
            return dict(json.loads(line)) if line else None
        except (OSError, queue.Empty):
            return None

    def _last_words(self) -> str:
        """The end of what the worker wrote to standard error."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else ""

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def _forward(lines: IO[str] | None, answers: queue.Queue[str]) -> None:
    """Put every line into the queue, and an empty one at the end."""
    assert lines is not None
    try:
        for line in lines:
            answers.put(line)
    except ValueError:
        # The pipe was closed while this thread read it: the worker is being replaced.
        pass
    answers.put("")
