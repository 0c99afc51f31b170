"""One ncu process over the tasks that still lack a report, and what it leaves behind.

A pass has a name (``profile-01``) under which its files lie: ``reports/<name>.ncu-rep``, and in ``logs/`` ncu's log,
the program's output, the job and its events. They are enough to find out, at any later time, which tasks the pass
finished: that is how `--resume` takes over the report of a pass whose collection was killed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.foreign_files import open_file, read_end
from gemmprof.children.watched import python_command
from gemmprof.gpu.devices import Tool
from gemmprof.model import Card
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep.ncu_frame import WireError
from gemmprof.profiler.job import (
    TAIL_BYTES,
    Ending,
    Event,
    Events,
    Job,
    Program,
    Task,
    follow_program,
    start_program,
)
from gemmprof.profiler.ncu.command import KERNEL, RESOURCE, NcuCommand, NcuError, NcuLog, known_to, translate
from gemmprof.profiler.settings import Settings

REPORTS, LOGS = "reports", "logs"
_NAME = re.compile(r"profile-(\d+)")


class PassFiles:
    """The files of one pass in a run directory."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory, self.name = directory, name
        self.report = directory / REPORTS / f"{name}.ncu-rep"
        # ncu's own messages, what ncu and the program print, the tasks of the pass, what the program reported.
        self.log, self.output, self.job, self.events = (
            directory / LOGS / f"{name}.{end}" for end in ("ncu.log", "out.log", "job.json", "events.jsonl")
        )


@dataclass(frozen=True, slots=True)
class ProfiledTask:
    """A task whose launch is in a report, and its position there where that is certain."""

    task: Task
    report: str
    launch_index: int | None


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """What a pass achieved."""

    finished: tuple[ProfiledTask, ...] = ()  # the tasks whose launches are in its report
    attributed: Task | None = None  # the task that was being profiled when the pass failed
    error: NcuError | None = None  # why it failed, None if it did not
    interrupted: bool = False  # Ctrl-C ended it early
    card: Card | None = None  # the GPU, where it was not chosen in advance


def next_pass(directory: Path) -> PassFiles:
    """Files for a new pass, numbered after every pass that the run directory has seen."""
    return PassFiles(directory, f"profile-{max(_names(directory), default=0) + 1:02d}")


def earlier_passes(directory: Path) -> list[PassFiles]:
    """The passes that the run directory has seen, oldest first."""
    return [PassFiles(directory, name) for _, name in sorted(_names(directory).items())]


def _names(directory: Path) -> dict[int, str]:
    paths = (path for folder in (REPORTS, LOGS) for path in (directory / folder).glob("profile-*"))
    return {int(match[1]): match[0] for path in paths if (match := _NAME.match(path.name))}


def start_pass(
    ncu: Tool, files: PassFiles, settings: Settings, sections: Path | None, lock: int, extra: dict[str, str]
) -> Program:
    """Start ncu and the program that it profiles, which waits for `finish_pass`'s job; DeviceError if it cannot."""
    command = NcuCommand(
        executable=ncu.path,
        report=files.report,
        log=files.log,
        collection=known_to(ncu, settings.collection_options),
        program=(*python_command("gemmprof.profiler.workload"), str(files.job)),
        clock_control=settings.clock_control,
        section_folder=sections,
    )
    environment = {"PYTHONUNBUFFERED": "1", **extra}
    return start_program(command.arguments(), output=files.output, keep_open=(lock,), environment=environment)


def finish_pass(
    program: Program,
    files: PassFiles,
    job: Job,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
    on_interrupt: Callable[[], None] = lambda: None,
) -> PassOutcome:
    """Profile the tasks of ``job`` in the ncu process that `start_pass` started for these files."""
    job.save(files.job)
    ending = follow_program(
        program, events=files.events, stop_file=job.stop_file, on_event=on_event, on_interrupt=on_interrupt
    )
    return outcome(files, job.tasks, ending)


