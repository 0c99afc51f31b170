#!/usr/bin/env python3
"""Learn from the recorded collections how much kernels differ from run to run, and measure how often the verdicts err.

Reads tests/data/noise, writes analysis/comparison/noise.json and the tables of docs/comparison.md. The verdicts
on a kernel are counted with classes that were learnt without that kernel. ``--check`` writes nothing and exits with 1
if a file is out of date; ``--pack FOLDER…`` first puts there what tools/record_noise.py recorded, a folder a machine.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recording import ROOT, options_of, table_of, with_block, written

from gemmprof import metrics
from gemmprof.analysis.comparison.judgement import (
    FAMILY_WISE,
    REFERENCE_NS,
    Batch,
    Judgement,
    NoiseModel,
    clipped_squares,
    estimate,
    judge,
    limit_of,
    location,
    location_variance,
)
from gemmprof.analysis.comparison.outcome import compare_matches
from gemmprof.analysis.comparison.sides import Side, load_side, match
from gemmprof.analysis.reading.report import read_report
from gemmprof.base import amounts
from gemmprof.base.spread import grouped

DATA = ROOT / "tests" / "data" / "noise"
CLASSES = ROOT / "analysis" / "comparison" / "noise.json"
DOCUMENT = ROOT / "docs" / "comparison.md"

LARGEST = 0.05
"""What one launch a side is held to scatter by at most: as much as the noisiest recorded kernel. With more a kernel
that is 50 % slower among 843 single launches is missed more often (4 % of the cases at 0.056)."""
WHOLE = ("base_0", "base_1", "more_020_0", "code_base", "code_renamed", "code_fewer_registers")
"""Reports that tests read as a user would."""
COLUMNS = {
    "ns": metrics.DURATION,
    "cycles": metrics.ELAPSED_CYCLES,
    "sm_hz": metrics.SM_CLOCK,
    "memory_hz": metrics.DRAM_CLOCK,
    "instructions": metrics.INSTRUCTIONS_EXECUTED,
    "compute_percent": metrics.SM_THROUGHPUT,
    "memory_percent": metrics.MEMORY_THROUGHPUT,
}
SHRINK = 3
"""So many kernels without any effect are added to those of one limit."""
STEP = 32.0
"""Nanoseconds: durations on the recorded GPU are multiples of this."""
WORK = (10, 20, 50, 100)

Table = tuple[Any, ...]
"""Head and rows, as `table_of` takes them, and lines below."""
Kernel = tuple[str, str]
Sides = dict[Kernel, tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True)
class Recorded:
    """The times and instruction counts of one kernel by collection, and what limits it."""

    times: dict[str, tuple[float, ...]]
    instructions: dict[str, frozenset[str]]
    limit: str


def table(name: str) -> pd.DataFrame:
    """What was recorded, a row a launch or a timing."""
    return pd.read_csv(DATA / name, dtype={"lease": str, "instructions": str})


def pack(folders: Iterable[Path]) -> None:
    """Keep of what tools/record_noise.py recorded, a folder a machine: all launches, all timings, a few reports."""
    launches, timings = [], []
    for lease, folder in enumerate(folders):
        for path in sorted(folder.glob("*.ncu-rep.xz")):
            name = path.name.split(".")[0]
            if name in WHOLE:
                shutil.copyfile(path, DATA / path.name)
            for profile in read_report(path, source=False, units=False, instances=False):
                values = (profile.number(metric) for metric in COLUMNS.values())
                known = ("" if value is None else f"{value:.7g}" for value in values)
                grid = "x".join(map(str, profile.launch.grid))
                launches.append((name, lease, profile.name, grid, *known))
        for path in sorted(folder.glob("*.csv")):
            timings.append(pd.read_csv(path, dtype=str).assign(collection=path.stem, lease=lease))
    head = ["collection", "lease", "kernel", "grid", *COLUMNS]
    pd.DataFrame(launches, columns=head).to_csv(DATA / "launches.csv.xz", index=False)
    order = ["collection", "lease", "kernel", "repetition", "milliseconds"]
    pd.concat(timings)[order].to_csv(DATA / "timings.csv.xz", index=False)


@cache
def leases() -> dict[str, str]:
    """Collection to the machine that it was made on: two of them, with two cards of one model."""
    launches = table("launches.csv.xz")
    return dict(zip(launches["collection"], launches["lease"], strict=True))


def _work(name: str) -> tuple[str, str | None]:
    """What a collection did, on which card: all timed runs are from one."""
    return re.sub(r"_\d$", "", name), leases().get(name)


def same_work(names: Iterable[str]) -> list[list[str]]:
    """The collections in groups that did the same work on the same card."""
    return list(grouped((_work(name), name) for name in names).values())


@cache
def recorded() -> dict[Kernel, Recorded]:
    """The launches under ncu, kernel by kernel."""
    launches = table("launches.csv.xz")
    limits = {
        (row.kernel, row.grid): limit_of(row.compute_percent, row.memory_percent)
        for row in launches.dropna(subset="compute_percent").itertuples()
    }
    kept = launches[~launches["collection"].str.startswith(("code", "limits"))]
    return {
        kernel: Recorded(
            _by_collection(found["ns"], found["collection"]),
            {str(name): frozenset(part["instructions"]) for name, part in found.groupby("collection")},
            limits.get(kernel, ""),
        )
        for kernel, found in kept.groupby(["kernel", "grid"], sort=False)
    }


@cache
def timed() -> dict[Kernel, Recorded]:
    """The same kernels timed with CUDA events, without the profiler."""
    timings = table("timings.csv.xz")
    kept = timings[~timings["collection"].str.startswith("timed_more")]
    return {
        (str(kernel), ""): Recorded(_by_collection(1e6 * found["milliseconds"], found["collection"]), {}, "")
        for kernel, found in kept.groupby("kernel", sort=False)
    }


def _by_collection(times: pd.Series[float], collections: pd.Series[str]) -> dict[str, tuple[float, ...]]:
    return {str(name): tuple(of) for name, of in times.groupby(collections, sort=False)}


def learn(kernels: Iterable[Recorded], card: str = "") -> NoiseModel:
    """What is usual, and the differences of whole processes, from these kernels alone (and one card's collections)."""
    found: list[tuple[float, float, str]] = []
    groups: list[tuple[float, float, int, int]] = []
    for kernel in kernels:
        squares, freedom = 0.0, 0
        centres = []
        for names in same_work(name for name in kernel.times if not card or leases()[name] == card):
            of_group = []
            for name in names:
                logs = [math.log(time) for time in kernel.times[name]]
                centre = location(logs)
                squares += clipped_squares(logs, centre)
                freedom += len(logs) - 1
                of_group.append(centre)
            centres.append(of_group)
        variance = squares / freedom
        found.append((centres[0][0], math.log(max(math.sqrt(variance), SMALLEST)), kernel.limit))
        apart = [sum((value - sum(group) / len(group)) ** 2 for value in group) for group in centres]
        launches = len(next(iter(kernel.times.values())))
        groups.append((variance, sum(apart), sum(len(group) - 1 for group in centres), launches))
    power, middle = np.polyfit([x - math.log(REFERENCE_NS) for x, _, _ in found], [y for _, y, _ in found], 1)
    left = [(y - middle - power * (x - math.log(REFERENCE_NS)), limit) for x, y, limit in found]
    effects = {}
    for limit in sorted({limit for _, limit in left if limit}):
        of_limit = [rest for rest, other in left if other == limit]
        effects[limit] = sum(of_limit) / (len(of_limit) + SHRINK)
    rest = [rest - effects.get(limit, 0.0) for rest, limit in left]
    factor = math.sqrt(sum(one * one for one in rest) / (len(rest) - 2 - len(effects)))
    floor, share = _between(groups)
    return NoiseModel(
        "",
        math.exp(middle),
        float(power),
        {limit: math.exp(effect) for limit, effect in effects.items()},
        factor,
        LARGEST,
        floor,
        share,
    )


SMALLEST = 0.0002
"""Standard deviations below this are those of the clock."""


def _between(groups: Sequence[tuple[float, float, int, int]]) -> tuple[float, float]:
    """The floor and share that make the distances of whole processes most likely (normal, on a grid)."""

    def badness(floor: float, share: float) -> float:
        total = 0.0
        for variance, squares, freedom, launches in groups:
            expected = floor**2 + (share**2 + location_variance(launches)) * variance
            total += freedom * math.log(expected) + squares / expected
        return total

    floors = [0.0001 * step for step in range(1, 41)]
    shares = [0.02 * step for step in range(0, 51)]
    return min(itertools.product(floors, shares), key=lambda pair: badness(*pair))


def source_of_classes() -> str:
    """The generated file: what is usual of durations that ncu measured, and of times without the profiler."""
    learnt = {
        "under_ncu": _rounded(recorded(), "on two NVIDIA H200, clocks not fixed"),
        "timed": _rounded(timed(), "on an NVIDIA H200, CUDA events, L2 flushed before each repetition"),
    }
    return json.dumps({name: asdict(model) for name, model in learnt.items()}, indent=1) + "\n"


def _rounded(kernels: dict[Kernel, Recorded], where: str) -> NoiseModel:
    model = learn(kernels.values())
    collections_ = {collection for kernel in kernels.values() for collection in kernel.times}
    return replace(
        model,
        source=f"{len(kernels)} kernels in {len(collections_)} collections {where}",
        middle=round(model.middle, 5),
        power=round(model.power, 3),
        limits={limit: round(factor, 3) for limit, factor in model.limits.items()},
        factor=round(model.factor, 3),
        between_floor=round(model.between_floor, 5),
        between_share=round(model.between_share, 3),
    )


# How often the verdicts err


@dataclass(frozen=True)
class Trial:
    """One kernel of one comparison, and what was found."""

    kernel: Kernel
    judgement: Judgement
    noise: float


@cache
def model_without(kernel: Kernel, card: str) -> NoiseModel:
    """What the other kernels teach, on the other card."""
    other = next(lease for lease in sorted(set(leases().values())) if lease != card)
    return learn((found for name, found in recorded().items() if name != kernel), other)


def compare(pairs: Sides, card: str) -> list[Trial]:
    """One comparison of all these kernels on a card, each judged by what the others teach on the other card."""
    estimates, noises = [], []
    for kernel, sides in pairs.items():
        before, after = (Batch.of_times(side, STEP) for side in sides)
        noise = model_without(kernel, card).of(math.exp(before.centre), recorded()[kernel].limit)
        estimates.append(estimate([before], [after], noise))
        noises.append(own_noise(kernel))
    return list(map(Trial, pairs, judge(estimates), noises))


@cache
def own_noise(kernel: Kernel) -> float:
    """Standard deviation of a kernel's launches within one process, over all collections of it as it is."""
    logs = [
        [math.log(t) for t in times]
        for name, times in recorded()[kernel].times.items()
        if name.startswith("base")
    ]
    squares = sum(clipped_squares(values, statistics.median(values)) for values in logs)
    return math.sqrt(squares / sum(len(values) - 1 for values in logs))


def trials(pairs: Iterable[tuple[str, str]], launches: int, *, alone: bool = False) -> list[Trial]:
    """All kernels of these pairs of collections, with this many launches a side.

    With fewer than twelve, the launches are drawn at random (seeded), four times a pair. ``alone``: each kernel is a
    comparison of its own, so that nothing is corrected for the number of kernels.
    """
    found: list[Trial] = []
    for sides, card in drawn(pairs, launches):
        for together in [{kernel: side} for kernel, side in sides.items()] if alone else [sides]:
            found += compare(together, card)
    return found


def drawn(pairs: Iterable[tuple[str, str]], launches: int) -> Iterator[tuple[Sides, str]]:
    """The launches of `trials`: each comparison's two sides by kernel, and the card."""
    for a, b in pairs:
        draw = random.Random(f"{a} {b} {launches}")
        for _ in range(1 if launches == 12 else 4):
            sides = {}
            for kernel, held in recorded().items():
                chosen = [sorted(draw.sample(range(12), launches)) for _ in (a, b)]
                before, after = (
                    [held.times[name][index] for index in indexes]
                    for name, indexes in zip((a, b), chosen, strict=True)
                )
                sides[kernel] = before, after
            yield sides, leases()[a]


def collections() -> list[str]:
    """All collections, in order of name."""
    return sorted({name for kernel in recorded().values() for name in kernel.times})


def self_pairs() -> list[tuple[str, str]]:
    """Pairs of collections that did the same work on the same card."""
    return [(a, b) for a, b in itertools.combinations(collections(), 2) if _work(a) == _work(b)]


def changed_pairs(per_thousand: int) -> list[tuple[str, str]]:
    """Pairs of a collection as it is and one with more work, on the same card."""
    left, right = (
        [name for name in collections() if name.startswith(kind)]
        for kind in ("base", f"more_{per_thousand:03}")
    )
    return [(a, b) for a in left for b in right if leases()[a] == leases()[b]]


def card_pairs() -> list[tuple[str, str]]:
    """Pairs of collections that did the same work on two cards of one model."""
    names = [name for name in collections() if name.startswith("base")]
    return [(a, b) for a, b in itertools.combinations(names, 2) if leases()[a] != leases()[b]]


@cache
def true_change(kernel: Kernel, per_thousand: int) -> float:
    """What all collections together say of a variant: by the medians of collections of one card, 0.02 for 2 %."""
    held = recorded()[kernel].times
    sides = [
        [math.log(statistics.median(held[name])) for name in names]
        for names in map(set, zip(*changed_pairs(per_thousand), strict=True))
    ]
    before, after = (sum(side) / len(side) for side in sides)
    return math.expm1(after - before)


def rate(found: Sequence[Trial], *verdicts: str) -> str:
    """How many of the trials ended so: ``3 of 350 (0.9 %)``."""
    return _share([trial.judgement.verdict in verdicts for trial in found])


def false_alarms() -> Table:
    """The table of comparisons of a thing with itself."""
    rows = []
    for launches in (12, 3, 1):
        whole, single = (trials(self_pairs(), launches, alone=alone) for alone in (False, True))
        alarms = (rate(found, "slower", "faster") for found in (whole, single))
        rows.append((launches, *alarms, rate(whole, "same")))
    return (
        "launches a side> | 35 kernels compared as a whole> | each kernel compared alone> | SAME, as a whole>"
    ), rows


def detection() -> Table:
    """The table of changes that were there."""
    head = (
        "more work> | launches a side> | SLOWER, of all kernels with noise below 1 %> | of those as much longer> "
        "| CAN'T TELL> | SAME>"
    )
    rows = []
    for work in WORK:
        for launches in (12, 3):
            steady = [trial for trial in trials(changed_pairs(work), launches) if trial.noise < 0.01]
            risen = [trial for trial in steady if true_change(trial.kernel, work) >= 0.9 * work / 1000]
            slower = (rate(found, "slower") for found in (steady, risen))
            others = (rate(steady, verdict) for verdict in ("unclear", "same"))
            rows.append((f"{work / 10:g} %", launches, *slower, *others))
    return head, rows


def two_cards() -> Table:
    """The table of comparisons between two cards of one model."""
    rows = []
    for launches in (12, 3):
        found = trials(card_pairs(), launches)
        changed = [trial for trial in found if trial.judgement.verdict in ("slower", "faster")]
        red = [trial for trial in changed if not same_counters(trial.kernel)]
        rows.append((launches, rate(found, "slower", "faster"), f"{len(red)} of {len(found)}"))
    return "launches a side> | by times alone> | with code and counters looked at>", rows


def same_counters(kernel: Kernel) -> bool:
    """Whether the kernel as it is executed the same number of instructions in every launch of every collection."""
    held = recorded()[kernel].instructions
    return len(frozenset().union(*(counts for name, counts in held.items() if name.startswith("base")))) == 1


def classes() -> Table:
    """The table of what is usual, and a sentence below it."""
    model = learn(recorded().values())
    limits = ("compute", "memory", "latency")
    rows = [
        (amounts.nanoseconds(ns), *(f"{100 * model.of(ns, limit).middle:.2f} %" for limit in limits))
        for ns in (2e3, 2e4, 2e5, 2e6, 2e7)
    ]
    said = (
        f"Two of three kernels lie within {math.exp(model.factor):.1f} times as much or as little. Whole processes "
        f"differ by {100 * model.between_floor:.2f} % and, on top, by {model.between_share:.2f} times the spread of "
        "their launches (standard deviations)."
    )
    return "a kernel of | limited by compute> | memory> | latency>", rows, "", said


# How others decide whether two sets of times differ

LEVEL = 0.01
"""At which the two tests reject."""
GAP = 0.005
"""nvbench's ``clear_gap_relative`` by default."""


def nvbench(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the intervals from minimum to third quartile lie apart by 0.5 %.

    That is ``compare_intervals_for_clear_gap`` of ``nvbench-compare-robust`` (July 2026). It confirms a gap in cycles,
    too; the clock of the recorded collections did not move, so that it changes nothing here.
    """
    lows, highs = zip(*((min(side), _third_quartile(side)) for side in (before, after)), strict=True)
    return max(lows[1] / highs[0], lows[0] / highs[1]) - 1 >= GAP


def _third_quartile(values: Sequence[float]) -> float:
    # Its percentile_rank: rounded half up.
    return sorted(values)[(75 * (len(values) - 1) + 50) // 100]


def welch(before: Sequence[float], after: Sequence[float]) -> bool:
    """Welch's t test of the logarithms, two-sided."""
    logs = [np.log(side) for side in (before, after)]
    parts = [side.var(ddof=1) / len(side) for side in logs]
    error = math.sqrt(sum(parts))
    if not error:
        return bool(logs[0][0] != logs[1][0])
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, logs, strict=True))
    return _t_tail(abs(logs[1].mean() - logs[0].mean()) / error, freedom) < LEVEL


