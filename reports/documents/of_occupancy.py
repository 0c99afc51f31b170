"""Occupancy as JSON: names as in the Python API, percentages from 0 to 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from gemmprof.analysis.occupancy.calculator import Occupancy, Suggestion, explain, suggest
from gemmprof.analysis.occupancy.configurations import BuiltKernel
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy, Loss
from gemmprof.base.documents import Document, From, Part, PartOf
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import Product
from gemmprof.gpu.devices import KernelResources
from gemmprof.model import NotCollected

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import KernelAnalysis
    from gemmprof.analysis.session import Session


class OccupancyAnswer(PartOf[Occupancy], frozen=True, kw_only=True):
    """What the calculator says of one configuration."""

    compute_capability: Annotated[str, From("limits.label")]  # `9.0`
    threads_per_block: int
    registers_per_thread: int
    shared_memory_per_block: int
    shared_memory_config: int
    block_barriers: int
    cluster_size: int
    blocks_per_sm: int
    active_warps_per_sm: int
    max_warps_per_sm: Annotated[int, From("limits.max_warps_per_sm")]  # the SM's warp slots
    # of the warp slots, 0 to 100
    theoretical_occupancy_percent: Annotated[float, From("theoretical_percent")]
    limiters: tuple[str, ...]
    binding: tuple[str, ...]
    block_limits: Mapping[str, int]
    registers_allocated_per_block: int
    shared_memory_allocated_per_block: int
    registers_left: int
    shared_memory_left: int
    warps_left: int


class Helps(PartOf[Suggestion | Occupancy], frozen=True):
    """A change that raises occupancy."""

    change: str
    blocks_per_sm: Annotated[int, From("occupancy.blocks_per_sm")]
    theoretical_occupancy_percent: Annotated[float, From("occupancy.theoretical_percent")]  # 0 to 100


class GpuAnswer(OccupancyAnswer, frozen=True, kw_only=True):
    """The same for a GPU, with its reasoning."""

    gpu: str | None  # its name; null for an architecture
    sm_count: int | None = None  # SMs of the GPU, where it is known
    blocks_per_gpu: int | None = None  # resident blocks on the whole GPU
    max_active_clusters_bound: int | None = None  # clusters that fit at most
    reasoning: tuple[str, ...]  # the arithmetic, a sentence a step
    what_would_help: tuple[Helps, ...]  # the nearest changes that raise occupancy


class Refused(Part, frozen=True):
    """A configuration that a GPU cannot launch."""

    gpu: str | None  # its name; null for an architecture
    compute_capability: str  # `9.0`
    error: str  # why


class CalculatorDocument(Document, frozen=True, tag="gemmprof.occupancy/1"):
    """``gemmprof occupancy --regs … --threads …``."""

    answers: tuple[GpuAnswer | Refused, ...]  # one a GPU


class BuiltPart(PartOf[KernelResources], frozen=True, kw_only=True):
    """One kernel of a build."""

    kernel: Annotated[str, From("name")]  # the kernel as the tool names it; untrusted text
    architecture: str
    registers_per_thread: int
    static_shared_memory: int
    barriers: int | None
    stack_bytes: int
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    warning: str | None  # what the compiler said
    occupancy: OccupancyAnswer | None  # null where it cannot be computed
    error: str | None  # why not


class BuildDocument(Document, frozen=True, tag="gemmprof.occupancy/1"):
    """``gemmprof occupancy --ptxas`` and ``--cubin``."""

    kernels: tuple[BuiltPart, ...]  # every kernel of the build


class LaunchHead(Part, frozen=True, kw_only=True):
    """Which launch."""

    report: str  # the report, as it was named
    launch: int  # position in it, from 0
    family: str  # the id of its family, `#3`, as at every door
    kernel: str  # full demangled name; untrusted text
    gpu: str  # name of the GPU


class LaunchPart(LaunchHead, PartOf[LaunchOccupancy], frozen=True, kw_only=True):
    """One launch of a report."""

    theoretical_occupancy_percent: Annotated[float | None, From("theoretical_percent")]  # 0 to 100
    achieved_occupancy_percent: Annotated[float | None, From("achieved_percent")]  # mean over time and SMs
    even_occupancy_percent: Annotated[float | None, From("even_percent")]  # with blocks spread evenly
    blocks_per_sm: int | None  # resident blocks on an SM
    block_limits: Mapping[str, int | None]  # blocks that each resource admits; null for any number
    limited_by: tuple[str, ...]
    waves: float | None
    full_waves: int | None  # whole waves
    last_wave_blocks: int | None  # blocks of the last wave, 0 if it is whole
    losses: tuple[Loss, ...]
    what_would_help: tuple[str, ...]  # changes that raise it, a sentence each


class NotCollectedPart(LaunchHead, frozen=True, kw_only=True):
    """A launch whose report lacks what is needed."""

    not_collected: Annotated[tuple[str, ...], From("metrics")]  # metrics that are missing
    collect_with: Annotated[str, From("remedy")]  # the ncu option that collects them


class LaunchesDocument(Document, frozen=True, tag="gemmprof.occupancy/1"):
    """``gemmprof occupancy REPORT``."""

    launches: tuple[LaunchPart | NotCollectedPart, ...]  # in the order of the reports


def calculated(answers: Sequence[tuple[Product, Occupancy | OccupancyError]]) -> CalculatorDocument:
    """Answers for several GPUs, each with its reasoning and with what would help; refusals with their reason."""
    return CalculatorDocument(tuple(_on_gpu(target, answer) for target, answer in answers))


def _on_gpu(target: Product, answer: Occupancy | OccupancyError) -> GpuAnswer | Refused:
    gpu = target.name or None
    if isinstance(answer, OccupancyError):
        return Refused(gpu, ".".join(map(str, target.compute_capability)), answer.message)
    sms = target.sm_count
    return GpuAnswer.of(
        answer,
        gpu=gpu,
        sm_count=sms,
        blocks_per_gpu=None if sms is None else answer.max_active_blocks(sms),
        max_active_clusters_bound=(
            answer.max_active_clusters(sms) if sms is not None and answer.cluster_size > 1 else None
        ),
        reasoning=(step.text for step in explain(answer)),
        what_would_help=suggest(answer),
    )


def built(kernels: Sequence[BuiltKernel]) -> BuildDocument:
    """Every kernel of a build."""
    parts = (
        BuiltPart.of(made, warning=made.warning or None, occupancy=one.occupancy, error=one.problem or None)
        for one in kernels
        for made in [one.resources]
    )
    return BuildDocument(tuple(parts))


def profiled(session: Session) -> LaunchesDocument:
    """Every launch of some reports; null stands for what was not collected."""
    launches = (_launch(kernel, session.ids[at]) for at, kernel in enumerate(session.kernels))
    return LaunchesDocument(tuple(launches))


def _launch(kernel: KernelAnalysis, family: str) -> LaunchPart | NotCollectedPart:
    profile, result = kernel.profile, kernel.get(LaunchOccupancy)
    place = {"report": profile.report, "launch": profile.index, "family": family}
    place |= {"kernel": profile.name, "gpu": profile.device.name}
    if isinstance(result, NotCollected):
        return NotCollectedPart.of(result, **place)
    limits = {limit.resource: limit.blocks for limit in result.block_limits}
    return LaunchPart.of(result, **place, block_limits=limits, what_would_help=map(str, result.suggestions))
