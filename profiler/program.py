"""Runs a helper program: follows its events, ends it gently on Ctrl-C, and loses nothing that it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import gemmprof
from gemmprof.errors import DeviceError
from gemmprof.profiler.job import Event, EventReader

POLL_SECONDS = 0.05
GRACE_SECONDS = 5.0
TAIL_BYTES = 8000


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended: its exit code (negative: the signal), whether Ctrl-C asked for it, and what it said last."""

    exit_code: int
    interrupted: bool
    output: str


def run_program(
    arguments: Sequence[str],
    *,
    events: Path,
    output: Path,
    stop_file: Path,
    keep_open: Sequence[int] = (),
    on_event: Callable[[Event], None],
    on_interrupt: Callable[[], None],
) -> Ending:
    """Run a program to its end and hand over its events as they come.

    The first Ctrl-C creates ``stop_file``, which asks the program to finish the task at hand; the second ends it.

    Args:
        arguments: program and arguments.
        events: file that it appends events to, output: file for its standard output and error.
        keep_open: file handles that it inherits (a lock it holds as long as it lives).

    Raises:
        DeviceError: the program cannot be started.
    """
    with output.open("wb") as log:
        try:
            process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                pass_fds=tuple(keep_open),
                start_new_session=True,  # Ctrl-C in the terminal reaches the collection only
            )
        except OSError as error:
            raise DeviceError(f"cannot start {arguments[0]}", found=str(error)) from error
        reader = EventReader(events)
        told = ended = False
        with _counted_interrupts() as interrupts:
            try:
                while True:
                    running = process.poll() is None
                    for event in reader.new():
                        on_event(event)
                    if not running:
                        break
                    if interrupts and not told:
                        told = True
                        stop_file.touch()
                        on_interrupt()
                    elif len(interrupts) > 1 and not ended:
                        ended = True
                        _end(process)
                    time.sleep(POLL_SECONDS)
            except BaseException:
                _end(process)
                raise
    return Ending(process.returncode, told, tail(output))


@contextmanager
def _counted_interrupts() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list instead of raising: an exception in between could lose an event."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda got, _frame: received.append(got)) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and everything that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def _environment() -> dict[str, str]:
    """The environment for helpers, in which ``-m gemmprof.…`` finds this very gemmprof."""
    home = str(Path(gemmprof.__file__).resolve().parent.parent)
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([home, *others]), "PYTHONUNBUFFERED": "1"}


def tail(path: Path, size: int = TAIL_BYTES) -> str:
    """The last ``size`` bytes of a text file, '' if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
