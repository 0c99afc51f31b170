"""Searches the tile parameters of a stage on this machine's GPU.

Candidates satisfy the constraints that the stage's source states (``kernels/constraints.py``). They are compiled in
parallel, dropped if they spill registers or keep too few warps on an SM, looked at briefly and dropped if far behind
the best so far, verified, and only then timed against cuBLAS. Every outcome is kept in a file at once, so a search that
is killed goes on where it was, and one that is repeated only confirms its winner.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.base.documents import DocumentError, json_text, read_json
from gemmprof.base.errors import BuildError, ProfilerError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, open_file, read_bytes
from gemmprof.base.progress import Progress
from gemmprof.base.system import cache_directory
from gemmprof.kernels import compiler
from gemmprof.kernels.candidates import Candidate
from gemmprof.kernels.catalog import TUNING_VALUES, tuning_values
from gemmprof.kernels.compiler import main_kernels
from gemmprof.kernels.constraints import read_constraints, valid_parameters
from gemmprof.kernels.tuned import Tuned, save_tuned
from gemmprof.model.answers import Outcome, Search, TuneDocument
from gemmprof.model.ladder import Parameters, Variant
from gemmprof.profiler.here import HERE
from gemmprof.profiler.program import counted_interrupts
from gemmprof.profiler.site import Answer, Compilers, NotBegun, Request, Work

if TYPE_CHECKING:
    from gemmprof.profiler.collect import Site
    from gemmprof.profiler.measuring import Places

POLL_SECONDS = 0.2  # how often Ctrl-C is looked for

BUDGET = 0.1  # seconds of timing a problem in the search

AHEAD = 2  # candidates with each GPU: the one at hand, and the next

# Bytes that a candidate may spill: a few words outside of its loops, as a producer's have, decide nothing.
TOLERATED_SPILLS = 128


class Exploration:
    """Tries up to ``search.limit`` more candidates: compilers stay busy while the GPUs measure what they finished."""

    def __init__(
        self,
        search: Search,
        space: Sequence[Parameters],
        outcomes: list[Outcome],
        journal: Journal,
        places: Places,
        compilers: Compilers,
        progress: Progress,
    ) -> None:
        self._search, self._space, self._outcomes = search, space, outcomes
        self._journal, self._places, self._compilers, self._progress = journal, places, compilers, progress
        self._architecture = str(places.facts["architecture"])
        self._rng = random.Random(search.seed + len(outcomes))
        self._compiling: dict[Future[Candidate], Parameters] = {}
        self._compiled: deque[tuple[Parameters, Candidate]] = deque()
        self._measuring: dict[Future[Answer], Parameters] = {}

    def do(self) -> None:
        """Until the limit is reached or nothing is left to try.

        Raises:
            KeyboardInterrupt: Ctrl-C; what the GPUs had begun is finished and kept, after a second one it is not.
        """
        with counted_interrupts() as interrupts:
            try:
                self._explore(interrupts)
                if interrupts:
                    self._end(interrupts)
            finally:
                for future in self._compiling:
                    future.cancel()
        if interrupts:
            signal.raise_signal(interrupts[0])  # whoever waits for it hears it now
            raise KeyboardInterrupt

    def _explore(self, interrupts: Sequence[int]) -> None:
        end = len(self._outcomes) + self._search.limit
        default = identity(self._search.variant.parameters)
        first = [] if any(identity(o.parameters) == default for o in self._outcomes) else [dict(default)]
        while len(self._outcomes) < end and not interrupts:
            self._propose(first, end)
            first = []
            self._lend()
            waiting: list[Future[Any]] = [*self._compiling, *self._measuring]
            if not waiting:
                break
            for future in wait(waiting, POLL_SECONDS, FIRST_COMPLETED).done:
                self._take(future)

    def _end(self, interrupts: Sequence[int]) -> None:
        """Keep what was begun, until a second Ctrl-C."""
        self._progress.note("interrupted: ending after the candidates at hand (Ctrl-C again: at once)")
        self._places.cancel_waiting()
        while self._measuring and len(interrupts) < 2:
            for future in wait(self._measuring, POLL_SECONDS, FIRST_COMPLETED).done:
                with suppress(NotBegun):
                    self._take(future)

    def _propose(self, first: Sequence[Parameters], end: int) -> None:
        """Have candidates compiled: a few more than there are compilers and GPUs, so that none of them waits."""
        pending = [*self._compiling.values(), *self._measuring.values(), *(p for p, _ in self._compiled)]
        ahead = self._compilers.width + 4 + 2 * AHEAD * self._places.width
        room = min(ahead, end - len(self._outcomes)) - len(pending)
        chosen = [
            *first,
            *propose(self._space, self._outcomes, [*pending, *first], room - len(first), self._rng),
        ]
        for parameters in chosen:
            variant = replace(self._search.variant, parameters=parameters)
            self._compiling[self._compilers.submit(variant, self._architecture)] = parameters

    def _lend(self) -> None:
        """Give the GPUs what is compiled, as late as they allow: what is known of the best by then saves time."""
        while self._compiled and len(self._measuring) < AHEAD * self._places.width:
            parameters, candidate = self._compiled.popleft()
            scores = [o.score for o in self._outcomes if o.status == "timed" and o.score is not None]
            request = candidate_request(self._search, candidate, max(scores, default=None), BUDGET)
            self._measuring[self._places.submit(request)] = parameters

    def _take(self, future: Future[Any]) -> None:
        if future in self._measuring:
            self._keep(outcome_of(self._measuring.pop(future), future.result()))
            return
        parameters = self._compiling.pop(future)
        try:
            candidate = future.result()
        except BuildError as error:
            self._keep(Outcome(parameters, "uncompiled", detail=error.found or error.message))
            return
        spilled = max(kernel.spill_bytes for kernel in main_kernels(candidate.kernels))
        if spilled > TOLERATED_SPILLS:
            self._keep(Outcome(parameters, "spills", detail=f"{spilled} bytes"))
        else:
            self._compiled.append((parameters, candidate))

    def _keep(self, outcome: Outcome) -> None:
        self._journal.add(outcome)
        self._outcomes.append(outcome)
        self._progress.done(describe(outcome, several=self._places.width > 1))


FINAL_BUDGET = 0.4  # seconds of timing a problem and round among the finalists

FINALISTS, FINAL_ROUNDS = 4, 3

MODULE = "gemmprof.profiler.tuning.tuning_worker"


def tune(search: Search, progress: Progress, site: Site = HERE) -> TuneDocument:
    """Search, and keep the winner where the build finds it.

    Raises:
        BuildError: no compiler, or the stage does not compile as the catalog has it.
        DeviceError: no GPU, or none is left.
        ProfilerError: the catalog's parameters fail on it.
        KeyboardInterrupt: Ctrl-C; what was measured is kept for the next search.
        UsageError: the stage has no parameters to search, or GPUs were chosen that cannot be used together.
    """
    with site.places(tuning_work(search), progress) as places, site.compilers(search.compilers) as compilers:
        return _tune(search, places, compilers, progress)


def _tune(search: Search, places: Places, compilers: Compilers, progress: Progress) -> TuneDocument:
    started = time.perf_counter()
    space = search_space(search.variant)
    default = dict(search.variant.parameters)
    device, architecture = str(places.facts["device"]), str(places.facts["architecture"])
    journal = Journal(_journal_path(search, device, architecture, compilers.banner))
    outcomes = journal.read()
    progress.note(
        f"{_named(places)}: {len(space)} parameter sets satisfy the constraints, {len(outcomes)} tried before"
    )
    before = len(outcomes)
    progress.phase("search", min(search.limit, max(0, len(space) - before)))
    explored = time.perf_counter()
    Exploration(search, space, outcomes, journal, places, compilers, progress).do()
    search_seconds = time.perf_counter() - explored
    scores = _finals(search, default, outcomes, places, compilers, progress)
    winner = max(scores, key=lambda key: scores[key])
    kept = None
    gain = scores[winner] / scores[identity(default)]
    if winner != identity(default):
        kept = save_tuned(
            cache_directory(),
            Tuned(
                search.variant.name,
                "sm_" + architecture.replace(".", ""),
                compiler.code_hash(search.variant),
                {letter: dict(winner)[letter] for letter in default},
                tuple(problem.key for problem in search.problems),
                gain,
            ),
        )
    return TuneDocument(
        search=search,
        device=device,
        outcomes=tuple(outcomes),
        default=scores[identity(default)],
        best=scores[winner],
        winner={letter: dict(winner)[letter] for letter in default},
        tried=len(outcomes) - before,
        seconds=time.perf_counter() - started,
        kept=kept,
        search_seconds=search_seconds,
        cards=places.cards,
    )


def tuning_work(search: Search) -> Work:
    """What the children of a search are for."""
    settings = {
        "problems": [astuple(problem) for problem in search.problems],
        "seed": search.seed,
        "minimum_warps": search.minimum_warps,
        "early_factor": search.early_factor,
    }
    return Work(MODULE, settings, "the search")


def _named(places: Places) -> str:
    """The GPUs in words: their model, and which ones where there are several."""
    cards = places.cards
    which = f" ({', '.join(card.label for card in cards)})" if len(cards) > 1 else ""
    return f"{places.facts['device']}{which}"


def _journal_path(search: Search, device: str, architecture: str, banner: str) -> Path:
    """One file for each source, compiler, model of GPU and set of problems."""
    key = compiler.digest(
        search.variant.name,
        compiler.code_hash(search.variant),
        compiler.DEVICE_FLAGS,
        banner,
        device,
        architecture,
        [problem.key for problem in search.problems],
    )
    return cache_directory() / "tuning" / f"{search.variant.name}-{key}.jsonl"


def _finals(
    search: Search,
    default: Parameters,
    outcomes: Sequence[Outcome],
    places: Places,
    compilers: Compilers,
    progress: Progress,
) -> dict[tuple[tuple[str, int], ...], float]:
    """Median score of the best few and of the catalog's parameters over alternating rounds.

    Each round verifies again: a candidate that is wrong or fails in one of them is out, however fast it was in others.
    """
    timed = sorted(
        (o for o in outcomes if o.status == "timed" and o.score is not None), key=lambda o: -(o.score or 0.0)
    )
    finalists = {identity(outcome.parameters): outcome.parameters for outcome in timed[:FINALISTS]}
    finalists[identity(default)] = default
    progress.phase("finals", FINAL_ROUNDS * len(finalists))
    scores: dict[tuple[tuple[str, int], ...], list[float]] = {key: [] for key in finalists}
    architecture = str(places.facts["architecture"])
    compiling = {
        key: compilers.submit(replace(search.variant, parameters=parameters), architecture)
        for key, parameters in finalists.items()
    }
    candidates = {key: future.result() for key, future in compiling.items()}
    asked = [
        (key, places.submit(candidate_request(search, candidates[key], None, FINAL_BUDGET)))
        for _ in range(FINAL_ROUNDS)
        for key in finalists
    ]
    for key, future in asked:
        outcome = outcome_of(finalists[key], future.result())
        progress.done(describe(outcome, several=places.width > 1))
        if outcome.score is not None:
            scores[key].append(outcome.score)
        elif key == identity(default):
            raise ProfilerError(
                f"stage {search.variant.name} does not run with the catalog's parameters",
                found=f"{outcome.status}: {outcome.detail}",
            )
    return {key: statistics.median(values) for key, values in scores.items() if len(values) == FINAL_ROUNDS}


def identity(parameters: Parameters) -> tuple[tuple[str, int], ...]:
    """The parameters as something that can be a key."""
    return tuple(sorted(parameters.items()))


def describe(outcome: Outcome, *, several: bool = False) -> str:
    """One line about a candidate, with its GPU where there are several."""
    letters = " ".join(f"{letter}={value}" for letter, value in outcome.parameters.items())
    verdict = f"{100 * outcome.score:.1f}% of cuBLAS" if outcome.score is not None else outcome.status
    if outcome.score is not None and outcome.status != "timed":
        verdict += f" ({outcome.status})"
    where = f" ({outcome.card.label})" if several and outcome.card is not None else ""
    return f"{letters}: {verdict}" + (f", {outcome.detail}" if outcome.detail else "") + where


class Journal:
    """The outcomes of a search on disk: one JSON object a line, written through before the search goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> list[Outcome]:
        """All outcomes so far; a last line that a kill cut off is left out."""
        outcomes = []
        try:
            lines = read_bytes(self.path, LARGEST_DOCUMENT).splitlines()
        except FileNotFoundError:
            return []
        for line in lines:
            with contextlib.suppress(DocumentError):
                outcomes.append(read_json(line, Outcome))
        return outcomes

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        line = json_text(outcome, 0) + "\n"
        with open_file(self.path, write=True) as file:
            torn = file.seek(0, os.SEEK_END) and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
            file.write(("\n" * torn + line).encode("utf-8"))
            os.fsync(file.fileno())


CANDIDATE_SECONDS = 60.0  # what takes longer hangs

ANSWERED = ("score", "detail", "registers", "blocks_per_sm")  # the parts of an outcome that come from the GPU


def candidate_request(search: Search, candidate: Candidate, best: float | None, budget: float) -> Request:
    """Verify and time a candidate; one far slower than ``best`` is dropped after a short look."""
    record = {"name": search.variant.name, "best": best, "budget": budget}
    return Request(record, CANDIDATE_SECONDS, candidate)


def outcome_of(parameters: Parameters, answer: Answer) -> Outcome:
    """What a GPU found of a candidate."""
    known = {name: answer.record[name] for name in ANSWERED if name in answer.record}
    return Outcome(parameters, answer.status, card=answer.card, **known)


def search_space(variant: Variant) -> tuple[dict[str, int], ...]:
    """Every parameter set worth trying: the catalog's values for each letter that satisfy the stage's constraints.

    A letter that `tuning_values` does not list keeps its value.
    """
    tried = tuning_values(variant.stage.ladder)
    constraints = read_constraints(compiler.SOURCES / variant.source)
    return valid_parameters(
        constraints, {letter: tried.get(letter, (value,)) for letter, value in variant.parameters.items()}
    )


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
