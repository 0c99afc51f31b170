"""Global memory: requests that waste sectors, and narrow requests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import LATENCY, SPECIFIC, Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.atomics import retries_of
from gemmprof.analysis.explanation.code import latency
from gemmprof.analysis.explanation.code.address_forms import (
    LINE,
    LOOK_UP,
    UNIFORM,
    UNKNOWN,
    Form,
    aligned,
    checked_forms,
    constant,
    one_behind_another,
    record,
    touched,
    warps_of,
)
from gemmprof.analysis.explanation.code.flow import LONG, Loop, reached
from gemmprof.analysis.explanation.code.live import live_results
from gemmprof.analysis.explanation.code.sequences import compiled_by_triton
from gemmprof.analysis.explanation.demands.distinct import (
    evaluations,
    neighbours_alike,
    same_by_axis,
    shared_by_neighbours,
)
from gemmprof.analysis.explanation.demands.footprint import (
    WORD,
    Reuse,
    arrays,
    computing,
    looked_up_apart,
    places_of_a_thread,
    rounds,
)
from gemmprof.analysis.explanation.demands.resources import L1_PASSES, OF_AN_SM, TRAFFIC
from gemmprof.analysis.explanation.demands.time_model import SHARPNESS, Fix, registers_of
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTOR, Traffic, stalled_by, traffic
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, once, share
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.gpu.arch import WARP

WIDE = 16
"""Bytes of the widest access of a thread."""
GAPLESS = 0.8
"""Share of a warp's bytes, from its first to its last, from which on nothing is left out on purpose."""
MISALIGNED_SECTORS = 1.05
"""A request that starts off a sector's border touches one sector more than its bytes fill: no lack of coalescing."""
COMPUTING = ("issue", "fma", "fma_heavy", "alu", "fp64", "xu", "tensor")
"""Units that no address is moved by."""
COALESCED = "neighbouring threads at neighbouring addresses"
APART = 1.9
"""Sectors over what the bytes fill, from which on lanes lie apart: every second word. What touches fewer are rows that
begin off a border, as those of a tile with its rim do.
"""
LOOK_UP_CYCLES = {1: 7.9, 2: 7.9, 4: 7.9, 8: 10.1, 16: 17.1}
"""Cycles that L1's data stage takes for 32 look-ups at random of so many bytes (H200, a table of 0.4 MB)."""
HELD_UP = 0.01  # of the time, from which on it is said that stores hold their warps up: as digits are shown
OF_ONE = 0.75  # of the sectors that are touched, those that DRAM moves, from which on none is touched twice
RUN = 4
OF_A_RUN = RUN / (1.0 + (RUN - 1.0) * WORD / SECTOR)
"""Words side by side, and how many of them lie in each sector that they touch, wherever they begin: for fewer, no lanes
share a place.
"""
SCATTERED = 2.0  # sectors of a look-up over what its bytes fill, from which on it is one of many places
SELDOM = 0.2  # of a warp's accesses, those that begin off a border although the array begins at one (a row's first)
BEYOND = 1.5  # of what a block's threads touch together, from which on a loop's round goes to another row
SHARED_BY_TWO = WARP / 2  # sectors of a load, up to which each is of two lanes or more
LANES = (8, 16, WARP)
"""Lanes that share a row: those that fill a sector of four-byte values, and more, up to all."""
NO_LOADS = 1e-6  # share of loads that stays where none does, for what takes their place
REDUNDANT = 1.6
"""Sectors asked of L1 for each that L1 fetched, from which on loads are called redundant."""


def uncoalesced_access(work: Work) -> Iterator[Candidate]:
    """Each request in the fewest sectors that its bytes need.

    Fixed: sectors, tag lookups and L1 passes of the wasteful requests fall to the ideal; L2 and DRAM carry no more than
    what is asked for then, and what DRAM delivers beyond what is allocated shrinks with what L1 fetches; loads wait for
    one line instead of many, those of a thread's neighbouring pieces together. Where such stores hold their warps
    behind the work, the sectors' share of that time is gone, too. Where lanes look up the same index in several arrays
    or planes, one record holds all that is wanted there, and its sector is fetched in place of one an array; more of
    them where places lie side by side. Lanes that each look up in a row of their own, or walk along it by vectors,
    lie along one row instead. Where a thread looks up several pieces in one place, as many lanes do as lie together: a
    request touches the lines of fewer places.
    """
    ways = as_records(work), in_patches(work)
    wasteful, others = _wasteful(work), [one for one in ways if one is not None]
    if not wasteful.any():
        yield from others or _along_their_rows(work)
        return
    excess = work.global_sectors - work.global_ideal
    requests = np.maximum(work.executed, 1.0)[wasteful].sum()
    ideal = work.global_ideal[wasteful].sum() / requests
    tags = np.minimum(work.global_tags, np.maximum(work.global_ideal / 4.0, work.executed))
    sectors = np.where(wasteful, work.global_ideal, work.global_sectors)
    factors = _coalesced_traffic(work, sectors, np.where(wasteful, tags, work.global_tags))
    stores = wasteful & work.where(lambda line: line.is_store)
    burst = stalled_by(work, stores)
    # So much less has the queue to take.
    gone = burst.in_time * (1.0 - _left(work.global_ideal, work.global_sectors, stores)) if burst else 0.0
    fetched = factors["l2_to_l1"] * traffic(work).missed if piece_by_piece(work) else 0.0
    waits = _coalesced_waits(work, wasteful, share(fetched, sectors[work.global_loads].sum()))
    lost = [np.where(wasteful, excess, 0.0), *(one.attributed for one in others)]
    stalled = "time that warps are stalled by these stores / time"
    regular = _of_the_rest(work) * share(work.global_sectors[wasteful].sum(), work.global_sectors.sum())
    yield Candidate(
        cause="uncoalesced_access",
        variants=(
            Variant(
                COALESCED,
                Fix(resources=factors, latency=waits, stalled=gone, regular=regular),
                most=work.within(np.where(wasteful, 0.0, waits)),
                up_to=_of_nobody_else(work),
            ),
            *_turned(work, wasteful),
            *(variant for one in others for variant in one.variants),
        ),
        change=_how_to_coalesce(work, wasteful, exchanged=gone > 0),
        evidence=(
            *((derived(stalled, burst.in_time),) if burst and burst.in_time >= HELD_UP else ()),
            derived("sectors per request", work.global_sectors[wasteful].sum() / requests, "sector"),
            derived("memory_l2_theoretical_sectors_global_ideal / request", ideal, "sector"),
            derived(metrics.GLOBAL_EXCESS, excess[wasteful].sum(), "sector"),
            *work.evidence(metrics.L1_HIT_RATE, metrics.DRAM_READ_BYTES[0]),
        ),
        attributed=np.maximum.reduce([one for one in lost if one is not None]),
    )


def _of_the_rest(work: Work) -> float:
    """Share of what a launch needs beyond its terms that these accesses can be the reason for: as the time model puts
    it on the busiest terms, those of arithmetic have their part where it keeps its units busier than memory is.
    """
    busy = {key: load.share for key, load in work.loads.items()}
    arithmetic = max((busy[key] for key in COMPUTING if key in busy), default=0.0)
    moved = max((busy[key] for key in TRAFFIC if key in busy), default=0.0)
    return (moved / arithmetic) ** SHARPNESS if moved < arithmetic else 1.0


