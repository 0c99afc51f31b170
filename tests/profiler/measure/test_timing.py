"""Repetitions and summaries of a timing; on a GPU, real times."""

from __future__ import annotations

import statistics
import time

import pytest

from gemmprof.model import Problem
from gemmprof.profiler.measuring import (
    MAXIMUM_REPETITIONS,
    MINIMUM_REPETITIONS,
    repetitions_within,
    summarise,
)


@pytest.mark.parametrize(
    ("budget", "each", "expected"),
    [
        (0.5, 0.3, MINIMUM_REPETITIONS),
        (0.5, 0.02, 25),
        (0.5, 1e-5, MAXIMUM_REPETITIONS),
        (0.5, 0.0, MAXIMUM_REPETITIONS),
    ],
)
def test_repetitions_fill_the_budget_within_bounds(budget: float, each: float, expected: int) -> None:
    assert repetitions_within(budget, each) == expected


def test_a_summary_has_median_and_spread_in_any_order() -> None:
    seconds = [5.0, 1.0, 4.0, 2.0, 3.0]
    timing = summarise(seconds, sm_clock_mhz=1980.0, yardstick=[0.5, 1.5, 1.0])
    assert (timing.median, timing.minimum, timing.repetitions) == (3.0, 1.0, 5)
    assert timing.p10 == pytest.approx(1.4) and timing.p90 == pytest.approx(4.6)
    assert timing.yardstick_median == 1.0 and timing.sm_clock_mhz == 1980.0
    assert summarise(seconds).yardstick_median is None
    with pytest.raises(ValueError, match="no repetition"):
        summarise([])


def test_tflops_count_a_multiply_add_twice() -> None:
    assert summarise([1.0]).tflops(Problem(1000, 1000, 1000)) == pytest.approx(0.002)


@pytest.mark.gpu
def test_a_small_kernel_is_timed_without_the_wait_for_python() -> None:
    import torch

    from gemmprof.profiler.measuring import Bench, launches

    device = torch.device("cuda", 0)
    values = torch.empty(1024, device=device)

    def slowly_queued() -> None:
        time.sleep(3e-4)
        values.zero_()

    bench = Bench(device)
    cublas = launches(
        Problem(128, 128, 128), lambda a, b, out, *_: torch.mm(a, b, out=out), seed=0, device=device
    )
    bench.ramp(cublas)
    timing = bench.time(slowly_queued, cublas, budget=0.3)
    assert timing.p90 < 3e-5
    assert timing.yardstick_median is not None
    alone = bench.time(cublas, None, budget=0.3)
    assert timing.yardstick_median == pytest.approx(alone.median, rel=0.2)


@pytest.mark.gpu
def test_a_timed_product_is_as_long_as_torch_says() -> None:
    import torch

    from gemmprof.profiler.measuring import Bench, launches

    device = torch.device("cuda", 0)
    problem = Problem(2048, 2048, 2048)
    launch = launches(problem, lambda a, b, out, *_: torch.mm(a, b, out=out), seed=0, device=device)
    bench = Bench(device)
    bench.ramp(launch)
    timing = bench.time(launch, launch, budget=0.3)
    assert timing.minimum <= timing.p10 <= timing.median <= timing.p90
    assert timing.yardstick_median == pytest.approx(timing.median, rel=0.1)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(20):
        begin.record()
        launch()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) / 1e3)
    assert timing.median == pytest.approx(statistics.median(samples), rel=0.3)
