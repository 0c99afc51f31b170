"""Where each load and store goes: its address as a sum over lane, block and loops, checked by what was counted.

A form is made from the code (`symbolic`), once for each code and shape of the block. It is believed for a launch
only if the sectors, lines and passes that it predicts are those that the report counts for the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

import numpy as np
import numpy.typing as npt

from gemmprof import metrics
from gemmprof.analysis.explanation.code.flow import Loop, Program
from gemmprof.analysis.explanation.code.symbolic import (
    Symbol,
    Threads,
    Value,
    Values,
    add,
    address_parts,
    of,
    scaled,
)
from gemmprof.analysis.explanation.demands.work import Array, Work, once

SECTOR, LINE, BANKS, WORD = 32, 128, 32, 4
WARP = 32
ALLOCATION = 256
"""Bytes to which what a kernel gets as a parameter is aligned: allocations are."""
WIDEST = 16
"""Bytes that a thread moves at most with one access."""
ALL_ACTIVE = 31.9
"""Active threads of an execution, from which on all of a warp's counted."""
FAR = 1 << 20
"""Bytes of a stride that is a parameter: a row of a matrix, at any rate more than a line."""
CLOSE = 0.02
"""How far a counted number may lie from a predicted one: what a grid's last blocks do otherwise."""

AFFINE, STRIDED, UNIFORM, LOOK_UP, UNKNOWN = "affine", "strided", "uniform", "look-up", "unknown"
"""Lane parts that are numbers; numbers times a parameter; none; from loaded values; none of these."""


@dataclass(frozen=True)
class Form:
    """The address of one access.

    Attributes:
        index: of the instruction.
        space: ``global`` or ``shared``.
        width: bytes that a thread moves.
        address: the sum.
        kind: what the lanes' addresses are: `AFFINE` …
    """

    index: int
    space: str
    width: int
    address: Value
    kind: str
    kept: dict[int, Touched] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def offsets(self) -> Threads | None:
        """Bytes from the first thread's address to each thread's, a stride that is a parameter taken as a long one;
        None for a look-up and where it is not known.
        """
        if self.kind == UNIFORM:
            number = self.address.terms.get((), 0)
            return None if isinstance(number, int) else number - number[0]
        if self.kind not in (AFFINE, STRIDED):
            return None
        number = sum(
            (one if not factors else one * FAR for factors, one in self.address.terms.items() if not isinstance(one, int)),
            np.zeros(1, dtype=np.int64),
        )
        return number - number[0]

    @cached_property
    def base(self) -> frozenset[object]:
        """The terms without numbers that all threads share or not: what two accesses to one array have in common."""
        return frozenset(
            (factors, one if isinstance(one, int) else one.tobytes())
            for factors, one in self.address.terms.items()
            if factors
        )

    def step(self, loop: Loop) -> int | None:
        """Bytes that the address moves a round of this loop, 0 for none; None if that is no number."""
        return coefficient(self.address, "trip", loop.first)

    @cached_property
    def loops(self) -> frozenset[int]:
        """First instructions of the loops in which the address changes."""
        return frozenset(loop for symbol in self.address.symbols for loop in symbol.loops)

    @cached_property
    def parameters(self) -> frozenset[object]:
        """Parameters that are added as they are: the arrays that it may reach into."""
        return frozenset(
            factors[0].name
            for factors, one in self.address.terms.items()
            if len(factors) == 1 and factors[0].kind == "parameter" and isinstance(one, int) and one == 1
        )

    @cached_property
    def by_thread(self) -> bool:
        """Whether the address differs between threads of a block."""
        return not self.address.uniform

    @cached_property
    def by_block(self) -> bool:
        """Whether it differs between blocks."""
        return any(symbol.blocks for symbol in self.address.symbols)


def coefficient(value: Value, kind: str, name: object) -> int | None:
    """The number that stands before a symbol, 0 where the value does not hold it; None where that is no number."""
    found = 0
    for factors, one in value.terms.items():
        if any(symbol.kind == kind and symbol.name == name for symbol in factors):
            if len(factors) > 1 or not isinstance(one, int):
                return None
            found = one
        elif kind == "trip" and any(name in symbol.loops for symbol in factors):
            return None
    return found


def forms(program: Program, block: tuple[int, int, int], capability: int) -> dict[int, Form]:
    """The form of each access to global or shared memory by the instruction's number; kept beside the code.

    Args:
        program: the code.
        block: threads of a block along x, y and z.
        capability: compute capability times 10.
    """
    key = "forms", block, capability
    if key not in program.kept:
        values = Values(program, block, capability)
        program.kept[key] = {
            index: _form(values, index)
            for index, line in enumerate(program.sass)
            if line.space in ("global", "shared") and any("[" in one for one in line.operands)
        }
    found = program.kept[key]
    assert isinstance(found, dict)
    return found


def _form(values: Values, index: int) -> Form:
    line = values.program.sass[index]
    registers, offset = address_parts(line)
    address = of(offset)
    for name, factor in registers:
        address = add(address, scaled(values.before(index, name, line.when), factor))
    return Form(index, line.space, line.access_bytes, address, _kind(address))


def _kind(address: Value) -> str:
    lanes = [symbol for symbol in address.symbols if symbol.lanes]
    if any(symbol.looked_up for symbol in lanes):
        return LOOK_UP
    if lanes:
        return UNKNOWN
    if address.lane_uniform:
        return UNIFORM
    if all(isinstance(one, int) or not factors for factors, one in address.terms.items()):
        return AFFINE
    return STRIDED


