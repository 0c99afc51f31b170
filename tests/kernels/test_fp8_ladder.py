"""The 8-bit ladder without a GPU: its types, its operands, what verification tells apart, its yardstick's copies."""

from __future__ import annotations

import pytest
from late import needs_torch, torch

from gemmprof.base.errors import UsageError
from gemmprof.gpu.dtypes import FLOAT8_E4M3
from gemmprof.kernels.catalog import FP8, HALF, SINGLE, ladder_of, stage_by_number
from gemmprof.kernels.compiler import SOURCES
from gemmprof.model import Problem
from gemmprof.profiler.measuring import GUARD_ELEMENTS, random_operands, tolerance, verify
from gemmprof.profiler.settings import Settings

pytestmark = needs_torch

E4M3 = FLOAT8_E4M3.name
C_TYPES = FLOAT8_E4M3.c_types
SHAPE = (33, 65, 128)


def operands(shape=SHAPE, c_dtype=""):
    return random_operands(Problem(*shape, E4M3, c_dtype), seed=1, device="cpu")


def test_c_is_bfloat16_unless_it_is_said():
    problem = Problem(64, 64, 64, E4M3)
    assert (problem.c_dtype, problem.key) == ("bfloat16", "64x64x64-float8_e4m3fn")
    assert Problem.parse("64x64x64-float8_e4m3fn") == problem == Problem.parse("64", E4M3)
    wide = Problem(64, 64, 64, E4M3, "float32")
    assert Problem.parse(wide.key) == wide and wide.types_label == "float8_e4m3fn → float32"
    with pytest.raises(UsageError, match="writes float8_e4m3fn from float8_e4m3fn") as caught:
        Settings(FP8.stages, (Problem(64, 64, 64, E4M3, E4M3),))
    assert caught.value.remedies == ("C is bfloat16 or float16 or float32",)


def test_a_number_means_this_ladder_by_the_type():
    assert ladder_of(E4M3) is FP8
    assert stage_by_number(1, E4M3).name == "fp8gemm_promoted"
    assert [stage.name for stage in HALF.stages if E4M3 in stage.dtypes] == []


def test_b_is_stored_as_the_tensor_cores_read_it():
    made = operands()
    assert made.a.matrix.dtype == made.b.matrix.dtype == torch.float8_e4m3fn
    assert made.a.matrix.stride() == (128, 1) and made.b.matrix.stride() == (1, 128)
    assert 0.9 < made.b.matrix.float().std() < 1.1
    assert made.c.matrix.dtype == torch.bfloat16 and bool(made.c.matrix.isnan().all())
    for guarded in (made.a, made.b):
        assert guarded.overwritten_guards() == 0 and bool(guarded.buffer[:GUARD_ELEMENTS].isnan().all())
        guarded.buffer[-1] = torch.tensor(1.0).to(guarded.buffer)
        assert guarded.overwritten_guards() == 1


def promoted(a, b, out, alpha, beta):
    """The stage's arithmetic: sums cut to 14 bits over 32 of K at a time, added in float32 every 128."""
    sums = torch.zeros(out.shape)
    for start in range(0, a.shape[1], 128):
        sums += cut_sums(a[:, start : start + 128], b[start : start + 128])
    out.copy_(alpha * sums + (beta * out.float() if beta else 0))


def cut_sums(a, b):
    part = torch.zeros(a.shape[0], b.shape[1])
    for k in range(0, a.shape[1], 32):
        part = cut(part + a[:, k : k + 32].float() @ b[k : k + 32].float())
    return part


def cut(values):
    """What 14 bits of significand keep."""
    significand, exponent = torch.frexp(values)
    return torch.ldexp(torch.trunc(significand * 2**14), exponent - 14)


def never_promoted(a, b, out, alpha, beta):
    out.copy_(alpha * cut_sums(a, b) + (beta * out.float() if beta else 0))


@pytest.mark.parametrize("c_dtype", C_TYPES)
def test_promoted_sums_pass_and_others_are_found(c_dtype):
    # Sums that are never promoted lose so much over a long K alone.
    made = operands((16, 24, 4096 if c_dtype == "float32" else 1024), c_dtype)
    result = verify(promoted, made)
    assert result.passed, result.detail
    assert result.relative_error < tolerance(made.problem)
    if c_dtype == "float32":
        assert not verify(never_promoted, made).passed


def reads_past_a(a, b, out, alpha, beta):
    k = a.shape[1]
    wider = a.as_strided((a.shape[0], k + 1), (k, 1))
    more = torch.cat([b.float(), torch.ones(1, b.shape[1])])
    out.copy_(alpha * (wider.float() @ more) + (beta * out.float() if beta else 0))


def writes_to_b(a, b, out, alpha, beta):
    promoted(a, b, out, alpha, beta)
    b[0, 0] = torch.tensor(3.0).to(b)


@pytest.mark.parametrize(
    ("kernel", "detail"), [(reads_past_a, "C holds NaN"), (writes_to_b, "the kernel wrote to B")]
)
def test_wrong_kernels_are_found(kernel, detail):
    result = verify(kernel, operands())
    assert not result.passed and detail in result.detail


# The operator and the yardstick.


