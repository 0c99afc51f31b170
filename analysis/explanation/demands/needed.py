"""What of each result is needed where tests of the data are made as early, and all else as late, as can be.

A thread may load and compute before a test what it needs behind it alone, and work out all terms of a condition before
it looks at the first. How many threads pass was counted. Of several terms that must all hold, each is taken to leave as
large a share as the others, so that the last is worked out for few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.code.flow import EXCHANGES, Program, reached
from gemmprof.analysis.explanation.demands.work import Array, Work, once
from gemmprof.gpu.arch import WARP

MOST_PASS = 0.5  # of the threads: where more pass a test, nothing is gained by waiting for it


@dataclass(frozen=True, slots=True)
class _Test:
    """A test of the data: a branch around something, an early end, or the predicate of a store."""

    at: int  # the instruction
    # what stands behind it
    first: int
    last: int
    passes: float  # share of the threads that come there
    together: float  # lanes that pass or do not on their own, as the warps that come there tell
    terms: tuple[int, ...]  # the comparisons that must all come out one way, the cheapest first


@dataclass(frozen=True)
class Needed:
    """Shares of what each instruction does now that are needed: of its executions by a warp, and of its sectors."""

    executed: Array
    sectors: Array


@once
def needed(work: Work) -> Needed | None:
    """What is needed of each instruction; None where no test leaves out many threads."""
    code, tests = work.code, list(_tests(work))
    if not tests:
        return None
    behind: list[list[_Test]] = [[] for _ in code.sass]
    of_term: dict[int, float] = {}
    for test in tests:
        for at in range(test.first, test.last + 1):
            behind[at].append(test)
        for number, term in enumerate(test.terms):
            of_term[term] = test.passes ** (number / len(test.terms))
    # What has effects, tells where to go, or what other lanes may ask for.
    ends = work.where(
        lambda line: not line.writes or line.is_atomic or line.is_branch or line.opcode in EXCHANGES
    )
    ran = np.flatnonzero(work.executed > 0).tolist()
    lanes, before = np.where(ends | (work.executed == 0), 1.0, 0.0), None
    while before is None or (lanes != before).any():
        before = lanes.copy()
        for at in reversed(ran):
            for use in code.readers[at]:
                if lanes[use] > lanes[at] and work.executed[use]:
                    left = _left_between(code, at, use, behind[use], of_term)
                    lanes[at] = max(lanes[at], lanes[use] * left)
    together = min(test.together for test in tests)
    width = work.threads / np.maximum(1.0, work.executed)
    of_a_sector = width / np.maximum(1.0, work.global_sectors / np.maximum(1.0, work.executed))
    # A warp, or a sector, is needed if one of its lanes needs it.
    executed, sectors = (
        1.0 - (1.0 - lanes) ** np.clip(several, 1.0, together) for several in (width, of_a_sector)
    )
    return Needed(executed, sectors)


def _left_between(code: Program, at: int, use: int, tests: list[_Test], of_term: dict[int, float]) -> float:
    """Share of an instruction's threads in which another one reads its result."""
    if use <= at or not set(code.loops_around[at]) <= set(code.loops_around[use]):
        return 1.0  # in another round
    left = of_term.get(use, 1.0) if any(name[0] == "R" for name in code.sass[at].writes) else 1.0
    for test in tests:
        if at < test.at:
            left *= test.passes
    return left


def _tests(work: Work) -> Iterator[_Test]:
    code = work.code
    for at in np.flatnonzero(work.executed > 0).tolist():
        line = code.sass[at]
        told = code.producers(at, line.guard) if line.guard else ()
        if len(told) != 1 or not code.by_loads[told[0]]:
            continue
        first = last = at
        warps = 1.0
        if line.opcode in ("BRA", "EXIT"):
            target = code.target(at) if line.opcode == "BRA" else len(code.sass)
            if target is None or target <= at + 1 or code.predecessors[at + 1] != (at,):
                continue
            first, last = at + 1, target - 1
            passes = float(work.threads[first] / work.threads[at])
            warps = float(work.executed[first] / work.executed[at])
        elif line.is_store or line.is_atomic:
            passes = float(work.switched_on[at] / work.threads[at])
        else:
            continue
        if 0.0 < passes <= MOST_PASS:
            together = np.log1p(-warps) / np.log1p(-passes) if warps < 1.0 else WARP
            # A branch leads around what stands behind it.
            terms = _terms(code, told[0], line.when.startswith("!") == (first > at))
            yield _Test(at, first, last, passes, min(WARP, max(1.0, together)), _in_turn(work, terms))


def _terms(code: Program, at: int, wanted: bool) -> tuple[int, ...]:
    """The comparisons that must all hold, or all fail, for a predicate; it alone where one of them would do."""
    line = code.sass[at]
    if line.opcode in ("ISETP", "FSETP", "DSETP", "HSETP2"):
        other = line.operands[-2 if "EX" in line.modifiers else -1]
        told = code.producers(at, other.strip("!")) if other.strip("!") in line.reads else ()
        if len(told) == 1 and ("AND" if wanted else "OR") in line.modifiers:
            return (*_terms(code, told[0], wanted != other.startswith("!")), at)
    return (at,)


def _in_turn(work: Work, terms: tuple[int, ...]) -> tuple[int, ...]:
    """These comparisons by the sectors that are loaded for each."""
    code = work.code

    def asked(term: int) -> float:
        names = (name for name in code.sass[term].reads if name[0] == "R")
        made_of = reached((one for name in names for one in code.producers(term, name)), code.sources)
        return float(sum(work.global_sectors[at] for at in made_of))

    return tuple(sorted(terms, key=asked))
