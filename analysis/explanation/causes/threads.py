"""How work meets the machine: the threads of a warp, the warps that an SM holds, and what a launch costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import gcd, prod

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import ANY_WARPS, LATENCY, SPECIFIC, Candidate, Variant, derived
from gemmprof.analysis.explanation.causes import grid, tensor
from gemmprof.analysis.explanation.causes.access import of_sums, same_traffic, vector
from gemmprof.analysis.explanation.causes.atomics import retries_of, swaps
from gemmprof.analysis.explanation.code import address_forms, flow, latency
from gemmprof.analysis.explanation.code.flow import BARRIER, Loop, program, reached, rings
from gemmprof.analysis.explanation.code.live import live_registers
from gemmprof.analysis.explanation.demands.distinct import (
    FLOATS,
    evaluations,
    neighbours_alike,
    ways_around,
)
from gemmprof.analysis.explanation.demands.footprint import arrays, looked_up_apart, rounds, serving
from gemmprof.analysis.explanation.demands.resources import FULL, L1_PASSES, TENSOR, WARPS_OF_A_BLOCK
from gemmprof.analysis.explanation.demands.time_model import Fix, held
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTOR, traffic
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, elected, share, tensor_copies
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.occupancy.calculator import in_words
from gemmprof.analysis.opcodes import Sass
from gemmprof.base.amounts import counted
from gemmprof.gpu.arch import LIMITS, WARP

MEET = ("SHFL", "REDUX", "MATCH", "VOTE", "VOTEU")  # the lanes of a warp exchange something
COPIES = frozenset({"MOV", "PRMT", "SEL"})  # what keeps a state as it is from round to round
# Of these a warp meets at a mask's lanes, one mask after the other.
GROUPS = frozenset({"COLLECTIVE", "EXCLUSIVE"})
VOTES = "RED"  # a barrier with this modifier tells all threads of a block what each of them found
ALMOST_ALONE = 1.5  # active threads of a warp, below which one does the work alone
MOST_LEAVE = 0.5  # threads with an effect, over those launched, up to which most have no work
ALL_WORK = 0.9  # threads with an effect, over those launched, from which on the rest is the rim of an array
MIXED = 0.1  # share of the divided warps that stay
SHORT_LAUNCH = 10_000.0  # nanoseconds above which a launch's overhead is no finding
MOSTLY_IDLE = 0.3  # share of the time without a working SM from which on it is


def branch_divergence(work: Work) -> Iterator[Candidate]:
    """32 active threads: what the threads of a warp do apart is done together.

    Fixed: each instruction runs ``active threads / 32`` times as often; sectors stay as they are. It saves no more than
    the missing threads' share of the warps' time. Threads that part anew in each round of a loop, by what they find
    there, no order of the work brings together, nor groups of lanes that exchange something in turn; those that leave a
    loop one by one lie apart in memory once an index puts those of like length side by side; those that walk on alone
    along what they look up share their walks. Those that leave a walk when its own results say so draw their next
    item meanwhile, if that brings more than fetching and storing items by few lanes at a time costs; where they do that
    already, none is missing. Where a warp has rows of few elements, several of them share it, with all that it does for
    a row. Where threads walk along one table
    until they have found their place, a search in halves takes as many steps as the table's length has binary digits.
    """
    if not work.total_executed:
        return
    executed = np.maximum(work.executed, 1.0)
    entry = float(work.threads[0] / executed[0]) or 32.0
    active = np.clip(work.threads / executed / entry, 0.0, 1.0)
    # What parts threads anew in each round, no order of them brings together.
    active = np.minimum(1.0, active / _apart_anew(work))
    # Sorted work leaves some warps mixed, and sorting it costs.
    keep = np.where(work.ran & (active < 0.97), MIXED + (1.0 - MIXED) * active, 1.0)
    atomics = work.where(lambda line: line.is_atomic)
    keep[atomics | retries_of(work, atomics)] = 1.0
    keep[elected(work) | _in_groups(work) | _drawn_in_turn(work)] = 1.0
    lost = work.executed * (1.0 - keep)
    ends, searched = _ends_of_rows(work), _in_halves(work)

    def mostly(rows: Mask) -> bool:
        return share(lost[rows].sum(), lost.sum()) > MOST_LEAVE

    # What one lane does for a row, of several rows as many lanes do at once.
    single = active * entry < ALMOST_ALONE
    of_rows = bool((lost[ends] > 0.0).any()) and mostly(ends | single)
    rows = _rows_in_a_warp(work, ends) if of_rows else None
    of_rows &= rows is not None or mostly(ends)
    alone = mostly(single) and not of_rows

    def waited_for(walks: Mapping[Loop, slice]) -> bool:
        """Whether it is mostly there that lanes wait for others of their warp."""
        rows = np.zeros_like(ends)
        for way in walks.values():
            rows[way] = True
        return not (alone or of_rows) and mostly(rows)

    walked, ended = _walked_on(work), _until_done(work)
    walked_on = waited_for(walked)
    walks = walked if walked_on else ended if waited_for(ended) else {}
    drawn = _refilled(work, keep, walks) if walks else None
    apart = float(lost.sum()) >= 0.02 * work.total_executed
    if searched is not None and searched.fix.keep is not None:
        lost = np.maximum(lost, work.executed * (1.0 - searched.fix.keep))
    elif not apart:
        return
    mean = float(work.threads.sum()) / work.total_executed
    resources = _of_as_many_lanes(work, keep)
    if not drawn and waited_for(_whole(work, partial(_left_one_by_one, work))):
        resources |= _through_an_index(work)
    packed = Fix(keep=keep, resources=resources)
    name = "threads of a warp on the same way"
    together = drawn or Variant(name, packed, most=work.within(keep), counted=BELOW_L1)
    ways = together if apart else None, searched, rows if apart else None
    most = share(lost @ active, lost.sum()) * entry
    yield Candidate(
        cause="branch_divergence",
        variants=tuple(way for way in ways if way is not None),
        change=(
            f"Share out among the threads what one of them does alone: where they part, {most:.1f} of {entry:.0f} are "
            "active."
            if alone
            else f"Give a row fewer lanes (4, 8 or 16, as long as rows are): where they part, for its last elements, "
            f"{most:.1f} of {entry:.0f} are active."
            if of_rows
            else f"Let a lane that is done draw its next item, or several lanes share a walk, a warp if it is long: "
            f"where some walk on, {most:.1f} of {entry:.0f} are active. Sorted by length they would have other "
            "neighbours, whose items lie elsewhere."
            if walked_on
            else "Let a thread that is done draw its next item from a counter (an atomic of the block or the warp), in "
            f"one loop over the rounds of all items, while others are still at theirs: where they part, {most:.1f} of "
            f"{entry:.0f} are active. How many rounds an item takes nothing tells before them, to sort by."
            if drawn
            else f"Let the threads of a warp take the same way: where they part, {most:.1f} of {entry:.0f} are active. "
            "Sort or regroup the work by its branch, or make both sides one computation."
        ),
        evidence=(
            derived("thread_inst_executed / inst_executed", mean, "thread"),
            *work.evidence(metrics.THREADS_PER_INSTRUCTION, metrics.UNIFORM_BRANCHES),
            derived("instructions executed for missing threads", share(lost.sum(), work.total_executed)),
        ),
        attributed=lost,
    )


def _drawn_in_turn(work: Work) -> Mask:
    """What threads do in a loop in which each draws its next item when it is done with one, whose number a counter
    tells, or the votes of those that are done: lanes are missing only where items end and there are no more.
    """
    code = work.code
    votes = work.where(lambda line: line.opcode in ("VOTE", "VOTEU"))
    counts = work.where(lambda line: line.is_atomic and bool(line.writes) and not swaps(line))
    for at in np.flatnonzero(work.where(lambda line: line.opcode in ("POPC", "UPOPC"))).tolist():
        counts[at] = votes[list(code.sources(at))].any()
    counts &= work.ran
    if not counts.any():
        return counts
    drawn = {loop for loop in code.loops if counts[list(_leaving(work, loop))].any()}
    return np.array([code.loop_of(at) in drawn for at in range(len(counts))])


def _of_as_many_lanes(work: Work, keep: Array) -> dict[str, float]:
    """What stays of what goes through L1 and past it where fewer warps have more lanes: no lane asks for less."""
    passes = dict.fromkeys(L1_PASSES, _passes_of_whole_warps(work, keep))
    return {**dict.fromkeys((*BELOW_L1, "l2_atomics"), 1.0), **passes}


# What a warp executes in each round where it draws items for several lanes at once: those that have none are led around
# and meet the others again, a vote counts them, and what is left is compared; and beside the item's own for each draw,
# to place a lane among those that draw.
ASKED = {"alu": 6.0, "cbu": 5.0, "xu": 1.0}
PLACED = 6.0
SOME_WAIT = (1, 2, 4, 8, 16)  # lanes without an item for which a warp draws the next ones


def _drawn(each: float, walk: float, item: float) -> tuple[float, float, bool]:
    """Rounds and draws of a warp for as many items as it has lanes, and whether it asks in each round who has none, by
    the fewest instructions: waiting for more lanes draws for more at once, and leaves more idle.

    Args:
        each: rounds of an item.
        walk, item: a warp's instructions of a round, and of what is done once for an item.
    """
    ways = []
    for waiting in SOME_WAIT:
        turns = each * WARP / (WARP - 0.5 * (waiting - 1))
        draws = max(1.0, min(turns, WARP / waiting))
        asking = sum(ASKED.values()) if waiting > 1 else 0.0
        ways.append((turns * (walk + asking) + draws * (item + PLACED), (turns, draws, waiting > 1)))
    return min(ways)[1]


def _refilled(work: Work, keep: Array, walks: Mapping[Loop, slice]) -> Variant:
    """Warps whose lanes draw new items while others are at theirs, as many as are resident at once.

    A round is one of all lanes then but for those that wait, until the last items end. Each time that some have waited
    long enough, what is done once for an item is done for these alone, and waited for. Lanes are at unrelated items:
    what neighbours share of a sector each of them asks for.
    """
    code, executed, mine = work.code, work.executed, work.ran & evaluations(work).by_thread
    at_once = work.sms * max(1.0, work.resident_warps or 1.0)
    keep, asked = keep.copy(), 0.0
    once, apart = np.zeros_like(mine), np.zeros_like(mine)
    for loop, way in walks.items():
        if any(loop.first in one and loop != one for one in walks):
            continue
        often = rounds(work, loop)
        entered = float(executed[loop.first]) / often
        around = [one for one in code.loops_around[loop.first] if one != loop]
        walk, here = code.within([loop]), code.within([min(around, key=len)]) if around else work.ran
        item = mine & here & ~walk
        each = float(work.threads[way.start]) / entered / WARP
        each += max(0.0, often - each) / max(1.0, entered / at_once)
        body, of_item = (float(executed[part].sum()) / entered for part in (walk, item))
        turns, draws, asks = _drawn(each, body / often, of_item)
        keep[walk] = turns / often
        keep[way] = np.minimum(1.0, turns * entered / max(1.0, float(executed[way.start])))
        keep[item] *= draws
        asked += turns * entered * asks
        once |= item
        apart |= mine & (walk | item)
    waits = np.maximum(
        1.0,
        latency.waits(work).get(flow.LONG, 0.0 * executed)
        * (work.warp_cycles or 0.0)
        / np.maximum(1.0, executed),
    )
    fix = Fix(
        keep=keep,
        latency=np.where(once & work.global_loads, np.maximum(1.0, latency.load_cycles(work) / waits), 1.0),
        resources={
            **_of_unrelated_items(work, apart),
            **dict.fromkeys(L1_PASSES, _passes_of_whole_warps(work, keep)),
            "l2_atomics": 1.0,
            "block_launch": min(1.0, at_once / work.launched_warps),
        },
        instructions={pipe: each * asked for pipe, each in ASKED.items()},
    )
    most = work.within(np.minimum(1.0, keep))
    return Variant("items drawn by lanes that are done", fix, most=most, counted=BELOW_L1)


def _of_unrelated_items(work: Work, apart: Mask) -> dict[str, float]:
    """What is asked below L1 where lanes are at unrelated items: what neighbours share of a sector each asks for."""
    loads, stores = work.global_loads, work.where(lambda line: line.is_store and not line.is_atomic)
    was, alone = work.global_sectors, work.threads * np.maximum(1.0, np.ceil(work.widths / SECTOR))
    more = np.where(apart, np.maximum(was, alone), was)
    flows = traffic(work)
    missed, written = (
        before * (share(more[some].sum(), was[some].sum()) or 1.0)
        for before, some in ((flows.missed, loads), (flows.written, stores))
    )
    return flows.factors(missed, written, dram_read=flows.dram_read)


def _through_an_index(work: Work) -> dict[str, float]:
    """The same where an index tells which items are neighbours: what lies side by side for threads as they are numbered
    is anywhere in memory then. Each names a line of its own, and what L2 does not hold until those beside it come DRAM
    delivers anew.
    """
    loads, stores = work.global_loads, work.where(lambda line: line.is_store and not line.is_atomic)
    own = np.zeros_like(loads)
    for at, one in address_forms.checked_forms(work).items():
        own[at] = one.confirmed and one.form.space == "global" and evaluations(work).by_thread[at]
    own &= loads | stores
    sectors = np.where(own, np.maximum(0.0, work.threads - work.global_sectors), 0.0)
    lines = np.where(own, np.maximum(0.0, work.threads - work.global_tags), 0.0)
    flows = traffic(work)
    missed = flows.missed + float(sectors[loads].sum())
    anew = 1.0 - min(1.0, share((work.profile.device.l2_bytes or 0) / SECTOR, flows.dram_read))
    return flows.factors(
        missed,
        flows.written + float(sectors[stores].sum()),
        dram_read=flows.dram_read + anew * float(sectors[loads].sum()),
        read_lines=1.0 + share(lines[loads].sum(), flows.lines_read),
        written_lines=1.0 + share(lines[stores].sum(), flows.lines_written),
    )


def _left_one_by_one(work: Work, loop: Loop) -> bool:
    """Whether some of the threads that enter a loop together leave it before others."""

    def active(at: int) -> float:
        return float(work.threads[at] / max(work.executed[at], 1.0))

    entered = [active(at) for at in work.code.predecessors[loop.first] if at < loop.first]
    return active(loop.last) < ALL_WORK * max(entered, default=0.0)


def _apart_anew(work: Work) -> Array:
    """Share of the threads on each instruction's way that turns which part a warp anew in each round of a loop leave:
    what such a turn goes by, a value of the round, is another one for the same threads in the next. Where loaded
    lengths tell whether there is a loop within, both can be one loop, in which threads differ by their sums alone.
    """
    code, found = work.code, evaluations(work)
    active = work.threads / np.maximum(work.executed, 1.0)
    left = np.ones(len(active))
    retried = retries_of(work, work.where(lambda line: line.is_atomic))
    walks = [loop for loop in code.loops if not retried[loop.first]]
    for first, last, turn in ways_around(work):
        around = sum(1 << number for number, loop in enumerate(code.loops) if turn in loop and last in loop)
        told = code.producers(turn, code.sass[turn].guard)
        anew = any(found.by_thread[one] and found.loops[one] & around for one in told)
        within = any(first <= loop.first and loop.last <= last for loop in walks)
        lengths = within and code.by_data[list(told)].any()
        if anew and not lengths and active[first] > 0.0 and not _waits(work, first, last, turn):
            left[first : last + 1] *= min(1.0, active[first] / active[turn])
    return left


def _waits(work: Work, first: int, last: int, turn: int) -> bool:
    """Whether a thread that is led around this way in one round is in the next ones, too, until its loop ends: what the
    turn goes by only the way itself changes, a state or a count of what it did.
    """
    code = work.code
    around = [loop for loop in code.loops if turn in loop and last in loop]
    if not around:
        return False
    loop = min(around, key=lambda one: one.last - one.first)

    def before(at: int) -> Iterable[int]:
        return [one for one in code.sources(at) if one in loop and not first <= at <= last]

    made = reached((at for at in code.producers(turn, code.sass[turn].guard) if at in loop), before)
    outside = {at for at in made if not first <= at <= last}
    if outside == made or any(code.sass[at].fetches or code.sass[at].opcode in MEET for at in outside):
        return False
    passed_on = rings({at: [one for one in code.sources(at) if one in outside] for at in outside})
    return all(code.sass[at].opcode in COPIES for ring in passed_on for at in ring)


def _in_groups(work: Work) -> Mask:
    """What the lanes of a warp do group after group, each of those that a mask names (with equal keys, say): they part
    to exchange something, which no order of the work spares them.
    """
    found, turns = np.zeros(len(work.sass), dtype=bool), False
    for at, line in enumerate(work.sass):
        turns |= line.opcode == "WARPSYNC" and not GROUPS.isdisjoint(line.modifiers)
        found[at] = turns
        turns &= line.opcode != "BSYNC"
    return found


def _ends_of_rows(work: Work) -> Mask:
    """What lanes are parted from by their number and a length that all of their warp have loaded: a row's end."""
    code, alike, found = work.code, neighbours_alike(work), evaluations(work)
    loaded = work.where(lambda line: line.fetches)
    counts = work.where(lambda line: line.instruction_class not in FLOATS)
    inside = np.zeros(len(loaded), dtype=bool)
    loops = [(loop.first, loop.last, loop.last) for loop in code.loops if work.executed[loop.last]]
    # The innermost turn around an instruction tells.
    for first, last, turn in sorted((*ways_around(work), *loops), key=lambda one: one[0] - one[1]):
        told = code.producers(turn, code.sass[turn].guard)
        if not found.by_thread[list(told)].any():
            continue
        made = list(reached(told, lambda at: () if loaded[at] else code.sources(at)))
        lengths = [at for at in made if loaded[at]]
        of_rows = bool(lengths) and counts[made].all() and (alike[lengths] == WARP).all()
        inside[first : last + 1] = of_rows
    return inside


