"""Matrix products off the tensor cores, and on them by the slower instructions: recorded GEMMs, and code by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from made_code import made
from recorded_data import ROOT, one_launch

from gemmprof import metrics
from gemmprof.analysis.explanation.causes.reuse import _fetches, redundant_loads
from gemmprof.analysis.explanation.causes.tensor import tensor_cores_idle, tensor_rates, warp_level_mma
from gemmprof.analysis.explanation.causes.waits import memory_latency
from gemmprof.analysis.explanation.demands.time_model import TimeModel
from gemmprof.analysis.explanation.demands.traffic import traffic
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.opcodes import matrix_product
from gemmprof.analysis.reading.report import ReportReader, read_report
from gemmprof.gpu import arch
from gemmprof.model import Finding, KernelProfile
from gemmprof.runs.directory import recorded_run_directory


@cache
def ladder() -> tuple[tuple[float, str, Path, int], ...]:
    """Every launch of the recorded run, the longest first: time, name, report and position there."""
    found = []
    for report in recorded_run_directory().glob("reports/*.ncu-rep.xz"):
        with ReportReader(report) as reader:
            for one in reader.profiles(instances=False, rules=False):
                found.append((one.number(metrics.DURATION) or 0.0, one.name, report, one.index))
    return tuple(sorted(found, reverse=True))


@cache
def stage(name: str) -> KernelProfile:
    """The recorded launch of a stage on its largest problem."""
    *_, report, index = next(launch for launch in ladder() if f"{name}<" in launch[1])
    return one_launch(report, index)


def findings(profile: KernelProfile) -> dict[str, Finding]:
    return {finding.cause: finding for finding in explain(profile).findings}


class TestIdle:
    def test_bf16_that_is_widened_on_its_way_to_shared_memory(self) -> None:
        """Its FFMAs read FP32 from shared memory; that the operands have 16 bits shows where they are staged."""
        first = explain(stage("hgemm_warptiled")).findings[0]
        assert first.cause == "tensor_cores_idle" and "16-bit operands" in first.change
        # The ladder's next stage takes 0.718 ms for 3.34 (docs/ladders.md). 2 M N K = 1.4e11 operations at two thirds
        # of 4096 a cycle take 6 % of the time; what stays is memory.
        assert first.saves == pytest.approx(1.0 - 0.718 / 3.34, abs=0.05)
        assert first.saves < first.saves_high < 0.9

    def test_fp32_is_told_what_it_would_lose(self) -> None:
        said = explain(stage("sgemm_double_buffered"))
        assert "tensor_cores_idle" not in {one.cause for one in said.findings}
        (told,) = said.other_arithmetic
        assert told.change.startswith("Where TF32's ten bits of mantissa suffice")

    def test_a_matrix_product_is_not_repeated_by_its_lanes(self) -> None:
        """The operands' places are the same for all lanes of a warp: it multiplies once."""
        said = explain(stage("hgemm_clusters"))
        assert not [one for one in said.findings if one.cause in ("expensive_math", "integer_arithmetic")]

    def test_kernels_on_tensor_cores_are_not_idle(self) -> None:
        for name in ("hgemm_wmma", "hgemm_mma", "hgemm_async_copy", "hgemm_wgmma"):
            assert "tensor_cores_idle" not in findings(stage(name)), name


@pytest.mark.parametrize("used", [4, 2], ids=["tiles", "rows"])
def test_squares_of_differences_that_lanes_exchange(used: int) -> None:
    """Of two tiles each value meets several others; of rows that are scaled, few: those are no product."""
    terms = [(4 + one, 8 + other, 16 + 4 * one + other) for one in range(used) for other in range(used)]
    sass = (
        "LDS.128 R4, [R2] ;",
        "LDS.128 R8, [R3] ;",
        *(f"FADD R{to}, R{one}, -R{other} ;" for one, other, to in terms),
        *(f"FMUL R{to + 20}, R{to}, R{to} ;" for *_, to in terms),
        *(f"SHFL.BFLY PT, R{to + 40}, R{to + 20}, 0x10, 0x1f ;" for *_, to in terms),
        *(f"FADD R{to + 60}, R{to + 20}, R{to + 40} ;" for *_, to in terms),
        "STG.E [R12.64], R76 ;",
        "EXIT ;",
    )
    counted = {metrics.ELAPSED_CYCLES: 1e5, metrics.SM_ACTIVE_CYCLES: 1e5, metrics.SM_COUNT: 10.0}
    found = list(tensor_cores_idle(made(*sass, executed=1000, counted=counted)))
    if used < 4:
        assert not found
        return
    (one,) = found
    kept = one.fix.keep
    assert kept is not None and not one.another_arithmetic
    # Operands, differences and squares stay; what was exchanged and added to it goes.
    assert kept.tolist() == [1.0] * (2 + 2 * len(terms)) + [0.0] * (2 * len(terms)) + [1.0, 1.0]
    assert one.fix.passes == pytest.approx(len(terms) * 1000 / 2)


