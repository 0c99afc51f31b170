"""The words between those who have work for a GPU and the places where it is done.

A *place* is one GPU with a child process on it that answers requests (`gemmprof.children.line_worker`). `Places` are
several of them behind one queue. A request is an object that JSON can hold; which ones a child understands is the
matter of its module (``profiler/stage_worker.py``, ``profiler/tuning/tuning_worker.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from gemmprof.base.errors import DeviceError
from gemmprof.gpu.toolchain import KernelResources
from gemmprof.model import Card

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
