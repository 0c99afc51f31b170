"""What a comparison keeps of one side: each kernel with its repeated times, its code, its counters and where it ran.

A record holds no launch, so that a baseline on disk is as good as a report. Kernels are told apart as families are
(`KernelProfile.family`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from gemmprof import metrics as m
from gemmprof.analysis.comparison.judgement import Batch
from gemmprof.analysis.comparison.noise import limit_of
from gemmprof.analysis.comparison.quantify import Measures
from gemmprof.analysis.opcodes import opcode_of
from gemmprof.analysis.reading.context import clock_control, collected_by

if TYPE_CHECKING:
    from gemmprof.model import KernelProfile

# --- Code -------------------------------------------------------------------------------------------------------------
# What machine code a kernel is: a fingerprint, its opcodes, and how much two codes are alike.


GRAM = 4  # codes are compared by the runs of this many opcodes that they share
SKETCH = 128  # how many of the smallest hashes of such runs are kept (Broder's bottom-k sketch)


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of one function. Names, addresses and source lines are no part of it.

    Attributes:
        digest: SHA-256 of the code's bytes.
        instructions: how many instructions it has; 0 if it was not disassembled.
        opcodes: how many of each opcode.
        sketch: hashes of runs of opcodes, for likeness.
    """

    digest: str
    instructions: int = 0
    opcodes: Mapping[str, int] = field(default_factory=dict)
    sketch: tuple[int, ...] = ()


def code_of(digest: str, sass: Iterable[str]) -> Code:
    """The code from its fingerprint and its lines of SASS."""
    opcodes = [opcode for line in sass if (opcode := opcode_of(line))]
    return Code(digest, len(opcodes), dict(Counter(opcodes)), _sketch(opcodes))


def _sketch(opcodes: Sequence[str]) -> tuple[int, ...]:
    grams = {" ".join(opcodes[at : at + GRAM]) for at in range(max(len(opcodes) - GRAM + 1, 1))}
    hashes = (int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=6).digest(), "big") for gram in grams)
    return tuple(sorted(hashes)[:SKETCH])


def likeness(first: Code | None, second: Code | None) -> float:
    """0 to 1: share of runs of opcodes that two codes have in common, times how alike their lengths are."""
    if first is None or second is None:
        return 0.0
    if first.digest and first.digest == second.digest:
        return 1.0
    if not (first.sketch and second.sketch):
        return 0.0
    kept = set(sorted({*first.sketch, *second.sketch})[:SKETCH])
    shared = kept & set(first.sketch) & set(second.sketch)
    lengths = sorted((first.instructions, second.instructions))
    return len(shared) / len(kept) * lengths[0] / max(lengths[1], 1)


def opcode_changes(before: Code, after: Code) -> list[tuple[str, int, int]]:
    """Opcodes whose number differs: (opcode, before, after), the largest differences first."""
    names = {*before.opcodes, *after.opcodes}
    changes = [(name, before.opcodes.get(name, 0), after.opcodes.get(name, 0)) for name in names]
    return sorted(
        (change for change in changes if change[1] != change[2]),
        key=lambda change: (-abs(change[2] - change[1]), change[0]),
    )


# --- What a comparison keeps of one side ------------------------------------------------------------------------------


STEP_NS = 32.0  # resolution of ncu's durations where they are multiples of it, as on recent GPUs
# Times and clocks are compared as ratios: a baseline that holds another number is refused where it is read.
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Times:
    """The launches of one kernel in one process, in their order; or, of a timed run, a summary.

    Attributes:
        nanoseconds, cycles, sm_hz, memory_hz: one value a launch; empty where not collected.
        positions: of the launches in their report, counted from 0; empty in older baselines.
        timed: (median, 10th percentile, 90th percentile) in seconds without the profiler, else None.
        repetitions: how many repetitions `timed` sums up.
    """

    nanoseconds: tuple[Positive, ...] = ()
    cycles: tuple[Positive, ...] = ()
    sm_hz: tuple[Positive, ...] = ()
    memory_hz: tuple[Positive, ...] = ()
    timed: tuple[Positive, Positive, Positive] | None = None
    repetitions: Count = 0
    positions: tuple[Count, ...] = ()

    @property
    def count(self) -> int:
        """How often the kernel ran."""
        return max(len(self.nanoseconds), len(self.cycles), self.repetitions)

    def only(self, positions: Collection[int]) -> Times:
        """Those of the launches at these positions."""
        kept = [at for at, position in enumerate(self.positions) if position in positions]

        def of(values: tuple[float, ...]) -> tuple[float, ...]:
            # Where a launch has no value, which one cannot be said: then all stay.
            return tuple(values[at] for at in kept) if len(values) == len(self.positions) else values

        return replace(
            self,
            nanoseconds=of(self.nanoseconds),
            cycles=of(self.cycles),
            sm_hz=of(self.sm_hz),
            memory_hz=of(self.memory_hz),
            positions=tuple(self.positions[at] for at in kept),
        )


