"""What became of the candidates of a search, in memory, in words and on disk."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from gemmprof.base.documents import DocumentError, json_text, read_json
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, open_file, read_bytes
from gemmprof.kernels import compiler
from gemmprof.kernels.catalog import TUNING_VALUES, tuning_values
from gemmprof.kernels.constraints import read_constraints, valid_parameters
from gemmprof.model.answers import Outcome, Search
from gemmprof.model.ladder import Parameters, Variant
from gemmprof.profiler.site import Answer, Compiled, Request


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


def candidate_request(search: Search, candidate: Compiled, best: float | None, budget: float) -> Request:
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
    tried = tuning_values(variant.stage)
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
