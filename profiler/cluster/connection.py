"""The way to a cluster: a scheduler that runs already, or one that starts workers through Slurm or PBS."""

from __future__ import annotations

import gc
import json
import logging
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gemmprof
from gemmprof.base.errors import DeviceError, GemmprofError, UsageError
from gemmprof.base.foreign_files import read_text
from gemmprof.base.progress import SILENT, Progress
from gemmprof.base.system import cache_directory, in_time

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
