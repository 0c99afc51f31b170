"""What neighbouring results are made of alike: a thread that computes several of them computes that once.

Each value of some threads in some rounds of the loops (an axis each, the outermost first; of 1 where all have one) has
a label: of what is loaded its place, of all else what computes it and the labels of what that reads. What has one label
is one value. What a loop hands on from round to round is each thread's own, and so is all that is made of it: that
needs no labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from gemmprof.analysis.explanation.code.address_forms import checked_forms, values_of
from gemmprof.analysis.explanation.code.flow import EXCHANGES, Loop
from gemmprof.analysis.explanation.code.symbolic import Threads, Value
from gemmprof.analysis.explanation.demands.distinct import deciding
from gemmprof.analysis.explanation.demands.footprint import (
    FEW,
    LOADED_AGAIN,
    MOST_ROUNDS,
    OUTPUTS,
    STRETCH,
    Labels,
    Walked,
    label,
    mixed,
    neighbours,
    numbers_in,
    own_block,
    rounds,
)
from gemmprof.analysis.explanation.demands.work import Array, Work, once
from gemmprof.analysis.opcodes import Sass

ALL_ROUNDS = 256  # that are followed, of all loops around an instruction
EDGE_WAYS = 0.1  # executions of a way, for each of another's, up to which it is an edge's
REGISTER = re.compile(r"(?<![\w.])U?[RP]\d+")


@once
def once_for_all(work: Work, rows: Sequence[int], axis: str) -> Array:
    """Share of the executions of each instruction that stays where a thread computes `OUTPUTS` neighbours' results
    along an axis, and what several of them compute once. The places of these loads are known.
    """
    keep, points = work.all_kept(), neighbours(work, axis)
    if points is None:
        return keep
    found = _Neighbours(work, rows, *points).found
    several = {at: labels for at, labels in found.items() if labels is not None}
    if several:
        flat = (
            np.broadcast_to(one.reshape(len(one), -1), (len(points[1]), one[0].size))
            for one in several.values()
        )
        keep[list(several)] = _shares([one.reshape(-1, OUTPUTS, one.shape[1]) for one in flat])
    turns = work.ran & work.where(lambda line: line.is_branch and bool(line.guard))
    for at in np.flatnonzero(turns).tolist():
        keep[at] = keep[list(work.code.sources(at))].max(initial=0.0) or 1.0
    return keep


@once
def once_in_all_rounds(work: Work, rows: Sequence[int]) -> tuple[Array, float]:
    """Share of the executions of each instruction that stays where a thread keeps what the rounds of its outermost loop
    come to again (a window that moves on), and how many values it holds for that. The places of these loads are known.

    What one round comes to twice it does again: that lies in another lane's place, or nobody knew that it is the same.
    """
    keep, launch = work.all_kept(), work.profile.launch
    threads = np.arange(0, launch.threads_per_block, -(-launch.threads_per_block // FEW))
    blocks = np.broadcast_to(own_block(launch.grid), (3, len(threads)))
    found = _Neighbours(work, rows, blocks, threads)
    several = [at for at, labels in found.found.items() if labels is not None and work.code.loops_around[at]]
    if several:
        keep[several] = _shares([found.in_each_round(at) for at in several])
    handed = (at for at in several if any(keep[use] > LOADED_AGAIN for use in work.code.readers[at]))
    return keep, float(sum((1.0 - keep[at]) * len(work.sass[at].writes) for at in handed))


def _shares(labels: Sequence[Labels]) -> list[float]:
    """Of each instruction's values (groups x those in them x values) the share that stays, where each label of a group
    is made once.
    """
    salt = mixed(label("group"), np.arange(len(labels[0]), dtype=np.uint64))[:, None, None]
    every = np.concatenate([(one ^ salt).ravel() for one in labels])
    # Sorted once: looking each of millions of labels up in all of them takes ten times as long.
    order = np.argsort(every)
    first = np.flatnonzero(np.diff(every[order], prepend=~every[order[:1]]))
    bits = np.uint64(1) << np.arange(max(one.shape[1] for one in labels), dtype=np.uint64)
    whose = [np.broadcast_to(bits[: one.shape[1], None], one.shape).ravel() for one in labels]
    made = np.bitwise_or.reduceat(np.concatenate(whose)[order], first)
    often = np.unpackbits(made.view(np.uint8).reshape(-1, made.itemsize), axis=1).sum(axis=1)
    part = np.empty(len(every))
    part[order] = np.repeat(1.0 / often, np.diff(first, append=len(every)))
    ends = np.cumsum([one.size for one in labels])
    return [float(one.mean()) for one in np.split(part, ends[:-1])]


@lru_cache(maxsize=65536)
def _signature(line: Sass) -> Labels:
    """What an instruction does with the registers that it reads, by their order."""
    results = 1 + sum((one in line.writes and one[0] == "P") or one == "PT" for one in line.operands[1:2])
    names: dict[str, str] = {}
    read = ", ".join(line.operands[results:])
    return label((line.full, REGISTER.sub(lambda one: names.setdefault(one[0], f"r{len(names)}"), read)))


def _holds_numbers(register: str) -> bool:
    return register[-2] != "P"


def _copies(line: Sass) -> bool:
    """Whether its result is what it reads: half of a register whose other half nobody reads is as good as all of it."""
    half = line.opcode == "PRMT" and line.operands[2] == "0x7610"
    return not line.guard and (half or line.opcode == "MOV" or "MOV" in line.modifiers)


def _together(*labels: Labels | None) -> Labels | None:
    """Of what is made of several values: a thread's own where one of them is."""
    known = [one for one in labels if one is not None]
    return mixed(*known) if len(known) == len(labels) else None


