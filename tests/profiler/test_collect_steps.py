"""A whole collection without a GPU: a helper plays the GPU's part, with the ways in which it fails."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_ladder import TINY

from gemmprof.errors import DeviceError
from gemmprof.gpus import Gpu
from gemmprof.kernels import build as build_module
from gemmprof.kernels import catalog
from gemmprof.model import Problem
from gemmprof.profiler import collect as collecting
from gemmprof.profiler import measuring
from gemmprof.profiler.settings import Settings
from gemmprof.progress import Silent
from gemmprof.run import load_run

GPU = Gpu(0, "H100", (9, 0), 80 << 30, "580", "GPU-0")
PROBLEM = Problem(64, 64, 64, "bfloat16")

HELPER = """
import json, os, sys
job = json.load(open(sys.argv[1]))
def emit(kind, task, **facts):
    with open(job["events"], "a") as file:
        file.write(json.dumps({"event": kind, "stage": task["stage"], "problem": task["problem"], **facts}) + "\\n")
for task in job["tasks"]:
    for part in ("verify", "time"):
        if not task[part]:
            continue
        emit("begin", task, part=part)
        if task["stage"] == FAULTS:
            os.abort()
        if part == "verify":
            emit("verified", task, verification={"relative_error": 1e-3, "tolerance": 4e-3, "passed": True})
        else:
            seconds = {name: 1e-3 for name in ("median", "minimum", "p10", "p90", "yardstick_median")}
            emit("timed", task, timing={**seconds, "repetitions": 5})
"""


@pytest.fixture
def play(tmp_path, monkeypatch):
    """``play(stages, faults)`` collects with a helper that dies at the stage of this number."""

    def start(stages, faults=-1, skipped=(), resume=False):
        script = tmp_path / "helper.py"
        script.write_text(HELPER.replace("FAULTS", str(faults)))
        built = SimpleNamespace(stages={}, compiled=(), failures={}, skipped=dict(skipped))
        monkeypatch.setattr(collecting, "check_machine", lambda **_: collecting.Machine(GPU, None))
        monkeypatch.setattr(build_module, "build", lambda **_: built)
        monkeypatch.setattr(measuring, "python_command", lambda _: [sys.executable, str(script)])
        monkeypatch.setattr(catalog, "LADDERS", (catalog.SINGLE, TINY))
        settings = Settings(tuple(stages), (PROBLEM,), profile=False)
        return collecting.collect(settings, tmp_path / "run", resume=resume, progress=Silent())

    return start


def test_every_stage_is_verified_and_timed_and_one_for_another_gpu_is_left_out(play, tmp_path: Path) -> None:
    run = play(TINY.stages, skipped={"tiny_hopper": "it is written for sm_90a, this is sm_80"})
    assert load_run(tmp_path / "run") == run
    assert [(r.stage, r.verification.passed, r.timing.of_yardstick) for r in run.results] == [
        (0, True, 1.0),
        (1, True, 1.0),
    ]
    assert run.info.notes["skipped"] == {"tiny_hopper": "it is written for sm_90a, this is sm_80"}
    assert set(run.info.notes["seconds"]) == {"build", "verify and time"}


def test_a_stage_that_takes_its_helper_along_costs_no_other_and_is_tried_again(play) -> None:
    run = play(TINY.stages, faults=1)
    failures = {result.stage: result.failure for result in run.results}
    assert failures == {0: None, 1: "measure: the program ended with signal 6", 2: None}
    run = play(TINY.stages, resume=True)
    assert all(result.failure is None and result.timing is not None for result in run.results)


def test_nothing_that_runs_here(play) -> None:
    with pytest.raises(DeviceError, match="no stage that was chosen runs on this GPU"):
        play(TINY.stages[2:], skipped={"tiny_hopper": "it is written for sm_90a, this is sm_80"})
