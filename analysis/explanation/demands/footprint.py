"""What the threads of a block load more than once: counted from the addresses, not guessed from hit rates.

Loads of one array are taken together. Where each goes, in units of its width, follows from its form: thread by thread,
round by round of its loops (as often as they ran), tap by tap. What is different is loaded once, the rest again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from gemmprof.analysis.explanation.code.address_forms import (
    AFFINE,
    FAR,
    SECTOR,
    STRIDED,
    UNIFORM,
    Form,
    checked_forms,
    coefficient,
    launched,
)
from gemmprof.analysis.explanation.code.flow import Loop
from gemmprof.analysis.explanation.code.symbolic import Product, Threads, Value, add, of, wrapped
from gemmprof.analysis.explanation.demands.work import Mask, Work, once
from gemmprof.gpu.arch import WARP

MOST_ROUNDS = 16  # rounds of a loop that are followed: what a longer one loads again, it does in these, too
MOST_PLACES = 1 << 17  # places of one array that are looked at, over all threads of a block
AXES = ("x", "y", "z")
# How much farther apart the rows of each further length are taken to be; odd, so that none is lost.
ROWS = (1 << 12) + 1
UNROLLED = 128 * 1024 // 16  # instructions of 16 bytes that the instruction cache holds
_NUMBER = re.compile(r"^-?0x[0-9a-f]+$")


@dataclass(frozen=True)
class Reuse:
    """The loads of one array from one place that the block's threads have in common.

    Attributes:
        rows: the instructions.
        width: bytes of each.
        asked: loads of a thread.
        thread: different places of a thread.
        apart: different places of a warp, those of each load counted apart.
        warp: different places of a warp.
        dense: share of the bytes from a warp's first to its last that the loads of one round ask
            for; 0 where lanes share places.
        block: different places of a block.
        sectors: different sectors of a block.
        outputs: different places of one thread that does the work of 2, 4 and 8 neighbours along an axis.
        fetched: sectors that a block touches when its threads do so, of those that as many blocks touch now.
        along: axes along which a thread's next round, of the loop that begins there, loads what its neighbour does now.
    """

    rows: tuple[int, ...]
    width: int
    asked: float
    thread: float
    apart: float
    warp: float
    dense: float
    block: float
    outputs: dict[tuple[str, int], float]
    sectors: float
    fetched: dict[tuple[str, int], float]
    along: frozenset[tuple[str, int]] = frozenset()


def of_each_thread(work: Work, rows: tuple[int, ...], width: int, asked: float, thread: float) -> Reuse:
    """Loads of which nothing is known but what a thread itself loads again: others' places are taken as others."""
    warp, block = thread * WARP, thread * work.profile.launch.threads_per_block
    return Reuse(rows, width, asked, thread, warp, warp, 0.0, block, {}, 0.0, {})


@once
def arrays(work: Work) -> tuple[Reuse, ...]:
    """The arrays that a launch's loads read, as far as their addresses are known and confirmed."""
    if work.program is None:
        return ()
    groups: dict[object, list[Form]] = {}
    for index, one in checked_forms(work).items():
        form = one.form
        believed = one.verdict in ("exact", "agrees") and form.kind in (AFFINE, STRIDED, UNIFORM)
        if believed and form.space == "global" and work.sass[index].is_load:
            groups.setdefault((_common(form), form.width), []).append(form)
    found = [_array(work, forms) for forms in groups.values()]
    known = {row for array in found for row in array.rows}
    return (*found, *(array for array in _by_bits(work) if known.isdisjoint(array.rows)))


def _passes(work: Work, form: Form) -> float:
    """How often a thread comes by the same place: the rounds of the loops around that the address does not follow."""
    return float(
        np.prod(
            [
                rounds(work, loop)
                for loop in work.code.loops_around[form.index]
                if loop.first not in form.loops and not written(work, form, loop)
            ]
        )
    )


@dataclass(frozen=True)
class _Shifted:
    """A load whose place a number tells that is shifted right: its constant part, and what a round adds to it."""

    form: Form
    loop: Loop
    number: int
    step: int
    lost: int


