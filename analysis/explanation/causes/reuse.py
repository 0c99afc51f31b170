"""Reuse of global memory: bytes that a thread or its neighbours ask for again, and reuse that caches lose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import LATENCY, ORDER, SPECIFIC, Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.access import NO_LOADS, WIDE, as_records, idle_share
from gemmprof.analysis.explanation.causes.arithmetic import alike_in_blocks
from gemmprof.analysis.explanation.causes.product_tiles import larger_tiles, masked_rounds, taller_tiles
from gemmprof.analysis.explanation.causes.several_results import (
    HARDLY,
    all_blocks,
    by_all_blocks,
    first_waits,
    from_memory,
    more_outputs,
    share_apart,
)
from gemmprof.analysis.explanation.code import address_forms
from gemmprof.analysis.explanation.code.flow import EXCHANGES, Loop, reached
from gemmprof.analysis.explanation.code.live import live_registers
from gemmprof.analysis.explanation.demands import alike, distinct, footprint
from gemmprof.analysis.explanation.demands.footprint import AXES, LOADED_AGAIN
from gemmprof.analysis.explanation.demands.resources import L1_PASSES, OF_AN_SM
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTOR, Traffic, traffic
from gemmprof.analysis.explanation.demands.work import (
    Array,
    Work,
    once,
    share,
    tensor_copies,
)
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.base import amounts
from gemmprof.gpu.arch import REGISTERS_PER_SM, WARP

AGAIN = 1.2  # DRAM reads over allocated memory from which on memory was read again
PASSES = 0.6  # share of a thread's loads that are different, below which all are loaded anew in another pass
MOSTLY_NEW = 0.75  # the same, from which on no loop is unrolled to keep what comes again
# Share of the loads whose addresses are known, from which on what they load again is counted, not guessed.
MOST_LOADS = 0.5
# Bytes that a block can keep beside what it works with; those of a loop's tile.
MOST_SHARED, TILE = 96 * 1024, 16 * 1024
# Sectors fetched from L2 for each that DRAM delivers, from which on they are fetched again.
SHARED_SECTORS = 1.8
FULL_L2 = 0.75  # busy share of L2 from which on that matters


def redundant_loads(work: Work) -> Iterator[Candidate]:
    """Each byte loaded once, into registers or shared memory.

    What is loaded again is counted from the addresses, where those of most loads are known. Fixed, one of these: what a
    thread loads, and makes of it, again in the next rounds of its loop (a window that moves on) it keeps; what it loads
    again in another pass is kept, in registers (their loop unrolled, so that its loads are under way
    together), in shared memory (a list that each round of a loop walks anew, too), or by making one pass of several,
    with what each pass makes alike of it; what it stores again and again where no other thread loads or stores is
    stored once, and not loaded behind that; a thread computes four results, of neighbours (whose lanes lie further
    apart then) or of those far apart that differ in one dimension, and loads (bytes by words), addresses, loop and
    blocks are as many as these need together, what several of them make of that alike is made once (a search that a
    warp's lanes walk together, too), and all other arithmetic takes its time, unless a thread has that many results of
    most values already; a block loads what differs once and reads shared memory, with the stores, passes, barriers and
    waits of that. Loads that stay are those that L1 had not, and wait as long. Loads whose address does not change in a
    loop leave it. What all blocks along an axis of the grid load and compute alike, a block does once for four of them,
    whose results its registers hold. Blocks of a product on tensor cores that load the same operand are one, as far as
    rows of its tile are padding, or until each warp has rows of its own, so that warps exchange nothing (`wgmma`), or
    as long as registers hold their sums. Rounds of a loop of whose products a mask throws all away are left out. What
    only threads that pass a test need is loaded behind it, the terms of a condition one after the other.
    Of what neighbouring programs of Triton load in part alike, one that does the work of four loads it once.
    """
    flows = traffic(work)
    loads = work.global_loads & work.ran & ~work.code.chased  # a list's next place is nowhere else
    if not flows.missed:
        return
    keep = np.where(loads, distinct.evaluations(work).hoisted, 1.0)
    invariant = keep <= 0.5
    known = [*footprint.arrays(work), *distinct.walked_again(work)]
    counted = np.zeros(len(work.sass), dtype=bool)
    counted[[row for one in known for row in one.rows]] = True
    known = [one for one in known if not invariant[list(one.rows)].all()]
    told = share(work.executed[counted].sum(), work.executed[loads].sum()) >= MOST_LOADS
    moving = [*_kept_from_round_to_round(work, known)] if told else []
    if owner_of(work.profile).key == "triton":
        known = [_as_tiles_share(work, one) for one in known]
    variants, passes = list[Variant](), list[Variant]()
    if invariant.any():
        # Of what L1 had to fetch as often, no more stays than what is still asked for.
        left = min(flows.missed, float((work.global_sectors * keep)[loads].sum()))
        stays = flows.factors(left, flows.written, dram_read=min(flows.dram_read, left))
        variants.append(
            Variant(
                "loaded before the loop",
                Fix(keep=keep, resources=stays),
                change="Load it before the loop, into registers or shared memory: its address does not change there.",
                plain=True,
            )
        )
    if told:
        passes += [*_kept_by_the_thread(work, known, flows), *moving]
        if invariant.any():
            passes = [replace(one, fix=one.fix.together(variants[0].fix)) for one in passes]
        variants += [*passes, *more_outputs(work, known), *_tile(work, known)]
    by_places = bool(variants)
    tiles = [*taller_tiles(work, flows), *larger_tiles(work, flows), *masked_rounds(work, flows)]
    tiles += _met_in_memory(work, flows)
    variants += tiles
    variants += [shared for cause, shared in alike_in_blocks(work) if cause == "redundant_loads"]
    if not variants:
        return
    attributed = work.executed * (1.0 - keep)
    for one in known:
        once_a_block = one.block / work.profile.launch.threads_per_block
        attributed[list(one.rows)] = work.executed[list(one.rows)] * (1.0 - once_a_block / one.asked)
    fewest = [one.fix.keep for one in variants if one.fix.keep is not None]
    few = float(attributed.sum()) <= HARDLY * work.total_executed
    copies = work.where(lambda line: line.opcode == "LDGSTS")
    if fewest:
        gone = work.executed * (1.0 - np.minimum.reduce(fewest))
        if few or not by_places:
            # Shared with other blocks' threads, or computed again rather than loaded: all that goes, where loads are
            # few.
            attributed = np.where(work.ran if few and by_places else loads, gone, 0.0)
        attributed[copies] = gone[copies]
    asked = float(work.global_sectors[loads | copies].sum())
    yield Candidate(
        cause="redundant_loads",
        variants=tuple(variants),
        # Of generic loads (LD) no sectors are known.
        evidence=(
            *(
                [derived("sectors asked of L1 / sectors fetched from L2", asked / flows.missed)]
                if asked
                else []
            ),
            *work.evidence(metrics.GLOBAL_LOAD_HIT_RATE),
            *([work.of_all("global loads", work.executed[loads])] if loads.any() else []),
        ),
        attributed=np.maximum(attributed, 0.0),
        # Sharing through shared memory is a rewrite; what is wrong with the code as it stands comes first.
        rank=SPECIFIC if invariant.any() or passes or tiles else LATENCY,
    )


def _as_tiles_share(work: Work, one: footprint.Reuse) -> footprint.Reuse:
    """An array as Triton's programs share it: each lane its own where neighbours load much of the same, but not all (a
    window that moves on). Tensors keep what a whole axis has in common, not what is elsewhere in the next lane, and
    their layouts tell which bytes come together.
    """
    one = replace(one, by_words={})
    few, many = one.thread / LOADED_AGAIN, LOADED_AGAIN * footprint.OUTPUTS * one.thread
    if not few < one.of_results("x") < many:
        return one
    outputs = {axis: some * one.asked / one.thread for axis, some in one.outputs.items() if axis != "x"}
    of_block = one.asked * work.profile.launch.threads_per_block
    return replace(one, thread=one.asked, warp=one.asked * WARP, block=of_block, outputs=outputs)


def _met_in_memory(work: Work, flows: Traffic) -> Iterator[Variant]:
    """What a block's threads leave for one another in global memory, from one barrier to the next, in shared memory."""
    keep, met = work.all_kept(), dict[int, footprint.Reuse]()
    size = 0.0
    for one in footprint.places_of_blocks(work).values():
        both = (*one.stores.rows, *one.loads.rows)
        around = work.code.within(loop for row in both for loop in work.code.loops_around[row])
        if (work.barriers & around).any() and not one.alone:
            met |= dict.fromkeys(one.stores.rows, one.stores) | dict.fromkeys(one.loads.rows, one.loads)
            size += one.stores.block * one.stores.width
    if not met or size > MOST_SHARED:
        return
    rows = list(met)
    keep[rows] = [max(NO_LOADS, one.thread / one.asked) for one in met.values()]
    gone = work.global_sectors * (1.0 - keep)
    left = flows.missed * (1.0 - share(gone[work.global_loads].sum(), flows.asked))
    stored = max(0.0, flows.written - float(gone[~work.global_loads].sum()))
    read, waits = np.zeros(len(keep)), np.ones(len(keep))
    read[rows] = 1.0
    waits[rows] += ((1.0 - keep) / keep * idle_share(work, work.practice.shared_cycles))[rows]
    yield Variant(
        f"in shared memory, {amounts.capacity(size)} a block",
        Fix(
            keep=keep,
            latency=waits,
            resources=flows.factors(left, stored),
            shared=read,
            shared_bytes=round(size),
        ),
        change=(
            "Keep in shared memory what a block's threads leave for one another: they store it to global memory and "
            "load it again behind each barrier, and no other block does."
        ),
        counted=L1_PASSES,
    )


