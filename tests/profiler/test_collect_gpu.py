"""The whole collection on a real GPU: end to end, killed and resumed, interrupted, with a kernel that is wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gemmprof as gemmprof_package
from gemmprof.analysis.session import load_session
from gemmprof.kernels.catalog import LADDERS
from gemmprof.runs.directory import Run, load_run

pytestmark = pytest.mark.gpu

SHAPE = ("--shape", "257x129x65")


def gemmprof(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gemmprof", *arguments], capture_output=True, text=True, check=False
    )


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gemmprof", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], text: str) -> list[str]:
    """Read the process' progress up to the line that begins with ``text``."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(text):
            return lines
    raise AssertionError(f"no line {text!r} in {''.join(lines)}")


def assert_complete(run: Run) -> None:
    """Every stage on every problem is verified, timed and profiled, and its launch is found in its report."""
    pairs = {(r.stage.number, p) for p in run.problems for r in run.stages if p.dtype in r.stage.dtypes}
    assert {(result.stage, result.problem) for result in run.results} == pairs
    session = load_session([run.directory])
    for result in run.results:
        assert result.failure is None
        assert result.verification is not None and result.verification.passed
        assert result.timing is not None and result.timing.yardstick_median is not None
        kernel = session.kernel_for(result)
        assert kernel is not None
        name = run.record_of(result).stage.name
        assert kernel.profile.nvtx == (f"gemmprof/{name}/{result.problem.key}",)
        assert kernel.profile.source.files or name == "cublas"


@pytest.mark.long(seconds=130)
def test_collect_end_to_end_and_a_second_time_with_nothing_to_do(tmp_path: Path) -> None:
    done = gemmprof("collect", "--all-stages", *SHAPE, "--output", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["rows"]) == sum(len(ladder.stages) for ladder in LADDERS)
    assert all(row["limited_by"] and row["tflops"] > 0 for row in answer["rows"])
    compared = [row["of_cublas"] for row in answer["rows"] if row["stage"] != 0]
    assert min(compared) > 0
    assert Path(answer["pages"]).is_file()
    run = load_run(tmp_path / "run")
    assert_complete(run)
    text = (tmp_path / "run" / "run.json").read_text()
    again = gemmprof("collect", "--resume", str(tmp_path / "run"), "--no-report", "--json")
    assert again.returncode == 0, again.stderr
    assert load_run(tmp_path / "run").results == run.results
    assert json.loads(text)["results"] == json.loads((tmp_path / "run" / "run.json").read_text())["results"]
    new = gemmprof("collect", "--all-stages", "--output", str(tmp_path / "run"))
    assert new.returncode == 2 and "--resume" in new.stderr
    other = gemmprof("collect", "--resume", str(tmp_path / "run"), "--seed", "9")
    assert other.returncode == 2 and "--seed" in other.stderr


@pytest.mark.long(seconds=80)
@pytest.mark.parametrize("moment", ["verify shared", "time block1d", "profile coalesced"])
def test_kill_9_loses_no_finished_stage(tmp_path: Path, moment: str) -> None:
    run = tmp_path / "run"
    process = start("collect", "--stage", "0-5", "--shape", "256", "--output", str(run), "--no-report")
    wait_for(process, moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = load_run(run)
    resumed = gemmprof("collect", "--resume", str(run), "--no-report")
    assert resumed.returncode == 0, resumed.stderr
    after = load_run(run)
    assert_complete(after)
    for result in before.results:
        kept = after.result(result.stage, result.problem)
        assert kept is not None
        assert result.verification in (None, kept.verification)
        assert result.timing in (None, kept.timing)


@pytest.mark.long(seconds=80)
def test_a_killed_ncu_costs_no_stage(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("collect", "--stage", "0-5", "--shape", "1024", "--output", str(run), "--no-report")
    wait_for(process, "profile naive")
    listed = subprocess.run(
        ["pgrep", "-f", f"target/.*ncu.*{run}"], capture_output=True, text=True, check=False
    )
    for pid in listed.stdout.split():
        subprocess.run(["kill", "-9", pid], check=False)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert_complete(load_run(run))


@pytest.mark.long(seconds=50)
def test_ctrl_c_keeps_what_is_finished_and_resume_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start("collect", "--stage", "0-5", "--shape", "256", "--output", str(run), "--no-report")
    wait_for(process, "profile naive")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "--resume" in errors
    profiled = [result.stage for result in load_run(run).results if result.report is not None]
    assert profiled[:2] == [0, 1]
    assert gemmprof("collect", "--resume", str(run), "--no-report").returncode == 0
    assert_complete(load_run(run))


def test_without_bench_and_profile_only_the_verification_is_made(tmp_path: Path) -> None:
    done = gemmprof(
        "collect",
        "--stage",
        "naive",
        "--shape",
        "64",
        "--no-bench",
        "--no-profile",
        "-o",
        str(tmp_path / "run"),
    )
    assert done.returncode == 0, done.stderr
    (result,) = load_run(tmp_path / "run").results
    assert result.verification is not None and result.timing is None and result.report is None


def test_timing_spends_about_its_budget(tmp_path: Path) -> None:
    started = time.monotonic()
    done = gemmprof(
        "collect", "--stage", "naive", "--shape", "4096", "--no-profile", "-o", str(tmp_path / "run")
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60


@pytest.mark.long(seconds=40)
def test_a_kernel_that_faults_and_one_that_is_wrong_cost_no_other_stage(tmp_path: Path) -> None:
    """A copy of gemmprof whose naive kernel traps and whose coalesced kernel forgets the last column."""
    home = Path(gemmprof_package.__file__).parent
    shutil.copytree(home, tmp_path / "gemmprof", ignore=shutil.ignore_patterns("recorded", "__pycache__"))
    sources = tmp_path / "gemmprof" / "kernels" / "sgemm"
    for name, extra in (("naive", "if (K == 65) __trap();"), ("coalesced", "if (col == N - 1) return;")):
        file = sources / f"{name}.cu"
        text = file.read_text()
        check = "if (row >= M || col >= N) return;"
        assert text.count(check) == 1
        file.write_text(text.replace(check, f"{check} {extra}"))
    run = tmp_path / "run"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gemmprof",
            "collect",
            "--stage",
            "0-3",
            *SHAPE,
            "-o",
            str(run),
            "--no-report",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    )
    assert done.returncode == 1, done.stderr
    results = {result.stage: result for result in load_run(run).results}
    assert "verify" in (results[1].failure or "") and results[1].report is None
    assert "never written" in (results[2].failure or "") and results[2].report is None
    for stage in (0, 3):
        assert results[stage].failure is None
        assert results[stage].timing is not None and results[stage].report is not None
