"""Symbolic execution of SASS: the value of a register as a sum over what a thread knows of its place.

A value is a sum of products: known symbols (a kernel parameter, the block's index, the trips of a loop, what was
loaded) times a whole number, or times one whole number a thread where it depends on the thread's index. Thread indices
stand as the numbers that they are in a block of the recorded shape, so that masks, shifts and divisions of them are
exact. What cannot be said so is a symbol of its own, which knows what it depends on.

Of the two registers of a 64-bit value the lower one stands for the whole: addresses are computed by additions and
multiplications, which never ask for the carry. Indices are taken to be nonnegative. Both are checked where it counts,
by what the hardware saw (`address_forms`).
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial, reduce

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.explanation.code.flow import Program
from gemmprof.analysis.opcodes import Sass
from gemmprof.gpu.arch import WARP

Threads = npt.NDArray[np.int64]
"""A whole number for each thread of a block, in the order of their numbers."""
Coefficient = int | Threads

DEEPEST = 70  # instructions between a value and what it comes from, at most: Python's stack is not endless
AXES = ("X", "Y", "Z")  # as special registers name them; a report may hold others
MOST_SYMBOLS = 20_000  # of a kernel: a long one has 3,000, a state machine in registers made millions
LARGEST = 12  # terms of a sum, above which it is a symbol of its own
SIGN = 31  # the shift that leaves nothing but the sign
BEYOND = 2.0**32  # what no register of 32 bits holds


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """Something that the code alone does not tell."""

    # ``parameter``, ``block`` (its index in the grid), ``grid`` (how many there are), ``trip`` (of a loop),
    # ``loaded``, ``computed`` (not by additions and products), ``shifted`` (right, by its name) or ``merged`` (from
    # several ways)
    kind: str
    name: object  # a parameter's offset, ``x``, a loop's first instruction, an instruction's number
    lanes: bool = False  # it differs between the threads of a warp
    threads: bool = False  # it differs between the threads of a block
    looked_up: bool = False  # it goes back to a loaded value
    blocks: bool = False  # it differs between blocks
    loops: frozenset[int] = frozenset()  # first instructions of the loops in which it changes
    pending: frozenset[Symbol] = frozenset()


Product = tuple[Symbol, ...]
"""Symbols that are multiplied, none for the number 1."""


class Value:
    """A sum: a coefficient for each product of symbols."""

    __slots__ = ("_key", "terms")

    def __init__(self, terms: dict[Product, Coefficient]) -> None:
        self.terms = terms
        self._key: object = None

    @property
    def key(self) -> object:
        """Equal for equal values."""
        if self._key is None:
            self._key = frozenset(
                (product, one if isinstance(one, int) else one.tobytes())
                for product, one in self.terms.items()
            )
        return self._key

    @property
    def number(self) -> Coefficient | None:
        """The value where it holds no symbol."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def constant(self) -> int | None:
        """The value where it is one number for all threads."""
        number = self.number
        return number if isinstance(number, int) else None

    @property
    def symbols(self) -> set[Symbol]:
        """All that it holds."""
        return {symbol for product in self.terms for symbol in product}

    @property
    def uniform(self) -> bool:
        """The same for all threads of a block, and so in what `Value.varying` leaves."""
        return all(
            isinstance(one, int) and not any(symbol.threads or symbol.lanes for symbol in product)
            for product, one in self.terms.items()
        )

    @property
    def lane_uniform(self) -> bool:
        """The same for all threads of a warp."""
        return not any(symbol.lanes for symbol in self.symbols) and all(
            isinstance(one, int) or _warps_alike(one) for one in self.terms.values()
        )


def _warps_alike(numbers: Threads) -> bool:
    whole = len(numbers) - len(numbers) % WARP
    rows = numbers[:whole].reshape(-1, WARP)
    rest = numbers[whole:]
    return bool((rows == rows[:, :1]).all()) and bool((rest == rest[:1]).all())


