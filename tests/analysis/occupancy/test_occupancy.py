"""The calculator against Nsight Compute's own, CUDA's header, and what no device accepts."""

from __future__ import annotations

import csv
import io
import lzma
import math
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import recorded_data
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmprof import Occupancy, occupancy
from gemmprof.base.errors import OccupancyError, UsageError
from gemmprof.gpu.arch import LIMITS, PRODUCTS, find_product, limits_of, parse_compute_capability

DATA = recorded_data.DATA / "occupancy"
LABELS = [limits.label for limits in LIMITS.values()]


def reference_rows() -> list[dict[str, str]]:
    text = lzma.decompress((DATA / "reference.csv.xz").read_bytes()).decode()
    return list(csv.DictReader(io.StringIO(text)))


def answer_for(row: dict[str, str]) -> Occupancy:
    return occupancy(
        row["compute_capability"],
        int(row["threads"]),
        int(row["registers"]),
        int(row["shared_memory"]),
        shared_memory_config=int(row["config"]),
        block_barriers=int(row["barriers"]),
    )


def test_agrees_with_the_official_calculator_on_every_row() -> None:
    rows = reference_rows()
    assert len(rows) == 3000
    assert {row["compute_capability"] for row in rows} == set(LABELS)
    for row in rows:
        answer = answer_for(row)
        assert answer.blocks_per_sm == int(row["blocks"]), row
        assert round(100 * answer.theoretical_occupancy, 4) == float(row["occupancy_percent"]), row
        assert answer.registers_allocated_per_block == int(row["block_registers"]), row
        assert answer.shared_memory_allocated_per_block == int(row["block_shared_memory"]), row
        if answer.blocks_per_sm > 0:
            assert answer.limiters == tuple(filter(None, row["limiters"].split("+"))), row


def test_the_table_of_limits_is_the_official_one() -> None:
    with (DATA / "limits.csv").open(encoding="utf-8") as file:
        rows = {row.pop("compute_capability"): row for row in csv.DictReader(file)}
    assert list(rows) == LABELS
    for label, row in rows.items():
        limits = limits_of(label)
        assert row.pop("chip") == limits.chip
        configs = tuple(int(config) for config in row.pop("shared_memory_configs").split("|"))
        assert limits.shared_memory_configs == configs
        row.pop("max_registers_per_block")  # no answer depends on it
        for name, value in row.items():
            assert getattr(limits, name) == int(value), (label, name)


def test_the_example_that_people_work_out_by_hand() -> None:
    answer = occupancy("8.6", threads_per_block=1024, registers_per_thread=37, shared_memory_per_block=8192)
    assert answer.registers_allocated_per_warp == 1280
    assert answer.registers_allocated_per_block == 40960
    assert answer.block_limits == {"registers": 1, "shared_memory": 11, "warps": 1, "blocks": 16}
    assert (answer.blocks_per_sm, answer.active_warps_per_sm) == (1, 32)
    assert answer.theoretical_occupancy == pytest.approx(2 / 3)
    assert answer.binding == ("registers", "warps")
    assert answer.limiters == ("blocks", "registers")
    assert (answer.registers_left, answer.shared_memory_left) == (65536 - 40960, 102400 - 9216)
    assert answer.warps_left == 16
    assert occupancy(9.0, 1024, 37, 8192).theoretical_occupancy == 0.5
    assert str(answer) == "1 block per SM, 32 of 48 warps, 66.7 % on 8.6"


@pytest.mark.parametrize(
    "written",
    ["8.6", " 8.6 ", 8.6, np.float32(8.6), (8, 6), [8, 6], "sm_86", "SM_86", "compute_86", "86", 86],
)
def test_compute_capability_in_every_form(written: object) -> None:
    assert occupancy(written, 128, 32).compute_capability == (8, 6)


def test_compute_capability_of_two_digits_and_suffixes() -> None:
    assert parse_compute_capability(10.0) == (10, 0)
    assert parse_compute_capability("sm_103a") == (10, 3)
    assert parse_compute_capability("sm_120f") == (12, 0)
    assert parse_compute_capability(12.1) == (12, 1)
    assert parse_compute_capability("sm_90a") == (9, 0)


