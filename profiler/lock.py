"""Two file locks on a run directory, released by the operating system however their holder dies.

``.collect.lock`` is held by the one collection that works on the run; a profiled program that finds it free knows that
its collection is gone and stops after the stage at hand. ``.tools.lock`` is held, shared, by ncu and everything else
that still writes into the run, so that a resumed collection waits for an orphaned ncu to finish its report.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gemmprof.base.errors import RunError
from gemmprof.base.foreign_files import open_lock

COLLECT_LOCK = ".collect.lock"
TOOLS_LOCK = ".tools.lock"


def _try(handle: int, kind: int) -> bool:
    """Whether the lock was taken; a file system without locks counts as taken."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _try_for(handle: int, seconds: float) -> bool:
    """Try for the exclusive lock; an orphan that looks whether its collection lives holds it for a moment."""
    end = time.monotonic() + seconds
    while not _try(handle, fcntl.LOCK_EX):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def collecting(
    directory: Path, *, patience: float = 300.0, waiting: Callable[[], None] | None = None
) -> Iterator[int]:
    """Hold the run directory for one collection; yields the handle of the tools' lock, to be passed to programs.

    Args:
        directory: an existing run directory.
        patience: seconds to wait for programs that an interrupted collection left behind.
        waiting: called once if there is something to wait for.

    Raises:
        RunError: another collection works on the directory, or an orphaned program does not end.
    """
    with open_lock(directory / COLLECT_LOCK) as collect, open_lock(directory / TOOLS_LOCK) as tools:
        if not _try_for(collect, seconds=0.5):
            raise RunError(
                f"another `gemmprof collect` is working on {directory}",
                remedies=["wait for it to end", "choose another --output"],
            )
        _wait_for_orphans(directory, tools, patience, waiting)
        yield tools


def _wait_for_orphans(
    directory: Path, tools: int, patience: float, waiting: Callable[[], None] | None
) -> None:
    end = time.monotonic() + patience
    told = False
    while not _try(tools, fcntl.LOCK_EX):
        if not told and waiting is not None:
            waiting()
        told = True
        if time.monotonic() > end:
            raise RunError(
                f"a profiler of an interrupted collection still runs on {directory}",
                remedies=[f"see who holds {directory / TOOLS_LOCK} (fuser, lsof), end it, and resume again"],
            )
        time.sleep(0.2)
    _try(tools, fcntl.LOCK_SH)


def collection_lives(directory: Path) -> bool:
    """Whether some collection holds the run directory; True where that cannot be found out."""
    try:
        with open_lock(directory / COLLECT_LOCK) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False