def wrapped(number: int) -> int:
    """What 64 bits keep of a number, signed: registers hold no more, nor do numpy's integers."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


def _plain(number: Coefficient) -> Coefficient:
    """One number where all threads have the same."""
    if isinstance(number, int):
        return wrapped(number)
    first = int(number[0])
    return first if (number == first).all() else number


def of(number: Coefficient) -> Value:
    """A value without symbols."""
    number = _plain(number)
    return Value({}) if isinstance(number, int) and number == 0 else Value({(): number})


ZERO, ONE = of(0), of(1)


def symbol_value(symbol: Symbol) -> Value:
    """The value that a symbol stands for."""
    return Value({(symbol,): 1})


def add(one: Value, two: Value, factor: int = 1) -> Value:
    """``one + factor * two``."""
    if not two.terms:
        return one
    if not one.terms and factor == 1:
        return two
    terms = dict(one.terms)
    factor = wrapped(factor)
    for product, number in two.terms.items():
        found = _plain(terms.get(product, 0) + (number if factor == 1 else _plain(factor * number)))
        if isinstance(found, int) and found == 0:
            terms.pop(product, None)
        else:
            terms[product] = found
    return Value(terms)


def scaled(value: Value, factor: int) -> Value:
    """``factor * value``."""
    return value if factor == 1 else add(ZERO, value, factor)


def product(one: Value, two: Value) -> Value | None:
    """``one * two``; None where that has too many terms."""
    if len(one.terms) * len(two.terms) > LARGEST:
        return None
    found = ZERO
    for left, first in one.terms.items():
        for right, second in two.terms.items():
            together = tuple(sorted((*left, *right), key=id))
            if len(together) > 3:
                return None
            number = _plain(first * second)
            if not (isinstance(number, int) and number == 0):
                found = add(found, Value({together: number}))
    return found


def _divides(by: int, value: Value) -> bool:
    """Whether every term is a multiple of this number, whatever its symbols are."""
    return all(
        one % by == 0 if isinstance(one, int) else bool((one % by == 0).all()) for one in value.terms.values()
    )


def parted(value: Value, by: int) -> tuple[Value, Coefficient] | None:
    """``value = by * quotient + remainder`` with known remainders of 0 to ``by - 1``; None if they are not known."""
    number = value.terms.get((), 0)
    rest = {product: one for product, one in value.terms.items() if product}
    if not _divides(by, Value(rest)):
        return None
    terms: dict[Product, Coefficient] = {product: _plain(one // by) for product, one in rest.items()}
    return add(Value(terms), of(number // by)), _plain(number % by)


_OPERAND = re.compile(r"^([-~!]?)\|?(UR|R|UP|P)?(\d+|Z|T)?")
_CONSTANT = re.compile(r"^(-?)c\[(0x[0-9a-f]+)\]\[(.*)\]")
_PREDICATE = re.compile(r"^!?U?P(\d|T)$")
_UNKNOWN = re.compile(r"(?<!\w)U?R\d|c\[")


@dataclass(frozen=True, slots=True)
class _Code:
    """An instruction as the evaluation needs it: operands without predicates."""

    line: Sass
    result: str
    sources: tuple[str, ...]


@lru_cache(maxsize=65536)
def _code(line: Sass) -> _Code:
    # Predicates that it sets stand beside its result; those that it reads are left out, too.
    operands = [one for one in line.operands if not _PREDICATE.match(one)]
    result = operands.pop(0).split(".")[0] if operands and line.writes else ""
    if line.opcode == "IMAD" and "HI" in line.modifiers:
        # What is added has 64 bits: its upper register counts.
        operands[2:] = [
            re.sub(r"(?<=^R)\d+", lambda one: str(int(one[0]) + 1), text) for text in operands[2:]
        ]
    return _Code(line, result, tuple(operands))


_READ_ANEW = ("S2R", "S2UR", "LDC", "LDCU", "ULDC", "MOV", "UMOV")


class Values:
    """The values in the registers of one kernel, for blocks of one shape."""

    def __init__(
        self,
        program: Program,
        block: tuple[int, int, int],  # threads of it along x, y and z
        capability: int,  # of the GPU that it is made for, times 10: it tells where parameters lie
        # instructions that run just before each one, where a launch did not take all ways (`Program.taken`)
        before: tuple[tuple[int, ...], ...] | None = None,
    ) -> None:
        self.program = program
        self.predecessors = program.predecessors if before is None else before
        # A launch that was not recorded whole may have no block: then as little is known as of one thread.
        self.block = block = (max(1, block[0]), max(1, block[1]), max(1, block[2]))
        self.threads = block[0] * block[1] * block[2]
        self.capability = capability
        number = np.arange(self.threads, dtype=np.int64)
        self._index = {
            "SR_TID.X": of(number % block[0]),
            "SR_TID.Y": of(number // block[0] % block[1]),
            "SR_TID.Z": of(number // (block[0] * block[1])),
            "SR_LANEID": of(number % WARP),
        }
        self._symbols: dict[object, Symbol] = {}
        self._memo: dict[tuple[int, str, str], Value] = {}
        # How each symbol is computed that is no sum: from its inputs by a function of numbers, if anybody knows one.
        self.made: dict[Symbol, tuple[tuple[Value, ...], Callable[..., Coefficient | None] | None]] = {}
        self._log: list[tuple[int, str, str]] = []
        # Kept values that hold a place holder, by it.
        self._holding: dict[Symbol, list[tuple[int, str, str]]] = {}
        self._returned: dict[tuple[int, str], Value] = {}  # by a call, in a register
        # Registers at the heads of loops that a round was found to change: nobody asks again.
        self._changing: set[tuple[int, str, str]] = set()
        self._depth = 0
        self._writers, self._starts = program.writers, program.block_starts
        # The calls of functions that write each register.
        self._calls: dict[str, list[int]] = {}
        for first, last in program.functions:
            for name in {name for line in program.sass[first : last + 1] for name in line.writes}:
                self._calls.setdefault(name, []).extend(program.callers((first, last)))

    # --- Symbols ---

    def symbol(self, kind: str, name: object, **of_it: bool | frozenset[int]) -> Symbol:
        """The symbol of this kind and name, always the same one."""
        key = kind, name
        if key not in self._symbols:
            self._symbols[key] = Symbol(kind, name, **of_it)  # type: ignore[arg-type]
        return self._symbols[key]

    def unknown(
        self,
        kind: str,
        name: object,
        *inputs: Value,
        looked_up: bool = False,
        by: Callable[..., Coefficient | None] | None = None,
    ) -> Value:
        """A symbol that depends on these values and is nothing better known; ``by`` computes it from numbers."""
        key = kind, name, tuple(one.key for one in inputs)
        if key in self._symbols:
            return symbol_value(self._symbols[key])
        symbols = {symbol for one in inputs for symbol in one.symbols}
        threads = not all(one.uniform for one in inputs)
        pending = frozenset(
            other
            for symbol in symbols
            for other in (symbol.pending or ({symbol} if symbol.kind == "pending" else ()))
        )
        self._symbols[key] = Symbol(
            kind,
            name,
            lanes=threads and not all(one.lane_uniform for one in inputs),
            threads=threads,
            looked_up=looked_up or any(symbol.looked_up for symbol in symbols),
            blocks=any(symbol.blocks for symbol in symbols),
            loops=frozenset(loop for symbol in symbols for loop in symbol.loops),
            pending=pending,
        )
        self.made[self._symbols[key]] = inputs, by
        return symbol_value(self._symbols[key])

    # --- Registers ---

    def before(self, index: int, register: str, when: str = "") -> Value:
        """The value of a register when this instruction reads it; ``when`` is the predicate that it runs under: what
        was written under it, too, is what it reads.
        """
        return self._in_block(index - 1, self._starts[index], register, when)

    def after(self, index: int, register: str) -> Value:
        """The value of a register that this instruction has just written."""
        return self._in_block(index, self._starts[index], register, "")

    def _in_block(self, last: int, start: int, register: str, when: str) -> Value:
        """The value behind instruction ``last`` of the block that begins at ``start``."""
        writers = self._writers.get(register, ())
        place = bisect_right(writers, last) - 1
        at = writers[place] if place >= 0 else -1
        for call in self._calls.get(register, ()):
            if start <= call <= last and call > at:
                if (call, register) not in self._returned:
                    self._returned[call, register] = self._made_by_call(call, register)
                return self._returned[call, register]
        if at < start:
            return self._entering(start, register, when)
        found = self._result(at, register, when)
        if self.program.sass[at].when in ("", when):
            return found
        older = self._in_block(at - 1, start, register, when)
        second = self.condition(at, self.program.sass[at].when)
        # In which rounds all threads take it; of bounds, which are for few threads, nothing.
        told = [one for one in self.compared(at, self.program.sass[at].when) if one.uniform]
        return self._merged(("guard", at, register), [older, found], second, told)

    def _made_by_call(self, call: int, register: str) -> Value:
        """What a function left there; it may have made it of anything: another one for each thread, in each round."""
        around = frozenset(loop.first for loop in self.program.loops_around[call])
        body = (one for one in self.program.functions if call in self.program.callers(one))
        first, end = next(body, (0, -1))
        data = any(self.program.by_loads[one] for one in self._writers[register] if first <= one <= end)
        of_it = self.symbol(
            "computed", ("returned", call), lanes=True, threads=True, looked_up=data, loops=around
        )
        return self.unknown("computed", ("call", call, register), symbol_value(of_it))

    @property
    def _any_thread(self) -> Value:
        return symbol_value(self.symbol("computed", "thread", lanes=True, threads=True))

    def _entering(self, start: int, register: str, when: str) -> Value:
        key = -1 - start, register, when
        if key in self._memo:
            return self._memo[key]
        before = self.predecessors[start]
        if not before or self._depth > DEEPEST:
            return self.unknown("computed", ("entry", start, register), self._any_thread)
        self._depth += 1
        try:
            if len(before) > 1 or before[0] >= start:
                return self._joined(key, before)
            found = self._in_block(before[0], self._starts[before[0]], register, when)
            self._keep(key, found)
            return found
        finally:
            self._depth -= 1

    def _keep(self, key: tuple[int, str, str], value: Value) -> None:
        self._log.append(key)
        self._hold(key, value)

    def _hold(self, key: tuple[int, str, str], value: Value) -> None:
        self._memo[key] = value
        for factors in value.terms if self._holding else ():
            for symbol in factors:
                for one in symbol.pending or (symbol,):
                    if (holding := self._holding.get(one)) is not None:
                        holding.append(key)

    def _forget(self, mark: int) -> None:
        """Values that were kept since then."""
        for key in self._log[mark:]:
            self._memo.pop(key, None)
        del self._log[mark:]

    def _joined(self, key: tuple[int, str, str], before: tuple[int, ...]) -> Value:
        start, register, when = -1 - key[0], key[1], key[2]
        starts = self._starts
        forward = [at for at in before if at < start]
        back = [at for at in before if at >= start]
        entering = [self._in_block(at, starts[at], register, when) for at in forward]
        first = self._merged(("join", start, register), entering) if entering else ZERO
        changes, last = self._writers.get(register, ()), max(before)
        within = changes[bisect_left(changes, start) : bisect_right(changes, last)]
        if not within and not any(start <= call <= last for call in self._calls.get(register, ())):
            self._keep(key, first)  # no loop that begins here writes it
            return first
        pending = Symbol("pending", key)
        self._holding[pending] = []
        mark = len(self._log)
        self._keep(key, symbol_value(pending))
        rounds = [self._in_block(at, starts[at], register, when) for at in back]
        if key not in self._changing and all(self.program.sass[at].opcode in _READ_ANEW for at in within):
            # A round that leaves what it finds, where that is what was there before the loop, never changes it.
            self._forget(mark)
            self._keep(key, first)
            if all(self._in_block(at, starts[at], register, when).key == first.key for at in back):
                return first
            self._changing.add(key)
            self._forget(mark)
            self._keep(key, symbol_value(pending))
            rounds = [self._in_block(at, starts[at], register, when) for at in back]
        found = self._of_rounds(start, register, pending, first, rounds)
        # What was computed with the place holder is computed again, or holds what it stands for now.
        for other in self._holding.pop(pending):
            value = self._memo.get(other)
            if value is None or other == key:
                continue
            made_of_it = any(pending in symbol.pending for symbol in value.symbols)
            replaced = None if made_of_it else _replaced(value, pending, found)
            if replaced is None:
                del self._memo[other]
            elif pending in value.symbols:
                self._hold(other, replaced)
        self._hold(key, found)
        return found

    def _of_rounds(
        self, start: int, register: str, pending: Symbol, first: Value, rounds: list[Value]
    ) -> Value:
        """What a register holds at the head of a loop, from what it holds before it and after a round."""
        itself = symbol_value(pending)
        steps = [add(one, itself, -1) for one in rounds]
        if all(not one.terms for one in steps):
            return first
        trip = symbol_value(self.symbol("trip", start, loops=frozenset((start,))))
        if len({one.key for one in steps}) == 1 and not any(
            symbol is pending or pending in symbol.pending or start in symbol.loops
            for symbol in steps[0].symbols
        ):
            moved = product(steps[0], trip)
            if moved is not None:
                return add(first, moved)
        inputs = [first, *(value for one in rounds if (value := _replaced(one, pending, first)) is not None)]
        # What differs between threads stays as it is, where all rounds only change what all threads share.
        rest = [add(value, first, -1) for value in inputs]
        shared = all(value.uniform for value in rest)
        found = self.unknown("merged", ("loop", start, register), trip, *(rest if shared else inputs))
        return add(first, found) if shared else found

    def condition(self, at: int, predicate: str) -> Value | None:
        """Whether a predicate holds where this instruction reads it; None where no comparison of what is known says."""
        sources = self.program.producers(at, predicate.strip("!"))
        start = self.program.block_starts[at]
        if len(sources) != 1 or not start <= sources[0] < at or self._depth > DEEPEST:
            return None
        line = self.program.sass[sources[0]]
        if line.opcode not in ("ISETP", "UISETP") or line.guard or "EX" in line.modifiers:
            return None
        targets, (one, two), rest = line.operands[:2], line.operands[2:4], line.operands[4:]
        compare = _COMPARES.get(line.modifiers[0])
        # Another predicate may have to hold as well, or suffice.
        join = {"AND": np.logical_and, "OR": np.logical_or}.get(line.modifiers[-1])
        other = ONE if rest[:1] in ((), ("PT",)) else self.condition(sources[0], rest[0])
        if compare is None or predicate.strip("!") != targets[0] or join is None or other is None:
            return None
        self._depth += 1
        inputs = [*(self.operand(sources[0], text) for text in (one, two)), other]
        self._depth -= 1
        wanted = predicate[0] != "!"
        for symbol in self.behind(inputs):
            # Nothing in them may have been loaded, or computed as nobody knows.
            known = symbol.kind in ("parameter", "block", "grid", "trip")
            if not known and self.made.get(symbol, ((), None))[1] is None:
                return None
        return self.unknown(
            "condition",
            (line.full, wanted),
            *inputs,
            by=lambda a, b, c: (join(compare(a, b), c) == wanted).astype(np.int64),
        )

    def compared(self, at: int, predicate: str) -> list[Value]:
        """What a predicate is made of that this instruction reads, as far as one instruction before tells it."""
        sources = self.program.producers(at, predicate.strip("!"))
        if len(sources) != 1 or self._depth > DEEPEST:
            return []
        line = self.program.sass[sources[0]]
        self._depth += 1
        # Behind the two predicates that a comparison sets stand what it compares.
        found = (
            [self.operand(sources[0], text) for text in line.operands[2:4]]
            if line.opcode in ("ISETP", "UISETP")
            else self.sources(sources[0], _code(line), "")
        )
        self._depth -= 1
        return found

    def behind(self, values: Iterable[Value]) -> Iterator[Symbol]:
        """The symbols that values hold, and those that these are computed from."""
        waiting, seen = [symbol for one in values for symbol in one.symbols], set[Symbol]()
        while waiting:
            symbol = waiting.pop()
            if symbol not in seen:
                seen.add(symbol)
                yield symbol
                waiting += [other for one in self.made.get(symbol, ((), None))[0] for other in one.symbols]

    def _merged(
        self, name: object, values: Iterable[Value], second: Value | None = None, told: Sequence[Value] = ()
    ) -> Value:
        """One of these values, nobody knows which; the second one where that is not 0. ``told``: what else tells."""
        several = list(values)
        first = several[0]
        others = [one for one in several[1:] if one is not first and one.key != first.key]
        if not others:
            return first
        rest = [add(one, first, -1) for one in others]
        # As a number it is the one that differs most: bounds and corrections are for few threads.
        inputs: tuple[Value, ...] = (first, *others)
        by: Callable[..., Threads] = _most_different
        if second is not None:
            inputs, by = (first, others[0], second), _second_where
        shared = all(one.uniform for one in rest)
        found = self.unknown("merged", name, *(rest if shared else inputs), *told)
        (symbol,) = found.symbols
        self.made[symbol] = inputs, (lambda *numbers: by(*numbers) - numbers[0]) if shared else by
        return add(first, found) if shared else found

    def _result(self, at: int, register: str, when: str) -> Value:
        key = at, register, when
        if key in self._memo:
            return self._memo[key]
        if self._depth > DEEPEST or len(self._symbols) > MOST_SYMBOLS:
            return self.unknown("computed", ("deep", at, register), self._any_thread)
        self._depth += 1
        found: Value | None = None
        try:
            code = _code(self.program.sass[at])
            line = code.line
            if code.result and register.startswith(("R", "UR")):
                place = int(register.lstrip("UR")) - int(code.result.lstrip("UR").replace("Z", "0"))
                with suppress(OverflowError):  # a constant that stands for no index
                    if line.opcode in ("LDC", "LDCU", "ULDC"):
                        found = self.operand(at, code.sources[0], when or line.when, place)
                    elif not place or line.is_load:
                        found = self._computed(at, code, when or line.when)
                if found is not None and place and line.fetches:
                    found = self.unknown("loaded", (at, register), found, looked_up=True)
            if found is None:
                plain = tuple(one for one in code.sources if not _UNKNOWN.search(one))
                which = 0 if code.result == register else register
                inputs = [self.operand(at, text, when) for text in code.sources if _UNKNOWN.search(text)]
                by = None if which else _of_numbers(self, at, code)
                found = self.unknown("computed", (line.full, which, plain), *inputs, by=by)
        finally:
            self._depth -= 1
        self._keep(key, found)
        return found

    # --- Operands ---

    def operand(self, at: int, text: str, when: str = "", word: int = 0) -> Value:
        """The value of an operand of this instruction; of a constant of several words, this one."""
        sign, name, constant = _parts(text)
        if constant is not None:
            found = self._constant(at, *constant, when, word)
            return scaled(found, -1) if sign else found
        if not name:
            return of(_literal(text))
        found = ZERO if name[-1] == "Z" else self.before(at, name, when)
        if sign == "~":
            return add(of(-1), found, -1)
        return scaled(found, -1) if sign == "-" else found

    def _constant(self, at: int, bank: str, place: str, when: str, word: int) -> Value:
        begin = 0 if place in ("RZ", "") else _hexadecimal(place)
        if begin is None:
            inputs = [self.before(at, name, when) for name in re.findall(r"U?R\d+", place)]
            return self.unknown("computed", ("constant", at, word), *inputs)
        offset = begin + 4 * word
        if bank != "0x0":
            return symbol_value(self.symbol("parameter", (bank, offset)))
        block, grid = (0x360, 4) if self.capability >= 100 else (0, 3)
        axis, odd = divmod(offset - block, 4)
        if not odd and 0 <= axis < 3:
            return of(self.block[axis])
        if not odd and grid <= axis < grid + 3:
            return symbol_value(self.symbol("grid", "xyz"[axis - grid]))
        return symbol_value(self.symbol("parameter", offset))

    # --- Instructions ---

    def _computed(self, at: int, code: _Code, when: str) -> Value | None:
        line = code.line
        if line.is_load or line.is_atomic or line.opcode in ("LDL", "TEX", "TLD", "TLD4"):
            return self._loaded(at, line, when)
        if "X" in line.modifiers and line.opcode not in ("S2R", "S2UR"):
            return None  # the upper half of a sum
        handler = _HANDLERS.get(line.opcode)
        return None if handler is None else handler(self, at, code, self.sources(at, code, when))

    def _loaded(self, at: int, line: Sass, when: str) -> Value:
        if line.space == "local":
            return self.unknown("computed", ("local", at), self._any_thread)
        place = self.address(at, when)
        trips = frozenset(loop for symbol in place.symbols for loop in symbol.loops)
        inputs = (place, self._any_thread) if line.is_atomic else (place,)
        return self.unknown("loaded", (at, trips), *inputs, looked_up=True)

    def address(self, at: int, when: str) -> Value:
        """Where a load, store or atomic goes."""
        registers, offset = address_parts(self.program.sass[at])
        found = of(offset)
        for name, factor in registers:
            found = add(found, scaled(self.before(at, name, when), factor))
        return found

    def sources(self, at: int, code: _Code, when: str) -> list[Value]:
        """The values of an instruction's operands."""
        return [self.operand(at, text, when) for text in code.sources]


