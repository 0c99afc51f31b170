"""The search's end of the line to its worker process (``worker.py``): asks, waits, and starts it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from gemmprof.children import python_command
from gemmprof.errors import ProfilerError
from gemmprof.line_worker import LineWorker, WorkerError

START_SECONDS = 180.0
CANDIDATE_SECONDS = 60.0


class TuningClient:
    """A worker process that is replaced whenever a candidate spoils it; a context manager."""

    device: str
    architecture: str

    def __init__(self, settings: Mapping[str, Any], command: Sequence[str] | None = None) -> None:
        self._settings = settings
        self._worker = LineWorker(
            command or python_command("gemmprof.profiler.tuning.worker"), name="the search's worker"
        )

    def __enter__(self) -> TuningClient:
        facts = self._start()
        self.device, self.architecture = facts["device"], facts["architecture"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.stop()

    def measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have one candidate verified and timed; a dead or hanging worker is an answer too (``crashed``)."""
        if not self._worker.running:
            self._start()
        try:
            answer = self._worker.ask(request, CANDIDATE_SECONDS)
        except WorkerError as error:
            self._worker.stop()
            return {"status": "crashed", "detail": error.words or str(error)}
        if answer["status"] == "failed":
            # A faulting kernel leaves a CUDA context that answers nothing any more.
            self._worker.stop()
        return answer

    def _start(self) -> dict[str, Any]:
        try:
            self._worker.start()
            answer = self._worker.ask(self._settings, START_SECONDS)
            found = str(answer.get("detail", ""))
        except WorkerError as error:
            answer, found = {}, error.words or str(error)
        if "device" not in answer:
            self._worker.stop()
            raise ProfilerError(
                "the search cannot use a GPU",
                remedies=["`gemmprof doctor` says what this machine has and what is missing"],
                found=found,
            )
        return answer
