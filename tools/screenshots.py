"""Photograph pages of a report in headless Chromium, for the README.

    python tools/screenshots.py docs/images [RUN|REPORT ...]

Without inputs the recorded run is rendered. Needs selenium, Chromium and chromedriver.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from recording import ROOT

from gemmprof.analysis.session import load_session
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.html import render
from gemmprof.runs.directory import recorded_run_directory

sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from chromium import Browser, driven

WIDTH, HEIGHT = 1280, 860
TELLING = "shared"
"""Stage whose page stands in the README."""


def photograph(
    browser: Browser,
    page: Path,
    picture: Path,
    *,
    scheme: str = "light",
    section: str = "",
    height: int = HEIGHT,
) -> None:
    """Save the top of a page, or the page from one of its sections on."""
    browser.viewport(WIDTH, height, scale=1.5)
    with browser.media(prefers_color_scheme=scheme):
        browser.open(page)
        if section:
            browser.script(
                'document.getElementById(arguments[0]).scrollIntoView({behavior: "instant"})', section
            )
        browser.screenshot(picture)
    print(picture, file=sys.stderr)


def main(arguments: list[str]) -> None:
    """Render, photograph the run page, a telling stage and the fastest one."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    session = load_session(arguments[1:] or [recorded_run_directory()])
    pages = plan(session).pages
    stages = [page for page in pages if not page.is_yardstick]
    fastest = max(stages, key=lambda page: page.tflops or 0.0)
    # The one with the most to change shows what a page is for.
    telling = next((page for page in stages if page.record and page.record.stage.name == TELLING), fastest)
    with driven("--force-color-profile=srgb") as driver, tempfile.TemporaryDirectory() as temporary:
        browser, index = Browser(driver), render(session, temporary)
        kernel, page = (Path(temporary) / f"{one.key}.html" for one in (fastest, telling))
        photograph(browser, index, folder / "run.png")
        photograph(browser, index, folder / "sizes.png", section="over-size-single", height=740)
        photograph(browser, page, folder / "kernel.png", height=1000)
        photograph(browser, page, folder / "source.png", section="source_view", height=1000)
        photograph(browser, kernel, folder / "memory-chart-dark.png", scheme="dark", section="memory_chart")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
