"""Rendering kernel pages in two processes, where that is safe and worth it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gemmprof.analysis.reading.collector import few_collections

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
    try:
        with multiprocessing.get_context("fork").Pool(processes) as workers:
            yield from workers.imap(_in_worker, range(count))
    finally:
        _make = None


@contextmanager
def session_set_aside() -> Iterator[None]:
    """Keep the garbage collector off what exists already: a session is a million objects that all stay.

    Walking them again and again takes a third of the rendering, and in a forked worker copies their memory. What
    rendering itself leaves behind is still collected.
    """
    gc.freeze()
    try:
        with few_collections():
            yield
    finally:
        gc.unfreeze()


def _in_worker(index: int) -> str:
    assert _make is not None
    return _make(index)
