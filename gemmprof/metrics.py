"""The only home of Nsight Compute metric names, and of which sections collect them.

An analysis reads one `MetricGroup`; ``collect`` asks ncu for the union of all groups (`collection_options`). Names
that exist only on some architectures stand under ``optional``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from gemmprof.model import NotCollected


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one analysis.

    Attributes:
        sections: ncu section identifiers that collect the group.
        required: without all of these the analysis has no result.
        expected: exist on every architecture; without one of these a part of the result is absent.
        optional: used where present; they exist on some architectures or in some versions of ncu only.
        requested: metrics that no section lists, to be asked for by name.
        sources: which section collects which of the required and expected metrics, so that a remedy can be short.
    """

    sections: tuple[str, ...]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def remedy(self) -> str:
        """The ncu options that collect the group."""
        return _options(self.sections, self.requested)

    def remedy_for(self, absent: Collection[str]) -> str:
        """The ncu options that collect these metrics of the group; those of the whole group if one has no source."""
        sections = [name for name in self.sections if not set(absent).isdisjoint(self.sources.get(name, ()))]
        requested = [name for name in self.requested if name in absent]
        found = {*requested, *(name for section in sections for name in self.sources[section])}
        return _options(sections, requested) if found.issuperset(absent) else self.remedy

    def missing(self, present: Iterable[str]) -> NotCollected | None:
        """`NotCollected` naming the required metrics that are not in ``present``; None if all are there."""
        return self._absent(self.required, present)

    def incomplete(self, present: Iterable[str]) -> NotCollected | None:
        """`NotCollected` naming required and expected metrics that are not in ``present``; None if all are there."""
        return self._absent((*self.required, *self.expected), present)

    def not_collected(self, present: Iterable[str]) -> NotCollected:
        """What stands in place of a result, naming the absent required metrics, else the expected ones."""
        # NotCollected is false, so `or` would drop it.
        missing = self.missing(present)
        if missing is None:
            missing = self.incomplete(present)
        return NotCollected((*self.required, *self.expected), self.remedy) if missing is None else missing

    def _absent(self, names: Iterable[str], present: Iterable[str]) -> NotCollected | None:
        have = present if isinstance(present, (Mapping, Set)) else set(present)
        absent = tuple(name for name in names if name not in have)
        return NotCollected(absent, self.remedy_for(absent)) if absent else None


def _options(sections: Iterable[str], requested: Collection[str]) -> str:
    options = [f"--section {section}" for section in sections]
    if requested:
        options.append("--metrics " + ",".join(requested))
    return " ".join(options)


# --- Launch (section LaunchStats) -------------------------------------------------------------------------------------

GRID_SIZE = "launch__grid_size"
BLOCK_SIZE = "launch__block_size"
THREADS = "launch__thread_count"
GRID_DIMENSIONS = ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z")
BLOCK_DIMENSIONS = ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z")
"""Stored with a launch itself; of a range or graph only these metrics tell, with the largest of its launches."""
REGISTERS_PER_THREAD = "launch__registers_per_thread"
SHARED_MEMORY_CONFIG = "launch__shared_mem_config_size"
SHARED_MEMORY_DRIVER = "launch__shared_mem_per_block_driver"
SHARED_MEMORY_DYNAMIC = "launch__shared_mem_per_block_dynamic"
SHARED_MEMORY_STATIC = "launch__shared_mem_per_block_static"
CACHE_CONFIG = "launch__func_cache_config"
CLUSTER_SIZE = "launch__cluster_size"
WAVES_PER_SM = "launch__waves_per_multiprocessor"
SM_COUNT = "launch__sm_count"
STACK_SIZE = "launch__stack_size"
CLUSTER_SCHEDULING_POLICY = "launch__cluster_scheduling_policy"
TPC_COUNT = "launch__tpc_count"
TPC_ENABLED = "launch__tpc_enabled"
GREEN_CONTEXT = "launch__uses_green_context"
FUNCTION_PCS = "launch__function_pcs"
"""Instance values: address of the kernel's first instruction, and of the functions that it calls."""
DEVICE_ATTRIBUTE_PREFIX = "device__attribute_"

LAUNCH = MetricGroup(
    sections=("LaunchStats",),
    expected=(
        GRID_SIZE,
        BLOCK_SIZE,
        THREADS,
        REGISTERS_PER_THREAD,
        SHARED_MEMORY_CONFIG,
        SHARED_MEMORY_DRIVER,
        SHARED_MEMORY_DYNAMIC,
        SHARED_MEMORY_STATIC,
        WAVES_PER_SM,
    ),
    optional=(
        CACHE_CONFIG,
        CLUSTER_SIZE,
        CLUSTER_SCHEDULING_POLICY,
        SM_COUNT,
        STACK_SIZE,
        TPC_COUNT,
        TPC_ENABLED,
        GREEN_CONTEXT,
    ),
)

# --- Speed of light (section SpeedOfLight) ----------------------------------------------------------------------------

DURATION = "gpu__time_duration.sum"
SM_THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
L1_THROUGHPUT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_THROUGHPUT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_THROUGHPUT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
ELAPSED_CYCLES = "gpc__cycles_elapsed.max"
SM_ACTIVE_CYCLES = "sm__cycles_active.avg"
SM_CLOCK = "gpc__cycles_elapsed.avg.per_second"
DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second"
BREAKDOWN_SM = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
BREAKDOWN_MEMORY = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"

SPEED_OF_LIGHT = MetricGroup(
    sections=("SpeedOfLight",),
    expected=(
        SM_THROUGHPUT,
        MEMORY_THROUGHPUT,
        DURATION,
        L1_THROUGHPUT,
        L2_THROUGHPUT,
        ELAPSED_CYCLES,
        SM_ACTIVE_CYCLES,
        SM_CLOCK,
        BREAKDOWN_SM,
        BREAKDOWN_MEMORY,
    ),
    optional=(DRAM_THROUGHPUT, DRAM_CLOCK),
)

