"""A cluster as the place where work runs, behind the same seam as this machine (``profiler/site.py``)."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import BuildError, DeviceError
from gemmprof.base.progress import SILENT, Progress
from gemmprof.base.system import cache_directory
from gemmprof.kernels.plugin import PLUGIN_VARIABLE
from gemmprof.kernels.targets import architecture_number
from gemmprof.model.ladder import Variant
from gemmprof.profiler import machine as machine_checks
from gemmprof.profiler.cluster import remote
from gemmprof.profiler.cluster.connection import (
    RESOURCE,
    Jobs,
    ResultLost,
    as_gemmprof_error,
    bounded,
    completed,
    connected,
    gpu_workers,
    no_workers,
    other_code,
    result_of,
)
from gemmprof.profiler.cluster.content import Content, code_digest
from gemmprof.profiler.cluster.remote_places import FETCHERS, ClusterPlaces
from gemmprof.profiler.cluster.remote_profiling import ClusterProfiling
from gemmprof.profiler.keeper import Keeper
from gemmprof.profiler.site import Compiled, Machine, Places, Work

if TYPE_CHECKING:
    from distributed import Client

    from gemmprof.kernels.build import BuildResult

WAIT_SECONDS = 300.0
POLL_SECONDS = 0.5
WIDTH_SECONDS = 5.0


@contextmanager
def cluster_site(
    where: str | Jobs, *, wait: float = WAIT_SECONDS, progress: Progress = SILENT
) -> Iterator[ClusterSite]:
    """A cluster, connected, with at least one worker that has a GPU and the same gemmprof as here.

    Args:
        where: address of a scheduler, its file, or what a batch system is to start.
        wait: seconds to wait for a scheduler file, and for workers, at the beginning and whenever none is left.

    Raises:
        UsageError: the extra is not installed, or an option is not known.
        DeviceError: nobody answers, or no worker comes.
    """
    with connected(where, wait=wait, progress=progress) as client:
        end, told = time.monotonic() + wait, False
        while not gpu_workers(client):
            if time.monotonic() > end:
                raise no_workers(wait, list(client.scheduler_info(n_workers=-1)["workers"]))
            if not told:
                progress.note(f"waiting for a worker with a GPU, {wait:.0f} s at most")
                told = True
            time.sleep(POLL_SECONDS)
        site = ClusterSite(client, wait)
        try:
            yield site
        finally:
            # Also where the command failed: children on the workers would keep their GPUs' memory.
            bounded(lambda: client.run(remote.close, on_error="ignore"))
            bounded(lambda: client.unregister_worker_plugin(remote.Ending(site.command).name))


class ClusterSite:
    """The machines of a cluster; see `cluster_site`."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client, self._patience = client, patience
        self.command = uuid.uuid4().hex
        self._extension: Any = None
        self._carried = {}
        if named := os.environ.get(PLUGIN_VARIABLE):
            self._carried[PLUGIN_VARIABLE] = Content.of(Path(named))
        self._facts = look_at_workers(client)
        self._model = _model(list(self._facts.values()))

    def check(self, *, profile: bool, runs: Path) -> Machine:
        """Make sure that the workers can do what is asked, and this machine can keep it.

        Raises:
            DeviceError: naming the first thing that is missing on a worker, with its remedy.
        """
        space = machine_checks.check_space(runs)
        if space.ok is False:
            raise DeviceError(f"{space.name}: {space.found}", remedies=space.remedies)
        mine = self._mine()
        for address, facts in mine.items():
            for check in remote.needed_checks(facts, profile=profile):
                raise DeviceError(
                    f"worker {address} on {facts.host}: {check.name}: {check.found}", remedies=check.remedies
                )
        for name in ("gemmprof", "torch", "cuda", "nvcc", *(("ncu",) if profile else ())):
            _agree(name, {address: facts.versions.get(name, "none") for address, facts in mine.items()})
        first = next(iter(mine.values()))
        gpus = [gpu for facts in mine.values() for gpu in facts.gpus if gpu.name == self._model]
        ncu = first.ncu if profile else None
        return Machine(gpus[0], ncu, tuple(gpus[1:]), pinned=True, versions=dict(first.versions))

    def _mine(self) -> dict[str, remote.WorkerFacts]:
        """The workers that have the model of GPU that is worked on, by address."""
        return {
            address: facts
            for address, facts in self._facts.items()
            if any(gpu.name == self._model for gpu in facts.gpus)
        }

    def build(self, machine: Machine, progress: Progress) -> BuildResult:
        """Have one worker build the extension; the others fetch it by its content.

        Raises:
            BuildError: see `gemmprof.kernels.build.build`.
        """
        from gemmprof.kernels.build import tuned_parameters

        label = "{}.{}".format(*machine.gpu.compute_capability)
        parameters = tuned_parameters(cache_directory(), [architecture_number(label)])
        progress.note(f"one worker builds the extension for compute capability {label}")
        self._extension = self._client.submit(
            remote.build_extension, label, parameters, resources={RESOURCE: 1}, pure=True
        )
        try:
            record: BuildResult = completed(
                lambda: self._client.submit(remote.record_of, self._extension, pure=False)
            )
        except BuildError:
            raise
        except Exception as error:
            raise as_gemmprof_error(error) from error
        return record

    def places(self, work: Work, progress: Progress, keep_open: Sequence[int] = ()) -> ClusterPlaces:
        """A child on each GPU of the workers."""
        others = {gpu.name for facts in self._facts.values() for gpu in facts.gpus} - {self._model}
        if others:
            progress.note(f"works on {self._model}; left alone: {', '.join(sorted(others))}")
        return ClusterPlaces(
            self._client,
            work,
            progress,
            command=self.command,
            model=self._model,
            extension=self._extension,
            carried=self._carried,
            patience=self._patience,
        )

    def make_room(self, places: Places, machine: Machine) -> bool:
        """The profiler's tasks carry the same resource: everything goes on."""
        return True

    def profiler(self, keeper: Keeper, machine: Machine) -> ClusterProfiling:
        """One ncu a machine at a time."""
        return ClusterProfiling(
            keeper,
            machine.ncu,
            self._client,
            command=self.command,
            model=self._model,
            extension=lambda: self._extension,
            carried=self._carried,
            patience=self._patience,
        )

    @contextmanager
    def compilers(self, jobs: int) -> Iterator[ClusterCompilers]:
        """The workers compile; how many at a time is theirs to say (``--nthreads``)."""
        banners = {address: facts.banner for address, facts in self._mine().items()}
        _agree("nvcc", banners)
        with ThreadPoolExecutor(FETCHERS) as pool:
            try:
                yield ClusterCompilers(self._client, pool, next(iter(banners.values())))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


