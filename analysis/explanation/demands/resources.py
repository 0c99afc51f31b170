"""The resources that a kernel may run out of: how busy each was, and how busy it gets in practice.

How busy is measured by the hardware, as a share of the launch's elapsed cycles. The ceiling is what
micro-benchmarks reach (`gemmprof.gpu.arch` has it by chip); a kernel at the ceiling cannot go faster without
asking less of the resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.opcodes import Sass, info, matrix_product, opcode_of
from gemmprof.base.foreign_files import facts
from gemmprof.gpu.arch import practice_of, sums_at_half_rate
from gemmprof.model import KernelProfile

SM = "sm"
GPU = "gpu"

FULL = 0.9  # share of what a resource does in practice from which on a launch is at its limit


@dataclass(frozen=True, slots=True)
class Resource:
    """A part of the GPU with a limited rate."""

    key: str  # name in formulas and in ``at_limit``
    title: str  # name in sentences
    # how busy it is, per cent of its peak over elapsed cycles; the busiest of those present counts
    metrics: tuple[str, ...]
    scope: str  # ``sm`` where every SM has its own, ``gpu`` where all share it


# Nanoseconds of a launch in which no SM works, at most: what is more is L2 at work, or SMs that have done their blocks.
LAUNCHING = 3000.0
WARPS_OF_A_BLOCK = 8.0  # of larger blocks: as those of 256 threads have


def busiest_sm(profile: KernelProfile) -> float | None:
    """Cycles for which the busiest multiprocessor works; None where nothing like it was collected.

    Where only the average was, it is at least that of those that have a block: the others never work. What these do not
    work beyond a launch's start and end, others do. Both are known of a single kernel alone.
    """
    most = profile.number(metrics.ACTIVE_CYCLES_MAX)
    average, sms = profile.number(metrics.SM_ACTIVE_CYCLES), profile.device.sm_count or 1
    if most or profile.workload != "kernel" or not average:
        return most
    with_blocks = min(sms, max(1, profile.launch.blocks))
    elapsed = profile.number(metrics.SM_ELAPSED_CYCLES_MAX) or profile.number(metrics.ELAPSED_CYCLES) or 0.0
    duration = profile.number(metrics.DURATION) or LAUNCHING
    # A launch starts and ends in so many cycles, which take longer at a lower clock.
    a_nanosecond = max(elapsed / duration, (profile.device.max_clock_hz or 0.0) / 1e9)
    return max(average * sms / with_blocks, elapsed - LAUNCHING * a_nanosecond)


# Every resource that the time model knows by its key.
BY_KEY = {
    key: Resource(key, title, metrics.BUSY.get(key, ()), scope)
    for key, title, scope in facts(__file__, "resources.csv")
}

# Those that move data: what they were asked for sets a floor under the time that no waiting less goes below.
TRAFFIC = ("l1_data", "l1_to_l2", "l2_to_l1", "l2", "l2_in", "l2_out", "dram")

# Stages of L1 that work for each byte of what is loaded, in however few instructions.
L1_PASSES = ("l1_data", "l1_writeback")

OF_AN_SM = tuple(key for key, one in BY_KEY.items() if one.scope == SM)

# Ceilings without writes, with half, with nothing else.
DRAM_BY_WRITES = ("dram", "dram_copying", "dram_writing")


@dataclass(frozen=True, slots=True)
class Load:
    """How busy one resource was in a launch."""

    resource: Resource
    busy: float  # share of elapsed cycles
    metric: str  # what says so
    ceiling: float  # share of the peak that a kernel reaches in practice

    @property
    def share(self) -> float:
        """Of what the resource does in practice."""
        return self.busy / self.ceiling


def loads(profile: KernelProfile) -> Iterator[Load]:
    """How busy each resource was, where the report says so."""
    ceilings = practice_of(profile.device.compute_capability, profile.device.name)[0].ceilings
    for resource in BY_KEY.values():
        found = [(value, name) for name in resource.metrics if (value := profile.number(name)) is not None]
        if found:
            busy, metric = max(found)
            ceiling = _of_dram(profile, ceilings) if resource.key == "dram" else ceilings[resource.key]
            if resource.key == TENSOR and _sums_slowly(profile):
                ceiling *= 0.5  # the counter's peak is that of the faster sums
            yield Load(resource, max(0.0, busy / 100.0), metric, ceiling)
    cycles = profile.number(metrics.SM_ELAPSED_CYCLES_MAX) or profile.number(metrics.ELAPSED_CYCLES)
    if cycles is not None and cycles > 0 and profile.workload == "kernel":
        # One block a cycle leaves the distributor, whatever its size.
        launching = BY_KEY["block_launch"]
        yield Load(launching, profile.launch.blocks / cycles, metrics.GRID_SIZE, ceilings[launching.key])


def dram_bytes(profile: KernelProfile) -> float | None:
    """What DRAM moved by how busy it was, where nobody counted bytes; None where nothing tells."""
    busy = max((profile.number(name) or 0.0 for name in BY_KEY["dram"].metrics), default=0.0) / 100.0
    clock, bits = profile.device.max_memory_clock_hz, profile.device.memory_bus_bits
    time = profile.number(metrics.DURATION)
    if not (busy and clock and bits and time):
        return None
    return busy * 2 * clock * bits / 8 * time / 1e9  # both edges of the clock


def _sums_slowly(profile: KernelProfile) -> bool:
    """Whether a card adds up at half the rate what all of a launch's matrix products add up."""
    device = profile.device
    if not sums_at_half_rate(device.name, device.compute_capability):
        return False
    lines = (line.sass for line in profile.source.instructions if "MMA" in line.sass)
    found = {*map(matrix_product, map(opcode_of, lines))}
    return {product.sums for product in found if product is not None} == {"fp32"}


