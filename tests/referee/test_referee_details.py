"""What ncu prints on its details page is what the analyses say, unit and last digit included."""

from __future__ import annotations

from collections.abc import Callable
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
Field = tuple[type[Any], Callable[..., Value], str]
"""Result type, how to get the value from it, base unit."""

LIGHT = "GPU Speed Of Light Throughput"
COMPUTE = "Compute Workload Analysis"
SCHEDULER = "Scheduler Statistics"
STATES = "Warp State Statistics"
INSTRUCTIONS = "Instruction Statistics"
LAUNCH = "Launch Statistics"

FIELDS: dict[tuple[str, str], Field] = {
    (LIGHT, "DRAM Frequency"): (SpeedOfLight, lambda r: r.dram_clock_hz, "hz"),
    (LIGHT, "SM Frequency"): (SpeedOfLight, lambda r: r.sm_clock_hz, "hz"),
    (LIGHT, "Elapsed Cycles"): (SpeedOfLight, lambda r: r.elapsed_cycles, "cycle"),
    (LIGHT, "Memory Throughput"): (SpeedOfLight, lambda r: r.memory_percent, "%"),
    (LIGHT, "DRAM Throughput"): (SpeedOfLight, lambda r: r.dram_percent, "%"),
    (LIGHT, "Duration"): (SpeedOfLight, lambda r: r.duration_ns, "ns"),
    (LIGHT, "L1/TEX Cache Throughput"): (SpeedOfLight, lambda r: r.l1_percent, "%"),
    (LIGHT, "L2 Cache Throughput"): (SpeedOfLight, lambda r: r.l2_percent, "%"),
    (LIGHT, "SM Active Cycles"): (SpeedOfLight, lambda r: r.sm_active_cycles, "cycle"),
    (LIGHT, "Compute (SM) Throughput"): (SpeedOfLight, lambda r: r.sm_percent, "%"),
    (COMPUTE, "Executed Ipc Active"): (Scheduler, lambda r: r.instructions_per_cycle_active, "inst/cycle"),
    (COMPUTE, "Executed Ipc Elapsed"): (Scheduler, lambda r: r.instructions_per_cycle_elapsed, "inst/cycle"),
    (COMPUTE, "Issue Slots Busy"): (Scheduler, lambda r: r.issue_slots_busy_percent, "%"),
    (COMPUTE, "Issued Ipc Active"): (
        Scheduler,
        lambda r: r.issued_instructions_per_cycle_active,
        "inst/cycle",
    ),
    (COMPUTE, "SM Busy"): (Scheduler, lambda r: r.sm_busy_percent, "%"),
    (SCHEDULER, "One or More Eligible"): (Scheduler, lambda r: r.one_or_more_eligible_percent, "%"),
    (SCHEDULER, "Issued Warp Per Scheduler"): (Scheduler, lambda r: r.issued_per_cycle, ""),
    (SCHEDULER, "No Eligible"): (Scheduler, lambda r: r.no_eligible_percent, "%"),
    (SCHEDULER, "Active Warps Per Scheduler"): (Scheduler, lambda r: r.active_warps, "warp"),
    (SCHEDULER, "Eligible Warps Per Scheduler"): (Scheduler, lambda r: r.eligible_warps, "warp"),
    (STATES, "Warp Cycles Per Issued Instruction"): (
        WarpStates,
        lambda r: r.cycles_per_issued_instruction,
        "cycle",
    ),
    (STATES, "Warp Cycles Per Executed Instruction"): (
        WarpStates,
        lambda r: r.cycles_per_executed_instruction,
        "cycle",
    ),
    (STATES, "Avg. Active Threads Per Warp"): (WarpStates, lambda r: r.threads_per_instruction, ""),
    (STATES, "Avg. Not Predicated Off Threads Per Warp"): (
        WarpStates,
        lambda r: r.threads_per_instruction_not_predicated,
        "",
    ),
    (INSTRUCTIONS, "Avg. Executed Instructions Per Scheduler"): (
        InstructionMix,
        lambda r: r.executed_per_scheduler,
        "inst",
    ),
    (INSTRUCTIONS, "Executed Instructions"): (InstructionMix, lambda r: r.executed_counter, "inst"),
    (INSTRUCTIONS, "Avg. Issued Instructions Per Scheduler"): (
        InstructionMix,
        lambda r: r.issued_per_scheduler,
        "inst",
    ),
    (INSTRUCTIONS, "Issued Instructions"): (InstructionMix, lambda r: r.issued, "inst"),
    (LAUNCH, "Block Size"): (Launch, lambda r: r.threads_per_block, ""),
    (LAUNCH, "Cluster Scheduling Policy"): (Launch, lambda r: r.cluster_scheduling_policy, ""),
    (LAUNCH, "Cluster Size"): (Launch, lambda r: r.cluster_size, ""),
    (LAUNCH, "Function Cache Configuration"): (Launch, lambda r: r.cache_config, ""),
    (LAUNCH, "Grid Size"): (Launch, lambda r: r.blocks, ""),
    (LAUNCH, "Registers Per Thread"): (Launch, lambda r: r.registers_per_thread, "register/thread"),
    (LAUNCH, "Shared Memory Configuration Size"): (Launch, lambda r: r.shared_memory_config, "byte"),
    (LAUNCH, "Driver Shared Memory Per Block"): (Launch, lambda r: r.driver_shared_memory, "byte/block"),
    (LAUNCH, "Dynamic Shared Memory Per Block"): (Launch, lambda r: r.dynamic_shared_memory, "byte/block"),
    (LAUNCH, "Static Shared Memory Per Block"): (Launch, lambda r: r.static_shared_memory, "byte/block"),
    (LAUNCH, "# SMs"): (Launch, lambda r: r.sm_count, "SM"),
    (LAUNCH, "Stack Size"): (Launch, lambda r: r.stack_bytes, ""),
    (LAUNCH, "Threads"): (Launch, lambda r: r.threads, "thread"),
    (LAUNCH, "# TPCs"): (Launch, lambda r: r.tpc_count, ""),
    (LAUNCH, "Enabled TPC IDs"): (Launch, lambda r: r.enabled_tpcs, ""),
    (LAUNCH, "Uses Green Context"): (Launch, lambda r: r.green_context, ""),
    (LAUNCH, "Waves Per SM"): (Launch, lambda r: r.waves_per_sm, ""),
}
"""Every line of the sections that these analyses cover."""


def _printed(value: Value, unit: str) -> tuple[str, str]:
    if value is None:
        return "", unit
    if isinstance(value, str):
        return value, unit
    scaled, scaled_unit = units.scale(float(value), unit)
    return units.number_text(scaled), scaled_unit


def _ours(analysis: KernelAnalysis, field: Field) -> tuple[str, str]:
    kind, get, unit = field
    result = analysis.get(kind)
    assert result, f"{kind.__name__} is {result}"
    return _printed(get(result), unit)


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
                ours = _ours(analysis, field)
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
