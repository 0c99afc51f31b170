"""The page of a history in a real browser: it answers the pointer, fits a phone, and stands without a script."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmprof.analysis.history.changes import Origin, Point, changes
from gemmprof.base.output import write_new
from gemmprof.reports.pages.history import page_html


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    points = []
    for run in range(90):
        time = 56e3 * float(np.exp(rng.normal(0, 0.008))) * (1.1 if run >= 50 else 1)
        origin = Origin(
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=run), commit=f"c{run}", machine="ci"
        )
        name = "void attention::forward_kernel<cutlass::half_t, 128, 64, true>(attention::Parameters const)"
        points.append(
            Point(name, "2x1x1", "H100", "timed", origin, time, time, time, 5, code="ab"[run >= 50])
        )
    target = tmp_path_factory.mktemp("history") / "h.html"
    return write_new(target, page_html([(points, changes(points))]))


def test_the_run_under_the_pointer_is_told(page: Path, browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser.open(page)
    dots = browser.find_all(".history-plot circle")
    assert len(dots) == 90
    told = browser.find(".history .readout")
    usual = told.text
    ActionChains(browser.driver).move_to_element(dots[70]).perform()
    assert told.text.startswith("2026-03-12") and "commit c70, on ci" in told.text
    ActionChains(browser.driver).move_to_element(browser.find("h1")).perform()
    assert told.text == usual and browser.console_errors() == []


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_as_wide_as_its_screen(page: Path, browser: Any, width: int) -> None:
    browser.viewport(width, 800, phone=width < 600)
    browser.open(page)
    assert browser.overflow() == 0
    assert browser.find(".chip.bad").text.startswith("+")
