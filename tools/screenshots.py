"""Photograph pages of a report in headless Chromium, for the README.

    python tools/screenshots.py docs/images [RUN|REPORT ...]

Without inputs the recorded run is rendered. Needs selenium, Chromium and chromedriver.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from gemmprof.analysis.session import load_session
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.html import render
from gemmprof.runs.directory import recorded_run_directory

WIDTH, HEIGHT = 1280, 860
TELLING = "shared"
"""Stage whose page stands in the README."""


def browser() -> Any:
    """A headless Chromium of a fixed size."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or "chromium"
    for flag in ("--headless=new", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(flag)
    if os.geteuid() == 0:  # Chromium's sandbox refuses to start as root
        options.add_argument("--no-sandbox")
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver")
    )


def photograph(
    driver: Any, page: Path, picture: Path, *, scheme: str, section: str = "", height: int = HEIGHT
) -> None:
    """Save the top of a page, or the page from one of its sections on."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": WIDTH, "height": height, "deviceScaleFactor": 1.5, "mobile": False},
    )
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    driver.get("about:blank")
    driver.get(page.resolve().as_uri())
    if section:
        driver.execute_script(
            'document.getElementById(arguments[0]).scrollIntoView({behavior: "instant"})', section
        )
    driver.save_screenshot(str(picture))
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
    driver = browser()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            index = render(session, temporary)
            kernel = Path(temporary) / f"{fastest.key}.html"
            page = Path(temporary) / f"{telling.key}.html"
            photograph(driver, index, folder / "run.png", scheme="light")
            photograph(
                driver, index, folder / "sizes.png", scheme="light", section="over-size-single", height=740
            )
            photograph(driver, page, folder / "kernel.png", scheme="light", height=1000)
            photograph(
                driver, page, folder / "source.png", scheme="light", section="source_view", height=1000
            )
            photograph(
                driver, kernel, folder / "memory-chart-dark.png", scheme="dark", section="memory_chart"
            )
    finally:
        driver.quit()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
