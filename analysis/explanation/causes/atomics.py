"""Atomics: many threads that update few words, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.grid import occupancy_of
from gemmprof.analysis.explanation.code.address_forms import (
    CLOSE,
    checked_forms,
    constant,
    random_passes,
)
from gemmprof.analysis.explanation.code.flow import Loop, reached
from gemmprof.analysis.explanation.demands.footprint import (
    AXES,
    WORD,
    distinct,
    distinct_along,
    met_in_block,
    rounds,
)
from gemmprof.analysis.explanation.demands.resources import BY_KEY, LAUNCHING
from gemmprof.analysis.explanation.demands.time_model import ESTIMATED, Fix
from gemmprof.analysis.explanation.demands.traffic import SECTOR, traffic
from gemmprof.analysis.explanation.demands.work import Mask, Work, share
from gemmprof.analysis.opcodes import Sass
from gemmprof.gpu.arch import LIMITS, WARP

ALL_RANDOM = 0.95  # share of the passes that random words take as well, from which on none is told from those
COMBINED = 1.0 / 32.0  # share of the atomics that stays when a warp combines its own first
ALONE = 1.5  # threads of an atomic, below which a warp has nothing left to combine
# Shared atomics for each global one, from which on blocks combine before they update global memory.
BEFORE = 4.0
# Blocks that the GPU holds, over those of the grid, above which a loop over the grid saves little.
FEWER = 0.5
DENSE = 0.8  # share of its sectors' bytes that an atomic updates, from which on a warp adds a row of words
WORDS_OF_A_SECTOR = SECTOR / WORD
FENCE = "membar"  # the warps' state
FENCES = ("MEMBAR", "ERRBAR", "CGAERRBAR")  # what a fence is made of
MOST_BLOCKS = 256  # along an axis, of which is asked which go to the same places
# Resources through which all goes that is no atomic, and that stays: but for blocks, which may be fewer then.
BESIDE = tuple(key for key in BY_KEY if key not in ("block_launch", *ESTIMATED))
ADDITIONS = frozenset({"FADD", "DADD", "IADD3", "IADD", "HADD2"})  # what atomicAdd does, too
FUSED = frozenset({"FFMA", "DFMA", "HFMA2"})  # a product added, where what was read is not multiplied
# What atomicMin and atomicMax do, of floats by their bits.
EXTREMES = frozenset({"FMNMX", "DMNMX", "HMNMX2", "IMNMX", "VIMNMX"})
# A sum, too, where the compiler takes another pipe for it; and what takes a half from its word and puts it back.
_TIMES_ONE = re.compile(r"(?:HFMA2|IMAD)\S* .*, (?:0x1|1, 1), ")
PACKS = ("PRMT", "LOP3", "SHF", "SEL", "F2F", "F2FP", "MOV", "IMAD.MOV")
HOT = 3.0  # the busiest slice of L2 over the average one, from which on its atomics meet at few words


def retries_of(work: Work, atomics: Mask) -> Mask:
    """Instructions of the loops in which these retry a compare-and-swap because others were first."""
    return work.code.loops_of(np.flatnonzero(atomics & work.where(swaps)).tolist())


def swaps(line: Sass) -> bool:
    """Whether this compares and swaps."""
    return any(word.startswith("CAS") for word in line.modifiers)


def _claims(work: Work, atomics: Mask) -> Mask:
    """Compare-and-swaps that put a key where nothing stands (a table of hashes): what they compare with was not read
    before, so that nothing is added up, and a loop around them looks for a free place.
    """
    found = atomics & work.where(lambda line: swaps(line) and len(line.operands) > 2)
    for at in np.flatnonzero(found).tolist():
        made = work.code.made_of(work.code.producers(at, work.sass[at].operands[-2]))
        found[at] = not any(work.sass[one].space not in ("", "constant") for one in made)
    return found


def _in_memory(work: Work) -> Mask:
    return work.where(lambda line: line.is_atomic and line.space == "global")


def global_atomics(work: Work) -> Iterator[Candidate]:
    """Atomics on global memory combined in the warp or block first.

    Fixed: one of 32 stays, retries of compare-and-swap loops go with them; a few shuffles are added. Of computed places
    one stays for each word that a block goes to, in all of its threads' rounds. Where no slice of L2 is busier than the
    others, threads meet within a warp at most: of each request as many stay as it touches different words, which are no
    fewer than its sectors; or blocks update copies in shared memory, which are added up once a block: how many words
    there are, L2's misses say, of which a block needs its window alone where looked-up places are added to its own in
    the grid. Where warps add whole rows, or places are computed and lanes do not meet, whoever owns a target adds up in
    registers and stores once, in as many fewer warps. Fences that order atomics whose value nobody takes (Triton's
    default) are gone in relaxed order, with the waits for them. Sums that a compare-and-swap adds to are added to by
    the memory, once a thread, and nobody waits.
    """
    fences = _ordering(work)
    # No warp waits until all that it stored before can be seen.
    relaxed = Variant(
        "relaxed order",
        Fix(keep=np.where(fences, 0.0, 1.0), reasons={FENCE: 0.0}),
        change=(
            'Give atomics the relaxed order ([cuda::memory_order_relaxed|sem="relaxed"]), unless another block '
            "reads in this launch what was stored before them: each waits now until all of its warp's stores are seen."
        ),
        plain=True,
    )
    ways = [relaxed] if fences.any() else []
    found, sums = tuple(_fewer(work)), _sums_by_swaps(work)
    ways += [_added_by_the_memory(work, sums)] if sums else []
    if ways and not found:
        added = _in_memory(work)
        yield Candidate(
            cause="global_atomics",
            variants=tuple(ways),
            evidence=(work.of_all("global atomics", work.executed[added]),),
            attributed=np.where(added | fences, work.threads, 0.0),
        )
    yield from (replace(one, variants=(*one.variants, *ways)) for one in found)


def _fewer(work: Work) -> Iterator[Candidate]:
    """The ways to make fewer of them."""
    atomics = _in_memory(work) & work.ran
    if not atomics.any():
        return
    executed = float(work.executed[atomics].sum())
    inside = work.where(lambda line: line.is_atomic and line.space == "shared")
    # One that takes its value from shared memory adds up what a block has counted there.
    sources = (work.code.producers(at, work.sass[at].operands[-1]) for at in np.flatnonzero(atomics).tolist())
    sums = any(work.sass[one].opcode == "LDS" for made in sources for one in made)
    generic = work.where(lambda line: line.opcode == "ATOM") & atomics
    if float(work.executed[inside].sum()) > BEFORE * executed or (sums and (generic | inside).any()):
        return  # the block has combined them in shared memory already
    threads = float(work.threads[atomics].sum()) / executed
    # One slice of L2 that has far more atomics than the others: they meet at few words.
    average = work.number(metrics.L2_ATOMICS_AVERAGE) or 0.0
    hot = average > 0 and (work.number(metrics.BUSY["l2_atomics"][0]) or 0.0) / average > HOT
    # Of computed places it is known how many a block goes to, in all rounds of its threads.
    met = met_in_block(work, atomics)
    if threads < ALONE and hot and met > ALL_RANDOM:
        yield from _one_a_block(work, atomics, executed)
        return
    in_warp = 1.0 / threads if hot else _words(work, atomics) / float(work.threads[atomics].sum())
    stays = 1.0 if threads < ALONE else in_warp
    retries = retries_of(work, atomics)
    copied = 1.0 if hot else _in_copies(work, atomics)
    if min(stays, copied) > ALL_RANDOM and not hot and (owned := tuple(_owned(work, atomics))):
        yield from owned
        return
    stays = min(stays, met, copied)
    if stays > ALL_RANDOM:
        return
    a_table = 2.0 * float(work.executed[_claims(work, atomics)].sum()) > executed
    # A table that is kept in shared memory takes its look-ups along.
    updates = share(1.0, stays)
    combined, beside = _combined(work, atomics, retries, stays), () if a_table else BESIDE
    if stays == copied:
        updates *= threads * executed / (WORDS_OF_A_SECTOR * traffic(work).atomics)
        combined = replace(combined, passes=random_passes(max(1, round(threads))) * executed)
    first = Variant("combined in the warp or block first", combined, counted=beside)
    yield Candidate(
        cause="global_atomics",
        variants=(first,),
        change=(
            "Keep the table that a warp or block fills in shared memory, and write it out once: each compare-and-swap "
            "in global memory waits for L2."
            if a_table
            else _how_to_combine(work, atomics)
        ),
        evidence=(
            work.of_all("global atomics", executed),
            derived("threads per atomic", threads, "thread"),
            *(
                (derived("updates of a block at each word, at least", updates),)
                if stays in (met, copied)
                else ()
            ),
            *work.evidence(metrics.BUSY["l2_atomics"][0], metrics.L2_ATOMICS_AVERAGE),
        ),
        attributed=np.where(atomics, 1.0, np.where(retries, 0.1, 0.0)) * work.threads,
    )


def _how_to_combine(work: Work, atomics: Mask) -> str:
    rows = np.flatnonzero(atomics).tolist()
    extremes = [{"MIN", "MAX"}.intersection(work.sass[at].modifiers) for at in rows]
    kinds = set[str]().union(*extremes)
    how, kind, skipped = "sum", "add", ""
    if all(extremes):
        how, kind = "reduce", "_".join(kinds).lower()
        if not any(_looked_at(work, at) for at in rows):
            skipped = " Skip those that a plain load shows to change nothing: values there move one way only."
    one_kind = work.has("warp reductions") and len(kinds) < 2
    in_warp = f"shuffles, __reduce_{kind}_sync" if one_kind else "shuffles"
    return (
        f"Combine before updating global memory: {how} in the warp ({in_warp}) or in shared memory, then let one "
        f"thread of the block do the atomic.{skipped}"
    )


def _looked_at(work: Work, atomic: int) -> bool:
    """Whether what lies at an atomic's place is loaded before."""
    code, sass = work.code, work.sass

    def place(at: int) -> set[tuple[str, tuple[int, ...]]]:
        return {(name, tuple(code.producers(at, name))) for name in sass[at].places}

    before = (at for at in range(atomic) if sass[at].fetches and sass[at].space == "global")
    return any(place(at) == place(atomic) for at in before)


