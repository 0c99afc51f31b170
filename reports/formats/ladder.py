"""The ladder and this machine: ``stages``, ``collect``, ``tune``, ``doctor``."""

from __future__ import annotations

from typing import Annotated, TypedDict

from gemmprof.model import Card, Problem, RunInfo, Stage
from gemmprof.reports.terminal.summary import SummaryRow


class StagesRecord(TypedDict):
    """``gemmprof stages``."""

    format: Annotated[str, "gemmprof.stages/1"]
    stages: Annotated[list[Stage], "in the order of the ladders, yardsticks among them"]


class CollectRecord(TypedDict):
    """``gemmprof collect``."""

    format: Annotated[str, "gemmprof.collect/1"]
    run: Annotated[str, "the run directory"]
    pages: Annotated[str | None, "the page to open first; null with --no-report, or if rendering failed"]
    info: Annotated[RunInfo, "what holds for the whole run"]
    rows: Annotated[list[SummaryRow], "a row a stage and problem"]


class TuneVariant(TypedDict):
    """One compiled form of a stage."""

    name: Annotated[str, "of the stage, or of one of its variants"]
    stage: Annotated[Stage, "the stage"]
    source: Annotated[str, "its `.cu` file, under kernels/"]
    parameters: Annotated[dict[str, int], "the catalog's parameters"]


class TuneSearch(TypedDict):
    """What was searched, and how far."""

    variant: Annotated[TuneVariant, "the kernel"]
    problems: Annotated[list[Problem], "what to be fast on"]
    limit: Annotated[int, "sets to try at most"]
    jobs: Annotated[int, "compilers at a time"]
    seed: Annotated[int, "of the choice and of the operands"]
    minimum_warps: Annotated[int, "fewest resident warps an SM"]
    early_factor: Annotated[float, "a set whose first look is so many times slower than the best is dropped"]


class TuneOutcome(TypedDict):
    """One parameter set that was tried."""

    parameters: Annotated[dict[str, int], "by tile letter (BM, BN, BK …)"]
    status: Annotated[
        str, "`timed`, or why it was dropped: uncompiled, spills, occupancy, slow, wrong, failed, crashed"
    ]
    score: Annotated[float | None, "its speed over the yardstick's, geometric mean over the problems"]
    detail: Annotated[str, "in words"]
    registers: Annotated[int | None, "a thread, as compiled"]
    blocks_per_sm: Annotated[int | None, "resident blocks on an SM"]
    card: Annotated[Card | None, "the GPU that measured it"]


class TuneRecord(TypedDict):
    """``gemmprof tune``."""

    format: Annotated[str, "gemmprof.tune/1"]
    search: Annotated[TuneSearch, "what was asked"]
    device: Annotated[str, "name of the GPU"]
    outcomes: Annotated[
        list[TuneOutcome], "every set that was tried, now or in an earlier search with the same key"
    ]
    default: Annotated[float, "score of the catalog's parameters among the finalists"]
    best: Annotated[float, "score of the winner"]
    winner: Annotated[dict[str, int], "its parameters"]
    tried: Annotated[int, "sets tried in this call"]
    seconds: Annotated[float, "wall time of this call"]
    kept: Annotated[str | None, "the file with the winner; null if the catalog's parameters won"]
    search_seconds: Annotated[float, "wall time without start and finals"]
    cards: Annotated[list[Card], "the GPUs that took part to the end"]


class TuneConstraintsRecord(TypedDict):
    """``gemmprof tune --constraints``."""

    format: Annotated[str, "gemmprof.tune/1"]
    stage: Annotated[str, "the kernel"]
    constraints: Annotated[list[str], "the conditions on its parameters, a sentence each"]
    parameter_sets: Annotated[int, "how many sets satisfy them"]


class CheckRecord(TypedDict):
    """One thing that was looked for."""

    name: Annotated[str, "what"]
    ok: Annotated[bool | None, "it is there and usable; null where that cannot be told"]
    found: Annotated[str, "what was found, in a few words"]
    remedies: Annotated[list[str], "what to do if it is missing or doubtful"]
    needed: Annotated[bool, "collecting is impossible without it"]


class DoctorRecord(TypedDict):
    """``gemmprof doctor``."""

    format: Annotated[str, "gemmprof.doctor/1"]
    can_collect: Annotated[bool, "nothing that is needed is missing"]
    checks: Annotated[list[CheckRecord], "everything that was looked for"]


class WorkerRecord(TypedDict):
    """A worker of a cluster."""

    worker: Annotated[str, "its address"]
    host: Annotated[str, "its machine"]
    checks: Annotated[list[CheckRecord], "everything that was looked for on it"]


class DoctorClusterRecord(TypedDict):
    """``gemmprof doctor --cluster``."""

    format: Annotated[str, "gemmprof.doctor/1"]
    can_collect: Annotated[bool, "there are workers, and none lacks what is needed"]
    workers: Annotated[list[WorkerRecord], "every worker, in the order of their machines"]
