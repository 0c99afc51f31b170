#!/usr/bin/env python3
"""Learn from the recorded collections how much kernels differ from run to run, and measure how often the verdicts err.

Reads tests/data/noise, writes analysis/comparison/noise_classes.py and the tables of docs/comparison.md. The verdicts
on a kernel are counted with classes that were learnt without that kernel. ``--check`` writes nothing and exits with 1
if a file is out of date.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import lzma
import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmprof.analysis.comparison.distributions import clipped_squares, location, location_variance
from gemmprof.analysis.comparison.judgement import Batch, Judgement, estimate, judge
from gemmprof.analysis.comparison.noise import NoiseModel, limit_of

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "noise"
CLASSES = ROOT / "analysis" / "comparison" / "noise_classes.py"
DOCUMENT = ROOT / "docs" / "comparison.md"

DURATIONS = (20e3, 200e3, 2e6, math.inf)
"""Upper ends of the classes, in ns."""
FEWEST = 4
"""A class by limit needs this many kernels."""
FREEDOM, BETWEEN_FREEDOM = 2.0, 8.0
"""Chosen on the collections of the first card; those of the second were made afterwards."""
STEP = 32.0
"""Nanoseconds: durations on the recorded GPU are multiples of this."""
WORK = (10, 20, 50, 100)

Kernel = tuple[str, str]


@dataclass(frozen=True)
class Recorded:
    """The times and instruction counts of one kernel by collection, and what limits it."""

    times: dict[str, tuple[float, ...]]
    instructions: dict[str, frozenset[str]]
    limit: str


@cache
def leases() -> dict[str, str]:
    """Collection to the machine that it was made on: two of them, with two cards of one model."""
    with lzma.open(DATA / "launches.csv.xz", "rt") as file:
        return {row["collection"]: row["lease"] for row in csv.DictReader(file)}


def like(first: str, second: str) -> bool:
    """True if two collections did the same work on the same card."""
    kinds = {re.sub(r"_\d$", "", name) for name in (first, second)}
    # All timed runs are from one card.
    return len(kinds) == 1 and leases().get(first) == leases().get(second)


def same_work(names: Iterable[str]) -> list[list[str]]:
    """The collections in groups that did the same work on the same card."""
    groups: list[list[str]] = []
    for name in names:
        group = next((group for group in groups if like(group[0], name)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


@cache
def recorded() -> dict[Kernel, Recorded]:
    """The launches under ncu, kernel by kernel."""
    times: dict[Kernel, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    counts: dict[Kernel, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    limits: dict[Kernel, str] = {}
    with lzma.open(DATA / "launches.csv.xz", "rt") as file:
        for row in csv.DictReader(file):
            kernel = (row["kernel"], row["grid"])
            if row["compute_percent"]:
                limits[kernel] = limit_of(float(row["compute_percent"]), float(row["memory_percent"]))
            if not row["collection"].startswith(("code", "limits")):
                times[kernel][row["collection"]].append(float(row["ns"]))
                counts[kernel][row["collection"]].add(row["instructions"])
    return {
        kernel: Recorded(
            {name: tuple(values) for name, values in found.items()},
            {name: frozenset(values) for name, values in counts[kernel].items()},
            limits.get(kernel, ""),
        )
        for kernel, found in times.items()
    }


@cache
def timed() -> dict[Kernel, Recorded]:
    """The same kernels timed with CUDA events, without the profiler."""
    times: dict[Kernel, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with lzma.open(DATA / "timings.csv.xz", "rt") as file:
        for row in csv.DictReader(file):
            if not row["collection"].startswith("timed_more"):
                times[row["kernel"], ""][row["collection"]].append(1e6 * float(row["milliseconds"]))
    return {
        kernel: Recorded({name: tuple(values) for name, values in found.items()}, {}, "")
        for kernel, found in times.items()
    }


def learn(kernels: Iterable[Recorded]) -> NoiseModel:
    """Classes and the differences of whole processes, from these kernels alone."""
    members: dict[tuple[float, str], list[float]] = defaultdict(list)
    groups: list[tuple[float, float, int, int]] = []
    for kernel in kernels:
        squares, freedom = 0.0, 0
        centres = []
        for names in same_work(kernel.times):
            of_group = []
            for name in names:
                logs = [math.log(time) for time in kernel.times[name]]
                centre = location(logs)
                squares += clipped_squares(logs, centre)
                freedom += len(logs) - 1
                of_group.append(centre)
            centres.append(of_group)
        variance = squares / freedom
        duration = math.exp(centres[0][0])
        end = next(end for end in DURATIONS if duration <= end)
        for limit in {kernel.limit, ""}:
            members[end, limit].append(variance)
        apart = [sum((value - sum(group) / len(group)) ** 2 for value in group) for group in centres]
        launches = len(next(iter(kernel.times.values())))
        groups.append((variance, sum(apart), sum(len(group) - 1 for group in centres), launches))
    floor, share = _between(groups)
    return NoiseModel(
        "",
        {
            key: (math.sqrt(sum(found) / len(found)), len(found))
            for key, found in sorted(members.items())
            if len(found) >= FEWEST or not key[1]
        },
        FREEDOM,
        floor,
        share,
        BETWEEN_FREEDOM,
    )


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
    """The generated module."""
    under_ncu, events = recorded(), timed()
    return f'''"""What is usual noise, by class of kernel. Generated by tools/learn_noise.py from tests/data/noise."""

import math

from gemmprof.analysis.comparison.noise import NoiseModel

{_source("UNDER_NCU", under_ncu, "on two NVIDIA H200, clocks not fixed")}
"""Durations that ncu measured."""

{_source("TIMED", events, "on an NVIDIA H200, CUDA events, L2 flushed before each repetition")}
"""Times measured without the profiler."""
'''


def _source(name: str, kernels: dict[Kernel, Recorded], where: str) -> str:
    model = learn(kernels.values())
    collections_ = {collection for kernel in kernels.values() for collection in kernel.times}
    rows = "\n".join(
        f'        ({"math.inf" if math.isinf(end) else f"{end:.0f}.0"}, "{limit}"): ({within:.5f}, {count}),'
        for (end, limit), (within, count) in model.within.items()
    )
    return f'''{name} = NoiseModel(
    source="{len(kernels)} kernels in {len(collections_)} collections {where}",
    within={{
{rows}
    }},
    freedom={model.freedom},
    between_floor={model.between_floor:.5f},
    between_share={model.between_share:.3f},
    between_freedom={model.between_freedom},
)'''


# How often the verdicts err


@dataclass(frozen=True)
class Trial:
    """One kernel of one comparison, and what was found."""

    kernel: Kernel
    judgement: Judgement
    noise: float


@cache
def model_without(kernel: Kernel) -> NoiseModel:
    """What the other kernels teach."""
    return learn(found for name, found in recorded().items() if name != kernel)


def compare(pairs: dict[Kernel, tuple[Sequence[float], Sequence[float]]]) -> list[Trial]:
    """One comparison of all these kernels, each judged by what the others teach."""
    estimates, noises = [], []
    for kernel, sides in pairs.items():
        before, after = (Batch.of_times(side, STEP) for side in sides)
        noise = model_without(kernel).of(math.exp(before.centre), recorded()[kernel].limit)
        estimates.append(estimate([before], [after], noise))
        noises.append(own_noise(kernel))
    return [
        Trial(kernel, verdict, noise)
        for kernel, verdict, noise in zip(pairs, judge(estimates), noises, strict=True)
    ]


@cache
def own_noise(kernel: Kernel) -> float:
    """Standard deviation of a kernel's launches within one process, over all collections of it as it is."""
    logs = [
        [math.log(t) for t in times]
        for name, times in recorded()[kernel].times.items()
        if name.startswith("base")
    ]
    squares = sum(clipped_squares(values, location(values)) for values in logs)
    return math.sqrt(squares / sum(len(values) - 1 for values in logs))


