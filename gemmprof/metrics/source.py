"""Per instruction: counters with one value an address (section SourceCounters)."""

from __future__ import annotations

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
