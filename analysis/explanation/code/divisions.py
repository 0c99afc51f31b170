"""Recognises divisions of integers in SASS: inlined, or called as a subroutine of 64 bits."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.candidate import share
from gemmprof.analysis.explanation.code import sequences
from gemmprof.analysis.explanation.code.sass import Sass
from gemmprof.analysis.explanation.code.sequences import connected, region
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work

COUNTED = 0.1  # share of a division's instructions that counting an index along takes
# A remainder by a divisor whose reciprocal is known: the upper half of a product, the product of quotient and
# divisor, a difference and its correction (Barrett): multiply-adds, and others, of 64 and of 32 bits (nvcc 13.0).
WIDE_PRODUCTS, WIDE_OTHERS = 7, 7
NARROW_PRODUCTS, NARROW_OTHERS = 2, 4


@dataclass(frozen=True)
class Divisions:
    """Instructions of integer divisions, the share of each that stays, and whether any is of 64 bits."""

    instructions: Mask
    keep: Array
    wide: bool


def integer_divisions(work: Work) -> Divisions:
    """Divisions and remainders by values that the compiler does not know.

    Those of indices can be counted along, and all but a tenth is gone. Those of values from memory can be
    multiplications with the reciprocal, which take a good part of the instructions themselves.
    """
    code = work.code
    assert code is not None
    found = np.zeros(len(code.sass), dtype=bool)
    of_data = np.zeros(len(code.sass), dtype=bool)
    wide = np.zeros(len(code.sass), dtype=bool)
    fixed = np.ones(len(code.sass))
    for first, last in code.functions:
        body = range(first, last + 1)
        start = next((at for at in body if _wide_reciprocal(code.sass[at])), None)
        if start is None:
            continue
        found[first : last + 1] = wide[first : last + 1] = True
        of_it = set(body)
        calls = code.callers((first, last))
        for call in calls:
            around = _around(work, call, body)
            found[around] = wide[around] = True
            of_it.update(around)
            if around and _from_memory(work, call):
                of_data[around] = True
                of_data[first : last + 1] = True
        if _divisor_stays(work, start, calls):
            # Values of 32 bits go another way around the call.
            called = sum(float(work.executed[call]) for call in calls)
            around_it = max(
                0.0, sum(float(work.executed[(region(work, at) or [at])[0]]) for at in calls) - called
            )
            products = WIDE_PRODUCTS * called + NARROW_PRODUCTS * around_it
            others = WIDE_OTHERS * called + NARROW_OTHERS * around_it
            for whole, of in ((products, True), (others, False)):
                mine = [at for at in of_it if (code.sass[at].opcode == "IMAD") == of and work.executed[at]]
                fixed[mine] = min(1.0, share(whole, float(work.executed[mine].sum())))
    for index, line in enumerate(code.sass):
        if work.executed[index] and line.opcode == "I2F" and "RP" in line.modifiers and not found[index]:
            rows = connected(work, index, 9, found)
            found[rows] = True
    for index, line in enumerate(code.sass):
        if not work.executed[index] or not line.full.startswith("IMAD.HI") or wide[index]:
            continue
        if found[index] or _from_reciprocal(work, index):
            found[index] = False
            rows = connected(work, index, 12, found)
            found[rows] = True
            of_data[rows] = _from_memory(work, index)
    heavy = np.array([line.opcode == "IMAD" for line in code.sass])
    data = np.where(wide, np.where(heavy, 0.65, 0.3), np.where(heavy, 1.0, 0.7))
    data = np.where(fixed < 1.0, fixed, data)
    keep = np.where(found, np.where(of_data, data, COUNTED), 1.0)
    return Divisions(found, keep, bool((wide & found & (work.executed > 0)).any()))


def _wide_reciprocal(line: Sass) -> bool:
    """The conversion of a 64-bit divisor, the first step of its division."""
    return line.opcode == "I2F" and "64" in line.full and "RP" in line.modifiers


def _around(work: Work, call: int, body: range) -> list[int]:
    """What lies between the ways' parting and meeting around a call, without what is used elsewhere, too."""
    code = work.code
    assert code is not None
    rows = region(work, call)
    turn = next((at for at in rows if code.sass[at].opcode == "BRA"), None)
    if turn is None:
        return rows
    own = set(
        sequences.feeding(work, {*body, *(at for at in rows if at >= turn or code.sass[at].opcode == "BSSY")})
    )
    return [at for at in rows if at in own]


def _divisor_stays(work: Work, start: int, calls: Sequence[int]) -> bool:
    """Whether what a function divides by is the same in all threads, or stays in the loop around its calls."""
    code = work.code
    assert code is not None
    loops = [code.loop_of(call) for call in calls]
    seen = {start}
    waiting = [start]
    while waiting:
        at = waiting.pop()
        for source in (source for name in code.sass[at].reads for source in code.producers(at, name)):
            if source in seen or not code.depends_on[source]:
                continue
            if any(loop is None or (source in loop and code.varies(loop)[source]) for loop in loops):
                return False
            seen.add(source)
            waiting.append(source)
    return True


def _from_memory(work: Work, index: int, steps: int = 60) -> bool:
    """Whether what an instruction reads was computed from loaded values (constants excluded)."""
    code = work.code
    assert code is not None
    seen = {index}
    waiting = deque([index])
    while waiting and len(seen) < steps:
        at = waiting.popleft()
        registers = code.sass[at].reads
        if code.sass[at].opcode == "CALL":
            # A call's arguments are what was moved just before it.
            registers = tuple(
                name for before in range(max(0, at - 6), at) for name in code.sass[before].reads
            )
        for register in registers:
            for source in code.producers(at, register):
                line = code.sass[source]
                if line.space in ("global", "shared", "local") and not line.is_store:
                    return True
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)
    return False


def _from_reciprocal(work: Work, index: int, depth: int = 3) -> bool:
    """Whether a value goes back to the integer reciprocal of a division: ``F2I…TRUNC`` of ``MUFU.RCP``."""
    code = work.code
    assert code is not None
    for register in work.sass[index].reads:
        for at in code.producers(index, register):
            line = code.sass[at]
            if line.opcode == "F2I" and "U32" in line.modifiers:
                return True
            if depth > 0 and line.opcode == "IMAD" and _from_reciprocal(work, at, depth - 1):
                return True
    return False