def trials(pairs: Iterable[tuple[str, str]], launches: int, *, alone: bool = False) -> list[Trial]:
    """All kernels of these pairs of collections, with this many launches a side.

    With fewer than twelve, the launches are drawn at random (seeded), four times a pair. ``alone``: each kernel is a
    comparison of its own, so that nothing is corrected for the number of kernels.
    """
    found: list[Trial] = []
    for a, b in pairs:
        draw = random.Random(f"{a} {b} {launches}")
        for _ in range(1 if launches == 12 else 4):
            sides = {}
            for kernel, held in recorded().items():
                chosen = [sorted(draw.sample(range(12), launches)) for _ in (a, b)]
                sides[kernel] = tuple(
                    [held.times[name][index] for index in indexes]
                    for name, indexes in zip((a, b), chosen, strict=True)
                )
            if alone:
                found += [trial for kernel, side in sides.items() for trial in compare({kernel: side})]
            else:
                found += compare(sides)
    return found


def collections() -> list[str]:
    """All collections, in order of name."""
    return sorted({name for kernel in recorded().values() for name in kernel.times})


def self_pairs() -> list[tuple[str, str]]:
    """Pairs of collections that did the same work on the same card."""
    return [pair for pair in itertools.combinations(collections(), 2) if like(*pair)]


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
    """What all collections together say of a variant: the mean over collections of one card, 0.02 for 2 %."""
    held = recorded()[kernel].times
    sides = [
        [location([math.log(time) for time in held[name]]) for name in names]
        for names in map(set, zip(*changed_pairs(per_thousand), strict=True))
    ]
    before, after = (sum(side) / len(side) for side in sides)
    return math.expm1(after - before)