def dot(fetched: float, *, half: bool = True) -> Work:
    """Sums of products of what two loads bring: ``fetched`` sectors come from L2."""
    load = "LDG.E.U16" if half else "LDG.E"
    return made(
        f"{load} R2, [R4.64] ;",
        f"{load} R3, [R6.64] ;",
        "FFMA R8, R2, R3, R8 ;",
        "FFMA R9, R2, R3, R9 ;",
        "FFMA R8, R2, R3, R8 ;",
        "@P0 BRA 0x000000 ;",
        "EXIT ;",
        executed=[1000, 1000, 1000, 1000, 1000, 1000, 10],
        counted={
            metrics.ELAPSED_CYCLES: 1e5,
            metrics.SM_ACTIVE_CYCLES: 1e5,
            metrics.SM_COUNT: 10.0,
            metrics.BUSY["fma"][0]: 80.0,
            metrics.BUSY["tensor"][0]: 0.0,
            metrics.L1_LOAD_SECTORS_FETCHED: fetched,
        },
    )


class TestProducts:
    """96,000 multiply-adds; a sector holds 16 operands of 16 bits or 8 of 32."""

    def test_operands_that_are_used_again(self) -> None:
        (found,) = tensor_cores_idle(dot(1000.0))
        assert found.fix.keep is not None and found.fix.keep[2] == pytest.approx(1 / 64)
        # 2 x 96,000 operations on 10 SMs, 8192 / 3 a cycle, of 100,000 cycles.
        assert found.fix.added["tensor"] == pytest.approx(2 * 96_000 / (10 * 8192 / 3 * 1e5))

    def test_a_product_with_a_vector_uses_each_once(self) -> None:
        assert list(tensor_cores_idle(dot(6000.0))) == []

    def test_fp32_where_the_fma_pipe_limits(self) -> None:
        (found,) = tensor_cores_idle(dot(1000.0, half=False))
        assert found.fix.keep is not None and found.fix.keep[2] == pytest.approx(1 / 32)
        assert found.change.startswith("Where TF32")

    @pytest.mark.parametrize(
        "lines",
        [
            # n-body: the sum is of squares of differences, no operand comes from memory as it is.
            (
                "LDG.E R2, [R4.64] ;",
                "FADD R3, R2, -R10 ;",
                "FFMA R8, R3, R11, R8 ;",
                "FFMA R8, R3, R11, R8 ;",
            ),
            # A stencil: coefficients are constants.
            ("LDG.E R2, [R4.64] ;", "FFMA R8, R2, c[0x0][0x210], R8 ;", "FFMA R8, R2, 0.25, R8 ;"),
            # A polynomial: the sum is a factor.
            ("LDG.E R2, [R4.64] ;", "LDG.E R3, [R6.64] ;", "FFMA R8, R8, R2, R3 ;", "FFMA R8, R8, R2, R3 ;"),
        ],
    )
    def test_other_multiply_adds_are_none(self, lines: tuple[str, ...]) -> None:
        busy = {metrics.BUSY["fma"][0]: 90.0, metrics.ELAPSED_CYCLES: 1e5, metrics.SM_ACTIVE_CYCLES: 1e5}
        assert list(tensor_cores_idle(made(*lines, "EXIT ;", counted=busy))) == []


class TestWarpLevel:
    @pytest.mark.parametrize("name", ["hgemm_wmma", "hgemm_mma", "hgemm_async_copy"])
    def test_mma_sync_where_there_is_wgmma(self, name: str) -> None:
        told = findings(stage(name))["warp_level_mma"]
        assert "67 %" in told.change
        assert 0.15 < told.saves < 0.5

    def test_operand_passes_are_what_wgmma_counts(self) -> None:
        """The next stage, same tiles: its operands' passes as counted are those that the fix leaves."""
        found = work(stage("hgemm_async_copy"))
        (candidate,) = warp_level_mma(found)
        left = candidate.fix.resources["l1_data"] * float(found.data_passes.sum())
        by_wgmma = work(stage("hgemm_wgmma"))
        counted = by_wgmma.loads["l1_data"].busy * by_wgmma.elapsed * by_wgmma.sms
        assert left == pytest.approx(counted, rel=0.2)

    @pytest.mark.parametrize("name", ["hgemm_wgmma", "hgemm_clusters", "sgemm_fastest"])
    def test_others_are_not_told(self, name: str) -> None:
        assert list(warp_level_mma(work(stage(name)))) == []

    def on(self, capability: tuple[int, int]) -> list[str]:
        """What a GPU is told whose report states no peaks."""
        profile = stage("hgemm_mma")
        plain = {name: value for name, value in profile.metrics.items() if "ops_path_tensor" not in name}
        device = replace(profile.device, compute_capability=capability)
        found = warp_level_mma(work(replace(profile, device=device, metrics=plain)))
        return [candidate.change for candidate in found]

    @pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 6), (8, 9), (12, 0)])
    def test_nor_where_there_is_nothing_faster(self, capability: tuple[int, int]) -> None:
        assert self.on(capability) == []

    def test_what_is_faster_has_another_name_on_each_gpu(self) -> None:
        assert [words.split(" (")[0] for words in self.on((9, 0))] == ["Multiply by wgmma"]
        assert [words.split(" (")[0] for words in self.on((10, 0))] == ["Multiply by tcgen05.mma"]


