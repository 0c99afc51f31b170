"""Global memory: requests that waste sectors, narrow requests, bytes asked for again, and reuse that caches
lose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gemmprof import metrics
from gemmprof.analysis.explanation import latency
from gemmprof.analysis.explanation.candidate import (
    ANY_WARPS,
    LATENCY,
    ORDER,
    SPECIFIC,
    Candidate,
    derived,
    evidence,
    keep_of,
    share,
)
from gemmprof.analysis.explanation.time_model import Mend
from gemmprof.analysis.explanation.traffic import BELOW_L1, SECTOR, traffic
from gemmprof.analysis.explanation.work import Array, Work

Mask = npt.NDArray[np.bool_]

WIDE = 16
"""Bytes of the widest access of a thread."""
FULL_WORD = 4
"""Bytes below which an access is narrow whatever else limits."""
MISALIGNED_SECTORS = 1.05
"""A request that starts off a sector's border touches one sector more than its bytes fill: no lack of
coalescing.
"""
BUSY_THREAD = 24.0
"""Instructions for each access, from which on a thread does more than to move data."""
AGAIN = 1.2
"""DRAM reads over allocated memory from which on memory was read again."""
SHARED_SECTORS = 1.8
"""Sectors fetched from L2 for each that DRAM delivers, from which on they are fetched again."""
FULL_L2 = 0.75
"""Busy share of L2 from which on that matters."""
REDUNDANT = 1.6
"""Sectors asked of L1 for each that L1 fetched, from which on loads are called redundant."""


def uncoalesced_access(work: Work) -> Iterator[Candidate]:
    """Each request in the fewest sectors that its bytes need.

    Mended: sectors, tag lookups and L1 passes of the wasteful requests fall to the ideal; L2 and DRAM carry
    no more than what is asked for then; loads wait for one line instead of many.
    """
    if work.code is None or not work.global_sectors.any():
        return
    executed = np.maximum(work.executed, 1.0)
    excess = work.global_sectors - work.global_ideal
    wasteful = (excess / executed > MISALIGNED_SECTORS) & (excess > 0.2 * work.global_sectors)
    wasteful &= ~work.where(lambda line: line.is_atomic)
    if not wasteful.any():
        return
    wasteful &= ~gathers(work, wasteful)
    if not wasteful.any():
        return
    flows = traffic(work)
    loads = work.where(lambda line: line.is_load or line.opcode == "LDGSTS")
    stores = work.where(lambda line: line.is_store and not line.is_atomic)
    sectors = np.where(wasteful, work.global_ideal, work.global_sectors)
    asked = float(sectors[loads].sum())
    missed = min(flows.missed, asked) if flows.missed else 0.0
    written = flows.written * (_left(sectors, work.global_sectors, stores))
    tags = np.where(
        wasteful,
        np.minimum(work.global_tags, np.maximum(work.global_ideal / 4.0, work.executed)),
        work.global_tags,
    )
    factors = flows.factors(
        missed,
        written,
        read_lines=min(
            1.0,
            _left(tags, work.global_tags, loads)
            * share(share(missed, asked), share(flows.missed, flows.asked)),
        )
        if flows.missed and asked
        else 1.0,
        written_lines=_left(tags, work.global_tags, stores),
    )
    shared = float(work.shared_wavefronts.sum()) + float(work.local_sectors.sum()) / 4.0
    factors["l1_data"] = share(shared + float(tags.sum()), shared + float(work.global_tags.sum()))
    cycles = latency.load_cycles(work)
    # What lanes found in L1 after one another, all fetch at once: fewer requests, each of which misses more.
    hit = 1.0 - min(1.0, share(missed, asked))
    fetching = np.minimum(cycles, latency.load_cycles(work, lines=1.0, hit=hit))
    straight = np.minimum(cycles, latency.load_cycles(work, lines=1.0))

    def waits(of_fetches: float) -> Array:
        left = (of_fetches * fetching + (1.0 - of_fetches) * straight) / np.maximum(cycles, 1.0)
        return np.where(wasteful, left, 1.0)

    yield Candidate(
        cause="uncoalesced_access",
        mend=Mend(resources=factors, latency=waits(0.4)),
        cautious=Mend(resources=factors, latency=waits(1.0)),
        change=_how_to_coalesce(work, wasteful),
        evidence=(
            derived(
                "sectors per request",
                float(work.global_sectors[wasteful].sum() / executed[wasteful].sum()),
                "sector",
            ),
            derived(
                "memory_l2_theoretical_sectors_global_ideal / request",
                float(work.global_ideal[wasteful].sum() / executed[wasteful].sum()),
                "sector",
            ),
            derived(metrics.GLOBAL_EXCESS, float(excess[wasteful].sum()), "sector"),
            *evidence(work, metrics.L1_HIT_RATE, metrics.DRAM_READ_BYTES[0]),
        ),
        blamed=np.where(wasteful, excess, 0.0),
        bold=Mend(
            resources={**factors, "dram": min(factors["dram"], factors["l2"])},
            latency=waits(0.0),
        ),
    )


def _left(now: Array, before: Array, rows: Mask) -> float:
    """What stays of these instructions' sum."""
    whole = float(before[rows].sum())
    return float(now[rows].sum()) / whole if whole > 0 else 1.0


