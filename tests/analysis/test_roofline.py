"""Roofline: the formulas, the differences between architectures, the traps of the tensor counters."""

from __future__ import annotations

import dataclasses

import profiles
import pytest
from asked import analysed
from recorded_data import DATA

from gemmprof import metrics
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections import roofline
from gemmprof.analysis.sections.roofline import Roofline, tensor_label
from gemmprof.model import (
    Device,
    Instruction,
    KernelProfile,
    LaunchStatistics,
    NotCollected,
    Source,
)
from gemmprof.runs.directory import recorded_run_directory

OF_LADDERS = ("profile-03.ncu-rep.xz", "profile-05.ncu-rep.xz")
"""Stages of the 16-bit and the FP8 ladder."""

GHZ = 1e9


def launch(capability: tuple[int, int], values: dict[str, float]) -> KernelProfile:
    """A launch with these counters on a GPU of 100 SMs."""
    device, shape = Device("GPU", capability, sm_count=100), LaunchStatistics((100, 1, 1), (256, 1, 1))
    return dataclasses.replace(profiles.launch(values), device=device, launch=shape)


BASIC = {
    metrics.SMSP_CLOCK: 1.5 * GHZ,
    metrics.SM_ELAPSED_CLOCK: 1.5 * GHZ,
    metrics.executed_per_cycle("fadd"): 100.0,
    metrics.executed_per_cycle("fmul"): 200.0,
    metrics.executed_per_cycle("ffma"): 1000.0,
    metrics.peak_per_cycle("ffma"): 12800.0,
    metrics.DRAM_BYTES_PER_SECOND: 0.5e12,
    metrics.DRAM_BYTES_PEAK: 1000.0,
    metrics.DRAM_CLOCK: 2.0 * GHZ,
}
"""What the section SpeedOfLight_RooflineChart collects of FP32."""


def roofs(capability: tuple[int, int], values: dict[str, float]) -> Roofline:
    return analysed(roofline, launch(capability, values))


def test_formulas() -> None:
    result = roofs((8, 0), BASIC)
    [compute] = result.compute_roofs
    assert compute.key == roofline.FP32
    assert compute.achieved == pytest.approx((100 + 200 + 2 * 1000) * 1.5e9)
    assert compute.peak == pytest.approx(2 * 12800 * 1.5e9)
    [memory] = result.memory_roofs
    assert (memory.level, memory.peak, memory.achieved) == (roofline.DRAM, 2e12, 0.5e12)
    [point] = result.points
    assert point.intensity == pytest.approx(3.45e12 / 0.5e12)
    assert point.ridge == pytest.approx(38.4e12 / 2e12)
    assert point.bound == "memory"
    assert point.attainable == pytest.approx(point.intensity * 2e12)
    assert point.headroom == pytest.approx(4.0)
    assert point.percent == pytest.approx(25.0)
    assert result.main is compute
    assert (point.compute.key, point.memory.level) == (roofline.FP32, roofline.DRAM)


def test_right_of_the_ridge_the_compute_roof_holds() -> None:
    result = roofs((8, 0), {**BASIC, metrics.DRAM_BYTES_PER_SECOND: 1e9})
    [point] = result.points
    assert point.bound == "compute"
    assert point.attainable == result.compute_roofs[0].peak


def test_packed_arithmetic_counts_each_half() -> None:
    packed = {**BASIC, metrics.executed_per_cycle("ffma2"): 10.0, metrics.executed_per_cycle("fadd2"): 1.0}
    assert roofs((10, 0), packed).compute_roofs[0].achieved == pytest.approx((2300 + 4 * 10 + 2) * 1.5e9)


def test_half_precision_counts_both_halves() -> None:
    half = {
        **BASIC,
        metrics.executed_per_cycle("hadd"): 1.0,
        metrics.executed_per_cycle("hmul"): 10.0,
        metrics.executed_per_cycle("hfma"): 100.0,
        metrics.peak_per_cycle("hfma"): 25600.0,
    }
    roof = roofs((8, 0), half).compute_roofs[1]
    assert roof.achieved == pytest.approx((2 + 20 + 400) * 1.5e9)
    assert roof.peak == pytest.approx(4 * 25600 * 1.5e9)


