"""SASS: opcodes of all architectures from Maxwell to Blackwell, in classes that a reader can use, and its lines read.

Source: NVIDIA's instruction set reference in "CUDA Binary Utilities". An opcode is the first word of a SASS
instruction without modifiers and predicates: ``LDG`` of ``@!P0 LDG.E.128 R4, [R2.64]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from gemmprof.base.foreign_files import facts
from gemmprof.gpu.arch import WARP


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """What is true of an opcode whatever its modifiers are: a row of the table beside this file."""

    opcode: str  # its name
    instruction_class: str = "other"  # key of `CLASSES`
    # that it occupies on compute capability 9.0; ``fma_heavy`` is the half of ``fma`` that multiplies integers
    pipe: str = "alu"
    space: str = ""  # the memory that it accesses, '' for none
    # how its result is waited for: on the ``long`` scoreboard, on the ``short`` one, '' for a fixed time
    waited_for: str = ""
    result: str = ""  # ``stored`` in memory, ``none``, or '' for one in registers
    meaning: str = ""  # in a few words, '' if gemmprof does not know it


_CLASSES = facts(__file__, "opcode_classes.csv")
CLASSES: dict[str, str] = {key: title for key, title, _ in _CLASSES}
"""Title of each class, in the order of the pages."""
# The classes whose instructions do the kernel's floating-point (or tensor) work.
MATH_CLASSES = tuple(key for key, _, computes in _CLASSES if computes)

# Scalar fused multiply-adds (no tensor core).
FUSED_MULTIPLY_ADD = ("FFMA", "FFMA2", "FFMA32I", "DFMA", "HFMA2", "HFMA2_32I", "HFMA2_MMA", "FHFMA", "UFFMA")


@cache
def known() -> Mapping[str, OpcodeInfo]:
    """Every known opcode, by its name; the table beside this file has them."""
    return {row[0]: OpcodeInfo(*row) for row in facts(__file__, "opcodes.csv")}


def members(*classes: str) -> tuple[str, ...]:
    """The opcodes of these classes."""
    return tuple(item.opcode for item in known().values() if item.instruction_class in classes)


def opcode_of(sass: str) -> str:
    """``LDG.E.128`` of ``@!P3 LDG.E.128 R4, [R2.64]``, '' of nothing."""
    words = sass.split(None, 2)
    if words and words[0].startswith("@"):
        words = words[1:]
    return words[0].rstrip(";") if words else ""


@lru_cache(maxsize=4096)
def info(opcode: str) -> OpcodeInfo:
    """What an opcode (modifiers allowed: ``LDG.E.128``) is; class ``other`` and no meaning if nobody knows it."""
    bare = opcode.partition(".")[0].strip().upper()
    if bare == "HFMA2" and ".MMA" in opcode.upper():
        bare = "HFMA2_MMA"
    pipe = "uniform" if bare.startswith("U") else "alu" if bare else ""
    return known().get(bare) or OpcodeInfo(bare, pipe=pipe)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """What one warp does with one matrix multiply-add."""

    path: str  # as Nsight Compute names it in its counters: ``op_hmma_src_bf16_dst_fp32_sparsity_off``
    source: str  # type of the operands, ``bf16``
    # of all its threads, a multiply-add being two; those that sparse operands skip count, as ncu does
    operations: float
    registers: int  # of a thread, that hold the result
    factors: tuple[int, int]  # and those that hold each factor, where it lies in registers
    by_warpgroup: bool  # four warps do it together, and each has a quarter of it
    sparse: bool  # one operand has two zeros of four

    @property
    def sums(self) -> str:
        """Type that products are added up in: ``fp32``; '' for integers."""
        return self.path.partition("_dst_")[2].partition("_")[0]


_MATRIX = re.compile(r"(?P<opcode>[HIQOBD])(?P<group>G?)MMA(?P<modifiers>(?:\.\w+)+)")
_M_N_K = re.compile(r"(?:(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)|(?P<rows>16|8)8(?P<depth>\d+))$")
# Bytes of one thread that a modifier tells (atomics name the type of what they add), and the type of a matrix.
_MODIFIERS = facts(__file__, "opcode_modifiers.csv")
_WIDTHS = {word: int(size) for word, size, _ in _MODIFIERS if size}
_MATRIX_TYPES = {word: kind for word, _, kind in _MODIFIERS if kind}
_BITS = {"fp64": 64, "tf32": 32, "bf16": 16, "fp16": 16, "int4": 4, "fp4": 4, "int1": 1}  # else 8
_MATRIX_DEFAULTS = {"H": "fp16", "D": "fp64", "B": "int1", "I": "int8", "Q": "fp8", "O": "fp4"}


@lru_cache(maxsize=4096)
def matrix_product(opcode: str) -> MatrixProduct | None:
    """What a tensor-core instruction with its modifiers computes: ``HMMA.16816.F32.BF16``, ``HGMMA.64x128x16.F32`` …

    None for other instructions, and where shape and types stand elsewhere (the descriptors of ``UTCHMMA``). Volta cuts
    its ``HMMA.884`` into steps, four with FP32 sums and two with FP16 ones.
    """
    found = _MATRIX.fullmatch(opcode.upper().replace("X", "x"))
    shape = next(filter(None, map(_M_N_K.match, found["modifiers"].split("."))), None) if found else None
    if found is None or shape is None:
        return None
    kind, modifiers = found["opcode"], found["modifiers"].split(".")
    m, n, k = (int(shape[axis] or 0) for axis in "mnk")
    if not m:
        m, n, k = int(shape["rows"]), 8, int(shape["depth"])
    types = [_MATRIX_TYPES[word] for word in modifiers if word in _MATRIX_TYPES]
    source = types[0] if types else _MATRIX_DEFAULTS[kind]
    by_warpgroup, sparse = bool(found["group"]), "SP" in modifiers
    operations = 2.0 * m * n * k / (4.0 if by_warpgroup else 1.0)
    # Of a warp: a row of the first factor is half as long where half of it is zeros.
    sides = m / (4.0 if by_warpgroup else 1.0) / (2.0 if sparse else 1.0), float(n)
    if kind == "H" and (m, n, k) == (8, 8, 4):  # each quarter of the warp has a product of its own
        sides = 4.0 * m, 4.0 * n
        steps = (2.0 if "F16" in modifiers else 4.0) if any("STEP" in word for word in modifiers) else 1.0
        operations *= 4.0 / steps
    kept = "fp16" if "F16" in modifiers else "fp64" if kind == "D" else "fp32"
    sums = "" if kind in "IB" else f"_dst_{kept}"
    width = 0.5 if "F16" in modifiers else 2.0 if kind == "D" else 1.0
    registers = round(width * operations / (2.0 * k * WARP))
    first, second = (max(1, round(side * k * _BITS.get(source, 8) / (32 * WARP))) for side in sides)
    name = f"{kind.lower()}{'g' if by_warpgroup else ''}mma"
    sparsity = "on" if sparse else "off"
    path = f"op_{name}_src_{source}{sums}_sparsity_{sparsity}"
    factors = first, second
    return MatrixProduct(path, source, operations, registers, factors, by_warpgroup, sparse)


_MATRICES = {"1": 4, "2": 8, "4": 16}


@lru_cache(maxsize=4096)
def bytes_per_thread(opcode: str) -> int:
    """Bytes that one thread moves with one load or store, from its modifiers: 16 for ``LDS.128``, 4 for ``LDS``."""
    bare, *modifiers = opcode.upper().split(".")
    # ldmatrix and stmatrix end with the number of 8x8 matrices, each worth one register a thread.
    widths = _MATRICES if bare in ("LDSM", "STSM") else _WIDTHS
    return next((widths[modifier] for modifier in reversed(modifiers) if modifier in widths), 4)


# --- Lines of SASS ----------------------------------------------------------------------------------------------------
# Only what the text tells: the control bits (scoreboards, wait masks) are not part of it, so a wait is traced back
# through registers and predicates, which is what the compiler derived those bits from.


_REGISTER = re.compile(r"(?<![\w.])(UR|R|UP|P|B)(\d+)\b(\.64)?")
_GUARD = re.compile(r"@(!?)(U?P\d|U?PT)\s+")
JUMPS = ("BRA", "CALL", "RET", "BSSY", "JMP", "BRX")  # opcodes that name the address of another instruction
TARGET = r"0x([0-9a-f]{6,})"  # how that address stands in their text
_TARGET = re.compile(TARGET)
_CUTS = re.compile(r"[\[\],]")
_PREDICATE = re.compile(r"U?P(\d|T)")
_ANY_PREDICATE = re.compile(r"!?U?P(\d|T)")
_PAIRS = re.compile(
    r"D(?:ADD|MUL|FMA|MNMX)|IMAD\.WIDE|F2F\.F64|I2F\.F64|F2I\S*\.[SU]64|UIMAD\.WIDE|CS2R(?!\.32)|I2F\S*\.F64"
)
# Their first operand is a predicate, and their second is a result, too.
_TWO_RESULTS = ("ATOMG", "ATOM", "SHFL", "LOP3", "ULOP3", "MATCH", "VOTE", "VOTEU", "ATOMS", "PLOP3")
_RESULT = re.compile(r"U?R[\dZ]")
_PREDICATES = tuple(f"P{number}" for number in range(7))


@dataclass(slots=True, eq=False)  # not frozen, which takes four times as long to make: nobody changes one
class Operation:
    """What an opcode with its modifiers tells of an instruction, whatever it works on."""

    opcode: str  # without modifiers: ``LDG``
    full: str  # with modifiers: ``LDG.E.128``
    modifiers: tuple[str, ...]  # ``("E", "128")``
    space: str  # the memory that it accesses, '' for none
    is_atomic: bool  # an atomic or a reduction in memory
    is_store: bool  # it writes memory and returns nothing
    is_load: bool  # it reads memory into registers (no atomics)
    long_latency: bool  # its result is waited for on the long scoreboard: memory beyond shared memory
    short_latency: bool  # on the short one: shared memory, special functions, constants, FP64 …
    instruction_class: str  # key of `CLASSES`

    @property
    def fetches(self) -> bool:
        """It loads data, which no constant is."""
        return self.is_load and self.space != "constant"

    @property
    def access_bytes(self) -> int:
        """Bytes that one thread moves, 0 where it accesses no memory."""
        return bytes_per_thread(self.full) if self.space else 0

    @property
    def is_branch(self) -> bool:
        """It may go elsewhere than to the next instruction (calls and returns excluded)."""
        return self.opcode in ("BRA", "BRX", "JMP", "JMX")

    @property
    def ends_block(self) -> bool:
        """The instruction behind it does not follow it unless it is guarded."""
        return self.opcode in ("BRA", "EXIT", "RET", "BRX", "JMP", "JMX", "KILL")


@dataclass(slots=True, eq=False)
class Sass(Operation):
    """One instruction as its text tells it."""

    text: str  # the line as disassembled
    guard: str  # the predicate that it runs under (``P3``), '' for none; ``!`` is dropped
    writes: tuple[str, ...]  # registers and predicates that it writes: ``R4``, ``UR6``, ``P0``
    reads: tuple[str, ...]  # registers and predicates that it reads, the guard and its addresses among them
    operands: tuple[str, ...]  # operands as text
    target: int | None  # address that it branches to, None for none
    when: str  # the guard with ``!``

    @property
    def places(self) -> frozenset[str]:
        """Registers that tell where it accesses memory."""
        return frozenset(name for operand in self.operands if "[" in operand for name in _names(operand))

    @property
    def moves_a_constant(self) -> bool:
        """``HFMA2 R6, -RZ, RZ, 0, 0`` and the like: the compiler's way to set a register, no arithmetic."""
        if self.opcode not in ("HFMA2", "IMAD", "FADD", "FMUL", "FFMA", "HADD2", "HMUL2"):
            return False
        if self.opcode == "IMAD":
            return "MOV" in self.modifiers or self.operands[1:3] in (("RZ", "RZ"), ("-RZ", "RZ"))
        return self.operands[1:3] in (("-RZ", "RZ"), ("RZ", "RZ"))


