"""Loading runs and reports: what belongs together is tied, what cannot be read is named, memory stays small."""

from __future__ import annotations

import importlib
import json
import lzma
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from recorded_data import ROOT

from gemmprof.analysis import session as sessions
from gemmprof.analysis.inputs.selection import Selection, stage_launch
from gemmprof.analysis.reading import frame
from gemmprof.analysis.reading.frame import open_unpacked, unpacked_once
from gemmprof.analysis.reading.lookup import NativeReader, NativeReaderMissing
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.session import load_session, selected_reports
from gemmprof.base.errors import ReportError, UsageError
from gemmprof.model import Problem, RunInfo, Stage, StageRecord, StageResult
from gemmprof.runs.directory import Run, load_recorded_run, load_run, report_record, save_run

DATA = ROOT / "tests" / "data"
REPORT = DATA / "partial_basic.ncu-rep.xz"
CUBE = Problem(1024, 1024, 1024)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of three stages whose launches lie in one compressed report, as a packed run has them."""
    folder = tmp_path / "run"
    (folder / "reports").mkdir(parents=True)
    shutil.copy(REPORT, folder / "reports" / "all.ncu-rep.xz")
    made = Run(
        directory=folder,
        info=RunInfo("2025-11-21T00:00:00Z", "H100", (9, 0), {}, "none", 0, "basic"),
        stages=tuple(StageRecord(Stage(n, f"stage{n}", f"Stage {n}", "")) for n in range(4)),
        problems=(CUBE,),
        results=(
            *(StageResult(n, CUBE, report="reports/all.ncu-rep", launch_index=n) for n in range(3)),
            StageResult(3, CUBE, failure="it did not build"),
        ),
    )
    save_run(made)
    return made


def test_launches_are_tied_to_their_stages(run: Run) -> None:
    session = load_session([run.directory])
    assert session.run is not None and session.title == "run"
    assert len(session.kernels) == 3 and not session.failures
    for result in session.run.results[:3]:
        found = session.kernel_for(result)
        assert found is session.kernels[result.stage]
    assert session.kernel_for(session.run.results[3]) is None


def test_a_selected_launch_alone_is_no_other_stages() -> None:
    """Where a library launches several kernels for a stage, a run knows no positions: the ranges tell."""
    recorded = load_recorded_run()
    name = next(result.report for result in recorded.results if result.report is not None)
    results = [replace(r, launch_index=None) for r in recorded.results if r.report == name]
    launches = read_report(recorded.report_path(str(name)), units=False, instances=False)
    for wanted in launches:
        found = [result.stage for result in results if stage_launch(recorded, result, [wanted]) is not None]
        assert found == [wanted.index]
    bare = replace(launches[0], nvtx=())
    assert stage_launch(recorded, results[1], [bare]) is bare


def test_a_run_with_a_missing_report_keeps_the_rest(run: Run) -> None:
    lost = StageResult(3, CUBE, report="reports/lost.ncu-rep", launch_index=0)
    save_run(load_run(run.directory).with_result(lost))
    session = load_session([run.directory])
    assert len(session.kernels) == 3
    assert ["lost.ncu-rep" in failure.message for failure in session.failures] == [True]
    assert session.run is not None and session.kernel_for(session.run.results[3]) is None


def test_a_run_names_no_file_outside_its_folder(run: Run, tmp_path: Path) -> None:
    shutil.copy(REPORT, tmp_path / "secret.ncu-rep")
    document = json.loads((run.directory / "run.json").read_text())
    document["results"][0]["report"] = "../secret.ncu-rep"
    (run.directory / "run.json").write_text(json.dumps(document))
    session = load_session([run.directory])
    assert ["outside" in failure.message for failure in session.failures] == [True]
    assert len(session.kernels) == 3  # the other stages' report
    reports, failures = selected_reports([run.directory])
    assert [path.name for path in reports] == ["all.ncu-rep.xz"] and len(failures) == 1


def test_runs_and_reports_load_together(run: Run) -> None:
    session = load_session([run.directory, REPORT])
    assert len(session.kernels) == 6
    assert session.run is not None and session.title == "run and 1 more"
    assert session.kernel_for(session.run.results[0]) is session.kernels[0]


def test_what_is_named_twice_is_read_once(run: Run) -> None:
    named = [run.directory, run.directory / "run.json", REPORT, REPORT.parent / ".." / "data" / REPORT.name]
    session = load_session([*named, run.directory / "reports" / "all.ncu-rep.xz"])
    assert len(session.kernels) == 6 and session.run is not None
    within = load_session([run.directory / "reports" / "all.ncu-rep.xz", run.directory])
    assert len(within.kernels) == 3 and within.kernel_for(run.results[0]) is within.kernels[0]


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load_session([])
    with pytest.raises(ReportError, match="holds no report and no run"):
        load_session([tmp_path])
    with pytest.raises(ReportError, match="there is no file"):
        load_session([tmp_path / "x.ncu-rep", tmp_path / "y.ncu-rep"])


def test_a_report_of_many_launches_keeps_no_instance_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = load_session([DATA / "launches_same_kernel.ncu-rep.xz"])
    monkeypatch.setattr(sessions, "MANY_LAUNCHES", 2)
    many = load_session([DATA / "launches_same_kernel.ncu-rep.xz"])
    assert all(kernel.profile.instances for kernel in few.kernels)
    assert not any(kernel.profile.instances for kernel in many.kernels)
    assert [kernel.results.keys() for kernel in many.kernels] == [
        kernel.results.keys() for kernel in few.kernels
    ]
    # Analyses saw the values all the same, and launches of one kernel share their source.
    assert repr(many.kernels[0].results) == repr(few.kernels[0].results)
    assert many.kernels[0].profile.source is many.kernels[1].profile.source


@pytest.mark.campaign
def test_hundreds_of_launches_take_little_memory(tmp_path: Path) -> None:
    bench = importlib.import_module("bench_read")
    path = tmp_path / "843.ncu-rep"
    seed = lzma.decompress((DATA / "names_nvtx.ncu-rep.xz").read_bytes())
    with path.open("wb") as file:
        file.writelines(bench.repeated(seed, 843))
    program = (
        "import sys; from gemmprof.analysis.session import load_session\n"
        "print(len(load_session([sys.argv[1]]).kernels))"
    )
    found = bench.measure("session", program, str(path), cache=tmp_path / "cache")
    assert found.output == "843"
    assert max(found.peaks_mb) < 400


def test_the_native_reader_can_come_from_another_folder(tmp_path: Path) -> None:
    """As it does where the installed ncu is newer than the package."""
    import ncu_report

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    (whole / "ncu_report").symlink_to(Path(ncu_report.__file__).parent)
    (broken / "ncu_report.py").write_text("raise ImportError('no library')\n")
    report = tmp_path / "x.ncu-rep"
    report.write_bytes(lzma.decompress(REPORT.read_bytes()))
    request = {"path": str(report), "pcs": [], "units": []}
    reader = NativeReader(str(whole))
    assert reader.ask(request)["name"]
    reader.stop()
    with pytest.raises(NativeReaderMissing, match="no library"):
        NativeReader(str(broken)).ask(request)


def test_reading_leaves_no_process_behind(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from gemmprof.analysis.reading.report import read_report\n"
        "from gemmprof.analysis.reading.lookup import native_reader\n"
        f"read_report({str(REPORT)!r})\n"
        "print(native_reader().worker.process.pid)"
    )
    environment = {"GEMMPROF_CACHE": "off", "PATH": "/usr/bin:/bin"}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert not Path(f"/proc/{answer.stdout.strip()}").exists()


@pytest.fixture
def unpackings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The reports that were unpacked, one entry each time."""
    done: list[Path] = []
    unpack_file = frame._decompress

    def counted(path: Path, packed: BinaryIO, limit: int) -> BinaryIO:
        done.append(path)
        return unpack_file(path, packed, limit)

    monkeypatch.setattr(frame, "_decompress", counted)
    return done


