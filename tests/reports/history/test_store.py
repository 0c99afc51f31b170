"""The store keeps what was recorded, whoever else writes and whenever a writer dies."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import in_process
import pytest
from recorded_data import DATA

from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.reports.history import store as history_store
from gemmprof.reports.history.store import HistoryError, HistoryStore

START = datetime(2026, 1, 1, tzinfo=UTC)

WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.reports.history import store as history_store
history_store.COMPACT_AFTER = 5
store = history_store.HistoryStore.open(sys.argv[1], create=True)
for run in range(int(sys.argv[3])):
    origin = Origin(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=run), commit=f"{sys.argv[2]}-{run}")
    store.add([Point(f"kernel {i}", "1x1x1", "H100", "timed", origin, 1.0 + run, 1.0, 2.0, 3) for i in range(20)])
    print(run, flush=True)
"""


def point(run: int, kernel: str = "k", **counters: float) -> Point:
    origin = Origin(START + timedelta(days=run), commit=f"c{run}", branch="main", machine="m", note="n")
    return Point(
        kernel, "2x1x1", "H100", "profiled", origin, 1000.0 + run, 900.0, 1100.0, 5,
        cycles=10.0, sm_clock_hz=1e9, tools="t", code="aa", counters=counters,
    )  # fmt: skip


def everything(store: HistoryStore) -> dict[tuple[str, str, str, str], list[Point]]:
    return store.points(store.series())


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    store = HistoryStore.open(tmp_path / "h", create=True)
    kept = [point(run, dram_read=5.0 + run) for run in range(6)]
    for one in reversed(kept):
        store.add([one])
    (found,) = store.points(store.series("^k$")).values()
    assert found == kept
    assert store.compact()
    (found,) = store.points(store.series("K")).values()
    assert found == kept
    (summary,) = store.series()
    assert (summary.count, summary.last_ns) == (6, 1005.0)
    assert store.points(store.series("other")) == {}


@pytest.mark.campaign
def test_many_writers_and_compactions_lose_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path / "h")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, folder, name, "12"], stdout=subprocess.DEVNULL)
        for name in "abc"
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    found = everything(HistoryStore.open(folder))
    assert len(found) == 20
    expected = sorted(f"{name}-{run}" for name in "abc" for run in range(12))
    for series in found.values():
        assert sorted(p.origin.commit for p in series) == expected


@pytest.mark.campaign
def test_a_killed_writer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path / "h")
    rng = random.Random(5)
    said: list[str] = []
    for attempt in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, folder, f"w{attempt}", "200"], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(rng.uniform(0.05, 0.6))
        writer.send_signal(signal.SIGKILL)
        said += [f"w{attempt}-{run}" for run in range(1 + len(writer.stdout.read().split()))]
        writer.wait()
    store = HistoryStore.open(folder)
    for series in everything(store).values():
        commits = [p.origin.commit for p in series]
        assert len(set(commits)) == len(commits)
        assert set(said) <= set(commits)
    store.compact()
    assert all(set(said) <= {p.origin.commit for p in series} for series in everything(store).values())


def test_what_a_killed_writer_left_is_cleared_and_what_one_is_writing_is_not(tmp_path: Path) -> None:
    store = HistoryStore.open(tmp_path, create=True)
    dead, alive = (
        store.folder / "records" / f".{name}.parquet.gemmprof-1.parquet" for name in ("compact-a", "b")
    )
    dead.write_bytes(b"PAR1")
    with alive.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store.add([point(0)])
    assert not dead.exists() and alive.exists()
    assert len(everything(store)) == 1


def test_a_full_disk_at_the_compaction_loses_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(history_store, "write_compacted", full)
    monkeypatch.setattr(history_store, "COMPACT_AFTER", 2)
    store = HistoryStore.open(tmp_path, create=True)
    assert all(store.add([point(run)]).exists() for run in range(3))
    assert len(everything(store)["k", "2x1x1", "H100", "profiled"]) == 3


@pytest.mark.parametrize("begun", ["records", ".history.json.gemmprof-1"])
def test_a_store_that_another_first_writer_begins_is_no_stranger(tmp_path: Path, begun: str) -> None:
    (tmp_path / begun).mkdir()
    HistoryStore.open(tmp_path, create=True).add([point(0)])
    assert len(everything(HistoryStore.open(tmp_path))) == 1


def test_refusals_name_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="holds no history"):
        HistoryStore.open(tmp_path / "none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(HistoryError, match="holds other files"):
        HistoryStore.open(tmp_path / "full", create=True)
    HistoryStore.open(tmp_path / "h", create=True)
    with pytest.raises(HistoryError, match="holds no record yet"):
        HistoryStore.open(tmp_path / "h").series()
    (tmp_path / "h" / "history.json").write_text('{"format": "gemmprof.history/9"}')
    with pytest.raises(HistoryError, match="another format"):
        HistoryStore.open(tmp_path / "h")


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    store = HistoryStore.open(tmp_path, create=True)
    file = store.add([point(0)])
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(HistoryError, match="damaged"):
        everything(store)


def gemmprof(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(DATA.parent.parent)}
    return in_process.run(
        [sys.executable, "-m", "gemmprof", "history", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_command_from_a_report_to_a_step(tmp_path: Path) -> None:
    report = str(DATA / "launches_same_kernel.ncu-rep.xz")
    done = gemmprof("record", report, "--commit", "abc", "--date", "2026-01-05", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = gemmprof("list", cwd=tmp_path)
    assert "2026-01-05" in listed.stdout
    alone = gemmprof("check", cwd=tmp_path)
    assert alone.returncode == 0 and "fewer than 13 runs" in alone.stdout, (
        "a check of nothing does not pass in silence"
    )
    assert "a step needs 13 runs" in gemmprof("show", ".", cwd=tmp_path).stdout
    store = HistoryStore.open(tmp_path / "gemmprof-history")
    for run in range(30):
        store.add([point(run * 10_000 if run >= 20 else run, "steady") for _ in range(1)])
    for run in range(30):
        slower = Point(
            "stepper", "1x1x1", "H100", "timed", Origin(START + timedelta(days=run), commit=f"c{run}"),
            1e6 * (1.2 if run >= 20 else 1.0) * (1 + 0.002 * (run % 3)), 1e6, 1e6, 5, code="b" if run >= 20 else "a",
        )  # fmt: skip
        store.add([slower])
    checked = gemmprof("check", "stepper", "--json", cwd=tmp_path)
    assert checked.returncode == 1, checked.stderr
    assert json.loads(checked.stdout)["too_short"] == 0
    (step,) = json.loads(checked.stdout)["steps"]
    assert step["commit"] == "c20" and step["causes"] == ["code"]
    assert step["ratio"] == pytest.approx(1.2, rel=0.01)
    assert gemmprof("check", "stepper", "--last", "5", cwd=tmp_path).returncode == 0
    shown = gemmprof("show", "stepper", "-o", "picture.html", cwd=tmp_path)
    assert shown.returncode == 0 and (tmp_path / "picture.html").stat().st_size > 1000
    assert "1.20× slower" in gemmprof("show", "stepper", cwd=tmp_path).stdout.replace("1.2×", "1.20×")
    nothing = gemmprof("show", "no such kernel", cwd=tmp_path)
    assert nothing.returncode == 2 and "fix:" in nothing.stderr