NO_DRAM_COUNTERS = frozenset({(8, 7), (8, 8), (11, 0), (12, 1)})
"""Compute capabilities on which no ``dram__*`` metric exists: their memory is not the GPU's own."""

L1_DATA_STAGE = "L1 data stage"

_UNITS: tuple[tuple[str, str], ...] = (
    (r"sm__inst_executed_pipe_lsu|l1tex__lsuin_requests", "load/store unit"),
    (r"sm__issue_active|sm__inst_executed", "issue slots"),
    (r"sm__\w*pipe_fma\w*", "FMA pipe"),
    (r"sm__\w*pipe_alu\w*", "integer ALU"),
    (r"sm__\w*pipe_fp64\w*", "FP64 pipe"),
    (r"sm__\w*pipe_fp16\w*", "FP16 pipe"),
    (r"sm__\w*pipe_shared\w*", "FP64 and tensor pipe"),
    (r"sm__\w*pipe_(tensor|tc_)\w*|sm__mem_tensor\w*", "tensor cores"),
    (r"sm__\w*pipe_xu\w*", "special-function unit"),
    (r"sm__\w*pipe_uniform\w*", "uniform datapath"),
    (r"sm__\w*pipe_cbu\w*", "branch unit"),
    (r"sm__\w*pipe_adu\w*", "address-divergence unit"),
    (r"sm__\w*pipe_tex\w*|l1tex__(tex|f_|data_pipe_tex)\w*", "texture unit"),
    (r"sm__\w*pipe_ipa\w*", "interpolation unit"),
    (r"sm__\w*pipe_tma\w*", "tensor memory accelerator"),
    (r"sm__mio\w*", "memory I/O queue"),
    (r"\w+_internal_activity", "internal activity"),
    (r"idc__\w*", "constant cache"),
    (r"l1tex__data\w*", L1_DATA_STAGE),
    (r"l1tex__\w*", "L1 cache"),
    (r"lts__\w*|l2\w*", "L2 cache"),
    (r"(dram|fbpa|gpu__dram)\w*", "DRAM"),
)
_UNIT_PATTERNS = tuple((re.compile(pattern), unit) for pattern, unit in _UNITS)


def hardware_unit(name: str) -> str:
    """The hardware unit that a member of a throughput breakdown measures, in words ('' if it is unknown).

    The L1 data stage serves the L1 cache and shared memory alike.
    """
    base = name.partition(".")[0]
    return next((unit for pattern, unit in _UNIT_PATTERNS if pattern.fullmatch(base)), "")


# --- Roofline (sections SpeedOfLight_RooflineChart, SpeedOfLight_Hierarchical*RooflineChart) --------------------------

SMSP_CLOCK = "smsp__cycles_elapsed.avg.per_second"
SM_ELAPSED_CLOCK = "sm__cycles_elapsed.avg.per_second"
L1_CLOCK = "l1tex__cycles_elapsed.avg.per_second"
L2_CLOCK = "lts__cycles_elapsed.avg.per_second"


def executed_per_cycle(operation: str) -> str:
    """Predicated-on thread instructions of one operation (``ffma``, ``dadd`` …) per elapsed cycle."""
    return f"smsp__sass_thread_inst_executed_op_{operation}_pred_on.sum.per_cycle_elapsed"


def peak_per_cycle(operation: str) -> str:
    """The most thread instructions of one operation that all SMs together can execute per cycle."""
    return f"sm__sass_thread_inst_executed_op_{operation}_pred_on.sum.peak_sustained"


DRAM_BYTES_PER_SECOND = "dram__bytes.sum.per_second"
DRAM_BYTES_PEAK = "dram__bytes.sum.peak_sustained"
L2_TO_XBAR_PER_SECOND = "lts__lts2xbar_cycles_active.sum.per_second"
L2_TO_XBAR_PEAK = "lts__lts2xbar_cycles_active.sum.peak_sustained"
L1_WRITEBACK_PER_SECOND = "l1tex__lsu_writeback_active_mem_lg.sum.per_second"
L1_WRITEBACK_PEAK = "l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained"
L1_WRITEBACK_DSHARED_PER_SECOND = "l1tex__lsu_writeback_active_mem_lgds.sum.per_second"
"""From compute capability 9.0 on, with distributed shared memory."""
L1_WRITEBACK_DSHARED_PEAK = "l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained"

SHARED_WAVEFRONTS = tuple(
    f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{operation}.sum" for operation in ("ld", "st", "atom")
)
SHARED_WAVEFRONTS_GMMA = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"
"""Operand reads of wgmma, compute capability 9.0 only."""

_TENSOR_PATH = re.compile(r"sm__ops_path_tensor_(\w+)\.sum\.per_cycle_elapsed")


def tensor_paths(present: Iterable[str]) -> Iterator[str]:
    """The tensor paths (``op_hgmma_src_bf16_dst_fp32_sparsity_off`` …) that a report holds counters of."""
    for name in present:
        match = _TENSOR_PATH.fullmatch(name)
        if match is not None:
            yield match[1]


def tensor_operations_per_cycle(path: str) -> str:
    """Operations of one tensor path per elapsed cycle, all SMs together."""
    return f"sm__ops_path_tensor_{path}.sum.per_cycle_elapsed"


def tensor_operations_peak(path: str) -> str:
    """The most operations of one tensor path that all SMs together can execute per cycle."""
    return f"sm__ops_path_tensor_{path}.sum.peak_sustained"


_ROOFLINE_BASIC = (
    SMSP_CLOCK,
    SM_ELAPSED_CLOCK,
    *(executed_per_cycle(f"{letter}{name}") for letter in "fd" for name in ("add", "mul", "fma")),
    *(peak_per_cycle(f"{letter}fma") for letter in "fd"),
)
_ROOFLINE_CACHES = (L1_CLOCK, L2_CLOCK, L2_TO_XBAR_PER_SECOND, L2_TO_XBAR_PEAK)
_ROOFLINE_HALF = (*(executed_per_cycle(f"h{name}") for name in ("add", "mul", "fma")), peak_per_cycle("hfma"))

