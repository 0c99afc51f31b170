"""What the collection hands to its helper programs, and the events that come back, a JSON object a line.

The helpers are programs of their own because a faulty kernel ends the CUDA context, and often the process, that ran it.

Two file locks on a run directory say who is at work, and are released by the operating system however their holder
dies. ``.collect.lock`` is held by the one collection that works on the run; a profiled program that finds it free knows
that its collection is gone and stops after the stage at hand. ``.tools.lock`` is held, shared, by ncu and everything
else that still writes into the run, so that a resumed collection waits for an orphaned ncu to finish its report.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmprof.base import system
from gemmprof.base.documents import json_text, read_json
from gemmprof.base.errors import DeviceError, RunError
from gemmprof.base.foreign_files import open_file, open_lock, read_bytes, read_end
from gemmprof.base.output import write_new
from gemmprof.model import Problem


@dataclass(frozen=True, slots=True)
class Task:
    """One stage on one problem, and which parts of the measurement are wanted."""

    stage: int
    problem: Problem
    verify: bool = False
    time: bool = False

    @property
    def key(self) -> tuple[int, Problem]:
        """What identifies the task's result in a run."""
        return self.stage, self.problem


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one helper program."""

    tasks: tuple[Task, ...]  # in the order in which to do them
    run_directory: Path  # the run that the job belongs to; its lock says whether the collection still lives
    events: Path  # file to append events to
    stop_file: Path  # the helper stops before the next task once this file exists
    seed: int = 0  # seed of the operands
    # hash of what each task's kernel was built from, so that its report is never taken for another's
    sources: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Write the job for the helper, at once: one that waits for the file never sees a part of it."""
        write_new(path, json_text(self, 1), durable=True)

    @classmethod
    def load(cls, path: Path) -> Job:
        """Read a job that `save` wrote; DocumentError if it is damaged."""
        return read_json(read_bytes(path), cls)

    def should_stop(self) -> bool:
        """Whether the collection asked to stop, or is gone."""
        return self.stop_file.exists() or not collection_lives(self.run_directory)

    def emit(self, event: str, task: Task | None = None, **facts: Any) -> None:
        """Append one event."""
        record: dict[str, Any] = {"event": event, "clock": round(time.monotonic(), 4)}
        if task is not None:
            record |= {"stage": task.stage, "problem": dataclasses.asdict(task.problem)}
        with self.events.open("a", encoding="utf-8") as file:  # at once: who is killed later loses none
            file.write(json_text({**record, **facts}, 0) + "\n")


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a helper: its kind, the stage and problem it is about, and what went wrong."""

    event: str
    stage: int = -1
    problem: Problem | None = None
    message: str = ""

    @property
    def key(self) -> tuple[int, Problem]:
        """Stage and problem that the event is about; nobody asks it of one that is about none."""
        assert self.problem is not None, self.event
        return self.stage, self.problem


class Events:
    """Reads a file of events while a helper appends to it; one without its end waits for the next call."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def new(self) -> Iterator[Event]:
        """Those that were completed since the last call."""
        try:
            with open_file(self._path) as file:
                file.seek(self._offset)
                complete = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return
        self._offset += len(complete) + bool(complete)
        yield from (read_json(line, Event) for line in complete.splitlines())


COLLECT_LOCK = ".collect.lock"
TOOLS_LOCK = ".tools.lock"


@contextmanager
def collecting(
    directory: Path, *, patience: float = 300.0, waiting: Callable[[], None] = lambda: None
) -> Iterator[int]:
    """Hold the run directory for one collection; yields the handle of the tools' lock, to be passed to programs.

    Programs that an interrupted collection left behind are waited for, ``patience`` seconds; ``waiting`` is called once
    if there are any. RunError if one does not end, or another collection works on the directory.
    """
    with open_lock(directory / COLLECT_LOCK) as collect, open_lock(directory / TOOLS_LOCK) as tools:
        if not system.lock_within(collect, 0.5):
            busy = f"another `gemmprof collect` is working on {directory}"
            raise RunError(busy, "wait for it to end", "choose another --output")
        if not system.lock_within(tools, patience, waiting=waiting):
            fix = f"see who holds {directory / TOOLS_LOCK} (fuser, lsof), end it, and resume again"
            raise RunError(f"a profiler of an interrupted collection still runs on {directory}", fix)
        with suppress(OSError):
            fcntl.flock(tools, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield tools


def collection_lives(directory: Path) -> bool:
    """Whether some collection holds the run directory; True where that cannot be found out."""
    try:
        with open_lock(directory / COLLECT_LOCK) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


# --- Running a helper program -----------------------------------------------------------------------------------------

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
    output: Path,  # file for its standard output and error
    shown: int | None = None,  # where its output goes instead of the file; its errors are this process's then
    keep_open: Sequence[int] = (),  # file handles that it inherits (a lock it holds as long as it lives)
    environment: Mapping[str, str] | None = None,  # variables beside those of this process
) -> Program:
    """Start a program; DeviceError if the program cannot be started."""
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
