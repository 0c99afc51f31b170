"""What a search is for, and its words with the GPUs: a candidate to try, and what came of it."""

from __future__ import annotations

from gemmprof.model.answers import Outcome, Search
from gemmprof.model.ladder import Parameters
from gemmprof.profiler.places.protocol import Answer, Compiled, Request

CANDIDATE_SECONDS = 60.0
"""What takes longer hangs."""

ANSWERED = ("score", "detail", "registers", "blocks_per_sm")
"""The parts of an outcome that come from the GPU."""


def candidate_request(search: Search, candidate: Compiled, best: float | None, budget: float) -> Request:
    """Verify and time a candidate; one far slower than ``best`` is dropped after a short look."""
    record = {"name": search.variant.name, "best": best, "budget": budget}
    return Request(record, CANDIDATE_SECONDS, candidate)


def outcome_of(parameters: Parameters, answer: Answer) -> Outcome:
    """What a GPU found of a candidate."""
    known = {name: answer.record[name] for name in ANSWERED if name in answer.record}
    return Outcome(parameters, answer.status, card=answer.card, **known)