def outcome(files: PassFiles, tasks: Sequence[Task], ending: Ending | None = None) -> PassOutcome:
    """Judge a pass by the files that it left, and by how it ended where that is known."""
    events = tuple(Events(files.events).new())
    log = NcuLog.read(files.log)
    by_key = {task.key: task for task in tasks}
    launched = [by_key[event.key] for event in events if event.event == "launched" and event.key in by_key]
    begun = [by_key[event.key] for event in events if event.event == "begin" and event.key in by_key]
    unfinished = begun[-1] if begun and begun[-1] not in launched else None
    said = next((event.message for event in events if event.event == "failed"), "")
    ending = ending or Ending(0, False, read_end(files.output, TAIL_BYTES))
    error = translate(log, log_file=files.log, exit_code=ending.exit_code, output=ending.output)
    if error is None and said:
        error = NcuError("the kernel failed under Nsight Compute", kind=KERNEL, found=said)
    elif error is not None and said:
        error = error.but(found=f"{said}; {error.found}")
    finished = _finished(files, launched, log)
    if error is None and not finished and not ending.interrupted:
        fixes = "`gemmprof collect --resume` profiles what is missing", f"the whole log is in {files.log}"
        error = NcuError("Nsight Compute left no complete report", *fixes)
    if len(finished) == len(tasks) and unfinished is None:
        error = None  # all is in the report; what ncu complained about (a missing rule) stays in its log
    return PassOutcome(finished, unfinished, error, ending.interrupted)


def _finished(files: PassFiles, launched: Sequence[Task], log: NcuLog) -> tuple[ProfiledTask, ...]:
    """The launched tasks that are in the report.

    A kernel is in the report as soon as its launch returned, also where ncu was killed later. With one kernel a task
    they can be told apart by position; cuBLAS may launch several, and then the NVTX ranges in the report tell. Fewer
    kernels than tasks means that some were not profiled, and it is not known which: none counts as finished then, they
    are profiled again one by one.
    """
    kernels = cut_torn_end(files.report).kernels
    if not launched or kernels < len(launched):
        return ()
    certain = kernels == len(launched) == len(log.kernels)
    report = str(files.report.relative_to(files.directory))
    return tuple(ProfiledTask(one, report, at if certain else None) for at, one in enumerate(launched))


# Seconds before each further try: a pass of another ncu takes seconds, its whole work a minute or more.
PAUSES = (5.0, 10.0, 20.0, 40.0)


class Patience:
    """How often something was tried in vain; ``note`` is told before each pause, which ``pause`` cuts short by True."""

    def __init__(self, note: Callable[[str], object], pause: Callable[[float], object] = time.sleep) -> None:
        self._note, self._pause = note, pause
        self._tried = 0

    def again(self, error: NcuError) -> bool:
        """Whether to try again: the error is one that passes, and it was waited for that; NcuError if it did not."""
        if error.kind != RESOURCE:
            return False
        if self._tried == len(PAUSES):
            still = f"{error.message}, and still did after {len(PAUSES) + 1} tries in {sum(PAUSES):.0f} s"
            raise NcuError(still, *error.remedies, kind=RESOURCE, found=error.found)
        seconds = PAUSES[self._tried]
        self._tried += 1
        self._note(f"{error.message}: trying again in {seconds:g} s ({self._tried} of {len(PAUSES)})")
        return not self._pause(seconds)

    def reset(self) -> None:
        """It went well since."""
        self._tried = 0


@dataclass(frozen=True, slots=True)
class WholeBlocks:
    """The whole blocks of a report: where the last one ends, and how many kernels they hold."""

    end: int
    kernels: int


def whole_blocks(report: Path) -> WholeBlocks:
    """Walk the blocks of a report up to its end or the first torn one; nothing whole if it is no report."""
    end = kernels = 0
    try:
        with open_file(report) as file:
            size = os.fstat(file.fileno()).st_size

            def read(start: int, stop: int) -> bytes:
                data = os.pread(file.fileno(), stop - start, start)
                if len(data) < stop - start:
                    raise ncu_frame.Torn(f"the file ends at byte {start + len(data)}")
                return data

            if read(0, len(ncu_frame.MAGIC)) != ncu_frame.MAGIC:
                return WholeBlocks(0, 0)
            _, end = ncu_frame.read_head(read, size)
            for block in ncu_frame.blocks(read, end, size):
                end = block.end
                kernels += block.count("kernel")
    except (OSError, WireError):
        pass  # an unreadable or malformed rest is not whole
    return WholeBlocks(end, kernels)


def cut_torn_end(report: Path) -> WholeBlocks:
    """Cut off a torn block at the end of a report that nobody writes any more; returns what is left."""
    whole = whole_blocks(report)
    if whole.kernels and whole.end < report.stat().st_size:
        os.truncate(report, whole.end)
    return whole
