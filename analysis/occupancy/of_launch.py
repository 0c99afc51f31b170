"""Occupancy of one profiled launch: what was possible, what was reached, and where the difference went.

The percentages and block limits are Nsight Compute's own. Beside them stands what `occupancy.calculator` answers
for the same launch, and a bound that ncu does not give: the occupancy that blocks of equal length would reach, spread
evenly over the SMs. It separates what the grid's size costs from what uneven or short blocks cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import collected, figure, unlisted
from gemmprof.analysis.occupancy.calculator import Occupancy, Suggestion, occupancy, suggest
from gemmprof.base.amounts import counted
from gemmprof.base.errors import OccupancyError
from gemmprof.model import KernelProfile, NotCollected

NAME = "occupancy"
TITLE = "Occupancy"
GROUP = metrics.OCCUPANCY

NOTABLE_POINTS = 1.0  # differences below this many percentage points get no reason
# Blocks that live for fewer cycles spend a visible part of their time on being launched and on draining.
SHORT_BLOCK_CYCLES = 10_000


@dataclass(frozen=True, slots=True)
class BlockLimit:
    """How many blocks one resource admits, as ncu prints it; ``binding``: no resource admits fewer.

    ``alone`` is what the resource by itself would admit, where ncu counts no more than there are block slots (it does
    so for barriers; the official calculator does not); else None.
    """

    resource: str
    binding: bool
    blocks: int = figure("Blocks that a resource admits")
    alone: int | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """Percentage points between theoretical and achieved occupancy that have one cause."""

    kind: str  # ``small grid``, ``tail``, ``short blocks`` or ``imbalance``
    text: str  # in words
    points: float = figure("Lost", "points")  # per cent of the warp slots


@dataclass(frozen=True, slots=True)
class LaunchOccupancy:
    """Occupancy of one launch. Percentages run from 0 to 100; None where the report lacks the metric."""

    theoretical_percent: float = unlisted(
        "Theoretical",
        "occupancy",
        "what the launch allows",
        alone="Theoretical occupancy",
        of=metrics.THEORETICAL_OCCUPANCY,
    )
    achieved_percent: float | None = unlisted(
        "Achieved",
        "occupancy",
        "of an SM's warp slots",
        alone="Achieved occupancy",
        of=metrics.ACHIEVED_OCCUPANCY,
    )
    theoretical_warps: float | None = unlisted("Theoretical, warps", digits=2, of=metrics.THEORETICAL_WARPS)
    achieved_warps: float | None = unlisted("Achieved, warps", digits=2, of=metrics.ACHIEVED_WARPS)
    even_percent: float | None = unlisted(
        "Even split",
        "occupancy",
        "blocks of equal length, spread evenly: below the theoretical the grid costs",
    )
    # what each resource admits (``registers``, ``shared_memory``, ``warps``, ``blocks``, from 9.0 on ``barriers``)
    block_limits: tuple[BlockLimit, ...] = ()
    blocks_per_sm: int = unlisted("Blocks of an SM")
    losses: tuple[Loss, ...] = ()  # where the points between theoretical and achieved went, largest first
    # how often the grid fills the GPU, as ncu's Waves Per SM
    waves: float | None = figure(
        "Waves",
        meaning="where a small part is left for the last one, it leaves SMs idle",
        digits=2,
        of=metrics.WAVES_PER_SM,
    )
    full_waves: int | None = figure("Full waves")
    wave_blocks: int | None = figure("Blocks in a wave")
    last_wave_blocks: int | None = figure("Blocks in the last wave")
    block_cycles: float | None = figure("A block lives, cycles", digits=0)
    # what our calculator answers for this launch; None if it does not know the architecture
    calculated: Occupancy | None = None
    agrees: bool | None = None  # whether its blocks and occupancy equal ncu's
    max_active_clusters: int | None = figure("Clusters that fit the GPU", of=metrics.MAX_ACTIVE_CLUSTERS)
    cluster_percent: float | None = figure("Cluster slots filled", "%", of=metrics.CLUSTER_OCCUPANCY)
    missing: NotCollected | None = None  # what else could be collected

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that admit the fewest blocks."""
        return tuple(limit.resource for limit in self.block_limits if limit.binding)

    @property
    def limits_theoretical(self) -> bool:
        """Whether a resource keeps the theoretical occupancy below 100 %."""
        return self.theoretical_percent < 100

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Changes that raise the theoretical occupancy."""
        # Found by trying some 150 configurations: only for those who show them.
        return () if self.calculated is None else suggest(self.calculated)


LIMITS = (
    ("registers", metrics.BLOCK_LIMIT_REGISTERS),
    ("shared_memory", metrics.BLOCK_LIMIT_SHARED_MEMORY),
    ("warps", metrics.BLOCK_LIMIT_WARPS),
    ("blocks", metrics.BLOCK_LIMIT_BLOCKS),
    ("barriers", metrics.BLOCK_LIMIT_BARRIERS),
)


def analyse(profile: KernelProfile) -> LaunchOccupancy | NotCollected:
    """Occupancy of a launch, or `NotCollected` if the report has neither limits nor theoretical occupancy.

    Nor has a range or graph one: what ncu stores there as limits are means over different launches.
    """
    if profile.one_by_one:
        return NotCollected(GROUP.required, profile.one_by_one)
    found = collected(LaunchOccupancy, profile)
    theoretical, achieved = found["theoretical_percent"], found["achieved_percent"]
    if theoretical is None or GROUP.missing(profile.metrics) is not None:
        return GROUP.not_collected(profile.metrics)
    admitted = {resource: blocks for resource, name in LIMITS if (blocks := profile.whole(name)) is not None}
    blocks_per_sm = min(admitted.values())
    # What the launch could use: under green contexts it differs from what the device has.
    sm_count = profile.whole(metrics.SM_COUNT)
    if sm_count is None:
        sm_count = profile.named(profile.device.sm_count, metrics.SM_COUNT)
    full = last = wave_blocks = even = None
    blocks = profile.named(profile.launch.blocks, metrics.GRID_SIZE)
    if sm_count and blocks_per_sm:
        wave_blocks = sm_count * blocks_per_sm
        full, last = divmod(blocks, wave_blocks)
        even = theoretical * _even_share(blocks, sm_count, blocks_per_sm)
    calculated = of_launch(profile)
    agrees = None
    if calculated is not None:
        apart = abs(calculated.theoretical_percent - theoretical)
        agrees = calculated.blocks_per_sm == blocks_per_sm and apart < 1e-6
    block_cycles = _block_cycles(profile, sm_count)
    losses = []
    if achieved is not None and even is not None and sm_count:
        # Blocks are handed out as slots fall free, so a launch can do better than an even split of equal blocks.
        reached = max(even, achieved)
        if theoretical - reached >= NOTABLE_POINTS:
            losses.append(_grid_loss(profile.launch.blocks, theoretical, reached, sm_count, blocks_per_sm))
        if even - achieved >= NOTABLE_POINTS:
            losses.append(_rest(profile, achieved, even, block_cycles))
    if not profile.launch.cluster_size:
        found |= dict.fromkeys(("max_active_clusters", "cluster_percent"))
    return LaunchOccupancy(
        **found,
        block_limits=tuple(
            BlockLimit(resource, blocks == blocks_per_sm, blocks, _alone(calculated, resource, blocks))
            for resource, blocks in admitted.items()
        ),
        blocks_per_sm=blocks_per_sm,
        full_waves=full,
        last_wave_blocks=last,
        wave_blocks=wave_blocks,
        even_percent=even,
        losses=tuple(sorted(losses, key=lambda loss: -loss.points)),
        block_cycles=block_cycles,
        calculated=calculated,
        agrees=agrees,
        missing=GROUP.incomplete(profile.metrics),
    )


def of_launch(profile: KernelProfile) -> Occupancy | None:
    """What the calculator answers for a launch, None where it cannot (unknown architecture, missing values)."""
    launch = profile.launch
    if launch.registers_per_thread is None:
        return None
    barriers = profile.whole(metrics.BARRIERS_PER_BLOCK)
    try:
        return occupancy(
            profile.device.compute_capability,
            launch.threads_per_block,
            launch.registers_per_thread,
            (launch.static_shared_memory or 0) + (launch.dynamic_shared_memory or 0),
            shared_memory_config=launch.shared_memory_config,
            block_barriers=1 if barriers is None else barriers,
            cluster_size=launch.cluster_size or 1,
        )
    except OccupancyError:
        return None


def _alone(calculated: Occupancy | None, resource: str, blocks: int) -> int | None:
    if calculated is None or blocks != calculated.limits.max_blocks_per_sm:
        return None
    more = calculated.block_limits.get(resource)
    return more if more is not None and more > blocks else None


def _even_share(blocks: int, sm_count: int, blocks_per_sm: int) -> float:
    """Share of the possible warps that are active, over the cycles in which an SM is active at all.

    An SM that is given n equal blocks is active for ⌈n / blocks_per_sm⌉ rounds. SMs without a block do not count, as in
    ncu's Achieved Occupancy, which is an average over active cycles.
    """
    each, more = divmod(blocks, sm_count)
    rounds = more * -(-(each + 1) // blocks_per_sm) + (sm_count - more) * -(-each // blocks_per_sm)
    return blocks / (rounds * blocks_per_sm) if rounds else 0.0


def _block_cycles(profile: KernelProfile, sm_count: int | None) -> float | None:
    """Cycles that a block lives on average: resident warps × active cycles ÷ warps that an SM ran (Little's law)."""
    resident = profile.number(metrics.ACHIEVED_WARPS)
    cycles = profile.number(metrics.SM_ACTIVE_CYCLES)
    launch = profile.launch
    if resident is None or cycles is None or not sm_count or not launch.blocks:
        return None
    threads = profile.named(launch.threads_per_block, metrics.BLOCK_SIZE)
    warps = profile.named(launch.blocks, metrics.GRID_SIZE) * -(-threads // 32)
    return resident * cycles * sm_count / warps


def _grid_loss(blocks: int, theoretical: float, reached: float, sm_count: int, blocks_per_sm: int) -> Loss:
    wave = sm_count * blocks_per_sm
    full, last = divmod(blocks, wave)
    points = theoretical - reached
    if full == 0:
        share = f"{blocks / sm_count:.1f}" if blocks % sm_count else f"{blocks // sm_count}"
        given = f"each of {sm_count} SMs gets {share} of the {blocks_per_sm} blocks that it could hold"
        if blocks < sm_count:
            given = f"{sm_count - blocks} of {sm_count} SMs get no block, the others one of {blocks_per_sm}"
        return Loss("small grid", f"The grid has {counted(blocks, 'block')}: {given}.", points)
    left = f"{last:,} {'remains' if last == 1 else 'remain'}, and SMs without another block to start run half empty."
    text = f"The last wave is not full: after {counted(full, 'full wave')} of {wave:,} blocks {left}"
    return Loss("tail", text, points)


def _rest(profile: KernelProfile, achieved: float, even: float, block_cycles: float | None) -> Loss:
    """What neither limits nor the grid's size explain."""
    points = even - achieved
    if block_cycles is not None and block_cycles < SHORT_BLOCK_CYCLES and achieved > 0:
        empty = block_cycles * (even / achieved - 1)
        what = f"Blocks are short: one lives {block_cycles:,.0f} cycles, and its place stays empty for about "
        more = f"{empty:,.0f} more while it drains and the next one starts."
        return Loss("short blocks", what + more, points)
    text = "Warps and blocks finish at different times: the rest of a block, or of the grid, waits for the slowest."
    fewest, most = profile.number(metrics.ACTIVE_CYCLES_MIN), profile.number(metrics.ACTIVE_CYCLES_MAX)
    if fewest is not None and most is not None and most > 0 and fewest / most < 0.9:
        text += f" SMs were busy for {fewest:,.0f} to {most:,.0f} cycles."
    return Loss("imbalance", text, points)
