"""How long does a kernel take? CUDA events around single launches, alternating with the yardstick (cuBLAS).

Each repetition first writes a buffer twice the size of the L2 cache, so that A and B come from device memory, then
launches the stage; the next repetition does the same with the yardstick. Both see the same clocks and temperature, and
the ratio of their medians is a fair one.

A small kernel ends sooner than Python queues the next one, and between the two events the GPU would wait for Python. So
a spinning kernel holds the GPU until everything is queued. The SM clock is read while the GPU works.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gemmprof.model import Problem, Timing
from gemmprof.profiler.measure.operands import random_operands

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


def facts_of(device: Any) -> dict[str, str]:
    """What whoever has work done on a GPU wants to know of it first: its name, its compute capability (``9.0``)."""
    import torch

    found = torch.cuda.get_device_properties(device)
    return {"device": found.name, "architecture": f"{found.major}.{found.minor}"}


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
