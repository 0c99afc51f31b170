"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(holds: Callable[[], bool]) -> None:
    """Return as soon as it holds; AssertionError if it does not within a minute, which a busy machine may take."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
