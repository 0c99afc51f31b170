"""What passes between `collect` and `tune` and where they have their work done: this machine, or a cluster.

`Here` and `ClusterSite` (``profiler/cluster/cluster_site.py``) are the two that there are.
Nothing behind this seam knows what a stage or a candidate is, and nothing before it knows where a GPU is.

A *place* is one GPU with a child process on it that answers requests (`gemmprof.children.line_worker`). `LocalPlaces`
and `ClusterPlaces` are several of them behind one queue. A request is an object that JSON can hold; which ones a child
understands is the matter of its module (``profiler/gpu_worker.py``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.children.line_worker import LineWorker, WorkerError
from gemmprof.children.watched import python_command
from gemmprof.gpu.devices import VISIBLE, Gpu, Tool, find_torch, list_gpus, selected_gpus
from gemmprof.kernels.compiler import Candidate, compile_candidate, require_nvcc
from gemmprof.model import Card
from gemmprof.model.ladder import Variant
from gemmprof.profiler import machine as machine_checks
from gemmprof.profiler.keeper import Keeper
from gemmprof.profiler.ncu.command import WITHOUT_NCU, require_ncu
from gemmprof.profiler.profiling import Profiling

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult

START_SECONDS = 180.0  # how long a child may take to load torch and to make a CUDA context

# Status of an answer that nobody gave: the child died, hung or was ended, and so it was on a second GPU too.
CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Work:
    """What kind of requests the children answer."""

    module: str  # the program that a child runs
    # its first request, whose answer are the facts of its GPU: ``device`` and ``architecture`` at least
    settings: Mapping[str, Any]
    name: str  # what a child is called in messages


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child answered to a request, and the GPU that it ran on; ``status`` is always in the record."""

    record: Mapping[str, Any]
    card: Card

    @property
    def status(self) -> str:
        """How it went; what there is besides `CRASHED` is the matter of the child's module."""
        return str(self.record.get("status", CRASHED))


@dataclass(frozen=True, slots=True)
class Request:
    """A request with the seconds that a child may take for it."""

    record: Mapping[str, Any]
    seconds: float
    candidate: Candidate | None = None  # whose library it is about; the child is told it as ``library``

    @property
    def local(self) -> dict[str, Any]:
        """What a child on this machine is asked."""
        return {**self.record, **({"library": str(self.candidate.library)} if self.candidate else {})}


class NotBegun(Exception):
    """Nobody began a request before everything was ended."""


def no_place(work: Work, found: str) -> DeviceError:
    """The error where no GPU can be used (any more)."""
    fix = "`gemmprof doctor` says what this machine has and what is missing"
    return DeviceError(f"{work.name} cannot use a GPU", fix, found=found)


@dataclass(frozen=True, slots=True)
class Machine:
    """What work is done with, after it was checked."""

    gpu: Gpu  # the one that is profiled; of a cluster the first
    ncu: Tool | None  # None where nothing is to be profiled
    pinned: bool = False  # programs see their GPU alone; else they take CUDA's first, which is `gpu`
    versions: Mapping[str, str] = field(default_factory=dict)  # of what decides the numbers (torch, cuda, …)


class Compilers:
    """Who compiles the candidates of a search, as long as the context: threads that do it, or wait for who does."""

    def __init__(
        self,
        threads: int,
        banner: str,  # the build of their nvcc
        # compiles a variant for an architecture, or finds it in a cache; raises BuildError
        compile_one: Callable[[Variant, str], Candidate],
        count: Callable[[], int],  # how many work at a time, which may change
    ) -> None:
        self.banner, self._compile, self._count = banner, compile_one, count
        self._pool = ThreadPoolExecutor(threads)

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def width(self) -> int:
        """How many work at a time."""
        return max(1, self._count())

    def submit(self, variant: Variant, architecture: str) -> Future[Candidate]:
        """Have a variant compiled."""
        return self._pool.submit(self._compile, variant, architecture)


class ChildFailed(Exception):
    """A child does not start: the GPU is gone, taken, or was never usable. The message is what it said."""


