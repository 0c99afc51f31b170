"""How a grid's blocks are dealt out over the SMs: too few of them, a last wave that is not full, unequal ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.code.flow import Loop, Program, program, reached
from gemmprof.analysis.explanation.demands.distinct import COPIES, evaluations
from gemmprof.analysis.explanation.demands.footprint import handed_on
from gemmprof.analysis.explanation.demands.resources import WARPS_A_CYCLE
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1
from gemmprof.analysis.explanation.demands.work import Mask, Work, once, specialised, tensor_copies
from gemmprof.analysis.explanation.trust import SHORT
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy, analyse
from gemmprof.analysis.opcodes import MATH_CLASSES
from gemmprof.analysis.sections import timeline
from gemmprof.base.amounts import counted
from gemmprof.gpu.arch import WARP
from gemmprof.model import Evidence

# Share of the executions from which on what holds of them holds of the kernel: the rest guards the last block.
NEARLY_ALL = 0.95
# How much longer than the average the busiest SM takes although all blocks do the same: they wait for one
# memory in turn. The recorded kernels of equal blocks (tests/cuda) reach 1.18.
SPREAD_OF_EQUALS = 1.2
# Share of the warps' time in loops whose rounds cannot change places, from which on they decide.
IN_ORDER = 0.5
ALMOST = 0.95  # blocks for each SM from which on a grid is small for its warps, not for its blocks
UNEVEN_BLOCKS = 1.4  # cycles of the longest block of a small grid over the average one's, if they are uneven
UNEVEN = 1.04  # cycles of the busiest SM over the average one below which the SMs are even
MOSTLY = 0.5  # share of the executions in loops, from which on they decide how long a block works
LOST = 1.0  # per cent of the time from which on a beginning or an end of the launch is told of
# Blocks that live for fewer cycles leave their places empty for a visible time between them.
SHORT_BLOCK = 6000.0


@once
def occupancy_of(work: Work) -> LaunchOccupancy | None:
    """The launch's occupancy, None where it was not collected."""
    found = analyse(work.profile)
    return found if isinstance(found, LaunchOccupancy) else None


@dataclass(frozen=True, slots=True)
class _Dealt:
    """How a launch's blocks were dealt out over the SMs."""

    occupancy: LaunchOccupancy | None
    blocks: float  # of the grid
    per_sm: int  # blocks that an SM holds at once; 0 if not known
    waves: float  # how often the grid fills the GPU
    tail: float  # rounds of blocks that the busiest SM runs over those of an even share; 1 within one wave
    gap: float  # warps that equal blocks would keep resident, over those that were
    evidence: tuple[Evidence, ...]  # cycles of the average, the busiest and the idlest SM


def _dealt(work: Work) -> _Dealt | None:
    occupancy, blocks = occupancy_of(work), float(work.profile.launch.blocks)
    if work.profile.workload != "kernel" or not blocks or work.elapsed <= 0:
        return None
    per_sm, waves, rounds, gap = 0, 0.0, 1.0, 1.0
    if occupancy is not None:
        per_sm, waves = occupancy.blocks_per_sm, occupancy.waves or 0.0
        # Nothing is read from warps that leave early where they have a role of their own.
        if occupancy.even_percent is not None and occupancy.achieved_percent and not specialised(work):
            gap = max(1.0, 0.97 * occupancy.even_percent / occupancy.achieved_percent)
    if per_sm:
        waves = blocks / (work.sms * per_sm)
        rounds = float(np.ceil(waves))
    cycles = work.evidence(metrics.SM_ACTIVE_CYCLES, metrics.ACTIVE_CYCLES_MAX, metrics.ACTIVE_CYCLES_MIN)
    return _Dealt(occupancy, blocks, per_sm, waves, rounds / waves if waves > 1 else 1.0, gap, cycles)


