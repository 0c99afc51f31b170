"""The profiled program waits for its job as long as its collection lives, and no longer."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from profiler_fakes import a_job

from gemmprof.model import Problem
from gemmprof.profiler.job import Job, Task, collecting
from gemmprof.profiler.workload import appears

TASKS = [Task(1, Problem(64, 64, 64))]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def test_a_job_that_comes_later_is_seen_whole(run: Path) -> None:
    job_file = run / "logs" / "profile-01.job.json"
    job = a_job(run, TASKS)
    with collecting(run):
        later = threading.Timer(0.3, job.save, [job_file])
        later.start()
        assert appears(job_file, run_directory=run)
        assert Job.load(job_file) == job
        later.join()


def test_without_a_collection_there_is_nothing_to_wait_for(run: Path) -> None:
    started = time.monotonic()
    assert not appears(run / "logs" / "profile-01.job.json", run_directory=run)
    assert time.monotonic() - started < 5


def test_the_program_ends_when_its_collection_is_gone(run: Path) -> None:
    pytest.importorskip("torch")
    with collecting(run):
        program = subprocess.Popen(
            [sys.executable, "-m", "gemmprof.profiler.workload", str(run / "logs" / "profile-01.job.json")]
        )
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(8)
    assert program.wait(60) == 0
    assert not (run / "logs" / "profile-01.events.jsonl").exists()
