"""Roofline: achieved FLOP/s against arithmetic intensity, under the roofs that Nsight Compute draws.

Compute roofs are FP32, FP64, FP16 and one per tensor type that the kernel uses; memory roofs are device memory, L2,
L1 and (ours, ncu has none) shared memory. One point per used precision and memory level.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.model import NotCollected

NAME = "roofline"
TITLE = "Roofline"


@dataclass(frozen=True, slots=True)
class ComputeRoof:
    """Peak rate of one kind of arithmetic, FLOP/s (operations/s for integer tensor types).

    ``key`` is ``fp32``, ``fp64``, ``fp16`` or the tensor path (``tensor:src_tf32_dst_fp32``); ``label`` readable.
    """

    key: str
    label: str
    peak: float
    achieved: float | None
    """What the kernel reached; None if the counters are absent, 0 if it does none of this arithmetic."""

    @property
    def percent(self) -> float | None:
        """Achieved in per cent of the peak."""
        return None if self.achieved is None or self.peak <= 0 else 100 * self.achieved / self.peak


@dataclass(frozen=True, slots=True)
class MemoryRoof:
    """Peak bandwidth of one memory level in byte/s, and what the kernel moved.

    ``level`` is ``dram``, ``l2``, ``l1`` or ``shared``.
    """

    level: str
    label: str
    peak: float
    achieved: float | None

    @property
    def percent(self) -> float | None:
        """Achieved in per cent of the peak."""
        return None if self.achieved is None or self.peak <= 0 else 100 * self.achieved / self.peak

    def ridge(self, compute: ComputeRoof) -> float:
        """Intensity (FLOP/byte) from which on this level no longer limits that arithmetic."""
        return compute.peak / self.peak


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The kernel under one compute roof and one memory roof.

    Attributes:
        intensity: FLOP per byte of traffic at this level.
        achieved: FLOP/s.
        attainable: min(compute peak, intensity x bandwidth peak), FLOP/s.
        ridge: intensity where the two roofs meet.
        bound: ``memory`` left of the ridge, ``compute`` right of it.
    """

    compute: ComputeRoof
    memory: MemoryRoof
    intensity: float
    achieved: float
    attainable: float
    ridge: float
    bound: str

    @property
    def headroom(self) -> float:
        """How many times faster the kernel could be under these two roofs: attainable / achieved."""
        return self.attainable / self.achieved

    @property
    def percent(self) -> float:
        """Achieved in per cent of what is attainable at this intensity."""
        return 100 * self.achieved / self.attainable


@dataclass(frozen=True, slots=True)
class Roofline:
    """All roofs of the device at the measured clocks, and the kernel's points (most work first)."""

    compute_roofs: tuple[ComputeRoof, ...]
    memory_roofs: tuple[MemoryRoof, ...]
    points: tuple[RooflinePoint, ...]
    duration_ns: float | None
    notes: tuple[str, ...] = ()
    """What a reader must know of this device: 'compute capability 12.1 has no device-memory counters'."""
    missing: NotCollected | None = None

    def point(self, key: str, level: str) -> RooflinePoint | None:
        """The point of this precision and memory level, or None."""
        for point in self.points:
            if point.compute.key == key and point.memory.level == level:
                return point
        return None

    @property
    def main(self) -> ComputeRoof | None:
        """The arithmetic that the kernel does most of relative to its roof; None if it does none."""
        used = [roof for roof in self.compute_roofs if roof.achieved]
        return max(used, key=lambda roof: roof.percent or 0.0, default=None)


RESULT = Roofline
