"""Which tile parameters a search could try, and which it tries next."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from gemmprof.kernels import compiler
from gemmprof.kernels.catalog import TUNING_VALUES, tuning_values
from gemmprof.kernels.constraints import read_constraints, valid_parameters
from gemmprof.model.answers import Outcome
from gemmprof.model.ladder import Parameters, Variant
from gemmprof.profiler.tuning.outcomes import identity


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
