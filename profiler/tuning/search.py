"""Searches the tile parameters of a stage on this machine's GPU.

Candidates satisfy the constraints that the stage's source states (``kernels/constraints.py``). They are compiled in
parallel, dropped if they spill registers or keep too few warps on an SM, looked at briefly and dropped if far behind
the best so far, verified, and only then timed against cuBLAS. Every outcome is kept in a file at once, so a search that
is killed goes on where it was, and one that is repeated only confirms its winner.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from gemmprof.cache import cache_directory
from gemmprof.errors import BuildError, ProfilerError
from gemmprof.kernels import compiler
from gemmprof.kernels.candidates import Candidate, compile_candidate
from gemmprof.kernels.catalog import TUNING_VALUES, Variant, tuning_values
from gemmprof.kernels.constraints import read_constraints, valid_parameters
from gemmprof.kernels.main_kernel import main_kernels
from gemmprof.kernels.toolchain import require_nvcc
from gemmprof.kernels.tuned import Tuned, save_tuned
from gemmprof.model import Problem
from gemmprof.profiler.tuning.client import TuningClient
from gemmprof.progress import Progress

Parameters = Mapping[str, int]

BUDGET = 0.1
"""Seconds of timing a problem in the search."""

FINAL_BUDGET = 0.4
"""Seconds of timing a problem and round among the finalists."""

FINALISTS, FINAL_ROUNDS = 4, 3

TOLERATED_SPILLS = 128
"""Bytes that a candidate may spill: a few words outside of its loops, as a producer's have, decide nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one candidate.

    Attributes:
        status: ``timed``, or why it was dropped: ``uncompiled``, ``spills``, ``occupancy``, ``slow``, ``wrong``,
            ``failed`` (an error of its launch), ``crashed`` (it took its process along or hung).
        score: its speed as a fraction of cuBLAS's, geometric mean over the problems; None if it was not timed.
        detail: in words.
    """

    parameters: Parameters
    status: str
    score: float | None = None
    detail: str = ""
    registers: int | None = None
    blocks_per_sm: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """What to search and how far.

    Attributes:
        problems: what to be fast on; the score is a geometric mean over them.
        limit: how many candidates to try at most.
        jobs: compilers at a time.
        minimum_warps: fewest resident warps an SM.
        early_factor: a candidate whose first look is this many times slower than the best is dropped.
    """

    variant: Variant
    problems: tuple[Problem, ...]
    limit: int = 200
    jobs: int = 0
    seed: int = 0
    minimum_warps: int = 4
    early_factor: float = 1.15


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes:
        outcomes: every candidate that was tried, now or in an earlier search with the same key.
        default: score of the catalog's parameters, best: of the winner, both among the finalists.
        tried: candidates tried in this call, seconds: its wall time.
        kept: the file with the winner, None if the catalog's parameters won.
    """

    search: Search
    device: str
    outcomes: tuple[Outcome, ...]
    default: float
    best: float
    winner: Parameters
    tried: int
    seconds: float
    kept: Path | None

    @property
    def gain(self) -> float:
        """How many times faster the winner is than the catalog's parameters."""
        return self.best / self.default


def search_space(variant: Variant) -> tuple[dict[str, int], ...]:
    """Every parameter set worth trying: the catalog's values for each letter that satisfy the stage's constraints.

    A letter that `tuning_values` does not list keeps its value.
    """
    tried = tuning_values(variant.stage)
    constraints = read_constraints(compiler.SOURCES / variant.source)
    return valid_parameters(
        constraints,
        {letter: tried.get(letter, (value,)) for letter, value in variant.parameters.items()},
    )


def identity(parameters: Parameters) -> tuple[tuple[str, int], ...]:
    """The parameters as something that can be a key."""
    return tuple(sorted(parameters.items()))


