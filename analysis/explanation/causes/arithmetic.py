"""Arithmetic that costs more than it must: FP64, divisions of integers, precise functions, products and sums apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.grid import occupancy_of
from gemmprof.analysis.explanation.causes.several_results import share_apart
from gemmprof.analysis.explanation.code import divisions, flow, latency, sequences, single_bits
from gemmprof.analysis.explanation.code.address_forms import checked_forms
from gemmprof.analysis.explanation.code.flow import reached
from gemmprof.analysis.explanation.code.live import live_registers
from gemmprof.analysis.explanation.code.sequences import DIVISION, DIVISION_FLOATS, LITTLE, RECIPROCAL
from gemmprof.analysis.explanation.demands import distinct, footprint
from gemmprof.analysis.explanation.demands.footprint import AXES
from gemmprof.analysis.explanation.demands.resources import FULL, L1_PASSES, XU
from gemmprof.analysis.explanation.demands.time_model import Fix, held_meanwhile
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, traffic
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, once, share
from gemmprof.analysis.inputs.names import NUMBA, owner_of
from gemmprof.analysis.sections.instruction_mix import counts_by_opcode

# Instructions of an FP32 function of the library for each of the FP64 one (expf 8 to 10, exp 30 to 40).
LIBRARY = 0.25
# Rounds of a straight loop of unknown length that compilers take at once, and instructions that these are at most:
# loops of 11 to 133 instructions a round, compiled by nvcc and Triton (172 and 180 are, 188 and 196 are not).
ROUNDS, LONGEST = 4, 184
COUNTERS = ("IADD3", "VIADD", "UIADD3")  # what moves counters and places on
# Conversions to FP32 for each FP64 instruction, from which on constants or functions are the reason.
CONVERTED = 0.1
IN_DOUBLES = 0.3  # share of the traffic that is FP64 values, from which on a kernel means to compute in FP64
LOOKED_UP = "looked up"
MOSTLY = 0.5  # share of what a block executes from which on it does little else
FLOATS = ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX")
IN_SINGLE = "Compute in FP32 where its precision suffices, or keep FP64 for the sums alone."
# What moves, picks or exchanges one of the two registers that hold an FP64 value (IMAD where it only moves).
HALVES = frozenset({"MOV", "UMOV", "SEL", "FSEL", "LOP3", "SHFL", "IMAD"})
# Times that a conversion from or to 64 bits keeps the special-function unit for each of another one: 16
# against 64 a cycle and SM (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions",
# 9.0).
WIDE_CONVERSIONS = 4.0
# Cycles until another instruction may read a result of FP64 (`latency.READY`): what nvcc 13.0 writes beside each DFMA
# for 9.0 and 10.0.
READY_DOUBLE = 8.0


def double_precision(work: Work) -> Iterator[Candidate]:
    """FP32 for FP64.

    Fixed: each FP64 instruction becomes one FP32 instruction, whose result is read after half the cycles, conversions
    between the two are gone, a division takes as much as one of FP32, what moves the halves of FP64 values is gone or
    half, they take half the registers where most live, and where the loads feed FP64 half their bytes are gone, too.
    """
    doubles = work.where(lambda line: line.opcode in FLOATS) & work.ran
    if not doubles.any():
        return
    conversions = work.where(lambda line: line.opcode in ("F2F", "I2F", "F2I") and "F64" in line.full)
    helpers = work.where(lambda line: line.opcode == "MUFU" and line.full.endswith("64H"))
    narrowing = work.where(lambda line: line.opcode == "F2F" and "F64" in line.full)
    keep = _keep_in_single(work, doubles, narrowing)
    resources, added = _single_resources(work, doubles, keep)
    waits = keep * work.attributed.get(flow.WAIT, np.zeros(len(keep)))
    sooner = share(waits @ np.where(doubles, latency.READY / READY_DOUBLE, 1.0), waits.sum()) or 1.0
    converted = float(work.executed[narrowing].sum())
    d_count = float(work.executed[doubles].sum())
    wide = share(work.global_sectors[_of_doubles(work, doubles)].sum(), work.global_sectors.sum())
    # Half as many where doubles are alive; of no use where most registers are alive without them.
    live, of_doubles = (np.array(live_registers(work.code, *of))[work.ran] for of in ((), (FLOATS,)))
    yield Candidate(
        cause="double_precision",
        variants=(
            Variant(
                "FP32",
                Fix(
                    keep=keep,
                    reasons={flow.WAIT: sooner},
                    resources=resources,
                    added=added,
                    registers=round(float((live - 0.5 * of_doubles).max() - live.max())),
                ),
                exact=False,
                counted=L1_PASSES,
                most=work.within(np.where(doubles, 0.0, keep)),
            ),
        ),
        change=(
            "Write constants as FP32 (1.0f) and call the f-functions: FP32 values are converted to FP64 and "
            f"back ({share(converted, d_count):.1f} conversions an FP64 instruction)."
            if converted > CONVERTED * d_count
            else IN_SINGLE
        ),
        evidence=(
            work.of_all("FP64 instructions", d_count),
            work.of_all("conversions from and to FP64", converted),
            *work.evidence(metrics.BUSY["fp64"][0], metrics.BUSY["xu"][0]),
        ),
        attributed=np.where(doubles | conversions | helpers, work.executed, 0.0),
        # What never becomes another type, nor was one, is meant to be FP64.
        another_arithmetic=wide > IN_DOUBLES or not work.executed[conversions].any(),
    )


def _keep_in_single(work: Work, doubles: Mask, narrowing: Mask) -> Array:
    """What stays of each instruction in FP32: library functions and divisions are shorter, conversions gone."""
    keep = work.all_kept()
    keep[narrowing] = 0.0
    halves = _halves(work, doubles)
    # Threads exchange one register in place of two; a comparison that picks the larger is one instruction.
    keep[halves] = np.where(work.where(lambda line: line.opcode == "SHFL"), 0.5, 0.0)[halves]
    library = sequences.double_functions(work)
    keep[library] = np.minimum(keep[library], LIBRARY)
    divisions = sequences.double_divisions(work)
    keep[divisions] = np.minimum(keep[divisions], sequences.SINGLE_DIVISION)
    return keep


def _halves(work: Work, doubles: Mask) -> Mask:
    """What moves, picks or exchanges half of an FP64 value: it comes from FP64 arithmetic, or goes there."""
    moves = work.where(lambda line: line.opcode in HALVES) & work.ran
    moves &= work.where(lambda line: line.opcode != "IMAD" or line.moves_a_constant)
    places = np.flatnonzero(moves).tolist()
    near = {at: work.code.sources(at).union(work.code.readers[at]) for at in places}
    found, new = doubles.copy(), True
    while new:
        new = False
        for at in places:
            if not found[at] and any(found[other] for other in near[at]):
                found[at] = new = True
    return found & ~doubles


def _single_resources(work: Work, doubles: Mask, keep: Array) -> tuple[dict[str, float], dict[str, float]]:
    """What stays of each resource's work, and what the FP32 instructions add to the FMA pipe."""
    count = float((work.executed * keep)[doubles].sum())
    resources = {"fp64": 0.0} | ({"tensor": 1.0} if "tensor" in work.loads else {})
    special = np.where(work.pipes == XU, work.executed, 0.0)
    if special.any():
        # Whole numbers become FP32 on other pipes; what becomes a whole number does so at the other rate.
        stays = keep.copy()
        stays[work.where(lambda line: line.opcode == "I2F" and "F64" in line.full)] = 0.0
        stays[work.where(lambda line: line.opcode == "F2I" and "F64" in line.full)] = 1.0 / WIDE_CONVERSIONS
        resources["xu"] = float(special @ stays) / float(special.sum())
    wide = _of_doubles(work, doubles)
    if wide.any():
        sectors, passes = work.global_sectors, work.data_passes
        below, there = (1.0 - 0.5 * share(one[wide].sum(), one.sum()) for one in (sectors, passes))
        resources |= {**dict.fromkeys((*BELOW_L1, "l1_writeback"), below), "l1_data": there}
    slots = work.sms * 4.0 * work.elapsed
    return resources, {"fma": share(count, slots), "fma_heavy": share(0.5 * count, slots)}