ROOFLINE = MetricGroup(
    sections=(
        "SpeedOfLight_RooflineChart",
        "SpeedOfLight_HierarchicalSingleRooflineChart",
        "SpeedOfLight_HierarchicalDoubleRooflineChart",
        "SpeedOfLight_HierarchicalHalfRooflineChart",
        "SpeedOfLight_HierarchicalTensorRooflineChart",
    ),
    expected=(*_ROOFLINE_BASIC, *_ROOFLINE_CACHES, *_ROOFLINE_HALF, *SHARED_WAVEFRONTS),
    optional=(
        *(executed_per_cycle(f"f{name}2") for name in ("add", "mul", "fma")),
        DRAM_CLOCK,
        DRAM_BYTES_PER_SECOND,
        DRAM_BYTES_PEAK,
        L1_WRITEBACK_PER_SECOND,
        L1_WRITEBACK_PEAK,
        L1_WRITEBACK_DSHARED_PER_SECOND,
        L1_WRITEBACK_DSHARED_PEAK,
        SHARED_WAVEFRONTS_GMMA,
    ),
    requested=SHARED_WAVEFRONTS,
    sources={
        "SpeedOfLight_RooflineChart": _ROOFLINE_BASIC,
        "SpeedOfLight_HierarchicalSingleRooflineChart": _ROOFLINE_CACHES,
        "SpeedOfLight_HierarchicalHalfRooflineChart": _ROOFLINE_HALF,
    },
)

# --- Instruction mix (sections InstructionStats, ComputeWorkloadAnalysis) ---------------------------------------------

EXECUTED_PER_OPCODE = "sass__inst_executed_per_opcode"
EXECUTED_PER_MODIFIER = "sass__inst_executed_per_opcode_with_modifier_all"
EXECUTED_PER_CATEGORY = "sass__inst_executed_per_opcode_category"
"""From ncu 2025 on."""
THREADS_PER_OPCODE = "sass__thread_inst_executed_true_per_opcode"
THREADS_PER_MODIFIER = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
INSTRUCTIONS_EXECUTED = "smsp__inst_executed.sum"
INSTRUCTIONS_ISSUED = "smsp__inst_issued.sum"
INSTRUCTIONS_EXECUTED_PER_SCHEDULER = "smsp__inst_executed.avg"
INSTRUCTIONS_ISSUED_PER_SCHEDULER = "smsp__inst_issued.avg"

_PIPE = re.compile(
    r"(?:sm__inst_executed_pipe_(?P<counted>\w+)|sm__pipe_(?P<timed>\w+)_cycles_active(?:_v2)?)"
    r"\.avg\.pct_of_peak_sustained_(?P<over>active|elapsed)"
)


@dataclass(frozen=True, slots=True)
class PipeMetric:
    """One pipe utilisation metric: of busy cycles or of instructions, over ``active`` or ``elapsed`` cycles."""

    name: str
    pipe: str
    in_cycles: bool
    over: str


def pipe_metrics(present: Iterable[str]) -> Iterator[PipeMetric]:
    """The pipe utilisation metrics that a report holds."""
    for name in present:
        match = _PIPE.fullmatch(name)
        if match is not None:
            timed = match["timed"]
            yield PipeMetric(name, timed or match["counted"], timed is not None, match["over"])


INSTRUCTION_MIX = MetricGroup(
    sections=("InstructionStats", "ComputeWorkloadAnalysis", "SourceCounters"),
    required=(EXECUTED_PER_OPCODE,),
    expected=(
        EXECUTED_PER_MODIFIER,
        THREADS_PER_OPCODE,
        THREADS_PER_MODIFIER,
        INSTRUCTIONS_EXECUTED,
        INSTRUCTIONS_ISSUED,
    ),
    optional=(EXECUTED_PER_CATEGORY, INSTRUCTIONS_EXECUTED_PER_SCHEDULER, INSTRUCTIONS_ISSUED_PER_SCHEDULER),
    # The finer counts follow from the counts per instruction and the SASS. Asking ncu for them by name doubles the time
    # that its instrumented passes take.
    sources={
        "InstructionStats": (EXECUTED_PER_OPCODE, INSTRUCTIONS_EXECUTED, INSTRUCTIONS_ISSUED),
        "SourceCounters": (EXECUTED_PER_MODIFIER, THREADS_PER_OPCODE, THREADS_PER_MODIFIER),
    },
)

# --- Warp states (sections WarpStateStats, SourceCounters) ------------------------------------------------------------

CYCLES_PER_ISSUE = "smsp__average_warp_latency_per_inst_issued.ratio"
CYCLES_PER_EXECUTED = "smsp__average_warps_active_per_inst_executed.ratio"
THREADS_PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
THREADS_PER_INSTRUCTION_PREDICATED_ON = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
SAMPLE_COUNT = "smsp__pcsamp_sample_count"
SAMPLING_INTERVAL_CYCLES = "smsp__pcsamp_interval_cycles"
SAMPLES_DROPPED_BYTES = "smsp__pcsamp_dropped_bytes"

_STALL_CYCLES = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_STALL_SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(_not_issued)?")


def stall_cycles(present: Iterable[str]) -> dict[str, str]:
    """Warp cycles per issue, the metric of each stall reason that a report holds."""
    return {match[1]: match[0] for match in map(_STALL_CYCLES.fullmatch, present) if match is not None}


def stall_samples(present: Iterable[str], *, not_issued: bool = False) -> dict[str, str]:
    """Sampling counter of each stall reason that a report holds.

    Args:
        present: metric names.
        not_issued: those counters that count only samples in whose cycle the scheduler issued nothing.
    """
    matches = (match for match in map(_STALL_SAMPLES.fullmatch, present) if match is not None)
    return {match[1]: match[0] for match in matches if bool(match[2]) == not_issued}


