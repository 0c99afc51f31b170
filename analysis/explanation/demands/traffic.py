"""What a launch moves between L1, L2 and DRAM, and what each resource on the way would see if it moved less."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.code.flow import LONG, SEARCH, reached, turned
from gemmprof.analysis.explanation.demands.resources import dram_bytes
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, share, tensor_copies
from gemmprof.gpu.arch import LIMITS

SECTOR = 32.0
SECTORS_OF_A_LINE = 4.0
# Resources behind L1, whose work does not follow from the number of instructions.
BELOW_L1 = ("l2_to_l1", "l1_to_l2", "l2", "l2_in", "l2_out", "l2_tags", "l1_lines", "dram")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sectors of 32 bytes."""

    asked: float  # by global and local loads, at L1
    missed: float  # fetched from L2 by those, and by tensor copies
    written: float  # by stores, which L1 passes on to L2
    atomics: float  # by atomics and reductions
    # at device memory
    dram_read: float
    dram_written: float
    local: float  # those of ``missed`` and ``written`` that local memory causes
    # 128-byte lines of the loads and stores that L1 passes on
    lines_read: float = 0.0
    lines_written: float = 0.0
    copied: float = 0.0  # those of ``missed`` that no load asked for: tensor copies (TMA) brought them
    local_read: float = 0.0  # those of ``local`` that are among ``missed``

    @property
    def l2(self) -> float:
        """Between L1 and L2."""
        return self.missed + self.written + self.atomics

    def sharing(self, shared: float, own: float) -> float:
        """Blocks side by side that load the same, at most, by the sectors that all blocks ask for: such a group finds
        in L2 what it shares, so that DRAM delivers it once for each, beside what blocks have for themselves.
        """
        once = self.dram_read - own
        return math.ceil(shared / once) if once > 0.0 else math.inf

    def factors(
        self,
        missed: float,  # sectors that L1 fetches from L2
        written: float,  # sectors that L1 writes to L2
        *,
        read_lines: float
        | None = None,  # factor on the lines that those fetches name; that of the sectors if None
        written_lines: float | None = None,  # the same of the writes
        # sectors read from device memory, the smaller of what it was and ``missed`` if None
        dram_read: float | None = None,
        atomics: float | None = None,  # sectors of atomics, as many as now if None
    ) -> dict[str, float]:
        """What stays of each resource's work when so much is fetched and written.

        What came from DRAM is fetched once at most: the smaller of what it was and what is asked for now.
        """
        reads = _ratio(missed, self.missed)
        read_lines = reads if read_lines is None else read_lines
        written_lines = _ratio(written, self.written) if written_lines is None else written_lines
        read = min(self.dram_read, missed) if dram_read is None else dram_read
        atomics = self.atomics if atomics is None else atomics
        # Write-back: what DRAM takes never exceeds what was written.
        written_back = self.dram_written
        if self.written or self.atomics:
            written_back = min(written_back, written + atomics)
        # A fetch is a request of a line; a write is one, too, and brings its sectors along.
        copied = self.copied / SECTORS_OF_A_LINE
        lines = self.lines_read + self.lines_written
        lines_now = self.lines_read * read_lines + self.lines_written * written_lines
        into = _ratio(
            lines_now + written + 2.0 * atomics + copied, lines + self.written + 2.0 * self.atomics + copied
        )
        return {
            "l2_to_l1": reads,
            "l1_to_l2": into,
            "l2": _ratio(missed + written + atomics, self.l2),
            "l2_in": into,
            "l2_out": _ratio(missed + atomics, self.missed + self.atomics),
            "l2_tags": _ratio(lines_now + atomics + copied, lines + self.atomics + copied),
            "l1_lines": read_lines,  # a tensor copy's data go to shared memory and hold no line
            "dram": _ratio(read + written_back, self.dram_read + self.dram_written),
        }


def _ratio(now: float, before: float) -> float:
    return now / before if before > 0 else 1.0


def beside_each_other(work: Work, axes: Iterable[int]) -> bool:
    """Whether blocks that are neighbours along these axes start together, one after the other or all of the launch at
    once: what they load alike L2 has for all but the first, so that DRAM delivers it once as it is.
    """
    first = next((axis for axis, blocks in enumerate(work.profile.launch.grid) if blocks > 1), 0)
    return work.one_wave or all(axis == first for axis in axes)


