"""What passes between `collect` and `tune` and where they have their work done: this machine, or a cluster.

`Here` (``profiler/here.py``) and `ClusterSite` (``profiler/cluster/cluster_site.py``) are the two that there are.
Nothing behind this seam knows what a stage or a candidate is, and nothing before it knows where a GPU is.

A *place* is one GPU with a child process on it that answers requests (`gemmprof.children.line_worker`). `LocalPlaces`
and `ClusterPlaces` are several of them behind one queue. A request is an object that JSON can hold; which ones a child
understands is the matter of its module (``profiler/stage_worker.py``, ``profiler/tuning/tuning_worker.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmprof.base.errors import DeviceError
from gemmprof.gpu.devices import Gpu
from gemmprof.gpu.toolchain import KernelResources, Tool
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


class NotBegun(Exception):
    """Nobody began a request before everything was ended."""


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