def _again(words: float, stays: float) -> str:
    """What a thread does to load so many words again; ``stays``: the share of its loads that are of new ones."""
    if NO_LOADS < stays < PASSES:
        return f"a thread loads the same {amounts.counted(round(words), 'word')} {1.0 / stays:.0f} times over"
    gone = 100.0 * (1.0 - stays)
    return f"{gone:.0f} % of a thread's loads are of words that it had, of {words:.0f} in all"


def _kept_by_the_thread(work: Work, known: Sequence[footprint.Reuse], flows: Traffic) -> Iterator[Variant]:
    """What a thread loads several times, it keeps: passes over one row."""
    forms = address_forms.checked_forms(work)
    keep, values, asked, again = work.all_kept(), 0.0, 0.0, 0.0
    mine, rows = list[footprint.Reuse](), set[int]()
    for one in known:
        place = forms[one.rows[0]].form.parameters if one.rows[0] in forms else None
        written = footprint.own_places(work).get(place) if place is not None else None
        # What it stored itself before, it need not load.
        first = NO_LOADS * one.thread if written and written.filled else one.thread
        if first >= LOADED_AGAIN * one.asked:
            continue
        mine.append(one)
        rows.update(one.rows)
        keep[list(one.rows)] = first / one.asked
        values += one.thread * max(1.0, one.width / 4.0)
        asked, again = asked + one.asked, again + first
        if written:
            stores = written.stores
            there = {*stores.rows, *footprint.serving(work, {*stores.rows})}
            keep[list(there)] = stores.thread / stores.asked
    if not mine:
        return
    stays = again / asked
    # What it stored itself it need not load once, and yet loads so often.
    told = stays if stays <= NO_LOADS else share(sum(one.thread for one in mine), asked)
    # Which of them a round needs is worked out as ever, where tests choose it.
    chosen = {
        at
        for at in rows
        for one in forms[at].form.address.symbols
        if one.loops and str(one.name).startswith("('select'")
    }
    keep[list(footprint.serving(work, rows - chosen))] = stays
    for at, share_left in _made_again(work, rows).items():
        keep[at] = min(keep[at], share_left)
    loads = work.global_loads
    gone = work.global_sectors * (1.0 - keep)
    again, stored = float(gone[loads].sum()), max(0.0, flows.written - float(gone[~loads].sum()))
    # What came again came from L2. What others fetch, they fetch then, too: each block its own part, where it is known.
    once = float((work.global_ideal * keep)[list(rows)].sum()) + sum(
        one.sectors * work.profile.launch.blocks
        for one in known
        if one not in mine
        and one.rows[0] in forms
        and any(symbol.blocks for symbol in forms[one.rows[0]].form.address.symbols)
    )
    left = max(flows.missed - again, min(flows.missed, once))
    # What each block then fetches once for itself, or L2 holds whole, DRAM delivers once.
    held, blocks = (work.profile.device.l2_bytes or 0) / 2.0 / SECTOR, work.profile.launch.blocks
    wholes = [(all_blocks(work, one), one in mine, LOADED_AGAIN * blocks * one.sectors) for one in known]
    once_each = all(whole <= held or (kept and whole >= apart) for whole, kept, apart in wholes)
    delivered = by_all_blocks(work, known, flows) if once_each else from_memory(work, known, flows, left)
    fewer = flows.factors(left, stored, dram_read=min(left, delivered))
    waits = first_waits(work, keep, left)
    # Threads that share a row have less of it each the more they are, as long as an SM has registers for them.
    launch, wider = work.profile.launch, 1
    shared_out = all(one.block >= LOADED_AGAIN * one.thread * launch.threads_per_block for one in mine)
    room = REGISTERS_PER_SM / max(1, launch.threads_per_block) - values
    while (
        shared_out
        and values > wider * footprint.MOST_REGISTERS
        and 2 * wider * (launch.registers_per_thread or 0) <= room
    ):
        wider *= 2
    if values <= wider * footprint.MOST_REGISTERS:
        threads = f" of {wider * work.warps_of_block} warps" if wider > 1 else ""
        yield Variant(
            f"kept in registers, {values / wider:.0f} a thread{threads}",
            Fix(
                keep=keep,
                latency=_all_at_once(work, mine, waits, wider) if stays < MOSTLY_NEW else waits,
                resources=fewer,
                registers=_registers_to_keep(work, rows, round(values / wider)),
            ),
            change=(
                f"Load it once and keep it: {_again(values, told)}. Registers{threads} hold them between the passes."
            ),
            plain=True,
            counted=L1_PASSES,
        )
    size = sum(one.block * one.width for one in mine)
    if size > MOST_SHARED and any(_both_ways(work, one) for one in mine):
        return
    results = _results_at_once(work, rows)
    if results or (values > wider * footprint.MOST_REGISTERS and size > MOST_SHARED):
        if all(_begins_with_the_last(work, row) for row in rows):
            return
        at_once = (
            f"Its {results} passes ask nothing of one another: one loop makes all of their results."
            if results
            else "A scan can be had in one pass, if each part takes over where the one before it ends (look-back)."
            if (work.ran & work.code.in_order)[list(rows)].any()
            else "Sums and largest values can be had in one pass (online)."
        )
        yield Variant(
            "one pass",
            Fix(keep=keep, latency=waits, resources=fewer, registers=max(0, results - 1)),
            change=f"Read it in fewer passes: {_again(values, told)}. {at_once}",
            plain=True,
            counted=OF_AN_SM if results else (),
        )
    if size <= MOST_SHARED:
        # The first pass stores each, those behind it load it.
        read = np.zeros(len(keep))
        read[list(rows)] = 1.0
        waits[list(rows)] += (1.0 - stays) / stays * idle_share(work, work.practice.shared_cycles)[list(rows)]
        yield Variant(
            f"kept in shared memory, {amounts.capacity(size)} a block",
            Fix(keep=keep, latency=waits, resources=fewer, shared=read, shared_bytes=round(size)),
            change=f"Load it once and keep it: {_again(values, told)}. Shared memory holds them between the passes.",
            counted=L1_PASSES,
        )


