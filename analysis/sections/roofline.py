"""Roofline: achieved FLOP/s against arithmetic intensity, under the roofs that Nsight Compute draws.

Compute roofs are FP32, FP64, FP16 and one per tensor type that the kernel uses; memory roofs are device memory, L2,
L1 and (ours, ncu has none) shared memory. One point per used precision and memory level.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis import opcodes
from gemmprof.analysis.figure import derived, figure, quotient, total
from gemmprof.analysis.opcodes import MatrixProduct
from gemmprof.analysis.sections.by_line import constants_set
from gemmprof.analysis.sections.instruction_mix import finer_counts
from gemmprof.analysis.sections.memory_chart import shared_bandwidth, shared_peak
from gemmprof.gpu.arch import LIMITS, has_tensor_cores, tensor_rate
from gemmprof.model import ArchLimits, KernelProfile, NotCollected

NAME = "roofline"
TITLE = "Roofline"
GROUP = metrics.ROOFLINE

FP32, FP64, FP16 = "fp32", "fp64", "fp16"
TENSOR_PREFIX = "tensor:"
DRAM, L2, L1, SHARED = "dram", "l2", "l1", "shared"

L2_BYTES_PER_CYCLE = 32  # bytes that one L2 slice sends to the crossbar in one active cycle
L1_BYTES_PER_CYCLE = 128  # bytes that one L1 writes back to registers in one active cycle


@dataclass(frozen=True, slots=True)
class ComputeRoof:
    """Peak rate of one kind of arithmetic, FLOP/s (operations/s for integer tensor types)."""

    key: str  # ``fp32``, ``fp64``, ``fp16`` or the tensor path (``tensor:src_tf32_dst_fp32``)
    label: str
    peak: float = figure("Peak", "flop/s")
    # what the kernel reached; None if the counters are absent, 0 if it does none of this arithmetic
    achieved: float | None = figure("Achieved", "flop/s")
    # True where all that the counters saw were instructions that set registers (HFMA2 Rx, -RZ, RZ, …)
    only_constants: bool = False

    percent = derived("Share of the peak", "%")(quotient("achieved", "peak", 100))

    @property
    def computes(self) -> bool:
        """Whether the kernel does this arithmetic."""
        return bool(self.achieved) and not self.only_constants


@dataclass(frozen=True, slots=True)
class MemoryRoof:
    """Peak bandwidth of one memory level in byte/s, and what the kernel moved."""

    level: str  # ``dram``, ``l2``, ``l1`` or ``shared``
    label: str
    peak: float = figure("Peak bandwidth", "byte/s")
    achieved: float | None = figure("Bandwidth", "byte/s")

    percent = derived("Share of the peak bandwidth", "%")(quotient("achieved", "peak", 100))

    def ridge(self, compute: ComputeRoof) -> float:
        """Intensity (FLOP/byte) from which on this level no longer limits that arithmetic."""
        return compute.peak / self.peak


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The kernel under one compute roof and one memory roof."""

    compute: ComputeRoof
    memory: MemoryRoof
    bound: str  # ``memory`` left of the ridge, ``compute`` right of it
    # FLOP per byte of traffic at this level
    intensity: float = figure("Intensity", "flop/byte")
    achieved: float = figure("Achieved", "flop/s")
    attainable: float = figure(
        "Attainable", "flop/s", "the smaller of the peak and intensity × peak bandwidth"
    )
    # intensity where the two roofs meet
    ridge: float = figure("Ridge", "flop/byte", "above it the memory level no longer limits")

    @property
    def label(self) -> str:
        """Arithmetic and memory level in words."""
        return f"{self.compute.label}, {self.memory.label}"

    @derived("Headroom", "×", "how many times faster these two roofs would allow")
    def headroom(self) -> float:
        """How many times faster the kernel could be under these two roofs: attainable / achieved."""
        return self.attainable / self.achieved

    @derived("Reached", "%", "of what is attainable at this intensity")
    def percent(self) -> float:
        """Achieved in per cent of what is attainable at this intensity."""
        return 100 * self.achieved / self.attainable


