"""Theoretical occupancy: how many blocks and warps of a kernel can be resident on one SM, and what keeps out more.

The arithmetic is that of Nsight Compute's occupancy calculator, checked against its own answers on every architecture
of `gemmprof.gpu.arch.LIMITS`; the sources of the single rules are given where they are applied. Nothing here imports
more than the standard library. For many configurations at once see `gemmprof.analysis.occupancy.table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

from gemmprof.base.amounts import counted
from gemmprof.base.errors import OccupancyError
from gemmprof.base.spread import grouped
from gemmprof.gpu.arch import LIMITS, MAX_BARRIERS_PER_BLOCK, MAX_CLUSTER_SIZE, limits_of
from gemmprof.model import ArchLimits

# Names of resources in running text, in the order in which people read them; the keys of `Occupancy.block_limits`.
RESOURCE_WORDS: Mapping[str, str] = {
    "registers": "registers", "shared_memory": "shared memory", "warps": "warp slots", "blocks": "block slots",
    "barriers": "barriers",
}  # fmt: skip
RESOURCES = tuple(RESOURCE_WORDS)
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
        threads = counted(self.threads_per_block, "thread")
        registers = counted(self.registers_per_thread, "register")
        shared = counted(self.shared_memory_per_block, "byte")
        return f"{threads} per block, {registers} per thread, {shared} of shared memory per block"

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
        blocks = f"{self.blocks_per_sm} {'block' if self.blocks_per_sm == 1 else 'blocks'} per SM"
        warps = f"{self.active_warps_per_sm} of {self.limits.max_warps_per_sm} warps"
        return f"{blocks}, {warps}, {self.theoretical_percent:.1f} % on {self.limits.label}"


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
    config = limits.shared_memory_configs[0]
    if shared_memory_config is not None:
        config = _whole("bytes of the shared memory configuration", shared_memory_config)
    if config not in limits.shared_memory_configs:
        known = ", ".join(f"{one:,}" for one in sorted(limits.shared_memory_configs))
        raise OccupancyError(
            f"a shared memory configuration of {config:,} bytes: compute capability {limits.label} has none such",
            f"its configurations are {known} bytes",
        )
    most_bytes = most_shared_memory_per_block(limits)
    for what, value, low, high in (
        ("threads per block", threads_per_block, 1, limits.max_threads_per_block),
        ("registers per thread", registers_per_thread, 1, limits.max_registers_per_thread),
        ("bytes of shared memory per block", shared_memory_per_block, 0, most_bytes),
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
    """How many blocks each resource alone admits; one that the kernel uses none of as many as there are block slots: so
    the official calculator and ncu's launch__occupancy_limit_shared_mem.
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


# --- The steps to an occupancy, in the sentences that a person would write down ---------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """How many blocks one resource admits, and why. ``binding``: no resource admits fewer."""

    resource: str
    text: str
    binding: bool


def limited_by(occupancy: Occupancy) -> str:
    """What keeps occupancy down, for example ``registers and warps``; ``nothing`` at 100 %."""
    return "nothing" if occupancy.theoretical_occupancy == 1 else in_words(occupancy.binding)


def in_words(resources: Sequence[str]) -> str:
    """Resources as people name them: ``registers, shared memory and warps``."""
    words = [RESOURCE_WORDS[name] for name in resources]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def explain(occupancy: Occupancy) -> tuple[Step, ...]:
    """The steps in the order registers, shared memory, warps, blocks, barriers."""
    limits, threads, warps = occupancy.limits, occupancy.threads_per_block, occupancy.warps_per_block
    padding = warps * limits.warp_size - threads
    idle = f" ({counted(padding, 'lane')} of the last warp idle)" if padding else ""
    barriers = f"{counted(occupancy.block_barriers, 'barrier')} a block, of {limits.max_barriers_per_sm}"
    sentences = {
        "registers": _registers(occupancy),
        "shared_memory": _shared_memory(occupancy),
        "warps": f"{threads:,} of {limits.max_warps_per_sm * limits.warp_size:,} threads = "
        f"{warps} of {limits.max_warps_per_sm} warps{idle}",
        "blocks": f"an SM has {limits.max_blocks_per_sm} block slots",
        "barriers": barriers if occupancy.block_barriers else "no barrier: as many as there are block slots",
    }
    texts = {name: f"{sentences[name]} → {counted(n, 'block')}" for name, n in occupancy.block_limits.items()}
    return tuple(Step(name, text, name in occupancy.binding) for name, text in texts.items())


