"""Waits at barriers: the meeting itself, or warps of a block that have far more to do than the others."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import ANY_WARPS, LATENCY, Candidate, Variant, derived
from gemmprof.analysis.explanation.code import flow
from gemmprof.analysis.explanation.code.address_forms import WIDEST, checked_forms, constant
from gemmprof.analysis.explanation.code.flow import reached
from gemmprof.analysis.explanation.code.live import live_registers, live_results
from gemmprof.analysis.explanation.code.sequences import compiled_by_triton
from gemmprof.analysis.explanation.demands.distinct import evaluations, neighbours_alike, results_of_a_lane
from gemmprof.analysis.explanation.demands.footprint import WORD, rounds, serving
from gemmprof.analysis.explanation.demands.resources import ALU, LSU, WARPS_OF_A_BLOCK
from gemmprof.analysis.explanation.demands.time_model import Fix, held
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, share, specialised
from gemmprof.analysis.opcodes import Sass
from gemmprof.base import amounts
from gemmprof.gpu.arch import REGISTERS_PER_SM, REGISTERS_PER_THREAD, WARP
from gemmprof.model import Evidence

# Of a block for each lane of a warp, but for those at its rim, up to which registers hold them.
MOST_VALUES = 32
STEP = 36  # instructions between two barriers up to which they may be a step of a reduction
# Instructions beside one for each shuffle where a warp stores its sum, and one reads them all.
EXCHANGE = 4.0
# Instructions for each value: its maximum and its mask; its comparison and the count.
A_ROUND, A_BIT = 3.0, 2.0
# For each shuffle of a sort: the smaller and the larger one, of which one is kept.
OF_AN_EXCHANGE = 2.0
REDUCING = re.compile("[FDH](ADD|MNMX|MUL)|V?I(ADD|MNMX)|LOP3")
# What hands on what lanes exchange, or chooses of it.
HANDS_ON = (
    "SHFL", "REDUX", "BAR", "STS", "LDS", "MOV", "IMAD.MOV", "PRMT", "SEL", "FSEL", "FSETP", "ISETP", "DSETP", "PLOP3",
)  # fmt: skip
SHUFFLES = 1.0  # shuffles for each barrier from which on a block reduces through them
SUMS_OF_A_WARP = 2.0  # lanes that store; more of them have columns of their own
IN_A_ROW = 8.0  # barriers of a warp up to which, outside loops, each has a reason of its own
# Cycles at one barrier beyond which it is the late warps' work, not the meeting, that costs.
LONG_WAIT = 1500.0


@dataclass(frozen=True, slots=True)
class _Waits:
    """What warps wait at the barriers of a block."""

    bars: Mask  # the barriers
    count: float  # how often warps execute one
    at: Array  # share of the warps' time by instruction
    part: float  # all of it
    of_state: float  # of the state that ncu counts it to, which wgmma and clusters share
    each: float  # cycles that a warp waits at one
    evidence: tuple[Evidence, ...]  # the same in numbers

    def leaving(self, stays: float) -> float:
        """Factor on the whole state when this share of the waits at barriers stays."""
        return 1.0 - (1.0 - stays) * share(self.part, self.of_state)


def barriers(work: Work) -> Iterator[Candidate]:
    """No wait at barriers (a reduction through shuffles, warps that need not meet).

    Fixed: the time that warps spend at barriers is gone. What it counts against is what the late warps do meanwhile. A
    row that a block reduces a warp takes, as long as registers hold its values. A block that sorts exchanges between
    different warps' values as now, and all others through shuffles. Where threads work with one another's values round
    by round, a warp does the block's work: values in registers, which have no addresses, a shuffle for each that
    another lane has, and what depends on no thread once for all values. In Triton, where warps reduce together what
    each has reduced, fewer warps have the program (`fewer_warps`), down to one that meets nobody.
    """
    found = _waits(work)
    if found is None:
        return
    if found.each > LONG_WAIT:
        # The meeting is not the cause, the last warp has far more to do than the others, or waits longer for what it
        # loads; but those with roles of their own wait for one another's turn.
        if not specialised(work):
            while_others_wait = np.maximum(work.attributed_total - work.samples[flow.BARRIER], 0.0)
            yield Candidate(
                cause="workload_imbalance",
                variants=(Variant("even warps", Fix(reasons={flow.BARRIER: found.leaving(0.05)})),),
                change=(
                    f"Warps wait {found.each:,.0f} cycles at each barrier for the last one of their block: share its "
                    "work out among them, or let blocks of fewer warps do it, down to one that meets nobody."
                ),
                evidence=found.evidence,
                attributed=np.where(found.bars, 0.0, while_others_wait),
                least=0.03,
                rank=LATENCY,  # what the late warps do meanwhile may have a name
            )
        return
    if float(work.executed[work.where(lambda line: line.opcode == "SHFL")].sum()) <= SHUFFLES * found.count:
        yield from _meetings(work, found)
    else:
        # The warps reduce by themselves, and meet to put their sums together.
        exchanges = work.where(lambda line: line.opcode == "SHFL" or line.space == "shared")
        steps = (exchanges | found.bars) & work.ran
        alone = fewer_warps(work) if compiled_by_triton(work) else _warp_for_row(work, found, steps)
        if alone is not None:
            yield Candidate(
                cause="barriers",
                variants=(alone,),
                evidence=found.evidence,
                attributed=found.at,
                least=0.03,
                rank=ANY_WARPS,  # the block's work is dealt out anew; what is wrong with it comes first
            )


def _waits(work: Work) -> _Waits | None:
    """The waits at barriers, None where they are few."""
    bars = work.barriers
    waits = work.samples.get(flow.BARRIER, np.zeros(len(bars)))
    whole, exchanged = float(waits.sum()), _exchanged(work)
    if max(whole, exchanged) < 0.03:
        return None
    # ncu counts the waits for wgmma's results and at a cluster's barrier to the same state.
    others = work.where(lambda line: line.opcode in ("WARPGROUP", "UCGABAR_WAIT"))
    waits = np.where(others, 0.0, waits)
    part, count = float(waits.sum()), float(work.executed[bars].sum())
    if (part < max(0.03, 0.5 * whole) and exchanged < 0.03) or not count:
        return None
    each = share(part * (work.warp_cycles or 0.0), count)
    numbers = (
        *work.evidence(metrics.stalled_per_issue("barrier")),
        derived("barriers executed by warps", count),
        derived("cycles waited per barrier", each, "cycle"),
        derived("barrier samples / all samples", part),
    )
    return _Waits(bars, count, waits, part, whole, each, numbers)


def _exchanged(work: Work) -> float:
    """Share of the warps' time in what Triton's warps reduce through, wherever it is sampled: lanes' exchanges, what is
    left in shared memory and read there. 0 where tensor cores multiply: operands go that way, too.
    """
    if not compiled_by_triton(work) or work.products.any() or not work.samples:
        return 0.0
    exchanges = work.where(lambda line: line.opcode in ("SHFL", "REDUX", "BAR") or line.space == "shared")
    return float(work.attributed_total[exchanges].sum())


def _meetings(work: Work, waits: _Waits) -> Iterator[Candidate]:
    """Fewer meetings: reductions through shuffles, one barrier a step elsewhere."""
    if by_warps := _sorted_by_warps(work, waits):
        yield Candidate(
            cause="barriers",
            variants=(by_warps,),
            evidence=waits.evidence,
            attributed=waits.at,
            least=0.03,
        )
        return
    steps, warps = _steps(work, waits.bars), work.warps_of_block
    reduces = share(work.executed[steps & waits.bars].sum(), waits.count) > 0.5
    # As many steps as the block's threads can be halved; the meeting before the first of them stays.
    halvings = np.log2(max(2.0, warps * WARP))
    # A warp shuffles its own lanes' values and stores one; a warp reads those, and shuffles them.
    shuffled = min(halvings, np.log2(WARP)) + max(0.0, halvings - np.log2(WARP)) / warps
    rounds = float(work.executed[steps & waits.bars].sum()) / halvings
    moved = steps & work.where(lambda line: line.space == "shared")
    keep = work.all_kept()
    keep[steps] = min(1.0, share((shuffled + EXCHANGE) * rounds, work.executed[steps & ~moved].sum()))
    keep[moved] = min(1.0, share(2.0 * rounds, work.executed[moved].sum()))
    met = min(1.0, 1.0 / halvings)
    keep[steps & waits.bars] = met
    # Where two a round, before and after a tile is used, become one: of one in all, or of a few in a row, none goes.
    others = share(work.executed[waits.bars & ~steps].sum(), work.launched_warps)
    rest = waits.bars & ~steps
    if others <= IN_A_ROW:
        rest &= work.code.within(work.code.loops)
    go = share(np.floor(others / 2.0), others) * share(
        work.executed[rest].sum(), others * work.launched_warps
    )
    keep[rest] = 1.0 - go
    # A shuffle's answer is waited for as long as that of shared memory.
    answers = work.attributed.get(flow.SHORT, np.zeros(len(keep)))
    waited = share(float(answers[steps].sum()) * (work.warp_cycles or 0.0), rounds)
    answered = min(1.0, share(shuffled * work.practice.shared_cycles, waited))
    latency = np.where(steps & ~waits.bars, answered / np.maximum(keep, 1e-9), 1.0)
    at_steps = share(waits.at[steps].sum(), waits.part)
    stays = met * at_steps + (1.0 - go) * (1.0 - at_steps)
    fix = Fix(
        keep=keep,
        latency=latency,
        reasons={flow.BARRIER: waits.leaving(stays), "membar": met if reduces else 1.0},
        resources=dict.fromkeys(BELOW_L1, 1.0),
        instructions={LSU: shuffled * rounds},
    )
    name = "shuffles within the warp" if reduces else "one barrier a step"
    rows = _warp_for_row(work, waits, steps) if reduces and not compiled_by_triton(work) else None
    # Of a scan each thread takes a result of its own, as of no other step.
    own = reduces and _scans(work, steps & work.ran, work.switched_on)
    alone = filter(None, (rows, None if own else _warp_for_block(work)))
    how = f"Meet less often: warps wait at barriers for {100 * waits.part:.0f} % of their time. " + (
        "Reduce or scan through shuffles within a warp, so that the block meets once or twice."
        if reduces
        else "Double buffer so that one barrier a step suffices, or use smaller blocks."
    )
    # Of meetings in no loop, each with a reason of its own, none is a second one.
    variants = (*([Variant(name, fix, change=how)] if reduces or go else ()), *alone)
    if not variants:
        return
    yield Candidate(
        cause="barriers",
        variants=variants,
        evidence=waits.evidence,
        attributed=waits.at + np.where(steps, work.attributed_total, 0.0),
        least=0.03,
    )


def _sorted_by_warps(work: Work, waits: _Waits) -> Variant | None:
    """A block that sorts its values between barriers (a bitonic network: k (k + 1) / 2 steps for 2**k values): those
    that a warp has itself its lanes exchange through shuffles. None where nothing is such a sort.

    Fixed: steps between values of different warps stay, and before each stretch of them all values are handed over. Of
    the others each is a shuffle of every value, and the choice of one of two.
    """
    exchanges = np.zeros_like(waits.bars)
    for step in _stretches(work, waits.bars):
        if _in_place([work.sass[at] for at in step]):
            exchanges[step[1:]] = True
    bars, moved = exchanges & waits.bars, exchanges & work.where(lambda line: line.space == "shared")
    reads, met = exchanges & work.where(_reads_shared), float(work.executed[bars].sum())
    words = share(float((work.switched_on * work.widths)[reads].sum()) / WORD, met)  # of a warp
    met /= work.launched_warps
    # What is exchanged in the first step may be stored, or in the last one read, before and behind all meetings; beside
    # those of the steps there may be one for each stretch; what is sorted may be records of some words.
    levels = float(math.floor((math.sqrt(8.0 * (met + 1.0) + 1.0) - 1.0) / 2.0))
    steps, own = levels * (levels + 1.0) / 2.0, 2.0**levels / work.warps_of_block
    # Of a reduction's steps there are fewer.
    if 2.0**levels < work.profile.launch.threads_per_block or not own <= words <= WIDEST / WORD * own:
        return None
    spans = np.arange(1.0, levels + 1.0)
    between = np.maximum(0.0, spans - math.log2(own))
    stays = float((between + (between > 0.0)).sum()) / steps
    often = float(np.minimum(spans, math.log2(WARP)).sum())  # others lie in registers of one lane
    shuffled = often * words / WARP * work.launched_warps
    keep = np.where(exchanges, stays, 1.0)
    # Neighbouring lanes have neighbouring words then.
    passes = np.where(moved, keep * np.minimum(work.executed, work.data_passes), work.data_passes)
    return Variant(
        "a warp's values in registers",
        Fix(
            keep=keep,
            latency=np.where(moved, (stays + often / steps) / stays if stays else 1.0, 1.0),
            reasons={
                flow.BARRIER: waits.leaving(1.0 - (1.0 - stays) * share(waits.at[bars].sum(), waits.part))
            },
            resources={
                **dict.fromkeys(BELOW_L1, 1.0),
                "l1_data": share(passes.sum(), work.data_passes.sum()),
            },
            instructions={LSU: shuffled, ALU: OF_AN_EXCHANGE * shuffled},
            passes=shuffled,
        ),
        change=(
            f"Let the lanes of a warp keep its {own:.0f} values in registers, and exchange them through shuffles; only "
            "steps between values of different warps need shared memory and a barrier."
        ),
    )


def _in_place(step: Sequence[Sass]) -> bool:
    """Whether what lies between two barriers exchanges words: it writes as much of shared memory as it reads there."""
    read, left = (
        sum(line.access_bytes for line in step if of(line)) for of in (_reads_shared, _writes_shared)
    )
    return read == left > 0 and not any(line.space in ("global", "local") for line in step)


def _warp_for_row(work: Work, waits: _Waits, steps: Mask) -> Variant | None:
    """A warp for the row of values that a block reduces now.

    What is done for each value stays, in full warps; what all threads do alike is done by one warp in place of all,
    the steps become shuffles, and nobody meets. Loads that stand in no loop are under way together then.
    """
    code, launch, warps = work.code, work.profile.launch, work.warps_of_block
    if warps == 1:
        return None
    ran, lanes, stores = work.ran, work.switched_on, work.where(_writes_shared)
    shuffles = steps & work.where(lambda line: line.opcode == "SHFL")
    met = WARP * float(work.executed[steps & waits.bars].sum())
    if shuffles.any():
        # A lane stores what its warp has summed up: others' own values are a sort, or a transpose.
        by_warps = SUMS_OF_A_WARP * float(work.executed[steps & stores].sum())
        # All lanes of a warp may store one value in one place.
        one_value = _of_places(work, neighbours_alike(work))
        whole = float((lanes / one_value)[steps & stores].sum()) > by_warps
        if whole or work.products.any():
            return None
    elif 2.0 * float(lanes[steps & work.where(_reads_shared)].sum()) > met:
        return None  # most threads read in every step: a sort, or a scan
    if _scans(work, steps & ran, lanes):
        return None
    loads = work.global_loads & ran & evaluations(work).by_thread
    if not loads.any():
        return None
    others, of_values = ran & ~steps, np.zeros_like(loads)
    places = np.flatnonzero(loads).tolist()
    of_values[list(reached(places, lambda at: [use for use in code.readers[at] if others[use]]))] = True
    # Each round of a loop may put a row together; others walk along one, and one warp does more of their rounds.
    meets = shuffles.any() & steps & work.barriers  # of a tree's steps nobody knows what else they do
    a_row = [loop for loop in code.loops if meets[loop.first : loop.last + 1].any()]
    for loop in code.loops:
        if of_values[loop.first : loop.last + 1].any() and loop not in a_row:
            of_values[loop.first : loop.last + 1] = True
    # Of one row, rounded up to whole warps.
    full = np.ceil(lanes / launch.blocks / WARP) * launch.blocks / np.maximum(work.executed, 1.0)
    keep = np.where(of_values, np.minimum(1.0, full), 1.0 / warps)
    if shuffles.any():
        keep[steps] = 0.0
        keep[shuffles] = 1.0 / warps
    else:
        shuffled = 2.0 * np.log2(WARP) * launch.blocks
        keep[steps] = min(1.0, share(shuffled, work.executed[steps].sum()))
    # What a thread left for the others its lane adds to its own.
    keep[waits.bars | (of_values & stores)] = 0.0
    alone = loads & np.array([code.loop_of(at) is None for at in range(len(loads))])
    together = np.where(alone, np.maximum(1.0, keep * warps), 1.0)
    words = int(work.widths[alone].sum()) // 4
    if (resident := _resident(work, (warps - 1) * words)) is None:
        return None
    return Variant(
        "a warp a row",
        Fix(
            keep=keep,
            latency=1.0 / together,
            reasons={flow.BARRIER: waits.leaving(0.0), "membar": 0.0},
            resources={**dict.fromkeys(BELOW_L1, 1.0), "block_launch": 1.0 / WARPS_OF_A_BLOCK},
            warps=min(1.0, resident),
        ),
        change=(
            f"Give the row that a block of {warps} warps works on to one warp: it reduces through shuffles, meets "
            f"nobody, and what all {warps} warps do alike is done once. Several such warps make a block."
        ),
        plain=True,
    )


def _of_places(work: Work, values: Array) -> Array:
    """The smallest of these numbers, of what each instruction's address is made of; 1 where it is of nothing."""
    made = map(work.code.of_place, range(len(work.sass)))
    return np.array([min((float(values[one]) for one in each), default=1.0) for each in made])


