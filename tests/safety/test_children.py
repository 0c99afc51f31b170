"""No helper process imports what lies in the folder that the user stands in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_data import DATA, ROOT
from scale import few

from gemmprof.children.watched import python_command

TRAPS = (
    "json",
    "lzma",
    "struct",
    "numpy",
    "pyarrow",
    "pandas",
    "ncu_report",
    "rich",
    "torch",
    "zstandard",
    "gemmprof",
)


@pytest.fixture
def hostile_folder(tmp_path: Path) -> Path:
    """A folder with a module in place of every one that a child imports; each leaves a mark when it is run."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in TRAPS:
        trap = f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r}); raise SystemExit(99)\n"
        (folder / f"{name}.py").write_text(trap)
    return folder


def _call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # As the installed command starts: the current folder is not on its path.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GEMMPROF_CACHE": "off"}
    return subprocess.run(
        [sys.executable, "-P", "-m", "gemmprof", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_native_reader_imports_nothing_from_the_current_folder(
    hostile_folder: Path, tmp_path: Path
) -> None:
    report = DATA / "names_nvtx.ncu-rep.xz"
    answer = _call(hostile_folder, "export", str(report), "-o", str(tmp_path / "out"))
    assert answer.returncode == 0, answer.stderr
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("module", "said"),
    few(
        [
            ("gemmprof.profiler.gpu_worker", "{}\n"),
            ("gemmprof.profiler.workload", ""),
            ("gemmprof.profiler.gpu_worker", '{"problems": []}\n'),
        ],
        [("gemmprof.profiler.workload", "")],
    ),
)
def test_a_child_of_our_own_imports_nothing_from_the_current_folder(
    module: str, said: str, hostile_folder: Path, tmp_path: Path
) -> None:
    environment = {**os.environ}
    environment.pop("PYTHONPATH", None)  # it finds its package by its place alone
    answer = subprocess.run(
        python_command(module), cwd=hostile_folder, env=environment, input=said, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert not (tmp_path / "executed").exists()
    # Without a job they fail on their own lines, not on finding themselves.
    assert answer.returncode not in (0, 99) or '"detail"' in answer.stdout
    if answer.returncode == 0:
        return
    named = (
        "JSONDecodeError|usage|IndexError|KeyError|No module named 'torch'|Torch not compiled|NVIDIA driver"
    )
    assert any(word in answer.stderr for word in named.split("|")), answer.stderr


def test_no_child_is_started_with_the_current_folder_on_its_path() -> None:
    """``[sys.executable, "-m", …]`` stands nowhere."""
    for room in ("gemmprof", "kernels", "profiler", "analysis", "reports"):
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) > 1:
                    words = [ast.unparse(part) for part in node.elts[:2]]
                    assert words != ["sys.executable", "'-m'"], f"{file}:{node.lineno}"
