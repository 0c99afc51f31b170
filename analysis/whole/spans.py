"""Where a program's time goes: by whose code it is, by NVTX range, by operator. Sums of launches, nothing predicted.

Times are Nsight Compute's, launch by launch; what passes between launches is in no report (`traces` reads it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from gemmprof import metrics
from gemmprof.analysis.explanation.demands.resources import busiest_sm
from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.model import KernelProfile

# Levels of the tree; programs that name more nest without end.
DEEPEST = 12
# What autograd's profiler appends to an operator's name, other for each launch.
_SEQUENCE = re.compile(r",? (?:seq|op_id|sizes|input_op_ids) = .*$")
_OPERATOR = re.compile(r"^(?:aten|c10d|torch_\w+|xformers\w*|flash_attn\w*|triton|\w+)::\w+|^\w+Backward\d*$")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a program's time."""

    name: str  # what it is; of ranges and operators untrusted text
    time_ns: float  # of its launches, under the profiler
    share: float  # of the program's time, 0 to 1
    members: tuple[int, ...] = field(repr=False)  # positions of its launches in ``session.kernels``
    # time in which no multiprocessor works, before the first and behind the last instruction of each launch; None
    # where the cycles were not collected
    launching_ns: float | None = None
    path: tuple[str, ...] = ()  # the NVTX ranges down to this one, outermost first; () of another part
    # the ranges inside, most time first; with `BESIDE` for launches in none of them
    children: tuple[Span, ...] = field(default=(), repr=False)

    @property
    def launches(self) -> int:
        """How many."""
        return len(self.members)

    @property
    def launching(self) -> float | None:
        """Share of its time in which no multiprocessor works; None where that is not known."""
        return None if self.launching_ns is None or not self.time_ns else self.launching_ns / self.time_ns


BESIDE = "in no range of its own"


def idle_share(profile: KernelProfile) -> float | None:
    """Share of a launch's cycles in which no multiprocessor works, 0 to 1; None where that was not collected."""
    elapsed = profile.number(metrics.SM_ELAPSED_CYCLES_MAX) or profile.number(metrics.ELAPSED_CYCLES)
    active = busiest_sm(profile)
    if not elapsed or active is None:
        return None
    return min(1.0, max(0.0, 1.0 - active / elapsed))


class Sums:
    """The launches of a program with what is added up of them."""

    def __init__(self, profiles: Sequence[KernelProfile]) -> None:
        self.profiles = profiles
        self.times = [profile.number(metrics.DURATION) or 0.0 for profile in profiles]
        self.total = sum(self.times)
        self.idle = [idle_share(profile) for profile in profiles]

    def span(self, name: str, members: Iterable[int], path: tuple[str, ...] = ()) -> Span:
        """These launches as one part."""
        chosen = tuple(members)
        time = sum(self.times[at] for at in chosen)
        known = [self.times[at] * share for at in chosen if (share := self.idle[at]) is not None]
        launching = sum(known) if len(known) == len(chosen) else None
        return Span(name, time, time / self.total if self.total else 0.0, chosen, launching, path)

    def by(self, key: Callable[[int], str]) -> tuple[Span, ...]:
        """The launches by what ``key`` says of each position, most time first."""
        found = grouped((key(at), at) for at in range(len(self.profiles)))
        return largest_first(self.span(name, group) for name, group in found.items())

    def tree(self) -> Span:
        """The NVTX ranges, with the whole program as the root; its children are empty where there are no ranges."""
        return self._below("", range(len(self.profiles)), ())

    def _below(self, name: str, members: Sequence[int], path: tuple[str, ...]) -> Span:
        # The range below this one that each launch is in, '' for none.
        inside = grouped(("".join(ranges_of(self.profiles[at])[len(path) :][:1]), at) for at in members)
        here = self.span(name, members, path)
        if len(path) == DEEPEST or set(inside) == {""}:
            return here
        children = [self._below(word, group, (*path, word)) for word, group in inside.items() if word]
        if "" in inside:
            children.append(self.span(BESIDE, inside[""], path))
        return replace(here, children=largest_first(children))


def largest_first(found: Iterable[Span]) -> tuple[Span, ...]:
    """Most time first, then by name."""
    return tuple(sorted(found, key=lambda span: (-span.time_ns, span.name)))


def walk(root: Span, depth: int = 0) -> Iterator[tuple[int, Span]]:
    """Every range below the root with its depth, as a reader meets them."""
    for child in root.children:
        yield depth, child
        yield from walk(child, depth + 1)


@lru_cache(maxsize=4096)
def plain_range(name: str) -> str:
    """A range's name without the numbers that autograd's profiler gives each call."""
    return _SEQUENCE.sub("", name).strip() or name


def ranges_of(profile: KernelProfile) -> tuple[str, ...]:
    """The NVTX ranges around a launch as they repeat, outermost first."""
    return tuple(map(plain_range, profile.nvtx))


def operator_of(profile: KernelProfile) -> str:
    """The innermost operator of torch that an NVTX range names (`emit_nvtx`), '' without one."""
    return next((name for name in reversed(ranges_of(profile)) if _OPERATOR.match(name)), "")


# What kernels do, by words of their names; the first that fits. Of torch's, cuBLAS's and cuDNN's kernels they are the
# libraries' own words; of anybody else's a guess, which nothing but a heading rests on.
_WORDS = grouped((kind, word) for kind, word in facts(__file__, "kinds.csv"))
_KINDS = {kind: re.compile("|".join(words)) for kind, words in _WORDS.items()}
OTHER = "other"


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """What a kernel does, inferred from its name."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), OTHER)
