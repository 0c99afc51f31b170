"""The words that pass between the rooms: frozen dataclasses in CUDA's and Nsight Compute's own terms.

Units are base units throughout: bytes, bytes per second, nanoseconds for durations that ncu measured, seconds
for durations that gemmprof timed, hertz, cycles. Percentages run from 0 to 100, ratios from 0 to 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal

from gemmprof.addresses import Addresses
from gemmprof.dtypes import DTYPES, FLOAT32
from gemmprof.errors import UsageError

MetricValue = int | float | str
"""One scalar as the report stores it: counters are float or int, names and lists are str."""

_SHAPE = re.compile(
    r"^\s*([0-9]{1,9})\s*(?:[xX×*,]\s*([0-9]{1,9})\s*[xX×*,]\s*([0-9]{1,9})\s*)?"
    rf"(?:-({'|'.join(DTYPES)})(?:-({'|'.join(DTYPES)}))?\s*)?$"
)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One matrix product C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C, row-major.

    Attributes:
        m, n, k: rows of C, columns of C, and the length of the sums.
        dtype: name of the type of A and B (`gemmprof.dtypes`).
        c_dtype: of C; the operands' type unless it is given.
    """

    m: int
    n: int
    k: int
    dtype: str = FLOAT32.name
    c_dtype: str = ""

    def __post_init__(self) -> None:
        # So that a problem which names C's type equals one that leaves it open.
        object.__setattr__(self, "c_dtype", self.c_dtype or self.dtype)

    @classmethod
    def parse(cls, text: str, dtype: str = FLOAT32.name, c_dtype: str = "") -> Problem:
        """Read ``4096``, ``4096x4096x4096`` or ``4096,4096,1024`` (M, N, K), or any problem's `key`.

        Types that the text names (``4096-bfloat16``) go before the arguments.

        Raises:
            UsageError: if the text is no shape, or M or N is 0.
        """
        match = _SHAPE.match(text)
        if match is None:
            raise UsageError(
                f"'{text[:60]}' is not a matrix shape",
                remedies=["write MxNxK, for example --shape 4096x4096x1024, or one number for a cube"],
            )
        m = int(match.group(1))
        n, k = (int(match.group(2)), int(match.group(3))) if match.group(2) else (m, m)
        if m < 1 or n < 1:
            raise UsageError(f"shape '{text}' has no output element", remedies=["M and N must be at least 1"])
        return cls(m, n, k, match.group(4) or dtype, match.group(5) or ("" if match.group(4) else c_dtype))

    def is_shape_of(self, other: Problem) -> bool:
        """Whether both are products of the same size, of whatever types."""
        return (self.m, self.n, self.k) == (other.m, other.n, other.k)

    @property
    def flops(self) -> int:
        """Floating-point operations of the product, a multiply-add counted as two."""
        return 2 * self.m * self.n * self.k

    @property
    def label(self) -> str:
        """Short name: ``4096³`` for a cube, else ``4096×4096×1024``; other types than float32 are named behind it."""
        shape = f"{self.m}³" if self.m == self.n == self.k else f"{self.m}×{self.n}×{self.k}"
        return " ".join([shape, " → ".join(self._named_types)]).rstrip()

    @property
    def key(self) -> str:
        """Name that is safe in file names and command lines: ``4096x4096x1024``, ``4096x4096x1024-bfloat16``.

        float32 goes without saying, and C's type where it is the operands'.
        """
        return "-".join([f"{self.m}x{self.n}x{self.k}", *self._named_types])

    @property
    def _named_types(self) -> tuple[str, ...]:
        if self.c_dtype != self.dtype:
            return self.dtype, self.c_dtype
        return () if self.dtype == FLOAT32.name else (self.dtype,)