class GpuChild(LineWorker):
    """A child process that holds one GPU."""

    def __init__(
        self,
        work: Work,
        card: Card,
        *,
        pinned: bool,  # show it this GPU alone; else it takes the one that CUDA uses first
        keep_open: Sequence[int] = (),  # file handles that it inherits
        environment: Mapping[str, str] | None = None,  # more variables that it has
    ) -> None:
        self.card = card
        self.facts: Mapping[str, Any] = {}
        self._work = work
        command = python_command(work.module)
        variables = {**(environment or {}), **({VISIBLE: card.uuid} if pinned else {})}
        super().__init__(command, name=work.name, environment=variables, keep_open=keep_open, own_group=True)

    def start(self) -> None:
        """Start it anew, and let it make itself ready; ChildFailed if it does not get there."""
        try:
            super().start()
            facts = super().ask(self._work.settings, START_SECONDS)
            found = str(facts.get("detail", ""))
        except WorkerError as error:
            facts, found = {}, error.words or str(error)
        if "device" not in facts:
            self.stop()
            raise ChildFailed(found)
        self.facts = facts

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer to a request; a child that died or hung is an answer too (`CRASHED`), and is gone afterwards."""
        try:
            answer = super().ask(request, timeout)
        except WorkerError as error:
            self.stop()
            return {"status": CRASHED, "detail": error.words or str(error), "ending": error.ending}
        if answer.pop("spoiled", answer.get("status") == "failed"):
            # A faulting kernel leaves a CUDA context that answers nothing any more.
            self.stop()
        return answer

    def kill(self) -> None:
        """Have it die, from another thread than the one that asks it; who waits for its answer learns it at once."""
        if (process := self.process) is not None:
            process.kill()


class LocalPlaces:
    """Children on GPUs of this machine."""

    def __init__(
        self,
        work: Work,
        cards: Sequence[Card],
        progress: Progress,
        *,
        # show each child its GPU alone, by UUID: an index counts differently in CUDA and nvidia-smi. Where
        # only the GPU that CUDA uses first is wanted, nothing needs to be said
        pinned: bool = True,
        keep_open: Sequence[int] = (),  # file handles that the children inherit
    ) -> None:
        self._work, self._progress = work, progress
        self._children = [GpuChild(work, card, pinned=pinned, keep_open=keep_open) for card in cards]
        self._starting = len(self._children)
        self._alive: dict[Card, None] = {}
        self._free: list[GpuChild] = []
        self._given_up: set[Card] = set()
        self._changed = threading.Condition()
        self._closed = self._ending = False
        self._reasons: list[str] = []
        self.facts: Mapping[str, Any] = {}  # what the first child said of its GPU
        self._pool = ThreadPoolExecutor(len(self._children))

    def __enter__(self) -> LocalPlaces:
        """Start the children; returns as soon as one is ready, the others join; DeviceError if none gets ready."""
        for child in self._children:
            self._pool.submit(self._begin, child)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self.facts or not self._starting)
                if not self.facts:
                    raise no_place(self._work, self._reasons[0] if self._reasons else "")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for child in self._children:
            child.kill()  # its thread may be waiting for an answer
        self._pool.shutdown(cancel_futures=True)
        for child in self._children:
            child.stop()

    @property
    def cards(self) -> tuple[Card, ...]:
        """The GPUs that answer at present."""
        with self._changed:
            return tuple(self._alive)

    @property
    def width(self) -> int:
        """One request a GPU."""
        return max(1, len(self._alive))

    def submit(self, request: Request) -> Future[Answer]:
        """Queue a request. Its future raises `NotBegun`, or DeviceError if no GPU is left."""
        return self._pool.submit(self._answer, request)

    def cancel_waiting(self) -> None:
        """Begin no more requests; those that a GPU has begun are answered as ever."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def leave(self, card: Card) -> bool:
        """Give a GPU up after the request at hand, and wait until its child has ended; False if there is no other."""
        with self._changed:
            if not (self._alive.keys() - {card} or self._starting):
                return False
            self._given_up.add(card)
            for child in [child for child in self._free if child.card == card]:
                self._end(child)
            self._changed.wait_for(lambda: card not in self._alive)
            return True

    def _begin(self, child: GpuChild) -> None:
        """Have a child ready for its first request."""
        started = self._started(child)
        with self._changed:
            self._starting -= 1
            if started:
                self._alive[child.card] = None
                self.facts = self.facts or child.facts
            self._put_back(child, sound=started)

    def _started(self, child: GpuChild) -> bool:
        try:
            if not self._closed:
                child.start()
        except ChildFailed as error:
            if not self._closed:
                self._reasons.append(f"{child.card.label}: {error}")
                if len(self._children) > 1:
                    self._progress.note(f"{child.card.label} is left out: {error}")
            return False
        return not self._closed

    def _answer(self, request: Request) -> Answer:
        """The answer of a GPU; a request that it loses is tried once more on another one."""
        lost: GpuChild | None = None
        while True:
            child = self._taken(lost)
            record = child.ask(request.local, request.seconds)
            sound = child.running or self._started(child)  # a new one shows whose fault it was
            with self._changed:
                self._put_back(child, sound=sound)
                others = len(self._alive.keys() - {child.card}) + self._starting
            if lost or not others or (sound and record.get("status") != CRASHED):
                return Answer(record, child.card)
            lost = child

    def _taken(self, lost: GpuChild | None) -> GpuChild:
        """A free child, not the one that lost the request; NotBegun if all is ended, DeviceError if no GPU is left."""
        with self._changed:
            while not self._closed and (lost or not self._ending):
                if not self._alive and not self._starting:
                    raise no_place(self._work, "; ".join(self._reasons) or "it was ended")
                others = len(self._alive) + self._starting > 1
                for child in self._free:
                    if child is not lost or not others:
                        self._free.remove(child)
                        return child
                self._changed.wait()
        raise NotBegun

    def _put_back(self, child: GpuChild, *, sound: bool) -> None:
        """Let others have a child, unless it is gone, or its GPU is needed elsewhere."""
        if sound and child.card not in self._given_up:
            self._free.append(child)
        else:
            self._end(child)
        self._changed.notify_all()

    def _end(self, child: GpuChild) -> None:
        child.stop()
        self._alive.pop(child.card, None)
        if child in self._free:
            self._free.remove(child)