def _ordering(work: Work) -> Mask:
    """Fences that a compiler puts before an atomic of which nobody takes the value, and what empties L1 behind it: the
    order is acquire and release (Triton's default) and not relaxed. A fence of the program's own is another one.
    """
    sass, found = work.sass, np.zeros(len(work.sass), dtype=bool)
    for at in np.flatnonzero(work.ran).tolist():
        if not (sass[at].is_atomic and sass[at].space == "global" and sass[at].operands[:2] == ("PT", "RZ")):
            continue
        first = at
        while first and sass[first - 1].opcode in FENCES:
            first -= 1
        if sass[first].opcode == "MEMBAR" and "ALL" in sass[first].modifiers:
            found[first:at] = True
            found[at + 1 : at + 2] = [line.opcode == "CCTL" for line in sass[at + 1 : at + 2]]
    return found


def _sums_by_swaps(work: Work) -> dict[int, Loop]:
    """The compare-and-swaps in global memory of what was read there plus something, or of the larger of both, each with
    the loop that makes it again where another thread was first.
    """
    code, sass, found = work.code, work.sass, dict[int, Loop]()
    adds = work.where(
        lambda line: line.opcode in ADDITIONS | EXTREMES or _TIMES_ONE.match(line.text) is not None
    )
    packs = work.where(lambda line: line.full.startswith((*PACKS, "ISETP")))
    for at in np.flatnonzero(work.ran & work.where(swaps)).tolist():
        if sass[at].space != "global":
            continue
        # A swap of 16 bits is a loop of its own around that of its word.
        for loop in code.loops_around[at]:

            def packed(one: int, loop: Loop = loop) -> Iterable[int]:
                return code.sources(one) if packs[one] and one in loop else ()

            # All that a round makes of what it read, the neighbour in a half's word aside, are sums.
            made = code.producers(at, sass[at].operands[-1])
            parts = reached(made, packed)
            sums = [one for one in parts if one in loop and not packs[one] and not sass[one].space]

            def factors(one: int) -> Iterable[int]:
                names = (text.lstrip("-|").partition(".")[0] for text in sass[one].operands[1:3])
                return (by for name in names for by in code.producers(one, name))

            fused = [
                one
                for one in sums
                if sass[one].opcode in FUSED and not any(by in loop for by in factors(one))
            ]
            if sums and all(adds[one] or one in fused for one in sums) and all(one in loop for one in made):
                found[at] = loop
                break
    return found


