"""The launch over time on recorded kernels whose shape in time is known from their grid and tiles."""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from asked import analysed
from recorded_data import DATA, ReadRecorded
from reports_in_bytes import content_of, rewritten, set_metric

from gemmprof import metrics as m
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections import timeline
from gemmprof.model import KernelProfile, NotCollected
from gemmprof.ncurep import ncu_messages_pb2 as messages

over_time = partial(analysed, timeline)


def resample(
    launch: messages.KernelResult, names: list[str], metric: str, other: Callable[[float, float], float]
) -> None:
    """Each sample another one, by its value and when it was taken: from 0 to 1 of the time in which there is any."""
    held = next(x for x in launch.metrics if names[messages.Metric.FromString(x).name].endswith(metric))
    name = names[messages.Metric.FromString(held).name]
    elements = messages.Metric.FromString(held).elements
    samples = dict(zip(elements.keys.whole, elements.values.real, strict=True))
    busy = [key for key, value in samples.items() if value > 0 and key]
    changed = {key: other((key - busy[0]) / (busy[-1] - busy[0]), value) for key, value in samples.items()}
    set_metric(launch, names, name, elements=changed, by_time=True)


@pytest.fixture(scope="module")
def persistent(tmp_path_factory: pytest.TempPathFactory) -> tuple[KernelProfile, ...]:
    path = tmp_path_factory.mktemp("wgmma") / "gemm_4096.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "wgmma" / "gemm_4096.ncu-rep.xz").read_bytes()))
    return read_report(path, source=False, units=False)


