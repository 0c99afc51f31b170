"""Tiles of products on tensor cores: too low for what blocks load alike, or masked away round by round."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterator
from itertools import product
from math import prod

import numpy as np

from gemmprof.analysis.explanation.candidate import Variant
from gemmprof.analysis.explanation.causes import tensor
from gemmprof.analysis.explanation.causes.access import added_up
from gemmprof.analysis.explanation.causes.grid import occupancy_of
from gemmprof.analysis.explanation.code.address_forms import checked_forms, values_of
from gemmprof.analysis.explanation.code.flow import BARRIER, Loop, reached
from gemmprof.analysis.explanation.demands.distinct import evaluations, own_of_warps, same_along
from gemmprof.analysis.explanation.demands.footprint import (
    AXES,
    arrays,
    computed_places,
    distinct_along,
    rounds,
)
from gemmprof.analysis.explanation.demands.resources import is_float
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import SECTOR, Traffic, beside_each_other
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, share
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.opcodes import matrix_product
from gemmprof.gpu.arch import LIMITS, REGISTERS_PER_THREAD

WGMMA_ROWS = 64.0  # rows of a wgmma, 16 for each warp of its group
MOST_SUMS = 128  # of a thread: half of the registers that it can have
COMPUTING = ("fp32", "fp16", "special", "conversion", "tensor")
_NUMBER = re.compile(r"^(RZ|[-+]?(INF|\d.*))$")
TILE_WARPS = 8  # of a block with a large tile
OVERHANG = 8  # tiles along an axis, of which the last may be empty in part
SAMPLED = 32  # blocks along an axis, and rounds, that are asked whether a mask lets anything of them pass


def taller_tiles(work: Work, flows: Traffic) -> Iterator[Variant]:
    """A block for several that load the same operand, where its tile has padding or fewer rows than its warps need.

    Fixed: what is loaded alike is loaded once for all of them, with all that is done for each tile: addresses, loops,
    meetings, exchanges between warps. What is computed of each element of the products stays, but padding does not, nor
    what all warps of a block compute alike.
    With rows for a warp group the products are wgmma's, which reads its operands from shared memory.
    """
    macs = _macs(work)
    # Beyond Triton tensor cores are another kernel, not another call.
    forms = checked_forms(work) if macs.any() or owner_of(work.profile).key == "triton" else {}
    for axis, blocks in enumerate(work.profile.launch.grid if forms else ()):
        known = [forms[at].form for at in np.flatnonzero(_loads(work)).tolist() if at in forms]
        alike = {one.index: one for one in known if distinct_along(work, one, axis, min(2, blocks)) == 0.5}
        if not alike:
            continue
        tile = _tile(work, float(macs.sum()), alike, axis) if macs.any() else _one_row(work, alike)
        if tile is None:
            continue
        rows, filled, own = tile
        wanted = rows // filled if filled < rows else int(tensor.MMA_ROWS) * work.warps_of_block // rows
        # As many blocks are left as there are SMs.
        several = max(1, min(wanted, blocks, int(work.profile.launch.blocks / work.sms)))
        if prod(work.profile.launch.grid[:axis]) == 1:
            asked = float(work.global_sectors[list(alike)].sum())
            of_all = float(work.global_sectors[_loads(work)].sum())
            several = int(min(several, flows.sharing(asked, of_all - asked)))
        while any(distinct_along(work, one, axis, several) > 1 / several for one in alike.values()):
            several -= 1
        if several < 2:
            continue
        tall = filled == rows and several * rows >= WGMMA_ROWS
        by_group = next((one.fix for one in tensor.warp_level_mma(work, taller=True)), None) if tall else None
        computed = work.where(lambda line: line.instruction_class in COMPUTING or line.opcode == "LDSM")
        # What is chosen by, or counted of, each product's result is no less either.
        of_products = reached(np.flatnonzero(macs > 0.0).tolist(), work.code.readers.__getitem__)
        computed[[at for at in of_products if not work.sass[at].space and work.sass[at].opcode != "SHFL"]] = (
            True
        )
        keep = np.where(computed & (filled == rows), own_of_warps(work), own)
        keep = np.maximum(keep, 1.0 / several)
        yield Variant(
            f"rows of {several} blocks along {AXES[axis]} in one",
            _joined(work, flows, keep, several, filled < rows, by_group, axes=(axis,)),
            change=(
                f"Give a [block|program] the rows of {several} along {AXES[axis]}: all load the same operand, each for "
                + (
                    "a row of its own, whose products lanes add up. Rows together are a product of matrices (tl.dot)."
                    if not macs.any()
                    else f"{filled} of the {rows} rows of its tile; the others are padding."
                    if filled < rows
                    else f"a tile of {rows} rows. In {several * rows} [|(BLOCK_M) ]each of its {work.warps_of_block} "
                    f"warps has rows of its own{', and wgmma multiplies' if by_group else ''}."
                )
            ),
            plain=True,
        )


def larger_tiles(work: Work, flows: Traffic) -> Iterator[Variant]:
    """A block for as many as registers have room for the sums of: what several of them load is loaded once.

    Fixed: of each load stay the places that differ, with the stores that bring them to shared memory; of what is done
    for each tile (addresses, loops, meetings) one of all; products, what computes their operands and what brings these
    from shared memory stay. Up to `TILE_WARPS` a block has as many more warps as results, beyond that each thread more.
    """
    sums, launch = _registers_of_sums(work), work.profile.launch
    wider = 1 << max(0, (TILE_WARPS // work.warps_of_block).bit_length() - 1)
    if not sums:
        return
    room = min(MOST_SUMS, REGISTERS_PER_THREAD - ((launch.registers_per_thread or sums) - sums))
    for way, own in _merged(work, min(wider * room / sums, launch.blocks / work.sms)):
        yield _in_one_tile(work, flows, way, own, min(prod(way), wider))


def _in_one_tile(
    work: Work, flows: Traffic, way: tuple[int, ...], own: dict[int, float], larger: int
) -> Variant:
    """The tiles of so many blocks along each axis in one of ``larger`` times the warps, ``own`` what stays of loads."""
    code, several, loads = work.code, prod(way), list(own)
    each = [np.where(same_along(work, axis), 1.0 / one, 1.0) for axis, one in enumerate(way) if one > 1]
    keep = np.maximum(larger / several, np.prod(each, axis=0))
    keep[loads] = list(own.values())
    keep[work.where(lambda line: line.is_store and line.space == "global")] = 1.0
    # Of more rows and columns a thread each fragment serves more products.
    keep[work.where(lambda line: line.opcode in ("LDSM", "LDS"))] = (larger / several) ** 0.5
    for at in np.flatnonzero(work.ran & work.where(lambda line: line.opcode == "STS")).tolist():
        data = code.producers(at, code.sass[at].operands[-1])
        made = reached(data, lambda one: () if one in own else code.sources(one))
        keep[at] = max((own[one] for one in made if one in own), default=keep[at])
        if work.where(is_float)[[*made]].any():
            keep[at] = max(keep[at], keep[list(data)].max())  # of the same words, but others in each block
    along = " and ".join(f"{one} along {axis}" for one, axis in zip(way, AXES, strict=True) if one > 1)
    # Programs of fewer warps an SM no longer hide what each waits for.
    ahead = " With num_stages of 3 or more the next are under way." * (tensor.stages(work) < tensor.STAGES)
    # Of as many warps the sums spill.
    warps = f", num_warps={larger * work.warps_of_block}" * (larger > 1)
    axes = [axis for axis, one in enumerate(way) if one > 1]
    return Variant(
        f"tiles of {several} programs in one",
        _joined(work, flows, keep, several, larger=larger, axes=axes),
        change=(
            f"Let a [block|program] compute the tiles of {along}[| (larger BLOCK_M, BLOCK_N{warps})]: they load "
            f"{100 * (1.0 - float(keep[loads].mean())):.0f} % alike, and registers[| of {larger * work.warps_of_block} "
            f"warps] have room for their sums.[|{ahead}]"
        ),
        plain=True,
    )


def _merged(work: Work, most: float) -> Iterator[tuple[tuple[int, ...], dict[int, float]]]:
    """How many blocks along each axis make one, of 2, 4 and so on in all, at most so many, that asks for fewest
    sectors, and the share of each load's places that differ then; nothing where blocks share none.
    """
    forms, grid = checked_forms(work), work.profile.launch.grid
    loads = np.flatnonzero(_loads(work)).tolist()
    powers = product(*([1 << one for one in range(size.bit_length())] for size in grid))
    ways = [way for way in powers if 1 < prod(way) <= most]
    if limits := LIMITS.get(work.profile.device.compute_capability):
        # Of two operands in shared memory each has more rows with the blocks along one axis; of stages few suffice.
        room = 2.0 * limits.max_shared_memory_per_block * max(1.0, tensor.stages(work) / tensor.STAGES)
        ways = [way for way in ways if work.shared_bytes * sum(sorted(way)[1:]) <= room]
    # The last tile along an axis may be empty in part.
    for axis, size in enumerate(grid):
        ways = [way for way in ways if size % way[axis] == 0 or size >= OVERHANG * way[axis]]
    differ = {
        each: np.array([distinct_along(work, forms[at].form, *each) if at in forms else 1.0 for at in loads])
        for each in {each for way in ways for each in enumerate(way)}
    }
    parts = {way: np.prod([differ[each] for each in enumerate(way)], axis=0) for way in ways}
    asked = work.global_sectors[loads]
    least: dict[int, tuple[int, ...]] = {}
    for way in sorted(ways, key=lambda one: float(asked @ parts[one])):
        least.setdefault(prod(way), way)
    left = float(asked.sum())
    for _, way in sorted(least.items()):
        # More in one, for nothing, are fewer at work.
        if float(asked @ parts[way]) < left:
            left = float(asked @ parts[way])
            yield way, dict(zip(loads, parts[way].tolist(), strict=True))


def _registers_of_sums(work: Work) -> int:
    """Registers of a thread that hold the sums of its products on tensor cores."""
    lines = (work.sass[at] for at in np.flatnonzero(work.ran).tolist())
    sums = {line.operands[0]: one.registers for line in lines if (one := matrix_product(line.full))}
    return sum(sums.values())


def _macs(work: Work) -> Array:
    """Multiply-adds on tensor cores by instruction, those once that all warps of a block do alike."""
    return np.asarray(work.executed * tensor.mma_macs(work) * own_of_warps(work))


def _loads(work: Work) -> Mask:
    return work.ran & work.global_fetches


def _tile(work: Work, macs: float, alike: Collection[int], axis: int) -> tuple[int, int, Mask] | None:
    """Rows that each element of the operand which several blocks load is multiplied with, a power of two; those of them
    that are loaded, no padding; and what loads and stores what a block has for itself. None if nobody knows.
    """
    code, loads = work.code, _loads(work)
    own = work.ran & work.where(lambda line: line.is_store and line.space == "global")
    stored = work.switched_on * work.widths
    shared = mine = mine_loaded = padding = by_stores = 0.0
    moved, floats = work.ran & work.where(lambda line: line.opcode in ("LDGSTS", "STS")), work.where(is_float)
    meetings = np.flatnonzero(work.ran & work.where(lambda line: line.opcode == "BAR")).tolist()
    first = next(iter(np.flatnonzero(loads).tolist()), 0)
    for at in np.flatnonzero(moved).tolist():
        data = () if loads[at] else code.producers(at, work.sass[at].operands[-1])
        made = reached(data, lambda one: () if loads[one] else code.sources(one))
        fed = [one for one in ({at} if loads[at] else made) if loads[one]]
        if any(work.sass[one].space == "shared" or work.sass[one].opcode in ("HMMA", "SHFL") for one in made):
            continue  # exchanged between warps
        if not fed:
            # Zeros that the block waits for before it copies lie where others copy: a cleared array is no padding.
            cleared = any(at < meet < first for meet in meetings)
            padding += 0.0 if cleared else stored[at]
        elif floats[[*made]].any() and not same_along(work, axis)[list(data)].all():
            mine += stored[at]  # of words that all load, but others in each block: no padding
            mine_loaded += stored[at]
        elif any(one in alike for one in fed):
            shared += stored[at]
            by_stores += not loads[at]
        else:
            mine += stored[at]
            mine_loaded += float(work.global_sectors[fed].sum()) * SECTOR
            own[[at, *fed]] = True
    # Zeros are padding of what is stored as they are: of the operand of several blocks, or of the block's own.
    shared, mine = (shared + padding, mine) if by_stores else (shared, mine + padding)
    if not shared:
        return None
    # Codes that are copied as they are have a byte each: those who read them widen them.
    codes = work.where(lambda line: line.opcode == "LDS" and not {"U8", "S8"}.isdisjoint(line.modifiers))
    each = 1.0 if (codes & work.ran).any() and not by_stores else tensor.OPERAND_BYTES
    rows = 1 << max(0, round(np.log2(macs * each / shared)))
    return rows, max(1, min(rows, int(np.ceil(rows * mine_loaded / mine if mine else rows)))), own


def _one_row(work: Work, alike: Collection[int]) -> tuple[int, int, Array] | None:
    """The same as `_tile` of a row that a block has for itself, whose products of 16 bits with an operand of several
    blocks lanes add up; None where these are few, or tensor cores have no such products.
    """
    code, ran, often = work.code, work.ran, work.executed
    rows = ran & work.where(lambda line: line.opcode in ("FMUL", "FFMA", "HMUL2", "HFMA2"))
    halves = ran & work.where(lambda line: line.opcode in ("HMUL2", "HFMA2") or tensor.widens(line))
    products = 0.0
    for at in np.flatnonzero(rows).tolist():
        made = [code.made_of(one for one, _ in each) for each in tensor.factors_of(work, at)]
        read = [[one in alike for one in each if work.sass[one].is_load] for each in made]
        products += often[at] if len(read) == 2 and all(read) and all(read[0]) != all(read[1]) else 0.0
    few = (
        products < tensor.FEWEST * work.total_executed
        or float(often[halves].sum()) < tensor.FEWEST * products
    )
    if few or (often @ tensor.tensor_macs(work)) > 0.0 or not added_up(work).any():
        return None
    if not tensor.tensor_rates(work, "bf16")[0]:
        return None
    own = np.where(ran & work.where(lambda line: line.space == "global"), 1.0, 0.0)
    for one in arrays(work):
        own[list(one.rows)] = min(1.0, one.thread / one.asked)
    own[list(alike)] = 0.0
    return int(tensor.MMA_ROWS) * work.warps_of_block, 1, own


def _joined(
    work: Work,
    flows: Traffic,
    keep: Array,
    several: int,
    padded: bool = False,
    by_group: Fix | None = None,
    larger: int = 1,
    *,
    axes: Collection[int],
) -> Fix:
    """So many blocks, neighbours along these axes, in one of ``larger`` times the warps; what is padding now is the
    others' results then.

    What blocks that start together load alike comes from DRAM once as it is. So DRAM delivers no less then, and L2 no
    less than that.
    """
    part = larger / several
    if by_group is not None and by_group.keep is not None:
        keep = np.where(by_group.keep < 1.0, by_group.keep, keep)
    passes = work.data_passes
    left = float(passes @ keep) + (tensor.WGMMA_PASSES * float(_macs(work).sum()) if by_group else 0.0)
    asked = float((work.global_sectors * keep)[_loads(work)].sum())
    if beside_each_other(work, axes):
        asked = max(asked, flows.dram_read)
    missed = min(flows.missed, asked)
    most = work.launched_warps * part / work.sms
    resources = {**(by_group.resources if by_group else {}), **flows.factors(missed, flows.written)}
    resources |= {"l1_data": share(left, passes.sum()), "block_launch": 1.0 / several}
    return Fix(
        keep=keep,
        reasons={BARRIER: part},
        resources=resources,
        registers=0 if padded else (several // larger - 1) * _registers_of_sums(work),
        warps=min(1.0, most / max(1.0, work.resident_warps or most)),
    )


def masked_rounds(work: Work, flows: Traffic) -> Iterator[Variant]:
    """A loop that goes through those rounds alone of which a mask lets something pass.

    Fixed: of all that a round does so many stay. Blocks have as many rounds each as pass, so the last may be long.
    """
    for loop in work.code.loops:
        for axis, blocks in enumerate(work.profile.launch.grid):
            passing = _passing(work, loop, axis) if blocks > 1 else None
            if passing is None or len(set(passing)) == 1:
                continue
            part = float(passing.mean())
            keep = np.ones(len(work.sass))
            keep[loop.first : loop.last + 1] = part
            sectors, bars = work.global_sectors * _loads(work), work.executed * work.barriers
            missed = flows.missed * share(sectors @ keep, sectors.sum())
            yield Variant(
                f"{100 * part:.0f} % of the rounds",
                Fix(
                    keep=keep,
                    reasons={BARRIER: share(bars @ keep, bars.sum())},
                    resources=flows.factors(missed, flows.written),
                    imbalance=max(work.imbalance, _longest(work, passing, axis)),
                ),
                change=(
                    f"End the loop where its mask lets nothing pass any more (causal: behind the program's last row): "
                    f"{100 * (1.0 - part):.0f} % of its rounds are thrown away whole. Begin with the longest programs."
                ),
                plain=True,
            )
            return


def _passing(work: Work, loop: Loop, axis: int) -> Array | None:
    """Share of a loop's rounds of which a mask lets anything pass, for blocks along an axis; None where nobody knows,
    or where rounds leave anything but what passes it.
    """
    code, values, found = work.code, values_of(work), evaluations(work)
    mine = [at for at in range(loop.first, loop.last + 1) if work.executed[at]]
    picked = {at: work.sass[at].operands[-2:] for at in mine if work.sass[at].opcode == "FSEL"}
    masks = {at: predicate for at, (other, predicate) in picked.items() if _NUMBER.match(other)}
    conditions = [known for at, one in masks.items() if (known := values.condition(at, one)) is not None]
    sums = {at for at in code.carried(loop) if work.sass[at].instruction_class in ("fp32", "tensor")}
    ends = code.sources(loop.last)
    of_masks = reached(masks, lambda at: [use for use in code.readers[at] if use in loop])
    leaves_more = not sums or not sums <= of_masks
    leaves_more |= any(work.sass[at].is_store and work.sass[at].space == "global" for at in mine)
    if len(conditions) < max(1, len(masks)) or leaves_more or not all(found.alike[one] for one in ends):
        return None
    often, count = round(rounds(work, loop)), work.profile.launch.grid[axis]
    blocks, turns = (np.arange(min(one, SAMPLED)) * one // min(one, SAMPLED) for one in (count, often))
    places = computed_places(work, axis, blocks, {loop.first: turns})
    passes = [(places(one) != 0).reshape(len(blocks), -1, len(turns)).any(axis=1) for one in conditions]
    return np.asarray(np.logical_or.reduce(passes).mean(axis=1))


def _longest(work: Work, passing: Array, axis: int) -> float:
    """The time at which the last of the blocks ends that start one after another, over an even share."""
    launch, occupancy = work.profile.launch, occupancy_of(work)
    places = max(1, int(work.sms) * (occupancy.blocks_per_sm if occupancy is not None else 1))
    along = np.arange(launch.blocks) // prod(launch.grid[:axis]) % launch.grid[axis]
    lengths = passing[along * len(passing) // launch.grid[axis]]
    ends = [0.0] * places
    for one in lengths.tolist():
        heapq.heapreplace(ends, ends[0] + one)
    return max(ends) * places / float(lengths.sum())
