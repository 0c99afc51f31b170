"""Tasks on the workers of a cluster: each is done whoever comes and goes, and lost only with the cluster.

The scheduler gives a task to a free worker, and does those of a lost worker again elsewhere. What it cannot know is
done here: a worker whose GPU is gone gets no more, and what only workers may do that are gone goes to others.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.profiler.cluster import connection
from gemmprof.profiler.cluster.remote import GpuGone
from gemmprof.profiler.site import START_SECONDS, NotBegun

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.5

MAXIMUM_MOVES = 10  # how often a task goes on to another worker because a GPU is gone before it is given up
MOST_AT_ONCE = 256  # tasks that are on their way; each has a thread that waits
FETCH_SECONDS = 5.0  # in which the result of a task that has ended arrives, at first
# How long it may take in the end: a small one, and a report of hundreds of megabytes.
RESULT_SECONDS, REPORT_SECONDS = 10.0, 300.0
Sender = Callable[[dict[str, Any]], Any]  # submits a task with these of Dask's options; returns its future


class ResultLost(Exception):
    """A task ended, and the worker that held its result is gone: it has to be done again."""


class Workers:
    """The workers of a cluster for one command (``gpu``: those that declare one), watched as long as the context.

    After ``patience`` seconds without any the work is given up.
    """

    def __init__(self, client: Client, patience: float, progress: Progress, *, gpu: bool = False) -> None:
        self.client = client
        self.ending = False  # nothing more is begun
        self._patience, self._progress, self._gpu = patience, progress, gpu
        self._lock = threading.Lock()
        self._workers = connection.workers(client, gpu=gpu)
        self._gone: set[str] = set()
        self._error: DeviceError | None = None
        self._waiting: list[float] = []
        self._answered = 0.0
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._watch_workers, daemon=True, name="cluster")

    def __enter__(self) -> Self:
        """Wait for a worker; DeviceError if none comes."""
        end, told = time.monotonic() + self._patience, False
        while not self._workers:
            if time.monotonic() > end:
                raise self._none()
            if not told:
                kind = "worker with a GPU" if self._gpu else "worker"
                self._progress.note(f"waiting for a {kind}, {self._patience:.0f} s at most")
                told = True
            time.sleep(POLL_SECONDS)
            self._workers = connection.workers(self.client, gpu=self._gpu)
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

    @property
    def threads(self) -> int:
        """How many tasks they do at a time."""
        return sum(int(facts["nthreads"]) for facts in self.good.values())

    def do(
        self,
        send: Sender,
        *,
        host: str = "",  # the machine that should do it, if it has a worker
        avoid: str = "",  # address of a worker that shall not
        takes: float = math.inf,  # seconds that the task may take
        fetching: float = RESULT_SECONDS,  # seconds in which its result arrives
        leaving: Callable[[], bool] = lambda: False,  # whether it is waited for no longer
    ) -> Any:
        """What the task returns that ``send`` submits, again where it is lost.

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
                        return self._result(task, fetching)
                    task.cancel()
                except NotBegun:
                    raise
                except ResultLost:
                    pass  # it is done again
                except GpuGone as error:
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
        done = threading.Event()  # dask/distributed#7346; allow_other_workers ignores the resource (#4792)
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

    def _result(self, task: Any, longest: float) -> Any:
        """What a task returned that has ended; raises what it raised.

        Dask does a task again by itself whose worker took the result along, but now and then waits for ever for it
        (dask/distributed#3196). ResultLost if it does not come, or there is no worker left that could do it again.
        """
        seconds = FETCH_SECONDS  # fetching begins anew with each turn: twice as long, so that large results come, too
        while True:
            try:
                return task.result(timeout=seconds)
            except TimeoutError:
                if seconds >= longest or not self._workers:
                    raise ResultLost from None
                seconds *= 2

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
                before, self._workers = self._workers, connection.workers(self.client, gpu=self._gpu)
                now = time.monotonic()
                if self.good:
                    seen = now
                elif self.ending or now - seen > self._patience:
                    self._error = self._none()
            except connection.SchedulerGone as error:
                self._error = error
                return
            for address in before.keys() - self._workers.keys():
                self._progress.note(f"worker {address} is gone; what it had runs again elsewhere")
            silent = now - self._answered
            with self._lock:
                longest = max(self._waiting, default=math.inf)
            if silent > longest + 2 * START_SECONDS:
                self._error = self._nobody(f"workers are there, and none has answered for {silent:.0f} s")

    def _none(self) -> DeviceError:
        others = len(connection.workers(self.client)) if self._gpu else None
        return connection.no_workers(self._patience, others)

    def _nobody(self, found: str) -> DeviceError:
        """The error where no worker can be used (any more)."""
        what = f"no {'GPU' if self._gpu else 'worker'} of the cluster can be used"
        fix = "`gemmprof doctor --cluster ADDRESS` says what each worker has and what is missing"
        return DeviceError(what, fix, found=found)
