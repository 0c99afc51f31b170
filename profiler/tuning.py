"""Searches the tile parameters of a stage on this machine's GPU.

Candidates satisfy the constraints that the stage's source states (``kernels/parameters.py``). They are compiled in
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
from gemmprof.kernels.catalog import TUNING_VALUES, tuning_values
from gemmprof.kernels.compiler import Candidate, main_kernels
from gemmprof.kernels.parameters import Tuned, read_constraints, save_tuned, valid_parameters
from gemmprof.model.answers import Outcome, Search, TuneDocument
from gemmprof.model.ladder import Parameters, Variant
from gemmprof.profiler.job import counted_interrupts
from gemmprof.profiler.site import HERE, Answer, Compilers, NotBegun, Request, Work

if TYPE_CHECKING:
    from gemmprof.profiler.collect import Places, Site

POLL_SECONDS = 0.2  # how often Ctrl-C is looked for
BUDGET = 0.1  # seconds of timing a problem in the search
AHEAD = 2  # candidates with each GPU: the one at hand, and the next
FINAL_BUDGET = 0.4  # seconds of timing a problem and round among the finalists
FINALISTS, FINAL_ROUNDS = 4, 3

# Bytes that a candidate may spill: a few words outside of its loops, as a producer's have, decide nothing.
TOLERATED_SPILLS = 128


class Searching:
    """A search at work: up to ``search.limit`` more candidates are tried, then the best few against each other.

    Compilers stay busy while the GPUs measure what they finished.
    """

    def __init__(self, search: Search, places: Places, compilers: Compilers, progress: Progress) -> None:
        self._search, self._places, self._compilers, self._progress = search, places, compilers, progress
        self._device, self._architecture = (str(places.facts[name]) for name in ("device", "architecture"))
        self._default = dict(search.variant.parameters)
        self._space = search_space(search.variant)
        # One file for each source, compiler, model of GPU and set of problems.
        compiled = search.variant.name, compiler.code_hash(search.variant), compiler.DEVICE_FLAGS
        shapes = [problem.key for problem in search.problems]
        key = compiler.digest(*compiled, compilers.banner, self._device, self._architecture, shapes)
        self._journal = Journal(cache_directory() / "tuning" / f"{search.variant.name}-{key}.jsonl")
        self._outcomes = self._journal.read()
        self._rng = random.Random(search.seed + len(self._outcomes))
        self._compiling: dict[Future[Candidate], Parameters] = {}
        self._compiled: deque[tuple[Parameters, Candidate]] = deque()
        self._measuring: dict[Future[Answer], Parameters] = {}

    def do(self) -> TuneDocument:
        """All of it."""
        started = time.perf_counter()
        before, cards = len(self._outcomes), self._places.cards
        which = f" ({', '.join(card.label for card in cards)})" if len(cards) > 1 else ""
        fit = f"{len(self._space)} parameter sets satisfy the constraints, {before} tried before"
        self._progress.note(f"{self._device}{which}: {fit}")
        self._progress.phase("search", min(self._search.limit, max(0, len(self._space) - before)))
        explored = time.perf_counter()
        self._explore()
        search_seconds = time.perf_counter() - explored
        scores = self._finals()
        winner, default = max(scores, key=lambda key: scores[key]), identity(self._default)
        parameters = {letter: dict(winner)[letter] for letter in self._default}
        kept = None  # the file in which the build finds the winner
        if winner != default:
            variant = self._search.variant
            architecture = "sm_" + self._architecture.replace(".", "")
            source, gain = compiler.code_hash(variant), scores[winner] / scores[default]
            shapes = tuple(problem.key for problem in self._search.problems)
            tuned = Tuned(variant.name, architecture, source, parameters, shapes, gain)
            kept = save_tuned(cache_directory(), tuned)
        return TuneDocument(
            search=self._search,
            device=self._device,
            outcomes=tuple(self._outcomes),
            default=scores[default],
            best=scores[winner],
            winner=parameters,
            tried=len(self._outcomes) - before,
            seconds=time.perf_counter() - started,
            kept=kept,
            search_seconds=search_seconds,
            cards=self._places.cards,
        )

    def _explore(self) -> None:
        """Try candidates up to the limit; Ctrl-C is a KeyboardInterrupt once what the GPUs had begun is kept."""
        with counted_interrupts() as interrupts:
            try:
                self._try(interrupts)
                if interrupts:  # what was begun is kept, until a second Ctrl-C
                    self._progress.note(
                        "interrupted: ending after the candidates at hand (Ctrl-C again: at once)"
                    )
                    self._places.cancel_waiting()
                while interrupts and self._measuring and len(interrupts) < 2:
                    for ended in wait(self._measuring, POLL_SECONDS, FIRST_COMPLETED).done:
                        with suppress(NotBegun):
                            self._take(ended)
            finally:
                for future in self._compiling:
                    future.cancel()
        if interrupts:
            signal.raise_signal(interrupts[0])  # whoever waits for it hears it now
            raise KeyboardInterrupt

    def _try(self, interrupts: Sequence[int]) -> None:
        end = len(self._outcomes) + self._search.limit
        default = identity(self._default)
        first = [] if any(identity(o.parameters) == default for o in self._outcomes) else [dict(default)]
        while len(self._outcomes) < end and not interrupts:
            # A few more are compiled than there are compilers and GPUs, so that none of them waits.
            pending = [*self._compiling.values(), *self._measuring.values(), *(p for p, _ in self._compiled)]
            ahead = self._compilers.width + 4 + 2 * AHEAD * self._places.width
            room = min(ahead, end - len(self._outcomes)) - len(pending)
            count = room - len(first)
            chosen = [*first, *propose(self._space, self._outcomes, [*pending, *first], count, self._rng)]
            for parameters in chosen:
                self._compiling[self._compile(parameters)] = parameters
            first = []
            # The GPUs get what is compiled as late as they allow: what is known of the best by then saves time.
            while self._compiled and len(self._measuring) < AHEAD * self._places.width:
                parameters, candidate = self._compiled.popleft()
                scores = [o.score for o in self._outcomes if o.status == "timed" and o.score is not None]
                request = candidate_request(self._search, candidate, max(scores, default=None), BUDGET)
                self._measuring[self._places.submit(request)] = parameters
            waiting: list[Future[Any]] = [*self._compiling, *self._measuring]
            if not waiting:
                break
            for future in wait(waiting, POLL_SECONDS, FIRST_COMPLETED).done:
                self._take(future)

    def _compile(self, parameters: Parameters) -> Future[Candidate]:
        variant = replace(self._search.variant, parameters=parameters)
        return self._compilers.submit(variant, self._architecture)

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

    def _finals(self) -> dict[tuple[tuple[str, int], ...], float]:
        """Median score of the best few and of the catalog's parameters over alternating rounds.

        Each round verifies again: a candidate that is wrong or fails in one of them is out, however fast it was in
        others.
        """
        timed = [o for o in self._outcomes if o.status == "timed" and o.score is not None]
        timed.sort(key=lambda o: -(o.score or 0.0))
        best = (outcome.parameters for outcome in timed[:FINALISTS])
        finalists = {identity(parameters): parameters for parameters in (*best, self._default)}
        self._progress.phase("finals", FINAL_ROUNDS * len(finalists))
        scores: dict[tuple[tuple[str, int], ...], list[float]] = {key: [] for key in finalists}
        compiling = {key: self._compile(parameters) for key, parameters in finalists.items()}
        candidates = {key: future.result() for key, future in compiling.items()}
        asked = [
            (key, self._places.submit(candidate_request(self._search, candidates[key], None, FINAL_BUDGET)))
            for _ in range(FINAL_ROUNDS)
            for key in finalists
        ]
        for key, future in asked:
            outcome = outcome_of(finalists[key], future.result())
            self._progress.done(describe(outcome, several=self._places.width > 1))
            if outcome.score is not None:
                scores[key].append(outcome.score)
            elif key == identity(self._default):
                wrong = f"stage {self._search.variant.name} does not run with the catalog's parameters"
                raise ProfilerError(wrong, found=f"{outcome.status}: {outcome.detail}")
        return {key: statistics.median(found) for key, found in scores.items() if len(found) == FINAL_ROUNDS}


MODULE = "gemmprof.profiler.gpu_worker"


def tune(search: Search, progress: Progress, site: Site = HERE) -> TuneDocument:
    """Search, and keep the winner where the build finds it.

    Raises:
        BuildError: no compiler, or the stage does not compile as the catalog has it.
        DeviceError: no GPU, or none is left.
        ProfilerError: the catalog's parameters fail on it.
        KeyboardInterrupt: Ctrl-C; what was measured is kept for the next search.
        UsageError: the stage has no parameters to search, or GPUs were chosen that cannot be used together.
    """
    own = {name: getattr(search, name) for name in ("seed", "minimum_warps", "early_factor")}
    settings = {"problems": [astuple(problem) for problem in search.problems], **own}
    work = Work(MODULE, settings, "the search")
    jobs = search.jobs or os.cpu_count() or 1
    with site.places(work, progress) as places, site.compilers(jobs) as compilers:
        return Searching(search, places, compilers, progress).do()


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
    letters = {letter: tried.get(letter, (value,)) for letter, value in variant.parameters.items()}
    return valid_parameters(constraints, letters)


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
