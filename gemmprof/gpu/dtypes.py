"""The types of an element: how many bytes it has, how it rounds, and the names that torch and CUDA know it by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ElementType:
    """What an operand is made of."""

    name: str  # torch's name, ``bfloat16``; it stands in problems, page names and run.json
    cuda: str  # the type of the kernels' operands, ``__nv_bfloat16``
    code: int  # number of ``gemmprof::Dtype`` in include/gemm.h
    bytes: int  # size of an element
    unit_roundoff: float  # largest relative error of rounding to nearest, 2^-p for p bits of significand
    poison_bits: int  # a quiet NaN whose payload no arithmetic produces, as an integer of the element's size
    # names of the types that C may have where this is the operands', the one that goes without saying first
    c_types: tuple[str, ...]
    k_major: bool = False  # tensor cores read it along K only, of both operands: B comes transposed


FLOAT32 = ElementType("float32", "float", 0, 4, 2.0**-24, 0x7FC05AFE, ("float32",))
FLOAT16 = ElementType("float16", "__half", 1, 2, 2.0**-11, 0x7E5A, ("float16", "float32"))
BFLOAT16 = ElementType("bfloat16", "__nv_bfloat16", 2, 2, 2.0**-8, 0x7FDA, ("bfloat16", "float32"))
# It has one NaN, and no infinity; operands only, C is of more bits.
FLOAT8_E4M3 = ElementType(
    "float8_e4m3fn", "__nv_fp8_e4m3", 3, 1, 2.0**-4, 0x7F, ("bfloat16", "float16", "float32"), k_major=True
)

# Every type that a ladder may be of, by name.
ELEMENT_TYPES: Mapping[str, ElementType] = MappingProxyType(
    {t.name: t for t in (FLOAT32, FLOAT16, BFLOAT16, FLOAT8_E4M3)}
)

DTYPES = tuple(ELEMENT_TYPES)


def name_of(torch_type: object) -> str:
    """The name of one of torch's types: ``torch.bfloat16`` is ``bfloat16``."""
    return str(torch_type).removeprefix("torch.")
