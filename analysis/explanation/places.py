"""Where a finding sits: the user's own lines that its weight falls on, else the instructions.

Code of a toolkit's header counts against the line of the user's own file that it was inlined into: the
nearest instruction before it that has one, where the report says no more. Code without lines has stretches of
instructions as places, each named by its heaviest one.
"""

from __future__ import annotations

import numpy as np

from gemmprof.analysis.explanation.demands.work import Array, Work
from gemmprof.analysis.sections.by_line import Code, base_name
from gemmprof.model import CodePlace, Instruction

MOST = 5  # places of one finding
STRETCH = 8  # instructions without a line that lie no further apart are one place
LEAST = 0.03  # share of a finding below which a place is not named


def places(work: Work, weights: Array | None) -> tuple[CodePlace, ...]:
    """The places that a weight by instruction falls on, heaviest first; at most `MOST`."""
    if weights is None or work.code is None:
        return ()
    total = float(weights.sum())
    if total <= 0:
        return ()
    code = Code(work.profile)
    owned = work.own_lines
    groups: dict[tuple[str, int] | int, list[int]] = {}
    stretch = last = -STRETCH - 1
    for index in np.flatnonzero(weights):
        at = int(index)
        own = owned[at]
        if own is None:
            # Code without lines: what lies close together is one place.
            stretch = stretch if at - last <= STRETCH and stretch >= 0 else at
            last = at
        groups.setdefault(stretch if own is None else own, []).append(at)
    ranked = sorted(groups.items(), key=lambda item: -float(weights[item[1]].sum()))
    found: list[CodePlace] = []
    for key, indices in ranked[:MOST]:
        part = float(weights[indices].sum()) / total
        if found and part < LEAST:
            break
        worst = work.instructions[max(indices, key=lambda at: weights[at])]
        if isinstance(key, tuple):
            file, line = key
            inlined = (
                (f"{base_name(worst.file or '')}:{worst.line}",) if _elsewhere(worst, file, line) else ()
            )
            found.append(
                CodePlace(
                    file, line, part, code.line_text(file, line), worst.address, worst.sass.strip(), inlined
                )
            )
        else:
            found.append(CodePlace(None, None, part, "", worst.address, worst.sass.strip()))
    return tuple(found)


def _elsewhere(instruction: Instruction, file: str, line: int) -> bool:
    return instruction.file is not None and (instruction.file, instruction.line) != (file, line)
