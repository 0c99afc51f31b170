"""Headless Chromium (selenium; the driver is the system's chromedriver), for tests and for `tools/screenshots.py`."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# The shell has the same engine without windows, menus and a GPU's process: two thirds of the time.
_BROWSERS = (
    "chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
FLAGS = ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


class Browser:
    """A thin layer over selenium's driver: opens local files, emulates phones and dark mode, collects errors."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a local file (through about:blank, so that a new fragment alone reloads it too)."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(page.resolve().as_uri() + (f"#{fragment}" if fragment else ""))

    def script(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript; ``return`` hands a value back."""
        return self.driver.execute_script(code, *arguments)

    def find(self, selector: str) -> Any:
        """The first element that matches the CSS selector."""
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        """All elements that match the CSS selector."""
        return list(self.driver.find_elements("css selector", selector))

    def console_errors(self) -> list[str]:
        """Errors (script, network, content security policy) since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def viewport(self, width: int, height: int, *, phone: bool = False, scale: float = 1) -> None:
        """Emulate a screen of this size in CSS pixels."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone},
        )

    @contextmanager
    def media(self, **features: str) -> Iterator[None]:
        """Emulate media features, for example ``prefers_color_scheme="dark"``."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen; 0 on a page that needs no sideways scrolling."""
        return int(
            self.script(
                "const e = document.documentElement; return Math.max(0, e.scrollWidth - e.clientWidth)"
            )
        )

    def screenshot(self, path: Path) -> None:
        """Save what the viewport shows as PNG."""
        self.driver.save_screenshot(str(path))


@contextmanager
def driven(*flags: str) -> Iterator[Any]:
    """A driver with its Chromium, started with these flags, too; ImportError or OSError where there is none."""
    from selenium import webdriver

    binary = os.environ.get("GEMMPROF_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    chromedriver = os.environ.get("GEMMPROF_CHROMEDRIVER") or shutil.which("chromedriver")
    if binary is None or chromedriver is None:
        raise OSError("no Chromium or no chromedriver on PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = str(binary)
    # Chromium's sandbox refuses to start as root, as in containers.
    for flag in (*FLAGS, *flags, *(["--no-sandbox"] if os.geteuid() == 0 else [])):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(str(chromedriver), popen_kw={"start_new_session": True})
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    group = service.process.pid
    try:
        yield driver
    finally:
        driver.quit()
        with suppress(ProcessLookupError):  # Chromium's shell outlives its driver
            os.killpg(group, signal.SIGKILL)
