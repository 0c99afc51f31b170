"""Which of many series hold a step: a quick look at all of them, then the whole search where the look is not sure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmprof.analysis.history.changepoints import (
    MINIMUM_AFTER,
    MINIMUM_BEFORE,
    Step,
    find_steps,
    quiet_series,
)
from gemmprof.analysis.history.changes import CLOCK_RESOLUTION_NS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

AT_A_TIME = 256  # series that are looked at together: so many years of runs fit a processor's cache


@dataclass(frozen=True, slots=True)
class Times:
    """The times of many series, one after the other, each in order of time.

    Attributes:
        numbers: by which the store knows each series.
        counts: how many times each has.
        values: all times, nanoseconds.
        profiled: whether each was measured under the profiler.
    """

    numbers: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    profiled: Sequence[bool]


def series_with_steps(times: Times, last: int | None = None) -> dict[int, tuple[Step, ...]]:
    """The series that hold a step: their numbers, rising, and all their steps.

    Args:
        times: of all series.
        last: only steps within so many last runs.
    """
    import numpy as np

    starts = np.cumsum(times.counts) - times.counts
    found = {}
    for at in _not_quiet(times, starts):
        values = times.values[starts[at] : starts[at] + times.counts[at]]
        steps = find_steps(values, resolution=CLOCK_RESOLUTION_NS if times.profiled[at] else 0.0)
        if any(last is None or len(values) - step.position <= last for step in steps):
            found[int(times.numbers[at])] = steps
    return found


def _not_quiet(times: Times, starts: npt.NDArray[np.int64]) -> list[int]:
    """Positions of the series that the quick look does not call quiet."""
    import numpy as np

    def look(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        length = int(times.counts[rows[0]])
        if rows[-1] - rows[0] == len(rows) - 1:  # side by side, as they mostly are: nothing is copied
            together = times.values[starts[rows[0]] : starts[rows[0]] + len(rows) * length]
            matrix = together.reshape(len(rows), length)
        else:
            matrix = times.values[starts[rows][:, None] + np.arange(length)]
        with np.errstate(invalid="ignore", divide="ignore"):
            quiet = quiet_series(matrix)
        return rows[~quiet]

    # numpy lets other threads run while it computes.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        loud = list(threads.map(look, _of_equal_length(times.counts)))
    return sorted(int(at) for rows in loud for at in rows)


def _of_equal_length(counts: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of series with equally many times, a few at a time; those too short for a step are left out."""
    import numpy as np

    for length in np.unique(counts[counts >= MINIMUM_BEFORE + MINIMUM_AFTER]):
        rows = np.flatnonzero(counts == length)
        for first in range(0, len(rows), AT_A_TIME):
            yield rows[first : first + AT_A_TIME]
