from __future__ import annotations

from collections.abc import Callable

import pytest

from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.analysis.session import Session
from gemmprof.reports.pages import source_listing
from gemmprof.reports.pages.source_listing import listing


@pytest.fixture(scope="module")
def view(load: Callable[[str], Session]) -> SourceView:
    result = load("ladder_simple").kernels[2].get(SourceView)
    assert isinstance(result, SourceView)
    return result


def test_the_hottest_lead_to_their_rows(view: SourceView) -> None:
    rows = listing(view)
    source = {row.anchor for file in rows.files for row in file.rows if row.anchor}
    assert rows.hottest and {item.anchor for item in rows.hottest} <= source


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
    assert view.hottest(sass=True)[0].label.removeprefix("0x") in {row.number for row in kept}
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


def test_branches_lead_to_their_targets_by_offset(view: SourceView) -> None:
    rows = listing(view)
    anchors = {row.anchor for row in rows.sass}
    branches = [row for row in rows.sass if row.target]
    assert {(row.number, row.target_text) for row in branches} == {
        ("00e0", "0x0770"),
        ("0760", "0x0230"),
        ("0790", "0x0790"),
    }
    assert all(row.target in anchors and "0x7f" not in row.code for row in branches)


def test_the_columns_are_those_that_the_kernel_has_something_in(load: Callable[[str], Session]) -> None:
    def keys(name: str, place: int) -> set[str]:
        result = load(name).kernels[place].get(SourceView)
        assert isinstance(result, SourceView)
        return {heat.key for heat in listing(result).data.heats if not heat.key.startswith("stall:")}

    always = {"samples", "executed", "threads", "thread_instructions", "not_issued", "live"}
    assert keys("ladder_simple", 2) == always | {"sectors", "wavefronts"}
    assert "local" in keys("flaws_spills", 0) and "divergent" in keys("flaws_divergence", 0)
    assert "wavefronts" not in keys("flaws_global_access", 0)


def test_the_stall_mix_is_a_whole_and_names_the_main_reason(view: SourceView) -> None:
    hot = listing(view).hottest[0]
    assert hot.mix is not None
    assert sum(part.width for part in hot.mix.parts) == pytest.approx(100)
    starts = [part.start for part in hot.mix.parts]
    assert starts == sorted(starts) and hot.mix.main in hot.mix.words


def test_what_headers_inline_counts_against_the_users_line(load: Callable[[str], Session]) -> None:
    result = load("flaws_tensor").kernels[0].get(SourceView)
    assert isinstance(result, SourceView)
    rows = listing(result)
    headers = [file for file in rows.files if not file.own]
    assert headers, "the matrix fragments are a header of the toolkit"
    assert all(not file.own or file.name.endswith(".cu") for file in rows.files)
    inlined = [row for file in rows.files if file.own for row in file.rows if row.inlined]
    assert inlined and all((row.share or 0.0) >= (row.inlined or 0.0) for row in inlined)
    # Nothing is lost or counted twice: the user's lines hold all samples.
    assert sum(row.share or 0 for f in rows.files if f.own for row in f.rows) == pytest.approx(100, abs=0.01)
    assert all(".cu:" in hot.number for hot in rows.hottest)


def test_every_anchor_is_one_row(load: Callable[[str], Session]) -> None:
    for name in ("ladder_simple", "flaws_tensor", "names_markup", "names_odd_path"):
        for kernel in load(name).kernels:
            result = kernel.get(SourceView)
            assert isinstance(result, SourceView)
            rows = listing(result)
            anchors = [row.anchor for row in rows.sass] + [
                row.anchor for file in rows.files for row in file.rows if row.anchor
            ]
            assert len(anchors) == len(set(anchors)) and set(rows.anchors.values()) <= set(anchors)


def test_instructions_say_what_they_do_to_memory(view: SourceView) -> None:
    said = {row.code.split()[0]: row.access for row in listing(view).sass if row.access}
    assert said["LDG.E"] == "global load, 32 bits a thread"
    assert said["STS"] == "shared store, 32 bits a thread"
    assert all(name.lstrip("@!P0123456 ").startswith(("LD", "ST", "@")) for name in said)


def test_no_counter_of_ncus_source_page_is_lost(load: Callable[[str], Session]) -> None:
    """Samples in whose cycle nothing was issued and thread instructions add up to the report's own sums."""
    kernel = load("ladder_simple").kernels[2]
    result, found = kernel.get(SourceView), kernel.profile.metrics
    assert isinstance(result, SourceView)
    waits = [
        v for k, v in found.items() if "pcsamp" in k and k.endswith("_not_issued") and not isinstance(v, str)
    ]
    assert waits and result.totals.samples_not_issued == sum(waits)
    assert result.totals.threads == found["thread_inst_executed"]
    assert sum(line.counters.samples_not_issued or 0 for line in result.sass) == sum(waits)
