"""Recognises in SASS what no single opcode says: precise mathematical functions (of integers: `divisions`).

Each inlined function leaves a constant in the code that nothing else uses (a coefficient of its polynomial,
a bound of its range). From there the instructions that depend on one another are collected until there are
as many as the function takes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.code.flow import EXCHANGES, Program, once, reached
from gemmprof.analysis.explanation.demands.distinct import FLOATS, around_never, computed_again, stays
from gemmprof.analysis.explanation.demands.footprint import rounds, serving
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.opcodes import Sass
from gemmprof.base.foreign_files import facts

# Instructions between the first and the last of one sequence, at most: the scheduler mixes it with its surroundings.
REACH = 90
GUARDED, SCALED = "BSSY", "FSETP"
_CLASSES = frozenset({"fp32", "integer", "move", "special", "conversion", "fp16"})


@dataclass(frozen=True, slots=True)
class Function:
    """A precise function in SASS."""

    name: str  # as in CUDA C++
    signature: str  # pattern of the one instruction of each call that tells it, a regular expression
    # that one call executes more than a neighbour has executed for it: numbers are not among them
    instructions: int
    fast: int  # that the fast function executes instead
    remedy: str  # the fast function
    # the first instruction of what computes it, where all that follows reads only its own results and the argument;
    # `GUARDED` where all of it lies between two ways' parting and meeting, `SCALED` where what compares the divisor
    # scales it and what is divided; '' for none of them
    grown_from: str


# A division of FP64 values: all its instructions, those of them on the FP64 pipe; five of these make a reciprocal. The
# one that begins it is in no other function of CUDA's; awkward arguments take a slow path that begins it again.
RECIPROCAL, DIVISION, DIVISION_FLOATS, RECIPROCAL_FLOATS = "MUFU.RCP64H", 16, 8, 5

_NAME_OF_FLOATS = re.compile(r"(?<=\w\w)f\b")  # no function of Triton's ends so


def _functions(at: int) -> Iterator[Function]:
    """Signatures and costs as tools/measure_functions.py counts them, from this column on: for what nvcc compiles, and
    for what Triton does. A function stands before others that are parts of it. The second half of a power stands for
    itself where several powers of one base share its logarithm: their number is 2 to a product.
    """
    for row in facts(__file__, "functions.csv"):
        if row[at]:
            name = row[0] if at == OF_NVCC else _NAME_OF_FLOATS.sub("", row[0])
            yield Function(name, row[1], int(row[at]), int(row[at + 1]), row[at + 2], row[2])


OF_NVCC, OF_TRITON = 3, 6
FUNCTIONS, TRITON_FUNCTIONS = tuple(_functions(OF_NVCC)), tuple(_functions(OF_TRITON))
DIVISIONS, RECIPROCAL_OF = ("division", "reciprocal"), "reciprocal"
ROOTS, POWERS = ("sqrtf", "sqrt"), ("powf", "pow")
REMEDY_OF_ROOTS = "one rsqrtf for both", "one tl.rsqrt for both"
# Triton rounds numbers below the normal ones to 0 in what its library computes, so that its fast functions cost less.
COMPILED_BY_TRITON = ("triton", "inductor")

# Instructions of an FP32 division for each of an FP64 one.
SINGLE_DIVISION = next(one.instructions for one in FUNCTIONS if one.name == "division") / DIVISION
LITTLE = 0.02  # share of the instructions up to which what could be done elsewhere is not worth a word
LONGEST_GUARDED = 150  # instructions between the branch around a slow path and where the ways meet again

# Steps of a polynomial with constant coefficients from which on it belongs to a function of the FP64 library.
POLYNOMIAL = 5


@dataclass(frozen=True)
class Found:
    """Instructions of precise functions, with the share of each that stays when they are written otherwise."""

    instructions: Mask  # all of them
    fast: Array  # what stays with fast functions in their place
    once: Array  # ... where each is evaluated where its argument changes, and divisors that do not become factors
    names: tuple[str, ...]  # of the functions, the heaviest first
    remedy: str  # the fast ones
    # of the calls in a loop that is straight when their slow paths are gone, at each instruction of it; 1 elsewhere.
    # The compiler mixes them then, so that one does not wait for its own results.
    copies: Array
    looked_up: float  # loads by warps of values that were computed once (`computed_again`)

    @property
    def both(self) -> Array:
        """What stays where both is done: of what changes with every use fast functions, of the rest nothing."""
        return np.minimum(self.fast, self.once)


def compiled_by_triton(work: Work) -> bool:
    """Whether Triton compiled it: for its owner, or for torch."""
    return owner_of(work.profile).key in COMPILED_BY_TRITON


def precise_functions(work: Work) -> Found:
    """Every call of a precise function that was executed, and what else comes to few values again and again."""
    taken = np.zeros(len(work.sass), dtype=bool)
    fast, once = np.ones(len(work.sass)), np.ones(len(work.sass))
    weight: dict[str, float] = {}
    remedies: dict[str, str] = {}
    slices: list[tuple[list[int], list[int]]] = []
    by_divisor: dict[object, int] = {}
    roots, code = set[int](), work.code
    looked_up = 0.0
    part_of: dict[int, Function] = {}
    by_triton = compiled_by_triton(work)
    for function, index in calls_in(code, by_triton):
        if not work.executed[index] or part_of.get(index, function) is not function:
            continue  # of another one, which goes as a whole
        rows, guards = _slice(work, index, function, taken)
        if not rows:
            continue
        slices.append((rows, guards))
        part_of |= dict.fromkeys((*rows, *guards), function)
        taken[rows] = taken[guards] = True
        name, remedy = function.name, function.remedy
        products = _products(work, rows) if name in POWERS else None
        left = function.fast if products is None else products
        fast[rows] = min(1.0, left / max(left, len(rows)))
        if name in ROOTS:
            roots.update(rows, guards)
        if name in DIVISIONS and roots and roots.issuperset(made := _divided_by(work, index, roots)):
            # The reciprocal root is no longer than the root; what is divided is multiplied by it, and where the root
            # itself is used, too, it is made of it.
            uses = {use for at in made for use in code.readers[at] if work.executed[use]}
            uses -= {*rows, *guards, *roots}
            fast[rows] = 0.0
            fast[max(rows)] = float(name != RECIPROCAL_OF or bool(uses))
            name, remedy = "division by a root", REMEDY_OF_ROOTS[by_triton]
        if remedy:
            fast[guards] = 0.0
            remedies[name] = remedy
        if function.name.endswith("division") and _divisor_known(work, index, by_divisor):
            once[rows] = once[guards] = 0.0
            once[max(rows)] = float(function.grown_from != SCALED)
        if function.name == "division" and remedy:
            fast[_added(work, max(rows))] = 0.0
        weight[name] = weight.get(name, 0.0) + float(work.executed[rows].sum())
    for span, calls, again in _called_again(work):
        rows = [at for at in range(span[0], span[1] + 1) if work.executed[at] > 0]
        rows += [at for call in code.callers(span) for at in _beside(work, call)]
        taken[rows] = True
        once[rows] = 1.0 - again
        name = f"{calls} calls of one FP64 function"
        weight[name], remedies[name] = float(work.executed[rows].sum()), "one logarithm or power for all"
    few = computed_again(work, FLOATS)
    if float(work.executed @ (1.0 - few.keep)) > LITTLE * work.total_executed:
        once = np.minimum(once, few.keep)
        looked_up = few.loads
        for rows, guards in slices:
            if (few.keep[rows] < 1.0).all():
                once[guards] = few.keep[rows].max()
        if others := [at for at in few.rows if not taken[at]]:
            weight["arithmetic that comes to few values"] = float(work.executed[others].sum())
            taken[others] = True
    for first, last in _slow_paths(work):
        inside = slice(first, last + 1)
        taken[inside] |= work.executed[inside] > 0
        fast[inside] = np.where(work.executed[inside] > 0, 0.0, fast[inside])
        # A subroutine goes with the calls of it that are left out.
        callers = list(work.code.callers((first, last)))
        if whole := float(work.executed[callers].sum()):
            once[inside] = np.minimum(once[inside], float((work.executed * once)[callers].sum()) / whole)
    # What is worked out for a way that is left out, and which no thread took, is of no use.
    never = [range(at + 1, work.code.target(at) or at) for at in around_never(work) if not fast[at]]
    fast[list(serving(work, {at for way in never for at in way}))] = 0.0
    for stays_of_it in (fast, once):
        stays_of_it[_computed_again(work, stays_of_it)] = 0.0
    names = tuple(sorted(weight, key=lambda name: -weight[name])[:3])
    remedy = "; ".join(dict.fromkeys(remedies[name] for name in names if name in remedies))
    return Found(taken, fast, once, names, remedy, _copies(work, slices), looked_up)


def _added(work: Work, quotient: int) -> list[int]:
    """The sum that alone uses a quotient: of the product that a fast division ends with it becomes a multiply-add."""
    uses = [use for use in work.code.readers[quotient] if work.executed[use]]
    return uses if len(uses) == 1 and work.sass[uses[0]].opcode == "FADD" else []


@once
def calls_in(code: Program, by_triton: bool) -> list[tuple[Function, int]]:
    """Each call of a precise function, where its signature stands, in the order of the table."""
    functions = TRITON_FUNCTIONS if by_triton else FUNCTIONS
    some = re.compile(r"(?:@\S+ +)?U?(?:" + "|".join(one.signature for one in functions) + ")")
    near = [(at, line.text) for at, line in enumerate(code.sass) if some.match(line.text)]
    signatures = [(one, one.signature) for one in functions]
    return [(one, at) for one, signature in signatures for at, text in near if re.search(signature, text)]


def _computed_again(work: Work, left: Array) -> list[int]:
    """What computes a value that the thread has computed before, on the other side of calls or ways that go away.

    A call may change any register that the compiler does not save, and where ways meet it looks no further back, so
    that it computes again what it could have kept.
    """
    code, ran = work.code, work.executed > 0
    ways = {*around_never(work), *(at for at, line in enumerate(code.sass) if line.opcode == "CALL")}
    gone = sorted(at for at in ways if ran[at] and not left[at])
    first: dict[object, int] = {}
    value: dict[tuple[int, str], object] = {}
    found: list[int] = []
    for at, line in enumerate(code.sass) if gone else ():
        pure = line.space in ("", "constant") and line.opcode not in EXCHANGES
        sources = {name: [one for one in code.producers(at, name) if ran[one]] for name in line.reads}
        earlier = all(one < at for by in sources.values() for one in by)
        if not (ran[at] and line.writes and pure and earlier):
            continue
        numbers = {
            name: str([value.get((one, name), (one, name)) for one in by]) for name, by in sources.items()
        }
        results = 1 + sum((one in line.writes and one[0] == "P") or one == "PT" for one in line.operands[1:2])
        given = tuple(
            _A_REGISTER.sub(lambda name, numbers=numbers: numbers.get(name[0], name[0]), one)  # type: ignore[misc]
            for one in line.operands[results:]
        )
        what = line.full, line.guard and numbers[line.guard], given, tuple(numbers.values())
        before = first.setdefault(what, at)
        value |= {(at, name): (before, place) for place, name in enumerate(line.writes)}
        alike = code.loop_of(before) == code.loop_of(at) and work.executed[before] >= work.executed[at]
        if before < at and alike and bisect_left(gone, before) < bisect_left(gone, at):
            found.append(at)
    return found


_A_REGISTER = re.compile(r"(?<![\w.])U?[RP]\d+")


def _called_again(work: Work) -> Iterator[tuple[tuple[int, int], int, float]]:
    """Functions of the FP64 library that are called several times for one value, in a row or in a loop: its place, the
    calls, and the share of its executions that a single call with products of what it gave would leave out.
    """
    code = work.code
    for span in code.functions:
        calls = [at for at in code.callers(span) if work.executed[at]]
        if not calls or _steps(work, span) < LONG_FUNCTION:
            continue
        by_value: dict[frozenset[int], float] = {}
        for at in calls:
            came = frozenset(_loaded_for(work, at))
            still = (loop for loop in code.loops_around[at] if not any(one in loop for one in came))
            often = [rounds(work, loop) for loop in still]
            by_value[came] = max(by_value.get(came, 0.0), float(work.executed[at] / np.prod(often)))
        whole = sum(float(work.executed[at]) for at in calls)
        again = 1.0 - sum(by_value.values()) / whole
        if again > 0 and frozenset() not in by_value:
            yield span, len(calls), again


def _steps(work: Work, span: tuple[int, int]) -> int:
    """The FP64 multiply-adds of a called function that ran."""
    mine = range(span[0], span[1] + 1)
    return sum(work.sass[at].opcode == "DFMA" for at in mine if work.executed[at])


def _beside(work: Work, call: int) -> Iterator[int]:
    """What moves the arguments of a called function, and tests what it gives, up to what something is made of it."""
    lines = enumerate(work.sass[call + 1 :], call + 1)
    behind = next((at for at, line in lines if line.opcode in _USES or line.space), call)
    for at in range(max(0, call - ARGUMENTS), behind):
        if work.executed[at] == work.executed[call] > 0 and not work.sass[at].space:
            yield at


_USES = ("CALL", "DFMA", "DMUL", "MUFU", "F2F")
LONG_FUNCTION = 2 * POLYNOMIAL  # steps of FP64 multiply-adds in a power; a division or a root has fewer
ARGUMENTS = 10  # instructions before a call among which its arguments are moved into place


def _loaded_for(work: Work, call: int) -> set[int]:
    """The loads from memory that the arguments of a call go back to."""
    code = work.code
    moves = [at for at in range(max(0, call - ARGUMENTS), call) if not work.sass[at].space]
    called = {at for first, last in code.functions for at in range(first, last + 1)}

    def is_load(at: int) -> bool:
        return work.sass[at].space not in ("", "constant")

    before = reached(
        moves,
        lambda at: (
            () if is_load(at) else (one for one in code.sources(at) if is_load(one) or one not in called)
        ),
    )
    return set(filter(is_load, before))


def _copies(work: Work, slices: Sequence[tuple[list[int], list[int]]]) -> Array:
    code = work.code
    found = np.ones(len(work.sass))
    guards = {at for _, around in slices for at in around}
    turns = work.where(lambda line: line.opcode in ("BRA", "BSSY", "CALL")) & (work.executed > 0)
    for loop in code.loops:
        calls = sum(bool(around) and around[0] in loop for _, around in slices)
        inside = loop.first + np.flatnonzero(turns[loop.first : loop.last])
        if calls > 1 and guards.issuperset(inside.tolist()):
            found[loop.first : loop.last + 1] = calls
    return found


def _slice(work: Work, index: int, function: Function, taken: Mask) -> tuple[list[int], list[int]]:
    """The instructions of one call: those that compute its value, and the way around for awkward arguments."""
    code = work.code
    if function.grown_from == RECIPROCAL:
        return _division_of_doubles(work, index)
    if function.grown_from == SCALED:
        return _scaled(work, index), []
    guards = _guard_of(work, index)
    if function.grown_from == GUARDED:
        rows = region(work, index)
        if 0 < len(rows) <= 1.4 * function.instructions:
            return rows, []
    if function.grown_from in ("", GUARDED):
        rows = connected(work, index, function.instructions, taken)
        if function.grown_from == GUARDED:
            rows += _answered_in(work, region(work, index), {*rows})
        inside = {at for start in guards[:1] for at in range(start, guards[-1])} if guards else set()
        return [
            *rows,
            *(at for at in inside if not taken[at] and _fits(work.sass[at]) and at not in rows),
        ], guards
    last = min(len(work.sass), index + REACH)
    near = range(max(0, index - REACH), last)
    given = {(name, code.producers(index, name)) for name in work.sass[index].reads if name[0] == "R"}
    of_one = {at for _, made in given for at in made}
    begins = [at for at in near if work.executed[at] and work.sass[at].full.startswith(function.grown_from)]
    starts = (
        at
        for at in begins
        if at in of_one or any((name, code.producers(at, name)) in given for name in work.sass[at].reads)
    )
    start = min(starts, key=lambda at: abs(at - index), default=None)
    if start is None:
        return connected(work, index, function.instructions, taken), guards
    # The argument is what the first instruction or the one that tells the function reads.
    at = start if start in of_one else index
    argument = {(name, code.producers(at, name)) for name in work.sass[at].reads}
    members = {index, start}
    behind = [at for at in range(min(start, index) + 1, len(work.sass)) if work.executed[at]]
    for at in behind[:REACH]:
        line = work.sass[at]
        if len(members) >= function.instructions:
            break
        own = [name for name in line.reads if members.intersection(code.producers(at, name))]
        if not own or at in members or line.opcode not in _STEPS:
            continue
        others = [name for name in line.reads if name not in own and name[0] == "R"]
        if all((name, code.producers(at, name)) in argument or _constant(work, at, name) for name in others):
            members.add(at)
    constants = {
        source
        for at in members
        for name in work.sass[at].reads
        for source in code.producers(at, name)
        if _constant(work, at, name) and members.issuperset(code.consumers(source)) and work.executed[source]
    }
    often = {at for at in constants if work.executed[at] > 0.5 * work.executed[index]}
    return sorted(members | often), [at for at in guards if at not in members]


def _scaled(work: Work, index: int) -> list[int]:
    """What a division in the full range of FP32 has more than a product with the reciprocal, and the reciprocal: two
    comparisons of the divisor, and what they make of it and of all that is divided by it, larger or smaller.
    """
    alike = _compared(work, frozenset(_divisor(work, index).items()))
    return [*_made_of(work, alike if index in alike else alike | {index})]


@once
def _compared(work: Work, divisor: frozenset[tuple[int, int]]) -> frozenset[int]:
    """The comparisons of this divisor."""
    made = dict(divisor)
    return frozenset(at for at in _uses(work, made, SCALED) if _divisor(work, at) == made)


@once
def _made_of(work: Work, compared: frozenset[int]) -> list[int]:
    """These comparisons, what they make larger or smaller, and the reciprocals of that: asked of every division, where
    hundreds by one divisor have the same.
    """
    scaled = set(_uses(work, compared, "FMUL", "FSEL"))
    inverted = {at for at in _uses(work, scaled, "MUFU") if work.code.sass[at].full == "MUFU.RCP"}
    return sorted(compared | scaled | inverted)


def _uses(work: Work, rows: Iterable[int], *opcodes: str) -> Iterator[int]:
    """What ran and reads results of these, of these opcodes."""
    ran = (use for at in rows for use in work.code.readers[at] if work.executed[use])
    return (use for use in ran if work.code.sass[use].opcode in opcodes)


def _division_of_doubles(work: Work, index: int) -> tuple[list[int], list[int]]:
    """The same of a division of FP64 values, which begins here: the steps towards the reciprocal read one another's
    results, then the product with what is divided and its corrections; a comparison tells awkward arguments.
    """
    code = work.code
    inside = {index}
    first = next((at for at in code.consumers(index, REACH) if code.sass[at].opcode == "DFMA"), None)
    low = code.sources(first) - {index} if first is not None else set()
    # Beside the upper word of the first guess stands a constant, or, of a reciprocal, one of the divisor's exponent.
    divides = any(code.sass[at].moves_a_constant for at in low)
    inside |= {at for at in low if code.sass[at].opcode == "VIADD" or code.sass[at].moves_a_constant}
    floats = DIVISION_FLOATS if divides else RECIPROCAL_FLOATS
    steps, tests = list[int](), list[int]()
    for at in range(index + 1, min(len(code.sass), index + REACH)):
        opcode = code.sass[at].opcode
        if not work.executed[at] or inside.isdisjoint(code.sources(at)):
            continue
        if opcode == ("DMUL" if len(steps) == RECIPROCAL_FLOATS else "DFMA") and len(steps) < floats:
            steps.append(at)
            inside.add(at)
        elif opcode in ("FFMA", "FSETP"):
            inside.add(at)
            tests += [at] if opcode == "FSETP" else []
    if len(steps) < floats or any(begin <= index <= end for begin, end in code.functions):
        return [], []  # part of another function, or the slow path itself
    guards = {at for test in tests for at in _guard_of(work, test)}
    uses = {at: [use for use in code.readers[at] if work.executed[use]] for at in low}
    inside -= {at for at in low if not inside.issuperset(uses[at])}
    return [*sorted(inside - {steps[-1]}), steps[-1]], sorted(guards - inside)


def double_divisions(work: Work) -> list[int]:
    """Instructions of FP64 divisions, with the function that is called for awkward arguments."""
    code = work.code
    begins = [at for at, line in enumerate(code.sass) if line.full == RECIPROCAL and work.executed[at]]
    found = {at for begin in begins for at in _division_of_doubles(work, begin)[0]}
    for first, last in code.functions:
        if _steps(work, (first, last)) < LONG_FUNCTION and any(first <= begin <= last for begin in begins):
            found.update(range(first, last + 1))
    return sorted(found)


def _divisor_known(work: Work, index: int, by_divisor: dict[object, int]) -> bool:
    """Whether what is divided by stays in the loop, or something was divided by it before (by the first division by
    each divisor so far): a product with its reciprocal does.
    """
    loop = work.code.loop_of(index)
    divisor = _divisor(work, index)
    first = by_divisor.setdefault((loop, *divisor.items()), index)
    again = first != index and work.executed[first] >= work.executed[index]
    return again or stays(work, divisor, [loop])


def _divisor(work: Work, index: int) -> dict[int, int]:
    """What made the number that is divided by, and which of its results that is: a vector holds several."""
    code, line = work.code, work.sass[index]
    place = {"FCHK": 2, "FSETP": 2}.get(line.opcode, 1)
    name = line.operands[place].partition(".")[0].strip("-|")
    return {at: code.sass[at].writes.index(name) for at in code.producers(index, name)}


def _divided_by(work: Work, index: int, roots: set[int]) -> set[int]:
    """What made the divisor as far as it ran: through products of roots up to these."""
    code = work.code
    made = reached(
        [at for at in _divisor(work, index) if work.executed[at]],
        lambda at: (
            [one for one in code.sources(at) if work.executed[one]]
            if at not in roots and code.sass[at].opcode == "FMUL"
            else ()
        ),
    )
    return {at for at in made if at in roots or code.sass[at].opcode != "FMUL"} or {-1}


def _constant(work: Work, index: int, name: str) -> bool:
    """Whether a register holds a number that stands in the code."""
    sources = [work.sass[at] for at in work.code.producers(index, name)]
    return bool(sources) and all(map(_is_number, sources))


def _is_number(line: Sass) -> bool:
    """Whether an instruction sets a register to a number that stands in the code."""
    return (line.moves_a_constant and not line.reads) or (
        line.opcode in ("MOV", "UMOV") and line.operands[-1].startswith("0x")
    )


# What the inlined part of a division, root or exponential is made of beside its first instruction.
_STEPS = frozenset({
    "FFMA", "IMAD", "FMUL", "FADD", "MUFU", "ISETP", "LOP3", "SHF", "VIADD", "IADD3",
    "F2I", "I2FP", "FSEL", "FSETP", "SEL",
})  # fmt: skip


_ABSOLUTE = re.compile(r"FADD\S* \w+, \|R\d+\|")


def _guard_of(work: Work, index: int) -> list[int]:
    """The branch around a function's slow path, that path as far as it ran, and where both ways meet again."""
    code = work.code
    tests = {index, *(at for at in code.consumers(index, REACH) if code.sass[at].opcode in ("LOP3", "ISETP"))}
    beside = [at for source in code.sources(index) for at in code.readers[source]]
    near = [at for at in beside if abs(at - index) <= REACH]
    near += [on for at in near if _ABSOLUTE.search(code.sass[at].text) for on in code.consumers(at, REACH)]
    tests |= {at for at in near if code.sass[at].opcode == "FSETP"}
    tests |= {on for at in tests for on in code.consumers(at, REACH) if code.sass[on].opcode == "ISETP"}
    for test in (index, *sorted(tests - {index})):
        for at in code.consumers(test, REACH):
            target = code.target(at) if code.sass[at].opcode == "BRA" else None
            if target is None or not at < target <= at + LONGEST_GUARDED:
                continue
            between = [place for place in range(at + 1, target) if work.executed[place] > 0]
            if any(code.sass[place].space for place in between):
                continue
            # Where a subroutine is called, all of that way is the slow path, however often it is taken.
            called = any(code.sass[place].opcode == "CALL" for place in between)
            often = np.inf if called else 0.5 * work.executed[at]
            found = [at, *(place for place in between if work.executed[place] < often)]
            # Both ways meet at the target, or behind the one of them that ends in a jump there.
            meet = next((place for place in range(target, min(len(code.sass), target + 12))
                         if code.sass[place].opcode == "BSYNC"), None)  # fmt: skip
            if meet is not None:
                barrier = code.sass[meet].operands[:1]
                begins = [one for one in _partings(work, at) if code.sass[one].operands[:1] == barrier]
                found += [*begins[:1], meet]
            return sorted(found)
    return []


