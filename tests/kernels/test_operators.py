"""The operators without a GPU: what they refuse, with which words, and the shapes they promise."""

from __future__ import annotations

import pytest
from called_stages import CALLED
from late import needs_torch, torch
from scale import CAMPAIGN

from gemmprof.base.errors import BuildError, UsageError
from gemmprof.gpu.dtypes import ELEMENT_TYPES
from gemmprof.kernels import operators
from gemmprof.kernels.catalog import all_variants, stage_by_number

pytestmark = needs_torch

DTYPES = {variant.name: variant.stage.dtypes for variant in all_variants()}


@pytest.fixture(scope="module")
def extension(built):
    return operators.load(built)


@pytest.fixture(params=DTYPES if CAMPAIGN else CALLED)
def name(request, extension):
    return request.param


@pytest.fixture
def dtype(name):
    """The first type that the stage takes."""
    return getattr(torch, DTYPES[name][0])


@pytest.fixture
def c_dtype(name):
    """What C is of where nobody says."""
    return getattr(torch, ELEMENT_TYPES[DTYPES[name][0]].c_types[0])


def out_operator(name):
    return getattr(torch.ops.gemmprof, f"{name}_out")


def test_cpu_tensors_are_refused(name, dtype, c_dtype):
    a, b, out = (
        torch.zeros(3, 4, dtype=dtype),
        torch.zeros(4, 5, dtype=dtype),
        torch.zeros(3, 5, dtype=c_dtype),
    )
    with pytest.raises(ValueError, match=rf"gemmprof\.{name}: A must be on a CUDA device, found cpu"):
        getattr(torch.ops.gemmprof, name)(a, b)
    with pytest.raises(ValueError, match=rf"gemmprof\.{name}: A must be on a CUDA device, found cpu"):
        out_operator(name)(a, b, out)


def test_shapes_of_fake_tensors(name, dtype, c_dtype):
    a, b = torch.empty(3, 4, dtype=dtype, device="meta"), torch.empty(4, 5, dtype=dtype, device="meta")
    out = getattr(torch.ops.gemmprof, name)(a, b)
    assert (out.shape, out.dtype, out.device.type) == ((3, 5), c_dtype, "meta")
    assert out_operator(name)(a, b, out) is None


@pytest.fixture
def matrices():
    """A, B, out, and memory for what lies side by side or on each other."""
    return torch.randn(3, 4), torch.randn(4, 5), torch.empty(3, 5), torch.randn(100)


@pytest.mark.parametrize("stage", ["naive", "vectorized"])
def test_refused(extension, stage, matrices):
    a, b, out, buffer = matrices
    refused = {
        "dtype of A": ((a.double(), b, out), TypeError, "A must be float32, found Double"),
        "dtype of B": ((a, b.half(), out), TypeError, "B must be float32, found Half"),
        "dtype of out": ((a, b, out.int()), TypeError, "out must be float32, found Int"),
        "rank of A": ((a[0], b, out), ValueError, r"A must be a matrix, found 1 dimension\(s\), shape \[4\]"),
        "rank of B": ((a, b[None], out), ValueError, r"B must be a matrix, found 3 dimension\(s\)"),
        "inner dimension": (
            (a, out, out),
            ValueError,
            "A is 3 x 4 and B is 3 x 5; the columns of A must equal",
        ),
        "shape of out": ((a, b, torch.empty(5, 3)), ValueError, "out must be 3 x 5, found 5 x 3"),
        "transposed A": (
            (torch.randn(4, 3).T, b, out),
            ValueError,
            r"A must be row-major .* call \.contiguous\(\)",
        ),
        "transposed out": ((a, b, torch.empty(5, 3).T), ValueError, "out must be row-major"),
        "strided columns": ((torch.randn(3, 8)[:, ::2], b, out), ValueError, r"found strides \[8, 2\]"),
        "out is A": ((a[:, :4], b[:, :4], a), ValueError, "out overlaps A in memory"),
        "out begins in B": (
            (a, buffer[:20].view(4, 5), buffer[19:34].view(3, 5)),
            ValueError,
            "out overlaps B in memory",
        ),
        "rows of out overlap": (
            (a, b, buffer.as_strided((3, 5), (4, 1))),
            ValueError,
            "the rows of out overlap each other",
        ),
        "column ranges that share a column": (
            (buffer.view(10, 10)[:3, :4], b, buffer.view(10, 10)[:3, 3:8]),
            ValueError,
            "out overlaps A in memory",
        ),
        "columns that wrap into the next row": (
            (buffer.as_strided((3, 4), (10, 1), 8), b, buffer.as_strided((3, 5), (10, 1), 11)),
            ValueError,
            "out overlaps A in memory",
        ),
        "too many rows": (
            (torch.empty(1, 1).expand(2**31, 1), torch.empty(1, 1), out),
            ValueError,
            r"A has shape \[2147483648, 1\]; a dimension may be at most 2147482624",
        ),
        "too long a row": (
            (torch.empty(1, 1).expand(1, 2**31), torch.empty(1, 1).expand(2**31, 1), torch.empty(1, 1)),
            ValueError,
            r"a dimension may be at most 2147482624",
        ),
    }
    for case, (operands, error, message) in refused.items():
        with pytest.raises(error, match=message):
            out_operator(stage)(*operands)
            pytest.fail(f"{case} is not refused")


