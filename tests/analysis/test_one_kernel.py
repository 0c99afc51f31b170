"""One kernel by the user's words: the same words mean the same kernel in every command."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from recorded_data import DATA
from scale import few

from gemmprof.analysis.comparison.sides import Side, load_side
from gemmprof.analysis.comparison.sides import chosen as of_side
from gemmprof.analysis.inputs.selection import Choice, one_kernel
from gemmprof.analysis.session import load_session
from gemmprof.base.errors import UsageError
from gemmprof.model import Problem
from gemmprof.reports.pages.contents import KernelPage, choose, plan
from gemmprof.runs.directory import recorded_run_directory

LADDER = DATA / "ladder_simple.ncu-rep.xz"


@cache
def read(path: Path) -> tuple[Side, Sequence[KernelPage]]:
    """What the two commands choose from, read once."""
    return load_side([path]), plan(load_session([path])).pages


def in_every_command(path: Path, selector: str) -> set[str]:
    """The kernel that `diff` and `report --baseline` take it for, or how they refuse."""
    side, pages = read(path)
    found = set()
    for ask in (lambda: of_side(side, selector).label, lambda: choose(pages, selector).label):
        try:
            label = ask()
            number = label.split()[0]
            found.add(number if number.isdigit() else label)
        except UsageError as error:
            found.add(error.message.split(" in ")[0])
    return found


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("0", "gemm_naive"),
        ("2", "gemm_shared"),
        ("shared", "gemm_shared"),
        ("GEMM_SHARED", "gemm_shared"),
        ("3", "'3' matches nothing"),
        ("gemm", "'gemm' matches several kernels"),
        ("²", "'²' matches nothing"),
        ("9" * 5000, f"'{'9' * 5000}' matches nothing"),
    ],
)
def test_in_a_report_a_number_is_a_position(selector: str, meant: str) -> None:
    assert in_every_command(LADDER, selector) == {meant}


@pytest.mark.parametrize(
    ("selector", "meant"),
    few(
        [
            ("3", "3"),
            ("3@2048", "3"),
            ("3@2048x2048x2048", "3"),
            ("99", "'99' matches nothing"),
            ("Linearised", "7"),
        ],
        [("3@2048", "3")],
    ),
)
def test_in_a_run_a_number_is_a_stage(selector: str, meant: str) -> None:
    assert in_every_command(recorded_run_directory(), selector) == {meant}


def test_two_ladders_and_types() -> None:
    half, cube = Problem(2048, 2048, 2048, "bfloat16"), Problem(2048, 2048, 2048)
    candidates = [
        Choice("3 Tiling", number=3, stage="shared", ladder="single", problem=cube),
        Choice("3 Warps", number=3, stage="warps", ladder="half", problem=half),
    ]
    where = {
        "3": 0,
        "half:3": 1,
        "warps": 1,
        "3@2048": 0,
        "3@2048-bfloat16": 1,
        "half:3@2048": 1,
        "shared": 0,
    }
    assert {text: one_kernel(text, candidates, "it") for text in where} == where
    with pytest.raises(UsageError, match="is not a matrix shape"):
        one_kernel("3@x", candidates, "it")
    with pytest.raises(UsageError, match="matches nothing in it"):
        one_kernel("3@99", candidates, "it")
