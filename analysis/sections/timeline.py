"""The launch over time: what SMs and memories did in each stretch of it, from counters sampled every microsecond or so.

Every pass runs the kernel anew, so counters of different passes are laid over each other by the share of the launch
that had gone by in their own pass. All lie on one grid of equal columns, the mean over time in each.

How many SMs have work is exact where two counters of one sample say so: instructions per *active* cycle and as a share
of the peak over *elapsed* cycles differ by nothing else. 100 of 132 SMs in a last wave are 75.8 %, whatever the clock;
cycles in which an SM was active would take a GPU that clocks down for one that runs empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gemmprof import metrics
from gemmprof.analysis.figure import figure, unlisted
from gemmprof.analysis.history.changes import find_steps
from gemmprof.analysis.reading.samples import Series, series_of
from gemmprof.analysis.sections.warp_states import reason
from gemmprof.model import KernelProfile, NotCollected

Array = npt.NDArray[np.float64]
_Grid = Callable[..., Array | None]  # a series and its values (its own if None) in columns

NAME = "timeline"
TITLE = "The launch over time"
GROUP = metrics.TIMELINE

COLUMNS = 240  # columns of the grid at most: a terminal shows 60 of them, a page has 4 pixels for each
# Schedulers of an SM, each of which issues one instruction a cycle: on every GPU whose counters ncu samples.
PEAK_IPC = 4.0
FULL = 0.9  # of its usual level: below, SMs that had work before have none
# What changes by less is no new phase: in per cent of the peak, as a ratio, and against the busiest counter, beside
# which the others are not what the launch does.
LEAST_CHANGE, LEAST_RATIO, LEAST_OF_BUSIEST = 5.0, 1.4, 0.25
ALIKE = 1 / 3  # waves have as many blocks each, give or take so much
# Of another phase's: from here on power or heat hold a phase down, which two samples do not tell.
LOWER_CLOCK = 0.97
ENOUGH = 20  # samples within a launch: with fewer, what begins and ends is as long as the rest
SHORTEST = 2.0  # samples that a beginning or end must last to be told from the blur of one sample
NO_BLOCKS = 0.1  # of the densest column, or of a block an SM: below, no new blocks begin

_LANES = (
    ("issue", "Issue slots", metrics.SAMPLED_ISSUE),
    ("tensor", "Tensor cores", metrics.SAMPLED_TENSOR),
    ("fma", "FMA pipe", metrics.SAMPLED_FMA),
    ("l1", "L1", metrics.SAMPLED_L1),
    ("l2", "L2", metrics.SAMPLED_L2),
    ("dram", "DRAM", metrics.SAMPLED_DRAM),
)


@dataclass(frozen=True, slots=True)
class Lane:
    """One counter over the launch."""

    # ``sms``, ``issue``, ``tensor``, ``fma``, ``l1``, ``l2``, ``dram``, ``blocks``, ``clock`` or a stall reason
    key: str
    # title, unit: for people; ``%`` of the peak, or of the SMs
    title: str
    unit: str
    values: tuple[float, ...]  # the mean in each column of the grid, NaN where no sample was taken

    @property
    def known(self) -> tuple[float, ...]:
        """The values of columns with samples."""
        return tuple(value for value in self.values if value == value)

    @property
    def peak(self) -> float:
        """The largest value."""
        return max(self.known, default=0.0)

    @property
    def scale(self) -> float:
        """What it is drawn against: its own peak, so that a memory that is never busy still shows when it is used.

        A tenth at least of what per cent are of: below, a unit that does next to nothing would look busy.
        """
        return max(self.peak, 10.0) if self.unit == "%" else self.peak

    @property
    def mean(self) -> float:
        """The mean over the launch."""
        return sum(self.known) / max(1, len(self.known))


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the launch in which it does one thing."""

    name: str  # ``filling``, ``prologue``, ``steady``, ``tail``, ``epilogue``, or ``phase 1`` and on
    what: str  # what it does, in words
    # begin, end: as shares of the launch
    begin: float
    end: float
    costs_percent: float | None = unlisted(
        "Costs",
        "%",
        "of the launch's time, against all SMs working as in between",
        how="mean of the SMs without work there",
    )

    @property
    def share(self) -> float:
        """Its share of the launch."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Timeline:
    """A launch over time: counters on one grid, and its phases in order."""

    duration_ns: float | None = figure(
        "Sampled launch",
        "ns",
        "as the sampler saw it",
        how="time stamps of the launch's end less its beginning, in the sampled pass",
    )
    interval_ns: float | None = figure("One sample every", "ns", how="median of the steps of time stamps")
    samples: float | None = figure(
        "Samples of a counter", "", "within the launch", digits=0, how="time stamps within the launch"
    )
    sm_share_percent: float | None = figure(
        "SMs with work, on average",
        "%",
        how="mean over time of instructions as a share of the peak over 25 % of those per active cycle",
    )
    bursts: float | None = figure(
        "Bursts of new blocks",
        "",
        "waves, where blocks end together",
        digits=0,
        how="stretches with a tenth of the largest rate of launched blocks, where each has as many",
    )
    tail_percent: float | None = figure(
        "Tail", "%", "of the time, the SMs running out of blocks", how="time after the last 90 % of its level"
    )
    tail_costs_percent: float | None = figure(
        "Tail costs",
        "%",
        "against all SMs working to the end",
        how="mean of the SMs without work, in the tail",
    )
    even_end_saves_percent: float | None = figure(
        "All SMs busy to the end would save",
        "%",
        "its work, done as fast as where most of them work",
        how="what issue slots fall short, behind the filling, of their mean in the steady phase over the share of SMs "
        "with work there, times the share that a tenth of it exceeds",
    )
    fill_costs_percent: float | None = figure(
        "Filling costs",
        "%",
        "until the SMs have work",
        how="mean of the SMs without work, before the first 90 %",
    )
    tensor_pauses: float | None = figure(
        "Pauses of the tensor cores",
        "",
        "between tiles",
        digits=0,
        how="stretches below three quarters of their median, busy before and behind",
    )
    tensor_pauses_percent: float | None = figure(
        "Pauses of the tensor cores take", "%", "of the time", how="time of those stretches"
    )
    clock_hz: float | None = figure(
        "SM clock, median", "hz", how="active cycles of an SM over time and the share of SMs with work"
    )
    lowest_clock_hz: float | None = figure(
        "SM clock, lowest tenth",
        "hz",
        "where far below the median, power or heat hold it down",
        how="the same, below it a tenth of the time",
    )
    lanes: tuple[Lane, ...] = ()  # counters of the launch
    stalls: tuple[Lane, ...] = ()  # warps of a scheduler by what they wait for, the most frequent first
    phases: tuple[Phase, ...] = ()  # from the beginning to the end without gaps
    missing: NotCollected | None = None

    def lane(self, key: str) -> Lane | None:
        """A counter by its key."""
        return next((lane for lane in self.lanes if lane.key == key), None)


def analyse(profile: KernelProfile) -> Timeline | NotCollected:
    """The launch over time; not collected without samples within it."""
    if not profile.sampled:
        return GROUP.not_collected(profile.metrics)
    lanes = (name for *_, name in _LANES)
    read = {metrics.SAMPLED_IPC, metrics.SM_ACTIVE_CYCLES, *metrics.SAMPLED_BLOCKS, *lanes}
    counters = ((name, metrics.counter_of(name)) for name in profile.sampled)
    wanted = {name for name, one in counters if one in read or metrics.sampled_stall(one) is not None}
    # Samples without a time are in no column.
    series = {found.counter: found for found in series_of(profile, wanted) if (found.stamps > 0).any()}
    span = _span(profile, series)
    return GROUP.not_collected(profile.metrics) if span is None else _on_grid(profile, series, *span)


def _span(profile: KernelProfile, series: Mapping[str, Series]) -> tuple[float, float, int] | None:
    """Nanoseconds of the launch and between samples, and samples within it; None without any."""
    found = []
    for one in series.values():
        times = one.since_start[one.stamps > 0]
        if len(times) < 2 or not one.kept.any():
            continue
        steps = times[1:] - times[:-1]
        interval = float(sorted(steps.tolist())[len(steps) // 2])
        duration = _duration(one, profile.number(metrics.DURATION))
        within = int(((times > -interval) & (times < duration)).sum())
        if duration > 0 and within and interval > 0:
            found.append((duration, interval, within))
    # The counters with the finest samples: a pass with a small buffer takes fewer.
    return max(found, key=lambda span: span[2], default=None)


def _duration(one: Series, profiled: float | None) -> float:
    """Nanoseconds of the launch in the pass that took these samples; of the samples where the report does not say."""
    if one.began is not None and one.ended is not None:
        return float(one.ended - one.began)
    sampled = float(one.timeline_ns[-1]) if len(one.timeline_ns) > 1 else 0.0
    return min(sampled, profiled) if profiled and sampled else sampled


def _on_grid(
    profile: KernelProfile, series: Mapping[str, Series], duration: float, interval: float, within: int
) -> Timeline:
    columns = max(1, min(COLUMNS, within))

    def grid(one: Series | None, values: Array | None = None, *, inside: bool = True) -> Array | None:
        own = 0.0 if one is None else _duration(one, profile.number(metrics.DURATION))
        if one is None or own <= 0:
            return None
        return _columns(one, one.values if values is None else values, own, columns, inside=inside)

    lanes = []
    for key, title, metric in _LANES:
        values = grid(series.get(metric), inside=key not in ("l2", "dram"))
        if values is not None and np.isfinite(values).any():
            lanes.append(Lane(key, title, "%", tuple(values.tolist())))
    share, counted = _sm_share(series, grid)
    # Of a share that is itself from the SMs' cycles, the clock would be the same everywhere.
    clock = _clock(series, share, grid) if counted else None
    # The newest name first: ncu samples others on other chips.
    blocks = _rate(next((series[name] for name in metrics.SAMPLED_BLOCKS if name in series), None), grid)
    if share is not None:
        lanes.insert(0, Lane("sms", "SMs with work", "%", tuple((100 * share).tolist())))
    if blocks is not None:
        blocks = blocks * duration / columns
        lanes.append(Lane("blocks", "New blocks", "", tuple(blocks.tolist())))
    if clock is not None:
        lanes.append(Lane("clock", "SM clock", "GHz", tuple(clock.tolist())))
    usual = float(np.nanmedian(clock)) if clock is not None else None
    cycles_a_ns = usual or (profile.number(metrics.SM_CLOCK) or 0.0) / 1e9
    stalls = []
    for counter, one in series.items():
        name = metrics.sampled_stall(counter)
        # What is sampled are warps, summed over the cycles of a sample.
        values = _rate(one, grid) if name is not None and cycles_a_ns else None
        if name is not None and values is not None and np.nanmax(values, initial=0.0) > 0:
            known = reason(name, profile.device.compute_capability)
            warps = tuple((values / cycles_a_ns).tolist())
            stalls.append(Lane(known.key, known.title.removeprefix("Stall "), "warps", warps))
    stalls.sort(key=lambda lane: -lane.mean)
    bursts = [] if blocks is None else _bursts(blocks, profile.device.sm_count)
    in_step = blocks is not None and _in_step(blocks, bursts, profile.device.sm_count)
    found = {lane.key: np.array(lane.values) for lane in lanes}
    phases = _phases(profile, found, share, bursts, in_step=in_step, sample=interval / duration)
    named = {phase.name: phase for phase in phases}
    tail, fill = named.get("tail"), named.get("filling")
    pauses = _pauses(found.get("tensor"))
    return Timeline(
        duration_ns=duration,
        interval_ns=interval,
        samples=float(within),
        sm_share_percent=None if share is None or np.isnan(share).all() else float(100 * np.nanmean(share)),
        bursts=float(len(bursts)) if in_step else None,
        tail_percent=None if share is None else 100 * tail.share if tail is not None else 0.0,
        tail_costs_percent=None if share is None else tail.costs_percent if tail is not None else 0.0,
        even_end_saves_percent=_even_end(found.get("issue"), share, named) if within >= ENOUGH else None,
        fill_costs_percent=fill.costs_percent if fill is not None else None,
        tensor_pauses=None if pauses is None else float(len(pauses)),
        tensor_pauses_percent=None if not pauses else 100 * sum(b - a for a, b in pauses) / columns,
        clock_hz=None if usual is None else 1e9 * usual,
        lowest_clock_hz=None if clock is None else 1e9 * float(np.nanquantile(clock, 0.1)),
        lanes=tuple(lanes),
        stalls=tuple(stalls),
        phases=phases,
    )


def _columns(one: Series, values: Array, duration: float, columns: int, *, inside: bool) -> Array:
    """The mean over time in each column, NaN without a sample there; ``inside``: of the launch itself, as SMs' work is,
    a memory's traffic is not.
    """
    stamped = one.stamps > 0
    start, found = one.since_start[stamped].astype(np.float64), values[stamped]
    width = np.diff(start, append=start[-1] + np.median(np.diff(start)) if len(start) > 1 else start[-1] + 1)
    if inside:
        # Nothing happened in the part of a sample that lies before the launch or behind it: what was counted, was
        # counted in the rest. Of less than an eighth the stamps are too coarse.
        begin, end = np.maximum(start, 0.0), np.minimum(start + width, duration)
        there = end > begin
        start, rest = begin[there], (end - begin)[there]
        found, width = found[there] * width[there] / np.maximum(rest, width[there] / 8), rest
        if not len(start):
            return np.full(columns, np.nan)
    known = np.isfinite(found)
    edges = np.append(start, start[-1] + width[-1])
    covered = np.concatenate(([0.0], np.cumsum(width * known)))
    total = np.concatenate(([0.0], np.cumsum(width * np.where(known, found, 0.0))))
    at = np.linspace(0.0, duration, columns + 1)
    return _over(np.diff(np.interp(at, edges, total)), np.diff(np.interp(at, edges, covered)))


def _over(dividend: Array, divisor: Array) -> Array:
    """The quotient, NaN where nothing above 0 stands below."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = np.where(divisor > 0, dividend / divisor, np.nan)
    return found


