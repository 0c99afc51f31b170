"""Bits that are worked out one at a time are known by what is made of them, however a compiler writes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from made_code import made

from gemmprof.analysis.explanation.code.single_bits import one_by_one, wanted_bits
from gemmprof.analysis.explanation.demands.work import Work

LOAD, STORE = "LDG.E R4, desc[UR4][R2.64] ;", "STG.E desc[UR4][R2.64], R6 ;"


def reversed_bits() -> Iterator[str]:
    for bit in range(32):
        yield f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4 ;"
        yield "IMAD.SHL.U32 R6, R6, 0x2, RZ ;"
        yield "LOP3.LUT R6, R6, 0xfffffffe, R5, 0xe2, !PT ;"


def parity() -> Iterator[str]:
    for bit in range(1, 32):
        yield f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4 ;"
        yield f"LOP3.LUT R6, {'R4' if bit == 1 else 'R6'}, R5, RZ, 0x3c, !PT ;"
    yield "LOP3.LUT R6, R6, 0x1, RZ, 0xc0, !PT ;"


def spread() -> Iterator[str]:
    yield "LOP3.LUT R6, R4, 0x1, RZ, 0xc0, !PT ;"
    for bit in range(1, 16):
        yield f"IMAD.SHL.U32 R5, R4, {1 << bit:#x}, RZ ;"
        yield f"LOP3.LUT R6, R6, {1 << 2 * bit:#x}, R5, 0xf8, !PT ;"


def shift_register() -> Iterator[str]:
    yield "IMAD.MOV.U32 R6, RZ, RZ, R4 ;"
    for _ in range(32):
        yield "SHF.R.U32.HI R5, RZ, 0xa, R6 ;"
        yield "LOP3.LUT R5, R5, R6, RZ, 0x3c, !PT ;"
        yield "SHF.L.U32.HI R6, R6, 0x1f, R5 ;"


def product_of_a_field() -> Iterator[str]:
    yield "IMAD.MOV.U32 R6, RZ, RZ, R4 ;"
    for _ in range(8):
        yield "PRMT R5, R6, 0x8880, RZ ;"
        yield "IMAD.SHL.U32 R6, R6, 0x2, RZ ;"
        yield "ISETP.GE.AND P0, PT, R5, RZ, PT ;"
        yield "@!P0 LOP3.LUT R6, R6, 0x1b, RZ, 0x3c, !PT ;"


def digits() -> Iterator[str]:
    """Each bit picks one of two numbers of two bits, which is put behind those before it."""
    yield "IMAD.MOV.U32 R6, RZ, RZ, RZ ;"
    for bit in range(16):
        yield f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4 ;"
        yield "LOP3.LUT R5, R5, 0x1, RZ, 0xc0, !PT ;"
        yield "ISETP.NE.U32.AND P0, PT, R5, 0x1, PT ;"
        yield "SEL R7, RZ, 0x3, P0 ;"
        yield "LOP3.LUT R7, R7, R5, RZ, 0x3c, !PT ;"
        yield "IMAD R6, R6, 0x4, R7 ;"


def noise() -> Iterator[str]:
    """Four bits are taken out of a word; each further one is made of two before it, and put into another word."""
    for bit in range(4):
        yield f"SHF.R.U32.HI R5, RZ, {bit:#x}, R4 ;"
        yield f"LOP3.LUT R{10 + bit}, R5, 0x1, RZ, 0xc0, !PT ;"
    yield "IMAD.MOV.U32 R6, RZ, RZ, RZ ;"
    for bit in range(32):
        yield f"LOP3.LUT R{10 + bit % 4}, R{10 + bit % 4}, 0x1, R{10 + (bit + 1) % 4}, 0x48, !PT ;"
        yield "IMAD.SHL.U32 R6, R6, 0x2, RZ ;"
        yield f"LOP3.LUT R6, R6, 0xfffffffe, R{10 + bit % 4}, 0xe2, !PT ;"


def launch(*code: str) -> Work:
    return made(LOAD, *code, STORE, "EXIT ;")


@pytest.mark.parametrize(
    "code", [reversed_bits, parity, spread, shift_register, product_of_a_field, digits, noise]
)
def test_a_bit_at_a_time_is_eight_at_a_time(code: object) -> None:
    found = launch(*code())  # type: ignore[operator]
    told = one_by_one(found)
    assert told is not None
    keep, _, together = told
    assert together >= 8.0
    of_bits = [keep[at] for at in range(1, len(keep) - 2)]
    assert sum(share == 0.125 for share in of_bits) > 0.9 * len(of_bits)
    assert keep[-2] == 1.0


def test_few_bits_of_a_word_are_no_such_work() -> None:
    assert one_by_one(launch(*list(spread())[:9])) is None
    assert one_by_one(launch("IADD3 R6, R4, 0x1, RZ ;")) is None


def test_the_upper_half_of_a_wide_shift_is_no_bit() -> None:
    """A hash's ``h ^ h >> 31`` of 64 bits: what is left of the upper word has a bit, and the lower one the others."""
    code = []
    for _ in range(16):
        code += ["SHF.R.U64 R7, R6, 0x1f, R4 ;", "SHF.R.U32.HI R5, RZ, 0x1f, R4 ;"]
        code += ["LOP3.LUT R6, R6, R7, RZ, 0x3c, !PT ;", "LOP3.LUT R4, R4, R5, RZ, 0x3c, !PT ;"]
    assert one_by_one(launch(*code, "LOP3.LUT R6, R6, R4, RZ, 0x3c, !PT ;")) is None


def test_bits_put_together_are_told_beside_a_bit_that_is_tested() -> None:
    test = ("LOP3.LUT R9, R4, 0x1, RZ, 0xc0, !PT ;", "ISETP.NE.AND P1, PT, R9, RZ, PT ;", "@P1 EXIT ;")
    alone, beside = one_by_one(launch(*parity())), one_by_one(launch(*test, *parity()))
    assert alone is not None and beside is not None and beside[2] == alone[2]


def test_words_that_bits_let_pass_are_the_work_of_each() -> None:
    """Rows whose bit says that they count: the largest of them is found among words."""
    rows = range(16)
    code = [f"LDG.E R{10 + row}, desc[UR4][R2.64+{4 * row + 16:#x}] ;" for row in rows]
    code += ["IMAD.MOV.U32 R6, RZ, RZ, RZ ;"]
    for row in rows:
        code += [f"SHF.R.U32.HI R5, RZ, {row:#x}, R4 ;", "LOP3.LUT R5, R5, 0x1, RZ, 0xc0, !PT ;"]
        code += ["ISETP.NE.AND P0, PT, R5, RZ, PT ;", f"SEL R6, R6, R{10 + row}, P0 ;"]
    assert one_by_one(launch(*code)) is None


def test_bits_that_anything_is_made_of_are_followed_through_shifts_masks_bytes_and_sums() -> None:
    found = launch(
        "SHF.R.U32.HI R5, RZ, 0x4, R7 ;",  # 12 to 19 of the sum below
        "LOP3.LUT R6, R5, 0xff00, RZ, 0xc0, !PT ;",
        "PRMT R6, R6, 0x3201, RZ ;",  # its second byte first, and nothing but that is stored
    )
    narrow = made(
        LOAD, "IADD3 R7, R4, R4, RZ ;", *(line.text for line in found.sass[1:4]), STORE.replace(".E", ".E.U8")
    )
    wanted = wanted_bits(narrow.code)
    assert [hex(wanted[at]) for at in (1, 2, 3, 4)] == ["0xff000", "0xff00", "0xff00", "0xff"]
