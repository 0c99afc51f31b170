"""SASS is read as it is meant: what is written and read, where it goes, who made a value."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
from made_code import made
from recorded_data import ReadRecorded

from gemmprof.analysis.explanation.code import flow
from gemmprof.analysis.explanation.code.live import live_results
from gemmprof.analysis.opcodes import parse


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("@!P3  LDG.E.128 R36, desc[UR8][R52.64+0x10]", "R36 R37 R38 R39", "UR8 R52 R53 P3"),
        ("STG.E.128 desc[UR6][R2.64], R20", "", "UR6 R2 R3 R20 R21 R22 R23"),
        ("IMAD.WIDE R4, R0, 0x20, RZ", "R4 R5", "R0"),
        ("ISETP.GE.AND P0, PT, R0, UR8, PT", "P0", "R0 UR8"),
        ("IADD3 R2, P0, R7, R4, RZ", "R2 P0", "R7 R4"),
        ("IMAD.X R9, R5, 0x1, ~R9, P1", "R9", "R5 R9 P1"),
        ("DFMA R4, -R8, R2, 1", "R4 R5", "R8 R9 R2 R3"),
        ("SHFL.DOWN PT, R8, R7, 0x10, 0x1f", "R8", "R7"),
        ("ATOMG.E.ADD.STRONG.GPU PT, RZ, desc[UR10][R214.64], R0", "", "UR10 R214 R215 R0"),
        ("LOP3.LUT P0, RZ, R3, 0x1f, RZ, 0xc0, !PT", "P0", "R3"),
        ("ULDC.64 UR8, c[0x0][0x220]", "UR8 UR9", ""),
        ("EXIT", "", ""),
    ],
)
def test_registers(text: str, writes: str, reads: str) -> None:
    line = parse(text)
    assert " ".join(line.writes) == writes
    assert " ".join(line.reads) == reads


def test_register_zeroing_is_no_arithmetic() -> None:
    assert parse("HFMA2.MMA R6, -RZ, RZ, 0, 0").moves_a_constant
    assert parse("IMAD.MOV.U32 R5, RZ, RZ, R7").moves_a_constant
    assert not parse("HFMA2 R6, R6, R2, R3").moves_a_constant


def test_every_recorded_line_is_read(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name, source=True):
        code = flow.program(profile.source.instructions)
        for index, line in enumerate(code.sass):
            if line.target is not None and line.opcode in ("BRA", "BSSY"):
                assert code.target(index) is not None, line.text
            if line.is_load and line.space == "global" and "RZ" not in line.operands[0]:
                assert line.writes, line.text


def test_a_loop_and_the_load_that_fills_a_register(recorded: ReadRecorded) -> None:
    (profile,) = [p for p in recorded("ladder_simple", source=True) if p.function_name == "gemm_naive"]
    code = flow.program(profile.source.instructions)
    assert code.loops
    uses = [i for i, line in enumerate(code.sass) if line.opcode == "FFMA"]
    made_by = {
        code.sass[at].opcode for i in uses for name in code.sass[i].reads for at in code.producers(i, name)
    }
    assert "LDG" in made_by


def test_a_call_that_never_returns_is_a_jump() -> None:
    """Older compilers leave a loop by a call of what ends the kernel; a function comes back."""
    loop = ("IADD3 R0, R0, 0x1, RZ ;", "@P0 CALL.REL.NOINC 0x000030 ;", "BRA 0x000000 ;")
    left = made(*loop, "MOV R0, RZ ;", "EXIT ;").code
    assert not left.functions and left.sass[1].is_branch
    assert set(left.predecessors[3]) == {1}
    called = made(*loop, "MOV R0, RZ ;", "@P1 EXIT ;", "RET.REL.NODEC R2 ;").code
    assert called.functions == ((3, 5),)


def test_a_value_is_found_however_many_branches_lie_between() -> None:
    branches = [f"@P{at % 6} BRA 0x{16 * (at + 2):06x} ;" for at in range(200)]
    code = made("S2R R0, SR_TID.X ;", *branches, "IADD3 R1, R0, 0x1, RZ ;", "EXIT ;").code
    assert code.producers(201, "R0") == (0,)


def test_a_value_comes_from_whatever_wrote_it_last_on_any_way_to_its_reader(recorded: ReadRecorded) -> None:
    """Told by bits for all blocks at once; here each way is walked back by itself, from each reader."""
    guarded = 0
    for profile in recorded("flaws_divergence", source=True):
        code = flow.program(profile.source.instructions)
        for index, line in enumerate(code.sass):
            for name in line.reads:
                found, seen, ways = set[int](), set[int](), list(code.predecessors[index])
                while ways:
                    at = ways.pop()
                    if at in seen:
                        continue
                    seen.add(at)
                    written = name in code.sass[at].writes
                    found.update([at] if written else [])
                    if not written or code.sass[at].when not in ("", line.when):
                        ways += code.predecessors[at]
                assert set(code.producers(index, name)) == found, (index, name)
                guarded += len(found) > 1
    assert guarded, "no reader with several ways to it was tried"


def test_a_reader_under_the_same_condition_finds_no_older_value() -> None:
    ways = ("MOV R1, 0x1 ;", "@P0 MOV R1, 0x2 ;", "@P1 BRA 0x000040 ;", "MOV R2, RZ ;")
    readers = ("@P0 MOV R3, R1 ;", "MOV R4, R1 ;", "@!P0 MOV R5, R1 ;", "EXIT ;")
    code = made(*ways, *readers).code
    assert code is not None
    assert [code.producers(at, "R1") for at in (4, 5, 6)] == [(1,), (1, 0), (1, 0)]


def test_a_way_around_behind_the_code_makes_no_loop() -> None:
    """It jumps back to where it left the code; what goes round stays a loop, with a part that stands before it, too."""
    ways = ("@P0 BRA.DIV UR4, 0x000050 ;", "MOV R1, R2 ;", "BAR.SYNC 0x0 ;", "@P1 BRA 0x000020 ;", "EXIT ;")
    code = made(*ways, "MOV R1, R3 ;", "BRA 0x000020 ;").code
    assert [(loop.first, loop.last) for loop in code.loops] == [(2, 3)]
    before = (
        "BRA 0x000030 ;",
        "LDG.E R1, [R2.64] ;",
        "BRA 0x000040 ;",
        "@P0 BRA 0x000010 ;",
        "@P1 BRA 0x000030 ;",
    )
    code = made(*before, "EXIT ;").code
    assert [(loop.first, loop.last) for loop in code.loops] == [(3, 4), (1, 3)]


def test_what_a_long_loop_carries_is_found_in_one_pass() -> None:
    """Of 6,000 instructions in a row, each of which reads the one before, only a load's place goes round."""
    row = [f"IADD3 R{at % 200 + 20}, R{(at - 1) % 200 + 20}, 0x1, RZ ;" for at in range(6000)]
    code = made("LDG.E.64 R2, [R2.64] ;", "MOV R219, R2 ;", *row, "BRA 0x000000 ;", "EXIT ;").code
    gc.disable()  # it would go through all launches that other tests keep
    begun = time.process_time()
    try:
        assert list(np.flatnonzero(code.chased)) == [0]
        assert time.process_time() - begun < 2.0
    finally:
        gc.enable()


def test_registers_that_hold_results_of_some_instructions() -> None:
    loads = ("LDG.E R4, desc[UR4][R2.64] ;", "LDG.E R5, desc[UR4][R2.64+0x4] ;")
    code = made(
        *loads, "FADD R6, R4, R5 ;", "FADD R6, R6, R4 ;", "STG.E desc[UR4][R2.64], R6 ;", "EXIT ;"
    ).code
    assert live_results(code, frozenset({0, 1})) == (1, 2, 2, 1, 0, 0)
    assert live_results(code, frozenset({3})) == (0, 0, 0, 1, 1, 0)