def _of_doubles(work: Work, doubles: Mask) -> Mask:
    """Loads of FP64 values from global memory that feed FP64, and stores of such results."""
    feeding = work.where(lambda line: line.space == "global" and not {"64", "128"}.isdisjoint(line.modifiers))
    doubles = doubles | _halves(work, doubles)  # a sign, or the larger of two, is picked half by half
    for at in np.flatnonzero(feeding).tolist():
        line, others = work.sass[at], work.code.readers[at]
        if line.is_store:
            data = [name for name in line.reads if name[0] == "R"][-2:]
            others = tuple(one for name in data for one in work.code.producers(at, name))
        feeding[at] = doubles[list(others)].any()
    return feeding


def integer_arithmetic(work: Work) -> Iterator[Candidate]:
    """Counted indices for division and remainder by a value known at run time only.

    Fixed: the instructions of those divisions are gone, three a quotient stay for counting (one where the grid's
    dimensions tell it, six where a loaded value that the divisor was not added to is multiplied by the reciprocal,
    fourteen of 64 bits and for what 128 bits leave of 64). With an axis of the grid for each index, or counted along, a
    place is the one before and a step: two instructions stay of what made it of quotients that threads have different
    ones of. What comes to few values again and again, in other threads, blocks or rounds, once for each, and is looked
    up. What makes single bits of a value one after the other makes eight at a time, with a look-up for each eight. Of
    remainders by a number, of what remainders left, few stay, or what folds the upper bits.
    """
    divided = divisions.integer_divisions(work)
    digits = divided.bits
    gone = work.executed * (1.0 - divided.keep) * divided.instructions
    part = share(gone.sum(), work.total_executed)
    ways = filter(None, (*alike_in_blocks(work), turned_loops(work)))
    variants = [shared for cause, shared in ways if cause == "integer_arithmetic"]
    again = distinct.computed_again(work, distinct.WHOLE_NUMBERS)
    # A number of the code that goes to a register is nothing that is worked out.
    numbers = work.where(lambda line: not line.reads and not line.space)
    if work.products.any():  # nor are places of their tiles, which the uniform path works out once for a warp
        numbers |= work.where(lambda line: line.instruction_class == "uniform")
    again = replace(again, keep=np.where(numbers, 1.0, again.keep))
    if float(work.executed @ (1.0 - again.keep)) > LITTLE * work.total_executed:
        variants.append(
            Variant(
                LOOKED_UP,
                Fix(keep=again.keep, instructions={"lsu": again.loads}, passes=again.loads),
                plain=True,
                change="Compute each value once, in a table or on the host: other threads, blocks or rounds come to "
                "the same again.",
            )
        )
    if (single := single_bits.one_by_one(work)) is not None:
        at_once, looked_up, count = single
        variants.append(
            Variant(
                "a byte at a time",
                Fix(keep=at_once, instructions={"lsu": looked_up}, passes=looked_up),
                change=(
                    f"Work out {single_bits.BYTE} bits or a word at once: {count:.0f} bits go into each value, one "
                    "after the other. Shift whole words where bits depend on those far behind them, or look a byte "
                    "up in a table."
                ),
            )
        )
    if (less := divisions.chained_remainders(work)) is not None:
        variants.append(
            Variant(
                "remainders put off, or by the divisor's form",
                Fix(keep=less),
                change=(
                    "Take fewer remainders by a number: add several values up before one is taken, or fold the upper "
                    "bits of a product by the divisor's form (2^31 - 1: a shift and a sum)."
                ),
            )
        )
    from_ends = _from_the_ends(work)
    if float(work.executed[from_ends].sum()) > LITTLE * work.total_executed:
        variants.append(
            Variant(
                "unsigned indices",
                Fix(keep=np.where(from_ends, 0.0, 1.0)),
                change=(
                    "Index with unsigned integers (x[numpy.uint32(i)]): of signed ones Numba counts the negative "
                    "from the end, which takes a sign, a mask and a sum of 64 bits for each."
                ),
            )
        )
    keeps = (way.fix.keep for way in variants)
    gone = np.maximum.reduce([gone, *(work.executed * (1.0 - keep) for keep in keeps if keep is not None)])
    if part >= LITTLE:
        counting = Variant(
            "counted indices",
            Fix(keep=divided.keep),
            change=(
                "Avoid the 128-bit remainder: multiply by the divisor's reciprocal (Barrett, Montgomery), fold the "
                "upper half by the divisor's form (2^64 - 2^32 + 1), or add products up and reduce their sum once."
                if digits == 128
                else "Give the loop a step that the compiler knows, or keep it from unrolling (#pragma unroll 1): it "
                "divides to count the rounds."
                if _counts_rounds(work, divided.instructions)
                else f"Avoid the {digits}-bit division (/ or %) by a value that the compiler does not know: "
                + ("use 32-bit indices, " if digits == 64 else "")
                + "count the indices along in the loop, make the divisor a constant or a power of two, or multiply "
                "by its reciprocal."
            ),
        )
        both = np.where(divided.instructions, divided.keep, again.keep)
        others = [replace(one, fix=replace(one.fix, keep=both)) for one in variants if one.name == LOOKED_UP]
        variants = [counting, *variants, *others]
    if not variants:
        return
    yield Candidate(
        cause="integer_arithmetic",
        variants=tuple(variants),
        evidence=(
            work.of_all(
                f"instructions of {digits}-bit divisions, and of places made of them"
                if part >= LITTLE
                else "instructions that work out single bits"
                if single is not None
                else "instructions that neighbouring threads repeat"
                if variants[0].of_threads
                else "instructions that count indices from the end"
                if from_ends.any()
                else "instructions that come to the same again",
                gone,
            ),
            *work.evidence(metrics.BUSY["fma_heavy"][0], metrics.BUSY["xu"][0]),
        ),
        attributed=gone,
    )


