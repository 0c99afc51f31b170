"""The figures of a kernel that a gate can ask for: quantities, ncu's metrics, findings."""

from __future__ import annotations

from gemmprof import metrics as m
from gemmprof.analysis.comparison.causes import CAUSES, causes_of
from gemmprof.analysis.comparison.conditions import LOCAL
from gemmprof.analysis.comparison.quantities import QUANTITIES
from gemmprof.analysis.comparison.records import KernelRecord, Range
from gemmprof.analysis.comparison.sides import disassembled
from gemmprof.analysis.sections.rules import KNOWN as RULES

DIRECT = {
    "elapsed_cycles": m.ELAPSED_CYCLES,
    "duration": m.DURATION,
    "sm_clock": m.SM_CLOCK,
    "memory_clock": m.DRAM_CLOCK,
    "sm_percent": m.SM_THROUGHPUT,
    "memory_percent": m.MEMORY_THROUGHPUT,
    "dram_percent": m.DRAM_THROUGHPUT,
}
"""Quantities that are a metric, of which every launch is known."""
EXACT = frozenset(
    [name for name, *_ in QUANTITIES["instructions"]]
    + ["theoretical_occupancy", "registers", "shared_memory", LOCAL]
)
"""Quantities that are the same in every launch of the same work."""
ONE_LAUNCH_WITHIN = 0.02
"""Others are worked out of the middle launch alone: a change of theirs within this is not decided."""


def figure(record: KernelRecord, name: str) -> Range | None:
    """A quantity of the launch, or a metric over its launches."""
    direct = record.metrics.get(DIRECT.get(name, ""))
    if direct is not None:
        return direct
    if name in record.measures.values:
        value = record.measures.values[name]
        return Range(value, value, value)
    if name in record.metrics:
        return record.metrics[name]
    if name == LOCAL:
        # Not counted while it ran: whether the code has such instructions at all is known from the code.
        code = disassembled(record).code
        if code is not None and code.instructions:
            count = float(sum(n for opcode, n in code.opcodes.items() if opcode.startswith(("LDL", "STL"))))
            return Range(count, count, count)
    return None


def of_one_launch(name: str, record: KernelRecord) -> bool:
    """Whether a figure is known of the middle launch only, and may differ from launch to launch."""
    return name in record.measures.values and name not in EXACT and DIRECT.get(name) not in record.metrics


def has_finding(finding: str, record: KernelRecord) -> bool | None:
    """Whether a kernel has a finding: a rule of ncu's, or a cause of gemmprof's; None if nobody looked."""
    if finding in CAUSES:
        causes = causes_of(record)
        return None if causes is None else finding in causes
    if finding in record.rules or (record.rules and finding in RULES):
        return finding in record.findings
    return None