def _made_again(work: Work, rows: set[int]) -> dict[int, float]:
    """Share that stays of what is made alike, again and again, of nothing but what these loads bring: kept in place of
    what it was made of.
    """
    code, forms, numbers = work.code, address_forms.checked_forms(work), dict[object, int]()
    found, made = dict[int, int](), dict[int, set[int]]()

    def read(at: int, name: str) -> int | None:
        """What may stand in a register: what was made of the loads, or the same wherever it is looked at."""
        several, values = code.producers(at, name), address_forms.values_of(work)
        if any(code.by_loads[one] and one not in found for one in several):
            return None
        each = (found[one] if one in found else values.after(one, name).key for one in several)
        return numbers.setdefault(tuple(each), len(numbers))

    for at in np.flatnonzero(work.ran & code.by_loads).tolist():
        line = work.sass[at]
        parts: list[object]
        if at in rows and at in forms:
            parts = [forms[at].form.parameters, address_forms.constant(forms[at].form), line.full]
        elif line.space or not line.writes or line.opcode in EXCHANGES:
            continue
        else:
            each = [one for name in line.reads if (one := read(at, name)) is not None]
            if len(each) < len(line.reads):
                continue
            # Factors and terms stand in any order.
            told = sorted(alike.REGISTER.sub("", one) for one in (line.when, *line.operands))
            parts = [line.full, *told, *sorted(each)]
        found[at] = numbers.setdefault(tuple(parts), len(numbers))
        made.setdefault(found[at], set()).add(at)
    often = {
        at: work.executed[list(group)] for group in made.values() for at in group - rows if len(group) > 1
    }
    return {at: float(each.max() / each.sum()) for at, each in often.items()}


