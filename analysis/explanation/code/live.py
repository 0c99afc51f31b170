"""Live registers: how many registers of a thread hold a value that is still needed, at each instruction.

From the text of the SASS alone, as compilers do it: backwards from every use to what it comes from. The referee is
``nvdisasm --print-life-ranges``, which counts what an instruction reads, writes or must leave standing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING

from gemmprof.analysis.explanation.code.flow import Program, once, program, turned
from gemmprof.analysis.opcodes import Sass
from gemmprof.model import Instruction

if TYPE_CHECKING:
    from gemmprof.analysis.sections.source_view import SourceView

_REGISTER = re.compile(r"(?<![\w.])R(\d+)\b(\.64)?")
STACK_POINTER = 1  # R1, which the calling convention keeps for the whole kernel


def live_in(view: SourceView) -> tuple[int, ...]:
    """`live_registers` at each instruction of a view; () where the report carries no SASS."""
    if not any(item.sass for item in view.sass):
        return ()
    return live_registers(program([Instruction(item.address, item.sass) for item in view.sass]))


@once
def live_registers(program: Program, readers: tuple[str, ...] = ()) -> tuple[int, ...]:
    """Registers (R, not uniform ones) that are live at each instruction: those it reads, writes or leaves standing; of
    these opcodes alone, those that one of them still reads.
    """
    reads = list(map(_read, program.sass))
    if not readers:
        return _live(program, reads, 1 << STACK_POINTER, _written(program))
    lines = zip(program.sass, reads, strict=True)
    return _live(program, [read if line.opcode in readers else 0 for line, read in lines])


@once
def live_results(program: Program, of: frozenset[int]) -> tuple[int, ...]:
    """Registers at each instruction that hold a result of one of these, which is still needed or just made."""
    reads = [
        0
        if of.isdisjoint(program.sources(at))
        else _bits(tuple(name for name in line.reads if not of.isdisjoint(program.producers(at, name))))
        for at, line in enumerate(program.sass)
    ]
    made = [written if at in of else 0 for at, written in enumerate(_written(program))]
    return _live(program, reads, beside=made)


def _live(
    program: Program, reads: Sequence[int], stack: int = 0, beside: Sequence[int] = ()
) -> tuple[int, ...]:
    """Registers that are live where these are read (a bit each): the ``stack`` to the end, others ``beside`` them."""
    writes = _written(program)
    after = _after(program)
    before = turned(after)
    alive = [0] * len(program.sass)
    waiting = deque(range(len(program.sass) - 1, -1, -1))
    queued = set(waiting)
    while waiting:
        index = waiting.popleft()
        queued.discard(index)
        found = stack if not after[index] else 0
        for follower in after[index]:
            found |= alive[follower]
        # A guarded write may leave the old value standing.
        kept = found if program.sass[index].guard else found & ~writes[index]
        if (found := kept | reads[index]) != alive[index]:
            alive[index] = found
            for one in before[index]:
                if one not in queued:
                    queued.add(one)
                    waiting.append(one)
    made = beside or [0] * len(alive)
    return tuple((live | written).bit_count() for live, written in zip(alive, made, strict=True))


def _after(program: Program) -> list[list[int]]:
    """Instructions that may run just after each one: a call goes into the function, which returns to behind it."""
    after = [*map(list, turned(program.predecessors))]
    for function in program.functions:
        behind = [index + 1 for index in program.callers(function) if index + 1 < len(after)]
        for index in behind:
            after[index - 1] = [function[0]]
        for index in range(function[0], function[1] + 1):
            if program.sass[index].opcode == "RET":
                after[index] = [*after[index], *behind]
    return after


@once
def _written(program: Program) -> list[int]:
    """Registers that each instruction writes, a bit each."""
    return [_bits(line.writes) for line in program.sass]


def _read(line: Sass) -> int:
    """Registers that an instruction reads."""
    reads = _bits(line.reads)
    for place in _pairs(line):
        if (match := _REGISTER.search(line.operands[place])) is not None:
            reads |= 0b11 << int(match[1])
    return reads


def _pairs(line: Sass) -> range | tuple[int, ...]:
    """Places of the operands that are two registers without saying so."""
    count = len(line.operands)
    if line.opcode == "IMAD" and ("WIDE" in line.modifiers or "HI" in line.modifiers):
        # The sum is as wide as the result; a carry may stand behind it.
        return tuple(place for place in range(3, count) if line.operands[place].lstrip("-~|")[:1] == "R")[:1]
    if line.opcode == "DSETP" or (line.opcode in ("F2F", "F2I", "FRND") and line.modifiers[-1:] == ("F64",)):
        return range(1, count)
    if "64" in line.modifiers and line.opcode in ("MOV", "IADD", "SEL", "I2F", "ISETP"):
        return range(1, count)
    return ()


@lru_cache(maxsize=8192)
def _bits(names: tuple[str, ...]) -> int:
    return reduce(or_, map(_bit, names), 0)


@lru_cache(maxsize=1024)
def _bit(name: str) -> int:
    return 1 << int(name[1:]) if name[0] == "R" and name[1:].isdigit() else 0
