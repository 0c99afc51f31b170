"""The tables below the headers of ncu's details page (``--print-details all``): breakdowns, pipes, states, roofs."""

from __future__ import annotations

import ncu_units as units
import pytest
from ncu_exports import LaunchDetails, details_page
from recorded_data import ReadRecorded

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.sections import roofline
from gemmprof.analysis.sections.instruction_mix import InstructionMix, PipeUse
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates

REPORTS = {"ladder_simple": 3, "flaws_bank_conflicts": 7}
"""Reports with an export of all tables, and their launches."""

Launches = list[tuple[LaunchDetails, KernelAnalysis]]


@pytest.fixture(params=REPORTS)
def launches(request: pytest.FixtureRequest, recorded: ReadRecorded) -> Launches:
    profiles = recorded(request.param)
    assert len(profiles) == REPORTS[request.param]
    analyses = [kernel_analysis.analyse(profile) for profile in profiles]
    return list(zip(details_page(request.param, "details_all"), analyses, strict=True))


def table(launch: LaunchDetails, name: str) -> list[tuple[str, str]]:
    """Label and text of every row of one table, in ncu's order."""
    return [(detail.metric, detail.value) for detail in launch.details if detail.table == name]


def amounts(rows: list[tuple[str, str]]) -> list[float]:
    """The numbers in their order; 0 and 0.00 stand in any order among each other."""
    return [float(text.replace(",", "")) for _, text in rows]


def test_breakdowns(launches: Launches) -> None:
    for launch, analysis in launches:
        light = analysis.get(SpeedOfLight)
        assert light
        for name, entries in (
            ("Compute Throughput Breakdown", light.sm_breakdown),
            ("Memory Throughput Breakdown", light.memory_breakdown),
        ):
            printed = table(launch, name)
            assert len(printed) > 20
            ours = [(entry.label, units.number_text(entry.percent or 0.0)) for entry in entries]
            assert sorted(ours) == sorted(printed)
            assert amounts(ours) == amounts(printed)


PIPE_TABLES = {
    "Pipe Utilization (% of elapsed cycles)": "cycles_of_elapsed",
    "Pipe Utilization (% of active cycles)": "cycles_of_active",
    "Pipe Utilization (% of peak instructions executed over elapsed cycles)": "instructions_of_elapsed",
    "Pipe Utilization (% of peak instructions executed over active cycles)": "instructions_of_active",
}
UNTABLED = {"CBU (predicated on)", "FMA (heavy)", "IPA", "Tensor (not DP)"}
"""Pipes that ncu has in the throughput breakdown only."""


@pytest.mark.parametrize("name", PIPE_TABLES)
def test_pipe_utilisation(launches: Launches, name: str) -> None:
    for launch, analysis in launches:
        mix = analysis.get(InstructionMix)
        assert mix

        def percent(pipe: PipeUse) -> float | None:
            value: float | None = getattr(pipe, PIPE_TABLES[name])
            return value

        ours = {
            pipe.label: units.number_text(percent(pipe) or 0.0)
            for pipe in mix.pipes
            if percent(pipe) is not None
        }
        printed = dict(table(launch, name))
        assert len(printed) >= 9
        assert {label: ours[label] for label in printed} == printed
        assert set(ours) - set(printed) <= UNTABLED


def test_warp_states(launches: Launches) -> None:
    for launch, analysis in launches:
        states = analysis.get(WarpStates)
        assert states
        ours = [(s.reason.title, units.number_text(s.cycles_per_issue or 0.0)) for s in states.states]
        printed = table(launch, "Warp State (All Cycles)")
        assert len(printed) == 19
        assert sorted(ours) == sorted(printed)
        assert amounts(ours) == amounts(printed)


BANDWIDTHS = (
    (roofline.DRAM, "DRAM Achieved Value", "DRAM Bandwidth", "byte/s"),
    (roofline.L2, "L2 Achieved Value", "L2 Cache Bandwidth", "byte"),
    (roofline.L1, "L1 Achieved Value (Global/Local)", "L1 Cache Bandwidth (Global/Local)", ""),
)
"""Level, chart, line and the unit that ncu gives it."""


def test_traffic_of_the_roofline_charts(launches: Launches) -> None:
    for launch, analysis in launches:
        roofs = analysis.get(Roofline)
        assert roofs
        achieved = {roof.level: roof.achieved for roof in roofs.memory_roofs}
        for level, chart, line, unit in BANDWIDTHS:
            scaled, scaled_unit = units.scale(achieved[level] or 0.0, unit)
            printed = {
                (detail.value, detail.unit)
                for detail in launch.details
                if detail.table == chart and detail.metric == line and "(Single Precision)" in detail.section
            }
            assert printed == {(units.number_text(scaled), scaled_unit)}


def test_peaks_of_the_roofline_charts(launches: Launches) -> None:
    """The printed factors of each peak multiply to ours, as far as their digits go."""
    for launch, analysis in launches:
        roofs = analysis.get(Roofline)
        assert roofs
        compute = {roof.key: roof.peak for roof in roofs.compute_roofs}
        memory = {roof.level: roof.peak for roof in roofs.memory_roofs}
        rows = {
            (detail.section, detail.table, detail.metric): float(detail.value.replace(",", ""))
            * {"Kbyte/cycle": 1e3, "Kbyte": 1e3, "Ghz": 1e9}.get(detail.unit, 1.0)
            for detail in launch.details
            if detail.table.endswith("Roofline") or detail.table == "L1 Roofline (Global/Local)"
        }
        for precision, key, letter in (
            ("Single", roofline.FP32, "F"),
            ("Double", roofline.FP64, "D"),
            ("Half", roofline.FP16, "H"),
        ):
            section = f"GPU Speed Of Light Hierarchical Roofline Chart ({precision} Precision)"
            operations = rows[section, "DRAM Roofline", f"Theoretical Predicated-On {letter}FMA Operations"]
            peak = operations * rows[section, "DRAM Roofline", "SM Frequency"]
            assert compute[key] == pytest.approx(peak, rel=0.003)
            for level, chart, line, clock in (
                (roofline.DRAM, "DRAM Roofline", "Theoretical DRAM Bytes Accessible", "DRAM Frequency"),
                (roofline.L2, "L2 Roofline", "Theoretical L2 Cache Bytes Accessible", "L2 Cache Frequency"),
                (
                    roofline.L1,
                    "L1 Roofline (Global/Local)",
                    "Theoretical L1/TEX Cache Bytes Accessible",
                    "L1/TEX Cache Frequency",
                ),
            ):
                assert memory[level] == pytest.approx(
                    rows[section, chart, line] * rows[section, chart, clock], rel=0.003
                )


def test_instruction_tables(launches: Launches) -> None:
    """ncu prints the total and, largest first, the count of every category and opcode."""
    for launch, analysis in launches:
        mix = analysis.get(InstructionMix)
        assert mix
        for name, counts in (
            ("Executed Instruction Categories", [count for _, count in mix.categories]),
            ("Executed Instruction Mix", [item.executed for item in mix.opcodes]),
        ):
            [(_, printed)] = table(launch, name)
            assert printed == f"{mix.executed:,} ({'; '.join(f'{count:,}' for count in counts)})"
