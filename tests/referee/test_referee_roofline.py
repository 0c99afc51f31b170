"""The roofs against ncu's own percentages: achieved over peak is what ncu reports for the same counter."""

from __future__ import annotations

import pytest
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.sections import roofline
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.model import KernelProfile

PERCENT = "pct_of_peak_sustained_elapsed"
OF_PEAK = {
    roofline.DRAM: metrics.DRAM_THROUGHPUT,
    roofline.L2: f"lts__lts2xbar_cycles_active.avg.{PERCENT}",
    roofline.L1: f"l1tex__lsu_writeback_active_mem_lgds.sum.{PERCENT}",
}
"""What ncu itself collected of the same traffic, in per cent of the peak."""

FULL = {
    "flaws_async_copy": 4,
    "flaws_atomics": 4,
    "flaws_bank_conflicts": 7,
    "flaws_cluster": 1,
    "flaws_divergence": 3,
    "flaws_global_access": 5,
    "flaws_occupancy": 4,
    "flaws_other_memory": 3,
    "flaws_precision": 5,
    "flaws_spills": 2,
    "flaws_tensor": 3,
    "ladder_simple": 3,
}
"""Recorded reports of ``--set full`` and their launches."""


def _roofs(profile: KernelProfile) -> Roofline:
    roofs = kernel_analysis.analyse(profile).get(Roofline)
    assert isinstance(roofs, Roofline)
    return roofs


@pytest.mark.parametrize("name", FULL)
def test_memory_roofs(recorded: ReadRecorded, name: str) -> None:
    profiles = recorded(name)
    assert len(profiles) == FULL[name]
    for profile in profiles:
        levels = {roof.level: roof for roof in _roofs(profile).memory_roofs}
        assert set(levels) == {roofline.DRAM, roofline.L2, roofline.L1, roofline.SHARED}
        for level, metric in OF_PEAK.items():
            assert levels[level].percent == pytest.approx(profile.number(metric), rel=1e-12), level


@pytest.mark.parametrize("name", FULL)
def test_bytes_of_the_caches_are_ncus(recorded: ReadRecorded, name: str) -> None:
    """The per cent of a peak does not tell how many bytes a cycle moves; ncu's charts derive them, too."""
    for profile in recorded(name):
        levels = {roof.level: roof for roof in _roofs(profile).memory_roofs}
        for level, derived, clock in (
            (roofline.L2, "derived__lts__lts2xbar_bytes.sum", metrics.L2_CLOCK),
            (roofline.L1, "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum", metrics.L1_CLOCK),
        ):
            peak, hertz = profile.number(f"{derived}.peak_sustained"), profile.number(clock)
            assert peak is not None and hertz is not None
            assert levels[level].achieved == pytest.approx(profile.number(f"{derived}.per_second"), rel=1e-12)
            assert levels[level].peak == pytest.approx(peak * hertz, rel=1e-12)


@pytest.mark.parametrize("name", FULL)
def test_shared_memory_roof(recorded: ReadRecorded, name: str) -> None:
    """Our roof (ncu draws none) has the peak that ncu divides the shared-memory wavefronts by.

    Nothing moves where no kind of access occurred, though ncu's counter of all sees a wavefront or two a warp.
    """
    kinds = ("load", "store", "atomic", "async_copy")
    for profile in recorded(name):
        [shared] = [roof for roof in _roofs(profile).memory_roofs if roof.level == roofline.SHARED]
        touched = any(profile.number(metrics.SHARED_WAVEFRONTS_OF[kind]) for kind in kinds)
        printed = profile.number(metrics.SHARED_PEAK_PERCENT) if touched else 0.0
        assert shared.percent == pytest.approx(printed, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", FULL)
def test_scalar_work_is_what_the_opcodes_add_up_to(recorded: ReadRecorded, name: str) -> None:
    for profile in recorded(name):
        analysis = kernel_analysis.analyse(profile)
        mix, light = analysis.get(InstructionMix), analysis.get(SpeedOfLight)
        assert mix and light and light.duration_ns
        threads = {item.opcode: item.thread_executed or 0 for item in mix.opcodes}
        roofs = {roof.key: roof for roof in _roofs(profile).compute_roofs}
        for key, letter in ((roofline.FP32, "F"), (roofline.FP64, "D")):
            add, multiply, fused = (threads.get(f"{letter}{name}", 0) for name in ("ADD", "MUL", "FMA"))
            rate = (add + multiply + 2 * fused) / (light.duration_ns * 1e-9)
            assert roofs[key].achieved == pytest.approx(rate, rel=1e-9)


def test_tensor_work_is_what_the_instructions_add_up_to(recorded: ReadRecorded) -> None:
    """A multiply-add counts as two operations on the tensor paths."""
    operations = {
        "HMMA.16816.F32": 2 * 16 * 8 * 16,
        "HMMA.1688.F32.TF32": 2 * 16 * 8 * 8,
        "DMMA.8x8x4": 2 * 8 * 8 * 4,
    }
    seen: set[str] = set()
    for profile in recorded("flaws_tensor"):
        analysis = kernel_analysis.analyse(profile)
        mix, light = analysis.get(InstructionMix), analysis.get(SpeedOfLight)
        assert mix and light and light.duration_ns
        [roof] = [
            roof for roof in _roofs(profile).compute_roofs if roof.key.startswith(roofline.TENSOR_PREFIX)
        ]
        executed = {item.opcode: item.executed for item in mix.modifiers if item.opcode in operations}
        assert len(executed) == 1
        seen |= executed.keys()
        work = sum(operations[opcode] * count for opcode, count in executed.items())
        assert roof.achieved == pytest.approx(work / (light.duration_ns * 1e-9), rel=1e-9)
        path = roof.key.removeprefix(roofline.TENSOR_PREFIX)
        assert roof.percent == pytest.approx(
            profile.number(f"sm__ops_path_tensor_{path}.sum.{PERCENT}"), rel=1e-12
        )
    assert seen == set(operations)


@pytest.mark.parametrize("name", FULL)
def test_throughput_is_the_largest_of_its_breakdown(recorded: ReadRecorded, name: str) -> None:
    for profile in recorded(name):
        light = kernel_analysis.analyse(profile).get(SpeedOfLight)
        assert light
        for whole, parts in (
            (light.sm_percent, light.sm_breakdown),
            (light.memory_percent, light.memory_breakdown),
        ):
            assert len(parts) > 10
            assert parts[0].percent == whole
            assert all(part.percent is not None and part.unit for part in parts)