@once
def _sampled(work: Work) -> timeline.Timeline | None:
    """The launch over time, None where it was not sampled."""
    found = timeline.analyse(work.profile)
    return found if isinstance(found, timeline.Timeline) else None


def _even_end(work: Work) -> float | None:
    """The imbalance that would be left if the SMs worked to the end as they did before; None where nobody saw.

    Cycles of SMs tell how unequal they were; only samples tell what that cost: where memory is as busy in the tail as
    before it, nothing.
    """
    found = _sampled(work)
    if found is None or found.even_end_saves_percent is None:
        return None
    return max(1.0, work.imbalance * (1.0 - found.even_end_saves_percent / 100))


def over_time(work: Work) -> tuple[Evidence, ...]:
    """When the SMs run out of blocks, and what that costs: seen, where the launch was sampled over time."""
    found = _sampled(work)
    if found is None:
        return ()
    lost = "lost in the {} {:.0f} % ({})"
    return tuple(
        derived(lost.format("first" if one.begin == 0 else "last", 100 * one.share, one.what), costs, "%")
        for one in found.phases
        if (costs := one.costs_percent) is not None and costs >= LOST
    )


def _lengths_loaded(work: Work) -> bool:
    """Whether mostly loops run whose length each block loads for itself (a row's, an expert's): as the data say."""
    if work.program is None:
        return False
    code, found = work.code, evaluations(work)
    mine = []
    for loop in code.loops:
        leaving = (at for at in range(loop.first, loop.last) if _leaves(code, at, loop))
        ends = (one for at in (*leaving, loop.last) for one in code.sources(at))
        told = reached(ends, lambda at: () if code.sass[at].is_load else code.sources(at))
        loaded = [at for at in told if code.sass[at].is_load and code.sass[at].space == "global"]
        if loaded and not any(at in loop or found.by_thread[at] or found.alike[at] for at in loaded):
            mine.append(loop)
    return float(work.executed[code.within(mine)].sum()) > MOSTLY * work.total_executed


def _leaves(code: Program, at: int, loop: Loop) -> bool:
    line = code.sass[at]
    target = code.target(at) if line.is_branch else None
    return (line.opcode == "EXIT" and bool(line.guard)) or (target is not None and target not in loop)


def uneven_work(work: Work) -> Iterator[Candidate]:
    """Work that is dealt out unevenly over the SMs: tail_effect, small_grid or workload_imbalance,
    whichever it is.

    Fixed: the busiest SM works as long as the average one does now; where the last wave is not full, as long as smaller
    blocks leave it (of four warps, or half as large). Within an SM, warps that finish early leave it half empty; fixed,
    as many warps are resident as the launch allows. Where blocks execute the same, SMs that work longer wait longer.
    Fewer blocks than SMs are cut also where rounds wait for one another, if a scan joins the pieces.
    """
    dealt = _dealt(work)
    if dealt is None:
        return
    if dealt.blocks < work.sms:
        # Where mostly nothing runs, a launch takes what starting and ending one do, however it is cut.
        cut = divisible(work) or not (_too_little(work) or handed_round(work))
        if cut and work.idle_start < 0.5:
            yield from _small_grid(work, dealt)
        return
    schedulers = work.sms * WARPS_A_CYCLE["issue"]
    if work.launched_warps < schedulers and dealt.per_sm and divisible(work):
        # Schedulers without a warp issue nothing, as SMs without a block do.
        fix = Fix(warps=_times_the_warps(work, float(dealt.per_sm * work.warps_of_block)))
        yield _too_few(work, dealt, "warp", work.launched_warps, "schedulers", schedulers, fix)
    # An SM that is given a block more than another works for a block longer.
    of_the_grid = min(work.imbalance, max(dealt.tail, work.shares))
    whole = work.imbalance >= UNEVEN and of_the_grid > 1.0 + 0.4 * (work.imbalance - 1.0)
    if whole and dealt.waves and max(dealt.waves, work.shares) > 1.0 and not _lengths_loaded(work):
        yield _uneven_share(work, dealt, dealt.blocks / work.sms)
    else:
        yield from _unequal_blocks(work, dealt)


