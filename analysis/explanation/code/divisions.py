"""Recognises in SASS what whole numbers are divided by: inlined, or called as a subroutine of 64 bits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.code.address_forms import values_of
from gemmprof.analysis.explanation.code.flow import Loop, reached
from gemmprof.analysis.explanation.code.sequences import region
from gemmprof.analysis.explanation.demands import distinct
from gemmprof.analysis.explanation.demands.footprint import rounds, serving
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, share
from gemmprof.analysis.opcodes import Sass

COUNTED = 0.1  # share of a 64-bit division's instructions that counting an index along takes
OF_THE_GRID = 1.0  # instructions that bring an index where it is a dimension of the grid or block
OF_AN_ACCESS = 2.0  # instructions that find a place from the one before: a sum and its upper half
COUNTING = 3.0  # an addition, a comparison and a selection: counting an index along
# A remainder by a divisor whose reciprocal is known: the upper half of a product, the product of quotient and
# divisor, a difference and its correction (Barrett): multiply-adds, and others, of 64 and of 32 bits (nvcc 13.0).
WIDE_PRODUCTS, WIDE_OTHERS = 7, 7
NARROW_PRODUCTS, NARROW_OTHERS = 2, 4
# Bits of a digit, and of the divisor; those that are done when the last digit begins are more, by what shifts it.
DIGIT, DIVISOR = 32, 64
REGISTER_BITS = 64  # a shift is by less


@dataclass(frozen=True)
class Divisions:
    """Instructions of integer divisions, the share of each that stays, and the bits of the widest that ran."""

    instructions: Mask
    keep: Array
    bits: int


def integer_divisions(work: Work) -> Divisions:
    """Divisions and remainders by values that the compiler does not know.

    Those of indices can be counted along, and all but a tenth is gone. Those of values from memory can be
    multiplications with the reciprocal, which take a good part of the instructions themselves; but what the divisor was
    added to, so that it is not negative, is counted, too.
    """
    code = work.code
    of_data, wide = np.zeros(len(code.sass), dtype=bool), np.zeros(len(code.sass), dtype=bool)
    fixed, shares = np.ones(len(code.sass)), np.ones(len(code.sass))
    for first, last in code.functions:
        body = range(first, last + 1)
        # The conversion of a 64-bit divisor is the first step of its division.
        converts = (at for at in body if code.sass[at].opcode == "I2F" and "64" in code.sass[at].full)
        start = next((at for at in converts if "RP" in code.sass[at].modifiers), None)
        if start is None:
            continue
        of_it = set(body)
        calls = code.callers((first, last))
        for call in calls:
            around = region(work, call)
            of_it.update(around)
            if around and _from_memory(work, call):
                of_data[[*around, *body]] = True
        wide[[*of_it]] = True
        if distinct.stays(work, code.sources(start), [code.loop_of(call) for call in calls]):
            # Values of 32 bits go another way around the call.
            called = sum(float(work.executed[call]) for call in calls)
            begun = sum(float(work.executed[(region(work, call) or [call])[0]]) for call in calls)
            around_it = max(0.0, begun - called)
            products = WIDE_PRODUCTS * called + NARROW_PRODUCTS * around_it
            others = WIDE_OTHERS * called + NARROW_OTHERS * around_it
            _leave(work, of_it, products, others, fixed)
    by_digits = [loop for loop in code.loops if _digit_by_digit(work, loop)]
    for loop in by_digits:
        steps = set(range(loop.first, loop.last + 1))
        # The dividend is loaded, or made of what is; the divisor and its reciprocal are not.
        mine = steps | {at for at in serving(work, steps) if not code.by_data[at]}
        wide[[*mine]] = of_data[[*mine]] = True
        often = float(work.executed[loop.first]) / rounds(work, loop)
        _leave(work, mine, WIDE_PRODUCTS * often, WIDE_OTHERS * often, fixed)
    found = wide.copy()
    for reciprocal, rest, dividends, wrapped, loaded, same in _narrow_divisions(work, wide):
        found[[*reciprocal, *rest]] = True
        of_data[[*reciprocal, *rest]] = loaded
        if loaded and not same:
            continue  # a reciprocal for each division is what it takes anyway
        again = code.loop_of(reciprocal[0]) or code.loop_of(rest[0])
        counted = COUNTING if loaded or again else OF_THE_GRID
        each = NARROW_PRODUCTS + NARROW_OTHERS if loaded else counted
        left = (dividends - wrapped) * each + wrapped * counted
        shares[rest] = min(1.0, left / max(1, len(rest)))
        shares[reciprocal] = 0.0
    _places(work, found & ~of_data, shares)
    heavy = work.where(lambda line: line.opcode == "IMAD")
    data = np.where(fixed < 1.0, fixed, np.where(heavy, 0.65, 0.3))
    keep = np.where(wide, np.where(of_data, data, COUNTED), shares)
    found |= shares < 1.0
    bits = 128 if by_digits else 64 if (wide & work.ran).any() else 32
    return Divisions(found, keep, bits)


def _places(work: Work, quotients: Mask, keep: Array) -> None:
    """Leave two instructions an access of what is made of quotients until a place is found, and of what serves that
    alone: where each index is counted apart, or is an axis of the grid, places follow one another. What threads
    divide alike tells them no places of their own.
    """
    if not quotients.any():
        return
    code = work.code
    plain = work.ran & ~code.by_data & ~quotients & work.where(_finds_places)

    def onward(at: int) -> list[int]:
        return [use for use in code.readers[at] if plain[use]]

    rows = np.flatnonzero(quotients & work.ran & distinct.evaluations(work).by_thread).tolist()
    made = reached([use for at in rows for use in onward(at)], onward)
    accesses = {use for at in made for use in code.readers[at] if code.sass[use].space and work.ran[use]}
    if accesses:
        mine = [at for at in made | serving(work, made) if not quotients[at]]
        left = OF_AN_ACCESS * float(work.executed[list(accesses)].sum())
        keep[mine] = min(1.0, share(left, work.executed[mine].sum()))


def _finds_places(line: Sass) -> bool:
    """Whether an instruction may work out a place: a whole number in a register."""
    whole = line.instruction_class in ("integer", "uniform", "move")
    return whole and any(name[0] != "P" and name[:2] != "UP" for name in line.writes)


def _leave(work: Work, rows: set[int], products: float, others: float, keep: Array) -> None:
    """Leave so many multiply-adds and other instructions of these."""
    for whole, of in ((products, True), (others, False)):
        mine = [at for at in rows if (work.sass[at].opcode == "IMAD") == of and work.executed[at]]
        keep[mine] = min(1.0, share(whole, work.executed[mine].sum()))


def _digit_by_digit(work: Work, loop: Loop) -> bool:
    """Whether a loop divides by 64 bits what has 128: a digit of the quotient a round, until 64 bits are left."""
    mine = (at for at in range(loop.first, loop.last + 1) if work.code.loop_of(at) == loop)
    lines = [work.sass[at] for at in mine if work.executed[at]]
    counted = (line for line in lines if line.opcode in ("VIADD", "IADD3") and hex(DIGIT) in line.operands)
    counters = {name for line in counted for name in line.writes}
    ends = (line for line in lines if line.opcode == "ISETP" and not counters.isdisjoint(line.reads))
    numbers = (int(one, 0) for line in ends for one in line.operands if _NUMBER.fullmatch(one))
    wide = any(line.opcode == "IMAD" and "HI" in line.modifiers for line in lines)
    return (
        wide
        and any(DIVISOR < one <= DIVISOR + DIGIT for one in numbers)
        and not any(line.space for line in lines)
    )


def _from_memory(work: Work, index: int) -> bool:
    """Whether what an instruction reads, or was moved for a call just before it, goes back to loaded values."""
    code = work.code
    moved = range(max(0, index - 6), index) if code.sass[index].opcode == "CALL" else (index,)
    return any(code.by_data[source] for at in moved for source in code.sources(at))


# What a division of 32 bits is made of behind the conversion of its divisor, in registers of a thread or a warp.
_STEPS = frozenset({
    f"{where}{step}"
    for where in ("", "U")
    for step in ("IMAD", "IADD3", "VIADD", "ISETP", "SEL", "MOV", "IABS", "LOP3", "F2I", "MUFU", "R2UR")
})  # fmt: skip
_SIGNS = ("IABS", "ISETP", "LOP3", "MOV")
# Added to the bits of the reciprocal, so that it is not too large.
_BELOW = 0xFFFFFFE
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")


def _narrow_divisions(work: Work, wide: Mask) -> Iterator[tuple[list[int], list[int], int, int, bool, bool]]:
    """Divisions of 32 bits by one reciprocal, each from the conversion of its divisor on as far as its results go.

    To a division belongs what reads nothing but its own results, its operands with their signs and the numbers that
    correct it, until something else is made of the result; and what is computed for nothing else.

    Yields:
        What computes the reciprocal, of the divisor alone; what computes quotients and remainders with it, and is for
        nothing else; how many dividends there are, and how many hold the divisor itself; whether any was loaded, or
        is what the round before left; and whether the divisor is the same in all threads, or stays in the loop around.
    """
    code, done = work.code, set[int]()
    for start, line in enumerate(code.sass):
        if line.opcode != "I2F" or "RP" not in line.modifiers or wide[start] or not work.executed[start]:
            continue
        given = _argument(work, code.sources(start))
        members = {start}
        reciprocal = {start}
        dividends: set[frozenset[int]] = set()
        products: dict[int, Iterable[int]] = {}
        of_data = False
        for at in range(start + 1, len(code.sass)):
            one = code.sass[at]
            if one.opcode not in _STEPS or not work.executed[at]:
                continue
            sources = {name: code.producers(at, name) for name in one.reads}
            own = {name for name, by in sources.items() if not members.isdisjoint(by)}
            if not own and not ("LOP3" in one.opcode and one.guard):
                continue
            foreign = [
                by
                for name, by in sources.items()
                if name not in own and not all(_is_given(work, source, given) for source in by)
            ]
            if not own:
                if not foreign:
                    members.add(at)  # the result of a division by zero
            elif not _corrects(one):
                continue
            elif not foreign:
                members.add(at)
                if not dividends:
                    reciprocal.add(at)
            elif (
                "HI" in one.modifiers
                and len(foreign) == 1
                and not any(reciprocal.isdisjoint(sources[name]) for name in own)
            ):
                # The reciprocal times what is divided.
                dividends.add(frozenset(foreign[0]))
                products[at] = foreign[0]
                of_data |= _from_memory(work, at)
                given |= _argument(work, foreign[0])
                members.add(at)
        for at in sorted(members, reverse=True):
            # A comparison that decides something else, too, is made of the result.
            uses = (use for use in code.readers[at] if work.executed[use])
            if "ISETP" in code.sass[at].opcode and not members.issuperset(uses):
                members.discard(at)
        # What is divided again in the next round (digits) nothing counts along, as nothing counts what is loaded.
        of_data |= any(
            one > at for at, given_to in products.items() for one in members & code.made_of(given_to)
        )
        if dividends:
            served = serving(work, members) - done
            # What is divided, counted along, need not be computed; loaded, it is.
            if of_data:
                served = {at for at in served if code.sass[at].opcode.removeprefix("U") in _SIGNS}
            rest = sorted((members | served) - reciprocal)
            same = distinct.stays(work, code.sources(start), [code.loop_of(start)])
            done |= members
            wrapped = sum(_holds(work, one, code.sources(start)) for one in dividends)
            yield sorted(reciprocal), rest, len(dividends), wrapped, of_data, same


def _argument(work: Work, sources: Iterable[int]) -> set[int]:
    """What gives an operand of a division, and what it is the absolute value of."""

    def moved(at: int) -> Iterable[int]:
        line = work.sass[at]
        return work.code.sources(at) if "IABS" in line.opcode or line.full.startswith("IMAD.MOV") else ()

    return reached(sources, moved)


def _holds(work: Work, dividend: Iterable[int], divisor: Iterable[int]) -> bool:
    """Whether a dividend is a sum to which its divisor, a parameter, was added once."""
    values = values_of(work)
    of, by = (
        [values.after(at, name).terms for at in _argument(work, one) for name in work.sass[at].writes]
        for one in (dividend, divisor)
    )
    parameters = {next(iter(terms)) for terms in by if len(terms) == 1}
    return any(
        len(terms) > 1 and factors and isinstance(number, int) and number == 1 and factors in parameters
        for terms in of
        for factors, number in terms.items()
    )


def _is_given(work: Work, index: int, given: set[int], steps: int = 3) -> bool:
    """Whether an instruction tells of the operands alone: their signs, whether one is 0, a parameter that one is, too,
    or a constant.
    """
    line = work.sass[index]
    same = line.space == "constant" and line.operands[1:] in [work.sass[one].operands[1:] for one in given]
    if index in given or ((line.moves_a_constant or same) and not line.reads):
        return True
    return (
        steps > 0
        and (line.opcode.removeprefix("U") in _SIGNS or _negates(line))
        and all(_is_given(work, source, given, steps - 1) for source in work.code.sources(index))
    )


def _negates(line: Sass) -> bool:
    """Whether an instruction gives a register as it is, or with the other sign."""
    return line.full.startswith("IMAD.MOV") or (line.opcode == "IADD3" and line.operands[1:].count("RZ") == 2)


def _corrects(line: Sass) -> bool:
    """Whether an instruction computes with results of a division as the division itself does."""
    numbers = {int(one, 0) for one in line.operands if _NUMBER.fullmatch(one)}
    # One more, for a quotient that was too small, is added under a condition.
    one = {1} if line.guard or "IMAD" in line.opcode else set()
    return "LOP3" not in line.opcode and numbers <= {0, -1, 0xFFFFFFFF, _BELOW} | one


# --- Remainders by numbers of the code, of what remainders were taken of before ---------------------------------------

FOLDED = 4.0  # instructions that fold the upper bits of a wide product by the divisor's form: shifts and sums
# Values that are added up before a remainder is taken; where each is multiplied, as many as 32 bits have room for.
PUT_OFF = 8.0
LONGEST, WIDE = 24, 8  # instructions of one at most, and from which on it is of 64 bits
_LINEAR = frozenset({"IMAD", "IADD3", "VIADD", "LEA", "MOV"})


def chained_remainders(work: Work) -> Array | None:
    """What stays of each instruction where remainders of remainders (a check sum, a generator of random numbers) are
    taken less often, or by the divisor's form; None where none are taken of what others left.

    A remainder by a number ends with the product of the quotient, which is made of the dividend alone, and that number,
    taken from the dividend.
    """
    code, keep = work.code, work.all_kept()
    ran = np.flatnonzero(work.ran).tolist()
    slices = {at: mine for at in ran if (mine := _quotient_of(work, at, work.sass[at]))}
    inside = {one for mine in slices.values() for one in mine}
    for at, mine in slices.items():
        line = work.sass[at]

        def onward(one: int, own: int = at) -> list[int]:
            if one in slices and one != own:
                return []
            uses = (use for use in code.readers[one] if use not in inside)
            return [use for use in uses if code.sass[use].opcode in _LINEAR]

        behind = reached([use for use in onward(at) if work.executed[use]], onward)
        if slices.keys().isdisjoint(behind):
            continue

        def backward(one: int, within: set[int] = behind) -> set[int]:
            return within.intersection(code.sources(one))

        between = reached(behind & slices.keys(), backward)
        lines = [code.sass[one] for one in between - slices.keys()]
        larger = math.inf if any("WIDE" in one.modifiers for one in lines) else math.prod(map(factor, lines))
        put_off = math.log(2.0**32 / -int(line.operands[2], 0), larger) if larger > 1.0 else PUT_OFF
        # Of 64 bits the upper halves of dividend and remainder are for nothing else.
        rows = {at, *mine} | (serving(work, {at, *mine}) if len(mine) >= WIDE else set())
        stays = FOLDED / len(rows) if len(mine) >= WIDE else 1.0 / max(1.0, math.floor(put_off))
        keep[list(rows)] = np.minimum(keep[list(rows)], stays)
    return keep if bool((keep < 1.0).any()) else None


def factor(line: Sass) -> float:
    """What an instruction multiplies its first operand by: a number of the code, or nobody knows how large a one."""
    if not (
        _scales(line) or (line.opcode in ("LEA", "SHF") and not {"HI", "R"}.intersection(line.modifiers))
    ):
        return 1.0
    number = "".join(line.operands[-1:] if line.opcode == "LEA" else line.operands[2:3])
    if not _NUMBER.fullmatch(number):
        return math.inf
    return abs(float(int(number, 0))) if line.opcode == "IMAD" else 2.0 ** (int(number, 0) % REGISTER_BITS)


def _scales(line: Sass) -> bool:
    return line.opcode == "IMAD" and {"MOV", "IADD", "X"}.isdisjoint(line.modifiers)


def _quotient_of(work: Work, at: int, line: Sass) -> set[int]:
    """What makes the quotient of a remainder that ends here, of the dividend alone; empty where none does."""
    code = work.code
    if not _scales(line) or len(line.operands) < 4 or not _NUMBER.fullmatch(line.operands[2]):
        return set()
    quotient, dividend = line.operands[1], line.operands[-1]
    if int(line.operands[2], 0) > -3 or quotient[0] != "R" or not re.fullmatch(r"R\d+", dividend):
        return set()
    names = (dividend, f"R{int(dividend[1:]) + 1}") if "WIDE" in line.modifiers else (dividend,)
    given = {source for name in names for source in code.producers(at, name)}
    found, waiting = set[int](), [*code.producers(at, quotient.removesuffix(".reuse"))]
    while waiting:
        one = waiting.pop()
        if one in given or one in found:
            continue
        if code.sass[one].opcode not in {*_LINEAR, "SHF"} or len(found) > LONGEST:
            return set()
        found.add(one)
        sources = code.sources(one)
        if not sources and not code.sass[one].moves_a_constant:
            return set()
        waiting += sources
    wide = any("HI" in code.sass[one].modifiers or "WIDE" in code.sass[one].modifiers for one in found)
    return found if wide else set()
