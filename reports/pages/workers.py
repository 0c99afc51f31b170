"""Rendering kernel pages in two processes, where that is safe and worth it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from gemmprof.analysis.reading.report import few_collections
from gemmprof.base import system

WORTH_IT_FROM = 8  # fewer pages than this are made faster by one process

_PR_SET_PDEATHSIG = 1  # linux: the signal that a process gets when its parent ends

Made = TypeVar("Made")

# What the workers run: they are copies of this process and find it here.
_make: Callable[[int], Any] | None = None


def ordered(
    make: Callable[[int], Made], count: int, *, processes: int, here: int | None = None
) -> Generator[Made, None, None]:
    """``make(0)``, ``make(1)``, … in order, made by this process or by several.

    Workers are forks, so that they share the session's memory. A process with threads cannot be forked safely, nor can
    any on macOS: then this process does all the work.

    Args:
        make: makes one.
        count: how many.
        processes: how many may work at the same time.
        here: one that this process makes before it forks: what that loads and remembers (templates, matplotlib), no
            worker loads again.
    """
    global _make
    alone = processes < 2 or count < WORTH_IT_FROM or (os.cpu_count() or 1) < 2
    if alone or not system.can_fork():
        yield from map(make, range(count))
        return
    _make = make
    made_here = {} if here is None else {here: make(here)}
    # Not a Pool: that one is terminated where the reader of this iterator fails, and can hang in it.
    workers = ProcessPoolExecutor(
        processes, multiprocessing.get_context("fork"), _left_to_parent, (os.getpid(),)
    )
    try:
        made = workers.map(_in_worker, [place for place in range(count) if place != here])
        yield from (made_here.pop(place) if place == here else next(made) for place in range(count))
    finally:
        workers.shutdown(wait=True, cancel_futures=True)
        _make = None


def _left_to_parent(parent: int) -> None:
    """A worker leaves Ctrl-C to its parent, and ends without a word when it is told to or its parent is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # Killed since it made this worker and before the line above: no signal comes any more, and as this worker
        # holds both ends of the pipe from which it takes its work, it would wait there for ever.
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


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


def _in_worker(index: int) -> Any:
    assert _make is not None
    return _make(index)