@once
def _wasteful(work: Work) -> Mask:
    """Loads and stores that touch more sectors than their bytes fill, look-ups excluded."""
    wasteful = _beyond_their_bytes(work)
    for index, one in checked_forms(work).items():
        if not wasteful[index]:
            continue
        form, there = one.form, touched(one.form, int(SECTOR))
        # Hardly more sectors than lanes may touch, wherever their row begins: of some warps a few are rounds ahead.
        most = there.most * work.executed[index] if there else 0.0
        nearly = there is not None and GAPLESS * work.global_sectors[index] <= most
        # Lanes that are a round of a loop apart touch other rows. That is divergence, no matter how the rows lie.
        out_of_step = bool(form.loops) and not work.whole_warps[index]
        if one.confirmed or nearly or out_of_step:
            # Where lanes lie side by side, full warps touch no sector in vain if their rows begin at its border.
            places = set() if form.offsets is None else set(form.offsets[:WARP].tolist())
            filled = MISALIGNED_SECTORS * math.ceil(len(places) * form.width / SECTOR)
            off_a_border = there is not None and bool(places) and there.fewest <= filled
            wasteful[index] = not (off_a_border or _shares_its_sectors(work, form))
    # Bytes and halves that a thread of Triton's takes one by one are no lanes apart, but a vector that is missing.
    wasteful &= ~((_taken_apart(work) > 0) & (work.widths < WORD))
    return wasteful & ~gathers(work, wasteful) if wasteful.any() else wasteful


@once
def _taken_apart(work: Work) -> Array:
    """Bytes of the vector that each of Triton's accesses is a part of: it deals a thread as many neighbouring elements
    as a vector holds, and moves them one by one where it cannot tell that rows and masks begin and end with vectors.
    """
    found = np.zeros(len(work.sass))
    if not compiled_by_triton(work):
        return found
    groups: dict[tuple[object, Loop | None, bool, int], list[Form]] = {}
    for index, one in checked_forms(work).items():
        form, line = one.form, work.sass[index]
        if form.space == "global" and not line.is_atomic and 0 < form.width < WIDE and form.kind != UNKNOWN:
            key = form.base, work.code.loop_of(index), line.is_store, form.width
            groups.setdefault(key, []).append(form)
    for forms in groups.values():
        offsets = forms[0].offsets
        steps = np.diff(np.sort(warps_of(offsets), axis=1), axis=1) if offsets is not None else np.zeros(1)
        run = int(steps.flat[0]) if steps.size else 0
        taken = {constant(form) - min(map(constant, forms)) for form in forms}
        whole = {place % run for place in taken} == set(range(0, run, forms[0].width)) if run > 0 else False
        if whole and forms[0].width < run == vector(run) and (steps == run).all():
            found[[form.index for form in forms]] = run
    return found


def _beyond_their_bytes(work: Work) -> Mask:
    """Loads and stores whose requests touch more sectors than their bytes fill."""
    excess = work.global_sectors - work.global_ideal
    found = excess / np.maximum(work.executed, 1.0) > MISALIGNED_SECTORS
    found &= (work.global_sectors >= APART * work.global_ideal) & ~work.where(lambda line: line.is_atomic)
    return np.asarray(found)


def _along_their_rows(work: Work) -> Iterator[Candidate]:
    """Lanes that walk along rows of their own by vectors: no sector is fetched in vain, but a request waits for as many
    lines as lanes, and a row has one lane.
    """
    rows = _beyond_their_bytes(work)
    for at in np.flatnonzero(rows).tolist():
        one = checked_forms(work).get(at)
        rows[at] = one is not None and _shares_its_sectors(work, one.form)
    if ways := tuple(_turned(work, rows)):
        lines, requests = float(work.global_tags[rows].sum()), float(work.executed[rows].sum())
        yield Candidate(
            cause="uncoalesced_access",
            variants=ways,
            evidence=(
                derived("lines per request", lines / requests, "line"),
                *work.evidence(metrics.L1_HIT_RATE),
            ),
            attributed=np.where(rows, work.global_tags, 0.0),
        )


def _shares_its_sectors(work: Work, form: Form) -> bool:
    """Whether a load takes half a sector, as wide as accesses are, and one beside it the other half: fetched once."""
    if form.width != WIDE or not work.sass[form.index].is_load:
        return False

    def half(one: Form) -> tuple[object, ...]:
        """What both have alike; lanes of a look-up lie where its base says."""
        lanes = b"" if one.offsets is None else one.offsets.tobytes()
        return one.base, one.width, constant(one) // SECTOR, lanes

    others = (one.form for one in checked_forms(work).values() if constant(one.form) != constant(form))
    return any(half(one) == half(form) for one in others)


def _scattered(work: Work) -> Mask:
    """Loads that fetch a multiple of the sectors that their bytes fill; none that fetched nothing."""
    return (
        work.global_loads
        & (work.global_sectors > 0.0)
        & (work.global_sectors >= SCATTERED * work.global_ideal)
    )


@once
def as_records(work: Work) -> Candidate | None:
    """Look-ups at one place in several arrays, or planes of one: each fetches a sector, a record brings all in one."""
    groups: dict[tuple[object, object], list[Form]] = {}
    scattered = _scattered(work)
    for at, form in _look_ups(work, scattered):
        groups.setdefault((_index(form), work.code.loop_of(at)), []).append(form)
    keep, looked_up = work.all_kept(), np.zeros_like(scattered)
    asked = left = 0.0
    widest, arrays_of_it = 0, 0
    for forms in groups.values():
        # Fields lie apart by parameters (another array, or its next plane), neighbours by numbers, too.
        planes = len({constant(form) for form in forms}) == 1
        by_array: dict[object, list[Form]] = {}
        for form in forms:
            by_array.setdefault(form.base if planes else form.parameters, []).append(form)
        # Of neighbours in one array (where a row begins and ends) there may be more than fields of a record.
        often = Counter(map(len, by_array.values())).most_common(1)[0][0]
        several = [one for one in by_array.values() if len(one) == often]
        if (count := len(several)) < 2:
            continue
        size = 1 << (sum(one[0].width for one in several) - 1).bit_length()
        rows = [form.index for one in several for form in one]
        sectors = float(work.global_sectors[rows].sum())
        asked += sectors
        # Of places that lie side by side a sector holds fewer then: so many of which one is wanted are fetched.
        lanes, words = float(work.threads[rows].sum()), sectors * SECTOR / several[0][0].width
        at_once = max(1.0, SECTOR / size)
        wanted = words / at_once * (1.0 - max(0.0, 1.0 - lanes / words) ** at_once)
        left += max(sectors, min(lanes, wanted)) * max(1.0, size / SECTOR) / count
        looked_up[rows], keep[rows] = True, max(1.0, size / WIDE) / count
        if size > widest:
            widest, arrays_of_it = size, count
    for keys, values in _found_first(work, scattered & ~looked_up):
        size = 1 << (work.sass[keys[0]].access_bytes + work.sass[values[0]].access_bytes - 1).bit_length()
        asked += float(work.global_sectors[[*keys, *values]].sum())
        left += float(work.global_sectors[keys].sum()) * max(1.0, size / SECTOR)
        looked_up[[*keys, *values]], keep[values] = True, NO_LOADS
        if size > widest:
            widest, arrays_of_it = size, 2
    if not asked:
        return None
    flows = traffic(work)
    loads = work.global_loads
    # What the look-ups cannot have fetched, the others did, and at least once what they asked for.
    lookups = float(work.global_sectors[looked_up].sum())
    others = max(flows.missed - lookups, float(work.global_ideal[loads & ~looked_up].sum()))
    stays, part = share(left + others, asked + others), share(asked, asked + others)
    factors = flows.factors(stays * flows.missed, flows.written, dram_read=stays * flows.dram_read)
    passes = work.data_passes
    factors["l1_data"] = share(passes @ keep, passes.sum())
    way = Variant(
        f"{arrays_of_it} arrays as one of records of {widest} bytes",
        # They are under way together, as the record is: what they wait for it, they wait once already.
        Fix(keep=keep, latency=np.where(keep > NO_LOADS, 1.0 / keep, 1.0), resources=factors),
        change=(
            f"Look up one record in place of {arrays_of_it} arrays: the same index is used in all of them, and each "
            f"fetches a sector of 32 bytes. An array of structures of {widest} bytes brings all with one."
        ),
        most=work.within(keep),
    )
    return Candidate(
        cause="uncoalesced_access",
        variants=(way,),
        evidence=(
            derived("look-ups at the same index in several arrays / global loads' sectors", part),
            *work.evidence(metrics.L1_HIT_RATE, metrics.DRAM_READ_BYTES[0]),
        ),
        attributed=np.where(looked_up, work.global_sectors, 0.0),
    )


