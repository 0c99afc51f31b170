"""Several results a thread: what neighbours load, and what they make of that alike, a thread loads and makes once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.code import address_forms, latency
from gemmprof.analysis.explanation.code.flow import reached
from gemmprof.analysis.explanation.demands import alike, distinct
from gemmprof.analysis.explanation.demands.footprint import (
    AXES,
    BLOCKS,
    LOADED_AGAIN,
    OUTPUTS,
    Reuse,
    computing,
    serving,
    uses,
)
from gemmprof.analysis.explanation.demands.resources import ALU, FMA, FP64, OF_AN_SM
from gemmprof.analysis.explanation.demands.time_model import Fix, held_meanwhile
from gemmprof.analysis.explanation.demands.traffic import Traffic, traffic
from gemmprof.analysis.explanation.demands.work import (
    CONSTANT_LOADS,
    Array,
    Mask,
    Work,
    indexed_constants,
    share,
)
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.opcodes import info
from gemmprof.gpu.arch import WARP

HARDLY = 0.01  # share of the instructions up to which loads are not what is done again, but all that stands around them
PICK = ("LOP3", "SHF", "PRMT", "I2F", "I2FP")  # they take a byte out of a word as easily as alone
OWN_RESULTS = 0.5  # share of the lanes that store, below which a warp's lanes have results together


def more_outputs(work: Work, known: Sequence[Reuse], space: str = "global") -> Iterator[Variant]:
    """A thread does the work of several neighbours, which load much of the same from global or shared memory."""
    flows, launch = traffic(work), work.profile.launch
    if space == "global" and flows.dram_read > LOADED_AGAIN * flows.asked:
        return  # each sector that is asked for comes from DRAM: nobody else had it
    counters = work.where(lambda line: line.is_atomic and line.space == "shared")
    rows = {row for one in known for row in one.rows}
    if work.products.any() or counters[list(reached(rows, work.code.readers.__getitem__))].any():
        return  # results lie in the fragments of a warp, or in what threads count together
    axis = _axis(work, known, space)
    if not axis:
        return
    words = [one.of_results(axis) * one.by_words.get(axis, 1.0) for one in known]
    needed = share(sum(words), OUTPUTS * sum(one.thread for one in known))
    loads = work.ran & work.where(lambda line: line.is_load)
    loads &= work.where(lambda line: line.space == "shared") if space == "shared" else work.global_loads
    keep = _made_once(work, rows, axis)
    keep[list(serving(work, rows))] = needed
    for one in known:
        keep[list(one.rows)] = one.of_results(axis) / (OUTPUTS * one.thread)
    if _used_by_several(work, keep):
        return
    waits, passes, picked = first_waits(work, keep), 0.0, 0.0
    for one, few in zip(known, words, strict=True):
        mine = list(one.rows)
        if few < one.of_results(axis):
            # Bytes are picked out of words, once for all results that want them, unless what reads them does that.
            asked = [
                at for at in mine if any(work.sass[use].opcode not in PICK for use in work.code.readers[at])
            ]
            picked += float((keep * work.executed)[asked].sum())
        keep[mine] = few / (OUTPUTS * one.thread)
        # Lanes lie further apart then.
        passes += (one.spread.get(axis, 1.0) - 1.0) * float((keep * work.data_passes)[mine].sum())
    # The results are independent: their loads are under way together, and waited for once.
    waits[loads] *= np.minimum(1.0, 1.0 / (OUTPUTS * keep[loads]))
    resources, size = {"block_launch": 1.0 / OUTPUTS}, 0.0
    if space == "shared":
        # What fills the tile, which is as many times as large, stays.
        size = sum(one.block * one.width * (OUTPUTS * one.fetched.get(axis, 1.0) - 1.0) for one in known)
        keep[_filling(work, rows)] = 1.0
    else:
        missed = by_larger_tiles(work, known, flows, axis)
        read = from_memory(work, known, flows, missed)
        resources |= flows.factors(max(missed, read), flows.written, dram_read=read)
    warps = launch.blocks * launch.threads_per_block / 32.0 / OUTPUTS / work.sms
    fix = Fix(
        keep=keep,
        latency=waits,
        resources=resources,
        instructions={ALU: picked},
        passes=passes,
        registers=_registers(work, known, axis),
        shared_bytes=round(size),
        warps=min(1.0, warps / (work.resident_warps or warps)),
    )
    loaded, more = (float(work.executed[some].sum()) for some in (list(rows), loads))
    what, left = "loads", share(needed * loaded + more - loaded, more)
    if more <= HARDLY * work.total_executed:
        what, left = "instructions", share(float(work.executed @ keep), work.total_executed)
    yield Variant(
        f"registers, {OUTPUTS} outputs a thread",
        fix,
        change=_change(work, known, axis, f"{100 * left:.0f} % of the {what}"),
        plain=axis in AXES,  # nobody says which axis of a tensor that is
        counted=OF_AN_SM,
    )


def _axis(work: Work, known: Sequence[Reuse], space: str) -> str:
    """The axis along which neighbours share most of what they load; '' where that is little."""
    launch = work.profile.launch
    # A load of one word for a whole warp is a sector of many: that it serves neighbours, too, saves little.
    ideal = work.shared_ideal if space == "shared" else work.global_ideal
    sectors = [share(ideal[list(one.rows)].sum(), work.executed[list(one.rows)].sum()) for one in known]
    moved = sum(each * one.thread for each, one in zip(sectors, known, strict=True))
    stores = work.where(lambda line: line.is_store and line.space == "global")
    together = float(work.threads[stores].sum()) < OWN_RESULTS * WARP * float(work.executed[stores].sum())
    # In Triton a tensor's layout tells which thread has which result; what a block meets for is of that block.
    apart = owner_of(work.profile).key != "triton" and not work.barriers.any()
    far = {axis for one in known for axis in one.outputs.keys() - {*AXES}} if apart else set()
    best = LOADED_AGAIN, ""
    for number, axis in [*enumerate(AXES), *((0, axis) for axis in far)]:
        if together and (axis in far or (launch.block[number] > 1 and prod(launch.block[:number]) < WARP)):
            continue
        if launch.grid[number] * launch.block[number] < 2 * OUTPUTS:
            continue
        if space == "shared" and launch.block[number] < OUTPUTS:
            continue  # other blocks have other values there
        left = sum(
            each * one.of_results(axis) * one.spread.get(axis, 1.0)
            for each, one in zip(sectors, known, strict=True)
        )
        stays = share(left, OUTPUTS * moved)
        if stays < best[0]:
            best = stays, axis
    return best[1]


def _made_once(work: Work, rows: set[int], axis: str) -> Array:
    """What stays of all but these loads: of what finds places and counts rounds one result's part, of what is made of
    data as much as neighbours make apart.
    """
    keep = work.all_kept()
    others = work.where(lambda line: bool(line.space) or line.opcode == "BAR")
    if axis in AXES:
        made = work.ran & (work.code.by_data | computing(work))
        made &= ~others | work.where(lambda line: line.is_load)
        keep[made] = alike.once_for_all(work, tuple(sorted(rows)), axis)[made]
    plain = work.ran & ~computing(work) & ~others
    # What each result's own values decide (a slow way, an early end) is decided for each.
    plain &= ~work.code.by_data | (distinct.neighbours_alike(work) >= OUTPUTS)
    # Nor are constants at places that no thread chooses anybody's own.
    plain |= work.ran & work.where(lambda line: line.opcode in CONSTANT_LOADS) & ~indexed_constants(work)
    keep[plain | _walked_together(work)] = 1.0 / OUTPUTS
    return keep


def _walked_together(work: Work) -> Mask:
    """Loops that go from place to place (a search) through which most lanes of a warp go together, as counted."""
    chased = work.code.chased & work.global_loads & work.ran
    apart = chased & ~(work.whole_warps & (work.global_sectors < 2.0 * work.executed))
    searched, parted = (
        {work.code.loop_of(at) for at in np.flatnonzero(one).tolist()} for one in (chased, apart)
    )
    return work.ran & work.code.within(searched - parted)


def _used_by_several(work: Work, keep: Array) -> bool:
    """Whether a thread makes as many results already of most values that neighbours share: what it does for each of
    them takes its time then.
    """
    computed = work.ran & ~work.where(lambda line: bool(line.space) or line.is_branch)
    own: Mask = computed & (keep > LOADED_AGAIN)
    shared = np.flatnonzero(work.ran & work.code.by_loads & (keep <= LOADED_AGAIN)).tolist()
    handed = [at for at in shared if own[list(work.code.readers[at])].any()]
    # What is loaded may be looked at several times for one result.
    factors: Mask = own & work.where(lambda line: info(line.opcode).pipe in (FMA, FP64))
    often = (uses(work, [at], factors if work.sass[at].is_load else own) for at in handed)
    several = [at for at, each in zip(handed, often, strict=True) if each > LOADED_AGAIN * OUTPUTS]
    return 2.0 * float(work.executed[several].sum()) > float(work.executed[handed].sum())


def _change(work: Work, known: Sequence[Reuse], axis: str, left: str) -> str:
    # Where a block is one wide along the axis, neighbours are other blocks', which Triton's programs are.
    of_blocks = axis in AXES and work.profile.launch.block[AXES.index(axis)] == 1
    which = f"{OUTPUTS} {f'neighbouring results along {axis}' if axis in AXES else f'results {axis}'}"
    longer = (
        f"Give a program {OUTPUTS} rows, or fewer num_warps"
        if _row_a_block(work)
        else f"Use a BLOCK {OUTPUTS} times as long along its innermost axis"
    )
    how = (
        f"Let a [thread|program] compute {which}: they need"
        if of_blocks
        else f"[Let a thread compute {which}: they need|{longer}: {OUTPUTS} neighbouring results of a thread need]"
    )
    further = any(one.spread.get(axis, 1.0) > 1.0 for one in known)
    return (
        f"{how} {left} that as many {'do' if of_blocks else 'threads do'} now. Keep what they share in registers"
        f"{'; load by vectors, for lanes lie further apart then.' if further else '.'}"
    )


def _row_a_block(work: Work) -> bool:
    """Whether a block has a row: it loads or stores one word of an array for all its threads, the next one another."""
    forms = [one.form for one in address_forms.checked_forms(work).values() if one.confirmed]
    words = [
        form.base
        for form in forms
        if form.space == "global" and form.address.uniform and any(one.blocks for one in form.address.symbols)
    ]
    # Of several rows of a tile there are several words, or a loop walks along them.
    return any(words.count(one.base) == 1 and not one.loops for one in forms if one.base in words)


def _filling(work: Work, rows: set[int]) -> list[int]:
    """What fills the tile of shared memory that these loads read: the loops around its stores, where they stand in
    none of them, and what tells these where to go.
    """
    stores = np.flatnonzero(
        work.ran & work.where(lambda line: line.is_store and line.space == "shared")
    ).tolist()
    loops = (loop for at in stores for loop in work.code.loops_around[at])
    found = {
        at
        for loop in loops
        if not any(row in loop for row in rows)
        for at in range(loop.first, loop.last + 1)
    }
    return sorted(found | serving(work, {*stores}))


def _registers(work: Work, known: Sequence[Reuse], axis: str) -> int:
    """Registers a thread that it takes more to hold of `OUTPUTS` results what it has made of one where it loads what
    they share.
    """
    rows = {row for one in known for row in one.rows}
    made = work.code.by_data & computing(work) & work.ran
    own = frozenset(np.flatnonzero(made).tolist()) - rows
    several = OUTPUTS * LOADED_AGAIN
    shared = [row for one in known if one.of_results(axis) < several * one.thread for row in one.rows]
    return round((OUTPUTS - 1.0) * held_meanwhile(work, shared, own))


def by_all_blocks(work: Work, known: Sequence[Reuse], flows: Traffic) -> float:
    """Sectors that all blocks fetch together, each once, and all that others than these loads fetch; as many as DRAM
    delivers at most.
    """
    once = sum(all_blocks(work, one) for one in known)
    loads = work.global_loads
    rows = [row for one in known for row in one.rows]
    unknown = 1.0 - share(work.global_sectors[rows].sum(), work.global_sectors[loads].sum())
    return min(flows.dram_read, once + unknown * flows.missed)


def all_blocks(work: Work, one: Reuse, axes: Sequence[str] = AXES) -> float:
    """Sectors of an array that all blocks (along these axes) fetch together, each once."""
    sectors = one.sectors
    for blocks, axis in zip(work.profile.launch.grid, AXES, strict=True):
        sectors *= 1.0 + (blocks - 1.0) * share_apart(one, axis) * (axis in axes)
    return sectors


def share_apart(one: Reuse, axis: str) -> float:
    """Share of what a block along an axis fetches that its neighbour does not."""
    several = one.fetched.get(BLOCKS + axis, 1.0)
    return max(0.0, (several * OUTPUTS - 1.0) / (OUTPUTS - 1.0))


def from_memory(work: Work, known: Sequence[Reuse], flows: Traffic, missed: float) -> float:
    """Sectors read from DRAM when L1 fetches so many: of what it delivers again, as much as of what L1 does."""
    once = by_all_blocks(work, known, flows)
    return once + (flows.dram_read - once) * min(1.0, max(0.0, share(missed - once, flows.missed - once)))


def by_larger_tiles(work: Work, known: Sequence[Reuse], flows: Traffic, axis: str) -> float:
    """Sectors that L1 fetches when a block's tile is `OUTPUTS` times as long: blocks fetch the rim of each apart.

    What is not known to be fetched by these loads stays.
    """
    blocks = float(work.profile.launch.blocks)
    sectors = sum(one.sectors for one in known)
    stays = share(sum(one.sectors * one.fetched.get(axis, 1.0) for one in known), sectors)
    return flows.missed - min(flows.missed, blocks * sectors) * (1.0 - stays)


def first_waits(work: Work, keep: Array, missed: float | None = None) -> Array:
    """Factor on the wait of each load, of which ``keep`` stays: those that L1 had are gone, those that fetch wait as
    long as ever. L1 fetches ``missed`` sectors then, as many as now if None.
    """
    loads = work.global_loads
    asked = float((work.global_sectors * keep)[loads].sum())
    fetched = traffic(work).missed if missed is None else missed
    then = latency.load_cycles(work, hit=max(0.0, 1.0 - share(fetched, asked)))
    return np.where(loads & (keep < 1.0), then / np.maximum(latency.load_cycles(work), 1.0), 1.0)