WARP_STATES = MetricGroup(
    sections=("WarpStateStats", "SourceCounters"),
    expected=(
        CYCLES_PER_ISSUE,
        CYCLES_PER_EXECUTED,
        THREADS_PER_INSTRUCTION,
        THREADS_PER_INSTRUCTION_PREDICATED_ON,
        SAMPLE_COUNT,
        SAMPLING_INTERVAL_CYCLES,
    ),
    optional=(SAMPLES_DROPPED_BYTES,),
    sources={
        "WarpStateStats": (
            CYCLES_PER_ISSUE,
            CYCLES_PER_EXECUTED,
            THREADS_PER_INSTRUCTION,
            THREADS_PER_INSTRUCTION_PREDICATED_ON,
        ),
        "SourceCounters": (SAMPLE_COUNT, SAMPLING_INTERVAL_CYCLES),
    },
)

# --- Scheduler (sections SchedulerStats, ComputeWorkloadAnalysis, Occupancy) ------------------------------------------

ISSUE_ACTIVE = "smsp__issue_active.avg.per_cycle_active"
ISSUE_ACTIVE_PERCENT = "smsp__issue_active.avg.pct_of_peak_sustained_active"
ISSUE_IDLE_PERCENT = "smsp__issue_inst0.avg.pct_of_peak_sustained_active"
WARPS_ACTIVE_PER_SCHEDULER = "smsp__warps_active.avg.per_cycle_active"
WARPS_ELIGIBLE_PER_SCHEDULER = "smsp__warps_eligible.avg.per_cycle_active"
WARPS_MAX_PER_SCHEDULER = "smsp__warps_active.avg.peak_sustained"
WARPS_THEORETICAL_PER_SCHEDULER = "smsp__maximum_warps_avg_per_active_cycle"
IPC_ACTIVE = "sm__inst_executed.avg.per_cycle_active"
IPC_ELAPSED = "sm__inst_executed.avg.per_cycle_elapsed"
ISSUED_IPC_ACTIVE = "sm__inst_issued.avg.per_cycle_active"
ISSUE_SLOTS_BUSY = "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"
SM_BUSY = "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed"
ISSUE_SLOTS_BUSY_ACTIVE = "sm__inst_issued.avg.pct_of_peak_sustained_active"
"""In place of the elapsed one in reports of ncu before 2025."""
SM_BUSY_ACTIVE = "sm__instruction_throughput.avg.pct_of_peak_sustained_active"

SCHEDULER = MetricGroup(
    sections=("SchedulerStats", "ComputeWorkloadAnalysis", "Occupancy"),
    expected=(
        ISSUE_ACTIVE,
        ISSUE_ACTIVE_PERCENT,
        ISSUE_IDLE_PERCENT,
        WARPS_ACTIVE_PER_SCHEDULER,
        WARPS_ELIGIBLE_PER_SCHEDULER,
        WARPS_MAX_PER_SCHEDULER,
        WARPS_THEORETICAL_PER_SCHEDULER,
        IPC_ACTIVE,
        IPC_ELAPSED,
        ISSUED_IPC_ACTIVE,
    ),
    optional=(ISSUE_SLOTS_BUSY, SM_BUSY, ISSUE_SLOTS_BUSY_ACTIVE, SM_BUSY_ACTIVE),
    sources={
        "SchedulerStats": (
            ISSUE_ACTIVE,
            ISSUE_ACTIVE_PERCENT,
            ISSUE_IDLE_PERCENT,
            WARPS_ACTIVE_PER_SCHEDULER,
            WARPS_ELIGIBLE_PER_SCHEDULER,
            WARPS_MAX_PER_SCHEDULER,
            WARPS_THEORETICAL_PER_SCHEDULER,
        ),
        "ComputeWorkloadAnalysis": (IPC_ACTIVE, IPC_ELAPSED, ISSUED_IPC_ACTIVE),
    },
)

# --- Advice: rule results come with whatever sections are collected ---------------------------------------------------

ADVICE = MetricGroup(sections=("SpeedOfLight",))

# --- Per instruction -------------------------------------------------------------------------------------------------

# Per instruction (section SourceCounters): instance values by absolute address
INSTRUCTIONS_BY_ADDRESS = "inst_executed"
THREADS_BY_ADDRESS = "thread_inst_executed"
THREADS_PREDICATED_BY_ADDRESS = "thread_inst_executed_true"
SHARED_WAVEFRONTS_BY_ADDRESS = "memory_l1_wavefronts_shared"
SHARED_IDEAL_BY_ADDRESS = "memory_l1_wavefronts_shared_ideal"
GLOBAL_SECTORS_BY_ADDRESS = "memory_l2_theoretical_sectors_global"
GLOBAL_IDEAL_BY_ADDRESS = "memory_l2_theoretical_sectors_global_ideal"
GLOBAL_TAGS_BY_ADDRESS = "memory_l1_tag_requests_global"
LOCAL_SECTORS_BY_ADDRESS = "memory_l2_theoretical_sectors_local"
ACCESS_TYPE_BY_ADDRESS = "memory_access_type"
ACCESS_SIZE_BY_ADDRESS = "memory_access_size_type"
MEMORY_TYPE_BY_ADDRESS = "memory_type"
NOT_ADDITIVE_BY_ADDRESS = frozenset(
    (
        ACCESS_TYPE_BY_ADDRESS,
        ACCESS_SIZE_BY_ADDRESS,
        MEMORY_TYPE_BY_ADDRESS,
        "derived__avg_thread_executed",
        "derived__avg_thread_executed_true",
        "derived__memory_l1_conflicts_shared_nway",
    )
)
"""Codes, averages and ratios: a sum over the instructions of a line means nothing."""

# --- Shared memory ---------------------------------------------------------------------------------------------------

