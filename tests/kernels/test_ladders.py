"""A ladder of another type costs kernels and a catalog entry: a tiny one of 16 bits goes through every room."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from page_sessions import ladder_session
from scale import few
from tiny_ladder import TINY

from gemmprof.analysis.session import Session
from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.cli import main
from gemmprof.commands import collect, stages
from gemmprof.kernels import catalog
from gemmprof.kernels.build import build
from gemmprof.kernels.compiler import is_main, why_skipped
from gemmprof.kernels.operators import operator_name
from gemmprof.model import Problem, StageRecord, StageResult, Timing, Verification
from gemmprof.profiler.measuring import random_operands, tolerance, verify
from gemmprof.profiler.settings import Settings
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.html import render
from gemmprof.runs.directory import load_run, nvtx_range, save_run

SHAPE = (33, 65, 128)
HALVES = [("float16", ""), ("bfloat16", ""), ("float16", "float32"), ("bfloat16", "float32")]


@pytest.fixture
def two_ladders(monkeypatch):
    monkeypatch.setattr(catalog, "LADDERS", (catalog.SINGLE, TINY))
    for command in (collect, stages):
        monkeypatch.setitem(command.VALUES, "ladder", ("single", "tiny"))


# The build, and what stands between a caller and a wrong result.


@pytest.fixture(scope="module")
def tiny(nvcc):
    pytest.importorskip("torch")
    return build(architectures=["9.0", "8.0"], ladders=[TINY])


@pytest.fixture(scope="module", params=few(["hgemm_wgmma", "tiny_naive"], ["hgemm_wgmma"]))
def run(request, built):
    """An operator of 16 bits; in the campaign the tiny ladder's, too."""
    torch = pytest.importorskip("torch")
    own = request.param == "tiny_naive"
    torch.ops.load_library(str((request.getfixturevalue("tiny") if own else built).library))
    return getattr(torch.ops.gemmprof, f"{request.param}_out")


@pytest.mark.campaign
def test_the_build_compiles_each_stage_for_what_it_is_written_for(tiny):
    assert not tiny.failures and not tiny.skipped
    naive, hopper = tiny.stages["tiny_naive"], tiny.stages["tiny_hopper"]
    assert {kernel.architecture for kernel in naive.note.kernels} == {"sm_80", "sm_90"}
    assert {kernel.architecture for kernel in hopper.note.kernels} == {"sm_90a"}
    assert hopper.resources("sm_90").architecture == "sm_90a"
    assert all(is_main(kernel.name) for kernel in naive.note.kernels)


REASON = "it is written for sm_90a, this is sm_80"


def test_what_is_written_for_another_gpu_has_a_reason():
    assert why_skipped(("9.0a",), ["80"]) == REASON
    assert not why_skipped(("9.0a",), ["80", "90"]) and not why_skipped((), ["80"])


@pytest.mark.campaign
def test_a_stage_for_another_gpu_is_left_out_with_the_reason(nvcc):
    pytest.importorskip("torch")
    result = build(architectures=["8.0"], ladders=[TINY])
    assert set(result.stages) == {"tiny_naive"}
    assert result.skipped == {"tiny_hopper": REASON}


def operands(torch, a="float16", b="float16", c="float16"):
    return tuple(
        torch.zeros(shape, dtype=getattr(torch, dtype))
        for shape, dtype in (((3, 4), a), ((4, 5), b), ((3, 5), c))
    )


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (("float32", "float32", "float32"), "A must be float16 or bfloat16, found Float"),
        (("float16", "bfloat16", "float16"), "B must be float16, found BFloat16"),
        (("bfloat16", "bfloat16", "float16"), "out must be float32 or bfloat16, found Half"),
    ],
)
def test_other_types_are_refused(run, types, message):
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=message):
        run(*operands(torch, *types))


@pytest.mark.parametrize(("dtype", "c_dtype"), HALVES)
def test_only_the_device_is_wrong(run, dtype, c_dtype):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="A must be on a CUDA device"):
        run(*operands(torch, dtype, dtype, c_dtype or dtype))