def _results_at_once(work: Work, rows: set[int]) -> int:
    """Rounds of the loop around these loads' own that go through the same with nothing of what came of the last one, as
    far as registers hold a result of each; 0 where that is not so.
    """
    around = {work.code.loops_around[row][1:2] for row in rows}
    times = {round(footprint.rounds(work, loop)) for outer in around for loop in outer}
    alone = () not in around and not any(_begins_with_the_last(work, row) for row in rows)
    most = max(times, default=0)
    return most if alone and most <= footprint.MOST_REGISTERS else 0


def _kept_from_round_to_round(work: Work, known: Sequence[footprint.Reuse]) -> Iterator[Variant]:
    """What a window that moves on from round to round loads and makes again a thread keeps, while it is in sight."""
    forms, around = address_forms.checked_forms(work), work.code.loops_around

    def moves_on(row: int) -> bool:
        """By the number of the round alone: what tests choose no register is named by."""
        led = [
            one
            for one in forms[row].form.address.symbols
            if around[row] and around[row][-1].first in one.loops
        ]
        return bool(led) and all(one.kind == "trip" for one in led)

    again = {row for one in known if one.thread < LOADED_AGAIN * one.asked for row in one.rows} & forms.keys()
    rows = tuple(sorted(filter(moves_on, again)))
    if not rows:
        return
    keep, values = alike.once_in_all_rounds(work, rows)
    stays = share(work.executed[list(rows)] @ keep[list(rows)], work.executed[list(rows)].sum())
    if stays > LOADED_AGAIN or values > footprint.MOST_REGISTERS:
        return
    keep[list(footprint.serving(work, {*rows}))] = stays
    yield Variant(
        f"kept from round to round, {values:.0f} values a thread",
        Fix(
            keep=keep,
            latency=first_waits(work, keep),
            resources=dict.fromkeys(BELOW_L1, 1.0),
            registers=round(values),
        ),
        change=(
            f"Keep what the next rounds of the loop come to again, in {values:.0f} registers: "
            f"{100.0 * (1.0 - stays):.0f} % of a round's loads, and what is made of them, an earlier round had."
        ),
        counted=OF_AN_SM,
    )


