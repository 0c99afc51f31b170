"""The causes that `gemmprof explain` knows, a module a group; `engine` asks them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from gemmprof.analysis.explanation.candidate import Candidate
    from gemmprof.analysis.explanation.demands.work import Work

Detector = Callable[["Work"], Iterator["Candidate"]]


class _Row(NamedTuple):
    """One function that looks for causes.

    Attributes:
        module, function: where it stands.
        titles: the names of what it finds, with their headings.
        code: it says nothing of a report without code or counters by instruction; others look at the launch alone.
    """

    module: str
    function: str
    titles: Mapping[str, str]
    code: bool = True


# Every cause: the function that looks for it, and its names with their headings, in the order of lists and pages. The
# function's docstring says what "fixed" means for it. One more cause is one more function and its line here. Functions
# by module and name, because whoever asks for a cause's name (a condition, a table) need not load what finds it.
_TABLE = (
    _Row("access", "uncoalesced_access", {"uncoalesced_access": "Uncoalesced access"}),
    _Row("access", "narrow_access", {"narrow_access": "Narrow access"}),
    _Row("reuse", "redundant_loads", {"redundant_loads": "Redundant loads"}),
    _Row("reuse", "cache_locality", {"cache_locality": "Cache locality"}, code=False),
    _Row("shared", "shared_bank_conflicts", {"shared_bank_conflicts": "Shared-memory bank conflicts"}),
    _Row("shared", "shared_memory_bandwidth", {"shared_memory_bandwidth": "Shared-memory bandwidth"}),
    _Row("shared", "local_memory", {"local_memory": "Local memory"}),
    _Row("shared", "constant_divergence", {"constant_divergence": "Divergent constant loads"}),
    _Row("atomics", "global_atomics", {"global_atomics": "Global atomics"}),
    _Row("atomics", "shared_atomics", {"shared_atomics": "Shared atomics"}),
    _Row("threads", "branch_divergence", {"branch_divergence": "Branch divergence"}),
    _Row("threads", "idle_threads", {"idle_threads": "Threads without work"}),
    _Row(
        "grid",
        "uneven_work",
        {
            "workload_imbalance": "Workload imbalance",
            "tail_effect": "Tail effect",
            "small_grid": "Small grid",
        },
        code=False,
    ),
    _Row("threads", "low_occupancy", {"low_occupancy": "Low occupancy"}, code=False),
    _Row("threads", "launch_overhead", {"launch_overhead": "Launch overhead"}, code=False),
    _Row("arithmetic", "double_precision", {"double_precision": "Double precision"}),
    _Row("arithmetic", "integer_arithmetic", {"integer_arithmetic": "Integer division"}),
    _Row("arithmetic", "expensive_math", {"expensive_math": "Expensive functions"}),
    _Row("arithmetic", "non_fused_arithmetic", {"non_fused_arithmetic": "Arithmetic not fused"}),
    _Row("tensor", "tensor_cores_idle", {"tensor_cores_idle": "Idle tensor cores"}),
    _Row("tensor", "warp_level_mma", {"warp_level_mma": "Tensor cores by single warps"}),
    _Row("barriers", "barriers", {"barriers": "Barriers"}),
    _Row("waits", "instruction_cache", {"instruction_cache": "Instruction cache"}),
    _Row("waits", "memory_latency", {"memory_latency": "Memory latency"}),
    _Row("waits", "instruction_latency", {"instruction_latency": "Instruction latency"}),
    _Row("waits", "serial_wgmmas", {}),
    _Row("library_calls", "unaligned_operands", {"unaligned_operands": "Unaligned operands"}, code=False),
    _Row("library_calls", "fp32_products", {}, code=False),
)
CAUSES: dict[str, str] = {name: title for row in _TABLE for name, title in row.titles.items()}


@cache
def detectors(*, code: bool = True) -> tuple[Detector, ...]:
    """The functions that look for causes, in the order of the table; all, or those that need no code."""
    return tuple(
        cast(Detector, getattr(import_module(f"{__name__}.{row.module}"), row.function))
        for row in _TABLE
        if code or not row.code
    )


def definition(cause: str) -> str:
    """What "fixed" means for a cause: the docstring of the function that finds it."""
    import inspect

    found = next(detector for detector, row in zip(detectors(), _TABLE, strict=True) if cause in row.titles)
    return inspect.cleandoc(found.__doc__ or "")
