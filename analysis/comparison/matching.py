"""Which kernels of two sides belong together: by what tells families apart, by full name, else by their code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gemmprof.analysis.comparison.records import KernelRecord, likeness
from gemmprof.analysis.comparison.sides import Side, disassembled, problem_of
from gemmprof.analysis.inputs.selection import Choice, one_kernel
from gemmprof.base.spread import grouped
from gemmprof.model import Problem

How = Literal["name", "launch", "renamed", "only", "chosen", "ladder"]

ALIKE = 0.75  # kernels of other names whose code is alike by at least this are taken for one that was renamed
# The same where grid or block differ, too: kernels of one library are alike (element-wise ones of torch by
# 0.8).
ALIKE_ELSEWHERE = 0.9
MOST_PAIRS = 2500  # codes are not held against each other beyond this: it takes a disassembly a kernel


@dataclass(frozen=True, slots=True)
class Match:
    """Two kernels that belong together, or one that has no counterpart."""

    # before, after: None where there is none
    before: KernelRecord | None
    after: KernelRecord | None
    # by name; of one name launched otherwise; renamed (by code); the only kernel of each side; chosen by the user;
    # rungs of a ladder
    how: How = "name"
    likeness: float = 1.0  # of the code of a renamed kernel, 0 to 1

    @property
    def both(self) -> tuple[KernelRecord, KernelRecord] | None:
        """The two of it; None where one has no counterpart."""
        return None if self.before is None or self.after is None else (self.before, self.after)

    @property
    def title(self) -> str:
        """Name for people, with what tells it from others of that name (untrusted text)."""
        return " → ".join(dict.fromkeys(record.title for record in (self.before, self.after) if record))

    @property
    def label(self) -> str:
        """The one spelling of the name; of a renamed kernel both."""
        return " → ".join(dict.fromkeys(record.label for record in (self.before, self.after) if record))

    @property
    def family(self) -> int | None:
        """Number of its family in the later report, in the earlier one if it is gone; None where it has none."""
        present = self.after or self.before
        return None if present is None else present.family


def match(before: Side, after: Side) -> tuple[Match, ...]:
    """The kernels of two sides in pairs; what has no counterpart stands alone, at the end.

    First those of one key; of the rest those of one full name, the more of the launch is alike the sooner (another
    grid or block is the usual change when a kernel is tuned); then those that were renamed.
    """
    if len(before.kernels) == len(after.kernels) == 1:
        left, right = before.kernels[0], after.kernels[0]
        how: How = "name" if left.key == right.key else "launch" if left.name == right.name else "only"
        return (Match(left, right, how),)
    right_by_key = {record.key: record for record in after.kernels}
    found: list[Match] = []
    gone: list[KernelRecord] = []
    for record in before.kernels:
        other = right_by_key.pop(record.key, None)
        if other is None:
            gone.append(record)
        else:
            found.append(Match(record, other))
    new = list(right_by_key.values())
    for rule in (_launched_otherwise, _renamed):
        pairs = list(rule(gone, new))
        found += pairs
        # No key is on both sides any more.
        taken = {record.key for pair in pairs for record in (pair.before, pair.after) if record}
        gone, new = ([record for record in left if record.key not in taken] for left in (gone, new))
    found += [Match(record, None) for record in gone]
    found += [Match(None, record) for record in new]
    return tuple(found)


def _launched_otherwise(gone: Sequence[KernelRecord], new: Sequence[KernelRecord]) -> Iterable[Match]:
    """Pairs of one full name with another grid, block, shared memory or NVTX path, those most alike first."""
    of_name = grouped((record.name, record) for record in new if _is_family(record))
    scored = [
        (_in_common(left, right), -abs(place - position), left, right)
        for place, left in enumerate(gone)
        if _is_family(left)
        for position, right in enumerate(of_name.get(left.name, ()))
    ]
    return (Match(left, right, "launch") for left, right, _ in _best(scored))


def _is_family(record: KernelRecord) -> bool:
    """Stages of runs and kernels of builds have keys of their own, which say all there is to say."""
    return record.key[0] not in ("stage", "build")


def _in_common(left: KernelRecord, right: KernelRecord) -> tuple[int, ...]:
    """How much of two launches is alike: the range and then the number of launches say more than sizes do."""
    return (
        left.nvtx == right.nvtx,
        left.launches == right.launches,
        (left.grid == right.grid) + (left.block == right.block),
        left.code is not None and right.code is not None and left.code.digest == right.code.digest,
    )


def _renamed(gone: Sequence[KernelRecord], new: Sequence[KernelRecord]) -> Iterable[Match]:
    """Pairs of kernels with other names and like code, or of one template with other numbers; most alike first."""
    if len(gone) * len(new) > MOST_PAIRS:
        return
    left_codes, right_codes = ([disassembled(record).code for record in side] for side in (gone, new))
    scored = []
    for left, code in zip(gone, left_codes, strict=True):
        for position, (right, other) in enumerate(zip(new, right_codes, strict=True)):
            alike = likeness(code, other)
            if _may_be_renamed(left, right, alike):
                score = (alike, left.grid == right.grid, left.block == right.block, left.nvtx == right.nvtx)
                scored.append((score, -position, left, right))
    for left, right, (alike, *_) in _best(scored):
        yield Match(left, right, "renamed", alike)


def _may_be_renamed(left: KernelRecord, right: KernelRecord, alike: float) -> bool:
    if left.key[0] != right.key[0] and not (_is_family(left) and _is_family(right)):
        return False
    if left.key[0] == "build":
        return alike >= ALIKE and left.key[2] == right.key[2]  # of one architecture
    if left.key[0] == "stage" or not (left.grid and right.grid):
        return False  # stages of runs have names of their own
    same_launch = left.grid == right.grid and left.block == right.block
    if alike >= (ALIKE if same_launch else ALIKE_ELSEWHERE):
        return True
    # ``tile<128, 8>(float *)`` is one with ``tile<64, 8>``; other types or functors make another kernel.
    return _NUMBER.sub("#", left.name) == _NUMBER.sub("#", right.name)


def _best(
    scored: Sequence[tuple[tuple[float, ...], int, KernelRecord, KernelRecord]],
) -> Iterable[tuple[KernelRecord, KernelRecord, tuple[float, ...]]]:
    """Pairs with the highest scores, each record once, and their scores."""
    taken: set[tuple[str, ...]] = set()
    for score, _, left, right in sorted(scored, key=lambda item: item[:2], reverse=True):
        if left.key not in taken and right.key not in taken:
            taken |= {left.key, right.key}
            yield left, right, score


def rungs(side: Side) -> tuple[Match, ...]:
    """Each kernel of a ladder with the one before it; () if the side is no ladder.

    A run of stages is a ladder, and so is a report of single launches whose function names begin alike
    (``gemm_naive``, ``gemm_shared``).
    """
    groups = grouped((problem_of(record), record) for record in side.kernels)
    if not side.stages and not _is_ladder(side.kernels):
        return ()
    return tuple(
        Match(first, second, "ladder") for group in groups.values() for first, second in pairwise(group)
    )


_NUMBER = re.compile(r"\b(?:\d+|true|false)\b")
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
    """The one kernel that a selector names, as `one_kernel` reads it; a number is the position of a launch.

    Raises:
        UsageError: if it names none, or several.
    """
    candidates = []
    for record in side.kernels:
        number = int(record.key[1]) if record.key[0] == "stage" else None
        problem = Problem.parse(problem_of(record)) if number is not None else None
        positions = tuple(position for times in record.times for position in times.positions)
        candidates.append(
            Choice(record.title, record.name, positions, number, problem=problem, family=record.family)
        )
    return side.kernels[one_kernel(selector, candidates, side.title)]
