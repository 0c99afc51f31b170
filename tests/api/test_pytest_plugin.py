"""The pytest plugin, as a user's test file sees it: real reports, a real pytest, and a stand-in for ncu."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from profiler_fakes import fake_ncu
from recorded_data import DATA
from scale import few

ROOT = Path(__file__).resolve().parents[2]
NOISE = DATA / "noise"

TESTS = f"""
BASE, FEWER = {str(NOISE / "code_base.ncu-rep.xz")!r}, {str(NOISE / "code_fewer_registers.ncu-rep.xz")!r}
GRIDS = {str(DATA / "launches_same_kernel.ncu-rep.xz")!r}

def test_figures(ncu):
    report = ncu.open(BASE)
    assert len(report.kernels) == 5
    kernel = report.kernel("product_tiled")
    assert kernel.figure("registers") == 32 and kernel.launches == 6
    assert 2.4e-3 < kernel.seconds < 2.7e-3
    assert "AchievedOccupancy" in report.kernel("sine").findings

def test_conditions_hold(ncu):
    ncu.open(BASE).check("registers > 64", "time > 10000")

def test_conditions_do_not_hold(ncu):
    ncu.open(BASE).check("registers > 40")

def test_one_of_several_grids(ncu):
    report = ncu.open(GRIDS)
    assert report.kernel("saxpy 256x1x1").launches == 1
    report.kernel("saxpy")

def test_slower(ncu):
    ncu.open(FEWER).check_against(ncu.open(BASE), "time > +3%")

def test_baseline(ncu):
    outcome = ncu.open(BASE).check_against("kept")
    assert outcome.count("same") == 5

def test_no_such_kernel(ncu):
    ncu.open(BASE).kernel("nothing")
"""


def plugin() -> list[str]:
    """pytest's options that load the plugin: none where gemmprof is installed and its entry point does."""
    installed = any(point.name == "gemmprof" for point in entry_points(group="pytest11"))
    return [] if installed else ["-p", "gemmprof.api.pytest_plugin"]


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugin(), "-p", "no:cacheprovider", *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.mark.campaign
def test_a_baseline_that_is_not_there_is_made_by_an_option(tmp_path: Path) -> None:
    (tmp_path / "test_kernels.py").write_text(TESTS)
    done = run_pytest(tmp_path, "-k", "baseline")
    assert done.returncode == 1
    assert "there is no baseline kept in .gemmprof/baselines" in done.stdout
    assert "fix: pytest --ncu-save-baselines saves it" in done.stdout
    assert "baseline.py" not in done.stdout, "the test's own line is shown, not ours"


def test_a_users_tests(tmp_path: Path) -> None:
    (tmp_path / "test_kernels.py").write_text(TESTS)
    saved = run_pytest(tmp_path, "--ncu-save-baselines", "-k", "baseline")
    assert saved.returncode == 0, saved.stdout
    assert (tmp_path / ".gemmprof" / "baselines" / "kept.json.zst").is_file()
    done = run_pytest(tmp_path, "-rA")
    outcomes = [
        line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))
    ]
    assert sorted(outcomes) == [
        "FAILED test_kernels.py::test_conditions_do_not_hold",
        "FAILED test_kernels.py::test_no_such_kernel",
        "FAILED test_kernels.py::test_one_of_several_grids",
        "FAILED test_kernels.py::test_slower",
        "PASSED test_kernels.py::test_baseline",
        "PASSED test_kernels.py::test_conditions_hold",
        "PASSED test_kernels.py::test_figures",
    ]
    assert "normalise<1024>: 28.0 % slower" in done.stdout and "registers 48 → 32" in done.stdout
    assert "registers is 48 (registers > 40)" in done.stdout
    # What has no other side is no change that is not decided.
    assert "5 of 5 kernels checked against registers > 40\n" in done.stdout
    assert "'saxpy' is in the name of 4 kernels" in done.stdout and "saxpy 4096x1x1" in done.stdout


@pytest.mark.campaign
def test_a_program_is_profiled(tmp_path: Path) -> None:
    report = tmp_path / "recorded.ncu-rep"
    report.write_bytes(lzma.decompress((NOISE / "code_base.ncu-rep.xz").read_bytes()))
    ncu = fake_ncu(tmp_path / "tools", report=report)
    (tmp_path / "test_program.py").write_text(
        "import sys\n"
        "def work(): pass\n"
        "def test_program(ncu):\n"
        "    report = ncu.profile([sys.executable, '-c', ''], repeat=2, metric_set='basic')\n"
        "    assert report.kernel('sine').launches == 12\n"
        "def test_function(ncu):\n"
        "    assert len(ncu.profile(work, kernel='sine', metric_set='basic').kernels) == 5\n"
    )
    done = run_pytest(tmp_path, GEMMPROF_NCU=str(ncu))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("option", "code", "word"),
    few([((), 0, "1 skipped"), (("--ncu-required",), 1, "1 failed")], [(("--ncu-required",), 1, "1 failed")]),
)
def test_without_ncu(option: tuple[str, ...], code: int, word: str, tmp_path: Path) -> None:
    (tmp_path / "test_program.py").write_text("def test_program(ncu):\n    ncu.profile(['/bin/true'])\n")
    done = run_pytest(tmp_path, *option, GEMMPROF_NCU=str(tmp_path / "no-ncu"))
    assert (done.returncode, word in done.stdout) == (code, True), done.stdout
