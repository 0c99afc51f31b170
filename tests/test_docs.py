"""The documentation builds, and every link in it leads somewhere."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_data import ROOT

pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specification = importlib.util.spec_from_file_location("build_docs", ROOT / "tools" / "build_docs.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("docs")
    module.build(folder / "docs")
    return folder


def test_the_site_builds_and_every_link_leads_somewhere(built: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings.replace("build/docs", str(built / "docs")).replace("build/site", str(built / "site"))
    (built / "mkdocs.yml").write_text(settings, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(built / "mkdocs.yml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert (built / "site" / "start" / "cuda" / "index.html").is_file()


def test_tutorials_end_in_pages_of_recorded_reports(built: Path) -> None:
    for name in ("gelu", "softmax_triton", "gemm_cutlass", "transformer"):
        assert "NVIDIA H200" in (built / "docs" / "pages" / name / "index.html").read_text(encoding="utf-8")
    text = (built / "docs" / "start" / "cuda.md").read_text(encoding="utf-8")
    assert "double_precision: saves" in text and "gelu.cu:10" in text and "{{" not in text


def test_every_cause_has_a_page_and_every_command_its_options(built: Path) -> None:
    from gemmprof.analysis.explanation.causes import CAUSES
    from gemmprof.commands import COMMANDS

    assert {path.stem for path in (built / "docs" / "causes").glob("*.md")} == set(CAUSES)
    commands = (built / "docs" / "commands.md").read_text(encoding="utf-8")
    assert all(f"usage: gemmprof {name}" in commands for name in COMMANDS)
    fields = (built / "docs" / "json.md").read_text(encoding="utf-8")
    assert "| `kernels[].findings[].saves` | number |" in fields and "gemmprof.error/1" in fields