def divisible(work: Work) -> bool:
    """Whether more blocks would have work at once: a warp of accesses for each SM, and no loop of rounds in turn."""
    return work.program is None or not (
        _too_little(work) or _mostly(work, work.code.in_order | work.code.one_after_another)
    )


def how_to_cut(work: Work) -> str:
    """How the work is shared out to more blocks."""
    return (
        "Cut the work finer"
        if divisible(work)
        else "Its rounds wait for one another: cut them into pieces whose ends a second step joins (a scan)"
    )


def _too_little(work: Work) -> bool:
    """Whether not even a warp accesses memory for each SM; one thread's tensor copy moves a tile."""
    accesses = work.where(lambda line: line.space == "global") & work.ran
    few = bool(accesses.any()) and float(work.threads[accesses].max()) < WARP * work.sms
    return few and not tensor_copies(work).any()


def _mostly(work: Work, rows: Mask) -> bool:
    """Whether warps spend most of their time there."""
    waits = work.attributed_total
    return float(waits[rows].sum()) > IN_ORDER * max(float(waits.sum()), 1e-9)


def handed_round(work: Work) -> bool:
    """Whether threads mostly work on, round by round, with what others made of the round before, with a state that no
    scan joins, or where the last round's load sends them: no piece of such a loop ends in what another begins with.
    """
    if work.program is None:
        return False
    chains = work.code.loops_of(np.flatnonzero(work.code.chased | handed_on(work)))
    if _mostly(work, work.code.one_after_another | chains):
        return True
    code, sass, waits = work.code, work.sass, work.attributed_total
    in_order = not divisible(work)
    for loop in code.loops:
        inside = {at for at in range(loop.first, loop.last + 1) if work.executed[at]}
        if float(waits[list(inside)].sum()) <= IN_ORDER * float(waits.sum()):
            continue

        def onward(ends: Iterable[int], inside: set[int] = inside) -> set[int]:
            return reached(ends, lambda place: inside.intersection(code.readers[place]))

        mine = inside.intersection(code.carried(loop))
        carried = {at for at in mine if sass[at].instruction_class in MATH_CLASSES}
        made = onward(carried)
        shared = {at for at in inside if sass[at].space == "shared"}
        # Where something else is stored there, too, it may be that alone that others read.
        stores = {at for at in inside if sass[at].opcode in COPIES or (at in shared and sass[at].is_store)}
        taken = {at for at in made if sass[at].opcode == "SHFL"}
        if stores and stores <= made:
            taken |= shared - stores
        alone = not any(one != loop and loop.first in one for one in code.loops)
        meets = alone and bool(stores) and any(work.barriers[at] for at in inside)
        if in_order and not carried.isdisjoint(onward(taken)):
            return True
        if meets and stores <= onward(shared - stores):
            return True
    return False


def _small_grid(work: Work, dealt: _Dealt) -> Iterator[Candidate]:
    """Fewer blocks than SMs."""
    blocks = dealt.blocks
    # What is uneven beyond the missing blocks is the blocks' own.
    of_blocks = max(1.0, work.imbalance * blocks / work.sms)
    possible = dealt.occupancy.theoretical_warps if dealt.occupancy is not None else None
    warps = _times_the_warps(work, possible or 1.0)
    fix = Fix(imbalance=of_blocks, warps=1.0 if blocks > ALMOST * work.sms else warps)
    yield _too_few(work, dealt, "block", blocks, "SMs", work.sms, fix)
    if of_blocks <= UNEVEN_BLOCKS:
        return
    yield Candidate(
        cause="workload_imbalance",
        variants=(Variant("equal shares", Fix(imbalance=work.sms / blocks)),),
        change=(
            f"Deal the work out evenly: the block with the most to do works {of_blocks:.1f} times "
            "as long as the average one."
        ),
        evidence=dealt.evidence,
    )


