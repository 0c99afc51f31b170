"""What the threads of a block load more than once: counted from the addresses, not guessed from hit rates.

Loads of one array are taken together. Where each goes, in units of its width, follows from its form: thread by thread,
round by round of its loops (as often as they ran), tap by tap. What is different is loaded once, the rest again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from math import prod
from typing import cast
from zlib import crc32

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.explanation.code.address_forms import (
    AFFINE,
    LINE,
    SECTOR,
    STRIDED,
    UNIFORM,
    UNKNOWN,
    WIDEST,
    Checked,
    Form,
    checked_forms,
    constant,
    row_granule,
    values_of,
    warps_of,
)
from gemmprof.analysis.explanation.code.flow import Loop, reached
from gemmprof.analysis.explanation.code.symbolic import DEEPEST, Coefficient, Symbol, Threads, Value, Values
from gemmprof.analysis.explanation.demands.work import Mask, Work, once
from gemmprof.base import amounts
from gemmprof.gpu.arch import WARP

ROW = 1 << 12  # bytes, or elements, that a row's length, and where it begins, are a multiple of
LONGEST = 1 << 15  # such multiples that a parameter stands for at most
AXES = ("x", "y", "z")
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio, odd: spreads over all bits
_SPREAD = np.uint64(29)

Labels = npt.NDArray[np.uint64]
"""Numbers that are different where what they stand for is."""


def label(of: object) -> Labels:
    """A number that stands for something."""
    return np.full(1, crc32(repr(of).encode()), dtype=np.uint64)


def mixed(*labels: Labels) -> Labels:
    """Labels of all these together, in their order."""
    found, *others = labels
    for one in others:
        found = (found ^ one) * _MIX
        found ^= found >> _SPREAD
    return found


def _drawn(of: object) -> int:
    return ROW * (int(label(of)[0]) % LONGEST | LONGEST | 1)


class Places:
    """The numbers of some executions: points (a thread of a block each) by rounds.

    What nobody knows is drawn: parameters are lengths of rows, or where arrays begin; what is loaded, or computed as no
    sum and by no known function, is a label that is the same where all that it is made of is. Addresses that come to
    the same number are the same place.
    """

    def __init__(
        self,
        values: Values,  # of the code
        grid: tuple[int, int, int],  # blocks along each axis
        blocks: Threads,  # of each point, along x, y and z: 3 x points
        threads: Threads,  # of each point, its number in the block
        rounds: Mapping[
            object, Threads
        ],  # by a loop's first instruction, the number of its round: 1 x rounds
        known: Mapping[
            object, Threads
        ],  # parameters by their names, and the last rounds of loops that lie behind
    ) -> None:
        self._values, self._grid, self._known = values, grid, known
        self._blocks, self._threads, self._rounds = blocks[:, :, None], threads, rounds
        self._found: dict[Symbol, Threads] = {}
        self._depth = 0

    def of(self, value: Value) -> Threads:
        """A value's numbers, points x rounds; 1 where all have the same."""
        found: Coefficient = 0
        for factors, number in value.terms.items():
            one = number if isinstance(number, int) else number[self._threads][:, None]
            for symbol in factors:
                one = one * self._symbol(symbol)
            found = found + one
        return np.full((1, 1), found) if isinstance(found, int) else found

    def of_each(self, value: Value) -> Threads:
        """The same, for each point and round."""
        rounds = max((one.shape[1] for one in self._rounds.values()), default=1)
        return np.broadcast_to(self.of(value), (len(self._threads), rounds))

    def _symbol(self, symbol: Symbol) -> Threads:
        if symbol not in self._found:
            self._depth += 1
            self._found[symbol] = self._made(symbol)
            self._depth -= 1
        return self._found[symbol]

    def _made(self, symbol: Symbol) -> Threads:
        kind, name = symbol.kind, symbol.name
        if kind == "block":
            return np.asarray(self._blocks[AXES.index(str(name))])
        if kind == "grid":
            return np.full((1, 1), self._grid[AXES.index(str(name))])
        if kind == "trip":
            if name in self._rounds:
                return self._rounds[name]
            name = ("behind", name)
        if kind in ("trip", "parameter"):  # drawn where unknown: a loop closed by a jump table, too
            return self._known[name] if name in self._known else np.full((1, 1), _drawn(name))
        inputs, by = self._values.made.get(symbol, ((), None)) if self._depth <= DEEPEST else ((), None)
        numbers = [self.of(one) for one in inputs]
        if by is not None:
            shape = np.broadcast_shapes(*(one.shape for one in numbers))
            flat = (one if one.shape == shape else np.broadcast_to(one, shape) for one in numbers)
            found = by(*(one.ravel() for one in flat))
            if isinstance(found, np.ndarray) and found.size == shape[0] * shape[1]:
                return found.reshape(shape)
            if found is not None:
                return np.full(shape, found)
        if not inputs:
            numbers = [one[:, :] for one in self._blocks] if symbol.blocks else []
            if symbol.threads:
                numbers.append((self._threads if symbol.lanes else self._threads // WARP)[:, None])
            numbers += [self._rounds[loop] for loop in sorted(symbol.loops) if loop in self._rounds]
        # What one place holds is the same, whichever instruction loads it.
        what = kind if kind == "loaded" and inputs and len(inputs[0].terms) > 1 else (kind, name)
        drawn = mixed(label(what)[:, None], *(one.astype(np.uint64) for one in numbers))
        return (drawn >> np.uint64(20)).astype(np.int64) * ROW


MOST_ROUNDS = 16  # rounds of a loop that are followed: what a longer one loads again, it does in these, too
STRETCH = 4 * MOST_ROUNDS  # the same of one that stands alone
MOST_PLACES = 1 << 17  # places of one array that are looked at, over all threads of a block
NEAR = 0.1  # how far the sectors of some warps may lie from what all warps were counted to touch
SMALL = 64  # up to which a parameter may be a small number, of bits, channels or elements between
BLOCKS = "blocks along "  # before an axis: of neighbouring blocks, not threads
SOME = 4 * WARP  # threads, and accesses of a parameter, that are asked what it is
FEW = 8
GROUPS = 8  # of neighbours that are looked at, where they are not all as far apart
WORD = 4  # bytes
OUTPUTS = 4  # results that a thread computes in place of one
LOADED_AGAIN = 0.9  # share of the loads that are different, below which the others are worth a rewrite
EDGES = 1.05  # places that a block reaches, in those that it writes, up to which the others are an edge
MOST_REGISTERS = 64  # words that a thread can keep beside what it works with
WRAP = 1 << 32  # as many values have 32 bits
# Of what results far apart load, the share that differs, above which elements side by side do as well.
MOSTLY_SHARED = 0.5
# Of warps' lengths: lengths of dimensions that nobody knows, which have nothing in common.
UNLIKE = (3, 5, 7, 11, 13)
UNROLLED = 128 * 1024 // 16  # instructions of 16 bytes that the instruction cache holds
_NUMBER = re.compile(r"^-?0x[0-9a-f]+$")


@dataclass(frozen=True)
class Reuse:
    """The loads of one array from one place that the block's threads have in common."""

    rows: tuple[int, ...]  # the instructions
    width: int  # bytes of each
    asked: float  # loads of a thread
    thread: float  # different places of a thread
    apart: float  # different places of a warp, those of each load counted apart
    warp: float  # different places of a warp
    # share of the bytes from a warp's first to its last that a round's loads ask for; 0 where lanes share places
    dense: float
    block: float  # different places of a block
    # different places of one thread that does the work of `OUTPUTS` neighbours along an axis
    outputs: dict[str, float]
    sectors: float  # different sectors of a block
    # sectors that a block touches when its threads do so, of those that as many blocks touch now
    fetched: dict[str, float]
    # lines of L1 that a warp looks up for what its threads load then, by vectors where that takes fewer, over those for
    # as many places now: its lanes lie further apart
    spread: dict[str, float] = field(default_factory=dict)
    # words that these places of such a thread lie in, for each of them
    by_words: dict[str, float] = field(default_factory=dict)

    def of_results(self, axis: str) -> float:
        """Different places of a thread with the work of `OUTPUTS` neighbours: all, where nobody knows of that axis."""
        return self.outputs.get(axis, OUTPUTS * self.thread)


@once
def arrays(work: Work, space: str = "global") -> tuple[Reuse, ...]:
    """The arrays that a launch's loads read there, as far as their addresses are known and confirmed."""
    if work.program is None:
        return ()
    groups: dict[object, list[Form]] = {}
    for index, one in checked_forms(work).items():
        form = one.form
        if form.space == space and work.sass[index].is_load and _believed(work, index):
            # What rounds find at places that were loaded is told apart: nobody knows what of the rest it is.
            led = any(symbol.looked_up and symbol.loops for symbol in form.address.symbols)
            groups.setdefault((form.parameters or form.base, form.width, led), []).append(form)
    several = list(groups.values())
    found = [_array(work, forms, forms[0].parameters in own_places(work)) for forms in several]
    if space == "global":
        return tuple(_with_far_ones(work, several, found))
    # Vectors meet in no bank, however far lanes lie apart.
    return tuple(replace(one, spread={}) for one in found)


@dataclass(frozen=True)
class Own:
    """An array that a launch both loads and stores, of which nobody else loads what a block stores there."""

    stores: Reuse  # what a thread stores, and how many different places that are
    loads: Reuse  # the same of what it loads
    filled: bool  # it stores each place before it loads it
    alone: bool  # nor does any other thread


@once
def places_of_blocks(work: Work) -> dict[object, Own]:
    """The arrays that a launch both loads and stores where no block meets another, by their parameters; those of shared
    memory by the first byte of the stretch that their accesses span.
    """
    groups: dict[frozenset[object], list[Checked]] = {}
    for one in checked_forms(work).values():
        if one.form.space == "global" and one.form.parameters:
            groups.setdefault(one.form.parameters, []).append(one)
    found, launch = dict[object, Own](), work.profile.launch
    apart = {key for key in groups if not any(key & other and key != other for other in groups)}
    stretches: dict[object, list[Checked]] = {key: groups[key] for key in groups if key in apart}
    for key, group in {**stretches, **_stretches(work)}.items():
        forms = [one.form for one in group]
        lines = [work.sass[form.index] for form in forms]
        stores = [form for form in forms if work.sass[form.index].is_store]
        loads = [form for form in forms if work.sass[form.index].is_load]
        plain = all((line.is_load or line.is_store) and not line.is_atomic for line in lines)
        if not (plain and loads and stores and len({form.width for form in forms}) == 1):
            continue
        if not all(_believed(work, form.index) for form in forms):
            continue
        whole, written = _followed(work, forms)[0], _followed(work, stores)[0]
        # A thread at the edge of its block's part computes the place beside it, and leaves it alone.
        mine = whole if whole.block > EDGES * written.block else written
        if forms[0].space == "global" and any(
            size > 1 and mine.fetched[BLOCKS + axis] < 1.0
            for axis, size in zip(AXES, launch.grid, strict=True)
        ):
            continue
        alone = mine.block == whole.block == launch.threads_per_block * whole.thread
        if alone or (forms[0].space == "global" and mine is written):
            filled = written.thread == whole.thread
            filled &= all(any(_before(work, store, load) for store in stores) for load in loads)
            found[key] = Own(_array(work, stores, own=True), _array(work, loads, own=True), filled, alone)
    return found


@once
def own_places(work: Work) -> dict[object, Own]:
    """Those of which each thread has places of its own."""
    return {key: one for key, one in places_of_blocks(work).items() if one.alone}


def _stretches(work: Work) -> dict[object, list[Checked]]:
    """The accesses of shared memory by the first byte of what they reach, with all that reach into the same."""
    shared = [one for one in checked_forms(work).values() if one.form.space == "shared"]
    reached_by = {one.form.index: _reach(work, one.form) for one in shared}
    found, begin, end = dict[object, list[Checked]](), 0, 0
    for one in sorted(shared, key=lambda one: reached_by[one.form.index]):
        first, behind = reached_by[one.form.index]
        if first >= end or not found:
            begin = first
        found.setdefault(begin, []).append(one)
        end = max(end, behind)
    return found


def _reach(work: Work, form: Form) -> tuple[int, int]:
    """The first byte that a block's threads reach with an access, and the one behind the last."""
    (walked,) = _walked(work, [form])
    found = _in_own_block(work, walked)(form.address)
    return int(found.min()), int(found.max()) + max(1, form.width)


def met_in_block(work: Work, rows: Mask) -> float:
    """Share of the places that a block's threads go to with these accesses, those of each array together, which differ;
    what nobody knows counts as different.
    """
    groups: dict[object, list[Form]] = {}
    for at, one in checked_forms(work).items():
        if rows[at] and _believed(work, at):
            groups.setdefault((one.form.parameters or one.form.base, one.form.width), []).append(one.form)
    whole = again = float(work.threads[rows].sum())
    for forms in groups.values():
        gone = float(work.threads[[form.index for form in forms]].sum())
        # A block whose warps do not all come there has no fewer places for that.
        block = _array(work, forms, own=True).block / max(_entered(work, form) for form in forms)
        again -= max(0.0, gone - work.profile.launch.blocks * block)
    return again / whole if whole else 1.0


def _entered(work: Work, form: Form) -> float:
    """Share of the warps that come to an access, or to the loops around it."""
    each = prod(rounds(work, loop) for loop in work.code.loops_around[form.index])
    return min(1.0, float(work.executed[form.index]) / work.launched_warps / each)


def _before(work: Work, store: Form, load: Form) -> bool:
    """Whether a store comes before a load: of one loop only that of the same place is known to."""
    loop = work.code.loop_of(load.index)
    same = store.base == load.base and constant(store) == constant(load)
    return store.index < load.index and (same or loop is None or store.index not in loop)


@once
def _believed(work: Work, at: int) -> bool:
    """Whether the sectors that follow from a form are those that were counted, for any numbers or for its own."""
    one = checked_forms(work)[at]
    form = one.form
    if one.confirmed and form.kind in (AFFINE, STRIDED, UNIFORM):
        return True
    if looked_up_apart(form):
        return False
    around = work.code.loops_around[at]
    walked = tuple((loop.first, min(OUTPUTS, round(rounds(work, loop)))) for loop in around)
    return bool(np.isfinite(_as_counted(work, at, _in_own_block(work, walked)(form.address)[:, None])))


def _as_counted(work: Work, at: int, places: Threads) -> npt.NDArray[np.float64]:
    """How far the sectors of an access to these places, of threads x draws x rounds, lie from those that were counted,
    by draw; infinite where it is no such access, by its sectors or by its lines.
    """
    rows, active = warps_of(places.T), float(work.threads[at] / work.executed[at]) / WARP
    off, known = np.zeros(places.shape[1]), np.ones(places.shape[1], dtype=bool)
    for size, asked in ((LINE, work.global_tags), (SECTOR, work.global_sectors)):
        pieces, counted = np.sort(rows // size, axis=-1), float(asked[at] / work.executed[at])
        expected = 1.0 + (pieces[..., 1:] != pieces[..., :-1]).sum(axis=-1).mean(axis=(0, -1))
        off = abs(expected - counted)
        if counted or size == SECTOR:
            known &= (expected * active * (1.0 - NEAR) <= counted) & (counted <= expected * (1.0 + NEAR))
    return np.where(known, off, np.inf)


def looked_up_apart(form: Form) -> bool:
    """Whether what was loaded tells the lanes of a warp where to go."""
    return any(symbol.looked_up and symbol.lanes for symbol in form.address.symbols)


@once
def _lengths(work: Work) -> dict[object, Threads]:
    """Parameters that are small numbers, as the sectors of the accesses say whose lanes they keep apart; and the last
    rounds of the loops, for what lies behind them.
    """
    values, grid = values_of(work), work.profile.launch.grid
    threads = np.arange(min(values.threads, SOME))
    blocks, small = np.broadcast_to(own_block(grid), (3, len(threads))), np.arange(1, SMALL + 1)[None, :]
    found: dict[object, Threads] = {
        ("behind", loop.first): np.full((1, 1), round(rounds(work, loop)) - 1) for loop in work.code.loops
    }
    tried: Counter[object] = Counter()
    for at, one in checked_forms(work).items():
        form = one.form
        counted = form.space == "global" and work.global_sectors[at] and not one.confirmed
        if not counted or looked_up_apart(form):
            continue
        around = [loop.first for loop in work.code.loops_around[at]]
        begin: dict[object, Threads] = dict.fromkeys(around, np.zeros((1, 1), dtype=np.int64))
        made_of = {one.name for one in values.behind([form.address]) if one.kind == "parameter"}
        for name in made_of - form.parameters - found.keys():
            tried[name] += 1
            if tried[name] > FEW:
                continue
            places = Places(values, grid, blocks, threads, begin, found | {name: small}).of(form.address)
            if places.shape[1] > 1:
                off = _as_counted(work, at, places[:, :, None])
                if np.isfinite(off).any() and not np.isfinite(off[-1]):
                    found[name] = np.full((1, 1), 1 + int(off.argmin()))
    return found


def own_block(grid: tuple[int, int, int]) -> Threads:
    """A block with neighbours behind it, whose numbers along the axes are not the same."""
    own: Threads = np.array(grid) // np.array((2, 3, 5)) // OUTPUTS * OUTPUTS
    return own[:, None]


def computed_places(
    work: Work, axis: int, blocks: Threads, turns: Mapping[object, Threads]
) -> Callable[[Value], Threads]:
    """What computes a value's numbers in all threads of these blocks along an axis, one block after the other (lines),
    in these rounds of a loop, the first one of the others (columns).
    """
    values, grid = values_of(work), work.profile.launch.grid
    points = np.repeat(own_block(grid), len(blocks), axis=1)
    points[axis] = blocks
    trips: dict[object, Threads] = {
        loop.first: np.asarray(turns.get(loop.first, [0]))[None, :] for loop in work.code.loops
    }
    points = np.repeat(points, values.threads, axis=1)
    threads = np.tile(np.arange(values.threads), len(blocks))
    return Places(values, grid, points, threads, trips, _lengths(work)).of_each


@once
def _in_blocks(work: Work, axis: int, several: int) -> Callable[[Value], Threads]:
    """What computes a value's numbers in all threads of so many blocks along an axis, in the first rounds."""
    return computed_places(work, axis, np.arange(several), {})


def distinct_along(work: Work, form: Form, axis: int, several: int) -> float:
    """Share of an access's places which differ, of so many neighbouring blocks along an axis; 1 where nobody knows."""
    if form.kind == UNKNOWN and not _believed(work, form.index):
        return 1.0
    places = _in_blocks(work, axis, several)(form.address)[:, 0].reshape(several, -1)
    return how_many(places) / int(_how_many(places).sum())


Walked = tuple[tuple[int, int], ...]
"""Loops by their first instructions, outermost last, and how many rounds of each are followed."""


def _places(
    values: Values,
    grid: tuple[int, int, int],
    blocks: Threads,
    threads: Threads,
    walked: Walked,
    known: Mapping[object, Threads],
) -> Callable[[Value], Threads]:
    """What computes a value's numbers in these threads, in so many rounds of these loops: points x rounds."""
    often = [count for _, count in walked]
    turns = np.indices(often).reshape(len(often), 1, prod(often))
    trips: dict[object, Threads] = {loop: turn for (loop, _), turn in zip(walked, turns, strict=True)}
    return Places(values, grid, blocks, threads, trips, known).of_each


@once
def _in_own_block(work: Work, walked: Walked) -> Callable[[Value], Threads]:
    """What computes a value's numbers in all threads of one block."""
    threads = np.arange(values_of(work).threads)
    return numbers_in(
        work, np.broadcast_to(own_block(work.profile.launch.grid), (3, len(threads))), threads, walked
    )


def neighbours(work: Work, axis: str) -> tuple[Threads, Threads] | None:
    """Some groups of `OUTPUTS` threads side by side along an axis, one behind another: their blocks (3 x threads) and
    their numbers in these; None where a block holds too few.
    """
    shape, number = work.profile.launch.block, AXES.index(axis)
    own, several = own_block(work.profile.launch.grid), np.arange(OUTPUTS)
    if shape[number] == 1:
        threads = np.arange(prod(shape))
        threads = threads[:: -(-len(threads) // FEW)]
        moved = own + np.eye(len(AXES), dtype=np.int64)[:, number, None] * several
        return np.tile(moved, len(threads)), np.repeat(threads, OUTPUTS)
    begin = _beginning(shape, number)
    if not len(begin):
        return None
    threads = (begin[:: -(-len(begin) // FEW), None] + prod(shape[:number]) * several).ravel()
    return np.broadcast_to(own, (3, len(threads))), threads


def numbers_in(work: Work, blocks: Threads, threads: Threads, walked: Walked) -> Callable[[Value], Threads]:
    """What computes a value's numbers in these threads of these blocks, in so many rounds of loops: points x rounds."""
    return _places(values_of(work), work.profile.launch.grid, blocks, threads, walked, _lengths(work))


def _beginning(shape: tuple[int, int, int], number: int) -> Threads:
    """The first thread of each whole group of `OUTPUTS` along an axis of a block."""
    before, size = prod(shape[:number]), shape[number]
    begin: Threads = np.arange(prod(shape)).reshape(-1, size, before)[:, : size - size % OUTPUTS : OUTPUTS]
    return begin.ravel()


def places_of_a_thread(work: Work, forms: list[Form], unit: int) -> float:
    """Different sectors or lines (of ``unit`` bytes) that a thread goes to with these accesses in one round, wherever
    what was loaded leads it.
    """
    places = np.concatenate([_in_own_block(work, ())(form.address)[:WARP] for form in forms], axis=1)
    begins = np.arange(0, unit, min(unit, *map(row_granule, forms)))
    lines = (places[:, None] + begins[:, None]) // unit
    return float(np.mean([how_many(one) for lane in lines for one in lane]))


def _passes(work: Work, form: Form, own: bool) -> float:
    """How often a thread comes by the same place: the rounds of the loops around that the address does not follow,
    without those that write there, but for what is the thread's ``own``.
    """
    around = [loop for loop in work.code.loops_around[form.index] if loop.first not in form.loops]
    return prod(rounds(work, loop) for loop in around if own or not written(work, form, loop))


def uses(work: Work, rows: Iterable[int], by: Mask | None = None) -> float:
    """How many instructions, all or these, use each register that others fill, the mean."""
    filled = used_by = 0.0
    for at in rows:
        registers = work.sass[at].writes
        filled += float(work.executed[at]) * len(registers)
        for one in work.code.readers[at]:
            if by is None or by[one]:
                used_by += float(work.executed[one]) * len(set(registers) & set(work.sass[one].reads))
    return used_by / filled if filled else 0.0


def rounds(work: Work, loop: Loop) -> float:
    """How often a loop runs each time that it is entered."""
    before = [at for at in work.code.predecessors[loop.first] if at < loop.first]
    entered = sum(min(float(work.executed[at]), float(work.executed[loop.first])) for at in before)
    return max(1.0, float(work.executed[loop.first]) / entered) if entered else 1.0


def distinct(values: Threads) -> Threads:
    """The different ones of some numbers, ascending: np.unique hashes them since NumPy 2.3, which takes far longer."""
    ascending = np.sort(values, axis=None)
    return ascending[np.concatenate(([True], ascending[1:] != ascending[:-1]))]


def how_many(values: Threads) -> int:
    """How many different numbers there are."""
    ascending = np.sort(values, axis=None)
    return 1 + int(np.count_nonzero(ascending[1:] != ascending[:-1]))


def _how_many(rows: Threads) -> Threads:
    """How many different numbers each row holds."""
    ascending = np.sort(rows, axis=1)
    return np.asarray(1 + (ascending[:, 1:] != ascending[:, :-1]).sum(axis=1))


def _walked(work: Work, forms: list[Form]) -> list[Walked]:
    """The rounds of the loops around each of these accesses in which they are followed together."""
    code, launch = work.code, work.profile.launch
    loops = [[one for one in code.loops_around[form.index] if one.first in form.loops] for form in forms]
    # Passes over the same places, unrolled more or less, are followed as far as one another.
    wanted = [
        [(one.first, round(min(rounds(work, one), MOST_ROUNDS if around[1:] else STRETCH))) for one in around]
        for around in loops
    ]
    needed = [prod(often for _, often in mine) for mine in wanted]
    most = _each(needed, MOST_PLACES // launch.threads_per_block)
    walked: list[Walked] = []
    for around in wanted:
        # Of many taps fewer rounds are followed, of outer loops none: more may be loaded again than is seen.
        mine: list[tuple[int, int]] = []
        for first, often in around:
            mine.append((first, max(1, min(often, most // prod(before for _, before in mine)))))
        walked.append(tuple(mine))
    return walked


def _followed(work: Work, forms: list[Form]) -> tuple[Reuse, tuple[int, ...], list[Walked]]:
    """What these accesses touch; which of the places that are followed in a thread are one; and the rounds of the loops
    around each access in which it is.
    """
    code, launch, walked = work.code, work.profile.launch, _walked(work, forms)
    rows = tuple(form.index for form in forms)
    # What is touched follows from the code, the grid and the rounds: the same for most launches of a kernel.
    known = _lengths(work)
    numbers = tuple((name, int(one[0, 0])) for name, one in known.items())
    values = values_of(work)
    key = "touched", rows, tuple(walked), launch.grid, numbers, values
    if key not in code.kept:
        code.kept[key] = _touched(values, forms, launch.grid, walked, known)
    return *cast("tuple[Reuse, tuple[int, ...]]", code.kept[key]), walked


def _each(wanted: list[int], places: int) -> int:
    """How many of so many places each may have, where none has more than it wants."""
    for before, most in enumerate(sorted(wanted)):
        if most * (len(wanted) - before) > places:
            return places // (len(wanted) - before)
        places -= most
    return max(wanted)


def _array(work: Work, forms: list[Form], own: bool = False) -> Reuse:
    warps = work.launched_warps
    asked = float(work.executed[[form.index for form in forms]].sum()) / warps
    found, same, walked = _followed(work, forms)
    # Accesses of a thread that its places stand for: those of one pass, where several walk the same way.
    told = sum(float(work.executed[form.index]) / warps / _passes(work, form, own) for form in forms)
    told *= _other_ways(work, forms, walked, same)
    return replace(
        found,
        asked=asked,
        thread=told * found.thread / found.asked,
        apart=told * found.apart / found.asked,
        warp=told * found.warp / found.asked,
        block=told * found.block / found.asked,
        outputs={key: told * value / found.asked for key, value in found.outputs.items()},
        sectors=told * found.sectors / found.asked,
    )


def _other_ways(work: Work, forms: list[Form], walked: list[Walked], same: tuple[int, ...]) -> float:
    """Factor on the places of a thread where its loads of one place stand on ways of which each warp takes one only (a
    loop of unknown length, unrolled by sixteen, by four and by one): loads that not as many warps do are no repetition
    before all warps have done one of them.
    """
    often: list[float] = []  # of each place that is followed: in so many warps
    for form, mine in zip(forms, walked, strict=True):
        often += [_entered(work, form)] * prod(count for _, count in mine)
    ways: dict[int, set[float]] = {}
    for place, one in zip(same, often, strict=True):
        ways.setdefault(place, set()).add(one)
    different = sum(min(1.0, sum(one)) for one in ways.values())
    as_if_all = sum(often) * len(ways) / len(same)
    return max(1.0, different / as_if_all) if as_if_all else 1.0


def _touched(
    values: Values,
    forms: list[Form],
    grid: tuple[int, int, int],
    walked: list[Walked],
    known: Mapping[object, Threads],
) -> tuple[Reuse, tuple[int, ...]]:
    shape, threads = values.block, values.threads
    own, steps, ahead = own_block(grid), np.arange(OUTPUTS), np.arange(2 * OUTPUTS)
    ends = np.array([0, threads - 1])
    points, who = [np.broadcast_to(own, (3, threads))], [np.arange(threads)]
    for unit in np.eye(len(AXES), dtype=np.int64)[:, :, None]:
        points.append(own + unit * np.repeat(ahead, len(ends)))
        who.append(np.tile(ends, len(ahead)))
    blocks, numbers = np.concatenate(points, axis=1), np.concatenate(who)
    computes = {mine: _places(values, grid, blocks, numbers, mine, known) for mine in dict.fromkeys(walked)}
    whole = [computes[mine](form.address) for form, mine in zip(forms, walked, strict=True)]
    together = np.concatenate(whole, axis=1)
    first = np.stack([one[:threads, 0] for one in whole])
    block, beyond = together[:threads], together[threads:].reshape(len(AXES), -1)
    lines = distinct(block // SECTOR)
    outputs, fetched, spread, by_words = (dict[str, float]() for _ in range(4))
    lanes, width = min(WARP, threads), forms[0].width
    looked_up = _lines(first[:, :lanes])

    def neighbours(axis: str, moved: Threads, apart: Threads, word: int) -> None:
        """Those that a thread and its neighbours touch together, which lie so far from its own, and their blocks."""
        places = distinct(block[0] + moved)
        outputs[axis], by_words[axis] = float(len(places)), how_many(places // word) / len(places)
        fetched[axis] = how_many(lines + apart // SECTOR) / (OUTPUTS * len(lines))

    for number, axis in enumerate(AXES):
        beside = beyond[number].reshape(2, OUTPUTS, len(ends), -1)
        beside = beside - beside[:, :1]
        # Of two stretches of neighbours, as one may begin anew within: where a block's number holds several.
        told = [one[:, 0] for one in beside if (one == one[:, :1, :1]).all()]
        most = OUTPUTS * len(lines)
        sizes = [how_many(lines + one[:, :1] // SECTOR) for one in told]
        fetched[BLOCKS + axis] = min(sizes, default=most) / most
        moved = np.diff(first.reshape(-1, *shape[::-1]), axis=-1 - number)
        # Of groups of neighbours along the axis the first threads, and those that are a warp then.
        before = prod(shape[:number])
        begin = _beginning(shape, number)
        # Bytes that lie in one word come together, where that begins with the same of them in all threads.
        of_words = first[:, begin] if len(begin) else first
        word = WORD if width < WORD and not ((of_words - of_words[:, :1]) % WORD).any() else 1
        if len(begin) > 1:
            window = block[begin[:GROUPS, None] + before * steps].reshape(min(GROUPS, len(begin)), -1)
            vectors = np.mean(_how_many(window // WIDEST) / _how_many(window))
            warp = begin[:lanes]
            apart = 1.0 + (_lines(first[:, warp]) - 1.0) * (lanes - 1) / (len(warp) - 1)
            spread[axis] = max(1.0, float(vectors) * apart / looked_up)
        if shape[number] == 1:
            if told:
                nearest = told[int(np.argmin(sizes))]
                neighbours(axis, nearest, nearest[:, :1], word)
        elif (moved == moved.flat[0]).all():
            shift = moved.flat[:1] * steps[:, None]
            neighbours(axis, shift, shift * shape[number], word)
        if axis not in outputs and shape[number] >= OUTPUTS:
            # Not all are as far apart: of some groups of neighbours the mean.
            begin = begin[:: -(-len(begin) // GROUPS)]
            several = block[begin[:, None] + before * steps].reshape(len(begin), -1)
            outputs[axis] = float(np.mean(_how_many(several)))
            by_words[axis] = float(np.mean(_how_many(several // word))) / outputs[axis]
            fetched[axis] = fetched[BLOCKS + axis]
    start = distinct(first[:, :lanes])
    touched = Reuse(
        rows=tuple(form.index for form in forms),
        width=width,
        asked=together.shape[1],
        thread=float(np.mean(_how_many(block[:lanes]))),
        apart=sum(how_many(one[:lanes]) for one in whole),
        warp=how_many(block[:lanes]),
        block=how_many(block),
        sectors=len(lines),
        dense=len(start) * width / (float(start[-1]) - float(start[0]) + width)
        if (_how_many(first[:, :lanes]) == lanes).all()
        else 0.0,
        outputs=outputs,
        fetched=fetched,
        spread=spread,
        by_words=by_words,
    )
    return touched, tuple(np.unique(block[0], return_inverse=True)[1].tolist())


def _with_far_ones(work: Work, groups: list[list[Form]], found: list[Reuse]) -> list[Reuse]:
    """Arrays with what they share along one more dimension: of those that a thread's number is divided for, in which
    results lie far apart, the one along which fewest places differ.
    """
    launch, values = work.profile.launch, values_of(work)
    flat = bool(found) and launch.block[0] == values.threads >= WARP
    dimensions, known = _dimensions(work) if flat else ({}, {})
    if not dimensions:
        return found
    own, steps = own_block(launch.grid), np.arange(2 * OUTPUTS)

    def different(forms: list[Form], apart: list[int], most: int) -> list[float]:
        """Share of the places of `OUTPUTS` results so far apart that differ: the least, of two stretches of them; all,
        where nobody knows how they are computed.
        """
        for one in values.behind(form.address for form in forms):
            inputs, by = values.made.get(one, ((), None))
            if one.kind == "computed" and by is None and not any(value.symbols for value in inputs):
                return [1.0] * len(apart)
        at = (int(own[0, 0]) * values.threads + np.array(apart)[:, None] * steps).ravel()
        blocks = np.stack((at // values.threads, *np.broadcast_to(own[1:], (2, len(at)))))
        places = []
        for form in forms:
            around = [loop for loop in work.code.loops_around[form.index] if loop.first in form.loops]
            walked = tuple((loop.first, min(most, round(rounds(work, loop)))) for loop in around[:2])
            of = _places(values, launch.grid, blocks, at % values.threads, walked, known)
            places.append(of(form.address).reshape(len(apart), 2, OUTPUTS, -1))
        stretches = np.concatenate(places, axis=-1)
        return [
            min(how_many(one) / sum(how_many(thread) for thread in one) for one in two) for two in stretches
        ]

    # A load of one word for a whole warp is a sector of many.
    asked = np.array([one.thread + one.apart * one.width / SECTOR for one in found])
    several = list(dimensions)
    stays = asked @ np.array([different(forms, several, 1) for forms in groups])
    if min(stays) > MOSTLY_SHARED * asked.sum():
        return found
    best = several[int(np.argmin(stays))]
    shares = [different(forms, [best], OUTPUTS)[0] for forms in groups]
    blocks, rest = divmod(best, values.threads)
    far = amounts.counted(*((best, "thread") if rest else (blocks, "block")))
    name = dimensions[best] or f"that lie {far} apart"
    return [
        replace(one, outputs={**one.outputs, name: OUTPUTS * part * one.thread})
        for one, part in zip(found, shares, strict=True)
    ]


def _dimensions(work: Work) -> tuple[dict[int, str], dict[object, Threads]]:
    """How far apart in a thread's number results may lie that differ in one dimension, and what that is called; with
    the parameters as numbers, which are made up for those that it is divided by and nobody knows.

    That are powers of two, of which no instruction tells, times numbers of the code that are multiplied by their
    reciprocals; and products of divisors that the launch alone knows.
    """
    values, grid, told = values_of(work), work.profile.launch.grid, _lengths(work)
    known = dict(told)
    own, first, most = own_block(grid), np.zeros(1, dtype=np.int64), grid[0] * values.threads // (2 * OUTPUTS)
    odd, divided, made_up = {1}, dict[int, int](), iter(UNLIKE)
    for at in np.flatnonzero(work.ran).tolist():
        line = work.sass[at]
        factor = line.operands[2] if len(line.operands) > 2 else ""
        if line.opcode == "IMAD" and "HI" in line.modifiers and _NUMBER.match(factor):
            reciprocal = int(factor, 0) % WRAP
            for whole in (WRAP << bits for bits in range(WARP)):
                one = round(whole / max(1, reciprocal))
                if 1 < one < WRAP and -(-whole // one) == reciprocal:
                    odd.add(one // (one & -one))
        elif line.opcode == "I2F" and "RP" in line.modifiers and line.operands:
            divisor = values.operand(at, line.operands[-1])
            made_of = [*values.behind([divisor])]
            lengths = {one.name for one in made_of if one.kind == "parameter"} - told.keys()
            known |= {name: np.full((1, 1), WARP * next(made_up, 1)) for name in lengths - known.keys()}
            if lengths and not any(one.threads or one.looked_up for one in made_of):
                divided[int(Places(values, grid, own, first, {}, known).of(divisor)[0, 0])] = at
    found = {one << bits: "" for one in odd for bits in range(WARP) if one << bits <= most}
    for several in chain.from_iterable(combinations(divided, count) for count in (1, 2, 3)):
        line_of = work.own_lines[divided[several[-1]]]
        where = f" in line {line_of[1]}" if line_of else ""
        found[prod(several)] = f"whose quotients{where} follow one another"
    return {apart: name for apart, name in found.items() if WARP <= apart < WRAP // (8 * OUTPUTS)}, known


def _lines(places: Threads) -> float:
    """Lines of L1 that a warp looks up with each of some accesses (rows), the mean."""
    return float(np.mean(_how_many(places // LINE)))


def written(work: Work, form: Form, loop: Loop) -> bool:
    """Whether the loop also writes to the array, or nobody knows where: what is loaded in its next round may be
    something else.
    """
    stores = _stores(work)
    return any(
        bisect_left(stores.get(one, ()), loop.first) < bisect_right(stores.get(one, ()), loop.last)
        for one in (*form.parameters, None)
    )


@once
def handed_on(work: Work) -> Mask:
    """Loads of what the block's threads made and stored in the round before, behind a barrier: no round has it before
    the last one is done.
    """
    code, found, stores = work.code, np.zeros(len(work.sass), dtype=bool), _stores(work)
    for loop in code.loops:
        if not work.barriers[loop.first : loop.last + 1].any():
            continue
        after = code.readers_within(loop)
        for at, one in checked_forms(work).items():
            if at in loop and work.sass[at].is_load and written(work, one.form, loop):
                made = reached([at], after.__getitem__)
                found[at] |= any(not made.isdisjoint(stores.get(key, ())) for key in one.form.parameters)
    return found


@once
def _stores(work: Work) -> dict[object, list[int]]:
    """The stores to what each parameter points at, ascending; of none known, by None."""
    found: dict[object, list[int]] = {}
    for index in sorted(checked_forms(work)):
        if work.sass[index].is_store:
            known = checked_forms(work)[index].form.parameters
            for one in known or ((None,) if work.sass[index].space == "global" else ()):
                found.setdefault(one, []).append(index)
    return found


def of_known_length(work: Work, loop: Loop) -> bool:
    """Whether the code says how often a loop runs, so that it can be unrolled, and the instruction cache holds that."""
    code = work.code
    compared = [work.sass[source] for source in code.sources(loop.last)]
    told = compared and all(
        one.opcode in ("ISETP", "UISETP") and any(_NUMBER.match(operand) for operand in one.operands)
        for one in compared
    )
    return bool(told) and len(loop) * rounds(work, loop) <= UNROLLED


def serving(work: Work, rows: set[int], through: tuple[str, ...] = ("",)) -> set[int]:
    """Instructions that do nothing but tell where these accesses go, and whether; or when these branches are taken.
    ``through`` loads of these spaces they are followed: with ``constant`` an index that a table tells is one of them.
    """
    code, sass, ran = work.code, work.sass, work.ran.tolist()

    def asked(at: int) -> Iterator[int]:
        line = sass[at]
        values = (
            {name for name in line.reads if name[0] == "R"} - line.places
            if at in rows and line.is_store
            else ()
        )
        made = (one for name in line.reads if name not in values for one in code.producers(at, name))
        return (one for one in made if ran[one] and sass[one].space in through)

    found = reached(chain.from_iterable(map(asked, rows)), asked)
    # What others read, too, stays; and so what it was made from.
    gone = found | rows
    waiting = list(found)
    while waiting:
        at = waiting.pop()
        if at in found and any(ran[use] and use not in gone for use in code.readers[at]):
            found.discard(at)
            if at not in rows:
                gone.discard(at)
            waiting += [source for source in code.sources(at) if source in found]
    return found


@once
def computing(work: Work) -> Mask:
    """What computes stored values and picks between them, or reads loaded ones: the rest finds and counts places."""
    code, sass = work.code, work.sass

    def made_of(sources: Iterable[int]) -> list[int]:
        return [one for one in sources if sass[one].space in ("", "constant")]

    stores = [at for at in np.flatnonzero(work.executed > 0).tolist() if sass[at].is_store]
    stored = ((at, name) for at in stores for name in sass[at].reads if name not in sass[at].places)
    values = (made_of(code.producers(at, name)) for at, name in stored if name[0] == "R")
    found = np.zeros(len(sass), dtype=bool)
    found[list(reached(chain.from_iterable(values), lambda at: made_of(code.sources(at))))] = True
    for first, last in code.functions:
        # A called division is for what takes its result over, behind the call.
        made = {name for at in range(first, last + 1) for name in work.sass[at].writes}
        calls = [at for at in code.callers((first, last)) if at + 1 < len(found)]
        of_values = [at for at in calls if found[at + 1] and made.intersection(work.sass[at + 1].reads)]
        often = work.executed
        found[first : last + 1] = 2.0 * float(often[of_values].sum()) > float(often[calls].sum())
    return found
