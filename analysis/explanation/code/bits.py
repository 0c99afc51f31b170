"""Bits of a word that are worked out one at a time: a check sum, a scrambler, a code put together bit by bit."""

from __future__ import annotations

import numpy as np

from gemmprof.analysis.explanation.candidate import keep_of, share
from gemmprof.analysis.explanation.code.flow import reached
from gemmprof.analysis.explanation.demands.footprint import serving
from gemmprof.analysis.explanation.demands.work import Array, Work
from gemmprof.analysis.opcodes import Sass

BYTE = 8
"""Bits that a table of 256 entries, or a shift of the word, works out at once."""
_LOGIC = frozenset({"LOP3", "SHF", "LEA", "IADD3", "VIADD", "SEL", "PRMT", "MOV", "ISETP"})
_INPUTS = (0xF0, 0xCC, 0xAA)  # what a table of LOP3 is for each of its inputs alone


def one_by_one(work: Work) -> tuple[Array, float, float] | None:
    """What stays of each instruction where a byte's bits are worked out at once, how many bytes all warps work out
    then, and how many bits go into each value that is made of them; None where bits are not worked out one by one.
    """
    code, ran = work.code, work.executed > 0
    single = {int(at) for at in np.flatnonzero(ran & work.where(_is_one_bit))}
    if not single:
        return None
    logic = ran & work.where(
        lambda line: (
            line.opcode in _LOGIC or (line.opcode == "IMAD" and not {"MOV", "SHL"}.isdisjoint(line.modifiers))
        )
    )
    made = reached(single, lambda at: [use for use in code.readers[at] if logic[use]])
    used = {use for at in made for use in code.readers[at] if ran[use] and not logic[use]}
    # Neither what a branch tests nor an address is a word that bits are put together in.
    if any(work.sass[use].is_branch or work.sass[use].is_load for use in used):
        return None
    bits = float(work.executed[list(single)].sum())
    together = share(bits, float(work.executed[list(used)].sum()))
    if together < BYTE:
        return None
    keep = keep_of(work)
    keep[list(made | serving(work, made))] = 1.0 / BYTE
    return keep, bits / BYTE, together


def _is_one_bit(line: Sass) -> bool:
    """Whether an instruction leaves nothing but the lowest bit of something, or of what it makes of several."""
    if line.opcode != "LOP3" or len(line.operands) < 5 or "0x1" not in line.operands[-5:-2]:
        return False
    return not int(line.operands[-2], 16) & ~_INPUTS[line.operands[-5:-2].index("0x1")]
