"""Ctrl-C with a cluster: the first one keeps what workers have begun, the second one leaves at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept import own_cache
from recorded_data import ROOT

pytest.importorskip("distributed")


@pytest.fixture
def gpus(farm) -> Iterator[Path]:
    """The plans of GPUs 0 and 1, whose logs are empty."""
    plan = farm.folder / "gpus"
    for log in plan.glob("*.log"):
        log.unlink()
    yield plan
    for gpu in (0, 1):
        (plan / f"GPU-{gpu}").write_text("")


def begin(farm, cache: Path, *arguments: str, delay: float = 0.0) -> subprocess.Popen[str]:
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "helpers")))
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "helpers" / "on_farm.py"), *arguments, "--cluster", farm.address],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": paths, "GEMMPROF_CACHE": str(own_cache(cache)), "ON_FARM_DELAY": str(delay)},
    )  # fmt: skip


def answered(gpus: Path) -> int:
    """How many requests the played GPUs have answered."""
    return sum(len(log.read_text().splitlines()) for log in gpus.glob("*.log"))


def wait_until(holds, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.02)


def interrupted(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors, errors
    return errors


@pytest.mark.campaign
def test_a_search_keeps_every_candidate_that_a_worker_had_begun(farm, gpus: Path, tmp_path: Path) -> None:
    for gpu in (0, 1):
        (gpus / f"GPU-{gpu}").write_text("slow")
    process = begin(farm, tmp_path, "tune", "--stage", "5", "--shape", "64", "--limit", "40")
    wait_until(lambda: answered(gpus) >= 3, process)
    assert "after the candidates at hand" in interrupted(process)
    (journal,) = (tmp_path / "tuning").iterdir()
    kept = journal.read_text().splitlines()
    assert 3 < len(kept) < 40
    assert len(kept) == answered(gpus), "a candidate was measured and not kept"


def parts(run: Path) -> int:
    document = json.loads((run / "run.json").read_text())
    return sum(bool(result[part]) for result in document["results"] for part in ("verification", "timing"))


@pytest.mark.campaign
@pytest.mark.parametrize("delay", [0.0, 0.7])
def test_a_collection_keeps_every_part_that_a_worker_had_begun(
    farm, gpus: Path, tmp_path: Path, delay: float
) -> None:
    """However long it takes until the workers hear of it: requests end and begin meanwhile."""
    run = tmp_path / "run"
    arguments = [
        "--ladder",
        "tiny",
        "--all-stages",
        "--shape",
        "32",
        "--shape",
        "64",
        "--no-profile",
        "--no-report",
    ]
    for gpu in (0, 1):
        (gpus / f"GPU-{gpu}").write_text("slow")
    process = begin(farm, tmp_path, "collect", *arguments, "-o", str(run), delay=delay)
    wait_until(lambda: answered(gpus) >= 1, process)
    interrupted(process)
    kept = parts(run)
    assert 1 <= kept == answered(gpus)
    for gpu in (0, 1):
        (gpus / f"GPU-{gpu}").write_text("")
    process = begin(farm, tmp_path, "collect", "--no-report", "--resume", str(run))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "(1 of" not in errors and not list((run / "reports").glob("*")), "--no-profile was forgotten"
    assert parts(run) == answered(gpus) > kept, "something was measured twice"


def test_a_collection_goes_on_with_the_scheduler_that_comes(farm, gpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ["--ladder", "tiny", "--all-stages", "--shape", "32", "--no-profile", "--no-report"]
    for gpu in (0, 1):
        (gpus / f"GPU-{gpu}").write_text("slow")
    process = begin(farm, tmp_path, "collect", *arguments, "-o", str(run), "--wait", "100")
    wait_until(lambda: answered(gpus) >= 1, process)
    farm.kill_scheduler()
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert "the cluster's scheduler is gone; waiting for it" in errors and "Traceback" not in errors
    document = json.loads((run / "run.json").read_text())
    assert all(result["verification"] and result["timing"] for result in document["results"])


@pytest.mark.campaign
def test_a_search_goes_on_with_the_scheduler_that_comes(farm, gpus: Path, tmp_path: Path) -> None:
    for gpu in (0, 1):
        (gpus / f"GPU-{gpu}").write_text("slow")
    arguments = ["--stage", "5", "--shape", "64", "--limit", "6"]
    process = begin(farm, tmp_path, "tune", *arguments, "--wait", "100")
    wait_until(lambda: answered(gpus) >= 1, process)
    farm.kill_scheduler()
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert "the cluster's scheduler is gone; waiting for it" in errors and "Traceback" not in errors


@pytest.mark.campaign
def test_a_second_time_it_leaves_at_once(farm, gpus: Path, tmp_path: Path) -> None:
    for gpu in (0, 1):
        (gpus / f"GPU-{gpu}").write_text("hang")
    process = begin(farm, tmp_path, "tune", "--stage", "5", "--shape", "64", "--limit", "40")
    wait_until(lambda: not any((gpus / f"GPU-{gpu}").read_text() for gpu in (0, 1)), process)
    process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    assert process.poll() is None
    started = time.monotonic()
    interrupted(process)
    assert time.monotonic() - started < 12
    # The children that still hang are killed with their workers; the next ones must not wait for them.
    for gpu in (0, 1):
        farm.kill(gpu)
        farm.start(gpu)


@pytest.mark.campaign
def test_profiles_that_are_being_made_are_kept(farm, gpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ["--ladder", "tiny", "--all-stages", "--shape", "32", "--no-bench", "--no-report"]
    process = begin(farm, tmp_path, "collect", *arguments, "-o", str(run))
    wait_until(lambda: list(farm.folder.glob("gemmprof-pass-*/logs/*.job.json")), process)
    interrupted(process)
    reports = [result["report"] for result in json.loads((run / "run.json").read_text())["results"]]
    assert any(reports)
    assert all((run / report).exists() for report in reports if report)
    assert not list(farm.folder.glob("gemmprof-pass-*"))
    process = begin(farm, tmp_path, "collect", *arguments, "--resume", str(run))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