def cut_finer(work: Work, fix: Fix) -> Fix:
    """More warps for the same work: rounds of loops are dealt out, what stands in none each of them does anew."""
    if work.program is None:
        # Of code that was not counted, but has neither loop nor call, a thread does one thing already.
        lines = program(work.profile.source.instructions)
        calls = any(line.opcode == "CALL" for line in lines.sass)
        return fix if not lines.sass or lines.loops or calls else Fix()
    if fix.warps <= 1.0:
        return fix
    alone = np.array([not around for around in work.code.loops_around])
    return replace(fix, keep=np.where(alone, fix.warps, 1.0), resources=dict.fromkeys(BELOW_L1, 1.0))


def _too_few(
    work: Work, dealt: _Dealt, thing: str, have: float, places: str, there_are: float, fix: Fix
) -> Candidate:
    """Fewer blocks or warps than there is room for: the names and numbers of what is launched and of what waits."""
    # A launch takes its time, however little it does.
    least = SHORT / max(SHORT, work.duration or SHORT)
    way = Variant(f"{thing}s for all {places}", cut_finer(work, fix), bound=1.0 - least)
    return Candidate(
        cause="small_grid",
        variants=(way,),
        change=(
            f"Launch more {thing}s: {counted(round(have), thing)} leave{'s' if have == 1 else ''} "
            f"{there_are - have:,.0f} of {there_are:,.0f} {places} without work. {how_to_cut(work)}, or split the "
            f"longest dimension over several {thing}s and combine their results."
        ),
        evidence=(
            *over_time(work),
            *work.evidence(metrics.GRID_SIZE, metrics.SM_COUNT, metrics.WAVES_PER_SM, metrics.ACHIEVED_WARPS),
            *dealt.evidence,
        ),
    )


def _times_the_warps(work: Work, possible: float) -> float:
    """How many times the warps are resident if as many as are possible are; never fewer."""
    return max(1.0, possible / max(1.0, work.resident_warps or 1.0))


def _uneven_share(work: Work, dealt: _Dealt, even: float) -> Candidate:
    """The last wave does not fill the GPU, or some SMs get one block more than others: most of what is uneven."""
    wave = work.sms * dealt.per_sm or 1.0
    seen = _even_end(work)
    left = seen or 1.0
    # Some SMs work for a block longer still, were it one of as many warps as there are schedulers, or half of one.
    if owner_of(work.profile).editable:  # a library has tiles of other shapes
        finer = even * max(2.0, work.warps_of_block / WARPS_A_CYCLE["issue"])
        left = max(left, min(work.imbalance, float(np.ceil(finer)) / finer))
    # Blocks wait for as long each, however many share an SM: of smaller ones as many more are there at once.
    fewer = 1.0 if seen else left / work.imbalance
    return Candidate(
        cause="tail_effect",
        variants=(Variant("whole waves", Fix(imbalance=left, warps=fewer)),),
        change=(
            f"Avoid the partial last wave: {dealt.waves:.2f} waves leave {dealt.blocks % wave:.0f} blocks for a wave "
            f"of {wave:.0f}. Use smaller blocks, a grid that fills whole waves, or one wave of blocks that "
            "loop over the work."
            if dealt.waves > 1.0
            else f"Give each SM the same number of blocks: {dealt.blocks:,.0f} blocks are {even:.2f} for each of "
            f"{work.sms:.0f} SMs, so that some run {np.ceil(even):.0f} while the others wait. Launch a multiple of "
            f"{work.sms:.0f} blocks, or smaller ones."
        ),
        evidence=(
            *over_time(work),
            *work.evidence(metrics.WAVES_PER_SM, metrics.GRID_SIZE, metrics.SM_COUNT),
            *dealt.evidence,
        ),
    )


