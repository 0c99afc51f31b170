"""The way to a cluster (a scheduler that runs already, or one that starts workers through Slurm or PBS), and tasks on
its workers: each is done whoever comes and goes, and lost only with the cluster.

The scheduler gives a task to a free worker, and does those of a lost worker again elsewhere. What it cannot know is
done here: a worker whose GPU is gone gets no more, and what only workers may do that are gone goes to others.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import gemmprof
from gemmprof.base.errors import DeviceError, GemmprofError, UsageError
from gemmprof.base.foreign_files import read_text
from gemmprof.base.progress import SILENT, Progress
from gemmprof.base.system import cache_directory, in_time
from gemmprof.profiler.cluster.remote import GpuGone
from gemmprof.profiler.site import START_SECONDS, NotBegun

if TYPE_CHECKING:
    from distributed import Client

RESOURCE = "GPU"
CONNECT_SECONDS = 15.0
FILE_SECONDS = 5.0  # how long a scheduler file may stay unfinished
ANSWER_SECONDS = 5.0  # how long workers are waited for that are told something beside their tasks
START_WORKER = f"dask worker ADDRESS --nthreads 4 --resources {RESOURCE}=1"
START_READER = "dask worker ADDRESS --nthreads 1 --nworkers auto"
_ADDRESS = re.compile(r"(tcp|tls|ucx|ucxx|ws|wss|inproc)://\S+|[^\s/]+:\d+")
# Where a connection is encrypted, or stays on this machine.
_HERE = re.compile(r"(tls|ucx|ucxx|wss|inproc)://.*|(\w+://)?(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?")

# Options of dask-jobqueue that take several values, by the name they have here.
_LISTS = {"directive": "job_extra_directives", "prologue": "job_script_prologue"}


@dataclass(frozen=True, slots=True)
class Jobs:
    """Workers that a batch system starts."""

    system: str  # ``slurm`` or ``pbs``
    count: int  # jobs, each with one worker and one GPU
    options: tuple[str, ...] = ()  # dask-jobqueue's, as ``name=value``
    gpu: bool = True  # each gets one; workers that read reports need none

    def arguments(self) -> dict[str, Any]:
        """What dask-jobqueue is called with, the user's own on top; UsageError if an option is no ``name=value``."""
        found: dict[str, Any] = {}
        for option in self.options:
            name, equals, value = option.partition("=")
            if not equals or not name.isidentifier():
                fix = "--job queue=gpu --job walltime=01:00:00 --job directive=--gres=gpu:h200:1"
                raise UsageError(f"--job {option}: not of the form name=value", fix)
            if name in _LISTS:
                found.setdefault(_LISTS[name], []).append(value)
            else:
                found[name] = int(value) if value.isdecimal() and name in ("cores", "processes") else value
        found.setdefault("cores", 8)
        found.setdefault("memory", "32GB")
        # One process reads one batch at a time: as many as there are cores.
        found.setdefault("processes", 1 if self.gpu else found["cores"])
        asked = any("gpu" in text for text in found.get(_LISTS["directive"], ()))
        if self.gpu and self.system == "slurm" and not asked:
            found.setdefault(_LISTS["directive"], []).append("--gres=gpu:1")
        if self.system == "pbs":
            ngpus = ":ngpus=1" if self.gpu else ""
            found.setdefault("resource_spec", f"select=1:ncpus={found['cores']}{ngpus}")
        # Whoever reaches a scheduler runs code in this process: certificates made for this run, which the workers get
        # as files that only this user reads, let nobody else in. Nobody asked for its pages.
        found.setdefault("security", True)
        found.setdefault("scheduler_options", {"dashboard": False, "dashboard_address": "127.0.0.1:0"})
        gpu = ("--resources", f"{RESOURCE}=1") if self.gpu else ()
        found["worker_extra_args"] = ["--no-dashboard", *gpu]
        return found


