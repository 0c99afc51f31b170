"""Python's garbage collector, told that reports are many objects that stay and few that come in cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LOT = 100_000
"""New objects between two collections (Python's default is 700 to 2,000)."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect garbage in larger lots inside this context: walking the same objects takes a quarter of the reading."""
    thresholds = gc.get_threshold()
    gc.set_threshold(max(LOT, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
