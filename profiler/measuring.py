"""The part of a collection that verifies and times: helper programs over the tasks that lack it.

A stage whose kernel faults takes its program along; it is blamed, and another program goes on with the rest.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

from gemmprof.children import python_command
from gemmprof.errors import DeviceError
from gemmprof.model import Timing, Verification
from gemmprof.profiler.job import Event, Task
from gemmprof.profiler.keeper import Interrupted, Keeper, Key
from gemmprof.profiler.ncu.profile_pass import LOGS
from gemmprof.profiler.program import Ending, run_program


class Measuring:
    """Verifies and times what the run lacks."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def do(self) -> None:
        """Verify and time what is missing, in as many helper programs as faults make necessary."""
        tasks = self._keeper.unmeasured()
        if not tasks:
            return
        self._keeper.progress.phase("verify and time", sum(task.verify + task.time for task in tasks))
        attempt = 0
        while tasks:
            attempt += 1
            ending, begun = self._once(tasks, attempt)
            remaining = self._keeper.unmeasured()
            if ending.interrupted:
                raise Interrupted
            if begun is None and len(remaining) == len(tasks):
                raise DeviceError(
                    "the program that verifies and times the stages did not get as far as the first one",
                    found=(ending.output.strip().splitlines() or [f"exit code {ending.exit_code}"])[-1],
                    remedies=[
                        f"see {self._keeper.directory / LOGS}",
                        "`gemmprof doctor` checks this machine",
                    ],
                )
            if begun is not None and begun in {task.key for task in remaining}:
                why = (
                    f"signal {-ending.exit_code}" if ending.exit_code < 0 else f"exit code {ending.exit_code}"
                )
                self._keeper.fail(begun, "measure", f"the program ended with {why}")
                remaining = self._keeper.unmeasured()
            tasks = remaining

    def _once(self, tasks: Sequence[Task], attempt: int) -> tuple[Ending, Key | None]:
        """One helper program; returns how it ended and the task that it was working on at the end."""
        logs = self._keeper.directory / LOGS
        stem = f"measure-{time.time_ns():x}-{attempt}"
        job = self._keeper.job(tasks, logs / f"{stem}.events.jsonl")
        job_file = logs / f"{stem}.job.json"
        job.save(job_file)
        begun: list[Key] = []

        def on_event(event: Event) -> None:
            if event.kind == "begin":
                begun.append(event.key)
                self._keeper.progress.step(f"{event.facts['part']} {self._keeper.label(event.key)}")
            elif event.kind == "no_device":
                raise DeviceError(
                    "torch finds no usable GPU",
                    found=str(event.facts["message"]),
                    remedies=[
                        "`gemmprof doctor` says what is missing",
                        "a driver too old for torch needs an upgrade",
                    ],
                )
            elif event.kind in ("verified", "timed", "failed"):
                self._note(event)

        ending = run_program(
            [*python_command("gemmprof.profiler.worker"), str(job_file)],
            events=job.events,
            output=logs / f"{stem}.out.log",
            stop_file=job.stop_file,
            keep_open=(self._keeper.lock,),
            on_event=on_event,
            on_interrupt=self._keeper.tell_interrupt,
        )
        return ending, begun[-1] if begun else None

    def _note(self, event: Event) -> None:
        result, label = self._keeper.result(event.key), self._keeper.label(event.key)
        if event.kind == "failed":
            self._keeper.fail(event.key, str(event.facts["part"]), str(event.facts["message"]))
        elif event.kind == "timed":
            timing = Timing(**event.facts["timing"])
            self._keeper.keep(dataclasses.replace(result, timing=timing))
            rate = f"{timing.tflops(event.key[1]):.2f} TFLOP/s" if event.key[1].flops else "no arithmetic"
            self._keeper.progress.done(f"time {label}: {timing.median * 1e3:.3f} ms, {rate}")
        else:
            verification = Verification(**event.facts["verification"])
            failure = None if verification.passed else f"verification: {verification.detail}"
            self._keeper.keep(dataclasses.replace(result, verification=verification, failure=failure))
            if failure is None:
                self._keeper.progress.done(
                    f"verify {label}: relative error {verification.relative_error:.1e} "
                    f"(allowed {verification.tolerance:.1e})"
                )
            else:
                self._keeper.progress.done(f"verify {label}: FAILED, {verification.detail}")
