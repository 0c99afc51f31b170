"""The workers of a cluster read reports: every job of `gemmprof.base.spread` is a task of Dask's.

A job is a function of its arguments and of files on storage that all machines share. So whatever is lost (a worker, the
scheduler, a result on its way) is asked for again, and nothing has to be told apart.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import gemmprof
from gemmprof.base.errors import DeviceError, ReportError, UnreachableError
from gemmprof.base.progress import Progress
from gemmprof.base.spread import be_for_others, elsewhere, unseen
from gemmprof.profiler.cluster import connection
from gemmprof.profiler.cluster.connection import MOST_AT_ONCE, POLL_SECONDS, REPORT_SECONDS, Workers
from gemmprof.profiler.cluster.remote import code_digest, own_address
from gemmprof.profiler.site import NotBegun

# Tasks on their way for each thread of the workers: none waits for us, and what is done but not taken stays little.
AHEAD = 3
FEWEST_AHEAD = 16
JOB_SECONDS = 1800.0  # a job is a batch of reports or launches: what takes longer hangs
TRIES = 8  # how often a job is begun anew whose workers are killed: then it is taken for what kills them


class OtherCode(Exception):
    """This worker's gemmprof is not that of the command."""


_one = threading.Lock()  # a process reads one batch at a time, however many threads the worker has


def do(
    job: Callable[..., Any], common: tuple[Any, ...], arguments: tuple[Any, ...], folder: str, code: str
) -> tuple[Any, Exception | None]:
    """Do a job on a worker as if this were the command's folder; what it returned, or what it raised.

    Else it raises OtherCode, because it would be another job here, or DeviceError: the folder is not there.
    """
    try:
        if code != code_digest():
            raise OtherCode(f"{own_address()}: gemmprof {gemmprof.__version__}")
        be_for_others()
        with _one, ExitStack() as there:
            try:
                there.enter_context(chdir(folder))
            except OSError as error:
                raise unseen(folder, error) from None
            return job(*common, *arguments), None
    except Exception as error:
        return None, error


@contextmanager
def reading_on(where: str | connection.Jobs, *, wait: float, progress: Progress) -> Iterator[None]:
    """Have a cluster's workers do what `gemmprof.base.spread.each` is asked for, as long as the context.

    ``wait``: seconds to wait for a scheduler file, for workers, and for a scheduler that went away. UsageError if the
    extra is not installed; DeviceError if nobody answers, no worker comes, or workers have another gemmprof than this.
    """
    readers = Readers(where, wait, progress)
    try:
        readers.connect()
        with elsewhere(readers.do):
            yield
    finally:
        readers.close()