def _from_the_ends(work: Work) -> Mask:
    """What Numba's signed indices take because a negative one counts from the end: the sign of each, the size where it
    is set, and the sum of both.
    """
    code, found = work.code, np.zeros(len(work.sass), dtype=bool)
    if not work.profile.name.startswith(NUMBA):
        return found
    signs = work.where(lambda line: line.opcode == "SHF" and line.operands[1:3] == ("RZ", "0x1f"))
    masks = work.where(lambda line: line.opcode == "LOP3" and "0xc0" in line.operands)
    for at in np.flatnonzero(masks & work.ran).tolist():
        sums = code.readers[at]
        sign = [one for one in code.sources(at) if signs[one]]
        if sign and all(work.sass[one].opcode in ("IADD3", "IMAD") for one in sums):
            found[[at, *sign]] = True
            found[[one for one in sums if sum(name[0] == "R" for name in work.sass[one].reads) == 2]] = True
    return found


def _counts_rounds(work: Work, divided: Mask) -> bool:
    """Whether nothing but branches comes of these divisions: the compiler's own, for a loop that it unrolls."""
    rows = {*np.flatnonzero(divided & work.ran).tolist()}
    made = reached(set(rows), work.code.readers.__getitem__) - rows
    return all(work.sass[at].instruction_class in ("integer", "uniform", "control") for at in made)


