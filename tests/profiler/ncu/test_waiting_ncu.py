"""ncu is started before its job is known: with lean sections, and ended where no job comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gemmprof.base.progress import Progress
from gemmprof.gpu.devices import Gpu, Tool
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import Problem, RunInfo, StageRecord
from gemmprof.profiler.keeper import Keeper
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.settings import Settings
from gemmprof.runs.directory import Run

GPU = Gpu(0, "H100", (9, 0), 80 << 30, "580", "GPU-0")
METRIC = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
SECTION = f'Metrics {{\n  Metrics {{\n    Name: "{METRIC}"\n  }}\n}}\n'


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], tuple[Keeper, Profiling]]:
    """A collection of one stage with an ncu that writes down its arguments and then waits."""
    installation = tmp_path / "nsight-compute"
    for folder in ("extras/python", "sections"):
        (installation / folder).mkdir(parents=True)
    (installation / "extras/python/ncu_report.py").touch()
    (installation / "sections/MemoryWorkloadAnalysis_Tables.section").write_text(SECTION)
    ncu = installation / "ncu"
    ncu.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments.new\n'
        f"mv {tmp_path}/arguments.new {tmp_path}/arguments\nexec sleep 60\n"
    )
    ncu.chmod(0o755)

    def make(metric_set: str) -> tuple[Keeper, Profiling]:
        run = tmp_path / "run"
        for folder in ("reports", "logs"):
            (run / folder).mkdir(parents=True)
        settings = Settings(SINGLE.stages[1:2], (Problem(64, 64, 64),), metric_set=metric_set)
        keeper = Keeper(settings, run, Progress(), 0)
        info = RunInfo("now", GPU.name, (9, 0), {}, "none", 0, metric_set)
        keeper.run = Run(run, info, (StageRecord(SINGLE.stages[1]),), settings.problems)
        return keeper, Profiling(keeper, Tool(ncu, (2025, 3, 1)))

    return make


def arguments_of(folder: Path) -> list[str]:
    """What the waiting ncu was called with."""
    end = time.monotonic() + 60
    while not (folder / "arguments").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    return (folder / "arguments").read_text().splitlines()


def test_a_failure_before_the_first_job_ends_ncu_and_its_sections_go(
    start: Callable[[str], tuple[Keeper, Profiling]], tmp_path: Path
) -> None:
    _, profiling = start("lean")
    with pytest.raises(RuntimeError, match="no GPU"), profiling.waiting():
        arguments = arguments_of(tmp_path)
        sections = Path(arguments[arguments.index("--section-folder") + 1])
        lean = (sections / "MemoryWorkloadAnalysis_Tables.section").read_text()
        assert METRIC not in lean and lean.count("{") == 1
        assert profiling._program is not None
        process = profiling._program[0].process
        assert process.poll() is None
        raise RuntimeError("no GPU")
    assert process.poll() is not None
    assert not sections.exists()


def test_ncus_own_sets_come_from_its_own_sections(
    start: Callable[[str], tuple[Keeper, Profiling]], tmp_path: Path
) -> None:
    with start("full")[1].waiting():
        assert "--section-folder" not in arguments_of(tmp_path)


def test_nothing_is_started_where_every_stage_has_its_report(
    start: Callable[[str], tuple[Keeper, Profiling]], tmp_path: Path
) -> None:
    keeper, profiling = start("lean")
    result = keeper.result((1, Problem(64, 64, 64)))
    keeper.run = keeper.run.with_result(
        type(result)(result.stage, result.problem, report="reports/a.ncu-rep")
    )
    with profiling.waiting():
        assert profiling._program is None
    assert not (tmp_path / "arguments").exists()
