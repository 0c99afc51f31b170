"""Two real kernels on the tensor cores of an H200, 4096³ in BF16: cuBLAS's and an early version of stage 8.

Both compute whole tiles, so what the counters say of their work and of their copies can be told beforehand.
"""

from __future__ import annotations

import pytest
from recorded_data import DATA

from gemmprof import metrics
from gemmprof.analysis.instruction_mix import InstructionMix
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.memory_chart import MemoryChart
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.roofline import Roofline

SIZE = 4096
FLOPS = 2 * SIZE**3
STEP_BYTES = (128 + 256) * 64 * 2
"""What a block copies in a step along K: 128 rows of A and 256 columns of B, 64 deep."""


@pytest.fixture(scope="module")
def analyses():
    return [analyse(profile) for profile in read_report(DATA / "wgmma" / "gemm_4096.ncu-rep.xz")]


def test_tensor_work_is_the_products(analyses):
    for analysis in analyses:
        point = analysis.get(Roofline).points[0]
        assert point.compute.label == "Tensor HGMMA BF16 → FP32"
        seconds = analysis.profile.metrics[metrics.DURATION] * 1e-9
        assert point.compute.achieved * seconds == pytest.approx(FLOPS, rel=1e-4)


@pytest.mark.parametrize(("place", "columns"), [(0, 128), (1, 256)])
def test_every_wgmma_is_counted(analyses, place, columns):
    """A warpgroup's wgmma is 64 x columns x 16, and each of its four warps executes it."""
    mix = {count.opcode: count for count in analyses[place].get(InstructionMix).opcodes}
    assert mix["HGMMA"].executed == 4 * FLOPS // (2 * 64 * columns * 16)
    assert mix["HGMMA"].instruction_class == "tensor"
    assert mix["SYNCS"].meaning == "shared-memory barrier (mbarrier)"


def test_bulk_copies_are_in_the_memory_chart(analyses):
    tiles = (SIZE // 128) * (SIZE // 256)
    for analysis in analyses:
        links = {link.label: link for link in analysis.get(MemoryChart).links if link.label.startswith("tma")}
        assert links["tma_load"].bytes == tiles * (SIZE // 64) * STEP_BYTES
        assert links["tma_store"].bytes == 2 * SIZE**2


def test_the_verdict_speaks_of_tensor_cores(analyses):
    for analysis in analyses:
        text = analysis.verdict.paragraph
        assert "busiest: tensor cores" in text
        assert not any(words in text for words in ("FP64", "FFMA"))
