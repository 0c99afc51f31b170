"""The machine check: what nvidia-smi and the driver say, and who may read counters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from profiler_fakes import fake_ncu
from recorded_data import ROOT

from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.gpu import devices
from gemmprof.gpu.devices import Gpu, Tool, chosen_gpu, list_gpus, parse_gpus, selected_gpus, visible_gpus
from gemmprof.kernels.compiler import present_architectures
from gemmprof.profiler import machine
from gemmprof.profiler.machine import counters_permitted

H100 = "0, NVIDIA H100 80GB HBM3, 9.0, 81559, 580.159.04, GPU-0a1b\n"
RTX = "1, NVIDIA GeForce RTX 4090, 8.9, 24564, 580.159.04, GPU-2c3d\n"
ADMIN_ONLY = "EnableMSI: 1\nRmProfilingAdminOnly: 1\nTCEBypassMode: 0\n"
EVERYBODY = ADMIN_ONLY.replace("AdminOnly: 1", "AdminOnly: 0")
SYS_ADMIN, PERFMON = 1 << machine.CAP_SYS_ADMIN, 1 << machine.CAP_PERFMON


def test_nvidia_smis_table_is_read() -> None:
    first, second = parse_gpus(H100 + RTX)
    assert first == Gpu(0, "NVIDIA H100 80GB HBM3", (9, 0), 81559 << 20, "580.159.04", "GPU-0a1b")
    assert second.compute_capability == (8, 9)
    assert parse_gpus("No devices were found\n") == ()
    assert parse_gpus("0, Tegra, [N/A], [N/A], 540.1, GPU-x\n")[0].memory_bytes == 0


@pytest.mark.parametrize(("visible", "index"), [(None, 0), ("1", 1), ("1,0", 1), ("GPU-2c", 1), ("0", 0)])
def test_the_gpu_is_the_one_that_cuda_sees_first(
    visible: str | None, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert chosen_gpu(parse_gpus(H100 + RTX)).index == index


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-zz"])
def test_a_hidden_gpu_is_explained(visible: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(DeviceError, match="hides every GPU"):
        chosen_gpu(parse_gpus(H100))


@pytest.mark.parametrize(
    ("parameters", "capabilities", "driver", "expected"),
    [
        (EVERYBODY, 0, (535,), True),
        (ADMIN_ONLY, 0, (580,), False),
        (ADMIN_ONLY, SYS_ADMIN, (470,), True),
        (ADMIN_ONLY, PERFMON, (565, 57), True),
        (ADMIN_ONLY, PERFMON, (560, 35), False),
        (ADMIN_ONLY, PERFMON, (), False),
        (None, 0, (580,), None),
        (None, SYS_ADMIN, (580,), True),
        ("Something: 1\n", 0, (580,), None),
    ],
)
def test_who_may_read_counters(
    parameters: str | None, capabilities: int, driver: tuple[int, ...], expected: bool | None
) -> None:
    assert counters_permitted(parameters, capabilities, driver) is expected


def test_capabilities_are_read_from_the_process_status() -> None:
    assert machine.effective_capabilities("CapEff:\t0000004000200000\nCapBnd:\t0\n") == SYS_ADMIN | PERFMON
    assert machine.effective_capabilities("Name:\tpython\n") == 0


def test_refused_counters_name_the_module_option_and_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters, status = tmp_path / "params", tmp_path / "status"
    parameters.write_text(ADMIN_ONLY)
    status.write_text("CapEff:\t0000000000000000\n")
    monkeypatch.setattr(machine, "DRIVER_PARAMETERS", parameters)
    monkeypatch.setattr(machine, "PROCESS_STATUS", status)
    check = machine.check_counters(parse_gpus(H100)[0])
    assert check.ok is False
    assert "RmProfilingAdminOnly: 1" in check.found and "neither CAP_SYS_ADMIN nor CAP_PERFMON" in check.found
    assert "NVreg_RestrictProfilingToAdminUsers=0" in check.remedies[0]


@pytest.mark.parametrize(
    ("cuda", "driver", "ok"),
    [("13.0", "580.65", True), ("13.0", "550.54", False), ("12.8", "525.60", True), (None, "470.1", True)],
)
def test_a_driver_too_old_for_torch_is_named(cuda: str | None, driver: str, ok: bool) -> None:
    gpu = Gpu(0, "GPU", (9, 0), 1, driver, "GPU-1")
    check = machine.check_driver(gpu, cuda)
    assert check.ok is ok
    if not ok:
        assert "needs 580 or newer" in check.found and "upgrade the NVIDIA driver" in check.remedies


@pytest.mark.parametrize(
    ("capability", "release"),
    [((8, 0), (11, 0)), ((8, 6), (11, 1)), ((9, 0), (11, 8)), ((12, 0), (12, 8)), ((12, 1), (12, 9))],
)
def test_the_compiler_must_know_the_gpu(
    capability: tuple[int, int], release: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(0, "GPU", capability, 1, "580.65", "GPU-1")
    major, minor = release
    for version, ok in ((release, True), ((major, minor - 1) if minor else (major - 1, 9), False)):
        monkeypatch.setattr(machine.devices, "find_nvcc", lambda version=version: Tool(Path("nvcc"), version))
        check = machine.check_nvcc(gpu)
        assert check.ok is ok
        assert ok or f"install CUDA {major}.{minor} or newer" in check.remedies[0]


def test_a_compiler_for_a_gpu_that_is_not_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.devices, "find_nvcc", lambda: Tool(Path("nvcc"), (9, 0)))
    assert machine.check_nvcc(Gpu(0, "GPU", (99, 0), 1, "580.65", "GPU-1")).ok


def test_every_look_up_sees_the_gpus_that_cuda_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (H100 + RTX).replace("\n", "\\n")
    executable(tmp_path / "nvidia-smi", f"printf '{text}'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    first, second = parse_gpus(H100 + RTX)
    for visible, gpus in (
        (None, (first, second)),
        ("1", (second,)),
        ("1,0", (second, first)),
        ("0,9,1", (first,)),
        ("", ()),
    ):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert visible_gpus(list_gpus()) == gpus
        labels = {"{}.{}".format(*gpu.compute_capability) for gpu in gpus}
        assert set(present_architectures()) == labels
        check, gpu = machine.check_gpu()
        assert gpu == (gpus[0] if gpus else None) and check.ok is bool(gpus)


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_failing_nvidia_smi_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(
        tmp_path / "nvidia-smi", 'echo "NVIDIA-SMI has failed because it couldn\'t communicate"; exit 9'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DeviceError) as caught:
        list_gpus()
    assert "couldn't communicate" in caught.value.found


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Version 2025.3.1.0 (build 36398880) (public-release)", (2025, 3, 1)),
        ("Cuda compilation tools, release 13.0, V13.0.48", (13, 0)),
        ("580.159.04", (580, 159, 4)),
        ("nothing", ()),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, ...]) -> None:
    assert devices.parse_version(text) == version


def installation(root: Path, version: str) -> Path:
    (root / "extras" / "python").mkdir(parents=True)
    (root / "extras" / "python" / "ncu_report.py").touch()
    return fake_ncu(root, version=version)


def test_the_module_that_belongs_to_an_ncu_is_found_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu = installation(tmp_path / "nsight-compute-2025.3.1", "2025.3.1.0")
    monkeypatch.setenv("GEMMPROF_NCU", str(ncu))
    assert devices.find_ncu() == devices.Tool(ncu, (2025, 3, 1))
    assert devices.ncu_python_directory() == ncu.parent / "extras" / "python"


def test_the_toolkits_script_leads_to_the_installation_of_its_version(tmp_path: Path) -> None:
    toolkit = tmp_path / "cuda-13.0"
    for version in ("2025.3.1", "2024.1.0", "2025.10.0"):
        installation(toolkit / f"nsight-compute-{version}", f"{version}.0")
    script = fake_ncu(toolkit / "bin", version="2024.1.0.0")
    assert devices.ncu_python_directory(script) == toolkit / "nsight-compute-2024.1.0" / "extras" / "python"
    link = tmp_path / "ncu"
    link.symlink_to(toolkit / "nsight-compute-2025.3.1" / "ncu")
    assert devices.ncu_python_directory(link) == toolkit / "nsight-compute-2025.3.1" / "extras" / "python"


def test_an_ncu_report_older_than_ncu_falls_back_to_ncus_own_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu = installation(tmp_path / "nsight-compute-2099.1.0", "2099.1.0.0")
    monkeypatch.setenv("GEMMPROF_NCU", str(ncu))
    check = machine.check_ncu_report()
    assert check.ok and "older than ncu 2099.1.0" in check.found and str(ncu.parent) in check.found
    (ncu.parent / "extras" / "python" / "ncu_report.py").unlink()
    assert machine.check_ncu_report().ok is None


def run_gemmprof(*arguments: str, path: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line on a machine whose PATH is ``path``."""
    return subprocess.run(
        [sys.executable, "-m", "gemmprof", *arguments],
        env={"PATH": path, "HOME": str(cwd), "PYTHONPATH": str(ROOT)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_collect_without_a_gpu_ends_with_2_and_says_what_works_without(tmp_path: Path) -> None:
    done = run_gemmprof("collect", "--all-stages", path="/nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "no NVIDIA GPU was found" in done.stderr and "gemmprof report" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_collect_with_a_misspelt_stage_ends_with_2(tmp_path: Path) -> None:
    done = run_gemmprof("collect", "--stage", "naiv", path="/nowhere", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean 'naive'" in done.stderr


def test_doctor_without_a_gpu_ends_with_1_and_names_what_is_missing(tmp_path: Path) -> None:
    done = run_gemmprof("doctor", path="/nowhere", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr == ""
    assert "MISSING" in done.stdout and "`gemmprof collect` cannot run here: GPU" in done.stdout
    as_json = run_gemmprof("doctor", "--json", path="/nowhere", cwd=tmp_path)
    assert as_json.returncode == 1
    answer = json.loads(as_json.stdout)
    assert answer["can_collect"] is False
    checks = {check["name"]: check for check in answer["checks"]}
    assert {"GPU", "driver", "nvcc", "ncu", "ncu-report", "counter permission", "torch"} <= set(checks)
    assert checks["GPU"]["ok"] is False and checks["GPU"]["remedies"]


def test_doctor_sees_the_gpu_and_the_ncu_that_are_there(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    executable(folder / "nvidia-smi", f"echo '{H100.strip()}'")
    fake_ncu(folder)
    done = run_gemmprof("doctor", "--json", path=f"{folder}:/usr/bin:/bin", cwd=tmp_path)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["GPU"]["ok"] and "H100" in checks["GPU"]["found"] and "9.0" in checks["GPU"]["found"]
    assert checks["ncu"]["ok"] and checks["ncu"]["found"].startswith("2025.3.1")


def test_the_hint_is_short_and_never_fails(tmp_path: Path) -> None:
    without = run_gemmprof("doctor", "--hint", path="/nowhere", cwd=tmp_path)
    assert without.returncode == 0 and "No NVIDIA GPU" in without.stdout
    executable(tmp_path / "bin" / "nvidia-smi", f"echo '{H100.strip()}'")
    with_gpu = run_gemmprof("doctor", "--hint", path=f"{tmp_path / 'bin'}:/usr/bin:/bin", cwd=tmp_path)
    assert with_gpu.returncode == 0 and "H100" in with_gpu.stdout
    assert all(len(done.stdout.splitlines()) <= 2 for done in (without, with_gpu))


def test_stages_shows_the_ladder_as_a_table_and_as_json(tmp_path: Path) -> None:
    from gemmprof.kernels.catalog import LADDERS, SINGLE

    table = run_gemmprof("stages", path="/nowhere", cwd=tmp_path)
    assert table.returncode == 0
    for stage in SINGLE.stages:
        assert stage.name in table.stdout and stage.idea.split(",")[0] in table.stdout
    entries = json.loads(run_gemmprof("stages", "--json", path="/nowhere", cwd=tmp_path).stdout)["stages"]
    every = [stage for ladder in LADDERS for stage in ladder.stages]
    assert [entry["number"] for entry in entries] == [stage.number for stage in every]
    assert entries[1]["parameters"] == dict(SINGLE.stages[1].parameters)


MIXED = tuple(
    Gpu(index, name, (9, 0), 80 << 30, "580.1", f"GPU-{index}")
    for index, name in enumerate(["A100", "H200", "H200", "A100", "H200"])
)


@pytest.mark.parametrize(
    ("selection", "visible", "chosen"),
    [
        ("", None, [0]),
        ("", "2", [2]),
        ("all", None, [1, 2, 4]),
        ("all", "0,3,1", [0, 3]),
        ("2,1", None, [2, 1]),
        (" 4 , GPU-1 ", None, [4, 1]),
        ("1,1", None, [1]),
    ],
)
def test_gpus_are_chosen_by_index_or_all_of_the_most_frequent_model(
    selection, visible, chosen, monkeypatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in selected_gpus(MIXED, selection)] == chosen


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        ("7", "there is no GPU '7'"),
        ("1,", "there is no GPU ''"),
        ("0,1", "GPUs of several models"),
        ("4", "CUDA_VISIBLE_DEVICES hides GPU 4"),
    ],
)
def test_gpus_that_cannot_be_chosen_are_named_with_the_way_out(selection, said, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(UsageError, match=said) as error:
        selected_gpus(MIXED, selection)
    assert error.value.remedies and error.value.found
