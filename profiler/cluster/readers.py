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
from concurrent.futures import CancelledError
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import gemmprof
from gemmprof.base.errors import DeviceError, ReportError, UnreachableError
from gemmprof.base.progress import Progress
from gemmprof.base.spread import be_for_others, elsewhere, unseen
from gemmprof.profiler.cluster import connection
from gemmprof.profiler.cluster.remote import code_digest

if TYPE_CHECKING:
    from distributed import Client

# Tasks on their way for each thread of the workers: none waits for us, and what is done but not taken stays little.
AHEAD = 3
FEWEST_AHEAD = 16

JOB_SECONDS = 1800.0  # a job is a batch of reports or launches: what takes longer hangs
RESULT_SECONDS = 300.0
FETCH_SECONDS = 5.0
TRIES = 8  # how often a job is begun anew whose workers are killed: then it is taken for what kills them
POLL_SECONDS = 0.5

START_READER = "dask worker ADDRESS --nthreads 1 --nworkers auto"


class OtherCode(Exception):
    """This worker's gemmprof is not that of the command."""


_one = threading.Lock()  # a process reads one batch at a time, however many threads the worker has


def do(
    job: Callable[..., Any], common: tuple[Any, ...], arguments: tuple[Any, ...], folder: str, code: str
) -> Any:
    """Do a job on a worker as if this were the command's folder.

    Raises:
        OtherCode: it would be another job here.
        DeviceError: the folder is not there.
    """
    if code != code_digest():
        raise OtherCode(f"gemmprof {gemmprof.__version__}")
    be_for_others()
    with _one, ExitStack() as there:
        try:
            there.enter_context(chdir(folder))
        except OSError as error:
            raise unseen(folder, error) from None
        return job(*common, *arguments)


@contextmanager
def reading_on(where: str | connection.Jobs, *, wait: float, progress: Progress) -> Iterator[None]:
    """Have a cluster's workers do what `gemmprof.base.spread.each` is asked for, as long as the context.

    Args:
        where: address of a scheduler, its file, or what a batch system is to start.
        wait: seconds to wait for a scheduler file, for workers, and for a scheduler that went away.

    Raises:
        UsageError: the extra is not installed, or an option is not known.
        DeviceError: nobody answers, no worker comes, or workers have another gemmprof than this.
    """
    readers = Readers(where, wait, progress)
    try:
        readers.connect()
        with elsewhere(readers):
            yield
    finally:
        readers.close()


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Asked:
    """A job on its way: Dask's future, and how often it was begun. Once nobody waits for it, Dask forgets it."""

    job: Callable[..., Any]
    common: tuple[Any, ...]
    arguments: tuple[Any, ...]
    task: Any = None
    done: threading.Event = field(default_factory=threading.Event)
    tries: int = 0


