"""What names of metrics tell, what is made of them, and lists of them: a part a kind of metric."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics import constants as m
from gemmprof.metrics.groups import KNOWN_NAMES

# --- Per instruction -------------------------------------------------------------------------------------------------

# How counts begin that are the sum of their values by instruction or opcode, in every launch of every report seen.
SUMS_OF_INSTANCES = (
    "inst_executed", "thread_inst_executed", "memory_l1_tag_requests_global", "memory_l1_wavefronts_shared",
    "memory_l2_theoretical_sectors_", "smsp__pcsamp_", "sass__inst_executed_per_opcode",
    "sass__thread_inst_executed_per_opcode", "sass__thread_inst_executed_true_per_opcode",
)  # fmt: skip

# What kind of access an instruction is. One that is no access has none; of everything else it has 0.
CODES_BY_ADDRESS = frozenset((
    m.ACCESS_TYPE_BY_ADDRESS, m.ACCESS_SIZE_BY_ADDRESS, m.MEMORY_TYPE_BY_ADDRESS,
    "smsp__sass_inst_executed_memdesc_explicit_evict_type",
))  # fmt: skip

# Codes, averages and ratios: a sum over the instructions of a line means nothing.
NOT_ADDITIVE_BY_ADDRESS = CODES_BY_ADDRESS | {
    "derived__avg_thread_executed", "derived__avg_thread_executed_true", "derived__avg_thread_unexecuted_true",
    "derived__derivative_avg_thread_executed_true", "derived__memory_l1_conflicts_shared_nway",
}  # fmt: skip

# --- Sampling ---------------------------------------------------------------------------------------------------------
# Metrics sampled over time (sections PmSampling and PmSampling_WarpStates), and what the sampler says of itself.

OF_THE_PROFILER = "profiler__"  # how the names begin of what ncu says of its own work
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


_SAMPLED_STALL = re.compile(r"smsp__warps_issue_stalled_(\w+?)\.avg")


def sampled_stall(counter: str) -> str | None:
    """The stall reason whose warps a sampled counter counts; None of another counter."""
    found = _SAMPLED_STALL.fullmatch(counter)
    return found[1] if found and not found[1].endswith("_not_issued") else None


# Its counters fit into one or two more passes (ncu 2025.3 on an H200), where the lean set takes 33; stall reasons over
# time (PmSampling_WarpStates) take six more, beyond a fifth, so they are for those who ask (docs/timeline.md).
PM_SAMPLING = "PmSampling"

# --- Instruction mix (sections InstructionStats, ComputeWorkloadAnalysis) ---------------------------------------------

_PIPE = re.compile(
    r"(?:sm__inst_executed_pipe_(?P<counted>\w+)|sm__pipe_(?P<timed>\w+)_cycles_active(?:_v2)?)"
    r"\.avg\.pct_of_peak_sustained_(?P<over>active|elapsed)"
)


def pipe_metrics(present: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The pipe utilisation metrics that a report holds: each with its pipe and what of (``cycles_of_elapsed`` …)."""
    for match in filter(None, map(_PIPE.fullmatch, present)):
        counted = "cycles" if match["timed"] else "instructions"
        yield match[0], match["timed"] or match["counted"], f"{counted}_of_{match['over']}"


# --- Warp states (sections WarpStateStats, SourceCounters) ------------------------------------------------------------

_STALL_CYCLES = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
# `warp_stall` on Pascal.
_STALL_SAMPLES = re.compile(r"smsp__pcsamp_warp(?:s_issue_stalled|_stall)_(\w+?)(_not_issued)?")


def stall_cycles(present: Iterable[str]) -> dict[str, str]:
    """Warp cycles per issue, the metric of each stall reason that a report holds."""
    names = [name for name in present if name.startswith("smsp__average_warps_")]
    return {match[1]: match[0] for match in filter(None, map(_STALL_CYCLES.fullmatch, names))}


SAMPLES_NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_*_not_issued"  # in a formula: their sum over reasons


def stall_samples(present: Iterable[str], *, not_issued: bool = False) -> dict[str, str]:
    """Sampling counter of each stall reason in a report; ``not_issued``: of samples in cycles that issue nothing."""
    names = [name for name in present if name.startswith("smsp__pcsamp_warp")]
    matches = filter(None, map(_STALL_SAMPLES.fullmatch, names))
    return {match[1]: match[0] for match in matches if bool(match[2]) == not_issued}


# --- What a metric counts ---------------------------------------------------------------------------------------------

