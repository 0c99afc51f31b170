"""Verification accepts right kernels and names what is wrong with wrong ones. Runs on the CPU; no GPU needed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from late import needs_torch, torch

from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32
from gemmprof.kernels.catalog import LADDERS, SINGLE
from gemmprof.model import Problem
from gemmprof.profiler.measuring import (
    GUARD_ELEMENTS,
    GuardedMatrix,
    distance_and_norm,
    generator_seed,
    random_operands,
    relative_error,
    tolerance,
    verify,
    verify_stage,
)

pytestmark = needs_torch

SMALL = Problem(33, 65, 128)


def product(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    """A right kernel."""
    result = alpha * (a @ b)
    out.copy_(result + beta * out if beta else result)


def check(kernel: Callable[..., object], problem: Problem = SMALL) -> Any:
    return verify(kernel, random_operands(problem, seed=1, device="cpu"))


@pytest.mark.parametrize(
    "problem",
    [
        Problem(1, 1, 1),
        Problem(1, 1, 0),
        Problem(5, 7, 0),
        SMALL,
        Problem(131, 257, 1021),
        Problem(2, 3, 9001),
    ],
)
def test_a_right_kernel_passes(problem: Problem) -> None:
    result = check(product, problem)
    assert result.passed and result.detail == ""
    assert 0 <= result.relative_error <= tolerance(problem) <= result.tolerance


def summed_in_order(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    """A right kernel that rounds after every step of K."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total = torch.addcmul(total, a[:, k : k + 1], b[k : k + 1])
    out.copy_(alpha * total + (beta * out if beta else 0))


def test_a_result_that_is_small_by_chance_is_not_held_against_the_kernel() -> None:
    """Operands on which rounding alone exceeds the tolerance of a product of ordinary size."""
    stages = {stage.name: stage for stage in SINGLE.stages}
    for name, problem, seed in (("fastest", Problem(1, 1, 1), 3), ("double_buffered", Problem(1, 1, 2), 4)):
        result = verify_stage(stages[name], problem, summed_in_order, seed=seed, device="cpu")
        assert result.relative_error > tolerance(problem)
        assert result.passed
        assert not verify_stage(stages[name], problem, tf32, seed=seed, device="cpu").passed


def one_element_wrong(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, alpha, beta)
    out[-1, -1] *= 1.5


def one_element_nan(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, alpha, beta)
    out[3, 3] = math.nan