def _leaving(work: Work, loop: Loop) -> set[int]:
    """What says that a thread leaves a loop, with all that this is made of."""
    code = work.code
    turns = (at for at in range(loop.first, loop.last + 1) if code.sass[at].is_branch and code.sass[at].guard)
    leaving = [at for at in turns if (to := code.target(at)) is None or to not in loop or at == loop.last]
    return code.made_of(one for at in leaving for one in code.producers(at, code.sass[at].guard))


def _until_done(work: Work) -> dict[Loop, slice]:
    """Loops that a thread leaves when what its rounds made of one another says so, a chain's end or a state that stays:
    nothing tells before how many they are. With what it does in them until then.
    """
    code = work.code

    def told_by_rounds(loop: Loop) -> bool:
        return any(
            code.sass[one].fetches or code.sass[one].instruction_class in FLOATS
            for one in _leaving(work, loop).intersection(code.carried(loop))
        )

    ways = (way for way in ways_around(work) if _waits(work, *way))
    found = {
        loop: slice(first, last + 1) for first, last, turn in ways if (loop := code.loop_of(turn)) is not None
    }
    return found | _whole(work, told_by_rounds)


def _walked_on(work: Work) -> dict[Loop, slice]:
    """What lanes do in loops that others of their warp have left, each on a way that its own loaded values tell: rounds
    that may change places, as nothing but the sums of all of them goes from one to the next.
    """
    code, led = work.code, np.zeros(len(work.sass), dtype=bool)
    led[[at for at, one in address_forms.checked_forms(work).items() if looked_up_apart(one.form)]] = True
    floats = work.where(lambda line: line.instruction_class in FLOATS)
    in_turn = code.in_order | code.one_after_another | work.where(lambda line: line.is_atomic)

    def walks(loop: Loop) -> bool:
        inside = slice(loop.first, loop.last + 1)
        if not _left_one_by_one(work, loop) or in_turn[inside].any():
            return False
        passed_on = code.carried(loop)
        used = (use for at in passed_on if floats[at] for use in code.readers[at] if use in loop)
        return bool(led[inside].any()) and {*passed_on}.issuperset(used)

    return _whole(work, walks)


