"""What a search is for, and its words with the GPUs: a candidate to try, and what came of it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from gemmprof.kernels.catalog import Variant
from gemmprof.model import Problem
from gemmprof.profiler.places.protocol import Answer, Compiled, Request
from gemmprof.profiler.tuning.outcomes import Outcome, Parameters

CANDIDATE_SECONDS = 60.0
"""What takes longer hangs."""

ANSWERED = ("score", "detail", "registers", "blocks_per_sm")
"""The parts of an outcome that come from the GPU."""


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

    @property
    def compilers(self) -> int:
        """How many compilers work at a time."""
        return self.jobs or os.cpu_count() or 1


def candidate_request(search: Search, candidate: Compiled, best: float | None, budget: float) -> Request:
    """Verify and time a candidate; one far slower than ``best`` is dropped after a short look."""
    record = {"name": search.variant.name, "best": best, "budget": budget}
    return Request(record, CANDIDATE_SECONDS, candidate)


def outcome_of(parameters: Parameters, answer: Answer) -> Outcome:
    """What a GPU found of a candidate."""
    known = {name: answer.record[name] for name in ANSWERED if name in answer.record}
    return Outcome(parameters, answer.status, card=answer.card, **known)