def gathers(work: Work, rows: Mask) -> Mask:
    """Accesses whose addresses were loaded just before: look-ups, whose places the data decide.

    Within a loop, what was loaded before it (where a row begins) makes no look-up.
    """
    code = work.code
    assert code is not None
    found = np.zeros(len(rows), dtype=bool)
    for index in np.flatnonzero(rows):
        at = int(index)
        loop = code.loop_of(at)
        line = work.sass[at]
        address = [
            name for operand in line.operands if "[" in operand for name in line.reads if name in _in(operand)
        ]
        found[at] = _loaded(work, at, address, None if loop is None else (loop.first, loop.last))
    return found


def _in(operand: str) -> set[str]:
    """Vector registers in the brackets of an operand, the second half of a pair included."""
    names = set()
    for number, wide in re.findall(r"(?<![\w.])R(\d+)(\.64)?", operand):
        names.add(f"R{number}")
        if wide:
            names.add(f"R{int(number) + 1}")
    return names


def _loaded(work: Work, index: int, registers: list[str], within: tuple[int, int] | None) -> bool:
    """Whether these registers go back to a load, in the same loop if the access is in one."""
    code = work.code
    assert code is not None
    seen: set[int] = set()
    waiting = [(index, name) for name in registers]
    while waiting and len(seen) < 80:
        at, name = waiting.pop()
        for source in code.producers(at, name):
            if source in seen or (within is not None and not within[0] <= source <= within[1]):
                continue
            seen.add(source)
            line = work.sass[source]
            if line.is_load and line.space in ("global", "shared", "texture"):
                return True
            waiting += [(source, read) for read in line.reads if read[0] in "RU"]
    return False


def _how_to_coalesce(work: Work, wasteful: Mask) -> str:
    excess = np.where(wasteful, work.global_sectors - work.global_ideal, 0.0)
    worst = int(np.argmax(excess))
    line = work.sass[worst]
    each = work.global_sectors[worst] / max(1.0, work.executed[worst])
    ideal = work.global_ideal[worst] / max(1.0, work.executed[worst])
    kind = "store" if line.is_store else "load"
    return (
        f"Let neighbouring threads {kind} neighbouring addresses: its worst {kind} touches {each:.0f} "
        f"sectors where {max(1.0, ideal):.0f} would hold the bytes. Swap the loop order, store structures as "
        "arrays, or go through shared memory."
    )


