"""A GPU: what its architecture allows, and which of several cards it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Practice:
    """What micro-benchmarks (`tests/cuda/pairs`) measured on one chip; `gemmprof explain` predicts with it."""

    card: str  # the card that it was measured on, as it is called in sentences
    # by resource, the share of its peak over elapsed cycles that a kernel reaches in practice; ``l2_atomics_meeting``,
    # ``l2_atomics_meeting_fp64``: what the atomic units of L2 reach with floating-point sums of one word, and with
    # those of doubles; ``dram_copying``, ``dram_writing``: DRAM where half of what moves is written, and all of it
    ceilings: Mapping[str, float]
    # from a shared load to its consumer, no bank conflict; conversions and special functions take about as long
    shared_cycles: float
    # l1_cycles, l2_cycles, dram_cycles: from a global load to its consumer, by where its line is found
    l1_cycles: float
    l2_cycles: float
    dram_cycles: float
    atomic_cycles: float  # from a global atomic to its consumer
    store_cycles: float  # a warp's last stores before it may leave
    fence_cycles: float  # a fence, once nothing is under way before it
    tag_cycles: float  # more for each further 128-byte line that a request touches
    wavefront_cycles: float  # more for each further wavefront of a shared access
    # barrier_cycles, barrier_warp_cycles: of a barrier that all warps reach at once, and more for each beyond the first
    barrier_cycles: float
    barrier_warp_cycles: float


@dataclass(frozen=True, slots=True)
class ArchLimits:
    """One compute capability: the limits that decide occupancy, and every other fact that differs between GPUs.

    Source of the limits: the table inside Nsight Compute's occupancy calculator (2025.3.1). Shared memory sizes are
    bytes and include the driver's reserve of ``reserved_shared_memory_per_block``.
    """

    compute_capability: tuple[int, int]
    chip: str
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_barriers_per_sm: int
    shared_memory_per_sm: int
    max_shared_memory_per_block: int
    registers_per_sm: int
    max_registers_per_thread: int
    register_allocation_unit: int
    warp_allocation_granularity: int
    shared_memory_allocation_unit: int
    max_threads_per_block: int
    shared_memory_configs: tuple[int, ...]
    reserved_shared_memory_per_block: int
    oldest_nvcc: tuple[int, int]  # first CUDA release that compiles for it (PTX ISA's table of releases)
    built: bool = False  # the ladders are compiled and tested for it
    dram_counters: bool = True  # ncu has ``dram__*`` metrics; False where the memory is not the GPU's own
    clusters: bool = False  # it has thread block clusters, distributed shared memory and bulk tensor copies
    barriers_limit_occupancy: bool = False  # the official calculator looks at block barriers
    # the shared memory that cuobjdump counts includes the driver's reserve, because the compiler lays it out
    # in the file (section ``.nv.shared.reserved.0``; compared over sm_75 to sm_121)
    cubin_counts_reserve: bool = False
    warp_size: int = 32
    l1_bytes: int | None = None  # of an SM, divided between L1 and shared memory (CUDA programming guide)
    # dense operations of an SM's tensor cores a cycle by warp-level instructions (mma.sync), by the type of the
    # operands (``fp16``, ``bf16``, ``int8`` …), a multiply-add being two, on the cards that have the chip's full rate
    # (`arch.tensor_rate` knows which have not). Source: NVIDIA's architecture whitepapers, for 9.0 and 12.0 the peaks
    # that Nsight Compute's counters state. A report's own peaks go before. Types that no source gives are not there.
    tensor: Mapping[str, float] = field(default_factory=dict, hash=False)
    # the same by the fastest instructions (wgmma on 9.0, tcgen05 from 10.0 to 11.0), where there are
    fast_tensor: Mapping[str, float] = field(default_factory=dict, hash=False)
    # sectors that come from L2 to an SM in a cycle, as counters of bytes and of their share of the peak tell together
    filled_sectors: int | None = None
    practice: Practice | None = field(default=None, hash=False)  # what was measured on it, None for nothing

    @property
    def label(self) -> str:
        """Compute capability as people write it, for example ``9.0``."""
        return f"{self.compute_capability[0]}.{self.compute_capability[1]}"


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU that a result came from."""

    model: str  # as the driver names it, ``NVIDIA H200``: only results of one are compared
    index: int  # its place in nvidia-smi's list, on its host
    uuid: str  # by which the driver tells it from every other
    host: str = ""  # name of the machine, '' for the one that the command ran on

    @property
    def label(self) -> str:
        """``GPU 1``, with its machine where that is another."""
        return f"GPU {self.index}" + (f" of {self.host}" if self.host else "")