def _t_tail(value: float, freedom: float) -> float:
    """P(|T| > value), by integration over the angle: x = tan(a) √freedom leaves a cosine to a power."""
    angles = np.linspace(0, math.pi / 2, 20001)[:-1]
    density = np.cos(angles) ** (freedom - 1)
    beyond = density[angles > math.atan(value / math.sqrt(freedom))]
    return float(beyond.sum() / density.sum())


def mann_whitney(before: Sequence[float], after: Sequence[float]) -> bool:
    """Mann and Whitney's test, two-sided, exact (ties count half). Of three values a side it never rejects."""
    above = sum((b > a) + 0.5 * (b == a) for a in before for b in after)
    extreme = min(above, len(before) * len(after) - above)
    counts = _arrangements(len(before), len(after))
    return 2 * sum(counts[: math.floor(extreme) + 1]) / sum(counts) < LEVEL


@cache
def _arrangements(first: int, second: int) -> tuple[int, ...]:
    """In how many orders of so many values of two sides so many of one side lie above so many of the other."""
    if not first or not second:
        return (1,)
    found = [0] * (first * second + 1)
    for at, count in enumerate(_arrangements(first - 1, second)):
        found[at + second] += count
    for at, count in enumerate(_arrangements(first, second - 1)):
        found[at] += count
    return tuple(found)