def rate(found: Sequence[Trial], *verdicts: str) -> str:
    """How many of the trials ended so: ``3 of 350 (0.9 %)``."""
    hits = sum(trial.judgement.verdict in verdicts for trial in found)
    return f"{hits} of {len(found)} ({100 * hits / len(found):.1f} %)"


def false_alarms() -> str:
    """The table of comparisons of a thing with itself."""
    rows = [
        "| launches a side | 35 kernels compared as a whole | each kernel compared alone | SAME, as a whole |",
        "|---:|---:|---:|---:|",
    ]
    for launches in (12, 3, 1):
        whole, single = (trials(self_pairs(), launches, alone=alone) for alone in (False, True))
        rows.append(
            f"| {launches} | {rate(whole, 'slower', 'faster')} | {rate(single, 'slower', 'faster')} | "
            f"{rate(whole, 'same')} |"
        )
    return "\n".join(rows)


def detection() -> str:
    """The table of changes that were there."""
    rows = [
        "| more work | launches a side | SLOWER, of all kernels with noise below 1 % | of those as much longer "
        "| CAN'T TELL | SAME |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for work in WORK:
        for launches in (12, 3):
            steady = [trial for trial in trials(changed_pairs(work), launches) if trial.noise < 0.01]
            risen = [trial for trial in steady if true_change(trial.kernel, work) >= 0.9 * work / 1000]
            rows.append(
                f"| {work / 10:g} % | {launches} | {rate(steady, 'slower')} | {rate(risen, 'slower')} | "
                f"{rate(steady, 'unclear')} | {rate(steady, 'same')} |"
            )
    return "\n".join(rows)


def two_cards() -> str:
    """The table of comparisons between two cards of one model."""
    rows = ["| launches a side | by times alone | with code and counters looked at |", "|---:|---:|---:|"]
    for launches in (12, 3):
        found = trials(card_pairs(), launches)
        changed = [trial for trial in found if trial.judgement.verdict in ("slower", "faster")]
        red = [trial for trial in changed if not same_counters(trial.kernel)]
        rows.append(f"| {launches} | {rate(found, 'slower', 'faster')} | {len(red)} of {len(found)} |")
    return "\n".join(rows)


def same_counters(kernel: Kernel) -> bool:
    """Whether the kernel as it is executed the same number of instructions in every launch of every collection."""
    held = recorded()[kernel].instructions
    return len(frozenset().union(*(counts for name, counts in held.items() if name.startswith("base")))) == 1


def classes() -> str:
    """The table of the classes."""
    model = learn(recorded().values())
    rows = ["| kernels | how many | spread of launches |", "|---|---:|---:|"]
    for (end, limit), (within, count) in model.within.items():
        name = model.of(min(end, 1e12), limit).name
        rows.append(f"| {name} | {count} | {100 * within:.2f} % |")
    rows.append("")
    rows.append(
        f"Whole processes differ by {100 * model.between_floor:.2f} % and, on top, by {model.between_share:.2f} "
        "times the spread of their launches (standard deviations)."
    )
    return "\n".join(rows)


TABLES = {"classes": classes, "false alarms": false_alarms, "detection": detection, "two cards": two_cards}


def with_tables(text: str) -> str:
    """The document with all its tables made again."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: generated by tools/learn_noise.py -->", f"<!-- /{name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{DOCUMENT} has no block named {name}")
        content = f"{begin}\n{table()}\n{end}"
        text = pattern.sub(lambda _, content=content: content, text)
    return text


def main() -> int:
    """Write, or with --check compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = 0
    for file, content in (
        (CLASSES, source_of_classes()),
        (DOCUMENT, with_tables(DOCUMENT.read_text(encoding="utf-8"))),
    ):
        if file.exists() and file.read_text(encoding="utf-8") == content:
            continue
        stale += 1
        print(f"{file.relative_to(ROOT)} is {'out of date' if check else 'written'}", file=sys.stderr)
        if not check:
            file.write_text(content, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
