"""Helper program: verifies and times the tasks of a job on the GPU, one after the other.

``python -m gemmprof.profiler.worker JOB``. Every finished part is an event at once. A CUDA error that leaves the
context unusable ends the program (exit code 3) after the event that blames the task; the collection starts another for
the rest.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from gemmprof.errors import GemmprofError
from gemmprof.kernels.catalog import ladder_of, stage_by_number
from gemmprof.kernels.plugin import install_named
from gemmprof.profiler.job import Job, Task
from gemmprof.profiler.measure.timing import Bench, launches
from gemmprof.profiler.measure.verification import verify_stage

EXIT_NO_DEVICE = 2
EXIT_CONTEXT_LOST = 3


def main(arguments: list[str]) -> int:
    """Do the job in the file that ``arguments`` name."""
    install_named()
    job = Job.load(Path(arguments[0]))
    import torch

    if not torch.cuda.is_available():
        job.emit("no_device", message=no_device_message())
        return EXIT_NO_DEVICE
    device = torch.device("cuda", 0)
    properties = torch.cuda.get_device_properties(device)
    job.emit(
        "ready",
        device=properties.name,
        compute_capability=[properties.major, properties.minor],
        torch=torch.__version__,
        cuda=torch.version.cuda,
    )
    worker = Worker(job, device)
    for task in job.tasks:
        if job.should_stop():
            job.emit("stopped")
            return 0
        if not worker.do(task):
            return EXIT_CONTEXT_LOST
    job.emit("finished")
    return 0


def no_device_message() -> str:
    """Why torch sees no GPU, in torch's own words."""
    import torch

    try:
        torch.cuda.init()
    except Exception as error:
        # torch raises RuntimeError, AssertionError (a build without CUDA) or its own classes here.
        return str(error).strip().splitlines()[0]
    return "torch.cuda.is_available() is false"


class Worker:
    """Verifies and times tasks on one device."""

    def __init__(self, job: Job, device: Any) -> None:
        self._job = job
        self._device = device
        self._bench: Bench | None = None

    def do(self, task: Task) -> bool:
        """Verify and time one task as it asks; returns whether the CUDA context is still usable."""
        import torch

        for part, wanted in (("verify", task.verify), ("time", task.time)):
            if not wanted:
                continue
            self._job.emit("begin", task, part=part)
            try:
                keep_on = self._verify(task) if part == "verify" else self._time(task)
            except GemmprofError as error:
                self._job.emit("failed", task, part=part, message=error.message)
                return True
            except Exception as error:
                # Whatever a kernel, torch or CUDA raises is this task's failure, and the next task's turn.
                self._job.emit("failed", task, part=part, message=_first_lines(error))
                return self._context_lives()
            finally:
                if self._context_lives():
                    torch.cuda.empty_cache()
            if not keep_on:
                break
        return True

    def _verify(self, task: Task) -> bool:
        from gemmprof.kernels.operators import run_stage

        stage = stage_by_number(task.stage, task.problem.dtype)
        result = verify_stage(
            stage, task.problem, partial(run_stage, stage), seed=self._job.seed, device=self._device
        )
        self._job.emit("verified", task, verification=asdict(result))
        return result.passed

    def _time(self, task: Task) -> bool:
        from gemmprof.kernels.operators import run_stage

        ladder = ladder_of(task.problem.dtype)
        run = partial(launches, task.problem, seed=self._job.seed, device=self._device)
        yardstick = run(partial(run_stage, ladder.yardstick))
        if self._bench is None:
            self._bench = Bench(self._device)
            self._bench.ramp(yardstick)
        stage = ladder.stage(task.stage)
        timing = (
            self._bench.time(yardstick, None, budget=self._job.time_budget)
            if stage.yardstick
            else self._bench.time(run(partial(run_stage, stage)), yardstick, budget=self._job.time_budget)
        )
        self._job.emit("timed", task, timing=asdict(timing))
        return True

    def _context_lives(self) -> bool:
        import torch

        try:
            torch.cuda.synchronize(self._device)
        except RuntimeError:
            return False
        return True


def _first_lines(error: Exception, count: int = 2) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:count]) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
