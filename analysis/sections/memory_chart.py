"""The memory chart: what flows over every link between the kernel and device memory, and how well caches do.

The boxes are Nsight Compute's: the kernel, the logical spaces that its instructions name, L1/TEX and shared memory in
the SM, L2, and device, system and peer memory. Which counter belongs to which link is read from the metrics' names
and descriptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import collected, figure
from gemmprof.analysis.sections.coalescing import async_copy_sectors
from gemmprof.base.foreign_files import facts
from gemmprof.gpu.arch import has
from gemmprof.model import KernelProfile, NotCollected

NAME = "memory_chart"
TITLE = "Memory chart"
GROUP = metrics.MEMORY_CHART

SECTOR_BYTES = 32
# 32 banks of 4 bytes: what one SM's shared memory moves in the one cycle of a wavefront.
WAVEFRONT_BYTES = 128


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """A box of the chart."""

    # ``kernel``; the logical spaces ``global``, ``local``, ``texture``, ``surface``, ``shared``,
    # ``distributed_shared``, ``tensor_memory_accelerator``; the physical ``l1``, ``shared_memory``, ``l2``,
    # ``device``, ``other_sm`` (shared memory of a cluster's other SMs), ``system``, ``peer``
    name: str
    title: str  # name for people
    hit_rate: float | None = figure("Hit rate", "%", "of the sectors that reach this cache")
    percent_of_peak: float | None = figure("Busy", "%", "its busiest part, of that part's peak")
    busiest: str = ""  # its busiest part in ncu's words, '' where the report does not break the unit down


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """Traffic of one kind between two boxes. A quantity that has no meaning or no counter is None."""

    # source, target: names of the units; the data of a ``read`` flows from source to target, as that of a ``write``
    # does; a ``load`` is asked for by the source
    source: str
    target: str
    # ``load``, ``store``, ``reduction``, ``atomic``, ``async_copy``, ``ldmatrix``, ``stmatrix``, ``wgmma``,
    # ``tma_load``, ``tma_store``, ``tma_reduction``, ``access`` (any kind), ``fabric``, ``read`` or ``write``
    label: str
    instructions: float | None = figure("Warp instructions")
    requests: float | None = figure("Requests at L1")
    # moved; at the L1 tag stage 32 for each sector touched, at shared memory's data stage 128 for each wavefront,
    # which is what it could have moved
    bytes: float | None = figure("Bytes", "byte")
    bytes_per_second: float | None = figure("Bandwidth", "byte/s")
    percent_of_peak: float | None = figure("Share of its peak", "%")

    @property
    def title(self) -> str:
        """Its ends and what flows: ``device → l2, read``."""
        return f"{self.source} → {self.target}, {self.label}".replace("_", " ")

    @property
    def idle(self) -> bool:
        """True if nothing flowed: every count is zero (the per cent of peak, where nothing was counted).

        The utilisation of shared memory is a little above 0 in kernels that never touch it, so counts come first.
        """
        counts = [n for n in (self.instructions, self.requests, self.bytes) if n is not None]
        return not any(counts) if counts else not self.percent_of_peak


@dataclass(frozen=True, slots=True)
class MemoryChart:
    """All boxes and links of one launch."""

    units: tuple[MemoryUnit, ...]  # the boxes, kernel first
    links: tuple[MemoryLink, ...]  # links for which the report has a counter, idle ones included
    # links without any counter in this report, as ``source→target label``
    not_collected: tuple[str, ...] = ()
    remedy: str = GROUP.remedy  # ncu options that collect the whole chart
    busy_percent: float | None = figure(
        "Memory busy", "%", "the busiest unit between the SMs and device memory", of=metrics.MEMORY_BUSY
    )
    bandwidth_percent: float | None = figure("Busiest connection", "%", of=metrics.MEMORY_BANDWIDTH)
    pipes_busy_percent: float | None = figure(
        "Memory pipes busy", "%", "the SMs' memory instruction pipes", of=metrics.MEMORY_PIPES_BUSY
    )
    dram_bytes_per_second: float | None = figure(
        "Device memory, both ways", "byte/s", of=metrics.DRAM_BYTES_PER_SECOND
    )

    def unit(self, name: str) -> MemoryUnit | None:
        """The box with this name, or None."""
        return next((unit for unit in self.units if unit.name == name), None)

    def link(self, source: str, target: str, label: str | None = None) -> MemoryLink | None:
        """The first link between two boxes (with this label), or None."""
        between = (link for link in self.links if (link.source, link.target) == (source, target))
        return next((link for link in between if label in (None, link.label)), None)


def analyse(profile: KernelProfile) -> MemoryChart | NotCollected:
    """The memory chart of one launch; `NotCollected` if no link has a counter."""
    every = (*_request_links(profile), *_transfer_links(profile))
    links = tuple(link for link in every if _known(link))
    if not links:
        return GROUP.not_collected(profile.metrics)
    unknown = ((link.source, link.target, link.label) for link in every if not _known(link))
    absent = tuple(
        f"{source}→{target} {label}"
        for source, target, label in unknown
        if _exists(profile, source, target, label)
    )
    return MemoryChart(tuple(_units(profile)), links, absent, **collected(MemoryChart, profile))


# The boxes in their order with their titles, and the kinds of link that not every GPU has, without; what a GPU needs to
# have them.
_PARTS = facts(__file__, "memory_chart.csv")
_NEEDS = {name: feature for name, _, feature in _PARTS if feature}
# Of a box its hit rate, how busy it is, and how the names of its parts begin in ncu's breakdown.
_MEASURED = {
    "l1": (metrics.L1_HIT_RATE, metrics.L1_THROUGHPUT, "l1tex__"),
    "shared_memory": ("", metrics.SHARED_PEAK_PERCENT, ""),
    "l2": (metrics.L2_HIT_RATE, metrics.L2_THROUGHPUT, "lts__"),
    "device": ("", metrics.DRAM_THROUGHPUT, ""),
}


def _exists(profile: KernelProfile, *names: str) -> bool:
    """Whether the GPU has all of these boxes and kinds of link."""
    return all(has(_NEEDS[name], profile.device.compute_capability) for name in names if name in _NEEDS)


def _known(link: MemoryLink) -> bool:
    quantities = (link.instructions, link.requests, link.bytes, link.percent_of_peak)
    return any(quantity is not None for quantity in quantities)


def _units(profile: KernelProfile) -> Iterable[MemoryUnit]:
    parts = [name.strip() for name in (profile.text(metrics.BREAKDOWN_MEMORY) or "").split(",")]
    for name, title, _ in _PARTS:
        if title and _exists(profile, name):
            hit_rate, busy, prefix = _MEASURED.get(name, ("", "", ""))
            own = ((profile.number(part), part) for part in parts if prefix and part.startswith(prefix))
            known = [(value, part) for value, part in own if value is not None]
            busiest = metrics.readable(max(known)[1]) if known else ""
            yield MemoryUnit(name, title, profile.number(hit_rate), profile.number(busy), busiest)


def _request_links(profile: KernelProfile) -> Iterable[MemoryLink]:
    """From the kernel to the logical spaces: warp-level instructions. From there to the hardware: requests at L1's tag
    stage, wavefronts of shared memory.
    """
    for (space, operation), terms in metrics.SPACE_INSTRUCTIONS.items():
        known = [count for names in terms if (count := profile.first_number(names)) is not None]
        yield MemoryLink("kernel", space, operation, instructions=sum(known) if known else None)
    for (space, operation), name in metrics.SPACE_REQUESTS.items():
        copies = operation == "async_copy"
        counted = metrics.SPACE_SECTORS.get((space, operation), "")
        sectors = async_copy_sectors(profile) if copies else profile.number(counted)
        moved = None if sectors is None else sectors * SECTOR_BYTES
        peak = profile.number(name + metrics.PERCENT_SUFFIX)
        requests = profile.number(name)
        yield MemoryLink(space, "l1", operation, None, requests, moved, _bandwidth(profile, moved), peak)
    peak, rate = profile.number(metrics.SHARED_PEAK_PERCENT), shared_bandwidth(profile)
    yield MemoryLink("shared", "shared_memory", "access", None, None, shared_bytes(profile), rate, peak)


def shared_bytes(profile: KernelProfile) -> float | None:
    """Bytes that shared memory's data stage could have moved in the wavefronts that it was busy for.

    A bank conflict costs as much as the bytes that it displaces. 0 where every kind of access was counted and none
    occurred: the counter of all shows one or two wavefronts a warp of such kernels, too. None if not collected.
    """
    if _touches_shared_memory(profile) is False:
        return 0
    wavefronts = profile.number(metrics.SHARED_WAVEFRONTS)
    return None if wavefronts is None or wavefronts < 0 else wavefronts * WAVEFRONT_BYTES


def shared_peak(profile: KernelProfile) -> float | None:
    """Bytes per second of all SMs' shared memory; L1 is the same unit and both run at the SM's clock."""
    clock = profile.number(metrics.L1_CLOCK)
    clock = profile.number(metrics.SM_ELAPSED_CLOCK) if clock is None else clock
    sms = profile.named(profile.device.sm_count, metrics.DEVICE_SMS)
    return None if not sms or clock is None or clock < 0 else WAVEFRONT_BYTES * sms * clock


def shared_bandwidth(profile: KernelProfile) -> float | None:
    """`shared_bytes` per second; from the share of the peak where the report has that alone."""
    amount, duration = shared_bytes(profile), profile.number(metrics.DURATION)
    if amount is not None:
        return amount / duration * 1e9 if duration and duration > 0 else None
    percent, peak = profile.number(metrics.SHARED_PEAK_PERCENT), shared_peak(profile)
    return None if percent is None or peak is None else percent / 100 * peak


def _touches_shared_memory(profile: KernelProfile) -> bool | None:
    """Whether any instruction does; None where not every kind was counted."""
    kinds = (kind for kind in ("load", "store", "atomic", "async_copy") if _exists(profile, kind))
    counts = [profile.number(metrics.SHARED_WAVEFRONTS_OF[kind]) for kind in kinds]
    if has("wgmma", profile.device.compute_capability):
        operands = profile.number(metrics.SHARED_WAVEFRONTS_OF["wgmma"])
        opcodes = profile.instances.get(metrics.EXECUTED_PER_OPCODE)
        if operands is None and opcodes is not None:  # ncu's own sets lack the counter
            operands = float(any("GMMA" in str(opcode) for opcode in opcodes.keys))
        counts.append(operands)
    return True if any(counts) else None if None in counts else False


def _transfer_links(profile: KernelProfile) -> Iterable[MemoryLink]:
    """Between the caches and the memories: bytes."""
    yield _bytes_link(profile, "l2", "l1", "read", (metrics.L2_TO_L1_BYTES,))
    yield _bytes_link(profile, "l1", "l2", "write", (metrics.L1_TO_L2_BYTES,))
    yield _bytes_link(profile, "l1", "shared_memory", "async_copy", (metrics.ASYNC_COPY_L1_BYTES,))
    yield _bytes_link(profile, "l2", "shared_memory", "async_copy", (metrics.ASYNC_COPY_L2_BYTES,))
    yield _bytes_link(profile, "l2", "shared_memory", "tma_load", (metrics.TMA_LOAD_BYTES,))
    yield _bytes_link(profile, "shared_memory", "l2", "tma_store", (metrics.TMA_STORE_BYTES,))
    yield _bytes_link(profile, "shared_memory", "l2", "tma_reduction", (metrics.TMA_REDUCTION_BYTES,))
    yield _bytes_link(profile, "other_sm", "shared_memory", "read", (metrics.DSHARED_READ_BYTES,))
    yield _bytes_link(profile, "shared_memory", "other_sm", "write", (metrics.DSHARED_WRITE_BYTES,))
    yield _bytes_link(profile, "l2", "l2", "fabric", (metrics.L2_FABRIC_SECTORS,), scale=SECTOR_BYTES)
    yield _bytes_link(profile, "device", "l2", "read", metrics.DRAM_READ_BYTES)
    yield _bytes_link(profile, "l2", "device", "write", metrics.DRAM_WRITE_BYTES)
    for (aperture, operation), names in metrics.OFF_CHIP_SECTORS.items():
        memory = "system" if aperture == "sysmem" else aperture
        source, target = (memory, "l2") if operation == "read" else ("l2", memory)
        label = {"red": "reduction", "atom": "atomic"}.get(operation, operation)
        yield _bytes_link(profile, source, target, label, names, scale=SECTOR_BYTES)


def _bytes_link(
    profile: KernelProfile, source: str, target: str, label: str, names: Iterable[str], scale: int = 1
) -> MemoryLink:
    """A link whose counter (the first name that the report has) counts bytes, or sectors of ``scale`` bytes."""
    for name in names:
        if (count := profile.number(name)) is not None:
            known, moved = profile.number(name + metrics.PER_SECOND_SUFFIX), count * scale
            rate = _bandwidth(profile, moved) if known is None else known * scale
            peak = profile.number(name + metrics.PERCENT_SUFFIX)
            return MemoryLink(source, target, label, None, None, moved, rate, peak)
    return MemoryLink(source, target, label)


def _bandwidth(profile: KernelProfile, moved: float | None) -> float | None:
    """Bytes that were moved per second, by the kernel's duration."""
    duration = profile.number(metrics.DURATION)
    return moved / duration * 1e9 if moved is not None and duration else None
