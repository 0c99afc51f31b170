"""What every command prints under --json fits the schema that is generated from its document, field by field."""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import in_process
import pytest
from json_formats import generator, violations
from recorded_data import DATA, ROOT

from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.base.documents import ErrorDocument, json_text
from gemmprof.commands import COMMANDS
from gemmprof.kernels.catalog import stage_by_number, stage_variants
from gemmprof.model import Card, Problem
from gemmprof.model.answers import (
    DoctorDocument,
    Outcome,
    Search,
    StagesDocument,
    TuneConstraintsDocument,
    TuneDocument,
)
from gemmprof.reports.dataset.query import FindDocument
from gemmprof.reports.documents.of_comparison import DiffDocument
from gemmprof.reports.documents.of_findings import ExplainDocument
from gemmprof.reports.documents.of_history import (
    BaselineDocument,
    HistoryCheckDocument,
    HistoryListDocument,
    HistoryRecordDocument,
    HistoryShowDocument,
)
from gemmprof.reports.documents.of_launches import (
    ReportDocument,
    RooflineDocument,
    ShowDocument,
)
from gemmprof.reports.documents.of_occupancy import BuildDocument, CalculatorDocument, LaunchesDocument
from gemmprof.reports.history.store import HistoryStore
from gemmprof.reports.terminal.summary import CollectDocument, summarise
from gemmprof.runs.directory import load_recorded_run

GELU = str(ROOT / "docs/examples/recorded/gelu.ncu-rep.xz")
FIXED = str(ROOT / "docs/examples/recorded/gelu_fixed.ncu-rep.xz")
SAME = str(DATA / "launches_same_kernel.ncu-rep.xz")
ATOMICS = str(DATA / "flaws_atomics.ncu-rep.xz")


def printed(words: list[str], cwd: Path) -> Any:
    done = in_process.run(
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
    assert in_process.run([sys.executable, "-m", "gemmprof", "baseline", "save", "main", SAME], cwd=path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode == 0  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("words", "declared"),
    [
        (f"explain {GELU} {ATOMICS} --json", ExplainDocument),
        (f"show {ATOMICS} --json --all", ShowDocument),
        (f"report {GELU} --json -o pages", ReportDocument),
        (f"roofline {ATOMICS} {SAME} --json", RooflineDocument),
        ("occupancy --regs 64 --smem 8192 --threads 256 --arch 9.0 --gpu h100 --json", CalculatorDocument),
        ("occupancy --regs 255 --smem 8192 --threads 1024 --gpu h100 --json", CalculatorDocument),
        (f"occupancy {GELU} {DATA}/partial_two_metrics.ncu-rep.xz --json", LaunchesDocument),
        (f"diff {GELU} {FIXED} --json", DiffDocument),
        (f"diff {SAME} {SAME} --json --fail-slower 5", DiffDocument),
        ("baseline list --json", BaselineDocument),
        ("baseline show main --json", BaselineDocument),
        (f"find duration>1us {SAME} --json", FindDocument),
        (f"history record {SAME} --store other --json", HistoryRecordDocument),
        ("history list --json", HistoryListDocument),
        ("history show k --json", HistoryShowDocument),
        ("history check --json", HistoryCheckDocument),
        ("stages --json", StagesDocument),
        ("tune --stage 9 --constraints --json", TuneConstraintsDocument),
        ("doctor --json", DoctorDocument),
        ("show no-such.ncu-rep --json", ErrorDocument),
        ("history show k --knd timed --json", ErrorDocument),
    ],
)  # fmt: skip
def test_output_is_what_is_declared(words: str, declared: type, folder: Path) -> None:
    found = printed(words.split(), folder)
    assert violations(found, declared) == []
    if declared is HistoryCheckDocument:
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
    assert found["kernels"] and violations(found, BuildDocument) == []


def test_what_needs_a_gpu_prints_the_declared_objects() -> None:
    """collect and tune print these objects as they are; the recorded run and a made search stand for a GPU."""
    run = load_recorded_run()
    collected = CollectDocument(run.directory, None, run.info, summarise(run, None))
    card = Card("NVIDIA H100", 0, "GPU-1")
    search = Search(stage_variants(stage_by_number(9))[0], (Problem(64, 64, 64),))
    outcomes = (Outcome({"BM": 64}, "timed", 0.9, card=card), Outcome({"BM": 32}, "spills", float("nan")))
    tuned = TuneDocument(
        search, "NVIDIA H100", outcomes, 0.8, 0.9, {"BM": 64}, 1, 2.0, Path("tuned.json"), 1.5, (card,)
    )
    for document in (collected, tuned):
        assert violations(json.loads(json_text(document)), type(document)) == []
    assert '"score": null' in json_text(tuned), "a number that JSON does not know is null"


def test_every_field_says_what_it_is_and_every_command_with_json_is_there() -> None:
    formats = generator()
    documents = formats.documents()
    assert [
        (kind.__name__, path) for kind in documents for path, _, words in formats.lines(kind) if not words
    ] == []
    source = {name: (ROOT / f"gemmprof/commands/{name}.py").read_text(encoding="utf-8") for name in COMMANDS}
    with_json = {
        name for name, text in source.items() if re.search(r"\{JSON\}|\+ JSON\b|^--json ", text, re.M)
    }
    named = {str(kind.__struct_config__.tag) for kind in documents}
    assert named == {f"gemmprof.{name}/1" for name in (*with_json, "error")}


def test_a_difference_is_named() -> None:
    check = {"name": "n", "ok": None, "found": "", "needed": True}
    record = {"format": "gemmprof.doctor/2", "can_collect": 1, "checks": [check]}
    assert violations(record, DoctorDocument) == [
        "$.format: 'gemmprof.doctor/1' was expected",
        "$.can_collect: 1 is not of type 'boolean'",
        "$.checks[0]: 'remedies' is a required property",
    ]


def test_a_file_name_that_is_no_utf_8_is_still_json() -> None:
    name = os.fsdecode(b"caf\xe9.ncu-rep")
    document = ErrorDocument("show", f"{name} cannot be read", "", ())
    assert json.loads(json_text(document))["message"] == f"{name} cannot be read"
