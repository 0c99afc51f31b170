"""Metrics sampled over time (sections PmSampling and PmSampling_WarpStates), and what the sampler says of itself."""

from __future__ import annotations

import re

from gemmprof.metrics.groups import MetricGroup

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
