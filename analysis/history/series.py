"""One series of a history as columns: what the search for steps and their causes reads, for one series or thousands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmprof.analysis.history.points import Point

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CLOCKS = ("sm_clock_hz", "memory_clock_hz")
TEXTS = ("code", "tools")


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one series, oldest first.

    Attributes:
        is_profiled: whether the times were measured under the profiler.
        time_ns: one a point.
        names: of the columns of ``numbers``: `CLOCKS` and the counters.
        numbers: one row a point, NaN where it was not recorded.
        texts: for each of `TEXTS` one text a point, '' where it was not recorded.
        point: the whole point at a position.
        number: by which a store knows the series, 0 where there is none.
    """

    is_profiled: bool
    time_ns: npt.NDArray[np.float64]
    names: tuple[str, ...]
    numbers: npt.NDArray[np.float64]
    texts: dict[str, Sequence[str]]
    point: Callable[[int], Point]
    number: int = 0


def series_of(points: Sequence[Point]) -> Series:
    """These points as a series."""
    import numpy as np

    counters = sorted({name for point in points for name in point.counters})
    rows = [
        [point.sm_clock_hz, point.memory_clock_hz, *(point.counters.get(name) for name in counters)]
        for point in points
    ]
    return Series(
        is_profiled=bool(points) and points[0].kind == "profiled",
        time_ns=np.array([point.time_ns for point in points], dtype=np.float64),
        names=(*CLOCKS, *counters),
        numbers=np.array(rows, dtype=np.float64).reshape(len(points), len(CLOCKS) + len(counters)),
        texts={name: [getattr(point, name) for point in points] for name in TEXTS},
        point=points.__getitem__,
    )