def _begins_with_the_last(work: Work, row: int) -> bool:
    """Whether a load's loop runs again and again in one around it, each time with what came of it the last time."""
    code, inner = work.code, work.code.loop_of(row)
    if inner is None:
        return False
    shared = np.flatnonzero(
        work.where(lambda line: line.is_load and line.space == "shared") & work.ran
    ).tolist()
    results = {
        use for at in range(inner.first, inner.last + 1) for use in code.readers[at] if use not in inner
    }

    def comes_back(outer: Loop) -> bool:
        """Through registers, or shared memory, wherever that lies."""

        def onward(at: int) -> Iterator[int]:
            stored = work.sass[at].is_store and work.sass[at].space == "shared"
            return (use for use in (shared if stored else code.readers[at]) if use in outer)

        return any(at in inner for at in reached((use for use in results if use in outer), onward))

    return any(map(comes_back, code.loops_around[row][1:]))


def _both_ways(work: Work, one: footprint.Reuse) -> bool:
    """Whether a round loads an array on its way up and on its way down: one pass, however often it loads all."""
    forms, loop_of = address_forms.checked_forms(work), work.code.loop_of
    steps = {
        (loop, forms[row].form.step(loop)) for row in one.rows if (loop := loop_of(row)) and row in forms
    }
    return len(steps) > len({loop for loop, _ in steps})


def _registers_to_keep(work: Work, rows: set[int], values: int) -> int:
    """Registers a thread that it takes beyond those that it has, to hold so many values from one pass to the last."""
    live = live_registers(work.code)
    # Where they are loaded now, those of a round are among what is live.
    loops = {loop for row in rows if (loop := work.code.loop_of(row))}
    most = max(
        live[at] + values - (min(values, len(rows)) if any(at in loop for loop in loops) else 0)
        for at in range(min(rows), max(rows) + 1)
        if work.executed[at]
    )
    return max(0, most - (work.profile.launch.registers_per_thread or most))


def _all_at_once(work: Work, mine: Sequence[footprint.Reuse], waits: Array, wider: int) -> Array:
    """The same where so many times the threads hold the values: their loop is unrolled, its loads wait together, but
    for those of loops within.
    """
    found, loads = waits.copy(), work.global_loads
    for one in mine:
        for loop in {loop for row in one.rows if (loop := work.code.loop_of(row))}:
            inside = [at for at in np.flatnonzero(loads).tolist() if work.code.loop_of(at) == loop]
            together = sum(1 for other in one.rows if other in loop)
            factor = min(1.0, together * wider / one.thread)
            found[inside] = np.minimum(found[inside], waits[inside] * factor)
    return found


def _shared_too_late(work: Work, known: Sequence[footprint.Reuse]) -> str:
    """The grid's outermost axis, if blocks along it load much of the same (all of it, or windows that overlap) and L2
    cannot hold what all others load in between: blocks begin in the order of their numbers, x first. '' for none.
    """
    *inner, last = [AXES[at] for at, blocks in enumerate(work.profile.launch.grid) if blocks > 1] or [""]
    between = SECTOR * sum(all_blocks(work, one, inner) for one in known)
    same = any(share_apart(one, last) < LOADED_AGAIN for one in known)
    return last if inner and same and between > (work.profile.device.l2_bytes or np.inf) else ""


