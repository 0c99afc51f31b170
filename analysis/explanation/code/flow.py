"""Control flow of a kernel's SASS: basic blocks, loops, and which instruction a register's value comes from.

Built from text alone, once for each code (`program` caches by the code's text, so that the launches of one
kernel share it, those of another process too).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from itertools import chain, compress, filterfalse, pairwise
from operator import attrgetter
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.opcodes import JUMPS, MATH_CLASSES, TARGET, Sass, operation, parse
from gemmprof.base.spread import grouped
from gemmprof.model import Instruction

COMPUTED = ("BRX", "BRXU", "JMX", "JMXU")  # jumps whose targets stand in no operand
PRODUCTS = frozenset({"FMUL", "FFMA", "DMUL", "DFMA"})
SEARCH = 400  # instructions that a backward search looks at before it gives up

_REGISTERS = re.compile(r"U?R\d+")
# A jump up to its target, which is the last address of the line: another one in each process.
_JUMP = re.compile(rf"^(.*\b(?:{'|'.join(JUMPS)})\b.*){TARGET}")
_FAR = re.compile(TARGET)  # few lines hold one


class Keeping(Protocol):
    """Something with a place for what is made of it once."""

    @property
    def kept(self) -> dict[object, object]:
        """What was made, by how."""


K = TypeVar("K", bound=Keeping)
T = TypeVar("T")
P = ParamSpec("P")


def once(function: Callable[Concatenate[K, P], T]) -> Callable[Concatenate[K, P], T]:
    """The function of a launch, or of code, with its answers kept beside that: each is made on the first call."""

    @wraps(function)
    def answer(of: K, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (function, args, tuple(kwargs.items())) if kwargs else (function, *args) if args else function
        kept = of.kept
        if key not in kept:
            kept[key] = function(of, *args, **kwargs)
        return kept[key]  # type: ignore[return-value]  # `cast` is a call, half a million times

    return answer


def reached(start: Iterable[int], onward: Callable[[int], Iterable[int]]) -> set[int]:
    """These instructions, and all that one comes to from them, step by step."""
    found = set(start)
    waiting = list(found)
    while waiting:
        for at in onward(waiting.pop()):
            if at not in found:
                found.add(at)
                waiting.append(at)
    return found


def turned(edges: Sequence[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """For each instruction those that name it, ascending: of what comes before each one what comes after it."""
    found: list[list[int]] = [[] for _ in edges]
    for index, named in enumerate(edges):
        for other in named:
            found[other].append(index)
    return tuple(map(tuple, found))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: indices of its first instruction and of the branch that goes back to it."""

    first: int
    last: int

    def __hash__(self) -> int:
        return self.last

    def __contains__(self, index: int) -> bool:
        return self.first <= index <= self.last

    def __len__(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Program:
    """The code of one kernel with the functions that it calls, in address order."""

    # the instructions as parsed; targets within the code are relative to its first instruction
    sass: tuple[Sass, ...]
    addresses: tuple[int, ...]  # their addresses, relative to the first
    masks: dict[object, npt.NDArray[np.bool_]] = field(default_factory=dict, repr=False, compare=False)
    """Which instructions a question is true for, by the code of the question (`Work.where`)."""
    kept: dict[object, object] = field(default_factory=dict, repr=False, compare=False)
    """What else follows from the code alone (`once`)."""

    @cached_property
    def index_of(self) -> dict[int, int]:
        """Index of the instruction at a relative address."""
        return {address: index for index, address in enumerate(self.addresses)}

    @cached_property
    def _operations(self) -> dict[str, npt.NDArray[np.int64]]:
        """Where each opcode with its modifiers stands."""
        found = grouped((line.full, at) for at, line in enumerate(self.sass))
        return {full: np.array(places) for full, places in found.items()}

    def where(
        self, wanted: Callable[[Sass], bool], told: dict[str, bool | None] | None = None
    ) -> npt.NDArray[np.bool_]:
        """A mask of the instructions that this holds for: asked once of each opcode with its modifiers, and of each
        line with that one where the question goes on to operands, which an opcode alone does not have. ``told``: what
        was answered for opcodes of other code, None for those.
        """
        found, told = np.zeros(len(self.sass), dtype=bool), {} if told is None else told
        for full in filterfalse(told.__contains__, self._operations):
            try:
                told[full] = bool(wanted(operation(full)))  # type: ignore[arg-type]
            except AttributeError:
                told[full] = None
        answers = [*map(told.get, self._operations)]
        for places in compress(self._operations.values(), answers):
            found[places] = True
        if None in answers:
            for places in compress(self._operations.values(), (one is None for one in answers)):
                found[places] = [wanted(self.sass[at]) for at in places.tolist()]
        return found

    def target(self, index: int) -> int | None:
        """Index of the instruction that this branch or call goes to, None if unknown."""
        target = self.sass[index].target
        return None if target is None else self.index_of.get(target)

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Instructions that may run just before each one (calls are taken to return)."""
        before: list[list[int]] = [[] for _ in self.sass]
        for index, line in enumerate(self.sass):
            falls = not line.ends_block or bool(line.guard) or "DIV" in line.modifiers
            if falls and index + 1 < len(before):
                before[index + 1].append(index)
            if line.opcode in ("BRA", "JMP", "CALL"):
                target = self.target(index)
                if target is not None and target != index:
                    before[target].append(index)
        # What nothing else leads to a table does (a switch).
        tables = [index for index, line in enumerate(self.sass) if line.opcode in COMPUTED]
        return tuple(tuple(found or (tables if at else ())) for at, found in enumerate(before))

    def taken(
        self, executed: npt.NDArray[np.float64], threads: npt.NDArray[np.float64]
    ) -> tuple[tuple[int, ...], ...]:
        """`predecessors` without the ways that no thread of a launch took: what never ran sets no register. The
        executions of each instruction by a warp tell, and the threads that were active in these, all together.
        """
        if not executed.any():
            return self.predecessors
        dead = set()
        for index in np.flatnonzero([line.is_branch and bool(line.guard) for line in self.sass]):
            at, behind, target = int(index), int(index) + 1, self.target(int(index))
            if target is None or target == behind or behind >= len(self.sass):
                continue
            # What came one way, the others went the other one; both are known where nothing else leads there.
            for one, other in ((behind, target), (target, behind)):
                if self.predecessors[one] == (at,):
                    if threads[one] >= threads[at]:
                        dead.add((at, other))
                    break
        ran = (executed > 0).tolist()
        return tuple(
            tuple(at for at in before if ran[at] and (at, index) not in dead) if ran[index] else before
            for index, before in enumerate(self.predecessors)
        )

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Loops, innermost (shortest) first. The empty one at the end of every kernel is left out, and what jumps back
        from a way around that stands behind the code (``BRA.DIV``), where nothing between leads there.
        """
        found = []
        for index, line in enumerate(self.sass):
            if line.opcode == "BRA":
                target = self.target(index)
                if target is not None and target < index:
                    found.append(Loop(target, index))
        return tuple(sorted(filter(self._goes_round, found), key=len))

    def _goes_round(self, loop: Loop) -> bool:
        """Whether what lies between leads from the first instruction to the branch back; or that branch alone leads to
        the first one, a part of a loop that stands before it.
        """
        before = self.predecessors
        alone = before[loop.first] == (loop.last,)
        return alone or loop.first in reached((loop.last,), lambda at: filter(loop.__contains__, before[at]))

    def loop_of(self, index: int) -> Loop | None:
        """The innermost loop around an instruction."""
        around = self.loops_around[index]
        return around[0] if around else None

    def within(self, loops: Iterable[Loop | None]) -> npt.NDArray[np.bool_]:
        """The instructions of these loops."""
        found = np.zeros(len(self.sass), dtype=bool)
        for loop in filter(None, loops):
            found[loop.first : loop.last + 1] = True
        return found

    def loops_of(self, places: Iterable[int]) -> npt.NDArray[np.bool_]:
        """The innermost loops around these instructions."""
        return self.within(self.loop_of(int(at)) for at in places)

    @cached_property
    def loops_around(self) -> tuple[tuple[Loop, ...], ...]:
        """The loops around each instruction, innermost first."""
        found: list[list[Loop]] = [[] for _ in self.sass]
        for loop in self.loops:
            for around in found[loop.first : loop.last + 1]:
                around.append(loop)
        return tuple(map(tuple, found))

    @cached_property
    def loop_bits(self) -> tuple[int, ...]:
        """The loops around each instruction as a number: a bit each, by their places in `loops`."""
        bits = {loop: 1 << number for number, loop in enumerate(self.loops)}
        return tuple(sum(bits[loop] for loop in around) for around in self.loops_around)

    @cached_property
    def by_data(self) -> npt.NDArray[np.bool_]:
        """Whether each instruction's result goes back to what was loaded, or exchanged."""
        return self.made_by(lambda line: line.space not in ("", "constant") or line.opcode in EXCHANGES)

    @cached_property
    def by_loads(self) -> npt.NDArray[np.bool_]:
        """Whether each instruction's result goes back to what was loaded, other than parameters."""
        return self.made_by(lambda line: line.fetches)

    def made_by(self, begins: Callable[[Sass], bool]) -> npt.NDArray[np.bool_]:
        """Which instructions these are, or get something from these."""
        found = [begins(line) for line in self.sass]
        self._spread(found, range(len(self.sass)))
        return np.array(found, dtype=bool)

    @cached_property
    def in_order(self) -> npt.NDArray[np.bool_]:
        """Instructions of loops whose rounds cannot change places: each leaves behind what it makes of the last one's
        result (a filter over time, a scan), or finds its load's place in what the last one loaded (a list).
        """
        return self.within(loop for loop in self.loops if self._is_in_order(loop))

    @cached_property
    def chased(self) -> npt.NDArray[np.bool_]:
        """Loads that find their place in what a round before loaded: a node's successor, and all else kept of it."""
        found = np.zeros(len(self.sass), dtype=bool)
        for loop in self.loops:
            first = {at for at in self.carried(loop) if self.sass[at].fetches}

            def onward(at: int, loop: Loop = loop, first: set[int] = first) -> list[int]:
                """No further than to the loads whose places are made of it, nor in loops within."""
                ends = self.sass[at].is_load and at not in first
                return [] if ends else [use for use in self.readers[at] if self.loop_of(use) == loop]

            found[[at for at in reached(first, onward) if self.sass[at].fetches]] = True
        return found

    def _is_in_order(self, loop: Loop) -> bool:
        inside = range(loop.first, loop.last + 1)
        found = [False] * len(self.sass)
        for at in self.carried(loop):
            if self.sass[at].fetches:
                return True
            # What counts rounds and moves places on is carried, too.
            found[at] = self.sass[at].instruction_class in MATH_CLASSES
        if not any(found):
            return False
        self._spread(found, inside)
        shared = [at for at in inside if self.sass[at].space == "shared"]
        if any(found[at] and self.sass[at].is_store for at in shared):
            for at in shared:
                found[at] |= self.sass[at].is_load
            self._spread(found, inside)
        # What a round stores is a result, or the next one may need it: where each takes memory of its own (a running
        # sum or extreme), threads only exchange what stands at the same place in all of them, as spills do.
        stores = [at for at in inside if found[at] and self.sass[at].is_store]
        if any(self.sass[at].space == "global" or self._moves(loop, at) for at in stores):
            return True
        walks = any(self._moves(loop, at, "global") for at in inside if stores)
        return bool(stores) and (not walks or self._exchanges_its_own(loop))

    def _exchanges_its_own(self, loop: Loop) -> bool:
        """Whether a round makes its result of what threads exchanged of the last one's (a recurrence over a block), and
        not by sums and extremes alone, whose order does not matter.
        """
        return any(
            one.instruction_class in MATH_CLASSES and one.opcode not in ANY_ORDER
            for ring in self._exchanged_rings(loop)
            for one in map(self.sass.__getitem__, ring)
        )

    @once
    def _exchanged_rings(self, loop: Loop) -> tuple[set[int], ...]:
        """Instructions of a loop that need one another's results round after round, through shared memory, too."""
        inside = range(loop.first, loop.last + 1)
        after = {at: set(uses) for at, uses in self.readers_within(loop).items()}
        stored, read = list[int](), False
        for at in inside:
            line = self.sass[at]
            if line.space != "shared":
                continue
            if line.is_load:
                read = True
                for one in stored:
                    after[one].add(at)
            elif line.is_store:
                stored, read = [*([] if read else stored), at], False
        return tuple(ring for ring in rings(after) if any(self.sass[at].space == "shared" for at in ring))

    def _moves(self, loop: Loop, at: int, space: str = "") -> bool:
        """Whether this accesses other memory in each round."""
        line = self.sass[at]
        if not line.places or (space and line.space != space):
            return False
        places = (one for one in self.of_place(at) if one in loop)
        made = reached(places, lambda one: [source for source in self.sources(one) if source in loop])
        return not made.isdisjoint(self.carried(loop))

    @once
    def carried(self, loop: Loop) -> tuple[int, ...]:
        """Instructions of a loop that need, round after round, their own result."""
        return tuple(sorted(set().union(*self._carried_rings(loop))))

    def _carried_rings(self, loop: Loop) -> Iterator[set[int]]:
        """The same, those together that need one another's."""
        # What comes back to itself within a loop does so in the whole code.
        found = rings(self.readers_within(loop, self._returning))
        if any(inner != loop and inner.first in loop for inner in self.loops):
            return (ring for ring in found if not self._begins_anew(ring, loop))
        return found

    @cached_property
    def _returning(self) -> frozenset[int]:
        """Instructions whose results come back to themselves."""
        return frozenset(at for ring in rings(dict(enumerate(self.readers))) for at in ring)

    @cached_property
    def _clearing(self) -> frozenset[int]:
        """What clears the lower half of a register for a masked load of 16 bits: nobody reads what is left above it."""
        return frozenset(
            at
            for at, line in enumerate(self.sass)
            if line.opcode == "PRMT" and line.operands[1:3] == ("RZ", "0x7610")
        )

    def readers_within(self, loop: Loop, some: Collection[int] | None = None) -> dict[int, tuple[int, ...]]:
        """For each instruction of a loop, or some, those of it that may read its result; what clears half of it does
        not.
        """
        found = {}
        inside = range(loop.first, loop.last + 1)
        for at in inside if some is None else filter(some.__contains__, inside):
            uses = self.readers[at]
            if not self._clearing.isdisjoint(uses):
                uses = tuple(use for use in uses if use not in self._clearing)
            if uses and not loop.first <= uses[0] <= uses[-1] <= loop.last:
                uses = uses[bisect_left(uses, loop.first) : bisect_right(uses, loop.last)]
            found[at] = uses
        return found

    @cached_property
    def one_after_another(self) -> npt.NDArray[np.bool_]:
        """Instructions of loops, in none around them, whose rounds make a floating-point state of the last one by more
        than sums, extremes and products with what does not depend on it (a quotient, a power, a step of a motion): no
        scan joins pieces of them.
        """
        return self.within(
            loop
            for loop in self.loops
            if not any(loop.first in one for one in self.loops if one != loop)
            and any(map(self._multiplies_itself, (*self._carried_rings(loop), *self._exchanged_rings(loop))))
        )

    def _multiplies_itself(self, ring: set[int]) -> bool:
        """Whether what goes round goes through a function, or is multiplied by itself."""

        def comes_round(at: int, factor: str) -> bool:
            return any(not ring.isdisjoint(self.producers(at, name)) for name in _REGISTERS.findall(factor))

        return any(
            self.sass[at].opcode == "MUFU"
            or (
                self.sass[at].opcode in PRODUCTS
                and all(comes_round(at, factor) for factor in self.sass[at].operands[1:3])
            )
            for at in ring
        )

    def _begins_anew(self, ring: set[int], loop: Loop) -> bool:
        """Whether all that goes round does so in loops within this one (a sum over a row), and is set before in every
        round of this one, if only for those that go on with it.
        """
        kept = {name for at in ring for name in self.sass[at].writes}
        reads = ((at, name) for at in ring for name in self.sass[at].reads if name in kept)
        comes_from = [(at, self.producers(at, name)) for at, name in reads]
        return all(
            any(loop.first <= one < at and one not in ring and self._sets(one) for one in sources)
            for at, sources in comes_from
            if any(at <= one and one in ring for one in sources)
        )

    def _sets(self, at: int) -> bool:
        """Whether a register holds something else behind it: a constant under a guard may be none for most."""
        line = self.sass[at]
        return not line.guard or any(name != line.guard.strip("@!") for name in line.reads)

    def _spread(self, found: list[bool], places: range) -> None:
        """Mark what reads something marked, until nothing is new."""
        marked = (at for at, one in enumerate(found) if one)
        for at in reached(marked, lambda at: [use for use in self.readers[at] if use in places]):
            found[at] = True

    @cached_property
    def functions(self) -> tuple[tuple[int, int], ...]:
        """First and last index of each function that is called within the code (``CALL.REL``), ascending."""
        starts = sorted(target for target in self._calls if target is not None)
        returns = [index for index, line in enumerate(self.sass) if line.opcode == "RET"]
        spans = []
        # A function may have several returns: it ends with the last one before the next function starts.
        for start, limit in pairwise([*starts, len(self.sass)]):
            behind = min((at for at in returns if at >= limit), default=len(self.sass) - 1)
            spans.append((start, max((at for at in returns if start <= at < limit), default=behind)))
        return tuple(spans)

    @cached_property
    def _calls(self) -> dict[int | None, list[int]]:
        """Indices of the calls by the index of what they call."""
        found: dict[int | None, list[int]] = {}
        for index, line in enumerate(self.sass):
            if line.opcode == "CALL":
                found.setdefault(self.target(index), []).append(index)
        return found

    def callers(self, function: tuple[int, int]) -> tuple[int, ...]:
        """Indices of the calls that go to a function."""
        return tuple(self._calls.get(function[0], ()))

    def producers(self, index: int, register: str) -> tuple[int, ...]:
        """Instructions whose result may stand in a register (or predicate) when this instruction reads it.

        A guarded producer may leave the older value standing, so the search goes on behind it.
        """
        known = self._producers[index]
        if register not in known:
            writers, start = self.writers.get(register, []), self.block_starts[index]
            before = writers[bisect_left(writers, start) : bisect_left(writers, index)]
            known[register] = self._standing(index, register, tuple(reversed(before)))
        return known[register]

    @cached_property
    def _producers(self) -> list[dict[str, tuple[int, ...]]]:
        """`producers` of each instruction by register: of all that it reads, others once they were asked for."""
        found: list[dict[str, tuple[int, ...]]] = []
        before: dict[str, tuple[int, ...]] = {}  # what wrote in the same block, latest first
        for index, line in enumerate(self.sass):
            if self.block_starts[index] == index:
                before = {}
            found.append({name: self._standing(index, name, before.get(name, ())) for name in line.reads})
            for name in line.writes:
                before[name] = (index, *before.get(name, ())) if line.when else (index,)
        return found

    def _standing(self, index: int, register: str, before: tuple[int, ...]) -> tuple[int, ...]:
        """Of what wrote a register before in the same block, and came to it, what may stand there, latest first."""
        when = self.sass[index].when
        for place, at in enumerate(before):
            # Under the same condition as the reader it leaves no older value standing.
            if self.sass[at].when in ("", when):
                return before[: place + 1]
        if register not in self.writers:
            return ()
        entering = self._entering(self.block_starts[index], register, when)
        return tuple(dict.fromkeys((*before, *entering))) if before else entering

    def sources(self, index: int) -> frozenset[int]:
        """Instructions whose results this one may read, in whatever register."""
        return self._sources[index]

    def made_of(self, results: Iterable[int]) -> set[int]:
        """These instructions and what their results are made of, up to what comes from memory, parameters included."""
        return reached(results, lambda at: () if self.sass[at].space else self._sources[at])

    def placed_by(self, index: int) -> set[int]:
        """What tells where an instruction accesses memory, up to what comes from there itself."""
        return self.made_of(self.of_place(index))

    def of_place(self, index: int) -> set[int]:
        """What makes the registers that tell where an instruction accesses memory."""
        return {source for name in self.sass[index].places for source in self.producers(index, name)}

    def of_values(self, index: int) -> set[int]:
        """What makes the registers whose values it stores or adds there."""
        line = self.sass[index]
        names = (name for name in line.reads if name not in line.places)
        return {source for name in names for source in self.producers(index, name)}

    @cached_property
    def _sources(self) -> tuple[frozenset[int], ...]:
        return tuple(
            frozenset(chain.from_iterable(map(known.__getitem__, line.reads)))
            for known, line in zip(self._producers, self.sass, strict=True)
        )

    @cached_property
    def block_starts(self) -> tuple[int, ...]:
        """For each instruction the first one of its basic block."""
        starts: list[int] = []
        for index, before in enumerate(self.predecessors):
            starts.append(starts[-1] if before == (index - 1,) else index)
        return tuple(starts)

    @cached_property
    def writers(self) -> dict[str, list[int]]:
        """Indices of the instructions that write each register, ascending."""
        found: dict[str, list[int]] = {}
        for index, line in enumerate(self.sass):
            for register in line.writes:
                found.setdefault(register, []).append(index)
        return found

    @once
    def _entering(self, start: int, register: str, when: str) -> tuple[int, ...]:
        """Instructions whose result may stand in a register where a block begins, latest first."""
        return self._reaching(when if (register, when) in self._conditions else "").at(start, register)

    @once
    def _reaching(self, when: str) -> _Reaching:
        return _Reaching(self, when)

    @cached_property
    def _conditions(self) -> frozenset[tuple[str, str]]:
        """Registers with the conditions under which they are written."""
        return frozenset((name, line.when) for line in self.sass for name in line.writes)

    def preceding(self, index: int, wanted: Callable[[Sass], bool]) -> tuple[int, ...]:
        """The nearest instructions before this one, on every way to it, that are wanted."""
        found: list[int] = []
        seen: set[int] = set()
        waiting = list(self.predecessors[index])
        while waiting and len(seen) < SEARCH:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if wanted(self.sass[at]):
                found.append(at)
            else:
                waiting += self.predecessors[at]
        return tuple(found)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each instruction those that may read its result, ascending: on every way from it to them."""
        return turned(self._sources)

    def consumers(self, index: int, limit: int = 200) -> tuple[int, ...]:
        """Instructions behind this one, in address order, that read its result before it is written again."""
        return tuple(at for at in self.readers[index] if index < at <= index + limit)


class _Reaching:
    """Which results may stand in registers where each block begins: a set of bits a block, one bit a writer. Where they
    are read under a condition (``when``), only of the registers that are written under it.
    """

    def __init__(self, code: Program, when: str) -> None:
        self._writers = code.writers
        self._first: dict[str, int] = {}
        bits = 0
        for name, writers in code.writers.items():
            if not when or (name, when) in code._conditions:
                self._first[name] = bits
                bits += len(writers)
        ways, left = self._ways(code, when)
        self._entering = dict.fromkeys(ways, 0)
        # What a block hands on to those behind it, until nothing is new.
        behind: dict[int, list[int]] = {}
        for start, ends in ways.items():
            for end in ends:
                behind.setdefault(code.block_starts[end], []).append(start)
        waiting = dict.fromkeys(reversed(ways))
        while waiting:
            start, _ = waiting.popitem()
            found = 0
            for end in ways[start]:
                made, kept = left[end]
                bits = self._entering[code.block_starts[end]]
                # A block that writes nothing hands on what it found: long code has thousands of both.
                bits = made | bits & kept if made or kept != -1 else bits
                found = bits if found in (0, bits) else found | bits
            if found != self._entering[start]:
                self._entering[start] = found
                waiting.update(dict.fromkeys(behind.get(start, ())))

    def _ways(
        self, code: Program, when: str
    ) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, int]]]:
        """For each block where one comes to it from; for each of these the bits that its block sets, and leaves."""
        starts = code.block_starts
        ways = {at: code.predecessors[at] for at, start in enumerate(starts) if at == start}
        ends = {end for before in ways.values() for end in before}
        left: dict[int, tuple[int, int]] = {}
        made, kept = 0, -1
        place = dict.fromkeys(self._first, 0)
        others = {
            name: ~(((1 << len(self._writers[name])) - 1) << first) for name, first in self._first.items()
        }
        for at, line in enumerate(code.sass):
            if starts[at] == at:
                made, kept = 0, -1
            for name in line.writes:
                if name in place:
                    first, mine = self._first[name], place[name]
                    place[name] = mine + 1
                    if line.when in ("", when):
                        made, kept = made & others[name], kept & others[name]
                    made |= 1 << first + mine
            if at in ends:
                left[at] = made, kept
        return ways, left

    def at(self, start: int, register: str) -> tuple[int, ...]:
        """Those of one register where a block begins, latest first."""
        writers = self._writers[register]
        bits = self._entering[start] >> self._first[register] & ((1 << len(writers)) - 1)
        found = []
        while bits:
            last = bits.bit_length() - 1
            found.append(writers[last])
            bits ^= 1 << last
        return tuple(dict.fromkeys(found))


# Sums and extremes.
ANY_ORDER = frozenset({"FADD", "DADD", "HADD2", "FMNMX", "FMNMX3", "HMNMX2"})
# What gives a value that its registers alone do not tell.
EXCHANGES = frozenset({"SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "CALL", "CS2R", "RED", "ATOM"})


def rings(after: Mapping[int, Collection[int]]) -> Iterator[set[int]]:
    """What reaches itself in one step or more, together with all that lies on the way.

    Tarjan's strongly connected components, in one pass: code of one long loop has thousands of instructions. The way
    that is followed is a list of its own, for it is longer than Python lets functions call each other.
    """
    number: dict[int, int] = {}  # in the order in which they were met
    lowest: dict[int, int] = {}  # number of the earliest one open that can be reached
    opened: dict[int, None] = {}
    for start in after:
        way = [(start, iter(after[start]))] if start not in number else []
        while way:
            at, left = way[-1]
            if at not in number:
                number[at] = lowest[at] = len(number)
                opened[at] = None
            for one in left:
                if one not in after:
                    continue
                if one not in number:
                    way.append((one, iter(after[one])))
                    break
                if one in opened:
                    lowest[at] = min(lowest[at], lowest[one])
            else:
                way.pop()
                if way:
                    lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[at])
                if lowest[at] == number[at]:
                    ring = set()
                    while at not in ring:
                        ring.add(opened.popitem()[0])
                    if len(ring) > 1 or at in after[at]:
                        yield ring


def program(instructions: Sequence[Instruction]) -> Program:
    """The control flow of a kernel's code; cached by its text and relative addresses."""
    first, last = (instructions[0].address, instructions[-1].address) if instructions else (0, 0)

    def relative(jump: re.Match[str]) -> str:
        target = int(jump[2], 16)
        return f"{jump[1]}0x{target - first:06x}" if first <= target <= last else jump[0]

    return _program(
        tuple(
            (line.address - first, _JUMP.sub(relative, line.sass) if _FAR.search(line.sass) else line.sass)
            for line in instructions
        )
    )


@lru_cache(maxsize=64)
def _program(lines: tuple[tuple[int, str], ...]) -> Program:
    sass, addresses = [parse(text) for _, text in lines], tuple(address for address, _ in lines)
    for index, line in enumerate(sass):
        if line.opcode == "CALL" and line.target in addresses:
            # Compilers before 12 write far jumps as calls: what they lead to ends the kernel, and never returns.
            behind = sass[addresses.index(line.target) :]
            ends = (one.opcode for one in behind if one.opcode in ("RET", "EXIT") and not one.guard)
            if next(ends, "") == "EXIT":
                sass[index] = parse(line.text.replace(line.full, "BRA"))
    return Program(tuple(sass), addresses)


# --- Attribution ------------------------------------------------------------------------------------------------------
# Attribution: a stalled sample counts against the instruction whose result, or whose queue, the warp waits for.
#
# Nsight Compute puts a sample on the instruction that cannot issue. What it waits for is another one: the
# load that fills a register it reads (long scoreboard), the shared load, conversion or special function
# (short scoreboard), the arithmetic of a fixed latency just before (wait). Full queues (lg, mio, tex and math
# pipe throttle) are the fault of the stalled instruction's own kind. A wait at a barrier is shared out over
# what the other warps do meanwhile, by `barrier_work`.


LONG = "long_scoreboard"
SHORT = "short_scoreboard"
WAIT = "wait"
BARRIER = "barrier"
SELECTED = "selected"
NO_INSTRUCTION, NO_CONSTANT = "no_instruction", "imc_miss"
BRANCH = "branch_resolving"


# What the next instruction waits for until it is known where the warp goes on.
TURNS = frozenset({"BRA", "BRX", "BSYNC", "CALL", "RET", "JMP", "BREAK", "WARPSYNC"})


@once
def producers(code: Program, index: int, reason: str) -> tuple[int, ...]:
    """Indices of the instructions that a stall at ``index`` counts against; itself where none is found."""
    found: tuple[int, ...] = ()
    if reason in (LONG, SHORT):
        found = _awaited(code, index, attrgetter("long_latency" if reason == LONG else "short_latency"))
    elif reason == WAIT:
        found = (index - 1,) if index - 1 in code.predecessors[index] else ()
    elif reason == BRANCH:
        found = tuple(at for at in code.predecessors[index] if code.sass[at].opcode in TURNS)
    elif reason == "drain":
        found = code.preceding(index, lambda line: line.is_store)[:4]
    return found or (index,)


def _awaited(code: Program, index: int, kind: Callable[[Sass], bool]) -> tuple[int, ...]:
    """Producers of this kind among what the instruction reads or overwrites; else the nearest one before it."""
    line = code.sass[index]
    made = (at for name in (*line.reads, *line.writes) for at in code.producers(index, name))
    found = tuple(dict.fromkeys(at for at in made if kind(code.sass[at])))
    if not found and line.writes:
        # A load may not overwrite a register that an earlier store or load still reads (write after read).
        written = set(line.writes)
        found = code.preceding(index, lambda other: kind(other) and not written.isdisjoint(other.reads))
    if not found and line.opcode in ("DEPBAR", "LDGDEPBAR", "BAR", "ARRIVES", "SYNCS", "EXIT", "BRA"):
        found = code.preceding(index, kind)[:4]
    return found
