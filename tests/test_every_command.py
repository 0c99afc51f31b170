"""What holds for every command: tables obey COLUMNS, a reader may leave, errors can be JSON, typos are told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import in_process
import pytest
from recorded_data import DATA, ROOT
from scale import few

from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.reports.history.store import HistoryStore

ATOMICS, SAME = f"{DATA}/flaws_atomics.ncu-rep.xz", f"{DATA}/launches_same_kernel.ncu-rep.xz"
TABLES = (
    "stages",
    "doctor",
    f"show {ATOMICS} --all",
    f"show {DATA}/names_templates.ncu-rep.xz",
    f"explain {ATOMICS}",
    f"roofline {ATOMICS}",
    f"diff {ATOMICS} {SAME}",
    "baseline list",
    "baseline show main",
    f"find time>1us&&registers>8 {SAME}".replace("&&", " and "),
    "find --names",
    "history list",
    "history show k",
    "history check",
    "occupancy --regs 37 --smem 8192 --threads 1024",
    f"occupancy {ATOMICS}",
    "tune --stage 9 --constraints",
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a baseline and a history of long names."""
    folder = tmp_path_factory.mktemp("here")
    name = "void attention::forward_kernel<cutlass::half_t, 128, 64, true>(attention::Parameters const)"
    store = HistoryStore.open(folder / "gemmprof-history", create=True)
    points = []
    for run in range(40):
        origin = Origin(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=run), f"commit{run}")
        time = 1e6 * (1.3 if run >= 20 else 1.0) * (1 + 0.001 * (run % 3))
        points.append(Point(name, "128x64x1", "NVIDIA H100 80GB HBM3", "timed", origin, time, time, time, 3))
    store.add(points)
    assert run_in(folder, ["baseline", "save", "main", SAME]).returncode == 0
    return folder


def words_of(line: str) -> list[str]:
    """The words of a line; the condition of ``find`` is one."""
    if line.startswith("find time"):
        condition, _, rest = line.removeprefix("find ").rpartition(" ")
        return ["find", condition, rest]
    return line.split()


def run_in(folder: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return in_process.run(
        [sys.executable, "-m", "gemmprof", *words],
        capture_output=True, text=True, cwd=folder, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.mark.parametrize("line", TABLES)
def test_sixty_columns_are_enough(line: str, here: Path) -> None:
    done = run_in(here, words_of(line), COLUMNS="60")
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    assert lines and max(map(len, lines)) <= 60
    assert not re.search(r"\w…( |$)", "\n".join(lines), re.MULTILINE), "a cell was cut"


@pytest.mark.parametrize("line", few(TABLES, [TABLES[0], TABLES[6]]))
def test_a_reader_that_leaves_is_no_failure(line: str, here: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gemmprof", *words_of(line)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=120) in (0, 1), told
    assert "Traceback" not in told and "Broken pipe" not in told


@pytest.mark.parametrize(
    "line",
    [
        "explain none.ncu-rep --json",
        "show none.ncu-rep --json",
        "report none.ncu-rep --json",
        f"report {SAME} --json -o /proc/none/pages",
        "roofline none.ncu-rep --json",
        "occupancy none.ncu-rep --json",
        "occupancy --regs 0 --threads 64 --json",
        "diff none.ncu-rep other.ncu-rep --json",
        "baseline show none --json",
        "baseline list --jsn --json",
        "find time>>1 . --json",
        f"find tme>1us {SAME} --json",
        "history list --store none --json",
        "history show none --json",
        "history check ( --json",
        "history shw --json",
        f"history record {SAME} --date yesterday --json",
        "stages --ladder none --json",
        "tune --stage none --constraints --json",
        "profile --json -- ./none",
        "collect --stage none --json",
        "doctor --jso --json",
    ],
)
def test_errors_under_json_are_json(line: str, here: Path) -> None:
    done = run_in(here, line.split())
    assert done.returncode == 2, done.stderr
    found = json.loads(done.stdout)
    assert found["format"] == "gemmprof.error/1" and found["message"]
    assert found["command"].split()[0] == line.split()[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("histroy", "did you mean history?"),
        ("history shw", "did you mean show?"),
        ("history show attenton::forward", "did you mean 'attention::forward_kernel<"),
        ("baseline lst", "did you mean list?"),
        (f"find tme>1us {SAME}", "did you mean time?"),
        (f"find regsters>1 {SAME}", "did you mean registers?"),
        ("diff --agianst main x.ncu-rep", "did you mean --against?"),
        ("export --format datset", "did you mean dataset?"),
        ("stages --ladder hlf", "did you mean half?"),
        ("completion fsh", "did you mean fish?"),
    ],
)
def test_typos_are_answered(line: str, meant: str, here: Path) -> None:
    done = run_in(here, line.split())
    assert done.returncode == 2 and meant in done.stderr


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (f"diff {SAME} {SAME} -o x.txt", "text goes to the terminal"),
        (f"diff {SAME} {SAME} --allow-new", "belong to a gate"),
        (f"diff --against a --with {SAME}", "both name a side"),
        (f"diff --with {SAME}", "the earlier is missing"),
        (f"diff {SAME} {SAME} {SAME}", "which are before is not clear"),
        (f"diff {SAME} {SAME} #99", "has this id"),
        ("find", "no condition was given"),
        (f"export {SAME} -o new --format dataset --table kernels", "holds everything of its reports"),
        (f"export {SAME} -o new --format perfetto --table kernels", "writes no tables"),
        (f"export {DATA}/partial_basic.ncu-rep.xz -o new --format speedscope", "samples by instruction"),
        (f"export {SAME} -o {SAME}", "is a file"),
        ("history record", "no run or report was named"),
        (f"report --recorded {SAME}", "--recorded takes no inputs"),
        (f"report {SAME} -o {SAME}", "name a folder"),
        ("tune --stage cublas", "is not one stage with parameters"),
        (f"show {SAME} #1 --kernel x", "both choose kernels"),
        (f"mcp {SAME}", "is no folder"),
    ],
)
def test_words_that_do_not_go_together_are_refused_with_what_to_type(
    line: str, meant: str, here: Path
) -> None:
    done = run_in(here, line.split())
    assert done.returncode == 2 and meant in done.stderr and "fix: " in done.stderr, done.stderr
    assert not (here / "new").exists() and not (here / "x.txt").exists()


def test_no_command_shows_which_there_are(here: Path) -> None:
    done = run_in(here, [])
    assert done.returncode == 0 and "a gate for CI" in " ".join(done.stdout.split()) and done.stderr == ""