def _tile(work: Work, known: Sequence[footprint.Reuse]) -> Iterator[Variant]:
    """What a block's threads share, they load together and read from shared memory."""
    threads = work.profile.launch.threads_per_block
    # What all lanes of a warp load at once is one sector of L1's: shared memory serves it no better, unless by vectors.
    shared = [
        one
        for one in known
        if one.block / threads < LOADED_AGAIN * one.thread
        and one.block > 1
        and (one.thread < LOADED_AGAIN * one.warp or _side_by_side(work, one) > 1.0)
    ]
    if not shared:
        return
    size = sum(min(one.block * one.width, TILE) for one in shared)
    keep = work.all_kept()
    for one in shared:
        keep[list(one.rows)] = min(1.0, one.block / threads / one.thread)
    rows = sorted({row for one in shared for row in one.rows})
    count = float(work.executed[rows].sum())
    first = float((keep * work.executed)[rows].sum())
    keep[list(footprint.serving(work, set(rows)))] = share(first, count)
    # Each load reads shared memory, several by a vector where they walk along; those that stay store there, too.
    read, passes = np.zeros(len(keep)), np.zeros(len(keep))
    tiles = max(1.0, sum(one.block * one.width for one in shared) / max(1.0, size))
    warps = work.profile.launch.blocks * max(1.0, threads / 32.0)
    # Loads that are gone were those that L1 had; in their place shared memory is waited for, a vector at a time. All
    # warps of a block wait until a tile is there, whichever of them load it.
    waits = first_waits(work, keep) * max(1.0, share(tiles * warps, first))
    instead = idle_share(work, work.practice.shared_cycles) / keep
    for one in shared:
        several = _side_by_side(work, one)
        mine = list(one.rows)
        read[mine] = 1.0 / several + keep[mine]
        waits[mine] += instead[mine] / several
        # A pass serves 128 bytes, and 8 of a lane: wide accesses take several.
        wide = several * one.width * max(1.0 / 8.0, min(1.0, share(one.warp, WARP * one.thread)) / 4.0)
        passes[mine] = max(1.0, wide) / several + keep[mine] * max(1.0, one.width / 4.0)
    again = threads * sum(one.asked for one in shared) / max(1.0, sum(one.block for one in shared))
    yield Variant(
        f"tile in shared memory, {amounts.capacity(size)} a block",
        Fix(
            keep=keep,
            latency=np.minimum(waits, 1.0 / np.maximum(keep, 1e-9)),
            resources=dict.fromkeys(BELOW_L1, 1.0),
            shared=read,
            passes=float((passes - read) @ work.executed),
            barriers=2.0 * tiles * warps,
            shared_bytes=round(size),
        ),
        change=(
            "Load what a block's threads share into shared memory, once: they load each of its bytes "
            f"{again:.0f} times now."
        ),
        counted=L1_PASSES,
        most=work.within(keep),
    )


def _side_by_side(work: Work, one: footprint.Reuse) -> float:
    """Loads of a thread that one vector does where all of them lie side by side as their loop walks on."""
    forms = address_forms.checked_forms(work)
    loop = work.code.loop_of(one.rows[0])
    places = {address_forms.constant(forms[row].form) for row in one.rows}
    step = forms[one.rows[0]].form.step(loop) if loop is not None else None
    filled = len(places) * one.width
    along = step is not None and abs(step) == filled == max(places) - min(places) + one.width
    return max(1.0, WIDE / one.width) if along else 1.0