@dataclass(frozen=True, slots=True)
class Roofline:
    """All roofs of the device at the measured clocks, and the kernel's points (most work first)."""

    compute_roofs: tuple[ComputeRoof, ...]
    memory_roofs: tuple[MemoryRoof, ...]
    points: tuple[RooflinePoint, ...]
    notes: tuple[str, ...] = ()
    """What a reader must know of this device: 'compute capability 12.1 has no device-memory counters'."""
    missing: NotCollected | None = None
    tensor_counted: bool = True  # whether the report counts what tensor cores did, if the GPU has any

    @property
    def computes(self) -> bool | None:
        """Whether the kernel does floating-point (or tensor) arithmetic; None where not every kind was counted."""
        if any(roof.computes for roof in self.compute_roofs):
            return True
        counted = {roof.key for roof in self.compute_roofs if roof.achieved is not None}
        return False if self.tensor_counted and counted.issuperset((FP32, FP64, FP16)) else None

    @property
    def main(self) -> ComputeRoof | None:
        """The arithmetic that the kernel does most of relative to its roof; None if it does none."""
        used = [roof for roof in self.compute_roofs if roof.computes]
        return max(used, key=lambda roof: roof.percent or 0.0, default=None)

    @property
    def remedy(self) -> str:
        """The ncu option that collects what a point needs; '' where there are points, or no arithmetic was counted."""
        if self.main_points or self.computes is False:
            return ""
        tensor = self.computes is None and not self.tensor_counted
        return "--section SpeedOfLight_HierarchicalTensorRooflineChart" if tensor else "--set roofline"

    @property
    def main_points(self) -> tuple[RooflinePoint, ...]:
        """The points of that arithmetic, one a memory level."""
        main = self.main
        return tuple(point for point in self.points if main is not None and point.compute.key == main.key)

    @property
    def tightest(self) -> RooflinePoint | None:
        """The one of them that limits most."""
        return max(self.main_points, key=lambda point: point.percent, default=None)


# The factors count operations: a fused multiply-add as two, a packed instruction for each of its halves.
_SCALAR: tuple[tuple[str, str, dict[str, int]], ...] = (
    (FP32, "FP32", {"fadd": 1, "fmul": 1, "ffma": 2, "fadd2": 2, "fmul2": 2, "ffma2": 4}),
    (FP64, "FP64", {"dadd": 1, "dmul": 1, "dfma": 2}),
    (FP16, "FP16 (no tensor core)", {"hadd": 2, "hmul": 2, "hfma": 4}),
)
_PEAK_OPERATION = {FP32: "ffma", FP64: "dfma", FP16: "hfma"}
# FP16 below this per cent of its peak is taken for no arithmetic where the report has no source: see opcodes.
MOVING_CONSTANTS = 1.0
# Packed FP32 arithmetic of compute capability 10.0 on; reports of other GPUs have no counter of it.
_LATER_OPERATIONS = frozenset({"fadd2", "fmul2", "ffma2"})


def analyse(profile: KernelProfile) -> Roofline | NotCollected:
    """Roofs and points of one launch."""
    compute_roofs = (*_scalar_roofs(profile), *_tensor_roofs(profile))
    memory_roofs = tuple(_memory_roofs(profile))
    if not compute_roofs or not memory_roofs:
        return GROUP.not_collected(profile.metrics)
    used = sorted((roof for roof in compute_roofs if roof.computes), key=lambda roof: -(roof.achieved or 0.0))
    points = (_point(roof, memory) for roof in used for memory in memory_roofs)
    tensor_counted = (
        not has_tensor_cores(profile.device.name, profile.device.compute_capability)
        or any(metrics.tensor_paths(profile.metrics))
        or any(metrics.tensor_by_instruction(profile.metrics))
        or metrics.EXECUTED_PER_OPCODE in profile.instances
        or any(_executed_with_modifiers(profile))
    )
    known, notes = tuple(filter(None, points)), tuple(_notes(profile, compute_roofs))
    missing = GROUP.incomplete(profile.metrics)
    return Roofline(compute_roofs, memory_roofs, known, notes, missing, tensor_counted)


