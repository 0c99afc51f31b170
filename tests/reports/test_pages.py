from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_data import DATA

from gemmprof.analysis.session import Session
from gemmprof.base.errors import UsageError
from gemmprof.cli import main
from gemmprof.reports.pages.contents import PAGE_LIMIT, choose, neighbours, plan, stage_before, twin


def test_a_run_has_a_page_for_each_profiled_stage(ladder: Session) -> None:
    pages = plan(ladder).pages
    assert [page.key for page in pages] == [
        "01-naive-1024x1024x1024",
        "02-coalesced-1024x1024x1024",
        "03-shared-1024x1024x1024",
    ]
    assert pages[1].tflops == pytest.approx(2 * 1024**3 / 0.34e-3 / 1e12)
    assert pages[1].of_yardstick == pytest.approx(0.05 / 0.34)


def test_stages_are_compared_with_the_stage_before(ladder: Session) -> None:
    first, second, third = plan(ladder).pages
    assert stage_before((first, second, third), third) is second
    assert stage_before((first, second, third), first) is None
    assert neighbours((first, second, third), second) == (first, third)


def test_a_baseline_is_found_by_number_name_or_part_of_a_name(ladder: Session) -> None:
    pages = plan(ladder).pages
    assert choose(pages, "2") is choose(pages, "coalesced") is choose(pages, "gemm_coal") is pages[1]
    with pytest.raises(UsageError, match="several"):
        choose(pages, "gemm_")
    with pytest.raises(UsageError, match="matches nothing"):
        choose(pages, "nothing")


def test_a_twin_has_the_same_grid_where_there_is_one(load: Callable[[str], Session]) -> None:
    pages = plan(load("launches_same_kernel")).pages
    other = tuple(reversed(pages))
    for page in pages:
        found = twin(other, page)
        assert found is not None
        assert found.analysis.profile.launch.grid == page.analysis.profile.launch.grid
    assert twin(other[:1], pages[0]) is other[0]


def test_twins_are_the_same_stage_or_the_same_kernel(ladder: Session, load: Callable[[str], Session]) -> None:
    pages = plan(ladder).pages
    other = plan(load("ladder_simple")).pages
    assert twin(pages, pages[2]) is pages[2]
    assert twin(other, replace(pages[2], record=None)) is other[2]
    assert twin(other[:1], other[2]) is None


def test_hundreds_of_launches_get_a_page_for_each_distinct_kernel(load: Callable[[str], Session]) -> None:
    session = load("ladder_simple")
    many = replace(session, kernels=tuple(replace(session.kernels[index % 3]) for index in range(800)))
    chosen = plan(many)
    assert len(chosen.pages) == 3 and chosen.left_out == 797
    assert len(plan(many, every=True).pages) == 800
    names = [f"kernel_{index}" for index in range(800)]
    distinct = replace(
        many,
        kernels=tuple(
            replace(kernel, profile=replace(kernel.profile, name=name, index=index))
            for index, (kernel, name) in enumerate(zip(many.kernels, names, strict=True))
        ),
    )
    assert len(plan(distinct).pages) == PAGE_LIMIT


def test_keys_are_safe_and_unique(hostile: Session) -> None:
    pages = plan(replace(hostile, kernels=hostile.kernels * 3), every=True).pages
    keys = [page.key for page in pages]
    assert len(set(keys)) == len(keys) == 12
    assert all(re.fullmatch(r"[a-z0-9-]+", key) for key in keys)


def test_what_warps_of_the_hottest_line_wait_for_is_told_as_the_name_of_a_state(tmp_path: Path) -> None:
    """A state is called Wait: "waiting on wait" says nothing."""
    report = DATA.parents[1] / "docs" / "examples" / "recorded" / "gelu.ncu-rep.xz"
    assert main(["report", str(report), "-o", str(tmp_path / "pages")]) == 0
    (page,) = (tmp_path / "pages").glob("[0-9]*.html")
    assert re.search(
        r"of the warp samples fall on <strong>[^<]*</strong>, \d+ % of them in “[a-z ]+”\.", page.read_text()
    )
