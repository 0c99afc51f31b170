"""Which one kernel a user means: every option that takes one (``--before``, ``--after``, ``--baseline``) reads it here.

``5``, ``warptile``, ``half:3``, ``5@2048``, ``5@2048-bfloat16`` name a stage of a run: by number or name, of a ladder
where two have it, on a shape. In a report without stages a number is the position of a launch, counted from 0 as in
``--launch``; ``#3`` is the family of that id. Anything else is a part of one kernel's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gemmprof import metrics as m
from gemmprof.analysis.inputs.selection import family_numbers, is_family_id, natural, some
from gemmprof.base.errors import UsageError
from gemmprof.model import KernelProfile, Problem, StageResult
from gemmprof.runs.directory import NVTX_PREFIX, Run, nvtx_range


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel that may be meant.

    Attributes:
        label: its name for people.
        name: its full name.
        positions: of its launches in the report.
        number, stage, ladder, problem: what it is in a run, as far as that is known.
        family: number of the family that it is a launch of (``#3`` is 3).
    """

    label: str
    name: str = ""
    positions: tuple[int, ...] = ()
    number: int | None = None
    stage: str = ""
    ladder: str = ""
    problem: Problem | None = None
    family: int | None = None


def one_kernel(selector: str, candidates: Sequence[Candidate], where: str) -> int:
    """Position among the candidates of the one that a user names; without a shape, the first shape of a stage.

    Args:
        selector: what the user wrote.
        where: what the candidates are in, for the error.

    Raises:
        UsageError: if it names none, or several.
    """
    found = _matching(selector, candidates)
    if found and is_family_id(selector):
        return found[0]
    kernels = {at if (c := candidates[at]).number is None else (c.ladder, c.number) for at in found}
    if len(kernels) == 1:
        return found[0]
    labels = sorted((candidates[at].label for at in (found or range(len(candidates)))), key=natural)
    raise UsageError(
        f"'{selector}' matches {'several kernels' if found else 'nothing'} in {where}",
        found=some(labels, limit=12) or "no kernels",
        remedies=[
            "give a stage's number or name (5, or 5@2048, or half:5)"
            if any(candidate.number is not None for candidate in candidates)
            else "give a launch's position, counted from 0",
            "or more of one kernel's name",
        ],
    )


def position_in(selector: str | None) -> int | None:
    """The number that a selector is, None if it is none."""
    return int(selector) if selector and re.fullmatch(r"[0-9]{1,9}", selector) else None


def _matching(selector: str, candidates: Sequence[Candidate]) -> list[int]:
    if is_family_id(selector):
        (*_, family) = family_numbers(selector)
        return [place for place, candidate in enumerate(candidates) if candidate.family == family]
    text, at, shape = selector.partition("@")
    ladder, _, text = text.rpartition(":")
    number = position_in(text)
    in_a_run = any(candidate.number is not None for candidate in candidates)
    of_stage = [
        (place, candidate.problem)
        for place, candidate in enumerate(candidates)
        if candidate.number is not None
        and ladder in ("", candidate.ladder)
        and (candidate.number == number or (text and candidate.stage == text))
    ]
    if of_stage:
        if not at:
            return [of_stage[0][0]]
        wanted = Problem.parse(shape)
        exact = [place for place, problem in of_stage if problem == wanted]
        # Without a type, the shape alone may tell: in a run of the 16-bit ladder 2048 means its 2048³.
        return exact or [place for place, problem in of_stage if problem and wanted.is_shape_of(problem)]
    if number is not None:
        return (
            [] if in_a_run else [n for n, candidate in enumerate(candidates) if number in candidate.positions]
        )
    wanted_name = selector.lower()
    return [
        place
        for place, candidate in enumerate(candidates)
        if wanted_name in candidate.label.lower() or wanted_name in candidate.name.lower()
    ]


def stage_launch(run: Run, result: StageResult, launches: Sequence[KernelProfile]) -> KernelProfile | None:
    """The launch of one stage on one problem among the launches of the report that its result names.

    Without an index in the run, the NVTX range tells; the longest launch where a library split the work into several.
    The launches may be a selection: one launch alone is the stage's only if it is in no other stage's range.
    """
    if result.launch_index is not None:
        return next((launch for launch in launches if launch.index == result.launch_index), None)
    in_ranges = any(name.startswith(NVTX_PREFIX) for launch in launches for name in launch.nvtx)
    if len(launches) > 1 or in_ranges:
        name = nvtx_range(run.record_of(result).stage.name, result.problem)
        launches = [launch for launch in launches if name in launch.nvtx]
    return max(launches, key=lambda launch: launch.number(m.DURATION) or 0.0, default=None)