def explain_together(occupancies: Iterable[Occupancy]) -> dict[Step, list[str]]:
    """Each distinct step of one configuration with the architectures that have it, in the order of `explain`."""
    labels = grouped((step, one.limits.label) for one in occupancies for step in explain(one))
    return dict(sorted(labels.items(), key=lambda item: RESOURCES.index(item[0].resource)))


def conclusion(occupancy: Occupancy) -> str:
    """``1 block × 32 warps = 32 of 48 warps, 66.7 %: limited by registers and warps``."""
    if occupancy.blocks_per_sm == 0:
        return (
            f"no block fits: its {occupancy.registers_allocated_per_block:,} registers exceed what an SM can allocate "
            f"of {occupancy.limits.registers_per_sm:,}; the launch fails"
        )
    blocks = counted(occupancy.blocks_per_sm, "block")
    full = occupancy.theoretical_occupancy == 1
    why = "every warp slot is taken" if full else f"limited by {limited_by(occupancy)}"
    return (
        f"{blocks} × {counted(occupancy.warps_per_block, 'warp')} = {occupancy.active_warps_per_sm} of "
        f"{occupancy.limits.max_warps_per_sm} warps, {occupancy.theoretical_percent:.1f} %: {why}"
    )


def _registers(occupancy: Occupancy) -> str:
    limits = occupancy.limits
    exact = occupancy.registers_per_thread * limits.warp_size
    per_warp = occupancy.registers_allocated_per_warp
    warps = occupancy.warps_per_block
    rounded = f" → rounded to {per_warp:,} a warp" if per_warp != exact else " a warp"
    times = f" → × {counted(warps, 'warp')} = {occupancy.registers_allocated_per_block:,} a block"
    fitting = limits.registers_per_sm // per_warp
    whole = fitting // limits.warp_allocation_granularity * limits.warp_allocation_granularity
    fours = f", {whole} in whole fours" if whole != fitting else ""
    registers = counted(occupancy.registers_per_thread, "register")
    return (
        f"{registers} × {limits.warp_size} threads = {exact:,}{rounded}{times}; "
        f"{limits.registers_per_sm:,} hold {fitting} such warps{fours}"
    )


def _shared_memory(occupancy: Occupancy) -> str:
    limits = occupancy.limits
    reserve = limits.reserved_shared_memory_per_block
    asked = occupancy.shared_memory_per_block
    allocated = occupancy.shared_memory_allocated_per_block
    if allocated == 0:
        return "no shared memory: as many as there are block slots"
    total = f"{asked:,} + {reserve:,} reserved bytes" if reserve else f"{asked:,} bytes"
    exact = f" = {allocated:,} a block" if reserve else ""
    rounded = f" → rounded to {allocated:,} a block" if allocated != asked + reserve else exact
    return f"{total}{rounded}, of {occupancy.shared_memory_config:,}"


# --- Advice -----------------------------------------------------------------------------------------------------------
# Every suggestion is a complete configuration that went through the calculator; its text is written from the answer.

