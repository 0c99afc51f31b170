"""The steps from a configuration to its occupancy, in the sentences that a person would write down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemmprof.analysis.occupancy.calculator import Occupancy, most_shared_memory_per_block
from gemmprof.base.amounts import counted
from gemmprof.base.errors import OccupancyError
from gemmprof.base.spread import grouped

# Names of the resources in running text.
RESOURCE_WORDS: Mapping[str, str] = {
    "registers": "registers",
    "shared_memory": "shared memory",
    "warps": "warp slots",
    "blocks": "block slots",
    "barriers": "barriers",
}


@dataclass(frozen=True, slots=True)
class Step:
    """How many blocks one resource admits, and why. ``binding``: no resource admits fewer."""

    resource: str
    text: str
    blocks: int
    binding: bool


def limited_by(occupancy: Occupancy) -> str:
    """What keeps occupancy down, for example ``registers and warps``; ``nothing`` at 100 %."""
    if occupancy.theoretical_occupancy == 1:
        return "nothing"
    return in_words(occupancy.binding)


def in_words(resources: Sequence[str]) -> str:
    """Resources as people name them: ``registers, shared memory and warps``."""
    words = [RESOURCE_WORDS[name] for name in resources]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def explain(occupancy: Occupancy) -> tuple[Step, ...]:
    """The steps in the order registers, shared memory, warps, blocks, barriers."""
    sentences = {
        "registers": _registers(occupancy),
        "shared_memory": _shared_memory(occupancy),
        "warps": _warps(occupancy),
        "blocks": f"an SM has {occupancy.limits.max_blocks_per_sm} block slots",
        "barriers": _barriers(occupancy),
    }
    binding = occupancy.binding
    return tuple(
        Step(name, f"{sentences[name]} → {counted(blocks, 'block')}", blocks, name in binding)
        for name, blocks in occupancy.block_limits.items()
    )


def explain_together(occupancies: Iterable[Occupancy]) -> dict[Step, list[str]]:
    """Each distinct step of one configuration with the architectures that have it, in the order of `explain`."""
    labels = grouped((step, one.limits.label) for one in occupancies for step in explain(one))
    order = list(RESOURCE_WORDS)
    return dict(sorted(labels.items(), key=lambda item: order.index(item[0].resource)))


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
    rounded = f" → rounded to {allocated:,} a block" if allocated != asked + reserve else ""
    if reserve and not rounded:
        rounded = f" = {allocated:,} a block"
    return f"{total}{rounded}, of {occupancy.shared_memory_config:,}"


def _warps(occupancy: Occupancy) -> str:
    limits = occupancy.limits
    padding = occupancy.warps_per_block * limits.warp_size - occupancy.threads_per_block
    idle = f" ({counted(padding, 'lane')} of the last warp idle)" if padding else ""
    return (
        f"{occupancy.threads_per_block:,} of {limits.max_warps_per_sm * limits.warp_size:,} threads = "
        f"{occupancy.warps_per_block} of {limits.max_warps_per_sm} warps{idle}"
    )


def _barriers(occupancy: Occupancy) -> str:
    if occupancy.block_barriers == 0:
        return "no barrier: as many as there are block slots"
    return (
        f"{counted(occupancy.block_barriers, 'barrier')} a block, of {occupancy.limits.max_barriers_per_sm}"
    )


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
            shared = _shared_memory_for(present, blocks)
            if shared is None:
                return None
            words.append(f"≤ {shared:,} bytes of shared memory per block" if shared else "no shared memory")
        else:
            barriers = present.limits.max_barriers_per_sm // blocks
            words.append(f"≤ {barriers} barriers per block" if barriers > 1 else "one barrier per block")
        resources.append(resource)
    after = _changed(
        present,
        registers_per_thread=registers,
        shared_memory_per_block=shared,
        block_barriers=barriers,
    )
    if after is None or not resources or after.theoretical_occupancy <= present.theoretical_occupancy:
        return None
    return Suggestion(tuple(resources), " and ".join(words), after)


def _shared_memory_for(present: Occupancy, blocks: int) -> int | None:
    """The most bytes per block with which the carve-out admits ``blocks``; None if even none is too much."""
    limits = present.limits
    unit = limits.shared_memory_allocation_unit
    allocated = present.shared_memory_config // blocks // unit * unit
    bytes_left = min(
        allocated - limits.reserved_shared_memory_per_block, most_shared_memory_per_block(limits)
    )
    return bytes_left if bytes_left >= 0 else None


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
    if not better:
        return []
    smaller = [item for item in better if item[0] < present.threads_per_block]
    larger = [item for item in better if item[0] > present.threads_per_block]
    highest = max(after.theoretical_occupancy for _, after in better)
    best = [item for item in better if item[1].theoretical_occupancy == highest]
    nearest_best = min(best, key=lambda item: abs(item[0] - present.threads_per_block))
    picked = dict.fromkeys([*(smaller[-1:]), *(larger[:1]), nearest_best])
    return [Suggestion(("threads",), f"{threads:,} threads per block", after) for threads, after in picked]