@once
def alike_in_blocks(work: Work) -> tuple[tuple[str, Variant], ...]:
    """What all blocks along an axis load and work out alike, done once by a block that takes several of them, and the
    cause that it is told under: of four, whose results it keeps in registers; where they do little else and are
    launched no faster, of as many as leave a wave.
    """
    launch, loads, found = work.profile.launch, work.global_loads, list[tuple[str, Variant]]()
    sectors = np.where(loads, work.global_sectors, 0.0)
    launching, occupancy, flows = work.loads.get("block_launch"), occupancy_of(work), traffic(work)
    fits = float(occupancy.blocks_per_sm or 0) if occupancy is not None else 0.0
    launched = launching is not None and launching.share >= FULL and fits > 0.0
    together = work.where(lambda line: line.is_atomic and line.space == "shared")
    together |= work.where(lambda line: line.instruction_class == "tensor")
    # What Triton's warps pass to one another is work as well; of tiles others tell.
    triton = owner_of(work.profile).key == "triton"
    exchanged = work.where(lambda line: triton and line.space == "shared")
    for number, axis in enumerate(AXES):
        most = launch.blocks / (work.sms * fits) if launched else footprint.OUTPUTS
        several = max(1.0, min(float(launch.grid[number]), most))
        alike = distinct.same_along(work, number) & work.ran
        values = alike & (footprint.computing(work) & work.where(lambda line: not line.space) | exchanged)
        keep = np.where(alike, 1.0 / several, 1.0)
        windows = _shared_windows(work, axis, several) if triton and not launched else {}
        for at, stays in windows.items():
            keep[at] = min(keep[at], stays)
        values[list(windows)] = True
        less = work.executed * values * (1.0 - keep)
        little = float(less.sum()) < (MOSTLY if launched else LITTLE) * work.total_executed
        if little or not (
            launched or ((loads & (keep < 1.0)).any() and not (work.executed[together] > 0).any())
        ):
            continue
        asked = flows.missed * share(sectors @ keep, sectors.sum())
        missed = max(asked, min(flows.missed, flows.dram_read))
        below = flows.factors(missed, flows.written, dram_read=flows.dram_read)
        carried = ([at for at in work.code.carried(loop) if not alike[at]] for loop in work.code.loops)
        sums = [sum(name[0] == "R" for at in own for name in work.sass[at].writes) for own in carried]
        own = frozenset(np.flatnonzero(work.ran & work.code.by_data & ~alike).tolist())
        held = held_meanwhile(work, np.flatnonzero(alike & loads).tolist(), own)
        left = work.launched_warps / several / work.sms
        resident = work.resident_warps or left
        fix = Fix(
            keep=keep,
            resources={**below, "block_launch": 1.0 / several},
            registers=round((several - 1.0) * max(held, *sums, 0)),
            warps=max(1.0, left / resident) if launched else min(1.0, left / resident),
        )
        ends = ", and they end sooner than the GPU launches new ones" if launched else ". Keep a sum for each"
        same = "they load much of the same" if windows else "all of them load and work out the same"
        change = f"Let a [block|program] take {several:.0f} along {axis}: {same}{ends}."
        cause = _kind(work, less) if launched else "redundant_loads"
        name = f"{several:.0f} blocks along {axis} in one"
        bound = work.within(keep) if windows else 1.0
        found.append((cause, Variant(name, fix, change=change, plain=True, bound=bound)))
    return tuple(found)


