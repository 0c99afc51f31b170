"""What the options of a collection mean, and when an older run can be continued with them."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from gemmprof import metrics
from gemmprof.arguments import ladder_options
from gemmprof.arguments.parser import declare
from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.commands import collect as command
from gemmprof.kernels.catalog import HALF, LADDERS, SINGLE
from gemmprof.metrics import LEAN
from gemmprof.model import Problem, RunInfo, Stage, StageRecord
from gemmprof.profiler import collect
from gemmprof.profiler.cluster.connection import SchedulerGone
from gemmprof.profiler.settings import NCU_SETS, Settings, differences, select_stages
from gemmprof.runs.directory import Run

CUBE = Problem(64, 64, 64)


def numbers(*selectors: str) -> list[int]:
    return [stage.number for stage in select_stages(selectors)]


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        (["3"], [3]),
        (["naive"], [1]),
        (["Naive"], [1]),
        (["1-3"], [1, 2, 3]),
        (["3-1"], [1, 2, 3]),
        ([" 1 - 3 "], [1, 2, 3]),
        (["2", "0", "2"], [0, 2]),
        (["warptiled,0", "1-2"], [0, 1, 2, 10]),
    ],
)
def test_stages_are_selected_by_number_name_and_range(selectors: list[str], expected: list[int]) -> None:
    assert numbers(*selectors) == expected


def test_a_range_takes_the_stages_that_exist_in_it() -> None:
    every = [stage.number for stage in SINGLE.stages]
    assert numbers("0-1000") == every


@pytest.mark.parametrize("word", ["99", "100-200", "-1", "", "1-", "naive2x", "0x1"])
def test_an_unknown_stage_is_an_error_that_lists_the_ladder(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        select_stages([word])
    assert f"'{word}'" in caught.value.message
    assert "1 naive" in caught.value.remedies[-1]


def test_a_misspelt_stage_is_corrected() -> None:
    with pytest.raises(UsageError) as caught:
        select_stages(["warptile"])
    assert caught.value.remedies[0] == "did you mean 'warptiled'?"


def test_the_pairs_go_problem_by_problem() -> None:
    settings = Settings(select_stages(["0-1"]), (CUBE, Problem(1, 2, 3)))
    assert [(stage.number, problem.key) for stage, problem in settings.pairs] == [
        (0, "64x64x64"),
        (1, "64x64x64"),
        (0, "1x2x3"),
        (1, "1x2x3"),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"stages": ()},
        {"problems": ()},
        {"problems": (Problem(1, 1, 1, "float16"),)},
    ],
)
def test_settings_that_mean_nothing_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Settings(**{"stages": SINGLE.stages, "problems": (CUBE,), **changes})  # type: ignore[arg-type]


def pairs_of(options: tuple[str, ...]) -> list[tuple[str, str]]:
    return list(zip(options[::2], options[1::2], strict=True))


def test_the_lean_set_asks_for_every_metric_that_an_analysis_requires_by_name_or_by_section() -> None:
    options = pairs_of(Settings(SINGLE.stages, (CUBE,)).collection_options)
    sections = {value for option, value in options if option == "--section"}
    names = {name for option, value in options if option == "--metrics" for name in value.split(",")}
    assert not [value for option, value in options if option == "--set"]
    for group in metrics.GROUPS.values():
        missing = [name for name in group.required if name not in names]
        assert not missing or set(group.sections) & sections, (group.sections, missing)
        assert set(group.requested) <= names


@pytest.mark.parametrize("name", NCU_SETS)
def test_ncus_own_sets_are_passed_through(name: str) -> None:
    options = pairs_of(Settings(SINGLE.stages, (CUBE,), metric_set=name).collection_options)
    assert options[0] == ("--set", name)
    assert not [value for option, value in options if option == "--section"]


def test_more_sections_and_metrics_are_added_with_one_metrics_option() -> None:
    settings = Settings(
        SINGLE.stages,
        (CUBE,),
        metric_set="basic",
        extra_sections=("PmSampling",),
        extra_metrics=("a.sum", "b.avg", "a.sum"),
    )
    assert settings.collection_options == (
        "--set",
        "basic",
        "--section",
        "PmSampling",
        "--metrics",
        "a.sum,b.avg",
    )
    lean = Settings(SINGLE.stages, (CUBE,), extra_metrics=("a.sum",)).collection_options
    assert lean.count("--metrics") == 1
    assert lean[-1].endswith(",a.sum")


TENSOR_SECTION = ("--section", "SpeedOfLight_HierarchicalTensorRooflineChart")


def test_tensor_metrics_are_collected_where_tensor_cores_may_be_used() -> None:
    half = Problem(64, 64, 64, "bfloat16")
    mine = Stage(100, "mine", "Mine", "A kernel of the user's own.", dtypes=("float32",))
    assert TENSOR_SECTION not in pairs_of(Settings(SINGLE.stages, (CUBE,)).collection_options)
    for settings in (Settings(HALF.stages, (half,)), Settings((*SINGLE.stages, mine), (CUBE,))):
        assert TENSOR_SECTION in pairs_of(settings.collection_options)


def test_one_ladder_is_added_to_the_run_of_the_other() -> None:
    half = Settings(HALF.stages, (Problem(64, 64, 64, "bfloat16"),))
    assert differences(half, a_run(Settings(SINGLE.stages, (CUBE,)))) == ()


def a_run(settings: Settings) -> Run:
    info = RunInfo(
        "now",
        "GPU",
        (9, 0),
        {},
        settings.clock_control,
        settings.seed,
        settings.metric_set,
        notes={"options": dict(settings.recorded_options())},
    )
    return Run(Path("run"), info, tuple(StageRecord(stage) for stage in settings.stages), settings.problems)


def test_a_run_is_continued_with_more_stages_shapes_and_parts() -> None:
    old = a_run(Settings(select_stages(["1"]), (CUBE,), profile=False))
    assert differences(Settings(SINGLE.stages, (CUBE, Problem(2, 2, 2)), profile=True), old) == ()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"metric_set": "full"}, "--set"),
        ({"seed": 1}, "--seed"),
        ({"clock_control": "base"}, "--clock-control"),
        ({"extra_metrics": ("x.sum",)}, "extra metrics"),
        ({"extra_sections": ("PmSampling",)}, "extra sections"),
    ],
)
def test_a_run_is_not_continued_with_what_its_numbers_depend_on_changed(
    changes: dict[str, object], named: str
) -> None:
    old = a_run(Settings(SINGLE.stages, (CUBE,)))
    reasons = differences(Settings(**{"stages": SINGLE.stages, "problems": (CUBE,), **changes}), old)  # type: ignore[arg-type]
    assert reasons and named in reasons[0]


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    declare(parser, command.ARGUMENTS, command.VALUES)
    return parser.parse_args(arguments)


def test_the_defaults_are_lean_4096_and_no_clock_control() -> None:
    settings = command.settings_from(parsed("--all-stages"), None)
    assert settings.stages == tuple(stage for ladder in LADDERS for stage in ladder.stages)
    assert command.settings_from(parsed("--all-stages", "--ladder", "single"), None).stages == SINGLE.stages
    settings = command.settings_from(parsed("--all-stages", "--ladder", "single"), None)
    assert settings.problems == (Problem(4096, 4096, 4096),)
    assert (settings.metric_set, settings.clock_control, settings.seed) == (LEAN, "none", 0)
    assert settings.verify and settings.bench and settings.profile


def test_every_option_reaches_the_settings() -> None:
    options = parsed(
        *(
            "--stage",
            "1-3",
            "--stage",
            "warptiled",
            "--shape",
            "64",
            "--shape",
            "1x2x3",
            "--shape",
            "64x64x64",
        ),
        *("--no-bench", "--no-profile", "--set", "full", "--seed", "5", "--clock-control", "base"),
        *("--section", "A", "--section", "B", "--metrics", "x,y", "--metrics", "z", "--dtype", "float32"),
    )
    settings = command.settings_from(options, None)
    assert [stage.number for stage in settings.stages] == [1, 2, 3, 10]
    assert settings.problems == (CUBE, Problem(1, 2, 3))
    assert (settings.bench, settings.profile) == (False, False)
    assert (settings.metric_set, settings.seed, settings.clock_control) == ("full", 5, "base")
    assert (settings.extra_sections, settings.extra_metrics) == (("A", "B"), ("x", "y", "z"))


def test_a_call_without_stages_says_how_to_choose_some() -> None:
    with pytest.raises(UsageError, match="no stage was chosen"):
        command.settings_from(parsed(), None)


def test_resume_without_options_repeats_the_runs_own_settings() -> None:
    first = Settings(
        select_stages(["1-2"]),
        (Problem(5, 6, 7),),
        metric_set="full",
        extra_metrics=("x",),
        seed=3,
        clock_control="base",
    )
    again = command.settings_from(parsed("--resume", "run"), a_run(first))
    assert (again.stages, again.problems) == (first.stages, first.problems)
    assert differences(again, a_run(first)) == ()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--output", "there"], "there"),
        (["--resume", "this"], "this"),
        (["--resume", "--output", "there"], "there"),
        (["--resume", "this", "--output", "there"], "this"),
    ],
)
def test_the_run_directory_is_the_one_that_is_named(arguments: list[str], expected: str) -> None:
    assert command.run_directory(parsed(*arguments)) == Path(expected)


def test_resume_without_a_run_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMPROF_RUNS", str(tmp_path))
    with pytest.raises(UsageError, match="no run in"):
        command.run_directory(parsed("--resume"))


def goes(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[bool]:
    """Whether each attempt of a collection continues a run, where a cluster's scheduler goes away during the first."""
    attempts: list[bool] = []

    def attempt(settings, directory: Path, *, resume: bool, **_) -> None:
        attempts.append(resume)
        if len(attempts) == 1:
            raise SchedulerGone("killed")
        raise DeviceError("no nvcc")

    monkeypatch.setattr(collect, "collect", attempt)
    with pytest.raises(DeviceError, match="no nvcc"):
        command.run(parsed("--stage", "1", "--json", "--wait", "100", *arguments))
    return attempts


def test_after_a_scheduler_a_command_goes_on_with_its_own_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is wrong with the next cluster is said, not that there was another one before it."""
    monkeypatch.setattr(ladder_options, "AGAIN_SECONDS", 0)
    assert goes(monkeypatch, "-o", str(tmp_path / "new")) == [False, True]
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "run.json").write_text("{}")
    assert goes(monkeypatch, "-o", str(tmp_path / "older")) == [False, False]
