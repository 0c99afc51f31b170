"""The causes that `gemmprof explain` knows, a module a group; `engine` asks them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gemmprof.analysis.explanation.candidate import Candidate
    from gemmprof.analysis.explanation.demands.work import Work

Detector = Callable[["Work"], Iterator["Candidate"]]

# Every cause: the function that looks for it, and its names with their headings, in the order of lists and pages. The
# function's docstring says what "fixed" means for it. One more cause is one more function and its line here. Functions
# by module and name, because whoever asks for a cause's name (a condition, a table) need not load what finds it.
_TABLE: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("access", "uncoalesced_access", {"uncoalesced_access": "Uncoalesced access"}),
    ("access", "narrow_access", {"narrow_access": "Narrow access"}),
    ("reuse", "redundant_loads", {"redundant_loads": "Redundant loads"}),
    ("reuse", "cache_locality", {"cache_locality": "Cache locality"}),
    ("shared", "shared_bank_conflicts", {"shared_bank_conflicts": "Shared-memory bank conflicts"}),
    ("shared", "shared_memory_bandwidth", {"shared_memory_bandwidth": "Shared-memory bandwidth"}),
    ("shared", "local_memory", {"local_memory": "Local memory"}),
    ("shared", "constant_divergence", {"constant_divergence": "Divergent constant loads"}),
    ("atomics", "global_atomics", {"global_atomics": "Global atomics"}),
    ("atomics", "shared_atomics", {"shared_atomics": "Shared atomics"}),
    ("threads", "branch_divergence", {"branch_divergence": "Branch divergence"}),
    ("threads", "idle_threads", {"idle_threads": "Threads without work"}),
    (
        "grid",
        "uneven_work",
        {
            "workload_imbalance": "Workload imbalance",
            "tail_effect": "Tail effect",
            "small_grid": "Small grid",
        },
    ),
    ("threads", "low_occupancy", {"low_occupancy": "Low occupancy"}),
    ("threads", "launch_overhead", {"launch_overhead": "Launch overhead"}),
    ("arithmetic", "double_precision", {"double_precision": "Double precision"}),
    ("arithmetic", "integer_arithmetic", {"integer_arithmetic": "Integer division"}),
    ("arithmetic", "expensive_math", {"expensive_math": "Expensive functions"}),
    ("arithmetic", "non_fused_arithmetic", {"non_fused_arithmetic": "Arithmetic not fused"}),
    ("tensor", "tensor_cores_idle", {"tensor_cores_idle": "Idle tensor cores"}),
    ("tensor", "warp_level_mma", {"warp_level_mma": "Tensor cores by single warps"}),
    ("barriers", "barriers", {"barriers": "Barriers"}),
    ("waits", "instruction_cache", {"instruction_cache": "Instruction cache"}),
    ("waits", "memory_latency", {"memory_latency": "Memory latency"}),
    ("waits", "instruction_latency", {"instruction_latency": "Instruction latency"}),
    ("waits", "serial_wgmmas", {}),
    ("library_calls", "unaligned_operands", {"unaligned_operands": "Unaligned operands"}),
    ("library_calls", "fp32_products", {}),
)
# Those that look at the launch alone: of a report without code or counters by instruction the others say nothing.
_WITHOUT_CODE = (
    "cache_locality", "uneven_work", "low_occupancy", "launch_overhead", "unaligned_operands", "fp32_products",
)  # fmt: skip
CAUSES: dict[str, str] = {name: title for *_, titles in _TABLE for name, title in titles.items()}


@cache
def detectors(*, code: bool = True) -> tuple[Detector, ...]:
    """The functions that look for causes, in the order of the table; all, or those that need no code."""
    return tuple(
        cast(Detector, getattr(import_module(f"{__name__}.{module}"), name))
        for module, name, _ in _TABLE
        if code or name in _WITHOUT_CODE
    )


def definition(cause: str) -> str:
    """What "fixed" means for a cause: the docstring of the function that finds it."""
    import inspect

    found = next(
        detector for detector, (*_, titles) in zip(detectors(), _TABLE, strict=True) if cause in titles
    )
    return inspect.cleandoc(found.__doc__ or "")
