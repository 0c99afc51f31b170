"""What warps really wait for where ncu has one name for several waits: told by the instruction that waits.

The state that ncu calls Barrier covers a block's barriers, those of a cluster, and the wait for wgmma's results
(``WARPGROUP.DEPBAR``). A wait at an mbarrier, for a tensor copy to arrive or a buffer to be free, is the wait of a
branch for the answer of ``SYNCS…TRYWAIT``, and counts as Long Scoreboard.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmprof.analysis import opcodes
from gemmprof.analysis.sections.by_line import by_address
from gemmprof.model import Instruction, KernelProfile

BARRIER, LONG = "barrier", "long_scoreboard"
LEAST = 0.02  # waits of less than this share of their state are not told apart from it
# Instructions between the question to an mbarrier and the branch on its answer, and in a loop after that.
_LOOK_BACK, _LOOK_AHEAD = 32, 48
_PREDICATE = re.compile(r"\bP[0-6]\b")
_FIRST_OPERANDS = re.compile(r"\s*(?:@!?U?P\w+\s+)?\S+\s+((?:U?P\w,?\s*)+)")


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that warps wait for.

    Attributes:
        title: a few words for tables.
        meaning: one sentence, as of a stall reason: what the warp waits for.
        group: as of a stall reason.
    """

    title: str
    meaning: str
    group: str


BLOCK = Wait(
    "block barrier",
    "Waits at a barrier of its block (__syncthreads or a named one) for other warps.",
    "synchronisation",
)
CLUSTER = Wait(
    "cluster barrier", "Waits at the barrier of its cluster for the other blocks.", "synchronisation"
)
WGMMA = Wait(
    "wgmma results", "Waits for the matrix products of its warpgroup (wgmma) to be done.", "execution"
)
MBARRIER = Wait(
    "mbarrier",
    "Waits at an mbarrier: for a copy to arrive, or for the warps that still read its buffer.",
    "synchronisation",
)


@dataclass(frozen=True, slots=True)
class WaitShare:
    """A wait and its samples; ``share`` is of the samples of its state, 0 to 1."""

    wait: Wait
    samples: int
    share: float


def waits_by_state(profile: KernelProfile, samples: Mapping[str, str]) -> dict[str, tuple[WaitShare, ...]]:
    """The waits that the instructions tell apart, by the state that ncu counts them to, largest first.

    Args:
        samples: the sampling metric of each state.

    Returns:
        Nothing for a state that was not sampled by instruction, and for one in which all warps wait for what its name
        says.
    """
    code = profile.source.instructions
    found: dict[str, tuple[WaitShare, ...]] = {}
    for state in (BARRIER, LONG):
        counts = by_address(profile, samples[state]) if state in samples else None
        whole = sum(counts.values()) if counts else 0
        if not code or not counts or not whole:
            continue
        totals: dict[Wait, int] = {}
        for index, instruction in enumerate(code):
            count = counts.get(instruction.address, 0)
            wait = _wait_of(code, index, state) if count else None
            if wait is not None:
                totals[wait] = totals.get(wait, 0) + count
        shares = (WaitShare(wait, count, count / whole) for wait, count in totals.items())
        told = tuple(sorted((s for s in shares if s.share >= LEAST), key=lambda s: -s.samples))
        if told:
            found[state] = told
    return found


def _wait_of(code: Sequence[Instruction], index: int, state: str) -> Wait | None:
    opcode = opcodes.opcode_of(code[index].sass)
    if state == BARRIER:
        if opcode.startswith("WARPGROUP"):
            return WGMMA
        return CLUSTER if opcode.startswith("UCGABAR") else BLOCK
    return MBARRIER if _asks_an_mbarrier(code, index, opcode) else None


def _asks_an_mbarrier(code: Sequence[Instruction], index: int, opcode: str) -> bool:
    """Whether the instruction waits for the answer of an mbarrier: it is a question, a sleep, or a branch on one."""
    if opcode.startswith("SYNCS") or opcode == "NANOSLEEP.SYNCS":
        return True
    if opcode.partition(".")[0] != "BRA":
        return False
    predicates = set(_PREDICATE.findall(code[index].sass))
    behind = code[max(0, index - _LOOK_BACK) : index]
    # In a loop the question of the last round stands below the branch.
    for other in (*reversed(behind), *code[index + 1 : index + _LOOK_AHEAD]):
        if predicates.intersection(_written(other.sass)):
            return "TRYWAIT" in other.sass
    return False


def _written(sass: str) -> tuple[str, ...]:
    """The predicates that an instruction writes: those that stand first among its operands."""
    match = _FIRST_OPERANDS.match(sass)
    return tuple(_PREDICATE.findall(match[1])) if match else ()
