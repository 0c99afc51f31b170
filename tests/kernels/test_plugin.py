"""GEMMs of a user's own file beside the ladder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from recorded_data import ROOT

from gemmprof.base.errors import UsageError
from gemmprof.kernels import catalog, operators, plugin
from gemmprof.kernels.catalog import ladder_of, stage_by_number
from gemmprof.model import Problem

FILE = '''
"""Not executed when it is read."""
raise_if_run = 1 / 1

def my_gemm(a, b, out):
    """One product, written in place."""
    import torch
    torch.matmul(a, b, out=out)

def full_gemm(a, b, out, alpha, beta):
    out.mul_(beta).add_(a @ b, alpha=alpha) if beta else out.copy_(alpha * (a @ b))

def new_matmul(a, b):
    return a @ b

def wrong_gemm(a, b, out):
    out.copy_(a @ b)
    out[0, 0] += 1

def _hidden_gemm(a, b): ...
def helper(x): ...
'''


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The ladders, the calls and the environment are what they were after each test."""
    ladders, calls = catalog.LADDERS, dict(operators.LIBRARY_CALLS)
    monkeypatch.delenv(plugin.PLUGIN_VARIABLE, raising=False)
    yield
    catalog.LADDERS = ladders
    operators.LIBRARY_CALLS.clear()
    operators.LIBRARY_CALLS.update(calls)
    os.environ.pop(plugin.PLUGIN_VARIABLE, None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_functions_become_stages_of_every_ladder(file: Path) -> None:
    stages = plugin.install(file)
    assert [s.name for s in stages if s.ladder == "single"] == [
        "my_gemm",
        "full_gemm",
        "new_matmul",
        "wrong_gemm",
    ]
    # A plain product takes no 8-bit operands.
    assert {s.ladder for s in stages} == {"single", "half"}
    first = stage_by_number(plugin.FIRST_NUMBER)
    assert (first.name, first.idea, first.source) == ("my_gemm", "One product, written in place.", None)
    assert stage_by_number(plugin.FIRST_NUMBER, "bfloat16").name == "my_gemm"
    assert ladder_of("float32").yardstick.name == "cublas"
    assert os.environ[plugin.PLUGIN_VARIABLE] == str(file)
    assert len(plugin.source_hash(first)) == 64 and plugin.source_hash(stage_by_number(1)) == ""


def test_reading_a_file_runs_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text("raise SystemExit('run')\ndef my_gemm(a, b): ...\n")
    assert plugin.install(path)


def test_installing_twice_leaves_one(file: Path) -> None:
    plugin.install(file)
    plugin.install(file)
    assert sum(stage.name == "my_gemm" for stage in ladder_of("float32").stages) == 1


@pytest.mark.parametrize(
    ("name", "right"), [("my_gemm", True), ("full_gemm", True), ("new_matmul", True), ("wrong_gemm", False)]
)
def test_each_form_is_verified_against_float64(file: Path, name: str, right: bool) -> None:
    torch = pytest.importorskip("torch")
    from gemmprof.profiler.measuring import verify_stage

    stage = next(s for s in plugin.install(file) if s.name == name)
    problem = Problem(33, 17, 65)
    result = verify_stage(
        stage, problem, partial(operators.run_stage, stage), seed=1, device=torch.device("cpu")
    )
    assert result.passed is right, result
    assert right or "relative error" in result.detail


def test_types_can_be_restricted(file: Path) -> None:
    file.write_text('DTYPES = ("bfloat16",)\n' + FILE)
    assert {(s.ladder, s.dtypes) for s in plugin.install(file)} == {("half", ("bfloat16",))}
    file.write_text('DTYPES = ("float8_e4m3fn",)\n' + FILE)
    assert {(s.ladder, s.dtypes) for s in plugin.install(file)} == {("fp8", ("float8_e4m3fn",))}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def helper(x): ...", "holds no GEMM"),
        ("def my_gemm(a): ...", "takes 1 parameters"),
        ("def f(:", "is no Python"),
        ("GEMMS = ['none']\ndef f(a, b): ...", "GEMMS names 'none'"),
        ("DTYPES = ['float8']\ndef my_gemm(a, b): ...", "DTYPES names 'float8'"),
        ("def naive(a, b): ...\nGEMMS = ['naive']", "has a stage naive already"),
    ],
)
def test_what_is_no_plug_in_says_why(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        plugin.install(path)
    assert said in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.py cannot be read"):
        plugin.install(tmp_path / "none.py")


def test_a_result_of_another_shape_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "shape.py"
    path.write_text("def odd_gemm(a, b):\n    return (a @ b).T[:1]\n")
    stage = plugin.install(path)[0]
    a, b = torch.rand(3, 4), torch.rand(4, 5)
    with pytest.raises(ValueError, match="odd_gemm returned Tensor"):
        operators.run_stage(stage, a, b, torch.empty(3, 5))


def test_the_command_line_chooses_them_beside_the_yardstick(file: Path) -> None:
    from gemmprof.cli import build_parser
    from gemmprof.commands.collect import settings_from

    def names(*words: str) -> list[str]:
        options = build_parser("collect").parse_args(["collect", "--plugin", str(file), *words])
        return [stage.name for stage in settings_from(options, None).stages]

    assert names() == ["cublas", "my_gemm", "full_gemm", "new_matmul", "wrong_gemm"]
    assert names("--stage", "1-2") == [
        "naive",
        "coalesced",
        "my_gemm",
        "full_gemm",
        "new_matmul",
        "wrong_gemm",
    ]
    assert "my_gemm" in names("--all-stages")
    assert names("--dtype", "bfloat16")[1] == "my_gemm"


def test_the_example_of_the_documentation_is_one() -> None:
    stages = plugin.install(ROOT / "docs" / "examples" / "my_gemm.py")
    assert [s.name for s in stages if s.ladder == "single"] == ["triton_gemm", "torch_matmul"]