def _whole(work: Work, wanted: Callable[[Loop], bool]) -> dict[Loop, slice]:
    """All that is done in the loops that ran and that this holds for."""
    found = (loop for loop in work.code.loops if work.ran[loop.first] and wanted(loop))
    return {loop: slice(loop.first, loop.last + 1) for loop in found}


def _rows_in_a_warp(work: Work, ends: Mask) -> Variant | None:
    """Several rows in a warp whose lanes walk along one of few elements: what it does for a row with all of its lanes
    (its length, the sum of what they found) it does for several at once. Not where other lanes do other work there.
    """
    active = share(work.threads[ends].sum(), work.executed[ends].sum())
    lanes = 2.0 ** np.ceil(np.log2(max(1.0, active)))
    each = work.whole_warps & ~ends & work.where(lambda line: line.space == "global") & work.ran
    if 2.0 * lanes > WARP or (neighbours_alike(work)[each] < WARP).any():
        return None
    keep = np.full(len(ends), MIXED + (1.0 - MIXED) * lanes / WARP)
    resources = {**dict.fromkeys((*BELOW_L1, "l2_atomics"), 1.0), "block_launch": lanes / WARP}
    rows = f"{WARP / lanes:.0f} rows"
    return Variant(
        f"{rows} a warp",
        Fix(keep=keep, resources=resources),
        change=f"Give a warp {rows}, {lanes:.0f} lanes each: of {WARP} along one row {active:.1f} have an element.",
    )