def test_a_counter_that_is_not_there_is_not_zero() -> None:
    lacking = {name: value for name, value in BASIC.items() if name != metrics.executed_per_cycle("fmul")}
    result = roofs((8, 0), lacking)
    assert result.compute_roofs[0].achieved is None
    assert result.points == ()
    assert result.missing is not None and metrics.executed_per_cycle("fmul") in result.missing.metrics


def test_without_any_roof_it_says_what_to_collect() -> None:
    result = roofline.analyse(launch((8, 0), {}))
    assert isinstance(result, NotCollected)
    assert "--section SpeedOfLight_RooflineChart" in result.remedy


@pytest.mark.parametrize("capability", [(8, 7), (11, 0), (12, 1)])
def test_devices_without_memory_counters_say_so(capability: tuple[int, int]) -> None:
    values = {name: value for name, value in BASIC.items() if not name.startswith("dram")}
    result = roofs(capability, {**values, metrics.L2_TO_XBAR_PEAK: 10.0, metrics.L2_CLOCK: GHZ})
    assert [roof.level for roof in result.memory_roofs] == [roofline.L2]
    assert f"{capability[0]}.{capability[1]}" in result.notes[0]


LG = {metrics.L1_WRITEBACK_PER_SECOND: 1e9, metrics.L1_WRITEBACK_PEAK: 100.0}
LGDS = {metrics.L1_WRITEBACK_DSHARED_PER_SECOND: 3e9, metrics.L1_WRITEBACK_DSHARED_PEAK: 100.0}


@pytest.mark.parametrize(
    ("capability", "counters", "achieved"),
    [
        ((8, 9), LG, 128e9),
        ((9, 0), LGDS, 384e9),
        ((9, 0), {**LG, **LGDS}, 384e9),
        ((8, 9), {**LG, **LGDS}, 128e9),
    ],
)
def test_l1_counter_of_the_architecture(
    capability: tuple[int, int], counters: dict[str, float], achieved: float
) -> None:
    result = roofs(capability, {**BASIC, **counters, metrics.L1_CLOCK: GHZ})
    [l1] = [roof for roof in result.memory_roofs if roof.level == roofline.L1]
    assert l1.achieved == achieved
    assert l1.peak == 128 * 100 * GHZ


def test_shared_memory_roof_counts_all_wavefronts_once() -> None:
    values = {
        **BASIC,
        metrics.L1_CLOCK: GHZ,
        metrics.DURATION: 1000.0,
        metrics.SHARED_WAVEFRONTS: 1111.0,
    }
    [shared] = [roof for roof in roofs((9, 0), values).memory_roofs if roof.level == roofline.SHARED]
    assert shared.peak == 128 * 100 * GHZ
    assert shared.achieved == pytest.approx(128 * 1111 / 1e-6)
    del values[metrics.SHARED_WAVEFRONTS]
    [shared] = [roof for roof in roofs((9, 0), values).memory_roofs if roof.level == roofline.SHARED]
    assert shared.achieved is None
    values[metrics.SHARED_PEAK_PERCENT] = 25.0
    [shared] = [roof for roof in roofs((9, 0), values).memory_roofs if roof.level == roofline.SHARED]
    assert shared.achieved == pytest.approx(0.25 * shared.peak)


def test_shared_memory_roof_without_the_hierarchical_charts() -> None:
    """The tables alone tell the wavefronts; shared memory runs at the SM's clock."""
    values = {**BASIC, metrics.DURATION: 1000.0, metrics.SHARED_WAVEFRONTS: 30.0}
    [shared] = [roof for roof in roofs((8, 9), values).memory_roofs if roof.level == roofline.SHARED]
    assert shared.peak == 128 * 100 * 1.5 * GHZ
    assert shared.achieved == pytest.approx(128 * 30 / 1e-6)


def tensor(**paths: float) -> dict[str, float]:
    """Counters of these tensor paths."""
    values = {metrics.tensor_operations_per_cycle(path): rate for path, rate in paths.items()}
    return {**BASIC, **values, **{metrics.tensor_operations_peak(path): 1e6 for path in paths}}