def _by_bits(work: Work) -> Iterator[Reuse]:
    """Loads at a place that a shift to the right tells (of a bit, of a page): as long as only the bits that are lost
    change from round to round, a thread loads the same again.
    """
    code = work.code
    groups: dict[object, list[_Shifted]] = {}
    for index, one in checked_forms(work).items():
        form, loop = one.form, code.loop_of(index)
        told = [symbol for symbol in form.address.symbols if symbol.kind == "shifted"]
        if form.space != "global" or not work.sass[index].is_load or len(told) != 1 or loop is None:
            continue
        before, lost = form.shifted[told[0]], told[0].name
        step, factor = coefficient(before, "trip", loop.first), form.address.terms.get((told[0],))
        rest = Value({key: one for key, one in form.address.terms.items() if key != (told[0],)})
        still = not any(loop.first in symbol.loops for symbol in rest.symbols)
        start = before.terms.get((), 0)
        if step is None or not isinstance(lost, int) or not still or not isinstance(factor, int):
            continue
        number = start if isinstance(start, int) else int(start[0])
        key = rest.key, add(before, of(number), -1).key, lost, factor, form.width, loop
        groups.setdefault(key, []).append(_Shifted(form, loop, number, step, 1 << lost))
    for loads in groups.values():
        head, rows = loads[0], tuple(load.form.index for load in loads)
        often = rounds(work, head.loop)
        moved = max(load.number for load in loads) - min(load.number for load in loads)
        asked = float(work.executed[list(rows)].sum()) / work.launched_warps
        entered = float(work.executed[rows[0]]) / often / work.launched_warps
        # A run of so many begins anywhere within what the shift leaves together.
        thread = min(asked, entered * (1.0 + (moved + abs(head.step) * (often - 1.0)) / head.lost))
        yield of_each_thread(work, rows, head.form.width, asked, thread)


def _is_far(factors: Product) -> bool:
    """A number of rows: nothing but parameters and sizes of the grid, and how often a loop ran."""
    return bool(factors) and all(one.kind in ("parameter", "grid", "trip", "block") for one in factors)


def _common(form: Form) -> frozenset[object]:
    """The terms that tell arrays apart: where they begin, each block's place, and what nobody knows."""
    return frozenset(
        (factors, one if isinstance(one, int) else one.tobytes())
        for factors, one in form.address.terms.items()
        if factors
        and (
            not _is_far(factors)
            or any(symbol.kind == "block" for symbol in factors)
            or (len(factors) == 1 and factors[0].kind == "parameter" and isinstance(one, int) and one == 1)
        )
    )


def rounds(work: Work, loop: Loop) -> float:
    """How often a loop runs each time that it is entered."""
    before = [at for at in work.code.predecessors[loop.first] if at < loop.first]
    entered = sum(min(float(work.executed[at]), float(work.executed[loop.first])) for at in before)
    return max(1.0, float(work.executed[loop.first]) / entered) if entered else 1.0


def distinct(values: Threads) -> Threads:
    """The different ones of some numbers, ascending: np.unique hashes them since NumPy 2.3, which takes far longer."""
    ascending = np.sort(values, axis=None)
    return ascending[np.concatenate(([True], ascending[1:] != ascending[:-1]))]


class _Touched(NamedTuple):
    """How many different places a group of loads touches, ``followed`` of them a thread; see `Reuse`."""

    followed: int
    thread: int
    apart: int
    warp: int
    block: int
    sectors: int
    dense: float
    outputs: dict[tuple[str, int], float]
    fetched: dict[tuple[str, int], float]
    shifts: dict[str, int]


