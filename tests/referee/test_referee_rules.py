"""Rule results as ncu prints them, and the numbers that its sentences quote."""

from __future__ import annotations

import re

import pytest
from ncu_exports import LaunchDetails, details_page
from recorded_data import ReadRecorded

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.sections import rules
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.roofline import FP32, FP64, Roofline
from gemmprof.analysis.sections.rules import Advice
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.analysis.sections.warp_states import WarpStates

PRINTED_SEVERITY = {"optimization": "OPT", "ok": "INF", "warning": "WRN", "error": "ERR"}


def _sentences(launch: LaunchDetails, rule: str) -> list[str]:
    return [result.text for result in launch.rules if result.rule == rule]


def test_advice_is_what_ncu_prints(recorded: ReadRecorded, report_name: str) -> None:
    for launch, profile in zip(details_page(report_name), recorded(report_name), strict=True):
        advice = kernel_analysis.analyse(profile).get(Advice)
        ours = set()
        for item in advice.items if advice else ():
            speedup = "" if item.estimated_speedup is None else f"{item.estimated_speedup:.4g}"
            severity = PRINTED_SEVERITY[item.severity]
            ours.add((item.rule, severity, rules.plain_text(item.message), speedup, item.speedup_scope or ""))
        printed = {(r.rule, r.kind, r.text, r.speedup, r.speedup_scope) for r in launch.rules}
        assert ours == printed, profile.name


def test_advice_is_sorted_by_estimate(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        advice = kernel_analysis.analyse(profile).get(Advice)
        if advice:
            estimates = [
                item.estimated_speedup for item in advice.items if item.estimated_speedup is not None
            ]
            assert estimates == sorted(estimates, reverse=True)
            assert all(item.estimated_speedup is None for item in advice.items[len(estimates) :])


FULL_REPORTS = ["flaws_bank_conflicts", "flaws_precision", "flaws_tensor", "flaws_atomics", "ladder_simple"]


@pytest.mark.parametrize("name", FULL_REPORTS)
def test_roofline_percentages_that_ncu_quotes(recorded: ReadRecorded, name: str) -> None:
    compared = 0
    for launch, profile in zip(details_page(name), recorded(name), strict=True):
        roofs = kernel_analysis.analyse(profile).get(Roofline)
        assert roofs
        percents = {roof.key: roof.percent for roof in roofs.compute_roofs}
        peaks = {roof.key: roof.peak for roof in roofs.compute_roofs}
        for sentence in _sentences(launch, "SOLFPRoofline"):
            ratio = re.search(r"\(FP64\) performance on this device is (\d+):1", sentence)
            assert ratio is not None and round(peaks[FP32] / peaks[FP64]) == int(ratio[1])
            quoted = re.findall(
                r"achieved\s+(close to )?(\d+)% .*? and\s+(close to )?(\d+)% of its FP64", sentence
            )
            [(_, single, _, double)] = quoted
            assert (f"{percents[FP32]:.0f}", f"{percents[FP64]:.0f}") == (single, double), profile.name
            compared += 1
    assert compared == len(recorded(name))


@pytest.mark.parametrize("name", FULL_REPORTS)
def test_stalls_that_ncu_quotes(recorded: ReadRecorded, name: str) -> None:
    compared = 0
    for launch, profile in zip(details_page(name), recorded(name), strict=True):
        states = kernel_analysis.analyse(profile).get(WarpStates)
        assert states
        shown = {(f"{s.cycles_per_issue:.1f}", f"{100 * s.share:.1f}") for s in states.states}
        for sentence in _sentences(launch, "CPIStall"):
            cycles = re.search(r"spends ([\d.]+) cycles being stalled", sentence)
            whole = re.search(r"about ([\d.]+)% of the total average of ([\d.]+) cycles", sentence)
            if cycles is None or whole is None:
                continue
            assert (cycles[1], whole[1]) in shown, profile.name
            assert f"{states.cycles_per_issued_instruction:.1f}" == whole[2]
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", FULL_REPORTS)
def test_issue_slots_that_ncu_quotes(recorded: ReadRecorded, name: str) -> None:
    compared = 0
    for launch, profile in zip(details_page(name), recorded(name), strict=True):
        scheduler = kernel_analysis.analyse(profile).get(Scheduler)
        assert scheduler
        for sentence in _sentences(launch, "IssueSlotUtilization"):
            quoted = re.search(
                r"an instruction every ([\d.]+) cycles.* maximum of (\d+) warps .* average of ([\d.]+) active warps"
                r".* average of ([\d.]+) warps were eligible",
                sentence,
            )
            assert quoted is not None
            assert quoted.groups() == (
                f"{scheduler.cycles_per_issue:.1f}",
                f"{scheduler.max_warps:.0f}",
                f"{scheduler.active_warps:.2f}",
                f"{scheduler.eligible_warps:.2f}",
            ), profile.name
            compared += 1
    assert compared > 0


def test_busiest_pipe_that_ncu_quotes(recorded: ReadRecorded, report_name: str) -> None:
    for launch, profile in zip(details_page(report_name), recorded(report_name), strict=True):
        mix = kernel_analysis.analyse(profile).get(InstructionMix)
        for sentence in _sentences(launch, "HighPipeUtilization"):
            quoted = re.match(
                r"(\w+) is the highest-utilized pipeline \(([\d.]+)%\) based on elapsed", sentence
            )
            if quoted is None or not mix:
                continue
            [pipe] = [pipe for pipe in mix.pipes if pipe.pipe == quoted[1].lower()]
            assert f"{pipe.cycles_of_elapsed:.1f}" == quoted[2], profile.name


def test_unfused_arithmetic_that_ncu_quotes(recorded: ReadRecorded, report_name: str) -> None:
    for launch, profile in zip(details_page(report_name), recorded(report_name), strict=True):
        mix = kernel_analysis.analyse(profile).get(InstructionMix)
        for sentence in _sentences(launch, "FPInstructions"):
            quoted = re.search(r"executes (\d+) fused and (\d+) non-fused FP32", sentence)
            assert quoted is not None and mix
            assert (mix.count("FFMA"), mix.count("FADD", "FMUL")) == tuple(map(int, quoted.groups()))
