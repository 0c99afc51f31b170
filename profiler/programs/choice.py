"""Which launches of a counted program to profile, what that costs, and the ncu filter that means just these.

A quick first run under ncu measures nothing but the duration of every launch. From it one launch of each kernel and
launch configuration (grid, block, dynamic shared memory) is chosen, those that take most of the program's time first.

ncu counts the invocations of a kernel for each launch configuration by itself (``--filter-mode per-launch-config``),
so a list of mangled names and a list of invocation numbers say which launches are meant. Where several numbers are
needed, a kernel may be profiled once for each: `Choice.launches` counts these too.

Each process of a program counts its own: profiled with the number 1 under torchrun, every kernel stood in the report
once for each of two ranks, with gloo and with NCCL (`tests/data/processes`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

COMMUNICATION = r"nccl|nvshmem"  # kernels that wait for other GPUs', for ever if ncu runs one alone
NEAR_LONGEST = 0.5  # a launch of this share of its kernel's longest stands for it as well as the longest
MINOR = 0.01  # of a kernel with less than this share of the time any launch will do
LONGEST_FILTER = 100_000  # characters of one argument that Linux passes on (MAX_ARG_STRLEN is 131,072)


# What a launch costs under ncu, by its set: seconds, and how often its own time is spent; on an H100 and an H200. The
# kernel's own time is spent once a pass, and several times over in instrumented passes; the fixed part is saving and
# restoring memory, and reading counters. Eight programs took 0.8 to 1.2 times what this says for the lean set; the
# others are rough.
LEAN_COST = 1.2, 100.0
SET_COSTS = {"basic": (0.2, 15.0), "detailed": (0.8, 60.0), "full": (1.6, 120.0), "roofline": (0.6, 40.0)}


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as the count saw it. ``key`` is what ncu counts invocations by; ``duration`` is in nanoseconds."""

    name: str
    mangled_name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_memory: int
    duration: float
    wanted: bool = True  # whether the user's selection means it
    process: int | None = None
    """Which of several processes launched it: ncu counts the invocations of each by itself."""

    @property
    def key(self) -> tuple[object, ...]:
        """Kernel and launch configuration."""
        return (self.mangled_name, self.grid, self.block, self.shared_memory)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to profile."""

    names: tuple[str, ...]  # mangled names of the kernels, most expensive first
    invocations: tuple[int, ...]  # which of each, counted from 1 for each launch configuration
    kernels: int  # kernels and launch configurations that are chosen
    launches: int  # launches that ncu will profile
    share: float  # of the GPU time that the user's selection holds, the part of the chosen kernels (0 to 1)
    left_out: int  # kernels and launch configurations that the limit left out
    duration: float  # nanoseconds that the profiled launches took in the count

    @property
    def filters(self) -> tuple[str, ...]:
        """The ncu options that choose the launches."""
        return launch_filter(self.names, self.invocations)

    def seconds(self, program: float, repeat: int = 1, metric_set: str = "lean") -> float:
        """What profiling them should take; ``program`` is what the counted run of the program took, in seconds."""
        fixed, times = SET_COSTS.get(metric_set, LEAN_COST)
        return repeat * (program + self.launches * fixed + times * 1e-9 * self.duration)


ALL_KERNELS = f"regex:^(?!.*({COMMUNICATION}))"  # every kernel but those of communication, as ncu writes it


def launch_filter(names: Iterable[str] = (), invocations: Iterable[int] = (1,)) -> tuple[str, ...]:
    """ncu's options for these invocations of the kernels with these mangled names (none: of all but communication)."""
    listed = "|".join(re.escape(name) for name in names)
    kernel = f"regex:^({listed})$" if listed else ALL_KERNELS
    numbers = "|".join(map(str, invocations))
    return (
        *("--filter-mode", "per-launch-config"),
        *("--kernel-name-base", "mangled"),
        *("--kernel-id", f"::{kernel}:^({numbers})$"),
    )


def choose(launches: Sequence[Launch], *, limit: int, every: bool = False) -> Choice:
    """One launch (``every``: all) of each wanted kernel and launch configuration, the most expensive up to a limit."""
    counts: Counter[tuple[tuple[object, ...], int | None]] = Counter()
    numbered: dict[tuple[object, ...], list[tuple[int, Launch]]] = {}
    for launch in launches:
        counts[launch.key, launch.process] += 1
        numbered.setdefault(launch.key, []).append((counts[launch.key, launch.process], launch))
    wanted = {key: many for key, many in numbered.items() if any(one.wanted for _, one in many)}
    total = {key: sum(one.duration for _, one in many if one.wanted) for key, many in wanted.items()}
    ranked = sorted(wanted, key=lambda key: total[key], reverse=True)
    kept, listed, length = [], set(), 0  # as many of the first as fit into one argument of a command line
    for key in ranked[:limit]:
        if key[0] not in listed:
            listed.add(key[0])
            length += len(re.escape(str(key[0]))) + 1
        if length > LONGEST_FILTER:
            break
        kept.append(key)
    everything = sum(total.values())
    suitable = {}  # the launches that stand for a kernel: wanted, and of one that matters not short
    for key in kept:
        near = 0.0 if every or total[key] < MINOR * everything else NEAR_LONGEST
        meant = [(number, launch.duration) for number, launch in wanted[key] if launch.wanted]
        longest = max(duration for _, duration in meant)
        suitable[key] = {number for number, duration in meant if duration >= near * longest}
    names = {str(key[0]) for key in kept}
    lengths = [length for (key, _), length in counts.items() if key[0] in names]
    invocations = sorted(set().union(*suitable.values())) if every else _covering(suitable, lengths)
    # What the filter means: these invocations of every launch configuration of the named kernels.
    named = [member for key, members in numbered.items() if key[0] in names for member in members]
    profiled = [launch for number, launch in named if number in invocations]
    return Choice(
        names=tuple(dict.fromkeys(str(key[0]) for key in kept)),
        invocations=tuple(invocations),
        kernels=len(kept),
        launches=len(profiled),
        share=sum(total[key] for key in kept) / everything if everything else 1.0,
        left_out=len(ranked) - len(kept),
        duration=sum(launch.duration for launch in profiled),
    )


def _covering(suitable: dict[tuple[object, ...], set[int]], lengths: Sequence[int]) -> list[int]:
    """A few invocation numbers of which each kernel has a suitable one, and which mean few launches.

    Greedily: the number that serves most kernels, and of several the one because of which ncu profiles fewest launches
    (by the number of launches of every configuration of the named kernels).
    """
    waiting = list(suitable.values())
    chosen = []
    while waiting:
        served = Counter(number for numbers in waiting for number in numbers)
        best = min(served, key=lambda number: (-served[number], sum(length >= number for length in lengths)))
        chosen.append(best)
        waiting = [numbers for numbers in waiting if best not in numbers]
    return sorted(chosen)
