"""Recognises in SASS bits of words that are worked out one at a time: a check sum, a scrambler, a code put together bit
by bit, a parity.

From what is stored, branched on or otherwise computed with it goes back which bits of each word anything is made of:
what makes a single one does a step for a bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product
from operator import and_, or_

import numpy as np

from gemmprof.analysis.explanation.code.address_forms import LOOK_UP, UNIFORM, checked_forms, values_of
from gemmprof.analysis.explanation.code.flow import Program, once, reached
from gemmprof.analysis.explanation.demands.distinct import connected
from gemmprof.analysis.explanation.demands.footprint import serving
from gemmprof.analysis.explanation.demands.work import Array, Work
from gemmprof.analysis.opcodes import Sass

BYTE = 8  # bits that a table of 256 entries, or a shift of the word, works out at once
_LOGIC = frozenset({"LOP3", "SHF", "LEA", "IADD3", "VIADD", "SEL", "PRMT", "MOV", "ISETP"})
_SUMS = frozenset({"IADD3", "VIADD", "IMAD"})
_MOVES = frozenset({"SHF", "MOV", "PRMT", "SEL"})
_INPUTS = (0xF0, 0xCC, 0xAA)  # what a table of LOP3 is for each of its inputs alone
WORD, SIGN, WORD_BYTES = 0xFFFFFFFF, 0x80000000, 4
_NUMBER = re.compile(r"-?0x[0-9a-f]+")


def one_by_one(work: Work) -> tuple[Array, float, float] | None:
    """What stays of each instruction where a byte's bits are worked out at once, how many bytes all warps work out
    then, and how many bits go into each value that is made of them; None where bits are not worked out one by one.
    """
    code, ran = work.code, work.ran
    loads = work.where(lambda line: line.is_load and bool(line.space)) & ran
    # Of a word that is looked up for each bit nothing else is there to be worked out, and what a warp's lanes take one
    # bit each of they exchange.
    others = {at for at, one in checked_forms(work).items() if one.form.kind in (LOOK_UP, UNIFORM)}
    single = {at for at in _single(work) if ran[at] and _of_bits(code.sass[at])}
    single -= reached(
        [at for at in single if not others.isdisjoint(code.sources(at))],
        lambda at: single.intersection(code.readers[at]),
    )

    def onward(at: int) -> list[int]:
        return [use for use in code.readers[at] if ran[use] and _goes_on(code, at, use)]

    keep, bits, words = work.all_kept(), 0.0, 0.0
    uses = {at: code.readers[at] for at in np.flatnonzero(loads).tolist()}
    for made in connected(reached(single, onward), code):
        mine = made & single
        # Bits are taken out of words, or put into them, or both.
        begins = [at for at in mine if mine.isdisjoint(code.sources(at))]
        ends = [at for at in mine if not (made - mine).isdisjoint(code.readers[at])]
        used = {use for at in made for use in code.readers[at] if ran[use]} - made
        # Neither what a branch tests nor an address is a word that bits are put together in.
        addresses = any(work.sass[use].is_branch or work.sass[use].is_load for use in used)
        put = max(float(work.executed[some].sum()) for some in (begins, ends))
        whole = float(work.executed[list(used)].sum())
        if addresses or put < BYTE * whole or not whole or _added_up(code, made, mine):
            continue
        # A word that is loaded for one of its bits is loaded for eight.
        made |= {at for at, by in uses.items() if by and mine.issuperset(by)}
        keep[list(made | serving(work, made))] = 1.0 / BYTE
        bits, words = bits + put, words + whole
    return (keep, bits / BYTE, bits / words) if words else None


def _added_up(code: Program, made: set[int], single: set[int]) -> bool:
    """Whether whole words that bits went into are added: a carry runs through all bits, worked out at once already."""
    moved = {at for at in made if code.sass[at].opcode in _MOVES}
    wide = made - reached(single, lambda at: moved.intersection(code.readers[at]))
    lines = ((at, code.sass[at]) for at in wide)
    reads = {at: line.reads for at, line in lines if line.opcode in _SUMS and not _digits(line)}
    return any(
        sum(not wide.isdisjoint(code.producers(at, name)) for name in names) > 1
        for at, names in reads.items()
    )


def _goes_on(code: Program, at: int, use: int) -> bool:
    """Whether an instruction works on with bits: what a bit lets pass, or picks, of loaded words is no such work."""
    line = code.sass[use]
    if not _of_bits(line):
        return False
    if any(name[0] == "R" for name in set(code.sass[at].writes) & set(line.reads)):
        return True
    words = [code.producers(use, name) for name in line.reads if name[0] == "R"]
    return not any(one and all(code.sass[source].is_load for source in one) for one in words)


def _single(work: Work) -> set[int]:
    """What leaves a single bit: the only one that anything is made of, or that a mask of one bit lets through."""
    code, sass = work.code, work.sass
    found = {at for at, bits in enumerate(wanted_bits(code)) if (bits & _possible(sass[at])).bit_count() == 1}
    # The upper half of a shift of 64 bits is no bit on its own: the lower one has the others.
    shifted = {
        at: (line.operands[2], code.producers(at, _bare(line.operands[3])))
        for at, line in enumerate(sass)
        if line.opcode == "SHF" and len(line.operands) > 3
    }
    lower = {what for at, what in shifted.items() if _number(sass[at].operands[1]) != 0}
    found -= {at for at, what in shifted.items() if what in lower}
    masks = {at for at in range(len(sass)) if _shifts_one(work, at)}

    def masked(at: int) -> Iterator[int]:
        for use in code.readers[at]:
            line = sass[use]
            mine = [one for one, text in enumerate(line.operands) if _bare(text) in sass[at].writes]
            if line.opcode == "SEL" and 0 in map(_number, line.operands[1:3]):
                yield use
            elif line.opcode == "LOP3":
                places = [one - len(line.operands) + 5 for one in mine]
                table = int(line.operands[-2], 16)
                if any(0 <= place < len(_INPUTS) and not table & ~_INPUTS[place] for place in places):
                    yield use

    return found | reached(masks, masked) - masks


def _shifts_one(work: Work, at: int) -> bool:
    """Whether a shift moves the number 1, or another single bit, to a place that is not known."""
    line = work.sass[at]
    if line.opcode != "SHF" or "L" not in line.modifiers or _number(line.operands[2]) is not None:
        return False
    name = _bare(line.operands[1])
    moved = [values_of(work).after(one, name).constant for one in work.code.producers(at, name)]
    return bool(moved) and all(one and not one & one - 1 for one in moved)


def _bare(text: str) -> str:
    return text.removesuffix(".reuse").lstrip("-~")


def _of_bits(line: Sass) -> bool:
    """Whether an instruction picks, moves or adds bits of words."""
    moves = line.opcode == "IMAD" and not {"MOV", "SHL", "IADD"}.isdisjoint(line.modifiers)
    return line.opcode in _LOGIC or moves or _digits(line)


def _digits(line: Sass) -> bool:
    """Whether a multiply-add puts digits of two or more bits behind others, as ``LEA`` does."""
    factor = (line.opcode == "IMAD" and _number(line.operands[2])) or 0
    return factor > 1 and not factor & factor - 1 and not {"HI", "WIDE", "X"}.intersection(line.modifiers)


@once
def wanted_bits(code: Program) -> list[int]:
    """Bits of each instruction's result that anything is made of, as a mask; all of what is no logic."""
    logic = list(map(_of_bits, code.sass))
    # A predicate, or a carry, is made of whole words.
    found = [
        0 if one and all(name[0] == "R" for name in line.writes) else WORD
        for one, line in zip(logic, code.sass, strict=True)
    ]
    waiting = list(range(len(found)))
    while waiting:
        at = waiting.pop()
        line = code.sass[at]
        if not found[at] or not any(logic[one] and found[one] != WORD for one in code.sources(at)):
            continue
        for name in line.reads:
            if name[0] != "R":
                continue
            sources = [one for one in code.producers(at, name) if logic[one] and found[one] != WORD]
            asked = _asked(line, name, found[at]) if sources else 0
            for source in sources:
                if asked & ~found[source]:
                    found[source] |= asked
                    waiting.append(source)
    return found