def test_the_table_states_the_peaks_that_reports_count() -> None:
    found = work(stage("hgemm_mma"))
    hopper = arch.LIMITS[9, 0]
    for source in ("bf16", "tf32"):
        assert tensor_rates(found, source) == pytest.approx(
            (hopper.tensor[source], hopper.fast_tensor[source])
        )


class TestCopies:
    def test_copies_past_l1_do_not_pass_its_data_stage(self) -> None:
        """What the fragments and the stores take is all that was counted."""
        found = work(stage("hgemm_async_copy"))
        copies = np.array([line.opcode == "LDGSTS" for line in found.sass])
        counted = found.loads["l1_data"].busy * found.elapsed * found.sms
        assert float(found.shared_wavefronts[copies].sum()) > 0.3 * counted
        assert float(found.data_passes.sum()) == pytest.approx(counted, rel=0.02)

    def test_what_they_read_again_is_read_by_them(self) -> None:
        found = work(stage("hgemm_async_copy"))
        fetched = _fetches(found, traffic(found))
        assert fetched is not None and {found.sass[at].opcode for at in np.flatnonzero(fetched)} == {"LDGSTS"}


class TestTiles:
    def test_a_tile_asks_for_what_the_next_stage_asks(self) -> None:
        """A is read four k at a time, by one place for all lanes: two passes in place of four."""
        now, then = work(stage("sgemm_coalesced")), work(stage("sgemm_shared"))
        (said,) = redundant_loads(now)
        tile = next(one for one in said.variants if one.name.startswith("tile in shared memory"))
        asked = TimeModel(now).terms(tile.fix)
        for key in ("l1_data", "lsu", "issue"):
            there = then.loads[key].busy / then.loads[key].ceiling * then.imbalance * then.elapsed
            assert asked[key] * now.elapsed == pytest.approx(there, rel=0.12), key

    def test_a_tile_fetched_in_turn_with_the_arithmetic(self) -> None:
        (before,) = read_report(ROOT / "tests" / "data" / "wgmma" / "hgemm_mma_in_turn.ncu-rep.xz")
        told = findings(before)["memory_latency"]
        assert told.change.startswith("Fetch the next tile while this one is used")
        assert all("LDG" in place.sass for place in told.places)

    def test_a_tile_that_all_warps_store_before_any_computes(self) -> None:
        """Registers hold the next tile already; the ladder's next stage copies past them, several tiles in turn."""
        told = findings(stage("hgemm_mma"))["memory_latency"]
        assert "all store it before any computes" in told.change and "into registers" not in told.change
        assert [one.name for one in told.variants] == ["asynchronous copies, 3 tiles in turn"]
        assert told.saves_low < 0.40 < told.saves_high

    def test_the_next_tile_in_registers_takes_away_the_waits_for_it_alone(self) -> None:
        """It is stored and read as now: that all warps copy at once costs what they wait for loads and each other."""
        (said,) = memory_latency(work(stage("sgemm_autotuned")))
        (held,) = (one for one in said.variants if "in registers" in one.name)
        assert 0.1 < held.bound < 0.2

    @pytest.mark.parametrize("name", ["sgemm_double_buffered", "hgemm_async_copy"])
    def test_tiles_fetched_ahead_are_not_told(self, name: str) -> None:
        assert not any("next tile" in one.change for one in memory_latency(work(stage(name))))


@pytest.mark.parametrize(
    "opcode, first, second, result",
    [
        ("HMMA.16816.F32.BF16", 4, 2, 4),
        ("HMMA.16816.F16", 4, 2, 2),
        ("HMMA.1688.F32.TF32", 4, 2, 4),
        ("HMMA.884.F32.F32.STEP1", 2, 2, 2),
        ("HMMA.SP.16832.F32", 4, 4, 4),
        ("IMMA.8816.S8.S8", 1, 1, 2),
        ("IMMA.16864.S4.S4", 4, 2, 4),
        ("QMMA.16832.F32.E4M3.E4M3", 4, 2, 4),
        ("BMMA.168256", 4, 2, 4),
        ("DMMA.8x8x4", 2, 2, 4),
        ("DMMA.16816", 16, 8, 8),
        ("HGMMA.64x256x16.F32.BF16", 4, None, 128),
        ("HGMMA.64x256x16.F16", 4, None, 64),
        ("QGMMA.64x128x32.F16.E4M3.E4M3", 4, None, 32),
    ],
)
def test_registers_of_a_product(opcode: str, first: int, second: int | None, result: int) -> None:
    """As fragments of the PTX ISA are dealt out to threads: of a warp, or of the four of a group, whose second factor
    never stands in registers.
    """
    product = matrix_product(opcode)
    assert (product.factors[0], product.registers) == (first, result)
    assert second in (None, product.factors[1])
