"""Which kernels of two sides belong together: by full name, grid and block, else by what their code says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gemmprof.analysis.comparison.code import likeness
from gemmprof.analysis.comparison.records import KernelRecord
from gemmprof.analysis.comparison.sides import Side, problem_of
from gemmprof.analysis.inputs.one_kernel import Candidate, one_kernel
from gemmprof.model import Problem

How = Literal["name", "renamed", "only", "chosen", "ladder"]

ALIKE = 0.75
"""Kernels of other names whose code is alike by at least this are taken for one that was renamed."""


@dataclass(frozen=True, slots=True)
class Match:
    """Two kernels that belong together, or one that has no counterpart.

    Attributes:
        before, after: None where there is none.
        how: by name; renamed (by code); the only kernel of each side; chosen by the user; rungs of a ladder.
        likeness: of the code of a renamed kernel, 0 to 1.
    """

    before: KernelRecord | None
    after: KernelRecord | None
    how: How = "name"
    likeness: float = 1.0

    @property
    def label(self) -> str:
        """Name for people (untrusted text)."""
        if self.before is None or self.after is None:
            present = self.before or self.after
            return "" if present is None else present.label
        if self.before.label == self.after.label:
            return self.after.label
        return f"{self.before.label} → {self.after.label}"


def match(before: Side, after: Side) -> tuple[Match, ...]:
    """The kernels of two sides in pairs; what has no counterpart stands alone, at the end."""
    if len(before.kernels) == len(after.kernels) == 1:
        left, right = before.kernels[0], after.kernels[0]
        return (Match(left, right, "name" if left.key == right.key else "only"),)
    right_by_key = {record.key: record for record in after.kernels}
    found: list[Match] = []
    gone: list[KernelRecord] = []
    for record in before.kernels:
        other = right_by_key.pop(record.key, None)
        if other is None:
            gone.append(record)
        else:
            found.append(Match(record, other))
    renamed = list(_renamed(gone, list(right_by_key.values())))
    taken = {id(record) for pair in renamed for record in (pair.before, pair.after)}
    found += renamed
    found += [Match(record, None) for record in gone if id(record) not in taken]
    found += [Match(None, record) for record in right_by_key.values() if id(record) not in taken]
    return tuple(found)


def _renamed(gone: Sequence[KernelRecord], new: Sequence[KernelRecord]) -> Iterable[Match]:
    """Pairs of kernels with other names and like code, the most alike first."""
    candidates = sorted(
        (
            (likeness(left.code, right.code), position, left, right)
            for left in gone
            for position, right in enumerate(new)
            if _may_be_renamed(left, right)
        ),
        key=lambda item: (-item[0], item[1]),
    )
    taken: set[int] = set()
    for alike, _, left, right in candidates:
        if alike >= ALIKE and id(left) not in taken and id(right) not in taken:
            taken |= {id(left), id(right)}
            yield Match(left, right, "renamed", alike)


def _may_be_renamed(left: KernelRecord, right: KernelRecord) -> bool:
    if left.key[0] == right.key[0] == "build":
        return left.key[2] == right.key[2]  # of one architecture
    # A kernel launched otherwise is another use of it, and stages of runs have names of their own.
    return left.grid == right.grid and left.block == right.block and bool(left.grid)


def rungs(side: Side) -> tuple[Match, ...]:
    """Each kernel of a ladder with the one before it; () if the side is no ladder.

    A run of stages is a ladder, and so is a report of single launches whose function names begin alike
    (``gemm_naive``, ``gemm_shared``).
    """
    groups: dict[str, list[KernelRecord]] = {}
    for record in side.kernels:
        groups.setdefault(problem_of(record), []).append(record)
    if not side.stages and not _is_ladder(side.kernels):
        return ()
    return tuple(
        Match(first, second, "ladder") for group in groups.values() for first, second in pairwise(group)
    )


_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^()]*>)?\s*\(")


def _is_ladder(kernels: Sequence[KernelRecord]) -> bool:
    functions = [found[1] if (found := _FUNCTION.search(record.name)) else "" for record in kernels]
    # Triton's and C's names often begin with an underscore, which says nothing of what they have in common.
    stems = {function.lstrip("_").partition("_")[0] for function in functions}
    return (
        len(kernels) > 1
        and all(record.launches == 1 for record in kernels)
        and all("_" in function.lstrip("_") for function in functions)
        and len(stems) == 1
    )


def chosen(side: Side, selector: str) -> KernelRecord:
    """The one kernel that a selector names, as `analysis.one_kernel` reads it.

    Raises:
        UsageError: if it names none, or several.
    """
    candidates = []
    for position, record in enumerate(side.kernels):
        number = int(record.key[1]) if record.key[0] == "stage" else None
        problem = Problem.parse(problem_of(record)) if number is not None else None
        candidates.append(Candidate(record.label, record.name, position, number, problem=problem))
    return side.kernels[one_kernel(selector, candidates, side.title)]
