"""Where each load and store goes: its address as a sum over lane, block and loops, checked by what was counted.

A form is made from the code (`symbolic`), once for each code and shape of the block. It is believed for a launch
only if the sectors, lines and passes that it predicts are those that the report counts for the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial, gcd

import numpy as np

from gemmprof.analysis.explanation.code.flow import Loop, Program
from gemmprof.analysis.explanation.code.symbolic import Symbol, Threads, Value, Values
from gemmprof.analysis.explanation.demands.work import Array, Work, once
from gemmprof.gpu.arch import BANK_BYTES, BANKS, WARP

SECTOR, LINE = 32, 128
ALLOCATION = 256  # bytes to which what a kernel gets as a parameter is aligned: allocations are
WIDEST = 16  # bytes that a thread moves at most with one access
ALL_ACTIVE = 31.9  # active threads of an execution, from which on all of a warp's counted
FAR = 1 << 20  # bytes of a stride that is a parameter: a row of a matrix, at any rate more than a line
CLOSE = 0.02  # how far a counted number may lie from a predicted one: what a grid's last blocks do otherwise

# From lane to lane the address moves by numbers; by numbers times a parameter; not at all; from one run of memory to
# another, whose beginnings were loaded before the loop that walks along them; by loaded values; as nobody knows.
AFFINE, STRIDED, UNIFORM = "affine", "strided", "uniform"
RUNS, LOOK_UP, UNKNOWN = "runs", "look-up", "unknown"


@dataclass(frozen=True)
class Form:
    """The address of one access."""

    index: int  # of the instruction
    space: str  # ``global`` or ``shared``
    width: int  # bytes that a thread moves
    address: Value  # the sum
    kind: str  # what the lanes' addresses are: `AFFINE` …

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
        found: Threads = np.zeros(1, dtype=np.int64)
        for factors, one in self.address.terms.items():
            if not isinstance(one, int):
                found = found + (FAR * one if factors else one)
        return np.asarray(found - found[0], dtype=np.int64)

    @cached_property
    def base(self) -> frozenset[tuple[tuple[Symbol, ...], int | bytes]]:
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


@once
def values_of(work: Work) -> Values:
    """The values in the registers of a launch: they depend on the block, the GPU and the ways that were taken."""
    major, minor = work.profile.device.compute_capability
    before = work.code.taken(work.executed, work.threads)
    return _values(work.code, work.profile.launch.block, 10 * major + minor, before)


@once
def _values(
    program: Program, block: tuple[int, int, int], capability: int, before: tuple[tuple[int, ...], ...]
) -> Values:
    """The same for all launches of a block that took the same ways."""
    return Values(program, block, capability, before)


@once
def _form(program: Program, values: Values, index: int) -> Form:
    line = program.sass[index]
    address = values.address(index, line.when)
    return Form(index, line.space, line.access_bytes, address, _kind(address, program.loop_of(index)))


def _kind(address: Value, loop: Loop | None) -> str:
    lanes = [symbol for symbol in address.symbols if symbol.lanes]
    if any(symbol.looked_up for symbol in lanes):
        walked = loop is not None and coefficient(address, "trip", loop.first) not in (None, 0)
        return RUNS if walked else LOOK_UP
    if lanes:
        return UNKNOWN
    if address.lane_uniform:
        return UNIFORM
    if all(isinstance(one, int) or not factors for factors, one in address.terms.items()):
        return AFFINE
    return STRIDED


def constant(form: Form) -> int:
    """The number in the first thread's address."""
    number = form.address.terms.get((), 0)
    return number if isinstance(number, int) else int(number[0])


def aligned(form: Form) -> int:
    """Bytes that all threads' addresses are a multiple of, but for the constant."""
    number = form.address.terms.get((), 0)
    found = row_granule(form)
    return found if isinstance(number, int) else gcd(found, int(np.gcd.reduce(number - number[0])))


def record(form: Form) -> int:
    """Bytes of the records that it looks up: what all places are a multiple of, but for a field's own."""
    return row_granule(form, found=0)


def row_granule(form: Form, found: int = ALLOCATION) -> int:
    """Bytes that the first thread's address is known to be a multiple of; an array begins at one of ``found``."""
    for factors, one in form.address.terms.items():
        if not factors or (
            len(factors) == 1 and factors[0].kind == "parameter" and isinstance(one, int) and one == 1
        ):
            continue
        found = gcd(found, one if isinstance(one, int) else int(np.gcd.reduce(one)))
    return max(1, found)


def warps_of(numbers: Threads) -> Threads:
    """Numbers of a block's threads, those of each whole warp in a row; or of the only one, if it is not full."""
    threads = numbers.shape[-1]
    lanes = min(threads, WARP)
    return numbers[..., : threads - threads % lanes].reshape(*numbers.shape[:-1], -1, lanes)


@dataclass(frozen=True, slots=True)
class Touched:
    """Pieces of memory that a warp touches with one access: the mean over the warps of a block, and its bounds."""

    fewest_mean: float
    most_mean: float
    fewest: float
    most: float


def touched(form: Form, size: int) -> Touched | None:
    """Pieces of ``size`` bytes that a warp touches, over all places where the array may begin; None if not known."""
    offsets = np.zeros(1, dtype=np.int64) if form.kind == UNIFORM else form.offsets
    if offsets is None:
        return None
    granule, rows = row_granule(form), warps_of(offsets)[:8]
    begin = constant(form) % max(granule, size)
    return _touched(rows.tobytes(), rows.shape[1], begin, granule, max(1, form.width), size)