def _product(*factors: float | None) -> float | None:
    """The product, or None if a factor is absent, or below 0 as no rate or clock of a sound report is."""
    result: float = 1
    for factor in factors:
        if factor is None or factor < 0:
            return None
        result = result * factor
    return result


def _scalar_roofs(profile: KernelProfile) -> Iterable[ComputeRoof]:
    clock = profile.number(metrics.SM_ELAPSED_CLOCK)
    for key, label, factors in _SCALAR:
        operation = _PEAK_OPERATION[key]
        if peak := _product(factors[operation], profile.number(metrics.peak_per_cycle(operation)), clock):
            achieved = _scalar_achieved(profile, factors)
            constants = key == FP16 and _only_constants(profile, factors, achieved, peak)
            yield ComputeRoof(key, label, peak, achieved, constants)


def _only_constants(
    profile: KernelProfile, factors: dict[str, int], achieved: float | None, peak: float
) -> bool:
    """Whether FP16 counters saw nothing but registers being set.

    The source tells it exactly: all thread instructions of these kinds were such ones. Without it a rate below
    `MOVING_CONSTANTS` per cent of the peak is taken for them.
    """
    if not achieved:
        return False
    constants = constants_set(profile, metrics.THREADS_PREDICATED_BY_ADDRESS)
    counted = [profile.number(metrics.executed_per_cycle(operation)) for operation in factors]
    cycles = profile.number(metrics.ELAPSED_CYCLES)
    if constants is None or cycles is None:
        return 100 * achieved < MOVING_CONSTANTS * peak
    # Rates were counted in another pass than the instructions, so the two agree within a little.
    return sum(count or 0.0 for count in counted) * cycles <= 1.05 * constants


def _scalar_achieved(profile: KernelProfile, factors: dict[str, int]) -> float | None:
    """Operations per second; None if a counter that every architecture has is absent, or one is below 0."""
    per_cycle = 0.0
    for operation, factor in factors.items():
        count = profile.number(metrics.executed_per_cycle(operation))
        if (count is None and operation not in _LATER_OPERATIONS) or (count or 0.0) < 0:
            return None
        per_cycle = per_cycle + factor * (0 if count is None else count)
    return _product(per_cycle, profile.number(metrics.SMSP_CLOCK))


def _tensor_roofs(profile: KernelProfile) -> Iterable[ComputeRoof]:
    """One roof per tensor path that the kernel uses: from ncu's counters of operations, else from the instructions."""
    counters = map(metrics.tensor_operations_per_cycle, metrics.tensor_paths(profile.metrics))
    if any(profile.number(counter) is not None for counter in counters):
        yield from _counted_tensor_roofs(profile)
    elif has_tensor_cores(profile.device.name, profile.device.compute_capability):
        yield from _reckoned_tensor_roofs(profile) or _tensor_roofs_by_instruction(profile)


def _counted_tensor_roofs(profile: KernelProfile) -> Iterable[ComputeRoof]:
    """From compute capability 9.0 on, ``src_*`` counters are totals over the ``op_*`` ones of the same source type;
    a total stands only where no path that it covers was used.
    """
    clock = profile.number(metrics.SM_ELAPSED_CLOCK)
    achieved: dict[str, float] = {}
    for path in metrics.tensor_paths(profile.metrics):
        if rate := _product(profile.number(metrics.tensor_operations_per_cycle(path)), clock):
            achieved[path] = rate
    sources = [f"{path[path.find('src_') :]}_" for path in achieved]
    for path, rate in sorted(achieved.items()):
        peak = _product(profile.number(metrics.tensor_operations_peak(path)), clock)
        # Beside itself the counter includes what others count.
        covers = path.startswith("src_") and sum(source.startswith(f"{path}_") for source in sources) > 1
        if peak and not covers:
            yield ComputeRoof(f"{TENSOR_PREFIX}{path}", tensor_label(path), peak, rate)