def _gemmprof(kernel: Kernel, before: Sequence[float], after: Sequence[float], card: str) -> bool:
    (trial,) = compare({kernel: (before, after)}, card)
    return trial.judgement.verdict in ("slower", "faster")


def other_rules() -> Table:
    """The table of other rules on the same launches, each kernel judged alone."""
    rules: dict[str, Callable[[Kernel, Sequence[float], Sequence[float], str], bool]] = {
        "gemmprof": _gemmprof,
        "nvbench (clear gap of 0.5 %, July 2026)": lambda _, before, after, __: nvbench(before, after),
        "Welch's t test at 1 %": lambda _, before, after, __: welch(before, after),
        "Mann and Whitney at 1 %": lambda _, before, after, __: mann_whitney(before, after),
    }
    rows = []
    cases = ((3, 20), (12, 10))
    launches = {
        (count, work): [
            (kernel, *side, card)
            for sides, card in drawn(changed_pairs(work) if work else self_pairs(), count)
            for kernel, side in sides.items()
        ]
        for count, more in cases
        for work in (0, more)
    }
    for name, rule in rules.items():
        cells = [name]
        for count, more in cases:
            alarms = [rule(*one) for one in launches[count, 0]]
            risen = [
                one
                for one in launches[count, more]
                if own_noise(one[0]) < 0.01 and true_change(one[0], more) >= 0.9 * more / 1000
            ]
            cells += [_share(alarms), _share([rule(*one) for one in risen])]
        rows.append(cells)
    return (
        "rule | 3 launches: false alarms> | 2 % more, found> | 12 launches: false alarms> | 1 % more, found>"
    ), rows


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags)} of {len(flags)} ({100 * sum(flags) / len(flags):.1f} %)"


