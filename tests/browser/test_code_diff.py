"""Two reports in one page: what `diff --format html` aligns, marks and leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA, ROOT

from gemmprof import metrics
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.analysis.session import load_session
from gemmprof.cli import main
from gemmprof.reports.pages.code_diff import DiffPart, parts

RECORDED = ROOT / "docs" / "examples" / "recorded"
GELU = (RECORDED / "gelu.ncu-rep.xz", RECORDED / "gelu_fixed.ncu-rep.xz")


@pytest.fixture(scope="module")
def ladder() -> list[DiffPart]:
    kernels = load_session([DATA / "ladder_simple.ncu-rep.xz"]).kernels
    return list(parts(kernels[1], kernels[2]))


def test_time_by_row_adds_up_to_what_the_launch_gained() -> None:
    before, after = (load_session([path]).kernels[0] for path in GELU)
    times = [kernel.profile.number(metrics.DURATION) for kernel in (before, after)]
    assert times[0] is not None and times[1] is not None
    for part in parts(before, after):
        shown = sum(row.change or 0.0 for row in part.rows)
        # Rows left out are cold on both sides.
        assert shown == pytest.approx(times[1] - times[0], rel=0.03), part.title


def test_rows_of_both_sides_are_aligned_by_their_text(ladder: list[DiffPart]) -> None:
    source, sass = ladder
    assert source.title == "gemm_ladder.cu" and sass.title == "SASS"
    assert all(row.before.place == row.after.place for row in source.rows if row.before and row.after), (
        "one file: each line is itself"
    )
    hot = {row.after.place: row for row in source.rows if row.after and (row.after.share or 0) > 50}
    assert [*hot] == ["30"] and hot["30"].moved and (hot["30"].change or 0) > 0
    kinds = {row.kind for row in sass.rows if not row.left_out}
    assert kinds == {"", "old", "new"}
    for row in sass.rows:
        assert (row.before is None) == (row.kind == "new" or bool(row.left_out))
        assert (row.after is None) == (row.kind == "old" or bool(row.left_out))


def test_nothing_is_lost_but_cold_rows(ladder: list[DiffPart]) -> None:
    kernels = load_session([DATA / "ladder_simple.ncu-rep.xz"]).kernels
    for part, kernel_rows in ((ladder[1], [len(k.get(SourceView).sass) for k in kernels[1:3]]),):  # type: ignore[union-attr]
        both = sum(row.left_out for row in part.rows)
        assert both + sum(row.before is not None for row in part.rows) == kernel_rows[0]
        assert both + sum(row.after is not None for row in part.rows) == kernel_rows[1]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_page_of_a_pair(tmp_path: Path, browser: Any, width: int, scheme: str) -> None:
    target = tmp_path / "diff.html"
    assert main(["diff", *map(str, GELU), "--format", "html", "-o", str(target)]) == 0
    browser.viewport(width, 900)
    with browser.media(prefers_color_scheme=scheme):
        browser.open(target)
        assert browser.overflow() == 0 and browser.console_errors() == []
        assert "SASS" in [title.text for title in browser.find_all("h3")]
        assert browser.find("tr.new .code").is_displayed()


def test_a_page_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *map(str, GELU), "--format", "html"]) == 2
    assert "-o diff.html" in capsys.readouterr().err