def _rate(one: Series | None, grid: _Grid) -> Array | None:
    """What a counter counts in a nanosecond."""
    if one is None:
        return None
    width = np.diff(one.stamps, append=one.stamps[-1]).astype(np.float64)
    width[-1] = np.median(width)
    return grid(one, _over(one.values, width))


def _sm_share(series: Mapping[str, Series], grid: _Grid) -> tuple[Array | None, bool]:
    """Share of the SMs that have work, 0 to 1 (see the module); of their usual number, and not exact (the second),
    where one counter is missing.
    """
    of_peak, per_active = series.get(metrics.SAMPLED_ISSUE), series.get(metrics.SAMPLED_IPC)
    if of_peak is not None and per_active is not None and np.array_equal(of_peak.stamps, per_active.stamps):
        share = _over(of_peak.values, 100 / PEAK_IPC * per_active.values)
        exact = grid(of_peak, np.where(per_active.values > 0, np.minimum(share, 1.0), per_active.values))
        return (None, False) if exact is None else (np.minimum(exact, 1.0), True)
    active = _rate(series.get(metrics.SM_ACTIVE_CYCLES), grid)
    if active is None or not np.nanmax(active, initial=0.0) > 0:
        return None, False
    # The median of the fuller half of those with work: one sample that two passes share may hold twice its cycles.
    working = active[active > 0]
    usual = float(np.median(working[working >= np.median(working)]))
    return np.minimum(active / usual, 1.0), False


