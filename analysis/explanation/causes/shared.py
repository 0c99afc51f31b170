"""Shared memory, local memory, constants: passes that nothing but the layout asks for, and traffic of spills."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import LATENCY, Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.access import gathers
from gemmprof.analysis.explanation.causes.atomics import ADDITIONS, EXTREMES
from gemmprof.analysis.explanation.causes.several_results import more_outputs
from gemmprof.analysis.explanation.code import address_forms, flow, latency
from gemmprof.analysis.explanation.code.flow import Loop, reached
from gemmprof.analysis.explanation.code.sequences import compiled_by_triton
from gemmprof.analysis.explanation.demands import footprint
from gemmprof.analysis.explanation.demands.distinct import evaluations
from gemmprof.analysis.explanation.demands.resources import ADU, L1_PASSES
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import traffic
from gemmprof.analysis.explanation.demands.work import (
    DIVERGENT,
    Array,
    Mask,
    Work,
    constant_addresses,
    constant_turns,
    indexed_constants,
    share,
)
from gemmprof.gpu.arch import LIMITS, REGISTER_UNIT, REGISTERS_PER_SM, REGISTERS_PER_THREAD, WARP

STAYS = 1 / 2  # of the shared loads, where a thread's tile is twice as long and wide
STAYS_OF_HALF = 3 / 4  # where it is twice as long only
READ_AGAIN = 2.5  # reads of a stored value; a sum by halves reads each twice
FEWER_BLOCKS = 4.0
"""Blocks of which larger tiles make one."""
_FRAME = re.compile(r"R1, R1, (-?0x[0-9a-f]+)")
_STACK = re.compile(r"\[R1(?:\+-?0x[0-9a-f]+|\+UR\d+)?\]")


def shared_bank_conflicts(work: Work) -> Iterator[Candidate]:
    """One pass through the data stage where one suffices for the bytes.

    Fixed: wavefronts of shared loads and stores fall to the ideal; a conflicted load returns after the
    latency of a straight one. No layout keeps apart what loaded values bring together in one table, but copies do.
    """
    if not work.shared_wavefronts.any():
        return
    atomic = work.where(lambda line: line.is_atomic)
    # Where each lane has its own part of what it looks up in, a layout does help.
    random = atomic.copy()
    for index, one in address_forms.checked_forms(work).items():
        at_one_place = isinstance(one.form.address.terms.get((), 0), int)
        random[index] |= one.form.kind == address_forms.LOOK_UP and at_one_place
    beyond = work.shared_wavefronts - work.shared_ideal
    excess = np.where(random, 0.0, beyond)
    least = 0.02 * float(work.shared_wavefronts.sum())
    variants = [] if float(excess.sum()) < least else [_laid_out_anew(work, excess)]
    met = np.where(random & ~atomic & work.where(lambda line: line.is_load), beyond, 0.0)
    variants += [] if float(met.sum()) < least else _for_look_ups(work, met)
    if not variants:
        return
    yield Candidate(
        cause="shared_bank_conflicts",
        variants=tuple(variants),
        evidence=(
            derived(metrics.SHARED_EXCESS, beyond.sum(), "wavefront"),
            derived("memory_l1_wavefronts_shared", work.shared_wavefronts.sum(), "wavefront"),
            *work.evidence(metrics.BUSY["l1_data"][0]),
        ),
        attributed=np.maximum(excess, met),
    )


def _laid_out_anew(work: Work, excess: Array) -> Variant:
    """No lane meets another in a bank."""
    worst = int(np.argmax(excess))
    way = work.shared_wavefronts[worst] / max(1.0, work.shared_ideal[worst])
    what = "store" if work.sass[worst].is_store else "load"
    return Variant(
        "another layout of the tile",
        _in_fewer_passes(work, excess),
        change=(
            f"Pad or swizzle the shared array: its worst {what} takes {way:.1f} times the passes that its "
            "bytes need, because threads of a warp meet in one bank."
        ),
    )


def _in_fewer_passes(work: Work, excess: Array) -> Fix:
    """So many wavefronts of each instruction less."""
    # What shared accesses take in so many passes each instead of what was counted.
    cycles = latency.short_cycles(work)
    straight = cycles - work.practice.wavefront_cycles * excess / np.maximum(work.executed, 1.0)
    return Fix(
        resources={"l1_data": 1.0 - share(excess.sum(), work.data_passes.sum())},
        latency=np.where(excess > 0, np.clip(straight / cycles, 0.0, 1.0), 1.0),
    )


def _for_look_ups(work: Work, met: Array) -> Iterator[Variant]:
    """Records that lanes look up padded, so that they begin in all banks; and copies of what they look up in, each in
    banks of its own, as many as shared memory holds, so that fewer lanes meet in the banks of each.
    """
    limits, size = LIMITS.get(work.profile.device.compute_capability), work.shared_bytes
    most = limits.max_shared_memory_per_block if limits is not None else -1
    for copies in (1, 2, 4, 8, 16, WARP):
        if copies * size > most:
            return
        gone = np.maximum(0.0, met - _met_at_random(work, met, copies))
        # All blocks fill all of them.
        filled = (copies - 1.0) * size / address_forms.LINE * work.profile.launch.blocks
        fix = replace(
            _in_fewer_passes(work, gone),
            instructions={"lsu": filled},
            passes=filled,
            shared_bytes=round((copies - 1.0) * size),
        )
        name, change = (
            f"{copies} copies of the table",
            f"Keep {copies} copies of the table that lanes look up in, each in banks of its own (a word's copies side "
            f"by side, a lane takes that of its number modulo {copies}): lanes meet at random places in a bank, which "
            "no other layout prevents.",
        )
        if copies == 1:
            name, change = (
                "records padded",
                "Pad records in shared memory by one access of a thread: lanes look them up at random, and meet in the "
                "few banks that a multiple of their size begins in.",
            )
        yield Variant(name, fix, change=change)


def _met_at_random(work: Work, met: Array, copies: int) -> Array:
    """Wavefronts beyond the ideal of look-ups at random places, of which lanes share out so many copies; all, where one
    copy of what is looked up already begins in all banks.
    """
    found = met.copy()
    for at in np.flatnonzero(met).tolist():
        form = address_forms.checked_forms(work)[at].form
        # Accesses of 16 bytes take half of a warp at a time.
        groups, slots = 1 + (form.width == address_forms.WIDEST), address_forms.LINE // max(form.width, 4)
        if copies > 1 or math.gcd(address_forms.record(form), address_forms.LINE) > form.width:
            passes = address_forms.random_passes(max(1, WARP // groups // copies), max(1, slots // copies))
            found[at] = max(0.0, groups * passes * work.executed[at] - work.shared_ideal[at])
    return found


def shared_memory_bandwidth(work: Work) -> Iterator[Candidate]:
    """Each value read from shared memory used for more arithmetic from registers.

    Fixed: where it is known what neighbours read of a tile, a thread computes four results, and loads what they need
    together, as of global memory (`redundant_loads`); the tile is as many times as large. Where shared loads without
    conflicts, look-ups excluded, keep the data stage busy, half of them stay, as of a tile in registers that is twice
    as long and twice as wide, a quarter where neighbours along both axes of a block are known to read the same and a
    thread has four results along each (unless it uses each value as often already), and of what is loaded from constant
    memory to be used with them. Registers hold the sums.
    """
    if "l1_data" not in work.loads:
        return
    loads = work.where(lambda line: line.opcode in ("LDS", "LDSM") and line.space == "shared")
    # Generic loads that touched no sector read shared memory: WMMA's do.
    loads |= work.where(lambda line: line.opcode == "LD") & (work.global_sectors == 0)
    # What is looked up in a table is another word for each result, as is what a comparison of loaded values leads to,
    # where what is known without these tells no passes.
    loads &= ~gathers(work, loads)
    code, forms = work.code, address_forms.checked_forms(work)
    for at in np.flatnonzero(loads & code.by_loads).tolist():
        confirmed = at in forms and forms[at].confirmed
        loads[at] = confirmed or not code.by_loads[list(code.sources(at))].any()
    # Larger tiles are fewer blocks, at last too few for the SMs.
    fewer = work.profile.launch.blocks / work.sms
    if fewer < 2.0:
        return
    loads &= ~_summed_alike(work, loads)
    if _read_once(work, loads):
        return
    # Triton holds operands of a whole BLOCK_K in registers, unless tensor cores take them: of twice the rows, sums and
    # one operand are as many again, half of what a thread has at least.
    then = 1.5 * (work.profile.launch.registers_per_thread or 0)
    if compiled_by_triton(work) and not work.products.any() and then > REGISTERS_PER_THREAD:
        return
    # With what is loaded from constant memory to be used together with what these loads bring.
    readers, beside = work.code.readers, indexed_constants(work)
    used = {one for at in np.flatnonzero(loads).tolist() for one in readers[at]}
    for at in np.flatnonzero(beside).tolist():
        beside[at] = not used.isdisjoint(readers[at])
    known = _of_one_tile(work, loads) if fewer >= FEWER_BLOCKS else []
    variants = [replace(one, change="") for one in more_outputs(work, known, "shared")] if known else []
    passes, everything = float(work.shared_ideal[loads].sum()), float(work.data_passes.sum())
    busy = max(work.loads[key].share for key in ("l1_data", "l1_writeback", "lsu") if key in work.loads)
    each = footprint.uses(work, np.flatnonzero(loads & work.ran).tolist())
    if share(passes, everything) >= 0.4 and busy * work.imbalance >= latency.QUIET:
        # Who uses a value that often has such a tile.
        square = _of_a_square(work, known) if each < footprint.OUTPUTS else 1.0
        stays = min(STAYS if fewer >= FEWER_BLOCKS else STAYS_OF_HALF, square)
        left = float(np.where(loads, stays, 1.0) @ work.data_passes)
        # Of a square tile each value serves as many sums as it has rows.
        sums = footprint.OUTPUTS**2 if square < STAYS else each**2 / stays**2
        fix = Fix(
            keep=np.where(loads | beside, stays, 1.0),
            resources={"l1_data": share(left, everything)},
            registers=0 if work.products.any() or compiled_by_triton(work) else round(sums - each**2),
        )
        name = (
            f"{footprint.OUTPUTS} x {footprint.OUTPUTS} results a thread"
            if square < STAYS
            else "twice the tile of a thread"
            if fewer >= FEWER_BLOCKS
            else "a tile of a thread twice as long"
        )
        if (work.profile.launch.registers_per_thread or 0) + fix.registers <= REGISTERS_PER_THREAD:
            variants.append(Variant(name, fix, counted=L1_PASSES))
    if not variants:
        return
    yield Candidate(
        cause="shared_memory_bandwidth",
        variants=tuple(variants),
        change=(
            "Compute more results a thread from each value read from shared memory: a thread uses it "
            f"{each:.1f} times now. Larger tiles in registers need fewer loads a result."
        ),
        evidence=(
            *work.evidence(metrics.BUSY["l1_data"][0], metrics.SHARED_LOAD_WAVEFRONTS),
            derived("uses of a value / its shared load", each),
        ),
        attributed=np.where(loads, work.shared_wavefronts, 0.0),
        rank=LATENCY,
    )


def _summed_alike(work: Work, loads: Mask) -> Mask:
    """Of these loads those of what all threads add up alike, as a block's parts of a sum: more results a thread have
    as many such sums.
    """
    forms, code = address_forms.checked_forms(work), work.code
    there = np.flatnonzero(loads & work.ran).tolist()
    alike = {at for at in there if at in forms and forms[at].form.kind == address_forms.UNIFORM}
    parts = set(alike)
    for at in sorted(reached(parts, code.readers.__getitem__)):
        if work.sass[at].opcode in ADDITIONS | EXTREMES and alike.issuperset(code.sources(at)):
            alike.add(at)
    found = np.zeros(len(loads), dtype=bool)
    found[[at for at in parts if alike.issuperset(code.readers[at])]] = True
    return found


def _of_one_tile(work: Work, loads: Mask) -> list[footprint.Reuse]:
    """What neighbours read of one tile, where it is known what they read, and that nobody makes it out of the tile
    itself, as a scan's steps do.
    """
    if compiled_by_triton(work):
        return []  # which thread has which result its layouts tell
    known = [one for one in footprint.arrays(work, "shared") if loads[list(one.rows)].all()]
    rows = [row for one in known for row in one.rows]
    exchanged = any(
        work.sass[at].is_store and work.sass[at].space == "shared" and work.executed[at]
        for at in reached(rows, work.code.readers.__getitem__)
    )
    most = 2.0 * float(work.executed[rows].sum()) > float(work.executed[loads].sum())
    return known if most and not exchanged else []


def _of_a_square(work: Work, known: Sequence[footprint.Reuse]) -> float:
    """Share of the loads of a tile that stays where a thread has several results along both axes of a block, as of a
    product: each row and column serves all of them.
    """
    launch, outputs = work.profile.launch, footprint.OUTPUTS
    if not known or launch.blocks < outputs**2 * work.sms:
        return 1.0
    threads, each = launch.threads_per_block, sum(one.thread for one in known)
    along = {
        axis: sum(one.of_results(axis) for one in known) / (outputs * each) for axis in footprint.AXES[:2]
    }
    if launch.block[1] == 1:
        # A block that shares out its threads itself: what differs along them comes again in other rows of the tile.
        apart = share(along["x"] - 1.0 / outputs, 1.0 - 1.0 / outputs)
        again = share(apart * threads * each, sum(one.block for one in known))
        along["y"] = 1.0 - apart * (1.0 - 1.0 / outputs) if again >= outputs else 1.0
    elif min(launch.block[:2]) < outputs:
        return 1.0
    return max(1.0 / outputs**2, sum(along.values()) - 1.0)


def _read_once(work: Work, loads: Mask) -> bool:
    """Whether what is stored in shared memory is hardly read more often than by one thread, as where values are halved
    or exchanged: no tile in registers reads it fewer times. Fragments for tensor cores are many lanes' values at once.
    """
    moved, stores = work.widths * work.threads, work.where(lambda line: line.opcode in ("STS", "LDGSTS"))
    read, stored = float(moved[loads].sum()), float(moved[stores].sum())
    fragments = work.where(lambda line: line.opcode in ("LDSM", "LD"))
    return read < READ_AGAIN * stored and not (fragments & loads & work.ran).any()


def local_memory(work: Work) -> Iterator[Candidate]:
    """No local traffic: registers are not spilled, and arrays are indexed by constants, so that they fit
    registers.

    Fixed: local loads and stores, their passes through L1 and their sectors below are gone. Where loops around an
    indexed array are as long as the code says, or walk along it, they are unrolled, and what finds its places is gone,
    too.
    """
    local = work.where(lambda line: line.space == "local") & work.ran
    if not local.any():
        return
    loads, flows = work.global_loads, traffic(work)
    indexed = local & work.where(lambda line: line.space == "local" and not _STACK.search(line.text))
    loops = [loop for loop in work.code.loops if indexed[loop.first : loop.last + 1].any()]
    words = _words_of_the_frame(work) if loops else 0.0
    loops = [
        loop
        for loop in loops
        if footprint.of_known_length(work, loop) or _over_the_array(work, loop, indexed, words)
    ]
    # What finds the places of the array's accesses goes, and what counts the rounds of these loops.
    gone = {at for at in np.flatnonzero(indexed).tolist() if any(at in loop for loop in loops)}
    gone |= {loop.last for loop in loops}
    keep = np.where(local, 0.0, 1.0)
    keep[list(footprint.serving(work, gone, through=("", "constant")))] = 0.0
    again = _loaded_again(work, loops)
    keep = np.minimum(keep, again)
    spilled, by_index = (float(work.executed[rows].sum()) for rows in (local & ~indexed, indexed))
    # A block gets all of its threads' registers at once.
    most = int(REGISTERS_PER_SM / work.warps_of_block // REGISTER_UNIT * REGISTER_UNIT / WARP)
    at_most = (work.profile.launch.registers_per_thread or 0) >= min(REGISTERS_PER_THREAD, most)
    what = (
        (
            f"The compiler ran out of registers and spills them: a block of {work.profile.launch.threads_per_block:,} "
            f"threads leaves no more than {most} to each. Use smaller blocks, or keep fewer values alive at once."
            if at_most and most < REGISTERS_PER_THREAD
            else "The compiler ran out of registers and spills them: raise the limit (launch bounds, -maxrregcount), "
            "or keep fewer values alive at once."
        )
        if spilled > by_index and (at_most or not by_index)
        else "An array indexed at run time lies in local memory: unroll its loops so that every index is a constant, "
        "or put it in shared memory."
    )
    # What is loaded again was fetched again, too, as far as more was fetched than the loads that stay ask for.
    fetched = flows.missed - flows.local_read
    asked = float((work.global_ideal * again)[loads].sum())
    repeated = min(float((work.global_sectors * (1.0 - again))[loads].sum()), max(0.0, fetched - asked))
    stays = 1.0 - share(flows.local + repeated, flows.l2)
    # Nor has DRAM more than global accesses ask of L2.
    others = flows.l2 - flows.local - repeated or np.inf
    passes = work.data_passes
    resources = {
        "l2_to_l1": 1.0 - share(flows.local_read + repeated, flows.missed),
        **dict.fromkeys(("l1_to_l2", "l2", "l2_in", "l2_out", "l2_tags"), stays),
        "dram": min(
            1.0, 1.0 - 0.9 * share(flows.local, flows.l2), share(others, flows.dram_read + flows.dram_written)
        ),
        "l1_data": share(passes @ keep, passes.sum()) if passes.any() else 1.0,
    }
    way = Variant("values in registers", Fix(keep=keep, resources=resources), most=work.within(keep))
    yield Candidate(
        cause="local_memory",
        variants=(way,),
        change=what,
        evidence=(
            work.of_all("local loads and stores", spilled + by_index),
            derived("local sectors / sectors between L1 and L2", share(flows.local, flows.l2)),
            *work.evidence(metrics.LOCAL_LOADS[0], metrics.LOCAL_STORES[0]),
        ),
        attributed=np.where(local, work.local_sectors + work.executed, 0.0),
    )


def _words_of_the_frame(work: Work) -> float:
    """Words of a thread's arrays in local memory."""
    sizes = [-int(one[1], 16) % 2**32 for line in work.sass if (one := _FRAME.search(line.text))]
    return min(sizes, default=0) / footprint.WORD


