"""Where a command has its work done, as `collect` and `tune` see it: this machine, or a cluster.

`Here` (``profiler/here.py``) and `ClusterSite` (``profiler/cluster/cluster_site.py``) are the two that there are.
Nothing behind this seam knows what a stage or a candidate is, and nothing before it knows where a GPU is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gemmprof.base.progress import Progress
from gemmprof.gpu.devices import Gpu
from gemmprof.gpu.toolchain import Tool
from gemmprof.model import Card
from gemmprof.model.ladder import Variant
from gemmprof.profiler.places.protocol import Compiled, Places, Work

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult
    from gemmprof.profiler.keeper import Keeper


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
