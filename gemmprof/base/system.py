"""What only some systems have, and the way round it where they lack it: the one place that asks.

Reports are read on Linux, macOS and Windows. Locks, reading at a position, endings and children that are copies
of their parent are asked for here; without them things are slower or less strict, never missing.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

POSIX = hasattr(os, "fork")  # whether this is a system of the Unix kind: children are forked, folders opened
# Whether a file can live in memory and still have a path.
MEMORY_FILES = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")  # noqa: PTH112
LOCKS = fcntl is not None
Made = TypeVar("Made")
_one_reader = threading.Lock()
one_command = False
LOT = 300_000  # new objects between two collections (Python's default is 700 to 2,000)


def runs_one_command(*, begins_others: bool) -> None:
    """Say that this process runs one command and ends: what other code in it would miss need not be loaded.

    ``begins_others``: it begins programs of its user, which inherit its environment.
    """
    global one_command
    one_command = True
    gc.set_threshold(LOT)  # imports leave no garbage
    if not begins_others:
        # Before numpy loads, whose BLAS begins a thread for each core: no product of ours is large.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _Absent:
    """A finder of modules that says that these are not installed."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"No module named '{fullname}'", name=fullname)


@contextmanager
def without_modules(*names: str) -> Iterator[None]:
    """Keep packages from importing these in this context: pyarrow takes pandas for its first array, and NumPy with it.

    Those imports take half a second. Only for processes that do nothing else meanwhile. Afterwards both work, but
    a pyarrow that was imported without NumPy takes none of its arrays: that is left to a process of one command.
    """
    finder = _Absent([name for name in names if name != "numpy" or one_command])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def lock(handle: int, *, wait: bool = False) -> None:
    """Take an open file's or folder's lock until it is closed; BlockingIOError if somebody has it, else OSError."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_within(
    handle: int, seconds: float, *, poll: float = 0.05, waiting: Callable[[], None] = lambda: None
) -> bool:
    """Whether the lock was taken in so many seconds; of a disk without locks it counts as taken.

    It is tried every ``poll`` seconds; ``waiting`` is called once if somebody else has it.
    """
    end = time.monotonic() + seconds
    told = False
    while True:
        try:
            lock(handle)
        except BlockingIOError:
            if not told:
                waiting()
            told = True
            if time.monotonic() > end:
                return False
            time.sleep(poll)
        except OSError:
            return True
        else:
            return True


TOOL_MEMORY = 4 << 30


def ask_tool(
    command: Sequence[str], *, given: str = "", seconds: float, most: int
) -> subprocess.CompletedProcess[str]:
    """What a program prints that somebody's bytes are given to: it may be made to compute, remember or print for ever.

    It is ended when it takes or prints more than this, or (on Linux) `TOOL_MEMORY`. OSError if it cannot be started,
    TimeoutExpired if it took longer.
    """
    import subprocess
    import tempfile

    with ExitStack() as stack:
        asked, *told = (stack.enter_context(tempfile.TemporaryFile(prefix="gemmprof-")) for _ in range(3))
        asked.write(given.encode("utf-8", "replace"))
        asked.seek(0)
        process = stack.enter_context(subprocess.Popen(command, stdin=asked, stdout=told[0], stderr=told[1]))
        try:
            if sys.platform == "linux":
                import resource

                with suppress(ProcessLookupError):
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (TOOL_MEMORY, TOOL_MEMORY))
            process.wait(seconds)
        except BaseException:
            process.kill()
            raise
        for file in told:
            file.seek(0)
        out, err = (file.read(most).decode("utf-8", "replace") for file in told)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def open_folder(folder: str | os.PathLike[str]) -> int | None:
    """A handle of a folder, for locks and for writing it to the disk; None where folders cannot be opened."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if hasattr(os, "O_DIRECTORY") else None


def close(handle: int | None) -> None:
    """Close a handle, if there is one."""
    if handle is not None:
        os.close(handle)


def read_at(file: BinaryIO, start: int, size: int) -> bytes:
    """Up to ``size`` bytes from a position on; several threads may read one file at once."""
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), size, start)
    with _one_reader:  # handles of one file may share their position
        file.seek(start)
        return file.read(size)


def raise_soon(seconds: float, number: int, handler: Callable[[int, Any], None]) -> None:
    """Have the main thread run a signal's handler in a moment; 0 takes it back where that can be."""
    if hasattr(signal, "setitimer"):
        if seconds:
            signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    elif seconds:
        signal.signal(number, handler)
        threading.Timer(seconds, signal.raise_signal, (number,)).start()


def endings() -> tuple[signal.Signals, ...]:
    """The signals that ask a process to end, beside Ctrl-C."""
    return tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def in_time(work: Callable[[], Made], seconds: float) -> Made:
    """What blocking work returns or raises, in a thread that is left behind after so many seconds (TimeoutError)."""
    found: list[Made] = []
    failed: list[BaseException] = []

    def do() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if thread.is_alive():
        raise TimeoutError(f"it gives no answer within {seconds:.0f} s")
    if failed:
        raise failed[0]
    return found[0]


def write_all(handle: int, data: bytes) -> None:
    """Write all of it: who reads a pipe may not read at once, and a file takes at most two gigabytes at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def can_fork() -> bool:
    """Whether this process can be copied safely: not on macOS, nor with threads, nor where spawning was asked for."""
    import multiprocessing

    return (
        POSIX
        and sys.platform != "darwin"
        and threading.active_count() == 1
        and multiprocessing.get_start_method(allow_none=True) in (None, "fork")
    )


def after_fork(forget: Callable[[], None]) -> None:
    """Have a forked child run this first."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


# Environment variable that moves the cache; ``off`` (or empty, or 0) turns the cache of disassembly off.
CACHE_VARIABLE = "GEMMPROF_CACHE"
_OFF = ("", "off", "0")


def cache_directory() -> Path:
    """``$GEMMPROF_CACHE``, ``$XDG_CACHE_HOME/gemmprof``, or ``~/.cache/gemmprof``; RuntimeError without a home."""
    from pathlib import Path

    named = os.environ.get(CACHE_VARIABLE, "")
    if named not in _OFF:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gemmprof"


def kept_folder(name: str) -> Path | None:
    """A folder of the cache for what is not needed, as builds are; None if nothing is to be kept, or without a home."""
    if os.environ.get(CACHE_VARIABLE) in _OFF:
        return None
    try:
        return cache_directory() / name
    except RuntimeError:
        return None
