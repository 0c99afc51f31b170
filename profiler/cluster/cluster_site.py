"""A cluster as the place where work runs, behind the same seam as this machine, and what its workers have and lack."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gemmprof
from gemmprof.base.errors import DeviceError
from gemmprof.base.foreign_files import open_lock, read_end
from gemmprof.base.progress import SILENT, Progress
from gemmprof.base.system import cache_directory
from gemmprof.gpu.devices import VISIBLE, Tool
from gemmprof.kernels.compiler import Candidate, architecture_number
from gemmprof.kernels.plugin import PLUGIN_VARIABLE
from gemmprof.model import Card
from gemmprof.model.answers import Check, WorkerReport
from gemmprof.model.ladder import Variant
from gemmprof.profiler import machine as machine_checks
from gemmprof.profiler.cluster import connection, remote
from gemmprof.profiler.cluster.connection import MOST_AT_ONCE, POLL_SECONDS, REPORT_SECONDS, Sender, Workers
from gemmprof.profiler.cluster.remote import Content, Errand, Extension, code_digest
from gemmprof.profiler.job import Job, Task, collecting, counted_interrupts
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.ncu import profile_pass
from gemmprof.profiler.ncu.command import WITHOUT_NCU, require_ncu, section_folder
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.settings import Settings
from gemmprof.profiler.site import (
    CRASHED,
    START_SECONDS,
    Answer,
    Compilers,
    Machine,
    NotBegun,
    Request,
    Work,
)

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult

WAIT_SECONDS = 300.0


@contextmanager
def cluster_site(
    where: str | connection.Jobs, *, wait: float = WAIT_SECONDS, progress: Progress = SILENT
) -> Iterator[ClusterSite]:
    """A cluster, connected, with at least one worker that has a GPU and the same gemmprof as here.

    ``wait``: seconds to wait for a scheduler file, and for workers, at the beginning and whenever none is left.
    UsageError if the extra is missing, or an option is not known; DeviceError if nobody answers, or no worker comes.
    """
    with (
        connection.connected(where, wait=wait, progress=progress) as client,
        GpuWorkers(client, wait, progress, gpu=True) as workers,
    ):
        try:
            yield ClusterSite(workers)
        finally:
            # Also where the command failed: children on the workers would keep their GPUs' memory.
            connection.bounded(lambda: client.run(remote.close, on_error="ignore"))
            ending = remote.Ending(workers.errand.command).name
            connection.bounded(lambda: client.unregister_worker_plugin(ending))


class GpuWorkers(Workers):
    """Those that declare a GPU."""

    errand: Errand  # what every task brings along
    extension: Any = None  # future of it (`remote.Extension`), once it is built; tasks bring it along, too

    def end(self) -> None:
        """Have the workers begin nothing more of this command; what was begun goes on."""
        self.ending = True
        connection.bounded(lambda: self.client.register_plugin(remote.Ending(self.errand.command)))

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


class ClusterSite:
    """The machines of a cluster; see `cluster_site`."""

    def __init__(self, workers: GpuWorkers) -> None:
        self._client, self.workers = workers.client, workers
        plugin = os.environ.get(PLUGIN_VARIABLE)
        carried = {PLUGIN_VARIABLE: Content.of(Path(plugin))} if plugin else {}
        same = "install the same gemmprof on every worker: pip install '.[cluster,gpu]' in one checkout"
        addresses = list(connection.workers(workers.client, gpu=True))
        answers = workers.client.run(remote.look, workers=addresses, on_error="return")
        self._facts: dict[str, remote.WorkerFacts] = {}  # what each worker with a GPU is like, by address
        for address, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # it went away this very moment
            if not isinstance(answer, remote.WorkerFacts):
                found = f"{type(answer).__name__}: {answer}"
                raise DeviceError(f"worker {address} cannot run gemmprof", same, found=found)
            if answer.sources != code_digest():
                named = f"{address} on {answer.host}: {answer.versions.get('gemmprof')}"
                raise connection.other_code([named])
            self._facts[address] = answer
        models = Counter(gpu.name for facts in self._facts.values() for gpu in facts.gpus)
        if not models:
            raise DeviceError(
                "CUDA shows no GPU to any worker of the cluster",
                "`nvidia-smi` must list the GPU there",
                "a Slurm job needs --gres=gpu:1, a pod nvidia.com/gpu: 1",
                found=f"workers on {', '.join(sorted({facts.host for facts in self._facts.values()}))}",
            )
        # The model that most workers have: results of different models are not compared.
        self._model = models.most_common(1)[0][0]
        workers.errand = Errand(uuid.uuid4().hex, code_digest(), self._model, carried)

    def check(self, *, profile: bool, runs: Path) -> Machine:
        """Make sure that workers and this machine can do what is asked; DeviceError naming what is missing."""
        space = machine_checks.check_space(runs)
        if space.ok is False:
            raise DeviceError(f"{space.name}: {space.found}", *space.remedies)
        mine = self._mine()
        needed = {"GPU", "driver", "torch", "nvcc", "C++ compiler"}
        needed |= {"ncu", "counter permission"} if profile else set()
        for address, facts in mine.items():
            for check in facts.checks:
                if check.name in needed and check.ok is False:
                    what = f"worker {address} on {facts.host}: {check.name}: {check.found}"
                    raise DeviceError(what, *check.remedies)
        for name in ("gemmprof", "torch", "cuda", "nvcc", *(("ncu",) if profile else ())):
            _agree(name, {address: facts.versions.get(name, "none") for address, facts in mine.items()})
        first = next(iter(mine.values()))
        gpu = next(gpu for gpu in first.gpus if gpu.name == self._model)
        ncu = first.ncu if profile else None
        return Machine(gpu, ncu, pinned=True, versions=dict(first.versions))

    def _mine(self) -> dict[str, remote.WorkerFacts]:
        """The workers that have the model of GPU that is worked on, by address."""
        return {at: it for at, it in self._facts.items() if any(gpu.name == self._model for gpu in it.gpus)}

    def build(self, machine: Machine, progress: Progress) -> BuildResult:
        """Have one worker build the extension, which the others fetch by its content; errors as `kernels.build`."""
        from gemmprof.kernels.build import tuned_parameters

        label = "{}.{}".format(*machine.gpu.compute_capability)
        parameters = tuned_parameters(cache_directory(), [architecture_number(label)])
        progress.note(f"one worker builds the extension for compute capability {label}")
        self.workers.extension = self._client.submit(
            remote.build_extension, label, parameters, resources={connection.RESOURCE: 1}, pure=True
        )
        record: BuildResult
        (record,) = self.workers.do(
            lambda options: self._client.submit(remote.parts, self.workers.extension, "record", **options)
        )
        return record

    def places(self, work: Work, progress: Progress, keep_open: Sequence[int] = ()) -> ClusterPlaces:
        """A child on each GPU of the workers."""
        others = {gpu.name for facts in self._facts.values() for gpu in facts.gpus} - {self._model}
        if others:
            progress.note(f"works on {self._model}; left alone: {', '.join(sorted(others))}")
        return ClusterPlaces(self.workers, work)

    def profiler(self, keeper: Keeper, machine: Machine) -> ClusterProfiling:
        """One ncu a machine at a time."""
        return ClusterProfiling(keeper, machine.ncu, self.workers)

    def compilers(self, jobs: int) -> Compilers:
        """The workers compile; how many at a time is theirs to say (``--nthreads``), and they come and go."""
        banners = {address: facts.banner for address, facts in self._mine().items()}
        _agree("nvcc", banners)

        banner = next(iter(banners.values()))
        return Compilers(MOST_AT_ONCE, banner, self._compiled, lambda: self.workers.threads)

    def _compiled(self, variant: Variant, architecture: str) -> Candidate:
        """A candidate whose library stays with the workers until one measures it."""
        made: list[Any] = []

        def send(options: dict[str, Any]) -> Any:
            made.append(self._client.submit(remote.compile_library, variant, architecture, **options))
            return self._client.submit(remote.parts, made[-1], "kernels", "error", **options)

        kernels, error = self.workers.do(send)
        if error is not None:
            raise error
        return Candidate(made[-1], kernels)


class ClusterPlaces:
    """GPUs of one model on the workers of a cluster: requests are tasks that carry the resource GPU = 1."""

    def __init__(self, workers: GpuWorkers, work: Work) -> None:
        self._workers, self._work = workers, work
        self._lock = threading.Lock()
        self._cards: dict[Card, None] = {}
        self.facts: Mapping[str, Any] = {}  # what the first child said of its GPU
        self._left = threading.Event()
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE)

    def __enter__(self) -> ClusterPlaces:
        """Have a child ready on one worker; others make theirs with their first request; DeviceError if none can."""
        start = self._workers.with_gpu(remote.start, self._work)
        self.facts = self._workers.do(start, takes=START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._pool.shutdown(cancel_futures=True)

    @property
    def cards(self) -> tuple[Card, ...]:
        """The GPUs that answered so far."""
        with self._lock:
            return tuple(self._cards)

    @property
    def width(self) -> int:
        """How many requests can be answered at once, as far as the workers declare it."""
        good = self._workers.good.values()
        return max(1, int(sum(facts["resources"][connection.RESOURCE] for facts in good)))

    def submit(self, request: Request) -> Future[Answer]:
        """Queue a request; one whose child died is tried once more on another worker."""
        return self._pool.submit(self._answer, request)

    def cancel_waiting(self) -> None:
        """Have the workers begin no more requests; each answers which those are."""
        self._workers.end()

    def leave(self, card: Card) -> bool:
        """Nothing to do: who profiles takes the resource as everybody does."""
        return True

    def _answer(self, request: Request) -> Answer:
        library = request.candidate.library if request.candidate is not None else None
        ask = self._workers.with_gpu(remote.ask, self._work, dict(request.record), request.seconds, library)
        avoid = ""
        while True:
            try:
                left = self._left.is_set
                record, card, worker = self._workers.do(ask, avoid=avoid, takes=request.seconds, leaving=left)
            except connection.WorkersKilled:
                lost = {"status": CRASHED, "detail": "it took several workers along"}
                return Answer(lost, next(iter(self._cards), Card(self._workers.errand.model, -1, "")))
            if record.get("status") == remote.NOT_BEGUN:
                raise NotBegun
            with self._lock:
                self._cards[card] = None
            if record.get("status") != CRASHED or avoid or len(self._workers.good) < 2:
                return Answer(record, card)
            avoid = worker


# --- Profiling on a cluster -------------------------------------------------------------------------------------------

SHARES_PER_HOST = 2  # passes a machine: more even out their lengths, fewer start ncu and torch less often
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
        made = self._workers.with_gpu(profile_there, tuple(tasks), keeper.settings)
        try:
            left = keeper.leaving.is_set
            delivery: Delivery = self._workers.do(made, host=host, fetching=REPORT_SECONDS, leaving=left)
        except NotBegun:  # Ctrl-C came first
            return profile_pass.PassOutcome(interrupted=True)
        if delivery.report is not None:
            delivery.report.write(files.report)
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


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of a pass."""

    outcome: profile_pass.PassOutcome  # as at home; files are named as in the worker's folder
    card: Card
    report: Content | None  # None where nothing was profiled
    texts: Mapping[str, str]  # ncu's log and the program's output, by the end of the file's name