def test_only_the_device_is_wrong(extension, matrices):
    """These pass every check but the last: a CPU tensor."""
    a, b, out, buffer = matrices
    accepted = {
        "plain": (a, b, out),
        "K = 0": (torch.empty(3, 0), torch.empty(0, 5), out),
        "rows apart": (torch.randn(3, 9)[:, 2:6], torch.randn(4, 11)[:, :5], torch.empty(3, 7)[:, 1:6]),
        "one row, any stride": (torch.randn(8, 4)[:1], b, torch.empty(1, 5)),
        "one column": (a, torch.randn(4, 3)[:, 1:2], torch.empty(3, 1)),
        "A repeats a row": (torch.randn(1, 4).expand(3, 4), b, out),
        "column ranges side by side": (buffer.view(10, 10)[:3, :4], b, buffer.view(10, 10)[:3, 4:9]),
        "rows apart in one buffer": (
            buffer[:12].view(3, 4),
            buffer[12:32].view(4, 5),
            buffer[32:47].view(3, 5),
        ),
    }
    for case, operands in accepted.items():
        with pytest.raises(ValueError, match="A must be on a CUDA device"):
            torch.ops.gemmprof.naive_out(*operands)
            pytest.fail(f"{case} is not refused")


def test_beta_and_c(extension, matrices):
    a, b, *_ = matrices
    with pytest.raises(ValueError, match="beta is 2 but there is no C"):
        torch.ops.gemmprof.naive(a, b, beta=2.0)
    with pytest.raises(ValueError, match="C must be 3 x 5, found 5 x 3"):
        torch.ops.gemmprof.naive(a, b, torch.empty(5, 3), beta=1.0)


def test_fake_tensors_are_checked(extension):
    a = torch.empty(3, 4, device="meta")
    with pytest.raises(RuntimeError, match="the columns of A must equal the rows of B"):
        torch.ops.gemmprof.naive(a, a)
    with pytest.raises(RuntimeError, match="C must have as many columns as B"):
        torch.ops.gemmprof.naive(a, a.new_empty(4, 5), a.new_empty(3, 6))


def test_traced_graph_keeps_the_operator(extension):
    """torch.compile's tracer sees one node a call, with the right shape, and knows that the out form writes."""
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda a, b: torch.ops.gemmprof.vectorized(a, b) * 2, tracing_mode="fake")(
        torch.empty(3, 4, device="meta"), torch.empty(4, 5, device="meta")
    )
    assert "gemmprof.vectorized" in graph.code
    schema = torch.ops.gemmprof.vectorized_out.default._schema
    assert schema.is_mutable
    assert [argument.name for argument in schema.arguments if argument.is_write] == ["out"]


def test_load_again_is_the_same(extension, built):
    assert operators.load(built) is extension
    assert operators.load() is extension


def test_every_stage_takes_just_its_types(name):
    a, b = torch.zeros(3, 4), torch.zeros(4, 5)
    for other in ("float32", "float16", "bfloat16", "float64"):
        operands = [matrix.to(getattr(torch, other)) for matrix in (a, b)]
        error = ValueError if other in DTYPES[name] else TypeError
        with pytest.raises(error, match="CUDA device" if error is ValueError else "A must be"):
            getattr(torch.ops.gemmprof, name)(*operands)


def test_occupancy_of_an_unknown_stage(extension):
    with pytest.raises(BuildError, match="no stage nothing"):
        extension.occupancy("nothing")


def test_occupancy_without_gpu(extension):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(BuildError, match="the CUDA runtime knows no kernel of stage naive"):
        extension.occupancy("naive")


def test_run_stage_refuses_before_it_builds(matrices):
    with pytest.raises(UsageError, match="the ladder has no stage 99"):
        operators.run_stage(99, *matrices[:3])


@pytest.mark.parametrize("stage", [0, "cublas", stage_by_number(0)])
def test_yardstick_runs_through_torch(stage, matrices):
    a, b, out, _ = matrices
    out.fill_(float("nan"))
    operators.run_stage(stage, a, b, out)
    torch.testing.assert_close(out, a @ b)
    operators.run_stage(stage, a, b, out, alpha=0.5, beta=2.0)
    torch.testing.assert_close(out, 2.5 * (a @ b))


def test_names_of_stages():
    assert operators.operator_name(3) == "shared"
    assert operators.operator_name("shared_tile16") == "shared_tile16"
    assert operators.operator_name(stage_by_number(10)) == "warptiled"
