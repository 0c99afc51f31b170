"""Reads the text of SASS: what an instruction does, which registers it writes and reads, where it branches
to.

Only what the text tells: the control bits (scoreboards, wait masks) are not part of it, so a wait is traced
back through registers and predicates, which is what the compiler derived those bits from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gemmprof.analysis import opcodes

_REGISTER = re.compile(r"(?<![\w.])(UR|R|UP|P|B)(\d+)\b(\.64)?")
_GUARD = re.compile(r"@(!?)(U?P\d|U?PT)\s+")
JUMPS = ("BRA", "CALL", "RET", "BSSY", "JMP", "BRX")  # opcodes that name the address of another instruction
TARGET = r"0x([0-9a-f]{6,})"  # how that address stands in their text
_TARGET = re.compile(TARGET)
_PREDICATE = re.compile(r"U?P(\d|T)")
_ANY_PREDICATE = re.compile(r"!?U?P(\d|T)")
_PAIRS = re.compile(
    r"D(?:ADD|MUL|FMA|MNMX)|IMAD\.WIDE|F2F\.F64|I2F\.F64|F2I\S*\.[SU]64|UIMAD\.WIDE|CS2R(?!\.32)|I2F\S*\.F64|"
    r"HMMA\.\S*\.F16\b"
)
# Their first operand is a predicate, and their second is a result, too.
_TWO_RESULTS = ("ATOMG", "ATOM", "SHFL", "LOP3", "ULOP3", "MATCH", "VOTE", "VOTEU", "ATOMS", "PLOP3", "SYNCS")
_QUADS = re.compile(r"HMMA|IMMA|DMMA|QMMA|BMMA")


@dataclass(frozen=True, slots=True)
class Sass:
    """One instruction as its text tells it.

    Attributes:
        text: the line as disassembled.
        opcode: without modifiers: ``LDG``.
        full: with modifiers: ``LDG.E.128``.
        modifiers: ``("E", "128")``.
        guard: the predicate that it runs under (``P3``), '' for none; ``!`` is dropped.
        when: the same with ``!``.
        writes: registers and predicates that it writes: ``R4``, ``UR6``, ``P0``.
        reads: registers and predicates that it reads, the guard and its addresses among them.
        operands: operands as text.
        target: address that it branches to, None for none.
        space: the memory that it accesses, '' for none.
        is_atomic: an atomic or a reduction in memory.
        is_store: it writes memory and returns nothing.
        is_load: it reads memory into registers (no atomics).
        long_latency: its result is waited for on the long scoreboard: memory beyond shared memory.
        short_latency: on the short one: shared memory, special functions, constants, FP64 …
    """

    text: str
    opcode: str
    full: str
    modifiers: tuple[str, ...]
    guard: str
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    operands: tuple[str, ...]
    target: int | None
    when: str = ""
    space: str = ""
    is_atomic: bool = False
    is_store: bool = False
    is_load: bool = False
    long_latency: bool = False
    short_latency: bool = False

    @property
    def instruction_class(self) -> str:
        """Key of `opcodes.CLASSES`."""
        return opcodes.info(self.full).instruction_class

    @property
    def access_bytes(self) -> int:
        """Bytes that one thread moves, 0 where it accesses no memory."""
        return opcodes.bytes_per_thread(self.full) if self.space else 0

    @property
    def is_branch(self) -> bool:
        """It may go elsewhere than to the next instruction (calls and returns excluded)."""
        return self.opcode in ("BRA", "BRX", "JMP", "JMX")

    @property
    def ends_block(self) -> bool:
        """The instruction behind it does not follow it unless it is guarded."""
        return self.opcode in ("BRA", "EXIT", "RET", "BRX", "JMP", "JMX", "KILL")

    @property
    def moves_a_constant(self) -> bool:
        """``HFMA2 R6, -RZ, RZ, 0, 0`` and the like: the compiler's way to set a register, no arithmetic."""
        if self.opcode not in ("HFMA2", "IMAD", "FADD", "FMUL", "FFMA", "HADD2", "HMUL2"):
            return False
        if self.opcode == "IMAD":
            return "MOV" in self.modifiers or self.operands[1:3] in (("RZ", "RZ"), ("-RZ", "RZ"))
        return self.operands[1:3] in (("-RZ", "RZ"), ("RZ", "RZ"))


