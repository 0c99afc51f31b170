"""Two reports in one page: what `diff --format html` aligns, marks and leaves out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA, ROOT

from gemmprof import metrics
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.analysis.session import load_session
from gemmprof.cli import main
from gemmprof.reports.pages import code_diff
from gemmprof.reports.pages.code_diff import DiffPart, _files, parts

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


def test_a_page_needs_a_file_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "absent.ncu-rep", "absent.ncu-rep", "--format", "html"]) == 2
    told = capsys.readouterr().err
    assert "-o diff.html" in told and "absent" not in told


def test_nothing_piped_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *map(str, GELU)]) == 0
    assert main(["diff", str(DATA / "ladder_simple.ncu-rep.xz"), "--details"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and not [line for line in lines if line != line.rstrip()]


def test_files_of_one_name_are_paired_by_their_folders() -> None:
    kernel = load_session([DATA / "ladder_simple.ncu-rep.xz"]).kernels[2]
    view = kernel.get(SourceView)
    assert isinstance(view, SourceView)

    def moved(root: str) -> SourceView:
        """The lines of one file as if half of them came from a second one of the same name."""
        (path,) = view.files
        middle = sorted(item.line or 0 for item in view.sass)[len(view.sass) // 2]

        def place(line: int | None) -> str:
            return f"{root}/{'hot' if (line or 0) >= middle else 'cold'}/kernel.cu"

        return replace(
            view,
            sass=tuple(replace(item, file=place(item.line)) for item in view.sass),
            lines=tuple(replace(line, file=place(line.line)) for line in view.lines),
            files={f"{root}/{name}/kernel.cu": view.files[path] for name in ("hot", "cold")},
            line_table=None,
        )

    pairs = _files(moved("/old"), moved("/new/build"))
    assert [paths for _, paths in pairs] == [
        (f"/old/{name}/kernel.cu", f"/new/build/{name}/kernel.cu") for name in ("hot", "cold")
    ]
    assert len({title for title, _ in pairs}) == 2, "each has a title, and rows with ids, of its own"


def test_rows_left_out_are_called_the_same_only_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_diff, "MOST_ROWS", 4)
    kernels = load_session([DATA / "ladder_simple.ncu-rep.xz"]).kernels
    sass = list(parts(kernels[1], kernels[2]))[-1]
    gaps = [row for row in sass.rows if row.left_out]
    assert any(not row.all_same for row in gaps)
    monkeypatch.undo()
    sass = list(parts(kernels[1], kernels[2]))[-1]
    assert all(row.all_same for row in sass.rows if row.left_out)


def test_a_page_says_what_came_of_it_and_what_is_not_shown(tmp_path: Path) -> None:
    """Verdicts stood without times, CAN'T TELL as UNCLEAR, and pairs beyond the eighth were not spoken of."""
    target = tmp_path / "diff.html"
    for sides, said in (
        (GELU, "<strong>FASTER</strong>: 270 µs → 214 µs, −20.9\u00a0% ("),
        ([RECORDED / "transformer.ncu-rep.xz"] * 2, "And 2 more, whose code is not shown here"),
    ):
        assert main(["diff", *map(str, sides), "--format", "html", "-o", str(target), "--force"]) == 0
        assert said in target.read_text("utf-8")


def test_code_that_is_not_disassembled_is_not_aligned() -> None:
    """Of a V100's, whose code no disassembler of today knows, it was a thousand rows of ???."""
    kernels = load_session([DATA / "ladder_simple.ncu-rep.xz"]).kernels[1:3]
    profile = kernels[1].profile
    unknown = tuple(replace(one, sass="???") for one in profile.source.instructions)
    blind = analyse(replace(profile, source=replace(profile.source, instructions=unknown)))
    assert [part.title for part in parts(kernels[0], blind)] == ["gemm_ladder.cu"]
