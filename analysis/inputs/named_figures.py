"""Every figure of a launch by the name that a user writes: in `gemmprof find`, in a gate, a comparison, a history.

Three kinds of names: figures (`time`, `registers`, `l2_hit_rate`), causes of findings (`shared_bank_conflicts`: per
cent of the launch's time that fixing it is predicted to save), and Nsight Compute's own metric names. Percentages run
from 0 to 100, times are nanoseconds, sizes bytes. Some figures are means and no end (occupancy, hit rates, registers):
they are shown and not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from gemmprof import metrics as m
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.figure import declared, formula_of
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyses, result_of
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.coalescing import Coalescing
from gemmprof.analysis.sections.divergence import Divergence
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.launch_statistics import Launch
from gemmprof.analysis.sections.memory_chart import SECTOR_BYTES, MemoryChart
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.spills import Spills
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.model import Explanation

LESS_IS_BETTER, MORE_IS_BETTER, NOT_JUDGED = "lower", "higher", "neither"
Getter = Callable[[Any], "float | None"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure that a comparison looks at."""

    group: str  # ``time``, ``limits``, ``instructions``, ``memory``, ``shared memory``, ``occupancy`` or ``stalls``
    name: str  # what a user writes
    title: str  # title, unit: for people
    unit: str
    better: str  # ``lower``, ``higher`` or ``neither``
    analysis: type[Any]  # whose result it is read from
    get: Getter  # reads it; None where it was not collected
    metric: str = ""  # which it is, '' of one that is computed from several


def _row(value: str, finder: str, *names: str) -> Getter:
    """A value of one row of a result: 0 of an access that was counted and did not occur, None of one that was not."""

    def get(result: Any) -> Any:
        row = getattr(result, finder)(*names)
        if row is None:
            return 0.0 if names[0] in getattr(result, "counted", ()) else None
        return getattr(row, value)

    return get


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def _written(value: str) -> Getter:
    """A value of plain stores and asynchronous copies together: both write tiles into shared memory."""
    return lambda result: _sum(*(_row(value, "operation", name)(result) for name in ("store", "async_copy")))


def _l1_bytes(result: Coalescing) -> float | None:
    sectors = _row("sectors", "operation", "load")(result)
    return None if sectors is None else sectors * SECTOR_BYTES


def _count(*opcodes: str) -> Getter:
    return lambda mix: mix.count(*opcodes)


_UNITS = {"share": "%", "occupancy": "%", "size": "byte"}  # of quantities shown in another way


def _figure(group: str, name: str, better: str, kind: type[Any], place: str) -> Quantity:
    """A figure as its field declares it; ``place`` is ``field``, or ``part.field`` of a part of the result."""
    *parts, field = place.split(".")
    holder = get_type_hints(kind)[parts[0]] if parts else kind
    item = declared(holder)[field]
    factor = 100 if item.unit == "share" else 1

    def get(result: Any) -> Any:
        for part in parts:
            result = getattr(result, part)
        value = getattr(result, field)
        return value if value is None or factor == 1 else factor * value

    unit = _UNITS.get(item.unit, item.unit)
    metric = "".join(item.names[:1])
    return Quantity(group, name, item.alone or item.title, unit, better, kind, get, metric)


_SHARED = "shared memory"