def _possible(line: Sass) -> int:
    """Bits of a result that may be set: of what is masked by a number, or shifted away, few."""
    if line.opcode == "SHF" and _number(line.operands[1]) == 0 and {"R", "U32", "HI"} <= set(line.modifiers):
        return WORD >> (_number(line.operands[2]) or 0)
    if line.opcode != "LOP3" or not all(name[0] == "R" for name in line.writes):
        return WORD
    numbers, table, found = [*map(_number, line.operands[-5:-2])], int(line.operands[-2], 16), 0
    for place, values in enumerate(product((0, 1), repeat=len(numbers))):
        if table >> place & 1:
            found |= _alike(numbers, values)
    return found


def _alike(numbers: Sequence[int | None], values: Sequence[int]) -> int:
    """Bits in which all of these have these values; what is no number may have any."""
    known = ((one, value) for one, value in zip(numbers, values, strict=True) if one is not None)
    return reduce(and_, (one if value else WORD & ~one for one, value in known), WORD)


@lru_cache(maxsize=65536)
def _asked(line: Sass, name: str, wanted: int) -> int:
    """Bits of a register that an instruction makes the wanted bits of its result of."""
    operands = [*map(_bare, line.operands)]
    read = _READ.get(line.opcode)
    if line.opcode == "IMAD":
        read = _moved if "MOV" in line.modifiers else _shifted if "SHL" in line.modifiers else _added
    if read is None or not _of_bits(line) or name not in operands:
        narrow = line.is_store and line.access_bytes < WORD_BYTES and line.operands[-1].startswith(name)
        return (1 << 8 * line.access_bytes) - 1 if narrow else WORD
    places = (at for at, one in enumerate(operands) if one == name and at)
    return reduce(or_, (read(line, operands, at, wanted) for at in places))