def test_transposed_operands_of_16_bits_are_taken(run):
    """As torch.mm takes them: a linear layer's weight is one. C, and any other stride, is refused."""
    torch = pytest.importorskip("torch")
    a, b, out = operands(torch)
    transposed = torch.zeros(5, 4, dtype=torch.float16).T
    for first, second in ((a, transposed), (torch.zeros(4, 3, dtype=torch.float16).T, b)):
        with pytest.raises(ValueError, match="A must be on a CUDA device"):
            run(first, second, out)
    with pytest.raises(ValueError, match="out must be row-major"):
        run(a, b, torch.zeros(5, 3, dtype=torch.float16).T)
    with pytest.raises(ValueError, match=r"or the transpose of such a matrix, found strides \[16, 2\]"):
        run(torch.zeros(3, 16, dtype=torch.float16)[:, :8:2], b, out)


def test_overlap_with_a_transposed_operand(run):
    torch = pytest.importorskip("torch")
    buffer = torch.zeros(64, dtype=torch.float16)
    a = torch.zeros(3, 4, dtype=torch.float16)
    b = buffer[:20].view(5, 4).T
    with pytest.raises(ValueError, match="out overlaps B"):
        run(a, b, buffer[19:34].view(3, 5))
    with pytest.raises(ValueError, match="must be on a CUDA device"):
        run(a, b, buffer[20:35].view(3, 5))


def test_overlap_counts_bytes(run):
    """C of float32 over the end of a float16 A: apart by elements, not by bytes."""
    torch = pytest.importorskip("torch")
    buffer = torch.zeros(200, dtype=torch.uint8)
    a = buffer[:24].view(torch.float16).view(3, 4)
    b = torch.zeros(4, 5, dtype=torch.float16)
    with pytest.raises(ValueError, match="out overlaps A"):
        run(a, b, buffer[20:80].view(torch.float32).view(3, 5))
    with pytest.raises(ValueError, match="must be on a CUDA device"):
        run(a, b, buffer[24:84].view(torch.float32).view(3, 5))


# Verification.


def product(a, b, out, alpha, beta):
    """A right kernel: sums in float32, one rounding to C's type."""
    result = alpha * (a.float() @ b.float())
    out.copy_(result + beta * out.float() if beta else result)


def check(kernel, dtype, c_dtype=""):
    pytest.importorskip("torch")
    return verify(kernel, random_operands(Problem(*SHAPE, dtype, c_dtype), seed=1, device="cpu"))


@pytest.mark.parametrize(("dtype", "c_dtype"), HALVES)
def test_a_right_kernel_passes(dtype, c_dtype):
    result = check(product, dtype, c_dtype)
    assert result.passed, result.detail
    assert result.tolerance >= tolerance(Problem(*SHAPE, dtype, c_dtype)) > result.relative_error


def rounds_twice(a, b, out, alpha, beta):
    """Adds up two halves of K, each rounded to the operands' type."""
    half = a.shape[1] // 2
    first = (a[:, :half].float() @ b[:half].float()).to(a.dtype).float()
    second = (a[:, half:].float() @ b[half:].float()).to(a.dtype).float()
    out.copy_(alpha * (first + second) + (beta * out.float() if beta else 0))