def _shared_windows(work: Work, axis: str, several: float) -> dict[int, float]:
    """What stays of loads, and of what finds their places, where so many programs along an axis are one: places that
    neighbours share are loaded once.
    """
    found = dict[int, float]()
    for one in footprint.arrays(work):
        if (apart := share_apart(one, axis)) < 1.0:
            rows = (*one.rows, *footprint.serving(work, {*one.rows}))
            found |= dict.fromkeys(rows, (1.0 + (several - 1.0) * apart) / several)
    return found


@once
def turned_loops(work: Work) -> tuple[str, Variant] | None:
    """A loop that works out anew, in each round of one around it, what that round does not change: the two change
    places, and a sum is kept for each round of the outer one. With it the cause that it is told under.

    Where both are unrolled, what their counters alone decide is known: as many executions stay as threads take part in.
    """
    code, found, ran = work.code, distinct.evaluations(work), work.ran
    switched = work.table(metrics.THREADS_PREDICATED_BY_ADDRESS)
    values, best = footprint.computing(work) & work.where(lambda line: not line.space), None
    bound = work.where(lambda line: line.is_store or line.is_atomic)
    for number, outer in enumerate(code.loops):
        inners = [one for one in code.loops if one != outer and code.loop_bits[one.first] >> number & 1]
        inners = [one for one in inners if ran[one.last] and not found.loops[one.last] >> number & 1]
        apart = np.array([not one >> number & 1 for one in found.loops]) & ran if inners else ran
        for inner in inners:
            inside = code.within((inner,)) & ran
            if (inside & bound).any() or _handed_on(work, inside, outer):
                continue
            again, several = inside & apart, footprint.rounds(work, outer)
            less = float(work.executed[again & values].sum()) * (1.0 - 1.0 / several)
            own = {name for at in code.carried(inner) if not apart[at] for name in work.sass[at].writes}
            sums = round((several - 1.0) * sum(name[0] == "R" for name in own))
            little = less < LITTLE * work.total_executed or (best is not None and less <= best[0])
            if little or sums > footprint.MOST_REGISTERS:
                continue
            keep = np.where(again, 1.0 / several, 1.0)
            often = several * footprint.rounds(work, inner) * float((inside * keep).sum())
            if switched is not None and often <= footprint.UNROLLED:
                _decided(work, inside & ~apart, switched, keep)
            best = less, again & values, keep, several, sums
    if best is None:
        return None
    less, again, keep, several, sums = best
    variant = Variant(
        f"once for {several:.0f} rounds of the loop around",
        Fix(keep=keep, resources=dict.fromkeys(BELOW_L1, 1.0), registers=sums),
        change=(
            f"Make the inner loop the outer one: each of {several:.0f} rounds around it works out the same anew. Keep "
            "a sum for each of them in registers, and unroll both loops."
        ),
        plain=True,
    )
    return _kind(work, work.executed * (1.0 - keep) * again), variant