class Readers:
    """The workers of a cluster; see `reading_on`."""

    def __init__(self, where: str | connection.Jobs, wait: float, progress: Progress) -> None:
        self._where, self._wait, self._progress = where, wait, progress
        self._folder = os.fspath(Path.cwd())
        self._stack = ExitStack()
        self._client: Client | None = None
        self._asked: WeakSet[_Asked] = WeakSet()
        self._common: tuple[tuple[Any, ...], Any] | None = None

    def close(self) -> None:
        """Leave the cluster; workers that were started for this end."""
        self._stack.close()

    def do(
        self, job: Callable[..., Any], inputs: Iterable[tuple[Any, ...]], common: tuple[Any, ...]
    ) -> Iterator[Callable[[], Any]]:
        """As `gemmprof.base.spread.each`: a few jobs a worker are on their way, the others wait here."""
        rest = iter(inputs)
        ahead: deque[_Asked] = deque()
        while True:
            width = max(FEWEST_AHEAD, AHEAD * sum(self._threads().values()))
            for arguments in islice(rest, max(0, width - len(ahead))):
                ahead.append(self._ask(_Asked(job, common, arguments)))
            if not ahead:
                return
            yield partial(self._answer, ahead.popleft())

    def _threads(self) -> dict[str, int]:
        try:
            assert self._client is not None
            return dict(self._client.nthreads())
        except Exception:  # whatever a scheduler that is gone raises: the next answer finds out
            return {}

    def _ask(self, asked: _Asked) -> _Asked:
        self._asked.add(asked)
        asked.tries += 1
        asked.done = threading.Event()
        try:
            assert self._client is not None
            asked.task = self._client.submit(
                do,
                asked.job,
                self._sent(asked.common),
                asked.arguments,
                self._folder,
                code_digest(),
                pure=False,
            )
            asked.task.add_done_callback(lambda _, done=asked.done: done.set())
        except Exception:  # the scheduler is gone, whatever that raises: the answer finds it lost
            asked.task = None
        return asked

    def _sent(self, common: tuple[Any, ...]) -> Any:
        """What is common to many jobs: the result of a task, which Dask hands on, and makes again where it is lost."""
        if not common:
            return common
        assert self._client is not None
        if self._common is None or self._common[0] is not common:
            self._common = common, self._client.submit(tuple, common, pure=False)
        return self._common[1]

    def _answer(self, asked: _Asked) -> Any:
        """What the job returned or raised, whoever is lost meanwhile.

        Raises:
            DeviceError: there is no worker for too long, a job does not end, or a worker does not see a file.
            ReportError: also: its workers are killed, one after the other.
        """
        while True:
            try:
                self._await(asked)
                return self._result(asked)
            except (connection.ResultLost, CancelledError, OSError) as error:
                if isinstance(error, OSError) and self._is_connected():
                    raise  # the job's own
                self._renew(asked)
            except OtherCode as error:
                raise connection.other_code([f"{asked.task.key}: {error}"]) from None
            except UnreachableError as error:
                raise unseen(error.path, error) if os.access(error.path, os.R_OK) else error from None
            except Exception as error:
                # Dask gives a job up that took three workers along; where they are killed at random, it did not.
                if type(error).__name__ != "KilledWorker":
                    raise
                self._again(asked)

    def _result(self, asked: _Asked) -> Any:
        """What a task returned that ended; its worker may be gone by now, and with it the last one.

        Raises:
            ResultLost: there is no worker that could do it again, or none does.
        """
        # Fetching begins anew with each turn: twice as long, so that large results come, too.
        seconds = FETCH_SECONDS
        while True:
            try:
                return connection.result_of(asked.task, seconds)
            except connection.ResultLost:
                if seconds > RESULT_SECONDS or not self._threads():
                    raise
                seconds *= 2

    def _again(self, asked: _Asked) -> None:
        """Have a job done that was begun before."""
        if asked.tries >= TRIES:
            raise ReportError(
                "the workers that read it were killed, one after the other",
                found=f"{asked.tries} times; out of memory, probably",
            )
        self._ask(asked)

    def _await(self, asked: _Asked) -> None:
        began = alone = time.monotonic()
        while not asked.done.wait(POLL_SECONDS):
            if asked.task is None or not self._is_connected():
                raise CancelledError
            now = time.monotonic()
            if self._threads():
                alone = now
            if now - alone > self._wait:
                raise no_readers(self._wait)
            if now - began > JOB_SECONDS:
                raise DeviceError(
                    f"a worker of the cluster has read for {JOB_SECONDS:.0f} s and did not end",
                    "leave the report out, or read it here to see why it takes long",
                )

    def _is_connected(self) -> bool:
        return self._client is not None and self._client.status == "running"

    def _renew(self, asked: _Asked) -> None:
        """Ask again for what is lost; where the scheduler is gone, for everything, once it is there again."""
        self._common = None  # maybe that is what was lost
        if self._is_connected():
            self._await_workers(time.monotonic() + self._wait)
            self._again(asked)
            return
        self._progress.note(f"the cluster's scheduler is gone; waiting for it, {self._wait:.0f} s at most")
        self.connect()
        for waiting in list(self._asked):
            waiting.tries = 0
            self._ask(waiting)

    def connect(self) -> None:
        """A client, and at least one worker; DeviceError if nobody answers, or no worker has the same gemmprof."""
        again = self._client is not None
        self._client = None
        with suppress(Exception):
            self._stack.close()
        end = time.monotonic() + self._wait
        while True:
            self._stack = ExitStack()
            try:
                self._client = self._stack.enter_context(
                    connection.connected(self._where, wait=self._wait, progress=self._progress)
                )
                break
            except connection.NoScheduler as error:
                if not again:
                    raise
                if time.monotonic() > end:
                    raise connection.SchedulerGone(error.message) from error
                time.sleep(POLL_SECONDS)
        self._await_workers(end)
        self._refuse_others()

    def _await_workers(self, end: float) -> None:
        """Until there is a worker; DeviceError if none came in time."""
        told = False
        while self._is_connected() and not self._threads():
            if time.monotonic() > end:
                raise no_readers(self._wait)
            if not told:
                self._progress.note(f"waiting for a worker, {self._wait:.0f} s at most")
                told = True
            time.sleep(POLL_SECONDS)

    def _refuse_others(self) -> None:
        assert self._client is not None
        try:
            answers = self._client.run(code_digest, on_error="return")
        except Exception:
            return  # a worker went away this very moment; each task looks again
        other = [
            f"{address}: {'another version' if isinstance(answer, str) else f'{type(answer).__name__}: {answer}'}"
            for address, answer in answers.items()
            if answer != code_digest() and not isinstance(answer, OSError)
        ]
        if other:
            raise connection.other_code(other)


def no_readers(seconds: float) -> DeviceError:
    """The error where a cluster has no worker."""
    return DeviceError(
        f"the cluster has had no worker for {seconds:.0f} s",
        f"start some: {START_READER}",
        "a batch system may not have started the jobs yet: --wait SECONDS",
    )