@dataclass(frozen=True, slots=True)
class Stage:
    """One rung of a ladder.

    Attributes:
        number: its place in the ladder.
        name: short identifier, also the operator's name (``torch.ops.gemmprof.<name>``).
        title: the name in words.
        idea: the one thing that this stage changes, as one sentence.
        source: the ``.cu`` file under ``kernels/`` (``sgemm/naive.cu``), or None where the kernel is not ours.
        parameters: the tile letters and other compile-time parameters (BM BN BK WM WN TM TN THREADS …).
        variants: other parameter sets that are built under ``<name>_<key>``, for comparison.
        remark: what came of the idea on an H100, where that needs a word; '' elsewhere.
        compiler_flags: what nvcc gets beyond the flags that all stages share.
        ladder: name of the ladder that it belongs to.
        dtypes: operand types that it computes in.
        yardstick: True for the stage that the others of its ladder are measured against.
        addresses: where its threads go, None where that is not declared: then its pages leave the sections out.
        architectures: compute capabilities that it is written for, with the compiler's suffix where it needs the
            instructions of one architecture alone (``9.0a``); () for every one that is built for.
    """

    number: int
    name: str
    title: str
    idea: str
    source: str | None = None
    parameters: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    variants: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    remark: str = ""
    compiler_flags: tuple[str, ...] = ()
    ladder: str = "single"
    dtypes: tuple[str, ...] = (FLOAT32.name,)
    yardstick: bool = False
    architectures: tuple[str, ...] = ()
    addresses: Addresses | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Ladder:
    """Stages of one kind of arithmetic, each a step over the one before, and what they are measured against.

    Attributes:
        name: short identifier, for ``--ladder``.
        title: the name in words.
        dtypes: operand types, the one that is taken where none is asked for first.
        stages: the rungs in order, the yardstick among them.
    """

    name: str
    title: str
    dtypes: tuple[str, ...]
    stages: tuple[Stage, ...]

    @property
    def yardstick(self) -> Stage:
        """The stage that the others are measured against.

        Raises:
            KeyError: none is marked as such.
        """
        for stage in self.stages:
            if stage.yardstick:
                return stage
        raise KeyError(f"ladder {self.name} has no yardstick")

    def stage(self, number: int) -> Stage:
        """The rung with this number.

        Raises:
            KeyError: if there is none.
        """
        for stage in self.stages:
            if stage.number == number:
                return stage
        raise KeyError(number)


@dataclass(frozen=True, slots=True)
class ArchLimits:
    """One compute capability: the limits that decide occupancy, and every other fact that differs between GPUs.

    Source of the limits: the table inside Nsight Compute's occupancy calculator (2025.3.1). Shared memory sizes are
    bytes and include the driver's reserve of ``reserved_shared_memory_per_block``.

    Attributes:
        oldest_nvcc: first CUDA release that compiles for it (PTX ISA's table of releases).
        built: the ladders are compiled and tested for it.
        dram_counters: ncu has ``dram__*`` metrics; False where the memory is not the GPU's own.
        clusters: it has thread block clusters, distributed shared memory and bulk tensor copies.
        barriers_limit_occupancy: the official calculator looks at block barriers.
        cubin_counts_reserve: the shared memory that cuobjdump counts includes the driver's reserve, because the
            compiler lays it out in the file (section ``.nv.shared.reserved.0``; compared over sm_75 to sm_121).
    """

    compute_capability: tuple[int, int]
    chip: str
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_barriers_per_sm: int
    shared_memory_per_sm: int
    max_shared_memory_per_block: int
    registers_per_sm: int
    max_registers_per_block: int
    max_registers_per_thread: int
    register_allocation_unit: int
    warp_allocation_granularity: int
    shared_memory_allocation_unit: int
    max_threads_per_block: int
    shared_memory_configs: tuple[int, ...]
    reserved_shared_memory_per_block: int
    oldest_nvcc: tuple[int, int]
    built: bool = False
    dram_counters: bool = True
    clusters: bool = False
    barriers_limit_occupancy: bool = False
    cubin_counts_reserve: bool = False
    warp_size: int = 32

    @property
    def label(self) -> str:
        """Compute capability as people write it, for example ``9.0``."""
        return f"{self.compute_capability[0]}.{self.compute_capability[1]}"


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
    attributes: Mapping[str, MetricValue] = field(default_factory=dict, repr=False)
    """Every ``device__attribute_*`` of the report, without the prefix."""


