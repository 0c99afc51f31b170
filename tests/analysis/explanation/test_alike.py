"""What neighbouring results are made of alike."""

from __future__ import annotations

import pytest
from made_code import made

from gemmprof.analysis.explanation.demands.alike import once_for_all

ROW = ("S2R R0, SR_TID.X ;", "IMAD.WIDE R2, R0, 0x4, c[0x0][0x210] ;")


def taps(*offsets: int) -> tuple[str, ...]:
    """Loads of neighbouring words into R4, R5 …, by a thread's own place."""
    return tuple(f"LDG.E R{4 + number}, desc[UR4][R2.64+{at:#x}] ;" for number, at in enumerate(offsets))


def test_what_is_made_of_shared_loads_alone_is_made_once() -> None:
    """A neighbour's tap lies a word further on: what each is made into is its, too, but no weighted sum of several."""
    code = (
        *ROW,
        *taps(0, 4, 8),
        *(f"MUFU.EX2 R{at}, R{at} ;" for at in (4, 5, 6)),
        "FMUL R7, R4, 2 ;",
        "FFMA R7, R5, 3, R7 ;",
        "FFMA R7, R6, 2, R7 ;",
        "STG.E desc[UR4][R2.64+0x1000], R7 ;",
        "EXIT ;",
    )
    keep = once_for_all(made(*code), (2, 3, 4), "x")
    # Of twelve in four results six are different.
    assert sum(keep[2:5]) / 3 == pytest.approx(6 / 12) == sum(keep[5:8]) / 3
    assert all(keep[9:11] == 1.0)


def test_what_a_thread_s_own_value_decides_is_its_own() -> None:
    own = "IMAD.WIDE R8, R0, 0x40, c[0x0][0x218] ;"
    code = (
        *ROW,
        own,
        *taps(0, 4),
        "LDG.E R10, desc[UR4][R8.64] ;",
        "ISETP.GT.AND P0, PT, R10, 0x7, PT ;",
        "IADD3 R6, R4, 0x1, RZ ;",
        "@P0 IADD3 R6, R5, 0x2, RZ ;",
        "STG.E desc[UR4][R8.64], R6 ;",
        "EXIT ;",
    )
    keep = once_for_all(made(*code), (3, 4, 5), "x")
    assert (keep[5], keep[6], keep[8]) == (1.0, 1.0, 1.0)
    assert keep[3] < 1.0