# Shared memory: hardware counters by operation. ``_mem_shared.sum`` without an operation also counts wavefronts of
# kernels that touch no shared memory, so it is not read here. ``op_ld`` counts LDS, LD and LDSM.
SHARED_WAVEFRONTS_OF = {
    "load": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "store": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "atomic": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    "ldmatrix": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum",
    "stmatrix": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum",
    "async_copy": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "wgmma": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum",
}
SHARED_CONFLICTS_OF: dict[str, tuple[str, ...]] = {
    "load": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",),
    "store": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",),
    "atomic": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",),
    "ldmatrix": ("smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",),
    "stmatrix": ("smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_stsm.sum",),
    "async_copy": (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    ),
    "wgmma": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum",),
}
SHARED_INSTRUCTIONS_OF: dict[str, tuple[str, ...]] = {
    "load": ("smsp__sass_inst_executed_op_shared_ld.sum", "sass__inst_executed_shared_loads"),
    "store": ("smsp__sass_inst_executed_op_shared_st.sum", "sass__inst_executed_shared_stores"),
    "atomic": ("smsp__inst_executed_op_shared_atom.sum", "smsp__sass_inst_executed_op_shared_atom.sum"),
    "ldmatrix": ("smsp__inst_executed_op_ldsm.sum",),
    "stmatrix": ("smsp__inst_executed_op_shared_stsm.sum",),
    "async_copy": ("smsp__inst_executed_op_ldgsts.sum",),
}
"""Warp-level instructions; the names stand in the order of preference (another version of ncu, another name)."""

L1_ACTIVE_CYCLES = "l1tex__cycles_active.sum"
L1_ELAPSED_CYCLES = "l1tex__cycles_elapsed.sum"

BANK_CONFLICTS = MetricGroup(
    sections=("MemoryWorkloadAnalysis_Tables", "SourceCounters"),
    required=(
        SHARED_WAVEFRONTS_OF["load"],
        SHARED_WAVEFRONTS_OF["store"],
        *SHARED_CONFLICTS_OF["load"],
        *SHARED_CONFLICTS_OF["store"],
    ),
    optional=(
        *SHARED_WAVEFRONTS_OF.values(),
        *(name for names in SHARED_CONFLICTS_OF.values() for name in names),
        *(name for names in SHARED_INSTRUCTIONS_OF.values() for name in names),
        L1_THROUGHPUT,
        L1_ACTIVE_CYCLES,
        L1_ELAPSED_CYCLES,
        INSTRUCTIONS_BY_ADDRESS,
        SHARED_WAVEFRONTS_BY_ADDRESS,
        SHARED_IDEAL_BY_ADDRESS,
        ACCESS_TYPE_BY_ADDRESS,
    ),
)

# --- Global memory ---------------------------------------------------------------------------------------------------

GLOBAL_REQUESTS_OF = {
    "load": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "store": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "reduction": "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "atomic": "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "async_copy": "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
}
GLOBAL_SECTORS_OF = {
    "load": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "reduction": "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "atomic": "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
}
ASYNC_COPY_SECTORS = (
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
)
"""The two add up; `GLOBAL_SECTORS_OF` and `GLOBAL_REQUESTS_OF` of loads count asynchronous copies too."""
GLOBAL_HIT_RATE_OF = {
    "load": "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct",
    "store": "l1tex__t_sector_pipe_lsu_mem_global_op_st_hit_rate.pct",
    "reduction": "l1tex__t_sector_pipe_lsu_mem_global_op_red_hit_rate.pct",
    "atomic": "l1tex__t_sector_pipe_lsu_mem_global_op_atom_hit_rate.pct",
}
GLOBAL_BYTES_PER_SECTOR_OF = {
    "load": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
    "store": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
}
GLOBAL_BYTES_PER_SECTOR_LIMIT_OF = {
    "load": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.max_rate",
    "store": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.max_rate",
}
L2_ACTIVE_CYCLES = "lts__cycles_active.sum"
L2_ELAPSED_CYCLES = "lts__cycles_elapsed.sum"

COALESCING = MetricGroup(
    sections=("MemoryWorkloadAnalysis_Tables", "SourceCounters"),
    required=(
        GLOBAL_REQUESTS_OF["load"],
        GLOBAL_REQUESTS_OF["store"],
        GLOBAL_SECTORS_OF["load"],
        GLOBAL_SECTORS_OF["store"],
    ),
    optional=(
        *GLOBAL_REQUESTS_OF.values(),
        *GLOBAL_SECTORS_OF.values(),
        *ASYNC_COPY_SECTORS,
        *GLOBAL_HIT_RATE_OF.values(),
        *GLOBAL_BYTES_PER_SECTOR_OF.values(),
        *GLOBAL_BYTES_PER_SECTOR_LIMIT_OF.values(),
        L2_ACTIVE_CYCLES,
        L2_ELAPSED_CYCLES,
        INSTRUCTIONS_BY_ADDRESS,
        GLOBAL_SECTORS_BY_ADDRESS,
        GLOBAL_IDEAL_BY_ADDRESS,
        GLOBAL_TAGS_BY_ADDRESS,
        ACCESS_TYPE_BY_ADDRESS,
    ),
)

# --- Divergence ------------------------------------------------------------------------------------------------------

BRANCHES = ("smsp__inst_executed_op_branch.sum", "smsp__sass_inst_executed_op_branch.sum")
BRANCH_FRACTION = "derived__smsp__inst_executed_op_branch_pct"
UNIFORM_BRANCHES_PERCENT = (
    "smsp__sass_average_branch_targets_threads_uniform.pct",
    "smsp__average_branch_targets_threads_uniform.pct",
)
DIVERGENT_BRANCHES = (
    "smsp__sass_branch_targets_threads_divergent.sum",
    "smsp__branch_targets_threads_divergent.sum",
)
DIVERGENT_BRANCHES_PER_SCHEDULER = (
    "smsp__sass_branch_targets_threads_divergent.avg",
    "smsp__branch_targets_threads_divergent.avg",
)
DIVERGENT_BRANCHES_BY_ADDRESS = ("smsp__branch_targets_threads_divergent", "divergent_branch")