def _in_halves(work: Work) -> Variant | None:
    """A search in halves, or a look-up, in place of a walk along a table that all threads compare their own value with,
    entry by entry, until they leave it: in a loop, or in as many copies of its rounds.
    """
    code, ran, by_thread = work.code, work.ran, evaluations(work).by_thread
    one_place = work.where(lambda line: line.is_load) & ~by_thread
    walks: dict[tuple[object, Loop | None], list[int]] = {}
    compares = work.where(lambda line: line.opcode in ("ISETP", "FSETP", "DSETP"))
    for at in np.flatnonzero(ran & compares).tolist():
        sources = [code.producers(at, name) for name in work.sass[at].reads if name[0] == "R"]
        entries = [found for found in sources if found and all(one_place[one] for one in found)]
        keys = [found for found in sources if found and all(by_thread[one] for one in found)]
        loop = code.loop_of(at)
        if entries and keys and not any(loop is not None and one in loop for one in keys[0]):
            walks.setdefault((keys[0], loop), []).append(at)
    keep = np.ones(len(ran))
    for (_, loop), compared in walks.items():
        first, last = (loop.first, loop.last) if loop else (compared[0], compared[-1])
        uses = [use for at in compared for use in code.readers[at] if work.sass[use].opcode == "BRA"]
        behind = [to for use in uses if (to := code.target(use) or 0) > last]
        behind += [last + 1 for use in uses if loop and use == last]
        inside = np.zeros_like(ran)
        inside[first : last + 1] = ran[first : last + 1]
        entered = float(work.executed[first]) / (rounds(work, loop) if loop else 1.0)
        if not entered:
            continue
        length = float(work.executed[compared].sum()) / entered
        if len(behind) < max(1, len(compared) - 1) or length < 2.0:
            continue
        keep[inside] = np.minimum(keep[inside], (1.0 + np.log2(length)) / length)
        # Threads that left one after another meet again.
        for at in range(min(behind), len(keep)):
            if work.executed[at] <= entered:
                break
            keep[at] = entered / work.executed[at]
    if float((work.executed * (1.0 - keep)).sum()) < 0.02 * work.total_executed:
        return None
    return Variant(
        "a search in halves",
        Fix(keep=keep),
        most=work.within(keep),
        change=(
            "Search in halves, or look up: threads walk along one table and compare each entry with their own value "
            "until they find its place. Sort the table before, or make a table of all values, bits or hashes."
        ),
    )


def idle_threads(work: Work) -> Iterator[Candidate]:
    """Only threads that have work: a grid as large as the work, or a list of what is to be done.

    Fixed: threads whose number alone keeps them from every store, lanes of a warp or all of it, are not launched: what
    they execute is gone with their blocks, and the places that they hold on an SM go to those that work. Blocks of
    fewer threads than whole warps have are put together: as few warps as hold these threads issue. In Triton, where
    masked-off lanes execute what all do, only lanes that load anything; where tensor cores multiply that, no zeros,
    which fill shared memory, too. Where all threads of a block do the same, each takes one block's result; where all
    lanes do so value by value, they share out the rounds of the loop. Blocks (programs) of which a bound that each
    loads once (a length, a count) lets nothing be stored end as soon as they know it. Where a few lanes' vectors hold
    the row of a warp or block, several rows share it.
    """
    together = _whole_warps(work)
    if together is not None:
        yield together
        return
    if not work.total_executed or not work.executed[0]:
        return
    ways = _all_alike, _without_effect, _beyond_a_bound, _value_by_value
    if found := [one for way in ways if (one := way(work)) is not None]:
        several = (replace(way, change=way.change or one.change) for one in found for way in one.variants)
        yield replace(found[0], variants=tuple(several))
    else:
        yield from _short_rows(work)
        yield from _masked_off(work)


FILLED = 0.75  # share of the lanes of a block's warps that have threads, below which that is said
# What a warp asks for once, however many of its lanes have a thread. What these load and store is not less for it.
ONCE_A_WARP = ("issue", "fma", "fma_heavy", "alu", "fp64", "xu", "uniform", "lsu", "adu", "cbu", "mio")


def filled_lanes(work: Work) -> float:
    """Share of the lanes of a block's warps that have threads."""
    return share(work.profile.launch.threads_per_block, WARP * work.warps_of_block) or 1.0


def _whole_warps(work: Work) -> Candidate | None:
    """Blocks whose number of threads leaves lanes of their warps empty, put together."""
    filled, occupancy, launch = filled_lanes(work), grid.occupancy_of(work), work.profile.launch
    resident = work.resident_warps
    if filled >= FILLED or occupancy is None or not resident:
        return None
    # Registers are given out by the warp; what a block has for itself, as many blocks need together.
    threads = {"registers": WARP * work.warps_of_block}
    if work.shared_bytes:
        threads["shared_memory"] = launch.threads_per_block
    fit = min(
        work.most_warps * WARP,
        launch.blocks * launch.threads_per_block / work.sms,
        *(one.blocks * threads[one.resource] for one in occupancy.block_limits if one.resource in threads),
    )
    warps = fit / WARP / resident
    code = work.program is not None
    each = counted(launch.threads_per_block, "thread")
    fix = Fix(
        keep=np.full(len(work.instructions), filled) if code else None,
        resources={
            **dict.fromkeys(ONCE_A_WARP, filled),
            **dict.fromkeys((*BELOW_L1, "l2_atomics"), 1.0),
            **dict.fromkeys(L1_PASSES, _passes_of_whole_warps(work, filled)),
            "block_launch": min(1.0, launch.threads_per_block / WARP),
        },
        warps=warps if code else warps / filled,
    )
    return Candidate(
        cause="idle_threads",
        variants=(Variant("blocks of whole warps", fix),),
        change=(
            f"Fill the warps: blocks of {each} leave {100 * (1.0 - filled):.0f} % of their warps' lanes without work. "
            f"Give a block a multiple of {WARP} threads, 128 to 256 of them, and the grid fewer blocks."
        ),
        evidence=work.evidence(metrics.BLOCK_SIZE, metrics.GRID_SIZE, metrics.ACHIEVED_OCCUPANCY),
    )


def _all_alike(work: Work) -> Candidate | None:
    """Blocks in which nothing goes back to a thread's index: all their threads load, compute and store the same.

    Fixed: each thread has the result of a block, and as few blocks are launched; what lies beyond L1 stays.
    """
    threads, ran = work.profile.launch.threads_per_block, work.ran
    stores = work.where(lambda line: line.is_store and line.space == "global") & ran
    meets = work.where(lambda line: line.is_atomic or line.opcode in ("BAR", *MEET)) & ran
    if threads <= 1 or not stores.any() or meets.any() or evaluations(work).by_thread[ran].any():
        return None
    keep = np.full(len(ran), 1.0 / (work.warps_of_block * WARP))
    return Candidate(
        cause="idle_threads",
        variants=(Variant("a result a thread", Fix(keep=keep, resources={"block_launch": 1.0 / threads})),),
        change=(
            f"Give each thread a result of its own (blockIdx.x * blockDim.x + threadIdx.x), and launch 1 of {threads} "
            "blocks: all threads of a block load, compute and store the same now."
        ),
        evidence=work.evidence(metrics.BLOCK_SIZE, metrics.GRID_SIZE),
        attributed=np.where(ran, work.executed, 0.0),
    )