@lru_cache(maxsize=4096)
def operation(full: str) -> Operation:
    """What an opcode with its modifiers tells: ``LDG.E.128``."""
    opcode, *modifiers = full.split(".")
    known = info(opcode)
    atomic, store = known.instruction_class == "atomic", known.result == "stored"
    return Operation(
        opcode,
        full,
        tuple(modifiers),
        known.space,
        is_atomic=atomic,
        is_store=store,
        is_load=bool(known.space) and not store and not atomic and opcode != "LDGSTS",
        long_latency=known.waited_for == "long",
        short_latency=known.waited_for == "short",
        instruction_class=known.instruction_class,
    )


@lru_cache(maxsize=65536)
def parse(text: str) -> Sass:
    """What one line of SASS says; an empty opcode for a line without code."""
    body = text.strip().rstrip(";").strip()
    guard = when = ""
    if body[:1] == "@" and (match := _GUARD.match(body)) is not None:
        guard = "" if match[2].endswith("T") else match[2]
        when = match[1] + guard if guard else ""
        body = body[match.end() :].lstrip()
    full, _, rest = body.partition(" ")
    known = operation(full)
    operands = tuple(map(str.strip, _split(rest))) if rest.strip() else ()
    target = None
    if known.opcode in JUMPS:
        found = _TARGET.findall(rest)
        target = int(found[-1], 16) if found else None
    writes, reads = _registers(full, operands)
    if guard:
        reads = (*reads, guard)
    if known.opcode == "R2P":
        mask = operands[-1]
        writes = _PREDICATES[: int(mask, 16).bit_length()] if mask.startswith("0x") else _PREDICATES
    return Sass(
        known.opcode,
        full,
        known.modifiers,
        known.space,
        known.is_atomic,
        known.is_store,
        known.is_load,
        known.long_latency,
        known.short_latency,
        known.instruction_class,
        text=text.strip(),
        guard=guard,
        writes=writes,
        reads=reads,
        operands=operands,
        target=target,
        when=when,
    )


