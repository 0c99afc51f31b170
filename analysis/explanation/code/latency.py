"""How long the warps of a launch would wait if no queue were full: the floor under its time at this occupancy.

By Little's law a launch takes as long as all its warps' cycles divided by the warps that are resident. Of the cycles
that were sampled, a part is queueing (throttles, `not_selected`, and what a load takes beyond an empty machine's
latency): it goes away when the resource behind the queue gets less to do. The rest, the *unloaded* share, is latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.code import flow
from gemmprof.analysis.explanation.demands.resources import SM, TRAFFIC
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, indexed_constants, once
from gemmprof.gpu.arch import LIMITS

# Busy shares of the busiest part of the memory system: below the first there is no queue, above the second
# all that a wait takes beyond the latencies above is queueing.
QUIET, CROWDED = 0.4, 0.85
ATOMICS_CROWD = 0.2  # busy share of the atomic units of L2 from which on waits for memory are queueing
LINE = 128.0

# States that are latency whatever else the machine does.
FULL = (flow.SELECTED, flow.WAIT, flow.BRANCH, flow.NO_INSTRUCTION, flow.NO_CONSTANT, "sleeping", "misc")
MEMORY = (*TRAFFIC, "lsu", "l2_tags", "l2_atomics", "tex")


@dataclass(frozen=True)
class Unloaded:
    """Share of the warps' time that is latency, by the instruction it is attributed to and by state."""

    by_reason: dict[str, Array]

    @cached_property
    def sums(self) -> dict[str, float]:
        """Share of the warps' time by state."""
        return {reason: float(values.sum()) for reason, values in self.by_reason.items()}


@once
def load_cycles(work: Work, lines: float | None = None, hit: float | None = None) -> Array:
    """Cycles from each long-latency instruction to its consumer on an idle machine, from the launch's hit rates.

    Args:
        lines: 128-byte lines that each request touches, instead of what was counted.
        hit: share of the sectors that L1 has, instead of what was counted.
    """
    number = work.number
    first = (number(metrics.GLOBAL_LOAD_HIT_RATE) or number(metrics.L1_HIT_RATE) or 0.0) / 100
    first = first if hit is None else min(first, hit)
    second = (number(metrics.L2_READ_HIT_RATE) or number(metrics.L2_HIT_RATE) or 0.0) / 100
    executed = np.maximum(work.executed, 1.0)
    tags = np.maximum(work.global_tags / executed, 1.0) if lines is None else np.full(len(executed), lines)
    # The slowest of its lines is waited for; lines of one request are alike, so a few stand for all.
    several = np.clip(tags, 1.0, 8.0)
    miss = 1.0 - np.clip(first, 0.0, 1.0) ** several
    beyond = 1.0 - min(1.0, max(0.0, second)) ** several
    idle = work.practice
    to_l2, to_dram = idle.l2_cycles - idle.l1_cycles, idle.dram_cycles - idle.l2_cycles
    cycles = idle.l1_cycles + miss * to_l2 + miss * beyond * to_dram
    cycles = cycles + idle.tag_cycles * (tags - 1.0)
    atomic = work.where(lambda line: line.is_atomic)
    local = work.where(lambda line: line.space == "local")
    cycles = np.where(atomic, idle.atomic_cycles, cycles)
    return np.where(local, idle.l1_cycles + 0.2 * to_l2, cycles)


@once
def short_cycles(work: Work) -> Array:
    """Cycles from each short-latency instruction to its consumer, its bank conflicts included."""
    executed = np.maximum(work.executed, 1.0)
    wavefronts = np.maximum(work.shared_wavefronts / executed, 1.0)
    return work.practice.shared_cycles + work.practice.wavefront_cycles * (wavefronts - 1.0)


def crowding(work: Work) -> float:
    """How much of the waits for memory beyond an idle machine's latency is queueing: 0 if quiet, 1 if full."""
    busiest = max(
        (
            load.share * (work.imbalance if load.resource.scope == SM else 1.0)
            for key, load in work.loads.items()
            if key in MEMORY
        ),
        default=1.0,
    )
    busiest = max(busiest, lines_under_way(work) or 0.0)
    atomics = work.loads.get("l2_atomics")
    if (atomics is not None and atomics.share > ATOMICS_CROWD) or behind_atomics(work):
        return 1.0  # they queue at their words, while the counters of the other units stay low
    return _crowded(busiest)


