"""Predictions are kept with the history, and scored where a kernel's next run lacks the finding."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import in_process
import pytest
from made_runs import make_run
from recorded_data import ROOT

from gemmprof.analysis.comparison.reasons import score
from gemmprof.analysis.history.recording import NONE, Kept, read, tally, written
from gemmprof.model import Finding

RECORDED = ROOT / "docs" / "examples" / "recorded"
WIDE = Finding("narrow_access", 0.2, 0.1, 0.3)
OTHER = Finding("spills", 0.5, 0.4, 0.6)


def kept(run: int, time_ns: float, *found: Finding, code: str = "", series: int = 1) -> Kept:
    day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=run)
    return Kept(series, day, time_ns, code or str(run), written(found))


def test_what_is_written_is_read() -> None:
    assert read(written((WIDE, OTHER))) == (WIDE, OTHER)
    assert read(written(())) == () and written(()) == NONE
    assert read(written(None)) is None
    for text in ("x", "x:1", "x:nan:0:1", "x:0.5:0.6:0.7", "x:2:0:3", ":0.5:0.4:0.6"):
        assert read(text) is None


def test_only_findings_that_are_gone_are_scored_and_together() -> None:
    assert score((WIDE,), (WIDE,), -0.2) is None
    found = score((WIDE, OTHER), (), -0.55)
    assert found is not None and found.causes == ("narrow_access", "spills")
    assert (found.predicted.saves, found.predicted.saves_low, found.predicted.saves_high) == pytest.approx(
        (0.6, 0.4, 0.72)
    )
    assert found.inside and found.words == "as predicted"
    assert score((WIDE,), (OTHER,), -0.5).words == "more than predicted"  # type: ignore[union-attr]
    assert score((WIDE,), (), 0.1).words == "less than predicted"  # type: ignore[union-attr]


def test_a_history_is_tallied_over_its_runs() -> None:
    runs = [kept(0, 100, WIDE), kept(1, 80), kept(2, 80, OTHER), kept(3, 75)]
    assert tally(runs).words == "of your last 2 predictions 1 lay inside"
    assert tally(runs, last=1).words == "your last prediction lay outside"
    # The same code is no fix, another series no next run.
    assert not tally([kept(0, 100, WIDE, code="a"), kept(1, 80, code="a")]).words
    assert not tally([kept(0, 100, WIDE), kept(1, 80, series=2)]).words


def test_record_check_and_diff_say_it(tmp_path: Path) -> None:
    environment = {**os.environ, "GEMMPROF_HISTORY": str(tmp_path / "kept")}

    def run(*words: str) -> str:
        return in_process.run(["gemmprof", *words], env=environment, check=True).stdout

    before, after = (str(RECORDED / f"{name}.ncu-rep.xz") for name in ("gelu", "gelu_fixed"))
    first = json.loads(run("history", "record", before, "--json"))
    assert first["predictions"] == {"scored": 0, "inside": 0}
    assert "your last prediction lay inside" in run("history", "record", after)
    assert "your last prediction lay inside" in run("history", "check")
    assert json.loads(run("history", "check", "--json"))["predictions"] == {"scored": 1, "inside": 1}
    assert "Your last prediction lay inside (history" in run("diff", before, after).replace("\n", " ")
    (tmp_path / "kept" / "history.json").write_text("damaged")
    assert "prediction lay" not in run("diff", before, after)


def test_a_runs_own_times_are_series_beside_its_launches(tmp_path: Path) -> None:
    """Stages that were timed without the profiler, in nanoseconds; one that was not timed, or failed, has no point."""
    environment = {**os.environ, "GEMMPROF_HISTORY": str(tmp_path / "kept")}
    made = make_run(tmp_path / "run", {1: 2e-3, 2: 1e-3, 3: None})
    in_process.run(["gemmprof", "history", "record", str(made)], env=environment, check=True)
    shown = in_process.run(
        ["gemmprof", "history", "show", "1024", "--json"], env=environment, check=True
    ).stdout
    times = {
        (one["kernel"], one["points"][0]["time_ns"])
        for one in json.loads(shown)["series"]
        if one["kind"] == "timed"
    }
    assert times == {("naive 1024x1024x1024", 2e6), ("coalesced 1024x1024x1024", 1e6)}