def traffic(work: Work) -> Traffic:
    """The traffic of one launch; 0 where it was not collected."""

    def number(*names: str) -> float:
        return next((value for name in names if (value := work.number(name)) is not None), 0.0)

    def sectors(space: str, operation: str, lookup: str = "") -> float:
        return number(metrics.LSU_SECTORS.format(space=space, operation=operation, lookup=lookup))

    loads = work.where(lambda line: line.is_load or line.opcode == "LDGSTS")
    stores = work.where(lambda line: line.is_store and not line.is_atomic)
    of_local, stored = sectors("local", "ld"), sectors("global", "st")
    asked = sectors("global", "ld") + of_local
    if work.worked_out and not asked:
        asked, stored = (float(work.global_sectors[rows].sum()) for rows in (loads, stores))
    local_missed = sectors("local", "ld", "_lookup_miss")
    if not local_missed and (hit := work.number(metrics.LOCAL_LOAD_HIT_RATE)) is not None:
        local_missed = of_local * (1.0 - min(100.0, hit) / 100.0)
    missed = (
        number(metrics.L1_LOAD_SECTORS_FETCHED)
        or sectors("global", "ld", "_lookup_miss") + local_missed
        or number(metrics.L2_TO_L1_BYTES) / SECTOR
        or _filled(work)
    )
    written = number(metrics.L1_STORE_SECTORS_WRITTEN) or stored + sectors("local", "st")
    by_loads = float(work.global_sectors[loads].sum()) if len(loads) else missed
    copied = max(0.0, missed - max(by_loads + of_local, asked)) if tensor_copies(work).any() else 0.0
    miss = min(1.0, share(missed - copied, asked)) if asked else 1.0
    tags = work.global_tags + work.local_sectors / 4.0
    local_written = min(sectors("local", "st"), max(0.0, written - stored))
    read, back = number(*metrics.DRAM_READ_BYTES) / SECTOR, number(*metrics.DRAM_WRITE_BYTES) / SECTOR
    if not read + back:
        # By how busy DRAM was: what was written went there, the rest came from there.
        moved = (dram_bytes(work.profile) or 0.0) / SECTOR
        back = min(moved, written)
        read = moved - back
    return Traffic(
        asked=asked,
        missed=missed,
        written=written,
        atomics=sectors("global", "atom") + sectors("global", "red"),
        dram_read=read,
        dram_written=back,
        local=min(missed, local_missed) + local_written,
        lines_read=miss * float(tags[loads].sum()),
        lines_written=float(tags[stores].sum()),
        copied=copied,
        local_read=min(missed, local_missed),
    )


def _filled(work: Work) -> float:
    """Sectors that came from L2 to all SMs by the share of the peak that they are; 0 where nobody knows."""
    limits = LIMITS.get(work.profile.device.compute_capability)
    a_cycle = limits.filled_sectors if limits is not None else None
    return (work.busy_cycles("l2_to_l1") or 0.0) * (a_cycle or 0)


# --- Stores that stall their warps ------------------------------------------------------------------------------------
# Warps that are stalled by their own stores: a burst behind the work, which no average shows.
#
# A tile's sums are stored all at once, when its warps have nothing else to do, and all blocks of a wave get there
# together. The queue from L1 to L2 is full then, though it is idle for most of the launch: a store does not issue
# (``lg_throttle``), and a register whose value waits in that queue may not be written again, which Nsight Compute
# samples as a long scoreboard at the instruction that would overwrite it.

# Share of the storing warps' time in loops without these stores, from which on the stores come behind the work.
MOST_OF_THE_TIME = 0.5


@dataclass(frozen=True, slots=True)
class StoreStall:
    """The time that the storing warps are stalled by some stores."""

    by_store: Array  # share of those warps' time by store, one entry an instruction
    in_time: float  # the same together as a share of the launch's time: the block's work stands still as long


def stalled_by(work: Work, stores: Mask) -> StoreStall | None:
    """How long the warps that execute these global stores of one kind are stalled by them; None without samples, and
    where the stores are not behind the work: among other work of the same warps the time model's terms already say what
    they cost.
    """
    if work.program is None or not work.samples or not stores.any():
        return None
    code = work.code
    samples = np.asarray(sum(work.samples.values()))
    mine = _on_the_way(work, stores)
    time = float(samples[mine].sum())
    before = code.within(loop for loop in code.loops if not stores[loop.first : loop.last + 1].any())
    if time <= 0 or float(samples[mine & before].sum()) < MOST_OF_THE_TIME * time:
        return None
    none = np.zeros(len(stores))
    waits = np.where(stores, work.samples.get("lg_throttle", none) + work.attributed.get("drain", none), 0.0)
    for index in np.flatnonzero(work.samples.get(LONG, none)):
        if (found := _overwrites(work, int(index), stores)) is not None:
            waits[found] += work.samples[LONG][index]
    waits /= time
    return StoreStall(by_store=waits, in_time=float(waits.sum()) * (1.0 - work.idle_start))


def _on_the_way(work: Work, stores: Mask) -> Mask:
    """What only warps execute that execute one of these stores: all from which one is reached, or that one reaches.

    Where warps have roles, the others (producers of a matrix product) are left out, and with them what both do in
    the end, where the others wait for these.
    """
    code = work.code
    after = turned(code.predecessors)
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
    made = (at for name in (*line.reads, *line.writes) for at in code.producers(index, name))
    if not written or any(work.sass[at].long_latency and work.executed[at] for at in made):
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
