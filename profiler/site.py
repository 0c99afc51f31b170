"""Where a command has its work done, as `collect` and `tune` see it: this machine, or a cluster.

`Here` (``profiler/here.py``) and `ClusterSite` (``profiler/cluster/cluster_site.py``) are the two that there are.
Nothing behind this seam knows what a stage or a candidate is, and nothing before it knows where a GPU is.

A *place* is one GPU with a child process on it that answers requests (`gemmprof.children.line_worker`). `Places` are
several of them behind one queue. A request is an object that JSON can hold; which ones a child understands is the
matter of its module (``profiler/stage_worker.py``, ``profiler/tuning/tuning_worker.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.gpu.devices import Gpu
from gemmprof.gpu.toolchain import KernelResources, Tool
from gemmprof.model import Card
from gemmprof.model.ladder import Variant

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult
    from gemmprof.profiler.keeper import Keeper


START_SECONDS = 180.0  # how long a child may take to load torch and to make a CUDA context

# Status of an answer that nobody gave: the child died, hung or was ended, and so it was on a second GPU too.
CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Work:
    """What kind of requests the children answer.

    Attributes:
        module: the program that a child runs.
        settings: its first request, whose answer are the facts of its GPU: ``device`` and ``architecture`` at least.
        name: what a child is called in messages.
    """

    module: str
    settings: Mapping[str, Any]
    name: str


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
class Compiled:
    """A compiled candidate.

    Attributes:
        kernels: what the assembler said of them.
        library: its path, or what stands for it where the compiler runs elsewhere.
    """

    kernels: tuple[KernelResources, ...]
    library: Any


@dataclass(frozen=True, slots=True)
class Request:
    """A request with the seconds that a child may take for it.

    Attributes:
        candidate: the library that it is about, if any; the child finds its path under ``library``.
    """

    record: Mapping[str, Any]
    seconds: float
    candidate: Compiled | None = None

    @property
    def local(self) -> dict[str, Any]:
        """What a child on this machine is asked."""
        return {**self.record, **({"library": self.candidate.library} if self.candidate else {})}


class Places(Protocol):
    """GPUs of one model behind one queue; a context manager, which ends the children when it is left.

    A place that fails, hangs or is taken away loses at most the request at hand, which is tried once more on another
    GPU and then answered with `CRASHED`. The others go on.
    """

    @property
    def cards(self) -> tuple[Card, ...]:
        """The GPUs that answer at present."""

    @property
    def width(self) -> int:
        """How many requests are answered at once."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the first child said of its GPU."""

    def submit(self, request: Request) -> Future[Answer]:
        """Queue a request. Its future raises DeviceError if no GPU is left."""

    def cancel_waiting(self) -> None:
        """Cancel the requests that no GPU has begun; those that one has are answered as ever."""

    def leave(self, card: Card) -> None:
        """Give a GPU up after the request at hand: somebody else needs it."""

    def __enter__(self) -> Places: ...

    def __exit__(self, *_: object) -> None: ...


def cancelled(future: Future[Answer]) -> bool:
    """Cancel a request that nobody has begun, and tell those who wait for it; False where it was begun."""
    return future.cancel() and not future.set_running_or_notify_cancel()


def no_place(work: Work, found: str) -> DeviceError:
    """The error where no GPU can be used (any more)."""
    return DeviceError(
        f"{work.name} cannot use a GPU",
        remedies=["`gemmprof doctor` says what this machine has and what is missing"],
        found=found,
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """What work is done with, after it was checked.

    Attributes:
        gpu: the one that is profiled; of a cluster the first.
        ncu: None where nothing is to be profiled.
        helpers: more of the same model that help to verify and time.
        pinned: programs are shown their GPU alone; else they take the one that CUDA uses first, which is `gpu`.
        versions: of what decides the numbers (torch, cuda, nvcc, …), by name.
    """

    gpu: Gpu
    ncu: Tool | None
    helpers: tuple[Gpu, ...] = ()
    pinned: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def cards(self) -> tuple[Card, ...]:
        """All GPUs, the one that is profiled first."""
        return tuple(gpu.card for gpu in (self.gpu, *self.helpers))


class Compilers(Protocol):
    """Compile candidates of a search in parallel; a context manager."""

    @property
    def banner(self) -> str:
        """The build of the compiler, which decides (with the flags) what it makes."""

    @property
    def width(self) -> int:
        """How many work at a time."""

    def submit(self, variant: Variant, architecture: str) -> Future[Compiled]:
        """Compile a variant; its future raises BuildError with the compiler's message."""


class Profiler(Protocol):
    """Profiles what a run lacks."""

    def adopt(self) -> None:
        """Take over the reports that passes of an interrupted collection finished."""

    def waiting(self) -> AbstractContextManager[None]:
        """Get ready while something else is done."""

    def do(self) -> None:
        """Profile what is missing."""


class Site(Protocol):
    """Where work runs."""

    def check(self, *, profile: bool, runs: Path) -> Machine:
        """Make sure that what is asked can be done; raises DeviceError with the first thing that is missing."""

    def build(self, machine: Machine, progress: Progress) -> BuildResult:
        """Build the extension for the GPUs of ``machine``."""

    def places(
        self, work: Work, progress: Progress, keep_open: Sequence[int] = ()
    ) -> AbstractContextManager[Places]:
        """The GPUs, with children for this work."""

    def make_room(self, places: Places, machine: Machine) -> bool:
        """Let go of what the profiler needs; whether something is left that can go on verifying and timing."""

    def profiler(self, keeper: Keeper, machine: Machine) -> Profiler:
        """Who profiles for this run."""

    def compilers(self, jobs: int) -> AbstractContextManager[Compilers]:
        """Compilers of candidates, so many at a time where that is ours to say."""