@contextmanager
def connected(where: str | Jobs, *, wait: float = 0.0, progress: Progress = SILENT) -> Iterator[Client]:
    """A client of the cluster, for as long as the context; ``wait`` so many seconds for a scheduler file.

    Raises:
        UsageError: the extra is not installed, an option is not known, or there is no such scheduler file.
        DeviceError: nobody answers.
    """
    # What Dask tells its log is for its own debugging; what matters is said by us.
    for name in ("distributed", "distributed.client", "distributed.core", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        address = stack.enter_context(_started(where)) if isinstance(where, Jobs) else where
        yield stack.enter_context(_client(address, wait, progress))


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out while Dask starts a loop.

    A client whose start failed (no certificates, say) is garbage that closes itself when it is collected, for which it
    takes the lock that ``LoopRunner.start`` of the next one holds: collected there, the process waits for itself for
    ever.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _client(address: Any, wait: float, progress: Progress) -> Iterator[Client]:
    try:
        from distributed import Client
    except ImportError as error:
        raise missing_extra(error) from None
    listens = address
    if isinstance(address, str) and address.endswith(".json"):
        await_file(Path(address), wait, progress)
        listens = _address_in(Path(address))
    elif isinstance(address, str) and not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"--cluster: '{address}' is no address of a scheduler",
            "--cluster tcp://HOST:8786 or tls://HOST:8786, as `dask scheduler` prints it, or its scheduler file "
            "(.json); http:// is the address of its pages",
        )
    if isinstance(listens, str):
        _check_way(listens)
    if isinstance(listens, str) and not _HERE.fullmatch(listens):
        what = "is not encrypted: whoever reaches it runs code on its workers and reads what they send"
        progress.note(f"{listens} {what}")
    try:
        with no_collection():
            client = Client(listens, timeout=CONNECT_SECONDS, set_as_default=False, name="gemmprof")
    except (OSError, TimeoutError, ValueError) as error:
        raise NoScheduler(
            f"no Dask scheduler answers at {address}",
            "start one: dask scheduler (it prints its address), then on each GPU: " + START_WORKER,
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=5)


def _check_way(address: str) -> None:
    """Look for what a client needs to talk to this address: without it one takes half a minute to give up."""
    from distributed.comm.registry import get_backend
    from distributed.security import Security

    scheme = address.partition("://")[0] if "://" in address else "tcp"
    encrypted = scheme in ("tls", "wss")
    found = "none of them is configured"
    try:
        get_backend(scheme).get_connector()
        security = Security()
        context = security.get_connection_args("client").get("ssl_context")
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        found = str(error).splitlines()[0] if str(error) else type(error).__name__
        if not encrypted:
            what = f"--cluster: Dask cannot speak to {address} from here"
            fix = "--cluster tcp://HOST:8786 or tls://HOST:8786 needs nothing more than Dask"
            raise UsageError(what, fix, found=found) from None
    else:
        if not encrypted and security.require_encryption and scheme in ("tcp", "ws"):
            what = f"--cluster: {address} is not encrypted, and Dask's settings here ask for that"
            fixes = "tls://HOST:8786", "distributed.comm.require-encryption in ~/.config/dask"
            raise UsageError(what, *fixes)
        if not encrypted or context is not None:
            return
    raise UsageError(
        f"--cluster: {address} asks for certificates that this user has not configured",
        "name them as for any client of Dask: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__TLS__CLIENT__CERT and "
        "…__TLS__CLIENT__KEY, or distributed.comm.tls in ~/.config/dask",
        found=found,
    )


def await_file(file: Path, seconds: float, progress: Progress) -> None:
    """Wait for the file of a scheduler that may have been started with us, as Dask's clients do; else UsageError."""
    end, told = time.monotonic() + seconds, False
    while not file.exists():
        late = time.monotonic() > end
        if late or not file.parent.is_dir():
            raise UsageError(
                f"--cluster: there is no scheduler file {file}{f' after {seconds:.0f} s' if told else ''}",
                "start one: dask scheduler --scheduler-file FILE",
                f"check the path: there is no folder {file.parent}"
                if not late
                else "a batch system may not have started it yet: tune and collect wait --wait SECONDS",
            )
        if not told:
            progress.note(f"waiting for the scheduler file {file}, {seconds:.0f} s at most")
            told = True
        time.sleep(0.05)