def test_a_report_is_checked_selected_from_and_read_from_one_unpacked_copy(
    run: Run, unpackings: list[Path]
) -> None:
    packed = run.directory / "reports" / "all.ncu-rep.xz"
    save_run(replace(run, reports={"reports/all.ncu-rep": report_record(unpacked(packed, run.directory))}))
    session = load_session([run.directory], selection=Selection(launches=(range(2),)))
    assert len(session.kernels) == 2 and unpackings == [packed]


def test_a_report_that_changed_is_unpacked_again(tmp_path: Path, unpackings: list[Path]) -> None:
    report = tmp_path / "a.ncu-rep.xz"
    shutil.copy(REPORT, report)
    with unpacked_once():
        with open_unpacked(report) as first, open_unpacked(report) as second:
            assert os.pread(first.fileno(), 1 << 30, 0) == os.pread(second.fileno(), 1 << 30, 0)
        assert unpackings == [report]
        report.write_bytes((DATA / "names_nvtx.ncu-rep.xz").read_bytes())
        with open_unpacked(report) as other:
            assert os.pread(other.fileno(), 1 << 30, 0) == lzma.decompress(report.read_bytes())
    assert unpackings == [report] * 2


def test_what_finds_no_room_is_unpacked_each_time(
    unpackings: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "KEPT_BYTES", 1000)
    with unpacked_once():
        for _ in range(2):
            open_unpacked(REPORT).close()
    assert unpackings == [REPORT] * 2


def unpacked(packed: Path, folder: Path) -> Path:
    """The report without its compression, beside the run."""
    path = folder / "plain.ncu-rep"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path