def _over_the_array(work: Work, loop: Loop, indexed: Mask, words: float) -> bool:
    """Whether a loop can be unrolled by as many rounds as a thread's arrays in local memory have words: however long it
    is, it walks along them, or round and round, at places that are the same in all threads, so that no data tell them;
    and the instruction cache holds that.
    """
    if not 0.0 < words * len(loop) <= footprint.UNROLLED:
        return False
    code, by_thread = work.code, evaluations(work).by_thread
    here = (at for at in np.flatnonzero(indexed).tolist() if at in loop)
    places = (source for at in here for name in work.sass[at].places for source in code.producers(at, name))
    return not any(by_thread[at] for at in places)


def _loaded_again(work: Work, loops: Sequence[Loop]) -> Array:
    """Share of each instruction that stays where these loops are unrolled: loads at one place become one load.

    Unless something is stored there: then it may be another value.
    """
    keep = work.all_kept()
    stores = work.where(lambda line: line.is_store and line.space == "global")
    straight = [loop for loop in loops if not stores[loop.first : loop.last + 1].any()]
    for one in footprint.arrays(work):
        if one.asked and all(any(row in loop for loop in straight) for row in one.rows):
            keep[list(one.rows)] = min(1.0, one.thread / one.asked)
    return keep


def constant_divergence(work: Work) -> Iterator[Candidate]:
    """One constant address a warp at a time.

    The constant cache serves one address at a time: a load whose threads want several takes as many turns, each of
    two cycles. Fixed: its turns are as many as there are loads, which copy the table.
    """
    if "idc" not in work.loads:
        return
    loads, turns = indexed_constants(work), constant_turns(work)
    count, each = float(work.executed[loads].sum()), constant_addresses(work)
    if each < DIVERGENT:
        return
    stays = share(np.where(loads, work.executed, turns).sum(), turns.sum())
    adu = min(1.0, share(work.executed[work.pipes == ADU].sum(), turns.sum()))
    short = work.attributed.get(flow.SHORT, np.zeros(len(loads)))
    fix = Fix(
        latency=np.where(loads, latency.idle_share(work, short, latency.short_cycles(work)), 1.0),
        resources={"idc": stays, "adu": adu, **dict.fromkeys(("mio", "mio_data"), max(stays, adu))},
        added={"lsu": share(count, work.sms * work.elapsed)},
        passes=address_forms.random_passes(min(WARP, max(1, round(each)))) * count,
    )
    yield Candidate(
        cause="constant_divergence",
        variants=(Variant("a table in shared memory", fix),),
        change=(
            "Read this table from shared memory (or through L1) instead of constant memory: the threads of "
            f"a warp want {each:.1f} addresses at once, and the constant cache serves one at a time."
        ),
        evidence=(
            derived("addresses served by the constant cache / constant loads", each),
            *work.evidence(metrics.BUSY["idc"][0], metrics.CONSTANT_REQUESTS),
        ),
        attributed=np.where(loads, work.executed, 0.0),
    )