def _added_by_the_memory(work: Work, sums: dict[int, Loop]) -> Variant:
    """One addition without an answer for each thread that comes to such a loop; nobody parts from its warp there."""
    keep, waits, again = work.all_kept(), np.ones(len(work.sass)), 0.0
    filled = np.divide(work.threads, WARP * work.executed, out=np.ones(len(keep)), where=work.ran)
    for at, loop in sums.items():
        parted = work.code.within(work.code.loops_around[at][1:])
        keep = np.where(parted, np.minimum(keep, filled), keep)
        come = min(float(work.threads[loop.first - 1]), float(work.threads[at]))
        keep[loop.first : loop.last + 1] = 0.0
        keep[at], waits[at] = come / WARP / float(work.executed[at]), 0.0
        again += float(work.threads[at]) - come
        read = work.code.made_of(work.code.producers(at, work.sass[at].operands[-2]))
        keep[[one for one in read if one not in loop and work.sass[one].is_load]] = 0.0
    flows, rows = traffic(work), list(sums)
    stays = 1.0 - again / float(work.threads[rows].sum())
    missed = flows.missed * share((work.global_sectors * keep)[work.global_loads].sum(), flows.asked)
    resources = flows.factors(min(flows.missed, missed), flows.written, atomics=stays * flows.atomics)
    inside = work.code.within(sums.values()) & work.where(lambda line: line.opcode in EXTREMES)
    how = (
        "compare: atomicMin and atomicMax take whole numbers, and the bits of floats as such (those of negative ones "
        "unsigned, the other way round)"
        if inside.any()
        else "add: atomicAdd takes float, double, half2 and, from sm_90 on, float2 and float4"
    )
    return Variant(
        "added by the memory",
        Fix(keep=keep, latency=waits, resources={**resources, "l2_atomics": stays}),
        change=(
            f"Let the memory {how}. Each thread compares and swaps {1.0 / stays:.1f} times a value, and waits for the "
            "answer each time."
        ),
        plain=True,
    )


