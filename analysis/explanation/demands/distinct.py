"""How many of the values that an instruction computed were different: what is computed more often may be computed once.

A value differs between the threads of a block, between blocks along an axis of the grid, and between rounds of a loop
where something that it is made of does: thread and block numbers, what a round hands on to the next, and places that
loads read. As many different values as these leave apart are counted, of the launch's own shape and rounds.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import chain, takewhile
from math import prod
from operator import or_

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.explanation.code.address_forms import CLOSE, checked_forms, values_of
from gemmprof.analysis.explanation.code.flow import Loop, Program, reached
from gemmprof.analysis.explanation.demands.footprint import (
    AXES,
    Reuse,
    arrays,
    computing,
    own_places,
    rounds,
    serving,
    written,
)
from gemmprof.analysis.explanation.demands.work import (
    TENSOR_COPIES,
    Array,
    Mask,
    Work,
    indexed_constants,
    once,
)
from gemmprof.gpu.arch import WARP

Labels = npt.NDArray[np.int64]
"""A number for each thread of a block, the same for threads whose values are."""


@dataclass(slots=True)
class _Differs:
    """Between which executions a value differs: a class of threads by its number, axes and loops a bit each."""

    classes: int = 0
    axes: int = 0
    loops: int = 0


class _Classes:
    """Ways to part a block's threads, each with a number: 0 leaves all together."""

    def __init__(self, threads: int) -> None:
        self.labels: list[Labels] = [np.zeros(threads, dtype=np.int64)]
        self.counts = [1]
        self._numbers: dict[bytes, int] = {self.labels[0].tobytes(): 0}
        self._joined: dict[tuple[int, int], int] = {}
        self.apart = self.of(np.arange(threads))

    def of(self, values: Labels) -> int:
        """The way that tells these values apart."""
        different, first, labels = np.unique(values, return_index=True, return_inverse=True)
        # In the order in which they come, whatever the values are: one way has one number.
        labels = first.argsort().argsort()[labels].astype(np.int64)
        key = labels.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.labels)
            self.labels.append(labels)
            self.counts.append(len(different))
        return self._numbers[key]

    def of_warps(self) -> int:
        """The way that leaves the lanes of a warp together."""
        return self.of(np.arange(len(self.labels[0])) // WARP)

    def join(self, one: int, two: int) -> int:
        """The way that tells apart what either does."""
        if one == two or not two or one == self.apart:
            return one
        if not one or two == self.apart:
            return two
        key = min(one, two), max(one, two)
        if key not in self._joined:
            self._joined[key] = self.of(self.labels[one] * self.counts[two] + self.labels[two])
        return self._joined[key]

    def of_lanes(self, number: int, side_by_side: bool) -> float:
        """Threads of each lane that a way tells apart, of a warp that does all threads' work: of each ``WARP``-th, or
        of those side by side.
        """
        labels = self.labels[number]
        if len(labels) % WARP:
            return float(min(self.counts[number], -(-len(labels) // WARP)))
        mine = np.sort(labels.reshape(WARP, -1).T if side_by_side else labels.reshape(-1, WARP), axis=0)
        return float(1 + (mine[1:] != mine[:-1]).sum(axis=0).max())

    def alike(self, number: int) -> float:
        """Lanes side by side that a way leaves together, in all whole warps: a power of two."""
        labels = self.labels[number]
        whole = labels[: len(labels) - len(labels) % WARP].reshape(-1, WARP)
        lanes = WARP if len(whole) or not number else 1
        while lanes > 1:
            rows = whole.reshape(-1, WARP // lanes, lanes)
            if (rows == rows[:, :, :1]).all():
                break
            lanes //= 2
        return float(lanes)


@dataclass(frozen=True)
class Evaluations:
    """How often each instruction's result was another one."""

    # values over all threads of the launch, at most as many as threads executed it; as many where nobody knows
    different: Array
    # share of the executions that stays where it is computed before the loops around that do not change it
    hoisted: Array
    alike: Mask  # it is the same in all threads, if not in all rounds
    by_thread: Mask  # it may differ between the threads of a block
    # share of a thread's executions that are not those of a round of a loop that does not change it
    in_rounds: Array
    loops: list[int]  # in which it may differ between rounds, a bit each


@once
def evaluations(work: Work) -> Evaluations:
    """How many of the values that each instruction computed were different."""
    code, launch = work.code, work.profile.launch
    differs, classes = _differs(work)
    loops = {loop: (1 << number, rounds(work, loop)) for number, loop in enumerate(code.loops)}
    # Between two meetings of a block there is one round, which its threads have no other of to share out.
    in_step = sum(bit for at, (bit, _) in loops.items() if work.barriers[at.first : at.last + 1].any())
    several = sum(1 << axis for axis, size in enumerate(launch.grid) if size > 1)
    different, hoisted, in_rounds = work.threads.copy(), np.ones(len(code.sass)), np.ones(len(code.sass))
    ordered = code.in_order.tolist()

    @cache
    def of(way: int, axes: int, changing: int, in_order: bool, inside: tuple[Loop, ...]) -> tuple[float, ...]:
        """Different values, and shares that are hoisted and in rounds."""
        around = [(changing & bit, often) for bit, often in map(loops.__getitem__, inside)]
        shared_out = not in_order and any(bit & ~in_step for bit, _ in around)
        threads = classes.counts[way] if shared_out or several & ~axes else launch.threads_per_block
        sizes = [size for axis, size in enumerate(launch.grid) if axes >> axis & 1]
        return (
            float(threads * prod(sizes)) * prod([often for bit, often in around if bit]),
            1.0 / prod([often for _, often in takewhile(lambda each: not each[0], around)]),
            1.0 / prod([often for bit, often in around if not bit]),
        )

    for at in np.flatnonzero(work.executed > 0).tolist():
        one = differs[at]
        most, hoisted[at], in_rounds[at] = of(
            one.classes, one.axes, one.loops, ordered[at], code.loops_around[at]
        )
        different[at] = min(different[at], most)
    by_thread = np.array([bool(one.classes) for one in differs])
    alike = ~by_thread & np.array([not one.axes for one in differs])
    return Evaluations(different, hoisted, alike, by_thread, in_rounds, [one.loops for one in differs])


def stays(work: Work, sources: Iterable[int], loops: Sequence[Loop | None]) -> bool:
    """Whether what these instructions give is the same in all threads, or stays in each of these loops."""
    found = evaluations(work)
    return all(
        found.alike[at]
        or all(loop is not None and not found.loops[at] >> work.code.loops.index(loop) & 1 for loop in loops)
        for at in sources
    )


@once
def neighbours_alike(work: Work) -> Array:
    """How many neighbouring lanes have the same result of each instruction: a power of two, `WARP` for all of them."""
    differs, classes = _differs(work)
    lanes = {number: classes.alike(number) for number in {one.classes for one in differs}}
    return np.array([lanes[one.classes] for one in differs])


@once
def results_of_a_lane(work: Work, side_by_side: bool) -> Array:
    """How many results of each instruction a lane has where one warp does the work of a block: values of each 32nd
    thread, or of threads side by side.
    """
    differs, classes = _differs(work)
    lanes = {number: classes.of_lanes(number, side_by_side) for number in {one.classes for one in differs}}
    return np.array([lanes[one.classes] for one in differs])


@once
def own_of_warps(work: Work) -> Array:
    """Share of a block's warps whose results of each instruction differ: what all of them do alike one would do."""
    return np.minimum(1.0, results_of_a_lane(work, side_by_side=False) / work.warps_of_block)


@once
def shared_by_neighbours(work: Work) -> Array:
    """The same, of what a thread that does the work of several neighbours does once: a loop that these leave when their
    own data say so (a root that is near enough, the end of a list) it walks for each of them, and a way around that
    their data tell of it takes for each.
    """
    code, alike = work.code, neighbours_alike(work)
    data = work.ran & work.where(lambda line: line.instruction_class in FLOATS or line.fetches)
    # Of a word that all of them load each may look at other bits.
    data |= work.ran & code.by_data & work.where(lambda line: line.opcode in ("SHF", "LOP3"))
    turns = np.flatnonzero(work.ran & work.where(lambda line: line.is_branch and bool(line.guard))).tolist()
    found = alike.copy()
    leaving = ([at for at in turns if at in loop and _leaves(code, loop, at)] for loop in code.loops)
    parted = [(loop.first, loop.last, ends) for loop, ends in zip(code.loops, leaving, strict=True)]
    for first, last, ends in (*parted, *((first, last, [turn]) for first, last, turn in ways_around(work))):
        told = [at for at in code.made_of(ends) if data[at]]
        found[first : last + 1] = np.minimum(found[first : last + 1], alike[told].min(initial=WARP))
    return found


@once
def same_along(work: Work, axis: int) -> Mask:
    """Instructions whose results are the same in all blocks along this axis of the grid."""
    return np.array([not one.axes >> axis & 1 for one in _differs(work)[0]])


def same_by_axis(work: Work) -> list[Mask]:
    """The same for each axis along which the grid has several blocks; none of code that nobody saw."""
    axes = (axis for axis, blocks in enumerate(work.profile.launch.grid) if blocks > 1)
    return [same_along(work, axis) for axis in axes if work.program is not None]


@once
def _differs(work: Work) -> tuple[list[_Differs], _Classes]:
    """What each instruction's result differs by, and the classes of threads that this speaks of.

    What is shifted right or masked is alike in threads that differ in the lost bits alone; what is computed of several
    values, in those in which all of them are; what is loaded, where the addresses are.
    """
    code = work.code
    classes = _Classes(work.profile.launch.threads_per_block)
    unknown = _Differs(classes.apart, (1 << len(AXES)) - 1, (1 << len(code.loops)) - 1)
    found = [_Differs() for _ in code.sass]
    told: dict[int, int] = {}
    inputs: dict[int, set[int]] = {}
    executed = np.flatnonzero(work.executed > 0).tolist()
    ran = set(executed)
    stores = [
        at
        for at in executed
        if code.sass[at].opcode in COPIES or (code.sass[at].space == "shared" and not code.sass[at].is_load)
    ]
    turns = [at for at in executed if code.sass[at].is_branch and code.sass[at].guard]
    leaving = [
        [
            at
            for at in turns[bisect_left(turns, loop.first) : bisect_right(turns, loop.last)]
            if _leaves(code, loop, at)
        ]
        for loop in code.loops
    ]
    # Of what is read behind a loop in which it is made: where it is made, the loop's bit, and where threads leave it.
    counted: dict[int, list[tuple[int, int, list[int]]]] = {}
    for at in executed:
        own = _begins(work, at, classes)
        if own is None:
            found[at] = replace(unknown)
            continue
        found[at], known = own
        if known is not None:
            told[at] = known
        inputs[at] = set()
        for name in code.sass[at].reads:
            several = [one for one in _written_before(code, at, name) if one in ran]
            if not several and name[0] == "R":  # nobody knows what it holds
                found[at].classes, found[at].axes = unknown.classes, unknown.axes
            inputs[at].update(several)
            if len(several) > 1:
                inputs[at].update(deciding(code, several, at, turns))
            for one in several:
                found[at].loops |= _handed_on(work, one, at, name)
                if behind := code.loop_bits[one] & ~code.loop_bits[at]:
                    loops = ((1 << number, ends) for number, ends in enumerate(leaving))
                    counted.setdefault(at, []).extend((one, bit, ends) for bit, ends in loops if behind & bit)
    asking: dict[int, list[int]] = {}
    for at, sources in inputs.items():
        for one in sources.union(*(ends for *_, ends in counted.get(at, ()))):
            asking.setdefault(one, []).append(at)
    from_shared = {at for at in inputs if code.sass[at].space == "shared" and code.sass[at].is_load}
    stale, storing, shared = set(inputs), set(stores), reduce(or_, (found[at].axes for at in stores), 0)
    while stale:
        # What is made of nothing that has changed stays as it is.
        for at in (at for at in inputs if at in stale):
            mine = found[at]
            before = mine.classes, mine.axes, mine.loops
            # What a loop made that threads leave in different rounds differs by the round.
            rounds = [ends for one, bit, ends in counted.get(at, ()) if found[one].loops & bit]
            for one in chain(inputs[at], *rounds):
                other = found[one]
                if mine.classes != other.classes:
                    mine.classes = classes.join(mine.classes, other.classes)
                mine.axes |= other.axes
                mine.loops |= other.loops
            if shared & ~mine.axes and at in from_shared:
                # Blocks find alike what all of them store alike.
                # A store behind a load, and in no loop with it, comes too late.
                around = code.loop_bits[at]
                heard = (found[one].axes for one in stores if one < at or code.loop_bits[one] & around)
                mine.axes |= reduce(or_, heard, 0)
            if at in told and classes.counts[told[at]] < classes.counts[mine.classes]:
                mine.classes = told[at]
            stale.discard(at)
            if before != (mine.classes, mine.axes, mine.loops):
                stale.update(asking.get(at, ()))
            if at in storing and mine.axes != before[1]:
                shared |= mine.axes
                stale |= from_shared
    return found, classes


def _leaves(code: Program, loop: Loop, turn: int) -> bool:
    """Whether a branch of a loop tells when it ends."""
    return (to := code.target(turn)) is None or to not in loop or turn == loop.last


def deciding(code: Program, several: Sequence[int], at: int, turns: Sequence[int]) -> Iterator[int]:
    """The turns that tell which of several instructions wrote what this one reads: around one of them, both ways come
    to it. One that leaves a loop tells nothing of what a round finds.
    """
    # Of the arguments of a function its caller tells.
    begin = max([min(several), *(first for first, last in code.functions if first <= at <= last)])
    around = [loop.last for loop in code.loops_around[at] if any(at <= one <= loop.last for one in several)]
    end = min(around, default=at)
    for turn in turns[bisect_left(turns, begin) : bisect_left(turns, end)]:
        target = code.target(turn)
        first, last = (turn + 1, target - 1) if target is not None and target > turn else (target or 0, turn)
        meets = last < end if first > turn else at > turn
        if target is None or (meets and any(first <= one <= last for one in several)):
            yield turn


def _written_before(code: Program, at: int, name: str) -> Iterable[int]:
    """What may have written a register that an instruction reads: the function that was called last, where it does."""
    written_by = code.producers(at, name)
    if not code.functions:
        return written_by
    last = max((one for one in written_by if one < at), default=-1)
    after = max(last, code.block_starts[at] - 1)
    for first, end in code.functions:
        called = not first <= at <= end and any(after < one < at for one in code.callers((first, end)))
        if called and (mine := [one for one in code.writers.get(name, ()) if first <= one <= end]):
            return mine
    return written_by


_CLOCK = re.compile("CLOCK|GLOBALTIMER")
_NUMBERS = re.compile(r", -?0x[0-9a-f]+")
_OF_ALL = ("NTID", "NCTAID", "SRZ", "SR_CgaCtaId")  # the last tells where a block finds its own shared memory
_OF_LANES = ("SHFL", "MATCH", "CALL", "RET", "CS2R")


def _begins(work: Work, at: int, classes: _Classes) -> tuple[_Differs, int | None] | None:
    """What an instruction's result differs by beside what it is made of, and the classes of threads where they are
    known to be no more; None where nobody knows anything.
    """
    line, code = work.sass[at], work.code
    own = _Differs()
    if line.opcode in ("S2R", "S2UR"):
        name = line.operands[-1] if line.operands else ""
        if (axis := name.removeprefix("SR_CTAID.").lower()) in AXES:  # a damaged report's may be none
            own.axes = 1 << AXES.index(axis)
        elif name.startswith("SR_TID") or name == "SR_LANEID":
            own.classes = _told(work, at, classes) or 0
        elif not any(same in name for same in _OF_ALL):
            return None if line.opcode == "S2R" else (_Differs(axes=(1 << len(AXES)) - 1), None)
    elif line.is_atomic or line.space == "local" or (line.opcode in _OF_LANES and "SRZ" not in line.text):
        return None
    elif line.opcode in TENSOR_COPIES or "gdesc" in line.text:
        return None  # where a descriptor points
    elif line.space in ("global", "shared") and line.is_load:
        own.loops = _changed_in(work, at)
        if own.loops and line.space == "global":  # each block finds there what it left itself
            own.axes = (1 << len(AXES)) - 1
    elif line.opcode in ("SHF", "LOP3") and not code.by_data[at] and _NUMBERS.search(line.text):
        # What is loaded has other bits to lose than an index has.
        return own, _told(work, at, classes)
    return own, None


def _told(work: Work, at: int, classes: _Classes) -> int | None:
    """How the threads are parted by a value, as a sum over their numbers; None of a predicate."""
    results = [name for name in work.sass[at].writes if name[0] == "R"]
    found = 0
    for name in results:
        value = values_of(work).after(at, name)
        for factors, one in value.terms.items():
            if any(symbol.lanes for symbol in factors):
                return classes.apart
            if any(symbol.threads for symbol in factors):
                found = classes.join(found, classes.of_warps())
            if not isinstance(one, int):
                found = classes.join(found, classes.of(one))
    return found if results else None


def _handed_on(work: Work, source: int, at: int, name: str) -> int:
    """The loops whose rounds hand on to an instruction what this one left in a register in the round before."""
    code, found = work.code, 0
    if source < at or not (both := code.loop_bits[at] & code.loop_bits[source]):
        return found
    writers, around = code.writers[name], code.loop_bits[at]
    for number, loop in enumerate(code.loops):
        if both >> number & 1:
            # What a round begins anew, only a loop within it hands on.
            begun = any(
                not work.sass[one].guard and not code.loop_bits[one] & ~around
                for one in writers[bisect_left(writers, loop.first) : bisect_left(writers, at)]
            )
            found |= 0 if begun else 1 << number
    return found


def _changed_in(work: Work, at: int) -> int:
    """The loops around a load that store something else where it reads."""
    line, known = work.sass[at], checked_forms(work).get(at)
    found = 0
    for loop in work.code.loops_around[at]:
        if line.space == "global" and known is not None and known.form.parameters:
            changed = written(work, known.form, loop)
        else:
            changed = any(
                work.executed[one]
                and (other.opcode in COPIES or (other.space == line.space and not other.is_load))
                for one, other in enumerate(work.sass[loop.first : loop.last + 1], loop.first)
            )
        found |= changed << work.code.loops.index(loop)
    return found


FROM_MEMORY = ("", "constant", "global", "shared")
COPIES = ("LDGSTS", *TENSOR_COPIES)
RECORD = 4  # words of a vector
TIMES = 4.0  # evaluations of each different value from which on a table of them is worth its loads
LOOKED_UP = 2.0  # instructions that bring a value from a table: its place and the load
_SUMS = ("fp32", "fp16")
FLOATS = frozenset({"fp32", "fp64", "fp16", "special", "conversion"})
WHOLE_NUMBERS = frozenset({"integer", "uniform"})


@dataclass(frozen=True)
class Again:
    """What computes few values again and again."""

    rows: list[int]  # the arithmetic
    keep: Array  # share of each instruction that stays where each value is computed once
    loads: float  # of what is looked up then, by a warp


@once
def computed_again(work: Work, kinds: frozenset[str]) -> Again:
    """Arithmetic of these kinds that comes to the same values again, in other threads, blocks or rounds: computed once
    each and kept, it is looked up where something else is made of it.

    Of what hangs together all goes, or nothing does, as the look-ups cost less or not.
    """
    code, ran = work.code, work.executed > 0
    found = evaluations(work)
    computes = ran & work.where(lambda line: line.instruction_class in kinds and not line.moves_a_constant)
    if not kinds <= FLOATS:
        computes &= computing(work)  # places and rounds are counted, not looked up
    again = found.different / np.maximum(work.threads, 1.0)
    # What no thread decides is a parameter of the kernel, what its loop does not change a register.
    given = found.different <= 1.0
    in_table = (TIMES * again <= 1.0 + CLOSE) & (TIMES * found.hoisted > 1.0) & ~given
    computes &= ~_told_by_leaving(work)
    # No table holds a predicate.
    computes &= work.where(lambda line: any(name[0] != "P" and name[:2] != "UP" for name in line.writes))
    few = computes & ((TIMES * again <= 1.0 + CLOSE) | (found.hoisted < 1.0))
    stays = np.where(
        few & (in_table | given), again, np.where(few, found.hoisted, np.minimum(again, found.hoisted))
    )
    loaded = work.global_loads | indexed_constants(work) | work.where(lambda line: line.space == "shared")
    keep, rows, loads, before = np.ones(len(code.sass)), list[int](), 0.0, exchanged_in_rounds(work)
    for group in connected({int(at) for at in np.flatnonzero(few)}, code):
        gone, left = alone(work, group, stays)
        used = [at for at in group if any(ran[use] and use not in gone for use in code.readers[at])]
        used = [at for at in used if in_table[at]]
        # Sums and products of what is loaded are what a kernel is for; divisions of integers are told apart.
        sums = loaded[list(gone)].any() and all(work.sass[at].instruction_class in _SUMS for at in group)
        if sums or before[list(gone)].any() or any("RP" in work.sass[at].modifiers for at in group):
            continue
        looked_up = _records(work, [at for at in used if not found.alike[at]])
        if float((work.executed * (1.0 - left))[list(gone)].sum()) > LOOKED_UP * looked_up:
            keep[list(gone)] = left[list(gone)]
            keep[[at for at in used if found.alike[at]]] = 1.0  # as a load from constant memory
            rows += group
            loads += looked_up
    return Again(rows, keep, loads)


@once
def exchanged_in_rounds(work: Work) -> Mask:
    """Loads from shared memory of what others work out and store there in the same loop: no table holds it before."""
    code, ran = work.code, work.executed > 0
    made = ran & work.where(lambda line: line.opcode == "STS")
    for at in np.flatnonzero(made).tolist():
        made[at] = any(work.sass[one].instruction_class in FLOATS for one in code.of_values(at))
    found = code.within(loop for loop in code.loops if made[loop.first : loop.last + 1].any())
    for key, one in own_places(work).items():
        if isinstance(key, int):
            found[list(one.loads.rows)] = False
    return found & work.where(lambda line: line.space == "shared" and line.is_load)


@once
def _told_by_leaving(work: Work) -> Mask:
    """What is read behind a loop that threads leave in different rounds: only going through it tells which value."""
    code, (differs, classes) = work.code, _differs(work)
    found = np.zeros(len(code.sass), dtype=bool)
    for loop in code.loops:
        inside = [at for at in range(loop.first, loop.last + 1) if work.executed[at]]
        turns = [at for at in inside if code.sass[at].is_branch and code.sass[at].guard]
        turns = [at for at in turns if _leaves(code, loop, at)]
        if any(_CLOCK.search(code.sass[at].text) for at in code.made_of(turns)):
            found[inside] = True  # it takes as long whatever is done in it
        ends = {(differs[at].classes, differs[at].axes) for at in turns}
        for at in inside if ends else ():
            mine, uses = differs[at], code.readers[at]
            if not found[at] and uses and (uses[0] < loop.first or uses[-1] > loop.last):
                found[at] = any(
                    classes.join(mine.classes, way) != mine.classes or axes & ~mine.axes for way, axes in ends
                )
    return found


def alone(work: Work, group: set[int], stays: Array) -> tuple[set[int], Array]:
    """These instructions, and what does nothing but serve them, with what stays of each: of what counts the rounds of a
    loop that does nothing else, and of what tells of a way around nothing else, as much as of what is done there.
    """
    gone, left = group | serving(work, group, FROM_MEMORY), stays.copy()
    for (first, last, turn), inside in zip(_turns(work), _done(work), strict=True):
        if inside.isdisjoint(gone):
            continue
        told = gone | {turn} | {at for at in around_never(work) if first <= at <= last}
        longer = told | serving(work, told, FROM_MEMORY)
        if inside <= longer:
            left[list(longer - gone)] = left[list(inside & gone)].max()
            gone = longer
    return gone, left


@once
def _turns(work: Work) -> list[tuple[int, int, int]]:
    """First and last instruction of each loop and of each way that a branch leads around, and it; shortest first."""
    loops = [(loop.first, loop.last, loop.last) for loop in work.code.loops if work.executed[loop.first]]
    return sorted((*loops, *ways_around(work)), key=lambda one: one[1] - one[0])


@once
def ways_around(work: Work) -> list[tuple[int, int, int]]:
    """First and last instruction of each way that a branch leads around, with the branch."""
    code, found = work.code, []
    for at in np.flatnonzero(work.executed > 0).tolist():
        to = code.target(at) if code.sass[at].opcode == "BRA" and code.sass[at].guard else None
        if to is not None and to > at + 1:
            found.append((at + 1, to - 1, at))
    return found


@once
def _done(work: Work) -> list[set[int]]:
    """What is done in each of the turns: not where ways part and meet again, for nothing is told by that."""
    passed = work.where(lambda line: line.opcode in ("BSSY", "BSYNC", "NOP"))
    done = (work.executed > 0) & ~passed
    return [{*(first + np.flatnonzero(done[first : last + 1])).tolist()} for first, last, _ in _turns(work)]


@once
def around_never(work: Work) -> set[int]:
    """Branches that always lead around what they do."""
    return {turn for first, last, turn in _turns(work) if not work.executed[first : last + 1].any()}


def _records(work: Work, values: Iterable[int]) -> float:
    """Loads that bring these values: of those that differ by the same, one brings a record of four."""
    differs, _ = _differs(work)
    alike = Counter(
        (differs[at].classes, differs[at].axes, differs[at].loops, float(work.executed[at])) for at in values
    )
    return sum(key[-1] * -(-count // RECORD) for key, count in alike.items())


def connected(rows: set[int], code: Program) -> Iterator[set[int]]:
    """Those of these instructions together that read one another's results."""
    left = set(rows)

    def near(at: int) -> set[int]:
        return left & {*code.readers[at], *code.sources(at)}

    while left:
        found = reached({left.pop()}, near)
        left -= found
        yield found


def walked_again(work: Work) -> Iterator[Reuse]:
    """Loads whose places no numbers tell, but which a thread loads again in each round of a loop around them that does
    not change them: a row of a sparse matrix, a list.
    """
    code, found = work.code, evaluations(work)
    known = {row for one in arrays(work) for row in one.rows}
    loads = work.global_loads & (work.executed > 0) & ~code.chased & (found.in_rounds < 1.0)
    for at in map(int, np.flatnonzero(loads)):
        if at not in known:
            asked = float(work.executed[at]) / work.launched_warps
            thread = asked * float(found.in_rounds[at])
            warp, block = thread * WARP, thread * work.profile.launch.threads_per_block
            # Others' places are taken as others.
            yield Reuse((at,), work.sass[at].access_bytes, asked, thread, warp, warp, 0.0, block, {}, 0.0, {})
