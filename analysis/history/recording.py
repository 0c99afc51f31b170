"""What one run or report says of its kernels, as the points of a history: one a kernel and grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from gemmprof import metrics as m
from gemmprof.analysis.comparison.reasons import Score, findings_at, score
from gemmprof.analysis.comparison.sides import middle_launch
from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.analysis.inputs.named_figures import QUANTITIES, figures
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.reading.report import code_digests
from gemmprof.analysis.session import Session
from gemmprof.base.spread import grouped
from gemmprof.model import Finding, KernelProfile

# --- Predictions ------------------------------------------------------------------------------------------------------
# What came of predictions: those kept with a kernel's run are scored where its next run lacks the finding.

LAST = 40  # so many scored predictions are told of: older ones are of an older gemmprof
NONE = "-"  # what is kept of a launch that was explained and has no finding


def written(found: Sequence[Finding] | None) -> str:
    """Predictions as the text that a history keeps; '' where nothing could be said of the launch."""
    told = (one for one in found or () if one.told)
    named = (f"{one.cause}:{one.saves:.5f}:{one.saves_low:.5f}:{one.saves_high:.5f}" for one in told)
    return "" if found is None else " ".join(named) or NONE


def read(text: str) -> tuple[Finding, ...] | None:
    """The predictions of such a text; None without any, or where it is none."""
    if text in ("", NONE):
        return () if text else None
    found = []
    for word in text.split(" "):
        cause, *numbers = word.split(":")
        try:
            saves, low, high = map(float, numbers)
        except ValueError:
            return None
        if not (cause and 0 <= low <= saves <= high <= 1):
            return None
        found.append(Finding(cause, saves, low, high))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Kept:
    """What scoring needs to know of one point of a history."""

    series: int
    recorded_at: datetime
    time_ns: float
    code: str
    predictions: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of the last predictions lay inside their intervals."""

    scored: int
    inside: int

    @property
    def words(self) -> str:
        """``of your last 40 predictions 33 lay inside``; '' before the first."""
        if self.scored <= 1:
            return f"your last prediction lay {'inside' if self.inside else 'outside'}" if self.scored else ""
        return f"of your last {self.scored} predictions {self.inside} lay inside"


def scores(points: Iterable[Kept]) -> list[tuple[datetime, Score]]:
    """Every score of a history, oldest first: a finding is gone, and the kernel's code is another."""
    found = []
    for before, after in pairwise(sorted(points, key=lambda one: (one.series, one.recorded_at))):
        if before.series != after.series or (before.code and before.code == after.code):
            continue
        was, now = read(before.predictions), read(after.predictions)
        if was is None or now is None or not before.time_ns > 0:
            continue
        came = score(was, now, after.time_ns / before.time_ns - 1)
        if came is not None:
            found.append((after.recorded_at, came))
    return sorted(found, key=lambda one: one[0])


def tally(points: Iterable[Kept], last: int = LAST) -> Tally:
    """The last scores of a history counted."""
    found = [one for _, one in scores(points)][-last:]
    return Tally(len(found), sum(one.inside for one in found))


# --- What one run or report says of its kernels -----------------------------------------------------------------------

# The quantities of a comparison that a history keeps, by name: what tells a changed kernel from a changed machine.
_GROUPS = ("instructions", "memory", "shared memory", "occupancy")
COUNTERS = tuple(one.name for one in QUANTITIES if one.group in _GROUPS)
# So many kernels of a report, those that take most time, are kept with their predictions: each takes a second.
EXPLAINED = 20
CODE_DIGITS = 16  # digits of a code's fingerprint that a history keeps
ON = " on "


def points(session: Session, origin: Origin) -> tuple[Point, ...]:
    """The points of everything in a session, timed stages first."""
    return (*_timed(session, origin), *_profiled(session.kernels, origin))


def card_on(device: str, machine: str) -> str:
    """What a series is of: card, and machine where it is known: two cards of one model differ by some per cent."""
    return f"{device}{ON}{machine}" if machine else device


def _profiled(kernels: Sequence[KernelAnalysis], origin: Origin) -> Iterable[Point]:
    timed = [(kernel.profile, kernel) for kernel in kernels if kernel.profile.number(m.DURATION)]
    groups = grouped(((one.name, one.launch.grid, one.device.name), kernel) for one, kernel in timed)
    middles = {key: middle_launch([kernel.profile for kernel in members]) for key, members in groups.items()}
    codes = code_digests(middles.values())
    durations = {key: [one.profile.number(m.DURATION) or 0.0 for one in of] for key, of in groups.items()}
    longest = sorted(groups, key=lambda key: -sum(durations[key]))
    explained = ((key, middles[key]) for key in longest[:EXPLAINED])
    predicted = {key: written(findings_at(one.report, one.index)) for key, one in explained}
    for (name, grid, device), members in groups.items():
        times, middle = durations[name, grid, device], middles[name, grid, device]
        yield Point(
            kernel=name,
            grid="x".join(map(str, grid)),
            device=card_on(device, origin.machine),
            kind="profiled",
            origin=origin,
            time_ns=median(times),
            low_ns=min(times),
            high_ns=max(times),
            repetitions=len(times),
            cycles=_median(members, m.ELAPSED_CYCLES),
            sm_clock_hz=_median(members, m.SM_CLOCK),
            memory_clock_hz=_median(members, m.DRAM_CLOCK),
            tools=_tools(middle),
            code=codes.get((middle.report, middle.index), "")[:CODE_DIGITS],
            predictions=predicted.get((name, grid, device), ""),
            counters=_counters(next(one for one in members if one.profile is middle)),
        )


def _timed(session: Session, origin: Origin) -> Iterable[Point]:
    run = session.run
    for result in run.results if run is not None else ():
        timing = result.timing
        if run is None or timing is None or result.failure is not None:
            continue
        record = run.record(result.stage)
        kernel = session.kernel_for(result)
        clock = timing.sm_clock_mhz
        yield Point(
            kernel=f"{record.stage.name} {result.problem.key}",
            grid="",
            device=card_on(run.info.device, origin.machine),
            kind="timed",
            origin=origin,
            time_ns=timing.median * 1e9,
            low_ns=timing.minimum * 1e9,
            high_ns=timing.p90 * 1e9,
            repetitions=timing.repetitions,
            sm_clock_hz=clock * 1e6 if clock else None,
            tools=", ".join(f"{name} {run.info.versions[name]}" for name in sorted(run.info.versions)),
            code=record.source_hash,
            counters=_counters(kernel) if kernel is not None else {},
        )


def _counters(kernel: KernelAnalysis) -> dict[str, float]:
    return {name: value for name, value in figures(kernel).items() if name in COUNTERS}


def _tools(profile: KernelProfile) -> str:
    versions = profile.session.versions
    wanted = ("Display Driver Version", "CUDA Version", "Nsight Compute Target")
    named = [f"{name.removesuffix(' Version')} {versions[name]}" for name in wanted if name in versions]
    control = profile.session.settings.get("clock control")
    return ", ".join([*named, *([] if control is None else [f"clock control {control}"])])


def _median(kernels: Iterable[KernelAnalysis], metric: str) -> float | None:
    known = [value for kernel in kernels if (value := kernel.profile.number(metric)) is not None]
    return median(known) if known else None