def _scans(work: Work, steps: Mask, lanes: Array) -> bool:
    """Whether each thread takes a result of its own from a block's steps: lanes shuffle upwards, or all read behind the
    steps where they have stored in them.
    """
    places = work.code.of_place
    stored = set[int]().union(*map(places, np.flatnonzero(steps & work.where(_writes_shared)).tolist()))
    last = int(np.flatnonzero(steps).max(initial=0))
    behind = work.where(_reads_shared) & work.ran & (lanes > SUMS_OF_A_WARP * work.executed)
    own = (places(at) for at in np.flatnonzero(behind).tolist() if at > last)
    return any(each and each <= stored for each in own) or bool(
        (steps & work.where(lambda line: line.full.startswith("SHFL.UP"))).any()
    )


def fewer_warps(work: Work) -> Variant | None:
    """Fewer warps for a program of Triton's whose warps hand one another what each has reduced (`_handed_over`), down
    to one; as few as have registers for what all hold now.

    What a thread holds it reduces before lanes do: each warp exchanges as often as now, and of one warp nothing passes
    through shared memory but what changes its layout. A thread has all values of those that go, side by side: their
    loads and sums wait at once. What all warps do alike fewer do; programs fill an SM as its registers and places for
    blocks allow, and start at the rate at which blocks do.
    """
    handed = _handed_over(work)
    if handed is None or work.products.any():
        return None
    moved, reduced = handed
    code, ran, warps, launch = work.code, work.ran, work.warps_of_block, work.profile.launch
    shuffles, shared = _reductions(work), work.where(lambda line: line.space == "shared")
    results = np.minimum(*(results_of_a_lane(work, way) for way in (True, False)))
    # Where a program leaves one result, what is made of what warps exchange is alike in all of them.
    leaves = work.where(lambda line: line.space == "global" and not line.is_load) & ran
    if (work.switched_on[leaves] <= SUMS_OF_A_WARP * work.executed[leaves]).all():
        exchanges = ran & (shuffles | shared | work.barriers)
        loads = np.flatnonzero(work.global_loads & ran).tolist()
        own = reached(loads, lambda at: [use for use in code.readers[at] if ran[use] and not exchanges[use]])
        behind = reached(
            np.flatnonzero(exchanges).tolist(), lambda at: [use for use in code.readers[at] if ran[use]]
        )
        results[list(behind - own)] = 1.0
    results[(shuffles & ~reduced) | (shared & ~moved)] = warps
    results[reduced | moved | work.barriers] = 1.0
    lives = np.array(live_registers(code))[ran]
    values = np.array(live_results(code, frozenset(np.flatnonzero(ran & (results > 1.0)).tolist())))[ran]
    most = REGISTERS_PER_THREAD - (launch.registers_per_thread or int(lives.max(initial=0)))
    counts = [1 << power for power in range((warps - 1).bit_length())]
    needed = {left: int((lives + (warps / left - 1.0) * values).max() - lives.max()) for left in counts}
    left = next((left for left, more in needed.items() if more <= most), None)
    if left is None:
        return None
    times = warps / left
    keep = np.maximum(1.0, results.clip(1.0, warps) / left) / times
    at_once = np.minimum(1.0, 1.0 / (times * keep))
    if left == 1:
        keep[moved | work.barriers] = 0.0
    wait = work.attributed.get(flow.WAIT, np.zeros(len(keep)))
    passes, starting = work.data_passes, work.loads.get("block_launch")
    resident = 1.0 / times  # as many programs
    if launch.registers_per_thread:
        there = min(held(work, needed[left], 0, warps // left), left * launch.blocks / work.sms)
        resident = share(there, held(work, 0, 0)) or resident
    return Variant(
        f"{amounts.counted(left, 'warp')} a program",
        Fix(
            keep=keep,
            latency=at_once,
            warps=resident,
            reasons={
                flow.BARRIER: 0.0 if left == 1 else 1.0 / times,
                flow.WAIT: share(wait @ (keep * at_once), wait @ keep) or 1.0,
            },
            resources={**dict.fromkeys(BELOW_L1, 1.0), "l1_data": share(passes @ keep, passes.sum())},
        ),
        change=(
            f"Try num_warps={left}: what is reduced or sorted across warps passes through shared memory and waits for "
            "all of them."
        ),
        bound=1.0 - (starting.share if starting is not None else 0.0),
        plain=True,
    )


def _handed_over(work: Work) -> tuple[Mask, Mask] | None:
    """What Triton's warps hand one another of what each has reduced, through shared memory, and the shuffles that
    reduce it; None where nothing is.

    Between two meetings lanes load what each warp left and reduce that; they leave the result, which all load behind
    the next meeting. What is loaded and not reduced at once changes its layout.
    """
    code, ran, sass = work.code, work.ran, work.sass
    shuffles, step = _reductions(work), np.cumsum(work.barriers)
    stores, loads = work.where(_writes_shared) & ran, work.where(_reads_shared) & ran
    if work.warps_of_block == 1 or not compiled_by_triton(work):
        return None

    def moved_on(at: int) -> list[int]:
        passing = (use for use in code.readers[at] if ran[use] and not sass[use].space)
        return [use for use in passing if shuffles[use] or sass[use].full.startswith(HANDS_ON)]

    def combined(at: int) -> bool:
        return bool(shuffles[list(reached([at], lambda one: () if shuffles[one] else moved_on(one)))].any())

    combining = step[[at for at in np.flatnonzero(loads).tolist() if combined(at)]]
    if not len(combining):
        return None
    left, taken = stores & np.isin(step, combining - 1), loads & np.isin(step, combining)
    moved = left | taken | (stores & np.isin(step, combining)) | (loads & np.isin(step, combining + 1))
    reduced = np.zeros_like(ran)
    for begin, onward in ((left, code.sources), (taken, code.readers.__getitem__)):

        def reducing(at: int, onward: Callable[[int], Iterable[int]] = onward) -> list[int]:
            return [one for one in onward(at) if ran[one] and _passes_on(sass[one])]

        reduced[list(reached(np.flatnonzero(begin).tolist(), reducing))] = True
    return moved, reduced & shuffles


def hand_over_sums(work: Work) -> bool:
    """Whether a lane of each warp leaves in shared memory what its warp has reduced, and no lane its own values."""
    stores = work.where(_writes_shared) & work.ran
    return float(work.switched_on[stores].sum()) <= SUMS_OF_A_WARP * float(work.executed[stores].sum())


def selected(work: Work) -> Variant | None:
    """The few values that a program keeps of those that it sorts, found without a sort: the largest, round by round, or
    the one of a rank, bit by bit, by counting what lies above it. None where most are kept, or little is a sort.

    Fixed: of the network's instructions as many stay as there are rounds for each value; meetings in proportion.
    """
    ran, blocks, readers = work.ran, work.profile.launch.blocks, work.code.readers
    reducing = _reducing(work)
    stores = work.where(lambda line: line.is_store and line.space == "global") & ran
    swaps = np.flatnonzero(work.where(lambda line: line.opcode == "SHFL") & ran & ~reducing).tolist()
    # What a reduction makes of all of them, each masked but that of the rank, is one.
    onward = list(reached(swaps, lambda at: () if reducing[at] else readers[at]))
    words, loads = np.maximum(1.0, work.widths / WORD), work.global_loads & ran
    of_program = [float((work.switched_on * words)[rows].sum()) / blocks for rows in (loads, stores)]
    several, kept = of_program[0], of_program[1] if stores[onward].any() else 1.0
    network = work.where(lambda line: line.space == "shared") | work.barriers
    network[onward] = True
    network &= ran & ~stores
    executed = float(work.executed[network].sum())
    by_bits = A_BIT * 8.0 * float(work.widths[loads].min(initial=WORD))
    left = several / WARP * blocks * (by_bits if kept == 1.0 else A_ROUND * kept)
    if not swaps or 2.0 * executed < work.total_executed or left >= executed:
        return None
    stays = left / executed
    keep = np.where(network, stays, 1.0)
    return Variant(
        "without a sort",
        Fix(
            keep=keep,
            reasons={flow.BARRIER: stays},
            resources={
                **dict.fromkeys(BELOW_L1, 1.0),
                "l1_data": share(work.data_passes @ keep, work.data_passes.sum()),
            },
        ),
        change=(
            f"Do not sort {several:,.0f} values for {kept:,.0f} of them: take the largest round by round "
            "(tl.max, then mask it), or find the one of a rank bit by bit, by counting what lies above (tl.sum)."
        ),
        plain=True,
    )


def _passes_on(line: Sass) -> bool:
    """Whether an instruction does no more with what lanes exchange than to reduce it, compare it, or hand it on."""
    return bool(REDUCING.match(line.opcode)) or line.full.startswith(HANDS_ON)


def _reducing(work: Work) -> Mask:
    """Shuffles whose values are added to, or compared with, a lane's own: of a sort, both stay."""
    shuffles = work.where(lambda line: line.opcode == "SHFL") & work.ran
    for at in np.flatnonzero(shuffles).tolist():
        shuffles[at] = any(REDUCING.match(work.sass[use].opcode) for use in work.code.readers[at])
    return shuffles


def _reductions(work: Work) -> Mask:
    """The same, and what reduces the values of a warp's lanes at once."""
    return _reducing(work) | (work.where(lambda line: line.opcode == "REDUX") & work.ran)


def _warp_for_block(work: Work) -> Variant | None:
    """A block's values in the registers of one warp, where its threads work them out of one another's step by step.

    Each lane has as many values as the block has warps; what is alike for them it does once, and waits once for all.
    Barriers and stores are gone, and what others have comes by a shuffle a word.
    """
    code, bars, lanes, passes = work.code, work.barriers, work.switched_on, work.data_passes
    stores, loads = work.where(_writes_shared) & work.ran, work.where(_reads_shared) & work.ran
    # What is worked out of another thread's, with nothing else read from memory in between.
    data = {at: code.producers(at, code.sass[at].operands[-1]) for at in np.flatnonzero(stores).tolist()}
    # What is only copied others have in registers, too.
    copied = [at for at, made in data.items() if made and loads[[*made]].all()]
    aside = float((lanes * work.widths / _turns(work))[copied].sum()) / work.profile.launch.blocks
    own = work.shared_bytes - aside
    values = own / min(WORD, float(work.widths[stores].min(initial=WORD))) / WARP
    if not bars.any() or not stores.any() or not 0 < int(values) <= MOST_VALUES:
        return None
    state = [at for at, made in data.items() if loads[list(code.made_of(made))].any()]
    resident = _resident(work, int(values))
    if resident is None or 2.0 * float(lanes[state].sum()) < float(lanes[stores].sum()):
        return None
    at_work = _at_work(work)
    ways = [(way, np.minimum(results_of_a_lane(work, way), at_work) / at_work) for way in (True, False)]
    side_by_side, keep = min(ways, key=lambda way: float(work.executed @ way[1]))
    # Registers have no addresses: nothing computes where values lie.
    keep[list(serving(work, {*np.flatnonzero(stores | loads).tolist()}))] = 0.0
    keep[bars | stores] = 0.0
    keep[loads] *= np.maximum(1.0, work.widths[loads] / WORD)
    # A lane has its neighbours' values, too: of what lies near its own place that at its ends is another's.
    forms = {at: one.form for at, one in checked_forms(work).items() if one.form.space == "shared"}
    array = {at: (one.base, one.offsets is not None and one.offsets.tobytes()) for at, one in forms.items()}
    for at, form in ((at, form) for at, form in forms.items() if loads[at]):
        its = (one for to, one in forms.items() if stores[to] and array[to] == array[at])
        near = min((abs(constant(form) - constant(one)) for one in its), default=np.inf)
        if side_by_side or not near:
            keep[at] *= min(1.0, near / (form.width * values))
    once = np.minimum(1.0, 1.0 / np.maximum(at_work * keep, 1e-9))
    waits = work.attributed.get(flow.WAIT, np.zeros(len(keep)))
    left = share(np.where(loads, work.executed, passes) @ keep, passes.sum())
    return Variant(
        "a warp in place of a block, values in registers",
        Fix(
            keep=keep,
            latency=once,
            reasons={flow.WAIT: share(waits @ (keep * once), waits @ keep), flow.BARRIER: 0.0, "membar": 0.0},
            resources={
                **dict.fromkeys(BELOW_L1, 1.0),
                **dict.fromkeys(("l1_data", "l1_writeback"), left),
                "block_launch": 1.0 / WARPS_OF_A_BLOCK,
            },
            warps=resident,
        ),
        change=(
            f"Let a warp work on what a block does now: {values:.0f} values a lane in registers, exchanged through "
            "shuffles, no barrier, and several such warps in a block."
        ),
    )


def _at_work(work: Work) -> Array:
    """Warps of a block that execute each instruction when its turn comes, on average: all, or those that have work."""
    at_work: Array = work.executed / work.profile.launch.blocks / _turns(work)
    return at_work.clip(1.0, work.warps_of_block)


def _turns(work: Work) -> Array:
    """Rounds of all loops around each instruction."""
    return np.array([math.prod(rounds(work, loop) for loop in around) for around in work.code.loops_around])


def _resident(work: Work, more: int) -> float | None:
    """Factor on an SM's warps where one does a block's work with more registers; None where none are left."""
    registers = max(1, (work.profile.launch.registers_per_thread or 1) + more)
    if registers > REGISTERS_PER_THREAD:
        return None
    most = min(work.most_warps, REGISTERS_PER_SM / WARP / registers, work.profile.launch.blocks / work.sms)
    return most / max(1.0, work.resident_warps or 1.0)


def _stretches(work: Work, bars: Mask) -> Iterator[list[int]]:
    """From each barrier to the next, the one behind it or that of a loop's next round."""
    places = np.flatnonzero(bars).tolist()
    yield from ([*range(first, last + 1)] for first, last in itertools.pairwise(places))
    for loop in work.code.loops:
        if mine := [at for at in places if at in loop]:
            yield [*range(mine[-1], loop.last + 1), *range(loop.first, mine[0] + 1)]


def _steps(work: Work, bars: Mask) -> Mask:
    """The steps of reductions and scans: short stretches between barriers that read and write shared memory only."""
    found = np.zeros_like(bars)
    for step in _stretches(work, bars):
        # A loop between two meetings (a search) does more than take another thread's value.
        between = {at for at in step if not bars[at]}
        whole = not any(between.issuperset(range(loop.first, loop.last + 1)) for loop in work.code.loops)
        if len(step) <= STEP + 1 and whole and not found[step[-1]] and _is_step(work, step):
            found[step] = True
    return found


def _is_step(work: Work, step: Sequence[int]) -> bool:
    lines = [work.sass[at] for at in step]
    read = [at for at in step if _reads_shared(work.sass[at])]
    left = sum(line.access_bytes for line in lines if _writes_shared(line))
    # A step reads one other thread's values beside its own, and leaves as many for the next one. What all threads read
    # alike is a pivot, and nothing that they combine.
    own, forms = {line.operands[0] for line in work.sass if _writes_shared(line)}, checked_forms(work)
    alike = {at for at in read if at in forms and forms[at].form.address.uniform}
    others = [at for at in read if at in alike or work.sass[at].operands[1] not in own]
    if not read or not left or sum(work.sass[at].access_bytes for at in others) > left:
        return False
    if others and alike.issuperset(others):
        return False
    # Nor are values combined that are only copied.
    stores = (at for at in step if _writes_shared(work.sass[at]))
    left_there = {one for at in stores for one in work.code.producers(at, work.sass[at].operands[-1])}
    if all(map(_reads_shared, (work.sass[one] for one in left_there))):
        return False
    return not any(
        line.space in ("global", "local") or line.opcode == "SHFL" or line.instruction_class == "tensor"
        for line in lines
    )


def _reads_shared(line: Sass) -> bool:
    return line.is_load and line.space == "shared"


def _writes_shared(line: Sass) -> bool:
    return line.is_store and line.space == "shared" and line.opcode != "LDGSTS"