def narrow_access(work: Work) -> Iterator[Candidate]:
    """The same bytes in accesses of 16 bytes a thread.

    Mended: of each narrow, coalesced load and store ``bytes / 16`` stays, and so of the address arithmetic
    and the loop around it; the sectors stay the same.
    """
    if work.code is None:
        return
    executed = np.maximum(work.executed, 1.0)
    widths = np.array([line.access_bytes for line in work.sass], dtype=np.float64)
    kind = work.where(lambda line: line.space == "global" and not line.is_atomic and line.opcode != "LDGSTS")
    # Neighbouring threads at neighbouring addresses: the sectors hold what the active threads ask for.
    active = work.threads / executed
    filled = work.global_ideal >= 0.8 * work.executed * np.ceil(widths * active / SECTOR)
    coalesced = work.global_sectors - work.global_ideal <= MISALIGNED_SECTORS * work.executed
    broadcast = work.global_sectors < 0.6 * executed * widths * active / SECTOR
    narrow = kind & filled & coalesced & ~broadcast & (widths > 0) & (widths < WIDE) & (work.executed > 0)
    narrow &= ~_already_wide(work, narrow)
    flows = traffic(work)
    if (
        flows.missed
        and float(work.global_ideal[narrow & work.where(lambda line: line.is_load)].sum())
        > REDUNDANT * flows.missed
    ):
        # Overlapping windows: the same bytes again, which no wider access helps.
        narrow &= ~work.where(lambda line: line.is_load)
    if not narrow.any():
        return
    keep = keep_of(work)
    keep[narrow] = widths[narrow] / WIDE
    ratio = float((keep[narrow] * work.executed[narrow]).sum() / work.executed[narrow].sum())
    helpers = _overhead(work, narrow)
    helping = keep.copy()
    if work.total_executed < BUSY_THREAD * float(work.executed[narrow].sum()):
        helping[helpers & ~narrow] = ratio
    resources = _same_traffic(work, keep)
    middle = 0.5 * (keep + helping)
    cautious = keep
    if not any(work.code.loop_of(int(index)) is not None for index in np.flatnonzero(narrow)):
        # A thread does one access and ends: wider ones need fewer threads, each as busy with its addresses.
        middle, cautious = helping, 0.5 * (keep + helping)
        resources["block_launch"] = ratio
    bold = helping
    bytes_each = float((widths[narrow] * work.executed[narrow]).sum() / work.executed[narrow].sum())
    yield Candidate(
        cause="narrow_access",
        mend=Mend(keep=middle, resources=resources),
        cautious=Mend(keep=cautious, resources=resources),
        bold=Mend(keep=bold, resources=resources),
        change=(
            f"Move {WIDE} bytes a thread with each access (float4, uint4, int4 …): its loads and stores move "
            f"{bytes_each:.2g} bytes each."
        ),
        evidence=(
            derived("bytes a thread and access", bytes_each, "byte"),
            derived("blocks launched a cycle", work.profile.launch.blocks / max(1.0, work.elapsed)),
            derived(
                "narrow accesses / instructions executed",
                share(float(work.executed[narrow].sum()), work.total_executed),
            ),
            *evidence(work, metrics.BUSY["lsu"][0]),
        ),
        blamed=np.where(narrow, work.executed * (1.0 - keep), 0.0),
        # With few warps resident, wider accesses are one way of many to have more bytes in flight.
        # A word of four bytes is what most kernels move: any other flaw is the better name.
        rank=SPECIFIC if bytes_each < FULL_WORD else LATENCY if not _few_warps(work) else ANY_WARPS,
        follows=True,
        yields=0.5 if bytes_each < FULL_WORD or _few_warps(work) else 0.3,
    )


def _few_warps(work: Work) -> bool:
    most = work.number(metrics.MAX_WARPS_PER_SM) or float(work.profile.device.max_warps_per_sm or 64)
    return (work.resident_warps or most) < 0.5 * most


def _same_traffic(work: Work, keep: Array) -> dict[str, float]:
    """The bytes stay; the passes through L1 are as many as lines are touched, so those of less than a line
    shrink.
    """
    tags = work.global_tags
    lines = np.maximum(work.global_ideal / 4.0, tags * keep)
    shared = float(work.shared_wavefronts.sum()) + float(work.local_sectors.sum()) / 4.0
    return {
        **dict.fromkeys(BELOW_L1, 1.0),
        "l1_data": share(shared + float(np.minimum(tags, lines).sum()), shared + float(tags.sum())) or 1.0,
    }


def _already_wide(work: Work, narrow: Mask) -> Mask:
    """Narrow accesses that are few beside wide ones: scalars at the side of a vectorised kernel."""
    widths = np.array([line.access_bytes for line in work.sass], dtype=np.float64)
    moved = widths * work.executed * work.where(lambda line: line.space == "global")
    total = float(moved.sum())
    few = float(moved[narrow].sum()) < 0.1 * total
    return np.full(len(work.sass), few)


