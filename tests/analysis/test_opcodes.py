"""The class table: every class used, no opcode twice, the reading of modifiers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmprof.analysis import opcodes


def test_every_class_has_members_and_every_member_a_class() -> None:
    known = opcodes.known().values()
    assert {item.instruction_class for item in known} == set(opcodes.CLASSES)
    assert set(opcodes.MATH_CLASSES) <= set(opcodes.CLASSES)
    assert all(item.meaning for item in known)
    table = Path(opcodes.__file__).with_name("opcodes.csv").read_text("utf-8")
    assert len(table.splitlines()) == 1 + len(known)  # none twice


@pytest.mark.parametrize(
    ("text", "opcode", "key"),
    [
        ("LDG.E.128.CONSTANT", "LDG", "global_load"),
        ("HFMA2.MMA", "HFMA2_MMA", "fp16"),
        ("HFMA2.BF16_V2", "HFMA2", "fp16"),
        ("HGMMA.64x128x16.F32", "HGMMA", "tensor"),
        ("WARPGROUP.DEPBAR.LE", "WARPGROUP", "synchronisation"),
        ("UTCHMMA.2CTA", "UTCHMMA", "tensor"),
        ("UTMALDG.2D", "UTMALDG", "async_copy"),
        ("LDTM.x32", "LDTM", "tensor_memory"),
        ("FFMA2", "FFMA2", "fp32"),
        ("STL.64", "STL", "local"),
        ("XMAD.MRG", "XMAD", "integer"),
        ("NEWOP.X", "NEWOP", "other"),
        ("", "", "other"),
    ],
)
def test_info(text: str, opcode: str, key: str) -> None:
    info = opcodes.info(text)
    assert (info.opcode, info.instruction_class) == (opcode, key)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("HMMA.16816.F32 R4, R12, R18, R4 ;", "R12 R13 R14 R15 R18 R19 R4 R5 R6 R7"),
        ("HMMA.16816.F16 R4, R12, R18, RZ ;", "R12 R13 R14 R15 R18 R19"),
        ("HMMA.1688.F32.TF32 R4, R12, R18, R4 ;", "R12 R13 R14 R15 R18 R19 R4 R5 R6 R7"),
        ("IMMA.8816.S8.S8 R4, R12.ROW, R18.COL, R4 ;", "R12 R18 R4 R5"),
        ("DMMA.884 R4, R12, R18, R4 ;", "R12 R13 R18 R19 R4 R5 R6 R7"),
        ("IMAD.WIDE R4, R12, 0x4, R18 ;", "R12 R18 R19"),
        ("FFMA R4, R12, R18, R4 ;", "R12 R18 R4"),
    ],
)
def test_registers_of_a_matrix_product(text: str, reads: str) -> None:
    """PTX ISA, fragments of mma.sync: a warp's lanes hold each factor and the sums once."""
    assert opcodes.parse(text).reads == tuple(reads.split())


@pytest.mark.parametrize(
    ("opcode", "size"),
    [
        ("LDS", 4),
        ("LDS.U8", 1),
        ("LDS.S16", 2),
        ("LDS.64", 8),
        ("LDS.128", 16),
        ("LDG.E.LTC128B.64", 8),
        ("LDG.E.128.CONSTANT", 16),
        ("LDG.E.ENL2.256", 32),
        ("LDSM.16.M88", 4),
        ("LDSM.16.MT88.4", 16),
        ("LDSM.16.M88.2", 8),
        ("LDGSTS.E.BYPASS.128", 16),
        ("REDG.E.ADD.F64.RN.STRONG.GPU", 8),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", 4),
        ("ATOMG.E.ADD.F32x2.FTZ.RN.STRONG.GPU", 8),
        ("REDG.E.ADD.BF16x8.RN.STRONG.GPU", 16),
    ],
)
def test_bytes_per_thread(opcode: str, size: int) -> None:
    assert opcodes.bytes_per_thread(opcode) == size


def test_members() -> None:
    assert opcodes.members("special") == ("MUFU",)
    assert {"LDS", "LDSM", "STS"} <= set(opcodes.members("shared_load", "shared_store"))


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("@!P0 SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR6+0x8], R4", ("P2",), ("UR6", "R4", "P0")),
        ("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR23+0x38030], RZ", (), ("UR23",)),
        ("SYNCS.CCTL.IV [UR4]", (), ("UR4",)),
        ("ATOMG.E.CAS.STRONG.GPU PT, R4, [R2.64], R6, R7", ("R4",), ("R2", "R3", "R6", "R7")),
        ("ATOMS.CAS.64 R4, [R2], R6, R8", ("R4", "R5"), ("R2", "R6", "R7", "R8", "R9")),
        ("ATOMG.E.ADD.F16x4.RN.STRONG.GPU PT, RZ, [R2.64], R6", (), ("R2", "R3", "R6", "R7")),
        (
            "HMMA.16816.F32 R4, R8, R12, RZ",
            ("R4", "R5", "R6", "R7"),
            (*["R8", "R9", "R10", "R11", "R12", "R13"],),
        ),
        ("IMMA.8816.S8.S8 R4, R8.ROW, R9.COL, R4", ("R4", "R5"), ("R8", "R9", "R4", "R5")),
        (
            "HGMMA.64x16x16.F32 R24, R32, gdesc[UR4], R24, gsb0",
            tuple(f"R{number}" for number in range(24, 32)),
            ("R32", "R33", "R34", "R35", "UR4", *(f"R{number}" for number in range(24, 32))),
        ),
        ("HGMMA.64x8x16.F16 R24, gdesc[UR4], RZ, !UPT", ("R24", "R25"), ("UR4",)),
        ("LOP3.LUT P0, R4, R5, 0x7, RZ, 0xc0, !PT", ("P0", "R4"), ("R5",)),
        ("VOTEU.ANY UP3, !P5", ("UP3",), ("P5",)),
        ("VOTE.ANY R27, PT, P2", ("R27",), ("P2",)),
        ("VOTE.ALL P0, P0", ("P0",), ("P0",)),
    ],
)
def test_what_an_instruction_writes_and_reads(
    text: str, writes: tuple[str, ...], reads: tuple[str, ...]
) -> None:
    found = opcodes.parse(text)
    assert (found.writes, found.reads) == (writes, reads)


def test_a_matrix_is_turned_on_the_way_of_loads() -> None:
    """By what the pipes of an H100 and a T4 counted."""
    assert opcodes.info("MOVM").pipe == opcodes.info("SHFL").pipe == "lsu"