def single_launches() -> Table:
    """The table of hundreds of kernels with one launch a side each."""
    head = (
        "one launch of each of 843 kernels | comparisons with itself that have an alarm> | one is 50 % slower, found> "
        "| 5 times slower, found>"
    )
    rows = []
    for title, groups in (
        ("the recorded kernels", _recorded_singles()),
        ("on an H100", _h100_singles()),
        ("a transformer's", _transformer_singles()),
    ):
        draw = np.random.default_rng(843)
        alarms = 0
        found = {1.5: 0, 5.0: 0}
        for _ in range(COMPARISONS):
            chosen = draw.integers(len(groups), size=SINGLES)
            probabilities = np.empty(SINGLES)
            for at, group in enumerate(chosen):
                changes, tail = groups[group]
                probabilities[at] = tail(changes[draw.integers(len(changes))])
            alarms += bool(probabilities.min() <= FAMILY_WISE / SINGLES)
            changes, tail = groups[chosen[0]]
            for times in found:
                probability = tail(changes[draw.integers(len(changes))] + math.log(times))
                found[times] += probability <= FAMILY_WISE / SINGLES
        shares = (f"{100 * n / COMPARISONS:.1f} %" for n in found.values())
        rows.append((title, f"{alarms} of {COMPARISONS:,}", *shares))
    return head, rows


