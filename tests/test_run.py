"""The run directory: what is written is read back, a kill leaves the old or the new file, damage is said."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gemmprof.base.errors import RunError, UsageError
from gemmprof.base.output import write_new
from gemmprof.model import Problem, RunInfo, Stage, StageRecord, StageResult, Timing, Verification
from gemmprof.runs.directory import (
    RUN_FILE,
    Run,
    load_run,
    newest_run_directory,
    nvtx_range,
    runs_directory,
    save_run,
)

CUBE, FLAT = Problem(64, 64, 64), Problem(7, 1, 0)
NAIVE = Stage(1, "naive", "Naive", "One thread an output.", "naive.cu", {"BLOCK": 32}, {"b16": {"BLOCK": 16}})
CUBLAS = Stage(0, "cublas", "cuBLAS", "The yardstick.")


def a_run(directory: Path) -> Run:
    info = RunInfo(
        created="2026-01-02T03:04:05+00:00",
        device="NVIDIA H100 80GB HBM3",
        compute_capability=(9, 0),
        versions={"ncu": "2025.3.1"},
        clock_control="none",
        seed=7,
        metric_set="lean",
        command="gemmprof collect --all-stages",
        notes={"options": {"extra_metrics": ["a", "b"]}, "seconds": {"build": 0.5}},
    )
    run = Run(directory, info, (StageRecord(CUBLAS), StageRecord(NAIVE, "abc", 32, 0, 0)), (CUBE, FLAT))
    run = run.with_result(
        StageResult(
            1,
            CUBE,
            Verification(1e-7, 2e-6, True),
            Timing(2e-3, 1.9e-3, 1.95e-3, 2.2e-3, 20, 1980.0, 1e-4),
            "reports/profile-01.ncu-rep",
            3,
        )
    )
    wrong = Verification(math.nan, 2e-6, False, "C holds NaN")
    return run.with_result(StageResult(0, FLAT, wrong, failure="bad\nvery"))


def test_a_saved_run_is_read_back_whole(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    text = save_run(run).read_text()
    again = load_run(tmp_path)
    assert save_run(again).read_text() == text
    assert again.info == run.info and again.problems == run.problems
    assert again.result(1, CUBE) == run.result(1, CUBE)
    assert again.info.compute_capability == (9, 0)
    assert again.record(1).stage.variants == {"b16": {"BLOCK": 16}}
    assert again.result(0, FLAT).failure == "bad\nvery"
    assert math.isnan(again.result(0, FLAT).verification.relative_error)
    assert load_run(tmp_path / RUN_FILE).info == run.info


def test_a_newer_result_takes_the_place_of_the_older_one(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run = run.with_result(dataclasses.replace(run.result(1, CUBE), failure="again"))
    assert [r.failure for r in run.results if r.stage == 1] == ["again"]
    assert run.result(1, CUBE).report == "reports/profile-01.ncu-rep"


def test_results_are_ordered_by_problem_then_stage(tmp_path: Path) -> None:
    run = a_run(tmp_path).with_result(StageResult(0, CUBE)).with_result(StageResult(1, FLAT))
    assert [(r.problem, r.stage) for r in run.results] == [(CUBE, 0), (CUBE, 1), (FLAT, 0), (FLAT, 1)]


def test_report_paths_names_each_report_once(tmp_path: Path) -> None:
    run = a_run(tmp_path).with_result(StageResult(0, CUBE, report="reports/profile-01.ncu-rep"))
    assert run.report_paths() == (tmp_path / "reports/profile-01.ncu-rep",)


def test_a_stage_that_the_run_lacks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no stage 9"):
        a_run(tmp_path).record(9)
    assert a_run(tmp_path).result(9, CUBE) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "format version None"),
        ('{"format_version": 99}', "format version 99"),
        ('{"format_version": 1}', "format version 1;"),
        ('{"format_version": 2}', "is damaged"),
        ('{"format_version": 2, "info": {}, "stages": [], "problems": [], "results": []}', "is damaged"),
    ],
)
def test_a_damaged_run_is_an_error_and_not_a_traceback(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / RUN_FILE).write_text(text)
    with pytest.raises(RunError, match=message):
        load_run(tmp_path)


def test_a_result_with_an_unknown_field_is_damage(tmp_path: Path) -> None:
    save_run(a_run(tmp_path))
    document = json.loads((tmp_path / RUN_FILE).read_text())
    document["results"][0]["surprise"] = 1
    (tmp_path / RUN_FILE).write_text(json.dumps(document))
    with pytest.raises(RunError, match="is damaged"):
        load_run(tmp_path)


def test_a_folder_without_a_run_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run directory") as caught:
        load_run(tmp_path)
    assert "gemmprof collect" in caught.value.remedies[0]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_new(path, "old", durable=True)
    with pytest.raises(UnicodeEncodeError):
        write_new(path, "new \udcff", durable=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_is_readable_by_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_new(tmp_path / "file", "text", durable=True)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


WRITER = """
import dataclasses, itertools, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_run import CUBE, a_run
from gemmprof.runs.directory import save_run
run = a_run(Path(sys.argv[1]))
for count in itertools.count():
    failure = str(count) * 20000
    save_run(run.with_result(dataclasses.replace(run.result(1, CUBE), failure=failure)))
    if count == 0:
        print("writing", flush=True)
"""


@pytest.mark.parametrize("delay", [0.01, 0.037, 0.08])
def test_a_kill_during_writing_leaves_a_whole_run(tmp_path: Path, delay: float) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None and writer.stdout.readline() == "writing\n"
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    failure = load_run(tmp_path).result(1, CUBE).failure
    count = failure[: len(failure) // 20000]
    assert failure == count * 20000
    assert int(count) >= 0


def test_the_newest_run_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMPROF_RUNS", str(tmp_path / "runs"))
    assert runs_directory() == tmp_path / "runs"
    assert newest_run_directory() is None
    for age, name in enumerate(["first", "second", "third"]):
        save_run(a_run(tmp_path / "runs" / name))
        os.utime(tmp_path / "runs" / name / RUN_FILE, (1000 + age, 1000 + age))
    (tmp_path / "runs" / "no-run").mkdir()
    os.utime(tmp_path / "runs" / "first" / RUN_FILE, (5000, 5000))
    assert newest_run_directory() == tmp_path / "runs" / "first"


def test_the_nvtx_range_names_stage_and_shape() -> None:
    assert nvtx_range("naive", Problem(1, 2, 3)) == "gemmprof/naive/1x2x3"


@pytest.mark.parametrize(
    "problem",
    [
        Problem(1, 2, 3),
        Problem(4096, 4096, 4096, "bfloat16"),
        Problem(5, 6, 7, "float16", "float32"),
    ],
)
def test_a_problem_is_read_from_its_key(problem: Problem) -> None:
    assert Problem.parse(problem.key) == problem
    assert Problem.parse(problem.key, "float16") == (
        problem if problem.dtype != "float32" else Problem(1, 2, 3, "float16")
    )
    assert Problem.parse("8-bfloat16").label == "8³ bfloat16"
    with pytest.raises(UsageError, match="is not a matrix shape"):
        Problem.parse("8-int8")
