"""Tasks on the workers that declare a GPU: each is done whoever comes and goes, and lost only with the cluster.

The scheduler gives a task to a free worker, and does those of a lost worker again elsewhere. What it cannot know is
done here: a worker whose GPU is gone gets no more, and what only workers may do that are gone goes to others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import DeviceError
from gemmprof.base.foreign_files import read_end
from gemmprof.base.progress import Progress
from gemmprof.gpu.toolchain import Tool
from gemmprof.model import Card
from gemmprof.profiler.cluster import connection, remote
from gemmprof.profiler.cluster.remote import Content, Errand, Extension
from gemmprof.profiler.job import Job, Task, collecting, counted_interrupts
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.ncu import profile_pass
from gemmprof.profiler.ncu.command import WITHOUT_NCU, require_ncu, section_folder
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.settings import Settings
from gemmprof.profiler.site import START_SECONDS, VISIBLE, NotBegun

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


# --- Profiling on a cluster -------------------------------------------------------------------------------------------


# Passes a machine: more even out kernels of different length, fewer start ncu and torch less often.
SHARES_PER_HOST = 2

REPORT_SECONDS = 300.0  # how long a report of hundreds of megabytes may take to arrive
LONGEST_TEXT = 256 << 10  # bytes of a log that come along


class ClusterProfiling(Profiling):
    """Profiles what the run lacks on the machines of a cluster."""

    def __init__(self, keeper: Keeper, ncu: Tool | None, workers: GpuWorkers) -> None:
        super().__init__(keeper, ncu)
        self._workers = workers
        self._naming = threading.Lock()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Nothing to get ready: the workers start ncu."""
        yield

    def do(self) -> None:
        """Profile what is missing: the tasks in shares, one share a machine at a time."""
        tasks = self._keeper.unprofiled()
        hosts = self._workers.hosts
        size = max(1, -(-len(tasks) // (SHARES_PER_HOST * len(hosts) if len(hosts) > 1 else 1)))
        shares = deque(tasks[start : start + size] for start in range(0, len(tasks), size))

        def work_off(host: str) -> None:
            while not self._keeper.stopping.is_set():
                try:
                    share = shares.popleft()
                except IndexError:
                    return
                self._do(share, partial(self._on_host, host))

        heard = 0
        with counted_interrupts() as interrupts, ThreadPoolExecutor(len(hosts)) as pool:
            working = [pool.submit(work_off, host) for host in hosts]
            while not all(future.done() for future in working):
                for _ in interrupts[heard:]:
                    self._keeper.tell_interrupt()
                heard = len(interrupts)
                if heard == 1:
                    self._workers.end()
                time.sleep(POLL_SECONDS)
        for future in working:
            future.result()
        if self._keeper.stopping.is_set():
            raise Interrupted

    def _on_host(self, host: str, tasks: Sequence[Task]) -> profile_pass.PassOutcome:
        """A pass that should run on this machine; where that is lost, on any other."""
        keeper = self._keeper
        with self._naming:
            files = profile_pass.next_pass(keeper.directory)
            keeper.job(tasks, files.events).save(files.job)  # which takes the name
        delivery = self._delivered(host, tasks, files)
        if delivery is None:
            return profile_pass.PassOutcome(interrupted=True)
        for end, text in delivery.texts.items():
            files.log.with_name(files.name + end).write_text(text, encoding="utf-8")
        name = str(files.report.relative_to(files.directory))
        finished = tuple(dataclasses.replace(task, report=name) for task in delivery.outcome.finished)
        for profiled in finished:
            keeper.progress.done(f"profile {keeper.label(profiled.task.key)} ({delivery.card.label})")
        came = dataclasses.replace(delivery.outcome, finished=finished, card=delivery.card)
        if keeper.stopping.is_set():
            # A pass that was stopped before its first launch is no failure of its stage.
            return dataclasses.replace(came, error=None, attributed=None, interrupted=True)
        return came

    def _delivered(self, host: str, tasks: Sequence[Task], files: profile_pass.PassFiles) -> Delivery | None:
        """Have the pass made and its report written; None where Ctrl-C came first."""
        made = self._workers.with_gpu(profile_there, tuple(tasks), self._keeper.settings)
        try:
            delivery: Delivery = self._workers.do(
                made, host=host, fetching=REPORT_SECONDS, leaving=self._keeper.leaving.is_set
            )
        except NotBegun:
            return None
        if delivery.report is not None:
            delivery.report.write(files.report)
        return delivery


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of a pass."""

    # as at home; its report and launches are named as in the worker's folder
    outcome: profile_pass.PassOutcome
    card: Card
    report: Content | None  # None where nothing was profiled
    texts: Mapping[str, str]  # ncu's log and the program's output, by the end of the file's name


def profile_there(
    errand: Errand, extension: Extension | None, tasks: tuple[Task, ...], settings: Settings
) -> Delivery:
    """Profile these tasks on a free GPU of this worker.

    Raises:
        GpuGone: no GPU of that model can be used here.
        DeviceError: there is no ncu here.
    """
    ncu = require_ncu(WITHOUT_NCU)
    with tempfile.TemporaryDirectory(prefix="gemmprof-pass-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in (profile_pass.REPORTS, profile_pass.LOGS):
            (folder / part).mkdir()
        files = profile_pass.next_pass(folder)
        environment = remote.environment(errand.files(extension))
        with ExitStack() as stack:
            card = stack.enter_context(remote.GPUS.one(errand.model))
            stack.enter_context(remote.alone_on_host())
            remote.GPUS.drop(card)  # the profiler needs it for itself
            lock = stack.enter_context(collecting(folder))
            job = Job(tasks, folder, files.events, folder / STOP_FILE, settings.seed)
            if not stack.enter_context(remote.at_work(errand.command, job.stop_file)):
                return Delivery(profile_pass.PassOutcome(interrupted=True), card, None, {})
            sections = section_folder(ncu, settings.metric_set, timeline=settings.timeline)
            program = profile_pass.start_pass(
                ncu,
                files,
                collection=settings.collection_options,
                clock_control=settings.clock_control,
                section_folder=stack.enter_context(sections),
                lock=lock,
                environment={**environment, VISIBLE: card.uuid},
            )
            outcome = profile_pass.finish_pass(
                program, files, job, on_event=lambda event: None, on_interrupt=lambda: None
            )
        report = Content.of(files.report) if outcome.finished else None
        written = (files.log, files.output, files.events)
        texts = {path.name.removeprefix(files.name): read_end(path, LONGEST_TEXT) for path in written}
        return Delivery(outcome, card, report, texts)
