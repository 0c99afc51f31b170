"""The steps from a configuration to its occupancy, in the sentences that a person would write down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemmprof.analysis.occupancy.calculator import Occupancy
from gemmprof.base.amounts import counted

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


@dataclass(frozen=True, slots=True)
class SharedStep:
    """A step that several architectures have in common, with their labels."""

    step: Step
    architectures: tuple[str, ...]


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


def explain_together(occupancies: Iterable[Occupancy]) -> tuple[SharedStep, ...]:
    """The steps of one configuration on several architectures, each distinct step once, in the order of `explain`."""
    labels: dict[Step, list[str]] = {}
    for occupancy in occupancies:
        for step in explain(occupancy):
            labels.setdefault(step, []).append(occupancy.limits.label)
    order = list(RESOURCE_WORDS)
    return tuple(
        SharedStep(step, tuple(labels[step]))
        for step in sorted(labels, key=lambda step: order.index(step.resource))
    )


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
        f"{occupancy.limits.max_warps_per_sm} warps, {100 * occupancy.theoretical_occupancy:.1f} %: {why}"
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