def _kind(work: Work, gone: Array) -> str:
    """The cause that these executions, which go away, are told under: integers where they are most of them."""
    integers = work.where(lambda line: line.instruction_class in distinct.WHOLE_NUMBERS)
    return "integer_arithmetic" if 2.0 * float(gone[integers].sum()) > float(gone.sum()) else "expensive_math"


def _handed_on(work: Work, inside: Mask, outer: flow.Loop) -> bool:
    """Whether a round of a loop begins with what these made of the round before."""
    code = work.code
    made = reached(np.flatnonzero(inside).tolist(), code.readers.__getitem__)
    carried = reached(made & set(code.carried(outer)), code.readers.__getitem__)
    meet = work.where(lambda line: line.opcode == "BAR" or line.space == "shared")
    others = bool(meet[outer.first : outer.last + 1].any())
    return others or code.in_order[outer.first] or bool(inside[list(carried)].any())


def _decided(work: Work, rows: Mask, switched: Array, keep: Array) -> None:
    """Leave out what is known of these where the rounds of their loops are numbers in the code."""
    code, by_thread = work.code, distinct.evaluations(work).by_thread
    predicates = work.where(lambda line: any(name[0] == "P" for name in line.writes))
    tests = rows & predicates & ~code.by_data & ~by_thread
    for at in np.flatnonzero(rows).tolist():
        guard = work.sass[at].guard
        if tests[at]:
            keep[at] = 0.0
        elif guard and all(tests[one] for one in code.producers(at, guard)):
            keep[at] = share(switched[at], work.threads[at])


