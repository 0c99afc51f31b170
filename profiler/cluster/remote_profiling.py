"""Profiling on a cluster: one ncu process a machine at a time, each a pass as at home, on a disk of the worker's."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gemmprof.base.foreign_files import read_end
from gemmprof.gpu.toolchain import Tool
from gemmprof.model import Card
from gemmprof.profiler.cluster import remote
from gemmprof.profiler.cluster.gpu_workers import GpuWorkers
from gemmprof.profiler.cluster.remote import Content, Errand, Extension
from gemmprof.profiler.job import Job, Task, collecting
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.ncu import profile_pass
from gemmprof.profiler.ncu.command import WITHOUT_NCU, require_ncu
from gemmprof.profiler.ncu.lean_sections import section_folder
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.program import counted_interrupts
from gemmprof.profiler.settings import Settings
from gemmprof.profiler.site import VISIBLE, NotBegun

# Passes a machine: more even out kernels of different length, fewer start ncu and torch less often.
SHARES_PER_HOST = 2

POLL_SECONDS = 0.5
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