def _clock(series: Mapping[str, Series], share: Array | None, grid: _Grid) -> Array | None:
    """SM clock in GHz where most SMs have work."""
    active = _rate(series.get(metrics.SM_ACTIVE_CYCLES), grid)
    if active is None or share is None:
        return None
    # A column in which work begins or ends mixes both counters' blur.
    inner = np.minimum(share, np.minimum(np.roll(share, 1), np.roll(share, -1))) > 0.5
    clock = np.where(inner, _over(active, share), np.nan)
    return clock if np.isfinite(clock).any() else None


def _runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches of columns for which something holds, as first and behind the last."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _bursts(blocks: Array, sms: int | None) -> list[tuple[int, int]]:
    """Stretches in which new blocks begin together; none where they trickle in, which shows no waves."""
    # The first fills every place that the SMs have: those behind it may have a block an SM.
    densest = float(np.nanmax(blocks, initial=0.0))
    dense = np.nan_to_num(blocks) > NO_BLOCKS * min(densest, sms or densest)
    if len(blocks) < 2 * int(dense.sum()):
        return []
    found: list[tuple[int, int]] = []
    for a, b in _runs(dense):
        if found and a - found[-1][1] <= SHORTEST:  # no longer a gap than a sample blurs
            found[-1] = (found[-1][0], b)
        else:
            found.append((a, b))
    return found


