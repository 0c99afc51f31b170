"""Two real kernels on the tensor cores of an H200, 4096³ in BF16: cuBLAS's and an early version of stage 8.

Both compute whole tiles, so what the counters say of their work and of their copies can be told beforehand.
"""

from __future__ import annotations

import pytest
from recorded_data import DATA

from gemmprof import metrics
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections import warp_states
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.memory_chart import MemoryChart
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.warp_states import WarpStates

SIZE = 4096
FLOPS = 2 * SIZE**3
FP8_STEP_BYTES = (128 + 128) * 128
"""What a block of the FP8 stage copies in a step along K: 128 rows of A and 128 columns of B, 128 deep."""
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


@pytest.mark.parametrize(("place", "wavefronts"), [(0, 12), (1, 20)])
def test_operand_reads_are_shared_memory_traffic(analyses, place, wavefronts):
    """64 x 16 of A and 16 x columns of B for four warps: 16 and 32 or 64 wavefronts of 128 bytes."""
    analysis = analyses[place]
    mix = {count.opcode: count.executed for count in analysis.get(InstructionMix).opcodes}
    reads = mix["HGMMA"] * wavefronts * 128
    access = analysis.get(MemoryChart).link("shared", "shared_memory")
    assert reads < access.bytes < 1.1 * reads
    shared = next(roof for roof in analysis.get(Roofline).memory_roofs if roof.level == "shared")
    assert shared.percent == pytest.approx(access.percent_of_peak, rel=0.05)


def test_waits_are_called_by_what_is_waited_for(analyses):
    """ncu's "Barrier" holds waits for wgmma's results, and its "Long Scoreboard" those at mbarriers."""
    library, ours = ({s.reason.key: s for s in a.get(WarpStates).states} for a in analyses)
    shares = {part.wait: part.share for part in library["barrier"].waits}
    assert set(shares) == {warp_states.WGMMA, warp_states.BLOCK} and min(shares.values()) > 0.4
    shares = {part.wait: part.share for part in ours["barrier"].waits}
    assert shares[warp_states.WGMMA] > 0.4 and shares[warp_states.CLUSTER] > 0.4
    assert ours["barrier"].meaning == "Waits: 53 % wgmma results, 46 % cluster barrier."
    for states, least in (
        (library, 0.5),
        (ours, 0.8),
    ):  # a loop of the library's asks far from where it waits
        (arrivals,) = states["long_scoreboard"].waits
        assert arrivals.wait is warp_states.MBARRIER and arrivals.share > least
        assert "mbarrier" in states["long_scoreboard"].meaning
        assert sum(part.samples for part in states["barrier"].waits) <= states["barrier"].samples


def test_a_barrier_of_the_block_is_called_so(recorded):
    """Stage 3 of the FP32 ladder waits in __syncthreads, and for nothing but memory."""
    states = {
        s.reason.key: s for s in analyse(recorded("ladder_simple", source=True)[2]).get(WarpStates).states
    }
    (barrier,) = states["barrier"].waits
    assert barrier.wait is warp_states.BLOCK and barrier.share == 1.0
    assert "__syncthreads" in states["barrier"].meaning
    assert states["long_scoreboard"].waits == () and "mbarrier" not in states["long_scoreboard"].meaning


def test_without_source_the_state_keeps_its_name():
    profile = read_report(DATA / "wgmma" / "gemm_4096.ncu-rep.xz", source=False)[1]
    states = {s.reason.key: s for s in analyse(profile).get(WarpStates).states}
    assert states["barrier"].waits == () and "wgmma" in states["barrier"].meaning


def test_the_verdict_speaks_of_tensor_cores(analyses):
    for analysis in analyses:
        text = analysis.verdict.paragraph
        assert "busiest: tensor cores" in text
        assert not any(words in text for words in ("FP64", "FFMA"))


@pytest.fixture(scope="module")
def of_8_bits():
    """cuBLAS through torch._scaled_mm with sums in float32, and the FP8 stage, at 4096³."""
    return [analyse(profile) for profile in read_report(DATA / "wgmma" / "gemm_4096_fp8.ncu-rep.xz")]


def test_fp8_work_and_peak(of_8_bits):
    """e4m3 has twice the 16-bit rate: 8,192 operations of an SM in a cycle."""
    for analysis in of_8_bits:
        point = analysis.get(Roofline).points[0]
        assert point.compute.label == "Tensor FP8"
        seconds = analysis.profile.metrics[metrics.DURATION] * 1e-9
        assert point.compute.achieved * seconds == pytest.approx(FLOPS, rel=1e-4)
        clock = analysis.profile.metrics[metrics.SM_ELAPSED_CLOCK]
        assert point.compute.peak == pytest.approx(132 * 8192 * clock)


def test_fp8_wgmmas_and_promotions_are_counted(of_8_bits):
    """A wgmma is 64 x 128 x 32; every 128 of K the 64 sums of a lane are added to float32 ones, by both kernels."""
    for analysis in of_8_bits:
        mix = {count.opcode: count for count in analysis.get(InstructionMix).opcodes}
        assert mix["QGMMA"].executed == 4 * FLOPS // (2 * 64 * 128 * 32)
        assert mix["QGMMA"].instruction_class == "tensor"
        assert mix["FADD"].thread_executed == SIZE**2 * (SIZE // 128)


def test_fp8_traffic(of_8_bits):
    """Operands by bulk copies, and 64 x 32 of A and 32 x 128 of B that four warps read from shared memory."""
    ours = of_8_bits[1]
    links = {link.label: link for link in ours.get(MemoryChart).links if link.label.startswith("tma")}
    assert links["tma_load"].bytes == (SIZE // 128) ** 2 * (SIZE // 128) * FP8_STEP_BYTES
    assert links["tma_store"].bytes == 2 * SIZE**2
    mix = {count.opcode: count.executed for count in ours.get(InstructionMix).opcodes}
    access = ours.get(MemoryChart).link("shared", "shared_memory")
    reads = mix["QGMMA"] * 12 * 128
    assert reads < access.bytes < 1.1 * reads
    shares = {s.reason.key: s.waits for s in ours.get(WarpStates).states}
    assert [part.wait for part in shares["barrier"]] == [warp_states.WGMMA]