def _address_in(file: Path) -> str:
    """Where the scheduler listens that wrote this file; one that has just been started may still be writing it."""
    end = time.monotonic() + FILE_SECONDS
    while True:
        try:
            address = json.loads(read_text(file))["address"]
            if isinstance(address, str) and _ADDRESS.fullmatch(address):
                return address
            raise ValueError
        except OSError as error:
            problem = f"--cluster: the scheduler file {file} cannot be read"
            fix = "start a scheduler: dask scheduler --scheduler-file FILE"
            raise UsageError(problem, fix, found=str(error)) from None
        except (ValueError, LookupError, TypeError, RecursionError):
            if time.monotonic() > end:
                what = f"--cluster: {file} is no scheduler file, which names an address"
                raise UsageError(what, "dask scheduler --scheduler-file FILE writes one") from None
        time.sleep(0.05)


def missing_extra(error: ImportError) -> UsageError:
    """The error where Dask is not installed."""
    fix = "pip install '.[cluster]' in the checkout of gemmprof, here and on the workers"
    return UsageError("a cluster needs Dask, which is not installed here", fix, found=str(error))


@contextmanager
def _started(jobs: Jobs) -> Iterator[Any]:
    """A scheduler in this process whose workers the batch system starts, and ends with the context."""
    try:
        from dask_jobqueue import PBSCluster, SLURMCluster
    except ImportError as error:
        raise missing_extra(error) from None
    kind: Callable[..., Any] = {"slurm": SLURMCluster, "pbs": PBSCluster}[jobs.system]
    arguments = jobs.arguments()
    with ExitStack() as stack:
        if "shared_temp_directory" not in arguments:
            try:
                import cryptography  # noqa: F401
            except ImportError as error:
                raise missing_extra(error) from None
            # For the run's certificates, which only this user reads; workers find them where homes are shared.
            parent = cache_directory() / "certificates"
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = tempfile.TemporaryDirectory(dir=parent, prefix="run-")
            arguments["shared_temp_directory"] = stack.enter_context(folder)
        try:
            with no_collection():
                cluster = kind(**arguments)
        except GemmprofError:
            raise
        except Exception as error:
            # dask-jobqueue checks its options with whatever error comes first.
            raise UsageError(
                f"--{jobs.system}: these options make no job",
                "--job name=value takes the options of dask-jobqueue: queue, account, walltime, cores, memory",
                found=f"{type(error).__name__}: {error}",
            ) from error
        try:
            cluster.scale(jobs=jobs.count)
            yield cluster
        finally:
            cluster.close(timeout=10)
            for name, value in vars(cluster).items():  # the certificates, before their folder goes
                if name.startswith("_job_") and hasattr(value, "close"):
                    value.close()


class NoScheduler(DeviceError):
    """Nobody answers where a scheduler should be."""


class SchedulerGone(DeviceError):
    """The scheduler went away, or the way to it."""

    def __init__(self, found: str) -> None:
        fixes = "start it again; what is finished is kept", "--wait SECONDS waits longer for it"
        super().__init__("the cluster's scheduler is gone", *fixes, found=found)


class WorkersKilled(DeviceError):
    """A task took several workers along, one after the other."""


# What Dask raises where its scheduler is gone, by name: most commands do without Dask.
_LOST = frozenset((
    "CommClosedError", "ClosedClientError", "CancelledError", "FutureCancelledError", "FuturesCancelledError",
))  # fmt: skip


