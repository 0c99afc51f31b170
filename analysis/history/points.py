"""The points that a history keeps: one kernel and grid in one run.

A point is a flat row: which kernel on which card, when and from which commit, how long it took, with which tools and
clocks, and the counters that tell afterwards why a time changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a run was made, as its recorder says.

    Attributes:
        recorded_at: when, with its time zone.
        commit, branch, machine, note: free text; '' if not given.
    """

    recorded_at: datetime
    commit: str = ""
    branch: str = ""
    machine: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel in one run. Times in nanoseconds, clocks in hertz; None where the run does not say.

    Attributes:
        kernel: full demangled name, or stage and problem; untrusted text.
        grid: ``64x64x1``; '' for a stage.
        device: name of the card, and of the machine where that is known.
        kind: ``timed`` by gemmprof, or ``profiled`` by ncu; never mixed in one series.
        time_ns: the median of the repetitions.
        low_ns, high_ns: the shortest and the longest repetition.
        code: fingerprint of the kernel's instructions, '' where the report does not hold them.
        predictions: what its findings say their fixes would save, as `recording` writes it; '' without.
        counters: by name of `analysis.history.recording.COUNTERS`.
    """

    kernel: str
    grid: str
    device: str
    kind: str
    origin: Origin
    time_ns: float
    low_ns: float
    high_ns: float
    repetitions: int
    cycles: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    tools: str = ""
    code: str = ""
    predictions: str = ""
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def series(self) -> tuple[str, str, str, str]:
        """What must be equal for two points to be of one series."""
        return (self.kernel, self.grid, self.device, self.kind)


# --- A series ---------------------------------------------------------------------------------------------------------
# One series of a history as columns: what the search for steps and their causes reads, for one series or thousands.


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