SINGLES, COMPARISONS = 843, 1000
Tail = Callable[[float], float]


def _tail(nanoseconds: float, model: NoiseModel, limit: str) -> Tail:
    """How likely a change of one launch a side is, from a table of 2,000 changes."""
    batch = Batch.of_times([nanoseconds], STEP)
    one = estimate([batch], [batch], model.of(nanoseconds, limit))
    grid = np.linspace(0, 2.5, 2000)
    logs = np.log([max(one.noise.tail(float(change)), 1e-300) for change in grid])
    return lambda change: float(np.exp(np.interp(abs(change), grid, logs)))


def _recorded_singles() -> list[tuple[list[float], Tail]]:
    """For each recorded kernel and pair of collections the differences of single launches."""
    found = []
    for kernel, held in recorded().items():
        for a, b in self_pairs():
            changes = [math.log(y / x) for x in held.times[a] for y in held.times[b]]
            tail = _tail(held.times[a][0], model_without(kernel, leases()[a]), held.limit)
            found.append((changes, tail))
    return found


def _h100_singles() -> list[tuple[list[float], Tail]]:
    """The same of another model of card, of which nothing was learnt, within and between two processes."""
    model = learn(recorded().values())
    found = []
    for pair in match(*(load_side([DATA / "h100" / f"base_{number}.ncu-rep.xz"]) for number in (0, 1))):
        assert pair.before is not None and pair.after is not None
        sides = [record.times[0].nanoseconds for record in (pair.before, pair.after)]
        pairs = [(0, 1, x, y) for x in range(12) for y in range(12)]
        pairs += [(side, side, x, y) for side in (0, 1) for x in range(12) for y in range(12) if x != y]
        changes = [math.log(sides[b][y] / sides[a][x]) for a, b, x, y in pairs]
        found.append((changes, _tail(sides[0][0], model, pair.before.limit)))
    return found


