"""Joins of per-instruction metrics with code and lines."""

from __future__ import annotations

import pytest
from profiles import BASE, code, launch

from gemmprof.analysis.sections.by_line import (
    Code,
    Place,
    by_address,
    first_by_address,
    is_users,
    operation_of,
)


def test_values_are_keyed_by_absolute_address() -> None:
    profile = launch(per_instruction={"inst_executed": {32: 7, 0: 5}})
    assert by_address(profile, "inst_executed") == {BASE: 5, BASE + 32: 7}


def test_collected_but_untouched_is_empty_and_not_missing() -> None:
    assert by_address(launch({"memory_l1_wavefronts_shared": 0}), "memory_l1_wavefronts_shared") == {}


def test_a_scalar_without_instances_is_not_per_instruction() -> None:
    assert by_address(launch({"inst_executed": 12}), "inst_executed") is None
    assert by_address(launch(), "inst_executed") is None


def test_the_first_collected_name_wins() -> None:
    profile = launch(per_instruction={"newer": {0: 1}, "older": {0: 2}})
    assert first_by_address(profile, ("absent", "newer", "older")) == {BASE: 1}
    assert first_by_address(profile, ("absent",)) is None


def test_same_line_number_of_two_files_stays_two_lines() -> None:
    profile = launch(
        instructions=code(
            ("LDG.E R0, [R2]", "/src/kernel.cu", 3),
            ("FADD R0, R0, R1", "/src/kernel.cuh", 3),
            ("STG.E [R2], R0", "/src/kernel.cu", 3),
            ("EXIT", None, None),
        ),
        files={"/src/kernel.cu": "a\nb\n  c[i] += 1;\n", "/src/kernel.cuh": ""},
    )
    kernel, header = Code(profile).lines(BASE + offset for offset in (48, 32, 16, 0))
    assert (kernel.file, kernel.line, kernel.text) == ("/src/kernel.cu", 3, "c[i] += 1;")
    assert kernel.addresses == (BASE, BASE + 32)
    assert (header.file, header.text, header.addresses) == ("/src/kernel.cuh", "", (BASE + 16,))


def test_a_line_past_the_end_of_its_file_has_no_text() -> None:
    profile = launch(instructions=code(("EXIT", "k.cu", 9)), files={"k.cu": "one\ntwo"})
    assert Code(profile).place(BASE).text == ""


def test_an_unknown_address_is_still_a_place() -> None:
    assert Code(launch()).place(0x1230) == Place((0x1230,))


def test_labels_are_short_on_any_platform() -> None:
    assert Place((16,), file="C:\\src\\k.cu", line=4).label == "k.cu:4"
    assert Place((0x1F0,)).label == "0x1f0"
    assert Place(()).label == "unknown"


def test_operations_are_named_only_where_all_agree() -> None:
    codes = {0: 2, 16: 2, 32: 4, 48: 6, 64: 8}
    assert operation_of(codes, (0, 16)) == "load"
    assert operation_of(codes, (64,)) == "atomic"
    assert operation_of(codes, (0, 32)) == ""
    assert operation_of(codes, (48,)) == "async_copy", "it both loads and stores"
    assert operation_of(codes, (80,)) == "", "a reduction has no code"
    assert operation_of(None, (0,)) == ""


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/home/me/src/science.cu", True),
        ("/home/me/include/tile.cuh", True),
        ("/usr/include/c++/11/cmath", False),
        ("/opt/rh/gcc/include/c++/13/bits/stl_algo.h", False),
        ("/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_fp16.hpp", False),
        ("C:\\VS\\VC\\Tools\\MSVC\\14.4\\include\\cmath", False),
        (None, False),
    ],
)
def test_headers_of_a_toolkit_or_of_the_language_are_not_the_users(path: str | None, own: bool) -> None:
    assert is_users(path) == own