def _overhead(work: Work, accesses: Mask) -> Mask:
    """Integer, move and control instructions that run about as often as these accesses: they address and
    count them.
    """
    assert work.code is not None
    classes = ("integer", "move", "uniform", "control", "constant")
    plain = work.where(
        lambda line: line.instruction_class in classes or line.opcode in ("S2R", "S2UR", "ULDC")
    )
    often = work.executed[accesses].max(initial=0.0)
    near: Mask = (work.executed > 0.3 * often) & (work.executed < 2.0 * often)
    return plain & near


def redundant_loads(work: Work) -> Iterator[Candidate]:
    """Each byte loaded once, into registers or shared memory.

    Mended: loads whose address does not change in a loop leave it. Of the others ``fetched / asked`` sectors
    stay on the way from L1, and what threads share is read from shared memory instead, a pass a request.
    """
    if work.code is None:
        return
    flows = traffic(work)
    loads = work.where(lambda line: line.is_load and line.space == "global") & (work.executed > 0)
    asked = float(work.global_ideal[loads].sum())
    if not flows.missed or not asked:
        return
    invariant = _invariant(work, loads)
    ratio = share(asked, flows.missed)
    same = _same_address(work, loads) & ~invariant
    if ratio < REDUNDANT and not invariant.any() and not same.any():
        return
    once = min(1.0, flows.missed / asked)
    keep = keep_of(work)
    again = np.zeros(len(keep), dtype=bool)
    if ratio >= REDUNDANT:
        again = loads & ~invariant & ~same
        keep[again] = once
    keep[invariant] = 0.05
    keep[same] = 0.0
    gone = work.executed * (1.0 - keep)
    if not gone.any():
        return
    bold, middle, cautious = keep.copy(), keep.copy(), keep.copy()
    bold[again] = 0.4 + 0.6 * once
    middle[again] = 0.6 + 0.4 * once
    cautious[again] = 0.8 + 0.2 * once
    reuse = np.where(again, 0.4, 1.0)
    stays = dict.fromkeys(BELOW_L1, 1.0)
    if same.any():
        left = asked - float(work.global_ideal[same].sum())
        stays = flows.factors(min(flows.missed, left), flows.written, dram_read=flows.dram_read)
    yield Candidate(
        cause="redundant_loads",
        mend=Mend(keep=middle, latency=reuse, resources=stays),
        cautious=Mend(keep=cautious, latency=np.sqrt(reuse), resources=stays),
        bold=Mend(keep=bold, latency=reuse, resources=stays),
        change=(
            "Load it before the loop and keep it in a register: its address does not change there."
            if invariant.any() and not again.any()
            else "Keep what was loaded in a register: the same address is loaded again. Say __restrict__ "
            "if a "
            "store between them cannot touch it, and drop volatile."
            if same.any() and not again.any()
            else f"Load each byte once: L1 is asked for {ratio:.1f} times the sectors that it fetches. "
            "Keep what a thread "
            "uses again in registers, and what its block shares in shared memory."
        ),
        evidence=(
            derived("sectors asked of L1 / sectors fetched from L2", ratio),
            *evidence(work, metrics.GLOBAL_LOAD_HIT_RATE),
            derived(
                "global loads / instructions executed",
                share(float(work.executed[loads].sum()), work.total_executed),
            ),
        ),
        blamed=gone,
        # Sharing through shared memory is a rewrite; what is wrong with the code as it stands comes first.
        rank=SPECIFIC if invariant.any() or same.any() else LATENCY,
    )


def _same_address(work: Work, loads: Mask) -> Mask:
    """Loads that repeat an earlier one of the same thread: the same registers with the same values in the
    address.
    """
    code = work.code
    assert code is not None
    found = np.zeros(len(work.sass), dtype=bool)
    seen: dict[tuple[object, ...], int] = {}
    for index in np.flatnonzero(loads):
        at = int(index)
        line = work.sass[at]
        address = next((operand for operand in line.operands if "[R" in operand), None)
        loop = code.loop_of(at)
        if address is None or line.guard:
            continue
        sources = tuple(code.producers(at, name) for name in sorted(_in(address)))
        if not all(sources):
            continue
        inside = None if loop is None else (loop.first, loop.last)
        if inside is not None and not any(
            inside[0] <= source <= inside[1] for group in sources for source in group
        ):
            continue  # it does not change in the loop: `_invariant` tells
        key = (address.rpartition("[R")[2], sources, line.access_bytes, inside)
        first = seen.setdefault(key, at)
        alike = 0.9 * work.executed[first] <= work.executed[at] <= 1.1 * work.executed[first]
        found[at] = first != at and alike
    return found