class ClusterCompilers:
    """Compilers on the workers: tasks without a GPU."""

    def __init__(self, client: Client, pool: ThreadPoolExecutor, banner: str) -> None:
        self._client, self._pool = client, pool
        self.banner = banner
        self._width, self._counted = 1, float("-inf")

    @property
    def width(self) -> int:
        """The threads of all workers, which come and go: counted every few seconds."""
        if time.monotonic() - self._counted > WIDTH_SECONDS:
            with contextlib.suppress(OSError):  # a scheduler that does not answer is noticed elsewhere
                self._width = sum(self._client.nthreads().values())
            self._counted = time.monotonic()
        return max(1, self._width)

    def submit(self, variant: Variant, architecture: str) -> Future[Compiled]:
        """Compile a variant; the library stays with the workers until one measures it."""
        future: Future[Compiled] = Future()
        self._send(variant, architecture, future)
        return future

    def _send(self, variant: Variant, architecture: str, future: Future[Compiled]) -> None:
        library: Any = self._client.submit(remote.compile_library, variant, architecture, pure=False)
        known: Any = self._client.submit(remote.kernels_of, library, pure=False)

        def take() -> None:
            # Who gave up waiting has cancelled the future, maybe this very moment.
            with contextlib.suppress(InvalidStateError):
                try:
                    kernels, error = result_of(known)
                except ResultLost:
                    self._send(variant, architecture, future)
                    return
                except Exception as failed:
                    kernels, error = (), as_gemmprof_error(failed)
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(Compiled(kernels, library))

        def ended(_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the search is over
                self._pool.submit(take)

        known.add_done_callback(ended)


def look_at_workers(client: Client) -> dict[str, remote.WorkerFacts]:
    """What each worker with a GPU is like, by address.

    Raises:
        DeviceError: gemmprof is missing on a worker, or another one than here.
    """
    addresses = list(gpu_workers(client))
    remedies = ["install the same gemmprof on every worker: pip install '.[cluster,gpu]' in one checkout"]
    answers = client.run(remote.look, workers=addresses, on_error="return")
    facts = {}
    for address, answer in answers.items():
        if isinstance(answer, OSError):
            continue  # it went away this very moment
        if not isinstance(answer, remote.WorkerFacts):
            raise DeviceError(
                f"worker {address} cannot run gemmprof",
                found=f"{type(answer).__name__}: {answer}",
                remedies=remedies,
            )
        if answer.sources != code_digest():
            raise other_code([f"{address} on {answer.host}: {answer.versions.get('gemmprof')}"])
        facts[address] = answer
    return facts


def _model(facts: Sequence[remote.WorkerFacts]) -> str:
    """The model of GPU that most workers have: results of different models are not compared."""
    models = Counter(gpu.name for worker in facts for gpu in worker.gpus)
    if not models:
        raise DeviceError(
            "CUDA shows no GPU to any worker of the cluster",
            found=f"workers on {', '.join(sorted({worker.host for worker in facts}))}",
            remedies=[
                "`nvidia-smi` must list the GPU there",
                "a Slurm job needs --gres=gpu:1, a pod nvidia.com/gpu: 1",
            ],
        )
    return models.most_common(1)[0][0]


def _agree(name: str, versions: dict[str, str]) -> None:
    """Refuse workers that would measure different things."""
    if len(set(versions.values())) > 1:
        raise DeviceError(
            f"the workers have different versions of {name}: their numbers cannot be compared",
            found=", ".join(f"{address}: {version}" for address, version in versions.items()),
            remedies=["start them from one environment or image"],
        )