@lru_cache(maxsize=8192)
def _parts(text: str) -> tuple[str, str, tuple[str, str] | None]:
    """Sign, register and, of a constant, bank and place of an operand; '' for what it has none of."""
    if (constant := _CONSTANT.match(text)) is not None:
        return constant[1], "", (constant[2], constant[3])
    match = _OPERAND.match(text)
    if match is None or match[2] is None:
        return "", "", None
    return match[1], match[2] + match[3], None


@lru_cache(maxsize=65536)
def address_parts(line: Sass) -> tuple[tuple[tuple[str, int], ...], int]:
    """Registers of an address with their factors, and the constant that is added; of a copy what it reads."""
    places = [operand for operand in line.operands if "[" in operand and not operand.startswith("c[")]
    if not places:
        return (), 0
    inside = places[-1][places[-1].rindex("[") + 1 : places[-1].rindex("]")]
    registers: list[tuple[str, int]] = []
    offset = 0
    for part in inside.replace("+-", "+~").split("+"):
        match = re.match(r"^(U?R)(\d+|Z)((?:\.\w+)*)$", part)
        if match is not None:
            factor = re.search(r"\.X(\d+)", match[3])
            if match[2] != "Z":
                registers.append((match[1] + match[2], int(factor[1]) if factor else 1))
        elif part:
            number = _hexadecimal(part.lstrip("~")) or 0
            offset += -number if part[0] == "~" else number
    return tuple(registers), offset


