"""Theoretical occupancy: how many blocks and warps of a kernel can be resident on one SM, and what keeps out more.

The arithmetic is that of Nsight Compute's occupancy calculator, checked against its own answers on every architecture
of `gemmprof.gpu.arch.LIMITS`; the sources of the single rules are given where they are applied. Nothing here imports
more than the standard library. For many configurations at once see `gemmprof.analysis.occupancy.table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

from gemmprof.base.amounts import counted
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import LIMITS, MAX_BARRIERS_PER_BLOCK, MAX_CLUSTER_SIZE, limits_of
from gemmprof.model import ArchLimits

# Keys of `Occupancy.block_limits`, in the order in which people read them.
RESOURCES = ("registers", "shared_memory", "warps", "blocks", "barriers")
# What `occupancy` is asked about a kernel; an answer has it under the same names.
_ASKED = (
    *("threads_per_block", "registers_per_thread", "shared_memory_per_block"),
    *("shared_memory_config", "block_barriers", "cluster_size"),
)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What one SM holds of a kernel. Registers are counted in 32-bit registers, shared memory in bytes."""

    limits: ArchLimits = field(repr=False)  # the limits of the architecture
    # threads_per_block, registers_per_thread, shared_memory_per_block, shared_memory_config, block_barriers,
    # cluster_size: the configuration as it was asked for; ``shared_memory_config`` is the carve-out in use
    threads_per_block: int
    registers_per_thread: int
    shared_memory_per_block: int
    shared_memory_config: int
    block_barriers: int
    cluster_size: int
    # resident blocks; 0 means that the SM's registers cannot hold a single block, so that the launch fails
    blocks_per_sm: int
    # what keeps occupancy below 100 %, in the words of Nsight Compute's calculator: ``barriers``, ``blocks`` (the SM's
    # slots for blocks or for warps), ``registers``, ``shared_memory``. Empty at 100 %.
    limiters: tuple[str, ...]
    # how many blocks each resource alone would admit, by the names in `RESOURCES`; before compute capability 9.0 there
    # is no ``barriers``
    block_limits: Mapping[str, int] = field(hash=False)
    warps_per_block: int  # the threads in whole warps
    registers_allocated_per_warp: int  # registers of a warp, rounded up to the allocation unit
    registers_allocated_per_block: int  # the same for the block
    # the kernel's bytes plus the driver's reserve, rounded up to the allocation unit
    shared_memory_allocated_per_block: int

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor."""
        return self.limits.compute_capability

    @property
    def active_warps_per_sm(self) -> int:
        """Resident warps."""
        return self.blocks_per_sm * self.warps_per_block

    @property
    def active_threads_per_sm(self) -> int:
        """Resident threads; threads that pad a block's last warp do not count."""
        return self.blocks_per_sm * self.threads_per_block

    @property
    def theoretical_occupancy(self) -> float:
        """Resident warps over the SM's warp slots, 0 to 1."""
        return self.active_warps_per_sm / self.limits.max_warps_per_sm

    @property
    def theoretical_percent(self) -> float:
        """The same, 0 to 100."""
        return 100 * self.theoretical_occupancy

    @property
    def configuration(self) -> str:
        """What a block takes, in words."""
        return (
            f"{counted(self.threads_per_block, 'thread')} per block, "
            f"{counted(self.registers_per_thread, 'register')} per thread, "
            f"{counted(self.shared_memory_per_block, 'byte')} of shared memory per block"
        )

    @property
    def binding(self) -> tuple[str, ...]:
        """The resources that admit the fewest blocks: the keys of `block_limits` with the smallest value.

        Unlike `limiters` this tells warp slots from block slots, and it is not empty at 100 %.
        """
        fewest = min(self.block_limits.values())
        return tuple(name for name, blocks in self.block_limits.items() if blocks == fewest)

    @property
    def registers_left(self) -> int:
        """Registers of the SM that no resident block holds."""
        return self.limits.registers_per_sm - self.blocks_per_sm * self.registers_allocated_per_block

    @property
    def shared_memory_left(self) -> int:
        """Bytes of the carve-out that no resident block holds."""
        return self.shared_memory_config - self.blocks_per_sm * self.shared_memory_allocated_per_block

    @property
    def warps_left(self) -> int:
        """Warp slots of the SM that stay empty."""
        return self.limits.max_warps_per_sm - self.active_warps_per_sm

    @property
    def blocks_left(self) -> int:
        """Block slots of the SM that stay empty."""
        return self.limits.max_blocks_per_sm - self.blocks_per_sm

    def changed(self, **values: int) -> Occupancy:
        """The answer for the same configuration with some of its values replaced; errors as `occupancy`."""
        asked = {name: getattr(self, name) for name in _ASKED}
        return occupancy(self.compute_capability, **(asked | values))

    def max_active_clusters(self, sm_count: int) -> int:
        """Clusters that can run at once on ``sm_count`` SMs: an upper bound.

        ``cudaOccupancyMaxActiveClusters`` answers this or less. All blocks of a cluster share one GPC, and how many SMs
        each GPC has differs from one physical GPU to the next, so only the device itself can give the exact number.
        """
        return sm_count * self.blocks_per_sm // self.cluster_size

    def max_active_blocks(self, sm_count: int) -> int:
        """Blocks that can run at once on ``sm_count`` SMs, of whole clusters: with clusters an upper bound."""
        return self.max_active_clusters(sm_count) * self.cluster_size

    def __str__(self) -> str:
        return (
            f"{self.blocks_per_sm} {'block' if self.blocks_per_sm == 1 else 'blocks'} per SM, "
            f"{self.active_warps_per_sm} of {self.limits.max_warps_per_sm} warps, "
            f"{self.theoretical_percent:.1f} % on {self.limits.label}"
        )