def _look_ups(work: Work, rows: Mask) -> Iterator[tuple[int, Form]]:
    """Those of these accesses that look something up in an array, and what their addresses are made of."""
    for at, one in checked_forms(work).items():
        if rows[at] and one.form.kind == LOOK_UP and one.form.parameters:
            yield at, one.form


def _found_first(work: Work, rows: Mask) -> Iterator[tuple[list[int], list[int]]]:
    """Look-ups that find a place (a key's), and those behind them in another array at the place that was found."""
    arrays_of, indices = dict[object, list[int]](), dict[int, set[int]]()
    for at, form in _look_ups(work, rows):
        arrays_of.setdefault(form.parameters, []).append(at)
        indices[at] = _indices(work, at)
    for values in arrays_of.values():
        wanted = set[int]().union(*(indices[at] for at in values))
        for keys in arrays_of.values():
            there = set[int]().union(*(indices[at] for at in keys))
            if max(keys) < min(values) and wanted and wanted <= there:
                yield keys, values
                break


def _indices(work: Work, at: int) -> set[int]:
    """What the indices that an address is made of were made by, copies left out, whoever asks for them."""
    code, sass = work.code, work.sass
    place = code.of_place(at)

    def copies(one: int) -> bool:
        return sass[one].opcode == "MOV" or "MOV" in sass[one].modifiers

    def before(one: int) -> list[int]:
        names = (name for name in sass[one].reads if name[0] == "R" and (one in place or copies(one)))
        sources = (source for name in names for source in code.producers(one, name))
        return [source for source in sources if code.by_data[source] and sass[source].space != "constant"]

    return {one for one in reached(place, before) if one not in place and not copies(one)}


