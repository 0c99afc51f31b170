"""The GPUs of a cluster behind one queue: requests are tasks that carry the resource GPU = 1.

The scheduler gives them to free workers, and runs those of a lost worker again elsewhere. What it cannot know is done
here: a request whose child died is tried once more on another worker, and a worker whose GPU is gone gets no more.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.model import Card
from gemmprof.profiler.cluster import remote
from gemmprof.profiler.cluster.connection import (
    RESOURCE,
    ResultLost,
    SchedulerGone,
    as_gemmprof_error,
    bounded,
    completed,
    gpu_workers,
    no_workers,
    result_of,
)
from gemmprof.profiler.cluster.content import Content, code_digest
from gemmprof.profiler.site import CRASHED, START_SECONDS, Answer, Request, Work, cancelled

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 1.0

FETCHERS = 4  # threads that fetch results

# How often a request goes on to another worker because a GPU is gone before it is given up.
MAXIMUM_MOVES = 10


@dataclass(slots=True, eq=False)
class _Item:
    """A request on its way; ``task`` is Dask's future."""

    request: Request
    future: Future[Answer] = field(default_factory=Future)
    task: Any = None
    allowed: frozenset[str] = frozenset()
    """The workers that may do it, where not all may."""
    lost: bool = False
    moves: int = 0


