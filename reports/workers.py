"""Rendering kernel pages in two processes, where that is safe and worth it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator

WORTH_IT_FROM = 8
"""Fewer pages than this are made faster by one process."""

_make: Callable[[int], str] | None = None
"""What the workers run: they are copies of this process and find it here."""


def ordered(make: Callable[[int], str], count: int, *, processes: int) -> Iterator[str]:
    """``make(0)``, ``make(1)``, … in order, made by this process or by several.

    Workers are forks, so that they share the session's memory. A process with threads cannot be forked safely, nor can
    any on macOS: then this process does all the work.
    """
    global _make
    alone = processes < 2 or count < WORTH_IT_FROM or (os.cpu_count() or 1) < 2
    if alone or sys.platform in ("darwin", "win32") or threading.active_count() > 1:
        yield from map(make, range(count))
        return
    _make = make
    gc.freeze()  # keeps the collector from touching, and so copying, what the forks share
    try:
        with multiprocessing.get_context("fork").Pool(processes) as workers:
            yield from workers.imap(_in_worker, range(count))
    finally:
        gc.unfreeze()
        _make = None


def _in_worker(index: int) -> str:
    assert _make is not None
    return _make(index)
