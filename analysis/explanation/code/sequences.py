"""Recognises in SASS what no single opcode says: precise mathematical functions (of integers: `divisions`).

Each inlined function leaves a constant in the code that nothing else uses (a coefficient of its polynomial,
a bound of its range). From there the instructions that depend on one another are collected until there are
as many as the function takes. The counts were read from code that nvcc 13.0 makes for compute capability
9.0.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.code.sass import Sass
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work

REACH = 90
"""Instructions between the first and the last of one sequence, at most: the scheduler mixes it with its
surroundings.
"""
_CLASSES = frozenset({"fp32", "integer", "move", "special", "conversion", "fp16"})


@dataclass(frozen=True, slots=True)
class Function:
    """A precise function in SASS.

    Attributes:
        name: as in CUDA C++.
        signature: pattern of the one instruction of each call that tells it.
        instructions: that one call executes.
        fast: that the fast function executes instead.
        remedy: the fast function.
        guarded: its code lies between a BSSY and a BSYNC, special cases included.
    """

    name: str
    signature: re.Pattern[str]
    instructions: int
    fast: int
    remedy: str
    guarded: bool = False


def _function(
    name: str, signature: str, instructions: int, fast: int, remedy: str, *, guarded: bool = False
) -> Function:
    return Function(name, re.compile(signature), instructions, fast, remedy, guarded)


FUNCTIONS = (
    _function("sinf/cosf", r"FMUL\S* .*, 0\.636619746685", 27, 2, "__sinf, __cosf, sincospif"),
    _function(
        "powf",
        r"FFMA\S* .*, 0\.003218165365",
        76,
        10,
        "products for a small whole exponent, else __powf",
        guarded=True,
    ),
    _function("logf", r"FFMA\S* .*, 0\.14084610342", 26, 5, "__logf"),
    _function("log2f", r"FFMA\S* .*, -0\.16845393180", 28, 4, "__log2f"),
    _function("log10f", r"FMUL\S* .*, 0\.434294492006", 26, 5, "__log10f"),
    _function("expf", r"FFMA\.RM .*, 12582913", 8, 5, "__expf"),
    _function("tanhf", r"FFMA\S* .*, -0\.05230396240949", 15, 9, "tanh.approx, or __expf and __fdividef"),
    _function("erff", r"FSEL .*, 8\.48349445732e?", 28, 12, "an approximation of your own"),
    _function("division", r"FCHK ", 12, 4, "__fdividef or a product with the reciprocal", guarded=True),
    _function(
        "reciprocal", r"(?:VIADD|IADD3) .*, 0x1800000\b", 11, 2, "__frcp_rn or -prec-div=false", guarded=True
    ),
    _function(
        "sqrtf",
        r"(?:VIADD|IADD3) .*, (?:-0xd000000|0xf3000000)\b",
        11,
        4,
        "rsqrtf, or -prec-sqrt=false",
        guarded=True,
    ),
)
"""Signatures and costs, from nvcc 13.0 for compute capability 9.0."""
_SOME_SIGNATURE = re.compile("|".join(f"(?:{function.signature.pattern})" for function in FUNCTIONS))

LONGEST_GUARDED = 150
"""Instructions between the branch around a slow path and where the ways meet again."""
WHOLE_POWER = 4
"""Products that a small whole power takes."""

_REDUCTION = re.compile(r"0x54442d19|0x3bf921fb")
"""In the slow path of sinf and cosf for large arguments (2/pi in many bits)."""


@dataclass(frozen=True)
class Found:
    """Instructions of precise functions, with the share of each that fast ones would keep."""

    instructions: Mask
    keep: Array
    names: tuple[str, ...]
    remedy: str


def precise_functions(work: Work) -> Found:
    """Every call of a precise function that was executed."""
    assert work.code is not None
    taken = np.zeros(len(work.sass), dtype=bool)
    keep = np.ones(len(work.sass))
    weight: dict[str, float] = {}
    remedies: dict[str, str] = {}
    for index, line in enumerate(work.sass):
        if not work.executed[index] or not _SOME_SIGNATURE.search(line.text):
            continue
        for function in FUNCTIONS:
            if not function.signature.search(line.text):
                continue
            rows = region(work, index) if function.guarded else []
            if not rows or len(rows) > 1.4 * function.instructions:
                # The compiler mixed it with its surroundings: only what depends on it is its own.
                rows = connected(work, index, function.instructions, taken)
            taken[rows] = True
            fast = WHOLE_POWER if function.name == "powf" and _whole_exponent(work, rows) else function.fast
            keep[rows] = min(1.0, fast / max(fast, len(rows)))
            weight[function.name] = weight.get(function.name, 0.0) + float(work.executed[rows].sum())
            remedies[function.name] = function.remedy
    for first, last in _slow_paths(work):
        inside = slice(first, last + 1)
        taken[inside] |= work.executed[inside] > 0
        keep[inside] = np.where(work.executed[inside] > 0, 0.0, keep[inside])
    _guards(work, taken, keep)
    names = tuple(sorted(weight, key=lambda name: -weight[name])[:3])
    remedy = "; ".join(dict.fromkeys(remedies[name] for name in names))
    return Found(taken, keep, names, remedy)


def _guards(work: Work, taken: Mask, keep: Array) -> None:
    """The branches around a precise function's slow path go with it, and where they meet again."""
    code = work.code
    assert code is not None
    for start, line in enumerate(work.sass):
        end = code.target(start) if line.opcode == "BSSY" else None
        if end is None or not start < end <= start + LONGEST_GUARDED:
            continue
        inside = [at for at in range(start + 1, end) if work.executed[at] > 0]
        own = [at for at in inside if taken[at]]
        others = [at for at in inside if not taken[at] and work.sass[at].opcode != "BRA"]
        if own and len(others) <= 0.3 * len(own):
            for at in (start, end, *(at for at in inside if work.sass[at].opcode == "BRA")):
                taken[at] = True
                keep[at] = 0.0