def _in_step(blocks: Array, bursts: Sequence[tuple[int, int]], sms: int | None) -> bool:
    """Whether bursts are waves: each of as many blocks, over most SMs.

    The first fills every place that the SMs have, the last may have fewer. The counter comes in portions of up to 32
    blocks, so that blocks that trickle in look like small bursts.
    """
    if not bursts or sms is None:
        return False
    sizes = [float(np.nansum(blocks[a:b])) for a, b in bursts]
    between = sizes[1:-1] or sizes[:1]
    usual = float(np.median(between))
    alike = all(abs(size - usual) <= ALIKE * usual for size in between)
    return alike and sizes[-1] <= (1 + ALIKE) * usual and (len(sizes) == 1 or usual >= sms / 2)


def _pauses(tensor: Array | None) -> list[tuple[int, int]] | None:
    """Stretches in which tensor cores that are busy before and behind do less than three quarters as much.

    None where they are not what the kernel keeps busy (half of the time above half of their peak).
    """
    if tensor is None or len(tensor) < 20:
        return None
    values, last = np.nan_to_num(tensor), len(tensor)
    if (usual := float(np.median(values))) < 50.0:
        return None
    # A pause is short against what it interrupts: what is longer is a phase.
    return [(a, b) for a, b in _runs(values < 0.75 * usual) if a and b < last and b - a <= last // 10]


def _even_end(issue: Array | None, share: Array | None, phases: Mapping[str, Phase]) -> float | None:
    """Per cent of the time that would be saved if the SMs worked to the end as they do where most have work.

    Work is instructions issued: where few SMs keep a memory as busy as all do, nothing is lost. None where the launch
    does more than one thing, so that instructions are no measure of work.
    """
    steady = phases.get("steady")
    if issue is None or share is None or steady is None or {"prologue", "epilogue"} & phases.keys():
        return None
    issued = np.nan_to_num(issue)
    begin, end = round(steady.begin * len(issued)), round(steady.end * len(issued))
    working = np.nan_to_num(share[begin:end])
    if not working.mean() > 0 or not issued[begin:end].mean() > 0:
        return None
    if "tail" not in phases:
        return 0.0
    level = float(issued[begin:end].mean() / working.mean() * np.quantile(working, 0.9))
    return float(100 * max(0.0, (1 - issued[begin:] / level).sum() / len(issued)))


def _phases(
    profile: KernelProfile,
    found: Mapping[str, Array],
    share: Array | None,
    bursts: Sequence[tuple[int, int]],
    *,
    in_step: bool,
    sample: float,
) -> tuple[Phase, ...]:
    """The phases: a beginning and an end by the SMs with work, between them where a counter's level changes.

    A persistent kernel (one wave of blocks) that keeps the tensor cores busy begins and ends with a prologue and an
    epilogue: SMs have work, the tensor cores none.
    """
    if not found:
        return ()
    columns = len(next(iter(found.values())))
    first, last, blur = 0, columns, SHORTEST * sample
    begin, ends = list[Phase](), list[Phase]()
    if share is not None and np.nanmax(share, initial=0.0) > 0:
        level = float(np.nanquantile(share, 0.9))
        full = np.flatnonzero(np.nan_to_num(share) >= FULL * level)
        first, last = (int(full[0]), int(full[-1]) + 1) if len(full) else (0, columns)

        def costs(a: int, b: int) -> float:
            return float(100 * np.nansum(1 - share[a:b] / level) / columns)

        # What costs less than a sample cannot be told from the blur of one.
        if first / columns < blur or costs(0, first) < 100 * sample:
            first = 0
        if (columns - last) / columns < blur or costs(last, columns) < 100 * sample:
            last = columns
        for kept, name, a, b in ((begin, "filling", 0, first), (ends, "tail", last, columns)):
            if b > a:
                what = f"{100 * float(np.nan_to_num(share[a:b]).mean()):.0f} % of SMs have work"
                kept.append(Phase(name, what, a / columns, b / columns, costs(a, b)))
    waves = profile.launch.waves_per_sm
    tensor = found.get("tensor")
    if tensor is not None and waves is not None and waves <= 1.0:
        level = float(np.nanquantile(tensor, 0.9))
        busy = first + np.flatnonzero(np.nan_to_num(tensor[first:last]) >= 0.5 * level)
        if len(busy) and level >= 2 * LEAST_CHANGE:
            a, b = int(busy[0]), int(busy[-1]) + 1
            if (a - first) / columns >= blur:
                begin.append(Phase("prologue", _does(found, first, a), first / columns, a / columns))
                first = a
            if (last - b) / columns >= blur:
                ends.insert(0, Phase("epilogue", _does(found, b, last), b / columns, last / columns))
                last = b
    cuts = [first, *_cuts(found, bursts, first, last, waves=in_step), last]
    middle = []
    for number, (a, b) in enumerate(itertools.pairwise(cuts), 1):
        name = f"phase {number}" if len(cuts) > 2 else "steady"
        middle += [Phase(name, _does(found, a, b), a / columns, b / columns)] if b > a else []
    return _with_clocks((*begin, *middle, *ends), found.get("clock"))


def _with_clocks(phases: tuple[Phase, ...], clock: Array | None) -> tuple[Phase, ...]:
    """The phases; those at a lower clock than another say so."""
    if clock is None:
        return phases
    columns = len(clock)
    parts = [clock[round(phase.begin * columns) : round(phase.end * columns)] for phase in phases]
    medians = [float(np.nanmedian(part)) if np.isfinite(part).any() else np.nan for part in parts]
    highest = max((median for median in medians if median == median), default=np.nan)
    said = (f", SM clock {median:.2f} GHz" if median < LOWER_CLOCK * highest else "" for median in medians)
    return tuple(replace(phase, what=phase.what + more) for phase, more in zip(phases, said, strict=True))


def _cuts(
    found: Mapping[str, Array], bursts: Sequence[tuple[int, int]], first: int, last: int, *, waves: bool
) -> list[int]:
    """Columns between two others at which the level of a counter changes for good.

    What each block does in turn is no phase of the launch. Where blocks come in waves, levels are therefore means of
    whole waves; else the seams are left out, in which blocks end and others begin.
    """
    columns = np.arange(first, last)
    begins = [a for a, _ in bursts if first <= a < last]
    if not waves and len(bursts) > 1:
        blur = int(SHORTEST)
        for a, b in bursts:
            columns = columns[(columns < a - blur) | (columns >= b + blur)]
    apart = max(2, (last - first) // 15)  # columns in which a phase must be seen
    steps: list[tuple[float, int]] = []
    parts = {key: found[key][columns] for key, _, _ in _LANES if key in found}
    if waves and len(begins) > 1:
        spans = list(itertools.pairwise([*begins, last]))
        for key in parts:
            means = [np.full(b - a, np.nanmean(found[key][a:b])) for a, b in spans]
            parts[key] = np.concatenate(means)
        columns = np.arange(begins[0], last)
    for part in parts.values():
        lowest, highest = np.nanmin(part, initial=np.inf), np.nanmax(part, initial=-np.inf)
        if highest - lowest < LEAST_CHANGE or highest + 1.0 < LEAST_RATIO * (lowest + 1.0):
            continue  # no two levels of it can be far enough apart
        # One per cent of the peak is added: below, a ratio says nothing.
        found_steps = (step.position for step in find_steps(part + 1.0))
        positions = [at for at in found_steps if apart < at < len(part) - apart]
        while positions:
            changes = []
            for a, cut, b in zip([0, *positions], positions, [*positions[1:], len(part)], strict=False):
                before, behind = (float(np.nanmedian(part[x:y])) for x, y in ((a, cut), (cut, b)))
                busiest = max(float(np.nanmedian(other[a:b])) for other in parts.values())
                change = abs(behind - before)
                ratio = (max(before, behind) + 1.0) / (min(before, behind) + 1.0)
                enough = change >= max(LEAST_CHANGE, LEAST_OF_BUSIEST * busiest) and ratio >= LEAST_RATIO
                changes.append((enough, change, cut))
            # Without the least of those that are no new phase, its neighbours have other levels beside them.
            enough, _, least = min(changes)
            if enough:
                break
            positions.remove(least)
        else:
            continue
        # In a seam the change is somewhere: its middle has it.
        steps += [(change, int(columns[cut - 1] + columns[cut] + 1) // 2) for _, change, cut in changes]
    # Counters change together, and those of different passes a column apart: the largest change has the place.
    chosen: list[int] = []
    for _, cut in sorted(steps, reverse=True):
        if all(abs(cut - other) > apart for other in chosen):
            chosen.append(cut)
    return sorted(chosen)


def _does(found: Mapping[str, Array], a: int, b: int) -> str:
    """What the busiest parts of the GPU do in these columns."""
    titles = {key: title for key, title, _ in _LANES}
    sampled = ((key, found[key][a:b]) for key in titles if key in found)
    busy = [(float(np.nanmean(values)), key) for key, values in sampled if np.isfinite(values).any()]
    top = [pair for pair in sorted(busy, reverse=True)[:2] if pair[0] >= LEAST_CHANGE]
    idle = "nothing is busy" if len(busy) == len(titles) else "what was sampled is idle"
    return ", ".join(f"{titles[key]} {value:.0f} %" for value, key in top) or idle
