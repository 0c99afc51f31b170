"""Warps that are stalled by their own stores: a burst behind the work, which no average shows.

A tile's sums are stored all at once, when its warps have nothing else to do, and all blocks of a wave get there
together. The queue from L1 to L2 is full then, though it is idle for most of the launch: a store does not issue
(``lg_throttle``), and a register whose value waits in that queue may not be written again, which Nsight Compute
samples as a long scoreboard at the instruction that would overwrite it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.code.flow import LONG, SEARCH, reached
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work

# Share of the storing warps' time in loops without these stores, from which on the stores come behind the
# work.
MOST_OF_THE_TIME = 0.5


@dataclass(frozen=True, slots=True)
class StoreStall:
    """The time that the storing warps are stalled by some stores.

    Attributes:
        by_store: share of those warps' time by store, one entry an instruction.
        in_time: the same together as a share of the launch's time: the block's work stands still as long.
    """

    by_store: Array
    in_time: float


def stalled_by(work: Work, stores: Mask) -> StoreStall | None:
    """How long the warps that execute these stores are stalled by them.

    Args:
        stores: global stores of one kind.

    Returns:
        None without samples, and where the stores are not behind the work: among other work of the same warps
        the time model's terms already say what they cost.
    """
    if work.program is None or not work.samples or not stores.any():
        return None
    code = work.code
    samples = np.asarray(sum(work.samples.values()))
    mine = _on_the_way(work, stores)
    time = float(samples[mine].sum())
    before = np.zeros(len(stores), dtype=bool)
    for loop in code.loops:
        if not stores[loop.first : loop.last + 1].any():
            before[loop.first : loop.last + 1] = True
    if time <= 0 or float(samples[mine & before].sum()) < MOST_OF_THE_TIME * time:
        return None
    waits = np.zeros(len(stores))
    if "lg_throttle" in work.samples:
        waits += np.where(stores, work.samples["lg_throttle"], 0.0)
    if "drain" in work.attributed:
        waits += np.where(stores, work.attributed["drain"], 0.0)
    for index in np.flatnonzero(work.samples.get(LONG, np.zeros(0))):
        if (found := _overwrites(work, int(index), stores)) is not None:
            waits[found] += work.samples[LONG][index]
    waits /= time
    return StoreStall(
        by_store=waits,
        in_time=float(waits.sum()) * (1.0 - work.idle_start),
    )


def _on_the_way(work: Work, stores: Mask) -> Mask:
    """What only warps execute that execute one of these stores: all from which one is reached, or that one reaches.

    Where warps have roles, the others (producers of a matrix product) are left out, and with them what both do in
    the end, where the others wait for these.
    """
    code = work.code
    after: list[list[int]] = [[] for _ in work.sass]
    for index, before in enumerate(code.predecessors):
        for at in before:
            after[at].append(index)
    first, last = _reached(stores, code.predecessors), _reached(stores, after)
    others = (work.executed > 0) & ~first & ~last
    return first | (last & ~_reached(others, after))


def _reached(start: Mask, edges: Sequence[Sequence[int]]) -> Mask:
    """These instructions and all that lie behind them."""
    found = np.zeros_like(start)
    found[list(reached(np.flatnonzero(start).tolist(), edges.__getitem__))] = True
    return found


def _overwrites(work: Work, index: int, stores: Mask) -> int | None:
    """The store that still reads a register which this instruction writes, where it waits for no load."""
    code = work.code
    line = work.sass[index]
    written = set(line.writes)
    if not written:
        return None
    for register in (*line.reads, *line.writes):
        if any(work.sass[at].long_latency and work.executed[at] for at in code.producers(index, register)):
            return None

    near, seen = deque(code.predecessors[index]), {index}
    while near and len(seen) < SEARCH:
        at = near.popleft()
        if at in seen or not work.executed[at]:
            continue
        seen.add(at)
        line = work.sass[at]
        if line.space == "global" and written.intersection(line.reads):
            return at if stores[at] else None
        near += code.predecessors[at]
    return None
