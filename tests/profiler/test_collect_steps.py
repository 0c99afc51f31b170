"""A whole collection without a GPU: children play the GPUs, with the ways in which they fail."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from profiler_fakes import fake_ncu, launched, profiling_line, real_report
from tiny_ladder import TINY

from gemmprof.analysis.reading.frame import check
from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.gpu.devices import Tool
from gemmprof.kernels import build as build_module
from gemmprof.kernels import catalog
from gemmprof.model import Problem
from gemmprof.profiler import collect as collecting
from gemmprof.profiler import collect as collection
from gemmprof.profiler import site as site_module
from gemmprof.profiler.job import Task
from gemmprof.profiler.settings import Settings
from gemmprof.profiler.site import Machine, Request, Work
from gemmprof.runs.directory import load_run, report_record

PROBLEM = Problem(64, 64, 64, "bfloat16")


@pytest.fixture
def play(tmp_path, monkeypatch, plan, gpus):
    """``play(stages)`` collects with children that play so many GPUs."""

    def start(stages, skipped=(), resume=False, count=1, ncu=None, problems=(PROBLEM,)):
        built = SimpleNamespace(stages={}, compiled=(), failures={}, skipped=dict(skipped))
        chosen = ",".join(str(gpu.index) for gpu in gpus[:count])
        machine = Machine(gpus[0], ncu, pinned=True)
        monkeypatch.setattr(site_module.Here, "check", lambda *_, **__: machine)
        monkeypatch.setattr(site_module, "list_gpus", lambda: gpus)
        monkeypatch.setattr(build_module, "build", lambda **_: built)
        monkeypatch.setattr(collection, "MODULE", "fake_gpu")
        monkeypatch.setattr(catalog, "LADDERS", (catalog.SINGLE, TINY))
        settings = Settings(tuple(stages), tuple(problems), profile=ncu is not None)
        return collecting.collect(
            settings, tmp_path / "run", resume=resume, progress=Progress(), site=site_module.Here(chosen)
        )

    return start


def test_every_stage_is_verified_and_timed_and_one_for_another_gpu_is_left_out(
    play, tmp_path: Path, cards
) -> None:
    run = play(TINY.stages, skipped={"tiny_hopper": "it is written for sm_90a, this is sm_80"})
    assert load_run(tmp_path / "run") == run
    assert [(r.stage, r.verification.passed, r.timing.yardstick_median) for r in run.results] == [
        (0, True, 1e-3),
        (1, True, 1e-3),
    ]
    assert {r.timing.card for r in run.results} == {r.verification.card for r in run.results} == {cards[0]}
    assert run.info.notes["skipped"] == {"tiny_hopper": "it is written for sm_90a, this is sm_80"}
    assert set(run.info.notes["seconds"]) == {"build", "verify and time"}


def test_a_stage_that_takes_its_helper_along_costs_no_other_and_is_tried_again(play, plan) -> None:
    plan.tell(0, "die-1")
    run = play(TINY.stages)
    failures = {result.stage: result.failure for result in run.results}
    assert failures[0] is None and failures[2] is None
    assert failures[1].startswith("measure: the program ended: ") and "exit code 9" in failures[1]
    plan.tell(0, "")
    run = play(TINY.stages, resume=True)
    assert all(result.failure is None and result.timing is not None for result in run.results)


def test_nothing_that_runs_here(play) -> None:
    with pytest.raises(DeviceError, match="no stage that was chosen runs on this GPU"):
        play(TINY.stages[2:], skipped={"tiny_hopper": "it is written for sm_90a, this is sm_80"})


PROBLEMS = tuple(Problem(size, size, size, "bfloat16") for size in (32, 64, 96, 128))


def without_cards(run) -> list[dict]:
    """The results of a run, but for the GPU that they came from."""
    plain = []
    for result in json.loads((run.directory / "run.json").read_text())["results"]:
        for part in ("timing", "verification"):
            result[part].pop("card")
        plain.append(result)
    return plain


def test_two_gpus_find_what_one_finds_and_every_result_says_from_which(play, tmp_path: Path, cards) -> None:
    alone = without_cards(play(TINY.stages, problems=PROBLEMS))
    (tmp_path / "run").rename(tmp_path / "alone")
    run = play(TINY.stages, problems=PROBLEMS, count=2)
    assert without_cards(run) == alone
    assert {result.timing.card for result in run.results} == set(cards[:2])
    assert load_run(tmp_path / "run") == run


def test_one_gpu_is_profiled_while_the_others_time(play, tmp_path: Path, cards, monkeypatch) -> None:
    """ncu is called while something is left to time, and what is timed then is not timed on its GPU."""
    monkeypatch.setenv("FAKE_GPU_SECONDS", "0.1")
    problems = PROBLEMS[:1]
    tasks = [Task(stage.number, problem) for problem in problems for stage in TINY.stages]
    ncu = fake_ncu(
        tmp_path / "ncu",
        log="".join(profiling_line(index) for index in range(len(tasks))),
        events=launched(tasks),
        report=real_report(tmp_path, len(tasks)),
    )
    run = play(TINY.stages, problems=problems, count=2, ncu=Tool(ncu, (2025, 3, 1)))
    assert all(result.failure is None and result.report for result in run.results)
    assert {result.timing.card for result in run.results} == {cards[1]}
    assert {result.verification.card for result in run.results} == set(cards[:2])
    assert {record.card for record in run.reports.values()} == {cards[0]}
    for name, record in run.reports.items():
        check(run.report_path(name), record, report_record(run.report_path(name)))
    assert load_run(tmp_path / "run") == run


def test_a_gpu_that_goes_while_the_other_is_profiled_leaves_its_times_to_a_resume(
    play, tmp_path: Path, plan, monkeypatch
) -> None:
    plan.tell(1, "die-1")
    plan.tell(0, "die-1")
    run = play(TINY.stages, problems=PROBLEMS, count=2)
    failed = [result.stage for result in run.results if result.failure]
    assert failed == [1] * len(PROBLEMS)
    plan.tell(0, "absent")
    plan.tell(1, "absent")
    with pytest.raises(DeviceError, match="cannot use a GPU"):
        play(TINY.stages, problems=PROBLEMS, count=2, resume=True)
    plan.tell(1, "")
    started = time.monotonic()
    run = play(TINY.stages, problems=PROBLEMS, count=2, resume=True)
    assert all(result.failure is None and result.timing is not None for result in run.results)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("order", ["", "PCI_BUS_ID"])
def test_of_several_models_a_program_sees_the_one_that_results_are_labelled_with(
    order: str, plan, gpus, monkeypatch
) -> None:
    """CUDA counts the fastest model first, nvidia-smi the first on the bus."""
    slow, fast = dataclasses.replace(gpus[1], name="NVIDIA Slow"), gpus[2]
    monkeypatch.setattr(site_module, "list_gpus", lambda: (slow, fast))
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    with site_module.Here().places(Work("fake_gpu", {}, "the child"), Progress()) as places:
        answer = places.submit(Request({"part": "time"}, 20.0)).result()
    assert answer.card == slow.card
    # Where both count alike the child sees all of them, and plays the first of any.
    assert plan.answered(1) == (0 if order else 1)