_EXECUTED = re.compile(
    r"(?:smsp|sm)__(?:sass_|thread_)*inst_executed(?!.*(?:pct|per_|ratio|peak)).*\.sum$|sass__\w+$"
)
_LAUNCHED = re.compile(
    r"launch__(?:registers_per_thread|shared_mem_per_block\w*|block_size|grid_size|thread_count|cluster_size|stack_size)$"
)
_AMOUNT = r"__(?!.*(?:cycles|pct|per_|ratio|rate|throughput|peak|average|hit)).*\.sum$"
_AT_L1, _TRAFFIC = re.compile(f"l1tex{_AMOUNT}"), re.compile(f"(?:lts|dram|lrc){_AMOUNT}")
# Executed instructions, the same in every launch of the same work; parameters of the launch that the code or its caller
# decides; amounts at L1, which depend on the kernel alone, and behind it, where the same work gives nearly the same.
_COUNTED = {"instructions": _EXECUTED, "launch": _LAUNCHED, "l1": _AT_L1, "behind l1": _TRAFFIC}


def counts(metric: str) -> str:
    """What a metric counts: ``instructions``, ``launch``, ``l1`` or ``behind l1``; '' for another one."""
    return next((what for what, pattern in _COUNTED.items() if pattern.match(metric)), "")


# --- Launch, occupancy (sections LaunchStats, Occupancy) --------------------------------------------------------------

DEVICE_ATTRIBUTE_PREFIX = "device__attribute_"

# How metrics begin that are known without measuring: they belong to the GPU, the launch or ncu itself.
_FACTS = ("device__", "launch__", "profiler__", "nvlink__", "numa__", "c2clink__")
_NOT_COUNTED = re.compile(
    r"breakdown:|regex:|group:|sm(?:sp)?__maximum_warps_|derived_temp|.*\.(?:peak_sustained|max_rate)"
)


def counters(present: Iterable[str]) -> Iterator[str]:
    """Those metrics that ncu measures at a launch: neither facts of the GPU or the launch, nor peaks, nor lists."""
    return (name for name in present if not name.startswith(_FACTS) and not _NOT_COUNTED.match(name))


def counts_more_than_time(present: Iterable[str]) -> bool:
    """Whether ncu measured anything of a launch beside how long it took."""
    return any(not name.startswith(m.DURATION.partition(".")[0]) for name in counters(present))


# What tells the launches of a program apart and how much each matters; one pass collects it.
COUNT = (m.DURATION, m.SHARED_MEMORY_DYNAMIC)

# What `LaunchStatistics` holds of them, by its field.
OF_LAUNCH = {
    "registers_per_thread": m.REGISTERS_PER_THREAD, "static_shared_memory": m.SHARED_MEMORY_STATIC,
    "dynamic_shared_memory": m.SHARED_MEMORY_DYNAMIC, "driver_shared_memory": m.SHARED_MEMORY_DRIVER,
    "shared_memory_config": m.SHARED_MEMORY_CONFIG, "cluster_size": m.CLUSTER_SIZE,
}  # fmt: skip

# --- What memory does -------------------------------------------------------------------------------------------------

# Warp-level instructions by address space and operation: the sum over the entries, each the first name that the report
# has (another version of ncu, another name).
SPACE_INSTRUCTIONS = grouped(
    ((space, operation), names) for (space, operation, _), names in m.INSTRUCTION_TERMS.items()
)
LOCAL_LOADS, LOCAL_STORES = (SPACE_INSTRUCTIONS["local", kind][0] for kind in ("load", "store"))
SHARED_INSTRUCTIONS_OF = {
    kind: SPACE_INSTRUCTIONS["global" if kind == "async_copy" else "shared", kind][0]
    for kind in ("load", "store", "atomic", "ldmatrix", "stmatrix", "async_copy")
}
GLOBAL_REQUESTS_OF, GLOBAL_SECTORS_OF, LOCAL_REQUESTS_OF, LOCAL_SECTORS_OF = (
    {operation: name for (of, operation), name in names.items() if of == space}
    for space in ("global", "local")
    for names in (m.SPACE_REQUESTS, m.SPACE_SECTORS)
)

PERCENT_SUFFIX = ".pct_of_peak_sustained_elapsed"  # behind a count: its per cent of peak, and its rate
PER_SECOND_SUFFIX = ".per_second"

# --- Speed of light (section SpeedOfLight) ----------------------------------------------------------------------------

L1_DATA_STAGE = "L1 data stage"
# One path serves both; the breakdown's other members tell which of the two was busy.
FP64_OR_TENSOR, FP64_PIPE, TENSOR_CORES = "FP64 and tensor pipe", "FP64 pipe", "tensor cores"
_UNIT_PATTERNS = tuple((re.compile(pattern), unit) for pattern, unit in facts(__file__, "hardware_units.csv"))


@lru_cache(maxsize=KNOWN_NAMES)
def hardware_unit(name: str) -> str:
    """The hardware unit that a member of a throughput breakdown measures, in words ('' if it is unknown).

    The L1 data stage serves the L1 cache and shared memory alike.
    """
    base = name.partition(".")[0]
    return next((unit for pattern, unit in _UNIT_PATTERNS if pattern.fullmatch(base)), "")


