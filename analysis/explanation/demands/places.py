"""Where the code's addresses lie as numbers: for these threads of these blocks in these rounds of the loops.

What nobody knows is drawn: parameters are lengths of rows, or where arrays begin; what is loaded, or computed as no sum
and by no known function, is a label that is the same where all that it is made of is. Addresses that come to the same
number are the same place.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import numpy as np

from gemmprof.analysis.explanation.code.symbolic import DEEPEST, Symbol, Threads, Value, Values
from gemmprof.gpu.arch import WARP

ROW = 1 << 12  # bytes, or elements, that a row's length, and where it begins, are a multiple of
LONGEST = 1 << 15  # such multiples that a parameter stands for at most
AXES = ("x", "y", "z")
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio, odd: spreads over all bits


def _drawn(of: object) -> int:
    return ROW * (crc32(repr(of).encode()) % LONGEST | LONGEST | 1)


class Places:
    """The numbers of some executions: points (a thread of a block each) by rounds."""

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
        found = np.zeros((1, 1), dtype=np.int64)
        for factors, number in value.terms.items():
            one = np.full((1, 1), number) if isinstance(number, int) else number[self._threads][:, None]
            for symbol in factors:
                one = one * self._symbol(symbol)
            found = found + one
        return found

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
            found = by(*(np.broadcast_to(one, shape).ravel() for one in numbers))
            if found is not None:
                return np.broadcast_to(np.asarray(found), shape[0] * shape[1]).reshape(shape)
        if not inputs:
            numbers = [one[:, :] for one in self._blocks] if symbol.blocks else []
            if symbol.threads:
                numbers.append((self._threads if symbol.lanes else self._threads // WARP)[:, None])
            numbers += [self._rounds[loop] for loop in sorted(symbol.loops) if loop in self._rounds]
        # What one place holds is the same, whichever instruction loads it.
        what = kind if kind == "loaded" and inputs and len(inputs[0].terms) > 1 else (kind, name)
        label = np.full((1, 1), crc32(repr(what).encode()), dtype=np.uint64)
        for one in numbers:
            label = (label ^ one.astype(np.uint64)) * _MIX
            label ^= label >> np.uint64(29)
        return (label >> np.uint64(20)).astype(np.int64) * ROW
