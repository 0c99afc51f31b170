"""The quantities that a comparison of two launches looks at, and whether less or more of each is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from gemmprof.analysis.figure import declared
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

LESS_IS_BETTER, MORE_IS_BETTER, NOT_JUDGED = "lower", "higher", "neither"

Quantity = tuple[str, str, str, str, type[Any], Callable[[Any], "float | None"]]


def _operation(name: str, value: str) -> Callable[[Any], float | None]:
    """A value of one kind of access: 0 where the kind did not occur, None where it was not counted."""

    def get(result: BankConflicts | Coalescing) -> Any:
        operation = result.operation(name)
        if operation is None:
            return 0.0 if name in result.counted else None
        return getattr(operation, value)

    return get


def _written(value: str) -> Callable[[BankConflicts], float | None]:
    """A value of plain stores and asynchronous copies together: both write tiles into shared memory."""

    def get(result: BankConflicts) -> float | None:
        values = [_operation(name, value)(result) for name in ("store", "async_copy")]
        known = [item for item in values if item is not None]
        return sum(known) if known else None

    return get


def _bytes(source: str, target: str, label: str) -> Callable[[MemoryChart], float | None]:
    def get(chart: MemoryChart) -> float | None:
        link = chart.link(source, target, label)
        return None if link is None else link.bytes

    return get


def _hit_rate(unit: str) -> Callable[[MemoryChart], float | None]:
    def get(chart: MemoryChart) -> float | None:
        box = chart.unit(unit)
        return None if box is None else box.hit_rate

    return get


def _l1_bytes(result: Coalescing) -> float | None:
    sectors = _operation("load", "sectors")(result)
    return None if sectors is None else sectors * SECTOR_BYTES


def _count(*opcodes: str) -> Callable[[InstructionMix], float | None]:
    return lambda mix: mix.count(*opcodes)


def _figure(name: str, better: str, kind: type[Any], place: str) -> Quantity:
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

    return name, item.alone or item.title, _UNITS.get(item.unit, item.unit), better, kind, get


_UNITS = {"share": "%", "occupancy": "%", "size": "byte"}
"""Unit of a quantity whose figure is shown in another way."""

QUANTITIES: dict[str, tuple[Quantity, ...]] = {
    "time": (
        _figure("duration", LESS_IS_BETTER, SpeedOfLight, "duration_ns"),
        _figure("elapsed_cycles", LESS_IS_BETTER, SpeedOfLight, "elapsed_cycles"),
        _figure("sm_clock", NOT_JUDGED, SpeedOfLight, "sm_clock_hz"),
        _figure("memory_clock", NOT_JUDGED, SpeedOfLight, "dram_clock_hz"),
    ),
    "limits": (
        _figure("sm_percent", MORE_IS_BETTER, SpeedOfLight, "sm_percent"),
        _figure("memory_percent", NOT_JUDGED, SpeedOfLight, "memory_percent"),
        _figure("dram_percent", NOT_JUDGED, SpeedOfLight, "dram_percent"),
        _figure("issued", MORE_IS_BETTER, Scheduler, "issued_per_cycle"),
        _figure("eligible", MORE_IS_BETTER, Scheduler, "eligible_warps"),
    ),
    "instructions": (
        _figure("executed", LESS_IS_BETTER, InstructionMix, "executed"),
        ("ffma", "FFMA", "inst", NOT_JUDGED, InstructionMix, _count("FFMA", "FFMA2")),
        ("shared_loads", "Shared loads (LDS)", "inst", LESS_IS_BETTER, InstructionMix, _count("LDS", "LDSM")),
        (
            "global_loads",
            "Global loads (LDG)",
            "inst",
            LESS_IS_BETTER,
            InstructionMix,
            _count("LDG", "LDGSTS"),
        ),
        _figure("ffma_per_shared_load", MORE_IS_BETTER, InstructionMix, "ratios.ffma_per_shared_load"),
        _figure("ffma_per_global_load", MORE_IS_BETTER, InstructionMix, "ratios.ffma_per_global_load"),
        _figure("fma_share", MORE_IS_BETTER, InstructionMix, "ratios.fma_share"),
        _figure("bytes_per_shared_load", MORE_IS_BETTER, InstructionMix, "ratios.bytes_per_shared_load"),
        _figure("bytes_per_global_load", MORE_IS_BETTER, InstructionMix, "ratios.bytes_per_global_load"),
        _figure(
            "threads_per_instruction", MORE_IS_BETTER, Divergence, "threads_per_instruction_predicated_on"
        ),
    ),
    "memory": (
        ("l1_bytes", "Global loads at L1", "byte", LESS_IS_BETTER, Coalescing, _l1_bytes),
        _figure("excess_sectors", LESS_IS_BETTER, Coalescing, "excess_share"),
        ("l2_to_l1", "L2 to L1", "byte", LESS_IS_BETTER, MemoryChart, _bytes("l2", "l1", "read")),
        ("l1_to_l2", "L1 to L2", "byte", LESS_IS_BETTER, MemoryChart, _bytes("l1", "l2", "write")),
        (
            "dram_read",
            "Device memory reads",
            "byte",
            LESS_IS_BETTER,
            MemoryChart,
            _bytes("device", "l2", "read"),
        ),
        (
            "dram_write",
            "Device memory writes",
            "byte",
            LESS_IS_BETTER,
            MemoryChart,
            _bytes("l2", "device", "write"),
        ),
        ("l1_hit_rate", "L1 hit rate", "%", NOT_JUDGED, MemoryChart, _hit_rate("l1")),
        ("l2_hit_rate", "L2 hit rate", "%", NOT_JUDGED, MemoryChart, _hit_rate("l2")),
        (
            "local_accesses",
            "Local memory accesses",
            "inst",
            LESS_IS_BETTER,
            Spills,
            lambda r: r.loads + r.stores,
        ),
    ),
    "shared memory": (
        (
            "shared_load_wavefronts",
            "Wavefronts of shared loads",
            "",
            LESS_IS_BETTER,
            BankConflicts,
            _operation("load", "wavefronts"),
        ),
        (
            "shared_store_wavefronts",
            "Wavefronts of shared stores",
            "",
            LESS_IS_BETTER,
            BankConflicts,
            _written("wavefronts"),
        ),
        (
            "shared_load_conflicts",
            "Bank conflicts of shared loads",
            "",
            LESS_IS_BETTER,
            BankConflicts,
            _operation("load", "conflicts"),
        ),
        (
            "shared_store_conflicts",
            "Bank conflicts of shared stores",
            "",
            LESS_IS_BETTER,
            BankConflicts,
            _written("conflicts"),
        ),
    ),
    "occupancy": (
        _figure("theoretical_occupancy", NOT_JUDGED, LaunchOccupancy, "theoretical_percent"),
        _figure("achieved_occupancy", NOT_JUDGED, LaunchOccupancy, "achieved_percent"),
        _figure("registers", NOT_JUDGED, Launch, "registers_per_thread"),
        (
            "shared_memory",
            "Shared memory of a block",
            "byte",
            NOT_JUDGED,
            Launch,
            lambda r: _sum(r.static_shared_memory, r.dynamic_shared_memory),
        ),
    ),
    "stalls": (_figure("warp_latency", LESS_IS_BETTER, WarpStates, "cycles_per_issued_instruction"),),
}
"""By group: name, title, unit, what is better, the analysis, and how to get the value from its result."""

UNITS: Mapping[str, str] = {
    name: unit for quantities in QUANTITIES.values() for name, _, unit, *_ in quantities
}
"""Unit of each quantity."""

ALIASES: Mapping[str, str] = {
    "time": "duration",
    "cycles": "elapsed_cycles",
    "instructions": "executed",
    "occupancy": "achieved_occupancy",
    "local_memory": "local_accesses",
    "spills": "local_accesses",
}
"""What people write for a quantity, in a gate and in a search, without looking it up."""


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


WHOLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "shared_load_wavefronts",
            "shared_store_wavefronts",
            "shared_load_conflicts",
            "shared_store_conflicts",
        ),
        ("shared_load_wavefronts", "shared_store_wavefronts"),
    ),
    **dict.fromkeys(("l2_to_l1", "l1_to_l2"), ("l2_to_l1", "l1_to_l2")),
    **dict.fromkeys(("dram_read", "dram_write"), ("dram_read", "dram_write")),
    **dict.fromkeys(("shared_loads", "global_loads", "local_accesses"), ("executed",)),
}
"""Quantity to the quantities that add up to the whole of which it is a part: a thousand conflicts more among a billion
wavefronts are no change worth telling."""