def sums_in_the_operands_type(a, b, out, alpha, beta):
    total = (a[:, :1].float() @ b[:1].float()).to(a.dtype)
    for k in range(1, a.shape[1]):
        total = (total.float() + a[:, k : k + 1].float() @ b[k : k + 1].float()).to(a.dtype)
    out.copy_(alpha * total.float() + (beta * out.float() if beta else 0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bits_fail(dtype):
    assert not check(sums_in_the_operands_type, dtype).passed
    assert not check(rounds_twice, dtype, "float32").passed


def leaves_a_row(a, b, out, alpha, beta):
    result = alpha * (a.float() @ b.float()) + (beta * out.float() if beta else 0)
    out[:-1].copy_(result[:-1])


def writes_behind_the_end(a, b, out, alpha, beta):
    product(a, b, out, alpha, beta)
    out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(1.0)


def writes_to_b(a, b, out, alpha, beta):
    product(a, b, out, alpha, beta)
    b[0, 0] = 0


@pytest.mark.parametrize(("dtype", "c_dtype"), HALVES)
@pytest.mark.parametrize(
    ("kernel", "detail"),
    [
        (leaves_a_row, "65 of 2145 elements of C were never written"),
        (writes_behind_the_end, "1 elements outside of C were written"),
        (writes_to_b, "the kernel wrote to B"),
    ],
)
def test_wrong_kernels_are_found_in_every_type(kernel, detail, dtype, c_dtype):
    result = check(kernel, dtype, c_dtype)
    assert not result.passed and detail in result.detail


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_yardstick_computes_in_every_type(dtype):
    torch = pytest.importorskip("torch")
    from gemmprof.kernels.operators import run_stage

    a, b, out = operands(torch, dtype, dtype, dtype)
    a.fill_(2.0), b.fill_(0.5)
    run_stage(TINY.yardstick, a, b, out)
    assert out.tolist() == [[4.0] * 5] * 3


# The catalog, the command line, the run, its pages.


def test_a_number_means_a_stage_of_the_ladder_of_the_type(two_ladders):
    assert catalog.stage_by_number(1).name == "naive"
    assert catalog.stage_by_number(1, "float16").name == "tiny_naive"
    assert operator_name(1) == "naive" and operator_name(1, "bfloat16") == "tiny_naive"
    assert operator_name("tiny_hopper") == "tiny_hopper"
    assert catalog.ladder_dtypes() == ("float32", "float16", "bfloat16")


def settings(*arguments):
    import argparse

    from gemmprof.arguments.parser import declare

    parser = argparse.ArgumentParser()
    declare(parser, collect.ARGUMENTS, collect.VALUES)
    return collect.settings_from(parser.parse_args(arguments), None)


def test_all_stages_are_those_of_every_ladder(two_ladders):
    chosen = settings("--all-stages", "--shape", "64")
    assert [problem.key for problem in chosen.problems] == ["64x64x64", "64x64x64-bfloat16"]
    names = {problem.dtype: [s.name for s, p in chosen.pairs if p == problem] for problem in chosen.problems}
    assert names["float32"] == [stage.name for stage in catalog.SINGLE.stages]
    assert names["bfloat16"] == ["cublas", "tiny_naive", "tiny_hopper"]


def test_ladder_and_types_on_the_command_line(two_ladders, capsys):
    chosen = settings("--ladder", "tiny", "--stage", "1", "--dtype", "float16", "--c-dtype", "float32")
    assert [(stage.name, problem.key) for stage, problem in chosen.pairs] == [
        ("tiny_naive", "4096x4096x4096-float16-float32")
    ]
    assert [s.name for s in settings("--stage", "naive", "--dtype", "float32").stages] == ["naive"]
    with pytest.raises(UsageError, match="ladder single does not compute in float16"):
        settings("--ladder", "single", "--all-stages", "--dtype", "float16")
    with pytest.raises(UsageError, match="writes float16 from bfloat16"):
        settings("--ladder", "tiny", "--all-stages", "--c-dtype", "float16")
    assert main(["stages", "--ladder", "tiny", "--json"]) == 0
    assert [stage["name"] for stage in json.loads(capsys.readouterr().out)["stages"]] == [
        s.name for s in TINY.stages
    ]
    assert main(["stages"]) == 0
    assert "Needs 9.0a." in " ".join(capsys.readouterr().out.split())


def test_a_collection_goes_on_without_the_stages_for_other_gpus(two_ladders, tmp_path):
    from gemmprof.base.progress import Progress
    from gemmprof.gpu.devices import Gpu
    from gemmprof.profiler.collect import Collection
    from gemmprof.profiler.site import Machine

    def collection(stages):
        chosen = Settings(stages, (Problem(8, 8, 8, "float16"),))
        return Collection(
            chosen, tmp_path, Machine(Gpu(0, "A100", (8, 0), 80 << 30, "580", "GPU-0"), None), Progress(), 0
        )

    going_on = collection(TINY.stages)
    going_on._leave_out({"tiny_hopper": "it is written for sm_90a, this is sm_80"})
    assert [stage.name for stage in going_on._keeper.settings.stages] == ["cublas", "tiny_naive"]
    with pytest.raises(DeviceError, match="no stage that was chosen runs on this GPU") as caught:
        collection(TINY.stages[2:])._leave_out({"tiny_hopper": "it is written for sm_90a"})
    assert "tiny_hopper: it is written for sm_90a" in caught.value.found


def both(recorded, directory: Path) -> Session:
    """A run of both ladders at one shape and two types of the second; two launches stand in for the tiny kernels'."""
    session = ladder_session(recorded("ladder_simple"))
    assert session.run is not None
    stages = TINY.stages[:2]
    problems = tuple(Problem(size, size, size, "bfloat16") for size in (1024, 2048))
    results = tuple(
        StageResult(
            stage.number,
            problem,
            Verification(1e-3, 4e-3, True),
            Timing(seconds, seconds, seconds, seconds, 9, None, 1e-4),
            report="reports/ladder.ncu-rep" if stage.number else None,
            launch_index=place if stage.number else None,
        )
        for place, problem in enumerate(problems)
        for stage, seconds in zip(stages, (1e-4, 4e-4), strict=True)
    )
    run = replace(
        session.run,
        directory=directory,
        stages=(*session.run.stages, *map(StageRecord, stages)),
        problems=(*session.run.problems, *problems),
        results=(*session.run.results, *results),
    )
    return replace(session, run=run)


def test_a_run_of_two_ladders_is_kept(recorded, tmp_path):
    run = both(recorded, tmp_path).run
    save_run(run)
    again = load_run(tmp_path)
    assert again == run
    assert [ladder.name for ladder in again.ladders] == ["single", "tiny"]
    half = Problem(1024, 1024, 1024, "bfloat16")
    assert again.record(1).stage.name == "naive"
    assert again.record(1, half).stage.name == "tiny_naive"
    assert again.yardstick(half).timing.median == 1e-4
    assert again.find_record("tiny:1").stage.name == "tiny_naive"
    assert nvtx_range("tiny_naive", half) == "gemmprof/tiny_naive/1024x1024x1024-bfloat16"
    assert again.find_record("1").stage.name == "naive"  # a number alone: of the first ladder
    with pytest.raises(Exception, match="several stages cublas"):
        again.find_record("cublas")


def test_stages_of_two_ladders_are_told_apart_on_the_command_line(recorded, tmp_path):
    from gemmprof.reports.pages.contents import choose

    session = both(recorded, tmp_path)
    pages = plan(session).pages
    assert choose(pages, "tiny:1").record.stage.name == "tiny_naive"
    assert choose(pages, "3").record.stage.name == "shared"


def test_pages_of_two_ladders(recorded, tmp_path):
    session = both(recorded, tmp_path)
    pages = plan(session).pages
    tiny = [page for page in pages if page.record.stage.ladder == "tiny"]
    assert [page.key for page in tiny] == [
        "01-tiny-naive-2048x2048x2048-bfloat16",
        "01-tiny-naive-1024x1024x1024-bfloat16",
    ]
    assert [page.of_yardstick for page in tiny] == [0.25, 0.25]
    text = render(session, tmp_path / "pages").read_text(encoding="utf-8")
    # What a stage does not declare, its page leaves out.
    folder = tmp_path / "pages"
    declared = (folder / "03-shared-1024x1024x1024.html").read_text(encoding="utf-8")
    undeclared = (folder / f"{tiny[1].key}.html").read_text(encoding="utf-8")
    assert "How a warp touches memory" in declared and "How a warp touches memory" not in undeclared
    for words in ("The ladder at 1024³ bfloat16", 'id="over-size-single"', 'id="over-size-tiny"'):
        assert words in text
