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
from typing import Annotated, Any

from msgspec import Meta

from gemmprof import metrics as m
from gemmprof.analysis.comparison.judgement import Batch
from gemmprof.analysis.inputs.named_figures import LESS_IS_BETTER, NOT_JUDGED, QUANTITIES, WHOLES, figures
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.opcodes import opcode_of
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.warp_states import ISSUING, WarpStates
from gemmprof.base.spread import grouped
from gemmprof.model import KernelProfile

# --- Quantities -------------------------------------------------------------------------------------------------------

SAME_WITHIN = 0.005  # changes up to this size (see `Change.magnitude`) count as none


@dataclass(frozen=True, slots=True)
class Change:
    """One quantity before and after."""

    name: str  # identifier, for example ``ffma_per_shared_load``
    title: str  # name for people
    group: str  # ``time``, ``limits``, ``instructions``, ``memory``, ``shared memory``, ``occupancy`` or ``stalls``
    unit: str  # unit of both values: ``s``, ``ns``, ``byte``, ``%``, ``cycle``, ``inst`` or ''
    before: float | None  # before, after: None where one side did not collect it
    after: float | None
    better: str  # ``lower``, ``higher`` or ``neither`` (the value explains, but is no goal in itself)
    # what the quantity is a part of, in its unit: 100 for per cent, all wavefronts for conflicts, the whole latency
    # for a stall; 0 for a quantity of its own
    whole: float = 0.0

    @property
    def ratio(self) -> float | None:
        """After over before; None if one is missing or before is 0."""
        return self.after / self.before if self.after is not None and self.before else None

    @property
    def difference(self) -> float | None:
        """After minus before."""
        return None if self.after is None or self.before is None else self.after - self.before

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``same``, ``changed`` (neither direction is a goal) or ``unknown``."""
        difference = self.difference
        if difference is None:
            return "unknown"
        if self.magnitude <= SAME_WITHIN:
            return "same"
        if self.better == NOT_JUDGED:
            return "changed"
        return "better" if (difference < 0) == (self.better == LESS_IS_BETTER) else "worse"

    @property
    def arrow(self) -> str:
        """``↑``, ``↓``, ``→`` (same) or ``?`` (unknown): the direction of the value, not its merit."""
        if self.verdict in ("unknown", "same"):
            return "?" if self.verdict == "unknown" else "→"
        return "↑" if (self.difference or 0.0) > 0 else "↓"

    @property
    def magnitude(self) -> float:
        """Size of the change, 0 to 1, for sorting: |a - b| / max(|a|, |b|, whole), so ×2 and ÷2 rank alike."""
        if self.before is None or self.after is None:
            return 0.0
        largest = max(abs(self.before), abs(self.after), self.whole)
        return abs(self.after - self.before) / largest if largest else 0.0


@dataclass(frozen=True, slots=True)
class Measures:
    """The quantities of one launch or kernel, without the launch: what a comparison needs and a baseline keeps."""

    # by name of the quantity; absent where it was not collected
    values: Mapping[str, float] = field(default_factory=dict)
    # cycles a warp spends in each state per instruction it issues; empty where not collected
    stalls: Mapping[str, float] = field(default_factory=dict)
    stall_titles: Mapping[str, str] = field(default_factory=dict)  # the states in words
    uses_shared_memory: bool = False  # whether how well shared memory is used can be judged
    seconds: float | None = None  # median time measured without the profiler


def measures(analysis: KernelAnalysis) -> Measures:
    """The quantities of one analysed launch."""
    states = analysis.field(WarpStates, "states") or ()
    stalled = {one.reason: one.cycles_per_issue for one in states if one.reason.group != ISSUING}
    cycles = {reason: found for reason, found in stalled.items() if found is not None}
    stalls, titles = {one.key: found for one, found in cycles.items()}, {one.key: one.title for one in cycles}
    shared = bool(analysis.field(BankConflicts, "uses_shared_memory"))
    return Measures(figures(analysis), stalls, titles, shared)


def changes_between(before: Measures, after: Measures) -> tuple[Change, ...]:
    """Every quantity that at least one side has, in reading order."""
    found = [Change("time", "Median time", "time", "s", before.seconds, after.seconds, LESS_IS_BETTER)]
    # To use shared memory or not is a choice; only how well it is used can be judged.
    judge_shared = before.uses_shared_memory and after.uses_shared_memory
    values = {one.name: (before.values.get(one.name), after.values.get(one.name)) for one in QUANTITIES}
    for one in QUANTITIES:
        if any(values[one.name]):  # of what neither side has any, nothing is to be said
            judged = judge_shared or not (one.group == "shared memory" or one.name == "shared_loads")
            better = one.better if judged else NOT_JUDGED
            # What it is a part of, on the side where that is larger.
            parts = [values[part] for part in WHOLES.get(one.name, ())]
            whole = 100.0 if one.unit == "%" else max(sum(side[at] or 0.0 for side in parts) for at in (0, 1))
            found.append(Change(one.name, one.title, one.group, one.unit, *values[one.name], better, whole))
    # Cycles that a warp spends in each state per instruction it issues, as parts of the whole latency.
    sides = (before.stalls, after.stalls)
    latency = max(sum(side.values()) for side in sides)
    for key, title in {**before.stall_titles, **after.stall_titles}.items():
        was, now = (side.get(key, 0.0 if side else None) for side in sides)
        if was or now:
            found.append(Change(f"stall_{key}", title, "stalls", "cycle", was, now, LESS_IS_BETTER, latency))
    return tuple(change for change in found if change.before is not None or change.after is not None)


# --- Code -------------------------------------------------------------------------------------------------------------

GRAM = 4  # codes are compared by the runs of this many opcodes that they share
SKETCH = 128  # how many of the smallest hashes of such runs are kept (Broder's bottom-k sketch)


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of one function. Names, addresses and source lines are no part of it."""

    digest: str  # SHA-256 of the code's bytes
    instructions: int = 0  # how many instructions it has; 0 if it was not disassembled
    opcodes: Mapping[str, int] = field(default_factory=dict)  # how many of each opcode
    sketch: tuple[int, ...] = ()  # hashes of runs of opcodes, for likeness