@once
def enough_under_way(work: Work) -> bool:
    """Whether loads wait for so long, and so many at once, that more are under way than DRAM answers at its rate within
    an idle machine's latency (Little's law): the others stand in a queue, which more of them make longer.
    """
    waits, dram = work.attributed.get(flow.LONG), work.loads.get("dram")
    loads = work.global_loads & work.ran
    if waits is None or dram is None or work.program is None or not loads.any():
        return False
    cycles = (
        (waits * under_way(work, loads))[loads].sum() * (work.warp_cycles or 0.0) / work.executed[loads].sum()
    )
    return bool(dram.share * cycles > work.practice.dram_cycles)


def _crowded(busy: float) -> float:
    """Share of the waits beyond an idle machine's latency that is queueing, at a unit that is so busy."""
    return min(1.0, max(0.0, (busy - QUIET) / (CROWDED - QUIET)))


@once
def behind_atomics(work: Work) -> bool:
    """Whether loads wait in a queue behind atomics: in a machine that is quiet otherwise they take more than twice as
    long as DRAM does. The words that atomics meet at may change in the course of the launch, and with them the slice of
    L2 that is full, so that no counter shows it.
    """
    waits, cycles = work.attributed.get(flow.LONG), work.warp_cycles
    atomics = work.where(lambda line: line.is_atomic and line.space == "global") & (work.executed > 0)
    loads = work.global_loads & (work.executed > 0)
    if waits is None or not cycles or not atomics.any() or not loads.any():
        return False
    counted = max((load.share for key, load in work.loads.items() if key in MEMORY), default=1.0)
    several = float(work.executed[loads].sum())
    each = float(waits[loads].sum()) * cycles / several
    # Fewer atomics than loads (those of a meeting of the grid) are no queue before each of them.
    before = float(work.threads[atomics].sum()) > several
    return before and counted < QUIET and each > 2.0 * work.practice.dram_cycles


def host_sectors(work: Work) -> float:
    """Sectors that were read of the host's memory: as counted, else that L2 was filled with from there."""
    read = work.number(next(iter(metrics.OFF_CHIP_SECTORS["sysmem", "read"])))
    if read is None:
        filled = work.number(metrics.L2_FILLED_BY_HOST) or 0.0
        read = filled / 100.0 * (work.number(metrics.L2_ELAPSED_CYCLES) or 0.0)
    return read


def idle_share(work: Work, waits: Array, cycles: Array | float) -> Array:
    """What stays of each instruction's wait if none takes longer than these cycles."""
    each = waits * (work.warp_cycles or 0.0) / np.maximum(work.executed, 1.0)
    return np.minimum(1.0, cycles / np.maximum(each, 1.0))


@once
def on_the_link(work: Work) -> float:
    """Share of the warps' time in which loads wait for the link to the host: beyond what an idle GPU takes, while none
    of its own units has a queue. 0 of a launch that reads nothing of the host's memory.
    """
    waits = work.attributed.get(flow.LONG)
    if not host_sectors(work) or crowding(work):
        return 0.0
    if not work.samples:
        # Nobody saw what warps wait for: L2 gets more from the host than from DRAM, a sector a warp or more.
        from_host, from_dram = map(work.number, (metrics.L2_FILLED_BY_HOST, metrics.L2_FILLED_BY_DRAM))
        most = from_host is not None and from_dram is not None and from_host > from_dram
        return float(most and host_sectors(work) > work.launched_warps)
    if waits is None or not work.warp_cycles:
        return 0.0
    loads = work.where(lambda line: line.long_latency and not line.is_atomic)
    queued = float((waits * (1.0 - idle_share(work, waits, load_cycles(work))))[loads].sum())
    return queued if queued > 0.5 * float(waits.sum()) else 0.0


@once
def lines_under_way(work: Work) -> float | None:
    """Share of the time that the lines of L1 would take to pass all misses, each held for a load's latency.

    A load that misses holds a line of L1 until its data come. Shared memory is taken from L1: a kernel with
    much of it has few lines, and so few loads under way, however many warps it has.
    """
    size = l1_bytes(work)
    if size is None or work.program is None or not work.elapsed or not work.loads:
        return None
    hit = (work.number(metrics.GLOBAL_LOAD_HIT_RATE) or 0.0) / 100.0
    loads = work.global_loads
    cycles = load_cycles(work)
    held = float((np.where(loads, work.global_tags, 0.0) * cycles).sum()) * (1.0 - min(1.0, hit))
    return held / work.sms / (size / LINE) / work.elapsed


def under_way(work: Work, loads: Mask) -> Array:
    """Loads that a warp has issued before it needs each of them, itself included; 1 for what is no load. What the next
    round needs of this one is under way until this one ends.
    """
    code = work.code
    places = np.flatnonzero(loads & (work.executed > 0))
    needed = np.array([_needed(code, int(at)) for at in places], dtype=np.intp)
    several = np.ones(len(loads))
    # Of all before the one that needs it (its own number where none does), those that were needed by then are gone.
    until = np.searchsorted(places, np.maximum(needed, places + 1))
    gone = np.searchsorted(np.sort(needed), places, side="right") - (needed == places)
    several[places] = until - gone
    return several