# Suggestions never ask for fewer registers per thread; below that hardly any kernel compiles without spills.
MIN_USEFUL_REGISTERS = 16


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change and what the calculator answers for it."""

    # what changes: ``registers``, ``shared_memory``, ``threads``, ``shared_memory_config``, ``barriers``
    resources: tuple[str, ...]
    change: str  # the change as an instruction, for example ``≤ 32 registers per thread``
    occupancy: Occupancy  # the answer with the change made

    def __str__(self) -> str:
        after = self.occupancy
        return f"{self.change}: {counted(after.blocks_per_sm, 'block')}, {after.theoretical_percent:.1f} %"


def suggest(present: Occupancy) -> tuple[Suggestion, ...]:
    """Changes that raise occupancy: fewer registers, less shared memory or both at once, another carve-out, another
    block size. Of each kind the smallest change that helps, and the smallest that reaches the most it can.

    Empty at 100 %. A change of block size assumes that registers per thread and shared memory per block stay; a kernel
    whose tile follows its block size has to be checked again with the new numbers.
    """
    if present.theoretical_occupancy == 1:
        return ()
    found = [*_carve_outs(present), *_same_threads(present), *_other_threads(present)]
    distinct: dict[str, Suggestion] = {}
    for suggestion in found:
        distinct.setdefault(suggestion.change, suggestion)
    return tuple(distinct.values())


def _changed(present: Occupancy, **changes: int | None) -> Occupancy | None:
    """The configuration with some values replaced (None: as they are); None if no device of its kind accepts it."""
    try:
        return present.changed(**{name: value for name, value in changes.items() if value is not None})
    except OccupancyError:
        return None


def _same_threads(present: Occupancy) -> list[Suggestion]:
    """Fewer registers, bytes and barriers, as many of them as it takes, for the next block and for the last."""
    most = min(present.block_limits["warps"], present.block_limits["blocks"])
    more = range(present.blocks_per_sm + 1, most + 1)
    nearest = (_reach(present, blocks) for blocks in more[:1])
    # Not every number can be reached: a small carve-out holds the driver's reserve for some blocks only.
    best = next((found for blocks in reversed(more) if (found := _reach(present, blocks)) is not None), None)
    return [suggestion for suggestion in (*nearest, best) if suggestion is not None]


def _reach(present: Occupancy, blocks: int) -> Suggestion | None:
    """The smallest reductions with which ``blocks`` are resident; None if none get there."""
    resources: list[str] = []
    words: list[str] = []
    registers = shared = barriers = None
    for resource, admitted in present.block_limits.items():
        if admitted >= blocks:
            continue
        if resource == "registers":
            # The most with which the registers admit so many blocks.
            fewer = range(present.registers_per_thread - 1, MIN_USEFUL_REGISTERS - 1, -1)
            answers = ((n, _changed(present, registers_per_thread=n)) for n in fewer)
            admitting = (n for n, after in answers if after and after.block_limits["registers"] >= blocks)
            registers = next(admitting, None)
            if registers is None:
                return None
            words.append(f"≤ {registers} registers per thread")
        elif resource == "shared_memory":
            # The most bytes with which the carve-out admits so many blocks.
            limits = present.limits
            unit, reserve = limits.shared_memory_allocation_unit, limits.reserved_shared_memory_per_block
            left = present.shared_memory_config // blocks // unit * unit - reserve
            if left < 0:
                return None
            shared = min(left, most_shared_memory_per_block(limits))
            words.append(f"≤ {shared:,} bytes of shared memory per block" if shared else "no shared memory")
        else:
            barriers = present.limits.max_barriers_per_sm // blocks
            words.append(f"≤ {barriers} barriers per block" if barriers > 1 else "one barrier per block")
        resources.append(resource)
    after = _changed(
        present, registers_per_thread=registers, shared_memory_per_block=shared, block_barriers=barriers
    )
    if after is None or not resources or after.theoretical_occupancy <= present.theoretical_occupancy:
        return None
    return Suggestion(tuple(resources), " and ".join(words), after)


def _carve_outs(present: Occupancy) -> list[Suggestion]:
    """The smallest larger carve-out that helps."""
    for config in sorted(present.limits.shared_memory_configs):
        if config <= present.shared_memory_config:
            continue
        after = _changed(present, shared_memory_config=config)
        if after is not None and after.theoretical_occupancy > present.theoretical_occupancy:
            return [Suggestion(("shared_memory_config",), f"a carve-out of {config:,} bytes", after)]
    return []


def _other_threads(present: Occupancy) -> list[Suggestion]:
    """The nearest smaller and larger block sizes (whole warps) that help, and the nearest of the best ones."""
    limits = present.limits
    better: list[tuple[int, Occupancy]] = []
    for threads in range(limits.warp_size, limits.max_threads_per_block + 1, limits.warp_size):
        after = _changed(present, threads_per_block=threads)
        if after is not None and after.theoretical_occupancy > present.theoretical_occupancy:
            better.append((threads, after))
    smaller = [item for item in better if item[0] < present.threads_per_block]
    larger = [item for item in better if item[0] > present.threads_per_block]
    nearest = sorted(better, key=lambda item: abs(item[0] - present.threads_per_block))
    # Of equals the nearest stays first.
    best = sorted(nearest, key=lambda item: -item[1].theoretical_occupancy)
    picked = dict.fromkeys([*smaller[-1:], *larger[:1], *best[:1]])
    return [Suggestion(("threads",), f"{threads:,} threads per block", after) for threads, after in picked]