def _number(text: str) -> int | None:
    return 0 if text == "RZ" else int(text, 0) & WORD if _NUMBER.fullmatch(text) else None


def _picked(line: Sass, operands: Sequence[str], at: int, wanted: int) -> int:
    """By a table of what comes of three bits (``LOP3``)."""
    inputs, table = operands[-5:-2], int(operands[-2], 16)
    mine = at - (len(operands) - 5)
    if not 0 <= mine < len(inputs):
        return WORD
    found, weights = 0, (4, 2, 1)
    others = [one for one in range(len(inputs)) if one != mine]
    for values in product((0, 1), repeat=len(others)):
        place = sum(weights[one] * value for one, value in zip(others, values, strict=True))
        if (table >> place ^ table >> (place + weights[mine])) & 1:
            found |= _alike([_number(inputs[one]) for one in others], values)
    return found & wanted


def _shifted(line: Sass, operands: Sequence[str], at: int, wanted: int) -> int:
    """By a shift of a word, or of two in a row (``SHF``: the lower one, by how much, the upper one)."""
    if line.opcode == "IMAD":
        factor = _number(operands[2])
        return wanted // (factor & -factor) if factor and at == 1 else WORD
    by = _number(operands[2])
    if by is None or at == 2:
        return WORD
    right, upper = "R" in line.modifiers, "HI" in line.modifiers
    if at == 1:
        if right:
            return 0 if upper else wanted << by & WORD
        return wanted << 32 - by & WORD if upper else wanted >> by
    if not right:
        return wanted >> by if upper else 0
    lost = WORD & ~(WORD >> by) if upper and "S32" in line.modifiers else 0
    return (wanted << by & WORD) | (SIGN if wanted & lost else 0) if upper else wanted >> 32 - by


def _moved(line: Sass, operands: Sequence[str], at: int, wanted: int) -> int:
    return _added(line, operands, at, wanted) if line.operands[at][0] == "-" else wanted


def _added(line: Sass, operands: Sequence[str], at: int, wanted: int) -> int:
    """A sum's bits come of all bits up to theirs."""
    if "HI" in line.modifiers or "X" in line.modifiers:
        return WORD
    below = (1 << wanted.bit_length()) - 1
    by = _number(operands[3]) if line.opcode == "LEA" and len(operands) > 3 else 0
    if line.opcode == "IMAD":
        by = (_number(operands[2]) or 1).bit_length() - 1
    return below >> (by or 0) if at == 1 else below


def _permuted(line: Sass, operands: Sequence[str], at: int, wanted: int) -> int:
    """By bytes of two words, or their signs (``PRMT``)."""
    order, found = _number(operands[2]), 0
    if order is None or at == 2:
        return WORD
    for place in range(WORD_BYTES):
        of, byte = order >> 4 * place & 0xF, wanted >> 8 * place & 0xFF
        if (of >> 2 & 1) == (at == 3):
            found |= ((0x80 if byte else 0) if of & 8 else byte) << 8 * (of & 3)
    return found


def _compared(line: Sass, operands: Sequence[str], at: int, wanted: int) -> int:
    """Signs of words, where they are compared with 0."""
    signs = not {"GE", "LT"}.isdisjoint(line.modifiers) and "U32" not in line.modifiers
    return SIGN if signs and _number(operands[3]) == 0 else WORD


_READ = {
    "LOP3": _picked,
    "SHF": _shifted,
    "MOV": _moved,
    "SEL": _moved,
    **dict.fromkeys(("IADD3", "VIADD", "LEA"), _added),
    "PRMT": _permuted,
    "ISETP": _compared,
}
