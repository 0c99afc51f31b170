"""The table that a collection ends with: every number in the unit of its column."""

from __future__ import annotations

import io

from rich.console import Console

from gemmprof.model import Problem
from gemmprof.reports.terminal.summary import SummaryRow, print_run

CUBE, FLAT = Problem(4096, 4096, 4096), Problem(8, 4, 2)


def printed(*rows: SummaryRow) -> list[str]:
    text = io.StringIO()
    print_run(Console(file=text, width=200), rows, {"build": 1.25, "profile": 10.0})
    return text.getvalue().splitlines()


def test_numbers_stand_in_the_units_of_their_columns() -> None:
    row = SummaryRow(
        5, "block2d", CUBE, seconds=3.9081e-3, seconds_p10=3.9e-3, seconds_p90=3.95e-3, repetitions=60,
        tflops=35.168, of_cublas=0.68297, peak_percent=57.04, achieved_occupancy=24.46, relative_error=1.14e-6,
        limited_by="shared memory",
    )  # fmt: skip
    lines = printed(row)
    titles = "stage name time ms p10–p90 TFLOP/s % cuBLAS % of peak* occupancy %* error limited by*"
    assert " ".join(lines[1].split()) == titles
    numbers = "5 block2d 3.908 3.900–3.950 35.17 68.3 57.0 24.5 1.1e-06 shared memory"
    assert " ".join(lines[2].split()) == numbers
    assert lines[-1] == "11.2 s spent on this run: build 1.2 s, profile 10.0 s"


def test_shapes_and_failures_have_their_place() -> None:
    failed = SummaryRow(2, "coalesced", FLAT, failure="verification: C holds NaN\nmore", limited_by="DRAM")
    lines = printed(SummaryRow(1, "naive", CUBE), failed)
    assert lines[1].split()[:3] == ["stage", "name", "shape"]
    assert "4096³" in lines[2] and "8×4×2" in lines[3]
    assert lines[3].rstrip().endswith("FAILED: verification: C holds NaN")
