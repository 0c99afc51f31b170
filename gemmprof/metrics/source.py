"""Per instruction: counters with one value an address (section SourceCounters)."""

from __future__ import annotations

import re

from gemmprof.metrics.groups import MetricGroup

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