def cache_locality(work: Work) -> Iterator[Candidate]:
    """Each sector fetched from device memory, and by each SM, once as long as it is in use.

    Known where it cannot be otherwise: more was read from DRAM than the program has allocated, or than all blocks load
    at places that are known and L2 does not hold, so that some of it was read again; fixed, DRAM reads that much, L2
    takes in no more and serves the rest. And where the same looked-up index is used in several
    arrays, or a value is looked up where its key was found: fixed, one record holds all that is wanted, and its sector
    is fetched in place of one an array.
    """
    flows, allocated = traffic(work), _readable(work)
    records = as_records(work)
    found, l2 = None, work.profile.device.l2_bytes
    # What a request touches beyond its bytes is fetched again because of that (`uncoalesced_access`), unless L1 had it.
    loads = work.global_loads
    fetched = min(float(work.global_sectors[loads].sum()), flows.missed)
    wasted = max(1.0, share(fetched, work.global_ideal[loads].sum()))
    in_order = _in_order(work)
    there = allocated or np.inf
    # Blocks that share what they load find some of it in L2, whatever their order: else nobody had it. What a thread
    # loads again itself is no order of blocks.
    known = footprint.arrays(work)
    shared = all(one.thread > LOADED_AGAIN * one.asked for one in known)
    late = _shared_too_late(work, known)
    if shared and (late or flows.dram_read <= LOADED_AGAIN * flows.missed):
        once = by_all_blocks(work, known, flows)
        # What fits L2 is read once in any order: fewer sectors are neighbours' sharing, no count of what blocks load.
        there = min(there, once) if once > (l2 or 0) / SECTOR else there
    ordered = work.profile.launch.blocks > 1 and 0.0 < flows.missed <= 2.0 * in_order
    # Nobody allocates local memory, and no order of blocks brings less of it.
    if ordered and flows.dram_read - flows.local_read > AGAIN * there * wasted:
        named = "all allocated memory" if there == allocated else "what all blocks load"
        found = _read_again(work, flows, there, named, late)
    elif ordered and in_order >= SHARED_SECTORS * flows.dram_read > 0.0:
        keys = {"l2", "l2_in", "l2_out", "l2_tags"} & work.loads.keys()
        if any(work.loads[key].share >= FULL_L2 for key in keys):
            found = _fetched_again(work, flows)
    if found is not None and records is not None:
        yield replace(found, variants=(*found.variants, *records.variants), rank=records.rank)
    elif found is not None:
        yield found
    elif records is not None:
        yield replace(records, cause="cache_locality")


@once
def _readable(work: Work) -> float | None:
    """Sectors of all that the program has allocated, without what the launch only stores; None where nobody knows."""
    accessible = work.number(metrics.ACCESSIBLE_BYTES)
    return accessible / SECTOR - _only_written(work, traffic(work)) if accessible else None


def looked_up_again(work: Work) -> float:
    """How often all that there is was read from DRAM, where mostly look-ups read it; 0 where none of it need have been
    read twice.
    """
    flows, there = traffic(work), _readable(work)
    if there and flows.missed > 2.0 * _in_order(work) and flows.dram_read > AGAIN * there > 0.0:
        return flows.dram_read / there
    return 0.0


def _only_written(work: Work, flows: Traffic) -> float:
    """Sectors that the launch stores and does not load; 0 where nobody knows all places of its arrays."""
    if work.program is None:
        return 0.0
    forms = address_forms.checked_forms(work)
    there = work.ran & work.where(lambda line: line.space == "global")
    arrays = {at: forms[at].form.parameters if at in forms else None for at in np.flatnonzero(there).tolist()}
    read = {array for at, array in arrays.items() if not work.sass[at].is_store or work.sass[at].is_atomic}
    apart = [at for at, array in arrays.items() if array not in read]
    known = all(arrays.values())
    return min(flows.dram_written, float(work.global_sectors[apart].sum())) if known else 0.0


@once
def _in_order(work: Work) -> float:
    """Sectors that L1 fetched at places that the order of the work decides: all but look-ups, where the data do; these,
    too, where blocks along an axis of the grid look up the same.
    """
    flows = traffic(work)
    if work.program is None:
        return flows.missed
    loads, code = work.global_loads, work.code
    looked_up = code.chased & loads
    for at, one in address_forms.checked_forms(work).items():
        told_by = [symbol for symbol in one.form.address.symbols if symbol.looked_up]
        if loads[at] and told_by:
            # A row that begins where a loaded value says is walked on in order, where it is walked; another row in each
            # round is none.
            loop = code.loop_of(at)
            looked_up[at] |= (
                loop is None
                or one.form.kind == address_forms.LOOK_UP
                or one.form.step(loop) == 0
                or any(loop.first in symbol.loops for symbol in told_by)
            )
    same = distinct.same_by_axis(work)
    for at in np.flatnonzero(looked_up).tolist():
        indices = [index for index in reached(code.sources(at), code.sources) if loads[index]]
        looked_up[at] = not any(bool(one[indices].all()) for one in same)
    sectors = work.global_sectors
    stays = 1.0 - share(sectors[looked_up].sum(), sectors[loads].sum())
    return stays * (flows.missed - flows.local_read)


def _fetches(work: Work, flows: Traffic) -> Array | None:
    """The loads and copies to shared memory by their sectors; tensor copies, where they bring most."""
    if work.program is None:
        return None
    copies = tensor_copies(work) * work.executed
    return copies if _by_copies(flows) else np.where(work.global_fetches, work.global_sectors, 0.0)