def code_of(digest: str, sass: Iterable[str]) -> Code:
    """The code from its fingerprint and its lines of SASS."""
    lines = [opcode for line in sass if (opcode := opcode_of(line))]
    # ``???`` is what the disassembler writes for an older chip's code.
    opcodes = [opcode for opcode in lines if opcode != "???"]
    starts = range(max(len(opcodes) - GRAM + 1, 1)) if opcodes else ()
    grams = {" ".join(opcodes[at : at + GRAM]) for at in starts}
    hashes = (int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=6).digest(), "big") for gram in grams)
    return Code(digest, len(lines), dict(Counter(opcodes)), tuple(sorted(hashes)[:SKETCH]))


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
    changed = (change for change in changes if change[1] != change[2])
    return sorted(changed, key=lambda change: (-abs(change[2] - change[1]), change[0]))


# --- What a comparison keeps of one side ------------------------------------------------------------------------------

STEP_NS = 32.0  # resolution of ncu's durations where they are multiples of it, as on recent GPUs
# Times and clocks are compared as ratios: a baseline that holds another number is refused where it is read.
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Times:
    """The launches of one kernel in one process, in their order; or, of a timed run, a summary."""

    # nanoseconds, cycles, sm_hz, memory_hz: one value a launch; empty where not collected
    nanoseconds: tuple[Positive, ...] = ()
    cycles: tuple[Positive, ...] = ()
    sm_hz: tuple[Positive, ...] = ()
    memory_hz: tuple[Positive, ...] = ()
    # (median, 10th percentile, 90th percentile) in seconds without the profiler, else None
    timed: tuple[Positive, Positive, Positive] | None = None
    repetitions: Count = 0  # how many repetitions `timed` sums up
    # of the launches in their report, counted from 0; empty in older baselines
    positions: tuple[Count, ...] = ()

    @property
    def count(self) -> int:
        """How often the kernel ran."""
        return max(len(self.nanoseconds), len(self.cycles), self.repetitions)

    def only(self, positions: Collection[int]) -> Times:
        """Those of the launches at these positions."""
        kept = [at for at, position in enumerate(self.positions) if position in positions]
        chosen: dict[str, Any] = {}
        for name in ("nanoseconds", "cycles", "sm_hz", "memory_hz", "positions"):
            values = getattr(self, name)
            # Where a launch has no value, which one cannot be said: then all stay.
            if len(values) == len(self.positions):
                chosen[name] = tuple(values[at] for at in kept)
        return replace(self, **chosen)


