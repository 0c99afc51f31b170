"""The causes that `gemmprof explain` knows, a module a group; `detect` asks them all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

from gemmprof.analysis.explanation.candidate import Candidate
from gemmprof.analysis.explanation.causes import (
    access,
    arithmetic,
    atomics,
    barriers,
    grid,
    reuse,
    shared,
    tensor,
    threads,
    waits,
)
from gemmprof.analysis.explanation.demands.work import Work, once

Detector = Callable[[Work], Iterator[Candidate]]

DETECTORS: tuple[Detector, ...] = (
    access.uncoalesced_access,
    access.narrow_access,
    reuse.redundant_loads,
    reuse.cache_locality,
    shared.shared_bank_conflicts,
    shared.shared_memory_bandwidth,
    shared.local_memory,
    shared.constant_divergence,
    atomics.global_atomics,
    atomics.shared_atomics,
    threads.branch_divergence,
    grid.uneven_work,
    threads.low_occupancy,
    threads.launch_overhead,
    arithmetic.double_precision,
    arithmetic.integer_arithmetic,
    arithmetic.expensive_math,
    arithmetic.non_fused_arithmetic,
    tensor.tensor_cores_idle,
    tensor.warp_level_mma,
    barriers.barriers,
    waits.instruction_cache,
    waits.memory_latency,
    waits.instruction_latency,
    waits.serial_wgmmas,
)

CAUSES: dict[str, str] = {
    "uncoalesced_access": "Uncoalesced access",
    "narrow_access": "Narrow access",
    "redundant_loads": "Redundant loads",
    "cache_locality": "Cache locality",
    "shared_bank_conflicts": "Shared-memory bank conflicts",
    "shared_memory_bandwidth": "Shared-memory bandwidth",
    "global_atomics": "Global atomics",
    "shared_atomics": "Shared atomics",
    "local_memory": "Local memory",
    "constant_divergence": "Divergent constant loads",
    "branch_divergence": "Branch divergence",
    "workload_imbalance": "Workload imbalance",
    "tail_effect": "Tail effect",
    "small_grid": "Small grid",
    "low_occupancy": "Low occupancy",
    "instruction_latency": "Instruction latency",
    "memory_latency": "Memory latency",
    "barriers": "Barriers",
    "instruction_cache": "Instruction cache",
    "double_precision": "Double precision",
    "integer_arithmetic": "Integer division",
    "expensive_math": "Expensive functions",
    "non_fused_arithmetic": "Arithmetic not fused",
    "tensor_cores_idle": "Idle tensor cores",
    "warp_level_mma": "Tensor cores by single warps",
    "launch_overhead": "Launch overhead",
}
"""Every cause with its heading; docs/explain.md defines what "fixed" means for each."""


_SHARED_DETECTORS = {
    "workload_imbalance": grid.uneven_work,
    "tail_effect": grid.uneven_work,
    "small_grid": grid.uneven_work,
}


def definition(cause: str) -> str:
    """What "fixed" means for a cause: the docstring of the function that finds it."""
    detectors = {detector.__name__: detector for detector in DETECTORS}
    found = detectors.get(cause) or _SHARED_DETECTORS[cause]
    return inspect.cleandoc(found.__doc__ or "")


@once
def detect(work: Work) -> tuple[Candidate, ...]:
    """What each cause says of a launch, not yet weighed."""
    return tuple(candidate for detector in DETECTORS for candidate in detector(work))
