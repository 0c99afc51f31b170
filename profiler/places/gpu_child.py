"""One child process on one GPU: asked, waited for, and replaced whenever a request spoils it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gemmprof.children.line_worker import LineWorker, WorkerError
from gemmprof.children.watched import python_command
from gemmprof.model import Card
from gemmprof.profiler.site import CRASHED, START_SECONDS, Work

VISIBLE = "CUDA_VISIBLE_DEVICES"


class ChildFailed(Exception):
    """A child does not start: the GPU is gone, taken, or was never usable. The message is what it said."""


class GpuChild:
    """A child process that holds one GPU.

    Args:
        pinned: show it this GPU alone; else it takes the one that CUDA uses first.
        keep_open: file handles that it inherits.
        environment: more variables that it has.
    """

    def __init__(
        self,
        work: Work,
        card: Card,
        *,
        pinned: bool,
        keep_open: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.card = card
        self.facts: Mapping[str, Any] = {}
        self._work = work
        self._worker = LineWorker(
            python_command(work.module),
            name=work.name,
            environment={**(environment or {}), **({VISIBLE: card.uuid} if pinned else {})},
            keep_open=keep_open,
            own_group=True,
        )

    def start(self) -> None:
        """Start it anew, and let it make itself ready.

        Raises:
            ChildFailed: it does not get there.
        """
        try:
            self._worker.start()
            facts = self._worker.ask(self._work.settings, START_SECONDS)
            found = str(facts.get("detail", ""))
        except WorkerError as error:
            facts, found = {}, error.words or str(error)
        if "device" not in facts:
            self._worker.stop()
            raise ChildFailed(found)
        self.facts = facts

    def ask(self, record: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to a request; a child that died or hung is an answer too (`CRASHED`), and is gone afterwards."""
        try:
            answer = self._worker.ask(record, seconds)
        except WorkerError as error:
            self._worker.stop()
            return {"status": CRASHED, "detail": error.words or str(error), "ending": error.ending}
        if answer.pop("spoiled", answer.get("status") == "failed"):
            # A faulting kernel leaves a CUDA context that answers nothing any more.
            self._worker.stop()
        return answer

    @property
    def running(self) -> bool:
        """Whether it can be asked."""
        return self._worker.running

    def kill(self) -> None:
        """Have it die, from another thread than the one that asks it; who waits for its answer learns it at once."""
        if (process := self._worker.process) is not None:
            process.kill()

    def stop(self) -> None:
        """End it."""
        self._worker.stop()
