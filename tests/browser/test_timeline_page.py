"""The launch over time in Chromium: dragged over, moved by keyboard, on every screen, nothing stopped by a policy."""

from __future__ import annotations

import re
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA
from scale import few
from selenium.webdriver import ActionChains, Keys

from gemmprof.analysis.session import load_session
from gemmprof.reports.pages.html import render


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    session = load_session([DATA / "wgmma" / "gemm_4096.ncu-rep.xz"])
    folder = tmp_path_factory.mktemp("timeline")
    render(session, folder)
    return next(folder.glob("*hgemm-fastest.html"))


def told(browser: Any) -> str:
    return str(browser.find(".timeline .readout").text)


def test_a_stretch_is_chosen_by_dragging_and_by_keyboard(page: Path, browser: Any) -> None:
    browser.viewport(1280, 900)
    browser.open(page)
    browser.script("document.getElementById('timeline').scrollIntoView()")
    assert told(browser).startswith("Whole launch: SMs with work 95")
    assert "New blocks: 128 in all" in told(browser)
    row = browser.find_all(".timeline .lane > svg")[4]
    width = row.rect["width"]
    for _ in range(20):
        drag = ActionChains(browser.driver).move_to_element_with_offset(row, int(0.3 * width), 0)
        drag.click_and_hold().move_by_offset(int(0.12 * width), 0).release().perform()
        if not told(browser).startswith("Whole launch"):
            break
        time.sleep(0.2)  # what is drawn above moved the rows away under the pointer
    share = re.search(r"µs, (\S+)\s% of it: SMs with work 87\.[89]", told(browser))
    assert share and float(share[1]) == pytest.approx(12, abs=2), (
        "in the last round 116 of 132 SMs have a tile"
    )
    assert "New blocks: 0 in all" in told(browser)
    assert browser.script("return document.querySelector('.timeline .chosen').width.baseVal.value > 0")
    link = browser.script("return location.hash")
    assert re.fullmatch(r"#timeline\?\d+-\d+", link)
    chosen = told(browser)
    first, last = browser.find_all(".timeline input[type=range]")
    first.send_keys(Keys.HOME)
    last.send_keys(Keys.HOME)
    assert re.match(r"0 ns to 1\.49 µs", told(browser))
    assert first.get_attribute("aria-valuetext") == "0 ns"
    last.send_keys(Keys.END)
    assert told(browser).startswith("Whole launch")
    assert browser.script("return location.hash") == "#timeline"
    # The address keeps the stretch: for whoever it is sent to, and where it is typed over this page's.
    browser.open(page, link[1:])
    assert told(browser) == chosen
    assert browser.script(
        "const box = document.querySelector('.timeline').getBoundingClientRect();"
        "return box.top < innerHeight && box.bottom > 0"
    )
    browser.script("location.hash = '#timeline?0-15000'")
    assert told(browser).startswith("0 ns to 14.9")
    for wrong in ("#timeline?9-3", "#timeline?x", "#timeline?999999999999-9999999999999"):
        browser.script("location.hash = arguments[0]", wrong)
        assert told(browser).startswith("0 ns to 14.9")
    assert browser.console_errors() == []


def test_a_stretch_is_found_in_a_file_of_several_pages(tmp_path: Path, browser: Any) -> None:
    session = load_session([DATA / "wgmma" / "gemm_4096.ncu-rep.xz"])
    target = tmp_path / "both.html"
    render(session, target, single_file=True)
    browser.open(target)
    ids = browser.script(
        "return [...document.querySelectorAll('.timeline')].map((box) => box.closest('[id]').id)"
    )
    assert len(ids) == 2
    for one in ids:
        browser.open(target, f"{one}?10000-40000")
        shown = browser.script(
            "return [...document.querySelectorAll('.timeline')].filter((box) => box.offsetParent).map((box) =>"
            " [box.closest('[id]').id, box.querySelector('.readout').textContent])"
        )
        assert [name for name, _ in shown] == [one] and shown[0][1].startswith(("10", "9.", "1."))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_says_what_the_tail_costs(page: Path, browser: Any, scheme: str, width: int) -> None:
    browser.viewport(width, 844)
    browser.open(page)
    browser.script("document.documentElement.dataset.theme = arguments[0]", scheme)
    assert browser.overflow() == 0
    text = browser.find("#timeline .lead").text
    assert "The last 24.0 % are a tail worth 4.3 % of the time" in text
    assert "the tensor cores pause 3 times" in text
    heights = [row.rect["height"] for row in browser.find_all(".timeline .lane > svg")]
    assert min(heights) > 10 and len(heights) == 10


@pytest.mark.parametrize("scheme", few(["light", "dark"], ["light"]))
def test_axe_finds_nothing_serious(page: Path, browser: Any, scheme: str) -> None:
    with browser.media(prefers_color_scheme=scheme):
        browser.open(page)
        browser.script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        found = browser.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document.getElementById('timeline'), {resultTypes: ['violations']})"
            ".then(r => done(r.violations.map((v) => [v.id, v.impact, v.nodes[0].html.slice(0, 200)])))"
        )
    assert [violation for violation in found if violation[1] in ("serious", "critical", "moderate")] == []