def _passes_of_whole_warps(work: Work, filled: Array | float) -> float:
    """What stays of L1's passes where warps are filled: a request of more lanes touches no more lines for each of them
    than now, and none of its own where they share lines.
    """
    if work.program is None:
        return 1.0
    passes, lanes = work.data_passes, np.maximum(work.threads, 1.0)
    return share(np.sum(passes * np.maximum(filled, np.minimum(1.0, passes / lanes))), passes.sum()) or 1.0


def _beyond_a_bound(work: Work) -> Candidate | None:
    """Blocks that compute what a bound keeps them from storing, which each loads once: tiles behind a sequence's end.

    What stores most often tells how many have work: of places below one bound the lowest are in all others' way.
    """
    code, found = work.code, evaluations(work)
    switched = work.table(metrics.THREADS_PREDICATED_BY_ADDRESS)
    ran, launched = work.ran, float(work.threads[0])
    effects = ran & work.where(lambda line: line.is_store or line.is_atomic)
    effects &= ~work.where(lambda line: line.space in ("shared", "local"))
    if switched is None or not effects.any() or not launched or tensor_copies(work).any():
        return None
    told = dict[tuple[int, int], frozenset[int]]()
    for at in np.flatnonzero(ran & work.where(lambda line: bool(line.guard))).tolist():
        begin = end = at
        if code.sass[at].opcode in ("BRA", "EXIT"):
            to = code.target(at) or len(effects)
            begin, end = min(at + 1, to), max(at, to - 1)
        governs = np.zeros_like(ran)
        governs[begin : end + 1] = effects[begin : end + 1]
        told[begin, end] = _loaded_for(work, code.producers(at, code.sass[at].guard))
        if told[begin, end] or not governs.any():
            continue
        if float(work.threads[governs].max()) < ALL_WORK * float(work.threads[at]):
            return None  # threads are kept from it by their number
    bounds = {bound for (begin, end), bound in told.items() if bound and effects[begin : end + 1].any()}
    if len(bounds) != 1:
        return None
    (bound,) = bounds
    once_a_block = ran & work.global_loads & ~found.by_thread & (np.array(found.loops) == 0)
    shares = switched / np.maximum(1.0, work.executed / work.executed[0]) / launched
    part, *others = sorted(set(shares[effects].tolist()), reverse=True)
    if work.barriers.any() or (ran & work.where(lambda line: line.opcode in MEET)).any():
        # All threads serve those that store, unless their whole block is beyond the bound: as many more blocks have
        # work as the lowest places store more often than the next.
        part += part - others[0] if others else ALL_WORK
    if not all(once_a_block[one] for one in bound) or part >= ALL_WORK:
        return None
    # A loop or a way around that the bound tells of leaves out already what it can.
    known = np.zeros_like(ran)
    for begin, end in (span for span, other in told.items() if other == bound and span[0] < span[1]):
        known[begin : end + 1] = True
    keep = np.where(known, 1.0, part)
    loads = ran & work.global_fetches
    # What the bound keeps from loading, too, has been left out of the traffic.
    behind = _made_of(work, bound)
    masked = np.array([bool(loads[at]) and _below(work, at, behind) for at in range(len(ran))])
    sectors, flows = work.global_sectors * loads, traffic(work)
    missed = flows.missed * share(sectors @ np.where(masked, 1.0, keep), sectors.sum())
    resources = flows.factors(missed, flows.written, dram_read=min(flows.dram_read, missed))
    name = f"blocks that have work: {100 * part:.0f} %"
    return Candidate(
        cause="idle_threads",
        variants=(Variant(name, Fix(keep=keep, resources=resources), plain=True),),
        change=(
            f"End a [block|program] at once where the bound that it loads lets nothing be stored: "
            f"{100 * (1.0 - part):.0f} % of what is computed is thrown away. Or launch a list of those that have work."
        ),
        evidence=(derived("threads that store / threads launched, at most", part),),
        attributed=np.where(effects | loads, work.executed, 0.0),
    )


def _loaded_for(work: Work, sources: Iterable[int]) -> frozenset[int]:
    """What was loaded, from wherever, that these are made of."""
    loaded = work.where(lambda line: line.fetches)
    made = reached(sources, lambda at: () if loaded[at] else work.code.sources(at))
    return frozenset(at for at in made if loaded[at])


def _made_of(work: Work, loaded: frozenset[int]) -> set[int]:
    """These loads and what is made of them, up to other loads."""
    loads = work.where(lambda line: line.fetches)
    return reached(loaded, lambda at: [use for use in work.code.readers[at] if not loads[use]])


def _below(work: Work, at: int, behind: set[int]) -> bool:
    """Whether a predicate that is made of a bound (`_made_of`) tells if an instruction loads anything."""
    names = [name for name in work.sass[at].reads if name[0] == "P"]
    return any(not behind.isdisjoint(work.code.producers(at, name)) for name in names)


def _with_effect(work: Work) -> tuple[float, float, float] | None:
    """Threads that store anything, as shares of those launched: at least, at most, and of a warp's lanes. None where it
    is nearly all lanes or half of the warps, or where it is the data that tell which.

    A thread whose number alone keeps it from every store and atomic, and from every exchange with those that come to
    one, need not be launched.
    """
    code, found = work.code, evaluations(work)
    switched = work.table(metrics.THREADS_PREDICATED_BY_ADDRESS)
    executed, launched = np.maximum(1.0, work.executed), float(work.threads[0])
    effects = work.ran & work.where(
        lambda line: (
            line.is_store
            or line.is_atomic
            or line.instruction_class == "tensor"
            or (line.opcode == "BAR" and VOTES in line.modifiers)
        )
    )
    if switched is None or not switched[effects].any() or not launched or tensor_copies(work).any():
        return None
    # Lanes that exchange among themselves alone have no part in what others store.
    meets = work.ran & work.where(lambda line: line.opcode in MEET)
    if _exchange_among(work.sass[at] for at in np.flatnonzero(meets)) > (switched / executed)[effects].min():
        effects |= meets
    telling = _who_comes_to(work, effects)
    if code.by_data[telling].any():
        return None
    # Other lanes in other rounds; what a warp's lanes have alike (a loop's end) tells none of them apart.
    in_turn = any(found.loops[at] and neighbours_alike(work)[at] < WARP for at in telling)
    rounds_of_all = 1.0 if in_turn else np.maximum(1.0, work.executed / work.executed[0])
    shares = switched / rounds_of_all / launched
    # What stands together in the code has the same threads; of others nobody knows.
    groups: dict[tuple[object, ...], float] = {}
    for at in map(int, np.flatnonzero(effects)):
        line = code.sass[at]
        group = code.block_starts[at], line.when, *(code.producers(at, line.guard) if line.guard else ())
        groups[group] = max(groups.get(group, 0.0), float(shares[at]))
    most = sum(groups.values())
    of_a_warp = float((switched / executed)[effects].max())
    lanes = min(1.0, of_a_warp * float(work.executed[0]) / launched)
    too_many = most > MOST_LEAVE if lanes == 1.0 else most >= ALL_WORK
    return None if too_many else (max(groups.values()), most, lanes)


