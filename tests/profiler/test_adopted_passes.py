"""Reports of a killed collection are taken over for the kernels that they are of, and for no others."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from profiler_fakes import launched, profiling_line, real_report
from reports_in_bytes import content_of

from gemmprof.base.progress import Progress
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import Problem, RunInfo, StageRecord, Timing, Verification
from gemmprof.profiler.collect import PART_SECONDS, SLOWEST_RATE, seconds_for
from gemmprof.profiler.job import Task
from gemmprof.profiler.keeper import Keeper
from gemmprof.profiler.ncu.profile_pass import earlier_passes, next_pass, whole_blocks
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.settings import Settings
from gemmprof.runs.directory import Run

PROBLEM = Problem(64, 64, 64)
STAGES = SINGLE.stages[1:3]
INFO = RunInfo("2026-01-01T00:00:00+00:00", "H100", (9, 0), {}, "none", 0, "lean")


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    """A run whose collection was killed after ncu had profiled both stages, and before it noted so."""
    keeper = Keeper(Settings(STAGES, (PROBLEM,)), tmp_path, Progress(), lock=0)
    records = tuple(StageRecord(stage, f"hash of {stage.name}") for stage in STAGES)
    keeper.run = Run(tmp_path, INFO, records, (PROBLEM,))
    for folder in ("reports", "logs"):
        (tmp_path / folder).mkdir()
    files = next_pass(tmp_path)
    tasks = [Task(stage.number, PROBLEM) for stage in STAGES]
    keeper.job(tasks, files.events).save(files.job)
    files.events.write_text("".join(json.dumps(record) + "\n" for record in launched(tasks)))
    files.log.write_text("".join(map(profiling_line, range(len(tasks)))))
    real_report(tmp_path, len(tasks)).rename(files.report)
    return keeper


def adopted(keeper: Keeper) -> dict[int, int | None]:
    """Position of the launch of each stage that was taken over."""
    Profiling(keeper, None).adopt()
    return {result.stage: result.launch_index for result in keeper.run.results if result.report}


def test_what_was_profiled_is_taken_over(keeper: Keeper) -> None:
    assert adopted(keeper) == {STAGES[0].number: 0, STAGES[1].number: 1}


def test_a_kernel_whose_source_changed_since_is_profiled_again(keeper: Keeper) -> None:
    changed = dataclasses.replace(keeper.run.stages[0], source_hash="another")
    keeper.run = dataclasses.replace(keeper.run, stages=(changed, *keeper.run.stages[1:]))
    assert adopted(keeper) == {STAGES[1].number: 1}
    assert [task.stage for task in keeper.unprofiled()] == [STAGES[0].number]


def test_passes_are_in_their_order_also_beyond_a_hundred(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for number in (100, 2, 99):
        (tmp_path / "logs" / f"profile-{number:02d}.job.json").touch()
    assert [files.name for files in earlier_passes(tmp_path)] == ["profile-02", "profile-99", "profile-100"]
    assert next_pass(tmp_path).name == "profile-101"


def test_a_kernel_more_in_the_log_leaves_the_positions_to_the_ranges(keeper: Keeper) -> None:
    """As where a library launches several kernels for a stage, of which the report holds as many as stages."""
    (log,) = (keeper.directory / "logs").glob("*.ncu.log")
    log.write_text("".join(map(profiling_line, range(3))))
    assert adopted(keeper) == {STAGES[0].number: None, STAGES[1].number: None}


@pytest.mark.parametrize(("name", "kernels"), [("ladder_simple", 3), ("train_100", 100), ("modes_graph", 0)])
def test_the_kernels_of_a_report_are_counted_not_its_blocks(name: str, kernels: int, tmp_path: Path) -> None:
    report = tmp_path / "whole.ncu-rep"
    report.write_bytes(content_of(name))
    found = whole_blocks(report)
    assert (found.kernels, found.end) == (kernels, report.stat().st_size)


@pytest.mark.parametrize(
    ("verification", "again"),
    [
        (None, True),
        (Verification(1.0, 1e-5, False, "exceeds"), True),
        (Verification(1e-7, 1e-5, True), False),
    ],
)
def test_what_did_not_pass_is_verified_again(
    verification: Verification | None, again: bool, keeper: Keeper
) -> None:
    key = (STAGES[0].number, PROBLEM)
    keeper.keep(key, verification=verification, timing=Timing(1e-3, 1e-3, 1e-3, 1e-3, 5))
    assert [task.verify for task in keeper.unmeasured() if task.key == key] == [True] * again


def test_a_large_problem_has_the_time_that_it_needs() -> None:
    small, large = Problem(64, 64, 64), Problem(40_000, 40_000, 40_000)
    assert seconds_for(small) == pytest.approx(PART_SECONDS, abs=0.1)
    assert seconds_for(large) == PART_SECONDS + 2 * 40_000**3 / SLOWEST_RATE > 10_000
