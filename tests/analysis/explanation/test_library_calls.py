"""What cuBLAS's own times say of a call, and that nothing is said where they do not."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.explanation.causes.library_calls import (
    TIMES,
    about,
    alignment,
    as_tf32,
    cards,
    is_fp32,
    padded,
    reduced,
)
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.reading.report import read_report
from gemmprof.metrics import DURATION
from gemmprof.model import Explanation, KernelProfile

ODD = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_tn_align2>(T1::Params)"
EVEN = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
FP32 = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma_aligna4_alignc4"


@pytest.fixture(scope="module")
def sparse() -> KernelProfile:
    """A launch of which nothing but its duration was collected."""
    profile = read_report(DATA / "train_100.ncu-rep.xz", source=False)[0]
    return replace(profile, metrics={}, instances={}, rules=())


def explained(profile: KernelProfile, name: str, microseconds: float) -> Explanation:
    return explain(replace(profile, name=name, metrics={DURATION: 1e3 * microseconds}))


def test_both_cards_were_timed_at_the_same_points() -> None:
    h200, h100 = cards()
    assert (h200.name, h100.name) == ("H200", "H100")
    assert [(one.group, one.shape, one.call) for one in h200.products] == [
        (one.group, one.shape, one.call) for one in h100.products
    ]
    for card in cards():
        assert all(0 < one.p10 <= one.us <= one.p90 and one.kernels for one in card.products)


def test_padding_and_tf32_save_what_was_timed() -> None:
    for card in cards():
        times = {
            (one.type, one.shape): one.us for one in card.products if one.call == "mm" and one.layout == "tn"
        }
        odd, even = times["bf16", (4096, 4095, 4096)], times["bf16", (4096, 4096, 4096)]
        assert 7 < odd / even < 8
        assert any(
            us == odd and saved == pytest.approx(1 - even / odd) for us, saved in padded(card)["bf16", 1]
        )
        assert all(saved < 0.9 for _, saved in reduced(card))


def test_the_name_says_the_alignment() -> None:
    assert alignment(ODD) == ("bf16", 2)
    assert alignment(EVEN) is None
    assert alignment("cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align1>") == ("tf32", 1)
    assert alignment("cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_256x128_tn_align1>") == (
        "fp16",
        1,
    )


def test_a_report_with_no_more_than_a_name_and_a_time(sparse: KernelProfile) -> None:
    found = explained(sparse, ODD, 500)
    assert [one.cause for one in found.findings] == ["unaligned_operands"]
    assert found.findings[0].saves_low < 0.65 < found.findings[0].saves_high
    assert "multiples of 8" in found.findings[0].change
    assert not explained(sparse, EVEN, 500).findings
    other = explained(sparse, FP32, 350)
    assert not other.findings
    assert [(one.cause, one.variants[0].same_arithmetic) for one in other.other_arithmetic] == [
        ("tensor_cores_idle", False)
    ]


@pytest.mark.parametrize("dram", ["share", "bytes"])
def test_tf32_saves_less_of_a_product_that_waits_for_memory(sparse: KernelProfile, dram: str) -> None:
    """Products of 60 us on an H100: one that reads a matrix of 64 MB for a few rows, and one of large tiles."""
    saved = []
    for busy in (45.0, 12.0):
        said = (
            {DRAM: busy}
            if dram == "share"
            else {"dram__bytes_read.sum": busy * 60e3 * 33.5, "dram__bytes_write.sum": 0.0}
        )
        profile = replace(sparse, name=FP32, metrics={DURATION: 60e3, **said})
        found = explain(profile).other_arithmetic
        timed = as_tf32(profile)
        assert [one.saves for one in found] == [pytest.approx(about(timed)[0])]
        saved.append(found[0].saves)
    assert saved[0] < 0.5 < 0.6 < saved[1]


def test_a_convolution_in_fp32_is_told_of_tf32_without_a_size(sparse: KernelProfile) -> None:
    name = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x8_stage3_g1_ffma_aligna4"
    found = explained(sparse, name, 60)
    assert not found.findings and not found.other_arithmetic
    assert ["cudnn.allow_tf32" in text for text in found.levers] == [True]
    assert not explained(
        sparse, name.replace("f32f32_f32f32_f32", "tf32f32_tf32f32_f32").replace("ffma", ""), 60
    ).levers


def test_fp32_is_told_from_the_operands() -> None:
    """cuDNN names convolutions of FP16 after the FP32 in which they add up."""
    assert is_fp32(FP32)
    assert is_fp32(
        "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, true, true>(int)"
    )
    assert is_fp32("_ZN5cudnn6detail23implicit_convolve_sgemmIffLi512ELi6ELi8EEvv")
    assert not is_fp32("void cudnn::detail::implicit_convolve_sgemm<__half, __half, int=1024>(int)")
    assert not is_fp32(ODD)


@pytest.mark.parametrize(("name", "microseconds"), [(ODD, 1.0), (FP32, 1e6), (ODD, 1e6)])
def test_where_nothing_like_it_was_timed_a_sentence_stands_without_a_size(
    sparse: KernelProfile, name: str, microseconds: float
) -> None:
    found = explained(sparse, name, microseconds)
    assert not found.findings and not found.other_arithmetic
    assert found.levers


def test_other_cards_are_not_judged_by_these(sparse: KernelProfile) -> None:
    a100 = replace(sparse, device=replace(sparse.device, name="NVIDIA A100-SXM4-80GB"))
    found = explained(a100, ODD, 500)
    assert not found.findings and found.levers


def test_the_page_is_of_these_times() -> None:
    page = (ROOT / "docs" / "cublas_cliffs.md").read_text(encoding="utf-8")
    assert "| bf16 4096 × 4096 × 4096, N | 2.77 / 2.79 | 2.77 / 2.80 | 7.38 / 7.41 |" in page
    for card in cards():
        assert f"cuBLAS {card.cublas}" in page


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/record_cliffs.py."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("record_cliffs")


def test_the_page_is_what_the_tool_writes(tool: ModuleType) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()


def test_our_stage_is_put_beside_the_times_that_are_there(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another run on the same card only the ratio counts; another cuBLAS is refused."""
    table = tmp_path / "cublas.json"
    shutil.copy(TIMES, table)
    monkeypatch.setattr(tool, "TIMES", table)
    row = {"type": "bf16", "layout": "tn", "shape": [4096, 4095, 4096], "us": 1000.0, "ours": 250.0}
    run = {"card": "NVIDIA H100 80GB HBM3", "cublas": 130100, "date": "2026-12-24", "rows": [row]}
    file = tmp_path / "run.json"
    file.write_text(json.dumps(run))
    tool.beside([file])
    h200, h100 = json.loads(table.read_text())["cards"]
    before = json.loads(TIMES.read_text())["cards"]
    assert h200 == before[0] and h100["beside"] == "2026-12-24"
    ours = [(row[9], row[14]) for row in h100["rows"] if len(row) > 14]
    assert ours and all(own == pytest.approx(us / 4, abs=0.01) for us, own in ours)
    file.write_text(json.dumps({**run, "cublas": 130200}))
    with pytest.raises(SystemExit, match=r"13\.2\.0"):
        tool.beside([file])
