"""Runs a helper program: follows its events, ends it gently on Ctrl-C, and loses nothing that it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.errors import DeviceError
from gemmprof.base.foreign_files import read_end
from gemmprof.profiler.job import Event, Events

POLL_SECONDS = 0.05
GRACE_SECONDS = 5.0
TAIL_BYTES = 8000


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended: its exit code (negative: the signal), whether Ctrl-C asked for it, and what it said last."""

    exit_code: int
    interrupted: bool
    output: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was started, and the file that takes its standard output and error."""

    process: subprocess.Popen[bytes]
    output: Path

    def end(self) -> None:
        """End it and everything that it started, if it still runs."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE_SECONDS)
                return


def start_program(
    arguments: Sequence[str],
    *,
    output: Path,
    shown: int | None = None,
    keep_open: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> Program:
    """Start a program.

    Args:
        output: file for its standard output and error.
        shown: where its standard output goes in place of the file; its standard error then is this process's.
        keep_open: file handles that it inherits (a lock it holds as long as it lives).
        environment: variables beside those of this process.

    Raises:
        DeviceError: the program cannot be started.
    """
    with output.open("wb") as log:
        try:
            process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=log if shown is None else shown,
                stderr=subprocess.STDOUT if shown is None else None,
                env={**os.environ, **(environment or {})},
                pass_fds=tuple(keep_open),
                start_new_session=True,  # Ctrl-C in the terminal reaches the collection only
            )
        except OSError as error:
            raise DeviceError(f"cannot start {arguments[0]}", found=str(error)) from error
    return Program(process, output)


def follow_program(
    program: Program,
    *,
    events: Path,
    stop_file: Path,
    on_event: Callable[[Event], None],
    on_interrupt: Callable[[], None],
) -> Ending:
    """Hand over the events that a program appends to the file ``events``, as they come, until it ends.

    The first Ctrl-C creates ``stop_file``, which asks the program to finish the task at hand; the second ends it.
    ``on_interrupt`` hears of both.
    """
    written = Events(events)
    told = ended = False
    with counted_interrupts() as interrupts:
        try:
            while True:
                running = program.process.poll() is None
                for event in written.new():
                    on_event(event)
                if not running:
                    break
                if interrupts and not told:
                    told = True
                    stop_file.touch()
                    on_interrupt()
                elif len(interrupts) > 1 and not ended:
                    ended = True
                    on_interrupt()
                    program.end()
                time.sleep(POLL_SECONDS)
        except BaseException:
            program.end()
            raise
    return Ending(program.process.returncode, told, read_end(program.output, TAIL_BYTES))


@contextmanager
def counted_interrupts() -> Iterator[list[int]]:
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
