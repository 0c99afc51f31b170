"""What the SMs do: each instruction, samples over time, instruction mix, warp states, scheduler, divergence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gemmprof.metrics.groups import MetricGroup
from gemmprof.metrics.throughput import DURATION

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
# How counts begin that are the sum of their values by instruction or opcode, in every launch of every report
# seen.
SUMS_OF_INSTANCES = (
    "inst_executed",
    "thread_inst_executed",
    "memory_l1_tag_requests_global",
    "memory_l1_wavefronts_shared",
    "memory_l2_theoretical_sectors_",
    "smsp__pcsamp_",
    "sass__inst_executed_per_opcode",
    "sass__thread_inst_executed_per_opcode",
    "sass__thread_inst_executed_true_per_opcode",
)

# What kind of access an instruction is. One that is no access has none; of everything else it has 0.
CODES_BY_ADDRESS = frozenset(
    (
        ACCESS_TYPE_BY_ADDRESS,
        ACCESS_SIZE_BY_ADDRESS,
        MEMORY_TYPE_BY_ADDRESS,
        "smsp__sass_inst_executed_memdesc_explicit_evict_type",
    )
)

# Codes, averages and ratios: a sum over the instructions of a line means nothing.
NOT_ADDITIVE_BY_ADDRESS = CODES_BY_ADDRESS | {
    "derived__avg_thread_executed",
    "derived__avg_thread_executed_true",
    "derived__avg_thread_unexecuted_true",
    "derived__derivative_avg_thread_executed_true",
    "derived__memory_l1_conflicts_shared_nway",
}

SAMPLE_COUNT = "smsp__pcsamp_sample_count"
SAMPLING_INTERVAL_CYCLES = "smsp__pcsamp_interval_cycles"
DIVERGENT_BRANCHES_BY_ADDRESS = ("smsp__branch_targets_threads_divergent", "divergent_branch")

SOURCE_VIEW = MetricGroup(
    sections=("SourceCounters",),
    required=(INSTRUCTIONS_BY_ADDRESS,),
)


# --- Sampling ---------------------------------------------------------------------------------------------------------
# Metrics sampled over time (sections PmSampling and PmSampling_WarpStates), and what the sampler says of itself.


# How the names begin of what ncu says of its own work.
OF_THE_PROFILER = "profiler__"
# Which metrics were sampled in which pass: their names with commas between, by the number of the pass.
SAMPLED_IN_PASS = "profiler__pmsampler_pass_groups"
# By the number of the pass. The first: when the GPU switched to the profiled context (1) and away from it (0).
CONTEXT_SWITCHES = "profiler__pmsampler_ctxsw_{}"
WORKLOAD_BEGAN = "profiler__timestamp_workload_start_{}"
WORKLOAD_ENDED = "profiler__timestamp_workload_end_{}"

# Asked for by name, and by ncu up to 2023; later ones put the unit and the group of counters in front.
_SAMPLED_PREFIX = re.compile(r"(?:pmsampling:|(?:\w+\.)?Triage\w*\.)")


def counter_of(metric: str) -> str:
    """The counter that a sampled metric samples, by the one name that it has in every version of ncu.

    ``TPC.TriageCompute.sm__cycles_active.avg`` and ``pmsampling:sm__cycles_active.avg`` are ``sm__cycles_active.avg``.
    """
    return _SAMPLED_PREFIX.sub("", metric, count=1)


# Counters as `counter_of` names them, newest name first: ncu samples others on other chips.
SAMPLED_ISSUE = ("sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed",)
SAMPLED_IPC = "sm__inst_executed_realtime.avg.per_cycle_active"
SAMPLED_BLOCKS = (
    "gr__ctas_launched_realtime.sum",
    "sm__ctas_launched.sum",
    "gr__ctas_launched_queue_sync.sum",
)
SAMPLED_TENSOR = ("sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",)
SAMPLED_FMA = ("sm__inst_executed_pipe_fma_realtime.avg.pct_of_peak_sustained_elapsed",)
SAMPLED_L1 = ("l1tex__throughput.avg.pct_of_peak_sustained_elapsed",)
SAMPLED_L2 = ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)
SAMPLED_DRAM = ("dramc__throughput.avg.pct_of_peak_sustained_elapsed",)

_SAMPLED_STALL = re.compile(r"smsp__warps_issue_stalled_(\w+?)\.avg")


def sampled_stall(counter: str) -> str | None:
    """The stall reason whose warps a sampled counter counts; None of another counter."""
    found = _SAMPLED_STALL.fullmatch(counter)
    return found[1] if found and not found[1].endswith("_not_issued") else None


# Its counters fit into one or two more passes (ncu 2025.3 on an H200), where the lean set takes 33; stall reasons over
# time (PmSampling_WarpStates) take six more, beyond a fifth, so they are for those who ask (docs/timeline.md).
PM_SAMPLING = "PmSampling"
TIMELINE = MetricGroup(sections=(PM_SAMPLING,))


# --- Instruction mix (sections InstructionStats, ComputeWorkloadAnalysis) ---------------------------------------------

EXECUTED_PER_OPCODE = "sass__inst_executed_per_opcode"
EXECUTED_PER_MODIFIER = "sass__inst_executed_per_opcode_with_modifier_all"
EXECUTED_PER_CATEGORY = "sass__inst_executed_per_opcode_category"  # from ncu 2025 on
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
    for match in filter(None, map(_PIPE.fullmatch, present)):
        timed = match["timed"]
        yield PipeMetric(match[0], timed or match["counted"], timed is not None, match["over"])


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
SAMPLES_DROPPED_BYTES = "smsp__pcsamp_dropped_bytes"

_STALL_CYCLES = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
# `warp_stall` on Pascal.
_STALL_SAMPLES = re.compile(r"smsp__pcsamp_warp(?:s_issue_stalled|_stall)_(\w+?)(_not_issued)?")


def stall_cycles(present: Iterable[str]) -> dict[str, str]:
    """Warp cycles per issue, the metric of each stall reason that a report holds."""
    names = [name for name in present if name.startswith("smsp__average_warps_")]
    return {match[1]: match[0] for match in filter(None, map(_STALL_CYCLES.fullmatch, names))}


# In a formula: the sum over the stall reasons.
SAMPLES_NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_*_not_issued"


def stall_samples(present: Iterable[str], *, not_issued: bool = False) -> dict[str, str]:
    """Sampling counter of each stall reason in a report; ``not_issued``: of samples in cycles that issue nothing."""
    names = [name for name in present if name.startswith("smsp__pcsamp_warp")]
    matches = filter(None, map(_STALL_SAMPLES.fullmatch, names))
    return {match[1]: match[0] for match in matches if bool(match[2]) == not_issued}


_MEASURED_STATES = (
    *(CYCLES_PER_ISSUE, CYCLES_PER_EXECUTED),
    *(THREADS_PER_INSTRUCTION, THREADS_PER_INSTRUCTION_PREDICATED_ON),
)
_SAMPLED_STATES = (SAMPLE_COUNT, SAMPLING_INTERVAL_CYCLES)
WARP_STATES = MetricGroup(
    sections=("WarpStateStats", "SourceCounters"),
    expected=(*_MEASURED_STATES, *_SAMPLED_STATES),
    sources={"WarpStateStats": _MEASURED_STATES, "SourceCounters": _SAMPLED_STATES},
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
# In place of the elapsed one in reports of ncu before 2025.
ISSUE_SLOTS_BUSY_ACTIVE = "sm__inst_issued.avg.pct_of_peak_sustained_active"
SM_BUSY_ACTIVE = "sm__instruction_throughput.avg.pct_of_peak_sustained_active"

_ISSUING = (
    *(ISSUE_ACTIVE, ISSUE_ACTIVE_PERCENT, ISSUE_IDLE_PERCENT),
    *(WARPS_ACTIVE_PER_SCHEDULER, WARPS_ELIGIBLE_PER_SCHEDULER),
    *(WARPS_MAX_PER_SCHEDULER, WARPS_THEORETICAL_PER_SCHEDULER),
)
_PER_CYCLE = (IPC_ACTIVE, IPC_ELAPSED, ISSUED_IPC_ACTIVE)
SCHEDULER = MetricGroup(
    sections=("SchedulerStats", "ComputeWorkloadAnalysis", "Occupancy"),
    expected=(*_ISSUING, *_PER_CYCLE),
    sources={"SchedulerStats": _ISSUING, "ComputeWorkloadAnalysis": _PER_CYCLE},
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

DIVERGENCE = MetricGroup(
    sections=("WarpStateStats", "SourceCounters"),
    required=(THREADS_PER_INSTRUCTION,),
)


_EXECUTED = re.compile(
    r"(?:smsp|sm)__(?:sass_|thread_)*inst_executed(?!.*(?:pct|per_|ratio|peak)).*\.sum$|sass__\w+$"
)
_LAUNCHED = re.compile(
    r"launch__(?:registers_per_thread|shared_mem_per_block\w*|block_size|grid_size|thread_count|cluster_size|stack_size)$"
)
_TRAFFIC = re.compile(
    r"(?:l1tex|lts|dram|lrc)__(?!.*(?:cycles|pct|per_|ratio|rate|throughput|peak|average|hit)).*\.sum$"
)


def counts_instructions(metric: str) -> bool:
    """Whether the metric counts executed instructions: the same in every launch of the same work."""
    return _EXECUTED.match(metric) is not None


def states_launch(metric: str) -> bool:
    """Whether the metric is a parameter of the launch that the code or its caller decides."""
    return _LAUNCHED.match(metric) is not None


def counts_at_l1(metric: str) -> bool:
    """Whether an amount is one at L1, where it depends on the kernel alone."""
    return metric.startswith("l1tex")


def counts_traffic(metric: str) -> bool:
    """Whether the metric is an amount at a level of memory: the same work gives nearly, not exactly, the same."""
    return _TRAFFIC.match(metric) is not None


# --- Launch (section LaunchStats) -------------------------------------------------------------------------------------

GRID_SIZE = "launch__grid_size"
BLOCK_SIZE = "launch__block_size"
THREADS = "launch__thread_count"
GRID_DIMENSIONS = ("launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z")
# Stored with a launch itself; of a range or graph only these metrics tell, with the largest of its launches.
BLOCK_DIMENSIONS = ("launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z")
REGISTERS_PER_THREAD = "launch__registers_per_thread"
DEVICE_SMS = "device__attribute_multiprocessor_count"
SHARED_MEMORY_CONFIG = "launch__shared_mem_config_size"
SHARED_MEMORY_DRIVER = "launch__shared_mem_per_block_driver"
SHARED_MEMORY_DYNAMIC = "launch__shared_mem_per_block_dynamic"
SHARED_MEMORY_STATIC = "launch__shared_mem_per_block_static"
CACHE_CONFIG = "launch__func_cache_config"
CLUSTER_SIZE = "launch__cluster_size"
WAVES_PER_SM = "launch__waves_per_multiprocessor"
SM_COUNT = "launch__sm_count"
DEVICE_ID = "launch__device_id"  # CUDA's index of the GPU, as the program sees them
STACK_SIZE = "launch__stack_size"
CLUSTER_SCHEDULING_POLICY = "launch__cluster_scheduling_policy"
TPC_COUNT = "launch__tpc_count"
TPC_ENABLED = "launch__tpc_enabled"
GREEN_CONTEXT = "launch__uses_green_context"
# Instance values: address of the kernel's first instruction, and of the functions that it calls.
FUNCTION_PCS = "launch__function_pcs"
DEVICE_ATTRIBUTE_PREFIX = "device__attribute_"

# How metrics begin that are known without measuring: they belong to the GPU, the launch or ncu itself.
_FACTS = ("device__", "launch__", "profiler__", "nvlink__", "numa__", "c2clink__")
_NOT_COUNTED = re.compile(
    r"breakdown:|regex:|group:|sm(?:sp)?__maximum_warps_|derived_temp|.*\.(?:peak_sustained|max_rate)"
)


def counters(present: Iterable[str]) -> Iterator[str]:
    """Those metrics that ncu measures at a launch: neither facts of the GPU or the launch, nor peaks, nor lists."""
    return (name for name in present if not name.startswith(_FACTS) and not _NOT_COUNTED.match(name))


# What tells the launches of a program apart and how much each matters; one pass collects it.
COUNT = (DURATION, SHARED_MEMORY_DYNAMIC)

# What `LaunchStatistics` holds of them, by its field.
OF_LAUNCH = {
    "registers_per_thread": REGISTERS_PER_THREAD,
    "static_shared_memory": SHARED_MEMORY_STATIC,
    "dynamic_shared_memory": SHARED_MEMORY_DYNAMIC,
    "driver_shared_memory": SHARED_MEMORY_DRIVER,
    "shared_memory_config": SHARED_MEMORY_CONFIG,
    "cluster_size": CLUSTER_SIZE,
}

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
)

# --- Occupancy (section Occupancy) ------------------------------------------------------------------------------------

THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
THEORETICAL_WARPS = "sm__maximum_warps_avg_per_active_cycle"
ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ACHIEVED_WARPS = "sm__warps_active.avg.per_cycle_active"
BLOCK_LIMIT_REGISTERS = "launch__occupancy_limit_registers"
BLOCK_LIMIT_SHARED_MEMORY = "launch__occupancy_limit_shared_mem"
BLOCK_LIMIT_WARPS = "launch__occupancy_limit_warps"
BLOCK_LIMIT_BLOCKS = "launch__occupancy_limit_blocks"
# From 9.0 on. ncu prints at most the SM's block slots here.
BLOCK_LIMIT_BARRIERS = "launch__occupancy_limit_barriers"
BARRIERS_PER_BLOCK = "launch__barrier_count"
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
)