def _alike(work: Work, dealt: float) -> bool:
    """Whether all SMs execute as much, but for blocks that some have more: those that work longer wait longer.

    Where nobody counted what each executes, cycles tell as far as they differ by no more than those of equal blocks.
    """
    average, most = map(work.number, (metrics.SM_INSTRUCTIONS, metrics.SM_INSTRUCTIONS_MAX))
    if not average or most is None:
        return work.imbalance < SPREAD_OF_EQUALS
    return most / average < UNEVEN * dealt


def _unequal_blocks(work: Work, dealt: _Dealt) -> Iterator[Candidate]:
    """Blocks, or the warps within them, that take longer than others."""
    # Each instruction was executed a whole number of times by each block: nobody has more to do, memory answers some
    # later than others. Loops whose length differs from block to block, or depends on data, leave sums that seldom
    # divide by the blocks; those of lengths that grow by steps (a triangle) may, so what SMs execute must agree.
    alike = _alike(work, max(dealt.tail, work.shares))
    whole = (
        float(work.executed[work.executed % dealt.blocks == 0].sum()) >= NEARLY_ALL * work.total_executed > 0
    )
    if whole and alike:
        return
    imbalance, waves, tail, gap = work.imbalance, dealt.waves, dealt.tail, dealt.gap
    lives = (dealt.occupancy.block_cycles if dealt.occupancy is not None else None) or 0.0
    # Until all blocks have started, and the last ones end, an SM is not full either.
    missing = (1.0 - 1.0 / gap) * (work.duration or 0.0)
    warps = gap if not whole and lives > SHORT_BLOCK and gap > 1.15 and missing > SHORT else 1.0
    if waves > 1.0 and tail > 1.1:
        warps = max(1.0, warps / tail)
    if imbalance / UNEVEN < 1.0 and warps <= 1.0:
        return  # however even they end
    # An SM that a long block keeps is given fewer others, and may execute no more than those that end early.
    even = imbalance if alike and imbalance < SPREAD_OF_EQUALS else 1.0
    if (seen := _even_end(work)) is not None:
        even = seen
    if even > imbalance / UNEVEN and warps <= 1.0:
        return
    if even < imbalance / UNEVEN and dealt.per_sm and _lengths_loaded(work):
        # Pieces of what the data make long are as many as it takes to fill the SMs until the end.
        warps = max(warps, _times_the_warps(work, float(dealt.per_sm * work.warps_of_block)))
    # Of SMs that differ little nothing is promised. Warps without work, which leave at once, look like short ones where
    # no instruction was counted.
    of_the_warps, unseen = even > imbalance / UNEVEN, work.program is None
    yield Candidate(
        cause="workload_imbalance",
        variants=(Variant("equal shares", Fix(imbalance=even, warps=warps)),),
        change=(
            (
                f"Let the warps of an SM end together: {gap:.1f} times as many could be resident as are, for those "
                "that are done early leave their places empty."
                + (
                    f" A warp lives {lives:,.0f} of {work.active_average:,.0f} cycles."
                    if waves <= 1.0
                    else ""
                )
                if of_the_warps
                else f"Deal the work out evenly: the busiest SM works {imbalance:.2f} times as long as the average one"
                + (f", and {gap:.1f} times as many warps could be resident as are." if warps > 1.0 else ".")
            )
            + (
                " Take tiles whose number the SMs divide, or share out the steps of the last ones (stream-K)."
                if work.products.any() and not of_the_warps
                else " Split the long ones, or give each warp and block a smaller, equal share; or let blocks fetch "
                "work from a queue."
            )
            + (" Launch none that have nothing to do." if of_the_warps and unseen else "")
        ),
        evidence=(
            *over_time(work),
            *dealt.evidence,
            *work.evidence(metrics.ACHIEVED_OCCUPANCY, metrics.THEORETICAL_OCCUPANCY),
        ),
        least=0.03,
    )
