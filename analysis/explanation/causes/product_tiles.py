"""Tiles of matrix products that are lower than their block is wide: several blocks' rows in one.

A block of a product on tensor cores fetches an operand that other blocks fetch, too, for as many rows as its tile has.
Rows that are padding are free; up to those that its warps can have for themselves, 16 each, a taller tile has the
warps exchange less as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gemmprof.analysis.explanation.candidate import Variant, share
from gemmprof.analysis.explanation.causes.tensor import (
    MMA_ROWS,
    WGMMA_ISSUES,
    WGMMA_PASSES,
    MmaProducts,
    mma_products,
)
from gemmprof.analysis.explanation.code.address_forms import checked_forms
from gemmprof.analysis.explanation.code.flow import BARRIER, reached
from gemmprof.analysis.explanation.demands.footprint import alike_along
from gemmprof.analysis.explanation.demands.places import AXES
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import SECTOR, Traffic
from gemmprof.analysis.explanation.demands.work import Mask, Work
from gemmprof.gpu.arch import WARP

WGMMA_ROWS = 64.0  # rows of a wgmma, 16 for each warp of its group
SUMS_OF_A_THREAD = 4  # registers of an mma.sync's result
OPERAND_BYTES = 2.0  # of an element of an operand


@dataclass(frozen=True)
class _Tile:
    """The tile of a block's products.

    Attributes:
        rows: that each element of the operand which several blocks load is multiplied with; a power of two.
        filled: of those, the rows that are loaded, no padding.
        own: loads and stores of what the block has for itself.
        own_bytes: that the block stores in shared memory of it.
    """

    rows: int
    filled: int
    own: Mask
    own_bytes: float


def taller_tiles(work: Work, flows: Traffic) -> Iterator[Variant]:
    """A block for several that load the same operand, where its tile has padding or fewer rows than its warps need.

    Fixed: what is loaded alike is loaded once for all of them, with all that is done for each tile: addresses, loops,
    meetings, exchanges between warps. What is computed of each element of the products stays, but padding does not.
    With rows for a warp group the products are wgmma's, which reads its operands from shared memory.
    """
    found = mma_products(work)
    if found is None:
        return
    for axis, blocks in enumerate(work.profile.launch.grid):
        alike, group = _alike(work, axis) if blocks > 1 else ({}, 1)
        tile = _tile(work, found, alike) if group > 1 else None
        if tile is None:
            continue
        padded = tile.filled < tile.rows
        wanted = tile.rows // tile.filled if padded else int(MMA_ROWS) * work.warps_of_block // tile.rows
        # As many blocks are left as there are SMs.
        several = min(group, wanted, int(work.profile.launch.blocks / work.sms))
        if several < 2:
            continue
        by_group = not padded and found.gain < 1.0 and several * tile.rows >= WGMMA_ROWS
        fix = _joined(work, flows, found, tile, several, padded=padded, by_group=by_group)
        yield Variant(
            f"rows of {several} blocks along {AXES[axis]} in one",
            fix,
            change=(
                f"Give a program (block) the rows of {several} along {AXES[axis]}: all load the same operand, each for "
                + (
                    f"{tile.filled} of the {tile.rows} rows of its tile; the others are padding."
                    if padded
                    else f"a tile of {tile.rows} rows. In {several * tile.rows} (BLOCK_M) each of its "
                    f"{work.warps_of_block} warps has rows of its own{', and wgmma multiplies' if by_group else ''}."
                )
            ),
            plain=True,
        )


def _alike(work: Work, axis: int) -> tuple[dict[int, int], int]:
    """Loads that neighbouring blocks along an axis have in common, by how many of them; and the fewest."""
    loads = (work.executed > 0) & (work.global_loads | work.where(lambda line: line.opcode == "LDGSTS"))
    forms = checked_forms(work)
    known = {
        at: alike_along(work, forms[at].form, axis) for at in map(int, np.flatnonzero(loads)) if at in forms
    }
    found = {at: several for at, several in known.items() if several > 1}
    return found, min(found.values(), default=1)


def _tile(work: Work, found: MmaProducts, alike: dict[int, int]) -> _Tile | None:
    """The tile of a block, from what is multiplied with each element that is stored in shared memory for it."""
    ran = work.executed > 0
    copies = ran & work.where(lambda line: line.opcode == "LDGSTS")
    loads = ran & work.global_loads
    stores = ran & work.where(lambda line: line.opcode == "STS")
    own = ran & work.where(lambda line: line.is_store and line.space == "global")
    stored = work.executed * WARP * np.array([line.access_bytes for line in work.sass])
    shared = mine = mine_loaded = padding = 0.0
    by_stores = False
    for at in map(int, np.flatnonzero(copies | stores)):
        fed = {at} if copies[at] else _fed_by(work, at, loads)
        if fed is None:
            continue
        if not fed:
            padding += stored[at]
        elif any(one in alike for one in fed):
            shared += stored[at]
            by_stores |= bool(stores[at])
        else:
            mine += stored[at]
            mine_loaded += float(work.global_sectors[list(fed)].sum()) * SECTOR
            own[[at, *fed]] = True
    # Zeros are padding of what is stored as they are: of the operand of several blocks, or of the block's own.
    shared, mine = (shared + padding, mine) if by_stores else (shared, mine + padding)
    if not shared or not mine:
        return None
    rows = 1 << max(0, round(np.log2(found.macs * OPERAND_BYTES / shared)))
    filled = max(1, min(rows, int(np.ceil(rows * min(1.0, mine_loaded / mine)))))
    return _Tile(rows, filled, own, mine / work.profile.launch.blocks)


def _fed_by(work: Work, store: int, loads: Mask) -> set[int] | None:
    """The global loads whose values a store keeps; None where it keeps something that was computed of products or
    exchanged.
    """
    code = work.code
    line = work.sass[store]
    data = code.producers(store, line.operands[-1]) if line.operands[-1][:2] != "RZ" else ()
    found = reached(data, lambda at: () if loads[at] else code.sources(at))
    if any(work.sass[at].space == "shared" or work.sass[at].opcode in ("HMMA", "SHFL") for at in found):
        return None
    return {at for at in found if loads[at]}


def _joined(
    work: Work, flows: Traffic, found: MmaProducts, tile: _Tile, several: int, *, padded: bool, by_group: bool
) -> Fix:
    part = 1.0 / several
    keep = np.full(len(work.sass), part)
    keep[tile.own] = 1.0
    registers = 0
    if not padded:
        keep[_of_elements(work, found)] = 1.0
        keep[found.fragments] = 0.0 if by_group else 1.0
        keep[found.rows] = WGMMA_ISSUES if by_group else 1.0
        sums = {work.sass[at].operands[0] for at in np.flatnonzero(found.rows)}
        registers = (several - 1) * SUMS_OF_A_THREAD * len(sums)
    passes = work.data_passes
    left = float(passes @ keep) + (WGMMA_PASSES * found.macs if by_group else 0.0)
    fetched = (work.executed > 0) & (work.global_loads | work.where(lambda line: line.opcode == "LDGSTS"))
    missed = min(flows.missed, float((work.global_sectors * keep)[fetched].sum()))
    launch = work.profile.launch
    most = launch.blocks / several * work.warps_of_block / work.sms
    return Fix(
        keep=keep,
        reasons={BARRIER: part},
        resources={
            **flows.factors(missed, flows.written),
            "l1_data": share(left, float(passes.sum())),
            **({"tensor": found.gain} if by_group else {}),
            "block_launch": part,
        },
        registers=registers,
        shared_bytes=0 if padded else round((several - 1) * tile.own_bytes),
        warps=min(1.0, most / max(1.0, work.resident_warps or most)),
    )


def _of_elements(work: Work, found: MmaProducts) -> Mask:
    """What computes with the elements of the products before they are exchanged: that stays as it is."""
    code, exchanged = work.code, work.where(lambda line: line.opcode == "SHFL" or line.space == "shared")

    def uses(at: int) -> list[int]:
        return [use for use in code.readers[at] if not exchanged[use] and not combines[use]]

    combines = np.zeros_like(exchanged)
    for at in np.flatnonzero(work.where(lambda line: line.opcode in ("FMNMX", "FADD"))):
        combines[at] = any(work.sass[one].opcode == "SHFL" for one in code.sources(int(at)))
    own = np.zeros_like(exchanged)
    own[list(reached(np.flatnonzero(found.rows).tolist(), uses))] = True
    return own & work.where(lambda line: line.instruction_class in ("fp32", "fp16", "special", "conversion"))