DIVERGENCE = MetricGroup(
    sections=("WarpStateStats", "SourceCounters"),
    required=(THREADS_PER_INSTRUCTION,),
    optional=(
        THREADS_PER_INSTRUCTION_PREDICATED_ON,
        *BRANCHES,
        BRANCH_FRACTION,
        *UNIFORM_BRANCHES_PERCENT,
        *DIVERGENT_BRANCHES,
        *DIVERGENT_BRANCHES_PER_SCHEDULER,
        *DIVERGENT_BRANCHES_BY_ADDRESS,
        INSTRUCTIONS_BY_ADDRESS,
        THREADS_BY_ADDRESS,
    ),
)

# --- Local memory ----------------------------------------------------------------------------------------------------

LOCAL_LOADS = ("smsp__sass_inst_executed_op_local_ld.sum", "sass__inst_executed_local_loads")
LOCAL_STORES = ("smsp__sass_inst_executed_op_local_st.sum", "sass__inst_executed_local_stores")
LOCAL_REQUESTS_OF = {
    "load": "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
    "store": "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
}
LOCAL_SECTORS_OF = {
    "load": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "store": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
}
LOCAL_HIT_RATE_OF = {
    "load": "l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct",
    "store": "l1tex__t_sector_pipe_lsu_mem_local_op_st_hit_rate.pct",
}
SPILLING_REQUESTS = "derived__local_spilling_requests"
SPILLING_LOADS = "sass__inst_executed_register_spilling_op_read"
SPILLING_STORES = "sass__inst_executed_register_spilling_op_write"

SPILLS = MetricGroup(
    sections=("MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "SourceCounters"),
    required=(LOCAL_LOADS[0], LOCAL_STORES[0]),
    optional=(
        *LOCAL_LOADS[1:],
        *LOCAL_STORES[1:],
        *LOCAL_REQUESTS_OF.values(),
        *LOCAL_SECTORS_OF.values(),
        *LOCAL_HIT_RATE_OF.values(),
        SPILLING_REQUESTS,
        SPILLING_LOADS,
        SPILLING_STORES,
        GLOBAL_SECTORS_OF["load"],
        GLOBAL_SECTORS_OF["store"],
        INSTRUCTIONS_BY_ADDRESS,
        LOCAL_SECTORS_BY_ADDRESS,
    ),
)

# --- Memory chart ----------------------------------------------------------------------------------------------------

# Memory chart. Where a quantity has another name on some architectures, the names stand in the order of preference.
L1_HIT_RATE = "l1tex__t_sector_hit_rate.pct"
L2_HIT_RATE = "lts__t_sector_hit_rate.pct"
SHARED_PEAK_PERCENT = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"
MEMORY_BUSY = "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_BANDWIDTH = "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_PIPES_BUSY = "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"
PERCENT_SUFFIX = ".pct_of_peak_sustained_elapsed"
PER_SECOND_SUFFIX = ".per_second"

SPACE_INSTRUCTIONS: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("global", "load"): (("smsp__sass_inst_executed_op_global_ld.sum", "sass__inst_executed_global_loads"),),
    ("global", "store"): (
        ("smsp__sass_inst_executed_op_global_st.sum", "sass__inst_executed_global_stores"),
    ),
    ("global", "reduction"): (("smsp__inst_executed_op_global_red.sum",),),
    ("global", "atomic"): (
        ("smsp__inst_executed_op_generic_atom_dot_alu.sum",),
        ("smsp__inst_executed_op_generic_atom_dot_cas.sum",),
    ),
    ("global", "async_copy"): (("smsp__inst_executed_op_ldgsts.sum",),),
    ("local", "load"): (LOCAL_LOADS,),
    ("local", "store"): (LOCAL_STORES,),
    ("texture", "load"): (("smsp__inst_executed_op_texture.sum",),),
    ("surface", "load"): (("smsp__inst_executed_op_surface_ld.sum",),),
    ("surface", "store"): (("smsp__inst_executed_op_surface_st.sum",),),
    ("surface", "reduction"): (("smsp__inst_executed_op_surface_red.sum",),),
    ("surface", "atomic"): (
        ("smsp__inst_executed_op_surface_atom_dot_alu.sum",),
        ("smsp__inst_executed_op_surface_atom_dot_cas.sum",),
    ),
    ("shared", "load"): (SHARED_INSTRUCTIONS_OF["load"],),
    ("shared", "store"): (SHARED_INSTRUCTIONS_OF["store"],),
    ("shared", "atomic"): (SHARED_INSTRUCTIONS_OF["atomic"],),
    ("shared", "ldmatrix"): (SHARED_INSTRUCTIONS_OF["ldmatrix"],),
    ("shared", "stmatrix"): (SHARED_INSTRUCTIONS_OF["stmatrix"],),
    ("shared", "wgmma"): (("smsp__sass_inst_executed_op_shared_gmma.sum",),),
    ("distributed_shared", "access"): (("smsp__sass_inst_executed_op_dshared.sum",),),
    ("tensor_memory_accelerator", "load"): (("smsp__inst_executed_op_tma_ld.sum",),),
    ("tensor_memory_accelerator", "store"): (("smsp__inst_executed_op_tma_st.sum",),),
}
"""Warp-level instructions by address space and operation: the sum over the entries, each the first name that the
report has."""

SPACE_REQUESTS: dict[tuple[str, str], str] = {
    **{("global", operation): name for operation, name in GLOBAL_REQUESTS_OF.items()},
    **{("local", operation): name for operation, name in LOCAL_REQUESTS_OF.items()},
    ("texture", "load"): "l1tex__t_requests_pipe_tex_mem_texture.sum",
    ("surface", "load"): "l1tex__t_requests_pipe_tex_mem_surface_op_ld.sum",
    ("surface", "store"): "l1tex__t_requests_pipe_tex_mem_surface_op_st.sum",
    ("surface", "reduction"): "l1tex__t_requests_pipe_tex_mem_surface_op_red.sum",
    ("surface", "atomic"): "l1tex__t_requests_pipe_tex_mem_surface_op_atom.sum",
    ("distributed_shared", "load"): "l1tex__t_requests_pipe_lsu_mem_dshared_op_ld.sum",
    ("distributed_shared", "store"): "l1tex__t_requests_pipe_lsu_mem_dshared_op_st.sum",
    ("distributed_shared", "reduction"): "l1tex__t_requests_pipe_lsu_mem_dshared_op_redas.sum",
    ("distributed_shared", "atomic"): "l1tex__t_requests_pipe_lsu_mem_dshared_op_atom.sum",
}
"""Requests at the L1 tag stage; with `PERCENT_SUFFIX` their per cent of peak."""