def test_a_last_wave_of_fewer_blocks_is_a_tail(recorded: ReadRecorded) -> None:
    """1,024 blocks of 1,024 threads, two on an SM: of the last 232 blocks 132 SMs hold some and 100 the rest."""
    for profile in recorded("ladder_simple"):
        found = over_time(profile)
        assert [phase.name for phase in found.phases] == ["steady", "tail"]
        assert found.lane("sms") is not None
        assert max(found.lane("sms").known) == pytest.approx(100, abs=0.01)  # type: ignore[union-attr]
        # 100 of 132 SMs have a block more than the others.
        tail = found.phases[-1]
        columns = found.lane("sms").values[round(tail.begin * len(found.lane("sms").values)) :]  # type: ignore[union-attr]
        assert sorted(columns)[len(columns) // 2] == pytest.approx(100 * 100 / 132, abs=0.1)
        assert tail.share == pytest.approx(1 / 8, abs=0.01)
        assert tail.costs_percent == pytest.approx(100 * tail.share * (1 - 100 / 132), abs=0.8)
        blocks = found.lane("blocks")
        assert blocks is not None and sum(blocks.known) == pytest.approx(profile.launch.blocks)
        # The first burst fills both places of each SM, then they end in turn; those of gemm_shared fall out of step.
        assert found.bursts == (None if "shared" in profile.function_name else 7)


def test_one_wave_and_a_rest(recorded: ReadRecorded) -> None:
    """300 blocks where 264 fit: 36 run alone; and 133 blocks where 132 fit."""
    big, tiny, registers, _ = map(over_time, recorded("flaws_occupancy"))
    assert big.bursts == 2
    assert (big.phases[-1].name, big.phases[-1].share) == ("tail", pytest.approx(0.36, abs=0.02))
    assert big.tail_costs_percent == pytest.approx(27, abs=1)
    assert registers.phases[-1].name == "tail"
    assert 30 < (registers.tail_costs_percent or 0) < 60
    # One block: no SM runs out of work before the launch ends.
    assert tiny.sm_share_percent == pytest.approx(100 / 132, abs=0.15)
    assert tiny.tail_percent == 0


def test_a_persistent_kernel_pauses_between_its_tiles(persistent: tuple[KernelProfile, ...]) -> None:
    """512 tiles over 132 SMs: three rounds for all, in the fourth 116 have a tile; the clock falls under power."""
    for profile in persistent:
        found = over_time(profile)
        assert found.tensor_pauses == 3
        assert found.phases[-1].name == "tail"
        assert found.phases[-1].share == pytest.approx(0.24, abs=0.02)
        sms = found.lane("sms")
        last = sms.values[round(0.80 * len(sms.values)) : round(0.94 * len(sms.values))]
        assert sorted(last)[len(last) // 2] == pytest.approx(100 * 116 / 132, abs=0.2)
        assert found.lowest_clock_hz < 0.95 * found.clock_hz < 1.7e9


def test_a_step_in_the_middle_is_a_phase(tmp_path: Path) -> None:
    """A launch whose issue slots are made to do a third as much from 60 % on."""

    def change(launch: messages.KernelResult, names: list[str], _: int) -> None:
        for metric in (m.SAMPLED_ISSUE, m.SAMPLED_IPC):
            resample(launch, names, metric, lambda at, value: value / 3 if at >= 0.6 else value)

    path = tmp_path / "step.ncu-rep"
    path.write_bytes(rewritten(content_of("ladder_simple"), change))
    _, *found = map(over_time, read_report(path, source=False, units=False))
    for one in found:  # the first kernel issues at 4 % of the peak: too little to be a phase
        assert [phase.name for phase in one.phases] == ["phase 1", "phase 2", "tail"]
        # Where blocks come in waves, a phase begins with one; else the step lies in a seam of 5 % here.
        assert one.phases[0].end == pytest.approx(0.6, abs=0.5 / one.bursts if one.bursts else 0.035)


def _without(launch: messages.KernelResult, names: list[str], ending: str) -> None:
    kept = [x for x in launch.metrics if not names[messages.Metric.FromString(x).name].endswith(ending)]
    assert len(kept) < len(launch.metrics)
    del launch.metrics[:]
    launch.metrics.extend(kept)


def test_without_the_counter_that_tells_the_sms_there_is_no_clock(tmp_path: Path) -> None:
    """The share of SMs then comes from their cycles: cycles over that share would be one clock all along."""
    path = tmp_path / "no_ipc.ncu-rep"
    path.write_bytes(
        rewritten(
            content_of("ladder_simple"), lambda launch, names, _: _without(launch, names, m.SAMPLED_IPC)
        )
    )
    for profile in read_report(path, source=False, units=False):
        found = over_time(profile)
        assert found.lane("sms") is not None
        assert found.lane("clock") is None and found.clock_hz is None


@pytest.mark.filterwarnings("error")
def test_sms_that_have_work_for_less_than_half_of_the_time(tmp_path: Path) -> None:
    """Without the counter that tells the SMs, and their cycles gone from three tenths of the time on."""

    def change(launch: messages.KernelResult, names: list[str], _: int) -> None:
        _without(launch, names, m.SAMPLED_IPC)
        cycles = "TPC.TriageCompute." + m.SM_ACTIVE_CYCLES
        resample(launch, names, cycles, lambda at, value: value if at < 0.3 else 0.0)

    path = tmp_path / "short.ncu-rep"
    path.write_bytes(rewritten(content_of("ladder_simple"), change))
    for profile in read_report(path, source=False, units=False):
        sms = over_time(profile).lane("sms")
        assert max(sms.known) == pytest.approx(100)
        assert 0.6 < sms.values.count(0.0) / len(sms.values) < 0.8


@pytest.mark.parametrize(("begin", "end"), [(0.9, 1.0), (0.85, 0.9), (0.0, 0.3), (0.3, 0.5)])
def test_phases_follow_each_other_wherever_the_tensor_cores_are_busy(
    tmp_path: Path, begin: float, end: float
) -> None:
    """A persistent kernel whose last 24 % are a tail, its tensor cores made busy in one stretch alone."""

    def change(launch: messages.KernelResult, names: list[str], _: int) -> None:
        resample(launch, names, m.SAMPLED_TENSOR, lambda at, _: 80.0 if begin <= at <= end else 0.0)

    path = tmp_path / "busy.ncu-rep"
    content = lzma.decompress((DATA / "wgmma" / "gemm_4096.ncu-rep.xz").read_bytes())
    path.write_bytes(rewritten(content, change))
    for profile in read_report(path, source=False, units=False):
        phases = over_time(profile).phases
        assert phases[0].begin == 0 and phases[-1].end == 1
        for one, following in itertools.pairwise(phases):
            assert one.begin < one.end == following.begin, phases


def test_stall_reasons_are_warps_of_a_scheduler() -> None:
    """1,024 threads are 8 warps a scheduler: all wait for DRAM in the second of three parts, hardly any before."""
    profiles = read_report(DATA / "phases" / "h200" / "stalls.ncu-rep.xz", source=False, units=False)
    found = over_time(next(one for one in profiles if one.function_name == "three_phases"))
    assert {lane.unit for lane in found.stalls} == {"warps"} and found.stalls[0].key == "long_scoreboard"
    first, second = found.phases[0], found.phases[1]
    values = found.stalls[0].values
    middle = [int(len(values) * (phase.begin + phase.end) / 2) for phase in (first, second)]
    assert values[middle[0]] < 0.1 and 7 < values[middle[1]] < 8
    for column in zip(*(lane.values for lane in found.stalls), strict=True):
        assert sum(value for value in column if value == value) < 8.3


def test_without_samples_the_section_says_which_option_brings_them(recorded: ReadRecorded) -> None:
    missing = analyse(recorded("names_nvtx")[0]).results["timeline"]
    assert isinstance(missing, NotCollected)
    assert missing.remedy == "--section PmSampling"