def _in_copies(work: Work, atomics: Mask) -> float:
    """Share of the atomics that stays where blocks update a copy in shared memory and add it up at the end, and all
    words that are updated fit there, or those of a block's window of them; 1 where nobody knows how many these are.

    What L2 missed beyond what was read and written are words of the atomics, each sector once. As many of the largest
    blocks as an SM holds have a copy.
    """
    limits = LIMITS.get(work.profile.device.compute_capability)
    missed, read = work.number(metrics.L2_SECTORS_MISSED), work.number(metrics.L2_SECTORS_READ)
    flows = traffic(work)
    answered = work.where(lambda line: line.is_atomic and not line.opcode.startswith("RED"))
    if limits is None or missed is None or read is None or (atomics & answered).any() or not flows.atomics:
        return 1.0
    sectors, room = missed - read - flows.written, limits.max_shared_memory_per_block
    words, windows = SECTOR * sectors, _windows(work, atomics)
    if windows > 1:
        # Loads, too, find some of theirs in L2; and no window is smaller than what the warps' threads choose from.
        of_loads = read * (1.0 - (work.number(metrics.L2_READ_HIT_RATE) or 0.0) / 100.0)
        sectors = max(missed, flows.dram_read) - of_loads
        words = SECTOR * max(sectors / windows, _drawn_from(work, atomics, room / SECTOR))
    if not (sectors > 0 and words <= room):
        return 1.0
    held = min(work.most_warps * WARP // limits.max_threads_per_block, limits.shared_memory_per_sm // words)
    blocks = max(windows, min(held * work.sms, float(work.profile.launch.blocks)))
    return share(blocks * words / SECTOR, flows.atomics)


def _windows(work: Work, atomics: Mask) -> int:
    """Stretches of words that belong to a place in the grid, or a round of a loop, to which threads add what they look
    up; 1 if none do.
    """
    forms = [one.form for at, one in checked_forms(work).items() if atomics[at]]
    if not forms or len(forms) < np.count_nonzero(atomics):
        return 1
    own = list[set[tuple[str, object]]]()
    for form in forms:
        computed = [product for product in form.address.terms if not any(one.looked_up for one in product)]
        if len(computed) == len(form.address.terms):
            return 1  # which places it goes to is known
        own.append({(one.kind, one.name) for product in computed for one in product})
    common = set.intersection(*own)
    loops = [rounds(work, loop) for loop in work.code.loops if ("trip", loop.first) in common]
    # Of a loop that is unrolled, each form has its own of what its rounds take together.
    windows = prod(loops) * (len({constant(form) for form in forms}) if loops else 1)
    blocks = (
        size for axis, size in zip(AXES, work.profile.launch.grid, strict=True) if ("block", axis) in common
    )
    return round(windows * prod(blocks))


def _drawn_from(work: Work, atomics: Mask, most: float) -> float:
    """Sectors from which a warp's threads draw theirs, if as many different ones come as were counted; infinitely many
    above ``most``.
    """
    requests = float(work.executed[atomics].sum())
    threads, touched = (float(of[atomics].sum()) / requests for of in (work.threads, work.global_sectors))
    among = np.geomspace(1.0, most)
    return float(np.interp(touched, among * (1.0 - (1.0 - 1.0 / among) ** threads), among, right=np.inf))


def _words(work: Work, atomics: Mask) -> float:
    """Words that these requests update at least, those of each warp counted apart: as many as sectors, or as lanes
    whose addresses differ; as all lanes where these are as many as the sectors have words.
    """
    found = np.where(_dense(work), work.threads, np.minimum(work.threads, work.global_sectors))
    found = np.where(atomics, found, 0.0)
    for index, one in checked_forms(work).items():
        lanes = one.form.offsets if atomics[index] else None
        if lanes is not None and len(lanes) > 1:
            apart = len(distinct(lanes[:WARP])) / len(lanes[:WARP])
            found[index] = max(found[index], apart * work.threads[index])
    return float(found.sum())


def _dense(work: Work) -> Mask:
    """What touches nearly all bytes of its sectors; where lanes move more than these have, they share words."""
    moved = work.threads * work.widths
    there = SECTOR * work.global_sectors
    return np.asarray((moved >= DENSE * there) & (moved <= (1.0 + CLOSE) * there))


def _computed(work: Work) -> Mask:
    """Accesses whose places follow from what threads know of their own, nothing loaded: a target computes who adds
    to it.
    """
    found = np.zeros(len(work.instructions), dtype=bool)
    for at, one in checked_forms(work).items():
        loaded = any(symbol.looked_up for symbol in one.form.address.symbols)
        found[at] = one.form.offsets is not None and not loaded
    return found


def _owned(work: Work, atomics: Mask) -> Iterator[Candidate]:
    """Warps that add rows of neighbouring words, each to a row of its own, where rows of other warps go as well, and
    threads that add at places that they compute (scattered to neighbours).

    Fixed: a warp (thread) that owns the target gathers what goes there, adds in registers and stores once. Each value
    is made as often as now; the place, a fence around the atomic, and the launch of blocks come once a target.
    """
    flows, l2 = traffic(work), (work.profile.device.l2_bytes or 0) / SECTOR

    def mostly(those: Mask) -> bool:
        """Of most lanes; a count beside each row that is added is added by few."""
        return 2.0 * float(work.threads[atomics & those].sum()) > float(work.threads[atomics].sum())

    rows = mostly(_dense(work))
    if not ((rows or mostly(_computed(work))) and flows.atomics and l2 and flows.dram_read):
        return
    # No more targets than sectors that L2 missed, or fetched, for no load; nor than were written back or may be in it.
    hit, read = work.number(metrics.L2_READ_HIT_RATE), work.number(metrics.L2_SECTORS_READ)
    of_loads = (1.0 - hit / 100.0) * read if hit is not None and read is not None else 0.0
    missed = min(flows.dram_read, work.number(metrics.L2_SECTORS_MISSED) or flows.dram_read)
    first = checked_forms(work).get(int(np.flatnonzero(atomics)[0]))
    several = enumerate(min(one, MOST_BLOCKS) for one in work.profile.launch.grid)
    alike = [
        1 / one for axis, one in several if first and distinct_along(work, first.form, axis, one) == 1 / one
    ]
    met = prod(alike) if any(one < 1.0 for one in alike) else 0.0  # all blocks along an axis meet
    through = work.products | (work.ran & work.where(lambda line: line.opcode == "LDGSTS"))
    # Rates are counted in another pass: where nothing is left beside the loads, their misses may hide the atomics'. Not
    # of a product cut along K, whose operands alone are so many.
    others = max(0.0, missed - of_loads) or (0.0 if met or through.any() else missed)
    stays = max(met, min(others, flows.dram_written + l2) / flows.atomics)
    # A thread adds to another target in each round of a loop that these stand in.
    forms = checked_forms(work)
    once = all(
        loop.first in forms[at].form.loops
        for at in np.flatnonzero(atomics).tolist()
        if at in forms
        for loop in work.code.loops_around[at]
    )
    if not 0 < stays <= ALL_RANDOM or not once:
        return
    sources = (source for at in np.flatnonzero(atomics).tolist() for source in work.code.of_values(at))
    made = reached(sources, work.code.sources)
    made |= set(np.flatnonzero(through).tolist())
    keep = stays * work.all_kept()
    keep[list(made)] = 1.0
    keep[work.code.loops_of(made)] = 1.0  # with what counts their rounds, and leads around parts of them
    keep[_ordering(work)] = 0.0
    # A store of what is whole fetches nothing before it.
    read = min(flows.dram_read, of_loads or flows.dram_read)
    moved = flows.factors(flows.missed, flows.written + stays * flows.atomics, atomics=0.0, dram_read=read)
    most = stays * work.launched_warps / work.sms
    fix = Fix(
        keep=keep,
        resources={**moved, "l2_atomics": 0.0, "block_launch": stays},
        warps=min(1.0, most / (work.resident_warps or most)),
        idle=_combined(work, atomics, np.zeros_like(atomics), stays).idle,
    )
    name = f"a {'warp' if rows else 'thread'} that owns the target adds in registers"
    yield Candidate(
        cause="global_atomics",
        variants=(Variant(name, fix),),
        change=(
            "Let a warp own each target: it walks the rows that go there (sorted, or by a list of offsets), adds them "
            "up in registers and stores once."
            if rows
            else "Gather instead of scattering: let a thread own each target. From its place follows what is added "
            "there; it computes that, adds up in registers and stores once."
        ),
        evidence=(
            derived("sectors of atomics", flows.atomics, "sector"),
            derived("sectors that they can have met at, at most", stays * flows.atomics, "sector"),
        ),
        attributed=np.where(atomics, work.threads, 0.0),
    )


def _one_a_block(work: Work, atomics: Mask, executed: float) -> Iterator[Candidate]:
    """Blocks that meet at a word, each once: as many as the GPU holds at a time suffice, if they loop."""
    occupancy, blocks = occupancy_of(work), float(work.profile.launch.blocks)
    fewest = work.sms * (occupancy.blocks_per_sm or 0) if occupancy is not None else 0.0
    if not 0.0 < fewest <= FEWER * blocks:
        return
    fix = _combined(work, atomics, atomics, fewest / blocks)
    fix = replace(fix, resources={**fix.resources, "block_launch": fewest / blocks})
    yield Candidate(
        cause="global_atomics",
        variants=(Variant(f"{fewest:,.0f} blocks in a loop over the grid", fix),),
        change=(
            f"Launch as many blocks as the GPU holds ({fewest:,.0f}) and let them loop over the work: each of "
            f"{blocks:,.0f} blocks updates a word that others update, too."
        ),
        evidence=(
            derived("global atomics", executed),
            *work.evidence(metrics.BUSY["l2_atomics"][0], metrics.L2_ATOMICS_AVERAGE, metrics.GRID_SIZE),
        ),
        attributed=np.where(atomics, work.threads, 0.0),
    )


def _combined(work: Work, atomics: Mask, retries: Mask, stays: float) -> Fix:
    """This share of the atomics stays, a few shuffles come."""
    keep = work.all_kept()
    keep[retries] = stays
    # A warp's combined atomic is still one instruction; it is the words that become fewer.
    keep[atomics] = stays
    issued = float(work.executed[atomics].sum()) / 32.0 * 10.0
    added = {"issue": share(issued, work.sms * 4.0 * work.elapsed)}
    flows = traffic(work)
    left = stays * flows.atomics
    resources = flows.factors(flows.missed, flows.written, atomics=left, dram_read=flows.dram_read)
    resources["l2_atomics"] = stays
    # Nobody waits for atomics without a result: behind the last instruction L2 still works them off.
    duration = work.duration or 0.0
    drained = max(0.0, work.idle_start * duration - LAUNCHING) * share(flows.atomics, flows.l2)
    idle = 1.0 - share(drained * (1.0 - stays), work.idle_start * duration)
    return Fix(keep=keep, resources=resources, added=added, reasons={"membar": 0.1, "drain": 0.3}, idle=idle)


def shared_atomics(work: Work) -> Iterator[Candidate]:
    """Atomics on shared memory combined in the warp first.

    Fixed: one pass a warp stays of those that meet at a word, and retry loops run once.
    """
    atomics = work.where(lambda line: line.is_atomic and line.space == "shared") & work.ran
    atomics &= ~_claims(work, atomics)
    if not atomics.any():
        return
    executed = float(work.executed[atomics].sum())
    retries = retries_of(work, atomics)
    counted = float(work.shared_wavefronts[atomics].sum())
    total = max(work.number(metrics.SHARED_ATOMIC_WAVEFRONTS) or 0.0, counted)
    threads = float(work.threads[atomics].sum()) / executed
    if threads < 1.5 and not retries.any():
        return
    stays = COMBINED
    if not retries.any():
        # Combining replaces passes by shuffles. As many as words at random take are conflicts of banks, no meetings.
        stays = min(1.0, share(random_passes(round(threads)) * executed, total))
        if stays > ALL_RANDOM:
            return
    keep = work.all_kept()
    keep[atomics] = stays
    keep[retries] = np.minimum(keep[retries], max(stays, COMBINED))
    # Retries load and compare in shared memory as well: all of the loop's passes go.
    counted_all = work.data_passes
    weights = np.where(atomics, counted_all * share(total, counted or 1.0), counted_all)
    fix = Fix(keep=keep, resources={"l1_data": share(weights @ keep, weights.sum())})
    yield Candidate(
        cause="shared_atomics",
        variants=(Variant("combined in the warp first", fix, most=work.within(keep)),),
        change=(
            "Reduce in the warp before touching shared memory: its compare-and-swap loop retries until "
            "every thread has had its turn."
            if retries.any()
            else "Give each warp bins of its own, or combine equal ones in the warp first: threads meet at the same "
            "words of shared memory and are served one by one."
        ),
        evidence=(
            derived("passes per shared atomic", share(total, executed), "wavefront"),
            work.of_all("shared atomics", executed),
            *work.evidence(metrics.SHARED_ATOMIC_WAVEFRONTS),
        ),
        attributed=np.where(atomics | retries, work.executed, 0.0),
    )
