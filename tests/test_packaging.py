"""A wheel built from this tree holds everything, puts nothing but gemmprof into site-packages, and works."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gemmprof.commands import COMMANDS

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the files that git would ship (committed or not) but the tests' reports, in a clean copy."""
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        origin, copy = ROOT / name, source / name
        if name.startswith("tests/data/") or not (origin.is_file() or origin.is_symlink()):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_symlink():
            copy.symlink_to(origin.readlink())
        else:
            copy.write_bytes(origin.read_bytes())
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(source)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)],
        check=True,
    )
    return target


def run(site: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # PYTHONPATH comes before the editable install, so this is the wheel's gemmprof.
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-m", "gemmprof", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_wheel_holds_only_gemmprof(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gemmprof"}


def test_wheel_holds_every_source_and_template(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    missing = []
    for folder, pattern in (
        ("kernels", "**/*.cu"),
        ("kernels", "**/*.cuh"),
        ("kernels/include", "*"),
        ("templates", "*"),
        ("gemmprof/recorded", "**/*"),
        *((room, "**/*.py") for room in ("kernels", "profiler", "analysis", "reports")),
    ):
        for file in (ROOT / folder).glob(pattern):
            name = file.relative_to(ROOT).as_posix()
            if file.is_file() and "__pycache__" not in name:
                name = name if name.startswith("gemmprof/") else f"gemmprof/{name}"
                missing += [name] if name not in shipped else []
    assert not missing


def test_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    program = "import gemmprof; print(gemmprof.__file__)"
    shown = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert Path(shown.strip()).is_relative_to(installed)


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.campaign
def test_every_command_of_the_wheel_has_help(installed: Path, tmp_path: Path, command: str) -> None:
    result = run(installed, command, "--help", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"usage: gemmprof {command}" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--output", "pages"),
        ("roofline",),
        ("occupancy", "--regs", "37", "--smem", "8192", "--threads", "1024"),
        ("stages",),
    ],
    ids=lambda arguments: str(arguments[0]),
)
@pytest.mark.campaign
def test_wheel_works_out_of_the_box(installed: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = run(installed, *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
