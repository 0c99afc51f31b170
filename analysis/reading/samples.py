"""What ncu sampled over time, as series: each sample of each counter, and when within the launch it was taken.

ncu samples in passes, each of which runs the kernel again: samples of two counters belong together only by their place
in the launch. A sample counts from its time stamp on, up to the next one: blocks are launched in the sample whose time
stamp lies before the launch.

`Series.kept` and `Series.timeline_ns` are, to the last digit, what NVIDIA's ``ncu_report`` (2026.3) hands out as
``IAction.timelines().aligned_metric(…)``. Its rule, found with made reports: a sample is kept while the GPU ran the
profiled context; the first sample behind the first switch has the state of that switch, whatever came after it; time
stands still between kept samples. It drops the sample in which a launch begins, so charts go by `Series.since_start`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmprof import metrics as m
from gemmprof.analysis.reading.values import InstanceTable
from gemmprof.model import KernelProfile

Times = npt.NDArray[np.int64]
MOST_COUNTED = 2.0**64


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The samples of one counter in one launch."""

    metric: str  # the metric as ncu names it
    in_pass: int | None  # number of the pass that sampled it, None where the report does not say
    stamps: Times  # GPU time of each sample's beginning in nanoseconds; 0 of one taken before there was one
    values: npt.NDArray[np.float64]  # the samples, NaN where the sampler lost one
    kept: npt.NDArray[np.bool_]  # which samples NVIDIA's timeline has
    began: int | None  # time stamp of the launch's beginning in this pass, None in reports up to ncu 2023.3
    ended: int | None  # of its end

    @property
    def counter(self) -> str:
        """The counter's one name in every version of ncu."""
        return m.counter_of(self.metric)

    @property
    def since_start(self) -> Times:
        """When each sample begins, in nanoseconds since the launch began, below 0 before.

        Since the first kept sample where the report does not say when the launch began.
        """
        start = self.began
        if start is None:
            kept = self.stamps[self.kept & (self.stamps > 0)]
            start = int(kept[0]) if len(kept) else 0
        return self.stamps - start

    @property
    def timeline_ns(self) -> Times:
        """Time of each kept sample since the first one, without the time of those between that are not kept."""
        steps = np.diff(self.stamps, append=self.stamps[-1:])[self.kept]
        return np.concatenate(([0], np.cumsum(steps[:-1], dtype=np.int64)))[: len(steps)]


def series_of(profile: KernelProfile, metrics: Collection[str] | None = None) -> Iterator[Series]:
    """The series of a launch (None: of all metrics that were sampled), one after the other, decoded when asked for.

    The profile is read with the instance values of these metrics and of the sampler's own (`SAMPLER`).
    """
    groups = profile.instances.get(m.SAMPLED_IN_PASS)
    in_pass: dict[str, int] = {}
    for sampled_in, names in groups.items() if groups is not None else ():
        if isinstance(sampled_in, int) and isinstance(names, str):
            in_pass.update(dict.fromkeys(names.split(","), sampled_in))
    marks: dict[int | None, tuple[tuple[Times, npt.NDArray[np.float64]] | None, int | None, int | None]] = {}
    stamps_of: dict[bytes, Times] = {}
    for metric in profile.sampled:
        columns = _columns(profile, metric)
        if columns is None or (metrics is not None and metric not in metrics):
            continue
        stamps, values = columns
        # The metrics of a pass have the same time stamps: they share one array.
        stamps = stamps_of.setdefault(stamps.tobytes(), stamps)
        number = in_pass.get(metric)
        if number not in marks:
            marks[number] = (
                _columns(profile, m.CONTEXT_SWITCHES.format(number)),
                _moment(profile, m.WORKLOAD_BEGAN.format(number), 0),
                _moment(profile, m.WORKLOAD_ENDED.format(number), -1),
            )
        switches, began, ended = marks[number]
        yield Series(metric, number, stamps, values, _kept(stamps, switches), began, ended)


def _columns(profile: KernelProfile, metric: str) -> tuple[Times, npt.NDArray[np.float64]] | None:
    """Time stamps and values of a metric; None where it has none, or none that are numbers."""
    if metric not in profile.instances:
        return None
    table = profile.instances
    if isinstance(table, InstanceTable):
        keys, values = table.columns_of(metric)
    else:
        keys, values = table[metric].keys, table[metric].values
    stamps, found = _array(keys, np.uint64), _array(values, np.float64)
    if stamps is None or found is None:
        return None
    # What no counter can hold is lost, as NaN is: sums of it would be infinite.
    found[~(np.abs(found) < MOST_COUNTED)] = np.nan
    return stamps.astype(np.int64), found


def _array(column: Sequence[Any], kind: Any) -> npt.NDArray[Any] | None:
    """A column as an array; None if it holds no numbers."""
    try:
        return np.fromiter(column, kind, len(column))
    except (TypeError, ValueError, OverflowError):
        return None


def _moment(profile: KernelProfile, metric: str, which: int) -> int | None:
    """The first or last moment of a metric: a graph has one for each of its nodes."""
    columns = _columns(profile, metric)
    return int(columns[0][which]) if columns is not None and len(columns[0]) else None


def _kept(stamps: Times, switches: tuple[Times, npt.NDArray[np.float64]] | None) -> npt.NDArray[np.bool_]:
    """Which samples were taken while the GPU ran the profiled context (see the module)."""
    if switches is None or not len(switches[0]):
        return np.ones(len(stamps), np.bool_)
    when, state = switches[0], switches[1] != 0
    last = np.searchsorted(when, stamps, side="right") - 1
    kept: npt.NDArray[np.bool_] = (last >= 0) & state[last]
    behind = np.flatnonzero(last >= 0)[:1]
    if len(behind) and behind[0]:
        kept[behind] = state[0]
    return kept