def occupancy(
    compute_capability: Any,
    threads_per_block: int,
    registers_per_thread: int,
    shared_memory_per_block: int = 0,
    *,
    shared_memory_config: int | None = None,
    block_barriers: int = 1,
    cluster_size: int = 1,
) -> Occupancy:
    """Theoretical occupancy of one launch configuration.

    Args:
        compute_capability: ``"8.6"``, ``8.6``, ``(8, 6)`` or ``"sm_86"``.
        threads_per_block: 1 to 1,024.
        registers_per_thread: what the compiler reports (``ptxas -v``), 1 to 255.
        shared_memory_per_block: static plus dynamic bytes; the driver's own reserve is added here.
        shared_memory_config: the carve-out in bytes, one of ``ArchLimits.shared_memory_configs``; None: the largest.
        block_barriers: barriers that a block uses (``ptxas -v`` reports them), 0 to 16; they count from 9.0 on.
        cluster_size: blocks in a cluster, 1 to 16 from 9.0 on. Clusters do not change what one SM holds; see
            `Occupancy.max_active_clusters`.

    Returns:
        The answer. Where every value is legal, yet the registers of one block exceed the SM's, ``blocks_per_sm`` is 0,
        as ``cudaOccupancyMaxActiveBlocksPerMultiprocessor`` answers.

    Raises:
        OccupancyError: for what no device of the architecture accepts: a value beyond its limit, or a carve-out that
            does not exist or is too small for one block. The message names limit and architecture.
    """
    limits = limits_of(compute_capability)
    threads_per_block = _whole("threads per block", threads_per_block)
    registers_per_thread = _whole("registers per thread", registers_per_thread)
    shared_memory_per_block = _whole("bytes of shared memory per block", shared_memory_per_block)
    block_barriers = _whole("barriers per block", block_barriers)
    cluster_size = _whole("blocks per cluster", cluster_size)
    if shared_memory_config is None:
        config = limits.shared_memory_configs[0]
    else:
        config = _whole("bytes of the shared memory configuration", shared_memory_config)
    if config not in limits.shared_memory_configs:
        known = ", ".join(f"{one:,}" for one in sorted(limits.shared_memory_configs))
        raise OccupancyError(
            f"a shared memory configuration of {config:,} bytes: compute capability {limits.label} has none such",
            f"its configurations are {known} bytes",
        )
    for what, value, low, high in (
        ("threads per block", threads_per_block, 1, limits.max_threads_per_block),
        ("registers per thread", registers_per_thread, 1, limits.max_registers_per_thread),
        (
            "bytes of shared memory per block",
            shared_memory_per_block,
            0,
            most_shared_memory_per_block(limits),
        ),
        ("barriers per block", block_barriers, 0, MAX_BARRIERS_PER_BLOCK),
    ):
        if not low <= value <= high:
            raise _beyond(limits, what, value, low, high)
    if cluster_size != 1 and not (limits.clusters and 1 <= cluster_size <= MAX_CLUSTER_SIZE):
        raise _no_such_cluster(limits, cluster_size)

    # A warp's registers come in units of 256 (CUDA C++ Programming Guide, "Hardware multithreading").
    warps = -(-threads_per_block // limits.warp_size)
    unit = limits.register_allocation_unit
    registers_per_warp = -(-registers_per_thread * limits.warp_size // unit) * unit
    unit = limits.shared_memory_allocation_unit
    shared = -(-(shared_memory_per_block + limits.reserved_shared_memory_per_block) // unit) * unit
    block_limits = _block_limits(limits, warps, registers_per_warp, shared, config, block_barriers)
    blocks = min(block_limits.values())
    if shared > config and block_limits["registers"] > 0:
        raise _config_too_small(limits, config, shared, shared_memory_per_block)
    # By the official calculator's names, in alphabetical order.
    reached = {"blocks" if name == "warps" else name for name, most in block_limits.items() if most == blocks}
    return Occupancy(
        limits,
        threads_per_block,
        registers_per_thread,
        shared_memory_per_block,
        config,
        block_barriers,
        cluster_size,
        blocks,
        tuple(sorted(reached)) if blocks * warps < limits.max_warps_per_sm else (),
        block_limits,
        warps,
        registers_per_warp,
        registers_per_warp * warps,
        shared,
    )


def _block_limits(
    limits: ArchLimits, warps: int, registers_per_warp: int, shared: int, config: int, barriers: int
) -> dict[str, int]:
    """How many blocks each resource alone admits.

    A kernel that uses none of a resource is admitted as often as there are block slots: so the official calculator and
    ncu's launch__occupancy_limit_shared_mem.
    """
    # Each of the SM's four partitions holds a quarter of the registers and whole warps, so the warps that fit come in
    # fours (cuda_occupancy.h, cudaOccMaxBlocksPerSMRegsLimit).
    partitions = limits.warp_allocation_granularity
    warps_by_registers = limits.registers_per_sm // registers_per_warp // partitions * partitions
    found = {
        "registers": warps_by_registers // warps,
        "shared_memory": config // shared if shared else limits.max_blocks_per_sm,
        "warps": limits.max_warps_per_sm // warps,
        "blocks": limits.max_blocks_per_sm,
    }
    if limits.barriers_limit_occupancy:
        found["barriers"] = limits.max_barriers_per_sm // barriers if barriers else limits.max_blocks_per_sm
    return found


def _whole(what: str, value: Any) -> int:
    """``value`` as an int; numpy's integers pass, anything that is not a whole number does not."""
    if type(value) is int:
        return value
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    remedies = ["give a whole number"]
    if hasattr(value, "__len__") and not isinstance(value, str):
        remedies = ["for many configurations at once use gemmprof.occupancy_table"]
    raise OccupancyError(f"{what}: {value!r} is not a whole number", *remedies)


def most_shared_memory_per_block(limits: ArchLimits) -> int:
    """Static plus dynamic bytes that a block can have, the driver's reserve already taken off."""
    return limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block


def smallest_config(limits: ArchLimits, allocated_bytes: int) -> int | None:
    """The smallest carve-out that holds ``allocated_bytes`` (reserve included), None if none does."""
    return min((config for config in limits.shared_memory_configs if config >= allocated_bytes), default=None)


def _beyond(limits: ArchLimits, what: str, value: int, low: int, high: int) -> OccupancyError:
    """The error for a value that is out of bounds."""
    where = f"{value:,} {what}: compute capability {limits.label} allows"
    if value < low or what.endswith("cluster"):
        return OccupancyError(f"{where} {low:,} to {high:,}", f"give {low:,} to {high:,}")
    found = ""
    if what.startswith("bytes") and limits.reserved_shared_memory_per_block:
        found = (
            f"{limits.max_shared_memory_per_block:,} bytes per block, "
            f"of which the driver keeps {limits.reserved_shared_memory_per_block:,}"
        )
    spilled = "; the compiler keeps the rest in local memory" if what.startswith("registers") else ""
    return OccupancyError(f"{where} at most {high:,}", f"give {high:,} or fewer{spilled}", found=found)


def _no_such_cluster(limits: ArchLimits, cluster_size: int) -> OccupancyError:
    if not limits.clusters:
        first = next(row.label for row in LIMITS.values() if row.clusters)
        return OccupancyError(
            f"{cluster_size:,} blocks per cluster: compute capability {limits.label} has no thread block clusters",
            f"clusters exist from {first} on",
        )
    return _beyond(limits, "blocks per cluster", cluster_size, 1, MAX_CLUSTER_SIZE)


def _config_too_small(limits: ArchLimits, config: int, allocated: int, asked: int) -> OccupancyError:
    enough = smallest_config(limits, allocated)
    reserve = limits.reserved_shared_memory_per_block
    needs = f"{asked:,} + {reserve:,} reserved" if reserve else f"{asked:,}"
    return OccupancyError(
        f"a shared memory configuration of {config:,} bytes on compute capability {limits.label} "
        f"is too small for one block, which takes {allocated:,} bytes",
        *([f"the smallest configuration that fits is {enough:,} bytes"] if enough is not None else []),
        found=f"{needs} bytes, in units of {limits.shared_memory_allocation_unit}",
    )


_SUFFIXES = {"": 1, "b": 1, "k": 1024, "kb": 1024, "kib": 1024}


def parse_size(text: str) -> int:
    """Bytes, from a plain number or one with k, KB or KiB for units of 1,024; ValueError if the text is neither."""
    digits = text.strip().lower().replace(",", "").replace("_", "")
    number = digits.rstrip("kib")
    suffix = digits[len(number) :]
    if suffix not in _SUFFIXES:
        raise ValueError(text)
    return int(number) * _SUFFIXES[suffix]