def propose(
    space: Sequence[Parameters],
    outcomes: Sequence[Outcome],
    pending: Iterable[Parameters],
    count: int,
    rng: random.Random,
) -> list[Parameters]:
    """The next candidates, none tried or pending: every other one near the best so far, the others anywhere.

    Near means few letters that differ, and values that stand near each other in the letter's list.
    """
    known = {identity(outcome.parameters) for outcome in outcomes} | {identity(p) for p in pending}
    waiting = [parameters for parameters in space if identity(parameters) not in known]
    scored = [(outcome.score, outcome) for outcome in outcomes if outcome.score is not None]
    leaders = [outcome.parameters for _, outcome in sorted(scored, key=lambda item: -item[0])[:3]]
    chosen: list[Parameters] = []
    for _ in range(min(count, len(waiting))):
        index = rng.randrange(len(waiting))
        if leaders and (len(known) + len(chosen)) % 2 == 0:
            leader = rng.choice(leaders)
            index = min(range(len(waiting)), key=lambda i: distance(waiting[i], leader))
        chosen.append(waiting.pop(index))
    return chosen


def distance(a: Parameters, b: Parameters) -> int:
    """How many steps along the letters' lists lie between two parameter sets, a further one for each letter."""
    steps = 0
    for letter, value in a.items():
        if value != b[letter]:
            values = TUNING_VALUES.get(letter, ())
            if value not in values or b[letter] not in values:
                steps += 2
            else:
                steps += 1 + abs(values.index(value) - values.index(b[letter]))
    return steps


