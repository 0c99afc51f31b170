"""Counting a program's launches and choosing which to profile: here the profiler's files meet the reader of reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from gemmprof import metrics
from gemmprof.analysis.inputs.selection import Candidate, Selection, nothing_selected
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.amounts import counted
from gemmprof.profiler.programs import COUNT_LIMIT, Choice, Collected, Launch, ProgramProfiler, choose, packed
from gemmprof.reports.formatting import nanoseconds, ratio, seconds

DEFAULT_COUNT = 50  # most kernels and grids to profile unless more are asked for


@dataclass(frozen=True, slots=True)
class Count:
    """A counted program: its launches in order, and the run that counted them."""

    launches: tuple[Launch, ...]
    collected: Collected

    def __str__(self) -> str:
        kernels = len({launch.name for launch in self.launches})
        whole = "" if len(self.launches) < COUNT_LIMIT else " (the first ones: no more are counted)"
        return (
            f"{counted(len(self.launches), 'launch')} of {counted(kernels, 'kernel')}{whole}, "
            f"{nanoseconds(sum(launch.duration for launch in self.launches))} on the GPU; "
            f"counted in {seconds(self.collected.seconds)}"
        )


def count(profiler: ProgramProfiler, wanted: Selection, skip: int = 0) -> Count:
    """Run the program once and record each launch and its time, with those meant; errors as `ProgramProfiler.count`."""
    collected = profiler.count()
    if collected.report is None:
        return Count((), collected)
    launches = counted_launches(collected.report, wanted, skip)
    return Count(launches, replace(collected, report=packed(collected.report)))


def counted_launches(report: Path, wanted: Selection, skip: int = 0) -> tuple[Launch, ...]:
    """The launches of a count's report, and which of them are wanted: none of the first ``skip``."""
    with ReportReader(report) as reader:
        return tuple(
            Launch(
                name=profile.name,
                mangled_name=profile.mangled_name or profile.function_name,
                grid=profile.launch.grid,
                block=profile.launch.block,
                shared_memory=profile.launch.dynamic_shared_memory or 0,
                duration=profile.number(metrics.DURATION) or 0.0,
                wanted=profile.index >= skip and wanted.matches(Candidate.of(profile)),
                process=profile.session.process,
            )
            for profile in reader.profiles(instances=False, rules=False)
        )


def chosen(count: Count, wanted: Selection, *, limit: int = DEFAULT_COUNT, every: bool = False) -> Choice:
    """The launches to profile: one of each kernel and grid, the most expensive first; UsageError if nothing matches."""
    if not any(launch.wanted for launch in count.launches):
        raise nothing_selected(wanted, Counter(launch.name for launch in count.launches))
    return choose(count.launches, limit=min(limit, wanted.top or limit), every=every)


def cost(choice: Choice, count: Count, repeat: int = 1, metric_set: str = "lean") -> list[str]:
    """What profiling will cost, in lines for people, before it starts."""
    times = f", {repeat} times" if repeat > 1 else ""
    takes = seconds(choice.seconds(count.collected.seconds, repeat, metric_set))
    pairs = "1 kernel and grid" if choice.kernels == 1 else f"{choice.kernels:,} kernels and grids"
    what = f"Profiling {counted(choice.launches, 'launch')} of {pairs}{times}"
    lines = [f"{what}: {ratio(choice.share)} of the time, about {takes}"]
    if choice.left_out:
        lines.append(f"  {choice.left_out:,} cheaper kernels and grids are left out (--count takes more)")
    return lines