def test_types_and_devices_that_the_operator_takes(built):
    from gemmprof.kernels.operators import load
    from gemmprof.kernels.scaled import scaled_mm

    if "fp8gemm_promoted" not in built.stages:
        pytest.skip("its sources are those that the tables were made from: the campaign compiles it")
    load(built)
    run = torch.ops.gemmprof.fp8gemm_promoted_out
    a, b = torch.zeros(3, 4).to(torch.float8_e4m3fn), torch.zeros(5, 4).to(torch.float8_e4m3fn).T
    for c_dtype in C_TYPES:
        with pytest.raises(ValueError, match="A must be on a CUDA device"):
            run(a, b, torch.zeros(3, 5, dtype=getattr(torch, c_dtype)))
    with pytest.raises(TypeError, match="out must be float32 or float16 or bfloat16, found Float8_e4m3fn"):
        run(a, b, torch.zeros(3, 5).to(a))
    with pytest.raises(TypeError, match="A must be float8_e4m3fn, found Float8_e5m2"):
        run(a.to(torch.float8_e5m2), b, torch.zeros(3, 5))
    with pytest.raises(TypeError, match="B must be float8_e4m3fn, found Half"):
        run(a, b.half(), torch.zeros(3, 5))
    a, b = torch.zeros(3, 400).to(a), torch.zeros(300, 400).to(a).T
    for scales in ((torch.ones(1), 2.0), (torch.ones(3, 1), 2.0), (torch.ones(3, 4), torch.ones(4, 3))):
        with pytest.raises(ValueError, match=r"must be on (a|one) CUDA device"):
            scaled_mm(a, b, *scales)


def test_scales_that_are_taken(built):
    from gemmprof.kernels.operators import load
    from gemmprof.kernels.scaled import scaled_mm

    load(built)
    a, b = torch.zeros(3, 400).to(torch.float8_e4m3fn), torch.zeros(300, 400).to(torch.float8_e4m3fn).T
    asked = r"one element each, \[3, 1\] and \[1, 300\], or \[3, 4\] and \[4, 3\], found "
    for first, second in ((torch.ones(()), torch.ones(3)), (torch.ones(3, 1), torch.ones(4, 3)),
                          (torch.ones(3, 4), torch.ones(3, 4)), (torch.ones(1, 3), torch.ones(1, 300))):  # fmt: skip
        with pytest.raises(ValueError, match=asked):
            scaled_mm(a, b, first, second)
    with pytest.raises(ValueError, match=r"scale_a must be float32 on cpu, found torch.float64 on cpu"):
        scaled_mm(a, b, torch.ones(3, 1).double(), 1.0)
    with pytest.raises(TypeError, match=r"B must be float8_e4m3fn, found torch.float16"):
        scaled_mm(a, b.half(), torch.ones(3, 1), 1.0)


@pytest.mark.parametrize("shape", [SHAPE, (32, 64, 128), (1, 1, 1), (5, 16, 0)], ids=str)
@pytest.mark.parametrize("c_dtype", C_TYPES)
def test_the_yardstick_takes_any_shape(monkeypatch, shape, c_dtype):
    """torch._scaled_mm wants multiples of 16 and B stored transposed; what it is given here obeys that."""
    from functools import partial

    from gemmprof.kernels.operators import run_stage

    def scaled_mm(a, b, scale_a, scale_b, out_dtype, use_fast_accum, out=None):
        assert not any(size % 16 for size in b.shape) and a.stride(1) == 1 and b.stride(0) == 1
        assert use_fast_accum is False
        product = (scale_a * scale_b * (a.float() @ b.float())).to(out_dtype)
        return product if out is None else out.copy_(product)

    monkeypatch.setattr("torch._scaled_mm", scaled_mm)
    made = operands(shape, c_dtype)
    result = verify(partial(run_stage, FP8.yardstick), made)
    assert result.passed, result.detail


# The collection.


def test_a_gpu_without_it_does_the_other_ladders(tmp_path):
    """Its yardstick goes, too: torch has no products of 8 bits there."""
    from gemmprof.base.progress import Progress
    from gemmprof.gpu.devices import Gpu
    from gemmprof.profiler.collect import Collection
    from gemmprof.profiler.site import Machine

    problems = (Problem(64, 64, 64), Problem(64, 64, 64, E4M3))
    machine = Machine(Gpu(0, "A100", (8, 0), 80 << 30, "580", "GPU-0"), None)
    collection = Collection(
        Settings((*SINGLE.stages, *FP8.stages), problems), tmp_path, machine, Progress(), 0
    )
    collection._leave_out({"fp8gemm_promoted": "it is written for sm_90a, this is sm_80"})
    left = collection._keeper.settings
    assert left.stages == SINGLE.stages and left.problems == problems[:1]


def test_one_place_counts_the_buffers_that_are_being_stored():
    """A stage that counted them itself, anew with each tile, stored tiles of others: the wait counts across tiles."""
    home = {"ptx.cuh", "store_ring.cuh"}
    sources = [path for path in SOURCES.rglob("*.cu*") if path.name not in home]
    assert not [path.name for path in sources if "ptx::store_box" in path.read_text(encoding="utf-8")]
    assert sum("ring.store(" in path.read_text(encoding="utf-8") for path in sources) >= 2