def _needed(code: flow.Program, at: int) -> int:
    """Where the result of a load is read first; the end of its loop where the next round does, itself if nowhere."""
    uses, loop = code.readers[at], code.loop_of(at)
    behind = next((use for use in uses if use > at), None)
    return behind or (loop.last if loop and any(use in loop for use in uses) else at)


def l1_bytes(work: Work, shared: float | None = None) -> float | None:
    """Bytes that L1 has beside so much shared memory, or what was set aside; None if not known."""
    limits = LIMITS.get(work.profile.device.compute_capability)
    taken = work.profile.launch.shared_memory_config if shared is None else shared
    if limits is None or limits.l1_bytes is None or taken is None:
        return None
    return max(8192.0, float(limits.l1_bytes - taken))


@once
def waits(work: Work) -> dict[str, Array]:
    """Share of the warps' time by state, on the instructions that cause it: as sampled, else as long as an idle machine
    takes; nothing where it is not known what was executed.

    Loads that are under way at once share a wait. Where states were counted for the launch as a whole, the waits are
    as long as those.
    """
    cycles = work.warp_cycles
    if work.samples or work.program is None or not cycles or not work.total_executed:
        return work.attributed
    found = {flow.SELECTED: work.executed, flow.WAIT: work.executed * _until_ready(work)}
    longer = {
        flow.LONG: (work.where(lambda line: line.long_latency), load_cycles(work)),
        flow.SHORT: (work.where(lambda line: line.short_latency), short_cycles(work)),
    }
    for reason, (those, each) in longer.items():
        if those.any():
            found[reason] = np.where(those, work.executed * each / under_way(work, those), 0.0)
    if work.barriers.any():
        found[flow.BARRIER] = np.where(work.barriers, work.executed * work.barrier_cycles, 0.0)
    counted = work.reason_shares
    return {
        reason: values / (values.sum() / counted[reason] if counted.get(reason) and values.any() else cycles)
        for reason, values in found.items()
    }


# Cycles until another instruction may read a result of a fixed latency: what nvcc 13.0 writes beside each FFMA for 9.0
# and 10.0.
READY = 4


def _until_ready(work: Work) -> Array:
    """Cycles that each instruction waits for arithmetic of a fixed latency right before it."""
    lines = work.sass
    found = np.zeros(len(lines))
    for at, line in enumerate(lines):
        for back in range(1, min(READY, at + 1)):
            before = lines[at - back]
            if not (before.long_latency or before.short_latency) and set(before.writes) & set(line.reads):
                found[at] = READY - back
                break
    return found


@once
def unloaded(work: Work) -> Unloaded | None:
    """The latency share of one launch; None where it is not known what was executed."""
    cycles = work.warp_cycles
    states = waits(work)
    if not states or not cycles or not work.total_executed:
        return None
    executed = np.maximum(work.executed, 1.0)
    found: dict[str, Array] = {}
    # Cycles on an idle machine, and how much of what is beyond is queueing. What waits for the link to the host stands
    # in a queue, too, while no unit of the GPU is full.
    # Constants at computed places queue at their cache; where that is quiet, it had not what they wait for.
    constants = work.loads["idc"].share * work.imbalance if "idc" in work.loads else 1.0
    of_short = np.where(indexed_constants(work), _crowded(constants), 1.0)
    idle: dict[str, tuple[Array | float, Array | float]] = {
        flow.LONG: (load_cycles(work), 1.0 if on_the_link(work) else crowding(work)),
        flow.SHORT: (short_cycles(work), of_short),
        "drain": (work.practice.store_cycles, 1.0),
        "membar": (work.practice.fence_cycles, 1.0),
    }
    for reason, values in states.items():
        if reason in idle:
            latency, queue = idle[reason]
            least = np.minimum(1.0, latency / np.maximum(values * cycles / executed, 1e-9))
            found[reason] = values * (1.0 - (1.0 - least) * queue)
        elif reason == "gmma":
            found[reason] = 0.3 * values
        elif reason in FULL:
            found[reason] = values
    if (barrier := states.get(flow.BARRIER)) is not None:
        # A warp waits at a barrier for as long as the late ones take, queues included.
        others = 1.0 - float(barrier.sum())
        rest = float(sum(values.sum() for values in found.values()))
        found[flow.BARRIER] = barrier * (min(1.0, rest / others) if others > 0 else 1.0)
    return Unloaded(found)
