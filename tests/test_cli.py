"""The front door as a user meets it: a subprocess, its exit code, its streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gemmprof import __version__
from gemmprof.commands import COMMANDS


def gemmprof(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gemmprof", *arguments],
        capture_output=True, text=True, timeout=120, check=False, cwd=cwd,
    )  # fmt: skip


def test_help_lists_every_command() -> None:
    shown = gemmprof("--help")
    assert shown.returncode == 0
    for name, summary in COMMANDS.items():
        assert name in shown.stdout
        assert summary.split()[0] in shown.stdout


def test_version() -> None:
    assert gemmprof("--version").stdout.strip() == f"gemmprof {__version__}"


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("report", "--nonsense")])
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = gemmprof(*arguments)
    assert result.returncode == 2
    assert "usage: gemmprof" in result.stderr


@pytest.mark.parametrize("command", ["report", "roofline"])
def test_a_missing_file_is_named(command: str, tmp_path: Path) -> None:
    result = gemmprof(command, "no-such.ncu-rep", cwd=tmp_path)
    assert result.returncode == 2
    assert "no-such.ncu-rep" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m gemmprof stages --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.stderr == ""
    assert result.returncode == 0
