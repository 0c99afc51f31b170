"""Is a kernel right, and how long does it take: operands, verification, timing."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32, ElementType
from gemmprof.model import Problem, Stage, Timing, Verification

# --- Operands ---------------------------------------------------------------------------------------------------------
# Operands of one matrix product on a device: fresh random data between guard bands, the output poisoned.
#
# A guard band is a strip of one particular NaN before and after a matrix, in the same allocation. A kernel that reads
# past the edge of A or B computes NaN, one that writes past the edge of C leaves a band that no longer holds the
# pattern, and an element of C that nobody wrote still holds it.

GUARD_ELEMENTS = 8192  # in a guard band; a multiple of 128, so that the matrix stays aligned


@dataclass(frozen=True, slots=True)
class GuardedMatrix:
    """A contiguous matrix [rows, columns] (or the transpose of one) in the middle of a larger allocation."""

    buffer: Any
    matrix: Any
    element: ElementType

    @classmethod
    def poisoned(
        cls, rows: int, columns: int, device: Any, element: ElementType = FLOAT32, *, transposed: bool = False
    ) -> GuardedMatrix:
        """Allocate and fill everything, the matrix too, with the poison; ``transposed`` puts columns side by side."""
        import torch

        count = rows * columns
        buffer = torch.empty(count + 2 * GUARD_ELEMENTS, dtype=getattr(torch, element.name), device=device)
        middle = buffer[GUARD_ELEMENTS : GUARD_ELEMENTS + count]
        matrix = middle.view(columns, rows).t() if transposed else middle.view(rows, columns)
        guarded = cls(buffer, matrix, element)
        guarded.poison()
        return guarded

    @classmethod
    def holding(cls, values: Any, element: ElementType = FLOAT32) -> GuardedMatrix:
        """Allocate with guard bands around a copy of ``values`` [rows, columns]."""
        guarded = cls.poisoned(values.shape[0], values.shape[1], values.device, element)
        guarded.matrix.copy_(values)
        return guarded

    def poison(self) -> None:
        """Fill everything with the poison again."""
        self._bits(self.buffer).fill_(self.element.poison_bits)

    def overwritten_guards(self) -> int:
        """How many elements of the guard bands no longer hold the poison."""
        bits, poison = self._bits(self.buffer), self.element.poison_bits
        before, after = bits[:GUARD_ELEMENTS], bits[-GUARD_ELEMENTS:]
        return int((before != poison).sum() + (after != poison).sum())

    def unwritten_elements(self) -> int:
        """How many elements of the matrix still hold the poison."""
        return int((self._bits(self.matrix) == self.element.poison_bits).sum())

    def snapshot(self) -> Any:
        """A copy of everything, guard bands included, for `holds`."""
        return self._bits(self.buffer).clone()

    def holds(self, snapshot: Any) -> bool:
        """Whether nothing changed since the snapshot, bit for bit."""
        import torch

        return bool(torch.equal(self._bits(self.buffer), snapshot))

    def _bits(self, tensor: Any) -> Any:
        """The elements as integers of their size: NaN is not equal to itself."""
        import torch

        return tensor.view({4: torch.int32, 2: torch.int16, 1: torch.int8}[self.element.bytes])


@dataclass(frozen=True, slots=True)
class Operands:
    """A [m, k], B [k, n] and C [m, n] of one problem, each between guard bands, all on one device."""

    problem: Problem
    a: GuardedMatrix
    b: GuardedMatrix
    c: GuardedMatrix
    seed: int = 0

    def start_values(self) -> Any:
        """Standard normal values [m, n] that C may hold before a product with beta, the same on every call."""
        import torch

        generator = torch.Generator(device=self.c.matrix.device)
        generator.manual_seed(self.seed + 1)
        return torch.empty_like(self.c.matrix).normal_(generator=generator)


def generator_seed(seed: int, stage: Stage, problem: Problem) -> int:
    """A seed that differs between stages and problems and is the same in every run with the same ``seed``."""
    mixed = seed
    for part in (stage.number, problem.m, problem.n, problem.k):
        mixed = (mixed * 1_000_003 + part + 1) % (1 << 61)
    return mixed


def random_operands(problem: Problem, *, seed: int, device: Any) -> Operands:
    """Standard normal A and B from a generator of their own, C poisoned; torch.OutOfMemoryError if they do not fit.

    B is stored transposed where the type's tensor cores read it so.
    """
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(seed)

    element, c_element = ELEMENT_TYPES[problem.dtype], ELEMENT_TYPES[problem.c_dtype]

    def normal(rows: int, columns: int, *, transposed: bool = False) -> GuardedMatrix:
        guarded = GuardedMatrix.poisoned(rows, columns, device, element, transposed=transposed)
        if element.bytes > 1:
            guarded.matrix.normal_(generator=generator)
        else:  # torch draws no 8-bit numbers
            guarded.matrix.copy_(torch.empty(rows, columns, device=device).normal_(generator=generator))
        return guarded

    a, b = normal(problem.m, problem.k), normal(problem.k, problem.n, transposed=element.k_major)
    c = GuardedMatrix.poisoned(problem.m, problem.n, device, c_element)
    return Operands(problem, a, b, c, seed)


# --- Verification -----------------------------------------------------------------------------------------------------
# Is a kernel's result right? Comparison with a float64 reference on fresh random data.
#
# The measure is the relative Frobenius error ||C - C_ref||_F / ||C_ref||_F. Operands are exact, the products of 16-bit
# ones too; what remains is how the sum is rounded, and how C is:
#
# * Summing k random products in float32 one after the other has an error of about u * sqrt(k / 6), u = 2^-24 (each step
#   rounds a partial sum of size sqrt(j)); the tolerance leaves a factor of about ten over that.
# * Tensor cores (16-bit operands) add 16 products at a time and cut instead of rounding to nearest. Cuts lean one way,
#   so their errors add up with the number of additions, not with its root: u * k / 4 on top.
# * With 8-bit operands the tensor cores keep 14 bits of a sum. Who adds their sums to float32 ones every 128 of K
#   lets them cut at most 4 times by 2^-13 each, 2^-11 at any k. (Who does not is off by 1.3e-3 at k = 4096.)
# * A C of 16 bits is rounded once more, by at most its own unit roundoff (2^-11 for float16, 2^-8 for bfloat16).
#
# TF32 (11 bits) misses the bound of float32 by a factor of more than 10 at any k that people use, and at 4096 x 4096 a
# single wrong element does too. A C of a few elements may come out near zero by chance, and its rounding errors do not
# shrink with it: there the tolerance grows by what C lacks of the norm to be expected.

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


# --- Timing -----------------------------------------------------------------------------------------------------------
# How long does a kernel take? CUDA events around single launches, alternating with the yardstick (cuBLAS).
#
# Each repetition first writes a buffer twice the size of the L2 cache, so that A and B come from device memory, then
# launches the stage; the next repetition does the same with the yardstick. Both see the same clocks and temperature,
# and the ratio of their medians is a fair one.
#
# A small kernel ends sooner than Python queues the next one, and between the two events the GPU would wait for Python.
# So a spinning kernel holds the GPU until everything is queued. The SM clock is read while the GPU works.

Launch = Callable[[], object]  # enqueues one launch on the current stream
MINIMUM_REPETITIONS, MAXIMUM_REPETITIONS = 5, 60
MINIMUM_FLUSH_BYTES = 64 << 20
CLOCK_POLL_SECONDS = 0.004
# How long the yardstick runs before the first measurement, and before each later one.
RAMP_SECONDS, RAMP_AGAIN_SECONDS = 0.3, 0.1
HOLD_MARGIN = 1.5  # spin this many times as long as queueing took once: Python is not always equally fast
LONGEST_HOLD_SECONDS = 0.5
SPIN_HERTZ = 2e9  # what the spinning kernel counts: SM cycles. At a lower clock it only spins longer.


def repetitions_within(budget: float, seconds_each: float) -> int:
    """How many repetitions of ``seconds_each`` fit into ``budget`` seconds, within the fixed bounds."""
    fitting = int(budget / seconds_each) if seconds_each > 0 else MAXIMUM_REPETITIONS
    return max(MINIMUM_REPETITIONS, min(MAXIMUM_REPETITIONS, fitting))


def summarise(
    seconds: Sequence[float], *, sm_clock_mhz: float | None = None, yardstick: Sequence[float] = ()
) -> Timing:
    """Median and spread of the measured ``seconds``, beside the yardstick's median; ValueError if there are none."""
    if not seconds:
        raise ValueError("no repetition was measured")
    p10, median, p90 = np.percentile(seconds, (10, 50, 90)).tolist()
    beside = statistics.median(yardstick) if yardstick else None
    return Timing(median, min(seconds), p10, p90, len(seconds), sm_clock_mhz, beside)


