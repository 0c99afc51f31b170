"""What is known of precise functions, held against what nvcc and Triton compile (tools/measure_functions.py)."""

from __future__ import annotations

import re
from dataclasses import replace

import measure_functions as measured
import pytest
from made_code import made

from gemmprof.analysis.explanation.code.sequences import FUNCTIONS, TRITON_FUNCTIONS, precise_functions
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.opcodes import parse

IN_TRITON = re.compile(r"(?<=\w\w)f\b")
ROWS = {row.function: row for row in measured.table()}


def test_signatures_stand_in_their_own_functions_alone() -> None:
    seen = set[str]()
    for compiler in measured.COMPILERS:
        for (function, kind, _), code in measured.listings(compiler).items():
            named = {name for name, _ in measured.signed(code, compiler)}
            known = ROWS[function].recognised_as if kind == "precise" else ""
            if compiler == "triton":
                known = IN_TRITON.sub("", known)
            assert all(name in known for name in named), (function, kind, named)
            assert named or kind == "fast" or not ROWS[function].code(compiler, fast=True)
            seen |= {IN_TRITON.sub("", name) for name in named}
    assert seen == {IN_TRITON.sub("", one.name) for one in FUNCTIONS + TRITON_FUNCTIONS} - {"FP64 division"}


@pytest.mark.parametrize("compiler", measured.COMPILERS)
def test_what_goes_away_is_what_the_fast_function_does_not_need(compiler: str) -> None:
    less, away = {}, {}
    for function, row in ROWS.items():
        if not row.code(compiler, fast=True):
            continue
        precise, fast = (measured.counted(compiler, function, kind) for kind in ("precise", "fast"))
        less[function], (away[function], _) = precise - fast, measured.gone(compiler, function)
        assert away[function] <= 1.2 * less[function] + 0.5, (
            function
        )  # nothing is promised of what surrounds it
    assert sum(away.values()) >= 0.85 * sum(less.values())
    near = [abs(away[one] - less[one]) <= max(1.0, 0.15 * less[one]) for one in less]
    assert sum(near) >= 2 / 3 * len(near)


def test_words_are_those_of_what_compiled_it() -> None:
    launches = {
        compiler: measured.launch_of(compiler, "logarithm", calls=4)[0] for compiler in measured.COMPILERS
    }
    found = {compiler: precise_functions(launch) for compiler, launch in launches.items()}
    assert found["nvcc"].names == ("logf",) and found["nvcc"].remedy == "__logf"
    assert found["triton"].names == ("log",) and found["triton"].remedy == "libdevice.fast_logf"


def test_a_register_moved_to_predicates_writes_as_many_as_its_mask_has() -> None:
    assert parse("R2P PR, R7, 0x3").writes == ("P0", "P1")
    assert parse("R2P PR, R7.B1, 0x7f").writes == tuple(f"P{number}" for number in range(7))


def test_one_divisor_of_a_row_is_compared_once() -> None:
    """Where Triton divides a row by its sum, all that scales its elements goes, and the products stay."""
    scaled = [
        line
        for name in ("R0", "R1", "R2", "R3")
        for line in (f"@P0 FMUL {name}, {name}, 0.25 ;", f"@!P1 FMUL {name}, {name}, 16777216 ;")
    ]
    launch = made(
        "LDG.E.128 R0, desc[UR4][R10.64] ;",
        "LDG.E R8, desc[UR4][R12.64] ;",
        "FSETP.GT.AND P0, PT, |R8|, 8.50705917302346158658e+37, PT ;",
        "FSETP.GEU.AND P1, PT, |R8|, 1.175494350822287508e-38, PT ;",
        "@P0 FMUL R8, R8, 0.25 ;",
        "@!P1 FMUL R8, R8, 16777216 ;",
        "MUFU.RCP R9, R8 ;",
        *scaled,
        *(f"FMUL {name}, {name}, R9 ;" for name in ("R0", "R1", "R2", "R3")),
        "STG.E.128 desc[UR4][R10.64], R0 ;",
        "EXIT ;",
    )
    by_triton = replace(launch.profile, name="kernel", mangled_name="kernel", lines="python")
    found = precise_functions(work(by_triton))
    assert found.fast[2:15].sum() == pytest.approx(1.0) and (found.fast[15:] == 1.0).all()


def test_elements_of_one_vector_are_different_divisors() -> None:
    code = measured.listings("nvcc")["division", "precise", 4]
    launch, _ = measured.launch_of("nvcc", "division", calls=4)
    assert sum("FCHK" in line for line in code) == 4 and (precise_functions(launch).once == 1.0).all()