# --- Roofline (sections SpeedOfLight_RooflineChart, SpeedOfLight_Hierarchical*RooflineChart) --------------------------

# Predicated-on thread instructions of an operation (``ffma``, ``dadd`` …) a cycle, and the most that all SMs can do.
executed_per_cycle = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed".format
peak_per_cycle = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained".format
_TENSOR_PATH = re.compile(r"sm__ops_path_tensor_(\w+)\.sum\.per_cycle_elapsed")


def tensor_paths(present: Iterable[str]) -> Iterator[str]:
    """The tensor paths (``op_hgmma_src_bf16_dst_fp32_sparsity_off`` …) that a report holds counters of."""
    return (match[1] for match in filter(None, map(_TENSOR_PATH.fullmatch, present)))


# Operations of one tensor path per elapsed cycle, all SMs together, and the most that they can execute.
tensor_operations_per_cycle = "sm__ops_path_tensor_{}.sum.per_cycle_elapsed".format
tensor_operations_peak = "sm__ops_path_tensor_{}.sum.peak_sustained".format
TENSOR_BUSY = tuple(
    f"sm__pipe_tensor{part}cycles_active.avg.pct_of_peak_sustained_elapsed"
    for part in ("_", "_op_hmma_", "_op_imma_")
)
_TENSOR_FIXED = re.compile(r"derived__smsp__inst_executed_pipe_tensor(\w*)_x(\d+)")


def tensor_by_instruction(present: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Achieved and peak operations a cycle where ncu (up to 2024) takes so many for each tensor instruction."""
    for name in present:
        if _TENSOR_FIXED.fullmatch(name):
            yield name, name.replace("derived__smsp__", "derived__sm__", 1)


# By resource: how busy it was, per cent of its peak over elapsed cycles. The busiest of those present counts.
# Atomics on few words keep one slice of L2 busy, so there the busiest slice counts, not the average one.
_BUSY = grouped((resource, metric) for resource, metric in facts(__file__, "busy.csv"))
BUSY = {resource: tuple(found) for resource, found in _BUSY.items()}

# Sectors at L1's tags: ``space`` is global or local, ``lookup`` is '' or ``_lookup_miss``.
LSU_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{space}_op_{operation}{lookup}.sum"

# Cycles that a warp spends in a state for each instruction that it issues.
stalled_per_issue = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio".format

# --- The lean set -----------------------------------------------------------------------------------------------------

_TABLES = "MemoryWorkloadAnalysis_Tables"
# What the lean set leaves out of ncu's sections: metrics by prefix that cost an instrumented replay of their own, and
# tables for which ncu collects hundreds of metrics where the analyses read a few (which the lean set names).
LEAN_WITHOUT = (
    "smsp__sass_inst_executed_memdesc_explicit_",  # explicit L2 eviction policies
    "smsp__sass_average_data_bytes_per_sector_",  # sectors per request and the excess say nearly as much
    "MemoryL1TEXCacheTable",
    "MemoryL2CacheTable",
    "MemoryL2CacheEvictPolicyTable",
    "MemoryDeviceMemoryTable",
)
# Thousands of metrics of tensor cores, 0.4 s a launch: left out where it is known that no kernel uses them.
_TENSOR_SECTIONS = frozenset({"SpeedOfLight_HierarchicalTensorRooflineChart"})
_BY_NAME = re.compile(r"(?:sm|smsp|l1tex|lts|dram)__\w+\.[\w.]+")
LEAN = "lean"  # the set of what the analyses read, in as few passes as can be


def collection_options(
    metric_set: str = LEAN,  # `LEAN`, or one of ncu's own
    *,
    tensor: bool = True,  # of the lean one also what is read of kernels that use tensor cores
    timeline: bool = True,  # of the lean one also samples over time
    sections: Iterable[str] = (),  # sections, names: more sections and metrics
    names: Iterable[str] = (),
) -> tuple[str, ...]:
    """ncu's options for a set, each section and metric once; the lean one is to be read without `LEAN_WITHOUT`."""
    options = ["--set", metric_set]
    if metric_set == LEAN:
        groups = m.GROUPS.values()
        of_tables = (
            name
            for group in groups
            if _TABLES in group.sections
            for name in (*group.required, *group.expected, *group.of_tables)
            if _BY_NAME.fullmatch(name) and not name.startswith(LEAN_WITHOUT)
        )
        left_out = frozenset() if tensor else _TENSOR_SECTIONS
        left_out |= frozenset() if timeline else {PM_SAMPLING}
        own = (name for group in groups for name in group.sections if name not in left_out)
        options, sections = [], (*own, *sections)
        names = (*(name for group in groups for name in group.requested), *of_tables, *names)
    for section in dict.fromkeys(sections):
        options += ["--section", section]
    if listed := ",".join(dict.fromkeys(names)):
        options += ["--metrics", listed]
    return tuple(options)
