"""tools/record.py: only a complete run is packed, and a packed run reads back."""

from __future__ import annotations

import dataclasses
import importlib
import lzma
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from recorded_data import ROOT

from gemmprof.analysis.session import load_session
from gemmprof.base.errors import RunError
from gemmprof.kernels.catalog import HALF, LADDERS, SINGLE
from gemmprof.model import Problem, RunInfo, StageRecord, StageResult, Timing, Verification
from gemmprof.runs.directory import Run, load_run, save_run

CUBE = Problem(1024, 1024, 1024)


@pytest.fixture(scope="module")
def record() -> ModuleType:
    return importlib.import_module("record")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of three stages over a recorded report of theirs."""
    report = tmp_path / "run" / "reports" / "profile-01.ncu-rep"
    report.parent.mkdir(parents=True)
    report.write_bytes(
        lzma.decompress((ROOT / "tests" / "data" / "launches_same_kernel.ncu-rep.xz").read_bytes())
    )
    info = RunInfo(
        "2026-01-01T00:00:00+00:00", "H100", (9, 0), {}, "none", 0, "full", "gemmprof collect -o /home/me"
    )
    made = Run(tmp_path / "run", info, tuple(StageRecord(stage) for stage in SINGLE.stages[1:4]), (CUBE,))
    for index, stage in enumerate(SINGLE.stages[1:4]):
        timing = Timing(1e-3, 1e-3, 1e-3, 1e-3, 5, None, 1e-3)
        verification = Verification(1e-7, 1e-5, True)
        made = made.with_result(
            StageResult(stage.number, CUBE, verification, timing, "reports/profile-01.ncu-rep", index)
        )
    save_run(made)
    return made


def test_a_packed_run_reads_back_small_and_without_the_command_line(
    record: ModuleType, run: Run, tmp_path: Path
) -> None:
    assert record.complaints(run, [CUBE]) == []
    packed = record.pack(run, tmp_path / "packed")
    assert packed.results == run.results and packed.info.command == "make record"
    assert record.size_of(tmp_path / "packed") < record.size_of(run.directory) / 10
    session = load_session([tmp_path / "packed"])
    kernels = [session.kernel_for(result) for result in packed.results]
    assert [kernel.profile.index for kernel in kernels if kernel is not None] == [0, 1, 2]


def arguments(run: Path, output: Path) -> list[str]:
    script = str(ROOT / "tools" / "record.py")
    return [script, "-o", str(output), "--shape", "1024", "--from-run", str(run)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"failure": "verification: wrong"}, "verification: wrong"),
        ({"timing": None}, "not timed"),
        ({"verification": None}, "not verified"),
        ({"report": None}, "not profiled"),
    ],
)
def test_an_incomplete_run_is_not_published(
    run: Run,
    tmp_path: Path,
    change: dict[str, object],
    complaint: str,
    record: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = dataclasses.replace(run.results[1], **change)  # type: ignore[arg-type]
    save_run(run.with_result(result))
    output = tmp_path / "recorded"
    output.mkdir()
    (output / "run.json").write_text("the old one")
    monkeypatch.setattr(sys, "argv", arguments(run.directory, output))
    assert record.main() == 1
    said = capsys.readouterr().err
    assert f"{SINGLE.stages[2].name} {CUBE.key}" in said and complaint in said
    assert (output / "run.json").read_text() == "the old one"


def test_a_complete_run_is_published(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "recorded"
    (output / "reports").mkdir(parents=True)
    (output / "reports" / "stale.ncu-rep.xz").touch()
    command = [sys.executable, *arguments(run.directory, output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (output / "reports").iterdir()] == ["profile-01.ncu-rep.xz"]
    assert load_run(output).results == run.results


def test_what_is_measured_alike_is_measured_by_one_program(record: ModuleType) -> None:
    timed = [
        Problem.parse(text, dtype) for dtype in ("float32", "bfloat16") for text in ("512", "8192", "1024")
    ]
    groups = [
        ({stage.ladder for stage in stages}, len(stages), [problem.m for problem in problems])
        for stages, problems in record.grouped_by_stages(timed)
    ]
    naive, every = len(SINGLE.stages) - 1, len(SINGLE.stages)
    assert groups == [
        ({"single", "half"}, every + len(HALF.stages), [512, 1024, 512, 8192, 1024]),
        ({"single"}, naive, [8192]),
    ]


def test_one_ladder_is_recorded_anew_and_the_others_stay(
    record: ModuleType, run: Run, tmp_path: Path
) -> None:
    """Reports keep their own, whatever they were called; tools that differ are refused."""
    problem = dataclasses.replace(CUBE, dtype="bfloat16", c_dtype="bfloat16")
    stages = tuple(StageRecord(stage, sass="ab") for stage in HALF.stages[:2])
    result = StageResult(
        1, problem, None, Timing(2e-3, 2e-3, 2e-3, 2e-3, 5, None, 2e-3), "reports/profile-01.ncu-rep", 0
    )
    halves = Run(tmp_path / "halves", run.info, stages, (problem,), (result,), dict(run.reports))
    shutil.copytree(run.directory / "reports", halves.directory / "reports")
    save_run(halves)
    both = record.merged(load_run(halves.directory), record.pack(run, tmp_path / "old"), tmp_path / "both")
    assert [r for r in both.results if r.problem == CUBE] == list(run.results)
    assert both.results[-1] == dataclasses.replace(result, report="reports/profile-02.ncu-rep")
    assert both.record_of(both.results[-1]).sass == "ab" and all(
        path.exists() for path in both.report_paths()
    )
    assert both.info.notes["collected"] == {"half": run.info.created}
    again = record.merged(load_run(halves.directory), both, tmp_path / "again")
    assert again.results == both.results and again.stages == both.stages
    packed = record.pack(again, tmp_path / "packed")
    assert not load_session([packed.directory]).failures
    other = dataclasses.replace(halves, info=dataclasses.replace(run.info, versions={"driver": "1"}))
    with pytest.raises(RunError, match="do not belong together"):
        record.merged(other, run, tmp_path / "refused")


def test_every_ladder_is_recorded_at_what_the_readme_shows(record: ModuleType) -> None:
    for ladder in LADDERS:
        shapes = (*record.PROFILED[ladder.name], *record.TIMED[ladder.name])
        assert record.PROFILED[ladder.name][0] == "4096" and len(set(shapes)) == len(shapes)