def _reckoned_tensor_roofs(profile: KernelProfile) -> list[ComputeRoof]:
    """Of each kind of matrix product: its operations times how often it ran, under the chip's rate for its type."""
    limits = LIMITS.get(profile.device.compute_capability)
    clock = profile.first_number((metrics.SM_ELAPSED_CLOCK, metrics.SMSP_CLOCK, metrics.SM_CLOCK))
    sms = profile.named(profile.device.sm_count, metrics.DEVICE_SMS)
    if limits is None or not clock or not sms:
        return []
    per_second: dict[str, tuple[float, float]] = {}
    for product, rate in _products_per_second(profile):
        achieved, before = rate * product.operations, per_second.get(product.path)
        peak = clock * sms * _tensor_rate(profile, limits, product)
        per_second[product.path] = achieved if before is None else before[0] + achieved, peak
    used = [
        (path, peak, achieved) for path, (achieved, peak) in sorted(per_second.items()) if peak and achieved
    ]
    return [
        ComputeRoof(f"{TENSOR_PREFIX}{path}", tensor_label(path), peak, achieved)
        for path, peak, achieved in used
    ]


def _tensor_rate(profile: KernelProfile, limits: ArchLimits, product: MatrixProduct) -> float:
    """The most operations of this kind that an SM does in a cycle, those that sparse operands skip included."""
    if product.by_warpgroup:
        rate = limits.fast_tensor.get(product.source, 0.0)
    else:
        rate = tensor_rate(profile.device.name, limits, product.source, product.sums)
    return rate * (2.0 if product.sparse else 1.0)


def _products_per_second(profile: KernelProfile) -> Iterable[tuple[MatrixProduct, float]]:
    """The kinds of matrix products of a launch, and how many warp instructions of each ran a second."""
    duration = profile.number(metrics.DURATION)
    counted = _executed_with_modifiers(profile)
    executed = ((opcodes.matrix_product(opcode), count) for opcode, count in counted)
    found = [(product, count) for product, count in executed if product is not None and count]
    if found:
        return [(product, count / duration * 1e9) for product, count in found] if duration else []
    # How often each ran was not counted. Where the code has one kind alone, what the pipe did is of that kind.
    kinds = {opcodes.matrix_product(opcodes.opcode_of(line.sass)) for line in profile.source.instructions}
    kinds.discard(None)
    only = kinds.pop() if len(kinds) == 1 else None
    if only is None:
        return []
    a_cycle, clock = metrics.TENSOR_INSTRUCTIONS_PER_CYCLE, metrics.SM_ELAPSED_CLOCK
    rate = _product(profile.number(a_cycle), profile.number(clock))
    return [(only, rate if rate is not None else _busy_rate(profile, only))]


def _busy_rate(profile: KernelProfile, product: MatrixProduct) -> float:
    """Products a second of the only kind that a kernel has, from how busy the pipe was; 0 where that does not tell.

    Where faster instructions exist, these do not fill the pipe, and how much of it they take is not known.
    """
    limits = LIMITS.get(profile.device.compute_capability)
    percent, clock = profile.first_number(metrics.TENSOR_BUSY), profile.number(metrics.SM_CLOCK)
    sms = profile.named(profile.device.sm_count, metrics.DEVICE_SMS)
    if limits is None or limits.fast_tensor or percent is None or not clock or not sms:
        return 0.0
    peak = _tensor_rate(profile, limits, product)
    return percent / 100.0 * clock * sms * peak / product.operations


def _executed_with_modifiers(profile: KernelProfile) -> Iterable[tuple[str, float]]:
    """Opcodes with their modifiers, and how often warps executed them; nothing where it was not counted."""
    counts = finer_counts(profile, metrics.EXECUTED_PER_MODIFIER) or {}
    return [(opcode, total(counts, [opcode])) for opcode in counts]


