"""Continuing a run: what is kept, what is tried again, and what forbids it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gemmprof.base.errors import RunError
from gemmprof.gpu.devices import Gpu
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import Problem, StageRecord, StageResult, Timing, Verification
from gemmprof.profiler.collect import continued, new_info
from gemmprof.profiler.settings import Settings
from gemmprof.runs.directory import Run

CUBE, FLAT = Problem(64, 64, 64), Problem(8, 4, 2)
GPU = Gpu(0, "NVIDIA H100 80GB HBM3", (9, 0), 80 << 30, "580.1", "GPU-0")
RECORDS = tuple(StageRecord(stage, f"hash of {stage.name}") for stage in SINGLE.stages[:3])
FINE = Verification(1e-7, 1e-5, True)
VERSIONS = {"driver": "580.1", "torch": "2.11.0", "ncu": "2025.3.1"}


def a_run(*results: StageResult) -> Run:
    settings = Settings(SINGLE.stages[:3], (CUBE,))
    run = Run(Path("run"), new_info(settings, GPU, VERSIONS), RECORDS, settings.problems)
    for result in results:
        run = run.with_result(result)
    return run


def go_on(
    run: Run,
    settings: Settings,
    records: tuple[StageRecord, ...] = RECORDS,
    device: str = GPU.name,
    versions: Mapping[str, str] = {},
) -> Run:
    return continued(run, settings, device, records, versions)


def test_finished_parts_are_kept_and_failures_are_tried_again() -> None:
    done = StageResult(0, CUBE, FINE, Timing(1e-3, 1e-3, 1e-3, 1e-3, 5), "reports/profile-01.ncu-rep", 0)
    failed = StageResult(1, CUBE, FINE, failure="profile: the kernel failed")
    run = go_on(a_run(done, failed), Settings(SINGLE.stages[:3], (CUBE,)))
    assert run.result(0, CUBE) == done
    assert run.result(1, CUBE) == StageResult(1, CUBE, FINE)


def test_a_failure_that_this_call_does_not_touch_stays() -> None:
    failed = StageResult(1, CUBE, failure="profile: the kernel failed")
    run = go_on(a_run(failed), Settings(SINGLE.stages[:1], (CUBE,)), RECORDS[:1])
    assert run.result(1, CUBE) == failed


def test_stages_and_problems_may_be_added() -> None:
    records = (*RECORDS, StageRecord(SINGLE.stages[3], "x"))
    run = go_on(a_run(StageResult(0, CUBE, FINE)), Settings(SINGLE.stages[:4], (FLAT,)), records)
    assert run.problems == (CUBE, FLAT)
    assert [record.stage.number for record in run.stages] == [stage.number for stage in SINGLE.stages[:4]]


@pytest.mark.parametrize(
    "kept",
    [
        {"verification": FINE},
        {"timing": Timing(1e-3, 1e-3, 1e-3, 1e-3, 5)},
        {"report": "reports/profile-01.ncu-rep"},
    ],
)
def test_a_changed_source_forbids_to_mix_old_and_new_numbers(kept: dict[str, object]) -> None:
    changed = (RECORDS[0], StageRecord(SINGLE.stages[1], "another hash"), RECORDS[2])
    run = a_run(StageResult(1, CUBE, **kept))  # type: ignore[arg-type]
    with pytest.raises(RunError) as caught:
        go_on(run, Settings(SINGLE.stages[:3], (CUBE,)), changed)
    assert "the source of stage naive changed" in caught.value.found


def test_a_wrong_kernel_may_be_mended_and_the_run_goes_on() -> None:
    wrong = StageResult(1, CUBE, Verification(1.0, 1e-5, False, "exceeds"), failure="verification: exceeds")
    changed = (RECORDS[0], StageRecord(SINGLE.stages[1], "another hash"), RECORDS[2])
    run = go_on(a_run(wrong), Settings(SINGLE.stages[:3], (CUBE,)), changed)
    assert run.record(1).source_hash == "another hash"
    assert run.result(1, CUBE).failure is None


def test_another_gpu_or_seed_forbids_it() -> None:
    with pytest.raises(RunError) as caught:
        go_on(a_run(), Settings(SINGLE.stages[:3], (CUBE,), seed=4), device="NVIDIA A100")
    assert "--seed" in caught.value.found and "A100" in caught.value.found


@pytest.mark.parametrize(
    ("name", "kept", "refused"),
    [
        ("driver", {"verification": FINE}, True),
        ("torch", {"timing": Timing(1e-3, 1e-3, 1e-3, 1e-3, 5)}, True),
        ("torch", {"failure": "profile: the kernel failed"}, False),
        ("ncu", {"report": "reports/profile-01.ncu-rep"}, True),
        ("ncu", {"verification": FINE}, False),
        ("nvcc", {"verification": FINE}, False),
    ],
)
def test_numbers_of_other_tools_are_not_mixed(name: str, kept: dict[str, object], refused: bool) -> None:
    """A run names one version of each tool; of what it does not name, nothing can be said."""
    run, settings = a_run(StageResult(1, CUBE, **kept)), Settings(SINGLE.stages[:3], (CUBE,))  # type: ignore[arg-type]
    assert go_on(run, settings, versions=VERSIONS).results
    if not refused:
        assert go_on(run, settings, versions={**VERSIONS, name: "0.1"}).results
        return
    with pytest.raises(RunError) as caught:
        go_on(run, settings, versions={**VERSIONS, name: "0.1"})
    assert caught.value.found == f"{name}: the run has {VERSIONS[name]}, this machine 0.1"
