"""One headless Chromium for all browser tests.

Set ``GEMMPROF_CHROMIUM`` / ``GEMMPROF_CHROMEDRIVER`` where they are not on PATH. Without a browser the tests are
skipped, unless ``GEMMPROF_REQUIRE_BROWSER=1`` (as in CI), where a missing browser fails them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser, driven


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder opens a browser."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


def _unavailable(reason: str) -> None:
    if os.environ.get("GEMMPROF_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def _driver() -> Iterator[Any]:
    with ExitStack() as stack:
        try:
            driver = stack.enter_context(driven())
        except ImportError:
            _unavailable("selenium is not installed (pip install '.[test]')")
        except OSError as error:
            _unavailable(str(error))
        yield driver


@pytest.fixture
def browser(_driver: Any) -> Iterator[Browser]:
    """A browser at 1280 × 900, light, with an empty error log."""
    browser = Browser(_driver)
    browser.viewport(1280, 900)
    yield browser
    _driver.get("about:blank")
    _driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