SPACE_SECTORS: dict[tuple[str, str], str] = {
    **{("global", operation): name for operation, name in GLOBAL_SECTORS_OF.items()},
    **{("local", operation): name for operation, name in LOCAL_SECTORS_OF.items()},
    **{
        key: name.replace("_requests_", "_sectors_")
        for key, name in SPACE_REQUESTS.items()
        if key[0] not in ("global", "local")
    },
}
"""32-byte sectors of these requests (section MemoryWorkloadAnalysis_Tables)."""

L2_TO_L1_BYTES = "l1tex__m_xbar2l1tex_read_bytes.sum"
L1_TO_L2_BYTES = "l1tex__m_l1tex2xbar_write_bytes.sum"
DSHARED_READ_BYTES = "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum"
DSHARED_WRITE_BYTES = "l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum"
TMA_LOAD_BYTES = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum"
TMA_STORE_BYTES = "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum"
TMA_REDUCTION_BYTES = "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_red.sum"
ASYNC_COPY_L1_BYTES = "l1tex__t_bytes_pipe_lsu_mem_global_op_ldgsts_cache_access.sum"
"""LDGSTS that goes through L1 (``cp.async.ca``)."""
ASYNC_COPY_L2_BYTES = "sm__sass_l1tex_m_xbar2l1tex_read_bytes_mem_global_op_ldgsts_cache_bypass.sum"
"""LDGSTS that goes around L1 (``cp.async.cg``)."""
L2_FABRIC_SECTORS = "lts__t_sectors_srcunit_ltcfabric.sum"
"""Between the two halves of the L2 of large chips."""
DRAM_READ_BYTES = ("dram__bytes_read.sum", "dram__bytes_op_read.sum")
DRAM_WRITE_BYTES = ("dram__bytes_write.sum", "dram__bytes_op_write.sum")
OFF_CHIP_SECTORS: dict[tuple[str, str], tuple[str, ...]] = {
    (aperture, operation): tuple(
        f"{unit}__t_sectors_srcunit_tex_aperture_{aperture}_op_{operation}{suffix}.sum"
        for unit in ("lts", "syslts")
        # What is written, reduced or updated elsewhere is not looked up in this L2 on newer chips.
        for suffix in (("_lookup_miss",) if operation == "read" else ("", "_lookup_miss"))
    )
    for aperture in ("sysmem", "peer")
    for operation in ("read", "write", "red", "atom")
}
"""L2 sectors that go to or come from system memory (``sysmem``) or another GPU (``peer``)."""

MEMORY_CHART = MetricGroup(
    sections=("MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables"),
    required=(L2_TO_L1_BYTES, L1_TO_L2_BYTES),
    optional=(
        DSHARED_READ_BYTES,
        DSHARED_WRITE_BYTES,
        TMA_LOAD_BYTES,
        TMA_STORE_BYTES,
        TMA_REDUCTION_BYTES,
        ASYNC_COPY_L1_BYTES,
        ASYNC_COPY_L2_BYTES,
        L2_FABRIC_SECTORS,
        *(name for terms in SPACE_INSTRUCTIONS.values() for names in terms for name in names),
        *SPACE_REQUESTS.values(),
        *SPACE_SECTORS.values(),
        *SHARED_WAVEFRONTS_OF.values(),
        DURATION,
        MEMORY_BUSY,
        MEMORY_BANDWIDTH,
        MEMORY_PIPES_BUSY,
        DRAM_BYTES_PER_SECOND,
        *ASYNC_COPY_SECTORS,
        L1_HIT_RATE,
        L2_HIT_RATE,
        SHARED_PEAK_PERCENT,
        *DRAM_READ_BYTES,
        *DRAM_WRITE_BYTES,
        *(name for names in OFF_CHIP_SECTORS.values() for name in names),
    ),
)

SOURCE_VIEW = MetricGroup(
    sections=("SourceCounters",),
    required=(INSTRUCTIONS_BY_ADDRESS,),
    optional=(
        THREADS_BY_ADDRESS,
        THREADS_PREDICATED_BY_ADDRESS,
        SAMPLE_COUNT,
        SAMPLING_INTERVAL_CYCLES,
        SHARED_WAVEFRONTS_BY_ADDRESS,
        SHARED_IDEAL_BY_ADDRESS,
        GLOBAL_SECTORS_BY_ADDRESS,
        GLOBAL_IDEAL_BY_ADDRESS,
        GLOBAL_TAGS_BY_ADDRESS,
        LOCAL_SECTORS_BY_ADDRESS,
        *DIVERGENT_BRANCHES_BY_ADDRESS,
        MEMORY_TYPE_BY_ADDRESS,
        ACCESS_TYPE_BY_ADDRESS,
        ACCESS_SIZE_BY_ADDRESS,
    ),
)

# --- All groups -------------------------------------------------------------------------------------------------------

# --- Occupancy (section Occupancy) ------------------------------------------------------------------------------------

THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
THEORETICAL_WARPS = "sm__maximum_warps_avg_per_active_cycle"
ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ACHIEVED_WARPS = "sm__warps_active.avg.per_cycle_active"
BLOCK_LIMIT_REGISTERS = "launch__occupancy_limit_registers"
BLOCK_LIMIT_SHARED_MEMORY = "launch__occupancy_limit_shared_mem"
BLOCK_LIMIT_WARPS = "launch__occupancy_limit_warps"
BLOCK_LIMIT_BLOCKS = "launch__occupancy_limit_blocks"
BLOCK_LIMIT_BARRIERS = "launch__occupancy_limit_barriers"
"""From 9.0 on. ncu prints at most the SM's block slots here."""
BARRIERS_PER_BLOCK = "launch__barrier_count"
WARPS_PER_BLOCK_SIZE = "launch__occupancy_per_block_size"
WARPS_PER_REGISTER_COUNT = "launch__occupancy_per_register_count"
WARPS_PER_SHARED_MEMORY = "launch__occupancy_per_shared_mem_size"
WARPS_PER_BARRIER_COUNT = "launch__occupancy_per_barrier_count"
"""Instance values: resident warps over block size, registers per thread, bytes per block (the driver's reserve
included) and barriers per block. The scalar is a meaningless sum."""
ACTIVE_CYCLES_MIN = "sm__cycles_active.min"
ACTIVE_CYCLES_MAX = "sm__cycles_active.max"
MAX_ACTIVE_CLUSTERS = "launch__cluster_max_active"
CLUSTER_OCCUPANCY = "launch__occupancy_cluster_pct"

OCCUPANCY = MetricGroup(
    sections=("Occupancy", "LaunchStats"),
    required=(
        THEORETICAL_OCCUPANCY,
        BLOCK_LIMIT_REGISTERS,
        BLOCK_LIMIT_SHARED_MEMORY,
        BLOCK_LIMIT_WARPS,
        BLOCK_LIMIT_BLOCKS,
    ),
    expected=(ACHIEVED_OCCUPANCY, ACHIEVED_WARPS, THEORETICAL_WARPS, WAVES_PER_SM),
    optional=(
        BLOCK_LIMIT_BARRIERS,
        BARRIERS_PER_BLOCK,
        WARPS_PER_BLOCK_SIZE,
        WARPS_PER_REGISTER_COUNT,
        WARPS_PER_SHARED_MEMORY,
        WARPS_PER_BARRIER_COUNT,
        SM_ACTIVE_CYCLES,
        ACTIVE_CYCLES_MIN,
        ACTIVE_CYCLES_MAX,
        SM_COUNT,
        CLUSTER_SIZE,
        MAX_ACTIVE_CLUSTERS,
        CLUSTER_OCCUPANCY,
    ),
)

GROUPS: dict[str, MetricGroup] = {
    "launch": LAUNCH,
    "speed_of_light": SPEED_OF_LIGHT,
    "roofline": ROOFLINE,
    "instruction_mix": INSTRUCTION_MIX,
    "warp_states": WARP_STATES,
    "scheduler": SCHEDULER,
    "rules": ADVICE,
    "bank_conflicts": BANK_CONFLICTS,
    "coalescing": COALESCING,
    "memory_chart": MEMORY_CHART,
    "divergence": DIVERGENCE,
    "spills": SPILLS,
    "occupancy": OCCUPANCY,
    "source_view": SOURCE_VIEW,
}
"""Every group by the name of the analysis that reads it."""


def collection_options(groups: Iterable[MetricGroup] | None = None) -> tuple[str, ...]:
    """ncu options (sections and metrics, each once) that collect the union of the groups (default: all)."""
    chosen = list(GROUPS.values() if groups is None else groups)
    return _collecting(
        (section for group in chosen for section in group.sections),
        (name for group in chosen for name in group.requested),
    )


def _collecting(sections: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """ncu's options for these sections and metrics, each once."""
    options = [word for section in dict.fromkeys(sections) for word in ("--section", section)]
    listed = ",".join(dict.fromkeys(names))
    return (*options, "--metrics", listed) if listed else tuple(options)


_TABLES = "MemoryWorkloadAnalysis_Tables"
LEAN_WITHOUT = (
    "smsp__sass_inst_executed_memdesc_explicit_",  # explicit L2 eviction policies
    "smsp__sass_average_data_bytes_per_sector_",  # sectors per request and the excess say nearly as much
    "MemoryL1TEXCacheTable",
    "MemoryL2CacheTable",
    "MemoryL2CacheEvictPolicyTable",
    "MemoryDeviceMemoryTable",
)
"""What the lean set leaves out of ncu's sections: metrics by prefix that cost an instrumented replay of their own, and
tables for which ncu collects hundreds of metrics where the analyses read a few (`lean_options` names those)."""
_LEAN_WITHOUT_SECTIONS = frozenset({"SpeedOfLight_HierarchicalTensorRooflineChart"})
"""Thousands of metrics of tensor cores, 0.4 s a launch; no stage of the ladder uses them."""
_BY_NAME = re.compile(r"(?:sm|smsp|l1tex|lts|dram)__\w+\.[\w.]+")


def lean_options() -> tuple[str, ...]:
    """ncu options of the lean set: what the analyses read of kernels without tensor cores, in as few passes as can be.

    The sections are meant to be collected without `LEAN_WITHOUT`.
    """
    groups = GROUPS.values()
    of_tables = (
        name
        for group in groups
        if _TABLES in group.sections
        for name in (*group.required, *group.expected, *group.optional)
        if _BY_NAME.fullmatch(name) and not name.startswith(LEAN_WITHOUT)
    )
    return _collecting(
        (name for group in groups for name in group.sections if name not in _LEAN_WITHOUT_SECTIONS),
        (*(name for group in groups for name in group.requested), *of_tables),
    )


_UNIT_NAMES = {"l1tex": "L1", "lts": "L2", "fbpa": "DRAM"}


def readable(name: str) -> str:
    """A metric name in words, as ncu's breakdown tables write it: ``L1: Data Pipe Lsu Wavefronts``."""
    unit, _, rest = name.removeprefix("breakdown:").partition("__")
    quantity = rest.partition(".")[0]
    if not quantity:
        return name
    words = " ".join(f"{word[:1].upper()}{word[1:]}" for word in quantity.split("_"))
    return f"{_UNIT_NAMES.get(unit, unit.upper())}: {words}"
