"""What the collection hands to its helper programs, and the events that come back (`gemmprof.children.line_worker`).

The helpers are programs of their own because a faulty kernel ends the CUDA context, and often the process, that ran it.

Two file locks on a run directory say who is at work, and are released by the operating system however their holder
dies. ``.collect.lock`` is held by the one collection that works on the run; a profiled program that finds it free knows
that its collection is gone and stops after the stage at hand. ``.tools.lock`` is held, shared, by ncu and everything
else that still writes into the run, so that a resumed collection waits for an orphaned ncu to finish its report.
"""

from __future__ import annotations

import dataclasses
import fcntl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmprof.base import system
from gemmprof.base.documents import json_text, read_json
from gemmprof.base.errors import RunError
from gemmprof.base.foreign_files import open_lock, read_bytes
from gemmprof.children.line_worker import LineReader, append_line
from gemmprof.model import Problem
from gemmprof.runs.directory import write_atomically


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
    """The work of one helper program.

    Attributes:
        tasks: in the order in which to do them.
        run_directory: the run that the job belongs to; its lock says whether the collection still lives.
        events: file to append events to.
        stop_file: the helper stops before the next task once this file exists.
        seed: seed of the operands.
        time_budget: seconds for timing one task.
        sources: hash of what each task's kernel was built from, so that its report is never taken for another's.
    """

    tasks: tuple[Task, ...]
    run_directory: Path
    events: Path
    stop_file: Path
    seed: int = 0
    time_budget: float = 0.5
    sources: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Write the job for the helper, at once: one that waits for the file never sees a part of it."""
        write_atomically(path, json_text(self, 1))

    @classmethod
    def load(cls, path: Path) -> Job:
        """Read a job that `save` wrote.

        Raises:
            DocumentError: it is damaged.
        """
        return read_json(read_bytes(path), cls)

    def should_stop(self) -> bool:
        """Whether the collection asked to stop, or is gone."""
        return self.stop_file.exists() or not collection_lives(self.run_directory)

    def emit(self, event: str, task: Task | None = None, **facts: Any) -> None:
        """Append one event."""
        record: dict[str, Any] = {"event": event, "clock": round(time.monotonic(), 4)}
        if task is not None:
            record |= {"stage": task.stage, "problem": dataclasses.asdict(task.problem)}
        append_line(self.events, {**record, **facts})


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a helper: its kind, the stage and problem it is about, and its facts."""

    kind: str
    stage: int | None
    problem: Problem | None
    facts: Mapping[str, Any]

    @property
    def key(self) -> tuple[int, Problem]:
        """Stage and problem that the event is about.

        Raises:
            ValueError: if it is about none.
        """
        if self.stage is None or self.problem is None:
            raise ValueError(f"event '{self.kind}' is about no stage")
        return self.stage, self.problem

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Event:
        """The event in one line that `Job.emit` wrote."""
        facts = dict(record)
        problem = facts.pop("problem", None)
        return cls(
            facts.pop("event"),
            facts.pop("stage", None),
            Problem(**problem) if problem is not None else None,
            facts,
        )


def new_events(lines: LineReader) -> Iterator[Event]:
    """The events that a helper completed since the last call."""
    return map(Event.read, lines.new())


COLLECT_LOCK = ".collect.lock"
TOOLS_LOCK = ".tools.lock"


@contextmanager
def collecting(
    directory: Path, *, patience: float = 300.0, waiting: Callable[[], None] = lambda: None
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
        if not system.lock_within(collect, 0.5):
            raise RunError(
                f"another `gemmprof collect` is working on {directory}",
                remedies=["wait for it to end", "choose another --output"],
            )
        if not system.lock_within(tools, patience, waiting=waiting):
            raise RunError(
                f"a profiler of an interrupted collection still runs on {directory}",
                remedies=[f"see who holds {directory / TOOLS_LOCK} (fuser, lsof), end it, and resume again"],
            )
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