class Readers:
    """The workers of a cluster, and its next one where its scheduler goes; see `reading_on`."""

    def __init__(self, where: str | connection.Jobs, wait: float, progress: Progress) -> None:
        self._where, self._wait, self._progress = where, wait, progress
        self._folder = os.fspath(Path.cwd())
        self._stack = ExitStack()
        self._workers: Workers | None = None
        self._one_connects, self._one_sends = threading.Lock(), threading.Lock()
        self._closed = threading.Event()
        self._failure: DeviceError | None = None  # of a cluster that did not come back
        self._common: tuple[Workers, tuple[Any, ...], Any] | None = None

    def close(self) -> None:
        """Leave the cluster; workers that were started for this end."""
        self._closed.set()
        self._stack.close()

    def do(
        self, job: Callable[..., Any], inputs: Iterable[tuple[Any, ...]], common: tuple[Any, ...]
    ) -> Iterator[Callable[[], Any]]:
        """As `gemmprof.base.spread.each`: a few jobs a worker are on their way, the others wait here."""
        rest, left = iter(inputs), threading.Event()
        ahead: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(MOST_AT_ONCE)
        try:
            while True:
                assert self._workers is not None
                width = max(FEWEST_AHEAD, AHEAD * self._workers.threads)
                for arguments in islice(rest, max(0, width - len(ahead))):
                    ahead.append(pool.submit(self._done, left, job, common, arguments))
                if not ahead:
                    return
                yield ahead.popleft().result
        finally:
            left.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _done(
        self, left: threading.Event, job: Callable[..., Any], common: tuple[Any, ...], arguments: Any
    ) -> Any:
        """What the job returned or raised, whoever is lost meanwhile; DeviceError, ReportError if nobody can do it."""

        def leaving() -> bool:
            return left.is_set() or self._closed.is_set()

        tries = 0
        while not leaving():
            workers = self._workers
            assert workers is not None

            def send(options: dict[str, Any], to: Workers = workers) -> Any:
                sent = self._sent(to, common)
                return to.client.submit(do, job, sent, arguments, self._folder, code_digest(), **options)

            try:
                found, error = workers.do(send, takes=JOB_SECONDS, fetching=REPORT_SECONDS, leaving=leaving)
            except (connection.SchedulerGone, NotBegun):
                self._renew(workers)
            except connection.WorkersKilled:
                # Dask gives a job up that took three workers along; where they are killed at random, it did not.
                tries += 1
                if tries == TRIES:
                    killed = "the workers that read it were killed, one after the other"
                    raise ReportError(killed, found=f"{tries} times; out of memory, probably") from None
            except DeviceError as gone:
                if not isinstance(gone.__cause__, OSError) or workers.client.status == "running":
                    raise
                self._renew(workers)
            else:
                if isinstance(error, OtherCode):
                    raise connection.other_code([str(error)])
                if isinstance(error, UnreachableError) and os.access(error.path, os.R_OK):
                    raise unseen(error.path, error)
                if error is not None:
                    raise error
                return found
        raise NotBegun

    def _sent(self, workers: Workers, common: tuple[Any, ...]) -> Any:
        """What is common to many jobs: the result of a task, which Dask hands on, and makes again where it is lost."""
        if not common:
            return common
        with self._one_sends:  # else each of the first jobs would send it
            known = self._common
            if known is None or known[0] is not workers or known[1] is not common:
                known = self._common = workers, common, workers.client.submit(tuple, common, pure=False)
            return known[2]

    def _renew(self, lost: Workers) -> None:
        """Where the scheduler is gone, wait for it: whoever finds that first, for all."""
        with self._one_connects:
            if self._workers is not lost or self._closed.is_set():
                return
            if self._failure is None:
                gone = "the cluster's scheduler is gone; waiting for it"
                self._progress.note(f"{gone}, {self._wait:.0f} s at most")
                try:
                    self.connect()
                    return
                except DeviceError as error:
                    self._failure = error
            raise self._failure

    def connect(self) -> None:
        """A client, and at least one worker; DeviceError if nobody answers, or no worker has the same gemmprof."""
        with suppress(Exception):
            self._stack.close()
        end = time.monotonic() + self._wait
        while True:
            try:
                with ExitStack() as stack:
                    cluster = connection.connected(self._where, wait=self._wait, progress=self._progress)
                    client = stack.enter_context(cluster)
                    workers = stack.enter_context(Workers(client, self._wait, self._progress))
                    self._refuse_others(workers)
                    self._stack, self._workers = stack.pop_all(), workers
                return
            except (connection.NoScheduler, connection.SchedulerGone) as error:
                if self._workers is None:
                    raise
                if time.monotonic() > end:
                    raise connection.SchedulerGone(error.message) from error
                time.sleep(POLL_SECONDS)

    def _refuse_others(self, workers: Workers) -> None:
        try:
            answers = workers.client.run(code_digest, on_error="return")
        except Exception:
            return  # a worker went away this very moment; each task looks again
        other = [
            f"{address}: {'another version' if isinstance(answer, str) else f'{type(answer).__name__}: {answer}'}"
            for address, answer in answers.items()
            if answer != code_digest() and not isinstance(answer, OSError)
        ]
        if other:
            raise connection.other_code(other)