def expensive_math(work: Work) -> Iterator[Candidate]:
    """Fast functions or algebra for precise ones.

    Fixed: of each sequence that computes a precise function (sine, power, logarithm, exponential, division, square root
    and the like) as many instructions stay as the fast one takes, counted in what nvcc and Triton compile of both
    (`tools/measure_functions.py`); the way around for awkward arguments goes with it, and what is worked out for it or
    again behind it. A root that is divided by and the division become one reciprocal root; the sum that alone uses a
    quotient takes up the product. Loops that become straight and short are unrolled: four rounds are counted as one,
    and their loads are under way together. What comes to few values again and again, in other threads, blocks or
    rounds, is computed once for each and looked up, and a divisor that does not change, or divides several values,
    becomes a factor. Where blocks do little but what all along an axis work
    out alike, and are launched no faster, one takes several of them. A loop that works out the same in each round of
    one around it becomes the outer one.
    """
    if not any(line.operands for line in work.sass):  # a chip whose code nothing here disassembles
        yield from _counted_divisions(work)
        return
    found = sequences.precise_functions(work)
    variants: list[Variant] = []
    fewer = "evaluated once"
    how = "Evaluate what does not change once (before the loop, in a table or on the host)"
    if any("division" in name for name in found.names):
        fewer = f"{fewer}, products with reciprocals"
        how = f"{how}, and multiply by the reciprocal of what is divided by again and again"
    gone = work.executed * (1.0 - found.both)
    part = share(gone.sum(), work.total_executed)
    if part < LITTLE:
        return
    names = ", ".join(found.names) or "precise functions"
    takes = f"{names} ({100 * part:.0f} % of all instructions would be gone)."

    def variant(name: str, keep: Array, change: str, *, exact: bool) -> Variant:
        loads = 0.0 if keep is found.fast else found.looked_up
        return Variant(
            name,
            replace(_straight(work, keep, found.copies), instructions={"lsu": loads}, passes=loads),
            change=f"{change}: {takes}",
            exact=exact,
            plain=True,
            most=work.within(keep) if exact else 1.0,
        )

    fast = f"Use fast functions ({found.remedy}) or algebra where their accuracy suffices"
    if float((work.executed * (1.0 - found.fast)).sum()) > LITTLE * work.total_executed:
        variants.append(variant("fast functions", found.fast, fast, exact=False))
    less = float((work.executed * (1.0 - found.once)).sum())
    if found.instructions.any() and less > LITTLE * work.total_executed:
        variants.append(variant(fewer, found.once, how, exact=True))
        if float(work.executed @ (found.once - found.both)) > 0.0:
            both = f"{how}. {fast} for the rest"
            variants.append(variant("the same, and fast functions", found.both, both, exact=False))
    ways = filter(None, (*alike_in_blocks(work), turned_loops(work)))
    variants += [shared for cause, shared in ways if cause == "expensive_math"]
    if not variants:
        return
    yield Candidate(
        cause="expensive_math",
        variants=tuple(variants),
        change=takes if found.instructions.any() else "",
        evidence=(
            work.of_all("instructions of precise functions", work.executed[found.instructions]),
            *work.evidence(metrics.BUSY["xu"][0]),
        ),
        attributed=gone,
    )


def _counted_divisions(work: Work) -> Iterator[Candidate]:
    """Products for FP64 divisions where no more than opcodes was counted: whether divisors change cannot be seen."""
    counts = counts_by_opcode(work.profile, metrics.EXECUTED_PER_MODIFIER) or {}
    reciprocals = counts.get(RECIPROCAL, 0)
    gone = share((DIVISION - 1) * reciprocals, sum(counts.values()))
    if gone < LITTLE:
        return
    left = max(0.0, 1.0 - gone)
    floats = sum(count for opcode, count in counts.items() if opcode.partition(".")[0] in FLOATS)
    resources = dict.fromkeys((*BELOW_L1, "l1_data"), 1.0)
    resources["fp64"] = max(0.0, 1.0 - share((DIVISION_FLOATS - 1) * reciprocals, floats))
    # What loads wait for stays; it lies in instructions that nothing tells from the others.
    fix = Fix(left * work.all_kept(), reasons={flow.LONG: 1.0 / max(LITTLE, left)}, resources=resources)
    yield Candidate(
        cause="expensive_math",
        variants=(Variant("products with reciprocals", fix),),
        change=(
            f"Multiply by reciprocals of what is divided by again and again: FP64 divisions cost {100 * gone:.0f} % of "
            "all instructions. The code of this chip is not disassembled here, so look for those whose divisor is a "
            "constant, or stays in a loop."
        ),
        evidence=(derived(f"{RECIPROCAL} executed", reciprocals), *work.evidence(metrics.BUSY["fp64"][0])),
    )