def as_gemmprof_error(error: BaseException) -> GemmprofError:
    """What Dask or a task raised, as an error of ours."""
    if isinstance(error, GemmprofError):
        return error
    if type(error).__name__ in _LOST:
        return SchedulerGone(str(error).splitlines()[0] if str(error) else type(error).__name__)
    kind = WorkersKilled if type(error).__name__ == "KilledWorker" else DeviceError
    return kind("a task of the cluster failed", found=f"{type(error).__name__}: {error}")


def workers(client: Client, *, gpu: bool = False) -> dict[str, Mapping[str, Any]]:
    """The workers (``gpu``: those that declare a GPU), by address; SchedulerGone if nobody tells."""
    try:
        if client.status != "running":
            raise SchedulerGone(f"the connection is {client.status}")
        found = client.scheduler_info(n_workers=-1)["workers"]
    except SchedulerGone:
        raise
    except Exception as error:  # whatever that raises
        raise SchedulerGone(f"{type(error).__name__}: {error}") from error
    declared = {address: facts.get("resources", {}).get(RESOURCE, 0) for address, facts in found.items()}
    return {address: facts for address, facts in found.items() if not gpu or declared[address] >= 1}


def bounded(call: Callable[[], Any]) -> None:
    """Tell the cluster something beside its tasks, whether it hears that or not.

    A worker that was stopped (SIGSTOP, a machine that swaps) would be waited for until the scheduler gives it up.
    """
    with suppress(Exception):
        in_time(call, ANSWER_SECONDS)


def other_code(found: list[str]) -> GemmprofError:
    """The error where workers have other code than the command."""
    what = "workers of the cluster have another gemmprof than this command: their answers would be others"
    fix = f"install gemmprof {gemmprof.__version__} from one checkout on every worker, and start them again"
    return DeviceError(what, fix, found="; ".join(found[:3]))


def no_workers(seconds: float, others: int | None) -> DeviceError:
    """The error where no worker offers a GPU, but so many others; None: where there is no worker at all."""
    waits = "a batch system may not have started the jobs yet: --wait SECONDS"
    if others is None:
        message = f"the cluster has had no worker for {seconds:.0f} s"
        return DeviceError(message, f"start some: {START_READER}", waits)
    return DeviceError(
        f"no worker of the cluster has the resource {RESOURCE}",
        f"start one on each GPU: {START_WORKER}",
        f"{waits} waits longer",
        found=f"{others} workers without it" if others else f"none after {seconds:.0f} s",
    )


# --- Tasks on the workers ---------------------------------------------------------------------------------------------

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
        self._workers = workers(client, gpu=gpu)
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
            self._workers = workers(self.client, gpu=self._gpu)
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
                    raise as_gemmprof_error(error) from error
            raise NotBegun

    def _ends(self, task: Any, allowed: frozenset[str], leaving: Callable[[], bool]) -> bool:
        """Wait until a task has ended; False if only workers may do it that are gone: Dask would wait for ever."""
        done = threading.Event()  # dask/distributed#7346; allow_other_workers ignores the resource (#4792)
        task.add_done_callback(lambda _: done.set())
        while not done.wait(POLL_SECONDS):
            if self._closed.is_set() or leaving() or (self._error and self.ending):
                bounded(task.cancel)
                raise NotBegun
            if self._error is not None:
                bounded(task.cancel)
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

    @contextmanager
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
                before, self._workers = self._workers, workers(self.client, gpu=self._gpu)
                now = time.monotonic()
                if self.good:
                    seen = now
                elif self.ending or now - seen > self._patience:
                    self._error = self._none()
            except SchedulerGone as error:
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
        others = len(workers(self.client)) if self._gpu else None
        return no_workers(self._patience, others)

    def _nobody(self, found: str) -> DeviceError:
        """The error where no worker can be used (any more)."""
        what = f"no {'GPU' if self._gpu else 'worker'} of the cluster can be used"
        fix = "`gemmprof doctor --cluster ADDRESS` says what each worker has and what is missing"
        return DeviceError(what, fix, found=found)