@pytest.mark.parametrize(
    "written",
    [
        "8.8",
        "9.9",
        "",
        "ninety",
        None,
        True,
        86.0,
        float("nan"),
        float("inf"),
        (8,),
        (8, 6, 0),
        {},
        [],
        -8.6,
        9,
    ],
)
def test_unknown_compute_capability_is_refused(written: object) -> None:
    with pytest.raises(OccupancyError, match="not in the table of limits") as raised:
        occupancy(written, 128, 32)
    assert "8.6" in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("8.6", 1025, 32), {}, ("1,025 threads per block", "8.6", "1,024")),
        (("8.6", 0, 32), {}, ("0 threads", "8.6")),
        (("8.6", -32, 32), {}, ("-32 threads", "8.6")),
        (("9.0", 128, 256), {}, ("256 registers per thread", "9.0", "255")),
        (("9.0", 128, 0), {}, ("0 registers", "9.0")),
        (("9.0", 128, 32, 232_449), {}, ("232,449 bytes", "9.0", "232,448", "1,024")),
        (("7.5", 128, 32, 65_537), {}, ("65,537 bytes", "7.5", "65,536")),
        (("8.0", 128, 32, -1), {}, ("-1 bytes", "8.0")),
        (
            ("8.6", 128, 32, 8192),
            {"shared_memory_config": 8192},
            ("8,192", "8.6", "too small", "9,216", "16,384"),
        ),
        (("8.0", 128, 32, 0), {"shared_memory_config": 0}, ("8.0", "too small", "1,024")),
        (("8.6", 128, 32), {"shared_memory_config": 50_000}, ("50,000", "8.6", "none such", "65,536")),
        (("8.6", 128, 32), {"shared_memory_config": 135_168}, ("135,168", "8.6", "none such")),
        (("9.0", 128, 32), {"block_barriers": 17}, ("17 barriers", "9.0", "16")),
        (("9.0", 128, 32), {"block_barriers": -1}, ("-1 barriers", "9.0")),
        (("8.9", 128, 32), {"cluster_size": 2}, ("2 blocks per cluster", "8.9", "9.0")),
        (("9.0", 128, 32), {"cluster_size": 17}, ("17 blocks per cluster", "9.0", "16")),
        (("9.0", 128, 32), {"cluster_size": 0}, ("0 blocks per cluster", "9.0")),
    ],
)
def test_impossible_input_names_limit_and_architecture(
    arguments: tuple[object, ...], options: dict[str, int], words: tuple[str, ...]
) -> None:
    with pytest.raises(OccupancyError) as raised:
        occupancy(*arguments, **options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("value", [37.5, 128.0, float("nan"), "128", None, True, 1j])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    for place in range(3):
        arguments: list[object] = [128, 32, 0]
        arguments[place] = value
        with pytest.raises(OccupancyError, match="is not a whole number"):
            occupancy("8.6", *arguments)  # type: ignore[arg-type]


def test_arrays_are_sent_to_the_table() -> None:
    with pytest.raises(OccupancyError, match="occupancy_table"):
        occupancy("8.6", np.array([128, 256]), 32)  # type: ignore[arg-type]


def test_numpy_integers_are_whole_numbers() -> None:
    assert occupancy("8.6", np.int32(128), np.uint8(32), np.int64(0)) == occupancy("8.6", 128, 32)


def test_registers_of_a_block_beyond_the_file_are_an_answer_of_zero() -> None:
    # 9 warps × 6,656 registers are fewer than 65,536, but in each of four partitions only two such warps fit.
    answer = occupancy("9.0", 288, 203)
    assert answer.registers_allocated_per_block == 59_904 < 65_536
    assert (answer.blocks_per_sm, answer.theoretical_occupancy, answer.active_warps_per_sm) == (0, 0.0, 0)
    assert occupancy("9.0", 256, 203).blocks_per_sm == 1


def test_a_small_carve_out_is_no_reason_where_registers_admit_nothing() -> None:
    answer = occupancy("8.0", 1024, 255, 40_000, shared_memory_config=8192)
    assert answer.blocks_per_sm == 0
    with pytest.raises(OccupancyError, match="too small for one block"):
        occupancy("8.0", 1024, 32, 40_000, shared_memory_config=8192)


def test_nothing_of_a_resource_is_limited_by_block_slots() -> None:
    assert occupancy("7.0", 32, 16).block_limits["shared_memory"] == 32
    assert occupancy("9.0", 32, 16, block_barriers=0).block_limits["barriers"] == 32
    assert "barriers" not in occupancy("8.9", 32, 16, block_barriers=16).block_limits


def test_no_limiter_at_full_occupancy() -> None:
    answer = occupancy("9.0", 256, 32)
    assert (answer.theoretical_occupancy, answer.limiters) == (1.0, ())
    assert answer.binding == ("registers", "warps")


def test_clusters_leave_one_sm_as_it_is_and_bound_the_gpu() -> None:
    alone, clustered = occupancy("9.0", 256, 32), occupancy("9.0", 256, 32, cluster_size=2)
    assert clustered.blocks_per_sm == alone.blocks_per_sm == 8
    # The same launch on an H100: launch__cluster_max_active is 528.
    assert clustered.max_active_clusters(132) == 528
    assert occupancy("10.0", 256, 32, cluster_size=16).max_active_clusters(148) == 74


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, object]:
    limits = LIMITS[draw(st.sampled_from(sorted(LIMITS)))]
    most = limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block
    return {
        "compute_capability": limits.label,
        "threads_per_block": draw(st.integers(1, 1024)),
        "registers_per_thread": draw(st.integers(1, 255)),
        "shared_memory_per_block": draw(st.one_of(st.just(0), st.integers(0, most))),
        "block_barriers": draw(st.integers(0, 16)),
    }