def _who_comes_to(work: Work, effects: Mask) -> list[int]:
    """What makes the predicates that tell which threads come to one of these."""
    code, found = work.code, list[int]()
    for at, line in enumerate(code.sass):
        if not line.guard or not work.executed[at]:
            continue
        to = len(code.sass) if line.opcode == "EXIT" else at
        if line.opcode == "BRA":
            to = code.target(at) or at
        if effects[at] or effects[min(at + 1, to) : max(at, to)].any():
            found += code.producers(at, line.guard)
    return found


def _without_effect(work: Work) -> Candidate | None:
    """Threads that compute what nobody gets to see."""
    if (useful := _with_effect(work)) is None:
        return None
    least, at_most, lanes = useful
    together = bool(work.barriers.any())
    # The threads of one store may or may not be those of another.
    reach = least if together else at_most
    # What fewer warps come to than have an effect stays, however often their loops take them there.
    often = np.array([prod(rounds(work, loop) for loop in around) for around in work.code.loops_around])
    come = np.maximum(1.0, work.executed / often)
    keep = np.clip(reach * np.maximum(1.0, work.executed[0] / come), 0.0, 1.0)
    # The places that the others hold on an SM go to these.
    occupancy = grid.occupancy_of(work)
    possible = (occupancy.theoretical_warps if occupancy is not None else None) or 1.0
    held = min(possible, work.launched_warps * reach / work.sms)
    fix = Fix(
        keep=keep,
        resources={**dict.fromkeys(BELOW_L1, 1.0), "block_launch": 1.0 if together else reach},
        warps=min(1.0 / reach, max(1.0, held / max(1.0, work.resident_warps or held))),
    )
    name = f"{'blocks' if together else 'a grid'} of {100 * reach:.1f} % of the threads"
    # Lanes that leave others alone hold no place of a warp's.
    most = work.within(keep) if lanes < 1.0 else 1.0
    return Candidate(
        cause="idle_threads",
        variants=(Variant(name, fix, most=most),),
        change=(
            f"Launch the threads that have something to store: {100 * (1.0 - at_most):.0f} % never do, whatever "
            f"the data are. {'Use smaller blocks.' if together else 'Count only those in the grid.'}"
        ),
        evidence=(
            derived("threads that have work / threads launched, at most", reach),
            *work.evidence(metrics.GRID_SIZE, metrics.ACHIEVED_WARPS),
        ),
        attributed=np.where(work.where(lambda line: line.is_store), 0.0, work.executed),
    )


def _short_rows(work: Work) -> Iterator[Candidate]:
    """A row that some lanes' vectors hold, given to a warp or a block: most of what those execute they do alike, or to
    exchange one element each.

    What a row needs, its lanes do, several rows at a time, and warps need not meet; what each element needs stays.
    """
    ran = work.ran
    loads = work.global_loads & ran & evaluations(work).by_thread
    known = [one for one in arrays(work) if loads[list(one.rows)].any()]
    exchanges = ran & work.where(lambda line: line.opcode in ("SHFL", "REDUX"))
    unknown = loads.sum() > loads[[row for one in known for row in one.rows]].sum()
    if unknown or not known or not exchanges.any():
        return
    # Where the data tell which lanes have a sum, runs of any length share a warp, and no row does.
    stores = ran & work.where(lambda line: (line.is_store or line.is_atomic) and line.space != "shared")
    if work.code.by_data[_who_comes_to(work, stores)].any():
        return
    meets = ran & work.where(lambda line: line.opcode == "BAR" or line.space == "shared")
    if not meets.any() and _exchange_among(work.sass[at] for at in np.flatnonzero(exchanges)) < WARP:
        return  # a warp holds several rows
    threads = work.warps_of_block * WARP if meets.any() else WARP
    lengths = [one.block if meets.any() else one.warp for one in known]
    elements = max(lengths)
    # Rounds on more than the row in shared memory are on what its threads made of it, each of them something.
    looping = any(ran[loop.first] for loop in work.code.loops)
    if looping and work.shared_bytes > sum(
        length * one.width for one, length in zip(known, lengths, strict=True)
    ):
        return
    forms = {row: one.form for row, one in address_forms.checked_forms(work).items()}
    wanted = [
        length * one.width / max(one.width, min(_vector_of_a_row(forms[row], threads) for row in one.rows))
        for one, length in zip(known, lengths, strict=True)
    ]
    lanes = 2.0 ** np.ceil(np.log2(max(1.0, *wanted)))
    part = lanes / threads
    if lanes > WARP or 2.0 * part > 1.0:
        return
    # What is made of each element before lanes exchange anything stays.
    own = work.code.by_data & ~exchanges & ~of_sums(work) & work.where(lambda line: not line.space)
    keep = np.where(own, max(part, min(1.0, elements / threads)), part)
    met = set(np.flatnonzero(meets).tolist())
    keep[list(met | serving(work, met))] = 0.0
    launched = work.launched_warps * part / work.sms
    fix = Fix(
        keep=keep,
        resources={**same_traffic(work, keep), "block_launch": part},
        reasons={BARRIER: 0.0} if meets.any() else {},
        warps=min(1.0, launched / (work.resident_warps or launched)),
    )
    yield Candidate(
        cause="idle_threads",
        variants=(Variant(f"{lanes:.0f} lanes a row", fix),),
        change=(
            f"Give a row to {lanes:.0f} lanes, each of which takes a vector of it at once, and {1.0 / part:.0f} rows "
            f"to {'a block' if meets.any() else 'a warp'}: {threads} threads share one of {elements:.0f} elements now."
        ),
        evidence=(
            derived("elements of a row / threads that share it", elements / threads),
            *work.evidence(metrics.GRID_SIZE, metrics.stalled_per_issue("short_scoreboard")),
        ),
        attributed=np.where(exchanges | meets, work.executed, 0.0),
        rank=SPECIFIC if elements < threads else LATENCY,  # no lane is idle that has an element of its own
    )


def _exchange_among(lines: Iterable[Sass]) -> int:
    """Lanes of a warp, at most, one of which comes to know what another one has, by all of these."""
    flipped, most = 0, 1
    for line in lines:
        stride, bounds = line.operands[-2:] if line.opcode == "SHFL" else ("", "")
        if not bounds.startswith("0x"):
            return WARP
        if "BFLY" in line.modifiers and stride.startswith("0x"):
            flipped |= int(stride, 16)
        else:
            most = max(most, WARP - (int(bounds, 16) >> 8))
    return max(most, 1 << flipped.bit_count())