def _granule(form: Form) -> int:
    """Bytes that the address of the first thread is a multiple of, as far as the code tells."""
    found = ALLOCATION
    for factors, one in form.address.terms.items():
        if not factors or (len(factors) == 1 and factors[0].kind == "parameter" and isinstance(one, int) and one == 1):
            continue
        found = gcd(found, one if isinstance(one, int) else int(np.gcd.reduce(one)))
    return max(1, found)


def _rows(offsets: Threads) -> Threads:
    """Whole warps, one a row; a last one that is not full is left out unless it is the only one."""
    whole = len(offsets) - len(offsets) % WARP
    if not whole:
        return offsets.reshape(1, -1)
    return offsets[:whole].reshape(-1, WARP)


def _touched(rows: Threads, start: int, width: int, size: int) -> Array:
    """Pieces of ``size`` bytes that each row of offsets touches."""
    first = (rows + start) // size
    last = (rows + start + max(1, width) - 1) // size
    both = np.sort(np.concatenate((first, last), axis=1), axis=1)
    return np.asarray(1.0 + (np.diff(both, axis=1) != 0).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Touched:
    """Pieces of memory that a warp touches with one access: the mean over the warps of a block, and its bounds."""

    fewest_mean: float
    most_mean: float
    fewest: float
    most: float


def touched(form: Form, size: int) -> Touched | None:
    """Pieces of ``size`` bytes that a warp touches, over all places where the array may begin; None if not known."""
    if size in form.kept:
        return form.kept[size]
    offsets = np.zeros(1, dtype=np.int64) if form.kind == UNIFORM else form.offsets
    if offsets is None:
        return None
    number = form.address.terms.get((), 0)
    begin = int(number if isinstance(number, int) else number[0])
    granule = _granule(form)
    rows = _rows(offsets)[:8]
    starts = range(begin % granule, size, granule) if granule < size else (begin % size,)
    known = [_touched(rows, start, form.width, size) for start in (*starts,)[:16]]
    # A parameter may point into an array: then nothing is known but that accesses are aligned to their own width.
    width = max(1, form.width)
    odd = [*known, *(_touched(rows, start, form.width, size) for start in range(0, size, max(width, size // WARP)))]
    means = [float(one.mean()) for one in known]
    form.kept[size] = Touched(
        min(means), max(means), min(float(one.min()) for one in odd), max(float(one.max()) for one in odd)
    )
    return form.kept[size]


def passes(form: Form) -> float | None:
    """Passes through the data stage that a shared access of a whole warp takes; None if not known."""
    if form.kind == UNIFORM:
        return 2.0 if form.width == WIDEST else 1.0
    return None if form.offsets is None else passes_of(form.offsets, form.width)


def passes_of(addresses: Threads, width: int) -> float:
    """The same of these addresses, the mean over a block's warps.

    A pass serves every bank once: 32 words of four bytes, each for all threads that ask for it. Accesses of 16 bytes
    take a half of the warp at a time.
    """
    parts = max(1, width // WORD)
    groups = 2 if width == WIDEST else 1
    total = 0.0
    rows = _rows(addresses)
    for row in rows:
        each = max(1, len(row) // groups)
        for start in range(0, len(row), each):
            part = row[start : start + each]
            words = np.unique(np.concatenate([part // WORD + at for at in range(parts)]))
            total += float(np.bincount(words % BANKS).max())
    return total / len(rows)


@dataclass(frozen=True, slots=True)
class Checked:
    """A form beside what a launch counted.

    Attributes:
        form: of the access.
        verdict: ``exact``, ``agrees`` (within what the beginning of an array and partly filled warps allow),
            ``contradicted``, or ``open`` where the form predicts nothing that was counted.
    """

    form: Form
    verdict: str

    @property
    def believed(self) -> bool:
        """Whether what it says may be used."""
        return self.verdict in ("exact", "agrees")


@once
def checked_forms(work: Work) -> dict[int, Checked]:
    """The forms of a launch's executed accesses with what its counters say of them, by the instruction's number."""
    if work.code is None:
        return {}
    launch = work.profile.launch
    major, minor = work.profile.device.compute_capability
    found = forms(work.code, launch.block, 10 * major + minor)
    return {
        index: Checked(form, _verdict(work, form)) for index, form in found.items() if work.executed[index] > 0
    }


def _verdict(work: Work, form: Form) -> str:
    index = form.index
    executed = work.executed[index]
    threads = work.threads[index] / executed
    counted: list[tuple[float, Touched | None]] = []
    if form.space == "global":
        counted.append((work.global_sectors[index] / executed, touched(form, SECTOR)))
        if work.global_tags[index]:
            counted.append((work.global_tags[index] / executed, touched(form, LINE)))
    elif not work.sass[index].is_atomic and form.width <= WIDEST:
        expected = passes(form)
        counted.append(
            (
                work.shared_wavefronts[index] / executed,
                None if expected is None else Touched(expected, expected, expected, expected),
            )
        )
    guarded = bool(work.sass[index].guard)  # threads that its predicate turns off count as active
    verdict = "exact" if counted else "open"
    for value, known in counted:
        if known is None or not value:
            return "open"
        if threads >= ALL_ACTIVE and not guarded:
            if not (1 - CLOSE) * known.fewest <= value <= (1 + CLOSE) * known.most:
                return "contradicted"
            if not (1 - CLOSE) * known.most_mean <= value <= (1 + CLOSE) * known.fewest_mean:
                verdict = "agrees"
        else:
            # Some threads are off: fewer pieces, but no fewer than their share of them.
            least = 0.0 if guarded else known.fewest * threads / WARP
            if not (1 - CLOSE) * least <= value <= (1 + CLOSE) * known.most:
                return "contradicted"
            verdict = "agrees"
    return verdict
