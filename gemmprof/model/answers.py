"""What the profiler answers a person who does not read a report: ``stages``, ``doctor``, ``tune``.

It stands here because the profiler makes it and the reports show it, and neither may know the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.documents import Document
from gemmprof.model.gpu import Card
from gemmprof.model.ladder import Parameters, Problem, Stage, Variant


class StagesDocument(Document, frozen=True, tag="gemmprof.stages/1"):
    """``gemmprof stages``."""

    stages: tuple[Stage, ...]  # in the order of the ladders, yardsticks among them


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of looking for one thing."""

    name: str  # what was looked for
    ok: bool | None  # it is there and usable; None: it cannot be seen from here
    found: str  # what was found, in a few words
    remedies: tuple[str, ...] = ()  # what to do if it is missing or doubtful
    needed: bool = True  # collecting is impossible without it

    @property
    def is_missing(self) -> bool:
        """Whether collecting is impossible for the lack of it."""
        return self.needed and self.ok is False


class DoctorDocument(Document, frozen=True, tag="gemmprof.doctor/1"):
    """``gemmprof doctor``."""

    can_collect: bool  # nothing that is needed is missing
    checks: tuple[Check, ...]  # everything that was looked for


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A worker of a cluster, and what was looked for on it."""

    worker: str  # its address
    host: str  # its machine, '' where it does not say
    checks: tuple[Check, ...]  # everything that was looked for


class DoctorClusterDocument(Document, frozen=True, tag="gemmprof.doctor/1"):
    """``gemmprof doctor --cluster``."""

    can_collect: bool  # there are workers, and none lacks what is needed
    workers: tuple[WorkerReport, ...]  # every worker, in the order of their machines


@dataclass(frozen=True, slots=True)
class Search:
    """What to search and how far."""

    variant: Variant  # the kernel
    problems: tuple[Problem, ...]  # what to be fast on; the score is a geometric mean over them
    limit: int = 200  # how many candidates to try at most
    jobs: int = 0  # compilers at a time; 0: as many as there are cores
    seed: int = 0  # of the choice and of the operands
    minimum_warps: int = 4  # fewest resident warps an SM
    early_factor: float = 1.15  # dropped if so many times slower than the best at first look


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one candidate."""

    parameters: Parameters  # by tile letter (BM, BN, BK …)
    # ``timed``, or why it was dropped: ``uncompiled``, ``spills``, ``occupancy``, ``slow``, ``wrong``, ``failed`` (an
    # error of its launch), ``crashed`` (it took its process along or hung, on a second GPU too)
    status: str
    # its speed as a fraction of cuBLAS's, geometric mean over the problems; None if it was not timed
    score: float | None = None
    detail: str = ""  # in words
    registers: int | None = None  # of a thread, as compiled
    blocks_per_sm: int | None = None  # resident blocks on an SM
    card: Card | None = None  # the GPU that measured it and its yardstick, None where none did


class TuneDocument(Document, frozen=True, tag="gemmprof.tune/1"):
    """``gemmprof tune``."""

    search: Search  # what was asked
    device: str  # name of the GPU
    outcomes: tuple[Outcome, ...]  # every set that was tried, also earlier with the same key
    default: float  # score of the catalog's parameters among the finalists
    best: float  # score of the winner
    winner: Parameters  # its parameters
    tried: int  # sets tried in this call
    seconds: float  # wall time of this call
    kept: Path | None  # the file with the winner; null if the catalog's parameters won
    search_seconds: float  # wall time without start and finals
    cards: tuple[Card, ...]  # the GPUs that took part to the end

    @property
    def gain(self) -> float:
        """How many times faster the winner is than the catalog's parameters."""
        return self.best / self.default


class TuneConstraintsDocument(Document, frozen=True, tag="gemmprof.tune/1"):
    """``gemmprof tune --constraints``."""

    stage: str  # the kernel
    constraints: tuple[str, ...]  # the conditions on its parameters, a sentence each
    parameter_sets: int  # how many sets satisfy them