def _of_dram(profile: KernelProfile, ceilings: Mapping[str, float]) -> float:
    """What DRAM reaches with this launch's share of writes: its bus turns around between reads and writes."""
    read, written = (
        profile.first_number(names) or 0.0 for names in (metrics.DRAM_READ_BYTES, metrics.DRAM_WRITE_BYTES)
    )
    of_writes = written / (read + written) if read + written > 0 else 0.0
    reads, half, writes = (ceilings[key] for key in DRAM_BY_WRITES)
    # Without NumPy, which the first line of an answer would wait for.
    between = reads + 2 * (half - reads) * of_writes
    return between if of_writes <= 0.5 else half + 2 * (writes - half) * (of_writes - 0.5)


# --- Pipes ------------------------------------------------------------------------------------------------------------
# Which execution pipe an instruction occupies (`opcodes.OpcodeInfo`), and for how many cycles of a scheduler's issue
# (compute capability 9.0). Only proportions within one pipe matter: how busy the pipe was is measured, the table says
# whose work that was.

FMA, ALU, FP64, XU, TENSOR, LSU, ADU, CBU = ("fma", "alu", "fp64", "xu", "tensor", "lsu", "adu", "cbu")

# Warp instructions that an SM begins a cycle on each pipe, by the lanes that it has for them (compute capability 9.0;
# CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions").
WARPS_A_CYCLE = {"issue": 4.0, FMA: 4.0, "fma_heavy": 2.0, ALU: 2.0, FP64: 2.0, XU: 0.5}
WARPS_A_CYCLE |= dict.fromkeys((CBU, LSU, ADU), 1.0)


def pipe(line: Sass) -> str:
    """Pipe that an instruction runs on, '' for none (``NOP``)."""
    return info(line.opcode).pipe.removesuffix("_heavy")


def is_float(line: Sass) -> bool:
    """It computes with floating-point numbers, or is a matrix product."""
    return info(line.opcode).pipe in (FMA, FP64, TENSOR) or line.opcode in ("MUFU", "FMNMX")
