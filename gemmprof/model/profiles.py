"""What a report says of a launch, as plain values: no handle to the file is kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeVar

from gemmprof.base.amounts import brief, nanoseconds, ratio
from gemmprof.base.printable import one_line

Named = TypeVar("Named")
MetricValue = int | float | str  # as the report stores it: counters are numbers, names and lists texts


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU that a kernel ran on, as the report's device attributes tell it (None: not in the report)."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int | None = None
    max_clock_hz: float | None = None
    max_memory_clock_hz: float | None = None
    memory_bus_bits: int | None = None
    l2_bytes: int | None = None
    shared_memory_per_sm: int | None = None
    max_warps_per_sm: int | None = None
    registers_per_sm: int | None = None
    # every ``device__attribute_*`` of the report, without the prefix
    attributes: Mapping[str, MetricValue] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LaunchStatistics:
    """How a kernel was launched. Shared memory in bytes per block, None where the report does not say.

    Grid and block are 0 × 0 × 0 of a launch that ncu could not profile.

    Of a range or graph ncu gives the largest figure of its launches, each for itself: grid and block need not be those
    of one launch.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers_per_thread: int | None = None
    static_shared_memory: int | None = None
    dynamic_shared_memory: int | None = None
    driver_shared_memory: int | None = None
    shared_memory_config: int | None = None
    cluster_size: int | None = None
    waves_per_sm: float | None = None
    stream: int | None = None
    context: int | None = None

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        """Threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]


class FamilyKey(NamedTuple):
    """What the launches of one family have in common; texts, so that a key can be kept in a file.

    Launches of one name with other shared memory or in another NVTX range do other work (their times differ several
    times over), so they are no repetitions of one another.
    """

    name: str
    grid: str
    block: str
    shared_memory: str
    nvtx: str


@dataclass(frozen=True, slots=True)
class Instances:
    """The instance values of one metric: ``keys[i]`` is an absolute PC, an opcode, an x value or a time stamp."""

    keys: tuple[int | float | str, ...]
    values: tuple[MetricValue, ...]

    def items(self) -> Iterator[tuple[int | float | str, MetricValue]]:
        """Pairs of key and value."""
        return zip(self.keys, self.values, strict=True)

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One SASS instruction of the kernel: its absolute address, text, and the CUDA line that it came from."""

    address: int
    sass: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class LineTable:
    """The line table of a module's code as it stands in the report, for `analysis.reading.line_table` to read."""

    rows: bytes = field(repr=False)  # DWARF's ``.debug_line``
    names: bytes = field(repr=False)  # ``.debug_str``, the names of functions
    # mangled name of the function whose address is to be put at an offset of ``rows``
    functions: Mapping[int, str] = field(repr=False)
    # the module's PTX (``.nv_debug_ptx_txt``), its lines ended by zeros; empty where the code holds none
    ptx: bytes = field(default=b"", repr=False)
    # ptx_rows, ptx_functions: the same of the lines of the PTX (``.nv_debug_line_sass``)
    ptx_rows: bytes = field(default=b"", repr=False)
    ptx_functions: Mapping[int, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Source:
    """SASS of the profiled function and the CUDA sources that the report carries.

    ``files`` maps the path on the profiling machine to the text ('' if the source was not imported).
    ``function_address`` is the PC of the first instruction. ``unread`` says why there are no instructions although the
    report holds the code: ncu_report is not installed here, or does not know it. ``line_table`` tells which calls were
    inlined; None without line information.
    """

    instructions: tuple[Instruction, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    function_address: int = 0
    unread: str = ""
    line_table: LineTable | None = None


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One piece of Nsight Compute's own advice, as stored in the report."""

    rule: str
    section: str
    title: str
    message: str
    severity: str  # ``none``, ``ok``, ``optimization``, ``warning`` or ``error``
    estimated_speedup: float | None = None  # per cent of the runtime (``global``) or of its part (``local``)
    speedup_scope: str | None = None
    tables: tuple[Mapping[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The title, else the rule's identifier as words: ``TheoreticalOccupancy`` is "Theoretical Occupancy"."""
        return self.title or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.rule)


@dataclass(frozen=True, slots=True)
class SessionDetails:
    """What a report says of the ncu run that wrote it. Texts are untrusted; host names and addresses are left out."""

    created: int | None = None  # seconds since 1970, None if the report does not say
    command_line: str = ""  # ncu's own command line
    application: str = ""  # the profiled program and its arguments
    # by provider as ncu names it: ``CUDA Version``, ``Display Driver Version``, ``Nsight Compute Target`` …
    versions: Mapping[str, str] = field(default_factory=dict)
    # ``sections``, ``clock control`` and ``replay mode`` where the report says
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    # attributes of the first GPU, without ``device__attribute_``
    device_attributes: Mapping[str, MetricValue] = field(default_factory=dict, repr=False)
    process: int | None = None  # that launched, None if the report does not say; torchrun starts one a GPU
    processes: int = 1  # how many processes the report holds launches of

    @property
    def ncu_version(self) -> tuple[int, ...]:
        """Year, release and patches of the ncu that measured, () where the report does not say (those of 2019)."""
        found = re.match(r"\d+(?:\.\d+)*", self.versions.get("Nsight Compute Target", ""))
        return tuple(map(int, found[0].split("."))) if found else ()

    @property
    def moment(self) -> datetime | None:
        """`created` as a date; None if the report does not say, or says what no calendar has."""
        try:
            return None if self.created is None else datetime.fromtimestamp(self.created, UTC)
        except (ValueError, OverflowError, OSError):
            return None


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """One profiled launch, complete in plain Python values; it holds no handle to the report file."""

    index: int  # position of the launch in its report, from 0
    report: str  # path of the report as the user gave it
    name: str  # demangled name with template arguments and parameters, untrusted text
    function_name: str  # the bare function name, untrusted text
    mangled_name: str  # the linker's name
    device: Device
    launch: LaunchStatistics
    # every scalar metric in base units. A metric that was not collected is absent, never 0.
    metrics: Mapping[str, MetricValue] = field(repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)  # by metric, as ncu names it
    # instance values of the metrics that have them
    instances: Mapping[str, Instances] = field(default_factory=dict, repr=False)
    # names of the metrics that ncu sampled over time (sections PmSampling and PmSampling_WarpStates): they
    # have a series among the instances, keyed by time stamps in nanoseconds, and no value
    sampled: tuple[str, ...] = ()
    nvtx: tuple[str, ...] = ()  # names of the NVTX ranges around the launch, outermost first, untrusted text
    rules: tuple[RuleResult, ...] = field(default=(), repr=False)  # Nsight Compute's advice
    # SASS and CUDA source, empty where the report has none or it was not asked for
    source: Source = field(default_factory=Source, repr=False)
    workload: str = "kernel"  # or ``range``, ``command list`` or ``graph``, which have no launch of their own
    session: SessionDetails = field(default_factory=SessionDetails, repr=False)  # the ncu run that wrote it
    # sentences on what in the report contradicts itself at this launch: reasons not to trust its values
    doubts: tuple[str, ...] = ()
    profiled: bool = True  # False where ncu could not: every counter is NaN, and the grid may be 0 × 0 × 0
    # values of metrics that the report holds under an older name, by the name of today
    renamed: Mapping[str, MetricValue] = field(default_factory=dict, repr=False)
    # ``python`` or ``c`` where the line table of its code names files of that language, '' without line
    # information. Looked at only where the name leaves in doubt whose code it is.
    lines: str = ""

    def in_names_of_today(self) -> KernelProfile:
        """The same with `renamed` among the metrics, for analyses; what is shown raw is as the report has it."""
        if not self.renamed:
            return self
        return replace(self, metrics={**self.metrics, **self.renamed}, renamed={})

    def __repr__(self) -> str:
        where = f"launch {self.index} of {one_line(self.report)}"
        return brief(self, self.name, where, f"{len(self.metrics):,} metrics")

    @property
    def family(self) -> FamilyKey:
        """What this launch shares with its repetitions: full name, grid, block, shared memory and NVTX path."""
        launch = self.launch
        sizes = (launch.static_shared_memory, launch.dynamic_shared_memory)
        known = [size for size in sizes if size is not None]
        grid, block = ("x".join(map(str, sizes)) for sizes in (launch.grid, launch.block))
        return FamilyKey(self.name, grid, block, str(sum(known)) if known else "", "/".join(self.nvtx))

    @property
    def one_by_one(self) -> str:
        """ncu's option that profiles the launches of a graph or range each by itself; '' where it is one launch."""
        if self.workload == "kernel":
            return ""
        return "--graph-profiling node" if self.workload == "graph" else "--replay-mode kernel"

    def number(self, metric: str) -> float | None:
        """The scalar as a float, or None if it was not collected, is text, or ncu could not compute it (NaN)."""
        value = self.metrics.get(metric)
        if value is None:
            value = self.renamed.get(metric)
        if value is None or isinstance(value, str) or not math.isfinite(value):
            return None
        return float(value)

    def whole(self, metric: str) -> int | None:
        """The scalar as a whole number, or None as `number`."""
        value = self.number(metric)
        return None if value is None else int(value)

    def named(self, value: Named, name: str) -> Named:
        """A value of the launch or the device under the name that formulas call it by (see `analysis.figure`)."""
        return value

    def first_number(self, metrics: Iterable[str]) -> float | None:
        """The first of several names for one quantity that was collected, or None."""
        return next((value for name in metrics if (value := self.number(name)) is not None), None)

    def text(self, metric: str) -> str | None:
        """The scalar as text, or None if it was not collected (or is a number)."""
        value = self.metrics.get(metric)
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class NotCollected:
    """Stands where a result would: these metrics are not in the report, and this is how to get them."""

    metrics: tuple[str, ...]
    remedy: str  # an ncu option, for example ``--section InstructionStats``; '' where none would bring them

    def __str__(self) -> str:
        return f"not collected: use {self.remedy}" if self.remedy else "ncu could not measure it"

    def __bool__(self) -> Literal[False]:
        # Literal: so that type checkers know the type after `if result:`.
        return False


# --- Findings ---------------------------------------------------------------------------------------------------------
# What holds a launch back, where, and what fixing it would bring.


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that a finding rests on: a metric of the report, or what was derived from several, named in words."""

    metric: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where a finding sits, with its share of the finding (0 to 1)."""

    file: str | None  # the user's own; None without line information
    line: int | None  # in it, from 1
    share: float  # of the finding's weight
    text: str = ""  # the line of source, '' where the report carries none; untrusted
    address: int | None = None  # of the heaviest instruction of the place
    sass: str = ""  # that instruction
    # ``file:line`` from the innermost header line outwards, where the code was inlined there
    inlined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to change what a finding names, and what it would bring."""

    name: str  # what is written instead, in a few words
    saves: float  # predicted share of the launch's time, 0 to 1
    saves_low: float  # lower end of its 80 % interval
    saves_high: float  # upper end of its 80 % interval
    same_arithmetic: bool = True  # it computes the same to the same precision


HALF_A_PERCENT = 0.005


NOTABLE = 0.08
"""Share of a launch's time from which on a saving is worth a rewrite, and can be told from what a recompile moves."""
UNPLACED = 0.12
"""The same of what no place in the code shows (waves, unequal blocks, few warps), nor the grid alone. Of six such
statements from 8 to 12 % that were tried, or whose fix is written, four bring nothing; of 44 others, 15.
"""


def is_notable(cause: str, saves: float, *, placed: bool) -> bool:
    """Whether a share of the time that fixing a cause saves is enough for a statement, by whether the code has a place
    for it.
    """
    return saves >= (NOTABLE if placed or cause == "small_grid" else UNPLACED)


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that holds a launch back, and what fixing it alone would bring."""

    cause: str  # key of ``analysis.explanation.causes.CAUSES``
    saves: float  # predicted share of the launch's time, 0 to 1: of the best of its variants
    saves_low: float  # lower end of its 80 % interval
    saves_high: float  # upper end of its 80 % interval
    places: tuple[CodePlace, ...] = ()  # where it sits, heaviest first
    evidence: tuple[Evidence, ...] = ()  # the numbers that it rests on
    change: str = ""  # what to try, one sentence
    variants: tuple[Rewrite, ...] = ()  # the ways to change it, the best first
    # cause of a finding before it that saves the same loss, '' where it is a loss of its own
    another_way_to: str = ""
    # such a way by a general name (more warps, more loads in flight, wider accesses) that saves far less than what
    # stands before it, or little: it is no statement
    minor: bool = False

    @property
    def notable(self) -> bool:
        """Whether it saves enough to be a statement, for what it rests on."""
        return is_notable(self.cause, self.saves, placed=bool(self.places))

    @property
    def told(self) -> bool:
        """Whether it is a statement: gates, histories, conditions and comparisons go by those alone, too."""
        return self.notable and not self.minor

    def came(self, measured: float) -> str:
        """``as``, ``more`` or ``less``: a saving that was measured beside the interval, shown in whole per cent."""
        if measured < self.saves_low - HALF_A_PERCENT:
            return "less"
        return "more" if measured > self.saves_high + HALF_A_PERCENT else "as"


@dataclass(frozen=True, slots=True)
class AtLimit:
    """A resource and the share of its practical rate that is in use, or of the time that it would need alone."""

    resource: str
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to change first in one launch, and how far to trust that."""

    launch: int  # position of the launch in its report
    report: str  # path of the report as the user gave it
    name: str  # the kernel's demangled name, untrusted text
    nvtx: tuple[str, ...]  # NVTX ranges around it, outermost first, untrusted text
    duration_ns: float | None  # under the profiler; None if not collected
    trust: tuple[str, ...]  # what makes the numbers doubtful, a sentence each
    # set where no finding is worth its work and a resource does at least nine tenths of what it can
    at_limit: AtLimit | None
    # most saved first; behind each the other ways to the same. A loss that saves less than 0.08
    # (0.12 where no place shows it) is no statement
    findings: tuple[Finding, ...]
    # predicted share of the time that is saved with all losses, each in one way; None for fewer than two
    together: float | None = None
    limit: AtLimit | None = None  # what bounds the launch as it is, with its share, known or None
    # the memory that needs longest for what the launch moves, at the rate that it reaches in practice, and
    # that time as a share of the launch's: the floor as long as no byte less is moved. None without findings.
    traffic: AtLimit | None = None
    # what only another arithmetic or a lower precision would save, most saved first
    other_arithmetic: tuple[Finding, ...] = ()
    # what the launch's time consists of: the resources that would need most of it alone, and the warps' waits
    # that nothing hides
    time: tuple[AtLimit, ...] = ()
    # what can be changed about the call besides, a sentence each: what it brings is not known from here
    levers: tuple[str, ...] = ()

    @property
    def losses(self) -> tuple[tuple[Finding, ...], ...]:
        """The findings by the loss that they save, first what saves it, then other ways to the same: those that are
        `Finding.notable`, without minor ways.
        """
        found = (loss for loss in self._by_loss() if loss[0].notable)
        return tuple(tuple(one for one in loss if not one.minor) for loss in found)

    @property
    def small(self) -> tuple[Finding, ...]:
        """What would save less, if anything."""
        return tuple(loss[0] for loss in self._by_loss() if not loss[0].notable)

    def _by_loss(self) -> list[list[Finding]]:
        found: list[list[Finding]] = []
        for one in self.findings:
            if one.another_way_to and found:
                found[-1].append(one)
            else:
                found.append([one])
        return found

    @property
    def floor_ns(self) -> float | None:
        """How long the launch takes at least as long as it moves what it moves; None where that is not known."""
        if self.traffic is None or self.duration_ns is None:
            return None
        return self.traffic.share * self.duration_ns

    def __repr__(self) -> str:
        causes = [f"{one.cause} saves {ratio(one.saves, 0)}" for one, *_ in self.losses]
        facts = f"launch {self.launch}", nanoseconds(self.duration_ns), *(causes or ["no finding"])
        return brief(self, self.name, *facts)
