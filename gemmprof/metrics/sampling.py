"""Metrics sampled over time (sections PmSampling and PmSampling_WarpStates), and what the sampler says of itself."""

from __future__ import annotations

import re

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
