"""SASS opcodes of all architectures from Maxwell to Blackwell, sorted into classes that a reader can use.

Source: NVIDIA's instruction set reference in "CUDA Binary Utilities". An opcode is the first word of a SASS
instruction without modifiers and predicates: ``LDG`` of ``@!P0 LDG.E.128 R4, [R2.64]``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """What is true of an opcode whatever its modifiers are: a row of the table beside this file.

    Attributes:
        opcode: its name.
        instruction_class: key of `CLASSES`.
        pipe: that it occupies on compute capability 9.0; ``fma_heavy`` is the half of ``fma`` that multiplies integers.
        space: the memory that it accesses, '' for none.
        waited_for: how its result is waited for: on the ``long`` scoreboard, on the ``short`` one, '' for a fixed time.
        result: ``stored`` in memory, ``none``, or '' for one in registers.
        meaning: in a few words, '' if gemmprof does not know it.
    """

    opcode: str
    instruction_class: str = "other"
    pipe: str = "alu"
    space: str = ""
    waited_for: str = ""
    result: str = ""
    meaning: str = ""


# Title of each class, in the order of the pages.
CLASSES: dict[str, str] = {
    "tensor": "Tensor core",
    "fp32": "FP32 arithmetic",
    "fp64": "FP64 arithmetic",
    "fp16": "FP16 and BF16 arithmetic",
    "special": "Special functions",
    "integer": "Integer arithmetic and addresses",
    "conversion": "Conversion",
    "move": "Move, select and predicates",
    "warp": "Warp shuffle, vote and match",
    "uniform": "Uniform datapath",
    "global_load": "Global load",
    "global_store": "Global store",
    "shared_load": "Shared load",
    "shared_store": "Shared store",
    "local": "Local memory (spills, stack)",
    "constant": "Constant load",
    "async_copy": "Asynchronous copy",
    "atomic": "Atomics and reductions",
    "texture": "Texture and surface",
    "tensor_memory": "Tensor memory",
    "cache": "Cache control and fences",
    "synchronisation": "Barriers and waits",
    "control": "Control flow",
    "other": "Other",
}

# The classes whose instructions do the kernel's floating-point (or tensor) work.
MATH_CLASSES = ("tensor", "fp32", "fp64", "fp16", "special")

# Scalar fused multiply-adds (no tensor core).
FUSED_MULTIPLY_ADD = ("FFMA", "FFMA2", "FFMA32I", "DFMA", "HFMA2", "HFMA2_32I", "HFMA2_MMA", "FHFMA", "UFFMA")


@cache
def known() -> Mapping[str, OpcodeInfo]:
    """Every known opcode, by its name; the table beside this file has them."""
    table = Path(__file__).with_name("opcodes.csv").read_text("utf-8")
    return {row[0]: OpcodeInfo(*row) for row in csv.reader(table.splitlines()[1:])}


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
    return known().get(bare) or OpcodeInfo(
        bare, pipe="uniform" if bare.startswith("U") else "alu" if bare else ""
    )


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """What one warp does with one matrix multiply-add.

    Attributes:
        path: as Nsight Compute names it in its counters: ``op_hmma_src_bf16_dst_fp32_sparsity_off``.
        source: type of the operands, ``bf16``.
        operations: of all its threads, a multiply-add being two; those that sparse operands skip count, as ncu does.
        by_warpgroup: four warps do it together, and each has a quarter of it.
        sparse: one operand has two zeros of four.
    """

    path: str
    source: str
    operations: float
    by_warpgroup: bool
    sparse: bool


_MATRIX = re.compile(r"(?P<opcode>[HIQOBD])(?P<group>G?)MMA(?P<modifiers>(?:\.\w+)+)")
_M_N_K = re.compile(r"(?:(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)|(?P<rows>16|8)8(?P<depth>\d+))$")
_MATRIX_TYPES = {
    **{"BF16": "bf16", "TF32": "tf32", "S8": "int8", "U8": "int8", "S4": "int4", "U4": "int4"},
    **{"E4M3": "fp8", "E5M2": "fp8", "E3M2": "fp6", "E2M3": "fp6", "E2M1": "fp4"},
}
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
    if kind == "H" and (m, n, k) == (8, 8, 4):  # each quarter of the warp has a product of its own
        steps = (2.0 if "F16" in modifiers else 4.0) if any("STEP" in word for word in modifiers) else 1.0
        operations *= 4.0 / steps
    sums = (
        "" if kind in "IB" else f"_dst_{'fp16' if 'F16' in modifiers else 'fp64' if kind == 'D' else 'fp32'}"
    )
    name = f"{kind.lower()}{'g' if by_warpgroup else ''}mma"
    sparsity = "on" if sparse else "off"
    return MatrixProduct(
        f"op_{name}_src_{source}{sums}_sparsity_{sparsity}", source, operations, by_warpgroup, sparse
    )


_CONSTANT = re.compile(r"^\s*(?:@!?U?P\w+\s+)?HFMA2[.\w]*\s+R\w+,\s*-RZ,\s*RZ,")


def sets_a_constant(sass: str) -> bool:
    """True for ``HFMA2 R2, -RZ, RZ, 1.875, 0``: compilers set registers this way, it computes nothing."""
    return _CONSTANT.match(sass) is not None


_WIDTHS = {
    **{"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32},
    **{"F64": 8, "F32X2": 8, "F32X4": 16},  # atomics name the type of what they add
}


_MATRICES = {"1": 4, "2": 8, "4": 16}


@lru_cache(maxsize=4096)
def bytes_per_thread(opcode: str) -> int:
    """Bytes that one thread moves with one load or store, from its modifiers: 16 for ``LDS.128``, 4 for ``LDS``."""
    bare, *modifiers = opcode.upper().split(".")
    # ldmatrix and stmatrix end with the number of 8x8 matrices, each worth one register a thread.
    widths = _MATRICES if bare in ("LDSM", "STSM") else _WIDTHS
    return next((widths[modifier] for modifier in reversed(modifiers) if modifier in widths), 4)
