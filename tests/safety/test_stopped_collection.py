"""A collection that is stopped at any moment: what it finished stays, nothing is half there, resuming completes it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from campaign import MARK, Campaign
from recorded_data import ROOT
from reports_in_bytes import content_of

from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.output import is_leftover
from gemmprof.runs.directory import load_run

HELPERS = ROOT / "tests" / "helpers"
pytestmark = pytest.mark.campaign

STAGES = (1, 2, 3)
SEED = int(os.environ.get("GEMMPROF_KILL_SEED", "5"))
KILLS = int(os.environ.get("GEMMPROF_KILLS", "3"))
"""Of each signal; a campaign sets more."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("machine")
    report = folder / "launches.ncu-rep"
    report.write_bytes(content_of("ladder_simple"))
    ncu = folder / "ncu"
    ncu.write_text(f'#!/bin/sh\nexec {sys.executable} {HELPERS / "slow_ncu.py"} "$@"\n')
    ncu.chmod(0o755)
    (folder / "plan").mkdir()
    (folder / "tmp").mkdir()
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(HELPERS)]),
        "FAKE_GPU_PLAN": str(folder / "plan"),
        "FAKE_GPU_SECONDS": "0.03",
        "SLOW_NCU": str(ncu),
        "SLOW_NCU_REPORT": str(report),
        "SLOW_NCU_SECONDS": "0.15",
        "TMPDIR": str(folder / "tmp"),
    }


def start(environment: dict[str, str], *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HELPERS / "collect_without_gpu.py"), *map(str, arguments)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def begin(environment: dict[str, str], run: Path) -> subprocess.Popen[str]:
    """A new collection, or the same one resumed."""
    if (run / "run.json").exists():
        return start(environment, "--resume", run)
    return start(environment, "--stage", f"1-{STAGES[-1]}", "--shape", "64", "--output", run)


def results(run: Path) -> dict[int, dict[str, Any]]:
    """What the run holds of each stage, report aside; {} if there is no run yet."""
    if not (run / "run.json").exists():
        return {}
    load_run(run)  # whole, or it raises
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return {
        result["stage"]: {name: result[name] for name in ("verification", "timing") if result[name]}
        for result in document["results"]
    }


def page_state(run: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (run / "report").glob("*") if path.is_file()}


def assert_complete(run: Path, wanted: dict[int, dict[str, Any]]) -> None:
    """Every stage measured and profiled, every report whole, and nothing that a stopped process left."""
    assert results(run) == wanted
    loaded = load_run(run)
    for result in loaded.results:
        assert result.failure is None and result.report
    for name, record in loaded.reports.items():
        with ReportReader(run / name) as reader:
            assert len(list(reader.profiles(source=False, units=False))) == record.launches
    assert not [path for path in run.rglob("*") if is_leftover(path)]
    assert not (run / ".stop").exists()
    assert any(run.rglob("index.html"))


@pytest.fixture(scope="module")
def undisturbed(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, float]:
    """What a collection that nobody stops holds, and how long it takes."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    started = time.monotonic()
    process = begin(environment, run)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    wanted = results(run)
    assert sorted(wanted) == list(STAGES) and all(len(parts) == 2 for parts in wanted.values())
    assert_complete(run, wanted)
    return wanted, time.monotonic() - started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_at_any_moment(
    number: int, environment: dict[str, str], undisturbed: tuple[Any, float], tmp_path: Path
) -> None:
    wanted, takes = undisturbed
    dice = random.Random(SEED + number)
    run, before, stopped, rounds = tmp_path / "run", {}, 0, 0
    while stopped < KILLS and rounds < 3 * KILLS:
        rounds += 1
        process = begin(environment, run)
        try:
            process.wait(dice.uniform(0.1, 1.0) * takes)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors, errors
        if number == signal.SIGKILL:
            assert process.returncode in (0, -number), errors
        else:
            # Before Python is ready to listen, it ends as the system has it.
            assert process.returncode in (0, 130, 128 + number, -number), errors
        now = results(run)
        for stage, parts in before.items():
            assert now[stage].items() >= parts.items(), "something that was finished is gone"
        for stage, parts in now.items():
            assert wanted[stage].items() >= parts.items()
        before = now
        if process.returncode:
            stopped += 1
        else:
            assert_complete(run, wanted)
            run, before = tmp_path / f"run{rounds}", {}
    assert stopped
    process = begin(environment, run)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert_complete(run, wanted)


def _is_helper(command: str) -> bool:
    return "collect_without_gpu" not in command


def test_its_helpers_killed_at_any_moment(
    environment: dict[str, str], undisturbed: tuple[Any, float], tmp_path: Path
) -> None:
    """The children that verify and time, ncu, and the readers of reports: each costs at most what it was at."""
    wanted, takes = undisturbed
    campaign = Campaign(SEED)
    environment = {**environment, MARK: campaign.mark}
    run, rounds = tmp_path / "run", 0
    try:
        while campaign.killed < KILLS and rounds < 2 * KILLS:
            rounds += 1
            process = begin(environment, run)
            while process.poll() is None and not any(map(_is_helper, campaign.processes().values())):
                time.sleep(0.01)
            time.sleep(campaign.dice.uniform(0.0, 0.2) * takes)
            campaign.hit(_is_helper, stop=0.3)
            _, errors = process.communicate(timeout=60)
            assert "Traceback" not in errors, errors
            assert process.returncode in (0, 1, 2), errors
            assert not campaign.orphans(), campaign.processes()
            for stage, parts in results(run).items():
                assert wanted[stage].items() >= parts.items()
            if process.returncode == 0:
                assert_complete(run, wanted)
                run = tmp_path / f"run{rounds}"
        assert campaign.killed + campaign.stopped
        process = begin(environment, run)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert_complete(run, wanted)
        assert not campaign.orphans(), campaign.processes()
    finally:
        campaign.end()