def _invariant(work: Work, loads: Mask) -> Mask:
    """Loads in a loop whose address registers the loop does not write."""
    assert work.code is not None
    found = np.zeros(len(work.sass), dtype=bool)
    for index in np.flatnonzero(loads):
        loop = work.code.loop_of(int(index))
        if loop is None:
            continue
        first = max(1.0, work.executed[loop.first : loop.last + 1].max())
        before = work.executed[: loop.first].max(initial=0.0)
        if first < 2.0 * max(1.0, before):
            continue
        reads = {name for name in work.sass[index].reads if name[0] in "RU"}
        written = {name for at in range(loop.first, loop.last + 1) for name in work.sass[at].writes}
        found[index] = bool(reads) and not reads & written
    return found


def cache_locality(work: Work) -> Iterator[Candidate]:
    """Each sector fetched from device memory, and by each SM, once as long as it is in use.

    Known only where it cannot be otherwise: more was read from DRAM than the program has allocated, so that
    some of it was read again. Mended: DRAM reads what is allocated, L2 serves the rest.
    """
    flows = traffic(work)
    if flows.local > 0.3 * flows.l2:
        return  # what comes from DRAM again is local memory
    loads = work.where(lambda line: line.is_load and line.space == "global")
    blamed = np.where(loads, work.global_sectors, 0.0) if len(loads) else None
    accessible = work.number(metrics.ACCESSIBLE_BYTES)
    footprint = accessible / SECTOR if accessible else None
    if footprint and flows.dram_read > AGAIN * footprint:
        again = flows.dram_read / footprint
        factors = {"dram": share(footprint + flows.dram_written, flows.dram_read + flows.dram_written)}
        yield Candidate(
            cause="cache_locality",
            mend=Mend(
                resources=factors,
                latency=np.where(loads, 1.0 - 0.5 * (1.0 - 1.0 / again), 1.0) if len(loads) else None,
            ),
            cautious=Mend(resources={"dram": 0.5 * (1.0 + factors["dram"])}),
            change=(
                f"Work on what lies in L2 before moving on: {again:.1f} times all allocated memory was read "
                "from DRAM. Order the blocks in tiles, so that blocks that share data run at the same time."
            ),
            evidence=evidence(
                work, metrics.DRAM_READ_BYTES[0], metrics.ACCESSIBLE_BYTES, metrics.L2_HIT_RATE
            ),
            blamed=blamed,
        )
        return
    if not flows.dram_read or flows.missed < SHARED_SECTORS * flows.dram_read:
        return
    busy = max(
        (work.loads[key].share for key in ("l2", "l2_in", "l2_out", "l2_tags") if key in work.loads),
        default=0.0,
    )
    if busy < FULL_L2:
        return
    # Half of what L1 fetches again is found there instead.
    missed = 0.5 * (flows.missed + flows.dram_read)
    factors = flows.factors(missed, flows.written, dram_read=flows.dram_read)
    yield Candidate(
        cause="cache_locality",
        mend=Mend(resources=factors),
        rank=ORDER,
        bold=Mend(resources=flows.factors(flows.dram_read, flows.written, dram_read=flows.dram_read)),
        cautious=Mend(resources=flows.factors(0.75 * flows.missed, flows.written, dram_read=flows.dram_read)),
        change=(
            "Let a block use what it shares with its neighbours while L1 holds it: "
            f"{flows.missed / flows.dram_read:.1f} times what comes from DRAM is fetched from L2, which is "
            "full. Give blocks square tiles, or sort the look-ups."
        ),
        evidence=(
            derived("sectors fetched from L2 / sectors read from DRAM", flows.missed / flows.dram_read),
            *evidence(work, metrics.BUSY["l2_in"][0], metrics.BUSY["l2_out"][0], metrics.L1_HIT_RATE),
        ),
        blamed=blamed,
    )
