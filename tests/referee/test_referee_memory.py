"""What ncu prints of memory and divergence (details page, rules, memory chart) is what the analyses say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ncu_units as units
import pytest
from ncu_exports import PrintedRule, csv_rows, details_page
from recorded_data import ReadRecorded

from gemmprof.analysis.sections import bank_conflicts, coalescing, divergence, memory_chart, spills
from gemmprof.analysis.sections.bank_conflicts import BankConflicts
from gemmprof.analysis.sections.coalescing import Coalescing
from gemmprof.analysis.sections.divergence import Divergence
from gemmprof.analysis.sections.memory_chart import MemoryChart
from gemmprof.model import KernelProfile

MEMORY = "Memory Workload Analysis"
SOURCE = "Source Counters"
STATES = "Warp State Statistics"

FIELDS: dict[tuple[str, str], tuple[Any, Callable[[Any], float | None], str]] = {
    (MEMORY, "Memory Throughput"): (memory_chart, lambda r: r.dram_bytes_per_second, "byte/s"),
    (MEMORY, "Mem Busy"): (memory_chart, lambda r: r.busy_percent, "%"),
    (MEMORY, "Max Bandwidth"): (memory_chart, lambda r: r.bandwidth_percent, "%"),
    (MEMORY, "Mem Pipes Busy"): (memory_chart, lambda r: r.pipes_busy_percent, "%"),
    (MEMORY, "L1/TEX Hit Rate"): (memory_chart, lambda r: r.unit("l1").hit_rate, "%"),
    (MEMORY, "L2 Hit Rate"): (memory_chart, lambda r: r.unit("l2").hit_rate, "%"),
    (MEMORY, "Local Memory Spilling Requests"): (spills, lambda r: r.spilling_requests, ""),
    (STATES, "Avg. Active Threads Per Warp"): (divergence, lambda r: r.threads_per_instruction, ""),
    (STATES, "Avg. Not Predicated Off Threads Per Warp"): (
        divergence,
        lambda r: r.threads_per_instruction_predicated_on,
        "",
    ),
    (SOURCE, "Branch Instructions"): (divergence, lambda r: r.branches, "inst"),
    # ncu prints the fraction and calls it per cent.
    (SOURCE, "Branch Instructions Ratio"): (divergence, lambda r: r.branch_share / 100, "%"),
    # ncu prints 0 where no branch could diverge; the analysis says None there.
    (SOURCE, "Branch Efficiency"): (divergence, lambda r: r.uniform_share or 0.0, "%"),
    (SOURCE, "Avg. Divergent Branches"): (
        divergence,
        lambda r: r.divergent_branches_per_scheduler,
        "branches",
    ),
}


def test_details_page_agrees(report_name: str, recorded: ReadRecorded) -> None:
    profiles = recorded(report_name)
    for profile, printed in zip(profiles, details_page(report_name), strict=True):
        results: dict[str, Any] = {}
        for detail in printed.details:
            field = FIELDS.get((detail.section, detail.metric))
            if field is None:
                continue
            analysis, value, unit = field
            result = results.setdefault(analysis.NAME, analysis.analyse(profile))
            number = value(result)
            assert number is not None, (detail.section, detail.metric)
            scaled, scaled_unit = units.scale(number, unit)
            assert (units.number_text(scaled), scaled_unit) == (detail.value, detail.unit), detail


def test_details_page_is_not_compared_with_nothing(recorded: ReadRecorded) -> None:
    printed = details_page("flaws_bank_conflicts")
    fields = [d for launch in printed for d in launch.details if (d.section, d.metric) in FIELDS]
    assert len(fields) == len(FIELDS) * len(recorded("flaws_bank_conflicts"))


def rules(report: str, profiles: tuple[KernelProfile, ...]) -> list[tuple[KernelProfile, PrintedRule]]:
    return [
        (profile, rule)
        for profile, printed in zip(profiles, details_page(report), strict=True)
        for rule in printed.rules
    ]


CONFLICTS = re.compile(
    r"shared (?P<kind>load|store)s .* (?P<ways>[\d.]+) - way bank conflict across all (?P<requests>\d+) .*"
    r"results in (?P<conflicts>\d+) bank conflicts,\s+which represent (?P<share>[\d.]+)% of the overall "
    r"(?P<wavefronts>\d+) wavefronts"
)


def test_rule_on_bank_conflicts_agrees(report_name: str, recorded: ReadRecorded) -> None:
    for profile, rule in rules(report_name, recorded(report_name, source=True)):
        if rule.rule != "SharedMemoryConflicts":
            continue
        said = CONFLICTS.search(rule.text)
        assert said is not None, rule.text
        result = bank_conflicts.analyse(profile)
        assert isinstance(result, BankConflicts)
        operation = result.operation(said["kind"])
        assert operation is not None
        assert (operation.requests, operation.wavefronts, operation.conflicts) == (
            float(said["requests"]),
            float(said["wavefronts"]),
            float(said["conflicts"]),
        )
        assert f"{operation.share:.2f}" == said["share"]
        # Where STSM is used, ncu forgets it among the requests; see SharedOperation.n_way.
        if not operation.matrix_requests:
            assert f"{operation.n_way:.1f}" == said["ways"]
        else:
            assert operation.n_way is not None and operation.n_way < float(said["ways"])


EXCESS = re.compile(
    r"total of (?P<excess>\d+) excessive (?:sectors|wavefronts) "
    r"\((?P<share>\d+)% of the total (?P<total>\d+) (?:sectors|wavefronts)\)"
)


def test_rules_on_excess_agree(report_name: str, recorded: ReadRecorded) -> None:
    for profile, rule in rules(report_name, recorded(report_name, source=True)):
        said = EXCESS.search(rule.text)
        if rule.rule == "UncoalescedGlobalAccess":
            sectors = coalescing.analyse(profile)
            assert isinstance(sectors, Coalescing) and said is not None
            assert (sectors.excess, sectors.sectors) == (int(said["excess"]), int(said["total"]))
            assert sectors.excess_share is not None
            assert f"{sectors.excess_share:.0f}" == said["share"]
        if rule.rule == "UncoalescedSharedAccess":
            conflicts = bank_conflicts.analyse(profile)
            assert isinstance(conflicts, BankConflicts) and said is not None
            assert (conflicts.excess, conflicts.wavefronts) == (int(said["excess"]), int(said["total"]))


def test_rule_on_divergence_agrees(recorded: ReadRecorded) -> None:
    compared = 0
    for report in ("flaws_divergence", "flaws_atomics", "flaws_occupancy", "flaws_precision"):
        for profile, rule in rules(report, recorded(report)):
            if rule.rule != "ThreadDivergence":
                continue
            result = divergence.analyse(profile)
            assert isinstance(result, Divergence)
            said = re.search(r"average of ([\d.]+) threads being active", rule.text)
            reduced = re.search(r"reduced to ([\d.]+) threads", rule.text)
            assert said is not None
            assert f"{result.threads_per_instruction:.1f}" == said[1]
            if reduced is not None:
                assert f"{result.threads_per_instruction_predicated_on:.1f}" == reduced[1]
            compared += 1
    assert compared >= 4


TRANSFERS = {
    "l1tex__m_xbar2l1tex_read_bytes.sum": ("l2", "l1", "read"),
    "l1tex__m_l1tex2xbar_write_bytes.sum": ("l1", "l2", "write"),
    "dram__bytes_read.sum": ("device", "l2", "read"),
    "dram__bytes_write.sum": ("l2", "device", "write"),
    "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum": ("other_sm", "shared_memory", "read"),
    "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum": ("l2", "shared_memory", "tma_load"),
    "l1tex__t_bytes_pipe_lsu_mem_global_op_ldgsts_cache_access.sum": ("l1", "shared_memory", "async_copy"),
}
REQUESTS = {
    f"l1tex__t_requests_pipe_lsu_mem_{space}_op_{short}.sum": (space, "l1", operation)
    for space in ("global", "local")
    for short, operation in (("ld", "load"), ("st", "store"))
}
INSTRUCTIONS = {
    f"smsp__sass_inst_executed_op_{space}_{short}.sum": ("kernel", space, operation)
    for space in ("global", "local", "shared")
    for short, operation in (("ld", "load"), ("st", "store"))
}


def shown(value: float | None, unit: str) -> tuple[str, str]:
    assert value is not None
    scaled, scaled_unit = units.scale(value, unit)
    return units.number_text(scaled), scaled_unit


@pytest.mark.parametrize("report", ["flaws_bank_conflicts", "ladder_simple"])
def test_memory_chart_agrees(report: str, recorded: ReadRecorded) -> None:
    header, *rows = csv_rows(report, "details_all")
    charts = [memory_chart.analyse(profile) for profile in recorded(report)]
    compared = 0
    for row in rows:
        line = dict(zip(header, row, strict=False))
        # Tables that ncu prints as text stand between the rows.
        if line.get("Body Item Label") != "Memory Chart":
            continue
        chart = charts[int(line["ID"])]
        assert isinstance(chart, MemoryChart)
        name, printed = line["Metric Name"], (line["Metric Value"], line["Metric Unit"])
        base = re.sub(r"\.(pct_of_peak_sustained_elapsed|per_second)$", "", name)
        if base in TRANSFERS:
            link = chart.link(*TRANSFERS[base])
            assert link is not None
            quantity, unit = link.bytes, "byte"
        elif base in REQUESTS:
            link = chart.link(*REQUESTS[base])
            assert link is not None
            quantity, unit = link.requests, ""
        elif base in INSTRUCTIONS:
            link = chart.link(*INSTRUCTIONS[base])
            assert link is not None
            quantity, unit = link.instructions, "inst"
        else:
            continue
        if name.endswith(".per_second"):
            quantity, unit = link.bytes_per_second, "byte/s"
        elif name != base:
            quantity, unit = link.percent_of_peak, "%"
        assert shown(quantity, unit) == printed, name
        compared += 1
    assert compared >= 30 * len(charts)
