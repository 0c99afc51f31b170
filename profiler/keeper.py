"""The run of a collection as it grows: every finished part is kept at once, and what is missing can be asked.

Whatever ends the collection (Ctrl-C, a kill, a fault), `--resume` goes on with the parts that are missing.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemmprof.base.errors import RunError
from gemmprof.base.progress import Progress
from gemmprof.model import Card, Problem, StageResult
from gemmprof.profiler.job import Job, Task
from gemmprof.profiler.ncu.profile_pass import ProfiledTask
from gemmprof.profiler.settings import Settings
from gemmprof.runs.directory import Run, report_record, save_run

STOP_FILE = ".stop"
Key = tuple[int, Problem]  # number of a stage, and the problem, whose type says of which ladder


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the collection after the stage at hand; everything finished is in the run."""


class Keeper:
    """Keeps a run, and hands out what it lacks of the settings; several threads may use it."""

    run: Run

    def __init__(self, settings: Settings, directory: Path, progress: Progress, lock: int) -> None:
        self.settings, self.directory, self.progress = settings, directory, progress
        self.lock = lock  # the handle of the run's: helper programs inherit it, so that it is held as long as one lives
        self.stopping = threading.Event()  # set once Ctrl-C was heard: nothing new is begun
        self.leaving = threading.Event()  # set once it was heard again: what is begun is left
        self._changing = threading.RLock()

    def save(self) -> None:
        """Write ``run.json``; RunError if it cannot be written."""
        try:
            save_run(self.run)
        except OSError as error:
            fix = "free some disk space, then `gemmprof collect --resume`"
            raise RunError(f"the run in {self.directory} cannot be written", fix, found=str(error)) from error

    def spent(self, part: str, started: float) -> None:
        """Note the seconds since ``started`` (a monotonic clock) under the name of a part."""
        with self._changing:
            seconds = dict(self.run.info.notes.get("seconds", {}))
            seconds[part] = round(seconds.get(part, 0.0) + time.monotonic() - started, 3)
            self.note(seconds=seconds)

    def note(self, **notes: Any) -> None:
        """Add to the notes of the run."""
        with self._changing:
            info = dataclasses.replace(self.run.info, notes={**self.run.info.notes, **notes})
            self.run = dataclasses.replace(self.run, info=info)
            self.save()

    def result(self, key: Key) -> StageResult:
        """The result of a stage on a problem; an empty one if there is none yet."""
        return self.run.result(*key) or StageResult(*key)

    def keep(self, key: Key, **parts: Any) -> None:
        """Put parts of a result in place of the older ones."""
        with self._changing:
            self.run = self.run.with_result(dataclasses.replace(self.result(key), **parts))
            self.save()

    def keep_report(self, profiled: ProfiledTask, card: Card | None) -> None:
        """Note where a task's launch is, the GPU where it is known, and the report: nobody writes to it any more."""
        with self._changing:
            if profiled.report not in self.run.reports:
                record = dataclasses.replace(report_record(self.directory / profiled.report), card=card)
                reports = {**self.run.reports, profiled.report: record}
                self.run = dataclasses.replace(self.run, reports=reports)
            self.keep(profiled.task.key, report=profiled.report, launch_index=profiled.launch_index)

    def fail(self, key: Key, part: str, message: str) -> None:
        """Note what went wrong with a task, and tell."""
        self.keep(key, failure=f"{part}: {message}")
        self.progress.done(f"{self.label(key)}: FAILED, {message.splitlines()[0]}")

    def label(self, key: Key) -> str:
        """How the task is called on a terminal."""
        names = {(one.number, dtype): one.name for one in self.settings.stages for dtype in one.dtypes}
        return f"{names.get((key[0], key[1].dtype), key[0])} {key[1].label}"

    def unmeasured(self) -> tuple[Task, ...]:
        """Tasks that lack verification or timing, and which of them."""
        tasks = []
        for stage, problem in self.settings.pairs:
            result = self.result((stage.number, problem))
            verified = result.verification is not None and result.verification.passed
            verify = self.settings.verify and not verified
            task = Task(stage.number, problem, verify, self.settings.bench and result.timing is None)
            if result.failure is None and (task.verify or task.time):
                tasks.append(task)
        return tuple(tasks)

    def unprofiled(self) -> tuple[Task, ...]:
        """Tasks without a report whose kernel is not known to be wrong."""
        results = [self.result((stage.number, problem)) for stage, problem in self.settings.pairs]
        return tuple(Task(r.stage, r.problem) for r in results if r.report is None and r.failure is None)

    def job(self, tasks: Sequence[Task], events: Path) -> Job:
        """What a helper program is told, to do these tasks."""
        return Job(
            tasks=tuple(tasks),
            run_directory=self.directory.resolve(),
            events=events.resolve(),
            stop_file=(self.directory / STOP_FILE).resolve(),
            seed=self.settings.seed,
            sources=tuple(map(self.source_hash, tasks)),
        )

    def source_hash(self, task: Task) -> str:
        """Hash of what the task's kernel is built from now."""
        return self.run.record(task.stage, task.problem).source_hash

    def tell_interrupt(self) -> None:
        """Say that Ctrl-C was heard, and have nothing new begun; the second time, leave what is begun."""
        if self.stopping.is_set():
            self.leaving.set()
            return
        self.stopping.set()
        self.progress.note("interrupted: ending after the stage at hand (Ctrl-C again: at once)")