def _straight(work: Work, keep: Array, copies: Array) -> Fix:
    """These executions, with so many independent copies of the code mixed: each waits for its arithmetic meanwhile."""
    waits = work.attributed.get(flow.WAIT)
    stays = 1.0
    if waits is not None and (whole := float((waits * keep).sum())) > 0:
        stays = float((waits * keep / copies).sum()) / whole
    near = work.where(lambda line: line.short_latency)
    together, counting = _unrolled(work, keep)
    waited = np.where(near, 1.0 / copies, 1.0) * together
    return Fix(keep=keep * counting, latency=waited, reasons={flow.WAIT: stays})


def _unrolled(work: Work, keep: Array) -> tuple[Array, Array]:
    """Factors on the waits for loads, and on what counts rounds, in loops that are unrolled once so much is gone of
    their rounds: compilers take some rounds at once of a straight loop that is short, whose loads are under way
    together then.
    """
    code, forms, found = work.code, checked_forms(work), np.ones(len(work.sass))
    counting, left = found.copy(), work.executed * keep
    read = work.ran & work.where(lambda line: line.is_load and line.space in ("global", "shared"))
    counters = work.where(lambda line: line.opcode in COUNTERS) & ~code.by_data
    for loop in code.loops:
        inside = np.arange(loop.first, loop.last + 1)
        often = float(work.executed[loop.last])
        loads = inside[read[inside]]
        turns = [at for at in inside[:-1].tolist() if work.sass[at].is_branch and work.ran[at]]
        # Places in shared memory are told apart by the register that they are counted from.
        arrays = Counter(
            forms[at].form.parameters
            if at in forms and work.global_loads[at]
            else work.sass[at].operands[1].partition("+")[0]
            for at in loads.tolist()
        )
        # What loads from one array several times may be as many rounds already.
        several = min(arrays.values(), default=ROUNDS)
        now, then = (ROUNDS / several * float(one[inside].sum()) for one in (work.executed, left))
        short = (turns or now > LONGEST * often) and then <= LONGEST * often
        if short and not left[turns].any() and not work.barriers[inside].any():
            found[loads] = min(1.0, several / ROUNDS)
            own = [at for at in code.carried(loop) if counters[at]]
            own += [loop.last, *(at for at in code.sources(loop.last) if at in loop)]
            counting[own] = min(1.0, several / ROUNDS)
    return found, counting


def non_fused_arithmetic(work: Work) -> Iterator[Candidate]:
    """A product and the sum that alone uses it as one instruction.

    Fixed: the additions of such pairs are gone.
    """
    pairs = {"FMUL": ("FADD",), "DMUL": ("DADD",), "HMUL2": ("HADD2",)}
    gone = np.zeros(len(work.sass), dtype=bool)
    for index, line in enumerate(work.sass):
        sums = pairs.get(line.opcode)
        if sums is None or not work.executed[index] or line.moves_a_constant:
            continue
        used = work.code.consumers(index)
        if len(used) != 1:
            continue
        other = work.sass[used[0]]
        if other.opcode in sums and 0.7 < share(work.executed[used[0]], work.executed[index]) < 1.4:
            # Of a product added to itself no multiply-add is left to fuse.
            product = re.compile(rf"\b{line.writes[0]}\b")
            gone[used[0]] |= sum(product.search(operand) is not None for operand in other.operands[1:]) == 1
    keep = np.where(gone, 0.0, 1.0)
    part = share(work.executed[gone].sum(), work.total_executed)
    if part < 0.03:
        return
    double = bool((gone & work.where(lambda line: line.opcode == "DADD")).any())
    yield Candidate(
        cause="non_fused_arithmetic",
        variants=(Variant("fused multiply-adds", Fix(keep=keep)),),
        change=(
            "Let products and sums fuse: drop -fmad=false and __fmul_rn/__fadd_rn, or write "
            f"{'fma' if double else 'fmaf'}(a, b, c). {100 * part:.0f} % of all instructions add a product "
            "that nothing else uses."
        ),
        evidence=(
            derived("sums of a single product / instructions executed", part),
            *work.evidence(metrics.executed_per_cycle("fmul"), metrics.executed_per_cycle("fadd")),
        ),
        attributed=np.where(gone, work.executed, 0.0),
    )
