from __future__ import annotations

from collections.abc import Callable

import pytest

from gemmprof.analysis.session import Session
from gemmprof.analysis.source_view import SourceView
from gemmprof.reports.pages import source_listing
from gemmprof.reports.pages.source_listing import listing


@pytest.fixture(scope="module")
def view(load: Callable[[str], Session]) -> SourceView:
    result = load("ladder_simple").kernels[2].get(SourceView)
    assert isinstance(result, SourceView)
    return result


def test_lines_and_instructions_are_joined(view: SourceView) -> None:
    rows = listing(view)
    source = {row.at for file in rows.files for row in file.rows if row.at}
    assert source and {row.at for row in rows.sass if row.at} == source
    assert {item.at for item in rows.hottest} <= source


def test_shares_add_up_to_all_samples(view: SourceView) -> None:
    rows = listing(view)
    assert sum(row.share or 0 for row in rows.sass) == pytest.approx(100)
    shares = [item.share for item in rows.hottest]
    assert shares == sorted(shares, key=lambda share: -(share or 0))


def test_source_lines_come_in_order_with_their_text(view: SourceView) -> None:
    file = listing(view).files[0]
    numbers = [int(row.number) for row in file.rows]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    text = view.files[file.path].split("\n")
    assert all(row.code == text[int(row.number) - 1].rstrip("\r") for row in file.rows)


def test_a_budget_drops_cold_rows_and_says_how_many(
    view: SourceView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_listing, "SASS_BUDGET", 40)
    monkeypatch.setattr(source_listing, "SOURCE_BUDGET", 8)
    rows = listing(view)
    kept = [row for row in rows.sass if not row.left_out]
    assert 40 <= len(kept) <= 45
    assert len(kept) + sum(row.left_out for row in rows.sass) == len(view.sass)
    hottest = view.sass[view.hottest_sass[0]]
    assert f"{hottest.offset:04x}" in {row.number for row in kept}
    for file in rows.files:
        assert any(row.left_out for row in file.rows) and sum(not row.left_out for row in file.rows) <= 13


def test_conflicts_and_wasted_sectors_are_flagged(load: Callable[[str], Session]) -> None:
    def flags(name: str) -> str:
        views = [kernel.get(SourceView) for kernel in load(name).kernels]
        return " ".join(
            flag
            for view in views
            if isinstance(view, SourceView)
            for row in listing(view).sass
            for flag in row.flags
        )

    assert "wavefronts" in flags("flaws_bank_conflicts")
    assert "sectors" in flags("flaws_global_access")
    assert "local memory" in flags("flaws_spills")
