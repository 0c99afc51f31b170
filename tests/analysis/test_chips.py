"""A chip is one row of one table: adding one costs nothing else, and nothing is assumed of what has none."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from recorded_data import DATA

from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.reading.report import read_report
from gemmprof.gpu import arch
from gemmprof.model import KernelProfile

ENTRY = [
    *("13.5", "GX100", "64", "32", "64", "228 196 164 132 100 64 32 16 8 0", "14.0", "512", "", "yes"),
    *("fp16=4096 bf16=4096 tf32=2048", "fp16=16384 bf16=16384 tf32=8192"),
    *("4", "X100=200", "a GX100: dram_cycles=500"),
]

PROGRAM = """
from dataclasses import replace
from gemmprof.base import foreign_files
facts = foreign_files.facts
foreign_files.facts = lambda code, name: [*facts(code, name), *([{entry!r}] if name == "chips.csv" else [])]
from gemmprof.gpu import arch as module

from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.occupancy.calculator import occupancy
from gemmprof.analysis.explanation.code import latency
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections import roofline

assert occupancy("13.5", 256, 32, 0).limits.chip == "GX100"
assert module.find_product("x100").sm_count == 200
for profile in read_report({report!r}):
    device = replace(profile.device, compute_capability=(13, 5))
    old = {{name: value for name, value in profile.metrics.items() if "ops_path_tensor" not in name}}
    profile = replace(profile, device=device, metrics=old)
    peaks = [roof.peak for roof in roofline.analyse(profile).compute_roofs if "src_bf16" in roof.key]
    clock = profile.number("sm__cycles_elapsed.avg.per_second")
    assert all(abs(peak / (4096 * device.sm_count * clock) - 1) < 1e-9 for peak in peaks), peaks
    found = work(profile)
    assert found.practice.dram_cycles == 500.0 and latency.l1_bytes(found, 0.0) == 512 * 1024
    assert not any("were measured on" in line for line in explain(profile).trust)
print("one row suffices")
"""


def test_a_chip_costs_one_row() -> None:
    program = PROGRAM.format(entry=ENTRY, report=str(DATA / "flaws_tensor.ncu-rep.xz"))
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert answer.stdout.strip() == "one row suffices", answer.stderr


def on(capability: tuple[int, int]) -> KernelProfile:
    profile = read_report(DATA / "flaws_tensor.ncu-rep.xz", units=False)[0]
    return replace(profile, device=replace(profile.device, compute_capability=capability))


@pytest.mark.parametrize(
    ("capability", "says"),
    [((9, 0), None), ((8, 6), "not on this chip (GA10x)"), ((13, 7), "not in the table of chips")],
)
def test_predictions_by_figures_of_another_chip_say_so(capability: tuple[int, int], says: str | None) -> None:
    lines = [line for line in explain(on(capability)).trust if "were measured on an H200" in line]
    assert len(lines) == (says is not None) and all(says is None or says in line for line in lines)


def test_an_unknown_chip_has_no_invented_numbers() -> None:
    turing, own = arch.practice_of((7, 5), "Tesla T4")
    wavefronts = 0.5  # of their counter's peak where ncu's throughput of L1 is 99.9 %
    assert not own and 0.97 < wavefronts / turing.ceilings["l1_data"] < 1.04
    practice, own = arch.practice_of((13, 7))
    assert practice is arch.MEASURED and not own and (13, 7) not in arch.LIMITS


@pytest.mark.parametrize(
    ("feature", "first"),
    [("asynchronous copies", (8, 0)), ("clusters", (9, 0)), ("ldmatrix", (7, 5)), ("tensor cores", (7, 0))],
)
def test_what_a_gpu_has_begins_with_a_compute_capability(feature: str, first: tuple[int, int]) -> None:
    having = [capability for capability in ((6, 1), *arch.LIMITS) if arch.has(feature, capability)]
    assert having and having[0] == first and having == [c for c in arch.LIMITS if c >= first]
    assert arch.has("wgmma", (9, 0)) and not arch.has("wgmma", (8, 9)) and not arch.has("wgmma", (10, 0))


@pytest.mark.parametrize(
    ("name", "there"), [("NVIDIA GeForce GTX 1660 Ti", False), ("NVIDIA T400 4GB", False), ("Tesla T4", True)]
)
def test_small_turing_chips_have_no_tensor_cores(name: str, there: bool) -> None:
    assert arch.has_tensor_cores(name, (7, 5)) is there


@pytest.mark.parametrize(
    ("name", "capability", "sms", "ghz", "teraflops"),
    [
        # Dense, of NVIDIA's whitepapers of the GA102, TU102, AD102 and GB202, appendix A, and of GA102's appendix C.
        (
            "NVIDIA GeForce RTX 3090",
            (8, 6),
            82,
            1.695,
            {"fp16": 71, "bf16": 71, "tf32": 35.6, "fp16 fp16": 142},
        ),
        (
            "NVIDIA GeForce RTX 3070",
            (8, 6),
            46,
            1.725,
            {"fp16": 40.6, "tf32": 20.3, "fp16 fp16": 81.3, "int8 ": 162.6},
        ),
        (
            "NVIDIA RTX A6000",
            (8, 6),
            84,
            1.8,
            {"fp16": 154.8, "bf16": 154.8, "tf32": 77.4, "fp16 fp16": 154.8},
        ),
        ("GeForce RTX 2080 Ti", (7, 5), 68, 1.545, {"fp16": 53.8, "fp16 fp16": 107.6, "int8 ": 215.2}),
        ("Quadro RTX 6000", (7, 5), 72, 1.77, {"fp16": 130.5, "fp16 fp16": 130.5}),
        (
            "NVIDIA GeForce RTX 4090",
            (8, 9),
            128,
            2.52,
            {"fp16": 165.2, "tf32": 82.6, "fp8": 330.3, "fp8 fp16": 660.6},
        ),
        (
            "NVIDIA GeForce RTX 5090",
            (12, 0),
            170,
            2.407,
            {"fp16": 209.5, "tf32": 104.8, "fp8": 419, "fp16 fp16": 419},
        ),
        ("NVIDIA A100-SXM4-40GB", (8, 0), 108, 1.41, {"fp16": 312, "tf32": 156, "int8 ": 624}),
    ],
)
def test_tensor_rates_are_those_of_the_whitepapers(
    name: str, capability: tuple[int, int], sms: int, ghz: float, teraflops: dict[str, float]
) -> None:
    """GeForce cards add up in FP32 at half the rate of their sisters."""
    for kind, stated in teraflops.items():
        source, _, sums = kind.partition(" ")
        rate = arch.tensor_rate(name, arch.LIMITS[capability], source, sums if " " in kind else "fp32")
        assert rate * sms * ghz / 1e3 == pytest.approx(stated, rel=0.005), kind
