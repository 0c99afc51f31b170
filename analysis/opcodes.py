"""SASS opcodes of all architectures from Maxwell to Blackwell, sorted into classes that a reader can use.

Source: NVIDIA's instruction set reference in "CUDA Binary Utilities". An opcode is the first word of a SASS
instruction without modifiers and predicates: ``LDG`` of ``@!P0 LDG.E.128 R4, [R2.64]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """An opcode with its class (key of `CLASSES`) and its meaning in a few words."""

    opcode: str
    instruction_class: str
    meaning: str


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

_FLOAT = {
    "fp32": {
        "FADD": "add",
        "FADD2": "packed add of two",
        "FADD32I": "add, immediate",
        "FCHK": "range check before a division",
        "FCMP": "compare and select",
        "FFMA": "fused multiply-add",
        "FFMA2": "packed fused multiply-add of two",
        "FFMA32I": "fused multiply-add, immediate",
        "FHADD": "add of mixed FP32 and FP16",
        "FHFMA": "fused multiply-add of mixed FP32 and FP16",
        "FMNMX": "minimum or maximum",
        "FMNMX3": "minimum or maximum of three",
        "FMUL": "multiply",
        "FMUL2": "packed multiply of two",
        "FMUL32I": "multiply, immediate",
        "FSEL": "select",
        "FSET": "compare, result in a register",
        "FSETP": "compare, result in a predicate",
        "FSWZ": "add across lanes",
        "FSWZADD": "add across lanes",
        "RRO": "range reduction before a special function",
    },
    "fp64": {
        "DADD": "add",
        "DFMA": "fused multiply-add",
        "DMNMX": "minimum or maximum",
        "DMUL": "multiply",
        "DSET": "compare, result in a register",
        "DSETP": "compare, result in a predicate",
    },
    "fp16": {
        "HADD2": "add of two",
        "HADD2_32I": "add of two, immediate",
        "HFMA2": "fused multiply-add of two",
        "HFMA2_32I": "fused multiply-add of two, immediate",
        "HFMA2_MMA": "fused multiply-add of two on the tensor pipe",
        "HMNMX2": "minimum or maximum of two",
        "HMUL2": "multiply of two",
        "HMUL2_32I": "multiply of two, immediate",
        "HSET2": "compare of two, result in a register",
        "HSETP2": "compare of two, result in predicates",
        "VHMNMX": "minimum or maximum of three, packed halves",
    },
    "special": {"MUFU": "reciprocal, square root, sine, exponential and the like"},
    "tensor": {
        "BGMMA": "warpgroup matrix multiply-add, 1-bit",
        "BMMA": "matrix multiply-add, 1-bit",
        "DMMA": "matrix multiply-add, FP64",
        "HGMMA": "warpgroup matrix multiply-add, FP16, BF16 or TF32",
        "HMMA": "matrix multiply-add, FP16, BF16 or TF32",
        "IGMMA": "warpgroup matrix multiply-add, integer",
        "IMMA": "matrix multiply-add, integer",
        "OMMA": "matrix multiply-add, FP4",
        "QGMMA": "warpgroup matrix multiply-add, FP8",
        "QMMA": "matrix multiply-add, FP8, FP6 or FP4",
        "UTCHMMA": "tensor-memory matrix multiply-add, FP16, BF16 or TF32",
        "UTCIMMA": "tensor-memory matrix multiply-add, integer",
        "UTCMXQMMA": "tensor-memory matrix multiply-add, block-scaled FP8",
        "UTCOMMA": "tensor-memory matrix multiply-add, FP4",
        "UTCQMMA": "tensor-memory matrix multiply-add, FP8, FP6 or FP4",
    },
}

_INTEGER = {
    "integer": {
        "BFE": "extract bits",
        "BFI": "insert bits",
        "BMSK": "make a bit mask",
        "BREV": "reverse bits",
        "FLO": "find leading one",
        "IABS": "absolute value",
        "IADD": "add",
        "IADD2": "add",
        "IADD3": "add of three",
        "IADD32I": "add, immediate",
        "ICMP": "compare and select",
        "IDP": "dot product of bytes",
        "IDP4A": "dot product of four bytes",
        "IMAD": "multiply-add (the compiler also moves registers with it)",
        "IMAD32I": "multiply-add, immediate",
        "IMADSP": "multiply-add of parts",
        "IMNMX": "minimum or maximum",
        "IMUL": "multiply",
        "IMUL32I": "multiply, immediate",
        "ISAD": "sum of absolute differences",
        "ISCADD": "scaled add",
        "ISCADD32I": "scaled add, immediate",
        "ISET": "compare, result in a register",
        "ISETP": "compare, result in a predicate",
        "LEA": "address: shift and add",
        "LOP": "logic of two",
        "LOP3": "logic of three",
        "LOP32I": "logic of two, immediate",
        "POPC": "count ones",
        "SGXT": "extend the sign",
        "SHF": "funnel shift",
        "SHL": "shift left",
        "SHR": "shift right",
        "VABSDIFF": "absolute difference",
        "VABSDIFF4": "absolute difference of four bytes",
        "VADD": "video add",
        "VIADD": "add",
        "VIADDMNMX": "add, then minimum or maximum",
        "VIMNMX": "minimum or maximum",
        "VIMNMX3": "minimum or maximum of three",
        "VMAD": "video multiply-add",
        "VMNMX": "video minimum or maximum",
        "XMAD": "16-bit multiply-add",
    },
    "conversion": {
        "F2F": "float to float",
        "F2FP": "floats to a packed pair",
        "F2I": "float to integer",
        "F2IP": "floats to packed integers",
        "FRND": "round to an integer value",
        "I2F": "integer to float",
        "I2FP": "integer to float, on the FP32 pipe",
        "I2I": "integer to integer",
        "I2IP": "integers to a packed pair",
    },
    "move": {
        "B2R": "barrier state to register",
        "BMOV": "move a convergence barrier",
        "CS2R": "special register (clock) to register",
        "CSET": "condition to register",
        "CSETP": "condition to predicate",
        "GETLMEMBASE": "read the base of local memory",
        "LEPC": "read the program counter",
        "MOV": "move",
        "MOV32I": "move an immediate",
        "MOVM": "move a matrix, transposed, between lanes",
        "P2R": "predicates to register",
        "PLOP3": "logic of predicates",
        "PRMT": "permute bytes",
        "PSET": "predicate to register",
        "PSETP": "combine predicates",
        "R2B": "register to barrier",
        "R2P": "register to predicates",
        "RPCMOV": "move the return program counter",
        "S2R": "special register (thread or block index) to register",
        "SEL": "select",
        "SETCTAID": "set the block index",
        "SETLMEMBASE": "set the base of local memory",
    },
    "warp": {
        "CREDUX": "reduction over a warp to a uniform register",
        "ELECT": "elect one thread of the warp",
        "MATCH": "find lanes with equal values",
        "REDUX": "integer reduction over a warp",
        "SHFL": "shuffle between lanes",
        "VOTE": "vote over a warp",
        "VOTEU": "vote over a warp to a uniform register",
    },
    "uniform": {
        "R2UR": "register to uniform register",
        "S2UR": "special register to uniform register",
        "UCLEA": "constant address",
        "UFRND": "round",
        "UI2FP": "integer to float",
        "UIMAD": "multiply-add",
        "UP2UR": "predicates to register",
        "UR2UP": "register to predicates",
        "UR2UR": "move through a uniform register index",
        "USETMAXREG": "give back or take registers (setmaxnreg)",
        "UVIRTCOUNT": "set a virtual resource count",
    },
}

# Opcodes that the uniform datapath has as well, under the same name behind a U.
_UNIFORM_FP32 = "FADD FFMA FMNMX FMUL FSEL FSET FSETP"
_UNIFORM = (
    "BMSK BREV F2F F2FP F2I FLO I2F I2I I2IP IABS IADD3 IMNMX ISETP LEA LEPC LOP LOP3 LOP32I MOV PLOP3 POPC "
    "PRMT PSETP SEL SGXT SHF SHL SHR VIADD VIMNMX VIMNMX3"
)
_SCALAR = {opcode: meaning for known in _INTEGER.values() for opcode, meaning in known.items()}
_INTEGER["uniform"] |= {f"U{opcode}": f"FP32 {_FLOAT['fp32'][opcode]}" for opcode in _UNIFORM_FP32.split()}
_INTEGER["uniform"] |= {f"U{opcode}": _SCALAR[opcode] for opcode in _UNIFORM.split()}

_MEMORY = {
    "global_load": {"LD": "load, generic address", "LDG": "load"},
    "global_store": {"ST": "store, generic address", "STG": "store"},
    "shared_load": {"LDS": "load", "LDSM": "load matrix fragments (ldmatrix)"},
    "shared_store": {
        "STAS": "asynchronous store to distributed shared memory",
        "STS": "store",
        "STSM": "store matrix fragments (stmatrix)",
        "UMEMSETS": "fill shared memory",
    },
    "local": {"LDL": "load from local memory", "STL": "store to local memory"},
    "constant": {
        "LDC": "load a constant",
        "LDCU": "load a constant to a uniform register",
        "ULDC": "load a constant to a uniform register",
    },
    "async_copy": {
        "ARRIVES": "signal a barrier when copies arrive",
        "LDGDEPBAR": "close a group of asynchronous copies",
        "LDGSTS": "copy global to shared (cp.async)",
        "UBLKCP": "bulk copy",
        "UBLKPF": "bulk prefetch",
        "UBLKRED": "bulk reduction",
        "UTMACCTL": "cache control of a tensor map",
        "UTMACMDFLUSH": "flush tensor-copy commands",
        "UTMALDG": "tensor copy, global to shared (TMA)",
        "UTMAPF": "tensor prefetch (TMA)",
        "UTMAREDG": "tensor reduction to global (TMA)",
        "UTMASTG": "tensor copy, shared to global (TMA)",
    },
    "atomic": {
        "ATOM": "atomic, generic address",
        "ATOMG": "atomic on global memory",
        "ATOMS": "atomic on shared memory",
        "RED": "reduction without result",
        "REDAS": "asynchronous reduction on distributed shared memory",
        "REDG": "reduction on global memory without result",
    },
    "texture": {
        "SUATOM": "surface atomic",
        "SULD": "surface load",
        "SUQUERY": "surface query",
        "SURED": "surface reduction",
        "SUST": "surface store",
        "TEX": "texture fetch",
        "TEXS": "texture fetch",
        "TLD": "texture load",
        "TLD4": "texture gather",
        "TLD4S": "texture gather",
        "TLDS": "texture load",
        "TMML": "texture level of detail",
        "TXA": "texture anisotropic fetch",
        "TXD": "texture fetch with derivatives",
        "TXQ": "texture query",
    },
    "tensor_memory": {
        "LDT": "load tensor memory",
        "LDTM": "load tensor memory to registers",
        "STT": "store tensor memory",
        "STTM": "store registers to tensor memory",
        "UTCATOMSWS": "allocate or free tensor memory",
        "UTCBAR": "signal a barrier when tensor work is done",
        "UTCCP": "copy shared memory to tensor memory",
        "UTCLDSWS": "load tensor-core state",
        "UTCSHIFT": "shift rows of tensor memory",
        "UTCSTSWS": "store tensor-core state",
    },
    "cache": {
        "CCTL": "cache control",
        "CCTLL": "cache control, local memory",
        "CCTLT": "cache control, texture",
        "CGAERRBAR": "error barrier of a cluster",
        "ERRBAR": "error barrier",
        "FENCE": "memory fence between proxies",
        "MEMBAR": "memory fence",
        "QSPC": "ask for the memory space of an address",
    },
}

_CONTROL = {
    "synchronisation": {
        "ACQBULK": "wait for bulk data of an earlier launch",
        "ACQSHMINIT": "wait for the initialisation of shared memory",
        "BAR": "block barrier (__syncthreads)",
        "DEPBAR": "wait for outstanding results",
        "ENDCOLLECTIVE": "end of a collective",
        "NANOSLEEP": "sleep",
        "PREEXIT": "let the next launch begin",
        "SYNCS": "shared-memory barrier (mbarrier)",
        "UCGABAR_ARV": "arrive at the cluster barrier",
        "UCGABAR_WAIT": "wait at the cluster barrier",
        "WARPGROUP": "fence before, or wait for, warpgroup matrix multiply-adds",
        "WARPSYNC": "synchronise the warp",
    },
    "control": {
        "BPT": "breakpoint or trap",
        "BRA": "branch",
        "BREAK": "leave a convergence region",
        "BRK": "leave a loop",
        "BRX": "branch, computed target",
        "BRXU": "branch, computed uniform target",
        "BSSY": "begin a convergence region",
        "BSYNC": "converge",
        "CAL": "call",
        "CALL": "call",
        "CONT": "continue a loop",
        "EXIT": "end of the thread",
        "JCAL": "call",
        "JMP": "jump",
        "JMX": "jump, computed target",
        "JMXU": "jump, computed uniform target",
        "KILL": "end of the thread",
        "LONGJMP": "long jump",
        "PBK": "prepare leaving a loop",
        "PCNT": "prepare continuing a loop",
        "PEXIT": "prepare the end",
        "PLONGJMP": "prepare a long jump",
        "PRET": "prepare a return",
        "RET": "return",
        "RTT": "return from a trap",
        "SSY": "set the convergence point",
        "SYNC": "converge",
        "YIELD": "let another warp run",
    },
    "other": {
        "NOP": "no operation",
        "PMTRIG": "trigger a performance monitor",
        "UGETNEXTWORKID": "take the next block of a cancelled launch",
        "VIRTCOUNT": "set a virtual resource count",
    },
}

# Every known opcode.
OPCODES: dict[str, OpcodeInfo] = {
    opcode: OpcodeInfo(opcode, key, meaning)
    for table in (_FLOAT, _INTEGER, _MEMORY, _CONTROL)
    for key, members in table.items()
    for opcode, meaning in members.items()
}


def members(*classes: str) -> tuple[str, ...]:
    """The opcodes of these classes."""
    return tuple(item.opcode for item in OPCODES.values() if item.instruction_class in classes)


def opcode_of(sass: str) -> str:
    """``LDG.E.128`` of ``@!P3 LDG.E.128 R4, [R2.64]``, '' of nothing."""
    words = sass.split(None, 2)
    if words and words[0].startswith("@"):
        words = words[1:]
    return words[0].rstrip(";") if words else ""


@lru_cache(maxsize=4096)
def info(opcode: str) -> OpcodeInfo:
    """What an opcode (modifiers allowed: ``LDG.E.128``) is; class ``other`` and no meaning if it is unknown."""
    bare = opcode.partition(".")[0].strip().upper()
    if bare == "HFMA2" and ".MMA" in opcode.upper():
        bare = "HFMA2_MMA"
    return OPCODES.get(bare) or OpcodeInfo(bare, "other", "")


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