def one_row_left_out(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    result = alpha * (a @ b) + (beta * out if beta else 0)
    out[:-1] = result[:-1]


def one_element_behind_the_end(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, alpha, beta)
    out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(1.0)


def one_element_before_the_start(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, alpha, beta)
    out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(0.0)


def tf32(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    def rounded(x: Any) -> Any:
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    product(rounded(a), rounded(b), out, alpha, beta)


def beta_forgotten(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, alpha, 0.0)


def alpha_forgotten(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, 1.0, beta)


def reads_c_though_beta_is_zero(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    out.copy_(alpha * (a @ b) + (beta + 1e-30) * out)


def reads_behind_a(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    wider = a.as_strided((a.shape[0], a.shape[1] + 1), a.stride())
    product(a, b, out, alpha, beta)
    out += 0.0 * wider[:, -1:].sum()


def rows_in_reverse(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a.flip(0), b, out, alpha, beta)


def spoils_a(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
    product(a, b, out, alpha, beta)
    if beta:
        a[0, 0] += 1.0


@pytest.mark.parametrize(
    ("kernel", "detail"),
    [
        (one_element_wrong, "exceeds"),
        (one_element_nan, "holds NaN"),
        (one_row_left_out, "65 of 2145 elements of C were never written"),
        (one_element_behind_the_end, "1 elements outside of C"),
        (one_element_before_the_start, "1 elements outside of C"),
        (tf32, "exceeds"),
        (beta_forgotten, "with alpha=0.75, beta=-1.5: relative error"),
        (alpha_forgotten, "with alpha=0.75, beta=-1.5: relative error"),
        (reads_c_though_beta_is_zero, "C"),
        (reads_behind_a, "C"),
        (rows_in_reverse, "exceeds"),
        (spoils_a, "the kernel wrote to A"),
    ],
)
def test_a_wrong_kernel_fails_and_the_result_says_how(kernel: Callable[..., object], detail: str) -> None:
    result = check(kernel)
    assert not result.passed
    assert detail in result.detail


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "with alpha and beta"])
@pytest.mark.parametrize(("times", "passed"), [(0.5, True), (0.9, True), (1.2, False), (3.0, False)])
def test_the_tolerance_is_where_right_ends(times: float, passed: bool, scaled: bool) -> None:
    """Every element is off by a share of itself: that share is the error, beside some rounding."""
    allowed = tolerance(SMALL)

    def off(a: Any, b: Any, out: Any, alpha: float, beta: float) -> None:
        result = alpha * (a.double() @ b.double()) + (beta * out.double() if beta else 0.0)
        out.copy_(result * (1 + times * allowed) if bool(beta) is scaled else result)

    result = check(off)
    assert result.relative_error == pytest.approx(times * allowed, rel=0.1)
    assert result.passed is passed
    prefix = "with alpha=0.75, beta=-1.5: " if scaled else ""
    assert result.detail.startswith(f"{prefix}relative error" if not passed else "")
    assert bool(result.detail) is not passed


def test_a_single_wrong_element_is_seen_in_a_large_product() -> None:
    result = check(one_element_wrong, Problem(1024, 1024, 16))
    assert not result.passed


def test_tf32_is_told_from_float32_at_every_depth() -> None:
    for k in (8, 64, 512, 4096):
        error = check(tf32, Problem(16, 16, k)).relative_error
        assert error > 10 * tolerance(Problem(16, 16, k))


def test_the_error_is_the_frobenius_norm_against_float64() -> None:
    operands = random_operands(Problem(40, 30, 20), seed=4, device="cpu")
    reference = operands.a.matrix.double() @ operands.b.matrix.double()
    result = (reference + 0.01 * torch.randn(40, 30, generator=torch.Generator().manual_seed(1))).float()
    expected = torch.linalg.matrix_norm(result.double() - reference) / torch.linalg.matrix_norm(reference)
    assert relative_error(*distance_and_norm(operands, result, 1.0, 0.0, None)) == pytest.approx(
        float(expected), rel=1e-12
    )


def test_a_large_reference_is_compared_in_blocks_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operands = random_operands(Problem(100, 30, 20), seed=4, device="cpu")
    result = (operands.a.matrix @ operands.b.matrix) * 1.001
    whole = relative_error(*distance_and_norm(operands, result, 1.0, 0.0, None))
    monkeypatch.setattr("gemmprof.profiler.measuring.REFERENCE_ELEMENTS", 200)
    assert relative_error(*distance_and_norm(operands, result, 1.0, 0.0, None)) == pytest.approx(
        whole, rel=1e-12
    )


def test_a_zero_reference_needs_a_zero_result() -> None:
    operands = random_operands(Problem(3, 4, 0), seed=1, device="cpu")
    assert relative_error(*distance_and_norm(operands, torch.zeros(3, 4), 1.0, 0.0, None)) == 0.0
    assert relative_error(*distance_and_norm(operands, torch.full((3, 4), 1e-30), 1.0, 0.0, None)) == math.inf
    assert math.isnan(
        relative_error(*distance_and_norm(operands, torch.full((3, 4), math.nan), 1.0, 0.0, None))
    )


def test_a_matrix_between_guards_is_aligned_and_contiguous() -> None:
    guarded = GuardedMatrix.poisoned(5, 7, "cpu")
    assert guarded.matrix.is_contiguous() and guarded.matrix.shape == (5, 7)
    assert guarded.matrix.data_ptr() - guarded.buffer.data_ptr() == 4 * GUARD_ELEMENTS
    assert guarded.matrix.data_ptr() % 16 == guarded.buffer.data_ptr() % 16
    assert guarded.unwritten_elements() == 35 and guarded.overwritten_guards() == 0
    guarded.matrix.zero_()
    assert guarded.unwritten_elements() == 0 and guarded.overwritten_guards() == 0


def test_operands_are_fresh_for_each_stage_and_shape_and_repeatable() -> None:
    seeds = {
        generator_seed(0, stage, problem)
        for stage in SINGLE.stages
        for problem in (SMALL, Problem(33, 65, 129))
    }
    assert len(seeds) == 2 * len(SINGLE.stages)
    one, two = (random_operands(SMALL, seed=9, device="cpu") for _ in range(2))
    assert torch.equal(one.a.matrix, two.a.matrix) and torch.equal(one.start_values(), two.start_values())
    other = random_operands(SMALL, seed=10, device="cpu")
    assert not torch.equal(one.a.matrix, other.a.matrix)
    assert not torch.equal(one.a.matrix[:, :33], one.b.matrix[:33, :33])


SHAPE_EDGES = (1, 2, 3, 7, 13, 31, 32, 33, 61, 64, 65, 97, 127, 128, 129, 193, 251, 257, 311)
"""Sizes where kernels break: 1, primes, and the neighbours of tile sizes."""


def random_problems(
    count: int, *, seed: int, largest: int = 320, dtype: str = FLOAT32.name, c_dtype: str = ""
) -> tuple[Problem, ...]:
    """``count`` problems, M, N and K drawn from the sizes where kernels break and from 1 to ``largest``; K may be 0."""
    source = random.Random(seed)

    def size(smallest: int) -> int:
        if source.random() < 0.5:
            return source.choice(SHAPE_EDGES)
        return source.randint(smallest, largest)

    fixed = [(1, 1, 1), (1, 1, 0), (largest, 1, 257), (1, largest, 257)]
    drawn = [(size(1), size(1), size(0)) for _ in range(max(0, count - len(fixed)))]
    return tuple(Problem(*shape, dtype, c_dtype) for shape in (fixed + drawn)[:count])


def test_random_problems_cover_the_edges() -> None:
    problems = random_problems(300, seed=0)
    assert len(problems) == 300
    assert problems == random_problems(300, seed=0) != random_problems(300, seed=1)
    assert (
        any(p.k == 0 for p in problems)
        and any(p.m == 1 for p in problems)
        and any(p.n == 1 for p in problems)
    )
    assert any(p.m % 32 and p.n % 32 and p.k % 8 for p in problems)
    assert all(p.m >= 1 and p.n >= 1 and p.k >= 0 for p in problems)
    assert len(set(problems)) > 290


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("stage", "dtype", "c_dtype"),
    [
        pytest.param(stage, dtype, c_dtype, id=f"{stage.name}-{dtype}-{c_dtype}")
        for ladder in LADDERS
        for stage in ladder.stages
        for dtype in stage.dtypes
        for c_dtype in ELEMENT_TYPES[dtype].c_types
    ],
)
def test_every_stage_is_right_on_300_random_shapes(stage: Any, dtype: str, c_dtype: str) -> None:
    from functools import partial

    from gemmprof.kernels.operators import load, run_stage

    if stage.source is not None and stage.name not in load().names:
        pytest.skip(f"{stage.name} is not built for this GPU")
    failures = []
    for problem in random_problems(300, seed=stage.number, dtype=dtype, c_dtype=c_dtype):
        result = verify_stage(stage, problem, partial(run_stage, stage), seed=0, device="cuda")
        if not result.passed:
            failures.append(f"{problem.key}: {result.detail}")
    assert not failures
