"""Helper program that runs under Nsight Compute: one profiled launch of every task of a job.

``ncu … python -m gemmprof.profiler.workload JOB``, JOB in the folder ``logs`` of a run directory. The program may be
started before the job is known: it loads torch, which takes seconds, and waits for the file to appear. It leaves the
GPU alone until then, so that nothing disturbs what is being timed there.

Operands are made and the kernel is launched once outside of the profiled range, so that module loading, cuBLAS's
workspace and the random numbers stay out of the report. The range lies between cudaProfilerStart and cudaProfilerStop
and carries the NVTX name of stage and shape.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

from gemmprof.kernels.catalog import stage_by_number
from gemmprof.kernels.plugin import install_named
from gemmprof.profiler.job import Job, Task, collection_lives
from gemmprof.profiler.measuring import generator_seed, launches
from gemmprof.runs.directory import nvtx_range

EXIT_FAULT = 3
POLL_SECONDS = 0.1


def main(arguments: list[str]) -> int:
    """Launch every task of the job in the file that ``arguments`` name."""
    install_named()
    job_file = Path(arguments[0])
    import torch  # noqa: F401

    import gemmprof.kernels.operators  # noqa: F401

    if not appears(job_file, run_directory=job_file.parent.parent):
        return 0
    job = Job.load(job_file)
    job.emit("ready")
    for task in job.tasks:
        if job.should_stop():
            job.emit("stopped")
            return 0
        job.emit("begin", task, part="profile")
        try:
            launch_profiled(task, job.seed)
        except Exception as error:
            # A failed launch may come as any CUDA, torch or binding error; the context is not trusted after it.
            message = str(error).strip().splitlines()
            job.emit("failed", task, part="profile", message=message[0] if message else type(error).__name__)
            return EXIT_FAULT
        job.emit("launched", task)
    job.emit("finished")
    return 0


def appears(job_file: Path, *, run_directory: Path) -> bool:
    """Wait for the job; False if the collection of this run ends without having written one."""
    while not job_file.exists():
        if not collection_lives(run_directory):
            return job_file.exists()
        time.sleep(POLL_SECONDS)
    return True


def launch_profiled(task: Task, seed: int) -> None:
    """Launch a task's kernel once for warming up and once for the profiler; RuntimeError if a launch failed."""
    import torch

    from gemmprof.kernels.operators import run_stage

    stage = stage_by_number(task.stage, task.problem.dtype)
    device = torch.device("cuda", 0)
    own, run = generator_seed(seed, stage, task.problem), partial(run_stage, stage)
    launch = launches(task.problem, run, seed=own, device=device)
    launch()
    torch.cuda.synchronize(device)
    torch.cuda.profiler.start()
    torch.cuda.nvtx.range_push(nvtx_range(stage.name, task.problem))
    launch()
    torch.cuda.synchronize(device)
    torch.cuda.nvtx.range_pop()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
