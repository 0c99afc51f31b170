"""What ncu prints on its details page is what the analyses say, unit and last digit included."""

from __future__ import annotations

from typing import Any

import ncu_units as units
from ncu_exports import details_page
from recorded_data import ReadRecorded

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.launch_statistics import Launch
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates

Value = float | str | None

SECTIONS: dict[tuple[str, type[Any]], dict[str, tuple[str, str]]] = {
    ("GPU Speed Of Light Throughput", SpeedOfLight): {
        "DRAM Frequency": ("dram_clock_hz", "hz"),
        "SM Frequency": ("sm_clock_hz", "hz"),
        "Elapsed Cycles": ("elapsed_cycles", "cycle"),
        "Memory Throughput": ("memory_percent", "%"),
        "DRAM Throughput": ("dram_percent", "%"),
        "Duration": ("duration_ns", "ns"),
        "L1/TEX Cache Throughput": ("l1_percent", "%"),
        "L2 Cache Throughput": ("l2_percent", "%"),
        "SM Active Cycles": ("sm_active_cycles", "cycle"),
        "Compute (SM) Throughput": ("sm_percent", "%"),
    },
    ("Compute Workload Analysis", Scheduler): {
        "Executed Ipc Active": ("instructions_per_cycle_active", "inst/cycle"),
        "Executed Ipc Elapsed": ("instructions_per_cycle_elapsed", "inst/cycle"),
        "Issue Slots Busy": ("issue_slots_busy_percent", "%"),
        "Issued Ipc Active": ("issued_instructions_per_cycle_active", "inst/cycle"),
        "SM Busy": ("sm_busy_percent", "%"),
    },
    ("Scheduler Statistics", Scheduler): {
        "One or More Eligible": ("one_or_more_eligible_percent", "%"),
        "Issued Warp Per Scheduler": ("issued_per_cycle", ""),
        "No Eligible": ("no_eligible_percent", "%"),
        "Active Warps Per Scheduler": ("active_warps", "warp"),
        "Eligible Warps Per Scheduler": ("eligible_warps", "warp"),
    },
    ("Warp State Statistics", WarpStates): {
        "Warp Cycles Per Issued Instruction": ("cycles_per_issued_instruction", "cycle"),
        "Warp Cycles Per Executed Instruction": ("cycles_per_executed_instruction", "cycle"),
        "Avg. Active Threads Per Warp": ("threads_per_instruction", ""),
        "Avg. Not Predicated Off Threads Per Warp": ("threads_per_instruction_not_predicated", ""),
    },
    ("Instruction Statistics", InstructionMix): {
        "Avg. Executed Instructions Per Scheduler": ("executed_per_scheduler", "inst"),
        "Executed Instructions": ("executed_counter", "inst"),
        "Avg. Issued Instructions Per Scheduler": ("issued_per_scheduler", "inst"),
        "Issued Instructions": ("issued", "inst"),
    },
    ("Launch Statistics", Launch): {
        "Block Size": ("threads_per_block", ""),
        "Cluster Scheduling Policy": ("cluster_scheduling_policy", ""),
        "Cluster Size": ("cluster_size", ""),
        "Function Cache Configuration": ("cache_config", ""),
        "Grid Size": ("blocks", ""),
        "Registers Per Thread": ("registers_per_thread", "register/thread"),
        "Shared Memory Configuration Size": ("shared_memory_config", "byte"),
        "Driver Shared Memory Per Block": ("driver_shared_memory", "byte/block"),
        "Dynamic Shared Memory Per Block": ("dynamic_shared_memory", "byte/block"),
        "Static Shared Memory Per Block": ("static_shared_memory", "byte/block"),
        "# SMs": ("sm_count", "SM"),
        "Stack Size": ("stack_bytes", ""),
        "Threads": ("threads", "thread"),
        "# TPCs": ("tpc_count", ""),
        "Enabled TPC IDs": ("enabled_tpcs", ""),
        "Uses Green Context": ("green_context", ""),
        "Waves Per SM": ("waves_per_sm", ""),
    },
}
"""Every line of the sections that these analyses cover: the result's field with its value, base unit."""

FIELDS = {
    (section, line): (kind, *field)
    for (section, kind), fields in SECTIONS.items()
    for line, field in fields.items()
}


def _printed(value: Value, unit: str) -> tuple[str, str]:
    if value is None:
        return "", unit
    if isinstance(value, str):
        return value, unit
    scaled, scaled_unit = units.scale(float(value), unit)
    return units.number_text(scaled), scaled_unit


def _ours(analysis: KernelAnalysis, kind: type[Any], name: str, unit: str) -> tuple[str, str]:
    result = analysis.get(kind)
    assert result, f"{kind.__name__} is {result}"
    return _printed(getattr(result, name), unit)


def test_details_page(recorded: ReadRecorded, report_name: str) -> None:
    launches = details_page(report_name)
    profiles = recorded(report_name)
    assert len(launches) == len(profiles)
    compared = 0
    for launch, profile in zip(launches, profiles, strict=True):
        analysis = kernel_analysis.analyse(profile)
        for detail in launch.details:
            field = FIELDS.get((detail.section, detail.metric))
            if field is not None:
                ours = _ours(analysis, *field)
                assert ours == (detail.value, detail.unit), f"{profile.name}: {detail}"
                compared += 1
    sections = {detail.section for launch in launches for detail in launch.details}
    assert compared > 0 or not sections & {section for section, _ in FIELDS}


def test_no_line_of_our_sections_is_left_out() -> None:
    sections = {section for section, _ in FIELDS}
    printed: set[tuple[str, str]] = {
        (detail.section, detail.metric)
        for launch in details_page("flaws_tensor")
        for detail in launch.details
    }
    assert {line for line in printed if line[0] in sections} == set(FIELDS)


def test_bottleneck_is_the_one_that_ncu_names(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        titles = [rule.title for rule in profile.rules if rule.rule == "SOLBottleneck"]
        light = kernel_analysis.analyse(profile).get(SpeedOfLight)
        if titles:
            assert light and light.bottleneck and light.bottleneck.title == titles[0]


def test_every_printed_line_is_some_metric_in_our_format(recorded: ReadRecorded, report_name: str) -> None:
    """Sections of other analyses included: scaling and rounding are ncu's for every unit that occurs."""
    for launch, profile in zip(details_page(report_name), recorded(report_name), strict=True):
        formatted = {_printed(value, profile.units[name]) for name, value in profile.metrics.items()}
        for detail in launch.details:
            assert (detail.value, detail.unit) in formatted, f"{profile.name}: {detail}"