def tensor_paths(result: Roofline) -> dict[str, float | None]:
    prefix = roofline.TENSOR_PREFIX
    return {r.key.removeprefix(prefix): r.achieved for r in result.compute_roofs if r.key.startswith(prefix)}


def test_totals_of_hopper_are_not_counted_twice() -> None:
    """From 9.0 on ``src_fp16`` includes what ``op_hmma_src_fp16_…`` and ``op_hgmma_src_fp16_…`` count."""
    result = roofs(
        (9, 0),
        tensor(
            src_fp16=300.0,
            op_hmma_src_fp16_dst_fp32_sparsity_off=100.0,
            op_hgmma_src_fp16_sparsity_off=200.0,
            op_hgmma_src_tf32_dst_fp32_sparsity_off=0.0,
            src_fp8_sparsity_off=50.0,
            src_fp64=7.0,
        ),
    )
    assert tensor_paths(result) == {
        "op_hmma_src_fp16_dst_fp32_sparsity_off": 100 * 1.5e9,
        "op_hgmma_src_fp16_sparsity_off": 200 * 1.5e9,
        "src_fp8_sparsity_off": 50 * 1.5e9,
        "src_fp64": 7 * 1.5e9,
    }


def test_a_total_alone_stands_for_itself() -> None:
    assert tensor_paths(roofs((12, 0), tensor(src_bf16_dst_fp32=5.0))) == {"src_bf16_dst_fp32": 7.5e9}


def test_totals_of_ampere_are_not_counted_twice() -> None:
    result = roofs((8, 6), tensor(src_tf32_dst_fp32=3.0, src_tf32_dst_fp32_sparsity_on=3.0))
    assert tensor_paths(result) == {"src_tf32_dst_fp32_sparsity_on": 4.5e9}


@pytest.mark.parametrize(
    "path", ["src_fp4_dst_fp32_sparsity_off", "op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off"]
)
def test_paths_of_blackwell_are_read_by_their_names(path: str) -> None:
    assert tensor_paths(roofs((10, 0), tensor(**{path: 2.0}))) == {path: 3e9}


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("op_hgmma_src_bf16_dst_fp32_sparsity_off", "Tensor HGMMA BF16 → FP32"),
        ("op_hgmma_src_fp16_sparsity_on", "Tensor HGMMA FP16 (sparse)"),
        ("src_fp64", "Tensor FP64"),
        ("op_utcqmma_src_fp4_fp6_fp8_dst_fp16_sparsity_off", "Tensor UTCQMMA FP4/FP6/FP8 → FP16"),
        ("src_int8_sparsity_off", "Tensor INT8"),
    ],
)
def test_labels(path: str, label: str) -> None:
    assert tensor_label(path) == label


@pytest.mark.parametrize("name", BASIC)
def test_a_rate_below_nothing_gives_no_point(name: str) -> None:
    found = roofline.analyse(launch((9, 0), {**BASIC, name: -1.0}))
    if isinstance(found, NotCollected):
        return
    for roof in (*found.compute_roofs, *found.memory_roofs):
        assert roof.peak > 0 and (roof.achieved is None or roof.achieved >= 0)
    assert found.points == ()


