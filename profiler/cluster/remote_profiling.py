"""Profiling on a cluster: one ncu process a machine at a time, each a pass as at home, on a disk of the worker's."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import ProfilerError
from gemmprof.base.foreign_files import read_end
from gemmprof.gpu.toolchain import Tool
from gemmprof.model import Card
from gemmprof.profiler.cluster import remote
from gemmprof.profiler.cluster.connection import (
    RESOURCE,
    ResultLost,
    as_gemmprof_error,
    bounded,
    gpu_workers,
    no_workers,
    result_of,
)
from gemmprof.profiler.cluster.content import Content
from gemmprof.profiler.job import Job, Task
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.lock import collecting
from gemmprof.profiler.ncu.command import require_ncu
from gemmprof.profiler.ncu.lean_sections import section_folder
from gemmprof.profiler.ncu.profile_pass import (
    LOGS,
    REPORTS,
    PassFiles,
    PassOutcome,
    finish_pass,
    next_pass,
    start_pass,
)
from gemmprof.profiler.places.gpu_child import VISIBLE
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.program import counted_interrupts
from gemmprof.profiler.settings import Settings

if TYPE_CHECKING:
    from distributed import Client

TRIES = 4  # how often a pass begins anew because its worker was lost with the report

# Passes a machine: more even out kernels of different length, fewer start ncu and torch less often.
SHARES_PER_HOST = 2

POLL_SECONDS = 0.5
REPORT_SECONDS = 300.0  # how long a report of hundreds of megabytes may take to arrive
LONGEST_TEXT = 256 << 10  # bytes of a log that come along


class ClusterProfiling(Profiling):
    """Profiles what the run lacks on the machines of a cluster.

    Args:
        command: whose passes these are, as for `ClusterPlaces`.
        model: the model of GPU.
        extension: the future of the extension (`remote.Extension`), once it is built.
        carried: more files, by the variable that names them.
        patience: seconds without any worker until the passes are given up.
    """

    def __init__(
        self,
        keeper: Keeper,
        ncu: Tool | None,
        client: Client,
        *,
        command: str,
        model: str,
        extension: Callable[[], Any],
        carried: Mapping[str, Content],
        patience: float,
    ) -> None:
        super().__init__(keeper, ncu)
        self._patience = patience
        self._client, self._command, self._model = client, command, model
        self._extension, self._carried = extension, dict(carried)
        self._naming = threading.Lock()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Nothing to get ready: the workers start ncu."""
        yield

    def do(self) -> None:
        """Profile what is missing: the tasks in shares, one share a machine at a time."""
        tasks = self._keeper.unprofiled()
        hosts = self._hosts()
        size = max(1, -(-len(tasks) // (SHARES_PER_HOST * len(hosts) if len(hosts) > 1 else 1)))
        shares = deque(tasks[start : start + size] for start in range(0, len(tasks), size))

        def work_off(host: str) -> None:
            while not self._keeper.stopping.is_set():
                try:
                    share = shares.popleft()
                except IndexError:
                    return
                _OnHost(self, host)._do(share)

        heard = 0
        with counted_interrupts() as interrupts, ThreadPoolExecutor(len(hosts)) as pool:
            working = [pool.submit(work_off, host) for host in hosts]
            while not all(future.done() for future in working):
                for _ in interrupts[heard:]:
                    self._keeper.tell_interrupt()
                heard = len(interrupts)
                if heard == 1:
                    bounded(lambda: self._client.register_plugin(remote.Ending(self._command)))
                time.sleep(POLL_SECONDS)
        for future in working:
            future.result()
        if self._keeper.stopping.is_set():
            raise Interrupted

    def _hosts(self) -> tuple[str, ...]:
        """The machines that have workers with a GPU."""
        found = {facts["host"] for facts in gpu_workers(self._client).values()}
        return tuple(sorted(found)) or ("",)


class _OnHost(Profiling):
    """Passes that should run on one machine; where it is lost, on any other."""

    def __init__(self, whole: ClusterProfiling, host: str) -> None:
        super().__init__(whole._keeper, whole._ncu)
        self._whole, self._host = whole, host

    def _once(self, tasks: Sequence[Task]) -> PassOutcome:
        keeper, whole = self._keeper, self._whole
        order = Order(whole._command, tuple(tasks), keeper.settings, whole._model)
        with whole._naming:
            files = next_pass(keeper.directory)
            keeper.job(tasks, files.events).save(files.job)  # which takes the name
        delivery = self._delivered(order, files)
        if delivery is None:
            return PassOutcome(interrupted=True)
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

    def _here(self) -> frozenset[str]:
        """The workers of this machine, none in particular where there are none any more."""
        workers = gpu_workers(self._whole._client)
        return frozenset(address for address, facts in workers.items() if facts["host"] == self._host)

    def _delivered(self, order: Order, files: PassFiles) -> Delivery | None:
        """Have the pass made and its report written; None where Ctrl-C came first.

        Raises:
            ProfilerError: its workers were lost again and again.
        """
        client, whole = self._whole._client, self._whole
        for _ in range(TRIES):
            here = self._here()
            if self._keeper.stopping.is_set():
                return None
            task: Any = client.submit(
                profile_there,
                order,
                whole._carried,
                whole._extension(),
                key=f"gemmprof-profile-{uuid.uuid4().hex}",
                resources={RESOURCE: 1},
                workers=sorted(here) or None,
                pure=False,
            )
            done = threading.Event()
            task.add_done_callback(lambda _, done=done: done.set())
            seen = time.monotonic()
            while not done.wait(POLL_SECONDS):
                if self._keeper.leaving.is_set():
                    task.cancel()
                    return None
                workers = gpu_workers(client).keys()
                if workers:
                    seen = time.monotonic()
                elif time.monotonic() - seen > whole._patience:
                    task.cancel()
                    raise no_workers(whole._patience, ())
                if here and not here & workers:
                    break  # the machine is gone, and Dask would wait for it for ever (dask/distributed#7346)
            if not done.is_set():
                task.cancel()
                continue
            try:
                delivery: Delivery = result_of(task, REPORT_SECONDS)
            except (remote.GpuGone, ResultLost):
                continue
            except Exception as error:
                raise as_gemmprof_error(error) from error
            if delivery.report is not None:
                delivery.report.write(files.report)
            return delivery
        raise ProfilerError(
            "the workers that profiled were lost, one after the other",
            remedies=["start more workers, then `gemmprof collect --resume`"],
        )


@dataclass(frozen=True, slots=True)
class Order:
    """What to profile and how, and for which command."""

    command: str
    tasks: tuple[Task, ...]
    settings: Settings
    model: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of a pass.

    Attributes:
        outcome: as at home; its report and launches are named as in the worker's folder.
        report: None where nothing was profiled.
        texts: ncu's log and the program's output, by the end of the file's name.
    """

    outcome: PassOutcome
    card: Card
    report: Content | None
    texts: Mapping[str, str]


def profile_there(
    order: Order, carried: Mapping[str, Content], extension: remote.Extension | None
) -> Delivery:
    """Profile the tasks of an order on a free GPU of this worker.

    Raises:
        GpuGone: no GPU of that model can be used here.
        DeviceError: there is no ncu here.
    """
    ncu = require_ncu()
    with tempfile.TemporaryDirectory(prefix="gemmprof-pass-", ignore_cleanup_errors=True) as folder:
        return _profiled_in(Path(folder), ncu, order, carried, extension)


def _profiled_in(
    folder: Path, ncu: Tool, order: Order, carried: Mapping[str, Content], extension: remote.Extension | None
) -> Delivery:
    settings = order.settings
    for name in (REPORTS, LOGS):
        (folder / name).mkdir()
    files = next_pass(folder)
    environment = remote.environment({**carried, **(extension.carried if extension else {})})
    with ExitStack() as stack:
        card = stack.enter_context(remote.GPUS.one(order.model))
        stack.enter_context(remote.alone_on_host())
        remote.GPUS.drop(card)  # the profiler needs it for itself
        lock = stack.enter_context(collecting(folder))
        job = Job(order.tasks, folder, files.events, folder / STOP_FILE, settings.seed)
        if not stack.enter_context(remote.at_work(order.command, job.stop_file)):
            return Delivery(PassOutcome(interrupted=True), card, None, {})
        program = start_pass(
            ncu,
            files,
            collection=settings.collection_options,
            clock_control=settings.clock_control,
            section_folder=stack.enter_context(
                section_folder(ncu, settings.metric_set, timeline=settings.timeline)
            ),
            lock=lock,
            environment={**environment, VISIBLE: card.uuid},
        )
        outcome = finish_pass(program, files, job, on_event=lambda event: None, on_interrupt=lambda: None)
    report = Content.of(files.report) if outcome.finished else None
    written = (files.log, files.output, files.events)
    texts = {path.name.removeprefix(files.name): read_end(path, LONGEST_TEXT) for path in written}
    return Delivery(outcome, card, report, texts)