@dataclass(frozen=True, slots=True)
class Range:
    """One metric over all launches of a kernel."""

    middle: float  # the median
    low: float  # low, high: the extremes
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Range:
        """Median and extremes."""
        found = sorted(values)
        return cls(median(found), found[0], found[-1])

    @classmethod
    def over(cls, processes: Sequence[Range]) -> Range:
        """Of the ranges of several processes: the median of their middles, which counts each process alike."""
        middles, lows, highs = zip(*((one.middle, one.low, one.high) for one in processes), strict=True)
        return cls(median(middles), min(lows), max(highs))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and how a side was collected: what must agree before times are compared."""

    device: str = ""  # name of the GPU
    clock_control: str = ""  # ncu's setting, '' if unknown or not profiled
    collected: tuple[str, ...] = ()  # what ncu was asked for: sets, sections, metrics
    versions: Mapping[str, str] = field(default_factory=dict)  # driver, CUDA, ncu … by name


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel of one side. Names are untrusted text."""

    name: str  # full demangled name; of a stage of a run that was only timed its title
    label: str  # the one spelling of its name; of a stage or build what to call it
    grid: tuple[int, ...]  # grid, block: of its launches; () where it was only timed
    block: tuple[int, ...]
    # what it is paired by: a `FamilyKey`, or ``stage`` or ``build`` and what tells those apart
    key: tuple[str, ...]
    launches: int  # how many there are
    times: tuple[Times, ...]  # by process
    origin: Origin  # where it ran
    limit: str = ""  # ``compute``, ``memory``, ``latency`` or '' (see `noise`)
    code: Code | None = None  # its machine code; None where the report does not hold it
    metrics: Mapping[str, Range] = field(default_factory=dict, repr=False)  # every numeric metric by name
    # the quantities of the launch with the median time
    measures: Measures = field(default_factory=Measures, repr=False)
    rules: tuple[str, ...] = ()  # Nsight Compute's rules that were applied, by identifier
    findings: tuple[str, ...] = ()  # those of them that found something
    # gemmprof's own findings by key, where a baseline keeps them; None: to be asked of the report
    causes: tuple[str, ...] | None = None
    place: tuple[str, int] | None = None  # report and position of that launch, for disassembly
    nvtx: tuple[str, ...] = ()  # the NVTX ranges around its launches, outermost first
    # number of its family in its own report (``#3`` is 3); None for a stage, a build, a kept baseline
    family: int | None = None
    apart: str = ""  # what tells it from others of its name: the grid, the range …; '' where nothing must

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


def times_of(profiles: Iterable[KernelProfile]) -> Times:
    """The times of the launches of one kernel in one report."""
    launches = list(profiles)

    def values(metric: str) -> tuple[float, ...]:
        found = [launch.number(metric) for launch in launches]
        return tuple(value for value in found if value is not None and value > 0)

    clocks = values(m.SM_CLOCK), values(m.DRAM_CLOCK)
    positions = tuple(launch.index for launch in launches)
    return Times(values(m.DURATION), values(m.ELAPSED_CYCLES), *clocks, positions=positions)


def ranges_of(profiles: Iterable[KernelProfile]) -> dict[str, Range]:
    """Every numeric metric over these launches: base units."""
    values = grouped(
        (name, value)
        for profile in profiles
        for name in profile.metrics
        if not name.startswith(m.DEVICE_ATTRIBUTE_PREFIX) and (value := profile.number(name)) is not None
    )
    return {name: Range.of(found) for name, found in values.items()}


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
