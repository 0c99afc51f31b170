"""Recognises divisions of integers in SASS: inlined, or called as a subroutine of 64 bits."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.code.sequences import connected, region
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work

COUNTED = 0.1  # share of a division's instructions that counting an index along takes


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
    for first, last in code.functions:
        body = code.sass[first : last + 1]
        if not any(line.opcode == "I2F" and "64" in line.full and "RP" in line.modifiers for line in body):
            continue
        found[first : last + 1] = wide[first : last + 1] = True
        for call in code.callers((first, last)):
            rows = region(work, call)
            found[rows] = True
            wide[rows] = True
            if work.executed[call] and _from_memory(work, call):
                of_data[rows] = True
                of_data[first : last + 1] = True
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
    keep = np.where(found, np.where(of_data, data, COUNTED), 1.0)
    return Divisions(found, keep, bool((wide & found & (work.executed > 0)).any()))


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