class Journal:
    """The outcomes of a search on disk: one JSON object a line, written through before the search goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> list[Outcome]:
        """All outcomes so far; a last line that a kill cut off is left out."""
        outcomes = []
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                outcomes.append(Outcome(**json.loads(line)))
            except (ValueError, TypeError):
                continue
        return outcomes

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_with_newline():
                file.write("\n")
            file.write(json.dumps({**asdict(outcome), "parameters": dict(outcome.parameters)}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def tune(search: Search, progress: Progress) -> SearchResult:
    """Search, and keep the winner where the build finds it.

    Raises:
        BuildError: no compiler, or the stage does not compile as the catalog has it.
        ProfilerError: no GPU, or the catalog's parameters fail on it.
        UsageError: the stage has no parameters to search.
    """
    started = time.perf_counter()
    space = search_space(search.variant)
    default = dict(search.variant.parameters)
    with TuningClient(_settings(search)) as client:
        journal = Journal(_journal_path(search, client.device, client.architecture))
        outcomes = journal.read()
        progress.note(
            f"{client.device}: {len(space)} parameter sets satisfy the constraints, {len(outcomes)} tried before"
        )
        before = len(outcomes)
        progress.phase("search", search.limit)
        _explore(search, space, outcomes, journal, client, progress)
        scores = _finals(search, default, outcomes, client, progress)
        winner = max(scores, key=lambda key: scores[key])
        kept = None
        gain = scores[winner] / scores[identity(default)]
        if winner != identity(default):
            kept = save_tuned(
                cache_directory(),
                Tuned(
                    search.variant.name,
                    "sm_" + client.architecture.replace(".", ""),
                    compiler.code_hash(search.variant),
                    {letter: dict(winner)[letter] for letter in default},
                    tuple(problem.key for problem in search.problems),
                    gain,
                ),
            )
        return SearchResult(
            search=search,
            device=client.device,
            outcomes=tuple(outcomes),
            default=scores[identity(default)],
            best=scores[winner],
            winner={letter: dict(winner)[letter] for letter in default},
            tried=len(outcomes) - before,
            seconds=time.perf_counter() - started,
            kept=kept,
        )


def _jobs(search: Search) -> int:
    return search.jobs or os.cpu_count() or 1


def _settings(search: Search) -> dict[str, Any]:
    return {
        "problems": [astuple(problem) for problem in search.problems],
        "seed": search.seed,
        "minimum_warps": search.minimum_warps,
        "early_factor": search.early_factor,
    }


def _journal_path(search: Search, device: str, architecture: str) -> Path:
    """One file for each source, compiler, GPU and set of problems."""
    key = compiler.digest(
        search.variant.name,
        compiler.code_hash(search.variant),
        compiler.DEVICE_FLAGS,
        require_nvcc().banner,
        device,
        architecture,
        [problem.key for problem in search.problems],
    )
    return cache_directory() / "tuning" / f"{search.variant.name}-{key}.jsonl"


def _explore(
    search: Search,
    space: Sequence[Parameters],
    outcomes: list[Outcome],
    journal: Journal,
    client: TuningClient,
    progress: Progress,
) -> None:
    """Try up to ``search.limit`` more candidates: compilers stay busy while the GPU measures what they finished."""
    rng = random.Random(search.seed + len(outcomes))
    end = len(outcomes) + search.limit
    compiling: dict[Future[Candidate], Parameters] = {}
    with ThreadPoolExecutor(max_workers=_jobs(search)) as pool:

        def submit(parameters: Parameters) -> None:
            variant = replace(search.variant, parameters=parameters)
            compiling[pool.submit(compile_candidate, variant, client.architecture)] = parameters

        if all(identity(outcome.parameters) != identity(search.variant.parameters) for outcome in outcomes):
            submit(dict(search.variant.parameters))
        try:
            while len(outcomes) < end:
                # A few more than there are compilers, so that none waits for the search.
                room = min(_jobs(search) + 4, end - len(outcomes)) - len(compiling)
                for parameters in propose(space, outcomes, compiling.values(), room, rng):
                    submit(parameters)
                if not compiling:
                    break
                future = next(as_completed(compiling))
                parameters = compiling.pop(future)
                outcome = _measure(search, parameters, future, outcomes, client)
                journal.add(outcome)
                outcomes.append(outcome)
                progress.done(describe(outcome))
        finally:
            for future in compiling:
                future.cancel()


def _measure(
    search: Search,
    parameters: Parameters,
    future: Future[Candidate],
    outcomes: Sequence[Outcome],
    client: TuningClient,
) -> Outcome:
    try:
        candidate = future.result()
    except BuildError as error:
        return Outcome(parameters, "uncompiled", detail=error.found or error.message)
    spilled = max(kernel.spill_bytes for kernel in main_kernels(candidate.kernels))
    if spilled > TOLERATED_SPILLS:
        return Outcome(parameters, "spills", detail=f"{spilled} bytes")
    best = max((o.score for o in outcomes if o.status == "timed" and o.score is not None), default=None)
    answer = client.measure(
        {"name": search.variant.name, "library": str(candidate.library), "best": best, "budget": BUDGET}
    )
    return Outcome(parameters=parameters, **answer)


def _finals(
    search: Search,
    default: Parameters,
    outcomes: Sequence[Outcome],
    client: TuningClient,
    progress: Progress,
) -> dict[tuple[tuple[str, int], ...], float]:
    """Median score of the best few and of the catalog's parameters over alternating rounds."""
    timed = sorted(
        (o for o in outcomes if o.status == "timed" and o.score is not None), key=lambda o: -(o.score or 0.0)
    )
    finalists = {identity(outcome.parameters): outcome.parameters for outcome in timed[:FINALISTS]}
    finalists[identity(default)] = default
    progress.phase("finals", FINAL_ROUNDS * len(finalists))
    scores: dict[tuple[tuple[str, int], ...], list[float]] = {key: [] for key in finalists}
    for _ in range(FINAL_ROUNDS):
        for key, parameters in finalists.items():
            candidate = compile_candidate(replace(search.variant, parameters=parameters), client.architecture)
            answer = client.measure(
                {
                    "name": search.variant.name,
                    "library": str(candidate.library),
                    "best": None,
                    "budget": FINAL_BUDGET,
                }
            )
            outcome = Outcome(parameters=parameters, **answer)
            progress.done(describe(outcome))
            if outcome.score is not None:
                scores[key].append(outcome.score)
            elif key == identity(default):
                raise ProfilerError(
                    f"stage {search.variant.name} does not run with the catalog's parameters",
                    found=f"{outcome.status}: {outcome.detail}",
                )
    return {key: sorted(values)[len(values) // 2] for key, values in scores.items() if values}


def describe(outcome: Outcome) -> str:
    """One line about a candidate."""
    letters = " ".join(f"{letter}={value}" for letter, value in outcome.parameters.items())
    verdict = f"{100 * outcome.score:.1f}% of cuBLAS" if outcome.score is not None else outcome.status
    if outcome.score is not None and outcome.status != "timed":
        verdict += f" ({outcome.status})"
    return f"{letters}: {verdict}" + (f", {outcome.detail}" if outcome.detail else "")
