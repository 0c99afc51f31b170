"""Tasks on the workers that declare a GPU: each is done whoever comes and goes, and lost only with the cluster.

The scheduler gives a task to a free worker, and does those of a lost worker again elsewhere. What it cannot know is
done here: a worker whose GPU is gone gets no more, and what only workers may do that are gone goes to others.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.profiler.cluster import connection, remote
from gemmprof.profiler.site import START_SECONDS, NotBegun

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.5

# How often a task goes on to another worker because a GPU is gone before it is given up.
MAXIMUM_MOVES = 10

Sender = Callable[[dict[str, Any]], Any]  # submits a task with these of Dask's options; returns its future


class GpuWorkers:
    """The workers of a cluster for one command, watched as long as the context.

    Args:
        errand: what every task brings along.
        patience: seconds without any worker until the work is given up.

    Attributes:
        extension: the future of the extension (`remote.Extension`), once it is built; tasks bring it along, too.
    """

    def __init__(self, client: Client, errand: remote.Errand, patience: float, progress: Progress) -> None:
        self.client, self.errand = client, errand
        self.extension: Any = None
        self._patience, self._progress = patience, progress
        self.ending = False  # nothing more is begun
        self._lock = threading.Lock()
        self._workers: Mapping[str, Mapping[str, Any]] = connection.gpu_workers(client)
        self._gone: set[str] = set()
        self._error: DeviceError | None = None
        self._waiting: list[float] = []
        self._answered = 0.0
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._watch_workers, daemon=True, name="cluster")

    def __enter__(self) -> GpuWorkers:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._watch.join(5)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The machines that have such workers."""
        return tuple(sorted({facts["host"] for facts in self._workers.values()})) or ("",)

    @property
    def good(self) -> dict[str, Mapping[str, Any]]:
        """What Dask knows of the workers whose GPU is not gone, by address."""
        return {address: facts for address, facts in self._workers.items() if address not in self._gone}

    def end(self) -> None:
        """Have the workers begin nothing more of this command; what was begun goes on."""
        self.ending = True
        connection.bounded(lambda: self.client.register_plugin(remote.Ending(self.errand.command)))

    def do(
        self,
        send: Sender,
        *,
        host: str = "",
        avoid: str = "",
        takes: float = math.inf,
        fetching: float = connection.RESULT_SECONDS,
        leaving: Callable[[], bool] = lambda: False,
    ) -> Any:
        """What the task returns that ``send`` submits, again where it is lost.

        Args:
            host: the machine that should do it, if it has a worker.
            avoid: address of a worker that shall not.
            takes: seconds that the task may take.
            fetching: seconds in which its result arrives.
            leaving: whether it is waited for no longer.

        Raises:
            NotBegun: everything is ended, or it is waited for no longer.
            DeviceError: the scheduler is gone, or there is nobody who can.
            GemmprofError: what the task raised.
        """
        moves = 0
        with self._counted(takes):
            while not self.ending:
                # The workers that may do it, where not all may.
                good = {address: facts for address, facts in self.good.items() if address != avoid}
                here = frozenset(address for address, facts in good.items() if facts["host"] == host)
                allowed = here or (frozenset(good) if self._gone or avoid else frozenset())
                try:
                    task = send({"workers": sorted(allowed) or None, "pure": False})
                    if self._ends(task, allowed, leaving):
                        return connection.result_of(task, fetching)
                    task.cancel()
                except NotBegun:
                    raise
                except connection.ResultLost:
                    pass  # it is done again
                except remote.GpuGone as error:
                    moves += 1
                    with self._lock:
                        new = error.worker not in self._gone
                        self._gone.add(error.worker)
                    if new:
                        self._progress.note(f"worker {error.worker} is left out: {error}")
                    if moves == MAXIMUM_MOVES or not self.good:
                        raise self._nobody(str(error)) from None
                except Exception as error:
                    raise connection.as_gemmprof_error(error) from error
            raise NotBegun

    def _ends(self, task: Any, allowed: frozenset[str], leaving: Callable[[], bool]) -> bool:
        """Wait until a task has ended; False if only workers may do it that are gone: Dask would wait for ever."""
        # dask/distributed#7346; its allow_other_workers would pass over the resource, too (#4792).
        done = threading.Event()
        task.add_done_callback(lambda _: done.set())
        while not done.wait(POLL_SECONDS):
            if self._closed.is_set() or leaving() or (self._error and self.ending):
                connection.bounded(task.cancel)
                raise NotBegun
            if self._error is not None:
                connection.bounded(task.cancel)
                raise self._error
            if allowed and not allowed & self._workers.keys():
                return False
        return True

    @contextlib.contextmanager
    def _counted(self, takes: float) -> Iterator[None]:
        """A task that is waited for: how long nobody answers says something only as long as there are any."""
        with self._lock:
            if not self._waiting:
                self._answered = time.monotonic()
            self._waiting.append(takes)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.remove(takes)
                self._answered = time.monotonic()

    def _watch_workers(self) -> None:
        """Tell who goes; give up where nobody comes for long, or nobody answers."""
        seen = time.monotonic()
        while not self._closed.wait(POLL_SECONDS) and self._error is None:
            try:
                before, self._workers = self._workers, connection.gpu_workers(self.client)
            except connection.SchedulerGone as error:
                self._error = error
                return
            for address in before.keys() - self._workers.keys():
                self._progress.note(f"worker {address} is gone; what it had runs again elsewhere")
            now = time.monotonic()
            if self.good:
                seen = now
            elif self.ending or now - seen > self._patience:
                self._error = connection.no_workers(self._patience, list(self._workers))
            silent = now - self._answered
            with self._lock:
                longest = max(self._waiting, default=math.inf)
            if silent > longest + 2 * START_SECONDS:
                self._error = self._nobody(f"workers are there, and none has answered for {silent:.0f} s")

    def with_gpu(self, function: Callable[..., Any], *arguments: Any) -> Sender:
        """What submits a function of an errand, the extension and these to a worker with a free GPU."""
        key = f"gemmprof-{function.__name__}"
        return lambda options: self.client.submit(
            function,
            self.errand,
            self.extension,
            *arguments,
            key=f"{key}-{uuid.uuid4().hex}",
            resources={connection.RESOURCE: 1},
            **options,
        )

    def _nobody(self, found: str) -> DeviceError:
        """The error where no GPU can be used (any more)."""
        return DeviceError(
            "no GPU of the cluster can be used",
            "`gemmprof doctor --cluster ADDRESS` says what each worker has and what is missing",
            found=found,
        )