def _index(form: Form) -> object:
    """What a look-up's place is made of that was loaded, whatever an element of its array takes."""
    terms = {
        factors: number if isinstance(number, int) else 1
        for factors, number in form.address.terms.items()
        if any(symbol.looked_up for symbol in factors)
    }
    unit = math.gcd(*terms.values())
    return frozenset((factors, number // unit) for factors, number in terms.items())


def _turned(work: Work, wasteful: Mask) -> Iterator[Variant]:
    """Lanes along the loop in which a thread walks through memory of its own: a row from a thread to several lanes.

    Fixed: what moved along lies side by side for the lanes of a row, and what did not is the same for them. So many
    times the warps are resident, as far as an SM holds them.
    """
    fragments = _fragments(work)
    forms = {
        at: one.form
        for at, one in checked_forms(work).items()
        if one.form.space == "global" and not work.sass[at].is_atomic and not fragments[at]
    }
    walked = [
        loop
        for loop in work.code.loops
        if any(at in loop and 0 < abs(form.step(loop) or 0) <= LINE for at, form in forms.items())
        and not work.code.in_order[loop.first]
    ]
    turned = [loop for loop in walked if not any(one != loop and loop.first in one for one in walked)]
    loops = {at: loop for at in forms for loop in turned if at in loop}
    steps = {at: step for at, loop in loops.items() if (step := forms[at].step(loop)) is not None}
    unrolled = _unrolled(forms, loops, steps)
    along = [at for at, step in steps.items() if wasteful[at] and 0 < abs(step) <= LINE]
    # What a thread walks along may be told by several loops, one in the other (a row's heads, and their values).
    longest = max(
        (unrolled[at] * math.prod(rounds(work, loop) for loop in work.code.loops_around[at]) for at in along),
        default=0.0,
    )
    for lanes in (lanes for lanes in LANES if lanes <= longest):
        sectors, tags = work.global_sectors.copy(), work.global_tags.copy()
        for at, step in steps.items():
            size = (lanes - 1) * abs(step) / unrolled[at] + forms[at].width
            rows = work.executed[at] * (WARP / lanes)
            for asked, unit in ((sectors, SECTOR), (tags, LINE)):
                asked[at] = min(asked[at], rows * min(lanes, math.ceil(size / unit)))
        more = round(min(lanes, _resident(work, lanes) * work.sms / work.launched_warps))
        under_way = f", and {more} times as many warps are under way" if more > 1 else ""
        yield Variant(
            f"{lanes} lanes a row" if lanes < WARP else "a warp a row",
            _shared_out(work, sectors, tags, lanes),
            change=(
                f"Let {lanes} lanes share the row that a thread walks along now: they read neighbouring "
                f"addresses{under_way}."
            ),
        )


def _resident(work: Work, lanes: int) -> float:
    """Warps that an SM holds where as many lanes do the work of each thread."""
    most = work.number(metrics.THEORETICAL_WARPS) or work.resident_warps or 1.0
    return min(most, work.launched_warps * lanes / work.sms)


def _shared_out(work: Work, sectors: Array, tags: Array, lanes: int) -> Fix:
    """Each thread's work done by so many lanes, whose requests touch these sectors and lines."""
    resident = _resident(work, lanes)
    return Fix(
        resources=_coalesced_traffic(work, sectors, tags),
        latency=_coalesced_waits(work, sectors < work.global_sectors),
        warps=max(1.0, resident / (work.resident_warps or resident)),
    )


def in_patches(work: Work) -> Candidate | None:
    """What a thread looks up piece by piece in one place (a few rows of a grid around a point, a bucket, a row of an
    embedding) shared out to lanes: a request then touches as few sectors and lines as these pieces lie in. Triton deals
    out lanes itself.
    """
    if owner_of(work.profile).key == "triton":
        return None
    groups: dict[tuple[object, Loop | None], list[Form]] = {}
    wide = work.widths == WIDE
    # Each half of a sector is asked for by itself: no sector in vain, but as many lines as lanes.
    fewest = np.maximum(work.threads * WIDE / LINE, work.executed)
    loads = np.where(wide, work.global_loads & (work.global_tags >= SCATTERED * fewest), _scattered(work))
    for at, one in checked_forms(work).items():
        if loads[at] and one.form.parameters and looked_up_apart(one.form):
            groups.setdefault((one.form.parameters, work.code.loop_of(at)), []).append(one.form)
    in_sectors, in_lines = np.ones((2, len(loads)))
    for found in groups.values():
        # What a thread asks for only if it found something in the pieces before is no piece that lanes take beside it.
        most = max(work.threads[form.index] for form in found)
        forms = [form for form in found if work.threads[form.index] == most]
        asked = [form.index for form in forms]
        in_sectors[asked] = places_of_a_thread(work, forms, int(SECTOR)) / len(forms)
        in_lines[asked] = places_of_a_thread(work, forms, int(LINE)) / len(forms)
    in_lines = np.where(wide, in_lines, in_sectors)
    rows = loads & (in_lines <= 1.0 / OF_A_RUN)
    if not rows.any():
        return None
    sectors, tags = (
        np.minimum(one, np.maximum(least, one * np.where(rows, left, 1.0)))
        for one, left, least in (
            (work.global_sectors, in_sectors, work.executed),
            (work.global_tags, in_lines, np.where(wide, fewest, work.executed)),
        )
    )
    pieces = share(work.global_sectors[rows].sum(), (work.global_sectors * in_lines)[rows].sum())
    lanes = min(WARP, 2 ** round(math.log2(RUN / OF_A_RUN * pieces)))
    looked_up = work.within(np.where(rows, 0.0, 1.0))
    way = Variant(
        f"{lanes} lanes at one place",
        _shared_out(work, sectors, tags, lanes),
        change=(
            f"Let {lanes} lanes share what a thread looks up piece by piece in one place: each of its loads touches a "
            f"line for every lane now, and what {pieces:.0f} loads ask for lies in one."
        ),
        most=looked_up,
        bound=looked_up,
    )
    return Candidate(
        cause="uncoalesced_access",
        variants=(way,),
        evidence=(
            derived("loads of a thread / lines in which what they look up lies", pieces),
            *work.evidence(metrics.L1_HIT_RATE),
        ),
        attributed=np.where(rows, work.global_tags - tags, 0.0),
    )


def _unrolled(
    forms: Mapping[int, Form], loops: Mapping[int, Loop], steps: Mapping[int, int]
) -> dict[int, int]:
    """Rounds of the loop as written that stand in each of the code's: accesses that divide its step evenly."""
    groups: dict[object, set[int]] = {}
    for at, loop in loops.items():
        groups.setdefault((forms[at].base, forms[at].width, loop), set()).add(constant(forms[at]))
    found = {}
    for at, step in steps.items():
        places = sorted(groups[forms[at].base, forms[at].width, loops[at]])
        apart = {after - before for before, after in pairwise(places)}
        found[at] = len(places) if {one * len(places) for one in apart} == {abs(step)} else 1
    return found


def _coalesced_traffic(work: Work, sectors: Array, tags: Array) -> dict[str, float]:
    """What stays of each memory resource's work where instructions ask for these sectors and lines."""
    flows = traffic(work)
    loads = work.where(lambda line: line.is_load or line.opcode == "LDGSTS")
    asked = float(sectors[loads].sum())
    # What local memory moves is none of theirs.
    stays = flows.copied + flows.local_read
    fetched = flows.missed - stays
    # Of the wasteful ones what L1 fetches falls to the ideal; of the others nothing changes.
    of_sectors = min(1.0, share(fetched, work.global_sectors[loads].sum()))
    each, least = np.where(loads, np.minimum(of_sectors * work.global_sectors, sectors), 0.0), 0.0
    for one in arrays(work):
        rows = list(one.rows)
        there = one.block * one.width / SECTOR * work.profile.launch.blocks
        # Where all of them are put side by side, a window that threads share is in as few sectors as it fills: not what
        # a thread loads again in another pass, which L1 may have lost by then.
        packed = bool((sectors[rows] < work.global_sectors[rows]).all()) and one.thread == one.asked
        once = there if packed else one.sectors * work.profile.launch.blocks
        now = float(each[rows].sum())
        each[rows] *= min(1.0, share(once, now) or 1.0)
        # What no other block loads is fetched once at least, whatever L1 has of the rest.
        if _blocks_differ(work, one):
            least += max(0.0, there - float(each[rows].sum()))
    left = min(fetched, asked, (float(each.sum()) + least) or np.inf)
    factors = _below(work, sectors, tags, left + stays)
    shared = float(work.shared_wavefronts.sum()) + float(work.local_sectors.sum()) / 4.0
    factors["l1_data"] = share(shared + float(tags.sum()), shared + float(work.global_tags.sum()))
    # Values come to the registers line by line, and no faster than a word for each lane.
    if back := work.busy_cycles("l1_writeback"):
        from_shared = work.shared_wavefronts[work.where(lambda line: line.is_load)].sum()
        least = (work.executed * np.maximum(1.0, work.widths / WORD))[loads].sum() + from_shared
        lines = share(
            from_shared + float(tags[loads].sum()), from_shared + float(work.global_tags[loads].sum())
        )
        factors["l1_writeback"] = min(1.0, max(lines, share(least, back)))
    return factors


def _blocks_differ(work: Work, one: Reuse) -> bool:
    """Whether each block, along each axis of the grid, loads other places of this array."""
    rows, forms = list(one.rows), [checked_forms(work)[at] for at in one.rows]
    own = all(each.confirmed and any(symbol.blocks for symbol in each.form.address.symbols) for each in forms)
    return own and not any(alike[rows].any() for alike in same_by_axis(work))


def _below(work: Work, sectors: Array, tags: Array, missed: float) -> dict[str, float]:
    """What stays below L1 where instructions ask for these sectors and lines, and L1 fetches ``missed`` sectors."""
    flows = traffic(work)
    loads = work.where(lambda line: line.is_load or line.opcode == "LDGSTS")
    stores = work.where(lambda line: line.is_store and not line.is_atomic)
    missing = share(share(missed, sectors[loads].sum()), share(flows.missed, flows.asked)) or 1.0
    # What was read beyond what is allocated was read again: as often as now for each sector that L1 still fetches.
    allocated = (work.number(metrics.ACCESSIBLE_BYTES) or np.inf) / SECTOR
    again = flows.dram_read * share(missed, flows.missed)
    return flows.factors(
        missed,
        _written(work, flows, sectors),
        dram_read=min(flows.dram_read, missed, max(allocated, again)),
        read_lines=min(1.0, _left(tags, work.global_tags, loads) * missing),
        written_lines=_left(tags, work.global_tags, stores),
    )


def _written(work: Work, flows: Traffic, sectors: Array) -> float:
    """Sectors that L1 writes to L2 where stores touch so many: no fewer than their bytes fill."""
    stores = work.where(lambda line: line.is_store and not line.is_atomic)
    filled = min(flows.written, float(sectors[stores].sum()))
    return max(filled, flows.written * _left(sectors, work.global_sectors, stores))


def _coalesced_waits(work: Work, wasteful: Mask, pieces: float = 0.0) -> Array:
    """What stays of the wait for each instruction; ``pieces``: share of the sectors that L1 fetches then where threads
    take neighbouring pieces at once: all wait for the first, though L1 has the others' words by then.
    """
    cycles = latency.load_cycles(work)
    then = latency.load_cycles(work, lines=1.0, hit=1.0 - min(1.0, pieces) if pieces else None)
    left = np.where(wasteful, np.minimum(1.0, then / np.maximum(cycles, 1.0)), 1.0)
    # What a wait takes beyond an idle machine's latency is the queue that the wasted sectors make: it goes away with
    # them, and that of other loads, which stand in it, too, by the wasted sectors' share.
    excess = float((work.global_sectors - work.global_ideal)[wasteful].sum())
    queue = share(excess, work.global_sectors.sum() + work.local_sectors.sum())
    idle = idle_share(work, np.where(wasteful, then, cycles))
    return np.minimum(left, np.where(wasteful, idle, 1.0 - queue * (1.0 - idle)))


def idle_share(work: Work, cycles: Array | float) -> Array:
    """What stays of each wait for memory if none takes longer than these cycles; 1 where that is not known."""
    unloaded = latency.unloaded(work)
    waits = None if unloaded is None else unloaded.by_reason.get(LONG)
    return work.all_kept() if waits is None else latency.idle_share(work, waits, cycles)


def _left(now: Array, before: Array, rows: Mask) -> float:
    """What stays of these instructions' sum."""
    whole = float(before[rows].sum())
    return float(now[rows].sum()) / whole if whole > 0 else 1.0


def gathers(work: Work, rows: Mask) -> Mask:
    """Accesses whose places loaded values decide, another for each lane: look-ups, and searches from place to place.
    Lanes that no sum tells apart, and that yet lie apart, have come there by the ways that they took.
    """
    found = rows & work.code.chased
    for index, one in checked_forms(work).items():
        by_ways = one.form.kind == UNIFORM and not one.confirmed
        looked_up = one.form.kind == LOOK_UP
        found[index] |= rows[index] and (by_ways or looked_up)
        found[index] &= not _in_rows_apart(one.form)
    return found


@once
def piece_by_piece(work: Work) -> bool:
    """Whether most of what lanes touch in vain lies between them because each takes several neighbouring elements of
    one statement one by one: together a thread's accesses leave out nothing.
    """
    wasteful = _wasteful(work)
    groups: dict[tuple[object, ...], list[Form]] = {}
    apart: dict[int, int] = {}
    for at, form in ((at, one.form) for at, one in checked_forms(work).items() if wasteful[at]):
        statement = form.base, work.code.loop_of(at), work.instructions[at].line, form.width
        groups.setdefault(statement, []).append(form)
        if form.offsets is not None:
            apart[at] = int(np.median(np.abs(np.diff(form.offsets))))
        elif work.global_sectors[at] < SHARED_BY_TWO * work.executed[at]:
            # Where no numbers tell how far lanes lie apart, the sectors that they touch do.
            apart[at] = form.width * round(float(work.global_sectors[at] / work.global_ideal[at]))
        else:
            apart[at] = 0
    pieces = np.zeros_like(wasteful)
    for forms in groups.values():
        width, step = forms[0].width, apart[forms[0].index]
        if step > width and len({constant(form) % step for form in forms}) * width >= step:
            pieces[[form.index for form in forms]] = True
    sectors = work.global_sectors
    return 2.0 * float(sectors[pieces].sum()) > float(sectors[wasteful].sum())


def _in_rows_apart(form: Form) -> bool:
    """Whether lanes lie sectors apart before anything is looked up, each in a row of its own: what decides where in its
    row a lane reads may be the same for lanes that share a row.
    """
    rows = (
        warps_of(one * (LINE if factors else 1))
        for factors, one in form.address.terms.items()
        if not isinstance(one, int)
    )
    return form.space == "global" and any(bool((abs(np.diff(one, axis=1)) >= SECTOR).all()) for one in rows)


def _of_nobody_else(work: Work) -> bool:
    """Whether all that is touched comes from DRAM or goes there although L2 could keep it: once (a field's border)."""
    touches, flows = float(work.global_sectors.sum()), traffic(work)
    held = (work.profile.device.l2_bytes or 0) / 2.0 / SECTOR
    return touches <= held and flows.dram_read + flows.dram_written > OF_ONE * touches


def _how_to_coalesce(work: Work, wasteful: Mask, exchanged: bool) -> str:
    excess = np.where(wasteful, work.global_sectors - work.global_ideal, 0.0)
    worst = int(np.argmax(excess))
    line = work.sass[worst]
    each = work.global_sectors[worst] / max(1.0, work.executed[worst])
    ideal = work.global_ideal[worst] / max(1.0, work.executed[worst])
    kind = "store" if line.is_store else "load" if line.is_load else "access"
    if exchanged and line.is_store:
        return (
            f"Write whole sectors: its worst store touches {each:.0f} sectors where {max(1.0, ideal):.0f} would "
            "hold the bytes, and the warps wait for it. Let lanes exchange values (__shfl_sync) until each has "
            "8 or 16 bytes of a row, or go through shared memory."
        )
    if _fragments(work)[worst]:
        return (
            f"Load tiles into shared memory, 16 bytes a thread, and fragments from there (ldmatrix): of rows in global "
            f"memory a fragment's loads touch {each:.0f} sectors where {max(1.0, ideal):.0f} would hold the bytes."
        )
    if _of_nobody_else(work):
        return (
            "Keep side by side what it reads and writes (structures as arrays, a border in an array of its own): of "
            f"the {each:.0f} sectors of its worst {kind} {max(1.0, ideal):.0f} would do, and nobody wants the rest."
        )
    along = work.profile.launch.block[0]
    first = "Swap the loop order"
    if piece_by_piece(work):
        first = "Move what a thread takes side by side with one vector"
    # Of a narrow block a warp has threads of several rows, and touches no more sectors than they lie in.
    elif along < WARP and each <= WARP / along * (along * line.access_bytes / SECTOR + 1.0):
        first = f"Give blocks more threads along x ({along} now), swap the loop order"
    return (
        f"Let neighbouring threads {kind} neighbouring addresses: its worst {kind} touches {each:.0f} "
        f"sectors where {max(1.0, ideal):.0f} would hold the bytes{_apart(work, worst)}. {first}, "
        "store structures as arrays, or go through shared memory."
    )


def _apart(work: Work, at: int) -> str:
    """How far apart lanes lie, where that is one number."""
    checked = checked_forms(work).get(at)
    terms = checked.form.address.terms if checked is not None else {}
    places = terms.get((), 0)
    others = (number for factors, number in terms.items() if factors)
    if isinstance(places, int) or len(places) < WARP or not all(isinstance(one, int) for one in others):
        return ""
    steps = set(np.diff(places[:WARP]).tolist())
    return f": lanes lie {abs(steps.pop()):,} bytes apart" if len(steps) == 1 and steps != {0} else ""


def narrow_access(work: Work) -> Iterator[Candidate]:
    """The same bytes in accesses of 16 bytes a thread.

    Fixed: a thread takes as many elements as make the widest coalesced access of the loop 16 bytes; of each narrower
    one, of the address arithmetic and the loop around it, and of what neighbours compute or load alike, one in so many
    stays; the sectors stay the same. Where there is no loop, fewer threads have their sums to exchange; where a warp
    adds up in each round, it takes several rounds at once. Where a thread itself reads what lies side by side, fields
    of a structure or a stretch of memory, one vector brings several: nothing else changes. So does one of what Triton
    deals a thread as a vector and moves one by one, because places or masks may not allow it. Records that are looked
    up are padded until vectors fit. Bytes and halves that it walks along come with words of four bytes wherever they
    begin, and are picked out of them. Those that neighbours take from shared memory one by one come as words there:
    what is made of each stays.
    """
    narrow = _narrow(work)
    variants = (*_more_elements(work, narrow), *_vectors(work, narrow), *_shared_words(work))
    if not variants:
        return
    keep = variants[0].fix.keep
    assert keep is not None
    rows = narrow if narrow.any() else keep < 1.0
    bytes_each = _bytes_each(work, rows)
    yield Candidate(
        cause="narrow_access",
        variants=variants,
        evidence=(
            derived("bytes a thread and access", bytes_each, "byte"),
            work.of_all("instructions that go with wider ones", work.executed * (1.0 - keep)),
            derived("blocks launched a cycle", work.profile.launch.blocks / max(1.0, work.elapsed)),
            *work.evidence(metrics.BUSY["lsu"][0]),
        ),
        attributed=np.where(rows, work.executed * (1.0 - keep), 0.0),
        # A word of four bytes is what most kernels move: any other flaw is the better name.
        rank=SPECIFIC if bytes_each < WORD else LATENCY,
        yields=0.5 if bytes_each < WORD else 0.3,
    )


def _bytes_each(work: Work, rows: Mask) -> float:
    """Bytes that a thread moves with each of these accesses."""
    return share((work.widths * work.executed)[rows].sum(), work.executed[rows].sum())


_FROM_MEMORY = ("", "constant", "global")


def _more_elements(work: Work, narrow: Mask) -> Iterator[Variant]:
    """A thread takes as many neighbouring elements as make its accesses wide."""
    if not narrow.any():
        return
    bytes_each = _bytes_each(work, narrow)
    keep = work.all_kept()
    keep[narrow] = _with_siblings(work)[narrow] / WIDE
    ratio = float((keep * work.executed)[narrow].sum()) / float(work.executed[narrow].sum())
    # What finds places, counts and decides is done once for all that one access moves.
    loop_of = [work.code.loop_of(at) for at in range(len(keep))]
    loops = {loop_of[at] for at in np.flatnonzero(narrow)}
    around = np.array([loop in loops for loop in loop_of])
    around &= ~computing(work) & ~work.where(lambda line: line.space in ("global", "shared", "local"))
    around &= work.code.by_data | ~_places_of_its_own(work, narrow)
    # What is made of a word stays; of bytes several are made at once.
    words = np.flatnonzero(narrow & work.where(lambda line: line.fetches) & (work.widths >= WORD))
    around[list(reached(words.tolist(), work.code.readers.__getitem__))] = False
    for loop in loops:
        here = np.array([one == loop for one in loop_of])
        if _bytes_each(work, narrow & here) >= WORD:
            around &= ~(here & work.code.by_data)
    keep[around] = ratio
    # Elements beyond those of a thread's own rounds are other threads'.
    few = min((rounds(work, loop) for loop in loops if loop is not None), default=math.inf)
    if loops == {None} or _down_the_rows(work, narrow):
        few = 1.0
    # They leave places empty where a grid of so few threads no longer fills the GPU.
    warps, fewer = min(1.0, max(1.0, work.profile.launch.waves_per_sm or math.inf) * ratio * few), {}
    if loops == {None}:
        # A thread does one access and ends: wider ones need fewer threads.
        fewer["block_launch"] = ratio
        # Each thread exchanges one value, however many elements it has added to it before.
        keep[added_up(work)] = ratio
    # What neighbours compute or load alike, a thread does once for all of its elements.
    alike = shared_by_neighbours(work)
    same = (alike > 1.0) & work.ran & work.where(lambda line: line.space in _FROM_MEMORY)
    same &= ~work.where(lambda line: line.is_store or line.is_atomic or line.is_branch)
    for first, last in work.code.functions:
        same[first : last + 1] = False  # a call does all of it anew
    inside = np.array([not loops.isdisjoint(around_it) for around_it in work.code.loops_around])
    if None not in loops:
        same &= inside
    keep[same] = np.minimum(keep[same], np.maximum(ratio, 1.0 / alike[same]))
    # Fewer lanes hold the row of a round: a warp takes several at once, whose sums take fewer steps.
    alone = inside & ~work.code.loops_of(np.flatnonzero(work.barriers))
    keep[alone & of_sums(work)] = ratio
    keep[alone & added_up(work)] = ratio * max(0.0, 1.0 + math.log2(ratio) / math.log2(WARP))
    resources = {**same_traffic(work, keep), **fewer}
    # Of bytes several are made at once, but each still has its atomic; what is made of a word stays.
    atomics = work.where(lambda line: line.is_atomic)
    stays = keep if bytes_each >= WORD else (atomics | retries_of(work, atomics)).astype(np.float64)
    fewest, most = work.widths[narrow].min(), work.widths[narrow].max()
    each = f"{most:.0f} byte{'' if most == 1 else 's'}"
    each = each if fewest == most else f"{fewest:.0f} to {each}"
    yield Variant(
        "16 bytes a thread",
        Fix(
            keep=keep,
            resources=resources,
            registers=_registers_of_elements(work, narrow),
            warps=warps,
        ),
        most=work.within(stays),
        counted=L1_PASSES,
        change=(
            f"Let a thread take {1 << round(math.log2(1.0 / ratio))} elements at once, up to {WIDE} bytes an access "
            f"(float4, uint4, int4 …): its loads and stores move {each} each."
        ),
    )


def _registers_of_elements(work: Work, narrow: Mask) -> int:
    """Registers a thread that it takes more to hold vectors where it holds words or parts of them: of what these
    accesses move, as far as a loop's rounds do not stand beside each other already, and, where it is no loop that takes
    one element after the other, of what is still needed of each when the first results are stored.
    """
    code, fetched, forms = work.code, work.where(lambda line: line.fetches), checked_forms(work)
    rows = np.flatnonzero(narrow).tolist()
    beside = Counter((code.loop_of(at), forms[at].form.base) for at in rows if at in forms)
    moved = {at for at in rows if fetched[at]}.union(*(code.of_values(at) for at in rows if not fetched[at]))
    made = np.flatnonzero(code.by_data & evaluations(work).by_thread & work.ran).tolist()
    words = np.array(live_results(code, frozenset(moved)))
    others = np.array(live_results(code, frozenset(made) - moved))
    in_vectors, more = WIDE / max(WORD, _bytes_each(work, narrow)), np.zeros(len(words))
    for at in rows:
        loop = code.loop_of(at)
        rounds_beside = beside[loop, forms[at].form.base] if loop and at in forms else 1
        more[at] = max(0.0, in_vectors / rounds_beside - 1.0) * words[at]
        more[at] += 0.0 if loop or fetched[at] else (in_vectors - 1.0) * others[at]
    return registers_of(work, more)


def _places_of_its_own(work: Work, narrow: Mask) -> Mask:
    """What finds the places of look-ups and nothing else: each element has its own, however many a thread takes (an
    index taken apart into digits, coordinates that are turned).
    """
    scattered, straight = set[int](), set[int]()
    for at, one in checked_forms(work).items():
        own = one.form.kind in (LOOK_UP, UNKNOWN) and not narrow[at]
        (scattered if own else straight).update(work.code.placed_by(at))
    mask = np.zeros_like(narrow)
    mask[sorted(scattered - straight)] = True
    return mask


def _down_the_rows(work: Work, narrow: Mask) -> bool:
    """Whether the loops of most of these accesses walk from row to row, by a size that the program knows alone, past
    more than a block's threads touch, or as a list says: wider ones take as many rounds then, of fewer threads.
    """
    down = np.zeros_like(narrow)
    found = ((work.code.loop_of(at), one.form) for at, one in checked_forms(work).items() if narrow[at])
    forms = [(loop, form) for loop, form in found if loop is not None]
    rows = Counter((loop, form.parameters) for loop, form in forms)
    copied = work.where(lambda line: line.opcode == "STS")
    for loop, form in forms:
        # What is copied to shared memory in rounds of its own is anyone's: then rounds are fewer.
        meets = work.barriers[loop.first : loop.last].any()
        if copied[list(work.code.readers[form.index])].all() and not meets:
            continue
        together = rows[loop, form.parameters] * form.width * work.profile.launch.threads_per_block
        down[form.index] = abs(form.step(loop) or 0) > BEYOND * together or any(
            (
                any(symbol.kind == "parameter" for symbol in factors)
                and any(symbol.kind == "trip" and symbol.name == loop.first for symbol in factors)
            )
            or any(symbol.looked_up and loop.first in symbol.loops for symbol in factors)
            for factors in form.address.terms
        )
    return 2.0 * float(work.executed[narrow & down].sum()) > float(work.executed[narrow].sum())


def _vectors(work: Work, narrow: Mask) -> Iterator[Variant]:
    """A thread's own neighbouring loads as vectors, as wide as what their addresses are multiples of allows."""
    keep, widest, padded, cycles, picked = _own_vectors(work)
    keep = np.where(narrow, 1.0, keep)
    merged = keep < 1.0
    if not merged.any():
        return
    flows = traffic(work)
    loads = work.where(lambda line: line.is_load or line.opcode == "LDGSTS")
    asked = float((work.global_sectors * keep)[loads].sum())
    # Sectors that L1 had lost until the next load of them wanted them again came with the first.
    left = min(flows.missed, asked + flows.copied)
    factors = _below(work, work.global_sectors * keep, work.global_tags * keep, left)
    passes = work.data_passes
    factors["l1_data"] = share(passes @ np.where(merged, keep * cycles, 1.0), passes.sum())
    times = float(work.executed[merged].sum()) / float((keep * work.executed)[merged].sum())
    more = float((work.executed * picked)[merged].sum())
    # Words that are under way together are waited for once already, as their vector is.
    words = merged & work.global_loads & (picked == 0.0)
    waits = np.where(words, np.minimum(1.0 / keep, latency.under_way(work, words)), 1.0)
    yield Variant(
        f"vectors of {widest} bytes",
        Fix(keep=keep, latency=waits, resources=factors, instructions={"alu": more}),
        change=(
            f"Move what a thread reads or writes side by side with one vector (float4, int4 …): {times:.1f} of its "
            f"accesses become one of {widest} bytes."
            + (f" Records of {padded} bytes are no multiple of a vector: pad them." if padded else "")
            + (" What begins anywhere is shifted out of two (__funnelshift_r)." if picked.any() else "")
        ),
        counted=OF_AN_SM,
    )


def _shared_words(work: Work) -> Iterator[Variant]:
    """Bytes and halves of shared memory that neighbouring lanes move one by one, as words: what a thread does beside
    making each value is done once for as many as a word has.
    """
    rows, each = np.zeros(len(work.sass), dtype=bool), 0
    for at, one in checked_forms(work).items():
        form, line = one.form, work.sass[at]
        if form.space != "shared" or not 0 < form.width < WORD or line.is_atomic or form.offsets is None:
            continue
        steps = np.diff(np.sort(warps_of(form.offsets), axis=1), axis=1)
        rows[at] = work.executed[at] > 0 and 2 * int((steps == form.width).sum()) > steps.size
        each = max(each, form.width) if rows[at] else each
    passes = work.data_passes
    if not each or 2.0 * float(passes[rows].sum()) < float(passes.sum()):
        return
    keep = np.where(work.code.by_data & ~work.barriers & ~rows, 1.0, each / WORD)
    keep[work.where(lambda line: line.space in ("global", "local"))] = 1.0
    yield Variant(
        "words of shared memory",
        Fix(keep=keep, resources=dict.fromkeys(BELOW_L1, 1.0), warps=1.0),
        change=(
            f"Let a thread take {WORD / each:.0f} elements at once, a word of shared memory: its loads and stores "
            f"there move {each} byte{'s' if each > 1 else ''} each."
        ),
        of_threads=True,
        counted=("issue", "alu"),
    )


def _own_vectors(work: Work) -> tuple[Array, int, int, Array, Array]:
    """Share of each access that stays where vectors bring what lies side by side for a thread, and the widest of them.

    Side by side are loads whose addresses differ by a constant. Records that are looked up can be padded until vectors
    fit: the size of those for which that is so, 0 for none. Last the cycles of L1's data stage for each access, over
    those of now, and the instructions that pick its bytes out of words that begin elsewhere.
    """
    keep, widest, padded, cycles, picked = work.all_kept(), 0, 0, work.all_kept(), np.zeros(len(work.sass))
    fields: dict[tuple[object, Loop | None, bool], list[Form]] = {}
    checked, apart_of = checked_forms(work), _taken_apart(work)
    for index, one in checked.items():
        form, line = one.form, work.sass[index]
        plain = form.space == "global" and not line.is_atomic and line.opcode != "LDGSTS"
        plain &= not (line.guard and line.is_store) or apart_of[index] > 0
        if plain and 0 < form.width < WIDE and form.kind != UNKNOWN and form.parameters:
            fields.setdefault((form.base, work.code.loop_of(index), line.is_store), []).append(form)
    for forms in fields.values():
        size = max(vector(aligned(forms[0])), int(apart_of[[form.index for form in forms]].min()))
        apart = record(forms[0])
        pads = forms[0].kind == LOOK_UP and size < min(WIDE, apart) and apart % WIDE > 0
        size = WIDE if pads else size
        first = min(map(constant, forms))
        vectors: dict[object, list[int]] = {}
        for form in forms:
            place = constant(form)
            number, in_record = divmod(place - first, apart)
            at_once = (number, in_record // size) if pads else place // size
            vectors.setdefault(at_once, []).append(form.index)
        for rows in vectors.values():
            # What is loaded at one place again and again, the vector would be, too.
            times: dict[int, float] = {}
            for row in rows:
                place = constant(checked[row].form)
                times[place] = times.get(place, 0.0) + float(work.executed[row])
            keep[rows] = max(times.values()) / sum(times.values())
            if len(times) > 1:
                widest = max(widest, size)
                padded = apart if pads else padded
                if forms[0].kind == LOOK_UP:
                    now = [LOOK_UP_CYCLES[checked[row].form.width] for row in rows]
                    cycles[rows] = LOOK_UP_CYCLES[size] / np.array(now)
        in_words = 1.0 if size >= WORD else _in_words(work, forms)
        if in_words < 1.0:
            rows = [form.index for form in forms]
            keep[rows], picked[rows] = in_words, 1.0 + in_words
            widest = max(widest, WORD)
    return keep, widest, padded, cycles, picked


def _in_words(work: Work, forms: Sequence[Form]) -> float:
    """Words that hold the bytes or halves which a thread loads side by side as its loop walks on, wherever they begin,
    over the loads that bring these now; 1 where they are no such.
    """
    width, loop = forms[0].width, work.code.loop_of(forms[0].index)
    places = {constant(form) for form in forms}
    run = float(len(places) * width)
    if width >= WORD or max(places) - min(places) + width > run or not work.sass[forms[0].index].is_load:
        return 1.0
    if loop is not None and abs(forms[0].step(loop) or 0) == run:
        run *= rounds(work, loop)
    return (run + WORD - 1.0) / WORD * width / run


def vector(multiple: int) -> int:
    """Bytes of the widest access to addresses that are all multiples of this."""
    return min(WIDE, multiple & -multiple)


def _narrow(work: Work) -> Mask:
    """Coalesced accesses of less than 16 bytes a thread, where wider ones would ask for the same sectors."""
    widths = work.widths
    beside = _side_by_side(work)
    # Rows begin anywhere: fewer bytes side by side than two vectors hold no whole one for sure. Of a warp's lanes a few
    # may leave their bytes alone.
    bytes_beside = widths * work.threads / np.maximum(work.executed, 1.0)
    narrow = beside & (bytes_beside >= 2 * GAPLESS * WIDE) & (widths > 0) & (widths < WIDE)
    # Loads that touch every second or third place, and others what lies between: together they fill their sectors.
    for one in arrays(work):
        rows = list(one.rows)
        if len(rows) > 1 and one.dense >= GAPLESS and one.width < WIDE:
            narrow[rows] |= work.executed[rows] > 0
    # A thread that took four columns of a loop whose rounds cannot change places would take them from three others.
    narrow &= ~work.code.in_order & ~_not_aligned(work)
    narrow &= _with_siblings(work) < WIDE
    narrow &= ~_fragments(work)
    moved = work.global_ideal * work.where(lambda line: line.space == "global")
    if float(moved[narrow].sum()) < 0.1 * float(moved.sum()):
        return np.zeros_like(narrow)  # few beside wide ones: scalars at the side of a vectorised kernel
    return narrow & ~_overlapping(work, narrow)


@once
def _fragments(work: Work) -> Mask:
    """What tensor cores read as it is: instructions tell which lane has which part, and how wide it is."""
    tensor = {*np.flatnonzero(work.where(lambda line: line.instruction_class == "tensor")).tolist()}
    return np.array([not tensor.isdisjoint(uses) for uses in work.code.readers])


def _overlapping(work: Work, narrow: Mask) -> Mask:
    """Loads of windows that overlap those of neighbouring lanes: the same bytes again, which no wider access helps.

    Known from where they go; where that is not known, such loads ask for more than L1 fetches.
    """
    unknown, found = narrow & work.where(lambda line: line.is_load), np.zeros_like(narrow)
    forms = checked_forms(work)
    for one in arrays(work):
        rows = list(one.rows)
        unknown[[row for row in rows if forms[row].form.kind != UNKNOWN]] = False
        # A thread's own passes over the same make no windows.
        found[rows] = one.warp * REDUNDANT < one.apart * share(one.thread, one.asked)
    missed = traffic(work).missed
    if missed and float(work.global_ideal[unknown].sum()) > REDUNDANT * missed:
        found |= unknown
    return found


@once
def _side_by_side(work: Work) -> Mask:
    """Accesses whose lanes fill the sectors that they touch: neighbouring threads at neighbouring addresses."""
    asked = work.widths * work.threads / np.maximum(work.executed, 1.0) / SECTOR
    found = work.where(lambda line: line.space == "global" and not line.is_atomic and line.opcode != "LDGSTS")
    found &= (work.global_ideal >= GAPLESS * work.executed * np.ceil(asked)) & work.ran
    return found & (work.global_sectors - work.global_ideal <= MISALIGNED_SECTORS * work.executed)


@once
def _with_siblings(work: Work) -> Array:
    """Bytes that a thread moves with the widest of these accesses in the same loop: a thread that takes several
    elements takes as many of each, until that one is `WIDE`.
    """
    code, widths = work.code, work.widths
    widest: dict[Loop | None, float] = {}
    for at in map(int, np.flatnonzero(_side_by_side(work))):
        loop = code.loop_of(at)
        widest[loop] = max(widest.get(loop, 0.0), widths[at])
    return np.array([max(width, widest.get(code.loop_of(at), 0.0)) for at, width in enumerate(widths)])


def _not_aligned(work: Work) -> Mask:
    """Whole warps' accesses to neighbouring words that touch one sector more than these fill, now and then or always:
    they begin anywhere, and vectors have to begin at a multiple of their width. Where most bytes begin
    anywhere, the rest is no vector either.
    """
    executed = np.maximum(work.executed, 1.0)
    whole = work.whole_warps
    more = work.global_sectors - work.global_ideal
    found: Mask = whole & (more > SELDOM * executed) & (more <= MISALIGNED_SECTORS * executed)
    forms = {at: one.form for at, one in checked_forms(work).items() if one.form.offsets is not None}
    for at in map(int, np.flatnonzero(found)):
        # Every second word takes as many sectors. Known by where lanes go; else by there being one more each time:
        # of words that begin anywhere, every 32 bytes ÷ width-th begins at a border.
        now_and_then = more[at] < (1.0 - 0.5 * work.sass[at].access_bytes / SECTOR) * executed[at]
        found[at] = one_behind_another(forms[at]) if at in forms else now_and_then
    moved = work.global_ideal * work.where(lambda line: line.space == "global")
    if float(moved[found].sum()) >= 0.5 * float(moved.sum()) > 0:
        return np.full(len(found), True)
    # Rows whose beginnings were loaded begin anywhere, too.
    for at, checked in checked_forms(work).items():
        found[at] |= any(
            factors[0].looked_up and isinstance(number, int) and number % WIDE != 0
            for factors, number in checked.form.address.terms.items()
            if len(factors) == 1
        )
    return found


@once
def added_up(work: Work) -> Mask:
    """What the lanes of a warp exchange to make one value of theirs, and what makes it: not sums of runs that lie in a
    warp as the data tell.
    """
    code, running = work.code, work.ran
    shuffles = running & work.where(lambda line: line.opcode == "SHFL")
    steps = dict[int, list[int]]()
    for at in np.flatnonzero(shuffles).tolist():
        made = [use for use in code.readers[at] if not work.sass[use].space]
        # A step of several: what is made of one exchange is exchanged again, or was.
        before = {one for source in code.sources(at) for one in code.sources(source)}
        if any(shuffles[one] for one in before.union(*(code.readers[use] for use in made))):
            steps[at] = made
    found = np.zeros_like(shuffles)
    for at, made in steps.items():
        told = {
            one
            for use in made
            for name in work.sass[use].reads
            if name[0] == "P"
            for one in code.producers(use, name)
        }
        # Of two values the larger one their exchange itself tells.
        if not code.by_data[list(told)].any() or not code.made_of(told).isdisjoint(steps):
            found[[at, *made]] = True
    return found


def of_sums(work: Work) -> Mask:
    """What is made of nothing but what the lanes of a warp have added up, and what they have alike."""
    code, added, alike = work.code, added_up(work), neighbours_alike(work) >= WARP
    found, sums = np.zeros_like(added), np.flatnonzero(added).tolist()
    made = reached(sums, lambda at: (use for use in code.readers[at] if not work.sass[use].space))
    found[list(made)] = True
    found &= work.ran
    waiting = np.flatnonzero(found & ~added).tolist()
    while waiting:
        at = waiting.pop()
        if found[at] and any(
            not (found[one] or alike[one]) for one in code.sources(at) if work.executed[one]
        ):
            found[at] = False
            waiting += [use for use in code.readers[at] if not added[use]]
    return found


def same_traffic(work: Work, keep: Array) -> dict[str, float]:
    """The bytes stay; passes through L1 are as many as lines are touched, so those of less than a line shrink."""
    tags = work.global_tags
    lines = np.maximum(work.global_ideal / 4.0, tags * keep)
    others = work.shared_wavefronts + work.local_sectors / 4.0
    stays = others @ keep + np.minimum(tags, lines).sum()
    return {**dict.fromkeys(BELOW_L1, 1.0), "l1_data": share(stays, others.sum() + tags.sum()) or 1.0}
