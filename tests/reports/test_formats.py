"""What every command prints under --json is what `reports.formats` declares, field by field."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.history.points import Origin, Point
from gemmprof.commands import COMMANDS
from gemmprof.kernels.catalog import stage_by_number, stage_variants
from gemmprof.model import Card, Problem
from gemmprof.profiler.tuning.outcomes import Outcome
from gemmprof.profiler.tuning.search import SearchResult
from gemmprof.profiler.tuning.trials import Search
from gemmprof.reports.formats import comparison, ladder, launches, many
from gemmprof.reports.formats.fields import FORMATS, fields, mismatches
from gemmprof.reports.history.store import HistoryStore
from gemmprof.reports.terminal.records import plain
from gemmprof.reports.terminal.summary import summarise
from gemmprof.runs.directory import load_recorded_run

GELU = str(ROOT / "docs/examples/recorded/gelu.ncu-rep.xz")
FIXED = str(ROOT / "docs/examples/recorded/gelu_fixed.ncu-rep.xz")
SAME = str(DATA / "launches_same_kernel.ncu-rep.xz")
ATOMICS = str(DATA / "flaws_atomics.ncu-rep.xz")


def printed(words: list[str], cwd: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "gemmprof", *words],
        capture_output=True, text=True, cwd=cwd, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a history of a step, and a baseline."""
    path = tmp_path_factory.mktemp("formats")
    store = HistoryStore.open(path / "gemmprof-history", create=True)
    for run in range(40):
        origin = Origin(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=run), f"c{run}")
        time = 1e6 * (1.3 if run >= 20 else 1.0) * (1 + 0.001 * (run % 3))
        store.add([Point("k", "1x1x1", "H100", "timed", origin, time, time, time, 3)])
    assert subprocess.run([sys.executable, "-m", "gemmprof", "baseline", "save", "main", SAME], cwd=path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode == 0  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("words", "declared"),
    [
        (f"explain {GELU} {ATOMICS} --json", launches.ExplainRecord),
        (f"show {ATOMICS} --json --all", launches.ShowRecord),
        (f"report {GELU} --json -o pages", launches.ReportRecord),
        (f"roofline {ATOMICS} {SAME} --json", launches.RooflineRecord),
        ("occupancy --regs 64 --smem 8192 --threads 256 --arch 9.0 --gpu h100 --json", comparison.CalculatorRecord),
        ("occupancy --regs 255 --smem 8192 --threads 1024 --gpu h100 --json", comparison.CalculatorRecord),
        (f"occupancy {GELU} {DATA}/partial_two_metrics.ncu-rep.xz --json", comparison.LaunchesRecord),
        (f"diff {GELU} {FIXED} --json", comparison.DiffRecord),
        (f"diff {SAME} {SAME} --json --fail-slower 5", comparison.DiffRecord),
        ("baseline list --json", many.BaselineRecord),
        ("baseline show main --json", many.BaselineRecord),
        (f"find duration>1us {SAME} --json", many.FindRecord),
        (f"history record {SAME} --store other --json", many.HistoryRecordRecord),
        ("history list --json", many.HistoryListRecord),
        ("history show k --json", many.HistoryShowRecord),
        ("history check --json", many.HistoryCheckRecord),
        ("stages --json", ladder.StagesRecord),
        ("tune --stage 9 --constraints --json", ladder.TuneConstraintsRecord),
        ("doctor --json", ladder.DoctorRecord),
        ("show no-such.ncu-rep --json", many.ErrorRecord),
        ("history show k --knd timed --json", many.ErrorRecord),
    ],
)  # fmt: skip
def test_output_is_what_is_declared(words: str, declared: type, folder: Path) -> None:
    found = printed(words.split(), folder)
    assert list(mismatches(found, declared)) == []
    assert found["format"] == f"gemmprof.{'error' if declared is many.ErrorRecord else words.split()[0]}/1"
    if declared is many.HistoryCheckRecord:
        assert found["steps"][0]["ratio"] == pytest.approx(1.3, rel=0.01)


def test_a_build_is_what_is_declared(folder: Path) -> None:
    text = (
        "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'\n"
        "ptxas info    : Function properties for _Z1kPf\n"
        "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 1 barriers, 400 bytes smem\n"
    )
    (folder / "ptxas.txt").write_text(text)
    found = printed(["occupancy", "--ptxas", "ptxas.txt", "--threads", "256", "--json"], folder)
    assert found["kernels"] and list(mismatches(found, comparison.BuildRecord)) == []


def test_what_needs_a_gpu_prints_the_declared_objects() -> None:
    """collect and tune print these objects as they are; the recorded run and a made search stand for a GPU."""
    run = load_recorded_run()
    collected = {"format": "gemmprof.collect/1", "run": run.directory, "pages": None, "info": run.info,
                 "rows": summarise(run, None)}  # fmt: skip
    assert list(mismatches(plain(collected), ladder.CollectRecord)) == []
    variant = stage_variants(stage_by_number(9))[0]
    card = Card("NVIDIA H100", 0, "GPU-1")
    search = SearchResult(
        Search(variant, (Problem(64, 64, 64),)), "NVIDIA H100", (Outcome({"BM": 64}, "timed", 0.9, card=card),),
        0.8, 0.9, {"BM": 64}, 1, 2.0, Path("tuned.json"), 1.5, (card,),
    )  # fmt: skip
    found = {"format": "gemmprof.tune/1", **plain(search)}
    assert list(mismatches(found, ladder.TuneRecord)) == []
    assert {field.name for field in dataclasses.fields(SearchResult)} < set(found)


def test_every_field_is_described_and_every_command_with_json_is_there() -> None:
    for name, declared in FORMATS.items():
        for record in declared:
            found = list(fields(record))
            assert found[0].path == "format" and not [f.path for f in found if not f.words], name
    source = {name: (ROOT / f"gemmprof/commands/{name}.py").read_text(encoding="utf-8") for name in COMMANDS}
    with_json = {name for name, text in source.items() if "add_json_argument" in text or '"--json"' in text}
    assert with_json == set(FORMATS) - {"error"}


def test_a_difference_is_named() -> None:
    check = {"name": "n", "ok": None, "found": "", "new": 1, "needed": True}
    record = {"format": "f", "can_collect": 1, "checks": [check]}
    assert list(mismatches(record, ladder.DoctorRecord)) == [
        ".can_collect: 1 is no true or false",
        ".checks[0].new: is not declared",
        ".checks[0].remedies: is missing",
    ]
