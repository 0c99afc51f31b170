"""Speed of light: how close compute and memory come to their peak, which unit is closest, what ncu makes of it.

Every percentage is the sustained rate over the peak sustained rate during the elapsed (L1: active) cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmprof import metrics
from gemmprof.analysis.figure import collected, figure, unlisted
from gemmprof.model import KernelProfile, NotCollected

NAME = "speed_of_light"
TITLE = "Speed of light"
GROUP = metrics.SPEED_OF_LIGHT


@dataclass(frozen=True, slots=True)
class BreakdownEntry:
    """One unit of a throughput's breakdown; the throughput is the maximum of its entries."""

    metric: str
    label: str  # readable: "SM: Inst Executed Pipe Lsu"
    # None where the metric itself is absent
    percent: float | None = figure(
        "A part of a throughput", "%", "the throughput is the largest of its parts"
    )
    unit: str = ""  # the hardware unit behind it ("load/store unit"), '' if gemmprof does not know it


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Nsight Compute's classification (its rule SOLBottleneck), by the same thresholds."""

    title: str  # ncu's own
    message: str  # one sentence with this kernel's numbers


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """Throughputs in per cent of peak, durations in ns, clocks in Hz; None where not in the report."""

    sm_percent: float | None = unlisted(
        "Compute (SM)", "%", "of its peak rate", alone="Compute throughput", of=metrics.SM_THROUGHPUT
    )
    memory_percent: float | None = unlisted(
        "Memory", "%", "of its peak rate", alone="Memory throughput", of=metrics.MEMORY_THROUGHPUT
    )
    l1_percent: float | None = unlisted("L1/TEX", "%", "of its peak rate", of=metrics.L1_THROUGHPUT)
    l2_percent: float | None = unlisted("L2", "%", "of its peak rate", of=metrics.L2_THROUGHPUT)
    dram_percent: float | None = unlisted(
        "Device memory", "%", "of its peak rate", alone="Device memory throughput", of=metrics.DRAM_THROUGHPUT
    )
    duration_ns: float | None = figure(
        "Duration under the profiler", "ns", alone="Duration under ncu", of=metrics.DURATION
    )
    elapsed_cycles: float | None = figure(
        "Cycles elapsed", "cycle", alone="Elapsed cycles", of=metrics.ELAPSED_CYCLES
    )
    sm_active_cycles: float | None = figure(
        "SM active cycles", meaning="below those elapsed where SMs had no block", of=metrics.SM_ACTIVE_CYCLES
    )
    sm_clock_hz: float | None = figure("SM clock", "hz", of=metrics.SM_CLOCK)
    dram_clock_hz: float | None = figure("Memory clock", "hz", of=metrics.DRAM_CLOCK)
    sm_breakdown: tuple[BreakdownEntry, ...] = ()  # largest first
    memory_breakdown: tuple[BreakdownEntry, ...] = ()
    bottleneck: Bottleneck | None = None  # None unless both throughputs were collected
    missing: NotCollected | None = None  # the metrics of the parts that are None

    @property
    def limiting_breakdown(self) -> tuple[BreakdownEntry, ...]:
        """The breakdown of the larger of the two throughputs."""
        compute = (self.sm_percent or 0.0) > (self.memory_percent or 0.0)
        return self.sm_breakdown if compute else self.memory_breakdown


HIGH_PERCENT = 80.0  # at or above this, ncu speaks of high throughput
LATENCY_PERCENT = 60.0  # with compute and memory both below this, ncu speaks of a latency issue
BALANCED_POINTS = 10.0  # compute and memory closer than this count as balanced


def analyse(profile: KernelProfile) -> SpeedOfLight | NotCollected:
    """Throughputs, their breakdown and the bottleneck of one launch; one of the figures is enough for a result."""
    found = collected(SpeedOfLight, profile)
    if all(value is None for value in found.values()):
        return GROUP.not_collected(profile.metrics)
    sm, memory = found["sm_percent"], found["memory_percent"]
    return SpeedOfLight(
        **found,
        sm_breakdown=_breakdown(profile, metrics.BREAKDOWN_SM),
        memory_breakdown=_breakdown(profile, metrics.BREAKDOWN_MEMORY),
        bottleneck=None if None in (sm, memory) else classify(sm, memory, profile.launch.waves_per_sm),
        missing=GROUP.incomplete(profile.metrics),
    )


def _breakdown(profile: KernelProfile, metric: str) -> tuple[BreakdownEntry, ...]:
    """The members that the report itself lists for a throughput, largest first, absent ones last."""
    names = [name.strip() for name in (profile.text(metric) or "").split(",") if name.strip()]
    facts = (
        (name, metrics.readable(name), profile.number(name), metrics.hardware_unit(name)) for name in names
    )
    entries = [BreakdownEntry(*entry) for entry in facts]

    def percent(entry: BreakdownEntry) -> float:
        return -1.0 if entry.percent is None else entry.percent

    either = [entry for entry in entries if entry.unit in (metrics.FP64_PIPE, metrics.TENSOR_CORES)]
    busier, unclear = max(either, key=percent, default=None), metrics.FP64_OR_TENSOR
    if busier is not None and busier.percent:
        entries = [replace(one, unit=busier.unit) if one.unit == unclear else one for one in entries]
    return tuple(sorted(entries, key=lambda entry: (-percent(entry), entry.label)))


def classify(sm: float, memory: float, waves: float | None) -> Bottleneck:
    """The bottleneck by the thresholds of ncu's rule SOLBottleneck; ``sm`` and ``memory`` in per cent."""
    both = f"compute {sm:.1f} %, memory {memory:.1f} % of peak"
    if sm >= HIGH_PERCENT or memory >= HIGH_PERCENT:
        return Bottleneck("High Throughput", f"The kernel is close to a hardware limit ({both}).")
    if sm < LATENCY_PERCENT and memory < LATENCY_PERCENT:
        if waves is not None and waves < 1:
            message = f"The grid fills only {waves:.2f} waves of the device ({both})."
            return Bottleneck("Small Grid", message)
        message = f"Neither compute nor memory is busy ({both}): latency limits the kernel."
        return Bottleneck("Latency Issue", message)
    if abs(sm - memory) < BALANCED_POINTS:
        message = f"Compute and memory are about equally busy ({both})."
        return Bottleneck("Balanced Throughput", message)
    if sm > memory:
        return Bottleneck("High Compute Throughput", f"Compute is busier than memory ({both}).")
    return Bottleneck("High Memory Throughput", f"Memory is busier than compute ({both}).")
