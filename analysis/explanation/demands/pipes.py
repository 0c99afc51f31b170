"""Which execution pipe an instruction occupies, and for how many cycles of a scheduler's issue (compute
capability 9.0).

Only proportions within one pipe matter: how busy the pipe was is measured, the table says whose work that
was.
"""

from __future__ import annotations

from gemmprof.analysis.explanation.code.sass import Sass

FMA, ALU, FP64, XU, TENSOR, UNIFORM, LSU, ADU, CBU = (
    "fma",
    "alu",
    "fp64",
    "xu",
    "tensor",
    "uniform",
    "lsu",
    "adu",
    "cbu",
)

_FMA = frozenset(
    {"FFMA", "FMUL", "FADD", "HFMA2", "HADD2", "HMUL2", "FFMA2", "FADD2", "FMUL2", "FFMA32I", "FSWZADD"}
)
_FMA_HEAVY = frozenset({"IMAD", "IDP", "IMUL", "XMAD"})
_XU = frozenset({"MUFU", "I2F", "F2I", "F2F", "POPC", "FLO", "BREV", "FRND", "I2I"})
_FP64 = frozenset({"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"})
_TENSOR = frozenset({"HMMA", "IMMA", "DMMA", "BMMA", "HGMMA", "QGMMA", "IGMMA", "BGMMA", "QMMA", "OMMA"})
_ADU = frozenset({"LDC", "LDCU", "S2R", "BAR", "R2UR", "S2UR", "B2R", "VOTEU", "REDUX", "ULDC"})
_CBU = frozenset(
    {"BRA", "BRX", "EXIT", "CALL", "RET", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "YIELD", "NANOSLEEP", "JMP"}
)
_LSU_ONLY = frozenset({"SHFL", "LDGDEPBAR", "MEMBAR"})

# Warp instructions that an SM begins a cycle on each pipe, by the lanes that it has for them (compute
# capability 9.0; CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions").
WARPS_A_CYCLE = {
    "issue": 4.0,
    FMA: 4.0,
    "fma_heavy": 2.0,
    ALU: 2.0,
    FP64: 2.0,
    XU: 0.5,
    CBU: 1.0,
    LSU: 1.0,
    ADU: 1.0,
}


def pipe(line: Sass) -> str:
    """Pipe that an instruction runs on, '' for none (``NOP``)."""
    opcode = line.opcode
    if opcode in _FMA or opcode in _FMA_HEAVY:
        return FMA
    if opcode in _XU:
        return XU
    if opcode in _FP64:
        return FP64
    if opcode in _TENSOR:
        return TENSOR
    if opcode in _ADU:
        return ADU
    if opcode in _CBU:
        return CBU
    if line.space or opcode in _LSU_ONLY:
        return LSU
    if opcode.startswith("U") and opcode not in ("UTMALDG", "UTMASTG", "UBLKCP"):
        return UNIFORM
    if opcode in ("NOP", "DEPBAR", ""):
        return ""
    return ALU


def is_float(line: Sass) -> bool:
    """It computes with floating-point numbers, or is a matrix product."""
    return line.opcode in _FMA | _FP64 | _TENSOR or line.opcode in ("MUFU", "FMNMX")


def is_heavy(line: Sass) -> bool:
    """It needs the half of the FMA pipe that multiplies integers: half the rate."""
    return line.opcode in _FMA_HEAVY
