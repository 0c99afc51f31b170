"""The noise of one's own machine, learnt from repeated reports of one unchanged program: a control.

What is usual elsewhere (`usual_noise`) is scaled: by how much more or less the control's launches scatter within a
process, and its processes lie apart. How often the verdicts err with it is tried on the control itself, each kernel
judged by what the others teach.
"""

from __future__ import annotations

import datetime
import itertools
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from gemmprof.analysis.comparison.judgement import Batch, estimate, judge, location_variance
from gemmprof.analysis.comparison.noise import NoiseModel, usual_noise
from gemmprof.analysis.comparison.records import batches
from gemmprof.analysis.comparison.sides import Side
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, read_json
from gemmprof.base.errors import ReportError, UsageError
from gemmprof.base.foreign_files import read_text

# So many kernels that scatter as usual elsewhere are added to those of the control: a few kernels say little.
LIKE_ELSEWHERE = 3.0
BETWEEN_FREEDOM = 8.0  # the same for how far processes lie apart, in degrees of freedom
LARGEST_BYTES = 1 << 20
LEAST_NOISE = 1e-9  # a nanosecond in a second: no clock tells less


class Control(Document, frozen=True, tag="gemmprof.noise/1"):
    """What the file of ``gemmprof diff --learn-noise`` holds."""

    saved: Annotated[str, "when, ISO 8601"]
    title: Annotated[str, "what it was learnt from"]
    device: Annotated[str, "name of the GPU"]
    clock_control: Annotated[str, "ncu's setting, '' if unknown"]
    kernels: Annotated[int, "kernels of the control"]
    processes: Annotated[int, "reports or runs of it"]
    timed: Annotated[bool, "the times are from outside the profiler"]
    compared: Annotated[int, "how many comparisons of the control with itself were tried"]
    alarms: Annotated[int, "how many of them found a change"]
    noise: Annotated[NoiseModel, "what is usual on this machine"]

    def words(self) -> str:
        """Where the noise is from and how often it errs: what stands beside the verdicts."""
        thousand = f" ({1000 * self.alarms / self.compared:.0f} of 1,000)" if self.compared >= 100 else ""
        return (
            f"Noise of this machine, learnt from {self.title} ({self.kernels} kernels, {self.processes} processes): "
            f"{self.alarms} false alarms in {self.compared} comparisons of the control with itself{thousand}."
        )


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One kernel of the control: its processes, duration and limit."""

    processes: tuple[Batch, ...]
    nanoseconds: float
    limit: str


def learn(side: Side) -> Control:
    """What a control says of its machine.

    Args:
        side: at least two reports or runs of one unchanged program.

    Raises:
        UsageError: there is one process only, or no kernel with times in two of them.
    """
    timed = any(record.timed for record in side.kernels)
    kernels = [
        _Kernel(tuple(found), 1e9 * math.exp(found[0].centre), "" if timed else record.limit)
        for record in side.kernels
        if len(found := batches(record, timed)) > 1
    ]
    if not kernels:
        raise UsageError(
            "a control is several reports of one unchanged program",
            "profile it again, each time in a process of its own: --learn-noise FILE a.ncu-rep b.ncu-rep",
            found=f"{side.title} is {side.processes} process{'es' * (side.processes != 1)}",
        )
    elsewhere = usual_noise(timed)
    # For each pair of processes of each kernel, whether it is called changed by what the other kernels teach.
    trials = []
    for at, kernel in enumerate(kernels):
        noise = _scaled(elsewhere, [*kernels[:at], *kernels[at + 1 :]]).of(kernel.nanoseconds, kernel.limit)
        for before, after in itertools.combinations(kernel.processes, 2):
            (judged,) = judge([estimate([before], [after], noise)])
            trials.append(judged.verdict in ("slower", "faster"))
    origin = side.kernels[0].origin
    return Control(
        saved=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        title=side.title,
        device=origin.device,
        clock_control=origin.clock_control,
        kernels=len(kernels),
        processes=side.processes,
        timed=timed,
        compared=len(trials),
        alarms=sum(trials),
        noise=replace(_scaled(elsewhere, kernels), source=side.title),
    )


def _scaled(elsewhere: NoiseModel, kernels: Iterable[_Kernel]) -> NoiseModel:
    """What is usual elsewhere, made larger or smaller as these kernels are noisier or quieter."""
    logs, squares, freedom = [], BETWEEN_FREEDOM, BETWEEN_FREEDOM
    for kernel in kernels:
        usual = elsewhere.of(kernel.nanoseconds, kernel.limit)
        own = sum(batch.freedom for batch in kernel.processes)
        variance = sum(batch.squares for batch in kernel.processes) / own if own else usual.middle**2
        if own:
            # Not below the clock's steps, nor beyond what an outlier among few launches would make of it.
            spread = max(math.sqrt(variance), usual.middle * math.exp(-3 * usual.factor))
            logs.append(math.log(spread / usual.middle))
        centre = statistics.fmean(batch.centre for batch in kernel.processes)
        # What launches within a process make of the distances is no part of how far processes lie apart.
        more = len(kernel.processes) - 1
        within = variance * statistics.fmean(location_variance(batch.count) for batch in kernel.processes)
        distances = sum((batch.centre - centre) ** 2 for batch in kernel.processes)
        squares += max(distances - more * within, 0.0) / usual.between(variance)
        freedom += more
    times = math.exp(sum(logs) / (len(logs) + LIKE_ELSEWHERE))
    apart = math.sqrt(squares / freedom)
    return replace(
        elsewhere,
        middle=elsewhere.middle * times,
        largest=elsewhere.largest * max(times, 1.0),
        between_floor=elsewhere.between_floor * apart,
        between_share=elsewhere.between_share * apart,
    )


def read_control(path: Path) -> Control:
    """What ``--learn-noise`` wrote.

    Raises:
        UsageError: there is no such file.
        ReportError: it is damaged, or something else.
    """
    again = ["write it again: gemmprof diff --learn-noise FILE REPORT REPORT"]
    try:
        found = read_json(read_text(path, LARGEST_BYTES), Control)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", *again, found=error.strerror or "") from None
    except OtherFormatError as error:
        raise ReportError(f"{path} holds no noise but {str(error)!r}", *again) from None
    except (DocumentError, UnicodeDecodeError) as error:
        raise ReportError(f"{path} is damaged", *again, found=str(error)) from None
    figures = found.noise
    if not all(
        LEAST_NOISE < value < 1 for value in (figures.middle, figures.largest, figures.between_floor)
    ) or not (0 <= figures.between_share < 100 and 0 < figures.factor < 10 and abs(figures.power) < 10):
        raise ReportError(f"{path} is damaged", *again, found="figures that are no noise")
    return found