# fmt: off
QUANTITIES: tuple[Quantity, ...] = (
    _figure("time", "duration", LESS_IS_BETTER, SpeedOfLight, "duration_ns"),
    _figure("time", "elapsed_cycles", LESS_IS_BETTER, SpeedOfLight, "elapsed_cycles"),
    _figure("time", "sm_clock", NOT_JUDGED, SpeedOfLight, "sm_clock_hz"),
    _figure("time", "memory_clock", NOT_JUDGED, SpeedOfLight, "dram_clock_hz"),
    _figure("limits", "sm_percent", MORE_IS_BETTER, SpeedOfLight, "sm_percent"),
    _figure("limits", "memory_percent", NOT_JUDGED, SpeedOfLight, "memory_percent"),
    _figure("limits", "dram_percent", NOT_JUDGED, SpeedOfLight, "dram_percent"),
    _figure("limits", "issued", MORE_IS_BETTER, Scheduler, "issued_per_cycle"),
    _figure("limits", "eligible", MORE_IS_BETTER, Scheduler, "eligible_warps"),
    _figure("instructions", "executed", LESS_IS_BETTER, InstructionMix, "executed"),
    Quantity("instructions", "ffma", "FFMA", "inst", NOT_JUDGED, InstructionMix, _count("FFMA", "FFMA2")),
    Quantity("instructions", "shared_loads", "Shared loads (LDS)", "inst", LESS_IS_BETTER,
             InstructionMix, _count("LDS", "LDSM")),
    Quantity("instructions", "global_loads", "Global loads (LDG)", "inst", LESS_IS_BETTER,
             InstructionMix, _count("LDG", "LDGSTS")),
    *(
        _figure("instructions", name, MORE_IS_BETTER, InstructionMix, f"ratios.{name}")
        for name in ("ffma_per_shared_load", "ffma_per_global_load", "fma_share", "bytes_per_shared_load",
                     "bytes_per_global_load")
    ),
    _figure("instructions", "threads_per_instruction", MORE_IS_BETTER, Divergence,
            "threads_per_instruction_predicated_on"),
    Quantity("memory", "l1_bytes", "Global loads at L1", "byte", LESS_IS_BETTER, Coalescing, _l1_bytes),
    _figure("memory", "excess_sectors", LESS_IS_BETTER, Coalescing, "excess_share"),
    Quantity("memory", "l2_to_l1", "L2 to L1", "byte", LESS_IS_BETTER,
             MemoryChart, _row("bytes", "link", "l2", "l1", "read"), m.L2_TO_L1_BYTES),
    Quantity("memory", "l1_to_l2", "L1 to L2", "byte", LESS_IS_BETTER,
             MemoryChart, _row("bytes", "link", "l1", "l2", "write"), m.L1_TO_L2_BYTES),
    Quantity("memory", "dram_read", "Device memory reads", "byte", LESS_IS_BETTER,
             MemoryChart, _row("bytes", "link", "device", "l2", "read"), m.DRAM_READ_BYTES[0]),
    Quantity("memory", "dram_write", "Device memory writes", "byte", LESS_IS_BETTER,
             MemoryChart, _row("bytes", "link", "l2", "device", "write"), m.DRAM_WRITE_BYTES[0]),
    Quantity("memory", "l1_hit_rate", "L1 hit rate", "%", NOT_JUDGED, MemoryChart, _row("hit_rate", "unit", "l1")),
    Quantity("memory", "l2_hit_rate", "L2 hit rate", "%", NOT_JUDGED, MemoryChart, _row("hit_rate", "unit", "l2")),
    Quantity("memory", "local_accesses", "Local memory accesses", "inst", LESS_IS_BETTER,
             Spills, lambda found: found.loads + found.stores),
    Quantity(_SHARED, "shared_load_wavefronts", "Wavefronts of shared loads", "", LESS_IS_BETTER,
             BankConflicts, _row("wavefronts", "operation", "load")),
    Quantity(_SHARED, "shared_store_wavefronts", "Wavefronts of shared stores", "", LESS_IS_BETTER,
             BankConflicts, _written("wavefronts")),
    Quantity(_SHARED, "shared_load_conflicts", "Bank conflicts of shared loads", "", LESS_IS_BETTER,
             BankConflicts, _row("conflicts", "operation", "load")),
    Quantity(_SHARED, "shared_store_conflicts", "Bank conflicts of shared stores", "", LESS_IS_BETTER,
             BankConflicts, _written("conflicts")),
    _figure("occupancy", "theoretical_occupancy", NOT_JUDGED, LaunchOccupancy, "theoretical_percent"),
    _figure("occupancy", "achieved_occupancy", NOT_JUDGED, LaunchOccupancy, "achieved_percent"),
    _figure("occupancy", "registers", NOT_JUDGED, Launch, "registers_per_thread"),
    Quantity("occupancy", "shared_memory", "Shared memory of a block", "byte", NOT_JUDGED, Launch,
             lambda found: _sum(found.static_shared_memory, found.dynamic_shared_memory)),
    _figure("stalls", "warp_latency", LESS_IS_BETTER, WarpStates, "cycles_per_issued_instruction"),
)
# fmt: on
"""In reading order, group by group."""

# Unit of every figure and cause; metrics have that of the report.
UNITS: Mapping[str, str] = {**{one.name: one.unit for one in QUANTITIES}, **dict.fromkeys(CAUSES, "%")}
_ACCESSES = ("shared_load_wavefronts", "shared_store_wavefronts")
# Quantity to the quantities that add up to the whole of which it is a part: a thousand conflicts more among a
# billion wavefronts are no change worth telling.
WHOLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_ACCESSES, "shared_load_conflicts", "shared_store_conflicts"), _ACCESSES),
    **dict.fromkeys(("l2_to_l1", "l1_to_l2"), ("l2_to_l1", "l1_to_l2")),
    **dict.fromkeys(("dram_read", "dram_write"), ("dram_read", "dram_write")),
    **dict.fromkeys(("shared_loads", "global_loads", "local_accesses"), ("executed",)),
}


@cache
def titles() -> dict[str, str]:
    """The titles of metrics that are figures."""
    declarations = (item for analysis in analyses() for item in declared(result_of(analysis)).values())
    found = {metric: item.alone or item.title for item in declarations for metric in item.names}
    return {**found, **{one.metric: one.title for one in QUANTITIES if one.metric}}


def figures(analysis: KernelAnalysis) -> dict[str, float]:
    """The figures of one launch; what was not collected is absent. Of a traced launch they carry their formulas."""
    found: dict[str, float] = {}
    for one in QUANTITIES:
        result = analysis.get(one.analysis)
        value = one.get(result) if isinstance(result, one.analysis) else None
        if value is not None:
            found[one.name] = value if formula_of(value) else float(value)
    return found


def findings(explanation: Explanation) -> dict[str, float]:
    """Per cent of its time that each finding of a launch would save; 0 for the causes that it is not told."""
    saved = {finding.cause: 100.0 * finding.saves for finding in explanation.findings if finding.told}
    return {cause: saved.get(cause, 0.0) for cause in CAUSES}