def _array(work: Work, forms: list[Form]) -> Reuse:
    code = work.code
    threads = work.profile.launch.threads_per_block
    warps = work.launched_warps
    scales: dict[Product, int] = {}
    places: list[Threads] = []
    walked: list[int] = []
    asked = float(work.executed[[form.index for form in forms]].sum()) / warps
    told = (
        0.0  # loads of a thread that its places stand for: those of one pass, where several walk the same way
    )
    walks: set[tuple[int, int]] = set()
    for form in forms:
        where, steps = _place(form, scales, threads)
        walks = walks & set(steps.items()) if places else set(steps.items())
        moved = np.zeros(1, dtype=np.int64)
        for loop in code.loops_around[form.index]:
            step = steps.get(loop.first)
            if step:
                # Of many taps fewer rounds are followed, of outer loops none: more may be loaded again than is seen.
                most = max(1, MOST_PLACES // (len(moved) * threads * len(forms)))
                walked.append(times := int(min(MOST_ROUNDS, most, round(rounds(work, loop)))))
                moved = (moved[:, None] + step * np.arange(times)[None, :]).reshape(-1)
        told += float(work.executed[form.index]) / warps / _passes(work, form)
        places.append(where[:, None] + moved[None, :])
    rows = tuple(form.index for form in forms)
    # What is touched follows from the code, the block and the rounds: the same for most launches of a kernel.
    key = "touched", rows, tuple(walked), launched(work)
    if key not in code.kept:
        code.kept[key] = _touched(forms[0], work.profile.launch.block, places, scales)
    found = cast(_Touched, code.kept[key])
    return Reuse(
        rows=rows,
        width=forms[0].width,
        asked=asked,
        thread=told * found.thread / found.followed,
        apart=told * found.apart / found.followed,
        warp=told * found.warp / found.followed,
        dense=found.dense,
        block=told * found.block / found.followed,
        outputs={key: told * value for key, value in found.outputs.items()},
        sectors=told * found.sectors / found.followed,
        fetched=found.fetched,
        along=frozenset(
            (axis, loop) for axis, shift in found.shifts.items() for loop, step in walks if step == shift
        ),
    )


def _touched(
    form: Form, block: tuple[int, int, int], places: list[Threads], scales: dict[Product, int]
) -> _Touched:
    threads = block[0] * block[1] * block[2]
    starts = [distinct(one[:WARP, 0]) for one in places]
    first = distinct(np.concatenate(starts))
    apart = all(len(one) == min(WARP, threads) for one in starts)
    whole = np.concatenate([np.broadcast_to(one, (threads, one.shape[1])) for one in places], axis=1)
    mine = whole[0]
    followed = whole.shape[1]
    outputs, fetched, shifts = {}, {}, {}
    lines = distinct(whole // SECTOR)
    for number, axis in enumerate(AXES):
        shift = _shift(whole, form, block, number, scales)
        if shift is not None:
            shifts[axis] = shift
            for times in (2, 4, 8):
                several = mine[None, :] + shift * np.arange(times)[:, None]
                outputs[axis, times] = float(len(distinct(several))) / followed
                # The block's tile grows along the axis: its threads' new results lie behind those of its last one.
                longer = wrapped(shift * block[number])
                beside = lines[None, :] + longer * np.arange(times)[:, None] // SECTOR
                fetched[axis, times] = len(distinct(beside)) / (times * len(lines))
    return _Touched(
        followed=followed,
        thread=len(distinct(mine)),
        apart=sum(len(distinct(one[:WARP])) for one in places),
        warp=len(distinct(whole[:WARP])),
        block=len(distinct(whole)),
        sectors=len(lines),
        dense=len(first) * form.width / (float(first[-1]) - float(first[0]) + form.width) if apart else 0.0,
        outputs=outputs,
        fetched=fetched,
        shifts=shifts,
    )


def written(work: Work, form: Form, loop: Loop) -> bool:
    """Whether the loop also writes to the array: what is loaded in its next round may be something else."""
    stores = _stores(work)
    return any(
        bisect_left(stores.get(one, ()), loop.first) < bisect_right(stores.get(one, ()), loop.last)
        for one in form.parameters
    )


@once
def _stores(work: Work) -> dict[object, list[int]]:
    """The stores to what each parameter points at, ascending."""
    found: dict[object, list[int]] = {}
    for index in sorted(checked_forms(work)):
        if work.sass[index].is_store:
            for one in checked_forms(work)[index].form.parameters:
                found.setdefault(one, []).append(index)
    return found


def _place(form: Form, scales: dict[Product, int], threads: int = 1) -> tuple[Threads, dict[int, int]]:
    """Where each thread's load goes, rows of unknown length taken as far apart, and what a round of each loop adds.

    What differs from warp to warp as nobody knows (a row that was loaded, a share of the work) is such rows.
    """
    where: Threads = np.zeros(1, dtype=np.int64)
    steps: dict[int, int] = {}
    for factors, number in form.address.terms.items():
        rows = any(symbol.threads for symbol in factors)
        one = np.arange(threads) // WARP if rows and not _is_far(factors) else number
        if not _is_far(factors) and factors and isinstance(one, int):
            continue
        if len(factors) == 1 and factors[0].kind == "parameter" and isinstance(one, int) and one == 1:
            continue
        if any(symbol.kind == "block" for symbol in factors):
            continue
        loop = next((symbol.name for symbol in factors if symbol.kind == "trip"), None)
        rest = tuple(symbol for symbol in factors if symbol.kind != "trip")
        # Many rows of unknown length outgrow 64 bits: then places are still as different as these numbers are odd.
        scale = scales.setdefault(rest, wrapped(FAR * ROWS ** len(scales))) if rest else 1
        if loop is None:
            where = where + (wrapped(scale * one) if isinstance(one, int) else scale * one)
        elif isinstance(one, int) and isinstance(loop, int):
            steps[loop] = wrapped(steps.get(loop, 0) + scale * one)
    return where, steps


def _shift(
    whole: Threads, form: Form, block: tuple[int, int, int], number: int, scales: dict[Product, int]
) -> int | None:
    """How far a thread's places lie from its neighbour's along an axis; None where it is not the same everywhere."""
    if block[number] > 1:
        apart = (1, block[0], block[0] * block[1])[number]
        first = whole[:, 0].reshape(block[2], block[1], block[0])
        moved = np.diff(first, axis=2 - number)
        shift = int(whole[apart, 0] - whole[0, 0])
        return shift if (moved == shift).all() else None
    found = 0
    for factors, one in form.address.terms.items():
        if not any(symbol.kind == "block" and symbol.name == AXES[number] for symbol in factors):
            continue
        rest = tuple(symbol for symbol in factors if symbol.kind != "block")
        if not isinstance(one, int) or (rest and rest not in scales):
            return None
        found = wrapped(found + one * (scales[rest] if rest else 1))
    return found


def of_known_length(work: Work, loop: Loop) -> bool:
    """Whether the code says how often a loop runs, so that it can be unrolled, and the instruction cache holds that."""
    code = work.code
    compared = [
        work.sass[source] for name in work.sass[loop.last].reads for source in code.producers(loop.last, name)
    ]
    told = compared and all(
        one.opcode in ("ISETP", "UISETP") and any(_NUMBER.match(operand) for operand in one.operands)
        for one in compared
    )
    return bool(told) and len(loop) * rounds(work, loop) <= UNROLLED


def serving(work: Work, rows: set[int], through: tuple[str, ...] = ("",)) -> set[int]:
    """Instructions that do nothing but tell where these accesses go, and whether; or when these branches are taken.

    Args:
        through: spaces whose loads are followed: with ``constant`` an index that a table tells is one of them.
    """
    code = work.code
    waiting = list(rows)
    found: set[int] = set()
    while waiting:
        at = waiting.pop()
        line = work.sass[at]
        for name in line.reads:
            if at in rows and line.is_store and name in line.operands[-1]:
                continue
            for source in code.producers(at, name):
                if source not in found and work.sass[source].space in through and work.executed[source]:
                    found.add(source)
                    waiting.append(source)
    # What others read, too, stays; and so what it was made from.
    gone = found | rows
    waiting = list(found)
    while waiting:
        at = waiting.pop()
        if at in found and any(work.executed[use] and use not in gone for use in code.readers[at]):
            found.discard(at)
            if at not in rows:
                gone.discard(at)
            waiting += [source for source in code.sources(at) if source in found]
    return found


def computing(work: Work) -> Mask:
    """What computes the values that are stored and picks between them, or reads loaded ones: the rest finds their
    places and counts them.
    """
    code = work.code
    found = np.zeros(len(work.sass), dtype=bool)
    waiting: list[tuple[int, str]] = []
    for index in np.flatnonzero(work.executed > 0):
        at = int(index)
        line = work.sass[at]
        if line.is_store:
            places = {
                name for operand in line.operands if "[" in operand for name in address_registers(operand)
            }
            waiting += [(at, name) for name in line.reads if name[0] == "R" and name not in places]
    while waiting:
        at, name = waiting.pop()
        for source in code.producers(at, name):
            if not found[source] and work.sass[source].space in ("", "constant"):
                found[source] = True
                waiting += [(source, read) for read in work.sass[source].reads]
    return found


def address_registers(operand: str) -> set[str]:
    """Vector registers in the brackets of an operand, the second half of a pair included."""
    names = set()
    for number, wide in re.findall(r"(?<![\w.])R(\d+)(\.64)?", operand):
        names.add(f"R{number}")
        if wide:
            names.add(f"R{int(number) + 1}")
    return names
