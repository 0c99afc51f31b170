"""Histories and data sets while their writers are killed and stopped at random: nothing is lost, doubled or left.

``GEMMPROF_KILLS`` says how many are hit (a few by default, more in a campaign), ``GEMMPROF_KILL_SEED`` the dice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign import Campaign
from recorded_data import DATA, ROOT

from gemmprof.base.output import is_leftover
from gemmprof.reports.dataset.manifest import load_contents
from gemmprof.reports.history.store import HistoryStore

KILLS = int(os.environ.get("GEMMPROF_KILLS", "8"))
SEED = int(os.environ.get("GEMMPROF_KILL_SEED", "7"))
WRITERS = 8

WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.reports.history import store as history_store
history_store.COMPACT_AFTER = 5
history_store.BIN_ROWS = 64
store = history_store.HistoryStore.open(sys.argv[1], create=True)
said = Path(sys.argv[3]).open("a")
for run in range(int(sys.argv[4])):
    commit = f"{sys.argv[2]}-{run}"
    origin = Origin(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=run), commit=commit)
    store.add([Point(f"kernel {i}", "1x1x1", "H100", "timed", origin, 1.0 + run, 1.0, 2.0, 3) for i in range(20)])
    said.write(commit + "\\n")
    said.flush()
"""


@pytest.fixture
def campaign() -> Iterator[Campaign]:
    found = Campaign(SEED)
    found.environment["PYTHONPATH"] = str(ROOT)
    yield found
    found.end()


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if is_leftover(path)]


@pytest.mark.campaign
def test_eight_writers_of_a_history_that_are_killed_and_stopped(campaign: Campaign, tmp_path: Path) -> None:
    store, said = tmp_path / "history", tmp_path / "said"
    writers: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        name = f"w{campaign.killed}-{len(writers)}"
        arguments = [sys.executable, "-c", WRITER, str(store), name, str(said / name), "400"]
        writers.append(subprocess.Popen(arguments, env=campaign.environment))

    said.mkdir()
    for _ in range(WRITERS):
        begin()
    while not any(path.stat().st_size for path in said.iterdir()):
        time.sleep(0.05)
    while campaign.killed + campaign.stopped < KILLS:
        time.sleep(campaign.dice.uniform(0.05, 0.4))
        campaign.hit(stop=0.4)
        while sum(writer.poll() is None for writer in writers) < WRITERS:
            begin()
    campaign.end()
    assert not campaign.orphans()
    for writer in writers:
        writer.wait()
    whole = HistoryStore.open(store)
    expected = {line for path in said.iterdir() for line in path.read_text().split("\n") if line}
    assert expected
    kept = whole.points(whole.series())
    for series in kept.values():
        commits = [point.origin.commit for point in series]
        assert len(commits) == len(set(commits)), "a record counts twice"
        assert expected <= set(commits), "a record that was kept is gone"
    whole.add([next(iter(kept.values()))[0]])  # the next writer clears away what the killed ones left
    assert whole.compact()
    assert not leftovers(store)


def rows(folder: Path) -> pa.Table:
    """Every launch that a data set holds, its parts aside."""
    held: dict[str, list[str]] = {}
    for report, entry in load_contents(folder).reports.items():
        assert not entry.error, entry
        held.setdefault(entry.part, []).append(report)
    for room in ("parts", "metrics"):
        assert held.keys() <= {path.name for path in (folder / room).glob("[!.]*")}
    # A reader that was killed behind its manifest was asked again, and another part holds some of its reports.
    tables = [
        pq.read_table(folder / "parts" / part, filters=[("report", "in", reports)])
        for part, reports in sorted(held.items())
    ]
    order = [("report", "ascending"), ("launch", "ascending")]
    return pa.concat_tables(tables, promote_options="permissive").sort_by(order)


def _is_reader(command: str, wanted: bool) -> bool:
    return ("gemmprof.reports.dataset.rows" in command) == wanted


def export_dataset(campaign: Campaign, reports: Path, target: Path) -> subprocess.Popen[str]:
    """Begin to write a data set of the folder's reports."""
    return subprocess.Popen(
        [sys.executable, "-m", "gemmprof", "export", str(reports), "--format", "dataset", "--no-findings",
         "-o", str(target)],
        env=campaign.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_report_whose_reader_is_killed_once_is_not_to_blame(campaign: Campaign, tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    shutil.copy(DATA / "launches_same_kernel.ncu-rep.xz", tmp_path / "reports")
    process = export_dataset(campaign, tmp_path / "reports", tmp_path / "set")
    campaign.hit(partial(_is_reader, wanted=True))
    _, errors = process.communicate(timeout=120)
    assert campaign.killed == 1
    assert process.returncode == 0, errors
    assert rows(tmp_path / "set").num_rows > 0


@pytest.mark.campaign
def test_a_data_set_whose_readers_and_writer_are_killed(campaign: Campaign, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    for number in range(12):
        folder = reports / f"night-{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(DATA / "launches_same_kernel.ncu-rep.xz", folder / f"{number}.ncu-rep.xz")

    begin = partial(export_dataset, campaign, reports)
    undisturbed = begin(tmp_path / "undisturbed")
    _, errors = undisturbed.communicate(timeout=120)
    assert undisturbed.returncode == 0, errors
    wanted = rows(tmp_path / "undisturbed")
    target, rounds = tmp_path / "disturbed", 0
    while campaign.killed < (KILLS + 1) // 2 and rounds < 2 * KILLS:
        rounds += 1
        process = begin(target)
        time.sleep(campaign.dice.uniform(0.3, 2.0))
        # Half of the time a reader, which costs nothing; else everything, whose work is done again.
        readers = campaign.dice.random() < 0.5
        campaign.hit(partial(_is_reader, wanted=readers), stop=0.2)
        try:
            _, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it waits for ever: {campaign.processes()}")
        assert process.returncode in (0, -9), errors
        assert "Traceback" not in errors, errors
        assert not campaign.orphans(), campaign.processes()
        if process.returncode == 0:
            assert rows(target).equals(wanted)
            shutil.rmtree(target)
    process = begin(target)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert rows(target).equals(wanted)
    assert not leftovers(target)