def _products(work: Work, rows: list[int]) -> int | None:
    """Products that a power with a small whole constant for its exponent takes, None for any other: the logarithm is
    multiplied by it, and what that product lost is computed from it.
    """
    found = (_WHOLE_EXPONENT.match(work.sass[at].text) for at in rows)
    exponent = next((int(one[1]) for one in found if one), None)
    return None if exponent is None else exponent.bit_length() + exponent.bit_count() - 2


_WHOLE_EXPONENT = re.compile(r"FFMA\S* [^,]+, [^,]+, ([2-8]), -R")


def _partings(work: Work, index: int) -> Iterator[int]:
    """The places before an instruction, the nearest first, where ways part that meet again."""
    first = max(-1, index - LONGEST_GUARDED)
    return (at for at in range(index, first, -1) if work.sass[at].opcode == "BSSY")


def region(work: Work, index: int) -> list[int]:
    """Executed instructions between the BSSY before this one and its BSYNC, without memory accesses; [] for none."""
    code = work.code
    for start in _partings(work, index):
        end = code.target(start)
        if end is None or end < index:
            continue
        if end - start > LONGEST_GUARDED:
            return []
        return [at for at in range(start, end + 1) if work.executed[at] > 0 and not code.sass[at].space]
    return []


def _answered_in(work: Work, between: Sequence[int], found: set[int]) -> list[int]:
    """Those of these instructions, other than the ones found, whose results only go there, or into branches: tests for
    awkward arguments, where the scheduler has mixed a function with its surroundings.
    """
    code, more = work.code, list[int]()
    for at in reversed(between):
        uses = [use for use in code.readers[at] if work.executed[use]]
        if at in found or not uses or not _fits(code.sass[at]):
            continue
        if all(use in found or (use in between and code.sass[use].is_branch) for use in uses):
            found.add(at)
            more.append(at)
    return more