def _whole_exponent(work: Work, rows: list[int]) -> bool:
    """Whether a power's exponent is a small whole constant: the logarithm is multiplied by it."""
    return any(
        work.sass[at].opcode == "FMUL" and re.fullmatch(r"[2-8]", work.sass[at].operands[-1]) is not None
        for at in rows
    )


def region(work: Work, index: int, longest: int = LONGEST_GUARDED) -> list[int]:
    """Executed instructions between the BSSY before this one and its BSYNC, without memory accesses; [] for
    none.
    """
    code = work.code
    assert code is not None
    for start in range(index, max(-1, index - longest), -1):
        if code.sass[start].opcode != "BSSY":
            continue
        end = code.target(start)
        if end is None or end < index:
            continue
        if end - start > longest:
            return []
        return [at for at in range(start, end + 1) if work.executed[at] > 0 and not code.sass[at].space]
    return []


def _slow_paths(work: Work) -> list[tuple[int, int]]:
    """Spans of the code that precise functions run for awkward arguments: reductions, and called
    subroutines.
    """
    code = work.code
    assert code is not None
    spans = []
    for index, line in enumerate(code.sass):
        if _REDUCTION.search(line.text):
            start = next(
                (
                    at
                    for at in range(index, max(-1, index - 140), -1)
                    if code.sass[at].opcode == "BSSY" and _holds(work, at, index)
                ),
                None,
            )
            if start is not None:
                end = code.target(start)
                # The guard before it, which most threads take, is no part of the slow path.
                skip = next((at for at in range(start, index) if code.sass[at].opcode == "BRA"), start)
                spans.append((skip + 1, (end or index) - 1))
    for first, last in code.functions:
        body = code.sass[first : last + 1]
        singles = any("FTZ" in line.modifiers and line.opcode in ("FADD", "FSETP", "FMUL") for line in body)
        if singles and not any(line.opcode in ("DFMA", "DMUL", "DADD") for line in body):
            spans.append((first, last))
    return spans


def _holds(work: Work, start: int, index: int) -> bool:
    end = work.code.target(start) if work.code is not None else None
    return end is not None and end > index


POLYNOMIAL = 5
"""Steps of a polynomial with constant coefficients from which on it belongs to a function of the FP64
library.
"""


def double_functions(work: Work) -> Mask:
    """Instructions of inlined FP64 functions (exponential, logarithm and the like): polynomials and around
    them.
    """
    code = work.code
    assert code is not None
    steps = [
        index
        for index, line in enumerate(code.sass)
        if line.opcode == "DFMA" and work.executed[index] and line.operands[-1].lstrip("-").startswith("UR")
    ]
    found = np.zeros(len(code.sass), dtype=bool)
    groups: list[list[int]] = []
    for index in steps:
        if groups and index - groups[-1][-1] <= 14:
            groups[-1].append(index)
        else:
            groups.append([index])
    for group in groups:
        if len(group) < POLYNOMIAL:
            continue
        often = work.executed[group[0]]
        for at in range(max(0, group[0] - 24), min(len(found), group[-1] + 14)):
            similar = 0.5 * often <= work.executed[at] <= 2.0 * often
            found[at] |= similar and not code.sass[at].space and not code.sass[at].is_branch
    return found


def _fits(line: Sass) -> bool:
    return line.instruction_class in _CLASSES and not line.space


def connected(work: Work, index: int, count: int, taken: Mask) -> list[int]:
    """Up to ``count`` instructions that depend on this one or on which it depends, the nearest first."""
    code = work.code
    assert code is not None
    often = work.executed[index]
    found = [index]
    seen = {index}
    waiting = deque([index])
    while waiting and len(found) < count:
        at = waiting.popleft()
        near = [source for register in code.sass[at].reads for source in code.producers(at, register)]
        near += code.consumers(at, REACH)
        for other in sorted(near, key=lambda place: abs(place - at)):
            if other in seen or abs(other - index) > REACH or len(found) >= count:
                continue
            seen.add(other)
            similar = 0.2 * often <= work.executed[other] <= 5.0 * often
            if similar and not taken[other] and _fits(code.sass[other]):
                found.append(other)
                waiting.append(other)
    return found