def _masked_off(work: Work) -> Iterator[Candidate]:
    """Lanes that a mask keeps from loading anything: Triton has no branch, they execute all that the others do. So do
    threads of torch's kernels to which a short row leaves nothing, when their block adds it up.

    Fixed: what is computed is in proportion to what is loaded; the bytes stay. Where tensor cores multiply what is
    loaded, their work is, with what brings it to them and the shared memory that holds it.
    """
    switched = work.table(metrics.THREADS_PREDICATED_BY_ADDRESS)
    loads, owner = work.ran & work.global_fetches, owner_of(work.profile).key
    if switched is None or owner not in ("triton", "torch"):
        return
    executing = work.threads
    if owner == "torch":
        switched, executing = executing, executing[0] * np.maximum(1.0, work.executed / work.executed[0])
        loads &= evaluations(work).by_thread
    width = work.widths * loads
    copies = loads & work.where(lambda line: line.opcode == "LDGSTS") & (width * work.threads > 0)
    if copies.any():
        # A mask lets them write zeros, which no predicate tells, but their sectors. Behind the last round none copies.
        filled = work.global_ideal[copies] * SECTOR / (work.threads * width)[copies]
        switched = np.where(copies, work.threads * min(1.0, float(filled.max())), switched)
    part = share(switched @ width, executing @ width)
    if not 0.0 < part < 1.0:
        return
    off = loads & (switched < executing)
    keep = np.full(len(loads), part) if owner == "torch" else _for_lanes_off(work, off, part)
    fix = Fix(keep=keep, resources=same_traffic(work, keep))
    if work.products.any():
        brought = loads | work.products | work.where(lambda line: line.opcode == "LDSM")
        keep = np.where(brought, part, 1.0)
        fix = Fix(
            keep=keep,
            resources={**same_traffic(work, keep), TENSOR: part, "l1_data": part},
            shared_bytes=-round((1.0 - part) * work.shared_bytes),
        )
    if owner == "torch" and part * work.warps_of_block <= 1.0:  # a row that a warp adds up alone
        fix = replace(fix, reasons={BARRIER: 0.0}, resources={**fix.resources, "block_launch": part})
    yield Candidate(
        cause="idle_threads",
        variants=(Variant(f"lanes for {100 * part:.0f} % of the elements", fix, plain=True),),
        change=(
            f"Fit BLOCK to the rows: masks keep {100 * (1.0 - part):.0f} % of the lanes from loading anything, but not "
            "from computing. Take a row in pieces that it fills (2048 and 256 for 2304), end loops where the row does, "
            "or give a program several rows."
        ),
        evidence=(derived("lanes that load / lanes that execute the loads", part),),
        attributed=np.where(loads, executing - switched, 0.0),
    )


def _for_lanes_off(work: Work, off: Mask, part: float) -> Array:
    """What stays of each instruction of a program of which a mask turns these loads off for all but a ``part`` of the
    lanes: as many rounds fewer where loops are around them all, but all that stands around those, and what sums up what
    they leave; elsewhere fewer lanes compute, but what is moved, and what warps exchange, is no less for it.
    """
    around = work.code.within(
        loop for at in np.flatnonzero(off).tolist() for loop in work.code.loops_around[at]
    )
    stays = ~around if around[off].all() else work.where(lambda line: bool(line.space))
    return np.where(stays, 1.0, part)


def _value_by_value(work: Work) -> Candidate | None:
    """Loops in which a block takes one value a round, its lanes all alike (scalars in Triton).

    Fixed: lanes share out the rounds, and fetch together. Not where all blocks walk over the same.
    """
    code, ran, found = work.code, work.ran, evaluations(work)
    stores = work.where(lambda line: line.is_store and line.space == "global") & ran
    alike = (neighbours_alike(work) >= WARP) | stores | ~ran
    inside = code.within(loop for loop in code.loops if alike[loop.first : loop.last + 1].all())
    loads = work.global_loads & ran & inside
    if 2.0 * float(work.executed[inside].sum()) < work.total_executed or found.alike[loads].all():
        return None
    of_block = not found.by_thread[inside & ran & ~stores].any()
    keep = np.where(inside, 1.0 / (work.warps_of_block * WARP if of_block else WARP), 1.0)
    return Candidate(
        cause="idle_threads",
        variants=(Variant("lanes share out the rounds", Fix(keep=keep), plain=True),),
        change=(
            "Let lanes share out the rounds of the loop[| (a tl.arange over a piece of it)]: all of them do the "
            "same now, value by value. What a round hands on to the next one a scan over the piece makes of its "
            "values[| (tl.associative_scan)]."
        ),
        evidence=(work.of_all("what all lanes do alike", work.executed[inside]),),
        attributed=np.where(inside, work.executed, 0.0),
    )


def _vector_of_a_row(form: address_forms.Form, threads: int) -> int:
    """Bytes of the widest access that rows of so many threads begin at a multiple of."""
    first = form.address.terms.get((), 0)
    apart = 0 if isinstance(first, int) else int(np.gcd.reduce(first[::threads] - first[0]))
    return vector(gcd(address_forms.row_granule(form), apart))


def low_occupancy(work: Work) -> Iterator[Candidate]:
    """The named occupancy limit lifted: as many warps as the next limit admits.

    Fixed: the latency is shared by more warps, but for waits that end no sooner: for constants, and for loads of which
    more are under way than DRAM answers; nothing else changes. A grid that gives each SM fewer warps than it could hold
    is a limit like registers or shared memory: of more warps, each does anew what stands in no loop. Registers are no
    fewer than are alive at once. What blocks that walk over the work only read in shared memory, the largest blocks
    share. Where an SM holds more of smaller blocks whose threads exchange nothing, blocks are cut.
    """
    occupancy, launch = grid.occupancy_of(work), work.profile.launch
    if occupancy is None or not occupancy.blocks_per_sm or not launch.threads_per_block:
        return
    each, most = work.warps_of_block, work.most_warps
    now = float(occupancy.blocks_per_sm * each)
    on_each = launch.blocks / work.sms
    resident = min(now, on_each * each)
    if on_each < grid.ALMOST:
        return
    if on_each < 0.9 * occupancy.blocks_per_sm:
        # Fewer blocks than would fit.
        if grid.handed_round(work):
            return
        how = (
            f"Launch more or larger blocks: {counted(launch.blocks, 'block')} of {counted(each, 'warp')} "
            f"{'gives' if launch.blocks == 1 else 'give'} an SM {resident:.0f} warps, where {now:.0f} would fit. "
            f"{grid.how_to_cut(work)}."
        )
        finer = grid.cut_finer(work, Fix(warps=now / resident))
        yield from _lifted(work, "the grid", resident, finer, how, ANY_WARPS)
        return
    limits = {limit.resource: float(limit.blocks) for limit in occupancy.block_limits}
    if not work.shared_bytes and limits.get("blocks") == limits.get("shared_memory"):
        del limits["shared_memory"]  # as many blocks as an SM holds anyway
    fit = occupancy.blocks_per_sm
    binding = [name for name, blocks in limits.items() if blocks <= fit and name != "warps"]
    others = [blocks for resource, blocks in limits.items() if resource not in binding]
    # Of a grid that walks over its work and only reads its shared memory meanwhile, the largest blocks would do.
    limit = LIMITS.get(work.profile.device.compute_capability)
    largest = limit.max_threads_per_block / WARP if limit is not None and _reads_a_table(work) else each
    then = min(min(others, default=fit) * each, most, on_each * largest)
    larger = "blocks" in binding and "registers" not in binding
    here = work.resident_warps or now
    launching = work.loads.get("block_launch")
    if launching is not None and launching.share >= FULL and here < grid.ALMOST * now:
        # Blocks end sooner than new ones come: what loops over the work in one wave is launched once.
        fits = then if larger else now
        how = (
            f"Let one wave of blocks loop over the work: {launch.blocks:,} are launched, each so short that an SM "
            f"works on {here:.0f} warps, where {fits:.0f} would fit."
        )
        fix = Fix(warps=fits / here, resources={"block_launch": min(1.0, fits / each / on_each)})
        yield from _lifted(work, "the launching of blocks", here, fix, how, LATENCY)
        return
    if not 0.0 < now < most or here > now / grid.ALMOST:
        return  # what fits no SM was never launched, what was counted there is more than fits: another launch's limits
    if "registers" in binding and (lines := work.profile.source.instructions):
        # With fewer than hold what is needed at once, values would go to local memory and back.
        ran = work.executed > 0 if work.program is not None else slice(None)
        alive = max(np.array(live_registers(work.program or program(lines)))[ran], default=0)
        then = min(then, held(work, min(0, int(alive) - (launch.registers_per_thread or 0)), 0))
    threads, smaller = _of_smaller_blocks(work)
    if smaller > max(now, then if binding else 0.0):
        how = (
            f"Use smaller blocks ({threads:,} threads in place of {launch.threads_per_block:,}): an SM holds "
            f"{now:.0f} warps in whole blocks, {smaller:.0f} in those."
        )
        # Of what each thread does nothing changes.
        fix, gone = Fix(warps=smaller / now), 1.0 - now / smaller
        yield from _lifted(work, "blocks cut", resident, fix, how, SPECIFIC, gone)
    elif binding:
        # Blocks that are larger, by what the limit on their number leaves empty or more, are fewer by as much.
        resources = {"block_launch": min(now / then, each / WARPS_OF_A_BLOCK)} if larger else {}
        # What shared memory no longer takes, L1 has for its lines.
        now_bytes, then_bytes = latency.l1_bytes(work), latency.l1_bytes(work, shared=8192.0)
        if "shared_memory" in binding and now_bytes and then_bytes:
            resources["l1_lines"] = now_bytes / then_bytes
        how = _how_to_lift(work, binding, now, most)
        fix = Fix(warps=then / now, resources=resources)
        tiles = "shared_memory" in binding and work.products.any() and owner_of(work.profile).key == "triton"
        if tiles and tensor.stages(work) <= tensor.STAGES:
            # Triton takes it for tiles of operands: of smaller ones there are more rounds, and each waits as long.
            fix = replace(fix, reasons=dict.fromkeys((flow.LONG, flow.SHORT, BARRIER), then / now))
        yield from _lifted(work, in_words(binding), resident, fix, how, SPECIFIC)