class Bench:
    """Times launches on one CUDA device; holds the buffer that flushes L2."""

    def __init__(self, device: Any) -> None:
        import torch

        properties = torch.cuda.get_device_properties(device)
        size = max(MINIMUM_FLUSH_BYTES, 2 * int(properties.L2_cache_size))
        self._flush = torch.empty(size, dtype=torch.uint8, device=device)
        self._device = device
        self._ramped = False

    def ramp(self, launch: Launch) -> None:
        """Keep the GPU busy, so that every measurement begins at the clocks that it grants under load.

        At first they leave the idle state; later on, kernels that draw as much power as the card allows must not look
        faster where the card rested before.
        """
        import torch

        end = time.monotonic() + (RAMP_AGAIN_SECONDS if self._ramped else RAMP_SECONDS)
        self._ramped = True
        while time.monotonic() < end:
            for _ in range(8):
                launch()
            torch.cuda.synchronize()

    def time(self, stage: Launch, yardstick: Launch | None, *, budget: float) -> Timing:
        """Warm up, choose the repetitions from the budget (seconds), and measure in turns with the yardstick, if any.

        Raises:
            RuntimeError: a launch failed.
        """
        import torch

        launches = [stage] if yardstick is None else [yardstick, stage]
        estimates = [self._estimate(launch) for launch in launches]
        count = repetitions_within(budget, sum(whole for whole, _ in estimates))
        # Keep the GPU from starting until everything is queued.
        seconds = HOLD_MARGIN * count * sum(queueing for _, queueing in estimates)
        torch.cuda._sleep(int(min(seconds, LONGEST_HOLD_SECONDS) * SPIN_HERTZ))
        marks = [[self._repetition(launch) for launch in launches] for _ in range(count)]
        last = marks[-1][-1][1]
        samples: list[float] = []
        while not last.query():
            value = sm_clock_mhz(self._device)
            if value is not None:
                samples.append(value)
            time.sleep(CLOCK_POLL_SECONDS)
        last.synchronize()
        clock = statistics.median(samples) if samples else None
        stage_seconds = [_seconds(row[-1]) for row in marks]
        yardstick_seconds = [_seconds(row[0]) for row in marks]
        return summarise(stage_seconds, sm_clock_mhz=clock, yardstick=yardstick_seconds)

    def _repetition(self, launch: Launch) -> tuple[Any, Any]:
        import torch

        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._flush.zero_()
        begin.record()
        launch()
        end.record()
        return begin, end

    def _estimate(self, launch: Launch) -> tuple[float, float]:
        """Seconds of one repetition, the flush included, and of queueing it, after a first that loads the kernel."""
        import torch

        self._repetition(launch)
        torch.cuda.synchronize()
        start = time.perf_counter()
        self._repetition(launch)
        queued = time.perf_counter()
        torch.cuda.synchronize()
        return time.perf_counter() - start, queued - start


def sm_clock_mhz(device: Any) -> float | None:
    """Current SM clock in MHz, read through NVML; None if that is not possible: a clock is a remark, not a result."""
    import torch

    try:
        return float(torch.cuda.clock_rate(device))
    except Exception:
        return None  # no nvidia-ml-py, no NVML in this container, no permission: each an error of its own


def _seconds(events: tuple[Any, Any]) -> float:
    begin, end = events
    return float(begin.elapsed_time(end)) / 1e3


def launches(problem: Problem, kernel: Callable[..., object], *, seed: int, device: Any) -> Launch:
    """A launch of ``kernel`` on random operands of ``problem`` that stay alive with the returned function."""
    operands = random_operands(problem, seed=seed, device=device)
    a, b, c = operands.a.matrix, operands.b.matrix, operands.c.matrix
    return lambda: kernel(a, b, c, 1.0, 0.0)