@lru_cache(maxsize=65536)
def parse(text: str) -> Sass:
    """What one line of SASS says; an empty opcode for a line without code."""
    body = text.strip().rstrip(";").strip()
    guard = when = ""
    match = _GUARD.match(body)
    if match is not None:
        guard = "" if match[2].endswith("T") else match[2]
        when = match[1] + guard if guard else ""
        body = body[match.end() :].lstrip()
    full, _, rest = body.partition(" ")
    opcode, *modifiers = full.split(".")
    operands = tuple(part.strip() for part in _split(rest)) if rest.strip() else ()
    target = None
    if opcode in JUMPS:
        found = _TARGET.findall(rest)
        target = int(found[-1], 16) if found else None
    known = opcodes.info(opcode)
    writes, reads = _registers(known, full, operands)
    if guard:
        reads = (*reads, guard)
    atomic, store = known.instruction_class == "atomic", known.result == "stored"
    return Sass(
        text=text.strip(),
        opcode=opcode,
        full=full,
        modifiers=tuple(modifiers),
        guard=guard,
        writes=writes,
        reads=reads,
        operands=operands,
        target=target,
        when=when,
        space=known.space,
        is_atomic=atomic,
        is_store=store,
        is_load=bool(known.space) and not store and not atomic and opcode != "LDGSTS",
        long_latency=known.waited_for == "long",
        short_latency=known.waited_for == "short",
    )


def _split(rest: str) -> Iterator[str]:
    """Operands, cut at commas outside brackets."""
    depth, start = 0, 0
    for position, letter in enumerate(rest):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield rest[start:position]
            start = position + 1
    yield rest[start:]


@lru_cache(maxsize=8192)
def _names(operand: str, width: int = 1) -> tuple[str, ...]:
    """Registers of an operand; ``.64`` and a width of more make several of one."""
    found: list[str] = []
    for kind, number, wide in _REGISTER.findall(operand):
        if kind == "B":
            continue
        count = max(width, 2 if wide else 1) if kind in ("R", "UR") else 1
        found += [f"{kind}{int(number) + offset}" for offset in range(count)]
    return tuple(found)


def _result_width(known: opcodes.OpcodeInfo, full: str) -> int:
    """Registers that the result takes."""
    if known.space or known.opcode in ("S2R", "ULDC"):
        return max(1, opcodes.bytes_per_thread(full) // 4)
    if _PAIRS.match(full):
        return 2
    return 4 if _QUADS.match(known.opcode) else 1


def _registers(
    known: opcodes.OpcodeInfo, full: str, operands: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Registers written and read."""
    if known.result or not operands:
        width = max(1, opcodes.bytes_per_thread(full) // 4) if known.result == "stored" else 1
        # The last operand of a store is its data.
        reads = [name for operand in operands[:-1] for name in _names(operand)]
        reads += _names(operands[-1], width) if operands else []
        return (), tuple(dict.fromkeys(reads))
    count = 1
    first_is_predicate = _ANY_PREDICATE.fullmatch(operands[0]) is not None
    for operand in operands[1:]:
        if _PREDICATE.fullmatch(operand) is None and not (
            first_is_predicate and count == 1 and known.opcode in _TWO_RESULTS
        ):
            break
        if first_is_predicate and count == 2:
            break
        count += 1
    width = _result_width(known, full)
    writes = [
        name for operand in operands[:count] for name in _names(operand, width if operand[:1] in "RU" else 1)
    ]
    sources = 2 if _PAIRS.match(full) and full[0] == "D" else 1
    # What IMAD.WIDE adds to the product of two words is a pair.
    added = count + 2 if full.startswith("IMAD.WIDE") else -1
    reads = [
        name
        for place, operand in enumerate(operands[count:], count)
        for name in _names(
            operand, 2 if place == added and operand[0] == "R" else 1 if "[" in operand else sources
        )
    ]
    return tuple(writes), tuple(dict.fromkeys(reads))