def _slow_paths(work: Work) -> Iterator[tuple[int, int]]:
    """Spans of the subroutines that precise functions call for awkward arguments."""
    for first, last in work.code.functions:
        body = work.sass[first : last + 1]
        singles = any("FTZ" in line.modifiers and line.opcode in ("FADD", "FSETP", "FMUL") for line in body)
        if singles and not any(line.opcode in ("DFMA", "DMUL", "DADD") for line in body):
            yield first, last


def double_functions(work: Work) -> Mask:
    """Instructions of inlined FP64 functions (exponential, logarithm and the like): polynomials and around them."""
    ran = work.where(lambda line: line.opcode == "DFMA") & (work.executed > 0)
    steps = [at for at in np.flatnonzero(ran).tolist() if _adds_a_number(work, at)]
    plain = work.where(lambda line: not line.space and not line.is_branch)
    found = np.zeros(len(plain), dtype=bool)
    for group in np.split(steps, 1 + np.flatnonzero(np.diff(steps) > 14)):
        if len(group) >= POLYNOMIAL:
            often, around = work.executed[group[0]], slice(max(0, group[0] - 24), group[-1] + 14)
            similar = (0.5 * often <= work.executed[around]) & (work.executed[around] <= 2.0 * often)
            found[around] |= similar & plain[around]
    return found