@pytest.mark.parametrize("kept", ["by opcode", "by address"])
def test_tensor_work_is_reckoned_where_it_was_not_counted(kept: str) -> None:
    """Of ncu up to 2024: executions of each matrix product times its size give what later versions count."""
    seen = set()
    reports = [
        DATA / "flaws_tensor.ncu-rep.xz",
        *(recorded_run_directory() / "reports" / name for name in OF_LADDERS),
    ]
    for profile in (launched for path in reports for launched in read_report(path)):
        counted = roofline.analyse(profile)
        dropped = (
            {metrics.EXECUTED_PER_MODIFIER} if kept == "by address" else {metrics.INSTRUCTIONS_BY_ADDRESS}
        )
        old = dataclasses.replace(
            profile,
            metrics={name: value for name, value in profile.metrics.items() if "ops_path_tensor" not in name},
            instances={name: found for name, found in profile.instances.items() if name not in dropped},
        )
        reckoned = roofline.analyse(old)
        assert counted and reckoned and reckoned.tensor_counted
        if not any(roof.key.startswith(roofline.TENSOR_PREFIX) for roof in counted.compute_roofs):
            continue  # a kernel that prepares a product
        pairs = [
            [roof for roof in result.compute_roofs if roof.key.startswith(roofline.TENSOR_PREFIX)]
            for result in (counted, reckoned)
        ]
        assert len(pairs[0]) == len(pairs[1]) > 0
        for truth, ours in zip(*pairs, strict=True):
            seen.add(truth.key)
            assert ours.achieved == pytest.approx(truth.achieved, rel=1e-3)
            assert ours.peak == pytest.approx(truth.peak, rel=1e-3)
            assert {point.memory.level for point in reckoned.points if point.compute == ours} == {
                point.memory.level for point in counted.points if point.compute == truth
            }
    assert len(seen) > 3


def with_code(capability: tuple[int, int], name: str, values: dict[str, float], *sass: str) -> Roofline:
    code = tuple(Instruction(16 * at, text) for at, text in enumerate(sass))
    profile = launch(capability, {**BASIC, metrics.DURATION: 1e6, **values})
    profile = dataclasses.replace(profile, device=Device(name, capability, sm_count=100), source=Source(code))
    return analysed(roofline, profile)


TENSOR_BUSY = {metrics.TENSOR_BUSY[0]: 40.0, metrics.SM_CLOCK: 1.5e9}
FIXED = {
    "derived__smsp__inst_executed_pipe_tensor_x512": 5120.0,
    "derived__sm__inst_executed_pipe_tensor_x512": 51200.0,
}


@pytest.mark.parametrize(
    ("capability", "sass", "rate"),
    [
        ((7, 0), "HMMA.884.F32.F32.STEP2 R4, R8, R2, R4", 1024),
        ((7, 5), "IMMA.8816.S8.S8 R4, R8.ROW, R2.COL, R4", 2048),
        ((8, 0), "HMMA.1688.F32.TF32 R4, R8, R2, R4", 1024),
        ((8, 6), "HMMA.16816.F16 R4, R8, R2, R4", 1024),
        ((8, 9), "QMMA.16832.F32.E4M3.E4M3 R4, R8, R2, R4", 2048),
        ((12, 0), "HMMA.16816.F32.BF16 R4, R8, R2, R4", 1024),
    ],
)
def test_how_busy_the_pipe_was_tells_where_the_code_has_one_kind_of_product(
    capability: tuple[int, int], sass: str, rate: int
) -> None:
    result = with_code(capability, "GPU", TENSOR_BUSY, sass)
    [roof] = [roof for roof in result.compute_roofs if roof.key.startswith(roofline.TENSOR_PREFIX)]
    assert roof.peak == pytest.approx(rate * 100 * 1.5e9) and roof.percent == pytest.approx(40.0)
    assert (roof.key, roofline.DRAM) in {(one.compute.key, one.memory.level) for one in result.points}


def test_without_code_the_operations_are_those_that_ncu_takes_for_an_instruction() -> None:
    [roof] = [roof for roof in with_code((8, 6), "GPU", FIXED).compute_roofs if roof.key != roofline.FP32]
    assert "512" in roof.label and roof.percent == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("capability", "name", "sass"),
    [
        ((8, 0), "A100", "HFMA2.MMA R1, -RZ, RZ, 0, 0"),  # the tensor pipe runs these, too
        ((7, 5), "NVIDIA GeForce GTX 1650", "HMMA.1688.F32 R4, R8, R2, R4"),  # no tensor cores
        ((13, 7), "a chip of tomorrow", "HMMA.16816.F32 R4, R8, R2, R4"),  # nobody knows their rate
    ],
)
def test_no_tensor_work_is_invented(capability: tuple[int, int], name: str, sass: str) -> None:
    result = with_code(capability, name, TENSOR_BUSY, sass)
    assert [roof.key for roof in result.compute_roofs] == [roofline.FP32]