def _tensor_roofs_by_instruction(profile: KernelProfile) -> Iterable[ComputeRoof]:
    """As Nsight Compute up to 2024 draws them: so many operations for each instruction of the tensor pipe.

    That pipe also runs other instructions (HFMA2.MMA): where the code is known to have no matrix product there is none.
    """
    clock = profile.number(metrics.SM_ELAPSED_CLOCK)
    code = profile.source.instructions
    if code and not any(opcodes.matrix_product(opcodes.opcode_of(line.sass)) for line in code):
        return
    for counted, most in metrics.tensor_by_instruction(profile.metrics):
        achieved, peak = _product(profile.number(counted), clock), _product(profile.number(most), clock)
        if achieved and peak:
            operations = counted.rpartition("_x")[2]
            label = f"Tensor (as ncu counts them: {operations} operations an instruction)"
            yield ComputeRoof(f"{TENSOR_PREFIX}{counted}", label, peak, achieved)


def tensor_label(path: str) -> str:
    """A tensor path in words: ``HGMMA BF16 → FP32``, ``FP8, sparse``."""
    head, _, types = path.partition("src_")
    sparse = " (sparse)" if types.endswith("_sparsity_on") else ""
    source, _, destination = re.sub("_sparsity_(on|off)$", "", types).partition("_dst_")
    label = source.upper().replace("_", "/") + (f" → {destination.upper()}" if destination else "")
    operation = head.removeprefix("op_").strip("_").upper()
    return " ".join(filter(None, ("Tensor", operation, label))) + sparse


def _memory_roofs(profile: KernelProfile) -> Iterable[MemoryRoof]:
    limits = LIMITS.get(profile.device.compute_capability)
    distributed = limits is None or limits.clusters
    dram = metrics.DRAM_BYTES_PEAK, metrics.DRAM_CLOCK, metrics.DRAM_BYTES_PER_SECOND
    l2 = metrics.L2_TO_XBAR_PEAK, metrics.L2_CLOCK, metrics.L2_TO_XBAR_PER_SECOND
    l1 = metrics.L1_WRITEBACK_PEAK, metrics.L1_CLOCK, metrics.L1_WRITEBACK_PER_SECOND
    if distributed and metrics.L1_WRITEBACK_DSHARED_PEAK in profile.metrics:
        l1 = metrics.L1_WRITEBACK_DSHARED_PEAK, metrics.L1_CLOCK, metrics.L1_WRITEBACK_DSHARED_PER_SECOND
    for level, label, width, names in (
        (DRAM, "Device memory", 1, dram),
        (L2, "L2 cache", L2_BYTES_PER_CYCLE, l2),
        (L1, "L1 cache", L1_BYTES_PER_CYCLE, l1),
    ):
        most, clock, achieved = map(profile.number, names)
        if peak := _product(width, most, clock):
            yield MemoryRoof(level, label, peak, _product(width, achieved))
    shared = shared_bandwidth(profile)
    if (metrics.L1_CLOCK in profile.metrics or shared is not None) and (peak := shared_peak(profile)):
        yield MemoryRoof(SHARED, "Shared memory", peak, shared)


def _point(compute: ComputeRoof, memory: MemoryRoof) -> RooflinePoint | None:
    """The point under two roofs; None where the kernel moves nothing at this level or it was not measured."""
    if not compute.achieved or not memory.achieved:
        return None
    intensity, ridge = compute.achieved / memory.achieved, memory.ridge(compute)
    bound = "memory" if intensity < ridge else "compute"
    attainable = min(compute.peak, intensity * memory.peak)
    return RooflinePoint(compute, memory, bound, intensity, compute.achieved, attainable, ridge)


def _notes(profile: KernelProfile, roofs: Iterable[ComputeRoof]) -> Iterable[str]:
    if any(roof.only_constants for roof in roofs):
        yield (
            "The FP16 counters saw only instructions that set a register to a constant (HFMA2 Rx, -RZ, RZ, …): they "
            "are no arithmetic and have no point."
        )
    limits = LIMITS.get(profile.device.compute_capability)
    if limits is not None and not limits.dram_counters:
        yield f"Compute capability {limits.label} has no device-memory counters: there is no DRAM roof."
