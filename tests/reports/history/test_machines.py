"""With ``--machine`` every machine has its own series: two cards of one model differ by some per cent."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import in_process
import pytest
from recorded_data import ROOT

from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.analysis.history.recording import card_on
from gemmprof.reports.history.store import HistoryStore

GELU = str(ROOT / "docs" / "examples" / "recorded" / "gelu.ncu-rep.xz")


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GEMMPROF_HISTORY": str(folder / "kept")}
    done = in_process.run(["gemmprof", "history", *words], env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_each_machine_is_a_series_and_so_is_none(tmp_path: Path) -> None:
    for machine in ("ci-7", "ci-7", "ci-8", ""):
        run(tmp_path, "record", GELU, *(("--machine", machine) if machine else ()))
    series = json.loads(run(tmp_path, "list", "--json"))["series"]
    device = next(one["device"] for one in series if " on " not in one["device"])
    assert {one["device"]: one["runs"] for one in series} == {
        device: 1,
        f"{device} on ci-7": 2,
        f"{device} on ci-8": 1,
    }
    shown = json.loads(run(tmp_path, "show", "gelu", "--device", f"{device} on ci-7", "--json"))["series"]
    assert [len(one["points"]) for one in shown] == [2]
    # The card's name alone means it on every machine.
    assert len(json.loads(run(tmp_path, "show", "gelu", "--device", device, "--json"))["series"]) == 3


@pytest.mark.parametrize("named", [True, False])
def test_a_job_that_moves_to_another_machine_is_no_step(named: bool, tmp_path: Path) -> None:
    points = []
    for night in range(60):
        machine = ("ci-7", "ci-8")[night // 30]
        time = 1e5 * (1.03 if machine == "ci-8" else 1.0) * (1 + 0.001 * (night * 7 % 5))
        origin = Origin(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=night), machine=machine)
        card = card_on("H200", machine if named else "")
        points.append(Point("softmax(float *)", "8x1x1", card, "profiled", origin, time, time, time, 1))
    HistoryStore.open(tmp_path / "kept", create=True).add(points)
    found = json.loads(run(tmp_path, "check", "--json"))
    assert found["kernels"] == (2 if named else 1)
    assert bool(found["steps"]) is not named
    page = tmp_path / "page.html"
    run(tmp_path, "show", "softmax", "-o", str(page))
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"H200 on ci-[78]", re.sub(r"<title>.*?</title>", "", text))) >= (2 if named else 0)