def _hexadecimal(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


@lru_cache(maxsize=8192)
def _literal(text: str) -> int:
    """A number in the code; -1 for ``0xffffffff``, 0 for what is no whole number."""
    number = _hexadecimal(text.lstrip("-"))
    if number is None:
        return 0
    number = -number if text[0] == "-" else number
    return number - (1 << 32) if number > 0x7FFFFFFF else number


def _replaced(value: Value, symbol: Symbol, by: Value) -> Value | None:
    """The value with something in a symbol's place; None where that has too many terms."""
    found: Value | None = ZERO
    for factors, number in value.terms.items():
        term: Value | None = Value({(): number}) if symbol in factors else Value({factors: number})
        if symbol in factors:
            for one in factors:
                term = product(term, by if one is symbol else symbol_value(one)) if term is not None else None
        if term is None or found is None:
            return None
        found = add(found, term)
    return found


# --- What instructions compute: None where it is nothing that a sum says ---


def _special(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    name = code.sources[0] if code.sources else ""
    if name in ("SRZ", "RZ", "URZ"):
        return ZERO
    if name in values._index:
        return values._index[name]
    register, _, axis = name.partition(".")
    if register == "SR_CTAID" and axis in AXES:
        return symbol_value(values.symbol("block", axis.lower(), blocks=True))
    if register == "SR_NTID" and axis in AXES:
        return of(values.block[AXES.index(axis)])
    if "MASK" in name:
        return values._any_thread
    return symbol_value(values.symbol("computed", name, blocks=True))


def _move(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    return sources[0] if sources else None


def _sum(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    return reduce(add, sources, ZERO)


def _multiply_add(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    if "MOV" in code.line.modifiers or ("U32" in code.line.modifiers and "RZ" in code.sources[:2]):
        return sources[-1] if len(sources) == 3 else None
    if len(sources) < 2:
        return None
    one, two, *rest = sources
    if "HI" in code.line.modifiers:
        first, second = one.number, two.number
        if first is None or second is None:
            return None
        # Of 32 bits each: their product is one of 64.
        sign = "u" if "U32" in code.line.modifiers else ""
        wide, other = (
            np.asarray(one).astype(f"{sign}int32").astype(f"{sign}int64") for one in (first, second)
        )
        high = np.asarray(wide * other >> wide.dtype.type(32)).astype(np.int64)
        found: Value | None = of(int(high) if high.ndim == 0 else high)
    else:
        found = product(one, two)
    return found if found is None or not rest else add(found, rest[0])


def _scaled_add(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    shift = sources[-1].constant
    if shift is None or len(sources) < 3:
        return None
    if "HI" in code.line.modifiers:
        return add(_shifted_right(values, sources[0], 32 - shift), sources[1])
    return add(scaled(sources[0], 1 << shift), sources[1])


def _shifted_right(values: Values, value: Value, shift: int) -> Value:
    if shift <= 0:
        return scaled(value, 1 << -shift)
    if (number := value.number) is not None:
        return of(number >> min(shift, 63))
    if shift >= SIGN:
        return ZERO  # of a nonnegative value
    found = parted(value, 1 << shift)
    if found is not None:
        return found[0]
    return values.unknown("shifted", shift, value, by=lambda one: one >> shift)


def _shift(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    line = code.line
    if ("U64" in line.modifiers or "S64" in line.modifiers) and "HI" in line.modifiers:
        return None
    if len(sources) < 2 or (shift := sources[1].constant) is None:
        return None
    shift &= 63
    if "L" in line.modifiers:
        if "HI" in line.modifiers:
            return None
        return scaled(sources[0], 1 << shift) if shift < 32 else ZERO
    # {upper, lower} >> shift: with HI the upper half is what counts, else the lower one.
    upper = "HI" in line.modifiers and len(sources) > 2
    return _shifted_right(values, sources[2 if upper else 0], shift)


def _and(one: Value, two: Value) -> Value | None:
    first, second = one.number, two.number
    if first is not None and second is not None:
        return of(first & second)
    if isinstance(first, int):
        one, two, second = two, one, first
    if not isinstance(second, int):
        return None
    if second >= 0 and (second & (second + 1)) == 0:  # the lowest bits
        found = parted(one, second + 1)
        return None if found is None else of(found[1])
    cleared = -second if second < 0 else 0
    if cleared and (cleared & (cleared - 1)) == 0:  # all but the lowest bits
        found = parted(one, cleared)
        return None if found is None else add(one, of(found[1]), -1)
    return None


def _disjoint(one: Value, two: Value) -> bool:
    """Whether no bit is set in both: one is a multiple of a power of two that the other stays below."""
    for left, right in ((one, two), (two, one)):
        number = right.number
        if number is None:
            continue
        most, least = (number, number) if isinstance(number, int) else (int(number.max()), int(number.min()))
        if least >= 0 and _divides(1 << most.bit_length(), left):
            return True
    return False


def _joined(
    of_numbers: Callable[[Coefficient, Coefficient], Coefficient], one: Value, two: Value
) -> Value | None:
    """Or, and exclusive or: the same as a sum where no bit is set in both."""
    first, second = one.number, two.number
    if first is not None and second is not None:
        return of(of_numbers(first, second))
    return add(one, two) if _disjoint(one, two) else None


_or, _xor = partial(_joined, operator.or_), partial(_joined, operator.xor)


def _most_different(*several: Threads) -> Threads:
    return max(several, key=lambda one: np.count_nonzero(np.diff(one)))


def _second_where(first: Threads, second: Threads, condition: Threads) -> Threads:
    return np.where(condition != 0, second, first)


def _of_numbers(values: Values, at: int, code: _Code) -> Callable[..., Coefficient | None] | None:
    """What computes an instruction's result from the numbers in its registers; None where nobody knows."""
    name = code.line.opcode
    if name in ("I2F", "MUFU", "F2I") and len(code.sources) == 1:
        return _FLOATS.get((name, *code.line.modifiers))
    handler = _HANDLERS.get(name)
    if handler not in _COMPUTES or "X" in code.line.modifiers:
        return None
    if handler is _multiply_add and "HI" not in code.line.modifiers:
        return None  # a sum that is too long to be one

    def computed(*numbers: Coefficient) -> Coefficient | None:
        given = iter(numbers)
        texts = [next(given) if _UNKNOWN.search(one) else _literal(one) for one in code.sources]
        if handler is _shift and np.max(texts[1]) > SIGN:
            return None  # no word is shifted by so much: what was drawn for a parameter is not what it is
        found = handler(values, at, code, [of(one) for one in texts])
        return None if found is None else found.number

    return computed


def _above(number: Coefficient) -> Coefficient:
    """The bits of the least float that is no less than a number."""
    one = np.asarray(number)
    near = one.astype(np.float32)
    return np.where(near < one, np.nextafter(near, np.float32(np.inf)), near).view(np.int32).astype(np.int64)


def _reciprocal(bits: Coefficient) -> Coefficient:
    with np.errstate(all="ignore"):
        return (np.float32(1.0) / _as_float(bits)).view(np.int32).astype(np.int64)


def _truncated(bits: Coefficient) -> Coefficient:
    one = _as_float(bits)
    return np.where(np.abs(one) < BEYOND, one, 0).astype(np.int64)


def _as_float(bits: Coefficient) -> npt.NDArray[np.float32]:
    return np.asarray(bits).astype(np.int32).view(np.float32)


def _then(operation: Callable[[Value, Value], Value | None], one: Value, two: Value | None) -> Value | None:
    return None if two is None else operation(one, two)


def _chosen(one: Value, mask: Value, other: Value) -> Value | None:
    """The bits of ``one`` where the mask is set, of ``other`` elsewhere."""
    if mask.constant is None:
        return None
    left, right = _and(one, mask), _and(other, of(~mask.constant))
    return None if left is None or right is None else _or(left, right)


_TABLES: dict[int, Callable[[Value, Value, Value], Value | None]] = {
    0xC0: lambda a, b, c: _and(a, b),
    0xFC: lambda a, b, c: _or(a, b),
    0x3C: lambda a, b, c: _xor(a, b),
    0xF8: lambda a, b, c: _then(_or, a, _and(b, c)),
    0xEA: lambda a, b, c: _then(_or, c, _and(a, b)),
    0xFE: lambda a, b, c: _then(_or, c, _or(a, b)),
    0x96: lambda a, b, c: _then(_xor, c, _xor(a, b)),
    0x78: lambda a, b, c: _then(_xor, a, _and(b, c)),
    0x6A: lambda a, b, c: _then(_xor, c, _and(a, b)),
    0x80: lambda a, b, c: _then(_and, c, _and(a, b)),
    0xA8: lambda a, b, c: _then(_and, c, _or(a, b)),
    0x28: lambda a, b, c: _then(_and, c, _xor(a, b)),
    0xE2: _chosen,
}
"""Three-input logic by its truth table, where a is 0xf0, b 0xcc, c 0xaa."""


_WITH_A_MASK = {0xC0: (0, 1, None), 0xF8: (1, 2, 0), 0x78: (1, 2, 0), 0xEA: (0, 1, 2), 0x6A: (0, 1, 2)}
"""Tables of which two inputs are masked with one another, and the result is joined with the third, if any."""


def _masked(values: Values, sources: list[Value], left: int, right: int, joined: int | None) -> Value | None:
    """Lowest bits of what nobody knows, behind higher ones: a place within a page whose number was looked up."""
    one, mask = sources[left], sources[right].constant
    if mask is None:
        one, mask = sources[right], sources[left].constant
    if mask is None or mask < 0:
        return None
    bits = values.unknown("computed", ("masked", mask), one, by=lambda number: number & mask)
    if joined is None:
        return bits
    return add(sources[joined], bits) if _divides(1 << mask.bit_length(), sources[joined]) else None


def _logic(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    if len(sources) < 4 or (table := sources[3].constant) is None:
        return None
    known = _TABLES.get(table)
    found = known(*sources[:3]) if known is not None else None
    if found is None and table in _WITH_A_MASK:
        found = _masked(values, sources, *_WITH_A_MASK[table])
    return found


def _select(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    if len(sources) < 2:
        return None
    condition = values.condition(at, code.line.operands[-1])
    if sources[0].uniform and sources[1].uniform:
        told = values.compared(at, code.line.operands[-1])
        if condition is None and any(one.lanes for by in told for one in by.symbols):
            # Each lane's own number tells which of two that all share it takes.
            return values.unknown("merged", ("select", at), sources[1], sources[0], *told)
        loops = frozenset(loop for by in told if by.uniform for one in by.symbols for loop in one.loops)
        if loops:
            # What changes from round to round may take the one now and then the other.
            chosen = symbol_value(values.symbol("computed", ("chosen", at), loops=loops))
            return values._merged(("select", at), (sources[1], sources[0]), condition, (chosen,))
    return _within(values, ("select", at), sources[1], sources[0], condition)


def _within(values: Values, name: object, one: Value, two: Value, second: Value | None = None) -> Value:
    """An index that is kept within bounds is the index for most threads: the bounds are what all of them share."""
    if one.uniform != two.uniform:
        return two if one.uniform else one
    return values._merged(name, (one, two), second)


def _least(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    if code.line.opcode == "VIADDMNMX" and len(sources) == 3:
        sources = [add(sources[0], sources[1]), sources[2]]
    if len(sources) < 2:
        return None
    return _within(values, ("least", at), *sources[:2])


def _absolute(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    number = sources[0].number
    if number is None:
        return sources[0]
    return of(abs(number) if isinstance(number, int) else np.abs(number))


def _extended(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    source, width = (*sources, ZERO)[:2]
    bits = width.constant
    if not bits or bits >= 32:
        return None
    if "U32" in code.line.modifiers:
        return _and(source, of((1 << bits) - 1))
    number = source.number
    if number is None:
        return None
    low = number & ((1 << bits) - 1)
    half = 1 << (bits - 1)
    return of((low ^ half) - half)


def _bytes(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    if len(code.sources) == 3 and code.sources[1] == "0x654":
        # The shared window of the block's place in its cluster, and the offset in it.
        return add(sources[2], scaled(sources[0], 1 << 24))
    return None


def _halves(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    """A constant that is moved as two numbers of 16 bits."""
    if len(code.sources) != 4 or not all(one.lstrip("-") == "RZ" for one in code.sources[:2]):
        return None
    try:
        high, low = (int(np.float16(float(one)).view(np.uint16)) for one in code.sources[2:])
    except ValueError:
        return None
    return of(high << 16 | low)


def _shuffled(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    """What all lanes of a warp have alike, another lane has, too."""
    return sources[0] if sources[0].lane_uniform else None


def _of_warp(values: Values, at: int, code: _Code, sources: list[Value]) -> Value | None:
    source = sources[0]
    if source.lane_uniform:
        return source
    if isinstance(number := source.number, np.ndarray):
        return of(number[np.arange(len(number)) // WARP * WARP])
    return symbol_value(
        values.symbol(
            "computed",
            ("warp", at),
            threads=True,
            looked_up=any(one.looked_up for one in source.symbols),
            blocks=any(one.blocks for one in source.symbols),
            loops=frozenset(loop for one in source.symbols for loop in one.loops),
        )
    )


_OF_THREADS: dict[str, Callable[[Values, int, _Code, list[Value]], Value | None]] = {
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), _special),
    **dict.fromkeys(("MOV", "MOV32I"), _move),
    **dict.fromkeys(("IADD3", "IADD", "VIADD", "IADD32I"), _sum),
    "IMAD": _multiply_add,
    "LEA": _scaled_add,
    **dict.fromkeys(("SHF", "SHL", "SHR"), _shift),
    "LOP3": _logic,
    "SEL": _select,
    **dict.fromkeys(("VIMNMX", "IMNMX", "VIADDMNMX"), _least),
    "IABS": _absolute,
    "SGXT": _extended,
    "PRMT": _bytes,
    "HFMA2": _halves,
    "SHFL": _shuffled,
    **dict.fromkeys(("R2UR", "REDUX"), _of_warp),
}
_HANDLERS = _OF_THREADS | {f"U{name}": handler for name, handler in _OF_THREADS.items()}
"""By opcode, those of the uniform datapath with their U."""
_COMPUTES = {_sum, _multiply_add, _scaled_add, _shift, _logic, _least, _extended}
"""Those that need nothing but numbers."""
_FLOATS: dict[tuple[str, ...], Callable[..., Coefficient]] = {
    ("I2F", "RP"): _above,
    ("I2F", "U32", "RP"): _above,
    ("MUFU", "RCP"): _reciprocal,
    ("F2I", "FTZ", "U32", "TRUNC", "NTZ"): _truncated,
}
"""What a division of whole numbers is made of: the reciprocal of the divisor, from its bits as a float."""
_COMPARES = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip
