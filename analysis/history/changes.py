"""Steps of a history, each with what changed with it: code, tools, clocks, counters, or nothing known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from math import log
from statistics import median

import numpy as np
import numpy.typing as npt

from gemmprof.base.amounts import number

Numbers = npt.NDArray[np.float64]

# --- Steps in a series ------------------------------------------------------------------------------------------------
# For a split of ``n`` values after the ``k``-th, with noise of known scale ``s``, the likelihood ratio of "the level
# changed there" against "it did not" is monotone in
#
#     G(k) = sqrt(k (n - k) / n) * |mean(right) - mean(left)| / s
#
# (Siegmund & Venkatraman 1995). The split with the largest G is a step where G passes a bound; both sides are then
# looked at alone (binary segmentation, Vostrikova 1981). What measured times ask for beyond the textbook:
#
# - values are logarithms: a step is a ratio, and noise grows with the time;
# - ``s`` comes from the differences of neighbours without the largest tenth, which steps and outliers hardly touch; it
#   is never below the resolution of the clock nor below `NOISE_FLOOR`;
# - values are winsorised around the median of their neighbours, so that one disturbed run cannot make a step, and the
#   few values behind a young step must agree among themselves;
# - where neighbours are alike (an autoregression), noise is what means over many runs scatter by;
# - a drift over the year and a wave of the season are explanations beside steps (`_beside_drift`);
# - the bound holds for somebody who looks after every run of a year, not for one look (`BOUND`, from simulation).

MINIMUM_BEFORE = 8  # runs that must stand before a step: fewer do not say what the noise is
MINIMUM_AFTER = 5  # runs that must stand behind a step
FEWEST = MINIMUM_BEFORE + MINIMUM_AFTER  # runs that a series needs before a step can be found in it
# G above which a split is a step. `tools/history_power.py` simulates the false alarms that remain of daily looks.
BOUND = 4.15
# The bound grows by this over the number of values: the noise of a short series is itself uncertain.
SMALL_SAMPLE = 6.0
# Relative noise below which no series is believed to be quiet: clocks and placement alone move that much.
NOISE_FLOOR = 0.001
# Noise scales from a level to the edge of its band: 95 in 100 runs lie within, where noise is normal.
WIDTH = 2.0
YEAR = 365.25  # runs of a year: a nightly job's. Of other rhythms a season is not found, their drift is.
FEWEST_TO_DRIFT = 60  # runs from which on a drift can be told from steps
ROUNDS = 4  # of Huber's weights; they hardly move after three
FEW_STEPS = 16  # steps that are looked at one by one beside a drift; a year of real times has fewer
# Of these weakest steps the best explanation lacks one, if it lacks any: their order without a new fit is nearly that
# with one.
LEFT_OUT = 4
WINSOR = 2.5  # how many noise scales beyond the level around it one value may count
LEVEL_WINDOW = 9  # how many neighbouring values make the level that a value is winsorised around
# Correlations below this over the root of the number of runs are chance: 1 of 100 series without any have more.
CHANCE = 5.5


@dataclass(frozen=True, slots=True)
class Step:
    """One change of level."""

    position: int  # index of the first value behind the step
    ratio: float  # level behind over level before, 1.03 for 3 % more
    noise: float  # relative noise of one value (one standard deviation)


def find_steps(values: Sequence[float] | Numbers, *, resolution: float = 0.0) -> tuple[Step, ...]:
    """Every step in a series of positive values (one a run, oldest first, in any unit), in order of time; () where it
    is quiet or too short; ``resolution``: the smallest difference that the clock can tell, in the same unit.
    """
    raw = np.asarray(values, dtype=np.float64)
    where = np.flatnonzero(np.isfinite(raw) & (raw > 0))
    if len(where) < FEWEST:
        return ()
    logs = np.log(raw[where])
    typical = float(np.median(raw[where]))
    noise = max(long_run_noise(logs), NOISE_FLOOR, resolution / (3.46 * typical))
    # Neighbouring ticks of the clock are one time: a level that moved by one tick did not move.
    least = 1.5 * resolution / typical
    cuts = _steps_of(logs, noise, least)
    smooth = np.zeros(len(logs))
    if cuts and len(logs) >= FEWEST_TO_DRIFT:
        cuts, smooth = _beside_drift(logs, where.astype(np.float64), cuts, noise, least)
    level = logs - smooth
    edges = [0, *cuts, len(logs)]
    steps = []
    for left, cut, right in zip(edges, edges[1:], edges[2:], strict=False):
        change = np.median(level[cut:right]) - np.median(level[left:cut])
        steps.append(Step(int(where[cut]), float(np.exp(change)), noise))
    return tuple(steps)


def _steps_of(logs: Numbers, noise: float, least: float) -> list[int]:
    """Where a series without drift changes its level."""
    cuts = _cuts(_winsorised(logs, noise), 0, len(logs), noise)
    return sorted(cut for cut in cuts if _size(logs, cut) > least)


def _beside_drift(
    logs: Numbers, places: Numbers, cuts: list[int], noise: float, least: float
) -> tuple[list[int], Numbers]:
    """The steps of a series that may also drift and go with the season, and how it drifts.

    Explanations are held against each other by Schwarz's criterion: steps alone, drift alone, both. A drift is a line,
    or a line and a wave of a year; a series of less than half a year has no wave that could be told from a line.
    """
    span = places / YEAR
    columns = [span]
    if span[-1] - span[0] > 0.5:
        columns += [np.sin(2 * np.pi * span), np.cos(2 * np.pi * span)]
    drift = np.stack(columns, axis=1)

    def fitted(positions: Sequence[int]) -> tuple[float, Numbers]:
        return _fitted(logs, drift, positions, noise)

    alone, smooth = fitted([])
    # With a step among them, a drift that was fitted without it bends towards it: places are gathered from both, and
    # those go whose absence makes the explanation better.
    chosen = sorted({*cuts, *_steps_of(logs - smooth, noise, least)})
    both, smooth_of_both = fitted(chosen)
    while chosen:
        weakest = _weakest_first(logs - smooth_of_both, chosen)
        if len(chosen) > FEW_STEPS:
            # A stair: each fit must take many away, or there are as many fits as steps.
            leave = [weakest[: len(chosen) // 8], weakest[: len(chosen) // FEW_STEPS]]
        else:
            leave = [[cut] for cut in weakest[:LEFT_OUT]]
        trials = [sorted(set(chosen).difference(without)) for without in leave]
        tried = ((fitted(cuts), cuts) for cuts in trials)
        (better, smooth_of_fewer), fewer = min(tried, key=lambda trial: trial[0][0])
        if better >= both:
            break
        chosen, both, smooth_of_both = fewer, better, smooth_of_fewer
    steps_alone = _fitted(logs, drift[:, :0], cuts, noise)[0], cuts, np.zeros(len(logs))
    explanations = [steps_alone, (alone, [], smooth), (both, chosen, smooth_of_both)]
    for positions in ([], chosen):  # a line alone, which has no season to pay for
        value, straight = _fitted(logs, drift[:, :1], positions, noise)
        explanations.append((value, positions, straight))
    _, positions, drifted = min(explanations, key=lambda item: item[0])
    return positions, drifted


def _fitted(logs: Numbers, drift: Numbers, cuts: Sequence[int], noise: float) -> tuple[float, Numbers]:
    """Schwarz's criterion of an explanation by a drift and levels between cuts, and the drift, by Huber's weights.

    Levels are means of what the drift (values, columns; without a constant) leaves, so a fit asks for its few columns
    alone, however many cuts there are (Frisch & Waugh 1933).
    """
    edges = np.array([0, *cuts])
    counts = np.diff([*edges, len(logs)])
    table = np.column_stack([logs, drift])
    weights = np.ones(len(logs))
    for _ in range(ROUNDS):
        levels = np.add.reduceat(table * weights[:, None], edges) / np.add.reduceat(weights, edges)[:, None]
        apart = table - np.repeat(levels, counts, axis=0)
        root = np.sqrt(weights)[:, None]
        slopes = np.linalg.lstsq(apart[:, 1:] * root, apart[:, 0] * root[:, 0], rcond=None)[0]
        rest = np.abs(apart[:, 0] - apart[:, 1:] @ slopes)
        weights = np.minimum(1.0, WINSOR * noise / np.maximum(rest, 1e-12))
    squares = float(np.sum(np.minimum(rest, WINSOR * noise) ** 2)) / noise**2
    # A step is a size and a place.
    size = 1 + drift.shape[1] + 2 * len(cuts)
    return squares + size * float(np.log(len(logs))), drift @ slopes


def _weakest_first(level: Numbers, cuts: Sequence[int]) -> list[int]:
    """The cuts by how much worse one level instead of the two beside it would be (Ward 1963)."""
    edges = np.array([0, *cuts])
    counts = np.diff([*edges, len(level)]).astype(np.float64)
    means = np.add.reduceat(level, edges) / counts
    losses = np.diff(means) ** 2 * counts[:-1] * counts[1:] / (counts[:-1] + counts[1:])
    return [cuts[at] for at in np.argsort(losses, kind="stable").tolist()]


def _size(logs: Numbers, cut: int) -> float:
    """How far the levels right before and behind a split lie apart."""
    window = 4 * LEVEL_WINDOW
    before, after = logs[max(0, cut - window) : cut], logs[cut : cut + window]
    return float(abs(np.median(after) - np.median(before)))


def noise_scale(logs: Numbers) -> float:
    """Standard deviation of one value, from differences of neighbours: steps are few among them."""
    differences = np.sort(np.abs(np.diff(logs)))
    # The mean of the smallest nine tenths of |N(0, 2 s^2)| is 0.6574 sqrt(2) s; a median would jump between the few
    # values that quantised times take.
    return float(np.mean(differences[: -(-9 * len(differences) // 10)])) / 0.9297 if len(differences) else 0.0


def long_run_noise(logs: Numbers) -> float:
    """What one value of independent noise would scatter by for means over many runs to scatter as they do here.

    Of an autoregression with correlation r neighbours differ by 2 (1 - r) and next neighbours by 2 (1 - r²) variances:
    their ratio tells r, and steps, which are few, hardly touch it.
    """
    noise = noise_scale(logs)
    if len(logs) < 2 * FEWEST or not noise:
        return noise
    second = noise_scale(logs[::2]), noise_scale(logs[1::2])
    ratio = (second[0] ** 2 + second[1] ** 2) / (2 * noise**2)
    alike = min(ratio - 1, 0.9)
    if alike <= CHANCE / float(np.sqrt(len(logs))):
        return noise
    return noise * float(np.sqrt(1 + alike)) / (1 - alike)


def _winsorised(logs: Numbers, noise: float) -> Numbers:
    """Values drawn in to `WINSOR` noise scales around the levels before, around and behind them.

    Which level is a value's own is not known near a step, so it may follow any of the three.
    """
    half = LEVEL_WINDOW // 2
    padded = np.concatenate([np.full(half, np.nan), logs, np.full(half, np.nan)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, LEVEL_WINDOW)
    levels = np.stack([medians(windows.T), medians(windows[:, : half + 1].T), medians(windows[:, half:].T)])
    # The last values have nothing behind them to be a level.
    levels[2, len(logs) - MINIMUM_AFTER + 1 :] = levels[1, len(logs) - MINIMUM_AFTER + 1 :]
    return np.clip(logs, levels.min(axis=0) - WINSOR * noise, levels.max(axis=0) + WINSOR * noise)


def _cuts(values: Numbers, start: int, stop: int, noise: float) -> list[int]:
    """Positions of the steps between ``start`` and ``stop``."""
    count = stop - start
    before = MINIMUM_BEFORE if start == 0 else MINIMUM_AFTER
    if count < before + MINIMUM_AFTER:
        return []
    part = values[start:stop]
    sums = np.cumsum(part - part[0])
    k = np.arange(before, count - MINIMUM_AFTER + 1)
    left = sums[k - 1] / k
    right = (sums[-1] - sums[k - 1]) / (count - k)
    statistic = np.sqrt(k * (count - k) / count) * np.abs(right - left) / noise
    for index in np.argsort(statistic)[::-1]:
        if statistic[index] < BOUND + SMALL_SAMPLE / count:
            return []
        cut = int(k[index])
        if _agree(part[:cut], part[cut:], noise):
            position = start + cut
            return [*_cuts(values, start, position, noise), position, *_cuts(values, position, stop, noise)]
    return []


def _agree(before: Numbers, after: Numbers, noise: float) -> bool:
    """Whether nearly all values of the shorter side lie beyond the other side's level: two disturbed runs do not."""
    level_before, level_after = np.median(before), np.median(after)
    direction = 1.0 if level_after > level_before else -1.0
    short, level = (after, level_before) if len(after) <= len(before) else (before, level_after)
    sign = direction if short is after else -direction
    if len(short) > 3 * MINIMUM_AFTER:
        return True
    beyond = np.count_nonzero(sign * (short - level) > max(0.5 * noise, abs(level_after - level_before) / 3))
    return bool(beyond >= len(short) - len(short) // 5)


@dataclass(frozen=True, slots=True)
class Level:
    """Runs from ``start`` to before ``stop``, their median time, and the band around it; nanoseconds."""

    start: int
    stop: int
    time_ns: float
    low_ns: float
    high_ns: float


def levels(times_ns: Sequence[float], steps: Sequence[Step]) -> tuple[float, tuple[Level, ...]]:
    """The relative noise of one run (one standard deviation), and the levels between the steps, oldest first."""
    known = np.asarray([time for time in times_ns if time > 0], dtype=np.float64)
    noise = max(noise_scale(np.log(known)), NOISE_FLOOR)
    edges = [0, *(step.position for step in steps), len(times_ns)]
    found = []
    for start, stop in pairwise(edges):
        level = median(times_ns[start:stop])
        found.append(Level(start, stop, level, level * (1 - WIDTH * noise), level * (1 + WIDTH * noise)))
    return noise, tuple(found)


def medians(rows: Numbers) -> Numbers:
    """The median of each column's numbers, NaN for a column without any (numpy's nanmedian, 20 times faster)."""
    ordered = np.sort(rows, axis=0)  # NaN goes to the end
    known = len(rows) - np.count_nonzero(np.isnan(rows), axis=0)
    columns = np.arange(rows.shape[1])
    low, high = np.maximum(known - 1, 0) // 2, np.minimum(known // 2, len(rows) - 1)
    middle: Numbers = (ordered[low, columns] + ordered[high, columns]) / 2
    return middle


# --- Points -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and when a run was made, as its recorder says."""

    recorded_at: datetime  # when, with its time zone
    # commit, branch, machine, note: free text; '' if not given
    commit: str = ""
    branch: str = ""
    machine: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel in one run. Times in nanoseconds, clocks in hertz; None where the run does not say."""

    kernel: str  # full demangled name, or stage and problem; untrusted text
    grid: str  # ``64x64x1``; '' for a stage
    device: str  # name of the card, and of the machine where that is known
    kind: str  # ``timed`` by gemmprof, or ``profiled`` by ncu; never mixed in one series
    origin: Origin
    time_ns: float  # the median of the repetitions
    # low_ns, high_ns: the shortest and the longest repetition
    low_ns: float
    high_ns: float
    repetitions: int
    cycles: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    tools: str = ""
    code: str = ""  # fingerprint of the kernel's instructions, '' where the report does not hold them
    # what its findings say their fixes would save, as `recording` writes it; '' without
    predictions: str = ""
    # by name of `analysis.history.recording.COUNTERS`
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def series(self) -> tuple[str, str, str, str]:
        """What must be equal for two points to be of one series."""
        return (self.kernel, self.grid, self.device, self.kind)


# --- Steps ------------------------------------------------------------------------------------------------------------

CLOCKS = ("sm_clock_hz", "memory_clock_hz")
TEXTS = ("code", "tools")

CLOCK_RESOLUTION_NS = 32.0  # ncu's durations are multiples of this
COUNTER_CHANGE = 0.01  # a counter that moved less than this share is the same work


@dataclass(frozen=True, slots=True)
class Change:
    """A step in one series."""

    after: Point  # the first one behind the step
    step: Step  # position, ratio and noise
    # what changed with it, of ``code``, ``tools``, ``clocks``, ``counters``; ``("unknown",)`` where nothing that was
    # recorded did
    causes: tuple[str, ...]
    details: tuple[str, ...]  # one sentence a cause

    @property
    def is_slower(self) -> bool:
        """Whether the kernel takes longer since."""
        return self.step.ratio > 1


def steps_in(times_ns: Sequence[float] | Numbers, kind: str) -> tuple[Step, ...]:
    """The steps in the times of one series, which are of this kind (`Point`)."""
    return find_steps(times_ns, resolution=CLOCK_RESOLUTION_NS if kind == "profiled" else 0.0)


def changes(points: Sequence[Point], steps: Sequence[Step] | None = None) -> tuple[Change, ...]:
    """The steps of one series, whose points are sorted by time; ``steps`` are those, if they were found before."""
    if steps is None:
        steps = steps_in([point.time_ns for point in points], points[0].kind)
    names = sorted({name for point in points for name in point.counters})
    edges = [0, *(step.position for step in steps), len(points)]
    levels = [_level(points[start:stop], names) for start, stop in pairwise(edges)]
    return tuple(
        _classified(names, before, after, step, points[step.position])
        for step, (before, after) in zip(steps, pairwise(levels), strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """What is typical between two steps."""

    texts: dict[str, str]  # for each of `TEXTS` the most frequent one, '' without any
    # typical, spread: for each clock and counter its median, and the median distance from it; NaN without any
    typical: Numbers
    spread: Numbers


def _level(points: Sequence[Point], counters: Sequence[str]) -> _Level:
    # What was not recorded is None, which becomes NaN.
    clocks = ([getattr(one, name) for name in CLOCKS] for one in points)
    known = [[*two, *map(one.counters.get, counters)] for two, one in zip(clocks, points, strict=True)]
    rows = np.array(known, np.float64)
    typical = medians(rows)
    counted = {name: Counter(filter(None, (getattr(one, name) for one in points))) for name in TEXTS}
    texts = {name: max(of, key=of.__getitem__, default="") for name, of in counted.items()}
    return _Level(texts, typical, medians(np.abs(rows - typical)))


def _classified(counters: Sequence[str], before: _Level, after: _Level, step: Step, first: Point) -> Change:
    found: dict[str, str] = {}
    code, tools = ((before.texts[name], after.texts[name]) for name in TEXTS)
    if all(code) and code[0] != code[1]:
        commit = first.origin.commit
        found["code"] = "the instructions differ" + (f", since commit {commit}" if commit else "")
    if all(tools) and tools[0] != tools[1]:
        found["tools"] = f"{tools[0]} became {tools[1]}"
    if sentence := _clocks(before, after, step):
        found["clocks"] = sentence
    if moved := _counters(counters, before, after):
        found["counters"] = "; ".join(moved[:3])
    # The runs behind the step repeat it: whatever it is, it is no noise.
    found = found or {"unknown": "nothing that was recorded changed with it, and it stayed"}
    return Change(first, step, tuple(found), tuple(found.values()))


def _clocks(before: _Level, after: _Level, step: Step) -> str:
    """Whether the time moved and the cycles did not, or the clock moved as much as the time."""
    for what, left, right in zip(("SM clock", "memory clock"), before.typical, after.typical, strict=False):
        if not (left > 0 and right > 0):
            continue
        # A clock that fell by a third of what the time rose explains a good part of it.
        explained = -log(right / left) / log(step.ratio) if step.ratio != 1 else 0.0
        if abs(right / left - 1) > 2 * step.noise and 0.33 < explained < 3:
            return f"{what} {left / 1e6:,.0f} MHz became {right / 1e6:,.0f} MHz"
    return ""


def _counters(names: Sequence[str], before: _Level, after: _Level) -> list[str]:
    """Counters whose medians differ by more than they vary, largest change first."""
    was, now = before.typical, after.typical
    own = np.maximum(before.spread, after.spread)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.abs(now - was) / np.maximum(np.abs(was), np.abs(now))
        moved = np.flatnonzero((size > COUNTER_CHANGE) & (np.abs(now - was) > 3 * own))
    chosen = sorted((at for at in moved.tolist() if at >= len(CLOCKS)), key=lambda at: -size[at])
    titles = {at: names[at - len(CLOCKS)].replace("_", " ") for at in chosen}
    return [f"{title} {number(was[at])} became {number(now[at])}" for at, title in titles.items()]