def _by_copies(flows: Traffic) -> bool:
    return flows.copied > 0.5 * flows.missed


def _read_again(work: Work, flows: Traffic, there: float, named: str, late: str) -> Candidate:
    """More was read from DRAM than there is to read: that much suffices."""
    again = flows.dram_read / there
    loads, sectors = work.global_loads, work.global_sectors
    # Threads that load the same words again explain most of what is read so many times over.
    arrays = footprint.arrays(work)
    own = sum(float(sectors[list(one.rows)].sum()) * (1.0 - one.thread / one.asked) for one in arrays)
    differs = loads.copy()
    for same in distinct.same_by_axis(work):
        differs &= ~same
    most = 2.0 * own > (1.0 - 1.0 / again) * float(sectors[differs].sum())
    # What DRAM delivers L2 takes in, beside what L1 asks of it.
    factors = dict.fromkeys(("l2", "l2_tags"), share(flows.l2 + there, flows.l2 + flows.dram_read))
    factors["dram"] = share(there + flows.dram_written, flows.dram_read + flows.dram_written)
    # A sector from DRAM keeps one request waiting at most.
    late_ones = min(1.0, share(flows.dram_read, work.executed[loads].sum()) or 1.0) if len(loads) else 1.0
    waits = np.where(loads, 1.0 - 0.5 * late_ones * (1.0 - 1.0 / again), 1.0) if len(loads) else None
    return Candidate(
        cause="cache_locality",
        variants=(
            Variant(
                "an order of work that stays in L2", Fix(resources=factors, latency=waits), plain=bool(late)
            ),
        ),
        change=(
            f"Make {late} the first axis of the grid: [blocks|programs] along it load much of the same, and what those "
            f"between them load is more than L2 holds ({again:.1f} times {named} was read from DRAM)."
            if late
            else f"Read it once: {again:.1f} times {named} was read from DRAM, each block's part by that block "
            "alone, again and again. Keep what it works on in registers or shared memory between its passes, or give "
            "it a smaller part at a time."
            if most or _blocks_share_nothing(work)
            else f"Work on what lies in L2 before moving on: {again:.1f} times {named} was read from DRAM. "
            "Order the blocks in tiles, so that blocks that share data run at the same time."
        ),
        evidence=work.evidence(metrics.DRAM_READ_BYTES[0], metrics.ACCESSIBLE_BYTES, metrics.L2_HIT_RATE),
        attributed=_fetches(work, flows),
    )


def _blocks_share_nothing(work: Work) -> bool:
    """Whether most of what is loaded differs from block to block, along whichever axis they are numbered.

    And stays in some loop: what moves along in all of them may overlap with what other blocks load, like windows.
    Nobody knows it without the code.
    """
    if work.program is None:
        return False
    loads = work.global_loads & work.ran
    own = np.zeros(len(loads), dtype=bool)
    for at, one in address_forms.checked_forms(work).items():
        around = (loop.first for loop in work.code.loops_around[at])
        again = any(first not in one.form.loops for first in around if work.executed[first])
        own[at] = loads[at] and again and any(symbol.blocks for symbol in one.form.address.symbols)
    for same in distinct.same_by_axis(work):
        own &= ~same
    sectors = work.global_sectors
    return 2.0 * float(sectors[own].sum()) > float(sectors[loads].sum())


def _fetched_again(work: Work, flows: Traffic) -> Candidate:
    """L2 is full of what DRAM delivers once: half of what L1 fetches again is found there instead."""
    times, by_copies = flows.missed / flows.dram_read, _by_copies(flows)
    first, then = "Let a block use more of what it fetches", "Larger or square tiles share more of it."
    if by_copies:
        first = "Fetch once what neighbouring blocks share"
        then = "Launch clusters whose blocks multicast their tensor copies, or use larger tiles."
    missed = flows.missed - 0.5 * (_in_order(work) - flows.dram_read)
    fix = Fix(resources=flows.factors(missed, flows.written, dram_read=flows.dram_read))
    return Candidate(
        cause="cache_locality",
        variants=(Variant("less fetched from L2", fix, plain=not by_copies),),
        change=f"{first}: {times:.1f} times what comes from DRAM is fetched from L2, which is full. {then}",
        evidence=(
            derived("sectors fetched from L2 / sectors read from DRAM", times),
            *work.evidence(metrics.BUSY["l2_in"][0], metrics.BUSY["l2_out"][0], metrics.L1_HIT_RATE),
        ),
        attributed=_fetches(work, flows),
        rank=ORDER,
    )