def profile_there(
    errand: Errand, extension: Extension | None, tasks: tuple[Task, ...], settings: Settings
) -> Delivery:
    """Profile these tasks on a free GPU of this worker; GpuGone without one of that model, DeviceError without ncu."""
    ncu = require_ncu(WITHOUT_NCU)
    with tempfile.TemporaryDirectory(prefix="gemmprof-pass-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in (profile_pass.REPORTS, profile_pass.LOGS):
            (folder / part).mkdir()
        files = profile_pass.next_pass(folder)
        environment = remote.environment(errand.files(extension))
        with ExitStack() as stack:
            card = stack.enter_context(remote.GPUS.one(errand.model))
            # One ncu at a time on a machine: two take about as long as one after the other, each on its GPU. Not Dask's
            # Lock: that of a killed worker is free only after its lease (dask/distributed#8770), and its ncu may still
            # run by then; the system frees this one with the last process that holds it.
            alone = Path(tempfile.gettempdir()) / f"gemmprof-ncu-{os.getuid()}.lock"
            fcntl.flock(stack.enter_context(open_lock(alone, private=True)), fcntl.LOCK_EX)
            remote.GPUS.drop(card)  # the profiler needs it for itself
            lock = stack.enter_context(collecting(folder))
            job = Job(tasks, folder, files.events, folder / STOP_FILE, settings.seed)
            if not stack.enter_context(remote.at_work(errand.command, job.stop_file)):
                return Delivery(profile_pass.PassOutcome(interrupted=True), card, None, {})
            lean = section_folder(ncu, settings)
            given = settings, stack.enter_context(lean), lock, {**environment, VISIBLE: card.uuid}
            program = profile_pass.start_pass(ncu, files, *given)
            outcome = profile_pass.finish_pass(program, files, job)
        report = Content.of(files.report) if outcome.finished else None
        written = (files.log, files.output, files.events)
        texts = {path.name.removeprefix(files.name): read_end(path, LONGEST_TEXT) for path in written}
        return Delivery(outcome, card, report, texts)


# --- What workers are like --------------------------------------------------------------------------------------------


def _agree(name: str, versions: dict[str, str]) -> None:
    """Refuse workers that would measure different things."""
    if len(set(versions.values())) > 1:
        raise DeviceError(
            f"the workers have different versions of {name}: their numbers cannot be compared",
            "start them from one environment or image",
            found=", ".join(f"{address}: {version}" for address, version in versions.items()),
        )


# Packages by which the parts of a cluster talk to each other.
SAME_EVERYWHERE = ("distributed", "dask", "cloudpickle", "msgpack")
START_REMEDY = f"start it with: {connection.START_WORKER}"


def examine_cluster(address: str) -> tuple[WorkerReport, ...]:
    """Look at every worker of a cluster, by machine; UsageError without the extra, DeviceError without scheduler."""
    with connection.connected(address) as client:
        workers: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
        answers = client.run(remote.look, on_error="return")
        versions = client.get_versions()
        ours, theirs = _spoken(versions["client"]), versions["workers"]
        reports = [
            _report(worker, facts, answers.get(worker), ours, _spoken(theirs.get(worker, {})))
            for worker, facts in workers.items()
        ]
    return tuple(sorted(reports, key=lambda report: (report.host, report.worker)))


def _spoken(versions: Mapping[str, Any]) -> dict[str, str]:
    """Versions of what must be the same on client, scheduler and workers, as Dask tells them of one."""
    packages = versions.get("packages", {})
    names = ("python", *SAME_EVERYWHERE)
    return {name: (packages.get(name) or "none").removesuffix(".final.0") for name in names}


def _report(
    worker: str, facts: Mapping[str, Any], answer: Any, ours: Mapping[str, str], theirs: Mapping[str, str]
) -> WorkerReport:
    if not isinstance(answer, remote.WorkerFacts):
        found = f"{type(answer).__name__}: {answer}".splitlines()[0]
        remedy = "install it there: pip install '.[cluster,gpu]' in the checkout of gemmprof"
        return WorkerReport(worker, str(facts.get("host", "")), (Check("gemmprof", False, found, (remedy,)),))
    declared = facts.get("resources", {}).get(connection.RESOURCE, 0)
    same = answer.sources == code_digest()
    other = [f"{name} {theirs[name]} (here {ours[name]})" for name in ours if theirs[name] != ours[name]]
    # Pickles of other minor versions of Python do not pass; a patch release apart they do.
    if other == [name for name in other if name.startswith("python")] and (
        theirs["python"].split(".")[:2] == ours["python"].split(".")[:2]
    ):
        other = []
    found = ", ".join(other) if other else f"distributed {ours['distributed']}, Python {theirs['python']}"
    checks = [
        Check(
            "gemmprof", same, answer.versions["gemmprof"] + ("" if same else ", with other code than here"),
            () if same else (f"install the same as here ({gemmprof.__version__}) on every worker",),
        ),
        Check("versions", not other, found, ("use one environment for all of the cluster",) if other else ()),
        Check(
            f"resource {connection.RESOURCE}", declared >= 1, f"{declared:g}",
            () if declared >= 1 else (START_REMEDY,),
        ),
        *(check for check in answer.checks if check.name != "disk space"),
    ]  # fmt: skip
    return WorkerReport(worker, answer.host, tuple(checks))
