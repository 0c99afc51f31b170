"""Is a kernel's result right? Comparison with a float64 reference on fresh random data.

The measure is the relative Frobenius error ||C - C_ref||_F / ||C_ref||_F. Operands are exact, the products of 16-bit
ones too; what remains is how the sum is rounded, and how C is:

* Summing k random products in float32 one after the other has an error of about u * sqrt(k / 6), u = 2^-24 (each step
  rounds a partial sum of size sqrt(j)); the tolerance leaves a factor of about ten over that.
* Tensor cores (16-bit operands) add 16 products at a time and cut instead of rounding to nearest. Cuts lean one way, so
  their errors add up with the number of additions, not with its root: u * k / 4 on top.
* With 8-bit operands the tensor cores keep 14 bits of a sum. Who adds their sums to float32 ones every 128 of K
  lets them cut at most 4 times by 2^-13 each, 2^-11 at any k. (Who does not is off by 1.3e-3 at k = 4096.)
* A C of 16 bits is rounded once more, by at most its own unit roundoff (2^-11 for float16, 2^-8 for bfloat16).

TF32 (11 bits) misses the bound of float32 by a factor of more than 10 at any k that people use, and at 4096 x 4096 a
single wrong element does too. A C of a few elements may come out near zero by chance, and its rounding errors do not
shrink with it: there the tolerance grows by what C lacks of the norm to be expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32
from gemmprof.model import Problem, Stage, Verification
from gemmprof.profiler.measure.operands import GuardedMatrix, Operands, generator_seed, random_operands

# Elements of the float64 reference that are held at once (512 MiB): larger results are compared in blocks of rows.
REFERENCE_ELEMENTS = 1 << 26

# ``kernel(a, b, out, alpha, beta)`` writes out = alpha * a @ b + beta * out.
Kernel = Callable[[Any, Any, Any, float, float], object]

# Scalars of the second comparison: neither 0, 1 nor equal, so that a kernel cannot confuse them.
SCALED_ALPHA, SCALED_BETA = 0.75, -1.5

PROMOTED_CUTS = 2.0**-11  # largest relative error of sums of 8-bit products promoted every 128 of K


def tolerance(problem: Problem) -> float:
    """Largest relative Frobenius error that a product of ordinary size may have, by depth and types."""
    accumulation = 4.0 + 4.0 * math.sqrt(problem.k)
    rounding = 0.0 if problem.c_dtype == FLOAT32.name else ELEMENT_TYPES[problem.c_dtype].unit_roundoff
    if ELEMENT_TYPES[problem.dtype].bytes == 1:
        rounding += PROMOTED_CUTS
    elif problem.dtype != FLOAT32.name:
        accumulation += problem.k / 4.0
    return FLOAT32.unit_roundoff * accumulation + rounding


def expected_norm(problem: Problem, alpha: float, beta: float) -> float:
    """Root of the mean ||alpha A B + beta C||_F^2 over standard normal A, B and C."""
    return math.sqrt(problem.m * problem.n * (alpha**2 * problem.k + beta**2))


def verify_stage(stage: Stage, problem: Problem, kernel: Kernel, *, seed: int, device: Any) -> Verification:
    """Compare ``kernel`` with the reference on this stage's operands, with and without scaling; raises its errors."""
    operands = random_operands(problem, seed=generator_seed(seed, stage, problem), device=device)
    return verify(kernel, operands)


def verify(kernel: Kernel, operands: Operands) -> Verification:
    """Run ``kernel`` twice (C = AB into poison, then C = alpha AB + beta C) and judge both results.

    The reported error is that of the worse of the two.
    """
    c = operands.c
    untouched = (operands.a.snapshot(), operands.b.snapshot())
    c.poison()
    kernel(operands.a.matrix, operands.b.matrix, c.matrix, 1.0, 0.0)
    if changed := _changed_input(operands, untouched):
        return changed
    plain = _judge("", operands, c, 1.0, 0.0, None)
    if not plain.passed:
        return plain
    start = operands.start_values()
    scaled_c = GuardedMatrix.holding(start, c.element)
    kernel(operands.a.matrix, operands.b.matrix, scaled_c.matrix, SCALED_ALPHA, SCALED_BETA)
    if changed := _changed_input(operands, untouched):
        return changed
    prefix = f"with alpha={SCALED_ALPHA}, beta={SCALED_BETA}: "
    scaled = _judge(prefix, operands, scaled_c, SCALED_ALPHA, SCALED_BETA, start)
    return scaled if not scaled.passed or scaled.relative_error > plain.relative_error else plain


def _changed_input(operands: Operands, untouched: tuple[Any, Any]) -> Verification | None:
    """The verdict on a kernel that wrote to A or B (or their guard bands), None if it did not."""
    for name, guarded, before in zip("AB", (operands.a, operands.b), untouched, strict=True):
        if not guarded.holds(before):
            return Verification(math.nan, tolerance(operands.problem), False, f"the kernel wrote to {name}")
    return None


def _judge(
    prefix: str, operands: Operands, result: GuardedMatrix, alpha: float, beta: float, start: Any | None
) -> Verification:
    """Compare ``result`` with alpha A B + beta ``start`` and look at its poison and guard bands."""
    problem = operands.problem
    distance, norm = distance_and_norm(operands, result.matrix, alpha, beta, start)
    error = relative_error(distance, norm)
    shortfall = expected_norm(problem, alpha, beta) / norm if norm else 1.0
    allowed = tolerance(problem) * max(1.0, shortfall)
    detail = ""
    if guards := result.overwritten_guards():
        detail = f"{guards} elements outside of C were written"
    elif unwritten := result.unwritten_elements():
        detail = f"{unwritten} of {result.matrix.numel()} elements of C were never written (or only from the old C)"
    elif math.isnan(error):
        detail = "C holds NaN: the kernel read outside of A or B, or read C although beta is 0"
    elif not error <= allowed:
        detail = f"relative error {error:.2e} exceeds {allowed:.2e}"
    return Verification(error, allowed, not detail, prefix + detail if detail else "")


def distance_and_norm(
    operands: Operands, result: Any, alpha: float, beta: float, start: Any | None
) -> tuple[float, float]:
    """||result - reference||_F and ||reference||_F, reference = alpha A B + beta ``start`` in float64."""
    import torch

    a, b = operands.a.matrix, operands.b.matrix.double()
    rows = max(1, REFERENCE_ELEMENTS // max(1, result.shape[1], a.shape[1]))
    difference = torch.zeros((), dtype=torch.float64, device=result.device)
    norm = torch.zeros_like(difference)
    for first in range(0, result.shape[0], rows):
        block = slice(first, first + rows)
        reference = alpha * (a[block].double() @ b)
        if start is not None:
            reference += beta * start[block].double()
        norm += reference.square().sum()
        difference += reference.sub_(result[block]).square().sum()
    return math.sqrt(float(difference)), math.sqrt(float(norm))


def relative_error(distance: float, norm: float) -> float:
    """||result - reference||_F / ||reference||_F; NaN if the result holds a NaN.

    A reference of zeros (k = 0 without beta) gives 0 for a result of zeros and infinity for any other.
    """
    if norm == 0.0:
        return distance if distance == 0.0 or math.isnan(distance) else math.inf
    return distance / norm