@dataclass(frozen=True, slots=True)
class Range:
    """One metric over all launches of a kernel.

    Attributes:
        middle: the median.
        low, high: the extremes.
    """

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Range:
        """Median and extremes."""
        found = sorted(values)
        return cls(median(found), found[0], found[-1])

    @classmethod
    def over(cls, processes: Sequence[Range]) -> Range:
        """Of the ranges of several processes: the median of their middles, which counts each process alike."""
        return cls(
            median(one.middle for one in processes),
            min(one.low for one in processes),
            max(one.high for one in processes),
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and how a side was collected: what must agree before times are compared.

    Attributes:
        device: name of the GPU.
        clock_control: ncu's setting, '' if unknown or not profiled.
        collected: what ncu was asked for: sets, sections, metrics.
        versions: driver, CUDA, ncu … by name.
    """

    device: str = ""
    clock_control: str = ""
    collected: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel of one side. Names are untrusted text.

    Attributes:
        name: full demangled name; of a stage of a run that was only timed its title.
        label: the one spelling of its name; of a stage or build what to call it.
        grid, block: of its launches; () where it was only timed.
        key: what it is paired by: a `FamilyKey`, or ``stage`` or ``build`` and what tells those apart.
        launches: how many there are.
        times: by process.
        origin: where it ran.
        limit: ``compute``, ``memory``, ``latency`` or '' (see `noise`).
        code: its machine code; None where the report does not hold it.
        metrics: every numeric metric by name.
        measures: the quantities of the launch with the median time.
        rules: Nsight Compute's rules that were applied, by identifier.
        findings: those of them that found something.
        causes: gemmprof's own findings by key, where a baseline keeps them; None: to be asked of the report.
        place: report and position of that launch, for disassembly.
        nvtx: the NVTX ranges around its launches, outermost first.
        family: number of its family in its own report (``#3`` is 3); None for a stage, a build, a kept baseline.
        apart: what tells it from others of its name: the grid, the range …; '' where nothing must.
    """

    name: str
    label: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    key: tuple[str, ...]
    launches: int
    times: tuple[Times, ...]
    origin: Origin
    limit: str = ""
    code: Code | None = None
    metrics: Mapping[str, Range] = field(default_factory=dict, repr=False)
    measures: Measures = field(default_factory=Measures, repr=False)
    rules: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    causes: tuple[str, ...] | None = None
    place: tuple[str, int] | None = None
    nvtx: tuple[str, ...] = ()
    family: int | None = None
    apart: str = ""

    @property
    def title(self) -> str:
        """What to call it among others: ``gemm<128> 64x1x1``."""
        return f"{self.label} {self.apart}".rstrip()

    @property
    def grid_text(self) -> str:
        """``128x4x1``, '' if unknown."""
        return "x".join(map(str, self.grid))

    @property
    def timed(self) -> bool:
        """Whether it was timed without the profiler."""
        return any(times.timed is not None for times in self.times)

    @property
    def seconds(self) -> float | None:
        """The middle of all its times, without the profiler where there are such; None without any."""
        if self.timed:
            return median(times.timed[0] for times in self.times if times.timed is not None)
        durations = [value for times in self.times for value in times.nanoseconds]
        return median(durations) / 1e9 if durations else None


def origin_of(profile: KernelProfile) -> Origin:
    """Where a launch was profiled."""
    session = profile.session
    return Origin(profile.device.name, clock_control(session), collected_by(session), dict(session.versions))


def times_of(profiles: Iterable[KernelProfile]) -> Times:
    """The times of the launches of one kernel in one report."""
    launches = list(profiles)

    def values(metric: str) -> tuple[float, ...]:
        found = [launch.number(metric) for launch in launches]
        return tuple(value for value in found if value is not None and value > 0)

    return Times(
        values(m.DURATION),
        values(m.ELAPSED_CYCLES),
        values(m.SM_CLOCK),
        values(m.DRAM_CLOCK),
        positions=tuple(launch.index for launch in launches),
    )


def ranges_of(profiles: Iterable[KernelProfile]) -> dict[str, Range]:
    """Every numeric metric over these launches: base units."""
    values: dict[str, list[float]] = {}
    for profile in profiles:
        for name in profile.metrics:
            if name.startswith(m.DEVICE_ATTRIBUTE_PREFIX):
                continue
            value = profile.number(name)
            if value is not None:
                values.setdefault(name, []).append(value)
    return {name: Range.of(found) for name, found in values.items()}


def limit_of_launch(profile: KernelProfile) -> str:
    """What limits a launch, '' where the throughputs were not collected."""
    compute, memory = profile.number(m.SM_THROUGHPUT), profile.number(m.MEMORY_THROUGHPUT)
    return "" if compute is None or memory is None else limit_of(compute, memory)


def batches(record: KernelRecord, timed: bool) -> list[Batch]:
    """The repetitions of a kernel by process, in seconds: without the profiler, or as ncu measured them."""
    found = []
    for times in record.times:
        if timed:
            if times.timed is not None:
                found.append(Batch.of_summary(*times.timed, times.repetitions))
        elif times.nanoseconds:
            coarse = all(value % STEP_NS == 0 for value in times.nanoseconds)
            seconds = [value / 1e9 for value in times.nanoseconds]
            found.append(Batch.of_times(seconds, STEP_NS / 1e9 if coarse else 0.0))
    return found
