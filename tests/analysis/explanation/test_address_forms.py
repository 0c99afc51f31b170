"""Addresses that the code tells, on recorded kernels whose source is known, and against what was counted everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from made_code import made
from recorded_data import ReadRecorded

from gemmprof.analysis.explanation.code import symbolic
from gemmprof.analysis.explanation.code.address_forms import (
    AFFINE,
    LOOK_UP,
    STRIDED,
    UNIFORM,
    Checked,
    checked_forms,
    coefficient,
)
from gemmprof.analysis.explanation.demands.footprint import Places
from gemmprof.analysis.explanation.demands.work import Work, work

BELIEVED = ("exact", "agrees")


def of_launch(recorded: ReadRecorded, report: str, kernel: str) -> tuple[Work, list[Checked]]:
    profile = next(one for one in recorded(report, source=True) if one.function_name == kernel)
    found = work(profile)
    return found, list(checked_forms(found).values())


@pytest.mark.parametrize(
    ("kernel", "load", "store"),
    [
        ("coalesced_copy", 4, 4),
        ("strided_store", 4, 32),  # out[i * 8]
        ("aos_mass", 32, 4),  # a struct of 32 bytes
        ("misaligned_copy", 4, 4),
    ],
)
def test_bytes_from_lane_to_lane(recorded: ReadRecorded, kernel: str, load: int, store: int) -> None:
    _, (first, last) = of_launch(recorded, "flaws_global_access", kernel)
    for one, stride in ((first, load), (last, store)):
        assert one.form.kind == AFFINE
        assert one.verdict == "exact"
        assert one.form.offsets is not None
        assert set(np.diff(one.form.offsets)) == {stride}
        # A block of 256 threads goes on where the one before it ends.
        assert coefficient(one.form.address, "block", "x") == 256 * stride


def test_a_struct_s_member_lies_where_the_source_says(recorded: ReadRecorded) -> None:
    _, (load, _) = of_launch(recorded, "flaws_global_access", "aos_mass")
    number = load.form.address.terms[()]
    assert not isinstance(number, int)
    assert number[0] == 12  # x, y, z stand before the mass


@pytest.mark.parametrize(("kernel", "ways"), [("conflict_store", 32), ("padded_store", 1)])
def test_conflicts_of_a_column(recorded: ReadRecorded, kernel: str, ways: int) -> None:
    found, forms = of_launch(recorded, "flaws_bank_conflicts", kernel)
    stores = [one for one in forms if found.sass[one.form.index].opcode == "STS"]
    assert stores
    for one in stores:
        assert one.verdict == "exact"
        assert found.shared_wavefronts[one.form.index] == ways * found.executed[one.form.index]


def test_what_a_loop_moves() -> None:
    made_work = made(
        "S2R R0, SR_TID.X ;",
        "LDC.64 R2, c[0x0][0x210] ;",
        "IMAD.WIDE R2, R0, 0x4, R2 ;",
        "LDG.E R4, desc[UR4][R2.64+0x8] ;",
        "IADD3 R2, P0, R2, 0x1000, RZ ;",
        "IMAD.X R3, RZ, RZ, R3, P0 ;",
        "ISETP.NE.AND P1, PT, R4, RZ, PT ;",
        "@P1 BRA 0x000030 ;",
        "EXIT ;",
        executed=[10, 10, 10, 100, 100, 100, 100, 100, 10],
    )
    (one,) = checked_forms(made_work).values()
    (loop,) = made_work.code.loops if made_work.program is not None else ()
    assert one.form.step(loop) == 0x1000
    assert one.form.parameters == {0x210}


def test_a_row_pointer_makes_no_look_up_but_an_index_by_lane_does() -> None:
    made_work = made(
        "S2R R0, SR_TID.X ;",
        "S2UR UR6, SR_CTAID.X ;",
        "LDC.64 R2, c[0x0][0x210] ;",
        "IMAD.WIDE R6, R0, 0x4, R2 ;",
        "LDG.E R8, desc[UR4][R6.64] ;",  # an index a lane
        "MOV R10, UR6 ;",
        "IMAD.WIDE R12, R10, 0x4, R2 ;",
        "LDG.E R14, desc[UR4][R12.64] ;",  # one a block
        "IMAD.WIDE R16, R8, 0x4, R2 ;",
        "LDG.E R18, desc[UR4][R16.64] ;",
        "IADD3 R20, R14, R0, RZ ;",
        "IMAD.WIDE R22, R20, 0x4, R2 ;",
        "LDG.E R24, desc[UR4][R22.64] ;",
        "EXIT ;",
    )
    kinds = [one.form.kind for one in checked_forms(made_work).values()]
    assert kinds == [AFFINE, UNIFORM, LOOK_UP, AFFINE]


def test_an_index_within_bounds_is_the_index() -> None:
    made_work = made(
        "S2R R0, SR_TID.X ;",
        "LDC R1, c[0x0][0x220] ;",
        "LDC.64 R2, c[0x0][0x210] ;",
        "VIADDMNMX R4, R0, 0xfffffffe, R1, PT ;",  # min(i - 2, n)
        "SEL R5, R4, RZ, P0 ;",
        "IMAD.WIDE R6, R5, 0x4, R2 ;",
        "LDG.E R8, desc[UR4][R6.64] ;",
        "EXIT ;",
    )
    (one,) = checked_forms(made_work).values()
    assert one.form.kind == AFFINE
    number = one.form.address.terms[()]
    assert not isinstance(number, int)
    assert list(number[:2]) == [-8, -4]


def test_numbers_keep_the_64_bits_of_a_pair_of_registers() -> None:
    """A generator of random numbers multiplies by constants that fill them, again and again."""
    lanes, constant = symbolic.of(np.arange(64)), symbolic.of(6364136223846793005)
    grown = symbolic.product(constant, constant)
    assert grown is not None and grown.constant == (6364136223846793005**2 + 2**63) % 2**64 - 2**63
    for factor in (1, -1, 1 << 40, 1 << 70):
        (number,) = symbolic.add(lanes, grown, factor).terms.values()
        wanted = [(lane + factor * 6364136223846793005**2 + 2**63) % 2**64 - 2**63 for lane in range(64)]
        assert list(number) == wanted


def test_a_row_of_a_matrix_is_a_stride_that_a_parameter_tells(recorded: ReadRecorded) -> None:
    found, forms = of_launch(recorded, "ladder_simple", "gemm_naive")
    by_lane = next(one.form for one in forms if one.form.kind == STRIDED)
    (row,) = (one for factors, one in by_lane.address.terms.items() if not isinstance(one, int))
    assert list(row[:3]) == [0, 4, 8]  # a row of floats each, as long as the parameter says
    assert found.program is not None
    (loop,) = (one for one in found.code.loops if by_lane.index in one)
    assert by_lane.step(loop) == 64  # 16 floats of it a round
    assert all(one.verdict in BELIEVED for one in forms)


@pytest.mark.parametrize(
    "report",
    ["flaws_global_access", "flaws_bank_conflicts", "flaws_spills", "ladder_simple", "flaws_occupancy"],
)
def test_what_is_predicted_is_what_was_counted(recorded: ReadRecorded, report: str) -> None:
    believed = contradicted = 0.0
    for profile in recorded(report, source=True):
        found = work(profile)
        for one in checked_forms(found).values():
            if one.verdict == "contradicted":
                contradicted += found.executed[one.form.index]
            elif one.verdict in BELIEVED:
                believed += found.executed[one.form.index]
    assert believed > 0
    assert contradicted <= 0.02 * believed


@pytest.mark.filterwarnings("error")
def test_a_launch_that_was_recorded_without_a_block() -> None:
    program = made("S2R R0, SR_TID.X ;", "EXIT ;").code
    assert program is not None
    assert symbolic.Values(program, (0, 0, 0), 90).threads == 1


def test_what_never_ran_sets_no_register() -> None:
    """The rest of an unrolled loop: the row begins where the launch left it, whatever a way not taken would add."""
    code = (
        "S2R R0, SR_TID.X ;",
        "LDC.64 R2, c[0x0][0x210] ;",
        "LDC R5, c[0x0][0x218] ;",
        "ISETP.GE.AND P0, PT, R5, RZ, PT ;",
        "@P0 BRA 0x000060 ;",
        "IMAD R0, R0, R0, R5 ;",
        "IMAD.WIDE R2, R0, 0x4, R2 ;",
        "LDG.E R4, desc[UR4][R2.64] ;",
        "EXIT ;",
    )
    (taken,) = checked_forms(made(*code, executed=[10, 10, 10, 10, 10, 0, 10, 10, 10])).values()
    (either,) = checked_forms(made(*code, executed=[10, 10, 10, 10, 10, 5, 10, 10, 10])).values()
    assert taken.form.kind == AFFINE
    assert either.form.kind != AFFINE


@pytest.mark.parametrize(("joined", "holds"), [("AND", [8, 9, 10, 11]), ("OR", range(32))])
def test_a_mask_of_two_comparisons(joined: str, holds: Sequence[int]) -> None:
    """From 8 on, and (or) below 12: a window, or all."""
    code = made(
        "S2R R0, SR_TID.X ;",
        "ISETP.LT.AND P0, PT, R0, 0xc, PT ;",
        f"ISETP.GE.{joined} P1, PT, R0, 0x8, P0 ;",
        "FSEL R4, R4, -INF , P1 ;",
        "EXIT ;",
    ).code
    values = symbolic.Values(code, (32, 1, 1), 90)
    known = values.condition(3, "P1")
    assert known is not None
    places = Places(values, (1, 1, 1), np.zeros((3, 32), dtype=np.int64), np.arange(32), {}, {})
    assert np.flatnonzero(places.of(known)).tolist() == list(holds)


def test_a_number_divided_by_what_the_launch_knows() -> None:
    """What is added to the upper half of a product is a pair of registers, of which the upper one counts."""
    code = made(
        "S2R R3, SR_TID.X ;",
        "LDC R2, c[0x0][0x210] ;",
        "I2F.U32.RP R4, R2 ;",
        "MUFU.RCP R4, R4 ;",
        "IADD3 R4, R4, 0xffffffe, RZ ;",
        "F2I.FTZ.U32.TRUNC.NTZ R5, R4 ;",
        "IMAD.MOV R6, RZ, RZ, -R5 ;",
        "IMAD R7, R6, R2, RZ ;",
        "MOV R4, RZ ;",
        "IMAD.HI.U32 R8, R5, R7, R4 ;",
        "IMAD.HI.U32 R9, R8, R3, RZ ;",
        "EXIT ;",
    ).code
    values = symbolic.Values(code, (256, 1, 1), 90)
    known = {0x210: np.full((1, 1), 23)}
    places = Places(values, (1, 1, 1), np.zeros((3, 256), dtype=np.int64), np.arange(256), {}, known)
    quotients = places.of(values.after(10, "R9"))[:, 0]
    assert (np.arange(256) // 23 - quotients <= 1).all() and (quotients <= np.arange(256) // 23).all()
    assert quotients[-1] >= 255 // 23 - 1 > 0