class ClusterPlaces:
    """GPUs of one model on the workers of a cluster.

    Args:
        command: whose requests these are: together they are ended (`remote.Ending`).
        model: the model; workers with another are left alone.
        extension: the future of the extension (`remote.Extension`), None where the children need none.
        carried: files that the children need, by the variable that names them.
        patience: seconds without any worker until the work is given up.
    """

    def __init__(
        self,
        client: Client,
        work: Work,
        progress: Progress,
        *,
        command: str,
        model: str,
        extension: Any = None,
        carried: Mapping[str, Content] | None = None,
        patience: float = 300.0,
    ) -> None:
        self._client, self._work, self._progress = client, work, progress
        self._command = command
        self._model, self._extension, self._carried = model, extension, dict(carried or {})
        self._patience = patience
        self._lock = threading.RLock()
        self._items: set[_Item] = set()
        self._gone: set[str] = set()
        self._workers: dict[str, Any] = {}
        self._cards: dict[Card, None] = {}
        self._facts: Mapping[str, Any] = {}
        self._ending, self._told = False, time.monotonic()
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(FETCHERS)
        self._watch = threading.Thread(target=self._watch_workers, daemon=True, name="cluster")

    def __enter__(self) -> ClusterPlaces:
        """Have a child ready on one worker; the others make theirs with their first request.

        Raises:
            DeviceError: no worker can.
        """
        self._workers = gpu_workers(self._client)
        for _ in range(MAXIMUM_MOVES):
            try:
                self._facts = completed(
                    lambda: self._submit(
                        self._allowed(), remote.start, self._work, self._model, self._carried, self._extension
                    ),
                    2 * START_SECONDS,
                )
            except remote.GpuGone as error:
                self._give_up(error)
                continue
            except Exception as error:
                raise as_gemmprof_error(error) from error
            self._watch.start()
            return self
        raise self._nobody("no GPU could be used")

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        with self._lock:
            tasks = [item.task for item in self._items if item.task is not None]
        if tasks:
            bounded(lambda: self._client.cancel(tasks, force=True))
        if self._watch.ident is not None:
            self._watch.join(5)
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def cards(self) -> tuple[Card, ...]:
        """The GPUs that answered so far."""
        with self._lock:
            return tuple(self._cards)

    @property
    def width(self) -> int:
        """How many requests can be answered at once, as far as the workers declare it."""
        with self._lock:
            free = (self._workers[address].get("resources", {}) for address in self._good())
            return max(1, int(sum(resources.get(RESOURCE, 0) for resources in free)))

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the first child said of its GPU."""
        return self._facts

    def submit(self, request: Request) -> Future[Answer]:
        """Queue a request."""
        item = _Item(request)
        with self._lock:
            if not self._items:
                self._told = time.monotonic()
            self._items.add(item)
            self._send(item)
        return item.future

    def cancel_waiting(self) -> None:
        """Have the workers begin no more requests; each answers which those are."""
        self._ending = True
        bounded(lambda: self._client.register_plugin(remote.Ending(self._command)))

    def leave(self, card: Card) -> None:
        """Nothing to do: who profiles takes the resource as everybody does."""

    def _good(self) -> list[str]:
        return [address for address in self._workers if address not in self._gone]

    def _submit(self, allowed: frozenset[str], function: Any, *arguments: Any) -> Any:
        """Hand a function to the scheduler, for these workers (none: for all)."""
        try:
            return self._client.submit(
                function,
                *arguments,
                key=f"gemmprof-{function.__name__}-{uuid.uuid4().hex}",
                resources={RESOURCE: 1},
                workers=sorted(allowed) or None,
                pure=False,
            )
        except Exception as error:
            raise as_gemmprof_error(error) from error

    def _allowed(self, avoid: str = "") -> frozenset[str]:
        """The workers that are known to be good, where some are not; else none in particular."""
        good = frozenset(address for address in self._good() if address != avoid)
        return good if self._gone or avoid else frozenset()

    def _send(self, item: _Item, avoid: str = "") -> None:
        request = item.request
        library = request.candidate.library if request.candidate is not None else None
        item.allowed = self._allowed(avoid)
        item.task = self._submit(
            item.allowed, remote.ask, self._command, code_digest(), self._work, dict(request.record),
            request.seconds, self._model, self._carried, self._extension, library,
        )  # fmt: skip
        item.task.add_done_callback(lambda task: self._take(item, task))

    def _send_on(self) -> None:
        """Send again what only workers may do that are gone: Dask would wait for them for ever."""
        # dask/distributed#7346; its allow_other_workers would pass over the resource, too (#4792).
        with self._lock:
            for item in self._items:
                if item.allowed and not item.allowed & self._workers.keys():
                    item.task.cancel()
                    self._send(item)

    def _take(self, item: _Item, task: Any) -> None:
        """Dask has one thread to say that tasks ended, and a result may be long in coming."""
        with contextlib.suppress(RuntimeError):  # the places are left
            self._pool.submit(self._done, item, task)

    def _done(self, item: _Item, task: Any) -> None:
        """Take what came of a task."""
        if self._closed.is_set() or task is not item.task or item not in self._items:
            return
        if item.future.cancelled():
            self._finish(item)
            return
        try:
            record, card, worker = result_of(task)
        except ResultLost:
            with self._lock:
                self._send(item)
            return
        except remote.GpuGone as error:
            self._give_up(error)
            item.moves += 1
            if item.moves < MAXIMUM_MOVES and self._good():
                with self._lock:
                    self._send(item)
                return
            self._finish(item, error=self._nobody(str(error)))
            return
        except Exception as error:
            if type(error).__name__ == "KilledWorker":
                self._finish(
                    item, Answer({"status": CRASHED, "detail": "it took several workers along"}, self._any())
                )
            else:
                self._finish(item, error=as_gemmprof_error(error))
            return
        if record.get("status") == remote.NOT_BEGUN:
            self._drop(item)
            return
        with self._lock:
            self._cards[card] = None
            if record.get("status") == CRASHED and not item.lost and len(self._good()) > 1:
                item.lost = True
                self._send(item, avoid=worker)
                return
        self._finish(item, Answer(record, card))

    def _drop(self, item: _Item) -> None:
        """Cancel a request that no worker has begun."""
        with self._lock:
            self._items.discard(item)
        cancelled(item.future)

    def _finish(self, item: _Item, answer: Answer | None = None, error: BaseException | None = None) -> None:
        with self._lock:
            self._items.discard(item)
            self._told = time.monotonic()
        with contextlib.suppress(InvalidStateError):  # who gave up waiting has cancelled it
            if answer is not None:
                item.future.set_result(answer)
            else:
                item.future.set_exception(error or DeviceError("it was ended"))

    def _any(self) -> Card:
        return next(iter(self._cards), Card(self._model, -1, ""))

    def _give_up(self, error: remote.GpuGone) -> None:
        """Give no more work to the worker whose GPU is gone."""
        with self._lock:
            new = error.worker not in self._gone
            self._gone.add(error.worker)
        if new:
            self._progress.note(f"worker {error.worker} is left out: {error}")

    def _nobody(self, found: str) -> DeviceError:
        return DeviceError(
            f"{self._work.name} cannot use a GPU of the cluster",
            remedies=["`gemmprof doctor --cluster ADDRESS` says what each worker has and what is missing"],
            found=found,
        )

    def _watch_workers(self) -> None:
        """Tell who comes and goes; give up where nobody comes for long."""
        alone_since: float | None = None
        while not self._closed.wait(POLL_SECONDS):
            try:
                workers = gpu_workers(self._client)
            except SchedulerGone as error:
                self._fail(error)
                return
            with self._lock:
                before, self._workers = self._workers, workers
            for address in before.keys() - workers.keys():
                self._progress.note(f"worker {address} is gone; what it had runs again elsewhere")
            self._send_on()
            if self._good():
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif self._ending or time.monotonic() - alone_since > self._patience:
                self._fail(no_workers(self._patience, list(workers)))
                return
            if (silent := time.monotonic() - self._told) > self._longest():
                self._fail(self._nobody(f"workers are there, and none has answered for {silent:.0f} s"))
                return

    def _longest(self) -> float:
        """How long workers that do their work may leave us without any answer."""
        with self._lock:
            limits = [item.request.seconds for item in self._items]
        return max(limits, default=math.inf) + 2 * START_SECONDS

    def _fail(self, error: DeviceError) -> None:
        with self._lock:
            items = list(self._items)
        for item in items:
            if self._ending:
                self._drop(item)
            else:
                self._finish(item, error=error)