def _of_smaller_blocks(work: Work) -> tuple[int, float]:
    """The largest smaller block, of threads that exchange nothing, with which an SM holds most warps; and how many."""
    threads = work.profile.launch.threads_per_block
    meet = work.program is not None and (work.ran & work.where(lambda line: line.opcode == "BAR")).any()
    cuts = [cut for cut in (2, 4, 8) if not threads % (cut * WARP) and not work.shared_bytes and not meet]
    return max(
        ((threads // cut, held(work, 0, 0, cut)) for cut in cuts),
        key=lambda one: (one[1], one[0]),
        default=(threads, 0.0),
    )


def _reads_a_table(work: Work) -> bool:
    """Whether a grid of any size walks over the work, and blocks only read shared memory: larger ones would share."""
    if work.program is None:
        return False
    walked = {
        symbol.name
        for one in address_forms.checked_forms(work).values()
        for factors in one.form.address.terms
        if any(size.kind == "grid" for size in factors)
        for symbol in factors
        if symbol.kind == "trip"
    }
    inside = work.code.within(loop for loop in work.code.loops if loop.first in walked)
    shared = inside & work.ran & work.where(lambda line: line.space == "shared")
    return bool(shared.any()) and bool(work.where(lambda line: line.is_load)[shared].all())


def _lifted(
    work: Work, name: str, resident: float, fix: Fix, how: str, rank: int, most: float = 1.0
) -> Iterator[Candidate]:
    """A limit of the warps that an SM holds, without which it would hold as many more as this says."""
    if fix.warps < 1.1:
        return
    # More warps wait as long in all for constants, which come through one cache, and where DRAM answers no more loads,
    # unless warps meet, which load all at once and nothing in between.
    stay = [flow.NO_CONSTANT] + [flow.LONG] * (latency.enough_under_way(work) and not work.barriers.any())
    fix = replace(fix, reasons={**dict.fromkeys(stay, fix.warps), **fix.reasons})
    yield Candidate(
        cause="low_occupancy",
        variants=(Variant("the limit lifted", fix, most=most),),
        change=how,
        evidence=(
            *work.evidence(metrics.THEORETICAL_OCCUPANCY, metrics.ACHIEVED_OCCUPANCY),
            derived(f"warps an SM with {name} lifted", resident * fix.warps, "warp"),
            *work.evidence(metrics.BLOCK_LIMIT_REGISTERS, metrics.BLOCK_LIMIT_SHARED_MEMORY),
            *work.evidence(metrics.REGISTERS_PER_THREAD, metrics.SHARED_MEMORY_PER_BLOCK),
        ),
        rank=rank,
    )


def _how_to_lift(work: Work, binding: list[str], now: float, most: float) -> str:
    launch = work.profile.launch
    here = f"{now:.0f} of {most:.0f} warps fit an SM"
    if "shared_memory" in binding:
        if "registers" in binding:  # lifting one of the two alone would bring nothing
            return (
                f"Use fewer registers a thread ({launch.registers_per_thread} now) and less shared memory a block "
                f"({work.shared_bytes / 1024:.0f} KiB now), or a larger carve-out: because of both {here}."
            )
        larger = " Larger blocks could share it, which only read it at work." if _reads_a_table(work) else ""
        return f"Use less shared memory a block ({work.shared_bytes / 1024:.0f} KiB now): because of it {here}.{larger}"
    if "registers" in binding:
        return (
            f"Use fewer registers a thread ({launch.registers_per_thread} now): because of them {here}. Keep "
            "fewer values alive, or bound them with __launch_bounds__."
        )
    return (
        f"Use larger blocks ({counted(launch.threads_per_block, 'thread')} now): an SM holds a limited number, and "
        f"{here}."
    )


def launch_overhead(work: Work) -> Iterator[Candidate]:
    """One launch for many: what passes before the first and behind the last instruction is paid once.

    Fixed: the share of the time in which no SM works is gone, and so are the waits of a cold start: first
    instructions and constants, and loads that later blocks of the same launch would hide.
    """
    duration, code = work.duration, work.program is not None
    if duration is None or duration > SHORT_LAUNCH or work.profile.workload != "kernel":
        return
    if work.idle_start < MOSTLY_IDLE:
        return
    if work.number(metrics.ACTIVE_CYCLES_MAX) is None and work.profile.launch.blocks > 1:
        return  # the average SM's cycles do not tell when the busiest one works
    fix = Fix(
        idle=0.02,
        imbalance=1.0 if code else None,
        latency=np.full(len(work.instructions), 0.1) if code else None,
        reasons=dict.fromkeys((flow.NO_CONSTANT, flow.NO_INSTRUCTION, flow.BRANCH), 0.1),
    )
    yield Candidate(
        cause="launch_overhead",
        variants=(Variant("one launch for many", fix, change="Do more in one launch."),),
        least=0.1,
    )
