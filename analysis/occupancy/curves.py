"""The three classic curves: resident warps over block size, registers and shared memory, all else as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemmprof.analysis.occupancy.calculator import (
    Occupancy,
    most_shared_memory_per_block,
    occupancy,
    smallest_config,
)
from gemmprof.base.errors import OccupancyError

SHARED_MEMORY_STEP = 512  # bytes between two points of the curve over shared memory


@dataclass(frozen=True, slots=True)
class Curve:
    """Resident warps per SM over one resource.

    Attributes:
        resource: ``threads_per_block``, ``registers_per_thread`` or ``shared_memory_per_block``.
        x: values of the resource, ascending; the present one is among them.
        warps: resident warps at each; 0 where no block fits.
        present: the present value of the resource.
        max_warps: warp slots of the SM.
    """

    resource: str
    x: tuple[int, ...]
    warps: tuple[int, ...]
    present: int
    max_warps: int

    @property
    def percent(self) -> tuple[float, ...]:
        """Occupancy at each x, 0 to 100."""
        return tuple(100 * warps / self.max_warps for warps in self.warps)


def curves(present: Occupancy) -> tuple[Curve, Curve, Curve]:
    """Occupancy over threads per block (whole warps), registers per thread and shared memory per block."""
    limits = present.limits
    return (
        _curve(
            present,
            "threads_per_block",
            range(limits.warp_size, limits.max_threads_per_block + 1, limits.warp_size),
        ),
        _curve(present, "registers_per_thread", range(1, limits.max_registers_per_thread + 1)),
        _curve(
            present,
            "shared_memory_per_block",
            range(0, most_shared_memory_per_block(limits) + 1, SHARED_MEMORY_STEP),
        ),
    )


def _curve(present: Occupancy, resource: str, values: Iterable[int]) -> Curve:
    here = getattr(present, resource)
    x = tuple(sorted({*values, here}))
    warps = tuple(resident_warps(present, resource, value) for value in x)
    return Curve(resource, x, warps, here, present.limits.max_warps_per_sm)


def resident_warps(present: Occupancy, resource: str, value: int) -> int:
    """Warps per SM with one value of the configuration replaced; 0 where the configuration cannot run.

    A block that outgrows the carve-out gets the smallest one that holds it, as the driver does at a launch; ncu's own
    curves over shared memory do the same.
    """
    configuration = {name: getattr(present, name) for name in _CONFIGURATION}
    configuration[resource] = value
    if resource == "shared_memory_per_block" and value > present.shared_memory_per_block:
        configuration["shared_memory_config"] = _grown(present, value)
    try:
        return occupancy(present.compute_capability, **configuration).active_warps_per_sm
    except OccupancyError:
        return 0


def _grown(present: Occupancy, shared_memory_per_block: int) -> int:
    """The carve-out of a launch with so many bytes per block: the present one, or the smallest that holds a block."""
    needed = shared_memory_per_block + present.limits.reserved_shared_memory_per_block
    enough = smallest_config(present.limits, needed)
    return present.shared_memory_config if enough is None else max(present.shared_memory_config, enough)


_CONFIGURATION = (
    "threads_per_block",
    "registers_per_thread",
    "shared_memory_per_block",
    "shared_memory_config",
    "block_barriers",
    "cluster_size",
)
