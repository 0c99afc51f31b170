"""The verdict names the flaw that was planted, with the numbers of the analyses."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.explanation.trust import WAITS, mostly_launching
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates


def analysed(recorded: ReadRecorded, report: str, function: str, launch: int = 0) -> KernelAnalysis:
    matches = [profile for profile in recorded(report, source=True) if profile.function_name == function]
    return kernel_analysis.analyse(matches[launch])


@pytest.mark.parametrize(
    ("report", "function", "launch", "limited_by", "sentence"),
    [
        (
            "ladder_simple",
            "gemm_naive",
            0,
            "L1 cache",
            "First to change: uncoalesced access (gemm_ladder.cu:",
        ),
        ("ladder_simple", "gemm_coalesced", 0, "L1 cache", "LG Throttle"),
        (
            "ladder_simple",
            "gemm_shared",
            0,
            "shared memory",
            "of FP32, 82.6 % of what the memory roof allows",
        ),
        (
            "flaws_bank_conflicts",
            "conflict_load",
            3,
            "shared memory",
            "First to change: shared-memory bank conflicts (bank_conflicts.cu:",
        ),
        ("flaws_bank_conflicts", "conflict_store", 0, "launching", "Long Scoreboard"),
        (
            "flaws_global_access",
            "strided_load",
            0,
            "tag lookups of L2",
            "First to change: uncoalesced access (global_access.cu:17)",
        ),
        ("flaws_spills", "spilled_registers", 0, "DRAM", "First to change: local memory (spills.cu:14)"),
        (
            "flaws_divergence",
            "single_lane",
            0,
            "launching",
            "First to change: threads without work (divergence.cu:",
        ),
        ("flaws_tensor", "mma_tf32", 0, "instruction latency", "of Tensor HMMA TF32 → FP32"),
        ("flaws_atomics", "global_histogram", 0, "atomic units of L2", "Long Scoreboard"),
        ("launches_same_kernel", "saxpy", 2, "memory latency", "of the samples a warp waits"),
    ],
)
def test_planted_flaw(
    recorded: ReadRecorded, report: str, function: str, launch: int, limited_by: str, sentence: str
) -> None:
    verdict = analysed(recorded, report, function, launch).verdict
    assert verdict.limited_by == limited_by
    assert sentence in verdict.paragraph


def test_numbers_are_those_of_the_analyses(recorded: ReadRecorded) -> None:
    analysis = analysed(recorded, "ladder_simple", "gemm_shared")
    light, states = analysis.get(SpeedOfLight), analysis.get(WarpStates)
    assert light and states and states.main_stall
    assert f"Compute reaches {light.sm_percent:.1f} % of its peak" in analysis.verdict.closeness
    assert f"{100 * states.main_stall.share:.0f} % of its time" in analysis.verdict.waiting
    assert states.main_stall.reason.key == "mio_throttle"
    cycles, latency = states.main_stall.cycles_per_issue, states.cycles_per_issued_instruction
    assert states.main_stall.share == pytest.approx(cycles / latency)


def test_every_verdict_reads_as_sentences(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        verdict = kernel_analysis.analyse(profile).verdict
        assert len(verdict.limited_by.split()) <= 5
        paragraph = verdict.paragraph
        assert paragraph.endswith(".") and "  " not in paragraph and "None" not in paragraph
        assert not re.search(r"\bnan\b|\binf\b", paragraph)


def test_fp16_that_only_moves_constants_is_not_called_work(recorded: ReadRecorded) -> None:
    assert "FP16" not in analysed(recorded, "flaws_spills", "local_array").verdict.paragraph
    assert "of FP16" in analysed(recorded, "flaws_precision", "half2_fma").verdict.paragraph


def test_what_is_missing_is_left_out(recorded: ReadRecorded) -> None:
    profile = recorded("ladder_simple")[2]
    kept = {name: value for name, value in profile.metrics.items() if not name.startswith("breakdown:")}
    verdict = kernel_analysis.analyse(replace(profile, metrics=kept)).verdict
    assert verdict.limited_by == "shared memory"
    assert "busiest" not in verdict.closeness
    only_stalls = {name: value for name, value in profile.metrics.items() if "issue_stalled" in name}
    verdict = kernel_analysis.analyse(replace(profile, metrics=only_stalls, instances={})).verdict
    assert verdict.limited_by == "unknown", "as the page says: too little was collected"
    assert verdict.waiting
    assert metrics.CYCLES_PER_ISSUE not in only_stalls


def test_the_verdict_says_what_the_explanation_says(recorded: ReadRecorded, report_name: str) -> None:
    """It called launches of 3 µs without any finding limited by a small grid, and others by what ncu's rule sees."""
    for profile in recorded(report_name):
        analysis = kernel_analysis.analyse(profile)
        found, limit = analysis.explanation, analysis.verdict.limited_by
        first = next((loss[0].cause for loss in found.losses), "")
        assert (limit == "small grid") == (first == "small_grid"), profile.name
        if first != "small_grid":
            assert (limit == "launching") == mostly_launching(found)
            known = [one.resource for one in found.time[:1]]
            assert (limit == "unknown") == (not known)
            plain = known and known[0] not in (WAITS, metrics.L1_DATA_STAGE)
            assert not plain or limit in (known[0], "launching"), profile.name
