"""Runs made by hand around a recorded report, for what no recorded run shows."""

from __future__ import annotations

import shutil
from pathlib import Path

from recorded_data import DATA

from gemmprof.kernels.catalog import stage_by_number
from gemmprof.model import Problem, RunInfo, StageRecord, StageResult, Timing
from gemmprof.runs.directory import Run, save_run

LADDER = str(DATA / "ladder_simple.ncu-rep.xz")
CUBE = Problem(1024, 1024, 1024)


def timing(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds, seconds, 10)


def make_run(folder: Path, seconds: dict[int, float | None], *, profiled: bool = True) -> Path:
    """A run of stages 1 to 3 whose report is the recorded one."""
    (folder / "reports").mkdir(parents=True)
    report = "reports/ladder.ncu-rep.xz"
    shutil.copy(LADDER, folder / report)
    save_run(
        Run(
            folder,
            RunInfo("2026-01-01T00:00:00", "GPU", (9, 0), {}, "none", 1, "full"),
            tuple(StageRecord(stage_by_number(number)) for number in seconds),
            (CUBE,),
            tuple(
                StageResult(
                    number,
                    CUBE,
                    timing=None if value is None else timing(value),
                    report=report if profiled else None,
                    launch_index=number - 1 if profiled else None,
                )
                for number, value in seconds.items()
            ),
        )
    )
    return folder