@dataclass(frozen=True, slots=True)
class LaunchStatistics:
    """How a kernel was launched. Shared memory in bytes per block, None where the report does not say.

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
class Source:
    """SASS of the profiled function and the CUDA sources that the report carries.

    ``files`` maps the path on the profiling machine to the text ('' if the source was not imported).
    ``function_address`` is the PC of the first instruction.
    """

    instructions: tuple[Instruction, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    function_address: int = 0


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One piece of Nsight Compute's own advice, as stored in the report."""

    rule: str
    section: str
    title: str
    message: str
    severity: str
    """``none``, ``ok``, ``optimization``, ``warning`` or ``error``."""
    estimated_speedup: float | None = None
    """Per cent of the runtime (scope ``global``) or of the affected part (scope ``local``)."""
    speedup_scope: str | None = None
    focus_metrics: tuple[Mapping[str, Any], ...] = ()
    tables: tuple[Mapping[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The title, else the rule's identifier as words: ``TheoreticalOccupancy`` is "Theoretical Occupancy"."""
        return self.title or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.rule)


@dataclass(frozen=True, slots=True)
class SessionDetails:
    """What a report says of the ncu run that wrote it. Texts are untrusted; host names and addresses are left out.

    Attributes:
        created: seconds since 1970, None if the report does not say.
        command_line: ncu's own command line.
        application: the profiled program and its arguments.
        versions: by provider as ncu names it: ``CUDA Version``, ``Display Driver Version``, ``Nsight Compute Target`` …
        settings: ``sections``, ``clock control`` and ``replay mode`` where the report says.
        device_attributes: attributes of the first GPU, without ``device__attribute_``.
    """

    created: int | None = None
    command_line: str = ""
    application: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    device_attributes: Mapping[str, MetricValue] = field(default_factory=dict, repr=False)

    @property
    def moment(self) -> datetime | None:
        """`created` as a date; None if the report does not say, or says what no calendar has."""
        try:
            return None if self.created is None else datetime.fromtimestamp(self.created, UTC)
        except (ValueError, OverflowError, OSError):
            return None


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """One profiled launch, complete in plain Python values; it holds no handle to the report file.

    Attributes:
        index: position of the launch in its report, from 0.
        report: path of the report as the user gave it.
        name: demangled name with template arguments and parameters, untrusted text.
        function_name: the bare function name, untrusted text.
        mangled_name: the linker's name.
        metrics: every scalar metric in base units. A metric that was not collected is absent, never 0.
        units: unit of each metric as ncu names it ('' if none).
        instances: instance values of the metrics that have them.
        nvtx: names of the NVTX ranges around the launch, outermost first, untrusted text.
        rules: Nsight Compute's advice.
        source: SASS and CUDA source, empty where the report has none or it was not asked for.
        workload: ``kernel``, or ``range``, ``command list`` or ``graph``, which have no launch of their own.
        session: the ncu run that wrote the report.
        doubts: sentences on what in the report contradicts itself at this launch: reasons not to trust its values.
    """

    index: int
    report: str
    name: str
    function_name: str
    mangled_name: str
    device: Device
    launch: LaunchStatistics
    metrics: Mapping[str, MetricValue] = field(repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)
    instances: Mapping[str, Instances] = field(default_factory=dict, repr=False)
    nvtx: tuple[str, ...] = ()
    rules: tuple[RuleResult, ...] = field(default=(), repr=False)
    source: Source = field(default_factory=Source, repr=False)
    workload: str = "kernel"
    session: SessionDetails = field(default_factory=SessionDetails, repr=False)
    doubts: tuple[str, ...] = ()

    def number(self, metric: str) -> float | None:
        """The scalar as a float, or None if it was not collected, is text, or ncu could not compute it (NaN)."""
        value = self.metrics.get(metric)
        if value is None or isinstance(value, str) or not math.isfinite(value):
            return None
        return float(value)

    def first_number(self, metrics: Iterable[str]) -> float | None:
        """The first of several names for one quantity that was collected, or None."""
        return next((value for name in metrics if (value := self.number(name)) is not None), None)

    def text(self, metric: str) -> str | None:
        """The scalar as text, or None if it was not collected (or is a number)."""
        value = self.metrics.get(metric)
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that a finding rests on: a metric of the report, or what was derived from several, named in words."""

    metric: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where a finding sits, with its share of the finding (0 to 1).

    Attributes:
        file, line: the user's own line; None without line information.
        share: of the finding's weight.
        text: the line of source, '' where the report carries none; untrusted.
        address, sass: the heaviest instruction of the place.
        inlined: ``file:line`` from the innermost header line outwards, where the code was inlined there.
    """

    file: str | None
    line: int | None
    share: float
    text: str = ""
    address: int | None = None
    sass: str = ""
    inlined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that holds a launch back, and what mending it alone would bring.

    Attributes:
        cause: key of ``analysis.explanation.causes.CAUSES``.
        saves: predicted share of the launch's time, 0 to 1.
        saves_low, saves_high: 80 % interval of it.
        places: where it sits, heaviest first.
        evidence: the numbers that it rests on.
        change: what to try, one sentence.
    """

    cause: str
    saves: float
    saves_low: float
    saves_high: float
    places: tuple[CodePlace, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    change: str = ""


@dataclass(frozen=True, slots=True)
class AtLimit:
    """A launch with nothing left to gain: the resource that limits it and the share of its practical rate in use."""

    resource: str
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to change first in one launch, and how far to trust that.

    Attributes:
        launch: position of the launch in its report.
        report: path of the report as the user gave it.
        name: the kernel's demangled name, untrusted text.
        nvtx: NVTX ranges around it, outermost first, untrusted text.
        duration_ns: under the profiler; None if not collected.
        trust: what makes the numbers doubtful, a sentence each.
        at_limit: set where no finding is worth its work.
        findings: most saved first.
        together: predicted share of the time that mending all findings saves; None for fewer than two.
        limit: the resource that bounds the launch as it is, with its share, known or None.
    """

    launch: int
    report: str
    name: str
    nvtx: tuple[str, ...]
    duration_ns: float | None
    trust: tuple[str, ...]
    at_limit: AtLimit | None
    findings: tuple[Finding, ...]
    together: float | None = None
    limit: AtLimit | None = None


@dataclass(frozen=True, slots=True)
class NotCollected:
    """Stands where a result would: these metrics are not in the report, and this is how to get them."""

    metrics: tuple[str, ...]
    remedy: str
    """An ncu option, for example ``--section InstructionStats``."""

    def __str__(self) -> str:
        return f"not collected: use {self.remedy}"

    def __bool__(self) -> Literal[False]:
        # Literal: so that type checkers know the type after `if result:`.
        return False


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU that a result came from.

    Attributes:
        model: its name as the driver gives it, ``NVIDIA H200``: only results of one model are compared.
        index: its place in nvidia-smi's list, on its host.
        uuid: by which the driver tells it from every other.
        host: name of the machine, '' for the one that the command ran on.
    """

    model: str
    index: int
    uuid: str
    host: str = ""

    @property
    def label(self) -> str:
        """``GPU 1``, with its machine where that is another."""
        return f"GPU {self.index}" + (f" of {self.host}" if self.host else "")


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of comparing a stage with a float64 reference on fresh random data."""

    relative_error: float
    """Frobenius norm of the difference over that of the reference; NaN if the output holds NaN."""
    tolerance: float
    passed: bool
    detail: str = ""
    card: Card | None = None
    """Where it was computed; None in runs from before this was noted."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one stage in seconds, warm, L2 flushed before each repetition, interleaved with the yardstick."""

    median: float
    minimum: float
    p10: float
    p90: float
    repetitions: int
    sm_clock_mhz: float | None = None
    yardstick_median: float | None = None
    """Median time of the yardstick in the repetitions that alternated with this stage's, in seconds."""
    card: Card | None = None
    """Where stage and yardstick were timed, both; None in runs from before this was noted."""

    @property
    def of_yardstick(self) -> float | None:
        """Speed as a share of the yardstick's in alternating repetitions; None where that was not timed."""
        return self.yardstick_median / self.median if self.yardstick_median else None

    def tflops(self, problem: Problem) -> float:
        """TFLOP/s at the median time."""
        return problem.flops / self.median / 1e12


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a run knows of one stage on one problem. A part that was not asked for or failed is None."""

    stage: int
    problem: Problem
    verification: Verification | None = None
    timing: Timing | None = None
    report: str | None = None
    """Report file in the run directory."""
    launch_index: int | None = None
    """Position of the stage's launch in that report."""
    failure: str | None = None
    """What went wrong, in one or more lines; None if nothing did."""


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A report of a run as it was when the run was made.

    Attributes:
        sha256: of its uncompressed bytes, in hexadecimal digits.
        launches: how many it holds.
        card: what was profiled, None where that was not noted.
    """

    sha256: str
    launches: int
    card: Card | None = None


@dataclass(frozen=True, slots=True)
class StageRecord:
    """A stage as it was when the run was made: the catalog entry, and what the build made of it."""

    stage: Stage
    source_hash: str = ""
    registers_per_thread: int | None = None
    static_shared_memory: int | None = None
    spill_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run that hold for all its stages: ``run.json`` without stages and results.

    Attributes:
        created: when it began, ISO 8601.
        device: name of the GPU, as the driver gives it.
        compute_capability: major and minor.
        clock_control: what ncu did about the clocks, ``base`` or ``none``.
        seed: of the random operands.
        metric_set: what was profiled, a set of ncu's or ``lean``.
        command: as it was typed.
        notes: options, seconds of each part, and what else was noted.
    """

    created: str
    device: str
    compute_capability: tuple[int, int]
    versions: Mapping[str, str]
    """Keys: gemmprof, driver, cuda, torch, ncu, python, nvcc where known."""
    clock_control: str
    seed: int
    metric_set: str
    command: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
