"""Where a program's time goes, in Chromium: the tree folds, and a part that is chosen leaves its launches alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA

from gemmprof.analysis.session import load_session
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.environment import document
from gemmprof.reports.pages.html import Report, index_article

SHOWN = "return [...document.querySelectorAll(arguments[0])].filter((row) => row.checkVisibility()).length"

WIDER = """return [...document.querySelectorAll('#program li, #program .part > *')].filter(
  (one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline').length"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of a training step of a hundred launches."""
    session = load_session([DATA / "train_100.ncu-rep.xz"])
    page = tmp_path_factory.mktemp("program") / "index.html"
    article = index_article(Report(session, plan(session)))
    page.write_text(document("training", [article]), encoding="utf-8")
    return page


def choose(browser: Any, name: str) -> None:
    buttons = browser.find_all("#program button[data-only]")
    browser.script("arguments[0].click()", next(one for one in buttons if one.text == name))


def test_a_part_that_is_chosen_leaves_its_launches_alone(index: Path, browser: Any) -> None:
    browser.open(index)
    browser.script("for (const part of document.querySelectorAll('#launches details')) part.open = true")
    assert browser.script(SHOWN, "#launch-table tbody tr") == 100
    everything = browser.script(SHOWN, "#family-table tbody tr")
    choose(browser, "forward")
    assert browser.script(SHOWN, "#launch-table tbody tr") == 70
    assert 0 < browser.script(SHOWN, "#family-table tbody tr") < everything
    assert "70 of 100 launches, in forward" in browser.find("[data-chosen]").text
    choose(browser, "cuBLAS")
    blas = browser.script(SHOWN, "#launch-table tbody tr")
    assert blas == 27
    field = browser.find("#launch-filter")
    field.send_keys("sgemm")
    assert 0 < browser.script(SHOWN, "#launch-table tbody tr") < blas, "the text filters what is left"
    field.clear()
    field.send_keys(" ")
    choose(browser, "cuBLAS")
    assert browser.script(SHOWN, "#launch-table tbody tr") == 100
    assert not browser.console_errors()


def test_choosing_does_not_fold_and_folding_does_not_choose(index: Path, browser: Any) -> None:
    browser.open(index)
    branch = "return document.querySelector('#program .inside').checkVisibility()"
    assert browser.script(branch)
    choose(browser, "step 0")
    assert browser.script(branch)
    browser.script("document.querySelector('#program button.fold').click()")
    assert not browser.script(branch)
    assert "71 of 100 launches" in browser.find("[data-chosen]").text
    browser.script("document.querySelector('[data-chosen] button').click()")
    assert not browser.find("[data-chosen] button").is_displayed()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_nothing_overflows(index: Path, browser: Any, width: int, scheme: str) -> None:
    browser.viewport(width, 900, phone=width < 500)
    with browser.media(**{"prefers-color-scheme": scheme}):
        browser.open(index)
        assert browser.overflow() <= 0
        assert browser.script(WIDER) == 0
