"""The table that a collection ends with: every number in the unit of its column."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gemmprof.model import Problem
from gemmprof.reports.pages.ladder_page import ProblemGroup, _rows
from gemmprof.reports.terminal.summary import SummaryRow, print_run, summarise
from gemmprof.runs.directory import load_recorded_run

CUBE, FLAT = Problem(4096, 4096, 4096), Problem(8, 4, 2)


def printed(*rows: SummaryRow) -> list[str]:
    text = io.StringIO()
    print_run(Console(file=text, width=200), rows, {"build": 1.25, "profile": 10.0})
    return text.getvalue().splitlines()


def test_numbers_stand_in_the_units_of_their_columns() -> None:
    row = SummaryRow(
        5, "block2d", CUBE, seconds=3.9081e-3, seconds_p10=3.9e-3, seconds_p90=3.95e-3, repetitions=60,
        tflops=35.168, cublas_tflops=51.493, of_cublas=0.68297, peak_percent=57.04, achieved_occupancy=24.46,
        relative_error=1.14e-6, limited_by="shared memory",
    )  # fmt: skip
    lines = printed(row)
    titles = "stage name time ms p10–p90 TFLOP/s cuBLAS % of it % of peak* occupancy %* error limited by*"
    assert " ".join(lines[1].split()) == titles
    numbers = "5 block2d 3.908 3.900–3.950 35.17 51.49 68.3 57.0 24.5 1.1e-06 shared memory"
    assert " ".join(lines[2].split()) == numbers
    assert lines[-1] == "11.2 s spent on this run: build 1.2 s, profile 10.0 s"


def test_shapes_and_failures_have_their_place() -> None:
    failed = SummaryRow(2, "coalesced", FLAT, failure="verification: C holds NaN\nmore", limited_by="DRAM")
    lines = printed(SummaryRow(1, "naive", CUBE), failed)
    assert lines[1].split()[:3] == ["stage", "name", "shape"]
    assert "4096³" in lines[2] and "8×4×2" in lines[3]
    assert lines[3].rstrip().endswith("FAILED: verification: C holds NaN")


def test_times_and_shares_of_a_row_agree_and_the_fastest_has_the_largest() -> None:
    """A row's share is of the cuBLAS that stands beside it, and cuBLAS's own row lies among those."""
    run = load_recorded_run()
    rows = summarise(run, None)
    for problem in run.problems:
        own = next(row for row in rows if row.problem == problem and row.stage == 0)
        beside = []
        for row in rows:
            if row.problem == problem and row.stage != 0 and row.tflops is not None:
                assert row.cublas_tflops is not None and row.of_cublas is not None
                assert row.tflops / row.cublas_tflops == pytest.approx(row.of_cublas)
                beside.append(row.cublas_tflops)
        assert own.tflops is not None and min(beside) * 0.999 <= own.tflops <= max(beside) * 1.001
        page_rows = _rows(run, problem, {})
        shares = {row.record.stage.name: row.of_yardstick for row in page_rows if row.of_yardstick}
        best = ProblemGroup(problem, page_rows).fastest
        assert best is not None and best.of_yardstick == max(shares.values())
        longest = max(page_rows, key=lambda row: row.share_of_best)
        assert longest is best or longest.yardstick