def _adds_a_number(work: Work, at: int) -> bool:
    """Whether a multiply-add adds a number of the code: from uniform registers, or from others that it was moved to."""
    added = work.sass[at].operands[-1].lstrip("-").removesuffix(".reuse")
    told = [work.sass[one] for one in work.code.producers(at, added)]
    moved = bool(told) and all(line.moves_a_constant or line.opcode == "MOV" for line in told)
    return added.startswith("UR") or (moved and not any(line.reads for line in told))


def _fits(line: Sass) -> bool:
    return line.instruction_class in _CLASSES and not line.space


def connected(work: Work, index: int, count: int, taken: Mask) -> list[int]:
    """Up to ``count`` instructions that depend on this one or it on them, the nearest first, and numbers of theirs."""
    code = work.code
    often = work.executed[index]
    found = [index]
    seen = {index}
    waiting = deque([index])
    numbers = set[int]()
    while waiting and len(found) < count:
        at = waiting.popleft()
        line = code.sass[at]
        # What is written under a predicate is otherwise what it was.
        names = line.reads + line.writes if line.guard else line.reads
        near = [source for register in names for source in code.producers(at, register)]
        near += code.consumers(at, REACH)
        for other in sorted(near, key=lambda place: abs(place - at)):
            if other in seen or abs(other - at) > REACH or len(found) >= count:
                continue
            seen.add(other)
            similar = 0.2 * often <= work.executed[other] <= 5.0 * often
            if not similar or taken[other] or not _fits(code.sass[other]):
                continue
            if _is_number(code.sass[other]):
                numbers.add(other)  # calls may have it in common: no way from one to another
                continue
            found.append(other)
            waiting.append(other)
    return found + [at for at in numbers if set(found).issuperset(code.readers[at])]