def _transformer_singles() -> list[tuple[list[float], Tail]]:
    """The same of a report that nothing was learnt from: its launches of one family that do the same work."""
    model = learn(recorded().values())
    profiles = read_report(
        ROOT / "docs" / "examples" / "recorded" / "transformer_launches.ncu-rep.xz",
        source=False, units=False, instances=False,
    )  # fmt: skip
    found = []
    for values in grouped((one.family, one.number(metrics.DURATION) or 0.0) for one in profiles).values():
        logs = np.log(values)
        # Launches that differ by more do other work under one name.
        if len(values) >= 6 and logs.std(ddof=1) < 0.09:
            changes = [float(y - x) for x in logs for y in logs if x is not y]
            found += [(changes, _tail(float(np.median(values)), model, ""))] * len(values)
    return found


def unsteady() -> Table:
    """The table of simulated processes whose launches depend on one another."""
    draw = np.random.default_rng(27)
    ticks = np.arange(12)

    def autoregression(by: float) -> Callable[[], list[float]]:
        def series() -> list[float]:
            values = [draw.normal()]
            for _ in range(11):
                values.append(by * values[-1] + draw.normal() * math.sqrt(1 - by * by))
            return values

        return series

    def modes(stays: float) -> Callable[[], list[float]]:
        def series() -> list[float]:
            level = draw.random() < 0.5
            found = []
            for _ in range(12):
                level = level if draw.random() < stays else not level
                found.append(3 * level + 0.3 * draw.normal())
            return found

        return series

    kinds: dict[str, Callable[[], Sequence[float]]] = {
        "independent launches": lambda: draw.normal(size=12),
        "neighbours alike, correlation 0.5": autoregression(0.5),
        "correlation 0.7": autoregression(0.7),
        "correlation 0.9": autoregression(0.9),
        "a drift, another in each process": lambda: (
            2 * draw.normal() * ticks / 11 + 0.3 * draw.normal(size=12)
        ),
        "two modes, changing at every launch by chance": modes(0.5),
        "two modes, changing at one of five": modes(0.8),
        "two modes, changing at one of ten": modes(0.9),
    }
    model = learn(recorded().values())
    rows = []
    for name, make in kinds.items():
        flags = []
        for _ in range(1000):
            sides = [Batch.of_times([2e5 * math.exp(0.005 * value) for value in make()]) for _ in range(2)]
            judged = judge([estimate(sides[:1], sides[1:], model.of(2e5))])[0]
            flags.append(judged.verdict in ("slower", "faster"))
        rows.append((name, _share(flags)))
    return "12 launches a side, nothing changed | false alarms>", rows