class _Neighbours:
    """The labels of what some threads compute, side by side in groups of `OUTPUTS`."""

    def __init__(self, work: Work, rows: Iterable[int], blocks: Threads, threads: Threads) -> None:
        code = self._code = work.code
        self._work, self._rows, self._blocks, self._threads = work, frozenset(rows), blocks, threads
        self._ran = np.flatnonzero(work.ran).tolist()
        self._turns = [at for at in self._ran if code.sass[at].is_branch and code.sass[at].guard]
        self._around = [tuple(reversed(loops)) for loops in code.loops_around]
        self._rounds: dict[Loop, int] = {}
        for loop in code.loops:  # the shortest first
            inner = (
                prod(self._rounds.get(one, 1) for one in code.loops_around[at])
                for at in range(loop.first, loop.last)
            )
            inside = max(inner, default=1)
            alone = inside == len(code.loops_around[loop.first]) == 1
            most = STRETCH if alone else min(MOST_ROUNDS, ALL_ROUNDS // inside)
            self._rounds[loop] = max(1, min(most, round(rounds(work, loop))))
        self._places: dict[Walked, Callable[[Value], Threads]] = {}
        called = (code.sass[first : last + 1] for first, last in code.functions if work.executed[first])
        self._called = {name for lines in called for line in lines for name in line.writes}
        self._within = {at for first, last in code.functions for at in range(first, last + 1)}
        self._stored: dict[Loop, set[str]] = {}
        self.found: dict[int, Labels | None] = {}  # None: each thread's own in each round
        for at in self._ran:
            if code.sass[at].writes:
                made, depth = self._of(at), 1 + len(self._around[at])
                self.found[at] = made if made is None or made.ndim == depth else made.reshape((1,) * depth)

    def in_each_round(self, at: int) -> Labels:
        """Of what is known: threads x rounds of the outermost loop around x those of the others."""
        labels, often = self.found[at], [self._rounds[loop] for loop in self._around[at]]
        assert labels is not None
        whole = len(self._threads), *often
        return np.broadcast_to(labels, whole).reshape(*whole[:2], -1)

    def _of(self, at: int) -> Labels | None:
        line, code = self._code.sass[at], self._code
        if at in self._rows:
            return mixed(label(line.full), self._numbers(at, checked_forms(self._work)[at].form.address))
        exchanged = line.opcode in EXCHANGES and "SRZ" not in line.text
        if exchanged or at in self._within or not (line.space in ("", "constant") or self._looks_up(at)):
            return None
        if not code.by_data[at] and _holds_numbers(line.writes[0]):
            return self._numbers(at, values_of(self._work).after(at, line.writes[0]))
        names = [name for name in line.reads if name != line.guard]
        if names and _copies(line):
            return self._read(at, names[0])
        if line.guard and code.by_data[list(code.producers(at, line.guard))].any():  # bounds tell of few
            names += [line.guard, line.writes[0]]
        return _together(_signature(line), *(self._read(at, name) for name in names))

    def _numbers(self, at: int, value: Value) -> Labels:
        walked = tuple((loop.first, self._rounds[loop]) for loop in self._around[at])
        if walked not in self._places:
            self._places[walked] = numbers_in(self._work, self._blocks, self._threads, walked)
        found = self._places[walked](value).reshape(len(self._threads), *(often for _, often in walked))
        loops = {loop for symbol in value.symbols for loop in symbol.loops}
        changing = tuple(slice(None) if first in loops else slice(1) for first, _ in walked)
        return found[:, *changing].astype(np.uint64)

    def _looks_up(self, at: int) -> bool:
        """Whether this loads where data say, and nothing is stored in the loop around it, perhaps where it loads."""
        line, loop = self._code.sass[at], self._code.loop_of(at)
        if not line.is_load or line.space not in ("global", "shared"):
            return False
        if loop is not None and loop not in self._stored:
            inside = (self._code.sass[one] for one in self._ran if one in loop)
            self._stored[loop] = {other.space for other in inside if not other.is_load}
        if loop is not None and line.space in self._stored[loop]:
            return False
        return any(self._code.by_data[one] for one in self._code.of_place(at))

    def _read(self, at: int, name: str) -> Labels | None:
        """Of what an instruction reads in a register; what a round hands on to the next is each thread's own."""
        code, ran = self._code, self._work.executed
        several = [one for one in code.producers(at, name) if ran[one]]
        if not several or name in self._called or any(one not in self.found for one in several):
            return None
        if len(several) == 1:
            return self._seen(several[0], at, name)
        # Ways that few take are edges.
        most = max(ran[one] for one in several)
        several = [one for one in several if ran[one] > EDGE_WAYS * most]
        labels = [self._seen(one, at, name) for one in several]
        if len(several) > 1:
            turns = (turn for turn in deciding(code, several, at, self._turns) if code.by_data[turn])
            made = {one for turn in turns for one in code.sources(turn) if one in self.found}
            labels += [self._seen(one, at) for one in sorted(made)]
        return _together(*labels)

    def _seen(self, source: int, at: int, name: str = "") -> Labels | None:
        """What an instruction sees of another's labels, in this register: of loops that are over the last round's."""
        found, mine, its = self.found[source], self._around[at], self._around[source]
        if found is None:
            return None
        if mine != its:
            found = np.asarray(found[:, *(slice(None) if loop in mine else -1 for loop in its)])
            for number, loop in enumerate(mine):
                if loop not in its:
                    found = np.expand_dims(found, 1 + number)
        words = [one for one in self._code.sass[source].writes if _holds_numbers(one)]
        return mixed(found, label(words.index(name))) if name in words[1:] else found