@settings(max_examples=300, deadline=None)
@given(configurations())
def test_what_is_resident_fits_and_one_more_does_not(configuration: dict[str, object]) -> None:
    answer = occupancy(**configuration)  # type: ignore[arg-type]
    assert min(answer.registers_left, answer.shared_memory_left, answer.warps_left) >= 0
    assert 0 <= answer.theoretical_occupancy <= 1
    assert answer.blocks_per_sm == min(answer.block_limits.values())
    # A resource that binds has no room for another block.
    for resource in answer.binding:
        if resource == "warps":
            assert answer.warps_left < answer.warps_per_block
        elif resource == "shared_memory" and answer.shared_memory_allocated_per_block:
            assert answer.shared_memory_left < answer.shared_memory_allocated_per_block


@settings(max_examples=150, deadline=None)
@given(
    configurations(), st.sampled_from(["registers_per_thread", "shared_memory_per_block", "block_barriers"])
)
def test_taking_less_never_lowers_occupancy(configuration: dict[str, object], name: str) -> None:
    value = configuration[name]
    assert isinstance(value, int)
    less = {**configuration, name: max(1 if name == "registers_per_thread" else 0, value // 2)}
    before, after = occupancy(**configuration), occupancy(**less)  # type: ignore[arg-type]
    assert after.blocks_per_sm >= before.blocks_per_sm


def test_the_result_is_frozen_hashable_and_survives_pickling() -> None:
    answer = occupancy("8.6", 1024, 37, 8192)
    with pytest.raises(AttributeError):
        answer.blocks_per_sm = 2  # type: ignore[misc]
    assert hash(answer) == hash(occupancy("sm_86", 1024, 37, 8192))
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_the_scalar_path_imports_neither_numpy_nor_pandas() -> None:
    code = (
        "import sys; from gemmprof import occupancy; occupancy('8.6', 128, 32);"
        "print(sorted({'numpy', 'pandas', 'matplotlib', 'torch', 'jinja2', 'ncu_report'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- Products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found", "sms"),
    [
        ("NVIDIA H100 80GB HBM3", "H100", 132),
        ("h100 pcie", "H100 PCIe", 114),
        ("NVIDIA A100-SXM4-80GB", "A100", 108),
        ("3090ti", "RTX 3090 Ti", 84),
        ("NVIDIA GeForce RTX 4080 SUPER", "RTX 4080 SUPER", 80),
        ("Tesla T4", "T4", 40),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", 142),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "RTX 4090", None),
    ],
)
def test_products_by_the_names_that_people_and_drivers_use(name: str, found: str, sms: int | None) -> None:
    product = find_product(name)
    assert (product.name, product.sm_count) == (found, sms)


def test_an_unknown_product_names_the_closest() -> None:
    with pytest.raises(UsageError, match="no GPU called 'H1000'") as raised:
        find_product("H1000")
    assert "H100" in str(raised.value)


def test_every_product_has_a_known_architecture_and_a_name_of_its_own() -> None:
    assert {product.compute_capability for product in PRODUCTS} == set(LIMITS)
    assert len({product.name for product in PRODUCTS}) == len(PRODUCTS)
    for product in PRODUCTS:
        assert find_product(product.name) == product


# --- CUDA's own header ------------------------------------------------------------------------------------------------

CUDA_PROGRAM = r"""
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
    int major, minor, warps, per_sm, most, reserve, threads, registers, shared, config, barriers;
    while (scanf("%d %d %d %d %d %d %d %d %d %d %d", &major, &minor, &warps, &per_sm, &most, &reserve, &threads,
                 &registers, &shared, &config, &barriers) == 11) {
        cudaOccDeviceProp device;
        device.computeMajor = major; device.computeMinor = minor; device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = 32 * warps; device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536; device.warpSize = 32; device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = per_sm; device.numSms = 1; device.sharedMemPerBlockOptin = most - reserve;
        device.reservedSharedMemPerBlock = reserve;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = 0;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF; kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = most - reserve; kernel.numBlockBarriers = barriers;
        cudaOccDeviceState state;
        state.carveoutConfig = (100 * config + per_sm - 1) / per_sm;
        cudaOccResult result;
        cudaOccError error =
            cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared);
        printf("%d %d %d %zu\n", error, result.activeBlocksPerMultiprocessor, result.allocatedRegistersPerBlock,
               result.allocatedSharedMemPerBlock);
    }
}
"""


def cuda_include_folders() -> Iterator[Path]:
    for home in ("/usr/local/cuda", *map(str, sorted(Path("/usr/local").glob("cuda-*"), reverse=True))):
        yield Path(home) / "include"


def test_agrees_with_the_header_that_cuda_ships(tmp_path: Path) -> None:
    """``cuda_occupancy.h`` answers what cudaOccupancyMaxActiveBlocksPerMultiprocessor does."""
    include = next((f for f in cuda_include_folders() if (f / "cuda_occupancy.h").is_file()), None)
    if include is None:
        pytest.skip("no cuda_occupancy.h")
    (tmp_path / "referee.cpp").write_text(CUDA_PROGRAM)
    build = ["c++", "-O1", f"-I{include}", "referee.cpp", "-o", "referee"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    random = np.random.default_rng(3)
    asked = []
    lines = []
    for _ in range(20_000):
        limits = LIMITS[sorted(LIMITS)[random.integers(len(LIMITS))]]
        most = limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block
        threads, registers = int(random.integers(1, 1025)), int(random.integers(1, 256))
        if random.random() < 0.7:
            registers = int(random.integers(1, 65))
        shared = 0 if random.random() < 0.3 else int(most * random.random() ** 3)
        barriers = int(random.integers(1, 17))
        asked.append((limits.label, threads, registers, shared, barriers))
        numbers = (
            *limits.compute_capability, limits.max_warps_per_sm, limits.shared_memory_per_sm,
            limits.max_shared_memory_per_block, limits.reserved_shared_memory_per_block, threads, registers, shared,
            limits.shared_memory_per_sm, barriers,
        )  # fmt: skip
        lines.append(" ".join(map(str, numbers)))
    done = subprocess.run(
        ["./referee"], cwd=tmp_path, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked)
    for (label, threads, registers, shared, barriers), (error, blocks, block_registers, block_shared) in zip(
        asked, answers, strict=True
    ):
        answer = occupancy(label, threads, registers, shared, block_barriers=barriers)
        assert error == 0
        assert answer.blocks_per_sm == blocks, (label, threads, registers, shared, barriers)
        if blocks:
            assert answer.registers_allocated_per_block == block_registers
            assert answer.shared_memory_allocated_per_block == block_shared
    assert math.isclose(sum(bool(blocks) for _, blocks, _, _ in answers) / len(answers), 0.8, abs_tol=0.15)
