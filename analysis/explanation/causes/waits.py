"""Waits that nothing hides: for arithmetic, for memory, for instructions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import ANY_WARPS, LATENCY, Candidate, Variant, derived
from gemmprof.analysis.explanation.causes import tensor
from gemmprof.analysis.explanation.causes.grid import occupancy_of
from gemmprof.analysis.explanation.code import flow, latency
from gemmprof.analysis.explanation.code.address_forms import AFFINE, WIDEST, checked_forms
from gemmprof.analysis.explanation.code.divisions import factor
from gemmprof.analysis.explanation.code.flow import Loop, reached
from gemmprof.analysis.explanation.code.sequences import compiled_by_triton
from gemmprof.analysis.explanation.demands import distinct
from gemmprof.analysis.explanation.demands.footprint import AXES, WORD, rounds
from gemmprof.analysis.explanation.demands.resources import ALU, LSU, OF_AN_SM
from gemmprof.analysis.explanation.demands.time_model import LINK, Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTOR, traffic
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, share
from gemmprof.base import amounts
from gemmprof.gpu.arch import REGISTER_UNIT, REGISTERS_PER_SM, REGISTERS_PER_THREAD, WARP

CHAINS = 4.0  # independent chains of the fixed kernel for each one now
WGMMAS = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
SERIAL = 0.9  # waits for all wgmmas under way, for each wgmma, from which on they run in series
# What a value may pass between its load and its place in shared memory: conversions, no sums.
MOVED = ("SHF", "PRMT", "IMAD", "MOV", "LOP3", "F2F", "F2FP", "HADD2")
MOST_BITS = 64.0  # of a place: a list that is walked to its end leads no further
LEADING = ("IMAD", "LEA", "SHF", "IADD3", "VIADD", "LOP3", "MOV", "SEL")  # what makes a place of a number
# Share of a loop's instructions between a load and the store of its tile, from which on it is fetched ahead.
AHEAD = 0.35
# Code that runs often beyond this leaves the instruction caches next to the schedulers.
FULL_CACHE_BYTES = 24 * 1024
UNROLLED = (2, 4, 8, 16)  # rounds that ptxas takes at once, and a loop of single ones for the rest
COPIED = 4.0  # bytes of a thread that an asynchronous copy takes at least (cp.async, PTX ISA)
# Instructions that Triton 3.6 writes beside where a loop copies ahead, for 9.0: in each round (waits, places in the
# buffer, whether there is a round to copy), and for each load; of loops of one to eight loads.
OF_A_ROUND, OF_A_COPY = 24.0, 2.0


def instruction_latency(work: Work) -> Iterator[Candidate]:
    """Four independent chains of arithmetic.

    Fixed: a quarter of the waits for fixed latencies, special functions, conversions, shuffles and FP64
    stays; where each wgmma waits for the one before (`serial_wgmmas`), a quarter of those waits.
    """
    wait = work.samples.get(flow.WAIT)
    if wait is None or not work.warp_cycles:
        return
    arithmetic = work.where(lambda line: not line.space) & ~work.code.in_order
    # Where a thread stands is read once: nothing that more chains would divide.
    divided = arithmetic & work.where(lambda line: line.short_latency and not line.opcode.startswith("S2"))
    short = work.attributed.get(flow.SHORT, np.zeros(len(wait)))
    of_chains, waited = float(short[divided].sum()), float(wait.sum())
    cycles = waited * work.warp_cycles / max(1.0, work.total_executed)
    if waited + of_chains < 0.08:
        return
    # Instructions that wait for one of the two just before them make a chain; others wait for the pipe's turn. What
    # each round makes of the last one's result has no second chain.
    lines, chained = work.sass, ~work.code.in_order
    for index in np.flatnonzero(chained).tolist():
        read, before = set(lines[index].reads), lines[max(0, index - 2) : index]
        chained[index] = any(not other.space and not read.isdisjoint(other.writes) for other in before)
    in_chains = share(wait[chained].sum(), waited)
    of_shuffles = float(short[work.where(lambda line: line.opcode == "SHFL")].sum())
    of_scans = float(short[work.where(lambda line: line.full.startswith("SHFL.UP"))].sum())
    # Four chains of four-cycle instructions leave no cycle to wait.
    fix = Fix(
        reasons={flow.WAIT: 1.0 - in_chains},
        latency=np.where(divided, 1.0 / CHAINS, 1.0),
        resources=dict.fromkeys(work.loads, 1.0),
    )
    yield Candidate(
        cause="instruction_latency",
        variants=(Variant("four chains", fix, most=work.within(np.where(arithmetic, 0.0, 1.0))),),
        change=(
            "Let a thread take several neighbouring values and add them up first: each step of a scan through shuffles "
            "waits for the one before it, and lanes scan one sum for all of them then."
            if of_scans > 0.5 * (in_chains * waited + of_chains)
            else "Let a warp reduce several rows at once: each step of a reduction through shuffles waits for the one "
            "before it, those of another row do not."
            if of_shuffles > 0.5 * (in_chains * waited + of_chains)
            else "Give each thread several independent chains: several items at once, or separate accumulators of what "
            f"it sums up. Each instruction waits {cycles:.1f} cycles for the one before it."
        ),
        evidence=work.evidence(
            *map(metrics.stalled_per_issue, ("wait", "short_scoreboard")),
            metrics.CYCLES_PER_ISSUE,
            metrics.ISSUE_ACTIVE,
        ),
        attributed=work.attributed[flow.WAIT] + np.where(arithmetic, short, 0.0),
        least=0.03,
        rank=LATENCY,
    )


def serial_wgmmas(work: Work) -> Iterator[Candidate]:
    """Four independent chains of arithmetic: wgmmas that run one behind another.

    Fixed: of the waits for a wgmma's result before the next one starts a quarter stays, that of every fourth.
    """
    waits = work.samples.get(flow.BARRIER)
    if waits is None:
        return
    wgmmas = work.where(lambda line: line.opcode in WGMMAS)
    ends = work.where(lambda line: line.opcode == "WARPGROUP" and line.text.endswith("gsb0, 0x0"))
    count, ended = float(work.executed[wgmmas].sum()), float(work.executed[ends].sum())
    part, whole = float(waits[ends].sum()), float(waits.sum())
    if not count or ended < SERIAL * count or part < 0.05:
        return
    stays = {flow.BARRIER: 1.0 - (1.0 - 1.0 / CHAINS) * part / whole}
    fix = Fix(reasons=stays, resources=dict.fromkeys(work.loads, 1.0))
    yield Candidate(
        cause="instruction_latency",
        variants=(Variant("four chains", fix),),
        change=(
            f"Let wgmmas run one behind another: warps spend {100 * part:.0f} % of their time waiting for the one "
            "just started. Commit several as one group, keep a group in flight (warpgroup_wait<1>), and leave the "
            "accumulators alone between them: ptxas says where it puts them in series (warning C7510)."
        ),
        evidence=(
            derived("waits for all wgmmas / wgmmas", share(ended, count)),
            derived("barrier samples at WARPGROUP.DEPBAR / all samples", part),
            *work.evidence(metrics.BUSY["tensor"][0], metrics.stalled_per_issue("barrier")),
        ),
        attributed=np.where(ends, waits, 0.0),
        least=0.03,
        rank=LATENCY,
    )


def memory_latency(work: Work) -> Iterator[Candidate]:
    """Enough bytes in flight: loads of later rounds under way before the first is used.

    Fixed: of the waits for global, local and texture loads (atomics excluded) as much stays as there are loads under
    way now for each one then: as many as registers hold without costing the SM a warp, as there are rounds, and as it
    takes until the rest of its work keeps a warp as busy; no more of the time than the memory does not deliver in. Not
    where more are under way already than DRAM answers at its rate: they queue. In a loop of Triton's a variable carries
    the next round; further ones are copied to shared memory, with what each round does for that. Where they stand in no
    loop, as many fewer threads start. Where a block fills a tile, meets, uses it and meets again, several tiles take
    turns: no unit idles because all warps copy. Where they wait for the link to the host's memory: loads wait no longer
    than for the GPU's own. A search whose first step is the same for all threads begins from a table (`searches`): one
    look-up takes the place of as many steps as L1 holds starts for, and what L1 had not of these is not fetched.
    """
    waits = work.attributed.get(flow.LONG)
    if waits is None:
        return
    loads = work.where(lambda line: line.long_latency and not line.is_atomic) & ~work.code.chased
    part = float(waits[loads].sum())
    awaited, in_turn = _tile_loads(work, loads)
    # Where warps copy and compute in turn, they wait for more than the loads.
    if part < (0.03 if in_turn.any() else 0.1):
        return
    if latency.on_the_link(work):
        yield from_the_host(work, loads, waits)
        return
    if float(waits[awaited | in_turn].sum()) > 0.5 * part:
        yield _copied_in_turn(work, awaited, in_turn, waits)
        return
    if latency.enough_under_way(work):
        return
    now = latency.under_way(work, loads)
    each = share(part * (work.warp_cycles or 0.0), work.executed[loads].sum())
    alone = 2.0 * float(waits[loads & work.code.loops_of(np.flatnonzero(loads & (waits > 0)))].sum()) < part
    # Waits end with what the memory delivers meanwhile: no more loads are of use than come in that time.
    delivering = _delivering(work)
    of_use = max(1.0, share(part, delivering)) if delivering else np.inf
    ways = []
    for copied in (False, True) if not alone and _may_copy(work, loads) else (False,):
        # As many as there is room for, and no more than it takes until the rest of its work keeps a warp as busy.
        more = 1.0 + np.minimum(_ahead(work, loads, copied), share(part, _busy(work, loads)))
        rounds_ahead = math.ceil(share((np.minimum(more, of_use) * waits)[loads].sum(), part) - 1.0)
        if copied and rounds_ahead < 2:
            continue  # one round ahead a variable carries
        in_flight = share((np.minimum(more, of_use) * now * waits)[loads].sum(), part) or 1.0
        resources = dict.fromkeys(work.loads, 1.0)
        if alone:  # as many fewer threads take several elements each
            resources["block_launch"] = share((waits / more)[loads].sum(), part)
        fix = Fix(latency=np.where(loads, 1.0 / more, 1.0), resources=resources)
        ways.append(
            Variant(
                f"{in_flight:.0f} loads in flight{', copied' * copied}",
                _with_copies(work, loads, fix) if copied else fix,
                change=(
                    f"Have more loads in flight: warps spend {100 * part:.0f} % of their time waiting for loads, "
                    f"{each:.0f} cycles each. {_more_at_once(work, loads, alone, copied, rounds_ahead)}"
                ),
                bound=max(0.0, part - delivering),
                plain=True,
            )
        )
    under_way = share((now * waits)[loads].sum(), part) or 1.0
    yield Candidate(
        cause="memory_latency",
        variants=tuple(ways),
        evidence=(
            derived("long_scoreboard samples attributed on loads", part),
            derived("cycles waited per load", each, "cycle"),
            derived("loads of a warp under way at once, from the SASS", under_way),
            *work.evidence(metrics.stalled_per_issue("long_scoreboard"), metrics.ACHIEVED_WARPS),
            *work.evidence(metrics.BUSY["dram"][0]),
        ),
        attributed=np.where(loads, waits, 0.0),
        least=0.03,
        # Which elements a thread takes at once wider accesses say more plainly.
        rank=ANY_WARPS if alone else LATENCY,
    )


def searches(work: Work) -> Iterator[Candidate]:
    """Enough bytes in flight: a search's steps come one behind the other, and n searches a thread are n times fewer
    threads. So it begins from a table of starts, as large as L1 holds.

    Fixed: of its rounds stay one for the look-up and those between two starts, of the lane of a warp that has most; of
    what they fetch, what those behind the table do, over what those behind the places do that L1 holds now, each in a
    line of its own. These are waited for as long as L2 and DRAM take, the first ones as long as L1. Where a step leads
    to one of several places (an octree's has eight) the table takes the place of as many fewer.
    """
    size = latency.l1_bytes(work)
    if size is None:
        return
    keep, fetching, waited = work.all_kept(), np.ones(len(work.sass)), np.ones(len(work.sass))
    near, far, longest, bits = work.practice.l1_cycles, latency.load_cycles(work, hit=0.0), 0, 0.0
    for loop, loads in _searched(work):
        now = rounds(work, loop)
        each = max(1.0, math.log2(_ways_on(work, loop, loads)))
        # No more starts than there are places; by chance several lie between two, and a warp goes on for its last lane.
        most = math.floor(math.log2(size / WORD) / each)
        steps = min(most, round(now))
        between = 2.0 ** min(MOST_BITS, each * (now - min(most, now)))
        left = math.log2(1.0 + between + math.sqrt(2.0 * between * math.log(WARP))) / each
        missed = max(0.0, now - math.log2(size / latency.LINE / len(loads)) / each)
        keep[loop.first : loop.last + 1] = min(1.0, (1.0 + left) / now)
        fetching[loads] = max(0.0, now - steps) / max(1.0, missed)
        before, after = (
            near + share(some, of) * (far[loads] - near)
            for some, of in ((missed, now), (min(missed, left), 1.0 + left))
        )
        waited[loads] = after / before
        longest, bits = max(longest, round(now)), max(bits, each * steps)
    rows, part = keep < 1.0, work.within(keep)
    if not rows.any():
        return
    flows, sectors = traffic(work), np.where(work.global_loads, work.global_sectors, 0.0)
    missed = flows.missed * share(sectors @ np.minimum(1.0, fetching), sectors.sum())
    resources = flows.factors(missed, flows.written, dram_read=min(missed, flows.dram_read))
    yield Candidate(
        cause="memory_latency",
        variants=(
            Variant(
                f"a table of {2.0**bits:,.0f} starts",
                Fix(keep=keep, latency=waited, resources=resources),
                up_to=True,
                most=part,
                counted=(*OF_AN_SM, *BELOW_L1),
            ),
        ),
        change=(
            f"Begin the search from a table, by the first bits of what is sought: its {longest} steps come one "
            "behind the other, the first of them through the same few places for all threads. "
            f"{2.0**bits:,.0f} starts, which L1 holds, take the place of the first."
        ),
        evidence=(
            derived("steps of a search", longest),
            *work.evidence(metrics.stalled_per_issue("long_scoreboard"), metrics.GLOBAL_LOAD_HIT_RATE),
        ),
        attributed=np.where(rows, work.attributed_total, 0.0),
        least=0.03,
    )


def _ways_on(work: Work, loop: Loop, loads: Sequence[int]) -> float:
    """Places that a step may lead to from one: as far apart, in what loads take, lies what numbers in turn lead to."""
    code, found = work.code, dict.fromkeys(loads, 1.0)
    waiting, ways = [*loads], [1.0]
    while waiting:
        at = waiting.pop()
        for use in (use for use in code.readers[at] if use in loop):
            line = work.sass[use]
            if use in loads:
                ways.append(found[at] / line.access_bytes)
            elif use not in found and line.opcode in LEADING:
                found[use] = found[at] * factor(line)
                waiting.append(use)
    return max(one for one in ways if one < math.inf)


def _searched(work: Work) -> Iterator[tuple[Loop, list[int]]]:
    """Loops that do nothing but search, with their loads: the first round's place is the same for all threads."""
    alike = ~work.code.by_data & (distinct.neighbours_alike(work) >= WARP)
    for axis in range(len(AXES)):
        alike &= distinct.same_along(work, axis)
    return ((loop, loads) for loop, loads, starts in _led_on(work) if alike[[*starts]].all())


def _led_on(work: Work) -> Iterator[tuple[Loop, list[int], set[int]]]:
    """Loops that only go from place to place, with their loads, each of which finds its place in what the last round
    found, and what the first round begins with.
    """
    code = work.code
    for loop in code.loops:
        inside = [at for at in range(loop.first, loop.last + 1) if work.executed[at]]
        accesses = {at for at in inside if work.sass[at].space not in ("", "constant")}
        chased = all(code.chased[at] and code.loop_of(at) == loop for at in accesses)
        if not accesses or not chased:
            continue

        def this_round(at: int, loop: Loop = loop) -> list[int]:
            return [source for source in code.sources(at) if loop.first <= source < at]

        # Where one of a round's loads tells another's place, not the sought alone says the way.
        alone = all(accesses.isdisjoint(reached(code.of_place(at), this_round) - {at}) for at in accesses)
        handed = [code.producers(at, name) for at in inside for name in work.sass[at].reads]
        starts = {one for several in handed if any(two in loop for two in several) for one in several}
        starts = {one for one in starts if one not in loop and work.executed[one]}
        if alone:
            yield loop, [*accesses], starts


def chains(work: Work) -> Iterator[Candidate]:
    """Enough bytes in flight: links that each thread follows from a place of its own to the end, one load behind the
    other, although those that it comes through follow the same ones. So links are doubled: each round they lead twice
    as far.

    Fixed: of the rounds stays the binary logarithm, and one that changes nothing, each with a load of the link that a
    thread's own leads to, which it keeps, and a store; and a launch, or a meeting of those that have links in common.
    """
    keep, forms, longest, doubled = work.all_kept(), checked_forms(work), 0.0, 0.0
    for loop, loads, starts in _led_on(work):
        links = {forms[at].form.parameters for at in loads if at in forms}
        sources = ((at, work.sass[at]) for at in work.code.made_of(starts) | starts)
        before = [at for at, line in sources if line.is_load and line.space not in ("", "constant")]
        own = [forms[at].form for at in before if at in forms and forms[at].confirmed]
        follows = len(loads) == 1 and all(one.parameters in links and one.kind == AFFINE for one in own)
        now = rounds(work, loop)
        each = 2.0 * (1.0 + math.log2(max(2.0, now)))
        if follows and own and len(own) == len(before) and each < now:
            keep[loop.first : loop.last + 1] = each / now
            longest, doubled = max(longest, now), max(doubled, each / 2.0)
    if not longest:
        return
    yield Candidate(
        cause="memory_latency",
        variants=(Variant("links doubled", Fix(keep=keep), most=work.within(keep), up_to=True),),
        change=(
            "Double the links: let each place lead where the place leads that it leads to, "
            f"{doubled:.0f} times over, in shared memory if links stay there. Each thread follows up to {longest:.0f} "
            "of them to the end now, one load behind the other."
        ),
        evidence=(
            derived("links that a warp's longest way has", longest),
            *work.evidence(metrics.stalled_per_issue("long_scoreboard"), metrics.GLOBAL_LOAD_HIT_RATE),
        ),
        attributed=np.where(keep < 1.0, work.attributed_total, 0.0),
        least=0.03,
    )


def _delivering(work: Work) -> float:
    """Share of the time for which DRAM or L2 is busy with what loads fetch."""
    moved = traffic(work)
    parts = {
        "dram": share(moved.dram_read, moved.dram_read + moved.dram_written),
        "l2": share(moved.missed, moved.l2),
    }
    return max(
        (part * work.loads[key].share for key, part in parts.items() if key in work.loads), default=0.0
    )


def _more_at_once(work: Work, loads: Mask, alone: bool, copied: bool, ahead: int) -> str:
    """How to have more loads under way where warps wait so long at each; ``alone``: in no loop."""
    if alone:
        return (
            "Let a [thread|program] take several elements[| a thread (a larger BLOCK)], and load them all before it "
            "uses the first."
        )
    copies = ", prefetch the next iteration, or use asynchronous copies."
    further = copies if work.has("asynchronous copies") else ", or prefetch the next iteration."
    return (
        f"[Unroll so that several loads are issued before the first is used{further}|"
        f"{_stages_of_a_loop(work, loads, copied, ahead)}]"
    )


def _stages_of_a_loop(work: Work, loads: Mask, copied: bool, ahead: int) -> str:
    """How Triton's programmers have the loads of so many later rounds under way."""
    if work.products.any():
        stages = tensor.stages(work) + ahead
        return f"Have those of the next {amounts.counted(ahead, 'round')} under way: num_stages={stages:.0f}."
    if not copied:
        return "Load the next round's values before this one's work, in variables that the loop carries."
    stages = (1 + ahead) * max((_at_once(work, loop) for loop in _loops(work, loads)), default=1)
    return (
        f"Have those of the next {stages - 1} rounds under way: tl.range(..., num_stages={stages}) copies them through "
        "shared memory (num_stages of the kernel is for operands of tl.dot alone)."
    )


def _loops(work: Work, loads: Mask) -> list[Loop]:
    """The innermost loops around loads."""
    found = {work.code.loop_of(at) for at in np.flatnonzero(loads & work.ran).tolist()}
    return [loop for loop in work.code.loops if loop in found]


def _may_copy(work: Work, loads: Mask) -> bool:
    """Whether Triton copies what a loop loads to shared memory ahead where it is told to: narrower loads stay loads."""
    of_loops = loads & work.ran & work.code.within(work.code.loops)
    wide = float(work.widths[of_loops].min(initial=WIDEST)) >= COPIED
    return wide and compiled_by_triton(work) and not work.products.any() and work.has("asynchronous copies")


def _with_copies(work: Work, loads: Mask, fix: Fix) -> Fix:
    """The same with what each round of a loop of Triton's does beside where these loads are copied to shared memory
    ahead: warps wait for the copies and meet, before and after they take them; nothing of it is unrolled.
    """
    loops = _loops(work, loads)
    inside = loads & work.code.within(loops)
    turns = sum(float(work.executed[loop.first]) * _at_once(work, loop) for loop in loops)
    copies = float(work.executed[inside].sum())
    return replace(
        fix,
        instructions={ALU: OF_A_ROUND * turns + OF_A_COPY * copies, LSU: copies},
        passes=float(work.data_passes[inside].sum()),
        barriers=2.0 * turns if work.warps_of_block > 1 else 0.0,
    )


def _at_once(work: Work, loop: Loop) -> int:
    """Rounds of the source's loop in one of the code's: where several are taken at once, a loop of single ones is left
    behind for the last of them.
    """

    def read(one: Loop) -> Counter[str]:
        lines = work.sass[one.first : one.last + 1]
        return Counter(line.full for line in lines if line.is_load and line.space == "global")

    mine, found = read(loop), 1
    for other in work.code.loops:
        single = read(other)
        several = mine.total() // (single.total() or mine.total() + 1)
        if several in UNROLLED and mine == Counter({name: several * count for name, count in single.items()}):
            found = max(found, several)
    return found


def _busy(work: Work, loads: Mask) -> float:
    """Share of the warps' time that they do not wait for these loads, nor for one another or their turn."""
    unloaded = latency.unloaded(work)
    if unloaded is None:
        return 1.0
    return sum(
        float((values if reason != flow.LONG else values[~loads]).sum())
        for reason, values in unloaded.by_reason.items()
        if reason != flow.BARRIER
    )


def _ahead(work: Work, loads: Mask, copied: bool) -> Array:
    """Later rounds whose loads a thread's unused registers hold beside those of this one, for each load; in a loop of
    Triton's, whose variables carry the next one, unused shared memory where they are ``copied`` or operands of tensor
    cores.

    Unused is what it may have without costing the SM a warp. Where nothing goes round, other threads' work is the next
    round: as long as the grid fills the GPU with fewer threads.
    """
    code, launch = work.code, work.profile.launch
    occupancy = occupancy_of(work)
    there = (occupancy.theoretical_warps if occupancy is not None else None) or work.most_warps
    there = max(1.0, min(float(there), np.ceil(launch.blocks / work.sms) * work.warps_of_block))
    most = min(REGISTERS_PER_THREAD, REGISTERS_PER_SM / there // REGISTER_UNIT * REGISTER_UNIT / WARP)
    unused = max(0.0, most - (launch.registers_per_thread or most))
    groups: dict[Loop | None, list[int]] = {}
    for at in map(int, np.flatnonzero(loads & work.ran)):
        groups.setdefault(code.loop_of(at), []).append(at)
    found = np.zeros(len(loads))
    for loop, rows in groups.items():
        words = sum(max(1.0, work.sass[at].access_bytes / 4.0) for at in rows)
        rounds_left = (rounds(work, loop) if loop else max(1.0, launch.waves_per_sm or 1.0)) - 1.0
        room = unused / words
        if loop is not None and not copied and _may_copy(work, loads):  # further ones are copied
            room = min(room, 1.0 / _at_once(work, loop))
        found[rows] = min(room, rounds_left)
    return found


def from_the_host(work: Work, loads: Mask | None = None, waits: Array | None = None) -> Candidate:
    """Loads of the host's memory: neither more warps nor more loads in flight widen the link that they go through.
    Without them where nobody saw what warps wait for.
    """
    moved, fix, attributed = SECTOR * latency.host_sectors(work), Fix(resources={LINK: 0.0}), None
    evidence = work.evidence(metrics.L2_READ_HIT_RATE)
    if loads is not None and waits is not None:
        stays = latency.idle_share(work, waits, latency.load_cycles(work))
        fix, attributed = replace(fix, latency=np.where(loads, stays, 1.0)), np.where(loads, waits, 0.0)
        evidence = (derived("long_scoreboard samples attributed on loads", waits[loads].sum()), *evidence)
    return Candidate(
        cause="memory_latency",
        variants=(Variant("memory of the GPU", fix, plain=True),),
        change=(
            f"Read from the GPU's own memory: {amounts.traffic(moved)} come from the host's, through its link. Copy "
            "them before the launch (cudaMemcpyAsync, cudaMemPrefetchAsync of managed memory); the copy is not counted "
            "here, and pays where they are read more than once or while something else runs."
        ),
        evidence=(derived("bytes read from the host's memory", moved, "byte"), *evidence),
        attributed=attributed,
    )


def _tile_loads(work: Work, loads: Mask) -> tuple[Mask, Mask]:
    """Loads of a loop that fills a tile of shared memory, meets, and computes from it: those that are stored at once
    and awaited, and those of a tile that is filled and used in turn: warps meet before it is stored and behind. Of
    these registers may hold the next one already, to be stored a round later.
    """
    code, found, in_turn = work.code, np.zeros_like(loads), np.zeros_like(loads)
    for at in np.flatnonzero(loads & work.ran).tolist():
        if (loop := code.loop_of(at)) is None:
            continue
        uses = code.readers[at]
        moved = (on for use in uses if work.sass[use].opcode in MOVED for on in code.readers[use])
        stores = [use for use in (*uses, *moved) if use in loop and work.sass[use].opcode == "STS"]
        meetings = loop.first + np.flatnonzero(work.barriers[loop.first : loop.last + 1])
        if not len(meetings) or not stores:
            continue
        # A tile that is fetched ahead is stored behind the arithmetic of the one before.
        found[at] = 0 < min(stores) - at < AHEAD * len(loop)
        fillings = set((np.searchsorted(meetings, stores) % len(meetings)).tolist())
        in_turn[at] = len(meetings) >= 2 * len(fillings)
    return found, in_turn


def _copied_in_turn(work: Work, awaited: Mask, in_turn: Mask, waits: Array) -> Candidate:
    """Tiles that are loaded, stored and used in turn, where the next one could be under way meanwhile."""
    tiles = awaited | in_turn
    inside = work.code.loops_of(np.flatnonzero(tiles))
    part, whole = float(waits[tiles].sum()), float(work.attributed_total[inside].sum())
    # The wait goes on while the warps do everything else that the loop does.
    meanwhile = whole - part
    stays = max(0.1, 1.0 - meanwhile / part)
    # Warps no longer all copy, then all compute: what that left idle is not what any unit needs.
    apart = whole if in_turn.any() else 0.0
    variants, copies = [], work.has("asynchronous copies")
    turns = float(tensor.STAGES)
    if copies:
        left = max(0.0, 1.0 - (turns - 1.0) * meanwhile / part)
        copied = replace(_past_registers(work, tiles, left, turns), regular=apart)
        if compiled_by_triton(work):
            # Its warps take what they copied, and meet for it, already.
            copied = replace(copied, instructions=_with_copies(work, tiles, copied).instructions)
        variants.append(Variant(f"asynchronous copies, {turns:.0f} tiles in turn", copied))
    if awaited.any() or not variants:
        waited = np.where(awaited, stays, 1.0)
        fix = Fix(latency=waited, resources=dict.fromkeys(work.loads, 1.0), regular=apart)
        name = "two tiles in turn, the next in registers" if in_turn.any() else "the next tile in registers"
        # It is stored and read as now: gone are the waits for its loads, and for warps that still store theirs.
        met = work.attributed.get(flow.BARRIER, np.zeros(len(tiles)))
        bound = part + (float(met[inside].sum()) if in_turn.any() else 0.0)
        variants.append(Variant(name, fix, bound=bound))
    each = share(part * (work.warp_cycles or 0.0), work.executed[tiles].sum())
    return Candidate(
        cause="memory_latency",
        variants=tuple(replace(one, plain=True) for one in variants),
        change=(
            f"Fetch the next tile while this one is used: warps spend {100 * part:.0f} % of their time waiting for its "
            f"loads, {each:.0f} cycles each"
            + (", before they compute. [" if awaited.any() else ", and all store it before any computes. [")
            + (
                "Use asynchronous copies into a second buffer (cp.async, cuda::memcpy_async)"
                if copies
                else "Use a second buffer in shared memory"
            )
            + (", or load the next tile into registers ahead of the arithmetic." if awaited.any() else ".")
            + f"|Several take turns with tl.range(..., num_stages={turns:.0f}).]"
        ),
        evidence=(
            derived("long_scoreboard samples attributed on loads", part),
            derived("cycles waited per load", each, "cycle"),
            *work.evidence(*map(metrics.stalled_per_issue, ("long_scoreboard", "barrier"))),
            *work.evidence(metrics.ACHIEVED_WARPS),
        ),
        attributed=np.where(tiles, waits, 0.0),
        least=0.03,
        rank=LATENCY,
    )


def _past_registers(work: Work, tiles: Mask, left: float, turns: float) -> Fix:
    """Tiles copied from memory to shared memory without a stop in registers, several in turn.

    A copy passes L1's data stage once, as it is written; its stores are gone, each further tile takes shared memory.
    """
    passes, keep = work.data_passes, work.all_kept()
    for at in map(int, np.flatnonzero(tiles)):
        keep[[use for use in work.code.readers[at] if work.sass[use].opcode == "STS"]] = 0.0
    resources = dict.fromkeys(work.loads, 1.0)
    # Loads and stores that do something else in between (a conversion) cannot go past the registers, and only the
    # widest copies pass L1 by.
    if (moved := bool((keep == 0.0).any())) and float(work.widths[tiles].max()) >= WIDEST:
        kept = share(passes[~tiles].sum(), passes.sum())
        resources |= {"l1_data": kept, "l1_writeback": kept}
    return Fix(
        keep=keep,
        latency=np.where(tiles, left, 1.0),
        resources=resources,
        shared_bytes=int(turns - 1.0) * work.shared_bytes if moved else 0,
    )


def instruction_cache(work: Work) -> Iterator[Candidate]:
    """Code that fits the instruction cache.

    Fixed: a tenth of the waits for instructions stays, and of those for the constants that they name, which a loop
    loads instead. Only where the code that runs often is larger than the caches next to the schedulers; the first
    instructions of a short kernel always come from far.
    """
    reasons = [reason for reason in (flow.NO_INSTRUCTION, flow.NO_CONSTANT) if reason in work.samples]
    waits = sum((work.samples[reason] for reason in reasons), start=np.zeros(len(work.executed)))
    if (part := float(waits.sum())) < 0.05:
        return
    if (hot := work.hot_bytes) < FULL_CACHE_BYTES:
        return
    yield Candidate(
        cause="instruction_cache",
        variants=(Variant("smaller code", Fix(reasons=dict.fromkeys(reasons, 0.1))),),
        change=(
            f"Make the hot code smaller: {hot / 1024:.0f} KiB run often, more than the instruction cache "
            "holds. Unroll less, or call a function instead of inlining it many times."
        ),
        evidence=(
            *work.evidence(*map(metrics.stalled_per_issue, reasons)),
            derived("bytes of code that run often", hot, "byte"),
            derived(f"{' + '.join(reasons)} samples / all samples", part),
        ),
        attributed=waits,
    )