# --- This machine: the GPU that CUDA uses first, or several -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Here:
    """This machine."""

    gpus: str = ""  # which GPUs (`gemmprof.gpu.devices.selected_gpus`); the first of them is profiled

    def check(self, *, profile: bool, runs: Path) -> Machine:
        """Make sure that this machine can do what is asked; DeviceError names what is missing, UsageError a GPU."""
        listed = list_gpus()
        gpu = selected_gpus(listed, self.gpus)[0]
        torch = find_torch()
        checks = [
            machine_checks.check_torch(torch),
            machine_checks.check_driver(gpu, torch.cuda if torch else None),
        ]
        checks.append(machine_checks.check_nvcc(gpu))
        checks += [machine_checks.check_host_compiler(), machine_checks.check_space(runs)]
        ncu = None
        if profile:
            ncu = require_ncu(WITHOUT_NCU)
            checks.append(machine_checks.check_counters(gpu))
        for check in checks:
            if check.ok is False:
                raise DeviceError(f"{check.name}: {check.found}", *check.remedies)
        versions = machine_checks.versions(gpu, ncu)
        return Machine(gpu, ncu, pinned=_pinned(self.gpus, listed), versions=versions)

    def build(self, machine: Machine, progress: Progress) -> BuildResult:
        """Build the extension; for GPUs that were chosen as a program would that sees one of them alone."""
        from gemmprof.kernels.build import build

        targets = ["{}.{}".format(*machine.gpu.compute_capability)] if machine.pinned else None
        return build(architectures=targets, progress=progress)

    def places(self, work: Work, progress: Progress, keep_open: Sequence[int] = ()) -> LocalPlaces:
        """A child on each GPU."""
        gpus = list_gpus()
        cards = [gpu.card for gpu in selected_gpus(gpus, self.gpus)]
        return LocalPlaces(work, cards, progress, pinned=_pinned(self.gpus, gpus), keep_open=keep_open)

    def profiler(self, keeper: Keeper, machine: Machine) -> Profiling:
        """One ncu for all."""
        return Profiling(keeper, machine.ncu, machine.gpu.card, pinned=machine.pinned)

    def compilers(self, jobs: int) -> Compilers:
        """So many compilers at a time."""
        return Compilers(jobs, require_nvcc().banner, compile_candidate, lambda: jobs)


HERE = Here()


def _pinned(selection: str, gpus: Sequence[Gpu]) -> bool:
    """Whether programs must be shown their GPU alone, so that it is the one that results are labelled with."""
    # CUDA counts GPUs in nvidia-smi's order, that of the PCI bus, where CUDA_DEVICE_ORDER asks for it. Else it puts the
    # fastest one first: of several models that may be any.
    ordered = len({gpu.name for gpu in gpus}) <= 1 or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    return bool(selection) or not ordered
