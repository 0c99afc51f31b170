"""Tries candidates of a search: compilers stay busy while the GPUs measure what they finished."""

from __future__ import annotations

import random
import signal
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Any

from gemmprof.base.errors import BuildError
from gemmprof.base.progress import Progress
from gemmprof.kernels.main_kernel import main_kernels
from gemmprof.model.answers import Outcome, Search
from gemmprof.model.ladder import Parameters
from gemmprof.profiler.places.protocol import Answer, Compiled, Places
from gemmprof.profiler.program import counted_interrupts
from gemmprof.profiler.site import Compilers
from gemmprof.profiler.tuning.outcomes import (
    Journal,
    candidate_request,
    describe,
    identity,
    outcome_of,
    propose,
)

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
        self._compiling: dict[Future[Compiled], Parameters] = {}
        self._compiled: deque[tuple[Parameters, Compiled]] = deque()
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
                if future.cancelled():
                    del self._measuring[future]
                else:
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