def one_behind_another(form: Form) -> bool:
    """Whether the lanes of a warp leave no bytes out between them that is known of, and share none."""
    if form.offsets is None or form.kind == UNIFORM:
        return True
    rows = np.sort(warps_of(form.offsets), axis=1)
    return bool((np.diff(rows, axis=1) == form.width).all())


@lru_cache(maxsize=4096)
def _touched(offsets: bytes, lanes: int, begin: int, granule: int, width: int, size: int) -> Touched:
    rows = np.frombuffer(offsets, dtype=np.int64).reshape(-1, lanes)
    starts = range(begin % granule, size, granule)[:16] if granule < size else (begin % size,)
    known = _pieces(rows, starts, width, size)
    # A parameter may point into an array: then nothing is known but that accesses are aligned to their own width.
    odd = _pieces(rows, range(0, size, max(width, size // WARP)), width, size)
    means, every = known.mean(axis=1), np.concatenate((known.ravel(), odd.ravel()))
    return Touched(float(means.min()), float(means.max()), float(every.min()), float(every.max()))


def _pieces(rows: Threads, starts: Sequence[int], width: int, size: int) -> Array:
    """Pieces of ``size`` bytes that each row of offsets touches (columns), for each start (rows)."""
    moved = rows[None, :, :] + np.array(starts, dtype=np.int64)[:, None, None]
    places = np.concatenate((moved, moved + (width - 1)), axis=2) // size
    places.sort(axis=2)
    return np.asarray(1.0 + (places[:, :, 1:] != places[:, :, :-1]).sum(axis=2), dtype=np.float64)


def passes(form: Form) -> float | None:
    """Passes through the data stage that a shared access of a whole warp takes, the mean over a block's warps; None if
    not known.

    A pass serves every bank once: 32 words of four bytes, each for all threads that ask for it. Accesses of 16 bytes
    take a half of the warp at a time.
    """
    if form.kind == UNIFORM:
        return 2.0 if form.width == WIDEST else 1.0
    if form.offsets is None:
        return None
    rows = warps_of(form.offsets)[:8]
    return _passes(rows.tobytes(), rows.shape[1], form.width)


@lru_cache(maxsize=4096)
def _passes(offsets: bytes, lanes: int, width: int) -> float:
    rows = np.frombuffer(offsets, dtype=np.int64).reshape(-1, lanes)
    groups = 2 if width == WIDEST and lanes == WARP else 1
    first = rows.reshape(-1, lanes // groups) // BANK_BYTES
    words = np.concatenate([first + at for at in range(max(1, width // BANK_BYTES))], axis=1)
    words.sort(axis=1)
    new = np.ones(words.shape, dtype=bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    group = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
    counts = np.bincount((group * BANKS + words % BANKS)[new], minlength=len(words) * BANKS)
    return float(counts.reshape(len(words), BANKS).max(axis=1).sum()) / len(rows)


@lru_cache(maxsize=256)
def random_passes(lanes: int, banks: int = BANKS) -> float:
    """Passes that so many lanes' words take on average when they lie at random in banks of shared memory.

    The fullest of the banks is waited for: lanes! / banks**lanes times the coefficient of x**lanes in
    (sum of x**i / i! up to k)**banks is the chance that none holds more than k.
    """
    expected = 0.0
    for most in range(lanes):
        one = np.array([1.0 / factorial(i) for i in range(most + 1)])
        whole = np.ones(1)
        for _ in range(banks):
            whole = np.convolve(whole, one)[: lanes + 1]
        none_fuller = whole[lanes] * factorial(lanes) / float(banks) ** lanes if len(whole) > lanes else 0.0
        expected += 1.0 - none_fuller
    return float(expected)


@dataclass(frozen=True, slots=True)
class Checked:
    """A form beside what a launch counted."""

    form: Form  # of the access
    # ``exact``, ``agrees`` (within what the beginning of an array and partly filled warps allow), ``contradicted``, or
    # ``open`` where the form predicts nothing that was counted
    verdict: str

    @property
    def confirmed(self) -> bool:
        """Whether what was counted is what the form tells."""
        return self.verdict in ("exact", "agrees")


@once
def checked_forms(work: Work) -> dict[int, Checked]:
    """The forms of a launch's executed accesses with what its counters say of them, by the instruction's number."""
    if work.program is None:
        return {}
    values = values_of(work)
    accesses = work.where(
        lambda line: line.space in ("global", "shared") and any("[" in one for one in line.operands)
    )
    ran = np.flatnonzero(accesses & (work.executed > 0)).tolist()
    forms = {index: _form(work.code, values, index) for index in ran}
    return {index: Checked(form, _verdict(work, form)) for index, form in forms.items()}


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
        known = None if expected is None else Touched(expected, expected, expected, expected)
        counted.append((work.shared_wavefronts[index] / executed, known))
    # Threads that its predicate turns off count as active; a copy's stands behind its operands.
    guarded = bool(work.sass[index].guard) or (
        work.sass[index].opcode == "LDGSTS" and "P" in work.sass[index].operands[-1]
    )
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
