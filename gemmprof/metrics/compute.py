"""What the SMs do: instruction mix, warp states, scheduler, divergence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gemmprof.metrics.groups import MetricGroup
from gemmprof.metrics.source import (
    DIVERGENT_BRANCHES_BY_ADDRESS,
    INSTRUCTIONS_BY_ADDRESS,
    SAMPLE_COUNT,
    SAMPLING_INTERVAL_CYCLES,
    THREADS_BY_ADDRESS,
)

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
SAMPLES_DROPPED_BYTES = "smsp__pcsamp_dropped_bytes"

_STALL_CYCLES = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
# `warp_stall` on Pascal.
_STALL_SAMPLES = re.compile(r"smsp__pcsamp_warp(?:s_issue_stalled|_stall)_(\w+?)(_not_issued)?")


def stall_cycles(present: Iterable[str]) -> dict[str, str]:
    """Warp cycles per issue, the metric of each stall reason that a report holds."""
    names = [name for name in present if name.startswith("smsp__average_warps_")]
    return {match[1]: match[0] for match in map(_STALL_CYCLES.fullmatch, names) if match is not None}


# In a formula: the sum over the stall reasons.
SAMPLES_NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_*_not_issued"


def stall_samples(present: Iterable[str], *, not_issued: bool = False) -> dict[str, str]:
    """Sampling counter of each stall reason that a report holds.

    Args:
        present: metric names.
        not_issued: those counters that count only samples in whose cycle the scheduler issued nothing.
    """
    names = [name for name in present if name.startswith("smsp__pcsamp_warp")]
    matches = (match for match in map(_STALL_SAMPLES.fullmatch, names) if match is not None)
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
# In place of the elapsed one in reports of ncu before 2025.
ISSUE_SLOTS_BUSY_ACTIVE = "sm__inst_issued.avg.pct_of_peak_sustained_active"
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