def _split(rest: str) -> list[str]:
    """Operands, cut at commas outside brackets, in one pass: foreign text may hold brackets that nothing closes."""
    if "[" not in rest and "]" not in rest:
        return rest.split(",")
    found, depth, start = list[str](), 0, 0
    for match in _CUTS.finditer(rest):
        if match[0] != ",":
            depth += 1 if match[0] == "[" else -1
        elif depth == 0:
            found.append(rest[start : match.start()])
            start = match.end()
    return [*found, rest[start:]]


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


@lru_cache(maxsize=4096)
def _result_width(full: str) -> int:
    """Registers that the result takes."""
    known = info(full.partition(".")[0])
    if known.space or known.opcode in ("S2R", "ULDC"):
        return max(1, bytes_per_thread(full) // 4)
    product = matrix_product(full)
    return product.registers if product is not None else 2 if _PAIRS.match(full) else 1


@lru_cache(maxsize=4096)
def _source_widths(full: str) -> tuple[int, ...]:
    """Registers that each source takes; further ones as many as the last."""
    if (product := matrix_product(full)) is not None:
        # What a warp group multiplies with stands in shared memory.
        second = product.registers if product.by_warpgroup else product.factors[1]
        return product.factors[0], second, product.registers, 1
    if full.startswith("IMAD.WIDE"):
        return 1, 1, 2  # what it adds to the product of two words is a pair
    if operation(full).is_atomic:
        return (_result_width(full),)  # what is added is as wide as what was there
    return (2 if _PAIRS.match(full) and full[0] == "D" else 1,)


def _registers(full: str, operands: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Registers written and read."""
    known = info(full.partition(".")[0])
    if known.result or not operands or operands[0].startswith("["):
        width = max(1, bytes_per_thread(full) // 4) if known.result == "stored" else 1
        reads = [name for operand in operands[:-1] for name in _names(operand)]  # a store's last is its data
        reads += _names(operands[-1], width) if operands else []
        return (), tuple(dict.fromkeys(reads))
    count = 1
    first_is_predicate = operands[0][:1] in "!UP" and _ANY_PREDICATE.fullmatch(operands[0]) is not None
    for operand in operands[1:-1]:  # the last is a source (of a vote a predicate)
        if _PREDICATE.fullmatch(operand) is None and not (
            first_is_predicate and count == 1 and known.opcode in _TWO_RESULTS and _RESULT.match(operand)
        ):
            break
        if first_is_predicate and count == 2:
            break
        count += 1
    width = _result_width(full)
    writes = [name for one in operands[:count] for name in _names(one, width if one[:1] in "RU" else 1)]
    widths = _source_widths(full)
    reads = [
        name
        for place, operand in enumerate(operands[count:])
        for name in _names(operand, 1 if "[" in operand else widths[min(place, len(widths) - 1)])
    ]
    return tuple(writes), tuple(dict.fromkeys(reads))
