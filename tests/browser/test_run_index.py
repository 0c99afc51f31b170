"""The index of a run with several ladders at two sizes in Chromium: what matters first, the rest a tap away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA
from scale import few

from gemmprof.analysis.session import Session, load_session
from gemmprof.model import Problem, StageResult
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.environment import document
from gemmprof.reports.pages.html import Report, index_article, render
from gemmprof.runs.directory import load_recorded_run, recorded_run_directory

FOLDED = "ladder-2048x2048x2048"


def two_a_problem(session: Session) -> Session:
    """The session as if two stages of each ladder and size had been profiled: those with the least code."""
    run = session.run
    assert run is not None
    profiled: dict[Problem, list[StageResult]] = {}
    for result in run.results:
        if result.report is not None:
            profiled.setdefault(result.problem, []).append(result)

    def length(result: StageResult) -> int:
        found = session.kernel_for(result)
        return len(found.profile.source.instructions) if found is not None else 0

    kept = [one for results in profiled.values() for one in sorted(results, key=length)[:2]]
    results = tuple(
        one if one in kept else replace(one, report=None, launch_index=None) for one in run.results
    )
    kernels = tuple(found for one in kept if (found := session.kernel_for(one)) is not None)
    return replace(session, kernels=kernels, run=replace(run, results=results))


@pytest.fixture(scope="module", params=few(["recorded", "two a problem"], ["two a problem"]))
def index(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The index of the recorded run, a page of its own (kernel pages are looked at elsewhere).

    In `make test` of a part of its launches: explaining all takes half a minute.
    """
    session = load_session([recorded_run_directory()])
    if request.param != "recorded":
        session = two_a_problem(session)
    page = tmp_path_factory.mktemp("recorded") / "index.html"
    article = index_article(Report(session, plan(session)))
    page.write_text(document("recorded", [article]), encoding="utf-8")
    return page


@pytest.mark.parametrize(("width", "longest"), [(390, 9800), (1440, 6800), (2560, 6800)])
def test_the_first_screen_says_what_matters_and_the_page_stays_short(
    index: Path, browser: Any, width: int, longest: int
) -> None:
    browser.viewport(width, 1000)
    browser.open(index)
    run = load_recorded_run()
    # Two ladders of many stages, and 700 pixels for the one stage of the third.
    assert browser.script("return document.documentElement.scrollHeight") < longest + 700 * (
        len(run.ladders) - 2
    )
    rows = browser.find_all("#summary tbody tr")
    assert len(rows) >= 4
    profiled = {result.problem for result in run.results if result.report is not None}
    shown = [f"{size}³, {d}" for size in (4096, 2048) for d in ("float32", "bfloat16", "float8_e4m3fn")]
    assert [row.find_element("css selector", "th").text for row in rows] == [
        name for name in shown if name in {f"{p.shape_label}, {p.types_label}" for p in profiled}
    ]
    inside = "return arguments[0].getBoundingClientRect().bottom <= innerHeight"
    assert all(browser.script(inside, row) for row in rows[: len(run.ladders)]), (
        "all ladders without scrolling"
    )
    assert "% of cuBLAS" in browser.find(".heading").text


def test_what_is_folded_opens_for_who_asks_for_it(index: Path, browser: Any) -> None:
    opened = f"return document.querySelector('#{FOLDED} > details').open"
    top = f"return document.getElementById('{FOLDED}').getBoundingClientRect().top"
    with browser.media(prefers_reduced_motion="reduce"):
        browser.open(index)
        assert not browser.script(opened)
        link = browser.find(f"#summary a[href='#{FOLDED}']")
        link.click()
        assert browser.script(opened) and 0 <= browser.script(top) < 120
        browser.script(f"document.querySelector('#{FOLDED} > details').open = false")
        browser.script("arguments[0].click()", link)
        assert browser.script(opened), "the address is the same, the wish is not"
        browser.open(index, FOLDED)
        assert browser.script(opened) and 0 <= browser.script(top) < 120


def test_no_label_of_a_figure_covers_its_neighbour(index: Path, browser: Any) -> None:
    browser.viewport(1440, 900)
    browser.open(index)
    covered = browser.script("""
      const met = [];
      for (const svg of document.querySelectorAll('section[id^="over-size"] figure svg')) {
        const boxes = [...svg.querySelectorAll('text')].map(e => [e.textContent.trim(), e.getBoundingClientRect()]);
        boxes.forEach(([name, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
          if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
            met.push(`${name} × ${other}`);
        }));
      }
      return met;""")
    assert covered == []
    assert len(browser.find_all("section[id^='over-size'] figure svg")) == len(load_recorded_run().ladders)


def test_every_size_is_in_sight_on_a_desk(index: Path, browser: Any) -> None:
    """Names of rectangles break behind a ×, so that fourteen sizes stand side by side."""
    browser.open(index)
    browser.viewport(1440, 900)
    browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = browser.script(
        "return [...document.querySelectorAll('.scroll[aria-label=\"Speed at every size\"]')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    assert wide and max(wide) <= 1


@pytest.mark.parametrize(
    ("report", "pages"),
    [("flaws_precision", "*.html"), ("programs/decode", "index.html")],
    ids=["page", "program"],
)
def test_no_table_hides_a_column_on_a_desk(report: str, pages: str, tmp_path: Path, browser: Any) -> None:
    """Only code may be wider than its box; long names of kernels and metrics are wrapped."""
    render(load_session([DATA / f"{report}.ncu-rep.xz"]), tmp_path)
    for page in sorted(tmp_path.glob(pages))[:2]:
        browser.open(page)
        browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        for width in (1280, 1440):
            browser.viewport(width, 900)
            hidden = browser.script(
                "return [...document.querySelectorAll('.scroll, [aria-label=\"All metrics\"]')]"
                ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute('aria-label'))"
            )
            assert hidden == [], (page.name, width)


def test_on_a_phone_the_code_is_in_sight(tmp_path: Path, browser: Any) -> None:
    render(load_session([DATA / "flaws_precision.ncu-rep.xz"]), tmp_path)
    browser.viewport(390, 900, phone=True)
    browser.open(sorted(tmp_path.glob("0*.html"))[0])
    for box in browser.find_all(".code-pane"):
        left = browser.script(
            "const b = arguments[0]; return b.querySelector('.code-text').getBoundingClientRect().left"
            " - b.getBoundingClientRect().left",
            box,
        )
        assert left < 200, "half of the screen is left for the code"