def elsewhere() -> Table:
    """The table of a card of another model, of which nothing was learnt, with what the other kernels teach there."""
    sides = {
        name: load_side([DATA / "h100" / f"{name}.ncu-rep.xz"]) for name in ("base_0", "base_1", "more_020_0")
    }
    rows = []
    for launches in (12, 3, 1):
        flags = {
            (name, clocks): list(_found_between(sides["base_0"], sides[name], launches, clocks))
            for name, clocks in (("base_1", True), ("base_1", False), ("more_020_0", True))
        }
        rows.append((launches, *map(_share, flags.values())))
    return "launches a side> | false alarms, by times and clocks> | by times alone> | 2 % more, found>", rows


def _found_between(before: Side, after: Side, launches: int, clocks: bool) -> Iterator[bool]:
    """Which kernels are called changed, each alone, without a look at their code and counters."""
    draw = random.Random(launches)
    for _ in range(1 if launches == 12 else 10):
        for pair in match(_drawn(before, launches, clocks, draw), _drawn(after, launches, clocks, draw)):
            yield compare_matches([pair]).count("slower", "faster") > 0


def _drawn(side: Side, launches: int, clocks: bool, draw: random.Random) -> Side:
    records = []
    for record in side.kernels:
        (times,) = record.times
        positions = [times.positions[at] for at in sorted(draw.sample(range(12), launches))]
        kept = times.only(positions)
        kept = kept if clocks else replace(kept, cycles=(), sm_hz=(), memory_hz=())
        records.append(replace(record, code=None, metrics={}, place=None, launches=launches, times=(kept,)))
    return replace(side, kernels=tuple(records))


TABLES = {
    "elsewhere": elsewhere,
    "classes": classes,
    "false alarms": false_alarms,
    "detection": detection,
    "other rules": other_rules,
    "single launches": single_launches,
    "unsteady": unsteady,
    "two cards": two_cards,
}


def with_tables(text: str) -> str:
    """The document with all its tables made again."""
    for name, made in TABLES.items():
        head, rows, *below = made()
        text = with_block(text, name, "\n".join([*table_of(head, rows), *below]))
    return text


def main() -> int:
    """Write, or with --check compare."""
    parser = options_of(__doc__)
    parser.add_argument("--check", action="store_true")
    kept = "keep what was recorded, first"
    parser.add_argument("--pack", type=Path, nargs="+", metavar="FOLDER", help=kept)
    options = parser.parse_args()
    if options.pack:
        pack(options.pack)
    contents = {CLASSES: source_of_classes(), DOCUMENT: with_tables(DOCUMENT.read_text("utf-8"))}
    return written(contents, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
